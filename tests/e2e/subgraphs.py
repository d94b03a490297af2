"""Predictions of subgraphs that a request brings (gnnc_session_open_model), for sessions.py: the k-hop neighbourhood of some
rows, numbered anew and shuffled, gives what a session over the whole graph gives, without a graph in the process."""
import ctypes
import json
import random
import threading

from graph import KINDS, Host, npy

OK, E_NOMEM, E_SHAPE, E_RANGE, E_DTYPE, E_VALUE, E_MISSING, E_ARG, E_STATE = 0, -1, -2, -3, -6, -7, -8, -9, -10
NODES, EDGES, GRAPHS = 0, 1, 2


class WholeInfo(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("table", ctypes.c_char_p),
                ("kind", ctypes.c_int32), ("rank", ctypes.c_int32), ("shape", ctypes.c_int64 * 8)]

    def width(self):
        n = 1
        for i in range(self.rank):
            n *= self.shape[i]
        return n


def wholes(lib, s):
    out = []
    for i in range(lib.gnnc_session_n_whole_graph_values(s)):
        info = WholeInfo(ctypes.sizeof(WholeInfo))
        assert lib.gnnc_session_whole_graph_value(s, i, ctypes.byref(info)) == OK
        out.append(info)
    assert lib.gnnc_session_whole_graph_value(s, len(out), ctypes.byref(WholeInfo(ctypes.sizeof(WholeInfo)))) == E_RANGE
    return out


def read_whole(lib, s, i, n, ids, width):
    flat = (ctypes.c_float * max(1, n * width))()
    at = (ctypes.c_int64 * max(1, n))(*ids) if ids is not None else None
    st = lib.gnnc_session_read_whole_graph_value(s, i, ctypes.c_int64(n), at, flat)
    assert st == OK, lib.gnnc_session_error(s)
    return list(flat[:n * width])


class Data:
    """A data directory: rows of columns, but for what only training reads."""
    def __init__(self, path):
        with open(path + "/schema.json", encoding="utf-8") as f:
            schema = json.load(f)
        self.nodes = {name: (t["count"], self.columns(path, t)) for name, t in schema["nodes"].items()}
        self.graphs = {name: (t["count"], self.columns(path, t)) for name, t in schema.get("graphs", {}).items()}
        self.ptr = {name: npy("%s/%s" % (path, t["graph_ptr"]))[0] for name, t in schema["nodes"].items() if "graph" in t}
        self.edges = {}
        for name, t in schema["edges"].items():
            ends = npy("%s/%s" % (path, t["file"]))[0]
            n = len(ends) // 2
            self.edges[name] = (t["src"], t["dst"], ends[:n], ends[n:], self.columns(path, t))
        self.at = {}  # (node type, node): edges at it, either way, and what is at their other ends
        for name, (src, dst, sources, dests, _) in self.edges.items():
            for e, (u, v) in enumerate(zip(sources, dests)):
                self.at.setdefault((dst, v), []).append((name, e, (src, u)))
                self.at.setdefault((src, u), []).append((name, e, (dst, v)))

    def columns(self, path, t):
        out = {}
        for name, c in t.get("columns", {}).items():
            if c["kind"] in ("class", "split", "multilabel"):
                continue
            if c["kind"] == "csr":
                out[name] = ("csr", c["shape"][1], *(npy("%s/%s" % (path, c[k]))[0] for k in ("ptr", "col", "val")))
                continue
            flat, descr, shape = npy("%s/%s" % (path, c["file"]))
            width = len(flat) // max(1, shape[0])
            out[name] = (c["kind"], descr, shape[1:], [flat[i * width:(i + 1) * width] for i in range(shape[0])],
                         c.get("categories", -1), c.get("names"))
        return out

    def draws_all(self, kind, v, fanout, names):
        """Do all in-edges fit into the fan-outs?"""
        if not fanout:
            return True
        into = {name: [self.edges[name][2][e] for of, e, _ in self.at.get((kind, v), ())
                       if of == name and (self.edges[name][1], self.edges[name][3][e]) == (kind, v)] for name in names}
        return all(len(us) <= fanout[0] and all(self.draws_all(self.edges[name][0], u, fanout[1:], names) for u in us)
                   for name, us in into.items())

    def around(self, kind, targets, hops):
        """Nodes, [type][new] = old, in any order, and edges [name] = old ones."""
        seen, taken, front = {(kind, v) for v in targets}, set(), [(kind, v) for v in targets]
        for _ in range(hops):
            found = [way for v in front for way in self.at.get(v, ())]
            taken.update((name, e) for name, e, _ in found)
            front = list(dict.fromkeys(u for _, _, u in found if u not in seen))
            seen.update(front)
        nodes = {t: sorted(v for of, v in seen if of == t) for t in self.nodes}
        edges = {t: sorted(e for of, e in taken if of == t) for t in self.edges}
        r = random.Random(3)
        for some in (*nodes.values(), *edges.values()):
            r.shuffle(some)
        return nodes, edges

    def of_graphs(self, targets):
        """The same of whole graphs, whose nodes lie together."""
        r, nodes = random.Random(4), {}
        for name, ptr in self.ptr.items():
            nodes[name] = []
            for g in targets:
                nodes[name] += r.sample(range(ptr[g], ptr[g + 1]), ptr[g + 1] - ptr[g])
        edges = {}
        for name, (_, dst, _, dests, _) in self.edges.items():
            there = set(nodes[dst])
            edges[name] = [e for e, v in enumerate(dests) if v in there]
            r.shuffle(edges[name])
        return nodes, edges


