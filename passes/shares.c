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
 * for %l: both are made in one walk (codegen/lower_group.c) with one exponential per entry
 * instead of two.  In the backward a share is e^(x - (m + log l)), and the gradient of the
 * logits the share times what differs: the node keeps m + log l alone.  As in Dao et al. 2022,
 * "FlashAttention", algorithms 1 and 4.
 *
 * Only where %l sums exponentials, so that 0 means a node without entries, whose sums are 0. */
#include "passes/rewrite.h"

typedef struct {
    Op *sum, *inverse;
} Inverse;

typedef struct {
    PassCtx *p;
    Builder b;
    VEC(Inverse) inverses; /* that are there: of sums, */
    VEC(Inverse) logs;     /* .. and m + log of them */
} Shares;

static bool is_sum(const Op *op) {
    return op->kind == OP_SEGMENT && op->red == RED_SUM && dtype_is_float(op->type.dt);
}

static bool is_softmax_sum(const Op *op) {
    return is_sum(op) && op->in[0]->kind == OP_EXP;
}

/* Entries divided by their node's sum over the same map: that sum, else NULL. */
static Op *divided_by(const Op *op) {
    const Op *g = op->kind == OP_DIV ? op->in[1] : NULL;
    if (!g || g->kind != OP_GATHER || !type_eq(&op->type, &op->in[0]->type)) return NULL;
    return is_softmax_sum(g->in[0]) && g->in[0]->map == g->map ? g->in[0] : NULL;
}

static Op *inverse_of(Shares *s, Op *l) {
    Builder *b = &s->b;
    for (int i = 0; i < s->inverses.n; i++)
        if (s->inverses.v[i].sum == l) return s->inverses.v[i].inverse;
    b->at = l->next;
    b->span = l->span;
    Op *zero = b_const(b, l->type.dt, 0), *one = b_const(b, l->type.dt, 1);
    Op *none = b_binary(b, OP_EQ, l, zero);
    Op *r = b_select(b, none, zero, b_binary(b, OP_DIV, one, l));
    vec_push(s->p->a, &s->inverses, ((Inverse){l, r}));
    return r;
}

static void replace(Shares *s, Op *op, Op *with) {
    with->hint = op->hint;
    op_replace_uses(s->b.f, op, with);
}

/* ---- weights of a sum over the same entries ---------------------------------------------- */

/* The division by a sum over map among the factors of op. */
static Op *find_share(Op *op, const Map *map) {
    const Op *l = divided_by(op);
    if (l) return l->map == map ? op : NULL;
    Op *found = NULL;
    for (int i = 0; op->kind == OP_MUL && i < 2 && !found; i++) found = find_share(op->in[i], map);
    return found;
}

/* The product op without that division. */
static Op *undivided(Builder *b, Op *op, const Op *share) {
    if (op == share) return op->in[0];
    if (op->kind != OP_MUL) return op;
    Op *in[] = {undivided(b, op->in[0], share), undivided(b, op->in[1], share)};
    if (in[0] == op->in[0] && in[1] == op->in[1]) return op;
    b->span = op->span;
    return b_op(b, &(Op){.kind = OP_MUL, .n_in = 2, .in = in, .type = op->type, .hint = op->hint});
}

static bool is_within(const Type *x, const Type *y) {
    for (int i = 0; i < x->rank; i++)
        if (!type_has(y, x->dim[i])) return false;
    return true;
}

static bool divide_after(Shares *s, Op *sum) {
    Builder *b = &s->b;
    Op *share = find_share(sum->in[0], sum->map), *l = share ? divided_by(share) : NULL;
    if (!l || !is_within(&l->type, &sum->type)) return false;
    Op *r = inverse_of(s, l);
    b->at = sum->next;
    Op *y = b_segment(b, RED_SUM, sum->map, undivided(b, sum->in[0], share));
    b->span = sum->span;
    replace(s, sum, b_binary(b, OP_MUL, y, r));
    pass_remark(s->p, sum->span, "shares", "the sum over %s is divided, not its entries",
                sum->map->from->name);
    return true;
}

/* ---- elsewhere ---------------------------------------------------------------------------- */

/* e^(x - m) for the entries of a node whose m is gathered along map: x, and m. */
static bool is_shifted(const Op *y, const Map *map, Op **x, Op **m) {
    const Op *d = y->kind == OP_EXP ? y->in[0] : NULL;
    if (!d || d->kind != OP_SUB || !type_eq(&d->type, &d->in[0]->type)) return false;
    if (d->in[1]->kind != OP_GATHER || d->in[1]->map != map) return false;
    *x = d->in[0], *m = d->in[1]->in[0];
    return true;
}

