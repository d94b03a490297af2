/* Products with a one-hot code are looked up.
 *
 *     %o = cast (eq %kind, iota R)    [e, R]
 *     %g = gather src(e) %W           [R, e, O]   ->   %v = view %W                       [R_N, O]
 *     %m = contract %o, %g            [e, O]           %m = gather pair(kind, src) %v     [e, O]
 *
 * Of the R terms of such a sum one is not zero: weights of each relation (R-GCN), a factor for each
 * kind of edge.  As it stands, it is R times the work, and its gradient is a value of R rows for
 * each edge, which then are summed by node.  The lookup's gradient is a segment sum over the
 * same pair of maps: into rows of (kind, node), of which an edge has one.  A row without a kind
 * (missing, -1) has only zeros in its code, and a lookup at -1 gives 0.
 *
 * Codes are those of a column: of these edges, of those that they are derived from, or of their
 * ends.  What depends on the data alone is left: it is computed once, when they are loaded, and
 * saved as it is, a number for each edge (R-GCN's means), where a lookup would want its table kept.
 * Sampled programs keep the product: their rows are cut layer by layer (`trim`), through maps to
 * nodes. */
#include "passes/rewrite.h"

/* A one-hot code [e, R] of a column of categories. */
typedef struct {
    Space *rows, *kinds; /* [e, R] */
    Map *col, *via;      /* the kind of a row; of what it leads to: an edge's end, or its base */
} Code;

/* The map by categories that x is an index of; NULL: it is none. */
static Map *column_of(Module *m, const Op *x) {
    if (x->kind == OP_INDEX && x->map->kind == MAP_COL) return x->map;
    return x->kind == OP_DATA && x->col->cat ? map_col(m, x->col) : NULL;
}

/* Whether op is a one-hot code: a column of categories compared with 0, 1, .. along a dimension of
 * as many. */
static bool is_code(Module *m, const Op *op, Code *c) {
    *c = (Code){0};
    if (op->kind != OP_CAST || !dtype_is_float(op->type.dt) || op->type.rank != 2) return false;
    const Op *eq = op->in[0];
    if (eq->kind != OP_EQ) return false;
    int of = eq->in[0]->kind == OP_IOTA;
    const Op *x = eq->in[of], *iota = eq->in[1 - of];
    if (iota->kind != OP_IOTA || x->type.rank != 1) return false;
    if (x->kind == OP_GATHER && x->map->kind != MAP_PAIR) {
        c->via = x->map;
        x = x->in[0];
    }
    c->col = column_of(m, x);
    c->rows = op->type.dim[0];
    c->kinds = op->type.dim[1];
    return c->col && iota->type.dim[0] == c->kinds && expr_eq(c->kinds->size, c->col->to->size) &&
           c->rows == (c->via ? c->via->from : c->col->from);
}

/* x with dimensions at and at + 1 as one. */
static Op *merge_dims(Builder *b, Op *x, int at, Space *product) {
    Type t = x->type;
    t.dim[at] = product;
    for (int i = at + 1; i + 1 < t.rank; i++) t.dim[i] = t.dim[i + 1];
    t.rank--;
    return b_view(b, x, t);
}

/* Looks up y by the pair (category, map's row), where y has both spaces as neighbouring ones. NULL:
 * it has not. */
static Op *look_up_both(Builder *b, const Code *c, Map *at, Op *y) {
    int row = type_find(&y->type, at->to), kind = type_find(&y->type, c->kinds);
    if (row < 0 || kind < 0 || type_has(&y->type, c->rows)) return NULL;
    if (row != kind + 1 && kind != row + 1) return NULL;
    Map *pair = kind < row ? map_pair(b->m, c->col, at, c->via, NULL)
                           : map_pair(b->m, at, c->col, c->via, NULL);
    return b_gather(b, pair, merge_dims(b, y, kind < row ? kind : row, pair->to));
}

