#!/usr/bin/env python3
"""RelBench's recipe on Formula 1 by gnnc and by PyG with PyTorch Frame: time and memory of an epoch and of a prediction, in one run.

usage: bench/temporal.py --data F1 --peers-python PYTHON [--gnnc build/gnnc] [--epochs 2] [--requests 200] [--threads 2]
                         [--rounds 3] [--work DIR] [--out bench/results/temporal.md]

F1 is a folder with f1.sqlite (Ergast's tables).  Asked is a driver's mean place of the next 60 days.  Both sides read one
directory that `gnnc import` wrote, draw at most 128 and 64 rows a relation of what happened before, encode each drawn row by
PyTorch Frame's ResNet of four blocks, add how long ago it happened, and pass it on by two layers of SAGE: bench/models/f1_sage.gnn
and bench/peers/frame_temporal.py.  PYTHON has torch, torch-geometric, pytorch-frame, and pyg-lib by bench/peers/pyg_lib.sh.
An epoch is its train steps, batches of 512 rows and the drawing of their neighbours included.  All rows of validation and test are
predicted in such batches, too: four times, of which the first is not counted and the median is taken.  A request is one row of
test, for which gnnc reads all neighbours; both are asked of gnnc through the Python package that it emits, and of PyG by loaders
that are made before the clock starts.  Each side is a process of its own, in turn; medians of the rounds.  What --work has from an earlier run is not compiled again.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODEL = os.path.join(TOP, "bench", "models", "f1_sage.gnn")
PEER = os.path.join(TOP, "bench", "peers", "frame_temporal.py")
QUERY = "AVG(results.positionOrder, 0, 60, days) FOR EACH drivers.driverId"
TITLES = {"epoch_s": "epoch, s", "held_out_s": "all rows of validation and test, s", "request_ms": "a request, ms", "request_p99_ms": "its 99th percentile, ms", "rss_mib": "memory, MiB",
          "val_mae": "validation MAE", "test_mae": "test MAE"}

PREDICTIONS = """
import json, sys, time
import numpy as np
sys.path.insert(0, sys.argv[1])
import served as m
graph = m.Graph.read(sys.argv[2])
split = np.load(sys.argv[2] + "/node.task.split.npy").reshape(-1)
t, took = m.Trainer(graph, weights=sys.argv[3], threads=int(sys.argv[5])), []
for k in range(4):
    begin = time.perf_counter()
    for part in (2, 3):
        t.predict(np.flatnonzero(split == part))
    took.append(time.perf_counter() - begin)
held_out = sorted(took[1:])[1]
s = m.Model(sys.argv[3]).session(graph)
rows = np.flatnonzero(split == 3)
took = []
for k in range(int(sys.argv[4]) + 10):
    t = time.perf_counter()
    s.predict([int(rows[k * 7919 % len(rows)])])
    took.append(time.perf_counter() - t)
took = sorted(took[10:])
print(json.dumps({"held_out_s": held_out, "request_ms": 1e3 * took[len(took) // 2], "request_p99_ms": 1e3 * took[len(took) * 99 // 100]}))
"""


def run(*command):
    """(what it printed, its largest resident memory in MiB); ends the benchmark where it fails."""
    command = [str(c) for c in command]
    with tempfile.TemporaryFile("w+") as err:
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err, text=True)
        out = p.stdout.read()
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = status
        if status:
            err.seek(0)
            sys.exit(f"{' '.join(command[:3])}..: {err.read()[-800:]}")
    return out, used.ru_maxrss // 1024


def gnnc(a, work):
    out, peak = run(work + "/train", "--data", work + "/f1", "--epochs", a.epochs, "--threads", a.threads, "--log", "json",
                    "--checkpoint", "none", "--out", work + "/weights")
    lines = [json.loads(line) for line in out.splitlines()]
    epochs, kept = lines[:a.epochs], lines[a.epochs]
    asked, _ = run(a.peers_python, "-c", PREDICTIONS, work, work + "/f1", work + "/weights", a.requests, a.threads)
    return {"epoch_s": statistics.median(e["train_ms"] for e in epochs) / 1e3,
            "rss_mib": peak, "val_mae": kept["val"]["mae"],
            "test_mae": kept["test"]["mae"], **json.loads(asked)}


def peer(a, work):
    out, _ = run(a.peers_python, "-W", "ignore", PEER, "--data", work + "/f1", "--epochs", a.epochs, "--threads", a.threads, "--requests", a.requests)
    return json.loads(out.splitlines()[-1])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True)
    p.add_argument("--peers-python", required=True)
    p.add_argument("--gnnc", default=os.path.join(TOP, "build", "gnnc"))
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--requests", type=int, default=200)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--work")
    p.add_argument("--out", default=os.path.join(TOP, "bench", "results", "temporal.md"))
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as work:
        work = a.work or work
        if not os.path.exists(work + "/served"):
            run(a.gnnc, "import", os.path.join(a.data, "f1.sqlite"), "-o", work + "/f1", "--predict", QUERY)
            run(a.gnnc, "--target=cpu", MODEL, "-o", work + "/train")
            run(a.gnnc, "--target=cpu", "--emit=python", MODEL, "-o", work + "/served")
        measured = {"gnnc": [], "PyG + PyTorch Frame": []}
        for _ in range(a.rounds):
            for system, how in zip(measured, (gnnc, peer)):
                measured[system].append(how(a, work))
                print(system, json.dumps(measured[system][-1]), flush=True)
    row = {s: {c: statistics.median(r[c] for r in rounds) for c in TITLES} for s, rounds in measured.items()}
    mine, theirs = row.values()
    with open(a.out, "w", encoding="utf-8") as f:
        f.write(f"# RelBench's recipe on Formula 1, beside PyG and PyTorch Frame\n\nMade by `bench/temporal.py`, which tells what is measured. "
                f"{a.threads} threads; medians of {a.rounds} rounds.\n\n| | {' | '.join(row)} | ratio |\n|---|---|---|---|\n")
        for c, title in TITLES.items():
            ratio = "" if c.endswith("mae") else f"{theirs[c] / mine[c]:.1f}"
            f.write(f"| {title} | {mine[c]:.4g} | {theirs[c]:.4g} | {ratio} |\n")


if __name__ == "__main__":
    main()
