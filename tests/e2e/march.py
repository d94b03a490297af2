#!/usr/bin/env python3
"""Code for other machines (--march): kernels have no instruction beyond the machine that they are for, and give what those
for the machine at hand do, to the rounding of sums of other lanes.

    march.py GNNC TOP CORA TRAINER      TRAINER: of models/gcn.gnn, for the machine at hand
"""
import json
import os
import platform
import re
import subprocess
import sys

GNNC, TOP, CORA, NATIVE = sys.argv[1:5]
GCN = TOP + "/models/gcn.gnn"
# What each level of x86-64 adds, in names of instructions and of registers (the System V ABI's list).
ADDED = {
    "x86-64-v2": r"(addsubp|haddp|hsubp|blendv?p|dpp|round[ps])[sd]|lddqu|mov(d|sl|sh)dup|pshufb|ph(add|sub)(w|d|sw)|pmulhrsw|psign[bwd]|"
                 r"palignr|pabs[bwd]|pmaddubsw|pblend(vb|w)|extractps|insertps|movntdqa|mpsadbw|packusdw|pcmpeqq|p(ext|ins)r[bdq]|"
                 r"phminposuw|p(max|min)(sb|sd|ud|uw)|pmov[sz]x\w+|pmuldq|pmulld|ptest|pcmp[ei]str[im]|pcmpgtq|crc32\w*|popcnt\w*",
    "x86-64-v3": r"v\w+|andn|bextr|blsi|blsmsk|blsr|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|lzcnt\w*|tzcnt\w*|movbe",
    "x86-64-v4": r"k(mov|and|or|xor|not|test|ortest|unpck)\w+"}
WIDE = r"%zmm|%k[0-7]|%[xy]mm(1[6-9]|2\d|3[01])\b"  # of v4


def run(*command, status=0):
    r = subprocess.run(command, capture_output=True, text=True, check=False)
    assert r.returncode == status, (command, r.returncode, r.stdout, r.stderr)
    return r.stdout + r.stderr


def has(text):
    """Levels beyond the first of which there are instructions."""
    words = {line.split("\t")[2].split()[0] for line in text.splitlines() if line.count("\t") > 1}
    assert len(words) > 30, words
    found = {level for level, added in ADDED.items() if any(re.fullmatch(added, w) for w in words)}
    return found | ({"x86-64-v4"} if re.search(WIDE, text) else set())


def instructions():
    levels = ["x86-64", *ADDED]
    for i, level in enumerate(levels):
        run(GNNC, GCN, "--target=cpu", "--march=" + level, "--emit=obj", "-o", "k.o")
        found = has(run("objdump", "-d", "k.o"))
        assert found <= set(levels[:i + 1]), (level, found)
        assert i == 0 or level in found, (level, found)  # it uses what it may


def losses(trainer, name):
    told = run(trainer, "--data", CORA, "--epochs", "8", "--log=json", "--checkpoint", name)
    return [e["loss"] for e in map(json.loads, told.splitlines()) if "loss" in e]


def results():
    """Old code runs on any machine; what is trained by one is evaluated by another."""
    want = losses(NATIVE, "native.ckpt")
    assert len(want) == 8, want
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        knows_v3 = {"avx2", "fma", "bmi2"} <= set(f.read().split())
    for level in ["x86-64"] + ["x86-64-v3"] * knows_v3:
        run(GNNC, GCN, "--target=cpu", "--march=" + level, "-o", level)
        got = losses("./" + level, level + ".ckpt")
        assert all(abs(a - b) < 1e-4 * b for a, b in zip(got, want)) and len(got) == 8, (level, got, want)
        scores = [json.loads(run(t, "eval", "--data", CORA, "--weights", level + ".ckpt", "--log=json"))["val"]["loss"] for t in ("./" + level, NATIVE)]
        assert abs(scores[0] - scores[1]) < 1e-5 * scores[1], (level, scores)


def other_architectures():
    x86 = platform.machine() == "x86_64"
    told = run(GNNC, GCN, "--target=cpu", "--march=" + ("neoverse-n1" if x86 else "x86-64-v3"), "-o", "other", status=1)
    assert "this gnnc makes code for %s machines alone  [E0531]" % ("x86" if x86 else "ARM") in told and not os.path.exists("other"), told
    return x86


if other_architectures():
    instructions()
    results()
