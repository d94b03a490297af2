#!/usr/bin/env python3
"""Models on other data than they were trained on: codes mean names, labels and splits may be absent, sizes come from the
weights.  Prints `N passed, N failed`."""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GNNC, CORA = os.path.join(TOP, "tests", "tools", "gnnc"), os.path.join(TOP, "models", "data", "cora")
sys.path.insert(0, os.path.join(TOP, "tests", "oracle"))
from checks import bytes_of, check, end, header_of  # noqa: E402
from run import Trainer  # noqa: E402

MOOD = {"ankara": "sad", "berlin": "glad", "cairo": "angry", "delhi": "glad"}
CITIES = """
graph G { node vertex { city: cat[K]; y: class[C]; split }  edge link: vertex -> vertex }
model Cities(g: G) -> f32[vertex, C] {
  e = embedding(K, 8)
  h = e(g.vertex.city)
  l = linear(C)
  return l(h)
}
train Cities { target vertex.y  loss cross_entropy  metric accuracy  optimizer adam(lr = 0.1)  epochs 60  keep last }
"""


def run(*argv, code=0):
    """What it said."""
    p = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check(f"{' '.join(map(str, argv))}: exit {code}, not {p.returncode}", p.returncode == code, p.stdout)
    return p.stdout


def accuracy(told, split="test"):
    return json.loads(told.strip().splitlines()[-1])[split]["accuracy"]


def cities(folder, names, n, labels=True):
    """A data directory of rows whose label follows from their city."""
    r = random.Random(n)
    os.makedirs(folder)
    with open(f"{folder}/nodes.csv", "w", encoding="utf-8") as f:
        f.write("id,city,y,split\n" if labels else "id,city\n")
        for i in range(n):
            city = names[i] if i < len(names) else r.choice(names)
            f.write(f"n{i},{city},{MOOD[city]},{['train', 'val', 'test'][i % 3]}\n" if labels else f"n{i},{city}\n")
    with open(f"{folder}/edges.csv", "w", encoding="utf-8") as f:
        f.write("src,dst\n" + "".join(f"n{i},n{(7 * i + 1) % n}\n" for i in range(n)))
    run(GNNC, "import", f"{folder}/nodes.csv", f"{folder}/edges.csv", "-o", f"{folder}.d", "--kind", "city=cat",
        *(["--kind", "y=class"] if labels else []))
    return f"{folder}.d"


def without_names(path, to):
    """The file as an older version wrote it."""
    head, rest = header_of(path)
    head["__metadata__"] = {k: v for k, v in head.get("__metadata__", {"a": "b"}).items() if not k.startswith(("names:", "encoders:"))}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(to, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + rest)


def without(data, to, *columns):
    shutil.copytree(data, to)
    with open(f"{to}/schema.json", encoding="utf-8") as f:
        schema = json.load(f)
    for table in schema["nodes"].values():
        for c in columns:
            table["columns"].pop(c, None)
    with open(f"{to}/schema.json", "w", encoding="utf-8") as f:
        json.dump(schema, f)
    return to


def compiled(name, text):
    with open(f"{name}.gnn", "w", encoding="utf-8") as f:
        f.write(text)
    run(GNNC, f"{name}.gnn", "--target=cpu", "-o", name)
    return f"./{name}"


def categories():
    model = compiled("cities", CITIES)
    here = cities("here", ["ankara", "berlin", "cairo"], 90)
    fewer = cities("fewer", ["cairo", "berlin"], 60)
    more = cities("more", ["berlin", "cairo", "delhi"], 60)
    bare = cities("bare", ["cairo", "berlin"], 60, labels=False)
    run(model, "--data", here, "--log=none", "--out", "w.st")
    check("names are in the weights", json.loads(header_of("w.st")[0]["__metadata__"]["names:vertex.city"]) ==
          ["ankara", "berlin", "cairo"])
    for file in ("cities.ckpt", "w.st"):
        told = run(model, "eval", "--data", fewer, "--weights", file, "--log=json")
        check(f"{file}: fewer names, in other places", accuracy(told) == 1 and accuracy(told, "train") == 1, told)
        told = run(model, "eval", "--data", more, "--weights", file, code=1)
        check("a name that the model does not know", "row 2 of 'vertex.city' is 'delhi'" in told and
              "'ankara', 'berlin', 'cairo'" in told and told.count("\n") == 1, told)
        told = run(model, "embed", "h", "--data", bare, "--weights", file, "--out", "b.npy")
        run(model, "embed", "h", "--data", fewer, "--weights", file, "--out", "f.npy")
        check(f"{file}: rows of the same cities without labels", bytes_of("b.npy") == bytes_of("f.npy"))
    told = run(model, "--data", more, "--resume", "cities.ckpt", "--force", "--log=none", code=1)
    check("resume: a name that the model does not know", "is 'delhi'" in told, told)
    told = run(model, "--data", fewer, "--resume", "cities.ckpt", "--force", "--epochs", 61, "--log=json",
               "--checkpoint", "more.ckpt")
    check("resume on data of fewer names", accuracy(told) == 1, told)
    check("the names of the model are kept", len(json.loads(header_of("more.ckpt")[0]["__metadata__"]["names:vertex.city"])) == 3)
    told = run(model, "--data", fewer, "--resume", "cities.ckpt", code=1)
    check("resume: other data are told", "another data set" in told, told)
    # other codes of the same rows are the same data
    shutil.copytree(here, "turned")
    turn("turned", ["cairo", "ankara", "berlin"])
    run(model, "--data", "turned", "--resume", "cities.ckpt", "--epochs", 70, "--log=none", "--checkpoint", "a.ckpt")
    run(model, "--data", here, "--resume", "cities.ckpt", "--epochs", 70, "--log=none", "--checkpoint", "b.ckpt")
    check("resume goes on to the same bits, whatever the codes", bytes_of("a.ckpt") == bytes_of("b.ckpt"))
    without_names("w.st", "old.st")
    told = run(model, "eval", "--data", here, "--weights", "old.st", "--log=none")
    check("a file without names", told.count("could not be compared") == 2, told)
    library(here, fewer)
    unknown_labels(model)


