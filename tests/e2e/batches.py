#!/usr/bin/env python3
"""Training by mini-batches: one program for all batch shapes, and no memory after the first epoch.

    batches.py GNNC     writes a data set of two node types, compiles a model, trains 1,000 batches
"""
import array
import ctypes
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys

from directory import column, relation, save, write

MODEL = """
import "layers/sage.gnn"

graph Shop {
  node user { x: f32[F];  y: class[C];  split }
  node item { x: f32[G];  kind: cat[K] }
  edge buys: user -> item { w: f32 }
  edge bought_by: item -> user
  edge knows: user -> user
}

model M(g: Shop; hidden: int = 8) -> f32[user, C] {
  convs = [[r: sage_conv(hidden) for r in g.edges] for i in 0..2]
  kinds = embedding(K, hidden)
  first = [t: linear(hidden) for t in g.nodes]
  out = linear(C)
  h = [t: relu(first[t](t.x)) for t in g.nodes]
  for level in convs {
    h = [t: dropout(relu(sum([level[r](r, h[r.src], h[r.dst]) for r in g.edges if r.dst == t])), 0.2)
         for t in g.nodes]
  }
  loops = with_self_loops(g.knows)
  strong = g.buys where g.buys.w > 0.5
  bought = sum(h[user][strong.src], over = strong.dst) + kinds(g.item.kind)
  near = mean(h[user][loops.src], over = loops.dst) + sum(bought[g.bought_by.src], over = g.bought_by.dst)
  return out(h[user] + near)
}

train M {
  target user.y   loss cross_entropy   metric accuracy
  optimizer adam(lr = 1e-2)
  sample { fanout [buys: [5, 3, 2], bought_by: [6, 4, 2], knows: [4, -1, 3]]  batch 32  weight buys.w }
  epochs 30
}
"""

# What a person knows at a time: neighbours and purchases that are older, the newest first.
TIMED = """
import "layers/sage.gnn"

graph Shop {
  node user { x: f32[F];  since: time;  y: class[C];  split }
  node item { x: f32[G] }
  edge buys: user -> item
  edge bought_by: item -> user { at: time }
  edge knows: user -> user
}

model M(g: Shop; hidden: int = 8) -> f32[user, C] {
  a = sage_conv(hidden)
  b = sage_conv(hidden)
  last = sage_conv(C)
  h = relu(a(g.knows, g.user.x) + b(g.bought_by, g.item.x, g.user.x))
  return last(g.knows, h)
}

train M {
  target user.y   loss cross_entropy   metric accuracy
  optimizer adam(lr = 1e-2)
  sample { fanout [4, 3]  batch 100  time user.since, bought_by.at  pick recent  drop_last true  workers 1  prefetch 3 }
  epochs 5
}
"""


# What is judged of rows by time: a target and metrics of each sort.
JUDGED = """
import "layers/sage.gnn"

graph Shop {
  node user { x: f32[F];  since: time;  y: class[C];  age: f32;  tags: multilabel[T];  split }
  node item { x: f32[G] }
  edge bought_by: item -> user { at: time }
  edge knows: user -> user
}

fn r2(pred: f32[N], target: f32[N], mask: bool[N]) -> f32 {
  m = f32(mask)
  mean = sum(target * m) / sum(m)
  return 1 - sum((target - pred) ** 2 * m) / sum((target - mean) ** 2 * m)
}

model M(g: Shop; hidden: int = 8) -> f32[%s] {
  a = sage_conv(hidden)
  b = sage_conv(hidden)
  last = sage_conv(%s)
  h = relu(a(g.knows, g.user.x) + b(g.bought_by, g.item.x, g.user.x))
  log("least", min(h))
  return %s
}

train M {
  target user.%s   loss %s   metric %s
  optimizer adam(lr = 1e-2)
  sample { fanout [4, 3]  batch 1600  time user.since, bought_by.at }
  epochs 1
}
"""
SORTS = {"classes": ("user, C", "C", "last(g.knows, h)", "y", "cross_entropy",
                     "accuracy, f1_micro, f1_macro, roc_auc, average_precision"),
         "labels": ("user, T", "T", "last(g.knows, h)", "tags", "bce_with_logits",
                    "f1_micro, f1_macro, roc_auc, average_precision"),
         "numbers": ("user", "1", "sum(last(g.knows, h), 1)", "age", "mse", "rmse, mae, r2")}

