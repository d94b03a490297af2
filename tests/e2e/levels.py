#!/usr/bin/env python3
"""Every level of every shipped model is text that goes on from where it was printed.

    levels.py GNNC TOP [MODEL.. | libraries]

For each model, target and level of optimisation: the graph IR, the plan and the loops print as they were read; each makes
the text of the next level that the model makes; and what is made of each at last (LLVM's code, CUDA, the host driver) is
to the byte what the model itself is compiled to, and so is the report of breaks.  So is what is left of a pipeline that stopped half way.  Types that follow
from operands are inferred as the model has them.  Of models whose steps and operations others have as well, only the cpu's
code goes through this, and at -O0 only few do, but where they are named or GNNC_LONG is set; small.py says which models.
All passes are those of -O1 in CI: what LLVM makes of the same code at -O2 is the same.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

import gnncc
from small import LONG, left_out

GNNC, TOP = sys.argv[1], sys.argv[2]
LEVELS = [("ir", "x.gir"), ("plan", "x.plan"), ("loops", "x.loops")]
# Sums of neighbours in variants, softmax, relations, links with negatives, batches by time, many graphs in batches.
WHOLE = {"gcn", "gat", "rgcn", "link", "relational_sage", "gin_graphs"}
AT_O0 = {"gcn", "relational_sage", "gin_graphs"}
ALL = "-O2" if LONG else "-O1"


COMPILER = gnncc.opened(GNNC)


def made(path, *options):
    return gnncc.made(COMPILER, path, *options)


def gnnc(*args):
    p = subprocess.run([GNNC, *args], capture_output=True, check=False)
    if p.returncode:
        raise ValueError(f"gnnc {' '.join(args)}: {p.stderr.decode()}")
    return p.stdout


def differs(what, a, b):
    if a == b:
        return []
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    line = a[:at].count(b"\n")
    show = [t.split(b"\n")[line:line + 1] for t in (a, b)]
    return [f"{what}: line {line + 1}: {show[0]} and {show[1]}"[:400]]


# Operations whose type their operands do not tell.
STATED = {b"const", b"input", b"saved", b"random", b"arg", b"cast", b"copy", b"contract", b"view", b"call", b"call_effect"}
RESULT = re.compile(rb"^(    %\S+ = (?:(?:store|fuse) )?(\w+)\b.*?) : (?:csr )?\w+(?:\[[^]]*\])?(?= |$)", re.M)


def inferred(model, folder):
    """The front end's IR without the types that follow."""
    path = os.path.join(folder, "untyped.gir")
    whole = made(model, "--emit=ir", "--passes=")
    untyped = RESULT.sub(lambda m: m[0] if m[2] in STATED else m[1], whole)
    assert len(whole) - len(untyped) > 1000, model
    for text in (whole, untyped):
        with open(path, "wb") as f:
            f.write(text)
        yield gnnc("opt", path, "--passes=shape-propagation")


def with_breaks(folder, text, options, kind):
    """What is made of a text, and its breaks: it is of one variant, and was not called so."""
    out = os.path.join(folder, "out")
    report = made(text, *options, f"--emit={kind}", "-o", out, "--report=breaks", "--report-format=json")
    with open(out, "rb") as f:
        return f.read(), json.dumps(json.loads(report)["breaks"], indent=1).encode()


def check(model, target, level):
    """The differences found, in words."""
    name = f"{os.path.basename(model)} {target} {level}"
    options, bad = [level, f"--target={target}"], []
    last = ["cuda" if target == "cuda" else "llvm"] + (["c"] if level == ALL else [])
    with tempfile.TemporaryDirectory() as folder:
        want = {kind: made(model, *options, f"--emit={kind}") for kind in ["ir", "loops"] + last}
        want["plan"], broken = with_breaks(folder, model, options, "plan")
        for i, (kind, file) in enumerate(LEVELS):
            path = os.path.join(folder, file)
            with open(path, "wb") as f:
                f.write(want[kind])
            *same, then = [k for k, _ in LEVELS[i:i + 2]]
            now = {k: made(path, *options, f"--emit={k}") for k in same + last}
            now[then], breaks = with_breaks(folder, path, options, then)
            for k in now:
                bad += differs(f"{name}: {k} of {file}", want[k], now[k])
            bad += differs(f"{name}: breaks of {file}", broken, breaks)
        if target != "cpu" or level != ALL:
            return bad
        bad += differs(f"{name}: inferred types", *inferred(model, folder))
        path = os.path.join(folder, "half.gir")
        with open(path, "wb") as f:
            f.write(made(model, *options, "--stop-after=autodiff" if b"recipe" in want["ir"] else "--stop-after=1"))
        bad += differs(f"{name}: what goes on after autodiff", want["ir"], made(path, *options, "--emit=ir"))
    return bad


def library(*args):
    """By file, the library that is made."""
    with tempfile.TemporaryDirectory() as folder:
        gnnc(*args, "--target=cpu", "--emit=lib", "--name=my", "-o", os.path.join(folder, "my"))
        return {f: open(os.path.join(folder, f), "rb").read() for f in sorted(os.listdir(folder))}


def check_libraries():
    """A model whose sizes decide nothing makes the same library from each level; one with variants makes all of them from a
    text that stands before the passes which ask, and one of them from a later text."""
    bad, wanted = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for model, text, stop in [("events", "x.gir", "--emit=ir"), ("events", "x.plan", "--emit=plan"), ("events", "x.loops", "--emit=loops"),
                                  ("gcn", "first.gir", "--stop-after=shape-propagation")]:
            source, path = os.path.join(TOP, "models", model + ".gnn"), os.path.join(folder, text)
            gnnc(source, "--target=cpu", stop, "-o", path)
            if model not in wanted:
                wanted[model] = library(source)
            want, got = wanted[model], library(path)
            bad += [f"lib of {model} from {text}: {f} differs" for f in want if want[f] != got.get(f)]
        gnnc(source, "--target=cpu", "--emit=ir", "-o", path)
        got = library(path)
        if len(got["libmy.a"]) >= 0.8 * len(want["libmy.a"]):
            bad.append("lib of gcn from its last IR is not one variant of two")
    return bad


def main():
    models = [os.path.join(TOP, "models", m) for m in sorted(os.listdir(os.path.join(TOP, "models")))
              if m.endswith(".gnn") and (len(sys.argv) < 4 or m[:-4] in sys.argv[3:])]
    assert models or "libraries" in sys.argv
    every = len(sys.argv) > 3 or LONG
    names = {m: os.path.basename(m)[:-4] for m in models}
    jobs = [(m, t, o) for m, name in names.items() for t in ("cpu", "cuda") for o in ("-O0", ALL)
            if every or ((t, o) == ("cpu", ALL) and not left_out(name)) or name in (WHOLE if o == ALL else AT_O0)]
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count())) as pool:
        bad = sum(pool.map(lambda j: check(*j), jobs), [])
    if len(sys.argv) < 4 or "libraries" in sys.argv:
        bad += check_libraries()
    print("\n".join(bad))
    sys.exit(bool(bad))


main()
