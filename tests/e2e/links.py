#!/usr/bin/env python3
"""Models that score links, against plain definitions in double precision.

    links.py GNNC     writes small data, compiles a model for each decoder and loss, and holds
                      - one step of gradient descent against finite differences of the loss,
                      - ranks and metrics against a ranking of all nodes, ties and all,
                      - batches, threads and resumed runs against each other.
"""
import array
import json
import math
import os
import random
import struct
import subprocess
import sys

from directory import save

GNNC = os.path.abspath(sys.argv[1])
N, R, D = 9, 3, 4  # entities, relations, width

KG = """
import "layers/links.gnn"
graph Facts {
  node entity
  edge triple: entity -> entity { rel: cat[R];  split }
}
model M(g: Facts; dim: int = %d) -> f32[links] {
  both = union(g.triple, reverse(g.triple))
  p = links(both, both.rel)
  back = carry(carry(zeros(g.triple), both, fill = 1), p)
  decode = %s
  return decode(p, p.rel, back)
}
train M {
  target links   loss %s   metric mrr, hits(k = 3), recall(k = 3), ndcg(k = 3)
  optimizer sgd(lr = 1)
  sample { batch %d }
  epochs 1   keep last
}
"""

SHOP = """
import "layers/links.gnn"
graph Shop {
  node user
  node item
  edge buys: user -> item { split }
  edge never: user -> item { split }
}
model M(g: Shop; dim: int = 4) -> f32[links] {
  p = links(g.buys, negatives = g.never)
  param u: f32[user, dim] = normal(0, 0.5)
  param v: f32[item, dim] = normal(0, 0.5)
  %s
  return dot_score(p, u, v, dim)
}
train M {
  target links   loss %s   metric roc_auc, average_precision
  optimizer sgd(lr = 1)
  sample { batch 1000  negatives 2  avoid true }
  epochs 1   keep last
}
"""


# What a user will buy again: what was bought before, newer first, beside a number for each item.
AGAIN = """
import "layers/links.gnn"
graph Shop {
  node user
  node item { name: cat[K];  since: time }
  edge buys: user -> item { t: time;  split }
}
model M(g: Shop) -> f32[links] {
  p = links(g.buys)
  param w: f32[K] = uniform(0, 1)
  e = g.buys
  now = max(p.t, over = p.dst)
  asks = min(sum(ones(p), over = p.src), 1)
  again = sum(asks[e.src] * exp(f32(e.t - now[e.dst]) / 10), over = e.dst)
  return again[p.dst] + w[g.item.name][p.dst]
}
train M {
  target links   loss sampled_softmax   metric map, precision, recall(k = 10), mrr
  optimizer sgd(lr = 1)
  sample { batch 5  negatives 3  avoid true  fanout [-1]  time g.buys.t, g.item.since }
  epochs 1   keep best on val map
}
"""


def edges(path, name, src, dst, ends, split, **cats):
    save("%s/%s.npy" % (path, name), "i", "<i4", (2, len(ends)), [e[0] for e in ends] + [e[1] for e in ends])
    save("%s/%s_split.npy" % (path, name), "b", "|i1", (len(ends),), split)
    columns = {"split": {"kind": "split", "file": name + "_split.npy"}}
    for c, (values, k) in cats.items():
        save("%s/%s_%s.npy" % (path, name, c), "i", "<i4", (len(values),), values)
        columns[c] = {"kind": "cat", "categories": k, "file": "%s_%s.npy" % (name, c)}
    return {"src": src, "dst": dst, "count": len(ends), "file": name + ".npy", "columns": columns}


def write(path, nodes, relations):
    json.dump({"format": 1, "nodes": {n: {"count": k, "columns": {}} for n, k in nodes.items()},
               "edges": relations, "graphs": {}}, open(path + "/schema.json", "w"))


def facts(path):
    r = random.Random(3)
    os.mkdir(path)
    triples = sorted({(r.randrange(N), r.randrange(R), r.randrange(N)) for _ in range(60)})
    r.shuffle(triples)
    split = [1 if i < len(triples) * 0.6 else 2 + i % 2 for i in range(len(triples))]
    write(path, {"entity": N}, {"triple": edges(path, "triple", "entity", "entity", [(h, t) for h, _, t in triples],
                                                split, rel=([q for _, q, _ in triples], R))})
    return triples, split


