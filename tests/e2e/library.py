#!/usr/bin/env python3
"""Models as libraries: what --emit=lib writes, and any number of them in one program.

    library.py BUILD CORA

Programs of two models, linked in every way, end with the trainers' own checkpoints, bit for bit."""
import glob
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD, CORA = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
GNNC, API = BUILD + "/gnnc", TOP + "/runtime/include"
MODELS = {"churn": "gcn", "spam": "gat"}
WARN = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
LANGUAGES = {"c99": ["cc", "-std=c99", *WARN], "c++17": ["c++", "-std=c++17", *WARN, "-x", "c++"]}


def run(command, status=0, **kw):
    p = subprocess.run(command, capture_output=True, text=True, check=False, **kw)
    assert p.returncode == status, (command, p.returncode, p.stdout[-2000:], p.stderr[-2000:])
    return p.stdout + p.stderr


def gnnc(*args, status=0, **kw):
    return run([GNNC, *([] if any(a.startswith("--target") for a in args) else ["--target=cpu"]), *args], status, **kw)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def missing(tool):
    """Where there is no such tool its part is told of, and left out; not so in CI."""
    if shutil.which(tool):
        return False
    assert not os.environ.get("GNNC_CI"), "no " + tool
    print(f"no {tool}: what needs it is left out")
    return True


def files_of(folder):
    return sorted(os.listdir(folder))


# ---- what there is ----------------------------------------------------------------------------
def make():
    for runtime in ("own", "shared"):
        os.makedirs(runtime, exist_ok=True)
        for name, model in MODELS.items():
            gnnc(f"{TOP}/models/{model}.gnn", "--emit=lib", f"--runtime={runtime}", "-o", f"{runtime}/{name}")
            assert os.readlink(f"{runtime}/lib{name}.so") == f"lib{name}.so.0"
        assert files_of(runtime) == sorted(f.format(n) for n in MODELS for f in (
            "{}.h", "{}.pc", "{}Config.cmake", "lib{}.a", "lib{}.so", "lib{}.so.0")), files_of(runtime)
    os.makedirs("want")
    for name, model in MODELS.items():
        gnnc(f"{TOP}/models/{model}.gnn", "-o", "trainer")
        run(["./trainer", "--data", CORA, "--seed", "7", "--epochs", "4", "--checkpoint", "want/" + name])


def symbols(path, *options):
    out = run(["nm", "--defined-only", *options, path])
    return {w[2] for w in map(str.split, out.splitlines()) if len(w) == 3 and w[1].isupper() and w[1] != "A"}


def exported():
    """Tables of names: the interface is all of gnnc.h and nothing else."""
    with open(API + "/gnnc.h", encoding="utf-8") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    functions = {n for n in re.findall(r"^[a-z][\w *]*?\b(gnnc_\w+)\(", text, re.M)} - {"gnnc_message_fn"}
    functions = {n for n in functions if not n.endswith("_fn")}
    assert len(functions) > 40, functions
    for name in MODELS:
        assert symbols(f"own/lib{name}.so", "-D") == functions | {name + "_program"}
        assert symbols(f"shared/lib{name}.so", "-D") == {name + "_program"}
        for runtime in ("own", "shared"):
            assert symbols(f"{runtime}/lib{name}.a") == {name + "_program"}
            assert f"[lib{name}.so.0]" in run(["readelf", "-d", f"{runtime}/lib{name}.so"])
    runtime = symbols(BUILD + "/libgnnrt.so", "-D")
    assert {n for n in runtime if n.startswith("gnnc_")} == functions
    assert all(n.startswith(("gnnc_", "rt_")) for n in runtime), runtime
    needed = run(["readelf", "-d", "shared/libchurn.so"])
    assert "[libgnnrt.so.0]" in needed and "libdnnl" not in needed, needed
    assert "$ORIGIN" in needed
    assert not symbols("trainer", "-D") & (functions | {"model_program"})


