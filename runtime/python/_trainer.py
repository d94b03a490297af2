"""Training, from Python: gnnc_trainer_*."""
from __future__ import annotations

import ctypes
import logging
import operator
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple, TypedDict, Union

import numpy as np

from . import _abi, _facts
from ._abi import Error, library
from ._graph import Graph, _at, _numbers
from ._legend import Legend

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._session import Model

Path = Union[str, "os.PathLike[str]"]
Source = Union[Path, bytes, bytearray, memoryview]

_STOPPED = _abi.STATUS["E_STOPPED"]
# After each step the library asks whether to go on: no (a pointer is not None).  Then Python's own loop does, where
# signals are seen.
_after_each_step = _abi.Progress(operator.ne)


class Options(TypedDict, total=False):
    """GNNC_OPTION_MAP of gnnc.h; Trainer.options() tells of each."""
    epochs: int
    eval_every: int
    eval_every_steps: int
    eval_rows: int
    seed: int
    lr: float
    weight_decay: float
    batch: int
    fanout: str
    split: int
    device: str
    at: str
    threads: int
    workers: int
    serial_ns: int
    tuned: int
    variant: int
    max_memory: int
    spill: int
    map: int
    cache: int
    labels: int
    other_data: int
    signals: int
    check_times: int
    amx: int
    reduce_fast: int
    stale_halos: int
    seeds_by_part: int
    pull_rows: int
    pull_cache: int
    tf32: int
    buckets: int
    group_products: int
    device_features: int
    feature_cache: int
    device_sampler: int
    check_sampler: int
    device_sums: int
    device_maps: int
    check_maps: int


class Option(NamedTuple):
    """An option, as it is now."""
    name: str
    type: str  # int, real, text
    value: Union[int, float, str]
    default: Union[int, float, str]
    least: Union[int, float, None]  # None: of a text
    most: Union[int, float, None]
    help: str
    settable: bool  # of this model, and now
    is_set: bool


class Epoch(NamedTuple):
    """What an epoch ended with."""
    epoch: int  # from 1
    loss: float
    lr: float
    metrics: Dict[str, float]  # "accuracy.val": what is known of every split


class Progress(NamedTuple):
    """Where training stands: after each step, and after each epoch's evaluation."""
    epochs_done: int
    epochs_total: int
    steps_done: int  # of the epoch under way; 0: an epoch has ended
    steps_left: int
    last: Optional[Epoch]  # the last one that ended, of this call's
    seconds: float  # since the call began
    metrics: Optional[Dict[str, float]] = None  # behind this step, where the option eval_every_steps asks for them


Reporter = Callable[[Progress], Any]


class _Line:
    """One line that is written over, a few times a second: on terminals, and in notebooks."""

    def __init__(self, file: Any) -> None:
        self._file, self._width, self._shown, self._now = file, 0, float("-inf"), None  # type: Any, int, float, Any

    def __call__(self, now: Progress) -> None:
        self._now = now
        if now.seconds >= self._shown + 0.1:
            self._shown = now.seconds
            self._show(now)

    def _show(self, now: Progress) -> None:
        text = f"epoch {now.epochs_done + (now.steps_done > 0)}/{now.epochs_total}"
        if now.steps_done:
            text += f"  step {now.steps_done}/{now.steps_done + now.steps_left}"
        if now.last:
            shown = {"loss": now.last.loss, **{k: v for k, v in now.last.metrics.items() if k.endswith(".val")}}
            text += "".join(f"  {k} {v:.4f}" for k, v in shown.items())
        text += f"  {now.seconds:.0f} s"
        self._file.write("\r" + text.ljust(self._width))
        self._file.flush()
        self._width = len(text)

    def end(self) -> None:
        if self._now:
            self._show(self._now)
            self._file.write("\n")


def _buffer(data: Any) -> np.ndarray:
    return np.frombuffer(data, dtype=np.uint8)


