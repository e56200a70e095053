"""Measures on this machine what MemoryMark claims, beside what people would use instead, and writes docs/benchmarks.md.

Needs no GPU. `make bench-report` runs it with the tests' Python, which has PyTorch and transformers. What it measures:
predictions beside PyTorch's own tracker, on workloads whose peaks were measured on a real GPU; reading snapshots beside
CPython's pickle; the API under load. Part of the file, "On a GPU", is not its business and stays as it is.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TRUTH = ROOT / "testdata" / "truth"
DOCUMENT = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- Written by make bench-report -->\n", "<!-- end of it -->\n"

# What a line of the truth does not say.
DEFAULTS = {
    "sequence": 128,
    "image": 224,
    "precision": "fp32",
    "optimizer": "adamw",
    "phase": "train",
    "loss": "labels",
    "attention": "sdpa",
    "attention_mask": "none",
    "checkpointing": False,
    "mode": "train",
    "accumulate": 1,
    "clip_grad_norm": False,
}

Case = dict[str, Any]


def measured(count: int) -> list[Case]:
    """Workloads that both can do, spread evenly over the truth: whole steps of transformers' models."""
    cases = []
    for name in ("peaks.jsonl", "peaks-random.jsonl", "peaks-heldout.jsonl"):
        for line in (TRUTH / name).read_text().splitlines():
            case = json.loads(line)
            w = case["workload"] = {**DEFAULTS, **case["workload"]}
            whole = w["phase"] in ("train", "backward") and w["accumulate"] == 1
            if whole and w["config"]["model_type"] != "lm" and "architectures" in w["config"]:
                cases.append(case)
    every = max(len(cases) // count, 1)
    return cases[::every][:count]


def predictions(program: str, cases: list[Case]) -> tuple[list[float], float]:
    """Predicted over measured peaks, and the seconds that each took, with the start of the process."""
    lines = "".join(json.dumps(case["workload"]) + "\n" for case in cases)
    began = time.perf_counter()
    out = subprocess.run([program, "predict", "-f", "-"], input=lines, capture_output=True, text=True, check=True).stdout
    seconds = (time.perf_counter() - began) / len(cases)
    ratios = []
    for case, line in zip(cases, out.splitlines()):
        steps = json.loads(line)["steps"][: len(case["measured"]["peak_allocated"])]
        ratios.append(max(s["peak_allocated"] for s in steps) / peak(case))
    return ratios, seconds


def peak(case: Case) -> int:
    return max(case["measured"]["peak_allocated"])


def tracked(cases: list[Case]) -> tuple[list[float], float, int]:
    """The tracker's over measured peaks, the median seconds of one, without imports, and how many it could not do."""
    lines = "".join(json.dumps({"id": str(i), "workload": case["workload"]}) + "\n" for i, case in enumerate(cases))
    out = subprocess.run([sys.executable, str(ROOT / "bench" / "tracker.py")], input=lines, capture_output=True, text=True, check=True).stdout
    answers = [json.loads(line) for line in out.splitlines()]
    for a in answers:
        if "error" in a:
            print(f"tracker: {cases[int(a['id'])]['id']}: {a['error']}", file=sys.stderr)
    done = [a for a in answers if "peak" in a]
    ratios = [a["peak"] / peak(cases[int(a["id"])]) for a in done]
    return ratios, statistics.median(a["seconds"] for a in done), len(answers) - len(done)


def row(name: str, ratios: list[float], seconds: str, failed: int) -> str:
    errors = sorted(abs(r - 1) for r in ratios)
    percentile = errors[min(int(len(errors) * 0.95), len(errors) - 1)]
    cells = [
        name,
        str(len(ratios)),
        str(failed),
        str(sum(e == 0 for e in errors)),
        f"{statistics.median(errors):.2%}",
        f"{percentile:.2%}",
        f"{errors[-1]:.2%}",
        str(sum(r < 1 for r in ratios)),
        seconds,
    ]
    return "| " + " | ".join(cells) + " |"


def compare(program: str, count: int) -> str:
    cases = measured(count)
    ours, each = predictions(program, cases)
    theirs, median, failed = tracked(cases)
    return "\n".join(
        [
            f"{len(cases)} workloads of [the truth](../testdata/truth/README.md), taken evenly: the largest `peak_allocated` of their",
            "steps against what each says without a GPU. The tracker knows tensors, not workspaces nor what the allocator",
            "rounds and reserves; it runs here on fake CPU tensors ([`bench/tracker.py`](../bench/tracker.py)). Its seconds are",
            "without importing PyTorch; MemoryMark's are with starting the process.",
            "",
            "| | predicted | failed | exact | median off | 95 % within | worst | too low | seconds each |",
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
            row("MemoryMark", ours, f"{each:.3f}", 0),
            row("PyTorch's `MemTracker`", theirs, f"{median:.1f}", failed),
        ]
    )


def go_bench(package: str, pattern: str, *flags: str) -> str:
    """What go test -bench prints, one row for each benchmark."""
    command = ["go", "test", "-run", "^$", "-bench", pattern, "-benchtime", "1x", *flags, package]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    rows = ["| benchmark | figures |", "|---|---|"]
    for line in out.splitlines():
        if line.startswith("Benchmark"):
            name, _, *fields = line.split()
            pairs = [f"{value} {unit}" for value, unit in zip(fields[::2], fields[1::2]) if unit != "ns/op"]
            rows.append(f"| `{name.removeprefix('Benchmark')}` | {', '.join(pairs)} |")
    return "\n".join(rows)


def snapshots() -> str:
    """What the benchmark of reading prints: a title for each file, then a line for each reader."""
    command = ["go", "test", "-run", "^$", "-bench", "AgainstPython", "-benchtime", "1x", "./internal/snapshot"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    rows = ["| file | reader | seconds | peak memory | times MemoryMark's time |", "|---|---|--:|--:|--:|"]
    file = ""
    for line in out.splitlines():
        if ".pickle, " in line:
            file = line.split(", medians")[0]
        elif found := re.match(r"  (.+?) +([\d.]+) s +([\d.]+) MB peak +([\d.]+) times", line):
            name, seconds, memory, times = found.groups()
            rows.append(f"| {file} | {name} | {seconds} | {memory} MB | {times} |")
    return "\n".join(rows)


def machine() -> str:
    model = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), platform.processor())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    load = os.getloadavg()[1]
    return f"{os.cpu_count()} cores of an {model}, {memory:.0f} GiB, {platform.system()}; other programs' load was {load:.0f}"


def document(program: str, count: int) -> str:
    version = subprocess.run([program, "version"], capture_output=True, text=True, check=True).stdout.strip()
    where = machine()
    return "\n".join(
        [
            f"{datetime.date.today()}, {version}, Python {platform.python_version()}. {where}.",
            "",
            "## Predicting, beside PyTorch's tracker",
            "",
            compare(program, count),
            "",
            "## Reading snapshots, beside CPython's pickle",
            "",
            snapshots(),
            "",
            "## The API under load",
            "",
            "A server and its client on this machine: starting, predictions that are all different, and 1,000 requests a second",
            "of a few workloads for ten seconds.",
            "",
            go_bench("./internal/cli", "ServeStart|ServeDistinct|ServePredictions"),
            "",
        ]
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--memorymark", default=str(ROOT / "build" / "memorymark"), help="the program")
    arguments.add_argument("--count", type=int, default=24, help="workloads to compare on")
    given = arguments.parse_args()
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    DOCUMENT.write_text(before + BEGIN + "\n" + document(given.memorymark, given.count) + END + after)


if __name__ == "__main__":
    main()
