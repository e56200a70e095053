"""What the driver's pool says of itself, allocation by allocation: in use, its peak, reserved, its peak."""

import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
import torch

MIB = 1 << 20


def make(n):
    return torch.empty(n, dtype=torch.uint8, device="cuda")


def say(what):
    torch.cuda.synchronize()
    s = torch.cuda.memory_stats()
    print(what, *(s[f"{kind}_bytes.all.{when}"] for kind in ("allocated", "reserved") for when in ("current", "peak")))


kept = []
for n in (1, 511, 513, 1000, 4096, 100000, MIB, MIB + 1, 3 * MIB, 33 * MIB, 31 * MIB, 64 * MIB, 65 * MIB, 200 * MIB):
    kept.append(make(n))
    say(n)
del kept[9]
say("without 33 MiB")
for _ in range(2):
    kept.append(make(20 * MIB))
    say("20 MiB more")
kept.clear()
say("nothing")
torch.cuda.empty_cache()
say("emptied")
parts = [make(7 * MIB) for _ in range(20)]
say("20 of 7 MiB")
parts = parts[::2]
say("every other one")
one = make(50 * MIB)
say("50 MiB")
torch.cuda.empty_cache()
say("emptied")
del parts, one
torch.cuda.empty_cache()
say("emptied")
x = torch.randn(1000, 1000, device="cuda")
y = x @ x
say("a product and its workspace")
del x, y
torch.cuda.empty_cache()
say("emptied")
