"""small.py [KIND... | FILE]: a small configuration of each pair of model type and head that transformers has, one workload a line.

A configuration starts as its class's defaults; whatever is a size in it, by its name, is made small, and the model must run
on the CPU with it. Where it does not, fewer keys are made small. What runs with none of these is listed as such."""
import copy, json, math, os, re, signal, sys, traceback

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

transformers.logging.set_verbosity_error()
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../internal/measure/prober"))
from memorymark_prober import auto, subject  # noqa: E402

KINDS = {
    "causal": "CAUSAL_LM", "classification": "SEQUENCE_CLASSIFICATION", "images-with-text": "IMAGE_TEXT_TO_TEXT", "masked": "MASKED_LM",
    "images": "IMAGE_CLASSIFICATION", "encoder-decoder": "SEQ_TO_SEQ_CAUSAL_LM",
}
HIDDEN, INNER, LAYERS, HEADS = 64, 128, 2, 4
SIZES = [  # the first pattern that matches a key of a whole number decides
    (r"(^|_)(num_)?(key_value|kv)_heads$|^num_kv_heads$|n_head_kv|num_key_value_groups|multi_query_group_num", 2),
    (r"(^|_)(num_)?(attention_)?heads$|^n_heads?$|_n_heads?$|num_attention_heads|^decoder_attention_heads", HEADS),
    (r"(^|_)(qk_rope|rope)_head_dim$|rotary_dim$|index_head_dim", 16),
    (r"(^|_)head_dim$|head_size$|v_head_dim|qk_nope_head_dim|d_kv$|kv_channels|^attention_head_dim|key_length|value_length", HIDDEN // HEADS),
    (r"lora_rank$", 16),
    (r"vocab_size$|^n_vocab|^vocab_size_", 512),
    (r"num_experts_per_tok|moe_topk|moe_top_k|^top_k$|num_experts_per_token|experts_top_k", 2),
    (r"num_(local_|routed_|)experts$|n_routed_experts|^moe_num_experts|num_local_experts", 4),
    (r"^n_group$|^topk_group$|num_expert_group", 1),
    (r"(num_|n_)?(hidden_|encoder_|decoder_|)(hidden_)?layers?$|_layers$|^n_layers?$|^depth$|_depth$|num_blocks$", LAYERS),
    (r"first_k_dense_replace", 1),
    (r"ffn_dim$|intermediate_size$|d_ff$|n_inner$|ffn_hidden_size$|mlp_hidden|feedforward|intermediate_dim|inner_dim|ff_dim|_ffn_embed_dim|moe_intermediate_size|ffw_size|dim_feedforward", INNER),
    (r"^image_size$|^img_size$", 64),
    (r"hidden_size$|d_model$|embed_dim$|n_embd$|^dim$|hidden_dim$|embedding_size$|projection_dim$|_dim_size$|embed_size$|model_dim$|^d_embed$|width$|emb_dim$|out_hidden_size|state_size_x|codebook_dim|d_inner_x|hidden_channels$", HIDDEN),
    (r"max_position_embeddings|n_positions|max_seq_len|n_ctx|max_sequence_length", 512),
]
# Keys that a class has no usable default for, or that only go together.
GIVEN = {
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2}, "deepseek_v2": {"n_routed_experts": 4, "num_experts_per_tok": 2},
    "axk1": {"qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "v_head_dim": 16}, "esm": {"vocab_size": 33}, "nemotron": {"num_key_value_heads": 2}, "emu3": {"pad_token_id": 0},
    "reformer": {"axial_pos_shape": [8, 8], "axial_pos_embds_dim": [32, 32], "attn_layers": ["local", "lsh"], "num_buckets": 4, "is_decoder": True},
    "hunyuan_v1_dense": {"head_dim": 16}, "hunyuan_v1_moe": {"head_dim": 16, "num_experts": 4, "moe_topk": 2}, "ministral": {"head_dim": 16, "layer_types": ["sliding_attention", "full_attention"]},
    "gemma3n_text": {"intermediate_size": 128, "num_kv_shared_layers": 0, "layer_types": ["sliding_attention", "full_attention"], "activation_sparsity_pattern": [0.0, 0.0]},
    "zamba": {"num_hidden_layers": 6, "attn_layer_period": 3, "attn_layer_offset": 1}, "laguna": {"num_attention_heads_per_layer": [4, 4]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"], "num_dense_layers": 1}, "cohere_compass_text": {"layer_types": ["sliding_attention", "full_attention"]},
    "llama4_text": {"num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0], "moe_layers": [1, 3], "layer_types": ["chunked_attention"] * 3 + ["full_attention"]},
    "recurrent_gemma": {"num_hidden_layers": 3, "block_types": ["recurrent", "recurrent", "attention"]}, "hrm_text": {"num_hidden_layers": 4},
    "hunyuan_vl_text": {"head_dim": 16}, "bamba": {"mamba_n_heads": 8, "mamba_d_head": 16}, "granitemoehybrid": {"mamba_n_heads": 8, "mamba_d_head": 16},
    "mamba2": {"num_heads": 8, "head_dim": 16}, "gpt_neo": {"attention_types": [[["global", "local"], 1]], "attention_layers": ["global", "local"]},
    "dbrx": {}, "xmod": {"languages": ["en_XX"], "default_language": "en_XX"}, "mllama_text_model": {"cross_attention_layers": [1]},
    "smolvlm": {"pad_token_id": 0}, "idefics3": {"pad_token_id": 0}, "efficientnet": {"hidden_dim": 2560},
}
GONE = ("out_features", "out_indices", "stage_names", "layers_block_type", "hybrid_layer_ids", "layer_types", "mlp_layer_types", "architectures", "id2label", "label2id", "transformers_version", "_name_or_path", "dtype", "torch_dtype", "num_labels")
LEVELS = [lambda pattern: True, lambda pattern: not re.search("head", pattern), lambda pattern: "layers" in pattern or "vocab" in pattern or "experts" in pattern or "ffn" in pattern,
          lambda pattern: "layers" in pattern or "vocab" in pattern or "position" in pattern, lambda pattern: "layers" in pattern, lambda pattern: False]


def smaller(keys, wanted):
    out = {}
    for key, value in keys.items():
        if key in GONE or key.startswith("_") and key != "_x":
            continue
        if isinstance(value, dict):
            out[key] = smaller(value, wanted) if "model_type" in value else value
        elif isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            out[key] = value
        else:
            found = next(((p, n) for p, n in SIZES if re.search(p, key)), None)
            out[key] = min(value, found[1]) if found and wanted(found[0]) else value
    return out


def lists(keys, level):
    """Lists of sizes, one for each stage."""
    for key, value in keys.items():
        if isinstance(value, dict):
            lists(value, level)
        elif isinstance(value, (list, tuple)) and value and all(isinstance(v, int) and not isinstance(v, bool) for v in value):
            if re.search(r"^depths$|_depths$|layers$|num_blocks|blocks_num", key):
                keys[key] = [min(v, 2) for v in value]
    return keys


def runs(model_type, architecture, config, sequence, image):
    w = {"model_type": model_type, "architecture": architecture, "config": config, "attention": "sdpa", "loss": "labels", "sequence": sequence, "image": image,
         "checkpointing": False, "mode": "train", "precision": "fp32", "loop": "plain", "quantize": "none"}
    kind = auto.class_of(model_type, architecture)
    c = auto.configuration(model_type, config, [])
    auto.choose_attention(c, kind, "sdpa")
    with torch.device("meta"):
        model = kind(c)
    count = sum(p.numel() for p in model.parameters())
    if count > 60e6:
        return count, "too large"
    model = kind(c)
    batch = auto.Batches(w, kind, c, auto.labels_of(model_type, architecture))(2, "cpu")
    model.train()
    out = model(**batch)
    loss = auto.user.loss(out, batch)
    loss.backward()
    return count, None


def image_of(config):
    for c in (config.get("vision_config") or {}, config):
        v = c.get("image_size") if isinstance(c, dict) else None
        if isinstance(v, (list, tuple)) and v:
            v = v[0]
        if isinstance(v, int):
            return v
    return 64


def finite(keys):
    """Without the numbers that JSON does not have."""
    def infinite(v):
        return isinstance(v, float) and math.isinf(v) or isinstance(v, list) and any(map(infinite, v))

    return {k: finite(v) if isinstance(v, dict) else v for k, v in keys.items() if not infinite(v)}


def given(keys, model_type, default):
    """Adds what GIVEN has for a configuration and those within it, and tokens that a batch of several samples needs."""
    for name, value in keys.items():
        if isinstance(value, dict) and "model_type" in value:
            given(value, value["model_type"], default.get(name) if isinstance(default.get(name), dict) else {})
    if keys.get("is_encoder_decoder"):
        keys.setdefault("decoder_start_token_id", 0)
    for token in ("pad_token_id", "decoder_start_token_id"):
        if token in keys and (keys[token] is None or keys[token] >= 512):
            keys[token] = 0
    rope = keys.get("rope_parameters") or {}
    if "mrope_section" in rope:
        rope["mrope_section"] = [2, 1, 1] if rope.get("partial_rotary_factor", 1) < 1 else [2, 3, 3]
    keys.update(GIVEN.get(model_type, {}))
    for name in ("mm_tokens_per_image", "image_token_id", "image_token_index", "video_token_id", "audio_token_id"):
        if name in keys and isinstance(keys[name], int) and keys[name] > 500:
            keys[name] = 500
    return keys


def layered(keys, n):
    """With other numbers of layers, so that each kind of layer is among them."""
    return {k: layered(v, n) if isinstance(v, dict) else n if re.search(r"(hidden|decoder|^n)_layers?$", k) and isinstance(v, int) else v for k, v in keys.items()}


def find(model_type, architecture):
    why = ""
    default = CONFIG_MAPPING[model_type]().to_dict()
    for level, wanted in enumerate(LEVELS):
        for compact, layers in ((True, LAYERS), (True, 4), (True, 8), (False, LAYERS)):
            config = smaller(copy.deepcopy(default), wanted)
            if compact:
                config = lists(config, level)
            if layers != LAYERS:
                config = layered(config, layers)
            config.pop("model_type", None)
            config = given(finite(json.loads(json.dumps(config, default=str))), model_type, default)
            try:
                count, skipped = runs(model_type, architecture, config, 64, image_of(config))
            except Exception as e:  # noqa: BLE001
                why = why or f"{type(e).__name__}: {str(e)[:200]} @ {traceback.extract_tb(e.__traceback__)[-1].name}"
                continue
            if skipped:
                continue
            config = {"model_type": model_type, "architectures": [architecture], **config}
            return {"level": level, "parameters": count, "workload": {"config": config, "batch": 2, "sequence": 64, "image": image_of(config)}}
    return {"error": why}


def pairs(kinds):
    for kind in kinds or KINDS:
        for model_type, names in getattr(modeling_auto, f"MODEL_FOR_{KINDS[kind]}_MAPPING_NAMES").items():
            yield kind, model_type, names if isinstance(names, str) else names[0]


def main(kinds):
    """Names of kinds, or a file of the pairs that are wanted."""
    wanted = None
    if kinds and os.path.exists(kinds[0]):
        wanted, kinds = {line.strip() for line in open(kinds[0])}, []
    for kind, model_type, architecture in pairs(kinds):
        if wanted is not None and f"{kind}/{model_type}/{architecture}" not in wanted:
            continue
        r, wr = os.pipe()
        pid = os.fork()
        if pid == 0:
            signal.alarm(120)
            try:
                out = find(model_type, architecture)
            except BaseException as e:  # noqa: BLE001
                out = {"error": f"{type(e).__name__}: {str(e)[:300]}"}
            os.write(wr, json.dumps(out).encode())
            os._exit(0)
        os.close(wr)
        with os.fdopen(r, "rb") as f:
            data = f.read()
        os.waitpid(pid, 0)
        line = {"id": f"{kind}/{model_type}/{architecture}", **(json.loads(data) if data else {"error": "it took too long, or died"})}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
