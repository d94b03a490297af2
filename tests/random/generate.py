"""Random well-typed .gnn models.  Types are tracked as the language has them (docs/language.md): a value is a
name and its dimensions, which align by name, so what is written here compiles.

A body grows statement by statement from the values it has; every value is bounded softly (`tame`), so that
comparisons are about meaning, not about overflow.  Conditions ask for 0.0173: a mean that is 0 on paper would be above
it or not as rounding has it."""
import random
import re

UNARY = ["relu({})", "tanh({})", "sigmoid({})", "elu({})", "gelu({})", "silu({})", "softplus({})", "leaky_relu({}, 0.2)",
         "abs({})", "exp(-abs({}))", "log1p(abs({}))", "sqrt(abs({}) + 1)", "-{}", "rsqrt({} * {} + 1)", "sin({})",
         "select({} > 0.5, {}, 0.25)", "floor({})", "detach({})"]
BINARY = ["({} + {})", "({} - {})", "({} * {})", "max({}, {})", "min({}, {})", "select({} > {}, 0.5, -0.5)",
          "({} / (abs({}) + 1))"]
WIDTH_NAMES = ["d1", "d2", "d3", "heads"]
WIDTHS = [1, 1, 1, 2, 3, 4, 5, 8, 9, 16, 17]


class Value:
    def __init__(self, name, dims, mag=2.0):
        self.name, self.dims, self.mag = name, tuple(dims), mag


class Relation:
    def __init__(self, name, src, dst, columns=(), base=True, of=None):
        self.name, self.src, self.dst, self.columns, self.base, self.of = name, src, dst, dict(columns), base, of or name

    def kinds(self):
        """Columns of categories, with their number."""
        return [(c, t[4:-1]) for c, t in self.columns.items() if t.startswith("cat")]