def unknown_labels(model):
    """Predicting reads no label, so it does not mind classes that the model does not know: named, numbered, of batches."""
    names = ["berlin", "cairo", "delhi"]
    MOOD["cairo"] = "calm"
    strange, bare = cities("strange", names[:2], 60), cities("strange_bare", names[:2], 60, labels=False)
    MOOD["cairo"] = "angry"
    for data, to in ((strange, "a.npy"), (bare, "b.npy")):
        run(model, "predict", "--data", data, "--weights", "w.st", "--out", to)
        run(model, "embed", "h", "--data", data, "--weights", "w.st", "--out", f"h{to}")
    check("predicts over unknown classes", bytes_of("a.npy") == bytes_of("b.npy") and bytes_of("ha.npy") == bytes_of("hb.npy"))
    for argv in (["eval", "--weights", "w.st"], ["--resume", "cities.ckpt", "--force"]):
        told = run(model, *argv, "--data", strange, code=1)
        check("does not judge by unknown classes", "row 1 of 'vertex.y' is 'calm', which the model of" in told, told)
    library_judges(strange)


def library_judges(strange):
    t = Trainer("./libcities.so")
    t.call("gnnc_trainer_load_weights", b"w.st")
    t.load(strange)
    for step in ("step", "evaluate", "epoch"):
        try:
            t.call(f"gnnc_trainer_{step}")
            check(f"{step} over unknown classes", False)
        except Exception as e:
            check(f"{step} over unknown classes", "'calm'" in str(e), str(e))
    t.close()


def turn(data, names):
    """The same rows by other codes."""
    with open(f"{data}/schema.json", encoding="utf-8") as f:
        schema = json.load(f)
    c = schema["nodes"]["vertex"]["columns"]["city"]
    to, c["names"] = [names.index(n) for n in c["names"]], names
    raw = bytes_of(f"{data}/{c['file']}")
    at = 10 + struct.unpack("<H", raw[8:10])[0]
    codes = struct.unpack(f"<{(len(raw) - at) // 4}i", raw[at:])
    with open(f"{data}/{c['file']}", "wb") as f:
        f.write(raw[:at] + struct.pack(f"<{len(codes)}i", *[to[k] for k in codes]))
    with open(f"{data}/schema.json", "w", encoding="utf-8") as f:
        json.dump(schema, f)


def library(here, fewer):
    run(GNNC, "cities.gnn", "--target=cpu", "--emit=lib", "--name=model")
    t = Trainer("./libcities.so")
    t.load(here)
    t.call("gnnc_trainer_load_weights", b"w.st")
    t.close()
    t = Trainer("./libcities.so")
    t.load(fewer)
    try:
        t.call("gnnc_trainer_load_weights", b"w.st")
        check("weights of other names behind the data", False)
    except Exception as e:
        check("weights of other names behind the data", "is to be given before the data" in str(e), str(e))
    t.close()
    t = Trainer("./libcities.so")
    t.call("gnnc_trainer_load_weights", b"w.st")
    t.load(fewer)
    t.call("gnnc_trainer_run_phase", b"eval")
    check("weights of other names before the data", t.output("accuracy.test")[0] == 1)
    t.close()


