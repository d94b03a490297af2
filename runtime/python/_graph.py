"""Data for the model: tables of nodes, edges and graphs with columns, as gnnc_graph_* takes them.

NumPy's arrays, and whatever gives DLPack tensors, are read where they lie as long as the graph, or what was
made of it, lives; they must not change meanwhile.  What has another type or layout than the model wants is
converted once.
"""
from __future__ import annotations

import ctypes
import itertools
import os
import threading
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type, Union

import numpy as np

from . import _abi, _facts
from ._abi import Error, library

_ON_HOST = (1, 3)  # DLPack: kDLCPU, kDLCUDAHost
_PARTS = ("train", "val", "test")
_TENSOR, _TAKEN = b"dltensor_versioned", b"used_dltensor_versioned"
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
_capsule_is = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi))
_capsule_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi))


class Column(NamedTuple):
    """Values of a column, with what an array does not say of itself."""
    values: Any
    kind: Optional[str] = None  # float, csr, cat, class, multilabel, time, id, split; None: as the model has it
    categories: int = -1  # of cat and class; -1: one more than the largest code
    names: Optional[Sequence[str]] = None  # of the categories
    encoder: Union[_abi.Owner, str, None] = None  # the Encoder that made the values, or "unchecked" (Graph.set_encoded)


class ColumnInfo(NamedTuple):
    """What a graph has of a column."""
    kind: str
    shape: Tuple[int, ...]
    categories: int
    names: Optional[List[str]]


class Table(NamedTuple):
    """What a graph has of a table."""
    kind: str  # nodes, edges, graphs
    rows: int
    columns: Dict[str, ColumnInfo]
    src: Optional[str]  # of edges
    dst: Optional[str]
    graphs: Optional[str]  # of nodes that are divided


def _bytes(name: str) -> bytes:
    return name.encode()


def _texts(names: Sequence[str]) -> Any:
    return (ctypes.c_char_p * len(names))(*[n.encode() for n in names])


def _made_by(encoder: Union[_abi.Owner, str, None]) -> Any:
    if encoder == "unchecked":
        return library.gnnc_encoder_unchecked()
    if encoder is not None and getattr(encoder, "_prefix", "") != "gnnc_encoder_":
        raise Error("E_ARG", f"{encoder!r} is no Encoder, nor \"unchecked\"")
    return None if encoder is None else encoder._shared()  # type: ignore[union-attr]


def _declared(table: str) -> Dict[str, str]:
    """Columns that the model has of a table, with their kinds."""
    if table in _facts.EDGES:
        return _facts.EDGES[table][2]
    return _facts.NODES.get(table) or _facts.GRAPHS.get(table) or {}


def _plain(values: Any) -> Any:
    """An array, or something with __dlpack__ that NumPy cannot see."""
    if hasattr(values, "detach"):
        values = values.detach()
    if isinstance(values, np.ndarray):
        return values
    device = getattr(values, "__dlpack_device__", None)
    if device is None or not hasattr(values, "__dlpack__"):
        return np.asarray(values)
    if device()[0] not in _ON_HOST:
        raise Error("E_ARG", "a tensor in the memory of a device: .cpu() brings it here")
    return values


def _numbers(values: Any, what: str, like: Optional[np.ndarray] = None) -> np.ndarray:
    """int64 [n], as many as `like` has."""
    x = np.asarray(values)
    if x.ndim != 1 or (x.size and x.dtype.kind not in "iu"):
        raise Error("E_ARG", f"{what} are [n] integers, not {x.dtype} {list(x.shape)}")
    if like is not None and x.size != like.size:
        raise Error("E_ARG", f"{what} are {x.size}, and sources {like.size}")
    return np.ascontiguousarray(x, dtype=np.int64)


def _at(x: Optional[np.ndarray]) -> Optional[int]:
    return None if x is None else x.ctypes.data


def _numpy(values: Any) -> np.ndarray:
    values = _plain(values)
    if isinstance(values, np.ndarray) or hasattr(values, "__array__"):
        return np.asarray(values)
    return np.from_dlpack(values)