class Request:
    """A subgraph of data, as a session is given it; `skip` columns, and `change`(table, column, values) others."""
    def __init__(self, data, nodes, edges, whole, skip=(), change=None, graphs=()):
        self.data, self.nodes, self.ids, self.whole, self.graphs = data, nodes, edges, whole, graphs
        self.names = None  # a column more
        self.skip, self.change, self.host = skip, change or (lambda table, column, values: values), Host(False)

    def fill(self, lib, s):
        g = ctypes.c_void_p()
        st = lib.gnnc_session_subgraph(s, ctypes.byref(g))
        if st:
            return st
        for name in self.data.graphs:
            st = st or lib.gnnc_graph_add_graphs(g, name.encode(), ctypes.c_int64(len(self.graphs)))
        for name, ids in self.nodes.items():
            st = st or lib.gnnc_graph_add_nodes(g, name.encode(), ctypes.c_int64(len(ids)))
            for of in self.data.graphs:
                at = [0]
                for i in self.graphs:
                    at.append(at[-1] + self.data.ptr[name][i + 1] - self.data.ptr[name][i])
                st = st or lib.gnnc_graph_divide(g, name.encode(), of.encode(), self.host.array(at, "<i8", (len(at),)))
        for name, (src, dst, sources, dests, _) in self.data.edges.items():
            at = {t: {v: i for i, v in enumerate(self.nodes[t])} for t in (src, dst)}
            ends = [[at[src][sources[e]] for e in self.ids[name]], [at[dst][dests[e]] for e in self.ids[name]]]
            ends = self.change(name, "ends", ends)
            if ends and name not in self.skip:
                one, two = (self.host.array(x, "<i4", (len(x),)) for x in ends)
                st = st or lib.gnnc_graph_add_edges(g, name.encode(), src.encode(), dst.encode(), one, two)
        for name, ids in self.nodes.items():
            st = st or self.columns(lib, g, name, self.data.nodes[name][1], ids)
            st = st or self.put(lib, g, name, "id", "id", "<i8", (), [[v] for v in ids], -1, None)
        for name, ids in self.ids.items():
            st = st or self.columns(lib, g, name, self.data.edges[name][4], ids)
        for name, (_, columns) in self.data.graphs.items():
            st = st or self.columns(lib, g, name, columns, self.graphs)
            st = st or self.put(lib, g, name, "id", "id", "<i8", (), [[i] for i in self.graphs], -1, None)
        if self.names:
            st = st or self.put(lib, g, *self.names)
        for table, name, shape, rows in self.whole:
            st = st or self.put(lib, g, table, name, "float", "<f4", shape, rows, -1, None)
        self.error = lib.gnnc_graph_error(g).decode()
        return st or lib.gnnc_graph_commit(g)

    def put(self, lib, g, table, name, kind, descr, shape, rows, n, names):
        if name in self.skip:
            return OK
        rows = self.change(table, name, rows)
        full = 1
        for d in shape:
            full *= d
        wide = rows and len(rows[0]) != full  # what `change` made of it
        shape = (len(rows), len(rows[0])) if wide else (len(rows), *shape)
        texts = names and (ctypes.c_char_p * len(names))(*[x.encode() for x in names])
        return lib.gnnc_graph_add_column(g, table.encode(), name.encode(), KINDS.index(kind),
                                         self.host.array([x for row in rows for x in row], descr, shape), ctypes.c_int64(n), texts)

    def columns(self, lib, g, table, columns, ids):
        for name, c in columns.items():
            if c[0] != "csr":
                kind, descr, shape, rows, n, names = c
                st = self.put(lib, g, table, name, kind, descr, tuple(shape), [rows[i] for i in ids], n if names else -1, names)
            else:
                _, width, ptr, col, val = c
                at = [0]
                for i in ids:
                    at.append(at[-1] + ptr[i + 1] - ptr[i])
                entries = [k for i in ids for k in range(ptr[i], ptr[i + 1])]
                st = OK if name in self.skip else lib.gnnc_graph_add_csr(
                    g, table.encode(), name.encode(), ctypes.c_int64(width), self.host.array(at, "<i8", (len(at),)),
                    self.host.array([col[k] for k in entries], "<i4", (len(entries),)),
                    self.host.array([val[k] for k in entries], "<f4", (len(entries),)))
            if st:
                return st
        return OK