def the_command_line():
    """The trainers' main is a host as any other: of the runtime its objects ask for what gnnc.h has, and nothing else."""
    objects = sorted(glob.glob(BUILD + "/runtime/cli/*.o"))
    asked = {w[-1] for w in map(str.split, run(["nm", "-u", *objects]).splitlines()) if len(w) == 2 and w[0] == "U"}
    asked &= symbols(BUILD + "/libgnnrt.a") - set().union(*map(symbols, objects))
    assert len(objects) > 5 and len(asked) > 40 and all(n.startswith("gnnc_") for n in asked), asked


def headers():
    with open("own/churn.h", encoding="utf-8") as f:
        text = f.read()
    for line in ('#define CHURN_MODEL "GCN"', '#define CHURN_INPUT_PAPER_X "paper.x"', "#define CHURN_INPUT_PAPER_X_SHAPE {-1, -1}",
                 '#define CHURN_OUTPUT_PRED "pred"', '#define CHURN_LAYER_H "h"', "#define CHURN_LAYER_H_SHAPE {-1, 16}",
                 "extern const gnnc_program churn_program;", "h[paper, hidden = 16]", "y: class[C]    (to train"):
        assert line in text, (line, text)
    gnnc(f"{TOP}/models/gcn.gnn", f"--specialize={CORA}", "--emit=lib", "-o", "fixed")
    assert b"#define FIXED_INPUT_PAPER_X_SHAPE {-1, 1433}" in read("fixed.h")
    assert b"#define FIXED_OUTPUT_PRED_SHAPE {-1, 7}" in read("fixed.h")


ARRAYS = """
#include <iostream>

#include "gnnc.hpp"

static void column(gnnc::graph &g, const char *name, std::size_t n, std::int64_t width) try {
    g.column("paper", name, GNNC_COL_FLOAT, std::vector<float>(n), width);
    std::cout << "taken\\n";
} catch (const gnnc::error &e) {
    std::cout << (e.status == GNNC_E_SHAPE) << " " << e.what() << "\\n";
}

int main() {
    gnnc::graph g;
    g.nodes("paper", 3);
    column(g, "a", 3, 0);
    column(g, "b", 6, 2);
    column(g, "c", 7, 2);
    column(g, "d", 3, -1);
}
"""


def cpp_arrays():
    """gnnc.hpp: values that are no whole rows are an error, and none is dropped."""
    with open("arrays.cpp", "w", encoding="utf-8") as f:
        f.write(ARRAYS)
    run([*LANGUAGES["c++17"], "arrays.cpp", "-x", "none", "-I" + API, f"-I{TOP}/docs/embedding", "own/libchurn.so", "-Wl,-rpath,own",
         "-o", "arrays"])
    said = run(["./arrays"]).splitlines()
    assert said[:2] == ["taken"] * 2 and said[2].startswith("1 ") and said[2].endswith("7 values are no rows of 2"), said
    assert len(said) == 4 and said[3].endswith("3 values are no rows of -1"), said


# ---- two models in one program --------------------------------------------------------------------
def flags():
    with open(BUILD + "/link.flags", encoding="utf-8") as f:
        return f.read().split("\n")[:-1]


def shared(folder, name):
    return [f"{folder}/lib{name}.so", "-Wl,-rpath," + os.path.abspath(folder)]


def same(program, *args, **env):
    shutil.rmtree("got", ignore_errors=True)
    os.makedirs("got")
    run([program, CORA, "got", *args], env={**os.environ, **env})
    for name in MODELS:
        assert read("got/" + name) == read("want/" + name), (program, name)


