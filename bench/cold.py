#!/usr/bin/env python3
"""Features that memory does not hold: rows a second that batches read from the disk, beside fio's rate of the same reads.  Needs root and fio.

usage: bench/cold.py --work DIR [--limit GIB] [--times 3] [--features 1024] [--threads 2] [--batches 40] [--fanouts 5,5] [--driver P]
                     [--results STEM]

A graph is written to DIR (kept there): so many rows of features, f32, that they take --times the memory that a control group allows
(--limit, 4 GiB; of version 2 or 1), and four random edges a node.  In that group, caches dropped before each:

  gnnc  bench/sampler.c: batches of 1024 random nodes, their neighbours, and the rows of all of them copied, by so many threads
  fio   random reads of a row's bytes at rows' places, through the page cache, by as many threads, one read each at a time: what
        the same program with pread or faults would do; and the most that the disk gives: 64 reads at once, past the cache

Printed, and written to STEM.md: rows a second, and gnnc's part of fio's.  `make build/bench/sampler` builds the driver."""
import argparse
import contextlib
import json
import os
import random
import struct
import subprocess
import sys
from array import array

from systems import TOP, machine_in_words

GROUP = "gnnc-cold"
EDGES = 4  # a node


def write_npy(path, dtype, shape, pieces):
    """An .npy file whose data begin at a page."""
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head = head.ljust(4096 - 11) + b"\n"
    with open(path + ".part", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
        for p in pieces:
            f.write(p)
        f.flush()
        os.fsync(f.fileno())
    os.replace(path + ".part", path)


def repeated(row_bytes, rows, r):
    """Random rows; some thousands of them again and again."""
    some = array("f", (r.random() for _ in range(row_bytes * 4096 // 4))).tobytes()
    for k in range(0, rows, 4096):
        yield some[:row_bytes * min(4096, rows - k)]


def write_data(a):
    """The data directory; its schema is written last."""
    r = random.Random(0)
    if os.path.exists(os.path.join(a.data, "schema.json")):
        return
    os.makedirs(a.data, exist_ok=True)
    at = lambda name: os.path.join(a.data, name)
    learned = set(r.sample(range(a.rows), min(a.rows, 1024 * a.batches)))
    write_npy(at("x.npy"), "<f4", (a.rows, a.features), repeated(a.row_bytes, a.rows, r))
    write_npy(at("split.npy"), "|i1", (a.rows,), [bytes(1 if i in learned else 0 for i in range(a.rows))])
    n = EDGES * a.rows
    ends = (array("i", (r.randrange(a.rows) for _ in range(min(1 << 20, n - k)))).tobytes() for _ in range(2) for k in range(0, n, 1 << 20))
    write_npy(at("ends.npy"), "<i4", (2, n), ends)
    schema = {"format": 1, "nodes": {"node": {"count": a.rows, "columns": {
        "x": {"kind": "float", "shape": [a.rows, a.features], "file": "x.npy"}, "split": {"kind": "split", "file": "split.npy"}}}},
        "edges": {"link": {"src": "node", "dst": "node", "count": n, "file": "ends.npy"}}}
    with open(at("schema.json"), "w", encoding="utf-8") as f:
        json.dump(schema, f)


@contextlib.contextmanager
def control_group(limit):
    """A control group that allows so many bytes, while it is needed: its folder."""
    for root, file in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
        folder = os.path.join(root, GROUP)
        if not os.path.exists(os.path.join(root, "cgroup.procs")):
            continue  # not of this version
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError:
            continue
        try:
            with open(os.path.join(folder, file), "r+", encoding="ascii") as f:
                f.write(str(limit))
        except OSError:
            os.rmdir(folder)
            continue
        try:
            yield folder
        finally:
            os.rmdir(folder)
        return
    sys.exit("no control group of memory can be made here")


def run(a, cmd):
    """Output of a process in the group, behind dropped caches."""
    subprocess.run(["sync"], check=True)
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
        f.write("3")

    def enter():
        with open(os.path.join(a.group, "cgroup.procs"), "w", encoding="ascii") as g:
            g.write(str(os.getpid()))
    r = subprocess.run(cmd, capture_output=True, text=True, timeout=a.timeout, preexec_fn=enter)
    if r.returncode:
        sys.exit(f"{cmd[0]}: {r.stderr.strip()[-300:]}")
    return r.stdout


def fio(a, *options):
    """Reads a second."""
    out = run(a, ["fio", "--name=cold", f"--filename={os.path.join(a.data, 'x.npy')}", "--readonly", "--rw=randread", "--norandommap",
                  f"--bs={a.row_bytes}", "--offset=4096", f"--numjobs={a.threads}", "--thread", "--group_reporting", "--time_based",
                  f"--runtime={a.seconds}", "--invalidate=1", "--randrepeat=0", "--output-format=json", *options])
    return json.loads(out[out.index("{"):])["jobs"][0]["read"]["iops"]


def gnnc(a):
    got = json.loads(run(a, [a.driver, a.data, a.fanouts, "1024", str(a.threads), "1"]))
    return got["sampled_nodes"] / got["sample_epoch_s"]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--work", required=True)
    ap.add_argument("--limit", type=float, default=4, metavar="GIB")
    ap.add_argument("--times", type=float, default=3)
    ap.add_argument("--features", type=int, default=1024)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--batches", type=int, default=40)
    ap.add_argument("--fanouts", default="5,5")
    ap.add_argument("--seconds", type=int, default=20, help="of fio")
    ap.add_argument("--timeout", type=float, default=600)
    ap.add_argument("--driver", default=os.path.join(TOP, "build", "bench", "sampler"))
    ap.add_argument("--machine", default=machine_in_words())
    ap.add_argument("--results", default="", metavar="STEM")
    a = ap.parse_args()
    limit = int(a.limit * 2**30)
    a.row_bytes = 4 * a.features
    a.rows = int(a.times * limit) // a.row_bytes
    a.data = os.path.join(a.work, f"cold_{a.rows}_{a.features}_{a.batches}")
    write_data(a)
    with control_group(limit) as a.group:
        ways = {"gnnc": gnnc(a), f"fio, {a.threads} threads, a read each": fio(a, "--ioengine=psync"),
                f"fio, {a.threads} threads, 64 reads each, direct": fio(a, "--ioengine=libaio", "--direct=1", "--iodepth=64")}
    lines = [f"`bench/cold.py`, {a.machine}: {a.rows:,} rows of {a.row_bytes} bytes ({a.rows * a.row_bytes / 2**30:.1f} GiB), a control group of "
             f"{a.limit:g} GiB ({'version 2' if os.path.dirname(a.group) == '/sys/fs/cgroup' else 'version 1'}), {a.threads} threads, fan-outs {a.fanouts}.", "",
             "| what | rows/s | MiB/s | gnnc's of it |", "|---|---|---|---|"]
    lines += [f"| {k} | {v:.0f} | {v * a.row_bytes / 2**20:.0f} | {100 * ways['gnnc'] / v:.0f} % |" for k, v in ways.items()]
    print("\n".join(lines))
    if a.results:
        with open(a.results + ".md", "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
