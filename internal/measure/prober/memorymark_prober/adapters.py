"""What is trained in the place of a model's own weights, as PEFT makes it, and
weights as bitsandbytes stores them."""

from __future__ import annotations

import importlib
import math
import os
import sys
from typing import Any, Optional

import torch
from torch import nn

from . import devices
from .failure import UserError
from .subject import Workload

QUANTIZED: dict[str, dict[str, Any]] = {
    "nf4": {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
    "nf4-double": {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True},
    "int8": {"load_in_8bit": True},
}
CASTS = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}  # what autocast casts to

# PEFT's names of an adapter's keys, where they are others.
_PEFT = {"rank": "r", "targets": "target_modules", "dropout": "lora_dropout", "dora": "use_dora"}


def need(package: str, what: str) -> Any:
    """A package that is not always installed."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = error.name or package
        if name.partition(".")[0] != package:
            raise  # it is there, and needs another one
        raise ImportError(f"{what} needs {package}, which is not installed: {sys.executable} -m pip install {package}", name=package) from error


def quantizes(w: Workload) -> bool:
    return w.get("quantize", "none") != "none"


def dtype_of(w: Workload) -> torch.dtype:
    """The type of a model's own weights. Of a quantized model
    prepare_model_for_kbit_training has cast the rest to float32."""
    prepared = quantizes(w) and float32_adapters(w)
    return torch.bfloat16 if w["precision"] == "bf16" and not prepared or loaded_in_bf16(w) else torch.float32


def loaded_in_bf16(w: Workload) -> bool:
    """Whether frozen weights are in bfloat16 under the autocast of a library."""
    librarys = isinstance(w.get("loop"), str) and w["loop"] != "plain"
    return bool(w.get("adapter")) and librarys and w["precision"] == "amp-bf16" and not quantizes(w)


def float32_adapters(w: Workload) -> bool:
    """Whether adapters are in float32 whatever the model's type: PEFT's default."""
    return bool((w.get("adapter") or {}).get("autocast_adapter_dtype", not loaded_in_bf16(w)))


def add(w: Workload, model: nn.Module) -> nn.Module:
    """The model with its adapter, if it is to have one."""
    given: Optional[dict[str, Any]] = w.get("adapter")
    if not given:
        return model
    peft = need("peft", "an adapter")
    keys = {_PEFT.get(key, key): value for key, value in given.items() if key not in ("kind", "autocast_adapter_dtype")}
    float32 = float32_adapters(w)
    model = peft.get_peft_model(model, peft.LoraConfig(**keys), autocast_adapter_dtype=float32 or quantizes(w))
    if quantizes(w) and w["precision"] == "bf16" and not float32:
        model.to(torch.bfloat16)
    return model


def load(w: Workload, kind: Any, config: Any, device: str) -> nn.Module:
    """A model with quantized weights, as from_pretrained loads it, of which
    nothing is trained but an adapter."""
    if w["recipe"].get("module", "transformers") != "transformers":
        raise UserError(f"quantize is {w['quantize']!r}; only models of transformers are loaded with such weights")
    need("bitsandbytes", f"quantize {w['quantize']}")
    need("accelerate", f"quantize {w['quantize']}")
    peft = need("peft", f"quantize {w['quantize']}")
    import transformers

    compute = torch.bfloat16 if w["precision"] == "bf16" else CASTS.get(w["precision"], torch.float32)
    more = {} if w["quantize"] == "int8" else {"bnb_4bit_compute_dtype": compute}
    os.environ["HF_DEACTIVATE_ASYNC_LOAD"] = "1"  # threads would load weights in any order
    model: nn.Module = kind.from_pretrained(
        None,
        config=config,
        state_dict=weights(kind, config, compute),
        quantization_config=transformers.BitsAndBytesConfig(**QUANTIZED[w["quantize"]], **more),
        device_map={"": torch.device(device)},
        dtype=compute,
        attn_implementation=config._attn_implementation,
    )
    model = peft.prepare_model_for_kbit_training(
        model, use_gradient_checkpointing=w["checkpointing"], gradient_checkpointing_kwargs={"use_reentrant": False}
    )
    if w["checkpointing"] and hasattr(config, "use_cache"):
        model.config.use_cache = False  # type: ignore[union-attr]
    return model


def weights(kind: Any, config: Any, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """What a checkpoint of the model would hold, on the host. An emulated card
    does not look at it, so that it is never written, and it takes no memory."""
    with torch.device("meta"):
        model = kind(config)
    make = torch.empty if devices.emulator else torch.zeros
    state, shared = model.state_dict(), dict(model.named_parameters(remove_duplicate=False)).keys() - dict(model.named_parameters()).keys()
    return {
        name: make(value.shape, dtype=dtype if value.is_floating_point() else value.dtype, device="cpu")
        for name, value in state.items()
        if name not in shared
    }


def elements(parameter: nn.Parameter) -> int:
    """How many elements a parameter stands for: two of 4 bits are in a byte."""
    state = getattr(parameter, "quant_state", None)
    return math.prod(state.shape) if state is not None else parameter.numel()
