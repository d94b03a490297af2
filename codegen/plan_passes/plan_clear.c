/* Zeros behind a batch's rows, for products that sum over them.
 *
 *     gemm(d, x, dw) k=N_v long_k     =>     gemm(d, x, dw) k=N_v long_k clears m_tail_4(d, x)
 *
 *                                            kernel m_tail_4 {
 *                                              for %e in behind 16*N_v to 16*N_v parallel {
 *                                                store d[%e] 0
 *
 * A device may record a phase over mini-batches for rounded sizes (plan_buckets.c).  Its products
 * then sum over rows that are nobody's, and those have to be zeros.  Each such product has a kernel
 * of its own, launched before it where sizes are rounded: both operands in one launch. */
#include "codegen/lower/lower.h"
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"

typedef struct {
    Arena *a;
    LKernel *k;
    LStmt **end; /* where the next statement goes */
} Build;

static LStmt *put(Build *b, LStmtKind kind, Span at) {
    LStmt *s = *b->end = NEW(b->a, LStmt);
    s->kind = kind;
    s->span = at;
    b->end = &s->next;
    return s;
}

static LReg *reg(Build *b, LStmt *s, DType dt, const char *hint) {
    LReg *r = NEW(b->a, LReg);
    *r = (LReg){.id = b->k->n_regs++, .dt = dt, .hint = hint, .def = s};
    return r;
}

static LReg *let(Build *b, LFn fn, DType dt, const char *hint, Span at) {
    LStmt *s = put(b, L_LET, at);
    s->fn = fn;
    return s->dst = reg(b, s, dt, hint);
}

static LReg *size(Build *b, const Expr *e, Span at) {
    LReg *r = let(b, L_FN_SIZE, DT_I64, "n", at);
    ((LStmt *)r->def)->size = e;
    return r;
}

static LReg *of_two(Build *b, LFn fn, LReg *x, LReg *y, Span at) {
    LReg *r = let(b, fn, DT_I64, "i", at);
    LStmt *s = (LStmt *)r->def;
    s->arg[s->n_arg++] = x;
    s->arg[s->n_arg++] = y;
    return r;
}

static bool is(const Expr *e, int64_t n) {
    int64_t c;
    return expr_is_const(e, &c) && c == n;
}

static LReg *times(Build *b, LReg *x, const Expr *e, Span at) {
    return is(e, 1) ? x : of_two(b, L_FN_IMUL, x, size(b, e, at), at);
}

/* The place of the e-th element: rows are outermost, then matrices, then what a row has. */
static LReg *place(Build *b, const PPaddedOperand *t, const Expr *batches, LReg *e, Span at) {
    const bool one = is(batches, 1);
    if (one && is(t->row, 1) && expr_eq(t->step, t->n)) return e;
    LReg *n = size(b, t->n, at), *i = of_two(b, L_FN_IREM, e, n, at);
    LReg *rest = of_two(b, L_FN_IDIV, e, n, at), *j = rest;
    LReg *to = times(b, i, t->row, at);
    if (!one) {
        LReg *m = size(b, batches, at);
        j = of_two(b, L_FN_IDIV, rest, m, at);
        LReg *which = of_two(b, L_FN_IREM, rest, m, at);
        to = of_two(b, L_FN_IADD, to, times(b, which, t->batch, at), at);
    }
    return of_two(b, L_FN_IADD, to, times(b, j, t->step, at), at);
}

static void clear(Build *b, const Plan *p, const PStep *s, const PPaddedOperand *t) {
    const PBuf *of = p->bufs.v[t->buf];
    const Expr *each = expr_mul(b->a, s->gemm.batch, t->n);
    LBuf *to = NEW(b->a, LBuf);
    *to = (LBuf){.kind = LB_VALUE,
                 .id = b->k->bufs.n,
                 .name = of->name,
                 .dt = of->dt,
                 .rank = 1,
                 .dim = {of->count},
                 .written = true};
    vec_push(b->a, &b->k->bufs, to);
    LStmt *loop = put(b, L_FOR, s->span), **behind = b->end;
    loop->range = LR_BEHIND;
    loop->own = expr_mul(b->a, t->valid_rows, each);
    loop->extent = expr_mul(b->a, s->gemm.k, each);
    loop->sched.parallel = true;
    loop->var = reg(b, loop, DT_I64, "e");
    b->end = &loop->body;
    LReg *at = place(b, t, s->gemm.batch, loop->var, s->span);
    LReg *zero = let(b, L_FN_CONST, of->dt, "zero", s->span);
    LStmt *store = put(b, L_STORE, s->span);
    store->buf = to;
    store->idx[0] = at;
    store->src = zero;
    b->end = behind;
}

static PClear *clears(Arena *a, Plan *p, const PPhase *ph, int step, const PPaddedOperand t[2]) {
    const PStep *s = ph->steps.v[step];
    PClear *c = NEW(a, PClear);
    LKernel *k = c->kernel = NEW(a, LKernel);
    k->name =
        arena_printf(a, "%s_%s_tail_%d", cg_ident(a, p->m->name), cg_ident(a, ph->name), step);
    k->span = s->span;
    Build b = {a, k, &k->body};
    for (int i = 0; i < 2; i++) {
        if (i && t[1].buf == t[0].buf) continue;
        clear(&b, p, s, &t[i]);
        c->bufs[c->n_bufs++] = t[i].buf;
    }
    vec_push(a, &p->kernels, k);
    return c;
}

static bool run(PassCtx *pc, Plan *p) {
    for (int i = 0; i < p->phases.n && p->device; i++) {
        const PPhase *ph = p->phases.v[i];
        const char *why = NULL;
        if (!plan_trains_on_batches(p, ph)) continue;
        const PStep *s = plan_bucket_obstacle(pc->a, p, ph, false, &why);
        if (s)
            pass_refusal(pc, s->span, "clear-tails", "@%s is not recorded for rounded sizes: %s",
                         ph->name, why);
        for (int k = 0; k < ph->steps.n && !s; k++) {
            PPaddedOperand t[2];
            PStep *g = ph->steps.v[k];
            if (g->clear || !plan_padded_operands(pc->a, p, g, t)) continue;
            g->clear = clears(pc->a, p, ph, k, t);
            pass_remark(pc, g->span, "clear-tails", "'%s' finds zeros behind a batch's rows, by %s",
                        g->note, g->clear->kernel->name);
        }
    }
    return true;
}

const Pass plan_pass_clear_tails = {
    .name = "clear-tails",
    .summary = "write zeros behind a batch's rows, where a product of rounded size sums over them",
    .needs = PLAN_STEPS,
    .run_plan = run,
};
