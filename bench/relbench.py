#!/usr/bin/env python3
"""F1: who comes in where, who does not finish, who starts from the first three places.  RelBench's tasks of drivers, by two protocols.

usage: bench/relbench.py --data F1 [--gnnc build/gnnc] [--seeds 5] [--tasks position,dnf,top3] [--protocols relbench,live]
                         [--trees PYTHON] [--threads N] [--work DIR] [--out bench/results/relbench.md]

F1 is a folder with f1.sqlite (Ergast's tables) and task-driver-position.csv, -dnf.csv, -top3.csv: RelBench's rows
(split, date, driverId, target).  The protocols:

  relbench   rows of the database from 2010-01-01 on are taken away: no test row reads any.  So that validation asks the
             same, its rows are asked at 2005-01-01; rows to learn from are asked some years before their date, the number
             drawn uniformly from what test asks for (0 to 6.5 years; 3.3 for dnf and top3), each several times.
  live       each row reads what happened up to its own date.

`drivers.number` (a driver of today has one) is no column of either.  Numbers of events are spread as a normal distribution
(`float quantile`), in which what lies beyond all that was learned from is as the most that was: points for a win were 10 at most before
2010, and 25 since.  The recipe stands in bench/models/f1_driver.gnn; each
run keeps the epoch that is best on validation.  Beside it: the median of training, the driver's mean of training labels, his
mean place (or rate) in the year before, from results alone, and with --trees (a Python that has numpy and scikit-learn)
gradient boosted trees on counts of the same rows, their number of trees chosen on validation.  Of each: mean and standard
deviation over seeds, and the mean of the seeds' predictions with a bootstrap interval of the test rows (95 %, 1,000 draws).
"""
import argparse
import csv
import datetime
import json
import math
import os
import random
import re
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DAY = 86400
VAL, TEST = "2005-01-01", "2010-01-01"
CUT = ("results", "standings", "constructor_results", "constructor_standings", "qualifying", "races")
# numbers of events, whose range changes over the years
NUMBERS = ("results.grid", "results.positionOrder", "results.points", "results.laps", "standings.points", "standings.position",
           "standings.wins", "constructor_standings.points", "constructor_standings.position", "constructor_standings.wins",
           "qualifying.position")
# of each: the target's column, years that test looks ahead at most, rows to make of each (for training)
TASKS = {"position": ("position", 6.5, 3), "dnf": ("did_not_finish", 3.3, 3), "top3": ("qualifying", 3.3, 10)}


def seconds(text):
    return (datetime.datetime.fromisoformat(text) - datetime.datetime(1970, 1, 1)).total_seconds()


def date(s):
    return str(datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=int(s)))


def rows_of(folder, task, protocol):
    """(driver, time asked at, days ahead, month, label, part) of each row, as the protocol has them."""
    column, years, copies = TASKS[task]
    draw, rows = random.Random(0), []
    with open(os.path.join(folder, f"task-driver-{task}.csv"), encoding="utf-8", newline="") as f:
        for r in csv.DictReader(f):
            t = seconds(r["date"])
            at = [t]
            if protocol == "relbench":
                at = [seconds(TEST if r["split"] == "test" else VAL) - 1]
                if r["split"] == "train":
                    at = [t - draw.random() * years * 365 * DAY for _ in range(copies)]
            rows += [(int(r["driverId"]), int(a), (t - a) / DAY, r["date"][5:7], float(r[column]), r["split"]) for a in at]
    return rows


def database(folder, path, rows, number, protocol):
    """A copy without drivers.number, with the table `task`; rows of its own second are read, so it asks a second later."""
    if os.path.exists(path):
        os.remove(path)
    source = sqlite3.connect("file:%s?mode=ro&immutable=1" % os.path.join(folder, "f1.sqlite"), uri=True)
    db = sqlite3.connect(path)
    source.backup(db)
    source.close()
    db.execute("ALTER TABLE drivers DROP COLUMN number")
    for table in CUT if protocol == "relbench" else ():
        db.execute(f"DELETE FROM {table} WHERE date >= ?", (TEST,))
    db.execute("CREATE TABLE task (taskId INTEGER PRIMARY KEY, driverId INTEGER REFERENCES drivers, time TIMESTAMP, behind REAL, "
               f"month TEXT, y {'REAL' if number else 'INTEGER'}, split TEXT)")
    db.executemany("INSERT INTO task VALUES (?, ?, ?, ?, ?, ?, ?)",
                   [(i, d, date(a + 1), behind, "m" + month, y if number else int(y), part)
                    for i, (d, a, behind, month, y, part) in enumerate(rows)])
    db.commit()
    return db


