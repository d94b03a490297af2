/* Mini-batches on a device.
 *
 * A batch brings columns and maps of its own, and temporaries by its own sizes; the rest is the
 * trainer's.  What it brings is packed into a page-locked block and crosses with one copy, beside
 * the queue: while the device computes a batch, the next one is on its way.  Two lanes, each with
 * a block on both sides, take turns.  Nothing is read back: what the host wants to know of each
 * step is noted on the device, and read when an epoch ends.
 *
 * Batches differ in size, so their steps are queued kernel by kernel; or, if that is wanted, for
 * sizes rounded up to one of a few buckets, parts of the room there is.  Then everything lies where
 * it did for the last batch of the bucket, and the step is one recording for each lane.  Kernels
 * find the batch's own sizes in front of what it brings (codegen/plan_buckets.c). */
#include "device.h"

#include <string.h>

static gnnc_status make_tables(RtDevice *d) {
    RtPool *pool = &d->x->rt->pool;
    RtDeviceBatch *b = &d->batch;
    b->at.buf = RT_NEWN(pool, void *, d->x->program->n_bufs);
    b->at.n_bytes = RT_NEWN(pool, size_t, d->x->program->n_bufs);
    b->most = RT_NEWN(pool, int64_t, d->x->program->n_syms);
    b->n = RT_NEWN(pool, int64_t, d->x->program->n_syms);
    bool ok = b->at.buf && b->at.n_bytes && b->most && b->n;
    return ok ? GNNC_OK : rt_fail_nomem(&d->x->rt->err, "the device's tables");
}

/* Bound for this batch: not the data's. */
static bool is_own(const RtExec *x, const RtDevice *d, int b) {
    rt_buf_kind k = x->program->bufs[b].kind;
    bool bound = k == RT_BUF_DATA || k == RT_BUF_MAP || k == RT_BUF_LOGICAL;
    return bound && x->buf[b] && x->buf[b] != d->x->buf[b];
}

static bool is_temp_of(const RtExec *x, int phase, int b) {
    const rt_buf *buf = &x->program->bufs[b];
    return buf->kind == RT_BUF_TEMP && buf->phase == phase;
}

/* ---- buckets ----------------------------------------------------------------------------------
 */
void rt_device_forget_buckets(RtDevice *d) {
    for (int i = 0; i < RT_LANES * RT_BUCKETS; i++) {
        RtDevicePhase *p = &d->batch.bucket[i / RT_BUCKETS][i % RT_BUCKETS];
        if (p->recording) d->ops->forget(d, p->recording);
        *p = (RtDevicePhase){0};
    }
}

void rt_device_want_buckets(RtExec *x, bool wanted) {
    const rt_phase *train = rt_phase_find(x->program, "train");
    if (!x->rt->device || !wanted || !train || !x->program->sampling.batch) return;
    x->rt->device->batch.wanted = train->buckets;
    if (!train->buckets)
        rt_message(x->rt, "shapes: a step of this model is not known for rounded sizes; "
                          "each batch keeps its own");
}

static int64_t part_of(int64_t n, int shift) {
    return (n + ((int64_t)1 << shift) - 1) >> shift;
}

static bool fits(const RtExec *x, const int64_t *most, int shift) {
    for (int i = 0; i < x->program->n_spaces; i++) {
        const rt_space *s = &x->program->spaces[i];
        if (s->kind != RT_SP_DIM && x->n[s->sym] > part_of(most[s->sym], shift)) return false;
    }
    return true;
}

/* The first rows of a space are no more than its rows, nor than those that more layers need. */
static void nest(const rt_program *p, int64_t *n) {
    for (int i = 0; i < p->n_spaces; i++)
        for (int k = 0; k < p->n_spaces; k++) {
            const rt_space *few = &p->spaces[i], *more = &p->spaces[k];
            bool within = few->first &&
                          (few->whole == k ||
                           (more->first && more->hops > few->hops && more->whole == few->whole));
            if (within && n[few->sym] > n[more->sym]) n[few->sym] = n[more->sym];
        }
}

/* The smallest bucket that has room for the batch; its sizes are b->n. */
static void choose_bucket(RtExec *x, RtDevice *d, const int64_t *most) {
    RtDeviceBatch *b = &d->batch;
    const rt_program *p = x->program;
    size_t n_bytes = (size_t)p->n_syms * sizeof *most;
    int shift = RT_BUCKETS - 1;
    if (memcmp(b->most, most, n_bytes)) rt_device_forget_buckets(d);
    memcpy(b->most, most, n_bytes);
    memcpy(b->n, x->n, n_bytes);
    while (shift > 0 && !fits(x, most, shift)) shift--;
    for (int i = 0; i < p->n_spaces; i++) {
        const rt_space *s = &p->spaces[i];
        if (s->kind != RT_SP_DIM) b->n[s->sym] = part_of(most[s->sym], shift);
    }
    nest(p, b->n);
    b->now = &b->bucket[b->turn][shift];
}

/* ---- places -----------------------------------------------------------------------------------
 */
/* Room for n bytes, a quarter more where there was too little: batches differ. */
static gnnc_status make_room(RtDevice *d, RtDeviceLane *l, size_t n) {
    if (n <= l->n_bytes) return GNNC_OK;
    gnnc_status st = GNNC_OK;
    size_t want = n + n / 4;
    rt_device_forget_buckets(d);
    d->ops->unpin(d, l->host);
    d->ops->release(d, l->there);
    *l = (RtDeviceLane){0};
    TRY(st, d->ops->pin(d, want, &l->host));
    TRY(st, d->ops->alloc(d, want, &l->there));
    l->n_bytes = want;
out:
    return st;
}

