#!/usr/bin/env python3
"""Every diagnostic is tested.  usage: diagnostics.py GNNC TOP

A code of ir/diag.def is tested where a file tests/errors/eNNNN_*.gnn reports it, where a C test, a golden
test or a .gir file of tests/ names it, or where docs/errors.md shows it in a block that docs.py runs.
Prints what is not, then `N passed, N failed`."""
import glob
import os
import re
import subprocess
import sys


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def reported(gnnc, path):
    r = subprocess.run([gnnc, "check", path], capture_output=True, text=True, errors="replace")
    return set(re.findall(r"error: .*\[(\w\d{4})\]$", r.stderr, re.M))


def main(gnnc, top):
    codes = re.findall(r"^DIAG\((\w+),", read(os.path.join(top, "ir/diag.def")), re.M)
    tested, wrong = set(), []
    for path in sorted(glob.glob(os.path.join(top, "tests/errors/*.gnn"))):
        name = os.path.basename(path)[:5].upper()
        says = reported(gnnc, path)
        tested |= says
        if name not in says:
            wrong.append(f"{os.path.relpath(path, top)} does not report {name} but {sorted(says)}")
    for kind in ("unit/*.c", "golden/*", "passes/*.gir", "regress/*", "e2e/run"):
        for path in glob.glob(os.path.join(top, "tests", kind)):
            tested |= set(re.findall(r"\b[EW]\d{4}\b", read(path).replace("DIAG_", "")))
    index = re.split(r"^## (\w\d{4}): ", read(os.path.join(top, "docs/errors.md")), flags=re.M)
    for code, section in zip(index[1::2], index[2::2]):
        if re.search(r"^```(gnn-error|gir-error|console)", section, re.M):
            tested.add(code)
    missing = [f"no test expects {c}" for c in codes if c not in tested]
    for line in wrong + missing:
        print(line)
    bad = len(wrong) + len(missing)
    print(f"{len(codes) - len(missing)} passed, {bad} failed")
    return bad != 0


sys.exit(main(sys.argv[1], sys.argv[2]))
