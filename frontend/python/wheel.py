#!/usr/bin/env python3
"""The Python package gnnc as a wheel: its code, and what `make install` puts into a folder.

    wheel.py CODE INSTALLED VERSION FOLDER      prints the wheel's path (make wheel)
"""
import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import zipfile

# Links, the program, and what programs in C are linked with.
LEFT_OUT = ("lib/libgnncc.a", "lib/libgnncc.so", "lib/libgnnrt.so", "lib/libgnnrt.a", "lib/gnnc/gnnc", "lib/pkgconfig/gnncc.pc",
            "lib/pkgconfig/gnnrt.pc")
FOLDERS = ("include", "lib", "share/gnnc")


def files(code, installed):
    for name in sorted(os.listdir(code)):
        if name.endswith((".py", ".typed")):
            yield "gnnc/" + name, os.path.join(code, name)
    for folder in FOLDERS:
        for at, folders, names in os.walk(os.path.join(installed, folder)):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(at, name)
                inside = os.path.relpath(path, installed)
                if inside not in LEFT_OUT:
                    yield "gnnc/" + re.sub(r"\.so\.\d+$", ".so", inside), path


def info(version, tag):
    return {"METADATA": "Metadata-Version: 2.1\nName: gnnc\nVersion: %s\nSummary: a compiler for graph neural networks\n"
                        "Requires-Python: >=3.9\nRequires-Dist: numpy\n" % version,
            "WHEEL": "Wheel-Version: 1.0\nGenerator: gnnc %s\nRoot-Is-Purelib: false\nTag: %s\n" % (version, tag)}


def main():
    code, installed, version, folder = sys.argv[1:5]
    tag = "py3-none-linux_" + platform.machine()
    dist = "gnnc-%s.dist-info/" % version
    path = os.path.join(folder, "gnnc-%s-%s.whl" % (version, tag))
    record = []
    with zipfile.ZipFile(path + ".part", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
        def add(name, data, mode=0o644):
            entry = zipfile.ZipInfo(name)  # the same bytes at any time
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            z.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append("%s,sha256=%s,%d\n" % (name, digest, len(data)))
        for name, source in files(code, installed):
            if name.endswith((".a", ".so")):
                subprocess.run(["strip", "-g", source], check=True)
            with open(source, "rb") as f:
                add(name, f.read(), 0o755 if name.endswith(".so") else 0o644)
        for name, text in info(version, tag).items():
            add(dist + name, text.encode())
        add(dist + "RECORD", ("".join(record) + dist + "RECORD,,\n").encode())
    os.rename(path + ".part", path)
    print(path)


if __name__ == "__main__":
    main()
