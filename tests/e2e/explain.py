#!/usr/bin/env python3
"""What a prediction hangs on: explain of a model of the future, of a database in which the country alone decides, held against
predictions of data that were changed by hand, and against finite differences.  usage: explain.py GNNC TOP.  Prints `N passed,
N failed`."""
import ctypes
import datetime
import json
import os
import random
import re
import shutil
import sqlite3
import struct
import subprocess
import sys

from checks import check, end
from sessions import E_NOMEM, Memory

GNNC, TOP = sys.argv[1:3]
AT = "2024-03-01"


def run(*command, code=0):
    r = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    check(f"{' '.join(command)}: exit {code}, not {r.returncode}", r.returncode == code, r.stdout)
    return r.stdout


def shop(name):
    """Customers of Austria order every ten days, all others have stopped; what they rate and pay tells nothing."""
    db, draw, n = sqlite3.connect(name), random.Random(3), 0
    db.executescript("""CREATE TABLE country (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE customer (id INTEGER PRIMARY KEY, country INTEGER REFERENCES country(id), rating REAL);
        CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer(id), placed TIMESTAMP, total REAL);
        INSERT INTO country VALUES (0, 'at'), (1, 'ch'), (2, 'de')""")
    for i in range(90):
        db.execute("INSERT INTO customer VALUES (?, ?, ?)", (100 + i, i % 3, draw.random() * 5))
        for day in range(draw.randrange(10), 160 if i % 3 == 0 else 20, 10):
            n += 1
            placed = datetime.datetime(2023, 12, 1) + datetime.timedelta(days=day, hours=draw.randrange(20))
            db.execute("INSERT INTO orders VALUES (?, ?, ?, ?)", (n, 100 + i, placed.isoformat(" "), draw.randrange(100) / 7))
    db.commit()
    db.close()


def explain(data, *more):
    return run("./shop.x", "explain", "--data", data, "--weights", "shop.ckpt", "--at", AT, "--id", "103", *more)


def explained(data, *more):
    return json.loads(explain(data, "--format", "json", *more))


def part(e, kind, name):
    found = [p for p in e[kind] if p["name"] == name]
    return found[0] if len(found) == 1 else None


def array(path):
    """Where the numbers of an array begin, and all its bytes."""
    with open(path, "rb") as f:
        text = f.read()
    return 10 + struct.unpack("<H", text[8:10])[0], text


def changed(path, form, change):
    """What is explained of a copy of the data, of which a file has other numbers: change(list), in place."""
    shutil.rmtree("by_hand", ignore_errors=True)
    shutil.copytree("data", "by_hand")
    at, text = array(os.path.join("data", path))
    values = list(struct.unpack(f"<{(len(text) - at) // struct.calcsize(form)}{form}", text[at:]))
    change(values)
    with open(os.path.join("by_hand", path), "wb") as f:
        f.write(text[:at] + struct.pack(f"<{len(values)}{form}", *values))
    return explained("by_hand", "--class", "yes")


def of_what_decides(e):
    first = e["columns"][0]
    check("the only column that decides stands first", first["name"] == "country.name", e["columns"])
    check("by its gradient, too", max(e["columns"], key=lambda p: abs(p["gradient"])) is first, e["columns"])
    check("and its path", {p["name"] for p in e["paths"][:2]} == {"task -task__customer-> customer",
          "task -task__customer-> customer -customer__country-> country"}, e["paths"])
    check("and its table", {"customer", "country"} == {p["name"] for p in e["tables"][:2]}, e["tables"])
    check("a customer of Austria comes back", e["class"] == "yes" and e["id"] == "103" and e["at"] == f"{AT} 00:00:00", e)


def of_sums(e):
    """Each kind adds up to the same gradient; the gap is what that misses."""
    for kind in ("tables", "paths", "columns", "ages"):
        total = sum(p["gradient"] for p in e[kind])
        check(f"gradients of {kind} add up", abs(total - e["gradient"]) < 1e-5 * (1 + abs(total)), f"{total} {e}")
    check("the gap", abs(e["score"] - e["without"] - e["gradient"] - e["gap"]) < 1e-5 * (1 + abs(e["score"])), e)


