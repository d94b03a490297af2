#!/usr/bin/env python3
"""gnnc_trainer_set_processes without an MPI: trainers of one program in threads of this process, whose broadcast copies
from one to the others.  Each ends with the bits of one that is told of one process.

    processes.py GNNC TOP     prints `N passed, N failed`"""
import ctypes
import math
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from checks import bytes_of, check, end  # noqa: E402
from threads import E_IO, Broadcast, Bus, Exchange, Processes, Rows, Trainer as Of, in_threads as of_threads  # noqa: E402

GNNC, TOP = sys.argv[1:3]
CORA = TOP.encode() + b"/models/data/cora"
E_NOMEM, E_LIMIT, E_STATE, E_STOPPED = -1, -11, -10, -15
K, EPOCHS = 5, 3
MODEL = """
import "layers/sage.gnn"
graph G { node paper { x: csr f32[F];  y: class[C];  split }  edge cites: paper -> paper }
model M(g: G) -> f32[paper, C] {
  a = sage_conv(16)
  b = sage_conv(C)
  return b(g.cites, dropout(relu(a(g.cites, dropout(g.paper.x, 0.5))), 0.5))
}
train M {
  target paper.y  loss cross_entropy  metric accuracy
  optimizer adam(lr = 1e-2)  epochs %d  keep best on val accuracy
  sample { fanout [5, 3]  batch 9 }  accumulate %d
}
""" % (EPOCHS, K)

def in_threads(on, *args, **more):
    return of_threads(on, CORA, *args, **more)


def Trainer(on, *args, **more):
    return Of(on, CORA, *args, **more)


with open("model.gnn", "w", encoding="utf-8") as f:
    f.write(MODEL)
subprocess.run([GNNC, "model.gnn", "--target=cpu", "--emit=lib", "--name=model", "-o", "model"], check=True)
lib = ctypes.CDLL("./libmodel.so")
lib.gnnc_trainer_error.restype = ctypes.c_char_p

# ---- the same bits ---------------------------------------------------------------------------------
def trains(t):
    t.epochs(EPOCHS)
    t.save(f"all.{t.rank}")


check("one trains", in_threads(lib, 1, trains) == [None])
os.rename("all.0", "all")
for n in (2, K, K + 1):  # each makes some steps of an update, one, or the last of them none
    check(f"{n} train", in_threads(lib, n, trains) == [None] * n)
    check(f"{n}: the bits of one", all(bytes_of(f"all.{rank}") == bytes_of("all") for rank in range(n)))

# ---- a step, a checkpoint within an update ------------------------------------------------------------
def stops_within(t):
    t.steps(K + 3)
    t.save(f"part.{t.rank}")


def only_one_saves(t):
    t.steps(K + 3)
    if t.rank == 0:
        t.save("part.0")
    t.steps(K - 3)
    t.save(f"whole.{t.rank}")


in_threads(lib, 1, stops_within)
part = bytes_of("part.0")
check("two save within an update", in_threads(lib, 2, stops_within) == [None] * 2)
check("what they save is what one does", bytes_of("part.0") == bytes_of("part.1") == part)
os.remove("part.0")
check("one of two saves within an update", in_threads(lib, 2, only_one_saves) == [None] * 2)
check("it is what one does, and both go on alike", bytes_of("part.0") == part and bytes_of("whole.0") == bytes_of("whole.1"))

# ---- losses are of the steps that are made here ----------------------------------------------------------
def losses(t):
    seen = []
    t.heard(lambda t, now: seen.append(now.loss) or 0)
    t.steps(2 * K)
    return seen


alone, (a, b) = in_threads(lib, 1, losses)[0], in_threads(lib, 2, losses)
for rank, seen in enumerate((a, b)):
    here = [i % K == K - 1 or i % K % 2 == rank for i in range(2 * K)]  # and of those that end an update
    check(f"rank {rank} is told losses of its steps", [x == y if h else math.isnan(x) for x, y, h in zip(seen, alone, here)] == [True] * 2 * K,
          (seen, alone))

# ---- what one asks, all do ---------------------------------------------------------------------------------
def agrees(asker, step):
    def does(t):
        told = []

        def hear(t, now):
            what = t.agree(9 if t.rank == asker and now.steps == step else 0)
            if what:
                told.append((now.steps, what))
            return what
        t.heard(hear)
        st = [t.lib.gnnc_trainer_epoch(t.t)]
        t.save(f"asked.{t.rank}")
        while len(st) < EPOCHS + 1:
            st.append(t.lib.gnnc_trainer_epoch(t.t))
        t.save(f"rest.{t.rank}")
        return told, st
    return does


