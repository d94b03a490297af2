/* Mini-batches on a device.
 *
 * A batch brings columns and maps of its own, and temporaries by its own sizes; the rest is the
 * trainer's.  What it brings is packed into a page-locked block and crosses with one copy, beside
 * the queue: while the device computes a batch, the next one is on its way.  Two lanes, each with
 * a block on both sides, take turns.  Nothing is read back: what the host wants to know of each
 * step is noted on the device, and read when an epoch ends. */
#include "device.h"

#include <string.h>

static gnnc_status make_tables(RtDevice *d) {
    RtPool *pool = &d->x->rt->pool;
    RtDeviceBatch *b = &d->batch;
    b->at.buf = RT_NEWN(pool, void *, d->x->program->n_bufs);
    b->at.n_bytes = RT_NEWN(pool, size_t, d->x->program->n_bufs);
    bool ok = b->at.buf && b->at.n_bytes;
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

/* Room for n bytes, a quarter more where there was too little: batches differ. */
static gnnc_status make_room(RtDevice *d, RtDeviceLane *l, size_t n) {
    if (n <= l->n_bytes) return GNNC_OK;
    gnnc_status st = GNNC_OK;
    size_t want = n + n / 4;
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
    d->ops->release(d, b->arena);
    b->arena = NULL;
    b->arena_bytes = 0;
    gnnc_status st = d->ops->alloc(d, n, &b->arena);
    if (st == GNNC_OK) b->arena_bytes = n;
    return st;
}

/* The trainer's places, but for what this batch has of its own: offsets in the lane's block. */
static gnnc_status lay_out(RtExec *x, RtDevice *d, size_t *n_bytes) {
    RtPlaces *at = &d->batch.at;
    size_t align = d->ops->align, used = 0;
    for (int b = 0; b < x->program->n_bufs; b++) {
        at->buf[b] = d->at.buf[b];
        at->n_bytes[b] = d->at.n_bytes[b];
        if (!is_own(x, d, b)) continue;
        gnnc_status st = rt_buf_bytes(x, b, &at->n_bytes[b]);
        if (st != GNNC_OK) return st;
        at->buf[b] = (void *)used; /* an offset until there is a block */
        used += (at->n_bytes[b] + align) / align * align;
    }
    *n_bytes = used;
    return GNNC_OK;
}

static gnnc_status settle(RtExec *x, RtDevice *d, int phase, const size_t *offset) {
    RtDeviceBatch *batch = &d->batch;
    RtDeviceLane *l = &batch->lane[batch->turn];
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

gnnc_status rt_device_batch(RtExec *x, int phase, const size_t *offset, size_t arena_bytes) {
    RtDevice *d = x->rt->device;
    if (!d) return GNNC_OK;
    RtDeviceBatch *b = &d->batch;
    size_t n_bytes;
    gnnc_status st = GNNC_OK;
    if (!b->at.buf) TRY(st, make_tables(d));
    b->turn = !b->turn;
    TRY(st, d->ops->lane_begin(d, b->turn));
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
    d->at = d->batch.at;
    d->now = x;
    gnnc_status st = phase->run_device(x);
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