def _canonical(sparse: Any) -> Any:
    """SciPy's csr_matrix with ascending columns, each once."""
    matrix = sparse.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _codes(values: np.ndarray, names: Optional[Sequence[str]], where: str) -> Tuple[np.ndarray, List[str]]:
    """Texts as numbers of categories; None is no category."""
    flat = values.ravel()
    known = np.array([v is not None for v in flat], dtype=bool)
    texts = flat[known].astype(str)
    if names is None:
        names = np.unique(texts).tolist()
    order = np.argsort(np.asarray(names, dtype=str), kind="stable")
    ranked = np.asarray(names, dtype=str)[order]
    at = np.minimum(np.searchsorted(ranked, texts), max(len(ranked) - 1, 0))
    wrong = ranked[at] != texts if len(ranked) else np.ones(len(texts), dtype=bool)
    if wrong.any():
        row = int(np.flatnonzero(known)[np.flatnonzero(wrong)[0]])
        raise Error("E_RANGE", f"row {row} of '{where}' is '{flat[row]}', which is none of its names")
    codes = np.full(flat.shape, -1, dtype=np.int32)
    codes[known] = order[at]
    return codes.reshape(values.shape), list(names)


def _seconds(values: np.ndarray) -> np.ndarray:
    unknown = np.isnat(values)
    since = values - np.datetime64(0, "s")
    return np.where(unknown, np.nan, since / np.timedelta64(1, "s"))


class _Values(NamedTuple):
    """An argument that the call takes as a gnnc_array."""
    values: Any


class _Arrays:
    """The arrays of one call, which takes them over and gives each back through `done`.

    Where the call is not reached, since one of its arguments is refused in Python, that happens here.
    """

    def __init__(self, make: Callable[[Any], _abi.Array]) -> None:
        self._make = make
        self._made: List[_abi.Array] = []
        self._reached = False

    def add(self, values: Any) -> _abi.Array:
        self._made.append(self._make(values))
        return self._made[-1]

    def reach(self) -> None:
        """Nothing but a ctypes.ArgumentError can keep the call from being made."""
        self._reached = True

    def __enter__(self) -> _Arrays:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: Any) -> None:
        if kind is not None and (not self._reached or issubclass(kind, ctypes.ArgumentError)):
            for array in self._made:
                array.done(array.user)


def _as_array(values: np.ndarray) -> Tuple[_abi.Array, np.ndarray]:
    """And what must stay as long as it is read."""
    if values.dtype.name not in _abi.ELEMENTS:
        raise Error("E_DTYPE", f"values of NumPy's type {values.dtype} are no numbers")
    if not 1 <= values.ndim <= _abi.MAX_RANK:
        raise Error("E_SHAPE", f"an array of {values.ndim} dimensions")
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return _abi.Array(
        data=values.ctypes.data, dtype=_abi.ELEMENTS[values.dtype.name], rank=values.ndim,
        shape=_abi.Dims(*values.shape), stride=_abi.Dims(*values.strides), strided=1), values


class _Held:
    """Arrays of a call that reads them while it lasts."""

    def __init__(self) -> None:
        self.kept: List[Any] = []

    def add(self, values: Any) -> _abi.Array:
        array, kept = _as_array(_numpy(_plain(values)))
        self.kept.append(kept)
        return array


class _Lent:
    """What the library reads of the caller's.  Lives as long as anything that may read it."""

    def __init__(self) -> None:
        self.arrays: Dict[int, Any] = {}
        self.numbers = itertools.count(1)  # 0 would be a NULL, which ctypes gives as None
        self.done = _abi.Done(self.arrays.pop)


