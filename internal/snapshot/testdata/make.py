"""Writes the fixtures in shapes/: small snapshots in every shape and every way to pickle.

    python3 make.py

For each shape there is one NAME.txt, the text of describe.py, and a pickle for
each way of writing it. Made with CPython 3.11.7.
"""
import gzip
import io
import os
import pickle
import pickletools
import struct

import describe

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shapes")
BASE = 0x7F1200000000
MIB = 1 << 20


def frame(name, line, **more):
    return {"name": name, "filename": "train.py", "line": line, **more}


OUTER = frame("main", 90)
FORWARD = [frame("forward", 12), frame("__call__", 40), OUTER]
COMPILED = [frame("call", 7, fx_node_op="call_function", fx_node_name="relu_1",
                  fx_original_trace='File "m.py", line 3'), OUTER]
EMPTY = []
ROUNDUP = {str(1 << i): 0 for i in range(16)}


def settings(**more):
    return {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
            "expandable_segments": False, "pinned_num_register_threads": 1, "release_lock_on_cudamalloc": False,
            "pinned_use_cuda_host_register": False, **more, "roundup_power2_divisions": dict(ROUNDUP)}


def event(action, addr, size, stream=0, time=1700000000000000, **more):
    where = "device_free" if action == "oom" else "addr"
    return {"action": action, where: addr, "size": size, "stream": stream, "time_us": time, **more}


def block(address, size, requested, state, frames=EMPTY, **more):
    return {"address": address, "size": size, "requested_size": requested, "state": state, "frames": frames, **more}


def segment(address, size, blocks, device=0, stream=0, kind="large", pool=(0, 0), expandable=False, **more):
    active = [b for b in blocks if b["state"] != "inactive"]
    return {"device": device, "address": address, "total_size": size,
            "allocated_size": sum(b["size"] for b in active if b["state"] == "active_allocated"),
            "active_size": sum(b["size"] for b in active), "requested_size": sum(b["requested_size"] for b in active),
            "stream": stream, "segment_type": kind, "segment_pool_id": pool, "is_expandable": expandable,
            "frames": EMPTY, **more, "blocks": blocks}


def torch211():
    """All that PyTorch 2.11 can say, on two devices and three streams."""
    def plain(*args, **more):
        return event(*args, **{"compile_context": "N/A", "user_metadata": "", **more})
    trace = [
        plain("segment_alloc", BASE, 20 * MIB, frames=FORWARD),
        plain("alloc", BASE, 3 * MIB, frames=FORWARD),
        plain("alloc", BASE + 3 * MIB, 5 * MIB - 7, time=1700000000000010, frames=list(FORWARD),
              compile_context="Torch-Compiled Region: 0/0", user_metadata="step 1"),
        plain("free_requested", BASE, 3 * MIB, frames=[]),
        plain("free_completed", BASE, 3 * MIB),
        plain("alloc", BASE, 1, -2, frames=COMPILED, forward_frames=["m.py:3 in f", "m.py:9 in g"]),
        plain("free_requested", BASE, 1, -2, frames=COMPILED),
        plain("oom", 7 * MIB, 40 * 1024 * MIB, 94033312, frames=FORWARD),
        plain("oom", 0, 512),
        plain("snapshot", 0, 5 * MIB, time=1700000000000099),
    ]
    other = [plain("segment_map", 2 * BASE, 2 * MIB), plain("alloc", 2 * BASE, 100, frames=EMPTY)]
    segments = [
        segment(BASE, 20 * MIB, [
            block(BASE, 512, 1, "active_pending_free", COMPILED, forward_frames=["m.py:3 in f"]),
            block(BASE + 512, 3 * MIB - 512, 3 * MIB, "inactive"),
            block(BASE + 3 * MIB, 17 * MIB, 5 * MIB - 7, "active_allocated", FORWARD)], frames=FORWARD),
        segment(BASE + 20 * MIB, 2 * MIB, [block(BASE + 20 * MIB, 2 * MIB, 0, "inactive")],
                stream=94033312, kind="small", pool=(0, 1)),
        segment(2 * BASE, 2 * MIB, [block(2 * BASE, 512, 100, "active_allocated"),
                                    block(2 * BASE + 512, 2 * MIB - 512, 0, "inactive")],
                device=1, kind="small", expandable=True),
    ]
    marks = [{"stage": s, "name": "step", "device": 0, "time_us": 1700000000000000 + t}
             for s, t in (("START", 5), ("END", 50))]
    conf = settings(graph_capture_record_stream_reuse=False)
    conf.update(PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:64", max_split_size=64 * MIB,
                garbage_collection_threshold=0.8, release_lock_on_cudamalloc=True)
    conf["roundup_power2_divisions"]["256"] = 4
    return {"segments": segments, "device_traces": [trace, other], "allocator_settings": conf,
            "external_annotations": marks}


