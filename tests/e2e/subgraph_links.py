"""Links over subgraphs that a request brings (gnnc_session_predict_subgraph_pairs, .._top_subgraph_pairs), for session_links.py and
session_pairs.py: what lies around some pairs, numbered anew and shuffled, gives the scores of the whole graph."""
import ctypes

import subgraphs
from graph import Host
from pairs import F32, I64, best, pairs
from subgraphs import E_MISSING, E_RANGE, E_STATE, OK, Brings, Data, Request, near, whole_columns


class Links(Brings):
    def score(self, src, dst, kind=None, columns=()):
        """Of arrays that are lent: each is given back once."""
        host, out = Host(True), (F32 * max(1, len(src)))()
        st = self.lib.gnnc_session_predict_subgraph_pairs(self.s, ctypes.byref(pairs(src, dst, columns, host, kind)), out)
        assert host.returned == host.lent, (host.returned, host.lent)
        return st, list(out)[:len(src)]

    def top(self, src, k, kind=None, columns=(), known=0):
        n = len(src)
        dst, score = (I64 * (n * k))(), (F32 * (n * k))()
        st = self.lib.gnnc_session_top_subgraph_pairs(self.s, ctypes.byref(pairs(src, None, columns, Host(False), kind)), I64(k), known, dst, score)
        return st, [list(zip(dst[i * k:(i + 1) * k], score[i * k:(i + 1) * k])) for i in range(n)]


def opened(session, model):
    session.width = 1
    b = Links(session, model)
    assert b.status == OK, b.error()
    b.give(session)
    return b


def around(session, data, ends, links, hops):
    """A request of what is around these pairs, and their ends in it."""
    seen = [data.around(ends[k], [link[k] for link in links], hops) for k in (0, 1)]
    nodes = {t: list(dict.fromkeys(v for n, _ in seen for v in n[t])) for t in data.nodes}
    edges = {t: list(dict.fromkeys(e for _, of in seen for e in of[t])) for t in data.edges}
    r = Request(data, nodes, edges, whole_columns(session, nodes, edges))
    return r, nodes, [[nodes[ends[k]].index(link[k]) for link in links] for k in (0, 1)]


def known_of(data, relation, r, nodes, link, kinds):
    """Where its source has a link to, of that kind, before its time, by rows of the request."""
    u, _, kind, _, *when = link
    src, dst, sources, dests, columns = data.edges[relation]
    of, both = kinds
    out = set()
    for e in r.ids[relation]:
        if when and "t" in columns and columns["t"][3][e][0] >= when[0]:
            continue
        ways = [(0, sources[e], dests[e])] + ([(1, dests[e], sources[e])] if both else [])
        is_of = columns[of][3][e][0] if of else 0
        out |= {nodes[dst].index(v) for way, a, v in ways if a == u and is_of * len(ways) + way == kind}
    return out


def check(name, session, model, path, relation, hops, groups, columns=None, kinds=(None, False), part=0.7):
    """Groups of (source, destination, kind, its score), each a request; columns(links) come with the pairs.  kinds: the column that
    tells them, and whether edges are scored both ways."""
    b, data = opened(session, model), Data(path)
    ends = data.edges[relation][:2]
    columns = columns or (lambda links: {})
    parts = []
    for links in groups:
        r, nodes, (src, dst) = around(session, data, ends, links, hops)
        parts.append(sum(map(len, nodes.values())) / sum(n for n, _ in data.nodes.values()))
        assert r.fill(b.lib, b.s) == OK, (name, r.error)
        of = [link[2] for link in links]
        st, got = b.score(src, dst, of, columns(links))
        assert st == OK, (name, st, b.error())
        for link, x in zip(links, got):
            assert near([x], [link[3]]), (name, link, x)
        asked = {ends[k]: ([src, dst][k], [link[k] for link in links]) for k in (0, 1)}
        assert subgraphs.check_layers(name, session, b, asked) or not b.lib.gnnc_session_n_layers(b.s), name
        n, link = len(nodes[ends[1]]), links[0]
        st, all_of = b.score([src[0]] * n, list(range(n)), of[:1] * n, columns([link] * n))
        for known in (0, 1):
            st, row = b.top(src[:1], 4, of[:1], columns([link]), known)
            left = set(range(n)) - (set() if known else known_of(data, relation, r, nodes, link, kinds))
            assert st == OK and row[0] == best(dict(enumerate(all_of)), left, 4), (name, link, known, row)
    assert min(parts) < part, (name, parts)
    b.close()


