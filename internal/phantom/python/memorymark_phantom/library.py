"""The entry points that the preloaded library has for us."""

import ctypes

_so = ctypes.CDLL(None)  # it is preloaded: its symbols are everybody's

try:
    _so.phantom_answer.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
    _so.phantom_known.argtypes = (ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t)
    _so.phantom_limit.argtypes = (ctypes.c_long,)
    for _name in ("unanswered", "launches", "taken", "peak"):
        getattr(_so, "phantom_" + _name).restype = ctypes.c_long
    loaded = True
except AttributeError:
    loaded = False


def answer(data: bytes) -> None:
    """The next copy from the device brings these bytes."""
    _so.phantom_answer(data, len(data))


def known(address: int, pointer: int, size: int) -> None:
    """Until forget, copies from these addresses bring what is at the pointer."""
    _so.phantom_known(address, pointer, size)


def forget() -> None:
    _so.phantom_forget()


def unanswered() -> int:
    """How many copies brought zeros, because nobody knew better."""
    return _so.phantom_unanswered()


def launches() -> int:
    return _so.phantom_launches()


def taken(device: int) -> int:
    return _so.phantom_taken(device)


def peak(device: int) -> int:
    return _so.phantom_peak(device)


def communicators() -> int:
    """How many communicators of NCCL were made."""
    return _so.phantom_communicators()


def limit(size: int) -> None:
    """No device gives out more from now on; 0 lifts it."""
    _so.phantom_limit(size)
