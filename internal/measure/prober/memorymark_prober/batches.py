"""Batches for classes of transformers' auto mappings: inputs by what a class's
forward takes, labels by what its mapping is trained on."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Optional

import torch
from torch import Tensor

from . import adapters, catalog
from .failure import UserError
from .subject import Workload

CHOICES = 4  # for each question, as in SWAG, which transformers' own example trains on
OBJECTS = 7  # in each image, about as many as in COCO (860,001 in 118,287 images)

Batch = dict[str, Any]


class Batches:
    """Makes a batch of n samples on a device."""

    def __init__(self, w: Workload, kind: Any, config: Any, trained_on: Optional[Labels]) -> None:
        self.w, self.kind, self.config, self.trained_on = w, kind, config, trained_on
        self.takes = inspect.signature(kind.forward).parameters
        text = config.get_text_config()
        self.vocabulary = getattr(text, "vocab_size", 0)
        self.length = min(w["sequence"], getattr(config, "max_target_positions", None) or w["sequence"])
        self.end = getattr(text, "eos_token_id", None) if trained_on is classes and config.is_encoder_decoder else None

    def __call__(self, n: int, device: str) -> Batch:
        out = self.inputs(n, device)
        if self.trained_on and self.w["loss"] == "labels":
            out.update(self.trained_on(self, out, n, device))
        elif "decoder_input_ids" in self.takes:
            out["decoder_input_ids"] = self.ids(n, device)
        return out

    def inputs(self, n: int, device: str) -> Batch:
        name = self.kind.main_input_name
        if name == "pixel_values":
            return {name: self.pixels(n, device)}
        if name == "past_values":
            return {name: self.series(n, device)}
        if name != "input_ids":
            return {name: torch.rand(n, *sound(name, self.w, self.config), device=device, dtype=adapters.dtype_of(self.w))}
        out: Batch = {name: self.ids(n, device)}
        if self.w.get("attention_mask", "none") != "none":
            out["attention_mask"] = catalog.mask(self.w, n, device)
        if self.trained_on is choices:
            return {name: x.unsqueeze(1).repeat(1, CHOICES, 1) for name, x in out.items()}
        if "return_loss" in self.takes and "pixel_values" in self.takes:  # pairs of texts and images
            out.update(pixel_values=self.pixels(n, device), return_loss=True)
        elif self.trained_on is answers:
            out["pixel_values"] = self.pixels(n, device)
        return out

    def ids(self, n: int, device: str) -> Tensor:
        if not isinstance(self.end, int):
            return torch.randint(0, self.vocabulary, (n, self.length), device=device)
        return catalog.ended(n, self.length, self.vocabulary, self.end, device)

    def pixels(self, n: int, device: str) -> Tensor:
        vision = getattr(self.config, "vision_config", self.config)
        frames = [vision.num_frames] if hasattr(vision, "num_frames") else []
        side = self.w["image"]
        return torch.rand(n, *frames, getattr(vision, "num_channels", 3), side, side, device=device, dtype=adapters.dtype_of(self.w))

    def series(self, n: int, device: str) -> Tensor:
        if not hasattr(self.config, "num_input_channels"):
            raise no_batch(self.config, "past_values")
        return torch.rand(n, self.config.context_length, self.config.num_input_channels, device=device, dtype=adapters.dtype_of(self.w))


# What a batch holds in addition to its inputs, for the model's own loss.
Labels = Callable[[Batches, Batch, int, str], Batch]


def classes(b: Batches, _: Batch, n: int, device: str) -> Batch:
    return {"labels": torch.randint(0, b.config.num_labels, (n,), device=device)}


def ids(_: Batches, inputs: Batch, n: int, device: str) -> Batch:
    return {"labels": inputs["input_ids"]}


def target_ids(b: Batches, _: Batch, n: int, device: str) -> Batch:
    return {"labels": b.ids(n, device)}


def token_tags(b: Batches, inputs: Batch, n: int, device: str) -> Batch:
    return {"labels": torch.randint(0, b.config.num_labels, tuple(inputs["input_ids"].shape), device=device)}


def spans(_: Batches, inputs: Batch, n: int, device: str) -> Batch:
    length = inputs["input_ids"].shape[1]
    return {name: torch.randint(0, length, (n,), device=device) for name in ("start_positions", "end_positions")}


def choices(_: Batches, __: Batch, n: int, device: str) -> Batch:
    return {"labels": torch.randint(0, CHOICES, (n,), device=device)}


def marks(_: Batches, inputs: Batch, n: int, device: str) -> Batch:
    """For each token whether it is meant: replaced (ELECTRA), or in the answer's cells (TAPAS)."""
    return {"labels": torch.randint(0, 2, tuple(inputs["input_ids"].shape), device=device)}


