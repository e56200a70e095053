"""Repeats the trace of a snapshot until the file has about so many MB.

    python3 grow.py IN OUT MB

What PyTorch shares is shared in the copies, and only that: frames among all
lists, a list of frames between an allocation and its frees.
"""
import gc
import os
import pickle
import sys

gc.disable()
source, target, megabytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(source, "rb") as f:
    data = pickle.load(f)
events = data["device_traces"][0]
span = events[-1]["time_us"] - events[0]["time_us"] + 1
for i in range(1, megabytes * 1_000_000 // os.path.getsize(source)):
    lists = {}
    for e in events[:len(events) // i]:
        e = dict(e, time_us=e["time_us"] + i * span)
        e["frames"] = lists.setdefault(id(e["frames"]), list(e["frames"]))
        events.append(e)
with open(target, "wb") as f:
    pickle.dump(data, f, 4)
