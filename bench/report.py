"""Measures on this machine what MemoryMark claims, next to what people would use instead, and writes docs/benchmarks.md.

Needs no GPU and ten minutes of two cores. `make bench-report` runs it with the tests' Python, which has PyTorch and
transformers. What it measures: predictions against PyTorch's own tracker, on workloads whose peaks were measured on a real
GPU; reading snapshots against CPython's pickle; the API under load. It says on stderr what it does, and writes when all of
it is there: what stands between the marks was measured in one run. The rest of the file stays as it is.
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
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TRUTH = ROOT / "testdata" / "truth"
FILES = ("peaks.jsonl", "peaks-random.jsonl", "peaks-heldout.jsonl")
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


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def output(*command: str, **options: Any) -> str:
    """What a program prints; python3 is for it the Python that runs this."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "PATH": path}, **options).stdout


def measured() -> list[Case]:
    """The truth that both can be verified against: whole steps of transformers' models, in the order of the files."""
    cases = []
    for name in FILES:
        for line in (TRUTH / name).read_text().splitlines():
            case = json.loads(line)
            w = case["workload"] = {**DEFAULTS, **case["workload"]}
            whole = w["phase"] in ("train", "backward") and w["accumulate"] == 1
            if whole and w["config"]["model_type"] != "lm" and "architectures" in w["config"]:
                cases.append(case)
    return cases


def peak(case: Case) -> int:
    return max(case["measured"]["peak_allocated"])


def predict(program: str, cases: list[Case]) -> tuple[list[float], float]:
    """Predicted over measured peaks, and the seconds that each took, with the start of the process."""
    lines = "".join(json.dumps(case["workload"]) + "\n" for case in cases)
    began = time.perf_counter()
    out = output(program, "predict", "-f", "-", input=lines)
    seconds = (time.perf_counter() - began) / len(cases)
    ratios = []
    for case, line in zip(cases, out.splitlines(), strict=True):
        steps = json.loads(line)["steps"][: len(case["measured"]["peak_allocated"])]
        ratios.append(max(s["peak_allocated"] for s in steps) / peak(case))
    return ratios, seconds


