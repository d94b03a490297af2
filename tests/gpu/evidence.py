"""What a run on a GPU finds: told, counted, and written as it goes, so that nothing is lost where a session is cut off.

FOLDER/figures.jsonl has a line for each thing that was found, in order, written at once; the tables of TABLES are made of it.
A later run into the same folder adds to both, and a row that is measured again takes the place of the earlier one, if device
and revision are the same.
"""
import csv
import json
import os
import time

# kind of figure: (file, columns that say what was measured, all columns)
TABLES = {
    "time": ("results.csv", ("graph", "model", "system", "precision", "what"),
             ("device", "graph", "model", "system", "precision", "what", "train_ms", "infer_ms", "epoch_ms", "device_mib", "launches_per_step")),
    "kernel": ("kernels.csv", ("graph", "model", "precision", "phase", "step"),
               ("device", "graph", "model", "precision", "phase", "step", "name", "lines", "calls", "us", "bytes", "flops", "gb_per_s", "limit")),
    "predicted": ("predicted.csv", ("graph", "model", "phase", "step"),
                  ("device", "graph", "model", "phase", "step", "name", "predicted_us", "measured_us", "ratio", "by", "verdict")),
}


class Evidence:
    def __init__(self, folder, device, revision):
        self.folder, self.device, self.revision = folder, device, revision
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "figures.jsonl")
        self.rows, self.notes = {kind: {} for kind in TABLES}, []
        broken = os.path.exists(path) and self.read(path)
        self.file = open(path, "a", encoding="utf-8")
        if broken:
            self.file.write("\n")
        self.part, self.until, self.began = None, time.time() + 600, time.time()
        self.passed = self.failed = self.left_out = 0
        self.verdicts = []

    def read(self, path):
        """Whether the last line was being written when a session was cut off."""
        line = "\n"
        with open(path, encoding="utf-8", errors="replace") as f:
            for line in f:
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                if row.get("kind") in TABLES and (row.get("device"), row.get("revision")) == (self.device, self.revision):
                    self.keep(row["kind"], row)
        return not line.endswith("\n")

    # ---- figures ------------------------------------------------------------------------------
    def write(self, kind, **values):
        row = {"kind": kind, "part": self.part, "device": self.device, "revision": self.revision, **values}
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()
        return row

    def keep(self, kind, row):
        self.rows[kind][tuple(row.get(c) for c in TABLES[kind][1])] = row

    def figures(self, kind, rows):
        for values in rows:
            self.keep(kind, self.write(kind, **values))
        self.write_table(kind)

    def write_table(self, kind):
        name, _, columns = TABLES[kind]
        with open(os.path.join(self.folder, name), "w", encoding="utf-8", newline="") as f:
            w = csv.writer(f)
            w.writerow(columns)
            w.writerows([row.get(c, "") for c in columns] for row in self.rows[kind].values())
        if kind == "time":
            self.write_page()

    def write_page(self):
        times = list(self.rows["time"].values())
        ours = {tuple(r[c] for c in ("graph", "model", "precision", "what")): r for r in times if r["system"] == "gnnc"}
        with open(os.path.join(self.folder, "results.md"), "w", encoding="utf-8") as f:
            f.write(f"## {self.device}\n\nMedians of steps, and of epochs of mini-batches; launches are those of a train step, library calls among "
                    "them. `x`: how many times as long as gnnc.\n\n| graph | model | system | precision | train, ms | x | inference, ms | x "
                    "| epoch, ms | x | device, MiB | launches |\n|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
            for r in times:
                us = ours.get(tuple(r[c] for c in ("graph", "model", "precision", "what")), r)
                cells = []
                for c in ("train_ms", "infer_ms", "epoch_ms"):
                    cells += [r.get(c, ""), f"{r[c] / us[c]:.2f}" if r.get(c) and us.get(c) else ""]
                f.write(f"| {r['graph']} | {r['model']} | {r['system']} | {r['precision']} | {' | '.join(map(str, cells))} | "
                        f"{r.get('device_mib', '')} | {r.get('launches_per_step', '')} |\n")
            f.writelines(f"\n{n}\n" for n in self.notes)

    def note(self, text):
        self.notes.append(text)
        self.write("note", text=text)
        print(text, flush=True)

    # ---- parts: checks, the clock, the verdict ----------------------------------------------------
    def begin(self, part, minutes):
        self.part, self.began, self.until = part, time.time(), time.time() + 60 * minutes
        self.passed = self.failed = self.left_out = 0
        print(f"== {part}", flush=True)

    def left(self):
        return self.until - time.time()

    def late(self, name, needs=0):
        """Whether less than `needs` seconds are left of the part; then `name` is not done, and counted."""
        if self.left() > needs:
            return False
        self.leave_out(name)
        return True

    def leave_out(self, name):
        self.left_out += 1
        self.write("left out", name=name)
        print(f"left out for want of time: {name}", flush=True)

    def check(self, name, ok, why="", **values):
        self.count(name, bool(ok), not ok, why, **values)
        return ok

    def count(self, name, passed, failed, why="", **values):
        self.passed, self.failed = self.passed + passed, self.failed + failed
        self.write("check", name=name, passed=int(passed), failed=int(failed), **values, **({"why": why[:2000]} if failed else {}))
        if failed:
            print(f"FAILED {name}: {why}".rstrip()[:2000], flush=True)

    def end(self, words=""):
        """The part's verdict, in one line."""
        holds = "FAILS" if self.failed else "holds" if self.passed and not self.left_out else "incomplete"
        seconds, allowed = time.time() - self.began, self.until - self.began
        text = (f"verdict {self.part}: {holds}: {self.passed} passed, {self.failed} failed, {self.left_out} left out; "
                f"{seconds:.0f} s of {allowed:.0f}" + (f"; {words}" if words else ""))
        self.write("verdict", holds=holds, passed=self.passed, failed=self.failed, left_out=self.left_out, seconds=round(seconds, 1), words=words)
        self.verdicts.append((self.passed, self.failed, self.left_out))
        print(text, flush=True)
