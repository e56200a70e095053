"""What is trained: a model, how to make a batch of it, and its optimizer."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Callable, Optional

import torch
from torch import Tensor, nn

Workload = dict[str, Any]  # all keys of a workload, and the recipe by which it is made


@dataclass
class Subject:
    model: nn.Module
    batch: Callable[[int, str], Any]  # a batch of n samples, on a device
    optimizer: Optional[torch.optim.Optimizer]
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


def optimizer(w: Workload, model: nn.Module) -> Optional[torch.optim.Optimizer]:
    """The optimizer that a workload names."""
    recipe = w["recipe"].get("optimizer")
    if recipe is None:
        return None
    trained = [p for p in model.parameters() if p.requires_grad]
    module = importlib.import_module(recipe.get("module", "torch.optim"))
    made: torch.optim.Optimizer = getattr(module, recipe["class"])(trained, **optimizer_arguments(w))
    return made


def optimizer_arguments(w: Workload) -> dict[str, Any]:
    """What the optimizer's class is called with beside the parameters."""
    recipe = w["recipe"]["optimizer"]
    if "module" in recipe:  # another library's, which has one implementation
        return dict(recipe["arguments"])
    # PyTorch's own default is foreach on a GPU; it is named so that CPU and
    # GPU do the same.
    implementations: dict[str, dict[str, bool]] = {"foreach": {"foreach": True}, "fused": {"fused": True}, "loop": {"foreach": False}}
    return {**recipe["arguments"], **implementations[w.get("optimizer_impl") or "foreach"]}
