"""gnnc.h, the C interface of a compiled model, as ctypes sees it.

Held against that header by tests/e2e/python.py: every structure, constant and function here.
"""
from __future__ import annotations

import ctypes
import os
import weakref
from ctypes import POINTER, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_void_p
from threading import get_ident
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, TypeVar

from . import _facts

MAX_RANK = 8
STATUS = {"OK": 0, "E_NOMEM": -1, "E_SHAPE": -2, "E_RANGE": -3, "E_IO": -4, "E_FORMAT": -5, "E_DTYPE": -6,
          "E_VALUE": -7, "E_MISSING": -8, "E_ARG": -9, "E_STATE": -10, "E_LIMIT": -11, "E_ASSERT": -12,
          "E_DEVICE": -13, "E_EXTERN": -14, "E_STOPPED": -15}
# A gnnc_element by NumPy's name of it; NumPy itself has no bfloat16, its extensions have.
ELEMENTS = {"float16": 1, "float32": 2, "float64": 3, "int8": 4, "int16": 5, "int32": 6, "int64": 7, "uint8": 8,
            "uint16": 9, "uint32": 10, "uint64": 11, "bool": 12, "bfloat16": 13}
BY = {"source": 0, "destination": 1}
KINDS = {"float": 0, "csr": 1, "cat": 2, "class": 3, "multilabel": 4, "time": 5, "id": 6, "split": 7}
TABLES = {"nodes": 0, "edges": 1, "graphs": 2}
FORMATS = {"npy": 0, "csv": 1, "jsonl": 2}
OPTION_TYPES = {"int": 0, "real": 1, "text": 2}

Handle = c_void_p
Dims = c_int64 * MAX_RANK
# They are given functions that are written in C (dict.pop, list.append, ..): before those the interpreter
# does not look for signals, so that no Ctrl-C is lost in a callback.
Done = ctypes.CFUNCTYPE(None, c_void_p)
Message = ctypes.CFUNCTYPE(None, ctypes.py_object, c_char_p)
Progress = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
Write = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t, c_size_t)


hears = Message(list.append)  # of a list, by its id


