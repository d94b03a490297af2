#!/usr/bin/env python3
"""The service of docs/embedding: right answers, also while models are replaced, and refusals.

    service.py GNNC TOP CORA [REQUESTS RELOADS]

It is built by the lines of its page.  What it takes is told; on a machine that does other things as well it means
little, so nothing is asked of it."""
import json
import os
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request

from subgraphs import Data

GNNC, TOP, CORA = map(os.path.abspath, sys.argv[1:4])
REQUESTS, RELOADS = map(int, sys.argv[4:] or (2000, 30))
CLONE_ONCE = """
#include <gnnc.h>
static gnnc_status clone_once(gnnc_session **out, const gnnc_session *s) {
    static int n;
    *out = 0;
    return n++ < 2 ? gnnc_session_clone(out, s) : GNNC_E_NOMEM; /* two for the one worker */
}
#define gnnc_session_clone clone_once
"""
SLOW = """
#include <gnnc.h>
#include <stdio.h>
#include <unistd.h>
static gnnc_status slow(gnnc_session *s, int64_t n, const int64_t *id, float *out) {
    fprintf(stderr, "%d\\n", (int)n);
    usleep(1000000);
    return gnnc_session_predict(s, n, id, out);
}
#define gnnc_session_predict slow
"""


def run(*command, **kw):
    r = subprocess.run(command, capture_output=True, text=True, check=False, **kw)
    assert r.returncode == 0, (command, r.stdout[-2000:], r.stderr[-2000:])
    return r.stdout


def build():
    missing = [h for h in ("microhttpd.h", "cjson/cJSON.h")
               if subprocess.run(["cc", "-E", "-include", h, "-x", "c", "/dev/null"], capture_output=True, check=False).returncode]
    if missing:
        assert not os.environ.get("GNNC_CI"), missing
        print("skipped: there is no", " and no ".join(missing))
        sys.exit(0)
    run(GNNC, TOP + "/models/gcn.gnn", "--target=cpu", "-o", "train")
    run(GNNC, TOP + "/models/gcn.gnn", "--target=cpu", "--emit=infer", "-o", "gcn")
    for seed in ("0", "1"):
        run("./train", "--data", CORA, "--epochs", "5", "--seed", seed, "--log=none", "--checkpoint", "none", "--out", seed + ".st")
    with open(TOP + "/docs/embedding/README.md", encoding="utf-8") as f:
        lines = re.findall(r"^cc .*/service/.*$", f.read(), re.M)
    assert len(lines) == 2, lines
    for line in lines:
        run("sh", "-c", line + " -Wall -Wextra -Wpedantic -Werror", env={**os.environ, "TOP": TOP})
    for name, text in (("once", CLONE_ONCE), ("slow", SLOW)):
        with open(name + ".h", "w", encoding="utf-8") as f:
            f.write(text)
        run("sh", "-c", f"{lines[0]}_{name} -include {name}.h", env={**os.environ, "TOP": TOP})


def ask(port, path, body):
    """(status, answer)"""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", body and body.encode(), timeout=60) as r:
            return r.status, json.load(r)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def refusals(port):
    for path, body, status, why in (
            ("/predict", '{"ids": [0, 2708]}', 400, "numbers of rows"), ("/predict", '{"ids": [-1]}', 400, "numbers of rows"),
            ("/predict", '{"ids": [1.5]}', 400, "numbers of rows"), ("/predict", '{"ids": []}', 400, "numbers of rows"),
            ("/predict", '{"ids": [1, "2"]}', 400, "numbers of rows"), ("/predict", '{"ids"', 400, "numbers of rows"),
            ("/predict", json.dumps({"ids": [0] * 4097}), 400, "numbers of rows"),
            ("/predict", " " * (2 << 20), 413, "too large"), ("/reload", '{"weights": "none.st"}', 400, "none.st"),
            ("/reload", '{"weights": "train"}', 400, "train"), ("/reload", "{}", 400, "wanted"), ("/predict", None, 404, "POST"),
            ("/other", "{}", 404, "POST")):
        got, said = ask(port, path, body)
        assert got == status and why in said["error"], (path, body and body[:40], got, said)
    assert ask(port, "/predict", '{"ids": [5]}')[1]["model"] == 1  # a model that could not be opened replaced none


