#!/usr/bin/env python3
"""Test accuracy of the shipped models, mean of several seeds, beside what the papers and PyG report.

usage: bench/accuracy.py [--gnnc build/gnnc] [--data DIR] [--seeds 10] [--only cora/gcn]

Protocol: public Planetoid split, rows of x summing to 1, 200 epochs, the parameters of the epoch with the
best validation accuracy (the first on ties).  DIR holds one data directory per data set as `gnnc import`
writes it (default models/data; a set that is not there is listed as skipped).  Exit 1 when a bar is missed.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

# (data set, model, least mean test accuracy in %)
BARS = [
    ("cora", "gcn", 81.5),
    ("cora", "gat", 82.3),
    ("cora", "sage", 80.0),
    ("cora", "gin", 75.0),
    ("citeseer", "gcn", 69.8),
    ("pubmed", "gcn", 78.5),
]


def train_once(exe, data, seed):
    """One run; returns the test accuracy in % of the kept epoch."""
    out = subprocess.run([exe, "--data", data, "--seed", str(seed), "--log=json"],
                         check=True, capture_output=True, text=True).stdout
    last = json.loads(out.strip().splitlines()[-1])
    return 100.0 * last["test"]["accuracy"]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    top = os.path.dirname(here)
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--gnnc", default=os.path.join(top, "build", "gnnc"))
    ap.add_argument("--data", action="append", default=[])
    ap.add_argument("--seeds", type=int, default=10)
    ap.add_argument("--only", default="")
    a = ap.parse_args()
    folders = a.data + [os.path.join(top, "models", "data")]
    missed = 0
    print(f"{'data':10} {'model':6} {'mean':>6} {'std':>5} {'min':>6} {'max':>6} {'bar':>6}  {'s/run':>6}")
    with tempfile.TemporaryDirectory() as tmp:
        for data, model, bar in BARS:
            if a.only and a.only != f"{data}/{model}":
                continue
            folder = next((os.path.join(f, data) for f in folders if os.path.isdir(os.path.join(f, data))), None)
            if folder is None:
                print(f"{data:10} {model:6} skipped: no data directory '{data}' (see docs/data.md)")
                continue
            exe = os.path.join(tmp, model)
            if not os.path.exists(exe):
                subprocess.run([a.gnnc, os.path.join(top, "models", model + ".gnn"), "--target=cpu", "-o", exe], check=True)
            start = time.perf_counter()
            acc = [train_once(exe, folder, s) for s in range(a.seeds)]
            per_run = (time.perf_counter() - start) / a.seeds
            mean = statistics.mean(acc)
            std = statistics.pstdev(acc)
            ok = mean >= bar
            missed += not ok
            print(f"{data:10} {model:6} {mean:6.2f} {std:5.2f} {min(acc):6.2f} {max(acc):6.2f} {bar:6.1f}  "
                  f"{per_run:6.2f}  {'ok' if ok else 'MISSED'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
