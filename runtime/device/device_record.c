/* Phases that are recorded and replayed: what steps launch the first time, a device launches at
 * once from then on.
 *
 *     steps                  take rows . send .. arrive . put rows, a kernel . sum . send ..
 *     recorded in pieces     [ piece 0 ]                  [ piece 1              ]
 *     replayed               launch 0    send .. arrive   launch 1                 send ..
 *
 * Where processes share rows they exchange some between steps, which the host calls for each time.
 * So a recording ends in front of an exchange, and another one begins behind it.  A phase in pieces
 * is still walked when it is replayed, so that exchanges find what they always do, but its steps
 * are mute.  What processes send is the same whether they replay or not: each may record for
 * itself, and no graph holds calls of the library by which devices send.
 *
 * A phase is recorded as a whole before any of it is done.  So where that fails its steps are
 * launched; where a piece's launch does, the steps from there on. */
#include "device.h"
#include "runtime/exec/distributed.h"

#include <string.h>

/* ---- pieces -------------------------------------------------------------------------------- */
void rt_device_forget_pieces(RtDevice *d, RtDevicePhase *p) {
    for (int i = 0; i < p->n_pieces; i++)
        if (p->piece[i]) d->ops->forget(d, p->piece[i]);
    rt_pool_drop(&d->x->rt->pool, p->piece);
    p->piece = NULL;
    p->n_pieces = p->most_pieces = 0;
}

void rt_device_forget_recordings(RtDevice *d) {
    for (int i = 0; i < d->x->program->n_phases; i++) {
        rt_device_forget_pieces(d, &d->phase[i]);
        d->phase[i] = (RtDevicePhase){.stops = d->phase[i].stops, .refused = d->phase[i].refused};
    }
    rt_device_forget_buckets(d);
}

static gnnc_status make_room(RtDevice *d, RtDevicePhase *p) {
    RtPool *pool = &d->x->rt->pool;
    const int most = p->most_pieces ? 2 * p->most_pieces : 1;
    if (p->n_pieces < p->most_pieces) return GNNC_OK;
    void **piece = RT_NEWN(pool, void *, most);
    if (!piece) return rt_fail_nomem(&d->x->rt->err, "recordings");
    if (p->n_pieces) memcpy(piece, p->piece, (size_t)p->n_pieces * sizeof *piece);
    rt_pool_drop(pool, p->piece);
    p->piece = piece;
    p->most_pieces = most;
    return GNNC_OK;
}

/* Ends the recording of a piece, which is kept unless it is of no work. */
static gnnc_status end_piece(RtDevice *d) {
    RtDeviceWalk *w = &d->walk;
    void *recording = NULL;
    gnnc_status st = d->ops->record_end(d, &recording);
    w->captures = false;
    if (st == GNNC_OK) st = make_room(d, w->of);
    if (recording && (st != GNNC_OK || !w->asks)) {
        d->ops->forget(d, recording);
        recording = NULL;
    }
    if (st == GNNC_OK) w->of->piece[w->of->n_pieces++] = recording;
    w->asks = false;
    return st;
}

/* Between two pieces of a phase that is recorded.  Its steps go on in any case, mute where that
 * fails: they leave nothing half done. */
static void begin_next_piece(RtDevice *d) {
    RtDeviceWalk *w = &d->walk;
    gnnc_status st = GNNC_OK;
    if (w->mute) return;
    if (d->in_loop)
        st = rt_fail(&d->x->rt->err, GNNC_E_STATE, "processes exchange rows in a loop of it");
    else if (w->asks)
        st = end_piece(d);
    else if ((st = make_room(d, w->of)) == GNNC_OK)
        w->of->piece[w->of->n_pieces++] = NULL; /* the recording that has begun goes on */
    if (st == GNNC_OK && !w->captures) {
        st = d->ops->record_begin(d);
        w->captures = st == GNNC_OK;
    }
    w->status = st;
    w->mute = st != GNNC_OK;
}

/* Launches the next piece, in place of the steps in it. */
static void launch_piece(RtDevice *d) {
    RtDeviceWalk *w = &d->walk;
    if (w->at >= w->of->n_pieces) {
        w->status = rt_fail(&d->x->rt->err, GNNC_E_STATE,
                            "more exchanges of rows than there were when it was recorded");
        return;
    }
    void *recording = w->of->piece[w->at];
    if (recording) w->status = d->ops->replay(d, recording);
    d->x->rt->count.launches += recording && w->status == GNNC_OK;
    w->at += w->status == GNNC_OK;
}

