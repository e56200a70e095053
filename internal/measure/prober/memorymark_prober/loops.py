"""The loops that steps run in. A step that a library runs is run by the
library itself; what a probe reads off the device is read in its callbacks."""

from __future__ import annotations

import contextlib
import tempfile
from typing import Any, Callable, Iterator, Mapping, Optional, Protocol

import torch
from torch import Tensor

from . import adapters, subject
from .failure import UserError
from .subject import Subject, Workload


class Watch(Protocol):
    """Who is told how it goes."""

    def begin(self) -> None:
        """A step begins."""

    def end(self) -> None:
        """It has ended."""

    def switch(self, phase: str) -> None:
        """Another part of the step begins."""


def librarys(w: Workload) -> Optional[str]:
    """The library whose loop a workload trains in, if it is one's."""
    loop = w.get("loop", "plain")
    return loop if isinstance(loop, str) and loop != "plain" and w["phase"] == "train" else None


def described(w: Workload) -> Optional[dict[str, str]]:
    """A loop that has no name, by what it does."""
    loop = w.get("loop", "plain")
    return loop if isinstance(loop, dict) else None


def builds_on(w: Workload, device: str) -> str:
    """Where the model is made."""
    on_cpu = w["loop"].get("build") == "cpu" if described(w) else w.get("loop", "plain") != "plain"
    return "cpu" if on_cpu and not adapters.quantizes(w) else device


def run(w: Workload, made: Subject, device: str, n: int, steps: int, watch: Watch) -> None:
    """Trains for a number of steps in the loop of a library."""
    name = librarys(w)
    assert name is not None
    if "optimizer" not in w["recipe"]:
        raise UserError(f"the loop of {name} has an optimizer, so that optimizer cannot be none")
    if device.startswith("cuda") and torch.cuda.device_count() > 1:
        raise UserError(f"the loop of {name} would use all of this machine's GPUs; show it one with CUDA_VISIBLE_DEVICES")
    rows = Rows(made.batch(n, "cpu"), n, w["accumulate"] * (steps + 1))
    with parts_of_steps(made.model, watch):
        {"trainer": with_trainer, "lightning": with_lightning, "accelerate": with_accelerate}[name](w, made, device, rows, steps, watch)


class Rows(torch.utils.data.Dataset[Any]):
    """The samples of a batch on the host, over and over."""

    def __init__(self, batch: Any, n: int, batches: int) -> None:
        self.batch, self.n, self.batches = batch, n, batches

    def __len__(self) -> int:
        return self.n * self.batches

    def __getitem__(self, i: int) -> Any:
        return sample(self.batch, i % self.n)


def sample(batch: Any, i: int) -> Any:
    if isinstance(batch, Tensor):
        return batch[i]
    if isinstance(batch, Mapping):
        return {key: sample(value, i) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        return tuple(sample(value, i) for value in batch)
    return batch


@contextlib.contextmanager
def parts_of_steps(model: Any, watch: Watch) -> Iterator[None]:
    """Tells apart the parts of a step that a library runs: each call of the
    model is a forward pass, and what follows backward is the optimizer's."""
    backward = torch.autograd.backward

    def watched(*args: Any, **kwargs: Any) -> None:
        watch.switch("backward")
        backward(*args, **kwargs)
        watch.switch("optimizer")

    hook = model.register_forward_pre_hook(lambda *_: watch.switch("forward"))
    torch.autograd.backward = watched
    try:
        yield
    finally:
        torch.autograd.backward = backward
        hook.remove()


def with_trainer(w: Workload, made: Subject, device: str, rows: Rows, steps: int, watch: Watch) -> None:
    adapters.need("accelerate", "the loop of Hugging Face's Trainer")
    import transformers

    if made.loss is subject.mean_loss or not isinstance(rows.batch, Mapping):
        raise UserError("Hugging Face's Trainer calls a model with keyword arguments, and trains on the loss that it returns")

    class Watcher(transformers.TrainerCallback):
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            watch.begin()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            watch.end()

    recipe = w["recipe"]["optimizer"]
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder,
            max_steps=steps,
            per_device_train_batch_size=rows.n,
            gradient_accumulation_steps=w["accumulate"],
            bf16=w["precision"] == "amp-bf16",
            fp16=w["precision"] == "amp-fp16",
            max_grad_norm=1.0 if w["clip_grad_norm"] else 0.0,
            optim=recipe["trainer"],
            use_cpu=device == "cpu",
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
        )
        # Trainer has no name for some of PyTorch's optimizers, nor for their implementations.
        by_name = "module" in recipe or recipe["trainer"] == "adafactor"
        own = None if by_name else (getattr(torch.optim, recipe["class"]), subject.optimizer_arguments(w))
        transformers.Trainer(made.model, arguments, train_dataset=rows, callbacks=[Watcher()], optimizer_cls_and_kwargs=own).train()
    unwrap(made)


