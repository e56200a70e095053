"""What the callbacks of trainers share: foresee, record, compare, say it."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any, Callable, Dict, List, Optional

from . import _program
from .answers import Prediction, gib
from .recording import Recorder


class Watch:
    """Watches the first steps of a run on one device."""

    def __init__(self, gpu: Optional[str], snapshot: Optional[str], steps: int) -> None:
        self.gpu = gpu
        self.steps = steps
        self.prediction: Optional[Prediction] = None
        self.peaks: List[int] = []
        self._recorder = Recorder(snapshot, steps=steps) if snapshot else None
        self._hook: Any = None

    def begin(self, model: Any, workload: Dict[str, Any]) -> None:
        """Begins to record, and foresees the step once the first batch is seen."""
        if self._recorder is not None:
            self._recorder.start()
        config = getattr(model, "config", None)
        if config is None or not hasattr(config, "to_dict"):
            return  # not a model of Transformers: it would have to be emulated

        def seen(_: Any, args: Any, kwargs: Any) -> None:
            self._hook.remove()
            try:
                self.foresee(config.to_dict(), {**workload, **shape_of(args, kwargs)})
            except Exception as failure:
                say(f"not foreseen: {failure}")

        self._hook = model.register_forward_pre_hook(seen, with_kwargs=True)

    def foresee(self, config: Dict[str, Any], workload: Dict[str, Any]) -> None:
        """Asks for a prediction, and warns if the step will not fit."""
        import json

        workload = {"config": config, **workload, **({"gpu": self.gpu} if self.gpu else {})}
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "workload.json")
            with open(file, "w", encoding="utf-8") as f:
                json.dump(workload, f, default=str)
            self.prediction = Prediction.of(_program.ask(["predict", "-f", file, "--engine", "predicted"]))
        if not self.prediction.fits:
            say(f"this will run out of memory: {self.prediction}")

    def stepped(self) -> None:
        """Reads the allocator's own statistics after one of the first steps."""
        if len(self.peaks) >= self.steps:
            return
        import torch

        if torch.cuda.is_available():
            self.peaks.append(torch.cuda.max_memory_allocated())

    def end(self) -> None:
        if self._recorder is not None:
            self._recorder.stop()
        if self._hook is not None:
            self._hook.remove()

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
        took = f"the first {len(self.peaks)} steps took {gib(max(self.peaks))}" if self.peaks else "nothing was measured: no CUDA device"
        if self.prediction is None:
            return took
        foreseen = f"{gib(self.prediction.peak_allocated)} was predicted"
        if not self.peaks:
            return f"{foreseen}; {took}"
        off = 100 * (self.prediction.peak_allocated / max(self.peaks) - 1)
        return f"{took}, {foreseen} ({off:+.2f} %)"


def shape_of(args: Any, kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """The batch and the length, or the size of images, of what a model is given."""
    values = [kwargs.get(name) for name in ("input_ids", "pixel_values")] + list(args)
    for value in values:
        shape = getattr(value, "shape", None)
        if shape is not None and len(shape) == 2:
            return {"batch": int(shape[0]), "sequence": int(shape[1])}
        if shape is not None and len(shape) == 4:
            return {"batch": int(shape[0]), "image": int(shape[-1])}
    return {}


def say(text: str, write: Callable[[str], Any] = sys.stderr.write) -> None:
    write(f"memorymark: {text}\n")
