#!/usr/bin/env python3
"""Neighbour sampling side by side, features gathered: gnnc's sampler against PyG's NeighborLoader, in one run.

usage: bench/sampler.py --data DIR --npy DIR [--fanouts 10,5:15,10,5] [--batch 1024] [--threads 1,2] [--rounds 3]
                        [--peers-python P] [--pythonpath DIR] [--driver build/bench/sampler]

  --data   the data directory of `gnnc import`;  --npy  the same data as bench/peers/unpack.py writes it
PyG samples in the main process (workers are processes and were slower) with as many threads as gnnc; one warm-up
epoch, then one timed, both through the training nodes.  `make build/bench/sampler` builds the driver.
Printed: medians over the rounds, in sampled edges per second, and the ratio at equal threads."""
import argparse
import json
import os
import statistics
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYG = r"""
import json, os, sys, time
import numpy as np, torch
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric import typing
npy, fanouts, bs, threads, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
torch.set_num_threads(threads)
L = lambda n: torch.from_numpy(np.load(os.path.join(npy, n)))
data = Data(x=L('x.npy').float(), y=L('y.npy').long().view(-1), edge_index=L('edge_index.npy').long())
loader = NeighborLoader(data, num_neighbors=[int(f) for f in fanouts.split(',')], batch_size=bs,
                        input_nodes=L('train_idx.npy').long(), shuffle=True, num_workers=0)
took = []
for e in range(epochs + 1):
    t, edges, nodes = time.perf_counter(), 0, 0
    for b in loader:
        edges += b.num_edges
        nodes += b.num_nodes
    took.append(time.perf_counter() - t)
mid = sorted(took[1:])[epochs // 2]
print(json.dumps(dict(system='pyg-lib' if typing.WITH_PYG_LIB else 'torch-sparse', sampled_nodes=nodes,
                      sampled_edges=edges, sample_epoch_s=round(mid, 4), edges_per_s=round(edges / mid))))
"""


def measure(cmd, env=None, timeout=600):
    r = subprocess.run(cmd, capture_output=True, text=True, timeout=timeout, check=True, env=env)
    return json.loads(r.stdout.strip().splitlines()[-1])


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--data", required=True)
    ap.add_argument("--npy", required=True)
    ap.add_argument("--fanouts", default="10,5:15,10,5")
    ap.add_argument("--batch", type=int, default=1024)
    ap.add_argument("--threads", default="1,2")
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--epochs", type=int, default=3, help="timed epochs of gnnc; PyG times one")
    ap.add_argument("--peers-python", default="python3")
    ap.add_argument("--pythonpath", default="", help="where pyg-lib or torch-sparse is, if not in the environment")
    ap.add_argument("--driver", default=os.path.join(TOP, "build", "bench", "sampler"))
    a = ap.parse_args()
    bad = False
    print(f"{'fan-out':10} {'threads':>7} {'system':>13} {'edges/batch':>12} {'M edges/s':>10} {'ratio':>6}")
    for fanouts in a.fanouts.split(":"):
        for threads in a.threads.split(","):
            env = dict(os.environ, OMP_NUM_THREADS=threads)
            if a.pythonpath:
                env["PYTHONPATH"] = a.pythonpath
            cmds = {
                "gnnc": [a.driver, a.data, fanouts, str(a.batch), threads, str(a.epochs)],
                "pyg": [a.peers_python, "-c", PYG, a.npy, fanouts, str(a.batch), threads, "1"],
            }
            got = {s: [] for s in cmds}
            for _ in range(a.rounds):
                for s, cmd in cmds.items():
                    try:
                        got[s].append(measure(cmd, env))
                    except (subprocess.SubprocessError, OSError, ValueError, IndexError) as e:
                        print(f"{s}: {str(getattr(e, 'stderr', e) or e)[-300:]}", file=sys.stderr)
            speed = {s: statistics.median(g["edges_per_s"] for g in v) for s, v in got.items() if v}
            for s, v in got.items():
                if not v:
                    bad = True
                    print(f"{fanouts:10} {threads:>7} {s:>13} failed")
                    continue
                ratio = f"{speed[s] / speed['pyg']:.1f}x" if "pyg" in speed else "-"
                batches = got["gnnc"][0]["batches"] if got["gnnc"] else 1
                print(f"{fanouts:10} {threads:>7} {v[0]['system']:>13} {v[0]['sampled_edges'] // batches:>12} "
                      f"{speed[s] / 1e6:>10.2f} {ratio:>6}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
