#!/usr/bin/env python3
"""Compares compiled models with what PyTorch Geometric computed for the same inputs.

usage: tests/oracle/run.py [--gnnc build/gnnc] [--only TEXT] [--verbose] [--flags '-O0']

layers/, layers_odd_graph/, hetero/: outputs and gradients within 1e-4 relative (norm-wise);
training/: 30 losses on Cora within 1e-3, the parameters afterwards within 1e-3 (norm-wise).  The models are compiled to
shared libraries with gradient outputs and driven through the public C interface (runtime/include/gnnc.h).
The .safetensors files come from torch-geometric 2.8.0.post1 with torch 2.11.0 (MIT, BSD-3-Clause), f32 on
a CPU; their headers say which module and seed.  Only the standard library is needed.
"""
import argparse
import array
import ctypes
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
TOLERANCE, CURVE_TOLERANCE = 1e-4, 1e-3
RELATIONS = {False: 4, True: 7}  # categories of the relation: RGCNConv's, the triples'
CODES = {"F32": "f", "I64": "q"}


def read_safetensors(path):
    """{name: (shape, flat array)}"""
    with open(path, "rb") as f:
        raw = f.read()
    n = struct.unpack("<Q", raw[:8])[0]
    out = {}
    for name, t in json.loads(raw[8:8 + n]).items():
        if name == "__metadata__":
            continue
        a, b = t["data_offsets"]
        v = array.array(CODES[t["dtype"]])
        v.frombytes(raw[8 + n + a:8 + n + b])
        out[name] = (t["shape"], v)
    return out


def norm(v):
    return math.sqrt(sum(x * x for x in v))


def relative(got, want):
    """|got - want| / |want|, norms over all elements; NaN counts as infinite."""
    diff = math.sqrt(sum((g - w) ** 2 for g, w in zip(got, want)))
    r = diff / norm(want) if norm(want) > 0 else diff
    return r if r == r and len(got) == len(want) else math.inf


def write_npy(path, descr, shape, values):
    """One little-endian .npy file, C order."""
    code = {"<f4": "f", "<i4": "i", "<i8": "q", "|i1": "b"}[descr]
    dims = "(" + "".join(f"{d}, " for d in shape) + ")"
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {dims}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + array.array(code, values).tobytes())


class Trainer:
    """The C interface of one compiled model."""

    def __init__(self, library):
        self.lib = ctypes.CDLL(library)
        self.lib.gnnc_trainer_error.restype = ctypes.c_char_p
        self.t = ctypes.c_void_p()
        model = ctypes.byref(ctypes.c_char.in_dll(self.lib, "model_program"))
        self.call("gnnc_trainer_create", ctypes.byref(self.t), model, bare=True)

    def call(self, name, *args, bare=False):
        status = getattr(self.lib, name)(*(() if bare else (self.t,)), *args)
        if status != 0:
            text = self.lib.gnnc_trainer_error(self.t).decode() if self.t else "no trainer"
            raise RuntimeError(f"{name}: {text}")

    def load(self, folder):
        self.call("gnnc_trainer_load", folder.encode())

    def set_parameter(self, name, values):
        data = (ctypes.c_float * len(values))(*values)
        self.call("gnnc_trainer_set_parameter", name.encode(), data, ctypes.c_size_t(len(values)))

    def get_parameter(self, name, n):
        data = (ctypes.c_float * n)()
        self.call("gnnc_trainer_get_parameter", name.encode(), data, ctypes.c_size_t(n))
        return list(data)

    def output(self, name):
        data, rank, dim = ctypes.POINTER(ctypes.c_float)(), ctypes.c_int(), (ctypes.c_int64 * 8)()
        self.call("gnnc_trainer_output", name.encode(), ctypes.byref(data), ctypes.byref(rank), dim)
        return data[:math.prod(dim[:rank.value])]

    def metric(self, name):
        value = ctypes.c_double()
        self.call("gnnc_trainer_metric", name.encode(), ctypes.byref(value))
        return value.value

    def close(self):
        self.lib.gnnc_trainer_destroy(self.t)


def write_columns(folder, rows, n, cot, order=None):
    """{name: column} of a table of n rows: `split`, and `cot` where its gradient is given."""
    write_npy(f"{folder}/{rows}.split.npy", "|i1", [n], [1] * n)
    columns = {"split": {"kind": "split", "file": f"{rows}.split.npy"}}
    if cot:
        write_npy(f"{folder}/{rows}.cot.npy", "<f4", cot[0], permuted(cot[1], cot[0], order) if order else cot[1])
        columns["cot"] = {"kind": "float", "shape": list(cot[0]), "file": f"{rows}.cot.npy"}
    return columns


