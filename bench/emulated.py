"""Three ways to know a training step's memory without a GPU, on models as people write them, in one run.

    python bench/emulated.py --memorymark build/memorymark [--fakegpu CHECKOUT] [--every 4] [--precision fp32]

Each workload of testdata/truth/own runs in a process of its own for each tool: MemoryMark's emulated engine (`memorymark
run`), FakeGPU's static estimator (`fakegpu.estimate_module_memory`, from a checkout of github.com/FanBB2333/FakeGPU), and
PyTorch's MemTracker. What they say is held to the third step's peak on an H200. Prints a table in Markdown; what failed and
why goes to stderr. Needs PyTorch's CUDA build, transformers, torchvision, timm and peft, and half a minute a workload.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TRUTH = Path(__file__).parents[1] / "testdata" / "truth" / "own"
AUTOCAST = {"amp-bf16": "bfloat16", "amp-fp16": "float16"}

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


TOOLS = {"MemoryMark, emulated": emulated, "FakeGPU's static estimator": estimated, "PyTorch's `MemTracker`": tracked}


# --- the comparison


def ask(tool: str, case: Case, options: argparse.Namespace) -> tuple[int | None, float]:
    """The peak that a tool says, and the seconds of the whole process."""
    command = [sys.executable, __file__, "--one", tool, case["id"]]
    env = {**os.environ, "PYTHONWARNINGS": "ignore", "HF_HUB_OFFLINE": "1"}
    if tool.startswith("MemoryMark"):
        command = [options.memorymark, "run", "--gpu", "h200", "--", *command]
    if tool.startswith("FakeGPU"):
        env["PYTHONPATH"] = options.fakegpu
    began = time.perf_counter()
    process = subprocess.run(command, env=env, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    last = (process.stdout.strip().splitlines() or [""])[-1]
    if process.returncode or not last.isdigit():
        print(f"{tool}: {case['id']}: {(process.stderr.strip().splitlines() or ['no answer'])[-1][:200]}", file=sys.stderr)
        return None, seconds
    print(f"{tool}: {case['id']}: {int(last) / peak(case) - 1:+.3%}, {seconds:.1f} s", file=sys.stderr)
    return int(last), seconds


def peak(case: Case) -> int:
    return case["measured"]["peak_allocated"][-1]


def row(tool: str, cases: list[Case], options: argparse.Namespace) -> str:
    answers = [(case, *ask(tool, case, options)) for case in cases]
    off = [answer / peak(case) - 1 for case, answer, _ in answers if answer is not None]
    if not off:
        return f"| {tool} | 0 of {len(cases)} | | | | | |"
    return (
        f"| {tool} | {len(off)} of {len(cases)} | {sum(x == 0 for x in off)} | {statistics.median(map(abs, off)):.2%} | {max(map(abs, off)):.2%} "
        f"| {sum(x < 0 for x in off)} | {statistics.median(seconds for *_, seconds in answers):.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memorymark", default="build/memorymark")
    parser.add_argument("--fakegpu", help="a checkout of FakeGPU; without it FakeGPU is left out")
    parser.add_argument("--every", type=int, default=4, help="take each one so many further on")
    parser.add_argument("--precision", default="fp32", help="fp32 is the only one that FakeGPU's estimator has")
    parser.add_argument("--one", nargs=2, metavar=("TOOL", "ID"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    cases = [json.loads(line) for line in (TRUTH / "peaks.jsonl").read_text().splitlines()]
    if options.one:
        tool, name = options.one
        print(TOOLS[tool](next(case for case in cases if case["id"] == name)))
        return
    cases = [case for case in cases if case["precision"] == options.precision][:: options.every]
    rows = [row(tool, cases, options) for tool in TOOLS if options.fakegpu or not tool.startswith("FakeGPU")]
    print("| | answered | exact | median off | worst | too low | seconds each |\n|---|--:|--:|--:|--:|--:|--:|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
