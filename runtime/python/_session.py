"""Predictions of some rows, from Python: gnnc_model_* and gnnc_session_*."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Optional, Tuple

import numpy as np

from . import _abi, _facts
from ._abi import Error, library
from ._graph import Graph
from ._trainer import Source, _buffer


class Model(_abi.Owner):
    """The model with weights that a Trainer saved: a file, or its bytes.

    Nothing of it changes: any number of threads and sessions share it.
    """
    _prefix, _destroy = "gnnc_model_", "gnnc_model_release"

    def __init__(self, weights: Source) -> None:
        if _facts.ROWS_PROGRAM is None:
            raise Error("E_STATE", f"{_facts.MODEL} predicts no rows by themselves: {_facts.NO_ROWS}")
        self._make("gnnc_model_create", library.program(_facts.ROWS_PROGRAM), kept=None)
        if isinstance(weights, (bytes, bytearray, memoryview)):
            data = _buffer(weights)
            self._call("load_from", data.ctypes.data, data.size)
        else:
            self._call("load", os.fsencode(weights))

    def session(self, graph: Graph) -> Session:
        """A session over a graph, for one thread; clone() makes those of others."""
        return Session(self, graph)


class Session(_abi.Owner):
    """One thread's working memory over a model and a graph, both of which it keeps.

        s = Model("churn.safetensors").session(g)
        rows = s.predict([3, 1, 4])            # float32 [3, ..]
        other = s.clone()                      # for another thread: calls release the interpreter's lock
    """
    _prefix, _destroy = "gnnc_session_", "gnnc_session_destroy"

    def __init__(self, model: Model, graph: Graph) -> None:
        graph.commit()
        self._lent = graph._lent
        self._make("gnnc_session_create", kept=self._lent)
        self._call("open", model._shared(), graph._shared())
        self._measure()

    def _measure(self) -> None:
        shape = _abi.Shape.make()
        self._call("row_shape", ctypes.byref(shape.rank), shape.dim)
        self.row_shape: Tuple[int, ...] = shape.tuple()
        self.rows: int = self._ask("rows")

    def clone(self) -> Session:
        """Another one, which shares all but working memory."""
        other = object.__new__(type(self))
        other._lent = self._lent
        self._begin()
        try:
            other._make("gnnc_session_clone", self._pointer, kept=self._lent)
        finally:
            self._user.clear()
        other._measure()
        return other

    def predict(self, ids: Any, out: Optional[np.ndarray] = None) -> np.ndarray:
        """What the model gives for rows, by their numbers from 0, in any order.

        ids: [n] integers        out: float32 [n, ..] in one piece, which is filled; else a new one
        """
        ids = np.asarray(ids)
        if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
            raise Error("E_ARG", f"ids are [n] integers, not {ids.dtype} {list(ids.shape)}")
        ids = np.ascontiguousarray(ids, dtype=np.int64)
        shape = (ids.size, *self.row_shape)
        if out is None:
            out = np.empty(shape, dtype=np.float32)
        elif out.shape != shape or out.dtype != np.float32 or not (out.flags.c_contiguous and out.flags.writeable):
            raise Error("E_ARG", f"out must be float32 {list(shape)}, in one piece and writable")
        self._call("predict", ids.size, ids.ctypes.data, out.ctypes.data)
        return out

    def __repr__(self) -> str:
        return f"<Session of {_facts.MODEL}: {self.rows} rows of {list(self.row_shape)}>"
