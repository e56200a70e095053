"""What one rank of a job on many GPUs takes, as six tools say it without a GPU, in one run.

    python bench/gpus.py --memorymark build/memorymark [--every 4] [--kind fsdp] [--limit 300]

Holds what each says of the ranks of testdata/truth/gpus to the largest peak of their three steps on an H200:

* MemoryMark, predicted: `memorymark predict -f`.
* MemoryMark, emulated: the measured program (internal/predict/testdata/ranks/record.py has it in functions) under `memorymark run`.
* PyTorch's trackers (torch.distributed._tools: FSDPMemTracker where there is FSDP, and MemTracker), on fake tensors. They run on
  an emulated card, because FSDP asks for CUDA; the card counts nothing for them.
* DeepSpeed's estimate_zero3_model_states_mem_needs, for what is sharded: DeepSpeed's own function. It needs no build: its source
  distribution and hjson, py-cpuinfo, msgpack and einops on PYTHONPATH are enough.
* Accelerate's estimate-memory: its own functions on the model; it knows neither batches nor several GPUs.
* The formulas of EleutherAI's calc_transformer_mem.py (github.com/EleutherAI/cookbook), with its defaults where a job says nothing.

Prints a table in Markdown; what failed and why goes to stderr. Needs PyTorch's CUDA build, transformers and Accelerate, and some ten
seconds a rank on an idle core.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).parents[1]
TRUTH = ROOT / "testdata" / "truth" / "gpus" / "peaks.jsonl"
PROGRAM = ROOT / "internal" / "predict" / "testdata" / "ranks"

Case = dict[str, Any]


def cases(every: int, kind: str) -> list[Case]:
    """The ranks that were measured, with parallel as a key of the workload."""
    out = []
    for line in TRUTH.read_text().splitlines():
        c = json.loads(line)
        c["workload"]["parallel"] = c.pop("parallel")
        out.append(c)
    return [c for c in out if kind in c["workload"]["parallel"]["kind"]][::every]


# --- formulas


def built(w: Case, device: str = "meta") -> tuple[Any, Any]:
    import torch
    import transformers

    config = dict(w["config"])
    cls = getattr(transformers, config.pop("architectures")[0])
    cfg = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    torch.set_default_dtype(torch.bfloat16 if w["precision"] == "bf16" else torch.float32)
    with torch.device(device):
        model = cls(cfg)
    torch.set_default_dtype(torch.float32)
    return model, cfg


def deepspeed(w: Case) -> int:
    p = w["parallel"]
    if p["kind"] not in ("fsdp", "hsdp"):
        raise ValueError("it is for parameters that are sharded")
    os.environ.setdefault("DS_ACCELERATOR", "cpu")  # it looks for a GPU when it is imported
    from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs

    model, _ = built(w)
    total = sum(x.numel() for x in model.parameters())
    largest = max(sum(x.numel() for x in m.parameters(recurse=False)) for m in model.modules())
    sharing, offload = p.get("shard", p["gpus"]), p.get("offload", False)
    on_machine = min(sharing, 8)
    return estimate_zero3_model_states_mem_needs(total, largest, on_machine, sharing // on_machine, offload, offload)[1]


def accelerate(w: Case) -> int:
    from accelerate.commands.estimate import estimate_training_usage
    from accelerate.utils import calculate_maximum_sizes

    model, _ = built(w)
    total, _ = calculate_maximum_sizes(model.float())
    half = w["precision"] in ("amp-bf16", "bf16") or w["parallel"].get("mixed_precision")
    return int(max(estimate_training_usage(total, "bfloat16" if half else "float32").values()))


def eleuther(w: Case) -> int:
    """Its stages of ZeRO stand for DDP (0), ZeRO-1 (1) and FSDP (3)."""
    _, cfg = built(w)
    p, n = w["parallel"], w["parallel"]["gpus"]
    tensor = p.get("tensor", n if p["kind"] == "tp" else 1)
    stage = {"ddp": 0, "tp": 0, "zero1": 1}.get(p["kind"], 3)
    sharing = p.get("shard", n)
    hidden, layers, heads, length = cfg.hidden_size, cfg.num_hidden_layers, cfg.num_attention_heads, w["sequence"]
    wide = getattr(cfg, "intermediate_size", None) or 4 * hidden
    parameters = 2 * cfg.vocab_size * hidden + hidden * length + 8 * hidden * layers + 2 * hidden + 4 * layers * hidden**2 + 2 * layers * hidden * wide
    low = 2 if w["precision"] in ("amp-bf16", "bf16") or p.get("mixed_precision") else 4
    weights = parameters * low / tensor / (sharing if stage == 3 else 1)
    gradients = parameters * 4 / (sharing if stage >= 2 else 1)
    optimizer = parameters * 12 / (sharing if stage >= 1 else 1)
    buffers = (5e8 * low if stage >= 1 else 0) + (1e9 * low if stage == 3 else 0)
    scores = 0 if w.get("checkpointing") else 5 * heads * length / hidden
    activations = length * w["batch"] * hidden * layers * (34 + scores)
    return int(weights + gradients + optimizer + buffers + activations)


# --- programs


def emulated(c: Case) -> int:
    """An ordinary program, which runs on the card that is not there."""
    import record
    import torch

    record.record = lambda _: None
    peaks = []
    for _ in record.steps(c):
        peaks.append(torch.cuda.max_memory_allocated())
        torch.cuda.reset_peak_memory_stats()
    return max(peaks)


def tracked(c: Case) -> int:
    """PyTorch's trackers, on fake tensors: two steps, as in their documentation."""
    import record
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
    from torch.distributed._tools.mem_tracker import MemTracker

    w = c["workload"]
    p = w["parallel"]
    record.STEPS, record.materialize = 2, lambda *_: None
    record.CPUOffloadPolicy = functools.partial(record.CPUOffloadPolicy, pin_memory=False)  # fake tensors cannot be pinned
    record.join({**p, "kind": "fake"}, 0)
    fake = FakeTensorMode()
    with fake:
        model, cfg = built(w, "cuda")
    record.checkpointed(w, model)
    wrapped = record.distribute(p, model.train())  # a mesh reads its ranks, so they cannot be fake
    parameters = list(model.parameters())
    with fake:
        optimizer, batch = record.optimizer(w, model, parameters), record.batch(w, cfg)
        if p["kind"] in ("fsdp", "hsdp", "fsdp+tp"):
            tracker = FSDPMemTracker(model, optimizer)
            tracker.track_inputs(tuple(batch.values()))
        else:
            tracker = MemTracker()
            tracker.track_external(model, optimizer, *batch.values())
        with tracker:
            for _ in record.train(w, wrapped, batch, parameters, optimizer):
                tracker.reset_mod_stats()
        return max(kinds["Total"] for kinds in named(tracker.get_tracker_snapshot("peak")))


