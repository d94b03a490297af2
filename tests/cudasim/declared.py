"""Random data for the graph that a model declares: every node and edge type, with the columns that it reads."""
import json
import os
import random
import re
import sys
from collections import namedtuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from directory import save  # noqa: E402

# nodes: of the first type, of others a few more;  of_graph: a graph has from .. to nodes;  width: by the name of the dimension
Sizes = namedtuple("Sizes", "nodes graphs of_graph edges width")
SMALL = Sizes(50, 90, (3, 8), 400, {"f32": 7, "class": 3, "cat": 5, "multilabel": 2})
LARGE = Sizes(1000, 200, (5, 30), 8000, {"f32": 32, "class": 5, "cat": 20, "multilabel": 12})


def shifts(text):
    """Whether it has a batch norm, behind which rounding moves a bias by a whole step."""
    return "batch_norm" in re.sub(r"#.*", "", text)


def declaration(path):
    """[(word, name, ends, {column: type})] of its graph: nodes, edges and graphs."""
    text = re.sub(r"#.*|\btimeless\b", "", open(path, encoding="utf-8").read())
    block = text[re.search(r"^graph \w+ \{", text, re.M).end():]
    block = block[:re.search(r"^\}", block, re.M).start()]
    out = []
    for word, rest, columns in re.findall(r"\b(node|edge|graph)\b([^{}\n]*)(?:\{([^}]*)\})?", block):
        name, _, ends = (s.strip() for s in rest.partition(":"))
        pairs = [c.split(":") for c in re.split(r"[;\n]", columns) if c.strip()]
        out.append((word, name, [e.strip() for e in ends.split("->")] if ends else None,
                    {p[0].strip(): p[1].strip() if len(p) > 1 else p[0].strip() for p in pairs}))
    return out


def column(r, folder, table, name, kind, n, width):
    file = f"{table}_{name}.npy"
    path = os.path.join(folder, file)
    kind = kind.replace("csr ", "")
    base, wide = kind.split("[")[0], "[" in kind
    k = width.get(base, 0)
    if base == "split":
        splits = [1 if i < 0.7 * n else 2 if i < 0.85 * n else 3 for i in range(n)]  # as many in any table of n rows
        r.shuffle(splits)
        save(path, "b", "|i1", (n,), splits)
        return {"kind": "split", "file": file}
    if base in ("class", "cat"):
        save(path, "i", "<i4", (n,), [r.randrange(k) for _ in range(n)])
        return {"kind": base, "categories": k, "file": file}
    shape = (n, k) if wide else (n,)
    value = (lambda: float(r.randrange(2))) if base == "multilabel" else (lambda: r.gauss(0, 1) * (r.random() < 0.5))
    save(path, "f", "<f4", shape, [value() for _ in range(n * k if wide else n)])
    return {"kind": base.replace("f32", "float"), "shape": list(shape), "file": file}


def random_edges(r, n, n_src, n_dst, ptr):
    """Distinct ones without loops; of many graphs, each within one."""
    found = set()
    while len(found) < n:
        if ptr:
            g = r.randrange(len(ptr) - 1)
            e = r.randrange(ptr[g], ptr[g + 1]), r.randrange(ptr[g], ptr[g + 1])
        else:
            e = r.randrange(n_src), min(int(r.random() ** 2 * n_dst), n_dst - 1)  # some have many
        if e[0] != e[1]:
            found.add(e)
    found = sorted(found)
    r.shuffle(found)
    return found


def write(folder, path, sizes):
    r = random.Random(os.path.basename(path))
    os.mkdir(folder)
    decl = declaration(path)
    schema = {"format": 1, "nodes": {}, "edges": {}, "graphs": {}}
    many, ptr, count = any(w == "graph" for w, *_ in decl), None, {}
    for word, name, _, columns in decl:
        if word == "graph":
            name = "graph"
            schema["graphs"][name] = {"count": sizes.graphs, "columns": {
                c: column(r, folder, name, c, k, sizes.graphs, sizes.width) for c, k in columns.items()}}
        if word != "node":
            continue
        n = count[name] = sizes.nodes + len(count)
        entry = schema["nodes"][name] = {}
        if many:
            ptr = [0]
            for _ in range(sizes.graphs):
                ptr.append(ptr[-1] + r.randrange(*sizes.of_graph))
            n = count[name] = ptr[-1]
            save(f"{folder}/{name}_ptr.npy", "q", "<i8", (sizes.graphs + 1,), ptr)
            entry.update(graph="graph", graph_ptr=f"{name}_ptr.npy")
        entry.update(count=n, columns={c: column(r, folder, name, c, k, n, sizes.width) for c, k in columns.items()})
    for word, name, ends, columns in decl:
        if word != "edge":
            continue
        e = random_edges(r, sizes.edges, count[ends[0]], count[ends[1]], ptr)
        save(f"{folder}/{name}.npy", "i", "<i4", (2, len(e)), [x[0] for x in e] + [x[1] for x in e])
        schema["edges"][name] = {"src": ends[0], "dst": ends[1], "count": len(e), "file": f"{name}.npy", "columns": {
            c: column(r, folder, name, c, k, len(e), sizes.width) for c, k in columns.items()}}
    with open(folder + "/schema.json", "w", encoding="utf-8") as f:
        json.dump(schema, f)
