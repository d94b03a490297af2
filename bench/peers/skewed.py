"""A synthetic graph of a given size and degree skew, in arrays that the baselines and `gnnc import` read (metadata.yaml: an OnDiskDataset).
usage: skewed.py OUTDIR --nodes N --pairs P --features F --classes C --exponent A --max-degree D --train SHARE --val SHARE [--seed S]

Chung and Lu's model: the ends of an edge are drawn in proportion to weights, which follow a power law (density w^-A) from a least one, so
that their mean is 2 P / N, to D; ids are in no order of degree.  P pairs, no loops, none twice; both directions are edges, sorted by source.
Labels are uniform; features are normal around a point of their class.  The bits follow from the seed.  Memory: about 50 bytes a pair."""
import argparse, os, numpy as np

CHUNK = 1 << 24
ap = argparse.ArgumentParser(); ap.add_argument('out')
for name, kind in dict(nodes=int, pairs=int, features=int, classes=int, exponent=float, max_degree=float, train=float, val=float).items():
    ap.add_argument('--' + name.replace('_', '-'), type=kind, required=True)
ap.add_argument('--seed', type=int, default=0); a = ap.parse_args()
n, r = a.nodes, np.random.default_rng(a.seed)


def weights(least):
    """The power law's quantiles between `least` and the largest degree."""
    k = 1 - a.exponent
    u = (np.arange(n) + .5) / n
    return (least**k + u * (a.max_degree**k - least**k))**(1 / k)


def wanted_weights():
    lo, hi = 1e-3, a.max_degree
    for _ in range(60):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if weights(mid).mean() < 2 * a.pairs / n else (lo, mid)
    return r.permutation(weights(lo))


def drawn_pairs():
    """Keys low * n + high of the pairs, ascending."""
    w = wanted_weights()
    stubs = np.repeat(np.arange(n, dtype=np.int32), (w + r.random(n)).astype(np.int64))
    keys = np.empty(0, np.int64)
    while len(keys) < a.pairs:
        more = []
        for _ in range(0, int(1.05 * (a.pairs - len(keys))) + 1000, CHUNK):
            k = min(CHUNK, int(1.05 * (a.pairs - len(keys))) + 1000)
            s, d = (stubs[r.integers(0, len(stubs), k)].astype(np.int64) for _ in range(2))
            more.append((np.minimum(s, d) * n + np.maximum(s, d))[s != d])
        keys = np.unique(np.concatenate([keys, *more]))
    return np.delete(keys, r.choice(len(keys), len(keys) - a.pairs, replace=False))


def array(name, dtype, shape):
    return np.lib.format.open_memmap(os.path.join(a.out, name + '.npy'), 'w+', dtype, shape)


def write_edges(keys):
    both = np.concatenate([keys, keys % n * n + keys // n]); del keys
    both.sort()
    ends, degrees = array('edge_index', np.int64, (2, len(both))), np.zeros(n, np.int64)
    for k in range(0, len(both), CHUNK):
        part = both[k:k + CHUNK]
        ends[0, k:k + CHUNK], ends[1, k:k + CHUNK] = part // n, part % n
        degrees += np.bincount(part // n, minlength=n)
    return degrees


def write_rows():
    y = r.integers(0, a.classes, n); np.save(os.path.join(a.out, 'y.npy'), y)
    centre = .35 * r.standard_normal((a.classes, a.features), np.float32)
    x = array('x', np.float32, (n, a.features))
    for k in range(0, n, 1 << 16):
        part = y[k:k + (1 << 16)]
        x[k:k + len(part)] = centre[part] + r.standard_normal((len(part), a.features), np.float32)
    p, t, v = r.permutation(n), round(a.train * n), round((a.train + a.val) * n)
    for name, rows in dict(train=p[:t], val=p[t:v], test=p[v:]).items():
        np.save(os.path.join(a.out, name + '_idx.npy'), rows); np.save(os.path.join(a.out, name + '_y.npy'), y[rows])


def write_metadata():
    """Last, so that a folder with it is whole."""
    sets = ''.join(f'''    {long}:
      - data:
          - name: seeds
            format: numpy
            path: {short}_idx.npy
          - name: labels
            format: numpy
            path: {short}_y.npy
''' for short, long in dict(train='train_set', val='validation_set', test='test_set').items())
    with open(os.path.join(a.out, 'metadata.yaml'), 'w') as f:
        f.write(f'''dataset_name: {os.path.basename(os.path.abspath(a.out))}
graph:
  nodes:
    - num: {n}
  edges:
    - format: numpy
      path: edge_index.npy
feature_data:
  - domain: node
    name: x
    format: numpy
    path: x.npy
tasks:
  - name: node_classification
    num_classes: {a.classes}
{sets}''')


os.makedirs(a.out, exist_ok=True)
degrees = write_edges(drawn_pairs()); write_rows(); write_metadata()
print('nodes', n, 'edges', degrees.sum(), 'degree: mean', round(degrees.mean(), 1), 'median', int(np.median(degrees)), 'max', degrees.max())
