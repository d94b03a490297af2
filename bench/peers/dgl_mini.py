"""DGL mini-batch baseline: NeighborSampler + SAGE, mean seconds of N steps behind six. One JSON line.
usage: dgl_mini.py --data DIR [--fanout 10,5] [--bs 1024] [--hidden 128] [--steps 50]"""
import argparse, json, time, os
t_start = time.perf_counter()
import numpy as np, torch, torch.nn.functional as F, dgl, measure
from dgl.nn.pytorch import SAGEConv
ap = argparse.ArgumentParser(); ap.add_argument('--data', required=True); ap.add_argument('--fanout', default='10,5'); ap.add_argument('--bs', type=int, default=1024)
ap.add_argument('--hidden', type=int, default=128); ap.add_argument('--steps', type=int, default=50); a = ap.parse_args(); torch.manual_seed(0)
L = lambda n: torch.from_numpy(np.load(os.path.join(a.data, n)))
x, y, ei, tr = L('x.npy').float(), L('y.npy').long().view(-1), L('edge_index.npy').long(), L('train_idx.npy').long()
fan = [int(f) for f in a.fanout.split(',')]; C = int(y.max()) + 1
g = dgl.graph((ei[0], ei[1]), num_nodes=x.size(0)).formats(['csc']); g.create_formats_(); del ei
sampler = dgl.dataloading.NeighborSampler(fan[::-1])  # of layers, the seeds' is the last
loader = dgl.dataloading.DataLoader(g, tr, sampler, batch_size=a.bs, shuffle=True, drop_last=False, num_workers=0)
class Net(torch.nn.Module):
    def __init__(s):
        super().__init__(); d = [x.size(1)] + [a.hidden] * (len(fan) - 1) + [C]; s.cs = torch.nn.ModuleList(SAGEConv(d[i], d[i + 1], 'mean') for i in range(len(fan)))
    def forward(s, blocks, x):
        for i, (c, b) in enumerate(zip(s.cs, blocks)):
            x = c(b, x)
            if i + 1 < len(s.cs): x = F.dropout(F.relu(x), .5, s.training)
        return x
net = Net(); opt = torch.optim.Adam(net.parameters(), lr=3e-3)
def step(batch):
    nodes, seeds, blocks = batch; opt.zero_grad(); l = F.cross_entropy(net(blocks, x[nodes]), y[seeds]); l.backward(); opt.step(); return float(l)
it = iter(loader); step(next(it)); start_s = time.perf_counter() - t_start
for _, b in zip(range(5), it): step(b)
print(json.dumps(dict(system='dgl', step_s=measure.steps(a.steps, loader, step), steps=len(loader), start_s=round(start_s, 2))))