def named(snapshot: dict[Any, dict[Any, int]]) -> list[dict[str, int]]:
    return [{str(getattr(k, "value", k)): v for k, v in kinds.items()} for device, kinds in snapshot.items() if device.type == "cuda"]


PROGRAMS: dict[str, Callable[[Case], int]] = {"emulated": emulated, "tracked": tracked}
FORMULAS: dict[str, Callable[[Case], int]] = {"deepspeed": deepspeed, "accelerate": accelerate, "eleuther": eleuther}
NAMES = {
    "predicted": "MemoryMark, predicted",
    "emulated": "MemoryMark, emulated",
    "tracked": "PyTorch's `FSDPMemTracker` and `MemTracker`",
    "deepspeed": "DeepSpeed's `estimate_zero3_model_states_mem_needs`",
    "accelerate": "Accelerate's `estimate-memory`",
    "eleuther": "EleutherAI's calculator",
}


def inside(tool: str, limit: int) -> None:
    """Runs a tool on cases from stdin, each in a forked child, and prints a line for each."""
    sys.path.insert(0, str(PROGRAM))
    import record  # noqa: F401  # with PyTorch, which takes longer to import than most ranks take to run

    if tool == "tracked":
        import torch.distributed._tools  # noqa: F401
    for line in sys.stdin:
        c, began = json.loads(line), time.time()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                with contextlib.redirect_stdout(sys.stderr):
                    said: Case = {"bytes": PROGRAMS[tool](c)}
            except BaseException as e:
                said = {"error": f"{type(e).__name__}: {e}"[:200]}
            os.write(writer, json.dumps(said).encode())
            os._exit(0)
        os.close(writer)
        if select.select([reader], [], [], limit)[0]:
            said = json.loads(os.fdopen(reader).read() or '{"error": "died"}')
        else:
            said = {"error": f"no answer within {limit} s"}
            os.kill(child, signal.SIGKILL)
        os.wait()
        print(json.dumps({"id": c["id"], "seconds": time.time() - began, **said}), flush=True)


