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
LINKS = """
import "layers/sage.gnn"
import "layers/links.gnn"
graph G { node v { x: f32[F] }  edge e: v -> v { w: f32[W];  split } }
model M(g: G; dim: int = 16) -> f32[links] {
  p = links(g.e)
  conv = sage_conv(dim)
  rel = linear(dim)
  h = conv(g.e where in_split(g.e, "train"), g.v.x)
  return contract(h[p.src] * rel(p.w), h[p.dst], dim)
}
train M { target links  loss %s  metric %s  optimizer adam(lr = 1e-2)  sample { %s }  epochs 3 }
"""
SAMPLE = "  sample { fanout [4, 4]  batch 100 }"
ALL = "g.cites where sum(abs(g.paper.x), F)[g.cites.src] >= 0"  # every edge: known when data are loaded


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


def compiled(exe, *options, recipe="", text=MODEL):
    with open(exe + ".gnn", "w", encoding="utf-8") as f:
        f.write(text % recipe)
    always = "--precision.small-mib=0"  # as small as these data are they would stay in f32
    run(GNNC, exe + ".gnn", "--target=cpu", always, "-o", exe, *options)
    return "./" + exe


def told(exe, data):
    return json.loads(run(exe, "info", "--data", data, "--json").splitlines()[-1])


def memory(exe, data):
    return told(exe, data)["memory"]


def half(dt):
    """A program in this type, and one in f32."""
    low, full = compiled(dt, f"--precision={dt}"), compiled("full")
    report = imported(dt + ".data", "--features", dt)
    assert f"float [{F}], {dt}" in report, report
    with open(dt + ".data/schema.json", encoding="utf-8") as f:
        x = json.load(f)["nodes"]["paper"]["columns"]["x"]
    assert x["dtype"] == dt and os.path.getsize(f"{dt}.data/{x['file']}") < 2 * N * F + 256
    first = losses(low, "f32.data")
    assert any(first) and losses(low, dt + ".data") == first, f"{dt}: other losses than from f32 data"
    assert losses(full, dt + ".data") != losses(full, "f32.data"), "nothing was rounded"
    batches(dt)
    return low


def batches(dt):
    """Rows of 16 bits: what rounding after the gather gives, which is done where something reads the column in f32, too."""
    sampled = compiled("sampled", f"--precision={dt}", recipe=SAMPLE)
    first = losses(sampled, "f32.data")
    assert any(first) and losses(sampled, dt + ".data") == first, f"{dt}: batches of stored rows"
    after = compiled("after", f"--precision={dt}", recipe=SAMPLE, text=MODEL.replace("g.cites,", f"({ALL}),"))
    assert losses(after, "f32.data") == first, f"{dt}: other losses than by rounding after the gather"
    made, mapped, both = memory(sampled, "f32.data"), memory(sampled, dt + ".data"), memory(after, "f32.data")
    assert mapped["data"] - made["data"] == 2 * N * F and made["saved"] < 2 * N * F, (made, mapped)
    assert both["data"] - made["data"] == 4 * N * F and both["saved"] > 2 * N * F, (made, both)
    kept = {data: told(sampled, data)["columns"][0] for data in ("f32.data", dt + ".data")}
    assert kept["f32.data"] == {"space": "paper", "name": "x", "disk": ["float", "f32"], "memory": ["float", dt], "mapped": False}
    assert kept[dt + ".data"] == {**kept["f32.data"], "disk": ["float", dt], "mapped": True}, kept
    text = run(sampled, "info", "--data", dt + ".data")
    assert f"float      {dt}  " in text and f"float      {dt}, mapped" in text, text
    counted = json.loads(run(sampled, "bench", "--data", dt + ".data", "--json").splitlines()[-1])
    assert counted["allocations_per_step"] == 0, counted


def links(sample, loss, metric):
    """Columns of the links that a step scores, and of nodes: near f32's scores, from the same rows."""
    scores = {}
    for dt in "f32", "bf16", "f16":
        text = LINKS % (loss, metric, sample)
        exe = compiled("links", f"--precision={dt}", text=text.replace("%", "%%") + "%s")
        scores[dt] = json.loads(run(exe, "--data", "links.data", "--log=json", "--checkpoint", "none").splitlines()[-1])["test"][metric]
    assert all(abs(scores[dt] - scores["f32"]) < 4e-3 for dt in scores), scores


def links_data(nodes=400, edges=3000):
    r = random.Random(2)
    os.mkdir("links.data")
    ends = [r.randrange(nodes) for _ in range(edges)]
    ends += [(e * 7 + r.randrange(5)) % nodes for e in ends]
    arrays = {"x": npy("<f4", (nodes, 20), struct.pack(f"<{nodes * 20}f", *(r.gauss(0, 1) for _ in range(nodes * 20)))),
              "w": npy("<f4", (edges, 9), struct.pack(f"<{edges * 9}f", *(r.gauss(0, 1) for _ in range(edges * 9)))),
              "e": npy("<i4", (2, edges), struct.pack(f"<{2 * edges}i", *ends)),
              "split": npy("|i1", (edges,), bytes(1 if k % 10 < 8 else k % 10 - 6 for k in range(edges)))}
    for name, data in arrays.items():
        with open(f"links.data/{name}.npy", "wb") as f:
            f.write(data)
    columns = {"w": {"kind": "float", "shape": [edges, 9], "file": "w.npy"}, "split": {"kind": "split", "file": "split.npy"}}
    with open("links.data/schema.json", "w", encoding="utf-8") as f:
        json.dump({"format": 1, "graphs": {}, "nodes": {"v": {"count": nodes, "columns": {
            "x": {"kind": "float", "shape": [nodes, 20], "file": "x.npy"}}}},
            "edges": {"e": {"src": "v", "dst": "v", "count": edges, "file": "e.npy", "columns": columns}}}, f)


def refused():
    for options, text in ((["--features", "f8"], "bf16, f16 or COLUMN=TYPE"), (["--features", "z=bf16"], "no such column"),
                          (["--features", "y=bf16"], "y is class")):
        code = 2 if "f8" in options else 1
        r = subprocess.run([GNNC, "import", "graph.npz", "-o", "no.data", *options], capture_output=True, text=True)
        assert r.returncode == code and text in r.stderr and not os.path.exists("no.data"), (options, r.stderr)
    with open("edges.txt", "w", encoding="utf-8") as f:
        f.write("0 1\n1 2\n")
    report = run(GNNC, "import", "edges.txt", "-o", "no.data", "--features", "bf16", code=1)
    assert "nothing would be rounded" in report and not os.path.exists("no.data"), report
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
    links_data()
    links("batch 256", "one_vs_all", "mrr")
    links("batch 256  negatives 1  fanout [5]", "bce_with_logits", "roc_auc")
    refused()
