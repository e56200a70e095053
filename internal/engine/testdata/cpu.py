"""Plays the prober on a CPU with 64 GiB, half of them free. A step holds
a gigabyte, a kilobyte more for each sample, and from batch 64 on a megabyte more
for each: a line through small batches is far off. A sample takes as many seconds
as the argument says. The fields are those of docs/prober-protocol.md."""

import json
import os
import sys

requests, answers = os.fdopen(3), os.fdopen(4, "w", buffering=1)
KIB, MIB, GIB = 2**10, 2**20, 2**30


def say(kind: str, request: int, **fields: object) -> None:
    print(json.dumps({"type": kind, "id": request, **fields}), file=answers)


def outcome(probe: dict, batch: int) -> dict:
    held = GIB + batch * KIB + max(batch - 64, 0) * MIB
    if held > probe["limit_bytes"]:
        return {"batch_size": batch, "steps": [], "failure": {"class": "out_of_memory", "message": "too much is live", "phase": "forward"}}
    peaks = {"requested": held, "allocated": held}
    seconds = batch * float(sys.argv[1])
    step = {"peak_requested": held, "peak_allocated": held, "end_allocated": GIB, "seconds": seconds, "phases": {"forward": peaks, "backward": peaks}}
    return {"batch_size": batch, "steps": [step] * probe["steps"], "seconds_per_step": seconds}


print(json.dumps({"type": "hello", "protocol": 1, "python": "3.12.3"}), file=answers)
for line in requests:
    r = json.loads(line)
    if r["type"] == "prepare":
        say("ready", r["id"], torch="2.11.0+cpu", transformers="5.17.0", seconds=0)
        say("result", r["look_id"], device="cpu", name="CPU", total_bytes=64 * GIB, free_bytes=32 * GIB, wall_seconds=0)
    elif r["type"] == "probe":
        outcomes = []
        for batch in r["batches"]:
            outcomes.append(outcome(r, batch))
            if "failure" in outcomes[-1]:
                break
        say("result", r["id"], outcomes=outcomes, wall_seconds=0.1)