class Body:
    """The statements of one model or layer.  spaces: row dimensions; sizes: names of width dimensions."""

    def __init__(self, r, spaces, sizes, relations, values, in_layer=False, graphs=False, sampled=False, low=False):
        self.r, self.spaces, self.sizes, self.relations = r, list(spaces), list(sizes), list(relations)
        self.values, self.in_layer, self.graphs, self.sampled, self.low = list(values), in_layer, graphs, sampled, low
        self.lines, self.indent, self.n, self.logs = [], 1, 0, 0

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
        if self.sampled and not e.base:
            return
        forms = [(f"reverse({e.name})", e.dst, e.src)]
        if e.src == e.dst:
            forms += [(f"{f}({e.name})", e.src, e.dst) for f in ("with_self_loops", "with_self_loops", "without_self_loops", "undirected")]
        for other in self.relations:
            if (other.src, other.dst) == (e.src, e.dst) and other is not e and not self.sampled:
                forms.append((f"union({e.name}, {other.name})", e.src, e.dst))
        if not self.in_layer and e.base:
            forms += [(f"{e.name} where {e.name}.{c} > {self.r.choice([-0.5, 0.25])}", e.src, e.dst)
                      for c, t in e.columns.items() if t == "f32"]
            forms += [(f"{e.name} where {e.name}.{c} {self.r.choice(['==', '!='])} {self.r.choice([0, 1])}", e.src, e.dst) for c, _ in e.kinds()]
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

    def branch(self):
        """`if` on a value known only when running, with parameters of its own."""
        v = self.any()
        dims = self.named(d for d in v.dims if d not in self.spaces)
        if len(v.dims) < 2 or not self.rows(v) or len(dims) != len(v.dims) - 1 or any(d in self.relation_names() for d in dims):
            return
        name, p = self.fresh(), self.fresh("P")
        test = self.r.choice([f"sum({v.name}) > 0.0173 or training", f"max({v.name}) < 1.5 and not training",
                              f"size({v.dims[0]}) > 5", f"mean({v.name}) > 0.0173"])
        self.emit(f"{name} = {v.name}")
        self.emit(f"if {test} {{")
        self.emit(f"  param {p}: f32[{', '.join(dims)}] = ones()")
        self.emit(f"  {name} = {v.name} * {p}")
        self.emit("}" + (f" else {{ {name} = {self.r.choice(['relu', 'softplus', 'sin'])}({v.name} - 0.1) }}" if self.r.random() < 0.4 else ""))
        self.values.append(Value(name, v.dims, v.mag * 1.5))

    def iterations(self):
        """A loop of the program: messages until they settle, a counter, a history in a list."""
        loops = [e for e in self.relations if e.src == e.dst and self.on(e.src, 1, 2)]
        if not loops:
            return
        e, r = self.r.choice(loops), self.r
        v = r.choice(self.on(e.src, 1, 2))
        h, old, diff, count, scale = (self.fresh(x) for x in ("w", "old", "diff", "count", "scale"))
        self.emit(f"{scale} = 1 / max(degree({e.name}, {e.name}.dst), 1)")
        self.emit(f"{h} = tanh({v.name})")
        history = self.fresh("past") if r.random() < 0.3 else None
        if history:
            self.emit(f"{history} = [{h}, {h} * 0.5]")
        self.emit(f"{diff} = 1.0")
        self.emit(f"{count} = 0.0")
        test = r.choice([f"{diff} > 0.05", f"not ({diff} < 0.05)", f"{diff} > 0.01 and {count} < 2"])
        step = f"{scale} * sum({h}[{e.name}.src], over = {e.name}.dst)"
        self.emit(f"while {test} limit {r.choice([1, 2, 3])} {{")
        self.emit(f"  {old} = {h}")
        body = r.choice([f"{h} = 0.3 * tanh({v.name}) + 0.7 * {step}", f"{h} = {h} * 0.5 + 0.5 * {step}",
                         f"if {diff} > 0.2 {{ {h} = {h} * 0.5 + 0.5 * {step} }} else {{ {h} = {h} * 0.9 }}"])
        self.emit("  " + body)
        if history:
            self.emit(f"  {history}[1] = {history}[0] * 0.9 + {h} * 0.1")
            self.emit(f"  {history}[0] = {h}")
        self.emit(f"  {diff} = max(abs({h} - {old}))")
        self.emit(f"  {count} = {count} + 1")
        self.emit("}")
        self.values.append(Value(h, v.dims, 1.0))
        if history:
            self.bind(f"sum({history})", v.dims, 3.0)

    def state(self):
        """What batch norm does: a running mean, moved in training."""
        wide = [v for v in self.values if len(v.dims) == 2 and self.rows(v) and self.named(v.dims[1:])]
        if not wide:
            return
        v, r, s = self.r.choice(wide), self.r, self.fresh("st")
        n, d = v.dims
        self.emit(f"state {s}: f32[{d}] = {r.choice(['ones()', '0.5', '0'])}")
        move = f"{s} = 0.5 * {s} + 0.5 * mean(detach({v.name}), {n})"
        if r.random() < 0.3:
            move = f"if mean({v.name}) > 0.0173 {{ {move} }} else {{ {s} = {s} * 0.8 }}"
        self.emit(f"if training {{ {move} }}")
        self.bind(f"{v.name} {r.choice('+-')} {s}", v.dims, v.mag + 1)

    def whole(self):
        """Beside the reduction of all rows."""
        wide = [v for v in self.values if self.rows(v) and len(v.dims) <= 2]
        if wide:
            v = self.r.choice(wide)
            self.bind(f"{v.name} - {self.r.choice(['max', 'min', 'mean'])}({v.name}, over = {v.dims[0]})", v.dims, v.mag * 2)

    def extra(self):
        """What does not change a value: terms of the loss, lines of the log."""
        v = self.any()
        if self.in_layer or len(self.named(v.dims)) != len(v.dims):
            return
        if self.r.random() < 0.5:
            self.emit(f"penalty(0.01 * mean({v.name} * {v.name}))")
        else:
            self.logs += 1
            self.emit(f'log("q{self.logs}", mean({v.name}))')

    def segments(self):
        """Several sums over edges that come together: hence in one kernel."""
        r, dst = self.r, self.r.choice([e.dst for e in self.relations])
        terms = self.segment_terms(dst, r.choice(self.sizes), r.randint(2, 4))
        if len(terms) > 1:
            d = terms[0][1]
            self.bind(" + ".join(t for t, _ in terms), (dst, d), 4.0 * len(terms))

    def segment_terms(self, dst, d, n):
        """`sum(lin(h)[e.src], over = e.dst)`, of any neighbours, some of these of their own neighbours."""
        terms, r = [], self.r
        for _ in range(n):
            into = [e for e in self.relations if e.dst == dst]
            e = r.choice(into) if into else None
            xs = [v for v in self.on(e.src, 2, 2) if v.dims[1] != d] if e else []
            if not xs:
                continue
            x = r.choice(xs)
            name, f = x.name, r.choice(["sum", "mean", "mean", "max", "min"])
            again = [k for k in self.relations if k.src == k.dst == e.src]
            if again and r.random() < 0.3:
                k = r.choice(again)
                name = f"{r.choice(['sum', 'mean'])}({name}[{k.name}.src], over = {k.name}.dst)"
            lin = self.layer(f"linear({d}{', bias = false' if r.random() < 0.3 else ''})")
            scale = r.choice(["", " * 0.3", " * 0.5"])
            terms.append((f"{f}({lin}({name})[{e.name}.src], over = {e.name}.dst){scale}", d))
        return terms

    def table(self):
        """Rows of a table by a category of the edge, or of a node at its end."""
        r = self.r
        tables = [(e, f"{e.name}.{c}", k) for e in self.relations if e.base for c, k in e.kinds()]
        if not tables or self.in_layer:
            return
        e, index, k = r.choice(tables)
        xs = [v for v in self.on(e.src, 2, 2) if self.named(v.dims[1:])]
        d = r.choice(xs).dims[1] if xs and r.random() < 0.7 else r.choice(self.sizes)
        t = self.fresh("T")
        self.emit(f"param {t}: f32[{k}, {d}] = normal(0, 0.5)")
        xs = [v for v in xs if v.dims[1] == d]
        m = f"{t}[{index}] * {r.choice(xs).name}[{e.name}.src]" if xs else f"{t}[{index}]"
        f = r.choice(["sum", "mean", "max"])
        self.bind(f"{f}({m} * 0.3, over = {e.name}.dst)", (e.dst, d), 3.0)

    def carried(self):
        """Values over a relation, on one that was made of it."""
        r = self.r
        made = [(e, b) for e in self.relations for b in self.relations if b.base and not e.base and e.of == b.name]
        columns = [(e, b, c, t) for e, b in made for c, t in b.columns.items() if t.startswith("f32")]
        if not columns or self.in_layer or self.sampled:
            return
        e, b, c, t = r.choice(columns)
        fill = r.choice(["1", "0.5", '"mean"'] if e.src == e.dst else ["1", "0.5"])
        d = self.dims_of(t)
        self.bind(f"{r.choice(['sum', 'mean'])}(carry({b.name}.{c}, {e.name}, fill = {fill}), over = {e.name}.dst)", (e.dst,) + d, 4.0)

    def dims_of(self, ctype):
        return tuple(x.strip() for x in ctype[ctype.index("[") + 1:-1].split(",")) if "[" in ctype else ()

    def edge_features(self):
        """Vectors of the edges themselves."""
        r = self.r
        es = [(e, c, t) for e in self.relations if e.base for c, t in e.columns.items() if t.startswith("f32[")]
        if not es or self.in_layer:
            return
        e, c, t = r.choice(es)
        d = r.choice(self.sizes)
        lin = self.layer(f"linear({d})")
        xs = [v for v in self.on(e.src, 2, 2) if v.dims[1] == d]
        m = f"{lin}({e.name}.{c})"
        m = f"relu({r.choice(xs).name}[{e.name}.src] + {m})" if xs else f"{r.choice(['tanh', 'relu'])}({m})"
        self.bind(f"{r.choice(['sum', 'mean', 'max'])}({m}, over = {e.name}.dst)", (e.dst, d), 4.0)

    def ranked(self):
        """Ranks of data, whose equals are equal to the last bit."""
        columns = [v for v in self.values if v.name.startswith("g.") and len(v.dims) == 1]
        if columns:
            v = self.r.choice(columns)
            self.bind(f"rank(detach({v.name}), {v.name} > {v.name} - 1, over = {v.dims[0]}) / size({v.dims[0]})", v.dims, 1.0)

    def worded(self):
        """A value or a layer of another precision."""
        wide = [v for v in self.values if len(v.dims) == 2 and self.rows(v)]
        d = self.r.choice(self.sizes)
        wide = [v for v in wide if v.dims[1] != d]
        if not self.low or not wide:
            return
        v, word = self.r.choice(wide), self.r.choice(["@bf16", "@bf16", "@f16", "@f32"])
        lin = self.layer(f"linear({d})")
        self.bind(self.r.choice([f"{lin}({v.name} {word})", f"({lin} {word})({v.name})"]), (v.dims[0], d), v.mag * 2)

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
                  (message, 9), (graph_pool, 1), (branch, 1), (iterations, 1), (state, 1), (whole, 1), (extra, 1),
                  (segments, 4), (table, 2), (carried, 2), (edge_features, 2), (ranked, 1), (worded, 2)]

    def grow(self, n):
        what, weights = zip(*self.STATEMENTS)
        for f in self.r.choices(what, weights, k=n):
            f(self)

    def result(self, space, width):
        """A value on a node type with one width; None = a number per row.  It reads the last values of that type, and
        those of its neighbours by sums over edges, so that what was computed counts."""
        d, r = width or "1", self.r
        terms = []
        for v in [v for v in self.on(space, 2, 2) if v.dims[1] != d][-r.choice([1, 2, 4]):]:
            terms.append(f"{self.layer(f'linear({d})')}({v.name})")
        terms += [t for t, _ in self.segment_terms(space, d, r.choice([0, 1, 2, 4]))]
        scalar = [v.name for v in self.on(space, 1, 1)][-2:] + [v.name for v in self.values if not v.dims][-1:]
        terms += [f"tanh({s})" for s in scalar]
        total = " + ".join(terms)
        return total if width else f"sum({total}, 1)"


