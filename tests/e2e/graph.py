#!/usr/bin/env python3
"""Data from a host's arrays train to the bits of a data directory: each directory is read here, by Python, and given to the
library array by array, through gnnc_graph_*.

    graph.py GNNC TOP CORA
"""
import ast
import ctypes
import json
import os
import subprocess
import sys

from batches import MODEL, Trainer, data
from directory import column, relation, write
from pieces import MOLECULES, molecules

KINDS = ["float", "csr", "cat", "class", "multilabel", "time", "id", "split"]
# An element type's number in gnnc.h, its bytes, and a wider one that holds the same values.
TYPES = {"<f4": (2, 4, ctypes.c_float), "<f8": (3, 8, ctypes.c_double), "|i1": (4, 1, ctypes.c_int8),
         "<i4": (6, 4, ctypes.c_int32), "<i8": (7, 8, ctypes.c_int64)}
WIDER = {"<f4": "<f8", "|i1": "<i8", "<i4": "<i8"}
DONE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Array(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("data", ctypes.c_void_p), ("dtype", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("shape", ctypes.c_int64 * 8), ("stride", ctypes.c_int64 * 8),
                ("strided", ctypes.c_int32), ("borrowed", ctypes.c_int32), ("done", DONE), ("user", ctypes.c_void_p)]


class Host:
    """How a host holds its arrays: as they are, or wider, backwards and lent."""
    def __init__(self, odd):
        self.odd, self.kept, self.lent, self.returned = odd, [], 0, 0
        self.done = DONE(self.back)

    def back(self, _):
        self.returned += 1

    def array(self, values, descr, shape):
        """Row-major values as a gnnc_array."""
        if self.odd and descr in WIDER:
            descr = WIDER[descr]
        number, size, kind = TYPES[descr]
        if self.odd:  # the last element first
            values = values[::-1]
        memory = (kind * max(1, len(values)))(*values)
        self.kept.append(memory)
        a = Array(ctypes.sizeof(Array), ctypes.addressof(memory), number, len(shape), (ctypes.c_int64 * 8)(*shape))
        if self.odd:
            a.data += size * max(0, len(values) - 1)
            a.strided, a.borrowed, a.done = 1, 1, self.done
            step = -size
            for i in reversed(range(len(shape))):
                a.stride[i], step = step, step * shape[i]
            self.lent += 1
        return ctypes.byref(a)


def npy(path):
    with open(path, "rb") as f:
        head = f.read(10)
        header = ast.literal_eval(f.read(int.from_bytes(head[8:10], "little")).decode())
        kind = TYPES[header["descr"]][2]
        body = f.read()
    assert not header["fortran_order"]
    return list((kind * (len(body) // ctypes.sizeof(kind))).from_buffer_copy(body)), header["descr"], header["shape"]


class Graph:
    def __init__(self, lib, path, odd):
        self.lib, self.path, self.host, self.g = lib, path, Host(odd), ctypes.c_void_p()
        lib.gnnc_graph_error.restype = ctypes.c_char_p
        with open(path + "/schema.json", encoding="utf-8") as f:
            schema = json.load(f)
        self.ok(lib.gnnc_graph_create(ctypes.byref(self.g)))
        for name, t in schema.get("graphs", {}).items():
            self.ok(lib.gnnc_graph_add_graphs(self.g, name.encode(), ctypes.c_int64(t["count"])))
        for name, t in schema["nodes"].items():
            self.ok(lib.gnnc_graph_add_nodes(self.g, name.encode(), ctypes.c_int64(t["count"])))
            if "graph" in t:
                self.ok(lib.gnnc_graph_divide(self.g, name.encode(), t["graph"].encode(), self.file(t["graph_ptr"])))
        for name, t in schema["edges"].items():
            ends, descr, (_, n) = npy("%s/%s" % (path, t["file"]))
            self.ok(lib.gnnc_graph_add_edges(self.g, name.encode(), t["src"].encode(), t["dst"].encode(),
                                             self.host.array(ends[:n], descr, (n,)), self.host.array(ends[n:], descr, (n,))))
        for tables in (schema["nodes"], schema["edges"], schema.get("graphs", {})):
            for name, t in tables.items():
                for column, c in t.get("columns", {}).items():
                    self.column(name, column, c)
        self.ok(lib.gnnc_graph_commit(self.g))

    def ok(self, status):
        assert status == 0, self.lib.gnnc_graph_error(self.g)

    def file(self, name):
        return self.host.array(*npy("%s/%s" % (self.path, name)))

    def column(self, table, name, c):
        table, name = table.encode(), name.encode()
        if c["kind"] == "csr":
            self.ok(self.lib.gnnc_graph_add_csr(self.g, table, name, ctypes.c_int64(c["shape"][1]), self.file(c["ptr"]),
                                                self.file(c["col"]), self.file(c["val"])))
            return
        names = c.get("names") and (ctypes.c_char_p * len(c["names"]))(*[n.encode() for n in c["names"]])
        self.ok(self.lib.gnnc_graph_add_column(self.g, table, name, KINDS.index(c["kind"]), self.file(c["file"]),
                                               ctypes.c_int64(c.get("categories", -1)), names))

    def release(self):
        self.lib.gnnc_graph_release(self.g)


class Loads:
    """A library whose trainers load a graph where they would load a directory."""
    def __init__(self, lib, graph):
        self.lib, self.graph = lib, graph

    def __getattr__(self, name):
        return getattr(self.lib, name)

    def gnnc_trainer_load(self, t, _):
        return self.lib.gnnc_trainer_load_graph(t, self.graph.g)


def trained(t, name):
    for _ in range(3):
        t.epoch()
    t.ok(t.lib.gnnc_trainer_save(t.t, name.encode()))
    t.lib.gnnc_trainer_destroy(t.t)
    with open(name, "rb") as f:
        return f.read()


def same_bits(lib, path):
    want = trained(Trainer(lib, path), "directory.ckpt")
    for odd in (False, True):
        graph = Graph(lib, path, odd)
        assert trained(Trainer(Loads(lib, graph), ""), "arrays.ckpt") == want, (path, odd)
        assert graph.host.returned == graph.host.lent, "all were converted, so that none is kept"
        graph.release()
        assert graph.host.returned == graph.host.lent


CITIES = """
graph G { node person { city: cat[K];  y: class[C];  split }  edge knows: person -> person }
model Moods(g: G) -> f32[person, C] {
  e = embedding(K, 4)
  l = linear(C)
  return l(sum(e(g.person.city)[g.knows.src], over = g.knows.dst))
}
train Moods { target person.y  loss cross_entropy  metric accuracy  optimizer adam(lr = 0.1)  epochs 3 }
"""


def cities(path, names):
    n = 60
    os.mkdir(path)
    write(path, {"person": {"count": n, "columns": {
        "city": column(path, "city", "cat", [i % len(names) for i in range(n)], categories=len(names), names=names),
        "y": column(path, "y", "class", [i % 3 for i in range(n)], categories=3, names=["bad", "fair", "good"]),
        "split": column(path, "split", "split", [1 + i % 3 for i in range(n)])}}},
        {"knows": relation(path, "knows", "person", "person", [(i, i * 7 % n) for i in range(n)])})


class Given(Loads):
    """A library whose trainers are given weights before their data."""
    def gnnc_trainer_load(self, t, path):
        assert self.lib.gnnc_trainer_load_weights(t, b"known.weights") == 0, self.lib.gnnc_trainer_error(t)
        return super().gnnc_trainer_load(t, path) if self.graph else self.lib.gnnc_trainer_load(t, path)


def codes_are_read_apart(lib):
    """One trainer reads a graph's categories by the names of its weights; another that shares the graph does not see that."""
    cities("known", ["ankara", "berlin", "cairo", "delhi"])
    cities("other", ["delhi", "ankara"])
    first = Trainer(lib, "known")
    first.epoch()
    first.ok(lib.gnnc_trainer_save_weights(first.t, b"known.weights"))
    graph = Graph(lib, "other", False)
    by_names = Trainer(Given(lib, graph), "")
    assert trained(Trainer(Loads(lib, graph), ""), "shared.ckpt") == trained(Trainer(lib, "other"), "alone.ckpt")
    want = Trainer(Given(lib, None), "other").values()
    assert by_names.values() == want and want != Trainer(lib, "other").values()
    lib.gnnc_trainer_destroy(by_names.t)
    graph.release()


def compiled(gnnc, model, name):
    subprocess.run([gnnc, model, "--emit=lib", "--name=model", "-o", name], check=True, stdout=subprocess.DEVNULL)
    return ctypes.CDLL(os.path.abspath(f"lib{name}.so"))


def main():
    gnnc, top, cora = sys.argv[1:]
    same_bits(compiled(gnnc, top + "/models/gcn.gnn", "gcn"), cora)
    data("shop")
    molecules("molecules", 100)
    for name, text in (("shop", MODEL), ("molecules", MOLECULES % ("batch_norm()", "adam(lr = 1e-2)", "sample { batch 8 }"))):
        with open(name + ".gnn", "w", encoding="utf-8") as f:
            f.write(text)
        same_bits(compiled(gnnc, name + ".gnn", name), name)
    with open("cities.gnn", "w", encoding="utf-8") as f:
        f.write(CITIES)
    codes_are_read_apart(compiled(gnnc, "cities.gnn", "cities"))


if __name__ == "__main__":
    main()
