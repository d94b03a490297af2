"""Cora as arrays, which the scripts of bench/peers read, by the standard library alone."""
import array
import os
import re
import struct

CODES = {"<f4": "f", "<i4": "i", "<i8": "q", "|i1": "b", "|u1": "B"}


def read_npy(path):
    with open(path, "rb") as f:
        raw = f.read()
    n = struct.unpack("<H", raw[8:10])[0]
    values = array.array(CODES[re.search(rb"'descr': '(.*?)'", raw[:10 + n])[1].decode()])
    values.frombytes(raw[10 + n:])
    return values


def write_npy(path, descr, shape, values):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({''.join(f'{d}, ' for d in shape)}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + values.tobytes())


def write_arrays(data, out, n, width):
    """Of a data directory of n papers with so many words."""
    os.makedirs(out, exist_ok=True)
    ptr, col, val = (read_npy(f"{data}/node.paper.x.{k}.npy") for k in ("ptr", "col", "val"))
    x = array.array("f", bytes(4 * n * width))
    for v in range(n):
        for i in range(ptr[v], ptr[v + 1]):
            x[v * width + col[i]] = val[i]
    write_npy(out + "/x.npy", "<f4", [n, width], x)
    write_npy(out + "/y.npy", "<i8", [n], array.array("q", read_npy(data + "/node.paper.y.npy")))
    ends = array.array("q", read_npy(data + "/edge.cites.npy"))
    write_npy(out + "/edge_index.npy", "<i8", [2, len(ends) // 2], ends)
    split = read_npy(data + "/node.paper.split.npy")
    for k, name in enumerate(("train", "val", "test"), 1):
        members = array.array("q", (v for v in range(n) if split[v] == k))
        write_npy(f"{out}/{name}_idx.npy", "<i8", [len(members)], members)