def node_counts(oracle):
    """{node type: nodes}"""
    typed = {k[4:]: v[0][0] for k, v in oracle.items() if k.startswith("cot.")}
    nodes = oracle.get("in.x") or oracle.get("param.node_emb.weight")
    return typed or {"n": nodes[0][0]}


def edge_lists(oracle):
    """{source__name__destination: (sources, destinations)}"""
    if "in.head" in oracle:
        return {"n__e__n": (oracle["in.head"][1], oracle["in.tail"][1])}
    found = {k[len("in.edge_index."):] if "." in k[3:] else "n__e__n": v for k, v in oracle.items()
             if k.startswith("in.edge_index")}
    return {k: (v[:shape[1]], v[shape[1]:]) for k, (shape, v) in found.items()} or {"n__e__n": ([], [])}


def write_data(folder, oracle):
    """A data directory (docs/data.md) of the oracle's graph, edges sorted by destination as the runtime
    keeps them, so that what is given or wanted per edge lines up.  Returns {relation: order of its edges}."""
    os.makedirs(folder, exist_ok=True)
    schema = {"format": 1, "nodes": {}, "edges": {}}
    order = {}
    graphs, triples, cot = oracle.get("in.batch") or oracle.get("in.index"), "in.head" in oracle, oracle.get("cot")
    pooled = "in.index" in oracle
    for node, n in node_counts(oracle).items():
        of = oracle.get("cot." + node) or (None if pooled or triples else cot)
        schema["nodes"][node] = {"count": n, "columns": write_columns(folder, node, n, of)}
    if graphs:
        batch = list(graphs[1])
        ptr = [sum(b < g for b in batch) for g in range(batch[-1] + 2)]
        write_npy(f"{folder}/n.graph_ptr.npy", "<i8", [len(ptr)], ptr)
        schema["nodes"]["n"].update(graph="graph", graph_ptr="n.graph_ptr.npy")
        columns = write_columns(folder, "graph", len(ptr) - 1, cot if pooled else None)
        schema["graphs"] = {"graph": {"count": len(ptr) - 1, "columns": columns}}
    for key, (src_ids, dst_ids) in edge_lists(oracle).items():
        src, name, dst = key.split("__")
        n = len(src_ids)
        order[name] = sorted(range(n), key=lambda i: dst_ids[i])
        write_npy(f"{folder}/{name}.npy", "<i4", [2, n], permuted(src_ids, [n], order[name]) +
                  permuted(dst_ids, [n], order[name]))
        columns = write_columns(folder, name, n, cot, order[name]) if triples else {}
        rel = oracle.get("in.edge_type") or oracle.get("in.rel")
        if rel:
            write_npy(f"{folder}/{name}.rel.npy", "<i4", [n], permuted(rel[1], [n], order[name]))
            columns["rel"] = {"kind": "cat", "categories": RELATIONS[triples], "file": f"{name}.rel.npy"}
        schema["edges"][name] = {"src": src, "dst": dst, "count": n, "file": f"{name}.npy", "columns": columns}
    with open(f"{folder}/schema.json", "w", encoding="utf-8") as f:
        json.dump(schema, f)
    return order


def permuted(values, shape, order):
    """Rows of an [E, ..] array in the order of the data directory."""
    width = math.prod(shape[1:])
    return [x for i in order for x in values[i * width:(i + 1) * width]]