# Edges that lead where the data's do not: of the model's (DERIVED), or stored beside them.
BACK = """
import "layers/sage.gnn"

graph Shop {
  node user { x: f32[F];  since: time;  y: class[C];  split }
  node item { x: f32[G] }
  edge buys: user -> item { w: f32;  at: time }
  edge knows: user -> user
  %s
}

model M(g: Shop; hidden: int = 8) -> f32[user, C] {
  all = [g.buys, g.knows, g.bought, g.friend]
  convs = [[r: sage_conv(hidden) for r in all] for i in 0..2]
  first = [t: linear(hidden) for t in g.nodes]
  out = linear(C)
  h = [t: relu(first[t](t.x)) for t in g.nodes]
  for level in convs {
    h = [t: relu(sum([level[r](r, h[r.src], h[r.dst]) for r in all if r.dst == t])) for t in g.nodes]
  }
  dear = %s
  sold = g.bought where g.bought.w > 0.3
  near = sum(h[item][sold.src] * (2 * sold.w), over = sold.dst)
  loops = with_self_loops(g.friend)
  some = sum(h[item][dear.src] * dear.w, over = dear.dst)
  return out(h[user] + near + some + mean(h[user][loops.src], over = loops.dst))
}

train M {
  target user.y   loss cross_entropy
  optimizer adam(lr = 1e-2)
  sample { fanout [4, 3, 2]  batch 64  %s }
  epochs 3
}
"""
DERIVED = "edge bought = reverse(buys)\n  edge friend = undirected(knows)", "reverse(g.buys where g.buys.w > 0.5)"
STORED = ("edge bought: item -> user { w: f32;  at: time }\n  edge friend: user -> user\n"
          "  edge dear: item -> user { w: f32;  at: time }", "g.dear")


