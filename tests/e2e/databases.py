#!/usr/bin/env python3
"""gnnc import of databases: SQLite, and a PostgreSQL server of its own on a private socket (left out where there is none, but
for CI).  usage: databases.py GNNC TOP [ROWS].  ROWS: of the table that is read in little memory, and of nothing else.  Prints `N passed, N failed`, and what it left out."""
import filecmp
import glob
import json
import os
import resource
import shutil
import socket
import struct
import sqlite3
import subprocess
import sys
import tempfile
import threading

from checks import check, end

GNNC, TOP = sys.argv[1:3]
MANY, ROOM = 1_100_000, 20 << 20  # so many rows, in so many bytes besides files


def run(*command, **more):
    r = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", **more)
    return r.returncode, r.stdout


def imports(source, to, *options, **more):
    return run(GNNC, "import", source, "-o", to, "--force", *options, **more)


def refused(what, source, *says, options=()):
    """Ends with status 1, says so, and leaves nothing behind."""
    rc, told = imports(source, "nothing", *options)
    left = [n for n in os.listdir(".") if n.startswith("nothing")]
    check(what, rc == 1 and all(s in told for s in says) and not left, f"{rc} {left} {told}")


def same(one, other):
    names = sorted(os.listdir(one))
    if names != sorted(os.listdir(other)):
        return str(set(names) ^ set(os.listdir(other)))
    return ", ".join(filecmp.cmpfiles(one, other, names, shallow=False)[1])


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
    rc, told = run("./shop.model", "--data", "learned", "--epochs", "10", "--checkpoint", "none")
    last = told.strip().splitlines()[-1] if told.strip() else ""
    check("it learns what only the orders tell", rc == 0 and float(last.split("test")[-1].split("roc_auc ")[-1].split()[0]) > 0.95, told)
    shutil.copy("shop.sqlite", "sent.sqlite")
    database("sent.sqlite", "ALTER TABLE orders ADD COLUMN sent TIMESTAMP; UPDATE orders SET sent = placed")
    rc, told = imports("sent.sqlite", "other", "--split", "customer=80/10/10", "--standardize", "--row-time", "days.noon",
                       "--row-time", "orders.sent")
    check("other row times", rc == 0 and "node days: 7, at noon  (it is said to be so)" in told and
          "which is of 2024-02-29): it is not read for them; if it says when rows were written, --row-time customer=none" in told, told)
    rc, told = imports("sent.sqlite", "twice", "--row-time", "orders.sent", "--row-time", "orders=none")
    check("a table has one row time", rc == 2 and "--row-time orders=none: its table is named twice" in told, told)
    check("data that happened at another time are refused", "rows of 'orders' happened at 'sent', and the model (shop.gnn) reads them by "
          "'placed'" in run("./shop.model", "--data", "other", "--checkpoint", "none")[1])
    with open("shop.gnn", encoding="utf-8") as f, open("forgets.gnn", "w", encoding="utf-8") as g:
        g.write(f.read().replace("g.orders.placed }", "}").replace("g.customer.since,", "g.customer.since").replace("    placed: time\n", "")
                .replace("orders_age(f32(now[g.orders] - g.orders.placed - 1e11)) + ", ""))
    rc, told = run(GNNC, "check", "forgets.gnn", "--specialize=learned")
    check("a time that the model does not list", rc == 1 and "rows of 'orders' have the row time 'placed' in the data" in told, told)
    rc, told = imports("shop.sqlite", "again", "--like", "learned")
    check("rows are made as others were", rc == 0 and filecmp.cmp("again/node.customer.rating.npy",
                                                                   "learned/node.customer.rating.npy", False), told)


def sqlite_rules():
    database("rules.db", """CREATE TABLE a (n INTEGER PRIMARY KEY, "two words" TEXT); CREATE TABLE b (x, a_n INTEGER, "when" TEXT);
        INSERT INTO a VALUES (1, 'p'), (2, 'q'); INSERT INTO b VALUES (1.5, 1, '2020-01-01'), (2, 3, '2020-01-02'), (NULL, NULL, NULL);""")
    with open("map", "w", encoding="utf-8") as f:
        f.write("b.a_n -> a # not declared\na.two_words cat unknown\n")
    database("reals.db", REALS)
    rc, told = imports("reals.db", "reals", *REALS_HOW)
    check("reals as names", rc == 0, told)
    if rc == 0:
        reals("reals")
    refused("a reference to no row", "rules.db", "b: row 3: column 'a_n': 3 is no key of a (1 bad row", options=("--map", "map"))
    for how, says in (("keep", "edge b__a_n: b -> a: 1  (column 'a_n', absent in 1 rows, 1 lead to no row)"),
                      ("drop", "node b: 2\n")):
        rc, told = imports("rules.db", how, "--map", "map", "--dangling", how)
        check(f"--dangling {how}", rc == 0 and says in told and "two_words  cat, 3 categories" in told, told)
    refused("--dangling stop", "rules.db", "1 references lead to no row (b: row 3",
            options=("--map", "map", "--dangling", "stop", "--skip-bad"))


