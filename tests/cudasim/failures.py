#!/usr/bin/env python3
"""What the driver or a library refuses in the middle of a run is done in a slower way, by the simulator.

    failures.py BUILD    each call for graphs, each launch under recording and each call of a library fails once

A phase whose recording failed, or could not be launched, is launched step by step for good: the same bits, and one line
that names it and the reason.  What a library failed at is made by kernels, or by a call for each product.  If the slower
way fails, too, the first failure is what is told.
"""
import ctypes
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from maps import Heard, graph  # noqa: E402
from sim import counts, written  # noqa: E402
from spmm import MODEL as SPARSE  # noqa: E402

# A product with an end, several of one shape at once, a rank, a loop with a product in it and one within it.
MODEL = """
graph Shop {
  node user { x: f32[F];  y: class[C];  split }
  edge knows: user -> user
}

model M(g: Shop; hidden: int = 8) -> f32[user, C] {
  first = linear(hidden)
  heads = [i: linear(hidden) for i in 0..3]
  last = linear(C)
  param W: f32[hidden, hidden'] = normal(0, 0.5)
  M = detach(W)
  x = g.user.x
  h = relu(first(x)) + sum([relu(heads[i](x)) for i in 0..3])
  n = sum(h[g.knows.src], over = g.knows.dst)
  s = detach(n)
  d = max(abs(s))
  while d > 0.1 limit 3 {
    s = rename(tanh(s @ M), hidden', hidden)
    d = max(abs(s))
    while d > 0.5 limit 2 { s = s * 0.5
      d = max(abs(s)) }
  }
  return last(n + s)
}

train M {
  target user.y   loss cross_entropy   metric roc_auc
  optimizer adam(lr = 1e-2)
  SAMPLE
  epochs 5
}
"""
OUT_OF_MEMORY, INTERNAL = 2, 7
LINE = re.compile(r"graphs: '(\w+)': cuda: ([^:]+): [^:]+( \(at or before kernel .*\))?; its steps are launched one by one")


def run(t, epochs):
    """Checkpoints and losses."""
    out = []
    for _ in range(epochs):
        t.epoch()
        out.append((t.save("failures"), t.metric("loss"), t.metric("loss.val")))
    return out


def broken(sim, what, data, epochs, at, how, **options):
    """A run in which one call fails, but for loading, and its trainer."""
    t = Heard(sim, data, threads=1, **options)
    assert not t.failed, t.error
    getattr(sim, "cudasim_break_" + what)(ctypes.c_int64(at), how)
    bits = run(t, epochs)
    getattr(sim, "cudasim_break_" + what)(ctypes.c_int64(-1), 0)
    return t, bits


def each_call(sim, what, data, epochs, how, first=0, step=1, **options):
    """Until a run has no more such calls: which phases could not be recorded, by which call."""
    t = Heard(sim, data, threads=1, **options)
    want = run(t, epochs)
    assert t.said == [], t.said
    t.close()
    left = sim.cudasim_live_bytes()
    at, seen = first, set()
    while True:
        t, bits = broken(sim, what, data, epochs, at, how, **options)
        assert bits == want, (what, at, t.said)
        lines = [LINE.fullmatch(s) for s in t.said]
        assert len(lines) <= 1 and all(lines), (what, at, t.said)
        before = counts(sim)["graph_launches"]
        for _ in range(3):
            t.step()
        now = counts(sim)["graph_launches"] - before
        stays = not lines or lines[0][1] != "train"
        assert options or now == (3 if stays else 0), (what, at, t.said, now)
        t.close()
        assert sim.cudasim_live_bytes() == left, (what, at)
        if not lines:
            return seen, at
        seen.add((lines[0][1], lines[0][2]))
        at += step


def recordings(sim):
    seen, n = each_call(sim, "graphs", "shop", 3, OUT_OF_MEMORY)
    for phase in ("train", "eval"):
        for call in ("the begin of a recording", "the end of a recording", "a graph of what was recorded",
                     "the launch of a graph", "a loop"):
            assert (phase, call) in seen, (phase, call, seen)
    assert n > 40, n
    return n


def launches_under_recording(sim):
    """The first runs' go well, those that come then are recorded."""
    t = Heard(sim, "shop", threads=1)
    before = counts(sim)["launches"]
    run(t, 2)  # the first epoch's ranks want memory: what was recorded knows another place
    first = counts(sim)["launches"] - before
    t.close()
    seen, n = each_call(sim, "launches", "shop", 3, 719, first=first, step=2)
    assert {phase for phase, _ in seen} == {"train", "eval"} and n > first + 60, (seen, first, n)


