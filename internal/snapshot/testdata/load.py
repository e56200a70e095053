"""Times pickle.load of a file: prints seconds and peak resident KiB.

    python3 load.py FILE [nogc]
"""
import gc
import pickle
import sys
import time

if sys.argv[2:] == ["nogc"]:
    gc.disable()
with open(sys.argv[1], "rb") as f:
    start = time.perf_counter()
    data = pickle.load(f)
    seconds = time.perf_counter() - start
with open("/proc/self/status") as f:
    peak = next(line.split()[1] for line in f if line.startswith("VmHWM:"))
print(seconds, peak)
