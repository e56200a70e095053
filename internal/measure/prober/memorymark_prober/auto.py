"""Subjects of families that MemoryMark does not model: any class of
transformers' own auto mappings, built from the keys that its configuration
class has. Nothing is downloaded, no code but transformers' own is run, and a
configuration cannot choose kernels."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import re
from typing import Any, Iterator, Optional

from . import bounds, catalog, subject, user
from .batches import LABELS, Batches, Labels, describe
from .failure import UserError
from .keys import NEVER, harmless
from .subject import Subject, Workload

COMMON = """num_labels id2label label2id is_encoder_decoder is_decoder pad_token_id bos_token_id eos_token_id decoder_start_token_id
    tie_word_embeddings""".split()  # of every configuration
REFUSED = ("quantization_config", "compression_config")


def make(w: Workload, device: str, notes: list[str]) -> Subject:
    go_offline()
    kind = class_of(w["model_type"], w["architecture"])
    config = configuration(w["model_type"], w["config"], notes)
    for key in w["recipe"].get("needs", []):
        if getattr(config, key, None) is None:
            setattr(config, key, 0)
    choose_attention(config, kind, w.get("attention", "sdpa"))
    model = catalog.construct(w, kind, config, device)
    labels = labels_of(w["model_type"], kind.__name__)
    batch = Batches(w, kind, config, labels)
    sample = batch(1, "meta")  # which takes no memory
    notes.append(f"a sample of {kind.__name__} is {describe(sample)}")
    if w["loss"] == "labels" and not labels and "return_loss" not in sample:
        notes.append(f"what {kind.__name__} is trained on is not known: its loss is its own if it has one, else the mean of its output")
    check_positions(sample, config, notes)
    loss = subject.mean_loss if w["loss"] == "mean" else user.loss
    return Subject(model, batch, subject.optimizer(w, model), loss)


def choose_attention(config: Any, kind: Any, wanted: str) -> None:
    """A class that has no sdpa refuses it, and so does a backbone within (transformers' _sdpa_can_dispatch), to which a
    configuration hands its choice on."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_BACKBONE_MAPPING_NAMES as BACKBONES

    config._attn_implementation = wanted if kind._supports_sdpa else "eager"
    for name in getattr(config, "sub_configs", None) or {}:
        part = getattr(config, name, None)
        backbone = BACKBONES.get(getattr(part, "model_type", None))
        if backbone and not catalog.class_of("transformers", backbone)._supports_sdpa:
            part._attn_implementation = "eager"


def check_positions(sample: dict[str, Any], config: Any, notes: list[str]) -> None:
    """Kernels do not run on an emulated card, so nothing there notices an index
    beyond a table of positions. A model with rotary positions has none."""
    most = getattr(config.get_text_config(), "max_position_embeddings", None)
    if "input_ids" in sample and isinstance(most, int) and sample["input_ids"].shape[-1] > most:
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


def labels_of(model_type: str, architecture: str) -> Optional[Labels]:
    return next((LABELS.get(name) for name, known in mappings(model_type) if known == architecture), None)


def configuration(model_type: str, keys: dict[str, Any], notes: list[str]) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    left_out: list[str] = []
    with bounds.small_configuration():
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
    those, what they look for by name for older files, and what models look for."""
    names = {*COMMON, *looked_for(kind.__module__.replace(".configuration_", ".modeling_"))}
    for pair in getattr(kind, "attribute_map", {}).items():
        names.update(pair)
    if dataclasses.is_dataclass(kind):
        names.update(field.name for field in dataclasses.fields(kind))
    for base in kind.__mro__:
        for method in ("__init__", "__post_init__", "convert_rope_params_to_dict"):
            function = inspect.unwrap(vars(base).get(method, own_keys))
            if function is not own_keys and hasattr(function, "__code__"):
                names.update(inspect.signature(function).parameters)
                names.update(c for c in function.__code__.co_consts if isinstance(c, str) and c.isidentifier())
    if "rope_parameters" in names:
        names.update(("rope_scaling", "rope_theta", "partial_rotary_factor"))
    return names - {"self", "kwargs", "args"}


def looked_for(module: str) -> list[str]:
    """The keys that a module of models looks for in configurations, which need not have them: getattr(config, "share_att_key", False)."""
    spec = importlib.util.find_spec(module)
    source = getattr(spec.loader, "get_source", lambda _: "")(module) if spec else ""
    return re.findall(r"""\b(?:get|has)attr\((?:\w+\.)?config, ["'](\w+)["']""", source or "")