def check_errors(session, model, path, relation, hops, link):
    lib, data = session.lib, Data(path)
    b = opened(session, model)
    ends = data.edges[relation][:2]
    assert b.score([0], [0])[0] == E_STATE and "gnnc_session_subgraph gives one" in b.error(), b.error()
    r, nodes, (src, dst) = around(session, data, ends, [link], hops)
    assert r.fill(lib, b.s) == OK and b.score(src, dst)[0] == OK, b.error()
    n = len(nodes[ends[1]])
    assert b.score(src, [n])[0] == E_RANGE and b.error() == "destination %d: the data have 0 to %d" % (n, n - 1), b.error()
    assert b.score([-1], dst)[0] == E_RANGE and b.top([10**9], 2)[0] == E_RANGE
    assert b.score(src, dst, columns={"w": ([1.0], "<f4")})[0] == -9 and "is no column" in b.error(), b.error()
    out = (F32 * 4)()
    one = (I64 * 1)(0)
    assert lib.gnnc_session_predict_subgraph(b.s, I64(1), one, out) == E_STATE and "scores links" in b.error(), b.error()
    asked = pairs([0], [0], {}, Host(False))
    assert lib.gnnc_session_predict_pairs(b.s, ctypes.byref(asked), out) == E_STATE and "predict_subgraph_pairs" in b.error(), b.error()
    assert lib.gnnc_session_predict_subgraph_pairs(session.s, ctypes.byref(asked), out) == E_STATE
    null = ctypes.c_void_p()
    assert lib.gnnc_session_predict_subgraph_pairs(null, null, null) == lib.gnnc_session_top_subgraph_pairs(null, null, I64(1), 0, null, null) == -9
    name = next(w[1] for w in r.whole)
    r.skip = (name,)
    assert r.fill(lib, b.s) == OK and b.score(src, dst)[0] == E_MISSING and "has no column '%s'" % name in b.error(), b.error()
    r.skip = ()
    assert r.fill(lib, b.s) == OK and b.score(src, dst)[0] == OK, b.error()  # it goes on
    empty = Request(data, {t: [] for t in data.nodes}, {t: [] for t in data.edges}, whole_columns(session, {t: [] for t in data.nodes}, {t: [] for t in data.edges}))
    assert empty.fill(lib, b.s) == OK and b.score([], [])[0] == OK and b.score([0], [0])[0] == E_RANGE, b.error()
    b.close()


def check_memory(session, model, path, relation, hops, groups, Memory, columns=None):
    """No request allocates once there was one of its size; and any allocation may fail."""
    data = Data(path)
    ends = data.edges[relation][:2]
    columns = columns or (lambda links: {})
    made = [(around(session, data, ends, links, hops), links) for links in groups]

    def serve(b, memory):
        for (r, _, (src, dst)), links in made:
            kinds = [link[2] for link in links]
            st = r.fill(b.lib, b.s) or b.score(src, dst, kinds, columns(links))[0] or b.top(src, 2, kinds, columns(links))[0]
            assert st == OK or (st == subgraphs.E_NOMEM and memory.refuse > 0), (st, b.error(), r.error)

    memory = Memory()
    b = Links(session, model, memory)
    assert b.status == OK, b.error()
    b.give(session)
    for _ in range(2):
        serve(b, memory)
    n = memory.n
    serve(b, memory)
    assert memory.n == n, (memory.n, n)
    b.close()
    assert memory.live == 0, memory.live
    for refuse in range(1, n + 2):
        memory = Memory(refuse)
        b = Links(session, model, memory)
        assert b.status in (OK, subgraphs.E_NOMEM), (refuse, b.status, b.error())
        if b.status == OK:
            b.give(session)
            serve(b, memory)
            memory.refuse = -1
            serve(b, memory)  # it goes on
        if b.s:
            b.close()
        assert memory.live == 0, (refuse, memory.live)
