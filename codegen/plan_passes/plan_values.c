/* What a step's kernel makes of which values: the operations that it computes, and those whose
 * results its arguments hold.  It was written down when the kernel was formed, and added to when
 * kernels were joined; of a plan's text it is what the text says. */
#include "codegen/plan_passes/plan_order.h"

/* Whether the kernel computes op. */
bool plan_computes(const LKernel *k, const Op *op) {
    for (int i = 0; i < k->computes.n; i++)
        if (k->computes.v[i] == op) return true;
    return false;
}

/* The argument that holds op when the kernel begins; NULL: none does. */
const LBuf *plan_argument(const LKernel *k, const Op *op) {
    for (int i = 0; i < k->bufs.n; i++) {
        const LBuf *b = k->bufs.v[i];
        bool is_read = !b->written && b->value && !plan_computes(k, op);
        if (is_read && cg_is_same_value(b->value, op)) return b;
        if (b->value_before && cg_is_same_value(b->value_before, op)) return b;
    }
    return NULL;
}

const LBuf *plan_map_argument(const LKernel *k, const Map *m, LBufKind part, const Map *by) {
    for (int i = 0; i < k->bufs.n; i++) {
        const LBuf *b = k->bufs.v[i];
        if (b->kind == part && b->map == m && b->sorted_by == by) return b;
    }
    return NULL;
}

const Op *plan_stored_value(const LKernel *k) {
    const Op *stored = NULL;
    for (int i = 0; i < k->bufs.n; i++) {
        const LBuf *b = k->bufs.v[i];
        if (!b->written) continue;
        if (stored || !b->value) return NULL;
        stored = b->value;
    }
    while (stored && stored->kind == OP_VIEW && plan_computes(k, stored->in[0]))
        stored = stored->in[0];
    return stored;
}

int plan_argument_buf(const PStep *s, const LBuf *b) {
    return b ? s->bufs[b->id] : -1;
}
