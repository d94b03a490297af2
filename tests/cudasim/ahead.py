#!/usr/bin/env python3
"""What is loaded at a time changes no bit: entries of a row before the first of them is used, and columns of a width that only data know.

    ahead.py BUILD    sums, means and attention on random multigraphs with hubs, lonely nodes and empty relations

Weights and moments have the same bits with one entry at a time, two and four, whatever the order of threads.  So they have with packs of
columns where the launch gives the lanes of a row all its entries in one order: a width that packs divide is loaded by packs, another
one column by column.
"""
import ctypes
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from checkpoint import tensors  # noqa: E402
from maps import Trainer, graph  # noqa: E402
from samplers import trained  # noqa: E402
from sim import written  # noqa: E402

GRAPH = """
import "layers/gat.gnn"

graph Odd {
  node user { x: f32[F];  y: class[C];  split }
  node item { z: f32[G] }
  edge knows: user -> user { w: f32 }
  edge buys: user -> item { w: f32 }
  edge bought_by: item -> user
  edge never: item -> user
}
"""
TRAIN = """
train M {
  target user.y   loss cross_entropy   metric accuracy
  optimizer adam(lr = 1e-2)
  epochs 2
}
"""

# Weights in the order of entries, and of the other end (gradients: the other way round); a mean; of nothing; attention, also with
# heads that meet; entries of two relations.
SUMS = GRAPH + """
model M(g: Odd; hidden: int = 8) -> f32[user, C] {
  first = linear(hidden)
  second = linear(hidden)
  near = gat_conv(2, hidden / 2, p = 0.3)
  far = gat_conv(2, C, concat = false)
  u = relu(first(dropout(g.user.x, 0.2)))
  i = second(g.item.z)
  a = sum(u[g.knows.src] * g.knows.w, over = g.knows.dst)
  b = sum(u[g.knows.dst] * g.knows.w, over = g.knows.src)
  c = mean(i[g.bought_by.src], over = g.bought_by.dst) + sum(i[g.never.src], over = g.never.dst)
  return far(g.knows, elu(near(g.knows, relu(a) + b + c)))
}
""" + TRAIN

# Rows as wide as the data say are added up and gathered; a linear layer comes behind, so that no sum is over columns.
WIDE = GRAPH + """
model M(g: Odd) -> f32[user, C] {
  out = linear(C)
  param k: f32[F] = normal(0, 1)
  u = g.user.x * k
  a = sum(u[g.knows.src] * g.knows.w, over = g.knows.dst)
  b = max(a[g.knows.dst], over = g.knows.src)
  return out(a + b)
}
""" + TRAIN


def numbers(lib, data):
    """Weights, and the optimiser's moments of their gradients; the checkpoint's head has the options of the program."""
    trained(Trainer(lib, data, threads=1), 2)
    return tensors("trained")


def same_bits(one, others, data):
    want = numbers(one, data)
    for lib, seed in others:
        lib.cudasim_seed(ctypes.c_uint64(seed))
        got = numbers(lib, data)
        assert got.keys() == want.keys() and not [k for k in want if got[k] != want[k]], (data, lib._name)


def loops(build, source, *options):
    r = subprocess.run([build + "/gnnc", source, "--target=cuda", "--emit=loops", *options], check=True, capture_output=True, text=True)
    return r.stdout


def main():
    build = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        one, two, four = (written(build, f"ahead{n}", SUMS, "cuda", [f"--load-ahead.entries={n}"]) for n in (1, 2, 4))
        assert loops(build, "ahead4.text/model.gnn", "--load-ahead.entries=4").count(" ahead 4 ") > 8
        for k, (users, items, edges, hub) in enumerate(((120, 90, 700, 300), (40, 300, 500, 0), (1, 1, 20, 0), (5, 3, 0, 0))):
            graph(f"odd{k}", k, users, items, edges, hub)
            same_bits(one, ((two, 3), (four, 7)), f"odd{k}")
        # No row is a hub, and each has one way: in its one order packs change only who has which column.
        whole = ["--block-hubs.entries=1000"]
        narrow, packs = (written(build, f"wide{n}", WIDE, "cuda", whole + [f"--coarsen-lanes.unknown-columns={n}"]) for n in (1, 4))
        assert " pack 4 " in loops(build, "wide4.text/model.gnn", "--coarsen-lanes.unknown-columns=4")
        for width in (8, 6, 132, 131):
            graph(f"wide{width}", width, 300, 9, 300, width=width)
            same_bits(narrow, ((packs, 5),), f"wide{width}")


if __name__ == "__main__":
    main()
