"""many.py CASES.jsonl FOLDER: records whole processes of training loops, each a fork: FOLDER/ID.pickle, two steps (or "steps").

Runs on a phantom card (memorymark run --gpu h200 -- python many.py ...) or on a GPU. A case is a line of trainers/measure.py,
or {"trainer": "object", "loop": {...}} for loops written by hand, {"trainer": "plain"} for an optimizer by itself."""
import json, os, sys, tempfile, time, traceback
import torch, transformers
import accelerate, lightning; import transformers.models.gpt2.modeling_gpt2, transformers.models.bert.modeling_bert, transformers.models.llama.modeling_llama
import torch.optim
assert not torch.cuda.is_initialized()
stacks = os.environ.get("STACKS", "python")

class Rows(torch.utils.data.Dataset):
    def __init__(self, n, length, vocab, classify, image=0): self.n, self.length, self.vocab, self.classify, self.image = n, length, vocab, classify, image
    def __len__(self): return self.n
    def __getitem__(self, i):
        if self.image: return {"pixel_values": torch.zeros(3, self.image, self.image), "labels": torch.tensor(i % 2)}
        g = torch.Generator().manual_seed(i); ids = torch.randint(5, self.vocab, (self.length,), generator=g)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": torch.tensor(i % 2) if self.classify else ids.clone()}

def build(c):
    cfgd = dict(c["config"]); arch = cfgd.pop("architectures")[0]; mt = cfgd.pop("model_type")
    cfg = transformers.AutoConfig.for_model(mt, **cfgd)
    m = getattr(transformers, arch)(cfg)
    if c.get("lora"):
        import peft
        m = peft.get_peft_model(m, peft.LoraConfig(**c["lora"]))
    if c.get("dtype") == "bf16": m = m.to(torch.bfloat16)
    vocab = getattr(cfg, "vocab_size", 0)
    return m, Rows(c["batch"] * c.get("accumulate", 1) * 4, c.get("sequence", 0), vocab, "Classification" in arch, c.get("image", 0))

class Stop(BaseException): pass

def optimizer(c, ps):
    name, kw = c.get("optimizer", "AdamW"), dict(c.get("optimizer_args", {"lr": 1e-5}))
    if name.startswith("bnb."):
        import bitsandbytes as bnb
        return getattr(bnb.optim, name[4:])(ps, **kw)
    if name.startswith("transformers."):
        import transformers.optimization
        return getattr(transformers.optimization, name[13:])(ps, **kw)
    return getattr(torch.optim, name)(ps, **kw)

def run(c, path):
    if c["trainer"] == "lightning": import lightning
    if c["trainer"] == "accelerate": import accelerate
    torch.manual_seed(0)
    m, rows = build(c)
    steps, want = [], c.get("steps", 2)
    torch.cuda.memory._record_memory_history("all", context=None if c.get("nostacks") else "all", stacks=stacks, max_entries=1000000)
    def begin(): torch.cuda.reset_peak_memory_stats()
    def end():
        steps.append({"peak_allocated": torch.cuda.max_memory_allocated(), "peak_reserved": torch.cuda.max_memory_reserved()})
        if len(steps) == want:
            torch.cuda.memory._dump_snapshot(path); torch.cuda.memory._record_memory_history(None)
    if c["trainer"] == "hf":
        class Watch(transformers.TrainerCallback):
            def on_step_begin(self, *a, **k): begin()
            def on_step_end(self, *a, **k): end()
        with tempfile.TemporaryDirectory() as d:
            a = transformers.TrainingArguments(d, max_steps=3, per_device_train_batch_size=c["batch"], gradient_accumulation_steps=c.get("accumulate", 1), report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True, **c.get("args", {}))
            transformers.Trainer(m, a, train_dataset=rows, callbacks=[Watch()]).train()
    elif c["trainer"] == "lightning":
        class Lit(lightning.LightningModule):
            def __init__(self): super().__init__(); self.m = m
            def training_step(self, b, i): return self.m(**b).loss
            def configure_optimizers(self): return optimizer(c, self.parameters())
        class Watch(lightning.Callback):
            def on_train_batch_start(self, *a): begin()
            def on_train_batch_end(self, *a): end()
        t = lightning.Trainer(accelerator="gpu", devices=1, max_steps=3, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, callbacks=[Watch()], **c.get("args", {}))
        t.fit(Lit(), torch.utils.data.DataLoader(rows, batch_size=c["batch"]))
    elif c["trainer"] == "accelerate":
        acc = accelerate.Accelerator(**c.get("args", {}))
        model, opt, data = acc.prepare(m, optimizer(c, m.parameters()), torch.utils.data.DataLoader(rows, batch_size=c["batch"]))
        model.train()
        for i, b in enumerate(data):
            if i == 3: break
            begin()
            opt.zero_grad()
            out = model(**b)
            loss = out.loss
            acc.backward(loss)
            opt.step()
            end()
    else:  # a loop by hand: {"loop": {"outputs", "zero_grad", "build"}}
        l = c.get("loop", {})
        m.to("cuda").train()
        opt = optimizer(c, [p for p in m.parameters() if p.requires_grad])
        same = "Classification" not in c["config"]["architectures"][0] and c["config"]["model_type"] != "t5"
        b = {k: v.to("cuda") for k, v in next(iter(torch.utils.data.DataLoader(rows, batch_size=c["batch"]))).items() if not (same and k == "labels") and (c.get("mask", True) or k != "attention_mask")}
        if not c.get("mask", True): b.pop("attention_mask", None)
        if same: b["labels"] = b["input_ids"]
        amp = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(c.get("amp"))
        import contextlib
        cast = (lambda: torch.autocast("cuda", amp)) if amp else contextlib.nullcontext
        for i in range(want):
            begin()
            if l.get("zero_grad") == "before-forward": opt.zero_grad()
            with cast():
                out = m(**b)
                loss = out.loss
            if l.get("outputs") != "kept": del out
            if l.get("zero_grad") == "before-backward": opt.zero_grad()
            loss.backward()
            opt.step()
            if l.get("zero_grad", "after-step") == "after-step": opt.zero_grad()
            end()
    return {"peak_allocated": [s["peak_allocated"] for s in steps], "peak_reserved": [s["peak_reserved"] for s in steps]}

for line in open(sys.argv[1]):
    c = json.loads(line)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 0
        try:
            print(json.dumps({"id": c["id"], "measured": run(c, os.path.join(sys.argv[2], c["id"] + ".pickle"))}), flush=True)
        except BaseException as e:
            print(json.dumps({"id": c["id"], "error": f"{type(e).__name__}: {e}"[:300], "where": traceback.format_exc()[-800:]}), flush=True); code = 1
        os._exit(code)
    os.waitpid(pid, 0)
