/* Scalars of entries, a vector of entries at a time.
 *
 *     for %e in segment ptr[%v] {              for %e in segment ptr[%v] strips 16 {
 *       %w = exp ..                     =>       of 16 entries, one per lane: %w
 *       for %f in F vector { .. }                for each of them: for %f in F vector { .. }
 *     }
 *
 * Worth it where a scalar takes many instructions: a random number, an exponential. */
#include "codegen/loops/loops.h"

static bool one(Loops *l, LKernel *k, LStmt *s) {
    const LStmt *rest = loop_end_of_prefix(s, false);
    (void)k;
    if (l->machine.lanes < 2 || s->sched.parallel || s->sched.unroll || s->range == LR_CHUNK)
        return false;
    if (s->sched.lanes || !rest || !loop_has_heavy(s->body, rest)) return false;
    s->sched.strips = l->machine.lanes;
    return true;
}

static bool change(Loops *l, LKernel *k) {
    return loop_each_scalar(l, k, one);
}

static bool run(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, change);
}

const Pass loop_pass_strip_mine = {
    .name = "strip-mine",
    .summary = "scalars of entries are had for a vector of them at once",
    .run_loops = run,
};
