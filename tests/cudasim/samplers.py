#!/usr/bin/env python3
"""Batches that the device draws are the host's, array by array, whatever the graph and the order of threads.

    samplers.py BUILD    random graphs with hubs, loops, parallel edges, lonely nodes and an empty relation

`check_sampler` compares each batch with what the host draws from the same keys, and each index array that the device makes of it
with the host's; checkpoints and losses are then the same bits.  A step waits for nothing; what a device cannot draw is told and drawn by the host.
"""
import ctypes
import json
import math
import os
import random
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import around  # noqa: E402
from batches import Trainer  # noqa: E402
from directory import column, load, relation, write  # noqa: E402
from sim import Counts, counts, orders, written  # noqa: E402

MODEL = """
graph Odd {
  node user { x: f32[F];  y: class[C];  split }
  node item { x: f32[G];  kind: cat[K] }
  edge buys: user -> item { w: f32 }
  edge bought_by: item -> user
  edge knows: user -> user { w: f32 }
  edge never: item -> user
}

model M(g: Odd; hidden: int = 4) -> f32[user, C] {
  kinds = embedding(K, hidden)
  first = [t: linear(hidden) for t in g.nodes]
  out = linear(C)
  h = [t: relu(first[t](t.x)) for t in g.nodes]
  for i in 0..2 {
    h = [t: dropout(sum([mean(h[r.src][r.src], over = r.dst) for r in g.edges if r.dst == t]), 0.2) for t in g.nodes]
  }
  strong = g.knows where g.knows.w > 0.5
  near = sum(h[user][strong.src] * strong.w, over = strong.dst) + sum(kinds(g.item.kind)[g.bought_by.src], over = g.bought_by.dst)
  return out(h[user] + near)
}

train M {
  target user.y   loss cross_entropy   metric accuracy
  optimizer adam(lr = 1e-2)
  sample { fanout %s  batch %d  %s }
  epochs 3
}
"""

# One type and relation, prefixes of which the layers read: hop trimming.
PLAIN = """
import "layers/sage.gnn"

graph Odd {
  node user { x: f32[F];  y: class[C];  split }
  edge knows: user -> user { w: f32 }
}

model M(g: Odd; hidden: int = 4) -> f32[user, C] {
  a = sage_conv(hidden)
  b = sage_conv(hidden)
  c = sage_conv(C)
  return c(g.knows, relu(b(g.knows, relu(a(g.knows, g.user.x)))))
}

train M {
  target user.y   loss cross_entropy   metric accuracy
  optimizer adam(lr = 1e-2)
  sample { fanout %s  batch %d  %s }
  epochs 3
}
"""
# Rows and edges with times: of `bought_by` they ascend, of `knows` they do not, and users have their own, too.
TIMED = MODEL.replace("split }", "since: time;  split }").replace("edge bought_by: item -> user", "edge bought_by: item -> user { at: time }")
TIMED = TIMED.replace("-> user { w: f32 }", "-> user { w: f32;  at: time }").replace("kind: cat[K] }", "kind: cat[K];  made: time }")
# What users bought themselves is of any time, where they are seeds.
TIMED = TIMED.replace("  return out", "  own = reverse(g.buys)\n  near = near + sum(kinds(g.item.kind)[own.src], over = own.dst)\n  return out")

TIMES = "time user.since, item.made, knows.at, bought_by.at"

# As little as asks for what the device cannot draw.
SMALL = """
graph Odd {
  node user { x: f32[F];  y: class[C];  split }
  edge knows: user -> user { w: f32 }
}

model M(g: Odd) -> f32[user, C] {
  out = linear(C)
  return out(sum(g.user.x[g.knows.src], over = g.knows.dst))
}

train M {
  target user.y   loss cross_entropy   metric accuracy
  optimizer sgd(lr = 1e-2)
  sample { fanout %s  batch %d  %s }
  epochs 1
}
"""


