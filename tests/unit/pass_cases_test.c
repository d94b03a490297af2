/* No pass may change what a function computes: every case of op_cases.h, with its
 * gradients, interpreted before and after each pass and after the pipelines. */
#include "ctx_test.h"

#include <math.h>

#include "op_matrix.h"
#include "passes/autodiff.h"

typedef struct {
    const char *output;
    const OpCase *c;
    int64_t n;
    double *v;
} Kept;

typedef struct {
    Ctx *ctx;
    OpCases *cs;
    Interp *in;
    VEC(Kept) kept;
} Run;

typedef struct {
    const char *names;
    bool forward; /* without gradients, as before autodiff */
    DType precision;
} Job;

static void build(Run *r, Ctx *ctx, bool forward) {
    *r = (Run){.ctx = ctx, .cs = op_matrix_cases(ctx, 0)};
    PassCtx p = {.ctx = ctx, .a = ctx->a};
    for (int i = 0; i < r->cs->cases.n; i++)
        if (r->cs->cases.v[i].has_loss && !forward)
            pass_autodiff_func(&p, r->cs->m, r->cs->cases.v[i].f);
    r->in = op_cases_interp(ctx, r->cs);
    interp_set_exact(r->in, true);
}

/* CSR outputs may have become their stored values: those are compared elsewhere. */
static void keep(Run *r, const OpCase *c, const Op *out) {
    const OpTensor *x = interp_output(r->in, out->name);
    Kept k = {.output = out->name, .c = c, .n = x->count};
    k.v = NEWN(r->ctx->a, double, (size_t)k.n + 1);
    memcpy(k.v, x->v, (size_t)k.n * sizeof *k.v);
    vec_push(r->ctx->a, &r->kept, k);
}

static void record(Run *r) {
    for (int i = 0; i < r->cs->cases.n; i++) {
        const OpCase *c = &r->cs->cases.v[i];
        bool ok = interp_run(r->in, c->f);
        CHECK_MSG(ok, "%s: %s", c->name, interp_error(r->in));
        for (Op *op = c->f->first; op && ok; op = op->next)
            if (op->kind == OP_OUTPUT) keep(r, c, op);
    }
}

static bool close_to(double x, double y) {
    if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
    return x == y || fabs(x - y) <= 1e-9 * (1 + fabs(x) + fabs(y));
}

static void compare(Run *r, const Kept *k, const char *after) {
    const OpTensor *y = interp_output(r->in, k->output);
    CHECK_MSG(y && y->count == k->n, "after %s: %s of %s is gone", after, k->output, k->c->name);
    for (int64_t i = 0; y && i < k->n && i < y->count; i++) {
        if (close_to(k->v[i], y->v[i])) continue;
        CHECK_MSG(false, "after %s: %s of %s, element %d is %.10g, was %.10g", after, k->output,
                  k->c->name, (int)i, y->v[i], k->v[i]);
        return;
    }
}

static void check_same(Run *r, const char *after) {
    Func *load = func_of(r->cs->m, PHASE_LOAD);
    if (load) CHECK_MSG(interp_run(r->in, load), "after %s: %s", after, interp_error(r->in));
    const OpCase *now = NULL;
    bool ok = false;
    for (int i = 0; i < r->kept.n; i++) {
        const Kept *k = &r->kept.v[i];
        if (k->c != now) {
            now = k->c;
            ok = interp_run(r->in, now->f);
            CHECK_MSG(ok, "after %s: %s: %s", after, now->name, interp_error(r->in));
        }
        if (ok) compare(r, k, after);
    }
}

static void preserves(Ctx *ctx, void *arg) {
    const Job *job = arg;
    const char *names = job->names;
    Run r;
    build(&r, ctx, job->forward);
    record(&r);
    bool ok = pass_run_all(ctx, r.cs->m, names,
                           &(PassOptions){.verify_each = true, .precision = job->precision});
    CHECK_MSG(ok, "passes '%s' failed", names);
    if (ok) check_same(&r, names);
    diag_print_all(ctx, stderr, false);
}

static void check_job(Job job) {
    with_ctx(preserves, &job);
}

static void check_passes(const char *names) {
    check_job((Job){.names = names});
}

TEST(simplification_preserves_every_case) {
    check_passes("canon");
    check_passes("graph-break-elimination");
    check_passes("cse,dce");
}

TEST(reordering_preserves_every_case) {
    check_job((Job){.names = "reorder,dce", .forward = true});
}

TEST(sparse_lowering_preserves_every_case) {
    check_passes("lower-csr");
}

TEST(hoisting_preserves_every_case) {
    check_passes("lower-csr,hoist");
    check_passes("lower-csr,transpose-weights");
}

/* But for rounding, which the exact interpreter leaves out. */
TEST(precision_preserves_every_case) {
    check_job((Job){.names = pass_pipeline_named(0, true), .precision = DT_BF16});
    check_job((Job){.names = pass_pipeline_named(2, true), .precision = DT_BF16});
}

TEST(the_pipelines_preserve_every_case) {
    check_passes(pass_pipeline_named(0, true));
    check_passes(pass_pipeline_named(2, true));
}

TEST_MAIN()