def answers(b: Batches, inputs: Batch, n: int, device: str) -> Batch:
    """ViLT scores every answer (binary_cross_entropy_with_logits), other models write one."""
    if "decoder_input_ids" in b.takes:
        return {"decoder_input_ids": inputs["input_ids"], "labels": inputs["input_ids"]}
    return {"labels": torch.rand(n, b.config.num_labels, device=device)}


def pretraining(b: Batches, inputs: Batch, n: int, device: str) -> Batch:
    if "bool_masked_pos" in b.takes:
        return masked_patches(b, inputs, n, device)
    if "labels" not in b.takes or "input_ids" not in inputs:
        return {}  # as ViTMAE, which hides patches itself
    if b.config.model_type == "electra":
        return marks(b, inputs, n, device)
    pairs = [name for name in ("next_sentence_label", "sentence_order_label") if name in b.takes]
    return {**ids(b, inputs, n, device), **{name: torch.randint(0, 2, (n,), device=device) for name in pairs}}


def masked_patches(b: Batches, _: Batch, n: int, device: str) -> Batch:
    """Half of the patches, the same ones of each sample; made on the host, so that an emulated card can count them."""
    patches = (b.w["image"] // b.config.patch_size) ** 2 * (getattr(b.config, "num_frames", 1) // getattr(b.config, "tubelet_size", 1))
    mask = torch.zeros(n, patches, dtype=torch.bool)
    mask[:, ::2] = True
    return {"bool_masked_pos": mask.to(device)}


def pixel_classes(b: Batches, _: Batch, n: int, device: str) -> Batch:
    return {"labels": torch.randint(0, b.config.num_labels, (n, b.w["image"], b.w["image"]), device=device)}


def depths(b: Batches, _: Batch, n: int, device: str) -> Batch:
    return {"labels": torch.rand(n, b.w["image"], b.w["image"], device=device)}


def boxes(b: Batches, _: Batch, n: int, device: str) -> Batch:
    def of_image() -> Batch:
        return {"class_labels": torch.randint(0, b.config.num_labels, (OBJECTS,), device=device), "boxes": torch.rand(OBJECTS, 4, device=device)}

    return {"labels": [of_image() for _ in range(n)]}


def masks(b: Batches, inputs: Batch, n: int, device: str) -> Batch:
    if "mask_labels" not in b.takes:
        return boxes(b, inputs, n, device)
    shape = (OBJECTS, b.w["image"], b.w["image"])
    return {
        "mask_labels": [torch.ones(shape, device=device) for _ in range(n)],
        "class_labels": [torch.randint(0, b.config.num_labels, (OBJECTS,), device=device) for _ in range(n)],
    }


def sound_classes(b: Batches, inputs: Batch, n: int, device: str) -> Batch:
    """One class of each frame, as 0 and 1 (Wav2Vec2ForAudioFrameClassification.forward)."""
    frames = b.w["sequence"]
    if "input_values" in inputs:  # what wav2vec2's convolutions leave of the wave
        frames = inputs["input_values"].shape[1]
        for kernel, stride in zip(b.config.conv_kernel, b.config.conv_stride):
            frames = (frames - kernel) // stride + 1
    return {"labels": torch.zeros(n, frames, b.config.num_labels, device=device)}


def series_classes(b: Batches, _: Batch, n: int, device: str) -> Batch:
    return {"target_values": torch.randint(0, getattr(b.config, "num_targets", b.config.num_labels), (n,), device=device)}


def series_values(b: Batches, _: Batch, n: int, device: str) -> Batch:
    return {"target_values": torch.rand(n, b.config.num_targets, device=device)}


# What a class of an auto mapping is trained on, by the mapping's name between
# MODEL_FOR_ and _MAPPING_NAMES. Where a configuration names no class, the first
# mapping that knows its model type decides.
LABELS: dict[str, Labels] = {
    "SEQ_TO_SEQ_CAUSAL_LM": target_ids,
    "SPEECH_SEQ_2_SEQ": target_ids,
    "CTC": target_ids,
    "MASKED_LM": ids,
    "CAUSAL_LM": ids,
    "IMAGE_CLASSIFICATION": classes,
    "VIDEO_CLASSIFICATION": classes,
    "AUDIO_CLASSIFICATION": classes,
    "IMAGE_TEXT_TO_TEXT": ids,
    "SEQUENCE_CLASSIFICATION": classes,
    "TOKEN_CLASSIFICATION": token_tags,
    "QUESTION_ANSWERING": spans,
    "SEMANTIC_SEGMENTATION": pixel_classes,
    "MULTIPLE_CHOICE": choices,
    "NEXT_SENTENCE_PREDICTION": classes,
    "DOCUMENT_QUESTION_ANSWERING": spans,
    "TABLE_QUESTION_ANSWERING": marks,
    "VISUAL_QUESTION_ANSWERING": answers,
    "MASKED_IMAGE_MODELING": masked_patches,
    "CAUSAL_IMAGE_MODELING": ids,
    "OBJECT_DETECTION": boxes,
    "INSTANCE_SEGMENTATION": masks,
    "UNIVERSAL_SEGMENTATION": masks,
    "DEPTH_ESTIMATION": depths,
    "AUDIO_FRAME_CLASSIFICATION": sound_classes,
    "AUDIO_XVECTOR": classes,
    "TIME_SERIES_CLASSIFICATION": series_classes,
    "TIME_SERIES_REGRESSION": series_values,
    "PRETRAINING": pretraining,
}


def sound(name: str, w: Workload, config: Any) -> tuple[int, ...]:
    """The shape of a sample of sound. Where it may have any length, an encoder
    sees as many frames as a text has tokens."""
    if name == "input_features" and hasattr(config, "max_source_positions") and hasattr(config, "num_mel_bins"):
        return config.num_mel_bins, 2 * config.max_source_positions  # whisper: a convolution of stride 2
    if name == "input_features" and hasattr(config, "input_feat_per_channel"):
        return 4 * w["sequence"], config.input_feat_per_channel  # speech_to_text: two of stride 2
    if name == "input_features" and hasattr(config, "feature_projection_input_dim"):
        return w["sequence"], config.feature_projection_input_dim  # wav2vec2-bert
    if name == "input_values" and hasattr(config, "num_mel_bins") and hasattr(config, "max_length"):
        return config.max_length, config.num_mel_bins  # audio spectrogram transformers
    if name == "input_values" and hasattr(config, "inputs_to_logits_ratio"):
        return (w["sequence"] * config.inputs_to_logits_ratio,)  # wav2vec2 and its kin, from the wave
    raise no_batch(config, name)


def no_batch(config: Any, name: str) -> UserError:
    return UserError(
        f"{type(config).__name__} takes {name}, of which no batch can be made up; "
        "write a function of your own, train.py:make, that returns the model and a function batch(n)"
    )


def describe(batch: Batch) -> str:
    """A sample in words: input_ids of 128, pixel_values of 3 × 224 × 224, labels of boxes of 7 × 4."""
    described = ((name, words(value)) for name, value in batch.items())
    return ", ".join(name + (" of " + value if value else "") for name, value in described if value is not None)


def words(value: Any) -> Optional[str]:
    """A sample's value in words, "" for a single number, None for what is no part of a sample."""
    if isinstance(value, Tensor):
        return " × ".join(map(str, value.shape[1:]))
    if isinstance(value, list):  # of samples
        return describe({k: x.unsqueeze(0) for k, x in value[0].items()}) if isinstance(value[0], dict) else words(value[0].unsqueeze(0))
    return None
