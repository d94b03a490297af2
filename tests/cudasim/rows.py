#!/usr/bin/env python3
"""Processes that share the rows of a whole graph, each on a GPU of its own, by the simulator.

    rows.py BUILD      trainers in threads, whose GPUs are those of one simulator, then programs of MPI
"""
import ctypes
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from checks import MPI, bytes_of, check, end  # noqa: E402
from directory import save  # noqa: E402
from maps import MESSAGE  # noqa: E402
from sim import cora, counts, library, orders, written  # noqa: E402
from threads import Rows, in_threads  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
DATA, PARTS, EPOCHS, E_IO, E_DEVICE = "four", 4, 2, -4, -13
CATEGORIES = {"a": 3, "b": 7, "d": 5}
LONG = "GNNC_LONG" in os.environ
ROOM = 4 << 20  # of kernels (runtime/cuda/room.h)
# hidden: so many that halos are worth it to compute beside them (runtime/exec/beside.c).
MODELS = {"gcn": ("hidden=56",), "sage": ("hidden=56",), "gat": ("hidden=7", "heads=8")}
RECORDED = re.compile(r"graphs: '(train|eval)': cuda: .*; its steps are launched one by one")
# Who sends rows: the GPUs, by the simulator's NCCL, or the host, without that.
WAYS = {"by NCCL": None, "through the host": "nccl"}


class Counters(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), *((name, ctypes.c_int64) for name in (
        "steps", "allocations", "allocated_bytes", "launches", "library_calls", "read_backs", "live_bytes", "peak_bytes", "eval_ns",
        "sent_bytes", "messages", "beside_bytes", "pulled_rows"))]


class Traffic(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), *((name, ctypes.c_int64) for name in (
        "bytes", "messages", "halo_bytes", "whole_bytes", "sum_bytes", "halo_rows", "least_bytes"))]


def with_environment(**names):
    for name, value in names.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def counted(t):
    c = Counters(ctypes.sizeof(Counters))
    t.ok(t.lib.gnnc_trainer_counters(t.t, ctypes.byref(c)))
    return c


def foreseen(t, phase, n):
    of = Traffic(ctypes.sizeof(Traffic))
    t.ok(t.lib.gnnc_trainer_traffic(t.t, phase, n, ctypes.byref(of)))
    return of


def predicted(t):
    data, rank, shape = ctypes.POINTER(ctypes.c_float)(), ctypes.c_int(), (ctypes.c_int64 * 8)()
    t.ok(t.lib.gnnc_trainer_predict(t.t, ctypes.byref(data), ctypes.byref(rank), shape))
    n = 1
    for i in range(rank.value):
        n *= shape[i]
    return ctypes.string_at(data, 4 * n)


def trains(n):
    """What it sent in steps, what was foreseen of all processes, what came beside kernels, and what it predicts."""
    def does(t):
        first = counted(t)
        t.steps(EPOCHS)
        now = counted(t)
        of = foreseen(t, b"train", n)
        t.ok(t.lib.gnnc_trainer_evaluate(t.t))
        loss = ctypes.c_double()
        t.ok(t.lib.gnnc_trainer_metric(t.t, b"loss.val", ctypes.byref(loss)))
        if t.rank == 0:
            t.save(f"of.{n}")
        return (now.sent_bytes - first.sent_bytes, now.messages - first.messages, EPOCHS * of.bytes, EPOCHS * of.messages,
                now.beside_bytes, loss.value, predicted(t))
    return does


def holds(t):
    """Bytes on its GPU, without those that no row takes."""
    t.steps(1)
    t.lib.gnnc_trainer_device_bytes.restype = ctypes.c_int64
    return t.lib.gnnc_trainer_device_bytes(t.t) - ROOM


