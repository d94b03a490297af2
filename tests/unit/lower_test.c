/* Lowering: every case of op_cases.h, forward and backward, through plan and kernels,
 * against the graph interpreter.  Both compute in double, so a difference beyond
 * rounding is a wrong kernel. */
#include "test.h"

#include <math.h>

#include "codegen/lower.h"
#include "ir/interp.h"
#include "loop_interp.h"
#include "op_cases.h"
#include "passes/autodiff.h"

static void give_size(void *in, const Space *s, int64_t n) {
    interp_set_size(in, s, n);
}
static void give_edges(void *in, const Space *e, int64_t n, const int32_t *src,
                       const int32_t *dst) {
    interp_set_edges(in, e, n, src, dst);
}
static void give_column(void *in, const Column *c, int64_t n, const double *v) {
    (void)n;
    interp_set_column(in, c, v);
}
static void give_csr(void *in, const Column *c, const int64_t *ptr, const int32_t *col,
                     const double *v) {
    interp_set_csr(in, c, ptr, col, v);
}
static void give_var(void *in, const Var *v, int64_t n, const double *x) {
    (void)n;
    interp_set_var(in, v, x);
}
static void give_input(void *in, const char *name, double x) {
    interp_set_input(in, name, x);
}

static Interp *interp_of(Ctx *c, const OpCases *cs) {
    Interp *in = interp_new(c, cs->m);
    OpCaseSink to = {in, give_size, give_edges, give_column, give_csr, give_var, give_input};
    interp_set_seed(in, 42, 7);
    op_cases_give(cs, &to);
    interp_set_exact(in, true);
    return in;
}

static void show(Ctx *c, const Plan *p, int phase) {
    StrBuf b = sb_new(c->a);
    const PPhase *ph = p->phases.v[phase];
    func_print(&b, p->m, ph->func);
    for (int i = 0; i < ph->steps.n; i++)
        if (ph->steps.v[i]->kernel) loop_print(&b, p->m, ph->steps.v[i]->kernel);
    if (getenv("LOWER_TEST_SHOW")) fputs(b.s, stderr);
}

/* Norm-wise: what is summed may cancel. */
static bool close_to(const double *got, const OpTensor *want) {
    double scale = 1, worst = 0;
    for (int64_t i = 0; i < want->count; i++) {
        double w = want->v[i], d = fabs(got[i] - w);
        if (isfinite(w) && fabs(w) > scale) scale = fabs(w);
        if (isnan(w) != isnan(got[i])) return false;
        if (!isnan(w) && got[i] != w && !(d <= worst)) worst = d;
    }
    return worst <= 1e-9 * scale;
}

static bool compare_output(LoopRun *r, int phase, Interp *in, const Op *out, const char *name) {
    int64_t n = 0;
    const OpTensor *want = interp_output(in, out->name);
    const double *got = loop_run_output(r, phase, out->name, &n);
    CHECK_MSG(got && want && n == want->count, "%s: output %s", name, out->name);
    bool ok = got && want && n == want->count && close_to(got, want);
    CHECK_MSG(ok, "%s: output %s differs", name, out->name);
    return ok;
}

static void compare_phase(Ctx *c, const Plan *p, int phase, LoopRun *r, Interp *in) {
    const PPhase *ph = p->phases.v[phase];
    bool ok = loop_run_phase(r, phase);
    CHECK_MSG(ok, "%s: %s", ph->name, loop_run_error(r));
    CHECK_MSG(interp_run(in, ph->func), "%s: %s", ph->name, interp_error(in));
    for (const Op *op = ph->func->first; ok && op; op = op->next)
        if (op->kind == OP_OUTPUT) ok = compare_output(r, phase, in, op, ph->name);
    if (!ok) show(c, p, phase);
}

static void print_kernels(StrBuf *b, const Module *m, int n, LKernel *const *k) {
    for (int i = 0; i < n; i++) loop_print(b, m, k[i]);
}

static void round_trip(Ctx *c, const Plan *p) {
    StrBuf one = sb_new(c->a), two = sb_new(c->a);
    print_kernels(&one, p->m, p->kernels.n, p->kernels.v);
    int n = 0;
    LKernel *k = loop_parse(c, p->m, ctx_add_text(c, "kernels", one.s, one.n), &n);
    CHECK(k && n == p->kernels.n);
    for (int i = 0; k && i < n; i++) {
        CHECK(loop_verify(c, p->m, &k[i]));
        loop_print(&two, p->m, &k[i]);
    }
    CHECK(k && !strcmp(one.s, two.s));
}

static void cases(Ctx *c, void *passes) {
    OpCases *cs = op_cases_build(c);
    PassCtx pc = {.ctx = c, .a = c->a};
    for (int i = 0; i < cs->cases.n; i++)
        if (cs->cases.v[i].has_loss) pass_autodiff_func(&pc, cs->m, cs->cases.v[i].f);
    cs->m->has |= IR_TYPED | IR_GRAD;
    PassOptions opt = {0};
    CHECK(passes_run(c, cs->m, passes, &opt));
    Plan *p = plan_build(c, cs->m);
    CHECK(p && plan_verify(c, p));
    if (p) round_trip(c, p);
    diag_print_all(c, stderr, false);
    if (!p) return;
    Interp *in = interp_of(c, cs);
    LoopRun *r = loop_run_new(c, p, in);
    for (int i = 0; i < p->phases.n; i++) compare_phase(c, p, i, r, in);
}

static void with_ctx(void (*fn)(Ctx *, void *), void *arg) {
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    CHECK(ctx_run(&c, fn, arg));
    ctx_free(&c);
}

TEST(every_case_stored) {
    with_ctx(cases, "lower-csr");
}

TEST(every_case_fused) {
    with_ctx(cases, "lower-csr,fuse");
}

TEST_MAIN()
