#!/usr/bin/env python3
"""Processes that share the steps of an update, each on a GPU of its own, by the simulator.

    processes.py BUILD      trainers in threads, whose GPUs are those of one simulator, then programs of MPI
"""
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from checks import MPI, bytes_of, check, end  # noqa: E402
from sim import Counts, cora, counts, orders, written  # noqa: E402
from threads import in_threads  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
CORA = "cora"
K, EPOCHS, E_IO, E_DEVICE = 5, 1, -4, -13
SUMS_BYTES = 4 * (2 * 4 * 1433 + 4 + 2 * 7 * 4 + 7 + 4 + 1)  # the two layers of MODEL below on Cora, and its states
# A step also moves a running mean and a counter, which are sent like gradients.
MODEL = """
import "layers/sage.gnn"
layer counts()(x: f32[N, I]) -> f32[N, I] {
  state mean_of: f32[I] = 0.5
  state seen: f32 = 3
  if training {
    seen = seen + size(N)
    mean_of = detach(mean(x, N)) * 0.25 + mean_of * 0.75
    return x * 2
  }
  return (x - mean_of) * 2 + 1e-6 * seen
}
graph G { node paper { x: csr f32[F];  y: class[C];  split }  edge cites: paper -> paper }
model M(g: G) -> f32[paper, C] {
  a = sage_conv(4)
  s = counts()
  b = sage_conv(C)
  return b(g.cites, dropout(relu(s(a(g.cites, dropout(g.paper.x, 0.5)))), 0.5))
}
train M {
  target paper.y  loss cross_entropy  metric accuracy
  optimizer adam(lr = 1e-2)  epochs %d  keep best on val accuracy
  sample { fanout [3, 2]  batch 3 }  %s
}
"""


# Who sends what steps leave: the GPUs, by the simulator's NCCL, or the host, without that.
WAYS = {"by NCCL": None, "through the host": "nccl"}


def with_environment(**names):
    for name, value in names.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def trains(t):
    t.epochs(EPOCHS)
    t.save(f"all.{t.rank}")


def stops_within(t):
    """In an update, whose steps so far a checkpoint has; and it goes on."""
    t.steps(K + 3)
    t.save(f"part.{t.rank}")
    t.steps(K)
    t.save(f"rest.{t.rank}")


def same_bits(lib):
    check("one trains", in_threads(lib, CORA.encode(), 1, trains) == [None])
    os.rename("all.0", "all")
    check("one stops", in_threads(lib, CORA.encode(), 1, stops_within) == [None])
    os.rename("part.0", "part")
    os.rename("rest.0", "rest")
    for way, without in WAYS.items():
        with_environment(CUDASIM_NO_LIBRARY=without)
        for n, order in zip((2, 3, 4), orders(lib, least=3)):
            of_several(lib, n, f"{way}, {order}")


def of_several(lib, n, how):
    before = counts(lib)["transfers"]
    check(f"{n} train, {how}", in_threads(lib, CORA.encode(), n, trains, local=n) == [None] * n)
    check(f"{n}, {how}: the bits of one", all(bytes_of(f"all.{i}") == bytes_of("all") for i in range(n)))
    check(f"{n} stop, {how}", in_threads(lib, CORA.encode(), n, stops_within, local=n) == [None] * n)
    check(f"{n}, {how}: a checkpoint within an update", all(bytes_of(f"part.{i}") == bytes_of("part") for i in range(n)))
    check(f"{n}, {how}: behind it", all(bytes_of(f"rest.{i}") == bytes_of("rest") for i in range(n)))
    check(f"{n}, {how}: who sends", (counts(lib)["transfers"] > before) == ("CUDASIM_NO_LIBRARY" not in os.environ))


def goes_back(t):
    """To a checkpoint of the step where it is, too, whose sums then are not those of the trainer's last steps."""
    t.steps(K + 3)
    for _ in range(2):
        t.ok(t.lib.gnnc_trainer_resume(t.t, b"part"))
    t.steps(K)
    t.save(f"rest.{t.rank}")


def loses_a_broadcast(which):
    """One of those that bring the steps of an update; the next attempt brings what is left."""
    def does(t):
        t.steps(K + 3)
        t.bus.fails_at = t.bus.count[t.rank] + which
        said = t.lib.gnnc_trainer_save(t.t, b"none")
        t.save(f"lost.{t.rank}")
        return said
    return does


def what_a_step_costs(lib, k):
    """One wait for the steps of an update, no allocation; copies back are what each step adds, what it is added to, and losses."""
    def does(t):
        t.steps(4 * k)
        first = counts(lib)
        t.steps(2 * k)
        done.update({name: n - first[name] for name, n in counts(lib).items()})
    done = {}
    check("it is counted", in_threads(lib, CORA.encode(), 1, does) == [None])
    sums = (done["device_to_host"] - 2 * k) / (2 * (k + 1))
    check("one wait an update", done["synchronisations"] == 2 and done["allocations"] == 0, done)
    check("sums come back k + 1 times and losses once", sums == 8, done)  # 2 layers of 3 parameters, 2 states
    check("sums and a counter go there once an update, counters and two uploads each step",
          done["host_to_device"] <= 2 * (sums + 1) + 3 * 2 * k, done)


