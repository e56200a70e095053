"""Fresh processes: forks of one that has imported everything and never touched the device."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch

GOODBYE = 10  # seconds that a process may take to end

Result = dict[str, Any]
Task = Callable[[], Result]


class Fresh:
    """A task running in a process of its own."""

    def __init__(self, task: Task, timeout: float) -> None:
        if torch.cuda.is_initialized():
            raise RuntimeError("CUDA was used before forking; a fork cannot use it then")
        context = multiprocessing.get_context("fork")
        self._answers, answer = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(task, answer))
        self._process.start()
        answer.close()  # only the child holds it now, so its death is seen as the end of the answers
        self._end = time.monotonic() + timeout

    def result(self) -> Result:
        """What the task returned, or {"error": …} where it raised, died or took too long."""
        if not self._answers.poll(max(0.0, self._end - time.monotonic())):
            self._process.kill()
            self._process.join()
            return {"error": "took too long"}
        try:
            result = self._answers.recv()
        except EOFError:
            result = {}
        self._process.join(GOODBYE)
        self._process.kill()  # in case it did not end by itself
        self._process.join()
        return result or {"error": f"died with exit code {self._process.exitcode}"}


def _run(task: Task, answer: Connection) -> None:
    try:
        result = task()
    except BaseException:
        result = {"error": traceback.format_exc()}
    answer.send(result)
    answer.close()
