"""Compiled models as libraries, for the cpu and for the simulator, and what the simulator counts."""
import ctypes
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


class Counts(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int64) for n in ("synchronisations", "allocations", "host_to_device", "device_to_host",
                                              "device_to_device", "launches", "library_calls", "graph_launches", "fills", "ends",
                                              "groups", "spmms", "iterations", "event_waits", "transfers", "bytes_to_device")]


def cora():
    """Makes ./cora: a third of it, with GNNC_LONG all."""
    whole = os.path.join(os.path.dirname(os.path.dirname(HERE)), "models/data/cora")
    if "GNNC_LONG" in os.environ:
        os.symlink(whole, "cora")
    else:
        subprocess.run([HERE + "/some.py", whole, "900", "cora"], check=True)


def counts(sim):
    """Since the start."""
    sim.cudasim_count.restype = ctypes.POINTER(Counts)
    n = sim.cudasim_count().contents
    return {k: getattr(n, k) for k, _ in Counts._fields_}


ORDERS = ("random:1", "lazy:others", "lazy", "eager")


def orders(sim, some=len(ORDERS), least=0):
    """Those in which queued work may run: what is tested holds in each (queue.c).  some: so many of them, where others
    have shown in all what queues such work; CUDASIM_ORDERS is the most that are taken, but for `least`; with GNNC_LONG they
    are all."""
    n = len(ORDERS) if "GNNC_LONG" in os.environ else max(least, min(some, int(os.environ.get("CUDASIM_ORDERS", len(ORDERS)))))
    for order in ORDERS[:n]:
        sim.cudasim_order(order.encode())
        yield order


def library(build, name, source, device, options=()):
    path = os.path.abspath(f"{name}.{device}.so")
    if device == "cpu":
        gnnc = os.path.join(os.path.dirname(HERE), "tools/gnnc")
        subprocess.run([gnnc, source, "--emit=lib", "--runtime=shared", "--name=model", "-o", f"{name}.cpu", *options], check=True,
                       env={**os.environ, "GNNC": build + "/gnnc"})
        path = os.path.abspath(f"lib{name}.cpu.so")
    else:
        subprocess.run([HERE + "/build", source, path, *options], check=True, env={**os.environ, "BUILD": build})
    return ctypes.CDLL(path)


def written(build, name, text, device, options=()):
    """Of a model's text.  Kernels are called after the file: with one name for all, models that differ in how batches are drawn have
    one text of kernels, which is compiled once (KERNELS)."""
    os.makedirs(name + ".text", exist_ok=True)
    source = os.path.abspath(name + ".text/model.gnn")
    with open(source, "w", encoding="utf-8") as f:
        f.write(text)
    return library(build, name, source, device, options)


def losses_of_epochs(trainer, epochs):
    for _ in range(epochs):
        trainer.epoch()
        yield trainer.metric("loss")


def buckets_are_replayed(trainer, sim, data, gathers, near=2e-5, epochs=2, steps=10, want=None, **options):
    """Steps of rounded sizes: the losses of the batches' own, and one launch where the bucket was seen before.
    gathers: columns are gathered in front of it.  Returns the losses of the batches' own sizes; want: those of an earlier
    call, which no order changes."""
    want = want or list(losses_of_epochs(trainer(sim, data, threads=2, buckets=0, **options), epochs))
    u = trainer(sim, data, threads=2, **options)  # as is the default
    for a, b in zip(want, losses_of_epochs(u, epochs)):
        assert a == a and abs(a - b) <= near * max(1, abs(a)), (a, b)
    for _ in range(12):  # a batch of a bucket that did not come up yet is recorded
        first = counts(sim)
        for _ in range(steps):
            u.step()
        now = {k: v - first[k] for k, v in counts(sim).items()}
        if now["graph_launches"] == steps:
            break
    assert now["graph_launches"] == steps and now["library_calls"] == now["fills"] == 0, now
    assert now["launches"] == steps * gathers, now
    assert now["synchronisations"] == now["device_to_host"] == now["allocations"] == 0, now
    assert now["host_to_device"] == 2 * steps, now
    return want
