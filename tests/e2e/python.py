#!/usr/bin/env python3
"""Models as Python packages (gnnc --emit=python): what they train and predict has the bits of the trainer and of rows by
themselves, and whatever is done to them ends as Python says.  With NumPy.

    python.py GNNC TOP CORA
"""
import ast
import base64
import contextlib
import csv
import ctypes
import gc
import hashlib
import importlib
import io
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import weakref
import zipfile

import numpy as np

import python_compile
import python_header

GNNC, TOP, CORA = sys.argv[1:4]
WHEEL = "-0.1.0-py3-none-linux_%s.whl" % os.uname().machine


def run(*command, status=0, **kw):
    p = subprocess.run(command, capture_output=True, text=True, check=False, **kw)
    assert p.returncode == status, (command, p.returncode, p.stdout[-3000:], p.stderr[-3000:])
    return p.stdout + p.stderr


def read(path):
    with open(path, "rb") as f:
        return f.read()


def fails(name, text, f, *args, **kw):
    """f raises the package's Error of that name, with that text in it."""
    try:
        f(*args, **kw)
    except BaseException as e:
        assert getattr(e, "name", type(e).__name__) == name and text in str(e), (name, text, repr(e))
        return e
    raise AssertionError("no failure: %s, %s" % (name, text))


def emit(model, name, *options):
    run(GNNC, model, "--emit=python", "-o", name, *options)
    return importlib.import_module(name)


def the_options(churn):
    told = churn.options()
    assert list(told) == list(churn.Options.__annotations__)
    assert told["epochs"].default == 200 and told["lr"].type == "real" and told["device"].value == "auto"
    assert told["threads"].least == 0 and told["threads"].most == 4096 and not told["batch"].settable
    doc = churn.Trainer.__doc__
    assert "seed: int, .., default 0: the random seed: all random numbers follow from it" in doc and "batch:" not in doc, doc


# ---- the wheel ----------------------------------------------------------------------------------
def the_wheel():
    path = "churn" + WHEEL
    with zipfile.ZipFile(path) as z:
        assert z.testzip() is None
        names = z.namelist()
        files = {n: z.read(n) for n in names}
        modes = {n: z.getinfo(n).external_attr >> 16 for n in names}
    info = "churn-0.1.0.dist-info/"
    for name in os.listdir("churn"):
        if name != "__pycache__":
            assert files.pop("churn/" + name) == read("churn/" + name), name
    assert set(files) == {info + n for n in ("METADATA", "WHEEL", "RECORD")}, files.keys()
    assert modes["churn/libchurn.so"] == 0o100755 and modes["churn/__init__.py"] == 0o100644
    rows = list(csv.reader(io.StringIO(files[info + "RECORD"].decode())))
    assert [r[0] for r in rows] == names
    with zipfile.ZipFile(path) as z:
        for name, digest, size in rows[:-1]:
            data = z.read(name)
            want = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, size) == ("sha256=" + want, str(len(data))), name
    assert rows[-1] == [info + "RECORD", "", ""]
    assert "Requires-Dist: numpy\n" in files[info + "METADATA"].decode()
    before = read(path)
    run(GNNC, TOP + "/models/gcn.gnn", "--emit=python", "--embed=h", "-o", "churn", "-MD")
    assert read(path) == before, "the same model makes the same bytes"
    assert path in read("churn.d").decode() and "gcn.gnn" in read("churn.d").decode()


