"""A callback for Lightning's Trainer."""

from __future__ import annotations

from typing import Any, Dict, Optional

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback  # type: ignore[no-redef]

from .recording import never_breaking
from .watching import Watch, say

PRECISIONS = {"bf16-mixed": "amp-bf16", "16-mixed": "amp-fp16", "bf16-true": "bf16"}


class LightningCallback(Callback):
    """Foresees what a run takes, records its first steps, and compares.

        Trainer(..., callbacks=[memorymark.LightningCallback(snapshot="first.pickle")])

    Foresees only models of Transformers that the module holds as `model`.
    """

    def __init__(self, snapshot: Optional[str] = None, steps: int = 3, gpu: Optional[str] = None) -> None:
        self.watch = Watch(gpu, snapshot, steps)

    @never_breaking
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.watch.begin(getattr(pl_module, "model", pl_module), workload_of(trainer))

    @never_breaking
    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        before = len(self.watch.peaks)
        self.watch.stepped()
        if before < len(self.watch.peaks) == self.watch.steps:
            for logger in trainer.loggers:
                logger.log_metrics(self.watch.metrics(), step=trainer.global_step)

    @never_breaking
    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.watch.end()
        if trainer.is_global_zero:
            say(self.watch.line())

    @never_breaking
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.watch.end()


def workload_of(trainer: Any) -> Dict[str, Any]:
    """The workload that a trainer describes."""
    return {
        "loop": "lightning",
        "accumulate": trainer.accumulate_grad_batches,
        "clip_grad_norm": bool(trainer.gradient_clip_val),
        "precision": PRECISIONS.get(str(trainer.precision), "fp32"),
    }
