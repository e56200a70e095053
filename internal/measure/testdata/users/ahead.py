"""Functions that are called ahead of probes, or cannot be. Each says in a file
that it was called."""

import os
import time

import torch
from torch import nn


def called(name):
    with open(os.path.join(os.environ["CALLED"], name), "a") as file:
        file.write(".")


def make():
    called("make")
    return nn.Sequential(nn.Linear(64, 512), nn.Linear(512, 64)), lambda n: torch.rand(n, 64)


def on_device():
    called("on_device")
    return nn.Linear(64, 64).cuda(), lambda n: torch.rand(n, 64)


def fails():
    called("fails")
    raise ValueError("there is no such model")


def dies():
    called("dies")
    os.kill(os.getpid(), 9)


def shouts():
    called("shouts")
    raise ValueError("x" * 3_600_000)


def daemon():
    """Goes into the background, with all pipes."""
    called("daemon")
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(20)
    os._exit(0)
