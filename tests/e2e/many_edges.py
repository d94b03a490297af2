#!/usr/bin/env python3
"""More than 2^31 edges, which `make long` runs (17 GB of addresses, hardly any disk, a few minutes): 2^31 loops of a node whose
values are 0 stand before a million edges, so that all is what it is without them; of fewer LOOPS, before 50,000.  usage: many_edges.py
GNNC TOP [LOOPS].  Prints `N passed, N failed`."""
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from checks import check, end  # noqa: E402

GNNC, TOP = sys.argv[1:3]
LOOPS = int(sys.argv[3]) if len(sys.argv) > 3 else 1 << 31
BEYOND = LOOPS >= 1 << 31
N, EDGES, WIDTH, CLASSES = 1000, 1_000_000 if BEYOND else 50_000, 4, 5
# All edges in a step.
WHOLE = """
graph G { node v { x: f32[F];  y: class[C];  split }  edge e: v -> v }
model M(g: G) -> f32[v, C] {
  lin = linear(C)
  return lin(sum(g.v.x[g.e.src], over = g.e.dst) * 1e-3)
}
train M { target v.y  loss cross_entropy  optimizer adam(lr = 1e-2)  epochs 2 }
"""
DRAWN = """
import "layers/sage.gnn"
graph G { node v { x: f32[F];  y: class[C];  split }  edge e: v -> v }
model M(g: G) -> f32[v, C] {
  conv = sage_conv(C)
  return conv(g.e, g.v.x)
}
train M { target v.y  loss cross_entropy  optimizer adam(lr = 1e-2)  epochs 2  sample { fanout [5]  batch 100  evaluate drawn } }
"""
# Backwards it runs along the edges of each source; what it needs of them is their other ends.
BACK = WHOLE.replace("sum(g.v.x[g.e.src], over = g.e.dst) * 1e-3", "sum(relu(a(g.v.x))[g.e.src], over = g.e.dst)").replace(
    "lin = linear(C)", "lin = linear(C)\n  a = linear(C)")
# The random numbers of edges go by their numbers, of which 32 bits are read; and others are computed, in 32 bits.
NUMBERED = {"dropout": WHOLE.replace("g.v.x[g.e.src]", "dropout(g.v.x[g.e.src], 0.5)"),
            "argmax": WHOLE.replace("* 1e-3", "* 1e-3 + f32(argmax(sum(g.v.x[g.e.src], F), g.e)) * 1e-9"),
            "sum": WHOLE.replace("* 1e-3", "* 1e-3 + f32(sum(argmax(g.v.x[g.e.src], F), g.e)) * 1e-12"),
            "iota": WHOLE.replace("* 1e-3", "* 1e-3 + sum(f32(iota(g.e)), g.e) * 1e-12")}


def npy(path, descr, shape, *parts):
    """An array of parts (offset in bytes, bytes); holes are zeros."""
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        at = f.tell()
        for offset, data in parts:
            f.seek(at + offset)
            f.write(data)


def data(path, loops):
    draw = random.Random(1)
    n = loops + EDGES
    os.mkdir(path)
    pairs = sorted((draw.randrange(N), draw.randrange(N)) for _ in range(EDGES))  # by their destinations
    npy(f"{path}/e.npy", "<i4", (2, n), (4 * loops, struct.pack(f"<{EDGES}i", *(s for _, s in pairs))),
        (4 * (n + loops), struct.pack(f"<{EDGES}i", *(d for d, _ in pairs))))
    x = [0.0] * WIDTH + [draw.uniform(-1, 1) for _ in range((N - 1) * WIDTH)]
    npy(f"{path}/x.npy", "<f4", (N, WIDTH), (0, struct.pack(f"<{N * WIDTH}f", *x)))
    npy(f"{path}/y.npy", "<i4", (N,), (0, struct.pack(f"<{N}i", *(draw.randrange(CLASSES) for _ in range(N)))))
    npy(f"{path}/s.npy", "|i1", (N,), (0, bytes([0] + [1 + i % 3 for i in range(N - 1)])))  # node 0 in no split
    with open(f"{path}/schema.json", "w", encoding="utf-8") as f:
        f.write(f'{{"format": 1, "nodes": {{"v": {{"count": {N}, "columns": {{"x": {{"kind": "float", "shape": [{N}, {WIDTH}], '
                f'"file": "x.npy"}}, "y": {{"kind": "class", "categories": {CLASSES}, "file": "y.npy"}}, "split": {{"kind": "split", '
                f'"file": "s.npy"}}}}}}}}, "edges": {{"e": {{"src": "v", "dst": "v", "count": {n}, "file": "e.npy", "columns": {{}}}}}}}}')


def run(*argv, code=0):
    p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check(f"{' '.join(argv)}: exit {code}, not {p.returncode}", p.returncode == code, p.stdout)
    return p.stdout


def compiled(name, text):
    with open(f"{name}.gnn", "w", encoding="utf-8") as f:
        f.write(text)
    run(GNNC, f"{name}.gnn", "-o", name, "--target=cpu", "-I", f"{TOP}/models")
    return f"./{name}"


def outcome(exe, of):
    """The checkpoint's parameters and the scores of all nodes but the one with the loops."""
    run(exe, "--data", of, "--checkpoint", "c", "--log", "none")
    run(exe, "predict", "--data", of, "--weights", "c", "--out", "p.csv", "--log", "none")
    with open("c", "rb") as f:
        head = struct.unpack("<Q", f.read(8))[0]
        f.seek(8 + head)
        weights = f.read()
    with open("p.csv", encoding="utf-8") as f:
        return weights, f.read().splitlines()[2:]


data("few", 0)
data("many", LOOPS)
for name, text in (("whole", WHOLE), ("back", BACK), ("drawn", DRAWN)):
    exe = compiled(name, text)
    few, many = outcome(exe, "few"), outcome(exe, "many")
    check(f"{name}: learns the same", few[0] == many[0])
    check(f"{name}: gives the same", len(few[1]) == N - 1 and few[1] == many[1])
for name, text in NUMBERED.items() if BEYOND else ():
    exe = compiled(name, text)
    run(exe, "--data", "few", "--checkpoint", "none", "--log", "none")
    told = run(exe, "--data", "many", "--checkpoint", "none", "--log", "none", code=1)
    check(f"{name}: told where 32 bits do not number edges",
          f"edge type 'e': its {LOOPS + EDGES} edges" in told and "evaluate drawn" in told, told)
if BEYOND:
    check("no index file", not [f for f in os.listdir("many") if f.startswith("index-")])
sys.exit(end())
