/* One time stamp per step: a step ends where the next one begins, so the times of a phase
 * add up to the phase, and what the driver does between two calls is in them too.  All
 * tables are made when profiling is asked for; a step allocates nothing.
 *
 * A trace has a lane per thread, too: what each had of a step, so that one sees who waits for
 * whom.  A thread writes to its own lane only.
 *
 * A device works behind the host's back, so there its own stamps are put into its queue and read
 * when the phase ends. */
#include "profile_data.h"

#include "runtime/clock.h"

/* Records an event in its lane, or counts it where the lane is full. */
static void record_event(const RtProfile *f, RtTraceLane *l, int step, int64_t from, int64_t to) {
    if (l->n < l->max)
        l->event[l->n++] = (RtTraceEvent){from - f->start, to - from, f->phase, step};
    else if (l->max)
        l->n_dropped++;
}

int64_t rt_profile_share_begin(const RtExec *x) {
    return x->profile && x->profile->n_lanes && x->profile->phase >= 0 ? rt_now_ns() : -1;
}

void rt_profile_share_end(RtExec *x, int member, int64_t since) {
    RtProfile *f = x->profile;
    if (since < 0 || member >= f->n_lanes || f->step < 0) return;
    record_event(f, &f->lane[member], f->step, since, rt_now_ns());
}

/* Adds one run of a step, from .. to in nanoseconds, to the totals of the phase, those of its first
 * run apart. */
static void add(RtProfile *f, int step, int64_t from, int64_t to) {
    RtStepTotal *t = &f->total[f->first[f->phase] + step];
    t->calls += f->fresh;
    t->ns += to - from;
    if (f->runs[f->phase] == 1) t->first_calls += f->fresh, t->first_ns += to - from;
    record_event(f, &f->main, step, from, to);
}

static void end_step(RtProfile *f, int64_t now) {
    if (f->step >= 0) add(f, f->step, f->since, now);
}

/* ---- on a device ------------------------------------------------------------------------ */
/* Reads the stamps put so far; the last one ends the last step. */
static gnnc_status read_stamps(RtDevice *d, RtProfile *f) {
    int n = f->n_stamps - 1;
    f->n_stamps = 0;
    if (n < 1) return GNNC_OK;
    gnnc_status st = d->ops->stamps(d, n, f->stamp_ns);
    for (int i = 0; i < n && st == GNNC_OK; i++) {
        add(f, f->stamped[i], f->since, f->since + f->stamp_ns[i]);
        f->since += f->stamp_ns[i];
    }
    return st;
}

/* Puts a time stamp into the device's queue, before the step; reads all stamps back where the table
 * is full. */
static void stamp(RtDevice *d, RtProfile *f, int step) {
    gnnc_status st = GNNC_OK;
    if (f->n_stamps == RT_STAMPS - 1) { /* the table is full: this one ends it and starts anew */
        st = d->ops->stamp(d, f->n_stamps++);
        if (st == GNNC_OK) st = read_stamps(d, f);
    }
    f->stamped[f->n_stamps] = step;
    if (st == GNNC_OK) st = d->ops->stamp(d, f->n_stamps++);
    if (d->status == GNNC_OK) d->status = st;
}

/* ---- both ------------------------------------------------------------------------------- */
void rt_profile_step(RtExec *x, int step) {
    RtProfile *f = x->profile;
    if (x->rt->device) {
        stamp(x->rt->device, f, step);
        return;
    }
    int64_t now = rt_now_ns();
    end_step(f, now);
    f->step = step;
    f->fresh = rt_step_first(x);
    f->since = now;
}

/* Begins measuring a run of the phase. */
void rt_profile_begin(RtExec *x, const rt_phase *phase) {
    RtProfile *f = x->profile;
    f->phase = (int)(phase - x->program->phases);
    f->runs[f->phase]++;
    f->step = -1;
    f->fresh = true;
    f->n_stamps = 0;
    f->phase_since = f->since = rt_now_ns();
}

/* Ends measuring a run of the phase and adds its times to the totals. */
gnnc_status rt_profile_end(RtExec *x) {
    RtProfile *f = x->profile;
    RtDevice *d = x->rt->device;
    gnnc_status st = GNNC_OK;
    if (d) {
        stamp(d, f, -1);
        st = read_stamps(d, f);
    }
    int64_t now = rt_now_ns();
    end_step(f, now);
    record_event(f, &f->main, -1, f->phase_since, now);
    f->step = f->phase = -1;
    return st;
}