def neighbours():
    """A ring of nodes, each beside the next: parts have few rows of others, and 1999 or 2000 of their own."""
    n, width = 7998, 64
    r = random.Random(5)
    os.mkdir("ring")
    save("ring/x.npy", "f", "<f4", (n, width), [r.gauss(0, 1) for _ in range(n * width)])
    for name, k in CATEGORIES.items():
        save(f"ring/{name}.npy", "i", "<i4", (n,), [r.randrange(k) for _ in range(n)])
    save("ring/y.npy", "i", "<i4", (n,), [r.randrange(3) for _ in range(n)])
    save("ring/split.npy", "b", "|i1", (n,), [1 + (i % 5 == 0) + (i % 10 == 0) for i in range(n)])
    ends = [(i, (i + k) % n) for i in range(n) for k in (1, 2, n - 1)]
    save("ring/e.npy", "i", "<i4", (2, len(ends)), [e[0] for e in ends] + [e[1] for e in ends])
    save("ring/w.npy", "f", "<f4", (len(ends),), [r.random() for _ in ends])
    columns = {"x": {"kind": "float", "shape": [n, width], "file": "x.npy"}, "y": {"kind": "class", "categories": 3, "file": "y.npy"},
               **{name: {"kind": "cat", "categories": k, "file": name + ".npy"} for name, k in CATEGORIES.items()},
               "split": {"kind": "split", "file": "split.npy"}}
    with open("ring/schema.json", "w", encoding="utf-8") as f:
        json.dump({"format": 1, "nodes": {"paper": {"count": n, "columns": columns}},
                   "edges": {"cites": {"src": "paper", "dst": "paper", "count": len(ends), "file": "e.npy",
                                       "columns": {"w": {"kind": "float", "shape": [len(ends)], "file": "w.npy"}}}}, "graphs": {}}, f)
    subprocess.run([BUILD + "/gnnc", "partition", "ring", "4", "-o", "ring4", "--method", "rows"], check=True, stdout=subprocess.DEVNULL)


def own_memory():
    """A GPU has own rows, and those that it reads: the more GPUs, the less each needs."""
    text = open(f"{TOP}/models/sage.gnn", encoding="utf-8").read().replace("csr f32", "f32").replace("layers/", f"{TOP}/models/layers/")
    lib = own_rows("dense", text)
    neighbours()
    data, one = b"ring4", None
    for n in (1, 2, 4):
        of = in_threads(lib, data, n, holds, local=n, rows=Rows(n))
        check(f"{n} hold rows", all(isinstance(x, int) for x in of), of)
        if not all(isinstance(x, int) for x in of):
            return
        one = one or of[0]
        print(f"{n} GPUs: {max(of)} bytes at most for rows of each, {max(of) / one:.3f} of one's")
        check(f"{n} hold a part each", max(of) < one * (1 / n + 0.12), of)
        same_as_one(lib, data, n, "ring")
    some = text.replace("g.cites,", "some,").replace("paper -> paper", "paper -> paper { w: f32 }").replace("  h = relu", "  some = g.cites where g.cites.w > 0.3\n  h = relu")
    some = some.replace("dropout(h", "dropout(relu(mid(h))").replace("  conv2 =", "  mid = linear(hidden)\n  conv2 =")  # a product with an end
    cats, sums = "".join(f"{c}: cat[{c.upper()}];  " for c in CATEGORIES), "".join(f" + t{c}(g.paper.{c})" for c in CATEGORIES)
    tables = "".join(f"  t{c} = embedding({c.upper()}, F)\n" for c in CATEGORIES)  # their gradients are one launch
    some = some.replace("y: class", cats + "y: class").replace("(g.paper.x", "(g.paper.x" + sums).replace("  conv1 =", tables + "  conv1 =")
    lib = own_rows("some", some)
    os.environ["CUDASIM_LT"] = "parts"  # products sum in parts that follow from their sizes
    for n in (1, 3):
        same_as_one(lib, data, n, "some edges")
    os.environ.pop("CUDASIM_LT")


def own_rows(name, text):
    lib = written(BUILD, name, text, "cuda", ["--parts", "--name=model"])
    lib.gnnc_trainer_error.restype = ctypes.c_char_p
    return lib


def same_as_one(lib, data, n, name):
    def does(t):
        t.steps(EPOCHS)
        t.ok(t.lib.gnnc_trainer_evaluate(t.t))
        if t.rank == 0:
            t.save(f"{name}.{n}")
        return predicted(t)
    rows = Rows(n)
    of = in_threads(lib, data, n, does, local=n, rows=rows)
    check(f"{name}: {n} predict", all(isinstance(x, bytes) for x in of) and not rows.wrong, rows.wrong)
    check(f"{name}: {n}: the bits of one", bytes_of(f"{name}.{n}") == bytes_of(f"{name}.1") and len(set(of)) == 1)


def goes_on(t):
    t.ok(t.lib.gnnc_trainer_resume(t.t, b"one"))
    t.steps(EPOCHS)
    if t.rank == 0:
        t.save("rest")


