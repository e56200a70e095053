"""User models of every shape, and some that misbehave."""

import os
import signal
import sys
import time

import torch
from torch import nn


class Sum(nn.Module):
    """Keeps 4 KiB of activations for each sample."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(256, 1024)

    def forward(self, x):
        return self.layer(x)


def batch(n):
    return torch.rand(n, 256)


def make():
    return Sum(), batch


def named():
    return {"model": Sum(), "batch": batch, "optimizer": lambda p: torch.optim.SGD(p, lr=0.1), "loss": lambda out, _: out.pow(2).mean()}


class Adapted(nn.Module):
    """A layer of frozen weights in 8 bits, and a low-rank one beside it that learns."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 127, (1024, 256), dtype=torch.int8))
        self.down, self.up = nn.Linear(256, 4, bias=False), nn.Linear(4, 1024, bias=False)

    def forward(self, x):
        return nn.functional.linear(x, self.weight.to(x.dtype) / 127) + self.up(self.down(x))


def adapted():
    return Adapted(), batch


class Dataset:
    def __len__(self):
        return 3

    def __getitem__(self, i):
        return {"x": torch.full((256,), float(i))}


def dataset():
    return Sum(), Dataset(), lambda p: torch.optim.Adam(p)


def sample():
    return Sum(), torch.rand(256)


def alone():
    return Sum()


def flood():
    for _ in range(20000):
        print('{"type":"result","outcomes":[]}' + "x" * 200)
    print("noise", file=sys.stderr)
    return make()


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def leave():
    os._exit(7)


def half_line():
    """Writes half an answer into every pipe it can find, and dies."""
    for fd in range(3, 64):
        try:
            os.write(fd, b'{"type":"result","outc')
        except OSError:
            pass
    os._exit(0)


def hang():
    if os.fork() == 0:
        time.sleep(1000)
    time.sleep(1000)


def raises():
    raise ValueError("my own mistake")


def no_plan():
    """What cuDNN's convolutions raise, for whatever reason."""
    raise RuntimeError("GET was unable to find an engine to execute this computation")


def no_plan_fits():
    """The same, on a device whose allocator had to refuse something."""
    torch.cuda.is_initialized = lambda: True
    torch.cuda.memory_stats = lambda: {"num_ooms": 1}
    no_plan()


def imports():
    import a_package_that_nobody_has  # noqa: F401


def returns_nothing():
    return None
