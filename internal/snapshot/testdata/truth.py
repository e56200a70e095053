"""Writes truth.json: what Python reads in the recorded snapshots.

    python3 truth.py ../../../testdata/truth

Made once with CPython 3.11.7; run again when files are added.
"""
import glob
import hashlib
import json
import lzma
import os
import pickle
import sys

import describe


def facts(data):
    events = [e for t in data["device_traces"] for e in t]
    blocks = [b for s in data["segments"] for b in s["blocks"]]
    return {
        "devices": len(data["device_traces"]),
        "events": len(events),
        "event_size": sum(e["size"] for e in events),
        "event_addr": sum(e.get("addr", 0) for e in events) & describe.MASK,
        "event_time": sum(e["time_us"] for e in events) & describe.MASK,
        "event_frames": sum(len(e.get("frames", [])) for e in events),
        "event_lines": sum(describe.signed(f["line"]) for e in events for f in e.get("frames", [])),
        "segments": len(data["segments"]),
        "segment_size": sum(s["total_size"] for s in data["segments"]),
        "blocks": len(blocks),
        "requested": sum(b["requested_size"] for b in blocks),
        "block_frames": sum(len(b["frames"]) for b in blocks),
        "marks": len(data["external_annotations"]),
        # Of the whole text of describe.py: every field of every record.
        "sha256": hashlib.sha256(describe.text(data).encode()).hexdigest(),
    }


out = {}
for path in sorted(glob.glob(os.path.join(sys.argv[1], "*", "*.pickle.xz"))):
    with lzma.open(path) as f:
        out[os.path.relpath(path, sys.argv[1])] = facts(pickle.load(f))
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "truth.json"), "w") as f:
    json.dump(out, f, indent=1)
    f.write("\n")