class Graph(_abi.Owner):
    """The data that trainers and sessions work on.

        g = Graph.read("data/cora")                     # a data directory, as gnnc import makes it
        g = Graph.from_arrays({"paper": {"x": x, "y": y, "split": split}, ("paper", "cites", "paper"): ends})
        g = Graph.from_pyg(data)                        # torch_geometric's Data, HeteroData
        g = Graph(); g.add_nodes("paper", n); g.add_column("paper", "x", x); ...

    It is built by one thread at a time.  With commit(), which whoever uses it first calls, it is frozen, and any
    number of trainers, sessions and threads share it.  Rows that append() brings from then on are seen by whoever
    loads it after the next commit().
    """
    _prefix, _destroy = "gnnc_graph_", "gnnc_graph_release"

    def __init__(self) -> None:
        self._lent = _Lent()
        self._committed = False
        self._commit_lock = threading.Lock()
        self._make("gnnc_graph_create", kept=self._lent)

    # ---- arrays ---------------------------------------------------------------------------------
    def _give(self, name: str, *args: Any) -> None:
        """A call that takes arrays over."""
        with _Arrays(self._array) as arrays:
            passed = [ctypes.byref(arrays.add(arg.values)) if isinstance(arg, _Values) else arg for arg in args]
            status, text = self._try(name, *passed, reaching=arrays.reach)
        if status:
            raise _abi.failure(status, text)

    def _array(self, values: Any) -> _abi.Array:
        values = _plain(values)
        if not isinstance(values, np.ndarray):
            tensor = self._tensor(values)
            if tensor is not None:
                return tensor
            values = _numpy(values)
        array, values = _as_array(values)
        key = next(self._lent.numbers)
        self._lent.arrays[key] = values
        array.borrowed, array.done, array.user = 1, self._lent.done, key
        return array

    def _tensor(self, values: Any) -> Optional[_abi.Array]:
        """A DLPack tensor of version 1; None: its maker gives none."""
        try:
            capsule = values.__dlpack__(max_version=(1, 0))
        except TypeError:
            return None
        if not _capsule_is(capsule, _TENSOR):
            return None
        out = _abi.Array()
        pointer = _capsule_pointer(capsule, _TENSOR)
        status, text = self._try("array_dlpack", pointer, ctypes.byref(out),
                                 reaching=lambda: _capsule_rename(capsule, _TAKEN))  # it is the library's
        if status:
            raise _abi.failure(status, text)
        return out

    # ---- tables ---------------------------------------------------------------------------------
    @classmethod
    def read(cls, directory: Union[str, "os.PathLike[str]"], *, map: bool = False) -> Graph:
        """A data directory.  map: large columns stay in their files, which must not change meanwhile."""
        graph = cls()
        graph._call("read", os.fsencode(directory), int(map))
        return graph

    def add_nodes(self, type: str, count: int) -> None:
        """A node type of `count` rows."""
        self._call("add_nodes", _bytes(type), count)

    def add_graphs(self, type: str, count: int) -> None:
        """A type of graphs, for data of many."""
        self._call("add_graphs", _bytes(type), count)

    def divide(self, nodes: str, graphs: str, ptr: Any) -> None:
        """Nodes ptr[i] to ptr[i + 1] are those of graph i.  ptr [graphs + 1]"""
        self._give("divide", _bytes(nodes), _bytes(graphs), _Values(ptr))

    def add_edges(self, name: str, src_type: str, dst_type: str, src: Any, dst: Any) -> None:
        """An edge type: edge i goes from row src[i] of src_type to row dst[i] of dst_type."""
        self._give("add_edges", _bytes(name), _bytes(src_type), _bytes(dst_type), _Values(src), _Values(dst))

    def add_edges_csr(self, name: str, src_type: str, dst_type: str, ptr: Any, idx: Any, *, by: str = "source") -> None:
        """The same, compressed: idx[ptr[v]:ptr[v + 1]] are the other ends of node v, of src_type, or by="destination"."""
        self._give("add_edges_csr", _bytes(name), _bytes(src_type), _bytes(dst_type), _abi.BY[by], _Values(ptr), _Values(idx))

    # ---- columns --------------------------------------------------------------------------------
    def add_column(self, table: str, column: str, values: Any, kind: Optional[str] = None, *, categories: int = -1,
                   names: Optional[Sequence[str]] = None, encoder: Union[_abi.Owner, str, None] = None) -> None:
        """A column: an array, a tensor, or a sparse matrix of SciPy.

        kind: float, csr, cat, class, multilabel, time, id or split; without it the model's own.  Texts, of cat
        and class, become numbers of their sorted names, or of `names`; datetime64, of time, becomes seconds.
        encoder: as of set_encoded
        """
        self._add_values(table, column, values, kind, categories, names)
        if encoder is not None:
            self.set_encoded(table, column, encoder)

    def _add_values(self, table: str, column: str, values: Any, kind: Optional[str], categories: int,
                    names: Optional[Sequence[str]]) -> None:
        if hasattr(values, "tocsr"):
            matrix = _canonical(values)
            self.add_csr(table, column, matrix.shape[1], matrix.indptr, matrix.indices, matrix.data)
            return
        values = _plain(values)
        kind = self._kind(table, column, values, kind)
        if isinstance(values, np.ndarray) and values.dtype.kind in "UO" and kind in ("cat", "class"):
            values, names = _codes(values, names, f"{table}.{column}")
        if isinstance(values, np.ndarray) and values.dtype.kind == "M" and kind == "time":
            values = _seconds(values)
        if names is not None and categories < 0:
            categories = len(names)
        self._give("add_column", _bytes(table), _bytes(column), _abi.KINDS[kind], _Values(values), categories,
                   None if names is None else _texts(names))

    def set_encoded(self, table: str, column: str, encoder: Union[_abi.Owner, str]) -> None:
        """Says that this Encoder made the values of a column; codes then mean its names.

        A model that learned of standardised numbers, hashed texts or named categories refuses columns that do not
        say how they were made.  encoder="unchecked": they are as the model has them by a pipeline of your own, for
        which you answer.
        """
        self._call("set_encoded", _bytes(table), _bytes(column), _made_by(encoder))

    @staticmethod
    def _kind(table: str, column: str, values: Any, kind: Optional[str]) -> str:
        kind = kind or _declared(table).get(column)
        if kind is None and isinstance(values, np.ndarray):
            kind = {"f": "float", "b": "float", "M": "time", "U": "cat"}.get(values.dtype.kind)
        if kind is None:
            raise Error("E_ARG", f"the model has no column '{table}.{column}': say its kind")
        if kind not in _abi.KINDS:
            raise Error("E_ARG", f"'{kind}' is no kind of columns: {', '.join(_abi.KINDS)}")
        return "float" if kind == "csr" else kind  # rows without gaps: the model takes either form

    def add_csr(self, table: str, column: str, n_columns: int, ptr: Any, idx: Any, val: Any = None) -> None:
        """A column of stored entries: of row i idx[ptr[i]:ptr[i + 1]], ascending, with their values, or 1."""
        self._give("add_csr", _bytes(table), _bytes(column), n_columns, _Values(ptr), _Values(idx),
                   None if val is None else _Values(val))

    def add_masks(self, table: str, column: str, train: Any, validation: Any, test: Any) -> None:
        """A column of kind split from three masks, [rows] or [splits, rows]."""
        self._give("add_masks", _bytes(table), _bytes(column), _Values(train), _Values(validation), _Values(test))

    def add_arrow(self, table: str, batch: Any, kinds: Optional[Mapping[str, str]] = None) -> None:
        """Columns of a record batch of pyarrow, Polars, DuckDB, .. (what has __arrow_c_array__), all or none.

        kinds: of columns whose kind is neither the model's nor the first of gnnc_graph_add_arrow in gnnc.h.
        """
        schema, array = batch.__arrow_c_array__()
        given = {c: k for c, k in _declared(table).items() if c in _column_names(batch) and k != "csr"}
        given.update(kinds or {})
        self._call("add_arrow", _bytes(table), _capsule_pointer(schema, b"arrow_schema"),
                   _capsule_pointer(array, b"arrow_array"), len(given), _texts(list(given)),
                   (ctypes.c_int * len(given))(*[_abi.KINDS[k] for k in given.values()]))

    # ---- the end of building ------------------------------------------------------------------------
    def commit(self) -> Graph:
        """Checks it, and freezes it.  From then on: what was appended is seen by who loads it after this."""
        with self._commit_lock:
            self._call("commit")
            self._committed = True
        return self

    def _ready(self) -> _abi.Handle:
        with self._commit_lock:
            if self._end.alive and not self._committed:
                self._call("commit")
                self._committed = True
        return self._shared()

    # ---- rows that come later -----------------------------------------------------------------------
    def append(self, table: str, columns: Optional[Mapping[str, Any]] = None, *, count: Optional[int] = None,
               src: Any = None, dst: Any = None) -> int:
        """Rows for a table of a committed graph, all or none, from any thread; gives the number of the first.

        columns: all of the table's, but labels and splits may be left out.     src, dst: of edges, row numbers
        """
        with _Arrays(self._array) as arrays:
            given = [self._later(arrays, table, n, v) for n, v in (columns or {}).items()]
            ends = [None if e is None else arrays.add(_numpy(e)) for e in (src, dst)]
            if count is None:
                count = len(src) if src is not None else _count(table, columns or {})
            rows = _abi.Rows(table=_bytes(table), count=count, n_columns=len(given),
                             columns=(_abi.Values * len(given))(*given))
            rows.src, rows.dst = (None if e is None else ctypes.pointer(e) for e in ends)
            graph = self._shared()
            arrays.reach()
            status = library.gnnc_graph_append(graph, ctypes.byref(rows))
        if status:
            raise _abi.failure(status, rows.error or library.gnnc_status_text(status))
        return int(rows.first)

    @staticmethod
    def _later(arrays: Union[_Arrays, _Held], table: str, name: str, value: Any) -> _abi.Values:
        column = value if isinstance(value, Column) else Column(value)
        values, names = column.values, column.names
        out = _abi.Values(column=_bytes(name), encoder=_made_by(column.encoder))
        if hasattr(values, "tocsr"):
            matrix = _canonical(values)
            out.ptr, out.idx, out.values = (ctypes.pointer(arrays.add(v)) for v in (
                matrix.indptr, matrix.indices, matrix.data))
            return out
        values = _numpy(values)
        if values.dtype.kind in "UO":
            values, names = _codes(values, names, f"{table}.{name}")
        if values.dtype.kind == "M":
            values = _seconds(values)
        if names is not None:
            out.names, out.n_categories = _texts(names), len(names)
        out.values = ctypes.pointer(arrays.add(values))
        return out

    @property
    def tables(self) -> Dict[str, Table]:
        """What is in it."""
        out = {}
        for i in range(self._ask("n_tables")):
            info = _abi.TableInfo()
            self._call("table_info", i, ctypes.byref(info))
            columns = dict(self._column(i, k) for k in range(info.n_columns))
            out[info.name.decode()] = Table(list(_abi.TABLES)[info.kind], info.count, columns, _text(info.src_type),
                                            _text(info.dst_type), _text(info.graphs))
        return out

    def _column(self, table: int, column: int) -> Tuple[str, ColumnInfo]:
        info = _abi.ColumnInfo()
        self._call("column_info", table, column, ctypes.byref(info))
        names = [info.names[i].decode() for i in range(info.n_categories)] if info.names else None
        return info.name.decode(), ColumnInfo(list(_abi.KINDS)[info.kind], tuple(info.shape[:info.rank]),
                                              info.n_categories, names)

    def __repr__(self) -> str:
        if not self._end.alive:
            return "<closed Graph>"
        return "<Graph: " + ", ".join(f"{n} [{t.rows}]" for n, t in self.tables.items()) + ">"

    # ---- all at once --------------------------------------------------------------------------------
    @classmethod
    def from_arrays(cls, tables: Mapping[Any, Any]) -> Graph:
        """A graph of a dict.

            {"paper": {"x": x, "y": y, "split": split},           nodes, or graphs where the model has such a type
             "venue": 20,                                         nodes without columns
             ("paper", "cites", "paper"): ends,                   edges [2, E]
             ("paper", "in", "venue"): {"edge_index": ends, "year": year}}

        Of a column: an array, a tensor, a sparse matrix of SciPy, or a Column.  "graph_ptr" divides nodes.
        """
        graph = cls()
        graph._fill(tables)
        return graph

    def _fill(self, tables: Mapping[Any, Any]) -> None:
        nodes = {k: v for k, v in tables.items() if not isinstance(k, tuple)}
        for name, value in nodes.items():
            add = self.add_graphs if name in _facts.GRAPHS else self.add_nodes
            add(name, value if isinstance(value, int) else _count(name, value))
        for key, value in tables.items():
            if isinstance(key, tuple):
                src, name, dst = key
                ends = value["edge_index"] if isinstance(value, Mapping) else value
                self.add_edges(name, src, dst, ends[0], ends[1])
        for key, value in tables.items():
            if isinstance(value, Mapping):
                self._add_columns(key[1] if isinstance(key, tuple) else key, value)

    def _add_columns(self, table: str, columns: Mapping[str, Any]) -> None:
        for name, value in columns.items():
            if name == "graph_ptr" and table in _facts.NODES:
                self.divide(table, next(iter(_facts.GRAPHS)), value)
            elif name not in ("edge_index", "count"):
                value = value if isinstance(value, Column) else Column(value)
                self.add_column(table, name, value.values, value.kind, categories=value.categories, names=value.names,
                                encoder=value.encoder)

    @classmethod
    def from_pyg(cls, data: Any) -> Graph:
        """What the model reads of torch_geometric's Data, Batch or HeteroData.

        Columns are attributes of their names.  A split is an attribute of its name, or train_mask, val_mask and
        test_mask; the one column of numbers of an edge type may be edge_attr.  An edge type is that of its name
        between the model's node types, or the only one there.  A model of one node type takes Data; one of
        graphs takes Batch.
        """
        graph = cls()
        typed = hasattr(data, "node_types")
        for table in _facts.GRAPHS:
            graph.add_graphs(table, int(data.num_graphs))
        for table in _facts.NODES:
            store = data[_node_type(data, table)] if typed else _only(data, table, _facts.NODES, "node type")
            graph.add_nodes(table, int(store.num_nodes))
            for graphs in _facts.GRAPHS:
                graph.divide(table, graphs, _attribute(store, "ptr"))
        for table, (src, dst, _) in _facts.EDGES.items():
            store = data[_edge_type(data, src, table, dst)] if typed else _only(data, table, _facts.EDGES, "edge type")
            ends = _attribute(store, "edge_index")
            graph.add_edges(table, src, dst, ends[0], ends[1])
        for table in (*_facts.NODES, *_facts.EDGES, *_facts.GRAPHS):
            edges = _facts.EDGES.get(table)
            store = data
            if typed and table not in _facts.GRAPHS:
                store = data[_edge_type(data, edges[0], table, edges[1]) if edges else table]
            for column, kind in _declared(table).items():
                graph._add_attribute(table, column, kind, store)
        return graph

    def _add_attribute(self, table: str, column: str, kind: str, store: Any) -> None:
        """Nothing where the data lack it: whether that matters depends on what is asked of the model."""
        numbers = [c for c, k in _declared(table).items() if k in ("float", "csr")]
        if column in store:
            value = store[column]
            if kind in ("class", "time", "id") and len(value.shape) == 2 and value.shape[1] == 1:
                value = value.reshape(-1)
            self.add_column(table, column, value, kind)
        elif kind == "split" and "train_mask" in store:
            masks = [_mask(store, p) for p in _PARTS]
            self.add_masks(table, column, *masks)
        elif table in _facts.EDGES and numbers == [column] and "edge_attr" in store:
            self.add_column(table, column, store["edge_attr"], kind)


