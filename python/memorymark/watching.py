"""What the trainers' callbacks share: predict, record, compare, print."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _program, workload
from .answers import Prediction, gib
from .recording import Recorder
from .workload import Workload


class Watch:
    """Watches the first steps of a run on one device."""

    def __init__(self, gpu: Optional[str], snapshot: Optional[str], steps: int) -> None:
        self.gpu = gpu
        self.steps = steps
        self.prediction: Optional[Prediction] = None
        self.peaks: List[int] = []
        self._recorder = Recorder(snapshot, steps=steps) if snapshot else None
        self._hook: Any = None
        self._workload: Workload = {}
        self._predicted_batch: Workload = {}  # what the prediction is for
        self._largest: Workload = {}
        self._note = ""

    def begin(self, model: Any, describe: Callable[[], Workload]) -> None:
        """Starts to record, and predicts the step once the first batch is seen."""
        if self._recorder is not None:
            self._recorder.start()
        try:
            self._workload = {**workload.of_model(model), **describe(), **workload.of_device(model, self.gpu)}
        except workload.NotDescribed as why:
            say(f"no prediction: {why}")
            return
        self._hook = model.register_forward_pre_hook(self._given, with_kwargs=True)

    def _given(self, _: Any, args: Any, kwargs: Any) -> None:
        """Keeps the largest batch: the measured peak is its peak."""
        try:
            batch = workload.of_inputs(args, kwargs)
            if workload.size(batch) > workload.size(self._largest):
                self._largest = batch
            if not self._predicted_batch:
                self._predicted_batch = batch
                self.predict()
        except Exception as failure:
            say(f"no prediction: {failure}")
            self._forget()

    def predict(self) -> None:
        """Asks for a prediction of the batch, and warns if it will not fit."""
        self.prediction, self._note = predicted({**self._workload, **self._predicted_batch})
        if not self.prediction.fits:
            say(f"this will run out of memory: {self.prediction}{self._note}")

    def stepped(self) -> None:
        """Reads the allocator's own statistics after one of the first steps."""
        if len(self.peaks) >= self.steps:
            return
        import torch

        if torch.cuda.is_available():
            self.peaks.append(torch.cuda.max_memory_allocated())
        if len(self.peaks) == self.steps:
            self._settle()

    def _settle(self) -> None:
        """Stops watching batches. If a later one was larger, the peak is from that one."""
        self._forget()
        if self.prediction is not None and self._largest != self._predicted_batch:
            self._predicted_batch = self._largest
            self.predict()

    def _forget(self) -> None:
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def end(self) -> None:
        if self._recorder is not None:
            self._recorder.stop()
        if self._hook is not None:
            self._settle()

    def metrics(self) -> Dict[str, float]:
        """What goes to the trainer's logger."""
        out: Dict[str, float] = {}
        if self.peaks:
            out["memorymark/peak_allocated_gib"] = max(self.peaks) / (1 << 30)
        if self.prediction is not None:
            out["memorymark/predicted_allocated_gib"] = self.prediction.peak_allocated / (1 << 30)
        return out

    def line(self) -> str:
        """What happened, in one line."""
        took = "nothing was measured: no CUDA device"
        if self.peaks:
            first = "step" if len(self.peaks) == 1 else f"{len(self.peaks)} steps"
            took = f"the first {first} took {gib(max(self.peaks))}"
        if self.prediction is None:
            return took
        expected = f"{gib(self.prediction.peak_allocated)} was predicted"
        if not self.peaks:
            return f"{expected}{self._note}; {took}"
        off = 100 * (self.prediction.peak_allocated / max(self.peaks) - 1)
        return f"{took}, {expected} ({off:+.2f} %){self._note}"


def predicted(asked: Workload) -> Tuple[Prediction, str]:
    """The prediction for the libraries that run here, or for others and a note
    that says so."""
    import torch
    import transformers

    here = {"torch": release(torch.__version__), "transformers": release(transformers.__version__)}
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "workload.json")

        def ask(more: Workload) -> Prediction:
            with open(file, "w", encoding="utf-8") as f:
                json.dump({**asked, **more}, f, default=str)
            return Prediction.of(_program.ask(["predict", "-f", file, "--engine", "predicted"]))

        try:
            return ask({"versions": here}), ""
        except _program.MemoryMarkError as failure:
            if not str(failure).startswith("versions:"):
                raise
        answer = ask({})
        return answer, f"; PyTorch {here['torch']} with transformers {here['transformers']} is not modelled, so other versions were predicted"


def release(version: str) -> str:
    """The first two numbers of a version."""
    return ".".join(version.split(".")[:2])


def say(text: str, write: Callable[[str], Any] = sys.stderr.write) -> None:
    write(f"memorymark: {text}\n")
