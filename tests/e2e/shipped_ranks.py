#!/usr/bin/env python3
"""Every shipped model in several processes: those that see the whole graph share its rows, those with batches the steps of an
update (`accumulate`, which the test adds); the same bits in any number.
In CI those that are like another one are left out.  With GNNC_KILLS=N also killed N times, all models in turn, and gone on with in another number; what is done is kept in kills.ID.txt,
ID of the compiler, and not done again.  usage: shipped_ranks.py GNNC TOP.  Prints `N passed, N failed`."""
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import session_graphs  # noqa: E402
import session_links  # noqa: E402
import session_pairs  # noqa: E402
import sessions  # noqa: E402
from checks import MPI, all_gone, bytes_of, check, end, header_of, ranks_of, run
from small import sizes  # noqa: E402

GNNC, TOP = sys.argv[1:3]
KILLS = int(os.environ.get("GNNC_KILLS", "0"))
MPIRUN = ["timeout", "300", "mpirun", "--oversubscribe"]
LOOPBACK = ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]  # else over shared memory
os.environ |= MPI
PARTS, K = 4, 4
ROWS = {"gcn": None, "sage": None, "gat": None, "gin": None, **{name: sessions.SHIPPED[name] for name in ("rgcn", "dblp", "gat_blocks")}}
STEPS = {"sage_sampled": (None, 8), "relational_sage": (sessions.purchases, 4), "relational_transformer": (sessions.purchases, 4),
         **{name: (data[0], 8) for name, data in session_links.SHIPPED.items()}, "events": (session_pairs.mail, 8),
         **{name: (session_pairs.races, 4) for name in ("f1_id_gnn", "f1_two_tower")},
         **{name: (lambda path, of=of: session_graphs.many_graphs(path, *of), 2) for name, of in session_graphs.SHIPPED.items()}}
SMALL = {name: ["-D", data[1]] for name, data in session_links.SHIPPED.items()}


def told(n, name, *options, by=()):
    """The first of n processes, of the data and with the batch of the model; n = 0: without mpirun."""
    start = [*MPIRUN, *by, "-n", str(n)] if n else []
    return subprocess.run([*start, "./" + name, "--data", name + ".data", *BATCH[name], *options], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, errors="replace", check=False)


def trained(n, name, to, epochs, *options, by=()):
    r = told(n, name, "--epochs", str(epochs), "--checkpoint", to, "--log=none", *options, by=by)
    check(f"{name}: {n} processes {' '.join(by)}", r.returncode == 0, r.stdout)


def text_of(name):
    with open(f"{TOP}/models/{name}.gnn", encoding="utf-8") as f:
        text = f.read().replace('"layers/', f'"{TOP}/models/layers/')
    if name == "events":  # without stored negatives
        text = text.replace(", negatives = g.no_event", "").replace("  edge no_event", "  # edge no_event")
    return text.replace("\n  epochs ", f"\n  accumulate {K}\n  epochs ") if name in STEPS else text


def data_of(name):
    if name in ROWS:
        whole = f"{TOP}/models/data/cora"
        if ROWS[name]:
            whole = name + ".whole"
            sessions.tables(whole, *ROWS[name][:2])
        run(GNNC, "partition", whole, str(PARTS), "-o", name + ".data", "--method", "rows" if ROWS[name] else "stream")
    elif STEPS[name][0]:
        STEPS[name][0](name + ".data")
    else:
        os.symlink(f"{TOP}/models/data/cora", name + ".data")


BATCH = {name: ["--batch", str(STEPS[name][1])] if name in STEPS else [] for name in [*ROWS, *STEPS]}
# parts.py trains the first four on these data, and holds what they send against the least; ranks.py one like sage_sampled.  What the
# others send, and how their batches are made, is another one's.
THERE = () if KILLS else ("gcn", "sage", "gat", "gin", "sage_sampled", "gat_blocks", "relational_transformer", "link", "distmult", "f1_id_gnn",
                          "gin_graphs", "molecule")