def both_ways(path, edges, columns):
    """What reverse(buys), undirected(knows) and a part of the first are, as edge types of the data, in their order."""
    ends = {n: array.array("i", open(path + "/%s.npy" % n, "rb").read()[128:]) for n in ("buys", "knows")}
    pairs = {n: list(zip(e[:len(e) // 2], e[len(e) // 2:])) for n, e in ends.items()}
    order = {n: sorted(range(len(p)), key=lambda e, p=p: p[e][1]) for n, p in pairs.items()}
    knows = [pairs["knows"][e] for e in order["knows"]]
    dear = [e for e in order["buys"] if columns["w"][e] > 0.5]
    edge = {"bought": order["buys"], "dear": dear, "friend": []}
    lists = {name: [pairs["buys"][e][::-1] for e in edge[name]] for name in ("bought", "dear")}
    lists["friend"] = list(dict.fromkeys(knows + [p[::-1] for p in knows]))
    for name, p in lists.items():
        edges[name] = relation(path, name, "user" if name == "friend" else "item", "user", p)
        for what, kind in (("w", "float"), ("at", "time")):
            if edge[name]:
                edges[name]["columns"][what] = column(path, "%s_%s" % (name, what), kind, [columns[what][e] for e in edge[name]])


def data(path, users=1600, items=900):
    """Of each user as many edges, whatever their number."""
    r, bought, known = random.Random(1), users * 35 // 8, users * 25 // 8
    os.mkdir(path)
    skewed = lambda n: min(int(20 * r.paretovariate(2)) - 20, n - 1)
    y = [r.randrange(4) for _ in range(users)]
    user = {"x": column(path, "ux", "float", [r.gauss(0, 0.2) + y[i // 5] * (i % 5 == 0) for i in range(users * 5)], width=5)}
    item = {"x": column(path, "ix", "float", [r.gauss(0, 1) for _ in range(items * 3)], width=3)}
    user["y"] = column(path, "y", "class", y, categories=4)
    item["kind"] = column(path, "kind", "cat", [r.randrange(6) for _ in range(items)], categories=6)
    user["split"] = column(path, "split", "split", [1 if i < users * 7 // 10 else 2 if i < users * 17 // 20 else 3 for i in range(users)])
    edges, sizes = {}, {"user": users, "item": items}
    for name, src, dst, n in (("buys", "user", "item", bought), ("bought_by", "item", "user", bought), ("knows", "user", "user", known)):
        ends = [r.randrange(sizes[src]) for _ in range(n)] + [skewed(sizes[dst]) if r.random() < .1 else r.randrange(sizes[dst]) for _ in range(n)]
        edges[name] = relation(path, name, src, dst, list(zip(ends[:n], ends[n:])))
    at = [r.random() * 100 for _ in range(bought)]
    edges["bought_by"]["columns"]["at"] = edges["buys"]["columns"]["at"] = column(path, "at", "time", at)
    user["since"] = column(path, "since", "time", [r.random() * 100 for _ in range(users)])
    w = [r.random() for _ in range(bought)]
    edges["buys"]["columns"]["w"] = column(path, "w", "float", w)
    both_ways(path, edges, {"w": w, "at": at})
    user["age"] = column(path, "age", "float", [y[i] + r.gauss(0, 1) for i in range(users)])
    tags = [float("nan") if r.random() < .2 else float(r.random() < .2 * (1 + y[i // 3] * (i % 3))) for i in range(3 * users)]
    user["tags"] = column(path, "tags", "multilabel", tags, width=3)
    write(path, {"user": {"count": users, "columns": user}, "item": {"count": items, "columns": item}}, edges)


class Counters(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(n, ctypes.c_int64) for n in
                ("steps", "allocations", "allocated_bytes", "launches", "library_calls", "read_backs", "live_bytes",
                 "peak_bytes", "eval_ns")]


class Trainer:
    def __init__(self, lib, data, **options):
        self.lib, self.t = lib, ctypes.c_void_p()
        lib.gnnc_trainer_error.restype = ctypes.c_char_p
        lib.gnnc_trainer_steps_left.restype = ctypes.c_int64
        self.ok(lib.gnnc_trainer_create(ctypes.byref(self.t), ctypes.byref(ctypes.c_char.in_dll(lib, "model_program"))))
        for k, v in options.items():
            self.ok(lib.gnnc_trainer_set_int(self.t, k.encode(), ctypes.c_int64(v)))
        self.ok(lib.gnnc_trainer_load(self.t, data.encode()))

    def ok(self, status):
        assert status == 0, self.lib.gnnc_trainer_error(self.t)

    def epoch(self):
        self.ok(self.lib.gnnc_trainer_epoch(self.t))

    def step(self):
        self.ok(self.lib.gnnc_trainer_step(self.t))

    def left(self):
        return self.lib.gnnc_trainer_steps_left(self.t)

    def metric(self, name):
        v = ctypes.c_double()
        self.ok(self.lib.gnnc_trainer_metric(self.t, name.encode(), ctypes.byref(v)))
        return v.value

    def values(self, layer=None):
        """What the model predicts, or a layer: rows as lists."""
        data, rank, dim = ctypes.POINTER(ctypes.c_float)(), ctypes.c_int(), (ctypes.c_int64 * 8)()
        out = ctypes.byref(data), ctypes.byref(rank), dim
        self.ok(self.lib.gnnc_trainer_embed(self.t, layer.encode(), *out) if layer else
                self.lib.gnnc_trainer_predict(self.t, *out))
        width = math.prod(dim[1:rank.value])
        return [data[i * width:(i + 1) * width] for i in range(dim[0])]

    def allocations(self):
        c = Counters(ctypes.sizeof(Counters))
        self.ok(self.lib.gnnc_trainer_counters(self.t, ctypes.byref(c)))
        return c.allocations

    def save(self, path):
        self.ok(self.lib.gnnc_trainer_save(self.t, path.encode()))
        return open(path, "rb").read()

    def cancel_after(self, steps):
        """The next epoch is cancelled behind that many steps; false: it has fewer."""
        fn, told = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p), []
        hear = fn(lambda user, now: told.append(0) or len(told) == steps)
        self.ok(self.lib.gnnc_trainer_set_progress(self.t, hear, None))
        status = self.lib.gnnc_trainer_epoch(self.t)
        self.ok(self.lib.gnnc_trainer_set_progress(self.t, fn(), None))
        if status != -15:
            self.ok(status)
        return status == -15

    def resume(self, path):
        self.ok(self.lib.gnnc_trainer_resume(self.t, path.encode()))


def same_everywhere(lib, path="shop", done=7, left=28):
    """Loss and checkpoint after 3 epochs: at any number of threads and workers, resumed in mid-epoch."""
    whole = None
    for threads, workers in ((1, 0), (1, 1), (2, 1), (3, 2), (3, 0)):
        t = Trainer(lib, path, threads=threads, workers=workers)
        for _ in range(3):
            t.epoch()
        now = t.save("c")
        assert whole in (None, now), (threads, workers)
        whole = now
    t = Trainer(lib, path, threads=1)
    t.epoch()
    for _ in range(done):
        t.step()
    assert t.left() == left, t.left()
    t.save("part")
    t = Trainer(lib, path, threads=2)
    t.resume("part")
    assert t.left() == left, t.left()
    t.epoch()
    t.epoch()
    assert t.save("c") == whole
    cancelled(lib, path, left + done, whole)


def cancelled(lib, path, steps, whole):
    """After 3 epochs, each cancelled in the middle and behind its last step: goes on, and is resumed, to the same bits."""
    t = Trainer(lib, path, threads=2)
    for _ in range(3):
        for after, left in ((steps // 2, steps - steps // 2), (steps - steps // 2, 0)):
            assert t.cancel_after(after) and t.left() == left, (after, t.left())
        t.save("part")
        t = Trainer(lib, path, threads=1)
        t.resume("part")
        assert t.left() == 0 and not t.cancel_after(1)
    assert t.save("c") == whole


def no_memory(lib, path="shop", epochs=30, evaluates=False, falls=0.8):
    """1,000 batches of random shapes: what the heaviest of them needs is taken before the first step, and what an
    evaluation by batches needs by the first one.  The loss falls below `falls` of the first epoch's."""
    t = Trainer(lib, path, threads=2)
    t.epoch() if evaluates else t.step()
    before = t.allocations()
    t.epoch()
    loss, left = t.metric("loss"), t.left()
    for _ in range(epochs - 1):
        t.epoch()
    assert t.allocations() == before, (before, t.allocations())
    assert (epochs - 1) * left >= 1000
    assert t.metric("loss") < falls * loss, (loss, t.metric("loss"))


def compiled(gnnc, name, text, level):
    """level: -O0, or -O2, which is the one of the other tests: GNNC_LEVEL, where that is set."""
    open(name + ".gnn", "w").write(text)
    of = [] if level == "-O2" else [level]
    subprocess.run([gnnc, name + ".gnn", "--emit=lib", "--name=model", *of, "--verify-each", "-o", name + level], check=True)
    return ctypes.CDLL(os.path.abspath("lib%s%s.so" % (name, level)))


def same_levels(fast, slow, path="shop", also="loss.val"):
    """Trimmed and fused, or as it was written."""
    t, u = Trainer(fast, path), Trainer(slow, path)
    for _ in range(2):
        t.epoch()
        u.epoch()
        assert abs(t.metric("loss") - u.metric("loss")) < 1e-4, (t.metric("loss"), u.metric("loss"))
        assert abs(t.metric(also) - u.metric(also)) < 1e-3


def said_timeless(text):
    """The model, whose rows have times that nothing is drawn by."""
    return re.sub(r"(node user|edge \w+: \w+ -> \w+)(?= \{)", r"\1 timeless", text)


def as_stored(gnnc, name, drawn_by="", also=""):
    """Along an edge type of the model's own, the very batches of one that the data hold: the same losses, up to the order
    of sums and products, which is chosen by what is known of each type's rows (pass reorder)."""
    said = (lambda text: text) if "time" in drawn_by else said_timeless
    here = compiled(gnnc, name + "_derived", said(BACK % (*DERIVED, drawn_by)), "-O2")
    there = compiled(gnnc, name + "_stored", said(BACK % (*STORED, drawn_by + also)), "-O2")
    t, u = Trainer(here, "shop", threads=2, check_times=1), Trainer(there, "shop", threads=1)
    for _ in range(2):
        t.epoch()
        u.epoch()
        for loss in ("loss", "loss.val"):
            assert abs(t.metric(loss) - u.metric(loss)) < 1e-6, (name, loss, t.metric(loss), u.metric(loss))
    same_levels(here, compiled(gnnc, name + "_derived", said(BACK % (*DERIVED, drawn_by)), "-O0"))


def later(path, name, more=3000, items=900, users=1600):
    """The data with purchases that are newer than every user."""
    r = random.Random(2)
    shutil.copytree(path, name)
    schema = json.load(open(name + "/schema.json"))
    e = schema["edges"]["bought_by"]
    ends = array.array("i", open(name + "/bought_by.npy", "rb").read()[128:])
    at = array.array("d", open(name + "/at.npy", "rb").read()[128:])
    src = list(ends[:e["count"]]) + [r.randrange(items) for _ in range(more)]
    dst = list(ends[e["count"]:]) + [r.randrange(users) for _ in range(more)]
    save(name + "/bought_by.npy", "i", "<i4", (2, len(src)), src + dst)
    save(name + "/at_later.npy", "d", "<f8", (len(src),), list(at) + [1000 + r.random() for _ in range(more)])
    e["count"], e["columns"]["at"]["file"] = len(src), "at_later.npy"
    json.dump(schema, open(name + "/schema.json", "w"))


def sees_nothing_later(timed):
    """What comes after every seed changes nothing: neither what is learned, nor what evaluation says of it, nor what is
    predicted of a row."""
    later("shop", "later")
    t, u = (Trainer(timed, data, threads=2, check_times=1) for data in ("shop", "later"))
    for _ in range(2):
        t.epoch()
        u.epoch()
        for name in ["loss"] + [f"{m}.{s}" for m in ("loss", "accuracy") for s in ("train", "val", "test")]:
            assert t.metric(name) == u.metric(name), (name, t.metric(name), u.metric(name))
    for layer in (None, "h"):
        a, b = t.values(layer), u.values(layer)
        assert len(a) == 1600 and len(a[0]) == (8 if layer else 4) and a == b, layer
    before = t.allocations()
    t.epoch()
    assert t.allocations() == before, "an evaluation in batches allocates"


def area(scores, labels):
    """Under the ROC curve: the chance that a positive row is above a negative one."""
    pos, neg = ([s for s, l in zip(scores, labels) if l == k] for k in (1, 0))
    return sum((a > b) + 0.5 * (a == b) for a in pos for b in neg) / (len(pos) * len(neg))


def judged_over_all_rows(gnnc):
    """Every metric is that of the whole split, whatever the batches; it is that of what is predicted."""
    y, age = (array.array(code, open(f, "rb").read()[128:]) for code, f in (("i", "shop/y.npy"), ("f", "shop/age.npy")))
    split = array.array("b", open("shop/split.npy", "rb").read()[128:])
    for name, how in SORTS.items():
        lib = compiled(gnnc, name, JUDGED % how, "-O2")
        whole, small = Trainer(lib, "shop", threads=2), Trainer(lib, "shop", threads=1, batch=7, check_times=1)
        whole.epoch()
        whole.save("c")
        small.ok(lib.gnnc_trainer_load_weights(small.t, b"c"))
        names = ["loss"] + how[5].split(", ")
        for t in (whole, small):
            t.ok(t.lib.gnnc_trainer_evaluate(t.t))
        for metric in ["%s.%s" % (m, s) for m in names for s in ("train", "val", "test")] + ["log:least"]:
            a, b = whole.metric(metric), small.metric(metric)
            assert not math.isnan(a) and (abs(a - b) <= 1e-6 * abs(a) or metric == "log:least"), (name, metric, a, b)
        pred, same = whole.values(), small.values()
        assert max(abs(a - b) for x, z in zip(pred, same) for a, b in zip(x, z)) < 1e-6
        for k, s in ((2, "val"), (3, "test")):
            rows = [i for i in range(1600) if split[i] == k]
            if name == "classes":
                right = sum(pred[i].index(max(pred[i])) == y[i] for i in rows) / len(rows)
                assert abs(right - small.metric("accuracy." + s)) < 1e-6
                p = {i: [math.exp(v) / sum(map(math.exp, pred[i])) for v in pred[i]] for i in rows}
                auc = sum(area([p[i][c] for i in rows], [y[i] == c for i in rows]) for c in range(4)) / 4
                assert abs(auc - small.metric("roc_auc." + s)) < 1e-3, (auc, small.metric("roc_auc." + s))
            if name == "numbers":
                error = math.sqrt(sum((pred[i][0] - age[i]) ** 2 for i in rows) / len(rows))
                assert abs(error - small.metric("rmse." + s)) < 1e-5


def half_a_prediction_is_none(gnnc):
    """After a failure in one of its batches there is no output, though what it overwrote was one."""
    how = SORTS["numbers"]
    lib = compiled(gnnc, "checked", JUDGED.replace('log("least", min(h))', 'assert(max(h) < 1e6, "too much")') % how, "-O2")
    t = Trainer(lib, "shop", threads=1, batch=100)
    out = ctypes.byref(ctypes.c_void_p()), ctypes.byref(ctypes.c_int()), (ctypes.c_int64 * 8)()
    t.values()
    t.ok(lib.gnnc_trainer_output(t.t, b"pred", *out))
    name, rank, dim = ctypes.c_char_p(), ctypes.c_int(), (ctypes.c_int64 * 8)()
    t.ok(lib.gnnc_trainer_parameter_info(t.t, 0, ctypes.byref(name), ctypes.byref(rank), dim))
    n = math.prod(dim[:rank.value])
    t.ok(lib.gnnc_trainer_set_parameter(t.t, name, (ctypes.c_float * n)(*[1e8] * n), ctypes.c_size_t(n)))
    assert lib.gnnc_trainer_predict(t.t, *out) != 0 and b"too much" in lib.gnnc_trainer_error(t.t)
    assert lib.gnnc_trainer_output(t.t, b"pred", *out) != 0 and b"is gone" in lib.gnnc_trainer_error(t.t)


def judged_as_the_whole_graph(gnnc):
    """Where every row knows all, batches of all neighbours are judged as the whole graph is."""
    shutil.copytree("shop", "known")
    save("known/since.npy", "d", "<f8", (1600,), [1e6] * 1600)
    drawn = re.compile(r"sample \{.*\}")
    by_time = drawn.sub("sample { fanout [-1, -1]  batch 100  time user.since, bought_by.at  inclusive true }", TIMED)
    whole = said_timeless(drawn.sub("sample { fanout [-1, -1]  batch 100 }", TIMED))
    t, u = (Trainer(compiled(gnnc, name, text, "-O2"), "known", threads=2)
            for name, text in (("by_time", by_time), ("whole", whole)))
    for x in (t, u):
        x.ok(x.lib.gnnc_trainer_evaluate(x.t))
    for name in [f"{m}.{s}" for m in ("loss", "accuracy") for s in ("train", "val", "test")]:
        a, b = t.metric(name), u.metric(name)
        assert b > 0.05 and abs(a - b) < 1e-5 * max(1, b), (name, a, b)


# Users have a time in the data, of which this model knows nothing.
UNTOLD = """
graph Shop { node user%s { x: f32[F];  y: class[C];  split }  edge knows: user -> user }
model M(g: Shop) -> f32[user, C] {
  out = linear(C)
  return out(sum(g.user.x[g.knows.src], over = g.knows.dst))
}
train M { target user.y  loss cross_entropy  optimizer sgd(lr = 1e-2)  epochs 1 }
"""


def undeclared_times_are_seen(gnnc):
    """--check-times looks at all tables that are read, not at the columns that the model lists."""
    untold, told = (compiled(gnnc, name, UNTOLD % word, "-O2") for name, word in (("untold", ""), ("told", " timeless")))
    try:
        Trainer(untold, "shop", check_times=1)
    except AssertionError as e:
        assert b"rows of 'user' have the time 'since'" in e.args[0], e.args
    else:
        raise AssertionError("nobody saw the time of users")
    Trainer(untold, "shop")
    Trainer(told, "shop", check_times=1)


def main():
    gnnc = sys.argv[1]
    data("shop")
    undeclared_times_are_seen(gnnc)
    fast = compiled(gnnc, "shop", MODEL, "-O2")
    same_everywhere(fast)
    no_memory(fast)
    same_levels(fast, compiled(gnnc, "shop", MODEL, "-O0"))
    timed = compiled(gnnc, "timed", TIMED, "-O2")
    same_levels(timed, compiled(gnnc, "timed", TIMED, "-O0"))
    sees_nothing_later(timed)
    judged_over_all_rows(gnnc)
    judged_as_the_whole_graph(gnnc)
    half_a_prediction_is_none(gnnc)
    as_stored(gnnc, "plain")
    as_stored(gnnc, "weighted", "weight buys.w", ", bought.w, dear.w")
    as_stored(gnnc, "dated", "time user.since, buys.at", ", bought.at, dear.at")


if __name__ == "__main__":
    main()
