#include "batch_step.h"

#include <string.h>

#include "runtime/device/device.h"
#include "runtime/memory.h"

gnnc_status rt_batch_step_init(RtBatchStep *s, RtExec *x, gnnc_trainer *t, rt_phase_kind phase) {
    const rt_phase *ph = rt_phase_of(x->program, phase);
    RtPool *pool = &x->rt->pool;
    s->x = x;
    s->t = t;
    s->growth.from = pool->from;
    rt_recycle_init(&s->tables, &pool->from);
    s->phase = ph ? (int)(ph - x->program->phases) : -1;
    s->most = RT_NEWN(pool, int64_t, x->program->n_syms);
    s->offset = RT_NEWN(pool, size_t, x->program->n_bufs);
    return s->most && s->offset ? GNNC_OK : rt_fail_nomem(&x->rt->err, "batches");
}

/* Releases the step's arena and tables; a step that was never made has none. */
void rt_batch_step_free(RtBatchStep *s) {
    if (!s->growth.from.alloc) return; /* never made */
    rt_grow_free(&s->growth, &s->arena);
    rt_recycle_free(&s->tables);
}

/* Has the arena room for the sizes of x? */
static bool fits(const RtBatchStep *s, const RtExec *x) {
    for (int i = 0; i < x->program->n_syms; i++)
        if (x->n[i] > s->most[i]) return false;
    return s->arena.p != NULL;
}

/* May so much be allocated, beside what there is?  Workers allocate, too: a snapshot. */
static gnnc_status may_take(const RtBatchStep *s, size_t n_bytes) {
    if (!n_bytes || !s->t) return GNNC_OK;
    return rt_trainer_may_take(s->t, n_bytes, "a mini-batch",
                               ": a smaller batch or fan-out needs less");
}

/* Links and queries are as many in every batch but the last: no later one has more. */
static bool is_steady(const rt_program *p, int sym) {
    for (int i = 0; i < p->n_spaces; i++) {
        rt_rel_kind k = p->spaces[i].rel;
        bool counted = k == RT_REL_LINKS || k == RT_REL_POSITIVES || k == RT_REL_QUERIES;
        if (p->spaces[i].sym == sym) return counted;
    }
    return false;
}

/* Grows the arena and the workspace to what the sizes of this batch need. */
gnnc_status rt_batch_step_reserve(RtBatchStep *s, const RtExec *x, bool first) {
    if (fits(s, x)) return GNNC_OK;
    const rt_program *p = s->x->program;
    RtRuntime *rt = s->x->rt;
    RtExec most = {.program = p, .n = s->most, .rt = rt};
    size_t n_bytes = 0;
    RtPool tables;
    gnnc_status st;
    for (int i = 0; i < p->n_syms; i++) {
        int64_t n = x->n[i];
        bool varies = n != s->x->n[i] && !is_steady(p, i);
        int64_t more = first && varies ? n / 4 : 0;
        if (n > s->most[i]) s->most[i] = n + more;
    }
    rt_recycle_reset(&s->tables);
    RtAlloc from = rt_recycle_alloc(&s->tables);
    rt_pool_init(&tables, &from);
    TRY(st, rt_memory_pack(&most, &tables, s->phase, s->offset, &n_bytes));
    if (!n_bytes) n_bytes = 1;
    TRY(st, may_take(s, rt_grow_takes(&s->growth, &s->arena, n_bytes)));
    TRY(st, rt_grow(&s->growth, &s->arena, (int64_t)n_bytes, 1, 0, &rt->err));
    n_bytes = rt_memory_library(s->x, &p->phases[s->phase], s->most);
    TRY(st, may_take(s, n_bytes > rt->scratch_bytes ? n_bytes : 0));
    if (n_bytes && !rt_scratch(s->x, n_bytes)) st = GNNC_E_NOMEM;
    if (s->t) rt_trainer_set_serial_steps(s->t);
out:
    if (st != GNNC_OK) memset(s->most, 0, (size_t)p->n_syms * sizeof *s->most);
    return st;
}

/* ---- rounded sizes -------- */
/* A seventh more: the last but one of the eighths is `typical`.  Of few rows numbers vary more, so
 * that some are added; a larger batch would be launched kernel by kernel, which is slower. */
static int64_t with_margin(int64_t typical) {
    enum { FEW = 16 };
    return typical + typical / (RT_BUCKETS - 1) + FEW;
}

gnnc_status rt_batch_step_limit(RtBatchStep *s, const int64_t *typical) {
    const rt_program *p = s->x->program;
    if (!s->limit) s->limit = RT_NEWN(&s->x->rt->pool, int64_t, p->n_syms);
    if (!s->limit) return rt_fail_nomem(&s->x->rt->err, "batches");
    memcpy(s->limit, typical, (size_t)p->n_syms * sizeof *typical);
    for (int i = 0; i < p->n_spaces; i++)
        if (p->spaces[i].varies)
            s->limit[p->spaces[i].sym] = with_margin(typical[p->spaces[i].sym]);
    return GNNC_OK;
}

/* Whether the sizes of this batch are rounded up: a question of its sizes and the limit alone, as
 * bits depend on it. */
static bool is_rounded(const RtBatchStep *s, const RtExec *x) {
    for (int i = 0; i < x->program->n_syms && s->limit; i++)
        if (x->n[i] > s->limit[i]) return false;
    return s->limit != NULL;
}

/* ---- the step -------- */
/* Makes x the owner's own for a step, with room for it and for all that it may be rounded to: its
 * temporaries lie in the arena.  *to gets that room. */
static gnnc_status place(RtBatchStep *s, RtExec *x, bool first, RtBatchRoom *to) {
    x->rt = s->x->rt;
    x->profile = s->x->profile;
    x->threads = s->x->threads;
    RtExec room = *x;
    bool rounded = is_rounded(s, x);
    if (rounded) room.n = s->limit;
    gnnc_status st = rt_batch_step_reserve(s, &room, first && !rounded);
    if (st != GNNC_OK) return st;
    *to = (RtBatchRoom){.offset = s->offset,
                        .arena_bytes = s->arena.n_bytes,
                        .most = s->most,
                        .limit = rounded ? s->limit : NULL};
    for (int i = 0; i < x->program->n_bufs; i++)
        if (rt_memory_is_temp(x->program, i) && x->program->bufs[i].phase == s->phase)
            x->buf[i] = (char *)s->arena.p + s->offset[i];
    return GNNC_OK;
}

gnnc_status rt_batch_step_run_on(RtBatchStep *s, RtExec *x, const RtDeviceGather *taken,
                                 bool first) {
    gnnc_status st;
    RtBatchRoom room;
    TRY(st, place(s, x, first, &room));
    TRY(st, rt_device_batch(x, s->phase, &room, taken));
    st = rt_phase_run(x, &x->program->phases[s->phase]);
out:
    return st;
}

gnnc_status rt_batch_step_run(RtBatchStep *s, RtMinibatch *m, bool first) {
    return rt_batch_step_run_on(s, &m->x, m->gathers, first);
}
