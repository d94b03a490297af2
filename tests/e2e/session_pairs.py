#!/usr/bin/env python3
"""Pairs that bring columns of theirs (gnnc_session_predict_pairs, .._top_pairs): what the model reads of links, and of links by
time when each is asked for.  As the trainer scores the data's own edges; alone as beside others.

    session_pairs.py GNNC TOP
"""
import ctypes
import json
import os
import random
import subprocess
import sys

from directory import column, relation, write
from graph import DONE, Host, npy
from pairs import F32, I64, Pairs, best, pairs
import subgraph_links
from session_links import Links
from sessions import E_ARG, E_MISSING, E_NOMEM, E_RANGE, E_STATE, OK, Memory, Session, near, run

E_SHAPE, E_FORMAT, E_VALUE = -2, -5, -7
FLOAT, CAT, TIME = 0, 2, 5  # gnnc_kind


class Scores(Links):
    def columns(self, s):
        self.lib.gnnc_session_pair_column.restype = ctypes.c_char_p
        out, kind = [], ctypes.c_int32()
        for i in range(self.lib.gnnc_session_n_pair_columns(s)):
            out.append((self.lib.gnnc_session_pair_column(s, i, ctypes.byref(kind)).decode(), kind.value))
        assert self.lib.gnnc_session_pair_column(s, len(out), None) is None
        return out

    def score_with(self, s, src, dst, columns):
        """Of arrays that are lent: each is given back once."""
        host, out = Host(True), (F32 * max(1, len(src)))()
        st = self.lib.gnnc_session_predict_pairs(s, ctypes.byref(pairs(src, dst, columns, host)), out)
        assert host.returned == host.lent, (host.returned, host.lent)
        return st, list(out)[:len(src)]

    def top_with(self, s, src, columns, k, known=0):
        n = len(src)
        dst, score = (I64 * (n * k))(), (F32 * (n * k))()
        st = self.lib.gnnc_session_top_pairs(s, ctypes.byref(pairs(src, None, columns, Host(False))), I64(k), known, dst, score)
        return st, [list(zip(dst[i * k:(i + 1) * k], score[i * k:(i + 1) * k])) for i in range(n)]


def compiled(gnnc, name, text, data):
    with open(name + ".gnn", "w", encoding="utf-8") as f:
        f.write(text)
    run(gnnc, name + ".gnn", "--target=cpu", "-o", name)
    run(gnnc, name + ".gnn", "--target=cpu", "--emit=infer", "-o", name + "_pairs")
    run("./" + name, "--data", data, "--epochs", "1", "--out", name + ".weights")
    run("./" + name, "predict", "--data", data, "--weights", name + ".weights", "--out", name + ".npy")
    library = Scores(name + "_pairs")
    s, st = library.open(name + ".weights", library.graph(data))
    assert st == OK, library.error(s)
    return library, s, npy(name + ".npy")[0]


def in_data_order(flat, dst):
    """The trainer's predictions are by destination."""
    order = sorted(range(len(dst)), key=lambda e: (dst[e], e))
    at = {e: i for i, e in enumerate(order)}
    return [flat[at[e]] for e in range(len(dst))]


def check_scores(library, s, name, src, dst, columns, want):
    """All edges, some of them twice, and each alone."""
    n = len(src)
    some = lambda ids: ([src[e] for e in ids], [dst[e] for e in ids], {c: ([v[0][e] for e in ids], *v[1:]) for c, v in columns.items()})
    ids = list(range(n)) + [3, 3]
    st, got = library.score_with(s, *some(ids))
    assert st == OK, library.error(s)
    assert all(near([x], [want[e]]) for x, e in zip(got, ids)), name
    for e in range(0, n, 7):
        st, one = library.score_with(s, *some([e]))
        assert st == OK and near(one, [want[e]]), (name, e, one, want[e])
    print("ok", name)


