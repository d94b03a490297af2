#!/usr/bin/env python3
"""One row a request: how long a prediction takes through the C interface, beside PyG doing the same rows.

usage: bench/serve.py [--what gcn,sage,draw] [--nodes 1e6] [--edges 2e7] [--features 128] [--requests 20000] [--rounds 3]
                      [--peers-python P] [--systems gnnc,pyg] [--work DIR] [--results STEM]

  gcn   models/gcn.gnn on Cora: all neighbours, 2 hops
  sage  bench/models/sage_served.gnn (2 hops, hidden 128) on a generated graph of --nodes, --edges and --features, ends
        uniform; all neighbours
  draw  the same model and graph with ten neighbours drawn a hop (--draw); PyG's NeighborLoader [10, 10].  The draws
        differ, so that rows are compared with all neighbours alone

Sampling and features are part of a request.  gnnc: bench/serve.c, a session on one thread, on two, and two processes of
one thread at once; the last line of each table is threads against processes.  PyG: NeighborLoader called with one
row, and the layers, one thread, no gradients, GCN's weights of edges computed once.  Systems take turns; medians over the
rounds.  Both use weights of one training on a small graph, and must agree on the first rows.  --work keeps the graph,
which is 0.7 GB, for the next run."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from systems import CORA, GNNC, TOP, write_table

PYG = r"""
import json, os, struct, sys, time
import numpy as np, torch
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import GCNConv, SAGEConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric import typing
path, weights, kind, requests, fan = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]
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
took, rows, nodes = [], [], 0
with torch.inference_mode():
    for k in range(50): ask(requests + k)
    since = time.perf_counter()
    for k in range(requests):
        t = time.perf_counter()
        out, m = ask(k)
        took.append(time.perf_counter() - t)
        nodes += m
        if k < 8: rows.append(out.tolist())
    seconds = time.perf_counter() - since
took.sort()
print(json.dumps(dict(system='pyg-lib' if typing.WITH_PYG_LIB else 'torch-sparse', threads=1, requests=requests,
                      nodes_per_request=round(nodes / requests, 1), median_us=took[requests // 2] * 1e6,
                      p99_us=took[requests * 99 // 100] * 1e6, requests_per_s=requests / seconds, rows=rows)))
"""
COLUMNS = ["what", "system", "median_us", "p99_us", "requests_per_s"]
SAGE = os.path.join(TOP, "bench", "models", "sage_served.gnn")
MODELS = {"gcn": os.path.join(TOP, "models", "gcn.gnn"), "sage": SAGE, "draw": SAGE}
FAN = {"gcn": "-1,-1", "sage": "-1,-1", "draw": "10,10"}  # of PyG
CLASSES = 40  # of generated data
SMALL = 2000  # nodes of the graph that weights for them are trained on


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


def drivers(a, driver, data, weights, threads, processes):
    """What so many processes at once measured; they begin together."""
    cmd = [driver, "requests", data, weights, str(a.requests), str(threads)]
    all_ = [subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    if any(p.stdout.readline() != "ready\n" for p in all_):
        sys.exit("bench/serve.c has failed")
    for p in all_:
        p.stdin.write("\n")
        p.stdin.flush()
    got = [json.loads(p.communicate()[0]) for p in all_]
    return {**got[0], "median_us": statistics.median(g["median_us"] for g in got), "p99_us": max(g["p99_us"] for g in got),
            "requests_per_s": sum(g["requests_per_s"] for g in got)}


def pyg(a, what, data, weights, fan):
    try:
        r = subprocess.run([a.peers_python, "-c", PYG, data, weights, what, str(a.peer_requests), fan], capture_output=True, text=True,
                           timeout=a.timeout, check=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
        return json.loads(r.stdout.strip().splitlines()[-1])
    except (subprocess.SubprocessError, OSError, ValueError, IndexError) as e:
        print(f"PyG: {str(getattr(e, 'stderr', None) or e)[-300:]}", file=sys.stderr)
        return None


def agree(got, want):
    """To 1e-4 of a row's largest value: sums are made in another order."""
    return all(abs(x - y) <= 1e-4 * max(map(abs, w)) for g, w in zip(got["rows"], want["rows"]) for x, y in zip(g, w))


def measure(a, what, work):
    driver, data, weights = build(a, what, work)
    ways = {"gnnc": lambda: drivers(a, driver, data, weights, 1, 1), "gnnc, 2 threads": lambda: drivers(a, driver, data, weights, 2, 1),
            "gnnc, 2 processes": lambda: drivers(a, driver, data, weights, 1, 2)}
    if "pyg" in a.systems.split(","):
        ways["pyg"] = lambda: pyg(a, what, data, weights, FAN[what])
    found = {w: [] for w in ways}
    for _ in range(a.rounds):
        for w, go in ways.items():
            found[w] += [g for g in [go()] if g]
    if found.get("pyg") and what != "draw" and not agree(found["gnnc"][0], found["pyg"][0]):
        sys.exit(f"{what}: gnnc and PyG do not predict the same")
    return {w: {c: statistics.median(g[c] for g in v) for c in COLUMNS[2:]} for w, v in found.items() if v}


def write(a, rows):
    write_table(a.results, COLUMNS, rows,
                f"`bench/serve.py`, a row a request; medians of {a.rounds} rounds; sage and draw: {a.nodes} nodes, {a.edges} edges, "
                f"{a.features} features; {a.note}")


def main():
    number = lambda s: int(float(s))
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--what", default="gcn,sage,draw")
    ap.add_argument("--nodes", type=number, default=10**6)
    ap.add_argument("--edges", type=number, default=2 * 10**7)
    ap.add_argument("--features", type=number, default=128)
    ap.add_argument("--requests", type=number, default=20000, help="of a thread")
    ap.add_argument("--peer-requests", type=number, default=2000)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--systems", default="gnnc,pyg")
    ap.add_argument("--timeout", type=float, default=1800, help="seconds, of one peer")
    ap.add_argument("--peers-python", default="python3")
    ap.add_argument("--gnnc", default=GNNC)
    ap.add_argument("--work", default="", help="a directory that is kept")
    ap.add_argument("--results", default="", help="STEM of the .md and .csv to write")
    ap.add_argument("--note", default=f"{os.cpu_count()} cores", help="of the machine, for the .md")
    a = ap.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as tmp:
        for what in a.what.split(","):
            got = measure(a, what, os.path.abspath(a.work or tmp))
            for system, g in got.items():
                rows.append({"what": what, "system": system, **{c: round(g[c], 2) for c in COLUMNS[2:]}})
                print(f"{what:5} {system:18} median {g['median_us']:9.1f} us   p99 {g['p99_us']:9.1f} us   {g['requests_per_s']:9.0f} requests/s",
                      flush=True)
            ratio = got["gnnc, 2 threads"]["requests_per_s"] / got["gnnc, 2 processes"]["requests_per_s"]
            print(f"{what:5} two threads answer {ratio:.2f} of what two processes do")
    if a.results:
        write(a, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