def the_installer():
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True).returncode:
        pip = ["python3", "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True).returncode:
        assert not os.environ.get("GNNC_CI"), "no pip"
        print("no pip: the wheel is not installed")
        return
    run(*pip, "install", "-q", "--no-deps", "--no-index", "--target", "site", "churn" + WHEEL)
    env = {**os.environ, "PYTHONPATH": os.path.abspath("site")}
    said = run(sys.executable, "-c", "import churn; t = churn.Trainer(%r, epochs=1); t.train(); print(churn.__file__, t)" % CORA,
               env=env, cwd="/")
    assert "site/churn/__init__.py <Trainer of GCN: 1 of 1 epochs>" in said, said
    assert os.path.exists("site/churn-0.1.0.dist-info/RECORD")


# ---- what it computes ---------------------------------------------------------------------------
def trained(package, data, **options):
    """As the trainer's command line: the checkpoint's bytes."""
    t = package.Trainer(data, **{"seed": 7, "epochs": 4, **options})
    t.train(checkpoint="python.ckpt")
    out = read("python.ckpt")
    t.close()
    return out


def tensors(checkpoint):
    return checkpoint[8 + int.from_bytes(checkpoint[:8], "little"):]


def cora():
    """Its arrays."""
    with open(CORA + "/schema.json", encoding="utf-8") as f:
        schema = json.load(f)
    columns = schema["nodes"]["paper"]["columns"]
    load = lambda name: np.load(CORA + "/" + name)
    x = tuple(load(columns["x"][k]) for k in ("ptr", "col", "val"))
    return x, columns["x"]["shape"], load(columns["y"]["file"]), load(columns["split"]["file"]), load(schema["edges"]["cites"]["file"])


class Sparse:
    """What SciPy's csr_matrix has."""
    has_canonical_format = True

    def __init__(self, x, shape):
        (self.indptr, self.indices, self.data), self.shape = x, shape

    def tocsr(self):
        return self


class Tensor:
    """What torch.Tensor has, as far as it goes: no array to NumPy, but by DLPack."""
    def __init__(self, values):
        self.values, self.shape = values, values.shape

    def detach(self):
        return self

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        return Tensor(self.values[i])

    def reshape(self, *shape):
        return Tensor(self.values.reshape(*shape))

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def __dlpack__(self, **kw):
        return self.values.__dlpack__(**kw)


class Store(dict):
    """What torch_geometric's stores, and Data, have: keys that are attributes."""
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Hetero:
    """HeteroData."""
    def __init__(self, stores):
        self.stores = stores
        self.node_types = [k for k in stores if isinstance(k, str)]
        self.edge_types = [k for k in stores if isinstance(k, tuple)]

    def __getitem__(self, key):
        return self.stores[key]

    def __contains__(self, key):
        return False


def same_bits(churn):
    run(GNNC, TOP + "/models/gcn.gnn", "-o", "trainer")
    run("./trainer", "--data", CORA, "--seed", "7", "--epochs", "4", "--checkpoint", "want.ckpt")
    want = read("want.ckpt")
    assert trained(churn, CORA) == want and trained(churn, churn.Graph.read(CORA)) == want
    x, shape, y, split, ends = cora()
    by_hand = churn.Graph()
    by_hand.add_nodes("paper", len(y))
    by_hand.add_csr("paper", "x", shape[1], *x)
    by_hand.add_column("paper", "y", y.astype(">i8")[::-1][::-1])
    by_hand.add_masks("paper", "split", *[split == p for p in (1, 2, 3)])
    by_hand.add_edges("cites", "paper", "paper", *ends)
    assert trained(churn, by_hand) == want
    dense = np.zeros(shape, dtype=np.float32)
    dense[np.repeat(np.arange(shape[0]), np.diff(x[0])), x[1]] = x[2]
    masks = {part + "_mask": Tensor((split == 1 + i).T.astype(np.int8)) for i, part in enumerate(("train", "val", "test"))}
    pyg = Store(x=Tensor(dense), y=Tensor(y.reshape(-1, 1)), edge_index=Tensor(ends.astype(np.int64)), num_nodes=len(y), **masks)
    of_rows = trained(churn, churn.Graph.from_pyg(pyg), variant=0)  # the data's hash is of rows without gaps: another
    assert tensors(of_rows) == tensors(trained(churn, CORA, variant=0)) == tensors(want)
    graph = churn.Graph.from_arrays({"paper": {"x": Sparse(x, shape), "y": y, "split": split}, ("paper", "cites", "paper"): ends})
    assert trained(churn, graph) == want
    assert graph.tables["paper"].columns["y"] == churn.ColumnInfo("class", (2708,), 7, None), graph.tables
    assert graph.tables["cites"].rows == ends.shape[1] and graph.tables["cites"].src == "paper"
    assert repr(graph) == "<Graph: paper [2708], cites [10556]>"
    return graph


def metrics_and_values(churn, graph):
    t = churn.Trainer(graph, seed=7, epochs=4)
    told = []
    epochs = list(t.epochs(progress=told.append))
    assert [e.epoch for e in epochs] == [1, 2, 3, 4] and len(told) == 8
    assert told[0].steps_done == 1 and told[0].last is None and told[-1].last == epochs[-1] and told[-1].epochs_done == 4
    assert epochs[0].loss > epochs[-1].loss > 0 and epochs[0].lr == 0.01 and 0 < epochs[3].metrics["accuracy.val"] < 1
    best = max(epochs, key=lambda e: e.metrics["accuracy.val"])
    assert t.keep_best() == best.epoch
    of_test = t.evaluate("test")
    assert set(of_test) == {"loss", "accuracy"} and of_test["accuracy"] == t.metrics["accuracy.test"]
    fails("E_MISSING", "tset", t.evaluate, "tset")
    scores = t.predict()
    t.save_weights("churn.safetensors")
    run("./trainer", "predict", "--data", CORA, "--weights", "churn.safetensors", "--out", "scores.npy")
    run("./trainer", "embed", "h", "--data", CORA, "--weights", "churn.safetensors", "--out", "h.npy")
    assert scores.dtype == np.float32 and (scores == np.load("scores.npy")).all()
    assert (t.predict([3, 1, 4, 1]) == scores[[3, 1, 4, 1]]).all() and t.predict([]).shape == (0, 7)
    fails("E_RANGE", "2708", t.predict, [2708])
    fails("E_ARG", "integers", t.predict, [1.5])
    legend = t.legend()
    for form, top in (("csv", 0), ("jsonl", 2)):
        run("./trainer", "predict", "--data", CORA, "--weights", "churn.safetensors", "--format", form, "--out", "want." + form,
            *(["--top", str(top)] if top else []))
        legend.write("legend." + form, scores, format=form, top=top)
        assert read("legend." + form) == read("want." + form), form
    assert (legend.table, legend.destinations, legend.rows, legend.row_shape) == ("paper", None, 2708, (7,)), legend
    assert legend.outcome == "classes" and legend.has_labels and not legend.has_ids and legend.ids([3]) == [None]
    exact = np.exp(scores.astype(float) - scores.max(axis=1, keepdims=True))
    assert np.allclose(legend.convert(scores), exact / exact.sum(axis=1, keepdims=True), rtol=1e-6, atol=0)
    assert legend.classes(scores) == [legend.values[i] for i in scores.argmax(axis=1)]
    fails("E_SHAPE", "['n', 7]", legend.convert, scores[0])
    fails("E_ARG", "no format 'xml'", legend.write, "x", scores, format="xml")
    fails("E_ARG", "as many rows", legend.write, "x", scores, rows=[1])
    fails("E_IO", "", legend.write, "none/x.csv", scores)
    fails("E_MISSING", "do not name the rows of 'paper'", legend.find, ["3"])
    fails("E_ARG", "are no edges", legend.ends, 0)
    assert t.layers == ["h"] and (t.embed("h") == np.load("h.npy")).all()
    assert t.weights_to_bytes() == read("churn.safetensors")
    values = t.parameters()
    assert {n: v.shape for n, v in values.items()} == {"conv1.lin.weight": (16, 1433), "conv1.bias": (16,),
                                                       "conv2.lin.weight": (7, 16), "conv2.bias": (7,)}
    t.set_parameter("conv2.bias", values["conv2.bias"] + 1)
    assert np.allclose(t.predict(), scores + 1, atol=1e-6)
    fails("E_SHAPE", "(7,)", t.set_parameter, "conv2.bias", np.zeros(8))
    assert fails("E_STATE", "kept parameters", t.epoch).status == -10
    return scores


def rows_by_themselves(churn, graph, scores):
    for weights in ("churn.safetensors", read("churn.safetensors"), memoryview(read("churn.safetensors"))):
        s = churn.Model(weights).session(graph)
    assert (s.rows, s.row_shape) == (2708, (7,))
    near = lambda got, ids: np.abs(got - scores[ids]).max() <= 1e-6 * np.abs(scores).max()
    assert near(s.predict([3, 1, 4, 1]), [3, 1, 4, 1]) and near(s.predict(np.arange(2708, dtype=np.int32)), slice(None))
    assert s.predict([]).shape == (0, 7) and near(s.predict(), slice(None))
    h = np.load("h.npy")
    for ids in (None, [3, 1, 3], np.arange(2708)):
        assert s.layers == ["h"] and np.abs(s.embed("h", ids) - h[slice(None) if ids is None else ids]).max() <= 1e-6 * np.abs(h).max()
    fails("E_MISSING", "no layer 'k': there is h", s.embed, "k")
    fails("E_RANGE", "row 2708: the data have 0 to 2707", s.embed, "h", [2708])
    out = np.empty((2, 7), dtype=np.float32)
    assert s.predict([5, 6], out=out) is out and near(out, [5, 6])
    for ids, text in (([1.5], "integers"), ([[1]], "integers"), (3, "integers"), ([True], "integers")):
        fails("E_ARG", text, s.predict, ids)
    for bad in (np.empty((2, 7)), np.empty((3, 7), dtype=np.float32), np.empty((2, 14), dtype=np.float32)[:, ::2]):
        fails("E_ARG", "out must be", s.predict, [5, 6], out=bad)
    fails("E_RANGE", "row 2708: the data have 0 to 2707", s.predict, [2708])
    assert near(s.predict([7]), [7])
    wrong = []

    def serve(own, first):
        for k in range(first, 2708, 9):
            if not near(own.predict([k]), [k]):
                wrong.append(k)
    threads = [threading.Thread(target=serve, args=(s.clone(), k)) for k in range(4)]
    for thread in threads:
        thread.start()
    s.close()
    for thread in threads:
        thread.join()
    assert not wrong
    fails("E_STATE", "closed", s.predict, [1])
    other, model = churn.Graph.read(CORA).commit(), churn.Model(weights)
    other.close()
    fails("E_STATE", "this Graph is closed", churn.Trainer, other)
    fails("E_STATE", "this Graph is closed", model.session, other)
    model.close()
    fails("E_STATE", "this Model is closed", model.session, graph)


def subgraphs(churn, graph, scores):
    """Rows around some, without a graph, from borrowed arrays of many types."""
    n, model = 2708, churn.Model("churn.safetensors")
    over, s = model.session(graph), model.session()
    whole = {"whole.degree.cites_sl": churn.Whole("paper", "nodes", ())}
    assert s.whole == over.whole == whole and s.rows == 0 and s.row_shape == (7,)
    ptr, col, val = (np.load(f"{CORA}/node.paper.x.{k}.npy") for k in ("ptr", "col", "val"))
    src, dst = np.load(f"{CORA}/edge.cites.npy")
    dense = np.zeros((n, 1433), dtype=np.float32)
    dense[np.repeat(np.arange(n), np.diff(ptr)), col] = val
    for row in (3, 99):
        near = np.array([row])
        for _ in range(2):
            near = np.unique(np.concatenate([near, src[np.isin(dst, near)]]))
        kept = np.isin(dst, near) & np.isin(src, near)
        tables = {"paper": {"x": dense[near], "whole.degree.cites_sl": over.read_whole("whole.degree.cites_sl", near)},
                  ("paper", "cites", "paper"): np.searchsorted(near, np.stack([src[kept], dst[kept]]))}
        out = np.empty((1, 7), dtype=np.float32)
        for own in (s, s.clone()):
            assert own.predict_subgraph(tables, np.searchsorted(near, [row]), out=out) is out
            assert np.abs(out - scores[row]).max() <= 1e-6 * np.abs(scores[row]).max()
            hidden, want = own.embed_subgraph("h", tables, np.searchsorted(near, [row])), over.embed("h", [row])
            assert hidden.shape == (1, 16) and np.abs(hidden - want).max() <= 1e-6 * np.abs(want).max()
    fails("E_MISSING", "no layer 'k'", s.embed_subgraph, "k", tables, [0])
    fails("E_MISSING", "no column 'whole.degree.cites_sl'", s.predict_subgraph, {**tables, "paper": {"x": dense[near]}}, [0])
    fails("E_RANGE", "row 10000", s.predict_subgraph, tables, [10000])
    fails("E_MISSING", "paper", s.predict_subgraph, {}, [0])
    fails("E_STATE", "has a graph", over.predict_subgraph, tables, [0])
    fails("E_STATE", "no graph", s.predict, [0])
    fails("E_MISSING", "whole.x", s.set_whole, "whole.x", 1)
    fails("E_SHAPE", "is []", s.set_whole, *whole, [1, 2])
    fails("E_ARG", "has rows", s.set_whole, *whole, 1)
    fails("E_ARG", "is of a table", over.read_whole, *whole)
    fails("E_STATE", "its rows have no ids", s.legend)
    assert s.predict_subgraph(tables, []).shape == (0, 7)
    lent = s._lent
    for each in (s, own):
        each.close()
    assert not lent.arrays  # all were given back


def rows_that_come_later(churn):
    """Appended rows give what a graph gives that is built of all; sessions keep the snapshot that they have."""
    _, _, y, split, ends = cora()
    n, x = len(y), np.random.default_rng(2).normal(size=(len(y), 8)).astype(np.float32)
    early = (ends < n - 100).all(axis=0)
    columns = lambda part: {"x": x[part], "y": y[part], "split": split.reshape(-1)[part]}
    graph = churn.Graph.from_arrays({"paper": columns(slice(n - 100)), ("paper", "cites", "paper"): ends[:, early]})
    t = churn.Trainer(graph, seed=7, epochs=2)
    t.train()
    model = t.to_model()
    assert model.metrics == {k: v for k, v in t.metrics.items() if k not in ("loss", "lr")} and "accuracy.test" in model.metrics
    assert churn.Model(t.weights_to_bytes()).metrics == model.metrics
    further = [churn.Trainer(graph, weights=w, seed=7, epochs=2) for w in (model, t.weights_to_bytes())]
    assert further[0].train() == further[1].train() != t.metrics
    before = model.session(graph)
    first = before.predict([0, 5, n - 101])
    assert (churn.Model(t.weights_to_bytes()).session(graph).predict([0, 5, n - 101]) == first).all()
    assert graph.append("paper", columns(slice(n - 100, n - 50))) == n - 100
    assert graph.append("paper", {"x": x[n - 50:]}) == n - 50
    assert graph.append("cites", src=ends[0, ~early], dst=ends[1, ~early]) == early.sum()
    assert graph.tables["paper"].rows == n - 100
    graph.commit()
    assert graph.tables["paper"].rows == n and before.rows == n - 100
    assert (before.predict([0, 5, n - 101]) == first).all()
    whole = churn.Graph.from_arrays({"paper": columns(slice(None)), ("paper", "cites", "paper"): np.hstack([ends[:, early], ends[:, ~early]])})
    assert (model.session(graph).predict(range(n)) == model.session(whole).predict(range(n))).all()
    fails("E_RANGE", "cites", graph.append, "cites", src=[0], dst=[n])
    fails("E_MISSING", "x", graph.append, "paper", count=1)


# ---- lives ----------------------------------------------------------------------------------------
def lives(churn):
    """Arrays are read where they lie for as long as something reads them, and no longer."""
    x, shape, y, split, ends = cora()
    memory = np.zeros(shape[0] * 16 * 4 + 64, dtype=np.uint8)
    at = -memory.ctypes.data % 64
    rows = memory[at:at + shape[0] * 16 * 4].view(np.float32).reshape(shape[0], 16)
    rows[:] = np.random.default_rng(1).normal(size=rows.shape)
    gone = weakref.ref(memory)
    graph = churn.Graph.from_arrays({"paper": {"x": Tensor(rows) if int(np.__version__[0]) > 1 else rows, "y": y, "split": split},
                                     ("paper", "cites", "paper"): ends})
    del memory, rows
    t = churn.Trainer(graph, seed=7, epochs=2)
    lent = graph._lent
    del graph
    gc.collect()
    assert gone() is not None, "nothing was copied, so it is kept"
    t.train()
    model = churn.Model(t.weights_to_bytes())
    session = model.session(churn.Graph.from_arrays({"paper": {"x": np.zeros((3, 16))}, ("paper", "cites", "paper"): np.zeros((2, 0), int)}))
    t.close()
    t.close()
    fails("E_STATE", "closed", t.predict)
    assert repr(t) == "<closed Trainer>"
    del t
    gc.collect()
    assert gone() is None and not lent.arrays
    del model
    gc.collect()
    assert session.predict([0, 1, 2]).shape == (3, 7)


class Managed:
    """A DLPack tensor of version 1, [n] int64, that tells when its deleter is called."""
    class Struct(ctypes.Structure):
        Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", Deleter),
                    ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                    ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                    ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]

    def __init__(self, values, major=1):
        self.values, self.n, self.deleted = (ctypes.c_int64 * len(values))(*values), ctypes.c_int64(len(values)), []
        self.of = self.Struct(major=major, deleter=self.Struct.Deleter(self.deleted.append), data=ctypes.addressof(self.values),
                              device=(1, 0), ndim=1, code=0, bits=64, lanes=1, shape=ctypes.pointer(self.n))
        self.new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
        self.name = b"dltensor_versioned"

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        self.capsule = self.new(ctypes.addressof(self.of), self.name, None)
        return self.capsule


