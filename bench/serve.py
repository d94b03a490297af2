#!/usr/bin/env python3
"""One row a request: how long a prediction takes through the C interface, beside PyG doing the same rows.

usage: bench/serve.py [--what gcn,sage,draw] [--nodes 1e6] [--edges 2e7] [--features 128] [--seconds 2] [--rounds 5]
                      [--peers-python P] [--systems gnnc,pyg] [--work DIR] [--results STEM]

  gcn   models/gcn.gnn on Cora: all neighbours, 2 hops
  sage  bench/models/sage_served.gnn (2 hops, hidden 128) on a generated graph of --nodes, --edges and --features, ends
        uniform; all neighbours
  draw  the same model and graph with ten neighbours drawn a hop (--draw); PyG's NeighborLoader [10, 10].  The draws
        differ, so that rows are compared with all neighbours alone

Sampling and features are part of a request.  gnnc: bench/serve.c, a session on one thread, on two, and two processes of
one thread at once.  PyG: NeighborLoader called with one row, and the layers, one thread, no gradients, GCN's weights of
edges computed once.  All are opened first, and then take turns of --seconds each, --rounds of them; medians over the
rounds.  The last line of each table is threads against processes, the median of the rounds' ratios: both are two
workers who ask for the same rows in the same span of time, and what they answer a second is the sum of theirs.  A round
in which another program had the processor of one of gnnc's workers for more than 3 % of the time is made again,
up to three times as many in all; how many were not so is told.  Both systems use weights of one training on a small
graph, and must agree on the first rows.  --work keeps the graph, which is 0.7 GB, for the next run."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from systems import CORA, GNNC, TOP, write_table

PYG = r"""
import json, os, struct, sys, time
import numpy as np, torch
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import GCNConv, SAGEConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric import typing
path, weights, kind, fan = sys.argv[1:]
torch.set_num_threads(1)
schema = json.load(open(os.path.join(path, 'schema.json')))
node, edge = list(schema['nodes'].values())[0], list(schema['edges'].values())[0]
L = lambda f: np.load(os.path.join(path, f))
n, x = node['count'], node['columns']['x']
if x['kind'] == 'csr':
    dense = np.zeros(x['shape'], np.float32)
    dense[np.repeat(np.arange(n), np.diff(L(x['ptr']))), L(x['col'])] = L(x['val'])
else:
    dense = L(x['file'])
raw = open(weights, 'rb').read()
size = struct.unpack('<Q', raw[:8])[0]
head = {k: v for k, v in json.loads(raw[8:8 + size]).items() if k != '__metadata__'}
state = {k: torch.from_numpy(np.frombuffer(raw[8 + size + v['data_offsets'][0]:8 + size + v['data_offsets'][1]],
                                           np.float32).copy().reshape(v['shape'])) for k, v in head.items()}
hidden, C = state['conv1.bias' if kind == 'gcn' else 'conv1.lin_l.bias'].numel(), state['conv2.bias' if kind == 'gcn' else 'conv2.lin_l.bias'].numel()
conv = (lambda i, o: GCNConv(i, o, normalize=False)) if kind == 'gcn' else SAGEConv
class Net(torch.nn.Module):
    def __init__(s):
        super().__init__()
        s.conv1, s.conv2 = conv(dense.shape[1], hidden), conv(hidden, C)
    def forward(s, b):
        w = (b.edge_attr,) if kind == 'gcn' else ()
        return s.conv2(s.conv1(b.x, b.edge_index, *w).relu(), b.edge_index, *w)
net = Net().eval()
net.load_state_dict(state)
data = Data(x=torch.from_numpy(dense), edge_index=torch.from_numpy(L(edge['file'])).long())
if kind == 'gcn':  # degrees are the whole graph's
    data.edge_index, data.edge_attr = gcn_norm(data.edge_index, None, n)
loader = NeighborLoader(data, num_neighbors=[int(f) for f in fan.split(',')], batch_size=1)
def ask(k):
    batch = loader([k * 2654435761 % n])
    return net(batch)[0], batch.num_nodes