class Brings:
    """A session of the model alone, and what another one over the graph knows of the whole."""
    def __init__(self, session, model, memory=None):
        lib = self.lib = session.lib
        self.s, self.width = ctypes.c_void_p(), session.width
        self.status = (lib.gnnc_session_create_with(ctypes.byref(self.s), *memory.arguments()) if memory
                       else lib.gnnc_session_create(ctypes.byref(self.s)))
        if self.status == OK:
            self.status = lib.gnnc_session_open_model(self.s, model)

    def give(self, session):
        """What is of no table."""
        for i, w in enumerate(wholes(self.lib, session.s)):
            if w.table is None:
                values = read_whole(self.lib, session.s, i, 1, None, w.width())
                assert self.lib.gnnc_session_set_whole_graph_value(self.s, i, (ctypes.c_float * len(values))(*values)) == OK, self.error()

    def error(self):
        return self.lib.gnnc_session_error(self.s).decode()

    def predict(self, rows):
        out = (ctypes.c_float * (self.width * max(1, len(rows))))()
        st = self.lib.gnnc_session_predict_subgraph(self.s, ctypes.c_int64(len(rows)), (ctypes.c_int64 * len(rows))(*rows), out)
        return st, [list(out[i * self.width:(i + 1) * self.width]) for i in range(len(rows))]

    def close(self):
        self.lib.gnnc_session_destroy(self.s)


def layer_rows(b, call, s, layer, ids):
    """Rows of a layer by that function: whose they are, how many there are, and what was given."""
    lib, table, n, rank, dim = b.lib, ctypes.c_char_p(), ctypes.c_int64(), ctypes.c_int(), (ctypes.c_int64 * 8)()
    assert lib.gnnc_session_layer(s, layer, ctypes.byref(table), ctypes.byref(n), ctypes.byref(rank), dim) == OK, layer
    width = 1
    for i in range(rank.value):
        width *= dim[i]
    out = (ctypes.c_float * (width * len(ids)))()
    st = getattr(lib, "gnnc_session_" + call)(s, layer, ctypes.c_int64(len(ids)), (ctypes.c_int64 * len(ids))(*ids), out)
    return st, table.value.decode(), n.value, [list(out[i * width:(i + 1) * width]) for i in range(len(ids))]