def what_a_shared_step_costs(lib, k):
    """By NCCL: the same, and nothing of the sums goes through the host."""
    def does(t):
        lib.cudasim_count_here.restype = ctypes.POINTER(Counts)
        here = lib.cudasim_count_here().contents  # this thread's
        t.steps(4 * k)
        first = {name: getattr(here, name) for name, _ in Counts._fields_}
        t.steps(2 * k)
        return {name: getattr(here, name) - n for name, n in first.items()}
    for rank, done in enumerate(in_threads(lib, CORA.encode(), 2, does, local=2)):
        own = 2 * len(range(rank, k, 2))
        check(f"rank {rank}: one wait an update", done["synchronisations"] == 2 and done["allocations"] == 0, done)
        check(f"rank {rank}: each step is sent once", done["transfers"] == 2 * k, done)
        check(f"rank {rank}: losses come back alone", done["device_to_host"] == own, done)
        check(f"rank {rank}: counters and two uploads each step go there, and two an update", done["host_to_device"] <= 3 * own + 2 * 2, done)


def by_turns(lib):
    """Each has the GPU of its number among those of its machine; who is not told has the thread's."""
    def on(t):
        gpu = ctypes.c_int(-1)
        lib.cudaGetDevice(ctypes.byref(gpu))
        return gpu.value
    check("by turns", in_threads(lib, CORA.encode(), 4, on, local=4) == [0, 1, 2, 0])
    check("not told", in_threads(lib, CORA.encode(), 2, on) == [0, 0])


def one_fails(lib):
    """A launch of one fails: it says so, and no other waits for it."""
    both = threading.Barrier(2)

    def does(t):
        t.steps(1)
        both.wait(60)  # nobody is left in what the failure ends
        if t.rank == 0:
            lib.cudasim_break_launches(ctypes.c_int64(0), 719)
        st = lib.gnnc_trainer_epoch(t.t)
        if st == E_DEVICE:
            t.bus.barrier.abort()
        return st, t.error()
    for way, without in WAYS.items():
        with_environment(CUDASIM_NO_LIBRARY=without)
        said = in_threads(lib, CORA.encode(), 2, does, local=2)
        lib.cudasim_break_launches(ctypes.c_int64(-1), 0)
        check(f"one device fails, {way}", sorted(st for st, _ in said) == [E_DEVICE, E_IO], said)


def nccl_fails(ranks):
    """One line says so, soon; of a process that died MPI says it."""
    for rank, how, says in ((0, "init", "nccl: the processes' group: unhandled system error"),
                            (1, "init", "nccl: the processes' group: unhandled system error"),
                            (0, "call:3", "nccl: a transfer between GPUs: unhandled system error"),
                            (1, "call:3", "nccl: a transfer between GPUs: unhandled system error"),
                            (0, "remote:0", "nccl: what other processes' GPUs send: remote process exited"),
                            (1, "remote:0", "nccl: what other processes' GPUs send: remote process exited"),
                            # who gives up first is gone for the other
                            (1, "stall:0", "nccl: what other processes' GPUs send(: remote process exited| did not come within 6 s)"),
                            (1, "die:3", None)):
        start = ("sh", "-c", f'[ $OMPI_COMM_WORLD_RANK = {rank} ] && export CUDASIM_NCCL={how}; exec "$0" "$@"')
        begin = time.monotonic()
        r = ranks(2, "--checkpoint", "none", "--patience", "6" if how.startswith("stall") else "60", start=start)
        said = [line for line in r.stdout.splitlines() if "error: " in line]
        check(f"rank {rank}, {how}: one line", r.returncode not in (0, 124) and
              (len(said) == 1 and re.search(says, said[0]) if says else not said), r.stdout)
        check(f"rank {rank}, {how}: soon", time.monotonic() - begin < 45)


