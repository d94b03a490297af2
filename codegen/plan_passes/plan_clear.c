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

/* The kernel that is being made. */
typedef struct {
    Arena *a;
    LKernel *k;
    LStmt **end; /* where the next statement goes */
} ClearingKernel;

/* Appends a statement. */
static LStmt *append(ClearingKernel *b, LStmtKind kind, Span at) {
    LStmt *s = *b->end = NEW(b->a, LStmt);
    s->kind = kind;
    s->span = at;
    b->end = &s->next;
    return s;
}

/* A new register of the kernel, defined by s. */
static LReg *new_register(ClearingKernel *b, LStmt *s, DType dt, const char *hint) {
    LReg *r = NEW(b->a, LReg);
    *r = (LReg){.id = b->k->n_regs++, .dt = dt, .hint = hint, .def = s};
    return r;
}

/* Appends a scalar function without arguments; returns its register. */
static LReg *append_let(ClearingKernel *b, LFn fn, DType dt, const char *hint, Span at) {
    LStmt *s = append(b, L_LET, at);
    s->fn = fn;
    return s->dst = new_register(b, s, dt, hint);
}

/* Appends the value of a size expression; returns its register. */
static LReg *append_size(ClearingKernel *b, const Expr *e, Span at) {
    LReg *r = append_let(b, L_FN_SIZE, DT_I64, "n", at);
    ((LStmt *)r->def)->size = e;
    return r;
}

/* Appends arithmetic with two indices. */
static LReg *append_index(ClearingKernel *b, LFn fn, LReg *x, LReg *y, Span at) {
    LReg *r = append_let(b, fn, DT_I64, "i", at);
    LStmt *s = (LStmt *)r->def;
    s->arg[s->n_arg++] = x;
    s->arg[s->n_arg++] = y;
    return r;
}

/* Whether the size is that number. */
static bool equals(const Expr *e, int64_t n) {
    int64_t c;
    return expr_is_const(e, &c) && c == n;
}

/* Appends the product of register x and a size; x itself where the size is 1. */
static LReg *append_product(ClearingKernel *b, LReg *x, const Expr *e, Span at) {
    return equals(e, 1) ? x : append_index(b, L_FN_IMUL, x, append_size(b, e, at), at);
}

/* The place of the e-th element: rows are outermost, then matrices, then what a row has. */
static LReg *append_place(ClearingKernel *b, const PPaddedOperand *t, const Expr *batches, LReg *e,
                          Span at) {
    const bool one = equals(batches, 1);
    if (one && equals(t->row, 1) && expr_eq(t->step, t->n)) return e;
    LReg *n = append_size(b, t->n, at), *i = append_index(b, L_FN_IREM, e, n, at);
    LReg *rest = append_index(b, L_FN_IDIV, e, n, at), *j = rest;
    LReg *to = append_product(b, i, t->row, at);
    if (!one) {
        LReg *m = append_size(b, batches, at);
        j = append_index(b, L_FN_IDIV, rest, m, at);
        LReg *which = append_index(b, L_FN_IREM, rest, m, at);
        to = append_index(b, L_FN_IADD, to, append_product(b, which, t->batch, at), at);
    }
    return append_index(b, L_FN_IADD, to, append_product(b, j, t->step, at), at);
}

/* Appends the loop that writes zeros behind the rows of an operand. */
static void append_clearing_loop(ClearingKernel *b, const Plan *p, const PStep *s,
                                 const PPaddedOperand *t) {
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
    LStmt *loop = append(b, L_FOR, s->span), **behind = b->end;
    loop->range = LR_BEHIND;
    loop->own = expr_mul(b->a, t->valid_rows, each);
    loop->extent = expr_mul(b->a, s->gemm.k, each);
    loop->sched.parallel = true;
    loop->var = new_register(b, loop, DT_I64, "e");
    b->end = &loop->body;
    LReg *at = append_place(b, t, s->gemm.batch, loop->var, s->span);
    LReg *zero = append_let(b, L_FN_CONST, of->dt, "zero", s->span);
    LStmt *store = append(b, L_STORE, s->span);
    store->buf = to;
    store->idx[0] = at;
    store->src = zero;
    b->end = behind;
}

/* The kernel that writes zeros behind the rows of both operands of a product. */
static PClear *make_clearing_kernel(Arena *a, Plan *p, const PPhase *ph, int step,
                                    const PPaddedOperand t[2]) {
    const PStep *s = ph->steps.v[step];
    PClear *c = NEW(a, PClear);
    LKernel *k = c->kernel = NEW(a, LKernel);
    k->name =
        arena_printf(a, "%s_%s_tail_%d", cg_ident(a, p->m->name), cg_ident(a, ph->name), step);
    k->span = s->span;
    ClearingKernel b = {a, k, &k->body};
    for (int i = 0; i < 2; i++) {
        if (i && t[1].buf == t[0].buf) continue;
        append_clearing_loop(&b, p, s, &t[i]);
        c->bufs[c->n_bufs++] = t[i].buf;
    }
    vec_push(a, &p->kernels, k);
    return c;
}

/* Runs the pass: adds a kernel that zeroes padding rows to each product that sums over rows of a
 * batch, in phases that a device may record for rounded sizes. */
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
            g->clear = make_clearing_kernel(pc->a, p, ph, k, t);
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
