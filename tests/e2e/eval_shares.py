#!/usr/bin/env python3
"""Batches of evaluations that processes share out, as threads of this one: rows by time, links by time, queries.  Metrics, logs,
checkpoints are those of one process, and each process runs fewer kernels.  usage: eval_shares.py GNNC TOP.  Prints
`N passed, N failed`."""
import ctypes
import os
import random
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import around  # noqa: E402
import directory  # noqa: E402
from checks import bytes_of, check, end, run  # noqa: E402
from threads import E_IO, Bus, Rows, Trainer  # noqa: E402

GNNC, TOP = sys.argv[1:3]
E_STATE, EPOCHS, DAY = -10, 2, 86400.0
ROWS = """
graph G {
  node user { x: f32[F] }
  node deal { v: f32[V];  t: time }
  node task { y: f32;  split;  t: time }
  edge of: task -> user
  edge by: deal -> user
}
model M(g: G) -> f32[task] {
  a = linear(4)
  b = linear(4)
  last = linear(1)
  down = reverse(g.of)
  h = relu(a(g.user.x) + sum(b(g.deal.v)[g.by.src], over = g.by.dst))
  log("size", mean(h))
  return sum(sum(last(h)[down.src], over = down.dst), 1)
}
train M {
  target task.y  loss mse  metric mae, rmse  optimizer adam(lr = 1e-2)  epochs 2  keep best on val mae
  sample { fanout [-1, 3]  batch 7  own true  time g.deal.t, g.task.t }  accumulate 3
}
"""


def tasks(path, n=400):
    """Few rows to learn from, many to judge, at dates of a month."""
    r = random.Random(4)
    os.mkdir(path)
    dates = {"task": [DAY * r.randrange(30) for _ in range(n)], "deal": [DAY * r.randrange(30) for _ in range(300)]}
    nodes = {"user": {"count": 60, "columns": {"x": directory.column(path, "x", "float", [r.gauss(0, 1) for _ in range(300)], width=5)}},
             "deal": {"count": 300, "columns": {"v": directory.column(path, "v", "float", [r.gauss(0, 1) for _ in range(900)], width=3),
                                                "t": directory.column(path, "deal.t", "time", dates["deal"])}},
             "task": {"count": n, "columns": {"y": directory.column(path, "y", "float", [r.gauss(0, 1) for _ in range(n)]),
                                              "split": directory.column(path, "split", "split", [1 + (i % 8 > 0) + (i % 8 > 3) for i in range(n)]),
                                              "t": directory.column(path, "task.t", "time", dates["task"])}}}
    directory.write(path, nodes, {"of": directory.relation(path, "of", "task", "user", [(i, r.randrange(60)) for i in range(n)]),
                                  "by": directory.relation(path, "by", "deal", "user", [(i, r.randrange(60)) for i in range(300)])})
    run(GNNC, "partition", path, "3", "-o", path + ".3", "--method", "stream")


def learned(t):
    """Metrics of each epoch, and how many kernels ran in all."""
    said, value = [], ctypes.c_double()
    t.ok(t.load())
    for _ in range(EPOCHS):
        t.ok(t.lib.gnnc_trainer_epoch(t.t))
        for name in t.metrics:
            t.ok(t.lib.gnnc_trainer_metric(t.t, name.encode(), ctypes.byref(value)))
            said.append((name, value.value))
    t.save(f"now.{t.rank}")
    return said, t.counters().launches


def together(lib, data, n, does, metrics=(), rows=None, fails_at=-1, **options):
    bus, out = Bus(n, fails_at), [None] * n

    def work(rank):
        own = {name: value(rank) if callable(value) else value for name, value in options.items()}
        t = Trainer(lib, data.encode(), rank, n, bus if n > 1 else None, rows=rows, in_thread=1, **own)
        t.metrics = metrics
        out[rank] = does(t)
        lib.gnnc_trainer_destroy(t.t)
    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(f"{n} processes send the same in the same order", not bus.wrong and not (rows and rows.wrong), (bus.wrong, rows and rows.wrong))
    return out, bus.count[0]


