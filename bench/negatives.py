#!/usr/bin/env python3
"""Stores a negative for each held-out event of imported data, and says what two memories without a model reach.

usage: bench/negatives.py DIR [--historical]

DIR is what `gnnc import events.npz -o DIR` wrote.  It gets the edge type `no_event`: for each event of the
validation and test split, in its place and at its time, one pair with the same source.  Its destination is any
vertex, or with --historical (cf. Poursafaei et al. 2022) one that the source wrote to before, if there is another.
Drawn with a fixed seed.  DIR/baselines.json has the test AP, in %, of an edge memory (was there an event between
the two, either way?) and of recency (when was the last between them; else, the last of the destination).
"""
import argparse
import array
import ast
import itertools
import json
import random
import struct


def load(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<H", raw[8:10])[0]
    head = ast.literal_eval(raw[10:10 + n].decode().strip())
    return list(array.array({"<i4": "i", "<f8": "d", "|i1": "b"}[head["descr"]], raw[10 + n:]))


def save(path, descr, code, shape, values):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (descr, "".join("%d," % d for d in shape))
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + array.array(code, values).tobytes())


def average_precision(pos, neg):
    """Equal scores are one threshold."""
    ranked = sorted([(s, 1) for s in pos] + [(s, 0) for s in neg], reverse=True)
    hits = seen = total = 0
    for _, group in itertools.groupby(ranked, key=lambda x: x[0]):
        labels = [y for _, y in group]
        hits += sum(labels)
        seen += len(labels)
        total += sum(labels) * hits / seen
    return 100 * total / len(pos)


class Memory:
    """What is known before a time."""

    def __init__(self):
        self.pair, self.node, self.wrote = {}, {}, {}

    def scores(self, u, v):
        between = max(self.pair.get((u, v), -1), self.pair.get((v, u), -1))
        return between >= 0, (1, between) if between >= 0 else (0, self.node.get(v, -1))

    def add(self, u, v, t):
        self.pair[u, v] = self.node[u] = self.node[v] = t
        self.wrote.setdefault(u, {})[v] = True


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("dir")
    ap.add_argument("--historical", action="store_true")
    a = ap.parse_args()
    ends, at = load(a.dir + "/edge.event.npy"), load(a.dir + "/edge.event.t.npy")
    split = load(a.dir + "/edge.event.split.npy")
    schema = json.load(open(a.dir + "/schema.json"))
    n, m = schema["nodes"]["vertex"]["count"], len(at)
    if at != sorted(at):
        raise SystemExit("%s: the events are not in the order of time" % a.dir)
    events = list(zip(ends[:m], ends[m:], at, split))
    r, known, none = random.Random(0), Memory(), []
    test = {"edge memory": ([], []), "recency": ([], [])}
    for _, now in itertools.groupby(events, key=lambda e: e[2]):
        now = list(now)
        for u, v, _, s in now:
            if s < 2:
                continue
            others = [w for w in known.wrote.get(u, ()) if w != v] if a.historical else []
            w = r.choice(others) if others else r.randrange(n)
            none.append((u, w, s))
            for side, x in enumerate((v, w)):
                for name, score in zip(test, known.scores(u, x)):
                    if s == 3:
                        test[name][side].append(score)
        for u, v, t, _ in now:
            known.add(u, v, t)
    save(a.dir + "/edge.no_event.npy", "<i4", "i", (2, len(none)), [e[0] for e in none] + [e[1] for e in none])
    save(a.dir + "/edge.no_event.split.npy", "|i1", "b", (len(none),), [e[2] for e in none])
    schema["edges"]["no_event"] = {"count": len(none), "src": "vertex", "dst": "vertex", "file": "edge.no_event.npy",
                                   "columns": {"split": {"kind": "split", "file": "edge.no_event.split.npy"}}}
    json.dump(schema, open(a.dir + "/schema.json", "w"), indent=1)
    found = {name: round(average_precision(*x), 2) for name, x in test.items()}
    json.dump(found, open(a.dir + "/baselines.json", "w"))
    print(", ".join("%s: AP %.2f" % x for x in found.items()))


if __name__ == "__main__":
    main()
