"""How long it takes on the GPU: parts bench, low and batches of tests/gpu/run.

Both sides wait once for ten steps, and once for an epoch of mini-batches.
"""
import itertools
import json
import os
import statistics
import sys

import predicted
from suites import BENCHED, CUSPARSE, HIDDEN, LOW, SAMPLED

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STEPS, PROFILED, EPOCHS = 200, 20, 6  # SIM: of the simulator
SIM_STEPS, SIM_PROFILED, SIM_EPOCHS = 3, 2, 2
PRECISIONS = (("f32", []), ("tf32", ["--tf32"]))
# Who draws a batch's neighbours, and whether its sizes are rounded so that a step is one launch.
BATCHES = (("gnnc", []), ("gnnc sampler", ["--sampler=device"]), ("gnnc dynamic", ["--shapes=dynamic"]),
           ("gnnc sampler dynamic", ["--sampler=device", "--shapes=dynamic"]))
GOOD = 0.7  # of the machine's limit


def row(s, graph, model, system, precision, what="step", **values):
    s.evidence.figures("time", [dict(graph=graph, model=model, system=system, precision=precision, what=what, **values)])
    times = "  ".join(f"{k[:-3]} {values[k]:9.4f} ms" for k in ("train_ms", "infer_ms", "epoch_ms") if values.get(k) is not None)
    print(f"{graph:17} {model:5} {system:13} {precision:5} {times}", flush=True)


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


# ---- steps of ours ------------------------------------------------------------------------------
def steps(s, graph, model, program, data, system, precision, more=()):
    name = f"{model} on {graph} ({system}, {precision})"
    if s.evidence.late(name):
        return
    r = s.shell([program, "bench", "--data", data, "--epochs", str(SIM_STEPS if s.sim else STEPS), "--json", "--device", "cuda", *more])
    if not s.cut(name, r) and s.evidence.check("bench " + name, r.returncode == 0, r.stderr):
        got = json.loads(r.stdout.splitlines()[0])
        row(s, graph, model, system, precision, train_ms=got["train_ms"], infer_ms=got["infer_ms"], device_mib=got["device_mib"],
            launches_per_step=got["launches_per_step"] + got["library_calls_per_step"])


def kernels(s, graph, model, program, data, kind, precision="f32"):
    """Every kernel's rate and its part of the machine's limit, by the GPU's clock, the slowest first; then beside the predictions."""
    if s.evidence.late(f"kernels of {model} on {graph}"):
        return
    r = s.shell([program, "bench", "--data", data, "--epochs", str(SIM_PROFILED if s.sim else PROFILED), "--json", "--profile", "--device", "cuda"])
    if s.cut(f"kernels of {model} on {graph}", r) or not s.evidence.check(f"profile of {model} on {graph} ({precision})", r.returncode == 0, r.stderr):
        return
    profile = json_lines(r.stdout)[-1]["profile"]
    s.evidence.write("limits", graph=graph, model=model, gb_per_s=profile["gb_per_s"], gflop_per_s=profile["gflop_per_s"])
    rows = []
    for k in sorted((k for k in profile["steps"] if k["calls"]), key=lambda k: -k["ms"]):
        us, size = 1e3 * k["ms"] / k["calls"], k["read"] + k["written"]
        rows.append(dict(graph=graph, model=model, precision=precision, phase=k["phase"], step=k["index"], name=k["name"], lines=k["lines"],
                         calls=k["calls"], us=round(us, 3), bytes=size, flops=k["flops"], gb_per_s=round(size / us / 1e3, 1) if us else 0, limit=k["limit"]))
    s.evidence.figures("kernel", rows)
    s.evidence.note(f"{model} on {graph} ({precision}): {share_in_words(rows)}")
    against_predictions(s, graph, model, kind, profile)


def share_in_words(rows):
    """How much of a train step is in kernels near the limit, and which of the others take longest."""
    train = [k for k in rows if k["phase"] == "train"]
    whole = sum(k["us"] for k in train) or 1
    near = sum(k["us"] for k in train if k["limit"] >= GOOD)
    slow = [k for k in train if k["limit"] < GOOD][:3]
    return f"{100 * near / whole:.0f} % of a train step is in kernels at {100 * GOOD:.0f} % of the machine's limit or more" + \
        "".join(f"; {k['name']} {k['us']:.1f} us at {100 * k['limit']:.0f} %" for k in slow)


