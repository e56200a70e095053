"""Describes a snapshot, as Python's pickle reads it, in lines of text.

describe in describe_test.go does the same with what the Go reader makes of the
file; the two must agree. Differences between versions of PyTorch are settled
here in the plainest way, independent of the reader.
"""

MASK = (1 << 64) - 1


def quoted(text):
    return '"' + text + '"'


def signed(n):
    """PyTorch writes a line it does not know, -1, as an unsigned number."""
    return (n + (1 << 63)) % (1 << 64) - (1 << 63)


def frames_text(frames):
    if frames is None:
        return "none"
    lines = []
    for f in frames:
        line = f"{f.get('filename', '')}:{signed(f.get('line', 0))}:{f.get('name', '')}"
        fx = [f.get("fx_" + k, "") for k in ("node_op", "node_name", "node_target", "original_trace")]
        if any(fx):
            line += "{" + ",".join(fx) + "}"
        lines.append(line)
    return "[" + "|".join(lines) + "]"


def note_text(d):
    out = ""
    if d.get("device_free", 0):
        out += f" device_free={d['device_free']}"
    if d.get("compile_context", "N/A") not in ("N/A", ""):
        out += " compile=" + quoted(d["compile_context"])
    if d.get("user_metadata", ""):
        out += " user=" + quoted(d["user_metadata"])
    if "pool_id" in d:
        out += " pool=%d,%d" % d["pool_id"]
    if d.get("forward_frames"):
        out += " forward=[" + "|".join(d["forward_frames"]) + "]"
    return out


def describe(data):
    if isinstance(data, list):
        data = {"segments": data}
    traces = data.get("device_traces", [])
    segments = data.get("segments", [])
    annotations = data.get("external_annotations", [])
    for device, trace in enumerate(traces):  # PyTorch 2.4 has annotations among the events
        annotations = annotations + [
            {"stage": e["frames"][0]["name"], "name": e["frames"][0]["filename"], "device": device,
             "time_us": e["time_us"]} for e in trace if e["action"] == "user_defined"]
    devices = [len(traces)] + [s["device"] + 1 for s in segments] + [a["device"] + 1 for a in annotations]
    for device in range(max(devices)):
        yield f"device {device}"
        for e in traces[device] if device < len(traces) else []:
            if e["action"] == "user_defined":
                continue
            yield "event %s addr=%#x size=%d stream=%d time=%d frames=%s%s" % (
                e["action"], e.get("addr", 0) & MASK, e["size"], e["stream"] & MASK, e.get("time_us", 0),
                frames_text(e.get("frames")), note_text(e))
        mine = [s for s in segments if s["device"] == device]
        if not mine:
            yield "no segments"
        for s in sorted(mine, key=lambda s: s["address"]):
            yield from segment_lines(s)
        mine = [a for a in annotations if a["device"] == device]
        for a in sorted(mine, key=lambda a: a["time_us"]):
            yield "mark %s %s %d" % (a["stage"], quoted(a["name"]), a["time_us"])
        yield from settings_lines(data.get("allocator_settings", {}))


def segment_lines(s):
    yield "segment addr=%#x size=%d stream=%d %s pool=%d,%d expandable=%s frames=%s%s" % (
        s["address"] & MASK, s["total_size"], s["stream"] & MASK, s["segment_type"],
        *s.get("segment_pool_id", (0, 0)), str(s.get("is_expandable", False)).lower(),
        frames_text(s.get("frames", [])), note_text(s))
    address = s["address"]
    for b in s["blocks"]:
        first = (b.get("history") or [{}])[0]
        yield "block addr=%#x size=%d requested=%d %s frames=%s%s" % (
            b.get("address", address) & MASK, b["size"],
            first.get("real_size", b.get("requested_size", b["size"])), b["state"],
            frames_text(first.get("frames", b.get("frames", []))), note_text(b))
        address = b.get("address", address) + b["size"]


KNOWN_SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "max_split_size", "garbage_collection_threshold",
                  "expandable_segments", "roundup_power2_divisions")


def settings_lines(s):
    roundup = s.get("roundup_power2_divisions", {})
    yield "settings %s max_split_size=%d gc=%g expandable=%s roundup=%s" % (
        quoted(s.get("PYTORCH_CUDA_ALLOC_CONF", "")), max(0, s.get("max_split_size", -1)),
        s.get("garbage_collection_threshold", 0), str(s.get("expandable_segments", False)).lower(),
        ",".join(str(roundup.get(str(1 << i), 0)) for i in range(16)))
    for name in sorted(k for k, v in s.items() if k not in KNOWN_SETTINGS and isinstance(v, int)):
        yield f"setting {name}={int(s[name])}"


def text(data):
    return "".join(line + "\n" for line in describe(data))