class Subgraph(Graph):
    """What a session's request brings: the session's memory, until its next one."""
    _destroy = ""

    def __init__(self, pointer: _abi.Handle, lent: _Lent) -> None:
        self._lent = lent
        self._committed = False
        self._commit_lock = threading.Lock()
        self._own(pointer, kept=lent)

    @staticmethod
    def _kind(table: str, column: str, values: Any, kind: Optional[str]) -> str:
        if kind is None and column.startswith("whole."):
            kind = "float"
        if kind is None and column == "id" and column not in _declared(table):
            kind = "id"
        return Graph._kind(table, column, values, kind)


def _text(s: Optional[bytes]) -> Optional[str]:
    return None if s is None else s.decode()


def _column_names(batch: Any) -> List[str]:
    return list(getattr(batch.schema, "names", ()))


def _count(table: str, columns: Mapping[str, Any]) -> int:
    if "count" in columns:
        return int(columns["count"])
    for name, value in columns.items():
        value = value.values if isinstance(value, Column) else value
        declared = _declared(table).get(name)
        if name != "graph_ptr" and not (declared == "split" and len(np.shape(value)) == 2):
            return int(value.shape[0]) if hasattr(value, "shape") else len(value)
    raise Error("E_ARG", f"how many rows '{table}' has is not said: no column, and no 'count'")


