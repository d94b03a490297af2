#!/usr/bin/env python3
"""Runs what the documentation says.  usage: docs.py GNNC TOP [PAGE..]

A page (docs/*.md, docs/embedding/*.md, README.md) is read from top to bottom in an empty directory of its own, with gnnc on
the PATH and $TOP the source tree; README.md's has the folder `models`, as where it is typed.  What stands after ``` decides:

    gnn                 a whole model: `gnnc check` accepts it
    gnn-error           fails, with the text of each `expect-error: TEXT` comment reported on that line
    gir                 textual IR that `gnnc check` accepts
    gir-error           fails, as gnn-error
    sh run              every line is a command that must succeed
    sh fails            every line is a command that must end with status 1
    console             each line `$ COMMAND` is run; the lines after it stand in what it prints, in this order and
                        side by side; a line `...` stands for any number of lines, and a number with a point may differ by a hundredth, as processors
                        add in other orders.  Without lines it must succeed

`pyg` after `run` or `console`: the block needs NumPy and reads a data set of torch_geometric, for which tests/fixtures/pyg stands in
where PyG is not.  `torch`: it needs PyG itself, and is left out elsewhere.

A line "`NAME`:" in front of a block says that the block is the file NAME, kept for later blocks.

Links between pages must lead somewhere.  docs/errors.md has a section for every code of ir/diag.def and no
other, and what is wrong in a section is wrong with the section's code; docs/layers.md has the layers' signatures.  Prints `N passed, N failed`."""
import glob
import os
import re
import subprocess
import sys
import tempfile

from fences import commands, fences

failures = []
count = 0


def report(where, ok, what):
    global count
    count += 1
    if not ok:
        failures.append(where)
        print(f"{where}: {what}")


# ---- blocks --------------------------------------------------------------------------------
def shell(command, cwd, env):
    try:
        r = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=cwd, env=env, timeout=300,
                           capture_output=True, text=True, errors="replace")
        return r.returncode, r.stdout + r.stderr
    except subprocess.TimeoutExpired:
        return 124, "timed out"


def expects_errors(body, said, code):
    """Each `expect-error: TEXT` is reported on its own line, with the code."""
    wants = [(i + 1, w.group(1).strip()) for i, line in enumerate(body.splitlines())
             for w in [re.search(r"expect-error:(.*)", line)] if w]
    return bool(wants) and all(any(f":{line}:" in s and want in s and code in s for s in said.splitlines())
                               for line, want in wants)


REAL = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


def alike(want, has):
    """Is the line what the page says, but for the last digits of its numbers?"""
    if want == has:
        return True
    words = [" ".join(REAL.sub("#", line).split()) for line in (want, has)]
    reals = [[float(x) for x in REAL.findall(line)] for line in (want, has)]
    return words[0] == words[1] and all(abs(a - b) <= abs(a) / 100 for a, b in zip(*reals))


def shows(body, said):
    """The block's lines stand in the output; `...` skips."""
    have = [s.rstrip() for s in said.splitlines()]
    at = 0
    for part in re.split(r"^\.\.\.\n", body, flags=re.M):
        lines = [s.rstrip() for s in part.splitlines()]
        while at + len(lines) <= len(have) and not all(map(alike, lines, have[at:at + len(lines)])):
            at += 1
        if at + len(lines) > len(have):
            return False
        at += len(lines)
    return True


def console(body, code, cwd, env):
    for command, lines in commands(body):
        status, said = shell(command, cwd, env)
        if status if not lines else not (shows(lines, said) and code in body + said):
            return False, f"{command}\nexit {status}, and not what the page says:\n{said}"
    return bool(commands(body)), "no line starts with $"


def one_block(kind, words, body, name, code, cwd, env):
    """(ok, what went wrong).  code: that of the section of docs/errors.md, else empty."""
    if name or kind in ("gnn", "gir", "gnn-error", "gir-error"):
        name = name or "example." + kind[:3]
        os.makedirs(os.path.join(cwd, os.path.dirname(name)), exist_ok=True)
        with open(os.path.join(cwd, name), "w", encoding="utf-8") as f:
            f.write(body)
    if kind in ("gnn", "gir"):
        status, said = shell(f"gnnc check {name}", cwd, env)
        return status == 0, f"exit {status}\n{said}"
    if kind in ("gnn-error", "gir-error"):
        status, said = shell(f"gnnc check {name}", cwd, env)
        return status == 1 and expects_errors(body, said, code), f"exit {status}\n{said}"
    if kind == "sh" and words.split()[:1] in (["run"], ["fails"]):
        want = words.startswith("fails")
        for line in body.replace("\\\n", " ").splitlines():
            status, said = shell(line, cwd, env)
            for line_left_out in re.findall(r"^LEFT OUT: .*", said, re.M):
                print(line_left_out)
            if status != want:
                return False, f"{line}\nexit {status}\n{said}"
    if kind == "console":
        return console(body, code, cwd, env)
    return True, ""


def runs(kind, words, name):
    return name or kind in ("gnn", "gir", "gnn-error", "gir-error", "console") or words.split()[:1] in (["run"], ["fails"])


