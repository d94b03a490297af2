from __future__ import annotations

from ._abi import Error, library as _library
from ._encoder import EncodedColumn, Encoder
from ._graph import Column, ColumnInfo, Graph, Table
from ._legend import Legend
from ._session import Model, Session, Whole
from ._trainer import Epoch, Option, Options, Progress, Trainer, options

__version__ = _library.version
__all__ = ["Column", "ColumnInfo", "EncodedColumn", "Encoder", "Epoch", "Error", "Graph", "Legend", "Model", "Option", "Options",
           "Progress", "Session", "Table", "Trainer", "Whole", "options"]

for _public in (Column, ColumnInfo, EncodedColumn, Encoder, Epoch, Error, Graph, Legend, Model, Option, Options, Progress, Session,
                Table, Trainer, Whole):
    _public.__module__ = __name__
del _public
