#!/usr/bin/env python3
"""What `predict` writes for people and programs: rows by their ids, classes by their names, probabilities; as CSV and JSON
that Python's own readers read back to the numbers of the .npy.

    predict.py GNNC TOP CORA GCN
"""
import csv
import ctypes
import json
import math
import os
import random
import resource
import struct
import subprocess
import sys

from directory import column, relation, save, write

GNNC, TOP, CORA, GCN = sys.argv[1:5]
LIBRARY = f'import "{TOP}/models/layers/links.gnn"\n'
IDS = ['a, "q"', "b", "ç\\n", "d'e", "line", " f", "g#1", "17"]
CLASSES = ["glad", "s,ad", 'so "so"']
MODELS = {
    "moods": """
graph G { node vertex { city: cat[K]; y: class[C]; split }  edge link: vertex -> vertex }
model M(g: G) -> f32[vertex, C] {
  e = embedding(K, 4)
  l = linear(C)
  return l(e(g.vertex.city))
}
train M { target vertex.y  loss LOSS  metric accuracy  optimizer adam(lr = 0.1)  epochs 3 }
""",
    "rows": """
graph G { node n { x: f32[F]; y: KIND; split }  edge e: n -> n }
model M(g: G) -> f32[n, T] {
  l = linear(T)
  return l(g.n.x)
}
train M { target n.y  loss LOSS  optimizer adam(lr = 0.1)  epochs 3  keep last }
""",
    "links": LIBRARY + """
graph G { node user  node item  edge likes: user -> item { split } }
model M(g: G; d: int = 4) -> f32[links] {
  p = links(g.likes)
  param u: f32[user, d] = normal(0, 1)
  param v: f32[item, d] = normal(0, 1)
  return dot_score(p, u, v, d)
}
train M { target links  loss LOSS  optimizer adam(lr = 0.1)  sample { batch 8  negatives 1 }  epochs 2  keep last }
""",
    "edges": """
graph G { node n { x: f32[F] }  edge e: n -> n { y: class[C]; split } }
model M(g: G) -> f32[e, C] {
  l = linear(C)
  return l(g.n.x)[g.e.src] + l(g.n.x)[g.e.dst]
}
train M { target e.y  loss cross_entropy  metric accuracy  optimizer adam(lr = 0.1)  epochs 2 }
""",
    "mails": """
graph G { node person  edge mail: person -> person { t: time; split } }
model M(g: G) -> f32[links] {
  p = links(g.mail)
  out = linear(1)
  seen = sum(ones(g.mail), over = g.mail.dst)
  return sum(out(expand(seen[p.dst], 1)), 1)
}
train M { target links  loss bce_with_logits  optimizer adam(lr = 0.1)
  sample { fanout [9]  batch 8  negatives 1  time g.mail.t }  epochs 1  keep last }
""",
    "of_rows": """
graph G { node vertex { city: cat[K]; y: class[C]; split }  edge link: vertex -> vertex }
layer bias()(x: f32[S, D]) {
  param b: f32[S, D] = normal(0, 0.1)
  return x + b
}
model M(g: G) -> f32[vertex, C] {
  l = embedding(K, C)
  own = bias()
  return own(l(g.vertex.city))
}
train M { target vertex.y  loss cross_entropy  optimizer adam(lr = 0.1)  epochs 2  keep last }
""",
    "graphs": """
graph G { node n { x: f32[F] }  edge e: n -> n  graph { y: class[C]; split } }
model M(g: G) -> f32[graph, C] {
  l = linear(C)
  h = l(g.n.x)
  return sum(h + sum(h[g.e.src], over = g.e.dst), over = graph)
}
train M { target graph.y  loss cross_entropy  optimizer adam(lr = 0.1)  sample { batch 2 }  epochs 1  keep last }
"""}
SERVED = """
graph G { node n { x: f32[F]; y: class[C]; split }  edge e: n -> n }
model M(g: G) -> f32[n, C] {
  wide = linear(512)
  out = linear(C)
  h = relu(wide(g.n.x))
  return out(h + max(h[g.e.src], over = g.e.dst))
}
train M { target n.y  loss cross_entropy  metric accuracy  optimizer adam(lr = 0.1)  epochs 3 }
"""
OWN_LOSS = """fn own(pred: f32[N, K], target: i32[N], mask: bool[N]) -> f32 minimize { return cross_entropy(pred, target, mask) }
"""


def run(*argv, code=0, ask=None, most_bytes=None):
    """What it said."""
    def limit():
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    r = subprocess.run([str(a) for a in argv], input=ask, capture_output=True, preexec_fn=limit, check=False)
    told = (r.stdout + r.stderr).decode()
    assert r.returncode == code, (argv, r.returncode, told)
    return told


