"""CPU tensors at the addresses of device tensors, where the library has host memory: they are the same numbers."""

from __future__ import annotations

from typing import Any

from . import shadows


class NotComputed(Exception):
    """What the CPU does not have."""


class Mirror:
    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.host = torch.device("cpu")

    def of(self, t: Any) -> Any:
        """The tensor of the CPU that has a device tensor's numbers: it lies at the same address."""
        torch = self.torch
        if not t.is_cuda:
            return t
        if t.layout is not torch.strided:
            return self.sparse(t)
        if t.is_quantized:
            raise NotComputed("quantized tensors are not computed")
        if t.is_nested:
            return torch._nested_view_from_buffer(self.elements(t), t._nested_tensor_size(), t._nested_tensor_strides(), t._nested_tensor_storage_offsets())
        if t.numel() == 0:
            return torch.empty_strided(t.size(), t.stride(), dtype=t.dtype, device=self.host)
        # Not of its storage: Python's hold on that would keep autograd from adding gradients in place (input_buffer.cpp, can_accumulate_inplace).
        offset, each = t.storage_offset(), t.element_size()
        size = (offset + 1 + sum((n - 1) * step for n, step in zip(t.size(), t.stride()))) * each
        memory = torch._C._construct_storage_from_data_pointer(t.data_ptr() - offset * each, self.host, size)
        mine = torch.empty(0, dtype=t.dtype, device=self.host).set_(memory, offset, t.size(), t.stride())
        if t.is_conj():
            mine = torch._conj(mine)
        return torch._neg_view(mine) if t.is_neg() else mine

    def elements(self, t: Any) -> Any:
        """Those of a nested tensor, one after the other."""
        size = t.numel() * t.element_size()
        if size == 0:
            return self.torch.empty(0, dtype=t.dtype, device=self.host)
        memory = self.torch._C._construct_storage_from_data_pointer(t.data_ptr(), self.host, size)
        return self.torch.empty(0, dtype=t.dtype, device=self.host).set_(memory)

    def sparse(self, t: Any) -> Any:
        torch = self.torch
        parts = [self.of(p) for p in shadows._parts(torch, t)]
        if t.layout is torch.sparse_coo:
            return torch.sparse_coo_tensor(*parts, t.size(), device=self.host, check_invariants=False, is_coalesced=t.is_coalesced())
        return torch.sparse_compressed_tensor(*parts, t.size(), layout=t.layout, device=self.host, check_invariants=False)

    def swap(self, value: Any) -> Any:
        """The same arguments on the CPU."""
        torch = self.torch
        if isinstance(value, torch.Tensor):
            return self.of(value)
        if isinstance(value, (list, tuple)):
            return [self.swap(v) for v in value]
        if isinstance(value, dict):
            return {k: self.swap(v) for k, v in value.items() if k != "pin_memory"}
        if isinstance(value, torch.device):
            return self.host
        return None if isinstance(value, torch.Generator) else value

    def put(self, to: Any, value: Any) -> None:
        """Writes what was computed where a tensor is."""
        if to.layout is not self.torch.strided:
            for a, b in zip(shadows._parts(self.torch, to), shadows._parts(self.torch, value)):
                self.put(a, b)
            return
        if to.is_nested:
            to, value = self.elements(to), self.elements(value)
        mine = self.of(to)
        if mine.shape != value.shape:
            if mine.numel() != value.numel():
                if value.numel() == 0 or mine.numel() == 0:
                    return  # what one of them keeps for backward and the other does not
                raise NotComputed(f"the CPU's result has the shape {list(value.shape)}, the GPU's {list(mine.shape)}")
            value = value.reshape(mine.shape)
        mine.copy_(value)
