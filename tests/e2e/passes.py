#!/usr/bin/env python3
"""Every pass of every level is documented, tested on text, and says what it did and what it refused.

    passes.py GNNC TOP

The passes are those that `gnnc help` lists.  Each has a row in docs/passes.md, a test that runs it on text, and, in what
such tests expect, two remarks that differ in more than numbers and names: one of what it did, one of what it refused.  A pass
without which there is no program refuses by a diagnostic.  What normal compilations report holds remarks of all levels.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

# Of what they cannot do there is no program.
BY_DIAGNOSTIC = {"shape-propagation": "E0406", "serve": "E0516", "dump-values": "E0520"}
# A plan has nothing to refuse them, and of a loop they have all that it asks for.
MODELS = [("gat", []), ("gcn", []), ("molecule", []), ("sage_sampled", ["--precision=bf16"]), ("gat", ["--spmm=cusparse"])]
# Some models need them, and those are not among these.
RARE = {"serve", "explain", "dumps-last", "distinct", "one-hot", "narrow", "unroll", "dump-values", "shape-propagation", "trim", "recompute-masks", "dce",
        "graph-break-elimination", "sync-removal", "fission", "fold-unit-dims", "promote-scalars", "forward-stores", "lifetimes",
        "sparse-products", "reorder-loops", "dce-loops", "cse-loops"}


def passes(gnnc):
    text = subprocess.run([gnnc, "--help"], capture_output=True, text=True, check=True).stdout
    listed = re.search(r"^passes:\n(.*?)\n\n", text, re.M | re.S).group(1)
    return re.findall(r"^  ([a-z-]+)", listed, re.M)


def plain(remark):
    """Without numbers and what is in quotes, which differ by example."""
    return re.sub(r"'[^']*'|\{\{.*?\}\}|[0-9.]+|\b\w+_\w+\b", "", remark)


def main(gnnc, top):
    faults = []
    docs = (top / "docs/passes.md").read_text()
    tests = {p: p.read_text() for kind in ("passes", "loops", "golden") for p in (top / "tests" / kind).iterdir() if p.is_file()}
    expected = "\n".join(tests.values())
    for name in passes(gnnc):
        if not re.search(rf"^\| {name} \|", docs, re.M):
            faults.append(f"{name}: docs/passes.md has no row of it")
        runs = re.compile(rf"RUN:.*(--passes=|--stop-after=)([a-z-]+,)*{name}[ ,]")
        if not any(runs.search(t) for t in tests.values()):
            faults.append(f"{name}: no test runs it on text")
        said = {plain(r) for r in re.findall(rf"^ *(?://|#) [A-Z-]+:.*?\b{name}: (.*)$", expected, re.M)}
        if name in BY_DIAGNOSTIC:
            if not said or BY_DIAGNOSTIC[name] not in expected:
                faults.append(f"{name}: no test has a remark of it and {BY_DIAGNOSTIC[name]}")
        elif len(said) < 2:
            faults.append(f"{name}: tests expect {len(said)} remarks of it, not one of what it did and one of what it refused")
    heard = set()
    for model, options in MODELS:
        r = subprocess.run([gnnc, top / f"models/{model}.gnn", "--target=cpu,cuda", "--emit=none", "--report=fusion", "--report-format=json",
                            *options], capture_output=True, text=True, check=True)
        heard |= {m.group(1) for x in json.loads(r.stdout)["remarks"] if (m := re.match(r"(?:\S+: )?([a-z-]+): ", x))}
    silent = [n for n in passes(gnnc) if n not in heard | RARE]
    if silent:
        faults.append("no report of a compiled model has a remark of " + ", ".join(silent))
    for f in faults:
        print(f)
    return len(faults) > 0


sys.exit(main(sys.argv[1], Path(sys.argv[2])))
