"""The Python package gnnc, the compiler for Python: what it makes is what the command line makes, kept by content; what is wrong
arrives as values; and it declares what gnncc.h says.  Called by python.py."""
import ctypes
import faulthandler
import glob
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile

BAD = "graph G { node n { x: f32[F] } }\nmodel M(g: G) -> f32[n, F] {\n  return g.n.z\n}\n"
GOOD = BAD.replace("g.n.z", "twice(g.n.x)")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def raises(kind, text, f, *args, **kw):
    try:
        f(*args, **kw)
    except kind as e:
        assert text in str(e), (text, str(e))
        return e
    raise AssertionError("no %s: %s" % (kind.__name__, text))


def the_interface(top, gnnc):
    """Constants and functions are those of gnncc.h; all that is declared is called."""
    _library = gnnc._library
    header = read(top + "/frontend/include/gnncc.h").decode()
    statuses = dict(re.findall(r"X\((\w+), (-?\d+), \"", header))
    assert _library.STATUS == {n: int(v) for n, v in statuses.items()}
    words = re.search(r"typedef enum gnncc_severity \{([^}]*)\}", header).group(1).split(",")
    assert [w.strip() for w in words] == ["GNNCC_" + s.upper() for s in _library.SEVERITY]
    plain = {"int": ctypes.c_int, "gnncc_status": ctypes.c_int, "gnncc_severity": ctypes.c_int, "size_t": ctypes.c_size_t,
             "uint32_t": ctypes.c_uint32, "void": None}

    def of(declaration):
        d = re.sub(r"\bconst\b|\[4\]", lambda m: "*" if m.group(0) == "[4]" else "", declaration)
        base, stars = re.findall(r"\w+", d)[0], d.count("*")
        if base == "gnncc_cancel_fn":
            return _library.Cancel
        kind = {"char": ctypes.c_char_p, "void": ctypes.py_object}.get(base) or \
            (ctypes.c_void_p if base in ("gnncc_compiler", "gnncc_result") else plain[base])
        pointers = stars - (base in ("char", "void", "gnncc_compiler", "gnncc_result"))
        for _ in range(pointers):
            kind = ctypes.POINTER(kind)
        return plain[base] if stars == 0 else kind

    code = "".join(read(p).decode() for p in glob.glob(os.path.dirname(gnnc.__file__) + "/*.py"))
    body = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    prototypes = {m.group(2): m for m in re.finditer(r"^((?:const )?\w+[ *]+)(gnncc_\w+)\(([^()]*)\);", body, re.M)}
    for name, (returns, takes) in _library.FUNCTIONS.items():
        m = prototypes[name]
        want = [] if m.group(3).strip() == "void" else [of(p) for p in m.group(3).split(",")]
        gives = ctypes.c_void_p if name == "gnncc_result_data" else of(m.group(1))
        assert (gives, want) == (returns, takes), (name, m.group(0), takes)
        short = name[len("gnncc_"):]
        assert re.search(r'library\.%s\b|"%s"' % (short, short), code), (name, "is declared, and not called")


