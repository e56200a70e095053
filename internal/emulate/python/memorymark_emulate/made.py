"""Numbers that a program read although no kernel had computed them.

Those that `item` returned are floats and integers in all that a program does with
them. Where a line of the program compares one, makes an integer of it or asks for
a tensor of that size, that is reported: the line may have decided what happens
next. What is computed from them is made up, too.

The ways of many numbers (`tolist`, `cpu`) are not followed: the line that reads
them is reported. In a run that takes the other branch, they are others.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from . import endless, hook, report

IN_TURN = "indices in turn over "  # with a number: how a choice was made up

# Where one was compared: how often.
decisions: dict[str, int] = {}

# In a run that takes the other branch, every second decision at a line is the other one, so that loops end.
_OTHER = os.environ.get("MEMORYMARK_EMULATE_BRANCHES") == "other"

# A program may ask whether a number's type is float.
_PLAIN = os.environ.get("MEMORYMARK_EMULATE_NUMBERS") == "plain"


def begin(torch: Any) -> None:
    # Checkpoints hold them as floats, which a safe load must accept.
    torch.serialization.add_safe_globals([float, int])
    hook.after_import("yaml.representer", _represent)


def _represent(module: Any) -> None:
    module.SafeRepresenter.add_multi_representer(MadeFloat, module.SafeRepresenter.represent_float)
    module.SafeRepresenter.add_multi_representer(MadeInt, module.SafeRepresenter.represent_int)


def number(value: Any) -> Any:
    """The same number, followed."""
    if isinstance(value, bool) or _PLAIN:
        return value
    return MadeFloat(value) if isinstance(value, float) else MadeInt(value)


def _decided(answer: bool, frame: Any) -> bool:
    if report.is_library(frame):
        return answer
    where = report.user_frame(frame)
    decisions[where] = decisions.get(where, 0) + 1
    endless.decided(where, endless.NUMBERS)
    return not answer if _OTHER and decisions[where] % 2 else answer


def read(frame: Any) -> None:
    """A line got numbers that it may do anything with."""
    where = report.user_frame(frame)
    decisions[where] = decisions.get(where, 0) + 1


def is_size(value: Any) -> bool:
    """Whether a number that was made up is among the arguments of a function that makes a tensor."""
    if isinstance(value, (list, tuple)):
        return any(map(is_size, value))
    if isinstance(value, slice):
        return is_size((value.start, value.stop, value.step))
    return isinstance(value, MadeInt)


def brought(shadow: Any, guess: str) -> Any:
    """What a read brings, of which something may be made up: in a run that takes the other branch, choices in another order, and half of a number."""
    choice = guess.startswith(IN_TURN)
    if not _OTHER or not guess or choice and not shadow.dim():
        return shadow
    if choice:
        return shadow.flip(-1)
    return ~shadow if not shadow.dtype.is_floating_point and shadow.dtype.itemsize == 1 else (shadow // 2).where(shadow > 1, 1 - shadow)


def unknown(torch: Any, t: Any) -> Any:
    """What a read of many unknown numbers brings: None for the library's zeros, else numbers on both sides of what they may be compared with."""
    if not _OTHER or t.numel() < 2 or t.layout is not torch.strided:
        return None
    other = torch.arange(t.numel(), device="cpu") % 2
    return (other * 16 - 8 if t.dtype.is_floating_point else other).to(t.dtype).reshape(t.shape)


def _kept(value: Any) -> Any:
    if type(value) is float:
        return MadeFloat(value)
    return MadeInt(value) if type(value) is int else value


def _follow(made: type, base: type) -> None:
    """Gives a class the methods of its base, followed."""

    def compares(name: str) -> None:
        plain = getattr(base, name)

        def method(self: Any, *other: Any) -> Any:
            got = plain(self, *other)
            return _decided(got, sys._getframe(1)) if isinstance(got, bool) else got

        setattr(made, name, method)

    def computes(name: str) -> None:
        plain = getattr(base, name)

        def method(self: Any, *other: Any) -> Any:
            if name in _DIVIDES and name.startswith("__r"):  # by this number, which is not known to be 0
                self = base(1) if not base.__bool__(self) else self
            elif name in _DIVIDES and isinstance(other[0], (MadeFloat, MadeInt)):
                other = (1,) if repr(other[0]) in ("0", "0.0") else other
            return _kept(plain(self, *other))

        setattr(made, name, method)

    for name in _COMPARES:
        compares(name)
    for name in _COMPUTES:
        if hasattr(base, name):
            computes(name)

    def integer(self: Any) -> int:
        return base.__int__(self) + (not _decided(True, sys._getframe(1)))

    made.__int__ = integer
    made.__hash__ = base.__hash__
    made.__reduce_ex__ = lambda self, protocol: (base, (base.__add__(self, 0),))


class MadeFloat(float):
    pass


class MadeInt(int):
    pass


_COMPARES = ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "__bool__")
_DIVIDES = {"__truediv__", "__rtruediv__", "__floordiv__", "__rfloordiv__", "__mod__", "__rmod__"}
_COMPUTES = ("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__neg__", "__pos__", "__abs__", "__pow__", "__rpow__", "__round__", *sorted(_DIVIDES))
_follow(MadeFloat, float)
_follow(MadeInt, int)
