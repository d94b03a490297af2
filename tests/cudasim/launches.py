#!/usr/bin/env python3
"""What --report=times says of launches is what a program does, and a profile is held against it as on a GPU.

    launches.py BUILD    GAT for Cora's widths: heads, stages, hubs, parts of rows, sums in parts, elements; embedding tables

The blocks of a training step's launches, as the simulator is asked for them, are those of the report, one after the other.
Then what tests/gpu/run makes of a profile: each step that is predicted is found there, by its name.  Tables of one form have one
launch, with the blocks of all and the bits of a launch each.
"""
import json
import os
import subprocess
import sys
import random
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "gpu"))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
import predicted  # noqa: E402
from batches import Trainer  # noqa: E402
from checkpoint import tensors  # noqa: E402
from directory import column, write  # noqa: E402
from sim import counts, written  # noqa: E402

HUBS = ["--block-hubs.entries=8", "--split-rows.entries=64", "--split-rows.min-entries=1", "--split-rows.few-entries=32", "--split-sums.rows=8"]  # those of tests/cudasim/build


TABLES = """
graph Shop {
  node v { a: cat[A];  b: cat[B];  c: cat[C];  d: cat[D];  e: cat[E];  y: class[K];  split }
}

model M(g: Shop; hidden: int = 256) -> f32[v, K] {
  tables = [embedding(n, hidden) for n in [A, B, C, D, E]]
  out = linear(K)
  return out(relu(tables[0](g.v.a) + tables[1](g.v.b) + tables[2](g.v.c) + tables[3](g.v.d) + tables[4](g.v.e)))
}

train M {
  target v.y   loss cross_entropy   metric accuracy
  optimizer adam(lr = 1e-2)
  epochs 2   keep last
}
"""


def shop(path, n, e=5):
    r = random.Random(5)
    os.mkdir(path)
    columns = {name: column(path, name, "cat", [int(r.random() ** 2 * k) for _ in range(n)], categories=k)
               for name, k in (("a", 3), ("b", 40), ("c", 7), ("d", 12), ("e", e))}
    columns["y"] = column(path, "y", "class", [r.randrange(3) for _ in range(n)], categories=3)
    columns["split"] = column(path, "split", "split", [1 + i % 3 for i in range(n)])
    write(path, {"v": {"count": n, "columns": columns}}, {})


def trained(lib, data):
    """The parameters' bits after two epochs, and the launches of the first step."""
    t = Trainer(lib, data, threads=2)
    before = counts(lib)["launches"]
    t.step()
    launches = counts(lib)["launches"] - before
    t.epoch()
    t.save("trained")
    return tensors("trained"), launches


def tables(build):
    """One launch for all, and one for their long rows; two, if the memory for parts of these does not hold all of them.  One
    table is updated where its gradient is made, alone."""
    one = written(build, "tables", TABLES, "cuda")
    each = written(build, "alone", TABLES, "cuda", ["--disable-pass=group-kernels"])
    for data, n, launches in (("few", 900, 2), ("many", 17000, 4)):
        shop(data, n)
        got, want = trained(one, data), trained(each, data)
        assert got[0] == want[0] and len(got[0]) > 10, data
        assert want[1] - got[1] == 8 - launches, (data, got[1], want[1])
    _, train, _ = blocks_are_told(build, os.path.abspath("tables.text/model.gnn"), "grouped", os.path.abspath("few"))
    first, *others = [s for s in train["steps"] if "_d_tables_" in s["name"]]
    assert len(others) == 3 and not any(s["launches"] for s in others), train["steps"]
    assert len(first["launches"]) == 2 and all(x["blocks"] % 4 == 0 for x in first["launches"]), first


def parts_of_a_group(build):
    """Long rows of one of a launch's kernels, which is not the first: what looks for them is a function of the launch."""
    shop("rows", 17000, 300)
    with open("rows.gnn", "w", encoding="utf-8") as f:
        f.write(TABLES)
    said = subprocess.run([build + "/gnnc", "rows.gnn", "--target=cuda", "--specialize=rows", "--split-rows.few-rows=100", "--emit=none", "--report=times",
                           "--report-format=json"], check=True, capture_output=True, text=True, env={**os.environ, "CUDA_HOME": "/nonexistent"}).stdout
    train = next(p for p in json.loads(said)["times"]["phases"] if p["phase"] == "train")
    names = [x["name"] for s in train["steps"] for x in s["launches"]]
    parts = [n.removesuffix("_parts") for n in names if n.endswith("_parts")]
    assert any("tables_4" in n for n in parts) and set(parts) <= set(names), names


def holds(part, whole):
    return any(whole[i:i + len(part)] == part for i in range(len(whole) - len(part) + 1))


def blocks_are_told(build, model, name, data):
    """The launches of a training step have the blocks of the report; which it and a profile of the run are given back."""
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
    assert len(want) > 8 and holds(want, have), (name, want, have)
    off = list(want)
    off[len(off) // 2] += 1
    assert not holds(off, have), "it would hold of anything"
    return times, train, json.loads(told.splitlines()[-1])["profile"]


def main(build):
    build = os.path.abspath(build)
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        for name in ("gat", "gcn"):
            times, train, profile = blocks_are_told(build, f"{TOP}/models/{name}.gnn", name, TOP + "/models/data/cora")
            rows = predicted.compare(times, profile, 0)
            ran = {s["index"] for s in profile["steps"] if s["phase"] == "train"}
            expected = {s["step"] for s in train["steps"] if s["launches"]}
            assert {r["step"] for r in rows if r["phase"] == "train"} == ran & expected and len(ran & expected) > 10, (ran, expected)
            sums = [sum(predicted.step_us(s, m) for s in train["steps"]) for m in (0, 1)]
            phases = [predicted.phase_us(times, "train", m) for m in (0, 1)]  # steps that are in several streams overlap
            assert all(sums[m] / 4 < phases[m] < sums[m] + 1 for m in (0, 1)) and sums[0] <= sums[1], (sums, phases)
            assert "was predicted to take" in predicted.in_words(times, rows, 0, [1.5])
        tables(build)
        parts_of_a_group(build)
    assert predicted.machine_of(times, "NVIDIA H200") == 0 and predicted.machine_of(times, "NVIDIA A100") is None
    assert [predicted.verdict(p, 20.0) for p in (5.0, 14.0, 13.0, 31.0)] == ["short", "confirmed", "refuted", "refuted"]


main(sys.argv[1])