/* y / l = e^(x - m) / l = e^(x - (m + log l)): a node keeps one number, m + log l. */
static Op *share_of(Shares *s, Op *y, Op *l) {
    Builder *b = &s->b;
    Op *x, *m, *at = b->at;
    if (l->in[0] != y || !is_shifted(y, l->map, &x, &m) || !type_eq(&m->type, &l->type))
        return NULL;
    Op *all = NULL;
    for (int i = 0; i < s->logs.n && !all; i++)
        if (s->logs.v[i].sum == l) all = s->logs.v[i].inverse;
    if (!all) {
        b->at = l->next;
        all = b_binary(b, OP_ADD, m, b_unary(b, OP_LOG, l));
        vec_push(s->p->a, &s->logs, ((Inverse){l, all}));
        b->at = at;
    }
    return b_unary(b, OP_EXP, b_binary(b, OP_SUB, x, b_gather(b, l->map, all)));
}

/* select(l = 0, 0, x / l), negated: x */
static Op *negated_at_node(const Op *op, const Op *l) {
    double zero = 1;
    const Op *c = op->kind == OP_NEG ? op->in[0] : NULL;
    if (!c || c->kind != OP_SELECT || c->in[2]->kind != OP_DIV || c->in[2]->in[1] != l) return NULL;
    if (!pass_is_const(c->in[1], &zero) || zero != 0) return NULL;
    Op *x = c->in[2]->in[0];
    return type_eq(&x->type, &op->type) ? x : NULL;
}

/* y (c / l - d / l) = y / l (c - d): the gradient of a softmax's logits; d: one for each node. */
static bool at_gradient(Shares *s, Op *op) {
    Builder *b = &s->b;
    for (int i = 0; op->kind == OP_MUL && i < 2; i++) {
        Op *y = op->in[i], *sum = op->in[1 - i];
        for (int k = 0; sum->kind == OP_ADD && k < 2; k++) {
            Op *q = sum->in[k], *g = sum->in[1 - k], *l = divided_by(q);
            bool node = l && g->kind == OP_GATHER && g->map == l->map;
            Op *d = node ? negated_at_node(g->in[0], l) : NULL;
            if (!d || !type_eq(&sum->type, &q->type) || !type_eq(&op->type, &y->type)) continue;
            b->at = op->next;
            b->span = op->span;
            Op *share = share_of(s, y, l);
            if (!share) continue;
            Op *rest = b_binary(b, OP_SUB, q->in[0], b_gather(b, l->map, d));
            replace(s, op, b_binary(b, OP_MUL, share, rest));
            return true;
        }
    }
    return false;
}

/* select(l = 0, 0, x / l): what `dots` leaves. */
static bool at_node(Shares *s, Op *op) {
    double zero = 1;
    if (op->kind != OP_SELECT || !pass_is_const(op->in[1], &zero) || zero != 0) return false;
    Op *is = op->in[0], *q = op->in[2], *l = q->kind == OP_DIV ? q->in[1] : NULL;
    if (!l || !is_softmax_sum(l) || is->kind != OP_EQ || is->in[0] != l) return false;
    if (!pass_is_const(is->in[1], &zero) || zero != 0 || !type_eq(&q->in[0]->type, &op->type))
        return false;
    for (int i = 0; i < s->inverses.n; i++)
        if (s->inverses.v[i].inverse == op) return false;
    Op *r = inverse_of(s, l);
    s->b.at = op->next;
    s->b.span = op->span;
    replace(s, op, b_binary(&s->b, OP_MUL, q->in[0], r));
    return true;
}

static bool at_entries(Shares *s, Op *op) {
    Op *l = divided_by(op);
    if (!l) return false;
    s->b.at = op->next;
    s->b.span = op->span;
    Op *share = share_of(s, op->in[0], l);
    if (!share) {
        Op *r = inverse_of(s, l);
        s->b.at = op->next;
        s->b.span = op->span;
        share = b_binary(&s->b, OP_MUL, op->in[0], b_gather(&s->b, l->map, r));
    }
    replace(s, op, share);
    return true;
}

static bool run(PassCtx *p, Module *m) {
    for (int i = 0; i < m->funcs.n; i++) {
        Shares s = {.p = p, .b = {.m = m, .f = m->funcs.v[i]}};
        bool changed = false;
        for (Op *op = s.b.f->first; op; op = op->next)
            if (is_sum(op)) changed |= divide_after(&s, op);
        if (!changed) continue;
        pass_dce_func(p->a, s.b.f);
        for (Op *op = s.b.f->first; op; op = op->next) at_gradient(&s, op);
        pass_dce_func(p->a, s.b.f);
        for (Op *op = s.b.f->first; op; op = op->next)
            if (!at_node(&s, op)) at_entries(&s, op);
        pass_dce_func(p->a, s.b.f);
    }
    return true;
}

const Pass pass_shares = {
    .name = "shares",
    .summary = "a softmax's division after the sum that it weighs",
    .needs = IR_TYPED,
    .breaks = IR_FUSED,
    .run = run,
};