def compiled(name, model, before="", **words):
    text = before + MODELS[model]
    for word, means in words.items():
        text = text.replace(word, means)
    with open(name + ".gnn", "w", encoding="utf-8") as f:
        f.write(text)
    run(GNNC, name + ".gnn", "--target=cpu", "-o", name)
    return "./" + name


def trained(name, data):
    run("./" + name, "--data", data, "--log=none", "--checkpoint", name + ".ckpt")


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def same_f32(text, value):
    """It reads back to these bits."""
    assert struct.pack("<f", float(text)) == struct.pack("<f", value) or math.isnan(value), (text, value)


class Predicted:
    """One prediction in the three forms."""
    def __init__(self, trainer, data, *more, ask=None, weights=None):
        name = os.path.basename(trainer)
        common = [trainer, "predict", "--data", data, "--weights", weights or name + ".ckpt", *more]
        plain = [m for m in common if not m.startswith("--top")]
        said = run(*plain, "--out", "p.npy", ask=ask)
        self.shape, self.values = array_of("p.npy")
        assert said.strip() == f"p.npy: {' x '.join(map(str, self.shape))} f32", said
        said = run(*common, "--format=csv", "--out", "p.csv", ask=ask)
        assert said.strip() == f"p.csv: {self.shape[0]} rows", said
        run(*common, "--format", "jsonl", "--out", "p.jsonl", ask=ask)
        with open("p.csv", encoding="utf-8", newline="") as f:
            self.head, *self.rows = csv.reader(f, strict=True)
        with open("p.jsonl", encoding="utf-8") as f:
            self.objects = [json.loads(line) for line in f]
        self.width = math.prod(self.shape[1:])
        assert len(self.rows) == len(self.objects) == self.shape[0]
        self.agree()

    def agree(self):
        """CSV and JSON have the same fields."""
        for row, o in zip(self.rows, self.objects):
            assert list(o) == self.head, (list(o), self.head)
            for cell, value in zip(row, o.values()):
                if value is None:
                    assert cell in ("", "nan", "inf", "-inf"), cell
                elif isinstance(value, str):
                    assert cell == value, (cell, value)
                else:
                    assert float(cell) == value, (cell, value)

    def scores(self, i):
        return self.values[i * self.width:(i + 1) * self.width]


def array_of(path):
    """Shape and numbers of an .npy of f32."""
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<H", data[8:10])[0]
    shape = eval(data[10:10 + n])["shape"]  # noqa: S307
    return shape, struct.unpack(f"<{math.prod(shape)}f", data[10 + n:])


def softmax(x):
    high = max(x)
    e = [math.exp(v - high) for v in x]
    return [v / sum(e) for v in e]


def near(got, want):
    assert abs(float(got) - want) <= 2e-7 * abs(want) + 1e-30, (got, want)


