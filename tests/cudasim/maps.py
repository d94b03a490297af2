#!/usr/bin/env python3
"""Relations and index arrays that the device builds are the host's, entry by entry, whatever the graph and the order of threads.

    maps.py BUILD    random multigraphs with loops, hubs, lonely nodes and empty relations; one node; nothing at all

`check_maps` compares each array with what the host builds; what is trained on either side's arrays is the same bits.  Without
memory the host goes on, which one line says; what fails or differs is named.
"""
import ctypes
import os
import random
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from batches import Trainer  # noqa: E402
from directory import column, relation, write  # noqa: E402
from samplers import trained  # noqa: E402
from sim import Counts, written  # noqa: E402

# Each derivation, of base relations and of derived ones; sums over both ends, so transposes and what is read along them;
# masks by logical ids; columns of edges in their order; a column of categories; stored entries and their transpose.
MODEL = """
graph Odd {
  node user { x: csr f32[F];  y: class[C];  split }
  node item { z: f32[G];  kind: cat[K] }
  edge knows: user -> user { w: f32 }
  edge buys: user -> item { w: f32 }
  edge bought_by: item -> user
  edge never: item -> user
}

model M(g: Odd; hidden: int = 4) -> f32[user, C] {
  first = linear(hidden)
  second = linear(hidden)
  kinds = embedding(K, hidden)
  out = linear(C)
  u = relu(first(g.user.x))
  i = second(g.item.z) + kinds(g.item.kind)
  looped = with_self_loops(g.knows)
  plain = without_self_loops(g.knows)
  both = undirected(g.knows)
  back = reverse(g.buys)
  all = union(union(g.bought_by, g.never), back)
  strong = g.knows where g.knows.w > 0.5
  dear = without_self_loops(undirected(strong))
  far = reverse(both)
  a = sum(dropout(u[looped.src], 0.2), over = looped.dst) + sum(dropout(u[plain.src], 0.3), over = plain.dst)
  b = sum(dropout(u[both.src], 0.2), over = both.dst) + sum(u[strong.src] * strong.w, over = strong.dst)
  c = sum(dropout(i[all.src], 0.4), over = all.dst) + sum(i[back.src] * back.w, over = back.dst)
  d = sum(dropout(u[dear.src], 0.2), over = dear.dst) + sum(u[far.src], over = far.dst)
  return out(a + b + c + d)
}

train M {
  target user.y   loss cross_entropy   metric accuracy
  optimizer adam(lr = 1e-2)
  epochs 3
}
"""

# Batches: the host draws from what the device has built.
DRAWN = """
graph Odd {
  node user { x: csr f32[F];  y: class[C];  split }
  edge knows: user -> user { w: f32 }
}

model M(g: Odd) -> f32[user, C] {
  first = linear(4)
  out = linear(C)
  strong = g.knows where g.knows.w > 0.5
  h = first(g.user.x)
  return out(sum(dropout(h[g.knows.src], 0.3), over = g.knows.dst) + sum(h[strong.src] * strong.w, over = strong.dst))
}

train M {
  target user.y   loss cross_entropy   metric accuracy
  optimizer adam(lr = 1e-2)
  sample { fanout [3]  batch 40  %s }
  epochs 2
}
"""


