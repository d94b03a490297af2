/* Writes the op matrix for a GPU into a folder: kernels.cu and driver.c of all cases as one
 * program, their data, and what the interpreter computes of them (tests/gpu/ops.c reads it); the
 * cpu target is held against it on the way.
 *
 *     record_ops DIR             run from the root of the source tree; DIR and DIR/data exist */
#include "codegen/plan_passes/plan_pass.h"
#include "codegen/target.h"
#include "cpu_executor.h"
#include "op_cases.h"
#include "op_matrix.h"

typedef struct {
    const char *dir;
    bool ok;
} Job;

static bool emit(Ctx *c, const char *dir) {
    OpCases *cs = op_cases_build(c);
    Plan *p =
        cpu_exec_passes(c, cs->m, 2) ? plan_of_module(c, cs->m, "cuda", SPMM_OWN, NULL) : NULL;
    if (!p) return false;
    TargetOptions o = {.opt_level = 2};
    return target_cuda.emit_kernels(c, p, &o, EMIT_IR_TEXT,
                                    arena_printf(c->a, "%s/kernels.cu", dir)) &&
           host_emit(c, p, arena_printf(c->a, "%s/driver.c", dir));
}

static bool record(Ctx *c, const char *dir, FILE *to) {
    OpCases *cs = op_cases_build(c);
    CpuExec *x = cpu_exec_passes(c, cs->m, 2) ? cpu_exec_build(c, cs->m, 2) : NULL;
    StrBuf why = sb_new(c->a);
    if (!x) return false;
    cpu_exec_record(x, to);
    bool ok = op_matrix_agrees_at(c, x, 2, arena_printf(c->a, "%s/data", dir), &why);
    if (!ok) fprintf(stderr, "%s\n", why.s ? why.s : "");
    return ok;
}

static void run(Ctx *c, void *arg) {
    Job *j = arg;
    FILE *to = fopen(arena_printf(c->a, "%s/expected.txt", j->dir), "w");
    j->ok = to && emit(c, j->dir) && record(c, j->dir, to);
    if (to && fclose(to) != 0) j->ok = false;
}

int main(int argc, char **argv) {
    Ctx c;
    Job j = {.dir = argc == 2 ? argv[1] : NULL};
    if (!j.dir || !ctx_init(&c, NULL)) return 2;
    bool ran = ctx_run(&c, run, &j);
    diag_print_all(&c, stderr, false);
    ctx_free(&c);
    return !(ran && j.ok);
}
