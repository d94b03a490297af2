#!/usr/bin/env python3
"""Every pass of every level is documented, tested on text, and says what it did and what it refused.

    passes.py GNNC TOP

The passes are those that `gnnc help` lists.  Each has a row in docs/passes.md, a test that runs it on text, and, in what
such tests expect, a remark of what it did and one of what it refused.  Which is which the compiler says: the commands of these
tests are run once more, for refusals alone (gnnc opt --report=missed, "refused" of --report=fusion).  A pass
without which there is no program refuses by a diagnostic.  What normal compilations report holds remarks of all levels.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Of what they cannot do there is no program.
BY_DIAGNOSTIC = {"shape-propagation": "E0406", "serve": "E0516", "dump-values": "E0520", "sample-boundary": "E0305"}
# A plan has nothing to refuse them, and of a loop they have all that it asks for.
MODELS = [("gat", []), ("gcn", []), ("molecule", []), ("sage_sampled", ["--precision=bf16"]), ("gat", ["--spmm=cusparse"]), ("gcn", ["--mpi"]),
          ("gcn", ["--parts", "--target=cuda"])]
# Some models need them, and those are not among these.
RARE = {"serve", "explain", "dumps-last", "distinct", "one-hot", "factor", "narrow", "unroll", "dump-values", "shape-propagation", "trim", "recompute-masks", "dce",
        "graph-break-elimination", "sample-boundary", "sync-removal", "fission", "fold-unit-dims", "promote-scalars", "forward-stores", "lifetimes",
        "sparse-products", "reorder-loops", "dce-loops", "cse-loops"}


def passes(gnnc):
    text = subprocess.run([gnnc, "--help"], capture_output=True, text=True, check=True).stdout
    listed = re.search(r"^passes:\n(.*?)\n\n", text, re.M | re.S).group(1)
    return re.findall(r"^  ([a-z-]+)", listed, re.M)


# gnnc, which writes what it does and refuses to files, too.  `gnnc opt` says all of it where no report is asked for.
LISTENING = r"""#!/bin/sh
said=$HEARD.$$
"$TOP/tests/tools/gnnc" "$@" 2>"$said"
rc=$?
cat "$said" >&2
fusion=0 all=1
for a; do
    shift
    case $a in --report=fusion) fusion=1 all=0 ;; --report*) all=0 ;; *) set -- "$@" "$a" ;; esac
done
if [ "$1" = opt ]; then
    "$GNNC" "$@" --report=missed -o /dev/null 2>>"$HEARD" </dev/null >&2
    if [ $all = 1 ]; then cat "$said"; else "$GNNC" "$@" --report=fusion -o /dev/null 2>&1 </dev/null; fi >>"$HEARD.all"
elif [ $fusion = 1 ]; then
    "$TOP/tests/tools/gnnc" "$@" --report=fusion --report-format=json --emit=none </dev/null 2>/dev/null >>"$HEARD.json"
