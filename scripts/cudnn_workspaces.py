"""What cuDNN takes as workspace for the convolutions of ResNets and ViTs, and of Whisper.

Usage: cudnn_workspaces.py OUT_FOLDER [--seconds 480] [--workers 12] [--cases FILE | --planned TYPES | --each TYPES | --audio | --small]

The table of compute capability 9.0 was measured on an H200. Those of the others, and all of channels_last, are what
cuDNN plans for cards that are not there, of the problems that --planned lists, and --each for a kernel for each channel:

    memorymark run --gpu l40s -- python scripts/cudnn_workspaces.py OUT --planned fp32,tf32,bf16 --seconds 3600 --workers 1
    python scripts/cudnn_table.py OUT/workspaces.csv OLDER.txt | gzip -9n > internal/torch/cudnn_conv/8.9.txt.gz

Tables of another PyTorch are in a folder of its version: those of 2.8 were planned there, for the patches of ViTs (--cases).

Runs convolutions through PyTorch on a GPU and writes OUT_FOLDER/workspaces.csv,
one line a problem:

    dtype,n,c,h,w,k,r,stride,padding,forward,dgrad,wgrad

dtype is fp32 (TF32 off), tf32, bf16 or fp16, with /last for channels_last and /last/each for that with a kernel for each
channel; the last three are bytes, -1
where that direction was not run (the gradient of pixels) or failed. Whisper's convolutions (--audio) run along one
dimension, w: their h is 1, which their kernel, stride and padding leave alone. The first
line is a comment that says what measured it. Problems come in tiers, most
wanted first, so a run that is cut short is useful too; --cases reads them from
a file of JSON lines instead ({"dtype","n","c","h","w","k","r","stride","padding"}).

A workspace is the peak of requested bytes during a call, less what was there
and less the result: the caching allocator counts requests to the byte.
"""
import argparse
import itertools
import json
import os
import random
import sys
import time

DTYPES = ("fp32", "tf32", "bf16", "fp16")
LAST = "/last"  # after a type: image, weight and result in channels_last
EACH = "/each"  # after that: a kernel for each channel (groups=c)
COARSE = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


def out_size(size, r, stride, padding):
    return (size + 2 * padding - r) // stride + 1


def resnet(image):
    """The distinct convolutions (c, h, k, r, stride, padding) of ResNet-18 to 152."""
    yield 3, image, 64, 7, 2, 3
    h = out_size(out_size(image, 7, 2, 3), 3, 2, 1)
    yield 64, h, 64, 1, 1, 0
    yield 64, h, 64, 3, 1, 1
    yield 64, h, 256, 1, 1, 0
    yield 256, h, 64, 1, 1, 0
    for stage in (1, 2, 3):
        narrow, wide = 64 << stage, 256 << stage
        half = out_size(h, 3, 2, 1)
        yield wide // 2, h, narrow, 1, 1, 0           # bottleneck, first layer
        yield narrow, h, narrow, 3, 2, 1
        yield wide // 2, h, wide, 1, 2, 0             # its shortcut
        yield narrow, half, wide, 1, 1, 0
        yield wide, half, narrow, 1, 1, 0             # the layers after
        yield narrow, half, narrow, 3, 1, 1
        yield narrow // 2, h, narrow, 3, 2, 1         # basic
        yield narrow // 2, h, narrow, 1, 2, 0
        h = half


def vit(image):
    for patch in (14, 16, 32):
        for hidden in (192, 256, 384, 512, 640, 768, 1024, 1280):
            yield 3, image, hidden, patch, patch, 0


def problems():
    """Problems, most wanted first: a tier is shuffled so that any part of it covers all of it."""
    usual, odd = (160, 192, 224, 256, 288), (32, 64, 96, 128, 320, 384)
    tiers = [
        [(d, n, c) for d in DTYPES for n in COARSE for i in usual for c in resnet(i)]
        + [(d, n, c) for d in DTYPES for n in COARSE for c in vit(224)],
        [(d, n, c) for d in DTYPES[:3] for n in range(1, 101) for i in usual for c in resnet(i)],
        [(d, n, c) for d in DTYPES[:3] for n in range(1, 101) for c in vit(224)],
        [(d, n, c) for d in DTYPES[:3] for n in COARSE for i in odd for c in resnet(i)]
        + [(d, n, c) for d in DTYPES[:3] for n in COARSE for c in vit(384)],
        [(d, n, c) for d in DTYPES[:3] for n in range(104, 257, 8) for i in usual for c in resnet(i)],
        [("fp16", n, c) for n in range(1, 101) for i in usual for c in resnet(i)],
    ]
    seen = set()
    for tier in tiers:
        random.Random(1).shuffle(tier)
        for d, n, (c, h, k, r, stride, padding) in tier:
            p = (d, n, c, h, h, k, r, stride, padding)
            if p not in seen:
                seen.add(p)
                yield p


