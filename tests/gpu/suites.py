"""What is compared and measured on a GPU: tests/gpu/bundle prepares it, tests/gpu/run does it.

A kind is a folder of programs of the bundle, and one of `recorded`, which has the cpu target's curves.
"""
from collections import namedtuple

CORA = ("gcn", "gat", "sage", "gin", "sage_sampled")  # trained on what is in models/data/cora
BENCHED = ("gcn", "sage", "gat", "gin")
SAMPLED = "sage_sampled"
HIDDEN = {"models": (16, 8), "dense": (16, 8), "wide": (128, 16)}  # GAT has 8 heads of the second
LOW = ("bf16", "f16")
SPARSE = ("gcn",)  # also with the library's sparse products, in folders with CUSPARSE at their names' ends
CUSPARSE = "_cusparse"
HUBS = ["--block-hubs.entries=8", "--split-rows.entries=64", "--split-rows.min-entries=1", "--split-rows.few-entries=32", "--split-sums.rows=8"]  # as in tests/cudasim/build
# Nodes, edges in one direction, features, classes; the kind of its programs, which are compiled for these widths.
# What tells most comes first: a part may end before the last.
GRAPHS = {"arxiv-sized": (169343, 1166243, 128, 40, "wide"), "pubmed-sized": (19717, 44324, 500, 3, "dense"),
          "cora": (2708, 5278, 1433, 7, "models"), "arxiv-sized x 10": (1693430, 11662430, 128, 40, "wide")}
SPECIALIZED = {"dense": "pubmed-sized", "wide": "arxiv-sized"}
SIM_GRAPHS = {"tiny": (300, 900, 500, 3, "dense"), "cora": GRAPHS["cora"]}
# What is not trained on Cora: the models of several node and edge types and those of whole graphs first.
FIRST = ("rgcn", "dblp", "relational_sage", "molecule", "gin_graphs")

# How far a number of an epoch may be from the cpu's, whose sums come in another order: losses, and what is counted in rows, of
# which rounding may move one or two.  evaluated: losses of a split; None: as `loss`.  relative: of the number itself; else of it
# or of 1, whichever is larger.
Bars = namedtuple("Bars", "loss other evaluated relative", defaults=[None, False])
AGREES = Bars(1e-4, 2.1e-3)  # Cora: one row of its 500
# Behind a batch norm a bias has a gradient of rounding alone, of which Adam makes a step of full size: a batch takes it away again,
# the running mean that evaluation has lags behind (tests/cudasim/models.py).
SHIFTS = Bars(1e-3, 0.16, 0.16)
DECLARED = Bars(2e-4, 0.03)
ROUNDS = Bars(0.02, None, None, True)  # 16 bits: a sum in another order may round to the other neighbour
EPOCHS = {"cora": 30, "low": 10, "random": 3, "wide": 5, "tiny": 5}
# Minutes for each part, on the machine that it is made for; none is more than 10, and all together are 45.
MINUTES = {"ops": 5, "train": 7, "embed": 2, "models": 4, "low": 5, "bench": 9.5, "batches": 7.5}
PARTS = tuple(MINUTES)
QUICK = 9.5