def kept_by_content(top, gnnc, churn):
    """The same package as the command line's, compiled once, in this process and in others."""
    _models = gnnc._models
    asked = {"name": "churn", "target": "cpu", "embed": "h"}
    own = gnnc.compile(top + "/models/gcn.gnn", **asked)
    assert own is not churn and own.__doc__ == churn.__doc__ and own.__name__.startswith("gnnc.churn_")
    for name in ("libchurn.so", "_facts.py", "_trainer.py", "py.typed"):
        assert read(os.path.join(os.path.dirname(own.__file__), name)) == read("churn/" + name), name
    built = []
    old, _models._build = _models._build, lambda *args: built.append(args)
    try:
        assert gnnc.compile(top + "/models/gcn.gnn", **asked) is own and not built
        assert gnnc.compile(top + "/models/gcn.gnn", name="churn", target="cpu", embed="h", verify_each=False) is own and not built
        raises(Exception, "", gnnc.compile, top + "/models/gcn.gnn", define={"hidden": 7}, **asked)
        raises(Exception, "", gnnc.compile, read(top + "/models/gcn.gnn").decode(), include=[top + "/models"], **asked)
        assert len(built) == 2
    finally:
        _models._build = old
    text = "import gnnc; m = gnnc.compile(%r, name='churn', target='cpu', embed='h'); print(m.__file__)" % (top + "/models/gcn.gnn")
    before = sorted(os.listdir(gnnc.cache_dir()))
    said = subprocess.run([sys.executable, "-c", text], env={**os.environ, "PATH": "/none"}, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == own.__file__ and sorted(os.listdir(gnnc.cache_dir())) == before and len(before) == 1
    t = own.Trainer(top + "/models/data/cora", epochs=1)
    t.train()
    assert own.Error is not churn.Error and t.predict().shape == (2708, 7)


def mistakes_as_values(gnnc):
    e = raises(gnnc.CompileError, "model.gnn:3:", gnnc.compile, BAD)
    d = e.diagnostics[0]
    assert (d.severity, d.file, d.line) == ("error", "model.gnn", 3) and d.code.startswith("E02") and d.end_column > d.column
    assert "  return g.n.z" in str(e) and str(d).startswith("model.gnn:3:%d: error: " % d.column)
    assert gnnc.check(BAD) == [*e.diagnostics] and pickle.loads(pickle.dumps(e)).diagnostics == e.diagnostics
    raises(gnnc.CompileError, "cannot read 'nowhere.gnn'", gnnc.compile, "nowhere.gnn")
    parts = 'import "parts/twice.gnn"\n' + GOOD
    assert gnnc.check(parts, files={"parts/twice.gnn": "fn twice(x) { return x + x }\n"}) == []
    assert gnnc.check(parts)[0].code == "E0301"
    raises(gnnc.OptionError, "there is no option 'emit'", gnnc.compile, GOOD, emit="ir")
    raises(gnnc.OptionError, "'f8' is not a value", gnnc.compile, GOOD, precision="f8")
    raises(gnnc.OptionError, "needs a value", gnnc.compile, GOOD, march=True)
    raises(gnnc.OptionError, "Python's own", gnnc.compile, GOOD.replace("twice(g.n.x)", "g.n.x"), name="json")
    raises(ValueError, "NUL", gnnc.check, "a\0b")
    assert set(gnnc.options()) > {"precision", "march", "O0", "target"} and "emit" not in gnnc.options()


def stages(top, gnnc):
    """Several threads compile at once; each text is what it is alone."""
    kinds = ("ir", "plan", "loops", "header")
    alone, found = {k: gnnc.emit(top + "/models/gat.gnn", k) for k in kinds}, {}
    threads = [threading.Thread(target=lambda k=k: found.update({k: gnnc.emit(top + "/models/gat.gnn", k)})) for k in kinds]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == alone and alone["ir"].startswith('module "gat"') and "gat_program" in alone["header"]
    assert gnnc.emit(top + "/models/gcn.gnn", "obj", O0=True)[:4] == b"\177ELF"
    kept = gnnc.emit(top + "/models/gcn.gnn", "ir", precision="auto", data=top + "/models/data/cora", target="cpu")
    assert "f16[" in kept, kept[:500]  # a few steps were run in this process, beside what it has loaded
    raises(gnnc.CompileError, "no data directory", gnnc.emit, top + "/models/gcn.gnn", "ir", precision="auto", data="nowhere")


def interrupted(top, gnnc):
    """Ctrl-C ends a compile, and nothing of it stays."""
    before, folder = os.listdir(gnnc.cache_dir()), os.path.join(os.getcwd(), "tmp")
    os.makedirs(folder)
    os.environ["TMPDIR"], old = folder, os.environ.get("TMPDIR")
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    begun = time.monotonic()
    timer.start()
    raises(KeyboardInterrupt, "", gnnc.compile, top + "/models/gat.gnn", target="cpu")
    timer.join()
    assert time.monotonic() - begun < 60 and os.listdir(gnnc.cache_dir()) == before, os.listdir(gnnc.cache_dir())
    assert os.listdir(folder) == [], os.listdir(folder)
    del os.environ["TMPDIR"]
    if old is not None:
        os.environ["TMPDIR"] = old


def interrupted_at_the_end(gnnc):
    """Ctrl-C that comes when a call ends, or just begins, is heard, and nobody waits for what has ended."""
    killers = []

    def quick(*_args):
        killers.append(threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)))
        killers[-1].start()
        return 0
    heard = 0
    faulthandler.dump_traceback_later(120, exit=True)  # it waited without end once
    for _ in range(100):
        job = gnnc._library.Compiler([], {})
        try:
            job.run(quick)
            killers[-1].join()
            time.sleep(0.1)  # else it is heard behind the call
        except KeyboardInterrupt:
            heard += 1
    faulthandler.cancel_dump_traceback_later()
    assert heard > 80, heard


