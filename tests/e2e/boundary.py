#!/usr/bin/env python3
"""Sampled boundaries: the same bits in any number of processes, also resumed; sums that are right on average, and exact evaluations;
as many bytes as `info` expects; one line where rows cannot be sampled.
usage: boundary.py GNNC TOP.  Prints `N passed, N failed`."""
import os
import random
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import directory  # noqa: E402
from checks import MPI, bytes_of, check, end, header_of, run  # noqa: E402

GNNC, TOP = sys.argv[1:3]
CORA = TOP + "/models/data/cora"
os.environ |= MPI
os.environ["OMPI_MCA_hwloc_base_binding_policy"] = "none"
run(GNNC, "partition", CORA, "4", "-o", "four", "--method", "stream")


def text_of(n, exe, *options, data="four"):
    """What n processes say; n = 0: without mpirun."""
    start = ["timeout", "300", "mpirun", "--oversubscribe", "-n", str(n)] if n else []
    r = subprocess.run([*start, f"./{exe}", "--data", data, *options], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       errors="replace", check=False)
    return r.returncode, r.stdout


def trained(n, exe, to, epochs, *options, data="four"):
    status, text = text_of(n, exe, "--epochs", str(epochs), "--checkpoint", to, *options, data=data)
    check(f"{exe}: {n} processes", status == 0, text)
    return text


def compiled(name, p, model=None):
    run(GNNC, model or f"{TOP}/models/{name}.gnn", "--mpi", *(["--sampled-boundary", p] if p else []), "-o", name + (p or ""))


# ---- the same bits, and as many bytes as expected -----------------------------------------------------------------
EPOCHS, BOTH = 6, ("--eval-every", "3")
compiled("gcn", "0.5")
compiled("gcn", None)
for n in (0, 2, 4):
    trained(n, "gcn0.5", f"g{n}", EPOCHS, "--threads", str(1 + n % 2), *BOTH)
    check(f"gcn: {n} processes leave the same", bytes_of(f"g{n}") == bytes_of("g0"))