/* ---- what steps ask -------------------------------------------------------------------------- */
bool rt_device_may_exchange(RtDevice *d) {
    RtDeviceWalk *w = &d->walk;
    switch (w->mode) {
    case RT_WALK_RECORDS:
        begin_next_piece(d);
        return false;
    case RT_WALK_REPLAYS:
        if (w->status == GNNC_OK) launch_piece(d);
        return w->status == GNNC_OK;
    case RT_WALK_RESUMES:
        if (w->at >= w->from) return true;
        w->mute = ++w->at < w->from;
        return false;
    default:
        if (d->in_loop) rt_device_stops(d); /* a recorded loop is one piece */
        return true;
    }
}

void rt_device_stops(RtDevice *d) {
    if (d->may_record) d->may_record->stops = true;
}

gnnc_status rt_device_work(RtDevice *d, size_t n_bytes, void **p) {
    gnnc_status st = GNNC_OK;
    if (n_bytes > d->work_bytes &&
        rt_device_records(d)) { /* nothing is allocated now: record_warm() */
        d->missing_bytes = n_bytes;
        return rt_fail_nomem(&d->x->rt->err, "work of a recorded call");
    }
    if (n_bytes > d->work_bytes) {
        rt_device_forget_recordings(d);
        d->ops->release(d, d->work);
        d->work = NULL;
        d->work_bytes = 0;
        st = d->ops->alloc(d, n_bytes, &d->work);
        if (st == GNNC_OK) d->work_bytes = n_bytes;
    }
    *p = d->work;
    return st;
}

/* ---- runs ------------------------------------------------------------------------------------ */
/* Services that return nothing leave what went wrong in d->status. */
static gnnc_status run_steps(RtDevice *d, RtExec *x, const rt_phase *phase) {
    gnnc_status st = phase->run_device(x);
    return st != GNNC_OK ? st : d->status;
}

/* What is launched and sent is counted once, however often steps are walked. */
static void count_anew(RtExec *x, const gnnc_counters *before) {
    gnnc_counters *c = &x->rt->count;
    c->launches = before->launches;
    c->library_calls = before->library_calls;
    c->sent_bytes = before->sent_bytes;
    c->messages = before->messages;
    c->beside_bytes = before->beside_bytes;
}

/* Whether the phase is recorded in several streams: its steps are, and there is what these need.
 * Where that cannot be had, one does, which is slower at most. */
static bool open_streams(RtDevice *d, const rt_phase *phase) {
    RtError *err = &d->x->rt->err;
    if (phase->n_streams < 2 || d->one_stream || !d->ops->streams_open) return false;
    gnnc_status st =
        d->ops->streams_open(d, phase->n_streams, phase->product_streams, phase->n_steps);
    if (st == GNNC_OK) return true;
    rt_message(d->x->rt, "streams: '%s': %s; there is one", phase->name, err->text);
    err->text[0] = '\0';
    d->one_stream = true;
    return false;
}

/* After a recording that failed: nothing was sent, so that nothing is to come. */
static void leave_nothing(RtExec *x) {
    RtDist *o = x->rt->dist;
    if (!o) return;
    o->failed = GNNC_OK; /* as it was: may_be_recorded() */
    o->n_beside = 0;
}

/* Runs the phase once while the device records it (a CUDA graph for each piece), to p. */
static gnnc_status record(RtDevice *d, RtExec *x, const rt_phase *phase, RtDevicePhase *p) {
    const bool in_streams = open_streams(d, phase);
    const gnnc_counters before = x->rt->count;
    gnnc_status st = d->ops->record_begin(d);
    if (st != GNNC_OK) return st;
    d->in_streams = in_streams;
    d->status = GNNC_OK;
    d->walk = (RtDeviceWalk){.mode = RT_WALK_RECORDS, .of = p, .captures = true};
    gnnc_status ran = run_steps(d, x, phase);
    d->in_streams = false;
    d->stream = d->in_loop = 0;
    if (ran == GNNC_OK) ran = d->walk.status;
    const RtError why = d->x->rt->err;
    if (d->walk.captures) st = end_piece(d);
    d->walk = (RtDeviceWalk){0};
    count_anew(x, &before);
    if (ran != GNNC_OK) {
        st = ran;
        d->x->rt->err = why; /* the end of a recording fails, too, where a step did */
    }
    if (st == GNNC_OK) return st;
    rt_device_forget_pieces(d, p); /* what there is of them */
    leave_nothing(x);
    return st;
}

