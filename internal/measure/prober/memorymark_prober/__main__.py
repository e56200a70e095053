"""python -m memorymark_prober IN OUT, file descriptors of pipes."""

from __future__ import annotations

import sys


def main(arguments: list[str]) -> None:
    if arguments[0] == "child":
        from . import child

        child.run_spawned(int(arguments[1]))
    else:
        from . import nursery

        nursery.Nursery(int(arguments[0]), int(arguments[1])).run()


if __name__ == "__main__":
    main(sys.argv[1:])