def same_bits(lib, model, cpu, whole):
    """cpu: the cpu's program of the same parts, whose sums have another order.  whole: in each number both ways."""
    one = in_threads(lib, DATA.encode(), 1, trains(1))[0]
    check(f"{model}: one trains", isinstance(one, tuple) and one[:2] == (0, 0), one)
    if not isinstance(one, tuple):
        return
    for way, without in WAYS.items():
        with_environment(CUDASIM_NO_LIBRARY=without)
        for n, order in zip((2, 3, 4) if whole or not without and LONG else (3,), orders(lib)):
            of_several(lib, model, n, one, f"{way}, {order}")
    lib.cudasim_order(b"eager")
    with_environment(CUDASIM_NO_LIBRARY=None)
    os.rename("of.1", "one")
    there = in_threads(cpu, DATA.encode(), 1, trains(1))[0]
    check(f"{model}: the cpu's loss", isinstance(there, tuple) and abs(there[5] - one[5]) < 1e-4 * one[5], (there, one[5]))
    if not whole:
        return
    check(f"{model}: one goes on", in_threads(lib, DATA.encode(), 1, goes_on) == [None])
    os.rename("rest", "rest.1")
    check(f"{model}: three go on", in_threads(lib, DATA.encode(), 3, goes_on, local=3, rows=Rows(3)) == [None] * 3)
    check(f"{model}: .. to the bits of one", bytes_of("rest") == bytes_of("rest.1"))


def of_several(lib, model, n, one, how):
    what, before, rows = f"{model}: {n}, {how}", counts(lib)["transfers"], Rows(n)
    all_of = in_threads(lib, DATA.encode(), n, trains(n), local=n, rows=rows)
    check(f"{what}: they train", all(isinstance(of, tuple) for of in all_of) and not rows.wrong, (all_of, rows.wrong))
    if not all(isinstance(of, tuple) for of in all_of):
        return
    check(f"{what}: the bits of one", bytes_of(f"of.{n}") == bytes_of("of.1"))
    check(f"{what}: all judge and predict as one", all(of[5:] == one[5:] for of in all_of), [of[5] for of in all_of] + [one[5]])
    check(f"{what}: bytes and messages as foreseen", sum(of[0] for of in all_of) == all_of[0][2] > 0
          and sum(of[1] for of in all_of) == all_of[0][3], [of[:4] for of in all_of])
    check(f"{what}: some of it beside kernels", sum(of[4] for of in all_of) > 0, [of[4] for of in all_of])
    check(f"{what}: who sends", (counts(lib)["transfers"] > before) == ("CUDASIM_NO_LIBRARY" not in os.environ))


def one_fails(lib):
    """A launch of one fails: it says so, and no other waits for it."""
    for way, without in WAYS.items():
        with_environment(CUDASIM_NO_LIBRARY=without, CUDA_LAUNCH_BLOCKING="1")  # else it is recorded, and launched again
        rows, both = Rows(2), threading.Barrier(2)

        def does(t, rows=rows, both=both):
            t.steps(1)
            both.wait(60)
            if t.rank == 0:
                t.lib.cudasim_break_launches(ctypes.c_int64(3), 719)
            st = t.lib.gnnc_trainer_step(t.t)
            if st == 0:
                st = t.lib.gnnc_trainer_wait(t.t)
            if st == E_DEVICE:
                rows.barrier.abort()
                t.lib.gnnc_trainer_destroy(t.t)  # as a program ends: what it would send does not come
                t.t = ctypes.c_void_p()
                return st, "at or before kernel"
            return st, t.error()
        said = in_threads(lib, DATA.encode(), 2, does, local=2, rows=rows)
        lib.cudasim_break_launches(ctypes.c_int64(-1), 0)
        check(f"one device fails, {way}", all(isinstance(s, tuple) for s in said) and sorted(s[0] for s in said) == [E_DEVICE, E_IO], said)
    with_environment(CUDASIM_NO_LIBRARY=None, CUDA_LAUNCH_BLOCKING=None)