def graph(path, users=160, items=90, knows=900):
    """Few nodes have most of the edges, one of them 700 of `knows`; a fifth has none; loops and parallel edges stay."""
    r = random.Random(3)
    os.mkdir(path)
    sizes = {"user": users, "item": items}
    edges = {}
    for name, src, dst, n in (("buys", "user", "item", 900), ("bought_by", "item", "user", 800), ("knows", "user", "user", knows),
                              ("never", "item", "user", 0)):
        some = lambda k: min(int(r.random() ** 2 * 0.8 * k), k - 1)
        pairs = [(some(sizes[src]), some(sizes[dst])) for _ in range(n)]
        if name == "knows":
            pairs += [(r.randrange(users), 7) for _ in range(700)] + [(v, v) for v in range(20)] + pairs[:40]
            r.shuffle(pairs)
        columns = {}
        if name in ("buys", "knows"):
            columns["w"] = column(path, name + "_w", "float", [r.choice((0, 0.1, r.random())) for _ in pairs])
        if name == "bought_by":
            columns["at"] = column(path, name + "_at", "time", [i / len(pairs) for i in range(len(pairs))])
        if name == "knows":  # unknown times, and equal ones
            columns["at"] = column(path, name + "_at", "time", [r.choice((math.nan, 0.25, r.random())) for _ in pairs])
        edges[name] = relation(path, name, src, dst, pairs, **columns)
    nodes = {"user": {"count": users, "columns": {
                 "x": column(path, "ux", "float", [r.gauss(0, 1) for _ in range(users * 5)], width=5),
                 "since": column(path, "since", "time", [r.random() for _ in range(users)])}},
             "item": {"count": items, "columns": {
                 "x": column(path, "ix", "float", [r.gauss(0, 1) for _ in range(items * 3)], width=3),
                 "made": column(path, "made", "time", [r.choice((0.3, 2 * r.random())) for _ in range(items)])}}}
    nodes["user"]["columns"].update(
        y=column(path, "y", "class", [r.randrange(3) for _ in range(users)], categories=3),
        split=column(path, "split", "split", [1 if i < 100 else 2 if i < 130 else 3 for i in range(users)]))
    nodes["item"]["columns"]["kind"] = column(path, "kind", "cat", [r.randrange(4) for _ in range(items)], categories=4)
    write(path, nodes, edges)


def trained(t, epochs=1):
    """The checkpoint's bits after each epoch, which nobody evaluates."""
    saved = []
    for _ in range(epochs):
        for _ in range(t.left()):
            t.step()
        saved.append(t.save("trained"))
    return saved


def curve(lib, data, epochs=1, **options):
    return trained(Trainer(lib, data, threads=2, **options), epochs)


def the_host_s_batches(sim, data, buckets, timed, some):
    """Checked one by one, of the first cases by different orders of threads and streams; then unchecked, and in sizes of their own."""
    want = curve(sim, data, 2)
    for seed, _ in enumerate(orders(sim, some)):
        sim.cudasim_seed(ctypes.c_uint64(seed))
        epochs = 2 if seed == 0 else 1
        assert curve(sim, data, epochs, device_sampler=1, check_sampler=1, check_times=timed) == want[:epochs]
    for _ in orders(sim, 2) if buckets else ():
        assert curve(sim, data, 2, device_sampler=1) == want
        assert curve(sim, data, 2, device_sampler=1, buckets=0) == curve(sim, data, 2, buckets=0)


def judged(lib, data, metrics, **options):
    """The metrics of held-out rows or links, and what each row or edge is predicted; and the launches that metrics took."""
    t = Trainer(lib, data, threads=2, **options)
    before = counts(lib)["launches"]
    t.ok(lib.gnnc_trainer_evaluate(t.t))
    launches = counts(lib)["launches"] - before
    return [t.metric(m + "." + s) for m in metrics for s in ("val", "test")] + t.values(), launches


def the_host_s_predictions(sim, data, metrics, some=1):
    """Of batches that are drawn for rows or links at their times."""
    want, launches = judged(sim, data, metrics)
    assert len(want) > 2 * len(metrics)
    for _ in orders(sim, some):
        got, more = judged(sim, data, metrics, device_sampler=1, check_sampler=1)
        assert got == want and more > launches + 10, (launches, more)
    assert judged(sim, data, metrics, device_sampler=1)[0] == want


