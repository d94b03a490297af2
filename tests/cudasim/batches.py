#!/usr/bin/env python3
"""Mini-batches on the cuda target, by the simulator: the cpu's losses, and steps that wait for nothing.

    batches.py BUILD    the models and data of tests/e2e/batches.py, pieces.py and around.py, with fewer rows
"""
import ctypes
import os
import random
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import around  # noqa: E402
import batches  # noqa: E402
import directory  # noqa: E402
import pieces  # noqa: E402
from checkpoint import tensors  # noqa: E402
from sim import Counts, buckets_are_replayed, counts, losses_of_epochs, orders, written  # noqa: E402


ADAM = "adam(lr = 1e-2)"
USERS = 640
GIANT = 101  # a molecule in none of the batches that tell which sizes are usual


def near(t, u, name, limit):
    a, b = t.metric(name), u.metric(name)
    assert abs(a - b) <= limit, (name, a, b)


def same_losses(cpu, sim, threads, data="shop", val=1e-3):
    """Validation also sees how rounding was amplified by maxima and normalisation: a bias in front of batch_norm has no
    gradient but rounding, of which Adam makes steps."""
    t, u = (batches.Trainer(lib, data, threads=threads) for lib in (cpu, sim))
    for _ in range(2):
        t.epoch()
        u.epoch()
        near(t, u, "loss", 1e-4)
        near(t, u, "loss.val", val)
        near(t, u, "accuracy.val", 2.1e-3 * 5)


def a_step_waits_for_nothing(sim):
    """After the first epochs a step is uploads and launches: no wait, no allocation, no copy back."""
    sim.cudasim_count.restype = ctypes.POINTER(Counts)
    n = sim.cudasim_count()
    t = batches.Trainer(sim, "shop", threads=2)
    for _ in range(2):
        t.epoch()
    first = {k: getattr(n.contents, k) for k, _ in Counts._fields_}
    for _ in range(20):
        t.step()
    now = {k: getattr(n.contents, k) - first[k] for k, _ in Counts._fields_}
    assert now["synchronisations"] == now["device_to_host"] == now["allocations"] == 0, now
    assert now["host_to_device"] == 2 * 20, now  # inputs, and what the batch brings
    assert now["device_to_device"] == 20, now  # the loss is noted


class Pipeline(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("batches", ctypes.c_int64), ("workers", ctypes.c_int64)] + \
               [(n, ctypes.c_double) for n in ("prepare_s", "worker_wait_s", "step_wait_s")]


def all_threads_but_one_make_batches(cpu, sim):
    """A device makes steps faster than a thread makes batches; and the model's own steps take the rest of the time."""
    for lib, more, want in ((cpu, {}, 2), (sim, {}, 4), (sim, {"workers": 3}, 3), (cpu, {"workers": 3}, 3)):
        t, p = batches.Trainer(lib, "shop", threads=5, **more), Pipeline(ctypes.sizeof(Pipeline))
        t.step()
        assert lib.gnnc_trainer_pipeline(t.t, ctypes.byref(p)) == 0 and p.workers == want, (p.workers, want)


def a_bucket_is_replayed(sim, data, want):
    want = buckets_are_replayed(batches.Trainer, sim, data, gathers=1, want=want)
    assert sim.cudasim_count().contents.ends > 0  # sizes that differ from step to step share what was chosen
    return want


def whoever_gathers(sim, data, buckets, pinned=()):
    """Rows of columns that the device takes out of its memory, or the host's, are those that the host would have sent: the same bits.
    pinned: bytes for rows that stay on the device."""
    saved, there = [], []
    for where, cache in ((0, 0), (1, 0), *((2, room) for room in pinned)):
        t = batches.Trainer(sim, data, threads=2, device_features=where, feature_cache=cache, buckets=buckets)
        t.epoch()
        t.save("gathered")
        saved.append(tensors("gathered"))
        sim.gnnc_trainer_device_bytes.restype = ctypes.c_int64
        there.append(sim.gnnc_trainer_device_bytes(t.t))
    assert all(s == saved[0] for s in saved) and any(k.startswith("opt.") for k in saved[0])
    return there[1:]


