"""Lines of JSON over a pipe. docs/prober-protocol.md lists the messages."""

from __future__ import annotations

import json
import os
from typing import Any, Optional

VERSION = 1
MAX_LINE = 16 << 20  # bytes, as in link.go

Message = dict[str, Any]


def send(fd: int, message: Message) -> None:
    """Writes one whole line."""
    line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    while line:
        line = line[os.write(fd, line) :]


def read_line(fd: int) -> bytes:
    """Reads one line and nothing beyond it; what there is of it at an end."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(fd, 1)
        if not byte:
            break
        line += byte
    return line


class Reader:
    """Cuts what a pipe delivers into lines. Code of a user's own may write them, so one that is too long is the last."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.rest = bytearray()
        self.ended = False

    def read(self) -> list[bytes]:
        """The lines that are complete after one read, which may be none."""
        data = os.read(self.fd, 1 << 16)
        if not data or self.too_long():
            self.ended = True
            return []
        self.rest += data
        if b"\n" not in data:
            return []
        *lines, rest = bytes(self.rest).split(b"\n")
        self.rest = bytearray(rest)
        return lines

    def too_long(self) -> bool:
        return len(self.rest) > MAX_LINE


def parse(line: bytes) -> Optional[Message]:
    """A message, or None if the line is not one."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and isinstance(message.get("type"), str) else None
