#!/usr/bin/env python3
"""Processes that share the rows of data in parts: the same bits in any number of them as in one, also evaluated, predicted,
killed and gone on with in another number; one line where they cannot.  usage: parts.py GNNC TOP.  Prints `N passed, N failed`."""
import array
import json
import math
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from checks import bytes_of, check, end, run  # noqa: E402

GNNC, TOP = sys.argv[1:3]
CORA = TOP + "/models/data/cora"
MPIRUN = ["timeout", "300", "mpirun", "--oversubscribe"]
os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
CODES = {"<f4": "f", "<i4": "i", "<i8": "q", "|i1": "b"}


# ---- data ---------------------------------------------------------------------------------------------------
def put(path, code, shape, values):
    head = f"{{'descr': '{code}', 'fortran_order': False, 'shape': ({','.join(map(str, shape))},), }}"
    head += " " * ((-len(head) - 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        f.write(array.array(CODES[code], values).tobytes())


def shop(path):
    """Two node types of very different sizes, edges with columns between them and within one, a few without any edge."""
    r = random.Random(3)
    n, m = 1500, 7
    os.mkdir(path)
    p = lambda name: os.path.join(path, name)  # noqa: E731
    put(p("x.npy"), "<f4", (n, 6), [r.gauss(0, 1) for _ in range(6 * n)])
    put(p("kind.npy"), "<i4", (n,), [r.randrange(5) for _ in range(n)])
    put(p("y.npy"), "<i4", (n,), [v % 2 if r.random() < 0.9 else -1 for v in range(n)])
    put(p("split.npy"), "|i1", (n,), [1 + v % 3 for v in range(n)])
    dst = [v for v in range(n - 20) for _ in range(1 + v % 9)]
    src = [r.randrange(n) if r.random() < 0.1 else (v + 4 * r.randrange(9)) % n for v in dst]
    put(p("likes.npy"), "<i4", (2, len(src)), src + dst)
    put(p("w.npy"), "<f4", (len(src), 2), [r.random() for _ in range(2 * len(src))])
    put(p("rel.npy"), "<i4", (len(src),), [r.randrange(3) for _ in src])
    put(p("at.npy"), "<i4", (2, n), [*range(n)] + [v * m // n for v in range(n)])
    column = lambda kind, file, **more: {"kind": kind, "file": file, **more}  # noqa: E731
    schema = {"format": 1,
              "nodes": {"user": {"count": n, "columns": {
                  "x": column("float", "x.npy", shape=[n, 6]), "kind": column("cat", "kind.npy", categories=5),
                  "y": column("class", "y.npy", categories=2), "split": column("split", "split.npy")}},
                  "place": {"count": m, "columns": {}}},
              "edges": {"likes": {"src": "user", "dst": "user", "count": len(src), "file": "likes.npy", "columns": {
                  "w": column("float", "w.npy", shape=[len(src), 2]), "rel": column("cat", "rel.npy", categories=3)}},
                  "lives": {"src": "user", "dst": "place", "count": n, "file": "at.npy", "columns": {}}}}
    with open(p("schema.json"), "w", encoding="utf-8") as f:
        json.dump(schema, f)


def molecules(path):
    r = random.Random(5)
    k = 90
    os.mkdir(path)
    p = lambda name: os.path.join(path, name)  # noqa: E731
    sizes = [r.randrange(1, 9) for _ in range(k)]
    ptr = [sum(sizes[:i]) for i in range(k + 1)]
    n = ptr[-1]
    dst = [v for g in range(k) for v in range(ptr[g], ptr[g + 1]) for _ in range(2)]
    at = [g for g in range(k) for v in range(ptr[g], ptr[g + 1]) for _ in range(2)]
    src = [r.randrange(ptr[g], ptr[g + 1]) for g in at]
    put(p("x.npy"), "<f4", (n, 3), [r.random() for _ in range(3 * n)])
    put(p("ptr.npy"), "<i8", (k + 1,), ptr)
    put(p("bond.npy"), "<i4", (2, len(src)), src + dst)
    put(p("y.npy"), "<f4", (k, 1), [r.random() for _ in range(k)])
    put(p("split.npy"), "|i1", (k,), [1 + (g > 40) + (g > 60) for g in range(k)])
    schema = {"format": 1,
              "nodes": {"atom": {"count": n, "graph": "molecule", "graph_ptr": "ptr.npy",
                                 "columns": {"x": {"kind": "float", "shape": [n, 3], "file": "x.npy"}}}},
              "edges": {"bond": {"src": "atom", "dst": "atom", "count": len(src), "file": "bond.npy", "columns": {}}},
              "graphs": {"molecule": {"count": k, "columns": {"y": {"kind": "float", "shape": [k, 1], "file": "y.npy"},
                                                              "split": {"kind": "split", "file": "split.npy"}}}}}
    with open(p("schema.json"), "w", encoding="utf-8") as f:
        json.dump(schema, f)


def partitioned(data, parts):
    run(GNNC, "partition", data, str(parts), "-o", f"{os.path.basename(data)}.{parts}", "--method", "stream")
    return f"{os.path.basename(data)}.{parts}"


shop("shop")
molecules("molecules")
CORA4, CORA5, SHOP, MOLECULES = partitioned(CORA, 4), partitioned(CORA, 5), partitioned("shop", 4), partitioned("molecules", 7)

# ---- models -------------------------------------------------------------------------------------------------
HEAD = """
import "layers/gat.gnn"
import "layers/sage.gnn"
import "layers/batch_norm.gnn"
import "layers/rgcn.gnn"
graph G {
  node user { x: f32[F];  kind: cat[K];  y: class[C];  split }
  node place
  edge likes: user -> user { w: f32[W];  rel: cat[R] }
  edge lives: user -> place
}
model M(g: G) -> f32[user, C] {
%s
}
train M { target user.y  loss cross_entropy  metric %s  optimizer adam(lr = 1e-2)  epochs %d  keep best on val loss }
"""
# Types of different sizes, both directions, states, ranks; columns of edges; rows of parameters for nodes; a loop.
SHOP_MODELS = {
    "types": (HEAD, """
  back = reverse(g.lives)
  norm = batch_norm()
  a = linear(8)
  h = norm(a(dropout(g.user.x, 0.2)))
  p = mean(h[g.lives.src], over = g.lives.dst)
  u = h + sum(p[back.src], over = back.dst)
  b = linear(C)
  return b(relu(u))""", "roc_auc, accuracy"),
    "edges": (HEAD, """
  both = undirected(g.likes)
  k = linear(8)
  s = linear(8)
  m = relu(s(g.user.x)[g.likes.src] + k(g.likes.w))
  h = max(m, over = g.likes.dst) + s(g.user.x)
  conv = gat_conv(2, 4)
  b = linear(C)
  return b(relu(conv(both, dropout(h, 0.3))))""", "accuracy"),
    "kinds": (HEAD, """
  conv = rgcn_conv(R, 8, bases = 2)
  b = rgcn_conv(R, C)
  return b(g.likes, relu(conv(g.likes, rel = g.likes.rel)), rel = g.likes.rel)""", "accuracy")}
POOL = """
import "layers/gin.gnn"
import "layers/mlp.gnn"
import "layers/batch_norm.gnn"
graph G { node atom { x: f32[F] }  edge bond: atom -> atom  graph { y: f32[T];  split } }
model M(g: G) -> f32[graph, T] {
  conv = gin_conv(mlp(8, 8))
  norm = batch_norm()
  h = relu(norm(conv(g.bond, g.atom.x)))
  out = linear(T)
  return out(sum(h, over = graph))
}
train M { target graph.y  loss mse  metric mae  optimizer adam(lr = 1e-2)  epochs %d }
"""


def compiled(name, text, *options):
    with open(name + ".gnn", "w", encoding="utf-8") as f:
        f.write(text)
    run(GNNC, name + ".gnn", "-o", name, *options)
    return "./" + name


def lines_of(text):
    lines = [json.loads(line) for line in text.splitlines() if line[:1] == "{"]
    return [{k: v for k, v in line.items() if not k.endswith("ms") and k != "seconds"} for line in lines]


def told(n, exe, data, *options):
    """What the first of n processes says, times aside; n = 0: without mpirun."""
    return lines_of(run(*(MPIRUN + ["-n", str(n)] if n else []), exe, "--data", data, "--log=json", *options))


def same_in_any_number(name, exe, data, parts, *options):
    first = told(0, exe, data, "--checkpoint", name + ".0", *options)
    check(f"{name}: it learns", first[-1]["train"]["loss"] < first[0]["train"]["loss"], first)
    for n in range(2, parts + 1):
        lines = told(n, exe, data, "--checkpoint", f"{name}.{n}", "--threads", str(1 + n % 2), *options)
        check(f"{name}: {n} processes tell the same", lines == first, (lines, first))
        check(f"{name}: {n} processes leave the same", bytes_of(f"{name}.{n}") == bytes_of(name + ".0"))
    return first


STEPS = 20
for model in ("gcn", "sage", "gat", "gin"):
    run(GNNC, f"{TOP}/models/{model}.gnn", "--mpi", "-o", model)
    same_in_any_number(model, "./" + model, CORA4, 4, "--epochs", str(STEPS))
same_in_any_number("gcn", "./gcn", CORA5, 3, "--epochs", "5")  # parts that cannot be shared evenly
for name, (head, body, metrics) in SHOP_MODELS.items():
    exe = compiled(name, head % (body, metrics, STEPS), "--mpi")
    same_in_any_number(name, exe, SHOP, 4)
exe = compiled("pool", POOL % STEPS, "--mpi")
same_in_any_number("pool", exe, MOLECULES, 4)
sys.exit(end())