def shop(path, held=(2, 2, 3, 3), first=1):
    """Two items, so that a user's only negative that is no purchase is the other one."""
    os.mkdir(path)
    buys = [(u, u % 2) for u in range(10)]
    never = [(u, 1 - u % 2) for u in range(10)]
    split = [first] * 6 + list(held)
    write(path, {"user": 10, "item": 2}, {"buys": edges(path, "buys", "user", "item", buys, split),
                                          "never": edges(path, "never", "user", "item", never, split)})
    return buys, split


def tensors(path):
    """Of a safetensors file, as flat lists."""
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + n])
    out = {}
    for name, t in head.items():
        if name == "__metadata__" or t["dtype"] != "F32":
            continue
        a, b = t["data_offsets"]
        out[name] = list(array.array("f", raw[8 + n + a:8 + n + b]))
    return out


def build(name, text):
    open(name + ".gnn", "w").write(text)
    subprocess.run([GNNC, name + ".gnn", "-o", name], check=True)
    return "./" + name


def run(exe, *args):
    out = subprocess.run([exe, *args, "--log=json", "--no-tuned"], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.strip().splitlines()]


# ---- plain definitions ---------------------------------------------------------------------------------
def row(p, name, i):
    return p[name][i * D:(i + 1) * D]


def distmult(p, h, r, back, t, reciprocal):
    w = row(p, "decode.inv_emb.weight" if back and reciprocal else "decode.rel_emb.weight", r)
    return sum(a * b * c for a, b, c in zip(row(p, "decode.node_emb.weight", h), w, row(p, "decode.node_emb.weight", t)))


def complex_(p, h, r, back, t, reciprocal):
    kind = "inv_emb" if back and reciprocal else "rel_emb"
    sign = -1 if back and not reciprocal else 1
    total = 0
    for i in range(D):
        z = [complex(row(p, "decode.node_emb.weight", v)[i], row(p, "decode.node_emb_im.weight", v)[i]) for v in (h, t)]
        w = complex(row(p, "decode.%s.weight" % kind, r)[i], sign * row(p, "decode.%s_im.weight" % kind, r)[i])
        total += (z[0] * w * z[1].conjugate()).real
    return total


def transe(p, h, r, back, t, norm):
    d = [a + (-b if back else b) - c for a, b, c in zip(row(p, "decode.node_emb.weight", h),
                                                        row(p, "decode.rel_emb.weight", r),
                                                        row(p, "decode.node_emb.weight", t))]
    return -sum(map(abs, d)) if norm == 1 else -math.sqrt(max(sum(x * x for x in d), 1e-12))


def rotate(p, h, r, back, t):
    total = 0
    for i in range(D):
        z = [complex(row(p, "decode.node_emb.weight", v)[i], row(p, "decode.node_emb_im.weight", v)[i]) for v in (h, t)]
        angle = row(p, "decode.rel_emb.weight", r)[i] * (-1 if back else 1)
        total += math.sqrt(abs(z[0] * complex(math.cos(angle), math.sin(angle)) - z[1]) ** 2 + 1e-12)
    return -total


def directed(triples):
    return [(h, r, 0, t) for h, r, t in triples] + [(t, r, 1, h) for h, r, t in triples]


def softplus(x):
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


def queries_of(links):
    out = {}
    for h, r, b, t in links:
        out.setdefault((h, r, b), []).append(t)
    return out


def one_vs_all(score, links, eps):
    total = n = 0
    for q, answers in queries_of(links).items():
        s = [score(*q, t) for t in range(N)]
        lse = math.log(sum(map(math.exp, s)))
        for t in answers:
            total += lse - (1 - eps) * s[t] - eps * sum(s) / N
            n += 1
    return total / n


def k_vs_all(score, links, eps):
    q = queries_of(links)
    total = 0
    for ask, answers in q.items():
        for t in range(N):
            s = score(*ask, t)
            total += softplus(s) - s * ((1 - eps) * (t in answers) + eps / N)
    return total / (len(q) * N)


def n3(p, links, moduli):
    total = 0
    for h, r, b, t in links:
        for rows in moduli(p, h, r, b, t):
            total += sum(abs(z) ** 3 for z in rows)
    return total / len(links)