# ---- torch_geometric ------------------------------------------------------------------------------
def _attribute(store: Any, name: str) -> Any:
    if name in store:
        return store[name]
    raise Error("E_MISSING", f"the data have no '{name}'")


def _mask(store: Any, part: str) -> Any:
    """[rows], or [splits, rows] of what is the other way there."""
    mask = _numpy(_attribute(store, "train_mask" if part + "_mask" not in store else part + "_mask"))
    return (mask if part + "_mask" in store else np.zeros_like(mask)).T


def _only(data: Any, table: str, tables: Mapping[str, Any], what: str) -> Any:
    if len(tables) > 1:
        raise Error("E_ARG", f"the model has {len(tables)} {what}s ({', '.join(tables)}), and the data one without a name")
    return data


def _node_type(data: Any, table: str) -> str:
    if table not in data.node_types:
        raise Error("E_MISSING", f"the data have no node type '{table}': {', '.join(data.node_types)}")
    return table


def _edge_type(data: Any, src: str, name: str, dst: str) -> Tuple[str, str, str]:
    if (src, name, dst) in data.edge_types:
        return src, name, dst
    between: List[Tuple[str, str, str]] = [t for t in data.edge_types if (t[0], t[2]) == (src, dst)]
    if len(between) == 1 and sum((s, d) == (src, dst) for s, d, _ in _facts.EDGES.values()) == 1:
        return between[0]
    have = ", ".join(str(t) for t in data.edge_types)
    raise Error("E_MISSING", f"the data have no edge type {(src, name, dst)}: {have}")
