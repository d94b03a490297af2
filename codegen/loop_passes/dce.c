/* Values that nobody reads go. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* Counts in n_reads[register id] how often the statements read each register. */
static void count_uses(const LStmt *s, int *n_reads) {
    for (; s; s = s->next) {
        for (int i = 0; i < s->n_arg; i++) n_reads[s->arg[i]->id]++;
        for (int i = 0; loop_is_access(s) && i < s->buf->rank; i++) n_reads[s->idx[i]->id]++;
        if (s->src) n_reads[s->src->id]++;
        if (s->cond) n_reads[s->cond->id]++;
        if (s->at) n_reads[s->at->id]++;
        count_uses(s->body, n_reads);
    }
}

/* Removes the values that nobody reads from the list at *at and nested ones; returns how many. */
static int drop_unused(LStmt **at, const int *n_reads) {
    int dropped = 0;
    for (LStmt *s = *at; s; s = *at) {
        dropped += drop_unused(&s->body, n_reads);
        if (s->dst && n_reads[s->dst->id] == 0) {
            *at = s->next;
            dropped++;
        } else {
            at = &s->next;
        }
    }
    return dropped;
}

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
        count_uses(k->body, uses);
        n = drop_unused(&k->body, uses);
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
