"""What is trained: a model, how to make a batch of it, and its optimizer."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Callable, Optional, Protocol

import torch
from torch import Tensor, nn

from .failure import UserError

Workload = dict[str, Any]  # all keys of a workload, and the recipe by which it is made


class Optimizer(Protocol):
    def step(self) -> Any:
        """Updates parameters."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops their gradients."""


@dataclass
class Subject:
    model: nn.Module
    batch: Callable[[int, str], Any]  # a batch of n samples, on a device
    optimizer: Optional[Optimizer]
    loss: Callable[[Any, Any], Tensor]  # of the model's output and the batch

    def call(self, batch: Any) -> Any:
        """The model's output: a mapping is taken for keyword arguments."""
        if isinstance(batch, dict):
            return self.model(**batch)
        if isinstance(batch, (tuple, list)):
            return self.model(*batch)
        return self.model(batch)


def own_loss(output: Any, _: Any) -> Tensor:
    """The loss that a model returned."""
    loss: Tensor = output.loss
    return loss


def mean_loss(output: Any, _: Any) -> Tensor:
    """The mean of the logits, or of what a model without such a head returns first, as its last hidden states."""
    logits: Tensor = output.logits if hasattr(output, "logits") else output[0]
    return logits.mean()


class Both:
    """Two optimizers of different parameters."""

    def __init__(self, *made: Optimizer) -> None:
        self.made = made

    def step(self) -> None:
        for one in self.made:
            one.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        for one in self.made:
            one.zero_grad(set_to_none)


def optimizer(w: Workload, model: nn.Module) -> Optional[Optimizer]:
    """The optimizer that a workload names."""
    recipe = w["recipe"].get("optimizer")
    if recipe is None:
        return None
    trained = [p for p in model.parameters() if p.requires_grad]
    module = importlib.import_module(recipe.get("module", "torch.optim"))
    if not hasattr(module, recipe["class"]):
        raise UserError(f"this PyTorch, {torch.__version__}, has no torch.optim.{recipe['class']}")
    made = getattr(module, recipe["class"])
    beside = recipe.get("beside")
    if beside is None:
        one: Optimizer = made(trained, **optimizer_arguments(w))
        return one
    matrices, others = hidden_matrices(model, trained)
    both: list[Optimizer] = [made(matrices, **recipe["arguments"])] if matrices else []
    if others:  # none are left where only adapters are trained
        both.append(getattr(torch.optim, beside["class"])(others, **beside["arguments"], **implementation(w)))
    return Both(*both)


def hidden_matrices(model: nn.Module, trained: list[nn.Parameter]) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The matrices that Muon takes, and what is left to another optimizer: embeddings, the output's weight, and what is no matrix."""
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding) or module is head}
    matrices = [p for p in trained if p.ndim == 2 and id(p) not in tables]
    taken = {id(p) for p in matrices}
    return matrices, [p for p in trained if id(p) not in taken]


def optimizer_arguments(w: Workload) -> dict[str, Any]:
    """What the optimizer's class is called with after the parameters."""
    recipe = w["recipe"]["optimizer"]
    if "module" in recipe:  # another library's, which has one implementation
        return dict(recipe["arguments"])
    return {**recipe["arguments"], **implementation(w)}


def implementation(w: Workload) -> dict[str, bool]:
    """How PyTorch's optimizers compute. Their own default is foreach on a GPU; it is named so that CPU and GPU do the same."""
    implementations: dict[str, dict[str, bool]] = {"foreach": {"foreach": True}, "fused": {"fused": True}, "loop": {"foreach": False}}
    return implementations[w.get("optimizer_impl") or "foreach"]
