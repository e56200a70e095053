"""Bounds on what a configuration may have made of this machine's memory: on a server it comes from anyone."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator

from .failure import UserError

CONFIGURATION = 1 << 30  # bytes; the largest of transformers' take some MiB
MODULES = 150_000  # Kimi K2 has 117,000 where each expert is a module


@contextlib.contextmanager
def small_configuration() -> Iterator[None]:
    """While a configuration is made. Some make a name of each label, or an entry for each layer, before anything tells how
    many there are. Address space is what Linux can bound within a process."""
    if sys.platform != "linux":
        yield
        return
    import resource

    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limits = [n for n in (soft, hard, used + CONFIGURATION) if n != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
    try:
        yield
    except MemoryError:
        raise UserError(f"the configuration takes more than {CONFIGURATION >> 30} GiB by itself; a number of labels or layers in it is too large") from None
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextlib.contextmanager
def countable_modules() -> Iterator[None]:
    """While a model is made, whose modules take the host's memory on any device."""
    from torch.nn.modules.module import register_module_module_registration_hook

    count = 0

    def check(*_: Any) -> None:
        nonlocal count
        count += 1
        if count > MODULES:
            raise UserError(f"the model has more than {MODULES:,} modules; a number of layers in its configuration is too large")

    handle = register_module_module_registration_hook(check)
    try:
        yield
    finally:
        handle.remove()
