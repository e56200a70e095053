"""Records processes that train adapters, whole, from before the model is built.

memorymark run --gpu h200 -- python record.py cases.jsonl FOLDER [ID...]

A line of cases.jsonl is {"id", "card", "workload"}: on a GPU, it is python record.py alone. Paths in the stacks were shortened after. Each case runs in a forked child, two steps, and leaves FOLDER/ID.pickle.
The model is built on the device in its type, PEFT adds the adapter, the rest is a plain loop. Quantized weights come
from a checkpoint, as transformers loads them.
"""
import contextlib, json, os, sys, tempfile, traceback
import torch, transformers

QUANTIZED = {
    "nf4": dict(load_in_4bit=True, bnb_4bit_quant_type="nf4"),
    "nf4-double": dict(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True),
    "int8": dict(load_in_8bit=True),
}
CASTS = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}


def lora(a):
    import peft
    keys = {"rank": "r", "targets": "target_modules", "dropout": "lora_dropout", "dora": "use_dora"}
    given = {keys.get(k, k): v for k, v in a.items() if k not in ("kind", "autocast_adapter_dtype")}
    return peft.LoraConfig(**given)


def stacks(w):
    """Recording them in a checkpointed dropout or norm fails inside PyTorch 2.11."""
    return None if w.get("checkpointing") and w["config"]["model_type"] in ("gpt2", "bart") else "all"


def build(w):
    import peft
    config = dict(w["config"])
    cls = getattr(transformers, config.pop("architectures")[0])
    cfg = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    cfg._attn_implementation = w.get("attention", "sdpa") if cls._supports_sdpa else "eager"
    precision = w.get("precision", "fp32")
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    if w.get("quantize"):
        compute = CASTS.get(precision, dtype)
        with tempfile.TemporaryDirectory() as folder:
            cls(cfg).to(compute).save_pretrained(folder)
            more = {} if w["quantize"] == "int8" else dict(bnb_4bit_compute_dtype=compute)
            q = transformers.BitsAndBytesConfig(**QUANTIZED[w["quantize"]], **more)
            torch.cuda.memory._record_memory_history(max_entries=400000, stacks="python", context=stacks(w))
            model = cls.from_pretrained(folder, quantization_config=q, device_map={"": 0}, dtype=compute)
        model = peft.prepare_model_for_kbit_training(
            model, use_gradient_checkpointing=w.get("checkpointing", False), gradient_checkpointing_kwargs={"use_reentrant": False})
    else:
        torch.cuda.memory._record_memory_history(max_entries=400000, stacks="python", context=stacks(w))
        with torch.device("cuda"):
            torch.set_default_dtype(dtype)
            model = cls(cfg)
            torch.set_default_dtype(torch.float32)
        model.to(dtype)
        if w.get("checkpointing"):
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if w.get("checkpointing"):
        model.config.use_cache = False
    if a := w.get("adapter"):
        model = peft.get_peft_model(model, lora(a), autocast_adapter_dtype=a.get("autocast_adapter_dtype", bool(w.get("quantize"))))
    if w.get("quantize") and precision == "bf16":
        model.to(dtype)
    model.train(w.get("mode", "train") == "train")
    return model, cfg


def batch(w, cfg):
    n, s = w["batch"], w.get("sequence", 128)
    arch = w["config"]["architectures"][0]
    if "Image" in arch:
        dtype = torch.bfloat16 if w.get("precision") == "bf16" else torch.float32
        return {"pixel_values": torch.rand(n, 3, 224, 224, device="cuda", dtype=dtype), "labels": torch.randint(0, cfg.num_labels, (n,), device="cuda")}
    ids = torch.randint(5, cfg.vocab_size, (n, s), device="cuda")
    if "SequenceClassification" in arch:
        labels = torch.randint(0, cfg.num_labels, (n,), device="cuda")
    elif "ConditionalGeneration" in arch:
        labels = torch.randint(5, cfg.vocab_size, (n, s), device="cuda")
    else:
        labels = ids
    return {"input_ids": ids, "labels": labels}


def step(w, model, trained, optimizer, b):
    cast = CASTS.get(w.get("precision"))
    with torch.autocast("cuda", dtype=cast) if cast else contextlib.nullcontext():
        out = model(**b)
        loss = out.loss
    del out
    loss.backward()
    if w.get("clip_grad_norm"):
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def run(w, path):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    model, cfg = build(w)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5)
    b = batch(w, cfg)
    for _ in range(2):
        step(w, model, trained, optimizer, b)
    torch.cuda.memory._dump_snapshot(path)


def main():
    cases = [json.loads(line) for line in open(sys.argv[1])]
    for c in cases:
        if sys.argv[3:] and c["id"] not in sys.argv[3:]:
            continue
        pid = os.fork()
        if pid == 0:
            try:
                run(c["workload"], os.path.join(sys.argv[2], c["id"] + ".pickle"))
            except BaseException:
                traceback.print_exc()
            os._exit(0)
        os.waitpid(pid, 0)
        print(c["id"], flush=True)


main()
