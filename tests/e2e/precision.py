#!/usr/bin/env python3
"""Models in 16 bits: they learn as in f32, their bits do not depend on threads or on being stopped, and f16 has its loss
scale.  With GNNC_LONG GAT learns in them, too, where else its bits are compared.  usage: precision.py GNNC TOP"""
import ctypes
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

from checkpoint import changed, tensors

GNNC, TOP = sys.argv[1], sys.argv[2]
CORA = os.path.join(TOP, "models/data/cora")
SEEDS = range(4)
LONG = "GNNC_LONG" in os.environ
ALWAYS = "--precision.small-mib=0"  # data as small as Cora's would stay in f32


def run(*command):
    r = subprocess.run(command, capture_output=True, text=True)
    assert r.returncode == 0, (command, r.stderr)
    return r.stdout


def compiled(model, precision, text=None, *options):
    path, exe = os.path.join(TOP, "models", model + ".gnn"), f"{model}.{precision}"
    if not text and os.path.exists(exe):  # a shipped model's does not change
        return "./" + exe
    if text:
        path = model + ".gnn"
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    run(GNNC, path, "--target=cpu", f"--precision={precision}", ALWAYS, "-o", exe, *options)
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


def learns(model, *low):
    mean = {}
    for p in ("f32", *low):
        exe = compiled(model, p)
        mean[p] = sum(accuracy(exe, s) for s in SEEDS) / len(SEEDS)
        if p != "f32":
            same_bits(exe)
    for p in low:  # few seeds: bench/accuracy.py compares ten
        assert abs(mean[p] - mean["f32"]) < 0.015, mean


def scaled(factor, epochs, precision="f16", *options):
    """The checkpoint of a GCN whose loss is multiplied."""
    with open(os.path.join(TOP, "models/gcn.gnn"), encoding="utf-8") as f:
        text = f.read()
    assert "loss cross_entropy" in text
    text = text.replace("loss cross_entropy", f"loss {factor} * cross_entropy")
    exe = compiled("scaled", precision, text, *options)
    run(exe, "--data", CORA, "--epochs", str(epochs), "--checkpoint", "scaled.ckpt")
    return tensors("scaled.ckpt")


def loss_scale():
    t = scaled("1e6", 20)
    assert t["opt.loss_scale.skipped"][0] >= 1 and t["opt.loss_scale"][0] < 65536, "no step was skipped"
    assert all(math.isfinite(x) for values in t.values() for x in values), "a parameter is not finite"
    found = t["opt.loss_scale"][0]
    t = scaled("1e6", 20, "auto", "--data", CORA)  # which was measured, so training begins with what others find by skipping
    assert t["opt.loss_scale.skipped"] == (0,) and t["opt.loss_scale.good"] == (20,), t["opt.loss_scale.skipped"]
    assert found / 4 <= t["opt.loss_scale"][0] <= found, (found, t["opt.loss_scale"])
    t = scaled("1e-6", 20)  # gradients of 1e-9 and less: zero in f16 as they are
    assert t["opt.loss_scale"] == (65536,) and t["opt.loss_scale.good"] == (20,), t["opt.loss_scale.good"]
    first = next(v for k, v in t.items() if k.startswith("opt.m.") and k.endswith("weight"))
    assert any(first), "the gradient vanished"


def refused(exe, path, *words):
    r = subprocess.run([exe, "--data", CORA, "--epochs", "9", "--resume", path, "--checkpoint", "none"], capture_output=True, text=True)
    assert r.returncode == 1 and all(w in r.stderr for w in (path, *words)), (path, r.returncode, r.stderr)


def other_states():
    """A checkpoint of another precision, or with a loss scale that no step writes, is refused, and why is told."""
    exe = {p: compiled("gcn", p) for p in ("f32", "bf16", "f16")}
    for p in exe:
        run(exe[p], "--data", CORA, "--epochs", "3", "--checkpoint", p + ".ckpt")
    for was, now in ("f16", "f32"), ("f32", "f16"), ("bf16", "f16"):
        refused(exe[now], was + ".ckpt", f"compiled with --precision={was}, and this one was with {now}: compile with {was}", "--weights")
        run(exe[now], "--data", CORA, "--epochs", "1", "--weights", was + ".ckpt", "--checkpoint", "none")
    scale = "opt.loss_scale"
    for x in 0.0, 0.5, -65536.0, math.nan, math.inf, -math.inf, 2.0 ** 25:
        changed("f16.ckpt", "bad.ckpt", scale, x)
        refused(exe["f16"], "bad.ckpt", f"'{scale}' is {x:g}".replace("nan", ""), "not between 1 and 16777216")
    for name, x in (".good", -1.0), (".good", math.nan), (".skipped", -3.0), (".skipped", math.inf):
        changed("f16.ckpt", "bad.ckpt", scale + name, x)
        refused(exe["f16"], "bad.ckpt", f"'{scale}{name}' is ", "not between 0 and")
    for x in 1.0, 2.0 ** 24:
        changed("f16.ckpt", "good.ckpt", scale, x)
        run(exe["f16"], "--data", CORA, "--epochs", "4", "--resume", "good.ckpt", "--checkpoint", "none")