REALS = """CREATE TABLE r (k DOUBLE PRECISION PRIMARY KEY, x DOUBLE PRECISION);
    INSERT INTO r VALUES (0.1, 0.1), (0.30000000000000004, 0.3), (0.3, 0.30000000000000004), (1e22, 1e-7), (100000, 123456789.125), (0.3333333333333333, 2.5);
    CREATE TABLE item (k NUMERIC(10, 2) PRIMARY KEY, weight REAL, price NUMERIC(20, 4));
    INSERT INTO item VALUES (1.50, 0.1, 1.50), (2.00, 0.7, 12345678901234.5), (10.25, 0.3, 3.00), (3.00, NULL, -0.0010);
    CREATE TABLE sale (k NUMERIC(10, 2) PRIMARY KEY, item NUMERIC(12, 3) REFERENCES item, timestamp NUMERIC(12, 0));
    INSERT INTO sale VALUES (7.00, 1.500, 1700000000), (8.00, 2.000, 1700000001), (9, NULL, NULL), (1e3, 3, 1700000000)"""
REALS_HOW = ("--kind", "r.x=cat", "--kind", "item.price=cat", "--standardize")


def reals(directory):
    """Reals that become names are the shortest texts that are read back as the same numbers, decimals, too."""
    with open(f"{directory}/node.r.names.txt", encoding="utf-8") as f:
        keys = f.read().splitlines()
    with open(f"{directory}/schema.json", encoding="utf-8") as f:
        values = json.load(f)["nodes"]["r"]["columns"]["x"]["names"]
    check(f"{directory}: names of reals", sorted(keys) == sorted(["0.1", "0.30000000000000004", "0.3", "1e+22", "100000", "0.3333333333333333"]) and
          sorted(values) == sorted(["0.1", "0.3", "0.30000000000000004", "1e-07", "123456789.125", "2.5"]), (keys, values))
    with open(f"{directory}/node.item.names.txt", encoding="utf-8") as f:
        keys = f.read().splitlines()
    with open(f"{directory}/schema.json", encoding="utf-8") as f:
        nodes = json.load(f)["nodes"]
    check(f"{directory}: names of decimals", keys == ["1.5", "2", "3", "10.25"] and nodes["item"]["columns"]["price"]["names"] ==
          ["-0.001", "1.5", "12345678901234.5", "3"], (keys, nodes["item"]))
    check(f"{directory}: whole decimals are whole", "k" in nodes["sale"]["columns"] and "names" not in nodes["sale"] and
          nodes["sale"]["columns"]["timestamp"]["encoder"]["form"] == "seconds", nodes["sale"])


