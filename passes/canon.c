/* Canonical form: constants folded, identities removed, one spelling of each thing.
 *
 *     %1 = mul %x 1
 *     %2 = neg %y             ->      %3 = sub %x %y
 *     %3 = add %1 %2
 *
 * Rules are local: a rule looks at one operation and its operands and answers with the
 * value that replaces it.  Operands come first, so one walk lets rules build on each
 * other; the walk repeats while something changes.  Every rule is exact in floating point
 * (up to the sign of a zero), with one exception: a term with the literal coefficient 0 is
 * dropped, even though 0 * inf is not 0 -- that is what a recipe that says
 * `-D weight_decay=0` means. */
#include "passes/rewrite.h"

#include "ir/op/elementwise.h"

#include <math.h>
#include <string.h>

typedef struct {
    PassCtx *p;
    Builder b;
    bool no_grad_below; /* gradients exist already: detach has done its work */
    bool changed;
    int n_simple[N_OPS]; /* that were replaced in a function */
    PassOps simple;
} Canon;

/* ---- recognising ------------------------------------------------------------------------- */
/* Whether the operation is the given constant. */
static bool is_value(const Op *op, double want) {
    double v;
    return pass_is_const(op, &v) && v == want;
}

/* Whether the operation is of the kind. */
static bool is_kind(const Op *op, OpKind k) {
    return op->kind == k;
}

/* ---- answering ------------------------------------------------------------------------------ */
/* x as a value of op's type: it may lack spaces or have them in another order. NULL if that is
 * impossible. */
static Op *broadcast_as(Canon *c, const Op *op, Op *x) {
    if (type_eq(&op->type, &x->type)) return x;
    if (op->type.layout == LAYOUT_CSR || op->type.dt != x->type.dt) return NULL;
    return b_copy(&c->b, x, op->type);
}

/* A constant of op's type. */
static Op *constant_like(Canon *c, const Op *op, double v) {
    if (op->type.layout == LAYOUT_CSR) return NULL;
    return broadcast_as(c, op, b_const(&c->b, op->type.dt, v));
}

/* A new operation of op's type with other operands. */
static Op *with_operands(Canon *c, const Op *op, OpKind k, int n, Op *const *in) {
    Op proto = {.kind = k, .type = op->type, .n_in = n, .hint = op->hint};
    proto.in = (Op **)in;
    return b_op(&c->b, &proto);
}

/* A unary operation of op's type. */
static Op *make_unary(Canon *c, const Op *op, OpKind k, Op *x) {
    return with_operands(c, op, k, 1, (Op *[]){x});
}

/* A binary operation of op's type. */
static Op *make_binary(Canon *c, const Op *op, OpKind k, Op *x, Op *y) {
    return with_operands(c, op, k, 2, (Op *[]){x, y});
}

/* A scalar constant of the operand's element type. */
static Op *make_scalar(Canon *c, const Op *like, double v) {
    return b_const(&c->b, like->type.dt, v);
}

/* A number, rounded to the element type. */
static double round_to(DType dt, double v) {
    return dt == DT_F32 ? (double)(float)v : v;
}

/* ---- folding -------- */
/* The constant that an elementwise operation on constants computes; NULL: it has other operands. */
static Op *fold_constants(Canon *c, const Op *op) {
    double v[3];
    if (!op_has(op, OPT_ELEM) || op->kind == OP_COPY || op->n_in > 3) return NULL;
    if (op->type.dt == DT_F16 || op->type.dt == DT_BF16) return NULL;
    for (int i = 0; i < op->n_in; i++)
        if (!pass_is_const(op->in[i], &v[i])) return NULL;
    return constant_like(c, op, round_to(op->type.dt, op_elementwise_apply(op, v)));
}

/* Whether the operation needs the broadcast of operand `which`: one of its own spaces comes from
 * nowhere else. */
static bool needs_copy(const Op *op, int which) {
    for (int i = 0; i < op->type.rank; i++) {
        bool found = false;
        for (int k = 0; k < op->n_in && !found; k++) {
            const Op *x = k == which ? op->in[k]->in[0] : op->in[k];
            found = type_has(&x->type, op->type.dim[i]);
        }
        if (!found) return true;
    }
    return false;
}

/* Whether, without that broadcast, one operand still has all data spaces, as the type inference
 * requires. */
static bool infers_without(const Op *op, int which) {
    for (int k = 0; k < op->n_in; k++) {
        const Op *x = k == which ? op->in[k]->in[0] : op->in[k];
        bool all = true;
        for (int i = 0; i < op->type.rank; i++)
            all &= op->type.dim[i]->kind == SP_DIM || type_has(&x->type, op->type.dim[i]);
        if (all) return true;
    }
    return false;
}

