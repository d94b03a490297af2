/* What a row of a table tells by itself is computed once for a batch, however often it was drawn.
 *
 *     %x = data n.x : f32[n, F]                 %x = data n.x : f32[n, F]
 *     %y = contract %x, %w : f32[n, O]   ->     %r = gather first(n.rows) %x : f32[n.rows, F]
 *     ..                                        %z = contract %r, %w : f32[n.rows, O]
 *                                               %y = gather distinct(n, n.rows) %z : f32[n, O]
 *
 * Where the trees of seeds are disjoint, as they are when seeds have times, a row of the data is a
 * node of its own for each seed that reads it.  Values that hang on the row's columns alone, and on
 * what has no rows, such as parameters, are the same for all of these nodes; what hangs on the seed
 * (its time, edges that were drawn) or is random is not, and stays.  Runs before autodiff: the
 * gradient of the gather is a segment sum, in the order of the nodes, and that of an encoder runs
 * over distinct rows, too.  After trim: of rows that are not needed nothing is computed.
 *
 * Gathering costs as much as a few operations an element, so only what took more work than that is
 * moved (the threshold distinct.min-flops): the last value of a chain, before something reads it
 * that is no function of the row.  The seeds' own rows are there once in any case.
 *
 * Cf. the node embeddings of layer-wise inference (Yin et al. 2022, "DGI: An Easy and Efficient
 * Framework for GNN Model Evaluation"), which computes a shared node once across a batch's trees.
 */
#include "ir/walk.h"
#include "passes/rewrite.h"

#include <string.h>

typedef struct {
    PassCtx *p;
    Module *m;
    Func *f;
    const Space *learned; /* the table that is learned, or NULL */
    int64_t *size;        /* [syms] nominal */
    IrMarks marks;
    struct Fact {
        Space *rows;   /* a function of such a row alone; NULL: it is none */
        bool is_root;  /* to be computed once, and gathered */
        Op *moved;     /* its value computed over distinct rows */
        bool reported; /* that it is too little work */
    } *fact;           /* by op id */
    Space **longest;   /* by space id of a whole type: the longest of its roots' rows */
} Distinct;

/* ---- functions of a row ------------------------------------------------------------------ */
/* The node type of which s is a prefix, or s itself. */
static Space *full_type(Space *s) {
    return s->prefix_of ? s->prefix_of : s;
}

/* Whether the type is dense and has no spaces but dimensions and `rows`. */
static bool has_no_other_rows(const Type *t, const Space *rows) {
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i]->kind != SP_DIM && t->dim[i] != rows) return false;
    return t->layout == LAYOUT_DENSE;
}

/* The rows that all operands are functions of. *ok becomes false if there are others. */
static Space *rows_of_operands(const Distinct *d, const Op *op, bool *ok) {
    Space *rows = NULL;
    for (int i = 0; i < op->n_in; i++) {
        Space *r = d->fact[op->in[i]->id].rows;
        if (!r && has_no_other_rows(&op->in[i]->type, NULL)) continue;
        *ok = *ok && r && (!rows || rows == r);
        rows = r;
    }
    return rows;
}

/* Whether the operation reduces or joins dimensions only. */
static bool are_dims(const Op *op) {
    for (int i = 0; i < op->n_over; i++)
        if (op->over[i]->kind != SP_DIM) return false;
    return true;
}

/* Whether the operation takes the first rows of a node type. */
static bool is_prefix_slice(const Op *op) {
    int64_t off;
    return op->kind == OP_SLICE && op->over[0]->kind == SP_NODE && op->over[1]->prefix_of &&
           op->over[1]->prefix_of == full_type(op->over[0]) && expr_is_const(op->off, &off) &&
           off == 0;
}

/* Whether the operation computes a row from its operands' rows. */
static bool is_rowwise(const Op *op, const Space *rows) {
    switch (op->kind) {
    case OP_VIEW:
        return op->type.dim[0] == rows && op->in[0]->type.dim[0] == rows;
    case OP_CONCAT:
    case OP_SLICE:
    case OP_REDUCE:
    case OP_ARGMAX:
        return are_dims(op);
    case OP_CONTRACT:
        return true;
    default:
        return op_has(op, OPT_ELEM);
    }
}

