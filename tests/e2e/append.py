#!/usr/bin/env python3
"""Rows appended to a graph (gnnc_graph_append) give the bits of a graph built at once, to trainers and to sessions; sessions
that were there before keep what they had; and a model with a row for each node refuses nodes that it has none for.

    append.py GNNC TOP CORA
"""
import ctypes
import json
import os
import random
import subprocess
import sys

import batches
from directory import column, relation, write
from graph import Array, Host, KINDS, npy, Loads, trained
from sessions import Library, MIXED, OK, Session, mixed

E_SHAPE = -2


class Values(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("column", ctypes.c_char_p), ("values", ctypes.POINTER(Array)),
                ("ptr", ctypes.POINTER(Array)), ("idx", ctypes.POINTER(Array)), ("names", ctypes.c_void_p),
                ("n_categories", ctypes.c_int64)]


class Rows(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("table", ctypes.c_char_p), ("count", ctypes.c_int64),
                ("src", ctypes.POINTER(Array)), ("dst", ctypes.POINTER(Array)), ("columns", ctypes.POINTER(Values)),
                ("n_columns", ctypes.c_int32), ("first", ctypes.c_int64), ("error", ctypes.c_char * 512)]


class Table:
    """Rows of a table: the ends of edges, and each column's values by row."""
    def __init__(self, path, name, t):
        self.name, self.count, self.columns, self.ends = name, t["count"], {}, None
        read = lambda file: npy("%s/%s" % (path, file))
        if "src" in t:
            flat, _, (_, n) = read(t["file"])
            self.types, self.ends = (t["src"], t["dst"]), list(zip(flat[:n], flat[n:]))
        for column, c in t.get("columns", {}).items():
            if c["kind"] == "csr":
                ptr, col, val = (read(c[k])[0] for k in ("ptr", "col", "val"))
                rows = [list(zip(col[ptr[i]:ptr[i + 1]], val[ptr[i]:ptr[i + 1]])) for i in range(self.count)]
                self.columns[column] = (c, "<f4", c["shape"][1:], rows)
            else:
                flat, descr, shape = read(c["file"])
                k = len(flat) // max(1, self.count)
                if c["kind"] == "split":  # [k, rows]
                    flat, shape = [flat[s * self.count + i] for i in range(self.count) for s in range(k)], (self.count,)
                self.columns[column] = (c, descr, list(shape[1:]), [flat[i * k:(i + 1) * k] for i in range(self.count)])


