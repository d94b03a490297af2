/* Shares of a node's sum: the node is divided once, not each of its entries.
 *
 *     %l = segment sum dst %y                     %l = segment sum dst %y       %y = exp ..
 *     %q = gather dst %l            [e]           %r = select (%l = 0) 0 (1 / %l)            [v]
 *     %p = div %y, %q               [e]           %m = mul %y, %a
 *     %m = mul %p, %a               [e, K]   ->   %s = segment sum dst %m
 *     %h = segment sum dst %m       [v, K]        %h = mul %s, %r               [v, K]
 *
 * A softmax over the entries of a node divides each by one number of the node.  Where the shares
 * are weights of a sum over the same entries, it comes after the sum, which then does not wait
 * for %l: both are made in one walk (codegen/lower/lower_group.c) with one exponential per entry
 * instead of two.  In the backward a share is e^(x - (m + log l)), and the gradient of the
 * logits the share times what differs: the node keeps m + log l alone.  As in Dao et al. 2022,
 * "FlashAttention", algorithms 1 and 4.
 *
 * Only of a softmax, whose exponents have the node's largest taken off: with any entry %l is at
 * least 1, so 0 means a node without entries, whose sums are 0, and no sum outgrows its entries. */
#include "passes/rewrite.h"

/* What was built for a sum, hung on its tag. An inverse has a tag, too, that names the sum. */
typedef struct {
    Op *inverse;
    Op *log; /* m + its logarithm */
    Op *sum;
} DivisionFact;

typedef struct {
    PassCtx *p;
    Builder b;
} Shares;

/* The fact of an operation, created if necessary. */
static DivisionFact *fact_of(Shares *s, Op *op) {
    if (!op->tag) op->tag = NEW(s->p->a, DivisionFact);
    return op->tag;
}

/* Whether the operation is a floating-point segment sum. */
static bool is_sum(const Op *op) {
    return op->kind == OP_SEGMENT && op->red == RED_SUM && dtype_is_float(op->type.dt);
}

/* Whether y is exp(x - m[dst]), with m the maximum of x per node. */
static bool is_shifted(const Op *y, const Map *map, Op **x, Op **m) {
    const Op *d = y->kind == OP_EXP ? y->in[0] : NULL;
    if (!d || d->kind != OP_SUB || !type_eq(&d->type, &d->in[0]->type)) return false;
    *x = d->in[0];
    if (d->in[1]->kind != OP_GATHER || d->in[1]->map != map) return false;
    *m = d->in[1]->in[0];
    const Op *top = (*m)->kind == OP_DETACH ? (*m)->in[0] : *m;
    return top->kind == OP_SEGMENT && top->red == RED_MAX && top->map == map && top->in[0] == *x;
}

/* Whether the operation is a sum of exponentials. */
bool pass_is_softmax_sum(const Op *op) {
    bool sum = op->kind == OP_SEGMENT || op->kind == OP_REDUCE;
    return sum && op->red == RED_SUM && op->in[0]->kind == OP_EXP;
}

/* Whether the operation is the sum of a softmax whose maximum was subtracted. */
static bool is_shifted_sum(const Op *op) {
    Op *x, *m;
    return is_sum(op) && pass_is_softmax_sum(op) && is_shifted(op->in[0], op->map, &x, &m) &&
           type_eq(&m->type, &op->type);
}

/* The sum by which each entry is divided, over the same map; NULL: op is no such division. */
static Op *divided_by(const Op *op) {
    const Op *g = op->kind == OP_DIV ? op->in[1] : NULL;
    if (!g || g->kind != OP_GATHER || !type_eq(&op->type, &op->in[0]->type)) return NULL;
    return is_shifted_sum(g->in[0]) && g->in[0]->map == g->map ? g->in[0] : NULL;
}