def rows_that_stay(sim, data):
    """Of columns in the host's memory those with most edges, as far as there is room, beside the table of which they are."""
    room = 6000
    device, none, some, most = whoever_gathers(sim, data, True, (0, room, 1 << 30))
    assert none < device and none + room / 2 < some < none + 4 * room and some < most, (device, none, some, most)


# Codes that nothing groups, and codes that are grouped for the gradient of a table.
ROWS = """
graph Shop {
  node user { x: f32[F];  kind: cat[K];  y: class[C];  split }
  edge knows: user -> user
}

model M(g: Shop) -> f32[user, C] {
  out = linear(C)
  %s
  return out(g.user.x + sum(g.user.x[g.knows.src], over = g.knows.dst)) + row(%s)
}

train M {
  target user.y   loss cross_entropy   metric accuracy
  optimizer adam(lr = 1e-2)
  sample { fanout [2]  batch 4096 }
  epochs 2
}
"""


def what_crosses(build):
    """Of whole numbers nothing but which rows a batch has: bytes of a batch of 4096 seeds beside one of 512, which have no edges."""
    r, n, path = random.Random(4), 4096 + 512, "rows"
    os.mkdir(path)
    columns = {"x": directory.column(path, "x", "float", [r.gauss(0, 1) for _ in range(n * 5)], width=5),
               "kind": directory.column(path, "kind", "cat", [r.randrange(7) for _ in range(n)], categories=7),
               "y": directory.column(path, "y", "class", [r.randrange(3) for _ in range(n)], categories=3),
               "split": directory.column(path, "split", "split", [1] * n)}
    directory.write(path, {"user": {"count": n, "columns": columns}}, {"knows": directory.relation(path, "knows", "user", "user", [])})
    for name, layer, of, whole in (("coded", "row = linear(C)", "one_hot(g.user.kind, K)", 4), ("tabled", "row = embedding(K, C)", "g.user.kind", 0)):
        sim, saved, per_row, asked = written(build, name, ROWS % (layer, of), "cuda"), [], [], 4 * 4096
        for features, sampler in ((0, 0), (1, 0), (2, 0), (1, 1), (2, 1)):
            t, sent = batches.Trainer(sim, path, threads=1, workers=0, device_features=features, device_sampler=sampler), []
            t.epoch()
            for _ in range(2):
                before = counts(sim)["bytes_to_device"]
                t.step()
                sent.append(counts(sim)["bytes_to_device"] - before)
            t.save("crossed")
            saved.append(tensors("crossed"))
            per_row.append((sent[0] - sent[1]) / (4096 - 512))
            assert not sampler or sum(sent) < 2 * asked + 4 * n, (name, sent, asked)  # of its seeds alone, in room for as many as ever
        assert all(s == saved[0] for s in saved), name
        host, device, pinned = per_row[:3]
        assert abs(host - device - (20 + whole + 4 + 4 - 4)) < 1 and abs(device - pinned) < 1, (name, per_row)


def rows_by_time(cpu, sim):
    """What each row is predicted at its time: the cpu's; and what is judged of all of them is read back once."""
    sim.cudasim_count.restype = ctypes.POINTER(Counts)
    n = sim.cudasim_count()
    t, u = (batches.Trainer(lib, "shop", threads=2) for lib in (cpu, sim))
    for layer in (None, "h"):
        a, b = t.values(layer), u.values(layer)
        assert len(a) == USERS and max(abs(x - y) for r, s in zip(a, b) for x, y in zip(r, s)) < 1e-5, layer
    for _ in range(2):
        before = n.contents.device_to_host
        for x in (t, u):
            x.ok(x.lib.gnnc_trainer_evaluate(x.t))
        read = n.contents.device_to_host - before
    assert read == 1, read
    for name in ["%s.%s" % (m, s) for m in ("loss", "accuracy") for s in ("train", "val", "test")]:
        near(t, u, name, 2.1e-3 * 5 if name[0] == "a" else 1e-5)