class Struct(ctypes.Structure):
    """A structure of the library, which knows its own size."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)


class Array(Struct):
    _fields_ = [("struct_size", c_size_t), ("data", c_void_p), ("dtype", c_int32), ("rank", c_int32),
                ("shape", Dims), ("stride", Dims), ("strided", c_int32), ("borrowed", c_int32), ("done", Done),
                ("user", c_void_p)]


class TableInfo(Struct):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("count", c_int64), ("kind", c_int32),
                ("n_columns", c_int32), ("src_type", c_char_p), ("dst_type", c_char_p), ("graphs", c_char_p)]


class ColumnInfo(Struct):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("kind", c_int32), ("rank", c_int32), ("shape", Dims),
                ("n_categories", c_int64), ("names", POINTER(c_char_p)), ("n_entries", c_int64), ("n_splits", c_int64)]


class Values(Struct):
    _fields_ = [("struct_size", c_size_t), ("column", c_char_p), ("values", POINTER(Array)), ("ptr", POINTER(Array)),
                ("idx", POINTER(Array)), ("names", POINTER(c_char_p)), ("n_categories", c_int64), ("encoder", Handle)]


class Rows(Struct):
    _fields_ = [("struct_size", c_size_t), ("table", c_char_p), ("count", c_int64), ("src", POINTER(Array)),
                ("dst", POINTER(Array)), ("columns", POINTER(Values)), ("n_columns", c_int32), ("first", c_int64),
                ("error", ctypes.c_char * 512)]


class Pairs(Struct):
    _fields_ = [("struct_size", c_size_t), ("n", c_int64), ("src", c_void_p), ("dst", c_void_p), ("kind", c_void_p),
                ("columns", POINTER(Values)), ("n_columns", c_int32)]


class WholeInfo(Struct):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("table", c_char_p), ("kind", c_int32), ("rank", c_int32),
                ("shape", Dims)]


class LegendInfo(Struct):
    _fields_ = [("struct_size", c_size_t), ("table", c_char_p), ("destinations", c_char_p), ("n_rows", c_int64), ("n_table", c_int64),
                ("n_destinations", c_int64), ("width", c_int64), ("rank", c_int32), ("dim", Dims), ("outcome", c_char_p),
                ("word", c_char_p), ("has_classes", c_int32), ("has_labels", c_int32), ("has_ids", c_int32)]


class Written(Struct):
    _fields_ = [("struct_size", c_size_t), ("format", c_int32), ("top", c_int64), ("n", c_int64), ("row", c_void_p),
                ("destination", c_void_p), ("values", c_void_p)]


class Encoded(Struct):
    _fields_ = [("struct_size", c_size_t), ("column", c_char_p), ("from", c_char_p), ("kind", c_int), ("dtype", c_int32),
                ("width", c_int32), ("n_categories", c_int64), ("names", POINTER(c_char_p)), ("may_lack", c_int), ("n_from", c_int32)]


class Cells(Struct):
    _fields_ = [("struct_size", c_size_t), ("column", c_char_p), ("texts", POINTER(c_char_p)), ("numbers", c_void_p)]


class Raw(Struct):
    _fields_ = [("struct_size", c_size_t), ("table", c_char_p), ("count", c_int64), ("columns", POINTER(Cells)),
                ("n_columns", c_int32), ("bad_row", c_int64), ("error", ctypes.c_char * 512)]


class OptionInfo(Struct):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("help", c_char_p), ("type", c_int), ("settable", c_int),
                ("is_set", c_int), ("int_value", c_int64), ("int_default", c_int64), ("int_least", c_int64),
                ("int_most", c_int64), ("real_value", c_double), ("real_default", c_double), ("real_least", c_double),
                ("real_most", c_double), ("text_value", c_char_p), ("text_default", c_char_p)]


class MetricInfo(Struct):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("of", c_char_p), ("split", c_char_p),
                ("is_logged", c_int), ("known", c_int), ("value", c_double)]


class Baseline(Struct):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("metric", c_char_p), ("val", c_double), ("test", c_double)]


STRUCTS = {"gnnc_array": Array, "gnnc_table_info": TableInfo, "gnnc_column_info": ColumnInfo,
           "gnnc_values": Values, "gnnc_rows": Rows, "gnnc_pairs": Pairs, "gnnc_whole_graph_value": WholeInfo,
           "gnnc_legend_info": LegendInfo, "gnnc_written": Written,
           "gnnc_encoded": Encoded, "gnnc_cells": Cells, "gnnc_raw": Raw, "gnnc_option": OptionInfo, "gnnc_metric_info": MetricInfo,
           "gnnc_baseline": Baseline}
_names = POINTER(c_char_p)
_values = (POINTER(POINTER(c_float)), POINTER(c_int), POINTER(c_int64))

# name: what it returns, what it takes.
FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "gnnc_status_text": (c_char_p, [c_int]),
    "gnnc_version": (c_char_p, []),
    "gnnc_graph_create": (c_int, [POINTER(Handle)]),
    "gnnc_graph_release": (None, [Handle]),
    "gnnc_graph_error": (c_char_p, [Handle]),
    "gnnc_graph_read": (c_int, [Handle, c_char_p, c_int]),
    "gnnc_graph_add_nodes": (c_int, [Handle, c_char_p, c_int64]),
    "gnnc_graph_add_graphs": (c_int, [Handle, c_char_p, c_int64]),
    "gnnc_graph_divide": (c_int, [Handle, c_char_p, c_char_p, POINTER(Array)]),
    "gnnc_graph_add_edges": (c_int, [Handle, c_char_p, c_char_p, c_char_p, POINTER(Array), POINTER(Array)]),
    "gnnc_graph_add_edges_csr": (c_int, [Handle, c_char_p, c_char_p, c_char_p, c_int, POINTER(Array), POINTER(Array)]),
    "gnnc_graph_add_column": (c_int, [Handle, c_char_p, c_char_p, c_int, POINTER(Array), c_int64, _names]),
    "gnnc_graph_add_csr": (c_int, [Handle, c_char_p, c_char_p, c_int64, *3 * [POINTER(Array)]]),
    "gnnc_graph_add_masks": (c_int, [Handle, c_char_p, c_char_p, *3 * [POINTER(Array)]]),
    "gnnc_graph_array_dlpack": (c_int, [Handle, c_void_p, POINTER(Array)]),
    "gnnc_graph_add_arrow": (c_int, [Handle, c_char_p, c_void_p, c_void_p, c_int, _names, POINTER(c_int)]),
    "gnnc_graph_commit": (c_int, [Handle]),
    "gnnc_graph_append": (c_int, [Handle, POINTER(Rows)]),
    "gnnc_graph_n_tables": (c_int, [Handle]),
    "gnnc_graph_table_info": (c_int, [Handle, c_int, POINTER(TableInfo)]),
    "gnnc_graph_column_info": (c_int, [Handle, c_int, c_int, POINTER(ColumnInfo)]),
    "gnnc_trainer_create": (c_int, [POINTER(Handle), c_void_p]),
    "gnnc_trainer_destroy": (None, [Handle]),
    "gnnc_trainer_error": (c_char_p, [Handle]),
    "gnnc_trainer_set_int": (c_int, [Handle, c_char_p, c_int64]),
    "gnnc_trainer_set_real": (c_int, [Handle, c_char_p, c_double]),
    "gnnc_trainer_set_text": (c_int, [Handle, c_char_p, c_char_p]),
    "gnnc_trainer_n_options": (c_int, [Handle]),
    "gnnc_trainer_option": (c_int, [Handle, c_int, POINTER(OptionInfo)]),
    "gnnc_trainer_device": (c_char_p, [Handle]),
    "gnnc_trainer_set_stream": (c_int, [Handle, c_void_p]),
    "gnnc_trainer_set_message": (c_int, [Handle, Message, c_void_p]),
    "gnnc_trainer_load": (c_int, [Handle, c_char_p]),
    "gnnc_trainer_load_graph": (c_int, [Handle, Handle]),
    "gnnc_trainer_set_progress": (c_int, [Handle, Progress, c_void_p]),
    "gnnc_trainer_epoch": (c_int, [Handle]),
    "gnnc_trainer_steps_left": (c_int64, [Handle]),
    "gnnc_trainer_steps_done": (c_int64, [Handle]),
    "gnnc_trainer_done": (c_int, [Handle]),
    "gnnc_trainer_stop": (None, [Handle]),
    "gnnc_trainer_epochs_done": (c_int64, [Handle]),
    "gnnc_trainer_epochs_total": (c_int64, [Handle]),
    "gnnc_trainer_keep_best": (c_int, [Handle, POINTER(c_int64)]),
    "gnnc_trainer_kept_step": (c_int64, [Handle]),
    "gnnc_trainer_evaluate": (c_int, [Handle]),
    "gnnc_trainer_n_metrics": (c_int, [Handle]),
    "gnnc_trainer_metric_info": (c_int, [Handle, c_int, POINTER(MetricInfo)]),
    "gnnc_trainer_n_baselines": (c_int, [Handle]),
    "gnnc_trainer_baseline": (c_int, [Handle, c_int, POINTER(Baseline)]),
    "gnnc_trainer_predict": (c_int, [Handle, *_values]),
    "gnnc_trainer_predict_rows": (c_int, [Handle, c_int64, c_void_p, c_void_p]),
    "gnnc_trainer_embed": (c_int, [Handle, c_char_p, *_values]),
    "gnnc_trainer_n_layers": (c_int, [Handle]),
    "gnnc_trainer_layer_name": (c_char_p, [Handle, c_int]),
    "gnnc_trainer_n_parameters": (c_int, [Handle]),
    "gnnc_trainer_parameter_info": (c_int, [Handle, c_int, POINTER(c_char_p), POINTER(c_int), POINTER(c_int64)]),
    "gnnc_trainer_get_parameter": (c_int, [Handle, c_char_p, c_void_p, c_size_t]),
    "gnnc_trainer_set_parameter": (c_int, [Handle, c_char_p, c_void_p, c_size_t]),
    "gnnc_trainer_save": (c_int, [Handle, c_char_p]),
    "gnnc_trainer_save_to": (c_int, [Handle, Write, c_void_p]),
    "gnnc_trainer_save_weights": (c_int, [Handle, c_char_p]),
    "gnnc_trainer_save_weights_to": (c_int, [Handle, Write, c_void_p]),
    "gnnc_trainer_resume": (c_int, [Handle, c_char_p]),
    "gnnc_trainer_resume_from": (c_int, [Handle, c_void_p, c_size_t]),
    "gnnc_trainer_load_weights": (c_int, [Handle, c_char_p]),
    "gnnc_trainer_load_weights_from": (c_int, [Handle, c_void_p, c_size_t]),
    "gnnc_trainer_to_model": (c_int, [Handle, c_void_p, POINTER(Handle)]),
    "gnnc_model_create": (c_int, [POINTER(Handle), c_void_p]),
    "gnnc_model_release": (None, [Handle]),
    "gnnc_model_error": (c_char_p, [Handle]),
    "gnnc_model_n_metrics": (c_int, [Handle]),
    "gnnc_model_metric_info": (c_int, [Handle, c_int, POINTER(MetricInfo)]),
    "gnnc_trainer_load_model": (c_int, [Handle, Handle]),
    "gnnc_model_load": (c_int, [Handle, c_char_p]),
    "gnnc_model_load_from": (c_int, [Handle, c_void_p, c_size_t]),
    "gnnc_session_create": (c_int, [POINTER(Handle)]),
    "gnnc_session_destroy": (None, [Handle]),
    "gnnc_session_error": (c_char_p, [Handle]),
    "gnnc_session_set_message": (c_int, [Handle, Message, c_void_p]),
    "gnnc_session_set_device": (c_int, [Handle, c_char_p]),
    "gnnc_session_device": (c_char_p, [Handle]),
    "gnnc_session_set_stream": (c_int, [Handle, c_void_p]),
    "gnnc_session_open": (c_int, [Handle, Handle, Handle]),
    "gnnc_session_clone": (c_int, [POINTER(Handle), Handle]),
    "gnnc_session_rows": (c_int64, [Handle]),
    "gnnc_session_row_shape": (c_int, [Handle, POINTER(c_int), POINTER(c_int64)]),
    "gnnc_session_predict": (c_int, [Handle, c_int64, c_void_p, c_void_p]),
    "gnnc_session_n_layers": (c_int, [Handle]),
    "gnnc_session_layer_name": (c_char_p, [Handle, c_int]),
    "gnnc_session_layer": (c_int, [Handle, c_char_p, POINTER(c_char_p), POINTER(c_int64), POINTER(c_int), POINTER(c_int64)]),
    "gnnc_session_embed": (c_int, [Handle, c_char_p, c_int64, c_void_p, c_void_p]),
    "gnnc_session_set_seed": (c_int, [Handle, c_int64]),
    "gnnc_session_open_model": (c_int, [Handle, Handle]),
    "gnnc_session_subgraph": (c_int, [Handle, POINTER(Handle)]),
    "gnnc_session_embed_subgraph": (c_int, [Handle, c_char_p, c_int64, c_void_p, c_void_p]),
    "gnnc_session_predict_subgraph": (c_int, [Handle, c_int64, c_void_p, c_void_p]),
    "gnnc_session_n_whole_graph_values": (c_int, [Handle]),
    "gnnc_session_whole_graph_value": (c_int, [Handle, c_int, POINTER(WholeInfo)]),
    "gnnc_session_read_whole_graph_value": (c_int, [Handle, c_int, c_int64, c_void_p, c_void_p]),
    "gnnc_session_set_whole_graph_value": (c_int, [Handle, c_int, c_void_p]),
    "gnnc_session_link_sizes": (c_int, [Handle, POINTER(c_int64), POINTER(c_int64), POINTER(c_int64)]),
    "gnnc_session_n_pair_columns": (c_int, [Handle]),
    "gnnc_session_pair_column": (c_char_p, [Handle, c_int, c_void_p]),
    "gnnc_session_predict_pairs": (c_int, [Handle, POINTER(Pairs), c_void_p]),
    "gnnc_session_top_pairs": (c_int, [Handle, POINTER(Pairs), c_int64, c_int, POINTER(c_int64), c_void_p]),
    "gnnc_session_predict_subgraph_pairs": (c_int, [Handle, POINTER(Pairs), c_void_p]),
    "gnnc_session_top_subgraph_pairs": (c_int, [Handle, POINTER(Pairs), c_int64, c_int, POINTER(c_int64), c_void_p]),
    "gnnc_trainer_legend": (c_int, [Handle, POINTER(Handle)]),
    "gnnc_session_legend": (c_int, [Handle, POINTER(Handle)]),
    "gnnc_legend_destroy": (None, [Handle]),
    "gnnc_legend_error": (c_char_p, [Handle]),
    "gnnc_legend_describe": (c_int, [Handle, POINTER(LegendInfo)]),
    "gnnc_legend_value": (c_char_p, [Handle, c_int64]),
    "gnnc_legend_id": (c_char_p, [Handle, c_int, c_int64]),
    "gnnc_legend_highest": (c_int64, [Handle, c_void_p]),
    "gnnc_legend_convert": (c_int, [Handle, c_int64, c_void_p, c_void_p]),
    "gnnc_legend_find": (c_int, [Handle, c_char_p, POINTER(c_int64)]),
    "gnnc_legend_links": (c_int, [Handle, c_int64, POINTER(c_int64), c_int64, POINTER(c_int64)]),
    "gnnc_legend_ends": (c_int, [Handle, c_int64, POINTER(c_int64), POINTER(c_int64)]),
    "gnnc_legend_write": (c_int, [Handle, c_char_p, POINTER(Written)]),
    "gnnc_encoder_create": (c_int, [POINTER(Handle)]),
    "gnnc_encoder_destroy": (None, [Handle]),
    "gnnc_encoder_error": (c_char_p, [Handle]),
    "gnnc_encoder_read": (c_int, [Handle, c_char_p]),
    "gnnc_encoder_of_model": (c_int, [Handle, Handle]),
    "gnnc_encoder_n_columns": (c_int32, [Handle, c_char_p]),
    "gnnc_encoder_column": (c_int, [Handle, c_char_p, c_int32, POINTER(Encoded)]),
    "gnnc_graph_set_encoded": (c_int, [Handle, c_char_p, c_char_p, Handle]),
    "gnnc_encoder_unchecked": (Handle, []),
    "gnnc_encoder_encode": (c_int, [Handle, POINTER(Raw), c_char_p, c_void_p, c_size_t]),
    "gnnc_encoder_append": (c_int, [Handle, POINTER(Raw), Handle, POINTER(Array), POINTER(Array), POINTER(c_int64)]),
}


class Error(RuntimeError):
    """What the library says of a call that failed.  `status` is its number in gnnc.h, `name` that one's name."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name
        self.status = STATUS[name]

    def __reduce__(self) -> Any:
        return type(self), (self.name, str(self))


