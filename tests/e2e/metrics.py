#!/usr/bin/env python3
"""Losses and metrics of the prelude against their definitions, over nodes and over graphs, with missing labels,
ties and rows that belong to no split.  Prints `N passed, N failed`."""
import json
import math
import os
import random
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GNNC = os.path.join(TOP, "tests", "tools", "gnnc")
sys.path.insert(0, os.path.join(TOP, "tests", "oracle"))
from run import Trainer, write_npy  # noqa: E402

MODEL = """
graph G {{ node n {{ s: f32[{wide}]; y: {y}; split }} }}
model M(g: G) -> f32[n, {wide}] {{ param w: f32 = 1; return g.n.s * w }}
train M {{ target n.y  loss {loss}  metric {metrics}  optimizer sgd(lr = 0)  epochs 1 }}
"""


def auc(s, y):
    pos, neg = [a for a, b in zip(s, y) if b], [a for a, b in zip(s, y) if not b]
    if not pos or not neg:
        return None
    return sum((p > n) + 0.5 * (p == n) for p in pos for n in neg) / (len(pos) * len(neg))


def precision(s, y):
    """Average precision: the mean of the precisions at the scores of the positives."""
    pos = [a for a, b in zip(s, y) if b]
    if not pos or len(pos) == len(s):
        return None
    return sum(sum(v >= p for v in pos) / sum(v >= p for v in s) for p in pos) / len(pos)


def mean_of_tasks(f, s, y):
    """Over the columns, of the rows with a label."""
    found = []
    for t in range(len(s[0])):
        known = [i for i in range(len(s)) if not math.isnan(y[i][t])]
        v = f([s[i][t] for i in known], [y[i][t] > 0.5 for i in known])
        found += [] if v is None else [v]
    return sum(found) / len(found) if found else math.nan


def against_rest(f, s, y):
    """Each class against the rest by its probability, as scikit-learn's multi_class="ovr"; classes without rows are left out."""
    odds = [[v - math.log(sum(math.exp(u) for j, u in enumerate(r) if j != k)) for k, v in enumerate(r)] for r in s]
    return mean_of_tasks(f, odds, [[float(k == c) for k in range(len(s[0]))] for c in y]) if s else math.nan


def bce(s, y):
    terms = [max(a, 0) - a * b + math.log1p(math.exp(-abs(a))) for r, q in zip(s, y) for a, b in zip(r, q) if not math.isnan(b)]
    return sum(terms) / max(len(terms), 1)


def error(s, y, f):
    terms = [f(a - b) for r, q in zip(s, y) for a, b in zip(r, q) if not math.isnan(b)]
    return sum(terms) / max(len(terms), 1)


def macro(s, y):
    p = [max(range(len(r)), key=lambda k: r[k]) for r in s]
    f1 = []
    for k in range(len(s[0])):
        tp = sum(a == k and b == k for a, b in zip(p, y))
        named = sum(a == k for a in p) + sum(b == k for b in y)
        f1 += [2 * tp / named] if named else []
    return sum(f1) / len(f1) if f1 else math.nan


def column(folder, name, kind, values, extra):
    flat = [x for row in values for x in row] if isinstance(values[0], list) else values
    shape = [len(values)] + ([len(values[0])] if isinstance(values[0], list) else [])
    write_npy(f"{folder}/{name}.npy", {"split": "|i1", "class": "<i4"}.get(kind, "<f4"), shape, flat)
    return {"kind": kind, "file": f"{name}.npy", **({"shape": shape} if len(shape) > 1 else {}), **extra}


def compiled(folder, model):
    os.makedirs(folder)
    with open(f"{folder}/m.gnn", "w", encoding="utf-8") as f:
        f.write(model)
    subprocess.run([GNNC, f"{folder}/m.gnn", "--emit=lib", "--runtime=shared", "--name=model", "-o", f"{folder}/metrics"], check=True)
    return f"{folder}/libmetrics.so"


def measured(folder, library, columns, n, names):
    """{metric: {split: value}} of the compiled model, from its @eval."""
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/schema.json", "w", encoding="utf-8") as f:
        json.dump({"format": 1, "edges": {}, "nodes": {"n": {"count": n, "columns": {
            k: column(folder, k, *v) for k, v in columns.items()}}}}, f)
    t = Trainer(library)
    t.load(folder)
    t.call("gnnc_trainer_run_phase", b"eval")
    got = {m: {k: t.output(f"{m}.{k}")[0] for k in SPLITS} for m in names}
    t.close()
    return got


SPLITS = {"train": 1, "val": 2, "test": 3}


def compare(label, got, want, split, rows, splits=SPLITS):
    failed = 0
    for name, f in want.items():
        for k, part in splits.items():
            at = [i for i in range(rows) if split[i] == part]
            expected = f(at)
            close = abs(got[name][k] - expected) <= 1e-5 * max(1, abs(expected))
            if not close and not (math.isnan(expected) and math.isnan(got[name][k])):
                print(f"FAILED {label} {name}.{k}: {got[name][k]}, not {expected}")
                failed += 1
    return failed


