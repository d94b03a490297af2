#!/usr/bin/env python3
"""What the reports promise is what a program does: for each model, phase by phase, the run-time
counters (launches, library calls, read-backs, allocations, bytes allocated) are held against
`--report=all`, and the numbers of the reports against those in the program's own tables.

    reports.py GNNC DATA MODEL.gnn..     of the first one each of its variants
    reports.py GNNC ROWS MODEL.gnn..     a number: random data for the model's graph, so many nodes of each type
"""
import ctypes
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "random"))
from data import Data  # noqa: E402
from schema import misfits  # noqa: E402
from small import LONG, sizes  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with open(f"{TOP}/docs/report.schema.json", encoding="utf-8") as f:
    SCHEMA = json.load(f)
# What the CUDA target reports of a model is in the same form for all.
ON_CUDA = {"gat", "gcn", "link", "sage_sampled", "typed_attention"}


class Counters(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(n, ctypes.c_int64) for n in
                ("steps", "allocations", "allocated_bytes", "launches", "library_calls", "read_backs", "live_bytes",
                 "peak_bytes", "eval_ns")]


class Memory(ctypes.Structure):
    _fields_ = [(n, ctypes.c_size_t) for n in
                ("struct_size", "data", "index", "parameter", "saved", "arena", "unpacked", "library", "loading", "all", "file",
                 "batches")]


class Step(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("phase", ctypes.c_char_p), ("name", ctypes.c_char_p), ("is_kernel", ctypes.c_int),
                ("note", ctypes.c_char_p), ("lines", ctypes.c_char_p)] + \
               [(n, ctypes.c_int64) for n in ("read", "gathered", "written", "flops", "calls")] + \
               [("seconds", ctypes.c_double), ("site", ctypes.c_char_p)] + \
               [(n, ctypes.c_int64) for n in ("batch", "m", "n", "k", "runs", "first_calls")] + \
               [("first_seconds", ctypes.c_double), ("foreseen", ctypes.c_int)]


class Trainer:
    def __init__(self, path, data, variant):
        self.lib = ctypes.CDLL(os.path.abspath(path))
        self.t = ctypes.c_void_p()
        model = ctypes.byref(ctypes.c_char.in_dll(self.lib, "model_program"))
        self.ok(self.lib.gnnc_trainer_create(ctypes.byref(self.t), model))
        self.ok(self.lib.gnnc_trainer_set_int(self.t, b"variant", ctypes.c_int64(variant)))
        self.ok(self.lib.gnnc_trainer_load(self.t, data.encode()))

    def ok(self, status):
        self.lib.gnnc_trainer_error.restype = ctypes.c_char_p
        assert status == 0, self.lib.gnnc_trainer_error(self.t)

    def counters(self):
        c = Counters(ctypes.sizeof(Counters))
        self.ok(self.lib.gnnc_trainer_counters(self.t, ctypes.byref(c)))
        return c

    def memory(self):
        m = Memory(ctypes.sizeof(Memory))
        self.ok(self.lib.gnnc_trainer_memory(self.t, ctypes.byref(m)))
        return m

    def steps(self):
        out = []
        for i in range(self.lib.gnnc_trainer_n_steps(self.t)):
            s = Step(ctypes.sizeof(Step))
            self.ok(self.lib.gnnc_trainer_step_info(self.t, i, ctypes.byref(s)))
            out.append(s)
        return out

    def run(self, phase):
        self.ok(self.lib.gnnc_trainer_run_phase(self.t, phase.encode()))


class Full(Data):
    """Every node type and relation has rows, every split some of them."""

    def __init__(self, text, rows):
        super().__init__(text, 1)
        self.rows = rows

    def count(self, node):
        return self.rows + self.rng("count", node).randint(0, 20)

    def count_graphs(self):
        return 24

    def splits(self, r, n):
        """As many of each in any table of n rows: links by time are judged beside one given negative each."""
        found = [(1, 1, 2, 3, 0)[i % 5] for i in range(n)]
        r.shuffle(found)
        return found

    def ends(self, name, src, dst):
        r = self.rng("edges", name)
        return [[r.randrange(self.count(t)) for _ in range(6 * self.rows)] for t in (src, dst)]


def hold_phases(t, report):
    """Two runs of a phase: each launches, calls and reads what its report says, and allocates nothing."""
    syncs = {p["phase"]: p["reads_per_run"] for p in report["syncs"]["phases"]}
    for p in report["fusion"]["phases"]:
        name = p["phase"]
        if name == "load":
            continue
        for _ in range(2):
            a = t.counters()
            t.run(name)
            b = t.counters()
            assert b.launches - a.launches == p["kernels"], name
            assert b.library_calls - a.library_calls == p["library_calls"], name
            assert b.read_backs - a.read_backs == syncs[name], name
            assert b.allocations == a.allocations, name
    assert report["syncs"]["per_step"] == syncs["train"]


def hold_epoch(t, report, batches):
    for _ in range(3 * batches):  # the first ones find how much memory batches take
        t.ok(t.lib.gnnc_trainer_epoch(t.t))
    a = t.counters()
    t.ok(t.lib.gnnc_trainer_epoch(t.t))
    b = t.counters()
    assert b.read_backs - a.read_backs == report["syncs"]["per_epoch"]
    assert b.allocations == a.allocations