def linkings():
    static = [BUILD + "/libgnnrt.a", *flags()]
    runtime = [BUILD + "/libgnnrt.so", "-Wl,-rpath," + BUILD]
    both = "-DOPENED_CHURN", "-DOPENED_SPAM"
    opened = [f"{n}=%s/lib{n}.so.0" for n in MODELS]
    for what, args, given in (
            ("static", ["own/libchurn.a", "own/libspam.a", *static], []),
            ("dynamic, a runtime each", [*shared("own", "churn"), *shared("own", "spam")], []),
            ("dynamic, one runtime", [*shared("shared", "churn"), *shared("shared", "spam"), *runtime], []),
            ("opened, a runtime each", [*both, "-ldl"], [o % "own" for o in opened]),
            ("opened, one runtime", [*both, "-ldl"], [o % "shared" for o in opened]),
            ("static and dynamic", ["own/libchurn.a", *shared("own", "spam"), *static], []),
            ("dynamic and static", [*shared("own", "spam"), "own/libchurn.a", *static], []),
            ("static and one runtime", ["shared/libchurn.a", *static, *shared("shared", "spam"), *runtime], []),
            ("own and one runtime", [*shared("own", "churn"), *shared("shared", "spam"), *runtime], []),
            ("one runtime and own", [*runtime, *shared("shared", "spam"), *shared("own", "churn")], []),
            ("linked and opened", ["-DOPENED_SPAM", *shared("own", "churn"), "-ldl"], ["spam=own/libspam.so.0"]),
            ("static and opened", ["-DOPENED_SPAM", "own/libchurn.a", *static, "-rdynamic"], ["spam=own/libspam.so.0"])):
        for language, compiler in LANGUAGES.items():
            source = [HERE + "/library.c", *(["-x", "none"] if "++" in language else [])]
            run([*compiler, "-Iown", "-I" + API, *source, "-o", "app", *args])
            same("./app", *given)
            print(f"{what}, {language}: the trainers' bits")


def interposed():
    """Somebody else's gnnc_trainer_load comes first in the process: a library with a runtime of its own does not call it."""
    with open("other.c", "w", encoding="utf-8") as f:
        f.write("#include <stdlib.h>\nint gnnc_trainer_load(void *t, const char *d);\n"
                "int gnnc_trainer_load(void *t, const char *d) { (void)t; (void)d; abort(); }\n")
    with open("main.c", "w", encoding="utf-8") as f:
        f.write('#include <dlfcn.h>\n#include <string.h>\n#include <gnnc.h>\nint main(int n, char **v) {\n'
                '  void *so = dlopen("own/libchurn.so.0", RTLD_NOW | RTLD_LOCAL), *f = dlsym(so, "gnnc_trainer_main");\n'
                "  int (*run)(const gnnc_program *, int, char **);\n  memcpy(&run, &f, sizeof f);\n"
                '  return run((const gnnc_program *)dlsym(so, "churn_program"), n, v);\n}\n')
    run(["cc", "-shared", "-fPIC", "other.c", "-o", "libother.so"])
    run(["cc", "-I" + API, "main.c", "-o", "main", "-ldl"])
    run(["./main", "--data", CORA, "--seed", "7", "--epochs", "4", "--checkpoint", "main.ckpt"],
        env={**os.environ, "LD_PRELOAD": os.path.abspath("libother.so")})
    assert read("main.ckpt") == read("want/churn")


def for_a_gpu():
    """Where programs for one can be made: they run on the host here."""
    if not os.path.exists(BUILD + "/libgnnrt_cuda.a"):
        print("built without the CUDA Toolkit: libraries for a GPU are left out")
        return
    os.makedirs("gpu")
    for runtime in ("own", "shared"):
        gnnc(f"{TOP}/models/gcn.gnn", "--target=cpu,cuda", "--cuda-arch=sm_80", "--emit=lib", "--runtime=" + runtime, "-o", "gpu/" + runtime)
        assert symbols(f"gpu/lib{runtime}.a") == {runtime + "_program"}
        assert symbols(f"gpu/lib{runtime}.so", "-D") - symbols("own/libchurn.so", "-D") == {runtime + "_program"}
    with open("gpu/main.c", "w", encoding="utf-8") as f:
        f.write('#include "own.h"\n#include "shared.h"\nint main(void) {\n  gnnc_trainer *a, *b;\n'
                "  return gnnc_trainer_create(&a, &own_program) || gnnc_trainer_create(&b, &shared_program) ||\n"
                '         gnnc_trainer_set_text(a, "device", "cuda") ||\n         gnnc_trainer_set_text(b, "device", "cuda");\n}\n')
    with open(BUILD + "/cuda.flags", encoding="utf-8") as f:
        cuda = f.read().split("\n")[:-1]
    compiled = ["cc", "-I" + API, "gpu/main.c", "-o", "gpu/main"]
    run([*compiled, "gpu/libown.a", "gpu/libshared.a", BUILD + "/libgnnrt_cuda.a", BUILD + "/libgnnrt.a", *cuda, *flags()])
    run(["gpu/main"])
    run([*compiled, *shared("gpu", "own"), *shared("gpu", "shared"), BUILD + "/libgnnrt.so", "-Wl,-rpath," + BUILD])
    run(["gpu/main"])