for asker, step, behind in ((0, 1, K), (1, 1, K), (1, 3, K), (0, 3, K), (1, 4, 2 * K), (0, K, 2 * K)):
    want = ([(behind, 9)], [E_STOPPED] + [0] * EPOCHS)
    said = in_threads(lib, 2, agrees(asker, step))
    check(f"what rank {asker} asks behind step {step}, both are told behind {behind}, once", said == [want] * 2, said)
    check("they go on to the same bits", all(bytes_of(f"rest.{rank}") == bytes_of("all") for rank in (0, 1)))
    check("and stood at the same step", bytes_of("asked.0") == bytes_of("asked.1"))
said = in_threads(lib, 1, lambda t: (t.agree(4), t.agree(0)))
check("one agrees with itself", said == [(4, 0)], said)

# ---- where they cannot ---------------------------------------------------------------------------------------
def epoch(t):
    st = t.lib.gnnc_trainer_epoch(t.t)
    if st == E_STATE:
        t.bus.barrier.abort()
    return st, t.error()


for n, at in ((2, 3), (2, 6), (3, 9)):  # the first two are of load
    said = in_threads(lib, n, epoch, fails_at=at)
    check(f"broadcast {at} of {n} fails", all(st == E_IO and "sends did not come: input or output failed" in e for st, e in said), said)
said = in_threads(lib, 2, epoch, seed=lambda rank: rank)
check("another seed", said[1][0] == E_STATE and "rank 1 trains with another seed than rank 0" in said[1][1], said)

# ---- all hear the variant of the first, whatever their programs are ---------------------------------------------
def step_of(libs, max_memory=0, fails_at=-1):
    """What two processes end with that load and make a step, the first of them within max_memory bytes."""
    bus, said = Bus(2, fails_at), [None, None]

    def run(rank):
        t = Trainer(libs[rank], rank, 2, bus, max_memory=0 if rank else max_memory)
        said[rank] = t.load() or t.lib.gnnc_trainer_step(t.t), t.error()
        t.lib.gnnc_trainer_destroy(t.t)
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check("two programs send as much", not bus.wrong, bus.wrong)
    return said


with open("model.gnn", "w", encoding="utf-8") as f:
    f.write(MODEL.replace("sage_conv(16)", "sage_conv(8)"))
subprocess.run([GNNC, "model.gnn", "--target=cpu", "--emit=lib", "--name=model", "-O0", "-o", "single"], check=True)
single = ctypes.CDLL("./libsingle.so")
single.gnnc_trainer_error.restype = ctypes.c_char_p


def n_variants(lib):
    t = Trainer(lib, 0, 1, None)
    t.ok(t.load())
    n = lib.gnnc_trainer_n_variants(t.t)
    lib.gnnc_trainer_destroy(t.t)
    return n


check("one program has variants, the other has none", n_variants(lib) > 1 and n_variants(single) == 0, (n_variants(lib), n_variants(single)))
for libs in (lib, single), (single, lib):
    said = step_of(libs)
    check("another program", said[0][0] == 0 and said[1] == (E_STATE, "rank 1 trains with another program than rank 0"), said)
said = step_of((lib, lib), fails_at=1)
check("broadcast 1 fails", all(st == E_IO and "what rank 0 sends did not come" in e for st, e in said), said)
for libs in (lib, lib), (single, single), (lib, single):
    said = step_of(libs, max_memory=1000)
    check("where the first cannot run, none waits for it", said[0][0] == E_LIMIT and said[1] == (
        E_STATE, "rank 0 cannot run the program: its error says why"), said)

# ---- a program whose rows are shared, in processes that cannot: nothing is sent behind the failed load ---------
subprocess.run([GNNC, f"{TOP}/models/gcn.gnn", "--target=cpu", "--emit=lib", "--name=model", "--parts", "-o", "parts"], check=True)
shares, t, nobody = ctypes.CDLL("./libparts.so"), ctypes.c_void_p(), Broadcast(lambda *_: 0)
p = Processes(ctypes.sizeof(Processes), 0, 2, nobody, None)
shares.gnnc_trainer_create(ctypes.byref(t), ctypes.byref(ctypes.c_char.in_dll(shares, "model_program")))
shares.gnnc_trainer_error.restype = ctypes.c_char_p
check("no 'exchange'", shares.gnnc_trainer_set_processes(t, ctypes.byref(p)) == 0 and shares.gnnc_trainer_load(t, CORA) == E_STATE
      and b"share rows without 'exchange'" in shares.gnnc_trainer_error(t), shares.gnnc_trainer_error(t))