/* Replaces operands that are broadcasts by what they broadcast. */
static void skip_broadcasts(Canon *c, Op *op) {
    if (!op_has(op, OPT_ELEM) || op->kind == OP_COPY) return;
    for (int i = 0; i < op->n_in; i++) {
        Op *x = op->in[i];
        if (x->kind != OP_COPY || x->in[0]->type.layout == LAYOUT_CSR) continue;
        if (pass_is_transpose(x)) continue; /* made on purpose: rows stay together */
        if (needs_copy(op, i) || !infers_without(op, i)) continue;
        op->in[i] = x->in[0];
        c->changed = true;
    }
}

/* ---- rules, by kind -------- */
/* x + 0, x + -y. */
static Op *simplify_add(Canon *c, const Op *op) {
    Op *x = op->in[0], *y = op->in[1];
    if (is_value(y, 0)) return broadcast_as(c, op, x);
    if (is_value(x, 0)) return broadcast_as(c, op, y);
    if (is_kind(y, OP_NEG)) return make_binary(c, op, OP_SUB, x, y->in[0]);
    if (is_kind(x, OP_NEG)) return make_binary(c, op, OP_SUB, y, x->in[0]);
    return NULL;
}

/* x - 0, 0 - x, x - -y. */
static Op *simplify_sub(Canon *c, const Op *op) {
    Op *x = op->in[0], *y = op->in[1];
    if (is_value(y, 0)) return broadcast_as(c, op, x);
    if (is_value(x, 0) && type_eq(&op->type, &y->type)) return make_unary(c, op, OP_NEG, y);
    if (is_kind(y, OP_NEG)) return make_binary(c, op, OP_ADD, x, y->in[0]);
    return NULL;
}

/* A condition cast to a number and multiplied by v, as a select. */
static Op *scaled_condition(Canon *c, const Op *op, const Op *x, double v) {
    if (x->kind != OP_CAST || x->in[0]->type.dt != DT_I1 || op->type.layout == LAYOUT_CSR)
        return NULL;
    if (!isfinite(v) || !type_eq(&op->type, &x->type)) return NULL;
    Op *in[] = {x->in[0], make_scalar(c, op, v), make_scalar(c, op, 0)};
    return with_operands(c, op, OP_SELECT, 3, in);
}

/* x * 1, x * 0, x * -1, a condition times a constant. */
static Op *simplify_mul(Canon *c, const Op *op) {
    for (int i = 0; i < 2; i++) {
        Op *x = op->in[i], *y = op->in[1 - i];
        double v;
        if (pass_is_const(y, &v) && v != 0 && v != 1) {
            Op *s = scaled_condition(c, op, x, v);
            if (s) return s;
        }
        if (is_value(y, 1)) return broadcast_as(c, op, x);
        if (is_value(y, 0)) return constant_like(c, op, 0);
        if (is_value(y, -1) && type_eq(&op->type, &x->type)) return make_unary(c, op, OP_NEG, x);
    }
    return NULL;
}

/* Whether 1/v is exact: v is a power of two. */
static bool has_exact_reciprocal(double v) {
    int e;
    return v != 0 && fabs(frexp(v, &e)) == 0.5 && e > -100 && e < 100;
}

/* x / 1, x / -1, x / 2^k. */
static Op *simplify_div(Canon *c, const Op *op) {
    Op *x = op->in[0];
    double v;
    if (!dtype_is_float(op->type.dt) || !pass_is_const(op->in[1], &v)) return NULL;
    if (v == 1) return broadcast_as(c, op, x);
    if (v == -1 && type_eq(&op->type, &x->type)) return make_unary(c, op, OP_NEG, x);
    Op *s = v != 0 ? scaled_condition(c, op, x, round_to(op->type.dt, 1 / v)) : NULL;
    if (s) return s;
    if (!has_exact_reciprocal(v) || !type_eq(&op->type, &x->type)) return NULL;
    return make_binary(c, op, OP_MUL, x, make_scalar(c, x, 1 / v));
}

/* x^1, x^2, and the like. */
static Op *simplify_pow(Canon *c, const Op *op) {
    Op *x = op->in[0];
    double v;
    if (!pass_is_const(op->in[1], &v) || !type_eq(&op->type, &x->type)) return NULL;
    if (v == 1) return x;
    if (v == 2) return make_binary(c, op, OP_MUL, x, x);
    if (v == 0.5) return make_unary(c, op, OP_SQRT, x);
    if (v == -0.5) return make_unary(c, op, OP_RSQRT, x);
    if (v == -1) return make_binary(c, op, OP_DIV, make_scalar(c, x, 1), x);
    return NULL;
}