def labels():
    """Cora without them, by models of the whole graph and of batches."""
    bare = without(CORA, "bare_cora", "y", "split")
    only = without(CORA, "only_split", "y")
    for name in ("gcn", "sage_sampled"):
        run(GNNC, os.path.join(TOP, "models", f"{name}.gnn"), "--target=cpu", "-o", name)
        run(f"./{name}", "--data", CORA, "--epochs", 2, "--log=none", "--out", f"{name}.st")
        for data, to in ((CORA, "a.npy"), (bare, "b.npy"), (only, "c.npy")):
            run(f"./{name}", "predict", "--data", data, "--weights", f"{name}.st", "--out", to)
        check(f"{name} predicts without labels", bytes_of("a.npy") == bytes_of("b.npy") == bytes_of("c.npy"))
        told = run(f"./{name}", "eval", "--data", bare, "--weights", f"{name}.st", code=1)
        check(f"{name} is not evaluated without labels", "'paper' has no column 'y'" in told, told)
        told = run(f"./{name}", "--data", only, code=1)
        check(f"{name} is not trained without labels", "'paper' has no column 'y'" in told, told)
    told = run("./gcn", "--data", CORA, "--epochs", 1, "--weights", "gcn.st", "--log=none")
    check("what has no names is not compared", told == "", told)


def facts(folder, part=lambda i: True, turned=False):
    """A small knowledge base whose entities and relations have names, numbered in order of appearance."""
    os.makedirs(folder)
    triples = [(f"e{i}", rel, f"e{(i + by) % 30}") for i in range(30) for rel, by in (("next", 1), ("over", 3))
               if part(i) and part((i + by) % 30)]
    for split, step in (("train", 1), ("valid", 5), ("test", 3)):
        with open(f"{folder}/{split}.txt", "w", encoding="utf-8") as f:
            f.writelines("\t".join(t) + "\n" for t in triples[::step][::-1 if turned else 1])
    run(GNNC, "import", folder, "-o", f"{folder}.d")
    return f"{folder}.d"


def entities():
    """Parameters with a row for each node: rows are read by its name."""
    run(GNNC, os.path.join(TOP, "models", "complex.gnn"), "-D", "rank=8", "--target=cpu", "-o", "facts")
    here, turned, some = facts("kb"), facts("turned_kb", turned=True), facts("some_kb", lambda i: i < 20, True)
    run("./facts", "--data", here, "--batch", 50, "--epochs", 40, "--log=json", "--out", "facts.st", "--checkpoint", "facts.ckpt")
    head = json.loads(header_of("facts.st")[0]["__metadata__"]["names:entity"])
    check("names of nodes are in the weights", sorted(head) == sorted(f"e{i}" for i in range(30)), head)
    want = json.loads(run("./facts", "eval", "--data", here, "--weights", "facts.st", "--log=json"))["test"]
    check("it learned", want["mrr"] > 0.5, want)
    got = json.loads(run("./facts", "eval", "--data", turned, "--weights", "facts.st", "--log=json"))["test"]
    check("nodes in another order", all(abs(got[k] - want[k]) < 1e-6 for k in want), (got, want))
    got = json.loads(run("./facts", "eval", "--data", turned, "--weights", "facts.ckpt", "--log=json"))["test"]
    check("by the checkpoint", all(abs(got[k] - want[k]) < 1e-6 for k in want), (got, want))
    got = json.loads(run("./facts", "eval", "--data", some, "--weights", "facts.st", "--log=json"))["test"]
    check("fewer nodes", got["mrr"] >= want["mrr"] - 0.1, (got, want))
    got = run("./facts", "--data", some, "--resume", "facts.ckpt", "--force", "--batch", 50, "--epochs", 41, "--log=json", "--checkpoint", "none")
    check("trained further on fewer nodes", json.loads(got.splitlines()[-1])["test"]["mrr"] > 0.5, got)
    run("./facts", "--data", some, "--epochs", 2, "--log=none", "--out", "some.st", "--checkpoint", "none")
    told = run("./facts", "eval", "--data", here, "--weights", "some.st", code=1)
    check("a node that the model does not know", "of 'entity' is 'e20', of which some.st knows nothing: 'decode.node_emb.weight' has rows for the 20 nodes" in told, told)
    without_names("facts.st", "old.st")
    told = run("./facts", "eval", "--data", here, "--weights", "old.st", "--log=none")
    check("rows without names", "no names for the rows of 'entity'" in told, told)


