"""Random numbers as a card's generator draws them.

Each kernel of PyTorch gives its threads subsequences of one Philox generator
(aten/src/ATen/native/cuda/DistributionTemplates.h); how many threads there are
follows from the card. The words come from the library (philox.c); what is made of
them is as in ATen/core/TransformationHelper.h and cuRAND's curand_uniform.h and
curand_normal.h, up to the last bits of logarithms and sines.
"""

from __future__ import annotations

import math
from typing import Any, Optional

from . import library

BLOCK = 256  # threads of a block (DistributionTemplates.h, block_size_bound)


class Philox:
    """kernels: what an operator draws, by its name, from its arguments on the CPU."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.seed = self.offset = 0  # of the generator, before the operator
        self.kernels = {
            "uniform_": self.uniform,
            "normal_": self.normal,
            "exponential_": self.exponential,
            "geometric_": self.geometric,
            "cauchy_": self.cauchy,
            "log_normal_": self.log_normal,
            "bernoulli_": self.bernoulli,
            "random_": self.random,
            "native_dropout": self.dropout,
            "randperm": self.randperm,
        }
        # Made of these, as PyTorch makes them on the device.
        self.composed = {"rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "bernoulli", "normal", "multinomial"}

    # --- words
    def threads(self, n: int) -> int:
        card = self.torch.cuda.get_device_properties(self.torch.cuda.current_device())
        return BLOCK * min(card.multi_processor_count * (card.max_threads_per_multi_processor // BLOCK), (n + BLOCK - 1) // BLOCK)

    def words(self, n: int, each: int = 4, neighbours: bool = False, pairs: bool = False, threads: int = 0) -> Any:
        torch = self.torch
        wide = each == 2 or pairs
        out = torch.empty((n, 2) if wide else (n,), dtype=torch.uint32, device="cpu")
        if n:
            library.philox(self.seed, self.offset, threads or self.threads(n), each, neighbours, pairs, n, out.data_ptr())
        return out

    def long_words(self, n: int) -> Any:
        """Of 64 bits: the first word is the upper half."""
        w = self.words(n, each=2).to(self.torch.int64)
        return w[:, 0] << 32 | w[:, 1]

    # --- numbers between 0 and 1, and normal ones
    def between(self, n: int, dtype: Any, **order: Any) -> Any:
        torch = self.torch
        if dtype == torch.float64:
            return self.fine(self.words(n, each=2).to(torch.int64))
        return self.words(n, **order).to(torch.float32) * 2.0**-32 + 2.0**-33

    def fine(self, w: Any) -> Any:
        return (w[:, 0] ^ w[:, 1] << 21).to(self.torch.float64) * 2.0**-53 + 2.0**-54

    def gaussian(self, n: int, dtype: Any) -> Any:
        """By Box and Muller: neighbours in a thread are the sine and the cosine."""
        torch = self.torch
        threads = self.threads(n)
        if dtype == torch.float64:
            return self.fine_gaussian(n, threads)
        w = self.words(n, pairs=True, threads=threads).to(torch.float32)
        radius = (w[:, 0] * 2.0**-32 + 2.0**-33).log_().mul_(-2).sqrt_()
        angle = w[:, 1] * (2.0**-32 * 2 * math.pi) + 2.0**-33 * 2 * math.pi
        return self.turned(radius, angle, threads)

    def fine_gaussian(self, n: int, threads: int) -> Any:
        """A thread takes four words for the radius and the angle of two numbers."""
        torch = self.torch
        quads = self.words(4 * threads * ((n + 2 * threads - 1) // (2 * threads)), threads=threads).to(torch.int64).reshape(-1, 4, threads)
        radius = self.fine(quads[:, 0:2].movedim(1, 2).reshape(-1, 2)).log_().mul_(-2).sqrt_()
        angle = ((quads[:, 2] ^ quads[:, 3] << 21).to(torch.float64) * 2.0**-53 * 2 + 2.0**-53).reshape(-1) * math.pi
        both = torch.stack([(radius * angle.sin()).reshape(-1, threads), (radius * angle.cos()).reshape(-1, threads)], 1)
        return both.reshape(-1)[:n]

    def turned(self, radius: Any, angle: Any, threads: int) -> Any:
        n = radius.numel()
        for start in range(0, n, threads):
            part = angle[start : start + threads]
            (part.cos_ if start // threads % 2 else part.sin_)()
        return radius.mul_(angle)

    # --- operators
    def fill(self, to: Any, values: Any) -> Any:
        """In the order of memory, in which kernels go over a tensor."""
        order = sorted(range(to.dim()), key=to.stride, reverse=True)
        laid = to.permute(order)
        laid.copy_(values.reshape(laid.shape))
        return to

    def uniform(self, to: Any, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> Any:
        torch = self.torch
        low, high = (torch.tensor(v, dtype=to.dtype, device="cpu") for v in (low, high))
        wide = self.between(to.numel(), to.dtype)
        got = (wide * (high - low).to(wide.dtype) + low.to(wide.dtype)).to(to.dtype)
        return self.fill(to, torch.where(got == high, low, got))

    def normal(self, to: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
        return self.fill(to, self.gaussian(to.numel(), to.dtype) * std + mean)

    def log_normal(self, to: Any, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Any:
        return self.fill(to, (self.gaussian(to.numel(), to.dtype) * std + mean).exp())

    def exponential(self, to: Any, rate: float = 1.0, *, generator: Any = None) -> Any:
        torch = self.torch
        u = self.between(to.numel(), to.dtype)
        half = torch.finfo(u.dtype).eps / 2
        logs = torch.where(u >= 1 - half, torch.full_like(u, -half), u.log())
        return self.fill(to, logs / -rate)

    def geometric(self, to: Any, p: float, *, generator: Any = None) -> Any:
        return self.fill(to, (self.between(to.numel(), to.dtype).log() / math.log1p(-p)).ceil())

    def cauchy(self, to: Any, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Any:
        u = self.between(to.numel(), to.dtype)
        eps = self.torch.finfo(u.dtype).eps
        return self.fill(to, median + sigma * ((u.clamp(eps, 1 - eps) - 0.5) * math.pi).tan())

    def bernoulli(self, to: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
        torch = self.torch
        if not isinstance(p, torch.Tensor):
            return self.fill(to, self.between(to.numel(), to.dtype) < p)
        n = to.numel()  # four neighbours for each thread, as many threads as it takes
        u = self.between(n, torch.float32, neighbours=True, threads=max((n + 3) // 4, 1))
        return self.fill(to, u.to(p.dtype) <= p.expand(to.shape).permute(sorted(range(to.dim()), key=to.stride, reverse=True)).reshape(-1))

    def random(self, to: Any, low: Optional[int] = None, high: Optional[int] = None, *, generator: Any = None) -> Any:
        """random_(low, high), random_(high) and random_()."""
        torch = self.torch
        if low is None:
            return self.fill(to, self.whole(to))
        low, high = (0, low) if high is None else (low, high)
        return self.fill(to, self.integers(to.numel(), low, high))

    def integers(self, n: int, low: int, high: int) -> Any:
        size = high - low
        words = self.long_words(n) if size >= 1 << 28 else self.words(n).to(self.torch.int64)
        return self.remainder(words, size) + low

    def remainder(self, words: Any, size: int) -> Any:
        """Of unsigned numbers; int64 has those of 2^63 and more as negative ones."""
        rest = words.remainder(size)
        return self.torch.where(words < 0, (rest + (1 << 64) % size) % size, rest) if size < 1 << 62 else rest

    def whole(self, to: Any) -> Any:
        torch = self.torch
        if to.dtype == torch.bool:
            return self.words(to.numel()).to(torch.int64) & 1
        if to.dtype == torch.int64:
            return self.long_words(to.numel()) & (1 << 63) - 1
        if to.dtype == torch.float64:
            return self.remainder(self.long_words(to.numel()), (1 << 53) + 1)
        digits = {torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}.get(to.dtype)
        return self.words(to.numel()).to(torch.int64).remainder((1 << digits) + 1 if digits else torch.iinfo(to.dtype).max + 1)

    def dropout(self, x: Any, p: float, train: Optional[bool]) -> Any:
        """Dropout.cu: four neighbours for each thread if that fits their number, else two, else as above."""
        torch = self.torch
        if train is False or p == 0 or p == 1 or not x.numel():
            return torch.ops.aten.native_dropout(x, p, train)
        n = x.numel()
        if n % 2:
            u = self.between(n, torch.float32)
        elif n % 4:
            u = self.halves(n)
        else:
            u = self.between(n, torch.float32, neighbours=True)
        mask = self.fill(torch.empty_like(x, dtype=torch.bool), u < 1 - p)
        return [(x.float() * mask * (1 / (1 - p))).to(x.dtype), mask]

    def halves(self, n: int) -> Any:
        """Two neighbours at a time: a thread's four numbers are for two rounds."""
        torch = self.torch
        threads = self.threads(n)
        rounds = (n + 2 * threads - 1) // (2 * threads)
        u = self.between(4 * threads * ((rounds + 1) // 2), torch.float32, neighbours=True, threads=threads)
        return u.reshape(-1, threads, 2, 2).movedim(2, 1).reshape(-1)[:n]

    def randperm(self, n: int, *_: Any, **options: Any) -> Any:
        """Sorted by random keys, of which enough bits count for equal ones to be rare (Randperm.cu)."""
        torch = self.torch
        bits = min(64, math.ceil(math.log2(n - (6 * n * n + 1) / (12 * math.log(0.9))))) if n else 0
        kind = torch.iinfo(torch.int32 if bits <= 32 else torch.int64)
        keys = self.integers(n, kind.min, kind.max)
        if bits < 64:
            keys = keys & (1 << bits) - 1
        return torch.argsort(keys, stable=True)
