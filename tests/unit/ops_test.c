/* Every operation: its meaning against small independent loops, its gradient
 * against finite differences (directional, in double: h = 1e-5, two directions per
 * case, each moving every parameter the case reads), and hundreds of shapes. */
#include "test.h"

#include <math.h>

#include "ir/interp.h"
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
    return in;
}

/* ---- gradients -------------------------------------------------------------------- */

static bool reads(const Func *f, const Var *v) {
    for (const Op *op = f->first; op; op = op->next)
        if (op->kind == OP_VAR && op->var == v) return true;
    return false;
}

static double direction(int which, int var, int64_t i) {
    RtKey key = rt_stream_key(2, (uint64_t)which, (uint64_t)var);
    return 2 * (double)rt_uniform(key, (uint32_t)i, 0) - 1;
}

/* Puts x + t * direction into every variable that f reads. */
static void move(Interp *in, const OpCases *cs, const Func *f, int which, double t) {
    for (int k = 0; k < cs->vars.n; k++) {
        const OpCaseVar *v = &cs->vars.v[k];
        if (!reads(f, v->var)) continue;
        int64_t n;
        double *x = op_case_values(cs, v, &n);
        for (int64_t i = 0; i < n; i++) x[i] += t * direction(which, k, i);
        interp_set_var(in, v->var, x);
    }
}

static double loss_at(Interp *in, const OpCases *cs, const OpCase *c, int which, double t) {
    move(in, cs, c->f, which, t);
    bool ok = interp_run(in, c->f);
    CHECK_MSG(ok, "%s: %s", c->name, interp_error(in));
    return ok ? interp_output(in, "loss")->v[0] : 0;
}

/* d loss / d direction by the gradients; *scale: how much was added up. */
static double slope(Ctx *ctx, Interp *in, const OpCases *cs, const OpCase *c, int which,
                    double *scale) {
    double sum = 0;
    loss_at(in, cs, c, which, 0);
    *scale = 1;
    for (int k = 0; k < cs->vars.n; k++) {
        const Var *v = cs->vars.v[k].var;
        if (!reads(c->f, v)) continue;
        const OpTensor *g = interp_output(in, arena_printf(ctx->a, "grad.%s", v->path));
        CHECK_MSG(g != NULL, "%s: no gradient of %s", c->name, v->path);
        CHECK_MSG(!g || type_eq(&g->type, &v->type), "%s: type of grad.%s", c->name, v->path);
        for (int64_t i = 0; g && i < g->count; i++) {
            double d = g->v[i] * direction(which, k, i);
            sum += d;
            *scale += fabs(d);
        }
    }
    return sum;
}

static void check_gradient(Ctx *ctx, Interp *in, const OpCases *cs, const OpCase *c) {
    const double h = 1e-5;
    for (int which = 0; which < 2; which++) {
        double up = loss_at(in, cs, c, which, h), down = loss_at(in, cs, c, which, -h);
        double scale, got = slope(ctx, in, cs, c, which, &scale), want = (up - down) / (2 * h);
        CHECK_MSG(fabs(got - want) <= 1e-6 * scale, "%s: gradient %.10g, finite difference %.10g",
                  c->name, got, want);
    }
}

static void gradients(Ctx *ctx, void *arg) {
    (void)arg;
    OpCases *cs = op_cases_build(ctx);
    PassCtx p = {.ctx = ctx, .a = ctx->a};
    for (int i = 0; i < cs->cases.n; i++)
        if (cs->cases.v[i].has_loss)
            CHECK_MSG(pass_autodiff_func(&p, cs->m, cs->cases.v[i].f), "%s", cs->cases.v[i].name);
    Interp *in = interp_of(ctx, cs);
    interp_set_exact(in, true);
    int n = 0;
    for (int i = 0; i < cs->cases.n; i++) {
        const OpCase *c = &cs->cases.v[i];
        CHECK_MSG(interp_run(in, c->f), "%s: %s", c->name, interp_error(in));
        if (c->has_fd) check_gradient(ctx, in, cs, c), n++;
    }
    CHECK(n > 500);
}

static void with_ctx(void (*fn)(Ctx *, void *)) {
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    CHECK(ctx_run(&c, fn, NULL));
    ctx_free(&c);
}

TEST(gradients_of_every_case_match_finite_differences) {
    with_ctx(gradients);
}

TEST_MAIN()
