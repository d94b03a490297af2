"""Random well-typed .gnn models.  Types are tracked as the language has them (docs/language.md): a value is a
name and its dimensions, which align by name, so what is written here compiles.

A body grows statement by statement from the values it has; every value is bounded softly (`tame`), so that
comparisons are about meaning, not about overflow."""
import random

UNARY = ["relu({})", "tanh({})", "sigmoid({})", "elu({})", "gelu({})", "silu({})", "softplus({})", "leaky_relu({}, 0.2)",
         "abs({})", "exp(-abs({}))", "log1p(abs({}))", "sqrt(abs({}) + 1)", "-{}", "rsqrt({} * {} + 1)", "sin({})",
         "select({} > 0.5, {}, 0.25)", "floor({})", "detach({})"]
BINARY = ["({} + {})", "({} - {})", "({} * {})", "max({}, {})", "min({}, {})", "select({} > {}, 0.5, -0.5)",
          "({} / (abs({}) + 1))"]
WIDTH_NAMES = ["d1", "d2", "heads"]


class Value:
    def __init__(self, name, dims, mag=2.0):
        self.name, self.dims, self.mag = name, tuple(dims), mag


class Relation:
    def __init__(self, name, src, dst, columns=(), base=True, of=None):
        self.name, self.src, self.dst, self.columns, self.base, self.of = name, src, dst, dict(columns), base, of or name


