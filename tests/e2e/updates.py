#!/usr/bin/env python3
"""Updates of a recipe: four batches accumulated are one of four times the rows; the average of the parameters is what is
evaluated and saved, a run with both is resumed to the same bits; moments in bf16 have the mean of those in f32; a step that
overflows changes nothing.  usage: updates.py GNNC TOP"""
import json
import os
import subprocess
import sys
import tempfile

from checkpoint import tensors

GNNC, TOP = sys.argv[1], sys.argv[2]
CORA = os.path.join(TOP, "models/data/cora")
MODEL = """
import "layers/sage.gnn"
graph Citation { node paper { x: csr f32[F];  y: class[C];  split }  edge cites: paper -> paper }
model M(g: Citation) -> f32[paper, C] {
  a = sage_conv(16)
  b = sage_conv(C)
  return b(g.cites, relu(a(g.cites, g.paper.x)))
}
train M {
  target paper.y   loss cross_entropy   metric accuracy
  optimizer adam(lr = 1e-2%s)   epochs 6
  %s
}
"""
ALL = "sample { fanout [-1, -1]  batch %d }"


def run(*command):
    r = subprocess.run(command, capture_output=True, text=True)
    assert r.returncode == 0, (command, r.stderr)
    return r.stdout


def compiled(name, recipe, *options, adam=""):
    with open(name + ".gnn", "w", encoding="utf-8") as f:
        f.write(MODEL % (adam, recipe))
    run(GNNC, name + ".gnn", "--target=cpu", "-o", name, *options)
    return "./" + name


def train(exe, checkpoint, *options):
    return run(exe, "--data", CORA, "--log=json", "--checkpoint", checkpoint, *options).splitlines()


def content(path):
    with open(path, "rb") as f:
        return f.read()


def distance(a, b, names):
    return max(abs(x - y) for k in names for x, y in zip(a[k], b[k]))


def accumulated():
    """140 rows are learned from: one batch of all, four of 35."""
    train(compiled("whole", ALL % 140), "whole.ckpt")
    train(compiled("parts", ALL % 35 + "\n  accumulate 4"), "parts.ckpt")
    whole, parts = tensors("whole.ckpt"), tensors("parts.ckpt")
    names = [k for k in whole if k.endswith("weight") and not k.startswith("opt.")]
    assert names and distance(whole, parts, names) < 1e-4, distance(whole, parts, names)
    assert parts["opt.summed"] == (0,) and not any(any(v) for k, v in parts.items() if k.startswith("opt.sum."))


def averaged():
    plain, mean = compiled("plain", ""), compiled("mean", "ema 0.9")
    train(plain, "plain.ckpt")
    lines = train(mean, "mean.ckpt")
    p, m = tensors("plain.ckpt"), tensors("mean.ckpt")
    names = [k for k in p if k.endswith("weight") and not k.startswith("opt.")]
    assert distance({k: m["opt.raw." + k] for k in names}, p, names) < 1e-5, "training goes by the parameters themselves"
    assert distance(m, p, names) > 1e-3, "what is saved is the average"
    told = json.loads(lines[-1])["val"]["loss"]
    again = json.loads(run(mean, "eval", "--data", CORA, "--weights", "mean.ckpt", "--log=json").splitlines()[-1])
    assert abs(again["val"]["loss"] - told) < 1e-5, (again, told)


def resumed(options, adam=""):
    exe = compiled("both", ALL % 50 + "\n  ema 0.9\n  accumulate 4", *options, adam=adam)  # three steps an epoch: an update is under way
    train(exe, "one", "--threads", "1")
    train(exe, "three", "--threads", "3")
    assert content("one") == content("three"), "other bits with three threads"
    train(exe, "part", "--epochs", "2")
    train(exe, "part", "--epochs", "6", "--resume", "part")
    assert content("one") == content("part"), "other bits when resumed"


def rounded_by_chance():
    """Moments in bf16.  A step changes v by a thousandth of it, less than half of what bf16 tells apart: rounded to the
    nearest, v would stay near what the first steps made it.  By chance its mean is right: of n elements, each rounded 200
    times by at most 2^-7 of itself, the sum's error is about 2^-7 sqrt(200 / 3 / n) of it, some 4e-4 of 23000 elements; ten
    times that is allowed, and as much for gradients that the moments themselves have moved."""
    full, half = compiled("full", ""), compiled("half", "", adam=", moments = bf16")
    for exe in full, half:
        train(exe, exe + ".ckpt", "--epochs", "200")
    f, h = tensors("full.ckpt"), tensors("half.ckpt")
    names = [k for k in f if k.startswith("opt.v.") and len(f[k]) > 1000]
    assert names
    for k in names:
        assert len(h[k]) == len(f[k]) and abs(sum(h[k]) / sum(f[k]) - 1) < 1e-2, (k, sum(h[k]), sum(f[k]))
    size = os.path.getsize
    slots = sum(4 * len(v) for k, v in f.items() if k.startswith(("opt.m.", "opt.v.")))
    assert abs(size("full.ckpt") - size("half.ckpt") - slots / 2) < 4096, "moments take half the room"


def skipped():
    """A step that is not finite is no update: the average, the moments in bf16 and the sums stay, and it is counted."""
    adam = ", moments = bf16"
    text = MODEL.replace("loss cross_entropy", "loss 1e6 * cross_entropy")
    with open("big.gnn", "w", encoding="utf-8") as f:
        f.write(text % (adam, "ema 0.9\n  accumulate 2"))
    run(GNNC, "big.gnn", "--target=cpu", "-o", "big", "--precision=f16", "--precision.small-mib=0")
    train("./big", "none.ckpt", "--epochs", "2")  # an update is due, its gradients are infinite
    train("./big", "big.ckpt", "--epochs", "40")
    first, t = tensors("none.ckpt"), tensors("big.ckpt")
    assert first["opt.loss_scale.skipped"] == (1,) and first["opt.updates"] == (0,), first["opt.loss_scale.skipped"]
    assert not any(any(v) for k, v in first.items() if k.startswith(("opt.m.", "opt.v.", "opt.sum."))), "something changed"
    n_skipped, = t["opt.loss_scale.skipped"]
    assert n_skipped >= 1 and t["opt.updates"] == (20 - n_skipped,), (n_skipped, t["opt.updates"])
    assert all(x - x == 0 for v in t.values() for x in v), "a parameter, moment or average is not finite"


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    accumulated()
    averaged()
    resumed([])
    resumed(["--precision=f16", "--precision.small-mib=0"], adam=", moments = bf16")
    rounded_by_chance()
    skipped()
