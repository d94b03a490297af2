#!/usr/bin/env python3
"""What each pass is worth: models compiled for the CPU without it, on Cora.

    passes.py GNNC TOP FOLDER make [MODEL..]          compiles the programs that differ
    passes.py GNNC TOP FOLDER measure OUT.md [MODEL..]  times them, and writes the table
    passes.py GNNC TOP FOLDER cuda OUT.md [MODEL..]     what each is worth for CUDA: the text, as nvcc compiles it for sm_90

Of each pass that a program can do without: kernels and library calls of a training step, the bytes that they move by the
report of fusion, both with Cora's sizes, and the median of the step's time, of ROUNDS runs that alternate with those of all other
programs of the model.  A pass whose absence leaves the loops as they are has no line.  For CUDA: lines of the text, kernels in it, the
most registers that a kernel needs, kernels that need more than 64 (fewer than half of an SM's threads then fit), and the bytes that all
kernels spill, by `ptxas -v`; nvcc is that of NVCC, or of PATH.
"""
import json
import os
import re
import statistics
import subprocess
import sys

from systems import step_ms

MODELS, ROUNDS, EPOCHS = ["gcn", "gat", "sage"], 5, 60


def run(*args):
    return subprocess.run(args, capture_output=True, text=True, check=True).stdout


def code_of(text):
    """But for comments, which say how gnnc was called."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


class Bench:
    def __init__(self, gnnc, top, folder):
        self.gnnc, self.folder, self.data = gnnc, folder, os.path.join(top, "models/data/cora")
        self.top = top

    def options(self, model, without):
        return [os.path.join(self.top, "models", model + ".gnn"), "--target=cpu", "--specialize=" + self.data, *without]

    def loops(self, model, without):
        """But for the line that says how gnnc was called; None: a program needs the pass."""
        p = subprocess.run([self.gnnc, *self.options(model, without), "--emit=loops"], capture_output=True, text=True, check=False)
        if p.returncode and "cannot do without" not in p.stderr:
            raise ValueError(p.stderr)
        return re.sub(r"^  options .*\n", "", p.stdout, flags=re.M) if p.returncode == 0 else None

    def step(self, model, without):
        told = json.loads(run(self.gnnc, *self.options(model, without), "--emit=none", "--report=fusion", "--report-format=json"))
        train = next(p for p in told["fusion"]["phases"] if p["phase"] == "train")
        return train["kernels"] + train["library_calls"], train["moved"]["value"] / 1e6

    def passes(self):
        listed = re.search(r"^passes:\n(.*?)\n\n", run(self.gnnc, "--help"), re.M | re.S).group(1)
        return re.findall(r"^  ([a-z-]+)", listed, re.M)

    def cuda_text(self, model, without):
        """None: a program needs the pass."""
        p = subprocess.run([self.gnnc, os.path.join(self.top, "models", model + ".gnn"), "--target=cuda", *without, "--emit=cuda"],
                           capture_output=True, text=True, check=False)
        if p.returncode and "cannot do without" not in p.stderr:
            raise ValueError(p.stderr)
        return p.stdout if p.returncode == 0 else None

    def cuda_cost(self, model, text):
        path = os.path.join(self.folder, model + ".cu")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        p = subprocess.run([os.environ.get("NVCC", "nvcc"), "-std=c++17", "-arch=sm_90", "-Xptxas", "-v", "-cubin",
                            "-I" + os.path.join(self.top, "runtime"), "-o", path + "bin", path], capture_output=True, text=True, check=True)
        registers = [int(n) for n in re.findall(r"Used (\d+) registers", p.stderr)]
        spills = [int(n) for n in re.findall(r"(\d+) bytes spill stores", p.stderr)]
        return text.count("\n"), len(registers), max(registers, default=0), sum(n > 64 for n in registers), sum(spills)

    def cuda_table(self, model):
        whole, rows = self.cuda_text(model, []), []
        for name in [None, *self.passes(), "-O0"]:
            text = self.cuda_text(model, [] if not name else ["-O0"] if name == "-O0" else ["--disable-pass=" + name])
            if text is None or (name and code_of(text) == code_of(whole)):
                continue
            shown = {None: "nothing: -O2", "-O0": "all: -O0"}.get(name, name)
            rows.append("| " + " | ".join(map(str, [shown, *self.cuda_cost(model, text)])) + " |")
        head = ["| without | lines | kernels | most registers | kernels of more than 64 | bytes spilled |", "|---|---|---|---|---|---|"]
        return "\n".join([f"## {model}", "", *head, *rows, ""])

    def program(self, model, name):
        return os.path.join(self.folder, f"{model}.{name}")

    def make(self, model):
        whole, made = self.loops(model, []), {}
        for name in [None] + self.passes():
            without = ["--disable-pass=" + name] if name else []
            if name and self.loops(model, without) in (whole, None):
                continue
            made[name or "all"] = self.step(model, without)
            run(self.gnnc, *self.options(model, without), "--no-rows", "-o", self.program(model, name or "all"))
        made["-O0"] = self.step(model, ["-O0"])
        run(self.gnnc, *self.options(model, ["-O0"]), "--no-rows", "-o", self.program(model, "-O0"))
        with open(self.program(model, "json"), "w", encoding="utf-8") as f:
            json.dump(made, f)

    def time(self, model, name):
        return step_ms(self.program(model, name), self.data, EPOCHS)

    def table(self, model):
        with open(self.program(model, "json"), encoding="utf-8") as f:
            made = json.load(f)
        times = {name: [] for name in made}
        for _ in range(ROUNDS):
            for name in made:
                times[name].append(self.time(model, name))
        base, lines = statistics.median(times["all"]), []
        for name, (steps, moved) in made.items():
            ms = statistics.median(times[name])
            shown = {"all": "nothing: -O2", "-O0": "all: -O0"}.get(name, name)
            lines.append(f"| {shown} | {steps} | {moved:.2f} | {ms:.3f} | {ms / base:.2f} | {max(times[name]) / min(times[name]):.2f} |")
        head = ["| without | kernels and calls | MB moved | ms | of -O2's | spread |", "|---|---|---|---|---|---|"]
        return "\n".join([f"## {model}", "", *head, *lines, ""])


def main():
    bench, what = Bench(*[os.path.abspath(a) for a in sys.argv[1:4]]), sys.argv[4]
    if what == "make":
        for model in sys.argv[5:] or MODELS:
            bench.make(model)
        return
    table = bench.cuda_table if what == "cuda" else bench.table
    text = "\n".join(table(model) for model in sys.argv[6:] or MODELS)
    with open(sys.argv[5], "w", encoding="utf-8") as f:
        f.write(text)


main()
