#!/usr/bin/env python3
"""No request of a session takes a lock or, after the first ones of its size, asks libc for memory: of rows, layers, links, pairs by
time, and all of these over subgraphs.  Calls of libc that come out of the model's library are counted in front of libc.

    locks.py GNNC TOP
"""
import ctypes
import os
import re
import subprocess
import sys

import batches
import session_links
import session_pairs
import subgraph_links
import subgraphs
from sessions import MIXED, OK, Library, Session, mixed, run

COUNT = r"""#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
long n_locks, n_blocks;
uintptr_t least, most; /* of the library's code */
static int own(void *from) { return (uintptr_t)from - least < most - least; }
#define LOCK(name, type)                                        \
    int name(type *x) {                                         \
        static int (*next)(type *);                             \
        if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name);   \
        n_locks += own(__builtin_return_address(0));            \
        return next(x);                                         \
    }
LOCK(pthread_mutex_lock, pthread_mutex_t)
LOCK(pthread_mutex_trylock, pthread_mutex_t)
LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
#define GIVE (n_blocks += own(__builtin_return_address(0)))
void *malloc(size_t n) { return GIVE, __libc_malloc(n); }
void *calloc(size_t n, size_t k) { return GIVE, __libc_calloc(n, k); }
void *realloc(void *p, size_t n) { return GIVE, __libc_realloc(p, n); }
void *aligned_alloc(size_t a, size_t n) { return GIVE, __libc_memalign(a, n); }
"""


class Counted:
    """What a library asks of libc."""
    def __init__(self, library):
        path = os.path.realpath(library.lib._name)
        with open("/proc/self/maps", encoding="utf-8") as f:
            code = [line.split()[0].split("-") for line in f if re.search(r" r-xp .*%s$" % re.escape(path), line.rstrip())]
        (least, most), = code
        for name, value in (("least", least), ("most", most)):
            ctypes.c_size_t.in_dll(ctypes.CDLL(None), name).value = int(value, 16)
        self.n = [ctypes.c_long.in_dll(ctypes.CDLL(None), name) for name in ("n_locks", "n_blocks")]

    def of(self, call):
        before = [n.value for n in self.n]
        st = call()
        assert st == OK, st
        return [n.value - b for n, b in zip(self.n, before)]

    def none(self, what, call):
        first = self.of(call)
        self.of(call)
        again = self.of(call)
        assert first[0] == 0 and again == [0, 0], (what, first, again)
        return first[1]


def opened(library, weights, data):
    m, st = library.model(weights)
    assert st == OK
    counted, g, s = Counted(library), library.graph(data), ctypes.c_void_p()
    assert library.lib.gnnc_session_create(ctypes.byref(s)) == OK
    assert min(counted.of(lambda: library.lib.gnnc_session_open(s, m, g))) > 0, "nothing is counted"
    library.lib.gnnc_session_destroy(s)
    return counted, m, g


def of_rows():
    library = Library("mixed_rows")
    counted, m, g = opened(library, "mixed.weights", "mixed.data")
    s = Session(library, m, g)
    assert s.status == OK, s.error()
    some = list(range(s.rows))[::-1]
    blocks = [counted.none("rows", lambda: s.predict(some)[0]), counted.none("all rows", lambda: s.all(s.rows)[0])]
    blocks.append(counted.none("a layer", lambda: s.embed("h", some)[0]))
    b = subgraphs.Brings(s, m)
    b.give(s)
    r, at = subgraphs.request(s, subgraphs.Data("mixed.data"), "v", [3, 40], 4)
    blocks.append(counted.none("a subgraph", lambda: r.fill(b.lib, b.s) or b.predict(at)[0] or subgraphs.layer_rows(b, "embed_subgraph", b.s, b"h", at)[0]))
    assert max(blocks) > 0, blocks
    library = Library("timed_rows")
    counted, m, g = opened(library, "timed.weights", "shop")
    s = Session(library, m, g)
    assert s.status == OK, s.error()
    counted.none("rows by time", lambda: s.predict(list(range(s.rows)))[0])


def of_links():
    library = session_links.Links("dot_rows")
    counted, m, g = opened(library, "dot.weights", "pairs")
    s, st = library.open("dot.weights", g)
    assert st == OK, library.error(s)
    asked = [(u, i) for u in range(session_links.USERS) for i in range(40)]
    counted.none("links", lambda: library.score(s, asked)[0])
    counted.none("best links", lambda: library.top(s, [1, 2, 3], 5)[0])
    over_a_subgraph(counted, library, s, m, "pairs", "buys", 2, [(3, 4, 0)], ())


def by_time():
    library = session_pairs.Scores("events_rows")
    counted, m, g = opened(library, "events.weights", "mail")
    s, st = library.open("events.weights", g)
    assert st == OK, library.error(s)
    when = {"t": ([3000.0] * 3, "<f8")}
    counted.none("links by time", lambda: library.score_with(s, [1, 2, 3], [4, 5, 6], when)[0])
    counted.none("best links by time", lambda: library.top_with(s, [1, 2, 3], when, 4)[0])
    over_a_subgraph(counted, library, s, m, "mail", "event", 1, [(3, 4, 0)], {"t": ([3000.0], "<f8")})


def over_a_subgraph(counted, library, s, m, path, relation, hops, links, columns):
    over = object.__new__(Session)
    over.lib, over.s = library.lib, s
    b, data = subgraph_links.opened(over, m), subgraphs.Data(path)
    r, _, (src, dst) = subgraph_links.around(over, data, data.edges[relation][:2], links, hops)
    counted.none("links over a subgraph", lambda: r.fill(b.lib, b.s) or b.score(src, dst, [0], columns)[0] or b.top(src, 2, [0], columns)[0])


def made(gnnc, name, text, data):
    with open(name + ".gnn", "w", encoding="utf-8") as f:
        f.write(text)
    run(gnnc, name + ".gnn", "--target=cpu", "-O0", "-o", name)  # which makes weights
    run(gnnc, name + ".gnn", "--target=cpu", "--emit=infer", "-o", name + "_rows", *(["--embed=h"] if name == "mixed" else []))
    run("./" + name, "--data", data, "--epochs", "1", "--out", name + ".weights", "--log=none", "--checkpoint=none")


def main():
    gnnc, top = sys.argv[1:3]
    if len(sys.argv) > 3:
        of_rows()
        of_links()
        by_time()
        print("ok no locks")
        return
    layers = lambda text: text.replace('"layers/', '"%s/models/layers/' % top)
    mixed("mixed.data")
    batches.data("shop")
    session_links.shop("pairs", 40, False)
    session_pairs.mail("mail")
    with open(top + "/models/events.gnn", encoding="utf-8") as f:
        events = f.read().replace(", negatives = g.no_event", "").replace("  edge no_event", "  # edge no_event")
    for name, text, data in (("mixed", MIXED, "mixed.data"), ("timed", batches.TIMED, "shop"),
                             ("dot", session_links.shop_model(*session_links.SCORES["dot"]), "pairs"), ("events", events, "mail")):
        made(gnnc, name, layers(text), data)
    with open("count.c", "w", encoding="utf-8") as f:
        f.write(COUNT)
    run("cc", "-O1", "-shared", "-fPIC", "count.c", "-o", "libcount.so", "-ldl")
    r = subprocess.run([sys.executable, __file__, gnnc, top, "count"], env={**os.environ, "LD_PRELOAD": os.path.abspath("libcount.so")}, check=False)
    sys.exit(r.returncode)


if __name__ == "__main__":
    main()
