"""torchvision's ResNets, called as transformers' models are: with pixels and labels.

internal/models/torchvision.go is the same for predictions: change both.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple, Optional

import torch.nn.functional as F
from torch import Tensor, nn

resnet = importlib.import_module("torchvision.models.resnet")  # which has no types


class Output(NamedTuple):
    loss: Optional[Tensor]
    logits: Tensor


class TorchvisionClassifier(nn.Module):
    def __init__(self, config: dict[str, Any], checkpointing: bool) -> None:
        super().__init__()
        if checkpointing:
            raise ValueError("torchvision's ResNet does not support gradient checkpointing; leave it out")
        arguments = {"block": "Bottleneck", "layers": [3, 4, 6, 3], **config}
        block = getattr(resnet, arguments.pop("block"))
        self.model = resnet.ResNet(block, **arguments)

    def forward(self, pixel_values: Tensor, labels: Optional[Tensor] = None) -> Output:
        logits = self.model(pixel_values)
        loss = None if labels is None else F.cross_entropy(logits, labels)
        return Output(loss, logits)