trained(0, "gcn", "exact", EPOCHS, *BOTH)
check("gcn: what is learned is another", header_of("g0")[1] != header_of("exact")[1])
trained(2, "gcn0.5", "half", EPOCHS // 2, *BOTH)
trained(3, "gcn0.5", "half", EPOCHS, "--resume", "half", *BOTH)
check("gcn: it goes on in another number", header_of("half")[1] == header_of("g0")[1])


# One trainer goes on from a checkpoint of another seed, at the step that it did last.
trained(0, "gcn0.5", "seven", 2, "--seed", "7", *BOTH)
run(GNNC, TOP + "/models/gcn.gnn", "--parts", "--target=cpu", "--sampled-boundary", "0.5", "--emit=lib", "--name=model", "-o", "gcn")
run("cc", "-O1", "-I", TOP + "/runtime/include", TOP + "/tests/rows_threads.c", "./libgcn.so", "-Wl,-rpath,$ORIGIN", "-o", "threads", "-lm", "-lpthread", "-ldl")
for n in "1", "2":
    run("./threads", "four", n, "on" + n, "resume", "seven")
check("gcn: it goes on by the seed of the checkpoint", header_of("on2")[1] == header_of("on1")[1])


def sends(exe):
    """Of 2 processes, by phase: bytes, messages, halo, to all, sums, at least; what is said of each exchange; and the bytes of STEPS steps
    and of what does not train."""
    text = run(f"./{exe}", "info", "--data", "four", "--processes", "2")
    said = {m[1]: [int(x) for x in m[2].split()] for m in re.finditer(r"^  (load|train|eval) +((?:\d+ *){6})$", text, re.M)}
    sent = re.search(r"2 processes sent (\d+) bytes", trained(2, exe, exe + ".sent", STEPS, "--eval-every", str(STEPS)))
    return said, text, int(sent[1]) if sent else 0


STEPS = 40
(drawn, text, sent), (whole, _, all_sent) = sends("gcn0.5"), sends("gcn")
check("info: halos are drawn in training alone", drawn["load"] == whole["load"] and drawn["eval"] == whole["eval"], (drawn, whole))
check("info: with what probability", "each drawn with 0.5" in text, text)


def saves(what, drawn, whole, sent, all_sent):
    check(what + ": as many bytes as expected", abs((all_sent - sent) / STEPS / (whole["train"][0] - drawn["train"][0]) - 1) < 0.05,
          (drawn, whole, sent, all_sent))


saves("gcn", drawn, whole, sent, all_sent)

# ---- several relations, both directions -----------------------------------------------------------------------------------
SUMS = """
graph G { node paper { x: csr f32[F];  y: class[C];  split }  edge cites: paper -> paper }
layer totals()(h: f32[N, I]) -> f32 {
  state total: f32 = 0 as "total"
  state n: f32 = 0 as "n"
  if training {
    total = total + mean(h)
    n = n + 1
  }
  return n
}
model M(g: G) -> f32[paper, C] {
  back = reverse(g.cites)
  a = linear(C)
  b = linear(C)
  count = totals()
  z = relu(a(g.paper.x))
  both = with_self_loops(undirected(g.cites))
  n = 1 / max(degree(both, both.dst), 1)
  h = sum(z[g.cites.src], over = g.cites.dst) - 0.5 * mean(sum(z, C)[back.src], over = back.dst)
      + sum(z[both.src] * n[both.dst], over = both.dst) + 0.1 * sum(z[back.src], over = back.dst)
  k = count(h)
  return b(h + z) + 0 * detach(k)
}
train M { target paper.y  loss cross_entropy  optimizer sgd(lr = %s)  epochs 8 }
"""
for name, lr in ("sums", "0"), ("two", "0.1"):
    with open(name + ".gnn", "w", encoding="utf-8") as f:
        f.write(SUMS % lr)
compiled("two", "0.3", "two.gnn")
for n in 0, 3:
    trained(n, "two0.3", f"two{n}", EPOCHS)
check("relations: the same in 3 processes", bytes_of("two3") == bytes_of("two0"))
compiled("two", None, "two.gnn")
(drawn, _, sent), (whole, _, all_sent) = sends("two0.3"), sends("two")
saves("relations", drawn, whole, sent, all_sent)

# ---- two types; a row that is infinite and not drawn --------------------------------------------------------------
ITEMS = """
graph G { node item { x: f32[F];  b: f32 }  node user { x: f32[K];  y: class[C];  split }  edge r: item -> user }
model M(g: G) -> f32[user, C] {
  back = reverse(g.r)
  a = linear(C)
  z = a(g.item.x) + 1 / g.item.b
  u = linear(C)
  h = u(g.user.x) + sum(z[g.r.src], over = g.r.dst)
  w = linear(C)
  k = w(mean(h[back.src], over = back.dst))
  return h + mean(k[g.r.src], over = g.r.dst)
}
train M { target user.y  loss cross_entropy  optimizer sgd(lr = 0.1)  epochs 8 }
"""


def write_items(to):
    """All users of item 0, whose row is infinite, are of the other part."""
    n, users, r = 40, 60, random.Random(3)
    os.mkdir(to)
    item = {"x": directory.column(to, "x", "float", [r.gauss(0, 1) for _ in range(3 * n)], width=3),
            "b": directory.column(to, "b", "float", [float(i > 0) for i in range(n)])}
    user = {"x": directory.column(to, "ux", "float", [r.gauss(0, 1) for _ in range(2 * users)], width=2),
            "y": directory.column(to, "y", "class", [i % 3 for i in range(users)], categories=3),
            "split": directory.column(to, "split", "split", [1] * users)}
    pairs = [(0, i) for i in range(40, users)] + [(r.randrange(1, n), i % users) for i in range(4 * users)]
    directory.write(to, {"item": {"count": n, "columns": item}, "user": {"count": users, "columns": user}},
                    {"r": directory.relation(to, "r", "item", "user", pairs)})


with open("items.gnn", "w", encoding="utf-8") as f:
    f.write(ITEMS)
write_items("items")
run(GNNC, "partition", "items", "2", "-o", "items2", "--method", "rows")
compiled("items", "0.5", "items.gnn")
finite = 0
for seed in "1", "2", "3":
    told = [text_of(n, "items0.5", "--epochs", "1", "--seed", seed, "--checkpoint", f"items.{n}", data="items2") for n in (0, 2)]
    check(f"items: the same end, seed {seed}", (told[0][0] == 0) == (told[1][0] == 0), told)
    if told[0][0] == 0:
        finite += 1
        check(f"items: an infinite row that is not drawn changes nothing, seed {seed}", bytes_of("items.2") == bytes_of("items.0"))
    else:
        check(f"items: .. and one that is drawn does, seed {seed}", "the loss became NaN" in told[0][1], told)
check("items: the infinite row is drawn for some seeds, and not for others", 0 < finite < 3, finite)

# ---- right on average ---------------------------------------------------------------------------------------------
compiled("sums", "0.2", "sums.gnn")
compiled("sums", None, "sums.gnn")


def mean_of(exe, steps):
    """The mean over steps of what a step sums, with the parameters that it began with."""
    trained(0, exe, exe + ".w", steps, "--eval-every", str(steps))
    head, data = header_of(exe + ".w")
    value = {}
    for name in "total", "n":
        at = next(v for k, v in head.items() if k.split(".")[-1] == name)["data_offsets"]
        value[name] = struct.unpack("<f", data[at[0]:at[1]])[0]
    check(f"{exe}: steps", value["n"] == steps, value)
    return value["total"] / value["n"]


exact, one, many = mean_of("sums", 1), mean_of("sums0.2", 1), mean_of("sums0.2", 600)
check("a step's sum is another", abs(one / exact - 1) > 1e-4, (one, exact))
check("sums are right on average", abs(many / exact - 1) < 5e-3, (many, exact))

# ---- nearly all rows ----------------------------------------------------------------------------------------------
compiled("gcn", "0.9999")
near = [float(re.findall(r"loss ([\d.]+)", trained(0, exe, exe + ".near", 20))[-1]) for exe in ("gcn0.9999", "gcn")]
check("with nearly all rows losses are nearly the exact ones", abs(near[0] - near[1]) < 2e-3, near)

# ---- refused ------------------------------------------------------------------------------------------------------
status, text = text_of(2, "gcn0.5", "--epochs", "1", "--checkpoint", "none", "--stale-halos", "1")
check("no rows of an earlier step", status != 0 and "'stale_halos': the program was compiled with --sampled-boundary" in text, text)
r = subprocess.run(["./gcn0.5", "--data", CORA, "--epochs", "1", "--checkpoint", "none"], text=True, capture_output=True, check=False)
check("one part has no boundary", r.stderr.count("sampled boundary: the data are in one part, all of whose rows are read") == 1, r.stderr)
sys.exit(end())