class Body:
    """The statements of one model or layer.  spaces: row dimensions; sizes: names of width dimensions."""

    def __init__(self, r, spaces, sizes, relations, values, handle, in_layer=False, graphs=False):
        self.r, self.spaces, self.sizes, self.relations = r, list(spaces), list(sizes), list(relations)
        self.values, self.handle, self.in_layer, self.graphs = list(values), handle, in_layer, graphs
        self.lines, self.indent, self.n = [], 1, 0

    # ---- text ----------------------------------------------------------------------------
    def emit(self, line):
        self.lines.append("  " * self.indent + line)

    def fresh(self, stem="h"):
        self.n += 1
        return f"{stem}{self.n}"

    def bind(self, expr, dims, mag=2.0, stem="h", keep=True):
        v = Value(self.fresh(stem), dims, mag)
        self.emit(f"{v.name} = {expr}")
        if v.mag > 8:
            v = self.tame(v)
        if keep:
            self.values.append(v)
        return v

    def tame(self, v):
        w = Value(self.fresh(), v.dims, 1.0)
        self.emit(f"{w.name} = {self.r.choice(['tanh', 'sigmoid', 'sin'])}({v.name} * {self.r.choice([0.25, 0.125])})")
        return w

    # ---- choosing ---------------------------------------------------------------------------
    def rows(self, v):
        return v.dims[0] if v.dims and v.dims[0] in self.spaces else None

    def on(self, space, least=1, most=2):
        """A value whose rows are a node type, with one or two dimensions (rows included)."""
        return [v for v in self.values if self.rows(v) == space and least <= len(v.dims) <= most]

    def any(self):
        return self.r.choice(self.values[-6:] if self.r.random() < 0.7 else self.values)

    def named(self, dims):
        """Dimensions that the text can name."""
        return [d for d in dims if not d.startswith("?")]

    def other_size(self, dims):
        free = [s for s in self.sizes if s not in dims]
        return self.r.choice(free) if free else None

    # ---- statements ----------------------------------------------------------------------------
    def unary(self):
        v = self.any()
        f = self.r.choice(UNARY)
        self.bind(f.format(*[v.name] * f.count("{}")), v.dims, max(v.mag, 1.0))

    def binary(self):
        a = self.any()
        fits = [b for b in self.values if set(b.dims) <= set(a.dims)]
        b, f = self.r.choice(fits), self.r.choice(BINARY)
        x, y = (b, a) if f[0] == "(" and "/" not in f and self.r.random() < 0.3 else (a, b)
        mag = a.mag * b.mag if "*" in f else a.mag + b.mag
        dims = a.dims if len(a.dims) >= len(b.dims) else b.dims
        self.bind(f.format(x.name, y.name), dims, mag)

    def linear(self):
        wide = [v for v in self.values if len(v.dims) >= 2 and self.rows(v)]
        if not wide:
            return
        v = self.r.choice(wide)
        d = self.other_size(v.dims)
        if d:
            self.bind(f"{self.layer(f'linear({d})')}({v.name})", v.dims[:-1] + (d,), v.mag * 2)

    def layer(self, make):
        name = self.fresh("lin")
        self.emit(f"{name} = {make}")
        return name

    def matmul(self):
        wide = [v for v in self.values if len(v.dims) >= 2 and self.rows(v) and self.named(v.dims[-1:])]
        if not wide:
            return
        v = self.r.choice(wide)
        d, i = self.other_size(v.dims), v.dims[-1]
        if not d:
            return
        w = self.fresh("W")
        init = self.r.choice(["glorot()", "uniform(-0.5, 0.5)", "normal(0, 0.3)"])
        if len(v.dims) == 3 and self.r.random() < 0.6:  # a matrix per head
            self.emit(f"param {w}: f32[{v.dims[1]}, {d}, {i}] = {init}")
            self.bind(f"contract({v.name}, {w}, {i})", v.dims[:-1] + (d,), v.mag * 2)
        else:
            self.emit(f"param {w}: f32[{d}, {i}] = {init}")
            self.bind(f"{v.name} @ {w}", v.dims[:-1] + (d,), v.mag * 2)

    def bias(self):
        v = self.any()
        dims = self.named(d for d in v.dims if d not in self.spaces)
        if not dims or any(d in self.relation_names() for d in dims):
            return
        b = self.fresh("b")
        self.emit(f"param {b}: f32[{', '.join(dims)}] = {self.r.choice(['0', 'zeros()', 'ones()', 'constant(0.5)'])}")
        self.bind(f"{v.name} {self.r.choice('+*')} {b}", v.dims, v.mag * 1.5)

    def relation_names(self):
        return [e.name for e in self.relations]

    def heads(self):
        """[N, I] -> [N, heads, out], as multi-head attention does."""
        wide = [v for v in self.values if len(v.dims) == 2 and self.rows(v) and self.named(v.dims[1:])]
        free = [s for s in self.sizes]
        if not wide or len(free) < 3:
            return
        v = self.r.choice(wide)
        free = [s for s in free if s not in v.dims]
        if len(free) < 2:
            return
        a, b = self.r.sample(free, 2)
        w = self.fresh("W")
        self.emit(f"param {w}: f32[{a}, {b}, {v.dims[1]}] = glorot()")
        self.bind(f"{v.name} @ {w}", (v.dims[0], a, b), v.mag * 2)

    def reduce(self):
        v = self.any()
        dims = self.named(v.dims)
        if not dims:
            return
        d = self.r.choice(dims)
        f = self.r.choice(["sum", "mean", "max", "min"])
        self.bind(f"{f}({v.name}, over = {d})" if f in ("max", "min") else f"{f}({v.name}, {d})",
                  [x for x in v.dims if x != d], v.mag * (3 if f == "sum" else 1))

    def softmax(self):
        v = self.any()
        dims = self.named(d for d in v.dims if d not in self.spaces and d not in self.relation_names())
        if dims:
            f = self.r.choice(["softmax", "log_softmax"])
            self.bind(f"{f}({v.name}, {self.r.choice(dims)})", v.dims, 3.0 if f == "log_softmax" else 1.0)

    def reshape(self):
        v = self.any()
        if len(v.dims) == 3 and len(self.named(v.dims[1:])) == 2 and v.dims[0] in self.spaces:
            a, b = v.dims[1:] if self.r.random() < 0.7 else v.dims[:0:-1]
            self.bind(f"flatten({v.name}, {a}, {b})", (v.dims[0], f"?{self.n}"), v.mag)
        elif len(v.dims) == 2 and self.rows(v):
            others = [w for w in self.on(v.dims[0], 2) if w.dims[1] != v.dims[1]]
            if others:
                w = self.r.choice(others)
                self.bind(f"concat({v.name}, {w.name})", (v.dims[0], f"?{self.n}"), max(v.mag, w.mag))

    def expand(self):
        v = self.any()
        d = self.other_size(v.dims)
        if d and len(v.dims) < 3:
            self.bind(f"expand({v.name}, {d}) * (1 + f32(iota({d})) * 0.25)", v.dims + (d,), v.mag * 2)

    def dropout(self):
        v = self.any()
        self.bind(f"dropout({v.name}, {self.r.choice([0.3, 0.5, 0.6])})", v.dims, v.mag * 2)

    def condition(self):
        """`if` on a value known only when running, or when compiling."""
        v = self.any()
        dims = self.named(v.dims)
        if len(dims) != len(v.dims):
            return
        total = f"mean({v.name}, {', '.join(dims)})" if dims else v.name
        name, f = self.fresh(), self.r.sample(UNARY[:12], 2)
        test = self.r.choice([f"{total} > 0.1", "training", f"{total} < 0.3 and {total} > -2"])
        self.emit(f"if {test} {{")
        self.emit(f"  {name} = {f[0].format(*[v.name] * f[0].count('{}'))}")
        self.emit("} else {")
        self.emit(f"  {name} = {f[1].format(*[v.name] * f[1].count('{}'))}")
        self.emit("}")
        self.values.append(Value(name, v.dims, max(v.mag, 1)))

    def loop(self):
        """A list of layers, applied one after the other."""
        wide = [v for v in self.values if len(v.dims) == 2 and self.rows(v)]
        v = self.r.choice(wide) if wide else None
        d = self.other_size(v.dims) if v else None
        if not d:
            return
        lins, h = self.fresh("lins"), self.fresh()
        self.emit(f"{lins} = [linear({d}) for i in 0..{self.r.randint(1, 3)}]")
        self.emit(f"{h} = {v.name}")
        self.emit(f"for lin in {lins} {{ {h} = {self.r.choice(['tanh', 'relu', 'sin'])}(lin({h})) }}")
        self.values.append(Value(h, (v.dims[0], d), 2.0))

    def gram(self):
        """Linear attention: the only quadratic form, and the only use of primes."""
        wide = [v for v in self.values if len(v.dims) == 2 and self.rows(v) and v.dims[1].isidentifier()]
        if not wide:
            return
        v = self.r.choice(wide)
        n, i = v.dims
        k = self.fresh("k")
        self.emit(f"{k} = contract(rename({v.name}, {i}, {i}'), {v.name}, {n}) / size({n})")
        self.bind(f"rename({v.name} @ {k}, {i}', {i})", v.dims, v.mag * 4)

    # ---- relations ----------------------------------------------------------------------------------
    def derive(self):
        e = self.r.choice(self.relations)
        forms = [(f"reverse({e.name})", e.dst, e.src)]
        if e.src == e.dst:
            forms += [(f"{f}({e.name})", e.src, e.dst) for f in ("with_self_loops", "with_self_loops", "without_self_loops", "undirected")]
        for other in self.relations:
            if (other.src, other.dst) == (e.src, e.dst) and other is not e:
                forms.append((f"union({e.name}, {other.name})", e.src, e.dst))
        if not self.in_layer and e.base:
            forms += [(f"{e.name} where {e.name}.{c} > {self.r.choice([-0.5, 0.25])}", e.src, e.dst)
                      for c, t in e.columns.items() if t == "f32"]
        text, src, dst = self.r.choice(forms)
        name = self.fresh("e")
        self.emit(f"{name} = {text}")
        one_base = "union" not in text and "undirected" not in text
        self.relations.append(Relation(name, src, dst, base=False, of=e.of if one_base else None))

    def edge_weight(self, e):
        """A value per edge of e, with its dimensions after the edge."""
        r, forms = self.r, []
        if e.base:
            forms += [(f"{e.name}.{c}", ()) for c, t in e.columns.items() if t == "f32"]
        scalars = self.on(e.src, 1, 1), self.on(e.dst, 1, 1)
        if scalars[0] and scalars[1]:
            s, t = r.choice(scalars[0]).name, r.choice(scalars[1]).name
            score = f"leaky_relu({s}[{e.name}.src] + {t}[{e.name}.dst], 0.2)"
            forms += [(f"softmax({score}, over = {e.name}.dst)", ())] * 2
            forms += [(f"sigmoid({score})", ()), (f"dropout(softmax({score}, over = {e.name}.dst), 0.4)", ())]
        if e.src == e.dst:
            d = self.fresh("deg")
            self.emit(f"{d} = rsqrt(max(degree({e.name}, {e.name}.dst), 1))")
            forms.append((f"{d}[{e.name}.src] * {d}[{e.name}.dst]", ()))
        forms.append((f"dropout(ones({e.name}), 0.3)", ()))
        return r.choice(forms)[0]

    def message(self):
        e = self.r.choice(self.relations)
        backwards = self.r.random() < 0.15
        here, there = ("dst", "src") if backwards else ("src", "dst")
        xs = self.on(e.dst if backwards else e.src, 1, 3)
        if not xs:
            return
        x = self.r.choice(xs)
        rows = e.src if backwards else e.dst
        block = self.r.random() < 0.35
        m = f"{x.name}[{here}]" if block else f"{x.name}[{e.name}.{here}]"
        weight = self.edge_weight(e) if self.r.random() < 0.6 else None
        gates = [v for v in self.on(rows, 1, 3) if v.dims[1:] == x.dims[1:]]
        over = there if block else f"{e.name}.{there}"
        f = self.r.choice(["sum", "sum", "mean", "max", "min"])
        name, mag = self.fresh(), x.mag * (4 if f == "sum" else 1)
        if block:
            self.emit(f"for edge {e.name} {{")
            self.indent += 1
        if weight:
            w = self.fresh("w")
            self.emit(f"{w} = {weight}")
            m = f"{m} * {w}"
        if gates and self.r.random() < 0.4:
            g = self.r.choice(gates).name
            m = self.r.choice([f"relu({m} + {g}[{over}])", f"({m}) * sigmoid({g}[{over}])", f"{m} - {g}[{over}]"])
        if self.r.random() < 0.4:
            edge = self.fresh("m")
            self.emit(f"{edge} = {m}")
            m = edge
        self.emit(f"{name} = {f}({m}, over = {over})")
        if block:
            self.indent -= 1
            self.emit("}")
        v = Value(name, (rows,) + x.dims[1:], mag)
        self.values.append(self.tame(v) if v.mag > 8 else v)

    def graph_pool(self):
        if not self.graphs or self.in_layer:
            return
        n = self.r.choice(self.spaces)
        xs = self.on(n, 1, 2)
        if not xs:
            return
        x = self.r.choice(xs)
        m = self.bind(f"{self.r.choice(['sum', 'mean', 'max'])}({x.name}, over = {n}.graph)", ("graph",) + x.dims[1:],
                      x.mag * 2, keep=False)
        self.bind(f"{x.name} - {m.name}[{n}.graph]", x.dims, m.mag + x.mag)

    STATEMENTS = [(unary, 5), (binary, 6), (linear, 5), (matmul, 3), (bias, 2), (heads, 2), (reduce, 4), (softmax, 2),
                  (reshape, 2), (expand, 1), (dropout, 2), (condition, 1), (loop, 1), (gram, 1), (derive, 3),
                  (message, 9), (graph_pool, 1)]

    def grow(self, n):
        what, weights = zip(*self.STATEMENTS)
        for f in self.r.choices(what, weights, k=n):
            f(self)

    def result(self, space, width):
        """A value on a node type with one width; None = a number per row."""
        out = self.fresh("out")
        self.emit(f"{out} = linear({width})" if width else f"{out} = linear(1)")
        xs = [v for v in self.on(space, 2, 2) if v.dims[1] != width]
        x = xs[-1]
        for i, v in enumerate(xs[-4:-1]):  # what else was computed there should count
            self.emit(f"{out}_{i} = linear({width or 1})")
            self.emit(f"r{i} = {out}_{i}({v.name})")
        extra = "".join(f" + r{i}" for i in range(len(xs[-4:-1])))
        scalar = [v.name for v in self.on(space, 1, 1)][-2:] + [v.name for v in self.values if not v.dims][-1:]
        total = f"{out}({x.name}){extra}" + "".join(f" + tanh({s})" for s in scalar)
        return total if width else f"sum({total}, 1)"