def failure(status: int, text: bytes) -> Error:
    name = next((n for n, s in STATUS.items() if s == status), "E_STATE")
    return Error(name, text.decode(errors="replace"))


class Library:
    """The model's shared library, its functions declared."""

    def __init__(self, path: str) -> None:
        self._so = ctypes.CDLL(path)
        for name, (returns, takes) in FUNCTIONS.items():
            function = getattr(self._so, name)
            function.restype, function.argtypes = returns, takes
            setattr(self, name, function)
        self.version: str = self.gnnc_version().decode()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{_facts.LIBRARY} has no {name}")

    def program(self, symbol: str) -> int:
        """The address of a compiled model."""
        return ctypes.addressof(ctypes.c_char.in_dll(self._so, symbol))


library = Library(os.path.join(os.path.dirname(os.path.abspath(__file__)), _facts.LIBRARY))


class Shape(NamedTuple):
    """Where a call tells a shape."""
    rank: c_int
    dim: Any

    @classmethod
    def make(cls) -> Shape:
        return cls(c_int(), Dims())

    def tuple(self) -> Tuple[int, ...]:
        return tuple(self.dim[:self.rank.value])


def _free(destroy: Any, pointer: Handle, kept: Any) -> None:
    destroy(pointer)


def _keep(pointer: Handle) -> None:
    """Of a handle that is another object's."""


