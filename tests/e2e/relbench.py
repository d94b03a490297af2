#!/usr/bin/env python3
"""RelBench's folders: a small one in the form of its F1 is written with pyarrow (left out without it), imported with each of its
tasks, and learned.  usage: relbench.py GNNC TOP.  Prints `N passed, N failed`, and what it left out."""
import csv
import datetime
import json
import os
import random
import subprocess
import sys

GNNC, TOP = sys.argv[1:3]
failures, done = [], 0
MANIFEST = """name: rel-small
manifest_version: 1
description: 'Races of nobody''s: made up, in the form of the database of Formula 1, so that it
  has a line that is folded.'
val_timestamp: '2005-01-01'
test_timestamp: '2010-01-01'
tables:
  races:
    pkey: raceId
    time_col: date
    fkeys: {}
  drivers:
    pkey: driverId
    time_col: null
    fkeys: {}
  results:
    pkey: resultId
    time_col: date
    fkeys:
      raceId: races
      driverId: drivers
  circuits:
    pkey: circuitId
    time_col: null
    fkeys: {}
  rounds:
    pkey: roundId
    time_col: date
    fkeys:
      circuitId: circuits
  bookings:
    pkey: null
    time_col: date
    fkeys:
      roundId: rounds
      driverId: drivers
  entries:
    pkey: null
    time_col: date
    fkeys:
      roundId: rounds
      driverId: drivers
"""
POSITION = """name: driver-position
kind: forecast
task_type: regression
entity_table: drivers
entity_col: driverId
target_col: position
time_col: date
timedelta: 60 days
sql: |-
  SELECT t.timestamp as date, mean(re.positionOrder) as position,
  FROM timestamps t
manifest_version: 1
"""
WINS = POSITION.replace("driver-position", "driver-wins").replace("regression", "binary_classification").replace("target_col: position", "target_col: wins")
COLUMN = """name: results-points
kind: autocomplete
task_type: regression
entity_table: results
target_col: points
remove_columns:
- - results
  - positionOrder
- - drivers
  - code
"""
CIRCUITS = """name: driver-circuit
kind: forecast
task_type: link_prediction
target_col: circuitId
time_col: date
src_entity_table: drivers
src_entity_col: driverId
dst_entity_table: circuits
dst_entity_col: circuitId
eval_k: 4
timedelta: 60 days
sql: |-
  SELECT t.timestamp as date, en.driverId as driverId, LIST(DISTINCT ro.circuitId) as circuitId
  FROM timestamps t LEFT JOIN rounds ro ON ro.date > t.timestamp LEFT JOIN Entries en
manifest_version: 1
"""
N_CIRCUITS, TOP_K = 16, 4


def check(what, holds, told=""):
    global done
    done += 1
    if not holds:
        failures.append(what)
        print(f"FAILED {what}\n{told}")


def run(*command, code=0, env=None):
    r = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", env=env, check=False)
    check(f"{' '.join(command)}: exit {code}, not {r.returncode}", r.returncode == code, r.stdout)
    return r.stdout


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def calendar(races, n_drivers):
    """Rounds in a season's half of the circuits a day after each race, of which a driver enters those at the circuits he likes, which
    change slowly: (time, circuit) of each round, and (round, driver) of each entry."""
    draw, rounds, entries = random.Random(6), [], []
    likes = [draw.sample(range(N_CIRCUITS), 5) for _ in range(n_drivers)]
    for i, race in enumerate(races):
        for his in likes:
            if draw.random() < 0.1:
                his[draw.randrange(5)] = draw.randrange(N_CIRCUITS)
        for c in range(i % 2, N_CIRCUITS, 2):
            entries += [(len(rounds), d) for d, his in enumerate(likes) if c in his and draw.random() < 0.8]
            rounds.append((race + datetime.timedelta(days=1), c))
    return rounds, entries


