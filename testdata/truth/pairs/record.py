"""record.py PAIRS.jsonl OUT.jsonl: what each workload that small.py found requests, in a process of MemoryMark's prober on whatever card there is.

Three steps of each, in a fork of a process that has imported PyTorch: peaks, parameters, and every allocation (its size) and
free (minus the number of the allocation, from 1). What OUT has already is not run again. A value that was made up on an emulated
card and decided something is said under "decided"; run those with --values computed."""
import json, lzma, os, signal, sys, traceback

import torch, transformers, transformers.modeling_utils, transformers.masking_utils  # noqa: E401, F401

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../internal/measure/prober"))
from memorymark_prober import probe  # noqa: E402

transformers.logging.set_verbosity_error()
STEPS = 3
KEYS = {"attention": "sdpa", "loss": "labels", "checkpointing": False, "mode": "train", "phase": "train", "precision": "fp32", "loop": "plain", "quantize": "none",
        "attention_mask": "none", "accumulate": 1, "clip_grad_norm": False, "optimizer_impl": "foreach"}
RECIPE = {"auto": True, "optimizer": {"class": "AdamW", "arguments": {"lr": 1e-5}}}


def run(workload):
    c = dict(workload["config"])
    model_type, architecture = c.pop("model_type"), c.pop("architectures")[0]
    torch.cuda.memory._record_memory_history(max_entries=2000000, context=None)
    w = {**KEYS, **{k: v for k, v in workload.items() if k != "config"}, "model_type": model_type, "architecture": architecture, "config": c}
    p = probe.Probe({"workload": w, "recipe": RECIPE, "device": "cuda", "batches": [w["batch"]], "steps": STEPS}, lambda message: None)
    report = p.run()
    outcome = report["outcomes"][0]
    if "failure" in outcome:
        return {"error": json.dumps(outcome["failure"])[:1500]}
    out = {"parameters": report["parameters"], "notes": report.get("notes"), "versions": {"torch": torch.__version__, "transformers": transformers.__version__}}
    out["steps"] = [{"allocated": s["peak_allocated"], "reserved": s["peak_reserved"]} for s in outcome["steps"]]
    if decided := [a for a in report["assumed"] if a.get("decided")]:
        out["decided"] = decided[:3]
    out["requests"] = requests(torch.cuda.memory._snapshot()["device_traces"][0])
    return out


def requests(events):
    out, at, n = [], {}, 0
    for e in events:
        if e["action"] == "alloc":
            n += 1
            at[e["addr"]] = n
            out.append(e["size"])
        elif e["action"] == "free_completed" and e["addr"] in at:
            out.append(-at.pop(e["addr"]))
    return out


def main(path, to):
    done = {json.loads(line)["id"] for line in open(to)} if os.path.exists(to) else set()
    with open(to, "a") as f:
        for line in map(json.loads, (lzma.open if path.endswith(".xz") else open)(path, "rt")):
            if line["id"] in done:
                continue
            if "workload" not in line:
                f.write(json.dumps(line) + "\n")
                continue
            r, wr = os.pipe()
            pid = os.fork()
            if pid == 0:
                signal.alarm(300)
                try:
                    out = run(line["workload"])
                except BaseException:  # noqa: BLE001
                    out = {"error": traceback.format_exc()[-1500:]}
                with os.fdopen(wr, "wb") as pipe:
                    pipe.write(json.dumps(out).encode())
                os._exit(0)
            os.close(wr)
            with os.fdopen(r, "rb") as pipe:
                data = pipe.read()
            os.waitpid(pid, 0)
            out = json.loads(data) if data else {"error": "it took too long, or died"}
            f.write(json.dumps({"id": line["id"], "workload": line["workload"], **out}) + "\n")
            f.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
