"""How the systems of the benchmarks are started: shared by full_batch.py, scaling.py, grid.py and others.

A measurement is a process of its own whose last line of output is a JSON object.  It runs under a time and a
memory limit: the resident memory of it and its children is looked at a few times a second, because torch and
CUDA reserve far more addresses than they use, so a limit on addresses would stop what fits.
"""
import csv
import json
import os
import platform
import re
import signal
import subprocess
import tempfile
import time
from collections import namedtuple

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEERS = os.path.join(TOP, "bench", "peers")
GNNC = os.path.join(TOP, "build", "gnnc")
CORA = os.path.join(TOP, "models", "data", "cora")
SUITES = {"cora": {"file": "models/{}.gnn", "layers": 2, "hidden": {"gat": 8}, "default": 16, "epochs": 50},
          "arxiv": {"file": "bench/models/{}_arxiv.gnn", "layers": 3, "hidden": {"gat": 32}, "default": 256, "epochs": 3}}


def step_ms(program, data, epochs):
    """The median time of a training step, as the trainer's own bench says."""
    out = subprocess.run([program, "bench", "--data", data, "--epochs", str(epochs)], capture_output=True, text=True, check=True).stdout
    return float(re.search(r"^train step *median ([0-9.]+) ms", out, re.M).group(1))


NO_OBJECT = "no JSON object in its output"

# status: ok, failed, timeout or "out of memory";  peak_mib: of the process and its children;  result: the last JSON object of output, {} unless ok
Run = namedtuple("Run", "status result output error peak_mib wall_s")


def model_file(suite, model):
    return os.path.join(TOP, SUITES[suite]["file"].format(model))


def peer_command(script, python, npy, suite, model, epochs, more=()):
    """A process of bench/peers at the widths of the suite."""
    s = SUITES[suite]
    return [python, os.path.join(PEERS, script), "--data", npy, "--model", model, "--epochs", str(epochs),
            "--hidden", str(s["hidden"].get(model, s["default"])), "--layers", str(s["layers"]), *more]


def compile_model(gnnc, model, out, options=(), timeout=600):
    """Compiles a .gnn file: (seconds, "") or (seconds, why it failed)."""
    start = time.perf_counter()
    try:
        r = subprocess.run([gnnc, model, "-o", out, *options], capture_output=True, text=True, timeout=timeout)
    except (OSError, subprocess.TimeoutExpired) as e:
        return time.perf_counter() - start, str(e)
    return time.perf_counter() - start, r.stderr.strip()[-200:] or f"exit {r.returncode}" if r.returncode else ""


def tree(pid):
    """The process and its descendants that are alive."""
    found, todo = [], [pid]
    while todo:
        p = todo.pop()
        found.append(p)
        try:
            for task in os.listdir(f"/proc/{p}/task"):
                with open(f"/proc/{p}/task/{task}/children", encoding="ascii") as f:
                    todo += map(int, f.read().split())
        except OSError:
            pass
    return found


def resident_bytes(pids):
    total, page = 0, os.sysconf("SC_PAGE_SIZE")
    for p in pids:
        try:
            with open(f"/proc/{p}/statm", encoding="ascii") as f:
                total += int(f.read().split()[1]) * page
        except (OSError, IndexError):
            pass
    return total


def kill_tree(process):
    for p in reversed(tree(process.pid)):
        try:
            os.kill(p, signal.SIGKILL)
        except OSError:
            pass
    process.wait()


def watch(process, timeout, memory):
    """Waits for the end of the process: (status, peak bytes); status "" where it ended by itself.

    Children are looked at from time to time; of the process itself the system tells the peak when it has ended."""
    start, peak, pause = time.perf_counter(), 0, 0.01
    while True:
        pid, code, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(code)
            return "", max(peak, usage.ru_maxrss * 1024)
        time.sleep(pause)
        pids = tree(process.pid)
        peak = max(peak, resident_bytes(pids))
        status = "out of memory" if memory and peak > memory else "timeout" if time.perf_counter() - start > timeout else ""
        if status:
            kill_tree(process)
            return status, peak
        pause = min(0.1, 2 * pause)


