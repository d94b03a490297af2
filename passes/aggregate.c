/* Once the gradient is there: aggregate before transforming, where that is no wider.
 *
 *     %z = contract %x, %W         [N, O]          %g = gather src(e) %x        [e, F]
 *     %g = gather src(e) %z        [e, O]          %s = segment sum dst(e) %g   [N, F]
 *     %y = segment sum dst(e) %g   [N, O]    ->    %y = contract %s, %W         [N, O]
 *
 * The gradient of W that was made from A (X W) reads X and A' dY, neither Z nor A X; so with
 * O = F the forward is free to take the order that keeps less.  A (X W) needs all rows of X W
 * before the first row of the sum, (A X) W a row of A X for a row of the result: such steps
 * run in blocks of rows, and no array of N rows stands between them
 * (codegen/plan_passes/plan_blocks.c).
 *
 * Of a drawn batch Z may be of fewer rows than Y: a gradient goes from what was added up to all
 * that was added.  Where both are as wide, such sums, along the sources of a relation of the data,
 * come after the product.
 *
 * Between Z and Y may stand whatever is linear in Z and does not look along W's spaces, and
 * nothing else may read Z.  Before autodiff `reorder` decides, and the gradient follows it. */
#include "passes/rewrite.h"

/* What the pass knows of an operation, hung on its tag. */
typedef struct {
    int64_t position; /* in the function: what comes later has a larger one */
    int linear_in,
        visited_for; /* the last contractions that it was found linear in, or a reader of that */
    Op *rewritten;   /* linear: what stands for it */
} Info;

typedef struct {
    PassCtx *p;
    Module *m;
    int n_contraction;  /* number of the contraction that is looked at */
    Op *x, *w;          /* its operands */
    VEC(Op *) worklist; /* readers of linear ones: a heap, the first of the function first */
    VEC(Op *) linear;   /* in the order of the function */
    Op *top;            /* the last linear one */
    bool crossed;       /* a segment sum */
    bool as_wide;       /* X as Z */
    const char *why;    /* x is not summed first */
} Aggregate;

/* ---- places ------------------------------------------------------------------------------- */
enum { POSITION_STEP = 1 << 20 };

/* The pass's knowledge of an operation. */
static Info *info(const Op *op) {
    return op->tag;
}

/* Numbers the operations of a function, with gaps for new ones. */
static void number_all(Aggregate *g, Func *f) {
    int64_t place = 0;
    for (Op *op = f->first; op; op = op->next) {
        if (!op->tag) op->tag = NEW(g->p->a, Info);
        info(op)->position = place += POSITION_STEP;
    }
}

/* Numbers a new operation between its neighbours. */
static Op *number_new(Aggregate *g, Op *op) {
    op->tag = NEW(g->p->a, Info);
    int64_t after = info(op->prev)->position, before = info(op->next)->position;
    info(op)->position = after + (before - after) / 2;
    if (info(op)->position == after) number_all(g, op->func);
    return op;
}

/* Compares two elements of the worklist by position. */
static bool is_before(const Aggregate *g, int i, int k) {
    return info(g->worklist.v[i])->position < info(g->worklist.v[k])->position;
}

/* Swaps two elements of the worklist. */
static void swap(Aggregate *g, int i, int k) {
    Op *op = g->worklist.v[i];
    g->worklist.v[i] = g->worklist.v[k];
    g->worklist.v[k] = op;
}

/* Adds an operation to the worklist, a heap by position. */
static void push_work(Aggregate *g, Op *op) {
    vec_push(g->p->a, &g->worklist, op);
    for (int i = g->worklist.n - 1; i > 0 && is_before(g, i, (i - 1) / 2); i = (i - 1) / 2)
        swap(g, i, (i - 1) / 2);
}

/* Takes the first operation, by position, from the worklist. */
static Op *pop_work(Aggregate *g) {
    Op *op = g->worklist.v[0];
    g->worklist.v[0] = g->worklist.v[--g->worklist.n];
    for (int i = 0, k; (k = 2 * i + 1) < g->worklist.n; i = k) {
        if (k + 1 < g->worklist.n && is_before(g, k + 1, k)) k++;
        if (!is_before(g, k, i)) break;
        swap(g, i, k);
    }
    return op;
}

/* ---- what is linear -------- */
/* Whether the operation is known to be linear in the current contraction. */
static bool is_linear(const Aggregate *g, const Op *op) {
    return info(op)->linear_in == g->n_contraction;
}

/* Whether two types have a space in common. */
static bool shares_space(const Type *x, const Type *y) {
    for (int i = 0; i < x->rank; i++)
        if (type_has(y, x->dim[i])) return true;
    return false;
}

/* Are there more of these sums than of rows that they add up? */
static bool has_more_sums(const Aggregate *g, const Op *segment) {
    const Map *m = segment->map;
    return g->as_wide && m->kind == MAP_SRC && pass_draws_several(g->m, segment->func, m->from);
}

