"""Subjects of families that MemoryMark does not model: any class of
transformers' own auto mappings, built from the keys that its configuration
class has. Nothing is downloaded, no code but transformers' own is run, and a
configuration cannot choose kernels."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, Callable, Iterator

import torch
from torch import Tensor

from . import adapters, catalog, subject, user
from .failure import UserError
from .keys import NEVER, harmless
from .subject import Subject, Workload

# What a class of an auto mapping is trained on, by the mapping's name between
# MODEL_FOR_ and _MAPPING_NAMES. Where a configuration names no class, the first
# mapping that knows its model type decides.
LABELS = {
    "SEQ_TO_SEQ_CAUSAL_LM": "target_ids",
    "SPEECH_SEQ_2_SEQ": "target_ids",
    "CTC": "target_ids",
    "MASKED_LM": "ids",
    "CAUSAL_LM": "ids",
    "IMAGE_CLASSIFICATION": "classes",
    "VIDEO_CLASSIFICATION": "classes",
    "AUDIO_CLASSIFICATION": "classes",
    "IMAGE_TEXT_TO_TEXT": "ids",
    "SEQUENCE_CLASSIFICATION": "classes",
    "TOKEN_CLASSIFICATION": "token_tags",
    "QUESTION_ANSWERING": "spans",
    "SEMANTIC_SEGMENTATION": "pixels",
}

COMMON = """num_labels id2label label2id is_encoder_decoder is_decoder pad_token_id bos_token_id eos_token_id decoder_start_token_id
    tie_word_embeddings""".split()  # of every configuration
REFUSED = ("quantization_config", "compression_config")


def make(w: Workload, device: str, notes: list[str]) -> Subject:
    go_offline()
    kind = class_of(w["model_type"], w["architecture"])
    config = configuration(w["model_type"], w["config"], notes)
    config._attn_implementation = w.get("attention", "sdpa") if kind._supports_sdpa else "eager"
    model = catalog.construct(w, kind, config, device)
    labels = labels_of(w["model_type"], kind.__name__) if w["loss"] == "labels" else ""
    batch = batches(w, kind, config, labels)
    sample = batch(1, "meta")  # which takes no memory
    notes.append(f"a sample of {kind.__name__} is {describe(sample)}")
    check_positions(sample, config, notes)
    loss = subject.mean_loss if w["loss"] == "mean" else user.loss
    return Subject(model, batch, subject.optimizer(w, model), loss)


def check_positions(sample: dict[str, Any], config: Any, notes: list[str]) -> None:
    """Kernels do not run on an emulated card, so nothing there notices an index
    beyond a table of positions. A model with rotary positions has none."""
    most = getattr(config.get_text_config(), "max_position_embeddings", None)
    if "input_ids" in sample and isinstance(most, int) and sample["input_ids"].shape[1] > most:
        notes.append(f"a sample has more tokens than max_position_embeddings, {most}: a model with a table of positions fails on a real card")


def go_offline() -> None:
    """From here on nothing is fetched, whatever a configuration names."""
    import huggingface_hub.constants

    huggingface_hub.constants.HF_HUB_OFFLINE = True


def mappings(model_type: str) -> Iterator[tuple[str, str]]:
    """The auto mappings that know a model type, and their classes for it; those
    that we know what to train on come first."""
    from transformers.models.auto import modeling_auto

    names = [name for name in dir(modeling_auto) if name.startswith("MODEL_") and name.endswith("MAPPING_NAMES")]
    found = {name.removeprefix("MODEL_").removeprefix("FOR_").removesuffix("_MAPPING_NAMES"): getattr(modeling_auto, name) for name in names}
    for name in [*LABELS, *(n for n in found if n not in LABELS)]:
        classes = found.get(name, {}).get(model_type, ())
        for architecture in (classes,) if isinstance(classes, str) else classes:
            yield name, architecture


def class_of(model_type: str, architecture: str) -> Any:
    """The class that is meant, if it is one of the model type's."""
    known = list(dict.fromkeys(name for _, name in mappings(model_type)))
    if not known:
        import transformers

        raise UserError(f"model_type {model_type!r} is not known to transformers {transformers.__version__}")
    architecture = architecture or known[0]
    if architecture not in known:
        raise UserError(f"architecture {architecture!r} is none of transformers' {model_type}: {', '.join(known)}")
    return catalog.class_of("transformers", architecture)


def labels_of(model_type: str, architecture: str) -> str:
    return next((LABELS.get(name, "") for name, known in mappings(model_type) if known == architecture), "")


def configuration(model_type: str, keys: dict[str, Any], notes: list[str]) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    left_out: list[str] = []
    config = CONFIG_MAPPING[model_type](**known_keys(CONFIG_MAPPING[model_type], keys, left_out))
    if left_out:
        notes.append(f"{type(config).__name__} has no {', '.join(sorted(set(left_out)))}: left out")
    return config


def known_keys(kind: Any, keys: dict[str, Any], left_out: list[str]) -> dict[str, Any]:
    """The keys that a configuration's class has; of those within it, too."""
    known, within = own_keys(kind), dict(getattr(kind, "sub_configs", None) or {})
    out: dict[str, Any] = {}
    for key, value in keys.items():
        if key in REFUSED and value:
            raise UserError(f"{key} is not taken from a config.json; load the model in a function of your own, train.py:make")
        if key in NEVER or key in REFUSED:
            continue
        if key not in known:
            left_out.append(key)
        elif isinstance(value, dict) and key in within:
            out[key] = known_keys(class_within(within[key], value), value, left_out)
            if "model_type" in value:
                out[key]["model_type"] = value["model_type"]
        else:
            out[key] = harmless(value)
    return out