def last_object(text):
    """The last line that is a JSON object; {} where none is."""
    for line in reversed(text.strip().splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                return {}
    return {}


def out_of_memory(returncode, stderr):
    words = ("out of memory", "cannot allocate memory", "can't allocate memory", "not enough memory", "memoryerror", "bad_alloc")
    return returncode == -signal.SIGKILL or any(w in stderr.lower() for w in words)


def reason(stderr):
    """The last line that names an exception, or just the last: torch ends with advice."""
    lines = [l.strip() for l in stderr.splitlines() if l.strip()]
    named = [l for l in lines if re.match(r"[\w.]*(Error|Exception|Unsupported|Interrupt)\b", l)]
    return (named or lines or [""])[-1][-200:]


def run_limited(cmd, timeout, memory=0, env=None):
    """Runs one measurement.  `timeout` in seconds, `memory` in bytes (0: no limit), `env` beside os.environ."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
        try:
            process = subprocess.Popen(cmd, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                                       env={**os.environ, **(env or {})}, start_new_session=True)
        except OSError as e:
            return Run("failed", {}, "", str(e), 0.0, 0.0)
        try:
            status, peak = watch(process, timeout, memory)
        except BaseException:
            kill_tree(process)
            raise
        wall = time.perf_counter() - start
        out.seek(0)
        err.seek(0)
        output, stderr = out.read(), err.read()
    result = last_object(output)
    mib = peak / 2**20
    if status == "timeout":
        return Run(status, {}, output, f"no result after {timeout:g} s", mib, wall)
    if status == "out of memory":
        return Run(status, {}, output, f"more than {memory / 2**30:.1f} GiB", mib, wall)
    if process.returncode != 0:
        status = "out of memory" if out_of_memory(process.returncode, stderr) else "failed"
        return Run(status, {}, output, f"exit {process.returncode}: {reason(stderr)}", mib, wall)
    if not result:
        return Run("failed", {}, output, NO_OBJECT, mib, wall)
    return Run("ok", result, output, "", mib, wall)


def graph_size(data):
    """(nodes, edges) of a data directory that `gnnc import` wrote."""
    with open(os.path.join(data, "schema.json"), encoding="utf-8") as f:
        schema = json.load(f)
    return tuple(sum(t["count"] for t in schema[k].values()) for k in ("nodes", "edges"))


def memory_bytes():
    """What this machine or its control group has."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path, encoding="ascii") as f:
                most = min(most, int(f.read()))
        except (OSError, ValueError):
            pass
    return most


def machine_in_words():
    """Cores and vector width: what the numbers depend on."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            flags = f.read()
    except OSError:
        flags = ""
    vector = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else platform.machine()
    return f"{len(os.sched_getaffinity(0))} cores with {vector}"


def said_by(*cmd):
    """What a program prints, of its version for instance; or why it says nothing."""
    try:
        return subprocess.run(cmd, capture_output=True, text=True, timeout=120, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as e:
        return f"unknown ({e.__class__.__name__})"


def add_options(parser, lists, results):
    """The options of a benchmark that goes on where it stopped: its lists of what is wanted, systems, limits, results."""
    for option in lists:
        parser.add_argument(option, default="")
    parser.add_argument("--gnnc", default=GNNC)
    parser.add_argument("--peers-python", default="python3")
    parser.add_argument("--dgl-python", default="python3")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--memory", type=float, default=min(18, 0.9 * memory_bytes() / 2**30), metavar="GIB")
    parser.add_argument("--results", default=os.path.join(TOP, "bench", "results", results))
    parser.add_argument("--retry", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--machine", default=machine_in_words())


def read_csv(path):
    """Rows of an earlier run, as texts; none where there was none."""
    if not os.path.exists(path):
        return []
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def write_csv(path, columns, rows):
    """Replaces the file as a whole, so that a stop leaves the old or the new one."""
    with open(path + ".new", "w", newline="", encoding="utf-8") as f:
        w = csv.DictWriter(f, columns, extrasaction="ignore")
        w.writeheader()
        w.writerows(rows)
    os.replace(path + ".new", path)


def write_table(stem, columns, rows, head):
    """STEM.csv, and STEM.md with a line that says what was measured."""
    with open(stem + ".csv", "w", newline="") as f:
        table = csv.DictWriter(f, columns)
        table.writeheader()
        table.writerows(rows)
    with open(stem + ".md", "w") as f:
        f.write(f"{head}\n\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns) + "\n")
        for r in rows:
            f.write("| " + " | ".join(str(r[c]) for c in columns) + " |\n")
