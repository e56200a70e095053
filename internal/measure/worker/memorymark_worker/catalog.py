"""The subjects that a workload names: transformers' models, built from their
configurations with random weights, and the plain language model."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

import torch
from torch import Tensor, nn

from . import subject
from .subject import Subject, Workload

IMAGES = ("resnet", "vit")
CLASSIFIERS = ("BertForSequenceClassification", "RobertaForSequenceClassification", "DistilBertForSequenceClassification")


def prepare(model_type: str, architecture: str) -> None:
    """Imports what a model needs, which touches no device."""
    if model_type == "lm":
        from . import lm  # noqa: F401
    else:
        import transformers

        getattr(transformers, architecture)


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
        if w["model_type"] == "lm":
            from . import lm

            if w.get("attention_mask", "none") != "none":
                raise ValueError("the plain language model takes no attention_mask; leave it out")
            model: nn.Module = lm.TransformerLM(keys, w["checkpointing"])
            config: Any = keys
        else:
            model, config = pretrained_class(w, keys)
    model.to(dtype)
    model.train(w["mode"] == "train")
    return model, config


def pretrained_class(w: Workload, keys: dict[str, Any]) -> tuple[nn.Module, Any]:
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    architecture = getattr(transformers, w["architecture"])
    if w["model_type"] == "t5":  # labels are shifted to start with a token that not every configuration names
        keys = {"pad_token_id": 0, "decoder_start_token_id": 0, **keys}
    config = CONFIG_MAPPING[w["model_type"]](**keys)
    if w["model_type"] != "resnet":
        # T5 has only eager attention before transformers 5.15.
        config._attn_implementation = w.get("attention") if architecture._supports_sdpa else "eager"
    model = architecture(config)
    if w["checkpointing"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if hasattr(config, "use_cache"):
            config.use_cache = False
    return model, config


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def batch(w: Workload, config: Any, device: str, n: int) -> dict[str, Tensor]:
    """One batch: ids or pixels, a mask if asked for, labels."""
    labelled = w["loss"] == "labels"
    if w["model_type"] in IMAGES:
        dtype = torch.bfloat16 if w["precision"] == "bf16" else torch.float32
        size = w["image"]
        out = {"pixel_values": torch.rand(n, 3, size, size, device=device, dtype=dtype)}
        if labelled:
            out["labels"] = torch.randint(0, config.num_labels, (n,), device=device)
        return out
    length = w["sequence"]
    vocabulary = config["vocab_size"] if isinstance(config, dict) else config.vocab_size
    ids = torch.randint(0, vocabulary, (n, length), device=device)
    out = {"input_ids": ids}
    if w.get("attention_mask", "none") != "none":
        mask = torch.ones(n, length, dtype=torch.long, device=device)
        if w["attention_mask"] == "padded":
            mask[:, -(length // 4) :] = 0
        out["attention_mask"] = mask
    if labelled:
        out["labels"] = labels(w, config, device, ids)
    elif w["model_type"] == "t5":
        out["decoder_input_ids"] = ids
    return out


def labels(w: Workload, config: Any, device: str, ids: Tensor) -> Tensor:
    if w["architecture"] in CLASSIFIERS:
        return torch.randint(0, config.num_labels, (ids.shape[0],), device=device)
    if w["model_type"] == "t5":
        return torch.randint(0, config.vocab_size, tuple(ids.shape), device=device)
    return ids
