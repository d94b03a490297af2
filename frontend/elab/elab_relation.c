/* Relations: deriving them, their columns, and bringing edge values from one to
 * another along MAP_ORIG. */
#include "frontend/elab/elab.h"

#include <string.h>

/* ---- deriving ------------------------------------------------------------------- */
/* Whether a relation leads from a node type to itself, as `what` needs; reported if not. */
static bool same_ends(Elab *e, const char *what, const Space *r, Span at) {
    if (r->src == r->dst) return true;
    diag_add(e->c, DIAG_E0312, at,
             "'%s' needs a relation with both ends on one node type; '%s' goes "
             "from '%s' to '%s'",
             what, r->name, r->src->name, r->dst->name);
    return false;
}

/* A relation of kind k that is derived from a (and b, for a union). Poison after a diagnostic:
 * their ends do not fit. */
Value elab_relation_derive(Elab *e, RelKind k, Value a, const Value *b, Span at) {
    Space *x = a.space, *y = b ? b->space : NULL;
    if (space_is_drawn(x) || (y && space_is_drawn(y))) {
        diag_add(e->c, DIAG_E0312, at, "no relation is derived from the links of a step");
        return val_poison();
    }
    if (k == REL_SELF_LOOPS && !same_ends(e, "with_self_loops", x, at)) return val_poison();
    if (k == REL_UNDIRECTED && !same_ends(e, "undirected", x, at)) return val_poison();
    if (y && (x->src != y->src || x->dst != y->dst)) {
        diag_add(e->c, DIAG_E0312, at,
                 "'union' needs equal ends; '%s' is %s -> %s, '%s' is %s -> %s", x->name,
                 x->src->name, x->dst->name, y->name, y->src->name, y->dst->name);
        return val_poison();
    }
    Value r = val_edge(space_derived(e->m, k, x, y, NULL, at));
    return r;
}

/* ---- carrying values ---------------------------------------------------------------- */
/* What self loops that are added get where the fill is "mean": for each node the mean of x over
 * the edges into it that are no loops. NULL after a diagnostic. */
static Op *mean_of_others(Elab *e, Op *x, Space *base, Space *to, Span at) {
    Space *nl = space_derived(e->m, REL_NO_LOOPS, base, NULL, NULL, at);
    Op *rest = b_gather(&e->b, map_orig(e->m, nl, 0), x);
    Value end = val_end(map_dst(e->m, nl));
    Value m = elab_reduce_call(e, "mean", rest, 1, &end, NULL, at);
    return elab_is_poison(m) ? NULL : b_gather(&e->b, map_dst(e->m, to), m.op);
}

/* What edges of `to` get that come from no edge of `base`: a value over `to`, or a scalar. NULL
 * after a diagnostic. */
static Op *fill_value(Elab *e, Op *x, Value fill, Space *base, Space *to, Span at) {
    if (fill.kind == VAL_STRING && strcmp(fill.str, "mean") == 0)
        return mean_of_others(e, x, base, to, at);
    if (fill.kind == VAL_STRING) {
        diag_add(e->c, DIAG_E0206, at, "fill is a number, a value over the nodes, or \"mean\"");
        return NULL;
    }
    Op *f = elab_to_tensor(e, fill, x->type.dt, at);
    if (f && type_has(&f->type, to->dst) && !type_has(&f->type, to))
        f = b_gather(&e->b, map_dst(e->m, to), elab_to_dense(e, f));
    return f;
}

static bool is_zero(Value v) {
    return (v.kind == VAL_FLOAT && v.num == 0) ||
           (v.kind == VAL_INT && v.size->kind == EX_CONST && v.size->c == 0);
}

/* A sampled step draws along relations that lead elsewhere than the data's by themselves: the
 * batch has their edges, not those that they come from.  So a value is made anew over them, from
 * columns whose rows are found when data is loaded. */