/* The rows of which the value is a function, row by row; NULL: it depends on more. */
static Space *rows_of(const Distinct *d, const Op *op) {
    Space *rows = NULL;
    bool ok = op_has(op, OPT_PURE) && !op_has(op, OPT_NOCSE | OPT_LIB) && op->type.rank > 0;
    bool by_code = (op->kind == OP_GATHER || op->kind == OP_VALID || op->kind == OP_INDEX) &&
                   op->map->kind == MAP_COL;
    if (!ok) return NULL;
    if (op->kind == OP_DATA) {
        rows = op->col->kind == COL_SPLIT ? NULL : op->col->space;
    } else if (by_code) {
        rows = op->map->from;
        ok = !op->n_in || has_no_other_rows(&op->in[0]->type, NULL);
    } else if (is_prefix_slice(op)) {
        rows = d->fact[op->in[0]->id].rows ? op->over[1] : NULL;
    } else {
        rows = rows_of_operands(d, op, &ok);
        ok = ok && rows && is_rowwise(op, rows);
    }
    ok = ok && rows && rows->kind == SP_NODE && !rows->distinct_of && full_type(rows) != d->learned;
    return ok && type_has(&op->type, rows) && has_no_other_rows(&op->type, rows) ? rows : NULL;
}

/* ---- what it takes ------------------------------------------------------------------------- */
/* The number of elements of a row. */
static double row_elements(const Distinct *d, const Type *t) {
    double n = 1;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i]->kind == SP_DIM) n *= (double)expr_eval(t->dim[i]->size, d->size);
    return n;
}

/* The operations that computing a row takes. */
static double row_flops(const Distinct *d, const Op *op) {
    double n = row_elements(d, &op->type);
    switch (op->kind) {
    case OP_CONTRACT:
        for (int i = 0; i < op->in[0]->type.rank; i++) {
            const Space *s = op->in[0]->type.dim[i];
            bool summed = s->kind == SP_DIM && !type_has(&op->type, s);
            if (summed) n *= 2 * (double)expr_eval(s->size, d->size);
        }
        return n;
    case OP_REDUCE:
    case OP_ARGMAX:
        return row_elements(d, &op->in[0]->type);
    default:
        return op_has(op, OPT_ELEM) ? n * op_cost(op->kind) : 0;
    }
}

/* Whether the walk may enter: the value is a function of a row. */
static bool is_function_of_row(void *user, const Op *op) {
    return ((Distinct *)user)->fact[op->id].rows != NULL;
}

/* Whether computing the value takes enough operations per element to be moved. */
static bool is_worthwhile(Distinct *d, Op *op) {
    double work = 0;
    IrOps all = ir_walk(d->p->a, &d->marks, op, is_function_of_row, d);
    for (int i = 0; i < all.n; i++)
        if (d->fact[all.v[i]->id].rows) work += row_flops(d, all.v[i]);
    return work >= pass_threshold(d->p->ctx, PASS_T_DISTINCT_FLOPS) * row_elements(d, &op->type);
}

/* ---- roots ---------------------------------------------------------------------------------- */
/* Whether the operation broadcasts over more spaces: it costs nothing where it is read. */
static bool broadcasts(const Op *op) {
    return op->kind == OP_COPY && op->type.rank > op->in[0]->type.rank;
}

/* Marks a value as one that is computed once per distinct row, if it is worthwhile. */
static void mark_root(Distinct *d, Op *op) {
    struct Fact *x = &d->fact[op->id];
    bool seed = x->rows && x->rows->prefix_of && x->rows->hops == 0;
    bool reads = op->kind == OP_DATA || op->kind == OP_GATHER || is_prefix_slice(op);
    if (!x->rows || x->is_root || seed || reads) return;
    if (!is_worthwhile(d, op)) {
        if (!x->reported)
            pass_refusal(d->p, op->span, "distinct",
                         "'%s' of @%s is computed for each node: it takes less than "
                         "--distinct.min-flops operations an element",
                         pass_named(op), d->f->name);
        x->reported = true;
        return;
    }
    Space **longest = &d->longest[full_type(x->rows)->id];
    x->is_root = true;
    if (!*longest ||
        ((*longest)->prefix_of && (!x->rows->prefix_of || x->rows->hops > (*longest)->hops)))
        *longest = x->rows;
}

/* Marks the values that are functions of a row and that something else reads. */
static void find_roots(Distinct *d) {
    for (Op *op = d->f->first; op; op = op->next) {
        if (d->fact[op->id].rows && !broadcasts(op)) continue;
        for (int i = 0; i < op->n_in; i++) {
            Op *x = op->in[i];
            while (is_prefix_slice(x)) x = x->in[0];
            mark_root(d, x == op->in[i] || d->fact[x->id].rows ? x : op->in[i]);
        }
    }
}

