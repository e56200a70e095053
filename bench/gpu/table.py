"""The records of a run as Markdown; those of several, as in: python bench/gpu/table.py first.jsonl second.jsonl"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Case = tuple[str, float]  # model and cap

OURS = "memorymark"


def progress(record: Record) -> str:
    """A line for the terminal."""
    where = f"{record['model']} {record['cap_gib']} GiB"
    if "error" in record:
        who = record.get("finder") or record.get("batch")
        return f"{where}: {who}: {record['error'].strip().splitlines()[-1]}"
    if record["kind"] == "finding":
        took = f"after {record['seconds']:.1f} s, tried {record['tried']}"
        return f"{where}: {record['finder']} answers {record['answer']} {took}"
    if record["kind"] == "check":
        return f"{where}: {record['batch']} {'trains' if record['survived'] else 'fails'} ({record['seconds']:.1f} s)"
    return f"{where}: the largest batch that trains is {record['largest']}"


def markdown(records: list[Record]) -> str:
    runs = [r for r in records if r["kind"] == "run"]
    cases = list(dict.fromkeys((model, cap) for run in runs for cap in run["caps"] for model in run["models"]))
    finders = list(dict.fromkeys(finder for run in runs for finder in run["finders"]))
    lines = ["# Finding the largest batch", ""]
    lines += [f"On {run['device']}: {about(run)}." for run in runs]
    lines += ["", *summary(records, cases), "", *details(records, cases, finders)]
    return "\n".join(lines) + "\n"


def about(run: Record) -> str:
    hidden = ("kind", "device", "total_bytes", "models", "caps", "finders")
    return ", ".join(f"{key} {value}" for key, value in run.items() if key not in hidden)


def summary(records: list[Record], cases: list[Case]) -> list[str]:
    """MemoryMark against binary search and scan: a row for each model and cap."""
    head = "model|cap, GiB|largest|MemoryMark|probes|seconds|probes added up|binsearch, s|ratio|scan, s|ratio"
    rows = []
    for case in cases:
        ours, binsearch, scan = (finding(records, case, f) for f in (OURS, "lightning-binsearch", "scan"))
        row = [*case, largest(records, case), ours.get("answer"), tries(ours)]
        row += [seconds(ours), seconds(ours, "probes_added_up_seconds")]
        row += [seconds(binsearch), ratio(ours, binsearch), seconds(scan), ratio(ours, scan)]
        rows.append(row)
    return table(head, rows)


def details(records: list[Record], cases: list[Case], finders: list[str]) -> list[str]:
    """Every answer: a row for each model, cap and finder."""
    head = "model|cap, GiB|largest|finder|answer|trains|of the largest|sizes tried|seconds|MemoryMark's ÷ its seconds"
    rows = []
    for case in cases:
        true, ours = largest(records, case), finding(records, case, OURS)
        for name in finders:
            found = finding(records, case, name)
            answer = found.get("answer")
            share = f"{answer / true:.0%}" if answer and true else None
            row = [*case, true, name, answer, trains(records, case, answer), share]
            rows.append([*row, tries(found), seconds(found), ratio(ours, found)])
    return table(head, rows)


def table(head: str, rows: list[list[Any]]) -> list[str]:
    """What is not known stays empty."""
    names = head.split("|")
    lines = [names, ["---"] * len(names)] + [["" if cell is None else str(cell) for cell in row] for row in rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def of(records: list[Record], kind: str, case: Case) -> list[Record]:
    return [r for r in records if r["kind"] == kind and (r["model"], r["cap_gib"]) == case]


def finding(records: list[Record], case: Case, finder: str) -> Record:
    return next((r for r in of(records, "finding", case) if r["finder"] == finder), {})


def largest(records: list[Record], case: Case) -> int | None:
    """The last word: a later check knows more answers."""
    return next((r["largest"] for r in reversed(of(records, "truth", case))), None)


def trains(records: list[Record], case: Case, answer: int | None) -> str | None:
    checked = next((r for r in of(records, "check", case) if r["batch"] == answer), {})
    if "survived" not in checked:
        return "error" if "error" in checked else None
    return "yes" if checked["survived"] else "**no**"


def tries(found: Record) -> int | None:
    return len(found["tried"]) if "tried" in found else None


def seconds(found: Record, key: str = "seconds") -> str | None:
    if "error" in found:
        return "failed"
    return f"{found[key]:.1f}" if key in found else None


def ratio(ours: Record, other: Record) -> str | None:
    if "seconds" not in ours or "seconds" not in other:
        return None
    return f"{ours['seconds'] / other['seconds']:.2f}"


if __name__ == "__main__":
    print(markdown([json.loads(line) for path in sys.argv[1:] for line in Path(path).read_text().splitlines()]))
