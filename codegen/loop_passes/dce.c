/* Values that nobody reads go. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* Counts how often each register is read. */
static void count_uses(const LStmt *s, int *uses) {
    for (; s; s = s->next) {
        for (int i = 0; i < s->n_arg; i++) uses[s->arg[i]->id]++;
        for (int i = 0; loop_is_access(s) && i < s->buf->rank; i++) uses[s->idx[i]->id]++;
        if (s->src) uses[s->src->id]++;
        if (s->cond) uses[s->cond->id]++;
        if (s->at) uses[s->at->id]++;
        count_uses(s->body, uses);
    }
}

/* Removes the values that nobody reads; returns how many. */
static int drop_unused(LStmt **at, const int *uses) {
    int dropped = 0;
    for (LStmt *s = *at; s; s = *at) {
        dropped += drop_unused(&s->body, uses);
        if (s->dst && uses[s->dst->id] == 0) {
            *at = s->next;
            dropped++;
        } else {
            at = &s->next;
        }
    }
    return dropped;
}

/* Remarks on what was removed, and on arrays that are written and never read. */
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

/* Removes the values of one kernel that nobody reads. */
static bool eliminate(Loops *l, LKernel *k) {
    int n = loop_drop_unused(l->a, k);
    remark(l->pass, k, n);
    return n > 0;
}

static bool run(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, eliminate);
}

const Pass loop_pass_dce = {
    .name = "dce-loops",
    .summary = "values of a kernel that nobody reads go",
    .run_loops = run,
};
