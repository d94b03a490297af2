#!/usr/bin/env python3
"""Programs that train in several processes by MPI: the same bits in any number of them, also when they end, are killed, and go
on in another number; one line where they cannot.  With GNNC_LONG every model runs in each number of processes.  usage: ranks.py GNNC TOP.  Prints `N passed, N failed`."""
import json
import os
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
LONG = "GNNC_LONG" in os.environ
os.environ |= MPI

SAGE = """
import "layers/sage.gnn"
graph G { node paper { x: csr f32[F];  y: class[C];  split }  edge cites: paper -> paper }
model M(g: G) -> f32[paper, C] {
  a = sage_conv(16)
  b = sage_conv(C)
  return b(g.cites, dropout(relu(a(g.cites, dropout(g.paper.x, 0.5))), 0.5))
}
train M {
  target paper.y  loss cross_entropy  metric accuracy
  optimizer adam(lr = 1e-2)  epochs 6  keep best on val accuracy
  %s
}
"""
LINKS = """
import "layers/sage.gnn"
import "layers/links.gnn"
graph G { node v { x: f32[F] }  edge e: v -> v { split } }
model M(g: G) -> f32[links] {
  p = links(g.e)
  conv = sage_conv(8)
  h = conv(g.e where in_split(g.e, "train"), g.v.x)
  return contract(h[p.src], h[p.dst], 1)
}
train M { target links  loss bce_with_logits  metric roc_auc  optimizer adam(lr = 1e-2)  epochs 3  %s }
"""
PLAIN = "sample { fanout [5, 3]  batch 9 }  accumulate 5"
# A running mean of two factors, a counter, a state that no step changes, one that steps replace.
STATES = """
layer counts()(x: f32[N, I]) -> f32[N, I] {
  state mean_of: f32[I] = 0.5
  state seen: f32 = 3
  state fixed: f32 = 2
  if training {
    seen = seen + size(N)
    mean_of = detach(mean(x, N)) * 0.25 + mean_of * 0.75
    return x * fixed
  }
  return (x - mean_of) * fixed + 1e-6 * seen
}
graph G"""
MODELS = {"nodes": PLAIN, "clipped": "sample { fanout [5, 3]  batch 9 }  accumulate 4  clip 0.5  ema 0.9",
          "states": PLAIN, "clusters": "sample { clusters 20  batch 3 }  accumulate 3"}


def compiled(name, text, *options):
    with open(name + ".gnn", "w", encoding="utf-8") as f:
        f.write(text)
    run(GNNC, name + ".gnn", "--target=cpu", "-o", name, *options)
    return "./" + name


def told(n, exe, *options):
    """What rank 0 says of training in n processes, times aside; n = 0: without mpirun."""
    text = run(*(MPIRUN + ["-n", str(n)] if n else []), exe, "--data", CORA, "--log=json", *options)
    lines = [json.loads(line) for line in text.splitlines() if line[:1] == "{"]
    return [{k: v for k, v in line.items() if not k.endswith("ms") and k != "seconds"} for line in lines]


# ---- the same bits ---------------------------------------------------------------------------------
for i, (name, sample) in enumerate(MODELS.items()):
    text = SAGE % sample
    if name == "states":
        text = text.replace("graph G", STATES, 1).replace("  return b(", "  c = counts()\n  return b(").replace("relu(a(", "c(relu(a(").replace(
            "0.5))), 0.5", "0.5)))), 0.5")
    exe = compiled(name, text, "--mpi")
    first = told(0, exe, "--checkpoint", name + ".0")
    check(f"{name}: it learns", first[-1]["train"]["loss"] < first[0]["train"]["loss"], first)
    for n in (1, 2, 3, 4) if i == 0 or LONG else (1 + i,):  # what they exchange is the same
        lines = told(n, exe, "--checkpoint", f"{name}.{n}", "--threads", str(1 + n % 2), "--workers", str(n % 3))
        check(f"{name}: {n} processes tell the same", lines == first, (lines, first))
        check(f"{name}: {n} processes leave the same", bytes_of(f"{name}.{n}") == bytes_of(name + ".0"))
alone = compiled("alone", SAGE % MODELS["clipped"])
one = told(0, alone, "--checkpoint", "alone.0")  # each update within its last step
two = told(2, "./clipped", "--checkpoint", "none")
check("as a program that knows no processes", abs(one[-1]["val"]["loss"] / two[-1]["val"]["loss"] - 1) < 1e-5, (one, two))