def refused(churn):
    """Where a call is not made, since Python refuses one of its arguments, the others are given back."""
    def graph():
        g = churn.Graph()
        g.add_nodes("paper", 3)
        return g

    def none_kept(g, name, text, f, *args, **kw):
        fails(name, text, f, *args, **kw)
        assert not g._lent.arrays, (f, g._lent.arrays)
    g = graph()
    good, bad = np.arange(3), np.array([1j, 2, 3])
    for first in (Managed([0, 1, 2]), good):
        none_kept(g, "E_DTYPE", "complex128", g.add_edges, "cites", "paper", "paper", first, bad)
        none_kept(g, "E_DTYPE", "complex128", g.add_edges_csr, "cites", "paper", "paper", first, bad)
        none_kept(g, "E_DTYPE", "complex128", g.add_csr, "paper", "x", 3, first, good, bad)
        none_kept(g, "E_DTYPE", "complex128", g.add_masks, "paper", "split", first, good, bad)
        none_kept(g, "ArgumentError", "", g.add_csr, "paper", "x", "many", first, good)
        none_kept(g, "ArgumentError", "", g.add_column, "paper", "y", first, "class", categories="many")
        none_kept(g, "encode", "encode", g.add_column, "paper", "y", first, "class", names=[1, 2, 3])
        if first is not good:
            assert len(first.deleted) == 6 and set(first.deleted) == {ctypes.addressof(first.of)}, first.deleted
    old = Managed([0, 1, 2], major=2)  # refused by the library, which deletes it
    none_kept(g, "E_ARG", "version 2.0", g.add_edges, "cites", "paper", "paper", good, old)
    assert len(old.deleted) == 1
    kept = Managed([0, 1, 2])
    g.add_edges("cites", "paper", "paper", kept, kept)
    g.close()
    assert len(kept.deleted) == 2
    after = Managed([0, 1, 2])
    none_kept(g, "E_STATE", "closed", g.add_edges, "cites", "paper", "paper", good, after)
    g = graph()
    g.commit()
    none_kept(g, "E_DTYPE", "complex128", g.append, "paper", {"y": good, "x": bad})
    none_kept(g, "E_DTYPE", "complex128", g.append, "cites", src=good, dst=bad)
    none_kept(g, "TypeError", "", g.append, "paper", {"y": good}, count="many")
    g.close()
    none_kept(g, "E_STATE", "closed", g.append, "paper", {"y": good})
    assert not after.deleted and churn._graph._capsule_is(after.capsule, after.name), "still its maker's"


