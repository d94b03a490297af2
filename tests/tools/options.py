#!/usr/bin/env python3
"""Prints docs/options.md, from what --help says.  usage: options.py GNNC TRAINER [PAGE]

TRAINER is any trainer: all have the same options.  With PAGE nothing is printed: it must be the same, else status 1."""
import re
import subprocess
import sys

HEAD = """# Options

All options of `gnnc` and of a trainer, as `--help` prints them. `tests/tools/options.py build/gnnc TRAINER` writes this page. Which options to use for what is on other
pages: [importing](data.md), [trainers](runtime.md), [GPUs](gpu.md), [passes](passes.md), [several processes](distributed.md).
"""
SECTIONS = (
    ("gnnc", "`gnnc MODEL.gnn [-o TRAINER] [OPTION]..` compiles a model. `with fmt: ..`, `with run: ..` are options of those commands of `gnnc`.", ("--help",)),
    ("gnnc import", "`gnnc import INPUT.. -o DIR [OPTION]..` makes a data directory: [data.md](data.md).", ("import", "--help")),
    ("gnnc partition", "`gnnc partition DIR PARTS -o OUT [OPTION]..` cuts one into parts: [distributed.md](distributed.md#data-in-parts).", ("partition", "--help")),
    ("gnnc export", "`gnnc export FILE --into DATABASE --table NAME [OPTION]..` writes predictions into a database: [data.md](data.md#predictions-into-a-database).", ("export", "--help")),
)
OPTION = re.compile(r"^  (-\S+(?: (?=[A-Z\[a-z\d])\S+)?)(?: {2,}| )(.*)$")


def said(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def options(text):
    """(option, meaning) of each; a meaning goes on in lines that begin far to the right."""
    rows = []
    for line in text.splitlines():
        wide = re.match(r"^  (-\S.*?) {2,}(\S.*)$", line)
        m = wide or OPTION.match(line)
        if m:
            rows.append([m[1], m[2]])
        elif rows and re.match(r"^ {10,}\S", line):
            rows[-1][1] += " " + line.strip()
        elif line.startswith("passes:"):
            break
    return rows


def table(rows):
    def cell(s):
        return s.replace("|", "\\|").replace("<", "&lt;")
    return "| option | meaning |\n|---|---|\n" + "".join(f"| `{o.replace('|', chr(92) + '|')}` | {cell(m)} |\n" for o, m in rows)


def main(gnnc, trainer, page=None):
    text = HEAD
    for name, what, command in SECTIONS:
        text += f"\n## {name}\n\n{what}\n\n" + table(options(said([gnnc, *command])))
    text += "\n## A trainer\n\n`./train [COMMAND] --data DIR [OPTION]..`: [runtime.md](runtime.md).\n\n"
    text += table(options(said([trainer, "--help"]).partition("\nOptions\n")[2]))
    if not page:
        print(text, end="")
        return 0
    with open(page, encoding="utf-8") as f:
        same = f.read() == text
    if not same:
        print(f"{page} is not what --help says: tests/tools/options.py build/gnnc TRAINER > {page}")
    return 0 if same else 1


sys.exit(main(*sys.argv[1:]))
