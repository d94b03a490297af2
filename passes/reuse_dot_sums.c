/* Sums of products with a row, from the sum that is there.
 *
 *     %m = mul %w, %a                             %m = mul %w, %a
 *     %h = segment sum dst %m       [v, K]        %h = segment sum dst %m       [v, K]
 *     %r = gather dst %g            [e, K]        %p = mul %h, %g               [v, K]
 *     %q = mul %a, %r                      ->     %s = reduce sum [K] %p        [v]
 *     %d = reduce sum [K] %q        [e]
 *     %x = mul %w, %d
 *     %s = segment sum dst %x       [v]
 *
 * since  sum_e w_e (a_e . g) = (sum_e w_e a_e) . g.  The backward of a softmax weighs the
 * gradients of a node's entries by the same weights as the forward weighed the entries, so
 * its sum needs no walk over the entries and no row of each of them: Dao et al. 2022,
 * "FlashAttention", appendix B.2 (D = rowsum(dO * O)); Milakov & Gimelshein 2018.
 *
 * Factors are compared as multisets, seen through mul, div and neg; those that are the same
 * for all entries of a node (gathered along the map itself) may differ between the two sums
 * and are multiplied or divided afterwards.  A node without entries has sum 0, whatever its
 * divisor. */
#include "passes/rewrite.h"

enum { FACTORS_MAX = 12 };

typedef struct {
    Op *num[FACTORS_MAX], *den[FACTORS_MAX];
    int n_num, n_den;
    int depth; /* of the product that is looked through */
    bool negative, overflow;
} Factors;

/* Adds a factor to the numerator or denominator. */
static void add_factor(Factors *f, Op *op, bool below) {
    int *n = below ? &f->n_den : &f->n_num;
    if (*n == FACTORS_MAX)
        f->overflow = true;
    else
        (below ? f->den : f->num)[(*n)++] = op;
}

static void collect_operands(Factors *f, const Op *op, bool below);

/* A product as deep as that has more factors, or none that another one has. */
enum { DEPTH_MAX = 4 * FACTORS_MAX };

/* Collects the factors of op. */
static void collect(Factors *f, Op *op, bool below) {
    bool product = op->kind == OP_MUL || op->kind == OP_DIV || op->kind == OP_NEG;
    f->overflow |= f->depth == DEPTH_MAX;
    if (f->overflow || !product) {
        add_factor(f, op, below);
        return;
    }
    f->depth++;
    collect_operands(f, op, below);
    f->depth--;
}

/* Collects the factors of a product's, quotient's or negation's operands. */
static void collect_operands(Factors *f, const Op *op, bool below) {
    f->negative ^= op->kind == OP_NEG;
    collect(f, op->in[0], below);
    if (op->kind != OP_NEG) collect(f, op->in[1], below ^ (op->kind == OP_DIV));
}

/* The factors of a value. */
static Factors factors_of(Op *op) {
    Factors f = {0};
    collect(&f, op, false);
    return f;
}

/* Removes op from a list; whether it was there. */
static bool remove_factor(Op **v, int *n, const Op *op) {
    for (int i = 0; i < *n; i++)
        if (v[i] == op) {
            v[i] = v[--*n];
            return true;
        }
    return false;
}

/* Removes what both lists have. */
static void cancel(Op **x, int *nx, Op **y, int *ny) {
    for (int i = *nx - 1; i >= 0; i--)
        if (remove_factor(y, ny, x[i])) x[i] = x[--*nx];
}

/* ---- the match --------------------------------------------------------------------------- */
/* A segment sum of dot products, and the segment sum that it can be computed from. */
typedef struct {
    Op *accumulation; /* the segment sum to replace */
    Op *dot;          /* its factor: reduce sum [K] (mul a, gather g) */
    Op *row, *entry;  /* g, a */
    Op *weighted_sum; /* the segment sum over K that is there */
    Factors x, h;     /* what is left of both, without dot and far */
} Match;

/* Whether the operation is a floating-point segment sum. */
static bool is_sum(const Op *op) {
    return op->kind == OP_SEGMENT && op->red == RED_SUM && dtype_is_float(op->type.dt);
}

/* Whether the type has a space that is reduced. */
static bool has_reduced_dim(const Type *t, const Op *reduce) {
    for (int i = 0; i < reduce->n_over; i++)
        if (type_has(t, reduce->over[i])) return true;
    return false;
}

/* Whether the factor is the same for all entries of a node. */
static bool is_node_constant(const Match *m, const Op *op) {
    if (has_reduced_dim(&op->type, m->dot)) return false;
    if (!type_has(&op->type, m->accumulation->map->from)) return true;
    return op->kind == OP_GATHER && op->map == m->accumulation->map;
}

/* Whether all factors are. */
static bool all_node_constant(const Match *m, Op *const *v, int n) {
    for (int i = 0; i < n; i++)
        if (!is_node_constant(m, v[i])) return false;
    return true;
}

/* Finds the dot product with a gathered row among the factors. */
static bool find_dot(Match *m) {
    for (int i = 0; i < m->x.n_num; i++) {
        Op *d = m->x.num[i];
        if (d->kind != OP_REDUCE || d->red != RED_SUM || d->in[0]->kind != OP_MUL) continue;
        for (int k = 0; k < 2; k++) {
            Op *g = d->in[0]->in[k];
            if (g->kind != OP_GATHER || g->map != m->accumulation->map) continue;
            m->dot = d, m->row = g->in[0], m->entry = d->in[0]->in[1 - k];
            return remove_factor(m->x.num, &m->x.n_num, d);
        }
    }
    return false;
}

