/* Explanations: how much each value of the data has to do with a prediction, to first order.
 *
 *     @predict                                  @explain
 *       %x = data paper.x                         %x = data paper.x
 *       %y = contract %x, %w             ->       ..
 *       output "pred" (first paper.0 of %y)       %s = sum of the score that is asked about
 *                                                 %g = the gradient of %s by %x
 *                                                 output "paper.x" (reduce sum [F] (mul %g, %x))
 *
 * Gradient times input (Shrikumar et al. 2016), a number for each row of each column: what the
 * runtime adds up by table, path, column and time (runtime/explain/explain.c).  An input is where
 * numbers first come from the data: a column of numbers; the row of a table of parameters that a
 * category chooses, as a whole; the number that is made of a time, a flag or a code.  It is said of
 * the column that it is made of; of several, of the one of its own rows.  The score is
 * one of the row's, the output "explain.output", plus "explain.others" times each of the others, so
 * that a class may be held against the rest.  Behind `serve` and `trim`, whose batch it runs over;
 * what was computed over the whole graph is read as it is, and so are parameters. */
#include "passes/autodiff.h"

#include <string.h>

#include "ir/op/op.h"
#include "passes/rewrite.h"
#include "passes/serve.h"

typedef struct {
    Column *col;    /* of the data that it is made of; NULL: none */
    bool is_number; /* between an input and the score */
    bool leaf;
} Origin;

typedef struct {
    PassCtx *p;
    Module *m;
    Func *f;
    Builder b;
    Origin *from; /* by op id */
    bool *leaf;   /* by op id, as pass_gradients_of wants it */
    Op **grad;
    Span at; /* of the prediction */
} Explain;

/* Reports why a prediction cannot be explained; false. */
static bool refuse(Explain *e, Span at, const char *why) {
    diag_add(e->p->ctx, DIAG_E0517, at, "a prediction of this model cannot be explained: %s", why);
    return false;
}

/* ---- the prediction once more -------- */
/* Whether the walk may enter: the operation is not copied yet. */
static bool is_missing(void *user, const Op *op) {
    (void)user;
    return !op->tag;
}

/* Copies the computation of `root` from another function; NULL after a diagnostic. */
static Op *copy_computation(Explain *e, Func *from, Op *root) {
    func_number(from);
    IrMarks marks = ir_marks_new(e->p->a, from->n_ops);
    IrOps ops = ir_walk(e->p->a, &marks, root, is_missing, NULL);
    Op *copied = NULL;
    bool ok = true;
    for (int i = 0; i < ops.n && ok; i++) {
        Op *op = ops.v[i];
        if (op->kind == OP_LOOP) ok = refuse(e, op->span, "it goes through a 'while'");
        Op proto = *op;
        proto.tag = NULL;
        proto.in = NEWN(e->m->a, Op *, (size_t)op->n_in + 1);
        for (int k = 0; k < op->n_in; k++) proto.in[k] = op->in[k]->tag;
        b_like(&e->b, op);
        if (ok) op->tag = copied = b_op(&e->b, &proto);
    }
    for (int i = 0; i < ops.n; i++) ops.v[i]->tag = NULL;
    return ok ? copied : NULL;
}

/* The scalar that is explained: the sum of the prediction, or the selected class minus the others.
 */
static Op *score_of(Explain *e, Op *pred) {
    Builder *b = &e->b;
    const Type *t = &pred->type;
    Op *of = pred;
    if (t->dt != DT_F32 || t->rank < 1 || t->rank > 2) {
        refuse(e, e->at, "of a row it gives neither a number nor a list of numbers");
        return NULL;
    }
    if (t->rank == 2) {
        Op *place = b_cast(b, b_iota(b, t->dim[1]), DT_F32);
        Op *asked = b_input(b, "explain.output", type_scalar(DT_F32));
        Op *others = b_input(b, "explain.others", type_scalar(DT_F32));
        Op *weight = b_select(b, b_binary(b, OP_EQ, place, asked), b_const(b, DT_F32, 1), others);
        of = b_binary(b, OP_MUL, pred, weight);
    }
    return b_reduce(b, RED_SUM, of, of->type.rank, of->type.dim);
}

/* ---- where numbers come from -------- */
/* The only space of rows of a type, or NULL. */
static Space *rows_of(const Type *t) {
    Space *rows = NULL;
    for (int i = 0; i < t->rank; i++)
        if (pass_serve_is_rows(t->dim[i])) rows = rows ? NULL : t->dim[i];
    return rows;
}

/* Whether the type's rows are those of the column. */
static bool has_rows(const Type *t, const Column *c) {
    const Space *rows = rows_of(t);
    return rows && (rows == c->space || rows->prefix_of == c->space);
}

/* The column that the value is computed from; of several, the one over the value's own rows. */
static Column *column_of(const Explain *e, const Op *op) {
    bool chosen = op->map && op->map->kind == MAP_COL;
    Column *c = op->kind == OP_DATA ? op->col : chosen ? op->map->col : NULL;
    for (int i = 0; i < op->n_in; i++) {
        Column *other = e->from[op->in[i]->id].col;
        if (other && (!c || (!has_rows(&op->type, c) && has_rows(&op->type, other)))) c = other;
    }
    return c;
}

/* Whether the operation looks up rows of an embedding table by category. */
static bool is_embedding(const Op *op) {
    return op->kind == OP_GATHER && op->map->kind == MAP_COL && op->in[0]->kind == OP_VAR &&
           op->type.rank == 2;
}

