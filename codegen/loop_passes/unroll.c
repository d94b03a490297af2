/* Iterations of short constant loops stand one after the other.
 *
 *     for %i in 3 {                   =>     for %i in 3 unroll {
 *     for %h in 40 unroll {                  for %h in 40 {
 *
 * Here rather than in LLVM, so that local arrays that they index fall apart into registers before
 * any of its passes runs. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* Remarks on a loop of constant extent; unrolled: its iterations stand one after the other. */
static void remark(const Loops *l, const LKernel *k, const LStmt *s, bool unrolled, int64_t n,
                   int most) {
    if (unrolled)
        pass_remark(l->pass, s->span, "unroll-loops", "%s: %lld iterations one after the other",
                    k->name, (long long)n);
    else
        pass_refusal(l->pass, s->span, "unroll-loops", "%s: a loop of %lld stays: %s", k->name,
                     (long long)n,
                     n > most          ? "unroll-loops.max-iterations is less"
                     : s->sched.unroll ? "they are more than stand one after the other"
                                       : "nobody asks for it, and it is not short, or has loops");
}

/* Marks the loops of a list that are unrolled; true if a mark changed. */
static bool unroll_list(const Loops *l, const LKernel *k, LStmt *s) {
    bool any = false;
    int most = pass_threshold(l->c, PASS_T_UNROLL_ITERATIONS);
    for (int64_t n; s; s = s->next) {
        bool is = s->kind == L_FOR && loop_is_unrolled_fully(s, &n) && n <= most;
        bool known = loop_extent(s, &n) && !s->sched.parallel && !s->sched.lanes;
        if (known && s->range == LR_EXTENT) remark(l, k, s, is, n, most);
        any |= s->kind == L_FOR && is != s->sched.unroll;
        if (s->kind == L_FOR) s->sched.unroll = is;
        any |= unroll_list(l, k, s->body);
    }
    return any;
}

/* Marks the loops of one kernel. */
static bool change(Loops *l, LKernel *k) {
    return unroll_list(l, k, k->body);
}

/* Runs the pass on all kernels. */
static bool run_unroll(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, change);
}

const Pass loop_pass_unroll = {
    .name = "unroll-loops",
    .summary = "iterations of short constant loops stand one after the other",
    .run_loops = run_unroll,
};
