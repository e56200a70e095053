"""Accelerate's find_executable_batch_size, around a training function as its documentation has it."""

from __future__ import annotations

import accelerate
from accelerate.utils import find_executable_batch_size

from finding import STEPS, Inputs
from workload import Workload, synchronize

VERSION = accelerate.__version__

# It only goes down, by a tenth each time. Its default start, 128, could not
# answer more than 128; this is above every answer.
START = 1024


def find(workload: Workload, inputs: Inputs) -> int:
    accelerator = accelerate.Accelerator(cpu=workload.device == "cpu")

    @find_executable_batch_size(starting_batch_size=START)
    def train(batch_size: int) -> int:
        accelerator.free_memory()
        model = workload.build()
        optimizer = workload.optimizer(model)
        model, optimizer, loader = accelerator.prepare(model, optimizer, inputs.loader(batch_size))
        for _, batch in zip(range(STEPS), loader):
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        synchronize()
        return batch_size

    return train()
