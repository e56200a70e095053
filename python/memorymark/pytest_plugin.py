"""Tests of GPU memory, without a GPU.

    @pytest.mark.gpu_memory("22 GiB", gpu="rtx-4090")
    def test_training_step():
        train_one_step(device="cuda")

    def test_cache(emulated_gpu):
        fill_cache()
        assert emulated_gpu.peak_reserved < 8 << 30

Such a test runs in a process of its own, on an emulated card under your PyTorch. It
fails if it reserves more than the marker allows or runs out of memory, and then shows
the peak and the lines that the memory comes from.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Optional

import pytest

from . import _program
from .answers import gib

REPORTS = "MEMORYMARK_PYTEST_REPORTS"  # where the process of a test writes its reports
CARD = "MEMORYMARK_PYTEST_GPU"

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def pytest_addoption(parser: Any) -> None:
    parser.addini("memorymark_gpu", "card of tests that name none", default="a10")


def pytest_configure(config: Any) -> None:
    config.addinivalue_line(
        "markers",
        'gpu_memory(limit=None, gpu=None): run the test on an emulated GPU; it may reserve as much as limit, such as "22 GiB" '
        "(default: what the card has), on this card (memorymark gpus lists them)",
    )
    if REPORTS in os.environ:
        config.pluginmanager.register(_Child(config, os.environ[REPORTS]))


class _Child:
    """Writes the reports of the one test that runs in this process."""

    def __init__(self, config: Any, path: str) -> None:
        self.config, self.path = config, path

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        with open(self.path, "a", encoding="utf-8") as f:
            f.write(json.dumps(data) + "\n")


class EmulatedGPU:
    """The card that a test runs on."""

    def __init__(self, gpu: str) -> None:
        self.id = gpu

    @property
    def name(self) -> str:
        import torch

        return str(torch.cuda.get_device_name())

    @property
    def memory(self) -> int:
        import torch

        return int(torch.cuda.get_device_properties(0).total_memory)

    @property
    def peak_allocated(self) -> int:
        import torch

        return int(torch.cuda.max_memory_allocated())

    @property
    def peak_reserved(self) -> int:
        import torch

        return int(torch.cuda.max_memory_reserved())


@pytest.fixture
def emulated_gpu() -> EmulatedGPU:
    """The emulated card of this test, which runs in a process of its own."""
    return EmulatedGPU(os.environ.get(CARD, ""))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: Any) -> Optional[bool]:
    mark = item.get_closest_marker("gpu_memory")
    if REPORTS in os.environ or (mark is None and "emulated_gpu" not in getattr(item, "fixturenames", ())):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _run(item, mark):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _run(item: Any, mark: Any) -> List[Any]:
    """Runs a test in a process of its own and returns its reports."""
    try:
        limit, gpu = _arguments(item, mark)
    except ValueError as wrong:
        return [_failed(item, "setup", str(wrong))]
    with tempfile.TemporaryDirectory(prefix="memorymark-pytest-") as folder:
        reports, summary, snapshot = (os.path.join(folder, name) for name in ("reports", "summary.json", "test.pickle"))
        command = ["run", "--gpu", gpu, "--summary", summary, "--snapshot", snapshot, "--", sys.executable, "-m", "pytest", *_options(item)]
        environment = {**os.environ, REPORTS: reports, CARD: gpu}
        done = subprocess.run(
            [_program.path(), *command], cwd=str(item.config.rootpath), env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )
        found = _read(item, reports)
        if not found:
            return [_failed(item, "call", f"the test's process ended with {done.returncode} and no result:\n{done.stdout[-4000:]}")]
        _judge(item, found, _load(summary), limit, gpu, snapshot)
        return found


def _arguments(item: Any, mark: Any) -> "tuple[Optional[int], str]":
    arguments: List[Any] = list(mark.args) if mark else []
    keys: Dict[str, Any] = dict(mark.kwargs) if mark else {}
    limit = arguments.pop(0) if arguments else keys.pop("limit", None)
    gpu = arguments.pop(0) if arguments else keys.pop("gpu", None)
    if arguments or keys:
        raise ValueError(f"gpu_memory takes a limit and a gpu, not {arguments or keys}")
    return None if limit is None else parse(limit), str(gpu or item.config.getini("memorymark_gpu"))


def parse(size: Any) -> int:
    """Reads an amount of memory, such as "22 GiB"."""
    if isinstance(size, int):
        return size
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?i?B?)\s*", str(size), re.IGNORECASE)
    if match is None or match.group(2).upper() not in UNITS:
        raise ValueError(f'gpu_memory: {size!r} is not an amount of memory, such as "22 GiB"')
    return int(float(match.group(1)) * UNITS[match.group(2).upper()])


def _options(item: Any) -> List[str]:
    """What makes the process collect this test as this one did, and nothing else."""
    config = item.config
    out = [item.nodeid, "-q", "-p", "no:cacheprovider", "-o", "addopts=", "--rootdir", str(config.rootpath)]
    out += ["--import-mode", config.getoption("importmode")]
    if config.inipath is not None:
        out += ["-c", str(config.inipath)]
    if not config.pluginmanager.has_plugin("memorymark.pytest_plugin") or os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        out += ["-p", "memorymark.pytest_plugin"]
    for plugin in config.getoption("plugins") or []:
        if plugin != "no:cacheprovider":
            out += ["-p", plugin]
    for value in config.getoption("override_ini") or []:
        out += ["-o", value]
    return out


def _read(item: Any, path: str) -> List[Any]:
    try:
        with open(path, encoding="utf-8") as f:
            lines = f.read().splitlines()
    except FileNotFoundError:
        return []
    return [item.config.hook.pytest_report_from_serializable(config=item.config, data=json.loads(line)) for line in lines]


def _load(path: str) -> Dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as f:
            return dict(json.load(f))
    except FileNotFoundError:
        return {}


def _judge(item: Any, reports: List[Any], summary: Dict[str, Any], limit: Optional[int], gpu: str, snapshot: str) -> None:
    """Fails the test if it needed too much, and says what it needed."""
    call = next((r for r in reports if r.when == "call"), None)
    if call is None or call.skipped:
        return
    processes = summary.get("processes") or []
    peak = max((d["reserved"] for p in processes for d in p["devices"]), default=0)
    text = f"peak {gib(peak)} reserved on {summary.get('gpu_name', gpu)}"
    ran_out = [oom for p in processes for oom in p.get("out_of_memory") or []]
    if ran_out:
        text += f"; out of memory at {ran_out[-1].get('where') or 'an unknown line'}, which requested {gib(ran_out[-1]['requested'])}"
    over = limit is not None and peak > limit
    if over:
        text += f", which is {gib(peak - limit)} more than the {gib(limit)} that the test may reserve"
    unused = call.passed and limit is not None and peak == 0
    if unused:
        text = "the test used no GPU memory, so its limit says nothing: does it use the device cuda?"
    item.user_properties.append(("gpu_peak_reserved", peak))
    call.user_properties.append(("gpu_peak_reserved", peak))
    if call.passed and over or unused:
        call.outcome, call.longrepr = "failed", text
        if over:
            call.longrepr += "\n\n" + _lines(snapshot, "peak", str(item.config.rootpath))
    elif call.failed and ran_out:
        call.sections.append(("GPU memory", text + "\n\n" + _lines(snapshot, "oom", str(item.config.rootpath))))
    else:
        call.sections.append(("GPU memory", text))


def _lines(snapshot: str, moment: str, folder: str) -> str:
    """The largest allocations at a moment, with the lines that made them."""
    if not os.path.exists(snapshot):
        return "without a recording, the lines are unknown"
    try:
        top = _program.ask(["snapshot", "top", snapshot, "--at", moment, "-n", "10"])
    except _program.MemoryMarkError as failure:
        return str(failure)
    out = [f"{gib(top['live_bytes'])} live " + ("at the peak" if moment == "peak" else "when memory ran out")]
    for group in top["groups"]:
        frame = group.get("user_frame") or group.get("model_frame")
        where = f"{_short(frame['file'], folder)}:{frame['line']} {frame['function']}" if frame else "backward, without a line of Python"
        out.append(f"{gib(group['total_bytes']):>12}  {group.get('category', 'unknown').replace('_', ' '):<16}  {where}")
    return "\n".join(out)


def _short(file: str, folder: str) -> str:
    return os.path.relpath(file, folder) if file.startswith(os.path.join(folder, "")) else file


def _failed(item: Any, when: str, text: str) -> Any:
    return pytest.TestReport(item.nodeid, item.location, {}, "failed", text, when)  # type: ignore[arg-type]
