"""Turns the measurements of cudnn_workspaces.py into the table that MemoryMark embeds.

Usage: cudnn_table.py workspaces.csv [OLDER.txt] | gzip -9n > internal/torch/cudnn_conv/9.0.txt.gz

Rows of an older table are kept: they have more batches.

As a function of the batch, a workspace is a straight line as long as cuDNN's
heuristics choose the same kernel, so a line of the table gives a convolution of
square images and, for each direction, the batches from which on another
straight line holds:

    dtype c h k r stride padding forward dgrad wgrad
    bf16 64 56 64 3 1 1 1:876560+802816,10:8102035,11:8904720+802816 ...

reads: 876560 bytes at batch 1 and 802816 more for each image after, up to 9. A side of 1x3000 is a convolution along one dimension.
"""
import collections
import sys


def segments(points):
    """Straight lines (from, bytes, slope) through all points, few of them."""
    out, i = [], 0
    while i < len(points):
        n, v = points[i]
        j = i + 1
        slope = 0
        if j < len(points):
            rise, run = points[j][1] - v, points[j][0] - n
            k = j
            while k + 1 < len(points) and (points[k + 1][1] - v) * run == rise * (points[k + 1][0] - n):
                k += 1
            straight = rise % run == 0 and (rise == 0 or k - i >= 2)
            if straight:
                slope, j = rise // run, k + 1
            elif run > 1:  # nothing was measured between: go straight to the next
                slope = rise // run
        out.append((n, v, slope))
        i = j
    return out


def main():
    table, head = collections.defaultdict(dict), ""
    for line in open(sys.argv[1]):
        if line.startswith("#"):
            head = line
            continue
        f = line.strip().split(",")
        dtype, (n, c, h, w, k, r, stride, padding, *bytes_) = f[0], map(int, f[1:])
        assert h in (w, 1)
        side = w if h == w else f"1x{w}"
        table[dtype, c, side, k, r, stride, padding][n] = bytes_
    older = {tuple(line.split()[:7]): line.strip() for line in open(sys.argv[2]) if line[0] != "#"} if len(sys.argv) > 2 else {}
    print(head.strip())
    print("# dtype c h k r stride padding forward dgrad wgrad; written by scripts/cudnn_table.py, which says how to read it")
    for line in sorted(older.values()):
        print(line)
    for problem, batches in sorted(table.items(), key=lambda row: [(isinstance(x, str), x) for x in row[0]]):
        if tuple(map(str, problem)) in older:
            continue
        columns = []
        for direction in range(3):
            points = [(n, b[direction]) for n, b in sorted(batches.items()) if b[direction] >= 0]
            columns.append(",".join(f"{n}:{v}" + (f"{s:+d}" if s else "") for n, v, s in segments(points)) or "-")
        print(*problem, *columns)


if __name__ == "__main__":
    main()
