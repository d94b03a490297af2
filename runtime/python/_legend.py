"""What predictions mean, from Python: gnnc_legend_*."""
from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any, List, Optional, Tuple, Union

import numpy as np

from . import _abi
from ._abi import Error
from ._graph import _at, _numbers

if TYPE_CHECKING:
    from ._session import Session
    from ._trainer import Trainer


class Legend(_abi.Owner):
    """What rows of predictions are called, which class or label each number is of, and what the loss makes of them.

        l = s.legend()                         # of a Session over a graph, or of a Trainer
        scores = s.predict(l.find(["anna"]))
        l.classes(scores)                      # ["stays"]
        l.convert(scores)                      # probabilities, where the loss defines them

    It is used by the thread that uses its session or trainer, and ends with it.

    table: whose rows are predicted; of edges and pairs: that of their sources
    destinations: .. and of their destinations; None: rows are no edges
    rows: how many there are to predict, of a session of pairs edges of the data       row_shape: numbers of each
    outcome: "classes", "log odds", "numbers" or "scores"         word: what convert gives, "probability", "prediction", "score"
    has_classes: one of the numbers is true        has_labels: the highest mean something
    has_ids: rows have names; else their numbers are their names
    """
    _prefix, _destroy = "gnnc_legend_", "gnnc_legend_destroy"

    def __init__(self, of: Union[Session, Trainer]) -> None:
        pointer, info = _abi.Handle(), _abi.LegendInfo()
        of._call("legend", ctypes.byref(pointer))
        self._own(pointer, None)
        self._of, self._user = of, of._user  # one thread uses both
        self._call("describe", ctypes.byref(info))
        self.table: str = info.table.decode()
        self.destinations: Optional[str] = info.destinations and info.destinations.decode()
        self.rows: int = info.n_rows
        self.row_shape: Tuple[int, ...] = tuple(info.dim[:info.rank])
        self.outcome: str = info.outcome.decode()
        self.word: str = info.word.decode()
        self.has_classes, self.has_labels, self.has_ids = bool(info.has_classes), bool(info.has_labels), bool(info.has_ids)
        self._width = info.width

    def _begin(self) -> None:
        super()._begin()
        if not self._of._end.alive:
            self._user.clear()
            raise self._of._closed()

    def close(self) -> None:
        """Frees it now, also after what it is of."""
        if self._of._end.alive:
            super().close()
        else:
            self._end()

    @property
    def values(self) -> List[str]:
        """What each number of a row is called, row-major: "stays", "3", "y_3"; "" where the word alone says it."""
        return [self._ask("value", i).decode() for i in range(self._width)]

    def ids(self, rows: Any, destinations: bool = False) -> List[Optional[str]]:
        """What rows of the table, or of that of destinations, were called when they were imported; None: nothing."""
        names = [self._ask("id", int(destinations), row) for row in _numbers(rows, "rows").tolist()]
        return [None if name is None else name.decode() for name in names]

    def find(self, ids: Any) -> np.ndarray:
        """Rows of the table by what they are called: int64 [n]."""
        out, row = [], ctypes.c_int64()
        for name in [ids] if isinstance(ids, str) else ids:
            text = str(name).encode()
            if b"\0" in text:
                raise Error("E_RANGE", f"no row of '{self.table}' is called {name!r}")
            self._call("find", text, ctypes.byref(row))
            out.append(row.value)
        return np.array(out, dtype=np.int64)

    def _scores(self, values: Any) -> np.ndarray:
        x = np.ascontiguousarray(values, dtype=np.float32)
        if x.ndim == 0 or x.shape[1:] != self.row_shape:
            raise Error("E_SHAPE", f"predictions are {['n', *self.row_shape]}, not {list(x.shape)}")
        return x

    def convert(self, values: Any) -> np.ndarray:
        """What the loss makes of predictions: probabilities of scores of classes and of log odds; else what they are."""
        x = self._scores(values)
        out = np.empty_like(x)
        self._call("convert", len(x), x.ctypes.data, out.ctypes.data)
        return out

    def classes(self, values: Any) -> List[Optional[str]]:
        """The highest class or label of each row, as it was called in training; None: all are NaN."""
        if not self.has_labels:
            raise Error("E_ARG", f"a row's numbers are of no classes: each is a {self.word}")
        x, names = self._scores(values), self.values
        best = [self._ask("highest", row.ctypes.data) for row in x]
        return [None if i < 0 else names[i] for i in best]

    def links(self, source: int) -> np.ndarray:
        """Where rows are edges: those that begin at this row of the table."""
        n = ctypes.c_int64()
        self._call("links", source, ctypes.byref(n), 0, None)
        out = np.empty(n.value, dtype=np.int64)
        self._call("links", source, ctypes.byref(n), out.size, out.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)))
        return out

    def ends(self, row: int) -> Tuple[int, int]:
        """.. and source and destination of one."""
        ends = ctypes.c_int64(), ctypes.c_int64()
        self._call("ends", row, *(ctypes.byref(e) for e in ends))
        return ends[0].value, ends[1].value

    def write(self, path: Union[str, os.PathLike[str]], values: Any, rows: Any = None, destinations: Any = None,
              format: str = "csv", top: int = 0) -> None:
        """Predictions as a file, with ids, classes and probabilities: what `predict` of the trainer's command line writes.

        rows: which they are, None: the first; of pairs the sources       destinations: .. and their destinations
        format: "csv", "jsonl", or "npy", the model's numbers             top: only so many classes or labels of a row
        """
        x = self._scores(values)
        at = [None if r is None else _numbers(r, what) for r, what in ((rows, "rows"), (destinations, "destinations"))]
        if format not in _abi.FORMATS:
            raise Error("E_ARG", f"there is no format '{format}': {', '.join(_abi.FORMATS)}")
        if any(r is not None and r.size != len(x) for r in at):
            raise Error("E_ARG", f"{len(x)} predictions are of as many rows")
        what = _abi.Written(format=_abi.FORMATS[format], top=top, n=len(x), row=_at(at[0]),
                            destination=_at(at[1]), values=x.ctypes.data)
        self._call("write", os.fsencode(path), ctypes.byref(what))

    def __repr__(self) -> str:
        of = self.table if self.destinations is None else f"{self.table} -> {self.destinations}"
        return f"<Legend of {of}: {self.outcome} of {self.rows} rows>"