check("and nobody to agree with", shares.gnnc_trainer_agree(t, 5) == 5)
shares.gnnc_trainer_destroy(t)

for option in b"reduce_fast", b"stale_halos":
    t = ctypes.c_void_p()
    lib.gnnc_trainer_create(ctypes.byref(t), ctypes.byref(ctypes.c_char.in_dll(lib, "model_program")))
    lib.gnnc_trainer_set_int(t, option, ctypes.c_int64(1))
    lib.gnnc_trainer_set_processes(t, ctypes.byref(p))
    check(f"{option.decode()}: of shared steps", lib.gnnc_trainer_load(t, CORA) == E_STATE
          and b"2 processes cannot train this model: '" + option + b"' is for shared rows" in lib.gnnc_trainer_error(t), lib.gnnc_trainer_error(t))
    lib.gnnc_trainer_destroy(t)

# ---- rows are computed while others come, in a thread of the trainer's where the host allows it -----------------
class Sharing(ctypes.Structure):
    _fields_ = [*Processes._fields_[:5], ("exchange", Exchange), ("exchange_in_thread", ctypes.c_int)]


def share(n, name, in_thread, fails_at=-1, lib=None, **options):
    """What the calls of each trainer returned, and what it says; how rows went."""
    lib = lib or wide
    rows, bus, said = Rows(n, fails_at), Bus(n), [None] * n

    def run(rank):
        kept, t = (bus.of(rank), rows.of(rank)), ctypes.c_void_p()
        p = Sharing(ctypes.sizeof(Sharing), rank, n, kept[0], None, kept[1], in_thread)
        lib.gnnc_trainer_create(ctypes.byref(t), ctypes.byref(ctypes.c_char.in_dll(lib, "model_program")))
        lib.gnnc_trainer_set_int(t, b"threads", ctypes.c_int64(1 + rank))
        for option, value in options.items():
            lib.gnnc_trainer_set_int(t, option.encode(), ctypes.c_int64(value(rank) if callable(value) else value))
        st = [lib.gnnc_trainer_set_processes(t, ctypes.byref(p)), lib.gnnc_trainer_load(t, b"two")]
        for _ in range(EPOCHS if st == [0, 0] else 0):
            st.append(lib.gnnc_trainer_epoch(t))
        text = lib.gnnc_trainer_error(t).decode()
        if not any(st):
            st.append(lib.gnnc_trainer_save(t, f"{name}.{rank}".encode()) if rank == 0 else 0)
        lib.gnnc_trainer_destroy(t)
        if any(st):
            rows.barrier.abort()  # others do not wait for this one
        said[rank] = st, text

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(n)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    check(f"{name}: messages fit", not rows.wrong and not bus.wrong, (rows.wrong, bus.wrong))
    return said, rows


subprocess.run([GNNC, "partition", CORA.decode(), "2", "-o", "two", "--method", "stream"], check=True, stdout=subprocess.DEVNULL)
subprocess.run([GNNC, f"{TOP}/models/gcn.gnn", "--target=cpu", "--emit=lib", "--name=model", "--parts", "-D", "hidden=192", "-o", "wide"], check=True)
wide = ctypes.CDLL("./libwide.so")
wide.gnnc_trainer_error.restype = ctypes.c_char_p
share(1, "one", 0)
said, rows = share(2, "waits", 0)
elsewhere, n_calls = rows.elsewhere, rows.n_calls
check("a host of one thread is called in it alone", elsewhere == [[], []] and not any(any(st) for st, _ in said), (said, elsewhere))
check("rows come, then are read", bytes_of("waits.0") == bytes_of("one.0"))
said, rows = share(2, "beside", 1)
elsewhere = rows.elsewhere
check("rows come while others are computed", all(len(calls) > EPOCHS for calls in elsewhere) and not any(any(st) for st, _ in said), (said, elsewhere))
check("and change no bit", bytes_of("beside.0") == bytes_of("one.0"))
said, _ = share(2, "fast", 1, reduce_fast=1)
check("fast sums by a host that has none", all(st == [0, E_STATE] and "'reduce_fast': 2 processes share rows without 'all_reduce'" in e for st, e in said), said)
for at in elsewhere[0][0], elsewhere[0][-1]:
    said, _ = share(2, "fails", 1, fails_at=at)
    check(f"exchange {at} fails while rows are computed", all(E_IO in st and "rows of other processes did not come" in e for st, e in said), said)

