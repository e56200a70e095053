"""How far a run with computed values is, on a terminal: a step takes as long as on a CPU."""

import atexit
import sys
import time

from . import steps

_EVERY = 2.0  # seconds

_began = _shown = time.monotonic()
_operators = 0


def computed() -> None:
    """An operator was computed."""
    global _operators, _shown
    _operators += 1
    if _operators & 63 or time.monotonic() - _shown < _EVERY or not sys.stderr.isatty():
        return
    if _shown == _began:
        atexit.register(sys.stderr.write, "\r\x1b[K")
    _shown = time.monotonic()
    seconds = int(_shown - _began)
    sys.stderr.write(f"\r\x1b[Kcomputing on the CPU: step {steps.count + 1}, {_operators:,} operators, {seconds // 60}:{seconds % 60:02}")
    sys.stderr.flush()
