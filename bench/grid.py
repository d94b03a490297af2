#!/usr/bin/env python3
"""Model x data set x system x mode x dynamic, train and inference: every combination of grid.json, resumable.

usage: bench/grid.py --npy ROOT [--data ROOT].. [--datasets cora,arxiv] [--models gcn,gat] [--systems gnnc,pyg,pyg-csr,dgl]
                     [--modes O2,eager,default] [--dynamic auto,true,false,-] [--phases train,infer] [--device cpu|cuda]
                     [--peers-python P] [--dgl-python P] [--epochs N] [--timeout S] [--memory GIB] [--hours H] [--results STEM]
                     [--retry] [--list]

  --npy, --data  folders with a folder per data set: arrays for the peers, `gnnc import`'s for gnnc
  --results      STEM.csv, STEM.xlsx (where openpyxl is installed), STEM.html, a page with plots that stands alone,
                 STEM.md, who is fastest, and STEM.lock.txt: commit, machine, compilers and the packages of each Python
  --hours        starts no run after so long (3)
  --retry        run again what failed, timed out or ran out of memory;  --list  only say what would run

The CSV is written after every run, and a row in it is not run again (unless --epochs differs): stop and go on
at will.  Each run is a process of its own under --timeout and --memory; failures are rows with their reason.
grid.json is the table: a data set, model, system or mode more is a line there.

Columns: median and IQR over steps; peak_mib of the process (device memory on a GPU, gnnc's of both phases);
compile_s: gnnc's compiling and tuning, the first call less a median one for torch.compile (its caches off);
break_even_runs: calls after which compile_s is won back against eager, the system's own or else PyG's; kernels
of one call; test accuracy after epochs + 6 steps, and its difference to eager's in points; compile_tax_pct: the part that
compile_s has of a run of 200 calls; changed_lines: what the mode asks of a program in eager (`change` of grid.json).  `dynamic` of gnnc:
true is a program for any sizes, false one made with --specialize; of eager it is `-`.
"""
import argparse
import itertools
import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter, defaultdict, namedtuple
from html import escape

import svg
from systems import CORA, NO_OBJECT, TOP, add_options, compile_model, graph_size, memory_bytes, model_file, peer_command, read_csv, run_limited, said_by, write_csv

KEY = ("machine", "device", "dataset", "model", "system", "mode", "dynamic", "phase")
COLUMNS = KEY + ("epochs", "success", "status", "nodes", "edges", "median_ms", "iqr_ms", "nodes_per_s", "edges_per_s", "peak_mib",
                 "compile_s", "compile_tax_pct", "changed_lines", "speedup_vs_eager", "break_even_runs", "kernels", "test_accuracy_pct", "accuracy_vs_eager_pp",
                 "wall_s", "error")
