#!/usr/bin/env python3
"""Full-batch training side by side: gnnc against PyG (eager, CSR, torch.compile) and DGL, in one run.

usage: bench/full_batch.py --npy DIR [--suite cora|arxiv] [--data DIR] [--only gcn,sage] [--systems gnnc,eager,csr,compile,dgl]
                           [--peers-python P] [--dgl-python P] [--rounds 3] [--epochs N] [--results STEM] [--machine TEXT]

  --npy      the graph as bench/peers/synth.py or unpack.py writes it;  --data  the same one as `gnnc import` made it
  --suite    cora: models/*.gnn, 2 layers of 16 (GAT 8 x 8); arxiv: bench/models/*_arxiv.gnn, 3 layers of 256 (GAT 8 x 32)
  --systems  gnnc-bf16, gnnc-f16 and gnnc-auto are gnnc with that --precision; eager-amp, csr-amp and compile-amp are PyG
             under torch.autocast to bfloat16; all others are f32
  --results  STEM.csv and STEM.md are written, STEM.runs.csv has every single run
Every measurement is a process of its own; rounds take the systems in turn, so that a drift of the machine
hits all.  Printed: the median over the rounds of each process's own medians; `best peer` is the fastest peer
of each column, `x best` how many times longer it takes than gnnc.  A peer that fails is a row that says why.
"nothing to first step" is, for gnnc, compiling with gnnc and the trainer's start, load and first step; for peers,
imports and the first step.  bench/README.md says how to set up the peers.
"""
import argparse
import csv
import os
import statistics
import sys
import tempfile
import time

from systems import CORA, GNNC, SUITES, compile_model, machine_in_words, model_file, peer_command, run_limited

KEYS = ("train_ms", "infer_ms", "rss_mib", "first_step_s", "import_s", "compile_s")
COLUMNS = ["machine", "model", "system", "ok", "rounds", *KEYS, "start_s", "train_x_best", "infer_x_best", "rss_of_dgl", "error"]


def command(system, model, a, trainer):
    """The process that measures one system on one model; its last line is JSON."""
    if is_ours(system):
        return [trainer, "bench", "--data", a.data, "--json"] + (["--epochs", str(a.epochs)] if a.short else [])
    if system == "dgl":
        return peer_command("dgl_full.py", a.dgl_python, a.npy, a.suite, model, a.epochs)
    mode, _, amp = system.partition("-")
    more = {"eager": [], "csr": ["--sparse"], "compile": ["--mode", "compile"]}[mode] + {"": [], "amp": ["--amp"]}[amp]
    return peer_command("pyg_full.py", a.peers_python, a.npy, a.suite, model, a.epochs, more)


def is_ours(system):
    return system.partition("-")[0] == "gnnc"


def compile_options(system, a):
    precision = system.partition("-")[2]
    data = [f"--data={a.data}"] if precision == "auto" else []
    return ["--target=cpu", *([f"--precision={precision}"] if precision else []), *data]


def one_run(system, model, a, trainers):
    """A dictionary of KEYS, or {"error": why}."""
    trainer, compile_s = "", 0.0
    if is_ours(system):
        if (system, model) not in trainers:
            out = os.path.join(a.tmp, f"{model}.{system}")
            compile_s, error = compile_model(a.gnnc, model_file(a.suite, model), out, compile_options(system, a))
            if error:
                return {"error": error}
            trainers[system, model] = (out, compile_s)
        trainer, compile_s = trainers[system, model]
    run = run_limited(command(system, model, a, trainer), a.timeout)
    if run.status != "ok":
        return {"error": run.error}
    if "train_ms" not in run.result:
        return {"error": "no train_ms in its output"}
    return {"compile_s": compile_s, **{k: float(run.result[k]) for k in KEYS if k in run.result}}


def measure(a, models, systems):
    """[(model, system, round, result)] with progress and an estimate of the time left."""
    runs, trainers, start, total = [], {}, time.time(), len(models) * len(systems) * a.rounds
    for model in models:
        for k in range(a.rounds):
            for system in systems:
                result = one_run(system, model, a, trainers)
                runs.append((model, system, k, result))
                left = (time.time() - start) / len(runs) * (total - len(runs))
                print(f"[{len(runs)}/{total}, about {left:.0f} s left] {model} {system}: "
                      f"{result.get('error') or '%.3f ms' % result['train_ms']}", file=sys.stderr, flush=True)
    return runs


