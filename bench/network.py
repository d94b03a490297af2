#!/usr/bin/env python3
"""Two processes with a network between them: a step's time at several rates and delays beside a model of it, which is then run for more machines.

    bench/network.py GNNC [--epochs N] [--overlap]     as root, with `ip`, `tc` and Open MPI; Markdown

Each process is in a network namespace of its own.  Between them is a wire of two TUN devices whose packets this script carries, after a
delay; rates are set by `tc` (tbf).  The model is LogGP's (Alexandrov et al. 1995): of a step's exchanges, one after the other,

    step = compute + sum over exchanges of (L + messages * g + bytes * G), 3 L where MPI asks before it sends (more than 64 KiB)

L, g and G are measured at each setting (network.c), bytes and messages of each process are what `info --processes` counts, and `compute` is
what is left of a step without a limit.  Settings are not fitted.

--overlap: instead, a step that computes while rows come (pass overlap-exchanges) beside one that waits for them, of SAGE on a graph whose
processes compute about as long as they send."""
import argparse
import collections
import ctypes
import fcntl
import json
import math
import os
import random
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
import directory  # noqa: E402
MTU, EAGER = 1500, 65536
NAMES = ("gnnc-m0", "gnnc-m1")
# Mbit/s and ms each way; 0 = no limit
SETTINGS = [(5, 0), (10, 0), (20, 0), (50, 0), (10, 2), (20, 5), (50, 10)]


def sh(*command, **more):
    return subprocess.run(command, check=True, text=True, capture_output=True, **more).stdout


# ---- the wire -----------------------------------------------------------------------------------------------
def in_namespace(name, does):
    libc = ctypes.CDLL(None, use_errno=True)
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    to = os.open(f"/run/netns/{name}", os.O_RDONLY)
    try:
        if libc.setns(to, 0x40000000):
            raise OSError(ctypes.get_errno(), "setns")
        return does()
    finally:
        libc.setns(own, 0x40000000)
        os.close(own), os.close(to)


def tun():
    f = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(f, 0x400454CA, struct.pack("16sH22x", b"wire", 0x1001))  # TUNSETIFF: IFF_TUN | IFF_NO_PI
    os.set_blocking(f, False)
    return f


class Wire(threading.Thread):
    """Carries packets from each end to the other; those of one way keep their order."""
    def __init__(self, ends):
        super().__init__(daemon=True)
        self.ends, self.delay, self.stop = ends, 0.0, False

    def run(self):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))  # processes that wait must not hold the wire up
        way = {self.ends[0]: (self.ends[1], collections.deque()), self.ends[1]: (self.ends[0], collections.deque())}
        while not self.stop:
            now = time.monotonic()
            due = [q[0][0] for _, q in way.values() if q]
            ready = select.select(self.ends, [], [], max(0, min(due) - now) if due else 0.05)[0]
            now = time.monotonic()
            for f in ready:
                for _ in range(64):
                    try:
                        way[f][1].append((now + self.delay, os.read(f, MTU + 64)))
                    except BlockingIOError:
                        break
            for to, q in way.values():
                while q and q[0][0] <= time.monotonic():
                    os.write(to, q.popleft()[1])


def network(folder):
    for name in NAMES:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
        sh("ip", "netns", "add", name)
    ends = [in_namespace(name, tun) for name in NAMES]
    for i, name in enumerate(NAMES):
        sh("ip", "-n", name, "addr", "add", f"10.21.0.{i + 1}", "peer", f"10.21.0.{2 - i}", "dev", "wire")
        sh("ip", "-n", name, "link", "set", "wire", "mtu", str(MTU), "up")
        sh("ip", "-n", name, "link", "set", "lo", "up")
        sh("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv4.tcp_slow_start_after_idle=0", "net.ipv4.tcp_congestion_control=reno")
    with open(folder + "/agent", "w", encoding="utf-8") as f:  # what mpirun starts its daemons by
        f.write(f'#!/bin/sh\nhost={NAMES[1]}; shift\nexec ip netns exec $host unshare -um sh -c "mount --bind {folder}/hosts /etc/hosts; hostname $host; $*"\n')
    os.chmod(folder + "/agent", 0o755)
    with open(folder + "/hosts", "w", encoding="utf-8") as f:
        f.write("127.0.0.1 localhost\n" + "".join(f"10.21.0.{i + 1} {name}\n" for i, name in enumerate(NAMES)))
    return ends