TEXT = set(KEY) | {"status", "error", "success"}
WARM_UP = 6  # steps of bench/peers before the timed ones
TAXED = 200  # calls of the run that compile_tax_pct is of: a training of Cora
NO_CACHE = {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
Job = namedtuple("Job", KEY)


class Failed(Exception):
    """A run without a result: (status, why)."""


def jobs(table, a):
    """Every combination that is asked for, in the order of the table."""
    wanted = lambda name, only: not only or name in only.split(",")
    for dataset, d in table["datasets"].items():
        for model, (system, s) in itertools.product(d["models"], table["systems"].items()):
            if a.device not in s["devices"] or not (wanted(dataset, a.datasets) and wanted(model, a.models) and wanted(system, a.systems)):
                continue
            for mode, m in s["modes"].items():
                for dynamic, phase in itertools.product(m["dynamic"], ("train", "infer")):
                    if wanted(mode, a.modes) and wanted(dynamic, a.dynamic) and wanted(phase, a.phases):
                        yield Job(a.machine, a.device, dataset, model, system, mode, dynamic, phase)


def checked(run, silent=False):
    """The run, if it ended well; `silent` ones need print no JSON object."""
    if run.status != "ok" and not (silent and run.status == "failed" and run.error == NO_OBJECT):
        raise Failed(run.status, run.error)
    return run


def timing(got, phase):
    """Columns of what gnnc's bench and the peers both print."""
    ms = got[phase + "_ms"]
    return {"median_ms": ms, "iqr_ms": round(got[phase + "_q3_ms"] - got[phase + "_q1_ms"], 4)}


class Grid:
    def __init__(self, a, table, tmp):
        self.a, self.table, self.tmp, self.trainers = a, table, tmp, {}
        self.memory = int(a.memory * 2**30)

    def run(self, cmd, env=None):
        return checked(run_limited(cmd, self.a.timeout, self.memory, env))

    def epochs(self, job):
        return self.a.epochs or self.table["datasets"][job.dataset]["epochs"]

    def data(self, job):
        folder = next((os.path.join(r, job.dataset) for r in self.a.data if os.path.isdir(os.path.join(r, job.dataset))), None)
        if folder is None:
            raise Failed("failed", f"no data directory '{job.dataset}' in {', '.join(self.a.data)}")
        return os.path.abspath(folder)

    def linked(self, data, job):
        """The data in a folder of our own, so that tuning leaves nothing beside the user's."""
        folder = tempfile.mkdtemp(dir=self.tmp, prefix=job.dataset)
        for name in os.listdir(data):
            if name != "tuned.json":
                os.symlink(os.path.join(data, name), os.path.join(folder, name))
        return folder

    def trainer(self, job):
        """(program, data directory, seconds of compiling and tuning), made once for both phases."""
        key = (job.dataset, job.model, job.mode, job.dynamic)
        if key not in self.trainers:
            mode, data = self.table["systems"][job.system]["modes"][job.mode], self.data(job)
            out = os.path.join(self.tmp, "-".join(key))
            options = mode["options"] + ["--target=cpu" if job.device == "cpu" else "--target=cpu,cuda"]
            options += ["--specialize=" + data] if job.dynamic == "false" else []
            source = model_file(self.table["datasets"][job.dataset]["suite"], job.model)
            seconds, error = compile_model(self.a.gnnc, source, out, options, self.a.timeout)
            if error:
                raise Failed("failed", error)
            if mode.get("tune"):
                data = self.linked(data, job)
                seconds += self.tune(out, data, job)
            self.trainers[key] = (out, data, seconds)
        return self.trainers[key]

    def tune(self, trainer, data, job):
        run = run_limited([trainer, "tune", "--data", data, "--device", job.device], self.a.timeout, self.memory)
        if not os.path.exists(os.path.join(data, "tuned.json")):
            raise Failed("failed" if run.status == "ok" else run.status, "tune: " + run.error)
        return run.wall_s

    def gnnc(self, job):
        trainer, data, compile_s = self.trainer(job)
        more = ["--data", data, "--device", job.device, *([] if job.mode == "tuned" else ["--no-tuned"])]
        epochs = self.epochs(job)
        got = self.run([trainer, "bench", *more, "--json", "--epochs", str(epochs)]).result
        row = timing(got, job.phase)
        row["compile_s"] = compile_s
        row["nodes"], row["edges"] = graph_size(data)
        if job.phase == "train":
            row["kernels"] = got["launches_per_step"] + got["library_calls_per_step"]
            run = self.run([trainer, "train", *more, "--epochs", str(epochs + WARM_UP), "--log=json", "--checkpoint", "none"])
            last = [e for e in map(json.loads, run.output.strip().splitlines()) if "epoch" in e][-1]
            row["test_accuracy_pct"] = 100 * last["test"]["accuracy"]
        else:
            weights, scores = trainer + ".safetensors", trainer + ".npy"
            self.run([trainer, "train", *more, "--epochs", "1", "--log=json", "--checkpoint", weights])
            run = checked(run_limited([trainer, "predict", *more, "--weights", weights, "--out", scores], self.a.timeout, self.memory), silent=True)
            os.unlink(scores)
            profile = self.run([trainer, "bench", *more, "--json", "--profile", "--epochs", "1"]).result["profile"]
            calls = [s["calls"] for s in profile["steps"] if s["phase"] == "predict"]
            row["kernels"] = round(sum(calls) / min(calls)) if calls else ""
        row["peak_mib"] = got["device_mib"] if job.device == "cuda" else run.peak_mib
        return row

    def peer(self, job):
        system, a, npy = self.table["systems"][job.system], self.a, os.path.join(self.a.npy, job.dataset)
        if not os.path.isdir(npy):
            raise Failed("failed", f"no folder '{npy}'")
        more = [*system["options"], "--mode", job.mode, "--phase", job.phase, *(["--device", job.device] if job.device != "cpu" else [])]
        more += ["--dynamic", job.dynamic] if job.dynamic != "-" else []
        python = a.dgl_python if job.system == "dgl" else a.peers_python
        suite = self.table["datasets"][job.dataset]["suite"]
        got = self.run(peer_command(system["script"], python, npy, suite, job.model, self.epochs(job), more), NO_CACHE).result
        row = timing(got, job.phase)
        first = got["first_step_s" if job.phase == "train" else "first_infer_s"]
        row.update(nodes=got["nodes"], edges=got["edges"], kernels=got.get("kernels", ""),
                   compile_s=0 if job.mode == "eager" else max(0, first - row["median_ms"] / 1e3),
                   peak_mib=got["device_mib"] if job.device == "cuda" else got["rss_mib"])
        if "test" in got:
            row["test_accuracy_pct"] = 100 * got["test"]
        return row

    def measure(self, job):
        """One row, whatever happens."""
        start = time.perf_counter()
        row = {**job._asdict(), "epochs": self.epochs(job), "success": "yes", "status": "ok",
               "changed_lines": self.table["systems"][job.system]["modes"][job.mode]["changed_lines"]}
        try:
            row.update(self.gnnc(job) if job.system == "gnnc" else self.peer(job))
        except Failed as e:
            row.update(success="no", status=e.args[0], error=e.args[1])
        except (KeyError, IndexError, TypeError, ValueError, OSError) as e:
            row.update(success="no", status="failed", error=f"{type(e).__name__}: {e}")
        row["wall_s"] = time.perf_counter() - start
        return row


def key(row):
    return tuple(row[k] for k in KEY)


def read_rows(path):
    """Rows of an earlier run, numbers as numbers."""
    rows = read_csv(path)
    for r in rows:
        for k in COLUMNS:
            if k not in TEXT and r.get(k) not in (None, "", "never"):
                r[k] = float(r[k]) if "." in r[k] or "e" in r[k] else int(r[k])
    return rows


def derive(rows):
    """What follows from other columns and from the eager row: computed anew each time a row is added."""
    by_key = {key(r): r for r in rows if r["status"] == "ok"}
    for r in rows:
        for k in ("nodes_per_s", "edges_per_s", "compile_tax_pct", "speedup_vs_eager", "break_even_runs", "accuracy_vs_eager_pp"):
            r[k] = ""
        if r["status"] != "ok" or not r["median_ms"]:
            continue
        r["nodes_per_s"], r["edges_per_s"] = (round(1e3 * r[k] / r["median_ms"]) for k in ("nodes", "edges"))
        r["compile_tax_pct"] = 100 * r["compile_s"] / (r["compile_s"] + TAXED * r["median_ms"] / 1e3)
        system = "pyg" if r["system"] == "gnnc" else r["system"]
        eager = by_key.get(key({**r, "system": system, "mode": "eager", "dynamic": "-"}))
        if eager:
            against_eager(r, eager)
    for r in rows:
        for k, v in r.items():
            if isinstance(v, float):
                r[k] = round(v, 4)


def against_eager(r, eager):
    won = (eager["median_ms"] - r["median_ms"]) / 1e3
    r["speedup_vs_eager"] = eager["median_ms"] / r["median_ms"]
    if r is not eager:
        r["break_even_runs"] = int(r["compile_s"] / won) + 1 if won > 0 else "never"
    if r.get("test_accuracy_pct", "") != "" and eager.get("test_accuracy_pct", "") != "":
        r["accuracy_vs_eager_pp"] = r["test_accuracy_pct"] - eager["test_accuracy_pct"]


def write_xlsx(path, rows):
    try:
        from openpyxl import Workbook
        from openpyxl.styles import Font, PatternFill
    except ImportError:
        print(f"{os.path.basename(path)} not written: this Python has no openpyxl (pip install openpyxl)", file=sys.stderr)
        return
    book = Workbook()
    book.remove(book.active)
    fills = {"ok": None, "out of memory": "FFD9B3", "timeout": "FFF2B3", "failed": "FFCCCC"}
    for name, part in [("all", rows)] + [(p, [r for r in rows if r["phase"] == p]) for p in ("train", "infer")]:
        sheet = book.create_sheet(name)
        sheet.append(COLUMNS)
        for r in part:
            sheet.append([r.get(k, "") for k in COLUMNS])
            if fills.get(r["status"]):
                sheet.cell(sheet.max_row, COLUMNS.index("status") + 1).fill = PatternFill("solid", start_color=fills[r["status"]])
        for cell in sheet[1]:
            cell.font = Font(bold=True)
            sheet.column_dimensions[cell.column_letter].width = max(10, len(cell.value) + 2)
        sheet.freeze_panes, sheet.auto_filter.ref = "I2", sheet.dimensions
    book.save(path)


def name(r):
    return r["system"] + " " + r["mode"] + (f" ({r['dynamic']})" if r["dynamic"] != "-" else "")


def plots(rows, systems):
    """A section per machine, data set, model and phase: time, memory, and what could not be measured."""
    one = len({(r["machine"], r["device"]) for r in rows}) == 1
    for head, part in itertools.groupby(rows, key=lambda r: f"{r['dataset']}, {r['model']}, {r['phase']}" + ("" if one else f": {r['machine']}, {r['device']}")):
        part = list(part)
        yield f"<h2>{escape(head)}</h2><div class=plots>"
        for column, unit, title in (("median_ms", "ms", "median time"), ("peak_mib", "MiB", "peak memory"), ("compile_s", "s", "compile time")):
            values = sorted((r[column], name(r), r["system"]) for r in part if r["status"] == "ok" and r[column])
            if values:
                yield svg.bars([(n, v, group) for v, n, group in values], title, unit, 600, systems)
        bad = [f"<li>{escape(name(r))}: {escape(r['status'])}, {escape(r['error'] or '')}</li>" for r in part if r["status"] != "ok"]
        yield "</div>" + (f"<ul>{''.join(bad)}</ul>" if bad else "")


def is_number(v):
    try:
        float(v)
    except ValueError:
        return v in ("", "never")
    return True


def rows_of(head, lines):
    cells = lambda tag, values: "".join(f"<{tag}{'' if is_number(v) else ' class=t'}>{escape(str(v))}</{tag}>" for v in values)
    return "<table>\n<tr>" + cells("th", head) + "</tr>\n" + "\n".join("<tr>" + cells("td", line) + "</tr>" for line in lines) + "\n</table>"


def best(rows):
    """The fastest row, or None."""
    good = [r for r in rows if r["status"] == "ok" and r["median_ms"]]
    return min(good, key=lambda r: r["median_ms"]) if good else None


FASTEST = ["data", "model", "phase", "gnnc", "ms", "best peer", "ms", "times"]


def in_order(rows, table):
    """Rows as grid.json has its data sets and models, train before infer; those that it no longer names are last."""
    place = lambda names, n: list(names).index(n) if n in names else len(names)
    models = [m for d in table["datasets"].values() for m in d["models"]]
    return sorted(rows, key=lambda r: (r["machine"], r["device"], place(table["datasets"], r["dataset"]), place(models, r["model"]), r["phase"] != "train"))


def fastest(rows):
    """A line of FASTEST for each data set, model and phase that something was measured of."""
    for (dataset, model, phase), part in itertools.groupby(rows, key=lambda r: (r["dataset"], r["model"], r["phase"])):
        part = list(part)
        mine, peer = best([r for r in part if r["system"] == "gnnc"]), best([r for r in part if r["system"] != "gnnc"])
        if mine or peer:
            yield [dataset, model, phase, *(x for r in (mine, peer) for x in ((name(r), f"{r['median_ms']:.4g}") if r else ("", ""))),
                   f"{peer['median_ms'] / mine['median_ms']:.2f}" if mine and peer else ""]


def measured_of(rows, table):
    """How much of the table there is, in words: a grid that was stopped says so."""
    a = argparse.Namespace(device="", machine="", **dict.fromkeys(("datasets", "models", "systems", "modes", "dynamic", "phases"), ""))
    words = []
    for (machine, device), part in itertools.groupby(rows, key=lambda r: (r["machine"], r["device"])):
        part, a.machine, a.device = list(part), machine, device
        status = Counter(r["status"] for r in part)
        words.append(f"{machine}, {device}: {len(part)} of {sum(1 for _ in jobs(table, a))} combinations were run"
                     + "".join(f", {n} {s}" for s, n in sorted(status.items()) if s != "ok") + ".")
    return words


def analyses(rows, table):
    """What is asked of a grid before all rows are read: who is fastest, what compiling costs, memory by phase, what fits, what must be changed."""
    memory, lost = defaultdict(dict), []
    for r in rows:
        if r["status"] == "ok":
            memory[r["dataset"], r["model"], name(r)][r["phase"]] = f"{r['peak_mib']:.0f}"
        else:
            lost.append([r["dataset"], r["model"], r["phase"], name(r), r["status"], r["error"] or ""])
    yield "".join(f"<p>{escape(w)}</p>" for w in measured_of(rows, table))
    yield f"<h2>Fastest, ms a call</h2>{rows_of(FASTEST, fastest(rows))}"
    tax = [[r["dataset"], r["model"], r["phase"], name(r), f"{r['compile_s']:.4g}", f"{r['compile_tax_pct']:.3g}", r["break_even_runs"]]
           for r in rows if r["status"] == "ok" and r["compile_s"]]
    yield (f"<h2>Compile tax</h2><p>The part that compiling has of {TAXED} calls, and the calls after which it is won back against eager.</p>"
           + rows_of(["data", "model", "phase", "system", "compile s", f"% of {TAXED} calls", "break-even calls"], tax))
    yield "<h2>Memory by phase, MiB</h2>" + rows_of(["data", "model", "system", "train", "infer"],
                                                    [[*k, v.get("train", ""), v.get("infer", "")] for k, v in memory.items()])
    yield "<h2>Without a result</h2>" + (rows_of(["data", "model", "phase", "system", "status", "why"], lost) if lost else "<p>None.</p>")
    yield "<h2>What a mode asks of a program</h2>" + rows_of(["system", "mode", "lines to change", "which"], [
        [s, m, v["changed_lines"], v["change"]] for s, x in table["systems"].items() for m, v in x["modes"].items()])


def write_lock(path, a):
    """What the rows were measured with, so that they can be measured again."""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        cpu = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())
    parts = [f"commit {said_by('git', '-C', TOP, 'rev-parse', 'HEAD')}", f"machine {a.machine}: {cpu}, {memory_bytes() / 2**30:.1f} GiB",
             f"kernel {platform.release()}", said_by(a.gnnc, "--version"), said_by(os.environ.get("CC", "cc"), "--version").split("\n")[0]]
    for label, python in (("peers", a.peers_python), ("dgl", a.dgl_python)):
        parts.append(f"\n# {label}: {said_by(python, '--version')}\n{said_by(python, '-m', 'pip', 'freeze')}")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(parts) + "\n")


