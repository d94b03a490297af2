#!/usr/bin/env python3
"""The manual page and shells' completions name every command, option, word of a value and pass that gnnc knows, and bash's
complete what they should.

    manual.py TOP
"""
import os
import re
import shutil
import subprocess
import sys

TOP = sys.argv[1]
GNNC = TOP + "/build/gnnc"
SOURCE = {name: open(f"{TOP}/frontend/{name}.c", encoding="utf-8").read() for name in ("cli/cli_options", "import/import_options")}


def run(*argv, code=0, **more):
    r = subprocess.run(argv, capture_output=True, text=True, check=False, **more)
    assert r.returncode == code, (argv, r.returncode, r.stderr)
    return r.stdout


def named(text):
    """The options at the beginnings of a help's lines, with the name of their value or without."""
    return dict(re.findall(r"^  (-[\w-]+)(?:[= ](?! )(\S+))?", text, re.M))


HELP, IMPORT = run(GNNC, "--help"), run(GNNC, "import", "--help")
OPTIONS, IMPORTS = named(HELP), named(IMPORT)
ALIASES = re.findall(r'\{"(-\w+)", "(-[\w-]+)"\}', SOURCE["cli/cli_options"])
COMMANDS = re.findall(r"^(?:usage:|      ) gnnc ([a-z]+) ", HELP, re.M)
PASSES = re.findall(r"^  ([a-z][\w-]+) ", HELP[HELP.index("\npasses:"):], re.M)
WORDS = {"--emit": "exe lib infer python ast ir plan loops llvm asm obj c cuda header html none", "--runtime": "own shared", "--spmm": "own auto cusparse",
         "--precision": "f32 bf16 f16 auto tf32", "--report-format": "text json", "--target": "auto cpu cuda",
         "--report": "all verdict source missed kernels degrees shapes breaks fusion syncs memory precision communication times"}


def tables_are_whole():
    """What the parsers take stands in the tables."""
    assert len(OPTIONS) > 30 and len(IMPORTS) > 20 and len(PASSES) > 20 and len(ALIASES) == 4, (OPTIONS, IMPORTS, PASSES, ALIASES)
    assert COMMANDS == ["check", "fmt", "lsp", "opt", "run", "compare", "import", "partition", "export", "help"], COMMANDS
    assert set(re.findall(r'"(--[a-z-]+)"', SOURCE["import/import_options"])) == set(IMPORTS) - {"-o"}
    for option, words in WORDS.items():
        for word in words.split():
            assert "is not a value" not in subprocess.run([GNNC, "no.gnn", f"{option}={word}"], capture_output=True, text=True,
                                                          check=False).stderr, (option, word)


def manual():
    page = run(GNNC, "help", "man")
    bold = {m.replace("\\-", "-").strip("= ") for m in re.findall(r'^\.BI? "?(.*?)(?:"|$)', page, re.M)}
    missing = (set(OPTIONS) | set(IMPORTS) | set(COMMANDS) | set(PASSES) | {a for pair in ALIASES for a in pair}) - bold
    assert not missing, missing
    assert page.startswith(".TH GNNC 1 ") and not re.search(r"^(?!\.(TH|SH|TP|BI?|PP|br)\b)\.", page, re.M)
    assert page == run(GNNC, "help", "man")  # nothing of the day
    if shutil.which("groff"):
        r = subprocess.run(["groff", "-man", "-Tascii", "-ww"], input=page, capture_output=True, text=True, check=True)
        shown = re.sub(r"\s+", " ", re.sub(r".\x08", "", r.stdout))
        assert not r.stderr and "--report=WHAT" in shown and "-MF FILE" in shown and "-D hidden=64" in shown, r.stderr


BASH = """source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _gnnc; printf '%s\\n' "${COMPREPLY[@]}" """


def completed(*words):
    """What bash offers for the last word; it takes --emit=l apart at the sign."""
    return set(run("bash", "-c", BASH, "-", os.path.abspath("gnnc.bash"), "gnnc", *words).split())


def bash():
    with open("gnnc.bash", "w", encoding="utf-8") as f:
        f.write(run(GNNC, "help", "bash"))
    run("bash", "-n", "gnnc.bash")
    names = {n + ("=" if value and n[1] == "-" else "") for n, value in OPTIONS.items()} | {a for a, _ in ALIASES}
    assert completed("-") == names, completed("-") ^ names
    assert completed("import", "-") == {n + ("=" if v and n[1] == "-" else "") for n, v in IMPORTS.items()}
    for option, words in WORDS.items():
        assert completed("m.gnn", option, "=", "") == completed("m.gnn", option, "") == set(words.split()), option
    assert completed("m.gnn", "--emit", "=") == set(WORDS["--emit"].split())
    assert completed("m.gnn", "--emit", "=", "l") == {"lib", "loops", "llvm"}
    assert completed("opt", "--print-after", "=", "fu") == {"fuse"} | {p for p in PASSES if p.startswith("fu")}
    assert completed("help", "") == {"man", "bash", "zsh", "fish", "thresholds", "words"}
    os.makedirs("here/folder")
    with open("here/im.gnn", "w", encoding="utf-8"):
        pass
    os.chdir("here")
    run_in = [("im",), ("-o", ""), ("--specialize", "=", ""), ("--model", "=", ""), ("import", "x", "--map", "")]
    os.rename("../gnnc.bash", "gnnc.bash")
    want = [{"import", "im.gnn"}, {"folder", "gnnc.bash", "im.gnn"}, {"folder"}, set(), {"folder", "gnnc.bash", "im.gnn"}]
    assert [completed(*words) for words in run_in] == want, [completed(*words) for words in run_in]


def other_shells():
    zsh, fish = run(GNNC, "help", "zsh"), run(GNNC, "help", "fish")
    assert zsh.startswith("#compdef gnnc\n")
    for table, where in ((OPTIONS, "not "), (IMPORTS, "")):
        for name, value in table.items():
            assert f"'*{name}{'' if not value else '=' if name[1] == '-' else '+'}[" in zsh, name
            form = f"-l {name[2:]}" if name[1] == "-" else f"-o {name[1:]}" if len(name) > 2 else f"-s {name[1:]}"
            assert f"complete -c gnnc -n '{where}__fish_seen_subcommand_from import' {form} " in fish, name
    for option, words in WORDS.items():
        offers = (re.search(rf"'\*{option}=\[.*\]:[^:]*:\((.*)\)'", zsh), re.search(rf" -l {option[2:]} -x -a '(.*?)' -d", fish))
        assert all(set(offer.group(1).split()) == set(words.split()) for offer in offers), option
    for shell, text in (("zsh", zsh), ("fish", fish)):
        if shutil.which(shell):
            run(shell, "-n", input=text)


tables_are_whole()
manual()
bash()
other_shells()
assert "there is no help as 'csh'" in subprocess.run([GNNC, "help", "csh"], capture_output=True, text=True, check=False).stderr
run(GNNC, "help", "csh", code=2)