def torch214():
    """pool_id on every event, annotations of live memory, two more settings, keys of a version to come."""
    data = torch211()
    trace = data["device_traces"][0]
    trace.insert(1, event("annotate", BASE + 20 * MIB, 0, frames=[], compile_context="N/A", user_metadata="of nothing"))
    trace.insert(4, event("annotate", BASE + 3 * MIB, 5 * MIB, time=1700000000000011, frames=FORWARD, compile_context="N/A",
                          user_metadata="saved for MulBackward0"))
    for i, e in enumerate(data["device_traces"][0]):
        e["pool_id"] = (0, 1) if i % 3 == 2 else (0, 0)
    data["device_traces"][1][0]["weather"] = {"sunny": [True, None, 1.5, (), (1,), (1, 2, 3), (1, 2, 3, 4)]}
    data["segments"][0]["colour"] = "red"
    data["allocator_settings"].update(max_round_threshold=-1, max_cached_size=-1, allocator="native")
    data["version"] = 3
    return data


def xpu():
    """What torch.xpu.memory._snapshot returns: no settings, no annotations, and a queue's pointer for the default stream."""
    data = torch211()
    for s in data["segments"]:
        s["stream"] = 0x5581E0
    for e in (e for t in data["device_traces"] for e in t):
        e["stream"] = 0x5581E0
    return {"segments": data["segments"], "device_traces": data["device_traces"]}


def torch24():
    """Annotations among the events, and no forward frames: PyTorch 2.4."""
    data = torch211()
    for trace in data["device_traces"]:
        for e in trace:
            for key in ("compile_context", "user_metadata", "forward_frames"):
                e.pop(key, None)
    trace = data["device_traces"][0]
    for i, stage in ((9, "END"), (4, "END"), (3, "START"), (1, "START")):
        note = {"name": stage, "filename": "## forward ##", "line": 0}
        trace.insert(i, event("user_defined", 0, 0, time=trace[i]["time_us"], frames=[note]))
    del data["external_annotations"]
    return data


def torch21():
    """Before settings, annotations and times: PyTorch 2.1."""
    data = torch211()
    for trace in data["device_traces"]:
        for e in trace:
            for key in ("time_us", "compile_context", "user_metadata", "forward_frames"):
                e.pop(key, None)
    for s in data["segments"]:
        s.pop("segment_pool_id")
        s.pop("is_expandable")
        for b in s["blocks"]:
            b.pop("address")
    return {"segments": data["segments"], "device_traces": data["device_traces"]}


def torch20():
    """Blocks with a history instead of frames and requested_size."""
    blocks = [{"size": 512, "state": "active_allocated",
               "history": [{"addr": BASE, "real_size": 100, "frames": FORWARD}, {"addr": BASE, "real_size": 7}]},
              {"size": 1024, "state": "active_allocated", "history": [{"addr": BASE + 512, "real_size": 1000}]},
              {"size": 2 * MIB - 1536, "state": "inactive"}]
    return {"segments": [{"device": 0, "address": BASE, "total_size": 2 * MIB, "stream": 0, "allocated_size": 1536,
                          "active_size": 1536, "segment_type": "small", "blocks": blocks}],
            "device_traces": [[{"action": "alloc", "addr": BASE, "size": 100, "stream": 0, "frames": FORWARD}]]}


def segments_only():
    """A bare list, as torch.cuda.memory_snapshot() returns."""
    return torch21()["segments"]


def extremes():
    """Numbers at the ends of their ranges, and odd text."""
    top = (1 << 64) - 512
    return {"segments": [segment(1 << 63, 1 << 62, [block(1 << 63, 1 << 62, (1 << 62) - 1, "active_allocated")],
                                 stream=-1, pool=(1 << 63, (1 << 64) - 1))],
            "device_traces": [[], [event("alloc", top, 511, -(1 << 63), -1), event("alloc", 255, 256, 65535, 65536),
                                   event("alloc", 1 << 31, (1 << 31) - 1, 1 << 32, (1 << 63) - 1,
                                         frames=[frame("wörld \u4e16", (1 << 64) - 1), frame("x" * 300, 70000)])]],
            "allocator_settings": settings(), "external_annotations": []}


def nothing():
    """A process that recorded nothing."""
    return {"segments": [], "device_traces": [[], []], "allocator_settings": settings(), "external_annotations": []}


def long_lists():
    """More than a batch of 1000 events and of frames."""
    deep = [frame("recurse", i % 7) for i in range(5)] * 201 + [OUTER]
    events = [event("alloc", BASE + 512 * i, i % 512, frames=deep if i == 0 else FORWARD[2:]) for i in range(1205)]
    events += [event("alloc", BASE * 3, 5, frames=deep)]
    return {"segments": [], "device_traces": [events], "allocator_settings": settings(), "external_annotations": []}