class Model:
    """One file: graph, layers, model, recipe.  text() gives it.  small: of few statements, and one that trains."""

    def __init__(self, seed, small=False):
        self.r, self.small = random.Random(f"model/{seed}"), small
        self.layers, self.imports = [], set()
        self.declare()

    # ---- the graph -------------------------------------------------------------------------------
    def declare(self):
        r = self.r
        self.types = r.sample(["paper", "author", "item", "place"], r.choice([1, 1, 2, 2, 3]))
        self.target = self.types[0]
        self.sampled = r.random() < 0.25
        self.low = not self.sampled and r.random() < 0.06
        self.graphs = r.random() < 0.15
        self.on_graph = self.graphs and r.random() < 0.5
        if self.graphs and not self.on_graph:
            self.sampled = False
        self.nodes = {t: self.node_columns(t) for t in self.types}
        self.label = r.choice(["class[C]", "class[C]", "class[C]", "multilabel[T]", "f32[R]"])
        if not self.on_graph:
            self.nodes[self.target].update(y=self.label, split="")
        self.temporal = self.sampled and not self.on_graph and "when" in self.nodes[self.target] and r.random() < 0.4
        self.edges = {}
        for i in range(r.randint(1, 5)):
            src, dst = (r.choice(self.types), self.target) if i < 2 else (r.choice(self.types), r.choice(self.types))
            self.edges[f"r{i}"] = (src, dst, self.edge_columns())

    def node_columns(self, t):
        """Some node types have none: an embedding of their own stands for them."""
        r = self.r
        if t != self.target and not self.sampled and r.random() < 0.3:
            return {}
        columns = {"x": r.choice(["f32[F]", f"f32[F_{t}]", "f32[6]", f"csr f32[F_{t}]"])}
        extra = {"a": "f32", "b": "f32[F_b]", "kind": "cat[K]", "group": "cat[5]", "when": "time", "z": "f32[3, 4]"}
        columns.update({c: extra[c] for c in r.sample(sorted(extra), r.randint(0, 3))})
        return columns

    def edge_columns(self):
        r, columns = self.r, {}
        for name, ctype, chance in [("w", "f32", 0.5), ("f", "f32[F_e]", 0.3), ("rel", "cat[Q]", 0.25), ("t", "time", 0.1)]:
            if r.random() < chance:
                columns[name] = ctype
        return columns

    def graph_text(self):
        def braces(columns):
            return " { " + "; ".join(f"{c}: {t}" if t else c for c, t in columns.items()) + " }" if columns else ""
        def whenever(name, columns):
            return " timeless" if "time" in columns.values() and not (self.temporal and name == self.target) else ""
        lines = [f"  node {t}{whenever(t, c)}{braces(c)}" for t, c in self.nodes.items()]
        lines += [f"  edge {e}: {s} -> {d}{whenever(e, c)}{braces(c)}" for e, (s, d, c) in self.edges.items()]
        graph = f"  graph {{ y: {self.label}; split }}" if self.on_graph else "  graph { t: f32 }"
        return ["graph G {"] + ([graph] if self.graphs else []) + lines + ["}"]

    # ---- layers of its own -----------------------------------------------------------------------
    def own_layer(self, i):
        """A convolution with a random body; every relation fits it."""
        name, r = f"conv{i}", self.r
        b = Body(r, ["S", "D"], ["out", "mid", "wide"], [Relation("e", "S", "D")],
                 [Value("x", ("S", "I")), Value("x_dst", ("D", "J"))], in_layer=True, sampled=self.sampled)
        if r.random() < 0.4:
            b.emit("state seen: f32[J] = 0.5")
            b.emit("if training { seen = 0.9 * seen + 0.1 * mean(detach(x_dst), D) }")
            b.bind("x_dst - seen", ("D", "J"))
        b.grow(r.randint(1, 5))
        result = b.result("D", "out")
        self.layers += [f"layer {name}(out: int; mid: int = {r.choice([1, 2, 3, 8])}, wide: int = {r.choice([1, 5, 16])})(e: edge(S -> D), x: f32[S, I], x_dst: f32[D, J]) -> f32[D, out] {{"]
        self.layers += b.lines + [f"  return {result}", "}", ""]
        return name

    # ---- the model -----------------------------------------------------------------------------------
    def columns(self, b):
        """Columns as values of the body."""
        for t, columns in self.nodes.items():
            if not columns:
                d, name = self.r.choice(b.sizes), b.fresh("rows")
                b.emit(f"param {name}: f32[{t}, {d}] = normal(0, 0.4)")
                b.values.append(Value(name, (t, d)))
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
                    d = self.r.choice(b.sizes)
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
        for _ in range(self.r.choice([0, 1] if self.small else [0, 0, 1, 1, 2])):
            self.convolution(b)
        if self.r.random() < 0.4:
            self.of_rows(b)

    def convolution(self, b):
        r = self.r
        e, d = r.choice(b.relations), r.choice(b.sizes[:3])
        xs = [v for v in b.on(e.src, 2, 2) if d not in v.dims and "heads" not in v.dims]
        ys = [v for v in b.on(e.dst, 2, 2) if d not in v.dims and "heads" not in v.dims]
        if not xs or not ys:
            return
        x, y = r.choice(xs), r.choice(ys)
        alike = [v for v in ys if v.dims[1] == x.dims[1]]
        file, make, args = r.choice(self.convolutions(r, e, d, x, y, alike))
        self.imports.add(file)
        b.bind(f"{b.layer(make)}({e.name}, {args})", (e.dst, d), 3.0)

    def convolutions(self, r, e, d, x, y, alike):
        """(file, instance, arguments after the relation) of what fits these values."""
        two, p = f"{x.name}, {y.name}", r.choice([0.0, 0.3])
        feature = f", edge = {e.name}.f" if e.base and "f" in e.columns and r.random() < 0.5 else ""
        weight = f"; {e.name}.w" if e.base and "w" in e.columns and r.random() < 0.5 else ""
        weight = f", w = {e.name}.w" if weight else ""
        nn = f"sequential(linear({d}), {r.choice(['relu', 'tanh', 'elu'])}{r.choice(['', f', linear({d})'])})"
        heads = f"heads, {d}, concat = false, p = {p}"
        forms = [("sage", f'sage_conv({d}, aggr = "{r.choice(["mean", "max", "sum"])}")', two),
                 ("graph_conv", f'graph_conv({d}, aggr = "{r.choice(["sum", "mean", "max"])}")', two + weight),
                 ("gatv2", f"gatv2_conv({heads})", two + feature), ("gat", f"gat_conv({heads})", two + feature),
                 ("res_gated", f"res_gated_conv({d})", two + feature),
                 ("transformer_conv", f"transformer_conv({heads}, beta = {r.choice(['true', 'false'])})", two + feature)]
        if e.base and e.kinds():
            c, k = r.choice(e.kinds())
            bases = r.choice(["", ", bases = 2"])
            forms += [("rgcn", f"rgcn_conv({k}, {d}{bases})", f"{two}, rel = {e.name}.{c}")] * 2
        for z in alike[:1]:
            pair = f"{x.name}, {z.name}"
            forms += [("gin", f"gin_conv({nn}, train_eps = {r.choice(['true', 'false'])})", pair),
                      ("edge_conv", f'edge_conv({nn}, aggr = "{r.choice(["max", "mean", "sum"])}")', pair),
                      ("pna", f'pna_conv({d}, aggregators = ["mean", "max"], delta = 1.5)', pair + feature)]
            if e.base and "f" in e.columns:
                forms += [("gine", f"gine_conv({nn})", f"{pair}, edge = {e.name}.f")]
        if e.src == e.dst:
            forms += [("gcn", f"gcn_conv({d})", x.name + weight), ("cheb", f"cheb_conv({d}, {r.choice([1, 2, 3])})", x.name + weight),
                      ("sg", f"sg_conv({d}, hops = {r.choice([1, 2])})", x.name), ("tag", f"tag_conv({d}, hops = 2)", x.name)]
        return forms

    def of_rows(self, b):
        """Norms and perceptrons, a propagation, members of a list."""
        r = self.r
        wide = [v for v in b.values if len(v.dims) == 2 and b.rows(v)]
        if not wide:
            return
        v = r.choice(wide)
        loops = [e for e in b.relations if e.src == e.dst == v.dims[0]]
        file, make = r.choice([("batch_norm", "batch_norm()"), ("layer_norm", 'layer_norm(mode = "node")'), ("layer_norm", "layer_norm()"),
                               ("graph_norm", "graph_norm()"), ("pair_norm", f"pair_norm(individually = {r.choice(['true', 'false'])})")]
                              + [("appnp", "appnp(2, 0.1)")] * bool(loops) + [("mlp", "mlp")])
        self.imports.add(file)
        if make == "mlp":
            free = [d for d in b.sizes if d not in v.dims]
            if len(free) > 1:
                b.bind(f"{b.layer(f'mlp({free[0]}, {free[1]})')}({v.name})", (v.dims[0], free[1]), 4.0)
            return
        first = f"{r.choice(loops).name}, " if make.startswith("appnp") else ""
        b.bind(f"{b.layer(make)}({first}{v.name})", v.dims, 3.0)

    def typed_level(self, b, conv):
        """Dictionaries keyed by node type and relation: one convolution per relation, a layer of our own or a product."""
        r = b.r
        dims = {t: r.choice(b.on(t, 2, 2)) for t in self.types}
        n, d = b.fresh(""), r.choice(b.sizes)
        if any(d in v.dims for v in dims.values()):
            return
        combine, act = r.choice(["sum", "sum", "mean", "max", "min"]), r.choice(["relu", "tanh", "gelu", "sin"])
        only = r.choice(["", "", " and r.src != t"])
        keys = r.choice(["", " if r.src != r.dst"])
        b.emit(f"x{n} = [" + ", ".join(f"g.{t}: {v.name}" for t, v in dims.items()) + "]")
        b.emit(f"own{n} = [t: linear({d}) for t in g.nodes]")
        if conv:
            b.emit(f"convs{n} = [r: {conv}({d}) for r in g.edges{keys}]")
            term = f"convs{n}[r](r, x{n}[r.src], x{n}[r.dst])"
        else:
            b.emit(f"convs{n} = [r: linear({d}, bias = {r.choice(['true', 'false'])}) for r in g.edges{keys}]")
            term = f"{r.choice(['sum', 'mean', 'max'])}(convs{n}[r](x{n}[r.src])[r.src], over = r.dst){r.choice(['', ' * 0.3'])}"
        b.emit(f"y{n} = [t: {act}({combine}([own{n}[t](x{n}[t])] + "
               f"[{term} for r in keys(convs{n}) if r.dst == t{only}])) for t in g.nodes]")
        for t in self.types:
            b.bind(f"y{n}[g.{t}]", (t, d), 2.0)

    def body(self):
        relations = [Relation(f"g.{e}", s, d, c) for e, (s, d, c) in self.edges.items()]
        b = Body(self.r, self.types, WIDTH_NAMES, relations, [], graphs=self.graphs, sampled=self.sampled, low=self.low)
        self.columns(b)
        return b

    def grow(self, b):
        """Statements, layers of its own, dictionaries of relations, layers of the library."""
        r, relations = self.r, list(b.relations)
        most = 3 if self.small else 6
        b.grow(r.randint(1, most))
        convs = [self.own_layer(i) for i in range(r.choice([0, 0, 1] if self.small else [0, 0, 1, 1, 2]))]
        for conv in convs + [None] * r.choice([0, 0, 1]):
            if conv is None or r.random() < 0.4:
                self.typed_level(b, conv)
                continue
            e, d = r.choice(relations), r.choice(b.sizes)
            x, y = r.choice(b.on(e.src, 2)), r.choice(b.on(e.dst, 2))
            if d not in x.dims + y.dims:
                b.bind(f"{b.layer(f'{conv}({d})')}({e.name}, {x.name}, {y.name})", (e.dst, d), 3.0)
        self.library(b)
        for _ in range(2 if self.low else 0):
            b.worded()
        b.grow(r.randint(1, most))

    def head(self, result):
        sizes = ", ".join(f"{n}: int = {self.r.choice(WIDTHS)}" for n in WIDTH_NAMES)
        return f"model M(g: G; {sizes}) -> f32[{result}] {{"

    def model(self):
        self.width = {"class[C]": "C", "multilabel[T]": "T", "f32[R]": "R"}[self.label]
        b = self.body()
        self.grow(b)
        result, rows = b.result(self.target, self.width), self.target
        if self.on_graph:
            rows, result = "graph", f"{self.r.choice(['sum', 'mean'])}({result}, over = {self.target}.graph)"
        if self.label == "multilabel[T]":  # ranked: rows that are equal on paper would rank as rounding has it
            result += f" + f32(iota({rows})) * 0.015625"
        return [self.head(f"{rows}, {self.width}")] + b.lines + [f"  return {result}", "}"]

    # ---- the recipe ----------------------------------------------------------------------------------
    def losses(self):
        r = self.r
        loss, metric = {"class[C]": ("cross_entropy", "accuracy, f1_macro"), "multilabel[T]": ("bce_with_logits", "roc_auc, f1_micro"),
                        "f32[R]": (r.choice(["mse", "l1"]), "mae, rmse")}[self.label]
        if loss == "cross_entropy" and r.random() < 0.15:
            self.layers += ["fn smooth(pred: f32[N, K], target: i32[N], mask: bool[N]; eps: float = 0.1) -> f32 {",
                            "  m = f32(mask)", "  return -eps * sum(mean(log_softmax(pred, K), K) * m, N) / max(sum(m, N), 1)", "}", ""]
            loss += ", 0.5 * smooth(eps = 0.2)"
        return ["  target " + ("graph" if self.on_graph else self.target) + ".y", f"  loss {r.choice(['', '0.5 * '])}{loss}",
                f"  metric {metric}"]

    def sampling(self):
        r = self.r
        if self.on_graph:
            return ["  sample { batch " + str(r.choice([1, 2, 50])) + " }"]
        if not self.temporal and r.random() < 0.1:
            return ["  sample { clusters 3  batch " + str(r.choice([1, 2])) + " }"]
        fan = [str(r.choice([1, 2, 3, 10, -1])) for _ in range(r.choice([1, 2, 6, 6]))]
        lines = [f"    fanout [{', '.join(fan)}]", f"    batch {r.choice([1, 2, 3, 7, 100])}"]
        if r.random() < 0.3:
            lines.append(f"    {r.choice(['replace true', 'disjoint true', 'edges induced', 'edges bidirectional', 'workers 2'])}")
        if self.temporal:
            lines.append(f"    time g.{self.target}.when" + r.choice(["", "\n    pick recent", "\n    inclusive true"]))
        return ["  sample {"] + lines + ["  }"]

    def optimizing(self, paths, keep):
        r = self.r
        moments = r.choice([""] * 9 + [", moments = bf16"]) if self.low else ""
        optimizer = r.choice(["sgd(lr = 0.1, momentum = 0.9)", f"adam(lr = 1e-2, eps = 0.25{moments})", f"adamw(lr = 1e-2, eps = 0.25{moments})",
                              "sgd(lr = 0.1, momentum = 0.9, nesterov = true, weight_decay = 0.01)"])
        lines = [f"  optimizer {optimizer}"]
        # With a loss scale, which a level may drop with the values in f16, sums of gradients are scaled ones.
        accumulate = "" if self.low else f"accumulate {r.choice([2, 3])}"
        maybe = [("clip 1.0", 0.3), (accumulate, 0.2), ("ema 0.9", 0.25),
                 ("schedule " + r.choice(["cosine(warmup = 1)", "constant(warmup = 2)", "step(every = 1, gamma = 0.7)", "linear(min_lr = 0.001)",
                                          "plateau(patience = 1, gamma = 0.5)"]), 0.4),
                 (f"group {r.choice(paths)} {{ weight_decay = 0.02; lr_scale = 0.5 }}" if paths else "", 0.2),
                 ("keep " + r.choice(keep), 0.6), ("stop after 2" if len(keep) > 1 else "", 0.1)]
        return lines + [f"  {text}" for text, chance in maybe if text and r.random() < chance]

    def recipe(self, lines):
        """Layers that are instances of the model's body: what a group may name."""
        bound = [m.group(1) for m in (re.match(r"  (lin\d+) = linear", x) for x in lines) if m]
        paths = [x for x in bound if f"{x}(" in lines[-2]]
        return (["train M {"] + self.losses() + self.optimizing(paths, ["last", "best on val loss", "best on train loss"])
                + (self.sampling() if self.sampled else []) + ["  epochs 3", "}"])

    def text(self):
        body = self.model()
        recipe = self.recipe(body) if self.sampled or self.small or self.r.random() < 0.95 else []
        lines = [f'import "layers/{i}.gnn"' for i in sorted(self.imports)] + [""] + self.graph_text() + [""] + self.layers + body + [""]
        return "\n".join(lines + recipe) + "\n"