def buckets(build):
    """One bucket's recording fails: those that are there go on, no other one is made."""
    sim = written(build, "batched", MODEL.replace("SAMPLE", "sample { fanout [4]  batch 8 }"), "cuda")
    sim.cudasim_live_bytes.restype = ctypes.c_int64
    seen, n = each_call(sim, "graphs", "shop", 2, OUT_OF_MEMORY, step=7, buckets=1)
    assert ("train", "the launch of a graph") in seen and n > 40, (seen, n)
    for on_device in (0, 1):
        pages(sim, device_sampler=on_device)


def both_ways(sim):
    """The phase cannot be recorded and cannot be launched: the first failure is the cause, and the trainer goes on."""
    t = Heard(sim, "shop", threads=1)
    run(t, 2)
    sim.cudasim_break_graphs(ctypes.c_int64(0), OUT_OF_MEMORY)
    sim.cudasim_break_launches(ctypes.c_int64(0), 719)
    assert t.lib.gnnc_trainer_step(t.t) != 0
    error = t.lib.gnnc_trainer_error(t.t).decode()
    assert error.startswith("cuda: the begin of a recording: out of memory"), error
    assert t.said == [], t.said
    t.epoch()
    assert t.metric("loss") == t.metric("loss")
    t.close()


def pages(sim, **options):
    """Copies of an epoch's scalars and of batches, from and to memory that cannot be locked."""
    t = Heard(sim, "shop", threads=1, **options)
    want = run(t, 3)
    t.close()
    os.environ["CUDASIM_NO_PINNED"] = "1"
    t = Heard(sim, "shop", threads=1, **options)
    assert not t.failed and run(t, 3) == want
    del os.environ["CUDASIM_NO_PINNED"]
    assert t.said == ["copies: cuda: page-locked memory: out of memory; the host waits for them"], t.said
    t.close()


def libraries(sim, data, kinds, needs, step=1):
    """Losses of other sums of the same terms; what is said begins with `kinds`.  Each call fails; behind the first ones,
    where all kinds are, each `step`th, with GNNC_LONG each."""
    step = 1 if "GNNC_LONG" in os.environ else step
    t = Heard(sim, data, threads=1)
    want = [x[1:] for x in run(t, 2)]
    assert t.said == [], t.said
    t.close()
    left, at, seen = sim.cudasim_live_bytes(), 0, set()
    while True:
        sim.cudasim_break_libraries(ctypes.c_int64(at), INTERNAL)
        t = Heard(sim, data, threads=1)
        assert not t.failed, (at, t.error)
        have = [x[1:] for x in run(t, 2)]
        sim.cudasim_break_libraries(ctypes.c_int64(-1), 0)
        assert all(abs(a - b) <= 1e-4 * max(1, abs(a)) for w, h in zip(want, have) for a, b in zip(w, h)), (at, want, have)
        assert len(t.said) <= 1 and all(s.split(":")[0] in kinds for s in t.said), (at, t.said)
        seen |= {re.sub(r" for .*? of \S+", "", s) for s in t.said}
        said = bool(t.said)
        t.close()
        assert sim.cudasim_live_bytes() == left, at
        if not said:
            break
        at += step if at >= 24 else 1
    for call in needs:
        assert any(call in s for s in seen), (call, seen)


def main():
    build = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        graph("shop", 1, 120, 20, 500, 40)
        sim = written(build, "whole", MODEL.replace("SAMPLE", ""), "cuda")
        sim.cudasim_live_bytes.restype = ctypes.c_int64
        recordings(sim)
        launches_under_recording(sim)
        both_ways(sim)
        pages(sim)
        libraries(sim, "shop", {"products"}, ("cublas, several at once: ", "cublasLtMatmul: "))
        buckets(build)
        graph("odd", 1, 40, 300, 500)
        sparse = written(build, "m", SPARSE, "cuda", ["--spmm=cusparse"])
        sparse.cudasim_live_bytes.restype = ctypes.c_int64
        libraries(sparse, "odd", {"spmm", "products"}, ["cuda: cusparse" + f for f in (
            "Create", "SetStream", "CreateCsr", "CreateDnMat", "SpMM_bufferSize", "SpMM_preprocess", "DnMatSetValues", "SpMM")], 3)


main()
