#!/usr/bin/env python3
"""What made the columns of a model's data goes with its weights: other data are made alike, or refused with both sides named.
Prints `N passed, N failed`."""
import base64
import contextlib
import csv
import datetime
import json
import math
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import zlib

from checks import bytes_of, check, end, header_of

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GNNC = os.path.join(TOP, "tests", "tools", "gnnc")
MODEL = """
import "layers/categories.gnn"
graph G {
  node vertex timeless { age: f32;  age_missing: cat[2];  city: cat[K];  y: class[C];  split }
  edge link: vertex -> vertex { w: f32 }
}
layer scale(out: int)(x: f32[N]) -> f32[N, out] {
  param w: f32[out] = normal(0, 1)
  return expand(x, out) * w
}
model Ages(g: G; hidden: int = 8) -> f32[vertex, C] {
  city = embedding_unknown(K, hidden, p = 0.3)
  age = scale(hidden)
  gap = scale(hidden)
  out = linear(C)
  h = city(g.vertex.city) + age(g.vertex.age) + gap(f32(g.vertex.age_missing))
  return out(relu(h)) + 0.001 * expand(sum(g.link.w, over = g.link.dst), C)
}
train Ages { target vertex.y  loss cross_entropy  metric accuracy  optimizer adam(lr = 0.05)  epochs 20  keep last }
"""


def run(*argv, code=0):
    """What it said."""
    p = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check(f"{' '.join(map(str, argv))}: exit {code}, not {p.returncode}", p.returncode == code, p.stdout)
    return p.stdout


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def metadata(path):
    return header_of(path)[0]["__metadata__"]


