/* From which step of its phase to which one every temporary is wanted. */
#include "codegen/plan.h"

static void used_in(const Plan *p, int buf, int step) {
    PBuf *b = p->bufs.v[buf];
    if (b->kind != PB_TEMP) return;
    if (b->first < 0) b->first = step;
    b->last = step;
}

/* What is there before a loop and used in it is there until it ends. */
static void live_through(const Plan *p, const PPhase *ph, int from, int to) {
    for (int i = 0; i < p->bufs.n; i++) {
        PBuf *b = p->bufs.v[i];
        bool across = b->first >= 0 && b->first < from && b->last >= from && b->last < to;
        if (b->kind == PB_TEMP && p->phases.v[b->phase] == ph && across) b->last = to;
    }
}

/* The steps of a chain take turns, so what one of them uses must exist in all. */
void plan_lifetimes(const Plan *p, const PPhase *ph) {
    PStep *const *step = ph->steps.v;
    for (int i = 0; i < p->bufs.n; i++)
        if (p->bufs.v[i]->kind == PB_TEMP && p->phases.v[p->bufs.v[i]->phase] == ph)
            p->bufs.v[i]->first = -1;
    for (int i = 0, to; i < ph->steps.n; i = to) {
        for (to = i + 1; to < ph->steps.n && step[i]->chain && step[to]->chain == step[i]->chain;)
            to++;
        for (int j = i; j < to; j++) {
            for (int k = 0; k < step[j]->n_bufs; k++) {
                used_in(p, step[j]->bufs[k], i);
                used_in(p, step[j]->bufs[k], to - 1);
            }
            if (step[j]->pred >= 0) used_in(p, step[j]->pred, j);
        }
    }
    for (int i = ph->steps.n - 1; i >= 0; i--) /* inner loops first */
        if (step[i]->kind == PS_LOOP) live_through(p, ph, i, step[i]->other);
}
