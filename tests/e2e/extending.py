#!/usr/bin/env python3
"""Does what docs/extending.md says, in a copy of the tree.  usage: extending.py TOP

In order: a ```diff block is applied, a block with file=NAME is written, and in a ```sh in-tree block every line
is a command that must succeed.  Builds start from TOP/build.  Prints `N passed, N failed`, per section."""
import os
import re
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^## ([^\n]*)$|^```([\w-]+)([^\n]*)\n(.*?)^```", re.M | re.S)


def shell(command, cwd, text=None):
    r = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=cwd, input=text, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    return "" if r.returncode == 0 else f"{command}\n{r.stdout[-3000:]}"


def copy_tree(top, to):
    wrong = shell(f"git ls-files -z | xargs -0 cp -a --parents -t {to}", top)
    return wrong or shell(f"mkdir {to}/build && cd build && cp -a -t {to}/build "
                          "$(ls -A | grep -vE '^(clang|asan|tsan|msan|cov)')", top)


def write(tree, name, body):
    path = os.path.join(tree, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(body)
    return ""


def block(tree, kind, words, body):
    """What went wrong, or nothing."""
    if kind == "diff":
        return shell("patch -p1 --no-backup-if-mismatch", tree, body)
    if words.startswith(" file="):
        return write(tree, words[6:].strip(), body)
    if kind == "sh" and words.strip() == "in-tree":
        for line in body.splitlines():
            wrong = shell(line.replace("make ", "make -s OPT=-O1 "), tree)
            if wrong:
                return wrong
    return ""


def main(top):
    page = open(os.path.join(top, "docs/extending.md"), encoding="utf-8").read()
    sections, failed, section = [], {}, "start"
    with tempfile.TemporaryDirectory() as tree:
        wrong = copy_tree(top, tree)
        if wrong:
            print(wrong)
            return 1
        for m in FENCE.finditer(page):
            if m.group(1):
                section = m.group(1)
                sections.append(section)
            elif section not in failed:
                wrong = block(tree, *m.groups()[1:])
                if wrong:
                    failed[section] = wrong
                    print(f"{section}: {wrong}")
    print(f"{len(sections) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not sections else 0


sys.exit(main(os.path.abspath(sys.argv[1])))