def set_to(wire, rate, delay):
    wire.delay = delay * 1e-3
    for name in NAMES:
        subprocess.run(["tc", "-n", name, "qdisc", "del", "dev", "wire", "root"], check=False, capture_output=True)
        if rate:
            sh("tc", "-n", name, "qdisc", "add", "dev", "wire", "root", "tbf", "rate", f"{rate}mbit", "burst", "3kb", "latency", "2s")


def between(folder, *command):
    mpi = (f"mount --bind {folder}/hosts /etc/hosts; hostname {NAMES[0]}; exec mpirun --allow-run-as-root --mca plm_rsh_agent {folder}/agent --host {','.join(NAMES)} -n 2 "
           f"--bind-to none --mca mpi_yield_when_idle 1 --mca btl tcp,self --mca btl_tcp_if_include wire --mca oob_tcp_if_include wire {' '.join(command)}")
    return sh("timeout", "100", "ip", "netns", "exec", NAMES[0], "unshare", "-um", "sh", "-c", mpi, cwd=folder)


# ---- measured, and by the model --------------------------------------------------------------------------------
def step_ms(folder, model, epochs, *options):
    text = between(folder, "./" + model, *options, "--data", "parts", "--log", "json", "--checkpoint", "none", "--eval-every", "1000", "--epochs", str(epochs))
    times = [json.loads(line)["train_ms"] for line in text.splitlines() if '"train_ms"' in line]
    return statistics.median(times[3:])


def exchanges(folder, model):
    told = json.loads(sh("./" + model, "info", "--data", "parts", "--processes", "2", "--json", cwd=folder))["traffic"]
    return [(x["bytes"] / 2, x["messages"] / 2) for x in told["exchanges"] if x["phase"] == "train"]


def sending(all_of, costs):
    latency, gap, byte = costs
    return sum(latency * (3 if b > EAGER else 1) + n * gap + b * byte for b, n in all_of)


# ---- computing while rows come ----------------------------------------------------------------------------------
SAGE = """
import "layers/sage.gnn"
graph G { node paper { x: f32[F];  y: class[C];  split }  edge cites: paper -> paper }
model M(g: G) -> f32[paper, C] {
  a = sage_conv(64)
  b = sage_conv(64)
  c = sage_conv(C)
  return c(g.cites, relu(b(g.cites, relu(a(g.cites, g.paper.x)))))
}
train M { target paper.y  loss cross_entropy  optimizer adam(lr = 1e-2)  epochs 1 }
"""


def near_and_far(path, nodes=40000, degree=30, far=600):
    """Edges to near nodes, and a few to any: two halves read some hundred rows of each other."""
    r = random.Random(1)
    os.mkdir(path)
    dst = [v for v in range(nodes) for _ in range(degree)]
    src = [min(nodes - 1, max(0, v + r.randrange(-9, 10))) for v in dst]
    for i in r.sample(range(len(src)), 2 * far):  # half of them stay in their part
        src[i] = r.randrange(nodes)
    columns = {"x": directory.column(path, "x", "float", [r.gauss(0, 1) for _ in range(64 * nodes)], width=64),
               "y": directory.column(path, "y", "class", [v % 4 for v in range(nodes)], categories=4),
               "split": directory.column(path, "split", "split", [1 + v % 3 for v in range(nodes)])}
    directory.write(path, {"paper": {"count": nodes, "columns": columns}},
                    {"cites": directory.relation(path, "cites", "paper", "paper", list(zip(src, dst)))})


def prepare_overlap(folder, gnnc):
    near_and_far(folder + "/near")
    sh(gnnc, "partition", folder + "/near", "2", "-o", folder + "/parts", "--method", "rows")
    with open(folder + "/model.gnn", "w", encoding="utf-8") as f:
        f.write(SAGE)
    for name, options in (("beside", []), ("waits", ["--disable-pass=overlap-exchanges"])):
        sh(gnnc, folder + "/model.gnn", "--target=cpu", "--mpi", "-o", f"{folder}/{name}", *options)


def report_overlap(folder, wire, epochs):
    print(f"{sum(b for b, _ in exchanges(folder, 'beside')):.0f} bytes a process and step\n")
    print("| Mbit/s | ms | a step that waits, ms | that computes meanwhile, ms | saved |\n|---|---|---|---|---|")
    for setting in ((0, 0), (200, 0), (100, 0), (50, 0), (20, 0), (100, 5), (50, 10)):
        set_to(wire, *setting)
        waits, beside = step_ms(folder, "waits", epochs, "--threads", "1"), step_ms(folder, "beside", epochs, "--threads", "1")
        print(f"| {setting[0] or 'any'} | {setting[1]} | {waits:.2f} | {beside:.2f} | {100 * (1 - beside / waits):.1f} % |", flush=True)


