"""gnncc.h, the compiler's C interface, as ctypes sees it.

Held against that header by tests/e2e/python_compile.py.
"""
from __future__ import annotations

import ctypes
import os
import threading
import weakref
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

STATUS = {"OK": 0, "E_NOMEM": -1, "E_ARG": -2, "E_OPTION": -3, "E_DIAGNOSED": -4, "E_CANCELLED": -5, "E_FAULT": -6}
SEVERITY = ("error", "warning", "note")

Handle = c_void_p
# It is given a function that is written in C (len): before such a one the interpreter does not look for signals.
Cancel = ctypes.CFUNCTYPE(c_int, ctypes.py_object)

FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "gnncc_status_text": (c_char_p, [c_int]),
    "gnncc_version": (c_char_p, []),
    "gnncc_create": (c_int, [POINTER(Handle)]),
    "gnncc_destroy": (None, [Handle]),
    "gnncc_error": (c_char_p, [Handle]),
    "gnncc_set": (c_int, [Handle, c_char_p, c_char_p]),
    "gnncc_option_name": (c_char_p, [c_int]),
    "gnncc_option_help": (c_char_p, [c_int]),
    "gnncc_add_file": (c_int, [Handle, c_char_p, c_char_p, c_size_t]),
    "gnncc_on_cancel": (c_int, [Handle, Cancel, ctypes.py_object]),
    "gnncc_compile": (c_int, [Handle, c_char_p, POINTER(Handle)]),
    "gnncc_check": (c_int, [Handle, c_char_p, POINTER(Handle)]),
    "gnncc_import": (c_int, [Handle, c_int, POINTER(c_char_p), POINTER(Handle)]),
    "gnncc_result_destroy": (None, [Handle]),
    "gnncc_result_data": (c_void_p, [Handle, POINTER(c_size_t)]),
    "gnncc_result_text": (c_char_p, [Handle]),
    "gnncc_diag_count": (c_int, [Handle]),
    "gnncc_diag_severity": (c_int, [Handle, c_int]),
    "gnncc_diag_code": (c_char_p, [Handle, c_int]),
    "gnncc_diag_message": (c_char_p, [Handle, c_int]),
    "gnncc_diag_file": (c_char_p, [Handle, c_int]),
    "gnncc_diag_place": (None, [Handle, c_int, POINTER(c_uint32)]),
    "gnncc_result_file": (c_char_p, [Handle, c_int]),
}


