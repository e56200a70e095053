"""The entry points that the preloaded library has for us."""

import ctypes
from typing import Any

_so = ctypes.CDLL(None)  # it is preloaded: its symbols are everybody's

_held = ctypes.PyDLL(None)  # for calls during which no other thread of Python may run

try:
    _held.phantom_enter.restype = _held.phantom_leave.restype = None
    _held.phantom_unanswered.restype = ctypes.c_long
    _so.phantom_answer.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
    _so.phantom_known.argtypes = (ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t)
    _so.phantom_limit.argtypes = (ctypes.c_long,)
    _so.phantom_stepped.argtypes = (ctypes.c_long,)
    for _name in ("unanswered", "launches", "taken", "peak"):
        getattr(_so, "phantom_" + _name).restype = ctypes.c_long
    loaded = True
except AttributeError:
    loaded = False


def answer(data: bytes) -> None:
    """The next copy from the device brings these bytes."""
    _so.phantom_answer(data, len(data))


def pending() -> int:
    """How many answers nobody has read."""
    return _so.phantom_pending()


def known(address: int, pointer: int, size: int) -> None:
    """Until forget, copies from these addresses bring what is at the pointer."""
    _so.phantom_known(address, pointer, size)


def forget() -> None:
    _so.phantom_forget()


def enter() -> None:
    """This thread runs an operator for its allocations: what it reads and writes is not what kernels would."""
    _held.phantom_enter()


def leave() -> None:
    _held.phantom_leave()


def unanswered() -> int:
    """How many copies brought zeros, because nobody knew better."""
    return _held.phantom_unanswered()


def launches() -> int:
    return _so.phantom_launches()


def taken(device: int) -> int:
    return _so.phantom_taken(device)


def peak(device: int) -> int:
    return _so.phantom_peak(device)


class _Work(ctypes.Structure):
    """struct work of work.h."""

    _fields_ = [("kind", ctypes.c_int), ("type", ctypes.c_int), ("backward", ctypes.c_int), ("size", ctypes.c_long * 8)]


_KINDS = ("product", "convolution", "attention", "recurrent", "kernel", "copy", "wait")
_TYPES = ("fp32", "tf32", "fp16", "bf16", "fp64", "int8", "fp8")


def stepped(calls: int) -> None:
    """An optimizer's step ends, in which Python called so many of PyTorch's functions."""
    _so.phantom_stepped(calls)


def forget_work() -> None:
    _so.phantom_work_forget()


def work() -> dict[str, Any]:
    """What the largest step asked of the card: its launches, equal ones once, and their order."""
    items, count = ctypes.POINTER(_Work)(), ctypes.c_int()
    order, calls = ctypes.POINTER(ctypes.c_uint16)(), ctypes.c_long()
    launches = _so.phantom_work(ctypes.byref(items), ctypes.byref(count), ctypes.byref(order), ctypes.byref(calls))
    if not launches:
        return {}
    different = [{"kind": _KINDS[w.kind], "type": _TYPES[w.type], "backward": bool(w.backward), "size": _trimmed(w.size)} for w in items[: count.value]]
    return {"launches": different, "order": order[:launches], "calls": calls.value}


def _trimmed(sizes: Any) -> list[int]:
    out = list(sizes)
    while out and out[-1] == 0:
        out.pop()
    return out


def communicators() -> int:
    """How many communicators of NCCL were made."""
    return _so.phantom_communicators()


def limit(size: int) -> None:
    """No device gives out more from now on; 0 lifts it."""
    _so.phantom_limit(size)