def write_html(path, rows, table_of_modes):
    style = ("body{font-family:sans-serif;margin:2em}table{border-collapse:collapse;font-size:12px}"
             "td,th{border:1px solid #ccc;padding:2px 6px;text-align:right}.t{text-align:left;max-width:60em;overflow-wrap:anywhere}tr.bad{background:#fdd}"
             ".plots{display:flex;flex-wrap:wrap;align-items:flex-start;gap:1em}.wide{overflow-x:auto}")
    cells = lambda tag, values: "".join(f"<{tag}{'' if is_number(v) else ' class=t'}>{escape(str(v))}</{tag}>" for v in values)
    table = ["<tr>" + cells("th", COLUMNS) + "</tr>"]
    for r in rows:
        table.append(f"<tr{'' if r['status'] == 'ok' else ' class=bad'}>{cells('td', (r.get(k, '') for k in COLUMNS))}</tr>")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>gnnc: grid</title><style>{style}</style></head><body>\n'
                "<h1>Grid</h1>\n" + "\n".join(analyses(rows, table_of_modes)) + "\n" + "\n".join(plots(rows, table_of_modes["systems"]))
                + "\n<h2>All rows</h2>\n<div class=wide><table>\n" + "\n".join(table) + "\n</table></div></body></html>\n")


