#!/usr/bin/env python3
"""Names of all kinds mean nothing but themselves: what gnnc writes, runs and prints with them is code to nobody.

    names.py BUILD    hostile names for the .gnn file, its directory, -I, -o, TMPDIR, CUDA_HOME, PREFIX, data, checkpoint,
                      trace, logs, columns and categories

Each name would leave a file PWN, or text outside of a comment or string, if somebody took it for code.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from directory import column, relation, write  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAMES = ["plain", "a b", "it's", 'quo"te', "back\\slash", "back\\", "com,ma", "do$HOME", "$(touch PWN)", "`touch PWN`",
         ";touch PWN;", "|touch PWN", "&touch PWN&", "nl\nint gn_pwn = 1;", "nl\n#error PWN", "\nint gn_pwn;\n", "cr\rint x;",
         "star*", "*", "??'", "*??", "@file", "-o", "-", "%s%n%d", "col:on", "{a,b}", "<b>&amp;", "#x", "\x01\x1b\x7f",
         "\u00fc\u202e", "--", "~"]
# Programs and libraries are made under these: a shell, C, a linker's script and the tools' options would each read some in
# another way.  With GNNC_LONG under all.
BUILT = {"a b", 'quo"te', "back\\", "com,ma", "$(touch PWN)", "nl\n#error PWN", "*", "@file", "-o", "%s%n%d", "~"}
# What nvcc, which works through a shell, could not be given.
SHELL = set("$`\"'\\,") | {chr(i) for i in range(32)}

MODEL = """
import "lay.gnn"
graph G {
  node user { x: f32[F];  y: class[C];  split }
  edge knows: user -> user
}
model M(g: G) -> f32[user, C] {
  out = linear(C)
  h = own(sum(g.user.x[g.knows.src], over = g.knows.dst))
  log(LOG, mean(h))
  return out(h)
}
train M {
  target user.y   loss cross_entropy   metric accuracy
  optimizer sgd(lr = 1e-2)
  epochs 2
}
"""
LOGS = ["plain", 'quo"te', "back\\slash", "nl\nint x;", "*/ int gn_pwn; /*", "??/", "%s%n", "\u00fc", "$(touch PWN)"]


def run(command, ok=True, **env):
    p = subprocess.run(command, env={**os.environ, **env}, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    assert (p.returncode == 0) == ok, (command, env, p.returncode, p.stdout[-800:], p.stderr[-1500:])
    assert not [f for _, dirs, files in os.walk(".") for f in dirs + files if f.startswith("PWN")], (command, env)
    return p.stdout, p.stderr.decode(errors="replace")


def quoted(s):
    return '"%s"' % s.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def code(text):
    """C without comments, what strings say, which identifiers it has and where lines end: a kernel begins with the
    file's name, whose length says where."""
    plain, _ = run(["cc", "-fpreprocessed", "-E", "-P", "-x", "c", text])
    nameless = re.sub(r"[A-Za-z_]\w*", "I", re.sub(r'"(?:[^"\\]|\\.)*"', '""', plain.decode(errors="replace")))
    return re.sub(r" ?([^\w ]) ?", r"\1", re.sub(r"\s+", " ", nameless))


def data(path):
    os.mkdir(path)
    nodes = {"user": {"count": 12, "columns": {
        "x": column(path, "x", "float", [i % 5 for i in range(36)], width=3),
        "y": column(path, "y", "class", [i % 2 for i in range(12)], categories=2),
        "split": column(path, "split", "split", [1 + i % 3 for i in range(12)])}}}
    write(path, nodes, {"knows": relation(path, "knows", "user", "user", [(i, (i * 5 + 1) % 12) for i in range(12)])})


def emitted(gnnc):
    """What is written of a model in NAME/NAME.gnn with options of such names is the same code for all of them."""
    want = {}
    for name in NAMES:
        os.makedirs(os.path.join("emit", name, "lib"), exist_ok=True)
        source = os.path.join("emit", name, name + ".gnn")
        with open(source, "w", encoding="utf-8") as f:
            f.write(MODEL.replace("LOG", quoted("x")))
        with open(os.path.join("emit", name, "lib", "lay.gnn"), "w", encoding="utf-8") as f:
            f.write("fn own(x: f32[S, F]) -> f32[S, F] { return tanh(x) }\n")
        for kind in ("cuda", "c"):
            out = os.path.join("emit", name, kind)
            run([gnnc, source, "-I" + os.path.join("emit", name, "lib"), "--target=" + ("cuda" if kind == "cuda" else "cpu"),
                 "--emit=" + kind, "-o", out])
            found = code(out)
            assert found == want.setdefault(kind, found), (name, kind)


def logs(gnnc):
    """Logged values' names, in the driver and in JSON."""
    for text in LOGS:
        with open("log.gnn", "w", encoding="utf-8") as f:
            f.write(MODEL.replace("LOG", quoted(text)))
        run([gnnc, "log.gnn", "-Iemit/plain/lib", "--target=cpu", "-O0", "-o", "log"])
        out, _ = run(["./log", "--data", "plain", "--log", "json", "--checkpoint", "none", "--threads", "1"])
        lines = [json.loads(line) for line in out.decode().splitlines()]
        assert any("log:" + text in line or text in line or any(isinstance(v, dict) and text in v for v in line.values())
                   for line in lines), (text, lines)