# ---- more machines ----------------------------------------------------------------------------------------------
GRAPHS = {"products": (2.45e6, 123.7e6), "papers100M": (111.1e6, 3231e6)}  # nodes; edges, both ways


# Assumed of a cluster, beside the graphs' sizes: what stands here, and that machines are alike and nothing else is sent.
CLUSTER = {"width": 256, "layers": 3,        # SAGE, full batch
           "step": 0.482 / (3e6 * 128 * 2),  # s of one thread for an edge, a number of a row and a layer: as measured (docs/distributed.md)
           "threads": 16 * 0.8,              # what two threads of the machine above keep of twice the speed
           "latency": 20e-6, "gap": 1e-6, "byte": 8 / 10e9,  # 10 Gbit/s
           "cut": lambda n: 1 - (1 - 0.093) ** (math.log2(n) / 3),  # METIS, 8 parts of a graph of 10^7 edges: 9.3 %; as much again for 8 times the parts
           "rows": 0.88}                     # other rows for each cut edge: of 10^8 edges in 4 parts


def cluster():
    c = CLUSTER
    weights = c["layers"] * 2 * c["width"] ** 2 * 4
    print("\n| graph | machines | cut of edges | compute, s | halo, s | sums, s | step, s | of it sending |\n|---|---|---|---|---|---|---|---|")
    for name, (nodes, edges) in GRAPHS.items():
        for n in (16, 64, 256):
            halo = c["cut"](n) * edges / n * c["rows"]
            compute = c["step"] * edges * c["width"] * c["layers"] / n / c["threads"]
            sent = 2 * c["layers"] * (c["latency"] * 3 + (n - 1) * c["gap"] + halo * c["width"] * 4 * c["byte"])
            sums = c["layers"] * 2 * 2 * (c["latency"] + (n - 1) * c["gap"]) + 2 * (n - 1) / n * weights * c["byte"]
            step = compute + sent + sums
            print(f"| {name} | {n} | {100 * c['cut'](n):.0f} % | {compute:.3f} | {sent:.3f} | {sums:.3f} | {step:.3f} | {100 * (sent + sums) / step:.0f} % |")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("gnnc")
    p.add_argument("--epochs", type=int, default=15)
    p.add_argument("--overlap", action="store_true")
    a = p.parse_args()
    gnnc = os.path.abspath(a.gnnc)
    with tempfile.TemporaryDirectory() as folder:
        (prepare_overlap if a.overlap else prepare)(folder, gnnc)
        ends = network(folder)
        wire = Wire(ends)
        wire.start()
        try:
            (report_overlap if a.overlap else report)(folder, wire, a.epochs)
        finally:
            wire.stop = True
            wire.join()
            for f in ends:
                os.close(f)
            for name in NAMES:
                subprocess.run(["ip", "netns", "del", name], check=False)


def prepare(folder, gnnc):
    sh("mpicc", "-O2", "-o", folder + "/network", TOP + "/bench/network.c")
    sh(gnnc, "partition", TOP + "/models/data/cora", "2", "-o", folder + "/parts", "--method", "stream")
    for model in ("gcn", "sage"):
        sh(gnnc, f"{TOP}/models/{model}.gnn", "--target=cpu", "--mpi", "-o", f"{folder}/{model}")


def report(folder, wire, epochs):
    costs, compute = {}, {}
    for setting in [(0, 0)] + SETTINGS:
        set_to(wire, *setting)
        costs[setting] = [float(x) for x in between(folder, "./network").split()[-3:]]
    print("| model | Mbit/s | ms | L, us | g, us | G, ns | bytes a process | step, ms | model, ms | off by |\n|---|---|---|---|---|---|---|---|---|---|")
    for model in ("gcn", "sage"):
        sent = exchanges(folder, model)
        for setting in [(0, 0)] + SETTINGS:
            set_to(wire, *setting)
            ms, by = step_ms(folder, model, epochs), 1e3 * sending(sent, costs[setting])
            if setting == (0, 0):
                compute[model] = max(0, ms - by)
            by += compute[model]
            latency, gap, byte = costs[setting]
            print(f"| {model} | {setting[0] or 'any'} | {setting[1]} | {1e6 * latency:.0f} | {1e6 * gap:.1f} | {1e9 * byte:.1f} | {sum(b for b, _ in sent):.0f} | "
                  f"{ms:.2f} | {by:.2f} | {100 * (by / ms - 1):+.1f} % |", flush=True)
    cluster()


if __name__ == "__main__":
    sys.exit(main())
