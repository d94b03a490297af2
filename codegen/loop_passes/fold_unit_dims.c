/* Loops and dimensions of one iteration go.
 *
 *     for %v in N parallel {                for %v in N parallel {
 *       local acc: f32[1, 16]                 local acc: f32[16]
 *       for %h in 1 {                         for %f in 16 { store acc[%f] %c }
 *         for %f in 16 { store acc[%h, %f] %c }
 *       }
 *     }                                     }
 *
 * (MLIR's fold-unit-extent-dims.)  What is left of a row is what a team could share. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* Whether the loop has one iteration and is not the parallel one. */
static bool has_one_iteration(const LStmt *s) {
    int64_t n;
    return loop_extent(s, &n) && n == 1 && !s->sched.parallel;
}

/* Predicate for loop_find(): is the statement a loop of one iteration? */
static bool is_one_iteration_loop(const LStmt *s, const void *none) {
    return has_one_iteration(s) && !none;
}

/* Adds the constant 0 ahead of the parallel loop: the index of the removed loops. */
static LReg *add_zero(Loops *l, LKernel *k) {
    LStmt *s = NEW(l->a, LStmt);
    *s = (LStmt){.kind = L_LET, .fn = L_FN_SIZE, .size = expr_const(l->a, 0), .span = k->span};
    s->dst = loop_new_register(l->a, k, DT_I64, "n", s);
    s->next = k->body;
    k->body = s;
    return s->dst;
}

/* Replaces loops of one iteration by their bodies, with `zero` for the loop variable; returns how
 * many. */
static int fold_unit_loops(LStmt **at, LReg *zero) {
    int n = 0;
    while (*at) {
        LStmt *s = *at;
        if (loop_has_body(s)) n += fold_unit_loops(&s->body, zero);
        if (has_one_iteration(s)) {
            loop_replace_register(s->body, s->var, zero);
            at = loop_replace_by_body(at);
            n++;
        } else {
            at = &s->next;
        }
    }
    return n;
}

/* Removes dimensions of extent 1 from a local array; returns how many. */
static int fold_unit_dims(LStmt *row, LBuf *b) {
    bool drop[MAX_RANK];
    int n = 0;
    for (int i = 0; i < b->rank; i++) n += drop[i] = loop_is_unit_extent(b->dim[i]);
    if (n) loop_drop_dims(row, b, drop);
    return n;
}

/* Writes remarks on loops of one iteration that cannot be removed. */
static void remark_unfolded(PassCtx *p, const LKernel *k, bool has_row) {
    const LStmt *parallel = loop_parallel(k);
    int64_t n;
    if (parallel && loop_extent(parallel, &n) && n == 1)
        pass_refusal(p, k->span, "fold-unit-dims",
                     "%s: not the parallel loop: threads share its index", k->name);
    if (!has_row && loop_find(k->body, is_one_iteration_loop, NULL))
        pass_refusal(p, k->span, "fold-unit-dims",
                     "%s: not: there is no row that a team could have", k->name);
}

/* Removes loops of one iteration, and dimensions of extent 1 of local arrays, from one kernel; true
 * if it changed. */
static bool fold_kernel(Loops *l, LKernel *k) {
    LStmt **row = loop_row_list(k);
    int loops = 0, dims = 0;
    if (row && loop_find(*row, is_one_iteration_loop, NULL))
        loops = fold_unit_loops(row, add_zero(l, k));
    for (int i = 0; row && i < k->locals.n; i++) dims += fold_unit_dims(*row, k->locals.v[i]);
    if (loops + dims)
        pass_remark(l->pass, k->span, "fold-unit-dims",
                    "%s: %d loops and %d dimensions of one iteration are gone", k->name, loops,
                    dims);
    remark_unfolded(l->pass, k, row != NULL);
    return loops + dims > 0;
}

/* Runs the pass on all kernels. */
static bool run_fold_unit_dims(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, fold_kernel);
}

const Pass loop_pass_fold_unit_dims = {
    .name = "fold-unit-dims",
    .summary = "loops and dimensions of one iteration go",
    .run_loops = run_fold_unit_dims,
};
