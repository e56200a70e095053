"""Keys of a config.json that no class of transformers gets to see from us."""

from __future__ import annotations

from typing import Any

# Keys by which a configuration would choose kernels (PreTrainedModel.__init__
# fetches what attn_implementation names), weights, code or any attribute of
# torch (dtype), and those that the workload decides.
NEVER = frozenset(
    """attn_implementation _attn_implementation _attn_implementation_internal experts_implementation _experts_implementation
    _experts_implementation_internal auto_map custom_pipelines name_or_path _name_or_path _commit_hash per_layer_config dtype torch_dtype
    transformers_weights transformers_version architectures model_type use_pretrained_backbone""".split()
)


def harmless(value: Any) -> Any:
    """Data, without those keys. A configuration within another has a type."""
    if isinstance(value, dict):
        return {k: harmless(v) for k, v in value.items() if k not in NEVER or k == "model_type"}
    if isinstance(value, list):
        return [harmless(v) for v in value]
    return value
