/* Iterations of short constant loops stand one after the other.
 *
 *     for %i in 3 {                   =>     for %i in 3 unroll {
 *     for %h in 40 unroll {                  for %h in 40 {
 *
 * Here rather than in LLVM, so that local arrays that they index fall apart into registers before
 * any of its passes runs. */
#include "codegen/loops/loops.h"

static bool all(const Loops *l, LStmt *s) {
    bool any = false;
    int most = pass_threshold(l->c, PASS_T_UNROLL_TURNS);
    for (int64_t n; s; s = s->next) {
        bool is = s->kind == L_FOR && loop_is_short(s, &n) && n <= most;
        any |= s->kind == L_FOR && is != s->sched.unroll;
        if (s->kind == L_FOR) s->sched.unroll = is;
        any |= all(l, s->body);
    }
    return any;
}

static bool change(Loops *l, LKernel *k) {
    return all(l, k->body);
}

static bool run(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, change);
}

const Pass loop_pass_unroll = {
    .name = "unroll-loops",
    .summary = "iterations of short constant loops stand one after the other",
    .run_loops = run,
};
