/* Gradients in 16 bits against finite differences of the f32 graph, for every kind of operation:
 * what --precision rounds may move them only as far as its roundings explain.
 *
 * The bound.  Let u be the unit roundoff of the type: 2^-8 of bf16, 2^-11 of f16.  A case rounds
 * what it reads, its result, the gradient of that, and the parameter's gradient: four relative
 * errors of at most u each, 0.4 u in root mean square, so 0.8 u together; and the derivative is
 * taken at a point that is off by as much, which changes it by |x f''(x) / f'(x)| times that,
 * which is about 1 for the functions and values here.  Errors of a sum over n terms are
 * independent: where terms cancel, up to sqrt(n) times as much remains of the sum.  The slope
 * along a direction d adds |g_i d_i| of all elements up to `scale`; so
 *
 *     |slope in 16 bits - finite difference| <= u (1 + sqrt(n)) scale
 *
 * holds with at least 2 u scale, more than twice the root mean square of the worst case, a single
 * element.  (What is seen is 0.4 of it.)  Largest and least elements have no such bound: two that
 * differ by less than u become equal, and the gradient is the other's.  There it must be as large
 * as in f32 where nothing is, which it is not when nobody is found equal to the rounded maximum. */
#include "ctx_test.h"

#include <math.h>

#include "cpu_executor.h"
#include "op_low.h"
#include "op_matrix.h"
#include "passes/autodiff.h"

typedef struct {
    Ctx *c;
    OpCases *cs;
    Interp *in;
} Side;

static double direction(int which, int var, int64_t i) {
    RtKey key = rt_stream_key(2, (uint64_t)which, (uint64_t)var);
    return 2 * (double)rt_uniform(key, (uint32_t)i, 0) - 1;
}

static double loss_at(const Side *s, const OpCase *c, int which, double t) {
    for (int k = 0; k < s->cs->vars.n; k++) {
        int64_t n;
        double *x = op_case_values(s->cs, &s->cs->vars.v[k], &n);
        for (int64_t i = 0; i < n; i++) x[i] += t * direction(which, k, i);
        interp_set_var(s->in, s->cs->vars.v[k].var, x);
    }
    CHECK_MSG(interp_run(s->in, c->f), "%s: %s", c->name, interp_error(s->in));
    return interp_output(s->in, "loss")->v[0];
}

static double slope(const Side *s, const OpCase *c, int which, double *scale) {
    double sum = 0;
    *scale = 0;
    loss_at(s, c, which, 0);
    for (int k = 0; k < s->cs->vars.n; k++) {
        const Var *v = s->cs->vars.v[k].var;
        const char *name = arena_printf(s->c->a, "grad.%s", v->path);
        const Op *out = func_output(c->f, name);
        const OpTensor *g = out ? interp_output(s->in, name) : NULL;
        double sign = out && out->in[0]->kind == OP_NEG ? -1 : 1; /* op_low.c puts it there */
        for (int64_t i = 0; g && i < g->count; i++) {
            double d = sign * g->v[i] * direction(which, k, i);
            sum += d;
            *scale += fabs(d);
        }
    }
    return sum;
}

/* How many terms make an element of a sum, at most. */
static double longest(Interp *in, const Func *f) {
    double most = 1;
    for (const Op *op = f->first; op; op = op->next) {
        double n = op->kind == OP_SEGMENT ? (double)interp_size(in, op->map->from) : 1;
        for (int i = 0; i < op->n_over && op->kind == OP_REDUCE; i++)
            n *= (double)interp_size(in, op->over[i]);
        for (int i = 0; op->kind == OP_CONTRACT && i < op->in[0]->type.rank; i++) {
            const Space *s = op->in[0]->type.dim[i];
            if (!type_has(&op->type, s)) n *= (double)interp_size(in, s);
        }
        most = fmax(most, n);
    }
    return most;
}

static bool has_extremum(const Func *f) {
    for (const Op *op = f->first; op; op = op->next)
        if ((op->kind == OP_SEGMENT || op->kind == OP_REDUCE) && op->red != RED_SUM) return true;
    return false;
}

static int rounded_ops(const Func *f, DType dt) {
    int n = 0;
    for (const Op *op = f->first; op; op = op->next) n += op->type.dt == dt && !op->fused;
    return n;
}

/* False: the case has nothing to round, as constants and empty graphs. */
static bool check_case(const Side *full, const Side *low, int i, DType dt) {
    const double h = 1e-5, u = dt == DT_F16 ? 0x1p-11 : 0x1p-8;
    const OpCase *c = &full->cs->cases.v[i], *l = &low->cs->cases.v[i];
    double n = longest(full->in, c->f);
    for (int which = 0; which < 2; which++) {
        double up = loss_at(full, c, which, h), down = loss_at(full, c, which, -h), scale;
        double want = (up - down) / (2 * h), got = slope(low, l, which, &scale);
        double bound = u * (1 + sqrt(n)) * scale + 1e-6;
        bool ok =
            has_extremum(c->f) ? want == 0 || scale >= fabs(want) / 2 : fabs(got - want) <= bound;
        CHECK_MSG(ok, "%s: slope %.6g, finite difference %.6g, bound %.2g", c->name, got, want,
                  bound);
    }
    return rounded_ops(l->f, dt) > 1;
}

static void gradients(Ctx *c, void *arg) {
    int level = *(int *)arg, n = 0;
    DType dt = level & CPU_EXEC_ALL_F16 ? DT_F16 : DT_BF16;
    Side full = {.c = c, .cs = op_matrix_cases(c, level)};
    Side low = {.c = c, .cs = op_matrix_cases(c, level)};
    CHECK(cpu_exec_passes(c, low.cs->m, level));
    diag_print_all(c, stderr, false);
    if (c->n_errors) return;
    full.in = op_cases_interp(c, full.cs);
    low.in = op_cases_interp(c, low.cs);
    interp_set_exact(full.in, true);
    for (int i = 0; i < full.cs->cases.n; i++)
        if (full.cs->cases.v[i].has_fd) n += check_case(&full, &low, i, dt);
    CHECK(n > 100);
}

static void check_level(int level) {
    with_ctx(gradients, &level);
}

TEST(gradients_in_bf16) {
    check_level(2 | CPU_EXEC_ALL_BF16);
}

TEST(gradients_in_f16) {
    check_level(2 | CPU_EXEC_ALL_F16);
}

TEST_MAIN()