def against_predictions(s, graph, model, kind, profile):
    """What was written down of each step before, beside what it took.  Sizes are those of one graph."""
    path = f"{TOP}/programs/{kind}/{model}/predicted.json"
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as f:
        at = json.load(f)
    which = 0 if s.sim else predicted.machine_of(at["times"], s.evidence.device)
    if which is None or not (s.sim or at["graph"] == graph):
        return
    rows = predicted.compare(at["times"], profile, which)
    s.evidence.figures("predicted", [{"graph": graph, "model": model, **{k: round(v, 3) if isinstance(v, float) else v for k, v in r.items()}} for r in rows])
    took = [r["train_ms"] for r in s.evidence.rows["time"].values()
            if (r["graph"], r["model"], r["system"], r["precision"], r["what"]) == (graph, model, "gnnc", "f32", "step")]
    s.evidence.note(f"{model} on {graph}: {predicted.in_words(at['times'], rows, which, took)}")


# ---- peers ------------------------------------------------------------------------------------------
def has_torch(s):
    """Whether PyG is here to compare with; asked once."""
    if s.torch is None:
        s.torch = not s.sim and s.shell([sys.executable, "-c", "import torch, torch_geometric"], peer=True).returncode == 0
        if not s.torch:
            s.evidence.note("torch and torch-geometric are not installed: nothing to compare with")
    return s.torch


def peer(s, name, script, *more):
    """Lines of JSON of a process of bench/peers, those before its time was over, too."""
    r = s.shell([sys.executable, f"{TOP}/bench/peers/{script}", "--device", "cuda", *more], peer=True)
    if r.returncode:
        s.evidence.note(f"{name}: {(r.stderr.strip().splitlines() or ['failed'])[-1][:200]}")
    return json_lines(r.stdout)


def pyg(s, graph, model, arrays, kind, modes="eager,compile", precisions="f32,tf32"):
    """One process for a graph and model: torch is imported, and the graph read, once."""
    name = f"PyG, {model} on {graph}"
    if s.evidence.late(name, 25):
        return
    for got in peer(s, name, "pyg_full.py", "--data", arrays, "--model", model, "--mode", modes, "--precision", precisions,
                    "--hidden", str(HIDDEN[kind][model == "gat"]), "--epochs", "50"):
        row(s, graph, model, "pyg " + got["mode"].split("+")[0], got["precision"], **{k: got[k] for k in ("train_ms", "infer_ms", "device_mib")})


# ---- full batch -----------------------------------------------------------------------------------------
def ours(s, graph, precisions=PRECISIONS, profile=True):
    """Steps and kernels of the four models on a graph."""
    data, kind = s.graph(graph), s.graphs[graph][4]
    programs = s.programs([kind], BENCHED) if data else {}
    for (precision, more), model in itertools.product(precisions, BENCHED):
        program = programs.get(f"{kind}/{model}")
        if program:
            steps(s, graph, model, program, data, "gnnc", precision, more)
    for model in BENCHED if profile else ():
        if f"{kind}/{model}" in programs:
            kernels(s, graph, model, programs[f"{kind}/{model}"], data, kind)


def sparse(s, graph):
    data, kind = s.graph(graph), s.graphs[graph][4] + CUSPARSE
    programs = s.programs([kind], BENCHED) if data else {}
    for (name, program), (precision, more) in itertools.product(programs.items(), PRECISIONS):
        steps(s, graph, name.split("/")[1], program, data, "gnnc cusparse", precision, more)


def peers(s, graph, modes="eager,compile", precisions="f32,tf32"):
    if has_torch(s) and s.graph(graph):
        for model in BENCHED:
            pyg(s, graph, model, s.arrays(graph), s.graphs[graph][4], modes, precisions)


def against_peers(s):
    """In words: the best of PyG beside us, of the same graph, model and precision."""
    times = [r for r in s.evidence.rows["time"].values() if r["what"] == "step"]
    best = {}
    for r in times:
        if r["system"].startswith("pyg"):
            key = r["graph"], r["model"], r["precision"]
            best[key] = min(best.get(key, r["train_ms"]), r["train_ms"])
    found = [best[k] / r["train_ms"] for r in times if r["system"] == "gnnc" for k in [(r["graph"], r["model"], r["precision"])] if k in best]
    return f"a train step of PyG's best takes {min(found):.2f} to {max(found):.2f} times as long" if found else "no peer was measured"


def near_limit(s):
    """In words: time in train steps' kernels near the limit, and steps that took what was predicted."""
    train = [k for k in s.evidence.rows["kernel"].values() if k["phase"] == "train"]
    whole, near = sum(k["us"] for k in train), sum(k["us"] for k in train if k["limit"] >= GOOD)
    judged = [r["verdict"] for r in s.evidence.rows["predicted"].values() if r["verdict"] != "short"]
    text = f"{100 * near / whole:.0f} % of train steps is in kernels at {100 * GOOD:.0f} % of the limit or more" if whole else "no kernel was measured"
    return text + (f"; {judged.count('confirmed')} of {len(judged)} predictions confirmed" if judged else "")


