#!/usr/bin/env python3
"""What tests/gpu/run tells and writes, by programs that only print: verdicts, the clock, tables, a session that is cut off.

    verdicts.py    nothing is compiled
"""
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
GPU = os.path.join(os.path.dirname(HERE), "gpu")
sys.path.insert(0, GPU)
import curves  # noqa: E402
import machine  # noqa: E402
import programs  # noqa: E402
from suites import AGREES, BENCHED, CORA, EPOCHS, MINUTES, QUICK, ROUNDS, SHIFTS  # noqa: E402

BENCH = {"train_ms": 1.5, "infer_ms": 0.5, "device_mib": 10, "launches_per_step": 1, "library_calls_per_step": 2}
STEP = {"phase": "train", "lines": "m.gnn:3", "calls": 2, "read": 1000, "written": 1000, "flops": 10}
PROFILE = {"gb_per_s": 4000, "gflop_per_s": 50000, "steps": [{"index": 0, "name": "near", "ms": 0.06, "limit": 0.9, **STEP},
                                                             {"index": 1, "name": "far", "ms": 0.02, "limit": 0.5, **STEP}]}


def log(n, off=0.0, at=None):
    """Epochs of a training run; from epoch `at` on its losses are off."""
    rows = [{"epoch": e, "loss": 2.0 / e + (off if at and e >= at else 0), "train": {"accuracy": 0.5}, "train_ms": 3.0 + e} for e in range(1, n + 1)]
    return "".join(json.dumps(r) + "\n" for r in rows)


def program(path, training, before=""):
    """What a trainer prints."""
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\n{before}\nfor a; do [ \"$last\" != --epochs ] || n=$a; last=$a; done\nif [ \"$1\" = bench ]; then\n  echo '{json.dumps(BENCH)}'\n"
                f"  case \"$*\" in *--profile*) echo '{json.dumps({'profile': PROFILE})}' ;; esac\nelse\n  head -n \"${{n:-0}}\" <<'L'\n{training}L\nfi\n")
    os.chmod(path, 0o755)


def bundle(top, **odd):
    """A folder such as tests/gpu/bundle makes.  odd: another log or line of a program, by kind_name."""
    os.makedirs(top + "/built")
    os.makedirs(top + "/tests/gpu")
    for name in os.listdir(GPU):
        if name == "run" or name.endswith(".py"):
            shutil.copy(os.path.join(GPU, name), top + "/tests/gpu")
    for kind, names, n in (("models", CORA, "cora"), ("hubs", CORA, "cora"), ("models_cusparse", ("gcn",), "cora"), ("dense", CORA, "tiny"),
                           ("dense_cusparse", ("gcn",), "tiny")):
        os.mkdir(top + "/made")
        os.makedirs(f"{top}/recorded/{n}", exist_ok=True)
        for name in names:
            program(f"{top}/made/{name}", **{"training": log(EPOCHS[n]), **odd.get(f"{kind}_{name}", {})})
            with open(f"{top}/recorded/{n}/{name}.json", "w", encoding="utf-8") as f:
                f.write(log(EPOCHS[n]))
        programs.pack(top + "/made", f"{top}/built/{kind}.tar.xz")
        shutil.rmtree(top + "/made")
    program(top + "/built/graph", "")
    with open(top + "/about.json", "w", encoding="utf-8") as f:
        json.dump({"revision": "abc", "made": 1, "models": list(CORA), "built": {"sim": True, "for": "nothing"}}, f)


def run(top, *arguments):
    r = subprocess.run([top + "/tests/gpu/run", "--sim", "--results", top + "/results", *arguments], capture_output=True, text=True,
                       env={**os.environ, "CC": "false", "CXX": "false"})
    return r.returncode, r.stdout + r.stderr


def figures(top, kind):
    with open(top + "/results/figures.jsonl", encoding="utf-8") as f:
        return [row for row in map(json.loads, f) if row["kind"] == kind]


def verdicts():
    bundle("good")
    code, said = run("good", "train")
    checks = 2 * len(CORA) + 1 + 2 + len(CORA)  # models and hubs, cuSPARSE's, two more ways of batches, the larger graph
    assert code == 0 and f"verdict train: holds: {checks} passed, 0 failed, 0 left out" in said, said
    assert figures("good", "verdict")[0]["holds"] == "holds" and len(figures("good", "check")) == checks
    code, said = run("good", "train", "--minutes", "1e-9")
    assert f"verdict train: incomplete: 0 passed, 0 failed, {checks} left out" in said and f"{checks} left out" in said, said

    bundle("bad", hubs_gat={"training": log(EPOCHS["cora"], 2e-4, 7)}, models_gin={"training": log(3)}, models_sage={"training": "", "before": "echo no >&2; exit 3"})
    code, said = run("bad", "train")
    assert code == 1 and "verdict train: FAILS" in said and "FAILED curve of gat by blocks of threads: epoch 7: loss is" in said, said
    assert "FAILED curve of gin: 3 and 30 epochs, not 30" in said and "FAILED curve of sage: no" in said, said
    code, said = run("bad", "nothing")
    assert code == 2 and "no such part: nothing" in said, said