def ask(o: argparse.Namespace, tool: str, todo: list[Case]) -> dict[str, Case]:
    """What a tool says of each rank."""
    out: dict[str, Case] = {}
    if tool in FORMULAS:
        for c in todo:
            began = time.time()
            try:
                out[c["id"]] = {"bytes": FORMULAS[tool](c["workload"]), "seconds": time.time() - began}
            except (ImportError, ValueError) as e:
                out[c["id"]] = {"error": str(e)}
        return out
    lines = "".join(json.dumps({"id": c["id"], "workload": c["workload"]}) + "\n" for c in todo)
    if tool == "predicted":
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
            f.writelines(json.dumps({"id": c["id"], "gpu": "h200", **c["workload"]}) + "\n" for c in todo)
            f.flush()
            began = time.time()
            done = subprocess.run([o.memorymark, "predict", "-f", f.name, "--json"], capture_output=True, text=True)
        for line in done.stdout.splitlines():
            said = json.loads(line)
            out[said["id"]] = {"bytes": max(s["peak_allocated"] for s in said["steps"]), "seconds": (time.time() - began) / len(todo)}
        return out
    command = [o.memorymark, "run", "--gpu", "h200", "--gpus", "8", "--", sys.executable, __file__, "--inside", tool, "--limit", str(o.limit)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    for line in done.stdout.splitlines():
        said = json.loads(line)
        out[said["id"]] = said
    return out


def row(name: str, todo: list[Case], said: dict[str, Case]) -> str:
    off, seconds = [], []
    for c in todo:
        answer = said.get(c["id"], {"error": "no answer"})
        if "bytes" not in answer:
            print(f"{name}: {c['id']}: {answer['error']}", file=sys.stderr)
            continue
        off.append(answer["bytes"] / max(c["measured"]["peak_allocated"]) - 1)
        seconds.append(answer["seconds"])
    if not off:
        return f"| {name} | 0 of {len(todo)} | | | | | | |"
    size = sorted(abs(x) for x in off)
    within = size[min(len(size) - 1, int(0.95 * len(size)))]
    return (
        f"| {name} | {len(off)} of {len(todo)} | {sum(x == 0 for x in size)} | {statistics.median(size):.2%} | {within:.2%} | "
        f"{size[-1]:.2%} | {sum(x < 0 for x in off)} | {statistics.median(seconds):.3f} |"
    )


def main() -> None:
    a = argparse.ArgumentParser()
    a.add_argument("--memorymark", default="build/memorymark")
    a.add_argument("--every", type=int, default=1)
    a.add_argument("--kind", default="", help="ranks whose kind has this in its name")
    a.add_argument("--tools", default=",".join(NAMES))
    a.add_argument("--limit", type=int, default=300, help="seconds that a program may take for a rank")
    a.add_argument("--inside", help=argparse.SUPPRESS)
    o = a.parse_args()
    if o.inside:
        inside(o.inside, o.limit)
        return
    todo = cases(o.every, o.kind)
    print("| | answered | exact | median off | 95 % within | worst | too low | seconds each |\n|---|--:|--:|--:|--:|--:|--:|--:|")
    for tool in o.tools.split(","):
        print(row(NAMES[tool], todo, ask(o, tool, todo)), flush=True)


if __name__ == "__main__":
    main()