def complex_rows(p, h, r, b, t):
    e, w = "decode.node_emb", "decode.inv_emb" if b else "decode.rel_emb"
    return [[complex(x, y) for x, y in zip(row(p, k + ".weight", i), row(p, k + "_im.weight", i))]
            for k, i in ((e, h), (w, r), (e, t))]


def metrics(score, triples, split, which):
    """Filtered ranks, ties by their mean; recall and NDCG beside the edges of earlier splits only."""
    links = list(zip(directed(triples), split + split))
    known = {}
    for (h, r, b, t), s in links:
        known.setdefault((h, r, b), {}).setdefault(t, []).append(s)
    mrr, hits, per_query = [], [], {}
    for (h, r, b, t), s in links:
        if s != which:
            continue
        own = score(h, r, b, t)
        rank = {}
        for name, last in (("rank", 3), ("place", which - 1)):
            others = [score(h, r, b, v) for v in range(N)
                      if v != t and not any(x <= last for x in known[h, r, b].get(v, []))]
            rank[name] = 1 + sum(x > own + 1e-6 for x in others) + 0.5 * sum(abs(x - own) <= 1e-6 for x in others)
        mrr.append(1 / rank["rank"])
        hits.append(rank["rank"] <= 3)
        per_query.setdefault((h, r, b), []).append(rank["place"])
    recall = [sum(x <= 3 for x in q) / len(q) for q in per_query.values()]
    ndcg = [sum(1 / math.log2(1 + x) for x in q if x <= 3) / sum(1 / math.log2(i + 2) for i in range(min(3, len(q))))
            for q in per_query.values()]
    return {"mrr": sum(mrr) / len(mrr), "hits": sum(hits) / len(hits), "recall": sum(recall) / len(recall),
            "ndcg": sum(ndcg) / len(ndcg)}


def by_query(score, since, bought, which):
    """Of each user at a time: all items that are there then, ranked."""
    found, n = {"map": 0, "precision": 0, "recall": 0, "mrr": 0}, 0
    asked, ranks = {}, []
    for u, v, t, s in bought:
        if s == which:
            asked.setdefault((u, t), set()).add(v)
    for (u, t), answers in asked.items():
        x = [score(u, v, t) if since[v] <= t else -math.inf for v in range(len(since))]
        best = sorted(range(len(x)), key=lambda v: -x[v])
        hit = [v in answers for v in best[:10]]
        found["map"] += sum(sum(hit[:i + 1]) / (i + 1) for i in range(10) if hit[i]) / min(10, len(answers))
        found["precision"] += sum(hit) / 10
        found["recall"] += sum(hit) / len(answers)
        ranks += [1 + sum(x[w] > x[v] for w in range(len(x)) if w not in answers) for v in answers]
    mean = {k: v / len(asked) for k, v in found.items()}
    return {**mean, "mrr": sum(1 / r for r in ranks) / len(ranks)}


# ---- checks ----------------------------------------------------------------------------------------------
def near(got, want, tolerance, what):
    assert abs(got - want) <= tolerance * max(1, abs(want)), "%s: %.6f, expected %.6f" % (what, got, want)


def check_step(name, before, after, loss):
    """after = before - gradient, of every parameter."""
    h = 1e-5
    for key, values in before.items():
        for i, x in enumerate(values):
            values[i] = x + h
            up = loss(before)
            values[i] = x - h
            down = loss(before)
            values[i] = x
            near(x - after[key][i], (up - down) / (2 * h), 2e-3, "%s: gradient of %s[%d]" % (name, key, i))


def check_facts(name, decode, loss, score, reference):
    triples, split = FACTS
    exe = build(name, KG % (D, decode, loss, 1000))
    run(exe, "--data", "facts", "--epochs", "0", "--checkpoint", "before")
    lines = run(exe, "--data", "facts", "--checkpoint", "after")
    before, after = tensors("before"), tensors("after")
    before = {k: v for k, v in before.items() if k.startswith("decode.")}
    train = [t for t, s in zip(directed(triples), split + split) if s == 1]
    near(lines[0]["loss"], reference(before, train), 1e-4, name + ": loss")
    check_step(name, before, after, lambda p: reference(p, train))
    for which, word in ((2, "val"), (3, "test")):
        want = metrics(lambda *a: score(after, *a), triples, split, which)
        for k, v in want.items():
            near(lines[0][word][k], v, 1e-4, "%s: %s %s" % (name, word, k))
    small = run(exe, "--data", "facts", "--batch", "3", "--epochs", "2", "--threads", "2", "--checkpoint", "small")
    again = run(exe, "--data", "facts", "--batch", "3", "--epochs", "2", "--threads", "1", "--workers", "0",
                "--checkpoint", "again")
    assert open("small", "rb").read() == open("again", "rb").read(), name + ": threads change results"
    assert small[-1]["test"] == again[-1]["test"]
    p = tensors("small")
    for k, v in metrics(lambda *a: score(p, *a), triples, split, 3).items():
        near(small[-1]["test"][k], v, 1e-4, "%s in batches: %s" % (name, k))