/* The body of a loop that had no iteration in the first run is met here for the first time, and may
 * want memory. */
static gnnc_status record_warm(RtDevice *d, RtExec *x, const rt_phase *phase, RtDevicePhase *p) {
    void *work;
    gnnc_status st = record(d, x, phase, p);
    while (st != GNNC_OK && d->missing_bytes) {
        size_t n_bytes = d->missing_bytes;
        int64_t runs = p->runs; /* forgotten with all recordings */
        d->missing_bytes = 0;
        d->x->rt->err.text[0] = '\0';
        st = rt_device_work(d, n_bytes, &work);
        p->runs = runs;
        if (st == GNNC_OK) st = record(d, x, phase, p);
    }
    return st;
}

/* After a recording that went wrong, or the launch of piece `from`: nothing of that or what is
 * behind it has been done, as a graph is launched whole or not at all.  If its steps alone go
 * wrong, too, the first failure is the cause. */
static gnnc_status run_instead(RtDevice *d, RtExec *x, const rt_phase *phase, RtDevicePhase *p,
                               int from) {
    RtError *err = &d->x->rt->err, why = *err;
    rt_device_forget_pieces(d, p);
    d->phase[phase - x->program->phases].refused = true;
    d->status = GNNC_OK;
    d->in_loop = 0;
    err->text[0] = '\0';
    if (from) d->walk = (RtDeviceWalk){.mode = RT_WALK_RESUMES, .from = from, .mute = true};
    gnnc_status st = run_steps(d, x, phase);
    d->walk = (RtDeviceWalk){0};
    if (st == GNNC_OK)
        rt_message(d->x->rt, "graphs: '%s': %s; its steps are launched one by one", phase->name,
                   why.text);
    else
        *err = why;
    return st;
}

/* Launches the recording of the phase, which is made first if there is none: each piece counts as
 * one launch. */
static gnnc_status replay(RtDevice *d, RtExec *x, const rt_phase *phase, RtDevicePhase *p) {
    const gnnc_counters before = x->rt->count;
    gnnc_status st = p->n_pieces ? GNNC_OK : record_warm(d, x, phase, p);
    if (st != GNNC_OK) return run_instead(d, x, phase, p, 0);
    d->walk = (RtDeviceWalk){.mode = RT_WALK_REPLAYS, .of = p, .mute = true};
    if (p->n_pieces > 1) st = run_steps(d, x, phase);
    x->rt->count.library_calls = before.library_calls;
    if (st == GNNC_OK && d->walk.status == GNNC_OK) launch_piece(d);
    const RtDeviceWalk walked = d->walk;
    d->walk = (RtDeviceWalk){0};
    if (st != GNNC_OK || walked.status == GNNC_OK) return st;
    count_anew(x, &before);
    return run_instead(d, x, phase, p, walked.at);
}

/* May runs of the phase be recorded?  Not where halos come in some steps alone. */
static bool may_be_recorded(const RtDevice *d, const RtExec *x, const RtDevicePhase *p) {
    const RtDist *o = x->rt->dist;
    const bool same = !o || (!o->keeps && o->failed == GNNC_OK);
    return same && !p->stops && !d->never_record && !x->profile && d->ops->record_begin;
}

/* A phase runs as it is the first time, which shows whether it can be recorded and lets
 * libraries make what they need; then it is recorded; from then on its recording is replayed.
 * Sizes are bound, so it does the same each time.  Where that goes wrong its steps are launched,
 * and nobody tries again. */
gnnc_status rt_device_run_or_replay(RtDevice *d, RtExec *x, const rt_phase *phase,
                                    RtDevicePhase *p) {
    bool may = may_be_recorded(d, x, p);
    bool refused = d->phase[phase - x->program->phases].refused && !p->n_pieces;
    bool record_it = p->runs++ > 0 && may && !refused;
    if (record_it) return replay(d, x, phase, p);
    if (may && !refused) open_streams(d, phase); /* allocates now, not when others are replayed */
    d->may_record = p;
    gnnc_status st = run_steps(d, x, phase);
    d->may_record = NULL;
    return st;
}
