"""Predictions of some rows, from Python: gnnc_model_* and gnnc_session_*."""
from __future__ import annotations

import ctypes
import logging
import os
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from . import _abi, _facts
from ._abi import Error, library
from ._graph import Graph, Subgraph, _at, _Held, _Lent, _numbers
from ._legend import Legend
from ._trainer import Source, _buffer


def rows_program() -> int:
    if _facts.ROWS_PROGRAM is None:
        raise Error("E_STATE", f"{_facts.MODEL} predicts no rows by themselves: {_facts.NO_ROWS}")
    return library.program(_facts.ROWS_PROGRAM)


class Model(_abi.Owner):
    """The model with weights that a Trainer saved: a file, or its bytes.

    Nothing of it changes: any number of threads and sessions share it.
    """
    _prefix, _destroy = "gnnc_model_", "gnnc_model_release"

    def __init__(self, weights: Source) -> None:
        self._make("gnnc_model_create", rows_program(), kept=None)
        if isinstance(weights, (bytes, bytearray, memoryview)):
            data = _buffer(weights)
            self._call("load_from", data.ctypes.data, data.size)
        else:
            self._call("load", os.fsencode(weights))

    @classmethod
    def _of(cls, pointer: _abi.Handle) -> Model:
        model = object.__new__(cls)
        model._own(pointer, None)
        return model

    @property
    def metrics(self) -> Dict[str, float]:
        """Those of all splits as they were when the weights were kept: {"accuracy.test": 0.81, ..}; {}: nothing is known."""
        found, model = {}, self._shared()
        for i in range(library.gnnc_model_n_metrics(model)):
            m = _abi.MetricInfo()
            library.gnnc_model_metric_info(model, i, ctypes.byref(m))
            found[m.name.decode()] = m.value
        return found

    def session(self, graph: Optional[Graph] = None, device: Optional[str] = None) -> Session:
        """A session over a graph, for one thread; clone() makes those of others.

        Without one, Session.predict_subgraph predicts rows of what each call brings.
        device: "cpu" (the default), "cuda", "cuda:1" or "auto"
        """
        return Session(self, graph, device)


def _kinds(kind: Any, src: np.ndarray) -> Optional[np.ndarray]:
    return None if kind is None else _numbers(kind, "kinds", src)


class Whole(NamedTuple):
    """What is computed of the whole graph, and a prediction reads."""
    table: Optional[str]  # whose rows have it; None: it is of no table
    kind: str  # nodes, edges: a name may be that of both
    shape: Tuple[int, ...]  # of a row


