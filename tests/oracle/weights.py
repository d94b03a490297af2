#!/usr/bin/env python3
"""Weights go both ways between gnnc and PyG: GCN, SAGE, GAT and R-GCN.

usage: tests/oracle/weights.py GNNC TOP [PYTHON]

PYTHON has torch, torch_geometric and safetensors (bench/README.md; default: this one).  For each model
  out   a trainer learns, PyG reads its file of weights (strict: all names, all shapes)
  in    PyG learns, saves its state_dict by safetensors.torch, the trainer reads that file
and the logits of all rows must agree to 1e-5 of their row's largest.  Cora for three of them; R-GCN,
whose weights have a row for each entity, learns facts that are made here.  Part of `make long`: PyG is gigabytes."""
import os
import subprocess
import sys
import tempfile

LEARN = r"""
import json, os, sys
import numpy as np, torch
from safetensors.torch import load_file, save_file
from torch_geometric.nn import GATConv, GCNConv, RGCNConv, SAGEConv
kind, path, weights, logits, ours = sys.argv[1:6]
torch.manual_seed(1)
L = lambda f: torch.from_numpy(np.load(os.path.join(path, f)))
schema = json.load(open(os.path.join(path, 'schema.json')))
node, edge = list(schema['nodes'].values())[0], list(schema['edges'].values())[0]
n, y, ends = node['count'], L(node['columns']['y']['file']).long(), L(edge['file']).long()
C = node['columns']['y']['categories']
if kind == 'rgcn':
    rel = L(edge['columns']['rel']['file']).long()
    R = edge['columns']['rel']['categories']
else:
    x = node['columns']['x']
    X = torch.zeros(x['shape'])
    X[torch.arange(n).repeat_interleave(L(x['ptr']).diff()), L(x['col']).long()] = L(x['val'])
class Net(torch.nn.Module):
    def __init__(s):
        super().__init__()
        if kind == 'rgcn':
            s.conv1, s.conv2 = RGCNConv(n, 16, R), RGCNConv(16, C, R)
            s.back1 = RGCNConv(n, 16, R, root_weight=False, bias=False)
            s.back2 = RGCNConv(16, C, R, root_weight=False, bias=False)
        elif kind == 'gat':
            s.conv1, s.conv2 = GATConv(X.shape[1], 8, 8), GATConv(64, C, 1, concat=False)
        else:
            conv = GCNConv if kind == 'gcn' else SAGEConv
            s.conv1, s.conv2 = conv(X.shape[1], 16), conv(16, C)
    def forward(s):
        if kind == 'rgcn':
            back = ends.flip(0)
            h = (s.conv1(None, ends, rel) + s.back1(None, back, rel)).relu()
            return s.conv2(h, ends, rel) + s.back2(h, back, rel)
        h = s.conv1(X, ends)
        return s.conv2(h.relu() if kind != 'gat' else torch.nn.functional.elu(h), ends)
net = Net()
net.load_state_dict(load_file(ours))
with torch.no_grad():
    np.save(logits + '.out.npy', net.eval()().numpy())
for p in net.modules():
    if hasattr(p, 'reset_parameters'): p.reset_parameters()
for p in net.parameters():  # biases begin at 0, which any order of them would pass
    if p.dim() == 1: torch.nn.init.normal_(p, std=0.1)
adam = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(5):
    adam.zero_grad()
    torch.nn.functional.cross_entropy(net.train()()[y >= 0], y[y >= 0]).backward()
    adam.step()
save_file({k: v.contiguous() for k, v in net.state_dict().items()}, weights)
with torch.no_grad():
    np.save(logits + '.in.npy', net.eval()().numpy())
"""
FACTS = r"""
import sys, numpy as np
r = np.random.default_rng(1)
n, m = 300, 2000
np.savez(sys.argv[1], triples=np.unique(np.stack([r.integers(0, n, m), r.integers(0, 5, m), r.integers(0, n, m)], 1), axis=0),
         num_nodes=n, num_relations=5, train_idx=np.arange(0, 200), train_y=r.integers(0, 4, 200), test_idx=np.arange(200, 300),
         test_y=r.integers(0, 4, 100))
"""
APART = r"""
import sys, numpy as np
a, b = np.load(sys.argv[1]).astype('f8'), np.load(sys.argv[2]).astype('f8')
assert a.shape == b.shape and np.isfinite(a).all() and b.std() > 0, (a.shape, b.shape)
print((abs(a - b).max(1) / abs(b).max(1)).max())
"""


def run(*cmd):
    r = subprocess.run(list(map(str, cmd)), capture_output=True, text=True)
    if r.returncode:
        raise RuntimeError(f"{' '.join(map(str, cmd[:2]))}..: {r.stderr.strip()[-600:]}")
    return r.stdout


def check(kind, gnnc, top, python, work):
    """How far the logits are apart, of weights from gnnc in PyG and of weights from PyG in gnnc."""
    at = os.path.join(work, kind)
    data = os.path.join(top, "models", "data", "cora")
    if kind == "rgcn":
        run(python, "-c", FACTS, at + ".npz")
        run(gnnc, "import", at + ".npz", "-o", at + ".data")
        data = at + ".data"
    run(gnnc, os.path.join(top, "models", kind + ".gnn"), "--target=cpu", "-o", at)
    run(at, "--data", data, "--epochs", 5, "--log", "none", "--checkpoint", "none", "--out", at + ".ours")
    run(python, "-c", LEARN, kind, data, at + ".theirs", at, at + ".ours")
    apart = {}
    for way, weights in (("out", at + ".ours"), ("in", at + ".theirs")):
        run(at, "predict", "--data", data, "--weights", weights, "--out", f"{at}.{way}.gnnc.npy")
        apart[way] = float(run(python, "-c", APART, f"{at}.{way}.gnnc.npy", f"{at}.{way}.npy"))
    return apart


def main():
    gnnc, top = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    python = sys.argv[3] if len(sys.argv) > 3 else sys.executable
    passed = failed = 0
    with tempfile.TemporaryDirectory() as work:
        for kind in ("gcn", "sage", "gat", "rgcn"):
            try:
                apart = check(kind, gnnc, top, python, work)
                ok = max(apart.values()) <= 1e-5
                print(f"{kind:5} gnnc's weights in PyG: {apart['out']:.1e} apart; PyG's in gnnc: {apart['in']:.1e}", flush=True)
            except (RuntimeError, OSError, ValueError) as e:
                ok = False
                print(f"{kind}: {e}", flush=True)
            passed, failed = passed + ok, failed + (not ok)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
