"""The subjects that a workload names: transformers' models, built from their
configurations with random weights, and the plain language model."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, Iterator, Optional

import torch
from torch import Tensor, nn

from . import subject
from .subject import Subject, Workload


def class_of(module: str, name: str) -> Any:
    """A model's class; importing it touches no device."""
    return getattr(importlib.import_module(module), name)


def make(w: Workload, device: str) -> Subject:
    model, config = build(w, device)
    loss = subject.mean_loss if w["loss"] == "mean" else subject.own_loss
    return Subject(model, lambda n: batch(w, config, device, n), subject.optimizer(w, model), loss)


def build(w: Workload, device: str) -> tuple[nn.Module, Any]:
    """The model, its parameters made on the device in the order of its
    constructors, and its configuration."""
    keys = {k: v for k, v in w["config"].items() if k not in ("model_type", "architectures")}
    dtype = torch.bfloat16 if w["precision"] == "bf16" else torch.float32
    torch.manual_seed(0)
    with torch.device(device), default_dtype(dtype):
        if w["recipe"]["module"] != "transformers":
            if w.get("attention_mask", "none") != "none":
                raise ValueError("the plain language model takes no attention_mask; leave it out")
            model: nn.Module = class_of(w["recipe"]["module"], w["architecture"])(keys, w["checkpointing"])
            config: Any = keys
        else:
            model, config = pretrained_class(w, keys)
    model.to(dtype)
    model.train(w["mode"] == "train")
    return model, config


def pretrained_class(w: Workload, keys: dict[str, Any]) -> tuple[nn.Module, Any]:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    architecture = class_of(w["recipe"]["module"], w["architecture"])
    config = CONFIG_MAPPING[w["model_type"]](**{key: 0 for key in w["recipe"].get("needs", [])} | keys)
    # T5 has only eager attention before transformers 5.15, and a ResNet has none.
    config._attn_implementation = w.get("attention") if architecture._supports_sdpa else "eager"
    model = architecture(config)
    use_checkpointing(w, model, config)
    return model, config


def use_checkpointing(w: Workload, model: Any, config: Any) -> None:
    if w["checkpointing"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if hasattr(config, "use_cache"):
            config.use_cache = False


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def batch(w: Workload, config: Any, device: str, n: int) -> dict[str, Any]:
    """One batch: ids, pixels, pairs of them or sounds, a mask if asked for, labels."""
    recipe = w["recipe"]
    if recipe.get("labels") == "pairs":
        return {**texts(w, config.text_config, device, n), **pixels(w, device, n), "return_loss": True}
    if recipe.get("features"):
        return sounds(w, config, device, n)
    out: dict[str, Any] = pixels(w, device, n) if recipe.get("images") else texts(w, config, device, n)
    if w["loss"] == "labels":
        out.update(labels(recipe.get("labels", ""), config, device, n, out.get("input_ids")))
    elif recipe.get("decodes"):
        out["decoder_input_ids"] = out["input_ids"]
    return out


def pixels(w: Workload, device: str, n: int) -> dict[str, Tensor]:
    dtype = torch.bfloat16 if w["precision"] == "bf16" else torch.float32
    return {"pixel_values": torch.rand(n, 3, w["image"], w["image"], device=device, dtype=dtype)}


def texts(w: Workload, config: Any, device: str, n: int) -> dict[str, Tensor]:
    vocabulary = config["vocab_size"] if isinstance(config, dict) else config.vocab_size
    out = {"input_ids": torch.randint(0, vocabulary, (n, w["sequence"]), device=device)}
    if w.get("attention_mask", "none") != "none":
        out["attention_mask"] = mask(w, n, device)
    return out


def sounds(w: Workload, config: Any, device: str, n: int) -> dict[str, Tensor]:
    """Sounds, and the ids of what is said in them."""
    dtype = torch.bfloat16 if w["precision"] == "bf16" else torch.float32
    targets = "labels" if w["loss"] == "labels" else "decoder_input_ids"
    return {
        "input_features": torch.rand(n, *w["recipe"]["features"], device=device, dtype=dtype),
        targets: torch.randint(0, config.vocab_size, (n, w["sequence"]), device=device),
    }


def mask(w: Workload, n: int, device: str) -> Tensor:
    """An attention mask: of ones, or with a quarter of each sample padded."""
    length = w["sequence"]
    out = torch.ones(n, length, dtype=torch.long, device=device)
    if w["attention_mask"] == "padded":
        out[:, -(length // 4) :] = 0
    return out


def labels(kind: str, config: Any, device: str, n: int, ids: Optional[Tensor]) -> dict[str, Tensor]:
    """What a batch holds for the model's own loss."""
    if kind == "classes":
        return {"labels": torch.randint(0, config.num_labels, (n,), device=device)}
    assert ids is not None
    if kind == "token_tags":
        return {"labels": torch.randint(0, config.num_labels, tuple(ids.shape), device=device)}
    if kind == "spans":
        return {name: torch.randint(0, ids.shape[1], (n,), device=device) for name in ("start_positions", "end_positions")}
    if kind == "target_ids":
        return {"labels": torch.randint(0, config.vocab_size, tuple(ids.shape), device=device)}
    return {"labels": ids}
