"""Checkpoints and weights: safetensors files, read without that library."""
import json
import struct


def changed(path, to, name, value):
    """A copy of a checkpoint with another value of a tensor of one f32."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    n, = struct.unpack("<Q", data[:8])
    a, b = json.loads(data[8:8 + n])[name]["data_offsets"]
    assert b - a == 4, name
    data[8 + n + a:8 + n + b] = struct.pack("<f", value)
    with open(to, "wb") as f:
        f.write(data)


def tensors(path):
    """Every f32 and bf16 tensor of a checkpoint, as a list of numbers."""
    with open(path, "rb") as f:
        n, = struct.unpack("<Q", f.read(8))
        head, body = json.loads(f.read(n)), f.read()
    out = {}
    for name, t in head.items():
        if name == "__metadata__":
            continue
        a, b = t["data_offsets"]
        if t["dtype"] == "BF16":  # the upper halves of f32
            halves = struct.unpack(f"<{(b - a) // 2}H", body[a:b])
            out[name] = struct.unpack(f"<{len(halves)}f", struct.pack(f"<{len(halves)}I", *(h << 16 for h in halves)))
        if t["dtype"] == "F32":
            out[name] = struct.unpack(f"<{(b - a) // 4}f", body[a:b])
    return out
