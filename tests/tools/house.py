#!/usr/bin/env python3
"""Measures of the tree.  usage: house.py TOP BUILD [--check]

    circles      files that call each other, all around: strongly connected by the symbols of their object files
    direction    includes between the top folders go one way: frontend, codegen, passes, ir, runtime
    functions    the longest ones
    comments     share of lines that are comments
    to add       files that docs/extending.md changes for each thing

With --check it prints what breaks the rules of the first two alone, and fails where something does."""
import collections
import fnmatch
import os
import re
import subprocess
import sys

FOLDERS = ["frontend", "codegen", "passes", "ir", "runtime"]  # each includes those behind it

# Circles that are one concept.  Files, the most of them, and why they need each other.
CONCEPTS = [
    ("frontend/elab/*", 14, "an evaluator is one recursion"),
    ("ir/op/* ir/op_impl ir/build ir/interp*", 20, "gradients are built of operations; a loop runs its body"),
    ("runtime/cli/*", 14, "commands of one program"),
    ("codegen/cpu/*", 8, "statements hold statements"),
    ("codegen/cuda/* codegen/target", 10, "statements hold statements; kernels ask their target"),
    ("runtime/bind/* runtime/memory runtime/model/* runtime/graph/node_names", 9,
     "data and weights are bound by each other's names and sizes"),
    ("runtime/session/*", 8, "one object, by what is asked of it"),
    ("runtime/cuda/*", 9, "one device: its table of functions, and what they share"),
    ("runtime/device/*", 6, "what phases ask for is recorded; where memory moves, recordings are made anew"),
    ("runtime/batch/*", 6, "the sizes of batches decide which of their steps run alone"),
    ("runtime/graph/graph_append runtime/model/cells", 2, "cells are encoded, then appended"),
]
SMALL = 5  # a circle of at most so many files of one folder is one concept


# ---- circles ---------------------------------------------------------------------------------
def calls(top, build):
    """By file: the files whose symbols it needs, by symbol.  An object whose source is gone is none."""
    objects = [os.path.relpath(os.path.join(d, f), build) for top in FOLDERS + ["gen"]
               for d, _, fs in os.walk(os.path.join(build, top)) for f in fs if f.endswith(".o")]
    objects = [o for o in objects if o.startswith("gen/") or os.path.exists(os.path.join(top, o[:-2] + ".c"))]
    said = subprocess.run(["nm", "-A", "-g"] + sorted(objects), cwd=build, capture_output=True, text=True).stdout
    defines, needs = collections.defaultdict(list), collections.defaultdict(set)
    for line in said.splitlines():
        name, rest = line.split(":", 1)
        name = re.sub(r"^gen/|\.o$", "", name)
        kind, symbol = rest.split()[-2:]
        if kind in "Uw":
            needs[name].add(symbol)
        else:
            defines[symbol].append(name)
    to = {re.sub(r"^gen/|\.o$", "", o): collections.defaultdict(list) for o in objects}
    for name, symbols in needs.items():
        for s in sorted(symbols):
            by = [d for d in defines.get(s, []) if d.split("/")[0] == name.split("/")[0]] or defines.get(s, [])
            if by and name not in by:
                to[name][by[0]].append(s)
    return to


def circles(to):
    """Strongly connected components of several files (Tarjan 1972)."""
    index, low, stack, found = {}, {}, [], []
    sys.setrecursionlimit(10000)

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in to[v]:
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            circle = []
            while not circle or circle[-1] != v:
                circle.append(stack.pop())
            if len(circle) > 1:
                found.append(sorted(circle))

    for v in sorted(to):
        if v not in index:
            visit(v)
    return sorted(found, key=lambda c: (-len(c), c))


def concept(circle):
    for files, most, why in CONCEPTS:
        if all(any(fnmatch.fnmatch(f, p) for p in files.split()) for f in circle):
            return why if len(circle) <= most else None
    same = len({os.path.dirname(f) for f in circle}) == 1
    return "one concept of a folder" if same and len(circle) <= SMALL else None


# ---- direction -------------------------------------------------------------------------------
def includes_upwards(top):
    found = []
    for f in sources(top):
        at = f.split("/")[0]
        for name in re.findall(r'#include "([^"]+)"', read(top, f)):
            for base in ("", os.path.dirname(f), "runtime/include"):
                path = os.path.normpath(os.path.join(base, name))
                if os.path.exists(os.path.join(top, path)):
                    to = path.split("/")[0]
                    if to not in FOLDERS or FOLDERS.index(to) < FOLDERS.index(at):
                        found.append(f"{f} includes {path}")
                    break
    return found


# ---- the rest --------------------------------------------------------------------------------
def sources(top):
    return [os.path.relpath(os.path.join(d, f), top) for folder in FOLDERS for d, _, fs in os.walk(os.path.join(top, folder))
            for f in fs if f.endswith((".c", ".h"))]


def read(top, f):
    return open(os.path.join(top, f), encoding="utf-8", errors="replace").read()


def functions(top):
    found = []
    for f in sources(top):
        for m in re.finditer(r"^(?!typedef|struct|enum|union|static const|#)[A-Za-z][^;{}=]*?(\w+)\([^;{}]*\) \{\n(.*?)^\}", read(top, f), re.M | re.S):
            found.append((m.group(2).count("\n") + 2, m.group(1), f))
    return sorted(found, reverse=True)


def comment_share(top):
    lines = comments = 0
    for f in sources(top):
        text = read(top, f)
        lines += text.count("\n")
        comments += sum(c.count("\n") + 1 for c in re.findall(r"/\*.*?\*/", text, re.S))
    return comments, lines


def to_add(top):
    rows = []
    for section in re.split(r"^## ", read(top, "docs/extending.md"), flags=re.M)[1:]:
        name = section.splitlines()[0]
        files = set(re.findall(r"^\+\+\+ b/(\S+)", section, re.M)) | set(re.findall(r"^`([\w/.]+)`:$", section, re.M))
        tree = {f for f in files if os.path.exists(os.path.join(top, os.path.dirname(f)))and "/" in f}
        tests = {f for f in tree if f.startswith("tests/")}
        pages = {f for f in tree if f.startswith("docs/")}
        if tree:
            rows.append((name, len(tree - tests - pages), len(pages), len(tests)))
    return rows


def main():
    top, build = sys.argv[1], sys.argv[2]
    found, up = circles(calls(top, build)), includes_upwards(top)
    bad = [f"a circle of {len(c)} files that is no known concept: {' '.join(c)}" for c in found if not concept(c)] + up
    if "--check" in sys.argv:
        print("\n".join(bad))
        sys.exit(bool(bad))
    print(f"| circles | {len(found)}, of {', '.join(str(len(c)) for c in found)} files |")
    print(f"| files in circles | {sum(len(c) for c in found)} of {len(calls(top, build))} |")
    print(f"| includes against the direction | {len(up)} |")
    longest = functions(top)
    print(f"| functions | {len(longest)}; over 40 lines {sum(n > 40 for n, _, _ in longest)}; "
          f"longest {', '.join(f'{n} ({f}: {name})' for n, name, f in longest[:3])} |")
    comments, lines = comment_share(top)
    print(f"| lines of comments | {comments} of {lines}, {100 * comments / lines:.1f} % |")
    for name, source, page, test in to_add(top):
        print(f"| to add: {name} | {source} sources, {page} pages, {test} tests |")
    for b in bad:
        print(b)


main()
