"""Who made a difference: the optimisation level, then the pass, or that all passes agree and the plan and lowering, or the
target, made it.  model_check compares after each of them; this only asks it."""
import re

from checker import OK

NEEDED = ["unroll", "autodiff", "optimizer"]


def blame(checker, text, seed, limit):
    """One line: level, and stage or pass."""
    paths = checker.write(text, seed, limit, "blame")
    for level in (0, 2):
        for stage in ("graph", "loops", "code"):
            if checker.check(paths, f"-O{level}", f"--stages={stage}", "--steps=2")[0] != OK:
                return f"-O{level}, {culprit(checker, paths, level, stage)}"
    return "all stages agree in process: the driver or the runtime"


def culprit(checker, paths, level, stage):
    passes = checker.pipeline(level)
    if stage == "graph":
        return first_pass(checker, paths, level, passes)
    if stage == "code":
        return "target cpu: the graph IR and the kernels' loops agree"
    gone = [p for p in dict.fromkeys(passes) if p not in NEEDED + ["lower-csr", "precision"]
            and agrees(checker, paths, level, "loops", [q for q in passes if q != p])]
    return "plan or lowering: the graph IR agrees" + (f"; right without {' or '.join(gone)}" if gone else "")


def agrees(checker, paths, level, stage, passes):
    return checker.check(paths, f"-O{level}", f"--stages={stage}", "--passes=" + ",".join(passes))[0] == OK


def first_pass(checker, paths, level, passes):
    """Of the pipeline's beginnings, each with what a training step needs, the first that differs."""
    for n in range(1, len(passes) + 1):
        begun = passes[:n]
        if not agrees(checker, paths, level, "graph", begun + [p for p in NEEDED if p not in begun]):
            return f"pass {begun[-1]}, number {n} of {len(passes)}"
    return "the passes of a program's variant"


def level_of(said):
    found = re.search(r"-O(\d) ", said)
    return int(found.group(1)) if found else None
