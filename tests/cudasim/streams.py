#!/usr/bin/env python3
"""Steps of a recording in several streams, by the simulator: the bits of one stream, and each wait is needed.

    streams.py BUILD    a model of several relations, on random data

Nodes of a graph run in any order that their dependencies allow.  With each wait forgotten in turn, what was waited for running
late, numbers change, or the recording is refused: so a wait that is missing would be found.
"""
import ctypes
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from batches import Trainer  # noqa: E402
import declared  # noqa: E402
import models  # noqa: E402
from sim import counts, library, orders  # noqa: E402

MODEL = os.path.join(TOP, "models/dblp.gnn")
EPOCHS = 3


def curve(lib):
    """Of each epoch all metrics, and the launches of graphs."""
    before, out = counts(lib)["graph_launches"], []
    t = Trainer(lib, "data", threads=1)
    for _ in range(EPOCHS):
        t.epoch()
        out.append([t.metric(name) for name in models.metrics(t)])
    return out, counts(lib)["graph_launches"] - before


def every_wait_is_needed(sim, want, n_waits):
    """Of the training step, which is recorded first."""
    sim.cudasim_waits_until_forgotten.restype = ctypes.c_int64
    for n in range(n_waits):
        sim.cudasim_forget_wait(ctypes.c_int64(n))
        assert curve(sim) != want, f"without wait {n} nothing changes"
        assert sim.cudasim_waits_until_forgotten() < 0, n


def waits_of_a_step(build, options):
    """As the plan says: `after 3, 5`."""
    plan = subprocess.run([build + "/gnnc", MODEL, "--target=cuda", "--emit=plan", *options], capture_output=True, text=True, check=True).stdout
    train = plan[plan.index("phase @train {"):]
    return sum(len(x.split(",")) for x in re.findall(r" stream \d after ([\d, ]+\d)", train[:train.index("\n}")]))


def room_is_counted(several, one):
    """gnnc_trainer_device_bytes() has the room of each stream's kernels; what it leaves out is the libraries'."""
    untold = []
    for lib in several, one:
        lib.cudasim_live_bytes.restype = lib.gnnc_trainer_device_bytes.restype = ctypes.c_int64
        before = lib.cudasim_live_bytes()
        t = Trainer(lib, "data", threads=1)
        untold.append(lib.cudasim_live_bytes() - before - lib.gnnc_trainer_device_bytes(t.t))
    assert untold[0] == untold[1], untold


def main(build):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        declared.write("data", MODEL, declared.SMALL)
        sim = library(build, "several", MODEL, "cuda")
        one = library(build, "one", MODEL, "cuda", ["--disable-pass=assign-streams"])
        room_is_counted(sim, one)
        want = curve(one)
        assert want[1] > EPOCHS
        for _ in orders(sim):
            assert curve(sim) == want
        # With so much memory no step waits for another's bytes alone, which may not be its own by these sizes.
        options = ["--assign-streams.more-percent=1000"]
        n = waits_of_a_step(build, options)
        assert n > 5, n
        every_wait_is_needed(library(build, "free", MODEL, "cuda", options), want, n)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
