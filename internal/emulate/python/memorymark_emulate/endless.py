"""Loops that continue for as long as made-up values say so.

An adaptive solver that waits for its time to come never ends if the time is
unknown. Where values are computed in a second run, the first one gives such a
loop up: at one line, made-up values have decided a number of times since the
last step of an optimizer.
"""

from __future__ import annotations

import os
import sys

from . import report

# Of tensors a single decision is enough for a second run, so that little is lost. Numbers that `item` returned are
# compared often, in decoding for example, and mostly to no effect.
TENSORS, NUMBERS = 1_000, 20_000

_GIVEN_UP = os.environ.get("MEMORYMARK_EMULATE_LOOPS") == "given up"
_EXIT = 78  # auto.go, exitEndless

_since: dict[str, int] = {}  # the last step: decisions at a line


def decided(where: str, most: int) -> None:
    if not _GIVEN_UP:
        return
    _since[where] = _since.get(where, 0) + 1
    if _since[where] >= most:
        report.write(_EXIT, where)
        sys.stdout.flush()
        os._exit(_EXIT)


def forget() -> None:
    """After a step, and in a forked child."""
    _since.clear()
