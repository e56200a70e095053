"""A callback for Lightning's Trainer."""

from __future__ import annotations

from typing import Any, Optional

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback  # type: ignore[no-redef]

from .recording import never_breaking
from .watching import Watch, say
from .workload import NotDescribed, Workload, of_precision

# What Lightning calls a precision, and what it casts to.
AUTOCAST = {"bf16-mixed": "bf16", "16-mixed": "fp16", "bf16-true": None, "32-true": None}
OPTIMIZERS = {"AdamW": "adamw", "Adam": "adam", "SGD": "sgd", "RMSprop": "rmsprop"}


class LightningCallback(Callback):
    """Predicts the memory of a run, records its first steps, and compares the two.

        Trainer(..., callbacks=[memorymark.LightningCallback(snapshot="first.pickle")])

    It predicts Transformers models that the module holds as `model`. Other runs
    are measured and recorded, without a prediction. It never breaks a run.
    """

    def __init__(self, snapshot: Optional[str] = None, steps: int = 3, gpu: Optional[str] = None) -> None:
        self.watch = Watch(gpu, snapshot, steps)
        self._steps_seen = 0

    @never_breaking
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._steps_seen = trainer.global_step  # a resumed run does not begin at 0
        model = getattr(pl_module, "model", pl_module)
        self.watch.begin(model, lambda: workload_of(trainer, model))

    @never_breaking
    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        if trainer.global_step == self._steps_seen:
            return  # its gradients are accumulated; the optimizer has not stepped
        self._steps_seen = trainer.global_step
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


def workload_of(trainer: Any, model: Any) -> Workload:
    """The workload that a trainer describes."""
    optimizers = trainer.optimizers
    if len(optimizers) != 1 or type(optimizers[0]).__name__ not in OPTIMIZERS:
        raise NotDescribed(f"{' and '.join(type(o).__name__ for o in optimizers)} is not modelled in Lightning; one optimizer of {', '.join(OPTIMIZERS)} is")
    precision = str(trainer.precision)
    if precision not in AUTOCAST:
        raise NotDescribed(f"precision {precision} is not modelled in Lightning")
    described: Workload = {
        "loop": "lightning",
        "accumulate": trainer.accumulate_grad_batches,
        "clip_grad_norm": bool(trainer.gradient_clip_val),
        "checkpointing": bool(getattr(model, "is_gradient_checkpointing", False)),
        "optimizer": OPTIMIZERS[type(optimizers[0]).__name__],
        "optimizer_impl": implementation(optimizers[0]),
        "precision": of_precision(model, AUTOCAST[precision]),
    }
    if described["optimizer"] == "sgd" and optimizers[0].defaults.get("momentum"):
        described["optimizer"] = "sgd-momentum"
    if trainer.world_size > 1:
        if type(trainer.strategy).__name__ != "DDPStrategy":
            raise NotDescribed(f"{type(trainer.strategy).__name__} is not modelled; memorymark run --gpus emulates it")
        described["parallel"] = {"kind": "ddp", "gpus": trainer.world_size}
    return described


def implementation(optimizer: Any) -> str:
    """The form that torch.optim takes: foreach on a GPU unless it is told otherwise."""
    if optimizer.defaults.get("fused"):
        return "fused"
    return "loop" if optimizer.defaults.get("foreach") is False else "foreach"