# ---- ended in the middle of an update, killed, and gone on with in another number ------------------------
told(1, "./nodes", "--epochs", "9", "--checkpoint", "all")
for n, steps, m in ((3, 37, 2), (1, 9, 3), (2, 43, 4), (4, 1, 1))[:4 if LONG else 2]:
    told(n, "./nodes", "--epochs", "9", "--steps", str(steps), "--checkpoint", "part")
    told(m, "./nodes", "--epochs", "9", "--resume", "part", "--checkpoint", "rest")
    check(f"{steps} steps in {n} processes, the rest in {m}", bytes_of("rest") == bytes_of("all"))


def started(n, job, *options):
    p = subprocess.Popen(MPIRUN + ["-x", "OF_TEST", "-n", str(n), "./nodes", "--data", CORA, "--epochs", "1000000", *options],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | {"OF_TEST": job})
    for _ in range(2400):
        if len(ranks_of("./nodes", job)) == n and os.path.exists(job):
            return p
        time.sleep(0.05)
    check(f"{job}: it has begun", False)
    return p


def steps_in(file):
    return int(header_of(file)[0]["__metadata__"]["step"])


for k, n in enumerate((2, 3, 4) if LONG else (3,)):  # kill -9
    job = f"killed.{k}"
    p = started(n, job, "--checkpoint", job, "--save-every-steps", "7", "--log=none")
    begun = time.time()
    os.kill(ranks_of("./nodes", job)[k % n], signal.SIGKILL)
    p.wait(timeout=200)
    check(f"{job}: all end, within seconds", p.returncode != 0 and all_gone("./nodes", job) and time.time() - begun < 60)
    n_steps = steps_in(job) + 60 + k
    for m, to in ((0, "a"), (1 + n % 4, "b")):
        told(m, "./nodes", "--resume", job, "--epochs", "1000000", "--steps", str(n_steps), "--checkpoint", to)
    check(f"{job}: gone on with in another number", bytes_of("a") == bytes_of("b"))
job = "hangs"  # one stands still
p = started(3, job, "--checkpoint", job, "--save-every-steps", "7", "--log=none", "--patience", "2")
begun = time.time()
os.kill(ranks_of("./nodes", job)[1], signal.SIGSTOP)
text = p.communicate(timeout=200)[0]
check("a process that hangs", "sends did not come" in text and "waited 2 s: --patience" in text and p.returncode and time.time() - begun < 60, text)
for n in (2, 3) if LONG else (3,):  # a signal to all of them: they agree where to end
    job = f"asked.{n}"
    p = started(n, job, "--checkpoint", job, "--save-every-steps", "16", "--log=none")
    for pid in ranks_of("./nodes", job).values():
        os.kill(pid, signal.SIGTERM)
    text = p.communicate(timeout=200)[0]
    check(f"{job}: stopped, and told once", text.count("stopped by SIGTERM") == 1, text)
    n_steps = steps_in(job) + 60
    for m, to in ((0, "a"), (4, "b")):
        told(m, "./nodes", "--resume", job, "--epochs", "1000000", "--steps", str(n_steps), "--checkpoint", to)
    check(f"{job}: gone on with", bytes_of("a") == bytes_of("b"))

for n in (1, 3):  # of several seeds
    run(*MPIRUN, "-n", str(n), "./nodes", "--data", CORA, "--seeds", "2", "--epochs", "2", "--checkpoint", f"seeds{n}", "--log=none")
    check(f"two seeds in {n} processes", sorted(f for f in os.listdir() if f.startswith(f"seeds{n}")) == [f"seeds{n}.0", f"seeds{n}.1"])
check("seeds: the same bits", all(bytes_of(f"seeds1.{k}") == bytes_of(f"seeds3.{k}") for k in (0, 1)))

# ---- what only one does ------------------------------------------------------------------------------------
run("./nodes", "predict", "--data", CORA, "--weights", "all", "--out", "one.npy")
text = run(*MPIRUN, "-n", "3", "./nodes", "predict", "--data", CORA, "--weights", "all", "--out", "three.npy")
check("predictions are written once", bytes_of("one.npy") == bytes_of("three.npy"), text)
text = run(*MPIRUN, "-n", "3", "./nodes", "eval", "--data", CORA, "--weights", "all")
check("metrics are told once", text.count("accuracy") == 3, text)