def subgraphs(port):
    """A node's neighbourhood, sent as JSON, has the node's scores; what is wrong with one is told."""
    data, row = Data(CORA), 2707
    nodes, edges = data.around("paper", [row], 2)
    near, (_, _, sources, dests, _) = nodes["paper"], data.edges["cites"]
    _, width, ptr, col, val = data.nodes["paper"][1]["x"]
    x = []
    for v in near:
        entries = dict(zip(col[ptr[v]:ptr[v + 1]], val[ptr[v]:ptr[v + 1]]))
        x.append([entries.get(k, 0) for k in range(width)])
    degree = [1 + sum(way[0] == "cites" and dests[way[1]] == v for way in set(data.at[("paper", v)])) for v in near]
    def sent(**other):
        papers = {"count": len(near), "x": x, "whole.degree.cites_sl": degree}
        at = {v: i for i, v in enumerate(near)}
        cites = {"src": ["paper", *(at[sources[e]] for e in edges["cites"])], "dst": ["paper", *(at[dests[e]] for e in edges["cites"])]}
        return json.dumps({"nodes": {"paper": papers}, "edges": {"cites": cites}, "rows": [near.index(row)], **other})
    (want,), (got,) = (ask(port, *what)[1]["scores"] for what in (("/predict", json.dumps({"ids": [row]})), ("/subgraph", sent())))
    assert len(got) == 7 and max(abs(a - b) for a, b in zip(got, want)) <= 1e-5 * max(map(abs, want)), (got, want)
    papers = lambda **columns: {"nodes": {"paper": {"count": 1, **columns}}, "edges": {}, "rows": [0]}
    for other, why in ((papers(), "no edge type 'cites'"), (papers(x=[[1, "2"]]), "no rows of numbers: 'x'"), ({"nodes": [1]}, "no object"),
                       ({"nodes": {"paper": 3}}, "no 'count'"), ({"edges": {"cites": {"src": []}}}, "no 'src'"), ({"rows": []}, "wanted"),
                       ({"edges": {"cites": {"src": ["paper", 9999], "dst": ["paper", 0]}}}, "cites"), ({"rows": [9999]}, "row 9999"),
                       (papers(x=[[1, 2], [3]]), "no rows of numbers: 'x'"), (papers(x=[1, 2, 3]), "x")):
        status, said = ask(port, "/subgraph", sent(**other))
        assert status == 400 and why in said["error"], (other, status, said)
    assert ask(port, "/subgraph", sent())[1]["scores"] == [got]


def no_memory_for_workers():
    """A model that is right, and that no worker could get: the one before stays, and the error is not the client's."""
    with subprocess.Popen(["./serve_once", "0", CORA, "0.st", "1"], stdout=subprocess.PIPE, text=True) as p:
        try:
            port = p.stdout.readline().split()[-1]
            got, said = ask(port, "/reload", '{"weights": "1.st"}')
            assert got == 500 and said["error"].startswith("out of memory"), (got, said)
            got, said = ask(port, "/reload", '{"weights": "none.st"}')
            assert got == 400 and "none.st" in said["error"], (got, said)
            assert ask(port, "/predict", '{"ids": [5]}')[1]["model"] == 1
        finally:
            p.terminate()
    assert p.returncode == 0, p.returncode


def requests_together():
    """What arrives while the one worker predicts is one prediction after it, and each request has its own rows of that."""
    with subprocess.Popen(["./serve_slow", "0", CORA, "0.st", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        try:
            port, said = p.stdout.readline().split()[-1], {}
            ids = [[5], [7, 9], [5], [2707, 0, 7], [9]]
            threads = [threading.Thread(target=lambda i=i: said.update({i: ask(port, "/predict", json.dumps({"ids": ids[i]}))})) for i in range(len(ids))]
            threads[0].start()
            predicted = [int(p.stderr.readline())]  # it is under way
            for t in threads[1:]:
                t.start()
            for t in threads:
                t.join()
        finally:
            p.terminate()
        predicted += map(int, p.stderr.read().split())
    assert predicted[0] == 1 and sum(predicted) == sum(map(len, ids)) and len(predicted) < len(ids), predicted
    rows = {}
    for i, (status, answer) in said.items():
        assert status == 200 and len(answer["scores"]) == len(ids[i]), (ids[i], status, answer)
        for row, scores in zip(ids[i], answer["scores"]):
            known = rows.setdefault(row, scores)
            assert max(abs(a - b) for a, b in zip(scores, known)) <= 1e-6 * max(map(abs, known)), (row, scores, known)
    assert len(said) == len(ids) and len({tuple(r) for r in rows.values()}) == len(rows) == 5, rows


def main():
    build()
    requests_together()
    no_memory_for_workers()
    with subprocess.Popen(["./serve", "0", CORA, "0.st"], stdout=subprocess.PIPE, text=True) as p:
        try:
            port = p.stdout.readline().split()[-1]
            refusals(port)
            subgraphs(port)
            said = run("./load", port, CORA, "0.st", "1.st", "8", str(REQUESTS), str(RELOADS))
            print(said, end="")
            reloads, meanwhile = map(int, re.search(r"^(\d+) reloads; (\d+) answers", said, re.M).groups())
            assert reloads == RELOADS and said.endswith("\n0 wrong\n"), said
            assert meanwhile >= reloads, said  # nobody waits until a model is loaded
            assert ask(port, "/predict", '{"ids": [5]}')[1]["model"] == 1 + RELOADS
        finally:
            p.terminate()
    assert p.returncode == 0, p.returncode
    print("ok service")


main()
