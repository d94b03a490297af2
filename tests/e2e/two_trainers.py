#!/usr/bin/env python3
"""Two trainers of one model in one process, their epochs interleaved, must end where one alone ends."""
import ctypes
import sys

lib, cora = ctypes.CDLL(sys.argv[1]), sys.argv[2].encode()
model = ctypes.byref(ctypes.c_char.in_dll(lib, "gnnc_program"))


def make(seed):
    t = ctypes.c_void_p()
    assert lib.gnnc_trainer_create(ctypes.byref(t), model) == 0
    assert lib.gnnc_trainer_set_int(t, b"seed", ctypes.c_int64(seed)) == 0
    assert lib.gnnc_trainer_load(t, cora) == 0
    return t


def loss(t):
    v = ctypes.c_double()
    assert lib.gnnc_trainer_metric(t, b"loss", ctypes.byref(v)) == 0
    return v.value


alone = make(3)
for _ in range(5):
    assert lib.gnnc_trainer_epoch(alone) == 0
a, b = make(3), make(4)
for _ in range(5):
    assert lib.gnnc_trainer_epoch(a) == 0
    assert lib.gnnc_trainer_epoch(b) == 0
assert loss(a) == loss(alone), (loss(a), loss(alone))
assert loss(a) != loss(b)
for t in (alone, a, b):
    lib.gnnc_trainer_destroy(t)