/* A select with a constant condition, or of two equal values. */
static Op *simplify_select(Canon *c, const Op *op) {
    double v;
    if (pass_is_const(op->in[0], &v)) return broadcast_as(c, op, op->in[v != 0 ? 1 : 2]);
    return op->in[1] == op->in[2] ? broadcast_as(c, op, op->in[1]) : NULL;
}

/* max(x, x) and the like. */
static Op *simplify_equal_operands(Canon *c, const Op *op) {
    return op->in[0] == op->in[1] ? broadcast_as(c, op, op->in[0]) : NULL;
}

/* `and` and `or` with a constant. */
static Op *simplify_logical(Canon *c, const Op *op) {
    double neutral = op->kind == OP_AND;
    for (int i = 0; i < 2; i++) {
        if (is_value(op->in[i], neutral)) return broadcast_as(c, op, op->in[1 - i]);
        if (is_value(op->in[i], !neutral)) return constant_like(c, op, !neutral);
    }
    return simplify_equal_operands(c, op);
}

/* -(-x), not not x. */
static Op *simplify_involution(Canon *c, const Op *op) {
    Op *x = op->in[0];
    return x->kind == op->kind ? broadcast_as(c, op, x->in[0]) : NULL;
}

/* A cast to the type that the operand has. */
static Op *simplify_cast(Canon *c, const Op *op) {
    return broadcast_as(c, op, op->in[0]); /* NULL unless the element type is the same */
}

/* A detach, once gradients exist. */
static Op *simplify_detach(Canon *c, const Op *op) {
    return c->no_grad_below ? broadcast_as(c, op, op->in[0]) : NULL;
}

/* Whether x has exactly one use. */
static bool is_used_once(const Canon *c, const Op *x) {
    int n = 0;
    for (const Op *op = c->b.f->first; op; op = op->next)
        for (int i = 0; i < op->n_in; i++) n += op->in[i] == x;
    return n == 1;
}

/* Whether x has the spaces that are summed over, then d, and no other. */
static bool is_sum_of_all_but(const Op *sum, const Op *x, const Space *d) {
    int n = sum->n_over;
    if (x->type.rank != n + 1 || x->type.dim[n] != d) return false;
    for (int i = 0; i < n; i++)
        if (x->type.dim[i] != sum->over[i]) return false;
    return true;
}

/* The transposed copy of a sum as the sum of a transposed product: sum over e of x[e, h] * y[e, k]
 * as [h, k]. The copy goes, and x is computed once per (e, h) instead of once per (e, k, h); y,
 * which is now read that often, is in memory. */
static Op *transposed_sum(Canon *c, const Op *op) {
    Op *sum = op->in[0], *p = sum->kind == OP_REDUCE ? sum->in[0] : NULL;
    if (!p || p->kind != OP_MUL || op->type.rank != 2 || !pass_is_transpose(op)) return NULL;
    for (int i = 0; i < 2; i++) {
        Op *x = p->in[i], *y = p->in[1 - i];
        if (!is_sum_of_all_but(sum, x, op->type.dim[0]) || !op_has(y, OPT_SOURCE)) continue;
        if (type_has(&y->type, op->type.dim[0])) return NULL;
        if (x->type.layout == LAYOUT_CSR || y->type.layout == LAYOUT_CSR) return NULL;
        if (!is_used_once(c, sum)) {
            pass_refusal(c->p, op->span, "canon",
                         "'%s' is copied into another order: the sum is read as it is, too",
                         pass_named(sum));
            return NULL;
        }
        return b_reduce(&c->b, sum->red, b_binary(&c->b, OP_MUL, x, y), sum->n_over, sum->over);
    }
    return NULL;
}

/* A copy of a copy, a copy without effect, a transposed sum. */
static Op *simplify_copy(Canon *c, const Op *op) {
    Op *x = op->in[0];
    if (type_eq(&op->type, &x->type)) return x;
    Op *y = transposed_sum(c, op);
    if (y) return y;
    return x->kind == OP_COPY ? b_copy(&c->b, x->in[0], op->type) : NULL;
}

/* A view of a view, a view without effect. */
static Op *simplify_view(Canon *c, const Op *op) {
    Op *x = op->in[0];
    if (type_eq(&op->type, &x->type)) return x;
    return x->kind == OP_VIEW ? b_view(&c->b, x->in[0], op->type) : NULL;
}

/* A gather from a constant, each element of which is the same. */
static Op *simplify_gather(Canon *c, const Op *op) {
    double v;
    if (map_is_partial(op->map) || !pass_is_const(op->in[0], &v)) return NULL;
    return constant_like(c, op, v);
}

/* A slice of everything. */
static Op *simplify_slice(Canon *c, const Op *op) {
    return type_eq(&op->type, &op->in[0]->type) ? broadcast_as(c, op, op->in[0]) : NULL;
}

