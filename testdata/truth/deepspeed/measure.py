"""What one rank of a DeepSpeed job takes, on one real GPU.

    python measure.py CASES.jsonl OUT.jsonl [parallel] [snapshot folder]

A fresh process for each case; three steps; peaks by PyTorch's allocator. One GPU is real NCCL; of several this is the first
rank, whose collectives (a fake process group) move nothing and allocate everything. The optimizer is PyTorch's AdamW."""
import json, os, subprocess, sys, time


def config(c):
    w, z = c["workload"], dict(c["zero"])
    out = {"train_micro_batch_size_per_gpu": w["batch"], "gradient_accumulation_steps": w.get("accumulate", 1), "zero_optimization": z,
           "zero_allow_untested_optimizer": True, "steps_per_print": 1000000, "wall_clock_breakdown": False}
    if w["precision"] == "bf16": out["bf16"] = {"enabled": True}
    if w["precision"] == "fp16": out["fp16"] = {"enabled": True, "initial_scale_power": 8}
    if w.get("clip_grad_norm"): out["gradient_clipping"] = 1.0
    return out


def run(c, folder):
    import torch, transformers
    import torch.distributed as dist
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 20000), RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(c["gpus"]))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.cuda.set_device(0)
    if c["gpus"] == 1 or c.get("group") == "nccl": dist.init_process_group("nccl", device_id=torch.device("cuda:0"))
    else:
        from torch.testing._internal.distributed.fake_pg import FakeStore
        dist.init_process_group("fake", rank=0, world_size=c["gpus"], store=FakeStore())
    import deepspeed
    w = c["workload"]
    if folder: torch.cuda.memory._record_memory_history(max_entries=400000, stacks="python", context=None if w.get("checkpointing") else "all")
    torch.manual_seed(0)
    keys = dict(w["config"]); arch = keys.pop("architectures")[0]; kind = keys.pop("model_type")
    cfg = transformers.AutoConfig.for_model(kind, **keys); cfg._attn_implementation = "sdpa"
    if c.get("init"):  # built in pieces, each sharded at once
        with deepspeed.zero.Init(config_dict_or_path=config(c)): m = getattr(transformers, arch)(cfg)
    else: m = getattr(transformers, arch)(cfg)
    m.train()
    if w.get("checkpointing"):
        m.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False}); m.config.use_cache = False
    opt = torch.optim.AdamW(m.parameters(), lr=1e-5, foreach=True)
    engine, opt, _, _ = deepspeed.initialize(model=m, optimizer=opt, config=config(c), dist_init_required=False)
    r = {"deepspeed": deepspeed.__version__, "model_allocated": torch.cuda.memory_allocated()}
    ids = torch.randint(0, cfg.vocab_size, (w["batch"], w["sequence"]), device="cuda")
    b = {"input_ids": ids, "labels": ids if "ForSequence" not in arch else torch.zeros(w["batch"], dtype=torch.long, device="cuda")}
    pa, pr, ea = [], [], []
    for _ in range(3):
        torch.cuda.reset_peak_memory_stats()
        for _ in range(w.get("accumulate", 1)):
            loss = engine(**b).loss
            engine.backward(loss)
            engine.step()
            del loss
        torch.cuda.synchronize()
        pa.append(torch.cuda.max_memory_allocated()); pr.append(torch.cuda.max_memory_reserved()); ea.append(torch.cuda.memory_allocated())
    r.update(peak_allocated=pa, peak_reserved=pr, end_allocated=ea, retries=torch.cuda.memory_stats()["num_alloc_retries"])
    if folder: torch.cuda.memory._dump_snapshot(os.path.join(folder, c["id"] + ".pickle"))
    return r


def main():
    if sys.argv[1] == "--one":
        t0, c = time.time(), json.loads(sys.argv[2])
        try: r = run(c, sys.argv[3])
        except BaseException as e:
            import traceback; r = {"error": f"{type(e).__name__}: {e}"[:300], "where": traceback.format_exc()[-900:]}
        r["seconds"] = round(time.time() - t0, 2)
        print("\nRESULT " + json.dumps(r), flush=True); os._exit(0)
    cases, out = [json.loads(l) for l in open(sys.argv[1])], open(sys.argv[2], "a")
    par = int(sys.argv[3]) if len(sys.argv) > 3 else 4
    folder = sys.argv[4] if len(sys.argv) > 4 else ""
    live, todo = [], cases[::-1]
    while todo or live:
        while todo and len(live) < par:
            c = todo.pop()
            live.append((c, subprocess.Popen([sys.executable, os.path.abspath(__file__), "--one", json.dumps(c), folder if c.get("record") else ""], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)))
        c, p = live.pop(0); text = p.communicate()[0]
        said = [l for l in text.splitlines() if l.startswith("RESULT ")]
        m = json.loads(said[-1][7:]) if said else {"error": "died: " + text[-500:]}
        out.write(json.dumps({**c, "measured": m}) + "\n"); out.flush()
        print(c["id"], m.get("error", "ok"), m.get("where", "")[-300:], flush=True)


main()
