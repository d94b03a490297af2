/* Values that nobody reads go. */
#include "codegen/loops/loops.h"

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

static bool drop_unused(LStmt **at, const int *uses) {
    bool dropped = false;
    for (LStmt *s = *at; s; s = *at) {
        dropped |= drop_unused(&s->body, uses);
        if (s->dst && uses[s->dst->id] == 0) {
            *at = s->next;
            dropped = true;
        } else {
            at = &s->next;
        }
    }
    return dropped;
}

static bool change(Loops *l, LKernel *k) {
    for (bool any = false;; any = true) {
        int *uses = NEWN(l->a, int, (size_t)k->n_regs + 1);
        count_uses(k->body, uses);
        if (!drop_unused(&k->body, uses)) return any;
    }
}

static bool run(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, change);
}

const Pass loop_pass_dce = {
    .name = "dce-loops",
    .summary = "values of a kernel that nobody reads go",
    .run_loops = run,
};
