#!/usr/bin/env python3
"""Links whose ends are embedded from a sampled neighbourhood.

    around.py GNNC     writes data of two node types and of a knowledge graph, and holds
                       - batches with all neighbours against steps over the whole graph,
                       - sampled ones against themselves: threads, workers, resumed runs, -O0,
                       - memory: nothing is allocated after the first epoch,
                       - links: that the edge itself is not seen,
                       - events: what is seen before each, in training, evaluation and prediction, against a count of
                         all; metrics that are no means, over whole splits
"""
import os
import random
import sys

from batches import Trainer, area, compiled, no_memory, same_everywhere, same_levels
from directory import column, relation, write

SHOP = """
import "layers/sage.gnn"
import "layers/links.gnn"

graph Shop {
  node user { x: f32[F] }
  node item { x: f32[G];  kind: cat[K] }
  edge likes: user -> item { w: f32;  split }
  edge knows: user -> user
}

model M(g: Shop; hidden: int = 8, p_drop: float = %s) -> f32[links] {
  p = links(g.likes)
  e = g.likes where in_split(g.likes, "train")
  back = reverse(g.likes)
  kinds = embedding(K, hidden)
  from_user = [i: sage_conv(hidden) for i in 0..2]
  from_item = [i: sage_conv(hidden) for i in 0..2]
  among = [i: sage_conv(hidden) for i in 0..2]
  u = g.user.x
  v = kinds(g.item.kind)
  for i in 0..2 {
    next = relu(dropout(from_item[i](back, v, u) + among[i](g.knows, u), p_drop))
    v = relu(from_user[i](e, u, v))
    u = next
  }
  return dot_score(p, u, v, hidden)
}

train M {
  target links   loss bpr   metric roc_auc, average_precision
  optimizer %s
  sample { %s batch 64  negatives 2  avoid true }
  epochs 40   keep last
}
"""

# Triples, told apart by relation and direction: the ends of a batch are of one type.
FACTS = """
import "layers/sage.gnn"
import "layers/links.gnn"

graph Facts {
  node entity { x: f32[F] }
  edge triple: entity -> entity { rel: cat[R];  split }
}

model M(g: Facts; hidden: int = 8) -> f32[links] {
  both = union(g.triple, reverse(g.triple))
  p = links(both, both.rel)
  conv = sage_conv(hidden)
  rels = embedding(R, hidden)
  h = conv(g.triple, g.entity.x)
  return contract(h[p.src] * rels(p.rel), h[p.dst], hidden)
}

train M {
  target links   loss logistic   metric mrr, hits(k = 3)
  optimizer %s
  sample { %s batch 50  negatives 3  corrupt side }
  epochs 40   keep last
}
"""


# A link's score is how many events its destination received before it, and 100 for each that this one sent to
# the source.  The loss and two metrics are means of that.
EVENTS = """
graph Mail {
  node person
  edge event: person -> person { t: time;  split }
  edge no_event: person -> person { split }
}

fn mean_of_links(pos: f32[P], neg: f32[P, K]) -> f32 minimize { return mean(pos) }
fn of_true(pred: f32[N, T], target: f32[N, T]) -> f32 { return sum(pred * target) / sum(target) }
fn of_false(pred: f32[N, T], target: f32[N, T]) -> f32 { return sum(pred * (1 - target)) / sum(1 - target) }

model Count(g: Mail) -> f32[links] {
  p = links(g.event, negatives = g.no_event)
  param own: f32 = 0
  r = reverse(g.event)
  now = max(max(p.t, over = p.src), max(p.t, over = p.dst))
  asks = min(sum(ones(p), over = p.src), 1)
  old = f32(now[g.event.dst] - g.event.t > 0)
  return sum(old, over = g.event.dst)[p.dst] + 100 * sum(asks[r.src], over = r.dst)[p.dst] + own
}

train Count {
  target links   loss mean_of_links   metric of_true, of_false, roc_auc
  optimizer sgd(lr = 1e-9)
  sample { fanout %s  batch 30  negatives 2  time g.event.t  %s }
  epochs 2   keep last
}
"""


