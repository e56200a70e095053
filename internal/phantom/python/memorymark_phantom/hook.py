"""What happens when a program imports torch, and when it ends."""

import atexit
import importlib.util
import os
import sys
from typing import Callable

_after = {}  # module name: what to do when it was imported


class _Finder:
    """Finds a module as everybody else does, and has something done after it ran."""

    def find_spec(self, name, path=None, target=None):
        then = _after.pop(name, None)
        if then is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            then(module)

        spec.loader.exec_module = exec_module
        return spec


def after_import(name: str, then: Callable) -> None:
    """Calls then(module) once a module is imported."""
    if name in sys.modules:
        then(sys.modules[name])
    else:
        _after[name] = then


def install() -> None:
    from . import library

    if not library.loaded:
        return  # a process that threw the preload away: there is no phantom in it
    sys.meta_path.insert(0, _Finder())
    after_import("torch", _torch_imported)


def _torch_imported(torch) -> None:
    from . import compiling, computed, distributed, report, shadows, steps

    if torch.version.cuda is None:
        report.note("this PyTorch is built without CUDA; install a CUDA build to have its memory emulated")
        return
    report.begin(torch)
    steps.begin(torch)
    distributed.begin(torch)
    compiling.begin()
    if os.environ.get("MEMORYMARK_PHANTOM_VALUES") == "computed":
        computed.begin(torch)
    elif os.environ.get("MEMORYMARK_PHANTOM_SHADOWS", "1") != "0":
        shadows.begin(torch)
    atexit.register(report.write)
    _before_exit(report.write)


def _before_exit(write: Callable) -> None:
    """A process that ends by os._exit, as forked children do, runs no exit handlers."""
    leave = os._exit

    def _exit(status):
        try:
            write(status)
        finally:
            leave(status)

    os._exit = _exit
