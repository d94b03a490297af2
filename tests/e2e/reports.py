#!/usr/bin/env python3
"""What the reports promise is what a program does: for each model, phase by phase, the run-time
counters (launches, library calls, read-backs, allocations, bytes allocated) are held against
`--report=all`, and the numbers of the reports against those in the program's own tables.

    reports.py GNNC DATA MODEL.gnn..
"""
import ctypes
import json
import os
import subprocess
import sys


class Counters(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int64) for n in
                ("steps", "allocations", "allocated_bytes", "launches", "library_calls", "read_backs", "live_bytes",
                 "peak_bytes")]


class Memory(ctypes.Structure):
    _fields_ = [(n, ctypes.c_size_t) for n in
                ("data", "index", "parameter", "saved", "arena", "unpacked", "library", "loading", "all")]


class Step(ctypes.Structure):
    _fields_ = [("phase", ctypes.c_char_p), ("name", ctypes.c_char_p), ("is_kernel", ctypes.c_int),
                ("note", ctypes.c_char_p), ("lines", ctypes.c_char_p)] + \
               [(n, ctypes.c_int64) for n in ("read", "gathered", "written", "flops", "calls")] + \
               [("seconds", ctypes.c_double)]


class Trainer:
    def __init__(self, path, data):
        self.lib = ctypes.CDLL(os.path.abspath(path))
        self.t = ctypes.c_void_p()
        model = ctypes.byref(ctypes.c_char.in_dll(self.lib, "gnnc_program"))
        self.ok(self.lib.gnnc_trainer_create(ctypes.byref(self.t), model))
        self.ok(self.lib.gnnc_trainer_load(self.t, data.encode()))

    def ok(self, status):
        self.lib.gnnc_trainer_error.restype = ctypes.c_char_p
        assert status == 0, self.lib.gnnc_trainer_error(self.t)

    def counters(self):
        c = Counters()
        self.lib.gnnc_trainer_counters(self.t, ctypes.byref(c))
        return c

    def memory(self):
        m = Memory()
        self.ok(self.lib.gnnc_trainer_memory(self.t, ctypes.byref(m)))
        return m

    def steps(self):
        out = []
        for i in range(self.lib.gnnc_trainer_n_steps(self.t)):
            s = Step()
            self.ok(self.lib.gnnc_trainer_step_info(self.t, i, ctypes.byref(s)))
            out.append(s)
        return out

    def run(self, phase):
        self.ok(self.lib.gnnc_trainer_run_phase(self.t, phase.encode()))


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


def hold_epoch(t, report):
    a = t.counters()
    t.ok(t.lib.gnnc_trainer_epoch(t.t))
    b = t.counters()
    assert b.read_backs - a.read_backs == report["syncs"]["per_epoch"]
    assert b.allocations == a.allocations


def hold_costs(t, report):
    """Bytes and FLOPs: the same numbers from gnnc, which read the sizes, and from the program."""
    said = [s for p in report["fusion"]["phases"] for s in p["steps"]]
    have = t.steps()
    assert len(said) == len(have)
    for s, h in zip(said, have):
        assert s["name"] == h.name.decode() and s["lines"] == h.lines.decode(), s["name"]
        for field in ("read", "gathered", "written", "flops"):
            assert s[field]["value"] == getattr(h, field), (s["name"], field)
        assert h.gathered <= h.read, s["name"]


def hold_memory(t, report):
    m, c = t.memory(), t.counters()
    arena = max(p["packed_bytes"] for p in report["memory"]["arena"])
    assert arena == m.arena, (arena, m.arena)
    for p in report["memory"]["arena"]:
        assert p["packed_bytes"] >= max(s["bytes"]["value"] for s in p["live_bytes"])
        assert p["packed_bytes"] <= p["unshared_bytes"]["value"] + 64 * len(report["memory"]["buffers"])
    # The peak is what was announced: up to blocks of 16 KiB for small things and alignment.
    announced = m.all - m.data
    assert abs(c.peak_bytes - announced) <= (64 << 10) + (4 << 20) * (m.arena > 8 << 20), \
        (c.peak_bytes, announced)


def main(gnnc, data, models):
    for path in models:
        name = os.path.splitext(os.path.basename(path))[0]
        out = subprocess.run([gnnc, path, f"--specialize={data}", "--emit=lib", "-o", f"{name}.so",
                              "--report=all", "--report-format=json"], check=True, capture_output=True)
        report = json.loads(out.stdout)
        quiet = report["breaks"]["host_effects_in_model"] == 0
        assert report["shapes"]["checks_per_step"] == 0
        # Effects stand at the end of a step, which reads values there, but nothing interrupts it.
        assert report["breaks"]["breaks"] == 0 and (report["syncs"]["per_step"] == 0) == quiet
        for p in report["breaks"]["phases"]:
            assert quiet or p["phase"] == "load" or p["regions"] == 1 < p["regions_as_written"], p
        t = Trainer(f"{name}.so", data)
        hold_costs(t, report)
        hold_phases(t, report)
        hold_epoch(t, report)
        hold_memory(t, report)
        print(f"{name}: the reports hold")


main(sys.argv[1], sys.argv[2], sys.argv[3:])
