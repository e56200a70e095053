"""python -m memorymark: the command line."""

import os
import sys

from ._program import path

program = path()
if sys.platform == "win32":
    import subprocess

    sys.exit(subprocess.call([program, *sys.argv[1:]]))
os.execv(program, [program, *sys.argv[1:]])
