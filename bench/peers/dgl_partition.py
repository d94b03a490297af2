"""Partitions of one graph by gnnc and by DGL's partitioner, in turn: elapsed and processor time, peak memory, cut, balance.

    dgl_partition.py GNNC DATA NPY [--parts 8] [--runs 3]

DATA: the data directory; NPY: the same graph as arrays (edge_index, x, y, train_idx), in the order of its nodes.  Run with the
Python that has DGL.  Both read the graph from disk and write parts with features: DGL's `partition_graph` by METIS, training rows and edges
balanced, one hop of halo; gnnc by METIS and by streaming.  Each is a process of its own; times have imports and reading in them, and
what of DGL's is the call alone stands beside them.  Prints medians."""
import argparse, json, os, resource, shutil, statistics, subprocess, sys, tempfile, time
import numpy as np


def dgl_parts(npy, parts, out):
    """DGL's side, in a process of its own: prints seconds of the call alone; leaves the part of each node."""
    import dgl, torch
    load = lambda n: torch.from_numpy(np.load(os.path.join(npy, n)))
    ei, x = load('edge_index.npy').long(), load('x.npy').float()
    g = dgl.graph((ei[0], ei[1]), num_nodes=x.size(0))
    g.ndata['x'], g.ndata['y'] = x, load('y.npy').long().view(-1)
    train = torch.zeros(x.size(0), dtype=torch.bool)
    train[load('train_idx.npy').long()] = True
    g.ndata['train'] = train
    start = time.perf_counter()
    ids, _ = dgl.distributed.partition_graph(g, 'g', parts, out, num_hops=1, part_method='metis', balance_ntypes=train.long(), balance_edges=True,
                                             return_mapping=True)
    call = time.perf_counter() - start
    with open(os.path.join(out, 'g.json')) as f: ranges = json.load(f)['node_map']['_N']
    part = np.empty(x.size(0), np.int32)
    for p, (lo, hi) in enumerate(ranges): part[ids.numpy()[lo:hi]] = p
    np.save(os.path.join(out, 'part.npy'), part)
    print('CALL', call)


def run(command):
    """Elapsed and processor seconds, peak MB, output."""
    start = time.perf_counter()
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    told = p.stdout.read()
    _, status, used = os.wait4(p.pid, 0)
    if status: sys.exit(f'{command}: {told}')
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000, told


def gnnc_part(out):
    """The part of each row as it was before."""
    with open(os.path.join(out, 'schema.json')) as f: (t,) = json.load(f)['nodes'].values()
    ptr, rows = (np.load(os.path.join(out, t[k])) for k in ('part_ptr', 'part_rows'))
    part = np.empty(len(rows), np.int32)
    part[rows] = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    return part


def quality(part, parts, ei, train):
    """Cut in percent; the largest part, in shares of nodes, of edges (by destination) and of training rows."""
    of = lambda p: np.bincount(p, minlength=parts).max() * parts / len(p)
    return 100 * np.mean(part[ei[0]] != part[ei[1]]), of(part), of(part[ei[1]]), of(part[train])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('gnnc'); ap.add_argument('data'); ap.add_argument('npy')
    ap.add_argument('--parts', type=int, default=8); ap.add_argument('--runs', type=int, default=3)
    a = ap.parse_args()
    ei, train = (np.load(os.path.join(a.npy, n)) for n in ('edge_index.npy', 'train_idx.npy'))
    ways = {f'gnnc --method {m}': m for m in ('metis', 'stream')} | {'DGL partition_graph': None}
    seen = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as top:
        for _ in range(a.runs):
            for name, method in ways.items():
                out = os.path.join(top, 'out')
                shutil.rmtree(out, ignore_errors=True)
                command = [a.gnnc, 'partition', a.data, str(a.parts), '-o', out, '--method', method] if method else \
                    [sys.executable, os.path.abspath(__file__), '--dgl', a.npy, str(a.parts), out]
                wall, cpu, mb, told = run(command)
                call = None if method else float(told.split('CALL ')[1])
                part = gnnc_part(out) if method else np.load(os.path.join(out, 'part.npy'))
                seen[name].append((wall, cpu, mb, call, *quality(part, a.parts, ei, train)))
    print(f'| {a.parts} parts, {a.runs} runs | elapsed s | .. of the call | processor s | peak, MB | cut | most nodes | most edges | most training rows |\n|---|---|---|---|---|---|---|---|---|')
    for name, rows in seen.items():
        wall, cpu, mb, call, *q = ([statistics.median(c) if c[0] is not None else None for c in zip(*rows)])
        print(f'| {name} | {wall:.1f} | {call and format(call, ".1f") or ""} | {cpu:.1f} | {mb:.0f} | {q[0]:.2f} % | {q[1]:.2f} | {q[2]:.2f} | {q[3]:.2f} |')


if sys.argv[1:2] == ['--dgl']: dgl_parts(sys.argv[2], int(sys.argv[3]), sys.argv[4])
else: main()