def class_within(kind: Any, keys: dict[str, Any]) -> Any:
    """The class of a configuration within another, which may be any family's."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    if kind.__name__ != "AutoConfig":
        return kind
    if keys.get("model_type") not in CONFIG_MAPPING:
        raise UserError(f"model_type {keys.get('model_type')!r} of a configuration within is not known to transformers")
    return CONFIG_MAPPING[keys["model_type"]]


def own_keys(kind: Any) -> set[str]:
    """What a configuration's constructors take: their parameters, other names of
    those, and what they look for by name for older files."""
    names = set(COMMON)
    names.update(getattr(kind, "attribute_map", {}))
    if dataclasses.is_dataclass(kind):
        names.update(field.name for field in dataclasses.fields(kind))
    for base in kind.__mro__:
        for method in ("__init__", "__post_init__"):
            function = inspect.unwrap(vars(base).get(method, own_keys))
            if function is not own_keys and hasattr(function, "__code__"):
                names.update(inspect.signature(function).parameters)
                names.update(c for c in function.__code__.co_consts if isinstance(c, str) and c.isidentifier())
    if "rope_parameters" in names:
        names.update(("rope_scaling", "rope_theta", "partial_rotary_factor"))
    return names - {"self", "kwargs", "args"}


def batches(w: Workload, kind: Any, config: Any, labels: str) -> Callable[[int, str], dict[str, Any]]:
    """What a batch of n samples holds, by what the forward of the model's class
    takes."""
    takes = inspect.signature(kind.forward).parameters
    dtype = adapters.dtype_of(w)
    text = config.get_text_config()
    vocabulary = getattr(text, "vocab_size", 0)
    length = min(w["sequence"], getattr(config, "max_target_positions", None) or w["sequence"])

    end = getattr(text, "eos_token_id", None) if labels == "classes" and config.is_encoder_decoder else None

    def ids(n: int, device: str) -> Tensor:
        if not isinstance(end, int):
            return torch.randint(0, vocabulary, (n, length), device=device)
        # These classifiers look for the end of each text (T5ForSequenceClassification.forward): one, as tokenizers
        # make it, and made on the host, so that an emulated card knows where it is.
        made = torch.randint(0, vocabulary, (n, length))
        made[made == end] = (end + 1) % vocabulary
        made[:, -1] = end
        return made.to(device)

    def batch(n: int, device: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        name = kind.main_input_name
        if name == "input_ids":
            out[name] = ids(n, device)
            if w.get("attention_mask", "none") != "none":
                out["attention_mask"] = catalog.mask(w, n, device)
            if "return_loss" in takes and "pixel_values" in takes:  # pairs of texts and images
                out.update(pixel_values=pixels(w, config, n, device, dtype), return_loss=True)
        elif name == "pixel_values":
            out[name] = pixels(w, config, n, device, dtype)
        else:
            out[name] = torch.rand(n, *sound(name, w, config), device=device, dtype=dtype)
        out.update(labels_for(labels, out, n, device))
        if not labels and "decoder_input_ids" in takes:
            out["decoder_input_ids"] = ids(n, device)
        return out

    def labels_for(kind: str, out: dict[str, Any], n: int, device: str) -> dict[str, Tensor]:
        if kind == "target_ids":
            return {"labels": ids(n, device)}
        if kind == "pixels":
            return {"labels": torch.randint(0, config.num_labels, (n, w["image"], w["image"]), device=device)}
        return catalog.labels(kind, config, device, n, out.get("input_ids")) if kind else {}

    return batch


def pixels(w: Workload, config: Any, n: int, device: str, dtype: torch.dtype) -> Tensor:
    vision = getattr(config, "vision_config", config)
    frames = [vision.num_frames] if hasattr(vision, "num_frames") else []
    return torch.rand(n, *frames, getattr(vision, "num_channels", 3), w["image"], w["image"], device=device, dtype=dtype)


def sound(name: str, w: Workload, config: Any) -> tuple[int, ...]:
    """The shape of a sample of sound. Where it may have any length, an encoder
    sees as many frames as a text has tokens."""
    if name == "input_features" and hasattr(config, "max_source_positions") and hasattr(config, "num_mel_bins"):
        return config.num_mel_bins, 2 * config.max_source_positions  # whisper: a convolution of stride 2
    if name == "input_features" and hasattr(config, "input_feat_per_channel"):
        return 4 * w["sequence"], config.input_feat_per_channel  # speech_to_text: two of stride 2
    if name == "input_values" and hasattr(config, "num_mel_bins") and hasattr(config, "max_length"):
        return config.max_length, config.num_mel_bins  # audio spectrogram transformers
    if name == "input_values" and hasattr(config, "inputs_to_logits_ratio"):
        return (w["sequence"] * config.inputs_to_logits_ratio,)  # wav2vec2 and its kin, from the wave
    raise UserError(
        f"{type(config).__name__} takes {name}, of which no batch can be made up; "
        "write a function of your own, train.py:make, that returns the model and a function batch(n)"
    )


def describe(batch: dict[str, Any]) -> str:
    """A sample in words: input_ids of 128, pixel_values of 3 × 224 × 224."""
    shapes = [(name, tuple(v.shape[1:])) for name, v in batch.items() if isinstance(v, Tensor)]
    return ", ".join(name + (" of " + " × ".join(map(str, shape)) if shape else "") for name, shape in shapes)
