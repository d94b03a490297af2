/* Dead code elimination: a pure operation that nobody uses is removed.
 *
 *     %0 = exp %x            ->      (gone)
 *     output "y" %x                  output "y" %x
 *
 * One walk from the end suffices: operands stand before their users. */
#include "passes/rewrite.h"

int pass_dce_func(Arena *a, Func *f) {
    int *uses = func_use_counts(a, f);
    int removed = 0;
    for (Op *op = f->last, *prev; op; op = prev) {
        prev = op->prev;
        if (uses[op->id] || !op_has(op, OPT_PURE)) continue;
        for (int i = 0; i < op->n_in; i++) uses[op->in[i]->id]--;
        op_remove(op);
        removed++;
    }
    return removed;
}

static bool run(PassCtx *p, Module *m) {
    for (int i = 0; i < m->funcs.n; i++) pass_dce_func(p->a, m->funcs.v[i]);
    return true;
}

const Pass pass_dce = {
    .name = "dce",
    .summary = "remove pure operations that nobody uses",
    .needs = IR_TYPED,
    .run = run,
};
