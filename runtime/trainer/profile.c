/* The interface of what is recorded of steps (exec/profile.c): switching it on, its numbers, and a
 * trace for browsers. */
#include "trainer.h"

#include <stdio.h>
#include <string.h>

#include "runtime/batch/batch_sizes.h"
#include "runtime/batch/train_batches.h"
#include "runtime/clock.h"
#include "runtime/data/io.h"
#include "runtime/data/json.h"
#include "runtime/exec/machine.h"
#include "runtime/exec/profile_data.h"

/* Steps of all phases. */
static int count_steps(const rt_program *p) {
    int n = 0;
    for (int i = 0; i < p->n_phases; i++) n += p->phases[i].n_steps;
    return n;
}

/* Threads start when data are loaded, which may be later. */
static int threads_of(const gnnc_trainer *t) {
    if (t->rt.team) return t->x.threads;
    return t->options.threads ? (int)t->options.threads : rt_usable_cores();
}

gnnc_status gnnc_trainer_profile(gnnc_trainer *t, int64_t max_events) {
    RT_NOT_NULL(t, t);
    rt_trainer_begin(t);
    const rt_program *p = t->program;
    RtPool *pool = &t->rt.pool;
    if (max_events < 0) max_events = 0;
    RtProfile *f = RT_NEW(pool, RtProfile);
    int *first = RT_NEWN(pool, int, p->n_phases);
    int64_t *runs = RT_NEWN(pool, int64_t, p->n_phases);
    RtStepTotal *total = RT_NEWN(pool, RtStepTotal, count_steps(p));
    int n_lanes = max_events && !t->rt.device ? threads_of(t) : 0;
    RtTraceLane *lane =
        RT_NEWN(pool, RtTraceLane, n_lanes + 1); /* the last one: phases and steps */
    if (!f || !first || !runs || !total || !lane) return rt_fail_nomem(&t->rt.err, "the profile");
    for (int i = 0; i <= n_lanes; i++) {
        int64_t max = i < n_lanes ? max_events / n_lanes : max_events;
        lane[i] = (RtTraceLane){.event = RT_NEWN(pool, RtTraceEvent, max), .max = max};
        if (!lane[i].event) return rt_fail_nomem(&t->rt.err, "the profile");
    }
    for (int i = 0, n = 0; i < p->n_phases; n += p->phases[i++].n_steps) first[i] = n;
    *f = (RtProfile){.start = rt_now_ns(),
                     .first = first,
                     .runs = runs,
                     .total = total,
                     .phase = -1,
                     .step = -1,
                     .main = lane[n_lanes],
                     .lane = lane,
                     .n_lanes = n_lanes};
    t->x.profile = f;
    return GNNC_OK;
}

gnnc_status rt_profile_restart(gnnc_trainer *t) {
    return gnnc_trainer_profile(t, t->x.profile->main.max);
}

/* ---- what was measured -------------------------------------------------------------------- */
int gnnc_trainer_n_steps(const gnnc_trainer *t) {
    if (!t) return 0;
    return count_steps(t->program);
}

/* The estimated sizes of a phase over batches that has not run yet. */
static bool estimated_sizes(const gnnc_trainer *t, const rt_phase *ph, int64_t *n, int most) {
    const rt_program *p = t->program;
    const int64_t *seen = rt_phase_sizes(t, ph);
    if (p->n_syms > most) return false;
    for (int i = 0; i < p->n_syms; i++)
        if (seen[i]) return false;
    memcpy(n, t->x.n, (size_t)p->n_syms * sizeof *n);
    int64_t batch = t->options.batch ? t->options.batch : p->sampling.batch;
    return rt_batch_sizes(p, batch, rt_options_fanout(&t->options), rt_batch_for(ph), n);
}

/* Describes a step of a phase, and what it costs at the sizes of now, or (`foreseen`) at those that
 * batches will have about. */
