"""record.py CASES.jsonl FOLDER: trains two steps of each workload in a process of its own, on whatever card there is, and records it.
A line of CASES is {"id", "workload"}. PYTHONHASHSEED=0: Gemma 3 makes its rotary positions in the order of a set of names."""
import json, os, sys, types, traceback, contextlib, importlib
import torch, transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING


def build_torchvision(w):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../internal/measure/prober"))
    from memorymark_prober.vision import TorchvisionClassifier
    keys = {k: v for k, v in w["config"].items() if k not in ("model_type", "architectures")}
    dtype = torch.bfloat16 if w.get("precision") == "bf16" else torch.float32
    torch.manual_seed(0)
    with torch.device("cuda"):
        old = torch.get_default_dtype(); torch.set_default_dtype(dtype)
        model = TorchvisionClassifier(keys, False)
        torch.set_default_dtype(old)
    model.to(dtype)
    if w.get("channels_last"): model.to(memory_format=torch.channels_last)
    model.train(w.get("mode", "train") == "train")
    return model, types.SimpleNamespace(num_labels=keys.get("num_classes", 1000), model_type=w["config"]["model_type"])


def build(w):
    c = w["config"]
    if c["model_type"] == "torchvision_resnet": return build_torchvision(w)
    keys = {k: v for k, v in c.items() if k not in ("model_type", "architectures")}
    dtype = torch.bfloat16 if w.get("precision") == "bf16" else torch.float32
    cls = getattr(transformers, c["architectures"][0])
    if "ForSequenceClassification" in c["architectures"][0] and "pad_token_id" not in keys: keys["pad_token_id"] = 0
    cfg = CONFIG_MAPPING[c["model_type"]](**keys)
    cfg._attn_implementation = w.get("attention", "sdpa") if cls._supports_sdpa else "eager"
    torch.manual_seed(0)
    with torch.device("cuda"):
        old = torch.get_default_dtype(); torch.set_default_dtype(dtype)
        model = cls(cfg)
        torch.set_default_dtype(old)
    model.to(dtype)
    if w.get("channels_last"): model.to(memory_format=torch.channels_last)
    if w.get("checkpointing"):
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if hasattr(model.config, "use_cache"): model.config.use_cache = False
    if a := w.get("adapter"):
        import peft
        names = {"rank": "r", "targets": "target_modules", "dropout": "lora_dropout", "dora": "use_dora"}
        config = peft.LoraConfig(**{names.get(k, k): v for k, v in a.items() if k not in ("kind", "autocast_adapter_dtype")})
        model = peft.get_peft_model(model, config, autocast_adapter_dtype=a.get("autocast_adapter_dtype", False))
    model.train(w.get("mode", "train") == "train")
    return model, cfg