def times():
    """A time that only the data have: the rows are read, and a line says so where what is learned has a time."""
    reads = CITIES.replace("  h = e(g.vertex.city)", "  v = e(g.vertex.city)\n  h = v + sum(v[g.link.src], over = g.link.dst)")
    untold = compiled("untold", reads)
    told = compiled("told", reads.replace("node vertex {", "node vertex timeless {").replace("-> vertex }", "-> vertex timeless }"))
    for name, timed in (("none_timed", ""), ("links_timed", "link"), ("rows_timed", "vertex")):
        data = without("here.d", name)
        with open(f"{data}/schema.json", encoding="utf-8") as f:
            schema = json.load(f)
        for table in [*schema["nodes"].items(), *schema["edges"].items()]:
            if table[0] == timed:
                table[1].setdefault("columns", {})["at"] = {"kind": "time", "file": "at.npy"}
        with open(f"{data}/schema.json", "w", encoding="utf-8") as f:
            json.dump(schema, f)
        head = "{'descr': '<f8', 'fortran_order': False, 'shape': (90,), }"
        head += " " * (-(len(head) + 11) % 64) + "\n"
        with open(f"{data}/at.npy", "wb") as f:
            f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<90d", *range(90)))
        argv = ["--data", data, "--epochs", 1, "--log=none", "--checkpoint", "none"]
        said = f"rows of '{timed}' have the time 'at'"
        check(f"{name}: told of", run(untold, *argv).count(said) == (timed == "vertex"))
        check(f"{name}: refused", (said in run(untold, *argv, "--check-times", code=1 if timed else 0)) == bool(timed))
        check(f"{name}: timeless", run(told, *argv, "--check-times") == "")


def foreseen():
    """Steps over batches have bytes and FLOPs before one was made: of links, too, whose evaluation is by batches."""
    for model, data, phases in (("./sage_sampled", CORA, ["train"]), ("./facts", "kb.d", ["train", "eval"])):
        steps = json.loads(run(model, "info", "--data", data, "--json"))["steps"]
        for phase in phases:
            check(f"{model}: @{phase} is estimated", sum(s["read"] for s in steps if s["phase"] == phase) > 1000 and
                  all(s.get("estimated") for s in steps if s["phase"] == phase), steps)
        check(f"{model}: other phases are not", not any(s.get("estimated") for s in steps if s["phase"] not in phases))


def sizes():
    """Whole-number classes: the weights say how many; 7 what?"""
    shutil.copytree(CORA, "fewer_classes")
    with open("fewer_classes/schema.json", encoding="utf-8") as f:
        text = f.read()
    for n, says in ((9, ""), (7, "")):
        with open("fewer_classes/schema.json", "w", encoding="utf-8") as f:
            f.write(text.replace('"categories": 7', f'"categories": {n}'))
        told = run("./gcn", "eval", "--data", "fewer_classes", "--weights", "gcn.st", "--log=json")
        check(f"{n} classes declared", "accuracy" in told and says in told, told)
    with open(os.path.join(TOP, "models", "gcn.gnn"), encoding="utf-8") as f:
        five = f.read().replace("class[C]", "class[5]").replace("f32[paper, C]", "f32[paper, 5]").replace("conv(C)", "conv(5)")
    told = run(compiled("five", five), "--data", CORA, code=1)
    check("7 of what", "'paper.y' has 7 classes, but the model" in told, told)
    run("./five", "eval", "--data", CORA, "--weights", "gcn.st", code=1)


def higher_classes():
    """Whole-number classes that the weights' model does not have, in the whole graph and in batches."""
    few = without(CORA, "few_classes")
    with open(f"{few}/schema.json", encoding="utf-8") as f:
        file = json.load(f)["nodes"]["paper"]["columns"]["y"]["file"]
    raw = bytes_of(f"{few}/{file}")
    at = 10 + struct.unpack("<H", raw[8:10])[0]
    y = struct.unpack(f"<{(len(raw) - at) // 4}i", raw[at:])
    with open(f"{few}/{file}", "wb") as f:
        f.write(raw[:at] + struct.pack(f"<{len(y)}i", *[c if c < 5 else -1 for c in y]))
    with open(f"{few}/schema.json", "r+", encoding="utf-8") as f:
        text = f.read().replace('"categories": 7', '"categories": 5')
        f.seek(0)
        f.truncate()
        f.write(text)
    for name in ("gcn", "sage_sampled"):
        run(f"./{name}", "--data", few, "--epochs", 2, "--log=none", "--out", "few.st", "--checkpoint", "none")
        for data, to in ((CORA, "a.npy"), ("bare_cora", "b.npy")):
            run(f"./{name}", "predict", "--data", data, "--weights", "few.st", "--out", to)
        check(f"{name} predicts over higher classes", bytes_of("a.npy") == bytes_of("b.npy"))
        told = run(f"./{name}", "eval", "--data", CORA, "--weights", "few.st", code=1)
        check(f"{name} does not judge by higher classes", "of 'paper.y' is class" in told and "has 5" in told, told)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        for part in (categories, labels, sizes, higher_classes, entities, times, foreseen):
            part()
    return end()


sys.exit(main())