def ends_of_the_interpreter():
    """Whatever is still there, in whatever order it goes; threads that are inside of calls."""
    code = """
import threading, churn
g = churn.Graph.read(%r)
t = churn.Trainer(g, seed=1, epochs=2)
t.train()
s = churn.Model(t.weights_to_bytes()).session(g)
cycle = [t, s, g]
cycle.append(cycle)
def serve(own):
    while True:
        own.predict(range(2708))
for _ in range(2):
    threading.Thread(target=serve, args=(s.clone(),), daemon=True).start()
""" % CORA
    assert run(sys.executable, "-c", code) == ""


# ---- errors and interruptions -----------------------------------------------------------------------
def errors(churn, graph):
    assert str(fails("E_IO", "nowhere", churn.Graph.read, "nowhere")) and issubclass(churn.Error, RuntimeError)
    fails("TypeError", "'sead'", churn.Trainer, graph, sead=1)
    fails("TypeError", "integer", churn.Trainer, graph, seed=1.5)
    fails("E_RANGE", "epochs", churn.Trainer, graph, epochs=-1)
    fails("E_MISSING", "batch", churn.Trainer, graph, batch=3)
    t = churn.Trainer(graph)
    fails("E_STATE", "seed", t.set, "seed", 3)
    fails("E_STATE", "", t.load, graph)
    fails("E_STATE", "data", churn.Trainer().predict)
    fails("E_FORMAT", "", churn.Model, b"no weights")
    fails("E_IO", "nowhere", churn.Model, "nowhere")
    fails("E_STATE", "", graph.add_nodes, "more", 3)
    g = churn.Graph()
    g.add_nodes("paper", 3)
    fails("E_ARG", "paper", g.add_nodes, "paper", 3)
    fails("E_RANGE", "", g.add_edges, "cites", "paper", "paper", [0], [3])
    fails("E_SHAPE", "", g.add_column, "paper", "x", np.zeros((4, 2)))
    fails("E_VALUE", "row 1", g.add_column, "paper", "x", [[0.0], [np.nan], [0]])
    fails("E_SHAPE", "0 dimensions", g.add_column, "paper", "x", 3.0)
    fails("E_DTYPE", "complex128", g.add_column, "paper", "x", [1j, 2, 3])
    fails("E_ARG", "say its kind", g.add_column, "paper", "z", [1, 2, 3])
    fails("E_ARG", "no kind", g.add_column, "paper", "x", [1, 2, 3], "flaot")
    fails("E_MISSING", "edge_index", churn.Graph.from_pyg, Store(num_nodes=3))
    fails("E_ARG", "how many rows", churn.Graph.from_arrays, {"paper": {}})
    g.commit().commit()
    fails("E_MISSING", "no edge type 'cites'", churn.Trainer, g)
    busy = threading.Thread(target=lambda: t.train())
    t.set("epochs", 10**6)
    busy.start()
    seen = []
    while not seen:
        try:
            t.predict()
        except churn.Error as e:
            seen.append(str(e))
    assert seen == ["this Trainer is in use: one thread at a time"], seen
    t.stop()
    busy.join()


def interruptions(churn, graph):
    """Ctrl-C, and whatever a progress function raises, leave training behind a whole step."""
    t = churn.Trainer(graph, seed=7, epochs=4)

    def second(now):
        if now.epochs_done == 1:
            raise KeyboardInterrupt
    fails("KeyboardInterrupt", "", t.train, progress=second, checkpoint="python.ckpt")
    assert t.epochs_done == 1 and read("python.ckpt") == t.to_bytes()
    went_on = churn.Trainer(graph, resume=read("python.ckpt"))
    went_on.train(checkpoint="went_on.ckpt")
    assert read("went_on.ckpt") == read("want.ckpt")
    again = churn.Trainer(graph, seed=7, epochs=10**6)
    signal.signal(signal.SIGALRM, signal.default_int_handler)  # as SIGINT, from a clock
    for k in range(60):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.0003 * k)
            again.train()
        except KeyboardInterrupt:
            pass
    again.set("epochs", again.epochs_done + 2)
    end = again.epochs_total
    again.train(checkpoint="again.ckpt")
    run("./trainer", "--data", CORA, "--seed", "7", "--epochs", str(end), "--checkpoint", "whole.ckpt")
    assert read("again.ckpt") == read("whole.ckpt"), end


class Cell(io.StringIO):
    """What a notebook has for standard error: no descriptor, no terminal; what was flushed is shown."""
    shown = ""

    def flush(self):
        self.shown = self.getvalue()


def typed(churn):
    """All that the packages say has its types, which py.typed promises to who checks."""
    for package in (os.path.dirname(churn.__file__), TOP + "/frontend/python/gnnc"):
        assert os.path.exists(package + "/py.typed")
        functions = 0
        for name in [n for n in os.listdir(package) if n.endswith(".py")]:
            for f in ast.walk(ast.parse(read(f"{package}/{name}"))):
                if isinstance(f, ast.FunctionDef):
                    a, functions = f.args, functions + 1
                    bare = [x.arg for x in [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg] if x and not x.annotation]
                    assert f.returns and not set(bare) - {"self", "cls"}, (package, name, f.name, bare)
        assert functions > 10, package


def lines(churn, graph):
    """A progress line that is written over; what the library says."""
    code = "import churn; churn.Trainer(%r, epochs=3).train(progress=True)" % CORA
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stderr.decode()
    assert said.endswith("\n") and said.count("\n") == 1, said
    assert re.search(r"\repoch 3/3  loss 1\.9\d+  loss\.val 1\.9\d+  accuracy\.val 0\.\d+  \d+ s *$", said.rstrip("\n")), said
    t = churn.Trainer(graph, epochs=2)
    cell = Cell()
    with contextlib.redirect_stderr(cell):
        t.train(progress=True)
    shown = cell.getvalue().rstrip().split("\r")
    assert cell.shown == cell.getvalue().rstrip("\n") and len(shown) > 2 and shown[0] == "" and "epoch 2/2" in shown[-1], cell.getvalue()
    heard, logged = [], logging.Handler()
    logged.emit = lambda record: heard.append(record.getMessage())
    logging.getLogger("churn").addHandler(logged)
    logging.getLogger("churn").propagate = False
    other = churn.Trainer(graph, weights=renamed(t.weights_to_bytes()))
    assert any("conv3.bias" in h for h in heard), heard
    told = []
    churn.Trainer(graph, weights=renamed(other.weights_to_bytes()), messages=told.append)
    assert told == heard, (told, heard)
    logging.getLogger("churn").removeHandler(logged)


def renamed(weights):
    """safetensors with one tensor more."""
    n = int.from_bytes(weights[:8], "little")
    head = json.loads(weights[8:8 + n])
    end = len(weights) - 8 - n
    head["conv3.bias"] = {"dtype": "F32", "shape": [1], "data_offsets": [end, end + 4]}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + weights[8 + n:] + bytes(4)


# ---- other models -------------------------------------------------------------------------------------
SHOP = """
graph Shop {
  node user { city: cat[K];  y: class[C];  split }
  node item timeless { x: f32[F];  seen: time }
  edge buys: user -> item { w: f32 }
  edge likes: user -> item
}
model M(g: Shop) -> f32[user, C] {
  cities = embedding(K, 4)
  l = linear(4)
  out = linear(C)
  h = l(g.item.x)[g.buys.dst] * g.buys.w
  back = reverse(g.likes)
  return out(cities(g.user.city) + sum(h, over = g.buys.src) + sum(l(g.item.x)[back.src], over = back.dst))
}
train M { target user.y   loss cross_entropy   metric accuracy   optimizer adam(lr = 1e-2)   epochs 3 }
"""


