"""Operators that only CUDA has, in terms of those that the CPU has."""

from __future__ import annotations

from typing import Any

from .attention import Attention
from .recurrent import Recurrent


class StandIns:
    """kernels: what computes an operator of this name, from its arguments on the CPU.
    whole: what runs an operator that needs its values before and after."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        recurrent = Recurrent(torch)
        self.whole = recurrent.whole
        self.kernels = {
            **Attention(torch).kernels,
            **recurrent.kernels,
            "cudnn_batch_norm": self.batch_norm,
            "cudnn_batch_norm_backward": self.batch_norm_backward,
            "cudnn_grid_sampler": lambda x, grid: torch.ops.aten.grid_sampler_2d(x, grid, 0, 0, True),
            "cudnn_grid_sampler_backward": lambda x, grid, g: torch.ops.aten.grid_sampler_2d_backward(g, x, grid, 0, 0, True, [True, True]),
            "cudnn_affine_grid_generator": lambda theta, n, c, h, w: torch.ops.aten.affine_grid_generator(theta, [n, c, h, w], True),
            "cudnn_affine_grid_generator_backward": lambda g, n, c, h, w: torch.ops.aten.affine_grid_generator_backward(g, [n, c, h, w], True),
            "_cudnn_ctc_loss": self.ctc,
            "_softmax": lambda x, dim, half: torch.ops.aten._softmax(x.float() if half else x, dim, False),
            "_log_softmax": lambda x, dim, half: torch.ops.aten._log_softmax(x.float() if half else x, dim, False),
            "_softmax_backward_data": lambda g, y, dim, _: torch.ops.aten._softmax_backward_data(g, y, dim, y.dtype),
            "_log_softmax_backward_data": lambda g, y, dim, _: torch.ops.aten._log_softmax_backward_data(g, y, dim, y.dtype),
            "_embedding_bag": self.embedding_bag,
            "_fused_rms_norm_backward": self.rms_norm_backward,
        }

    def batch_norm(self, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, eps: float) -> Any:
        return [*self.torch.ops.aten.native_batch_norm(x, weight, bias, mean, variance, training, momentum, eps), None]

    def batch_norm_backward(self, x: Any, grad: Any, weight: Any, mean: Any, variance: Any, batch_mean: Any, inverse: Any, eps: float, reserve: Any) -> Any:
        return self.torch.ops.aten.native_batch_norm_backward(grad, x, weight, mean, variance, batch_mean, inverse, True, eps, [True, True, True])

    def ctc(self, logs: Any, targets: Any, inputs: Any, lengths: Any, blank: int, deterministic: bool, zero_infinity: bool) -> Any:
        aten = self.torch.ops.aten
        loss, alpha = aten._ctc_loss(logs, targets, inputs, lengths, blank, zero_infinity)
        one = self.torch.ones_like(loss)
        return [loss, aten._ctc_loss_backward(one, logs, targets, inputs, lengths, loss, alpha, blank, zero_infinity)]

    def embedding_bag(self, weight: Any, indices: Any, offsets: Any, *options: Any) -> Any:
        """The GPU's backward takes which bag an index is in from forward, the CPU's finds it out."""
        out, bag, size, highest = self.torch.ops.aten._embedding_bag(weight, indices, offsets, *options)
        if bag.numel() == 0:
            bag = self.torch.searchsorted(offsets, self.torch.arange(indices.numel(), dtype=offsets.dtype, device="cpu"), right=True) - 1
        return [out, bag, size, highest]

    def rms_norm_backward(self, grad: Any, x: Any, shape: Any, inverse: Any, weight: Any, wanted: Any) -> Any:
        grad, normal = grad.float(), x.float() * inverse
        last = tuple(range(x.dim() - len(shape), x.dim()))
        scaled = grad if weight is None else grad * weight.float()
        of_x = inverse * (scaled - normal * (scaled * normal).mean(last, keepdim=True))
        of_weight = (grad * normal).sum(tuple(range(x.dim() - len(shape)))) if wanted[1] else None
        return [of_x, of_weight]