def people(n, cities, seed, scale=1.0):
    """Rows of nodes.csv; y follows from age and city."""
    r = random.Random(seed)
    rows = []
    for i in range(n):
        age, city = r.randrange(20, 80), cities[(i + i // 3) % len(cities)]
        rows.append({"id": f"n{i}", "age": "" if i % 7 == 3 else f"{age * scale:.10g}", "city": city, "joined": f"2020-0{1 + i % 9}-11",
                     "y": "old" if age > 50 else "young", "split": ["train", "val", "test"][i % 3]})
    return rows


def table(path, rows, columns=None):
    columns = columns or list(rows[0])
    return write(path, ",".join(columns) + "\n" + "".join(",".join(r[c] for c in columns) + "\n" for r in rows))


def edges(path, n):
    return write(path, "src,dst,w\n" + "".join(f"n{i},n{(7 * i + 1) % n},{i % 5}.5\n" for i in range(n)))


def imported(name, rows, *args, columns=None, code=0):
    """The data directory, and what import said."""
    told = run(GNNC, "import", table(f"{name}.csv", rows, columns), edges(f"{name}.e.csv", len(rows)), "-o", f"{name}.d", *args, code=code)
    return f"{name}.d", told


def training():
    """A model of standardised numbers and categories with a code for unknown names."""
    write("ages.gnn", MODEL)
    run(GNNC, "ages.gnn", "--target=cpu", "-o", "ages")
    data, told = imported("here", people(60, ["ankara", "berlin", "cairo"], 1), "--standardize", "--unknown")
    check("what is fitted is shown", "standardised: mean" in told and "code 0 for unknown names" in told, told)
    run("./ages", "--data", data, "--log=none", "--out", "w.st")
    for path in ("w.st", "ages.ckpt"):
        made = {c["column"]: c for c in json.loads(metadata(path)["encoders:vertex"])}
        with open(f"{data}/schema.json", encoding="utf-8") as f:
            columns = json.load(f)["nodes"]["vertex"]["columns"]
        check(f"{path}: the encoders are the data's", all(made[c]["encoder"] == columns[c]["encoder"] for c in made) and
              set(made) == {"age", "age_missing", "city", "y", "split"}, made)
        check(f"{path}: labels are told", [c for c in made if made[c].get("label")] == ["y", "split"], made)


def the_unknown_is_trained():
    """No row is of the name `<unknown>`, and its vector learns."""
    run("./ages", "--data", "here.d", "--log=none", "--epochs", 0, "--out", "w0.st")
    rows = []
    for path in ("w0.st", "w.st"):
        data = bytes_of(path)
        n = struct.unpack("<Q", data[:8])[0]
        at = json.loads(data[8:8 + n])["city.weight"]["data_offsets"][0] + 8 + n
        rows.append(data[at:at + 32])
    check("the vector of unknown names learns", rows[0] != rows[1])
    told = run(GNNC, "import", "here.csv", "here.e.csv", "-o", "starter.d", "--unknown", "--standardize", "--scaffold", "starter.gnn")
    with open("starter.gnn", encoding="utf-8") as f:
        check("a starter trains it, too", "vertex_city = embedding_unknown(K_vertex_city, hidden)" in f.read(), told)
    run(GNNC, "check", "starter.gnn")


def other_data():
    """Data that were made otherwise."""
    plain, _ = imported("plain", people(60, ["ankara", "berlin", "cairo"], 1))
    other, _ = imported("other", people(60, ["ankara", "berlin", "cairo"], 1, scale=12), "--standardize", "--unknown")
    for path in ("w.st", "ages.ckpt"):
        for data in (plain, other):
            told = run("./ages", "eval", "--data", data, "--weights", path, code=1)
            check(f"{path}: {data} is refused, both sides named",
                  f"{data}: 'vertex.age' is a number " in told and f"in the model of {path} a number standardised: mean" in told, told)
    told = run("./ages", "--data", plain, "--resume", "ages.ckpt", "--force", code=1)
    check("resume: data of another form", "'vertex.age' is a number as it is" in told, told)


def unsaid():
    """Data that do not say how they were made are refused, unless who has them answers for them."""
    run("./ages", "predict", "--data", "here.d", "--weights", "w.st", "--out", "here.npy")
    for what, column, change, says in (
            ("no encoder", "age", lambda c: c.pop("encoder"), "unsaid.d does not say how 'vertex.age' was made, which in the model of w.st is a number standardised: mean "),
            ("unchecked numbers", "age", lambda c: c.update(encoder={"as": "unchecked"}), None),
            ("no names", "city", lambda c: (c.pop("names"), c.pop("encoder")), "unsaid.d has no names for the codes of 'vertex.city', and the model of w.st was trained with '<unknown>', "),
            ("unchecked codes", "city", lambda c: (c.pop("names"), c.update(encoder={"as": "unchecked"})), None),
            ("not of gaps", "age_missing", lambda c: c.pop("encoder"), None)):
        shutil.rmtree("unsaid.d", ignore_errors=True)
        shutil.copytree("here.d", "unsaid.d")
        with open("here.d/schema.json", encoding="utf-8") as f:
            schema = json.load(f)
        change(schema["nodes"]["vertex"]["columns"][column])
        write("unsaid.d/schema.json", json.dumps(schema))
        told = run("./ages", "predict", "--data", "unsaid.d", "--weights", "w.st", "--out", "unsaid.npy", code=1 if says else 0)
        check(what, says in told if says else bytes_of("unsaid.npy") == bytes_of("here.npy"), told)
    # labels of no names: predicted, and not judged by
    change = schema["nodes"]["vertex"]["columns"]
    change["y"].pop("names"), change["y"].pop("encoder")
    write("unsaid.d/schema.json", json.dumps(schema))
    run("./ages", "predict", "--data", "unsaid.d", "--weights", "w.st", "--out", "unsaid.npy")
    told = run("./ages", "eval", "--data", "unsaid.d", "--weights", "w.st", code=1)
    check("classes without names", "has no names for the codes of 'vertex.y'" in told, told)
    # what is unchecked has no encoder: a model says nothing of it, and nothing is made like it
    change["age"]["encoder"] = {"as": "unchecked"}
    write("unsaid.d/schema.json", json.dumps(schema))
    run("./ages", "--data", "unsaid.d", "--log=none", "--epochs", 1, "--out", "u.st", "--checkpoint=none")
    made = [c["column"] for c in json.loads(metadata("u.st")["encoders:vertex"])]
    check("a model of unchecked numbers", "age" not in made and "city" in made, made)
    told = run(GNNC, "import", "here.csv", "here.e.csv", "-o", "unsaid2.d", "--like", "unsaid.d")
    check("nothing is made like it", "'age' is left out" in told, told)


def like():
    """Rows that come later are made as the model's, or not at all."""
    rows = people(60, ["ankara", "berlin", "cairo"], 1)
    for path in ("here.d", "w.st", "ages.ckpt"):
        data, told = imported(f"like-{path}", rows, "--like", path)
        for c in ("age", "age_missing", "city", "y", "split"):
            check(f"{path}: the same {c} of the same rows", bytes_of(f"{data}/node.vertex.{c}.npy") == bytes_of(f"here.d/node.vertex.{c}.npy"))
        check(f"{path}: the same w", bytes_of(f"{data}/edge.link.w.npy") == bytes_of("here.d/edge.link.w.npy"))
        check(f"{path}: what is not read is told", ("'joined' is left out" in told) == (path != "here.d"), told)
    turned = [{k: r[k] for k in ("split", "city", "y", "age", "id")} for r in rows]
    data, _ = imported("turned", turned, "--like", "w.st")
    for c in ("age", "city", "y"):
        check(f"columns in another order: {c}", bytes_of(f"{data}/node.vertex.{c}.npy") == bytes_of(f"here.d/node.vertex.{c}.npy"))
    # few rows, no gap, no label, a new city
    few = [dict(r, age=r["age"] or "44") for r in people(12, ["cairo", "delhi"], 2)]
    data, told = imported("few", few, "--like", "w.st", columns=["id", "city", "age"])
    check("labels may be absent, which is told", "there is no 'y', which w.st has" in told and "there is no 'split'" in told, told)
    run("./ages", "predict", "--data", data, "--weights", "w.st", "--out", "few.npy")
    other = [dict(r, city=r["city"].replace("delhi", "<unknown>")) for r in few]
    data, _ = imported("said", other, "--like", "here.d", columns=["id", "city", "age", "joined"])
    run("./ages", "predict", "--data", data, "--weights", "w.st", "--out", "said.npy")
    check("a name that is not known is the unknown one", bytes_of("few.npy") == bytes_of("said.npy"))
    # a city with a code of its own in other data is the model's unknown one
    with open(f"{data}/schema.json", encoding="utf-8") as f:
        schema = f.read()
    write(f"{data}/schema.json", schema.replace("cairo", "delhi"))
    told = run("./ages", "predict", "--data", data, "--weights", "w.st", "--out", "new.npy")
    check("other data's names that the model does not know", bytes_of("new.npy") != bytes_of("said.npy"))
    refused(few)


def refused(rows):
    """Each says what differs, with table, column, row and both sides."""
    unit, _ = imported("known", people(60, ["ankara", "berlin", "cairo"], 1), "--standardize")
    all_columns = ["id", "city", "age", "joined", "y", "split"]
    for what, change, columns, path, says in (
        ("a column is missing", {}, ["id", "city"], "w.st", "bad.csv: row 1: there is no column 'age' for 'vertex.age' of w.st; there are 'id', 'city'"),
        ("a text among numbers", {"age": "old"}, all_columns, "w.st", "bad.csv: row 4: column 'age': 'old' is not a number, as w.st has it"),
        ("a new category", {}, all_columns, unit, f"bad.csv: row 3: column 'city': 'delhi' is not a category: 'ankara', 'berlin', 'cairo', as {unit} has it"),
        ("a new class", {"y": "dead"}, all_columns, "w.st", "row 4: column 'y': 'dead' is not a class: 'old', 'young', as w.st has it"),
        ("another form of dates", {"joined": "11/03/2020"}, all_columns, "here.d", "row 4: column 'joined': '11/03/2020' is not a time: year-month-day, as here.d"),
        ("seconds where dates are", {"joined": "1583884800"}, all_columns, "here.d", "'1583884800' is not a time: year-month-day, as here.d has it"),
    ):
        bad = [dict(r, **(change if i == 2 else {})) for i, r in enumerate(rows)]
        _, told = imported("bad", bad, "--like", path, columns=columns, code=1)
        check(what, says in told and not os.path.exists("bad.d"), told)
    write("gaps.csv", "id,a\nn0,1\nn1,2\n")
    run(GNNC, "import", "gaps.csv", edges("gaps.e.csv", 2), "-o", "gaps.d")
    write("gaps.csv", "id,a\nn0,1\nn1,\n")
    told = run(GNNC, "import", "gaps.csv", "gaps.e.csv", "-o", "gap.d", "--like", "gaps.d", code=1)
    check("a gap where there was none", "row 3: column 'a': an empty cell is not a number, as gaps.d has it" in told, told)
    for args, says in (("--kind age=cat", "--like says how columns are made: no --kind"), ("--like cora.st", "cora.st")):
        p = subprocess.run([GNNC, "import", "few.csv", "few.e.csv", "-o", "no.d", "--like", "w.st", *args.split()], stderr=subprocess.PIPE, text=True, check=False)
        check(args, p.returncode and says in p.stderr, p.stderr)
    told = run(GNNC, "import", "few.csv", "few.e.csv", "-o", "no.d", "--node", "person", "--like", "w.st", code=1)
    check("another table", "few.csv: there is no table 'vertex', which w.st has" in told, told)
    told = run(GNNC, "import", "few.csv", "few.e.csv", "-o", "no.d", "--like", f"{TOP}/models/data/cora", code=1)
    check("data that say nothing", "nothing in it says how columns are made" in told, told)


FILMS = """
graph G { node film { title: f32[T];  genres: f32[M];  emb: f32[V];  price: f32[P];  hit: f32;  y: class[C];  split } }
model Films(g: G; hidden: int = 8) -> f32[film, C] {
  title = linear(hidden)
  genres = linear(hidden)
  emb = linear(hidden)
  price = linear(hidden)
  out = linear(C)
  h = title(g.film.title) + genres(g.film.genres) + emb(g.film.emb) + price(g.film.price)
  return out(relu(h + expand(g.film.hit, hidden)))
}
train Films { target film.y  loss cross_entropy  metric accuracy  optimizer adam(lr = 0.02)  epochs 60  keep last }
"""


def films(n):
    r = random.Random(3)
    words = "the a of red old river moon house night sea quiet last".split()
    for i in range(n):
        genres = r.sample(["Drama", "War", "Kids"], r.randrange(1, 3)) + (["Noir"] if i % 3 == 2 and i % 2 else [])
        yield {"id": i, "title": " ".join(r.choice(words) for _ in range(4)) + f" {i}", "genres": "|".join(genres),
               "emb": "" if i % 9 == 4 else f"[{r.random():.4f}, {r.random():.4f}]", "price": 10.0 ** r.randrange(6), "hit": i % 2 == 0,
               "y": "war" if "War" in genres else "peace", "split": ["train", "val", "test"][i % 3]}


def database(path, rows):
    with contextlib.closing(sqlite3.connect(path)) as d:
        d.execute("create table film (id integer primary key, title text, genres text, emb text, price real, hit boolean, y text, split text)")
        d.executemany("insert into film values (?, ?, ?, ?, ?, ?, ?, ?)", [[r[c] if r[c] != "" else None for c in r] for r in rows])
        d.commit()
    return path


# 16 x 16 pixels, the upper half 200, the lower one 40
JPEG = ("/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeXBkeFxlZ2P/wAALCAAQABABAREA"
        "/8QAFgABAQEAAAAAAAAAAAAAAAAAAAYH/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQAAPwCkGXj/2Q==")


def png(width, height, pixel):
    """An RGB file; pixel(x, y) gives three bytes."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(width)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def images():
    """PNG and JPEG files become small tensors, means of their parts; what is no picture is a bad row."""
    os.mkdir("pictures")
    write("pictures/shot.csv", "id,photo\n1,a.png\n2,b.jpg\n3,\n4,sub/c.png\n")
    os.mkdir("pictures/sub")
    files = {"a.png": png(16, 8, lambda x, y: (255 * (x < 8), 51, 0)), "b.jpg": base64.b64decode(JPEG), "sub/c.png": png(1, 1, lambda x, y: (0, 0, 255))}
    for name, data in files.items():
        with open(f"pictures/{name}", "wb") as f:
            f.write(data)
    p = subprocess.run([GNNC, "import", "pictures", "-o", "p0", "--write-map", "p.map"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if "images of" not in p.stdout and "GNNC_CI" not in os.environ:
        print("skipped: images, without libpng and libjpeg")
        return
    check("images are found", "photo      float [192], images of 8 x 8 pixels  (all cells are paths of images)" in p.stdout, p.stdout)
    with open("p.map", encoding="utf-8") as f:
        rules = f.read()
    run(GNNC, "import", "pictures", "-o", "p1", "--map", write("p2.map", rules.replace("image 8", "image 2")))
    got = [round(x, 2) for x in struct.unpack("<48f", bytes_of("p1/node.shot.photo.npy")[-192:])]
    check("a PNG file", got[:12] == [1, 0, 1, 0, 0.2, 0.2, 0.2, 0.2, 0, 0, 0, 0], got)
    check("a JPEG file", all(abs(x - (0.78 if i % 4 < 2 else 0.16)) < 0.03 for i, x in enumerate(got[12:24])), got)
    check("no file, and one pixel", got[24:36] == [0] * 12 and got[36:] == [0] * 8 + [1] * 4, got)
    check("a gap is told", bytes_of("p1/node.shot.photo_missing.npy")[-16:] == struct.pack("<4i", 0, 0, 1, 0))
    run(GNNC, "import", "pictures", "-o", "p2", "--like", "p1")
    check("like other images", bytes_of("p2/node.shot.photo.npy") == bytes_of("p1/node.shot.photo.npy"))
    for name, data, says in (("a.png", None, "'a.png' is no file that is there"), ("a.png", files["a.png"][:60], "is a PNG file that"), ("a.png", b"GIF89a..", "neither a PNG nor"),
                             ("b.jpg", files["b.jpg"][:20], "is a JPEG file that"), ("b.jpg", files["b.jpg"][:-4], "is a JPEG file that"), ("a.png", png(1, 1, lambda x, y: (0, 0, 0)).replace(struct.pack(">II", 1, 1), struct.pack(">II", 1 << 20, 1 << 20)), "is a PNG file that")):
        os.remove(f"pictures/{name}")
        if data is not None:
            with open(f"pictures/{name}", "wb") as f:
                f.write(data)
        told = run(GNNC, "import", "pictures", "-o", "p3", "--map", "p2.map", code=1)
        check(says, says in told and not os.path.exists("p3"), told)
        with open(f"pictures/{name}", "wb") as f:
            f.write(files[name])
    os.remove("pictures/a.png")
    os.mkfifo("pictures/a.png")
    check("nobody waits for a pipe", "'a.png' is no file" in run(GNNC, "import", "pictures", "-o", "p3", "--map", "p2.map", code=1))


def given():
    """Columns that were made elsewhere: of a table, and of the task that asks of its rows."""
    def npy(path, rows, width, first=0.0):
        head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}".ljust(117) + "\n"
        with open(path, "wb") as f:
            f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() +
                    struct.pack(f"<{rows * width}f", first, *[i / 8 for i in range(1, rows * width)]))

    npy("p.npy", 600, 3)
    told = run(GNNC, "import", "films", "-o", "g1", "--given", "film.poster=p.npy", "--scaffold", "g.gnn")
    check("a given column is told", "poster     float [3]  (given as p.npy)" in told, told)
    check("its values", bytes_of("g1/node.film.poster.npy")[-4 * 1800:] == bytes_of("p.npy")[-4 * 1800:])
    with open("g.gnn", encoding="utf-8") as f:
        check("a starter reads it", "film_poster(g.film.poster)" in f.read())
    run(GNNC, "import", "films.db", "-o", "g2", "--like", "f.st", "--given=film.poster=p.npy")
    npy("few.npy", 599, 3)
    npy("nan.npy", 600, 1, math.nan)
    for what, says in (("film.poster", "TABLE.COLUMN=FILE is expected"), ("film.poster=few.npy", "few.npy: 599 rows for the 600 of 'film'"),
                       ("film.title=p.npy", "there is such a column"), ("book.poster=p.npy", "there is no table 'book'"),
                       ("film.poster=none.npy", "none.npy"), ("film.poster=nan.npy", "film.poster: row 0: value is")):
        p = subprocess.run([GNNC, "import", "films", "-o", "g3", "--given", what], stderr=subprocess.PIPE, text=True, check=False)
        check(what, p.returncode and says in p.stderr and not os.path.exists("g3"), p.stderr)


def cells_of_several_values():
    """Texts, lists, several names, bins and booleans: of a folder and of a database, by --map, by --like, in a trained model."""
    rows = list(films(600))
    os.mkdir("films")
    with open("films/film.csv", "w", encoding="utf-8", newline="") as f:
        w = csv.DictWriter(f, rows[0])
        w.writeheader()
        w.writerows(rows)
    told = run(GNNC, "import", "films", "-o", "f0", "--standardize", "--write-map", "f.map")
    for says in ("words of a text, hashed", "several of 3 names, between '|'", "lists of numbers", "true or false"):
        check(f"the report: {says}", says in told, told)
    with open("f.map", encoding="utf-8") as f:
        rules = f.read()
    write("g.map", rules.replace("float standard", "float piecewise 4"))
    columns = ["title", "genres", "emb", "emb_missing", "price", "hit"]
    run(GNNC, "import", "films", "-o", "f1", "--map", "g.map", "--write-map", "h.map")
    with open("h.map", encoding="utf-8") as f:
        check("a map is read back", [line.split("#")[0].split() for line in f] == [line.split("#")[0].split() for line in open("g.map", encoding="utf-8")])
    run(GNNC, "import", database("films.db", rows), "-o", "f2", "--map", "g.map")
    run(GNNC, "import", "films.db", "-o", "f3")
    for c in columns:
        check(f"{c}: a database gives what a folder gives", bytes_of(f"f1/node.film.{c}.npy") == bytes_of(f"f2/node.film.{c}.npy"))
        if c != "price":
            check(f"{c}: found by itself", bytes_of(f"f0/node.film.{c}.npy") == bytes_of(f"f3/node.film.{c}.npy"))
    write("films.gnn", FILMS)
    run(GNNC, "films.gnn", "--target=cpu", "-o", "films.bin")
    told = run("./films.bin", "--data", "f1", "--log=json", "--out", "f.st")
    check("a model reads them", json.loads(told.strip().splitlines()[-1])["test"]["accuracy"] > 0.9, told)
    made = {c["column"]: c["encoder"] for c in json.loads(metadata("f.st")["encoders:film"])}
    check("they go with the weights", made["genres"]["names"] == ["<unknown>", "Drama", "Kids", "War"] and made["title"]["values"] == 64 and
          len(made["price"]["marks"]) == 5, made)
    run(GNNC, "import", "films.db", "-o", "f4", "--like", "f.st")
    run(GNNC, "import", "films", "-o", "f5", "--like", "f.st")
    for c in set(columns) - {"emb_missing"}:
        for data in ("f4", "f5"):
            check(f"{data}: {c} as the model has it", bytes_of(f"{data}/node.film.{c}.npy") == bytes_of(f"f1/node.film.{c}.npy"))
    told = run("./films.bin", "eval", "--data", "f0", "--weights", "f.st", code=1)
    check("another form is refused", "f0" in told, told)


TIMES = """
import "layers/time.gnn"
graph G { node n timeless { t: time;  y: f32[O];  split } }
model Times(g: G) -> f32[n, O] {
  when = calendar(O, harmonics = 2)
  old = age(O)
  return when(g.n.t) + old(f32(1e9 - g.n.t))
}
train Times { target n.y  loss mse  optimizer sgd(lr = 0.1)  epochs 1  keep last }
"""


def tensors(path):
    """{name: rows}"""
    data = bytes_of(path)
    n = struct.unpack("<Q", data[:8])[0]
    found = {}
    for name, t in json.loads(data[8:8 + n]).items():
        if name != "__metadata__":
            a, b = (8 + n + at for at in t["data_offsets"])
            flat = struct.unpack(f"<{(b - a) // 4}f", data[a:b])
            width = t["shape"][-1]
            found[name] = [flat[i:i + width] for i in range(0, len(flat), width)]
    return found


def times():
    """The calendar is Python's, from year 1 to 9999; what is later than it is asked at, or unknown, is not seen."""
    r = random.Random(4)
    first = datetime.datetime(1970, 1, 1)
    moments = [datetime.datetime(*d) for d in ((1, 1, 1), (1600, 2, 29), (1900, 3, 1), (1969, 12, 31, 23), (2000, 2, 29, 12), (2001, 9, 9, 1), (9999, 12, 31))]
    moments += [first + datetime.timedelta(hours=r.randrange(-800000, 1200000)) for _ in range(150)]
    seconds = [(m - first) // datetime.timedelta(seconds=1) for m in moments]
    with open("t.csv", "w", encoding="utf-8") as f:
        f.write("id,t,y.0,y.1,y.2,split\n" + "".join(f"{i},{s},0,0,1,train\n" for i, s in enumerate(seconds + [""])))
    write("t.e.csv", "src,dst\n0,1\n")
    run(GNNC, "import", "t.csv", "t.e.csv", "-o", "t.d", "--node", "n", "--kind", "t=time")
    write("times.gnn", TIMES)
    run(GNNC, "times.gnn", "--target=cpu", "-o", "times")
    run("./times", "--data", "t.d", "--log=none", "--out", "t.st", "--epochs", 0)
    run("./times", "predict", "--data", "t.d", "--weights", "t.st", "--out", "t.npy")
    w = tensors("t.st")
    got = struct.unpack(f"<{3 * len(moments) + 3}f", bytes_of("t.npy")[-12 * len(moments) - 12:])

    def dot(what, row, x):
        return sum(a * b for a, b in zip(w[f"{what}.table.weight"][row], x)) + w[f"{what}.table.bias"][0][row]

    worst = 0.0
    for i, s in enumerate(seconds + [math.nan]):
        calendar, age = [0.0] * 16, [0.0] * 4
        if s == s:
            m = moments[i]
            parts = [(m.month - 3) % 12 / 12, (m.day - 1) / 31, m.isoweekday() % 7 / 7, m.hour / 24]
            calendar = [f(2 * math.pi * k * p) for p in parts for f in (math.sin, math.cos) for k in (1, 2)]
        if s <= 1e9:
            days = struct.unpack("f", struct.pack("f", 1e9 - s))[0] / 86400
            age = [math.log1p(days) / 5 - 1, math.exp(-days / 7), math.exp(-days / 30), math.exp(-days / 365)]
        worst = max([worst] + [abs(got[3 * i + k] - dot("when", k, calendar) - dot("old", k, age)) for k in range(3)])
    check("times as Python has them", worst < 2e-5, worst)


def held_out_by_time():
    """Rows to learn from have a `split` and a time of their own: other tables' rows from validation on tell nothing.  In a split that
    is not by time all rows that training rows lead to do."""
    for name, parts, mean in (("by_time", ["train", "val", "test"], 2), ("drawn", ["val", "train", "test"], 404)):
        db = sqlite3.connect(f"{name}.sqlite")
        db.executescript("CREATE TABLE customer (id INTEGER PRIMARY KEY);"
                         "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer, price REAL, date DATE);"
                         "CREATE TABLE ask (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer, time DATE, y INTEGER, split TEXT);"
                         "INSERT INTO customer VALUES (0), (1);")
        db.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", [(i, i % 2, price, f"{year}-05-05") for i, (price, year) in enumerate(
            [(1, 2010), (3, 2011), (2, 2012), (1007, 2013), (1007, 2014)])])
        db.executemany("INSERT INTO ask VALUES (?, ?, ?, ?, ?)", [(i, i % 2, f"{2012 + i // 2}-01-01", i % 2, parts[i // 2]) for i in range(6)])
        db.commit()
        db.close()
        run(GNNC, "import", f"{name}.sqlite", "-o", f"{name}.d", "--standardize")
        with open(f"{name}.d/schema.json", encoding="utf-8") as f:
            e = json.load(f)["nodes"]["orders"]["columns"]["price"]["encoder"]
        check(f"{name}: the mean is that of rows that training may read", e["mean"] == mean, e)


os.chdir(tempfile.mkdtemp())
training()
held_out_by_time()
the_unknown_is_trained()
other_data()
unsaid()
like()
cells_of_several_values()
given()
images()
times()
sys.exit(end())
