#!/usr/bin/env python3
"""Links scored by themselves (gnnc --emit=infer, gnnc_session_predict_links, .._top_links) against the trainer's scores and
plain definitions.

    session_links.py GNNC TOP
"""
import ctypes
import itertools
import json
import os
import random
import subprocess
import sys

from directory import column
from graph import npy
from links import D, N, KG, directed, distmult, edges, facts, tensors, write
from pairs import F32, I64, best
import subgraph_links
from sessions import E_ARG, E_MISSING, E_NOMEM, E_RANGE, E_STATE, OK, Library, Memory, Session, near, run
from small import left_out

USERS, ITEMS = 13, 5000  # more items than a batch has pairs

# Values of all nodes by two layers and by none; a scorer with layers of its own; neighbours that training draws.
SHOP = """
import "layers/links.gnn"
import "layers/sage.gnn"
graph Shop {
  node user { x: f32[F] }
  node item { z: f32[Z] }
  edge buys: user -> item { split }
  edge never: user -> item { split }
}
model M(g: Shop; dim: int = 6) -> f32[links] {
  p = links(g.buys, negatives = g.never)
  e = g.buys where in_split(g.buys, "train")
  back = reverse(e)
  %s
  lin = linear(dim)
  conv = sage_conv(dim)
  u = lin(g.user.x)
  h = relu(conv(e, u, v))
  w = conv(back, h, u)%s
  %s
}
train M {
  target links   loss bce_with_logits   metric roc_auc
  optimizer adam(lr = 1e-2)
  sample { batch 16  negatives 1  %s }
  epochs 2   keep last
}
"""
TABLE = "param v: f32[item, dim] = normal(0, 0.5)"
DOT = "return dot_score(p, w, h, dim)"
SCORES = {"dot": (TABLE, DOT, ""),
          "mlp": (TABLE, "a = linear(8)\n  b = linear(1)\n  return sum(b(relu(a(w)[p.src] + a(h)[p.dst])), over = 1)", ""),
          "drawn": ("lv = linear(dim)\n  v = lv(g.item.z)", DOT, "fanout [3, 3]")}


def shop_model(items, score, sample):
    """A mean over all users is none of what a step draws."""
    return SHOP % (items, "" if sample else " - mean(u, over = user)", score, sample)


class Links(Library):
    def open(self, weights, graph, memory=None):
        m, st = self.model(weights, memory)
        assert st == OK, self.lib.gnnc_model_error(m)
        s = ctypes.c_void_p()
        make = [self.lib.gnnc_session_create_with, *memory.arguments()] if memory else [self.lib.gnnc_session_create]
        st = make[0](ctypes.byref(s), *make[1:]) or self.lib.gnnc_session_open(s, m, graph)
        self.lib.gnnc_model_release(m)
        return s, st

    def error(self, s):
        return self.lib.gnnc_session_error(s).decode()

    def sizes(self, s):
        n = (I64 * 3)()
        at = [ctypes.byref(n, 8 * i) for i in range(3)]
        assert self.lib.gnnc_session_link_sizes(s, *at) == OK
        return list(n)

    def score(self, s, pairs, kinds=None):
        n, out = len(pairs), (F32 * max(1, len(pairs)))()
        src, dst = ((I64 * n)(*[p[k] for p in pairs]) for k in (0, 1))
        st = self.lib.gnnc_session_predict_links(s, I64(n), src, dst, (I64 * n)(*kinds) if kinds else None, out)
        return st, list(out)[:n]

    def top(self, s, sources, k, kinds=None, known=0):
        n = len(sources)
        dst, score = (I64 * (n * k))(), (F32 * (n * k))()
        st = self.lib.gnnc_session_top_links(s, I64(n), (I64 * n)(*sources), (I64 * n)(*kinds) if kinds else None, I64(k), known, dst, score)
        return st, [list(zip(dst[i * k:(i + 1) * k], score[i * k:(i + 1) * k])) for i in range(n)]