class Model:
    """One file: graph, layers, model, recipe.  text() gives it."""

    def __init__(self, seed):
        self.r = random.Random(f"model/{seed}")
        self.layers, self.imports = [], set()
        self.declare()

    def declare(self):
        r = self.r
        self.types = r.sample(["paper", "author", "item", "place"], r.choice([1, 1, 2, 2, 3]))
        self.target = self.types[0]
        self.nodes = {t: {"x": r.choice(["f32[F]", f"f32[F_{t}]", "f32[6]", f"csr f32[F_{t}]"])} for t in self.types}
        for t in self.types:
            extra = {"a": "f32", "b": "f32[F_b]", "kind": "cat[K]", "group": "cat[5]", "when": "time", "z": "f32[3, 4]"}
            self.nodes[t].update({c: extra[c] for c in r.sample(sorted(extra), r.randint(0, 3))})
        self.label = r.choice(["class[C]", "class[C]", "class[C]", "multilabel[T]", "f32[R]"])
        self.nodes[self.target].update(y=self.label, split="")
        self.edges = {}
        for i in range(r.randint(1, 4)):
            src, dst = (r.choice(self.types), self.target) if i == 0 else (r.choice(self.types), r.choice(self.types))
            columns = {"w": "f32"} if r.random() < 0.5 else {}
            if r.random() < 0.3:
                columns["f"] = "f32[F_e]"
            self.edges[f"r{i}"] = (src, dst, columns)
        self.graphs = r.random() < 0.2

    def graph_text(self):
        def braces(columns):
            return " { " + "; ".join(f"{c}: {t}" if t else c for c, t in columns.items()) + " }" if columns else ""
        lines = [f"  node {t}{braces(c)}" for t, c in self.nodes.items()]
        lines += [f"  edge {e}: {s} -> {d}{braces(c)}" for e, (s, d, c) in self.edges.items()]
        return ["graph G {"] + (["  graph { t: f32 }"] if self.graphs else []) + lines + ["}"]

    # ---- layers of its own -----------------------------------------------------------------------
    def own_layer(self, i):
        """A convolution with a random body; every relation fits it."""
        name, r = f"conv{i}", self.r
        b = Body(r, ["S", "D"], ["out", "mid", "wide"], [Relation("e", "S", "D")],
                 [Value("x", ("S", "I")), Value("x_dst", ("D", "J"))], lambda n: n, in_layer=True)
        if r.random() < 0.4:
            b.emit("state seen: f32[J] = 0.5")
            b.emit("if training { seen = 0.9 * seen + 0.1 * mean(detach(x_dst), D) }")
            b.bind("x_dst - seen", ("D", "J"))
        b.grow(r.randint(2, 7))
        result = b.result("D", "out")
        self.layers += [f"layer {name}(out: int; mid: int = {r.choice([2, 3, 8])}, wide: int = {r.choice([1, 5, 16])})(e: edge(S -> D), x: f32[S, I], x_dst: f32[D, J]) -> f32[D, out] {{"]
        self.layers += b.lines + [f"  return {result}", "}", ""]
        return name

    # ---- the model -----------------------------------------------------------------------------------
    def columns(self, b):
        """Columns as values of the body."""
        for t, columns in self.nodes.items():
            for c, ctype in columns.items():
                path = f"g.{t}.{c}"
                if c in ("y", "split"):
                    continue
                if ctype == "f32":
                    b.values.append(Value(path, (t,)))
                elif ctype == "time":
                    b.bind(f"tanh(f32({path}) * 0.001)", (t,), 1.0)
                elif ctype.startswith("cat"):
                    k = ctype[4:-1]
                    d = self.r.choice(b.sizes[:3])
                    if k == "K" and self.r.random() < 0.5:
                        b.bind(f"{b.layer(f'embedding({k}, {d})')}({path})", (t, d))
                    else:
                        table = b.fresh("T")
                        b.emit(f"param {table}: f32[{k}, {d}] = normal(0, 1)")
                        b.bind(f"{table}[{path}]", (t, d))
                else:
                    b.values.append(Value(path, [t] + [d.strip() for d in ctype[ctype.index("[") + 1:-1].split(",")]))

    def library(self, b):
        """Layers of models/layers."""
        r = self.r
        for _ in range(r.choice([0, 0, 1, 1, 2])):
            e = r.choice(b.relations)
            xs, ds = b.on(e.src, 2), b.on(e.dst, 2)
            if not xs or not ds:
                continue
            x, y, d = r.choice(xs), r.choice(ds), r.choice(b.sizes[:3])
            if d in x.dims or d in y.dims:
                continue
            forms = [("sage", f"sage_conv({d}, aggr = \"{r.choice(['mean', 'max', 'sum'])}\")", True),
                     ("graph_conv", f"graph_conv({d})", True)]
            if d != "heads":
                forms += [("gatv2", f"gatv2_conv(heads, {d}, concat = false, p = {r.choice([0.0, 0.3])})", True),
                          ("gat", f"gat_conv(heads, {d}, concat = false, p = {r.choice([0.0, 0.3])})", True)]
            if e.src == e.dst:
                forms += [("gcn", f"gcn_conv({d})", False), ("gin", f"gin_conv(sequential(linear({d}), relu), train_eps = true)", False)]
            file, make, two = r.choice(forms)
            if two and "heads" in make and ("heads" in x.dims or "heads" in y.dims):
                continue
            self.imports.add(file)
            b.bind(f"{b.layer(make)}({e.name}, {x.name}{', ' + y.name if two else ''})", (e.dst, d), 3.0)
        for _ in range(r.choice([0, 0, 1])):
            wide = [v for v in b.values if len(v.dims) == 2 and b.rows(v)]
            file, make = r.choice([("batch_norm", "batch_norm()"), ("layer_norm", 'layer_norm(mode = "node")'), ("layer_norm", "layer_norm()")])
            if wide:
                v = r.choice(wide)
                self.imports.add(file)
                b.bind(f"{b.layer(make)}({v.name})", v.dims, 2.0)

    def typed_level(self, b, conv):
        """Dictionaries keyed by node type and relation: one convolution per relation."""
        dims = {t: b.r.choice(b.on(t, 2)) for t in self.types}
        n, d = b.fresh(""), b.sizes[0]
        if any(d in v.dims for v in dims.values()):
            return
        b.emit(f"x{n} = [" + ", ".join(f"g.{t}: {v.name}" for t, v in dims.items()) + "]")
        b.emit(f"own{n} = [t: linear({d}) for t in g.nodes]")
        b.emit(f"convs{n} = [r: {conv}({d}) for r in g.edges]")
        b.emit(f"y{n} = [t: {b.r.choice(['relu', 'tanh'])}(sum([own{n}[t](x{n}[t])] + "
               f"[convs{n}[r](r, x{n}[r.src], x{n}[r.dst]) for r in g.edges if r.dst == t])) for t in g.nodes]")
        for t in self.types:
            b.bind(f"y{n}[g.{t}]", (t, d), 2.0)

    def model(self):
        r = self.r
        width = {"class[C]": "C", "multilabel[T]": "T", "f32[R]": "R"}[self.label]
        relations = [Relation(f"g.{e}", s, d, c) for e, (s, d, c) in self.edges.items()]
        b = Body(r, self.types, WIDTH_NAMES, relations, [], lambda t: f"g.{t}", graphs=self.graphs)
        self.columns(b)
        b.grow(r.randint(2, 8))
        convs = [self.own_layer(i) for i in range(r.choice([0, 1, 1, 2]))]
        for conv in convs:
            if r.random() < 0.4:
                self.typed_level(b, conv)
                continue
            e, d = r.choice(relations), r.choice(b.sizes)
            x, y = r.choice(b.on(e.src, 2)), r.choice(b.on(e.dst, 2))
            if d not in x.dims + y.dims:
                b.bind(f"{b.layer(f'{conv}({d})')}({e.name}, {x.name}, {y.name})", (e.dst, d), 3.0)
        self.library(b)
        b.grow(r.randint(2, 8))
        result = b.result(self.target, width)
        if self.label == "multilabel[T]":  # ranked: rows that are equal on paper would rank as rounding has it
            result += f" + f32(iota({self.target})) * 0.015625"
        sizes = ", ".join(f"{n}: int = {r.choice([1, 2, 3, 4, 5, 8, 9, 16, 17])}" for n in WIDTH_NAMES)
        return [f"model M(g: G; {sizes}) -> f32[{self.target}, {width}] {{"] + b.lines + [f"  return {result}", "}"]

    def recipe(self):
        r = self.r
        loss, metric = {"class[C]": ("cross_entropy", "accuracy, f1_macro"), "multilabel[T]": ("bce_with_logits", "roc_auc, f1_micro"),
                        "f32[R]": (r.choice(["mse", "l1"]), "mae, rmse")}[self.label]
        optimizer = r.choice(["sgd(lr = 0.1, momentum = 0.9)", "adam(lr = 1e-2, eps = 0.25)", "adamw(lr = 1e-2, eps = 0.25)",
                              "sgd(lr = 0.1, momentum = 0.9, nesterov = true, weight_decay = 0.01)"])
        return ["train M {", f"  target {self.target}.y", f"  loss {r.choice(['', '0.5 * '])}{loss}", f"  metric {metric}",
                f"  optimizer {optimizer}"] + (["  clip 1.0"] if r.random() < 0.3 else []) + ["  epochs 3", "}"]

    def text(self):
        body = self.model()
        lines = [f'import "layers/{i}.gnn"' for i in sorted(self.imports)] + [""] + self.graph_text() + [""] + self.layers + body + [""]
        return "\n".join(lines + (self.recipe() if self.r.random() < 0.9 else [])) + "\n"


def model(seed):
    return Model(seed).text()


if __name__ == "__main__":
    import sys
    print(model(int(sys.argv[1])))
