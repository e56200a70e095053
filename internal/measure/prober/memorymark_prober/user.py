"""The subject that a user's own function makes: train.py:make.

make() returns one of
  model                             a transformers model, which says its inputs
  model, batch                      batch as below
  model, batch, optimizer           optimizer(model.parameters()) makes one
  {"model", "batch", "optimizer", "loss"}   by name; loss(output, batch)
where batch is a function of the number of samples, a dataset of samples, or
one sample, which is repeated.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
from typing import Any, Callable, Mapping, Optional

import torch
from torch import Tensor, nn

from . import adapters, subject
from .failure import UserError
from .subject import Subject, Workload


def load(path: str, name: str) -> Callable[[], Any]:
    """Imports the user's file, next to which it may import its own modules."""
    folder = os.path.dirname(os.path.abspath(path))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module_name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    function: Optional[Callable[[], Any]] = getattr(module, name, None)
    if not callable(function):
        raise UserError(f"{path} has no function {name}()")
    return function


_built: dict[tuple[str, str], dict[str, Any]] = {}  # what functions have returned, before this process was forked


def build_ahead(path: str, function: str) -> None:
    """Calls a user's function for all processes that are forked from here on."""
    _built[path, function] = parts(load(path, function)())


def make(w: Workload, device: str) -> Subject:
    path, function = w["user"]["path"], w["user"]["function"]
    made = _built.get((path, function)) or parts(load(path, function)())
    model = made["model"]
    if not isinstance(model, nn.Module):
        raise UserError(f"{w['user']['function']}() returned {type(model).__name__} where the model should be")
    if adapters.quantizes(w):
        raise UserError(f"quantize is {w['quantize']!r}; have {function}() load the model with such weights")
    batch = batches(made.get("batch"), model, w)
    model = adapters.add(w, model)
    model.to(device)
    if w["precision"] == "bf16":
        model.to(torch.bfloat16)
        batch = in_bfloat16(batch)
    model.train(w["mode"] == "train")
    factory = made.get("optimizer")
    opt = factory(model.parameters()) if factory else subject.optimizer(w, model)
    return Subject(model, batch, opt, made.get("loss") or loss)


def parts(made: Any) -> dict[str, Any]:
    names = ("model", "batch", "optimizer", "loss")
    if isinstance(made, Mapping) and not isinstance(made, nn.Module):
        unknown = set(made) - set(names)
        if unknown or "model" not in made:
            raise UserError(f"the returned keys are {sorted(made)}; known are {', '.join(names)}, and model must be there")
        return dict(made)
    if isinstance(made, (tuple, list)):
        if not 1 <= len(made) <= len(names):
            raise UserError(f"{len(made)} things were returned; return model, batch, optimizer, loss, or the first of them")
        return dict(zip(names, made, strict=False))
    return {"model": made}


def batches(given: Any, model: nn.Module, w: Workload) -> Callable[[int, str], Any]:
    if given is None:
        return own_inputs(model, w)
    if callable(given) and not isinstance(given, Tensor):
        return lambda n, device: to_device(given(n), device)
    if hasattr(given, "__getitem__") and hasattr(given, "__len__") and not isinstance(given, (Tensor, Mapping, tuple, str)):
        return lambda n, device: to_device(collate([given[i % len(given)] for i in range(n)]), device)
    if hasattr(given, "__iter__") and not isinstance(given, (Tensor, Mapping, tuple, str)):
        samples = list(itertools.islice(given, 1))
        return lambda n, device: to_device(collate(samples * n), device)
    return lambda n, device: to_device(collate([given] * n), device)


def in_bfloat16(batch: Callable[[int, str], Any]) -> Callable[[int, str], Any]:
    """Batches whose numbers have the type of a model in bfloat16."""

    def cast(value: Any) -> Any:
        if isinstance(value, Tensor) and value.is_floating_point():
            return value.to(torch.bfloat16)
        if isinstance(value, Mapping):
            return {k: cast(v) for k, v in value.items()}
        return tuple(cast(v) for v in value) if isinstance(value, (tuple, list)) else value

    return lambda n, device: cast(batch(n, device))


def collate(samples: list[Any]) -> Any:
    from torch.utils.data import default_collate

    return default_collate(samples)


def to_device(value: Any, device: str) -> Any:
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, Mapping):
        return {k: to_device(v, device) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(to_device(v, device) for v in value)
    return value


def own_inputs(model: nn.Module, w: Workload) -> Callable[[int, str], Any]:
    """The inputs that a transformers model says it takes."""
    name = getattr(model, "main_input_name", None)
    config: Any = getattr(model, "config", None)
    if name == "pixel_values":
        size = w["image"]
        return lambda n, device: {name: torch.rand(n, 3, size, size, device=device)}
    if name == "input_ids" and hasattr(config, "vocab_size"):
        length = w["sequence"]

        def ids(n: int, device: str) -> dict[str, Tensor]:
            tokens = torch.randint(0, config.vocab_size, (n, length), device=device)
            language = type(model).__name__.endswith(("LMHeadModel", "ForCausalLM", "ForMaskedLM", "ForConditionalGeneration"))
            return {name: tokens, "labels": tokens} if language else {name: tokens}

        return ids
    raise UserError("the model does not say what it takes; return a function batch(n) beside it")


def loss(output: Any, _: Any) -> Tensor:
    """The output's own loss, or the mean of what it holds."""
    own: Optional[Tensor] = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if own is not None:
        return own
    if isinstance(output, Mapping):
        output = next(iter(output.values()))
    elif hasattr(output, "logits"):
        output = output.logits
    elif isinstance(output, (tuple, list)):
        output = output[0]
    if not isinstance(output, Tensor):
        raise UserError(f"the model returned {type(output).__name__}; return a function loss(output, batch) beside it")
    return output.float().mean()
