"""Random data directories (docs/data.md) for the graph that a .gnn text declares, by the standard library.

What a table or column holds depends on the seed and its own name alone, so taking something out of the
declaration leaves the rest of the data as it was: that is what makes shrinking work."""
import array
import json
import os
import random
import re
import struct

CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|i1": "b"}
COUNTS = [1, 2, 3, 5, 7, 9, 12, 17, 40]
WIDTHS = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33]


def write_npy(path, descr, shape, values):
    """One little-endian .npy file, C order."""
    dims = "(" + "".join(f"{d}, " for d in shape) + ")"
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {dims}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + array.array(CODES[descr], values).tobytes())


def declared(text):
    """(nodes {type: {column: type}}, edges {name: (src, dst, columns)}, graph columns or None) of the graph in a .gnn text."""
    body = re.search(r"^graph \w+ \{\n(.*?)^\}", text, re.M | re.S)
    nodes, edges, graph = {}, {}, None
    inside = re.sub(r"#.*", "", body.group(1)) if body else ""
    for m in re.finditer(r"\b(node|edge|graph)\b\s*(\w*)\s*(?::\s*(\w+)\s*->\s*(\w+))?\s*(?:timeless\b)?\s*(?:\{([^}]*)\})?", inside):
        kind, name, src, dst, inner = m.groups()
        columns = {}
        for part in filter(None, (p.strip() for p in re.split(r"[;\n]", inner or ""))):
            column, _, ctype = part.partition(":")
            columns[column.strip()] = ctype.strip() or "split"
        if kind == "node":
            nodes[name] = columns
        elif kind == "edge":
            edges[name] = (src, dst, columns)
        else:
            graph = columns
    return nodes, edges, graph


class Data:
    """limit: no more rows of a node type than that.  trains: each split of the target has a row that can be learned."""

    def __init__(self, text, seed, limit=1000, trains=False):
        self.nodes, self.edges, self.graph = declared(text)
        self.seed, self.limit, self.trains = seed, limit, trains
        self.schema = {"format": 1, "nodes": {}, "edges": {}, "graphs": {}}

    def splits(self, r, n):
        values = [r.choice([1, 1, 2, 3, 0]) for _ in range(n)]
        return ([1, 2, 3] + values[3:])[:n] if self.trains else values

    def rng(self, *what):
        return random.Random("/".join(map(str, (self.seed,) + what)))

    def size(self, name):
        """Of a [K] in a column type."""
        return int(name) if name.isdigit() else self.rng("width", name).choice(WIDTHS)

    def categories(self, name):
        return int(name) if name.isdigit() else self.rng("categories", name).randint(1, 6)

    def count(self, node):
        n = min(self.limit, self.rng("count", node).choice(COUNTS))
        return max(n, 3) if self.trains else n

    def count_graphs(self):
        n = self.rng("graphs").randint(1, 4)
        return max(n, 3) if self.trains else n

    def number(self, r):
        """Of some seeds sums are exact in f32, of others not."""
        return r.randint(-32, 32) / 16 if self.seed % 2 else r.gauss(0, 1)

    def column(self, out, table, name, ctype, n):
        """Writes one column; returns its entry of the schema."""
        r, file = self.rng("column", table, name), f"{table}.{name}.npy"
        kind, _, inner = ctype.partition("[")
        dims = [d.strip() for d in inner.rstrip("]").split(",")] if inner else []

        def write(descr, dims, values, **more):
            write_npy(os.path.join(out, file), descr, dims, values)
            return {"file": file, **more}

        if kind == "split":
            return write("|i1", [n], self.splits(r, n), kind="split")
        if kind in ("cat", "class"):
            k = self.categories(dims[0])
            low = -1 if kind == "class" else 0
            values = [r.randint(low, k - 1) for _ in range(n)]
            if self.trains:
                values[:3] = [max(v, 0) for v in values[:3]]
            return write("<i4", [n], values, kind=kind, categories=k)
        if kind == "time":
            return write("<f8", [n], [r.randint(0, 100000) / 8 for _ in range(n)], kind="time")
        shape = [n] + [self.size(d) for d in dims]
        total = 1
        for d in shape:
            total *= d
        if kind == "multilabel":
            values = [r.choice([0.0, 1.0, float("nan")]) for _ in range(total)]
            if self.trains:
                values = [0.0 if v != v else v for v in values]
            return write("<f4", shape, values, kind="multilabel", shape=shape)
        if kind == "csr f32":
            return self.csr(out, table, name, r, shape)
        return write("<f4", shape, [self.number(r) for _ in range(total)], kind="float", shape=shape)

    def csr(self, out, table, name, r, shape):
        stem, ptr, col, val = f"{table}.{name}", [0], [], []
        density = r.choice([0.05, 0.3, 0.9])
        for _ in range(shape[0]):
            row = [c for c in range(shape[1]) if r.random() < density]
            col += row
            val += [self.number(r) for _ in row]
            ptr.append(len(col))
        write_npy(os.path.join(out, stem + ".ptr.npy"), "<i8", [len(ptr)], ptr)
        write_npy(os.path.join(out, stem + ".col.npy"), "<i4", [len(col)], col)
        write_npy(os.path.join(out, stem + ".val.npy"), "<f4", [len(val)], val)
        return {"kind": "csr", "shape": shape, **{k: f"{stem}.{k}.npy" for k in ("ptr", "col", "val")}}

    def ends(self, name, src, dst):
        """Some relations are empty, some point at one hub; parallel edges and self loops come by themselves."""
        r, n_src, n_dst = self.rng("edges", name), self.count(src), self.count(dst)
        n = r.choice([0, 1, n_src, 2 * n_dst, 3 * (n_src + n_dst), 3 * (n_src + n_dst)])
        if self.trains and "split" in self.edges[name][2]:
            n = max(n, 9)
        hub = r.random() < 0.2
        s = [r.randrange(n_src) for _ in range(n)]
        d = [0 if hub else r.randrange(n_dst) for _ in range(n)]
        if n > 2:
            s[-1], d[-1] = s[0], d[0]
        return s, d

    def columns(self, out, table, columns, n):
        return {c: self.column(out, table, c, t, n) for c, t in columns.items()}

    def write(self, out):
        os.makedirs(out, exist_ok=True)
        n_graphs = self.count_graphs()
        for t, columns in self.nodes.items():
            n = self.count(t)
            self.schema["nodes"][t] = {"count": n, "columns": self.columns(out, t, columns, n)}
            if self.graph is not None:
                cuts = sorted(self.rng("cuts", t).randint(0, n) for _ in range(n_graphs - 1))
                write_npy(os.path.join(out, t + ".graphs.npy"), "<i8", [n_graphs + 1], [0] + cuts + [n])
                self.schema["nodes"][t].update(graph="graph", graph_ptr=t + ".graphs.npy")
        for e, (src, dst, columns) in self.edges.items():
            s, d = self.ends(e, src, dst)
            write_npy(os.path.join(out, e + ".npy"), "<i4", [2, len(s)], s + d)
            self.schema["edges"][e] = {"src": src, "dst": dst, "count": len(s), "file": e + ".npy",
                                       "columns": self.columns(out, e, columns, len(s))}
        if self.graph is not None:
            self.schema["graphs"]["graph"] = {"count": n_graphs, "columns": self.columns(out, "graph", self.graph, n_graphs)}
        with open(os.path.join(out, "schema.json"), "w", encoding="utf-8") as f:
            json.dump(self.schema, f)
