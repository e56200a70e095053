"""Four ways to know a training step's memory without a GPU, on models as people write them, in one run.

    python bench/emulated.py --memorymark build/memorymark [--fakegpu CHECKOUT [--runtime]] [--every 4] [--precision fp32]

Each workload of testdata/truth/own runs in a process of its own for each tool: MemoryMark's emulated engine (`memorymark
run`), FakeGPU's static estimator (`fakegpu.estimate_module_memory`, from a checkout of github.com/FanBB2333/FakeGPU), its fake
CUDA runtime if that is asked for, which computes on the CPU and counts tensors, and PyTorch's MemTracker. What they say is held
to the third step's peak on an H200. Prints two tables in Markdown; what failed and why goes to stderr. Needs PyTorch's CUDA
build, transformers, torchvision, timm and peft, and half a minute a workload; minutes with the runtime.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TRUTH = Path(__file__).parents[1] / "testdata" / "truth" / "own"
AUTOCAST = {"amp-bf16": "bfloat16", "amp-fp16": "float16"}

PEAK = re.compile(r"^peak: (\d+)$", re.MULTILINE)  # FakeGPU prints a report of its own after it

Case = dict[str, Any]


# --- the tools, each in its own process


def subject(case: Case) -> tuple[Any, Any, Any, Any]:
    """A model, its batch, its optimizer and its loss, as own/models.py gives them and as they were measured."""
    sys.path.insert(0, str(TRUTH))
    import models
    import torch

    torch.manual_seed(0)
    made = getattr(models, case["function"])()
    if not isinstance(made, dict):
        made = dict(zip(("model", "batch", "optimizer", "loss"), made))
    model, batch, loss = made["model"], made["batch"], made.get("loss")
    make = made.get("optimizer") or (lambda p: torch.optim.AdamW([x for x in p if x.requires_grad], lr=1e-5, foreach=True))
    return model.train(), batch(case["batch"]), make, loss or (lambda out, _: out["loss"] if isinstance(out, dict) else out.loss)


def call(model: Any, batch: Any) -> Any:
    return model(**batch) if isinstance(batch, dict) else model(*batch) if isinstance(batch, tuple) else model(batch)


def steps(case: Case, model: Any, batch: Any, optimizer: Any, loss_of: Any, device: str, reset: Any) -> None:
    import torch

    kind = AUTOCAST.get(case["precision"])
    for _ in range(3):
        reset()
        with torch.autocast(device, dtype=getattr(torch, kind)) if kind else contextlib.nullcontext():
            out = call(model, batch)
            loss = loss_of(out, batch)
        del out
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def emulated(case: Case) -> int:
    """What runs on the card that is not there: an ordinary program."""
    import torch
    from torch.utils._pytree import tree_map_only

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    model, batch, make, loss = subject(case)
    model.to("cuda")
    optimizer = make(model.parameters())
    batch = tree_map_only(torch.Tensor, lambda x: x.to("cuda"), batch)
    steps(case, model, batch, optimizer, loss, "cuda", torch.cuda.reset_peak_memory_stats)
    return torch.cuda.max_memory_allocated()


def tracked(case: Case) -> int:
    """MemTracker on fake CPU tensors: without a GPU it runs no backward of fake CUDA ones."""
    import tracker as stand_ins  # noqa: F401  for dropout and attention, to keep what they keep on a GPU
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker

    with FakeTensorMode(allow_non_fake_inputs=True):
        model, batch, make, loss = subject(case)
        optimizer = make(model.parameters())
        tracker = MemTracker()
        tracker.track_external(model, optimizer, *(batch.values() if isinstance(batch, dict) else batch))
        with tracker:
            steps(case, model, batch, optimizer, loss, "cpu", tracker.reset_mod_stats)
        return max(device["Total"] for device in tracker.get_tracker_snapshot("peak").values())


def estimated(case: Case) -> int:
    from fakegpu import estimate_module_memory

    model, batch, _, loss = subject(case)
    args, kwargs = ((), batch) if isinstance(batch, dict) else (batch if isinstance(batch, tuple) else (batch,), {})
    report = estimate_module_memory(
        model, args, example_kwargs=kwargs, loss_fn=lambda out: loss(out, batch), retain_forward_outputs=False, target_device="cuda"
    )
    return report["estimated_peak_bytes"]


def faked(case: Case) -> int:
    """The program that runs emulated, on FakeGPU's runtime."""
    import fakegpu

    fakegpu.init(runtime="fakecuda", profile="h200", device_count=1)
    return emulated(case)


