#!/usr/bin/env python3
"""Are rows predicted by themselves those of a prediction of all rows?

    rows.py NAME WEIGHTS DATA PREDICTION.npy NEAR     libNAME.so of --emit=infer, beside where this runs

Exit status 0 or 1, with the row that differs."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from graph import npy  # noqa: E402
from sessions import Library, Session  # noqa: E402


def apart(got, want, near):
    scale = max([abs(v) for v in want if v == v] + [1e-30])
    return any((x == x) != (y == y) or abs(x - y) > near * scale for x, y in zip(got, want))


def main():
    name, weights, data, prediction, near = sys.argv[1:]
    library = Library(name)
    model, status = library.model(weights)
    session = Session(library, model, library.graph(data))
    if status or session.status:
        sys.exit(f"status {status or session.status}: {session.error()}")
    want, _, _ = npy(prediction)
    width, rows = session.width, session.rows
    for ids in [[i] for i in range(rows)] + [list(range(rows))]:
        status, got = session.predict(ids)
        if status:
            sys.exit(f"status {status}: {session.error()}")
        for k, i in enumerate(ids):
            mine, whole = got[k * width:(k + 1) * width], want[i * width:(i + 1) * width]
            if apart(mine, whole, float(near)):
                sys.exit(f"row {i} of {len(ids)} is {mine[:8]}, of all rows {whole[:8]}")


main()
