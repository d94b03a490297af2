#include "batch_step.h"

#include <string.h>

#include "runtime/exec/device.h"
#include "runtime/memory.h"

gnnc_status rt_batch_step_init(gnnc_trainer *t, rt_phase_kind phase, RtBatchStep *s) {
    const rt_phase *ph = rt_phase_of(t->program, phase);
    s->growth.from = t->rt.pool.from;
    rt_recycle_init(&s->tables, &t->rt.pool.from);
    s->phase = ph ? (int)(ph - t->program->phases) : -1;
    s->most = RT_NEWN(&t->rt.pool, int64_t, t->program->n_syms);
    s->offset = RT_NEWN(&t->rt.pool, size_t, t->program->n_bufs);
    return s->most && s->offset ? GNNC_OK : rt_fail_nomem(&t->rt.err, "batches");
}

void rt_batch_step_free(RtBatchStep *s) {
    if (!s->growth.from.alloc) return; /* never made */
    rt_grow_free(&s->growth, &s->arena);
    rt_recycle_free(&s->tables);
}

static bool fits(const RtBatchStep *s, const RtExec *x) {
    for (int i = 0; i < x->program->n_syms; i++)
        if (x->n[i] > s->most[i]) return false;
    return s->arena.p != NULL;
}

/* May so much be allocated, beside what there is?  Workers allocate, too: a snapshot. */
static gnnc_status may_take(gnnc_trainer *t, size_t n_bytes) {
    if (!n_bytes) return GNNC_OK;
    size_t live = (size_t)rt_trainer_counters(t).live_bytes;
    return rt_memory_more(&t->x, &t->memory, (size_t)t->options.max_memory, live, n_bytes);
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

gnnc_status rt_batch_step_room(gnnc_trainer *t, RtBatchStep *s, const RtExec *x, bool first) {
    if (fits(s, x)) return GNNC_OK;
    RtExec most = {.program = t->program, .n = s->most, .rt = &t->rt};
    size_t n_bytes = 0;
    RtPool tables;
    gnnc_status st;
    for (int i = 0; i < t->program->n_syms; i++) {
        int64_t n = x->n[i];
        bool varies = n != t->x.n[i] && !is_steady(t->program, i);
        int64_t more = first && varies ? n / 4 : 0;
        if (n > s->most[i]) s->most[i] = n + more;
    }
    rt_recycle_reset(&s->tables);
    RtAlloc from = rt_recycle_alloc(&s->tables);
    rt_pool_init(&tables, &from);
    TRY(st, rt_memory_pack(&most, &tables, s->phase, s->offset, &n_bytes));
    if (!n_bytes) n_bytes = 1;
    TRY(st, may_take(t, rt_grow_takes(&s->growth, &s->arena, n_bytes)));
    TRY(st, rt_grow(&s->growth, &s->arena, (int64_t)n_bytes, 1, 0, &t->rt.err));
    n_bytes = rt_memory_library(&t->x, &t->program->phases[s->phase], s->most);
    TRY(st, may_take(t, n_bytes > t->rt.scratch_bytes ? n_bytes : 0));
    if (n_bytes && !rt_scratch(&t->x, n_bytes)) st = GNNC_E_NOMEM;
    rt_trainer_set_grain(t);
out:
    if (st != GNNC_OK) memset(s->most, 0, (size_t)t->program->n_syms * sizeof *s->most);
    return st;
}

/* Makes x the trainer's own for a step, with room for it: its temporaries lie in the arena. */
static gnnc_status place(gnnc_trainer *t, RtBatchStep *s, RtExec *x, bool first) {
    x->rt = &t->rt;
    x->profile = t->x.profile;
    x->threads = t->x.threads;
    gnnc_status st = rt_batch_step_room(t, s, x, first);
    if (st != GNNC_OK) return st;
    for (int i = 0; i < t->program->n_bufs; i++)
        if (rt_memory_is_temp(t->program, i) && t->program->bufs[i].phase == s->phase)
            x->buf[i] = (char *)s->arena.p + s->offset[i];
    return GNNC_OK;
}

gnnc_status rt_batch_step_run(gnnc_trainer *t, RtBatchStep *s, RtMinibatch *m, bool first) {
    gnnc_status st;
    TRY(st, place(t, s, &m->x, first));
    TRY(st, rt_device_batch(&m->x, s->phase, s->offset, s->arena.n_bytes, s->most, m->taken));
    st = rt_phase_run(&m->x, &t->program->phases[s->phase]);
out:
    return st;
}
