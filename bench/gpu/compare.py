"""Compares ways to find the largest batch that trains, on one card in one run. README.md says how and why."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # looking for a GPU must not initialize it before a fork

import torch
import transformers

import accelerate_finder
import lightning_finder
import memorymark
import scan
import table
import truth
import workload as workloads
from finding import Finder, find
from process import Fresh, Result
from workload import GIB, Workload

OURS = "memorymark"

FINDERS: dict[str, Finder] = {
    "lightning-binsearch": lightning_finder.binsearch,
    "scan": scan.scan,
    "lightning-power": lightning_finder.power,
    "accelerate": accelerate_finder.find,
}

# MemoryMark is held against two of them. The others come after these are done
# for every model and cap, in case time runs out.
GROUPS = [[OURS, "lightning-binsearch", "scan"], ["lightning-power", "accelerate"]]


class TimeIsUp(Exception):
    """The run must end; what is not done is left out."""


class Run:
    """One run: what it may take, and what it found so far, a record for each line of the output."""

    def __init__(self, args: argparse.Namespace, machine: Result) -> None:
        self.binary: str = args.memorymark
        self.timeout: float = args.timeout
        self.parallel: int = args.parallel
        self.end: float = time.monotonic() + args.seconds
        self.total_gib: float = machine["total_bytes"] / GIB
        self.records: list[dict[str, Any]] = []
        self.known: dict[Workload, dict[int, bool]] = {}  # which batches survive
        self.output = (args.out / "finders.jsonl").open("w")
        self.write({"kind": "run", **machine, "models": args.models, "caps": args.caps, "finders": args.finders})

    def record(self, kind: str, workload: Workload, figures: Result) -> None:
        record = {"kind": kind, "model": workload.model, "cap_gib": workload.cap_gib, **figures}
        self.write(record)
        print(table.progress(record), flush=True)

    def write(self, record: dict[str, Any]) -> None:
        self.records.append(record)
        print(json.dumps(record), file=self.output, flush=True)

    def remaining(self) -> float:
        """Seconds that the next thing may take."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeIsUp
        return min(left, self.timeout)

    def find(self, workload: Workload, finder: str) -> None:
        """Runs a finder, alone on the card."""
        timeout = self.remaining()
        if finder == OURS:
            result = memorymark.find(self.binary, workload, timeout)
        else:
            result = Fresh(partial(find, workload, FINDERS[finder]), timeout).result()
        if "error" in result:
            self.remaining()  # one that was cut short did not fail
        self.record("finding", workload, {"finder": finder, **result})

    def check(self, workload: Workload) -> None:
        """Finds out which of the answers so far survive, and the largest batch that does."""
        findings = table.of(self.records, "finding", (workload.model, workload.cap_gib))
        answers = [found["answer"] for found in findings if found.get("answer")]
        largest = truth.largest(answers, lambda sizes: self.survive(workload, sizes))
        self.record("truth", workload, {"largest": largest})

    def survive(self, workload: Workload, sizes: list[int]) -> dict[int, bool]:
        """Which sizes survive, as far as is known, these ones included."""
        known = self.known.setdefault(workload, {})
        unknown = [size for size in sizes if size not in known]
        for result in truth.train_all(workload, unknown, self.room(workload), self.remaining()):
            if "error" in result:
                self.remaining()
            self.record("check", workload, result)
            known[result["batch"]] = result.get("survived", False)
        return known

    def room(self, workload: Workload) -> int:
        """How many capped processes the card takes, with a GiB each for what the cap does not count."""
        return max(1, min(self.parallel, int(self.total_gib / (workload.cap_gib + 1))))


def compare(run: Run, cases: list[Workload], wanted: list[str]) -> None:
    for group in GROUPS:
        chosen = [finder for finder in group if finder in wanted]
        for workload in cases if chosen else []:
            for finder in chosen:
                run.find(workload, finder)
            run.check(workload)


def look(device: str) -> Result:
    """What the device is, in this process, which must be a fresh one."""
    if device == "cpu":
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return {"device": platform.machine(), "total_bytes": total}
    card = torch.cuda.get_device_properties(0)
    return {"device": card.name, "total_bytes": card.total_memory, "cudnn": torch.backends.cudnn.version()}


def machine(args: argparse.Namespace) -> Result:
    """What it all runs on."""
    seen = Fresh(partial(look, args.device), 120).result()
    if "error" in seen:
        raise SystemExit(f"there is no device to run on:\n{seen['error']}")
    seen["date"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
    seen |= {"Python": platform.python_version(), "PyTorch": torch.__version__}
    seen |= {"transformers": transformers.__version__}
    seen |= {"Lightning": lightning_finder.VERSION, "Accelerate": accelerate_finder.VERSION}
    if OURS in args.finders:
        seen["MemoryMark"] = memorymark.version(args.memorymark)
    return seen


def warm_up(cases: list[Workload]) -> None:
    """Trains each model for a moment, so that no finder is the first to read the libraries from the disk."""
    for workload in {case.model: case for case in cases}.values():
        result = Fresh(partial(truth.train, workload, 2), 120).result()
        if not result.get("survived"):
            raise SystemExit(f"{workload.model} does not even train with a batch of 2: {result}")


def arguments() -> argparse.Namespace:
    finders = [finder for group in GROUPS for finder in group]
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--memorymark", default="build/memorymark", metavar="FILE", help="the program (%(default)s)")
    add("--models", default="bert,gpt2,resnet", type=names, help="ids of the catalog (%(default)s)")
    add("--caps", type=numbers, help="GiB that may be reserved (22.1,14.6,39.4; on the CPU 0.0625)")
    add("--finders", default=",".join(finders), type=names, help="(%(default)s)")
    add("--device", default="cuda", choices=["cuda", "cpu"], help="cpu: tiny models, to try it without a GPU")
    add("--out", default="build/bench-gpu", type=Path, metavar="FOLDER", help="for the results (%(default)s)")
    add("--seconds", default=520, type=float, help="for all of it; what is not done then is left out (%(default)s)")
    add("--timeout", default=120, type=float, help="seconds for one finder or check (%(default)s)")
    add("--parallel", default=4, type=int, help="checks at a time; finders run alone (%(default)s)")
    args = parser.parse_args()
    args.caps = args.caps or ([22.1, 14.6, 39.4] if args.device == "cuda" else [0.0625])
    if unknown := set(args.finders) - set(finders):
        parser.error(f"no such finder: {', '.join(sorted(unknown))}")
    if OURS in args.finders and not Path(args.memorymark).is_file():
        parser.error(f"there is no {args.memorymark}: make build makes it")
    return args


def names(text: str) -> list[str]:
    return text.split(",")


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def main() -> None:
    args = arguments()
    cases = workloads.load(args.models, args.caps, args.device)
    args.out.mkdir(parents=True, exist_ok=True)
    run = Run(args, machine(args))
    warm_up(cases)
    try:
        compare(run, cases, args.finders)
    except TimeIsUp:
        print(f"{args.seconds:.0f} seconds are over; the rest is left out")
    text = table.markdown(run.records)
    (args.out / "finders.md").write_text(text)
    print(f"\n{text}")


if __name__ == "__main__":
    main()
