"""Models to Python modules, kept by content in the user's cache."""
from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import json
import logging
import os
import platform
import re
import shutil
import sys
import tempfile
import threading
from types import ModuleType
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._library import Compiler, DataError, Diagnostic, OptionError, Result, STATUS, _bytes, library

Path = Union[str, "os.PathLike[str]"]
Value = Union[None, bool, str, int, float]
_log = logging.getLogger("gnnc")
_loading = threading.Lock()

version: str = library.version().decode()


# ---- what a call asks for ----------------------------------------------------------------------
def options() -> Dict[str, str]:
    """The options that compile() takes beside those of its own, and what each is."""
    found: Dict[str, str] = {}
    i = 0
    while (name := library.option_name(i)) is not None:
        if name.decode() not in _OWN:
            found[name.decode().lstrip("-").replace("-", "_")] = library.option_help(i).decode()
        i += 1
    return found


_OWN = ("-o", "--name", "-MD", "-MF", "-D", "-I", "--emit", "--keep", "-v")


def _names() -> Dict[str, str]:
    """"opt_level" -> "--opt-level", "O0" -> "-O0"."""
    found = {}
    i = 0
    while (name := library.option_name(i)) is not None:
        text = name.decode()
        found[text.lstrip("-").replace("-", "_")] = text
        i += 1
    return found


def _settings(given: Mapping[str, Value]) -> List[Tuple[str, Optional[str]]]:
    names, found = _names(), []
    for name, value in given.items():
        option = names.get(name)
        if option is None or option in _OWN:
            raise OptionError(f"there is no option '{name}'; gnnc.options() lists them")
        if value is True:
            found.append((option, None))
        elif value is not False and value is not None:
            found.append((option, str(value)))
    return found


class _Job:
    """A model with its options; text in memory is a file in the working directory, for its imports."""

    def __init__(self, model: Path, name: Optional[str], define: Optional[Mapping[str, Value]], include: Sequence[Path],
                 files: Optional[Mapping[str, str]], given: Mapping[str, Value]) -> None:
        path = os.fspath(model)
        self.files = dict(files or {})
        is_text = isinstance(path, str) and "\n" in path
        if is_text:
            self.files["model.gnn"], path = path, "model.gnn"
        self.path = os.fsdecode(path)
        stem = re.sub(r"\W", "_", os.path.splitext(os.path.basename(self.path))[0], flags=re.ASCII)
        self.name = name if name is not None else stem
        self.settings = _settings(given)
        self.settings += [("-D", f"{n}={'true' if v is True else 'false' if v is False else v}") for n, v in (define or {}).items()]
        self.settings += [("-I", os.fspath(d)) for d in include]

    def run(self, function: Any, more: Sequence[Tuple[str, Optional[str]]] = ()) -> Result:
        return Compiler([*self.settings, *more], self.files).run(function, _bytes("the path", self.path))

    def key(self, files: Sequence[str]) -> str:
        """Of all that decides what is made: texts, options, the compiler, the machine."""
        h = hashlib.sha256()
        said = [version, _identity(), self.name, self.settings, self.path,
                [os.environ.get(v) for v in ("CC", "CFLAGS", "CUDA_HOME")]]
        h.update(json.dumps(said).encode())
        for path in sorted(set(files)):  # a program of several variants reads them several times
            h.update(b"\0" + os.fsencode(path) + b"\0")
            plain = os.path.normpath(path)
            text = next((t for n, t in self.files.items() if os.path.normpath(n) == plain), None)
            h.update(hashlib.sha256(_read(path) if text is None else text.encode()).digest())
        return h.hexdigest()


def _read(path: str) -> bytes:
    with open(path, "rb") as f:
        return f.read()


@functools.lru_cache(maxsize=None)
def _identity() -> List[Any]:
    """This compiler and this machine, whose kernels are compiled for its own processor."""
    folder = os.path.dirname(library.path)
    told: List[Any] = [platform.machine(), platform.system()]
    for path in (library.path, os.path.join(folder, "libgnnrt.a"), os.path.join(folder, "gnnc", "libgnnrt.a")):
        if os.path.exists(path):
            s = os.stat(path)
            told.append([path, s.st_size, s.st_mtime_ns])
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
            told += sorted({line for line in f if re.match(r"(model name|flags|Features|CPU part)\s*:", line)})
    except OSError:
        pass
    return told