# ---- 16 bits -----------------------------------------------------------------------------------------------
def low(s, graph, types=LOW):
    """Steps in 16 bits beside f32 on the same graph."""
    data = s.graph(graph)
    for t in ("f32", *types):
        kind = s.graphs[graph][4] + ("" if t == "f32" else "_" + t)
        programs = s.programs([kind], BENCHED) if data else {}
        for model in BENCHED:
            if f"{kind}/{model}" in programs and not (t == "f32" and known(s, graph, model, t)):
                steps(s, graph, model, programs[f"{kind}/{model}"], data, "gnnc", t)


def known(s, graph, model, precision):
    return s.evidence.rows["time"].get((graph, model, "gnnc", precision, "step"))


def low_in_words(s, graph):
    found = {t: [known(s, graph, m, "f32")["train_ms"] / known(s, graph, m, t)["train_ms"] for m in BENCHED
                 if known(s, graph, m, "f32") and known(s, graph, m, t)] for t in LOW}
    return "; ".join(f"{t} {min(f):.2f} to {max(f):.2f} times as fast as f32" for t, f in found.items() if f)


# ---- mini-batches ------------------------------------------------------------------------------------------
def epochs(s, graph, program, data, system, more):
    """Medians of epochs behind the first, which finds the room that batches need; evaluation is not counted."""
    name = f"epochs of {SAMPLED} on {graph} ({system})"
    if s.evidence.late(name):
        return
    n = SIM_EPOCHS if s.sim else EPOCHS
    r = s.shell([program, "--data", data, "--seed", "3", "--epochs", str(n), "--log=json", "--device", "cuda", "--checkpoint", "none", *more])
    took = [e["train_ms"] for e in json_lines(r.stdout) if "train_ms" in e] if r.returncode == 0 else []
    if not s.cut(name, r) and s.evidence.check(name, len(took) == n, r.stderr[-1500:] or r.stdout[-500:]):
        row(s, graph, SAMPLED, system, "f32", "epoch", epoch_ms=round(statistics.median(took[1:]), 3))


def batches(s, graph, ways=BATCHES):
    """The device's sampler beside the host's, dynamic sizes beside rounded ones: steps, and epochs with what comes between them."""
    data, kind = s.graph(graph), s.graphs[graph][4]
    program = s.programs([kind], (SAMPLED,)).get(f"{kind}/{SAMPLED}") if data else None
    for system, more in ways if program else ():
        epochs(s, graph, program, data, system, more)
        steps(s, graph, SAMPLED, program, data, system, "f32", more)


def loader(s, graph, modes="eager,compile"):
    """PyG's NeighborLoader, whose batches go to the GPU: in the process itself, and by half as many workers as there are cores."""
    if not has_torch(s) or not s.graph(graph):
        return
    name = f"PyG's NeighborLoader on {graph}"
    if s.evidence.late(name, 30):
        return
    workers = max(1, (os.cpu_count() or 2) // 2)
    for got in peer(s, name, "pyg_mini.py", "--data", s.arrays(graph), "--fanout", "10,5", "--bs", "1024", "--model", "sage",
                    "--hidden", str(HIDDEN[s.graphs[graph][4]][0]), "--epochs", "5", "--workers", f"{workers},0", "--mode", modes):
        row(s, graph, SAMPLED, f"pyg {got['mode']}, {got['workers']} workers", "f32", "epoch", epoch_ms=1e3 * got["epoch_s"])


def batches_in_words(s):
    times = {r["system"]: r["epoch_ms"] for r in s.evidence.rows["time"].values() if r["what"] == "epoch"}
    gnnc = {k: v for k, v in times.items() if k.startswith("gnnc")}
    theirs = {k: v for k, v in times.items() if k.startswith("pyg")}
    if not gnnc:
        return ""
    best = min(gnnc, key=gnnc.get)
    text = f"the fastest epoch is {best}'s, {gnnc[best]:.1f} ms"
    if "gnnc" in gnnc and "gnnc sampler" in gnnc:
        text += f"; the device draws an epoch in {gnnc['gnnc sampler'] / gnnc['gnnc']:.2f} of the host's time"
    return text + (f"; PyG's best takes {min(theirs.values()) / gnnc[best]:.2f} times as long" if theirs else "; no peer was measured")