def in_step(lib, n, what=None, at=0, how=0, after=1):
    """Four steps and two evaluations of few rows, in n processes: (their bits; launches of the last step of each; what they said).
    After so many steps call number `at` of `what` fails, in whichever process makes it."""
    both, said = threading.Barrier(n), []

    def does(t):
        t.message = MESSAGE(lambda _, text: said.append(text.decode()))
        lib.gnnc_trainer_set_message(t.t, t.message, None)
        t.steps(after)
        both.wait(60)
        if what and t.rank == 0:
            getattr(lib, "cudasim_break_" + what)(ctypes.c_int64(at), how)
        both.wait(60)
        t.steps(3 - after)
        before = counted(t)
        t.steps(1)
        now = counted(t)
        for _ in range(2):
            t.ok(t.lib.gnnc_trainer_evaluate(t.t))
        if t.rank == 0:
            t.save("few.bits")
        return predicted(t), now.launches + now.library_calls - before.launches - before.library_calls, now.sent_bytes - before.sent_bytes
    rows = Rows(n)
    of = in_threads(lib, b"few4", n, does, local=n, rows=rows)
    if what:
        getattr(lib, "cudasim_break_" + what)(ctypes.c_int64(-1), 0)
    check(f"few rows: {n}, {what} {at}", all(isinstance(x, tuple) for x in of) and not rows.wrong, (of, rows.wrong, said))
    if not all(isinstance(x, tuple) for x in of):
        return None, [(0, 0)] * n, said
    return (bytes_of("few.bits"), {x[0] for x in of}), [x[1:] for x in of], said


def fails(lib, way, want, what, at, how, why, after=1):
    """One process's recording fails, and a line says why."""
    got, _, said = in_step(lib, 2, what, at, how, after)
    check(f"{way}: the bits of one, {what} {at}", got == want)
    check(f"{way}: one line, {what} {at}", len(said) == 1 and RECORDED.fullmatch(said[0]) and re.search(why, said[0]), said)


def recorded(lib):
    """Steps between exchanges are one launch; what fails in that is launched step by step, in one process, and no other one
    waits for it."""
    subprocess.run([HERE + "/some.py", f"{TOP}/models/data/cora", "120", "few"], check=True)
    subprocess.run([BUILD + "/gnnc", "partition", "few", str(PARTS), "-o", "few4", "--method", "rows"], check=True, stdout=subprocess.DEVNULL)
    want, one, said = in_step(lib, 1)
    check("one process: a step is a launch", one[0][0] == 1 and not said, (one, said))
    for way, without in WAYS.items():
        whole = not without
        with_environment(CUDASIM_NO_LIBRARY=without, CUDA_LAUNCH_BLOCKING="1")
        bits, each, _ = in_step(lib, 3)
        with_environment(CUDA_LAUNCH_BLOCKING=None)
        got, of, said = in_step(lib, 3)
        print(f"{way}: launches of a step of 3 GPUs: {[x[0] for x in each]} one by one, {[x[0] for x in of]} recorded")
        check(f"{way}: recorded steps have the bits of one", want == bits == got and not said, said)
        check(f"{way}: .. and fewer launches", all(2 * x[0] < y[0] and x[1] == y[1] for x, y in zip(of, each)), (of, each))
        for at in (1, 15, 29) if whole else (17,):
            fails(lib, way, want, "graphs", at, 2, "")
        for at in (0, 7, 15) if whole else (12,):  # both launch ten pieces
            fails(lib, way, want, "graphs", at, 2, "launch of a graph", after=3)
        for at in (0, 9) if whole else (9,):
            fails(lib, way, want, "launches", at, 719, "")
    with_environment(CUDASIM_NO_LIBRARY=None)


