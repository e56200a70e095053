"""The scan that people write: forward and backward of the mean of the logits at 8, 16, 24, … until one fails, without
labels and without the optimizer."""

from __future__ import annotations

import gc
import time

import torch

from finding import Inputs
from workload import Workload, empty_cache, is_out_of_memory, synchronize

STEP = 8


def scan(workload: Workload, inputs: Inputs) -> int:
    model = workload.build()
    size = 0
    while fits(model, inputs, size + STEP):
        size += STEP
    return size


def fits(model: torch.nn.Module, inputs: Inputs, size: int) -> bool:
    begin = time.perf_counter()
    gc.collect()  # as is usual between sizes; Lightning and Accelerate do so too
    empty_cache()
    inputs.cleaning_seconds += time.perf_counter() - begin
    try:
        batch = {name: tensor for name, tensor in inputs.of(size).items() if name != "labels"}
        model(**batch).logits.mean().backward()
        synchronize()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return False
    model.zero_grad(set_to_none=True)
    return True