def compiled(name, text):
    with open(name + ".gnn", "w", encoding="utf-8") as f:
        f.write(text)
    run(GNNC, name + ".gnn", f"-I{TOP}/models", "--target=cpu", "--emit=lib", "--name=model", "-o", name)
    lib = ctypes.CDLL(f"./lib{name}.so")
    lib.gnnc_trainer_error.restype = ctypes.c_char_p
    return lib


tasks("tasks")
around.events("mail", True)
around.facts("facts")
rows = compiled("rows", ROWS)
pairs = compiled("pairs", (around.EVENTS % ("[3]", "")).replace("epochs 2 ", "epochs 2  accumulate 3 "))
queries = compiled("queries", (around.FACTS % ("adam(lr = 1e-2)", "fanout [3, 2]")).replace("epochs 40 ", "epochs 2  accumulate 3 "))
CASES = (("rows", rows, "tasks", ("mae.val", "rmse.test", "log:size"), {}), ("pairs", pairs, "mail", ("of_true.val", "roc_auc.test"), {}),
         ("queries", queries, "facts", ("mrr.val", "hits.test"), {"batch": 20}))
for name, lib, data, metrics, options in CASES:
    (one, most), = together(lib, data, 1, learned, metrics, **options)[0]
    want = bytes_of("now.0")
    for n in (2, 3):
        out = together(lib, data, n, learned, metrics, **options)[0]
        check(f"{name}: {n} processes tell the same", all(said == one for said, _ in out), (out, one))
        check(f"{name}: {n} processes leave the same", all(bytes_of(f"now.{rank}") == want for rank in range(n)))
        check(f"{name}: {n} processes run fewer kernels", all(launches < 0.75 * most for _, launches in out), ([x for _, x in out], most))

# ---- rows of others for evaluations come, too: each judges rows that it has -----------------------------------------
(one, most), = together(rows, "tasks.3", 1, learned, CASES[0][3], pull_rows=1)[0]
want = bytes_of("now.0")
for n in (2, 3):
    out = together(rows, "tasks.3", n, learned, CASES[0][3], rows=Rows(n), pull_rows=1)[0]
    check(f"pulled: {n} processes tell and leave the same", all(said == one for said, _ in out) and bytes_of("now.0") == want == bytes_of("now.1"), (out, one))
    check(f"pulled: {n} processes run fewer kernels", sum(launches for _, launches in out) < 1.8 * most, ([x for _, x in out], most))


# ---- one evaluates for itself between two calls: all make the evaluation of that step, too ----------------------------
def looks(one):
    def does(t):
        t.ok(t.load())
        t.steps(3)
        if t.rank == one:
            t.ok(t.lib.gnnc_trainer_evaluate(t.t))
        for _ in range(EPOCHS):
            t.ok(t.lib.gnnc_trainer_epoch(t.t))
        t.save(f"now.{t.rank}")
    return does


together(rows, "tasks", 1, looks(-1), eval_every_steps=3)
want = bytes_of("now.0")
for n, one in ((1, 0), (2, 0), (2, 1)):
    together(rows, "tasks", n, looks(one), eval_every_steps=3)
    check(f"rank {one} of {n} looks at metrics", all(bytes_of(f"now.{rank}") == want for rank in range(n)))


# ---- what one sends does not come; another schedule -----------------------------------------------------------------
def again(t):
    t.ok(t.load())
    said = []
    for _ in range(EPOCHS):
        while (st := t.lib.gnnc_trainer_epoch(t.t)) and len(said) < 9:
            said.append((st, "sends did not come" in t.error()))
    t.save(f"now.{t.rank}")
    return said


together(rows, "tasks", 1, again)
want = bytes_of("now.0")
n_sent = together(rows, "tasks", 2, again)[1]
said = together(rows, "tasks", 2, again, fails_at=n_sent)[0]
check("the last broadcast of an evaluation fails: both are told, and evaluate again", said == [[(E_IO, True)]] * 2
      and bytes_of("now.0") == want == bytes_of("now.1"), said)


def step(t):
    t.ok(t.load())
    return t.lib.gnnc_trainer_step(t.t), t.error()


said = together(rows, "tasks", 2, step, eval_every=lambda rank: 1 + rank)[0]
check("another schedule of evaluations", said[1][0] == E_STATE and "rank 1 trains with another schedule of evaluations (eval_every" in said[1][1], said)
sys.exit(end())
