"""The parent: imports once, touches no device, and starts a child a probe.

A child that hangs is killed with its group, one that dies is reported as what
killed it, and none outlives the pipe to MemoryMark.

Where a user's model takes long to build, a builder builds it once, on the CPU: a
nursery of its own, forked from this one, whose children find it built.
"""

from __future__ import annotations

import functools
import os
import platform
import select
import selectors
import signal
import sys
import time
from dataclasses import dataclass
from typing import Any, Callable, Optional

from . import child, failure, imports, protocol
from .protocol import Message, Reader

LOOK_EVERY = 0.5  # seconds, for children that exited


@dataclass
class Running:
    """A child, and the request it answers."""

    id: int
    pid: int
    reader: Reader
    began: float
    deadline: float
    answer: Optional[Message] = None
    killed: str = ""  # why we killed it
    left_others: bool = False  # exited, and what it started still has its pipe


@dataclass
class Spare:
    """A child that waits for its request."""

    pid: int
    requests: int
    answers: int


@dataclass
class Builder:
    """A nursery that has a user's model built, and what was asked of it."""

    pid: int
    requests: int
    reader: Reader
    deadline: float  # for building
    asked: dict[int, Message]  # that have no answer yet
    built: bool = False
    late: bool = False


class Nursery:
    def __init__(self, requests: int, answers: int) -> None:
        for fd in (requests, answers):
            os.set_inheritable(fd, False)
        self.requests = Reader(requests)
        self.answers = answers
        self.children: dict[int, Running] = {}  # by file descriptor
        self.spares: list[Spare] = []
        self.is_builder = False
        self.builders: dict[tuple[str, str], Optional[Builder]] = {}  # by file and function; None where it cannot be built ahead
        self.selector = selectors.DefaultSelector()
        self.selector.register(requests, selectors.EVENT_READ)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # MemoryMark says when to stop
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

    def run(self) -> None:
        # torch.cuda.is_available() asks the driver, after which no fork may use
        # it, unless NVML is asked instead.
        os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
        self.send({"type": "hello", "protocol": protocol.VERSION, "python": platform.python_version()})
        self.serve()

    def serve(self) -> None:
        try:
            while not self.requests.ended:
                for key, _ in self.selector.select(self.patience()):
                    self.listen(key.fd)
                self.end_exited()
                self.kill_overdue()
        finally:
            for running in list(self.children.values()):
                self.kill(running, "the end")
            for spare in self.spares:
                self.drop(spare)
            for builder in self.builders.values():
                if builder:
                    kill_group(builder.pid)  # its children die with it

    def send(self, message: Message) -> None:
        protocol.send(self.answers, message)

    def patience(self) -> Optional[float]:
        """How long nothing needs to be done."""
        deadlines = [r.deadline for r in self.children.values() if not r.killed]
        deadlines += [f.deadline for f in self.builders.values() if f and not f.built and not f.late]
        return max(min(min(deadlines) - time.monotonic(), LOOK_EVERY), 0) if deadlines else None

    def end_exited(self) -> None:
        """Ends children that have exited while others hold their pipe open: code that goes into the background does that."""
        for running in list(self.children.values()):
            if exited(running.pid) and not self.drain(running.reader, lambda: self.relay(running)):
                running.left_others = True
                self.finish(running)
        for key, builder in list(self.builders.items()):
            if builder and exited(builder.pid) and not self.drain(builder.reader, lambda: self.hear(key)):
                self.end_builder(key, builder)

    def drain(self, reader: Reader, hear: Callable[[], None]) -> bool:
        """Reads what was written by now; whether that was the end."""
        for _ in range(1000):  # others may write for ever
            if reader.fd not in self.selector.get_map():
                return True
            if not select.select([reader.fd], [], [], 0)[0]:
                break
            hear()
        return False

    def listen(self, fd: int) -> None:
        if fd == self.requests.fd:
            for line in self.requests.read():
                message = protocol.parse(line)
                if message is None:
                    raise ValueError(f"not a message: {line[:200]!r}")
                self.obey(message)
        elif fd in self.children:
            self.relay(self.children[fd])
        else:
            self.hear(next(key for key, builder in self.builders.items() if builder and builder.reader.fd == fd))

    def obey(self, message: Message) -> None:
        kind = message["type"]
        if kind == "prepare":
            self.prepare(message)
        elif kind == "probe" and message.get("build_once") and not self.is_builder:
            self.ask_builder(message)
        elif kind in ("look", "probe"):
            self.start(message)
        elif kind == "cancel":
            for running in list(self.children.values()):
                if running.id == message["id"]:
                    self.kill(running, "cancelled")
            self.cancel_at_builder(message)
        else:
            self.send({"type": "failed", "id": message.get("id", 0), "failure": {"class": failure.OTHER, "message": f"unknown request {kind}"}})

    def prepare(self, message: Message) -> None:
        """Imports PyTorch and what the model needs, and says the versions."""
        began = time.perf_counter()
        answer: Message = {"type": "ready", "id": message["id"]}
        try:
            import torch  # noqa: F401  what follows can begin with it

            if "look_id" in message:
                self.start({"type": "look", "id": message["look_id"], "device": message["device"], "timeout_seconds": message["timeout_seconds"]})
            for _ in range(message.get("spares", 0)):
                self.start_spare(message)
            answer.update(imports.load(message))
        except Exception as error:
            answer = {"type": "failed", "id": message["id"], "failure": describe_import(error)}
        answer["seconds"] = round(time.perf_counter() - began, 3)
        self.send(answer)

    def start(self, message: Message) -> None:
        pid, fd = self.take_spare(message) or self.new_child(message)
        now = time.monotonic()
        self.children[fd] = Running(message["id"], pid, Reader(fd), now, now + message["timeout_seconds"])
        self.selector.register(fd, selectors.EVENT_READ)
        self.send({"type": "started", "id": message["id"], "pid": pid})

    def new_child(self, message: Message) -> tuple[int, int]:
        if sys.platform == "darwin" or message.get("spawn"):
            return child.spawn(message)
        return child.fork(lambda write: child.run(message, write), self.not_for_children())

    def not_for_children(self) -> list[int]:
        pipes = [fd for spare in self.spares for fd in (spare.answers, spare.requests)]
        pipes += [fd for builder in self.builders.values() if builder for fd in (builder.reader.fd, builder.requests)]
        return [self.requests.fd, self.answers, *self.children, *pipes]

    def start_spare(self, prepare: Message) -> None:
        """Starts a child that gets its request later. While we import, it does
        too, and opens the device, which takes as long as some steps."""
        if sys.platform == "darwin":
            return
        read, write = os.pipe()
        work = functools.partial(child.wait_for_request, prepare, read)
        pid, answers = child.fork(work, [*self.not_for_children(), write])
        os.close(read)
        self.spares.append(Spare(pid, write, answers))

    def take_spare(self, message: Message) -> Optional[tuple[int, int]]:
        """A spare child that is ready. To wait for one takes longer than to
        start another, which has all that we have imported."""
        if message["type"] != "probe":
            return None
        while self.spares:
            spare = self.spares.pop()
            ready, _, _ = select.select([spare.answers], [], [], 0)
            if ready and protocol.read_line(spare.answers):
                protocol.send(spare.requests, message)
                os.close(spare.requests)
                return spare.pid, spare.answers
            self.drop(spare)
        return None

    def drop(self, spare: Spare) -> None:
        kill_group(spare.pid)
        os.waitpid(spare.pid, 0)
        os.close(spare.requests)
        os.close(spare.answers)

    def ask_builder(self, message: Message) -> None:
        """Passes a probe to the process that builds its model, when it is built."""
        user = message["workload"]["user"]
        key = (user["path"], user["function"])
        if key not in self.builders:
            self.builders[key] = self.new_builder(key, message["timeout_seconds"])
        builder = self.builders[key]
        if builder is None:
            self.start(message)
            return
        builder.asked[message["id"]] = message
        if builder.built:
            protocol.send(builder.requests, message)

    def new_builder(self, key: tuple[str, str], timeout: float) -> Builder:
        read, write = os.pipe()
        pid, answers = child.fork(lambda answers: build_and_serve(key, read, answers), [*self.not_for_children(), write])
        os.close(read)
        self.selector.register(answers, selectors.EVENT_READ)
        return Builder(pid, write, Reader(answers), time.monotonic() + timeout, {})

    def hear(self, key: tuple[str, str]) -> None:
        """Passes on what a builder's children say, and begins when it is ready."""
        builder = self.builders[key]
        assert builder is not None
        for line in builder.reader.read():
            message = protocol.parse(line)
            if message is None:
                continue
            if message["type"] == "built":
                builder.built = True
                for asked in builder.asked.values():
                    protocol.send(builder.requests, asked)
                continue
            if message["type"] in ("result", "failed"):
                builder.asked.pop(message["id"], None)
            self.send(message)
        if builder.reader.ended:
            self.end_builder(key, builder)

    def end_builder(self, key: tuple[str, str], builder: Builder) -> None:
        """One that cannot build ahead ends by itself: then each probe builds for
        itself, and reports what goes wrong."""
        self.selector.unregister(builder.reader.fd)
        os.close(builder.reader.fd)
        os.close(builder.requests)
        _, status = os.waitpid(builder.pid, 0)
        self.builders[key] = None
        for asked in builder.asked.values():
            if builder.late:
                self.send({"type": "failed", "id": asked["id"], "failure": {"class": failure.TIMEOUT, "message": "timeout"}})
            elif builder.built or os.WIFSIGNALED(status):
                self.send({"type": "failed", "id": asked["id"], "failure": describe_death(status)})
            else:
                self.start(asked)

    def cancel_at_builder(self, message: Message) -> None:
        for builder in self.builders.values():
            if builder and message["id"] in builder.asked:
                if builder.built:
                    protocol.send(builder.requests, message)
                else:
                    del builder.asked[message["id"]]
                    self.send({"type": "failed", "id": message["id"], "failure": {"class": "cancelled", "message": "cancelled"}})

    def relay(self, running: Running) -> None:
        """Passes on what a child says, whole lines only."""
        for line in running.reader.read():
            message = protocol.parse(line)
            if message is None:
                continue  # what follows from it is seen at the end
            message["id"] = running.id
            if message["type"] in ("result", "failed"):
                running.answer = message
            else:
                self.send(message)
        # An answer is the end: something that the child started may hold its
        # pipe open, and taking down a CUDA context politely takes time.
        if running.answer or running.reader.ended:
            self.finish(running)

    def finish(self, running: Running) -> None:
        self.selector.unregister(running.reader.fd)
        os.close(running.reader.fd)
        del self.children[running.reader.fd]
        kill_group(running.pid)  # what the child left running
        _, status = os.waitpid(running.pid, 0)
        answer = running.answer
        if answer is None or running.killed:
            answer = {"type": "failed", "id": running.id, "failure": self.death(running, status)}
        answer["wall_seconds"] = round(time.monotonic() - running.began, 3)
        self.send(answer)

    def death(self, running: Running, status: int) -> dict[str, Any]:
        if running.killed:
            return {"class": failure.TIMEOUT if running.killed == "timeout" else "cancelled", "message": running.killed}
        if running.reader.too_long():
            return {"class": failure.OTHER, "message": f"the process sent a line of more than {protocol.MAX_LINE >> 20} MiB"}
        if running.left_others:
            return describe_death(status, " and left others running; code that is measured must not go into the background")
        return describe_death(status, f" in the middle of a line ({bytes(running.reader.rest[:80])!r})" if running.reader.rest else "")

    def kill_overdue(self) -> None:
        now = time.monotonic()
        for running in list(self.children.values()):
            if now >= running.deadline and not running.killed:
                self.kill(running, "timeout")
        for builder in self.builders.values():
            if builder and not builder.built and not builder.late and now >= builder.deadline:
                builder.late = True
                kill_group(builder.pid)

    def kill(self, running: Running, why: str) -> None:
        running.killed = why
        kill_group(running.pid)