def infer(gnnc, name, text, *options):
    with open(name + ".gnn", "w", encoding="utf-8") as f:
        f.write(text)
    run(gnnc, name + ".gnn", "--target=cpu", "-o", name, *(options if "-D" in options else []))
    run(gnnc, name + ".gnn", "--target=cpu", "--emit=infer", "-o", name + "_links", *options)
    return Links(name + "_links")


# ---- users and items ------------------------------------------------------------------------------------------
def shop(path, n_items, every_pair):
    """With `every_pair`, the pairs that are no edges as well, in no split."""
    r = random.Random(5)
    bought = sorted({(r.randrange(USERS), r.randrange(n_items)) for _ in range(70)})
    split = [1 + (i % 5 == 3) + 2 * (i % 5 == 4) for i in range(len(bought))]
    never = [(u, (u * 7 + 3) % n_items) for u in range(USERS)]
    others = sorted(set(itertools.product(range(USERS), range(n_items))) - set(bought)) if every_pair else []
    os.mkdir(path)
    x = {"user": {"x": column(path, "x", "float", [r.gauss(0, 1) for _ in range(4 * USERS)], width=4)},
         "item": {"z": column(path, "z", "float", [r.gauss(0, 1) for _ in range(3 * n_items)], width=3)}}
    write(path, {"user": USERS, "item": n_items},
          {"buys": edges(path, "buys", "user", "item", bought + others, split + [0] * len(others)),
           "never": edges(path, "never", "user", "item", never, [2 + i % 2 for i in range(USERS)])})
    change(path, lambda schema: [schema["nodes"][t].update(columns=x[t]) for t in x])
    return bought, others


def change(path, how):
    with open(path + "/schema.json", encoding="utf-8") as f:
        schema = json.load(f)
    how(schema)
    with open(path + "/schema.json", "w", encoding="utf-8") as f:
        json.dump(schema, f)


def check_layers(library, s):
    """Both node types', and of a part of the model that no score reads alone."""
    tower = object.__new__(Session)
    tower.lib, tower.s = library.lib, s
    assert tower.layers() == ["u", "h", "w"], tower.layers()
    for layer, table, rows in (("u", b"user", USERS), ("w", b"user", USERS), ("h", b"item", 40)):
        run("./dot", "embed", layer, "--data", "pairs", "--weights", "dot.weights", "--out", "layer.npy")
        want, _, shape = npy("layer.npy")
        assert tower.layer(layer) == (OK, table, rows, shape[1]), tower.layer(layer)
        for ids in (list(range(rows)), [3, 1, 3], None):
            st, got = tower.embed(layer, ids)
            assert st == OK and near(got, [x for i in ids or range(rows) for x in want[i * shape[1]:(i + 1) * shape[1]]]), (layer, ids)
        assert tower.embed(layer, [rows])[0] == E_RANGE and library.error(s) == "row %d: the data have 0 to %d" % (rows, rows - 1)
    assert tower.embed("lin", [0])[0] == E_MISSING and "no layer 'lin': there is u, h, w" in library.error(s), library.error(s)


def check_shop(gnnc, layers, name, small, pairs, bought):
    library = infer(gnnc, name, layers(shop_model(*SCORES[name])), *(["--embed=u,w,h"] if name == "dot" else []))
    run("./" + name, "--data", "pairs", "--epochs", "2", "--out", name + ".weights")
    run("./" + name, "predict", "--data", "pairs", "--weights", name + ".weights", "--out", name + ".npy")
    want, _, _ = npy(name + ".npy")
    by_destination = sorted(range(len(pairs)), key=lambda i: (pairs[i][1], i))
    want = {pairs[e]: want[i] for i, e in enumerate(by_destination)}
    s, st = library.open(name + ".weights", library.graph(small))
    assert st == OK, library.error(s)
    assert library.sizes(s) == [USERS, 40, 1], library.sizes(s)
    asked = pairs + pairs[:1]
    st, got = library.score(s, asked)
    assert st == OK, library.error(s)
    assert near(got, [want[p] for p in asked]), name
    for p in pairs[::17]:
        assert near(library.score(s, [p])[1], [want[p]]), (name, p)
    by_user = {u: {i: x for (v, i), x in zip(asked, got) if v == u} for u in range(USERS)}
    for known in (0, 1):
        st, rows = library.top(s, list(range(USERS)), 38, known=known)
        assert st == OK, library.error(s)
        for u, row in enumerate(rows):
            left = [i for i in range(40) if known or (u, i) not in bought]
            assert row == best(by_user[u], left, 38), (name, known, u, row)
    if name == "dot":
        check_layers(library, s)
    over = object.__new__(Session)  # a mean over all users comes with what is known of the whole graph
    over.lib, over.s = library.lib, s
    m, _ = library.model(name + ".weights")
    some = [[(*p, 0, want[p]) for p in of] for of in (pairs[:1], pairs[20:22], pairs[100:110:3])]
    subgraph_links.check(name, over, m, small, "buys", 2, some, part=2)
    library.lib.gnnc_model_release(m)
    print("ok", name)
    return library, s


