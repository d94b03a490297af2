#!/usr/bin/env python3
"""PyG's own Data and HeteroData as a Python package's input train to the bits of a directory and of arrays; tests/e2e/python.py has
what stands in for them where PyG is not.  Of `make long`, by a Python that has PyG (bench/README.md).

    pyg_data.py GNNC TOP CORA       prints `N passed, N failed`
"""
import os
import sys
import tempfile

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
sys.argv[1:4] = map(os.path.abspath, sys.argv[1:4])
import python as e2e  # noqa: E402


def as_tensor(values, kind=None):
    return torch.from_numpy(np.ascontiguousarray(values if kind is None else values.astype(kind)))


def masks(split):
    return {part + "_mask": as_tensor(split.reshape(-1) == 1 + i) for i, part in enumerate(("train", "val", "test"))}


def of_one_type():
    churn = e2e.emit(e2e.TOP + "/models/gcn.gnn", "churn")
    x, shape, y, split, ends = e2e.cora()
    dense = np.zeros(shape, dtype=np.float32)
    dense[np.repeat(np.arange(shape[0]), np.diff(x[0])), x[1]] = x[2]
    data = Data(x=as_tensor(dense), y=as_tensor(y, np.int64), edge_index=as_tensor(ends, np.int64), **masks(split))
    got, want = (e2e.trained(churn, d, variant=0) for d in (churn.Graph.from_pyg(data), e2e.CORA))
    assert e2e.tensors(got) == e2e.tensors(want)


def of_several_types():
    with open("shop.gnn", "w", encoding="utf-8") as f:
        f.write(e2e.SHOP)
    shop, r, n, m, e = e2e.emit("shop.gnn", "shop", "-O0"), np.random.default_rng(3), 40, 15, 90
    city, y, split, x = r.integers(0, 3, n), r.integers(0, 2, n), 1 + np.arange(n) % 3, r.normal(size=(m, 3))
    buys, likes = (r.integers(0, (n, m), (e, 2)).T for _ in range(2))
    w, seen = r.random(e), np.arange(m) * 1.5
    data = HeteroData()
    data["user"].update({"city": as_tensor(city), "y": as_tensor(y), **masks(split)})
    data["user"].num_nodes = n
    data["item"].update({"x": as_tensor(x), "seen": as_tensor(seen)})
    data["user", "buys", "item"].update({"edge_index": as_tensor(buys), "edge_attr": as_tensor(w)})
    data["user", "likes", "item"].edge_index = as_tensor(likes)
    arrays = {"user": {"city": city, "y": y, "split": split}, "item": {"x": x, "seen": seen},
              ("user", "buys", "item"): {"edge_index": buys, "w": w}, ("user", "likes", "item"): likes}
    said = []
    for graph in (shop.Graph.from_pyg(data), shop.Graph.from_arrays(arrays)):
        t = shop.Trainer(graph, epochs=3)
        t.train()
        said.append(t.predict())
    assert np.isfinite(said[0]).all() and (said[0] == said[1]).all()


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        sys.path.insert(0, work)
        of_one_type()
        of_several_types()
    print("2 passed, 0 failed")


if __name__ == "__main__":
    main()
