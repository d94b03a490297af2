#!/usr/bin/env python3
"""Test scores of the shipped models, mean of several seeds, beside what the papers and PyG report.

usage: bench/accuracy.py [--gnnc build/gnnc] [--data DIR] [--seeds 10] [--only cora/gcn] [--precision f32,bf16,f16] [--long]

Protocol: the split that comes with the data (public, scaffold or published masks), the epochs and the kept epoch
that the model's recipe says; where the recipe chooses on validation, the first best epoch.  Every task prints
what is its own.  DIR holds one data directory per data set as `gnnc import` writes it (default models/data; a
set that is not there is listed as skipped).  Tasks of more than two minutes on two cores run with --long only;
the table says the minutes.  Of several precisions each is a row, and the last line of a task has the differences to
the first one: mean of the runs paired by seed and split, and its standard error.  Exit 1 when a bar is missed.
"""
import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


@dataclasses.dataclass
class Task:
    data: str
    model: str
    bar: float
    metric: str = "accuracy"
    less: bool = False          # the metric is an error: at most the bar
    splits: tuple = ()          # --split k, each with every seed; empty: the only one
    seeds: int = 10             # at most
    minutes: float = 0          # on two cores; above 2: with --long only
    note: str = "kept on validation"
    folds: bool = False         # ten folds, the protocol of Xu et al. 2019
    folder: str = "models"
    within: float = 0           # the bar: so much below the same model in full batches, same seeds
    full_epochs: int = 0        # of these, which take one step each; 0: as many
    epochs: int = 0             # fewer than the recipe says; 0: as many


TASKS = [
    Task("cora", "gcn", 81.5),
    Task("cora", "gat", 82.3),
    Task("cora", "sage", 80.0),
    Task("cora", "gin", 75.0),
    Task("citeseer", "gcn", 69.8),
    Task("pubmed", "gcn", 78.5),
    Task("aifb", "rgcn", 94.0, minutes=2, note="36 test entities, last epoch"),
    Task("dblp", "dblp", 92.0, "f1_macro", splits=(0,), minutes=2, note="20 labels a class, kept on validation"),
    Task("esol", "molecule", 1.20, "rmse", less=True, minutes=3, note="scaffold split, kept on validation"),
    Task("tox21", "toxicity", 73.0, "roc_auc", seeds=3, minutes=5, note="scaffold split, kept on validation"),
    Task("tolokers", "gat_blocks", 82.0, "roc_auc", splits=(0, 1, 2), seeds=1, minutes=5,
         note="first three masks, kept on validation"),
    Task("facebook-ego", "link", 97.0, "roc_auc", seeds=3, minutes=1,
         note="8,823 test edges, as many fixed non-edges, kept on validation"),
    Task("fb15k-237", "distmult", 32.0, "mrr", seeds=3, minutes=27, note="filtered, all entities, both directions"),
    Task("fb15k-237", "complex", 33.0, "mrr", seeds=3, minutes=22, note="filtered, all entities, both directions"),
    Task("gowalla", "lightgcn", 16.5, "recall", seeds=3, minutes=41, note="recall@20, last epoch"),
    Task("collegemsg", "events", 94.0, "average_precision", seeds=3, minutes=4,
         note="all test events at once, a stored uniform negative each, kept on validation"),
    Task("collegemsg-historical", "events", 0.0, "average_precision", seeds=3, minutes=4,
         note="all test events at once, a destination that the source wrote to before as negative; no bar"),
    Task("proteins", "gin_graphs", 74.0, seeds=1, minutes=2, folds=True,
         note="one epoch for all folds by the mean test curve (Xu et al. 2019)"),
    Task("hiv", "toxicity", 73.0, "roc_auc", seeds=3, minutes=20, note="scaffold split, kept on validation"),
    Task("coauthor-physics", "sage_sampled", 0, seeds=3, within=0.5, minutes=1,
         note="neighbours sampled; 20 labels a class, kept on validation"),
    Task("arxiv", "sage_batches_2", 0, seeds=3, folder="bench/models", within=0.5, full_epochs=100, minutes=8,
         note="synth.py's graph, neighbours sampled, kept on validation"),
    Task("arxiv", "gcn_arxiv", 0, folder="bench/models", epochs=30, minutes=7, note="synth.py's graph, 30 epochs"),
]


def run(exe, data, seed, split=None, epochs=0):
    """The lines of one run's log."""
    which = [] if split is None else ["--split", str(split)]
    which += ["--epochs", str(epochs)] if epochs else []
    out = subprocess.run([exe, "--data", data, "--seed", str(seed), "--log=json", *which],
                         check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.strip().splitlines()]


def scores(task, exe, data, seeds, epochs=0):
    """One score per seed and split, in % unless it is an error."""
    scale = 1.0 if task.less else 100.0
    return [scale * run(exe, data, seed, split, epochs)[-1]["test"][task.metric]
            for seed in range(seeds) for split in task.splits or (None,)]


def build(a, source, exe, precision, data):
    if not os.path.exists(exe):
        measured = [f"--data={data}"] if precision == "auto" else []
        always = ["--precision.small-mib=0"]  # also of data that would stay in f32
        subprocess.run([a.gnnc, source, "--target=cpu", f"--precision={precision}", *always, *measured, "-o", exe], check=True)


