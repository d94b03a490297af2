/* Short constant loops with loops inside: the heads of an attention.
 *
 *     for %h in 8 unroll {                     for %h in 8 unroll expand 8 {
 *       scalars of %h                   =>       lanes      scores, exp, random of all heads
 *       for %f in 8 vector { .. }                head 0     loop over its features
 *       scalars from its sum                     ..
 *     }                                          head 7
 *                                                lanes      what is computed from the sums
 *
 * Loop distribution (Kennedy and McKinley 1990) with scalar expansion into one vector: allowed
 * where iterations share no element that is written.  Where they do, the scalars before the first
 * other statement are had at once (`prefix`).  Worth it where there is a function of many
 * instructions, or sums over vectors, which are folded together (codegen/cpu/lanes.c). */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* Whether the loop has sums over vectors: their final reductions are cheaper together. */
static bool has_vector_sums(const LStmt *loop) {
    for (const LStmt *s = loop->body; s; s = s->next)
        for (const LStmt *a = s->kind == L_FOR && s->sched.vector ? s->body : NULL; a; a = a->next)
            if (a->kind == L_ACC && loop_declares_directly(loop, a->buf)) return true;
    return false;
}

/* Remarks that the scalars of loop s are not expanded, with the reason; false. */
static bool decline(Loops *l, const LKernel *k, const LStmt *s, const char *why) {
    pass_declined(l->pass, s->span, "expand-scalars", "%s: scalars of %s are by themselves: %s",
                  k->name, loop_range_text(l->a, s), why);
    return false;
}

/* Decides for one loop whether its scalars are computed for all iterations at once, one per lane:
 * all of them, or those of the prefix. */
static bool expand_loop(Loops *l, LKernel *k, LStmt *s) {
    int64_t n = 0;
    int most = l->machine.lanes;
    if (s->sched.lanes || s->sched.flat || !loop_extent(s, &n)) return false;
    const LStmt *rest = loop_end_of_prefix(s, true);
    bool all =
        loop_may_expand(s, most, false) && (loop_has_heavy(s->body, NULL) || has_vector_sums(s));
    bool prefix = loop_may_expand(s, most, true) && loop_has_heavy(s->body, rest);
    if (!all && !prefix && (n < 2 || s->sched.parallel)) return false;
    bool worth = loop_has_heavy(s->body, NULL) || has_vector_sums(s);
    if (!all && !prefix)
        return decline(
            l, k, s,
            worth ? loop_expand_fault(s, most)
                  : "no function of many instructions, and no sum over vectors, is in them");
    s->sched.expand = loop_lanes_for(l, n);
    s->sched.prefix = !all;
    pass_remark(l->pass, s->span, "expand-scalars", "%s: scalars of %s are had at once%s", k->name,
                loop_range_text(l->a, s), all ? "" : ", up to the first other statement");
    return true;
}

static bool change(Loops *l, LKernel *k) {
    return loop_each_outside_vectors(l, k, expand_loop);
}

static bool run(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, change);
}

const Pass loop_pass_expand_scalars = {
    .name = "expand-scalars",
    .summary = "scalars of a short loop are had for all iterations at once, one per lane",
    .run_loops = run,
};