def check_many(gnnc, layers):
    """More destinations than fit into a batch."""
    library = Links("dot_links")
    bought, _ = shop("many", ITEMS, False)
    run("./dot", "--data", "many", "--epochs", "1", "--out", "many.weights")
    s, st = library.open("many.weights", library.graph("many"))
    assert st == OK, library.error(s)
    for u in (0, USERS - 1):
        st, got = library.score(s, [(u, i) for i in range(ITEMS)])
        left = set(range(ITEMS)) - {i for v, i in bought if v == u}
        assert library.top(s, [u], 10)[1][0] == best(dict(enumerate(got)), left, 10), u
    library.lib.gnnc_session_destroy(s)
    print("ok many")


# ---- facts ------------------------------------------------------------------------------------------------------
def check_facts(gnnc, layers):
    """Kinds, and both ways of a relation."""
    triples, split = facts("facts")
    library = infer(gnnc, "kg", layers(KG % (D, "distmult_links(R, dim)", "one_vs_all", 4)))
    run("./kg", "--data", "facts", "--epochs", "2", "--out", "kg.weights")
    p = tensors("kg.weights")
    s, st = library.open("kg.weights", library.graph("facts"))
    assert st == OK, library.error(s)
    assert library.sizes(s) == [N, N, 6]
    asked = [(h, r, b, t) for h in range(N) for r in range(3) for b in range(2) for t in range(N)]
    st, got = library.score(s, [(h, t) for h, _, _, t in asked], [2 * r + b for _, r, b, _ in asked])
    assert st == OK, library.error(s)
    reciprocal = "decode.inv_emb.weight" in p
    want = [distmult(p, *a, reciprocal) for a in asked]
    assert near(got, want), "facts"
    known = directed(triples)
    queries = [(h, r, b) for h in range(N) for r in range(3) for b in range(2)]
    st, rows = library.top(s, [q[0] for q in queries], 4, [2 * q[1] + q[2] for q in queries])
    for q, row in zip(queries, rows):
        scores = {t: x for a, x in zip(asked, got) for t in a[3:] if a[:3] == q}
        assert row == best(scores, [t for t in range(N) if (*q, t) not in known], 4), (q, row)
    for kind in (6, -1, 2 ** 40):
        assert library.score(s, [(0, 0)], [kind])[0] == E_RANGE
        assert library.error(s) == "kind %d: the data have no link of it" % kind, library.error(s)
    library.lib.gnnc_session_destroy(s)
    print("ok facts")


# ---- shipped models -----------------------------------------------------------------------------------------------
def people(path, bipartite):
    r = random.Random(6)
    os.mkdir(path)
    n = {"user": 60, "item": 90} if bipartite else {"vertex": 100}  # of which a pair sees a part
    ends = (list(n) * 2)[:2]
    pairs = sorted({tuple(r.randrange(n[t]) for t in ends) for _ in range(110)})
    some = lambda name, of: edges(path, name, *ends, of, [1 + (i % 5 == 3) + 2 * (i % 5 == 4) for i in range(len(of))])
    write(path, n, {"link": some("link", pairs[:90]), **({} if bipartite else {"no_link": some("no_link", pairs[90:])})})
    return [(u, v, 0) for u, v in pairs[:90]]


