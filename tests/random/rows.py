#!/usr/bin/env python3
"""Are rows predicted by themselves those of a prediction of all rows, and scores of pairs those of the edges they are?

    rows.py NAME WEIGHTS DATA PREDICTION NEAR [NOISY ..]
                                   libNAME.so of --emit=infer, beside where this runs; PREDICTION.npy, and of a model of
                                   links PREDICTION.csv with their ends; NOISY.npy, predictions by weights with noise
                                   of rounding's size: how far rounding moves a row whose terms cancel

Exit status 0 or 1, with the row that differs."""
import csv
import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from graph import npy  # noqa: E402
from sessions import Library, Session  # noqa: E402


NOISES = 10  # Rounding of two programs is as much as so many times what the noise does.


def apart(got, want, most):
    return any((x == x) != (y == y) or abs(x - y) > most for x, y in zip(got, want))


def largest(want):
    return max([abs(v) for v in want if v == v] + [1e-30])


def by_noise(want, noisy, at):
    """How far rounding may move the values `at` of these: NOISES times the most that a noisy prediction does."""
    return NOISES * max([abs(x - y) for other in noisy for x, y in zip(want[at], other[at]) if x == x and y == y] + [0])


def scores(session, pairs, kind):
    n, numbers = len(pairs), lambda values: (ctypes.c_int64 * len(pairs))(*values)
    out = (ctypes.c_float * (n + 1))()
    status = session.lib.gnnc_session_predict_links(session.s, ctypes.c_int64(n), numbers(p[0] for p in pairs),
                                                    numbers(p[1] for p in pairs), numbers([kind] * n), out)
    if status and "have no link of it" not in session.error():
        sys.exit(f"status {status}: {session.error()}")
    return None if status else list(out)[:n]


def links(session, want, path, near, noisy):
    """What kind an edge is of only the model tells: one of its kinds must give its score."""
    with open(path, newline="", encoding="utf-8") as f:
        pairs = [(int(row[0]), int(row[1])) for row in list(csv.reader(f))[1:]]
    sizes = (ctypes.c_int64 * 3)()
    session.lib.gnnc_session_link_sizes(session.s, *[ctypes.byref(sizes, 8 * i) for i in range(3)])
    got = [x for x in (scores(session, pairs, kind) for kind in range(sizes[2])) if x]
    scale = largest(want)
    for i, x in enumerate(want):
        most = near * scale + by_noise(want, noisy, slice(i, i + 1))
        if not any((g[i] != g[i]) if x != x else abs(g[i] - x) <= most for g in got):
            sys.exit(f"pair {pairs[i]} has the score {[g[i] for g in got]}, edge {i} of all {x}")


def main():
    name, weights, data, prediction, near = sys.argv[1:6]
    library = Library(name)
    model, status = library.model(weights)
    session = Session(library, model, library.graph(data))
    if session.status and "a graph is predicted by itself" in session.error():
        return  # an edge joins two of the data's graphs, which a session refuses
    if status or session.status:
        sys.exit(f"status {status or session.status}: {session.error()}")
    want, _, _ = npy(prediction + ".npy")
    noisy = [npy(path + ".npy")[0] for path in sys.argv[6:]]
    if os.path.exists(prediction + ".csv"):
        return links(session, want, prediction + ".csv", float(near), noisy)
    width, rows = session.width, session.rows
    for ids in [[i] for i in range(rows)] + [list(range(rows))]:
        status, got = session.predict(ids)
        if status:
            sys.exit(f"status {status}: {session.error()}")
        for k, i in enumerate(ids):
            mine, row = got[k * width:(k + 1) * width], slice(i * width, (i + 1) * width)
            whole = want[row]
            if apart(mine, whole, float(near) * largest(whole) + by_noise(want, noisy, row)):
                sys.exit(f"row {i} of {len(ids)} is {mine[:8]}, of all rows {whole[:8]}")


main()