typedef struct {
    Elab *e;
    Space *to;
    Space *from;  /* of which `to` is derived: what the value lives on */
    bool swapped; /* the ends of `to` are those of `from` the other way round */
    bool unclear; /* .. or for some edges they are */
} Redraw;

static Op *redraw(Redraw r, const Op *x);

/* The column c as one of the relation that is drawn along, r->to; made there if it has none.
 * NULL: it is sparse. */
static Op *redraw_column(const Redraw *r, Column *c) {
    Elab *e = r->e;
    Column *own = elab_graph_column(e, r->to, c->name);
    if (c->kind == COL_CSR) return NULL;
    if (!own)
        own = column_new(e->m, c->kind, r->to, c->name, c->type.rank - 1, c->type.dim + 1, c->cat,
                         c->span);
    return b_data(&e->b, own);
}

/* The gather x over the edges of r->to: at the ends as they are there (a reversed relation swaps
 * them), or by a column. NULL: it cannot be said. */
static Op *redraw_gather(Redraw r, const Op *x) {
    const Map *m = x->map;
    if (m->kind == MAP_ORIG && m->from->rel != REL_SELF_LOOPS && m->from->rel != REL_UNION) {
        r.swapped ^= m->from->rel == REL_REVERSE;
        r.unclear |= m->from->rel == REL_UNDIRECTED;
        r.from = m->from->base[0];
        return redraw(r, x->in[0]);
    }
    if (m->kind == MAP_COL) {
        const Op *c = redraw_column(&r, m->col);
        return c ? b_gather(&r.e->b, map_col(r.e->m, c->col), x->in[0]) : NULL;
    }
    if (r.unclear || (m->kind != MAP_SRC && m->kind != MAP_DST)) return NULL;
    bool dst = (m->kind == MAP_DST) != r.swapped;
    return b_gather(&r.e->b, dst ? map_dst(r.e->m, r.to) : map_src(r.e->m, r.to), x->in[0]);
}

/* The value x of the base relation, computed anew over the edges of r.to, of columns and
 * elementwise operations. NULL: it needs other operations. */
static Op *redraw(Redraw r, const Op *x) {
    int at = type_find(&x->type, r.from);
    if (at < 0) return (Op *)x;
    if (x->kind == OP_DATA) return redraw_column(&r, x->col);
    if (x->kind == OP_GATHER) return redraw_gather(r, x);
    if (!op_has(x, OPT_ELEM) || x->type.layout != LAYOUT_DENSE) return NULL;
    Op copy = *x;
    copy.in = NEWN(r.e->a, Op *, (size_t)x->n_in);
    for (int i = 0; i < x->n_in; i++)
        if (!(copy.in[i] = redraw(r, x->in[i]))) return NULL;
    copy.type.dim[at] = r.to;
    copy.prev = copy.next = NULL;
    return b_op(&r.e->b, &copy);
}

/* x on the edges of `to` where these are drawn by themselves, so that they have no edges of the
 * base to look it up at. NULL after a diagnostic. */
static Op *carry_redrawn(Elab *e, const Op *x, Space *to, Span at) {
    Redraw r = {e, to, to->base[0], to->rel == REL_REVERSE, to->rel == REL_UNDIRECTED};
    e->b.span = at;
    Op *y = redraw(r, x);
    if (!y)
        diag_add(
            e->c, DIAG_E0305, at,
            "a sampled step draws along '%s' by itself: over it are columns of '%s' and what is "
            "computed of them one by one; other values are not carried there yet",
            to->name, to->base[0]->name);
    return y;
}

/* x on the edges of `to`, which is derived from x's relation in one step, as its base number
 * `which`; edges that are added get the fill. NULL after a diagnostic. */