def both_ways(path):
    triples, _ = facts(path)
    return [(h, t, 2 * r) for h, r, t in triples] + [(t, h, 2 * r + 1) for h, r, t in triples]


# Data, and a size; links as (source, destination, kind), in the order of the relation.
SHIPPED = {"link": (lambda path: people(path, False), "hidden=8"), "lightgcn": (lambda path: people(path, True), "dim=8"),
           "distmult": (both_ways, "rank=8"), "complex": (both_ways, "rank=8")}


HOPS = {"link": 2, "lightgcn": 3, "distmult": 1, "complex": 1}


def check_subgraphs(library, s, name, links):
    over = object.__new__(Session)
    over.lib, over.s = library.lib, s
    m, _ = library.model(name + ".weights")
    relation = "triple" if name in ("distmult", "complex") else "link"
    groups = [links[::40], links[3:4], links[5:12]]
    facts = relation == "triple"
    subgraph_links.check(name, over, m, name + ".data", relation, HOPS[name], groups, None, ("rel", True) if facts else (None, False),
                         2 if facts else 0.7)
    if name == "link":
        subgraph_links.check_errors(over, m, name + ".data", relation, 2, links[7])
        subgraph_links.check_memory(over, m, name + ".data", relation, 2, [links[3:4], links[8:10]], Memory)
    library.lib.gnnc_model_release(m)


def check_shipped(gnnc, layers, top):
    """Alone, beside others and over a subgraph as the trainer scores all edges."""
    for name, (data, size) in SHIPPED.items():
        if left_out(name):
            continue
        links = data(name + ".data")
        with open("%s/models/%s.gnn" % (top, name), encoding="utf-8") as f:
            library = infer(gnnc, name, layers(f.read()), "-D", size)
        run("./" + name, "--data", name + ".data", "--epochs", "2", "--out", name + ".weights")
        run("./" + name, "predict", "--data", name + ".data", "--weights", name + ".weights", "--out", name + ".npy")
        s, st = library.open(name + ".weights", library.graph(name + ".data"))
        assert st == OK, library.error(s)
        # By destination; of those that lead back in the order of the ones they are made of, which is by theirs.
        order = sorted(range(len(links)), key=lambda e: (links[e][1], links[e][2] % 2, links[e][2] % 2 * links[e][0], e))
        want = dict(zip(order, npy(name + ".npy")[0]))
        st, got = library.score(s, [x[:2] for x in links], [x[2] for x in links])
        assert st == OK, library.error(s)
        for e, (u, v, kind) in enumerate(links):
            assert near([got[e]], [want[e]]), (name, e, got[e], want[e])
            assert e % 5 or near(library.score(s, [(u, v)], [kind])[1], [want[e]]), (name, e)
        check_subgraphs(library, s, name, [(*link, want[e]) for e, link in enumerate(links)])
        library.lib.gnnc_session_destroy(s)
        print("ok", name)


# ---- what goes wrong ----------------------------------------------------------------------------------------------
def check_errors(library, s):
    bad = {"source -1: the data have 0 to 12": [(-1, 0)], "source 13: the data have 0 to 12": [(0, 0), (13, 0)],
           "destination 40: the data have 0 to 39": [(0, 40)]}
    for text, pairs in bad.items():
        assert library.score(s, pairs)[0] == E_RANGE and library.error(s) == text, (text, library.error(s))
    assert library.score(s, [(0, 0)], [-1])[0] == E_RANGE
    assert library.score(s, [(0, 0)], [1]) == library.score(s, [(0, 0)])  # it reads no kind
    assert library.top(s, [0], 40, [7]) == library.top(s, [0], 40, known=1)
    assert library.top(s, [13], 3)[0] == E_RANGE and library.error(s) == "source 13: the data have 0 to 12"
    assert library.score(s, [])[0] == OK and library.top(s, [], 3)[0] == OK
    one, out = (I64 * 1)(0), (F32 * 1)()
    lib, null = library.lib, None
    assert lib.gnnc_session_predict(s, I64(1), one, out) == E_STATE and "predict_links" in library.error(s)
    assert lib.gnnc_session_top_links(s, I64(1), one, null, I64(0), 0, one, out) == E_ARG
    assert lib.gnnc_session_predict_links(s, I64(1), null, one, null, out) == E_ARG
    assert lib.gnnc_session_rows(s) == 0
    clone = ctypes.c_void_p()
    assert lib.gnnc_session_clone(ctypes.byref(clone), s) == OK
    assert library.score(clone, [(3, 4)]) == library.score(s, [(3, 4)])
    for x in (clone, s):
        lib.gnnc_session_destroy(x)
    print("ok errors")