def summarise(runs, models, systems, machine):
    rows = []
    for model in models:
        by = {s: [r for m, t, _, r in runs if (m, t) == (model, s)] for s in systems}
        mine = []
        for s in systems:
            good = [r for r in by[s] if "error" not in r]
            row = {"machine": machine, "model": model, "system": s, "ok": bool(good), "rounds": len(good)}
            if good:
                row.update({k: round(statistics.median(r.get(k, 0.0) for r in good), 4) for k in KEYS})
                row["start_s"] = round(row["compile_s"] + row["import_s"] + row["first_step_s"], 3)
            row["error"] = next((r["error"] for r in by[s] if "error" in r), "")
            mine.append(row)
        compare(mine)
        rows += mine
    return rows


def compare(rows):
    """What the best peer takes over what gnnc takes; gnnc's memory over DGL's."""
    ok = {r["system"]: r for r in rows if r["ok"]}
    peers = [r for s, r in ok.items() if not is_ours(s)]
    for ours in (r for s, r in ok.items() if is_ours(s) and peers):
        for k in ("train", "infer"):
            if ours[k + "_ms"] > 0:
                ours[k + "_x_best"] = round(min(p[k + "_ms"] for p in peers) / ours[k + "_ms"], 2)
        if "dgl" in ok:
            ours["rss_of_dgl"] = round(ours["rss_mib"] / ok["dgl"]["rss_mib"], 3)


def markdown(rows, a):
    low = "" if all("-" not in r["system"] for r in rows) else " but where a system says otherwise"
    lines = [f"`{a.suite}`, f32{low}, {a.machine}; medians of {a.rounds} rounds. `x best`: the fastest peer's time over gnnc's.", "",
             "| model | system | train ms | x best | inference ms | x best | peak MiB | of DGL's | nothing to first step, s |",
             "|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        if not r["ok"]:
            lines.append(f"| {r['model']} | {r['system']} | failed: {r['error']} | | | | | | |")
            continue
        cells = [r["model"], r["system"], f"{r['train_ms']:.3f}", r.get("train_x_best", ""), f"{r['infer_ms']:.3f}",
                 r.get("infer_x_best", ""), f"{r['rss_mib']:.0f}", r.get("rss_of_dgl", ""), f"{r['start_s']:.2f}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def write_results(stem, rows, runs, text):
    os.makedirs(os.path.dirname(os.path.abspath(stem)), exist_ok=True)
    with open(stem + ".csv", "w", newline="", encoding="utf-8") as f:
        w = csv.DictWriter(f, COLUMNS)
        w.writeheader()
        w.writerows(rows)
    with open(stem + ".runs.csv", "w", newline="", encoding="utf-8") as f:
        w = csv.DictWriter(f, ["model", "system", "round", *KEYS, "error"])
        w.writeheader()
        w.writerows({"model": m, "system": s, "round": k, **r} for m, s, k, r in runs)
    with open(stem + ".md", "w", encoding="utf-8") as f:
        f.write(text)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--suite", choices=sorted(SUITES), default="cora")
    ap.add_argument("--data", default=CORA)
    ap.add_argument("--npy", required=True)
    ap.add_argument("--only", "--models", dest="only", default="gcn,sage,gat,gin")
    ap.add_argument("--systems", default="gnnc,eager,csr,compile,dgl")
    ap.add_argument("--gnnc", default=GNNC)
    ap.add_argument("--peers-python", default="python3")
    ap.add_argument("--dgl-python", default="python3")
    ap.add_argument("--epochs", type=int)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--timeout", type=int, default=600)
    ap.add_argument("--results", "--csv", dest="results")
    ap.add_argument("--machine", default=machine_in_words())
    a = ap.parse_args()
    a.short = a.epochs is not None
    a.epochs = a.epochs or SUITES[a.suite]["epochs"]
    models, systems = a.only.split(","), a.systems.split(",")
    known = {"gnnc", "gnnc-bf16", "gnnc-f16", "gnnc-auto", "dgl", *(m + e for m in ("eager", "csr", "compile") for e in ("", "-amp"))}
    if set(systems) - known:
        ap.error(f"no system {', '.join(sorted(set(systems) - known))}; there are {', '.join(sorted(known))}")
    with tempfile.TemporaryDirectory() as a.tmp:
        runs = measure(a, models, systems)
    rows = summarise(runs, models, systems, a.machine)
    text = markdown(rows, a)
    print(text, end="")
    if a.results:
        stem = a.results[:-4] if a.results.endswith(".csv") else a.results
        write_results(stem, rows, runs, text)
    return any(not r["ok"] for r in rows)


if __name__ == "__main__":
    sys.exit(main())
