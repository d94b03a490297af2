#!/usr/bin/env python3
"""Neighbour sampling and whole epochs side by side: gnnc against PyG's NeighborLoader, in one run.

usage: bench/sampler.py --data DIR[,DIR] [--epochs-npy DIR] [--fanouts 10,5:15,10,5] [--batch 1024] [--threads 1,2]
                        [--rounds 3] [--peers-python P] [--pythonpath DIR] [--systems gnnc,pyg] [--results STEM]

  --data        data directories of `gnnc import`, of one node type and one edge type, which both systems read.  Features
                and labels are gathered where there are any; seeds are the training nodes, or all
  --epochs-npy  the first of them as bench/peers/unpack.py or synth.py writes it: whole epochs of training, too, by
                bench/models/sage_batches_N.gnn and bench/peers/pyg_mini.py (SAGE, hidden 128; evaluation not counted)
PyG samples in the main process (workers are processes and were slower) with as many threads as gnnc; one warm-up
epoch, then one timed.  `make build/bench/sampler` builds the driver.  Printed, and written to STEM.md and STEM.csv:
medians over the rounds, and the ratio at equal threads."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from systems import TOP, write_table

PYG = r"""
import json, os, sys, time
import numpy as np, torch
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric import typing
path, fanouts, bs, threads, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
torch.set_num_threads(threads)
schema = json.load(open(os.path.join(path, 'schema.json')))
node, edge = list(schema['nodes'].values())[0], list(schema['edges'].values())[0]
L = lambda t, n: torch.from_numpy(np.load(os.path.join(path, t['columns'][n]['file'])))
ends = torch.from_numpy(np.load(os.path.join(path, edge['file']))).long()
data = Data(edge_index=ends, num_nodes=node['count'])
if 'x' in node['columns']: data.x, data.y = L(node, 'x').float(), L(node, 'y').long()
seeds = torch.arange(node['count'])
if 'split' in node['columns']: seeds = (L(node, 'split').view(-1, node['count'])[0] == 1).nonzero().view(-1)
loader = NeighborLoader(data, num_neighbors=[int(f) for f in fanouts.split(',')], batch_size=bs,
                        input_nodes=seeds, shuffle=True, num_workers=0)
took = []
for e in range(epochs + 1):
    t, edges, nodes = time.perf_counter(), 0, 0
    for b in loader:
        edges += b.num_edges
        nodes += b.num_nodes
    took.append(time.perf_counter() - t)