def check_memory(library, data, weights):
    g, memory = library.graph(data), Memory()
    s, st = library.open(weights, g, memory)
    assert st == OK, library.error(s)

    def ask(s):
        return max((library.score(s, [(0, i) for i in range(40)])[0], library.top(s, [1, 2], 5)[0]), key=abs)

    assert ask(s) == OK and ask(s) == OK
    n = memory.n
    assert ask(s) == OK and memory.n == n, (memory.n, n)
    library.lib.gnnc_session_destroy(s)
    assert memory.live == 0, memory.live
    for refuse in range(1, n + 1):
        memory = Memory(refuse)
        m, st = library.model(weights, memory)
        s = ctypes.c_void_p()
        st = st or library.lib.gnnc_session_create_with(ctypes.byref(s), *memory.arguments())
        st = st or library.lib.gnnc_session_open(s, m, g)
        assert st in (OK, E_NOMEM), (refuse, st)
        if st == OK:
            assert ask(s) in (OK, E_NOMEM) and ask(s) == OK, (refuse, library.error(s))  # it goes on
        library.lib.gnnc_session_destroy(s)
        library.lib.gnnc_model_release(m)
        assert memory.live == 0, (refuse, memory.live)
    library.lib.gnnc_graph_release(g)
    print("ok memory", n)


REFUSED = {"s = dot_score(p, w, h, dim)\n  return s - mean(s, over = p)": "would depend on which others are scored",
           "return dot_score(p, w, h, dim) * carry(g.buys.w, p)": "a pair that is brought is no edge of the data"}


def check_refused(gnnc, top, layers):
    for i, (body, why) in enumerate(REFUSED.items()):
        with open("refused.gnn", "w", encoding="utf-8") as f:
            f.write(layers(shop_model(TABLE, body, "")).replace("buys: user -> item { split }", "buys: user -> item { w: f32;  split }"))
        r = subprocess.run([gnnc, "refused.gnn", "--target=cpu", "--emit=infer", "-o", "refused"], capture_output=True, text=True)
        assert r.returncode == 1 and why in r.stderr and "E0516" in r.stderr, (body, r.stderr)
    r = subprocess.run([gnnc, top + "/models/events.gnn", "--target=cpu", "--emit=infer", "--embed=all", "-o", "refused"], capture_output=True, text=True)
    assert r.returncode == 1 and "a node of links by time" in r.stderr, r.stderr
    print("ok refused", i + 1)


def main():
    gnnc, top = sys.argv[1:3]
    layers = lambda text: text.replace('"layers/', '"%s/models/layers/' % top)
    bought, others = shop("pairs", 40, True)
    shop("small", 40, False)
    change("small", lambda schema: schema["edges"].pop("never"))  # what held-out links are judged beside
    for name in SCORES:
        library, s = check_shop(gnnc, layers, name, "small", bought + others, bought)
        if name == "mlp":
            check_errors(library, s)
        else:
            library.lib.gnnc_session_destroy(s)
    check_many(gnnc, layers)
    check_facts(gnnc, layers)
    check_shipped(gnnc, layers, top)
    check_memory(library, "small", "drawn.weights")
    check_refused(gnnc, top, layers)


if __name__ == "__main__":
    main()
