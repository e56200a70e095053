"""The entry points that the preloaded library has for us."""

import ctypes
from typing import Any

_so = ctypes.CDLL(None)  # it is preloaded: its symbols are global

_held = ctypes.PyDLL(None)  # for calls during which no other thread of Python may run

try:
    _held.emulate_enter.restype = _held.emulate_leave.restype = None
    _held.emulate_unanswered.restype = ctypes.c_long
    _so.emulate_answer.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
    _so.emulate_known.argtypes = (ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t)
    _so.emulate_limit.argtypes = (ctypes.c_long,)
    _so.emulate_philox.argtypes = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_void_p)
    _so.emulate_stepped.argtypes = (ctypes.c_long,)
    _so.emulate_reached.argtypes = (ctypes.POINTER(ctypes.c_size_t),)
    for _name in ("unanswered", "launches", "taken", "peak", "pinned_peak"):
        getattr(_so, "emulate_" + _name).restype = ctypes.c_long
    loaded = True
except AttributeError:
    loaded = False


def answer(data: bytes) -> None:
    """The next copy from the device brings these bytes."""
    _so.emulate_answer(data, len(data))


def pending() -> int:
    """How many answers have not been read."""
    return _so.emulate_pending()


def known(address: int, pointer: int, size: int) -> None:
    """Until forget, copies from these addresses bring what is at the pointer."""
    _so.emulate_known(address, pointer, size)


def forget() -> None:
    _so.emulate_forget()


def enter() -> None:
    """This thread runs an operator for its allocations: what it reads and writes is not what kernels would."""
    _held.emulate_enter()


def leave() -> None:
    _held.emulate_leave()


def unanswered() -> int:
    """How many copies brought zeros, because nothing better was known."""
    return _held.emulate_unanswered()


def launches() -> int:
    return _so.emulate_launches()


def taken(device: int) -> int:
    return _so.emulate_taken(device)


def peak(device: int) -> int:
    return _so.emulate_peak(device)


_Observer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_observer: Any = None  # which the library calls: it must not be freed


def observe_peaks(call: Any) -> None:
    """The interpreter calls this soon after an allocation took more than any before it in its phase."""
    global _observer
    _observer = _Observer(call) if call else None
    _so.emulate_observe_peaks(_observer)


def reached() -> tuple[int, int]:
    """The phase that reached a peak, and the thread that did."""
    thread = ctypes.c_size_t()
    return _so.emulate_reached(ctypes.byref(thread)), thread.value


def phase(number: int) -> None:
    _so.emulate_phase(number)


def phase_peak(number: int, device: int) -> tuple[int, int]:
    """What was allocated and reserved at most."""
    allocated, reserved = ctypes.c_long(), ctypes.c_long()
    _so.emulate_phase_peak(number, device, ctypes.byref(allocated), ctypes.byref(reserved))
    return allocated.value, reserved.value


def forget_peaks() -> None:
    _so.emulate_forget_peaks()


def pinned_peak() -> int:
    """Bytes of host memory that were pinned at most."""
    return _so.emulate_pinned_peak()


def philox(seed: int, offset: int, threads: int, each: int, neighbours: bool, pairs: bool, n: int, to: int) -> None:
    """Random words for n elements, to an address (philox.c)."""
    _so.emulate_philox(seed % (1 << 64), offset, threads, each, neighbours, pairs, n, to)


class _Work(ctypes.Structure):
    """struct work of work.h."""

    _fields_ = [("kind", ctypes.c_int), ("type", ctypes.c_int), ("backward", ctypes.c_int), ("size", ctypes.c_long * 9)]


_KINDS = (  # internal/steptime/kind.go
    "product", "convolution", "attention", "batch_norm", "recurrent", "kernel", "widen", "row", "strided", "dropout",
    "layer_norm", "layer_norm_backward", "softmax", "softmax_backward", "log_softmax", "log_softmax_backward", "nll_loss",
    "sum_rows", "sum_columns", "embedding", "embedding_backward", "max_pool", "max_pool_backward", "upsample", "group_norm",
    "foreach", "fill", "copy", "wait",
)
_TYPES = ("fp32", "tf32", "fp16", "bf16", "fp64", "int8", "fp8")


def stepped(calls: int) -> None:
    """An optimizer's step ends, in which Python called that many of PyTorch's functions."""
    _so.emulate_stepped(calls)


def forget_work() -> None:
    _so.emulate_work_forget()


def work() -> dict[str, Any]:
    """What the largest step asked of the card: its launches, equal ones once, and their order."""
    items, count = ctypes.POINTER(_Work)(), ctypes.c_int()
    order, calls = ctypes.POINTER(ctypes.c_uint16)(), ctypes.c_long()
    launches = _so.emulate_work(ctypes.byref(items), ctypes.byref(count), ctypes.byref(order), ctypes.byref(calls))
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
    return _so.emulate_communicators()


def limit(size: int) -> None:
    """No device gives out more from now on; 0 lifts it."""
    _so.emulate_limit(size)