def batch(w, cfg, n):
    a = w["config"]["architectures"][0]; kind = w.get("labels")
    if a in ("CLIPModel", "SiglipModel"): kind = "pairs"
    if kind is None:
        kind = "classes" if "SequenceClass" in a or "Classifier" in a or "ImageClass" in a else "tags" if "TokenClass" in a else "spans" if "QuestionAns" in a else \
            "none" if a.endswith("Model") and not a.endswith("LMHeadModel") else "target_ids" if "Conditional" in a else "ids"
    if kind == "pairs":
        b = {"input_ids": torch.randint(0, cfg.text_config.vocab_size, (n, w["sequence"]), device="cuda")}
        if w.get("attention_mask", "none") != "none":
            b["attention_mask"] = torch.ones(n, w["sequence"], dtype=torch.long, device="cuda")
            if w["attention_mask"] == "padded": b["attention_mask"][:, -(w["sequence"] // 4):] = 0
        dt = torch.bfloat16 if w.get("precision") == "bf16" else torch.float32
        return {**b, "pixel_values": torch.rand(n, 3, w["image"], w["image"], device="cuda", dtype=dt), "return_loss": True}
    if "image" in w:
        dt = torch.bfloat16 if w.get("precision") == "bf16" else torch.float32
        layout = torch.channels_last if w.get("channels_last") else torch.contiguous_format
        b = {"pixel_values": torch.empty(n, 3, w["image"], w["image"], device="cuda", dtype=dt, memory_format=layout).uniform_()}
        if w.get("loss", "labels") == "labels" and kind == "classes": b["labels"] = torch.randint(0, cfg.num_labels, (n,), device="cuda")
        return b
    s = w.get("sequence", 128)
    if "frames" in w or cfg.model_type == "whisper":
        dt = torch.bfloat16 if w.get("precision") == "bf16" else torch.float32
        b = {"input_features": torch.rand(n, cfg.num_mel_bins, 2 * cfg.max_source_positions, device="cuda", dtype=dt)}
        ids = None
    else:
        ids = torch.randint(0, cfg.vocab_size, (n, s), device="cuda"); b = {"input_ids": ids}
    m = w.get("attention_mask", "none")
    if m != "none":
        mask = torch.ones(n, s, dtype=torch.long, device="cuda")
        if m == "padded": mask[:, -(s // 4):] = 0
        b["attention_mask"] = mask
    if w.get("loss", "labels") == "labels":
        d = "cuda"
        if kind == "classes": b["labels"] = torch.randint(0, cfg.num_labels, (n,), device=d)
        elif kind == "tags": b["labels"] = torch.randint(0, cfg.num_labels, (n, s), device=d)
        elif kind == "spans": b["start_positions"] = torch.randint(0, s, (n,), device=d); b["end_positions"] = torch.randint(0, s, (n,), device=d)
        elif kind == "target_ids": b["labels"] = torch.randint(0, cfg.vocab_size, (n, s), device=d)
        elif kind == "ids": b["labels"] = ids
    elif kind == "target_ids": b["decoder_input_ids"] = ids
    return b

def run(line, folder):
    w = line["workload"]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = w.get("precision") == "tf32"
    # Stacks of allocations alone: one taken at a free loses the exception that stops a recomputation.
    torch.cuda.memory._record_memory_history(max_entries=400000, stacks="python", context="alloc")
    model, cfg = build(w)
    o, trained = w.get("optimizer", "adamw"), [p for p in model.parameters() if p.requires_grad]
    kind, arguments = {"adamw": ("AdamW", {}), "adam": ("Adam", {}), "sgd": ("SGD", {}), "sgd-momentum": ("SGD", {"momentum": 0.9}), "rmsprop": ("RMSprop", {}), "muon": ("AdamW", {}), "none": ("", {})}[o]
    impl = {"foreach": {"foreach": True}, "fused": {"fused": True}, "loop": {"foreach": False}}[w.get("optimizer_impl", "foreach")]
    muon = None
    if o == "muon":  # matrices of hidden layers; AdamW takes the others
        tables = {id(m.weight) for m in model.modules() if isinstance(m, torch.nn.Embedding)}
        if model.get_output_embeddings() is not None: tables.add(id(model.get_output_embeddings().weight))
        matrices = [p for p in trained if p.ndim == 2 and id(p) not in tables]
        muon = torch.optim.Muon(matrices)
        taken = {id(p) for p in matrices}
        opt = torch.optim.AdamW([p for p in trained if id(p) not in taken], lr=1e-5, **impl)
    else:
        opt = None if o == "none" else getattr(torch.optim, kind)(trained, lr=1e-5, **arguments, **impl)
    b = batch(w, cfg, w["batch"])
    p = w.get("precision", "fp32")
    cast = lambda: torch.autocast("cuda", dtype=torch.bfloat16 if p == "amp-bf16" else torch.float16) if p.startswith("amp") else contextlib.nullcontext()
    def loss_of(out):
        if w.get("loss", "labels") == "mean":
            return (out.logits if hasattr(out, "logits") else out.last_hidden_state).mean()
        return out.loss
    def step():
        if w.get("phase") == "infer":
            with torch.no_grad(), cast(): model(**b)
            return
        with cast():
            out = model(**b); loss = loss_of(out)
        if w.get("phase") == "forward": return
        del out
        loss.backward()
        for _ in range(w.get("accumulate", 1) - 1):
            del loss
            with cast(): loss = loss_of(model(**b))
            loss.backward()
        if opt is None: model.zero_grad(set_to_none=True); return
        if w.get("clip_grad_norm"): torch.nn.utils.clip_grad_norm_(trained, 1.0)
        if muon is not None: muon.step()
        opt.step()
        if muon is not None: muon.zero_grad(set_to_none=True)
        opt.zero_grad(set_to_none=True)
    for _ in range(2):
        step(); torch.cuda.synchronize()
    torch.cuda.memory._dump_snapshot(os.path.join(folder, line["id"] + ".pickle"))

for l in open(sys.argv[1]):
    line = json.loads(l)
    if not os.path.exists(os.path.join(sys.argv[2], line["id"] + ".pickle")):
        # import before forking
        c = line["workload"]["config"]
        if c["model_type"] != "torchvision_resnet": getattr(transformers, c["architectures"][0])
        pid = os.fork()
        if pid == 0:
            try: run(line, sys.argv[2])
            except Exception: print(line["id"], traceback.format_exc()[-1200:], flush=True); os._exit(1)
            os._exit(0)
        os.waitpid(pid, 0)