def several_types():
    """Names instead of numbers, dates, HeteroData; and a name that is not the symbol's."""
    with open("shop.gnn", "w", encoding="utf-8") as f:
        f.write(SHOP)
    shop = emit("shop.gnn", "Shop", "-O0", "--name=my_shop")
    assert os.path.exists("shop" + WHEEL)
    r = np.random.default_rng(3)
    n, m, e = 40, 15, 90
    city = r.choice(["oslo", "rome", "lima"], n)
    y = r.choice(np.array(["good", "bad", None], dtype=object), n)
    known = np.array([v is not None for v in y])
    split, x = 1 + np.arange(n) % 3, r.normal(size=(m, 3))
    buys, likes = (r.integers(0, (n, m), (e, 2)).T for _ in range(2))
    w = r.random(e)
    seen = np.array(["2024-01-0%d" % (1 + i % 9) for i in range(m)], dtype="datetime64[D]")
    arrays = {"user": {"city": city, "y": y, "split": split}, "item": {"x": x, "seen": seen},
              ("user", "buys", "item"): {"edge_index": buys, "w": w}, ("user", "likes", "item"): likes}
    graph = shop.Graph.from_arrays(arrays)
    columns = graph.tables["user"].columns
    assert columns["city"].names == ["lima", "oslo", "rome"] and columns["y"].names == ["bad", "good"], columns
    t = shop.Trainer(graph, epochs=3)
    t.train(checkpoint="shop.ckpt")
    codes = np.unique(city, return_inverse=True)[1]
    labels = np.where(known, np.where(y == "good", 1, 0), -1)
    masks = {p + "_mask": Tensor((split == 1 + i).astype(np.int8)) for i, p in enumerate(("train", "val", "test"))}
    data = Hetero({"user": Store(city=codes, y=labels, num_nodes=n, **masks),
                   "item": Store(x=Tensor(x), seen=np.arange(m) * 1.5, num_nodes=m),
                   ("user", "buys", "item"): Store(edge_index=Tensor(buys), edge_attr=Tensor(w)),
                   ("user", "likes", "item"): Store(edge_index=Tensor(likes))})
    other = shop.Trainer(shop.Graph.from_pyg(data), epochs=3)
    other.train()
    assert (other.predict() == t.predict()).all()
    of_arrow(shop, arrays, t.predict())
    s = shop.Model(t.weights_to_bytes()).session(graph)
    assert np.abs(s.predict(range(n)) - t.predict()).max() < 1e-5
    known_names = shop.Graph.from_arrays({"user": {"city": shop.Column(city[:5], names=["oslo", "rome", "lima"])}, "item": {"x": x, "seen": seen},
                                          ("user", "buys", "item"): {"edge_index": buys[:, :0], "w": w[:0]},
                                          ("user", "likes", "item"): buys[:, :0]})
    assert known_names.tables["user"].columns["city"].names == ["oslo", "rome", "lima"]
    fails("E_RANGE", "row 1 of 'user.city' is 'paris'", shop.Graph.from_arrays, {"user": {"city": shop.Column(
        np.array(["rome", "paris"]), names=["rome"])}})
    fails("E_MISSING", "no edge type ('user', 'likes', 'item')", shop.Graph.from_pyg,
          Hetero({"user": Store(num_nodes=n), "item": Store(num_nodes=m), ("user", "buys", "item"): Store(edge_index=buys)}))
    fails("E_ARG", "2 node types (user, item)", shop.Graph.from_pyg, Store(num_nodes=n, edge_index=buys))


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


RELEASES = [ctypes.CFUNCTYPE(None, ctypes.POINTER(t)) for t in (ArrowSchema, ArrowArray)]
ArrowSchema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                        ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
                        ("dictionary", ctypes.c_void_p), ("release", RELEASES[0]), ("private", ctypes.c_void_p)]