def programs(tmp):
    """Of MPI: each process has a simulator of its own."""
    env = {**os.environ, **MPI, "OMPI_MCA_rmaps_base_oversubscribe": "1"}

    def ranks(n, *options, start=(), command=()):
        return subprocess.run(["timeout", "120", "mpirun", "--oversubscribe", "-n", str(n), *start, "./gcn", *command, "--data", DATA, *options],
                              env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    subprocess.run([HERE + "/build", TOP + "/models/gcn.gnn", os.path.abspath("gcn"), "--parts", "-D", "hidden=56"], check=True,
                   env={**env, "BUILD": BUILD, "MPI": "1", "KERNELS": tmp})
    for n in (1, 2, 4):
        r = ranks(n, "--epochs", "2", "--checkpoint", f"mpi.{n}")
        check(f"{n} of MPI train", r.returncode == 0, r.stdout)
        words = {1: "", 2: "rows: from GPU to GPU by NCCL 2.28.9", 4: "rows: ranks 0 and 3 share a GPU; they go through the memory of hosts"}[n]
        check(f"{n} of MPI say who sends", words in r.stdout and r.stdout.count("rows:") == (n > 1), r.stdout)
        if n > 1:
            lines = subprocess.run(["./gcn", "info", "--data", DATA, "--processes", str(n)], env=env, text=True, check=True,
                                   stdout=subprocess.PIPE).stdout.partition("\nBetween ")[2].splitlines()[1:]
            is_ = {w[0]: int(w[1]) for w in map(str.split, lines)}
            check(f"{n} of MPI send what info foresees", f"{n} processes sent {is_['load'] + 2 * is_['train'] + 3 * is_['eval']} bytes" in r.stdout,
                  (is_, r.stdout))
    check("bits of one", bytes_of("mpi.1") == bytes_of("mpi.2") == bytes_of("mpi.4"))
    for n in (1, 3):
        r = ranks(n, "--weights", "mpi.1", "--out", f"{n}.npy", command=("predict",))
        check(f"{n} of MPI predict", r.returncode == 0, r.stdout)
    check("the same", bytes_of("1.npy") == bytes_of("3.npy"))
    r = ranks(2, "--epochs", "2", "--checkpoint", "mpi.host", "--sums", "host")
    check("the host sends", r.returncode == 0 and "rows:" not in r.stdout and bytes_of("mpi.host") == bytes_of("mpi.1"), r.stdout)
    fast = {}
    for n, *sums in (2,), (3,), (3, "--sums", "host"):  # of two terms one order is like the other
        r = ranks(n, "--epochs", "2", "--checkpoint", f"fast.{n}", "--reduce", "fast", *sums)
        fast[n, bool(sums)] = r.returncode == 0 and bytes_of(f"fast.{n}")
        check(f"{n} of MPI: fast sums {sums}", r.returncode == 0 and "sums by a library counted as the least" in r.stdout, r.stdout)
    check("NCCL has an order of its own", fast[2, False] and fast[3, False] and fast[3, False] != fast[3, True])
    for rank, how, says in ((0, "init", "nccl: the processes' group: unhandled system error"),
                            (1, "call:30", "nccl: a transfer between GPUs: unhandled system error"),
                            (0, "remote:40", "nccl: what other processes' GPUs send: remote process exited"),
                            (1, "stall:40", "nccl: what other processes' GPUs send(: remote process exited| did not come within 6 s)"),
                            (0, "sum:3", "nccl: a sum of GPUs: unhandled system error"),
                            (1, "die:40", None)):
        start = ("sh", "-c", f'[ $OMPI_COMM_WORLD_RANK = {rank} ] && export CUDASIM_NCCL={how}; exec "$0" "$@"')
        begin = time.monotonic()
        r = ranks(2, "--epochs", "2", "--checkpoint", "none", "--patience", "6" if how.startswith("stall") else "60",
                  *(("--reduce", "fast") if how.startswith("sum") else ()), start=start)
        said = [line for line in r.stdout.splitlines() if "error: " in line]
        check(f"rank {rank}, {how}: one line", r.returncode not in (0, 124) and
              (len(said) == 1 and re.search(says, said[0]) if says else not said), r.stdout)
        check(f"rank {rank}, {how}: soon", time.monotonic() - begin < 45)


def main():
    os.environ["CUDASIM_DEVICES"] = "4"
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        cora()
        subprocess.run([BUILD + "/gnnc", "partition", "cora", str(PARTS), "-o", DATA, "--method", "rows"], check=True, stdout=subprocess.DEVNULL)
        os.environ["TMPDIR"] = os.environ["KERNELS"] = tmp  # where the simulator's NCCL leaves its files
        for i, (model, sizes) in enumerate(MODELS.items()):
            options = ["--parts", "--name=model", *(x for size in sizes for x in ("-D", size))]
            lib = library(BUILD, model, f"{TOP}/models/{model}.gnn", "cuda", options)
            cpu = library(BUILD, model, f"{TOP}/models/{model}.gnn", "cpu", options)
            lib.gnnc_trainer_error.restype = cpu.gnnc_trainer_error.restype = ctypes.c_char_p
            same_bits(lib, model, cpu, i == 0)
            if i == 0:
                one_fails(lib)
                recorded(lib)
        own_memory()
        os.environ["CUDASIM_DEVICES"] = "3"
        if shutil.which("mpirun") and os.path.exists(BUILD + "/gnnrt_mpi.o"):
            programs(tmp)
        else:
            check("without MPI its programs are left out", "GNNC_CI" not in os.environ)
    return end()


if __name__ == "__main__":
    sys.exit(main())