with torch.inference_mode():
    print(json.dumps(dict(system='pyg-lib' if typing.WITH_PYG_LIB else 'torch-sparse', rows=[ask(k)[0].tolist() for k in range(8)])), flush=True)
    k = 0
    for line in sys.stdin:
        begin, seconds = map(float, line.split())
        took, nodes = [], 0
        while (t := time.clock_gettime(time.CLOCK_MONOTONIC)) < begin: ask(k); k += 1
        since = t
        while t < begin + seconds:
            nodes += ask(k)[1]
            k += 1
            after = time.clock_gettime(time.CLOCK_MONOTONIC)
            took.append(after - t)
            t = after
        count = len(took)
        took.sort()
        print(json.dumps(dict(requests=count, nodes_per_request=round(nodes / count, 1), median_us=took[count // 2] * 1e6,
                              p99_us=took[count * 99 // 100] * 1e6, requests_per_s=count / (t - since))), flush=True)
"""
COLUMNS = ["what", "system", "median_us", "p99_us", "requests_per_s"]
SAGE = os.path.join(TOP, "bench", "models", "sage_served.gnn")
MODELS = {"gcn": os.path.join(TOP, "models", "gcn.gnn"), "sage": SAGE, "draw": SAGE}
FAN = {"gcn": "-1,-1", "sage": "-1,-1", "draw": "10,10"}  # of PyG
CLASSES = 40  # of generated data
SMALL = 2000  # nodes of the graph that weights for them are trained on
KEPT_OFF = 0.03  # of a round, at most
LEAD = 0.3  # seconds from when a measurement is asked for to its begin, in which all work already


def run(*cmd, cwd=None):
    r = subprocess.run(list(map(str, cmd)), capture_output=True, text=True, cwd=cwd)
    if r.returncode:
        sys.exit(f"{' '.join(map(str, cmd[:3]))}..: {r.stderr[-500:]}")


def build(a, what, work):
    """(driver, data, weights) of one measurement."""
    at = os.path.join(work, what)
    os.makedirs(at, exist_ok=True)
    run(a.gnnc, MODELS[what], "--target=cpu", "-o", at + "/train")
    run(a.gnnc, MODELS[what], "--target=cpu", "--emit=infer", "--name=served", *["--draw"] * (what == "draw"), "-o", at + "/served")
    run("cc", "-O2", "-D_GNU_SOURCE", "-I" + at, "-I" + os.path.join(TOP, "runtime", "include"), os.path.join(TOP, "bench", "serve.c"),
        at + "/libserved.so", "-Wl,-rpath," + at, "-pthread", "-o", at + "/serve")
    data = small = CORA
    if what != "gcn":
        data, small = work + "/graph-%d-%d-%d" % (a.nodes, a.edges, a.features), work + "/small"
        for path, nodes, edges in ((small, SMALL, 5 * SMALL), (data, a.nodes, a.edges)):
            if path == small or not os.path.exists(path + "/schema.json"):  # which is written last
                run(at + "/serve", "generate", path, nodes, edges, a.features, CLASSES)
    run(at + "/train", "--data", small, "--epochs", "3", "--log=none", "--checkpoint", "none", "--out", at + "/weights")
    return at + "/serve", data, at + "/weights"


class Asked:
    """Processes that are open, and measured together: each reads BEGIN SECONDS, and answers by a line of JSON."""

    def __init__(self, *commands, env=None):
        self.all = [subprocess.Popen(list(map(str, c)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
                    for c in commands]
        self.rows = [self.read(p) for p in self.all][0]["rows"]

    @staticmethod
    def read(p):
        line = p.stdout.readline()
        if not line:
            raise RuntimeError(p.communicate()[1][-300:])
        return json.loads(line)

    def measure(self, seconds):
        begin = time.clock_gettime(time.CLOCK_MONOTONIC) + LEAD
        for p in self.all:
            p.stdin.write(f"{begin:.9f} {seconds}\n")
            p.stdin.flush()
        got = [self.read(p) for p in self.all]
        return {"median_us": statistics.median(g["median_us"] for g in got), "p99_us": max(g["p99_us"] for g in got),
                "requests_per_s": sum(g["requests_per_s"] for g in got), "kept_off": max(g.get("kept_off", 0) for g in got)}

    def close(self):
        for p in self.all:
            p.communicate()


def ways(a, what, work):
    """What takes turns, by name."""
    driver, data, weights = build(a, what, work)
    worker = lambda threads, first, workers: (driver, "requests", data, weights, threads, first, workers)
    found = {"gnnc": Asked(worker(1, 0, 1)), "gnnc, 2 threads": Asked(worker(2, 0, 2)),
             "gnnc, 2 processes": Asked(worker(1, 0, 2), worker(1, 1, 2))}
    if "pyg" in a.systems.split(","):
        try:
            found["pyg"] = Asked((a.peers_python, "-c", PYG, data, weights, what, FAN[what]), env=dict(os.environ, OMP_NUM_THREADS="1"))
        except (OSError, RuntimeError, ValueError) as e:
            print(f"PyG: {e}", file=sys.stderr)
    return found


def agree(got, want):
    """To 1e-4 of a row's largest value: sums are made in another order."""
    return all(abs(x - y) <= 1e-4 * max(map(abs, w)) for g, w in zip(got, want) for x, y in zip(g, w))


def rounds(a, asked):
    """a.rounds of them, undisturbed where there were enough, and how many these are."""
    good, bad = [], []
    while len(good) < a.rounds and len(good) + len(bad) < 3 * a.rounds:
        got = {name: w.measure(a.seconds) for name, w in asked.items()}
        (good if max(g["kept_off"] for g in got.values()) <= KEPT_OFF else bad).append(got)
    bad.sort(key=lambda got: max(g["kept_off"] for g in got.values()))
    return good + bad[:a.rounds - len(good)], len(good)


def measure(a, what, work):
    """Medians of each way, the rounds' ratios, and how many rounds were undisturbed."""
    asked = ways(a, what, work)
    try:
        if "pyg" in asked and what != "draw" and not agree(asked["gnnc"].rows, asked["pyg"].rows):
            sys.exit(f"{what}: gnnc and PyG do not predict the same")
        found, good = rounds(a, asked)
    finally:
        for w in asked.values():
            w.close()
    ratios = [r["gnnc, 2 threads"]["requests_per_s"] / r["gnnc, 2 processes"]["requests_per_s"] for r in found]
    return {w: {c: statistics.median(r[w][c] for r in found) for c in COLUMNS[2:]} for w in asked}, sorted(ratios), good


def write(a, rows, told):
    write_table(a.results, COLUMNS, rows,
                f"`bench/serve.py`, a row a request; medians of {a.rounds} rounds of {a.seconds:g} s; sage and draw: {a.nodes} nodes, {a.edges} edges, "
                f"{a.features} features; {a.note}; two threads answer {', '.join(told)} of what two processes do")


def main():
    number = lambda s: int(float(s))
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--what", default="gcn,sage,draw")
    ap.add_argument("--nodes", type=number, default=10**6)
    ap.add_argument("--edges", type=number, default=2 * 10**7)
    ap.add_argument("--features", type=number, default=128)
    ap.add_argument("--seconds", type=float, default=2, help="of a turn")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--systems", default="gnnc,pyg")
    ap.add_argument("--peers-python", default="python3")
    ap.add_argument("--gnnc", default=GNNC)
    ap.add_argument("--work", default="", help="a directory that is kept")
    ap.add_argument("--results", default="", help="STEM of the .md and .csv to write")
    ap.add_argument("--note", default=f"{os.cpu_count()} cores", help="of the machine, for the .md")
    a = ap.parse_args()
    rows, told = [], []
    with tempfile.TemporaryDirectory() as tmp:
        for what in a.what.split(","):
            got, ratios, good = measure(a, what, os.path.abspath(a.work or tmp))
            for system, g in got.items():
                rows.append({"what": what, "system": system, **{c: round(g[c], 2) for c in COLUMNS[2:]}})
                print(f"{what:5} {system:18} median {g['median_us']:9.1f} us   p99 {g['p99_us']:9.1f} us   {g['requests_per_s']:9.0f} requests/s",
                      flush=True)
            ratio = statistics.median(ratios)
            told.append(f"{ratio:.2f} ({what}, {good} of {a.rounds} rounds undisturbed)")
            print(f"{what:5} two threads answer {ratio:.2f} of what two processes do; rounds {ratios[0]:.2f} to {ratios[-1]:.2f}, "
                  f"{good} of {a.rounds} undisturbed")
    if a.results:
        write(a, rows, told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