/* l of select(l = 0, 0, x / l), as `reuse-dot-sums` leaves it at a node; else NULL. */
static Op *divided_at_node(const Op *op, Op **x) {
    double zero = 1;
    const Op *is = op->kind == OP_SELECT ? op->in[0] : NULL, *q = is ? op->in[2] : NULL;
    if (!is || is->kind != OP_EQ || q->kind != OP_DIV) return NULL;
    Op *l = q->in[1];
    *x = q->in[0];
    if (is->in[0] != l || !pass_is_const(is->in[1], &zero) || zero != 0) return NULL;
    if (!pass_is_const(op->in[1], &zero) || zero != 0 || !is_shifted_sum(l)) return NULL;
    return type_eq(&(*x)->type, &op->type) ? l : NULL;
}

/* The inverse of a node's sum, 0 for a node without entries. */
static Op *inverse_of(Shares *s, Op *l) {
    Builder *b = &s->b;
    if (fact_of(s, l)->inverse) return fact_of(s, l)->inverse;
    b->at = l->next;
    b_like(b, l);
    Op *zero = b_const(b, l->type.dt, 0), *one = b_const(b, l->type.dt, 1);
    Op *none = b_binary(b, OP_EQ, l, zero);
    Op *r = b_select(b, none, zero, b_binary(b, OP_DIV, one, l));
    fact_of(s, r)->sum = l;
    return fact_of(s, l)->inverse = r;
}

/* Replaces an operation. */
static void replace(Shares *s, Op *op, Op *with) {
    with->hint = op->hint;
    op_replace_uses(s->b.f, op, with);
}

/* ---- weights of a sum over the same entries ---------------------------------------------- */

enum { FACTORS_MAX = 12 };

/* Collects the factors of a product; false: there are more than FACTORS_MAX. */
static bool factors_of(Op *op, int depth, Op **v, int *n) {
    if (op->kind == OP_MUL) /* one as deep as that has more */
        return depth < FACTORS_MAX && factors_of(op->in[0], depth + 1, v, n) &&
               factors_of(op->in[1], depth + 1, v, n);
    if (*n == FACTORS_MAX) return false;
    v[(*n)++] = op;
    return true;
}

/* The one division by a sum over the map among the factors of op; NULL: there is none, or several
 * (*found). */
static Op *find_division(Op *op, const Map *map, int *found) {
    Op *v[FACTORS_MAX], *division = NULL;
    int n = 0;
    *found = 0;
    if (!factors_of(op, 0, v, &n)) return NULL;
    for (int i = 0; i < n; i++) {
        const Op *l = divided_by(v[i]);
        if (!l || l->map != map) continue;
        division = v[i];
        ++*found;
    }
    return *found == 1 ? division : NULL;
}

/* The product op without the division. */
static Op *undivided(Builder *b, Op *op, const Op *division) {
    if (op == division) return op->in[0];
    if (op->kind != OP_MUL) return op;
    Op *in[] = {undivided(b, op->in[0], division), undivided(b, op->in[1], division)};
    if (in[0] == op->in[0] && in[1] == op->in[1]) return op;
    b_like(b, op);
    return b_op(b, &(Op){.kind = OP_MUL, .n_in = 2, .in = in, .type = op->type, .hint = op->hint});
}

/* Whether all spaces of x are spaces of y. */
static bool is_within(const Type *x, const Type *y) {
    for (int i = 0; i < x->rank; i++)
        if (!type_has(y, x->dim[i])) return false;
    return true;
}

/* Divides the sum instead of its entries, if one factor of the entries is such a division. */
static bool divide_after(Shares *s, Op *sum) {
    Builder *b = &s->b;
    int n;
    Op *division = find_division(sum->in[0], sum->map, &n),
       *l = division ? divided_by(division) : NULL;
    if (n > 1)
        pass_refusal(s->p, sum->span, "late-division",
                     "the entries of '%s' are divided, by %d sums", pass_named(sum), n);
    if (!l || !is_within(&l->type, &sum->type) || !pass_may_rewrite(s->p)) return false;
    Op *r = inverse_of(s, l);
    b->at = sum->next;
    Op *x = undivided(b, sum->in[0], division);
    b_like(b, sum);
    Op *y = b_segment(b, RED_SUM, sum->map, x);
    replace(s, sum, b_binary(b, OP_MUL, y, r));
    pass_remark(s->p, sum->span, "late-division", "the sum over %s is divided, not its entries",
                sum->map->from->name);
    return true;
}