def programs():
    """Of MPI: each process has a simulator of its own."""
    env = {**os.environ, **MPI, "OMPI_MCA_rmaps_base_oversubscribe": "1"}

    def ranks(n, *options, start=()):
        return subprocess.run(["timeout", "120", "mpirun", "--oversubscribe", "-n", str(n), *start, "./model", "--data", CORA,
                               "--epochs", "1", *options], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    subprocess.run([HERE + "/build", os.path.abspath("model.text/model.gnn"), os.path.abspath("model")], check=True, env={**env, "BUILD": BUILD, "MPI": "1"})
    for n in (1, 2, 4):
        r = ranks(n, "--checkpoint", f"mpi.{n}")
        check(f"{n} of MPI train", r.returncode == 0, r.stdout)
        words = {1: "", 2: "GPUs: each of 2 processes has its own", 4: "GPUs: 4 processes share 3"}[n]
        check(f"{n} of MPI say which GPUs", words in r.stdout and r.stdout.count("GPUs:") == (n > 1), r.stdout)
        words = {1: "", 2: "sums: from GPU to GPU by NCCL 2.28.9", 4: "sums: ranks 0 and 3 share a GPU; they go through the memory of hosts"}[n]
        check(f"{n} of MPI say who sends", words in r.stdout and r.stdout.count("sums:") == (n > 1), r.stdout)
    check("bits of one", bytes_of("mpi.1") == bytes_of("mpi.2") == bytes_of("mpi.4"))
    r = ranks(2, "--checkpoint", "mpi.host", "--sums", "host")
    check("the host sends", r.returncode == 0 and "sums:" not in r.stdout and bytes_of("mpi.host") == bytes_of("mpi.1"), r.stdout)
    for lacks, says in (("CUDASIM_NO_UUID=1", "sums: the GPU of rank 1 has no UUID; they go through the memory of hosts"),
                        ("CUDASIM_NO_LIBRARY=nccl", "sums: rank 1 has no libnccl.so.2; they go through the memory of hosts"),
                        (f"CUDASIM_NO_MEMORY={(K + 1) * SUMS_BYTES}", "sums: the GPU of rank 1 lacks memory for them; they go through the memory of hosts")):
        start = ("sh", "-c", f'[ $OMPI_COMM_WORLD_RANK = 1 ] && export {lacks}; exec "$0" "$@"')
        r = ranks(2, "--checkpoint", "mpi.lacks", start=start)
        check(f"one with {lacks}", r.returncode == 0 and says in r.stdout and bytes_of("mpi.lacks") == bytes_of("mpi.1"), r.stdout)
    nccl_fails(ranks)
    r = ranks(2, "--device", "cuda:1", "--checkpoint", "none")
    check("a GPU that was named is taken", r.returncode == 0 and "GPUs: 2 processes share 1" in r.stdout, r.stdout)
    for seen, words in (("$OMPI_COMM_WORLD_RANK", "each of 2 processes has its own"), ("2", "2 processes share 1")):
        r = ranks(2, "--checkpoint", "none", start=("sh", "-c", f'CUDA_VISIBLE_DEVICES={seen} exec "$0" "$@"'))
        check(f"each sees one: {words}", r.returncode == 0 and f"GPUs: {words}" in r.stdout, r.stdout)
    for rank in (0, 1):
        # the launch is one of an update, behind those that data and the first batches ask for
        start = ("sh", "-c", f'[ $OMPI_COMM_WORLD_RANK = {rank} ] && export CUDASIM_BREAK_LAUNCH=150; exec "$0" "$@"')
        r = ranks(2, "--checkpoint", "none", start=start)
        said = [line for line in r.stdout.splitlines() if "error: " in line]
        check(f"the GPU of rank {rank} fails", r.returncode != 0 and len(said) == 1 and "(at or before kernel " in said[0]
              and said[0].startswith("rank 1: ") == (rank == 1), r.stdout)


def main():
    os.environ["CUDASIM_DEVICES"] = "3"
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        cora()
        os.environ["TMPDIR"] = tmp  # where the simulator's NCCL leaves its files
        lib = written(BUILD, "model", MODEL % (EPOCHS, f"accumulate {K}"), "cuda")
        lib.gnnc_trainer_error.restype = ctypes.c_char_p
        by_turns(lib)
        os.environ["CUDASIM_DEVICES"] = "4"  # each its own
        same_bits(lib)
        for way, without in WAYS.items():
            with_environment(CUDASIM_NO_LIBRARY=without)
            check(f"back, {way}", in_threads(lib, CORA.encode(), 2, goes_back, local=2) == [None] * 2)
            check(f"to the same bits, {way}", bytes_of("rest.0") == bytes_of("rest.1") == bytes_of("rest"))
            for which in (1, 2):
                check(f"a broadcast fails, {way}", in_threads(lib, CORA.encode(), 2, loses_a_broadcast(which), local=2) == [E_IO] * 2)
                check(f"and all is added once, {way}", bytes_of("lost.0") == bytes_of("lost.1") == bytes_of("part"))
        with_environment(CUDASIM_NO_LIBRARY=None)
        what_a_step_costs(lib, K)
        what_a_shared_step_costs(lib, K)
        one_fails(lib)
        with_environment(CUDASIM_NO_LIBRARY=None)
        os.environ["CUDASIM_DEVICES"] = "3"
        if shutil.which("mpirun") and os.path.exists(BUILD + "/gnnrt_mpi.o"):
            programs()
        else:
            check("without MPI its programs are left out", "GNNC_CI" not in os.environ)
    return end()


if __name__ == "__main__":
    sys.exit(main())
