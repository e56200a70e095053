"""Says for pairs of files on standard input whether Python reads equal values.

Each line has two paths with a tab between them; the answer is "equal" or the
first difference. Types must be equal too: True is not 1.
"""
import gzip
import lzma
import pickle
import sys

OPEN = {".xz": lzma.open, ".gz": gzip.open}


def load(path):
    with OPEN.get(path[path.rfind("."):], open)(path, "rb") as f:
        return pickle.load(f)


def difference(a, b, path, equal):
    """Returns the first difference. Frames are shared: equal holds the pairs
    that have been compared."""
    if type(a) is not type(b):
        return f"{path}: {type(a).__name__} and {type(b).__name__}"
    if not isinstance(a, (dict, list, tuple)):
        return "" if a == b else f"{path}: {a!r} and {b!r}"
    if (id(a), id(b)) in equal:
        return ""
    if isinstance(a, dict):
        if a.keys() != b.keys():
            return f"{path}: keys {list(a)} and {list(b)}"
        parts = a
    else:
        if len(a) != len(b):
            return f"{path}: {len(a)} and {len(b)} items"
        parts = range(len(a))
    for k in parts:
        if found := difference(a[k], b[k], (path, k), equal):
            return found
    equal.add((id(a), id(b)))
    return ""


for line in sys.stdin:
    theirs, ours = map(load, line.rstrip("\n").split("\t"))
    print(difference(theirs, ours, "snapshot", set()) or "equal", flush=True)