fi
exit $rc
"""


def lines_of(path):
    return path.read_text().splitlines() if path.exists() else []


def heard_in(heard):
    """All remarks, and those that say what was refused."""
    every, refused = lines_of(Path(f"{heard}.all")), lines_of(heard)
    text = "\n".join(lines_of(Path(f"{heard}.json"))).lstrip()
    while text:
        report, end = json.JSONDecoder().raw_decode(text)
        every += report["remarks"]
        refused += report["refused"]
        text = text[end:].lstrip()
    return every, refused


def by_pass(lines):
    said = {}
    for line in lines:
        m = re.match(r"(?:\S+:\d+: )?([a-z-]+): (.*)", line)
        if m:
            said.setdefault(m[1], set()).add(m[2])
    return said


def listen(gnnc, top, tests):
    """{pass: what it did} and {pass: what it refused} where the RUN lines of these tests are run, whose checks pass."""
    with tempfile.TemporaryDirectory() as tmp:
        for name, text in (("gnnc", LISTENING), ("FileCheck", "#!/bin/sh\n"), ("not", '#!/bin/sh\n! "$@"\n')):
            Path(tmp, name).write_text(text)
            os.chmod(Path(tmp, name), 0o755)

        def one(numbered):
            i, (path, text) = numbered
            here = Path(tmp, str(i))
            here.mkdir()
            heard = here / "heard"
            env = {**os.environ, "PATH": f"{tmp}:{os.environ['PATH']}", "GNNC": gnnc, "TOP": str(top), "HEARD": str(heard)}
            for command in re.findall(r"^[/# ]*RUN: *(.*)", text, re.M):
                if re.search(r"\bgnnc opt\b|--report=fusion|%t", command):
                    command = command.replace("%s", str(path.relative_to(top))).replace("%S", str(path.parent.relative_to(top))).replace("%t", str(here / "t"))
                    subprocess.run(["bash", "-c", command], cwd=top, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            return heard_in(heard)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            heard = list(pool.map(one, enumerate(tests.items())))
    refused = by_pass(line for _, lines in heard for line in lines)
    every = by_pass(line for lines, _ in heard for line in lines)
    return {name: lines - refused.get(name, set()) for name, lines in every.items()}, refused


def pattern(expected):
    """What FileCheck takes for it."""
    parts = re.split(r"(\{\{.*?\}\}|\[\[.*?\]\])", expected)
    return re.compile("".join(p[2:-2] if p.startswith("{{") else ".*" if p.startswith("[[") else re.escape(p) for p in parts))


def main(gnnc, top):
    faults = []
    docs = (top / "docs/passes.md").read_text()
    tests = {p: p.read_text() for kind in ("passes", "loops", "golden") for p in (top / "tests" / kind).iterdir() if p.is_file()}
    expected = "\n".join(tests.values())
    names = passes(gnnc)
    remarks = {name: {r for t in tests.values() for r in re.findall(rf"^ *(?://|#) [A-Z-]+:.*?\b{name}: (.*)$", t, re.M)} for name in names}
    telling = {p: t for p, t in tests.items() if any(re.search(rf"^ *(?://|#) [A-Z-]+:.*?\b{name}: ", t, re.M) for name in names)}
    did, refused = listen(gnnc, top, telling)
    for name in names:
        if not re.search(rf"^\| {name} \|", docs, re.M):
            faults.append(f"{name}: docs/passes.md has no row of it")
        runs = re.compile(rf"RUN:.*(--passes=|--stop-after=)([a-z-]+,)*{name}[ ,]")
        if not any(runs.search(t) for t in tests.values()):
            faults.append(f"{name}: no test runs it on text")
        said = remarks[name]
        yes, no = (any(pattern(r).search(x) for r in said for x in heard.get(name, ())) for heard in (did, refused))
        if name in BY_DIAGNOSTIC:
            if not said or BY_DIAGNOSTIC[name] not in expected:
                faults.append(f"{name}: no test has a remark of it and {BY_DIAGNOSTIC[name]}")
        elif not (yes and no):
            faults.append(f"{name}: of {len(said)} remarks that tests expect none says what it {'refused' if yes else 'did'}")
    heard = set()
    for model, options in MODELS:
        r = subprocess.run([gnnc, top / f"models/{model}.gnn", "--target=cpu,cuda", "--emit=none", "--report=fusion", "--report-format=json",
                            *options], capture_output=True, text=True, check=True)
        heard |= {m.group(1) for x in json.loads(r.stdout)["remarks"] if (m := re.match(r"(?:\S+: )?([a-z-]+): ", x))}
    silent = [n for n in names if n not in heard | RARE]
    if silent:
        faults.append("no report of a compiled model has a remark of " + ", ".join(silent))
    for f in faults:
        print(f)
    return len(faults) > 0


sys.exit(main(os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve()))
