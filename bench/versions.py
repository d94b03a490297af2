#!/usr/bin/env python3
"""Two versions of gnnc, over every shipped model: how long a step takes on a CPU, and what code there is.

    versions.py THEN NOW FOLDER make [MODEL..]           the tops of two checkouts that are built; compiles with both
    versions.py THEN NOW FOLDER measure OUT.md [MODEL..]  times the programs, and writes the table

Data are random: ROWS rows of each node type and DEGREE times as many edges of each relation, the same for both.  Times are medians of
a training step on all cores, of ROUNDS runs that alternate between the versions; instructions those of the kernels for a CPU
(objdump), lines those of --emit=cuda, registers the most that a kernel of the model needs (tests/cudasim/registers.txt).
"""
import json
import os
import re
import statistics
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests/random"))
from data import Data  # noqa: E402
from systems import step_ms  # noqa: E402

ROWS, DEGREE, GRAPHS, ROUNDS, EPOCHS = 2000, 6, 100, 9, 20


def run(*args):
    p = subprocess.run(args, capture_output=True, text=True, check=False)
    if p.returncode:
        raise ValueError(" ".join(args) + "\n" + p.stderr)
    return p.stdout


class Rows(Data):
    """Every node type and relation has rows, every split some of them."""

    def count(self, node):
        return ROWS

    def count_graphs(self):
        return GRAPHS

    def splits(self, r, n):
        found = [(1, 1, 2, 3, 0)[i % 5] for i in range(n)]
        r.shuffle(found)
        return found

    def ends(self, name, src, dst):
        r = self.rng("edges", name)
        return [[r.randrange(self.count(t)) for _ in range(DEGREE * ROWS)] for t in (src, dst)]


def registers(top, model):
    """The most of any kernel of the model; None where the version keeps no such list."""
    if not os.path.exists(os.path.join(top, "tests/cudasim/registers.txt")):
        return None
    with open(os.path.join(top, "tests/cudasim/registers.txt"), encoding="utf-8") as f:
        found = re.search(rf"^{model} (\d+)", f.read(), re.M)
    return int(found.group(1)) if found else None


class Versions:
    def __init__(self, then, now, folder):
        self.tops, self.folder = {"then": then, "now": now}, folder

    def at(self, *name):
        return os.path.join(self.folder, ".".join(name))

    def gnnc(self, which, model, *more):
        """The same model files for both: what changed is the compiler."""
        return run(os.path.join(self.tops[which], "build/gnnc"), os.path.join(self.tops["now"], "models", model + ".gnn"), *more)

    def training_alone(self, which):
        """The option that leaves out the program of single rows, where the version has one."""
        return ["--no-rows"] if "--no-rows" in run(os.path.join(self.tops[which], "build/gnnc"), "--help") else []

    def code(self, which, model):
        obj, cuda = self.at(model, which, "o"), self.at(model, which, "cu")
        self.gnnc(which, model, "--target=cpu", "--march=x86-64-v4", "--emit=obj", "-o", obj)
        self.gnnc(which, model, "--target=cuda", "--emit=cuda", "-o", cuda)
        with open(cuda, encoding="utf-8") as f:
            text = f.read()
        n = len(re.findall(r"^ +[0-9a-f]+:\t", run("objdump", "-d", "--no-show-raw-insn", obj), re.M))
        return {"instructions": n, "lines": text.count("\n"), "registers": registers(self.tops[which], model)}

    def make(self, model):
        with open(os.path.join(self.tops["now"], "models", model + ".gnn"), encoding="utf-8") as f:
            Rows(f.read(), 1).write(self.at(model, "data"))
        made = {}
        for which in self.tops:
            made[which] = self.code(which, model)
            self.gnnc(which, model, "--target=cpu", *self.training_alone(which), "-o", self.at(model, which))
        with open(self.at(model, "json"), "w", encoding="utf-8") as f:
            json.dump(made, f)

    def time(self, which, model):
        return step_ms(self.at(model, which), self.at(model, "data"), EPOCHS)

    def row(self, model):
        with open(self.at(model, "json"), encoding="utf-8") as f:
            made = json.load(f)
        times = {which: [] for which in made}
        for _ in range(ROUNDS):
            for which, found in times.items():
                found.append(self.time(which, model))
        ms = {which: statistics.median(found) for which, found in times.items()}
        of = lambda key: f"{made['then'][key] or '-'} | {made['now'][key] or '-'}"
        return (f"| {model} | {ms['then']:.3f} | {ms['now']:.3f} | {ms['now'] / ms['then']:.2f} | {max(times['now']) / min(times['now']):.2f} "
                f"| {of('instructions')} | {of('lines')} | {of('registers')} |")


def main():
    versions, what = Versions(*[os.path.abspath(a) for a in sys.argv[1:4]]), sys.argv[4]
    models = sys.argv[5 if what == "make" else 6:] or sorted(f[:-4] for f in os.listdir(os.path.join(TOP, "models")) if f.endswith(".gnn"))
    if what == "make":
        for model in models:
            versions.make(model)
        return
    head = ["| model | ms then | now | ratio | spread | CPU instructions then | now | lines of CUDA then | now | registers then | now |",
            "|---|---|---|---|---|---|---|---|---|---|---|"]
    with open(sys.argv[5], "a", encoding="utf-8") as f:
        if not f.tell():
            f.write("\n".join(head) + "\n")
        for model in models:
            f.write(versions.row(model) + "\n")


if __name__ == "__main__":
    main()