def imported(gnnc):
    with open("links.csv", "w", encoding="utf-8") as f:
        f.write("src,dst\n" + "".join("%d,%d\n" % (i, (i * 7 + 1) % 20) for i in range(20)))
    said = gnnc.import_data("links.csv", out="links", undirected=True, node="person")
    assert "node person: 20" in said and os.path.exists("links/schema.json"), said
    raises(gnnc.DataError, "--force", gnnc.import_data, "links.csv", out="links")
    gnnc.import_data("links.csv", out="links", force=True, kind=[])
    raises(gnnc.OptionError, "--no-such", gnnc.import_data, "links.csv", out="links", no_such=1)


def the_wheel(top):
    """It brings what a compile needs: the compiler, the layers and the runtime."""
    plain = {k: v for k, v in os.environ.items() if k != "CC"}  # the build keeps its own
    subprocess.run(["make", "-s", "-C", top, "wheel"], check=True, stdout=subprocess.DEVNULL, env=plain)
    path = glob.glob(top + "/build/gnnc-*.whl")[0]
    with zipfile.ZipFile(path) as z:
        z.extractall("site")
        listed = {line.split(",")[0] for line in z.read(next(n for n in z.namelist() if n.endswith("RECORD"))).decode().split()}
        assert listed == set(z.namelist()) and {"gnnc/py.typed", "gnnc/lib/libgnncc.so", "gnnc/lib/gnnc/libgnnrt.a"} <= listed
    text = "import gnnc; m = gnnc.compile(%r, name='away', target='cpu', O0=True); print(gnnc.__file__, m.Trainer)" % (top + "/models/gcn.gnn")
    said = subprocess.run([sys.executable, "-c", text], env={**os.environ, "PYTHONPATH": "site"}, capture_output=True, text=True, check=False)
    assert said.returncode == 0 and os.path.join("site", "gnnc") in said.stdout, said.stderr


def compiling(top, churn):
    """churn: what the command line makes of models/gcn.gnn."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background commands ignore it
    os.environ["XDG_CACHE_HOME"] = os.path.join(os.getcwd(), "cache")
    os.environ["PYTHONPATH"] = top + "/frontend/python"
    for name, words in (("CFLAGS", "-O0"), ("CC", "cc -Wl,-S")):  # as tests/tools/gnnc, which made `churn`
        os.environ.setdefault(name, words)
    sys.path.insert(0, top + "/frontend/python")
    import gnnc
    the_interface(top, gnnc)
    kept_by_content(top, gnnc, churn)
    mistakes_as_values(gnnc)
    stages(top, gnnc)
    interrupted(top, gnnc)
    interrupted_at_the_end(gnnc)
    imported(gnnc)
    the_wheel(top)
