#!/usr/bin/env python3
"""Full-batch training side by side: gnnc against PyG (eager, CSR, torch.compile) and DGL, in one run.

usage: bench/full_batch.py --data DIR --npy DIR [--models gcn,sage,gat,gin] [--systems gnnc,eager,csr,compile,dgl]
                           [--peers-python P] [--dgl-python P] [--rounds 3] [--csv FILE]

  --data   the data directory of `gnnc import`;  --npy  the same data as bench/peers/unpack.py writes it
Every measurement is a process of its own; rounds take the systems in turn, so that a drift of the machine
hits all.  Printed: the median over the rounds of each process's own medians, and the ratio to gnnc.
bench/README.md says how to set up the peers.
"""
import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEERS = os.path.join(TOP, "bench", "peers")
HIDDEN = {"gat": 8}  # 8 heads of 8; the others 16


def command(system, model, a, trainers):
    """The process that measures one system on one model; its last line is JSON."""
    hidden = str(HIDDEN.get(model, 16))
    if system == "gnnc":
        return [trainers[model], "bench", "--data", a.data, "--json"]
    pyg = [a.peers_python, os.path.join(PEERS, "pyg_full.py"), "--data", a.npy, "--model", model, "--hidden", hidden,
           "--epochs", str(a.epochs)]
    if system == "eager":
        return pyg
    if system == "csr":
        return pyg + ["--sparse"]
    if system == "compile":
        return pyg + ["--mode", "compile"]
    return [a.dgl_python, os.path.join(PEERS, "dgl_full.py"), "--data", a.npy, "--model", model, "--hidden", hidden,
            "--epochs", str(a.epochs)]


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--data", default=os.path.join(TOP, "models", "data", "cora"))
    ap.add_argument("--npy", required=True)
    ap.add_argument("--models", default="gcn,sage,gat,gin")
    ap.add_argument("--systems", default="gnnc,eager,csr,compile,dgl")
    ap.add_argument("--gnnc", default=os.path.join(TOP, "build", "gnnc"))
    ap.add_argument("--peers-python", default="python3")
    ap.add_argument("--dgl-python", default="python3")
    ap.add_argument("--epochs", type=int, default=50)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--timeout", type=int, default=600)
    ap.add_argument("--csv")
    a = ap.parse_args()
    models, systems, rows = a.models.split(","), a.systems.split(","), []
    with tempfile.TemporaryDirectory() as tmp:
        trainers = {m: os.path.join(tmp, m) for m in models}
        for m in models:
            subprocess.run([a.gnnc, os.path.join(TOP, "models", m + ".gnn"), "-o", trainers[m]], check=True)
        for m in models:
            got = {s: [] for s in systems}
            for _ in range(a.rounds):
                for s in systems:
                    try:
                        r = subprocess.run(command(s, m, a, trainers), capture_output=True, text=True,
                                           timeout=a.timeout, check=True)
                        got[s].append(json.loads(r.stdout.strip().splitlines()[-1]))
                    except (subprocess.SubprocessError, OSError, ValueError, IndexError) as e:
                        print(f"{m} {s}: {type(e).__name__}: {str(getattr(e, 'stderr', e) or e)[-300:]}",
                              file=sys.stderr)
            for s in systems:
                if not got[s]:
                    rows.append({"model": m, "system": s, "ok": False})
                    continue
                med = {k: statistics.median(g[k] for g in got[s])
                       for k in ("train_ms", "infer_ms", "rss_mib", "first_step_s", "import_s")}
                rows.append({"model": m, "system": s, "ok": True, **{k: round(v, 4) for k, v in med.items()}})
    ours = {r["model"]: r for r in rows if r["system"] == "gnnc" and r["ok"]}
    print(f"{'model':6} {'system':8} {'train ms':>10} {'ratio':>7} {'infer ms':>10} {'ratio':>7} {'MiB':>7} {'start s':>8}")
    for r in rows:
        if not r["ok"]:
            print(f"{r['model']:6} {r['system']:8} failed")
            continue
        base = ours.get(r["model"])
        ratio = [f"{r[k] / base[k]:.1f}x" if base else "-" for k in ("train_ms", "infer_ms")]
        print(f"{r['model']:6} {r['system']:8} {r['train_ms']:10.3f} {ratio[0]:>7} {r['infer_ms']:10.3f} {ratio[1]:>7} "
              f"{r['rss_mib']:7.0f} {r['import_s'] + r['first_step_s']:8.2f}")
    if a.csv:
        with open(a.csv, "w", newline="", encoding="utf-8") as f:
            w = csv.DictWriter(f, ["model", "system", "ok", "train_ms", "infer_ms", "rss_mib", "first_step_s", "import_s"])
            w.writeheader()
            w.writerows(rows)
    return any(not r["ok"] for r in rows)


if __name__ == "__main__":
    sys.exit(main())