static void describe(gnnc_trainer *t, const rt_phase *ph, int step, gnnc_step_info *out) {
    enum { MOST = 512 };
    int64_t n[MOST];
    const rt_step_info *s = ph->steps ? &ph->steps[step] : NULL;
    rt_step_cost c = {.read = 0};
    bool knows = ph->cost && t->loaded, foreseen = knows && estimated_sizes(t, ph, n, MOST);
    if (knows) ph->cost(step, foreseen ? n : rt_phase_sizes(t, ph), &c);
    *out = (gnnc_step_info){.phase = ph->name,
                            .name = s ? s->name : "step",
                            .is_kernel = s && s->kind == RT_STEP_KERNEL,
                            .note = s ? s->note : "",
                            .lines = s ? s->lines : "",
                            .site = s ? s->site : "",
                            .batch = c.gemm.batch,
                            .m = c.gemm.m,
                            .n = c.gemm.n,
                            .k = c.gemm.k,
                            .read_bytes = c.read,
                            .gathered_bytes = c.gathered,
                            .written_bytes = c.written,
                            .flops = c.flops,
                            .foreseen = foreseen};
}

/* Puts into the description of a step what was recorded of it, step i of all phases. */
static void set_times(const RtProfile *p, int phase, int i, gnnc_step_info *out) {
    const RtStepTotal *of = &p->total[i];
    out->runs = p->runs[phase];
    out->calls = of->calls;
    out->seconds = 1e-9 * (double)of->ns;
    out->first_calls = of->first_calls;
    out->first_seconds = 1e-9 * (double)of->first_ns;
}

gnnc_status gnnc_trainer_step_info(gnnc_trainer *t, int i, gnnc_step_info *out) {
    RT_NOT_NULL(t, out);
    rt_trainer_begin(t);
    const rt_program *p = t->program;
    gnnc_status st = RT_STRUCT_CHECK(&t->rt.err, gnnc_step_info, out, foreseen);
    if (st != GNNC_OK) return st;
    int step = i;
    for (int k = 0; i >= 0 && k < p->n_phases; step -= p->phases[k++].n_steps) {
        if (step >= p->phases[k].n_steps) continue;
        gnnc_step_info own;
        describe(t, &p->phases[k], step, &own);
        if (t->x.profile) set_times(t->x.profile, k, i, &own);
        rt_struct_copy_out(out, &own, sizeof own);
        return GNNC_OK;
    }
    return rt_fail(&t->rt.err, GNNC_E_RANGE, "no step %d", i);
}

/* ---- the trace ------------------------------------------------------------------------------
 * The "JSON object format" of the Trace RtTraceEvent Format (Duffy, Sinclair 2016): complete
 * events, times in microseconds. */
typedef struct {
    gnnc_trainer *t;
    RtOut out;
    RtText text; /* not yet written */
    RtPool pool;
} Trace;

enum { TID_PHASES = 1, TID_STEPS, TID_MEMBERS };

/* Writes an event of the main lane (member -1) or of a member's; false: no memory. */
static bool put_event(Trace *w, const RtTraceEvent *e, int member) {
    gnnc_step_info s;
    const rt_phase *ph = &w->t->program->phases[e->phase];
    describe(w->t, ph, e->step < 0 ? 0 : e->step, &s);
    RtText *b = &w->text;
    bool ok = rt_text_printf(b, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f",
                             member >= 0   ? TID_MEMBERS + member
                             : e->step < 0 ? TID_PHASES
                                           : TID_STEPS,
                             1e-3 * (double)e->at, 1e-3 * (double)e->ns) &&
              rt_text_printf(b, ",\"cat\":\"%s\",\"name\":",
                             e->step < 0   ? "phase"
                             : s.is_kernel ? "kernel"
                                           : "library") &&
              rt_text_json_string(b, e->step < 0 ? ph->name : s.name);
    if (e->step < 0 || member >= 0) return ok && rt_text_printf(b, "}");
    return ok && rt_text_printf(b, ",\"args\":{\"step\":%d,\"note\":", e->step) &&
           rt_text_json_string(b, s.note) && rt_text_printf(b, ",\"site\":") &&
           rt_text_json_string(b, s.site) && rt_text_printf(b, ",\"lines\":") &&
           rt_text_json_string(b, s.lines) &&
           rt_text_printf(b, ",\"read\":%lld,\"written\":%lld,\"flops\":%lld}}",
                          (long long)s.read_bytes, (long long)s.written_bytes, (long long)s.flops);
}

