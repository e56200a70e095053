"""Records ranks of jobs on many GPUs on an emulated card, whole, from before the model is built.

memorymark run --gpu h200 --gpus 8 -- python record.py cases.jsonl FOLDER [ID...]

A line of cases.jsonl is {"id", "rank"?, "workload"}. Each case runs in a forked child, three steps, and leaves FOLDER/ID.pickle.xz: stacks are cut
to six frames, their paths are shortened, and segments are left out. PyTorch's fake process group makes any rank of
any number; DDP is with emulated NCCL. A model that is sharded is built on the meta device, PEFT adds the adapter there,
and then it gets memory. Quantized weights come from a checkpoint, as transformers loads them.
"""
import contextlib, json, lzma, os, pickle, sys, tempfile, traceback
import torch, transformers
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

QUANTIZED = {
    "nf4": dict(load_in_4bit=True, bnb_4bit_quant_type="nf4"),
    "nf4-double": dict(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True),
    "int8": dict(load_in_8bit=True),
}
CASTS = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}
STEPS = 3
LISTS = ("model.layers", "transformer.h", "bert.encoder.layer", "vit.layers")


def layers(model):
    if hasattr(model, "base_model") and hasattr(model, "peft_config"):
        model = model.base_model.model
    for path in LISTS:
        part = model
        for name in path.split("."):
            part = getattr(part, name, None)
        if part is not None:
            return list(part)
    raise KeyError("layers")


def join(p, rank):
    torch.cuda.set_device(0)
    if p["kind"] == "ddp":
        dist.init_process_group("nccl", device_id=torch.device("cuda:0"))
    else:
        dist.init_process_group("fake", rank=rank, world_size=p["gpus"], store=FakeStore())


def record(w):
    # Recording stacks in a checkpointed dropout or norm fails inside PyTorch 2.11.
    torch.cuda.memory._record_memory_history(max_entries=400000, stacks="python", context=None if w.get("checkpointing") else "all")


def adapted(w, model):
    a = w.get("adapter")
    if not a:
        return model
    import peft
    keys = {"rank": "r", "targets": "target_modules", "dropout": "lora_dropout", "dora": "use_dora"}
    config = peft.LoraConfig(**{keys.get(k, k): v for k, v in a.items() if k not in ("kind", "autocast_adapter_dtype")})
    return peft.get_peft_model(model, config, autocast_adapter_dtype=a.get("autocast_adapter_dtype", bool(w.get("quantize"))))


def checkpointed(w, model):
    if w.get("checkpointing"):
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.config.use_cache = False


def quantized(w, cls, cfg, compute):
    import peft
    with tempfile.TemporaryDirectory() as folder:
        cls(cfg).to(compute).save_pretrained(folder)
        more = {} if w["quantize"] == "int8" else dict(bnb_4bit_compute_dtype=compute)
        q = transformers.BitsAndBytesConfig(**QUANTIZED[w["quantize"]], **more)
        record(w)
        model = cls.from_pretrained(folder, quantization_config=q, device_map={"": 0}, dtype=compute)
    model = peft.prepare_model_for_kbit_training(
        model, use_gradient_checkpointing=w.get("checkpointing", False), gradient_checkpointing_kwargs={"use_reentrant": False})
    if w.get("checkpointing"):
        model.config.use_cache = False
    return adapted(w, model)


def build(w, meta):
    config = dict(w["config"])
    cls = getattr(transformers, config.pop("architectures")[0])
    cfg = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    cfg._attn_implementation = "sdpa" if cls._supports_sdpa else "eager"
    dtype = torch.bfloat16 if w["precision"] == "bf16" else torch.float32
    if w.get("quantize"):
        model = quantized(w, cls, cfg, CASTS.get(w["precision"], dtype))
        if w["precision"] == "bf16":
            model.to(dtype)
    else:
        record(w)
        torch.set_default_dtype(dtype)
        with torch.device("meta" if meta else "cuda"):
            model = cls(cfg)
        torch.set_default_dtype(torch.float32)
        model.to(dtype)
        if w.get("channels_last"):
            model.to(memory_format=torch.channels_last)
        checkpointed(w, model)
        with torch.device("meta") if meta else contextlib.nullcontext():
            model = adapted(w, model)
        if meta and not w.get("adapter", {}).get("autocast_adapter_dtype"):
            model.to(dtype)  # PEFT leaves adapters on the meta device in float32
    return model.train(), cfg


def split(model, mesh):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    columns = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj")
    for layer in layers(model):
        parallelize_module(layer, mesh, {
            **{name: ColwiseParallel() for name in columns}, "self_attn.o_proj": RowwiseParallel(), "mlp.down_proj": RowwiseParallel()})


