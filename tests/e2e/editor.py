#!/usr/bin/env python3
"""Models in a real editor: Neovim without a screen, with what docs/editors/ has for it.  usage: editor.py GNNC TOP

It opens a model with a mistake, is told of it, mends it, asks for types and definitions, completes, renames and lays
out.  The grammars have the words that the scanner has.  Prints `N passed, N failed`; LEFT OUT where there is no nvim."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

MODEL = '''# A model: ünïcödé.
import "layers/gcn.gnn"

graph Citation {
  node paper { x: csr f32[F];  y: class[C];  split }
  edge cites: paper -> paper
}

model GCN(g: Citation; hidden: int = 16) -> f32[paper, C] {
  epochs = 3
  conv = gcn_conv(hidden)
  last = gcn_conv(C)
  h = relu(conw(g.cites, dropout(g.paper.x, 0.5)))
  return last(g.cites, h) * epochs
}

train GCN {
  target paper.y    loss cross_entropy    metric accuracy
  optimizer adam(lr = 1e-2)
  epochs 10         keep best on val accuracy
}
'''


def words(gnnc):
    said = {}
    for line in subprocess.run([gnnc, "help", "words"], capture_output=True, text=True, check=True).stdout.splitlines():
        kind, word = line.split()
        said.setdefault(kind, set()).add(word)
    return said


def vim_words(text, group):
    return {w for m in re.findall(rf"^syntax keyword {group} (?:contained )?(.*)$", text, re.M) for w in m.split()}


def textmate_words(node, scope):
    """Of the rule with that scope's name."""
    if isinstance(node, list):
        return set().union(*(textmate_words(n, scope) for n in node))
    if not isinstance(node, dict):
        return set()
    if node.get("name") == scope:
        return set(re.fullmatch(r"\\b\((.*)\)\\b", node["match"]).group(1).split("|"))
    return set().union(*(textmate_words(n, scope) for n in node.values()), set())


def grammars(gnnc, top):
    said = words(gnnc)
    with open(os.path.join(top, "docs/editors/vim/syntax/gnn.vim"), encoding="utf-8") as f:
        vim = f.read()
    with open(os.path.join(top, "docs/editors/vscode/gnn.tmLanguage.json"), encoding="utf-8") as f:
        textmate = json.load(f)
    for kind, group, scope in (("keyword", "gnnKeyword", "keyword.control.gnn"), ("type", "gnnType", "storage.type.gnn"),
                               ("constant", "gnnConstant", "constant.language.gnn"),
                               ("recipe", "gnnRecipe", "keyword.other.recipe.gnn")):
        yield f"{kind}s of Vim's grammar", vim_words(vim, group) == said[kind], vim_words(vim, group) ^ said[kind]
        yield f"{kind}s of the TextMate grammar", textmate_words(textmate, scope) == said[kind], textmate_words(textmate, scope) ^ said[kind]
    for name in ("package.json", "language-configuration.json"):
        with open(os.path.join(top, "docs/editors/vscode", name), encoding="utf-8") as f:
            yield name, json.load(f)
    listed = json.load(open(os.path.join(top, "docs/editors/vscode/package.json"), encoding="utf-8"))["contributes"]
    for path in (listed["grammars"][0]["path"], listed["languages"][0]["configuration"], "extension.js"):
        yield path, os.path.exists(os.path.join(top, "docs/editors/vscode", path))


def neovim(gnnc, top):
    with tempfile.TemporaryDirectory() as work:
        with open(os.path.join(work, "model.gnn"), "w", encoding="utf-8") as f:
            f.write(MODEL)
        out = os.path.join(work, "out.json")
        env = {**os.environ, "EDITOR_OUT": out, "EDITOR_GNNC": gnnc, "EDITOR_TOP": top, "HOME": work,
               "XDG_CONFIG_HOME": work, "XDG_DATA_HOME": work, "XDG_STATE_HOME": work, "XDG_CACHE_HOME": work}
        r = subprocess.run(["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-n", "-c",
                            "luafile " + os.path.join(top, "tests/e2e/editor.lua")], cwd=work, env=env,
                           capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        with open(out, encoding="utf-8") as f:
            got = json.load(f)
    yield "no error", "error" not in got and not r.returncode, got.get("error"), r.stderr
    for key, waited in got.items():
        if key.startswith("waited for"):
            yield key, waited
    yield "the kind of file", got["filetype"] == "gnn"
    want = {"model": "gnnKeyword", "recipe": "gnnRecipe", "type": "gnnType", "comment": "gnnComment", "string": "gnnString",
            "outside": "", "call": "gnnCall"}
    yield "what words are", got["words"] == want, got["words"]
    line = MODEL[:MODEL.index("conw")].count("\n")
    yield "a diagnostic", [(d["line"], d["col"]) for d in got["diagnostics"]] == [(line, 11)] and "conw" in got["diagnostics"][0]["message"], got["diagnostics"]
    yield "mended", not got["mended"], got["mended"]
    yield "hover", "h: f32[paper, hidden]" in got["hover"] and "per step" in got["hover"], got["hover"]
    yield "definition", got["definition"][0].endswith("layers/prelude.gnn") and got["definition"][1].startswith("fn relu"), got["definition"]
    yield "completion", "x" in got["completion"], got["completion"]
    sound = MODEL.replace("conw", "conv")
    renamed = sound.replace("hidden: int", "wide: int").replace("gcn_conv(hidden)", "gcn_conv(wide)")
    yield "rename", got["renamed"] == renamed, got["renamed"]
    yield "layout", got["formatted"] == renamed, got["formatted"]


def main(gnnc, top):
    gnnc, top = os.path.abspath(gnnc), os.path.abspath(top)
    passed, failed = 0, 0
    checks = list(grammars(gnnc, top))
    if shutil.which("nvim"):
        checks += list(neovim(gnnc, top))
    else:
        print("LEFT OUT: models in Neovim: there is no nvim")
    for what, ok, *more in checks:
        passed, failed = passed + bool(ok), failed + (not ok)
        if not ok:
            print(what, *more)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
