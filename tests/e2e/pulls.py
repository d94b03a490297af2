#!/usr/bin/env python3
"""Processes that share steps and have features in parts (--pull-rows): the same bits in any number of them as in one that reads
all rows, where each has a directory whose features hold NaN outside its own parts; as many bytes as the rows take that batches
read of others; killed and gone on with; one line where they cannot.  With GNNC_LONG each program runs in each number of processes.  usage: pulls.py GNNC TOP.  Prints `N passed, N failed`."""
import array
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import directory  # noqa: E402
from checks import MPI, all_gone, bytes_of, check, end, header_of, ranks_of, run  # noqa: E402

GNNC, TOP = sys.argv[1:3]
MPIRUN = ["timeout", "300", "mpirun", "--oversubscribe"]
LONG = "GNNC_LONG" in os.environ
os.environ |= MPI
DAY = 86400.0


# ---- data -----------------------------------------------------------------------------------------------------
def shop(path):
    """Two node types of different sizes, features of 32 and of 16 bits, some rows without edges."""
    r = random.Random(3)
    n, m = 1500, 40
    os.mkdir(path)
    user = {"x": directory.column(path, "x", "float", [r.gauss(0, 1) for _ in range(6 * n)], width=6),
            "y": directory.column(path, "y", "class", [v % 2 if r.random() < 0.9 else -1 for v in range(n)], categories=2),
            "split": directory.column(path, "split", "split", [1 + v % 3 for v in range(n)])}
    user |= {"w": directory.csr(path, "w", [sorted((c, r.gauss(0, 1)) for c in r.sample(range(30), v * v % 7)) for v in range(n)], 30),
             "k": directory.column(path, "k", "cat", [v * v % 11 for v in range(n)], categories=11)}
    directory.save(path + "/v.npy", "H", "<u2", (m, 3), [0x3f80 | r.randrange(128) for _ in range(3 * m)])
    place = {"v": {"kind": "float", "dtype": "bf16", "shape": [m, 3], "file": "v.npy"},
             "sort": directory.column(path, "sort", "cat", [i * i % 5 for i in range(m)], categories=5)}
    dst = [v for v in range(n - 20) for _ in range(1 + v % 9)]
    likes = [(r.randrange(n) if r.random() < 0.1 else (v + 4 * r.randrange(9)) % n, v) for v in dst]
    directory.write(path, {"user": {"count": n, "columns": user}, "place": {"count": m, "columns": place}},
                    {"likes": directory.relation(path, "likes", "user", "user", likes),
                     "lives": directory.relation(path, "lives", "user", "place", [(v, v * m // n) for v in range(n)])})


def tasks(path):
    """Rows with times: what is predicted of them is evaluated by batches, too."""
    r = random.Random(5)
    size = {"a": 6, "b": 60, "c": 9, "task": 90}
    os.mkdir(path)
    nodes = {t: {"count": n, "columns": {"t": directory.column(path, f"{t}.t", "time", [DAY * r.randrange(30) for _ in range(n)])}}
             for t, n in size.items()}
    for t in "bc":
        nodes[t]["columns"] |= {"x": directory.column(path, f"{t}.x", "float", [r.gauss(0, 1) for _ in range(8 * size[t])], width=8),
                                "k": directory.column(path, f"{t}.k", "cat", [r.randrange(7) for _ in range(size[t])], categories=7)}
    nodes["task"]["columns"] |= {"y": directory.column(path, "task.y", "float", [r.gauss(0, 1) for _ in range(90)]),
                                 "split": directory.column(path, "split", "split", [1 + (i % 5 > 2) + (i % 5 > 3) for i in range(90)])}
    ends = {"of": ("task", "a"), "b_a": ("b", "a"), "b_c": ("b", "c")}
    directory.write(path, nodes, {e: directory.relation(path, e, s, d, [(i, r.randrange(size[d])) for i in range(size[s])])
                                  for e, (s, d) in ends.items()})


def array_of(path, code):
    data = bytes_of(path)
    return array.array(code, data[10 + int.from_bytes(data[8:10], "little"):])


def schema_of(data):
    return json.loads(bytes_of(data + "/schema.json"))


def rows_of(data, table, rank, n):
    """The rows of a process, from and to."""
    ptr = array_of(f"{data}/{schema_of(data)['nodes'][table]['part_ptr']}", "q")
    parts = len(ptr) - 1
    return ptr[parts * rank // n], ptr[parts * (rank + 1) // n]


def holes(data, columns, n):
    """A directory for each of n processes: NaN, and codes of no category, outside its rows."""
    for rank in range(n):
        to = f"{data}.of{n}.{rank}"
        shutil.copytree(data, to)
        for table, name in columns:
            c = schema_of(data)["nodes"][table]["columns"][name]
            count = schema_of(data)["nodes"][table]["count"]
            row, nan = (2 * c["shape"][1], b"\xc0\x7f") if "dtype" in c else (4 * c.get("shape", [0, 1])[1], b"\0\0\xc0\x7f")
            whole = bytes_of(f"{to}/{c['file']}")
            head = len(whole) - count * row
            lo, hi = rows_of(data, table, rank, n)
            own = whole[head + lo * row:head + hi * row]
            before, after = lo * row // len(nan), (count - hi) * row // len(nan)
            with open(f"{to}/{c['file']}", "wb") as f:
                f.write(whole[:head] + nan * before + own + nan * after)
    return f"{data}.of{n}"


def csr_holes(data, table, name, n):
    """Into these directories: bounds, columns and values outside each process's rows that are none."""
    c = schema_of(data)["nodes"][table]["columns"][name]
    ptr, col, val = (array_of(f"{data}/{c[key]}", code) for key, code in (("ptr", "q"), ("col", "i"), ("val", "f")))
    for rank in range(n):
        lo, hi = rows_of(data, table, rank, n)
        first, last, to = ptr[lo], ptr[hi], f"{data}.of{n}.{rank}/"
        directory.save(to + c["ptr"], "q", "<i8", (len(ptr),), [p if lo <= i <= hi else -7 << 40 for i, p in enumerate(ptr)])
        directory.save(to + c["col"], "i", "<i4", (len(col),), [x if first <= i < last else -5 for i, x in enumerate(col)])
        directory.save(to + c["val"], "f", "<f4", (len(val),), [x if first <= i < last else float("nan") for i, x in enumerate(val)])


def partitioned(data, parts):
    run(GNNC, "partition", data, str(parts), "-o", f"{data}.{parts}", "--method", "stream")
    return f"{data}.{parts}"


shop("shop")
tasks("tasks")
SHOP, TASKS = partitioned("shop", 5), partitioned("tasks", 4)

# ---- models ---------------------------------------------------------------------------------------------------
TYPES = """
import "layers/sage.gnn"
graph G {
  node user { x: f32[F];  y: class[C];  split }
  node place { v: f32[V];  sort: cat[S] }
  edge likes: user -> user
  edge lives: user -> place
}
model M(g: G) -> f32[user, C] {
  a = linear(8)
  p = linear(8)
  s = embedding(S, 8)
  conv = sage_conv(8)
  b = linear(C)
  back = reverse(g.lives)
  h = a(dropout(g.user.x, 0.2)) + sum((p(g.place.v) + s(g.place.sort))[back.src], over = back.dst)
  return b(relu(conv(g.likes, relu(h))))
}
train M {
  target user.y  loss cross_entropy  metric accuracy  optimizer adam(lr = 1e-2)  epochs 6  keep best on val loss
  sample { fanout [5, 3]  batch 50 }  accumulate 5
}
"""
HOP = """
import "layers/sage.gnn"
graph G { node user { x: f32[F];  y: class[C];  split }  edge likes: user -> user }
model M(g: G) -> f32[user, C] {
  a = sage_conv(C)
  return a(g.likes, g.user.x)
}
train M {
  target user.y  loss cross_entropy  metric accuracy  optimizer adam(lr = 1e-2)  epochs 11  keep best on val loss
  sample { fanout [-1]  batch 100000 }  accumulate 4
}
"""
TIMES = """
graph G {
  node a { t: time }
  node b { x: f32[F];  k: cat[K];  t: time }
  node c { x: f32[F];  k: cat[K];  t: time }
  node task { y: f32;  split;  t: time }
  edge of: task -> a
  edge b_a: b -> a
  edge b_c: b -> c
}
model M(g: G) -> f32[task] {
  of_b = linear(16)
  of_c = linear(16)
  kinds = embedding(K, 16)
  last = linear(1)
  back = reverse(g.b_c)
  down = reverse(g.of)
  b = relu(of_b(dropout(g.b.x, 0.25)) + kinds(g.b.k) + sum((of_c(g.c.x) + kinds(g.c.k))[back.src], over = back.dst))
  h = sum(b[g.b_a.src], over = g.b_a.dst)
  return sum(sum(last(relu(h))[down.src], over = down.dst), 1)
}
train M {
  target task.y  loss mse  metric mae  optimizer adam(lr = 1e-2)  epochs 5  keep best on val mae
  sample { fanout [-1, 8, 4]  batch 9  own true  time g.a.t, g.b.t, g.c.t, g.task.t }  accumulate 4
}
"""


DRAWN = """
import "layers/sage.gnn"
graph G { node user { w: csr f32[W];  k: cat[K];  y: class[C];  split }  edge likes: user -> user }
model M(g: G) -> f32[user, C] {
  of_w = linear(8)
  of_k = embedding(K, 8)
  a = sage_conv(C)
  return a(g.likes, relu(of_w(dropout(g.user.w, 0.2)) + of_k(g.user.k)))
}
train M {
  target user.y  loss cross_entropy  metric accuracy  optimizer adam(lr = 1e-2)  epochs 12
  sample { fanout [-1]  batch 100000  evaluate drawn }  accumulate 4
}
"""


def compiled(name, text, *options):
    with open(name + ".gnn", "w", encoding="utf-8") as f:
        f.write(text)
    run(GNNC, name + ".gnn", "--target=cpu", "--mpi", "-o", name, *options)
    return "./" + name


def job(n, exe, data, *options):
    """A command of n processes; a `%` in data: each has its own."""
    of_rank = data.replace("%", "$OMPI_COMM_WORLD_RANK")
    return MPIRUN + ["-x", "OF_TEST", "-n", str(n), "sh", "-c", f'exec {exe} --data {of_rank} "$@"', "sh", *options]


def told(n, exe, data, *options):
    """What the first of n processes says, times aside, and the line of what was pulled; n = 0: without mpirun."""
    command = job(n, exe, data, "--log=json", *options) if n else [exe, "--data", data, "--log=json", *options]
    r = subprocess.run(command, text=True, capture_output=True, check=False, env=os.environ | {"OF_TEST": "no"})
    check(f"{exe}: {n} processes, {data} {options}", r.returncode == 0, r.stdout + r.stderr)
    lines = [json.loads(line) for line in r.stdout.splitlines() if line[:1] == "{"]
    pulled = re.search(r"processes pulled (\d+) rows for batches: (\d+) bytes in (\d+) messages(?:, (\d+) bytes of it while they computed)?", r.stdout + r.stderr)
    return ([{k: v for k, v in line.items() if not k.endswith("ms") and k != "seconds"} for line in lines if "epoch" in line or "test" in line],
            [int(x or 0) for x in pulled.groups()] if pulled else None)


# ---- the same bits ---------------------------------------------------------------------------------------------
LOW = ["--precision=bf16", "--precision.small-mib=0"]  # data as small as these would stay in f32
COLUMNS = {"types": (SHOP, [("user", "x"), ("user", "k"), ("place", "v")]), "low": (SHOP, [("user", "x"), ("user", "k"), ("place", "v")]),
           "times": (TASKS, [("b", "x"), ("c", "x"), ("b", "k"), ("c", "k")])}
compiled("types", TYPES)
compiled("low", TYPES, *LOW)
compiled("times", TIMES)
for name, (data, columns) in COLUMNS.items():
    first, nothing = told(0, "./" + name, data, "--checkpoint", name + ".0", "--pull-rows")
    check(f"{name}: one process pulls nothing", nothing is None, nothing)
    check(f"{name}: it learns", first[-1]["train"]["loss"] < first[0]["train"]["loss"], first)
    for n in (2, 3, 4) if name == "types" or LONG else (3,):
        own = f"{data}.of{n}" if os.path.exists(f"{data}.of{n}.0") else holes(data, columns, n)
        lines, pulled = told(n, "./" + name, own + ".%", "--pull-rows", "--checkpoint", f"{name}.{n}", "--threads", str(1 + n % 2),
                             "--workers", str(n % 3))
        check(f"{name}: {n} processes tell the same", lines == first, (lines, first))
        check(f"{name}: {n} processes leave the same", bytes_of(f"{name}.{n}") == bytes_of(name + ".0"))
        check(f"{name}: {n} processes pull rows, some of them while they compute", pulled and 0 < pulled[3] < pulled[1] and pulled[0], pulled)
lines, pulled = told(3, "./types", SHOP, "--checkpoint", "whole")
check("without the option nothing is pulled", pulled is None and bytes_of("whole") == bytes_of("types.0"), pulled)

# ---- what is sent: each row that a batch reads of others, once; and what rows stay, of which there are none --------------------------------------------------
K, EPOCHS = 4, 11
train = [i for i, (s, y) in enumerate(zip(array_of(SHOP + "/" + schema_of(SHOP)["nodes"]["user"]["columns"]["split"]["file"], "b"),
                                          array_of(SHOP + "/" + schema_of(SHOP)["nodes"]["user"]["columns"]["y"]["file"], "i"))) if s == 1 and y >= 0]
ends = array_of(SHOP + "/" + schema_of(SHOP)["edges"]["likes"]["file"], "i")
half, seeds = len(ends) // 2, set(train)
batch = seeds | {s for s, d in zip(ends[:half], ends[half:]) if d in seeds}
for name, element in (("hop", 4), ("hop16", 2)):
    compiled(name, HOP, *(LOW if element == 2 else []))
    for n in (1, 2, 3, 5) if name == "hop" or LONG else (1, 3):
        count = schema_of(SHOP)["nodes"]["user"]["count"]
        far = [len([v for v in batch if not lo <= v < hi]) for lo, hi in (rows_of(SHOP, "user", r, n) for r in range(n))]
        rows = sum(far[s % K % n] for s in range(EPOCHS))
        want = rows * (4 + 6 * element) + 2 * (EPOCHS + 1) * 24 * n * (n - 1) + (EPOCHS + 1) * (n - 1) * count * 6 * element
        _, pulled = told(n, "./" + name, SHOP, "--pull-rows", "--checkpoint", f"{name}.{n}")
        if n == 1:
            continue
        check(f"{name}: {n} processes pull each row that a batch reads once", pulled and pulled[:2] == [rows, want], (pulled, rows, want))
        check(f"{name}: {n} processes leave the same", bytes_of(f"{name}.{n}") == bytes_of(f"{name}.1"))

# Rows that stay: those out of which most edges go.
out = [0] * count
for s in ends[:half]:
    out[s] += 1
for n, n_kept in ((2, 100), (3, 317)):
    rows = 0
    for rank in range(n):
        lo, hi = rows_of(SHOP, "user", rank, n)
        kept = set(sorted((v for v in range(count) if not lo <= v < hi and out[v]), key=lambda v: (-out[v], v))[:n_kept])
        rows += len(kept)
        far = len([v for v in batch if not lo <= v < hi and v not in kept])
        rows += far * sum(s % K % n == rank for s in range(EPOCHS))
    _, pulled = told(n, "./hop", SHOP, "--pull-rows", "--pull-cache", str(n_kept * 24 + 23), "--checkpoint", "kept")
    check(f"{n} processes keep {n_kept} rows of others", pulled and pulled[0] == rows, (pulled, rows))
    check(f"{n} processes with rows of others: the same", bytes_of("kept") == bytes_of("hop.1"))
told(3, "./types", f"{SHOP}.of3.%", "--pull-rows", "--pull-cache", "5K", "--checkpoint", "kept")
check("rows of two types stay: the same", bytes_of("kept") == bytes_of("types.0"))

# Stored entries and categories, evaluated by batches: of a row its number, length and category, and 8 bytes for each entry.
compiled("drawn", DRAWN)
report = run(GNNC, "drawn.gnn", "--mpi", "--emit=none", "--report=communication")
check("what is reported of a row", "user.w  4 B and 8 B for each stored entry" in report and "user.k  4 B" in report, report)
ptr = array_of(SHOP + "/" + schema_of(SHOP)["nodes"]["user"]["columns"]["w"]["ptr"], "q")
for n in (1, 2, 3):
    if n > 1:
        csr_holes(SHOP, "user", "w", n)
    of = f"{SHOP}.of{n}.%" if n > 1 else SHOP
    sent = [told(n, "./drawn", of, "--pull-rows", "--eval-every", "100", "--epochs", str(epochs), "--checkpoint", f"drawn.{n}")[1] for epochs in (4, 12)]
    lines, _ = told(n, "./drawn", of, "--pull-rows", "--epochs", "3", "--checkpoint", "judged")
    if n == 1:
        want, judged = lines, bytes_of("judged")
        continue
    check(f"drawn: {n} processes leave and tell the same", bytes_of(f"drawn.{n}") == bytes_of("drawn.1") and lines == want and bytes_of("judged") == judged, (lines, want))
    far = [[v for v in batch if not lo <= v < hi] for lo, hi in (rows_of(SHOP, "user", r, n) for r in range(n))]
    made = [far[s % K % n] for s in range(4, 12)]
    rows, entries = sum(map(len, made)), sum(ptr[v + 1] - ptr[v] for of_step in made for v in of_step)
    bytes_of_steps = rows * (4 + 4 + 4) + entries * 8 + 8 * 24 * n * (n - 1)
    check(f"drawn: {n} processes pull each entry once", [b - a for a, b in zip(*sent)][:2] == [rows, bytes_of_steps], (sent, rows, bytes_of_steps))

# ---- ended, killed, hung, and gone on with in another number ------------------------------------------------------
told(1, "./types", SHOP, "--epochs", "9", "--checkpoint", "all")
for n, steps, m in ((3, 17, 2), (2, 13, 4), (4, 1, 1))[:3 if LONG else 2]:
    told(n, "./types", f"{SHOP}.of{n}.%", "--pull-rows", "--epochs", "9", "--steps", str(steps), "--checkpoint", "part")
    to = f"{SHOP}.of{m}.%" if m > 1 else SHOP
    told(m, "./types", to, "--pull-rows", "--epochs", "9", "--resume", "part", "--checkpoint", "rest")
    check(f"{steps} steps in {n} processes, the rest in {m}", bytes_of("rest") == bytes_of("all"))


def started(n, name, *options):
    p = subprocess.Popen(job(n, "./types", f"{SHOP}.of{n}.%", "--pull-rows", "--epochs", "1000000", "--checkpoint", name,
                             "--save-every-steps", "7", "--log=none", *options),
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | {"OF_TEST": name})
    for _ in range(2400):
        if len(ranks_of("./types", name)) == n and os.path.exists(name):
            return p
        time.sleep(0.05)
    check(f"{name}: it has begun", False)
    return p


for k, n in enumerate((2, 3) if LONG else (3,)):
    name = f"killed.{k}"
    p = started(n, name)
    begun = time.time()
    os.kill(ranks_of("./types", name)[k % n], signal.SIGKILL)
    p.wait(timeout=200)
    check(f"{name}: all end, within seconds", p.returncode != 0 and all_gone("./types", name) and time.time() - begun < 60)
    n_steps = str(int(header_of(name)[0]["__metadata__"]["step"]) + 60 + k)
    for m, to in ((0, "a"), (4, "b")):
        told(m, "./types", f"{SHOP}.of{m}.%" if m else SHOP, "--pull-rows", "--resume", name, "--epochs", "1000000", "--steps", n_steps, "--checkpoint", to)
    check(f"{name}: gone on with in another number", bytes_of("a") == bytes_of("b"))
p = started(3, "hangs", "--patience", "2")  # one stands still
begun = time.time()
os.kill(ranks_of("./types", "hangs")[1], signal.SIGSTOP)
text = p.communicate(timeout=200)[0]
check("a process that hangs", "did not come" in text and "waited 2 s: --patience" in text and p.returncode and time.time() - begun < 60, text)

# ---- one line where they cannot ------------------------------------------------------------------------------------
r = subprocess.run(["./types", "predict", "--data", f"{SHOP}.of3.1", "--weights", "all", "--out", "p.npy"], text=True, capture_output=True, check=False)
check("one alone reads all rows", r.returncode == 1 and "value is NaN" in r.stderr and not os.path.exists("p.npy"), r.stderr)
run(GNNC, f"{TOP}/models/gcn.gnn", "--mpi", "-o", "gcn")
sampled = bytes_of(f"{TOP}/models/sage_sampled.gnn").decode().replace("  sample {", "  accumulate 4  sample {", 1)
compiled("sparse", sampled)
run(GNNC, "partition", TOP + "/models/data/cora", "2", "-o", "cora.2", "--method", "stream")
TWO, OTHER = partitioned("shop", 2), "shop.rows"
run(GNNC, "partition", "shop", "5", "-o", OTHER, "--method", "rows")
of = "$([ $OMPI_COMM_WORLD_RANK = 1 ] && echo %s || echo %s)"
wrong = [("3 processes pull rows of data in 2 parts", 3, "./types", TWO, "--pull-rows"),
         ("3 processes pull rows of data in 1 part:", 3, "./types", "shop", "--pull-rows"),
         ("its processes share rows, not steps", 2, "./gcn", "cora.2", "--pull-rows"),
         ("batches read no column of nodes that can be pulled", 2, "./sparse", "cora.2", "--pull-rows"),
         ("user.x: row ", 3, "./types", of % (f"{SHOP}.of3.2", f"{SHOP}.of3.$OMPI_COMM_WORLD_RANK"), "--pull-rows"),
         ("trains with another division of the data into parts than rank 0", 2, "./types", of % (OTHER, SHOP), "--pull-rows"),
         ("trains with another schedule of evaluations", 2, "./types", SHOP + " " + of % ("--eval-every 2", "--eval-every 3"), "--pull-rows"),
         ("trains with another way to read features (pull_rows) than rank 0", 2, "./types", SHOP + " " + of % ("--pull-rows", "--no-cache"), "--no-cache")]
for what, n, exe, data, *options in wrong:
    r = subprocess.run(job(n, exe, data, "--checkpoint", "none", *options), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       check=False, env=os.environ | {"OF_TEST": "no"})
    lines = [line for line in r.stdout.splitlines() if "error:" in line]
    check(f"told: {what}", r.returncode in (1, 2) and len(lines) == 1 and what in lines[0], r.stdout)
sys.exit(end())
