#!/usr/bin/env python3
"""RelBench's folders: a small one in the form of its F1 is written with pyarrow (left out without it), imported with each of its
tasks, and learned.  usage: relbench.py GNNC TOP.  Prints `N passed, N failed`, and what it left out."""
import datetime
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
    for name, text in (("driver-position", POSITION), ("driver-wins", WINS), ("results-points", COLUMN)):
        write(f"{at}/tasks/{name}/manifest.yaml", text)
    write(f"{at}/manifest.yaml", MANIFEST)
    return {k: len(v) for k, v in parts.items()}


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
            ("links", "tasks/driver-wins/manifest.yaml", WINS.replace("binary_classification", "link_prediction"), "task 'driver-wins': 'task_type' is none of")):
        run("cp", "-r", "small", "broken")
        write(f"broken/{at}", text)
        told = run(GNNC, "import", "broken", "-o", "nothing", "--predict", "driver-wins", code=1)
        check(f"{name}: told", says in told and not [n for n in os.listdir(".") if n.startswith("nothing")], told)
        run("rm", "-r", "broken")


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
        n = folder("small")
        whole(n)
        other_tasks(n)
        broken()
        damaged()
    print(f"{done - len(failures)} passed, {len(failures)} failed")
    return bool(failures)


sys.exit(main())
