#!/usr/bin/env python3
"""Gradients of two programs are the same: the sums of them that two checkpoints have beside each parameter.

    moments.py A.ckpt B.ckpt    to a thousandth of the largest number of each, and a millionth of that of all

Losses show what a gradient moves; of one that moves little, as of attention's vectors, they show nothing.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from checkpoint import tensors  # noqa: E402


def moments(path):
    """By name, the tensors "opt.m.PARAMETER"."""
    return {name: values for name, values in tensors(path).items() if name.startswith("opt.m.")}


def main(one, other):
    a, b = moments(one), moments(other)
    assert a and a.keys() == b.keys(), (list(a), list(b))
    most = max(max(map(abs, x)) for x in a.values())  # some gradients are 0 but for what was rounded
    for name, x in a.items():
        largest = max(map(abs, x))
        apart = max(abs(p - q) for p, q in zip(x, b[name]))
        assert len(x) == len(b[name]) and apart <= 1e-3 * largest + 1e-6 * most, f"{name}: {apart:.2g} apart, of {largest:.2g}"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