static Op *carry_step(Elab *e, Op *x, Space *to, int which, Value fill, Span at) {
    if (e->in_batch && (to->rel == REL_REVERSE || to->rel == REL_UNDIRECTED))
        return carry_redrawn(e, x, to, at);
    Map *m = map_orig(e->m, to, which);
    e->b.span = at;
    Value y = elab_tensor_gather(e, x, m, at);
    bool partial = to->rel == REL_SELF_LOOPS || to->rel == REL_UNION;
    if (elab_is_poison(y) || !partial || is_zero(fill)) return elab_is_poison(y) ? NULL : y.op;
    Op *f = fill_value(e, x, fill, to->base[which], to, at);
    if (!f) return NULL;
    Value r = elab_tensor_select(e, b_valid(&e->b, m), y, val_tensor(f), at);
    return elab_is_poison(r) ? NULL : r.op;
}

static bool derives_from(const Space *r, const Space *base) {
    if (!r || r == base) return r != NULL;
    return derives_from(r->base[0], base) || derives_from(r->base[1], base);
}

/* The relation that x is over; NULL: it is over none. */
static const Space *edge_space_of(const Op *x) {
    for (int i = 0; i < x->type.rank; i++)
        if (x->type.dim[i]->kind == SP_EDGE) return x->type.dim[i];
    return NULL;
}

/* x on the edges of `to`, through each relation between `from` and `to`. NULL after a
 * diagnostic. */
static Op *carry_to(Elab *e, Op *x, const Space *from, Space *to, Value fill, Span at) {
    if (to == from) return x;
    int which = derives_from(to->base[0], from) ? 0 : 1;
    Op *y = carry_to(e, x, from, to->base[which], fill, at);
    return y ? carry_step(e, y, to, which, fill, at) : NULL;
}

/* What the edges that a derived relation adds have as a column's value: the relation's `fill`, else
 * 1 for self loops and 0 for others. */
static Value default_fill(Elab *e, Value rel) {
    if (rel.fill) return *rel.fill;
    return val_int(e, rel.space->rel == REL_SELF_LOOPS ? 1 : 0);
}

/* x, a value of edges, on those of rel, which is derived from its relation. fill: for edges that
 * are added; NULL: as rel says. */
Value elab_relation_carry(Elab *e, Op *x, Value rel, const Value *fill, Span at) {
    const Space *from = edge_space_of(x);
    if (!from || !derives_from(rel.space, from)) {
        diag_add(e->c, DIAG_E0211, at,
                 "the value is %s; '%s' is not derived from the relation it lives "
                 "on",
                 elab_type_text(e, &x->type), rel.space->name);
        return val_poison();
    }
    return val_tensor(carry_to(e, x, from, rel.space, fill ? *fill : default_fill(e, rel), at));
}

/* ---- members -------------------------------------------------------------------------- */
static const Column *column_of_base(Elab *e, const Space *r, const char *name) {
    while (r->rel != REL_BASE) r = r->base[0];
    return elab_graph_column(e, r, name);
}

/* The value of the column `name` on the relation r that is drawn: its own column, of rows of the
 * relation that it is drawn from. *found: there is such a column. */
static Value column_drawn(Elab *e, Space *r, const char *name, bool *found, Span at) {
    const Column *c = column_of_base(e, r, name);
    *found = c != NULL;
    if (!c) return val_none();
    if (!elab_graph_column(e, r, name) && c->kind != COL_CSR && c->kind != COL_SPLIT)
        column_new(e->m, c->kind, r, c->name, c->type.rank - 1, (Space *const *)c->type.dim + 1,
                   c->cat, c->span);
    if (elab_graph_column(e, r, name)) return elab_node_member(e, r, name, at);
    diag_add(e->c, DIAG_E0209, at, "'%s' of single links is not there yet", name);
    return val_poison();
}

/* The value of the column `name` on a relation. On a derived one it is that of its base, carried
 * over; a union has that of the base which an edge comes from. */