def planned(types):
    """Problems of the image sizes that people train with, in both layouts. Between two batches the table goes straight."""
    sizes = (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 384, 512)
    shapes = {shape for image in sizes for shape in resnet(image)}
    patches = {(3, image, hidden, patch, patch, 0) for image in (224, 256, 336, 384, 448, 512) for patch in (14, 16, 32) for hidden in (192, 384, 768, 1024, 1280)}
    stems = {(3, image, hidden, 4, 4, 0) for image in (32, 224, 256, 384) for hidden in (96, 128, 192)}
    halves = {(hidden << i, image >> (2 + i), hidden << (i + 1), 2, 2, 0) for image in (224, 256, 384) for hidden in (96, 128, 192) for i in range(3)}
    for layout, batches in (("", (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128)), (LAST, (1, 2, 4, 8, 16, 32, 64, 128))):
        for d in types:
            for c, h, k, r, stride, padding in sorted(shapes | patches | stems | halves):
                for n in batches:
                    yield d + layout, n, c, h, h, k, r, stride, padding


def each(meter, types):
    """The convolutions of ConvNeXts with a kernel for each channel. They take a workspace for the gradient of the weight alone, from some batch on,
    which is searched for: planning one takes a second."""
    stages = {(width << i, 56 >> i) for width in (96, 128, 192) for i in range(4)}
    for d in types:
        for c, h in sorted(stages):
            problem = lambda n: (d + LAST + EACH, n, c, h, h, c, 7, 1, 3)
            assert all(meter.measure(problem(n))[:2] == (0, 0) for n in (4, 64)), problem(4)
            known = {n: meter.measure(problem(n), (2,))[2] for n in (1, 64, 128)}
            low, high = 1, 64
            while high - low > 1 and known[low] == 0 and known[high] > 0:
                n = min(2 * low, (low + high) // 2) if high == 64 else (low + high) // 2
                known[n] = meter.measure(problem(n), (2,))[2]
                low, high = (n, high) if known[n] == 0 else (low, n)
            for n in sorted(known):
                yield problem(n) + (0, 0, known[n])


def audio():
    """The two convolutions of Whisper's encoder: 30 seconds of 80 or 128 bins, in the widths of its sizes."""
    widths = [(80, w) for w in (384, 512, 768, 1024, 1280)] + [(128, 1280)]
    shapes = {(bins, w, 1) for bins, w in widths} | {(w, w, 2) for _, w in widths}
    for d in DTYPES:
        for c, k, stride in sorted(shapes):
            for n in sorted({*range(1, 65), *COARSE[:15]}):
                yield d, n, c, 1, 3000, k, 3, stride, 1


def small():
    """Convolutions of small models, or of the last stages of others, which are planned exactly in float32."""
    channels, sides = (8, 16, 24, 32, 48, 64, 80, 96, 128, 160, 192, 256), (1, 2, 3, 4, 7, 8, 14, 16, 28, 32, 56, 64)
    shapes = set()
    for c, k, h in itertools.product(channels, channels, sides):
        ratio = max(c, k) / min(c, k)
        if ratio in (1, 2):
            shapes |= {(c, h, k, 3, 1, 1), (c, h, k, 3, 2, 1)}
        if ratio in (1, 2, 3, 4, 6):
            shapes.add((c, h, k, 1, 1, 0))
        if k in (c, 2 * c):
            shapes |= {(c, h, k, 2, 2, 0), (c, h, k, 1, 2, 0)} if h > 1 else set()
            shapes |= {(c, h, k, 5, 1, 2)} if h > 4 else set()
    for k, h in itertools.product((8, 16, 24, 32, 48, 64, 96, 128), (16, 30, 32, 56, 64, 96, 112, 128, 224, 256)):
        shapes |= {(3, h, k, 3, 1, 1), (3, h, k, 3, 2, 1), (3, h, k, 7, 4, 3), (3, h, k, 7, 2, 3)}
        shapes |= {(3, h, k, r, r, 0) for r in (2, 4, 8, 14, 16, 32) if r <= h}
    for c, h, k, r, stride, padding in sorted(shapes):
        for n in COARSE[:13]:
            if n != 5 and n != 48:
                yield "fp32", n, c, h, h, k, r, stride, padding


def from_file(path):
    for line in open(path):
        if line.strip():
            p = json.loads(line)
            yield tuple(p[x] for x in ("dtype", "n", "c", "h", "w", "k", "r", "stride", "padding"))


class Meter:
    def __init__(self):
        import torch
        self.torch = torch
        torch.cuda.init()
        torch.backends.cudnn.benchmark = False

    def extra(self, call):
        """Bytes that a call requested at most in addition to what it returns, -1 if it failed."""
        torch = self.torch
        stats = lambda: torch._C._cuda_memoryStats(0)["requested_bytes"]["all"]
        torch._C._cuda_resetPeakMemoryStats(0)
        before = stats()["current"]
        try:
            result = call()
        except RuntimeError:
            torch.cuda.empty_cache()
            return -1
        after = stats()
        kept = sum(x.numel() * x.element_size() for x in result if x is not None)
        return after["peak"] - before - kept

    def measure(self, p, directions=(0, 1, 2)):
        torch = self.torch
        d, n, c, h, w, k, r, stride, padding = p
        groups = c if d.endswith(EACH) else 1
        d = d.removesuffix(EACH)
        layout = torch.channels_last if d.endswith(LAST) else torch.contiguous_format
        d = d.removesuffix(LAST)
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(d, torch.float32)
        torch.backends.cudnn.allow_tf32 = d == "tf32"
        rows, s, pad = (r, (stride, stride), (padding, padding)) if h > 1 else (1, (1, stride), (0, padding))
        x, weight, grad = (torch.empty(shape, dtype=dtype, device="cuda", memory_format=layout) for shape in (
            (n, c, h, w), (k, c // groups, rows, r), (n, k, out_size(h, rows, s[0], pad[0]), out_size(w, r, stride, padding))))

        def backward(mask):
            return lambda: torch.ops.aten.convolution_backward(
                grad, x, weight, None, s, pad, (1, 1), False, (0, 0), groups, mask)
        calls = (
            lambda: (torch.ops.aten.convolution(x, weight, None, s, pad, (1, 1), False, (0, 0), groups),),
            None if c == 3 or h == 1 and c in (80, 128) else backward([True, False, False]),
            backward([False, True, False]),
        )
        return tuple(self.extra(call) if call and i in directions else -1 for i, call in enumerate(calls))


def bytes_of(p):
    d, n, c, h, w, k, r, stride, padding = p
    size = 2 if "16" in d else 4
    rows = out_size(h, r, stride, padding) if h > 1 else 1
    return size * n * (2 * c * h * w + 2 * k * rows * out_size(w, r, stride, padding))


def work(part, parts, deadline, path, cases):
    meter = Meter()
    limit = 120e9 / parts / 3  # workspaces come on top
    with open(path, "w") as out:
        for i, p in enumerate(cases):
            if i % parts != part or bytes_of(p) > limit:
                continue
            if time.time() > deadline:
                break
            if meter.torch.cuda.memory_reserved() > limit:
                meter.torch.cuda.empty_cache()
            out.write(",".join(map(str, p + meter.measure(p))) + "\n")
        meter.torch.cuda.synchronize()


def save(folder, lines):
    import torch
    with open(os.path.join(folder, "workspaces.csv"), "w") as out:
        out.write(f"# {torch.cuda.get_device_name(0)}, cuDNN {torch.backends.cudnn.version()}, PyTorch {torch.__version__}\n")
        out.writelines(lines)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("out")
    a.add_argument("--seconds", type=float, default=480)
    a.add_argument("--workers", type=int, default=12)
    a.add_argument("--cases")
    a.add_argument("--planned", metavar="TYPES")
    a.add_argument("--each", metavar="TYPES")
    a.add_argument("--audio", action="store_true")
    a.add_argument("--small", action="store_true")
    a = a.parse_args()
    deadline = time.time() + a.seconds
    os.makedirs(a.out, exist_ok=True)
    if a.each:
        return save(a.out, [",".join(map(str, row)) + "\n" for row in each(Meter(), a.each.split(","))])
    cases = list(planned(a.planned.split(",")) if a.planned else audio() if a.audio else small() if a.small else from_file(a.cases) if a.cases else problems())
    paths = [os.path.join(a.out, f"part{i}.csv") for i in range(a.workers)]
    children = []
    for i, path in enumerate(paths):
        pid = os.fork()
        if pid == 0:
            work(i, a.workers, deadline, path, cases)
            os._exit(0)
        children.append(pid)
    failed = sum(os.waitpid(pid, 0)[1] != 0 for pid in children)
    lines = sorted(line for path in paths for line in open(path))
    save(a.out, lines)
    for path in paths:
        os.remove(path)
    print(f"{len(lines)} of {len(cases)} problems, {failed} of {a.workers} workers failed", file=sys.stderr)


if __name__ == "__main__":
    main()
