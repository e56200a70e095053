"""Live tensor bytes: what devices without allocator statistics are measured by.

A storage counts from the operator that returned it until nothing refers to it
any more. What an operator allocates and frees inside itself is not seen.
"""

from __future__ import annotations

import weakref
from typing import Any, Optional

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .failure import LiveLimit


class LiveTensors(TorchDispatchMode):
    """Counts the bytes of the storages on a kind of device."""

    def __init__(self, device_type: str, limit: Optional[int]) -> None:
        super().__init__()
        self.device_type = device_type
        self.limit = limit
        self.bytes = 0
        self.peak = 0
        self._seen: dict[int, weakref.ref[torch.UntypedStorage]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.device.type == self.device_type:
                self._count(leaf.untyped_storage())
        return result

    def _count(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        size = storage.nbytes()
        if key in self._seen or size == 0:
            return
        if self.limit is not None and self.bytes + size > self.limit:
            raise LiveLimit(f"tried to keep {size} bytes more beside {self.bytes} bytes of live tensors; the limit is {self.limit}")

        def forget(_: Any) -> None:
            del self._seen[key]
            self.bytes -= size

        self._seen[key] = weakref.ref(storage, forget)
        self.bytes += size
        self.peak = max(self.peak, self.bytes)
