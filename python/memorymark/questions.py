"""The questions: what the command line answers, as functions."""

from __future__ import annotations

import inspect
import json
import os
import sys
import tempfile
from typing import Any, Callable, Dict, List, Union

from . import _program
from .answers import Analysis, Explanation, Fit, Plan, Prediction

Model = Union[str, "os.PathLike[str]", Callable[..., Any]]


def predict(model: Model, *, picture: bool = False, **keys: Any) -> Prediction:
    """What three steps of a workload take.

    The model is an id of `memorymark models`, a name on the hub, the path of a
    config.json, a function of yours, or "train.py:make". Keys are those of a
    workload, as on the command line: batch, sequence, precision, optimizer,
    checkpointing, gpu and so on. With picture the answer has a timeline of its
    memory, which a notebook shows.
    """
    with tempfile.TemporaryDirectory() as folder:
        snapshot = os.path.join(folder, "predicted.pickle")
        more = ["--snapshot", snapshot] if picture else []
        answer = _program.ask(["predict", *_arguments(model, keys), *more])
        return Prediction.of(answer, _timeline(snapshot) if picture and os.path.exists(snapshot) else "")


def largest_batch(model: Model, **keys: Any) -> Analysis:
    """The largest batch that trains, and the one worth using.

    A function returns a model, or a model and a function that makes a batch of
    n; MemoryMark runs it in processes of its own.
    """
    return Analysis.of(_program.ask(["analyze", *_arguments(model, keys)]))


def plan(model: Model, **keys: Any) -> Plan:
    """What to train a model on, and how: by dollars and by days.

    Keys are the flags of `memorymark plan`: cards, mine, max_gpus, global_batch,
    tokens, samples, within, full, prices, and keys of a workload, which stay as
    they are given.
    """
    return Plan.of(_program.ask(["plan", *_arguments(model, keys)]))


def fit(model: Model, **keys: Any) -> Fit:
    """The fewest changes with which a model trains on a card."""
    return Fit.of(_program.ask(["fit", *_arguments(model, keys)]))


def explain(path: Union[str, "os.PathLike[str]"]) -> Explanation:
    """What a snapshot holds: its peaks, what was live, why memory ran out."""
    file = os.fspath(path)
    answer = _program.ask(["snapshot", "info", file])
    return Explanation(answer, _program.text(["snapshot", "info", file]), _timeline(file))


def _timeline(snapshot: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        svg = os.path.join(folder, "timeline.svg")
        _program.text(["snapshot", "timeline", snapshot, "--output", svg])
        with open(svg, encoding="utf-8") as f:
            return f.read()


def _arguments(model: Model, keys: Dict[str, Any]) -> List[str]:
    arguments = [_name(model)]
    if callable(model) or ".py" in arguments[0]:
        keys = {"python": sys.executable, **keys}
    for key, value in keys.items():
        flag = "--" + key.replace("_", "-")
        if value is None:
            continue
        if isinstance(value, bool):
            arguments.append(f"{flag}={'true' if value else 'false'}")
        elif isinstance(value, (dict, list)):
            arguments += [flag, json.dumps(value)]
        else:
            arguments += [flag, str(value)]
    return arguments


def _name(model: Model) -> str:
    if not callable(model):
        return os.fspath(model)
    try:
        file = inspect.getsourcefile(model)
    except TypeError:
        file = None
    name = getattr(model, "__qualname__", "")
    if not file or not os.path.isfile(file) or not name.isidentifier():
        raise _program.MemoryMarkError(
            f"{name or model!r} is not a function of a file, so no other process can call it",
            "write it at the top level of a file, as make in train.py, and pass it or 'train.py:make'",
        )
    return f"{file}:{name}"
