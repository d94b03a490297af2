"""Programs of a bundle: compiled from the folders of `programs`, or, where that was done beforehand, taken out of `built`.

What is compiled beforehand (tests/gpu/bundle --build) needs the driver and libraries that a machine has anyway (NEEDS): the CUDA
runtime and C++'s are linked into it.  cuBLAS is opened when a product is made.
"""
import concurrent.futures
import glob
import os
import re
import shlex
import shutil
import subprocess
import tarfile
import time

LIBRARIES = ("oracle", "embed")  # kinds of programs that Python opens
NO_MAIN = (*LIBRARIES, "ops")  # kinds whose driver has no command line
NEEDS = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")


def target(folder, to):
    """(kind/name, the program) of a folder that ends with a slash."""
    name = "/".join(folder.rstrip("/").split("/")[-2:])
    return name, os.path.join(to, "bin", name + (".so" if name.split("/")[0] in LIBRARIES else ""))


class Toolchain:
    """How sources become programs: by nvcc of the toolkit `home` for `codes` of `arch`, or, without one, by the simulator."""

    def __init__(self, top, home=None, arch="compute_90", codes=("sm_90", "compute_90"), beforehand=False):
        self.top, self.home, self.beforehand = top, home, beforehand
        self.cc = shlex.split(os.environ.get("CC", "cc"))
        self.cxx = os.environ.get("CXX") or shutil.which("clang++-19") or "g++"
        self.gencode = f"arch={arch},code=[{','.join(codes)}]"

    def includes(self):
        sim = ["-I" + self.top + "/tests/cudasim", "-I" + self.top + "/tests/cudasim/include"]
        return ["-I" + self.top, "-I" + self.top + "/runtime", "-I" + self.top + "/runtime/include"] + \
            (["-isystem", self.home + "/include"] if self.home else sim)

    def c_command(self, source, to):
        how = ["-O2"] + ([] if self.beforehand else ["-g"]) if self.home else ["-O0"]
        return [*self.cc, "-std=c17", "-D_GNU_SOURCE", *how, "-fPIC", *self.includes(), "-c", "-o", to, source]

    def cu_command(self, source, to):
        if not self.home:  # as tests/cudasim/build compiles them: kernels are half of the simulator's time
            quick = ["-g0", "-fno-unroll-loops", "-mllvm", "-fast-isel"] if "clang" in self.cxx else []
            return [self.cxx, "-std=c++17", "-O0", *quick, "-fPIC", "-Wno-unknown-pragmas", *self.includes(), "-x", "c++", "-c", "-o", to, source]
        # without compression, which the archive does better, there being much alike in kernels
        return [self.home + "/bin/nvcc", "-std=c++17", "-O3", *(["-no-compress"] if self.beforehand else ["-lineinfo"]), "-Werror", "all-warnings",
                "-gencode", self.gencode, "-Xcompiler", "-fPIC", "-I" + self.top + "/runtime", "-c", "-o", to, source]

    def link_command(self, objects, to, shared, runtime):
        libs, cxx = [], ["-lstdc++"]
        if self.home:
            static = self.beforehand or os.path.exists(self.home + "/lib64/libcudart_static.a")
            libs = ["-L" + self.home + "/lib64", "-lcudart_static" if static else "-lcudart"]
            libs += [] if self.beforehand else ["-Wl,-rpath," + self.home + "/lib64"]
        if self.beforehand:
            cxx = ["-Wl,-Bstatic", "-lstdc++", "-Wl,-Bdynamic", "-static-libgcc", "-Wl,-s"]
        extra = ["-shared", "-Wl,-Bsymbolic"] if shared else []
        if shared:  # all of the public interface, which Python calls
            runtime = ["-Wl,--whole-archive", *runtime, "-Wl,--no-whole-archive", "-Wl,-z,defs"]
        return [*self.cc, *extra, "-o", to, *objects, *runtime, *libs, *cxx, "-pthread", "-lm", "-ldl", "-lrt"]

    # ---- many side by side --------------------------------------------------------------------
    def runtime(self, obj):
        """{object: command} of libgnnrt, and of the simulator."""
        paths = [p for f in ("runtime", "runtime/*") for p in glob.glob(f"{self.top}/{f}/*.c") if not re.search(r"/runtime/(mpi|infer|import)/", p)]
        paths += [] if self.home else glob.glob(self.top + "/tests/cudasim/*.c")
        made = {os.path.join(obj, os.path.relpath(p, self.top).replace("/", "_") + ".o"): p for p in paths}
        return {o: self.c_command(p, o) for o, p in made.items()}

    def program(self, folder, obj):
        """(objects, commands) of the folder of a program."""
        kind, name = folder.rstrip("/").split("/")[-2:]
        objects, commands = glob.glob(folder + "*.o"), []
        sources = sorted(glob.glob(folder + "*.c") + glob.glob(folder + "*.cu"))
        sources += [self.top + "/tests/gpu/ops.c"] if kind == "ops" else []
        for s in sources:
            o = f"{obj}/{kind}_{name}_{os.path.basename(s)}.o"
            objects.append(o)
            command = self.cu_command(s, o) if s.endswith(".cu") else self.c_command(s, o)
            commands.append(command[:1] + ["-DGNNC_NO_MAIN"] + command[1:] if kind in NO_MAIN else command)
        return objects, commands

    def compile(self, folders, to, run, jobs=os.cpu_count()):
        """({kind/name: program}, [what failed], what was done in words) of folders of programs, which end with a slash."""
        start, obj = time.time(), os.path.join(to, "obj")
        os.makedirs(obj, exist_ok=True)
        runtime, archive = self.runtime(obj), os.path.join(obj, "libgnnrt.a")
        made = {"/".join(f.rstrip("/").split("/")[-2:]): self.program(f, obj) for f in folders}
        commands = [c for o, c in runtime.items() if not os.path.exists(o)] + [c for _, of in made.values() for c in of]
        commands.sort(key=lambda c: -os.path.getsize(c[-1]))  # the longest first
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            failed = [(os.path.relpath(c[-1], self.top), r.stderr) for c, r in zip(commands, pool.map(run, commands)) if r.returncode]
            if not os.path.exists(archive):
                r = run(["ar", "rcs", archive, *runtime])
                failed += [("libgnnrt.a", r.stderr)] if r.returncode else []
            links = {}
            for name, path in (target(f, to) for f in folders):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                links[name] = path, self.link_command(made[name][0], path + ".new", path.endswith(".so"), [archive])
            done = dict(zip(links, pool.map(run, (c for _, c in links.values()))))
        failed += [(name, r.stderr) for name, r in done.items() if r.returncode]
        good = {name: path for name, (path, _) in links.items() if not done[name].returncode}
        for path in good.values():
            os.replace(path + ".new", path)
        return good, failed, f"{len(commands)} files compiled and {len(links)} programs linked in {time.time() - start:.0f} s"


