"""One model on its data: in process by model_check, and as trainers that gnnc makes at -O0 and -O2."""
import array
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys

from data import Data

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
SECONDS = 120
STAGES = ("graph", "loops", "code")
NEAR, NEAR_IN_16_BITS, NEAR_BY_ROW, NOISE = 2e-4, 0.1, 1e-6, 3e-7
OK, INVALID, DIFFERS, CRASH = "ok", "invalid", "differs", "crash"


def is_low(text):
    """Has it values in 16 bits?  Which of them are rounded hangs on what lies in memory, hence on the level."""
    return re.search(r"@b?f16|= bf16", text) is not None


def ended(r):
    """What a process that did not end by itself says."""
    return f"ended with {r.returncode} ({signal.Signals(-r.returncode).name})\n{(r.stdout + r.stderr).strip()}"


class Checker:
    """Writes text and data into a folder of its own and compares there."""

    def __init__(self, build, work, exe=None):
        self.build, self.work = build, work
        self.exe = exe or os.path.join(build, "tests", "random", "model_check")

    def write(self, text, seed, limit, name, trains=False):
        """(model, data), or None where the declaration fits no data."""
        folder = os.path.join(self.work, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        model, data = os.path.join(folder, "model.gnn"), os.path.join(folder, "data")
        with open(model, "w", encoding="utf-8") as f:
            f.write(text)
        try:
            Data(text, seed, limit, trains or "sample {" in text).write(data)  # no batch without a row to learn from
        except (ValueError, IndexError, KeyError, AttributeError):
            return None
        return model, data

    def call(self, command):
        """(kind, what it said) of model_check."""
        try:
            r = subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return CRASH, f"nothing after {SECONDS} s"
        if r.returncode in (0, 1, 2):
            return (OK, DIFFERS, INVALID)[r.returncode], (r.stdout + r.stderr).strip()
        return CRASH, ended(r) if r.returncode < 0 else (r.stdout + r.stderr).strip()

    def check(self, paths, *options):
        return self.call([self.exe, *paths, *options])

    def run(self, text, seed, limit=1000, name="model", levels=(0, 2), stages=STAGES, steps=0, grads=False, plain=False):
        paths = self.write(text, seed, limit, name)
        if not paths:
            return INVALID, "no data for this declaration"
        options = [f"-O{n}" for n in levels] + ["--stages=" + ",".join(stages), f"--steps={steps}"] + ["--grads"] * grads + ["--plain-llvm"] * plain
        kind, said = self.check(paths, *options)
        self.clear(name)
        return kind, said

    def clear(self, name):
        shutil.rmtree(os.path.join(self.work, name), ignore_errors=True)

    def pipeline(self, level):
        r = subprocess.run([self.exe, f"-O{level}", "--list-passes"], cwd=TOP, capture_output=True, text=True, check=True)
        return r.stdout.strip().split(",")

    # ---- trainers ------------------------------------------------------------------------------------
    def trainers(self, text, seed, limit=1000, name="trainer"):
        """(kind, what differs) of the programs of -O0 and -O2, and of the interpreter beside them."""
        paths = self.write(text, seed, limit, name, trains=True)
        if not paths:
            return INVALID, "no data for this declaration"
        result = Trainers(self, *paths, NEAR_IN_16_BITS if is_low(text) else NEAR).compare()
        self.clear(name)
        return result


    # ---- rows by themselves --------------------------------------------------------------------------
    def rows(self, text, seed, limit=1000, name="rows"):
        """(kind, what differs) of a library that predicts rows by themselves and the trainer's prediction of all rows."""
        paths = self.write(text, seed, limit, name, trains=True)
        if not paths:
            return INVALID, "no data for this declaration"
        result = Rows(self, *paths).compare(NEAR_IN_16_BITS if is_low(text) else NEAR_BY_ROW)
        self.clear(name)
        return result


class Failed(Exception):
    """(kind, what was said)"""


class Trainers:
    """The log, the weights and the checkpoint of two trainers.

    Rounding is not the same at both levels, and training spreads it: what is further apart than `near` is compared with
    what noise of rounding's size (NOISE, relative) in the first weights does to the trainer of -O0."""

    def __init__(self, checker, model, data, near):
        self.checker, self.model, self.data, self.near = checker, model, data, near
        self.folder = os.path.dirname(model)

    def path(self, name):
        return os.path.join(self.folder, name)

    def process(self, command):
        try:
            r = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed(CRASH, f"{os.path.basename(command[0])}: nothing after {SECONDS} s") from None
        if r.returncode < 0:
            raise Failed(CRASH, f"{os.path.basename(command[0])} {ended(r)}")
        return r

    def compile(self, level):
        r = self.process([os.path.join(self.checker.build, "gnnc"), self.model, f"-O{level}", "--target=cpu", "--no-rows", "-o", self.path(f"O{level}")])
        if r.returncode:
            raise Failed(INVALID, r.stderr.strip())

    def train(self, level, tag="", more=()):
        """Lines of the log, kept weights, checkpoint; or what the trainer refused with."""
        out, checkpoint = self.path(f"O{level}{tag}.out"), self.path(f"O{level}{tag}.ckpt")
        r = self.process([self.path(f"O{level}"), "--data", self.data, "--log=json", "--threads", "1" if level == 0 else "2",
                          "--checkpoint", checkpoint, "--out", out, *more])
        if r.returncode:
            return r.stderr.strip().replace(self.path(f"O{level}"), "trainer").replace(f"O{level}:", "trainer:")
        return Trained([json.loads(x) for x in r.stdout.splitlines() if x.startswith("{")], tensors(out), tensors(checkpoint))

    def compare(self):
        try:
            for level in (0, 2):
                self.compile(level)
            return self.differences(self.train(0), self.train(2))
        except Failed as f:
            return f.args

    def differences(self, plain, fast):
        if isinstance(plain, str) or isinstance(fast, str):
            same = isinstance(plain, str) and isinstance(fast, str)
            return (INVALID, plain) if same else (DIFFERS, f"-O0 trains: {plain if isinstance(plain, str) else 'yes'}; "
                                                           f"-O2 trains: {fast if isinstance(fast, str) else 'yes'}")
        first = self.first_weights()
        said = self.interpreted(plain, first) or far(plain, fast, self.near, lambda: self.spread(plain, first))
        return (DIFFERS, f"trainers: {said}") if said else (OK, "")

    def first_weights(self):
        start = self.train(0, "first", ["--epochs", "0"])
        return None if isinstance(start, str) else self.path("O0first.out")

    def interpreted(self, plain, first):
        """The interpreter's loss of the first step, and its metrics of the weights that were kept."""
        said = ""
        if first:
            at_first = self.interpreter(first)
            said = self.loss_apart("the first loss", plain.log[0].get("loss"), at_first.get("train loss"))
        kept = self.interpreter(self.path("O0.out"))
        for split in ("train", "val", "test"):
            got = plain.log[-1].get(split, {}).get("loss")
            said = said or self.loss_apart(f"the kept loss of {split}", got, kept.get(f"eval loss.{split}"))
        return said

    def loss_apart(self, what, got, want):
        if got is None or want is None or apart(got, want) <= 20 * self.near * (1 + abs(want)):
            return ""
        return f"{what} is {got}, by the interpreter {want}"

    def interpreter(self, weights):
        kind, said = self.checker.check((self.model, self.data), f"--weights={weights}")
        if kind != OK:
            raise Failed(kind, f"interpreter: {said}")
        words = [x.rsplit(" ", 1) for x in said.splitlines() if re.match(r"(train|eval) \S+ \S+$", x)]
        return {what: float(value) for what, value in words}

    def spread(self, plain, first):
        """(of the log's numbers, of tensors) between the trainer and itself with noise in its first weights."""
        numbers, by_name = {}, {}
        for trial in range(3) if first else ():
            noisy = self.path(f"noise{trial}")
            with_noise(first, noisy, trial)
            other = self.train(0, f"noise{trial}", ["--weights", noisy])
            if isinstance(other, str):
                continue
            for key, x, y in paired(plain.numbers(), other.numbers()):
                numbers[key] = max(numbers.get(key, 0), apart(x, y))
            for key, x, y in paired(plain.tensors(), other.tensors()):
                by_name[key] = max([by_name.get(key, 0)] + [apart(a, b) for a, b in zip(x, y)])
        return numbers, by_name


class Rows:
    """A trainer and a library of one model; what cannot be predicted row by row says so (E0516)."""

    def __init__(self, checker, model, data):
        self.checker, self.model, self.data, self.folder = checker, model, data, os.path.dirname(model)
        with open(model, encoding="utf-8") as f:
            self.links = "-> f32[links]" in f.read()

    def run(self, *command):
        r = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=SECONDS)
        if r.returncode < 0:
            raise Failed(CRASH, f"{os.path.basename(command[0])} {ended(r)}")
        return r

    def must(self, kind, *command):
        r = self.run(*command)
        if r.returncode:
            raise Failed(kind, (r.stderr + r.stdout).strip())

    def compare(self, near):
        gnnc, trainer = os.path.join(self.checker.build, "gnnc"), os.path.join(self.folder, "trainer")
        try:
            self.must(INVALID, gnnc, self.model, "--target=cpu", "--no-rows", "-o", trainer)
            r = self.run(gnnc, self.model, "--target=cpu", "--emit=infer", "-o", "rows")
            if r.returncode:
                return (OK, "") if "E0516" in r.stderr else (DIFFERS, r.stderr)
            self.must(INVALID, trainer, "--data", self.data, "--epochs", "2", "--out", "weights")
            self.must(DIFFERS, trainer, "predict", "--data", self.data, "--weights", "weights", "--out", "all.npy")
            if self.links:
                self.must(DIFFERS, trainer, "predict", "--data", self.data, "--weights", "weights", "--format", "csv", "--out", "all.csv")
            rows = [sys.executable, os.path.join(HERE, "rows.py"), "rows", "weights", self.data, "all", str(near)]
            if self.run(*rows).returncode:  # of terms that cancel, rounding is more than `near` of what remains
                self.must(DIFFERS, *rows, *self.noisy(trainer))
        except subprocess.TimeoutExpired:
            return CRASH, f"nothing after {SECONDS} s"
        except Failed as f:
            return f.args
        return OK, ""


    def noisy(self, trainer):
        """Names of three predictions of all rows, by weights with noise."""
        names = []
        for trial in range(3):
            names.append(f"noise{trial}")
            with_noise(os.path.join(self.folder, "weights"), os.path.join(self.folder, f"weights{trial}"), trial)
            self.must(DIFFERS, trainer, "predict", "--data", self.data, "--weights", f"weights{trial}", "--out", names[-1] + ".npy")
        return names