def small_data():
    """Data whose values lie in caches: a program in 16 bits runs in f32, to f32's bits, and says so.  16 bits are to be had,
    and a run goes on as it began."""
    data, part, exe = ["--data", CORA, "--epochs", "4"], ["--checkpoint", "part"], {}
    run(compiled("gcn", "f32"), *data, "--checkpoint", "full")
    for p in ("bf16", "f16"):
        exe[p] = "./small." + p
        run(GNNC, os.path.join(TOP, "models/gcn.gnn"), "--target=cpu", f"--precision={p}", "-o", exe[p])
        r = subprocess.run([exe[p], *data, *part], capture_output=True, text=True)
        assert r.returncode == 0 and "stay f32: 16 bits pay from 8 MiB on (--variant 0 has them)" in r.stderr, r.stderr
        assert tensors("part") == tensors("full"), f"{p}: other bits than f32"
        assert f"keeps values in f32, as {p} pays from 8 MiB of them on\n" in run(exe[p], *data, "--profile", "--checkpoint", "none")
    same_bits(exe["f16"])
    run(compiled("gcn", "f16"), *data, "--checkpoint", "low")
    run(exe["f16"], *data, "--variant", "0", *part)
    assert tensors("part") == tensors("low") != tensors("full"), "variant 0 is not in 16 bits"
    for first, more in (["--variant", "0"], []), ([], ["--variant", "0"]):
        run(exe["f16"], "--data", CORA, "--epochs", "2", *first, *part)
        r = subprocess.run([exe["f16"], *data, "--resume", "part", *more, *part], capture_output=True, text=True)
        assert r.returncode == 0 and ("'variant' says so" in r.stderr) == bool(more) and "stay f32" not in r.stderr, r.stderr
        assert (tensors("part") == tensors("low")) == bool(first), "not as it began"
    assert tensors("part")["opt.loss_scale.good"] == (2,), "the scale begins where f32 ends"
    run(exe["f16"], "--data", CORA, "--epochs", "2", *part)
    assert resumed(3) == resumed(0), "f16's scale of what was trained before"


def resumed(n_steps):
    """The checkpoint of a trainer in f16 that made so many steps and then goes on from one in f32."""
    if not os.path.exists("libsmall.so"):
        run(GNNC, os.path.join(TOP, "models/gcn.gnn"), "--target=cpu", "--precision=f16", "--emit=lib", "--name=gcn", "-o", "small")
    lib, t = ctypes.CDLL("./libsmall.so"), ctypes.c_void_p()
    lib.gnnc_trainer_error.restype = ctypes.c_char_p

    def ok(st):
        assert st == 0, lib.gnnc_trainer_error(t)
    ok(lib.gnnc_trainer_create(ctypes.byref(t), ctypes.byref(ctypes.c_char.in_dll(lib, "gcn_program"))))
    ok(lib.gnnc_trainer_set_int(t, b"variant", ctypes.c_int64(0)))
    ok(lib.gnnc_trainer_load(t, CORA.encode()))
    for _ in range(n_steps):
        ok(lib.gnnc_trainer_step(t))
    ok(lib.gnnc_trainer_resume(t, b"part"))
    ok(lib.gnnc_trainer_save(t, b"went.on"))
    lib.gnnc_trainer_destroy(t)
    found = tensors("went.on")
    assert found["opt.loss_scale.good"] == (0,), "steps of f32 are none of its"
    return found


TABLE = """
import "layers/gcn.gnn"
graph Citation { node paper { x: csr f32[F];  y: class[C];  split }  edge cites: paper -> paper }
model M(g: Citation; dim: int = 16) -> f32[paper, C] {
  param x: f32[paper, dim] = normal(0, 0.1) as "table"
  last = gcn_conv(C)
  e = g.cites
  for edge e { h = sum(x[src], over = dst) }
  return last(g.cites, relu(h))
}
train M { target paper.y   loss 1e-6 * cross_entropy   optimizer adam   epochs 6   %s }
"""


def table():
    """The gradient of a table of a row per node is as wide as features are, but what the optimizer makes of it is in f32."""
    run(compiled("table", "f16", TABLE % ""), "--data", CORA, "--checkpoint", "table.ckpt")
    t = tensors("table.ckpt")
    assert sum(1 for x in t["opt.m.table"] if x) > 10000, "the gradient vanished"
    exe = compiled("table", "bf16", TABLE.replace("1e-6 * ", "") % "accumulate 3")
    run(exe, "--data", CORA, "--epochs", "5", "--checkpoint", "table.ckpt")
    two = [x for x in tensors("table.ckpt")["opt.sum.table"] if x]  # the sum of two gradients, which are rounded
    low = [struct.unpack("<I", struct.pack("<f", x))[0] & 0xffff for x in two]
    assert len(low) > 10000 and sum(1 for b in low if b) > 1000, "sums of gradients were rounded to bf16"