static Value column_of_relation(Elab *e, Value rel, const char *name, bool *found, Span at) {
    Space *r = rel.space;
    if (space_is_drawn(r)) return column_drawn(e, r, name, found, at);
    if (r->rel == REL_BASE) {
        Column *c = elab_graph_column(e, r, name);
        *found = c != NULL;
        /* while links are set up, splits are values: their codes are saved by @load */
        if (c && c->kind == COL_SPLIT && strcmp(name, "split") == 0 && e->splits)
            return val_tensor(b_data(&e->b, c));
        return *found ? elab_node_member(e, r, name, at) : val_none();
    }
    bool other = false;
    Value base = val_edge(r->base[0]);
    Value x = column_of_relation(e, base, name, found, at);
    if (!*found || elab_is_poison(x)) return x;
    Op *y = carry_step(e, x.op, r, 0, default_fill(e, rel), at);
    if (!y || r->rel != REL_UNION) return val_tensor(y);
    Value x2 = column_of_relation(e, val_edge(r->base[1]), name, &other, at);
    if (!other || elab_is_poison(x2)) return val_tensor(y);
    /* edges of the first base have 0 here, which the select drops */
    Op *y2 = carry_step(e, x2.op, r, 1, val_int(e, 0), at);
    if (!y2) return val_poison();
    return elab_tensor_select(e, b_valid(&e->b, map_orig(e->m, r, 0)), val_tensor(y),
                              val_tensor(y2), at);
}

/* `r.name`: an end of the relation or a column. Of open queries the destination is all nodes.
 * Poison after a diagnostic. */
Value elab_relation_member(Elab *e, Value rel, const char *name, Span at) {
    if (strcmp(name, "src") == 0) return val_end(map_src(e->m, rel.space));
    if (strcmp(name, "dst") == 0)
        return rel.open ? val_node(rel.space->dst) : val_end(map_dst(e->m, rel.space));
    bool found = false;
    Value v = column_of_relation(e, rel, name, &found, at);
    if (found) return v;
    const Space *base = rel.space;
    while (base->rel != REL_BASE) base = base->base[0];
    Names known = elab_column_names(e, base);
    diag_add(e->c, DIAG_E0209, at, "the relation '%s' has no column '%s'%s", rel.space->name, name,
             elab_names_advice(e, name, &known));
    return val_poison();
}

/* The split of each row of a node type or relation, i32. As a value of the model a column of
 * splits cannot be read otherwise. NULL: it has none. */
Op *elab_relation_split(Elab *e, Value rel, Span at) {
    Space *s = elab_handle_space(rel);
    bool found = false;
    e->b.span = at;
    if (s->kind != SP_EDGE) {
        Column *c = elab_graph_column(e, s, "split");
        return c && c->kind == COL_SPLIT ? b_data(&e->b, c) : NULL;
    }
    if (space_is_drawn(s)) return NULL;
    e->splits = true;
    Value v = column_of_relation(e, rel, "split", &found, at);
    e->splits = false;
    return found && v.kind == VAL_TENSOR && v.op->type.dt == DT_I32 ? v.op : NULL;
}

/* ---- where ----------------------------------------------------------------------------------
 * The condition is computed once, when data is loaded: its operations are copied
 * into @load.  Equal ones are found again, so that every phase and every use of the
 * same condition gives the same relation. */
typedef struct {
    Elab *e;
    Builder b;
    StrMap copied; /* address of an op -> its copy */
    int depth;
    const Op *bad;
} Copier;

/* Whether two operations differ at most in their operands. */
static bool same_attributes(const Op *x, const Op *y) {
    if (x->kind != y->kind || x->n_in != y->n_in || x->map != y->map || x->red != y->red ||
        x->n_over != y->n_over || x->col != y->col || x->imm != y->imm || x->off != y->off ||
        !type_eq(&x->type, &y->type))
        return false;
    for (int i = 0; i < x->n_over; i++)
        if (x->over[i] != y->over[i]) return false;
    return true;
}

/* The operation of f that computes the same as `want`; NULL: there is none. */
static Op *find_equal(Func *f, const Op *want) {
    for (Op *op = f->first; op; op = op->next) {
        bool same = same_attributes(op, want);
        for (int i = 0; same && i < op->n_in; i++) same = op->in[i] == want->in[i];
        if (same) return op;
    }
    return NULL;
}

