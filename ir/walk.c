/* Marks, and the walk in which operands come before their readers, on a stack of its own. */
#include "ir/walk.h"

#include <string.h>

/* Marks for n keys. */
IrMarks ir_marks_new(Arena *a, int n_keys) {
    return (IrMarks){.at = NEWN(a, unsigned, (size_t)n_keys + 1), .n = n_keys};
}

/* Begins a walk. */
void ir_marks_start(IrMarks *m) {
    if (++m->walk) return;
    memset(m->at, 0, (size_t)m->n * sizeof *m->at);
    m->walk = 1;
}

/* An operation whose first `next` operands were gone to. */
typedef struct {
    const Op *op;
    int next;
} Visit;

/* Visits what `root` is computed from, operands first. */
IrOps ir_walk(Arena *a, IrMarks *m, const Op *root, IrEnter *enter, void *user) {
    IrOps found = {0};
    VEC(Visit) stack = {0};
    ir_marks_start(m);
    ir_marks_first(m, root->id);
    vec_push(a, &stack, ((Visit){root, enter(user, root) ? 0 : root->n_in}));
    while (stack.n) {
        Visit *last = &stack.v[stack.n - 1];
        if (last->next == last->op->n_in) {
            vec_push(a, &found, (Op *)last->op);
            stack.n--;
            continue;
        }
        const Op *x = last->op->in[last->next++];
        if (ir_marks_first(m, x->id))
            vec_push(a, &stack, ((Visit){x, enter(user, x) ? 0 : x->n_in}));
    }
    return found;
}
