"""Times PyTorch's kernels, one class after the other, on this machine's GPU, and writes a JSON line for each.

    python scripts/kernels.py OUT.jsonl [CLASS...] [shared:CASES.jsonl]

internal/steptime/testdata/kernels/README.md says what came of it on an H200. A row is {"class", "op", "type", sizes,
"us"}: the microseconds of the card for one call, without the host's. Calls are captured in a CUDA graph, so that the
card never waits for Python, over as many sets of inputs as exceed the second level cache, so that a call reads its
operands from memory. Rows of the class "host" are what Python and PyTorch take to launch: microseconds of the host for
one call on tiny tensors.
"""
import itertools, json, random, statistics, sys, time
import torch
import torch.nn.functional as F

aten = torch.ops.aten
DEVICE = "cuda"
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "tf32": torch.float32}
CACHE = 128 << 20
random.seed(1)


def set_type(t):
    torch.backends.cuda.matmul.allow_tf32 = t == "tf32"
    torch.backends.cudnn.allow_tf32 = t == "tf32"
    return TYPES[t]


def size_of(values):
    return sum(v.numel() * v.element_size() for v in values if isinstance(v, torch.Tensor))


def timed(make, call, least=2e-3):
    """Microseconds of a call of call(*make()) in a CUDA graph."""
    sets = [make()]
    n = max(1, min(16, CACHE // max(size_of(sets[0]), 1)))
    sets += [make() for _ in range(n - 1)]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for s in sets[:3]:
            call(*s)
        torch.cuda.synchronize()
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record(); call(*sets[0]); b.record(); torch.cuda.synchronize()
        once = max(a.elapsed_time(b) * 1e-3, 2e-6)
    count = max(n, min(64, int(least / once) // n * n))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for i in range(count):
            call(*sets[i % n])
    graph.replay()
    torch.cuda.synchronize()
    took = []
    for _ in range(5):
        a.record(); graph.replay(); b.record(); torch.cuda.synchronize()
        took.append(a.elapsed_time(b) * 1e3 / count)
    graph.reset()
    return statistics.median(took)


def rand(*size, dtype):
    return torch.randn(*size, device=DEVICE, dtype=dtype)


# Each class yields (row, make, call).

def products():
    widths = [(768, 768), (3072, 768), (768, 3072), (2304, 768), (1024, 1024), (4096, 1024), (1024, 4096), (2048, 2048), (4096, 4096),
              (11008, 4096), (4096, 11008), (14336, 4096), (4096, 14336), (6144, 4096), (32000, 4096), (50257, 768), (30522, 768), (128256, 4096), (10000, 2560),
              (1600, 1600), (6400, 1600), (2560, 2560), (1280, 320), (320, 1280), (64, 4096), (4096, 16), (16, 4096), (1000, 2048)]
    rows = [64, 128, 512, 1024, 2048, 4096, 8192, 16384, 32768]
    for t in ("bf16", "fp16", "tf32", "fp32"):
        for (n, k), m in itertools.product(widths, rows):
            if 2 * m * n * k > (6e12 if t in ("bf16", "fp16") else 1.2e12) or m * max(n, k) > 3e9 or (t == "fp16" and m not in (512, 4096)):
                continue
            for layout in ("forward", "input", "weight"):  # y = x Wᵀ, dx = dy W, dW = dyᵀ x
                if layout != "forward" and m in (64, 1024, 16384):
                    continue
                dtype = set_type(t)
                row = {"class": "product", "op": "mm", "type": t, "layout": layout, "m": m, "n": n, "k": k}
                if layout == "forward":
                    yield row, lambda: (rand(m, k, dtype=dtype), rand(n, k, dtype=dtype)), lambda x, w: torch.mm(x, w.t())
                elif layout == "input":
                    yield row, lambda: (rand(m, n, dtype=dtype), rand(n, k, dtype=dtype)), lambda dy, w: torch.mm(dy, w)
                else:
                    yield row, lambda: (rand(m, n, dtype=dtype), rand(m, k, dtype=dtype)), lambda dy, x: torch.mm(dy.t(), x)
    for t in ("bf16", "fp32", "tf32"):  # with a bias
        for (n, k), m in itertools.product([(768, 768), (3072, 768), (4096, 4096)], (512, 4096, 16384)):
            dtype = set_type(t)
            yield {"class": "product", "op": "addmm", "type": t, "layout": "forward", "m": m, "n": n, "k": k}, \
                lambda: (rand(n, dtype=dtype), rand(m, k, dtype=dtype), rand(n, k, dtype=dtype)), lambda b, x, w: torch.addmm(b, x, w.t())


def batched():
    for t in ("bf16", "fp16", "tf32", "fp32"):
        for count, s, d in itertools.product((12, 96, 384, 1536), (64, 128, 512, 1024, 2048), (64, 80, 128)):
            if count * s * s * 4 > 3e9:
                continue
            for layout in ("nt", "nn", "tn"):
                dtype = set_type(t)
                row = {"class": "product", "op": "bmm", "type": t, "layout": layout, "count": count, "s": s, "d": d}
                if layout == "nt":
                    yield {**row, "m": s, "n": s, "k": d}, lambda: (rand(count, s, d, dtype=dtype), rand(count, s, d, dtype=dtype)), lambda a, b: torch.bmm(a, b.transpose(1, 2))
                elif layout == "nn":
                    yield {**row, "m": s, "n": d, "k": s}, lambda: (rand(count, s, s, dtype=dtype), rand(count, s, d, dtype=dtype)), torch.bmm
                else:
                    yield {**row, "m": s, "n": d, "k": s}, lambda: (rand(count, s, s, dtype=dtype), rand(count, s, d, dtype=dtype)), lambda a, b: torch.bmm(a.transpose(1, 2), b)


CONVOLUTIONS = [  # channels, filters, kernel, pixels, stride, groups
    (3, 64, 7, 224, 2, 1), (64, 64, 1, 56, 1, 1), (64, 64, 3, 56, 1, 1), (64, 256, 1, 56, 1, 1), (256, 64, 1, 56, 1, 1), (256, 128, 1, 56, 1, 1),
    (128, 128, 3, 56, 2, 1), (128, 128, 3, 28, 1, 1), (128, 512, 1, 28, 1, 1), (512, 128, 1, 28, 1, 1), (256, 256, 3, 28, 2, 1), (256, 256, 3, 14, 1, 1),
    (256, 1024, 1, 14, 1, 1), (1024, 256, 1, 14, 1, 1), (512, 512, 3, 7, 1, 1), (512, 2048, 1, 7, 1, 1), (2048, 512, 1, 7, 1, 1), (1024, 2048, 1, 14, 2, 1),
    (3, 768, 16, 224, 16, 1), (3, 96, 4, 224, 4, 1), (96, 96, 7, 56, 1, 96), (192, 192, 7, 28, 1, 192), (384, 384, 7, 14, 1, 384),
    (32, 32, 3, 112, 1, 32), (96, 96, 3, 112, 2, 96), (144, 144, 5, 56, 2, 144), (480, 480, 3, 14, 1, 480), (1152, 1152, 5, 7, 1, 1152), (16, 96, 1, 112, 1, 1), (96, 24, 1, 56, 1, 1),
    (128, 128, 3, 56, 1, 32), (256, 256, 3, 28, 1, 32), (64, 64, 3, 128, 1, 1), (128, 64, 3, 128, 1, 1), (320, 320, 3, 64, 1, 1), (640, 640, 3, 32, 1, 1), (1280, 1280, 3, 16, 1, 1),
    (3, 32, 3, 224, 2, 1), (64, 128, 3, 112, 1, 1), (128, 128, 3, 112, 1, 1), (64, 64, 3, 224, 1, 1), (1, 32, 3, 28, 1, 1), (32, 64, 3, 26, 1, 1)]


def convolution_call(direction, stride, pad, groups):
    if direction == "forward":
        return lambda x, w, _: torch.conv2d(x, w, None, stride, pad, 1, groups)
    mask = [direction == "input", direction == "filter", False]
    return lambda x, w, dy: aten.convolution_backward(dy, x, w, None, [stride, stride], [pad, pad], [1, 1], False, [0, 0], groups, mask)


def convolutions():
    for t, layout, batch in itertools.product(("fp32", "tf32", "fp16", "bf16"), ("nchw", "nhwc"), (8, 32, 128)):
        if layout == "nhwc" and (t in ("fp32", "bf16") or batch == 32):
            continue
        if t == "bf16" and batch == 128:
            continue
        for c, f, kernel, pixels, stride, groups in CONVOLUTIONS:
            pad = 0 if kernel in (16, 4) else kernel // 2
            out = (pixels + 2 * pad - kernel) // stride + 1
            if batch * max(c * pixels * pixels, f * out * out) > 1.2e9:
                continue
            for direction in ("forward", "input", "filter"):
                if direction == "input" and c == 3:
                    continue
                dtype, form = set_type(t), torch.channels_last if layout == "nhwc" else torch.contiguous_format

                def make():
                    return tuple(v.to(memory_format=form) for v in (rand(batch, c, pixels, pixels, dtype=dtype), rand(f, c // groups, kernel, kernel, dtype=dtype), rand(batch, f, out, out, dtype=dtype)))
                yield {"class": "convolution", "op": direction, "type": t, "layout": layout, "batch": batch, "channels": c, "filters": f, "kernel": kernel, "pixels": pixels, "stride": stride, "pad": pad, "groups": groups}, \
                    make, convolution_call(direction, stride, pad, groups)


def attentions():
    for t, d, s, causal in itertools.product(("bf16", "fp16", "fp32"), (64, 80, 96, 128, 256), (64, 128, 197, 256, 512, 1024, 2048, 4096, 8192), (False, True)):
        if t == "fp16" and (d not in (64, 128) or s not in (128, 1024, 2048)):
            continue
        if t == "fp32" and (d not in (64, 128) or s > 4096 or s == 256):
            continue
        for tokens, heads in ((4096, 12), (32768, 12), (16384, 32)):
            batch = tokens // s
            if batch < 1 or (t == "fp32" and s * tokens * heads * d > 3e11):
                continue
            dtype = set_type(t)
            backend = "efficient" if t == "fp32" else "flash"
            for direction in ("forward", "backward"):
                row = {"class": "attention", "op": direction, "type": t, "backend": backend, "batch": batch, "heads": heads, "s": s, "d": d, "causal": causal}

                def make():
                    q, k, v = (rand(batch, heads, s, d, dtype=dtype) for _ in range(3))
                    if direction == "forward":
                        return q, k, v
                    g = rand(batch, heads, s, d, dtype=dtype)
                    if backend == "flash":
                        o = aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)
                        return (g, q, k, v, *o[:8])
                    o = aten._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, causal)
                    return (g, q, k, v, *o)
                if direction == "forward" and backend == "flash":
                    call = lambda q, k, v: aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)
                elif direction == "forward":
                    call = lambda q, k, v: aten._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, causal)
                elif backend == "flash":
                    call = lambda g, q, k, v, o, l, cq, ck, mq, mk, seed, off: aten._scaled_dot_product_flash_attention_backward(g, q, k, v, o, l, cq, ck, mq, mk, 0.0, causal, seed, off)
                else:
                    call = lambda g, q, k, v, o, l, seed, off: aten._scaled_dot_product_efficient_attention_backward(g, q, k, v, None, o, l, seed, off, 0.0, [True, True, True, False], causal)
                yield row, make, call
    for t, s, d in itertools.product(("bf16", "fp32"), (128, 512, 2048), (64, 128)):  # with a mask, and cuDNN's
        dtype, batch, heads = set_type(t), max(1, 16384 // s), 12

        def make():
            return (*(rand(batch, heads, s, d, dtype=dtype) for _ in range(3)), torch.zeros(batch, 1, s, s, device=DEVICE, dtype=dtype).expand(batch, heads, s, s))
        yield {"class": "attention", "op": "forward", "type": t, "backend": "efficient-mask", "batch": batch, "heads": heads, "s": s, "d": d, "causal": False}, make, \
            lambda q, k, v, m: aten._scaled_dot_product_efficient_attention(q, k, v, m, True, 0.0, False)
        if t == "bf16":
            yield {"class": "attention", "op": "forward", "type": t, "backend": "cudnn", "batch": batch, "heads": heads, "s": s, "d": d, "causal": True}, make, \
                lambda q, k, v, m: aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, True, False)

            def make_backward():
                q, k, v, m = make()
                return (rand(batch, heads, s, d, dtype=dtype), q, k, v, *aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, True, False)[:8])
            yield {"class": "attention", "op": "backward", "type": t, "backend": "cudnn", "batch": batch, "heads": heads, "s": s, "d": d, "causal": True}, make_backward, \
                lambda g, q, k, v, o, l, cq, ck, mq, mk, seed, off: aten._scaled_dot_product_cudnn_attention_backward(g, q, k, v, o, l, seed, off, None, cq, ck, mq, mk, 0.0, True)


def norms():
    for t, rows, width in itertools.product(("fp32", "bf16", "fp16"), (64, 512, 4096, 16384, 65536), (64, 320, 768, 1024, 2048, 4096, 8192)):
        if rows * width > 3e8 or (t == "fp16" and width not in (768, 4096)):
            continue
        dtype = set_type(t)
        base = {"class": "norm", "type": t, "rows": rows, "width": width}
        x = lambda: (rand(rows, width, dtype=dtype), rand(width, dtype=dtype), rand(width, dtype=dtype))
        yield {**base, "op": "layer_norm"}, x, lambda a, w, b: aten.native_layer_norm(a, [width], w, b, 1e-5)

        def back():
            a, w, b = x()
            _, mean, rstd = aten.native_layer_norm(a, [width], w, b, 1e-5)
            return rand(rows, width, dtype=dtype), a, mean, rstd, w, b
        yield {**base, "op": "layer_norm_backward"}, back, lambda g, a, mean, rstd, w, b: aten.native_layer_norm_backward(g, a, [width], mean, rstd, w, b, [True, True, True])
        if hasattr(aten, "_fused_rms_norm"):
            yield {**base, "op": "rms_norm"}, x, lambda a, w, b: aten._fused_rms_norm(a, [width], w, 1e-6)
    for t, (c, pixels), batch in itertools.product(("fp32", "fp16", "bf16"), ((64, 112), (64, 56), (256, 56), (128, 28), (512, 28), (1024, 14), (2048, 7), (96, 112), (1152, 7)), (8, 32, 128)):
        dtype = set_type(t)
        base = {"class": "norm", "type": t, "batch": batch, "channels": c, "pixels": pixels}

        def bn():
            return (rand(batch, c, pixels, pixels, dtype=dtype), *(torch.ones(c, device=DEVICE) for _ in range(4)))
        yield {**base, "op": "cudnn_batch_norm"}, bn, lambda x, w, b, m, v: aten.cudnn_batch_norm(x, w, b, m, v, True, 0.1, 1e-5)

        def bnb():
            x, w, b, m, v = bn()
            _, sm, sv, r = aten.cudnn_batch_norm(x, w, b, m, v, True, 0.1, 1e-5)
            return x, rand(batch, c, pixels, pixels, dtype=dtype), w, m, v, sm, sv, r
        yield {**base, "op": "cudnn_batch_norm_backward"}, bnb, lambda x, g, w, m, v, sm, sv, r: aten.cudnn_batch_norm_backward(x, g, w, m, v, sm, sv, 1e-5, r)
        if c % 32 == 0 and batch != 128:
            yield {**base, "op": "group_norm"}, bn, lambda x, w, b, m, v: aten.native_group_norm(x, w.to(x.dtype), b.to(x.dtype), batch, c, pixels * pixels, 32, 1e-5)


def softmaxes():
    for t, rows, width in itertools.product(("fp32", "bf16", "fp16"), (512, 4096, 16384, 98304, 393216), (64, 128, 512, 1000, 1024, 2048, 4096, 30522, 50257, 128256)):
        if rows * width > 9e8 or (t == "fp16" and width not in (128, 1024, 30522)):
            continue
        dtype = set_type(t)
        base = {"class": "softmax", "type": t, "rows": rows, "width": width}
        yield {**base, "op": "softmax"}, lambda: (rand(rows, width, dtype=dtype),), lambda x: aten._softmax(x, -1, False)
        yield {**base, "op": "softmax_backward"}, lambda: (rand(rows, width, dtype=dtype), rand(rows, width, dtype=dtype)), lambda g, y: aten._softmax_backward_data(g, y, -1, dtype)
        if width >= 1000 and rows <= 16384:
            label = torch.randint(0, width, (rows,), device=DEVICE)
            yield {**base, "op": "log_softmax"}, lambda: (rand(rows, width, dtype=dtype),), lambda x: aten._log_softmax(x, -1, False)
            yield {**base, "op": "log_softmax_backward"}, lambda: (rand(rows, width, dtype=dtype), rand(rows, width, dtype=dtype)), lambda g, y: aten._log_softmax_backward_data(g, y, -1, dtype)
            yield {**base, "op": "nll_loss"}, lambda: (rand(rows, width, dtype=dtype),), lambda x: aten.nll_loss_forward(x, label, None, 1, -100)
            yield {**base, "op": "nll_loss_backward"}, lambda: (rand(rows, width, dtype=dtype), torch.ones((), device=DEVICE, dtype=dtype), torch.ones((), device=DEVICE, dtype=dtype)), \
                lambda x, g, w: aten.nll_loss_backward(g, x, label, None, 1, -100, w)


def elementwise():
    unary = {"relu": torch.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "tanh": torch.tanh, "exp": torch.exp, "pow2": lambda x: x.pow(2), "rsqrt": torch.rsqrt,
             "neg": torch.neg, "clone": torch.clone, "zero_": lambda x: x.zero_(), "mul_scalar": lambda x: x * 0.5, "add_scalar": lambda x: x + 1.0, "sigmoid": torch.sigmoid,
             "dropout": lambda x: aten.native_dropout(x, 0.1, True), "to_other": lambda x: x.to(torch.bfloat16 if x.dtype == torch.float32 else torch.float32), "to_fp16": lambda x: x.to(torch.float16) if x.dtype == torch.float32 else x.float()}
    binary = {"add": torch.add, "mul": torch.mul, "div": torch.div, "add_": lambda x, y: x.add_(y), "gelu_backward": aten.gelu_backward, "silu_backward": aten.silu_backward,
              "tanh_backward": aten.tanh_backward, "threshold_backward": lambda g, x: aten.threshold_backward(g, x, 0), "where": lambda x, y: torch.where(x > 0, x, y)}
    sizes = (1 << 10, 1 << 14, 1 << 17, 1 << 20, 3 << 20, 1 << 23, 1 << 25, 1 << 27)
    for t, n in itertools.product(("fp32", "bf16", "fp16"), sizes):
        if t == "fp16" and n not in (1 << 17, 1 << 23):
            continue
        dtype = set_type(t)
        for name, call in unary.items():
            yield {"class": "elementwise", "op": name, "type": t, "elements": n}, lambda: (rand(n, dtype=dtype),), call
        for name, call in binary.items():
            yield {"class": "elementwise", "op": name, "type": t, "elements": n}, lambda: (rand(n, dtype=dtype), rand(n, dtype=dtype)), call
    for t, rows, width in itertools.product(("fp32", "bf16"), (512, 4096, 32768), (64, 768, 4096)):
        dtype = set_type(t)
        base = {"class": "elementwise", "type": t, "rows": rows, "width": width}
        m = lambda: (rand(rows, width, dtype=dtype),)
        yield {**base, "op": "add_row"}, lambda: (rand(rows, width, dtype=dtype), rand(width, dtype=dtype)), torch.add
        yield {**base, "op": "mul_column"}, lambda: (rand(rows, width, dtype=dtype), rand(rows, 1, dtype=dtype)), torch.mul
        yield {**base, "op": "transpose"}, m, lambda x: x.t().contiguous()
        yield {**base, "op": "cat"}, lambda: (rand(rows, width, dtype=dtype), rand(rows, width, dtype=dtype)), lambda x, y: torch.cat((x, y), -1)
        if width % 64 == 0 and rows >= 512:
            yield {**base, "op": "heads"}, m, lambda x: x.view(rows // 128, 128, width // 64, 64).transpose(1, 2).contiguous()
        yield {**base, "op": "sum_rows", "class": "reduction"}, m, lambda x: x.sum(0)
        yield {**base, "op": "sum_columns", "class": "reduction"}, m, lambda x: x.sum(-1)
        yield {**base, "op": "mean_columns", "class": "reduction"}, m, lambda x: x.mean(-1, keepdim=True)
        yield {**base, "op": "sum_all", "class": "reduction"}, m, lambda x: x.sum()
        yield {**base, "op": "max_columns", "class": "reduction"}, m, lambda x: x.max(-1)
    for t, pixels, c, batch in itertools.product(("fp32", "fp16"), (112, 56), (64, 256), (8, 64)):
        dtype = set_type(t)
        base = {"class": "pool", "type": t, "batch": batch, "channels": c, "pixels": pixels}
        x = lambda: (rand(batch, c, pixels, pixels, dtype=dtype),)
        yield {**base, "op": "max_pool"}, x, lambda a: aten.max_pool2d_with_indices(a, [3, 3], [2, 2], [1, 1])

        def back():
            a = rand(batch, c, pixels, pixels, dtype=dtype)
            y, i = aten.max_pool2d_with_indices(a, [3, 3], [2, 2], [1, 1])
            return torch.randn_like(y), a, i
        yield {**base, "op": "max_pool_backward"}, back, lambda g, a, i: aten.max_pool2d_with_indices_backward(g, a, [3, 3], [2, 2], [1, 1], [1, 1], False, i)
        yield {**base, "op": "adaptive_avg_pool"}, x, lambda a: aten.mean(a, [2, 3], True)
        yield {**base, "op": "upsample_nearest"}, x, lambda a: F.interpolate(a, scale_factor=2)
        yield {**base, "op": "upsample_bilinear"}, x, lambda a: F.interpolate(a, scale_factor=2, mode="bilinear")


def embeddings():
    for t, tokens, (vocabulary, width) in itertools.product(("fp32", "bf16"), (512, 4096, 16384, 65536), ((30522, 768), (50257, 768), (128256, 4096), (512, 768), (2, 768), (32000, 4096))):
        dtype = set_type(t)
        ids = torch.randint(0, vocabulary, (tokens,), device=DEVICE)
        base = {"class": "embedding", "type": t, "tokens": tokens, "vocabulary": vocabulary, "width": width}
        yield {**base, "op": "embedding"}, lambda: (rand(vocabulary, width, dtype=dtype),), lambda w: aten.embedding(w, ids)
        yield {**base, "op": "embedding_backward"}, lambda: (rand(tokens, width, dtype=dtype),), lambda g: aten.embedding_dense_backward(g, ids, vocabulary, -1, False)


def copies():
    for n in (1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 28):
        yield {"class": "copy", "op": "device", "type": "fp32", "bytes": n}, lambda: (torch.empty(n, dtype=torch.uint8, device=DEVICE), torch.empty(n, dtype=torch.uint8, device=DEVICE)), lambda a, b: a.copy_(b)
        yield {"class": "copy", "op": "to_device_pinned", "type": "fp32", "bytes": n}, lambda: (torch.empty(n, dtype=torch.uint8, device=DEVICE), torch.empty(n, dtype=torch.uint8).pin_memory()), lambda a, b: a.copy_(b, non_blocking=True)
        yield {"class": "copy", "op": "to_host_pinned", "type": "fp32", "bytes": n}, lambda: (torch.empty(n, dtype=torch.uint8).pin_memory(), torch.empty(n, dtype=torch.uint8, device=DEVICE)), lambda a, b: a.copy_(b, non_blocking=True)


def shared(path):
    """The same float32 kernels as other people timed on five cards: a line of path is a case."""
    for line in open(path):
        c = json.loads(line)
        dtype = set_type("fp32" if c["tf32"] is False else "tf32")
        row = {"class": "shared", **c}
        op = c["op"]
        if op == "linear":
            yield row, lambda: (rand(c["m"], c["k"], dtype=dtype), rand(c["n"], c["k"], dtype=dtype), rand(c["n"], dtype=dtype)), F.linear
        elif op == "bmm":
            yield row, lambda: (rand(c["count"], c["m"], c["k"], dtype=dtype), rand(c["count"], c["k"], c["n"], dtype=dtype)), torch.bmm
        elif op == "conv":
            yield row, lambda: (rand(c["batch"], c["channels"], c["pixels"], c["pixels"], dtype=dtype), rand(c["filters"], c["channels"], c["kernel"], c["kernel"], dtype=dtype)), \
                lambda x, w: torch.conv2d(x, w, None, c["stride"], c["pad"])
        elif op == "ln":
            yield row, lambda: (rand(c["rows"], c["width"], dtype=dtype), rand(c["width"], dtype=dtype), rand(c["width"], dtype=dtype)), lambda x, w, b: F.layer_norm(x, [c["width"]], w, b)
        else:
            one = {"gelu": F.gelu, "relu": F.relu, "tanh": torch.tanh, "softmax": lambda x: F.softmax(x, -1), "pow": None, "addu": lambda x: x + 1.5, "mulu": lambda x: x * 1.5, "divu": lambda x: x / 1.5}.get(op)
            two = {"add": torch.add, "mul": torch.mul, "div": torch.div}.get(op)
            if one:
                yield row, lambda: (rand(c["rows"], c["width"], dtype=dtype),), one
            elif two:
                yield row, lambda: (rand(c["rows"], c["width"], dtype=dtype), rand(c["rows"], c["width"], dtype=dtype)), two


def once(call, repeat):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeat):
        call()
    took = time.perf_counter() - start
    torch.cuda.synchronize()
    return took / repeat


def median_time(call, repeat=200):
    """Wall time of call() on the card, from idle to idle, in microseconds."""
    call(); torch.cuda.synchronize()
    took = []
    for _ in range(repeat):
        a = time.perf_counter(); call(); torch.cuda.synchronize(); took.append(time.perf_counter() - a)
    return statistics.median(took) * 1e6


def optimizers(write):
    shapes = {"gpt2": [(50257, 768), (1024, 768)] + 12 * [(768,), (768,), (768, 2304), (2304,), (768, 768), (768,), (768,), (768,), (768, 3072), (3072,), (3072, 768), (768,)] + 2 * [(768,)],
              "wide": 32 * [(4096, 4096)], "many": 400 * [(256,)], "llama-layer": 4 * [(4096, 4096), (1024, 4096), (1024, 4096), (4096, 4096), (14336, 4096), (14336, 4096), (4096, 14336), (4096,), (4096,)]}
    makers = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "sgd": torch.optim.SGD, "sgd-momentum": lambda p, **k: torch.optim.SGD(p, lr=1e-3, momentum=0.9, **k), "rmsprop": torch.optim.RMSprop, "adafactor": torch.optim.Adafactor}
    for (name, sizes), (kind, maker), implementation, t in itertools.product(shapes.items(), makers.items(), ("foreach", "fused", "loop"), ("fp32", "bf16")):
        if (implementation == "fused" and kind in ("rmsprop", "adafactor")) or (implementation == "loop" and t == "bf16"):
            continue
        try:
            params = [torch.nn.Parameter(rand(*s, dtype=TYPES[t])) for s in sizes]
            for p in params:
                p.grad = torch.randn_like(p)
            keys = {"foreach": {"foreach": True}, "fused": {"fused": True}, "loop": {"foreach": False}}[implementation]
            o = maker(params, **({"lr": 1e-3} if kind in ("sgd",) else {}), **keys)
            o.step(); o.step()
            row = {"class": "optimizer", "op": kind, "implementation": implementation, "type": t, "list": name, "tensors": len(sizes), "elements": sum(p.numel() for p in params)}
            host = once(o.step, 5) * 1e6
            write({**row, "us": median_time(o.step, 15), "host_us": host})
            if kind == "adamw" and implementation == "foreach":
                write({**row, "op": "clip_grad_norm", "us": median_time(lambda: torch.nn.utils.clip_grad_norm_(params, 1.0), 15), "host_us": once(lambda: torch.nn.utils.clip_grad_norm_(params, 1.0), 5) * 1e6})
            del o, params
        except Exception as e:
            write({"class": "optimizer", "op": kind, "implementation": implementation, "type": t, "list": name, "error": str(e)[:120]})


def hosts(write):
    """What the host takes for a call, with tensors so small that the card is never behind."""
    x, w, b = rand(8, 8, dtype=torch.float32), rand(8, 8, dtype=torch.float32), rand(8, dtype=torch.float32)
    i, im, k = torch.zeros(8, dtype=torch.long, device=DEVICE), rand(1, 4, 8, 8, dtype=torch.float32), rand(4, 4, 3, 3, dtype=torch.float32)
    xb, q = x.bfloat16(), rand(1, 2, 8, 16, dtype=torch.bfloat16)
    ones = [torch.ones(4, device=DEVICE) for _ in range(4)]
    lin, ln, bn = torch.nn.Linear(8, 8, device=DEVICE), torch.nn.LayerNorm(8, device=DEVICE), torch.nn.BatchNorm2d(4, device=DEVICE)
    calls = {"add": lambda: x + x, "add_": lambda: x.add_(x), "mul": lambda: x * x, "mul_scalar": lambda: x * 2, "relu": lambda: torch.relu(x), "gelu": lambda: F.gelu(x), "view": lambda: x.view(64), "transpose": lambda: x.transpose(0, 1),
             "contiguous": lambda: x.t().contiguous(), "mm": lambda: torch.mm(x, w), "linear": lambda: F.linear(x, w, b), "bmm": lambda: torch.bmm(x[None], w[None]), "layer_norm": lambda: F.layer_norm(x, [8], b, b),
             "batch_norm": lambda: F.batch_norm(im, ones[0], ones[1], ones[2], ones[3], True), "conv2d": lambda: F.conv2d(im, k, padding=1), "softmax": lambda: F.softmax(x, -1), "dropout": lambda: F.dropout(x, 0.1),
             "embedding": lambda: F.embedding(i, w), "cat": lambda: torch.cat((x, x), -1), "sum": lambda: x.sum(), "to_bf16": lambda: x.to(torch.bfloat16), "empty": lambda: torch.empty(8, device=DEVICE), "zeros": lambda: torch.zeros(8, device=DEVICE),
             "sdpa": lambda: F.scaled_dot_product_attention(q, q, q), "cross_entropy": lambda: F.cross_entropy(x, i), "item": lambda: x[0, 0].item(), "index": lambda: x[i], "slice": lambda: x[:, :4], "split": lambda: x.split(4, -1), "pow": lambda: x.pow(2), "mean": lambda: x.mean(-1, keepdim=True),
             "module_linear": lambda: lin(x), "module_layer_norm": lambda: ln(x), "module_batch_norm": lambda: bn(im), "where": lambda: torch.where(x > 0, x, w), "arange": lambda: torch.arange(8, device=DEVICE), "masked_fill": lambda: x.masked_fill(x > 0, 0.0)}
    for name, call in calls.items():
        for mode in ("no_grad", "grad", "autocast"):
            for v in (w, b, k):
                v.requires_grad_(mode != "no_grad")
            try:
                if mode == "autocast":
                    with torch.autocast("cuda", torch.bfloat16):
                        once(call, 50); us = min(once(call, 300) for _ in range(3)) * 1e6
                elif mode == "no_grad":
                    with torch.no_grad():
                        once(call, 50); us = min(once(call, 300) for _ in range(3)) * 1e6
                else:
                    once(call, 50); us = min(once(call, 300) for _ in range(3)) * 1e6
                write({"class": "host", "op": name, "mode": mode, "us": us})
            except Exception as e:
                write({"class": "host", "op": name, "mode": mode, "error": str(e)[:100]})
    # Backward: a chain of one operator, timed by the host as a whole.
    for name, step in {"mul": lambda y: y * w, "linear": lambda y: F.linear(y, w, b), "gelu": lambda y: F.gelu(y), "layer_norm": lambda y: F.layer_norm(y, [8], b, b), "add": lambda y: y + w, "view": lambda y: y.view(64).view(8, 8), "transpose": lambda y: y.t()}.items():
        for v in (w, b):
            v.requires_grad_(True)
        took = []
        for _ in range(15):
            y = x.detach().requires_grad_(True)
            for _ in range(200):
                y = step(y)
            loss = y.sum(); torch.cuda.synchronize()
            a = time.perf_counter(); loss.backward(); took.append(time.perf_counter() - a); torch.cuda.synchronize()
        write({"class": "host", "op": name, "mode": "backward", "us": statistics.median(took) * 1e6 / 200})
        w.grad = b.grad = None


def main():
    out, only = open(sys.argv[1], "a"), sys.argv[2:]
    started, done, failed = time.time(), 0, 0

    def write(row):
        nonlocal done
        done += 1
        out.write(json.dumps(row) + "\n")
    write({"class": "machine", "card": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()})
    classes = [("elementwise", elementwise), ("norm", norms), ("softmax", softmaxes), ("embedding", embeddings), ("copy", copies), ("product", products), ("batched", batched), ("convolution", convolutions), ("attention", attentions)]
    for name, cases in classes + [("shared:" + p[7:], lambda p=p: shared(p[7:])) for p in only if p.startswith("shared:")]:
        if only and name not in only:
            continue
        begun, before = time.time(), done
        for row, make, call in cases():
            try:
                write({**row, "us": round(timed(make, call), 3)})
            except Exception as e:
                torch.cuda.synchronize()
                failed += 1
                write({**row, "error": str(e).splitlines()[0][:120]})
        out.flush()
        torch.cuda.empty_cache()
        print(f"{name}: {done - before} rows in {time.time() - begun:.0f} s", flush=True)
    for name, measure in (("optimizer", optimizers), ("host", hosts)):
        if not only or name in only:
            begun, before = time.time(), done
            measure(write)
            out.flush()
            print(f"{name}: {done - before} rows in {time.time() - begun:.0f} s", flush=True)
    print(f"{done} rows, {failed} failed, {time.time() - started:.0f} s")


main()