# ---- metrics ------------------------------------------------------------------------------------------------------------
def roc_auc(score, label):
    order = sorted(range(len(score)), key=lambda i: score[i])
    rank, i, total = [0.0] * len(score), 0, 0.0
    while i < len(order):
        j = i
        while j < len(order) and score[order[j]] == score[order[i]]:
            j += 1
        for k in range(i, j):
            rank[order[k]] = (i + j + 1) / 2
        i = j
    n = sum(1 for y in label if y > 0)
    if n == 0 or n == len(label):
        return math.nan
    total = sum(r for r, y in zip(rank, label) if y > 0)
    return 100 * (total - n * (n + 1) / 2) / (n * (len(label) - n))


def mae(score, label):
    return sum(abs(a - b) for a, b in zip(score, label)) / len(label)


class Judge:
    """What a guess of all rows reaches in validation and test."""

    def __init__(self, rows, number):
        self.label = [r[4] for r in rows]
        self.part = {p: [i for i, r in enumerate(rows) if r[5] == p] for p in ("val", "test")}
        self.metric = mae if number else roc_auc

    def of(self, guess, part, of=None):
        i = of if of is not None else self.part[part]
        return self.metric([guess[k] for k in i], [self.label[k] for k in i])

    def interval(self, guess):
        draw, rows = random.Random(1), self.part["test"]
        found = sorted(x for x in (self.of(guess, "test", draw.choices(rows, k=len(rows))) for _ in range(1000)) if x == x)
        return found[len(found) // 40], found[-1 - len(found) // 40]


# ---- without learning ---------------------------------------------------------------------------------------------------
def baselines(rows, db, task):
    """Training labels by the driver; and of his results in the year before what the task is about."""
    train = [r for r in rows if r[5] == "train"]
    middle = statistics.median(r[4] for r in train)
    average = statistics.fmean(r[4] for r in train)
    mine = {}
    for r in train:
        mine.setdefault(r[0], []).append(r[4])
    event = {"position": "SELECT driverId, strftime('%s', date), positionOrder FROM results",
             "dnf": "SELECT driverId, strftime('%s', date), statusId != 1 FROM results",
             "top3": "SELECT driverId, strftime('%s', date), position <= 3 FROM qualifying"}[task]
    past = {}
    for d, t, x in db.execute(event):
        past.setdefault(d, []).append((float(t), float(x)))

    def year(r):
        x = [v for t, v in past.get(r[0], ()) if r[1] - 365 * DAY < t <= r[1]]
        return statistics.fmean(x) if x else middle if task == "position" else average
    return {"median of training": [middle] * len(rows), "driver's mean in training": [statistics.fmean(mine.get(r[0], [average])) for r in rows],
            "the year before": [year(r) for r in rows]}


# ---- counts, and trees --------------------------------------------------------------------------------------------------
def counts(rows, db):
    """Of each row: what the driver and his team did by then."""
    def table(sql):
        found = {}
        for key, t, *x in db.execute(sql):
            found.setdefault(key, []).append((float(t), [math.nan if v is None else float(v) for v in x]))
        for v in found.values():
            v.sort(key=lambda e: e[0])
        return found
    results = table("SELECT driverId, strftime('%s', date), grid, positionOrder, points, laps, position IS NULL, statusId != 1, constructorId FROM results")
    teams = table("SELECT constructorId, strftime('%s', date), grid, positionOrder, points, position IS NULL, statusId != 1 FROM results")
    qualifying = table("SELECT driverId, strftime('%s', date), position, position <= 3 FROM qualifying")
    standings = table("SELECT driverId, strftime('%s', date), position, points, wins FROM standings")
    born = dict(db.execute("SELECT driverId, strftime('%s', dob) FROM drivers"))

    def means(past, at, columns, windows):
        out = []
        for w in windows:
            some = [x for t, x in past if t > at - 365 * DAY] if w == "year" else [x for _, x in past[-w:]]
            for c in range(columns):
                known = [x[c] for x in some if x[c] == x[c]]
                out.append(statistics.fmean(known) if known else math.nan)
        return out
    made = []
    for d, at, behind, month, _, _ in rows:
        own = [e for e in results.get(d, ()) if e[0] <= at]
        lately = [e for e in own if e[0] > at - 365 * DAY]
        team = [e for e in teams.get(own[-1][1][6], ()) if e[0] <= at] if own else []
        made.append([behind, float(month), (at - float(born[d])) / DAY / 365, len(own), len(lately), (at - own[-1][0]) / DAY if own else math.nan]
                    + means(own, at, 6, (1, 3, 10, 30, "year", 1000)) + means(team, at, 5, (4, 20))
                    + means([e for e in qualifying.get(d, ()) if e[0] <= at], at, 2, (1, 5, 20, "year"))
                    + means([e for e in standings.get(d, ()) if e[0] <= at], at, 3, (1,)))
    return made


TREES = """
import json, sys, numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier as C, HistGradientBoostingRegressor as R
job = json.load(open(sys.argv[1]))
x, y, part = np.array(job["x"], float), np.array(job["y"]), np.array(job["part"])
train, out = part == "train", []
for seed in range(job["seeds"]):
    how = dict(max_iter=240, learning_rate=0.03, max_leaf_nodes=15, min_samples_leaf=30, max_features=0.5, early_stopping=False, random_state=seed)
    m = R(loss="absolute_error", **how) if job["number"] else C(**how)
    m.fit(x[train], y[train])
    steps = m.staged_predict(x) if job["number"] else (p[:, 1] for p in m.staged_predict_proba(x))
    out.append([p.tolist() for i, p in enumerate(steps) if i % 20 == 19])
json.dump(out, open(sys.argv[2], "w"))
"""


def trees(args, work, rows, db, number, judge):
    """Predictions by seed, each of as many trees as are best on validation."""
    job, out = os.path.join(work, "trees.json"), os.path.join(work, "trees.out.json")
    with open(job, "w", encoding="utf-8") as f:
        json.dump({"x": counts(rows, db), "y": [r[4] for r in rows], "part": [r[5] for r in rows], "seeds": args.seeds, "number": number}, f)
    subprocess.run([args.trees, "-c", TREES, job, out], check=True, env={**os.environ, "OMP_NUM_THREADS": str(args.threads)})
    with open(out, encoding="utf-8") as f:
        found = json.load(f)
    best = min if number else max
    return [best(steps, key=lambda g: judge.of(g, "val")) for steps in found]


# ---- the model ----------------------------------------------------------------------------------------------------------
def model(number):
    with open(os.path.join(TOP, "bench", "models", "f1_driver.gnn"), encoding="utf-8") as f:
        text = f.read()
    if number:
        return text
    for was, now in (("y: f32;", "y: class[C];"), ("-> f32[task] {", "-> f32[task, C] {"), ("past(1)", "past(C)"), ("linear(1)", "linear(C)"),
                     ("return 12 + 7 * sum(y, 1)", "return y"), ("loss l1    metric mae", "loss cross_entropy    metric roc_auc"),
                     ("best on val mae", "best on val roc_auc")):
        assert text.count(was) == 1, was
        text = text.replace(was, now)
    return text


def predictions(path):
    """A result for each row; of two classes how much the second one leads by."""
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<H", data[8:10])[0]
    shape = [int(k) for k in re.findall(r"\d+", re.search(rb"'shape': \((.*?)\)", data[:10 + n]).group(1).decode())]
    x = struct.unpack(f"<{(len(data) - 10 - n) // 4}f", data[10 + n:])
    return list(x) if len(shape) == 1 else [x[2 * i + 1] - x[2 * i] for i in range(shape[0])]


def run(*command):
    r = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if r.returncode:
        sys.exit(f"{' '.join(command)}\n{r.stdout}")
    return r.stdout


def learned(args, work, name, number):
    """Predictions by seed, of the epoch that was best on validation."""
    base = os.path.join(work, name)
    with open(base + ".map", "w", encoding="utf-8") as f:
        f.writelines(f"{column} float quantile\n" for column in NUMBERS)
    run(args.gnnc, "import", base + ".sqlite", "-o", base, "--force", "--standardize", "--unknown", "--map", base + ".map")
    with open(base + ".gnn", "w", encoding="utf-8") as f:
        f.write(model(number))
    run(args.gnnc, "--target=cpu", base + ".gnn", "-o", base + ".t")
    found = []
    for seed in range(args.seeds):
        run(base + ".t", "--data", base, "--seed", str(seed), "--threads", str(args.threads), "--checkpoint", base + ".ckpt")
        run(base + ".t", "predict", "--threads", str(args.threads), "--data", base, "--weights", base + ".ckpt", "--out", base + ".npy")
        found.append(predictions(base + ".npy"))
        print(f"  {name} seed {seed}", flush=True)
    return found


# ---- the table ----------------------------------------------------------------------------------------------------------
def line(name, guesses, judge):
    """Of several: mean and deviation; and all of them together."""
    def told(part):
        x = [judge.of(g, part) for g in guesses]
        return f"{statistics.fmean(x):.2f}" + (f" ± {statistics.stdev(x):.2f}" if len(x) > 1 else "")
    both = [statistics.fmean(x) for x in zip(*guesses)]
    low, high = judge.interval(both)
    return f"| {name} | {told('val')} | {told('test')} | {judge.of(both, 'test'):.2f} ({low:.2f} to {high:.2f}) |"


def measured(args, work, task, protocol):
    number = task == "position"
    rows = rows_of(args.data, task, protocol)
    name = f"{task}-{protocol}"
    db = database(args.data, os.path.join(work, name + ".sqlite"), rows, number, protocol)
    judge = Judge(rows, number)
    lines = [line("gnnc, `bench/models/f1_driver.gnn`", learned(args, work, name, number), judge)]
    if args.trees:
        lines.append(line("boosted trees on counts", trees(args, work, rows, db, number, judge), judge))
    lines += [line(what, [guess], judge) for what, guess in baselines(rows, db, task).items()]
    n = [sum(r[5] == p for r in rows) for p in ("train", "val", "test")]
    head = [f"## driver-{task}, {protocol}: {'MAE' if number else 'ROC-AUC x 100'}", "",
            f"{n[0]:,} rows to learn from, {n[1]:,} to choose by, {n[2]:,} to judge on.", "",
            f"| | validation | test, {args.seeds} seeds | test, seeds together (95 %) |", "|---|---|---|---|"]
    print("\n".join(head + lines), flush=True)
    return head + lines + [""]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True)
    p.add_argument("--gnnc", default=os.path.join(TOP, "build", "gnnc"))
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--tasks", default=",".join(TASKS))
    p.add_argument("--protocols", default="relbench,live")
    p.add_argument("--trees")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--work")
    p.add_argument("--out", default=os.path.join(TOP, "bench", "results", "relbench.md"))
    args = p.parse_args()
    told = []
    with tempfile.TemporaryDirectory() as tmp:
        work = args.work or tmp
        os.makedirs(work, exist_ok=True)
        for protocol in args.protocols.split(","):
            for task in args.tasks.split(","):
                told += measured(args, work, task, protocol)
    with open(args.out, "w", encoding="utf-8") as f:
        f.write("# F1: RelBench's tasks of drivers\n\nMade by `bench/relbench.py`, which tells the protocols. "
                "Lower is better of MAE, higher of ROC-AUC.\n\n" + "\n".join(told))


if __name__ == "__main__":
    main()