ArrowArray._fields_ = [(n, ctypes.c_int64) for n in ("length", "null_count", "offset", "n_buffers", "n_children")] + \
                      [("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
                       ("dictionary", ctypes.c_void_p), ("release", RELEASES[1]), ("private", ctypes.c_void_p)]


class RecordBatch:
    """What pyarrow's has, of float64 and of texts."""
    def __init__(self, columns):
        self.schema, self.kept, self.released = Store(names=list(columns)), [], 0
        parts = [self.part(name, v) for name, v in columns.items()]
        n = len(next(iter(columns.values())))
        self.pair = (self.schema_of(b"+s", b"", [p[0] for p in parts]), self.array_of(n, [None], [p[1] for p in parts]))

    def schema_of(self, form, name, children=()):
        links = self.keep((ctypes.POINTER(ArrowSchema) * len(children))(*map(ctypes.pointer, children)))
        return self.keep(ArrowSchema(form, name, None, 0, len(children), links, None, self.keep(RELEASES[0](self.release)), None))

    def array_of(self, n, buffers, children=()):
        links = self.keep((ctypes.POINTER(ArrowArray) * len(children))(*map(ctypes.pointer, children)))
        room = self.keep((ctypes.c_void_p * len(buffers))(*buffers))
        return self.keep(ArrowArray(n, 0, 0, len(buffers), len(children), room, links, None, self.keep(RELEASES[1](self.release)), None))

    def part(self, name, values):
        if values.dtype.kind == "f":
            form, arrays = b"g", [values]
        else:
            form, raw = b"u", [str(v).encode() for v in values]
            arrays = [np.cumsum([0] + [len(v) for v in raw], dtype=np.int32), np.frombuffer(b"".join(raw), np.uint8)]
        return self.schema_of(form, name.encode()), self.array_of(len(values), [None] + [self.keep(a).ctypes.data for a in arrays])

    def keep(self, value):
        self.kept.append(value)
        return value

    def release(self, of):
        self.released += 1
        of.contents.release = type(of.contents.release)()

    def __arrow_c_array__(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return tuple(new(ctypes.addressof(p), n, None) for p, n in zip(self.pair, (b"arrow_schema", b"arrow_array")))


def of_arrow(shop, arrays, want):
    """Texts, dates in seconds and numbers of record batches are those of arrays; each batch is released once."""
    graph, user, item = shop.Graph(), arrays["user"], arrays["item"]
    graph.add_nodes("user", len(user["city"]))
    graph.add_nodes("item", len(item["x"]))
    likes, buys = arrays["user", "likes", "item"], arrays["user", "buys", "item"]
    graph.add_edges("likes", "user", "item", *likes)
    graph.add_edges("buys", "user", "item", *buys["edge_index"])
    batches = [RecordBatch({"city": user["city"]}), RecordBatch({"seen": item["seen"].astype("datetime64[s]").astype(float)}),
               RecordBatch({"w": buys["w"]})]
    for table, batch in zip(("user", "item", "buys"), batches):
        graph.add_arrow(table, batch)
    graph.add_column("user", "y", user["y"])
    graph.add_column("user", "split", user["split"])
    graph.add_column("item", "x", item["x"])
    fails("E_SHAPE", "a batch of 3 rows", graph.add_arrow, "buys", RecordBatch({"more": np.zeros(3)}))
    fails("E_ARG", "released", graph.add_arrow, "buys", batches[2])
    graph.commit()
    assert graph.tables["user"].columns["city"].names == ["lima", "oslo", "rome"]
    t = shop.Trainer(graph, epochs=3)
    t.train()
    assert (t.predict() == want).all()
    del t, graph
    gc.collect()
    assert [b.released for b in batches] == [2, 2, 2], [b.released for b in batches]


def pairs_of_nodes():
    """Scores of pairs, and the best of a source, are those that sorting all scores gives."""
    from session_links import USERS, SCORES, shop, shop_model
    bought, _ = shop("shop", 40, False)
    with open("pairs.gnn", "w", encoding="utf-8") as f:
        f.write(shop_model(*SCORES["drawn"]).replace('"layers/', '"%s/models/layers/' % TOP))
    pairs = emit("pairs.gnn", "scored")
    doc = pairs.__doc__
    assert "Session.predict_links" in doc and "s.predict_links([" in doc and "Session.predict\n" not in doc and "s.predict(" not in doc, doc
    graph = pairs.Graph.read("shop")
    t = pairs.Trainer(graph, epochs=2)
    t.train()
    s = pairs.Model(t.weights_to_bytes()).session(graph)
    assert s.link_sizes() == (USERS, 40, 1) and s.rows == 0
    in_order = np.array(sorted(bought, key=lambda edge: edge[1]))
    assert np.allclose(s.predict_links(in_order[:, 0], in_order[:, 1]), t.predict(), rtol=1e-5, atol=1e-6)
    scores = s.predict_links(np.repeat(np.arange(USERS), 40), list(range(40)) * USERS).reshape(USERS, 40)
    dst, best = s.top_links(np.arange(USERS), 5)
    for u in range(USERS):
        left = [d for d in np.argsort(-scores[u], kind="stable") if (u, d) not in bought][:5]
        assert list(dst[u]) == left and list(best[u]) == list(scores[u][left]), u
    assert (s.top_links([3], 40, known=True)[0] >= 0).all()
    with s.legend() as legend:
        assert (legend.table, legend.destinations, legend.rows, legend.row_shape) == ("user", "item", len(bought), ())
        first = [legend.ends(e) for e in legend.links(3)]
        assert sorted(first) == sorted(p for p in bought if p[0] == 3) and legend.ids([3], destinations=True) == [None]
        assert np.allclose(legend.convert(best[0]), 1 / (1 + np.exp(-best[0].astype(float))), rtol=1e-6)
        legend.write("best.csv", best[0], rows=[0] * 5, destinations=dst[0])
        with open("best.csv", encoding="utf-8") as f:
            assert [(int(r["source"]), int(r["destination"])) for r in csv.DictReader(f)] == [(0, d) for d in dst[0]]
        fails("E_ARG", "of no classes", legend.classes, best[0])
        fails("E_RANGE", "no row 13", legend.links, USERS)
    s.set_seed(5)
    fails("E_ARG", "destinations are 2", s.predict_links, [0], [0, 1])
    fails("E_ARG", "integers", s.predict_links, [0.5], [0])
    fails("E_RANGE", "destination 40", s.predict_links, [0], [40])
    fails("E_RANGE", "kind -1", s.top_links, [0], 2, [-1])
    fails("E_ARG", "", s.top_links, [0], 0)
    fails("E_STATE", "scores links", s.predict, [0])
    fails("E_ARG", "'t' is no column that 'pairs' reads of pairs", s.predict_links, [0], [0], columns={"t": [1.0]})


def pairs_say_how_they_were_made():
    """Columns of pairs are the model's edges' as they were fitted, or an error."""
    with open("priced.nodes.csv", "w", encoding="utf-8") as f:
        f.write("id,x\n" + "".join(f"{i},{i % 5 / 4}\n" for i in range(20)))
    with open("priced.edges.csv", "w", encoding="utf-8") as f:
        f.write("src,dst,w,split\n" + "".join(f"{i % 20},{(7 * i + 1) % 20},{10 + i},{'train' if i < 50 else 'val'}\n" for i in range(60)))
    run(GNNC, "import", "priced.nodes.csv", "priced.edges.csv", "-o", "priced.d", "--node", "v", "--edge", "l", "--standardize")
    with open(TOP + "/tests/fuzz/calls_pairs.gnn", encoding="utf-8") as f:
        text = f.read().replace("x: f32[X]", "x: f32").replace("near(g.v.x)", "near(expand(g.v.x, 1))")
    with open("priced.gnn", "w", encoding="utf-8") as f:
        f.write(text)
    priced = emit("priced.gnn", "priced", "-O0")
    trainer = priced.Trainer("priced.d", epochs=1)
    trainer.train()
    model = trainer.to_model()
    s, e = model.session(priced.Graph.read("priced.d")), priced.Encoder(model)
    ends, w = ([0, 3], [5, 4]), e.encode("l", "w", {"w": [20, 31]})
    want = s.predict_links(*ends, columns={"w": priced.Column(w, encoder=e)})
    assert np.isfinite(want).all()
    assert np.array_equal(s.predict_links(*ends, columns={"w": priced.Column(w, encoder="unchecked")}), want)
    fails("E_ARG", "l.w: the values do not say how they were made, and are a number standardised: mean", s.predict_links, *ends, columns={"w": [20.0, 31.0]})
    run(GNNC, "import", "priced.nodes.csv", "priced.edges.csv", "-o", "plain.d", "--node", "v", "--edge", "l")
    other = priced.Encoder("plain.d")
    fails("E_ARG", "l.w is a number standardised: mean", s.top_links, [0], 1, columns={"w": priced.Column(w[:1], encoder=other)})


def links_by_time():
    """A pair brings its time, as numbers or dates."""
    with open(TOP + "/models/events.gnn", encoding="utf-8") as f:
        text = f.read().replace(", negatives = g.no_event", "").replace("  edge no_event", "  # edge no_event")
    with open("mail.gnn", "w", encoding="utf-8") as f:
        f.write(text)
    mail, r = emit("mail.gnn", "mail", "-O0"), np.random.default_rng(2)
    ends, t = r.integers(0, 12, (2, 40)), np.sort(r.integers(0, 10**6, 40)).astype("datetime64[s]")
    graph = mail.Graph.from_arrays({"vertex": 12, ("vertex", "event", "vertex"): {"edge_index": ends, "t": t, "split": 1 + np.arange(40) // 30}})
    trainer = mail.Trainer(graph, epochs=1)
    trainer.train()
    s, order = trainer.to_model().session(graph), np.argsort(ends[1], kind="stable")
    assert s.pair_columns == ["t"]
    for times in (t, t.astype(np.float64)):
        assert np.allclose(s.predict_links(*ends[:, order], columns={"t": times[order]}), trainer.predict(), rtol=1e-6)
    dst, best = s.top_links([ends[0, 39]], 3, known=True, columns={"t": t[39:]})
    scores = s.predict_links(np.repeat(ends[0, 39], 12), np.arange(12), columns={"t": np.repeat(t[39:], 12)})
    assert list(dst[0]) == list(np.argsort(-scores, kind="stable")[:3]) and (best[0] == scores[dst[0]]).all()
    own, asked = trainer.to_model().session(), {"t": t[order]}
    tables = {"vertex": 12, ("vertex", "event", "vertex"): {"edge_index": ends, "t": t}}
    assert (own.predict_subgraph_links(tables, *ends[:, order], columns=asked) == s.predict_links(*ends[:, order], columns=asked)).all()
    among, of = own.top_subgraph_links(tables, [ends[0, 39]], 3, known=True, columns={"t": t[39:]})
    assert (among == dst).all() and (of == best).all()
    fails("E_RANGE", "destination 12", own.predict_subgraph_links, tables, [0], [12], columns={"t": t[:1]})
    fails("E_MISSING", "no column 't'", own.predict_subgraph_links, tables, [0], [1])
    fails("E_STATE", "has a graph", s.predict_subgraph_links, tables, [0], [1], columns={"t": t[:1]})
    fails("E_MISSING", "no column 't'", s.predict_links, [0], [1])
    fails("E_SHAPE", "pairs.t", s.predict_links, [0], [1], columns={"t": [1.0, 2.0]})


EDGES = """
graph G {
  node v { x: f32[F] }
  edge e: v -> v { y: class[C]; split }
}
model M(g: G) -> f32[e, C] {
  out = linear(C)
  return out(g.v.x)[g.e.dst]
}
train M { target e.y   loss cross_entropy   optimizer adam }
"""


def no_rows():
    """Rows of edges are not served: the package says why."""
    with open("edges.gnn", "w", encoding="utf-8") as f:
        f.write(EDGES)
    edges = emit("edges.gnn", "edges", "-O0")
    assert "There is no Model" in edges.__doc__ and "Session.predict" not in edges.__doc__, edges.__doc__
    fails("E_STATE", "'pred' has no row for each node", edges.Model, b"")


def rows_of_graphs():
    """Of all of them, and of one that the caller brings."""
    graphs = emit(TOP + "/models/molecule.gnn", "molecule", "-O0")
    r = np.random.default_rng(5)
    ptr = np.arange(13) * 4
    ring = np.array([(4 * g + i, 4 * g + (i + 1) % 4) for g in range(12) for i in range(4)]).T
    atoms, bonds = ({"%s_%d" % (c, k): r.integers(0, 3, 48) for k in range(n)} for c, n in (("x", 9), ("attr", 3)))
    y, split = r.normal(size=(12, 1)).astype(np.float32), 1 + np.arange(12) % 3
    batch = Store({k: Tensor(v) for k, v in {**atoms, **bonds}.items()}, num_graphs=12, num_nodes=48, ptr=Tensor(ptr), edge_index=Tensor(ring),
                  y=Tensor(y), split=split)
    given = graphs.Graph.from_arrays({"graph": {"y": y, "split": split}, "vertex": {"graph_ptr": ptr, **atoms},
                                      ("vertex", "link", "vertex"): {"edge_index": ring, **bonds}})
    a, b = (graphs.Trainer(g, epochs=1, seed=2) for g in (graphs.Graph.from_pyg(batch), given))
    for t in (a, b):
        t.train()
    assert a.predict().shape == (12, 1) and (a.predict() == b.predict()).all()
    m = a.to_model()
    with m.session(given) as over, m.session() as own:
        assert over.rows == 12 and (over.predict() == a.predict()).all() and (over.predict([7, 7]) == a.predict()[[7, 7]]).all()
        tables = {"graph": 1, "vertex": {"graph_ptr": np.array([0, 4]), **{k: v[8:12] for k, v in atoms.items()}},
                  ("vertex", "link", "vertex"): {"edge_index": ring[:, 8:12] - 8, **{k: v[8:12] for k, v in bonds.items()}}}
        assert (own.predict_subgraph(tables, [0]) == a.predict()[2]).all()
        fails("E_RANGE", "row 1: ", own.predict_subgraph, tables, [1])
        fails("E_VALUE", "an edge of 'link' leads from", own.predict_subgraph, {**tables, "graph": 2, "vertex": {**tables["vertex"], "graph_ptr": np.array([0, 1, 4])}}, [0])


def names():
    model = TOP + "/models/gcn.gnn"
    with open(TOP + "/frontend/cli/cli_name.c", encoding="utf-8") as f:
        refused = set(ast.literal_eval("(" + re.search(r"modules\[\] =(.*?);", f.read(), re.S).group(1) + ")").split())
    own = {n for n in getattr(sys, "stdlib_module_names", ()) if n[0] != "_"}
    assert own <= refused, own - refused
    os.makedirs("names")
    for name, why in (("json", "Python's own"), ("lambda", "Python's own"), ("numpy", "Python's own"), ("a-b", "is no name"),
                      ("1st", "is no name"), ("_x", "is no name"), ("", "is no name"), ("gnnc", "--name"), ("for", "Python's own"),
                      ("static", "--name")):
        said = run(GNNC, model, "--emit=python", "-o", "names/" + name, status=2)
        assert why in said and not os.listdir("names"), (name, said)
    assert "--runtime=shared is for" in run(GNNC, model, "--emit=python", "--runtime=shared", "-o", "names/x", status=2)
    assert "has a trainer" in run(GNNC, model, "--emit=python", "--infer", "-o", "names/x", status=2)
    os.makedirs("half/x/py.typed")  # a directory: cannot be replaced
    run(GNNC, model, "-O0", "--emit=python", "-o", "half/x", status=1)
    assert os.listdir("half") == ["x"] and os.listdir("half/x") == ["py.typed"]


# ---- rows of cells -----------------------------------------------------------------------------------------
def rows_of_cells():
    """An encoder makes of cells what the import made of them, in the data's own order of names."""
    os.makedirs("cells")
    rows = [("a", "berlin", "20", "yes", "train"), ("b", "ankara", "40", "no", "train"), ("c", "cairo", "60", "yes", "val"),
            ("d", "ankara", "30", "no", "test")]
    with open("cells/nodes.csv", "w", encoding="utf-8") as f:
        f.writelines(",".join(r) + "\n" for r in [("id", "city", "age", "y", "split"), *rows])
    with open("cells/edges.csv", "w", encoding="utf-8") as f:
        f.write("src,dst\na,b\n")
    run(GNNC, "import", "cells/nodes.csv", "cells/edges.csv", "-o", "cells.d", "--kind", "y=class", "--kind", "city=cat")
    with open("cells.gnn", "w", encoding="utf-8") as f:
        f.write("""graph G { node vertex { city: cat[K]; age: f32; y: class[C]; split }  edge link: vertex -> vertex }
model M(g: G) -> f32[vertex, C] {
  e = embedding(K, 4)
  l = linear(C)
  return l(e(g.vertex.city)) + expand(g.vertex.age, C)
}
train M { target vertex.y  loss cross_entropy  optimizer adam(lr = 0.1)  epochs 2  keep last }
""")
    cells = emit("cells.gnn", "cells", "-O0")
    graph = cells.Graph.read("cells.d")
    trainer = cells.Trainer(graph)
    trainer.train()
    trainer.save_weights("cells.ckpt")
    model = trainer.to_model()
    for source in (model, "cells.ckpt", "cells.d"):
        e = cells.Encoder(source)
        made = {c.column: c for c in e.columns("vertex")}
        assert made["city"].names == ("ankara", "berlin", "cairo") and made["city"].kind == "cat" and made["y"].may_lack, made
        assert e.columns("nothing") == []
        raw = {"city": [r[1] for r in rows], "age": [int(r[2]) for r in rows]}
        assert list(e.encode("vertex", "city", raw)) == [1, 0, 2, 0]
        ages = e.encode("vertex", "age", {**raw, "age": [r[2] for r in rows]})
        assert ages.dtype == np.float32 and np.array_equal(ages, e.encode("vertex", "age", raw))
    fails("E_RANGE", "'oslo'", e.encode, "vertex", "city", {"city": ["ankara", "oslo"]})
    fails("E_VALUE", "row 1 holds a NUL byte", e.encode, "vertex", "city", {"city": ["ankara", "ankara\0x"]})
    fails("E_MISSING", "vertex.height", e.encode, "vertex", "height", {})
    fails("E_SHAPE", "1 and 2 rows", e.encode, "vertex", "city", {"city": ["ankara"], "age": [1, 2]})
    fails("E_STATE", "closed", lambda: (e.close(), e.columns("vertex")))
    before = model.session(graph).predict()
    assert cells.Encoder(model).append(graph, "vertex", {"city": ["berlin", "cairo"], "age": np.array([20.0, 60.0])}) == 4
    graph.commit()
    session = cells.Session(model, graph, device="cpu")
    assert session.device == "cpu" and session.set_stream(0) is None
    assert np.array_equal(session.predict([4, 5]), before[[0, 2]])
    the_legend(model.session(cells.Graph.read("cells.d")), before)
    arrays_say_how_they_were_made(cells)
    fails("E_MISSING", "'cuda'", cells.Session, model, graph, device="cuda")


def arrays_say_how_they_were_made(cells):
    """Numbers of a model that has them standardised, and codes whose names it knows: right, or an error with both sides; never silent."""
    run(GNNC, "import", "cells/nodes.csv", "cells/edges.csv", "-o", "scaled.d", "--kind", "y=class", "--kind", "city=cat", "--standardize")
    trainer = cells.Trainer("scaled.d")
    trainer.train()
    model, told, ends = trainer.to_model(), [], {("vertex", "link", "vertex"): [[0], [1]]}
    encoder, plain = cells.Encoder(model), cells.Encoder("cells.d")
    raw = {"city": ["berlin", "ankara"], "age": [20, 40]}
    age, city = (encoder.encode("vertex", c, raw) for c in ("age", "city"))
    C, read = cells.Column, cells.Session(model, cells.Graph.read("scaled.d"), messages=told.append)
    want = read.predict([0, 1])
    for ages, cities, why in (
            (C(age, encoder=encoder), C(city, encoder=encoder), None),
            (C(age, encoder="unchecked"), C(city, encoder="unchecked"), None),
            (C(age, encoder=encoder), np.array(raw["city"]), None),
            (C(age, encoder=encoder), C(city, names=["ankara", "berlin", "cairo"], encoder=encoder), None),
            (age, C(city, encoder=encoder), "does not say how 'vertex.age' was made, which in the model of weights of a trainer is a number standardised: mean"),
            (C(age, encoder=encoder), city, "has no names for the codes of 'vertex.city', and the model of weights of a trainer was trained with 'ankara', 'berlin', 'cairo'"),
            (C(age, encoder=plain), C(city, encoder=encoder), "'vertex.age' is a number as it is, and in the model of weights of a trainer a number standardised: mean"),
            (C(age, encoder=encoder), C(city, names=["berlin", "ankara", "cairo"], encoder=encoder), "vertex.city has other names than"),
            (C(age, encoder=encoder), C(city, "class", encoder=encoder), "vertex.city is of kind class, and of kind cat in"),
            (C(np.stack([age, age], 1), encoder=encoder), C(city, encoder=encoder), "vertex.age has 2 values a row, and 1 in"),
            (C(age, encoder=encoder), C(city + 2, encoder=encoder), "more, or another order"),
            (C(age, encoder=model), C(city, encoder=encoder), "is no Encoder, nor"),
    ):
        tables = {"vertex": {"age": ages, "city": cities}, **ends}
        for ask in (lambda: cells.Session(model, cells.Graph.from_arrays(tables), messages=told.append).predict([0, 1]),
                    lambda: cells.Session(model, messages=told.append).predict_subgraph(tables, [0, 1])):
            try:
                got = ask()
                assert why is None and np.array_equal(got, want), (why, got, want)
            except cells.Error as e:
                assert why and why in str(e), (why, e)
    fails("E_ARG", "a number standardised: mean", cells.Session, model, cells.Graph.read("cells.d"), messages=told.append)
    graph = cells.Graph.read("scaled.d")
    fails("E_MISSING", "there is no column 'height'", graph.set_encoded, "vertex", "height", encoder)
    fails("E_ARG", "vertex.age: the values do not say how they were made, and are a number standardised: mean", graph.commit().append,
          "vertex", {"age": age, "city": city})
    fails("E_ARG", "vertex.age is a number standardised: mean", graph.append, "vertex", {"age": C(age, encoder=plain), "city": city})
    for by in (encoder, "unchecked"):
        graph.append("vertex", {"age": C(age, encoder=by), "city": C(city, encoder=by)})
    graph.commit()
    assert np.array_equal(cells.Session(model, graph, messages=told.append).predict([4, 5, 6, 7]), np.concatenate([want, want]))
    assert told == [], told
    with open("cells/keys.csv", "w", encoding="utf-8") as f:
        f.write("id,age\n9007199254740993,1\n7,2\n")
    with open("cells/of_keys.csv", "w", encoding="utf-8") as f:
        f.write("src,dst\n7,9007199254740993\n")
    run(GNNC, "import", "cells/keys.csv", "cells/of_keys.csv", "-o", "keys.d")
    for key in ([2**53 + 1, -2**53 - 1], [2**63 - 1, 7]):  # whole numbers that no double tells apart
        assert cells.Encoder("keys.d").encode("vertex", "id", {"id": np.array(key)}).tolist() == key, key
    fails("E_VALUE", "is not a whole number", cells.Encoder("keys.d").encode, "vertex", "id", {"id": np.array([2**63], np.uint64)})
    other = read.clone()
    read.close()
    assert np.isfinite(other.predict([0, 1])).all()


def the_legend(session, scores):
    """Ids as they were imported, names of classes, probabilities."""
    legend = session.legend()
    assert repr(legend) == "<Legend of vertex: classes of 4 rows>" and legend.has_ids and legend.has_classes
    assert legend.ids([2, 0]) == ["c", "a"] and list(legend.find(["c", "a"])) == [2, 0] and list(legend.find("d")) == [3]
    assert legend.values == ["no", "yes"] and legend.classes(scores) == [legend.values[i] for i in scores.argmax(axis=1)]
    assert legend.classes([[np.nan, np.nan]]) == [None] and legend.word == "probability"
    for name in ("nobody", "a\0"):
        fails("E_RANGE", "no row of 'vertex' is called", legend.find, [name])
    legend.write("rows.jsonl", scores[[2, 0]], rows=[2, 0], format="jsonl", top=1)
    with open("rows.jsonl", encoding="utf-8") as f:
        told = [json.loads(line) for line in f]
    best = legend.convert(scores).max(axis=1)
    assert [(r["id"], r["prediction"]) for r in told] == [(legend.ids([i])[0], legend.classes(scores[[i]])[0]) for i in (2, 0)], told
    assert np.allclose([r["probability_1"] for r in told], best[[2, 0]], rtol=1e-6), told
    session.close()
    fails("E_STATE", "this Session is closed", legend.ids, [0])
    legend.close()
    fails("E_STATE", "closed", legend.ids, [0])


# ---- the documentation -----------------------------------------------------------------------------------
def documentation():
    """Each block of docs/python.md in its order, in one program."""
    with open(TOP + "/docs/python.md", encoding="utf-8") as f:
        blocks = re.findall(r"^```python\n(.*?)^```", f.read(), re.M | re.S)
    assert len(blocks) > 3
    shutil.copytree(CORA, "data")
    shutil.copy(TOP + "/models/gcn.gnn", "churn.gnn")
    os.symlink(TOP + "/models", "models")
    with open("documentation.py", "w", encoding="utf-8") as f:
        f.write("\n".join(blocks))
    run(sys.executable, "documentation.py")


def a_product():
    """docs/embedding/nightly.py trains and serves as its page says."""
    with open(TOP + "/docs/embedding/README.md", encoding="utf-8") as f:
        says = re.search(r"nightly\.py 2>/dev/null\n```\n```text\n(.*?)```", f.read(), re.S).group(1)
    os.mkdir("product")
    run(GNNC, "-I" + TOP + "/models", TOP + "/docs/embedding/customers.gnn", "--target=cpu", "--emit=python", "-o", "product/churn")
    p = subprocess.run([sys.executable, TOP + "/docs/embedding/nightly.py"], capture_output=True, text=True, timeout=100,
                       env=dict(os.environ, PYTHONPATH="product"), check=False)
    assert (p.returncode, p.stdout) == (0, says) and "##] 100 %" in p.stderr, (p.returncode, p.stdout, p.stderr[-2000:])


def main():
    sys.path.insert(0, os.getcwd())
    churn = emit(TOP + "/models/gcn.gnn", "churn", "--embed=h")
    python_header.the_interface(churn._abi, TOP)
    python_header.the_options(churn, TOP)
    the_options(churn)
    typed(churn)
    the_wheel()
    the_installer()
    graph = same_bits(churn)
    scores = metrics_and_values(churn, graph)
    rows_by_themselves(churn, graph, scores)
    subgraphs(churn, graph, scores)
    rows_that_come_later(churn)
    lives(churn)
    refused(churn)
    ends_of_the_interpreter()
    errors(churn, graph)
    interruptions(churn, graph)
    lines(churn, graph)
    several_types()
    pairs_of_nodes()
    links_by_time()
    pairs_say_how_they_were_made()
    no_rows()
    rows_of_graphs()
    names()
    rows_of_cells()
    python_compile.compiling(TOP, churn)
    documentation()
    a_product()


if __name__ == "__main__":
    main()