def the_host_s_negatives(sim, data, metrics, k=2):
    """Of held-out links, k negatives each, in launches of 64 pairs and those of one link (the Makefile's RT_CUDA_PAIRS)."""
    splits, at_once = load(data + "/split.npy"), 64 // (1 + k) + 1
    wanted = sum(-(-splits.count(s) // at_once) for s in (2, 3))
    assert wanted > 2 and any(splits.count(s) % at_once for s in (2, 3))
    want, launches = judged(sim, data, metrics, workers=0)
    for check in (1, 0):
        got, more = judged(sim, data, metrics, workers=0, device_sampler=1, check_sampler=check)
        assert got == want and more == launches + wanted, (launches, more, wanted)


def a_launch_that_fails(sim, data):
    """Out of memory where the heaviest batches are tried is no error, another one ends an epoch; whatever follows is drawn as ever."""
    want = []
    t = Trainer(sim, data, threads=2, device_sampler=1, workers=1)
    for _ in range(2):
        t.epoch()
        want.append(t.metric("loss"))
    for at, how in ((3, 2), (12, 2), (30, 2), (12, 719)):
        t = Trainer(sim, data, threads=2, device_sampler=1, workers=1)
        sim.cudasim_break_launches(ctypes.c_int64(at), how)
        losses, failures = [], 0
        while len(losses) < 2:
            try:
                t.epoch()
                losses.append(t.metric("loss"))
            except (AssertionError, RuntimeError):
                failures += 1
                assert failures == 1
        assert losses == want and failures == (how != 2), (at, how, losses, want, failures)


def the_host_s_losses(sim, data):
    losses = []
    for on_device in (0, 1):
        t = Trainer(sim, data, threads=2, device_sampler=on_device)
        for _ in range(2):
            t.epoch()
            losses.append((t.metric("loss"), t.metric("loss.val")))
    assert losses[:2] == losses[2:], losses


def a_step_waits_for_nothing(sim, data):
    """Its thread queues the step and no more; nobody allocates; the worker's copies are its own."""
    for f in (sim.cudasim_count, sim.cudasim_count_here):
        f.restype = ctypes.POINTER(Counts)
    all_, here = sim.cudasim_count(), sim.cudasim_count_here()
    t = Trainer(sim, data, threads=2, device_sampler=1)
    for _ in range(2):
        t.epoch()
    value = lambda n: {k: getattr(n.contents, k) for k, _ in Counts._fields_}
    first, first_here = value(all_), value(here)
    steps = t.left()
    for _ in range(steps):
        t.step()
    now = {k: v - first[k] for k, v in value(all_).items()}
    mine = {k: v - first_here[k] for k, v in value(here).items()}
    assert mine["synchronisations"] == mine["device_to_host"] == mine["allocations"] == 0, mine
    assert mine["host_to_device"] == 2 * steps, mine
    assert now["synchronisations"] == now["allocations"] == 0, now
    # the sizes and the nodes' rows of each batch come back, and no edges; two are made ahead
    assert 2 * (steps - 2) <= now["device_to_host"] <= 2 * (steps + 2), (now, steps)


def the_graph_is_there_once(sim, data):
    """Who draws reads the arrays that the maps have there, whoever built them: what the host alone built of a relation and no
    buffer has, its logical ids, is one copy more."""
    sim.cudasim_count_here.restype = ctypes.POINTER(Counts)
    sim.gnnc_trainer_device_bytes.restype = ctypes.c_int64
    n = sim.cudasim_count_here()  # not what the worker does
    with open(data + "/schema.json", encoding="utf-8") as f:
        edges = json.load(f)["edges"]["knows"]["count"]
    for maps in (0, 1):
        copies, room = [], []
        for on_device in (0, 1):
            before = n.contents.host_to_device
            t = Trainer(sim, data, threads=1, device_maps=maps, device_sampler=on_device)
            copies.append(n.contents.host_to_device - before)
            t.step()
            room.append(sim.gnnc_trainer_device_bytes(t.t))
        assert copies[1] - copies[0] == (0 if maps else 1), (maps, copies)
        assert room[1] - room[0] < 5 * edges, (maps, room, edges)  # 4 of them logical ids


def resumed_in_mid_epoch(sim, data):
    """What one side's batches began the other's end."""
    t = Trainer(sim, data, threads=2, device_sampler=1)
    for _ in range(t.left() // 2):
        t.step()
    t.save("part")
    ends = []
    for on_device in (0, 1):
        u = Trainer(sim, data, threads=2, device_sampler=on_device)
        u.resume("part")
        u.epoch()
        ends.append(u.save("whole"))
    assert ends[0] == ends[1]


MESSAGE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


def heard(lib, data, **options):
    """A trainer, and the lines that loading says."""
    said = []
    hear = MESSAGE(lambda _, text: said.append(text.decode()))
    t = Trainer.__new__(Trainer)
    t.lib, t.t, t.hear = lib, ctypes.c_void_p(), hear
    t.ok(lib.gnnc_trainer_create(ctypes.byref(t.t), ctypes.byref(ctypes.c_char.in_dll(lib, "model_program"))))
    lib.gnnc_trainer_set_message(t.t, hear, None)
    for option, value in options.items():
        t.ok(lib.gnnc_trainer_set_int(t.t, option.encode(), ctypes.c_int64(value)))
    if lib.gnnc_trainer_load(t.t, data.encode()):
        text = lib.gnnc_trainer_error(t.t)
        lib.gnnc_trainer_destroy(t.t)
        raise AssertionError(text)
    return t, [s for s in said if s.startswith(("sampler:", "batches:"))]


def what_it_cannot(lib, data, why):
    """Told once, and drawn by the host."""
    want = curve(lib, data)
    t, said = heard(lib, data, device_sampler=1, check_sampler=1)
    assert said == [f"sampler: {why}; the host draws"], said
    assert trained(t) == want


def where_memory_ends(sim, data, metrics, *lines, step=4096):
    """What each of the lines names is done by the host, to the same bits, after that line, if the device has no memory for it."""
    want, _ = judged(sim, data, metrics)
    sim.cudasim_live_bytes.restype = ctypes.c_int64
    t, said = heard(sim, data, device_sampler=1, threads=2)
    assert not said
    full, left = sim.cudasim_live_bytes(), set(lines)
    sim.gnnc_trainer_destroy(t.t)
    for less in range(1, 1 << 20, step):  # until what is made after that sampler has room
        sim.cudasim_memory(ctypes.c_int64(full - less))
        try:
            t, said = heard(sim, data, device_sampler=1, threads=2)
        except AssertionError:
            continue
        finally:
            sim.cudasim_memory(ctypes.c_int64(-1))
        found = {line for line in left if any(line in s and "; the host " in s for s in said)}
        if found:
            t.ok(sim.gnnc_trainer_evaluate(t.t))
            assert [t.metric(m + "." + s) for m in metrics for s in ("val", "test")] + t.values() == want
        sim.gnnc_trainer_destroy(t.t)
        left -= found
        if not left:
            return
    assert not left, left


def with_times(data, people, found, none):
    """People are there from their first event on."""
    first = [min([e[2] for e in found + none if v in e[:2]], default=150.0) for v in range(people)]
    since = column(data, "since", "time", first)
    with open(data + "/schema.json", encoding="utf-8") as f:
        schema = json.load(f)
    schema["nodes"]["person"]["columns"]["since"] = since
    with open(data + "/schema.json", "w", encoding="utf-8") as f:
        json.dump(schema, f)


def links_around(build):
    """Ends of two types and of one; negatives at either end, or both, that are no edges; links that are not seen, in trees or
    not, by time and by weight; queries by time."""
    adam, near = "adam(lr = 1e-2)", "fanout [likes: [4, 3], reverse(likes): [4, 3], knows: [4, 3]]  weight g.likes.w "
    around.shop("likes", 120, 50, 400)
    around.facts("facts", 24, 2, 260)
    for data, in_order in (("mail", True), ("mixed", False)):
        with_times(data, 30, *around.events(data, in_order, 30, 300))
    facts = around.FACTS.replace("h = conv(g.triple", "h = conv(both")
    for name, data, text in (
            ("pairs", "likes", around.SHOP % ("0.2", adam, near)),
            ("triples", "facts", facts.replace("corrupt side", "corrupt both  avoid true") % (adam, "fanout [5]  disjoint true ")),
            ("heads", "facts", facts.replace("corrupt side", "corrupt head  avoid true") % (adam, "fanout [-1] "))):
        sim = written(build, name, text, "cuda")
        the_host_s_batches(sim, data, False, 0, 2 if name == "pairs" else 1)
        if name == "pairs":
            ranked = ("roc_auc", "average_precision")
            the_host_s_negatives(sim, data, ranked)
            where_memory_ends(sim, data, ranked, "sampler: negatives of held-out links: ", step=768)  # they have little
    past = around.EVENTS.replace("100 * sum", "0 * sum").replace("node person", "node person { since: time }")
    past = past.replace("time g.event.t", "time g.event.t, g.person.since")
    metrics = ("of_true", "of_false", "roc_auc")
    sim = written(build, "past", past % ("[3, 2]", "inclusive true  pick recent"), "cuda")
    for data in ("mail", "mixed"):
        the_host_s_batches(sim, data, False, 1, 1)
    the_host_s_predictions(sim, "mixed", metrics)
    where_memory_ends(sim, "mail", metrics, "batches: of links that are judged", "batches of links that are judged")
    drawn = past.replace(", negatives = g.no_event", "") % ("[3, 2]", "inclusive true  pick recent")
    the_host_s_predictions(written(build, "drawn", drawn, "cuda"), "mixed", metrics)


def main():
    build = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        graph("odd")
        cases = (  # within a warp, all of them, none; more than a warp's, by Floyd's algorithm, in order; with replacement
            ("many", MODEL, "[buys: [40, 2], bought_by: [-1, 33], knows: [600, 5], never: [0, 1]]", 24, "drop_last true"),
            ("again", MODEL, "[buys: [3, 40], bought_by: [32, 33], knows: [7, -1], never: [2, 2]]", 16, "replace true"),
            ("plain", PLAIN, "[4, -1, 3]", 20, ""),
            # a tree for each seed: of all edges, too
            ("trees", MODEL, "[buys: [4, 40], bought_by: [-1, 3], knows: [5, 2], never: [0, 1]]", 16, "disjoint true"),
            # fewer than a warp's, all, more; of edges some of which have no weight
            ("weighed", MODEL, "[buys: [3, 50], bought_by: [4, 2], knows: [40, 3], never: [2, 2]]", 16, "weight knows.w, buys.w"),
            ("again_by_weight", MODEL, "[buys: [3, 50], bought_by: [4, 2], knows: [40, -1], never: [2, 2]]", 8,
             "weight knows.w, buys.w  replace true"),
            # known edges alone, by search, of `buys` in the order of their sources' times, and by looking; the newest; some by weight
            ("timed", TIMED, "[buys: [3, 40], bought_by: [4, 33], knows: [40, -1], never: [2, 2]]", 16, TIMES),
            ("timed_again", TIMED, "[buys: [3, 2], bought_by: [40, 3], knows: [35, 3], never: [2, 2]]", 8, TIMES + "  replace true  own true"),
            ("recent", TIMED, "[buys: [20, -1], bought_by: [4, 33], knows: [40, 5], never: [2, -1]]", 16,
             TIMES + "  pick recent  inclusive true  own true"),
            ("timed_by_weight", TIMED, "[buys: [3, 20], bought_by: [4, 3], knows: [40, 6], never: [2, 2]]", 16,
             TIMES + "  weight knows.w, buys.w"))
        for name, text, fanout, batch, more in cases:
            sim = written(build, name, text % (fanout, batch, more), "cuda")
            some = {"plain": 4, "many": 2, "trees": 2, "weighed": 2, "timed": 2}.get(name, 1)
            the_host_s_batches(sim, "odd", name == "plain", int(TIMES in more), some)
            for maps in (0, 1) if name == "plain" else ():
                assert curve(sim, "odd", device_sampler=1, check_sampler=1, device_maps=maps) == curve(sim, "odd")
            if name == "recent":
                the_host_s_predictions(sim, "odd", ("accuracy", "loss"))
            if name in ("plain", "trees"):
                a_launch_that_fails(sim, "odd")
            for _ in orders(sim, 2) if name == "plain" else ():
                a_step_waits_for_nothing(sim, "odd")
                the_host_s_losses(sim, "odd")
                resumed_in_mid_epoch(sim, "odd")
        graph("wide", knows=60000)
        few = written(build, "few", PLAIN % ("[2]", 8, ""), "cuda")
        for _ in orders(few, 2):
            the_graph_is_there_once(few, "wide")
        what_it_cannot(written(build, "induced", SMALL % ("[2]", 32, "edges induced"), "cuda"), "odd",
                       "batches have more edges than were drawn")
        links_around(build)


if __name__ == "__main__":
    main()