# ---- those that were compiled beforehand -------------------------------------------------------
def needs(path):
    """The libraries that the loader looks for when a program starts."""
    r = subprocess.run(["readelf", "-d", path], check=True, capture_output=True, text=True)
    return re.findall(r"\(NEEDED\).*\[(.*)\]", r.stdout)


def pack(folder, to):
    """A folder into one archive: programs have much in common, which xz finds, its memory being larger than they are."""
    with tarfile.open(to, "w:xz", preset=6) as t:
        for name in sorted(os.listdir(folder)):
            t.add(os.path.join(folder, name), name)


def unpack(archive, folder):
    os.makedirs(folder, exist_ok=True)
    with tarfile.open(archive) as t:
        if hasattr(tarfile, "data_filter"):
            t.extraction_filter = tarfile.data_filter
        t.extractall(folder)


def built(top, kind, to):
    """{kind/name: program} of an archive; empty: it has none of that kind."""
    archive, folder = f"{top}/built/{kind}.tar.xz", f"{to}/bin/{kind}"
    if not os.path.exists(archive):
        return {}
    if not os.path.exists(folder):
        unpack(archive, folder + ".new")
        os.rename(folder + ".new", folder)
    return {f"{kind}/{os.path.splitext(f)[0]}": f"{folder}/{f}" for f in os.listdir(folder)}


def sources(top, unpacked, kind, names=None):
    """Folders of the programs of a kind, of those names."""
    found = sorted({f for at in (top, unpacked) for f in glob.glob(f"{at}/programs/{kind}/*/")})
    return [f for f in found if not names or f.rstrip("/").split("/")[-1] in names]


