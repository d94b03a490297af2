#!/usr/bin/env python3
"""Processes that share the rows of data in parts: the same bits in any number of them as in one, also evaluated, predicted,
killed and gone on with in another number; one line where they cannot.  With GNNC_KILLS=N it is killed N times, every model runs in
each number of processes, where else only GCN does, and all of them with wide rows and with sums by MPI, where else GCN and GAT do.
usage: parts.py GNNC TOP.  Prints `N passed, N failed`."""
import array
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from checks import MPI, all_gone, bytes_of, check, end, header_of, ranks_of, run  # noqa: E402

GNNC, TOP = sys.argv[1:3]
CORA = TOP + "/models/data/cora"
MPIRUN = ["timeout", "300", "mpirun", "--oversubscribe"]
LONG = "GNNC_KILLS" in os.environ
KILLS = int(os.environ.get("GNNC_KILLS", "2"))
NUMBERS = (2, 3, 4)
SOME = ("gcn", "sage", "gat", "gin") if LONG else ("gcn", "gat")
os.environ |= MPI
CODES = {"<f4": "f", "<i4": "i", "<i8": "q", "|i1": "b"}


# ---- data ---------------------------------------------------------------------------------------------------
def put(path, code, shape, values):
    head = f"{{'descr': '{code}', 'fortran_order': False, 'shape': ({','.join(map(str, shape))},), }}"
    head += " " * ((-len(head) - 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        f.write(array.array(CODES[code], values).tobytes())


def shop(path):
    """Two node types of very different sizes, edges with columns between them and within one, a few without any edge."""
    r = random.Random(3)
    n, m = 1500, 7
    os.mkdir(path)
    p = lambda name: os.path.join(path, name)  # noqa: E731
    put(p("x.npy"), "<f4", (n, 6), [r.gauss(0, 1) for _ in range(6 * n)])
    put(p("kind.npy"), "<i4", (n,), [r.randrange(5) for _ in range(n)])
    put(p("y.npy"), "<i4", (n,), [v % 2 if r.random() < 0.9 else -1 for v in range(n)])
    put(p("split.npy"), "|i1", (n,), [1 + v % 3 for v in range(n)])
    dst = [v for v in range(n - 20) for _ in range(1 + v % 9)]
    src = [r.randrange(n) if r.random() < 0.1 else (v + 4 * r.randrange(9)) % n for v in dst]
    put(p("likes.npy"), "<i4", (2, len(src)), src + dst)
    put(p("w.npy"), "<f4", (len(src), 2), [r.random() for _ in range(2 * len(src))])
    put(p("rel.npy"), "<i4", (len(src),), [r.randrange(3) for _ in src])
    put(p("at.npy"), "<i4", (2, n), [*range(n)] + [v * m // n for v in range(n)])
    column = lambda kind, file, **more: {"kind": kind, "file": file, **more}  # noqa: E731
    schema = {"format": 1,
              "nodes": {"user": {"count": n, "columns": {
                  "x": column("float", "x.npy", shape=[n, 6]), "kind": column("cat", "kind.npy", categories=5),
                  "y": column("class", "y.npy", categories=2), "split": column("split", "split.npy")}},
                  "place": {"count": m, "columns": {}}},
              "edges": {"likes": {"src": "user", "dst": "user", "count": len(src), "file": "likes.npy", "columns": {
                  "w": column("float", "w.npy", shape=[len(src), 2]), "rel": column("cat", "rel.npy", categories=3)}},
                  "lives": {"src": "user", "dst": "place", "count": n, "file": "at.npy", "columns": {}}}}
    with open(p("schema.json"), "w", encoding="utf-8") as f:
        json.dump(schema, f)


def molecules(path):
    r = random.Random(5)
    k = 90
    os.mkdir(path)
    p = lambda name: os.path.join(path, name)  # noqa: E731
    sizes = [r.randrange(1, 9) for _ in range(k)]
    ptr = [sum(sizes[:i]) for i in range(k + 1)]
    n = ptr[-1]
    dst = [v for g in range(k) for v in range(ptr[g], ptr[g + 1]) for _ in range(2)]
    at = [g for g in range(k) for v in range(ptr[g], ptr[g + 1]) for _ in range(2)]
    src = [r.randrange(ptr[g], ptr[g + 1]) for g in at]
    put(p("x.npy"), "<f4", (n, 3), [r.random() for _ in range(3 * n)])
    put(p("ptr.npy"), "<i8", (k + 1,), ptr)
    put(p("bond.npy"), "<i4", (2, len(src)), src + dst)
    put(p("y.npy"), "<f4", (k, 1), [r.random() for _ in range(k)])
    put(p("split.npy"), "|i1", (k,), [1 + (g > 40) + (g > 60) for g in range(k)])
    schema = {"format": 1,
              "nodes": {"atom": {"count": n, "graph": "molecule", "graph_ptr": "ptr.npy",
                                 "columns": {"x": {"kind": "float", "shape": [n, 3], "file": "x.npy"}}}},
              "edges": {"bond": {"src": "atom", "dst": "atom", "count": len(src), "file": "bond.npy", "columns": {}}},
              "graphs": {"molecule": {"count": k, "columns": {"y": {"kind": "float", "shape": [k, 1], "file": "y.npy"},
                                                              "split": {"kind": "split", "file": "split.npy"}}}}}
    with open(p("schema.json"), "w", encoding="utf-8") as f:
        json.dump(schema, f)


def partitioned(data, parts):
    reports[data, parts] = run(GNNC, "partition", data, str(parts), "-o", f"{os.path.basename(data)}.{parts}", "--method", "stream")
    return f"{os.path.basename(data)}.{parts}"


reports = {}


shop("shop")
molecules("molecules")
CORA4, CORA5, SHOP, MOLECULES = partitioned(CORA, 4), partitioned(CORA, 5), partitioned("shop", 4), partitioned("molecules", 7)

# ---- models -------------------------------------------------------------------------------------------------
HEAD = """
import "layers/gat.gnn"
import "layers/sage.gnn"
import "layers/batch_norm.gnn"
import "layers/rgcn.gnn"
graph G {
  node user { x: f32[F];  kind: cat[K];  y: class[C];  split }
  node place
  edge likes: user -> user { w: f32[W];  rel: cat[R] }
  edge lives: user -> place
}
model M(g: G) -> f32[user, C] {
%s
}
train M { target user.y  loss cross_entropy  metric %s  optimizer adam(lr = 1e-2)  epochs %d  keep best on val loss }
"""
# Types of different sizes, both directions, states, ranks; columns of edges, also where nothing is
# summed into nodes; loops: what an iteration leaves is read by the next,
# and where there is none, nothing was brought in it.
SHOP_MODELS = {
    "types": (HEAD, """
  back = reverse(g.lives)
  norm = batch_norm()
  a = linear(8)
  h = norm(a(dropout(g.user.x, 0.2)))
  p = mean(h[g.lives.src], over = g.lives.dst)
  u = h + sum(p[back.src], over = back.dst)
  b = linear(C)
  return b(relu(u))""", "roc_auc, accuracy"),
    "edges": (HEAD, """
  both = undirected(g.likes)
  k = linear(8)
  s = linear(8)
  m = relu(s(g.user.x)[g.likes.src] + k(g.likes.w))
  h = max(m, over = g.likes.dst) + s(g.user.x)
  conv = gat_conv(2, 4)
  b = linear(C)
  return b(relu(conv(both, dropout(h, 0.3))))""", "accuracy"),
    "kinds": (HEAD, """
  conv = rgcn_conv(R, 8, bases = 2)
  b = rgcn_conv(R, C)
  return b(g.likes, relu(conv(g.likes, rel = g.likes.rel)), rel = g.likes.rel)""", "accuracy"),
    "scores": (HEAD, """
  a = linear(C)
  b = linear(C)
  return a(g.user.x) + mean(relu(b(g.likes.w)), over = likes)""", "accuracy"),
    "loop": (HEAD, """
  a = linear(C)
  h = expand(1 / (1 + degree(g.likes, g.likes.dst)), 192)
  start = h
  off = 1.0
  while off > 1e-3 limit 6 {
    old = h
    h = 0.5 * mean(h[g.likes.src], over = g.likes.dst) + 0.5 * start
    off = max(abs(h - old))
  }
  b = linear(C)
  return a(g.user.x) + b(h)""", "accuracy"),
    "never": (HEAD, """
  a = linear(C)
  z = a(g.user.x)
  u = relu(z)
  r = sum(u, over = C)
  h = degree(g.likes, g.likes.dst)
  off = mean(z) * 0
  while off > 1e-3 limit 6 {
    h = sum(r[g.likes.src] * h[g.likes.src], over = g.likes.dst)
    off = max(h)
  }
  again = mean(u[g.likes.src], over = g.likes.dst)
  return z + again + detach(expand(mean(r[g.likes.src] * h[g.likes.src], over = g.likes.dst), C))""", "accuracy")}
POOL = """
import "layers/gin.gnn"
import "layers/mlp.gnn"
import "layers/batch_norm.gnn"
graph G { node atom { x: f32[F] }  edge bond: atom -> atom  graph { y: f32[T];  split } }
model M(g: G) -> f32[graph, T] {
  conv = gin_conv(mlp(8, 8))
  norm = batch_norm()
  h = relu(norm(conv(g.bond, g.atom.x)))
  out = linear(T)
  return out(sum(h, over = graph))
}
train M { target graph.y  loss mse  metric mae  optimizer adam(lr = 1e-2)  epochs %d }
"""


def compiled(name, text, *options):
    with open(name + ".gnn", "w", encoding="utf-8") as f:
        f.write(text)
    run(GNNC, name + ".gnn", "-o", name, *options)
    return "./" + name


def lines_of(text):
    lines = [json.loads(line) for line in text.splitlines() if line[:1] == "{"]
    return [{k: v for k, v in line.items() if not k.endswith("ms") and k != "seconds"} for line in lines]


def ran(n, exe, data, *options):
    """n = 0: without mpirun."""
    command = [*(MPIRUN + ["-n", str(n)] if n else []), exe, "--data", data, "--log=json", *options]
    r = subprocess.run(command, text=True, capture_output=True, check=False)  # mpirun mixes the two within lines
    check(" ".join(command)[:200], r.returncode == 0, r.stdout + r.stderr)
    return r


def told(n, exe, data, *options):
    """What the first of n processes says, times aside."""
    return lines_of(ran(n, exe, data, *options).stdout)


def one_of(i):
    """In how many processes the i-th of several programs runs, whose exchanges are made by the same code."""
    return NUMBERS if LONG else NUMBERS[i % 3:][:1]


heard = {}  # of training, by name and number of processes: what the first one said


def same_in_any_number(name, exe, data, numbers, *options):
    first = told(0, exe, data, "--checkpoint", name + ".0", *options)
    check(f"{name}: it learns", first[-1]["train"]["loss"] < first[0]["train"]["loss"], first)
    for n in numbers:
        r = ran(n, exe, data, "--checkpoint", f"{name}.{n}", "--threads", str(1 + n % 2), *options)
        lines, heard[name, n] = lines_of(r.stdout), r.stderr
        check(f"{name}: {n} processes tell the same", lines == first, (lines, first))
        check(f"{name}: {n} processes leave the same", bytes_of(f"{name}.{n}") == bytes_of(name + ".0"))
    return first


STEPS, ordered = 20 if LONG else 8, {}
for i, model in enumerate(("gcn", "sage", "gat", "gin")):
    run(GNNC, f"{TOP}/models/{model}.gnn", "--mpi", "-o", model)
    here = ordered[model] = same_in_any_number(model, "./" + model, CORA4, one_of(i) if i else NUMBERS, "--epochs", str(STEPS))
    whole = told(0, "./" + model, CORA, "--epochs", str(STEPS), "--checkpoint", "none")
    off = max(abs(a["loss"] / b["loss"] - 1) for a, b in zip(here[:STEPS], whole[:STEPS]))
    check(f"{model}: as of the data before they were partitioned", off < 1e-6, off)
same_in_any_number("uneven", "./gcn", CORA5, (2, 3) if LONG else (3,), "--epochs", "5")  # parts that cannot be shared evenly
# exchanges that rows are computed beside
for i, (model, hidden) in enumerate((("gcn", 192), ("sage", 192), ("gat", 64), ("gin", 192))):
    if model not in SOME:
        continue
    run(GNNC, f"{TOP}/models/{model}.gnn", "--mpi", "-D", f"hidden={hidden}", "-o", "wide_" + model)
    same_in_any_number("wide_" + model, "./wide_" + model, CORA4, one_of(i) if i else NUMBERS, "--epochs", "4")
for i, (name, (head, body, metrics)) in enumerate(SHOP_MODELS.items()):
    exe = compiled(name, head % (body, metrics, STEPS), "--mpi")
    same_in_any_number(name, exe, SHOP, one_of(i))
exe = compiled("pool", POOL % STEPS, "--mpi")
same_in_any_number("pool", exe, MOLECULES, one_of(2))

# ---- what is sent: as foreseen, and no more rows than are read -----------------------------------------------
def foreseen(exe, data, n):
    """Bytes, messages and bytes of halo rows of each phase."""
    text = run(exe, "info", "--data", data, "--processes", str(n)).partition("\nBetween ")[2]
    return {w[0]: [int(w[k]) for k in (1, 2, 3)] for w in map(str.split, text.splitlines()[1:])}


def by_step(exe, data, n):
    """Of each exchange: bytes and the least that could be; all of them are of phases."""
    told = json.loads(run(exe, "info", "--data", data, "--processes", str(n), "--json"))["traffic"]
    for phase in told["phases"]:
        of = [x for x in told["exchanges"] if x["phase"] == phase["phase"]]
        check(f"{exe}, {n} processes: exchanges of {phase['phase']}", all(phase[k] == sum(x[k] for x in of) for k in ("bytes", "at_least", "messages")), told)
    return [(x["bytes"], x["at_least"]) for x in told["exchanges"] if x["phase"] == "train"], {p["phase"]: p for p in told["phases"]}


for model in ("gcn", "sage", "gat", "gin"):
    for n in NUMBERS:
        sent, phases = by_step("./" + model, CORA4, n)
        check(f"{model}: {n} processes send the least in a step, or 5 % more", phases["train"]["bytes"] <= 1.05 * phases["train"]["at_least"], phases)
        check(f"{model}: nothing is sent in less than the least", all(a >= b > 0 for a, b in sent), sent)
for name, data in (("gcn", CORA4), ("gat", CORA4), ("types", SHOP), ("pool", MOLECULES)):
    numbers = [n for n in NUMBERS if (name, n) in heard]
    check(f"{name}: it was heard", numbers, heard.keys())
    for n in numbers:
        is_ = foreseen("./" + name, data, n)
        want = [is_["load"][k] + STEPS * is_["train"][k] + (STEPS + 1) * is_["eval"][k] for k in (0, 1)]
        check(f"{name}: what {n} processes send", f"{n} processes sent {want[0]} bytes in {want[1]} messages" in heard[name, n], (is_, heard[name, n]))
rows = [line.split()[-2:] for line in reports[CORA, 4].splitlines() if line.split()[:1] and line.split()[0].isdigit()]
check("the report of the parts", len(rows) == 4, reports[CORA, 4])
halo = sum(int(n) for row in rows for n in row)
check("each row that is read comes once", foreseen("./gcn", CORA4, 4)["train"][2] == 4 * (16 + 7) * halo, (halo, foreseen("./gcn", CORA4, 4)))
for model, beside in (("wide_gcn", True), ("wide_gat", True), ("loop", True), ("gcn", False)):
    said = [text for (name, _), text in heard.items() if name == model]
    check(f"{model}: it was heard", said and all(" processes sent " in text for text in said), said)
    check(f"{model}: processes compute while rows come", all((" bytes of it while they computed" in text) == beside for text in said), said)
check("one process sends nothing", not any(map(any, foreseen("./gcn", CORA4, 1).values())))

# ---- sums by MPI, where asked for ------------------------------------------------------------------------------
def sent_in_step(model, data, n, *options):
    told = json.loads(run("./" + model, "info", "--data", data, "--processes", str(n), "--json", *options))["traffic"]
    return next(p for p in told["phases"] if p["phase"] == "train")


for i, model in enumerate(SOME):
    for n in one_of(i):
        fast = told(n, "./" + model, CORA4, "--epochs", str(STEPS), "--checkpoint", f"fast.{model}", "--reduce", "fast")
        off = max(abs(a["loss"] / b["loss"] - 1) for a, b in zip(fast[:STEPS], ordered[model][:STEPS]))
        check(f"{model}: {n} processes, sums by MPI: the losses of ordered sums", len(fast) == len(ordered[model]) and off < 1e-5, off)
    for data, n in ((CORA4, 4), (CORA5, 3)):
        more, less = sent_in_step(model, data, n), sent_in_step(model, data, n, "--reduce", "fast")
        check(f"{model}: {n} processes, sums by MPI: fewer bytes", less["sums"] < more["sums"] and less["bytes"] == less["at_least"] == more["at_least"]
              and less["halo"] == more["halo"], (less, more))
text = run(*MPIRUN, "-n", "3", "./gcn", "--data", CORA5, "--epochs", "2", "--checkpoint", "none", "--reduce", "fast")
lines = run("./gcn", "info", "--data", CORA5, "--processes", "3", "--reduce", "fast").partition("\nBetween ")[2].splitlines()[1:]
is_ = {w[0]: int(w[1]) for w in map(str.split, lines)}
check("sums by MPI: sent as foreseen", f"3 processes sent {is_['load'] + 2 * is_['train'] + 3 * is_['eval']} bytes" in text
      and "sums by a library counted as the least" in text, (is_, text))
for n, to in ((0, "a"), (4, "b")):
    told(n, "./gcn", CORA4, "--epochs", str(STEPS + 5), "--resume", "fast.gcn", "--checkpoint", to)
check("what sums by MPI left is gone on with by ordered ones, in any number", bytes_of("a") == bytes_of("b"))

# ---- evaluated and predicted -----------------------------------------------------------------------------------
told(0, "./gcn", CORA4, "--epochs", "9", "--checkpoint", "all")
for i, (file, command) in enumerate((("scores.npy", ["predict"]), ("ids.csv", ["predict", "--format", "csv"]), ("h.npy", ["embed", "h"]))):
    for n in (0, *one_of(i)):
        start = MPIRUN + ["-n", str(n)] if n else []
        run(*start, "./gcn", *command, "--data", CORA4, "--weights", "all", "--out", f"{n}.{file}")
        check(f"{file} by {n} processes", bytes_of(f"0.{file}") == bytes_of(f"{n}.{file}"))
alone = run("./gcn", "eval", "--data", CORA4, "--weights", "all")
for n in one_of(1):
    more = run(*MPIRUN, "-n", str(n), "./gcn", "eval", "--data", CORA4, "--weights", "all")
    check(f"evaluated by {n} processes", alone == more, (alone, more))

# ---- ended, killed, and gone on with in another number --------------------------------------------------------
for n, steps, m in ((3, 4, 2), (1, 5, 3), (2, 7, 4), (4, 1, 1))[:4 if LONG else 2]:
    told(n, "./gcn", CORA4, "--epochs", "9", "--steps", str(steps), "--checkpoint", "part")
    told(m, "./gcn", CORA4, "--epochs", "9", "--resume", "part", "--checkpoint", "rest")
    check(f"{steps} steps in {n} processes, the rest in {m}", bytes_of("rest") == bytes_of("all"))


def started(n, job, *options, exe="./gcn", wrapper=()):
    p = subprocess.Popen(MPIRUN + ["-x", "OF_TEST", "-n", str(n), *wrapper, exe, "--data", CORA4, "--epochs", "1000000", "--checkpoint", job,
                                   "--log=none", *options],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | {"OF_TEST": job})
    for _ in range(2400):
        if len(ranks_of(exe, job)) == n and os.path.exists(job):
            return p
        time.sleep(0.05)
    check(f"{job}: it has begun", False)
    return p


def epochs_in(file):
    return int(header_of(file)[0]["__metadata__"]["epoch"])


r = random.Random(1)
for k in range(KILLS):
    n = 2 + k % 3
    job = f"killed.{k}"
    exe = "./wide_gcn" if k % 2 else "./gcn"
    p = started(n, job, "--save-every", "3", exe=exe)
    time.sleep(r.random() / 4)
    begun = time.time()
    os.kill(ranks_of(exe, job)[k % n], signal.SIGKILL)
    p.communicate(timeout=200)
    check(f"{job}: all end, within seconds", p.returncode != 0 and all_gone(exe, job) and time.time() - begun < 60)
    n_epochs = str(epochs_in(job) + 4)
    for m, to in ((0, "a"), (1 + n % 4, "b")):
        told(m, exe, CORA4, "--resume", job, "--epochs", n_epochs, "--checkpoint", to)
    check(f"{job}: gone on with in another number", bytes_of("a") == bytes_of("b"))
if shutil.which("prlimit"):  # the first's disk is full: a file cannot grow, as ENOSPC has it
    job = "full"
    # a write beyond the limit is to fail, not to kill
    p = started(3, job, "--save-every", "3", wrapper=["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"])
    begun, files = time.time(), set(os.listdir())
    run("prlimit", "--pid", str(ranks_of("./gcn", job)[0]), "--fsize=1000")
    text = p.communicate(timeout=200)[0]
    lines = [line for line in text.splitlines() if "error:" in line]
    check("a full disk: all end within seconds, with one line", p.returncode and all_gone("./gcn", job) and time.time() - begun < 60
          and len(lines) == 1 and "full: cannot write: File too large" in lines[0] and
          "gcn: all processes end; what MPI writes of that" in text, text)
    check("a full disk: nothing half-written", set(os.listdir()) == files, set(os.listdir()) ^ files)
    n_epochs = str(epochs_in(job) + 4)
    for m, to in ((0, "a"), (2, "b")):
        told(m, "./gcn", CORA4, "--resume", job, "--epochs", n_epochs, "--checkpoint", to)
    check("a full disk: gone on with, the same bits", bytes_of("a") == bytes_of("b"))
job = "hangs"  # one stands still
p = started(3, job, "--save-every", "3", "--patience", "2", exe="./wide_gcn")
begun = time.time()
os.kill(ranks_of("./wide_gcn", job)[1], signal.SIGSTOP)
text = p.communicate(timeout=200)[0]
check("a process that hangs", "did not come" in text and "waited 2 s: --patience" in text and p.returncode and time.time() - begun < 60, text)
job = "asked"  # a signal to one of them: all hear it
p = started(3, job, "--save-every", "100")
os.kill(ranks_of("./gcn", job)[2], signal.SIGTERM)
text = p.communicate(timeout=200)[0]
check("stopped by a signal to one, told once", text.count("stopped by SIGTERM") == 1, text)

# ---- one line where they cannot ---------------------------------------------------------------------------------
text = ran(1, "./gcn", CORA4, "--epochs", "1", "--checkpoint", "other.weights", "--seed", "3", "--stale-halos", "1").stderr
check("one process has no stale halos", text.count("stale halos: one process has all rows, the option changes nothing") == 1, text)
wrong = [
    ("3 processes share rows of data in 1 part", 3, ["./gcn", "--data", CORA]),
    ("5 processes share rows of data in 4 parts", 5, ["./gcn", "--data", CORA4]),
    ("cannot open", 3, ["./gcn", "--data", "nowhere"]),
    ("rank 1: gcn: error: nowhere", 2, ["sh", "-c", f"d={CORA4}; [ $OMPI_COMM_WORLD_RANK = 1 ] && d=nowhere; exec ./gcn --data $d --checkpoint none"]),
    ("trains with another data than rank 0", 2,
     ["sh", "-c", f"d={CORA4}; [ $OMPI_COMM_WORLD_RANK = 1 ] && d={CORA5}; exec ./gcn --data $d --checkpoint none"]),
    ("trains with another way to add up sums (reduce_fast) than rank 0", 2,
     ["sh", "-c", f"r=ordered; [ $OMPI_COMM_WORLD_RANK = 1 ] && r=fast; exec ./gcn --data {CORA4} --checkpoint none --reduce $r"]),
    ("trains with another seed than rank 0", 3, ["sh", "-c", f"exec ./gcn --data {CORA4} --checkpoint none --seed $((OMPI_COMM_WORLD_RANK == 2))"]),
    ("trains with another file of parameters than rank 0", 2,
     ["sh", "-c", f"w=all; [ $OMPI_COMM_WORLD_RANK = 1 ] && w=other.weights; exec ./gcn --data {CORA4} --checkpoint none --weights $w"])]
for what, n, command in wrong:
    done = subprocess.run(MPIRUN + ["-n", str(n), *command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    lines = [line for line in done.stdout.splitlines() if "error:" in line]
    check(f"told: {what}", done.returncode in (1, 2) and len(lines) == 1 and what in lines[0], done.stdout)
for n in ("5", "4294967298"):
    done = subprocess.run(["./gcn", "info", "--data", CORA4, "--processes", n], text=True, capture_output=True, check=False)
    check(f"{n} processes, more than parts", done.returncode == 1 and "processes: the data are in 4 parts" in done.stderr, done.stderr)

# ---- the plan is text -------------------------------------------------------------------------------------------
plan = run(GNNC, "gcn.gnn" if os.path.exists("gcn.gnn") else f"{TOP}/models/gcn.gnn", "--mpi", "--emit=plan")
with open("gcn.plan", "w", encoding="utf-8") as f:
    f.write(plan)
check("a plan with exchanges is read as it is printed", run(GNNC, "gcn.plan", "--emit=plan") == plan)
run(GNNC, "gcn.plan", "--mpi", "-o", "from_plan")
told(2, "./from_plan", CORA4, "--epochs", "9", "--checkpoint", "from_plan.2")
# A plan is one of a program's variants, so that a checkpoint has no number of a variant.
check("and makes the same program", header_of("from_plan.2")[1] == header_of("all")[1])
sys.exit(end())
