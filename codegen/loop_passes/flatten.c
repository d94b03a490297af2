/* Short rows that lie side by side are one long row: 8 heads of 8 are 4 vectors of 16.
 *
 *     for %h in 8 unroll {                       for %h in 8 unroll flat 16 {
 *       for %f in 8 vector {            =>         ..
 *         acc sum y[%v, %h, %f] %x
 *       }
 *     }
 *
 * Scalars are the same for all of them, but for a place in all rows (h * 8 + f); local arrays are
 * added to in such rows alone.  What the kernel itself stores row by row is read so, too: a load
 * that is wider than the stores before it waits until they have left for the cache. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* The vector loop that ends the body of s, if only scalars stand before it; NULL = there is none.
 */
static const LStmt *inner_vector_loop(const LStmt *s) {
    const LStmt *inner = s->body;
    while (inner && loop_is_value(inner)) inner = inner->next;
    bool is_last = inner && !inner->next && inner->kind == L_FOR && inner->range == LR_EXTENT &&
                   inner->sched.vector;
    return is_last ? inner : NULL;
}

/* Whether the vector loop `row` loads what s, or a statement after it, stores row by row. The loop
 * `around` the row does not count. Wide loads after narrow stores would wait for the cache. */
static bool row_reads_back(const LStmt *row, const LStmt *s, const LStmt *around) {
    for (; s; s = s->next) {
        if (s == around) continue;
        if (row_reads_back(row, s->body, around)) return true;
        if (s->kind != L_STORE || s->buf->kind == LB_LOCAL) continue;
        for (const LStmt *load = row->body; load; load = load->next)
            if (load->kind == L_LOAD && load->buf == s->buf) return true;
    }
    return false;
}

/* Marks loop s (over heads) and the vector loop in it to be run as one loop over whole vectors,
 * where rows are contiguous. */
static bool flatten_loop(Loops *l, LKernel *k, LStmt *s) {
    const LStmt *inner = inner_vector_loop(s);
    if (s->sched.lanes || s->range != LR_EXTENT || s->sched.parallel || !inner) return false;
    const char *why = inner != loop_flat_row(s)           ? "each has scalars of its own"
                      : row_reads_back(inner, k->body, s) ? "they are read as they were stored"
                                                          : loop_flat_fault(k, s, l->machine.lanes);
    if (why) {
        pass_refusal(l->pass, s->span, "flatten", "%s: not %s rows of %s: %s", k->name,
                     loop_range_text(l->a, s), loop_range_text(l->a, inner), why);
        return false;
    }
    pass_remark(l->pass, s->span, "flatten", "%s: %s rows of %s are one", k->name,
                loop_range_text(l->a, s), loop_range_text(l->a, inner));
    s->sched.flat = l->machine.lanes;
    return true;
}

/* Runs flatten_loop() on each loop of the kernel that is not inside a vector loop. */
static bool flatten_all_loops(Loops *l, LKernel *k) {
    return loop_each_outside_vectors(l, k, flatten_loop);
}

/* Runs the pass (loop flattening) on all kernels. */
static bool run_flatten(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, flatten_all_loops);
}

const Pass loop_pass_flatten = {
    .name = "flatten",
    .summary = "short rows that lie side by side are one long row",
    .run_loops = run_flatten,
};