def check_layers(name, session, b, of):
    """Rows of layers over the subgraph that was brought; of: {type: (rows there, rows of the graph)}."""
    b.lib.gnnc_session_layer_name.restype = ctypes.c_char_p
    seen = 0
    for i in range(b.lib.gnnc_session_n_layers(b.s)):
        layer = b.lib.gnnc_session_layer_name(b.s, i)
        _, table, _, _ = layer_rows(b, "embed", session.s, layer, [0])
        here, there = of.get(table, ([], []))
        st, _, n, got = layer_rows(b, "embed_subgraph", b.s, layer, here)
        assert (st, n) == (OK, 0), (name, layer, st, b.error())
        want = layer_rows(b, "embed", session.s, layer, there)[3]
        assert all(near(x, y) for x, y in zip(got, want)), (name, layer, got, want)
        seen += len(here)
    return seen


def whole_columns(session, nodes, edges, graphs=()):
    """Columns of the rows that are brought."""
    out = []
    for i, w in enumerate(wholes(session.lib, session.s)):
        if w.table is None:
            continue
        name, width = w.table.decode(), w.width()
        ids = graphs if w.kind == GRAPHS else (nodes if w.kind == NODES else edges)[name]
        flat = read_whole(session.lib, session.s, i, len(ids), ids, width)
        shape = tuple(w.shape[:w.rank])
        out.append((name, w.name.decode(), shape, [flat[k * width:(k + 1) * width] for k in range(len(ids))]))
    return out


def near(got, want):
    scale = max([abs(v) for v in want] + [1e-30])
    return all(abs(x - y) <= 1e-6 * scale for x, y in zip(got, want))


def graphs_request(session, data, targets, **how):
    own = list(dict.fromkeys(targets))
    nodes, edges = data.of_graphs(own)
    return Request(data, nodes, edges, whole_columns(session, nodes, edges, own), graphs=own, **how), [own.index(g) for g in targets]


def request(session, data, kind, targets, hops, **how):
    if kind in data.graphs:
        return graphs_request(session, data, targets, **how)
    nodes, edges = data.around(kind, targets, hops)
    return Request(data, nodes, edges, whole_columns(session, nodes, edges), **how), [nodes[kind].index(v) for v in targets]


def check(name, session, model, path, kind, groups, hops, wanted):
    """Each group of rows is a request."""
    b, data = Brings(session, model), Data(path)
    assert b.status == OK, (name, b.error())
    assert session.lib.gnnc_session_rows(b.s) == 0 and session.lib.gnnc_session_rows(session.s) > 0
    b.give(session)
    for targets in groups:
        r, rows = request(session, data, kind, targets, hops)
        assert r.fill(b.lib, b.s) == OK, (name, r.error)
        st, got = b.predict(rows)
        assert st == OK, (name, st, b.error())
        over = session.predict(targets)[1]
        for i, v in enumerate(targets):
            assert near(got[i], wanted[v]), (name, v, got[i], wanted[v])
            assert near(got[i], over[i * b.width:(i + 1) * b.width]), (name, v)
        of = {kind: (rows, targets)}
        if r.graphs:  # all of their nodes, too
            of.update((t, (list(range(len(ids))), ids)) for t, ids in r.nodes.items())
        assert check_layers(name, session, b, of) or not b.lib.gnnc_session_n_layers(b.s), name
    b.close()


def check_names(session, model, path, kind, called, wanted):
    """mixed.data with names of v, of a column `id` or `name`."""
    b, data = Brings(session, model), Data(path)
    assert b.status == OK, b.error()
    b.give(session)
    if kind != "id":
        del data.nodes["v"][1]["name"]
    nodes, edges = data.around("v", [3], 4)
    whole = whole_columns(session, nodes, edges)

    def sent(of, **how):
        r = Request(data, nodes, edges, whole, **how)
        if kind == "id":
            r.change = lambda table, column, values: [[of(v)] for v, in values] if (table, column) == ("v", "id") else values
        else:
            r.skip, texts = ("id",), [of(v) for v in nodes["v"]]
            r.names = ("v", "name", "cat", "<i4", (), [[i] for i in range(len(texts))], len(texts), texts)
        assert r.fill(b.lib, b.s) == OK, r.error
        return b.predict([nodes["v"].index(3)])

    st, got = sent(called)
    assert st == OK and near(got[0], wanted[3]), (b.error(), got, wanted[3])
    other = called(61) if kind == "id" else "nobody"
    st, _ = sent(lambda v: other if v == nodes["v"][0] else called(v))
    assert st == E_RANGE and "row 0 of 'v' is '%s': 'place' has rows for the 60" % other in b.error(), b.error()
    assert Request(data, nodes, edges, whole, skip=("id",)).fill(b.lib, b.s) == OK
    assert b.predict([0])[0] == E_MISSING and "'name' or 'id'" in b.error(), b.error()
    b.close()