def folder(at):
    """Drivers of higher numbers come in earlier; a race each two months."""
    import pyarrow as pa  # the helper's, not the compiler's
    import pyarrow.parquet as pq
    draw, n_drivers, first = random.Random(5), 12, datetime.datetime(2000, 1, 15)
    races = [first + datetime.timedelta(days=60 * i) for i in range(66)]
    order = {r: sorted(range(n_drivers), key=lambda d: -d + draw.gauss(0, 3)) for r in range(len(races))}
    rows = [(r, d, order[r].index(d) + 1) for r in range(len(races)) for d in range(n_drivers)]

    def table(path, **columns):
        os.makedirs(os.path.dirname(f"{at}/{path}"), exist_ok=True)
        pq.write_table(pa.table(columns), f"{at}/{path}.parquet", row_group_size=300)

    table("db/races", raceId=pa.array(range(len(races)), pa.int64()), date=pa.array(races, pa.timestamp("ns")),
          wet=pa.array([draw.random() < 0.2 for _ in races]))
    table("db/drivers", driverId=pa.array(range(n_drivers), pa.int32()), code=pa.array(["abc"[d % 3] for d in range(n_drivers)]).dictionary_encode(),
          dob=pa.array([datetime.date(1970, 1, 1 + d) for d in range(n_drivers)]), notes=pa.array([[1.0, d] for d in range(n_drivers)]))
    table("db/results", resultId=range(len(rows)), raceId=[r for r, _, _ in rows],  # a key that may be absent is a real
          driverId=pa.array([None if i == 700 else float(d) for i, (_, d, _) in enumerate(rows)], pa.float64()),
          date=pa.array([races[r] for r, _, _ in rows], pa.timestamp("us", "UTC")), positionOrder=pa.array([p for _, _, p in rows], pa.uint8()),
          points=pa.array([max(0, 11 - p) + 0.5 for _, _, p in rows]))
    parts = {"train": [], "val": [], "test": []}
    for r, race in enumerate(races[:-1]):
        part = "train" if race.year < 2005 else "val" if race.year < 2010 else "test"
        parts[part] += [(race, d, order[r + 1].index(d) + 1) for d in range(n_drivers)]
    for part, of in parts.items():
        given = {"date": pa.array([t for t, _, _ in of], pa.timestamp("ns")), "driverId": pa.array([d for _, d, _ in of])}
        table(f"tasks/driver-position/{part}", position=[float(p) for _, _, p in of], **given)
        hidden = {} if part == "test" else {"wins": [int(p <= 6) for _, _, p in of]}
        table(f"tasks/driver-wins/{part}", **given, **hidden)
    rounds, entries = calendar(races, n_drivers)
    table("db/circuits", circuitId=pa.array([100 + c for c in range(N_CIRCUITS)]), long=pa.array([float(c % 3) for c in range(N_CIRCUITS)]))
    table("db/rounds", roundId=range(len(rounds)), circuitId=[100 + c for _, c in rounds], date=pa.array([t for t, _ in rounds], pa.timestamp("us")))
    of_entries = {"roundId": [r for r, _ in entries], "driverId": [d for _, d in entries], "date": pa.array([rounds[r][0] for r, _ in entries], pa.timestamp("us"))}
    table("db/entries", **of_entries)
    table("db/bookings", **{k: v[:5] for k, v in of_entries.items()})
    for part, of in lists_of(races, rounds, entries, n_drivers).items():
        links(f"{at}/tasks/driver-circuit/{part}", of)
    for name, text in (("driver-position", POSITION), ("driver-wins", WINS), ("results-points", COLUMN), ("driver-circuit", CIRCUITS)):
        write(f"{at}/tasks/{name}/manifest.yaml", text)
    write(f"{at}/manifest.yaml", MANIFEST)
    return {k: len(v) for k, v in parts.items()}, lists_of(races, rounds, entries, n_drivers)


def lists_of(races, rounds, entries, n_drivers):
    """By part, (time, driver, circuits): those of the day after, of whom has none an empty list, or none at all; once one is there twice,
    and once an element is NULL."""
    parts = {"train": [], "val": [], "test": []}
    for i, race in enumerate(races):
        part = "train" if race.year < 2005 else "val" if race.year < 2010 else "test"
        for d in range(n_drivers):
            his = [100 + rounds[r][1] for r, who in entries if who == d and rounds[r][0] == race + datetime.timedelta(days=1)]
            parts[part].append((race, d, his or (None if d % 2 else [])))
    first = next(x for _, _, x in parts["train"] if x)
    first[:0] = [None, first[-1]]
    return parts