def of_masks(e):
    """What is left out by hand gives the same score."""
    def mean(values):
        values[:] = [sum(values) / len(values)] * len(values)

    def unknown(values):
        values[:] = [0] * len(values)

    def nobody(values):
        """All orders are customer 0's, who is not asked about."""
        half = len(values) // 2
        values[half:] = [0] * half

    for kind, name, path, form, change in (
            ("columns", "orders.total", "node.orders.total.npy", "f", mean),
            ("columns", "customer.rating", "node.customer.rating.npy", "f", mean),
            ("columns", "country.name", "node.country.name.npy", "i", unknown),
            ("tables", "orders", "edge.orders__customer.npy", "i", nobody),
            ("paths", "task -task__customer-> customer <-orders__customer- orders", "edge.orders__customer.npy", "i", nobody)):
        p, other = part(e, kind, name), changed(path, form, change)
        check(f"{name} by hand", p and abs(e["score"] - other["score"] - p["ablation"]) < 2e-5 * (1 + abs(e["score"])), f"{p} {other}")
    check("rows that are not there are no part", part(other, "tables", "orders") is None, other["tables"])


def of_ages(e):
    """Orders of 7 to 30 days before are another customer's: the same score as without rows of that age."""
    at, text = array("data/node.orders.placed.npy")
    placed = struct.unpack(f"<{(len(text) - at) // 8}d", text[at:])
    asked = datetime.datetime.fromisoformat(AT + "T00:00:00+00:00").timestamp()

    def not_his(values):
        half = len(values) // 2
        for i, t in enumerate(placed):
            if 7 <= (asked - t) / 86400 < 30:
                values[half + i] = 0
    p, other = part(e, "ages", "7 to 30 days"), changed("edge.orders__customer.npy", "i", not_his)
    check("orders of an age by hand", p and abs(e["score"] - other["score"] - p["ablation"]) < 2e-5 * (1 + abs(e["score"])), f"{p} {other}")
    check("which is no small part", abs(p["ablation"]) > 1e-3 and part(other, "ages", "7 to 30 days") is None, f"{p} {other}")


def of_differences(e):
    """Of the rating of the one customer: gradient x input is the slope times the value."""
    at, text = array("data/node.customer.rating.npy")
    value, step, score = struct.unpack("<90f", text[at:])[3], 0.02, []
    for to in (value - step, value + step):
        score.append(changed("node.customer.rating.npy", "f", lambda v, to=to: v.__setitem__(3, to))["score"])
    slope, told = (score[1] - score[0]) / (2 * step), part(e, "columns", "customer.rating")["gradient"]
    check("a finite difference", abs(slope * value - told) < 0.02 * abs(told) + 1e-4, f"{slope} * {value}, {told}")


def of_forms(e):
    first = explain("data", "--format", "json")
    check("the same bits", all(explain("data", "--format", "json", "--threads", t) == first for t in ("1", "2")))
    text = explain("data", "--top", "2")
    check("as text", re.search(r"^task 103, asked at 2024-03-01 00:00:00\n  probability yes \S+, score \S+; with nothing known", text) and
          all(f"\n{kind} " in text for kind in ("tables", "paths", "columns", "ages")), text)
    few = explained("data", "--top", "2")
    check("no more parts than asked for", all(few[kind] == e[kind][:2] for kind in ("tables", "paths", "columns", "ages")), few)
    with open("e.json.part", "w", encoding="utf-8") as f:
        f.write("somebody's own")
    there = sorted([*os.listdir("."), "e.json"])
    check("to a file", explain("data", "--format", "json", "--out", "e.json") == "" and sorted(os.listdir(".")) == there, os.listdir("."))
    with open("e.json.part", encoding="utf-8") as f:
        check("no other file is written", f.read() == "somebody's own")
    with open("e.json", encoding="utf-8") as f:
        check("the same there", json.load(f) == e)
    other = explained("data", "--class", "no")
    check("the other class is the other way round", abs(other["score"] + e["score"]) < 1e-5 and other["class"] == "no" and
          abs(other["columns"][0]["ablation"] + e["columns"][0]["ablation"]) < 1e-5, other)
    told = run("./shop.x", "predict", "--data", "data", "--weights", "shop.ckpt", "--at", AT, "--out", "p.jsonl", "--log=none")
    with open("p.jsonl", encoding="utf-8") as f:
        rows = {row["id"]: row["probability_yes"] for row in map(json.loads, f)}
    check("what is explained is what is predicted", abs(rows["103"] - e["probability"]) < 1e-5, told)
    data = json.loads(run("./shop.x", "explain", "--data", "data", "--weights", "shop.ckpt", "--node", "5", "--format", "json"))
    check("a row of the data, as it was asked", data["row"] == 5 and data["at"] and data["paths"], data)


