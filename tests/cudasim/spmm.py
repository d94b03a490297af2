#!/usr/bin/env python3
"""Sparse products by the library (--spmm) are those of the program's kernels, whatever the graph and the order of threads.

    spmm.py BUILD    random multigraphs with hubs, lonely nodes and empty relations; one node; nothing at all

Losses agree with the kernels', which make other sums of the same terms, and their bits are the same each time.  A step waits
for nothing and allocates nothing.  Without the library, without memory, or where it fails, the kernels go on, which one line
says: a call that failed by its name, the product's and its line.  failures.py has each call fail.
"""
import ctypes
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import around  # noqa: E402
from batches import Trainer  # noqa: E402
from maps import Heard, graph  # noqa: E402
from samplers import trained  # noqa: E402
from sim import Counts, written  # noqa: E402

# Weights in the order of entries, and of the other end (gradients: the other way round); none; a mean; weights that change
# from step to step; two sums over one relation; of nothing; stored entries of a sparse column; a sum that stays as it is.
MODEL = """
graph Odd {
  node user { x: csr f32[F];  y: class[C];  split }
  node item { z: f32[G] }
  edge knows: user -> user { w: f32 }
  edge buys: user -> item { w: f32 }
  edge bought_by: item -> user
  edge never: item -> user
}

model M(g: Odd; hidden: int = 4) -> f32[user, C] {
  first = linear(hidden)
  second = linear(hidden)
  param k: f32[hidden] = normal(0, 1)
  out = linear(C)
  u = relu(first(dropout(g.user.x, 0.2)))
  i = second(g.item.z)
  back = reverse(g.buys)
  plain = without_self_loops(g.knows)
  a = sum(u[g.knows.src] * g.knows.w, over = g.knows.dst)
  b = sum(u[g.knows.dst] * g.knows.w, over = g.knows.src) + sum(a[g.knows.dst] * g.knows.w, over = g.knows.src)
  c = mean(i[g.bought_by.src], over = g.bought_by.dst) + sum(i[g.never.src], over = g.never.dst)
  t = sigmoid(sum(u * k, hidden)[plain.src])
  n = rsqrt(max(degree(back, back.src), 1))
  d = sum(u[plain.src] * t, over = plain.dst) + sum(i[back.src] * n[back.src], over = back.dst)
  return out(relu(a) + b + c + d)
}

train M {
  target user.y   loss cross_entropy   metric accuracy
  optimizer adam(lr = 1e-2)
  epochs 3
}
"""


# An evaluation of links has weights that @encode makes anew each time, in another order than the library's.
LINKS = """
import "layers/links.gnn"

graph Facts {
  node entity { x: f32[F] }
  edge triple: entity -> entity { split }
}

model M(g: Facts; rank: int = 4) -> f32[links] {
  p = links(g.triple)
  first = linear(rank)
  gate = linear(1)
  out = linear(1)
  s = sum(gate(g.entity.x), 1)
  w = sigmoid(s[g.triple.src] + s[g.triple.dst])
  h = first(g.entity.x)
  m = sum(h[p.dst], over = p.src)
  k = sum(m[g.triple.dst] * w, over = g.triple.src)
  return sum(out(relu(k[p.src] + h[p.dst])), 1)
}

train M {
  target links   loss bce_with_logits   metric roc_auc
  optimizer sgd(lr = 0.1)
  sample { batch 40  negatives 1 }
  epochs 3
}
"""


def weights_made_anew(build):
    around.facts("facts")
    own, sim = (Trainer(written(build, name, LINKS, "cuda", option), "facts", threads=1)
                for name, option in (("links", []), ("links_spmm", ["--spmm=cusparse"])))
    for _ in range(3):
        own.epoch()
        sim.epoch()
        for name in ("loss", "roc_auc.val", "roc_auc.test"):
            a, b = own.metric(name), sim.metric(name)
            assert abs(a - b) <= 1e-4 * max(1, abs(a)), (name, a, b)


def losses(lib, data, epochs=3):
    t, out = Trainer(lib, data, threads=1), []
    for _ in range(epochs):
        t.epoch()
        out += [t.metric("loss"), t.metric("loss.train")]
    return out


