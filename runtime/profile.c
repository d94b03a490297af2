/* One time stamp per step: a step ends where the next one begins, so the times of a phase
 * add up to the phase, and what the driver does between two calls is in them too.  All
 * tables are made when profiling is asked for; a step allocates nothing. */
#include "profile.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "device.h"
#include "io.h"
#include "json.h"
#include "trainer.h"

typedef struct {
    int64_t calls, ns;
} Total;

typedef struct {
    int64_t at, ns;  /* since start */
    int phase, step; /* step -1: the whole phase */
} Event;

struct RtProfile {
    int64_t start;
    int *first;   /* [n_phases] its steps begin there in total */
    Total *total; /* [n_steps of all phases] */
    int phase, step;
    int64_t phase_since, since;
    Event *event;
    int64_t n_events, max_events, n_dropped;
};
typedef struct RtProfile RtProfile;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int count_steps(const rt_program *p) {
    int n = 0;
    for (int i = 0; i < p->n_phases; i++) n += p->phases[i].n_steps;
    return n;
}

/* A device works behind the host's back: time stamps here would say nothing. */
static gnnc_status on_host(gnnc_trainer *t) {
    const RtDeviceOps *d = t->program->device;
    if (!d) return GNNC_OK;
    return rt_fail(&t->rt.err, GNNC_E_STATE,
                   "this trainer runs on %s: its own profiler (nsys for cuda) shows the kernels",
                   d->name);
}

gnnc_status gnnc_trainer_profile(gnnc_trainer *t, int64_t max_events) {
    rt_trainer_begin(t);
    const rt_program *p = t->program;
    if (on_host(t) != GNNC_OK) return GNNC_E_STATE;
    RtPool *pool = &t->rt.pool;
    if (max_events < 0) max_events = 0;
    RtProfile *f = RT_NEW(pool, RtProfile);
    int *first = RT_NEWN(pool, int, p->n_phases);
    Total *total = RT_NEWN(pool, Total, count_steps(p));
    Event *event = RT_NEWN(pool, Event, max_events);
    if (!f || !first || !total || !event) return rt_fail_nomem(&t->rt.err, "the profile");
    for (int i = 0, n = 0; i < p->n_phases; n += p->phases[i++].n_steps) first[i] = n;
    *f = (RtProfile){.start = now_ns(),
                     .first = first,
                     .total = total,
                     .phase = -1,
                     .step = -1,
                     .event = event,
                     .max_events = max_events};
    t->x.profile = f;
    return GNNC_OK;
}

/* ---- while it runs --------------------------------------------------------------------- */
static void keep_event(RtProfile *f, int step, int64_t from, int64_t to) {
    if (f->n_events < f->max_events)
        f->event[f->n_events++] = (Event){from - f->start, to - from, f->phase, step};
    else if (f->max_events)
        f->n_dropped++;
}

static void end_step(RtProfile *f, int64_t now) {
    if (f->step < 0) return;
    Total *t = &f->total[f->first[f->phase] + f->step];
    t->calls++;
    t->ns += now - f->since;
    keep_event(f, f->step, f->since, now);
}

void rt_profile_step(RtExec *x, int step) {
    RtProfile *f = x->profile;
    int64_t now = now_ns();
    end_step(f, now);
    f->step = step;
    f->since = now;
}

void rt_profile_begin(RtExec *x, const rt_phase *phase) {
    RtProfile *f = x->profile;
    f->phase = (int)(phase - x->program->phases);
    f->step = -1;
    f->phase_since = now_ns();
}

void rt_profile_end(RtExec *x) {
    RtProfile *f = x->profile;
    int64_t now = now_ns();
    end_step(f, now);
    keep_event(f, -1, f->phase_since, now);
    f->step = f->phase = -1;
}

/* ---- what was measured -------------------------------------------------------------------- */
int gnnc_trainer_n_steps(const gnnc_trainer *t) {
    return count_steps(t->program);
}