static gnnc_status make_arena(RtDevice *d, size_t n) {
    RtDeviceBatch *b = &d->batch;
    if (n <= b->arena_bytes) return GNNC_OK;
    rt_device_forget_buckets(d);
    d->ops->release(d, b->arena);
    b->arena = NULL;
    b->arena_bytes = 0;
    gnnc_status st = d->ops->alloc(d, n, &b->arena);
    if (st == GNNC_OK) b->arena_bytes = n;
    return st;
}

/* As the step sees it: with the sizes of its bucket. */
static RtExec rounded(const RtExec *x, const RtDevice *d) {
    RtExec r = *x;
    if (d->batch.now) r.n = d->batch.n;
    return r;
}

/* The trainer's places, but for what this batch has of its own: offsets in the lane's block, behind
 * the batch's sizes if somebody wants them there. */
static gnnc_status lay_out(RtExec *x, RtDevice *d, size_t *n_bytes) {
    RtPlaces *at = &d->batch.at;
    RtExec room = rounded(x, d);
    size_t align = d->ops->align, n, used = d->batch.now ? (size_t)x->program->n_syms * 8 : 0;
    used = (used + align - 1) / align * align;
    for (int b = 0; b < x->program->n_bufs; b++) {
        at->buf[b] = d->at.buf[b];
        at->n_bytes[b] = d->at.n_bytes[b];
        if (!is_own(x, d, b)) continue;
        gnnc_status st = rt_buf_bytes(&room, b, &n);
        if (st == GNNC_OK) st = rt_buf_bytes(x, b, &at->n_bytes[b]);
        if (st != GNNC_OK) return st;
        at->buf[b] = (void *)used; /* an offset until there is a block */
        used += (n + align) / align * align;
    }
    *n_bytes = used;
    return GNNC_OK;
}

static gnnc_status settle(RtExec *x, RtDevice *d, int phase, const size_t *offset) {
    RtDeviceBatch *batch = &d->batch;
    RtDeviceLane *l = &batch->lane[batch->turn];
    if (batch->now) memcpy(l->host, x->n, (size_t)x->program->n_syms * sizeof *x->n);
    for (int b = 0; b < x->program->n_bufs; b++) {
        if (is_own(x, d, b)) {
            size_t from = (size_t)batch->at.buf[b];
            memcpy((char *)l->host + from, x->buf[b], batch->at.n_bytes[b]);
            batch->at.buf[b] = (char *)l->there + from;
        } else if (is_temp_of(x, phase, b)) {
            gnnc_status st = rt_buf_bytes(x, b, &batch->at.n_bytes[b]);
            if (st != GNNC_OK) return st;
            batch->at.buf[b] = (char *)batch->arena + offset[b];
        }
    }
    return GNNC_OK;
}

gnnc_status rt_device_batch(RtExec *x, int phase, const size_t *offset, size_t arena_bytes,
                            const int64_t *most) {
    RtDevice *d = x->rt->device;
    if (!d) return GNNC_OK;
    RtDeviceBatch *b = &d->batch;
    size_t n_bytes;
    gnnc_status st = GNNC_OK;
    if (!b->at.buf) TRY(st, make_tables(d));
    b->turn = !b->turn;
    TRY(st, d->ops->lane_begin(d, b->turn));
    b->now = NULL;
    if (b->wanted && x->program->phases[phase].buckets) choose_bucket(x, d, most);
    TRY(st, lay_out(x, d, &n_bytes));
    TRY(st, make_room(d, &b->lane[b->turn], n_bytes));
    TRY(st, make_arena(d, arena_bytes));
    TRY(st, settle(x, d, phase, offset));
    st = d->ops->lane_copy(d, b->turn, b->lane[b->turn].there, b->lane[b->turn].host, n_bytes);
out:
    return st;
}

gnnc_status rt_device_batch_run(RtExec *x, const rt_phase *phase) {
    RtDevice *d = x->rt->device;
    RtPlaces trainers = d->at;
    RtDeviceBatch *b = &d->batch;
    RtExec room = rounded(x, d);
    d->at = b->at;
    d->now = &room;
    b->sizes = b->now ? b->lane[b->turn].there : NULL;
    gnnc_status st =
        b->now ? rt_device_run_or_replay(d, &room, phase, b->now) : phase->run_device(&room);
    b->sizes = NULL;
    d->at = trainers;
    d->now = d->x;
    gnnc_status done = d->ops->lane_end(d, d->batch.turn);
    return st != GNNC_OK ? st : done;
}

void rt_device_batch_close(RtDevice *d) {
    for (int i = 0; i < RT_LANES; i++) {
        d->ops->unpin(d, d->batch.lane[i].host);
        d->ops->release(d, d->batch.lane[i].there);
    }
    d->ops->release(d, d->batch.arena);
    d->ops->release(d, d->batch.notes);
    d->batch = (RtDeviceBatch){0};
}

/* ---- notes ------------------------------------------------------------------------------------
 */
gnnc_status rt_device_notes(RtExec *x, int64_t n) {
    RtDevice *d = x->rt->device;
    return d ? d->ops->alloc(d, (size_t)n * RT_NOTE_BYTES, &d->batch.notes) : GNNC_OK;
}

gnnc_status rt_device_note(RtExec *x, int b, int64_t i) {
    RtDevice *d = x->rt->device;
    char *to = (char *)d->batch.notes + i * RT_NOTE_BYTES;
    return d->ops->copy(d, to, d->at.buf[b], (size_t)rt_type_bytes(x->program->bufs[b].dt));
}

gnnc_status rt_device_notes_read(RtExec *x, int64_t first, int64_t n, void *out) {
    RtDevice *d = x->rt->device;
    const char *from = (const char *)d->batch.notes + first * RT_NOTE_BYTES;
    return d->ops->download(d, out, from, (size_t)n * RT_NOTE_BYTES);
}
