#!/usr/bin/env python3
"""Five databases, from the file to a result: imported whole, learned by the starter as `gnnc import --scaffold` prints it,
beside what is reached without learning.

usage: bench/databases.py --data DIR [--gnnc build/gnnc] [--only sakila] [--seed 0] [--work DIR] [--out FILE]

DIR has northwind/northwind.sqlite, sakila/sakila.sqlite, movielens-latest-small/movielens-latest-small.sqlite,
nycflights13/nycflights13.sqlite and completejourney/completejourney.sqlite (which bench/completejourney.py makes); one that is
not there is left out, and said so.  Of each import: rows of all tables, seconds, and memory.  Exit 1 where a result is no better than
what is reached without learning.
"""
import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ASKED = {
    "northwind": "Order_Details.UnitPrice",
    "sakila": "payment.amount",
    "movielens-latest-small": "ratings.rating",
    "nycflights13": "flights.arr_delay > 15 KNOWN AFTER dep_time, dep_delay, arr_time, arr_delay, air_time",
    "completejourney": "COUNT(coupon_redemptions.*, 0, 30, days) > 0 FOR EACH households",
}
OPTIONS = {"completejourney": ["--dangling", "keep", "--label-history"]}


def run(*command):
    """What it printed; seconds of the clock and of the processors, and its most memory in MiB."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as out:
        p = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        _, p.returncode, used = os.wait4(p.pid, 0)
        out.seek(0)
        told = out.read()
    if p.returncode:
        sys.exit(f"{' '.join(command)}\n{told}")
    return told, (time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def rows_of(source):
    """Rows of all tables."""
    db = sqlite3.connect(f"file:{source}?mode=ro&immutable=1", uri=True)
    tables = [t for t, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
    n = sum(db.execute('SELECT count(*) FROM "%s"' % t.replace('"', '""')).fetchone()[0] for t in tables)
    db.close()
    return n


def guesses(told):
    """(name, validation, test) of each line below "without learning" of the import."""
    lines = told[told.index("without learning, "):].splitlines()
    metric = lines[0].split()[2]
    found = []
    for text in lines[1:]:
        words = text.split()
        if len(words) < 3:
            break
        found.append((" ".join(words[:-2]), float(words[-2]), float(words[-1])))
    return metric, found


def measured(args, name, work):
    source = os.path.join(args.data, name, name + ".sqlite")
    if not os.path.exists(source):
        print(f"{name}: {source} is not there", flush=True)
        return None
    base = os.path.join(work, name)
    told, imported = run(args.gnnc, "import", source, "-o", base, "--force", "--scaffold", base + ".gnn", "--predict", ASKED[name],
                         *OPTIONS.get(name, []))
    run(args.gnnc, "--target=cpu", base + ".gnn", "-o", base + ".t")
    log, _ = run(base + ".t", "--data", base, "--seed", str(args.seed), "--log=json", "--checkpoint", base + ".ckpt")
    metric, found = guesses(told)
    last = [e for e in map(json.loads, (x for x in log.splitlines() if x.startswith("{"))) if "test" in e][-1]
    whole, processor, memory = imported
    rows = rows_of(source)
    imported = f"Imported: {rows:,} rows in {whole:.1f} s ({processor:.1f} s of the processors), {rows / whole / 1e6:.2f} M rows/s, {memory:.0f} MiB."
    return metric, imported, last["val"][metric], last["test"][metric], found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True)
    p.add_argument("--gnnc", default=os.path.join(TOP, "build", "gnnc"))
    p.add_argument("--only", choices=list(ASKED))
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--work")
    p.add_argument("--out", help="default: bench/results/databases.md, where all five are measured")
    args = p.parse_args()
    if not args.out and not args.only:
        args.out = os.path.join(TOP, "bench", "results", "databases.md")
    told, missed = ["# Five databases, by their starters as printed", "", f"`bench/databases.py`, seed {args.seed}.", ""], []
    with tempfile.TemporaryDirectory() as tmp:
        work = args.work or tmp
        os.makedirs(work, exist_ok=True)
        for name in [args.only] if args.only else ASKED:
            result = measured(args, name, work)
            if not result:
                continue
            metric, imported, val, test, found = result
            asked = f"`{ASKED[name]}`" + (f" `{' '.join(OPTIONS[name])}`" if name in OPTIONS else "")
            told += [f"## {name}: {asked}, {metric}", "", imported, "", "| | validation | test |", "|---|---|---|",
                     f"| the starter | {val:.4g} | {test:.4g} |"] + [f"| {n} | {a:.4g} | {b:.4g} |" for n, a, b in found] + [""]
            # nothing is below 0: as near as numbers of 24 bits come to it
            better = (lambda a, b: a < b or b == 0 and a < 1e-6) if metric == "mae" else (lambda a, b: a > b)
            missed += [f"{name}: {n} reaches {b:.4g}, the starter {test:.4g}" for n, _, b in found if not better(test, b)]
            print("\n".join(told[-len(found) - 8:]), flush=True)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            f.write("\n".join(told))
    print("\n".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
