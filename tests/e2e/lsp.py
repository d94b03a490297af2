#!/usr/bin/env python3
"""The language server, spoken to as an editor does.  usage: lsp.py GNNC TOP

What it answers of models, places in UTF-16 units, what it does with what is no message, and that each
shipped file is known without a mistake.  Prints `N passed, N failed`."""
import concurrent.futures
import glob
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

MODEL = '''# Ünïcödé 🙂 above.
import "layers/gcn.gnn"

graph Citation {
  node paper { x: csr f32[F];  y: class[C];  split }
  edge cites: paper -> paper
}

# Twice a value.
# It is linear.
fn twice(x, by: float = 2) { return x * by }

layer mine(out: int; bias: bool = true)(x: f32[N, I]) -> f32[N, out] {
  lin = linear(out, bias = bias)
  if bias { return lin(x) }
  return lin(x) * 2
}

model GCN(g: Citation; hidden: int = 16) -> f32[paper, C] {
  conv = gcn_conv(hidden)
  last = mine(C)
  /*🙂*/h = relu(conv(g.cites, dropout(g.paper.x, 0.5)))
  return twice(last(h), by = 3)
}

train GCN {
  target paper.y    loss cross_entropy    metric accuracy
  optimizer adam(lr = 1e-2)
  epochs 10         keep best on val accuracy
}
'''.replace("/*🙂*/", "")