# ---- columns of links ----------------------------------------------------------------------------------------
SHOP = """
import "layers/links.gnn"
graph Shop {
  node user { x: f32[F] }
  node item { z: f32[Z] }
  edge buys: user -> item { w: f32[W];  how: cat[H];  of: cat[K];  split }
}
model M(g: Shop; dim: int = 6) -> f32[links] {
  p = links(g.buys, g.buys.of)
  u = linear(dim)
  v = linear(dim)
  ways = embedding(H, dim)
  kinds = embedding(K, dim)
  weights = linear(1)
  a = u(g.user.x)[p.src] * kinds(p.of) + ways(p.how)
  return contract(a, v(g.item.z)[p.dst], dim) + sum(weights(p.w), over = 1)
}
train M {
  target links   loss bce_with_logits
  optimizer adam(lr = 1e-2)
  sample { batch 16  negatives 1 }
  epochs 1   keep last
}
"""
USERS, ITEMS, BOUGHT = 9, 300, 60
WAYS = ["card", "cash", "voucher"]


def shop(path):
    r = random.Random(3)
    os.mkdir(path)
    many = lambda n: [r.gauss(0, 1) for _ in range(n)]
    src, dst = ([r.randrange(k) for _ in range(BOUGHT)] for k in (USERS, ITEMS))
    w, how, of = many(2 * BOUGHT), [r.randrange(3) for _ in range(BOUGHT)], [i % 2 for i in range(BOUGHT)]
    columns = {"w": column(path, "w", "float", w, width=2), "how": column(path, "how", "cat", how, categories=3, names=WAYS),
               "of": column(path, "of", "cat", of, categories=2), "split": column(path, "split", "split", [1 + i % 3 for i in range(BOUGHT)])}
    write(path, {"user": {"count": USERS, "columns": {"x": column(path, "x", "float", many(4 * USERS), width=4)}},
                 "item": {"count": ITEMS, "columns": {"z": column(path, "z", "float", many(3 * ITEMS), width=3)}}},
          {"buys": relation(path, "buys", "user", "item", list(zip(src, dst)), **columns)})
    return src, dst, [w[2 * i:2 * i + 2] for i in range(BOUGHT)], how, of


def check_columns(gnnc, layers):
    src, dst, w, how, of = shop("shop")
    library, s, flat = compiled(gnnc, "columns", layers(SHOP), "shop")
    want = in_data_order(flat, dst)
    assert sorted(library.columns(s)) == [("how", CAT), ("w", FLOAT)], library.columns(s)
    for kind in (0, 1):  # what kind they are is told beside them
        ids = [e for e in range(BOUGHT) if of[e] == kind]
        asked = pairs([src[e] for e in ids], [dst[e] for e in ids], {"w": ([w[e] for e in ids], "<f4"), "how": ([how[e] for e in ids], "<i4")}, Host(False))
        kinds, out = (I64 * len(ids))(*[kind] * len(ids)), (F32 * len(ids))()
        asked.kind = ctypes.cast(kinds, ctypes.c_void_p)
        assert library.lib.gnnc_session_predict_pairs(s, ctypes.byref(asked), out) == OK, library.error(s)
        assert all(near([x], [want[e]]) for x, e in zip(out, ids)), kind
    named = {"how": ([2 - x for x in how[:5]], "<i4", WAYS[::-1]), "w": (w[:5], "<f4")}
    coded = {"how": (how[:5], "<i4"), "w": (w[:5], "<f4")}
    assert library.score_with(s, src[:5], dst[:5], named) == library.score_with(s, src[:5], dst[:5], coded)
    top = {"w": (w[:2], "<f4"), "how": (how[:2], "<i4")}
    st, rows = library.top_with(s, src[:2], top, 4, known=1)
    for i, row in enumerate(rows):
        scores = library.score_with(s, [src[i]] * ITEMS, list(range(ITEMS)), {"w": ([w[i]] * ITEMS, "<f4"), "how": ([how[i]] * ITEMS, "<i4")})[1]
        assert st == OK and row == best(dict(enumerate(scores)), range(ITEMS), 4), (i, row)
    over = object.__new__(Session)
    over.lib, over.s = library.lib, s
    m, _ = library.model("columns.weights")
    own = lambda links: {"w": ([w[link[4]] for link in links], "<f4"), "how": ([how[link[4]] for link in links], "<i4")}
    groups = [[(src[e], dst[e], of[e], want[e], e) for e in some] for some in ([3], range(7, 30, 3))]
    subgraph_links.check("columns", over, m, "shop", "buys", 1, groups, own, ("of", False))
    library.lib.gnnc_model_release(m)
    check_errors(library, s, src, dst, coded)
    library.lib.gnnc_session_destroy(s)
    check_names(library)
    print("ok columns")