# ---- one line where they cannot ----------------------------------------------------------------------------
NORM = SAGE.replace('graph G', """
layer squares()(x: f32[N, I]) -> f32[N, I] {
  state s: f32[I] = 1
  if training {
    s = 0.5 * s * s + 0.1 * detach(mean(x, N))
  }
  return x
}
graph G""").replace("  return b(", "  norm = squares()\n  return b(").replace("relu(a(g.cites, dropout(g.paper.x, 0.5)))",
                                                                     "relu(norm(a(g.cites, dropout(g.paper.x, 0.5))))")
shutil.copytree(CORA, "other")
with open("other/node.paper.y.npy", "r+b") as f:
    f.seek(-40, 2)
    f.write(bytes(40))
wrong = [
    ("'accumulate n' says", 2, [compiled("none", SAGE % "sample { fanout [5, 3]  batch 9 }", "--mpi"), "--data", CORA]),
    ("share rows of data in 1 part", 2, [compiled("whole", SAGE % "accumulate 2", "--mpi"), "--data", CORA]),
    ("state that steps change by more than", 2, [compiled("squares", NORM % PLAIN, "--mpi"), "--data", CORA]),
    ("gnnc --mpi makes", 2, [alone, "--data", CORA]),
    ("'--nothing'", 2, ["./nodes", "--data", CORA, "--nothing"]),
    ("cannot open", 3, ["./nodes", "--data", "nowhere"]),
    ("trains with another data than rank 0", 2,
     ["sh", "-c", f"d=other; [ $OMPI_COMM_WORLD_RANK = 0 ] && d='{CORA}'; exec ./nodes --data $d --checkpoint none"]),
    ("trains with another seed than rank 0", 3,
     ["sh", "-c", f"exec ./nodes --data '{CORA}' --checkpoint none --seed $((OMPI_COMM_WORLD_RANK == 2))"])]
other_of = "exec ./nodes --data '" + CORA + "' --epochs 2 --checkpoint %s $([ $OMPI_COMM_WORLD_RANK = %d ] && echo --variant 1)"
wrong += [("trains with another variant of the program than rank 0", 2, ["sh", "-c", other_of % ("none", 1)])]
told(0, "./nodes", "--epochs", "2", "--variant", "1", "--checkpoint", "second")
run(*MPIRUN, "-n", "2", "sh", "-c", other_of % ("of0", 0))
check("all run the variant of process 0", bytes_of("of0") == bytes_of("second"))
if b"amx_bf16" in bytes_of("/proc/cpuinfo"):
    wrong += [("trains with another kind of processor than rank 0", 2,
               ["sh", "-c", f"[ $OMPI_COMM_WORLD_RANK = 0 ] || o=--no-amx; exec ./nodes --data '{CORA}' --checkpoint none $o"])]
for what, n, command in wrong:
    r = subprocess.run(MPIRUN + ["-n", str(n), *command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    lines = [line for line in r.stdout.splitlines() if "error:" in line or (line.startswith("nodes: ") and "all processes end" not in line)]
    check(f"told: {what}", r.returncode in (1, 2) and len(lines) == 1 and what in lines[0], r.stdout)
r = subprocess.run(MPIRUN + ["-n", "1", "./nodes", "--data", CORA, "--checkpoint", "none", ":",
                             "-n", "1", "./nodes", "--data", CORA, "--checkpoint", "none", "--nothing"],
                   text=True, capture_output=True, check=False)
check("one that was called with other words says so itself", r.returncode and "rank 1: nodes: " in r.stderr and "'--nothing'" in r.stderr, r)
run("./squares", "--data", CORA, "--epochs", "1", "--checkpoint", "none")  # alone it learns
r = subprocess.run([GNNC, "nodes.gnn", "--mpi", "--emit=lib", "-o", "x"], text=True, capture_output=True, check=False)
check("no library", r.returncode == 2 and "--mpi is for programs" in r.stderr, r.stderr)
wrong = subprocess.run(["./nodes", "--nonsense"], capture_output=True, text=True, check=False)
check("one that is alone ends as others do", wrong.returncode == 2 and "--nonsense" in wrong.stderr and "MPI" not in wrong.stderr,
      wrong)
needed = run("readelf", "-d", alone)
check("a program that does not ask for it has no MPI", "NEEDED" in needed and "mpi" not in needed, needed)
sys.exit(end())
