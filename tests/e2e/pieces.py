#!/usr/bin/env python3
"""Training by batches of whole graphs and of clusters.

    pieces.py GNNC     writes data sets, compiles models, trains them

What a step sees is held against the whole: with all graphs, or all clusters, in one batch training is that of
the model without a `sample` block; where nothing is learned (lr 0) an epoch's loss is that of all rows, however
they are cut, so every graph came once, with all its nodes and edges.
"""
import os
import random
import sys

from batches import Trainer, compiled, data, no_memory, same_everywhere, same_levels
from directory import column, relation, save, write

# Two node types, relations within and between them, columns of graphs: a normalisation over the batch.
MOLECULES = """
import "layers/sage.gnn"
import "layers/batch_norm.gnn"

graph Molecules {
  node atom { x: f32[F];  kind: cat[K] }
  node ring { x: f32[G] }
  edge bond: atom -> atom { w: f32 }
  edge part: atom -> ring
  graph { size: f32;  y: class[C];  split }
}

model M(g: Molecules; hidden: int = 8) -> f32[graph, C] {
  atoms = linear(hidden)
  kinds = embedding(K, hidden)
  rings = linear(hidden)
  conv = sage_conv(hidden)
  up = sage_conv(hidden)
  norm = %s
  out = linear(C)
  h = atoms(g.atom.x) + kinds(g.atom.kind)
  strong = g.bond where g.bond.w > 0.3
  h = relu(norm(conv(with_self_loops(g.bond), h) + sum(h[strong.src], over = strong.dst)))
  r = relu(up(g.part, h, rings(g.ring.x)))
  return out(mean(h, over = graph) + sum(r, over = graph) + max(h, over = graph) * g.graph.size)
}

train M {
  target graph.y   loss cross_entropy   metric accuracy
  optimizer %s
  %s
  epochs 30
}
"""

PEOPLE = """
import "layers/sage.gnn"

graph Shop {
  node user { x: f32[F];  y: class[C];  split }
  node item { x: f32[G] }
  edge buys: user -> item { w: f32 }
  edge bought_by: item -> user
  edge knows: user -> user
}

model M(g: Shop; hidden: int = 8) -> f32[user, C] {
  a = sage_conv(hidden)
  b = sage_conv(hidden)
  lin = linear(hidden)
  out = linear(C)
  if %s { return out(relu(lin(g.user.x))) }
  items = relu(a(g.buys, g.user.x, g.item.x))
  h = relu(b(g.bought_by, items, lin(g.user.x)))
  return out(h + sum(h[g.knows.src], over = g.knows.dst))
}

train M {
  target user.y   loss cross_entropy   metric accuracy
  optimizer %s
  %s
  epochs 40
}
"""


def molecules(path, graphs=600, giant=-1):
    """giant: the number of one that is larger than all others together can be in a batch."""
    r = random.Random(2)
    os.mkdir(path)
    y = [r.randrange(3) for _ in range(graphs)]
    atoms, rings = [0], [0]
    for g in range(graphs):
        atoms.append(atoms[-1] + int(3 + 5 * r.paretovariate(3)) + 400 * (g == giant))
        rings.append(rings[-1] + r.randrange(4))
    n, m = atoms[-1], rings[-1]
    of = [g for g in range(graphs) for _ in range(atoms[g], atoms[g + 1])]
    bonds = [(i, r.randrange(atoms[of[i]], atoms[of[i] + 1])) for i in range(n) for _ in range(r.randrange(1, 4))]
    inside = [(r.randrange(atoms[g], atoms[g + 1]), k) for g in range(graphs) for k in range(rings[g], rings[g + 1])
              for _ in range(3)]
    ax = column(path, "ax", "float", [r.gauss(0, 0.5) + (y[of[i // 4]] == i % 4) for i in range(4 * n)], width=4)
    rx = column(path, "rx", "float", [r.gauss(0, 1) for _ in range(2 * m)], width=2)
    kind = column(path, "kind", "cat", [r.randrange(5) for _ in range(n)], categories=5)
    label = column(path, "y", "class", [v if i % 11 else -1 for i, v in enumerate(y)], categories=3)
    size = column(path, "size", "float", [0.1 * (atoms[g + 1] - atoms[g]) for g in range(graphs)])
    split = column(path, "split", "split", [1 if g % 5 < 3 else 2 + g % 2 for g in range(graphs)])
    save(path + "/ap.npy", "q", "<i8", (graphs + 1,), atoms)
    save(path + "/rp.npy", "q", "<i8", (graphs + 1,), rings)
    w = column(path, "w", "float", [r.random() for _ in bonds])
    write(path,
          {"atom": {"count": n, "graph": "mol", "graph_ptr": "ap.npy", "columns": {"x": ax, "kind": kind}},
           "ring": {"count": m, "graph": "mol", "graph_ptr": "rp.npy", "columns": {"x": rx}}},
          {"bond": relation(path, "bond", "atom", "atom", bonds, w=w),
           "part": relation(path, "part", "atom", "ring", inside)},
          {"mol": {"count": graphs, "columns": {"y": label, "size": size, "split": split}}})


def same_as_whole(batches, whole, path):
    """One batch of everything is the full batch in another order of rows."""
    t, u = Trainer(batches, path), Trainer(whole, path)
    for _ in range(3):
        assert t.left() == 1
        t.epoch()
        u.epoch()
        for name in ("loss", "loss.val"):
            assert abs(t.metric(name) - u.metric(name)) < 1e-4, (name, t.metric(name), u.metric(name))


def every_one_once(batches, path):
    """Batches of any number: the epoch's loss is that of the train split."""
    for batch in (1, 7, 64):
        t = Trainer(batches, path, batch=batch)
        t.epoch()
        assert abs(t.metric("loss") - t.metric("loss.train")) < 1e-5, (batch, t.metric("loss"), t.metric("loss.train"))


def main():
    gnnc = sys.argv[1]
    molecules("molecules")
    model = lambda name, norm, optimizer, sample, level="-O2": compiled(
        gnnc, name, MOLECULES % (norm, optimizer, sample), level)
    adam, still = "adam(lr = 1e-2)", "sgd(lr = 0)"
    fast = model("graphs", "batch_norm()", adam, "sample { batch 8 }")
    same_everywhere(fast, "molecules", 7, 34)
    no_memory(fast, "molecules", 30)
    same_levels(fast, model("graphs", "batch_norm()", adam, "sample { batch 8 }", "-O0"), "molecules")
    same_as_whole(model("all", "linear(hidden)", adam, "sample { batch 5000 }"),
                  model("full", "linear(hidden)", adam, ""), "molecules")
    every_one_once(model("still", "linear(hidden)", still, "sample { batch 8 }"), "molecules")

    data("shop")
    model = lambda name, alone, optimizer, sample, level="-O2": compiled(
        gnnc, name, PEOPLE % (alone, optimizer, sample), level)
    fast = model("clusters", "false", adam, "sample { clusters 80  batch 2 }")
    same_everywhere(fast, "shop", 7, 33)
    no_memory(fast, "shop", 30)
    same_levels(fast, model("clusters", "false", adam, "sample { clusters 80  batch 2 }", "-O0"))
    same_as_whole(model("one", "false", adam, "sample { clusters 5  batch 5 }"), model("none", "false", adam, ""), "shop")
    every_one_once(model("apart", "true", still, "sample { clusters 90  batch 2 }"), "shop")


if __name__ == "__main__":
    main()