def recorded(tmp):
    """Failures, comparisons: with scikit-learn's numbers (metrics_sklearn.py), three cases at a time, a split each."""
    with open(os.path.join(TOP, "tests", "e2e", "metrics_sklearn.json"), encoding="utf-8") as f:
        suites = json.load(f)["suites"]
    failed = done = 0
    for i, suite in enumerate(suites):
        wide, kind, cases = suite["wide"], suite["kind"], suite["cases"]
        names = [*cases[0]["want"]]
        library = compiled(f"{tmp}/recorded{i}", MODEL.format(wide=wide, loss=suite["loss"], metrics=", ".join(names),
                                                              y=f"{kind}[{wide}]"))
        for first in range(0, len(cases), 3):
            three = cases[first:first + 3]
            s, y = [row for c in three for row in c["s"]], [row for c in three for row in c["y"]]
            split = [1 + k for k, c in enumerate(three) for _ in c["y"]]
            got = measured(f"{tmp}/recorded{i}/{first}", library, {
                "s": ("float", s, {}), "y": (kind, y, {"categories": wide} if kind == "class" else {}),
                "split": ("split", split, {})}, len(s), names)
            for k, c in enumerate(three):
                want = {n: lambda _, v=v: math.nan if v is None else v for n, v in c["want"].items()}
                failed += compare(f"{kind}[{wide}] {c['name']}", got, want, split, len(s), {[*SPLITS][k]: k + 1})
                done += len(want)
    return failed, done


def main():
    r = random.Random(1)
    n, tasks, failed, done = 60, 3, 0, 0
    split = [r.randrange(4) for _ in range(n)]
    s = [[r.choice([-1.5, -0.5, 0.25, 1.0, 2.0]) for _ in range(tasks)] for _ in range(n)]
    label = [[r.choice([0.0, 1.0, math.nan]) for _ in range(tasks)] for _ in range(n)]
    real = [[r.choice([r.gauss(0, 1), math.nan]) for _ in range(tasks)] for _ in range(n)]
    two = [[r.choice([-1.0, 0.5, 2.0]) for _ in range(2)] for _ in range(n)]
    kind = [r.randrange(2) for _ in range(n)]
    four = [[r.gauss(0, 8) for _ in range(4)] for _ in range(n)]
    which = [0 if split[i] == 3 else r.randrange(3 if split[i] == 2 else 4) for i in range(n)]  # test has one class

    def rows(f, a, b):
        return lambda at: f([a[i] for i in at], [b[i] for i in at])

    suites = [
        ("labels", s, "multilabel", label, {}, "bce_with_logits", {
            "loss": rows(bce, s, label), "roc_auc": rows(lambda a, b: mean_of_tasks(auc, a, b), s, label),
            "average_precision": rows(lambda a, b: mean_of_tasks(precision, a, b), s, label)}),
        ("numbers", s, "multilabel", real, {}, "mse", {
            "loss": rows(lambda a, b: error(a, b, lambda d: d * d), s, real),
            "mae": rows(lambda a, b: error(a, b, abs), s, real),
            "rmse": rows(lambda a, b: math.sqrt(error(a, b, lambda d: d * d)), s, real)}),
        ("classes", two, "class", kind, {"categories": 2}, "cross_entropy", {
            "f1_macro": rows(macro, two, kind),
            "roc_auc": rows(lambda a, b: auc([x[1] - x[0] for x in a], b), two, kind),
            "average_precision": rows(lambda a, b: precision([x[1] - x[0] for x in a], b), two, kind)}),
        ("four classes", four, "class", which, {"categories": 4}, "cross_entropy", {
            "f1_macro": rows(macro, four, which),
            "roc_auc": rows(lambda a, b: against_rest(auc, a, b), four, which),
            "average_precision": rows(lambda a, b: against_rest(precision, a, b), four, which)}),
    ]
    with tempfile.TemporaryDirectory() as tmp:
        for name, pred, how, y, extra, loss, want in suites:
            model = MODEL.format(wide=len(pred[0]), loss=loss, metrics=", ".join(k for k in want if k != "loss"),
                                 y=f"class[{len(pred[0])}]" if how == "class" else f"multilabel[{len(pred[0])}]")
            columns = {"s": ("float", pred, {}), "y": (how, y, extra), "split": ("split", split, {})}
            got = measured(f"{tmp}/{name}", compiled(f"{tmp}/{name}", model), columns, n, want)
            failed += compare(name, got, want, split, n)
            done += 3 * len(want)
        # Of one class there is no such area, which the log says without printf's sign.
        subprocess.run([GNNC, f"{tmp}/four classes/m.gnn", "-o", f"{tmp}/t"], check=True)
        log = subprocess.run([f"{tmp}/t", "train", "--data", f"{tmp}/four classes", "--epochs", "1", "--checkpoint", "none"],
                             check=True, capture_output=True, text=True).stdout
        done += 1
        if "roc_auc nan" not in log or "-nan" in log:
            print(f"FAILED the log of a split of one class:\n{log}")
            failed += 1
        failed_here, done_here = recorded(tmp)
    failed, done = failed + failed_here, done + done_here
    print(f"{done - failed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
