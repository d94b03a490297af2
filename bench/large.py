#!/usr/bin/env python3
"""Graphs of Reddit's and ogbn-products' size: gnnc beside PyG and DGL, full batch and sampled, and what does not fit; resumable.

usage: bench/large.py --work DIR [--scale 20] [--graphs reddit,products] [--modes import,full,sampled] [--models gcn,sage]
                      [--systems gnnc,pyg,pyg-csr,dgl] [--peers-python P] [--dgl-python P] [--timeout S] [--memory GIB] [--minutes N]
                      [--results STEM] [--retry] [--list]

  --work     DIR/npy/NAME: arrays of a generated graph (bench/peers/skewed.py), which peers read and gnnc imports to DIR/data/NAME; both
             graphs take 9 GB.  What is there is not made again
  --scale    graphs of one N-th of the nodes and edges (1), to try the script
  --minutes  starts nothing that might not end within so long (10; 0: no limit); the same command goes on from there
  --retry    runs again what failed, timed out or ran out of memory;  --list  only says what would run

  import   the seconds and memory of `gnnc import`
  full     GCN and SAGE, two layers, hidden 128, f32: the median of 3 steps over the whole graph, an epoch each, behind at least one.
           pyg: edge_index; pyg-csr: the fused product of torch.sparse
  sampled  SAGE, hidden 128, batches of 1024, fan-outs 10,10 (reddit) and 15,10,5 (products): the mean of 50 steps behind six,
           making of batches and copying of features included; epoch_s is that times the steps of an epoch

Each run is a process of its own under --timeout and --memory; what fails is a row that says why.  STEM.csv is written after each run; a
row of the same graph, system and version (of gnnc the last commit that changed it) is not run again.  STEM.md and STEM.lock.txt, the environment, are written at the end.
peak_mib is the process's resident memory, pages of mapped files included; start_s ends with the first step, loading and imports included; gnnc
keeps no index arrays beside the data (--no-cache), which would take 8 GB more and shorten later starts."""
import argparse
import os
import sys
import time

import grid
from systems import NO_OBJECT, TOP, add_options, compile_model, read_csv, run_limited, said_by, write_csv

# Sizes, mean and largest degree, and shares of the split as published; the exponents are chosen so that the median fits, too
GRAPHS = {"reddit": {"nodes": 232965, "pairs": 57307946, "features": 602, "classes": 41, "exponent": 2.0, "max-degree": 21657,
                     "train": 0.66, "val": 0.10, "fanout": "10,10"},
          "products": {"nodes": 2449029, "pairs": 61859140, "features": 100, "classes": 47, "exponent": 2.4, "max-degree": 17481,
                       "train": 0.08, "val": 0.016, "fanout": "15,10,5"}}
MODES = {"import": ([""], ["gnnc"]), "full": (["gcn", "sage"], ["gnnc", "pyg-csr", "dgl", "pyg"]), "sampled": (["sage"], ["gnnc", "pyg", "dgl"])}
HIDDEN, BATCH, EPOCHS, STEPS = 128, 1024, 3, 50
KEY = ("machine", "graph", "mode", "model", "system")
COLUMNS = KEY + ("version","status", "epoch_s", "step_s", "steps", "start_s", "peak_mib", "x_gnnc", "wall_s", "said")


def versions(a):
    """What each system's rows are of: the last commit that changed gnnc, packages' versions."""
    ask = "import importlib.metadata as m, sys; print(' + '.join(p + ' ' + m.version(p) for p in sys.argv[1:]))"
    pyg = said_by(a.peers_python, "-c", ask, "torch", "torch-geometric", "pyg-lib")
    sources = ("frontend", "ir", "passes", "codegen", "runtime", "models", "bench/models")
    return {"gnnc": said_by("git", "-C", TOP, "log", "-1", "--format=%h", "--", *sources), "pyg": pyg, "pyg-csr": pyg,
            "dgl": said_by(a.dgl_python, "-c", ask, "torch", "dgl")}


