#!/usr/bin/env python3
"""Features in 16 bits on disk: the same training as from f32 data, in half the bytes, and the same numbers to a program
in f32.  usage: stored.py GNNC"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import zipfile

GNNC = sys.argv[1]
N, F, C = 3000, 64, 4
MODEL = """
import "layers/gcn.gnn"
graph G { node paper { x: f32[F];  y: class[C];  split }  edge cites: paper -> paper }
model M(g: G) -> f32[paper, C] {
  a = gcn_conv(16)
  b = gcn_conv(C)
  return b(g.cites, relu(a(g.cites, dropout(g.paper.x, 0.5))))
}
train M { target paper.y  loss cross_entropy  metric accuracy  optimizer adam(lr = 1e-2)  epochs 5%s }
"""


def run(*command, code=0):
    r = subprocess.run(command, capture_output=True, text=True)
    assert r.returncode == code, (command, r.stdout, r.stderr)
    return r.stdout + r.stderr


def npy(code, shape, data):
    head = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * ((-len(head) - 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def archive(path, x):
    r = random.Random(1)
    ends = [r.randrange(N) for _ in range(8 * N)]
    arrays = {"x": npy("<f4", (N, F), struct.pack(f"<{N * F}f", *x)),
              "y": npy("<i8", (N,), struct.pack(f"<{N}q", *(r.randrange(C) for _ in range(N)))),
              "edge_index": npy("<i8", (2, 4 * N), struct.pack(f"<{8 * N}q", *ends))}
    for k, name in enumerate(("train", "val", "test")):
        arrays[name + "_idx"] = npy("<i8", (N // 3,), struct.pack(f"<{N // 3}q", *range(k, N, 3)))
    with zipfile.ZipFile(path, "w") as z:
        for name, data in arrays.items():
            z.writestr(name + ".npy", data)


def imported(name, *options):
    return run(GNNC, "import", "graph.npz", "-o", name, "--node", "paper", "--edge", "cites", *options)


def losses(exe, data):
    lines = run(exe, "--data", data, "--log=json", "--checkpoint", "none").splitlines()
    return [{k: v for k, v in json.loads(line).items() if k in ("train", "val", "test")} for line in lines if line[:1] == "{"]


def compiled(exe, *options, recipe=""):
    with open(exe + ".gnn", "w", encoding="utf-8") as f:
        f.write(MODEL % recipe)
    run(GNNC, exe + ".gnn", "--target=cpu", "-o", exe, *options)
    return "./" + exe


def memory(exe, data):
    return json.loads(run(exe, "info", "--data", data, "--json").splitlines()[-1])["memory"]


def half(dt):
    """A program in this type, and one in f32."""
    low, full = compiled(dt, f"--precision={dt}"), compiled("full")
    told = imported(dt + ".data", "--features", dt)
    assert f"float [{F}], {dt}" in told, told
    with open(dt + ".data/schema.json", encoding="utf-8") as f:
        x = json.load(f)["nodes"]["paper"]["columns"]["x"]
    assert x["dtype"] == dt and os.path.getsize(f"{dt}.data/{x['file']}") < 2 * N * F + 256
    first = losses(low, "f32.data")
    assert any(first) and losses(low, dt + ".data") == first, f"{dt}: other losses than from f32 data"
    assert losses(full, dt + ".data") != losses(full, "f32.data"), "nothing was rounded"
    sampled = compiled("sampled", f"--precision={dt}", recipe="  sample { fanout [4, 4]  batch 100 }")
    assert any(losses(sampled, dt + ".data")), "batches of columns in 16 bits"
    return low


def refused():
    for options, text in ((["--features", "f8"], "bf16, f16 or COLUMN=TYPE"), (["--features", "z=bf16"], "no such column"),
                          (["--features", "y=bf16"], "y is class")):
        code = 2 if "f8" in options else 1
        r = subprocess.run([GNNC, "import", "graph.npz", "-o", "no.data", *options], capture_output=True, text=True)
        assert r.returncode == code and text in r.stderr and not os.path.exists("no.data"), (options, r.stderr)
    with open("edges.txt", "w", encoding="utf-8") as f:
        f.write("0 1\n1 2\n")
    told = run(GNNC, "import", "edges.txt", "-o", "no.data", "--features", "bf16", code=1)
    assert "nothing would be rounded" in told and not os.path.exists("no.data"), told
    big = [0.5] * (N * F)
    big[5 * F + 1] = 65520.0  # rounds to 2^16, beyond the last f16
    archive("graph.npz", big)
    r = subprocess.run([GNNC, "import", "graph.npz", "-o", "no.data", "--features", "f16"], capture_output=True, text=True)
    assert r.returncode == 1 and "vertex.x: row 5: 65520 is too large for f16" in r.stderr, r.stderr
    imported("big.data", "--features", "x=bf16")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    r = random.Random(0)
    archive("graph.npz", [r.gauss(0, 1) for _ in range(N * F)])
    imported("f32.data")
    for dt in "bf16", "f16":
        exe, low = half(dt), 2 * N * F
        full, made, mapped = memory("./full", "f32.data"), memory(exe, "f32.data"), memory(exe, dt + ".data")
        assert full["data"] - made["data"] == 2 * low, "columns are mapped, and read in f32 by a program in f32 alone"
        assert mapped["data"] - made["data"] == low and made["index"] - mapped["index"] >= low, (made, mapped)
    refused()
