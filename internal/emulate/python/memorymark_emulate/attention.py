"""Fused attention on the CPU: what flash, efficient and cuDNN kernels return, with the logarithms that backward needs."""

from __future__ import annotations

import math
from typing import Any, Optional


class Attention:
    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.kernels = {
            "_scaled_dot_product_flash_attention": self.flash,
            "_scaled_dot_product_flash_attention_backward": self.flash_backward,
            "_scaled_dot_product_efficient_attention": self.efficient,
            "_scaled_dot_product_efficient_attention_backward": self.efficient_backward,
            "_scaled_dot_product_cudnn_attention": self.cudnn,
            "_scaled_dot_product_cudnn_attention_backward": self.cudnn_backward,
        }

    # --- as PyTorch calls them (aten/src/ATen/native/native_functions.yaml)
    def flash(self, q: Any, k: Any, v: Any, dropout: float = 0.0, causal: bool = False, return_debug_mask: bool = False, *, scale: Optional[float] = None) -> Any:
        out, logs, seed = self.forward(q, k, v, None, dropout, causal, scale)
        return [out, logs, None, None, None, None, self.torch.full((2,), seed, dtype=self.torch.uint64), None, None]

    def flash_backward(self, grad: Any, q: Any, k: Any, v: Any, out: Any, logs: Any, *rest: Any, scale: Optional[float] = None) -> Any:
        _, _, _, _, dropout, causal, seed, _ = rest
        return self.backward(grad, q, k, v, None, out, logs, dropout, causal, scale, int(seed.flatten()[0]))[:3]

    def efficient(self, q: Any, k: Any, v: Any, bias: Any, logs_wanted: bool, dropout: float = 0.0, causal: bool = False, *, scale: Optional[float] = None) -> Any:
        out, logs, seed = self.forward(q, k, v, bias, dropout, causal, scale)
        padded = self.torch.full((*logs.shape[:2], (logs.shape[2] + 31) // 32 * 32), math.inf)  # to what its backward reads at once
        padded[:, :, : logs.shape[2]] = logs
        return [out, padded if logs_wanted else logs[:, :, :0], self.torch.tensor(seed), None]

    def efficient_backward(self, grad: Any, q: Any, k: Any, v: Any, bias: Any, out: Any, logs: Any, seed: Any, offset: Any, dropout: float, mask: Any, causal: bool = False, *, scale: Optional[float] = None) -> Any:  # fmt: skip
        return self.backward(grad, q, k, v, bias, out, logs, dropout, causal, scale, int(seed))

    def cudnn(self, q: Any, k: Any, v: Any, bias: Any, logs_wanted: bool, dropout: float = 0.0, causal: bool = False, debug: bool = False, *, scale: Optional[float] = None) -> Any:
        out, logs, seed = self.forward(q, k, v, bias, dropout, causal, scale)
        return [out, logs[..., None], None, None, None, None, self.torch.tensor(seed), None, None]

    def cudnn_backward(self, grad: Any, q: Any, k: Any, v: Any, out: Any, logs: Any, seed: Any, offset: Any, bias: Any, *rest: Any, scale: Optional[float] = None) -> Any:
        _, _, _, _, dropout, causal = rest
        return self.backward(grad, q, k, v, bias, out, logs[..., 0], dropout, causal, scale, int(seed))[:3]

    # --- what they compute
    def forward(self, q: Any, k: Any, v: Any, bias: Any, dropout: float, causal: bool, scale: Optional[float]) -> Any:
        torch = self.torch
        seed = torch.initial_seed() % (1 << 62) if dropout else 0
        outs, logs = [], []
        for i in range(q.shape[0]):  # one sample at a time: the scores are large
            scores = self.scores(q, k, bias, i, causal, scale)
            top = scores.logsumexp(-1)
            share = self.dropped(self.share(scores, top), dropout, seed + i)
            outs.append((share @ self.grouped(v[i], q)).to(q.dtype))
            logs.append(top)
        return torch.stack(outs), torch.stack(logs), seed

    def backward(self, grad: Any, q: Any, k: Any, v: Any, bias: Any, out: Any, logs: Any, dropout: float, causal: bool, scale: Optional[float], seed: int) -> Any:
        torch = self.torch
        found = []
        for i in range(q.shape[0]):
            g, keys, values = grad[i].float(), self.grouped(k[i], q), self.grouped(v[i], q)
            share = self.share(self.scores(q, k, bias, i, causal, scale), logs[i, :, : q.shape[2]])
            of_values = self.dropped(share, dropout, seed + i).mT @ g
            of_share = self.dropped(g @ values.mT, dropout, seed + i)
            of_scores = share * (of_share - (g * out[i].float()).sum(-1, keepdim=True))
            factor = self.factor(q, scale)
            found.append((of_scores @ keys * factor, self.joined(of_scores.mT @ q[i].float() * factor, k), self.joined(of_values, v), of_scores if bias is not None else None))
        dq, dk, dv, db = zip(*found)
        of_bias = None
        if bias is not None:
            of_bias = torch.stack(db).sum_to_size(bias.shape) if bias.dim() == 4 else torch.stack(db).sum(0).sum_to_size(bias.shape)
        return [torch.stack(dq), torch.stack(dk), torch.stack(dv), of_bias]

    def factor(self, q: Any, scale: Optional[float]) -> float:
        return scale if scale is not None else 1 / math.sqrt(q.shape[-1])

    def scores(self, q: Any, k: Any, bias: Any, i: int, causal: bool, scale: Optional[float]) -> Any:
        torch = self.torch
        scores = q[i].float() @ self.grouped(k[i], q).mT * self.factor(q, scale)
        if bias is not None:
            scores += (bias[i if bias.shape[0] > 1 else 0] if bias.dim() == 4 else bias).float()
        if causal:
            scores.masked_fill_(torch.ones(scores.shape[-2:], dtype=torch.bool, device="cpu").triu(1), -math.inf)
        return scores

    def share(self, scores: Any, logs: Any) -> Any:
        return (scores - logs[..., None]).exp().nan_to_num(0.0)  # a row that is masked whole has none

    def dropped(self, share: Any, dropout: float, seed: int) -> Any:
        if not dropout:
            return share
        torch = self.torch
        generator = torch.Generator().manual_seed(seed)
        return share * (torch.rand(share.shape, generator=generator, device="cpu") >= dropout) / (1 - dropout)

    def grouped(self, t: Any, q: Any) -> Any:
        """Heads of keys and values that several heads of queries share."""
        return t.float().repeat_interleave(q.shape[1] // t.shape[0], 0) if t.shape[0] != q.shape[1] else t.float()

    def joined(self, of: Any, like: Any) -> Any:
        return of.reshape(like.shape[1], -1, *of.shape[1:]).sum(1) if of.shape[0] != like.shape[1] else of