/* ---- elsewhere ---------------------------------------------------------------------------- */

/* y / l as e^(x - (m + log l)), so that a node keeps one number; NULL: it is no softmax. */
static Op *softmax_of(Shares *s, Op *y, Op *l) {
    Builder *b = &s->b;
    Op *x, *m, *at = b->at;
    if (l->in[0] != y || !is_shifted(y, l->map, &x, &m) || !type_eq(&m->type, &l->type))
        return NULL;
    DivisionFact *of = fact_of(s, l);
    if (!of->log) {
        b->at = l->next;
        of->log = b_binary(b, OP_ADD, m, b_unary(b, OP_LOG, l));
        b->at = at;
    }
    return b_unary(b, OP_EXP, b_binary(b, OP_SUB, x, b_gather(b, l->map, of->log)));
}

/* Rewrites the gradient of a softmax's logits: y (c / l - d / l) = y / l (c - d), d being one
 * number per node. */
static bool rewrite_gradient(Shares *s, Op *op) {
    Builder *b = &s->b;
    for (int i = 0; op->kind == OP_MUL && i < 2; i++) {
        Op *y = op->in[i], *sum = op->in[1 - i];
        for (int k = 0; sum->kind == OP_ADD && k < 2; k++) {
            Op *q = sum->in[k], *g = sum->in[1 - k], *l = divided_by(q);
            bool node = l && g->kind == OP_GATHER && g->map == l->map && g->in[0]->kind == OP_NEG;
            Op *d = NULL;
            if (!node || divided_at_node(g->in[0]->in[0], &d) != l) continue;
            if (!type_eq(&sum->type, &q->type) || !type_eq(&op->type, &y->type)) continue;
            b->at = op->next;
            b_like(b, op);
            Op *share = softmax_of(s, y, l);
            if (!share) continue;
            Op *rest = b_binary(b, OP_SUB, q->in[0], b_gather(b, l->map, d));
            replace(s, op, b_binary(b, OP_MUL, share, rest));
            return true;
        }
    }
    return false;
}

/* Rewrites a division at a node as a product with the inverse. */
static bool rewrite_node(Shares *s, Op *op) {
    Op *x, *l = divided_at_node(op, &x);
    if (!l || fact_of(s, op)->sum) return false;
    Op *r = inverse_of(s, l);
    s->b.at = op->next;
    b_like(&s->b, op);
    replace(s, op, b_binary(&s->b, OP_MUL, x, r));
    return true;
}

/* Rewrites a division of entries as a softmax, or as a product with the inverse. */
static bool rewrite_entries(Shares *s, Op *op) {
    Op *l = divided_by(op);
    if (!l) return false;
    s->b.at = op->next;
    b_like(&s->b, op);
    Op *share = softmax_of(s, op->in[0], l);
    if (!share) {
        Op *r = inverse_of(s, l);
        s->b.at = op->next;
        b_like(&s->b, op);
        share = b_binary(&s->b, OP_MUL, op->in[0], b_gather(&s->b, l->map, r));
    }
    replace(s, op, share);
    return true;
}

/* Rewrites a function. */
static void run_func(Shares *s) {
    Func *f = s->b.f;
    bool changed = false;
    pass_dce_func(s->p->a, f); /* nothing is made for what nobody reads */
    func_keep_users(s->p->a, f);
    for (Op *op = f->first; op; op = op->next)
        if (is_sum(op)) changed |= divide_after(s, op);
    for (Op *op = f->first; changed && op; op = op->next) rewrite_gradient(s, op);
    for (Op *op = f->first; changed && op; op = op->next)
        if (!rewrite_node(s, op)) rewrite_entries(s, op);
    pass_dce_func(s->p->a, f);
}

static bool run(PassCtx *p, Module *m) {
    for (int i = 0; i < m->funcs.n; i++)
        run_func(&(Shares){.p = p, .b = {.m = m, .f = m->funcs.v[i]}});
    return true;
}

const Pass pass_late_division = {
    .name = "late-division",
    .summary = "a softmax's division after the sum that it weighs",
    .needs = IR_TYPED,
    .breaks = IR_FUSED,
    .run = run,
};
