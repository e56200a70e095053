"""This machine's memory, as far as this process may use it: control groups,
such as a container's, may allow less than there is."""

from __future__ import annotations

import os
from typing import Iterator, Optional


def memory(root: str = "/") -> tuple[int, int]:
    """The bytes that this process could have, and those that are free. Where
    nothing says what is free (macOS), all of them count as free."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    free = total
    for line in _lines(os.path.join(root, "proc/meminfo")):
        name, _, amount = line.partition(":")
        if name == "MemTotal":
            total = int(amount.split()[0]) * 1024
        elif name == "MemAvailable":
            free = int(amount.split()[0]) * 1024
    for limit, used in _groups(root):
        total, free = min(total, limit), min(free, max(limit - used, 0))
    return total, free


def _groups(root: str) -> Iterator[tuple[int, int]]:
    """Limit and use of every control group around this process that has a limit
    on memory, of both versions of the interface
    (docs.kernel.org/admin-guide/cgroup-v2.html, cgroup-v1/memory.html)."""
    for line in _lines(os.path.join(root, "proc/self/cgroup")):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mount, limit, use, cached = "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            mount, limit, use, cached = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        parts = [part for part in path.split("/") if part and part != ".."]
        for depth in range(len(parts), -1, -1):  # a group's limit holds for those below it
            folder = os.path.join(root, mount, *parts[:depth])
            most, used = _number(folder, limit), _number(folder, use)
            if most is not None and used is not None:
                yield most, max(used - _cached(folder, cached), 0)


def _cached(folder: str, name: str) -> int:
    """What the kernel would give back first: it counts as used there."""
    for line in _lines(os.path.join(folder, "memory.stat")):
        key, _, amount = line.partition(" ")
        if key == name:
            return int(amount)
    return 0


def _number(folder: str, name: str) -> Optional[int]:
    text = "".join(_lines(os.path.join(folder, name))).strip()
    return int(text) if text.isdigit() else None  # "max" is no limit


def _lines(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().splitlines()
    except OSError:
        return []
