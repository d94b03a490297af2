#!/usr/bin/env python3
"""Four ways to train one model: baseline, sampled, sampled + AMP, compiled + sampled + AMP; gnnc beside PyG, in one run.

usage: bench/amp.py --npy DIR --data DIR [--epochs 5] [--rounds 3] [--batch 1024] [--peers-python P] [--systems gnnc,pyg]
                    [--timeout S] [--memory GIB] [--results STEM]

  --npy   arrays as bench/peers/export.py, unpack.py or synth.py writes them;  --data  the same graph, imported by gnnc

The model is SAGE of two layers, 128 wide (bench/models/sage_batches_2.gnn, bench/peers/pyg_mini.py).

  baseline                  each step sees the whole graph, f32
  sampled                   batches of 1024 with fan-outs 10,5, f32
  sampled + AMP             the same in bf16: --precision=bf16; torch.autocast
  compiled + sampled + AMP  the same, compiled for what is known: --specialize=DIR; torch.compile(dynamic=True)

gnnc is a compiler, so its first three are compiled, too: `gnnc -O0` shows them with a kernel for each operation, as eager has
them.  An epoch is all steps over the training rows, evaluation not counted; accuracy is that of the whole graph after all epochs.
Every measurement is a process of its own, systems by turns; medians over the rounds.  Printed, and written to STEM.csv, .md, .svg."""
import argparse
import json
import os
import statistics
import sys
import tempfile
from collections import defaultdict

import svg
from systems import GNNC, TOP, compile_model, machine_in_words, memory_bytes, run_limited, write_table

SOURCE = os.path.join(TOP, "bench", "models", "sage_batches_2.gnn")
WAYS = {"baseline": "--full", "sampled": "", "sampled + AMP": "--amp", "compiled + sampled + AMP": "--amp --mode compile"}
COLUMNS = ["system", "configuration", "epoch_s", "against_baseline", "against_pyg", "peak_mib", "start_s", "compile_s", "test_pct", "status"]


def whole_graph(folder):
    """The model without its `sample` line: a step sees all rows."""
    with open(SOURCE, encoding="utf-8") as f:
        text = f.read()
    whole = "".join(line for line in text.splitlines(True) if not line.lstrip().startswith("sample {"))
    assert whole != text, f"{SOURCE}: no line that begins with 'sample {{'"
    path = os.path.join(folder, "sage_whole.gnn")
    with open(path, "w", encoding="utf-8") as f:
        f.write(whole.replace('"layers/', '"' + os.path.join(TOP, "models", "layers") + "/"))
    return path


def programs(a, folder):
    """{(system, configuration): (trainer, seconds to compile it)} of gnnc."""
    whole, found = whole_graph(folder), {}
    for system, level in (("gnnc -O0", "-O0"), ("gnnc", "-O2")):
        for way in WAYS:
            if system == "gnnc -O0" and way.startswith("compiled"):
                continue
            options = [level, "--target=cpu"] + (["--precision=bf16"] if "AMP" in way else [])
            options += ["--specialize=" + a.data] if way.startswith("compiled") else []
            out = os.path.join(folder, f"{system} {way}".replace(" ", "_"))
            seconds, error = compile_model(a.gnnc, whole if way == "baseline" else SOURCE, out, options, a.timeout)
            if error:
                sys.exit(f"{system}, {way}: {error}")
            found[system, way] = out, seconds
    return found


def gnnc_once(a, trainer, way):
    """One training run: columns of a row."""
    batch = [] if way == "baseline" else ["--batch", str(a.batch)]
    run = run_limited([trainer, "train", "--data", a.data, "--epochs", str(a.epochs), *batch, "--log=json", "--checkpoint", "none",
                       "--no-tuned"], a.timeout, a.memory)
    if run.status != "ok":
        return {"status": f"{run.status}: {run.error}"}
    epochs = [e for e in map(json.loads, run.output.strip().splitlines()) if "train_ms" in e]
    total = sum(e["ms"] for e in epochs) / 1e3
    return {"status": "ok", "epoch_s": statistics.median(e["train_ms"] for e in epochs[min(1, len(epochs) - 1):]) / 1e3,
            "peak_mib": run.peak_mib, "start_s": run.wall_s - total, "test_pct": 100 * epochs[-1]["test"]["accuracy"]}


