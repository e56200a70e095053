"""Plays the prober on a machine with an H200, on which batches up to 40
fit. It writes what it says it recorded, so that what becomes of a recording can
be tested where there is no GPU, and notes what it is asked in a diary, its
argument. It dies of sequences of 13. The fields are those of
docs/prober-protocol.md."""

import json
import os
import sys

requests, answers = os.fdopen(3), os.fdopen(4, "w", buffering=1)
LARGEST, GIB = 40, 2**30


def note(text: str) -> None:
    with open(sys.argv[1], "a") as diary:
        print(text, file=diary)


def say(kind: str, request: int, **fields: object) -> None:
    print(json.dumps({"type": kind, "id": request, **fields}), file=answers)


def outcome(probe: dict, batch: int) -> dict:
    if batch > LARGEST:
        return {"batch_size": batch, "steps": [], "failure": {"class": "out_of_memory", "message": "out of memory", "phase": "forward"}}
    peak = GIB + batch * GIB // 2
    peaks = {"requested": peak, "allocated": peak, "reserved": peak}
    step = {f"peak_{name}": value for name, value in peaks.items()} | {"end_allocated": GIB, "seconds": 0.1, "phases": {"forward": peaks}}
    done = {"batch_size": batch, "steps": [step] * probe["steps"]}
    if probe.get("timed_steps"):
        done["seconds_per_step"] = 0.1
    if record := probe.get("record"):
        with open(record["path"], "w") as file:
            file.write(f"recorded {record['scope']} under {probe['limit_bytes']}")
        done["recording"] = record["path"]
    return done


note("started")
print(json.dumps({"type": "hello", "protocol": 1, "python": "3.12.3"}), file=answers)
for line in requests:
    r = json.loads(line)
    if r["type"] == "prepare":
        say("ready", r["id"], torch="2.11.0+cu130", transformers="5.17.0", seconds=0)
        if "look_id" not in r:
            continue
        say("result", r["look_id"], device="cuda", name="NVIDIA H200", capability="9.0", multiprocessors=132,
            threads_per_multiprocessor=2048, total_bytes=140 * GIB, free_bytes=139 * GIB, wall_seconds=0)
    elif r["type"] == "probe":
        w = r["workload"]
        note(f"probe of {w['architecture']}, {w['accumulate']} accumulated")
        if w["sequence"] == 13:
            os._exit(1)
        outcomes = [outcome(r, batch) for batch in r["batches"]]
        say("result", r["id"], outcomes=outcomes, retries=0, wall_seconds=0.1)