def hold_costs(t, report, batches):
    """Bytes and FLOPs: the same numbers from gnnc, which read the sizes, and from the program.  Those of a step over
    a batch depend on the batch."""
    said = [s for p in report["fusion"]["phases"] for s in p["steps"]]
    have = t.steps()
    assert len(said) == len(have)
    for s, h in zip(said, have):
        assert s["name"] == h.name.decode() and s["lines"] == h.lines.decode(), s["name"]
        assert s["site"] == h.site.decode(), s["name"]
        for field in ("read", "gathered", "written", "flops"):
            if (batches and h.phase != b"load") or "value" not in s[field]:
                continue
            assert s[field]["value"] == getattr(h, field), (s["name"], field)
        assert h.gathered <= h.read, s["name"]


def hold_memory(t, report):
    m, c = t.memory(), t.counters()
    arena = max(p["packed_bytes"] for p in report["memory"]["arena"])
    assert arena == m.arena, (arena, m.arena)
    for p in report["memory"]["arena"]:
        # What is live is told with all rows; loops over blocks of rows have room for a block.
        assert p["blocks"] or p["packed_bytes"] >= max(s["bytes"]["value"] for s in p["live_bytes"])
        assert p["packed_bytes"] <= p["unshared_bytes"]["value"] + 64 * len(report["memory"]["buffers"])
    placed = [b for b in report["memory"]["buffers"] if "offset" in b]
    assert {b["phase"] for b in placed} == {p["phase"] for p in report["memory"]["arena"] if p["packed_bytes"]}
    for i, a in enumerate(placed):
        for b in placed[:i]:
            together = a["phase"] == b["phase"] and a["first"] <= b["last"] and b["first"] <= a["last"]
            assert not together or a["block"] or b["block"] or a["offset"] + a["bytes"]["value"] <= b["offset"] \
                or b["offset"] + b["bytes"]["value"] <= a["offset"], (a, b)
    # The peak is what was announced: up to blocks of 16 KiB for small things and alignment.
    announced = m.all - m.data
    assert abs(c.peak_bytes - announced) <= (64 << 10) + (4 << 20) * (m.arena > 8 << 20), \
        (c.peak_bytes, announced)


def hold_schema(report):
    """It fits, and what would not is seen."""
    wrong = list(misfits(report, SCHEMA, SCHEMA))
    assert not wrong, wrong[:9]
    bad = {key: {k: v for k, v in report.items() if k != key} for key in report.keys() & set(SCHEMA["required"])}
    bad |= {"another version": report | {"version": 0}, "one key more": report | {"more": 1}}
    for what, other in bad.items():
        assert next(misfits(other, SCHEMA, SCHEMA), None), what


def hold_variant(gnnc, path, text, data, variant):
    """How many variants there are."""
    name = os.path.splitext(os.path.basename(path))[0]
    out = subprocess.run([gnnc, path, *sizes(name), f"--specialize={data}", "--emit=lib", "--runtime=shared", "--name=model", "-o", f"{name}_{variant}",
                          "--report=all", "--report-format=json", f"--variant={variant}"],
                         check=True, capture_output=True)
    report = json.loads(out.stdout)
    assert report["variant"] == variant
    hold_schema(report)
    if variant == 0 and (LONG or name in ON_CUDA):
        out = subprocess.run([gnnc, path, *sizes(name), f"--specialize={data}", "--target=cuda", "--spmm=auto", "--emit=none", "--report=all",
                              "--report-format=json"], check=True, capture_output=True)
        hold_schema(json.loads(out.stdout))
    batches = re.search(r"^\s*sample\b", text, re.M) is not None
    quiet = report["breaks"]["host_effects_in_model"] == 0
    assert report["shapes"]["checks_per_step"] == 0
    # Effects stand at the end of a step, which reads values there, but nothing interrupts it.  The host builds the
    # relations of `where` when data are loaded.
    assert all(p["regions"] == 1 for p in report["breaks"]["phases"] if p["phase"] != "load"), report["breaks"]
    assert (report["syncs"]["per_step"] == 0) == quiet
    for p in report["breaks"]["phases"]:
        assert quiet or p["phase"] == "load" or p["regions"] == 1 < p["regions_as_written"], p
    t = Trainer(f"./lib{name}_{variant}.so", data, variant)
    hold_costs(t, report, batches)
    if not batches:
        hold_phases(t, report)
    hold_epoch(t, report, batches)
    if not batches:
        hold_memory(t, report)
    print(f"{name}: the reports of variant {variant} hold")
    return len(report["variants"])


def main(gnnc, data, models):
    rows = int(data) if data.isdigit() else 0
    for path in models:
        name = os.path.splitext(os.path.basename(path))[0]
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if rows:
            data = name + ".data"
            Full(text, rows).write(data)
        n = hold_variant(gnnc, path, text, data, 0)
        for variant in range(1, n if path == models[0] and not rows else 1):
            hold_variant(gnnc, path, text, data, variant)


main(sys.argv[1], sys.argv[2], sys.argv[3:])