_T = TypeVar("_T", bound="Owner")


class Owner:
    """Has a handle of the library, which is freed when this object goes, or is closed.

    One thread at a time may use it: a call while another thread's is under way is an Error, no wait.
    """
    _prefix = ""
    _destroy = ""

    def _own(self, pointer: Handle, kept: Any) -> None:
        """kept: what must live as long as the handle."""
        self._pointer = pointer
        self._error = getattr(library, self._prefix + "error")
        # 0: the thread of the call under way.  A thread that a signal's exception took out of here just
        # before the end of its call may go on; a lock would stay locked.
        self._user: Dict[int, int] = {}
        destroy = getattr(library, self._destroy) if self._destroy else _keep
        self._end = weakref.finalize(self, _free, destroy, pointer, kept)
        self._end.atexit = False  # other threads may be inside a call; the process gives back all there is

    def _make(self, name: str, *args: Any, kept: Any) -> None:
        pointer = Handle()
        status = getattr(library, name)(ctypes.byref(pointer), *args)
        if status:
            raise failure(status, library.gnnc_status_text(status))
        self._own(pointer, kept)

    def _begin(self) -> None:
        me = get_ident()
        if self._user.setdefault(0, me) != me:
            raise Error("E_STATE", f"this {type(self).__name__} is in use: one thread at a time")
        if not self._end.alive:
            self._user.clear()
            raise self._closed()

    def _closed(self) -> Error:
        return Error("E_STATE", f"this {type(self).__name__} is closed")

    def _shared(self) -> Handle:
        """The handle, for a call of another object's."""
        if not self._end.alive:
            raise self._closed()
        return self._pointer

    def _try(self, name: str, *args: Any, reaching: Optional[Callable[[], Any]] = None) -> Tuple[int, bytes]:
        """A call that returns a status, and what is wrong.

        reaching: called right before it, when nothing but a ctypes.ArgumentError can keep it from being made.
        """
        self._begin()
        try:
            if reaching is not None:
                reaching()
            status = getattr(library, self._prefix + name)(self._pointer, *args)
            return status, self._error(self._pointer) if status else b""
        finally:
            self._user.clear()

    def _call(self, name: str, *args: Any) -> None:
        status, text = self._try(name, *args)
        if status:
            raise failure(status, text)

    def _ask(self, name: str, *args: Any) -> Any:
        """A call that returns a value."""
        self._begin()
        try:
            return getattr(library, self._prefix + name)(self._pointer, *args)
        finally:
            self._user.clear()

    def close(self) -> None:
        """Frees it now.  What was made of it lives on; any further call is an Error."""
        if self._end.alive:
            self._begin()
            try:
                self._end()
            finally:
                self._user.clear()

    def __enter__(self: _T) -> _T:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
