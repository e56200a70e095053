"""What scaled_dot_product_attention allocates and frees, call by call.

Usage: attention_events.py OUT_FILE

Runs attention through PyTorch on a GPU over shapes that tell its kernels and
their workspaces apart, and writes a line a case:

    dtype layout b h kv sq sk d causal dropout mask grad | events

layout is bshd (views of projections), bhsd (contiguous) or packed (queries are
a view of one projection for q, k and v, the others contiguous, as in GPT-2);
mask is none, bool, boolrow (expanded rows), float or floatgrad; events are
+bytes and -bytes of the forward call, "|", and of the backward of its result.
"""
import random
import sys

import torch
import torch.nn.functional as F

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def case(dtype="bf16", layout="bshd", b=2, h=4, kv=None, sq=128, sk=None, d=64, causal=0, dropout=0, mask="none", grad=1):
    return dtype, layout, b, h, kv or h, sq, sk or sq, d, causal, dropout, mask, grad


def cases():
    yield from (case(dtype=t) for t in DTYPES)
    for d in (8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 104, 112, 120, 128, 136, 160, 192, 208, 256, 264):
        for t in DTYPES:
            for mask in ("none", "bool", "floatgrad"):
                yield case(dtype=t, d=d, mask=mask, sq=96)
    for d in (4, 6, 10, 12, 20, 36, 50, 68, 100, 130):
        for t in DTYPES:
            for mask in ("none", "bool"):
                yield case(dtype=t, d=d, mask=mask, sq=96)
                yield case(dtype=t, d=d, mask=mask, sq=40, causal=int(mask == "none"), dropout=1)
    for s in (1, 2, 7, 8, 31, 33, 63, 64, 65, 100, 127, 129, 197, 200, 255, 300, 511, 1000, 1024, 2048):
        for t in ("fp32", "bf16"):
            for d in (64, 128):
                yield case(dtype=t, sq=s, d=d, causal=1)
                yield case(dtype=t, sq=s, d=d, dropout=1, layout="bhsd")
            yield case(dtype=t, sq=s, mask="bool")
            yield case(dtype=t, sq=s, mask="boolrow")
            yield case(dtype=t, sq=s, mask="floatgrad")
    for t in ("fp32", "bf16"):
        for layout in ("bshd", "bhsd", "packed"):
            for grad in (0, 1):
                yield case(dtype=t, layout=layout, grad=grad, causal=1)
                yield case(dtype=t, layout=layout, grad=grad, mask="float", sq=96)
        for b, h in ((1, 1), (1, 2), (1, 12), (3, 5), (64, 8), (300, 2)):
            yield case(dtype=t, b=b, h=h, sq=80)
            yield case(dtype=t, b=b, h=h, sq=80, d=128, mask="floatgrad")
            yield case(dtype=t, b=b, h=h, sq=80, d=160, mask="floatgrad")
        for h, kv in ((8, 1), (8, 2), (8, 4), (32, 8)):
            for s in (64, 100):
                yield case(dtype=t, h=h, kv=kv, sq=s, causal=1)
                yield case(dtype=t, h=h, kv=kv, sq=s, causal=1, d=128, grad=0)
        for sq, sk in ((64, 96), (100, 50), (1, 64), (7, 129)):
            yield case(dtype=t, sq=sq, sk=sk)
            yield case(dtype=t, sq=sq, sk=sk, mask="bool")
            yield case(dtype=t, sq=sq, sk=sk, mask="floatgrad")
    random.seed(1)
    for _ in range(150):
        h = random.choice((1, 2, 3, 4, 6, 8, 12, 16))
        yield case(dtype=random.choice(("bf16", "fp16", "fp32")), layout=random.choice(("bshd", "bhsd", "packed")),
                   b=random.randint(1, 9), h=h, sq=random.randint(2, 700), d=random.choice((8, 16, 32, 40, 64, 80, 96, 128, 160, 256)),
                   causal=random.randint(0, 1), dropout=random.randint(0, 1))


def tensors(dtype, layout, b, h, kv, sq, sk, d):
    t = DTYPES[dtype]
    make = lambda heads, s: torch.randn(b, s, heads, d, device="cuda", dtype=t, requires_grad=True)
    if layout == "bshd":
        return [x.transpose(1, 2) for x in (make(h, sq), make(kv, sk), make(kv, sk))]
    flat = lambda heads, s: torch.randn(b, heads, s, d, device="cuda", dtype=t, requires_grad=True)
    if layout == "bhsd":
        return [flat(h, sq), flat(kv, sk), flat(kv, sk)]
    joined = torch.randn(b, sq, 3 * h * d, device="cuda", dtype=t, requires_grad=True)
    return [joined.split(h * d, 2)[0].view(b, sq, h, d).transpose(1, 2), flat(kv, sk), flat(kv, sk)]


def mask_of(kind, dtype, b, sq, sk):
    if kind == "none":
        return None
    if kind == "boolrow":
        return (torch.rand(b, 1, 1, sk, device="cuda") < 0.9).expand(b, 1, sq, sk)
    if kind == "bool":
        return torch.rand(b, 1, sq, sk, device="cuda") < 0.9
    return torch.randn(b, 1, sq, sk, device="cuda", dtype=DTYPES[dtype], requires_grad=kind == "floatgrad")


def events(trace):
    sizes = {}
    out = []
    for e in trace:
        if e["action"] == "alloc":
            sizes[e["addr"]] = e["size"]
            out.append(f"+{e['size']}")
        elif e["action"] == "free_completed":
            out.append(f"-{e['size']}")
    return " ".join(out)


def measure(dtype, layout, b, h, kv, sq, sk, d, causal, dropout, mask, grad):
    q, k, v = tensors(dtype, layout, b, h, kv, sq, sk, d)
    m = mask_of(mask, dtype, b, sq, sk)
    record = lambda: torch.cuda.memory._record_memory_history(context=None, clear_history=True)
    parts = []
    with torch.set_grad_enabled(bool(grad)):
        record()
        out = F.scaled_dot_product_attention(q, k, v, m, 0.1 if dropout else 0.0, bool(causal), enable_gqa=kv != h)
        parts.append(events(torch.cuda.memory._snapshot()["device_traces"][0]))
    if grad:
        g = torch.randn(b, sq, h, d, device="cuda", dtype=DTYPES[dtype]).transpose(1, 2)
        inputs = [x for x in (q, k, v, m) if x is not None and x.requires_grad]
        record()
        grads = torch.autograd.grad(out, inputs, g)
        parts.append(events(torch.cuda.memory._snapshot()["device_traces"][0]))
        del grads
    torch.cuda.memory._record_memory_history(None)
    return " | ".join(parts)


def main():
    measure(*case())  # the handles' workspaces
    measure(*case(dtype="fp32", h=4, kv=2, causal=1))
    with open(sys.argv[1], "w") as f:
        f.write(f"# PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}\n")
        for c in dict.fromkeys(cases()):
            try:
                line = measure(*c)
            except Exception as e:  # a kernel that refuses a shape
                line = f"failed: {str(e).splitlines()[0]}"
            f.write(" ".join(map(str, c)) + " | " + line + "\n")


if __name__ == "__main__":
    main()