# How many edges lead to a link's destination, and 1000 for each that comes from its source.
SEEN = """
graph People {
  node person
  edge knows: person -> person { split }
}

fn mean_of_links(pos: f32[P], neg: f32[P, K]) -> f32 minimize { return mean(pos) }
fn of_true(pred: f32[N, T], target: f32[N, T]) -> f32 { return sum(pred * target) / sum(target) }

model Seen(g: People) -> f32[links] {
  p = links(g.knows)
  param own: f32 = 0
  asks = min(sum(ones(p), over = p.src), 1)
  e = %s
  return sum(ones(e), over = e.dst)[p.dst] + 1000 * sum(asks[e.src], over = e.dst)[p.dst] + own
}

train Seen {
  target links   loss mean_of_links   metric of_true
  optimizer sgd(lr = 1e-9)
  sample { fanout [-1]  batch %d  %s }
  epochs 1   keep last
}
"""
ALONG = {"g.knows": lambda u, v: [(u, v)], "reverse(g.knows)": lambda u, v: [(v, u)],
         "undirected(g.knows)": lambda u, v: [(u, v), (v, u)]}


def features(r, path, name, n, width):
    return column(path, name, "float", [r.gauss(0, 1) for _ in range(n * width)], width=width)


def shop(path, users=900, items=300, n=2600):
    r = random.Random(5)
    os.mkdir(path)
    taste = [r.randrange(4) for _ in range(users)]
    likes = set()
    while len(likes) < n:
        u = int(users * r.random() ** 2)  # some like much
        i = r.randrange(items)
        if i % 4 == taste[u] or r.random() < 0.1:
            likes.add((u, i))
    likes = sorted(likes, key=lambda _: r.random())
    split = [r.choice((1, 1, 1, 1, 1, 1, 2, 3)) for _ in likes]
    split_of = column(path, "split", "split", split)
    w = column(path, "w", "float", [r.random() for _ in likes])
    kind = column(path, "kind", "cat", [i % 4 for i in range(items)], categories=4)
    knows = [(r.randrange(users), int(users * r.random() ** 2)) for _ in range(2000)]
    told = column(path, "ux", "float", [float(k == taste[u]) for u in range(users) for k in range(4)], width=4)
    write(path, {"user": {"count": users, "columns": {"x": told}},
                 "item": {"count": items, "columns": {"x": features(r, path, "ix", items, 3), "kind": kind}}},
          {"likes": relation(path, "likes", "user", "item", likes, split=split_of, w=w),
           "knows": relation(path, "knows", "user", "user", knows)})
    return split.count(1)


def facts(path, entities=200, relations=3, n=1200):
    r = random.Random(6)
    os.mkdir(path)
    ends = [(r.randrange(entities), int(entities * r.random() ** 2)) for _ in range(n)]
    split = [r.choice((1, 1, 1, 2, 3)) for _ in ends]
    split_of = column(path, "split", "split", split)
    rel = column(path, "rel", "cat", [r.randrange(relations) for _ in ends], categories=relations)
    write(path, {"entity": {"count": entities, "columns": {"x": features(r, path, "x", entities, 4)}}},
          {"triple": relation(path, "triple", "entity", "entity", ends, split=split_of, rel=rel)})
    return 2 * split.count(1)


def events(path, in_order, people=40, n=700):
    """As listed: ends, time, split, and for each held-out one the negative with the same source."""
    r = random.Random(7)
    os.mkdir(path)
    at = [float(r.randrange(200)) for _ in range(n)]
    at = sorted(at) if in_order else at
    found = [(int(people * r.random() ** 2), int(people * r.random() ** 2), t, 1 if t < 140 else 2 if t < 170 else 3)
             for t in at]
    none = [(u, r.randrange(people), t, s) for u, _, t, s in found if s > 1]
    write(path, {"person": {"count": people, "columns": {}}},
          {"event": relation(path, "event", "person", "person", found, t=column(path, "t", "time", at),
                             split=column(path, "split", "split", [e[3] for e in found])),
           "no_event": relation(path, "no_event", "person", "person", none,
                                split=column(path, "none_split", "split", [e[3] for e in none]))})
    return found, none


