"""Raw rows as a model's columns, from Python: gnnc_encoder_*."""
from __future__ import annotations

import ctypes
import os
from typing import Any, List, Mapping, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _abi
from ._abi import Error, library
from ._graph import Graph, _Arrays, _numpy
from ._session import Model

_KINDS = {number: name for name, number in _abi.KINDS.items()}
_EXACT = 2**53  # whole numbers below it are told apart as float64; others go as texts
_ELEMENTS = {number: name for name, number in _abi.ELEMENTS.items()}


class EncodedColumn(NamedTuple):
    """A column that an encoder makes of raw cells."""
    column: str
    source: str  # the raw column; of several the stem: "x" of "x.0", "x.1", ..
    kind: str
    dtype: str
    n_sources: int  # raw columns "x.0", "x.1", ..; 0: `source` alone
    width: int  # values of a row, [rows, width]; 0: one, [rows]
    names: Optional[Tuple[str, ...]]  # of codes; None: numbers
    may_lack: bool  # a label, a split, a key


def _cells(column: str, values: Any, kept: List[Any]) -> Tuple[_abi.Cells, int]:
    x = np.asarray(values)
    if x.ndim != 1:
        raise Error("E_SHAPE", f"cells of '{column}' are one a row, not {list(x.shape)}")
    exact = x.dtype.kind == "f" or bool(np.all((x > -_EXACT) & (x < _EXACT))) if x.dtype.kind in "iuf" else False
    if exact:
        numbers = np.ascontiguousarray(x, dtype=np.float64)
        kept.append(numbers)
        return _abi.Cells(column=column.encode(), numbers=numbers.ctypes.data), x.size
    texts = [None if v is None or v != v else str(v).encode() for v in x.tolist()]
    cut = next((i for i, text in enumerate(texts) if text and b"\0" in text), None)
    if cut is not None:
        raise Error("E_VALUE", f"cells of '{column}': row {cut} holds a NUL byte")
    array = (ctypes.c_char_p * len(texts))(*texts)
    kept.append(array)
    return _abi.Cells(column=column.encode(), texts=ctypes.cast(array, ctypes.POINTER(ctypes.c_char_p))), x.size


class Encoder(_abi.Owner):
    """Makes columns of raw cells as they were made when the model's data were imported: the same codes for the same names,
    the same means and deviations, the same forms of dates.

        e = Encoder(Model("churn.safetensors"))
        first = e.append(g, "person", {"city": ["ankara", None], "age": [31, 44.5]})

    Its source is a Model, a file of weights, a checkpoint, or a data directory.
    """
    _prefix, _destroy = "gnnc_encoder_", "gnnc_encoder_destroy"

    def __init__(self, source: Union[Model, str, "os.PathLike[str]"]) -> None:
        self._make("gnnc_encoder_create", kept=None)
        if isinstance(source, Model):
            self._call("of_model", source._shared())
        else:
            self._call("read", os.fsencode(source))

    def columns(self, table: str) -> List[EncodedColumn]:
        """What it makes of a table's cells; none of a table that it does not know."""
        return [self._column(table, i) for i in range(self._ask("n_columns", table.encode()))]

    def _column(self, table: str, i: int) -> EncodedColumn:
        e = _abi.Encoded()
        self._call("column", table.encode(), i, ctypes.byref(e))
        names = tuple(e.names[k].decode() for k in range(e.n_categories)) if e.names else None
        return EncodedColumn(e.column.decode(), getattr(e, "from").decode(), _KINDS[e.kind], _ELEMENTS[e.dtype], e.n_from,
                             e.width, names, bool(e.may_lack))

    @staticmethod
    def _raw(table: str, cells: Mapping[str, Any], kept: List[Any]) -> _abi.Raw:
        made = [_cells(name, values, kept) for name, values in cells.items()]
        counts = sorted({n for _, n in made})
        if len(counts) > 1:
            raise Error("E_SHAPE", f"columns of '{table}' have {counts[0]} and {counts[-1]} rows")
        columns = (_abi.Cells * len(made))(*(c for c, _ in made))
        kept.append(columns)
        return _abi.Raw(table=table.encode(), count=counts[0] if counts else 0, columns=columns, n_columns=len(made))

    def encode(self, table: str, column: str, cells: Mapping[str, Any]) -> np.ndarray:
        """One column of rows: [n], or [n, width].  Cells are texts, None for an empty one, or numbers, NaN for one."""
        made = next((c for c in self.columns(table) if c.column == column), None)
        if made is None:
            raise Error("E_MISSING", f"nothing makes a column '{table}.{column}'")
        kept: List[Any] = []
        raw = self._raw(table, cells, kept)
        out = np.empty((raw.count, made.width) if made.width else raw.count, dtype=made.dtype)
        self._rows("encode", raw, column.encode(), out.ctypes.data, out.nbytes)
        return out

    def append(self, graph: Graph, table: str, cells: Mapping[str, Any], *, src: Any = None, dst: Any = None) -> int:
        """Rows of cells as Graph.append has rows of columns: the number of the first.  src, dst: of edges, row numbers."""
        kept: List[Any] = []
        raw, first = self._raw(table, cells, kept), ctypes.c_int64()
        with _Arrays(graph._array) as arrays:
            ends = [None if e is None else ctypes.byref(arrays.add(_numpy(e))) for e in (src, dst)]
            pointer = graph._shared()
            arrays.reach()
            self._rows("append", raw, pointer, *ends, ctypes.byref(first))
        return first.value

    def _rows(self, name: str, raw: _abi.Raw, *args: Any) -> None:
        status, text = self._try(name, ctypes.byref(raw), *args)
        if status:
            raise _abi.failure(status, raw.error or text or library.gnnc_status_text(status))