def the_kernels_sums(own, sim, data, products):
    """As many products a step as the plan has; the same bits by another order of threads."""
    n = sim.cudasim_count()
    want = losses(own, data)
    got = losses(sim, data)
    assert all(abs(a - b) <= 1e-4 * max(1, abs(a)) for a, b in zip(want, got)), (data, want, got)
    first = trained(Trainer(sim, data, threads=1), 2)
    sim.cudasim_seed(ctypes.c_uint64(7))
    assert trained(Trainer(sim, data, threads=1), 2) == first, data
    before = n.contents.spmms
    Trainer(sim, data, threads=1).step()
    assert bool(n.contents.spmms - before) == products, (data, n.contents.spmms - before)


def a_step_waits_for_nothing(sim, data):
    n = sim.cudasim_count()
    t = Trainer(sim, data, threads=1)
    for _ in range(2):
        t.step()
    first = {k: getattr(n.contents, k) for k, _ in Counts._fields_}
    for _ in range(5):
        t.step()
    now = {k: getattr(n.contents, k) - first[k] for k, _ in Counts._fields_}
    assert now["synchronisations"] == now["device_to_host"] == now["allocations"] == now["spmms"] == 0, now
    assert now["graph_launches"] == now["host_to_device"] == 5, now


def heard(sim, data, **env):
    os.environ.update(env)
    try:
        return Heard(sim, data, threads=1)
    finally:
        for k in env:
            del os.environ[k]


def without_the_library(sim, data):
    """The bits of the kernels, and a line that says why."""
    declined = trained(heard(sim, data, CUDASIM_CUSPARSE="declines"))
    t = heard(sim, data, CUDASIM_NO_LIBRARY="sparse")
    assert t.said == ["spmm: no libcusparse.so.12; the program's kernels make sparse products"], t.said
    assert trained(t) == declined
    t = heard(sim, data, CUDASIM_CUSPARSE="fails")
    assert len(t.said) == 1 and t.said[0].startswith("spmm: cuda: cusparseSpMM_bufferSize for ") and "model.gnn:" in t.said[0], t.said
    assert trained(t) == declined
    return declined


def without_memory(sim, data, kernels):
    """However much there is: all of them or none, and nothing stays behind."""
    sim.cudasim_live_bytes.restype = ctypes.c_int64
    at_first, seen = sim.cudasim_live_bytes(), set()
    library = trained(Trainer(sim, data, threads=1))
    leaves = sim.cudasim_live_bytes()
    most = (4 << 20) + (32 << 20)  # RT_DEVICE_ROOM_BYTES, RT_BLAS_WORKSPACE_BYTES
    for more in range(1 << 14, 1 << 20, 3000):
        sim.cudasim_memory(ctypes.c_int64(leaves + most + more))
        t = Heard(sim, data, threads=1, device_maps=0)
        sim.cudasim_memory(ctypes.c_int64(-1))
        said = [s for s in t.said if s.startswith("spmm:")]
        assert said in ([], ["spmm: too little memory on the device; the program's kernels make sparse products"]), said
        if not t.failed:
            assert trained(t) == (kernels if said else library)
            seen.add(len(said))
        t.close()
        assert sim.cudasim_live_bytes() == leaves
        if seen == {0, 1}:
            break
    assert seen == {0, 1} and at_first <= leaves, seen


def main():
    build = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        own = written(build, "own", MODEL, "cuda")
        sim = written(build, "m", MODEL, "cuda", ["--spmm=cusparse", "--disable-pass=assign-streams"])  # one RT_DEVICE_ROOM_BYTES
        sim.cudasim_count.restype = ctypes.POINTER(Counts)
        for k, (users, items, edges, hub) in enumerate(((300, 90, 2000, 600), (40, 300, 500, 0), (1, 1, 20, 0), (5, 3, 0, 0))):
            graph(f"odd{k}", k, users, items, edges, hub)
            the_kernels_sums(own, sim, f"odd{k}", k != 3)
        weights_made_anew(build)
        a_step_waits_for_nothing(sim, "odd1")
        without_memory(sim, "odd1", without_the_library(sim, "odd1"))


if __name__ == "__main__":
    main()
