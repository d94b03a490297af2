#!/usr/bin/env python3
"""Sessions read a model's weights in its file, mapped, or in one copy that the model has: none of their own.

    mapped.py GNNC
"""
import json
import os
import random
import re
import struct
import sys

from directory import column, relation, write
from sessions import Library, Memory, OK, Session, build, near, rows, train

SQUARE = 1000  # rows and columns of a layer
KINDS, WIDTH, N = 40000, 48, 300  # a table of 7.7 MB, for few rows of data
TABLE = KINDS * WIDTH * 4
MODEL = """
graph G {
  node v { x: f32[X];  kind: cat[K];  y: class[C];  split }
  edge e: v -> v
}
model M(g: G; hidden: int = %d) -> f32[v, C] {
  kinds = embedding(K, hidden)
  lin = linear(hidden)
  out = linear(C)
  h = relu(kinds(g.v.kind) + lin(g.v.x))
  return out(h + mean(h[g.e.src], over = g.e.dst))
}
train M { target v.y   loss cross_entropy   optimizer adam(lr = 1e-2)   epochs 1 }
""" % WIDTH


class Bytes(Memory):
    """Counts what is allocated, and how much of it is there."""
    def __init__(self):
        super().__init__()
        self.bytes, self.size = 0, {}

    def give(self, user, n):
        p = super().give(user, n)
        self.size[p] = n
        self.bytes += n
        return p

    def take(self, user, p):
        self.bytes -= self.size.pop(p)
        super().take(user, p)


def data(path):
    r = random.Random(3)
    os.mkdir(path)
    v = {"x": column(path, "x", "float", [r.gauss(0, 1) for _ in range(5 * N)], width=5),
         "kind": column(path, "kind", "cat", [r.randrange(KINDS) for _ in range(N)], categories=KINDS),
         "y": column(path, "y", "class", [r.randrange(3) for _ in range(N)], categories=3),
         "split": column(path, "split", "split", [1 + i % 3 for i in range(N)])}
    write(path, {"v": {"count": N, "columns": v}}, {"e": relation(path, "e", "v", "v", [(r.randrange(N), r.randrange(N)) for _ in range(3 * N)])})


def header(path):
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        return n, json.loads(f.read(n))


def shifted(path, to):
    """The same tensors, none of them at a place of 64 bytes."""
    with open(path, "rb") as f:
        raw = f.read()
    n = struct.unpack("<Q", raw[:8])[0]
    text = raw[8:8 + n].rstrip() + b" " * 200
    text = text[:len(text) - (len(text) + 8 - 24) % 64]  # 24 bytes behind a place
    with open(to, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + raw[8 + n:])


def widened(path, to):
    """The same in f64, which programs convert."""
    with open(path, "rb") as f:
        raw = f.read()
    n, entries = header(path)
    at, out, body = 0, {}, []
    for name, e in entries.items():
        if name == "__metadata__":
            out[name] = e
            continue
        first, last = e["data_offsets"]
        count = (last - first) // 4
        body.append(struct.pack("<%dd" % count, *struct.unpack("<%df" % count, raw[8 + n + first:8 + n + last])))
        out[name] = {"dtype": "F64", "shape": e["shape"], "data_offsets": [at, at + 8 * count]}
        at += 8 * count
    text = json.dumps(out).encode()
    text += b" " * (-len(text) % 8)
    with open(to, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(body))


def mappings(path):
    """Of the file in this process: how it is mapped, and the kilobytes of it that are no longer the file's."""
    found, own = [], 0
    with open("/proc/self/smaps", encoding="utf-8") as f:
        for line in f:
            head = re.match(r"[0-9a-f]+-[0-9a-f]+ (\S+) .*", line)
            if head:
                here = line.rstrip().endswith("/" + path)
                if here:
                    found.append(head[1])
            elif here and line.startswith("Anonymous:"):
                own += int(line.split()[1])
    return found, own