class Links(Model):
    """A model of links: nodes as in any other, a decoder, losses of pairs, of negatives or of all nodes."""

    def declare(self):
        super().declare()
        r = self.r
        self.sampled, self.low, self.graphs, self.on_graph, self.label = False, False, False, False, "f32[R]"
        self.nodes[self.target] = {c: t for c, t in self.nodes[self.target].items() if c not in ("y", "split")}
        self.edges["r0"] = (r.choice(self.types), self.target, {**self.edge_columns(), "split": ""})

    def model(self):
        r, b = self.r, self.body()
        src = self.edges["r0"][0]
        b.relations[0] = Relation("seen", src, self.target, base=False)
        b.emit('seen = g.r0 where in_split(g.r0, "train")')
        self.grow(b)
        d = r.choice(b.sizes)
        x, y = (self.ends(b, t, d) for t in (src, self.target))
        b.lines.insert(0, "  p = links(g.r0)")
        self.imports.add("links")
        score = r.choice([f"dot_score(p, {x}, {y}, {d})", f"sum({x}[p.src] * {y}[p.dst], {d})", f"{d}_score(p, {x}, {y})"])
        if score.startswith(f"{d}_score"):
            b.emit(f"{d}_score = mlp_score({r.choice([x for x in b.sizes if x != d])})")
        self.ranks = score.startswith("dot")
        return [self.head("links")] + b.lines + [f"  return {score}", "}"]

    def ends(self, b, t, d):
        name = b.fresh("end")
        values = [v for v in b.on(t, 2, 2) if v.dims[1] != d]
        b.emit(f"{name} = {b.layer(f'linear({d})')}({self.r.choice(values[-3:]).name})")
        return name

    def recipe(self, lines):
        r = self.r
        loss, metric, more = r.choice([("bce_with_logits", "roc_auc", ""), ("bpr", "roc_auc, average_precision", ""),
                                       ("logistic", "average_precision", ""), ("margin_ranking", "roc_auc", "")])
        if self.ranks and r.random() < 0.3:
            loss, metric = r.choice([("one_vs_all", "mrr"), ("k_vs_all", "mrr, hits(k = 3)"), ("bpr", "recall(k = 3)")])
        negatives = "" if loss in ("one_vs_all", "k_vs_all") else f"  negatives {r.choice([1, 1, 3])}"
        more = r.choice(["", "", "  corrupt both", "  avoid true"]) if negatives else ""
        sample = f"  sample {{ batch {r.choice([2, 5, 1000])}{negatives}{more} }}"
        keep = ["last"]
        return (["train M {", "  target links", f"  loss {loss}", f"  metric {metric}"] + self.optimizing([], keep) + [sample, "  epochs 2", "}"])


def model(seed, small=False):
    """One in twelve scores links."""
    return (Links if random.Random(f"kind/{seed}").random() < 0.08 else Model)(seed, small).text()


if __name__ == "__main__":
    import sys
    print(model(int(sys.argv[1])))
