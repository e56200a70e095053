"""What PyTorch's own tracker, torch.distributed._tools.mem_tracker.MemTracker, says a training step takes.

Reads workloads, a JSON line each as in testdata/truth/peaks.jsonl, and writes a line for each: the largest peak of its
steps in bytes, and the seconds that took. The tensors are fake ones on the CPU, since without a GPU PyTorch 2.11 runs no
backward of fake CUDA tensors; nothing is computed. The models, batches and optimizers are those that are measured, and
dropout keeps what it keeps on a GPU.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "internal" / "measure" / "prober"))

import torch
import transformers
from memorymark_prober import catalog
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker

transformers.logging.set_verbosity_error()
warnings.filterwarnings("ignore", "Module is None")  # the tracker's own, for each module of each step
torch.nn.Module.to = lambda self, *_, **__: self  # fake parameters cannot be converted, and need not be: they are of the right type


# A CPU has no fused dropout: it would keep floats where a GPU keeps a mask of bytes, and for sdpa all of the scores.
def dropout(x: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
    return torch.native_dropout(x, p, training)[0] if training and p > 0 else x


def attention(*args: Any, dropout_p: float = 0.0, **kwargs: Any) -> torch.Tensor:
    return scaled_dot_product_attention(*args, **kwargs)


scaled_dot_product_attention = torch.nn.functional.scaled_dot_product_attention
torch.nn.functional.dropout, torch.nn.functional.scaled_dot_product_attention = dropout, attention


def track(w: dict[str, Any], steps: int) -> int:
    """The largest number of bytes that live at once, building the model aside."""
    autocast = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}.get(w["precision"])
    with FakeTensorMode():
        subject = catalog.make(w, "cpu")
        batch = subject.batch(w["batch"])
        tracker = MemTracker()
        tracker.track_external(subject.model, *(x for x in [subject.optimizer, *batch.values()] if x is not None))
        with tracker:
            for _ in range(steps):
                with torch.autocast("cpu", dtype=autocast) if autocast else contextlib.nullcontext():
                    output = subject.call(batch)
                    loss = subject.loss(output, batch)
                del output
                loss.backward()
                if w["clip_grad_norm"]:
                    torch.nn.utils.clip_grad_norm_(subject.model.parameters(), 1.0)
                if subject.optimizer and w["phase"] == "train":
                    subject.optimizer.step()
                subject.model.zero_grad(set_to_none=True)
                del loss
                tracker.reset_mod_stats()
        return max(device["Total"] for device in tracker.get_tracker_snapshot("peak").values())


def filled_in(w: dict[str, Any]) -> dict[str, Any]:
    """The workload as the prober takes it."""
    config = w["config"]
    architecture = config["architectures"][0]
    classifies = architecture.endswith("Classification")
    recipe = {
        "module": "transformers",
        "images": architecture.endswith("ImageClassification"),
        "labels": "classes" if classifies else "target_ids" if config["model_type"] == "t5" else "ids",
        "needs": ["pad_token_id", "decoder_start_token_id"] if config["model_type"] == "t5" else [],
        "optimizer": OPTIMIZERS.get(w["optimizer"]),
    }
    return {**w, "model_type": config["model_type"], "architecture": architecture, "recipe": recipe}


OPTIMIZERS: dict[str, dict[str, Any]] = {
    "adamw": {"class": "AdamW", "arguments": {"lr": 5e-5}},
    "adam": {"class": "Adam", "arguments": {"lr": 5e-5}},
    "sgd": {"class": "SGD", "arguments": {"lr": 1e-3}},
    "sgd-momentum": {"class": "SGD", "arguments": {"lr": 1e-3, "momentum": 0.9}},
}


def main() -> None:
    for line in iter(sys.stdin.readline, ""):
        answer: dict[str, Any] = {}
        began = time.perf_counter()
        try:
            answer["peak"] = track(filled_in(json.loads(line)), steps=2)
        except Exception as error:  # what the tracker cannot do is part of the comparison
            answer["error"] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        answer["seconds"] = round(time.perf_counter() - began, 3)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
