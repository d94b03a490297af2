#!/usr/bin/env python3
"""The relational graph transformer: which rows are a seed's tokens, what its points read of them, and the shipped models on races.
usage: transformer.py GNNC TOP.  Prints `N passed, N failed`."""
import array
import datetime
import json
import math
import os
import random
import sqlite3
import struct
import subprocess
import sys

GNNC, TOP = sys.argv[1:3]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import directory  # noqa: E402
from checks import bytes_of, check, end, run  # noqa: E402

DAY = 86400.0


def numbers(path):
    text = bytes_of(path)
    at = 10 + struct.unpack("<H", text[8:10])[0]
    return struct.unpack(f"<{(len(text) - at) // 4}f", text[at:])


def weights(path):
    """{name: flat array} of a file of f32 safetensors."""
    raw = bytes_of(path)
    n = struct.unpack("<Q", raw[:8])[0]
    head = {k: v for k, v in json.loads(raw[8:8 + n]).items() if k != "__metadata__" and v["dtype"] == "F32"}
    return {k: array.array("f", raw[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in head.items()}


# ---- a small graph, in which rows are reached over several others --------------------------------------------------------
GRAPH = """import "layers/relational_transformer.gnn"
graph G {
  node a { x: f32[F];  t: time }
  node b { x: f32[F];  t: time }
  node c { x: f32[F];  t: time }
  node task { x: f32[F];  y: f32;  split;  t: time }
  edge of: task -> a
  edge b_a: b -> a
  edge b_c: b -> c
}
fn nothing(pred: f32[N, O], target: f32[N], mask: bool[N]) -> f32 { return sum(pred) }
train M { target task.y   loss nothing   optimizer sgd(lr = 0)   epochs 1
  sample { fanout [-1, -1, -1, -1]  batch 7  time g.a.t, g.b.t, g.c.t, g.task.t } }
"""
START = """  relations = [reverse(g.of), g.b_a, reverse(g.b_c), g.b_c]
  n = neighbourhood(g.task, g.nodes, relations, 4)
"""
# of each seed: its tokens, the sum of what they have, times their hop + 1, and of the days between them and the seed
COUNTS = GRAPH + """model M(g: G) -> f32[task, 3] {
""" + START + """  now = asked_at(n, g.task.t)
  hop = [t: sum([(i + 1) * n["at"][i][t] for i in 0..5 if in_list(t, keys(n["at"][i]))]) for t in keys(n["all"])]
  had = to_seeds(n, [t: hop[t] * sum(t.x, F) for t in keys(hop)])
  days = to_seeds(n, [t: f32(now[t] - t.t) / 86400 for t in keys(hop)])
  return concat(expand(to_seeds(n, n["all"]), 1), expand(had, 1), expand(days, 1), over = 1)
}
"""
POINTS, HEADS, OUT, F = 2, 2, 3, 4
READ = GRAPH + """model M(g: G) -> f32[task, 12] {
""" + START + """  param start: f32[2, 6] = normal(0, 1)
  read = read_tokens(2, 3)
  z = read(n, transpose(expand(start, g.task), g.task, 2, 6), [t: t.x for t in keys(n["all"])])
  return flatten(z, 2, 6)
}
"""


def small(folder):
    """Rows with numbers and times, and who refers to whom; ({table: rows}, {relation: pairs})"""
    draw = random.Random(3)
    size = {"a": 5, "b": 30, "c": 4, "task": 20}
    rows = {t: [[draw.gauss(0, 1) for _ in range(F)] for _ in range(n)] for t, n in size.items()}
    times = {t: [DAY * draw.randrange(10) for _ in range(n)] for t, n in size.items()}
    times["task"] = [DAY * draw.randrange(4, 14) for _ in range(size["task"])]
    edges = {"of": [(i, draw.randrange(5)) for i in range(20)], "b_a": [(i, draw.randrange(5)) for i in range(30)],
             "b_c": [(i, draw.randrange(4)) for i in range(30)]}
    os.makedirs(folder)
    nodes = {}
    for t, n in size.items():
        columns = {"x": directory.column(folder, f"{t}.x", "float", [v for r in rows[t] for v in r], width=F),
                   "t": directory.column(folder, f"{t}.t", "time", times[t])}
        if t == "task":
            columns["y"] = directory.column(folder, "y", "float", [0.0] * n)
            columns["split"] = directory.column(folder, "split", "split", [1 + i % 3 for i in range(n)])
        nodes[t] = {"count": n, "columns": columns}
    ends = {"of": ("task", "a"), "b_a": ("b", "a"), "b_c": ("b", "c")}
    directory.write(folder, nodes, {e: directory.relation(folder, e, *ends[e], pairs) for e, pairs in edges.items()})
    return rows, times, edges


def tokens_of(seed, times, edges):
    """[(table, row, hop)] of all that is known to a seed, each row once."""
    ways = {"task": [("a", {k: [v] for k, v in edges["of"]})], "a": [("b", turned(edges["b_a"]))],
            "b": [("c", {k: [v] for k, v in edges["b_c"]})], "c": [("b", turned(edges["b_c"]))]}
    found, last = {("task", seed): 0}, [("task", seed)]
    for hop in range(1, 5):
        new = []
        for table, row in last:
            for to, of in ways[table]:
                new += [(to, k) for k in of.get(row, ()) if times[to][k] < times["task"][seed]]
        last = [k for k in dict.fromkeys(new) if k not in found]
        found.update({k: hop for k in last})
    return [(t, k, hop) for (t, k), hop in found.items()]


def turned(pairs):
    out = {}
    for k, v in pairs:
        out.setdefault(v, []).append(k)
    return out


def near(got, want):
    return len(got) == len(want) and all(abs(x - y) <= 1e-4 * max(1, abs(y)) for x, y in zip(got, want))


def predicted(name, text):
    with open(f"{name}.gnn", "w", encoding="utf-8") as f:
        f.write(text)
    told = run(GNNC, f"{name}.gnn", "--target=cpu", "-o", f"./{name}.x")
    check(f"{name}: no hop beyond what is drawn", "warning" not in told, told)
    run(f"./{name}.x", "--data", "small", "--checkpoint", "none", "--out", f"{name}.weights")
    run(f"./{name}.x", "predict", "--data", "small", "--weights", f"{name}.weights", "--out", f"{name}.npy")
    return numbers(f"{name}.npy")


def of_counts(rows, times, edges):
    got, want = predicted("counts", COUNTS), []
    for seed in range(20):
        own = tokens_of(seed, times, edges)
        want += [len(own), sum((hop + 1) * sum(rows[t][k]) for t, k, hop in own),
                 sum(times["task"][seed] - times[t][k] for t, k, _ in own) / DAY]
    check("each row of a neighbourhood is a token once, at its hop and its seed's time", near(got, want), f"{got}\n{want}")
    check("some rows are reached over several others, others not at all", len(set(want[::3])) > 5)


def product(w, x):
    """[out, in] times [in]"""
    n = len(x)
    return [sum(w[i * n + j] * x[j] for j in range(n)) for i in range(len(w) // n)]


def normal(x, gamma):
    by = (sum(v * v for v in x) / len(x) + 1e-6) ** -0.5
    return [v * by * g for v, g in zip(x, gamma)]


def heads(w, x, unit):
    y = product(w, x)
    y = [y[h * OUT:(h + 1) * OUT] for h in range(HEADS)]
    return [[v * (sum(u * u for u in p) + 1e-6) ** -0.5 for v in p] for p in y] if unit else y


def of_attention(rows, times, edges):
    """softmax over all tokens of sharp * q . k, of vectors of length 1; what it weighs, through a linear layer, is added."""
    got = predicted("read", READ)
    w = weights("read.weights")
    start = [list(w["start"][i * 6:i * 6 + 6]) for i in range(POINTS)]
    want = []
    for seed in range(20):
        own = [normal(rows[t][k], w["read.norm_x.weight"]) for t, k, _ in tokens_of(seed, times, edges)]
        keys = [heads(w["read.key.lin.weight"], x, True) for x in own]
        values = [heads(w["read.value.lin.weight"], x, False) for x in own]
        for z in start:
            q, m = heads(w["read.query.lin.weight"], normal(z, w["read.norm_z.weight"]), True), []
            for h in range(HEADS):
                e = [math.exp(w["read.sharp.weight"][h] * sum(a * b for a, b in zip(q[h], k[h]))) for k in keys]
                m += [sum(a * v[h][o] for a, v in zip(e, values)) / sum(e) for o in range(OUT)]
            back = product(w["read.back.weight"], m)
            want += [a + b + c for a, b, c in zip(z, back, w["read.back.bias"])]
    check("points read their seed's neighbourhood", near(got, want), f"{got[:12]}\n{want[:12]}")


# ---- the shipped models --------------------------------------------------------------------------------------------------
def races(db):
    """In the form of Formula 1's database.  A driver comes in by what he and his team can, which drifts."""
    db.executescript("""
        CREATE TABLE circuits (circuitId INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE constructors (constructorId INTEGER PRIMARY KEY, nationality TEXT);
        CREATE TABLE drivers (driverId INTEGER PRIMARY KEY, dob DATE, nationality TEXT);
        CREATE TABLE status (statusId INTEGER PRIMARY KEY, status TEXT);
        CREATE TABLE races (raceId INTEGER PRIMARY KEY, circuitId INTEGER REFERENCES circuits, year INTEGER, round INTEGER, date DATE);
        CREATE TABLE qualifying (qualifyId INTEGER PRIMARY KEY, raceId INTEGER REFERENCES races, driverId INTEGER REFERENCES drivers,
          constructorId INTEGER REFERENCES constructors, position INTEGER, date DATE);
        CREATE TABLE results (resultId INTEGER PRIMARY KEY, raceId INTEGER REFERENCES races, driverId INTEGER REFERENCES drivers,
          constructorId INTEGER REFERENCES constructors, statusId INTEGER REFERENCES status, grid INTEGER, position INTEGER,
          positionOrder INTEGER, points REAL, laps INTEGER, milliseconds INTEGER, rank INTEGER, date DATE);
        CREATE TABLE standings (driverStandingsId INTEGER PRIMARY KEY, raceId INTEGER REFERENCES races, driverId INTEGER REFERENCES drivers,
          points REAL, position INTEGER, wins INTEGER, date DATE);
        CREATE TABLE constructor_results (constructorResultsId INTEGER PRIMARY KEY, raceId INTEGER REFERENCES races,
          constructorId INTEGER REFERENCES constructors, points REAL, date DATE);
        CREATE TABLE constructor_standings (constructorStandingsId INTEGER PRIMARY KEY, raceId INTEGER REFERENCES races,
          constructorId INTEGER REFERENCES constructors, points REAL, position INTEGER, wins INTEGER, date DATE);
        INSERT INTO circuits VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e'), (6, 'f'), (7, 'g'), (8, 'h');
        INSERT INTO status VALUES (1, 'Finished'), (2, 'Engine');""")
    draw = random.Random(11)
    team = {c: draw.gauss(0, 3) for c in range(1, 7)}
    skill = {d: draw.gauss(0, 2) for d in range(1, 25)}

    def insert(table, *row):
        db.execute(f"INSERT INTO {table} VALUES (NULL{', ?' * len(row)})", row)

    for c in team:
        insert("constructors", "xyz"[c % 3])
    for d in skill:
        insert("drivers", f"19{60 + d}-02-03", "abc"[d % 3])
    for race in range(1, 91):
        date = datetime.date(2004, 1, 1) + datetime.timedelta(days=race * 20)
        day, out = str(date), []
        insert("races", 1 + race % 8 if race % 3 else 1 + race % 5, date.year, race % 18, day)
        if race % 15 == 0:
            team = {c: v * 0.4 + draw.gauss(0, 4) for c, v in team.items()}
        level = {d: skill[d] + team[1 + d % 6] + draw.gauss(0, 5) for d in draw.sample(range(1, 25), 18)}
        for place, d in enumerate(sorted(level, key=level.get), 1):
            out, points = draw.random() < 0.1, max(0, 11 - place)
            insert("results", race, d, 1 + d % 6, 2 if out else 1, place, None if out else place, place, points, 50 - 20 * out,
                   None if out else 5000 + place, None if out else place, day)
            insert("qualifying", race, d, 1 + d % 6, max(1, place + draw.randrange(-3, 4)), day)
            insert("standings", race, d, points, place, int(place == 1), day)
        for place, c in enumerate(sorted(team, key=team.get), 1):
            insert("constructor_results", race, c, 7 - place, day)
            insert("constructor_standings", race, c, 7 - place, place, int(place == 1), day)


def imported(name, more="", *question):
    db = sqlite3.connect(f"{name}.db")
    races(db)
    db.executescript(more)
    db.commit()
    db.close()
    return run(GNNC, "import", f"{name}.db", "-o", name, "--val-time", "2007-06-01", "--test-time", "2008-04-01", "--predict",
               *(question or ["AVG(results.positionOrder, 0, 60, days) FOR EACH drivers.driverId"]))


class Shipped:
    """A model that is shipped, compiled; what it makes of a data directory."""

    def __init__(self, name, folder, *options):
        self.name = name
        told = run(GNNC, os.path.join(TOP, folder, f"{name}.gnn"), "--target=cpu", *options, "-o", f"./{name}.x")
        check(f"{name} compiles without a warning", "warning" not in told, told)

    def learned(self, data, *more):
        """(the last line, the weights, the predictions)"""
        to = f"{data}.{self.name}"
        log = run(f"./{self.name}.x", "--data", data, "--checkpoint", "none", "--out", f"{to}.weights", "--log=json", "--batch", "64", *more)
        run(f"./{self.name}.x", "predict", "--data", data, "--weights", f"{to}.weights", "--out", f"{to}.npy")
        return json.loads(log.strip().splitlines()[-1]), bytes_of(f"{to}.weights"), numbers(f"{to}.npy")

    def reads_no_future(self):
        """Of each table in turn a row that is later than all that is asked."""
        first = self.learned("f1", "--epochs", "1", "--check-times")
        for table in LATE:
            with_it = self.learned(f"late_{table}", "--epochs", "1")
            check(f"{self.name}: a future row of {table} changes no bit", with_it[1] == first[1] and
                  with_it[2][:len(first[2])] == first[2] and with_it[0]["val"] == first[0]["val"], f"{first[0]} {with_it[0]}")
        check(f"{self.name}: a row of the past is read", self.learned("early", "--epochs", "1")[1] != first[1])


RACE, RESULT = "INSERT INTO races VALUES (901, 2, 2008, 3, '2008-12-05'); ", "INSERT INTO results VALUES (9001, {}, 3, 4, 1, 2, 2, 2, 8, 50, 5000, 2, '{}')"
LATE = {"races": RACE, "results": RACE + RESULT.format(901, "2008-12-05"),
        "qualifying": RACE + "INSERT INTO qualifying VALUES (9001, 901, 3, 4, 1, '2008-12-05')",
        "standings": RACE + "INSERT INTO standings VALUES (9001, 901, 3, 10, 1, 1, '2008-12-05')"}


def without(last, metric):
    return {b["name"]: b["test"][metric] for b in last["baselines"]}


def held_out(of, metric):
    return (of["val"][metric] + of["test"][metric]) / 2


def of_races():
    imported("f1")
    for table, sql in LATE.items():
        imported(f"late_{table}", sql)
    imported("early", RESULT.format(20, "2005-02-04"))
    transformer = Shipped("f1_transformer", "bench/models", "-Dheads=2", "-Dwidth=8", "-Dpoints=2")
    last = transformer.learned("f1", "--epochs", "25", "--lr", "5e-3")[0]
    check("the transformer is better than what nobody had to learn", len(last["baselines"]) > 3 and
          all(held_out(last, "mae") < 0.98 * held_out(b, "mae") for b in last["baselines"]), str(last))
    transformer.reads_no_future()
    sage = Shipped("f1_sage", "bench/models", "-Dchannels=16")
    last = sage.learned("f1", "--epochs", "14", "--lr", "2e-3")[0]
    check("RelBench's recipe fits what it learns from", last["train"]["mae"] < 0.9 * last["baselines"][0]["val"]["mae"], str(last))
    sage.reads_no_future()


def of_circuits():
    imported("circuits", "", "LIST_DISTINCT(results.circuitId, 0, 40, days) RANK TOP 3 FOR EACH drivers.driverId")
    for name in ("f1_id_gnn", "f1_two_tower"):
        last = Shipped(name, "models").learned("circuits", "--epochs", "4")[0]
        check(f"{name} ranks", all(last["test"]["map"] > b for b in without(last, "map").values()), str(last))


def main():
    rows, times, edges = small("small")
    of_counts(rows, times, edges)
    of_attention(rows, times, edges)
    if "without libsqlite3" in subprocess.run([GNNC, "import", "a.db", "-o", "x"], text=True, stdout=subprocess.PIPE,
                                              stderr=subprocess.STDOUT, check=False).stdout:
        print("LEFT OUT: the shipped models: this gnnc was built without libsqlite3")
    else:
        of_races()
        of_circuits()
    return end()


sys.exit(main())