/* The size of a space that is a constant. */
static Op *simplify_size(Canon *c, const Op *op) {
    int64_t n;
    if (!expr_is_const(op->over[0]->size, &n)) return NULL;
    return constant_like(c, op, round_to(op->type.dt, (double)n));
}

/* A reduction over no space. */
static Op *simplify_reduce(Canon *c, const Op *op) {
    return op->n_over == 0 ? broadcast_as(c, op, op->in[0]) : NULL;
}

/* Rules by kind: a table, so that a kind without rules costs nothing. */
static Op *(*const rules[N_OPS])(Canon *, const Op *) = {
    [OP_ADD] = simplify_add,
    [OP_SUB] = simplify_sub,
    [OP_MUL] = simplify_mul,
    [OP_DIV] = simplify_div,
    [OP_POW] = simplify_pow,
    [OP_NEG] = simplify_involution,
    [OP_NOT] = simplify_involution,
    [OP_SELECT] = simplify_select,
    [OP_MAX] = simplify_equal_operands,
    [OP_AND] = simplify_logical,
    [OP_OR] = simplify_logical,
    [OP_CAST] = simplify_cast,
    [OP_DETACH] = simplify_detach,
    [OP_COPY] = simplify_copy,
    [OP_VIEW] = simplify_view,
    [OP_GATHER] = simplify_gather,
    [OP_SLICE] = simplify_slice,
    [OP_REDUCE] = simplify_reduce,
    [OP_MIN] = simplify_equal_operands,
    [OP_SIZE] = simplify_size,
};

/* Applies the rules to one operation: the value that replaces it, or NULL. */
static Op *simplify(Canon *c, Op *op) {
    c->b.at = op;
    b_like(&c->b, op);
    skip_broadcasts(c, op);
    Op *y = fold_constants(c, op);
    return y || !rules[op->kind] ? y : rules[op->kind](c, op);
}

/* ---- the pass -------- */
/* A text such as "3 add, 1 mul"; NULL: nothing was counted. */
static const char *counts_text(Arena *a, const int *n) {
    StrBuf b = sb_new(a);
    for (int k = 0; k < N_OPS; k++)
        if (n[k]) sb_printf(&b, "%s%d %s", b.n ? ", " : "", n[k], op_mnemonic((OpKind)k));
    return b.n ? b.s : NULL;
}

/* Adds the remarks about a function. */
static void report_changes(Canon *c, const Func *f, bool stopped) {
    const char *done = counts_text(c->p->a, c->n_simple);
    if (done)
        pass_remark(c->p, f->span, "canon", "@%s: %s are simplified%s", f->name, done,
                    pass_ops_text(c->p, &c->simple));
    if (stopped)
        pass_refusal(c->p, f->span, "canon",
                     "@%s: rules still apply after --canon.max-rounds rounds over it", f->name);
}

/* Simplifies each operation once. The tag of a replaced operation names its replacement. */
static void simplify_all(Canon *c, Func *f) {
    for (Op *op = f->first, *next; op; op = next) {
        next = op->next;
        for (int i = 0; i < op->n_in; i++)
            if (op->in[i]->tag) op->in[i] = op->in[i]->tag;
        if (!op_has(op, OPT_PURE)) continue;
        Op *y = simplify(c, op);
        if (!y || y == op || !pass_may_rewrite(c->p)) continue;
        if (!y->hint) y->hint = op->hint;
        if (!y->ask) y->ask = op->ask;
        op->tag = y;
        c->n_simple[op->kind]++;
        pass_ops_add(c->p, &c->simple, op);
        c->changed = true;
    }
    for (Op *op = f->first; op; op = op->next) op->tag = NULL;
}

/* Runs the pass: simplifies each function until nothing changes, or for at most the threshold's
 * number of rounds. */
static bool run(PassCtx *p, Module *m) {
    Canon c = {.p = p, .b = {.m = m}, .no_grad_below = m->has & IR_GRAD};
    for (int i = 0; i < m->funcs.n; i++) {
        c.b.f = m->funcs.v[i];
        memset(c.n_simple, 0, sizeof c.n_simple);
        c.simple = (PassOps){0};
        int rounds = 0, max_rounds = pass_threshold(p->ctx, PASS_T_CANON_ROUNDS);
        do {
            c.changed = false;
            simplify_all(&c, c.b.f);
            pass_dce_func(p->a, c.b.f);
        } while (c.changed && ++rounds < max_rounds);
        report_changes(&c, c.b.f, c.changed);
    }
    return true;
}

const Pass pass_canon = {
    .name = "canon",
    .summary = "fold constants, remove identities",
    .needs = IR_TYPED,
    .breaks = IR_FUSED,
    .run = run,
};
