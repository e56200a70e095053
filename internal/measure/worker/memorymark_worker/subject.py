"""What is trained: a model, how to make a batch of it, and its optimizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional

import torch
from torch import Tensor, nn

Workload = dict[str, Any]  # the keys of SPEC §3, all of them filled in


@dataclass
class Subject:
    model: nn.Module
    batch: Callable[[int], Any]  # a batch of n samples, on the device
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
    loss: Tensor = output.logits.mean()
    return loss


def optimizer(w: Workload, model: nn.Module) -> Optional[torch.optim.Optimizer]:
    """The optimizer that a workload names."""
    parameters = model.parameters()
    # PyTorch's own default is foreach on a GPU; it is named so that CPU and
    # GPU do the same.
    implementations = {"foreach": {"foreach": True}, "fused": {"fused": True}, "loop": {"foreach": False}}
    how: dict[str, Any] = implementations[w.get("optimizer_impl") or "foreach"]
    name = w["optimizer"]
    if name == "adamw":
        return torch.optim.AdamW(parameters, lr=1e-5, **how)
    if name == "adam":
        return torch.optim.Adam(parameters, lr=1e-5, **how)
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=1e-4, **how)
    if name == "sgd-momentum":
        return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, **how)
    return None
