#!/usr/bin/env python3
"""Steps that read copies of what edges have, made at load in the order of their segments (pass permute-entries), compute the bits of
those that read it through a permutation.  usage: permute.py GNNC TOP"""
import re
import sys

from checks import check, end, header_of, run
from sessions import SHIPPED, tables

GNNC, TOP = sys.argv[1:3]
# A matrix with its transpose in f32; row keys of dropout, in 16 bits; entries that are in segments by relation and source.
MODELS = {"gcn": [], "gat": ["--precision=bf16", "--precision.small-mib=0"], "rgcn": []}


def copies(name, *options):
    """What the plan copies at load in another order."""
    plan = run(GNNC, f"{TOP}/models/{name}.gnn", "--emit=plan", *options)
    return re.findall(r"^  %\d+ saved (\w+): .* of \".* by \w+\(.*\" in @load", plan, re.M)


def parameters(name, data, to, *options):
    run(GNNC, f"{TOP}/models/{name}.gnn", "-o", to, *options)
    run("./" + to, "--data", data, "--epochs", "4", "--threads", "2", "--checkpoint", to + ".ckpt", "--log=none")
    return header_of(to + ".ckpt")[1]


def main():
    for name, options in MODELS.items():
        data = f"{TOP}/models/data/cora"
        if name in SHIPPED:
            data = name + ".data"
            tables(data, *SHIPPED[name][:2])
        without = [*options, "--disable-pass=permute-entries"]
        check(f"{name} copies", copies(name, *options) and not copies(name, *without))
        check(f"{name}: the same bits", parameters(name, data, name, *options) == parameters(name, data, name + "_without", *without))
    return end()


sys.exit(main())
