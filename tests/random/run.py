#!/usr/bin/env python3
"""Random .gnn models on random data: interpreter, passes, loops, compiled code and trainers must agree.

usage: tests/random/run.py                        models of found/ and kept/, and 48 of fresh seeds: what CI runs
       tests/random/run.py FIRST COUNT            COUNT seeds from FIRST, all stages
       tests/random/run.py --campaign             10,000 models in process, 1,500 as trainers; goes on where it stopped
       tests/random/run.py --model FILE [SEED]    one model on random data
       options: --quick  fewer fresh seeds     --seed S  fresh seeds by S, not by the commit     --jobs N
                --keep DIR  models and data stay there     --no-shrink     --state FILE     --build DIR

README.md beside this file says what is compared, how a difference is read and what to do with it.
Prints `N passed, N failed`.  Only the standard library is needed."""
import argparse
import collections
import concurrent.futures
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from blame import blame, level_of
from checker import INVALID, OK, STAGES, TOP, Checker, is_low
from generate import model
from shrink import shrink

HERE = os.path.dirname(os.path.abspath(__file__))
FRESH, QUICK = 48, 24
CODE_EVERY, TRAINERS_EVERY, ROWS_EVERY, GRADS_EVERY, FULL_CODE_EVERY = 4, 7, 10, 5, 8
GOAL = {"loops": 10000, "code": 10000, "trainers": 1500}
CHUNK = {"loops": 100, "code": 50, "trainers": 15}
FAILURES_SHOWN = 3
Result = collections.namedtuple("Result", "seed how text kind said")


# ---- one model -------------------------------------------------------------------------------------------
def compare(checker, how, text, seed, limit=1000, name="model", levels=(0, 2)):
    """how: "loops" without compiled code, "code" with that alone, "all" of these, "trainers", "rows"."""
    if how in ("trainers", "rows"):
        return getattr(checker, how)(text, seed, limit, name)
    stages = {"loops": STAGES[:2], "code": STAGES[2:], "all": STAGES}[how]
    if is_low(text):  # the interpreters compare without rounding
        stages = STAGES[:2]
    plain = how == "code" and seed % FULL_CODE_EVERY != 0  # nine tenths of the time are LLVM's and cc's
    if plain and len(levels) > 1:
        levels = (2,)
    return checker.run(text, seed, limit, name, levels, stages, 2, seed % GRADS_EVERY == 0, plain)


def one(checker, seed, how):
    try:
        text = model(seed, small=how in ("trainers", "rows"))
    except IndexError as e:  # nothing of the kind that it wants is there
        return Result(seed, how, "", INVALID, f"the generator: {e}")
    return Result(seed, how, text, *compare(checker, how, text, seed, name=f"{how}{seed}"))


def minimal(checker, r):
    """The smallest model and data that still fail in the same way, at the level that failed."""
    level = level_of(r.said) if r.how not in ("trainers", "rows") else None
    levels = (0, 2) if level is None else (level,)

    def fails(candidate, limit=1000):
        return compare(checker, r.how, candidate, r.seed, limit, "small", levels)[0] == r.kind

    tries = 150 if r.how in ("trainers", "rows") else 1500
    text = shrink(r.text, fails, tries)
    limit = next((n for n in (1, 2, 3, 5, 9) if fails(text, n)), 1000)
    if limit < 1000:
        text = shrink(text, lambda t: fails(t, limit), tries // 5)
    return text, limit, compare(checker, r.how, text, r.seed, limit, "small", levels)[1]


def report(checker, r, small):
    print(f"seed {r.seed}: {r.how}: {r.kind}: {r.said[:400]}", flush=True)
    if not small:
        return
    text, limit, said = minimal(checker, r)
    print(f"# seed {r.seed} limit {limit}: {' '.join(said.split())[:200]}\n# by {blame(checker, text, r.seed, limit)}\n{text}", flush=True)


# ---- many ------------------------------------------------------------------------------------------------
class Tally:
    """Counts, and prints what failed."""

    def __init__(self, checker, small):
        self.checker, self.small = checker, small
        self.done, self.bad, self.invalid = collections.Counter(), [], 0

    def add(self, r):
        self.done[r.how] += 1
        if r.kind == INVALID:
            self.invalid += 1
            print(f"seed {r.seed}: {r.how}: not a valid model: {r.said.splitlines()[0] if r.said else ''}", flush=True)
        elif r.kind != OK:
            self.bad.append((r.seed, r.how))
            report(self.checker, r, self.small and len(self.bad) <= FAILURES_SHOWN)

    def run(self, jobs, work):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for r in pool.map(lambda w: one(self.checker, *w), work):
                self.add(r)

    def total(self):
        return sum(self.done.values())

    def generator_failed(self):
        """Some texts the generator gets wrong; more than one in eight means that it no longer knows the language."""
        return self.invalid * 8 > self.total()


def fresh_seeds(base, n):
    """n seeds that base (a commit) decides; printed, so that another machine can run the same."""
    first = int(hashlib.sha256(base.encode()).hexdigest()[:8], 16)
    return [first + i for i in range(n)]


def commit():
    r = subprocess.run(["git", "rev-parse", "HEAD"], cwd=TOP, capture_output=True, text=True, check=False)
    return r.stdout.strip() or "no commit"


def work_of(seeds):
    """All seeds by the interpreters, some by compiled code, some as trainers."""
    for i, seed in enumerate(seeds):
        yield seed, "all" if i % CODE_EVERY == 0 else "loops"
        if i % TRAINERS_EVERY == 1:
            yield seed, "trainers"
        if i % ROWS_EVERY == 2:
            yield seed, "rows"


def found():
    """(name, seed, limit, text) of the models that failed once and of those kept: `# seed 12 limit 3` on their first line."""
    for path in sorted(glob.glob(os.path.join(HERE, "found", "*.gnn")) + glob.glob(os.path.join(HERE, "kept", "*.gnn"))):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        seed, limit = re.match(r"# seed (\d+) limit (\d+)", text).groups()
        yield os.path.relpath(path, HERE), int(seed), int(limit), text


def replay(checker, jobs):
    """(how many, how many failed)"""
    models, failed = list(found()), 0

    def again(m):
        return checker.run(m[3], m[1], m[2], m[0].replace("/", "_"), steps=2, grads=True)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for (name, seed, limit, text), (kind, said) in zip(models, pool.map(again, models)):
            if kind != OK:
                failed += 1
                print(f"{name}: {kind}: {said}\n  by {blame(checker, text, seed, limit)}")
    return len(models), failed


# ---- a campaign ------------------------------------------------------------------------------------------
class Campaign:
    """Seeds 0, 1, .. of each way to compare; the state says how far each came, and goes to a file after each chunk."""

    def __init__(self, path):
        self.path, self.state = path, {"next": dict.fromkeys(GOAL, 0), "failed": [], "invalid": 0, "seconds": 0.0}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                self.state = json.load(f)

    def save(self):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path + ".new", "w", encoding="utf-8") as f:
            json.dump(self.state, f)
        os.replace(self.path + ".new", self.path)

    def chunks(self, ways):
        """The way that is furthest from its goal comes next."""
        while True:
            left = {how: 1 - self.state["next"][how] / GOAL[how] for how in ways}
            how = max(left, key=left.get)
            if left[how] <= 0:
                return
            first = self.state["next"][how]
            yield how, range(first, min(first + CHUNK[how], GOAL[how]))

    def run(self, tally, jobs, ways, seconds):
        start = time.time()
        for how, seeds in self.chunks(ways):
            began, bad, invalid = time.time(), len(tally.bad), tally.invalid
            tally.run(jobs, [(s, how) for s in seeds])
            self.state["next"][how] = seeds.stop
            self.state["failed"] += tally.bad[bad:]
            self.state["invalid"] += tally.invalid - invalid
            self.state["seconds"] += time.time() - began
            self.save()
            print(self.line(), flush=True)
            if seconds and time.time() - start > seconds:
                return

    def line(self):
        n = self.state["next"]
        return (f"in process {n['loops']} by interpreters, {n['code']} compiled; {n['trainers']} as trainers; "
                f"{len(self.state['failed'])} failed, {self.state['invalid']} not valid, {self.state['seconds']:.0f} s")