def links_by_time(cpu, sim):
    """Scores stay on the device until a split is judged: one read for each."""
    sim.cudasim_count.restype = ctypes.POINTER(Counts)
    n = sim.cudasim_count()
    t, u = (batches.Trainer(lib, "mail", threads=2) for lib in (cpu, sim))
    for x in (t, u):
        x.epoch()
    a, b = t.values(), u.values()
    assert len(a) == 700 and max(abs(x - y) for (x,), (y,) in zip(a, b)) < 1e-3
    before = n.contents.device_to_host
    u.ok(u.lib.gnnc_trainer_evaluate(u.t))
    assert n.contents.device_to_host - before == 2, n.contents.device_to_host - before
    for name in ["loss"] + ["%s.%s" % (m, s) for m in ("of_true", "of_false", "roc_auc") for s in ("val", "test")]:
        near(t, u, name, 1e-5 * max(1, abs(t.metric(name))))


def rows_of_splits(cpu, sim):
    """What is judged of rows that lie apart goes to them by one launch a batch, of those that follow each other by one copy."""
    sim.cudasim_count.restype = ctypes.POINTER(Counts)
    n = sim.cudasim_count()
    shutil.copytree("shop", "mixed", dirs_exist_ok=True)
    directory.save("mixed/split.npy", "b", "|i1", (USERS,), [1 + (i % 7 == 3) + 2 * (i % 7 == 5) for i in range(USERS)])
    moved = []
    for data in ("shop", "mixed"):
        t, u = (batches.Trainer(lib, data, threads=2) for lib in (cpu, sim))
        for seed in (1, 2, 3):
            sim.cudasim_seed(ctypes.c_uint64(seed))
            first = {k: getattr(n.contents, k) for k, _ in Counts._fields_}
            for x in (t, u):
                x.ok(x.lib.gnnc_trainer_evaluate(x.t))
            now = {k: getattr(n.contents, k) - first[k] for k, _ in Counts._fields_}
            for name in ["%s.%s" % (m, s) for m in ("loss", "accuracy") for s in ("train", "val", "test")]:
                near(t, u, name, 2.1e-3 * 5 if name[0] == "a" else 1e-5)
        moved.append(now)
    steps = moved[0]["device_to_device"]
    assert steps > 5 and moved[1]["device_to_device"] == 0, moved
    assert moved[1]["launches"] == moved[0]["launches"] + steps, moved
    assert moved[1]["host_to_device"] == moved[0]["host_to_device"], moved  # the list was sent once


def resumed_in_mid_epoch(cpu, sim):
    """What a step learned and what the epoch's loss is so far cross from one target to the other."""
    t = batches.Trainer(sim, "shop", threads=1)
    t.epoch()
    for _ in range(7):
        t.step()
    t.save("part")
    u = batches.Trainer(cpu, "shop", threads=1)
    u.resume("part")
    t.epoch()
    u.epoch()
    near(t, u, "loss", 1e-4)


