"""python -m memorymark_worker IN OUT, file descriptors of pipes."""

from __future__ import annotations

import sys


def main() -> None:
    # "-m" puts the current folder first on the path, where a file called
    # random.py would hide Python's own. A user's script asks for its folder.
    if sys.path and sys.path[0] in ("", "."):
        del sys.path[0]
    if sys.argv[1] == "child":
        from . import child

        child.run_spawned(int(sys.argv[2]))
    else:
        from . import nursery

        nursery.Nursery(int(sys.argv[1]), int(sys.argv[2])).run()


if __name__ == "__main__":
    main()
