/* How many iterations of a vector loop a vector of the processor has.
 *
 *     for %f in 7 vector unroll {         =>     for %f in 7 vector 8 whole unroll {
 *     for %f in F vector {                       for %f in F vector 16 {
 *
 * A constant width has the least power of two that holds it, and up to a few vectors stand one
 * after the other (`whole`): local arrays that the loop indexes then live in registers, as sums of
 * a sparse product do.  Where lanes cannot be independent the loop stays as it is. */
#include "codegen/loops/loops.h"

static bool has_loop(const LStmt *s) {
    for (; s; s = s->next)
        if (s->kind == L_FOR || (loop_has_body(s) && has_loop(s->body))) return true;
    return false;
}

static bool one(Loops *l, LKernel *k, LStmt *s) {
    int64_t n = -1;
    bool constant = !s->sched.parallel && loop_extent(s, &n);
    int w = constant ? loop_lanes_for(l, n) : l->machine.lanes;
    if (!s->sched.vector || w < 2 || !loop_may_vectorise(l->a, k, s)) return false;
    int most = pass_threshold(l->c, PASS_T_VECTORS);
    int vectors = has_loop(s->body) && most > 2 ? 2 : most;
    s->sched.lanes = w;
    s->sched.whole = constant && n <= (int64_t)w * vectors;
    return true;
}

static bool change(Loops *l, LKernel *k) {
    return loop_each_scalar(l, k, one);
}

static bool run(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, change);
}

const Pass loop_pass_vector_width = {
    .name = "vector-width",
    .summary = "how many iterations of a vector loop a vector has",
    .run_loops = run,
};