def programs(gnnc):
    """Built and run with nothing but such names: program, TMPDIR, data, checkpoint, trace."""
    for name in NAMES[1:]:
        tmp = os.path.join("tmp", name)
        os.makedirs(tmp)
        out = os.path.join(tmp, name)
        if name in BUILT or "GNNC_LONG" in os.environ:
            run([gnnc, "emit/plain/plain.gnn", "-Iemit/plain/lib", "--target=cpu", "-O0", "-o", out], TMPDIR=tmp)
            assert os.listdir(tmp) == [name], (name, os.listdir(tmp))
            os.mkdir(os.path.join(tmp, "lib"))
            run([gnnc, "emit/plain/plain.gnn", "-Iemit/plain/lib", "--target=cpu", "-O0", "--emit=lib", "-o", os.path.join(tmp, "lib/model")],
                TMPDIR=tmp)
            assert len(os.listdir(os.path.join(tmp, "lib"))) == 6 and len(os.listdir(tmp)) == 2, (name, os.listdir(tmp))
        run([gnnc, "emit/plain/plain.gnn", "-Iemit/plain/lib", "--emit=lib", "-o", os.path.join("tmp", name)], ok=False)
        os.rename("plain", name) if not os.path.exists(name) else None
        ckpt, trace = os.path.join(tmp, name + ".ckpt"), os.path.join(tmp, name + ".trace")
        out, _ = run(["./log", "--data=" + name, "--log=json", "--checkpoint=" + ckpt, "--trace=" + trace, "--threads=1"])
        for line in out.decode().splitlines():
            json.loads(line)
        with open(trace, encoding="utf-8") as f:
            json.load(f)
        assert os.path.exists(ckpt), name
        out, _ = run(["./log", "bench", "--data=" + name, "--epochs=2", "--json", "--threads=1"])
        assert json.loads(out.decode().splitlines()[0])["data"] == name, name
        os.rename(name, "plain")
    for tmp in ("-t", "@t"):  # relative ones
        os.mkdir(tmp)
        run([gnnc, "emit/plain/plain.gnn", "-Iemit/plain/lib", "--target=cpu", "-O0", "-o", "log"], TMPDIR=tmp)


def toolkit(gnnc):
    """What nvcc gets is nothing that a shell would read in another way; TMPDIR or a toolkit of such a name is refused."""
    for name in NAMES:
        home = os.path.abspath(os.path.join("home", name))
        os.makedirs(os.path.join(home, "bin"))
        nvcc = os.path.join(home, "bin", "nvcc")
        with open(nvcc, "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\nprintf "%s\\n" "$@" >"$ASKED"\nexit 1\n')
        os.chmod(nvcc, 0o755)
        for env in ({"CUDA_HOME": home}, {"CUDA_HOME": os.path.abspath("home/plain"), "TMPDIR": os.path.join("tmp", name)}):
            os.makedirs(os.path.join("tmp", name), exist_ok=True)
            asked = os.path.abspath("asked")
            _, err = run([gnnc, "emit/plain/plain.gnn", "-Iemit/plain/lib", "--target=cuda", "-O0", "-o", "x"], ok=False,
                         ASKED=asked, **env)
            refused = bool(SHELL & set(name))
            assert refused == ("works through a shell" in err) == (not os.path.exists(asked)), (env, err)
            if not refused:
                os.unlink(asked)


def installed():
    """Under a PREFIX with blanks, quotes and commas; and a toolkit in such a place is found when gnnc is built."""
    for name in ("a b", "it's, $x"):
        prefix = os.path.abspath(os.path.join("prefix", name))
        run(["make", "-s", "-C", TOP, "install", "PREFIX=" + prefix.replace("$", "$$")])
        run([os.path.join(prefix, "bin/gnnc"), "emit/plain/plain.gnn", "-Iemit/plain/lib", "--target=cpu", "-O0", "-o", "installed"])
        home = os.path.abspath(os.path.join("home", "a b"))
        run(["make", "-s", "-C", TOP, "BUILD=" + os.path.abspath("flags"), "CUDA_HOME=" + home, os.path.abspath("flags/cuda.flags")])
        with open("flags/cuda.flags", encoding="utf-8") as f:
            assert f.read().splitlines()[:5] == ["-L" + home + "/lib64", "-Xlinker", "-rpath", "-Xlinker", home + "/lib64"]


def tables(gnnc):
    """Columns and categories of a CSV: the schema says them again."""
    names = [n for n in NAMES if n.strip() == n and n.isprintable() and ":" not in n]  # "name:kind"
    cell = lambda s: '"%s"' % s.replace('"', '""')
    os.mkdir("csv")
    with open("csv/user.csv", "w", encoding="utf-8", newline="") as f:
        f.write(",".join(["id"] + [cell("c%d%s" % (i, n)) for i, n in enumerate(names)]) + "\n")
        for i in range(40):
            f.write(",".join(["u%d" % i] + [cell(names[(i + k) % len(names)]) for k in range(len(names))]) + "\n")
    with open("csv/user__knows__user.csv", "w", encoding="utf-8") as f:
        f.write("src,dst\n" + "".join("u%d,u%d\n" % (i, (i * 7) % 40) for i in range(40)))
    before = set(os.listdir("."))
    run([gnnc, "import", "csv", "-o", "imported"])
    assert set(os.listdir(".")) - before == {"imported"}
    with open("imported/schema.json", encoding="utf-8") as f:
        json.load(f)
    assert all(os.path.isfile(os.path.join("imported", n)) for n in os.listdir("imported"))


def main():
    build = os.path.abspath(sys.argv[1])
    gnnc = build + "/gnnc"
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        data("plain")
        emitted(gnnc)
        logs(gnnc)
        programs(gnnc)
        toolkit(gnnc)
        installed()
        tables(gnnc)


main()
