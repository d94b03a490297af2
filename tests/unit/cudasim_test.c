/* The cuda target on the simulated device: every case of op_cases.h, with its gradients,
 * against the interpreter, threads running in several orders. */
#include "test.h"

#include "cuda_executor.h"
#include "op_cases.h"
#include "op_matrix.h"

typedef struct {
    int level;
    uint64_t seed;
} Run;

static void matrix(Ctx *c, void *arg) {
    const Run *r = arg;
    OpCases *cs = op_cases_build(c);
    CpuExec *x = cpu_exec_passes(c, cs->m, r->level) ? cuda_exec_build(c, cs->m) : NULL;
    diag_print_all(c, stderr, false);
    CHECK(x != NULL);
    if (!x) return;
    StrBuf why = sb_new(c->a);
    cuda_exec_seed(x, r->seed);
    bool agrees = op_matrix_agrees(c, x, &why);
    CHECK_MSG(agrees, "%s", why.s ? why.s : "");
}

static void check_level(int level, uint64_t seed) {
    Ctx c;
    Run r = {level, seed};
    CHECK(ctx_init(&c, NULL));
    CHECK(ctx_run(&c, matrix, &r));
    ctx_free(&c);
}

TEST(every_case_at_O0) {
    check_level(0, 1);
}

TEST(every_case_at_O2) {
    check_level(2, 2);
}

TEST_MAIN()