class Trainer(_abi.Owner):
    """Training of the model over data, as gnnc_trainer in gnnc.h.

        t = Trainer(g, seed=1, epochs=50)
        for e in t.epochs():
            print(e.epoch, e.loss, e.metrics)
        t.keep_best()

    data: a Graph, or a data directory.
    weights, resume: a file, or its bytes, before the data are read: categories are then the file's by their
        names.  weights may be a Model, to train that further; resume goes on where a checkpoint stands.
    messages: is called with each line that the model prints or the library warns of; else they go to the logger
        of the package's name.
    """
    _prefix, _destroy = "gnnc_trainer_", "gnnc_trainer_destroy"

    def __init__(self, data: Union[Graph, Path, None] = None, *, weights: Union[Source, Model, None] = None,
                 resume: Optional[Source] = None, messages: Optional[Callable[[str], Any]] = None,
                 **options: Unpack[Options]) -> None:
        kept: List[Any] = []  # the graph's arrays, later
        self._kept = kept
        self._heard: List[bytes] = []
        self._eval_steps = 0
        self._messages = messages or logging.getLogger(__package__).warning
        kept.append(self._heard)
        self._make("gnnc_trainer_create", library.program(_facts.PROGRAM), kept=kept)
        self._call("set_message", _abi.hears, id(self._heard))
        self._call("set_progress", _after_each_step, None)
        for name, value in options.items():
            self.set(name, value)  # type: ignore[arg-type]
        if resume is not None:
            self.resume(resume)
        if weights is not None:
            self.load_weights(weights)
        if data is not None:
            self.load(data)

    def _try(self, name: str, *args: Any) -> Tuple[int, bytes]:
        try:
            return super()._try(name, *args)
        finally:
            while self._heard:
                self._messages(self._heard.pop(0).decode(errors="replace"))

    # ---- options ------------------------------------------------------------------------------------
    def set(self, name: str, value: Union[int, float, str]) -> None:
        """An option, by its name: before the data are loaded, `epochs` also later."""
        option = self.options().get(name)
        if option is None:
            raise TypeError(f"there is no option '{name}'")
        if option.type == "text":
            self._call("set_text", name.encode(), str(value).encode())
        elif option.type == "real":
            self._call("set_real", name.encode(), float(value))
        else:
            self._call("set_int", name.encode(), operator.index(value))  # type: ignore[arg-type]
            if name == "eval_every_steps":
                self._eval_steps = operator.index(value)  # type: ignore[arg-type]

    def options(self) -> Dict[str, Option]:
        """All of them, with type, range, default, value and what they do."""
        out = {}
        for i in range(self._ask("n_options")):
            o = _abi.OptionInfo()
            self._call("option", i, ctypes.byref(o))
            kind = list(_abi.OPTION_TYPES)[o.type]
            value, default = (getattr(o, f"{kind}_{w}") for w in ("value", "default"))
            least, most = (getattr(o, f"{kind}_{w}", None) for w in ("least", "most"))
            if kind == "text":
                value, default = value.decode(), default.decode()
            name = o.name.decode()
            out[name] = Option(name, kind, value, default, least, most, o.help.decode(), bool(o.settable),
                               bool(o.is_set))
        return out

    # ---- data ---------------------------------------------------------------------------------------
    def load(self, data: Union[Graph, Path]) -> None:
        """Once: binds the model to its data, and takes all memory that training needs."""
        if not isinstance(data, Graph):
            self._call("load", os.fsencode(data))
            return
        pointer = data._ready()
        self._kept.append(data._lent)
        self._call("load_graph", pointer)

    @property
    def device(self) -> str:
        """cpu or cuda."""
        return str(self._ask("device").decode())

    # ---- training -----------------------------------------------------------------------------------
    def epoch(self, progress: Optional[Reporter] = None) -> Epoch:
        """One epoch, or what is left of it.  Whatever is raised meanwhile, a KeyboardInterrupt above all, leaves
        training behind a whole step: it can be saved, and goes on with the next call."""
        began = time.monotonic()
        while not self._advance():
            if progress:
                progress(self._progress(None, began))
        return self._epoch()

    def _advance(self) -> bool:
        """A step; behind the last one the evaluation.  True: the epoch is done."""
        before = self._ask("steps_left")
        status, text = self._try("epoch")
        if status == _STOPPED and before > 0 and self._ask("steps_left") == before - 1:
            return False
        if status:
            raise _abi.failure(status, text)
        return True

    def epochs(self, progress: Optional[Reporter] = None) -> Iterator[Epoch]:
        """Every epoch until training is done: those asked for, early stopping, or stop()."""
        began = time.monotonic()
        last: Optional[Epoch] = None
        while not self.done:
            while not self._advance():
                if progress:
                    progress(self._progress(last, began))
            last = self._epoch()
            if progress:
                progress(self._progress(last, began))
            yield last

    def train(self, progress: Union[bool, Reporter, None] = None, checkpoint: Optional[Path] = None) -> Dict[str, float]:
        """All epochs, and then the parameters of the kept one in place; gives its metrics.

        progress: True, a line on standard error that is written over; or a function that is called with a Progress.
        checkpoint: where save() writes to before that, and where a KeyboardInterrupt ends training.
        """
        line = _Line(sys.stderr) if progress is True else None
        try:
            for _ in self.epochs(line or progress or None):  # type: ignore[arg-type]
                pass
        except KeyboardInterrupt:
            if checkpoint is not None:
                self.save(checkpoint)
            raise
        finally:
            if line:
                line.end()
        if checkpoint is not None:
            self.save(checkpoint)
        self.keep_best()
        return self.metrics

    def _epoch(self) -> Epoch:
        metrics = self.metrics
        loss, lr = (metrics.pop(k, float("nan")) for k in ("loss", "lr"))
        return Epoch(self.epochs_done, loss, lr, metrics)

    def _progress(self, last: Optional[Epoch], began: float) -> Progress:
        done, left = self._ask("steps_done"), self._ask("steps_left")
        metrics = None
        if done and left and self._eval_steps and (self.epochs_done * (done + left) + done) % self._eval_steps == 0:
            metrics = {k: v for k, v in self.metrics.items() if k not in ("loss", "lr")}
        return Progress(self.epochs_done, self.epochs_total, done, left if done else 0, last, time.monotonic() - began, metrics)

    def stop(self) -> None:
        """From any thread: training is done after the epoch under way."""
        if self._end.alive:
            library.gnnc_trainer_stop(self._pointer)

    @property
    def done(self) -> bool:
        return bool(self._ask("done"))

    @property
    def epochs_done(self) -> int:
        return int(self._ask("epochs_done"))

    @property
    def epochs_total(self) -> int:
        return int(self._ask("epochs_total"))

    def keep_best(self) -> int:
        """Puts the kept parameters in place, evaluates them, and gives their epoch.  Training has ended then:
        save() comes before."""
        epoch = ctypes.c_int64()
        self._call("keep_best", ctypes.byref(epoch))
        return epoch.value

    @property
    def kept_step(self) -> int:
        """So many steps of the kept epoch were done when it was kept; 0: all.  See the option eval_every_steps."""
        return int(self._ask("kept_step"))

    # ---- how good it is -----------------------------------------------------------------------------
    @property
    def metrics(self) -> Dict[str, float]:
        """What is known, by name: "loss", "lr", "loss.val", "accuracy.test", .."""
        return {name: value for name, _, _, value in self._metrics()}

    @property
    def baselines(self) -> Dict[str, Dict[str, float]]:
        """What is reached without learning, as the data have it: {"mean of its customers": {"roc_auc.test": 0.7, ..}}."""
        found: Dict[str, Dict[str, float]] = {}
        for i in range(self._ask("n_baselines")):
            b = _abi.Baseline()
            self._call("baseline", i, ctypes.byref(b))
            metric = b.metric.decode()
            found.setdefault(b.name.decode(), {}).update({f"{metric}.val": b.val, f"{metric}.test": b.test})
        return found

    def evaluate(self, split: Optional[str] = None) -> Dict[str, float]:
        """Metrics with the present parameters: of one split, "accuracy"; or all, "accuracy.test"."""
        self._call("evaluate")
        if split is None:
            return self.metrics
        found = {of: value for _, of, where, value in self._metrics() if where == split}
        if not found:
            raise Error("E_MISSING", f"nothing is known of a split '{split}'")
        return found

    def _metrics(self) -> Iterator[Tuple[str, str, str, float]]:
        for i in range(self._ask("n_metrics")):
            m = _abi.MetricInfo()
            self._call("metric_info", i, ctypes.byref(m))
            if m.known:
                yield m.name.decode(), m.of.decode(), m.split.decode(), m.value

    # ---- what it gives ------------------------------------------------------------------------------
    def predict(self, ids: Any = None) -> np.ndarray:
        """The model's result with the present parameters, as float32: of every row, or of those with these numbers, in any order.

        Of a model with times no other rows are computed; of others all are, and a Session computes fewer.
        """
        if ids is None:
            return self._values("predict")
        ids = _numbers(ids, "ids")
        with self.legend() as legend:
            out = np.empty((ids.size, *legend.row_shape), dtype=np.float32)
        self._call("predict_rows", ids.size, _at(ids), out.ctypes.data)
        return out

    def legend(self) -> Legend:
        """What rows of predict() are called, what their numbers mean, and probabilities."""
        return Legend(self)

    def embed(self, layer: str) -> np.ndarray:
        """A hidden layer by its name in the model; `layers` lists them."""
        return self._values("embed", layer.encode())

    def _values(self, name: str, *args: Any) -> np.ndarray:
        data, shape = ctypes.POINTER(ctypes.c_float)(), _abi.Shape.make()
        self._call(name, *args, ctypes.byref(data), ctypes.byref(shape.rank), shape.dim)
        out = np.empty(shape.tuple(), dtype=np.float32)
        ctypes.memmove(out.ctypes.data, data, out.nbytes)  # the trainer's own, until its next call
        return out

    @property
    def layers(self) -> List[str]:
        return [self._ask("layer_name", i).decode() for i in range(self._ask("n_layers"))]

    # ---- parameters ---------------------------------------------------------------------------------
    def parameters(self) -> Dict[str, np.ndarray]:
        """Copies of parameters and states, by PyTorch Geometric's names, with its shapes."""
        out = {}
        for name, shape in self._shapes().items():
            values = np.empty(shape, dtype=np.float32)
            self._call("get_parameter", name.encode(), values.ctypes.data, values.size)
            out[name] = values
        return out

    def set_stream(self, stream: int) -> None:
        """Work is ordered with this CUDA stream from now on, such as torch.cuda.current_stream().cuda_stream: it comes after
        what is there when a call begins, and what is put there later comes after it.  On the cpu there is nothing to order."""
        self._call("set_stream", stream)

    def set_parameter(self, name: str, values: Any) -> None:
        array = np.ascontiguousarray(values, dtype=np.float32)
        want = self._shapes().get(name)
        if want is not None and array.shape != want:
            raise Error("E_SHAPE", f"'{name}' has the shape {want}, not {array.shape}")
        self._call("set_parameter", name.encode(), array.ctypes.data, array.size)

    def _shapes(self) -> Dict[str, Tuple[int, ...]]:
        out = {}
        for i in range(self._ask("n_parameters")):
            name, shape = ctypes.c_char_p(), _abi.Shape.make()
            self._call("parameter_info", i, ctypes.byref(name), ctypes.byref(shape.rank), shape.dim)
            out[(name.value or b"").decode()] = shape.tuple()
        return out

    # ---- files and memory ---------------------------------------------------------------------------
    def save(self, path: Path) -> None:
        """A checkpoint: all that training needs to go on to the same bits.  Before keep_best()."""
        self._call("save", os.fsencode(path))

    def save_weights(self, path: Path) -> None:
        """Parameters and states alone, as safetensors: for a Model, for other programs."""
        self._call("save_weights", os.fsencode(path))

    def to_bytes(self) -> bytes:
        """What save() writes."""
        return self._written("save_to")

    def weights_to_bytes(self) -> bytes:
        """What save_weights() writes."""
        return self._written("save_weights_to")

    def _written(self, name: str) -> bytes:
        parts: List[bytes] = []
        sizes: List[int] = []

        def take(_: Any, data: int, n: int, left: int) -> int:
            if not sizes:
                sizes.append(n + left)
            parts.append(ctypes.string_at(data, n))
            return 0
        self._call(name, _abi.Write(take), None)
        out = b"".join(parts)
        if not sizes or len(out) != sizes[0]:  # a signal's exception was raised in `take`, which ctypes drops
            raise Error("E_IO", "writing was interrupted")
        return out

    def to_model(self) -> Model:
        """What it has learned so far, for threads that serve, while training goes on."""
        from ._session import Model, rows_program
        pointer = _abi.Handle()
        self._call("to_model", rows_program(), ctypes.byref(pointer))
        return Model._of(pointer)

    def resume(self, source: Source) -> None:
        """Goes on where save() was called; before the data are loaded, or after."""
        self._read("resume", source)

    def load_weights(self, source: Union[Source, Model]) -> None:
        """Parameters from any safetensors file with these names, or of a Model; before the data are loaded, or after."""
        from ._session import Model
        if isinstance(source, Model):
            self._call("load_model", source._shared())
        else:
            self._read("load_weights", source)

    def _read(self, name: str, source: Source) -> None:
        if isinstance(source, (bytes, bytearray, memoryview)):
            data = _buffer(source)
            self._call(name + "_from", data.ctypes.data, data.size)
        else:
            self._call(name, os.fsencode(source))

    def __repr__(self) -> str:
        if not self._end.alive:
            return "<closed Trainer>"
        return f"<Trainer of {_facts.MODEL}: {self.epochs_done} of {self.epochs_total} epochs>"


def options() -> Dict[str, Option]:
    """The options that a Trainer takes by name, with type, range, default and what they do."""
    with Trainer() as t:
        return t.options()


def _table() -> str:
    """For the docstring, of what this library says."""
    lines = []
    for o in options().values():
        if not o.settable:
            continue
        bounds = "" if o.least is None else f", {_bound(o.least)}..{_bound(o.most)}"
        lines.append(f"        {o.name}: {o.type}{bounds}, default {o.default!r}: {o.help}")
    return "\n    options:\n" + "\n".join(lines) + "\n"


def _bound(value: Any) -> str:
    return "" if value is None or abs(value) >= 2**61 else str(value)


Trainer.__doc__ = (Trainer.__doc__ or "") + _table()
