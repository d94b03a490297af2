/* Short rows that lie side by side are one long row: 8 heads of 8 are 4 vectors of 16.
 *
 *     for %h in 8 unroll {                       for %h in 8 unroll flat 16 {
 *       for %f in 8 vector {            =>         ..
 *         acc sum y[%v, %h, %f] %x
 *       }
 *     }
 *
 * Scalars are the same for all of them, and local arrays are added to in such rows alone. */
#include "codegen/loops/loops.h"

static bool one(Loops *l, LKernel *k, LStmt *s) {
    if (s->sched.lanes || !loop_may_flatten(k, s, l->machine.lanes)) return false;
    s->sched.flat = l->machine.lanes;
    return true;
}

static bool change(Loops *l, LKernel *k) {
    return loop_each_scalar(l, k, one);
}

static bool run(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, change);
}

const Pass loop_pass_flatten = {
    .name = "flatten",
    .summary = "short rows that lie side by side are one long row",
    .run_loops = run,
};