def write_md(path, rows, table):
    lines = ["`bench/grid.py`, the fastest way of gnnc beside the fastest of all peers' (PyG, its CSR path, DGL; eager and each mode of torch.compile).",
             *measured_of(rows, table), ""]
    lines += ["| " + " | ".join(FASTEST) + " |", "|" + "---|" * len(FASTEST)] + ["| " + " | ".join(line) + " |" for line in fastest(rows)]
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


def write_all(stem, rows, table, a):
    rows = in_order(rows, table)
    write_md(stem + ".md", rows, table)
    write_xlsx(stem + ".xlsx", rows)
    write_html(stem + ".html", rows, table)
    write_lock(stem + ".lock.txt", a)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--npy", required=True)
    ap.add_argument("--data", action="append", default=[])
    add_options(ap, ("--datasets", "--models", "--systems", "--modes", "--dynamic", "--phases"), "grid")
    ap.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    ap.add_argument("--epochs", type=int)
    ap.add_argument("--hours", type=float, default=3)
    a = ap.parse_args()
    a.data.append(os.path.dirname(CORA))
    with open(os.path.join(TOP, "bench", "grid.json"), encoding="utf-8") as f:
        table = json.load(f)
    os.makedirs(os.path.dirname(os.path.abspath(a.results)), exist_ok=True)
    rows = read_rows(a.results + ".csv")
    derive(rows)
    with tempfile.TemporaryDirectory() as tmp:
        grid = Grid(a, table, tmp)
        done = {key(r) for r in rows if not (a.retry and r["status"] != "ok")
                and r["epochs"] == grid.epochs(Job(*key(r)))}
        todo = [j for j in jobs(table, a) if tuple(j) not in done]
        if a.list:
            print("\n".join(" ".join(j[1:]) for j in todo))
            return 0
        start = time.time()
        try:
            for k, job in enumerate(todo):
                if time.time() - start > 3600 * a.hours:
                    print(f"{a.hours:g} hours are over, {len(todo) - k} runs are left; the same command goes on from here", file=sys.stderr)
                    break
                row = grid.measure(job)
                rows = [r for r in rows if key(r) != tuple(job)] + [row]
                derive(rows)
                write_csv(a.results + ".csv", COLUMNS, rows)
                left = (time.time() - start) / (k + 1) * (len(todo) - k - 1)
                print(f"[{k + 1}/{len(todo)}, about {left:.0f} s left] {' '.join(job[2:])}: "
                      f"{row.get('error') or '%.3f ms' % row['median_ms']}", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print("stopped; the same command goes on from here", file=sys.stderr)
    write_all(a.results, rows, table, a)
    print(f"{len(rows)} rows, {sum(r['status'] != 'ok' for r in rows)} without a result: {a.results}.csv, .html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
