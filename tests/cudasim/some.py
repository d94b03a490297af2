#!/usr/bin/env python3
"""Some papers of Cora, for what would take the simulator long: those that are nearest to the one with most edges, with all edges
between them, in their order.

    some.py CORA ROWS OUT
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from directory import column, relation, save, write  # noqa: E402
from graph import npy  # noqa: E402


def nearest(pairs, rows):
    """{paper: its new number}"""
    beside = {}
    for src, dst in pairs:
        beside.setdefault(src, []).append(dst)
    first = max(beside, key=lambda v: len(beside[v]))
    found = {first: None}
    for v in (seen := [first]):
        for w in beside[v]:
            if w not in found and len(found) < rows:
                found[w] = None
                seen.append(w)
    return {v: i for i, v in enumerate(sorted(found))}


def main(cora, rows, out):
    read = lambda name: npy(os.path.join(cora, name + ".npy"))[0]  # noqa: E731
    ends = read("edge.cites")
    pairs = list(zip(ends[:len(ends) // 2], ends[len(ends) // 2:]))
    number = nearest(pairs, int(rows))
    ptr, col, val = (read("node.paper.x." + part) for part in ("ptr", "col", "val"))
    entries = [range(ptr[v], ptr[v + 1]) for v in number]
    os.mkdir(out)
    n = len(number)
    save(f"{out}/x.ptr.npy", "q", "<i8", (n + 1,), [sum(map(len, entries[:i])) for i in range(n + 1)])
    save(f"{out}/x.col.npy", "i", "<i4", (sum(map(len, entries)),), [col[k] for of in entries for k in of])
    save(f"{out}/x.val.npy", "f", "<f4", (sum(map(len, entries)),), [val[k] for of in entries for k in of])
    y, split = read("node.paper.y"), read("node.paper.split")
    columns = {"x": {"kind": "csr", "shape": [n, 1433], "ptr": "x.ptr.npy", "col": "x.col.npy", "val": "x.val.npy"},
               "y": column(out, "y", "class", [y[v] for v in number], categories=7),
               "split": column(out, "split", "split", [split[v] for v in number])}
    kept = [(number[s], number[d]) for s, d in pairs if s in number and d in number]
    write(out, {"paper": {"count": n, "columns": columns}}, {"cites": relation(out, "cites", "paper", "paper", kept)})


main(*sys.argv[1:])