class Trained:
    def __init__(self, log, weights, checkpoint):
        self.log, self.weights, self.checkpoint = log, weights, checkpoint

    def numbers(self):
        """{(epoch, name): value}, in the order of the log; not times."""
        out = {}
        for line in self.log:
            epoch = line.get("epoch", "kept")
            for key, value in line.items():
                if isinstance(value, dict):
                    out.update({(epoch, f"{key} {name}"): x for name, x in value.items()})
                elif key not in ("ms", "seconds", "epoch", "epochs", "train_ms", "eval_ms"):
                    out[(epoch, key)] = value
        return out

    def tensors(self):
        return {**{f"checkpoint {k}": v for k, v in self.checkpoint.items() if k != "train.history"},
                **{f"weights {k}": v for k, v in self.weights.items()}}


def apart(x, y):
    if x is None or y is None:
        return 0 if x is y else float("inf")
    if x != x or y != y:
        return 0 if x != x and y != y else float("inf")
    return 0 if x == y else abs(x - y)


def paired(x, y):
    return [(key, x[key], y[key]) for key in x if key in y]


def far(plain, fast, near, spread):
    """The first number of the log, or element of a tensor, that is further apart than rounding explains."""
    noise = None
    a, b = plain.numbers(), fast.numbers()
    if a.keys() != b.keys():
        return f"epochs or metrics {sorted(set(a) ^ set(b))[:3]}"
    for key, x, y in paired(a, b):
        if apart(x, y) > near * (1 + abs(x or 0)):
            noise = noise or spread()
            if apart(x, y) > 2 * near * (1 + abs(x or 0)) + 50 * noise[0].get(key, 0):
                return f"epoch {key[0]}: {key[1]} is {x} at -O0, {y} at -O2"
    for key, x, y in paired(plain.tensors(), fast.tensors()):
        scale = 1 + max([abs(v) for v in x if v == v] or [0])
        i = next((i for i, (v, w) in enumerate(zip(x, y)) if apart(v, w) > near * scale), -1)
        if i >= 0:
            noise = noise or spread()
            if apart(x[i], y[i]) > 2 * near * scale + 50 * noise[1].get(key, 0):
                return f"{key}[{i}] is {x[i]} at -O0, {y[i]} at -O2"
    return ""