def check_layer(library, oracle, folder):
    """Worst relative error over outputs and gradients, and which it is."""
    order = write_data(folder, oracle)
    t = Trainer(library)
    t.load(folder)
    per_edge = {"in.edge_weight", "in.edge_attr"} | ({"out", "cot"} if "in.head" in oracle else set())

    def rows(name, tensor):
        return permuted(tensor[1], tensor[0], order["e"]) if name in per_edge else tensor[1]

    wanted = {}
    for key, tensor in oracle.items():
        if key.startswith("param.") or (key.startswith("in.") and tensor[1].typecode == "f"):
            name = key[len("param."):] if key.startswith("param.") else key
            path = name if key.startswith("in.") or name.startswith("convs.") else "conv." + name
            # PyG keeps HGTConv's `skip` where it has no influence; compiled programs hold what they use.
            if ".skip." in path and norm(oracle["grad." + key][1]) == 0:
                continue
            t.set_parameter(path, rows(name, tensor))
            if "grad." + key in oracle:
                wanted["grad." + path] = rows(name, oracle["grad." + key])
    t.call("gnnc_trainer_run_phase", b"train")
    # A bias in front of batch normalisation has the gradient 0; what is computed is rounding, on both sides,
    # so it is held against the largest gradient instead of itself.
    largest = max((norm(w) for w in wanted.values()), default=0.0)
    errors = {}
    for name, want in wanted.items():
        got = t.output(name)
        zero = norm(want) < 1e-6 * largest
        errors[name] = norm(got) / largest if zero else relative(got, want)
    loss = sum(o * c for key, (_, v) in oracle.items() if key.startswith("out")
               for o, c in zip(v, oracle["cot" + key[3:]][1]))
    errors["loss"] = relative(t.output("loss"), [loss])
    if "BatchNorm" not in open(library + ".src", encoding="utf-8").read() and "batch norm" not in open(
            library + ".src", encoding="utf-8").read():
        t.call("gnnc_trainer_run_phase", b"predict" if "out" in oracle else b"embed")
        for key, (_, v) in oracle.items():
            if key.startswith("out"):
                got = t.output("pred" if key == "out" else f"embed.{key[4:]}_out")
                errors[key] = relative(got, rows(key, oracle[key]))
    t.close()
    worst = max(errors, key=errors.get)
    return errors[worst], worst, TOLERANCE


def check_training(library, oracle, _):
    t = Trainer(library)
    t.call("gnnc_trainer_set_int", b"epochs", ctypes.c_int64(30))
    t.load(os.path.join(TOP, "models", "data", "cora"))
    for key, (_, v) in oracle.items():
        if key.startswith("init."):
            t.set_parameter(key[5:], v)
    losses = []
    for _ in range(30):
        t.call("gnnc_trainer_epoch")
        losses.append(t.metric("loss"))
    errors = {"loss of epoch %d" % (i + 1): abs(got - want) / abs(want)
              for i, (got, want) in enumerate(zip(losses, oracle["losses"][1]))}
    for key, (_, v) in oracle.items():
        if key.startswith("final."):
            errors[key] = relative(t.get_parameter(key[6:], len(v)), v)
    t.close()
    worst = max(errors, key=errors.get)
    return errors[worst], worst, CURVE_TOLERANCE


def cases():
    for folder in ("layers", "layers_odd_graph", "hetero", "training"):
        for file in sorted(os.listdir(os.path.join(HERE, folder))):
            yield folder, file[:-len(".safetensors")]


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--gnnc", default=os.path.join(TOP, "build", "gnnc"))
    ap.add_argument("--only", default="")
    ap.add_argument("--flags", default="")
    ap.add_argument("--libraries", help="compiled before, as DIR/NAME.so, from NAME.gnn of here")
    ap.add_argument("--verbose", action="store_true")
    a = ap.parse_args()
    os.environ.setdefault("CFLAGS", "-O0")  # of drivers, which nothing waits for
    os.environ.setdefault("CC", "cc -Wl,-S")
    passed = failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        for folder, name in cases():
            if a.only not in f"{folder}/{name}":
                continue
            source = os.path.join(HERE, name + ".gnn")
            library = os.path.join(tmp, f"lib{name}.so")
            try:
                if a.libraries and not os.path.exists(library):
                    shutil.copy(os.path.join(a.libraries, name + ".so"), library)
                    shutil.copy(source, library + ".src")
                if not os.path.exists(library):
                    grads = [] if folder == "training" else ["--grads"]
                    subprocess.run([a.gnnc, source, "--target=cpu", "--no-rows", "--emit=lib", "--name=model", *grads,
                                    *a.flags.split(), "-o", os.path.join(tmp, name)],
                                   check=True, capture_output=True, text=True)
                    with open(source, encoding="utf-8") as f, open(library + ".src", "w", encoding="utf-8") as g:
                        g.write(f.read())
                oracle = read_safetensors(os.path.join(HERE, folder, name + ".safetensors"))
                check = check_training if folder == "training" else check_layer
                error, what, bar = check(library, oracle, os.path.join(tmp, folder + "." + name))
                ok, text = error <= bar, f"{error:.1e} ({what})"
            except subprocess.CalledProcessError as e:
                ok, text = False, "gnnc: " + e.stderr.strip()
            except (RuntimeError, OSError) as e:
                ok, text = False, str(e)
            passed, failed = passed + ok, failed + (not ok)
            if a.verbose or not ok:
                print(f"{'ok    ' if ok else 'FAILED'} {folder}/{name}: {text}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