/* The column a value comes from, and whether it is an input: the first place where numbers come
 * from data. */
static Origin origin_of(const Explain *e, const Op *op) {
    Origin s = {.col = column_of(e, op)};
    bool codes = op->kind == OP_DATA || is_embedding(op);
    for (int i = 0; i < op->n_in; i++) {
        const Origin *x = &e->from[op->in[i]->id];
        s.is_number |= x->is_number;
        codes |= x->col && !x->is_number;
    }
    if (op->type.dt != DT_F32) return (Origin){.col = s.col};
    s.leaf = codes && s.col && !s.is_number && rows_of(&op->type);
    s.is_number |= s.leaf;
    return s;
}

/* Finds the inputs of the function. */
static void find_leaves(Explain *e) {
    func_number(e->f);
    size_t n = (size_t)e->f->n_ops + 1;
    e->from = NEWN(e->p->a, Origin, n);
    e->leaf = NEWN(e->p->a, bool, n);
    e->grad = NEWN(e->p->a, Op *, n);
    for (Op *op = e->f->first; op; op = op->next) {
        e->from[op->id] = origin_of(e, op);
        e->leaf[op->id] = e->from[op->id].leaf;
    }
}

/* ---- what is told -------- */
/* The attribution of each row: gradient times input, summed over the row. A missing number (NaN)
 * has none. */
static Op *attribution_of(Explain *e, Op *x, Op *g) {
    Builder *b = &e->b;
    Space *over[MAX_RANK], *rows = rows_of(&x->type);
    int n = 0;
    bool sparse = x->type.layout == LAYOUT_CSR;
    Op *share = b_binary(b, OP_MUL, x, g);
    if (!sparse) share = b_select(b, b_unary(b, OP_ISNAN, x), ad_zeros(b, &x->type), share);
    for (int i = 0; i < share->type.rank; i++)
        if (share->type.dim[i] != rows) over[n++] = share->type.dim[i];
    return n ? b_reduce(b, RED_SUM, share, n, over) : share;
}

typedef struct {
    Column *col;
    Space *rows;
    Op *sum;
} Attribution;

typedef VEC(Attribution) Shares;

/* Adds an attribution; those of one column are summed. */
static void add_attribution(Explain *e, Shares *all, Column *col, Op *share) {
    for (int i = 0; i < all->n; i++) {
        Attribution *to = &all->v[i];
        if (to->col != col || to->rows != share->type.dim[0]) continue;
        to->sum = b_binary(&e->b, OP_ADD, to->sum, share);
        return;
    }
    vec_push(e->p->a, all, ((Attribution){col, share->type.dim[0], share}));
}

/* Adds the output of an attribution. */
static void emit_attribution(Explain *e, const Attribution *s) {
    const char *of = arena_printf(e->m->a, "%s.%s", s->col->space->name, s->col->name), *name = of;
    for (int k = 2; func_output(e->f, name); k++) name = arena_printf(e->m->a, "%s.%d", of, k);
    b_like(&e->b, s->sum);
    b_output_as(&e->b, name, (OutputUse){.role = OUT_SHARE, .of = of}, s->sum);
}

/* Whether the column has an attribution. */
static bool has_attribution(const Shares *all, const Column *col) {
    for (int i = 0; i < all->n; i++)
        if (all->v[i].col == col) return true;
    return false;
}

/* Adds the outputs of all attributions. */
static void emit_attributions(Explain *e, const Op *last) {
    Shares all = {0};
    for (Op *op = e->f->first; op != last->next; op = op->next) {
        if (!e->leaf[op->id] || !e->grad[op->id]) continue;
        b_like(&e->b, op);
        add_attribution(e, &all, e->from[op->id].col, attribution_of(e, op, e->grad[op->id]));
    }
    for (int i = 0; i < all.n; i++) emit_attribution(e, &all.v[i]);
    for (const Op *op = e->f->first; op != last->next; op = op->next)
        if (op->kind == OP_DATA && !has_attribution(&all, op->col))
            pass_declined(e->p, op->span, "explain",
                          "no share of '%s.%s': no number of it reaches the score",
                          op->col->space->name, op->col->name);
    pass_remark(e->p, e->b.span, "explain", "shares of %d columns", all.n);
}

/* Runs the pass: makes the function @explain of @predict: the score of the prediction, its
 * gradients by the inputs and the attributions made of them. */
static bool run(PassCtx *p, Module *m) {
    Func *predict = func_of(m, PHASE_PREDICT);
    Op *out = predict ? func_output_of(predict, OUT_PRED) : NULL;
    if (!out || func_of(m, PHASE_EXPLAIN)) return true;
    Explain e = {.p = p, .m = m, .f = func_new_phase(m, PHASE_EXPLAIN), .at = out->span};
    e.b = (Builder){.m = m, .f = e.f, .span = out->span};
    Op *pred = copy_computation(&e, predict, out->in[0]);
    b_like(&e.b, out);
    Op *score = pred ? score_of(&e, pred) : NULL;
    if (!score) return false;
    find_leaves(&e);
    if (!pass_gradients_of(p, m, e.f, score, e.leaf, e.grad)) return false;
    b_like(&e.b, out);
    b_output(&e.b, "explain.score", score);
    emit_attributions(&e, score);
    pass_dce_func(p->a, e.f);
    return true;
}

const Pass pass_explain = {
    .name = "explain",
    .summary = "add what the data's values have to do with a prediction",
    .needs = IR_TYPED,
    .breaks = IR_FUSED,
    .run = run,
    .required = true,
};
