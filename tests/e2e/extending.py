#!/usr/bin/env python3
"""Does what docs/extending.md says, in a copy of the tree.  usage: extending.py TOP [SECTION]

First all ```diff blocks are applied and all blocks behind a line "`NAME`:" are written, so that one build has them all; then
in each ```sh in-tree block every line is a command that must succeed.  "This takes changes in 2 source files, 1 page and 1 test" is
counted.  Builds start from TOP/build; only the commands of sections that contain SECTION are run.  Prints
`N passed, N failed`, per section."""
import os
import re
import subprocess
import sys
import tempfile

from fences import fences


def shell(command, cwd, text=None):
    r = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=cwd, input=text, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    return "" if r.returncode == 0 else f"{command}\n{r.stdout[-3000:]}"


def copy_tree(top, to):
    wrong = shell(f"git ls-files -z | xargs -0 cp -a --parents -t {to}", top)
    return wrong or shell(f"mkdir {to}/build && cd build && cp -a -t {to}/build "
                          "$(ls -A | grep -vE '^(clang|asan|tsan|msan|cov|fuzz|cuda|pyarrow|wheel)')", top)


def write(tree, name, body):
    path = os.path.join(tree, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(body)
    return ""


def change(tree, kind, words, body, name):
    """Applies or writes what a block has.  What went wrong, or nothing."""
    if kind == "diff":
        return shell("patch -p1 --no-backup-if-mismatch", tree, body)
    return write(tree, name, body) if name else ""


# Nobody debugs what is built here, and it runs little: the runtime is compiled anew by the first section, whatever else is done.
MAKE = "make -s OPT='-O0 -g0' OPT_COMPILER= TEST_LINES=-Wl,-S "


def commands(tree, kind, words, body, _):
    for line in body.splitlines() if kind == "sh" and words == "in-tree" else []:
        wrong = shell(line.replace("make ", MAKE), tree)
        if wrong:
            return wrong
    return ""


def files_of(blocks):
    """[sources, pages, tests] of the tree that the blocks of a section touch: not the user's models, beside it."""
    names = set()
    for kind, _, body, name in blocks:
        names |= set(re.findall(r"^\+\+\+ b/(\S+)", body, re.M) if kind == "diff" else [name] if name else [])
    names = {n for n in names if "/" in n}
    pages, tests = (len([n for n in names if n.startswith(d)]) for d in ("docs/", "tests/"))
    return [len(names) - pages - tests, pages, tests]


def count(text, blocks):
    said = re.search(r"^This takes changes in (\d+) source files?, (\d+) pages? and (\d+) tests?", text, re.M)
    has = files_of(blocks)
    return f"it says {said.group()}, and there are {has}" if said and [int(x) for x in said.groups()] != has else ""


def main(top, only):
    page = open(os.path.join(top, "docs/extending.md"), encoding="utf-8").read()
    parts = [p.partition("\n") for p in re.split(r"^## ", page, flags=re.M)[1:]]
    sections = {name: [block[:4] for block in fences(text)] for name, _, text in parts}
    failed = {name: wrong for name, _, text in parts if (wrong := count(text, sections[name]))}
    with tempfile.TemporaryDirectory() as tree:
        wrong = copy_tree(top, tree)
        if wrong:
            print(wrong)
            return 1
        for act in (change, commands):
            for name, blocks in sections.items():
                for b in blocks:
                    if name not in failed and (act is change or only in name):
                        wrong = act(tree, *b)
                        if wrong:
                            failed[name] = wrong
    for name, wrong in failed.items():
        print(f"{name}: {wrong}")
    print(f"{len(sections) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not sections else 0


sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""))
