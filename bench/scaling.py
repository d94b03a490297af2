#!/usr/bin/env python3
"""The time of a train step against the number of edges: ogbn-arxiv's shape, made smaller and larger.

usage: bench/scaling.py --peers-python P [--models gcn,sage,gat,gin] [--min-edges 1e4] [--max-edges 1e7] [--systems gnnc,csr,dgl]
                        [--dgl-python P] [--epochs 5] [--memory GIB] [--timeout S] [--results STEM] [--work DIR]

Two graphs per decade, written by bench/peers/synth.py (numpy, hence P) at arxiv's 14 edges per node, read by
`gnnc import`; models bench/models/*_arxiv.gnn.  Writes STEM.csv and STEM.svg (default bench/results/scaling),
axes logarithmic, and prints the fitted slope: 1 is time in proportion to edges.  --systems adds peers: eager,
csr, compile (PyG) and dgl.  --work keeps the graphs, 1 GiB at 10^7 edges, for the next time.
"""
import argparse
import csv
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import svg
from systems import GNNC, PEERS, TOP, compile_model, machine_in_words, model_file, peer_command, run_limited

ARRAYS = ("x", "y", "edge_index", "train_idx", "val_idx", "test_idx")
COLUMNS = ("machine", "model", "system", "nodes", "edges", "train_ms", "infer_ms", "rss_mib", "status", "error")
PEER = {"eager": ("pyg_full.py", []), "csr": ("pyg_full.py", ["--sparse"]), "compile": ("pyg_full.py", ["--mode", "compile"]),
        "dgl": ("dgl_full.py", [])}
EDGES_PER_NODE = 13.77  # of ogbn-arxiv, made symmetric


def sizes(least, most):
    """Two per decade, both ends where they are half decades."""
    first, last = math.ceil(2 * math.log10(least) - 1e-9), math.floor(2 * math.log10(most) + 1e-9)
    return [round(10 ** (k / 2)) for k in range(first, last + 1)]


def make_graph(a, edges):
    """(folder of arrays, data directory, nodes, edges): about as many edges as asked for."""
    npy, data = (os.path.join(a.work, f"{edges}-{k}") for k in ("npy", "gnnc"))
    log = os.path.join(a.work, f"{edges}.txt")
    if not os.path.exists(log):
        made = subprocess.run([a.peers_python, os.path.join(PEERS, "synth.py"), npy, "--n", str(round(edges / EDGES_PER_NODE)),
                               "--e", str(edges // 2)], check=True, capture_output=True, text=True).stdout
        packed = os.path.join(a.work, "graph.npz")
        with zipfile.ZipFile(packed, "w") as z:
            for name in ARRAYS:
                z.write(os.path.join(npy, name + ".npy"), name + ".npy")
        subprocess.run([a.gnnc, "import", packed, "-o", data, "--force", "--node", "paper", "--edge", "cites"],
                       check=True, capture_output=True)
        os.remove(packed)
        with open(log, "w", encoding="utf-8") as f:
            f.write(made)
    with open(log, encoding="utf-8") as f:
        nodes, real = map(int, re.search(r"nodes (\d+) edges (\d+)", f.read()).groups())
    return npy, data, nodes, real


def measure(a, system, model, trainer, npy, data):
    if system == "gnnc":
        cmd = [trainer, "bench", "--data", data, "--json", "--device", "cpu", "--no-tuned", "--epochs", str(a.epochs)]
    else:
        script, more = PEER[system]
        cmd = peer_command(script, a.dgl_python if system == "dgl" else a.peers_python, npy, "arxiv", model, a.epochs, more)
    return run_limited(cmd, a.timeout, int(a.memory * 2**30))


def slope(points):
    """Of the straight line nearest to (log x, log y); nan below two sizes."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mx, my = (sum(v) / len(logs) for v in zip(*logs)) if logs else (0, 0)
    spread = sum((x - mx) ** 2 for x, _ in logs)
    return sum((x - mx) * (y - my) for x, y in logs) / spread if spread > 0 else math.nan


def all_rows(a, models, systems, trainers):
    for edges in sizes(a.min_edges, a.max_edges):
        npy, data, nodes, real = make_graph(a, edges)
        for model in models:
            for system in systems:
                run = measure(a, system, model, trainers.get(model), npy, data)
                got = {k: run.result[k] for k in ("train_ms", "infer_ms", "rss_mib") if k in run.result}
                print(f"{model} {system} {real} edges: {run.error or '%.3f ms' % got['train_ms']}", file=sys.stderr, flush=True)
                yield {"machine": a.machine, "model": model, "system": system, "nodes": nodes, "edges": real, **got,
                       "status": run.status, "error": run.error}
        if not a.keep:
            shutil.rmtree(npy)
            shutil.rmtree(data)


def report(a, rows):
    """The fitted slopes and the plot."""
    series = {}
    for r in rows:
        if r["status"] == "ok":
            series.setdefault((r["model"], r["system"]), []).append((r["edges"], r["train_ms"]))
    fitted = {f"{m} {s}": slope(points) for (m, s), points in series.items()}
    for name, value in fitted.items():
        print(f"{name}: " + (f"time ~ edges^{value:.3f}" if math.isfinite(value) else "one size has no slope"))
    lines = {f"{m} {s}, slope {fitted[f'{m} {s}']:.2f}": points for (m, s), points in series.items()}
    with open(a.results + ".svg", "w", encoding="utf-8") as f:
        f.write(svg.loglog(lines, f"Train step against edges, f32, {a.machine}", "edges", "ms per step"))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--models", default="gcn")
    ap.add_argument("--systems", default="gnnc")
    ap.add_argument("--min-edges", type=float, default=1e4)
    ap.add_argument("--max-edges", type=float, default=1e7)
    ap.add_argument("--gnnc", default=GNNC)
    ap.add_argument("--peers-python", default="python3")
    ap.add_argument("--dgl-python", default="python3")
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--timeout", type=float, default=1800)
    ap.add_argument("--memory", type=float, default=0, metavar="GIB")
    ap.add_argument("--results", default=os.path.join(TOP, "bench", "results", "scaling"))
    ap.add_argument("--work")
    ap.add_argument("--machine", default=machine_in_words())
    a = ap.parse_args()
    models, systems, trainers, rows = a.models.split(","), a.systems.split(","), {}, []
    unknown = set(systems) - {"gnnc", *PEER}
    if unknown:
        ap.error(f"no system {', '.join(sorted(unknown))}: gnnc, {', '.join(PEER)}")
    a.keep = a.work is not None
    os.makedirs(os.path.dirname(os.path.abspath(a.results)), exist_ok=True)
    with tempfile.TemporaryDirectory() as tmp:
        a.work = a.work or tmp
        os.makedirs(a.work, exist_ok=True)
        for model in models if "gnnc" in systems else []:
            trainers[model] = os.path.join(tmp, model)
            error = compile_model(a.gnnc, model_file("arxiv", model), trainers[model], ["--target=cpu"])[1]
            if error:
                sys.exit(f"{model}: {error}")
        with open(a.results + ".csv", "w", newline="", encoding="utf-8") as f:
            w = csv.DictWriter(f, COLUMNS)
            w.writeheader()
            for row in all_rows(a, models, systems, trainers):
                w.writerow(row)
                f.flush()
                rows.append(row)
    report(a, rows)
    return any(r["status"] != "ok" for r in rows)


if __name__ == "__main__":
    sys.exit(main())
