#!/usr/bin/env python3
"""Rows of graphs predicted by themselves (gnnc --emit=infer of a model with a row for each graph) are those of a prediction of
all of them: single ones, batches, what a caller brings, layers of nodes and of graphs.

    session_graphs.py GNNC TOP
"""
import json
import os
import random
import shutil
import sys

import subgraphs
from directory import column, relation, save, write
from graph import npy
from pieces import MOLECULES, molecules
from sessions import E_RANGE, OK, Memory, Session, check_memory, check_model, check_threads
from small import left_out

E_VALUE, E_MISSING = -7, -8

# Within a graph: both ways of edges, conditions, sums to sources, and from graphs to their nodes.  Across graphs: means over all
# nodes and all graphs, a table with a row for each graph, a node's own number.
ACROSS = """
import "layers/sage.gnn"
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
  conv = sage_conv(hidden)
  up = linear(hidden)
  out = linear(C)
  param own: f32[graph, hidden] = normal(0, 0.3)
  h = atoms(g.atom.x) + kinds(g.atom.kind)
  both = undirected(g.bond)
  few = with_self_loops(g.bond) where sum(g.atom.x, over = F)[with_self_loops(g.bond).src] > 0
  back = reverse(g.part)
  h = relu(conv(both, h) + sum(h[few.src], over = few.dst) + sum(h[g.bond.dst], over = g.bond.src))
  r = relu(up(mean(h[g.part.src], over = g.part.dst)))
  h = h + sum(r[back.src], over = back.dst) - mean(h, over = atom)
  p = mean(h, over = graph) + sum(r, over = graph)
  h = tanh(h + p[atom.graph])
  z = max(h, over = graph) * g.graph.size + own
  return out(z - mean(z, over = graph))
}
train M { target graph.y   loss cross_entropy   optimizer adam(lr = 1e-2)   epochs 3 }
"""




def some_molecules(path):
    """One of them is empty: its rows are the next one's."""
    molecules(path, 40)
    for name in ("ap", "rp"):
        at = npy("%s/%s.npy" % (path, name))[0]
        at[6] = at[5]
        save("%s/%s.npy" % (path, name), "q", "<i8", (41,), at)


def change(path, how):
    with open(path + "/schema.json", encoding="utf-8") as f:
        schema = json.load(f)
    how(schema)
    with open(path + "/schema.json", "w", encoding="utf-8") as f:
        json.dump(schema, f)


# Categories of nodes and edges, and what a graph is labelled with.
SHIPPED = {"gin_graphs": ({"label": 4}, {}, "class"), "molecule": ({"x_%d" % i: 3 for i in range(9)}, {"attr_%d" % i: 2 for i in range(3)}, "float"),
           "toxicity": ({"x_%d" % i: 3 for i in range(9)}, {"attr_%d" % i: 2 for i in range(3)}, "multilabel")}


def many_graphs(path, of_nodes, of_edges, label, graphs=36):
    r = random.Random(9)
    os.mkdir(path)
    at = [0]
    for _ in range(graphs):
        at.append(at[-1] + r.randrange(2, 9))
    n = at[-1]
    links = [(r.randrange(at[g], at[g + 1]), r.randrange(at[g], at[g + 1])) for g in range(graphs) for _ in range(10)]
    save(path + "/ptr.npy", "q", "<i8", (graphs + 1,), at)
    cats = lambda table, rows, of: {c: column(path, table + c, "cat", [r.randrange(k) for _ in range(rows)], categories=k) for c, k in of.items()}
    y = (column(path, "y", "class", [g % 3 for g in range(graphs)], categories=3) if label == "class" else
         column(path, "y", label, [float(g % 2) for g in range(2 * graphs)], width=2))
    write(path, {"vertex": {"count": n, "graph": "graph", "graph_ptr": "ptr.npy", "columns": cats("v", n, of_nodes)}},
          {"link": relation(path, "link", "vertex", "vertex", links, **cats("e", len(links), of_edges))},
          {"graph": {"count": graphs, "columns": {"y": y, "split": column(path, "split", "split", [1 + g % 3 for g in range(graphs)])}}})


def check_shipped(gnnc, top):
    for name, data in SHIPPED.items():
        if left_out(name):
            continue
        many_graphs(name + ".data", *data)
        check_model(gnnc, "%s/models/%s.gnn" % (top, name), name, name + ".data", 1, ("graph", 0),
                    sizes=["-D", "layers=2", "-D", "hidden=8"])[1].close()


def check_errors(library, m):
    """What a prediction of one graph would lack is refused, whoever brings the graphs."""
    def refused(path, status, why):
        s = Session(library, m, library.graph(path))
        assert s.status == status and why in s.error(), (s.status, s.error())
        s.close()

    shutil.copytree("mols", "joined")
    ends = npy("joined/bond.npy")[0]
    ends[0] = npy("joined/ap.npy")[0][-1] - 1
    save("joined/bond.npy", "i", "<i4", (2, len(ends) // 2), ends)
    refused("joined", E_VALUE, "an edge of 'bond' leads from %d to" % ends[0])
    shutil.copytree("mols", "undivided")
    change("undivided", lambda schema: [schema["nodes"]["ring"].pop(k) for k in ("graph", "graph_ptr")])
    refused("undivided", E_MISSING, "node type 'ring' is not divided")
    shutil.copytree("mols", "bare")
    change("bare", lambda schema: [schema["graphs"]["mol"]["columns"].pop(k) for k in ("y", "split")])
    bare, s = (Session(library, m, library.graph(path)) for path in ("bare", "mols"))
    assert bare.status == OK, bare.error()
    assert list(bare.predict([3, 4])[1]) == list(s.predict([3, 4])[1])
    b = subgraphs.Brings(s, m)
    b.give(s)
    r, at = subgraphs.graphs_request(s, subgraphs.Data("mols"), [0, 1])
    last = len(r.nodes["atom"]) - 1  # of the second graph
    r.change = lambda table, column, values: [[last, *values[0][1:]], [0, *values[1][1:]]] if (table, column) == ("bond", "ends") else values
    assert r.fill(b.lib, b.s) == OK and b.predict(at)[0] == E_VALUE and "an edge of 'bond' leads from" in b.error(), (r.error, b.error())
    r, at = subgraphs.graphs_request(s, subgraphs.Data("mols"), [0, 1])
    assert r.fill(b.lib, b.s) == OK and b.predict(at)[0] == OK and b.predict([2])[0] == E_RANGE, b.error()
    for x in (bare, s, b):
        x.close()
    print("ok errors")


def main():
    gnnc, top = sys.argv[1:3]
    layers = lambda text: text.replace('"layers/', '"%s/models/layers/' % top)
    some_molecules("mols")
    for name, text, wanted in (("molecules", MOLECULES % ("batch_norm()", "adam(lr = 1e-2)", "sample { batch 16 }"), []), ("across", ACROSS, ["h", "r", "p", "z"])):
        with open(name + ".gnn", "w", encoding="utf-8") as f:
            f.write(layers(text))
        library, s, want = check_model(gnnc, name + ".gnn", name, "mols", 1, ("mol", 0), wanted)
        m, _ = library.model(name + ".weights")
        if name == "across":
            check_threads(s, want)
            check_memory(library, "mols", name + ".weights")
            s = Session(library, m, library.graph("mols"))
            subgraphs.check_memory(s, m, "mols", "mol", [3, 5, 8], 0, Memory)
        else:
            check_errors(library, m)
        s.close()
        library.lib.gnnc_model_release(m)
    check_shipped(gnnc, top)


if __name__ == "__main__":
    main()