/* The operand through which u is linear in Z; -1: none, or not in a linear way; -2: both. */
static int linear_operand(const Aggregate *g, const Op *u) {
    bool first = is_linear(g, u->in[0]);
    bool second = u->n_in > 1 && is_linear(g, u->in[1]);
    switch (u->kind) {
    case OP_GATHER: /* rows may be W's: a table's, by category; or fewer than are gathered */
        return type_has(&g->w->type, u->map->to) || u->map->kind == MAP_DISTINCT ? -1 : 0;
    case OP_NEG:
        return 0;
    case OP_SEGMENT:
        return u->red != RED_SUM || type_has(&g->w->type, u->map->from) || has_more_sums(g, u) ? -1
                                                                                               : 0;
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

/* Marks an operation as linear in Z and queues its readers. `rewritten` is what stands for it over
 * X. */
static void mark_linear(Aggregate *g, Op *op, Op *over) {
    info(op)->linear_in = g->n_contraction;
    info(op)->rewritten = over;
    for (const Use *u = op->users; u; u = u->next) {
        Op *user = u->user;
        if (!user->func || info(user)->visited_for == g->n_contraction) continue;
        info(user)->visited_for = g->n_contraction;
        push_work(g, user);
    }
}

/* Finds all operations that are linear in z. Only one, the top, may be read by others. */
static bool find_linear(Aggregate *g, Op *z) {
    g->n_contraction++;
    g->worklist.n = g->linear.n = 0;
    g->top = NULL;
    g->crossed = false;
    mark_linear(g, z, g->x);
    while (g->worklist.n) {
        Op *u = pop_work(g);
        if (linear_operand(g, u) != -1) {
            mark_linear(g, u, u);
            vec_push(g->p->a, &g->linear, u);
            g->crossed |= u->kind == OP_SEGMENT;
            continue;
        }
        for (int i = 0; i < u->n_in; i++) {
            Op *x = u->in[i];
            if (!is_linear(g, x)) continue;
            if (g->top && g->top != x) {
                g->why = "several values that are linear in it are read";
                return false;
            }
            g->top = x;
        }
    }
    bool found = g->top && g->top != z && g->crossed;
    if (!found) g->why = "nothing that is linear in it is summed over edges";
    return found;
}

/* The product of the sizes of W's spaces that are summed over, or of the others. */
static const Expr *width(const Aggregate *g, bool summed) {
    const Expr *e = expr_const(g->m->a, 1);
    for (int i = 0; i < g->w->type.rank; i++)
        if (type_has(&g->x->type, g->w->type.dim[i]) == summed)
            e = expr_mul(g->m->a, e, g->w->type.dim[i]->size);
    return e;
}

/* Whether operand i of z is a dense value times a variable that makes it no narrower; sets `why` if
 * it is not. */
static bool is_candidate(Aggregate *g, const Op *z, int i) {
    int64_t in, out;
    g->x = z->in[i];
    g->w = z->in[1 - i];
    g->why = NULL;
    if (g->w->kind != OP_VAR) return false;
    g->why = "the operand is sparse";
    if (g->x->type.layout != LAYOUT_DENSE) return false;
    g->why = "each row has a weight of its own";
    for (int k = 0; k < z->type.rank; k++)
        if (type_has(&g->x->type, z->type.dim[k]) && type_has(&g->w->type, z->type.dim[k]))
            return false;
    g->why = "only data know which is wider";
    if (!expr_is_const(width(g, true), &in) || !expr_is_const(width(g, false), &out)) return false;
    g->as_wide = in == out;
    g->why = in > out ? "the product is narrower" : NULL;
    return in <= out;
}

/* What stands for x after the rewriting. */
static Op *rewritten_value(const Aggregate *g, Op *x) {
    return is_linear(g, x) ? info(x)->rewritten : x;
}

/* Builds u over the rewritten operands. */
static Op *rewrite_linear(const Aggregate *g, Builder *b, const Op *u) {
    Op *x = rewritten_value(g, u->in[0]);
    switch (u->kind) {
    case OP_GATHER:
        return b_gather(b, u->map, x);
    case OP_SEGMENT:
        return b_segment(b, RED_SUM, u->map, x);
    case OP_NEG:
        return b_unary(b, OP_NEG, x);
    default:
        return b_binary(b, u->kind, x, rewritten_value(g, u->in[1]));
    }
}

/* Builds the linear operations over X first, then the product. */
static void rewrite(Aggregate *g, Op *z) {
    Builder b = b_for(g->m, z->func, NULL, z);
    for (int i = 0; i < g->linear.n; i++) {
        Op *u = b.at = g->linear.v[i];
        info(u)->rewritten = number_new(g, rewrite_linear(g, &b, u));
        if (u == g->top) break;
    }
    Op *y = number_new(g, b_contract(&b, info(g->top)->rewritten, g->w, g->top->type));
    y->hint = g->top->hint ? g->top->hint : z->hint;
    op_replace_uses(z->func, g->top, y);
}

/* Rewrites all contractions of a function for which it pays. */
static void aggregate_func(PassCtx *p, Module *m, Func *f) {
    Aggregate g = {.p = p, .m = m};
    func_keep_users(p->a, f);
    number_all(&g, f);
    for (Op *z = f->first; z; z = z->next) {
        if (z->kind != OP_CONTRACT) continue;
        for (int i = 0; i < 2; i++) {
            if (!is_candidate(&g, z, i) || !find_linear(&g, z)) {
                if (g.why)
                    pass_refusal(p, z->span, "aggregate", "'%s' is multiplied as it is: %s",
                                 pass_named(z), g.why);
                continue;
            }
            if (!pass_may_rewrite(p)) continue;
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