def tables():
    for _ in range(2):  # the second run's rows take the place of the first one's
        code, said = run("good", "bench")
        assert code == 0, said
    with open("good/results/results.csv", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == 2 * (2 * len(BENCHED) + 2) and rows[0]["train_ms"] == "1.5" and rows[0]["launches_per_step"] == "3", rows
    with open("good/results/kernels.csv", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == 2 * len(BENCHED) * 2 and rows[0]["name"] == "near" and float(rows[0]["us"]) == 30, rows
    assert "gcn on tiny (f32): 75 % of a train step is in kernels at 70 % of the machine's limit or more; far 10.0 us at 50 %" in said, said
    assert "; 75 % of train steps is in kernels at 70 % of the limit or more; no peer was measured" in said, said
    code, said = run("good", "batches")
    assert code == 0 and "the device draws an epoch in 1.00 of the host's time" in said, said
    with open("good/results/results.md", encoding="utf-8") as f:
        assert "| tiny | sage_sampled | gnnc sampler | f32 |" in f.read()


def a_session_that_is_cut_off():
    bundle("cut", models_gat={"training": "", "before": "sleep 5"})
    p = subprocess.Popen(["cut/tests/gpu/run", "train", "--sim", "--results", "cut/results"], stdout=subprocess.PIPE, text=True)
    for line in p.stdout:
        if line.startswith("curve of gcn: agrees"):
            break
    time.sleep(0.2)
    p.send_signal(signal.SIGKILL)
    p.wait()
    assert [c["name"] for c in figures("cut", "check")] == ["curve of gcn"]
    with open("cut/results/figures.jsonl", "a", encoding="utf-8") as f:
        f.write('{"kind": "time", "gra')  # a line that was being written
    code, said = run("cut", "bench", "--minutes", "1e-9")
    assert code == 0 and "verdict bench: incomplete" in said, said
    with open("cut/results/figures.jsonl", encoding="utf-8") as f:
        lines = f.read().splitlines()
    broken = [i for i, line in enumerate(lines) if not line.endswith("}")]
    assert len(broken) == 1 and json.loads(lines[broken[0] + 1])["kind"] == "machine", lines


def distances():
    want = log(3)
    assert curves.compare(log(3, 9e-5, 2), want, 3, AGREES)[0] == "" and curves.compare(log(3, 2e-4, 2), want, 3, AGREES)[0]
    assert curves.compare(log(3, 0.01, 2), want, 3, ROUNDS)[0] == "" and curves.compare(log(3, 0.03, 2), want, 3, ROUNDS)[0]
    of = lambda bars, name: curves.limit(bars, name, 2.0)
    assert of(SHIFTS, "loss") == 2e-3 < of(SHIFTS, "val.loss") and of(AGREES, "val.loss") == of(AGREES, "loss") < of(AGREES, "val.accuracy")
    none = want.replace('"loss": 2.0', '"loss": null')
    assert curves.compare(none, want, 3, AGREES)[0].startswith("epoch 1: loss is None")
    assert sum(MINUTES.values()) <= 45 and max(*MINUTES.values(), QUICK) < 10


def libraries():
    """Of packages: the folders that have them, a name with the shortest ending first."""
    os.makedirs("site/nvidia/cu13/lib")
    os.makedirs("site/nvidia/other/lib")
    for name in ("libcublas.so.13", "libcudart.so.13", "libcudart.so.13.0.88"):
        open("site/nvidia/cu13/lib/" + name, "w", encoding="utf-8").close()
    sys.path.append(os.path.abspath("site"))
    found = machine.library_folders()
    assert os.path.abspath("site/nvidia/cu13/lib") in found and os.path.abspath("site/nvidia/other/lib") not in found, found
    here = [os.path.abspath("site/nvidia/cu13/lib")]
    assert machine.library(here, "libcudart.so").endswith("libcudart.so.13") and machine.library(here, "libcublas.so.12") is None


def main():
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        for check in (distances, libraries, verdicts, tables, a_session_that_is_cut_off):
            check()


main()
