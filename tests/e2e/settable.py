#!/usr/bin/env python3
"""Options of a model: sizes, dropout, weights of losses and fan-outs that are said when its program runs.  Prints
`N passed, N failed`."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GNNC, CORA = os.path.join(TOP, "tests", "tools", "gnnc"), os.path.join(TOP, "models", "data", "cora")
sys.path.insert(0, os.path.join(TOP, "tests", "oracle"))
from checks import check, end  # noqa: E402

MODEL = """
import "layers/sage.gnn"
graph Citation { node paper { x: csr f32[F];  y: class[C];  split }  edge cites: paper -> paper }
fn l2(pred: f32[N, K], target: i32[N], mask: bool[N]) -> f32 minimize {
  return sum(mean(pred * pred, over = K) * f32(mask), N) / max(sum(f32(mask), N), 1)
}
model M(g: Citation; hidden: int = 16SET, p: float = 0.5SET, w: float = 0.25SET) -> f32[paper, C] {
  conv1 = sage_conv(hidden)
  conv2 = sage_conv(C)
  h = relu(conv1(g.cites, dropout(g.paper.x, p)))
  return conv2(g.cites, dropout(h, p))
}
train M { target paper.y  loss cross_entropy, w * l2  metric accuracy  optimizer adam(lr = 1e-2)  RECIPE  epochs 4 }
"""
DRAWN = "sample { fanout [10, 5]  batch 64 }"


def run(*argv, code=0):
    """What it said."""
    p = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check(f"{' '.join(map(str, argv))}: exit {code}, not {p.returncode}", p.returncode == code, p.stdout)
    return p.stdout


def build(name, settable, recipe="", *options, gnnc=GNNC):
    with open(f"{name}.gnn", "w", encoding="utf-8") as f:
        f.write(MODEL.replace("SET", " settable" if settable else "").replace("RECIPE", recipe))
    run(gnnc, f"{name}.gnn", "-o", name, "--target=cpu", "-I", os.path.join(TOP, "models"), *options)
    return f"./{name}"


def train(program, *options):
    """Losses and metrics of all epochs, and of the kept one."""
    told = run(program, "--data", CORA, "--log", "json", "--checkpoint", f"{program}.ckpt", *options)
    return [re.sub(r',"(ms|train_ms|eval_ms|seconds)":[0-9.e+-]+', "", line) for line in told.splitlines() if "loss" in line]


def scores(program, weights, out):
    run(program, "predict", "--data", CORA, "--weights", weights, "--out", out, "--log", "none")
    with open(out, "rb") as f:
        return f.read()


def scored(program, *options):
    run(program, "predict", "--data", CORA, "--weights", f"{program}.ckpt", "--log", "none", "--out", "scores.csv", *options)
    with open("scores.csv", encoding="utf-8") as f:
        return f.read()


def test_bits():
    """Powers of two are exact, so that both programs compute the same sums; others agree as near as rounding lets them."""
    fixed, free = build("fixed", False), build("free", True)
    check("the defaults are those of the model", train(fixed)[-1] == train(free)[-1])
    wide = build("wide", False, "", "-D", "hidden=48", "-D", "p=0.25", "-D", "w=2")
    told, mine = train(wide), train(free, "--set", "hidden=48", "--set", "p=0.25", "--set", "w=2")
    check("options are what -D compiles in", told[-1] == mine[-1], f"{told}\n{mine}")
    check("threads change nothing", mine == train(free, "--set", "hidden=48", "--set", "p=0.25", "--set", "w=2", "--threads", "1"))
    check("dropout 0 is none", train(free, "--set", "p=0")[-1] == train(build("none", False, "", "-D", "p=0"))[-1])
    train(free, "--set", "hidden=48", "--set", "p=0.25", "--set", "w=2")
    train(wide)
    check("weights tell predictors the size", scores(free, "./free.ckpt", "a.npy") == scores(wide, "./wide.ckpt", "b.npy"))
    check("so do shapes alone", scores(free, "./wide.ckpt", "c.npy") == scores(wide, "./wide.ckpt", "d.npy"))
    with open("free.ckpt", "rb") as f:
        head = f.read(1 << 16)
    check("the file records them", b'gnnc_options' in head and b'hidden\\": 48' in head)
    return free


def test_errors(free):
    told = run(free, "--data", CORA, "--set", "p=1.5", code=2)
    check("the reason is told", "'p' is 1.5, not between 0 and 1: the p of dropout is a chance, from 0 to 1" in told, told)
    with open("bounds.gnn", "w", encoding="utf-8") as f:
        f.write(MODEL.replace("SET", " settable").replace("RECIPE", "").replace(
            "  conv1 =", '  assert(w >= 0, "no weight is negative")\n  assert(w < 8, "8 is too much")\n  conv1 =', 1))
    run(GNNC, "bounds.gnn", "-o", "bounds", "--target=cpu", "-I", os.path.join(TOP, "models"))
    for value, text in (("-1", "no weight is negative"), ("8", "8 is too much")):
        told = run("./bounds", "--data", CORA, "--set", f"w={value}", code=2)
        check(f"each bound has its reason: {text}", told.splitlines()[0].endswith(": " + text), told)
    for value, text in (("hidden=0", "not a whole number between 1 and"), ("hidden=x", "is not a whole number"), ("hidden", "is not NAME=VALUE"),
                        ("depth=3", "there is no option 'depth'; the model has hidden, p, w"), ("p=nan", "not between 0 and 1"),
                        ("w=1e39", "not between"), ("w=-1e300", "not between")):
        told = run(free, "--data", CORA, "--set", value, code=2)
        check(f"--set {value}: {text}", text in told, told)
    told = run("./fixed", "--data", CORA, "--set", "hidden=8", code=2)
    check("a program without options says so", "gnnc --settable" in told, told)
    told = run(free, "eval", "--data", CORA, "--weights", "./free.ckpt", "--set", "hidden=8", code=1)
    check("weights of another size", "[48, " in told and "[8, " in told, told)
    told = run(GNNC, "check", "fixed.gnn", "--settable=hiden", "-I", os.path.join(TOP, "models"), code=1)
    with open("inner.gnn", "w", encoding="utf-8") as f:
        f.write("fn twice(x, by: float = 2 settable) { return x * by }\n")
    wrong = run(GNNC, "check", "inner.gnn", code=1)
    check("a parameter of a function", "E0322" in wrong and "a parameter of a model alone" in wrong, wrong)
    check("a wrong name", "did you mean 'hidden'" in told, told)


def test_lists(free):
    listed = {o["name"]: o for o in json.loads(run(free, "--help=json"))["options"]}
    check("type, default, range", (listed["hidden"]["type"], listed["hidden"]["default"], listed["hidden"]["least"]) == ("int", 16, 1))
    check("a range is the assertion's", (listed["p"]["default"], listed["p"]["least"], listed["p"]["most"]) == (0.5, 0, 1))
    check("those of all trainers, too", listed["fanout"]["settable"] is False and listed["epochs"]["default"] == 4)
    check("--help", "--set hidden=N" in run(free, "--help"))


def test_resume(free):
    options = ("--set", "hidden=24", "--set", "p=0.25")
    whole = train(free, *options)
    run(free, "--data", CORA, "--checkpoint", "half.ckpt", "--epochs", "2", "--log", "none", *options)
    rest = train(free, "--resume", "half.ckpt", "--epochs", "4")
    train(free, "--set", "p=0.3")  # which f32 does not hold
    train(free, "--set", "p=0.3", "--resume", "./free.ckpt", "--epochs", "5")
    check("a checkpoint goes on with what it records", whole[-1] == rest[-1], f"{whole}\n{rest}")


def test_variants(free):
    """A run goes on in the variant that it began in, or says why not."""
    for variant, other in (("0", "1"), ("1", "0")):
        whole = train(free, "--variant", variant)
        run(free, "--data", CORA, "--checkpoint", "half.ckpt", "--epochs", "2", "--log", "none", "--variant", variant)
        told = run(free, "--data", CORA, "--resume", "half.ckpt", "--epochs", "3", "--checkpoint", "none", "--variant", other)
        check("another one is told", f"by variant {variant} of the program; variant {other} goes on" in told and "'variant' says so" in told, told)
        rest = train(free, "--resume", "half.ckpt", "--epochs", "4")
        check("a checkpoint records the variant", rest[-1] == whole[-1], f"{whole}\n{rest}")


def test_fanout():
    drawn, other = build("drawn", True, DRAWN), build("other", False, DRAWN.replace("10, 5", "3, -1"))
    check("a fan-out is the recipe's, said later", train(other, "--variant", "0")[-1] == train(drawn, "--variant", "0", "--fanout", "3,-1")[-1])
    check("another one is another training", train(drawn)[-1] != train(other)[-1])
    train(drawn, "--fanout", "3,-1")
    told = run(drawn, "--data", CORA, "--resume", "./drawn.ckpt", "--epochs", "6", "--checkpoint", "none")
    check("a checkpoint records it", "another way" not in told, told)
    judged = build("judged", True, DRAWN.replace("batch 64", "batch 64  evaluate drawn"), gnnc=os.path.join(TOP, "build", "gnnc"))  # with rows by themselves
    train(judged, "--fanout", "3,-1")
    with open("ids.txt", "w", encoding="utf-8") as f:
        f.write("\n".join(str(i) for i in range(0, 2708, 100)))
    rows = [[float(x) for x in line.split(",")[-7:]] for line in scored(judged).splitlines()[1:]]
    some = [[float(x) for x in line.split(",")[-7:]] for line in scored(judged, "--nodes", "ids.txt").splitlines()[1:]]
    check("rows by themselves draw as the weights say", len(some) == 28 and all(
        abs(a - b) < 1e-5 for i, row in enumerate(some) for a, b in zip(row, rows[100 * i])), f"{some[1]}\n{rows[100]}")
    told = run(judged, "predict", "--data", CORA, "--weights", "./judged.ckpt", "--nodes", "ids.txt", "--set", "hidden=8", "--out", "x.csv", code=1)
    check("what is set counts for rows by themselves", "[16, " in told and "[8, " in told, told)
    for value, text in (("10, 5", "a number for each hop is expected"), ("+3,1", "a number for each hop is expected"), ("3", "of 1 hop, and the model was compiled for 2"), ("3,x", "a number for each hop is expected"),
                        ("3,-2", "a number for each hop is expected"), ("1,2,3", "of 3 hops")):
        told = run(drawn, "--data", CORA, "--fanout", value, code=2)
        check(f"--fanout {value}: {text}", text in told, told)
    check("a model that draws nothing", "draws no neighbours" in run("./fixed", "--data", CORA, "--fanout", "3", code=2))


def main():
    work = tempfile.mkdtemp(prefix="settable.")
    os.chdir(work)
    free = test_bits()
    test_errors(free)
    test_lists(free)
    test_resume(free)
    test_variants(free)
    test_fanout()
    os.chdir(TOP)
    shutil.rmtree(work)
    return end()


sys.exit(main())