def counted(found, pairs, most, links=None):
    """The score of each.  Self loops and equal times count like any other.  links: whose trees these are, which see what
    happens at their time, too, but between their own ends."""
    scores = []
    for i, (u, v, t, _) in enumerate(pairs):
        before = [e for e in found if e[2] < t or (links and e[2] == t and {*e[:2]} != {*links[i][:2]})]
        received, sent = [e for e in before if e[1] == v], [e for e in before if e[0] == v]
        scores.append(min(most, len(received)) + (100 * sum(e[1] == u for e in sent) if most > 700 else 0))
    return scores


def judged_at_once(lib, name):
    """What is drawn for a link to be judged depends on the link alone: batches change neither metrics nor predictions."""
    small, large = Trainer(lib, name, threads=2, batch=7), Trainer(lib, name, threads=1, batch=1000)
    for t in (small, large):
        t.ok(t.lib.gnnc_trainer_evaluate(t.t))
    for metric in ("%s.%s" % (m, s) for m in ("of_true", "of_false", "roc_auc") for s in ("val", "test")):
        assert small.metric(metric) == large.metric(metric), (name, metric, small.metric(metric), large.metric(metric))
    assert small.values() == large.values()


def by_time(gnnc):
    every = compiled(gnnc, "every", EVENTS % ("[-1]", ""), "-O2")
    slow = compiled(gnnc, "every", EVENTS % ("[-1]", ""), "-O0")
    now = compiled(gnnc, "now", EVENTS.replace("t > 0", "t >= 0") % ("[-1]", "inclusive true"), "-O2")
    few = EVENTS.replace("100 * sum", "0 * sum") % ("[3]", "pick recent")
    newest = compiled(gnnc, "newest", few, "-O2")
    any_few = compiled(gnnc, "any_few", EVENTS % ("[3]", ""), "-O2")
    drawn = compiled(gnnc, "drawn_none", EVENTS.replace(", negatives = g.no_event", "") % ("[3]", ""), "-O2")
    for name, in_order in (("ordered", True), ("unordered", False)):
        found, none = events(name, in_order)
        for lib, most in ((every, 10 ** 6), (slow, 10 ** 6), (now, 10 ** 6), (newest, 3)):
            t = Trainer(lib, name, threads=2, check_times=1)
            t.epoch()
            for metric, pairs in (("loss", [e for e in found if e[3] == 1]),
                                  ("of_true.val", [e for e in found if e[3] == 2]),
                                  ("of_true.test", [e for e in found if e[3] == 3]),
                                  ("of_false.val", [e for e in none if e[3] == 2]),
                                  ("of_false.test", [e for e in none if e[3] == 3])):
                links = [e for e in found if e[3] == pairs[0][3]] if lib is now else None
                want, got = counted(found, pairs, most, links), t.metric(metric)
                want = sum(want) / len(want)
                assert abs(got - want) <= 1e-4 * max(1, want), (name, most, metric, got, want)
            for split, k in (("val", 2), ("test", 3)):
                links, others = [e for e in found if e[3] == k], [e for e in none if e[3] == k]
                scores = [counted(found, x, most, links if lib is now else None) for x in (links, others)]
                want = area(scores[0] + scores[1], [1] * len(links) + [0] * len(others))
                got = t.metric("roc_auc." + split)
                assert abs(got - want) < 1e-5, (name, most, split, got, want)
            edges = sorted(found, key=lambda e: e[1])
            got, want = t.values(), counted(found, edges, most, edges if lib is now else None)
            assert len(got) == len(want) and max(abs(a - b) for (a,), b in zip(got, want)) < 1e-3, (name, most)
        for lib in (every, any_few, drawn):
            judged_at_once(lib, name)
        n_train = sum(e[3] == 1 for e in found)
        same_everywhere(newest, name, left=(n_train + 29) // 30 - 7)


def people(path, n=40, m=260):
    """Some know each other, some themselves, some are told of twice."""
    r = random.Random(8)
    os.mkdir(path)
    ends = [(r.randrange(n), r.randrange(n)) for _ in range(m)]
    ends += [(v, u) for u, v in ends[:40]] + ends[40:60] + [(u, u) for u in range(3)]
    split = [r.choice((1, 1, 1, 2, 3)) for _ in ends]
    write(path, {"person": {"count": n, "columns": {}}},
          {"knows": relation(path, "knows", "person", "person", ends, split=column(path, "split", "split", split))})
    return ends, split


def not_told(gnnc):
    """What is to be told of a link is not among what is seen; all other edges are, and with `false` these, too."""
    ends, split = people("people")
    train = [e for e, s in zip(ends, split) if s == 1]
    for k, (along, of) in enumerate(ALONG.items()):
        edges = [x for u, v in ends for x in of(u, v)]
        edges = sorted(set(edges)) if len(of(0, 1)) == 2 else edges
        for i, (batch, how) in enumerate(((7, "negatives 1  disjoint true"), (10000, "negatives 1"),
                                          (7, "negatives 1  disjoint true  exclude_seed_edges false"))):
            told = {frozenset(e) for e in train} if batch == 10000 else set()
            sources = {u for u, _ in train} if batch == 10000 else set()
            total = 0
            for u, v in train:
                for a, b in edges:
                    hidden = "false" not in how and (frozenset((a, b)) == frozenset((u, v)) or frozenset((a, b)) in told)
                    total += (b == v and not hidden) * (1 + 1000 * (a == u or a in sources))
            t = Trainer(compiled(gnnc, "seen%d%d" % (k, i), SEEN % (along, batch, how), "-O2"), "people", threads=2)
            t.epoch()
            got, want = t.metric("loss"), total / len(train)
            assert abs(got - want) < 1e-4 * want, (along, how, got, want)


def as_whole(gnnc, name, text, data, metrics):
    """The same links and negatives: with all neighbours at hand, each step is that over the whole graph."""
    results = []
    for how, sample in (("whole", ""), ("around", "fanout [-1, -1]  exclude_seed_edges false  ")):
        lib = compiled(gnnc, "%s_%s" % (name, how), text(sample), "-O2")
        t = Trainer(lib, data, threads=2)
        for _ in range(3):
            t.epoch()
        results.append([t.metric(m) for m in metrics])
    for m, a, b in zip(metrics, *results):
        assert abs(a - b) <= 2e-4 * max(1, abs(a)), (name, m, a, b)


def main():
    gnnc = sys.argv[1]
    n_likes, n_facts = shop("likes"), facts("facts")
    as_whole(gnnc, "shop", lambda s: SHOP % ("0.0", "sgd(lr = 0.1)", s), "likes",
             ("loss", "roc_auc.val", "average_precision.test"))
    as_whole(gnnc, "facts", lambda s: FACTS % ("sgd(lr = 0.1)", s), "facts", ("loss", "mrr.val", "hits.test"))
    few = "fanout [4, 3]  weight g.likes.w  drop_last true "
    drawn = compiled(gnnc, "drawn", SHOP % ("0.1", "adam(lr = 1e-2)", few), "-O2")
    same_everywhere(drawn, "likes", left=n_likes // 64 - 7)
    # A quarter of the likes are against the user's taste, and a quarter of the negatives to it: nothing tells these
    # apart, so the loss has a floor.
    no_memory(drawn, "likes", 38, evaluates=True, falls=0.9)
    same_levels(drawn, compiled(gnnc, "drawn", SHOP % ("0.1", "adam(lr = 1e-2)", few), "-O0"), "likes", "roc_auc.val")
    for more in ("edges induced", "edges bidirectional", "disjoint true", "replace true"):
        lib = compiled(gnnc, more.split()[1] + more.split()[0], FACTS % ("adam(lr = 1e-2)", "fanout [3, 2]  %s " % more), "-O2")
        same_everywhere(lib, "facts", left=(n_facts + 49) // 50 - 7)
    by_time(gnnc)
    not_told(gnnc)
    print("around: all as defined")


if __name__ == "__main__":
    main()