def told_lists(of):
    """What the task has of them: rows by time and driver, each with its circuits."""
    return [(t, d, sorted({c for c in x if c})) for t, d, x in sorted(of, key=lambda row: row[:2]) if x]


def average_precision(guess, circuits):
    hits = [c in circuits for c in guess[:TOP_K]]
    return sum(sum(hits[:i + 1]) / (i + 1) for i, hit in enumerate(hits) if hit) / min(TOP_K, len(circuits))


def mean(values):
    return sum(values) / len(values)


def ranked(lists):
    """Lists of circuits, from the folder to predictions: what simple guesses and the model reach is what is counted here."""
    told = run(GNNC, "import", "small", "-o", "ranks", "--predict", "driver-circuit", "--scaffold", "ranks.gnn")
    of = {part: told_lists(x) for part, x in lists.items()}
    n = [len(of[p]) for p in of]
    count = [sum(len(x) for _, _, x in of[p]) for p in of]
    popular = {c: sum(c in x for _, _, x in of["train"]) for c in range(100, 100 + N_CIRCUITS)}
    popular = sorted(popular, key=lambda c: (-popular[c], c))
    most = [mean([average_precision(popular, x) for _, _, x in of[p]]) for p in ("val", "test")]
    for line in (f"split      1 split, first: {n[0]} train, {n[1]} validation, {n[2]} test", f"edge task__circuits: task -> circuits: {sum(count)}  (",
                 f"split      1 split, first: {count[0]} train, {count[1]} validation, {count[2]} test", f"edge task__drivers: task -> drivers: {sum(n)}",
                 f"{n[0]} rows to learn from, {n[1]} to choose by, {n[2]} to judge on", "task task: driver-circuit RANK TOP 4",
                 f"most popular of all                      {most[0]:10.4g}{most[1]:10.4g}", "latest of its drivers", "validation from 2005-01-01 on",
                 "column 'circuitId': 1 elements of lists are NULL and left out", "1 elements are in their list already and count once"):
        check(f"it says '{line}'", line in told, told)
    with open("ranks.gnn", encoding="utf-8") as f:
        check("the rows are read that the task's SQL names", "g.entries__driverId" in f.read() and "bookings" not in told.split("task task")[1])
    run(GNNC, "ranks.gnn", "-o", "ranker")
    last = json.loads(run("./ranker", "--data", "ranks", "--epochs", "4", "--checkpoint", "ranks.ckpt", "--threads", "2", "--log=json").strip().splitlines()[-1])
    check("it ranks better than what nobody had to learn", len(last["baselines"]) == 4 and
          all(last[p]["map"] > b[p]["map"] + 0.1 for b in last["baselines"] for p in ("val", "test")), str(last))
    # Every circuit is scored for those who are asked in test: the folder's lists are all circuits there.
    run("cp", "-r", "small", "every")
    links("every/tasks/driver-circuit/test", [(t, d, list(range(100, 100 + N_CIRCUITS))) for t, d, _ in of["test"]])
    run(GNNC, "import", "every", "-o", "all", "--predict", "driver-circuit")
    run("./ranker", "predict", "--data", "all", "--weights", "ranks.ckpt", "--out", "scores.csv")
    scores = {}
    with open("scores.csv", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            scores.setdefault(int(row["source"]), []).append((-float(row["score"]), int(row["destination"])))
    behind = sum(n[:2])
    found = mean([average_precision([c for _, c in sorted(scores[behind + i])], x) for i, (_, _, x) in enumerate(of["test"])])
    check(f"MAP@{TOP_K} is that of the scores: {found}", abs(found - last["test"]["map"]) < 1e-4, str(last))


def links(path, of, kind=None):
    """A part of the task: its lists as pyarrow writes them."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    os.makedirs(os.path.dirname(path), exist_ok=True)
    pq.write_table(pa.table({"date": pa.array([t for t, _, _ in of], pa.timestamp("ns")), "driverId": pa.array([d for _, d, _ in of]),
                             "circuitId": pa.array([x for _, _, x in of], kind or pa.list_(pa.int64()))}), path + ".parquet", row_group_size=100)


def whole(n):
    told = run(GNNC, "import", "small", "-o", "data")
    for line in ("node races: 66, at date  (it is said to be so)", "node drivers: 12\n", "node results: 792, at date  (it is said to be so)",
                 "edge results__driverId: results -> drivers: 791  (column 'driverId', absent in 1 rows)", "code       cat, 3 categories",
                 "dob        time", "wet        float", "drivers: column 'notes' is left out: it is binary data"):
        check(f"it says '{line}'", line in told, told)
    told = run(GNNC, "import", "small", "-o", "task", "--predict", "driver-position", "--scaffold", "small.gnn")
    for line in ("y          float", f"split      1 split, first: {n['train']} train, {n['val']} validation, {n['test']} test",
                 f"edge task__drivers: task -> drivers: {sum(n.values())}", f"node task: {sum(n.values())}, at time"):
        check(f"it says '{line}'", line in told, told)
    run(GNNC, "small.gnn", "-o", "model")
    told = run("./model", "--data", "task", "--epochs", "30", "--checkpoint", "small.ckpt", "--threads", "2")
    mae = float(told.strip().splitlines()[-1].split("test")[-1].split("mae ")[-1].split()[0])
    check("positions are learned", mae < 2.4, told)
    run("./model", "predict", "--data", "task", "--at", "2012-01-01", "--out", "at.csv")


def other_tasks(n):
    told = run(GNNC, "import", "small", "-o", "wins", "--predict", "driver-wins", "--task", "who")
    for line in ("node who: ", f"y          class, 2 classes, {n['test']} without label", "edge who__drivers: who -> drivers: "):
        check(f"it says '{line}'", line in told, told)
    told = run(GNNC, "import", "small", "-o", "points", "--predict", "results-points")
    check("a column", "validation from 2005-01-01 on" in told and "test from 2010-01-01 on" in told and "positionOrder  " not in told and
          "code  " not in told, told)
    told = run(GNNC, "import", "small", "-o", "asked", "--predict", "COUNT(results.*, 0, 60) > 0 FOR EACH drivers")
    check("a question of one's own", "task task: COUNT(results.*" in told, told)
    told = run(GNNC, "import", "small", "-o", "other", "--row-time", "results=none", "--row-time", "drivers.dob")
    check("times that are said", "node drivers: 12, at dob" in told and "node results: 792, at row_time" in told, told)


def broken():
    """Each is refused with the place, and nothing is left."""
    for name, at, text, says in (
            ("no table", "manifest.yaml", MANIFEST.replace("driverId: drivers", "driverId: riders"), "manifest.yaml:21: results: there is no table 'riders'"),
            ("no column", "manifest.yaml", MANIFEST.replace("pkey: raceId", "pkey: race"), "manifest.yaml:9: races: there is no column 'race'"),
            ("no time", "manifest.yaml", MANIFEST.replace("time_col: date", "time_col: when"), "races: there is no column 'when'"),
            ("no file", "manifest.yaml", MANIFEST + "  laps:\n    pkey: null\n    time_col: null\n    fkeys: {}\n", "laps.parquet"),
            ("no YAML", "manifest.yaml", "name: [1, 2\ntables:", "manifest.yaml:"), ("nothing", "manifest.yaml", "", "manifest.yaml:1: is empty"),
            ("a list", "manifest.yaml", "- a\n", "no manifest"), ("keys twice", "manifest.yaml", "a: 1\na: 2\n", "manifest.yaml:2: a key is repeated"),
            ("deep", "manifest.yaml", "[" * 100 + "]" * 100, "nested too deeply"),
            ("no Parquet", "db/races.parquet", "PAR1 is what it says", "races.parquet: "),
            ("a kind", "tasks/driver-wins/manifest.yaml", WINS.replace("binary_classification", "multilabel"), "task 'driver-wins': 'task_type' is none of")):
        run("cp", "-r", "small", "broken")
        write(f"broken/{at}", text)
        told = run(GNNC, "import", "broken", "-o", "nothing", "--predict", "driver-wins", code=1)
        check(f"{name}: told", says in told and not [n for n in os.listdir(".") if n.startswith("nothing")], told)
        run("rm", "-r", "broken")


def broken_lists(lists):
    """Each is refused with file, row and column, and nothing is left."""
    import pyarrow as pa
    task = "tasks/driver-circuit"
    val, test = lists["val"], lists["test"]
    at = next(i for i, (_, _, x) in enumerate(val) if x)
    time, driver, x = val[at]

    def changed(row):
        return val[:at] + [row] + val[at + 1:]
    for what, part, of, kind, says in (
            ("a list of numbers", "val", [(t, d, x and [c + 0.5 for c in x]) for t, d, x in val], pa.list_(pa.float64()),
             f"broken/{task}/val.parquet: column circuitId is list<element: double>, no list of whole numbers"),
            ("a list of texts", "test", [(t, d, x and [str(c) for c in x]) for t, d, x in test], pa.large_list(pa.string()), f"broken/{task}/test.parquet: column circuitId is"),
            ("a list of lists", "test", [(t, d, x and [x]) for t, d, x in test], pa.list_(pa.list_(pa.int64())), f"broken/{task}/test.parquet: column circuitId is"),
            ("no list", "test", [(t, d, 100) for t, d, _ in test], pa.int64(), f"broken/{task}/test.parquet: column circuitId is int64, no list"),
            ("a number of 64 bits", "val", changed((time, driver, [2**63])), pa.list_(pa.uint64()), f"broken/{task}/val.parquet: "),
            ("no such circuit", "val", changed((time, driver, x + [99])), None, f"broken/{task}/val.parquet: row {at + 1}: column 'circuitId': 99 is no key of circuits"),
            ("no such driver", "val", changed((time, 77, x)), None, f"broken/{task}/val.parquet: row {at + 1}: column 'driverId': 77 is no key of drivers"),
            ("no driver", "val", changed((time, None, x)), None, f"driver-circuit: val.parquet: row {at + 1}: its entity is NULL"),
            ("no time", "val", changed((None, driver, x)), None, f"driver-circuit: val.parquet: row {at + 1}: it has no time"),
            ("asked twice", "val", val + [val[at]], None, f"driver-circuit: val.parquet: row {len(val) + 1}: its entity is asked at its time twice: row {at + 1} of val does"),
            ("empty lists", "test", [(t, d, None) for t, d, _ in test], None, "none is left to judge on")):
        run("cp", "-r", "small", "broken")
        links(f"broken/{task}/{part}", of, kind)
        told = run(GNNC, "import", "broken", "-o", "nothing", "--predict", "driver-circuit", code=1)
        check(f"{what}: told", says in told and not [n for n in os.listdir(".") if n.startswith("nothing")], told)
        run("rm", "-r", "broken")
    for old, new, says in (("eval_k: 4", "eval_k: 0", "'eval_k' is no number of 1 to 1000"), ("eval_k: 4", "eval_k: 4x", "'eval_k' is no number"),
                           ("60 days", "soon", "'timedelta' is no time such as '365 days'"), ("60 days", "-60 days", "'timedelta' is no time"),
                           ("table: circuits", "table: tracks", "'src_entity_table' or 'dst_entity_table' is no table"),
                           ("dst_entity_col: circuitId", "dst_entity_col: driverId", "are three columns"), ("dst_entity_col", "dst_entity", "'dst_entity_col' is missing"),
                           ("dst_entity_col: circuitId", "dst_entity_col: tracks", "train.parquet: there is no column 'tracks', the answers")):
        run("cp", "-r", "small", "broken")
        write(f"broken/{task}/manifest.yaml", CIRCUITS.replace(old, new))
        told = run(GNNC, "import", "broken", "-o", "nothing", "--predict", "driver-circuit", code=1)
        check(f"{new}: told", says in told and not os.path.exists("nothing"), told)
        run("rm", "-r", "broken")


def other_lists(lists):
    """What leads to no row goes where that is wished; lists that no table tells of have popularity alone, and no starter."""
    run("cp", "-r", "small", "other_lists")
    links("other_lists/tasks/driver-circuit/val", [(t, d, x and x + [99]) for t, d, x in lists["val"]])
    n = sum(len(set(x)) for _, _, x in told_lists(lists["val"]))
    for how in (("--dangling", "keep"), ("--dangling", "drop"), ("--skip-bad",)):
        told = run(GNNC, "import", "other_lists", "-o", "lists", "--force", "--predict", "driver-circuit", *how)
        check(f"{how}", f" train, {n} validation, " in told, told)
    write("other_lists/manifest.yaml", MANIFEST.replace("      roundId: rounds\n", ""))
    told = run(GNNC, "import", "other_lists", "-o", "lists", "--force", "--predict", "driver-circuit", "--skip-bad")
    check("nothing tells", "most popular of all" in told and "latest of its" not in told, told)
    told = run(GNNC, "import", "other_lists", "-o", "lists", "--force", "--predict", "driver-circuit", "--skip-bad", "--scaffold", "none.gnn", code=1)
    check("no starter", "no table with times refers both to who is asked about and to 'circuits'" in told and not os.path.exists("none.gnn"), told)
    told = run(GNNC, "import", "small", "-o", "lists", "--force", "--predict", "driver-circuit", "--label-history", code=1)
    check("no history of lists", "--label-history: the answers of a task that ranks are lists" in told, told)
    told = run(GNNC, "import", "small", "-o", "new", "--predict", "driver-circuit", "--like", "ranks.ckpt")
    check("like those of a model", "edge task__circuits: task -> circuits" in told, told)


def damaged():
    """A table of which only the last rows cannot be read is not taken for a shorter one."""
    import pyarrow.parquet as pq
    run("cp", "-r", "small", "broken")
    path = "broken/db/results.parquet"
    group = pq.ParquetFile(path).metadata.row_group(2)
    with open(path, "r+b") as f:
        for k in range(group.num_columns):
            c = group.column(k)
            f.seek(min(x for x in (c.dictionary_page_offset, c.data_page_offset) if x))
            f.write(b"\xff" * 16)
    told = run(GNNC, "import", "broken", "-o", "nothing", code=1)
    check("damaged rows are told", "results.parquet: " in told and not os.path.exists("nothing"), told)
    run("rm", "-r", "broken")


def without_pyarrow():
    os.makedirs("bin", exist_ok=True)
    write("bin/python3", "#!/bin/sh\nexit 3\n")
    os.chmod("bin/python3", 0o755)
    write("plain/manifest.yaml", MANIFEST)
    told = run(GNNC, "import", "plain", "-o", "nothing", code=1, env=dict(os.environ, PATH=os.path.abspath("bin") + ":" + os.environ["PATH"]))
    check("without pyarrow", told.strip() == "gnnc import: error: Parquet files are read by pyarrow, which python3 does not have: "
          "python3 -m pip install pyarrow", told)


def too_large():
    """Keys are compared with each other: of 200,000 of them it took minutes."""
    write("large/manifest.yaml", "".join(f"k{i}: 1\n" for i in range(17000)))
    check("a manifest that is too large", "manifest.yaml:16384: nested too deeply, or too large" in run(GNNC, "import", "large", "-o", "nothing", code=1))


def with_modules_beside():
    """Folders that come from elsewhere may hold Python files: no module is taken from where gnnc runs."""
    write("from_elsewhere/manifest.yaml", MANIFEST)
    for module in ("json", "struct", "pyarrow", "numpy"):
        write(f"from_elsewhere/{module}.py", "open('taken', 'w').close()\n")
    subprocess.run([GNNC, "import", ".", "-o", "nothing"], cwd="from_elsewhere", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    check("no module of the folder runs", not os.path.exists("from_elsewhere/taken"))


def main():
    if "without libyaml" in subprocess.run([GNNC, "import", os.path.join(TOP, "models"), "-o", "x"], stderr=subprocess.PIPE, text=True, check=False).stderr:
        print("LEFT OUT: RelBench's folders: this gnnc was built without libyaml\n0 passed, 0 failed")
        return False
    without_pyarrow()
    with_modules_beside()
    too_large()
    if subprocess.run(["python3", "-c", "import pyarrow"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("LEFT OUT: RelBench's folders: python3 has no pyarrow")
    else:
        n, lists = folder("small")
        whole(n)
        other_tasks(n)
        ranked(lists)
        broken_lists(lists)
        other_lists(lists)
        broken()
        damaged()
    print(f"{done - len(failures)} passed, {len(failures)} failed")
    return bool(failures)


sys.exit(main())
