#!/usr/bin/env python3
"""gnnc import of databases.  usage: databases.py GNNC TOP.  Prints `N passed, N failed`."""
import filecmp
import os
import sqlite3
import subprocess
import sys

GNNC, TOP = sys.argv[1:3]
failures, done = [], 0


def check(what, holds, told=""):
    global done
    done += 1
    if not holds:
        failures.append(what)
        print(f"FAILED {what}\n{told}")


def run(*command, **more):
    r = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", **more)
    return r.returncode, r.stdout


def imports(source, to, *options):
    return run(GNNC, "import", source, "-o", to, "--force", *options)


def refused(what, source, *says, options=()):
    """Ends with status 1, says so, and leaves nothing behind."""
    rc, told = imports(source, "nothing", *options)
    left = [n for n in os.listdir(".") if n.startswith("nothing")]
    check(what, rc == 1 and all(s in told for s in says) and not left, f"{rc} {left} {told}")


def script(of):
    with open(os.path.join(TOP, "tests", "fixtures", "shop.sql"), encoding="utf-8") as f:
        return f.read().replace(f"--{of} ", "")


def database(name, sql):
    db = sqlite3.connect(name)
    db.executescript(sql)
    db.commit()
    db.close()


# ---- SQLite -----------------------------------------------------------------------------------------------------------
def sqlite_whole():
    database("shop.sqlite", script("SQLITE"))
    rc, told = imports("shop.sqlite", "shop")
    check("a whole database", rc == 0, told)
    for line in ("node Order_Lines: 2400, with names", "edge returned__order_id_line: returned -> Order_Lines: 4  ",
                 "edge category__parent: category -> category: 3  ", "edge orders__payer: orders -> customer: 1091  ",
                 "edge store__boss: store -> staff: 2  ", "id         id  (key of the table)", "label      class, 2 classes",
                 "rating_missing cat, 2 categories", "'expensive' is left out: it is a view",
                 "orders: column 'net' is left out: it is computed from others",
                 "customer: column 'photo' is left out: nearly each row has a text of its own"):
        check(f"it says '{line}'", line in told, told)
    with open("shop/node.Order_Lines.names.txt", encoding="utf-8") as f:
        check("keys of two columns are names", f.read().splitlines()[:3] == ["1,1", "1,2", "2,1"])
    learn()
    libraries = run("ldd", "shop.model")[1]
    check("a program without the databases' libraries", "sqlite" not in libraries and "libpq" not in libraries, libraries)


def learn():
    rc, told = imports("shop.sqlite", "learned", "--split", "customer=80/10/10", "--standardize", "--scaffold", "shop.gnn")
    check("a starter model", rc == 0, told)
    rc, told = run(GNNC, "shop.gnn", "-o", "shop.model")
    check("it compiles", rc == 0, told)
    rc, told = run("./shop.model", "--data", "learned", "--epochs", "4", "--checkpoint", "none")
    last = told.strip().splitlines()[-1] if told.strip() else ""
    check("it learns what only the orders tell", rc == 0 and float(last.split("test")[-1].split("accuracy ")[-1].split()[0]) > 0.9, told)
    rc, told = imports("shop.sqlite", "again", "--like", "learned")
    check("rows are made as others were", rc == 0 and filecmp.cmp("again/node.customer.rating.npy",
                                                                   "learned/node.customer.rating.npy", False), told)


def sqlite_rules():
    database("rules.db", """CREATE TABLE a (n INTEGER PRIMARY KEY, "two words" TEXT); CREATE TABLE b (x, a_n INTEGER, "when" TEXT);
        INSERT INTO a VALUES (1, 'p'), (2, 'q'); INSERT INTO b VALUES (1.5, 1, '2020-01-01'), (2, 3, '2020-01-02'), (NULL, NULL, NULL);""")
    with open("map", "w", encoding="utf-8") as f:
        f.write("b.a_n -> a # not declared\na.two_words cat unknown\n")
    refused("a reference to no row", "rules.db", "b: row 3: column 'a_n': 3 is no key of a (1 bad row", options=("--map", "map"))
    for how, says in (("keep", "edge b__a_n: b -> a: 1  (column 'a_n', absent in 1 rows, 1 lead to no row)"),
                      ("drop", "node b: 2\n")):
        rc, told = imports("rules.db", how, "--map", "map", "--dangling", how)
        check(f"--dangling {how}", rc == 0 and says in told and "two_words  cat, 3 categories" in told, told)
    refused("--dangling stop", "rules.db", "1 references lead to no row (b: row 3",
            options=("--map", "map", "--dangling", "stop", "--skip-bad"))


def sqlite_hostile():
    with open("none.sqlite", "w", encoding="utf-8") as f:
        f.write("no database at all " * 100)
    refused("no database", "none.sqlite", "none.sqlite: file is not a database")
    refused("no file", "absent.db", "absent.db: cannot open")
    with open("shop.sqlite", "rb") as f, open("cut.sqlite", "wb") as g:
        g.write(f.read(os.path.getsize("shop.sqlite") // 2))
    refused("half a database", "cut.sqlite", "malformed")
    db = sqlite3.connect("shop.sqlite", isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    refused("a database that is locked", "shop.sqlite", "database is locked")
    db.close()
    for name, sql, says in (
            ("nul", "INSERT INTO t VALUES (7, CAST(x'610062' AS TEXT), 1)", "t: row 2: key 7: column 'name': 'a' is binary: it holds a NUL"),
            ("bytes", "INSERT INTO t VALUES (7, CAST(x'ff' AS TEXT), 1)", "t: row 2: key 7: column 'name': "),
            ("number", "INSERT INTO t VALUES (7, 'a', 'many')", "t: row 2: key 7: column 'n': 'many' is not a number"),
            ("blob", "INSERT INTO t VALUES (7, x'00', 1)", "t: row 2: key 7: column 'name': a blob is binary data"),
            ("broken", "CREATE TABLE u (t INTEGER REFERENCES t(n)); INSERT INTO t VALUES (7, '', 1), (8, '', 1)",
             "t: row 3: key 8: its key 1 is repeated: row 2 has it")):
        database(f"{name}.db", f"CREATE TABLE t (k INTEGER PRIMARY KEY, name TEXT, n INTEGER); INSERT INTO t VALUES (1, 'x', 0); {sql}")
        refused(f"a hostile {name}", f"{name}.db", says)
    database("wide.db", "CREATE TABLE t (" + ", ".join(f"c{i} INTEGER" for i in range(1500)) + ");"
             "INSERT INTO t (c0, c1499) VALUES (1, 2)")
    rc, told = imports("wide.db", "wide")
    check("a table of many columns", rc == 0 and "c1499      float" in told, told[-2000:])
    database("empty.db", "CREATE TABLE a (k INTEGER PRIMARY KEY, x TEXT); CREATE TABLE b (a INTEGER REFERENCES a)")
    rc, told = imports("empty.db", "empty")
    check("tables without rows", rc == 0 and "edge b__a: b -> a: 0" in told, told)


def main():
    if "without libsqlite3" in imports("a.db", "x")[1]:
        print("0 passed, 0 failed (this gnnc was built without libsqlite3)")
        return "GNNC_CI" in os.environ
    sqlite_whole()
    sqlite_rules()
    sqlite_hostile()
    print(f"{done - len(failures)} passed, {len(failures)} failed")
    return bool(failures)


sys.exit(main())