class Server:
    def __init__(self, gnnc, *options, cwd=None):
        self.p = subprocess.Popen([gnnc, "lsp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, cwd=cwd)
        self.id = 0
        self.told = {}

    def raw(self, data):
        self.p.stdin.write(data)
        self.p.stdin.flush()

    def send(self, **message):
        body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def receive(self):
        n = None
        while (line := self.p.stdout.readline()).strip():
            if line.lower().startswith(b"content-length:"):
                n = int(line.split(b":")[1])
        if n is None:
            return None
        message = json.loads(self.p.stdout.read(n))
        if message.get("method") == "textDocument/publishDiagnostics":
            self.told[message["params"]["uri"]] = message["params"]["diagnostics"]
        return message

    def request(self, method, **params):
        """The result, or the error."""
        self.id += 1
        self.send(id=self.id, method=method, params=params)
        while (m := self.receive()) is not None:
            if m.get("id") == self.id:
                return m["result"] if "result" in m else m["error"]

    def notify(self, method, **params):
        self.send(method=method, params=params)

    def start(self, **capabilities):
        self.request("initialize", processId=None, rootUri=None, capabilities=capabilities)
        self.notify("initialized")

    def open(self, uri, text):
        self.notify("textDocument/didOpen", textDocument={"uri": uri, "languageId": "gnn", "version": 1, "text": text})
        return self.diagnostics(uri)

    def diagnostics(self, uri):
        self.told.pop(uri, None)
        while uri not in self.told:
            assert self.receive() is not None
        return self.told[uri]

    def change(self, uri, *changes):
        self.notify("textDocument/didChange", textDocument={"uri": uri, "version": 2}, contentChanges=list(changes))
        return self.diagnostics(uri)

    def at(self, method, uri, text, mark, plus=0, nth=0, **more):
        """Asks at the nth place of `mark` in the text."""
        return self.request("textDocument/" + method, textDocument={"uri": uri}, position=place(text, mark, plus, nth), **more)

    def end(self):
        self.request("shutdown")
        self.notify("exit")
        self.p.stdin.close()
        return self.p.wait(20), self.p.stderr.read().decode()


def units(s):
    return len(s.encode("utf-16-le")) // 2


def place(text, mark, plus=0, nth=0):
    at = -1
    for _ in range(nth + 1):
        at = text.index(mark, at + 1)
    at += plus
    line = text.rfind("\n", 0, at) + 1
    return {"line": text.count("\n", 0, at), "character": units(text[line:at])}


def apply(text, edits):
    """The text with edits done, from the last to the first."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)

    def offset(p):
        line = lines[p["line"]] if p["line"] < len(lines) else ""
        n = 0
        while n < len(line) and units(line[:n]) < p["character"]:
            n += 1
        return min(starts[min(p["line"], len(lines))] + n, len(text))

    for e in sorted(edits, key=lambda e: offset(e["range"]["start"]), reverse=True):
        text = text[:offset(e["range"]["start"])] + e["newText"] + text[offset(e["range"]["end"]):]
    return text


def hover(s, uri, text, mark, plus=0, nth=0):
    r = s.at("hover", uri, text, mark, plus, nth)
    return r["contents"]["value"] if r else ""


def labels(s, uri, text, mark, plus=0, nth=0):
    r = s.at("completion", uri, text, mark, plus, nth)
    return [i["label"] for i in r]


def answers(gnnc, top):
    s = Server(gnnc)
    s.start()
    uri = "file:///tmp/my%20model.gnn"
    yield "a sound model has no diagnostics", s.open(uri, MODEL) == []

    # ---- hover
    yield "type of a value", "h: f32[paper, hidden]" in hover(s, uri, MODEL, "h = relu")
    yield "type of a use", "h: f32[paper, hidden]" in hover(s, uri, MODEL, "last(h)", 5)
    yield "type of a column", "x: csr f32[paper, F]" in hover(s, uri, MODEL, "g.paper.x", 8)
    yield "type of an operation", "f32[" in hover(s, uri, MODEL, "* by")
    said = hover(s, uri, MODEL, "gcn_conv(hidden)")
    yield "signature and comment of a layer", "layer gcn_conv(out: int" in said and "Kipf" in said
    said = hover(s, uri, MODEL, "twice(last")
    yield "signature and comment of a function", "fn twice(x, by: float = 2)\n" in said and "It is linear." in said
    said = hover(s, uri, MODEL, "h = relu")
    yield "costs of the line", "This line, per step" in said and "FLOP" in said and "reads " in said, said
    yield "a relation", "cites: edge cites: paper -> paper" in hover(s, uri, MODEL, "g.cites", 3)
    yield "an instance", "its parameters at conv" in hover(s, uri, MODEL, "conv(g.cites")
    yield "nothing on nothing", hover(s, uri, MODEL, "\n\ngraph", 1) == ""

    # ---- definitions
    def goes(mark, plus, nth, to):
        r = s.at("definition", uri, MODEL, mark, plus, nth)
        return bool(r) and r["uri"] == uri and r["range"]["start"] == place(MODEL, *to)

    yield "definition of a value", goes("last(h)", 5, 0, ("h = relu",))
    yield "definition of a parameter", goes("gcn_conv(hidden)", 10, 0, ("hidden: int",))
    yield "definition of a layer", goes("mine(C)", 0, 0, ("mine(out",))
    yield "definition of a column", goes("g.paper.x", 8, 0, ("x: csr",))
    yield "definition of a node type", goes("g.paper.x", 3, 0, ("paper { x",))
    yield "definition of a size", goes("mine(C)", 5, 0, ("C];",))
    yield "definition of a named argument", goes("by = 3", 0, 0, ("by: float",))
    yield "definition of a dimension", goes("-> f32[N, out]", 7, 0, ("N, I]",))
    r = s.at("definition", uri, MODEL, "layers/gcn.gnn")
    yield "an import leads to its file", r and r["uri"].endswith("models/layers/gcn.gnn")
    r = s.at("definition", uri, MODEL, "dropout")
    yield "the library's functions", r and r["uri"].endswith("models/layers/prelude.gnn")
    r = s.at("references", uri, MODEL, "hidden: int", context={"includeDeclaration": True})
    yield "references", len(r) == 2

    # ---- completion
    def typed(old, new, mark, plus=0):
        text = MODEL.replace(old, new, 1)
        s.change(uri, {"text": text})
        found = labels(s, uri, text, mark, plus)
        s.change(uri, {"text": MODEL})
        return found

    found = typed("g.paper.x, 0.5", "g., 0.5", "g., 0.5", 2)
    yield "members of a graph", set(found) >= {"paper", "cites"} and "relu" not in found, found
    found = typed("g.paper.x", "g.paper.", "g.paper.", 8)
    yield "columns", "x" in found and "relu" not in found, found
    found = typed("relu(conv", "re(conv", "re(conv", 2)
    yield "functions by their beginning", "relu" in found and "reverse" in found and "linear" not in found, found
    found = typed("last(h)", "last()", "last()", 5)
    yield "names of the body", {"h", "conv", "last", "g", "hidden", "relu", "twice"} <= set(found), found
    yield "arguments by name", "x" in found, found
    found = typed("mine(C)", "mine(C, )", "mine(C, )", 8)
    yield "settings of a layer", "bias" in found, found
    found = typed("  epochs 10         keep", "  ep\n  keep", "  ep\n", 4)
    yield "words of a recipe", found == ["epochs"], found
    found = typed("loss cross_entropy", "loss cr", "loss cr", 7)
    yield "losses", "cross_entropy" in found, found
    found = typed("adam(lr = 1e-2)", "adam(lr = 1e-2, we)", "we)", 2)
    yield "options of the optimizer", "weight_decay" in found, found

    # ---- rename
    def renamed(mark, plus, new, nth=0):
        r = s.at("rename", uri, MODEL, mark, plus, nth, newName=new)
        return apply(MODEL, r["changes"][uri]) if "changes" in r else r["message"]

    yield "rename a value", renamed("h = relu", 0, "z") == MODEL.replace("  h = relu", "  z = relu").replace("last(h)", "last(z)")
    want = MODEL.replace("fn twice(x, by: float = 2) { return x * by }", "fn twice(x, factor: float = 2) { return x * factor }")
    yield "rename a parameter and its arguments", renamed("by = 3", 0, "factor") == want.replace("by = 3", "factor = 3")
    want = MODEL.replace("layer mine", "layer theirs").replace("= mine(C)", "= theirs(C)")
    yield "rename a layer", renamed("mine(C)", 1, "theirs") == want
    want = MODEL.replace("hidden: int", "wide: int").replace("gcn_conv(hidden)", "gcn_conv(wide)")
    yield "rename a parameter of the model", renamed("hidden: int", 0, "wide") == want
    want = MODEL.replace("x: f32[N, I]) -> f32[N, out]", "x: f32[Rows, I]) -> f32[Rows, out]")
    yield "rename a dimension", renamed("N, I]", 0, "Rows") == want
    yield "renaming in branches that are not taken", renamed("lin = linear", 0, "l2").count("l2") == 3
    for mark, plus, new, why in [("h = relu", 0, "conv", "already"), ("h = relu", 0, "relu", "already"),
                                 ("h = relu", 0, "for", "cannot be a name"), ("h = relu", 0, "1x", "cannot be a name"),
                                 ("g.paper.x", 8, "z", "data"), ("dropout", 0, "drop", "library"),
                                 ("= relu", 2, "r", "library"), ("\n\ngraph", 1, "r", "no name")]:
        yield f"{mark!r} is not renamed to {new!r}", why in renamed(mark, plus, new), renamed(mark, plus, new)

    # ---- layout and symbols
    ugly = MODEL.replace("  conv = gcn_conv(hidden)", "    conv=gcn_conv( hidden )")
    s.change(uri, {"text": ugly})
    edits = s.request("textDocument/formatting", textDocument={"uri": uri}, options={"tabSize": 2, "insertSpaces": True})
    laid = subprocess.run([gnnc, "fmt"], input=ugly, capture_output=True, text=True, check=True).stdout
    yield "formatting is gnnc fmt", apply(ugly, edits) == laid and len(edits[0]["newText"]) < 60, edits
    s.change(uri, {"text": laid})
    yield "nothing to format", s.request("textDocument/formatting", textDocument={"uri": uri}, options={}) == []
    s.change(uri, {"text": MODEL})
    names = [(x["name"], [c["name"] for c in x.get("children", [])])
             for x in s.request("textDocument/documentSymbol", textDocument={"uri": uri})]
    yield "symbols", names == [("Citation", ["paper", "x", "y", "split", "cites"]), ("twice", []), ("mine", []),
                               ("GCN", []), ("GCN", [])], names

    # ---- diagnostics as one types
    bad = s.change(uri, {"range": {"start": place(MODEL, "conv(g.cites"), "end": place(MODEL, "conv(g.cites", 4)}, "text": "conw"})
    at = bad[0]["range"]["start"] if bad else None
    yield "a mistake is told where it is", at == place(MODEL, "conv(g.cites") and bad[0]["code"] == "E0201", bad
    back = s.change(uri, {"range": {"start": at, "end": {**at, "character": at["character"] + 4}}, "text": "conv"})
    yield "and goes when it is mended", back == [], back
    text = MODEL.replace("# Twice a value.", "# 🙂🙂 é").replace("return x * by }", 'return x * by }  # 🙂')
    text = text.replace("  last = mine(C)", '  last = mine(C)\n  assert(true, "🙂é")  x = nothing_here')
    bad = s.change(uri, {"text": text})
    yield "columns are UTF-16 units", any(d["range"]["start"] == place(text, "nothing_here") or
                                          d["range"]["start"] == place(text, "x = nothing_here") for d in bad), bad
    broken = MODEL.replace("return twice(last(h), by = 3)", "return twice(last(h), by = 3")
    yield "a syntax error", any(d["severity"] == 1 for d in s.change(uri, {"text": broken}))
    yield "what is sound is known beside it", "gcn_conv(out: int" in hover(s, uri, broken, "gcn_conv")
    yield "no layout of a broken text", "syntax" in s.request("textDocument/formatting", textDocument={"uri": uri}, options={})["message"]

    # ---- files that import each other, as they are in the editor
    with tempfile.TemporaryDirectory() as work:
        lib, main = os.path.join(work, "lib.gnn"), os.path.join(work, "main.gnn")
        with open(lib, "w", encoding="utf-8") as f:
            f.write("fn scale(x) { return x * 2 }\n")
        text = 'import "lib.gnn"\n' + MODEL.replace("twice(last(h), by = 3)", "scale(last(h))")
        u_lib, u_main = "file://" + lib, "file://" + main
        yield "an import from the disk", s.open(u_main, text) == []
        r = s.at("definition", u_main, text, "scale(last")
        yield "a definition in another file", r and r["uri"] == u_lib
        r = s.at("rename", u_main, text, "scale(last", newName="doubled")
        yield "a rename across files", set(r.get("changes", {})) == {u_lib, u_main}, r
        with open(lib, "w", encoding="utf-8") as f:
            f.write("# It is below now.\n\nfn scale(x) { return x * 2 }\n")
        r = s.at("rename", u_main, text, "scale(last", newName="doubled")
        yield "of a file as it is on the disk now", [e["range"]["start"]["line"] for e in r["changes"][u_lib]] == [2], r
        s.open(u_lib, "fn other(x) { return x }\n")
        bad = s.told[u_main]  # it was told of first
        yield "an open file stands for the one on the disk", any("scale" in d["message"] for d in bad), bad
        s.notify("textDocument/didClose", textDocument={"uri": u_lib})
        yield "until it is closed", s.diagnostics(u_main) == []
        s.change(u_main, {"text": 'import "none.gnn"\n' + MODEL})
        yield "a file that is not there", any("none.gnn" in d["message"] for d in s.told[u_main])
    yield "it ends as asked", s.end() == (0, "")


def watching(gnnc):
    """A file that changes on the disk, by git or another program, changes what is said of those that import it."""
    s = Server(gnnc)
    s.start(workspace={"didChangeWatchedFiles": {"dynamicRegistration": True}})
    asked = s.receive()
    told = asked.get("params", {}).get("registrations", [{}])[0]
    yield "it asks for files that change", asked["method"] == "client/registerCapability" and "id" in asked and \
        told["method"] == "workspace/didChangeWatchedFiles" and told["registerOptions"]["watchers"] == [{"globPattern": "**/*.gnn"}], asked
    s.send(id=asked["id"], result=None)
    with tempfile.TemporaryDirectory() as work:
        lib, uri = os.path.join(work, "lib.gnn"), "file://" + os.path.join(work, "main.gnn")

        def write(text):
            with open(lib, "w", encoding="utf-8") as f:
                f.write(text)

        write("fn scale(x) { return x * 2 }\n")
        yield "sound at first", s.open(uri, 'import "lib.gnn"\n' + MODEL.replace("twice(last(h), by = 3)", "scale(last(h))")) == []
        write("fn other(x) { return x * 2 }\n")
        s.notify("workspace/didChangeWatchedFiles", changes=[{"uri": "file://" + lib, "type": 2}])
        bad = s.diagnostics(uri)
        yield "what changed on the disk is told", any("scale" in d["message"] for d in bad), bad
        write("fn scale(x) { return x * 3 }\n")
        s.notify("textDocument/didSave", textDocument={"uri": uri})
        yield "a text that is saved is looked at anew", s.diagnostics(uri) == []
    yield "it ends as asked", s.end() == (0, "")
    for capability in ({}, {"workspace": 3}, {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": False}}}):
        s = Server(gnnc)
        s.start(**capability)
        yield f"it asks nothing of an editor that cannot: {capability}", s.request("no/such").get("code") == -32601
        s.end()


def hostile(gnnc):
    """Nothing of it may end the server, or be answered by silence."""
    s = Server(gnnc)
    yield "not before initialize", s.request("textDocument/hover", textDocument={"uri": "x"}).get("code") == -32002
    s.notify("textDocument/didOpen", textDocument={"uri": "x", "text": "y"})
    s.start()
    yield "once", s.request("initialize").get("code") == -32600
    for body in (b"{", b"[]", b"null", b"{}", b'"x"', b"[" * 100000, b'{"jsonrpc": "2.0", "id": {}, "method": "shutdown"}',
                 b'{"method": "\\ud800", "id": 1}', b"\xff\xfe", b"", b'{"id": 1, "id": 2, "method": "x"}'):
        s.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        yield f"refused: {body[:40]!r}", "error" in s.receive()
    yield "no such method", s.request("no/such").get("code") == -32601
    for method in ("hover", "definition", "references", "rename", "completion", "formatting", "documentSymbol", "prepareRename"):
        for params in ({}, {"textDocument": 3}, {"textDocument": {"uri": "none"}, "position": {"line": 0, "character": 0}, "newName": "x"}):
            yield f"{method} of {params}", "code" in s.request("textDocument/" + method, **params)
    uri = "untitled:1"
    s.open(uri, MODEL)
    for line, character in ((10**12, 0), (0, 10**12), (-1, 0), (0, 1.5), ("a", 0), (3, None)):
        for method in ("hover", "completion", "definition", "prepareRename"):
            s.request("textDocument/" + method, textDocument={"uri": uri}, position={"line": line, "character": character})
    s.change(uri, {"range": {"start": {"line": 99999, "character": 7}, "end": {"line": 0, "character": 0}}, "text": "import"},
             {"text": 3}, {"range": {}, "text": "x"}, {"range": 1, "text": "y"})
    yield "it is still there", s.change(uri, {"text": MODEL}) == []
    # The second waits when the first is answered, and so does its cancellation.
    body = [{"id": "a", "method": "textDocument/hover", "params": {"textDocument": {"uri": uri}, "position": place(MODEL, "relu")}},
            {"id": "b", "method": "textDocument/hover", "params": {"textDocument": {"uri": uri}, "position": place(MODEL, "relu")}},
            {"method": "$/cancelRequest", "params": {"id": "b"}}, {"method": "$/cancelRequest", "params": {"id": [1]}},
            {"method": "$/cancelRequest"}]
    texts = [json.dumps({"jsonrpc": "2.0", **b}).encode() for b in body]
    s.raw(b"".join(b"Content-Length: %d\r\n\r\n" % len(t) + t for t in texts))
    yield "answered", "result" in s.receive()
    yield "cancelled", s.receive().get("error", {}).get("code") == -32800
    rng = random.Random(22)
    for i in range(60):
        a, b = sorted(rng.randrange(len(MODEL)) for _ in range(2))
        text = MODEL[:a] + rng.choice(["", "{", ")", "g.", "\"", "\0"[:0], "é", "train X {", "("]) + MODEL[min(b, a + 40):]
        s.notify("textDocument/didChange", textDocument={"uri": uri}, contentChanges=[{"text": text}])
        at = {"line": rng.randrange(30), "character": rng.randrange(60)}
        for method in ("hover", "completion", "definition", "rename", "references", "documentSymbol", "formatting"):
            s.request("textDocument/" + method, textDocument={"uri": uri}, position=at, newName="q")
    yield "cut texts", s.p.poll() is None
    s.request("shutdown")
    yield "not after shutdown", s.request("textDocument/hover", textDocument={"uri": uri}).get("code") == -32600
    s.notify("exit")
    yield "status 0 after shutdown", s.p.wait(20) == 0
    for data in (b"Content-Length: 99999999999999999999\r\n\r\n", b"Content-Length: 4000000000\r\n\r\nx", b"x" * 20000, b"Nothing: 3\r\n\r\nabc",
                 b"Content-Length: -1\r\n\r\n", b"Content-Length: 100\r\n\r\nshort", b"\r\n\r\n"):
        r = subprocess.run([gnnc, "lsp"], input=data, capture_output=True, timeout=60)
        yield f"a broken stream ends it: {data[:30]!r}", r.returncode == 1 and not r.stdout
    # Messages that wait are looked at once each: 16,000 take a moment, not minutes.
    flood = [{"id": 0, "method": "initialize", "params": {}}] + 16000 * [{"method": "$/setTrace", "params": {}}]
    texts = [json.dumps({"jsonrpc": "2.0", **b}).encode() for b in flood + [{"id": 1, "method": "shutdown"}, {"method": "exit"}]]
    r = subprocess.run([gnnc, "lsp"], input=b"".join(b"Content-Length: %d\r\n\r\n" % len(t) + t for t in texts),
                       capture_output=True, timeout=60)
    yield "a flood of messages", r.returncode == 0 and r.stdout.count(b"Content-Length") == 2
    r = subprocess.run([gnnc, "lsp", "file.gnn"], capture_output=True, timeout=60)
    yield "it takes no file", r.returncode == 2


def shipped(gnnc, top):
    """Each file is known; each of its names leads somewhere, or is a word of the language."""
    s = Server(gnnc)
    s.start()
    for path in sorted(glob.glob(os.path.join(top, "models/*.gnn")) + glob.glob(os.path.join(top, "models/layers/*.gnn"))):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        uri = "file://" + path
        yield f"{os.path.relpath(path, top)} is sound", [d for d in s.open(uri, text) if d["severity"] == 1] == []
        s.notify("textDocument/didClose", textDocument={"uri": uri})
    s.end()


def graph(gnnc, text):
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "model.gnn")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        r = subprocess.run([gnnc, path, "--passes=", "--emit=ir"], capture_output=True, text=True)
    assert not r.returncode, r.stderr
    text = re.sub(r"  !.*|  source .*", "", re.split(r"^sources {", r.stdout, flags=re.M)[0])
    number = {}  # of each word by where it stands first: what things are called plays no part

    def numbered(part):
        values = {}  # those of a function are its own
        return re.sub(r"(%?)([A-Za-z_][\w.']*)", lambda m: m.group(1) + str((values if m.group(1) else number).setdefault(
            m.group(2), len(values if m.group(1) else number))), part)

    return [numbered(part) for part in re.split(r"^  func ", text, flags=re.M)]


def renames(gnnc, top):
    """Whatever a model binds may be called otherwise: the graph is the same but for that name."""
    s = Server(gnnc)
    s.start()

    def wrong(at):
        r = s.request("textDocument/rename", textDocument={"uri": uri}, position=place(text[:at] + "\0" + text[at:], "\0"), newName="zzq")
        if "changes" not in r or set(r["changes"]) != {uri}:
            return r
        return pool.submit(lambda: graph(gnnc, apply(text, r["changes"][uri])) != same and "another graph")

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        tried = []
        for path in sorted(glob.glob(os.path.join(top, "models/*.gnn"))):
            with open(path, encoding="utf-8") as f:
                text = f.read()
            uri, same, seen = "file://" + path, graph(gnnc, text), set()
            s.open(uri, text)
            for m in re.finditer(r"^ +(?:param |state |for )?([A-Za-z]\w*)(?: =|:| in )|(?:\(|; |, )([A-Za-z]\w*): (?:int|float|bool|[A-Z])", text, re.M):
                name, at = m.group(1) or m.group(2), m.start(1) if m.group(1) else m.start(2)
                inside = text.rfind("\nmodel ", 0, at) > max(text.rfind("\ntrain ", 0, at), text.rfind("\ngraph ", 0, at), text.rfind("\nlayer ", 0, at), text.rfind("\nfn ", 0, at))
                if inside and name not in seen and name != "dim":  # a word of the IR's text
                    seen.add(name)
                    tried.append((os.path.basename(path), name, wrong(at)))
            for i, (file, name, why) in enumerate(tried):
                if isinstance(why, concurrent.futures.Future):
                    tried[i] = (file, name, why.result())
            s.notify("textDocument/didClose", textDocument={"uri": uri})
    s.end()
    bad = [t for t in tried if t[2]]
    yield f"{len(tried)} renames", not bad and len(tried) > 150, bad[:5]


def speed(gnnc):
    """A text of 200 lines is compiled anew for every key; told apart from the rest, as machines differ."""
    s = Server(gnnc)
    s.start()
    text = MODEL + "".join(f"\nfn f{i}(x) {{\n  y = relu(x) + {i}\n  return y * 2\n}}\n" for i in range(34))
    uri, took = "untitled:2", []
    s.open(uri, text)
    for i in range(21):
        start = time.perf_counter()
        s.change(uri, {"range": {"start": place(text, "Twice a"), "end": place(text, "Twice a", 5)}, "text": "Twice" if i % 2 else "twice"})
        took.append(time.perf_counter() - start)
    took.sort()
    print(f"{text.count(chr(10))} lines: diagnostics in {1e3 * took[10]:.1f} ms (median of 21)")
    yield "an answer in time", took[10] < 0.5
    s.end()


def main(gnnc, top):
    gnnc, top = os.path.abspath(gnnc), os.path.abspath(top)
    passed, failed = 0, 0
    for group in (answers(gnnc, top), watching(gnnc), hostile(gnnc), shipped(gnnc, top), renames(gnnc, top), speed(gnnc)):
        for what, ok, *more in group:
            passed, failed = passed + bool(ok), failed + (not ok)
            if not ok:
                print(f"{what}", *more)
    print(f"{passed} passed, {failed} failed")
    return failed != 0 or passed < 150


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
