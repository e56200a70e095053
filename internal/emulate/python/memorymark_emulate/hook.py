"""What happens when a program imports torch, and when it ends."""

import atexit
import importlib.util
import os
import sys
import time
from typing import Callable

_after = {}  # module name: what to do when it was imported, in order


class _Finder:
    """Finds a module as the other finders do, and has something done after it ran."""

    def __init__(self):
        self.finding = set()

    def find_spec(self, name, path=None, target=None):
        if name not in _after or name in self.finding:
            return None
        self.finding.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.finding.discard(name)
        if spec is None and name == "torch":
            from . import report

            report.unable(f"{sys.executable} has no PyTorch; install a CUDA build, which needs no GPU: {sys.executable} -m pip install torch")
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            for then in _after.pop(name, ()):  # only now: whoever looks for a module need not import it
                then(module)

        spec.loader.exec_module = exec_module
        return spec


def after_import(name: str, then: Callable) -> None:
    """Calls then(module) once a module is imported."""
    if name in sys.modules:
        then(sys.modules[name])
    else:
        _after.setdefault(name, []).append(then)


def install() -> None:
    from . import library, serving

    if not library.loaded:
        return  # a process that threw the preload away: the emulator is not in it
    sys.meta_path.insert(0, _Finder())
    _end_quietly()
    serving.begin()  # its modules import torch
    after_import("torch", _torch_imported)


def _torch_imported(torch) -> None:
    from . import compiling, computed, distributed, phases, report, shadows, steps

    if torch.version.cuda is None:
        report.unable(
            f"PyTorch {torch.__version__} of {sys.executable} is built without CUDA; install a CUDA build, which needs no GPU: "
            f"{sys.executable} -m pip install --force-reinstall torch"
        )
        return
    report.begin(torch)
    steps.begin(torch)
    phases.begin(torch)
    distributed.begin(torch)
    compiling.begin()
    if os.environ.get("MEMORYMARK_EMULATE_VALUES") == "computed":
        computed.begin(torch)
    elif os.environ.get("MEMORYMARK_EMULATE_SHADOWS", "1") != "0" and "vllm" not in sys.modules:  # what vLLM compiles must not meet our mode
        shadows.begin(torch)
    atexit.register(report.write)
    _before_exit(report.write)


def _end_quietly() -> None:
    """The interrupt that ends a command whose time is over is nothing to print a traceback of."""
    until, show = int(os.environ.get("MEMORYMARK_EMULATE_UNTIL") or 0), sys.excepthook
    if until:

        def excepthook(kind, value, trace):
            if not (issubclass(kind, KeyboardInterrupt) and time.time() >= until):
                show(kind, value, trace)

        sys.excepthook = excepthook


def _before_exit(write: Callable) -> None:
    """A process that ends by os._exit, as forked children do, runs no exit handlers."""
    leave = os._exit

    def _exit(status):
        try:
            write(status)
        finally:
            leave(status)

    os._exit = _exit
