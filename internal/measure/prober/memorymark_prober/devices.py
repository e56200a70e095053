"""The devices that steps run on: what can be read off each, and limited."""

from __future__ import annotations

import abc
import contextlib
import resource
import sys
from typing import Any, ContextManager, Optional

import torch

from . import host
from .live import LiveTensors

try:  # it is there on an emulated card
    from memorymark_emulate import library as emulator
except ImportError:
    emulator = None  # type: ignore[assignment]


class Device(abc.ABC):
    """What the probe needs of a device. Peaks are since the last reset."""

    type: str

    def entered(self) -> ContextManager[Any]:
        """Surrounds everything that is measured."""
        return contextlib.nullcontext()

    @abc.abstractmethod
    def reset(self) -> None: ...

    @abc.abstractmethod
    def peaks(self) -> dict[str, int]: ...

    @abc.abstractmethod
    def allocated(self) -> int: ...

    def counters(self) -> dict[str, int]:
        """What the allocator counted over the whole process."""
        return {}

    def memory(self) -> dict[str, int]:
        """The device's memory as a whole: total, and free for all processes."""
        return {}

    def synchronize(self) -> None:
        """Waits until the device has done what it was told."""

    def begin_work(self) -> None:
        """Forgets what an emulated device was asked for before."""

    def end_step(self) -> None:
        """Ends a step that no optimizer does."""

    def work(self) -> dict[str, Any]:
        """What the largest step after the first asked of an emulated device; of others nothing."""
        return {}

    def empty(self) -> None:
        """Gives back what is cached."""


class Cuda(Device):
    type = "cuda"

    def __init__(self, name: str, limit: Optional[int], expandable_segments: bool) -> None:
        if expandable_segments:
            torch.cuda.memory._set_allocator_settings("expandable_segments:True")
        torch.cuda.init()
        torch.cuda.set_device(torch.device(name).index or 0)
        self.total = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
        if limit:
            torch.cuda.set_per_process_memory_fraction(min(limit / self.total, 1.0))

    def reset(self) -> None:
        torch.cuda.reset_peak_memory_stats()

    def peaks(self) -> dict[str, int]:
        stats = torch.cuda.memory_stats()
        return {
            "requested": stats["requested_bytes.all.peak"],
            "allocated": stats["allocated_bytes.all.peak"],
            "reserved": stats["reserved_bytes.all.peak"],
        }

    def allocated(self) -> int:
        return torch.cuda.memory_allocated()

    def counters(self) -> dict[str, int]:
        stats = torch.cuda.memory_stats()
        return {"retries": stats["num_alloc_retries"], "out_of_memory": stats["num_ooms"]}

    def memory(self) -> dict[str, int]:
        free, total = torch.cuda.mem_get_info()
        return {"total_bytes": total, "free_bytes": free, "outside_bytes": max(total - free - torch.cuda.memory_reserved(), 0)}

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def empty(self) -> None:
        torch.cuda.empty_cache()

    def begin_work(self) -> None:
        if emulator:
            emulator.forget_work()

    def end_step(self) -> None:
        if emulator:
            emulator.stepped(0)

    def work(self) -> dict[str, Any]:
        return emulator.work() if emulator else {}


class Counted(Device):
    """A device whose tensors are counted, since nothing else does. Where only
    times are wanted they are not: the counting takes time at each operator, and
    nothing is compiled under it."""

    def __init__(self, type: str, limit: Optional[int], counts: bool = True) -> None:
        self.type = type
        self.counts = counts
        self.live = LiveTensors(type, limit)

    def entered(self) -> ContextManager[Any]:
        return self.live if self.counts else super().entered()

    def reset(self) -> None:
        self.live.peak = self.live.bytes

    def peaks(self) -> dict[str, int]:
        return {"requested": self.live.peak, "allocated": self.live.peak} if self.counts else {}

    def allocated(self) -> int:
        return self.live.bytes


class Cpu(Counted):
    def __init__(self, limit: Optional[int], counts: bool = True) -> None:
        super().__init__("cpu", limit, counts)

    def memory(self) -> dict[str, int]:
        total, free = host.memory()
        return {"total_bytes": total, "free_bytes": free}


class Mps(Counted):
    def __init__(self, limit: Optional[int], counts: bool = True) -> None:
        super().__init__("mps", limit, counts)

    def peaks(self) -> dict[str, int]:
        return {**super().peaks(), "reserved": torch.mps.driver_allocated_memory()}

    def memory(self) -> dict[str, int]:
        return {"total_bytes": torch.mps.recommended_max_memory()}

    def synchronize(self) -> None:
        torch.mps.synchronize()

    def empty(self) -> None:
        torch.mps.empty_cache()


def open_device(name: str, limit: Optional[int], expandable_segments: bool = False, counts: bool = True) -> Device:
    """The device of a name as PyTorch writes it: cuda, cuda:1, mps or cpu."""
    type = name.partition(":")[0]
    if type == "cuda":
        return Cuda(name, limit, expandable_segments)
    if type == "mps":
        return Mps(limit, counts)
    return Cpu(limit, counts)


def choose(wanted: str) -> str:
    """The device that is meant: the best there is if any will do."""
    if wanted != "auto":
        return wanted
    if torch.cuda.is_available():
        return "cuda"
    if torch.backends.mps.is_available():
        return "mps"
    return "cpu"


def look(wanted: str) -> dict[str, Any]:
    """What there is. Only a child may ask: it initialises the device."""
    name = choose(wanted)
    type = name.partition(":")[0]
    if type == "cuda":
        device = Cuda(name, None, False)
        p = torch.cuda.get_device_properties(torch.cuda.current_device())
        torch.zeros(1, device="cuda")  # the context is complete only now
        return {
            "device": type,
            "name": p.name,
            "capability": f"{p.major}.{p.minor}",
            "multiprocessors": p.multi_processor_count,
            "threads_per_multiprocessor": p.max_threads_per_multi_processor,
            "cuda": torch.version.cuda or "",
            "cudnn": torch.backends.cudnn.version() or 0,
            **device.memory(),
        }
    if type == "mps":
        if not torch.backends.mps.is_available():
            raise RuntimeError("this PyTorch has no MPS device")
        return {"device": type, "name": "Apple GPU", **Mps(None).memory()}
    return {"device": "cpu", "name": "CPU", **Cpu(None).memory()}


def host_peak() -> int:
    """The most host memory that this process held, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
