/* The lives of a phase's temporaries, and what they fill while it runs: for moves of steps that
 * must not make it more.  Sizes are nominal (plan_order.c). */
#include <string.h>

#include "codegen/plan_passes/plan_order.h"
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"

/* Prepares the measurement of a phase. */
Lives plan_lives(Arena *a, const Plan *p, const PPhase *ph) {
    return (Lives){
        .p = p,
        .ph = ph,
        .sizes = plan_order_nominal_sizes(a, p->m),
        .live = NEWN(a, int64_t, (size_t)ph->steps.n + 1),
        .lifetime = NEWN(a, RtPackItem, (size_t)p->bufs.n + 1),
        .used = (int(*)[RT_STREAMS_MAX])NEWN(a, int, ((size_t)p->bufs.n + 1) * RT_STREAMS_MAX)};
}

/* Records that step number `step` uses the buffer. */
static void extend_lifetime(Lives *l, int buf, int step) {
    RtPackItem *it = &l->lifetime[buf];
    if (it->first < 0 || step < it->first) it->first = step;
    if (step > it->last) it->last = step;
    if (l->order) plan_stream_use(l->order, l->used[buf], step);
}

/* Nobody has used the buffer yet. */
static void use_by_none(int used[RT_STREAMS_MAX]) {
    for (int s = 0; s < RT_STREAMS_MAX; s++) used[s] = -1;
}

/* Finds the lifetimes of buffers in the phase's current order. */
static void find_lifetimes(Lives *l) {
    for (int b = 0; b < l->p->bufs.n; b++) {
        l->lifetime[b].first = l->lifetime[b].last = -1;
        use_by_none(l->used[b]);
    }
    for (int i = 0; i < l->ph->steps.n; i++) {
        const PStep *s = l->ph->steps.v[i];
        for (int k = 0; k < s->n_bufs; k++) extend_lifetime(l, s->bufs[k], i);
        if (s->pred >= 0) extend_lifetime(l, s->pred, i);
        for (int k = 0; s->group && k < s->group->steps.n; k++)
            for (int j = 0; j < s->group->steps.v[k]->n_bufs; j++)
                extend_lifetime(l, s->group->steps.v[k]->bufs[j], i);
    }
}

/* The bytes of temporaries that are live at the fullest step of the phase's current order. */
int64_t plan_lives_peak(Lives *l) {
    int64_t most = 0, live = 0;
    memset(l->live, 0, ((size_t)l->ph->steps.n + 1) * sizeof *l->live);
    find_lifetimes(l);
    for (int b = 0; b < l->p->bufs.n; b++) {
        const PBuf *buf = l->p->bufs.v[b];
        RtPackItem *it = &l->lifetime[b];
        if (it->first < 0 || buf->kind != PB_TEMP || buf->block >= 0) continue;
        if (l->order) it->last = plan_stream_life(l->order, l->used[b], it->last);
        for (int i = 0; i < l->ph->blocks.n; i++)
            rt_pack_span(it, l->ph->blocks.v[i].first, l->ph->blocks.v[i].last);
        int64_t n = expr_eval(buf->count, l->sizes) * dtype_bytes(buf->dt);
        l->live[it->first] += n;
        l->live[it->last + 1] -= n;
    }
    for (int i = 0; i < l->ph->steps.n; i++) {
        live += l->live[i];
        if (live > most) most = live;
    }
    return most;
}

/* ---- of the plan as it is ------------------------------------------------------------------ */
/* Records in the plan that a step uses a temporary. */
static void extend_plan_lifetime(Plan *p, int buf, int step) {
    PBuf *b = p->bufs.v[buf];
    if (b->kind != PB_TEMP) return;
    if (b->first < 0 || step < b->first) b->first = step;
    if (step > b->last) b->last = step;
}

/* Extends the lifetimes of temporaries that exist before a loop and are used in it to the loop's
 * end; returns how many. */