# ---- what PyG is needed for ------------------------------------------------------------------
def imports(modules, env, python="python3"):
    return subprocess.run([python, "-c", f"import {modules}"], env=env, capture_output=True).returncode == 0


def with_numpy(bin_, env):
    """Does `python3` have NumPy?  Where only the system's has it, that one becomes python3."""
    if imports("numpy", env):
        return True
    if not os.path.exists("/usr/bin/python3") or not imports("numpy", env, "/usr/bin/python3"):
        return False
    os.symlink("/usr/bin/python3", os.path.join(bin_, "python3"))
    return True


def left_out(words, bin_, env, top):
    """Why the block cannot be run here; empty: it can."""
    if "torch" in words and not imports("torch_geometric, safetensors.torch", env):
        return "without PyG"
    if "pyg" in words:
        if not with_numpy(bin_, env):
            return "without NumPy"
        if not imports("torch_geometric", env):
            env["PYTHONPATH"] = os.path.join(os.path.abspath(top), "tests/fixtures/pyg")
    return ""


def blocks(page, gnnc, top):
    text = open(page, encoding="utf-8").read()
    with tempfile.TemporaryDirectory() as tmp:
        bin_, cwd = os.path.join(tmp, "bin"), os.path.join(tmp, "work")
        os.mkdir(bin_), os.mkdir(cwd)
        os.symlink(os.path.abspath(gnnc), os.path.join(bin_, "gnnc"))
        if os.path.basename(page) == "README.md" and os.path.dirname(page) == top:
            os.symlink(os.path.abspath(os.path.join(top, "models")), os.path.join(cwd, "models"))
        env = dict(os.environ, PATH=bin_ + ":" + os.environ["PATH"], TOP=os.path.abspath(top))
        for kind, words, body, name, start in fences(text):
            if runs(kind, words, name):
                where = f"{os.path.basename(page)}:{text.count(chr(10), 0, start) + 1}"
                why = left_out(words.split(), bin_, env, top)
                if why:
                    print(f"LEFT OUT: the block {where}, {why}")
                    continue
                code = re.findall(r"^## (?:(\w\d{4}):)?", text[:start], re.M)
                ok, why = one_block(kind, words, body, name, code[-1] if code else "", cwd, env)
                report(where, ok, f"```{kind} {words}: {why[:3000]}")


# ---- links -----------------------------------------------------------------------------------
def anchors(path):
    text = re.sub(r"^```.*?^```", "", open(path, encoding="utf-8").read(), flags=re.M | re.S)
    heads = re.findall(r"^#+ +(.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in heads}


def links(page):
    text = re.sub(r"^```.*?^```", "", open(page, encoding="utf-8").read(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        path = os.path.join(os.path.dirname(page), file) if file else page
        ok = os.path.exists(path) and (not anchor or anchor in anchors(path))
        report(os.path.basename(page), ok, f"the link {target} leads nowhere")


# ---- the error index ---------------------------------------------------------------------------
def error_index(top):
    codes = dict(re.findall(r'^DIAG\((\w+), "(.*)"\)', open(os.path.join(top, "ir/diag.def")).read(), re.M))
    page = open(os.path.join(top, "docs/errors.md"), encoding="utf-8").read()
    sections = dict(re.findall(r"^## (\w\d{4}): (.*)$", page, re.M))
    for code, title in codes.items():
        report("errors.md", sections.get(code) == title, f"needs a section '## {code}: {title}'")
        report("errors.md", re.search(rf"^\| \[{code}\]\(#.*\) \| {re.escape(title)} \|$", page, re.M), f"its table lacks {code}")
    for code in sections:
        report("errors.md", code in codes, f"{code} is not in ir/diag.def any more")


# ---- the layer library -------------------------------------------------------------------------
def layer_index(top):
    """Each row's signature stands so in its file, and every file has a row."""
    page = open(os.path.join(top, "docs/layers.md"), encoding="utf-8").read()
    rows = [(name, make + call) for name, make, call in
            re.findall(r"^\| [^|]+ \| `layers/(\w+)\.gnn` \| `([^`]+)` \|(?: `([^`]+)`)?", page, re.M)]
    files = {os.path.basename(p)[:-4]: open(p, encoding="utf-8").read()
             for p in glob.glob(os.path.join(top, "models/layers/*.gnn"))}
    for name in sorted(files):
        report("layers.md", name == "prelude" or name in dict(rows), f"layers/{name}.gnn has no row")
    for name, signature in rows:
        have = "".join(files.get(name, "").split())
        report("layers.md", "".join(signature.split()) + "{" in have, f"layers/{name}.gnn has no '{signature}'")


def main(gnnc, top, *names):
    pages = [p for at in ("docs/*.md", "docs/embedding/*.md", "README.md") for p in sorted(glob.glob(os.path.join(top, at)))]
    for page in pages:
        if names and os.path.basename(page) not in names:
            continue
        blocks(page, gnnc, top)
        links(page)
    if not names or "errors.md" in names:
        error_index(top)
    if not names or "layers.md" in names:
        layer_index(top)
    print(f"{count - len(failures)} passed, {len(failures)} failed")
    return 1 if failures or not count else 0


sys.exit(main(*sys.argv[1:]))