def names(all_names):
    """Tables and columns of these names, that refer to each other."""
    quoted = ['"' + n.replace('"', '""') + '"' for n in all_names]
    sql = [f'CREATE TABLE {q} (k INTEGER PRIMARY KEY, {q} REAL, {p} INTEGER REFERENCES {p}); INSERT INTO {q} VALUES (1, 2.5, 1), (2, 1, NULL);'
           for q, p in zip(quoted, quoted[1:] + quoted[:1])]
    database("names.db", "".join(sql))
    rc, told = imports("names.db", "names", "--scaffold", "names.gnn", "--write-map", "names.map")
    check("names of any kind", rc == 0 and all(f"node {n}: 2" in told for n in (
        "a_b___2J", "a_b___", "Gru00f6u00dfe", "u0438u043cu044f", "node_", "_7_dwarfs", "_s_n")) and "\x1b" not in told and
          told.count("node x") == 2 and told.count("  edge ") == len(all_names), told)
    rc, told = run(GNNC, "check", "names.gnn")
    check("a model of names of any kind", rc == 0, told)
    rc, told = imports("names.db", "names.again", "--map", "names.map")
    check("the map knows them", rc == 0 and same("names", "names.again") == "schema.json", told)


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
            ("large", "INSERT INTO t VALUES (7, 'a', 1e308)", "t: row 2: key 7: column 'n': 1e+308 is too large: 3.4e38 at most"),
            ("infinite", "INSERT INTO t VALUES (7, 'a', 9e999)", "t: row 2: key 7: column 'n': inf is not a number"),
            ("early", "CREATE TABLE u (at DATE); INSERT INTO u VALUES ('-0001-01-01')", "u: row 1: column 'at': '-0001-01-01' is not a time"),
            ("zone", "CREATE TABLE u (at DATE); INSERT INTO u VALUES ('2020-01-01 00:00 Europe/Rome')", "u: row 1: column 'at': '2020-01-01 00:00 Europe/Rome' is not a time"),
            ("binary key", "CREATE TABLE u (k BLOB PRIMARY KEY); INSERT INTO u VALUES (x'01')", "u: row 1: key a blob: its key is binary data"),
            ("long key", "CREATE TABLE u (k TEXT PRIMARY KEY); CREATE TABLE v (u REFERENCES u); INSERT INTO u VALUES (printf('%.*c', 1 << 20, 'k')); "
             "INSERT INTO v SELECT k FROM u UNION ALL SELECT k || 'x' FROM u", "v: row 2: column 'u': 'kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk..' is no key of u (1 bad row"),
            ("column", 'CREATE TABLE u ("a b" REAL, a_b REAL); INSERT INTO u VALUES (1, 2)', "'u' has two columns 'a_b'"),
            ("table", 'CREATE TABLE "a b" (x); CREATE TABLE a_b (x)', "tables 'a b' and 'a_b' are both called 'a_b'"),
            ("broken", "CREATE TABLE u (t INTEGER REFERENCES t(n)); INSERT INTO t VALUES (7, '', 1), (8, '', 1)",
             "t: row 3: key 8: its key 1 is repeated: row 2 has it")):
        database(f"{name}.db", f"CREATE TABLE t (k INTEGER PRIMARY KEY, name TEXT, n INTEGER); INSERT INTO t VALUES (1, 'x', 0); {sql}")
        refused(f"a hostile {name}", f"{name}.db", says)
    names(['a"b\n\x1b[2J', "a'b/..", "Größe", "имя", "год", "select", "node", "7 dwarfs", "%s%n", "x" * 300, "x" * 299 + "y", "--"])
    database("kinds.db", """CREATE TABLE t (k TEXT PRIMARY KEY, x REAL, g AS (x * 2), h AS (x * 3) STORED, at TIMESTAMP) WITHOUT ROWID;
        CREATE VIEW v AS SELECT * FROM t; CREATE VIRTUAL TABLE r USING rtree (id, a, b); CREATE TABLE s (t TEXT REFERENCES t, n INT) STRICT;
        INSERT INTO t (k, x, at) VALUES ('a', 1, '0000-01-01'), ('b', 2, '9999-12-31'), ('c', 3, '2016-12-31T23:59:60Z'), ('d', 4, '2016-12-31 23:30:00-02:30');
        INSERT INTO s VALUES ('b', 1)""")
    rc, told = imports("kinds.db", "kinds")
    check("tables of any kind", rc == 0 and all(s in told for s in (
        "node t: 4, with names, at at", "'v' is left out: it is a view", "'r' is left out: it is a virtual table", "edge s__t: s -> t: 1",
        "column 'g' is left out: it is computed", "column 'h' is left out: it is computed")) and told.count("  node ") == 2, told)
    with open("kinds/node.t.at.npy", "rb") as f:
        at = struct.unpack("<4d", f.read()[-32:])
    check("days of the calendar", at == (-62167219200, 253402214400, 1483228800, 1483236000), at)
    os.mkdir("columns")
    with open("columns/t.csv", "w", encoding="utf-8") as f:
        f.writelines(",".join(row) + "\n" for row in [[f"c{i}" for i in range(10000)]] + [[str(i % r) for i in range(10000)] for r in (2, 3, 5)])
    rc, told = imports("columns", "columns.d")
    check("a file of 10,000 columns", rc == 0 and "c9999      float" in told and len(os.listdir("columns.d")) == 10001, told[-2000:])
    with open("shop.sqlite", "rb") as f:
        whole = bytearray(f.read())
    for i in range(4096, len(whole), 1009):  # each page but the first, which says what tables there are
        whole[i] ^= 0xff
    with open("pages.sqlite", "wb") as f:
        f.write(whole)
    refused("pages that are damaged", "pages.sqlite", "pages.sqlite: ", "malformed")
    database("wide.db", "CREATE TABLE t (" + ", ".join(f"c{i} INTEGER" for i in range(2000)) + ");"
             "INSERT INTO t (c0, c1999) VALUES (1, 2)")
    rc, told = imports("wide.db", "wide")
    check("a table of many columns", rc == 0 and "c1999      float" in told, told[-2000:])
    database("empty.db", "CREATE TABLE a (k INTEGER PRIMARY KEY, x TEXT); CREATE TABLE b (a INTEGER REFERENCES a)")
    database("unnamed.db", 'CREATE TABLE t ("" INTEGER, x REAL); INSERT INTO t VALUES (1, 2)')
    refused("a column without a name", "unnamed.db", "'t' has a column without a name")
    rc, told = imports("empty.db", "empty")
    check("tables without rows", rc == 0 and "edge b__a: b -> a: 0" in told, told)


