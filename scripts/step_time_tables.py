"""Fits the constants of internal/steptime to the measurements in its testdata/kernels, and writes its tables.

    python scripts/step_time_tables.py

classes.csv has a row for each class of kernel: what it reaches on an H200. points.csv has the sizes of kernels whose
time depends on an algorithm that a library chooses, with what they took. README.md next to the measurements says where
they come from. The times are those of Class.seconds in internal/steptime/device.go, which this repeats.
"""
import csv, json, lzma, os
import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../internal/steptime")
KERNELS = os.path.join(HERE, "testdata/kernels")
PEAK = {"fp32": 66.9e12, "tf32": 494.7e12, "fp16": 989.4e12, "bf16": 989.4e12}  # of the H200, internal/gpu/catalog.json
BANDWIDTH, SMS = 4.8e12, 132
SIZE = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}
TILES = [(256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (32, 64), (64, 32)]
COLUMNS = ["latency", "memory", "compute", "tile", "edge", "round", "split", "layout"]


def read(name):
    with lzma.open(os.path.join(KERNELS, name + ".xz"), "rt") as f:
        return [json.loads(line) for line in f]


def tiled(m, n, k, count, unit, sms, p):
    """Microseconds of the best tile and split of a product."""
    best = None
    for rows, columns in TILES:
        for split in (1, 2, 4, 8, 16):
            share = np.ceil(m / rows) * np.ceil(n / columns) * count * split / sms
            rounds = (1 - p["round"]) * np.maximum(share, 1) + p["round"] * np.ceil(share)
            each = p["tile"] + 2 * rows * columns * k / split / (unit * p["compute"] / (1 + p["edge"] * (1 / rows + 1 / columns))) * 1e6
            took = np.where((split == 1) | (k / split >= 128), rounds * each + (p["split"] if split > 1 else 0), np.inf)
            best = took if best is None else np.minimum(best, took)
    return best


def model(rows, p):
    """rows has m, n, k, count, bytes, copied and peak in columns."""
    m, n, k, count, moved, copied, peak = rows
    compute = 0 if p["compute"] == 0 else tiled(m, n, k, count, peak / SMS, SMS, p) if p["tile"] > 0 else 2 * m * n * k * count / (p["compute"] * peak) * 1e6
    return p["latency"] + np.maximum(moved / (BANDWIDTH * p["memory"]) * 1e6, compute) + p["layout"] * copied / BANDWIDTH * 1e6


def fit(rows, us, start, rounds=30):
    rows, us = np.array(rows, float).T, np.array(us)
    loss = lambda p: np.mean(np.minimum(np.abs(np.log(model(rows, p) / us)), 3))
    best_p, best = None, None
    for scale in (1, 0.2, 0.05):
        p = {**start, "compute": start["compute"] * scale}
        now, factors = loss(p), {c: 1.5 for c in COLUMNS if start[c] > 0}
        for _ in range(rounds):
            for c in factors:
                for f in (factors[c], 1 / factors[c]):
                    q = {**p, c: min(p[c] * f, 1) if c in ("round", "memory", "compute") else p[c] * f}
                    if loss(q) < now - 1e-6:
                        p, now = q, loss(q)
                        break
                else:
                    factors[c] = 1 + (factors[c] - 1) * 0.6
        if best is None or now < best:
            best_p, best = p, now
        if start["compute"] == 0:
            break
    off = np.sort(np.abs(model(rows, best_p) / us - 1))
    return best_p, off[len(off) // 2], off[len(off) * 9 // 10], len(off)


START = {"latency": 3, "memory": 0.7, "compute": 0.8, "tile": 1, "edge": 8, "round": 0.3, "split": 1, "layout": 0}
MOVES = {"latency": 2, "memory": 0.6, "compute": 0, "tile": 0, "edge": 0, "round": 0, "split": 0, "layout": 0}


def products(rows):
    """By layout; those whose rows begin at multiples of 4 bytes only, or of 2, are apart."""
    out = {}
    for r in rows:
        if r["class"] != "product":
            continue
        m, n, k = (r["n"], r["k"], r["m"]) if r["layout"] == "weight" else (r["m"], r["k"], r["n"]) if r["layout"] == "input" else (r["m"], r["n"], r["k"])
        layout = {"forward": 0, "nt": 0, "input": 1, "nn": 1, "weight": 2, "tn": 2}[r["layout"]]
        size, count = SIZE[r["type"]], r.get("count", 1)
        left, right = (k, k) if layout == 0 else (k, n) if layout == 1 else (m, n)
        rows = [x * size for x in (left, right, n)]
        unaligned = 0 if not any(x % 16 for x in rows) else 3 if not any(x % 4 for x in rows) else 6
        key = ("product", "bf16" if size == 2 else r["type"], layout + unaligned)
        out.setdefault(key, []).append(([m, n, k, count, (m * k + k * n + m * n) * count * size, 0, PEAK[r["type"]]], r["us"]))
    return out


def convolution_sizes(r):
    out = (r["pixels"] + 2 * r["pad"] - r["kernel"]) // r["stride"] + 1
    direction = {"forward": 0, "input": 1, "filter": 2}[r["op"]]
    return [direction, r["batch"], r["channels"], r["filters"], r["kernel"] ** 2, r["pixels"] ** 2, out ** 2, r["groups"], int(r["layout"] == "nhwc")]


def convolution(size, kind):
    direction, batch, channels, filters, taps, i, o, groups, last = size
    c, f = channels / groups, filters / groups
    m, n, k = [(batch * o, f, c * taps), (batch * i, c, f * taps * o / i), (f, c * taps, batch * o)][direction]
    elements = batch * channels * i + batch * filters * o
    moved = (elements + channels * filters * taps / groups) * SIZE[kind]
    apart = groups > 1 and c * f < 64
    return [m, n, k, groups, moved, 0 if last else elements * SIZE[kind], PEAK["fp32" if apart else kind]]


def convolution_variant(size):
    direction, _, channels, filters, taps, _, _, groups, last = size
    shape = 0 if groups == 1 and taps > 1 else 1 if groups == 1 else 2 if channels == groups else 3
    return int(direction + 3 * last + 6 * shape)


def attention_sizes(r):
    width = r["heads"] * r["batch"]
    operations = 4 * width * r["s"] ** 2 * r["d"] / (2 if r["causal"] else 1)
    moved = 4 * width * r["s"] * r["d"] * SIZE[r["type"]]
    direction = int(r["op"] == "backward")
    implementation = {"cudnn": 0, "flash": 1, "efficient": 2, "efficient-mask": 2}[r["backend"]]
    return [operations * (2.5 if direction else 1), moved * (2 if direction else 1), direction, implementation, r["s"], r["s"], r["d"], width]


def attention_of_steps():
    """Attention of cuDNN in whole steps: the kernels of a call, added."""
    for step in read("steps.jsonl"):
        calls = {}
        for operator, shapes, _, count, us in step.get("rows", []):
            if "_cudnn_attention" in operator or "_efficient_attention" in operator:
                key = (operator, json.dumps(shapes))
                n, sum_us = calls.get(key, (0, 0))
                calls[key] = (max(n, count), sum_us + count * us)
        for (operator, shapes), (count, us) in calls.items():
            s = json.loads(shapes)
            q, k = (s[1], s[2]) if "backward" in operator else (s[0], s[1])
            if "_efficient" in operator or len(q) < 4:
                continue
            causal = step["model"].split("-")[0] in ("gpt2", "llama", "qwen2")
            batch, heads, length, d = q
            operations = 4 * batch * heads * length * k[2] * d / (2 if causal else 1)
            direction = int("backward" in operator)
            yield "bf16", [operations * (2.5 if direction else 1), 4 * batch * heads * length * d * 2 * (2 if direction else 1), direction, 0, length, k[2], d, batch * heads], us / count


def batch_norms(rows):
    """cuDNN's, and PyTorch's in whole steps: the kernels of a call, added."""
    for r in rows:
        if r.get("op", "").startswith("cudnn_batch_norm"):
            yield r["type"], [int("backward" in r["op"]), 1, r["batch"] * r["channels"] * r["pixels"] ** 2, r["channels"]], r["us"]
    for step in read("steps.jsonl"):
        calls = {}
        for operator, shapes, _, count, us in step.get("rows", []):
            if operator.startswith("aten::native_batch_norm"):
                key = (operator, json.dumps(shapes))
                n, sum_us = calls.get(key, (count, 0))
                calls[key] = (n, sum_us + count * us)
        for (operator, shapes), (count, us) in calls.items():
            shape = json.loads(shapes)[0]
            yield "bf16", [int("backward" in operator), 0, float(np.prod(shape)), shape[1]], us / count


# How many bytes a kernel of a class moves, by the name of the measurement: elements by size, and fixed bytes.
UNARY = "relu gelu gelu_tanh silu tanh exp pow2 rsqrt neg clone mul_scalar add_scalar sigmoid".split()
BINARY = "add mul div add_ gelu_backward silu_backward tanh_backward threshold_backward".split()
MOVED = {**{o: ("kernel", 2, 0) for o in UNARY}, **{o: ("kernel", 3, 0) for o in BINARY}, "zero_": ("fill", 1, 0), "dropout": ("dropout", 2, 1), "add_row": ("row", 2, 0), "mul_column": ("row", 2, 0),
         "transpose": ("strided", 2, 0), "cat": ("kernel", 4, 0), "layer_norm": ("layer_norm", 2, 0), "layer_norm_backward": ("layer_norm_backward", 3, 0), "group_norm": ("group_norm", 2, 0),
         "softmax": ("softmax", 2, 0), "softmax_backward": ("softmax_backward", 3, 0), "log_softmax": ("log_softmax", 2, 0), "log_softmax_backward": ("log_softmax_backward", 3, 0),
         "sum_rows": ("sum_rows", 1, 0), "sum_columns": ("sum_columns", 1, 0), "mean_columns": ("sum_columns", 1, 0), "max_pool": ("max_pool", 1.25, 2), "max_pool_backward": ("max_pool_backward", 1.25, 2),
         "upsample_nearest": ("upsample", 5, 0)}


# Microseconds in which a card waits for an optimizer to look at its parameters: of GPT-2's AdamW, what it was timed at
# alone less its kernels in steps.jsonl.
BEFORE_OPTIMIZER = 550


def moving(rows):
    out = {}
    for r in rows:
        op, kind = r.get("op"), r.get("type")
        n = r.get("elements") or r.get("rows", 0) * r.get("width", 0) or r.get("batch", 0) * r.get("channels", 0) * r.get("pixels", 0) ** 2
        if op in ("to_other", "to_fp16"):
            name, moved, kind = ("kernel", 6 * n, "bf16") if kind == "fp32" else ("widen", 6 * n, "fp32")
        elif op == "nll_loss":
            name, moved = "nll_loss", 8 * r["rows"]
        elif op == "embedding":
            name, moved = op, 2 * r["tokens"] * r["width"] * SIZE[kind]
        elif op == "embedding_backward" and r["vocabulary"] > 100:
            name, moved = op, 2 * r["tokens"] * r["width"] * SIZE[kind]
            r = {**r, "us": r["us"] - 2 - r["vocabulary"] * r["width"] * SIZE[kind] / (0.9 * BANDWIDTH) * 1e6}  # the table is filled first
            if r["us"] < 1:
                continue
        elif op in MOVED and r["class"] in ("elementwise", "norm", "softmax", "reduction", "pool"):
            name, elements, fixed = MOVED[op]
            moved = n * (elements * SIZE[kind] + fixed)
        else:
            continue
        out.setdefault((name, "bf16" if SIZE[kind] == 2 else "fp32", 0), []).append(([0, 0, 0, 0, moved, 0, 1], r["us"]))
    for r in rows:
        if r["class"] == "optimizer" and r.get("implementation") == "foreach" and r["op"] in ("adamw", "adam") and r["list"] != "many" and "us" in r:
            passes, moved = {"adamw": (8, 20), "adam": (7, 18)}[r["op"]]
            calls = passes * (1 + r["tensors"] // 100)
            us = r["us"] - BEFORE_OPTIMIZER
            out.setdefault(("foreach", r["type"], 0), []).append(([0, 0, 0, 0, r["elements"] * SIZE[r["type"]] * moved / calls, 0, 1], us / calls))
    return out


def main():
    rows = [r for r in read("h200.jsonl") if "us" in r and r["class"] != "host"]
    table, points = [], []
    groups = {key: (START, found) for key, found in products(rows).items()}
    for key, found in moving(rows).items():
        groups[key] = (MOVES, found)
    for r in rows:
        if r["class"] == "convolution":
            size = convolution_sizes(r)
            variant = convolution_variant(size)
            start = {**START, "layout": 0 if size[8] else 0.5} if variant < 12 else {**START, "compute": 0.3, "tile": 0, "edge": 0, "round": 0, "split": 0, "layout": 0 if size[8] else 0.5}
            groups.setdefault(("convolution", r["type"], variant), (start, []))[1].append((convolution(size, r["type"]), r["us"]))
            points.append(("convolution", r["type"], r["us"], size))
        if r["class"] == "attention":
            points.append(("attention", r["type"], r["us"], attention_sizes(r)))
    points += [("attention", t, us, size) for t, size, us in attention_of_steps()] + [("batch_norm", t, us, size) for t, size, us in batch_norms(rows)]
    for kind, t, us, size in points:
        if kind == "attention":
            start = {**START, "compute": 0.5, "tile": 0, "edge": 0, "round": 0, "split": 0}
            groups.setdefault((kind, t, int(size[2] + 2 * size[3])), (start, []))[1].append(([size[0] / 2, 1, 1, 1, size[1], 0, PEAK[t]], us))
        if kind == "batch_norm":  # blocks of a channel each, on ordinary cores
            direction, library, elements, channels = size
            start = {**START, "memory": 0.885, "compute": 0.01, "tile": 0, "edge": 0, "round": 0, "split": 0}
            blocks = np.ceil(channels / SMS) * SMS / channels
            groups.setdefault((kind, t, int(direction + 2 * library)), (start, []))[1].append(([elements * blocks / 2, 1, 1, 1, elements * SIZE[t] * (5 if direction else 3), 0, PEAK["fp32"]], us))
    for (kind, t, variant), (start, found) in sorted(groups.items()):
        p, median, ninth, n = fit([f[0] for f in found], [f[1] for f in found], start)
        table.append([kind, t, variant] + ["%.4g" % p[c] for c in COLUMNS] + ["%.3f" % median, "%.3f" % ninth, n])
        print(*table[-1])
    with open(os.path.join(HERE, "classes.csv"), "w", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(["kind", "type", "variant"] + COLUMNS + ["median", "nine_in_ten", "rows"])
        w.writerows(table)
    with open(os.path.join(HERE, "points.csv"), "w", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        for kind, t, us, size in points:
            w.writerow([kind, t, "%.4g" % us] + ["%.7g" % s for s in size])


main()