def told_of_skips():
    """A run that learns nothing says so, as its gradients overflow whatever they are scaled by."""
    with open(os.path.join(TOP, "models/gcn.gnn"), encoding="utf-8") as f:
        text = f.read().replace("loss cross_entropy", "loss 1e9 * cross_entropy")
    assert "1e9 *" in text
    exe = compiled("steep", "f16", text)
    data = ["--data", CORA, "--epochs", "20", "--checkpoint", "none"]
    assert "20 steps were skipped" in run(exe, *data) and "scaled by 1, the least" in run(exe, *data)
    told = json.loads(run(exe, *data, "--log=json").splitlines()[-1])
    assert (told["skipped_steps"], told["loss_scale"]) == (20, 1), told
    told = json.loads(run(compiled("gcn", "f16"), *data, "--log=json").splitlines()[-1])
    assert (told["skipped_steps"], told["loss_scale"]) == (0, 65536), told


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
    assert f16.returncode == 1 and "became NaN" in f16.stderr and "65504" in f16.stderr, f16.stderr
    run("./ranges.auto", *data, "--epochs", "6", "--threads", "3", "--checkpoint", "first")
    exe = compiled("ranges", "auto", text, *data)  # measured again: the same program
    run(exe, *data, "--epochs", "6", "--threads", "1", "--checkpoint", "again")
    assert content("again") == content("first"), "measured again, or with three threads: other bits"


CARRIED = """
import "layers/sage.gnn"
graph Citation { node paper { x: csr f32[F];  y: class[C];  split }  edge cites: paper -> paper }
model M(g: Citation; hidden: int = 16) -> f32[paper, C] {
  a = sage_conv(hidden)
  b = sage_conv(hidden)
  c = sage_conv(C)
  h = relu(a(g.cites, dropout(g.paper.x, 0.5)))
  return c(g.cites, relu(b(g.cites, h)))
}
train M {
  target paper.y   loss %s   metric accuracy
  optimizer adam(lr = 1e-2%s)   epochs 6   keep best on val accuracy
  %s
}
"""


def pipeline(path, *options):
    """The passes of -O2, without the one that lets updates round what the next step reads."""
    r = subprocess.run([GNNC, path, "--target=cpu", "--emit=none", "--time-passes", *options], capture_output=True, text=True)
    names = [line.split()[-1] for line in (r.stdout + r.stderr).splitlines() if " ms  " in line and "[" not in line]
    assert "round-weights" in names and "fuse" in names, names
    return "--passes=" + ",".join(n for n in names if n != "round-weights")


def carried(name, precision, loss, adam, recipe):
    """Weights that are rounded where they are updated: the same bits as rounded by the next step, in fewer steps, whoever
    sets them: initial values, training, the best epoch, a checkpoint, a file of weights."""
    path = name + ".gnn"
    with open(path, "w", encoding="utf-8") as f:
        f.write(CARRIED % (loss, adam, recipe))
    options = ["--target=cpu", f"--precision={precision}", ALWAYS]
    run(GNNC, path, *options, "-o", "carries")
    run(GNNC, path, *options, pipeline(path, *options), "-o", "rounds")
    logs, scores = [], []
    for exe in "./carries", "./rounds":
        logs.append([json.loads(line) for line in run(exe, "--data", CORA, "--log=json", "--checkpoint", exe + ".ckpt").splitlines()])
        run(exe, "--data", CORA, "--epochs", "3", "--checkpoint", exe + ".part")
        run(exe, "--data", CORA, "--epochs", "6", "--resume", exe + ".part", "--checkpoint", exe + ".part")
        run(exe, "predict", "--data", CORA, "--weights", "carries.ckpt", "--out", "scores.npy")
        scores.append(content("scores.npy"))
    for suffix in ".ckpt", ".part":
        a, b = tensors("carries" + suffix), tensors("rounds" + suffix)
        assert a == b and any(k.startswith("opt.") for k in a), f"{name}: other parameters"
        assert not any(k.endswith(" " + precision) for k in a), "a rounded copy was saved"
    assert tensors("carries.ckpt") == tensors("carries.part"), f"{name}: other bits when resumed"
    told = [[{k: v for k, v in e.items() if k in ("train", "val", "test", "best")} for e in log] for log in logs]
    assert any(told[0]) and told[0] == told[1], f"{name}: other losses"
    assert scores[0] == scores[1], f"{name}: other predictions of loaded weights"


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    sampled = "sample { fanout [5, 5, 5]  batch 50 }"
    if LONG:
        carried("plain", "bf16", "cross_entropy", "", "")
    carried("average", "f16", "1e6 * cross_entropy", ", moments = bf16", "ema 0.9  accumulate 2  clip 1.0")
    carried("batches", "bf16", "cross_entropy", "", sampled + "  ema 0.9")
    learns("gcn", "bf16", "f16")
    if LONG:
        learns("gat", "bf16", "f16")
    else:
        same_bits(compiled("gat", "bf16"))
    small_data()
    loss_scale()
    table()
    other_states()
    told_of_skips()
    ranges()