static int extend_over_loop(Plan *p, int phase, int from, int to) {
    int n = 0;
    for (int i = 0; i < p->bufs.n; i++) {
        PBuf *b = p->bufs.v[i];
        bool across = b->first >= 0 && b->first < from && b->last >= from && b->last < to;
        if (b->kind != PB_TEMP || b->phase != phase || !across) continue;
        b->last = to;
        n++;
    }
    return n;
}

int plan_stream_lives(Arena *a, const Plan *p, const PPhase *ph, int *last) {
    const StreamOrder o = plan_stream_order(a, ph);
    Lives l = plan_lives(a, p, ph);
    int n = 0;
    l.order = &o;
    find_lifetimes(&l);
    for (int i = 0; i < p->bufs.n; i++) {
        last[i] = -1;
        if (p->bufs.v[i]->kind != PB_TEMP || p->phases.v[p->bufs.v[i]->phase] != ph) continue;
        last[i] = plan_stream_life(&o, l.used[i], l.lifetime[i].last);
        n += last[i] > p->bufs.v[i]->last;
    }
    return n;
}

/* Extends the lifetimes of temporaries to the last step that may run while they are in use; returns
 * how many. */
static int extend_over_streams(Arena *a, Plan *p, int phase) {
    int *last = NEWN(a, int, (size_t)p->bufs.n + 1);
    const int n = plan_stream_lives(a, p, p->phases.v[phase], last);
    for (int i = 0; i < p->bufs.n; i++)
        if (last[i] > p->bufs.v[i]->last) p->bufs.v[i]->last = last[i];
    return n;
}

/* Finds the first and last step of each temporary of a phase, and writes them to the plan. */
static void find_phase(PassCtx *pc, Plan *p, int phase) {
    const PPhase *ph = p->phases.v[phase];
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        for (int k = 0; k < s->n_bufs; k++) extend_plan_lifetime(p, s->bufs[k], i);
        if (s->pred >= 0) extend_plan_lifetime(p, s->pred, i);
        for (int k = 0; s->epilogue && k < s->epilogue->n_covers; k++)
            for (int j = 0; j < s->epilogue->covers[k]->n_bufs; j++)
                extend_plan_lifetime(p, s->epilogue->covers[k]->bufs[j], i);
        for (int k = 0; s->group && k < s->group->steps.n; k++) /* all at once */
            for (int j = 0; j < s->group->steps.v[k]->n_bufs; j++)
                extend_plan_lifetime(p, s->group->steps.v[k]->bufs[j], i);
    }
    for (int i = ph->steps.n - 1; i >= 0; i--) /* inner loops first */
        if (ph->steps.v[i]->kind == PS_LOOP) {
            int n = extend_over_loop(p, phase, i, ph->steps.v[i]->other);
            if (n)
                pass_refusal(
                    pc, ph->steps.v[i]->span, "lifetimes",
                    "@%s: %d temporaries do not end with their last use: each iteration of the "
                    "loop reads them",
                    ph->name, n);
        }
    int n = 0, n_longer = plan_has_streams(ph) ? extend_over_streams(pc->a, p, phase) : 0;
    for (int i = 0; i < p->bufs.n; i++)
        n += p->bufs.v[i]->kind == PB_TEMP && p->bufs.v[i]->phase == phase &&
             p->bufs.v[i]->first >= 0;
    if (n_longer)
        pass_refusal(pc, ph->func->span, "lifetimes",
                     "@%s: %d temporaries do not end with their last use: steps of other streams "
                     "may still read them",
                     ph->name, n_longer);
    if (n && ph->func)
        pass_remark(pc, ph->func->span, "lifetimes",
                    "@%s: %d temporaries, each from its first use to its last", ph->name, n);
}

static bool run(PassCtx *pc, Plan *p) {
    for (int i = 0; i < p->bufs.n; i++) p->bufs.v[i]->first = p->bufs.v[i]->last = -1;
    for (int i = 0; i < p->phases.n; i++) find_phase(pc, p, i);
    return true;
}

const Pass plan_pass_lifetimes = {
    .name = "lifetimes",
    .summary = "find the steps between which each temporary holds a value",
    .needs = PLAN_STEPS,
    .gives = PLAN_LIVES,
    .run_plan = run,
    .required = true,
};