def check_threads(session, model, path, kind, targets, hops, wanted):
    """Clones in threads have what the first one was given, and go on when it is gone."""
    first, data, wrong = Brings(session, model), Data(path), []
    first.give(session)
    clones = []
    for _ in range(2):
        other = object.__new__(Brings)
        other.lib, other.s, other.width = first.lib, ctypes.c_void_p(), first.width
        assert first.lib.gnnc_session_clone(ctypes.byref(other.s), first.s) == OK
        clones.append(other)
    first.close()
    made = [request(session, data, kind, [v], hops) for v in targets]

    def serve(b, turn):
        for k in range(turn, len(made), 2):
            r, rows = made[k]
            if r.fill(b.lib, b.s) != OK or not near(b.predict(rows)[1][0], wanted[targets[k]]):
                wrong.append(targets[k])
        b.close()

    threads = [threading.Thread(target=serve, args=(b, i)) for i, b in enumerate(clones)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong


def check_memory(session, model, path, kind, targets, hops, Memory):
    """No request allocates once there was one of its size; and any allocation may fail."""
    data = Data(path)
    made = [request(session, data, kind, [v], hops) for v in targets]

    def serve(b, memory):
        for r, rows in made:
            st = r.fill(b.lib, b.s)
            assert st in (OK, E_NOMEM), (st, r.error)
            st = st or b.predict(rows)[0]
            if b.lib.gnnc_session_n_layers(b.s) and kind not in data.graphs:
                st = st or layer_rows(b, "embed_subgraph", b.s, b"h", rows)[0]
            assert st == OK or (st == E_NOMEM and memory.refuse > 0), (st, b.error())

    memory = Memory()
    b = Brings(session, model, memory)
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
        b = Brings(session, model, memory)
        assert b.status in (OK, E_NOMEM), (refuse, b.status, b.error())
        if b.status == OK:
            b.give(session)
            serve(b, memory)
            r, rows = made[0]
            assert r.fill(b.lib, b.s) == OK and b.predict(rows)[0] == OK, b.error()  # it goes on
        if b.s:
            b.close()
        assert memory.live == 0, (refuse, memory.live)


def check_errors(session, model, path):
    """Of mixed.data: what is wrong in a request has a status and is told by name."""
    lib, data, b = session.lib, Data(path), Brings(session, model)
    nodes, edges = data.around("v", [3], 2)
    whole = whole_columns(session, nodes, edges)
    name = next(w[1] for w in whole if w[0] == "v")

    def wrong(status, text, rows=(0,), **how):
        r = Request(data, nodes, edges, whole, **how)
        st = r.fill(lib, b.s)
        st, told = (st, r.error) if st else (b.predict(rows)[0], b.error())
        assert st == status and text in told, (st, told, text)

    def changed(table, column, to):
        return {"change": lambda t, c, values: to(values) if (t, c) == (table, column) else values}

    assert b.predict([0])[0] == E_STATE and "gnnc_session_subgraph gives one" in b.error(), b.error()
    wrong(E_MISSING, "was not given: gnnc_session_set_whole_graph_value")
    b.give(session)
    r = Request(data, nodes, edges, whole)
    assert r.fill(lib, b.s) == OK and b.predict([0])[0] == OK, b.error()
    wrong(E_RANGE, "row %d: the data have 0 to %d" % (len(nodes["v"]), len(nodes["v"]) - 1), rows=(len(nodes["v"]),))
    wrong(E_RANGE, "row -1", rows=(-1,))
    wrong(E_MISSING, "'v' has no column '%s', which" % name, skip=(name,))
    wrong(E_MISSING, "'v' has no column 'x', which the model", skip=("x",))
    wrong(E_MISSING, "'v' has no column 'id', by which its rows are those of 'place'", skip=("id",))
    wrong(E_MISSING, "no edge type 'e'", skip=("e", "a") + tuple(w[1] for w in whole if w[0] == "e"))
    wrong(E_RANGE, "row 0 of 'v' is '60': 'place' has rows for the 60", **changed("v", "id", lambda v: [[60]] + v[1:]))
    wrong(E_RANGE, "category 3", **changed("v", "kind", lambda v: [[3]] + v[1:]))
    wrong(E_VALUE, "v.x", **changed("v", "x", lambda v: [[float("nan")] * 4] + v[1:]))
    wrong(E_SHAPE, "dimension 'X' is 4 by mixed.weights and 3 by 'v.x'", **changed("v", "x", lambda v: [row[:3] for row in v]))
    wrong(E_SHAPE, "has 2 numbers a row, not 1", **changed("v", name, lambda v: [row * 2 for row in v]))
    wrong(E_RANGE, "e", **changed("e", "ends", lambda e: [[len(nodes["v"])] + e[0][1:], e[1]]))
    r = Request(data, nodes, edges, whole)
    assert r.fill(lib, b.s) == OK and b.predict([0, 0])[0] == OK, b.error()  # it goes on
    assert lib.gnnc_session_embed_subgraph(b.s, b"k", ctypes.c_int64(0), None, None) == E_MISSING and "there is h, m, there" in b.error(), b.error()
    assert layer_rows(b, "embed_subgraph", b.s, b"h", [len(nodes["v"])])[0] == E_RANGE and "row %d" % len(nodes["v"]) in b.error()
    g = ctypes.c_void_p()
    assert lib.gnnc_session_subgraph(b.s, ctypes.byref(g)) == OK
    assert b.predict([0])[0] == E_STATE and "gnnc_graph_commit" in b.error(), b.error()
    lib.gnnc_graph_retain(g)
    assert lib.gnnc_session_subgraph(b.s, ctypes.byref(ctypes.c_void_p())) == E_STATE and "reference" in b.error()
    lib.gnnc_graph_release(g)
    out = (ctypes.c_float * 64)()
    one = (ctypes.c_int64 * 1)(0)
    assert lib.gnnc_session_predict(b.s, ctypes.c_int64(1), one, out) == E_STATE and "no graph" in b.error()
    assert lib.gnnc_session_embed(b.s, b"h", ctypes.c_int64(1), one, out) == E_STATE and "embed_subgraph" in b.error()
    assert lib.gnnc_session_embed_subgraph(session.s, b"h", ctypes.c_int64(1), one, out) == E_STATE and "has a graph" in session.error()
    assert lib.gnnc_session_embed_subgraph(b.s, b"h", ctypes.c_int64(1), None, out) == E_ARG
    assert lib.gnnc_session_read_whole_graph_value(b.s, 0, ctypes.c_int64(1), one, out) == E_STATE
    assert lib.gnnc_session_subgraph(session.s, ctypes.byref(g)) == E_STATE and not g
    assert lib.gnnc_session_set_whole_graph_value(session.s, 0, out) == E_STATE
    of_rows = next(i for i, w in enumerate(wholes(lib, b.s)) if w.table)
    assert lib.gnnc_session_set_whole_graph_value(b.s, of_rows, out) == E_ARG and "as a column of" in b.error()
    assert lib.gnnc_session_set_whole_graph_value(b.s, 99, out) == E_RANGE
    assert lib.gnnc_session_read_whole_graph_value(session.s, of_rows, ctypes.c_int64(1), (ctypes.c_int64 * 1)(10**6), out) == E_RANGE
    assert lib.gnnc_session_open_model(b.s, model) == E_STATE
    for call in ("open_model", "subgraph", "predict_subgraph", "embed_subgraph", "whole_graph_value", "read_whole_graph_value", "set_whole_graph_value"):
        null = ctypes.c_void_p()
        assert getattr(lib, "gnnc_session_" + call)(null, null, null, null, null) == E_ARG, call
    b.close()
