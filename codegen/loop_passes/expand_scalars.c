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

/* Whether the loop contains vector loops that sum into its scalars: reducing the vectors of several
 * iterations together is cheaper. */
static bool has_vector_sums(const LStmt *loop) {
    for (const LStmt *s = loop->body; s; s = s->next)
        for (const LStmt *acc = s->kind == L_FOR && s->sched.vector ? s->body : NULL; acc;
             acc = acc->next)
            if (acc->kind == L_ACC && loop_declares_directly(loop, acc->buf)) return true;
    return false;
}

/* Writes a remark that the scalars of loop s are not expanded into lanes, with the reason. Returns
 * false. */
static bool remark_declined(Loops *l, const LKernel *k, const LStmt *s, const char *why) {
    pass_declined(l->pass, s->span, "expand-scalars", "%s: scalars of %s are by themselves: %s",
                  k->name, loop_range_text(l->a, s), why);
    return false;
}

/* Decides for one loop (over heads) whether its scalars are computed for all iterations at once,
 * one iteration per vector lane: those of the whole body, or only those before the first other
 * statement. */
static bool expand_loop(Loops *l, LKernel *k, LStmt *s) {
    int64_t extent = 0;
    int lanes = l->machine.lanes;
    if (s->sched.lanes || s->sched.flat || !loop_extent(s, &extent)) return false;
    const LStmt *rest = loop_end_of_prefix(s, true);
    bool whole_body =
        loop_may_expand(s, lanes, false) && (loop_has_heavy(s->body, NULL) || has_vector_sums(s));
    bool prefix = loop_may_expand(s, lanes, true) && loop_has_heavy(s->body, rest);
    if (!whole_body && !prefix && (extent < 2 || s->sched.parallel)) return false;
    bool is_worth_it = loop_has_heavy(s->body, NULL) || has_vector_sums(s);
    if (!whole_body && !prefix)
        return remark_declined(
            l, k, s,
            is_worth_it ? loop_expand_fault(s, lanes)
                        : "no function of many instructions, and no sum over vectors, is in them");
    s->sched.expand = loop_lanes_for(l, extent);
    s->sched.prefix = !whole_body;
    pass_remark(l->pass, s->span, "expand-scalars", "%s: scalars of %s are had at once%s", k->name,
                loop_range_text(l->a, s), whole_body ? "" : ", up to the first other statement");
    return true;
}

/* Runs expand_loop() on each loop of the kernel that is not inside a vector loop. */
static bool expand_all_loops(Loops *l, LKernel *k) {
    return loop_each_outside_vectors(l, k, expand_loop);
}

/* Runs the pass (scalar expansion) on all kernels. */
static bool run_expand_scalars(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, expand_all_loops);
}

const Pass loop_pass_expand_scalars = {
    .name = "expand-scalars",
    .summary = "scalars of a short loop are had for all iterations at once, one per lane",
    .run_loops = run_expand_scalars,
};