mid = sorted(took[1:])[epochs // 2]
print(json.dumps(dict(system='pyg-lib' if typing.WITH_PYG_LIB else 'torch-sparse', batches=len(loader),
                      sampled_edges=edges, edges_per_s=round(edges / mid))))
"""
COLUMNS = ["what", "data", "fanouts", "threads", "system", "edges_per_batch", "value", "unit", "ratio"]


def measure(cmd, env, timeout):
    """The last line that a process prints, a JSON object; None and a message where there is none."""
    try:
        r = subprocess.run(cmd, capture_output=True, text=True, timeout=timeout, check=True, env=env)
        return json.loads(r.stdout.strip().splitlines()[-1])
    except (subprocess.SubprocessError, OSError, ValueError, IndexError) as e:
        print(f"{cmd[0]}: {str(getattr(e, 'stderr', None) or e)[-300:]}", file=sys.stderr)
        return None


def side_by_side(a, cmds, threads):
    """What each system measured, in turns: {system: [result]}."""
    env = dict(os.environ, OMP_NUM_THREADS=threads)
    if a.pythonpath:
        env["PYTHONPATH"] = a.pythonpath
    got = {s: [] for s in cmds if s in a.systems.split(",")}
    for _ in range(a.rounds):
        for s, found in got.items():
            result = measure(cmds[s], env, a.timeout)
            if result:
                found.append(result)
    return got


def row(what, data, fanouts, threads, found, value, unit, ratio):
    edges = found[0]["sampled_edges"] // found[0]["batches"] if "sampled_edges" in found[0] else ""
    return dict(zip(COLUMNS, [what, os.path.basename(data), fanouts, threads, found[0]["system"], edges,
                              f"{value:.2f}", unit, f"{ratio:.1f}x" if ratio else ""]))


def sampling(a, data, fanouts, threads):
    cmds = {"gnnc": [a.driver, data, fanouts, str(a.batch), threads, "3"],
            "pyg": [a.peers_python, "-c", PYG, data, fanouts, str(a.batch), threads, "1"]}
    got = side_by_side(a, cmds, threads)
    speed = {s: statistics.median(g["edges_per_s"] for g in v) / 1e6 for s, v in got.items() if v}
    return [row("sampling", data, fanouts, threads, got[s], v, "M edges/s", v / speed["pyg"] if "pyg" in speed else 0)
            for s, v in speed.items()]


def epochs(a, tmp, data, fanouts, threads):
    """SAGE of as many layers as there are hops."""
    hops = len(fanouts.split(","))
    source, exe = os.path.join(TOP, "bench", "models", f"sage_batches_{hops}.gnn"), os.path.join(tmp, f"sage{hops}")
    if f"fanout [{fanouts.replace(',', ', ')}]" not in open(source).read():
        sys.exit(f"{source} has other fan-outs than {fanouts}")
    subprocess.run([a.gnnc, source, "--target=cpu", "-o", exe], check=True)
    sampled = measure([a.driver, data, fanouts, str(a.batch), threads, "1"], None, a.timeout)
    if not sampled:
        return []
    batches = sampled["batches"]
    cmds = {"gnnc": [exe, "bench", "--data", data, "--batch", str(a.batch), "--threads", threads, "--no-tuned", "--json",
                     "--epochs", str(batches)],
            "pyg": [a.peers_python, os.path.join(TOP, "bench", "peers", "pyg_mini.py"), "--data", a.epochs_npy,
                    "--fanout", fanouts, "--bs", str(a.batch), "--epochs", "1"]}
    got = side_by_side(a, cmds, threads)
    took = {s: statistics.median(g["epoch_s"] if s == "pyg" else g["train_mean_ms"] * batches / 1e3 for g in v)
            for s, v in got.items() if v}
    return [row("epoch", data, fanouts, threads, got[s], v, "s", took["pyg"] / v if "pyg" in took else 0)
            for s, v in took.items()]


def write(a, rows):
    write_table(a.results, COLUMNS, rows, f"`bench/sampler.py`, batches of {a.batch}; medians of {a.rounds} rounds; {a.note}")


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--data", required=True)
    ap.add_argument("--epochs-npy", default="")
    ap.add_argument("--fanouts", default="10,5:15,10,5")
    ap.add_argument("--batch", type=int, default=1024)
    ap.add_argument("--threads", default="1,2")
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--systems", default="gnnc,pyg")
    ap.add_argument("--timeout", type=float, default=1800, help="seconds, of one process")
    ap.add_argument("--peers-python", default="python3")
    ap.add_argument("--pythonpath", default="", help="where pyg-lib or torch-sparse is, if not in the environment")
    ap.add_argument("--driver", default=os.path.join(TOP, "build", "bench", "sampler"))
    ap.add_argument("--gnnc", default=os.path.join(TOP, "build", "gnnc"))
    ap.add_argument("--results", default="", help="STEM of the .md and .csv to write")
    ap.add_argument("--note", default=f"{os.cpu_count()} cores", help="of the machine, for the .md")
    a = ap.parse_args()
    rows, wanted = [], 0
    print(f"{'what':9} {'data':14} {'fan-out':9} {'threads':>7} {'system':>13} {'edges/batch':>11} {'value':>8}")
    with tempfile.TemporaryDirectory() as tmp:
        for i, data in enumerate(a.data.rstrip("/").split(",")):
            for fanouts in a.fanouts.split(":"):
                for threads in a.threads.split(","):
                    some = sampling(a, data, fanouts, threads)
                    if a.epochs_npy and i == 0:
                        some += epochs(a, tmp, data, fanouts, threads)
                    wanted += len(a.systems.split(",")) * (2 if a.epochs_npy and i == 0 else 1)
                    for r in some:
                        print(f"{r['what']:9} {r['data']:14} {r['fanouts']:9} {threads:>7} {r['system']:>13} "
                              f"{r['edges_per_batch']:>11} {r['value']:>8} {r['unit']} {r['ratio']}", flush=True)
                    rows += some
    if a.results:
        write(a, rows)
    return len(rows) < wanted


if __name__ == "__main__":
    sys.exit(main())
