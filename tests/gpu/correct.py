"""Whether the GPU computes what was recorded: parts ops, train, embed, models, low of tests/gpu/run.

Each function takes a Session (run), and checks; what it finds is the session's evidence.
"""
import itertools
import os
import re
import shutil
import sys

import curves
import machine
from suites import AGREES, BENCHED, CORA, CUSPARSE, DECLARED, EPOCHS, FIRST, LOW, ROUNDS, SAMPLED, SHIFTS

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# ---- ops -----------------------------------------------------------------------------------------
def op_matrix(s):
    programs = s.programs(["ops"])
    folder = s.unpacked() + "/programs/ops/ops"
    if "ops/ops" in programs and not s.evidence.late("the op matrix"):
        counts(s, "op matrix", s.shell([programs["ops/ops"], folder + "/data", folder + "/expected.txt"]))


def layers(s):
    programs = s.programs(["oracle"])
    if not programs or s.evidence.late("layers against PyG"):
        return
    libraries = os.path.join(s.out, "oracle")
    shutil.rmtree(libraries, ignore_errors=True)
    os.makedirs(libraries)
    for name, path in programs.items():
        shutil.copy(path, os.path.join(libraries, name.split("/")[1] + ".so"))
    counts(s, "layers against PyG", s.shell([sys.executable, TOP + "/tests/oracle/run.py", "--libraries", libraries]))


def counts(s, name, r):
    """Of a program that counts by itself."""
    if s.cut(name, r):
        return
    m = re.findall(r"(\d+) passed, (\d+) failed", r.stdout)
    if not m:
        s.evidence.check(name, False, r.stdout[-500:] + r.stderr[-1000:])
        return
    passed, failed = map(int, m[-1])
    s.evidence.count(name, passed, failed, r.stdout[:2000] if failed else "")
    print(f"{name}: {passed} passed, {failed} failed", flush=True)


# ---- curves ------------------------------------------------------------------------------------
def train(s, program, data, epochs, *more, before=()):
    return s.shell([*before, program, "--data", data, "--seed", "3", "--epochs", str(epochs), "--log=json", "--device", "cuda",
                    "--checkpoint", "none", *more])


def curve(s, name, program, data, recorded, epochs, bars, *more):
    """Epochs on the GPU beside those that the cpu target made, from the same seed."""
    if s.evidence.late(name):
        return
    with open(f"{TOP}/recorded/{recorded}.json", encoding="utf-8") as f:
        want = f.read()
    r = train(s, program, data, epochs, *more)
    if s.cut(name, r):
        return
    why, far = (r.stderr[-1500:] or f"status {r.returncode}", None) if r.returncode else curves.compare(r.stdout, want, epochs, bars)
    s.evidence.check("curve of " + name, not why, why, loss_differs=far)
    print(f"curve of {name}: " + ("differs" if why else f"agrees with the cpu, losses to {far:.1g}"), flush=True)


BY = {"models": "", "models" + CUSPARSE: " by cuSPARSE", "hubs": " by blocks of threads"}


def cora(s, kinds, names=CORA):
    """On Cora, dropout on; with --maps=check the GPU's index arrays are the host's.  hubs: with rows as hubs and in parts that
    have few entries, as Cora has no others."""
    data = TOP + "/models/data/cora"
    programs = s.programs(kinds, names)
    for kind, name in itertools.product(kinds, names):
        program = programs.get(f"{kind}/{name}")
        if not program:
            continue
        curve(s, name + BY[kind], program, data, "cora/" + name, EPOCHS["cora"], AGREES, "--maps", "check")
        if name == SAMPLED and kind == "models":
            curve(s, name + ", batches of their own sizes", program, data, "cora/" + name, EPOCHS["cora"], AGREES, "--shapes=dynamic")
            curve(s, name + ", batches that the device draws", program, data, "cora/" + name, EPOCHS["cora"], AGREES, "--sampler=check")


def large(s, names=(*BENCHED, SAMPLED)):
    """A graph with hubs of thousands of entries, by the programs that are measured."""
    graph, kind, recorded = ("tiny", "dense", "tiny") if s.sim else ("arxiv-sized", "wide", "wide")
    data = s.graph(graph)
    programs = s.programs([kind], names) if data else {}
    for name in names:
        if f"{kind}/{name}" in programs:
            curve(s, f"{name} on {graph}", programs[f"{kind}/{name}"], data, f"{recorded}/{name}", EPOCHS[recorded], AGREES)


def declared(s, names=None):
    """Every model that is not trained on Cora, on random data for the graph that it declares: several node and edge types,
    whole graphs, links, rows by time."""
    data = s.random_data()
    names = names or sorted((m for m in s.about["models"] if m not in CORA), key=lambda m: (m not in FIRST, m))
    programs = s.programs(["models"], names)
    for name in names:
        if f"models/{name}" not in programs:
            continue
        with open(f"{data}/{name}/bars", encoding="utf-8") as f:
            bars = SHIFTS if f.read().strip() == "shifts" else DECLARED
        curve(s, name, programs["models/" + name], f"{data}/{name}", "random/" + name, EPOCHS["random"], bars)


def low(s, types=LOW):
    """In 16 bits: the cpu's curves in the same type."""
    for t in types:
        programs = s.programs(["models_" + t], BENCHED)
        for name in BENCHED:
            if f"models_{t}/{name}" in programs:
                curve(s, f"{name} in {t}", programs[f"models_{t}/{name}"], TOP + "/models/data/cora", f"{t}/{name}", EPOCHS["low"], ROUNDS)


def sanitize(s):
    """compute-sanitizer, which a virtual machine may not let in."""
    home = s.home or ""
    tool = None if s.sim else shutil.which("compute-sanitizer") or shutil.which(home + "/bin/compute-sanitizer")
    if not tool:
        s.evidence.note("compute-sanitizer: there is none; left out")
        return
    programs = s.programs(["models"], ("gcn", "gat"))
    for kind, (name, program) in itertools.product(("memcheck", "racecheck", "synccheck"), programs.items()):
        if s.evidence.late(f"{kind} of {name}", 20):
            continue
        r = train(s, program, TOP + "/models/data/cora", 2, before=[tool, "--tool", kind, "--error-exitcode", "9"])
        if s.cut(f"{kind} of {name}", r):
            return
        text = r.stdout + r.stderr
        if r.returncode and "not supported" in text.lower():
            s.evidence.note(f"compute-sanitizer {kind}: not supported here")
            return
        s.evidence.check(f"{kind} of {name}", r.returncode == 0, text[-1500:])


# ---- hosts that use the GPU themselves ----------------------------------------------------------------
def sessions(s):
    programs = s.programs(["embed"])
    if not programs or s.evidence.late("sessions, streams and tensors"):
        return
    made = s.out + "/embed"
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(TOP + "/embed", made)
    for name, path in programs.items():
        shutil.copy(path, f"{made}/lib{name.split('/')[1]}.so")
    runtime = None if s.sim else machine.library(s.libraries, "libcudart.so")
    if not s.evidence.check("the host's CUDA runtime", s.sim or runtime, f"no libcudart.so in {s.libraries}"):
        return
    r = s.shell([sys.executable, TOP + "/tests/cudasim/embed.py", "--made", made, *([runtime] if runtime else [])])
    if s.cut("sessions, streams and tensors", r):
        return
    ok = s.evidence.check("sessions, streams and tensors", r.returncode == 0, r.stderr[-1500:])
    print(f"sessions, streams and tensors: {'as on the cpu' if ok else 'failed'}\n{r.stdout}".rstrip(), flush=True)