def check(library, graph, weights, want, copies):
    """copies: bytes of the weights that the model has itself."""
    memory, more = Bytes(), []
    m, st = library.model(weights, memory)
    assert st == OK, library.lib.gnnc_model_error(m)
    sessions, of_model = [], 0
    for k in range(8):
        mine, before = Bytes(), memory.bytes
        sessions.append(Session(library, m, graph, mine))
        assert sessions[-1].status == OK, sessions[-1].error()
        st, got = sessions[-1].predict(list(range(N)))
        assert st == OK and all(near(x, y) for x, y in zip(rows(got, 3, range(N)), want)), weights
        sessions[-1].memory = mine
        more.append(mine.bytes)
        assert k == 0 or memory.bytes == before, (weights, k)  # what the model makes it makes once
    assert max(more) < TABLE / 8, (weights, more)
    assert copies * TABLE <= memory.bytes < (copies + 1 / 8) * TABLE, (weights, memory.bytes)
    assert mappings(weights) == (["r--p"], 0), (weights, mappings(weights))
    library.lib.gnnc_model_release(m)
    for k, s in enumerate(sessions):
        assert mappings(weights)[0] == ["r--p"], (weights, k)  # until the last one has gone
        st, got = s.predict([5])
        assert st == OK and near(got, want[5])
        s.close()
        assert s.memory.live == 0
    assert mappings(weights)[0] == [] and memory.live == 0, (weights, mappings(weights), memory.live)
    print("ok", weights, "a session", more[0], "bytes")


def square(gnnc, graph, precision, own):
    """A square layer: what its products read, packed or rounded, the model has once.  own: megabytes of a session, at most."""
    name = "square_" + precision
    text = MODEL.replace("hidden: int = %d" % WIDTH, "hidden: int = %d" % SQUARE).replace("kinds = embedding(K, hidden)", "back = linear(hidden)")
    with open(name + ".gnn", "w", encoding="utf-8") as f:
        f.write(text.replace("kinds(g.v.kind) + lin(g.v.x)", "back(relu(lin(g.v.x)))"))
    build(gnnc, name + ".gnn", name, ("--precision=" + precision, "--precision.small-mib=0"))
    want, _ = train(name, "d", name + ".w")
    memory, library, sessions, made = Bytes(), Library(name + "_rows"), [], []
    m, st = library.model(name + ".w", memory)
    assert st == OK
    exact = 1e-6 if precision == "f32" else 0.02
    for _ in range(3):
        mine = Bytes()
        sessions.append(Session(library, m, graph, mine))
        assert sessions[-1].status == OK, sessions[-1].error()
        for ids in [7], [1, 7]:
            st, got = sessions[-1].predict(ids)
            assert st == OK and all(abs(x - y) < exact * max(map(abs, want)) for x, y in zip(got[-3:], want[21:24])), (list(got), want[21:24])
        sessions[-1].memory = mine
        assert mine.bytes < own * 1e6, (precision, mine.bytes)
        made.append(memory.bytes)
    assert made == made[:1] * 3 and (precision == "f32" or made[0] >= 2 * SQUARE * SQUARE), made
    library.lib.gnnc_model_release(m)
    for s in sessions:
        assert s.predict([7])[0] == OK
        s.close()
    assert memory.live == 0, memory.live
    print("ok a square layer in", precision)


def main():
    gnnc = sys.argv[1]
    with open("m.gnn", "w", encoding="utf-8") as f:
        f.write(MODEL)
    data("d")
    build(gnnc, "m.gnn", "m", ())
    want, n = train("m", "d", "w")
    want = rows(want, 3, range(n))
    library = Library("m_rows")
    graph = library.graph("d")
    shifted("w", "shifted")
    widened("w", "converted")
    for weights, copies in (("w", 0), ("shifted", 1), ("converted", 1)):
        check(library, graph, weights, want, copies)
    square(gnnc, graph, "f32", 2)
    square(gnnc, graph, "bf16", 2)
    library.lib.gnnc_graph_release(graph)


if __name__ == "__main__":
    main()