# ---- safetensors -----------------------------------------------------------------------------------------
def header(raw):
    n = struct.unpack("<Q", raw[:8])[0]
    return json.loads(raw[8:8 + n]), 8 + n


def tensors(path):
    """{name: numbers} of f32 and f64 entries; {} where there is no file."""
    if not os.path.exists(path):
        return {}
    with open(path, "rb") as f:
        raw = f.read()
    head, at = header(raw)
    out = {}
    for name, t in head.items():
        if name != "__metadata__" and t["dtype"] in ("F32", "F64"):
            first, last = t["data_offsets"]
            out[name] = array.array("f" if t["dtype"] == "F32" else "d", raw[at + first:at + last])
    return out


def with_noise(path, to, trial):
    with open(path, "rb") as f:
        raw = f.read()
    head, at = header(raw)
    r, body = random.Random(trial), bytearray(raw)
    for name, t in head.items():
        if name != "__metadata__" and t["dtype"] == "F32":
            first, last = (at + x for x in t["data_offsets"])
            values = array.array("f", raw[first:last])
            body[first:last] = array.array("f", [v * (1 + NOISE * r.choice((-1, 1))) + NOISE * r.gauss(0, 0.1) for v in values]).tobytes()
    with open(to, "wb") as f:
        f.write(body)
