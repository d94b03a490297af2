"""A data directory of gnnc with one node type and one edge type -> folder of .npy as the baseline scripts read it, so
that both sides have the same graph, features and split (the first).  usage: export.py DATA OUTDIR"""
import json, os, sys, numpy as np
d, o = sys.argv[1], sys.argv[2]; os.makedirs(o, exist_ok=True); load = lambda f: np.load(os.path.join(d, f))
schema = json.load(open(os.path.join(d, 'schema.json')))
assert len(schema['nodes']) == len(schema['edges']) == 1, 'one node type and one edge type'
node, edge = (next(iter(schema[k].values())) for k in ('nodes', 'edges')); col = node['columns']
n, x = node['count'], col['x']
if x['kind'] == 'csr':
    dense = np.zeros(x['shape'], np.float32); dense[np.repeat(np.arange(n), np.diff(load(x['ptr']))), load(x['col'])] = load(x['val'])
else: dense = load(x['file']).astype(np.float32)
np.save(o + '/x.npy', dense); np.save(o + '/y.npy', load(col['y']['file']).astype(np.int64)); np.save(o + '/edge_index.npy', load(edge['file']).astype(np.int64))
split = load(col['split']['file']).reshape(-1, n)[0]
for k, s in enumerate(('train', 'val', 'test'), 1): np.save(f'{o}/{s}_idx.npy', np.flatnonzero(split == k))
print('nodes', n, 'edges', edge['count'])
