#!/usr/bin/env python3
"""The time of a step beside the least that this machine could do its work in, both measured now.

usage: bench/floor.py MODEL.gnn DATA [--gnnc build/gnnc] [--epochs 5] [--hottest 5] [--json]

The work is the compiled plan's: bytes and FLOPs of each kernel and product (`bench --profile --json`).  The
rates are the machine's: stream bandwidth and matrix products in the cache (the trainer's own probe), and the
gathering of rows of 256 floats by a plain C loop over this graph (floor.c).  A step takes at least the larger
of  flops / GEMM rate  and  gathered bytes / gather rate + other bytes / stream rate;  the floor of a phase is
the sum over its steps.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(*cmd):
    return subprocess.run(cmd, check=True, capture_output=True, text=True).stdout


def gather_rate(work, data, threads):
    """GB/s of floor.c on the data's largest relation."""
    schema = json.load(open(os.path.join(data, "schema.json")))
    edge = max(schema["edges"].values(), key=lambda e: e["count"])
    nodes = max(schema["nodes"][edge[end]]["count"] for end in ("src", "dst"))
    exe = os.path.join(work, "floor")
    run("cc", "-O3", "-march=native", os.path.join(TOP, "bench", "floor.c"), "-pthread", "-o", exe)
    return json.loads(run(exe, os.path.join(data, edge["file"]), str(nodes), "256", str(threads)))


def least_ms(step, gather, stream, gemm):
    moved = step["gathered"] / gather + (step["read"] - step["gathered"] + step["written"]) / stream
    return 1e3 * max(moved, step["flops"] / gemm)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("model")
    ap.add_argument("data")
    ap.add_argument("--gnnc", default=os.path.join(TOP, "build", "gnnc"))
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--hottest", type=int, default=5)
    ap.add_argument("--json", action="store_true")
    a = ap.parse_args()
    threads = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as work:
        trainer = os.path.join(work, "train")
        run(a.gnnc, a.model, "--target=cpu", "-o", trainer)
        rows = gather_rate(work, a.data, threads)
        lines = run(trainer, "bench", "--data", a.data, "--epochs", str(a.epochs), "--json", "--profile").splitlines()
    bench, profile = json.loads(lines[0]), json.loads(lines[1])["profile"]
    gather, stream, gemm = 1e9 * rows["gb_per_s"], 1e9 * profile["gb_per_s"], 1e9 * profile["gflop_per_s"]
    out = {"model": os.path.basename(a.model), "gather_gb_per_s": rows["gb_per_s"], "stream_gb_per_s": stream / 1e9,
           "gemm_gflop_per_s": gemm / 1e9, "phases": {}, "hottest": []}
    for phase, key in (("train", "train_ms"), ("predict", "infer_ms")):
        steps = [s for s in profile["steps"] if s["phase"] == phase]
        floor = sum(least_ms(s, gather, stream, gemm) for s in steps)
        out["phases"][phase] = {"floor_ms": floor, "measured_ms": bench[key], "ratio": bench[key] / floor}
    train = [s for s in profile["steps"] if s["phase"] == "train"][: a.hottest]
    for s in train:
        ms = s["ms"] / s["calls"]
        out["hottest"].append({"name": s["name"], "note": s["note"], "lines": s["lines"], "ms": ms,
                               "of_floor": least_ms(s, gather, stream, gemm) / ms})
    if a.json:
        print(json.dumps(out))
        return
    print(f"{out['model']}: rows gathered {rows['gb_per_s']:.1f} GB/s, stream {stream / 1e9:.1f} GB/s, "
          f"products {gemm / 1e9:.0f} GFLOP/s, {threads} threads")
    for name, p in out["phases"].items():
        print(f"  {name:8} {p['measured_ms']:9.2f} ms, floor {p['floor_ms']:9.2f} ms: {p['ratio']:.2f} x")
    for s in out["hottest"]:
        print(f"  {s['ms']:9.2f} ms  {100 * s['of_floor']:4.0f} % of its limit  {s['name']}  ; {s['note']}")


if __name__ == "__main__":
    sys.exit(main())