def check_facts_all():
    for reciprocal in (True, False):
        flag = "reciprocal = %s" % str(reciprocal).lower()
        score = lambda p, h, r, b, t, f=reciprocal: distmult(p, h, r, b, t, f)
        check_facts("distmult", "distmult_links(R, dim, %s)" % flag, "one_vs_all", score,
                    lambda p, links: one_vs_all(lambda *a: score(p, *a), links, 0))
        score = lambda p, h, r, b, t, f=reciprocal: complex_(p, h, r, b, t, f)
        check_facts("complex", "complex_links(R, dim, %s)" % flag, "k_vs_all(smoothing = 0.1)", score,
                    lambda p, links: k_vs_all(lambda *a: score(p, *a), links, 0.1))
    check_facts("n3", "complex_links(R, dim, n3 = 0.1)", "one_vs_all(smoothing = 0.2)",
                lambda p, *a: complex_(p, *a, True),
                lambda p, links: one_vs_all(lambda *a: complex_(p, *a, True), links, 0.2) +
                0.1 * n3(p, links, complex_rows))
    for norm in (1, 2):
        check_facts("transe", "transe_links(R, dim, norm = %d)" % norm, "one_vs_all",
                    lambda p, *a, n=norm: transe(p, *a, n),
                    lambda p, links, n=norm: one_vs_all(lambda *a: transe(p, *a, n), links, 0))
    check_facts("rotate", "rotate_links(R, dim)", "k_vs_all", rotate,
                lambda p, links: k_vs_all(lambda *a: rotate(p, *a), links, 0))


def check_shop():
    """Every negative is known, so the loss is, too."""
    buys, split = shop("shop")
    dot = lambda p, u, v: sum(a * b for a, b in zip(row(p, "u", u), row(p, "v", v)))
    softmax = lambda pos, neg: math.log(math.exp(pos) + 2 * math.exp(neg)) - pos
    losses = {"bpr": lambda pos, neg: softplus(neg - pos),
              "margin_ranking(margin = 0.7)": lambda pos, neg: max(neg - pos + 0.7, 0),
              "logistic": lambda pos, neg: softplus(-pos) + softplus(neg),
              "self_adversarial(margin = 0.5)": lambda pos, neg: (softplus(-pos - 0.5) + softplus(neg + 0.5)) / 2,
              "sampled_softmax": softmax,
              "bce_with_logits": lambda pos, neg: (softplus(-pos) + 2 * softplus(neg)) / 3,
              "2 * bpr": lambda pos, neg: 2 * softplus(neg - pos)}
    for loss, of in losses.items():
        exe = build("shop_model", SHOP % ("penalty(0.1 * mean(u[p.src] * u[p.src]))", loss))
        run(exe, "--data", "shop", "--epochs", "0", "--checkpoint", "before")
        lines = run(exe, "--data", "shop", "--checkpoint", "after")
        before, after = tensors("before"), tensors("after")
        before = {k: before[k] for k in ("u", "v")}
        train = [e for e, s in zip(buys, split) if s == 1]
        # The links and two negatives of each read a user's row.
        reference = lambda p: sum(of(dot(p, u, v), dot(p, u, 1 - v)) +
                                  0.1 * sum(x * x for x in row(p, "u", u)) / D for u, v in train) / len(train)
        near(lines[0]["loss"], reference(before), 1e-4, loss)
        check_step(loss, before, after, reference)
        for which, word in ((2, "val"), (3, "test")):
            held = [e for e, s in zip(buys, split) if s == which]
            pairs = [(dot(after, u, v), dot(after, x, 1 - y)) for u, v in held for x, y in held]
            auc = sum((a > b) + 0.5 * (a == b) for a, b in pairs) / len(pairs)
            near(lines[0][word]["roc_auc"], auc, 1e-4, loss + ": ROC-AUC")