def little_memory(rows):
    """Memory that is no file's is limited: what a row leaves there is bounded, however many there are."""
    database("many.db", f"""PRAGMA synchronous = off; CREATE TABLE a (k INTEGER PRIMARY KEY, at DATE, s TEXT);
        CREATE TABLE b (k INTEGER PRIMARY KEY, a INTEGER REFERENCES a, b INTEGER REFERENCES b, x REAL, c TEXT);
        INSERT INTO a WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i, '2020-01-01', 's' || i % 10 FROM n;
        INSERT INTO b WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
        SELECT i, 1 + i % 1000, nullif(i / 2, 0), i * 0.5, 'c' || i % 50 FROM n""")
    rc, told = imports("many.db", "many", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (ROOM, ROOM)))
    check(f"{rows} rows in {ROOM >> 20} MiB", rc == 0 and f"edge b__b: b -> b: {rows - 1}" in told and "node b: " in told, told)


def progress():
    """A terminal sees how many rows are read, and nothing else does."""
    database("some.db", """CREATE TABLE t (k INTEGER PRIMARY KEY, x REAL);
        INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 70000) SELECT i, i FROM n""")
    mine, its = os.openpty()
    with open("progress.out", "w", encoding="utf-8") as out:
        p = subprocess.Popen([GNNC, "import", "some.db", "-o", "some", "--force"], stdout=out, stderr=its)
    os.close(its)
    told = b""
    try:
        while text := os.read(mine, 4096):
            told += text
    except OSError:  # the other end is closed
        pass
    os.close(mine)
    check("progress is shown", p.wait() == 0 and b"t: 65536 of 70000 rows" in told, told)
    check("to a terminal alone", "of 70000 rows" not in imports("some.db", "some")[1])


