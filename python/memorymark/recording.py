"""Recording a snapshot that is written even if the run dies."""

from __future__ import annotations

import contextlib
import os
import warnings
from typing import Any, Callable, Iterator, Optional, Union

# Events of about four hundred steps of a large model; PyTorch keeps the latest.
MOST_EVENTS = 2_000_000


@contextlib.contextmanager
def record(
    path: Union[str, "os.PathLike[str]"],
    *,
    steps: Optional[int] = None,
    max_entries: int = MOST_EVENTS,
) -> Iterator[None]:
    """Records what the block allocates, and writes it as a snapshot.

    The file is written when the block ends, even if it ends in an out-of-memory
    error. With `steps`, the recording ends after that many optimizer steps. Both
    `memorymark.explain(path)` and PyTorch's own viewer read the file.
    """
    recorder = Recorder(path, steps=steps, max_entries=max_entries)
    recorder.start()
    try:
        yield
    finally:
        recorder.stop()


class Recorder:
    """A recording that is started and stopped by hand."""

    def __init__(self, path: Union[str, "os.PathLike[str]"], *, steps: Optional[int] = None, max_entries: int = MOST_EVENTS) -> None:
        self.path = os.fspath(path)
        self.steps = steps
        self.max_entries = max_entries
        self._left = steps
        self._hook: Any = None
        self._running = False

    def start(self) -> None:
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook

        if not torch.cuda.is_available():
            warnings.warn(f"memorymark: PyTorch finds no CUDA device here, so {self.path} is not recorded", stacklevel=3)
            return
        torch.cuda.memory._record_memory_history(max_entries=self.max_entries)
        self._running = True
        # Some trainers do not tell their callbacks that a run died, so the file is
        # written at the moment it does.
        torch._C._cuda_attach_out_of_memory_observer(self._ran_out)
        if self.steps is not None:
            self._hook = register_optimizer_step_post_hook(self._stepped)

    def _ran_out(self, *_: Any) -> None:
        if self._running:
            self._write()

    def _stepped(self, *_: Any) -> None:
        assert self._left is not None
        self._left -= 1
        if self._left <= 0:
            self.stop()

    def stop(self) -> None:
        """Writes the file, once. It never hides the error that ended the block."""
        if not self._running:
            return
        self._running = False
        if self._hook is not None:
            self._hook.remove()
        self._write()
        import torch

        torch.cuda.memory._record_memory_history(enabled=None)

    def _write(self) -> None:
        import torch

        try:
            torch.cuda.memory._dump_snapshot(self.path)
        except Exception as failure:
            warnings.warn(f"memorymark: {self.path} could not be written: {failure}", stacklevel=4)


def never_breaking(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a callback whose failure is a warning, never the run's end."""

    def guarded(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as failure:
            warnings.warn(f"memorymark: {type(failure).__name__}: {failure}", stacklevel=2)

    guarded.__name__, guarded.__doc__ = method.__name__, method.__doc__
    return guarded