TOOLS = {
    "MemoryMark, emulated": emulated,
    "FakeGPU's static estimator": estimated,
    "FakeGPU's fake CUDA runtime": faked,
    "PyTorch's `MemTracker`": tracked,
}


# --- the comparison


@dataclasses.dataclass
class Answer:
    """What a tool says of a case."""

    case: Case
    peak: int | None
    seconds: float  # of the whole process

    @property
    def off(self) -> float | None:
        return None if self.peak is None else self.peak / self.case["measured"]["peak_allocated"][-1] - 1


def ask(tool: str, case: Case, options: argparse.Namespace) -> Answer:
    command = [sys.executable, __file__, "--one", tool, case["id"]]
    env = {**os.environ, "PYTHONWARNINGS": "ignore", "HF_HUB_OFFLINE": "1"}
    if tool.startswith("MemoryMark"):
        command = [options.memorymark, "run", "--gpu", "h200", "--", *command]
    if tool.startswith("FakeGPU"):
        env["PYTHONPATH"] = options.fakegpu
    began = time.perf_counter()
    process = subprocess.run(command, env=env, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    said = PEAK.findall(process.stdout)
    answer = Answer(case, int(said[-1]) if said and not process.returncode else None, seconds)
    why = f"{answer.off:+.3%}" if answer.off is not None else (process.stderr.strip().splitlines() or ["no answer"])[-1][:200]
    print(f"{tool}: {case['id']}: {why}, {seconds:.1f} s", file=sys.stderr, flush=True)
    return answer


def summary(tool: str, answers: list[Answer]) -> str:
    off = [a.off for a in answers if a.off is not None]
    if not off:
        return f"| {tool} | 0 of {len(answers)} | | | | | |"
    return (
        f"| {tool} | {len(off)} of {len(answers)} | {sum(x == 0 for x in off)} | {statistics.median(map(abs, off)):.2%} | {max(map(abs, off)):.2%} "
        f"| {sum(x < 0 for x in off)} | {statistics.median(a.seconds for a in answers):.1f} |"
    )


def report(answers: dict[str, list[Answer]]) -> None:
    print("| | answered | exact | median off | worst | too low | seconds each |\n|---|--:|--:|--:|--:|--:|--:|")
    for tool, given in answers.items():
        print(summary(tool, given))
    print(f"\n| | {' | '.join(answers)} |\n|---|{'--:|' * len(answers)}")
    for given in zip(*answers.values()):
        cells = ("none" if a.off is None else "0" if a.off == 0 else f"{a.off:+.2%}" for a in given)
        print(f"| `{given[0].case['id']}` | {' | '.join(cells)} |")


def asked(tool: str, options: argparse.Namespace) -> bool:
    return not tool.startswith("FakeGPU") or bool(options.fakegpu) and (TOOLS[tool] is not faked or options.runtime)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memorymark", default="build/memorymark")
    parser.add_argument("--fakegpu", help="a checkout of FakeGPU; without it FakeGPU is left out")
    parser.add_argument("--runtime", action="store_true", help="ask FakeGPU's fake CUDA runtime, too")
    parser.add_argument("--every", type=int, default=4, help="take each one so many further on")
    parser.add_argument("--precision", default="fp32", help="fp32 is the only one that FakeGPU's estimator has")
    parser.add_argument("--one", nargs=2, metavar=("TOOL", "ID"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    cases = [json.loads(line) for line in (TRUTH / "peaks.jsonl").read_text().splitlines()]
    if options.one:
        tool, name = options.one
        print("peak:", TOOLS[tool](next(case for case in cases if case["id"] == name)))
        return
    cases = [case for case in cases if case["precision"] == options.precision][:: options.every]
    answers: dict[str, list[Answer]] = {tool: [] for tool in TOOLS if asked(tool, options)}
    for case in cases:  # all tools on one after the other, so that the machine's load is the same for all
        for tool, given in answers.items():
            given.append(ask(tool, case, options))
    report(answers)


if __name__ == "__main__":
    main()
