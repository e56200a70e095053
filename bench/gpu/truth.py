"""The truth: which batches survive three full steps in a fresh process, and which is the largest."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch

from process import Fresh, Result
from workload import Workload, is_out_of_memory, step, synchronize

STEPS = 3
BEYOND = 4  # sizes above the largest that must fail

Survives = Callable[[list[int]], dict[int, bool]]


def train(workload: Workload, size: int) -> Result:
    """Three full steps in this process, which must be a fresh one."""
    begin = time.perf_counter()
    steps = 0
    try:
        workload.limit_memory()
        model = workload.build()
        optimizer = workload.optimizer(model)
        batch = workload.batch(size)
        for _ in range(STEPS):
            step(model, optimizer, batch)
            synchronize()
            steps += 1
        survived = True
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        survived = False
    result = {"batch": size, "survived": survived, "steps": steps, "seconds": time.perf_counter() - begin}
    if workload.device == "cuda":
        result["peak_allocated"] = torch.cuda.max_memory_allocated()
        result["peak_reserved"] = torch.cuda.max_memory_reserved()
    return result


def train_all(workload: Workload, sizes: list[int], parallel: int, timeout: float) -> list[Result]:
    """Trains at several sizes, some at a time: each process is capped, so they do not disturb each other."""
    results: list[Result] = []
    for i in range(0, len(sizes), parallel):
        some = sizes[i : i + parallel]
        running = [Fresh(partial(train, workload, size), timeout) for size in some]
        results += [{"batch": size, **fresh.result()} for size, fresh in zip(some, running)]
    return results


def largest(answers: list[int], survives: Survives) -> int:
    """The largest size that survives, near what the finders answered: the next four fail. Fitting is not
    monotonic, so none of them is left out."""
    tried = survives(sorted(set(answers)))
    while True:
        low = max((n for n, ok in tried.items() if ok), default=0)
        tried.update(survives([n for n in range(low + 1, low + BEYOND + 1) if n not in tried]))
        if not any(tried[n] for n in range(low + 1, low + BEYOND + 1)):
            return low
        if tried[low + BEYOND]:
            narrow(low + BEYOND, tried, survives)


def narrow(low: int, tried: dict[int, bool], survives: Survives) -> None:
    """Adds sizes to tried until the smallest failure is close above the largest that survived."""
    while True:
        high = min((n for n, ok in tried.items() if not ok and n > low), default=2 * low)
        if high in tried and high - low <= BEYOND:
            return
        size = (low + high) // 2 if high in tried else high
        tried.update(survives([size]))
        if tried[size]:
            low = size