# ---- PostgreSQL -------------------------------------------------------------------------------------------------------
class Server:
    """A server for this test alone.  initdb refuses root, so nobody runs it then."""

    def __init__(self, tools):
        self.tools, self.at = tools, tempfile.mkdtemp(prefix="gnnc-pg", dir="/tmp")
        self.who = {"user": "nobody"} if os.getuid() == 0 else {}
        if self.who:
            shutil.chown(self.at, "nobody")
        self.env = dict(os.environ, HOME=self.at, LC_ALL="C")

    def tool(self, *command):
        return run(os.path.join(self.tools, command[0]), *command[1:], env=self.env, cwd=self.at, **self.who)

    def start(self):
        # of a language that orders texts otherwise than by their bytes
        rc, told = self.tool("initdb", "-D", "db", "-U", "gnnc", "-A", "trust", "-E", "UTF8", "--locale-provider=icu", "--icu-locale=en",
                             "--no-sync", "--no-instructions")
        options = f"-k {self.at} -c listen_addresses= -c fsync=off -c shared_buffers=4MB -c autovacuum=off -c max_connections=6"
        # not through a pipe, which the server would keep open
        rc = rc or self.tool("pg_ctl", "-D", "db", "-w", "-s", "-l", "log", "-o", options, "start")[0]
        check("a server starts", rc == 0, told)
        return rc == 0

    def stop(self):
        self.tool("pg_ctl", "-D", "db", "-s", "-m", "immediate", "stop")
        shutil.rmtree(self.at, ignore_errors=True)

    def sql(self, text, database="postgres"):
        rc, told = run(os.path.join(self.tools, "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-h", self.at, "-U", "gnnc", "-f", "-",
                       database, input=text)
        check("SQL of the test", rc == 0, told)


def cut_after(server, at, n):
    """A socket in the folder `at` that passes on what client and server say, and is gone after n bytes of the server."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(os.path.join(at, ".s.PGSQL.5432"))
    listening.listen()

    def copy(source, to, left):
        try:
            while left > 0 and (text := source.recv(min(left, 4096))):
                to.sendall(text)
                left -= len(text)
        except OSError:
            pass
        for end in (source, to):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def serve():
        client = listening.accept()[0]
        real = socket.socket(socket.AF_UNIX)
        real.connect(os.path.join(server.at, ".s.PGSQL.5432"))
        threading.Thread(target=copy, args=(client, real, 1 << 40), daemon=True).start()
        copy(real, client, n)

    threading.Thread(target=serve, daemon=True).start()


def postgres(server):
    address = f"postgresql://gnnc@/shop?host={server.at}"
    server.sql("CREATE DATABASE shop")
    server.sql(script("POSTGRES"), "shop")
    rc, told = imports(address, "pg")
    check("PostgreSQL", rc == 0 and "'expensive' is left out: it is a view" in told, told)
    check("a copy in SQLite gives the same directory", rc == 0 and same("shop", "pg") == "", rc or same("shop", "pg"))
    server.sql("CREATE DATABASE reals")
    server.sql(REALS, "reals")
    rc, told = imports(f"postgresql://gnnc@/reals?host={server.at}", "reals.pg", *REALS_HOW)
    check("reals and decimals of PostgreSQL are those of a copy", rc == 0 and same("reals", "reals.pg") == "", told + same("reals", "reals.pg"))
    with open("bought.task", "w", encoding="utf-8") as f:
        f.write("""task bought { entity customer  window 0 days  val_time 2024-01-01  test_time 2024-01-02 sql "
            SELECT buyer, placed, CASE WHEN total > 50 THEN 1 ELSE 0 END FROM orders WHERE placed < '2024-02-01' -- and no later" }""")
    told = [imports(of, to, "--task-sql", "bought.task", "--row-time", "customer=none") for of, to in (("shop.sqlite", "bought"), (address, "bought.pg"))]
    check("a task by SQL", all(t[0] == 0 and "task bought" in t[1] for t in told) and same("bought", "bought.pg") == "", told)
    with open("wrong.task", "w", encoding="utf-8") as f:
        f.write('task t { entity customer window 1 day sql "SELEKT 1" }')
    refused("no SELECT", address, "syntax error", options=("--task-sql", "wrong.task"))
    for n in (3000, 30000):
        at = tempfile.mkdtemp(dir=server.at)
        cut_after(server, at, n)
        refused(f"a server that goes away after {n} bytes", f"postgresql://gnnc@/shop?host={at}", "shop: ", "server closed the connection")
    server.sql("""CREATE TABLE "Odd" (x REAL); CREATE TABLE odd (k UUID PRIMARY KEY, at TIMESTAMPTZ, j JSON, b BYTEA, many NUMERIC, tags TEXT[], "a-b" MONEY);
        INSERT INTO odd VALUES ('00000000-0000-0000-0000-00000000000a', '2020-01-01 00:00:00+02', '{"x": 1}', '\\x00', 1.5, '{a,b}', 3.25),
        ('00000000-0000-0000-0000-000000000001', NULL, NULL, NULL, NULL, NULL, NULL);
        CREATE DOMAIN short AS INTEGER; CREATE TABLE domains (s short);
        CREATE TABLE lists (k INTEGER PRIMARY KEY, place REAL[], tags TEXT[]);
        INSERT INTO lists SELECT i, CASE WHEN i % 5 > 0 THEN ARRAY[i, 0.5] END, CASE i % 3 WHEN 0 THEN ARRAY['a', 'b c'] WHEN 1 THEN ARRAY['c"d'] END
        FROM generate_series(1, 30) i""", "postgres")
    rc, told = imports(f"postgresql://gnnc@/postgres?host={server.at}", "odd")
    check("types of PostgreSQL alone", rc == 0 and "node odd: 2, with names" in told and "at         time" in told and
          "a_b        float" in told and "s          float" in told, told)
    check("arrays of PostgreSQL", "place      float [2], lists of numbers" in told and "place_missing" in told and "tags       float [4], lists of 3 names" in told, told)
    ended = f"postgresql://gnnc@/ended?host={server.at}"
    server.sql("CREATE DATABASE ended")
    server.sql("""CREATE TABLE t (x INTEGER, y TEXT GENERATED ALWAYS AS (CASE WHEN x > 90000 THEN 'x' END) STORED);
        CREATE FUNCTION gone(i INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN
        IF i = 9000 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN i::text; END $$;
        INSERT INTO t SELECT i FROM generate_series(1, 10000) i;
        """ + "CREATE TABLE many (" + ", ".join(f"c{i} {('TEXT', 'INTEGER')[i % 2]}" for i in range(1600)) + "); INSERT INTO many (c0, c1599) VALUES (1, 2)", "ended")
    rc, told = imports(ended, "ended")
    check("1,600 columns", rc == 0 and "c1599      float" in told, told[-2000:])
    with open("gone.task", "w", encoding="utf-8") as f:
        f.write('task gone { entity t  window 0 days  sql "SELECT 1, now(), gone(x) FROM t" }')
    refused("a server that ends its session", ended, "ended: ", "connection", options=("--task-sql", "gone.task"))
    server.sql("INSERT INTO odd (k, at) VALUES ('00000000-0000-0000-0000-000000000002', 'infinity')")
    refused("a time that is none", f"postgresql://gnnc@/postgres?host={server.at}",
            "odd: row 2: key '00000000-0000-0000-0000-00000000000..': column 'at': 'infinity' is not a time")
    with open("scores.csv", "w", encoding="utf-8") as f:
        f.write('id,text,p\n1,"a\tb\\\nc",0.5\n2,,nan\n')
    rc, told = run(GNNC, "export", "scores.csv", "--into", address, "--table", "Scores of May")
    check("predictions into PostgreSQL", rc == 0, told)
    server.sql("""DO $$ BEGIN ASSERT (SELECT string_agg(concat_ws('|', id, text, p), ';' ORDER BY id) FROM "Scores of May") = E'1|a\\tb\\\\\\nc|0.5;2';
        ASSERT (SELECT count(*) FROM "Scores of May" WHERE text IS NULL AND p IS NULL) = 1; END $$""", "shop")
    for options, says in (((), "already exists"), (("--append",), None), (("--replace",), None)):
        rc, told = run(GNNC, "export", "scores.csv", "--into", address, "--table", "Scores of May", *options)
        check(f"export {options}", (rc, says is None or says in told) == (says is not None, True), told)
    server.sql("""DO $$ BEGIN ASSERT (SELECT count(*) FROM "Scores of May") = 2; END $$; CREATE TABLE one (id BIGINT PRIMARY KEY CHECK (id < 2))""", "shop")
    with open("two.csv", "w", encoding="utf-8") as f:
        f.write("id\n1\n2\n")
    rc, told = run(GNNC, "export", "two.csv", "--into", address, "--table", "one", "--append")
    check("a row that PostgreSQL refuses", rc == 1 and "violates check constraint" in told and "secret" not in told, told)
    server.sql("DO $$ BEGIN ASSERT (SELECT count(*) FROM one) = 0; END $$", "shop")
    refused("no such database", f"postgresql://gnnc:secret@/none?host={server.at}", 'database "none" does not exist')
    refused("no such server", "postgresql://gnnc:secret@/none?host=/nowhere", "No such file or directory")
    check("no password is told", "secret" not in imports("postgresql://gnnc:secret@/none?host=/nowhere", "nothing")[1])


def with_server():
    tools = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    if not tools and "GNNC_CI" not in os.environ:
        print("LEFT OUT: what asks a PostgreSQL server: there is none to start")
        return
    check("PostgreSQL is installed", tools)
    server = Server(os.path.dirname(tools[-1])) if tools else None
    try:
        if server and server.start():
            postgres(server)
    finally:
        if server:
            server.stop()


def main():
    if "without libsqlite3" in imports("a.db", "x")[1]:
        print("LEFT OUT: databases: this gnnc was built without libsqlite3\n0 passed, 0 failed")
        return "GNNC_CI" in os.environ
    little_memory(int(sys.argv[3]) if sys.argv[3:] else MANY)
    if not sys.argv[3:]:
        sqlite_whole()
        sqlite_rules()
        sqlite_hostile()
        progress()
        with_server()
    return end()


sys.exit(main())