class Data:
    """A directory's tables, and which of their rows come later: a quarter of the nodes, and the edges that they are ends of."""
    def __init__(self, path):
        with open(path + "/schema.json", encoding="utf-8") as f:
            schema = json.load(f)
        self.nodes = [Table(path, name, t) for name, t in schema["nodes"].items()]
        self.edges = [Table(path, name, t) for name, t in schema["edges"].items()]
        self.early = {t.name: t.count - t.count // 4 for t in self.nodes}
        for t in self.edges:
            here = lambda e, t=t: all(end < self.early[of] for end, of in zip(t.ends[e], t.types))
            t.order = sorted(range(t.count), key=lambda e: not here(e))
            self.early[t.name] = sum(here(e) for e in range(t.count))
        for t in self.nodes:
            t.order = list(range(t.count))


class Grown:
    """A graph of the rows of `data` in their order: all of them, or those that are early, which others can be appended to."""
    def __init__(self, lib, data, whole):
        self.lib, self.data, self.host, self.g = lib, data, Host(False), ctypes.c_void_p()
        lib.gnnc_graph_error.restype = ctypes.c_char_p
        self.ok(lib.gnnc_graph_create(ctypes.byref(self.g)))
        rows = lambda t: t.order if whole else t.order[:data.early[t.name]]
        for t in data.nodes:
            self.ok(lib.gnnc_graph_add_nodes(self.g, t.name.encode(), ctypes.c_int64(len(rows(t)))))
        for t in data.edges:
            self.ok(lib.gnnc_graph_add_edges(self.g, t.name.encode(), *[n.encode() for n in t.types], *self.ends(t, rows(t))))
        for t in data.nodes + data.edges:
            for name, (c, *_) in t.columns.items():
                self.column(t, name, c, rows(t))
        self.commit()

    def ok(self, status):
        assert status == OK, (status, self.lib.gnnc_graph_error(self.g))

    def commit(self):
        self.ok(self.lib.gnnc_graph_commit(self.g))

    def ends(self, t, rows):
        return [self.host.array([t.ends[e][k] for e in rows], "<i4", (len(rows),)) for k in (0, 1)]

    def arrays(self, t, name, rows):
        """Of a column: its values; stored entries also their pointers and columns."""
        c, descr, shape, values = t.columns[name]
        if c["kind"] == "split":
            k = len(values[0])
            return [self.host.array([values[i][s] for s in range(k) for i in rows], descr, (k, len(rows)))]
        if c["kind"] != "csr":
            return [self.host.array([v for i in rows for v in values[i]], descr, (len(rows), *shape))]
        entries, ptr = [e for i in rows for e in values[i]], [0]
        for i in rows:
            ptr.append(ptr[-1] + len(values[i]))
        return [self.host.array(ptr, "<i8", (len(ptr),)), self.host.array([e[0] for e in entries], "<i4", (len(entries),)),
                self.host.array([e[1] for e in entries], "<f4", (len(entries),))]

    def column(self, t, name, c, rows):
        table, arrays = t.name.encode(), self.arrays(t, name, rows)
        if c["kind"] == "csr":
            self.ok(self.lib.gnnc_graph_add_csr(self.g, table, name.encode(), ctypes.c_int64(c["shape"][1]), *arrays))
        else:
            self.ok(self.lib.gnnc_graph_add_column(self.g, table, name.encode(), KINDS.index(c["kind"]), *arrays,
                                                   ctypes.c_int64(c.get("categories", -1)), None))

    def append(self, t, rows):
        point = lambda a: ctypes.pointer(a._obj)
        values = (Values * len(t.columns))()
        for v, name in zip(values, t.columns):
            arrays = [point(a) for a in self.arrays(t, name, rows)]
            v.struct_size, v.column, v.values = ctypes.sizeof(Values), name.encode(), arrays[-1]
            if len(arrays) == 3:
                v.ptr, v.idx = arrays[:2]
        r = Rows(ctypes.sizeof(Rows), t.name.encode(), len(rows), columns=values, n_columns=len(values))
        if t.ends:
            r.src, r.dst = [point(a) for a in self.ends(t, rows)]
        assert self.lib.gnnc_graph_append(self.g, ctypes.byref(r)) == OK, r.error
        return r.first

    def append_late(self, calls):
        """What is late in so many calls a table, all nodes before the edges; then they are there at once."""
        for t in self.data.nodes + self.data.edges:
            late = t.order[self.data.early[t.name]:]
            for k in range(calls):
                part = late[len(late) * k // calls:len(late) * (k + 1) // calls]
                first = self.append(t, part)
                assert first == self.data.early[t.name] + len(late) * k // calls, (t.name, first)
        self.commit()

    def release(self):
        self.lib.gnnc_graph_release(self.g)


def compiled(gnnc, path, name):
    """The library of a trainer, and that of a program that predicts rows."""
    for emit, to in (("lib", name), ("infer", name + "_rows")):
        subprocess.run([gnnc, path, "--target=cpu", "--emit=" + emit, "--name=" + (to if emit == "infer" else "model"), "-o", to],
                       check=True, stdout=subprocess.DEVNULL)
    return ctypes.CDLL(os.path.abspath("lib%s.so" % name))


def weights_of(lib, graph, path, epochs=2):
    t = batches.Trainer(Loads(lib, graph), "")
    for _ in range(epochs):
        t.epoch()
    t.ok(lib.gnnc_trainer_save_weights(t.t, path.encode()))
    lib.gnnc_trainer_destroy(t.t)


def rows_of(session):
    st, out = session.predict(list(range(session.rows)))
    assert st == OK, session.error()
    return bytes(out)


def same_bits(gnnc, path, name, directory):
    data, lib = Data(directory), compiled(gnnc, path, name)
    library = Library(name + "_rows")
    whole, rebuilt = Grown(lib, data, True), Grown(library.lib, data, True)
    want = trained(batches.Trainer(Loads(lib, whole), ""), "whole.ckpt")
    weights_of(lib, whole, name + ".weights")
    m, st = library.model(name + ".weights")
    assert st == OK
    s = Session(library, m, rebuilt.g)
    assert s.status == OK, s.error()
    wanted = rows_of(s)
    s.close()
    for calls in (1, 3):
        g = Grown(lib, data, False)
        before = trained(batches.Trainer(Loads(lib, g), ""), "before.ckpt")
        g.append_late(calls)
        assert before != want and trained(batches.Trainer(Loads(lib, g), ""), "appended.ckpt") == want, (name, calls)
        g.release()
    g = Grown(library.lib, data, False)
    old = Session(library, m, g.g)
    had = rows_of(old)
    g.append_late(2)
    new, late = Session(library, m, g.g), old.clone()
    assert new.status == OK and rows_of(new) == wanted and new.rows > old.rows, name
    assert rows_of(old) == had and rows_of(late) == had, name
    g.release()
    old.close()
    assert rows_of(late) == had and rows_of(new) == wanted, name
    for x in (late, new):
        x.close()
    library.lib.gnnc_model_release(m)
    for x in (whole, rebuilt):
        x.release()
    print("ok", name)


def rows_for_nodes(gnnc, path, directory):
    """New nodes have no row in the parameters of a model that has one for each."""
    data, lib = Data(directory), compiled(gnnc, path, "placed")
    library = Library("placed_rows")
    g, early = Grown(library.lib, data, False), Grown(lib, data, False)
    weights_of(lib, early, "placed.weights")
    m, _ = library.model("placed.weights")
    old = Session(library, m, g.g)
    assert old.status == OK, old.error()
    had, n = rows_of(old), old.rows
    g.append_late(1)
    s = Session(library, m, g.g)
    assert s.status == E_SHAPE and s.error() == (
        "placed.weights: 'place' has rows for the %d 'v' that it was trained with, and the graph has %d: the new ones have no row "
        "in it" % (n, data.nodes[0].count)), s.error()
    assert rows_of(old) == had
    for x in (old, s):
        x.close()
    library.lib.gnnc_model_release(m)
    for x in (g, early):
        x.release()
    print("ok rows for nodes")


def social(path, n=60):
    r = random.Random(3)
    os.mkdir(path)
    pairs = lambda k: [(r.randrange(n), r.randrange(n)) for _ in range(k)]
    parts = lambda k: column(path, "split%d" % k, "split", [1 + i % 3 for i in range(k)])
    write(path, {"vertex": {"count": n, "columns": {}}},
          {"link": relation(path, "link", "vertex", "vertex", pairs(240), split=parts(240)),
           "no_link": relation(path, "no_link", "vertex", "vertex", pairs(90), split=parts(90))})


def links(gnnc, path):
    """A model of links, which is trained, not served: the same, and the same refusal of its weights."""
    social("social")
    data = Data("social")
    subprocess.run([gnnc, path, "--target=cpu", "--emit=lib", "--name=model", "-o", "link"], check=True, stdout=subprocess.DEVNULL)
    lib = ctypes.CDLL(os.path.abspath("liblink.so"))
    g, whole = Grown(lib, data, False), Grown(lib, data, True)
    want = trained(batches.Trainer(Loads(lib, whole), ""), "whole.ckpt")
    weights_of(lib, g, "link.weights")
    g.append_late(2)
    assert trained(batches.Trainer(Loads(lib, g), ""), "appended.ckpt") == want
    t = ctypes.c_void_p()
    lib.gnnc_trainer_error.restype = ctypes.c_char_p
    assert lib.gnnc_trainer_create(ctypes.byref(t), ctypes.byref(ctypes.c_char.in_dll(lib, "model_program"))) == OK
    assert lib.gnnc_trainer_load_weights(t, b"link.weights") == OK
    assert lib.gnnc_trainer_load_graph(t, g.g) == E_SHAPE
    told = lib.gnnc_trainer_error(t).decode()
    assert "'x' has rows for the 45 'vertex' that it was trained with, and the graph has 60: the new" in told, told
    lib.gnnc_trainer_destroy(t)
    for x in (g, whole):
        x.release()
    print("ok links")


def main():
    gnnc, top, cora = sys.argv[1:4]
    layers = lambda text: text.replace('"layers/', '"%s/models/layers/' % top)
    same_bits(gnnc, top + "/models/gcn.gnn", "gcn", cora)
    batches.data("shop")
    mixed("mixed.data")
    for name, text in (("shop", batches.MODEL), ("timed", batches.TIMED), ("placed", MIXED)):
        with open(name + ".gnn", "w", encoding="utf-8") as f:
            f.write(layers(text))
    same_bits(gnnc, "shop.gnn", "shop", "shop")
    same_bits(gnnc, "timed.gnn", "timed", "shop")
    rows_for_nodes(gnnc, "placed.gnn", "mixed.data")
    links(gnnc, top + "/models/link.gnn")


if __name__ == "__main__":
    main()