def resumed_bits(sim, data):
    """Killed in mid-epoch and behind an epoch, and gone on with by trainers that have met other batches: the bits of the run
    that was not.  Sizes are rounded up to what the data alone tell, and products follow from the sizes alone."""
    os.environ["CUDASIM_LT"] = "parts"
    t, u = (batches.Trainer(sim, data, threads=threads) for threads in (1, 2))
    for _ in range(2):
        t.epoch()
    assert u.cancel_after(t.left() // 3)
    for _ in range(2):
        u.save("part")
        u = batches.Trainer(sim, data, threads=3)
        for _ in range(3):
            u.step()
        u.resume("part")
        u.epoch()
    assert u.save("part") == t.save("whole")
    os.environ.pop("CUDASIM_LT")


def other_clusters(sim, data):
    """A trainer that has recorded steps goes on with clusters that another seed cuts, whose sizes are rounded otherwise."""
    t, u = batches.Trainer(sim, data, seed=7), batches.Trainer(sim, data)
    t.epoch()
    for _ in range(3):
        u.epoch()
    t.save("seven")
    u.resume("seven")
    t.epoch()
    u.epoch()
    assert u.save("part") == t.save("whole")


def one_is_too_large(sim, data):
    """A batch above all that sizes are rounded up to is launched kernel by kernel; the others' recordings stay."""
    want = list(losses_of_epochs(batches.Trainer(sim, data, buckets=0), 3))
    t = batches.Trainer(sim, data)
    for a, b in zip(want, losses_of_epochs(t, 3)):
        assert abs(a - b) <= 2e-5 * max(1, abs(a)), (a, b)
    steps = t.left()
    for _ in range(8):
        first = counts(sim)["graph_launches"]
        for _ in range(steps):
            t.step()
        replayed = counts(sim)["graph_launches"] - first
        if replayed == steps - 1:
            break
    assert replayed == steps - 1, (replayed, steps)


def links_are_replayed(build):
    """Ends seen from their neighbourhood: of two types, of triples, in trees of their own, by time (the events that are there)."""
    around.shop("likes")
    around.facts("facts")
    near, trees = "fanout [likes: [4, 3], reverse(likes): [4, 3], knows: [4, 3]] ", "disjoint true "
    for name, data, text in (("pairs", "likes", around.SHOP % ("0.2", ADAM, near)),
                             ("trees", "likes", around.SHOP % ("0.2", ADAM, near + trees)),
                             ("triples", "facts", around.FACTS % (ADAM, "fanout [4] ")),
                             ("past", "mail", around.EVENTS % ("[3, 2]", ""))):
        sim = written(build, name, text, "cuda")
        want = None
        for _ in orders(sim, 2):
            want = buckets_are_replayed(batches.Trainer, sim, data, gathers=1, want=want)


def main():
    build = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        batches.data("shop", USERS, 360)
        for name, text in (("shop", batches.MODEL), ("timed", batches.TIMED)):
            cpu, sim = (written(build, name, text, device) for device in ("cpu", "cuda"))
            want = None
            for _ in orders(sim, 4 if name == "shop" else 2):
                same_losses(cpu, sim, 2)
                want = a_bucket_is_replayed(sim, "shop", want)
                whoever_gathers(sim, "shop", name == "shop")
                if name == "timed":
                    rows_by_time(cpu, sim)
                    rows_of_splits(cpu, sim)
                if name == "shop":
                    a_step_waits_for_nothing(sim)
                    resumed_in_mid_epoch(cpu, sim)
                    all_threads_but_one_make_batches(cpu, sim)
            if name == "shop":
                rows_that_stay(sim, "shop")
            else:
                resumed_bits(sim, "shop")
        around.events("mail", True)
        cpu, sim = (written(build, "mail", around.EVENTS % ("[-1]", ""), device) for device in ("cpu", "cuda"))
        for _ in orders(sim, 2):
            links_by_time(cpu, sim)
        # Rows of 10 and of 6 bytes.
        low = written(build, "low", batches.MODEL, "cuda", ["--precision=bf16"])
        whoever_gathers(low, "shop", True, (6000,))
        a_step_waits_for_nothing(low)
        what_crosses(build)
        pieces.molecules("molecules", 240)
        pieces.molecules("giant", 240, giant=GIANT)
        links_are_replayed(build)
        for name, data, text in (("graphs", "molecules", pieces.MOLECULES % ("batch_norm()", ADAM, "sample { batch 8 }")),
                                 ("clusters", "shop", pieces.PEOPLE % ("false", ADAM, "sample { clusters 20  batch 2 }"))):
            cpu, sim = (written(build, name, text, device) for device in ("cpu", "cuda"))
            want = None
            for _ in orders(sim, 2):
                same_losses(cpu, sim, 2, data, val=5e-3 if name == "graphs" else 1e-3)
                want = a_bucket_is_replayed(sim, data, want)
                whoever_gathers(sim, data, name == "clusters")
            if name == "graphs":
                one_is_too_large(sim, "giant")
            else:
                other_clusters(sim, data)
            resumed_bits(sim, "giant" if name == "graphs" else data)


main()