# ---- one that fails alone within a phase is in step with nobody any more ----------------------------------------
libc, armed = ctypes.CDLL(None), [None]  # armed: no memory behind so many exchanges
libc.calloc.restype = ctypes.c_void_p
Give, Take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t), ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
rows, bus, said = Rows(2), Bus(2), [[], []]
give = Give(lambda _, n: None if armed[0] is not None and rows.n_calls > armed[0] else libc.calloc(ctypes.c_size_t(n), ctypes.c_size_t(1)))
take = Take(lambda _, block: libc.free(ctypes.c_void_p(block)))


def lacks_memory(rank):
    t = Of(wide, b"two", rank, 2, bus, rows=rows, memory=(give, take) if rank else None)
    t.ok(t.load())
    armed[0] = rows.n_calls if rank else armed[0]
    for call in (wide.gnnc_trainer_epoch,) * (1 + rank):
        said[rank].append((call(t.t), t.error(), rows.n_calls, bus.count[rank]))
        armed[0] = None
    if rank:
        said[rank].append((wide.gnnc_trainer_run_phase(t.t, b"predict"), t.error(), rows.n_calls, bus.count[rank]))
        rows.barrier.abort()
    wide.gnnc_trainer_destroy(t.t)


threads = [threading.Thread(target=lacks_memory, args=(rank,)) for rank in range(2)]
for x in threads:
    x.start()
for x in threads:
    x.join()
first, *later = said[1]
check("one lacks memory within a phase", first[0] == E_NOMEM and "rows" in first[1], said)
check("it sends no more, and says why", all(x[0] == E_NOMEM and "rank 1 has failed in an earlier call" in x[1] and x[2:] == first[2:]
                                            for x in later) and len(later) == 2, said)
check("the other gets no rows", said[0][0][0] == E_IO and "rows of other processes did not come" in said[0][0][1], said)

# ---- halos of an earlier step -------------------------------------------------------------------------------------
# GCN on the whole graph receives four halos in a step, two of layers and two of gradients; of three steps only the first one's come.
share(1, "alone", 0, stale_halos=EPOCHS - 1)
check("one process has no halo", bytes_of("alone.0") == bytes_of("one.0"))
said, rows = share(2, "stale", 0, stale_halos=EPOCHS - 1)
check("halos come in one step of three", n_calls - rows.n_calls == 4 * (EPOCHS - 1) and not any(any(st) for st, _ in said), (n_calls, rows.n_calls, said))
check("what is learned is another", bytes_of("stale.0") != bytes_of("one.0"))
said, rows = share(2, "again", 1, stale_halos=EPOCHS - 1)
check("and the same in each run, beside or not", bytes_of("again.0") == bytes_of("stale.0") and not any(any(st) for st, _ in said), said)
said, _ = share(2, "differ", 0, stale_halos=lambda rank: rank)
check("processes differ", said[1][0][-1] == E_STATE and "rank 1 trains with another age of shared rows (stale_halos) than rank 0" in said[1][1], said)
# A loop that only the last step enters: of its halos none has come before, so they come then, and are those of that step.
with open("late.gnn", "w", encoding="utf-8") as f:
    f.write("""
graph G { node paper { x: csr f32[F];  y: class[C];  split }  edge cites: paper -> paper }
layer steps()(x: f32[N, I]) -> f32 {
  state n: f32 = 0 as "n"
  if training { n = n + 1 }
  return n
}
model M(g: G) -> f32[paper, C] {
  a = linear(C)
  count = steps()
  z = a(g.paper.x)
  left = count(z)
  h = detach(z)
  while left > %d - 1 {
    h = mean(h[g.cites.src], over = g.cites.dst)
    left = left - %d
  }
  return z + detach(h)
}
train M { target paper.y  loss cross_entropy  optimizer adam(lr = 1e-2)  epochs %d }
""" % (EPOCHS, EPOCHS, EPOCHS))
subprocess.run([GNNC, "late.gnn", "--target=cpu", "--emit=lib", "--name=model", "--parts", "-o", "late"], check=True)
late = ctypes.CDLL("./liblate.so")
late.gnnc_trainer_error.restype = ctypes.c_char_p
share(2, "fresh.late", 0, lib=late)
said, rows = share(2, "stale.late", 0, lib=late, stale_halos=EPOCHS - 1)
check("a halo that no earlier step received comes", bytes_of("stale.late.0") == bytes_of("fresh.late.0") and not any(any(st) for st, _ in said), said)
sys.exit(end())