/* A copy of the operation and what it depends on in @load, where one may be already. NULL: it
 * depends on more than data; k->bad is on what. */
static Op *copy_op(Copier *k, const Op *op) {
    enum { DEEPEST = 1000 };
    const char *id = arena_printf(k->e->a, "%p", (const void *)op);
    Op *done = strmap_get(&k->copied, id);
    if (done) return done;
    bool data_only = op_has(op, OPT_PURE) && !op_has(op, OPT_NOCSE) && op->kind != OP_VAR &&
                     op->kind != OP_INPUT && op->kind != OP_SAVED;
    if (!data_only || k->depth > DEEPEST) {
        k->bad = op;
        return NULL;
    }
    Op proto = *op;
    proto.in = NEWN(k->e->a, Op *, (size_t)op->n_in);
    k->depth++;
    for (int i = 0; i < op->n_in && !k->bad; i++) proto.in[i] = copy_op(k, op->in[i]);
    k->depth--;
    if (k->bad) return NULL;
    proto.prev = proto.next = NULL;
    proto.tag = NULL;
    done = find_equal(k->b.f, &proto);
    if (!done) done = b_op(&k->b, &proto);
    strmap_put(k->e->a, &k->copied, id, done);
    return done;
}

/* The name of the output of @load that gives x; the output is made if there is none. */
static const char *load_output(Elab *e, Builder *b, Op *x) {
    int n = 0;
    for (Op *op = b->f->first; op; op = op->next) {
        if (op->kind != OP_OUTPUT) continue;
        if (op->in[0] == x) return op->name;
        n++;
    }
    const char *name = arena_printf(e->a, "where_%d", n);
    b_output(b, name, x);
    return name;
}

/* A copy of x, with what it depends on, in @load, which is made if there is none; k: how the
 * copy went. NULL: it cannot be copied. */
static Op *to_load(Elab *e, Copier *k, const Op *x, Span at) {
    Func *load = func_of(e->m, PHASE_LOAD);
    if (!load) load = func_new_phase(e->m, PHASE_LOAD);
    *k = (Copier){.e = e, .b = {.m = e->m, .f = load, .span = at}};
    return copy_op(k, x);
}

/* Makes x, which must depend on data only, an output of @load under `name`. False after a
 * diagnostic. */
bool elab_relation_load_output(Elab *e, Op *x, const char *name, Span at) {
    Copier k;
    Op *y = to_load(e, &k, x, at), *before = func_output(k.b.f, name);
    if (y && !before) b_output(&k.b, name, y);
    if (y && (!before || before->in[0] == y)) return true;
    diag_add(e->c, DIAG_E0312, at,
             y ? "this is said differently in another phase"
               : "what links there are may depend on data only");
    return false;
}

/* The relation of those edges of rel for which cond holds. They are found when data are loaded,
 * so cond may depend on data only. Poison after a diagnostic. */
Value elab_relation_where(Elab *e, Value rel, Value cond, Span at) {
    Op *c = cond.op;
    if (c->type.dt != DT_I1 || c->type.rank != 1 || c->type.dim[0] != rel.space) {
        diag_add(e->c, DIAG_E0312, at, "the condition is %s; it must be bool[%s]",
                 elab_type_text(e, &c->type), rel.space->name);
        return val_poison();
    }
    Copier k;
    Op *x = to_load(e, &k, c, at);
    if (!x) {
        diag_add(e->c, DIAG_E0312, at,
                 "the condition depends on '%s'; which edges there are may depend on data only",
                 k.bad->hint ? k.bad->hint : op_mnemonic(k.bad->kind));
        return val_poison();
    }
    Value r =
        val_edge(space_derived(e->m, REL_WHERE, rel.space, NULL, load_output(e, &k.b, x), at));
    r.fill = rel.fill;
    return r;
}
