"""Runs programs on the emulated card: one line of JSON each, {"id", "program", "config"?} in, {"id", "steps",
"reserved"}, {"id", "missing"} or {"id", "error"} out.

Each runs in a fork of this process, which has imported what they need. The peak of a step is taken when its last
optimizer has stepped, and begins where that of the step before ended. A program that loads a checkpoint gets one of
random weights, made of its configuration.
"""
import importlib.util, json, os, sys, tempfile, traceback

os.environ["HF_DEACTIVATE_ASYNC_LOAD"] = "1"  # threads would load weights in any order

import torch, transformers
import accelerate, pytorch_lightning
from transformers.models.auto import modeling_auto
from torch.optim.optimizer import register_optimizer_step_post_hook

sys.modules["lightning"] = pytorch_lightning  # the same by its older name


def checkpoint(folder, given):
    keys = dict(given)
    kind = getattr(transformers, keys.pop("architectures")[0])
    config = transformers.AutoConfig.for_model(keys.pop("model_type"), **keys)
    kind(config).to(torch.bfloat16).save_pretrained(folder)


def run(case):
    steps, first = [], []

    def ended(optimizer, *_):
        peak = torch.cuda.max_memory_allocated()
        if optimizer in (first or [optimizer]):
            first[:] = [optimizer]
            steps.append(peak)
        else:  # the second of two
            steps[-1] = max(steps[-1], peak)
        torch.cuda.reset_peak_memory_stats()

    program = case["program"]
    missing = [name for name in ("bitsandbytes", "torchvision") if name in program.lower() and not importlib.util.find_spec(name)]
    if missing:
        return {"missing": missing}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if "path/to/checkpoint" in program:
            checkpoint(folder, case["config"])
            program = program.replace("path/to/checkpoint", folder)
        register_optimizer_step_post_hook(ended)
        exec(compile(program, "train.py", "exec"), {"__name__": "__main__"})
        return {"steps": steps, "reserved": torch.cuda.max_memory_reserved()}


for line in sys.stdin:
    case = json.loads(line)
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            out = run(case)
        except BaseException:
            out = {"error": traceback.format_exc()[-2000:]}
        os.write(writer, json.dumps({"id": case["id"], **out}).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        print("\n@" + (answer.read() or json.dumps({"id": case["id"], "error": "the process died"})), flush=True)
    os.waitpid(child, 0)
