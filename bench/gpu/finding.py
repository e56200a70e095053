"""What all finders share: the inputs they train on, and how they are timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from torch.utils.data import DataLoader, Dataset

from process import Result
from workload import Batch, Workload, synchronize

STEPS = 3  # of a trial: Lightning's default, for all of them


@dataclass
class Inputs:
    """Makes the batches and remembers the sizes that were tried. The steps of a trial share a batch, as
    MemoryMark's do, so that loading data costs no finder time or memory."""

    workload: Workload
    sizes: list[int] = field(default_factory=list)
    batch: Batch | None = None
    cleaning_seconds: float = 0.0  # the scan's share that is no training

    def of(self, size: int) -> Batch:
        if self.batch is None or self.sizes[-1] != size:
            self.batch = None  # before the next one is made
            self.sizes.append(size)
            self.batch = self.workload.batch(size)
        return self.batch

    def loader(self, size: int) -> DataLoader[Batch]:
        return DataLoader(Samples(self), batch_size=size, collate_fn=lambda batch: batch)


class Samples(Dataset[Batch]):
    """The inputs as a dataset that hands out whole batches. It is so long that a trial of any size has its
    three steps: Lightning neither goes beyond the length of the dataset nor notices when a trial is short."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs

    def __len__(self) -> int:
        return STEPS * 8192  # Lightning's largest size

    def __getitems__(self, indices: list[int]) -> Batch:
        return self.inputs.of(len(indices))


Finder = Callable[[Workload, Inputs], int]


def find(workload: Workload, finder: Finder) -> Result:
    """Runs a finder in this process, which must be a fresh one. The clock starts before the device is touched."""
    inputs = Inputs(workload)
    begin = time.perf_counter()
    workload.limit_memory()
    answer = finder(workload, inputs)
    synchronize()
    result = {"answer": answer, "seconds": time.perf_counter() - begin, "tried": inputs.sizes}
    if inputs.cleaning_seconds:
        result["cleaning_seconds"] = inputs.cleaning_seconds
    return result
