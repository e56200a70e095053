"""What a run in this process does, as a workload of the command line."""

from __future__ import annotations

from typing import Any, Dict, Optional

Workload = Dict[str, Any]

QUANTIZED = {("nf4", False): "nf4", ("nf4", True): "nf4-double"}


class NotDescribed(Exception):
    """A run that a workload has no words for. What it takes is only measured."""


def of_model(model: Any) -> Workload:
    """The configuration, the adapter and the types of the weights."""
    base = model.get_base_model() if hasattr(model, "peft_config") else model
    config = getattr(base, "config", None)
    if config is None or not hasattr(config, "to_dict"):
        raise NotDescribed(f"{type(base).__name__} is not a model of transformers; memorymark run emulates it")
    # to_dict has no class for a model that was never saved, and never the attention that was chosen.
    workload: Workload = {"config": {**config.to_dict(), "architectures": [type(base).__name__]}}
    quantization = workload["config"].pop("quantization_config", None)
    attention = getattr(config, "_attn_implementation", None)
    if attention in ("sdpa", "eager"):
        workload["attention"] = attention
    elif attention is not None:
        raise NotDescribed(f"attention is {attention}; sdpa and eager are modelled")
    if quantization:
        workload["quantize"] = _quantized(quantization)
    if base is not model:
        workload["adapter"] = _adapter(model)
    return workload


def _quantized(quantization: Any) -> str:
    values = quantization if isinstance(quantization, dict) else quantization.to_dict()
    if values.get("load_in_8bit"):
        return "int8"
    kind = QUANTIZED.get((str(values.get("bnb_4bit_quant_type")), bool(values.get("bnb_4bit_use_double_quant"))))
    if not values.get("load_in_4bit") or kind is None:
        raise NotDescribed("this quantization is not modelled; bitsandbytes' nf4 and int8 are")
    return kind


def _adapter(model: Any) -> Workload:
    import torch

    adapters = list(model.peft_config.values())
    if len(adapters) != 1:
        raise NotDescribed(f"the model has {len(adapters)} adapters; one is modelled")
    peft = adapters[0]
    kind = getattr(peft.peft_type, "value", peft.peft_type)
    if kind != "LORA" or getattr(peft, "bias", "none") != "none":
        raise NotDescribed(f"the adapter is {kind} with bias {getattr(peft, 'bias', 'none')}; LoRA without bias is modelled")
    modules = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    adapter: Workload = {
        "kind": "lora",
        "rank": peft.r,
        "targets": peft.target_modules if isinstance(peft.target_modules, str) else sorted(peft.target_modules),
        "dropout": peft.lora_dropout,
        "dora": bool(peft.use_dora),
        # For a task PEFT lists the names that heads have anywhere.
        "modules_to_save": sorted(n for n in peft.modules_to_save or [] if n in modules),
    }
    # Modules that are trained whole keep their type; adapters are in float32 unless PEFT was told otherwise.
    if all(p.dtype == torch.bfloat16 for p in model.parameters() if p.requires_grad):
        adapter["autocast_adapter_dtype"] = False
    if peft.task_type:
        adapter["task_type"] = getattr(peft.task_type, "value", peft.task_type)
    return adapter


def _uses_tf32(model: Any) -> bool:
    """Whether float32 is computed in TF32. Convolutions have a flag of their own, which
    is on unless it was turned off. It counts where there are some: products take the
    same memory either way."""
    import torch

    backend = torch.backends.cuda.matmul
    if any(isinstance(m, torch.nn.modules.conv._ConvNd) for m in model.modules()):
        backend = getattr(torch.backends.cudnn, "conv", torch.backends.cudnn)
    precision = getattr(backend, "fp32_precision", None)  # from PyTorch 2.9 on, where reading allow_tf32 may be an error
    return bool(backend.allow_tf32) if precision is None else precision == "tf32"


def of_precision(model: Any, autocast: Optional[str]) -> str:
    """The precision of a model under autocast to bf16, fp16 or nothing."""
    import torch

    weights = {p.dtype for p in model.parameters() if p.is_floating_point()}
    frozen = {p.dtype for p in model.parameters() if p.is_floating_point() and not p.requires_grad}
    if autocast is None:
        if (frozen or weights) == {torch.bfloat16}:  # adapters over them may be in float32
            return "bf16"
        if weights == {torch.float32}:
            return "tf32" if _uses_tf32(model) else "fp32"
        raise NotDescribed("weights of several dtypes without autocast are not modelled")
    # What a workload calls amp-bf16 has an adapter over weights in bfloat16, as
    # from_pretrained loads them, and otherwise weights in float32.
    # prepare_model_for_kbit_training casts what is not quantized to float32.
    quantized = getattr(getattr(model, "config", None), "quantization_config", None) is not None
    expected = {torch.bfloat16} if frozen and autocast == "bf16" and not quantized else {torch.float32}
    if (frozen or weights) != expected:
        raise NotDescribed(f"autocast to {autocast} over weights in {', '.join(sorted(str(t) for t in frozen or weights))} is not modelled")
    return f"amp-{autocast}"


def of_inputs(args: Any, kwargs: Dict[str, Any]) -> Workload:
    """The batch and the length, or the size of images, of what a model is given."""
    workload: Workload = {}
    for value in [kwargs.get(name) for name in ("input_ids", "pixel_values")] + list(args):
        shape: Any = getattr(value, "shape", ())
        if len(shape) == 2:
            workload = {"batch": int(shape[0]), "sequence": int(shape[1])}
            break
        if len(shape) == 4:
            workload = {"batch": int(shape[0]), "image": int(shape[-1])}
            break
    mask = kwargs.get("attention_mask")
    if mask is not None and len(mask.shape) == 2:
        # On the host: what is computed on the device would be in the recording.
        workload["attention_mask"] = "ones" if bool(mask.cpu().all()) else "padded"
    return workload


def of_device(model: Any, gpu: Optional[str]) -> Workload:
    """The card, and what it has left for this run: neither what other processes
    hold nor what this one holds in addition to the model."""
    import torch

    if not torch.cuda.is_available():
        return {"gpu": gpu} if gpu else {}
    free, _ = torch.cuda.mem_get_info()
    placed = sum(t.nbytes for t in [*model.parameters(), *model.buffers()] if t.is_cuda)
    held = max(0, torch.cuda.memory_allocated() - placed)
    return {
        "gpu": gpu or torch.cuda.get_device_name(),
        "limit_gib": (free + torch.cuda.memory_reserved() - held) / (1 << 30),
    }


def size(workload: Workload) -> int:
    """How many tokens, or pixels of an edge, a batch has in all."""
    per_sample = workload.get("sequence") or workload.get("image") or 0
    return int(workload.get("batch", 0)) * int(per_sample)