# ---- modules -------------------------------------------------------------------------------------
def cache_dir() -> str:
    """Where compiled models are kept: $XDG_CACHE_HOME/gnnc, else ~/.cache/gnnc.  It may be removed at any time."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "gnnc")


def _build(job: _Job, folder: str) -> Result:
    result = job.run(library.compile, [("--emit", "python"), ("-o", os.path.join(folder, job.name)), ("--name", job.name)])
    result.raise_for_status()
    for d in result.diagnostics:
        _log.warning("%s", d)
    for entry in os.listdir(folder):
        if entry.endswith(".whl"):
            os.unlink(os.path.join(folder, entry))
    return result


def _keep(job: _Job, cache: str) -> str:
    """The folder of the model, made whole and then renamed; another process may be faster."""
    made = tempfile.mkdtemp(prefix="making-", dir=cache)
    try:
        result = _build(job, made)
        place = os.path.join(cache, job.key(result.files))
        try:
            os.rename(made, place)
        except OSError:
            if not os.path.isdir(place):
                raise
        return place
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _can_keep(cache: str) -> bool:
    try:
        os.makedirs(cache, mode=0o700, exist_ok=True)
    except OSError as e:
        _log.warning("compiled models are not kept: %s", e)
        return False
    return True


def _load(folder: str, job: _Job, key: str) -> ModuleType:
    """The package as a module, the same object for the same model."""
    full = f"gnnc.{job.name}_{key[:16]}"
    with _loading:
        if full in sys.modules:
            return sys.modules[full]
        package = os.path.join(folder, job.name)
        spec = importlib.util.spec_from_file_location(full, os.path.join(package, "__init__.py"),
                                                      submodule_search_locations=[package])
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[full] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            for name in [n for n in sys.modules if n == full or n.startswith(full + ".")]:
                del sys.modules[name]
            raise
        return module


def compile(model: Path, *, name: Optional[str] = None, define: Optional[Mapping[str, Value]] = None,  # pylint: disable=redefined-builtin
            include: Sequence[Path] = (), files: Optional[Mapping[str, str]] = None, cache: bool = True,
            **given: Value) -> ModuleType:
    """Compiles a model and imports it: a module with Graph, Trainer, Model and Session.

    model    the path of a .gnn file, or the text of one, which has more than one line
    name     what the model is called (default: the file's name)
    define   constants of the model: {"hidden": 64}
    include  folders where imports are looked for, beside the model's own and the layer library's
    files    texts that stand for files of these names in imports
    cache    keep what was compiled, and take it from there if it was

    Other options are those of the command line, without dashes and with _ for -: precision="bf16", O0=True; options()
    lists them.  Raises CompileError, OptionError.
    """
    job = _Job(model, name, define, include, files, given)
    checked = job.run(library.check)
    checked.raise_for_status()
    data = any(option in ("--specialize", "--data") for option, _ in job.settings)  # which are no part of the key
    if not cache or data or not _can_keep(cache_dir()):
        with tempfile.TemporaryDirectory(prefix="gnnc-") as folder:
            _build(job, folder)
            return _load(folder, job, os.path.basename(folder)[len("gnnc-"):])
    place = os.path.join(cache_dir(), job.key(checked.files))
    if not os.path.isdir(place):
        place = _keep(job, cache_dir())
    return _load(place, job, os.path.basename(place))


def check(model: Path, *, define: Optional[Mapping[str, Value]] = None, include: Sequence[Path] = (),
          files: Optional[Mapping[str, str]] = None, **given: Value) -> List[Diagnostic]:
    """What is wrong with a model, and what may be: errors and warnings; [] = nothing."""
    result = _Job(model, None, define, include, files, given).run(library.check)
    if result.status not in (STATUS["OK"], STATUS["E_DIAGNOSED"]):
        result.raise_for_status()
    return result.diagnostics


def emit(model: Path, kind: str, *, define: Optional[Mapping[str, Value]] = None, include: Sequence[Path] = (),
         files: Optional[Mapping[str, str]] = None, **given: Value) -> Union[str, bytes]:
    """What the compiler makes of a model on its way: "ir", "plan", "loops", "llvm", "asm", "c", "cuda", "header" as text,
    "obj" and "exe" as bytes."""
    result = _Job(model, None, define, include, files, given).run(library.compile, [("--emit", kind)])
    result.raise_for_status()
    return result.data if kind in ("obj", "exe") else result.data.decode()


def import_data(*inputs: Path, out: Path, **given: Union[Value, Sequence[str]]) -> str:
    """Makes the data directory `out` of other files, as `gnnc import` does, and returns what that tells.

    import_data("nodes.csv", "edges.csv", out="data", split="80/10/10", force=True).  A list gives an option several times.
    Raises DataError, OptionError.
    """
    words = [os.fspath(i) for i in inputs] + ["-o", os.fspath(out)]
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        values = value if isinstance(value, (list, tuple)) else [value]
        for v in values:
            if v is True:
                words.append(option)
            elif v is not False and v is not None:
                words += [option, str(v)]
    args = (ctypes.c_char_p * len(words))(*[_bytes("a word", w) for w in words])
    result = Compiler([], {}).run(library.__getattribute__("import"), len(words), args)
    if result.status == STATUS["E_OPTION"]:
        raise OptionError(result.text.strip())
    if result.status:
        raise DataError(result.text.strip())
    for line in result.text.splitlines() if result.text != "success" else ():
        _log.warning("%s", line)
    return result.data.decode(errors="replace")