def track(cases: list[Case]) -> list[dict[str, Any]]:
    """What the tracker answers to each, said as it comes."""
    answers = []
    with subprocess.Popen([sys.executable, str(ROOT / "bench" / "tracker.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tracker:
        for case in cases:
            tracker.stdin.write(json.dumps(case["workload"]) + "\n")
            tracker.stdin.flush()
            line = tracker.stdout.readline()
            if not line:
                sys.exit("bench/tracker.py ended before its last answer; what it said is above")
            answer = json.loads(line)
            found = f"{answer['peak'] / peak(case):.3f} of what was measured" if "peak" in answer else answer["error"]
            answers.append(answer)
            say(f"tracker {len(answers)}/{len(cases)}: {case['id']}: {found}, {answer['seconds']:.1f} s")
    return answers


def same_operators(w: dict[str, Any]) -> bool:
    """Whether a CPU runs the operators that a GPU does: sdpa has other kernels there, and autocast another list."""
    return (w["attention"] == "eager" or w["config"]["model_type"] == "resnet") and not w["precision"].startswith("amp")


def row(name: str, ratios: list[float], failed: int, seconds: str) -> str:
    if not ratios:
        return f"| {name} | 0 | {failed} | | | | | | |"
    errors = sorted(abs(r - 1) for r in ratios)
    cells = [
        name,
        str(len(ratios)),
        str(failed),
        str(sum(e == 0 for e in errors)),
        f"{statistics.median(errors):.2%}",
        f"{errors[min(int(len(errors) * 0.95), len(errors) - 1)]:.2%}",
        f"{errors[-1]:.2%}",
        str(sum(r < 1 for r in ratios)),
        seconds,
    ]
    return "| " + " | ".join(cells) + " |"


def compare(program: str, count: int) -> str:
    """The table of both, on all workloads that were chosen and on those whose operators are the same on a CPU."""
    truth = measured()
    every = max(len(truth) // count, 1)
    cases = truth[::every]
    say(f"predicting {len(cases)} of {len(truth)} workloads, then tracking them")
    ours, each = predict(program, cases)
    theirs = track(cases)
    rows = []
    for which, chosen in (("all", list(range(len(cases)))), ("same operators", [i for i, c in enumerate(cases) if same_operators(c["workload"])])):
        done = [i for i in chosen if "peak" in theirs[i]]
        seconds = f"{statistics.median(theirs[i]['seconds'] for i in done):.1f}" if done else ""
        rows.append(row(f"{which}: MemoryMark", [ours[i] for i in chosen], 0, f"{each:.3f}"))
        rows.append(row(f"{which}: PyTorch's `MemTracker`", [theirs[i]["peak"] / peak(cases[i]) for i in done], len(chosen) - len(done), seconds))
    return "\n".join([COMPARED.format(every=every, truth=len(truth), files=", ".join(f"`{f}`" for f in FILES)), *rows])


COMPARED = """Of the {truth} workloads of [the truth](../testdata/truth/README.md) ({files}, in that order)
that are whole steps of transformers models without accumulation, every {every}th was taken, starting with the first. The table
compares the largest `peak_allocated` of its steps on an H200 with the answer of each tool without a GPU. The tracker
([`bench/tracker.py`](../bench/tracker.py)) sees tensors. It does not see the workspaces of kernels, or what the allocator rounds
and reserves. Without a GPU it runs on fake CPU tensors, with dropout as on a GPU. But `sdpa` uses other kernels on a CPU, and
autocast has another list of operators; *same operators* are the workloads with neither. The tracker's seconds are the median, without
the import of PyTorch. MemoryMark's are those of the whole run, process start included, divided by the number of workloads.

| | predicted | failed | exact | median off | 95 % within | worst | too low | seconds each |
|---|--:|--:|--:|--:|--:|--:|--:|--:|"""


def snapshots() -> str:
    """What the benchmark of reading prints: a title for each file, then a line for each reader."""
    say("reading snapshots of 12 and 300 MB, nine and three times with each reader")
    out = output("go", "test", "-run", "^$", "-bench", "AgainstPython", "-benchtime", "1x", "./internal/snapshot", cwd=ROOT)
    rows = ["| file | reader | seconds | peak memory | times as slow as MemoryMark |", "|---|---|--:|--:|--:|"]
    file = ""
    for line in out.splitlines():
        if ".pickle, " in line:
            file = line.split(", medians")[0]
        elif found := re.match(r"  (.+?) +([\d.]+) s +([\d.]+) MB peak +([\d.]+) times", line):
            name, seconds, memory, times = found.groups()
            rows.append(f"| {file} | {name} | {seconds} | {memory} MB | {times} |")
    if len(rows) != 2 + 6:
        sys.exit(f"the benchmark of reading printed something else than two files and three readers:\n{out}")
    return "\n".join([*rows, "", info()])


def info() -> str:
    """How long snapshot info takes compared with pickle.load, for files of two sizes."""
    rows = ["| `memorymark snapshot info` | seconds | peak memory | times as fast as Python |", "|---|--:|--:|--:|"]
    for megabytes in (125, 1012):
        say(f"describing a snapshot of about {megabytes} MB three times, beside pickle.load")
        flags = ("-run", "^$", "-bench", "InfoAgainstPython", "-benchtime", "1x", "-info-megabytes", str(megabytes))
        figures = measures(output("go", "test", "./internal/cli", *flags, cwd=ROOT))
        rows.append(f"| about {megabytes} MB | {figures['s']} | {figures['MB']} MB | {figures['times-faster']} |")
    return "\n".join(rows)


def measures(out: str) -> dict[str, str]:
    """What a benchmark measured, by unit."""
    fields = next(line for line in out.splitlines() if line.startswith("Benchmark")).split()[2:]
    return dict(zip(fields[1::2], fields[::2]))


# The benchmarks of the server, how often each runs, and what its units mean.
SERVING = {
    "ServeStart": ("5x", {"MB": "memory of an idle server, MB", "cpu-ms": "CPU time until it answers, ms"}),
    "ServeDistinct": ("300x", {"predictions/s": "new predictions a second, on two connections", "cpu-ms/prediction": "CPU time of one, ms"}),
    "ServePredictions": (
        "1x",
        {
            "answers/s": "answers a second at 1,000 requests a second for ten seconds, one in 20 new",
            "failed": "failed answers",
            "p50-ms": "median latency from the scheduled time, ms",
            "p99-ms": "99th percentile, ms",
            "max-ms": "slowest, ms",
            "cores": "cores used by the server",
            "MB-before": "memory before, MB",
            "MB-after": "memory after, MB",
        },
    ),
}


def serving() -> str:
    rows = ["| | |", "|---|--:|"]
    for name, (times, meanings) in SERVING.items():
        say(f"API: {name}, {times}")
        out = output("go", "test", "-run", "^$", "-bench", f"^Benchmark{name}$", "-benchtime", times, "./internal/cli", cwd=ROOT)
        figures = measures(out)
        rows += [f"| {meaning} | {figures[unit]} |" for unit, meaning in meanings.items()]
    return "\n".join(rows)


def machine() -> str:
    model = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), platform.processor())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{os.cpu_count()} cores of an {model}, {memory:.0f} GiB, {platform.system()}; the load was {os.getloadavg()[0]:.1f} at the start"


def document(program: str, count: int) -> str:
    version = output(program, "version").strip()
    versions = f"Python {platform.python_version()}, PyTorch {metadata.version('torch')}, transformers {metadata.version('transformers')}"
    return "\n".join(
        [
            f"{datetime.date.today()}, {version}, {versions}.",
            f"{machine()}.",
            "",
            "## Predictions, compared with PyTorch's tracker",
            "",
            compare(program, count),
            "",
            "## Reading snapshots, compared with CPython's pickle",
            "",
            "Medians of nine and of three runs, each in a new process. The second table measures the whole command, which also",
            "replays the recording, and includes process start.",
            "",
            snapshots(),
            "",
            "## The API under load",
            "",
            "The server and its client ran on the same machine.",
            "",
            serving(),
            "",
            "",
        ]
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--memorymark", default=str(ROOT / "build" / "memorymark"), help="the program")
    arguments.add_argument("--count", type=int, default=24, help="about how many workloads to compare on")
    arguments.add_argument("--document", type=Path, default=DOCUMENT, help="the file to write, which has the marks")
    given = arguments.parse_args()
    before, rest = given.document.read_text().split(BEGIN)
    _, after = rest.split(END)
    given.document.write_text(before + BEGIN + "\n" + document(given.memorymark, given.count) + END + after)
    say(f"wrote {given.document}")


if __name__ == "__main__":
    main()