def moods(folder, ids):
    """A data directory that the importer makes of CSV files."""
    os.makedirs(folder)
    cities = {"berlin": 0, "cairo": 1, "delhi": 2}
    with open(f"{folder}/nodes.csv", "w", encoding="utf-8", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["id", "city", "y", "split"])
        for i, name in enumerate(ids):
            city = list(cities)[i % 3]
            out.writerow([name, city, CLASSES[cities[city]], ["train", "val", "test"][i // 3 % 3]])
    with open(f"{folder}/edges.csv", "w", encoding="utf-8", newline="") as f:
        csv.writer(f, lineterminator="\n").writerows([["src", "dst"], [ids[0], ids[1]]])
    run(GNNC, "import", f"{folder}/nodes.csv", f"{folder}/edges.csv", "-o", f"{folder}.d", "--kind", "y=class", "--kind",
        "city=cat")
    return folder + ".d"


def classes_by_name():
    data = moods("named", IDS)
    t = compiled("moods", "moods", LOSS="cross_entropy")
    trained("moods", data)
    p = Predicted(t, data)
    assert p.head == ["id", "prediction"] + ["probability_" + c for c in CLASSES], p.head
    assert [r[0] for r in p.rows] == IDS
    for i, row in enumerate(p.rows):
        s = p.scores(i)
        assert row[1] == CLASSES[s.index(max(s))], row
        for cell, want in zip(row[2:], softmax(s)):
            near(cell, want)
            same_f32(cell, f32(float(cell)))
    best_of_each(t, data, p)
    rows_by_id(t, data, p)
    mistakes(t, data)
    kept_whole(t, data)


def best_of_each(t, data, whole):
    p = Predicted(t, data, "--top=2")
    assert p.head == ["id", "prediction", "class_1", "probability_1", "class_2", "probability_2"], p.head
    for i, row in enumerate(p.rows):
        order = sorted(range(3), key=lambda k: -whole.scores(i)[k])
        assert [row[2], row[4]] == [CLASSES[k] for k in order[:2]] and row[1] == row[2]
        assert [row[3], row[5]] == [whole.rows[i][2 + k] for k in order[:2]]
    assert len(Predicted(t, data, "--top=7").head) == 2 + 2 * 3


def rows_by_id(t, data, whole):
    """In the order asked for, the same one twice; lines as editors of all systems write them."""
    want = [5, 0, 5, 7]
    for ask in ("\n".join(IDS[i] for i in want), "\ufeff" + "".join(IDS[i] + "\r\n\r\n" for i in want)):
        with open("ids.txt", "w", encoding="utf-8", newline="") as f:
            f.write(ask)
        for p in (Predicted(t, data, "--ids", "ids.txt"), Predicted(t, data, "--ids=-", ask=ask.encode())):
            assert p.rows == [whole.rows[i] for i in want] and p.shape == (4, 3), p.rows
            assert list(p.values) == [v for i in want for v in whole.scores(i)]
    p = Predicted(t, data, "--nodes", "-", ask=b"5\n0\n005\n7\n")
    assert p.rows == [whole.rows[i] for i in want]
    p = Predicted(t, data, "--ids", "-", ask=b"\n\n")
    assert p.rows == [] and p.shape == (0, 3)


def mistakes(t, data):
    common = [t, "predict", "--data", data, "--weights", "moods.ckpt", "--out", "no.csv", "--format=csv"]
    for option, ask, says in [
            ("--ids", b"b\nnobody\n", "standard input: line 2: no row of 'vertex' is called 'nobody'"),
            ("--ids", b"b\nb\0c\n", "line 2 holds a NUL byte"),
            ("--ids", b"\n" + b"x" * 100000, "line 2: no row of 'vertex' is called 'xxxx"),
            ("--nodes", b"0\n8\n", "line 2: 'vertex' has no row '8': 8, from 0"),
            ("--nodes", b"99999999999999999999999999", "line 1: 'vertex' has no row '9999"),
            ("--nodes", b"-1\n", "line 1: '-1' is no row number"),
            ("--nodes", b"1 2\n", "line 1: '1 2' is no row number"),
            ("--nodes", b"1.0\n", "line 1: '1.0' is no row number")]:
        told = run(*common, option, "-", ask=ask, code=1)
        assert says in told and told.count("\n") == 1, told
    assert "ids.no: cannot open" in run(*common, "--ids", "ids.no", code=1)
    assert "cannot read" in run(*common, "--nodes", ".", code=1)
    for code, says, *options in [
            (2, "'xml' is not npy", "--format=xml"), (2, "exclude each other", "--ids=-", "--nodes=-"),
            (2, "--top is of --format=csv", "--format=npy", "--top=2"), (2, "no whole number", "--top=some")]:
        assert says in run(*common, *options, code=code), says
    assert "--ids is for 'predict'" in run(t, "eval", "--data", data, "--weights", "moods.ckpt", "--ids=-", code=2)
    assert not os.path.exists("no.csv")


def kept_whole(t, data):
    """A file that cannot be written to its end is not replaced."""
    for form in ("csv", "jsonl"):
        with open("old." + form, "w", encoding="utf-8") as f:
            f.write("old")
        before = sorted(os.listdir("."))
        told = run(t, "predict", "--data", data, "--weights", "moods.ckpt", "--format", form, "--out", "old." + form,
                   code=1, most_bytes=64)
        assert "old." + form in told and "cannot write" in told, told
        with open("old." + form, encoding="utf-8") as f:
            assert f.read() == "old" and sorted(os.listdir(".")) == before
    run(t, "predict", "--data", data, "--weights", "moods.ckpt", "--format=csv", "--log=none")
    assert os.path.exists("predictions.csv")


def own_loss_gives_scores():
    t = compiled("own", "moods", before=OWN_LOSS, LOSS="own")
    trained("own", "named.d")
    p = Predicted(t, "named.d")
    assert p.head == ["id", "prediction"] + ["score_" + c for c in CLASSES], p.head
    for i, row in enumerate(p.rows):
        for cell, value in zip(row[2:], p.scores(i)):
            same_f32(cell, value)
    t = compiled("mixed", "moods", before=OWN_LOSS, LOSS="cross_entropy, 0.1 * own")
    trained("mixed", "named.d")
    assert Predicted(t, "named.d").head[2] == "score_glad"


def numbered_ids():
    """Ids that are whole numbers are no row numbers."""
    data = moods("numbered", [str(100 - i) for i in range(9)])
    p = Predicted("./moods", data, "--ids", "-", ask=b"92\n100\n")
    assert [r[0] for r in p.rows] == ["92", "100"]
    q = Predicted("./moods", data, "--nodes", "-", ask=b"8\n0\n")
    assert p.rows == q.rows


def names_kept(path):
    """What a file of weights calls the rows of parameters; None: nothing."""
    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    return json.loads(head["__metadata__"].get("names:vertex", "null"))


def one_name_for_a_row():
    """Weights and predictions call a row the same: of the file `names`, `name` and `id` by the first that tells all apart."""
    compiled("of_rows", "of_rows")
    n = len(IDS)
    lines, texts, keys = ([c + str(i) for i in range(n)] for c in ("line", "text", "1"))
    same = lambda names: names[:-1] + names[:1]
    for k, (has, want) in enumerate((({"names": lines, "name": texts, "id": keys}, lines), ({"name": texts, "id": keys}, texts),
                                     ({"names": same(lines), "name": texts, "id": keys}, texts), ({"id": keys}, keys),
                                     ({"names": same(lines), "name": same(texts), "id": keys}, keys),
                                     ({"name": same(texts), "id": keys}, keys), ({"names": same(lines), "id": same(keys)}, None))):
        data = moods(f"called{k}", IDS)
        with open(f"{data}/schema.json", encoding="utf-8") as f:
            schema = json.load(f)
        table = schema["nodes"]["vertex"]
        if "names" in has:
            with open(f"{data}/{table['names']}", "w", encoding="utf-8") as f:
                f.writelines(name + "\n" for name in has["names"])
        else:
            del table["names"]
        if "name" in has:
            known = sorted(set(has["name"]))
            codes = [known.index(name) for name in has["name"]]
            table["columns"]["name"] = column(data, "name", "cat", codes, categories=len(known), names=known)
        save(f"{data}/id.npy", "q", "<i8", (n,), [int(i) for i in has["id"]])
        table["columns"]["id"] = {"kind": "id", "file": "id.npy"}
        with open(f"{data}/schema.json", "w", encoding="utf-8") as f:
            json.dump(schema, f)
        trained("of_rows", data)
        assert names_kept("of_rows.ckpt") == want, (has, names_kept("of_rows.ckpt"))
        asked = want or [str(i) for i in range(n)]
        p = Predicted("./of_rows", data, "--ids=-", ask="\n".join(asked[::-1]).encode())
        assert [row[0] for row in p.rows] == asked[::-1], (has, p.rows)


def other_bytes():
    """Names that are no UTF-8: as they are in CSV, U+FFFD in JSON."""
    data = moods("latin", ["a", "b", "c"])
    with open(f"{data}/schema.json", encoding="utf-8") as f:
        names = json.load(f)["nodes"]["vertex"]["names"]
    with open(f"{data}/{names}", "wb") as f:
        f.write(b"caf\xe9\n\xed\xa0\x80x\n\xf0\x9f\x98\x80\n")
    common = ["./moods", "predict", "--data", data, "--weights", "moods.ckpt", "--ids=-"]
    run(*common, "--format=jsonl", "--out=b.jsonl", ask=b"caf\xe9\n\xed\xa0\x80x\n\xf0\x9f\x98\x80")
    with open("b.jsonl", encoding="utf-8") as f:
        assert [json.loads(line)["id"] for line in f] == ["caf\ufffd", "\ufffd\ufffd\ufffdx", "\U0001f600"]
    run(*common, "--format=csv", "--out=b.csv", ask=b"caf\xe9")
    with open("b.csv", "rb") as f:
        assert f.readlines()[1].startswith(b"caf\xe9,")


def rows_data(folder, kind, width, n=12):
    r = random.Random(7)
    os.makedirs(folder)
    x = [r.gauss(0, 1) for _ in range(2 * n)]
    if kind == "multilabel":
        x[6:8] = [1e30, -1e30]  # scores beyond a sigmoid's ends
    y = [float(r.random() < 0.5) for _ in range(width * n)]
    write(folder, {"n": {"count": n, "columns": {
        "x": column(folder, "x", "float", x, width=2), "y": column(folder, "y", kind, y, width=width),
        "split": column(folder, "split", "split", [1 + i % 3 for i in range(n)])}}},
          {"e": relation(folder, "e", "n", "n", [(i, (i + 1) % n) for i in range(n)])})
    return folder


def labels_and_numbers():
    data = rows_data("labels", "multilabel", 3)
    t = compiled("labelled", "rows", KIND="multilabel[T]", LOSS="bce_with_logits")
    trained("labelled", data)
    p = Predicted(t, data)
    assert p.head == ["id", "probability_y_0", "probability_y_1", "probability_y_2"], p.head
    for i, row in enumerate(p.rows):
        assert row[0] == str(i) and p.objects[i]["id"] == i
        for cell, s in zip(row[1:], p.scores(i)):
            near(cell, 1 / (1 + math.exp(-s)) if s > -700 else 0)
    p = Predicted(t, data, "--top=1")
    assert p.head == ["id", "label_1", "probability_1"] and p.rows[0][1] in ("y_0", "y_1", "y_2"), p.rows[0]
    t = compiled("numbers", "rows", KIND="f32[T]", LOSS="mse")
    for width, head in ((1, ["id", "prediction"]), (2, ["id", "prediction_0", "prediction_1"])):
        data = rows_data(f"numbers{width}", "float", width)
        trained("numbers", data)
        p = Predicted(t, data, "--nodes=-", ask=b"2\n3\n")
        assert p.head == head and [r[0] for r in p.rows] == ["2", "3"], p.head
        for i, row in enumerate(p.rows):
            for cell, value in zip(row[1:], p.scores(i)):
                same_f32(cell, value)
    told = run(t, "predict", "--data", data, "--weights", "numbers.ckpt", "--format=csv", "--top=1", code=1)
    assert "no scores of several classes or labels" in told, told
    no_numbers(t)


def no_numbers(t):
    """A weight that is none: CSV has nan and inf, JSON null."""
    head, values = header("numbers.ckpt")
    start, end = next(v["data_offsets"] for k, v in head.items() if k == "l.bias")
    values = bytearray(values)
    values[start:end] = struct.pack("<ff", math.nan, math.inf)
    text = json.dumps(head).encode()
    with open("nan.st", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + values)
    p = Predicted(t, "numbers2", weights="nan.st")
    assert p.rows[0][1:] == ["nan", "inf"] and p.objects[0]["prediction_0"] is None, p.rows[0]


def header(path):
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + n]), data[8 + n:]


def links_by_their_ends():
    os.makedirs("shop")
    r = random.Random(3)
    pairs = [(u, i) for u in range(6) for i in range(5) if r.random() < 0.6]
    r.shuffle(pairs)
    with open("shop/likes.csv", "w", encoding="utf-8") as f:
        f.write("src,dst,split\n" + "".join(f"u{u},i{i},{['train', 'val', 'test'][k % 3]}\n" for k, (u, i) in enumerate(pairs)))
    run(GNNC, "import", "shop/likes.csv", "-o", "shop.d", "--node", "user,item", "--edge", "likes")
    for loss, word in (("bce_with_logits", "probability"), ("bpr", "score")):
        t = compiled(loss, "links", LOSS=loss)
        trained(loss, "shop.d")
        p = Predicted(t, "shop.d")
        assert p.head == ["source", "destination", word], p.head
        assert sorted((a, b) for a, b, _ in p.rows) == sorted((f"u{u}", f"i{i}") for u, i in pairs)
        for row, s in zip(p.rows, p.values):
            near(row[2], 1 / (1 + math.exp(-s)) if word == "probability" else s)
        q = Predicted(t, "shop.d", "--ids", "-", ask=b"u4\nu1\nu4\n")
        assert q.rows == [x for who in ("u4", "u1", "u4") for x in p.rows if x[0] == who], q.rows
    ends_of_scores("./bpr")


def ends_of_scores(t):
    """A score is that of the ends which stand beside it: the product of their vectors."""
    head, values = header("bpr.ckpt")

    def vectors(name):
        a, b = head[name]["data_offsets"]
        v = struct.unpack(f"<{(b - a) // 4}f", values[a:b])
        names = json.loads(head["__metadata__"]["names:" + {"u": "user", "v": "item"}[name]])
        return {who: v[4 * i:4 * i + 4] for i, who in enumerate(names)}
    u, v = vectors("u"), vectors("v")
    for a, b, score in Predicted(t, "shop.d").rows:
        want = sum(x * y for x, y in zip(u[a], v[b]))
        assert abs(float(score) - want) < 1e-5, (a, b, score, want)


def rows_that_are_edges():
    """Their columns are no links: the trainer has given their ends back."""
    os.makedirs("roads")
    r = random.Random(5)
    n, pairs = 7, [(r.randrange(7), r.randrange(7)) for _ in range(20)]
    write("roads", {"n": {"count": n, "columns": {"x": column("roads", "x", "float", [float(i == k) for i in range(n) for k in range(n)],
                                                             width=n)}}},
          {"e": relation("roads", "e", "n", "n", pairs, y=column("roads", "y", "class", [k % 2 for k in range(20)], categories=2),
                         split=column("roads", "split", "split", [1 + k % 3 for k in range(20)]))})
    t = compiled("edges", "edges")
    trained("edges", "roads")
    p = Predicted(t, "roads")
    assert p.head == ["source", "destination", "prediction", "probability_0", "probability_1"], p.head
    assert [(int(a), int(b)) for a, b, *_ in p.rows] == sorted(pairs, key=lambda e: e[1])
    assert p.objects[0]["prediction"] in (0, 1)
    q = Predicted(t, "roads", "--nodes=-", ask=b"3\n")
    assert q.rows == [x for x in p.rows if x[0] == "3"]


def links_by_time():
    """They are predicted in batches, whose rows are not those of the data."""
    r = random.Random(4)
    pairs = [(f"p{r.randrange(9)}", f"p{r.randrange(9)}") for _ in range(40)]
    with open("mails.csv", "w", encoding="utf-8") as f:
        f.write("src,dst,t,split\n" + "".join(f"{a},{b},{k},{['train', 'val', 'test'][k // 15]}\n" for k, (a, b) in enumerate(pairs)))
    run(GNNC, "import", "mails.csv", "-o", "mails", "--node", "person", "--edge", "mail", "--kind", "t=time")
    t = compiled("mail", "mails")
    trained("mail", "mails")
    p = Predicted(t, "mails")
    order = list(dict.fromkeys(name for pair in pairs for name in pair))  # texts: as they appear
    assert [tuple(x[:2]) for x in p.rows] == sorted(pairs, key=lambda e: order.index(e[1])), p.rows
    assert Predicted(t, "mails", "--ids=-", ask=b"p3").rows == [x for x in p.rows if x[0] == "p3"]


def rows_that_are_graphs():
    os.makedirs("parts")
    n = 5
    save("parts/ptr.npy", "q", "<i8", (n + 1,), range(0, 2 * n + 1, 2))
    write("parts", {"n": {"count": 2 * n, "graph": "graph", "graph_ptr": "ptr.npy", "columns": {
        "x": column("parts", "x", "float", [0.1 * i for i in range(2 * n)], width=1)}}},
          {"e": relation("parts", "e", "n", "n", [(0, 1), (9, 8)])},
          {"graph": {"count": n, "columns": {"y": column("parts", "y", "class", [i % 2 for i in range(n)], categories=2),
                                             "split": column("parts", "split", "split", [1, 1, 1, 2, 3])}}})
    t = compiled("whole_graphs", "graphs")
    trained("whole_graphs", "parts")
    p = Predicted(t, "parts", "--nodes=-", ask=b"4\n0\n")
    assert p.head == ["id", "prediction", "probability_0", "probability_1"] and [x[0] for x in p.rows] == ["4", "0"]
    save("parts/e.npy", "i", "<i4", (2, 2), (0, 9, 5, 8))  # two graphs are one: no session opens there
    run(t, "predict", "--data", "parts", "--weights", "whole_graphs.ckpt", "--out", "whole.npy")
    every = array_of("whole.npy")[1]
    assert Predicted(t, "parts", "--nodes=-", ask=b"4\n0\n").values == every[8:] + every[:2]


def cora():
    run(GCN, "--data", CORA, "--epochs", 30, "--log=none", "--checkpoint", "gcn.ckpt")
    p = Predicted(GCN, CORA, "--nodes=-", ask=b"2707\n0\n1000\n", weights="gcn.ckpt")
    assert p.head == ["id", "prediction"] + [f"probability_{k}" for k in range(7)], p.head
    assert [r[0] for r in p.rows] == ["2707", "0", "1000"]
    run(GCN, "predict", "--data", CORA, "--weights", "gcn.ckpt", "--out", "all.npy")
    _, values = array_of("all.npy")
    assert list(p.values) == [v for i in (2707, 0, 1000) for v in values[7 * i:7 * i + 7]]
    for i, row in enumerate(p.rows):
        s = p.scores(i)
        assert int(row[1]) == s.index(max(s)) and p.objects[i]["prediction"] == int(row[1])
        for cell, want in zip(row[2:], softmax(s)):
            near(cell, want)
    told = run(GCN, "predict", "--data", CORA, "--weights", "gcn.ckpt", "--ids", "-", ask=b"author\n", code=1)
    assert "'author' is no row number, and the data do not name the rows of 'paper'" in told, told


def chain(n):
    """A path of n nodes with names."""
    os.makedirs("chain", exist_ok=True)
    write("chain", {"n": {"count": n, "names": "names.txt", "columns": {
        "x": column("chain", "x", "float", [0.1 * (i % 12) for i in range(n)], width=1),
        "y": column("chain", "y", "class", [i % 2 for i in range(n)], categories=2, names=["no", "yes"]),
        "split": column("chain", "split", "split", [1 + i % 3 for i in range(n)])}}},
        {"e": relation("chain", "e", "n", "n", [(i, i + 1) for i in range(n - 1)])})
    with open("chain/names.txt", "w", encoding="utf-8") as f:
        f.writelines(f"node {i}\n" for i in range(n))


def most_memory(*argv, ask):
    """Of a process, in MB."""
    p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    p.stdin.write(ask)
    p.stdin.close()
    _, status, used = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    assert p.returncode == 0, (argv, status)
    return used.ru_maxrss / 1024


def by_themselves():
    """Rows that a session predicts are those of all rows, and no others are computed."""
    with open("served.gnn", "w", encoding="utf-8") as f:
        f.write(SERVED)
    run(os.environ.get("GNNC") or TOP + "/build/gnnc", "served.gnn", "--target=cpu", "-o", "served")
    chain(12)
    trained("served", "chain")
    whole = Predicted("./served", "chain")
    for more in ((), ("--top=1",)):
        p = Predicted("./served", "chain", "--ids=-", *more, ask=b"node 5\nnode 0\nnode 5\n")
        assert [r[:2] for r in p.rows] == [whole.rows[i][:2] for i in (5, 0, 5)], p.rows
        for k, i in enumerate((5, 0, 5)):
            for got, want in zip(p.scores(k), whole.scores(i)):
                assert abs(got - want) <= 1e-6 * max(map(abs, whole.scores(i))), (got, want)
    assert p.head == ["id", "prediction", "class_1", "probability_1"] and p.rows[0][1] in ("no", "yes"), p.rows
    common = ["./served", "predict", "--data", "chain", "--weights", "served.ckpt", "--out=near.npy"]
    assert "line 2: no row of 'n' is called 'x'" in run(*common, "--ids=-", ask=b"node 5\nx\n", code=1)
    assert "cannot open" in run("./served", "predict", "--data", "chain", "--weights", "no.ckpt", "--nodes=-", ask=b"5\n", code=1)
    chain(50000)
    some = most_memory(*common, "--nodes=-", ask=b"5\n")
    for asked, options in ((b"5\n", ["--max-memory=4G"]), (b"5\n" * 4097, [])):  # the trainer's
        assert most_memory(*common, *options, "--nodes=-", ask=asked) > 60 + some, (asked, some)


class Written(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("format", ctypes.c_int32), ("top", ctypes.c_int64), ("n", ctypes.c_int64),
                ("row", ctypes.c_void_p), ("destination", ctypes.c_void_p), ("values", ctypes.c_void_p)]


def legend_of_a_session():
    """A library that only predicts says and writes what the trainer does: names come with the weights and with the data."""
    data = moods("of_a_session", IDS)
    trained("moods", data)
    whole = Predicted("./moods", data)
    run(GNNC, "moods.gnn", "--emit=infer", "-o", "rows")
    lib = ctypes.CDLL(os.path.abspath("librows.so"))
    lib.gnnc_legend_value.restype = lib.gnnc_legend_id.restype = lib.gnnc_legend_error.restype = ctypes.c_char_p
    lib.gnnc_legend_highest.restype = ctypes.c_int64
    m, s, g, legend, row = (*(ctypes.c_void_p() for _ in range(4)), ctypes.c_int64())
    r = ctypes.byref
    assert lib.gnnc_session_create(r(s)) == 0 and lib.gnnc_session_legend(s, r(legend)) == -10
    program = ctypes.addressof(ctypes.c_char.in_dll(lib, "rows_program"))
    assert lib.gnnc_model_create(r(m), ctypes.c_void_p(program)) == 0
    assert lib.gnnc_model_load(m, b"moods.ckpt") == 0
    assert lib.gnnc_graph_create(r(g)) == 0 and lib.gnnc_graph_read(g, data.encode(), 0) == 0 and lib.gnnc_graph_commit(g) == 0
    assert lib.gnnc_session_open(s, m, g) == 0 and lib.gnnc_session_legend(s, r(legend)) == 0
    assert [lib.gnnc_legend_value(legend, ctypes.c_int64(k)) for k in range(-1, 4)] == [None, *(c.encode() for c in CLASSES), None]
    assert lib.gnnc_legend_find(legend, IDS[3].encode(), r(row)) == 0 and row.value == 3
    assert lib.gnnc_legend_find(legend, b"nobody", r(row)) == -3 and b"'vertex' is called 'nobody'" in lib.gnnc_legend_error(legend)
    assert lib.gnnc_legend_id(legend, 0, ctypes.c_int64(2)).decode() == IDS[2] and lib.gnnc_legend_id(legend, 0, ctypes.c_int64(99)) is None
    assert lib.gnnc_legend_links(legend, ctypes.c_int64(0), r(row), ctypes.c_int64(0), None) == -9
    out, ids = (ctypes.c_float * 6)(), (ctypes.c_int64 * 2)(3, 0)
    assert lib.gnnc_session_predict(s, ctypes.c_int64(2), ids, out) == 0
    assert CLASSES[lib.gnnc_legend_highest(legend, out)] == whole.rows[3][1]
    up, none = math.inf, math.nan
    for scores, want in (((1, up, 3), (0, 1, 0)), ((up, 2, up), (.5, 0, .5)), ((-up, 0, 0), (0, .5, .5)), ((-up,) * 3, (1 / 3,) * 3),
                         ((up, none, 0), (none,) * 3), ((88, 89, -1e38), (0.26894143, 0.7310586, 0))):
        two = (ctypes.c_float * 3)(*scores)
        assert lib.gnnc_legend_convert(legend, ctypes.c_int64(1), two, two) == 0
        assert all(abs(a - b) < 1e-6 or (a != a and b != b) for a, b in zip(two, want)), (scores, list(two))
    at = lambda x: ctypes.cast(x, ctypes.c_void_p)
    for form, top in ((1, 0), (1, 2), (2, 0), (0, 0)):
        w = Written(ctypes.sizeof(Written), form, top, 2, at(ids), None, at(out))
        assert lib.gnnc_legend_write(legend, b"legend.out", r(w)) == 0, lib.gnnc_legend_error(legend)
        if (form, top) == (1, 0):
            with open("legend.out", encoding="utf-8", newline="") as f:
                head, *got = csv.reader(f, strict=True)
            assert head == whole.head and [x[:2] for x in got] == [whole.rows[i][:2] for i in (3, 0)], (head, got)
            assert all(abs(float(a) - float(b)) < 1e-6 for x, i in zip(got, (3, 0)) for a, b in zip(x[2:], whole.rows[i][2:]))
    assert array_of("legend.out") == ((2, 3), tuple(out))
    for form, top, n, to in ((1, 0, 2, at(ids)), (0, 2, 2, None), (7, 0, 2, None), (1, 0, -1, None)):
        w = Written(ctypes.sizeof(Written), form, top, n, at(ids), to, at(out))
        assert lib.gnnc_legend_write(legend, b"no.out", r(w)) == -9 and not os.path.exists("no.out")
    ids[1] = 9
    assert lib.gnnc_legend_write(legend, b"no.out", r(Written(ctypes.sizeof(Written), 1, 0, 2, at(ids), None, at(out)))) == -3
    lib.gnnc_legend_destroy(legend)
    lib.gnnc_session_destroy(s)
    memory_of_a_legend(lib, m, g, out)
    lib.gnnc_model_release(m)
    lib.gnnc_graph_release(g)


def memory_of_a_legend(lib, m, g, values):
    """Any allocation of gnnc_session_legend, and of what is then asked, may fail; the next call does what it should."""
    libc, memory, r = ctypes.CDLL(None), {"live": 0, "left": -1}, ctypes.byref
    libc.calloc.restype = ctypes.c_void_p

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    def give(_, n):
        memory["left"] -= 1
        memory["live"] += memory["left"] != -1
        return libc.calloc(ctypes.c_size_t(1), ctypes.c_size_t(n or 1)) if memory["left"] != -1 else None

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    def take(_, p):
        memory["live"] -= p is not None
        libc.free(ctypes.c_void_p(p))

    s, legend, row = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int64()
    lib.gnnc_session_error.restype = ctypes.c_char_p
    w = Written(ctypes.sizeof(Written), 2, 2, 2, None, None, ctypes.cast(values, ctypes.c_void_p))
    assert lib.gnnc_session_create_with(r(s), give, take, None) == 0 and lib.gnnc_session_open(s, m, g) == 0
    opened = memory["live"]

    def until_it_goes(call, error, live=None):
        """Of one object, which lives on."""
        for n in range(1000):
            memory["left"], before = n, memory["live"]
            st, memory["left"] = call(), -1
            if st == 0:
                return n
            assert st == -1 and error(), (n, st)
            assert live is None or memory["live"] == before == live, (n, memory, live)
            assert live is None or not legend

    assert until_it_goes(lambda: lib.gnnc_session_legend(s, r(legend)), lambda: lib.gnnc_session_error(s), opened) > 3
    words = lambda: lib.gnnc_legend_error(legend)
    until_it_goes(lambda: lib.gnnc_legend_find(legend, IDS[3].encode(), r(row)), words)
    assert row.value == 3
    assert until_it_goes(lambda: lib.gnnc_legend_write(legend, b"short.out", r(w)), words) > 0
    assert all(json.loads(line)["class_1"] in CLASSES for line in open("short.out", encoding="utf-8"))
    lib.gnnc_legend_destroy(legend)
    assert memory["live"] == opened
    lib.gnnc_session_destroy(s)
    assert memory["live"] == 0, memory


for test in (by_themselves, classes_by_name, legend_of_a_session, own_loss_gives_scores, numbered_ids, one_name_for_a_row, other_bytes, labels_and_numbers, links_by_their_ends,
             rows_that_are_edges, links_by_time, rows_that_are_graphs, cora):
    test()
