"""The subjects that a workload names: transformers' models, built from their
configurations with random weights, torchvision's ResNets, and the plain language model."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, ContextManager, Iterator, Optional

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from . import adapters, bounds, devices, loops, subject
from .keys import harmless
from .subject import Subject, Workload


def class_of(module: str, name: str) -> Any:
    """A model's class; importing it touches no device."""
    return getattr(importlib.import_module(module), name)


def make(w: Workload, device: str) -> Subject:
    model, config = build(w, device)
    loss = subject.mean_loss if w["loss"] == "mean" else subject.own_loss
    return Subject(model, lambda n, home: batch(w, config, home, n), subject.optimizer(w, model), loss)


def build(w: Workload, device: str) -> tuple[nn.Module, Any]:
    """The model, its parameters made on the device in the order of its
    constructors, and its configuration."""
    keys = {k: v for k, v in w["config"].items() if k not in ("model_type", "architectures")}
    kind, config = class_of(w["recipe"]["module"], w["architecture"]), configuration(w, keys)
    if w["recipe"]["module"] == "transformers":
        return construct(w, kind, config, device), config
    if w.get("attention_mask", "none") != "none" and not w["recipe"].get("images"):
        raise ValueError("the plain language model takes no attention_mask; leave it out")
    return construct(w, lambda keys: kind(keys, w["checkpointing"]), keys, device), keys


def configuration(w: Workload, keys: dict[str, Any]) -> Any:
    if w["recipe"]["module"] != "transformers":
        return keys
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = class_of("transformers", w["architecture"])
    # MemoryMark has checked that the family has these keys; what it ignores may name kernels, weights and code.
    with bounds.small_configuration():
        config = CONFIG_MAPPING[w["model_type"]](**{key: 0 for key in w["recipe"].get("needs", [])} | harmless(keys))
    # T5 has only eager attention before transformers 5.15, and a ResNet has none.
    config._attn_implementation = w.get("attention") if kind._supports_sdpa else "eager"
    return config


def construct(w: Workload, kind: Any, config: Any, device: str) -> nn.Module:
    """A model as a workload has it: made where its loop makes it, in its type,
    with its adapter, and then on the device."""
    dtype = adapters.dtype_of(w)
    torch.manual_seed(0)
    if adapters.quantizes(w):
        model = adapters.load(w, kind, config, device)
    else:
        home = loops.builds_on(w, device)
        with torch.device(home), default_dtype(dtype), unwritten(home), bounds.countable_modules():
            model = kind(config)
        use_checkpointing(w, model, config)
        # torch.Tensor(n) heeds no torch.device, and some classes still write it.
        model.to(home, dtype)
    if w.get("channels_last"):
        model.to(memory_format=torch.channels_last)
    model = adapters.add(w, model)
    model.to(device)
    model.train(w["mode"] == "train")
    return model


class Unwritten(TorchFunctionMode):
    """Leaves out random weights, so that the memory they are in is never written."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in (Tensor.normal_, Tensor.uniform_, Tensor.erfinv_):
            return args[0]
        return function(*args, **(kwargs or {}))


def unwritten(home: str) -> ContextManager[Any]:
    """An emulated card does not look at weights that come from the host: those
    of a large model need not fit the host, nor take the time to draw them."""
    return Unwritten() if devices.emulator and home == "cpu" else contextlib.nullcontext()


def use_checkpointing(w: Workload, model: Any, config: Any) -> None:
    if w["checkpointing"] and hasattr(model, "gradient_checkpointing_enable"):
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
    layout = torch.channels_last if w.get("channels_last") else torch.contiguous_format
    out = torch.empty(n, 3, w["image"], w["image"], device=device, dtype=adapters.dtype_of(w), memory_format=layout)
    return {"pixel_values": out.uniform_()}


def texts(w: Workload, config: Any, device: str, n: int) -> dict[str, Tensor]:
    vocabulary = config["vocab_size"] if isinstance(config, dict) else config.vocab_size
    if w["recipe"].get("labels") == "classes" and getattr(config, "is_encoder_decoder", False):
        out = {"input_ids": ended(n, w["sequence"], vocabulary, config.eos_token_id, device)}
    else:
        out = {"input_ids": torch.randint(0, vocabulary, (n, w["sequence"]), device=device)}
    if w.get("attention_mask", "none") != "none":
        out["attention_mask"] = mask(w, n, device)
    return out


def ended(n: int, length: int, vocabulary: int, end: int, device: str) -> Tensor:
    """Texts for classifiers that look for the end of each (T5ForSequenceClassification.forward): one, as tokenizers
    make it, and made on the host, so that an emulated card knows where it is."""
    made = torch.randint(0, vocabulary, (n, length))
    made[made == end] = (end + 1) % vocabulary
    made[:, -1] = end
    return made.to(device)


def sounds(w: Workload, config: Any, device: str, n: int) -> dict[str, Tensor]:
    """Sounds, and the ids of what is said in them."""
    dtype = adapters.dtype_of(w)
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
        classes = config.get("num_classes", 1000) if isinstance(config, dict) else config.num_labels
        return {"labels": torch.randint(0, classes, (n,), device=device)}
    assert ids is not None
    if kind == "token_tags":
        return {"labels": torch.randint(0, config.num_labels, tuple(ids.shape), device=device)}
    if kind == "spans":
        return {name: torch.randint(0, ids.shape[1], (n,), device=device) for name in ("start_positions", "end_positions")}
    if kind == "target_ids":
        return {"labels": torch.randint(0, config.vocab_size, tuple(ids.shape), device=device)}
    return {"labels": ids}
