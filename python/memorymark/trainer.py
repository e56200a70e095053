"""A callback for Hugging Face's Trainer."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional

import transformers

from .recording import never_breaking
from .watching import Watch, say
from .workload import NotDescribed, Workload, of_precision

# Names of TrainingArguments.optim, and what a workload calls them.
OPTIMIZERS = {
    "adamw_torch": ("adamw", "foreach"),
    "adamw_torch_fused": ("adamw", "fused"),
    "adamw_8bit": ("adamw-8bit", None),
    "adamw_bnb_8bit": ("adamw-8bit", None),
    "paged_adamw_8bit": ("paged-adamw-8bit", None),
    "adafactor": ("adafactor", None),
    "sgd": ("sgd", None),
    "rmsprop": ("rmsprop", None),
}


class TrainerCallback(transformers.TrainerCallback):
    """Predicts the memory of a run, records its first steps, and compares the two.

        trainer = Trainer(..., callbacks=[memorymark.TrainerCallback(snapshot="first.pickle")])

    It warns before the first step if memory will run out, and prints one line at
    the end. It logs to TensorBoard or Weights & Biases if the Trainer does. It
    never breaks a run.
    """

    def __init__(self, snapshot: Optional[str] = None, steps: int = 3, gpu: Optional[str] = None) -> None:
        self.watch = Watch(gpu, snapshot, steps)

    @never_breaking
    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        self.watch.begin(model, lambda: workload_of(args, model))

    @never_breaking
    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        before = len(self.watch.peaks)
        self.watch.stepped()
        if before < len(self.watch.peaks) == self.watch.steps:
            log(args, self.watch.metrics(), state.global_step)

    @never_breaking
    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.watch.end()
        if state.is_world_process_zero:
            say(self.watch.line())


def workload_of(args: Any, model: Any) -> Workload:
    """The workload that TrainingArguments describe."""
    optim = getattr(args.optim, "value", args.optim)
    if optim not in OPTIMIZERS:
        raise NotDescribed(f"optimizer {optim} is not modelled")
    optimizer, impl = OPTIMIZERS[optim]
    described: Workload = {
        "loop": "trainer",
        "accumulate": args.gradient_accumulation_steps,
        "checkpointing": bool(args.gradient_checkpointing),
        "clip_grad_norm": bool(args.max_grad_norm),
        "optimizer": optimizer,
        "precision": of_precision(model, "bf16" if args.bf16 else "fp16" if args.fp16 else None),
    }
    if impl:
        described["optimizer_impl"] = impl
    if getattr(args, "fsdp", None) or getattr(args, "deepspeed", None):
        raise NotDescribed("FSDP and DeepSpeed in a Trainer are not modelled; memorymark run --gpus emulates them")
    if getattr(args, "world_size", 1) > 1:
        described["parallel"] = {"kind": "ddp", "gpus": args.world_size}
    return described


def log(args: Any, metrics: Dict[str, float], step: int) -> None:
    """Logs to where the Trainer does. A callback is called after those that do,
    so that what it added to their values would not be seen."""
    if "wandb" in args.report_to:
        import wandb

        if wandb.run is not None:
            wandb.log(metrics, step=step)
    if "tensorboard" in args.report_to:
        from torch.utils.tensorboard import SummaryWriter

        # Transformers 5 keeps no logging_dir; TensorBoard shows a folder of its own next to the Trainer's.
        folder = getattr(args, "logging_dir", None) or os.environ.get("TENSORBOARD_LOGGING_DIR")
        with SummaryWriter(folder or os.path.join(args.output_dir, "runs", "memorymark")) as writer:
            for name, value in metrics.items():
                writer.add_scalar(name, value, step)