def pyg_once(a, way):
    run = run_limited([a.peers_python, os.path.join(TOP, "bench", "peers", "pyg_mini.py"), "--data", a.npy, "--epochs", str(a.epochs),
                       "--bs", str(a.batch), "--test", *WAYS[way].split()], a.timeout, a.memory)
    if run.status != "ok":
        return {"status": f"{run.status}: {run.error}"}
    r = run.result
    return {"status": "ok", "epoch_s": r["epoch_s"], "peak_mib": r["rss_mib"], "start_s": r["start_s"], "test_pct": 100 * r["test"]}


def measure(a, folder):
    """{(system, configuration): [columns of each round]}"""
    compiled = programs(a, folder) if "gnnc" in a.systems.split(",") else {}
    got = defaultdict(list)
    for _ in range(a.rounds):
        for way in WAYS:
            for system in ("gnnc", "gnnc -O0", "pyg"):
                if (system, way) in compiled:
                    trainer, seconds = compiled[system, way]
                    got[system, way].append({**gnnc_once(a, trainer, way), "compile_s": seconds})
                elif system == "pyg" and "pyg" in a.systems.split(","):
                    got[system, way].append(pyg_once(a, way))
                else:
                    continue
                print(f"{system:9} {way:25}", *(f"{k} {v:.4g}" if isinstance(v, (int, float)) else v for k, v in got[system, way][-1].items()),
                      file=sys.stderr, flush=True)
    return got


def table(got):
    """A row for each system and configuration: medians, and ratios of the epochs' medians."""
    rows = []
    for (system, way), rounds in got.items():
        row = dict.fromkeys(COLUMNS, "")
        row.update(system=system, configuration=way, status=next((r["status"] for r in rounds if r["status"] != "ok"), "ok"))
        good = [r for r in rounds if r["status"] == "ok"]
        for k in ("epoch_s", "peak_mib", "start_s", "compile_s", "test_pct"):
            values = [r[k] for r in good if k in r]
            row[k] = float(f"{statistics.median(values):.4g}") if values else ""
        rows.append(row)
    took = {(r["system"], r["configuration"]): r["epoch_s"] for r in rows if r["epoch_s"]}
    for r in rows:
        mine = took.get((r["system"], r["configuration"]))
        for column, other in (("against_baseline", (r["system"], "baseline")), ("against_pyg", ("pyg", r["configuration"]))):
            if mine and other in took:
                r[column] = f"{took[other] / mine:.2f}x"
    return sorted(rows, key=lambda r: (list(WAYS).index(r["configuration"]), r["system"]))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--npy", required=True)
    ap.add_argument("--data", required=True)
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--batch", type=int, default=1024)
    ap.add_argument("--systems", default="gnnc,pyg")
    ap.add_argument("--peers-python", default="python3")
    ap.add_argument("--gnnc", default=GNNC)
    ap.add_argument("--timeout", type=float, default=300)
    ap.add_argument("--memory", type=float, default=0.75 * memory_bytes() / 2**30, metavar="GIB")
    ap.add_argument("--machine", default=machine_in_words())
    ap.add_argument("--results", default="", metavar="STEM")
    a = ap.parse_args()
    a.memory, a.data = int(a.memory * 2**30), os.path.abspath(a.data)
    with tempfile.TemporaryDirectory() as folder:
        rows = table(measure(a, folder))
    for r in rows:
        print(" ".join(f"{str(r[c]):>{26 if c == 'configuration' else 10}}" for c in COLUMNS))
    if a.results:
        name = os.path.basename(a.npy.rstrip("/"))
        write_table(a.results, COLUMNS, rows, f"`bench/amp.py`, `{name}`, {a.machine}; medians of {a.rounds} rounds of {a.epochs} epochs.")
        with open(a.results + ".svg", "w", encoding="utf-8") as f:
            f.write(svg.bars([(f"{r['configuration']}: {r['system']}", r["epoch_s"], r["system"]) for r in rows if r["epoch_s"]],
                             f"{name}: an epoch of SAGE", "s"))
    return any(r["status"] != "ok" for r in rows)


if __name__ == "__main__":
    sys.exit(main())
