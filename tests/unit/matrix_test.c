/* The whole way to machine code: every case of op_cases.h, with its gradients, as one
 * program per optimisation level, against the interpreter. */
#include "test.h"

#include "cpu_data.h"
#include "cpu_executor.h"
#include "op_cases.h"
#include "passes/autodiff.h"

enum { SEED = 42 };
static const double learning_rate = 0.125;

static void give_size(void *d, const Space *s, int64_t n) {
    cpu_data_size(d, s, n);
}
static void give_edges(void *d, const Space *e, int64_t n, const int32_t *src, const int32_t *dst) {
    cpu_data_edges(d, e, n, src, dst);
}
static void give_column(void *d, const Column *c, int64_t n, const double *v) {
    (void)n;
    cpu_data_column(d, c, v);
}
static void give_csr(void *d, const Column *c, const int64_t *ptr, const int32_t *col,
                     const double *v) {
    cpu_data_csr(d, c, ptr, col, v);
}
static void give_members(void *d, const Space *node, const int32_t *graph) {
    cpu_data_graphs(d, node, graph);
}
static void skip_var(void *d, const Var *v, int64_t n, const double *x) {
    (void)d, (void)v, (void)n, (void)x;
}
static void skip_input(void *d, const char *name, double x) {
    (void)d, (void)name, (void)x;
}

static const char *write_data(Ctx *c, const OpCases *cs) {
    const char *dir = cpu_exec_dir(c);
    CpuData *d = cpu_data_new(c, cs->m);
    op_cases_give(cs, &(OpCaseSink){d, give_size, give_edges, give_column, give_csr, skip_var,
                                    skip_input, give_members});
    return dir && cpu_data_write(d, dir) ? dir : NULL;
}

static CpuOracle oracle(Ctx *c, OpCases *cs) {
    PassCtx p = {.ctx = c, .a = c->a};
    for (int i = 0; i < cs->cases.n; i++)
        if (cs->cases.v[i].has_loss) pass_autodiff_func(&p, cs->m, cs->cases.v[i].f);
    CpuOracle o = {op_cases_interp(c, cs), op_cases_interp(c, cs)};
    interp_set_seed(o.rounded, SEED, 0);
    interp_set_seed(o.exact, SEED, 0);
    interp_set_exact(o.exact, true);
    return o;
}

static void set_vars(CpuExec *x, const OpCases *cs) {
    for (int i = 0; i < cs->vars.n; i++) {
        int64_t n;
        double *v = op_case_values(cs, &cs->vars.v[i], &n);
        bool ok = cpu_exec_set(x, cs->vars.v[i].var->path, n, v);
        CHECK_MSG(ok, "%s", cpu_exec_error(x));
    }
}

static void compare(Ctx *c, CpuExec *x) {
    OpCases *cs = op_cases_build(c);
    CpuOracle o = oracle(c, cs);
    const char *dir = write_data(c, cs);
    bool loaded = dir && cpu_exec_load(x, dir, SEED, learning_rate);
    CHECK_MSG(loaded, "load: %s", dir ? cpu_exec_error(x) : "no data");
    if (!loaded) return;
    set_vars(x, cs);
    for (int i = 0; i < cs->cases.n; i++) {
        StrBuf why = sb_new(c->a);
        bool ok = cpu_exec_agrees(x, &o, cs->cases.v[i].f, &why);
        CHECK_MSG(ok, "%s", why.s);
    }
}

static void matrix(Ctx *c, void *arg) {
    int level = *(int *)arg;
    OpCases *cs = op_cases_build(c);
    CpuExec *x = cpu_exec_passes(c, cs->m, level) ? cpu_exec_build(c, cs->m, level) : NULL;
    diag_print_all(c, stderr, false);
    CHECK(x != NULL);
    if (x) compare(c, x);
}

static void check_level(int level) {
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    CHECK(ctx_run(&c, matrix, &level));
    diag_print_all(&c, stderr, false);
    ctx_free(&c);
}

TEST(every_case_at_O0) {
    check_level(0);
}

TEST(every_case_at_O2) {
    check_level(2);
}

TEST_MAIN()