class Large:
    def __init__(self, a):
        self.a, self.memory = a, int(a.memory * 2**30)

    def name(self, graph):
        return graph if self.a.scale == 1 else f"{graph}_{self.a.scale}"

    def npy(self, graph):
        return os.path.join(self.a.work, "npy", self.name(graph))

    def data(self, graph):
        return os.path.join(self.a.work, "data", self.name(graph))

    def jobs(self):
        """(graph, mode, model, system) in the order in which they run."""
        wanted = lambda name, only: not only or name in only.split(",")
        of = versions(self.a)
        return [(self.a.machine, self.name(g), mode, model, system, of[system]) for g in GRAPHS if wanted(g, self.a.graphs)
                for mode, (models, systems) in MODES.items() if wanted(mode, self.a.modes)
                for model in models if not model or wanted(model, self.a.models) for system in systems if wanted(system, self.a.systems)]

    def generate(self, graph):
        """The arrays; the file that is looked for is written last."""
        if os.path.exists(os.path.join(self.npy(graph), "metadata.yaml")):
            return
        size = dict(GRAPHS[graph])
        del size["fanout"]
        for k in ("nodes", "pairs"):
            size[k] //= self.a.scale
        size["max-degree"] /= self.a.scale**0.5
        run = run_limited([self.a.peers_python, os.path.join(TOP, "bench", "peers", "skewed.py"), self.npy(graph),
                           *(word for k, v in size.items() for word in (f"--{k}", str(v)))], float("inf"), self.memory)
        if not run.output.startswith("nodes"):
            sys.exit(f"{graph}: {run.error}")
        print(f"{graph}: {run.output.strip()} ({run.wall_s:.0f} s)", file=sys.stderr)

    def imported(self, graph, again=False):
        """Imports the graph; the run, or None where it was there."""
        if os.path.exists(os.path.join(self.data(graph), "schema.json")) and not again:
            return None
        return run_limited([self.a.gnnc, "import", self.npy(graph), "-o", self.data(graph), "--node", "paper", "--edge", "cites", "--force"],
                           self.a.timeout, self.memory)

    def program(self, source, options):
        out = os.path.join(self.a.work, "bin", os.path.basename(source)[:-4])
        os.makedirs(os.path.dirname(out), exist_ok=True)
        _, error = compile_model(self.a.gnnc, os.path.join(TOP, source), out, ["--target=cpu", *options], self.a.timeout)
        return out, error

    def command(self, graph, mode, model, system):
        """The process of a run, or why there is none."""
        a, fanout = self.a, GRAPHS[graph]["fanout"]
        more = ["--epochs", str(EPOCHS), "--brief"] if mode == "full" else ["--steps", str(STEPS), "--fanout", fanout, "--bs", str(BATCH)]
        if system == "gnnc" and mode == "full":
            program, error = self.program(f"models/{model}.gnn", ["-D", f"hidden={HIDDEN}"])
            return [program, "bench", "--epochs", str(EPOCHS)], error
        if system == "gnnc":
            program, error = self.program(f"bench/models/sage_batches_{len(fanout.split(','))}.gnn", ["-D", f"hidden={HIDDEN}"])
            return [program, "bench", "--epochs", str(STEPS), "--batch", str(BATCH), "--fanout", fanout], error
        script = {"full": "{}_full.py", "sampled": "{}_mini.py"}[mode].format(system.partition("-")[0])
        more += ["--sparse"] if system == "pyg-csr" else []
        more += ["--model", model, "--layers", "2"] if mode == "full" else []
        return [a.dgl_python if system == "dgl" else a.peers_python, os.path.join(TOP, "bench", "peers", script), "--data", self.npy(graph),
                "--hidden", str(HIDDEN), *more], ""

    def measure(self, job):
        """One row, whatever happens."""
        _, _, mode, model, system, _ = job
        graph = job[1].partition("_")[0]
        row = dict.fromkeys(COLUMNS, "")
        row.update(zip(KEY + ("version",), job))
        if mode == "import":
            run, got = self.imported(graph, again=True), {}
            ok = run.error in ("", NO_OBJECT)
        else:
            command, error = self.command(graph, mode, model, system)
            if error:
                return {**row, "status": "failed", "said": error}
            if system == "gnnc":
                command += ["--phase", "train", "--json", "--no-tuned", "--no-cache", "--data", self.data(graph)]
            run = run_limited(command, self.a.timeout, self.memory)
            got, ok = run.result, run.status == "ok"
        row.update(status="ok" if ok else run.status, said="" if ok else run.error, peak_mib=round(run.peak_mib), wall_s=round(run.wall_s, 1))
        if ok:
            row.update(self.times(graph, mode, system, got) if got else {"epoch_s": round(run.wall_s, 2)})
        return row

    def times(self, graph, mode, system, got):
        """Columns of what a run said."""
        if mode == "full":
            s = got["train_ms"] / 1e3
            return {"epoch_s": round(s, 3), "step_s": round(s, 3), "steps": EPOCHS,
                    "start_s": round(got["first_step_s"] if system == "gnnc" else got["total_s"] - EPOCHS * s, 1)}
        rows = GRAPHS[graph]["nodes"] // self.a.scale * GRAPHS[graph]["train"]
        s = got["train_mean_ms"] / 1e3 if system == "gnnc" else got["step_s"]
        return {"epoch_s": round(s * -(-rows // BATCH), 2), "step_s": round(s, 4), "steps": STEPS,
                "start_s": round(got["first_step_s"] if system == "gnnc" else got["start_s"], 1)}


def key(row):
    return tuple(row[k] for k in KEY)


def compare(rows):
    """How many times gnnc's time each takes."""
    ours = {key(r)[:4]: float(r["epoch_s"]) for r in rows if r["system"] == "gnnc" and r["status"] == "ok"}
    for r in rows:
        mine = ours.get(key(r)[:4])
        r["x_gnnc"] = f"{float(r['epoch_s']) / mine:.2f}" if mine and r["status"] == "ok" and r["mode"] != "import" else ""


def write_md(path, rows, a):
    sizes = "; ".join(f"{n}: {g['nodes'] // a.scale:,} nodes, {2 * g['pairs'] // a.scale:,} edges, {g['features']} features, degrees' exponent {g['exponent']:g}"
                      for n, g in GRAPHS.items())
    lines = [f"`bench/large.py`, f32, {a.machine}, each run at most {a.timeout:g} s and {a.memory:g} GiB. Synthetic graphs ({sizes}).", "",
             f"full: 2 layers, hidden {HIDDEN}, a step over the whole graph is an epoch. sampled: hidden {HIDDEN}, batches of {BATCH}, fan-outs "
             + ", ".join(f"{g['fanout']} ({n})" for n, g in GRAPHS.items()) + f"; {STEPS} steps measured, an epoch is reckoned.", "",
             "| graph | mode | model | system | an epoch, s | x gnnc | a step, s | start, s | peak GiB | what it said |", "|---|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        words = "" if r["status"] == "ok" else f"{r['status']}: {r['said']}".replace("|", "\\|")
        lines.append(f"| {r['graph']} | {r['mode']} | {r['model']} | {r['system']} | {r['epoch_s']} | {r['x_gnnc']} | {r['step_s']} | {r['start_s']} | "
                     f"{float(r['peak_mib'] or 0) / 1024:.1f} | {words} |")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--work", required=True)
    ap.add_argument("--scale", type=int, default=1)
    add_options(ap, ("--graphs", "--modes", "--models", "--systems"), "large")
    ap.add_argument("--minutes", type=float, default=10)
    a = ap.parse_args()
    large, rows, start = Large(a), read_csv(a.results + ".csv"), time.time()
    jobs = large.jobs()
    done = {key(r) + (r["version"],) for r in rows if not (a.retry and r["status"] != "ok")}
    todo = [j for j in jobs if j not in done]
    if a.list:
        print("\n".join(" ".join(j[1:5]) for j in todo))
        return 0
    for k, job in enumerate(todo):
        if a.minutes and k and time.time() - start + a.timeout > 60 * a.minutes:
            print(f"{len(todo) - k} runs are left; the same command goes on from here", file=sys.stderr)
            break
        graph = job[1].partition("_")[0]
        large.generate(graph)
        if job[2] != "import":
            large.imported(graph)
        row = large.measure(job)
        rows = [r for r in rows if key(r) != job[:-1]] + [row]
        compare(rows)
        write_csv(a.results + ".csv", COLUMNS, rows)
        print(f"[{k + 1}/{len(todo)}] {' '.join(job[1:5])}: {row['said'] or str(row['epoch_s']) + ' s'}", file=sys.stderr, flush=True)
    order = {j[:-1]: k for k, j in enumerate(jobs)}
    rows.sort(key=lambda r: order.get(key(r), len(order)))
    write_csv(a.results + ".csv", COLUMNS, rows)
    write_md(a.results + ".md", rows, a)
    grid.write_lock(a.results + ".lock.txt", a)
    return 0


if __name__ == "__main__":
    sys.exit(main())
