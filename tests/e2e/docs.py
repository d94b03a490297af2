#!/usr/bin/env python3
"""Runs the examples of the documentation.  usage: docs.py GNNC TOP

In every docs/*.md and README.md: a ```gnn block is a whole file and must check; a ```gnn-error block must fail
with the text of each of its `expect-error:` comments reported on that line."""
import glob
import os
import re
import subprocess
import sys
import tempfile

gnnc, top = sys.argv[1:3]
bad = count = 0
for page in sorted(glob.glob(os.path.join(top, "docs", "*.md"))) + [os.path.join(top, "README.md")]:
    text = open(page, encoding="utf-8").read()
    for m in re.finditer(r"^```(gnn(?:-error)?)\n(.*?)^```", text, re.M | re.S):
        kind, body = m.groups()
        where = f"{os.path.basename(page)}:{text.count(chr(10), 0, m.start()) + 1}"
        count += 1
        with tempfile.TemporaryDirectory() as tmp:
            file = os.path.join(tmp, "example.gnn")
            open(file, "w", encoding="utf-8").write(body)
            r = subprocess.run([gnnc, "check", file], capture_output=True, text=True)
        said = r.stdout + r.stderr
        if kind == "gnn":
            ok = r.returncode == 0
        else:
            wants = [(i + 1, w.group(1).strip()) for i, line in enumerate(body.splitlines())
                     for w in [re.search(r"expect-error:(.*)", line)] if w]
            ok = r.returncode == 1 and wants and all(
                any(f":{line}:" in s and want in s for s in said.splitlines()) for line, want in wants)
        if not ok:
            bad += 1
            print(f"{where}: {kind} block, exit {r.returncode}\n{said}")
print(f"{count} examples, {bad} bad")
sys.exit(bad != 0 or count == 0)
