"""Checkpoints and weights: safetensors files, read without that library."""
import json
import struct


def tensors(path):
    """Every f32 tensor of a checkpoint, as a list of numbers."""
    with open(path, "rb") as f:
        n, = struct.unpack("<Q", f.read(8))
        head, body = json.loads(f.read(n)), f.read()
    out = {}
    for name, t in head.items():
        if name != "__metadata__" and t["dtype"] == "F32":
            a, b = t["data_offsets"]
            out[name] = struct.unpack(f"<{(b - a) // 4}f", body[a:b])
    return out
