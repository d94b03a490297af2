#!/usr/bin/env python3
"""Models in 16 bits: they learn as in f32, their bits do not depend on threads or on being stopped, and f16 has its loss
scale.  usage: precision.py GNNC TOP"""
import json
import math
import os
import subprocess
import sys
import tempfile

from checkpoint import tensors

GNNC, TOP = sys.argv[1], sys.argv[2]
CORA = os.path.join(TOP, "models/data/cora")
SEEDS = range(4)


def run(*command):
    r = subprocess.run(command, capture_output=True, text=True)
    assert r.returncode == 0, (command, r.stderr)
    return r.stdout


def compiled(model, precision, text=None, *options):
    path, exe = os.path.join(TOP, "models", model + ".gnn"), f"{model}.{precision}"
    if text:
        path = model + ".gnn"
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    run(GNNC, path, "--target=cpu", f"--precision={precision}", "-o", exe, *options)
    return "./" + exe


def accuracy(exe, seed):
    lines = run(exe, "--data", CORA, "--seed", str(seed), "--log=json", "--checkpoint", "none").splitlines()
    return json.loads(lines[-1])["test"]["accuracy"]


def content(path):
    with open(path, "rb") as f:
        return f.read()


def same_bits(exe):
    run(exe, "--data", CORA, "--epochs", "6", "--threads", "1", "--checkpoint", "one")
    run(exe, "--data", CORA, "--epochs", "6", "--threads", "3", "--checkpoint", "three")
    assert content("one") == content("three"), f"{exe}: other bits with three threads"
    run(exe, "--data", CORA, "--epochs", "2", "--checkpoint", "part")
    run(exe, "--data", CORA, "--epochs", "6", "--resume", "part", "--checkpoint", "part")
    assert content("one") == content("part"), f"{exe}: other bits when resumed"


def learns(model):
    mean = {}
    for p in ("f32", "bf16", "f16"):
        exe = compiled(model, p)
        mean[p] = sum(accuracy(exe, s) for s in SEEDS) / len(SEEDS)
        if p != "f32":
            same_bits(exe)
    for p in ("bf16", "f16"):  # few seeds: bench/accuracy.py compares ten
        assert abs(mean[p] - mean["f32"]) < 0.015, mean


def scaled(factor, epochs):
    """The checkpoint of a GCN whose loss is multiplied, in f16."""
    with open(os.path.join(TOP, "models/gcn.gnn"), encoding="utf-8") as f:
        text = f.read()
    assert "loss cross_entropy" in text
    text = text.replace("loss cross_entropy", f"loss {factor} * cross_entropy")
    exe = compiled("scaled", "f16", text)
    run(exe, "--data", CORA, "--epochs", str(epochs), "--checkpoint", "scaled.ckpt")
    return tensors("scaled.ckpt")


def loss_scale():
    t = scaled("1e6", 20)
    assert t["opt.loss_scale.skipped"][0] >= 1 and t["opt.loss_scale"][0] < 65536, "no step was skipped"
    assert all(math.isfinite(x) for values in t.values() for x in values), "a parameter is not finite"
    t = scaled("1e-6", 20)  # gradients of 1e-9 and less: zero in f16 as they are
    assert t["opt.loss_scale"] == (65536,) and t["opt.loss_scale.good"] == (20,), t["opt.loss_scale.good"]
    first = next(v for k, v in t.items() if k.startswith("opt.m.") and k.endswith("weight"))
    assert any(first), "the gradient vanished"


def ranges():
    """A layer whose activations f16 cannot hold, and one whose gradients are below all others: f16 alone makes NaN of it,
    `auto` learns what f32 learns, and skips no step."""
    with open(os.path.join(TOP, "tests/golden/precision_auto.gnn"), encoding="utf-8") as f:
        text = f.read()
    data, last = ["--data", CORA], {}
    for p in ("f32", "auto"):
        exe = compiled("ranges", p, text, *(data if p == "auto" else []))
        last[p] = json.loads(run(exe, *data, "--log=json", "--checkpoint", p).splitlines()[-1])
    assert abs(last["auto"]["train"]["loss"] - last["f32"]["train"]["loss"]) < 5e-3, last
    t = tensors("auto")
    assert t["opt.loss_scale"] == (65536,) and t["opt.loss_scale.skipped"] == (0,), t["opt.loss_scale.skipped"]
    faint = [v for k, v in t.items() if k.startswith("opt.m.faint") and k.endswith("weight")]
    assert faint and any(x for v in faint for x in v), "the small gradient vanished"
    f16 = subprocess.run([compiled("ranges", "f16", text), *data, "--checkpoint", "none"], capture_output=True, text=True)
    assert f16.returncode == 1 and "became NaN" in f16.stderr, f16.stderr
    exe = compiled("ranges", "auto", text, *data)  # measured again: the same program
    for name, threads in ("again", "3"), ("first", "1"):
        run(exe, *data, "--epochs", "6", "--threads", threads, "--checkpoint", name)
        exe = compiled("ranges", "auto", text, *data)
    assert content("again") == content("first"), "measured again, or with three threads: other bits"


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for m in ("gcn", "gat"):
        learns(m)
    loss_scale()
    ranges()
