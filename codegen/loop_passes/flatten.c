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

/* The vector loop that ends the body of s, behind scalars only; or NULL. */
static const LStmt *inner_vector_loop(const LStmt *s) {
    const LStmt *in = s->body;
    while (in && (in->kind == L_LET || in->kind == L_LOAD)) in = in->next;
    bool row = in && !in->next && in->kind == L_FOR && in->range == LR_EXTENT && in->sched.vector;
    return row ? in : NULL;
}

/* Does the row read back what s and what follows it store, but for the loop `up` around the row? */
static bool reads_back(const LStmt *row, const LStmt *s, const LStmt *up) {
    for (; s; s = s->next) {
        if (s == up) continue;
        if (reads_back(row, s->body, up)) return true;
        if (s->kind != L_STORE || s->buf->kind == LB_LOCAL) continue;
        for (const LStmt *r = row->body; r; r = r->next)
            if (r->kind == L_LOAD && r->buf == s->buf) return true;
    }
    return false;
}

/* Marks loop s and the vector loop in it as one loop over whole vectors, where that is legal. */
static bool flatten_loop(Loops *l, LKernel *k, LStmt *s) {
    const LStmt *in = inner_vector_loop(s);
    if (s->sched.lanes || s->range != LR_EXTENT || s->sched.parallel || !in) return false;
    const char *why = in != loop_flat_row(s)       ? "each has scalars of its own"
                      : reads_back(in, k->body, s) ? "they are read as they were stored"
                                                   : loop_flat_fault(k, s, l->machine.lanes);
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
    return loop_each_outside_vectors(l, k, flatten_loop);
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
