"""The commands as functions."""

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
    """Predicts the memory of three training steps.

    The model is an id from `memorymark models`, a name on the hub, the path of a
    config.json, a function of yours, or "train.py:make". Keyword arguments are
    named like the flags of `memorymark predict`: batch, sequence, precision,
    optimizer, checkpointing, gpu and so on. With picture=True a notebook shows a
    timeline of the memory.
    """
    with tempfile.TemporaryDirectory() as folder:
        snapshot = os.path.join(folder, "predicted.pickle")
        more = ["--snapshot", snapshot] if picture else []
        answer = _program.ask(["predict", *_arguments(model, keys), *more])
        return Prediction.of(answer, _timeline(snapshot) if picture and os.path.exists(snapshot) else "")


def largest_batch(model: Model, **keys: Any) -> Analysis:
    """Finds the largest batch that trains, and the batch worth using.

    A function of yours returns a model, or a model and a function that makes a
    batch of n samples. MemoryMark calls it in separate processes.
    """
    return Analysis.of(_program.ask(["analyze", *_arguments(model, keys)]))


def plan(model: Model, **keys: Any) -> Plan:
    """Finds what to train a model on and how, by cost and by time.

    Keyword arguments are the flags of `memorymark plan`: cards, mine, max_gpus,
    global_batch, tokens, samples, within, full and prices. Those of `predict`
    fix a part of the workload.
    """
    return Plan.of(_program.ask(["plan", *_arguments(model, keys)]))


def fit(model: Model, **keys: Any) -> Fit:
    """Finds the fewest changes that make a model train on a card."""
    return Fit.of(_program.ask(["fit", *_arguments(model, keys)]))


def explain(path: Union[str, "os.PathLike[str]"]) -> Explanation:
    """Explains a snapshot: its peaks, live memory, why memory ran out."""
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
            f"{name or model!r} is not a top-level function in a file, so another process cannot import it",
            "move it to the top level of a file, such as make in train.py, and pass it or 'train.py:make'",
        )
    return f"{file}:{name}"
