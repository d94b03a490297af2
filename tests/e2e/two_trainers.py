#!/usr/bin/env python3
"""Two trainers of one model in one process, their epochs interleaved, must end where one alone ends; and so must one
after a trainer in 16 bits ran, down to what its checkpoint says of the machine.

    two_trainers.py LIBRARY DATA LIBRARY_BF16"""
import ctypes
import sys

lib, cora, half = ctypes.CDLL(sys.argv[1]), sys.argv[2].encode(), ctypes.CDLL(sys.argv[3])


def make(seed, lib=lib):
    t = ctypes.c_void_p()
    model = ctypes.byref(ctypes.c_char.in_dll(lib, "model_program"))
    assert lib.gnnc_trainer_create(ctypes.byref(t), model) == 0
    assert lib.gnnc_trainer_set_int(t, b"seed", ctypes.c_int64(seed)) == 0
    assert lib.gnnc_trainer_load(t, cora) == 0
    return t


def loss(t):
    v = ctypes.c_double()
    assert lib.gnnc_trainer_metric(t, b"loss", ctypes.byref(v)) == 0
    return v.value


def saved(t):
    assert lib.gnnc_trainer_save(t, b"two.ckpt") == 0
    return open("two.ckpt", "rb").read()


alone = make(3)
for _ in range(5):
    assert lib.gnnc_trainer_epoch(alone) == 0
a, b = make(3), make(4)
for _ in range(5):
    assert lib.gnnc_trainer_epoch(a) == 0
    assert lib.gnnc_trainer_epoch(b) == 0
assert loss(a) == loss(alone), (loss(a), loss(alone))
assert loss(a) != loss(b)
other = make(3, half)
assert half.gnnc_trainer_epoch(other) == 0
half.gnnc_trainer_destroy(other)
after = make(3)
for _ in range(5):
    assert lib.gnnc_trainer_epoch(after) == 0
assert saved(after) == saved(alone)
for t in (alone, a, b, after):
    lib.gnnc_trainer_destroy(t)
