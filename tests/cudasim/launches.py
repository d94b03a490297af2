#!/usr/bin/env python3
"""What --report=times says of launches is what a program does, and a profile is held against it as on a GPU.

    launches.py BUILD    GAT for Cora's widths: heads, stages, hubs, parts of rows, sums in parts, elements

The blocks of a training step's launches, as the simulator is asked for them, are those of the report, one after the other.
Then what tests/gpu/run makes of a profile: each step that is predicted is found there, by its name.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "gpu"))
import predicted  # noqa: E402

HUBS = ["--block-hubs.entries=8", "--split-rows.entries=64", "--split-rows.min-entries=1", "--split-rows.few-entries=32", "--split-sums.rows=8"]  # those of tests/cudasim/build


def holds(part, whole):
    return any(whole[i:i + len(part)] == part for i in range(len(whole) - len(part) + 1))


def main(build):
    data, model = TOP + "/models/data/cora", TOP + "/models/gat.gnn"
    build = os.path.abspath(build)
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        for name in ("gat", "gcn"):
            model = f"{TOP}/models/{name}.gnn"
            options = ["--specialize=" + data]
            subprocess.run([HERE + "/build", model, os.path.abspath(name), *options], check=True, env={**os.environ, "BUILD": build})
            said = subprocess.run([build + "/gnnc", model, "--target=cuda", "--emit=none", "--report=times", "--report-format=json", *options,
                                   *HUBS], check=True, capture_output=True, text=True, env={**os.environ, "CUDA_HOME": "/nonexistent"}).stdout
            times = json.loads(said)["times"]
            assert times["machines"] == ["H200", "H100"] and times["assumed_registers"] and times["not_built"], times
            train = next(p for p in times["phases"] if p["phase"] == "train")
            want = [x["blocks"] for s in train["steps"] for x in s["launches"] if "blocks" in x]
            run = [f"./{name}", "bench", "--data", data, "--epochs", "2", "--profile", "--json"]
            told = subprocess.run(run, check=True, capture_output=True, text=True, env={**os.environ, "CUDASIM_LAUNCHES": "launches"}).stdout
            with open("launches", encoding="utf-8") as f:
                have = [int(line) for line in f]
            os.remove("launches")
            assert len(want) > 10 and holds(want, have), (name, want, have)
            off = list(want)
            off[len(off) // 2] += 1
            assert not holds(off, have), "it would hold of anything"
            profile = json.loads(told.splitlines()[-1])["profile"]
            rows = predicted.compare(times, profile, 0)
            ran = {s["index"] for s in profile["steps"] if s["phase"] == "train"}
            expected = {s["step"] for s in train["steps"] if s["launches"]}
            assert {r["step"] for r in rows if r["phase"] == "train"} == ran & expected and len(ran & expected) > 10, (ran, expected)
            sums = [sum(predicted.step_us(s, m) for s in train["steps"]) for m in (0, 1)]
            phases = [predicted.phase_us(times, "train", m) for m in (0, 1)]  # steps that are in several streams overlap
            assert all(sums[m] / 4 < phases[m] < sums[m] + 1 for m in (0, 1)) and sums[0] <= sums[1], (sums, phases)
            assert "was predicted to take" in predicted.in_words(times, rows, 0, [1.5])
    assert predicted.machine_of(times, "NVIDIA H200") == 0 and predicted.machine_of(times, "NVIDIA A100") is None
    assert [predicted.verdict(p, 20.0) for p in (5.0, 14.0, 13.0, 31.0)] == ["short", "confirmed", "refuted", "refuted"]


main(sys.argv[1])