def check_names(library):
    """Codes by names lie within the model's table, whatever a file of weights says they are called."""
    with open("columns.weights", "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        head, values = json.loads(f.read(size)), f.read()
    for names, loads, why in ((WAYS + ["gift"], OK, "'buys.how' has 4 names, the model 3 categories"),
                              (["card", "cash", "card"], E_FORMAT, "has 'card' twice")):
        head["__metadata__"]["names:buys.how"] = json.dumps(names)
        text = json.dumps(head).encode()
        with open("names.weights", "wb") as f:
            f.write(len(text).to_bytes(8, "little") + text + values)
        m, st = library.model("names.weights")
        assert st == loads, (names, st, library.lib.gnnc_model_error(m))
        if st != OK:
            assert why in library.lib.gnnc_model_error(m).decode(), library.lib.gnnc_model_error(m)
            library.lib.gnnc_model_release(m)
            continue
        library.lib.gnnc_model_release(m)
        s, st = library.open("names.weights", library.graph("shop"))
        assert st == E_SHAPE and why in library.error(s), (names, st, library.error(s))
        library.lib.gnnc_session_destroy(s)


def check_errors(library, s, src, dst, coded):
    def fails(status, text, columns, ends=(src[:5], dst[:5])):
        st, _ = library.score_with(s, *ends, columns)
        assert st == status and text in library.error(s), (st, library.error(s), text)

    fails(E_MISSING, "pairs have no column 'how', which the model reads", {"w": coded["w"]})
    fails(E_ARG, "'t' is no column that 'columns' reads of pairs", {**coded, "t": ([1.0] * 5, "<f8")})
    fails(E_ARG, "pairs.w: given twice", [*coded.items(), ("w", coded["w"])])
    fails(E_SHAPE, "pairs.w: size 3 in dimension 1, 2 wanted", {**coded, "w": ([[1, 2, 3]] * 5, "<f4")})
    fails(E_SHAPE, "pairs.w", {**coded, "w": (coded["w"][0][:4], "<f4")})
    fails(E_VALUE, "pairs.w: row 1", {**coded, "w": ([[0, 0], [0, float("nan")]] + coded["w"][0][2:], "<f4")})
    fails(E_RANGE, "pairs.how: row 0", {**coded, "how": ([3, 0, 0, 0, 0], "<i4")})
    fails(E_RANGE, "pairs.how: row 1: 'gift' is no category of the model", {**coded, "how": ([0, 1, 0, 0, 0], "<i4", ["cash", "gift"])})
    fails(E_RANGE, "destination %d" % ITEMS, coded, (src[:5], dst[:4] + [ITEMS]))
    assert library.score(s, [(0, 0)])[0] == E_MISSING and library.top(s, [0], 2)[0] == E_MISSING
    fails(E_SHAPE, "pairs.w: 1 dimensions, 2 wanted", {"w": ([], "<f4"), "how": ([], "<i4")}, ([], []))
    asked, none = pairs([], [], {"w": ([], "<f4"), "how": ([], "<i4")}, Host(False)), Host(False).array([], "<f4", (0, 2))
    asked.keep[2][0].values = ctypes.cast(none, ctypes.c_void_p)
    assert library.lib.gnnc_session_predict_pairs(s, ctypes.byref(asked), None) == OK, library.error(s)
    bad = Pairs(8, 1)
    assert library.lib.gnnc_session_predict_pairs(s, ctypes.byref(bad), None) == E_ARG and "gnnc_pairs" in library.error(s), library.error(s)
    none = Pairs(ctypes.sizeof(Pairs), 1, None, None, None, None, 2)
    assert library.lib.gnnc_session_predict_pairs(s, ctypes.byref(none), None) == E_ARG and "no array of them" in library.error(s)
    assert library.lib.gnnc_session_predict_pairs(None, ctypes.byref(bad), None) == E_ARG
    assert library.score_with(s, src[:5], dst[:5], coded)[0] == OK  # it goes on


# ---- links by time ---------------------------------------------------------------------------------------------
NODES, EVENTS = 25, 160


def mail(path):
    r = random.Random(8)
    os.mkdir(path)
    some = lambda: r.randrange(NODES) if r.random() < 0.7 else 0  # who has more events than are drawn
    src, dst = ([some() for _ in range(EVENTS)] for _ in range(2))
    t = sorted(float(r.randrange(4000)) for _ in range(EVENTS))
    write(path, {"vertex": {"count": NODES, "columns": {}}},
          {"event": relation(path, "event", "vertex", "vertex", list(zip(src, dst)), t=column(path, "t", "time", t),
                             split=column(path, "split", "split", [1 + (i > 100) + (i > 130) for i in range(EVENTS)]))})
    return src, dst, t


def check_time(gnnc, top, layers):
    src, dst, t = mail("mail")
    with open(top + "/models/events.gnn", encoding="utf-8") as f:
        text = f.read().replace(", negatives = g.no_event", "").replace("  edge no_event", "  # edge no_event")
    library, s, flat = compiled(gnnc, "events", layers(text), "mail")
    assert library.columns(s) == [("t", TIME)] and library.sizes(s) == [NODES, NODES, 1]
    want = in_data_order(flat, dst)
    check_scores(library, s, "events", src, dst, {"t": (t, "<f8")}, want)
    later = library.score_with(s, [3], [4], {"t": ([5000.0], "<f8")})[1]
    assert later != library.score_with(s, [3], [4], {"t": ([10.0], "<f8")})[1]
    known = lambda u, when: {v for a, v, x in zip(src, dst, t) if a == u and x < when}
    asked = [(src[EVENTS - 1], 5000.0), (src[EVENTS - 1], t[0])]  # at first nothing is known
    for every in (0, 1):
        st, rows = library.top_with(s, [u for u, _ in asked], {"t": ([x for _, x in asked], "<f8")}, 5, known=every)
        for (u, when), row in zip(asked, rows):
            scores = library.score_with(s, [u] * NODES, list(range(NODES)), {"t": ([when] * NODES, "<f8")})[1]
            left = set(range(NODES)) - (set() if every else known(u, when))
            assert st == OK and row == best(dict(enumerate(scores)), left, 5), (u, when, every)
    assert len(known(*asked[0])) > 1 and not known(*asked[1])
    st, _ = library.score_with(s, [0, 1], [1, 2], {"t": ([1.0, float("nan")], "<f8")})
    assert st == E_VALUE and "pairs.t: row 1 has no time" in library.error(s), library.error(s)
    assert library.score(s, [(0, 1)])[0] == E_MISSING and "no column 't', which tells what is known" in library.error(s), library.error(s)
    check_subgraphs(library, s, [(src[e], dst[e], 0, want[e], t[e]) for e in range(EVENTS)])
    library.lib.gnnc_session_destroy(s)
    check_drawn(gnnc, layers(text), src, dst, t)
    check_untimed(gnnc)
    check_memory(library)


def check_subgraphs(library, s, links):
    """Of all that is around a pair, later events too, the newest that it knows."""
    over = object.__new__(Session)
    over.lib, over.s = library.lib, s
    m, _ = library.model("events.weights")
    times = lambda links: {"t": ([link[4] for link in links], "<f8")}
    groups = [[link] for link in links[::23]] + [links[70:73]]
    subgraph_links.check("events", over, m, "mail", "event", 1, groups, times, part=2)
    subgraph_links.check_memory(over, m, "mail", "event", 1, [links[9:10], links[12:14]], Memory, times)
    library.lib.gnnc_model_release(m)


def check_drawn(gnnc, text, src, dst, t):
    """Few neighbours by chance: of the seed, the pair and its time alone; all of them for who has no more."""
    library, s, _ = compiled(gnnc, "drawn", text.replace("fanout [20]", "fanout [2]").replace("pick recent", ""), "mail")
    every = {"t": (t, "<f8")}
    got = library.score_with(s, src, dst, every)[1]
    for e in range(0, EVENTS, 9):
        assert near(library.score_with(s, [src[e]], [dst[e]], {"t": ([t[e]], "<f8")})[1], [got[e]]), e
    clone = ctypes.c_void_p()
    assert library.lib.gnnc_session_set_seed(s, I64(5)) == OK and library.lib.gnnc_session_clone(ctypes.byref(clone), s) == OK
    other = library.score_with(s, src, dst, every)[1]
    same = sum(near([a], [b]) for a, b in zip(got, other))
    assert 5 < same < EVENTS - 5 and library.score_with(clone, src, dst, every)[1] == other, same
    for x in (s, clone):
        library.lib.gnnc_session_destroy(x)
    print("ok drawn", same)


def check_untimed(gnnc):
    """IR that is written by hand may draw neighbours of links by no time; a request has none then."""
    run(gnnc, "events.gnn", "--target=cpu", "--infer", "--emit=ir", "-o", "untimed.gir")
    with open("untimed.gir", encoding="utf-8") as f:
        text = f.read()
    lines = [line for line in text.splitlines() if not line.startswith("    time ")]
    for name, text in (("untimed", lines), ("twice", [line for x in lines for line in [x] * (2 if "brought " in x else 1)])):
        with open(name + ".gir", "w", encoding="utf-8") as f:
            f.write("\n".join(text) + "\n")
    run(gnnc, "untimed.gir", "--target=cpu", "-O0", "--emit=lib", "-o", "untimed_pairs")
    library = Scores("untimed_pairs")
    s, st = library.open("events.weights", library.graph("mail"))
    assert st == E_STATE and "has no time to draw them by" in library.error(s), (st, library.error(s))
    library.lib.gnnc_session_destroy(s)
    r = subprocess.run([gnnc, "twice.gir", "--target=cpu", "--emit=ir", "-o", "no.gir"], capture_output=True, text=True)
    assert r.returncode == 1 and "it is brought twice" in r.stderr, r.stderr
    print("ok untimed")


def check_memory(library):
    g, memory = library.graph("mail"), Memory()
    s, st = library.open("events.weights", g, memory)
    assert st == OK, library.error(s)

    def ask(s):
        one = {"t": ([3000.0] * 3, "<f8")}
        return min(library.score_with(s, [1, 2, 3], [3, 4, 5], one)[0], library.top_with(s, [1, 2, 3], one, 4)[0])

    assert ask(s) == OK and ask(s) == OK
    n = memory.n
    assert ask(s) == OK and memory.n == n, (memory.n, n)
    library.lib.gnnc_session_destroy(s)
    assert memory.live == 0, memory.live
    for refuse in range(1, n + 1):
        memory = Memory(refuse)
        m, st = library.model("events.weights", memory)
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


# ---- what is ranked by time ------------------------------------------------------------------------------------
CIRCUITS, DRIVERS, RACES, RESULTS, ASKED = 12, 15, 60, 300, 40


def races(path):
    """As an import makes it: a result has a race and a driver, a question a driver and the circuits that are its answer."""
    r = random.Random(9)
    os.mkdir(path)
    date = [86400.0 * 14 * i for i in range(RACES)]
    of = [r.randrange(RACES) for _ in range(RESULTS)]
    when = sorted(r.choice(date) for _ in range(ASKED))
    answers = [(q, c) for q in range(ASKED) for c in r.sample(range(CIRCUITS), 3)]
    split = [1 + (q > 25) + (q > 32) for q in range(ASKED)]
    times = lambda table, values: {"count": len(values), "columns": {"date": column(path, table, "time", values)}}
    one = lambda name, src, dst, n, to: relation(path, name, src, dst, [(i, r.randrange(to)) for i in range(n)])
    name = column(path, "name", "cat", list(range(CIRCUITS)), categories=CIRCUITS)
    write(path, {"circuits": {"count": CIRCUITS, "columns": {"name": name}}, "drivers": {"count": DRIVERS, "columns": {}},
                 "races": times("race", date), "results": times("result", [date[i] for i in of]),
                 "task": {"count": ASKED, "columns": {"time": column(path, "asked", "time", when)}}},
          {"races__circuitId": one("at", "races", "circuits", RACES, CIRCUITS), "results__driverId": one("by", "results", "drivers", RESULTS, DRIVERS),
           "results__raceId": relation(path, "in", "results", "races", list(enumerate(of))),
           "task__drivers": one("who", "task", "drivers", ASKED, DRIVERS),
           "task__circuits": relation(path, "answers", "task", "circuits", answers, time=column(path, "time", "time", [when[q] for q, _ in answers]),
                                      split=column(path, "split", "split", [split[q] for q, _ in answers]))})
    return [q for q, _ in answers], [c for _, c in answers], [when[q] for q, _ in answers]


def check_ranked(gnnc, top, layers):
    """The shipped models that recommend, whose links are questions and items: pairs, and the best items of each question."""
    src, dst, t = races("races")
    for name in ("f1_id_gnn", "f1_two_tower"):
        with open(top + "/models/%s.gnn" % name, encoding="utf-8") as f:
            library, s, flat = compiled(gnnc, name, layers(f.read()), "races")
        assert library.columns(s) == [("time", TIME)]
        check_scores(library, s, name, src, dst, {"time": (t, "<f8")}, in_data_order(flat, dst))
        st, rows = library.top_with(s, src[-9::3], {"time": (t[-9::3], "<f8")}, 5, known=1)
        for u, when, row in zip(src[-9::3], t[-9::3], rows):
            scores = library.score_with(s, [u] * CIRCUITS, list(range(CIRCUITS)), {"time": ([when] * CIRCUITS, "<f8")})[1]
            assert st == OK and row == best(dict(enumerate(scores)), range(CIRCUITS), 5), (name, u)
        want = in_data_order(flat, dst)
        links = [(src[e], dst[e], 0, want[e], t[e]) for e in range(len(src))]
        times = lambda links: {"time": ([link[4] for link in links], "<f8")}
        over = object.__new__(Session)
        over.lib, over.s = library.lib, s
        m, _ = library.model(name + ".weights")
        subgraph_links.check(name, over, m, "races", "task__circuits", 4, [links[5:6], links[-1:], links[40:43]], times, part=2)
        library.lib.gnnc_model_release(m)
        library.lib.gnnc_session_destroy(s)


def check_refused(gnnc, text):
    """A mean over all pairs of a request would be another one in other company."""
    with open("refused.gnn", "w", encoding="utf-8") as f:
        f.write(text)
    r = subprocess.run([gnnc, "refused.gnn", "--target=cpu", "--emit=infer", "-o", "refused"], capture_output=True, text=True)
    assert r.returncode == 1 and "would depend on which others are scored with it" in r.stderr and "E0516" in r.stderr, r.stderr
    print("ok refused")


def main():
    gnnc, top = sys.argv[1:3]
    layers = lambda text: text.replace('"layers/', '"%s/models/layers/' % top)
    check_columns(gnnc, layers)
    check_time(gnnc, top, layers)
    check_ranked(gnnc, top, layers)
    with open("events.gnn", encoding="utf-8") as f:
        check_refused(gnnc, f.read().replace("return sum(out(relu(second(relu(h)))), 1)", "s = sum(out(relu(second(relu(h)))), 1)\n  return s - mean(s, over = p)"))


if __name__ == "__main__":
    main()