def full_batch_mean(a, task, source, exe, precision, data, seeds):
    """The mean of the same model without its `sample` line."""
    text = open(source).read()
    whole = "".join(line for line in text.splitlines(True) if not line.lstrip().startswith("sample {"))
    assert whole != text, f"{source}: no line that begins with 'sample {{'"
    with open(exe + ".gnn", "w") as f:
        f.write(whole)
    build(a, exe + ".gnn", exe, precision, data)
    return statistics.mean(scores(task, exe, data, seeds, task.full_epochs))


def fold_scores(task, exe, data, seeds):
    """Xu et al.: the test accuracies of the ten folds in the epoch whose mean over the folds is best, and beside
    them the nested choice: each fold in the epoch that is best for the mean of the other nine."""
    found, nested = [], []
    for seed in range(seeds):
        folds = [[100.0 * line["test"][task.metric] for line in run(exe, data, seed, k) if "epoch" in line]
                 for k in range(10)]
        epochs = range(len(folds[0]))

        def best(curves):
            return max(epochs, key=lambda i: sum(c[i] for c in curves))

        at = best(folds)
        found += [c[at] for c in folds]
        nested += [c[best(folds[:k] + folds[k + 1:])] for k, c in enumerate(folds)]
    return found, statistics.mean(nested)


def paired(found):
    """How far the other precisions are from the first, run by run: mean and standard error."""
    (base, first), *others = found.items()
    for precision, got in others:
        d = [y - x for x, y in zip(first, got)]
        error = statistics.stdev(d) / len(d) ** 0.5 if len(d) > 1 else float("nan")
        print(f"{'':16} {precision} - {base}: {statistics.mean(d):+.3f} +- {error:.3f} ({len(d)} pairs)", flush=True)


def baselines(folder):
    """What needs no model, where the data say it (bench/negatives.py)."""
    path = os.path.join(folder, "baselines.json")
    if not os.path.exists(path):
        return ""
    return "".join(f"; {name}: {score:.2f}" for name, score in json.load(open(path)).items())


def show(task, precision, got, seconds, nested, full, more):
    mean = statistics.mean(got)
    if full is not None:
        task = dataclasses.replace(task, bar=full - task.within, note=f"{task.note}; full batches: {full:.2f}")
    ok = mean <= task.bar if task.less else mean >= task.bar
    beside = more if nested is None else f"{more}; epoch chosen on the other folds: {nested:.2f}"
    print(f"{task.data:16} {task.model:14} {precision:5} {task.metric:9} {mean:7.3f} {statistics.pstdev(got):6.3f} {min(got):7.3f} "
          f"{max(got):7.3f} {task.bar:6.2f}  {len(got):3} {seconds:6.2f}  {'ok' if ok else 'MISSED'}  "
          f"({task.note}{beside})", flush=True)
    return ok


def one_row(a, task, precision, tmp, top, folder):
    """The scores in one precision, and whether the bar is met."""
    exe = os.path.join(tmp, f"{task.data}.{task.model}.{precision}")
    source = os.path.join(top, task.folder, task.model + ".gnn")
    build(a, source, exe, precision, folder)
    seeds, nested, full = min(a.seeds, task.seeds), None, None
    if task.within:
        full = full_batch_mean(a, task, source, exe + "_full", precision, folder, seeds)
    start = time.perf_counter()
    if task.folds:
        got, nested = fold_scores(task, exe, folder, seeds)
    else:
        got = scores(task, exe, folder, seeds, task.epochs)
    return got, show(task, precision, got, (time.perf_counter() - start) / len(got), nested, full, baselines(folder))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    top = os.path.dirname(here)
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--gnnc", default=os.path.join(top, "build", "gnnc"))
    ap.add_argument("--data", action="append", default=[])
    ap.add_argument("--seeds", type=int, default=10)
    ap.add_argument("--only", default="")
    ap.add_argument("--precision", default="f32", help="of large values in memory: some of f32, bf16, f16, auto")
    ap.add_argument("--long", action="store_true", help="also what takes more than two minutes")
    a = ap.parse_args()
    folders = a.data + [os.path.join(top, "models", "data")]
    missed = 0
    print(f"{'data':16} {'model':14} {'type':5} {'metric':9} {'mean':>7} {'std':>6} {'min':>7} {'max':>7} {'bar':>6} {'runs':>4} "
          f"{'s/run':>6}")
    with tempfile.TemporaryDirectory() as tmp:
        for task in TASKS:
            name = f"{task.data}/{task.model}"
            if a.only and a.only != name:
                continue
            folder = next((os.path.join(f, task.data) for f in folders if os.path.isdir(os.path.join(f, task.data))), None)
            if folder is None:
                print(f"{task.data:16} {task.model:14} skipped: no data directory '{task.data}' (see docs/data.md)")
                continue
            if task.minutes > 2 and not a.long and not a.only:
                print(f"{task.data:16} {task.model:14} skipped: {task.minutes:g} minutes, with --long")
                continue
            found = {}
            for precision in a.precision.split(","):
                found[precision], ok = one_row(a, task, precision, tmp, top, folder)
                missed += not ok
            paired(found)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
