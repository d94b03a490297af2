/* How many iterations of a vector loop a vector of the processor has.
 *
 *     for %f in 7 vector unroll {         =>     for %f in 7 vector 8 whole unroll {
 *     for %f in F vector {                       for %f in F vector 16 {
 *
 * A constant width has the least power of two that holds it, and up to a few vectors stand one
 * after the other (`unroll_vectors`): local arrays that the loop indexes then live in registers, as
 * sums of a sparse product do.  Where lanes cannot be independent the loop stays as it is. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* Chooses the number of lanes of one vector loop, and whether its vectors are unrolled. True if the
 * loop gets lanes. */
static bool choose_width(Loops *l, LKernel *k, LStmt *s) {
    int64_t extent = -1;
    bool constant = !s->sched.parallel && loop_extent(s, &extent);
    int lanes = constant ? loop_lanes_for(l, extent) : l->machine.lanes;
    if (!s->sched.vector) return false;
    const char *range = loop_range_text(l->a, s);
    const char *why = NULL;
    if (l->machine.lanes < 2)
        why = "the processor has none";
    else if (lanes < 2)
        why = "it is one iteration";
    else if (!loop_may_vectorise(l->a, k, s))
        why = "its iterations need each other";
    if (why) { /* of one iteration nothing is lost */
        (lanes < 2 ? pass_remark : pass_refusal)(l->pass, s->span, "vector-width",
                                                 "%s: no vectors of %s: %s", k->name, range, why);
        return false;
    }
    int max_vectors = pass_threshold(l->c, PASS_T_VECTORS);
    int vectors = loop_has_loop(s->body) && max_vectors > 2 ? 2 : max_vectors;
    s->sched.lanes = lanes;
    s->sched.unroll_vectors = constant && extent <= (int64_t)lanes * vectors;
    pass_remark(l->pass, s->span, "vector-width", "%s: vectors of %d of %s, %s", k->name, lanes,
                range,
                s->sched.unroll_vectors ? "one after the other"
                : constant              ? "in a loop: there are too many"
                                        : "in a loop: only data know how many");
    return true;
}

/* Runs choose_width() on each loop of the kernel that is not inside a vector loop. */
static bool choose_all_widths(Loops *l, LKernel *k) {
    return loop_each_outside_vectors(l, k, choose_width);
}

/* Runs the pass on all kernels. */
static bool run_vector_width(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, choose_all_widths);
}

const Pass loop_pass_vector_width = {
    .name = "vector-width",
    .summary = "how many iterations of a vector loop a vector has",
    .run_loops = run_vector_width,
};