def with_lightning(w: Workload, made: Subject, device: str, rows: Rows, steps: int, watch: Watch) -> None:
    lightning = adapters.need("lightning", "Lightning's loop")

    class Module(lightning.LightningModule):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = made.model

        def training_step(self, batch: Any, _: int) -> Tensor:
            return made.loss(made.call(batch), batch)

        def configure_optimizers(self) -> Any:
            return made.optimizer or subject.optimizer(w, made.model)

    class Watcher(lightning.Callback):  # type: ignore[name-defined,misc]
        def on_train_batch_start(self, trainer: Any, __: Any, ___: Any, index: int) -> None:
            if index % w["accumulate"] == 0:
                watch.begin()

        def on_train_batch_end(self, trainer: Any, __: Any, ___: Any, ____: Any, index: int) -> None:
            if (index + 1) % w["accumulate"] == 0:
                watch.end()

    trainer = lightning.Trainer(
        accelerator="cpu" if device == "cpu" else "gpu",
        devices=1,
        max_steps=steps,
        precision={"amp-bf16": "bf16-mixed", "amp-fp16": "16-mixed"}.get(w["precision"], "32-true"),
        accumulate_grad_batches=w["accumulate"],
        gradient_clip_val=1.0 if w["clip_grad_norm"] else None,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[Watcher()],
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(rows, batch_size=rows.n))


def with_accelerate(w: Workload, made: Subject, device: str, rows: Rows, steps: int, watch: Watch) -> None:
    """The loop of Accelerate's documentation."""
    accelerate = adapters.need("accelerate", "Accelerate's loop")
    precision = {"amp-bf16": "bf16", "amp-fp16": "fp16"}.get(w["precision"], "no")
    accelerator = accelerate.Accelerator(mixed_precision=precision, gradient_accumulation_steps=w["accumulate"], cpu=device == "cpu")
    loader = torch.utils.data.DataLoader(rows, batch_size=rows.n)
    own = made.optimizer or subject.optimizer(w, made.model)
    model, optimizer, loader = accelerator.prepare(made.model, own, loader)
    model.train(w["mode"] == "train")
    for i, batch in enumerate(loader):
        if i == steps * w["accumulate"]:
            break
        if i % w["accumulate"] == 0:
            watch.begin()
            optimizer.zero_grad()
        outputs = made.call(batch)
        loss = made.loss(outputs, batch)
        accelerator.backward(loss)
        if (i + 1) % w["accumulate"]:
            continue
        if w["clip_grad_norm"]:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        watch.end()
    unwrap(made)


def unwrap(made: Subject) -> None:
    """Takes off what Accelerate put around the model's forward."""
    from accelerate.utils import extract_model_from_parallel

    extract_model_from_parallel(made.model, keep_fp32_wrapper=False)


class Described:
    """A loop that says what it does with memory. It is in no function of its
    own: names stay until they are bound again."""

    def __init__(self, w: Workload, made: Subject) -> None:
        self.w, self.made, self.does = w, made, w["loop"]
        self.output: Any = None
        self.loss: Optional[Tensor] = None
        self.scaler: Any = torch.amp.GradScaler() if self.does.get("scaler") == "grad" else None  # type: ignore[attr-defined]

    def step(self, inputs: Any, within: Callable[[str], Any], autocast: Callable[[], Any], update: Callable[[], None]) -> None:
        kept = self.does["outputs"] == "kept"
        for i in range(self.w["accumulate"]):
            self.clear("before-forward", i == 0)
            if not kept and i > 0:
                self.loss = None
            with within("forward"), autocast():
                self.output = self.made.call(inputs)
                self.loss = self.made.loss(self.output, inputs)
                if not kept and i > 0:
                    self.output = None
            if not kept:
                self.output = None
            self.clear("before-backward", i == 0)
            with within("backward"):
                (self.scaler.scale(self.loss) if self.scaler else self.loss).backward()  # type: ignore[no-untyped-call]
        with within("optimizer"):
            update()
        self.clear("after-step", True)

    def clear(self, here: str, now: bool) -> None:
        if self.does["zero_grad"] == here and now:
            (self.made.optimizer or self.made.model).zero_grad(set_to_none=True)
