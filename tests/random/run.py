#!/usr/bin/env python3
"""Random .gnn models on random data: interpreter, -O0 and -O2 must agree in every output and gradient.

usage: tests/random/run.py                        the kept seeds, and the models in tests/random/found and kept
       tests/random/run.py FIRST COUNT            COUNT seeds from FIRST
       options: --quick  fewer kept seeds     --jobs N      --keep DIR  models and data stay there
                --no-shrink                   --model FILE [SEED]  one model on random data

tests/random/model_check.c compares one model on one data directory; generate.py writes models, data.py data,
and a model that fails is made small by shrink.py and printed with its seed: a file for tests/random/found.
Models written by hand, of patterns that the generator does not come to, are in tests/random/kept.
Some texts the generator gets wrong (a size that turns out to stand twice in a type); they are counted, and more
than one in eight fails the run.  Prints `N passed, N failed`.  Only the standard library is needed."""
import argparse
import concurrent.futures
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile

from data import Data
from generate import model
from shrink import shrink

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
KEPT, QUICK, STEPS_EVERY, SECONDS, CATEGORIES = range(1, 37), range(1, 13), 4, 120, (1, 2)


class Checker:
    """Writes text and data into a folder and runs model_check there."""

    def __init__(self, build, work):
        self.exe, self.work, self.n = os.path.join(build, "tests", "random", "model_check"), work, 0

    def run(self, text, seed, levels, steps, limit=1000, name=None):
        """(kind, what it said): "ok", "invalid", "differs" or "crash"."""
        self.n += 1
        folder = os.path.join(self.work, name or f"try{self.n % 8}")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "model.gnn")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        try:
            Data(text, seed, limit).write(os.path.join(folder, "data"))
        except (ValueError, IndexError, KeyError, AttributeError):
            return "invalid", "no data for this declaration"
        command = [self.exe, path, os.path.join(folder, "data")] + [f"-O{n}" for n in levels]
        try:
            r = subprocess.run(command + ["--steps", str(steps)], cwd=TOP, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return "crash", f"nothing after {SECONDS} s"
        said = (r.stdout + r.stderr).strip()
        if r.returncode in (0, 1, 2):
            return ("ok", "differs", "invalid")[r.returncode], said
        return "crash", f"ended with {r.returncode} ({signal.Signals(-r.returncode).name})\n{said}" if r.returncode < 0 else said


def minimal(checker, text, seed, kind, said, steps):
    """The smallest model and data that still fail in the same way, at the level that failed."""
    level = [int(d) for d in re.findall(r"(?m)^-O(\d)", said)][:1] or [0, 2]

    def fails(candidate, limit=1000):
        return checker.run(candidate, seed, level, steps, limit)[0] == kind

    steps = 0 if steps and checker.run(text, seed, level, 0)[0] == kind else steps
    text = shrink(text, fails)
    limit = next((n for n in (1, 2, 3, 5, 9) if fails(text, n)), 1000)
    if limit < 1000:
        text = shrink(text, lambda t: fails(t, limit), 300)
    return text, limit, checker.run(text, seed, level, steps, limit)[1]


def one(checker, seed, text=None, limit=1000):
    text = text or model(seed)
    steps = 2 if seed % STEPS_EVERY == 0 else 0
    return (seed, text, steps) + checker.run(text, seed, (0, 2), steps, limit, name=f"seed{seed}")


def found():
    """(name, seed, limit, text) of the models that failed once and of those kept: `# seed 12 limit 3` on their first line."""
    for path in sorted(glob.glob(os.path.join(HERE, "found", "*.gnn")) + glob.glob(os.path.join(HERE, "kept", "*.gnn"))):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        seed, limit = re.match(r"# seed (\d+) limit (\d+)", text).groups()
        yield os.path.relpath(path, HERE), int(seed), int(limit), text


def replay(checker):
    failed = 0
    for name, seed, limit, text in found():
        kind, said = checker.run(text, seed, (0, 2), 2, limit, name=name.replace("/", "_"))
        if kind != "ok":
            failed += 1
            print(f"{name}: {kind}: {said}")
    return len(list(found())), failed


def report(checker, seed, text, steps, kind, said, small):
    print(f"seed {seed}: {kind}: {said[:400]}", flush=True)
    if not small:
        return
    text, limit, said = minimal(checker, text, seed, kind, said, steps)
    print(f"# seed {seed} limit {limit}: {' '.join(said.split())[:200]}\n{text}", flush=True)


def seeds(checker, which, jobs, small):
    failed = invalid = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for seed, text, steps, kind, said in pool.map(lambda s: one(checker, s), which):
            if kind == "invalid":
                invalid += 1
                print(f"seed {seed}: not well-typed: {said.splitlines()[0] if said else ''}")
            elif kind != "ok":
                failed += 1
                report(checker, seed, text, steps, kind, said, small and failed <= 3)
    if invalid * 8 > len(which):
        failed += 1
        print(f"{invalid} of {len(which)} models are not well-typed: the generator no longer knows the language")
    return len(which), failed, invalid


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("first", type=int, nargs="?")
    ap.add_argument("count", type=int, nargs="?", default=1)
    ap.add_argument("--build", default=os.path.join(TOP, "build"))
    ap.add_argument("--jobs", type=int, default=os.cpu_count())
    ap.add_argument("--quick", action="store_true")
    ap.add_argument("--no-shrink", action="store_true")
    ap.add_argument("--keep")
    ap.add_argument("--model")
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        checker = Checker(a.build, a.keep or tmp)
        if a.model:
            with open(a.model, encoding="utf-8") as f:
                seed, text, steps, kind, said = one(checker, a.first or 1, f.read())
            if kind != "ok":
                report(checker, seed, text, steps, kind, said, not a.no_shrink and kind != "invalid")
            return kind != "ok"
        which = range(a.first, a.first + a.count) if a.first is not None else QUICK if a.quick else KEPT
        n, failed, invalid = seeds(checker, which, a.jobs, not a.no_shrink)
        n_found, found_failed = replay(checker) if a.first is None else (0, 0)
        bad = failed + found_failed
        print(f"{invalid} models were not well-typed; {n + n_found - invalid - bad} passed, {bad} failed")
        return bad > 0


if __name__ == "__main__":
    sys.exit(main())