def _find() -> str:
    """In the package, as the wheel has it; else in the build tree that the package lies in."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(here, "lib", "libgnncc.so"),
              os.path.normpath(os.path.join(here, "..", "..", "..", "build", "libgnncc.so"))]
    for path in places:
        if os.path.exists(path):
            return path
    raise ImportError("there is no libgnncc.so: neither %s nor %s; run make" % tuple(places))


class Library:
    """libgnncc.so, its functions declared."""

    def __init__(self) -> None:
        self.path = os.path.realpath(_find())
        self._so = ctypes.CDLL(self.path)
        for name, (returns, takes) in FUNCTIONS.items():
            function = getattr(self._so, name)
            function.restype, function.argtypes = returns, takes
            setattr(self, name[len("gnncc_"):], function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"libgnncc.so has no gnncc_{name}")


library = Library()


@dataclass(frozen=True)
class Diagnostic:
    """What is wrong, or may be, and where: lines and columns count from 1, columns in bytes; None: no place."""
    severity: str
    code: Optional[str]
    message: str
    file: Optional[str] = None
    line: Optional[int] = None
    column: Optional[int] = None
    end_line: Optional[int] = None
    end_column: Optional[int] = None
    notes: Tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}: " if self.file else ""
        code = f"  [{self.code}]" if self.code else ""
        return f"{place}{self.severity}: {self.message}{code}"


class CompileError(Exception):
    """A model does not compile.  str() is what the command line prints; `diagnostics` has it as values."""

    def __init__(self, text: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(text)
        self.diagnostics = tuple(diagnostics)

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.diagnostics)


class OptionError(ValueError):
    """There is no such option, not with that value, or not with the others."""


class DataError(RuntimeError):
    """Data could not be imported; the message has the file and the row."""


def _text(s: Optional[bytes]) -> str:
    return (s or b"").decode(errors="replace")


class Result:
    """What a call made, told and found."""

    def __init__(self, status: int, pointer: Handle) -> None:
        self.status = status
        self._pointer = pointer
        self._end = weakref.finalize(self, library.result_destroy, pointer)
        if status == STATUS["E_NOMEM"]:
            raise MemoryError(_text(library.status_text(status)))

    @property
    def text(self) -> str:
        return _text(library.result_text(self._pointer)) or _text(library.status_text(self.status))

    @property
    def data(self) -> bytes:
        n = c_size_t()
        at = library.result_data(self._pointer, ctypes.byref(n))
        return ctypes.string_at(at, n.value) if at else b""

    @property
    def files(self) -> List[str]:
        found: List[str] = []
        while (name := library.result_file(self._pointer, len(found))) is not None:
            found.append(os.fsdecode(name))
        return found

    def _one(self, i: int) -> Diagnostic:
        at = (c_uint32 * 4)()
        file, code = library.diag_file(self._pointer, i), library.diag_code(self._pointer, i)
        library.diag_place(self._pointer, i, at)
        place = (os.fsdecode(file), *at) if file is not None else ()
        return Diagnostic(SEVERITY[library.diag_severity(self._pointer, i)], code.decode() if code else None,
                          _text(library.diag_message(self._pointer, i)), *place)

    @property
    def diagnostics(self) -> List[Diagnostic]:
        found: List[List[Diagnostic]] = []
        for i in range(library.diag_count(self._pointer)):
            d = self._one(i)
            if d.severity == "note" and found:
                found[-1].append(d)
            else:
                found.append([d])
        return [Diagnostic(**{**d.__dict__, "notes": tuple(notes)}) for d, *notes in found]

    def raise_for_status(self) -> None:
        if self.status == STATUS["E_OPTION"]:
            raise OptionError(self.text.strip())
        if self.status:
            raise CompileError(self.text.rstrip("\n"), self.diagnostics)


def _bytes(what: str, s: str) -> bytes:
    b = os.fsencode(s)
    if b"\0" in b:
        raise ValueError(f"{what} has a NUL character in it: {s!r}")
    return b


class Compiler:
    """Options and files in memory."""

    def __init__(self, options: Iterable[Tuple[str, Optional[str]]], files: Mapping[str, str]) -> None:
        self._pointer = Handle()
        self._stop: List[None] = []
        self._asks = Cancel(len)
        if library.create(ctypes.byref(self._pointer)):
            raise MemoryError("out of memory")
        self._end = weakref.finalize(self, library.destroy, self._pointer)
        self._try(library.on_cancel, self._asks, self._stop)
        for name, value in options:
            self._try(library.set, _bytes("an option", name), None if value is None else _bytes(name, value))
        for name, text in files.items():
            b = text.encode()
            self._try(library.add_file, _bytes("a file's name", name), b, len(b))

    def _try(self, function: Callable[..., int], *args: Any) -> None:
        status = function(self._pointer, *args)
        if status == STATUS["E_NOMEM"]:
            raise MemoryError("out of memory")
        if status:
            raise OptionError(_text(library.error(self._pointer)) or _text(library.status_text(status)))

    def run(self, function: Callable[..., int], *args: Any) -> Result:
        """A call beside this thread, which hears Ctrl-C meanwhile and cancels it."""
        pointer, status = Handle(), [STATUS["E_NOMEM"]]
        begin: List[None] = [None]  # whoever takes it decides whether the call is made
        ended: List[None] = []
        done = threading.Lock()
        done.acquire()

        def call() -> None:
            if not _take(begin):
                return
            try:
                status[0] = function(self._pointer, *args, ctypes.byref(pointer))
            finally:
                ended.append(None)
                done.release()

        try:
            threading.Thread(target=call, name="gnnc", daemon=True).start()
            done.acquire()  # not Thread.join(), which takes a thread for ended once it was interrupted
        except BaseException:
            self._stop.append(None)
            if not _take(begin):
                _wait(done, ended)
            library.result_destroy(pointer)
            raise
        return Result(status[0], pointer)


def _take(begin: List[None]) -> bool:
    """Of several threads, one gets it."""
    try:
        begin.pop()
        return True
    except IndexError:
        return False


def _wait(done: threading.Lock, ended: List[None]) -> None:
    """Whatever else arrives: what the other thread works on is freed behind it.

    A signal may come when `done` has just been acquired: then the other thread has ended.
    """
    while not ended:
        try:
            done.acquire()
        except BaseException:  # pylint: disable=broad-except
            continue