/* Whether h sums the same entries by the same weights, up to factors of the node. */
static bool matches_sum(Match *m, Op *h) {
    if (!is_sum(h) || h->map != m->accumulation->map || h->type.dt != m->accumulation->type.dt)
        return false;
    if (h->type.rank != m->accumulation->type.rank + m->dot->n_over) return false;
    for (int i = 0; i < m->accumulation->type.rank; i++)
        if (!type_has(&h->type, m->accumulation->type.dim[i])) return false;
    Match c = *m;
    c.h = factors_of(h->in[0]);
    if (c.h.overflow || !remove_factor(c.h.num, &c.h.n_num, m->entry)) return false;
    cancel(c.x.num, &c.x.n_num, c.h.num, &c.h.n_num);
    cancel(c.x.den, &c.x.n_den, c.h.den, &c.h.n_den);
    if (!all_node_constant(m, c.x.num, c.x.n_num) || !all_node_constant(m, c.x.den, c.x.n_den) ||
        !all_node_constant(m, c.h.num, c.h.n_num) || !all_node_constant(m, c.h.den, c.h.n_den))
        return false;
    *m = c;
    m->weighted_sum = h;
    return true;
}

/* The sums of products with an operation, hung on its tag, the last one first. */
typedef struct SumList {
    Op *sum;
    struct SumList *before;
} SumList;

/* Adds a sum to the lists of its factors. */
static void record_sum(Arena *a, Op *sum) {
    const Factors f = factors_of(sum->in[0]);
    for (int i = 0; i < f.n_num && !f.overflow; i++) {
        SumList *s = NEW(a, SumList);
        *s = (SumList){.sum = sum, .before = f.num[i]->tag};
        f.num[i]->tag = s;
    }
}

/* Finds a sum that the given one can be computed from. */
static bool find_match(PassCtx *p, Match *m, Op *sum) {
    *m = (Match){.accumulation = sum, .x = factors_of(sum->in[0])};
    if (m->x.overflow || !find_dot(m)) return false;
    for (const SumList *s = m->entry->tag; s; s = s->before)
        if (matches_sum(m, s->sum)) return true;
    pass_refusal(p, sum->span, "reuse-dot-sums",
                 "'%s' is summed by itself: no sum over %s of '%s' by the same weights is there",
                 pass_named(sum), sum->map->from->name, pass_named(m->entry));
    return false;
}

/* ---- the new sum --------------------------------------------------------------------------- */
/* A node's factor, without the gather. */
static Op *at_node(const Match *m, Op *op) {
    return type_has(&op->type, m->accumulation->map->from) ? op->in[0] : op;
}

/* y times the factors. */
static Op *multiply(Builder *b, const Match *m, Op *y, Op *const *v, int n) {
    for (int i = 0; i < n; i++) y = b_binary(b, OP_MUL, y, at_node(m, v[i]));
    return y;
}

/* y divided by the factors; 0 where a divisor is 0. */
static Op *divide(Builder *b, const Match *m, Op *y, Op *const *v, int n) {
    Op *zero = b_const(b, y->type.dt, 0);
    for (int i = 0; i < n; i++) {
        Op *d = at_node(m, v[i]);
        Op *none = b_binary(b, OP_EQ, d, zero);
        y = b_select(b, none, zero, b_binary(b, OP_DIV, y, d));
    }
    return y;
}

/* Computes the sum from the existing one. */
static bool rewrite(PassCtx *p, Builder *b, Match *m) {
    b->at = m->accumulation;
    b_like(b, m->accumulation);
    Op *y = b_binary(b, OP_MUL, m->weighted_sum, m->row);
    y = b_reduce(b, RED_SUM, y, m->dot->n_over, m->dot->over);
    y = multiply(b, m, y, m->x.num, m->x.n_num);
    y = multiply(b, m, y, m->h.den, m->h.n_den);
    y = divide(b, m, y, m->x.den, m->x.n_den);
    y = divide(b, m, y, m->h.num, m->h.n_num);
    if (m->x.negative != m->h.negative) y = b_unary(b, OP_NEG, y);
    y = type_eq(&y->type, &m->accumulation->type) ? y : b_copy(b, y, m->accumulation->type);
    y->hint = m->accumulation->hint;
    op_replace_uses(b->f, m->accumulation, y);
    pass_remark(p, m->accumulation->span, "reuse-dot-sums",
                "a sum over %s is made from the sum that is there",
                m->accumulation->map->from->name);
    return true;
}

/* Runs the pass: sums that can be computed from sums made before them are rewritten so. */
static bool run(PassCtx *p, Module *mod) {
    for (int i = 0; i < mod->funcs.n; i++) {
        Builder b = {.m = mod, .f = mod->funcs.v[i]};
        bool changed = false;
        Match m;
        func_keep_users(p->a, b.f);
        for (Op *op = b.f->first; op; op = op->next) {
            if (!is_sum(op)) continue;
            if (find_match(p, &m, op) && pass_may_rewrite(p)) changed |= rewrite(p, &b, &m);
            record_sum(p->a, op);
        }
        if (changed) pass_dce_func(p->a, b.f);
    }
    return true;
}

const Pass pass_reuse_dot_sums = {
    .name = "reuse-dot-sums",
    .summary = "sums of products with a row, from the sum that is there",
    .needs = IR_TYPED,
    .breaks = IR_FUSED,
    .run = run,
};
