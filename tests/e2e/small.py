"""Which shipped models a test of all of them takes in CI, and at which sizes: those that have operations of their own, with fewer
blocks that are alike and narrower rows.  With GNNC_LONG all of them, as they are shipped."""
import os

LONG = "GNNC_LONG" in os.environ
SIZES = {"gat_blocks": ["layers=1"], "gin_graphs": ["layers=2", "hidden=8"], "lightgcn": ["layers=2"], "molecule": ["layers=2", "hidden=8"],
         "relational_sage": ["channels=16", "layers=1"], "relational_transformer": ["heads=2", "width=8", "points=2", "blocks=1"],
         "toxicity": ["layers=2", "hidden=8"]}
LIKE = {"distmult": "complex", "gat_blocks": "gat", "gin": "sage", "molecule": "toxicity"}


def sizes(name):
    """Options of gnnc."""
    return [] if LONG else [word for size in SIZES.get(name, ()) for word in ("-D", size)]


def left_out(name):
    return not LONG and name in LIKE