# ---- a library that only predicts ----------------------------------------------------------------
SCORES = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
static int n_locks, n_waits;  /* in place of libc's, which they call */
int pthread_mutex_lock(pthread_mutex_t *m) {
  int (*lock)(pthread_mutex_t *);
  *(void **)&lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
  n_locks++;
  return lock(m);
}
int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m) {
  int (*wait)(pthread_cond_t *, pthread_mutex_t *);
  *(void **)&wait = dlsym(RTLD_NEXT, "pthread_cond_wait");
  n_waits++;
  return wait(c, m);
}
#include "own/churn.h"
#include "rows/score.h"
int main(int n, char **v) {
  gnnc_model *m = NULL;  gnnc_session *s = NULL;  gnnc_graph *g = NULL;
  int64_t id[3] = {0, 2707, 99};  float out[21];
#ifdef TRAINS
  gnnc_trainer *t = NULL;
  if (gnnc_trainer_create(&t, &churn_program) || gnnc_trainer_load(t, v[1]) || gnnc_trainer_epoch(t)) return 2;
  gnnc_trainer_destroy(t);
#endif
  if (n != 3 || gnnc_model_create(&m, &score_program) || gnnc_model_load(m, v[2]) || gnnc_graph_create(&g) ||
      gnnc_graph_read(g, v[1], 0) || gnnc_graph_commit(g) || gnnc_session_create(&s) || gnnc_session_open(s, m, g)) return 1;
  if (!n_locks) return 3;  /* building a graph takes some */
  n_locks = n_waits = 0;
  for (int i = 0; i < 3; i++)
    if (gnnc_session_predict(s, 3 - i, id, out)) return 1;
  if (n_locks || n_waits) return 4;
  if (gnnc_session_predict(s, 3, id, out)) return 1;
  for (int i = 0; i < 21; i++) printf("%a\\n", (double)out[i]);
  gnnc_session_destroy(s);  gnnc_model_release(m);  gnnc_graph_release(g);
  return 0;
}
"""
MOST_BYTES = 400000  # stripped, of a GCN of two layers


def that_predicts():
    """It is small, needs libc and libm, and has no trainer; and may be beside one, linked statically in any order."""
    os.makedirs("rows")
    gnnc(f"{TOP}/models/gcn.gnn", "--emit=infer", "-o", "rows/score")
    run(["strip", "-o", "stripped", "rows/libscore.so"])
    assert os.path.getsize("stripped") < MOST_BYTES, os.path.getsize("stripped")
    needed = lambda path: set(re.findall(r"NEEDED.*\[(\w+)", run(["readelf", "-d", path])))
    # What can be written to, beside tables that the loader makes read-only: the compiler's own, of its crt files.
    place = dict(re.findall(r"^ +\[ *(\d+)\] (\S+)", run(["readelf", "-SW", "rows/libscore.so"]), re.M))
    listed = [w for w in map(str.split, run(["readelf", "-sW", "rows/libscore.so"]).splitlines()) if len(w) == 8]
    written = {w[7] for w in listed if place.get(w[6]) in (".data", ".bss", ".tdata", ".tbss")}
    sanitized = "-fsanitize" in " ".join(flags())
    assert written == {"completed.0", "__dso_handle", "__TMC_END__"} or sanitized, written
    others = [w[7] for w in listed if re.search("negative|adam|dnnl|gomp|cblas", w[7])]
    assert len(listed) > 500 and not others, others  # nor what only training takes
    assert needed("stripped") <= {"libc", "libm"} or sanitized, needed("stripped")
    names = symbols("rows/libscore.so", "-D")
    not_here = ("gnnc_trainer_", "gnnc_session_explain", "gnnc_explanation_", "churn")  # rows are explained beside a trainer
    assert names == {n for n in symbols("own/libchurn.so", "-D") if not n.startswith(not_here)} | {"score_program"}, names
    with open("scores.c", "w", encoding="utf-8") as f:
        f.write(SCORES)
    compiled = ["cc", *WARN, "-I.", "-I" + API, "scores.c", "-o", "scores"]
    with open(BUILD + "/infer.flags", encoding="utf-8") as f:
        alone = [BUILD + "/libgnnrt_infer.a", *f.read().split("\n")[:-1]]
    both, trains = ["rows/libscore.a", "own/libchurn.a"], [BUILD + "/libgnnrt.a", *flags()]
    said = None
    for args in (shared("rows", "score"), ["rows/libscore.a", *alone], [*both, *trains, "-DTRAINS"], [*both, *trains, *alone, "-DTRAINS"],
                 [*both, *alone, *trains, "-DTRAINS"], [*shared("own", "churn"), *shared("rows", "score"), "-DTRAINS"]):
        run([*compiled, *args])
        assert args[-1] == "-DTRAINS" or needed("scores") <= {"libc", "libm", "libscore"}, needed("scores")
        got = [float.fromhex(w) for w in run(["./scores", CORA, "want/churn"]).split()]
        said = said or got
        assert all(abs(a - b) <= 1e-6 * max(map(abs, said)) for a, b in zip(got, said)) and len(got) == 21, (args, got, said)


# ---- who builds with it -------------------------------------------------------------------------
def moved():
    """The libraries in another place, with a blank in its name."""
    if not os.path.exists("else where"):
        for runtime in ("own", "shared"):
            shutil.copytree(runtime, "else where/" + runtime, symlinks=True)
    return os.path.abspath("else where")


def by_pkg_config():
    if missing("pkg-config"):
        return
    for runtime in ("own", "shared"):
        place = os.path.join(moved(), runtime)
        out = run(["pkg-config", "--cflags", "--libs", *MODELS], env={**os.environ, "PKG_CONFIG_PATH": place})
        assert os.path.abspath("own") not in out and os.path.abspath("shared") not in out, out
        run(["sh", "-c", f"cc {HERE}/library.c -o app {out.strip()}"])
        same("./app", LD_LIBRARY_PATH=place + ":" + BUILD)
    out = run(["pkg-config", "--static", "--libs", "churn"], env={**os.environ, "PKG_CONFIG_PATH": place})
    assert BUILD + "/libgnnrt.a" in out and "-lgomp" in out, out


def by_cmake():
    if missing("cmake"):
        return
    os.makedirs("cmake", exist_ok=True)
    for runtime in ("own", "shared"):
        with open("cmake/CMakeLists.txt", "w", encoding="utf-8") as f:
            f.write("cmake_minimum_required(VERSION 3.16)\nproject(app C)\n"
                    "find_package(churn CONFIG REQUIRED)\nfind_package(spam CONFIG REQUIRED)\nfind_package(spam CONFIG REQUIRED)\n"
                    f"add_executable(shared {HERE}/library.c)\ntarget_link_libraries(shared churn::churn spam::spam)\n"
                    f"add_executable(static {HERE}/library.c)\ntarget_link_libraries(static churn::static spam::static)\n")
        shutil.rmtree("cmake/build", ignore_errors=True)
        run(["cmake", "-S", "cmake", "-B", "cmake/build", "-DCMAKE_PREFIX_PATH=" + os.path.join(moved(), runtime)])
        run(["cmake", "--build", "cmake/build"])
        for program in ("shared", "static"):
            same("cmake/build/" + program)


# ---- names, and all or nothing ----------------------------------------------------------------------
def names():
    model = f"{TOP}/models/gcn.gnn"
    os.makedirs("names")
    for base, why in (("a b", "is no name for the files"), ("$(touch PWN)", "is no name"), ("nl\nx", "is no name"), ("", "is no name"),
                      ("..", "is no name"), ("-x", "is no name"), ("churn.so", "is one file"), ("libchurn.so", "is one file"),
                      ("churn.a", "is one file"), ("math", "the system's"), ("m", "the system's"), ("gnnrt", "the runtime's"),
                      ("gnnc", "the runtime's"), ("1st", "--name"), ("my-model", "--name"), ("my.model", "--name"),
                      ("class", "--name"), ("for", "--name"), ("typename", "--name"), ("_x", "--name"), ("rt_x", "--name")):
        said = gnnc(model, "--emit=lib", "-o", "names/" + base, status=2)
        assert why in said and not files_of("names"), (base, said, files_of("names"))
    for name in ("a b", "1st", "class", "gnnc", "gnnc_x", "rt", "", "ü", "a\nb"):
        gnnc(model, "--emit=lib", "-o", "names/x", "--name=" + name, status=2)
        assert not files_of("names")
    assert "is for --emit=lib" in gnnc(model, "--runtime=shared", "-o", "names/x", status=2)
    assert "is no name" in gnnc(model, "--emit=lib", "-o", "-", status=2)
    gnnc(model, "-O0", "--emit=lib", "-o", "names/my-model", "--name=mine")
    assert files_of("names") == ["libmy-model.a", "libmy-model.so", "libmy-model.so.0", "my-model.h", "my-model.pc",
                                 "my-modelConfig.cmake"]
    assert "mine_program" in symbols("names/libmy-model.so", "-D")
    assert b"extern const gnnc_program mine_program;" in read("names/my-model.h")
    os.makedirs("stem")
    gnnc(model, "-O0", "--emit=lib", cwd="stem")  # as the model's file
    assert "libgcn.so.0" in files_of("stem") and "gcn_program" in symbols("stem/libgcn.a")


def all_or_nothing():
    model = f"{TOP}/models/gcn.gnn"
    os.makedirs("half/x.pc")  # a directory: cannot be replaced
    os.makedirs("half/aside")
    with open("half/aside/x.h", "w", encoding="utf-8") as f:
        f.write("before")
    os.symlink("aside/x.h", "half/x.h")
    with open("half/libx.a", "w", encoding="utf-8") as f:
        f.write("before")
    before = files_of("half")
    assert "half/x.pc" in gnnc(model, "-O0", "--emit=lib", "-o", "half/x", status=1)
    assert files_of("half") == before and read("half/libx.a") == read("half/x.h") == b"before", files_of("half")
    os.rmdir("half/x.pc")
    gnnc(model, "-O0", "--emit=lib", "-o", "half/x")
    assert files_of("half") == ["aside", "libx.a", "libx.so", "libx.so.0", "x.h", "x.pc", "xConfig.cmake"], files_of("half")
    assert os.path.islink("half/x.h") and b"x_program" in read("half/aside/x.h") and read("half/libx.a") != b"before"
    os.makedirs("none")
    assert "cannot run 'cc'" in gnnc(model, "-O0", "--emit=lib", "-o", "none/x", status=1, env={**os.environ, "PATH": "/none"})
    assert not files_of("none")


def compilers():
    """CC and CFLAGS are the user's, of the driver, the C functions and each link."""
    with open("f.c", "w", encoding="utf-8") as f:
        f.write('#include <gnnc_extern.h>\n#ifndef ASKED\n#error CFLAGS\n#endif\nint f(const gnnc_tensor *x, gnnc_tensor *y);\n'
                "int f(const gnnc_tensor *x, gnnc_tensor *y) {\n  *(float *)y->data = *(const float *)x->data;\n  return 0;\n}\n")
    with open("called.gnn", "w", encoding="utf-8") as f:
        f.write('extern fn f(x: f32[]) -> f32[] from "f.c"\n' + read(f"{TOP}/models/gcn.gnn").decode().replace(
            "  conv1 =", '  log("f", f(sum(sum(dense(g.paper.x), F), paper)))\n  conv1 =', 1))
    with open("my cc", "w", encoding="utf-8") as f:
        f.write('#!/bin/sh\necho "$*" >>asked\nexec cc "$@"\n')
    os.chmod("my cc", 0o755)
    gnnc("called.gnn", "-O0", "-I" + TOP + "/models", "--emit=lib", "-o", "called",
         env={**os.environ, "CC": " sh my\\ cc", "CFLAGS": "-O0"}, status=1)  # words are not a shell's
    os.rename("my cc", "mycc")
    gnnc("called.gnn", "-O0", "-I" + TOP + "/models", "--emit=lib", "-o", "called",
         env={**os.environ, "CC": " sh  ./mycc", "CFLAGS": "-DASKED=1 -flto"})
    asked = read("asked").decode().splitlines()
    assert sum("-DASKED=1 -flto -fno-lto" in a for a in asked) == 2, asked
    assert sum(a.startswith("-shared ") for a in asked) == sum(a.startswith("-r ") for a in asked) == 1, asked
    assert "called_program" in symbols("libcalled.a")


