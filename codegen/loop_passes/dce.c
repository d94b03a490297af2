/* Values that nobody reads go. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* Writes remarks on what was removed, and on local arrays that are written but never read. */
static void remark(PassCtx *p, const LKernel *k, int dropped) {
    if (dropped) pass_remark(p, k->span, "dce-loops", "%s: %d values are gone", k->name, dropped);
    for (int i = 0; i < k->locals.n; i++) {
        const LBuf *b = k->locals.v[i];
        if (loop_declares(k->body, b) && !loop_loads(k->body, b))
            pass_refusal(p, k->span, "dce-loops", "%s: not the array %s, which is only written",
                         k->name, b->name);
    }
}

/* Removes until nothing more is unused: one value may have been the only reader of another. */
int loop_drop_unused(Arena *a, LKernel *k) {
    for (int n, all = 0;; all += n) {
        int *uses = NEWN(a, int, (size_t)k->n_regs + 1);
        loop_count_reads(k->body, uses);
        n = loop_drop_values(&k->body, uses);
        if (!n) return all;
    }
}

/* Removes dead values until there are no more: a removed value may have been the only reader of
 * another. */
static bool eliminate_dead_values(Loops *l, LKernel *k) {
    int n_dropped = loop_drop_unused(l->a, k);
    remark(l->pass, k, n_dropped);
    return n_dropped > 0;
}

/* Runs the pass (dead code elimination) on all kernels. */
static bool run_dce(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, eliminate_dead_values);
}

const Pass loop_pass_dce = {
    .name = "dce-loops",
    .summary = "values of a kernel that nobody reads go",
    .run_loops = run_dce,
};