def shard(p, model, mesh):
    how = dict(mesh=mesh, reshard_after_forward=p.get("reshard_after_forward", True))
    if p.get("mixed_precision"):
        how["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    if p.get("offload"):
        how["offload_policy"] = CPUOffloadPolicy()
    for layer in layers(model):
        fully_shard(layer, **how)
    fully_shard(model, **how)


def materialize(p, model):
    model.to_empty(device="cpu" if p.get("offload") else "cuda")
    with torch.no_grad():
        for t in list(model.parameters()) + list(model.buffers()):
            t.zero_()
    if p.get("offload"):
        for b in model.buffers():
            b.data = b.data.cuda()


def sharing(p):
    """The mesh of those that share parameters."""
    n = p["gpus"]
    if p["kind"] == "fsdp":
        return init_device_mesh("cuda", (n,))
    return init_device_mesh("cuda", (n // p["shard"], p["shard"]), mesh_dim_names=("replicate", "shard"))


def distribute(p, model):
    n, kind = p["gpus"], p["kind"]
    if kind in ("ddp", "zero1"):
        wrapped = torch.nn.parallel.DistributedDataParallel(
            model, gradient_as_bucket_view=p.get("gradient_as_bucket_view", False), static_graph=p.get("static_graph", False))
        if kind == "zero1":  # the fake group's all-reduce hands back nothing, which DDP does not take
            def same(_, bucket):
                f = torch.futures.Future()
                f.set_result(bucket.buffer())
                return f
            wrapped.register_comm_hook(None, same)
        return wrapped
    if kind in ("fsdp", "hsdp"):
        mesh = sharing(p)
    else:
        tensor = p.get("tensor", n)
        both = init_device_mesh("cuda", (n // tensor, tensor), mesh_dim_names=("dp", "tp"))
        split(model, both["tp"])
        mesh = both["dp"]
    if kind != "tp":
        shard(p, model, mesh)
    if not any(q.dtype == torch.uint8 for q in model.parameters()):
        materialize(p, model)
    return model


def optimizer(w, plain, trained):
    kind = w["parallel"]["kind"]
    how = dict(lr=1e-5, **({"fused": True} if w.get("optimizer_impl") == "fused" else {"foreach": kind != "tp"}))
    if kind == "zero1":
        from torch.distributed.optim import ZeroRedundancyOptimizer
        return ZeroRedundancyOptimizer(trained, optimizer_class=torch.optim.AdamW, **how)
    if w.get("optimizer") == "muon":
        return Both(plain, trained, how)
    return torch.optim.AdamW(trained, **how)


class Both:
    """Muon for matrices of hidden layers, AdamW for the rest."""

    def __init__(self, model, trained, how):
        tables = {id(m.weight) for m in model.modules() if isinstance(m, torch.nn.Embedding)} | {id(model.get_output_embeddings().weight)}
        matrices = [q for q in trained if q.ndim == 2 and id(q) not in tables]
        taken = {id(q) for q in matrices}
        self.both = torch.optim.Muon(matrices), torch.optim.AdamW([q for q in trained if id(q) not in taken], **how)

    def step(self):
        for one in self.both:
            one.step()

    def zero_grad(self, set_to_none):
        for one in self.both:
            one.zero_grad(set_to_none)


def batch(w, cfg):
    if "image" in w:
        layout = torch.channels_last if w.get("channels_last") else torch.contiguous_format
        dtype = torch.bfloat16 if w["precision"] == "bf16" else torch.float32
        pixels = torch.empty(w["batch"], 3, w["image"], w["image"], device="cuda", dtype=dtype, memory_format=layout)
        return {"pixel_values": pixels, "labels": torch.zeros(w["batch"], dtype=torch.long, device="cuda")}
    ids = torch.randint(0, cfg.vocab_size, (w["batch"], w["sequence"]), device="cuda")
    short = "ForSequence" in w["config"]["architectures"][0]
    return {"input_ids": ids, "labels": torch.zeros(w["batch"], dtype=torch.long, device="cuda") if short else ids}


def steps(c):
    """Builds what a case says, and yields after each step."""
    w = c["workload"]
    p = w["parallel"]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    join(p, c.get("rank", 0))
    torch.manual_seed(0)
    plain, cfg = build(w, p["kind"] not in ("ddp", "zero1"))
    model = distribute(p, plain)
    trained = [q for q in plain.parameters() if q.requires_grad]
    opt = optimizer(w, plain, trained)
    yield from train(w, model, batch(w, cfg), trained, opt)


def train(w, model, inputs, trained, opt):
    cast = CASTS.get(w["precision"])
    for _ in range(STEPS):
        with torch.autocast("cuda", dtype=cast) if cast else contextlib.nullcontext():
            out = model(**inputs)
            loss = out.loss
        del out
        loss.backward()
        if w.get("clip_grad_norm"):
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        yield


def run(c, path):
    for n, _ in enumerate(steps(c), 1):
        if n == STEPS:  # while all is there
            dump(path)


def dump(path):
    snapshot = torch.cuda.memory._snapshot()
    snapshot["segments"] = []
    snapshot["device_traces"] = snapshot["device_traces"][:1]
    for e in snapshot["device_traces"][0]:
        e["frames"] = [{**f, "filename": f["filename"].rpartition("site-packages/")[2].rpartition(os.sep + "tmp" + os.sep)[2]} for f in e.get("frames", [])[:6]]
    with lzma.open(path, "wb", preset=9) as f:
        pickle.dump(snapshot, f)


def main():
    for c in map(json.loads, open(sys.argv[1])):
        path = os.path.join(sys.argv[2], c["id"] + ".pickle.xz")
        if sys.argv[3:] and c["id"] not in sys.argv[3:]:
            continue
        pid = os.fork()
        if pid == 0:
            try:
                run(c, path)
            except BaseException:
                traceback.print_exc()
            os._exit(0)
        os.waitpid(pid, 0)
        print(c["id"], os.path.exists(path), flush=True)


if __name__ == "__main__":
    main()