def dependencies():
    """make makes a library anew when the model, an import, or a C function of it changed."""
    os.makedirs("deps/a b")
    shutil.copy("f.c", "deps/f.c")
    shutil.copy("called.gnn", "deps/called.gnn")
    with open("deps/a b/own#.gnn", "w", encoding="utf-8") as f:
        f.write("fn own(x: f32[S, F]) -> f32[S, F] { return tanh(x) }\n")
    with open("deps/called.gnn", "a", encoding="utf-8") as f:
        f.write('import "a b/own#.gnn"\n')
    with open("deps/Makefile", "w", encoding="utf-8") as f:
        f.write(f"libnet.a:\n\tCFLAGS=-DASKED {GNNC} called.gnn -MD -O0 -I{TOP}/models --target=cpu --emit=lib -o net\n-include net.d\n")
    asked = ["make", "-C", "deps", "-s", "libnet.a"]
    run(asked)
    text = read("deps/net.d").decode()
    assert text.startswith("libnet.so libnet.a net.h: \\\n") and "\n called.gnn \\\n" in text, text
    assert "a\\ b/own\\#.gnn" in text and "f.c" in text and "layers/gcn.gnn" in text, text
    run([*asked, "-q"])
    for source in ("called.gnn", "a b/own#.gnn", "f.c"):
        os.utime("deps/" + source, (2**31, 2**31))
        run([*asked, "-q"], 1)
        os.utime("deps/" + source, (1, 1))
        run([*asked, "-q"])
    gnnc(f"{TOP}/models/gcn.gnn", "-MF", "deps/x y", "--emit=obj", "-o", "deps/$o.o")
    assert read("deps/x y").startswith(b"deps/$$o.o: ")
    gnnc(f"{TOP}/models/gcn.gnn", "-MD", "--emit=c", "-o", "deps/m.c")
    assert read("deps/m.d").startswith(b"deps/m.c: ")
    gnnc(f"{TOP}/models/gcn.gnn", "-MD", "--emit=c", status=2)


def main():
    make()
    headers()
    cpp_arrays()
    exported()
    the_command_line()
    linkings()
    interposed()
    that_predicts()
    for_a_gpu()
    by_pkg_config()
    by_cmake()
    names()
    all_or_nothing()
    compilers()
    dependencies()


main()