class Session(_abi.Owner):
    """One thread's working memory over a model and a graph, both of which it keeps, or over a model alone.

        s = Model("churn.safetensors").session(g)
        rows = s.predict([3, 1, 4])            # float32 [3, ..]
        other = s.clone()                      # for another thread: calls release the interpreter's lock
    """
    _prefix, _destroy = "gnnc_session_", "gnnc_session_destroy"

    def __init__(self, model: Model, graph: Optional[Graph] = None, device: Optional[str] = None,
                 stream: Optional[int] = None, messages: Optional[Callable[[str], Any]] = None) -> None:
        """device: "cpu" (the default), "cuda", "cuda:1" or "auto"      stream: a CUDA stream's address (set_stream)
        messages: is called with each line that opening warns of; else they go to the logger of the package's name
        """
        pointer = None if graph is None else graph._ready()
        self._lent = _Lent() if graph is None else graph._lent
        heard: List[bytes] = []
        self._make("gnnc_session_create", kept=(self._lent, heard))
        self._call("set_message", _abi.hears, id(heard))
        if device is not None:
            self._call("set_device", device.encode())
        if stream is not None:
            self._call("set_stream", stream)
        try:
            if pointer is None:
                self._call("open_model", model._shared())
            else:
                self._call("open", model._shared(), pointer)
        finally:
            self._call("set_message", _abi.Message(), None)
            for line in heard:
                (messages or logging.getLogger(__package__).warning)(line.decode(errors="replace"))
        self._measure()

    def _measure(self) -> None:
        shape = _abi.Shape.make()
        self._call("row_shape", ctypes.byref(shape.rank), shape.dim)
        self.row_shape: Tuple[int, ...] = shape.tuple()
        self.rows: int = self._ask("rows")

    @property
    def device(self) -> str:
        """Where it runs: cpu, or cuda."""
        return self._ask("device").decode()

    def set_stream(self, stream: int) -> None:
        """Work is ordered with this CUDA stream from now on, such as torch.cuda.current_stream().cuda_stream: it comes after
        what is there when a call begins, and what is put there later comes after it.  On the cpu there is nothing to order."""
        self._call("set_stream", stream)

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

    def predict(self, ids: Any = None, out: Optional[np.ndarray] = None) -> np.ndarray:
        """What the model gives for rows, by their numbers from 0, in any order.

        ids: [n] integers, None: all rows        out: float32 [n, ..] in one piece, which is filled; else a new one
        """
        return self._rows("predict", (), self.rows, self.row_shape, ids, out)

    @property
    def layers(self) -> List[str]:
        """Hidden layers that the package was compiled to give (gnnc --embed)."""
        return [self._ask("layer_name", i).decode() for i in range(self._ask("n_layers"))]

    def embed(self, layer: str, ids: Any = None, out: Optional[np.ndarray] = None) -> np.ndarray:
        """Rows of a hidden layer, by its name in the model; ids and out as of predict."""
        shape, rows = _abi.Shape.make(), ctypes.c_int64()
        self._call("layer", layer.encode(), None, ctypes.byref(rows), ctypes.byref(shape.rank), shape.dim)
        return self._rows("embed", (layer.encode(),), rows.value, shape.tuple(), ids, out)

    def _rows(self, name: str, args: Tuple[bytes, ...], rows: int, of: Tuple[int, ...], ids: Any,
              out: Optional[np.ndarray]) -> np.ndarray:
        ids = None if ids is None else _numbers(ids, "ids")
        n = rows if ids is None else ids.size
        out = self._room(n, of, out)
        self._call(name, *args, n, _at(ids), out.ctypes.data)
        return out

    def _room(self, n: int, of: Tuple[int, ...], out: Optional[np.ndarray]) -> np.ndarray:
        shape = (n, *of)
        if out is None:
            return np.empty(shape, dtype=np.float32)
        if out.shape != shape or out.dtype != np.float32 or not (out.flags.c_contiguous and out.flags.writeable):
            raise Error("E_ARG", f"out must be float32 {list(shape)}, in one piece and writable")
        return out

    def predict_subgraph(self, tables: Mapping[Any, Any], ids: Any, out: Optional[np.ndarray] = None) -> np.ndarray:
        """What the model gives for rows of a subgraph, of a session without a graph.

        tables: as Graph.from_arrays takes them, with what `whole` lists as columns of their tables: all in-edges of
        as many hops as the model reads, for what a session over the whole graph would give
        ids: [n] rows of the subgraph        out: as of predict
        """
        ids = _numbers(ids, "ids")
        out = self._room(ids.size, self.row_shape, out)
        with self._brought(tables):
            self._call("predict_subgraph", ids.size, ids.ctypes.data, out.ctypes.data)
        return out

    def embed_subgraph(self, layer: str, tables: Mapping[Any, Any], ids: Any, out: Optional[np.ndarray] = None) -> np.ndarray:
        """Rows of a hidden layer over a subgraph, of a session without a graph; else as embed and predict_subgraph."""
        ids = _numbers(ids, "ids")
        shape = _abi.Shape.make()
        self._call("layer", layer.encode(), None, None, ctypes.byref(shape.rank), shape.dim)
        out = self._room(ids.size, shape.tuple(), out)
        with self._brought(tables):
            self._call("embed_subgraph", layer.encode(), ids.size, ids.ctypes.data, out.ctypes.data)
        return out

    def _brought(self, tables: Mapping[Any, Any]) -> Subgraph:
        pointer = _abi.Handle()
        self._call("subgraph", ctypes.byref(pointer))
        graph = Subgraph(pointer, self._lent)
        graph._fill(tables)
        graph.commit()
        return graph

    @property
    def whole(self) -> Dict[str, Whole]:
        """What the model computes of the whole graph and a prediction reads, by its column's name."""
        return {info.name.decode(): Whole(info.table and info.table.decode(), list(_abi.TABLES)[info.kind],
                                          tuple(info.shape[:info.rank])) for info in self._wholes()}

    def _wholes(self) -> Any:
        for i in range(self._ask("n_whole_graph_values")):
            info = _abi.WholeInfo()
            self._call("whole_graph_value", i, ctypes.byref(info))
            yield info

    def _which(self, name: str) -> int:
        names = list(self.whole)
        if name not in names:
            raise Error("E_MISSING", f"nothing is computed of the whole graph that is called '{name}': {names}")
        return names.index(name)

    def read_whole(self, name: str, ids: Any = None) -> np.ndarray:
        """Rows of one of `whole`, of a session over a graph: float32 [n, ..]; of no table without ids: [..]."""
        i, of = self._which(name), self.whole[name]
        rows = None if ids is None else _numbers(ids, "ids")
        out = np.empty((() if rows is None else (rows.size,)) + of.shape, dtype=np.float32)
        self._call("read_whole_graph_value", i, 1 if rows is None else rows.size, _at(rows), out.ctypes.data)
        return out

    def set_whole(self, name: str, values: Any) -> None:
        """Gives one of `whole` that is of no table to a session without a graph, for all subgraphs to come."""
        i, of = self._which(name), self.whole[name]
        x = np.asarray(values, dtype=np.float32, order="C")
        if x.shape != of.shape:
            raise Error("E_SHAPE", f"'{name}' is {list(of.shape)}, not {list(x.shape)}")
        self._call("set_whole_graph_value", i, x.ctypes.data)

    def legend(self) -> Legend:
        """What rows are called, what numbers mean, and probabilities, of a session over a graph."""
        return Legend(self)

    def set_seed(self, seed: int) -> None:
        """What is drawn for a row, of a model by time or compiled with --draw, is a function of this and the row."""
        self._call("set_seed", seed)

    def link_sizes(self) -> Tuple[int, int, int]:
        """Of a model of links: sources, destinations, and kinds of links."""
        sizes = (ctypes.c_int64 * 3)()
        at = [ctypes.cast(ctypes.byref(sizes, 8 * i), ctypes.POINTER(ctypes.c_int64)) for i in range(3)]
        self._call("link_sizes", *at)
        return sizes[0], sizes[1], sizes[2]

    @property
    def pair_columns(self) -> List[str]:
        """What predictions of links read of each pair itself, by name; of links by time when it is asked for."""
        return [self._ask("pair_column", i, None).decode() for i in range(self._ask("n_pair_columns"))]

    def _pairs(self, src: np.ndarray, dst: Optional[np.ndarray], kind: Any, columns: Optional[Mapping[str, Any]],
               held: _Held) -> _abi.Pairs:
        kinds = _kinds(kind, src)
        given = [Graph._later(held, "pairs", name, values) for name, values in (columns or {}).items()]
        held.kept += [src, dst, kinds]
        return _abi.Pairs(n=src.size, src=_at(src), dst=_at(dst), kind=_at(kinds),
                          columns=(_abi.Values * len(given))(*given), n_columns=len(given))

    def predict_links(self, src: Any, dst: Any, kind: Any = None, columns: Optional[Mapping[str, Any]] = None) -> np.ndarray:
        """The model's scores of pairs, which need not be edges: float32 [n].

        src, dst: [n] rows of both ends        kind: [n] what kind of link (docs/c-api.md), or None: 0
        columns: of each of pair_columns n rows, as Graph.append takes them
        """
        return self._score("predict_pairs", src, dst, kind, columns)

    def _score(self, name: str, src: Any, dst: Any, kind: Any, columns: Optional[Mapping[str, Any]]) -> np.ndarray:
        src = _numbers(src, "sources")
        dst = _numbers(dst, "destinations", src)
        out, held = np.empty(src.size, dtype=np.float32), _Held()
        self._call(name, ctypes.byref(self._pairs(src, dst, kind, columns, held)), _at(out))
        return out

    def top_links(self, src: Any, k: int, kind: Any = None, known: bool = False,
                  columns: Optional[Mapping[str, Any]] = None) -> Tuple[np.ndarray, np.ndarray]:
        """The k destinations of each source that score highest, best first, and their scores: [n, k] both.

        Destinations that a source has a link to, of links by time before it is asked for, are left out unless `known`;
        where fewer are left, -1 and -inf.  columns: as of predict_links, a row for each source
        """
        return self._best("top_pairs", src, k, kind, known, columns)

    def _best(self, name: str, src: Any, k: int, kind: Any, known: bool,
              columns: Optional[Mapping[str, Any]]) -> Tuple[np.ndarray, np.ndarray]:
        src = _numbers(src, "sources")
        dst = np.empty((src.size, k), dtype=np.int64)
        score, held = np.empty((src.size, k), dtype=np.float32), _Held()
        to = dst.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
        self._call(name, ctypes.byref(self._pairs(src, None, kind, columns, held)), k, int(known), to, _at(score))
        return dst, score

    def predict_subgraph_links(self, tables: Mapping[Any, Any], src: Any, dst: Any, kind: Any = None,
                               columns: Optional[Mapping[str, Any]] = None) -> np.ndarray:
        """The model's scores of pairs of a subgraph's rows, of a session without a graph: float32 [n].

        tables: as of predict_subgraph, with all edges around both ends, whichever way they lead, of as many hops as the
        model reads, for what a session over the whole graph would give        else: as of predict_links
        """
        with self._brought(tables):
            return self._score("predict_subgraph_pairs", src, dst, kind, columns)

    def top_subgraph_links(self, tables: Mapping[Any, Any], src: Any, k: int, kind: Any = None, known: bool = False,
                           columns: Optional[Mapping[str, Any]] = None) -> Tuple[np.ndarray, np.ndarray]:
        """As top_links, among the rows of a subgraph; tables as of predict_subgraph_links."""
        with self._brought(tables):
            return self._best("top_subgraph_pairs", src, k, kind, known, columns)

    def __repr__(self) -> str:
        return f"<Session of {_facts.MODEL}: {self.rows} rows of {list(self.row_shape)}>"