def build_and_serve(key: tuple[str, str], requests: int, answers: int) -> None:
    """Builds a user's model and serves probes of it. What makes use of the
    device while it is built cannot be built ahead: no fork may use it then."""
    nursery = Nursery(requests, answers)
    nursery.is_builder = True
    import torch

    from . import user

    try:
        user.build_ahead(*key)
    except Exception:
        return  # a probe that builds it will report it
    if not torch.cuda.is_initialized():
        nursery.send({"type": "built"})
        nursery.serve()


def exited(pid: int) -> bool:
    """Whether a child has ended; it stays to be waited for."""
    return hasattr(os, "waitid") and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def describe_death(status: int, half: str = "") -> dict[str, Any]:
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        likely = "; probably the system ran out of host memory" if name == "SIGKILL" else ""
        return {"class": failure.CRASH, "signal": name, "message": f"the process was killed by {name}{likely}"}
    return {"class": failure.CRASH, "message": f"the process ended with status {os.waitstatus_to_exitcode(status)} without an answer{half}"}


def kill_group(pid: int) -> None:
    for kill in (os.killpg, os.kill):  # a child that has no group yet
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def describe_import(error: Exception) -> dict[str, Any]:
    """A package that is missing has a class of its own."""
    text = str(error).strip() or type(error).__name__
    out: dict[str, Any] = {"class": failure.MISSING if isinstance(error, ImportError) else failure.OTHER, "error": type(error).__name__}
    out["message"] = text.splitlines()[0][: failure.MESSAGE]
    if isinstance(error, ModuleNotFoundError):
        out["package"] = (error.name or "").split(".")[0]
    return out
