#!/usr/bin/env python3
"""`while` on the cuda target, by the simulator: a recording asks for the condition on the device.

    loops.py BUILD    tests/cudasim/iterations.gnn on Cora, and a loop in steps over batches

Iterations are the cpu's, a step waits for nothing; with a driver that is too old, without a limit or under the profiler
the host reads the condition, and results are the same bits.  Recordings that fail in the middle: failures.py.
"""
import ctypes
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import batches  # noqa: E402
from sim import buckets_are_replayed, counts, library, orders, written  # noqa: E402

MODEL = os.path.join(HERE, "iterations.gnn")
CORA = os.path.join(TOP, "models/data/cora")

# A loop in the middle of a step over a batch, of as many rows as that has.
BATCHED = """
import "layers/sage.gnn"

graph Shop {
  node user { x: f32[F];  y: class[C];  split }
  edge knows: user -> user
}

model M(g: Shop; hidden: int = 8) -> f32[user, C] {
  first = sage_conv(hidden)
  last = sage_conv(C)
  param W: f32[hidden, hidden'] = normal(0, 0.5)
  M = detach(W)
  h = relu(first(g.knows, g.user.x))
  s = detach(h)
  d = sum(abs(s))
  while d > 1 limit 4 {
    s = rename(tanh(s @ M), hidden', hidden)
    d = sum(abs(s))
  }
  return last(g.knows, h + detach(s))
}

train M {
  target user.y   loss cross_entropy   metric accuracy
  optimizer adam(lr = 1e-2)
  sample { fanout [4, 3]  batch 32 }
  epochs 5
}
"""


def steps_cost(sim, t, n):
    first = counts(sim)
    for _ in range(n):
        t.step()
    now = counts(sim)
    t.ok(t.lib.gnnc_trainer_wait(t.t))
    now["iterations"] = counts(sim)["iterations"]  # are counted when they are made
    return {k: now[k] - first[k] for k in now}


def logged(t, name):
    data, rank, dim = ctypes.POINTER(ctypes.c_float)(), ctypes.c_int(), (ctypes.c_int64 * 8)()
    t.ok(t.lib.gnnc_trainer_output(t.t, b"log:" + name.encode(), ctypes.byref(data), ctypes.byref(rank), dim))
    return data[0]


def curve(lib, epochs=6):
    t, out = batches.Trainer(lib, CORA, threads=2), []
    for _ in range(epochs):
        t.epoch()
        out.append([t.metric("loss"), t.metric("loss.val"), logged(t, "rounds")])
    return t, out


def replayed(cpu, sim):
    """The counts of iterations are the cpu's, those of the last epochs by recordings of training and evaluation."""
    _, want = curve(cpu)
    t, have = curve(sim)
    for a, b in zip(want, have):
        assert a[2] == b[2] and all(abs(x - y) < 1e-4 for x, y in zip(a, b)), (a, b)
    assert {x[2] for x in want} and max(x[2] for x in want) > 202, want  # some in loops, some in loops in these
    now = steps_cost(sim, t, 5)
    assert now["graph_launches"] == 5 and now["iterations"] > 10, now
    assert now["launches"] == now["library_calls"] == now["synchronisations"] == now["device_to_host"] == 0, now
    return have


def read_by_the_host(sim, want):
    """A driver that does not know such nodes."""
    os.environ["CUDASIM_DRIVER"] = "12030"
    t, have = curve(sim)
    now = steps_cost(sim, t, 5)
    del os.environ["CUDASIM_DRIVER"]
    assert have == want, (have, want)
    assert now["iterations"] == now["graph_launches"] == 0 and now["device_to_host"] >= 5 * 2, now


def without_a_limit(build, want):
    """The host could leave it."""
    text = open(MODEL, encoding="utf-8").read().replace("limit 6", "").replace("limit 5", "")
    sim = written(build, "endless", text, "cuda")
    t, have = curve(sim, 3)
    now = steps_cost(sim, t, 5)
    assert have == want[:3], (have, want)
    assert now["iterations"] == now["graph_launches"] == 0 and now["device_to_host"] >= 5 * 2, now


def stopped_inside(build):
    """What stops the host within a loop that has no iteration at first: the phase is not recorded, and iterations are the cpu's."""
    text = open(MODEL, encoding="utf-8").read()
    text = text[:text.index("  diff = ")] + "  rounds = 0.0 * max(abs(h))\n  t = detach(sum(z))\nLOOP" + text[text.index('  log("rounds"'):]
    text = text.replace("return up(z + detach(h))", "return up(z)")
    grows = [x[2] for x in curve(written(build, "grows", text.replace("LOOP", "  rounds = t\n"), "cpu"), 8)[1]]
    assert grows[0] < grows[3] < grows[-1], grows
    for name, body in (("inner", "while u > 1 { u = u * 0.5\n rounds = rounds + 10 }"), ("asserts", 'assert(u < 1e9, "u")')):
        loop = "  u = 0 * t + 40\n  while t > %g limit 3 {\n %s\n t = t * 0.99\n rounds = rounds + 1\n }\n" % (grows[3], body)
        cpu, sim = (curve(written(build, name + device, text.replace("LOOP", loop), device), 8)[1] for device in ("cpu", "cuda"))
        assert [x[2] for x in cpu] == [x[2] for x in sim] and cpu[0][2] == 0 < cpu[-1][2], (name, cpu, sim)


def main():
    build = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        cpu, sim = (library(build, "iterations", MODEL, device) for device in ("cpu", "cuda"))
        for _ in orders(sim, 2):
            bits = replayed(cpu, sim)
        read_by_the_host(sim, bits)
        without_a_limit(build, bits)
        stopped_inside(build)
        batches.data("shop")
        looped = written(build, "looped", BATCHED, "cuda")
        for _ in orders(looped, 2):
            before = counts(looped)["iterations"]
            buckets_are_replayed(batches.Trainer, looped, "shop", gathers=1)
            assert counts(looped)["iterations"] > before


main()