class CppPickler:
    """Writes like torch/csrc/jit/serialization/pickler.cpp: protocol 2, only
    strings and containers memoized, each list and dict in one batch."""

    def __init__(self, one_by_one=False, marked=False):
        self.out, self.memo, self.next = bytearray(b"\x80\x02"), {}, 0
        self.one_by_one, self.marked = one_by_one, marked

    def put(self, key):
        self.memo[key] = self.next
        self.out += b"q" + bytes([self.next]) if self.next < 256 else b"r" + struct.pack("<I", self.next)
        self.next += 1

    def get(self, key):
        if key not in self.memo:
            return False
        slot = self.memo[key]
        self.out += b"h" + bytes([slot]) if slot < 256 else b"j" + struct.pack("<I", slot)
        return True

    def integer(self, n):
        if 0 <= n < 256:
            self.out += b"K" + bytes([n])
        elif 0 <= n < 65536:
            self.out += b"M" + struct.pack("<H", n)
        elif -(1 << 31) <= n < 1 << 31:
            self.out += b"J" + struct.pack("<i", n)
        else:
            self.out += b"\x8a\x08" + struct.pack("<Q", n & describe.MASK)

    def save(self, v):
        if v is None or isinstance(v, bool):
            self.out += {None: b"N", True: b"\x88", False: b"\x89"}[v]
        elif isinstance(v, int):
            self.integer(v)
        elif isinstance(v, float):
            self.out += b"G" + struct.pack(">d", v)
        elif isinstance(v, str):
            if not self.get(v):
                self.out += b"X" + struct.pack("<I", len(v.encode())) + v.encode()
                self.put(v)
        elif isinstance(v, tuple):
            self.out += b"(" if len(v) > 3 else b""
            for x in v:
                self.save(x)
            self.out += {0: b")", 1: b"\x85", 2: b"\x86", 3: b"\x87"}.get(len(v), b"t")
        elif not self.get(id(v)):
            self.container(v)

    def container(self, v):
        pairs = [x for kv in v.items() for x in kv] if isinstance(v, dict) else v
        one, many, size = (b"s", b"u", 2) if isinstance(v, dict) else (b"a", b"e", 1)
        if self.marked:  # the opcodes of protocol 0
            self.out += b"("
            for x in pairs:
                self.save(x)
            self.out += b"d" if isinstance(v, dict) else b"l"
            self.put(id(v))
            return
        self.out += b"}" if isinstance(v, dict) else b"]"
        self.put(id(v))
        self.out += b"" if self.one_by_one else b"("
        for i, x in enumerate(pairs):
            self.save(x)
            if self.one_by_one and i % size == size - 1:
                self.out += one
        self.out += b"" if self.one_by_one else many

    def dumps(self, v):
        self.save(v)
        return bytes(self.out + b".")


def fast(data):
    """Without a memo: nothing is shared."""
    out = io.BytesIO()
    p = pickle.Pickler(out, 4)
    p.fast = True
    p.dump(data)
    return out.getvalue()


WAYS = {
    "p2": lambda d: pickle.dumps(d, 2),
    "p3": lambda d: pickle.dumps(d, 3),
    "p4": lambda d: pickle.dumps(d, 4),
    "p5": lambda d: pickle.dumps(d, 5),
    "optimized": lambda d: pickletools.optimize(pickle.dumps(d, 4)),
    "fast": fast,
    "cpp": lambda d: CppPickler().dumps(d),
    "one_by_one": lambda d: CppPickler(one_by_one=True).dumps(d),
    "marked": lambda d: CppPickler(marked=True).dumps(d),
}
SHAPES = {f.__name__: f for f in (torch211, torch214, xpu, torch24, torch21, torch20, segments_only, extremes, nothing, long_lists)}
LARGE = {"long_lists"}

os.makedirs(OUT, exist_ok=True)
for name, make in SHAPES.items():
    data = make()
    with open(os.path.join(OUT, name + ".txt"), "w") as f:
        f.write(describe.text(data))
    for way, dumps in WAYS.items():
        pickled = dumps(data)
        signed = name == "extremes" and way in ("cpp", "one_by_one", "marked")  # C++ casts to int64
        assert signed or pickle.loads(pickled) == data, (name, way)
        path = os.path.join(OUT, f"{name}.{way}.pickle")
        if name in LARGE:
            with open(path + ".gz", "wb") as f:
                f.write(gzip.compress(pickled, mtime=0))
        else:
            with open(path, "wb") as f:
                f.write(pickled)
