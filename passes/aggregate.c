/* Once the gradient is there: aggregate before transforming, where that is no wider.
 *
 *     %z = contract %x, %W         [N, O]          %g = gather src(e) %x        [e, F]
 *     %g = gather src(e) %z        [e, O]          %s = segment sum dst(e) %g   [N, F]
 *     %y = segment sum dst(e) %g   [N, O]    ->    %y = contract %s, %W         [N, O]
 *
 * The gradient of W that was made from A (X W) reads X and A' dY, neither Z nor A X; so with
 * O = F the forward is free to take the order that keeps less.  A (X W) needs all rows of X W
 * before the first row of the sum, (A X) W a row of A X for a row of the result: such steps
 * run in blocks of rows, and no array of N rows stands between them (codegen/plan_blocks.c).
 *
 * Between Z and Y may stand whatever is linear in Z and does not look along W's spaces, and
 * nothing else may read Z.  Before autodiff `reorder` decides, and the gradient follows it. */
#include "passes/rewrite.h"

#include <string.h>

typedef struct {
    PassCtx *p;
    Module *m;
    Op **over;    /* by op id: what stands for an operation that is linear in Z; NULL: it is not */
    Op *x, *w;    /* operands of the contraction */
    Op *top;      /* the last linear one */
    bool crossed; /* a segment sum */
} Aggregate;

static bool shares_space(const Type *x, const Type *y) {
    for (int i = 0; i < x->rank; i++)
        if (type_has(y, x->dim[i])) return true;
    return false;
}

/* Which operand carries Z; -1: none, or not in a linear way; -2: both. */
static int carrier(const Aggregate *g, const Op *u) {
    bool first = g->over[u->in[0]->id] != NULL;
    bool second = u->n_in > 1 && g->over[u->in[1]->id] != NULL;
    switch (u->kind) {
    case OP_GATHER: /* rows may be W's: a table's, by category */
        return type_has(&g->w->type, u->map->to) ? -1 : 0;
    case OP_NEG:
        return 0;
    case OP_SEGMENT:
        return u->red != RED_SUM || type_has(&g->w->type, u->map->from) ? -1 : 0;
    case OP_ADD:
    case OP_SUB:
        return first && second && type_eq(&u->in[0]->type, &u->in[1]->type) ? -2 : -1;
    case OP_MUL:
        return first == second || shares_space(&u->in[first]->type, &g->w->type) ? -1 : second;
    case OP_DIV:
        return second || shares_space(&u->in[1]->type, &g->w->type) ? -1 : 0;
    default:
        return -1;
    }
}

static bool reads_linear(const Aggregate *g, const Op *u) {
    for (int i = 0; i < u->n_in; i++)
        if (g->over[u->in[i]->id]) return true;
    return false;
}

/* Finds what is linear in z: one operation at the end of it may be read by others. */
static bool find_top(Aggregate *g, Op *z) {
    memset(g->over, 0, ((size_t)z->func->n_ops + 1) * sizeof *g->over);
    g->over[z->id] = g->x;
    g->top = NULL;
    g->crossed = false;
    for (Op *u = z->next; u; u = u->next) {
        if (!reads_linear(g, u)) continue;
        if (carrier(g, u) != -1) {
            g->over[u->id] = u;
            g->crossed |= u->kind == OP_SEGMENT;
            continue;
        }
        for (int i = 0; i < u->n_in; i++) {
            Op *x = u->in[i];
            if (!g->over[x->id]) continue;
            if (g->top && g->top != x) return false;
            g->top = x;
        }
    }
    return g->top && g->top != z && g->crossed;
}

static const Expr *width(const Aggregate *g, bool summed) {
    const Expr *e = expr_const(g->m->a, 1);
    for (int i = 0; i < g->w->type.rank; i++)
        if (type_has(&g->x->type, g->w->type.dim[i]) == summed)
            e = expr_mul(g->m->a, e, g->w->type.dim[i]->size);
    return e;
}

/* A product of a dense x with a variable: sums along all spaces that both have, no wider. */
static bool is_candidate(Aggregate *g, const Op *z, int i) {
    int64_t in, out;
    g->x = z->in[i];
    g->w = z->in[1 - i];
    if (g->w->kind != OP_VAR || g->x->type.layout != LAYOUT_DENSE) return false;
    for (int k = 0; k < z->type.rank; k++)
        if (type_has(&g->x->type, z->type.dim[k]) && type_has(&g->w->type, z->type.dim[k]))
            return false;
    return expr_is_const(width(g, true), &in) && expr_is_const(width(g, false), &out) && in <= out;
}

/* The same operations over x, then the product. */
static void rewrite(Aggregate *g, Op *z) {
    Builder b = b_for(g->m, z->func, NULL, z);
    Op *end = g->top->next;
    for (Op *u = z->next; u != end; u = u->next) {
        if (!g->over[u->id]) continue;
        Op *x = g->over[u->in[0]->id], *y = u->n_in > 1 ? g->over[u->in[1]->id] : NULL;
        b.at = u;
        switch (u->kind) {
        case OP_GATHER:
            x = b_gather(&b, u->map, x);
            break;
        case OP_SEGMENT:
            x = b_segment(&b, RED_SUM, u->map, x);
            break;
        case OP_NEG:
            x = b_unary(&b, OP_NEG, x);
            break;
        default:
            x = b_binary(&b, u->kind, x ? x : u->in[0], y ? y : u->in[1]);
        }
        g->over[u->id] = x;
    }
    Op *y = b_contract(&b, g->over[g->top->id], g->w, g->top->type);
    y->hint = g->top->hint ? g->top->hint : z->hint;
    op_replace_uses(z->func, g->top, y);
}

static void aggregate_func(PassCtx *p, Module *m, Func *f) {
    Aggregate g = {.p = p, .m = m};
    for (Op *z = f->first; z; z = z->next) {
        if (z->kind != OP_CONTRACT) continue;
        func_number(f);
        g.over = NEWN(p->a, Op *, (size_t)f->n_ops + 1);
        for (int i = 0; i < 2; i++) {
            if (!is_candidate(&g, z, i) || !find_top(&g, z)) continue;
            rewrite(&g, z);
            pass_remark(p, z->span, "aggregate", "aggregates before it transforms");
            break;
        }
    }
    pass_dce_func(p->a, f);
}

static bool run(PassCtx *p, Module *m) {
    for (int i = 0; i < m->funcs.n; i++) /* only there rows of many layers are kept at once */
        if (pass_has_gradients(m->funcs.v[i])) aggregate_func(p, m, m->funcs.v[i]);
    return true;
}

const Pass pass_aggregate = {
    .name = "aggregate",
    .summary = "aggregate before multiplying by a weight as wide, once gradients are there",
    .needs = IR_TYPED,
    .run = run,
};
