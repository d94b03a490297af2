#!/usr/bin/env python3
"""gnnc partition: rows of every kind of column go where part_rows says, parts have their shares, few edges are cut, and a
trainer learns what it learns of the data as they were.  usage: partition.py GNNC CORA.  Prints `N passed, N failed`."""
import array
import ast
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from checks import bytes_of, check, end, run  # noqa: E402

GNNC, CORA = sys.argv[1:3]
CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|i1": "b", "<u2": "H"}


def refused(what, *command):
    r = subprocess.run(command, text=True, capture_output=True, check=False)
    check(" ".join(command[1:])[:100] + " is refused", r.returncode in (1, 2) and what in r.stderr, r.stdout + r.stderr)


def put(path, code, shape, values):
    head = f"{{'descr': '{code}', 'fortran_order': False, 'shape': ({','.join(map(str, shape))},), }}"
    head += " " * ((-len(head) - 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        f.write(array.array(CODES[code], values).tobytes())


def get(path):
    """Shape and values."""
    text = bytes_of(path)
    n = int.from_bytes(text[8:10], "little")
    head = ast.literal_eval(text[10:10 + n].decode())
    values = array.array(CODES[head["descr"]])
    values.frombytes(text[10 + n:])
    return head["shape"], values.tolist()


# ---- data with every kind of column ---------------------------------------------------------
def cliques(r, n, groups, degree, stray):
    """Edges within groups of every groups-th node, but for a share."""
    src, dst = [], []
    for v in range(n):
        for _ in range(degree):
            u = r.randrange(n) if r.random() < stray else (r.randrange(n // groups) * groups + v % groups) % n
            src.append(u)
            dst.append(v)
    return src, dst


def mixed(path):
    r = random.Random(3)
    n, m = 1200, 400
    os.mkdir(path)
    p = lambda name: os.path.join(path, name)  # noqa: E731
    put(p("x.npy"), "<f4", (n, 8), [r.gauss(0, 1) for _ in range(8 * n)])
    put(p("low.npy"), "<u2", (n, 3), [r.randrange(0x3f80) for _ in range(3 * n)])
    ptr, col = [0], []
    for _ in range(n):
        col += sorted(r.sample(range(20), r.randrange(5)))
        ptr.append(len(col))
    put(p("s.ptr.npy"), "<i8", (n + 1,), ptr)
    put(p("s.col.npy"), "<i4", (len(col),), col)
    put(p("s.val.npy"), "<f4", (len(col),), [r.random() for _ in col])
    put(p("cat.npy"), "<i4", (n, 2), [r.randrange(5) for _ in range(2 * n)])
    put(p("y.npy"), "<i4", (n,), [v % 3 if r.random() < 0.9 else -1 for v in range(n)])
    put(p("many.npy"), "<f4", (n, 4), [r.choice([0.0, 1.0]) for _ in range(4 * n)])
    put(p("when.npy"), "<f8", (n,), [1e9 + v for v in range(n)])
    put(p("id.npy"), "<i8", (n,), [10 * v for v in range(n)])
    put(p("split.npy"), "|i1", (2, n), [1 + v % 3 for v in range(n)] + [r.randrange(4) for _ in range(n)])
    with open(p("names.txt"), "w", encoding="utf-8") as f:
        f.write("\n".join(f"shop \\\\ {v}" for v in range(m)))
    src, dst = cliques(r, n, 4, 6, 0.1)
    put(p("cites.npy"), "<i4", (2, len(src)), src + dst)
    put(p("w.npy"), "<f4", (len(src), 2), [r.random() for _ in range(2 * len(src))])
    put(p("t.npy"), "<f8", (len(src),), [1e9 + e for e in range(len(src))])
    at = [v % 4 + 4 * r.randrange(m // 4) for v in range(n)]
    put(p("at.npy"), "<i4", (2, n), [*range(n)] + at)
    columns = {"x": {"kind": "float", "shape": [n, 8], "file": "x.npy", "why": "as it was"},
               "low": {"kind": "float", "shape": [n, 3], "dtype": "bf16", "file": "low.npy"},
               "s": {"kind": "csr", "shape": [n, 20], "ptr": "s.ptr.npy", "col": "s.col.npy", "val": "s.val.npy"},
               "cat": {"kind": "cat", "shape": [n, 2], "categories": 5, "names": list("abcde"), "file": "cat.npy"},
               "y": {"kind": "class", "categories": 3, "file": "y.npy",
                     "baselines": [{"name": "one class", "val": {"accuracy": 0.5}, "test": {}}]},
               "many": {"kind": "multilabel", "shape": [n, 4], "file": "many.npy"},
               "when": {"kind": "time", "encoder": {"as": "time", "form": "seconds"}, "file": "when.npy"},
               "id": {"kind": "id", "file": "id.npy"},
               "split": {"kind": "split", "file": "split.npy"}}
    schema = {"format": 1, "name": "mixed", "source": "drawn", "licence": "none",
              "nodes": {"paper": {"count": n, "time": "when", "columns": columns},
                        "shop": {"count": m, "names": "names.txt", "columns": {}}},
              "edges": {"cites": {"src": "paper", "dst": "paper", "count": len(src), "file": "cites.npy", "why": "drawn",
                                  "columns": {"w": {"kind": "float", "shape": [len(src), 2], "file": "w.npy"},
                                              "t": {"kind": "time", "file": "t.npy"}}},
                        "sold": {"src": "paper", "dst": "shop", "count": n, "file": "at.npy", "columns": {}}}}
    with open(p("schema.json"), "w", encoding="utf-8") as f:
        json.dump(schema, f)


def graphs(path):
    """Many graphs, of two node types that both have theirs."""
    r = random.Random(5)
    k = 60
    os.mkdir(path)
    p = lambda name: os.path.join(path, name)  # noqa: E731
    sizes = [r.randrange(1, 9) for _ in range(k)]
    ptr = [sum(sizes[:i]) for i in range(k + 1)]
    n = ptr[-1]
    src, dst = [], []
    for g in range(k):
        for v in range(ptr[g], ptr[g + 1]):
            src.append(r.randrange(ptr[g], ptr[g + 1]))
            dst.append(v)
    put(p("x.npy"), "<f4", (n, 3), [r.random() for _ in range(3 * n)])
    put(p("ptr.npy"), "<i8", (k + 1,), ptr)
    put(p("bond.npy"), "<i4", (2, len(src)), src + dst)
    put(p("y.npy"), "<f4", (k,), [r.random() for _ in range(k)])
    put(p("split.npy"), "|i1", (k,), [1 + (g > 40) + (g > 50) for g in range(k)])
    schema = {"format": 1,
              "nodes": {"atom": {"count": n, "graph": "molecule", "graph_ptr": "ptr.npy",
                                 "columns": {"x": {"kind": "float", "shape": [n, 3], "file": "x.npy"}}}},
              "edges": {"bond": {"src": "atom", "dst": "atom", "count": len(src), "file": "bond.npy", "columns": {}}},
              "graphs": {"molecule": {"count": k, "columns": {"y": {"kind": "float", "file": "y.npy"},
                                                              "split": {"kind": "split", "file": "split.npy"}}}}}
    with open(p("schema.json"), "w", encoding="utf-8") as f:
        json.dump(schema, f)


# ---- what must have moved -------------------------------------------------------------------------
def schema_of(path):
    with open(os.path.join(path, "schema.json"), encoding="utf-8") as f:
        return json.load(f)


def rows_of(path, c, n):
    """A column's values, row by row."""
    at = lambda key: get(os.path.join(path, c[key]))  # noqa: E731
    if c["kind"] == "csr":
        ptr, col, val = at("ptr")[1], at("col")[1], at("val")[1]
        return [(col[ptr[i]:ptr[i + 1]], val[ptr[i]:ptr[i + 1]]) for i in range(n)]
    shape, v = at("file")
    if c["kind"] == "split":
        k = len(v) // n
        return [[v[s * n + i] for s in range(k)] for i in range(n)]
    width = len(v) // n
    return [v[i * width:(i + 1) * width] for i in range(n)]


def same_but_moved(what, old, new, parts, again=False):
    a, b = schema_of(old), schema_of(new)
    rows = {}
    for section in ("nodes", "graphs"):
        for name, t in b.get(section, {}).items():
            rows[name] = get(os.path.join(new, t["part_rows"]))[1]
            ptr = get(os.path.join(new, t["part_ptr"]))[1]
            check(f"{what}: {name}: bounds", ptr[0] == 0 and ptr[-1] == t["count"] and ptr == sorted(ptr) and len(ptr) == parts + 1)
            check(f"{what}: {name}: rows once each", sorted(rows[name]) == [*range(t["count"])])
            for p in range(parts):
                part = rows[name][ptr[p]:ptr[p + 1]]
                check(f"{what}: {name}: in their order", again or part == sorted(part))
    for section in ("nodes", "edges", "graphs"):
        for name, t in a.get(section, {}).items():
            u, moved = b[section][name], rows.get(name)
            for key in ("count", "time", "why", "src", "dst", "graph"):
                check(f"{what}: {name}: {key}", t.get(key) == u.get(key))
            for column, c in t["columns"].items():
                d, n = u["columns"][column], t["count"]
                for key in {*c, *d} - {"file", "ptr", "col", "val", "train", "val", "test", "shape"}:
                    check(f"{what}: {name}.{column}: {key}", c.get(key) == d.get(key), (c, d))
                before, after = rows_of(old, c, n), rows_of(new, d, n)
                want = [before[i] for i in moved] if moved else before
                check(f"{what}: {name}.{column}", want == after)
            if "names" in t:
                lines = [bytes_of(os.path.join(x, s["names"])).decode().splitlines() for x, s in ((old, t), (new, u))]
                check(f"{what}: {name}: names", [lines[0][i] for i in moved] == lines[1])
            if "graph" in t:
                before, after = (get(os.path.join(x, s["graph_ptr"]))[1] for x, s in ((old, t), (new, u)))
                sizes = [before[g + 1] - before[g] for g in rows[t["graph"]]]
                check(f"{what}: {name}: graphs", [after[g + 1] - after[g] for g in range(len(sizes))] == sizes)
            if "src" in t:
                n, ends = t["count"], [get(os.path.join(x, s["file"]))[1] for x, s in ((old, t), (new, u))]
                back = [rows[t["src"]][v] for v in ends[1][:n]] + [rows[t["dst"]][v] for v in ends[1][n:]]
                check(f"{what}: {name}: ends", back == ends[0])


def most_of(new, name, column="split"):
    """The largest share of rows, and of training rows, that a part has."""
    t = schema_of(new)
    t = {**t["nodes"], **t.get("graphs", {})}[name]
    ptr = get(os.path.join(new, t["part_ptr"]))[1]
    train = get(os.path.join(new, t["columns"][column]["file"]))[1][:t["count"]] if column in t["columns"] else []
    parts = [(ptr[p + 1] - ptr[p], train[ptr[p]:ptr[p + 1]].count(1)) for p in range(len(ptr) - 1)]
    return [max(x) * len(parts) / max(1, sum(x)) for x in zip(*parts)]


def cut_of(new, edge):
    t = schema_of(new)
    e = t["edges"][edge]
    v = get(os.path.join(new, e["file"]))[1]
    ptr = [get(os.path.join(new, t["nodes"][e[end]]["part_ptr"]))[1] for end in ("src", "dst")]
    part = lambda bounds, i: sum(b <= i for b in bounds[1:-1])  # noqa: E731
    n = e["count"]
    return sum(part(ptr[0], v[i]) != part(ptr[1], v[n + i]) for i in range(n)) / n


mixed("mixed")
graphs("graphs")
for method in ("metis", "stream", "rows"):
    told = run(GNNC, "partition", "mixed", "4", "-o", "m." + method, "--method", method)
    check(f"{method}: told", f"4 parts, by {method}" in told, told)
    same_but_moved(method, "mixed", "m." + method, 4)
    cut = cut_of("m." + method, "cites")
    check(f"{method}: the cut", cut < {"metis": 0.15, "stream": 0.4, "rows": 1}[method], cut)
    shares = most_of("m." + method, "paper") + most_of("m." + method, "shop")[:1]
    check(f"{method}: balance", max(shares) < 1.05, shares)
    run(GNNC, "partition", "graphs", "3", "-o", "g." + method, "--method", method)
    same_but_moved("graphs by " + method, "graphs", "g." + method, 3)
    if method != "rows":
        shares = most_of("g." + method, "molecule") + most_of("g." + method, "atom")[:1]
        check(f"graphs by {method}: balance", max(shares) < 1.25, shares)
        check(f"graphs by {method}: none is cut", cut_of("g." + method, "bond") == 0)
rows = get("m.rows/node.paper.part_rows.npy")[1]
check("rows stay where they are", rows == sorted(rows))
told = [int(w) for w in run(GNNC, "partition", "mixed", "4", "-o", "told").split("cut: ")[1].split(" of ")[0].split()]
want = round(cut_of("told", "cites") * 7200 + cut_of("told", "sold") * 1200)
check("the cut that is told", told == [want], (told, want))

# ---- again, and in place ------------------------------------------------------------------------------
run(GNNC, "partition", "m.metis", "2", "-o", "again", "--method", "stream")
same_but_moved("twice", "mixed", "again", 2, again=True)
with open("again/my.ckpt", "w", encoding="utf-8") as f:
    f.write("kept")
run(GNNC, "partition", "again", "3", "-o", "again", "--force")
same_but_moved("in place", "mixed", "again", 3, again=True)
check("what no import wrote stays", bytes_of("again/my.ckpt") == b"kept")
run(GNNC, "partition", "mixed", "4", "-o", "small", "--memory", "1K")
check("no memory for METIS: streamed", bytes_of("small/edge.cites.npy") == bytes_of("m.stream/edge.cites.npy"))
run(GNNC, "partition", "mixed", "1", "-o", "one")
same_but_moved("one part", "mixed", "one", 1)

# ---- a trainer learns what it learned --------------------------------------------------------------------
MODELS = {"cites": ("m.metis", """
import "layers/gcn.gnn"
graph G { node paper timeless { x: f32[F];  y: class[C];  split }  edge cites: paper -> paper timeless }
model M(g: G) -> f32[paper, C] {
  a = gcn_conv(16)
  b = gcn_conv(C)
  return b(g.cites, relu(a(g.cites, g.paper.x)))
}
train M { target paper.y  loss cross_entropy  metric accuracy  optimizer adam(lr = 1e-2)  epochs 8 }
"""), "types": ("m.stream", """
import "layers/sage.gnn"
graph G {
  node paper timeless { x: f32[F];  s: csr f32[S];  y: class[C];  split }
  node shop { }
  edge cites: paper -> paper timeless { w: f32[W] }
  edge sold: paper -> shop
}
model M(g: G) -> f32[paper, C] {
  a = linear(8)
  b = linear(8)
  c = linear(C)
  h = relu(a(g.paper.x) + b(g.paper.s))
  s = mean(h[g.sold.src], over = g.sold.dst)
  r = reverse(g.sold)
  back = sum(s[r.src], over = r.dst)
  near = mean(h[g.cites.src] * sum(g.cites.w, over = W), over = g.cites.dst)
  return c(h + back + near)
}
train M { target paper.y  loss cross_entropy  metric accuracy  optimizer adam(lr = 1e-2)  epochs 8 }
"""), "pooled": ("g.metis", """
graph G {
  node atom { x: f32[F] }
  edge bond: atom -> atom
  graph { y: f32;  split }
}
model M(g: G) -> f32[graph] {
  a = linear(8)
  b = linear(1)
  h = relu(a(g.atom.x))
  h = h + sum(h[g.bond.src], over = g.bond.dst)
  return sum(b(sum(h, over = g.atom.graph)), 1)
}
train M { target graph.y  loss mse  metric mae  optimizer adam(lr = 1e-2)  epochs 8 }
""")}


def numbers(exe, data):
    lines = run(exe, "--data", data, "--log=json", "--checkpoint", "none").splitlines()
    return [v for line in lines if line[:1] == "{" for part in ("train", "val", "test")
            for v in [*json.loads(line).get(part, {}).values()]]


for name, (new, text) in MODELS.items():
    with open(name + ".gnn", "w", encoding="utf-8") as f:
        f.write(text)
    run(GNNC, name + ".gnn", "--target=cpu", "-o", name)
    if os.path.exists(name):
        old = "graphs" if new[0] == "g" else "mixed"
        a, b = numbers("./" + name, old), numbers("./" + name, new)
        check(f"{name}: as of the data before", len(a) == len(b) > 8 and all(math.isclose(x, y, rel_tol=1e-6, abs_tol=1e-7)
                                                                             for x, y in zip(a, b)), (a, b))

# ---- whole or nothing ----------------------------------------------------------------------------------------
refused("exists already; --force", GNNC, "partition", "mixed", "2", "-o", "m.rows")
refused("4096 parts", GNNC, "partition", "mixed", "5000", "-o", "none")
refused("cannot be cut into 70 parts", GNNC, "partition", "graphs", "70", "-o", "none")
refused("how many parts", GNNC, "partition", "mixed", "-o", "none")
refused("unknown option", GNNC, "partition", "mixed", "2", "-o", "none", "--fast")
refused("no data directory", GNNC, "partition", ".", "2", "-o", "none")
refused("bad/names.txt: 401 lines", "sh", "-c", f"rm -rf bad; cp -r mixed bad; printf 'x\\ny\\n' >> bad/names.txt; '{GNNC}' partition bad 2 -o none")
shutil.copytree("mixed", "bad", dirs_exist_ok=True)
put("bad/cites.npy", "<i4", (2, 7200), [5000] * 14400)
refused("cites: edge 0: source 5000", GNNC, "partition", "bad", "2", "-o", "none")
check("nothing is left of them", not [x for x in os.listdir() if x.startswith("none")], os.listdir())
ways = {"part_rows: row 1 was row 0": ("node.paper.part_rows.npy", "<i4", (1200,), [0] * 1200),
        "which there is none of": ("node.paper.part_rows.npy", "<i4", (1200,), [1200] * 1200),
        "must ascend from 0": ("node.paper.part_ptr.npy", "<i8", (5,), [0, 500, 400, 900, 1200]),
        "3 parts, another table has": ("node.shop.part_ptr.npy", "<i8", (4,), [0, 10, 20, 400]),
        "bounds of 1 to": ("node.paper.part_ptr.npy", "<i8", (1,), [0])}
for what, file in ways.items():
    shutil.copytree("m.rows", "hurt", dirs_exist_ok=True)
    put("hurt/" + file[0], *file[1:])
    refused(what, GNNC, "partition", "hurt", "2", "-o", "none")
shutil.copytree("g.rows", "hurt2")
put("hurt2/node.atom.part_ptr.npy", "<i8", (4,), [0, 1, 2, get("g.rows/node.atom.x.npy")[0][0]])
refused("does not begin where its graphs do", GNNC, "partition", "hurt2", "2", "-o", "none")
full = ["prlimit", "--fsize=20000", GNNC, "partition", "mixed", "2", "-o", "none"]
if shutil.which("prlimit"):  # as on a full disk
    r = subprocess.run(full, text=True, capture_output=True, preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                       check=False)
    check("no room", r.returncode == 1 and "cannot write" in r.stderr and "none" not in os.listdir(), r.stderr)
before = bytes_of("again/schema.json")
for k in range(12):  # killed at any moment: the old data or the new
    killed = subprocess.Popen([GNNC, "partition", "mixed", "5", "-o", "again", "--force"], stdout=subprocess.DEVNULL)
    time.sleep(0.004 * k)
    killed.kill()
    killed.wait()
    parts = len(get("again/node.paper.part_ptr.npy")[1]) - 1
    same_but_moved(f"killed {k}", "mixed", "again", parts, again=True)


# ---- a run that was killed goes on ------------------------------------------------------------------------------
def large(path):
    """Enough edges that a run can be killed between two of its steps; written long enough ago to be trusted."""
    r, n = random.Random(11), 30000
    os.mkdir(path)
    src, dst = cliques(r, n, 300, 8, 0.1)
    put(os.path.join(path, "e.npy"), "<i4", (2, len(src)), src + dst)
    put(os.path.join(path, "x.npy"), "<f4", (n, 4), [r.random() for _ in range(4 * n)])
    with open(os.path.join(path, "schema.json"), "w", encoding="utf-8") as f:
        json.dump({"format": 1, "nodes": {"v": {"count": n, "columns": {"x": {"kind": "float", "shape": [n, 4], "file": "x.npy"}}}},
                   "edges": {"e": {"src": "v", "dst": "v", "count": len(src), "file": "e.npy", "columns": {}}}}, f)
    for name in os.listdir(path):
        os.utime(os.path.join(path, name), (1e9, 1e9))
    time.sleep(2.1)  # the times of change of inodes cannot be set


def files_of(path):
    return {x: bytes_of(os.path.join(path, x)) for x in sorted(os.listdir(path))} if os.path.isdir(path) else {}


def seen_of(path):
    """What stands in the directory of an unfinished run: a file that is written anew has another inode."""
    try:
        return {(e.name, e.inode()) for e in os.scandir(path) if ".tmp." not in e.name}
    except FileNotFoundError:
        return set()


def killed_at_each_step(out, command):
    """Runs it until it has done one more thing than before, kills it, and again, to its end.  How many were killed."""
    for kills in range(60):
        before = seen_of(out + ".partition")
        p = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        while p.poll() is None and not seen_of(out + ".partition") - before:
            pass
        p.kill()
        told = p.communicate()[0]
        if p.returncode == 0 or os.path.exists(out):  # killed when it had ended all but itself
            state = os.path.join(out, "partition.kept")
            if p.returncode != 0 and os.path.exists(state):  # killed between the new name and the last act, its removal
                os.remove(state)
            return kills, told
        lost = {x for x in before if not x[0].startswith("partition.")} - seen_of(out + ".partition")
        check(f"{out}: killed {kills}: nothing half-written, nothing lost", not os.path.exists(out) and not lost, lost)
    return 60, ""


large("large")
for method in ("metis", "stream", "rows"):
    whole, out = f"whole.{method}", f"ended.{method}"
    command = [GNNC, "partition", "large", "5", "--method", method, "-o"]
    run(*command, whole)
    kills, told = killed_at_each_step(out, command + [out])
    check(f"{method}: killed at each step: the same bytes", files_of(out) == files_of(whole) and kills >= (4 if method == "rows" else 6),
          (kills, told))
    check(f"{method}: it says so", not told or "begun by an earlier run" in told, told)
r = random.Random(7)
for k in range(15):  # at any moment
    command = [GNNC, "partition", "large", str(2 + k % 3), "--method", ("stream", "metis")[k % 2], "-o", "any", "--force"]
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    time.sleep(r.random() * 0.3)
    p.kill()
    p.wait()
    if k % 5 == 4:
        run(*command)
        shutil.rmtree("again.any", ignore_errors=True)
        run(*command[:-2], "again.any")
        check(f"any moment {k}: the same bytes", files_of("any") == files_of("again.any"))
p = subprocess.Popen([GNNC, "partition", "large", "5", "--method", "stream", "-o", "other"], stdout=subprocess.DEVNULL)
while not seen_of("other.partition"):
    pass
p.send_signal(signal.SIGSTOP)
refused("other.partition: another gnnc partition is at work there", GNNC, "partition", "large", "4", "-o", "other")
p.kill()
p.wait()
told = run(GNNC, "partition", "large", "4", "--method", "stream", "-o", "other")
run(GNNC, "partition", "large", "4", "--method", "stream", "-o", "four")
check("other options: from the beginning", "earlier" not in told and files_of("other") == files_of("four"), told)
os.mkdir("mine.partition")
with open("mine.partition/id", "w", encoding="utf-8") as f:
    f.write("mine")
refused("mine.partition: has files that no partition wrote", GNNC, "partition", "mixed", "2", "-o", "mine")
check("which are left alone", os.listdir("mine.partition") == ["id"])
if shutil.which("prlimit"):  # as on a full disk, and then there is room
    r = subprocess.run(["prlimit", "--fsize=200000", GNNC, "partition", "large", "5", "--method", "stream", "-o", "full"], text=True, capture_output=True,
                       preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN), check=False)
    check("no room: what is done stays", r.returncode == 1 and "cannot write" in r.stderr and "the same command goes on with full.partition" in r.stderr and
          not os.path.exists("full"), r.stderr)
    told = run(GNNC, "partition", "large", "5", "--method", "stream", "-o", "full")
    check("and the next run goes on", "earlier run" in told and files_of("full") == files_of("whole.stream"), told)
check("nothing is left beside", not [x for x in os.listdir() if x.endswith(".partition") and x[:4] not in ("mine", "none", "agai")],
      os.listdir())

# ---- Cora, which has stored entries ---------------------------------------------------------------------------
told = run(GNNC, "partition", CORA, "4", "-o", "cora", "--method", "metis")
check("few of Cora's edges are cut", cut_of("cora", "cites") < 0.1, told)
same_but_moved("cora", CORA, "cora", 4)
sys.exit(end())