/* Names a row of the trace, as "thread 3"; number < 0: the name alone. */
static bool put_lane_name(Trace *w, int tid, const char *name, int number) {
    RtText *b = &w->text;
    return rt_text_printf(b,
                          ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\","
                          "\"args\":{\"name\":\"%s",
                          tid, name) &&
           (number < 0 || rt_text_printf(b, " %d", number)) && rt_text_printf(b, "\"}}");
}

/* Writes the trace's beginning: the process and the names of its rows. */
static bool put_head(Trace *w) {
    bool ok = rt_text_printf(&w->text, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
                                       "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":"
                                       "{\"name\":") &&
              rt_text_json_string(&w->text, w->t->program->name) &&
              rt_text_printf(&w->text, "}}") && put_lane_name(w, TID_PHASES, "phases", -1) &&
              put_lane_name(w, TID_STEPS, "steps", -1);
    for (int i = 0; ok && i < w->t->x.profile->n_lanes; i++)
        ok = put_lane_name(w, TID_MEMBERS + i, "thread", i);
    return ok;
}

/* Writes the text so far to the file. */
static gnnc_status flush(Trace *w) {
    gnnc_status st = rt_out_write(&w->out, w->text.s, w->text.n, &w->t->rt.err);
    w->text.n = 0;
    return st;
}

/* Writes the events of one lane; `member` -1 is the trainer's own. */
static gnnc_status put_lane(Trace *w, const RtTraceLane *l, int member) {
    enum { PIECE = 1 << 16 };
    for (int64_t i = 0; i < l->n; i++) {
        if (!put_event(w, &l->event[i], member)) return rt_fail_nomem(&w->t->rt.err, "trace");
        if (w->text.n < PIECE) continue;
        gnnc_status st = flush(w);
        if (st != GNNC_OK) return st;
    }
    return GNNC_OK;
}

/* Writes the trace: phases and steps, then what each thread did. */
static gnnc_status write_events(Trace *w) {
    const RtProfile *f = w->t->x.profile;
    if (!put_head(w)) return rt_fail_nomem(&w->t->rt.err, "trace");
    gnnc_status st = put_lane(w, &f->main, -1);
    for (int i = 0; i < f->n_lanes && st == GNNC_OK; i++) st = put_lane(w, &f->lane[i], i);
    if (st != GNNC_OK) return st;
    if (!rt_text_printf(&w->text, "\n]}\n")) return rt_fail_nomem(&w->t->rt.err, "trace");
    return flush(w);
}

gnnc_status gnnc_trainer_trace(gnnc_trainer *t, const char *path, int64_t *n_dropped) {
    RT_NOT_NULL(t, path);
    rt_trainer_begin(t);
    if (n_dropped) *n_dropped = t->x.profile ? t->x.profile->main.n_dropped : 0;
    if (!t->x.profile) return rt_fail(&t->rt.err, GNNC_E_STATE, "nothing was profiled");
    Trace w = {.t = t};
    rt_pool_init(&w.pool, &t->outer);
    w.text.pool = &w.pool;
    gnnc_status st = rt_out_open(&w.out, &t->outer, path, &t->rt.err);
    if (st == GNNC_OK) {
        st = write_events(&w);
        if (st == GNNC_OK) st = rt_out_commit(&w.out, &t->rt.err);
        if (st != GNNC_OK) rt_out_abort(&w.out);
    }
    rt_pool_free(&w.pool);
    return st;
}
