#!/usr/bin/env python3
"""Rows that a batch has for several seeds are encoded once (passes/distinct.c): losses and predictions are those of rows encoded
each time, also where dropout differs from node to node, and the bits the same at any number of threads.
usage: distinct.py GNNC TOP.  Prints `N passed, N failed`."""
import json
import os
import random
import sys

GNNC, TOP = sys.argv[1:3]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import directory  # noqa: E402
from checks import check, end, run  # noqa: E402

DAY = 86400.0

MODEL = """import "layers/frame.gnn"
graph G {
  node a { kind: cat[A];  t: time }
  node b { x: f32[F];  kind: cat[K];  t: time }
  node c { x: f32[F];  t: time }
  node task { y: f32;  split;  t: time }
  edge of: task -> a
  edge b_a: b -> a
  edge b_c: b -> c
}
model M(g: G) -> f32[task] {
  of_b = row_resnet(32, 32, layers = 1, p = 0)
  of_c = row_resnet(32, 16, layers = 2, p = P)
  kinds = embedding(K, F)
  who = embedding(A, 16)
  top = linear(16)
  low = linear(16)
  last = linear(1)
  b = dropout(of_b(g.b.x + kinds(g.b.kind)), 0.25)
  back = reverse(g.b_c)
  down = reverse(g.of)
  b = relu(top(b) + sum(of_c(g.c.x)[back.src], over = back.dst))
  h = low(sum(b[g.b_a.src], over = g.b_a.dst)) + who(g.a.kind)
  return sum(sum(last(relu(h))[down.src], over = down.dst), 1)
}
train M { target task.y   loss mse   optimizer adam(lr = 1e-2)   epochs 2
  sample { fanout [-1, 8, 4]  batch 16  own true  time g.a.t, g.b.t, g.c.t, g.task.t } }
"""


def small(folder):
    draw = random.Random(5)
    size = {"a": 6, "b": 60, "c": 9, "task": 90}
    os.makedirs(folder)
    nodes = {}
    for t, n in size.items():
        nodes[t] = {"count": n, "columns": {"t": directory.column(folder, f"{t}.t", "time", [DAY * draw.randrange(30) for _ in range(n)])}}
    for t in "bc":
        nodes[t]["columns"]["x"] = directory.column(folder, f"{t}.x", "float", [draw.gauss(0, 1) for _ in range(8 * size[t])], width=8)
    nodes["b"]["columns"]["kind"] = directory.column(folder, "b.kind", "cat", [draw.randrange(4) for _ in range(60)], categories=4)
    nodes["a"]["columns"]["kind"] = directory.column(folder, "a.kind", "cat", [i % 3 for i in range(6)], categories=3)
    nodes["task"]["columns"]["y"] = directory.column(folder, "y", "float", [draw.gauss(0, 1) for _ in range(90)])
    nodes["task"]["columns"]["split"] = directory.column(folder, "split", "split", [1 + (i % 5 > 2) + (i % 5 > 3) for i in range(90)])
    ends = {"of": ("task", "a"), "b_a": ("b", "a"), "b_c": ("b", "c")}
    directory.write(folder, nodes, {e: directory.relation(folder, e, *ends[e], [(i, draw.randrange(size[ends[e][1]]))
                                                                                for i in range(size[ends[e][0]])]) for e in ends})


def near(x, y):
    return abs(x - y) <= 2e-4 * (1 + abs(y))


def epochs(trainer, threads, to):
    """Losses of the epochs, and the checkpoint's bytes."""
    out = run(trainer, "--data", "data", "--threads", str(threads), "--log=json", "--seed", "3", "--checkpoint", to)
    with open(to, "rb") as f:
        return [json.loads(line) for line in out.splitlines() if '"lr"' in line], f.read()


def main():
    small("data")
    for dropout in ("0", "0.4"):
        with open("m.gnn", "w", encoding="utf-8") as f:
            f.write(MODEL.replace("p = P", f"p = {dropout}"))
        told = run(GNNC, "--target=cpu", "m.gnn", "-o", "once", "--report=fusion")
        check(f"dropout {dropout}: rows of b and c are computed once",
              all(f"of @{f} is computed once for each row of '{t}'" in told for t in "bc" for f in ("train", "predict")), told)
        run(GNNC, "--target=cpu", "m.gnn", "-o", "each", "--disable-pass=distinct")
        once, bits = epochs("./once", 1, "w")
        each, _ = epochs("./each", 1, "each.w")
        for x, y in zip(once, each):
            for part in ("train", "val", "test"):
                check(f"dropout {dropout}, epoch {x['epoch']}: loss of {part}", near(x[part]["loss"], y[part]["loss"]), f"{x}\n{y}")
        for threads in (2, 3):
            check(f"dropout {dropout}: the bits of {threads} threads", epochs("./once", threads, "w2")[1] == bits)


main()
sys.exit(end())