def of_mistakes():
    how = ("--data", "data", "--weights", "shop.ckpt")
    for more, code, says in (
            (("--id", "99999", "--at", AT), 1, "99999"), (("--node", "9999999"), 1, "has no row '9999999'"), ((), 2, "explain is about one row"),
            (("--id", "103", "--node", "3"), 2, "explain is about one row"), (("--node", "1", "--class", "maybe"), 1, "there is no 'maybe' of 2"),
            (("--node", "1", "--format", "csv"), 2, "of explain text or json"), (("--node", "1", "--at", "soon"), 2, "a date is expected"),
            (("--node", "1", "--out", "no/such/e.json"), 1, "cannot write no/such/e.json")):
        told = run("./shop.x", "explain", *how, *more, code=code)
        check(f"{more}: says so", says in told, told)
    told = run("./shop.x", "predict", *how, "--id", "103", code=2)
    check("--id is of explain", "--id is for 'explain'" in told, told)
    told = run(GNNC, "shop.gnn", "--explain", "--no-rows", "-o", "x", code=2)
    check("--explain needs rows", "--no-rows" in told, told)


class Info(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("row", ctypes.c_int64), ("output", ctypes.c_int64), ("numbers", ctypes.c_double * 4),
                ("n_parts", ctypes.c_int64)]


class Part(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("more", ctypes.c_int64 * 16)]


def of_memory():
    """Any allocation of gnnc_session_open_at and gnnc_session_explain may fail; the next call does what it should."""
    run(GNNC, "shop.gnn", "--target=cpu", "--emit=infer", "--explain", "--runtime=shared", "-o", "shop_rows")
    ctypes.CDLL(os.path.join(os.path.dirname(os.environ.get("GNNC", TOP + "/build/gnnc")), "libgnnrt.so"), mode=ctypes.RTLD_GLOBAL)
    lib, g, m = ctypes.CDLL("./libshop_rows.so"), ctypes.c_void_p(), ctypes.c_void_p()
    ref, info, none = ctypes.byref, Info(ctypes.sizeof(Info)), ctypes.c_void_p
    lib.gnnc_session_error.restype = ctypes.c_char_p
    program = ref(ctypes.c_char.in_dll(lib, "shop_rows_program"))
    good = lib.gnnc_graph_create(ref(g)) == 0 and lib.gnnc_graph_read(g, b"data", 0) == 0 and lib.gnnc_graph_commit(g) == 0
    good = good and lib.gnnc_model_create(ref(m), program) == 0 and lib.gnnc_model_load(m, b"shop.ckpt") == 0
    check("a model and a graph", good)
    n = 1
    while good and n:
        memory, s, e = Memory(), none(), none()
        lib.gnnc_session_create_with(ref(s), *memory.arguments())
        first = memory.n
        memory.refuse = first + n
        st = lib.gnnc_session_open_at(s, m, g, AT.encode())
        if st == E_NOMEM:
            st = 0 if lib.gnnc_session_error(s) and lib.gnnc_session_open_at(s, m, g, AT.encode()) == 0 else st
        opened = memory.live
        st = st or lib.gnnc_session_explain(s, ctypes.c_int64(3), ctypes.c_int64(-1), ref(e))
        if st == E_NOMEM and not e:
            st = 0 if lib.gnnc_session_error(s) and lib.gnnc_session_explain(s, ctypes.c_int64(3), ctypes.c_int64(-1), ref(e)) == 0 else st
        good = st == 0 and lib.gnnc_explanation_describe(e, ref(info)) == 0 and info.n_parts > 0
        part = Part(ctypes.sizeof(Part))
        asked, n = n, n + 1 if memory.n >= memory.refuse else 0
        before = memory.n
        lib.gnnc_explanation_part(e, ctypes.c_int64(0), ref(part))
        good = good and memory.n == before and opened > 0
        lib.gnnc_explanation_destroy(e)
        lib.gnnc_session_destroy(s)
        good = good and memory.live == 0
    check("where memory ends in an explanation", good, f"allocation {asked}: {st}")
    check("an explanation takes memory", asked > 20, asked)
    lib.gnnc_model_release(m)
    lib.gnnc_graph_release(g)


def main():
    shop("shop.db")
    run(GNNC, "import", "shop.db", "-o", "data", "--scaffold", "shop.gnn", "--predict", "COUNT(orders.*, 0, 20, days) > 0 FOR EACH customer.id",
        "--val-time", "2024-02-05", "--test-time", AT)
    with open("shop.gnn", encoding="utf-8") as f:
        text = f.read().replace("keep best on val roc_auc", "keep last")  # the best is there before the rest is forgotten
    with open("shop.gnn", "w", encoding="utf-8") as f:
        f.write(text)
    run(GNNC, "shop.gnn", "--target=cpu", "--explain", "-o", "./shop.x")
    run("./shop.x", "--data", "data", "--checkpoint", "shop.ckpt", "--epochs", "40", "--log=none")
    e = explained("data")
    of_what_decides(e)
    of_sums(e)
    of_masks(e)
    of_ages(e)
    of_differences(e)
    of_forms(e)
    of_mistakes()
    of_memory()
    sys.exit(end())


main()
