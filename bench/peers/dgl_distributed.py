#!/usr/bin/env python3
"""Epochs of sampled SAGE by one and two processes of one thread: gnnc and DistDGL, in turn.

    dgl_distributed.py GNNC DATA NPY [--work DIR] [--epochs 6] [--rounds 3] [--batch 1024] [--hidden 128]

DATA: the data directory; NPY: the same graph as arrays (edge_index, x, y, train_idx).  Run as root (unshare) with the Python that has DGL,
with Open MPI, nothing beside it.  Each side has the graph in two parts by METIS, fan-outs 10 and 5, and an update of two batches: each of two
processes makes one from the training rows of its part, and reads features of the other part from the other process.

  gnnc     mpirun -n 1 or 2 of the trainer, --pull-rows --seeds-by-part
  DistDGL  a server and a trainer (DistNodeDataLoader, DistributedDataParallel by gloo) a machine; machines are addresses of the loopback
           (127.0.0.1, 127.0.0.2) with a /dev/shm of their own.  With one machine a trainer makes one batch an update

An epoch is the median of those behind the first, start what a run took beside them, memory the most of all processes of the run together."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
FANOUT, MODEL = (10, 5), os.path.join(os.path.dirname(HERE), "models", "sage_batches_2.gnn")


# ---- DistDGL: what one of its processes does ------------------------------------------------------------------
def machine(config, parts, a):
    """A server or a trainer, by DGL_ROLE."""
    import dgl
    import torch
    import torch.nn.functional as F
    from dgl.nn.pytorch import SAGEConv
    rank, machines = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    # of the loopback's addresses the system names one only
    dgl.distributed.rpc_client.local_ip4_addr_list = lambda: {f"127.0.0.{rank + 1}"}
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dgl.distributed.initialize(config)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=machines)
    g = dgl.distributed.DistGraph("g", part_config=parts)
    mine = dgl.distributed.node_split(g.ndata["train"], g.get_partition_book(), force_even=True)
    loader = dgl.dataloading.DistNodeDataLoader(g, mine, dgl.dataloading.NeighborSampler(list(FANOUT[::-1])), batch_size=a.batch, shuffle=True)
    classes = a.classes

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            d = [g.ndata["x"].shape[1], a.hidden, classes]
            self.convs = torch.nn.ModuleList(SAGEConv(d[i], d[i + 1], "mean") for i in range(2))

        def forward(self, blocks, x):
            x = F.relu(self.convs[0](blocks[0], x))
            return self.convs[1](blocks[1], F.dropout(x, .5, self.training))

    net = torch.nn.parallel.DistributedDataParallel(Net())
    opt, seconds = torch.optim.Adam(net.parameters(), lr=3e-3), []
    for _ in range(a.epochs):
        torch.distributed.barrier()
        start, total, rows = time.perf_counter(), 0.0, 0
        for nodes, seeds, blocks in loader:
            loss = F.cross_entropy(net(blocks, g.ndata["x"][nodes].float()), g.ndata["y"][seeds].long().view(-1))
            opt.zero_grad()
            loss.backward()
            opt.step()
            total, rows = total + float(loss.detach()) * len(seeds), rows + len(seeds)
        torch.distributed.barrier()
        seconds.append(time.perf_counter() - start)
    if rank == 0:
        print(json.dumps({"epochs_s": seconds, "loss": total / rows}), flush=True)


# ---- the runs ------------------------------------------------------------------------------------------------------
def dgl_run(a, machines, folder):
    """A command that starts DistDGL on so many machines and ends with them."""
    config = os.path.join(folder, f"machines_{machines}")
    with open(config, "w", encoding="ascii") as f:
        f.writelines(f"127.0.0.{i + 1} {30500 + 10 * machines}\n" for i in range(machines))
    script, own = os.path.abspath(__file__), ["--batch", str(a.batch), "--hidden", str(a.hidden), "--epochs", str(a.epochs), "--classes", str(a.classes)]
    lines = []
    for i in range(machines):
        env = (f"DGL_DIST_MODE=distributed DGL_IP_CONFIG={config} DGL_NUM_SERVER=1 DGL_NUM_CLIENT={machines} DGL_NUM_SAMPLER=0 DGL_SERVER_ID={i} OMP_NUM_THREADS=1 "
               f"DGL_CONF_PATH={folder}/{machines}/g.json RANK={i} WORLD_SIZE={machines} MASTER_ADDR=127.0.0.1 MASTER_PORT={30600 + machines}")
        run = f"{sys.executable} {script} --machine {config} {folder}/{machines}/g.json {' '.join(own)}"
        lines.append(f"unshare -m sh -c 'mount -t tmpfs shm /dev/shm; {env} DGL_ROLE=server {run} >&2 & {env} DGL_ROLE=client {run}; wait' &")
    return ["sh", "-c", "\n".join(lines + ["wait"])]


def gnnc_run(a, processes, folder):
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(processes), "-x", "OMP_NUM_THREADS=1", f"{folder}/train", "--threads", "1",
            "--data", f"{folder}/parts", "--pull-rows", "--seeds-by-part", "--epochs", str(a.epochs), "--log", "json", "--checkpoint", "none",
            "--eval-every", "1000"]


def gnnc_parts(a, folder):
    with open(MODEL, encoding="utf-8") as f:
        text = f.read()
    source = text.replace("batch 1024 }", f"batch {a.batch} }}  accumulate 2")
    assert source != text
    with open(f"{folder}/train.gnn", "w", encoding="utf-8") as f:
        f.write(source)
    for command in ([a.gnnc, f"{folder}/train.gnn", "-o", f"{folder}/train", "--mpi", "--target=cpu", "-D", f"hidden={a.hidden}"],
                    [a.gnnc, "partition", a.data, "2", "-o", f"{folder}/parts", "--method", "metis"]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def one(a, name, command):
    """(epoch s, start s, MiB) of a run."""
    from systems import run_limited
    run = run_limited(command, 600)
    if run.status != "ok" and not run.output:
        sys.exit(f"{name}: {run.status}: {run.error}")
    told = [json.loads(line) for line in run.output.splitlines() if line.startswith("{")]
    seconds = told[-1].get("epochs_s") or [t["train_ms"] / 1e3 for t in told if "train_ms" in t]
    if len(seconds) != a.epochs:
        sys.exit(f"{name}: {len(seconds)} epochs of {a.epochs}: {run.output[-300:]}{run.error}")
    return statistics.median(seconds[1:]), run.wall_s - sum(seconds), run.peak_mib


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("gnnc"), ap.add_argument("data"), ap.add_argument("npy")
    ap.add_argument("--work")
    ap.add_argument("--rounds", type=int, default=3)
    options(ap)
    a = ap.parse_args()
    import numpy
    a.classes = int(numpy.load(os.path.join(a.npy, "y.npy")).max()) + 1
    with tempfile.TemporaryDirectory(dir=a.work) as folder:
        gnnc_parts(a, folder)
        for machines in (1, 2):
            os.mkdir(f"{folder}/{machines}")
            subprocess.run([sys.executable, os.path.join(HERE, "dgl_partition.py"), "--dgl", a.npy, str(machines), f"{folder}/{machines}"], check=True,
                           stdout=subprocess.DEVNULL)
        ways = {f"{name}, {n} process{'es' * (n > 1)}": make(a, n, folder) for name, make in (("gnnc", gnnc_run), ("DistDGL", dgl_run)) for n in (1, 2)}
        seen = {name: [] for name in ways}
        for _ in range(a.rounds):
            for name, command in ways.items():
                seen[name].append(one(a, name, command))
    print("| | an epoch, s | of one process | start, s | MiB |\n|---|---|---|---|---|")
    for name, rows in seen.items():
        epoch, start, mib = (statistics.median(c) for c in zip(*rows))
        first = statistics.median(r[0] for r in seen[name.replace("2 processes", "1 process")])
        print(f"| {name} | {epoch:.3f} | {first / epoch:.2f} | {start:.1f} | {mib:.0f} |")


def options(ap):
    ap.add_argument("--epochs", type=int, default=6), ap.add_argument("--batch", type=int, default=1024), ap.add_argument("--hidden", type=int, default=128)


if sys.argv[1:2] == ["--machine"]:
    parser = argparse.ArgumentParser()
    options(parser)
    parser.add_argument("--classes", type=int)
    machine(sys.argv[2], sys.argv[3], parser.parse_args(sys.argv[4:]))
else:
    main()
