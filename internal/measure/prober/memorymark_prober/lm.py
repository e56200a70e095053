"""The plain transformer language model: pre-norm blocks of RMSNorm, causal
attention with rotary positions and explicit scores, SwiGLU; an untied head.

internal/models/lm.go is the same model for predictions: change both.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class Output(NamedTuple):
    loss: Optional[Tensor]
    logits: Tensor


class RMSNorm(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x: Tensor) -> Tensor:
        dtype = x.dtype
        x = x.to(torch.float32)
        variance = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + 1e-5)
        return self.weight * x.to(dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return x * cos + torch.cat((-x2, x1), dim=-1) * sin


@torch.no_grad()
def rotary(length: int, size: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    frequencies = 10000.0 ** (torch.arange(0, size, 2, dtype=torch.float32, device=device) / -size)
    angles = torch.arange(length, device=device)[:, None] * frequencies
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


class Attention(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        b, s, d = x.shape
        q = rotate(self.q(x).view(b, s, self.heads, -1).transpose(1, 2), cos, sin)
        k = rotate(self.k(x).view(b, s, self.heads, -1).transpose(1, 2), cos, sin)
        v = self.v(x).view(b, s, self.heads, -1).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        scores = torch.where(mask, scores, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        out: Tensor = self.o(torch.matmul(weights, v).transpose(1, 2).reshape(b, s, d))
        return out


class Block(nn.Module):
    def __init__(self, d: int, d_ff: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attention, self.norm2 = RMSNorm(d), Attention(d, heads), RMSNorm(d)
        self.gate, self.up = nn.Linear(d, d_ff, bias=False), nn.Linear(d, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x), cos, sin, mask)
        h = self.norm2(x)
        out: Tensor = x + self.down(F.silu(self.gate(h)) * self.up(h))
        return out


class TransformerLM(nn.Module):
    def __init__(self, config: dict[str, Any], checkpointing: bool) -> None:
        super().__init__()
        d, heads = config["d_model"], config["num_heads"]
        self.size, self.checkpointing = d // heads, checkpointing
        self.embed = nn.Embedding(config["vocab_size"], d)
        self.blocks = nn.ModuleList(Block(d, config["d_ff"], heads) for _ in range(config["num_layers"]))
        self.norm, self.head = RMSNorm(d), nn.Linear(d, config["vocab_size"], bias=False)

    def forward(self, input_ids: Tensor, labels: Optional[Tensor] = None) -> Output:
        x = self.embed(input_ids)
        s = input_ids.shape[1]
        cos, sin = rotary(s, self.size, x.dtype, x.device)
        mask = torch.ones(s, s, dtype=torch.bool, device=x.device).tril()
        for block in self.blocks:
            if self.checkpointing and self.training:
                x = checkpoint(block, x, cos, sin, mask, use_reentrant=False)
            else:
                x = block(x, cos, sin, mask)
        logits = self.head(self.norm(x))
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))
        return Output(loss, logits)
