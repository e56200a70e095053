"""Finds the memorymark program and runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from typing import Any, Dict, List, Optional, Sequence


class MemoryMarkError(Exception):
    """An error that MemoryMark reports. `hint` says what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message if not hint else f"{message}\nhint: {hint}")
        self.hint = hint


def path() -> str:
    """Where the program is: $MEMORYMARK_BINARY, where pip puts programs, $PATH."""
    named = os.environ.get("MEMORYMARK_BINARY")
    if named:
        if not os.path.isfile(named):
            raise MemoryMarkError(f"MEMORYMARK_BINARY is {named!r}, which is not a file")
        return named
    for folder in _folders():
        found = os.path.join(folder, "memorymark")
        if os.path.isfile(found):
            return found
    found_on_path = shutil.which("memorymark")
    if found_on_path is None:
        raise MemoryMarkError("the program memorymark was not found", "pip install --force-reinstall memorymark")
    return found_on_path


def _folders() -> List[str]:
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    user = "osx_framework_user" if sys.platform == "darwin" and sysconfig.get_config_var("PYTHONFRAMEWORK") else f"{os.name}_user"
    if user in sysconfig.get_scheme_names():
        folders.append(sysconfig.get_path("scripts", scheme=user))
    # pip install --target puts the program next to the package.
    folders.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"))
    return folders


def ask(arguments: Sequence[str]) -> Dict[str, Any]:
    """Runs a command with --json. "It does not fit" is an answer, not an error."""
    done = subprocess.run([path(), *arguments, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        answer: Optional[Any] = json.loads(done.stdout)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise MemoryMarkError(done.stderr.strip() or f"memorymark exited with status {done.returncode} and no message")
    if "error" in answer:
        raise MemoryMarkError(str(answer["error"]), str(answer.get("hint", "")))
    return answer


def text(arguments: Sequence[str]) -> str:
    """Runs a command and returns what it prints."""
    done = subprocess.run([path(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1, 4):  # yes, no, out of memory
        raise MemoryMarkError(done.stderr.strip())
    return done.stdout