def graph(path, seed, users, items, edges, hub=0, width=6):
    """`hub` edges go to one node and as many leave it; a third of the nodes has none; loops and parallel edges stay."""
    r = random.Random(seed)
    os.mkdir(path)
    sizes, out = {"user": users, "item": items}, {}
    for name, src, dst, n in (("knows", "user", "user", edges), ("buys", "user", "item", edges // 2),
                              ("bought_by", "item", "user", edges // 3), ("never", "item", "user", 0)):
        some = lambda k: r.randrange(max(1, k * 2 // 3))
        pairs = [(some(sizes[src]), some(sizes[dst])) for _ in range(n)]
        if name == "knows":
            pairs += [(some(users), users // 2) for _ in range(hub)] + [(users // 2, some(users)) for _ in range(hub)]
            pairs += [(v, v) for v in range(min(users, n // 8))] + pairs[:n // 4] + [(d, s) for s, d in pairs[:n // 8]]
            r.shuffle(pairs)
        columns = {}
        if name in ("knows", "buys"):
            columns["w"] = column(path, name + "_w", "float", [r.random() for _ in pairs])
        out[name] = relation(path, name, src, dst, pairs, **columns)
    x = column(path, "x", "float", [r.choice((0, 0, 1, 2)) for _ in range(users * width)], width=width)
    z = column(path, "z", "float", [r.gauss(0, 1) for _ in range(items * 3)], width=3)
    y = column(path, "y", "class", [r.randrange(3) for _ in range(users)], categories=3)
    kind = column(path, "kind", "cat", [r.randrange(4) for _ in range(items)], categories=4)
    split = column(path, "split", "split", [1 if i % 10 < 6 else 2 if i % 10 < 8 else 3 for i in range(users)])
    write(path, {"user": {"count": users, "columns": {"x": x, "y": y, "split": split}},
                 "item": {"count": items, "columns": {"z": z, "kind": kind}}}, out)


MESSAGE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class Heard(Trainer):
    """A trainer whose messages are kept, and which may fail to load."""

    def __init__(self, lib, data, **options):
        self.lib, self.t, self.said = lib, ctypes.c_void_p(), []
        lib.gnnc_trainer_error.restype = ctypes.c_char_p
        lib.gnnc_trainer_steps_left.restype = ctypes.c_int64
        self.ok(lib.gnnc_trainer_create(ctypes.byref(self.t), ctypes.byref(ctypes.c_char.in_dll(lib, "model_program"))))
        self.hear = MESSAGE(lambda _, text: self.said.append(text.decode()))
        lib.gnnc_trainer_set_message(self.t, self.hear, None)
        for k, v in options.items():
            self.ok(lib.gnnc_trainer_set_int(self.t, k.encode(), ctypes.c_int64(v)))
        self.failed = lib.gnnc_trainer_load(self.t, data.encode())
        self.error = lib.gnnc_trainer_error(self.t).decode()

    def close(self):
        self.lib.gnnc_trainer_destroy(self.t)


def the_host_s_arrays(sim, data, seeds):
    want = trained(Trainer(sim, data, threads=1, device_maps=0), 2)
    for seed in seeds:
        sim.cudasim_seed(ctypes.c_uint64(seed))
        assert trained(Trainer(sim, data, threads=1, check_maps=1), 2) == want, data
    assert trained(Trainer(sim, data, threads=1), 2) == want, data


def ends_cross_once(sim, data):
    """Two arrays of a base relation and what the data's columns have, in place of every map."""
    sim.cudasim_count.restype = ctypes.POINTER(Counts)
    n, copies = sim.cudasim_count(), []
    for here in (0, 1):
        before = n.contents.host_to_device
        Trainer(sim, data, threads=1, device_maps=here).step()
        copies.append(n.contents.host_to_device - before)
    assert copies[1] < copies[0] - 8, copies


def without_memory(sim, data):
    """However much there is: the host goes on from where the device stopped; nothing stays behind."""
    sim.cudasim_live_bytes.restype = ctypes.c_int64
    want = trained(Trainer(sim, data, threads=1, device_maps=0))
    at_first, names = sim.cudasim_live_bytes(), set()
    most = (4 << 20) + (32 << 20)  # what kernels and cuBLAS may use: RT_DEVICE_ROOM_BYTES, RT_BLAS_WORKSPACE_BYTES
    for more in range(1 << 14, 1 << 20, 19000):
        sim.cudasim_memory(ctypes.c_int64(at_first + most + more))
        t = Heard(sim, data, threads=1)
        sim.cudasim_memory(ctypes.c_int64(-1))
        said = [s for s in t.said if s.startswith("maps:")]
        if t.failed:  # what the program needs in any case is too much
            assert t.failed == -1 and "out of memory" in t.error, t.error
        else:
            assert trained(t) == want
        if said:
            name, why = said[0][len("maps: '"):].split("': ")
            assert len(said) == 1 and why == "too little memory on the device; the host builds them", said
            names.add(name)
        t.close()
        assert sim.cudasim_live_bytes() == at_first
        if not said and not t.failed:
            break
    assert len(names) > 3 and not said, names


def what_fails_is_named(sim, data):
    """A launch that fails, and a copy that arrives with other values."""
    failed, differed = set(), set()
    for launch in range(0, 200, 7):
        sim.cudasim_break_launches(ctypes.c_int64(launch), 719)
        t = Heard(sim, data, threads=1)
        if "cuda: index arrays: " in t.error:  # not a kernel of the load phase
            assert t.failed == -13 and t.error.startswith("building '"), t.error
            failed.add(t.error.split("'")[1])
        t.close()
    sim.cudasim_break_launches(ctypes.c_int64(-1), 0)
    for copy in range(12):
        sim.cudasim_garble(ctypes.c_int64(copy))
        t = Heard(sim, data, threads=1, check_maps=1)
        if t.failed:
            assert t.failed == -12 and "on the device" in t.error, t.error
            differed.add(t.error.split("'")[1])
        t.close()
    sim.cudasim_garble(ctypes.c_int64(-1))
    assert "knows" in failed and len(failed) > 8 and len(differed) > 3, (failed, differed)


def main():
    build = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        sim = written(build, "odd", MODEL, "cuda", ["--disable-pass=assign-streams"])  # one stream: one RT_DEVICE_ROOM_BYTES
        # 300 nodes are two digits, 4000 edges several parts.
        for k, (users, items, edges, hub) in enumerate(((300, 90, 4000, 1200), (40, 300, 500, 0), (255, 256, 257, 30),
                                                        (1, 1, 20, 0), (5, 3, 0, 0), (700, 2, 60, 2000))):
            graph(f"odd{k}", k, users, items, edges, hub)
            the_host_s_arrays(sim, f"odd{k}", (1, 2, 3) if edges < 1000 else (1,))
        ends_cross_once(sim, "odd1")
        without_memory(sim, "odd1")
        what_fails_is_named(sim, "odd1")
        for name, more in (("drawn", ""), ("induced", "edges induced"), ("bidirectional", "edges bidirectional")):
            the_host_s_arrays(written(build, name, DRAWN % more, "cuda"), "odd1", (4,))


if __name__ == "__main__":
    main()