static void describe(gnnc_trainer *t, const rt_phase *ph, int step, gnnc_step_info *out) {
    const rt_step_info *s = ph->steps ? &ph->steps[step] : NULL;
    rt_step_cost c = {.read = 0};
    if (ph->cost && t->loaded) ph->cost(step, t->x.n, &c);
    *out = (gnnc_step_info){.phase = ph->name,
                            .name = s ? s->name : "step",
                            .is_kernel = s && s->kind == RT_STEP_KERNEL,
                            .note = s ? s->note : "",
                            .lines = s ? s->lines : "",
                            .read_bytes = c.read,
                            .gathered_bytes = c.gathered,
                            .written_bytes = c.written,
                            .flops = c.flops};
}

gnnc_status gnnc_trainer_step_info(gnnc_trainer *t, int i, gnnc_step_info *out) {
    rt_trainer_begin(t);
    const rt_program *p = t->program;
    int step = i;
    for (int k = 0; i >= 0 && k < p->n_phases; step -= p->phases[k++].n_steps) {
        if (step >= p->phases[k].n_steps) continue;
        describe(t, &p->phases[k], step, out);
        if (!t->x.profile) return GNNC_OK;
        out->calls = t->x.profile->total[i].calls;
        out->seconds = 1e-9 * (double)t->x.profile->total[i].ns;
        return GNNC_OK;
    }
    return rt_fail(&t->rt.err, GNNC_E_RANGE, "no step %d", i);
}

/* ---- the trace ------------------------------------------------------------------------------
 * The "JSON object format" of the Trace Event Format (Duffy, Sinclair 2016): complete
 * events, times in microseconds. */
typedef struct {
    gnnc_trainer *t;
    RtOut out;
    RtText text; /* not yet written */
    RtPool pool;
} Trace;

static bool put_event(Trace *w, const Event *e) {
    gnnc_step_info s;
    const rt_phase *ph = &w->t->program->phases[e->phase];
    describe(w->t, ph, e->step < 0 ? 0 : e->step, &s);
    RtText *b = &w->text;
    bool ok = rt_text_printf(b, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f",
                             e->step < 0 ? 1 : 2, 1e-3 * (double)e->at, 1e-3 * (double)e->ns) &&
              rt_text_printf(b, ",\"cat\":\"%s\",\"name\":",
                             e->step < 0   ? "phase"
                             : s.is_kernel ? "kernel"
                                           : "library") &&
              rt_text_json_string(b, e->step < 0 ? ph->name : s.name);
    if (e->step < 0) return ok && rt_text_printf(b, "}");
    return ok && rt_text_printf(b, ",\"args\":{\"step\":%d,\"note\":", e->step) &&
           rt_text_json_string(b, s.note) && rt_text_printf(b, ",\"lines\":") &&
           rt_text_json_string(b, s.lines) &&
           rt_text_printf(b, ",\"read\":%lld,\"written\":%lld,\"flops\":%lld}}",
                          (long long)s.read_bytes, (long long)s.written_bytes, (long long)s.flops);
}

static bool put_head(Trace *w) {
    return rt_text_printf(&w->text, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
                                    "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":"
                                    "{\"name\":") &&
           rt_text_json_string(&w->text, w->t->program->name) &&
           rt_text_printf(&w->text, "}},\n{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":"
                                    "\"thread_name\",\"args\":{\"name\":\"phases\"}},\n"
                                    "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"thread_name\","
                                    "\"args\":{\"name\":\"steps\"}}");
}

static gnnc_status flush(Trace *w) {
    gnnc_status st = rt_out_write(&w->out, w->text.s, w->text.n, &w->t->rt.err);
    w->text.n = 0;
    return st;
}

static gnnc_status write_events(Trace *w) {
    enum { PIECE = 1 << 16 };
    const RtProfile *f = w->t->x.profile;
    bool ok = put_head(w);
    for (int64_t i = 0; ok && i < f->n_events; i++) {
        ok = put_event(w, &f->event[i]);
        if (!ok || w->text.n < PIECE) continue;
        gnnc_status st = flush(w);
        if (st != GNNC_OK) return st;
    }
    if (!ok || !rt_text_printf(&w->text, "\n]}\n")) return rt_fail_nomem(&w->t->rt.err, "trace");
    return flush(w);
}

gnnc_status gnnc_trainer_trace(gnnc_trainer *t, const char *path, int64_t *n_dropped) {
    rt_trainer_begin(t);
    if (n_dropped) *n_dropped = t->x.profile ? t->x.profile->n_dropped : 0;
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