/* ---- rewriting ------------------------------------------------------------------------------ */
/* Builds op over the distinct rows. */
static Op *over_distinct_rows(Distinct *d, Builder *b, Op *op, Space *rows) {
    struct Fact *x = &d->fact[op->id];
    if (!x->rows) return op; /* it has no rows */
    if (is_prefix_slice(op)) return d->fact[op->in[0]->id].moved;
    Op proto = *op;
    proto.tag = NULL;
    proto.users = NULL;
    proto.in = NEWN(d->p->a, Op *, (size_t)op->n_in + 1);
    for (int i = 0; i < op->n_in; i++) {
        struct Fact *y = &d->fact[op->in[i]->id];
        proto.in[i] = y->rows ? y->moved : op->in[i];
    }
    b_like(b, op);
    if (op->kind == OP_DATA) return b_gather(b, map_first(d->m, rows), op);
    if (op->map) proto.map = map_via(d->m, op->map, rows);
    proto.type.dim[type_find(&proto.type, x->rows)] = rows;
    return b_op(b, &proto);
}

/* Whether the value is not yet built over distinct rows. */
static bool is_missing(void *user, const Op *op) {
    const struct Fact *x = &((Distinct *)user)->fact[op->id];
    return x->rows && !x->moved;
}

/* Computes a root over distinct rows and gathers the result. */
static void move_root(Distinct *d, Op *op) {
    struct Fact *x = &d->fact[op->id];
    Space *rows = space_distinct(d->m, d->longest[full_type(x->rows)->id], op->span);
    Builder b = b_for(d->m, d->f, op->next, op);
    IrOps missing = ir_walk(d->p->a, &d->marks, op, is_missing, d);
    for (int i = 0; i < missing.n; i++)
        if (is_missing(d, missing.v[i]))
            d->fact[missing.v[i]->id].moved = over_distinct_rows(d, &b, missing.v[i], rows);
    b_like(&b, op);
    Op *y = b_gather(&b, map_distinct(d->m, x->rows, rows), x->moved);
    if (!type_eq(&y->type, &op->type)) y = b_copy(&b, y, op->type);
    y->hint = op->hint;
    op->tag = y;
    pass_remark(d->p, op->span, "distinct", "'%s' of @%s is computed once for each row of '%s'",
                op->hint ? op->hint : op_mnemonic(op->kind), d->f->name, full_type(x->rows)->name);
}

/* Moves all roots of a function. */
static void distinct_func(PassCtx *p, Module *m, Func *f) {
    const Column *target = module_target(m, false);
    Distinct d = {.p = p, .m = m, .f = f, .learned = target ? target->space : NULL};
    func_number(f);
    int n = f->n_ops;
    d.marks = ir_marks_new(p->a, n + 1);
    d.fact = NEWN(p->a, struct Fact, (size_t)n + 1);
    d.longest = NEWN(p->a, Space *, (size_t)m->spaces.n + 1);
    d.size = NEWN(p->a, int64_t, (size_t)m->syms.n + 1);
    for (int i = 0; i < m->syms.n; i++) d.size[i] = pass_threshold(p->ctx, PASS_T_ORDER_WIDTH);
    for (Op *op = f->first; op; op = op->next) d.fact[op->id].rows = rows_of(&d, op);
    find_roots(&d);
    VEC(Op *) roots = {0};
    for (Op *op = f->first; op; op = op->next)
        if (d.fact[op->id].is_root && pass_may_rewrite(p)) vec_push(p->a, &roots, op);
    for (int i = 0; i < roots.n; i++) move_root(&d, roots.v[i]);
    func_keep_users(p->a, f);
    for (int i = 0; i < roots.n; i++) {
        Op *y = roots.v[i]->tag;
        roots.v[i]->tag = NULL;
        op_replace_uses(f, roots.v[i], y);
    }
    if (roots.n) pass_dce_func(p->a, f);
}

/* Runs the pass on the functions that see batches. It has work only where batches have a disjoint
 * neighbourhood per seed, which may hold a row several times. */
static bool run(PassCtx *p, Module *m) {
    const Sampling *s = &m->recipe.sample;
    if (!s->disjoint || !s->n_hops) return true; /* no row is drawn twice */
    for (int i = 0; i < m->funcs.n; i++)
        if (module_runs_on_batches(m, m->funcs.v[i]->phase)) distinct_func(p, m, m->funcs.v[i]);
    return true;
}

const Pass pass_distinct = {
    .name = "distinct",
    .summary = "compute once for a batch what a row tells, however often it was drawn",
    .needs = IR_TYPED,
    .breaks = IR_FUSED,
    .run = run,
};