# ---- the command line ------------------------------------------------------------------------------------
def options():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("first", type=int, nargs="?")
    ap.add_argument("count", type=int, nargs="?", default=1)
    ap.add_argument("--build", default=os.path.join(TOP, "build"))
    ap.add_argument("--jobs", type=int, default=int(os.environ.get("JOBS") or os.cpu_count()))
    ap.add_argument("--state")
    ap.add_argument("--seconds", type=float, help="a campaign stops after the chunk under way")
    ap.add_argument("--seed", default=None)
    ap.add_argument("--how", choices=["loops", "code", "all", "trainers", "rows"])
    for flag in ("--quick", "--no-shrink", "--campaign"):
        ap.add_argument(flag, action="store_true")
    ap.add_argument("--keep")
    ap.add_argument("--model")
    return ap.parse_args()


def one_file(checker, a):
    with open(a.model, encoding="utf-8") as f:
        text = f.read()
    r = Result(a.first or 1, a.how or "all", text, *compare(checker, a.how or "all", text, a.first or 1))
    if r.kind != OK:
        report(checker, r, not a.no_shrink and r.kind != INVALID)
    return r.kind != OK


def ci(checker, tally, a):
    base = a.seed or commit()
    n, bad = replay(checker, a.jobs)
    seeds = fresh_seeds(base, QUICK if a.quick else FRESH)
    print(f"{len(seeds)} fresh seeds from {seeds[0]}, of --seed {base}", flush=True)
    tally.run(a.jobs, work_of(seeds))
    return n, bad


def main():
    a = options()
    os.environ.setdefault("CFLAGS", "-O0")  # of drivers, which no comparison waits for
    # nor does one read lines of the runtime
    os.environ.setdefault("CC", "cc -Wl,-S" + (" -fuse-ld=gold" if shutil.which("ld.gold") else ""))
    a.build = os.path.abspath(a.build)
    with tempfile.TemporaryDirectory() as tmp:
        checker, others, other_bad = Checker(a.build, a.keep or tmp), 0, 0
        if a.model:
            return one_file(checker, a)
        tally = Tally(checker, not a.no_shrink)
        if a.campaign:
            c = Campaign(a.state or os.path.join(HERE, "campaign.json"))
            c.run(tally, a.jobs, [a.how] if a.how in GOAL else list(GOAL), a.seconds)
            print(c.line())
        elif a.first is not None:
            tally.run(a.jobs, [(s, a.how or "all") for s in range(a.first, a.first + a.count)])
        else:
            others, other_bad = ci(checker, tally, a)
        bad = len(tally.bad) + other_bad + tally.generator_failed()
        if tally.generator_failed():
            print(f"{tally.invalid} of {tally.total()} models are not valid: the generator no longer knows the language")
        print(f"{tally.invalid} models were not valid; {tally.total() + others - tally.invalid - bad} passed, {bad} failed")
        return bad > 0


if __name__ == "__main__":
    sys.exit(main())
