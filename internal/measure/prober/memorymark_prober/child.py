"""A fresh process for one probe. It reports over a pipe of its own, so that
whatever its code does to it, the nursery can tell."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import Any, Callable

from . import failure, imports, protocol


def fork(work: Callable[[int], None], close: list[int]) -> tuple[int, int]:
    """Starts a child with all that is imported, which works with its end of a
    pipe; its process id and our end."""
    read, write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            for fd in (read, *close):
                os.close(fd)
            die_with_parent()
            os.setsid()  # a group of its own, to be killed as one
            for signum in (signal.SIGINT, signal.SIGTERM):
                signal.signal(signum, signal.SIG_DFL)
            work(write)
            status = 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)  # no exit handlers of the parent
    os.close(write)
    return pid, read


def wait_for_request(prepare: dict[str, Any], read: int, write: int) -> None:
    """Imports by itself, opens the device, and waits. Nothing is allocated
    there yet: what is measured later is a fresh process all the same."""
    try:
        imports.load(prepare)
        from . import devices

        devices.open_device(prepare["device"], None).synchronize()
        protocol.send(write, {"type": "warm"})
    except Exception:
        return  # a child that is started for the request will report it
    line = protocol.read_line(read)
    if line:
        run(json.loads(line), write)


def spawn(request: dict[str, Any]) -> tuple[int, int]:
    """Starts a child where a fork is not safe (macOS): it imports again."""
    import subprocess

    read, write = os.pipe()
    start = "import sys; sys.path[0] = sys.argv[1]; from memorymark_prober.__main__ import main; main(sys.argv[2:])"
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    process = subprocess.Popen(
        [sys.executable, "-c", start, folder, "child", str(write)], stdin=subprocess.PIPE, pass_fds=[write], start_new_session=True
    )
    os.close(write)
    assert process.stdin is not None
    process.stdin.write(json.dumps(request).encode())
    process.stdin.close()
    return process.pid, read


def run_spawned(write: int) -> None:
    run(json.load(sys.stdin), write)


def run(request: dict[str, Any], write: int) -> None:
    """Answers a request over a pipe: events, then one result."""
    os.set_inheritable(write, False)

    def emit(message: dict[str, Any]) -> None:
        if message["type"] != "step":  # the last word: no one waits for more
            sys.stdout.flush()
            sys.stderr.flush()
        protocol.send(write, message)

    try:
        if request["type"] == "look":
            from . import devices

            emit({"type": "result", **devices.look(request["device"])})
        else:
            from .probe import Probe

            if request.get("build_once"):
                import torch

                torch.set_num_threads(1)  # OpenMP's threads stayed with the process that built the model
            emit({"type": "result", **Probe(request, emit).run()})
    except Exception as error:
        emit({"type": "failed", "failure": failure.describe(error)})


def die_with_parent() -> None:
    """Linux only: a nursery that is killed takes its children with it."""
    if sys.platform == "linux":
        PR_SET_PDEATHSIG = 1
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
