#!/usr/bin/env python3
"""Writes what gnnc predicts of the benchmarks' programs on GPUs, before any has run them, as one page.

usage: bench/predict.py BUNDLE [--kind wide] [--results STEM]     BUNDLE: as `tests/gpu/bundle build BUNDLE bench` makes it

  --kind     wide: the graph of ogbn-arxiv's size; dense: of PubMed's (tests/gpu/bundle)
  --results  STEM.md is written; else standard output
The first run of that folder on a GPU writes what each step took beside these numbers: predicted.csv (tests/gpu/predicted.py).
"""
import argparse
import json
import os
import sys

MODELS = ("gcn", "sage", "gat", "gin")
LEAST_US = 1.0  # of a launch that has a line of its own, without what each launch takes


def read(bundle, kind, model):
    with open(os.path.join(bundle, "programs", kind, model, "predicted.json"), encoding="utf-8") as f:
        return json.load(f)


def us(ns):
    return f"{ns / 1e3:.1f}" if ns < 1e5 else f"{ns / 1e3:.0f}"


def summary(found, machines):
    yield "| model | " + " | ".join(f"{phase}, {m}, ms" for phase in ("train", "predict") for m in machines) + " | launches of a train step |\n"
    yield "|---|" + "--:|" * (2 * len(machines) + 1) + "\n"
    for model, times in found.items():
        phases = {p["phase"]: p for p in times["phases"]}
        n = sum(len(s["launches"]) for s in phases["train"]["steps"])
        cells = [f"{ns / 1e6:.3f}" for phase in ("train", "predict") for ns in phases[phase]["on_ns"]]
        yield f"| {model} | {' | '.join(cells)} | {n} |\n"


def bounds(x):
    known = (("memory_ns", "memory"), ("cache_ns", "cache"), ("waiting_ns", "waiting"), ("instructions_ns", "instructions"),
             ("arithmetic_ns", "arithmetic"), ("tiles_ns", "tiles"), ("longest_row_ns", "longest row"))
    return ", ".join(f"{word} {us(x[key])}" for key, word in known if key in x)


def launches(times, machines):
    train = next(p for p in times["phases"] if p["phase"] == "train")
    yield f"| launch | lines | blocks | registers | waves | kB in flight | {' | '.join(m + ', us' for m in machines)} | bounds on an {machines[0]}, us |\n"
    yield "|---|---|--:|--:|--:|--:|" + "--:|" * len(machines) + "---|\n"
    rows, rest = [], [0] * len(machines)
    for s in train["steps"]:
        for x in s["launches"]:
            first = x["on"][0]
            if max(v for k, v in first.items() if k.endswith("_ns")) < 1e3 * LEAST_US:
                rest = [a + b["ns"] for a, b in zip(rest, x["on"])]
                continue
            rows.append((first["ns"], [x["name"], s["lines"].split(" ")[0], x.get("blocks", ""), x.get("registers", ""),
                                       first["waves_percent"] / 100 if "blocks" in x else "",
                                       f"{first['in_flight_bytes'] / 1e3:.1f}" if "blocks" in x else "",
                                       *(us(on["ns"]) for on in x["on"]), bounds(first)]))
    for _, cells in sorted(rows, key=lambda r: -r[0]):
        yield "| " + " | ".join(map(str, cells)) + " |\n"
    yield f"| those of less than {LEAST_US:.0f} us | | | | | | {' | '.join(map(us, rest))} | |\n"


def page(found, at):
    machines = next(iter(found.values()))["machines"]
    registers = {t["assumed_registers"] for t in found.values()}
    yield f"# Predicted times: {at['graph']} graph, f32\n\n"
    yield "Nothing here is measured: no GPU has run it. `bench/predict.py` wrote it from `--report=times` of the programs that `make gpu-bundle` packs, "
    yield "and the first run of that folder on one of these GPUs writes `predicted.csv`, each step's time beside the one below. What the numbers assume is in "
    yield "[the CUDA target](../../docs/cuda.md#predicted-times). "
    yield "Registers are those that ptxas says for sm_90.\n\n" if registers == {0} else f"{max(registers)} registers a thread are assumed.\n\n"
    yield "Two layers, 128 wide (GAT: 8 heads of 16); dense features.\n\n" if at["kind"] == "wide" else "As the models are in `models/`, with dense features.\n\n"
    yield from summary(found, machines)
    for model, times in found.items():
        yield f"\n## {model}, a train step\n\n"
        yield from launches(times, machines)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("bundle")
    ap.add_argument("--kind", default="wide")
    ap.add_argument("--results")
    a = ap.parse_args()
    all_of = {m: read(a.bundle, a.kind, m) for m in MODELS}
    text = "".join(page({m: x["times"] for m, x in all_of.items()}, {"kind": a.kind, "graph": all_of["gcn"]["graph"]}))
    if not a.results:
        sys.stdout.write(text)
        return
    with open(a.results + ".md", "w", encoding="utf-8") as f:
        f.write(text)


main()
