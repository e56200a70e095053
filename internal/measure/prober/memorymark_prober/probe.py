"""The steps of a probe, and what is read off the device while they run."""

from __future__ import annotations

import contextlib
import gc
import inspect
import statistics
import sys
import time
from typing import Any, Callable, ContextManager, Literal, Optional

import torch

from . import adapters, auto, catalog, devices, failure, loops, user
from .devices import Device
from .subject import Subject, Workload

Emit = Callable[[dict[str, Any]], None]


class Probe:
    """Runs a workload at one or more batches in this process."""

    def __init__(self, request: dict[str, Any], emit: Emit) -> None:
        self.request = request
        self.w: Workload = {**request["workload"], "recipe": request["recipe"]}
        self.emit = emit
        began = time.perf_counter()
        self.device: Device = devices.open_device(
            request["device"], request.get("limit_bytes"), self.w.get("expandable_segments", False), not request.get("times_only")
        )
        self.device_seconds = time.perf_counter() - began
        self.phase = "build"
        self.at = 0  # the step that runs
        self.began = 0.0  # when it did
        self.loop: Optional[loops.Described] = None  # if it is no plain one
        self.peaks: dict[str, dict[str, int]] = {}  # by phase, of this step

    def run(self) -> dict[str, Any]:
        """The outcome of every batch up to the first that fails."""
        use_precision(self.w["precision"])
        self.import_class()
        report: dict[str, Any] = {"outcomes": [], "device_seconds": round(self.device_seconds, 3)}
        with self.device.entered():
            if self.request.get("record"):
                self.start_recording("all" if self.records("process") else "state")
            self.device.reset()
            subject = self.build(report)
            if subject:
                report["outcomes"] = self.batches(subject)
            report.update(self.device.counters(), **self.device.memory(), host_peak_bytes=devices.host_peak(), assumed=made_up())
            if self.request.get("compile"):
                report["compiled_graphs"] = compiled_graphs()
        return report

    def import_class(self) -> None:
        """Modules may make tensors when they are imported, as torchaudio's do.
        While the model is built these would be on the device."""
        with contextlib.suppress(failure.UserError):  # which building it reports
            if self.w["recipe"].get("auto"):
                auto.class_of(self.w["model_type"], self.w["architecture"])
            elif not self.w.get("user"):
                catalog.class_of(self.w["recipe"]["module"], self.w["architecture"])

    def make(self, report: dict[str, Any]) -> Subject:
        if self.w.get("user"):
            return user.make(self.w, self.device.type)
        if self.w["recipe"].get("auto"):
            return auto.make(self.w, self.device.type, report.setdefault("notes", []))
        return catalog.make(self.w, self.device.type)

    def build(self, report: dict[str, Any]) -> Optional[Subject]:
        began = time.perf_counter()
        try:
            subject = self.make(report)
            if self.request.get("compile"):
                subject.model = torch.compile(subject.model)  # type: ignore[assignment]
        except Exception as error:
            report["outcomes"] = [self.failed({"batch_size": n, "steps": []}, error, 0) for n in self.request["batches"]]
            return None
        self.device.synchronize()
        report["build_seconds"] = round(time.perf_counter() - began, 3)
        report["parameters"] = sum(adapters.elements(p) for p in subject.model.parameters())
        report["model_allocated"] = self.device.allocated()
        return subject

    def batches(self, subject: Subject) -> list[dict[str, Any]]:
        outcomes = []
        for n in self.request["batches"]:
            outcomes.append(self.batch(subject, n))
            if "failure" in outcomes[-1]:
                break  # half a step may have left half of an optimizer's state
            if len(self.request["batches"]) > 1:
                self.clear(subject)
        return outcomes

    def batch(self, subject: Subject, n: int) -> dict[str, Any]:
        """Warms up, runs the steps that count, and times some more."""
        outcome: dict[str, Any] = {"batch_size": n, "steps": []}
        self.at, inputs = 0, None
        try:
            self.enter("inputs")
            if loops.librarys(self.w):
                self.hand_over(subject, n, outcome)
                return outcome
            inputs = subject.batch(n, self.device.type)
            self.loop = loops.Described(self.w, subject) if loops.described(self.w) else None
            for step in range(1, self.request.get("warmup_steps", 0) + 1):
                self.at = step
                self.step(subject, inputs)
            self.count_from_here()
            for step in range(1, self.request["steps"] + 1):
                self.at = step
                self.begin_step()
                self.step(subject, inputs)
                if subject.optimizer is None or self.w["phase"] != "train":
                    self.device.end_step()
                outcome["steps"].append(self.end_step(n))
            self.finish(outcome)
            if self.request.get("timed_steps"):
                outcome["seconds_per_step"] = self.time(subject, inputs, outcome["steps"][-1]["seconds"])
        except Exception as error:
            self.failed(outcome, error, self.at)
        return outcome

    def hand_over(self, subject: Subject, n: int, outcome: dict[str, Any]) -> None:
        """Has a library run the steps, and watches."""
        watched = Watched(self, n, outcome)
        loops.run(self.w, subject, self.device.type, n, watched.warmup + watched.steps + watched.timed, watched)

    def count_from_here(self) -> None:
        """What comes now is measured."""
        if self.records("steps"):
            self.start_recording("all")
        self.device.begin_work()

    def finish(self, outcome: dict[str, Any]) -> None:
        """All measured steps ran."""
        if work := self.device.work():
            outcome["work"] = work
        self.write_recording(outcome)  # recorded steps are slower

    def begin_step(self) -> None:
        self.peaks = {}
        self.device.synchronize()
        self.began = time.perf_counter()

    def end_step(self, n: int) -> dict[str, Any]:
        """What a step took that has ended."""
        self.device.synchronize()
        seconds = time.perf_counter() - self.began
        kinds = {kind for peak in self.peaks.values() for kind in peak}
        done: dict[str, Any] = {f"peak_{kind}": max(peak[kind] for peak in self.peaks.values()) for kind in sorted(kinds)}
        done.update(
            end_allocated=self.device.allocated(),
            seconds=round(seconds, 6),
            phases=dict(self.peaks),
        )
        self.emit({"type": "step", "batch_size": n, "step": self.at, **done})
        return done

    def step(self, subject: Subject, inputs: Any) -> None:
        """One training step, as a plain loop writes it, or as its own loop does."""
        if self.loop and self.w["phase"] == "train":
            self.loop.step(inputs, self.within, self.autocast, lambda: self.update(subject))
            return
        if self.w["phase"] == "infer":
            with self.within("forward"), torch.no_grad(), self.autocast():
                subject.call(inputs)
            return
        with self.within("forward"), self.autocast():
            output = subject.call(inputs)
            loss = subject.loss(output, inputs)
        if self.w["phase"] == "forward":
            return
        del output
        with self.within("backward"):
            loss.backward()
        for _ in range(self.w["accumulate"] - 1):
            del loss
            with self.within("forward"), self.autocast():
                loss = subject.loss(subject.call(inputs), inputs)
            with self.within("backward"):
                loss.backward()
        with self.within("optimizer"):
            self.update(subject)

    def update(self, subject: Subject) -> None:
        if subject.optimizer is None or self.w["phase"] == "backward":
            subject.model.zero_grad(set_to_none=True)
            return
        scaler = self.loop.scaler if self.loop else None
        if self.w["clip_grad_norm"]:
            if scaler:
                scaler.unscale_(subject.optimizer)
            torch.nn.utils.clip_grad_norm_(subject.model.parameters(), 1.0)
        if scaler:
            scaler.step(subject.optimizer)
            scaler.update()
        else:
            subject.optimizer.step()
        if not self.loop:
            subject.optimizer.zero_grad(set_to_none=True)

    @contextlib.contextmanager
    def within(self, phase: str) -> Any:
        """A part of a step: its peaks are its own, recordings are marked."""
        self.enter(phase)
        with self.mark(phase):
            yield
        self.leave()

    def mark(self, phase: str) -> ContextManager[Any]:
        return torch.profiler.record_function(phase) if self.request.get("record") else contextlib.nullcontext()

    def leave(self) -> None:
        """Takes down the peaks of a part of a step that is over."""
        peaks, before = self.device.peaks(), self.peaks.get(self.phase, {})
        self.peaks[self.phase] = {kind: max(size, before.get(kind, 0)) for kind, size in peaks.items()}

    def enter(self, phase: str) -> None:
        self.phase = phase
        self.device.reset()

    def autocast(self) -> ContextManager[Any]:
        dtype = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}.get(self.w["precision"])
        return torch.autocast(self.device.type, dtype=dtype) if dtype else contextlib.nullcontext()

    def time(self, subject: Subject, inputs: Any, about: float) -> float:
        """Seconds of a step, the median of three runs of several: steps follow
        each other without waiting for the device, as they do in training."""
        runs: list[float] = []
        enough = 0.3  # seconds of a run
        count = max(min(self.request["timed_steps"] // 3, int(enough / about)), 1)
        for _ in range(3):
            self.device.synchronize()
            began = time.perf_counter()
            for _ in range(count):
                self.step(subject, inputs)
            self.device.synchronize()
            runs.append((time.perf_counter() - began) / count)
        return round(statistics.median(runs), 6)

    def failed(self, outcome: dict[str, Any], error: BaseException, step: int) -> dict[str, Any]:
        outcome["failure"] = {**failure.describe(error), "phase": self.phase, "step": step}
        if self.device.type == "cpu" and outcome["failure"]["class"] == failure.HOST_MEMORY:
            outcome["failure"]["class"] = failure.OUT_OF_MEMORY  # the host is the device
        with contextlib.suppress(Exception):  # a device that failed may not answer
            outcome["failure"].update({f"{kind}_bytes": size for kind, size in self.device.peaks().items()})
            self.write_recording(outcome)
        return outcome

    def clear(self, subject: Subject) -> None:
        """Leaves nothing of a batch to the next one."""
        subject.model.zero_grad(set_to_none=True)
        gc.collect()
        self.device.empty()

    def records(self, scope: str) -> bool:
        record = self.request.get("record")
        return record is not None and bool(record["scope"] == scope)

    def start_recording(self, what: Literal["all", "state"]) -> None:
        """Records "all" from now on, or only the "state": where what is live
        came from, which a recording that begins later then knows."""
        if self.device.type != "cuda":
            raise RuntimeError(f"PyTorch records no memory history of a {self.device.type}")
        begin = torch.cuda.memory._record_memory_history
        options: dict[str, Any] = {"max_entries": self.request["record"]["max_entries"], "stacks": "python"}
        if self.w["checkpointing"]:
            # Taking a stack while a checkpoint recomputes in backward fails in
            # PyTorch 2.11 with "SystemError: ... returned NULL".
            options["context"] = None
        if "global_record_annotations" in inspect.signature(begin).parameters:
            options["global_record_annotations"] = True  # phases become marks
        begin(what, **options)

    def write_recording(self, outcome: dict[str, Any]) -> None:
        record = self.request.get("record")
        if record and "recording" not in outcome:
            torch.cuda.memory._dump_snapshot(record["path"])
            torch.cuda.memory._record_memory_history(enabled=None)
            outcome["recording"] = record["path"]


class Watched:
    """Steps that a library runs, measured in its callbacks."""

    def __init__(self, probe: Probe, n: int, outcome: dict[str, Any]) -> None:
        self.probe, self.n, self.outcome = probe, n, outcome
        self.warmup: int = probe.request.get("warmup_steps", 0)
        self.steps: int = probe.request["steps"]
        self.timed: int = probe.request.get("timed_steps", 0)
        self.done = 0
        self.mark: Optional[ContextManager[Any]] = None
        self.timing = 0.0  # when that began

    def begin(self) -> None:
        if self.done == self.warmup:
            self.probe.count_from_here()
        self.probe.at = self.done + 1 - (self.warmup if self.done >= self.warmup else 0)
        self.probe.begin_step()
        self.probe.enter("forward")

    def switch(self, phase: str) -> None:
        self.close()
        self.probe.enter(phase)
        self.mark = self.probe.mark(phase)
        self.mark.__enter__()

    def close(self) -> None:
        if self.mark:
            self.mark.__exit__(None, None, None)
            self.mark = None
            self.probe.leave()

    def end(self) -> None:
        self.close()
        self.done += 1
        counted = self.done - self.warmup
        if 0 < counted <= self.steps:
            self.outcome["steps"].append(self.probe.end_step(self.n))
        if counted == self.steps:
            self.probe.finish(self.outcome)
            self.timing = time.perf_counter()
        elif counted == self.steps + self.timed:
            self.probe.device.synchronize()
            self.outcome["seconds_per_step"] = round((time.perf_counter() - self.timing) / self.timed, 6)


def made_up() -> list[dict[str, Any]]:
    """What was made up on an emulated card because no kernel computed it."""
    shadows = sys.modules.get("memorymark_emulate.shadows")
    made: list[dict[str, Any]] = shadows.assumptions() if shadows else []
    return made


def compiled_graphs() -> int:
    """How many graphs were compiled in this process: torch.compile falls back
    to eager steps without a word where it cannot compile."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


def use_precision(precision: str) -> None:
    """TF32 only where it was asked for, whatever PyTorch's default is."""
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    if precision == "tf32":
        torch.set_float32_matmul_precision("high")
