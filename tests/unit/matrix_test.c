/* The whole way to machine code: every case of op_cases.h, with its gradients, as one
 * program per optimisation level, against the interpreter. */
#include "ctx_test.h"

#include "cpu_executor.h"
#include "op_cases.h"
#include "op_matrix.h"

static void matrix(Ctx *c, void *arg) {
    int level = *(int *)arg;
    OpCases *cs = op_matrix_cases(c, level);
    CpuExec *x = cpu_exec_passes(c, cs->m, level) ? cpu_exec_build(c, cs->m, level) : NULL;
    diag_print_all(c, stderr, false);
    CHECK(x != NULL);
    StrBuf why = sb_new(c->a);
    bool agrees = x && op_matrix_agrees(c, x, level, &why);
    CHECK_MSG(agrees, "%s", why.s ? why.s : "");
}

static void check_level(int level) {
    with_ctx(matrix, &level);
}

TEST(every_case_at_O0) {
    check_level(0);
}

TEST(every_case_at_O2) {
    check_level(2);
}

TEST(every_case_in_bf16) {
    check_level(2 | CPU_EXEC_ALL_BF16);
}

TEST(every_case_in_f16) {
    check_level(2 | CPU_EXEC_ALL_F16);
}

TEST_MAIN()
