/* Short rows that lie side by side are one long row: 8 heads of 8 are 4 vectors of 16.
 *
 *     for %h in 8 unroll {                       for %h in 8 unroll flat 16 {
 *       for %f in 8 vector {            =>         ..
 *         acc sum y[%v, %h, %f] %x
 *       }
 *     }
 *
 * Scalars are the same for all of them, and local arrays are added to in such rows alone. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* The vector loop that ends the body, behind scalars alone. */
static const LStmt *row_of(const LStmt *s) {
    const LStmt *in = s->body;
    while (in && (in->kind == L_LET || in->kind == L_LOAD)) in = in->next;
    bool row = in && !in->next && in->kind == L_FOR && in->range == LR_EXTENT && in->sched.vector;
    return row ? in : NULL;
}

static bool one(Loops *l, LKernel *k, LStmt *s) {
    const LStmt *in = row_of(s);
    if (s->sched.lanes || s->range != LR_EXTENT || s->sched.parallel || !in) return false;
    const char *why =
        in == s->body ? loop_flat_fault(k, s, l->machine.lanes) : "each has scalars of its own";
    if (why) {
        pass_refusal(l->pass, s->span, "flatten", "%s: not %s rows of %s: %s", k->name,
                     loop_range_text(l->a, s), loop_range_text(l->a, in), why);
        return false;
    }
    pass_remark(l->pass, s->span, "flatten", "%s: %s rows of %s are one", k->name,
                loop_range_text(l->a, s), loop_range_text(l->a, in));
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