/* Looks up y by the category; NULL: y has rows of its own for it. */
static Op *look_up(Builder *b, const Code *c, Op *y) {
    if (!type_has(&y->type, c->kinds) || type_has(&y->type, c->col->from)) return NULL;
    if (c->col->to != c->kinds) {
        Type t = y->type;
        t.dim[type_find(&t, c->kinds)] = c->col->to;
        if (type_has(&y->type, c->col->to)) return NULL;
        y = b_view(b, y, t);
    }
    Op *x = b_gather(b, c->col, y);
    return c->via ? b_gather(b, c->via, x) : x;
}

/* The lookup that replaces the product of the one-hot rows with x: by kind, or by kind and node
 * where x is gathered from an end of each row. NULL: there is none. */
static Op *replacement(Builder *b, const Op *op, const Code *c, Op *x) {
    bool fits = x->type.layout == LAYOUT_DENSE && x->type.dt == op->type.dt;
    if (!fits || type_has(&op->type, c->kinds) || !type_has(&op->type, c->rows)) return NULL;
    if (!type_has(&x->type, c->rows)) return look_up(b, c, x);
    bool gathered = x->kind == OP_GATHER && x->map->from == c->rows;
    if (!gathered || (x->map->kind != MAP_SRC && x->map->kind != MAP_DST)) return NULL;
    return look_up_both(b, c, x->map, x->in[0]);
}

/* Adds the remark about a product that stays. */
static void report_kept(PassCtx *p, const Op *op, const Code *c, const Op *x) {
    const char *why = x->type.layout != LAYOUT_DENSE  ? "what it is multiplied with is sparse"
                      : type_has(&op->type, c->kinds) ? "kinds are not summed over"
                      : !type_has(&op->type, c->rows) ? "rows are summed over"
                      : type_has(&x->type, c->rows)   ? "what it is multiplied with is made of rows"
                                                      : "what it is multiplied with has no row for "
                                                        "each kind";
    pass_refusal(p, op->span, "one-hot", "'%s' is summed over %s: %s", pass_named(op),
                 c->kinds->name, why);
}

/* Replaces a product with a one-hot code. */
static bool rewrite(PassCtx *p, Module *m, Op *op) {
    Code c;
    for (int i = 0; i < 2; i++) {
        if (!is_code(m, op->in[i], &c)) continue;
        Builder b = b_for(m, op->func, op, op);
        Op *y = replacement(&b, op, &c, op->in[1 - i]);
        if (!y) report_kept(p, op, &c, op->in[1 - i]);
        if (!y || !pass_may_rewrite(p)) continue;
        if (!type_eq(&y->type, &op->type)) y = b_copy(&b, y, op->type);
        y->hint = op->hint;
        op_replace_uses(op->func, op, y);
        pass_remark(p, op->span, "one-hot", "looked up by '%s.%s' instead of summed over %s",
                    c.col->col->space->name, c.col->col->name, c.kinds->name);
        return true;
    }
    return false;
}

typedef VEC(Op *) Ops;

/* The contractions of f that depend on what changes from step to step. */
static Ops products_of(PassCtx *p, Func *f) {
    Ops found = {0};
    func_number(f);
    bool *varies = NEWN(p->a, bool, (size_t)f->n_ops + 1);
    for (Op *op = f->first; op; op = op->next) {
        varies[op->id] = pass_may_vary(op);
        for (int i = 0; i < op->n_in; i++) varies[op->id] |= varies[op->in[i]->id];
        if (op->kind == OP_CONTRACT && varies[op->id]) vec_push(p->a, &found, op);
    }
    return found;
}

/* Runs the pass: replaces products with one-hot rows by gathers of the other operand's rows. Not
 * where batches are drawn. */
static bool run(PassCtx *p, Module *m) {
    if (m->recipe.sample.batch) return true;
    for (int i = 0; i < m->funcs.n; i++) {
        Func *f = m->funcs.v[i];
        Ops found = products_of(p, f);
        bool changed = false;
        func_keep_users(p->a, f);
        for (int k = 0; k < found.n; k++) changed |= rewrite(p, m, found.v[k]);
        if (changed) pass_dce_func(p->a, f);
    }
    return true;
}

const Pass pass_one_hot = {
    .name = "one-hot",
    .summary = "look up what is multiplied by a one-hot code",
    .needs = IR_TYPED,
    .breaks = IR_FUSED,
    .run = run,
};