def check_ranks_by_time():
    """A user is a query anew at each time, and all items that are there are ranked by what was known before."""
    draw, users, items = random.Random(5), 6, 1100  # more than share a tree
    since = [draw.randrange(0, 60) for _ in range(items)]
    bought = [(u, v, 10.0 * t, 1 if t < 7 else 2 if t < 9 else 3) for t in range(10) for u in range(users) if draw.random() < 0.6
              for v in draw.sample(range(u, u + 12), 4)]
    os.mkdir("asked")
    relation = edges("asked", "buys", "user", "item", [b[:2] for b in bought], [b[3] for b in bought])
    save("asked/t.npy", "d", "<f8", (len(bought),), [b[2] for b in bought])
    relation["columns"]["t"] = {"kind": "time", "file": "t.npy"}
    write("asked", {"user": users, "item": items}, {"buys": relation})
    schema = json.load(open("asked/schema.json"))
    save("asked/name.npy", "i", "<i4", (items,), range(items))
    save("asked/since.npy", "d", "<f8", (items,), since)
    schema["nodes"]["item"]["columns"] = {"name": {"kind": "cat", "categories": items, "file": "name.npy"},
                                          "since": {"kind": "time", "file": "since.npy"}}
    json.dump(schema, open("asked/schema.json", "w"))
    exe = build("again_model", AGAIN)
    last = run(exe, "--data", "asked", "--checkpoint", "asked.ckpt")[-1]
    w = tensors("asked.ckpt")["w"]

    def score(u, v, t):
        return w[v] + sum(math.exp((s - t) / 10) for x, y, s, _ in bought if (x, y) == (u, v) and s < t)
    for which, word in ((2, "val"), (3, "test")):
        for name, want in by_query(score, since, bought, which).items():
            near(last[word][name], want, 1e-5, "ranked by time: " + name)
    one, two = (run(exe, "eval", "--data", "asked", "--weights", "asked.ckpt", *how)[-1]["test"]
                for how in (("--threads", "1", "--batch", "1"), ("--threads", "3")))
    for name, value in one.items():
        near(two[name], value, 1e-6, "ranked in other batches: " + name)


def check_resume():
    exe = build("resumed", KG % (D, "complex_links(R, dim, p_drop = 0.3)", "one_vs_all", 4))
    run(exe, "--data", "facts", "--epochs", "6", "--checkpoint", "whole")
    run(exe, "--data", "facts", "--epochs", "2", "--checkpoint", "part")
    run(exe, "--data", "facts", "--epochs", "6", "--resume", "part", "--checkpoint", "part")
    assert open("whole", "rb").read() == open("part", "rb").read(), "a resumed run gives other bits"


def check_validation():
    """An epoch is not chosen by links that are not there."""
    shop("unheld", (3, 3, 3, 3))
    exe = build("chooser", (SHOP % ("", "bpr")).replace("keep last", "keep best on val roc_auc"))
    r = subprocess.run([exe, "--data", "unheld", "--checkpoint", "none"], capture_output=True, text=True)
    assert r.returncode == 1 and "no edge of 'buys' is in the validation split" in r.stderr, r.stderr


def check_untrained():
    """Only training needs edges to learn from."""
    shop("untrained", first=0)
    exe = build("judge", SHOP % ("", "bpr"))
    trained = run(exe, "--data", "shop", "--checkpoint", "judged")[0]["test"]["roc_auc"]
    judged = run(exe, "eval", "--data", "untrained", "--weights", "judged")
    near(judged[-1]["test"]["roc_auc"], trained, 1e-6, "ROC-AUC without a train split")
    r = subprocess.run([exe, "--data", "untrained", "--checkpoint", "none"], capture_output=True, text=True)
    assert r.returncode == 1 and "0 edges of 'buys' are in the train split" in r.stderr, r.stderr


if __name__ == "__main__":
    FACTS = facts("facts")
    check_facts_all()
    check_shop()
    check_ranks_by_time()
    check_resume()
    check_validation()
    check_untrained()
    print("links: all as defined")