EPOCHS = {name: 20 if name in ROWS else 2 for name in BATCH}
check("every shipped model is here", sorted(BATCH) == sorted(f[:-4] for f in os.listdir(TOP + "/models") if f.endswith(".gnn")), sorted(BATCH))
for i, name in enumerate(BATCH):
    if name in THERE:
        continue
    with open(name + ".gnn", "w", encoding="utf-8") as f:
        f.write(text_of(name))
    run(GNNC, name + ".gnn", "--target=cpu", "--mpi", "-o", name, *SMALL.get(name, ()), *sizes(name))
    if not os.path.exists(name + ".data"):
        data_of(name)
    trained(0, name, name + ".0", EPOCHS[name])
    for n in (2, 3, 4) if KILLS else (2 + i % 3,):  # make long: all of them
        trained(n, name, f"{name}.{n}", EPOCHS[name], by=LOOPBACK if (i + n) % 2 else [])
        check(f"{name}: {n} processes leave the same", bytes_of(f"{name}.{n}") == bytes_of(name + ".0"))
print("same bits:", ", ".join(name for name in BATCH if name not in THERE))

# ---- what those that share rows send: the least, or 5 % more ------------------------------------------------------------
LONG_SUM = 8192  # bytes (runtime/exec/sum_parts.c): shorter sums go to all in one message, not in two of the least bytes


def short_excess(steps):
    """What short sums send above the least; a sum is at least sent 2 (n - 1) times."""
    return sum(x["bytes"] - x["at_least"] for x in steps if x["sums"] and x["at_least"] < 2 * (n - 1) * LONG_SUM)


for name in (name for name in ROWS if name not in THERE):
    for n in (2, 3, 4):
        sent = json.loads(run("./" + name, "info", "--data", name + ".data", "--processes", str(n), "--json"))["traffic"]
        train = next(p for p in sent["phases"] if p["phase"] == "train")
        short = short_excess([x for x in sent["exchanges"] if x["phase"] == "train"])
        check(f"{name}: {n} processes send the least in a step, or 5 % more", train["bytes"] - short <= 1.05 * train["at_least"], sent)
        check(f"{name}: {n} processes send what counts as the least", 0 < train["at_least"] <= train["bytes"], sent)
        if train["bytes"] > 1.05 * train["at_least"]:
            print(f"{name}, {n} processes: {train['bytes']} bytes a step, {train['bytes'] / train['at_least']:.3f} of the least: {short} are of short sums")


# ---- killed, and gone on with in another number ----------------------------------------------------------------------
def epochs_in(file):
    return int(header_of(file)[0]["__metadata__"]["epoch"])


def killed(k, name, n, job, r):
    p = subprocess.Popen([*MPIRUN, "-x", "OF_TEST", "-n", str(n), "./" + name, "--data", name + ".data", *BATCH[name], "--epochs", "1000000",
                          "--checkpoint", job, "--save-every", "1", "--log=none"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         env=os.environ | {"OF_TEST": job})
    for _ in range(1200):
        if len(ranks_of("./" + name, job)) == n and os.path.exists(job):
            break
        time.sleep(0.05)
    time.sleep(r.random() / 4)
    begun, rank = time.time(), r.randrange(n)
    os.kill(ranks_of("./" + name, job)[rank], signal.SIGKILL)
    said = p.communicate(timeout=200)[0]
    ended, seconds = all_gone("./" + name, job), time.time() - begun
    check(f"kill {k}, {name}: all end, within seconds", p.returncode != 0 and ended and seconds < 60, said)
    epochs, other = epochs_in(job) + 2, 1 + (n + r.randrange(3)) % 4
    for m, to in ((0, "a"), (other, "b")):
        trained(m, name, to, epochs, "--resume", job)
    same = bytes_of("a") == bytes_of("b")
    check(f"kill {k}, {name}: gone on with in another number", same)
    os.remove(job)
    return f"kill {k}: {name}, rank {rank} of {n} behind epoch {epochs - 2}, all ended in {seconds:.1f} s, gone on with in {other}: " + \
        ("the same bits" if same else "OTHER BITS")


KEPT = f"kills.{hashlib.sha256(bytes_of(GNNC)).hexdigest()[:8]}.txt"
done = bytes_of(KEPT).decode().splitlines() if os.path.exists(KEPT) else []
models = list(BATCH)
for k in range(len(done), KILLS):
    r = random.Random(k)
    line = killed(k, models[k % len(models)], 2 + k // len(models) % 3, f"killed.{k}", r)
    with open(KEPT, "a", encoding="utf-8") as f:
        f.write(line + "\n")
sys.exit(end())
