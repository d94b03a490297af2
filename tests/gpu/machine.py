"""The machine that a bundle runs on: its GPU, its toolkit if there is one, and where the libraries lie that programs open.

Nothing but the driver (libcuda.so.1) is needed to know the GPU.  cuBLAS and its like are NVIDIA's, of a toolkit or of packages
from PyPI (site-packages/nvidia/*/lib).
"""
import ctypes
import glob
import os
import shutil
import site
import sys
from collections import namedtuple

Gpu = namedtuple("Gpu", "name capability driver")  # 90; 13000
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_..
OPENED = ("libcublas.so.*", "libcusparse.so.*", "libcudart.so.*", "libnvJitLink.so.*", "libnccl.so.*")


def gpu():
    """The first GPU; None: there is none that can be used."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, version, numbers, name = ctypes.c_int(), ctypes.c_int(), [], ctypes.create_string_buffer(256)
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0) or cuda.cuDeviceGetName(name, len(name), device):
        return None
    for attribute in (CAPABILITY_MAJOR, CAPABILITY_MINOR):
        n = ctypes.c_int()
        if cuda.cuDeviceGetAttribute(ctypes.byref(n), attribute, device):
            return None
        numbers.append(n.value)
    cuda.cuDriverGetVersion(ctypes.byref(version))
    return Gpu(name.value.decode(), 10 * numbers[0] + numbers[1], version.value)


def toolkit():
    """The folder of a CUDA Toolkit; None."""
    nvcc = shutil.which("nvcc")
    homes = [os.environ.get("CUDA_HOME"), os.path.dirname(os.path.dirname(os.path.realpath(nvcc))) if nvcc else None, "/usr/local/cuda"]
    return next((h for h in homes if h and os.access(h + "/bin/nvcc", os.X_OK)), None)


def library_folders(home=None):
    """Those that have libraries which programs open, a toolkit's first."""
    packages = [*sys.path, *site.getsitepackages(), site.getusersitepackages()]
    at = [f"{home}/lib64"] if home else []
    at += ["/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", *(f for p in dict.fromkeys(packages) for f in sorted(glob.glob(p + "/nvidia/*/lib")))]
    return list(dict.fromkeys(f for f in at if any(glob.glob(f"{f}/{name}") for name in OPENED)))


def library(folders, name):
    """Its path, a name such as libcudart.so with the shortest ending; None."""
    found = [p for f in folders for p in sorted(glob.glob(f"{f}/{name}*"), key=len)]
    return found[0] if found else None
