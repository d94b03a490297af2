#!/usr/bin/env python3
"""gnnc fmt changes layout and nothing else.  usage: fmt.py GNNC TOP

Of every .gnn file of the tree, and every model on the pages of docs/ and in README.md: what fmt makes of it
is left alone by a second fmt, and, where it is another text, gives the same graph IR but for positions; or neither text can be read.
The shipped models have the layout.  Prints `N passed, N failed`."""
import concurrent.futures
import glob
import os
import re
import stat
import subprocess
import sys
import tempfile

import gnncc

FENCE = re.compile(r"^```gnn(?:-error)?\b[^\n]*\n(.*?)^```", re.M | re.S)
SHIPPED = ("models/*.gnn", "models/layers/*.gnn", "bench/models/*.gnn", "docs/embedding/*.gnn")


def texts(gnnc, top):
    """Each text with where it is from, and the folder that its imports start at."""
    files = subprocess.run(["git", "ls-files", "*.gnn"], cwd=top, capture_output=True, text=True).stdout.split()
    files = files or [os.path.relpath(f, top) for f in glob.glob(os.path.join(top, "*/**/*.gnn"), recursive=True)]
    for name in files:
        with open(os.path.join(top, name), "rb") as f:
            yield name, os.path.dirname(os.path.join(top, name)), f.read()
    for page in ["README.md"] + glob.glob("docs/**/*.md", root_dir=top, recursive=True):
        with open(os.path.join(top, page), encoding="utf-8") as f:
            for i, m in enumerate(FENCE.finditer(f.read())):
                yield f"{page}#{i}", top, m.group(1).encode()


def fmt(gnnc, text):
    r = subprocess.run([gnnc, "fmt"], input=text, capture_output=True)
    return r.returncode, r.stdout, r.stderr


def graph(lib, text, folder):
    """The graph IR without positions, or None."""
    try:
        ir = gnncc.made(lib, "model.gnn", "-I", folder, "--passes=", "--target=cpu", "--emit=ir", text=text)
    except ValueError:
        return None
    return re.sub(rb"  !.*|  source .*", b"", re.split(rb"^sources {", ir, flags=re.M)[0])


def wrong(gnnc, lib, name, folder, text):
    """What fmt makes of it, or None where it cannot be read; and what is wrong, or None."""
    code, once, said = fmt(gnnc, text)
    if code:
        place = re.match(rb"<stdin>:\d+:\d+: error: ", said)
        return None, None if code == 1 and place and not once else f"fmt ends with {code}: {said.decode()}"
    if len(re.findall(rb"[^ \n]*#", once)) != len(re.findall(rb"[^ \n]*#", text)):
        return once, "a comment is lost"
    if once != text and graph(lib, text, folder) != graph(lib, once, folder):
        return once, "the graph IR is another one"
    return once, None


def changed_again(gnnc, made):
    """Names of those in made, {name: what fmt made}, that a second fmt changes, all by one call, and then --check refuses."""
    with tempfile.TemporaryDirectory() as work:
        paths = {name: os.path.join(work, f"{i}.gnn") for i, name in enumerate(made)}
        for name, path in paths.items():
            with open(path, "wb") as f:
                f.write(made[name])
        refused = subprocess.run([gnnc, "fmt", "--check", *paths.values()], capture_output=True, text=True)
        for name, path in paths.items():
            if path in refused.stdout.splitlines():
                yield f"{name}: fmt --check refuses what fmt made"
        again = subprocess.run([gnnc, "fmt", *paths.values()], capture_output=True, text=True)
        if again.returncode or refused.returncode not in (0, 1) or refused.stderr:
            yield f"fmt of what fmt made: {refused.stderr}{again.stderr}"
        for name, path in paths.items():
            with open(path, "rb") as f:
                if f.read() != made[name]:
                    yield f"{name}: fmt of what fmt made changes it"


def check_files(gnnc, work):
    """Files are replaced whole, all or none."""
    good, bad, link = (os.path.join(work, n) for n in ("good.gnn", "bad.gnn", "link.gnn"))

    def write(path, text):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def read(path):
        with open(path, encoding="utf-8") as f:
            return f.read()

    def run(*args):
        r = subprocess.run([gnnc, "fmt", *args], cwd=work, capture_output=True, text=True)
        return r.returncode, r.stdout, r.stderr

    write(good, "#\n" * 400000)
    try:
        found = subprocess.run([gnnc, "fmt", "--check", good], capture_output=True, timeout=30).returncode
    except subprocess.TimeoutExpired:
        found = "no end"
    yield "comments in a row are not gone through for each", found == 0
    behind = "layer a()(x: f32[N]) {\n  if training {\n    y = x\n  }z = x\n  return z\n}\n"
    write(good, behind)
    yield "a statement in the line of a brace gets its own", run("good.gnn")[0] == 0 and read(good) == behind.replace("}z", "}\n  z")
    ugly, nice = "fn   f(x){return -x+1}", "fn f(x) { return -x + 1 }\n"
    write(good, ugly)
    write(bad, "fn f(x) {\n  return (x\n}\n")
    os.chmod(good, 0o640)
    os.symlink("good.gnn", link)
    code, out, err = run("good.gnn", "bad.gnn")
    yield "a bad file is told with its place", code == 1 and "bad.gnn:3:1: error: unexpected '}'" in err
    yield "nothing is written beside a bad file", read(good) == ugly
    yield "--check names what differs", run("--check", "good.gnn") == (1, "good.gnn\n", "") and read(good) == ugly
    code, out, err = run("--diff", "good.gnn")
    yield "--diff shows it", code == 1 and "-fn   f(x){return -x+1}\n+" + nice in out and read(good) == ugly
    yield "a link stays one", run("link.gnn")[0] == 0 and os.path.islink(link) and read(good) == nice
    yield "the mode stays", stat.S_IMODE(os.stat(good).st_mode) == 0o640
    yield "nothing is left over", sorted(os.listdir(work)) == ["bad.gnn", "good.gnn", "link.gnn"]
    before = os.stat(good).st_ino
    yield "what is right is not written again", run("good.gnn")[0] == 0 and os.stat(good).st_ino == before
    yield "no such file", run("none.gnn")[0] == 1
    yield "--check is for fmt", subprocess.run([gnnc, "check", "--check", good], capture_output=True).returncode == 2


def main(gnnc, top):
    gnnc, top = os.path.abspath(gnnc), os.path.abspath(top)
    failures, count, made, lib = [], 0, {}, gnncc.opened(gnnc)
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        found = [(t[0], pool.submit(wrong, gnnc, lib, *t)) for t in texts(gnnc, top)]
        for name, result in found:
            count += 1
            once, why = result.result()
            if why:
                failures.append(f"{name}: {why}")
            if once is not None:
                made[name] = once
    failures += changed_again(gnnc, made)
    for pattern in SHIPPED:
        for path in sorted(glob.glob(os.path.join(top, pattern))):
            count += 1
            with open(path, "rb") as f:
                if f.read() != made.get(os.path.relpath(path, top)):
                    failures.append(f"{os.path.relpath(path, top)} has not the layout of gnnc fmt")
    with tempfile.TemporaryDirectory() as work:
        for what, ok in check_files(gnnc, work):
            count += 1
            if not ok:
                failures.append(what)
    print("\n".join(failures) + "\n" * bool(failures) + f"{count - len(failures)} passed, {len(failures)} failed")
    return bool(failures) or count < 400


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
