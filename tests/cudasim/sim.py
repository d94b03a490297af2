"""Compiled models as libraries, for the cpu and for the simulator, and what the simulator counts."""
import ctypes
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


class Counts(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int64) for n in ("synchronisations", "allocations", "host_to_device", "device_to_host",
                                              "device_to_device", "launches", "library_calls", "graph_launches", "fills", "ends",
                                              "groups", "spmms")]


def library(build, name, source, device, options=()):
    path = os.path.abspath(f"{name}.{device}.so")
    if device == "cpu":
        subprocess.run([build + "/gnnc", source, "--target=cpu", "--emit=lib", "-o", path, *options], check=True)
    else:
        subprocess.run([HERE + "/build", source, path, *options], check=True, env={**os.environ, "BUILD": build})
    return ctypes.CDLL(path)


def written(build, name, text, device, options=()):
    """Of a model's text."""
    source = os.path.abspath(name + ".gnn")
    with open(source, "w", encoding="utf-8") as f:
        f.write(text)
    return library(build, name, source, device, options)
