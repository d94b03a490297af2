#include "train_sums.h"

#include <string.h>

#include "runtime/bind/bind.h"
#include "runtime/device/device.h"
#include "train_peers.h"

/* Numbers (f32) in a buffer. */
static int64_t numbers_in(const gnnc_trainer *t, int buf) {
    size_t n_bytes = 0;
    RtExec *x = (RtExec *)(uintptr_t)&t->x;
    return rt_buf_bytes(x, buf, &n_bytes) == GNNC_OK ? (int64_t)(n_bytes / sizeof(float)) : 0;
}

/* ---- life ------------------------------------------------------------------------------------ */
gnnc_status rt_sums_memory(gnnc_trainer *t, size_t n_bytes, void **p) {
    RtDevice *d = t->rt.device;
    if (d) return d->ops->pin(d, n_bytes, p);
    *p = rt_pool_alloc(&t->rt.pool, n_bytes, 1);
    return *p ? GNNC_OK : rt_fail_nomem(&t->rt.err, "steps");
}

/* Finds the variables that steps change between two updates; *largest: numbers of one at most. */
static void find(gnnc_trainer *t, RtSums *s, int64_t *largest) {
    const rt_program *p = t->program;
    for (int i = 0; i < p->n_vars; i++) {
        const rt_var *v = &p->vars[i];
        bool state = v->kind == RT_VAR_STATE && v->assigned;
        if (v->buf < 0 || (v->role != RT_ROLE_SUMMED_GRADIENT && !state)) continue;
        int64_t n = numbers_in(t, v->buf);
        s->has_state |= state;
        s->keeps[s->n] = state ? (float)v->keeps : 1;
        s->buf[s->n++] = v->buf;
        s->n_numbers += n;
        if (n > *largest) *largest = n;
    }
}

/* Memory of the device that holds n times -0: a byte repeated is no -0. */
static gnnc_status make_zeros(gnnc_trainer *t, RtSums *s, int64_t n) {
    RtDevice *d = t->rt.device;
    float *here = rt_scratch(&t->x, (size_t)n * sizeof *here);
    if (n && !here) return GNNC_E_NOMEM;
    for (int64_t i = 0; i < n; i++) here[i] = -0.0f;
    gnnc_status st = d->ops->alloc(d, (size_t)n * sizeof *here, &s->zeros);
    if (st != GNNC_OK) return st;
    d->sums_bytes = (size_t)n * sizeof *here;
    return d->ops->upload(d, s->zeros, here, d->sums_bytes);
}

gnnc_status rt_sums_init(gnnc_trainer *t, RtSums *s) {
    RtPool *pool = &t->rt.pool;
    int64_t largest = 0;
    *s = (RtSums){.buf = RT_NEWN(pool, int, t->program->n_vars),
                  .keeps = RT_NEWN(pool, float, t->program->n_vars)};
    if (!s->buf || !s->keeps) return rt_fail_nomem(&t->rt.err, "steps");
    find(t, s, &largest);
    return t->rt.device ? make_zeros(t, s, largest) : GNNC_OK;
}

/* Room on the device for the sums, and behind them for n_parts parts.  None: there is no memory, or
 * nobody wants it. */
static RtPeerLack place_there(gnnc_trainer *t, RtSums *s, int64_t n_parts) {
    RtDevice *d = t->rt.device;
    size_t n_bytes = (size_t)(n_parts + 1) * (size_t)s->n_numbers * sizeof *s->base;
    void *there = NULL;
    if (!t->options.device_sums || !d->ops->peers_open) return RT_PEER_UNWANTED;
    if (d->ops->alloc(d, n_bytes, &there) != GNNC_OK) {
        d->ops->release(d, there);
        t->rt.err.text[0] = '\0';
        return RT_PEER_LACKS_MEMORY;
    }
    d->sums_bytes += n_bytes;
    s->base = there;
    s->parts = s->base + s->n_numbers;
    return RT_PEER_LACKS_NOTHING;
}

/* The way through the host. */
static gnnc_status place_here(gnnc_trainer *t, RtSums *s) {
    void *base;
    gnnc_status st = rt_sums_memory(t, (size_t)s->n_numbers * sizeof *s->base, &base);
    s->base = st == GNNC_OK ? base : NULL;
    return st;
}

static void leave(gnnc_trainer *t, RtSums *s, int64_t n_parts) {
    RtDevice *d = t->rt.device;
    if (!s->parts) return;
    d->ops->release(d, s->base);
    d->sums_bytes -= (size_t)(n_parts + 1) * (size_t)s->n_numbers * sizeof *s->base;
    s->base = s->parts = NULL;
}

gnnc_status rt_sums_place(gnnc_trainer *t, RtSums *s, int64_t n_parts) {
    RtDevice *d = t->rt.device;
    bool met = false;
    if (s->base) return GNNC_OK; /* what came behind it failed */
    if (!d || t->processes.n < 2) return place_here(t, s);
    gnnc_status st = rt_peers_meet(t, "sums", place_there(t, s, n_parts), &met);
    if (met) return GNNC_OK;
    leave(t, s, n_parts);
    return st == GNNC_OK ? place_here(t, s) : st;
}

void rt_sums_close(gnnc_trainer *t, RtSums *s, void *memory, bool lost) {
    RtDevice *d = t->rt.device;
    if (!d) return; /* the pool has all */
    if (s->parts) d->ops->peers_close(d, lost);
    d->ops->wait(d);
    d->ops->unpin(d, memory);
    if (s->parts)
        d->ops->release(d, s->base);
    else
        d->ops->unpin(d, s->base);
    d->ops->release(d, s->zeros);
}

/* ---- buffers --------------------------------------------------------------------------------- */
/* Copies the buffers' content out, one behind the other. */
static gnnc_status copy_out(gnnc_trainer *t, const RtSums *s, float *to) {
    RtDevice *d = t->rt.device;
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < s->n && st == GNNC_OK; i++) {
        int64_t n = numbers_in(t, s->buf[i]);
        size_t n_bytes = (size_t)n * sizeof *to;
        if (d)
            st = (s->parts ? d->ops->copy : d->ops->read)(d, to, d->at.buf[s->buf[i]], n_bytes);
        else
            memcpy(to, t->x.buf[s->buf[i]], n_bytes);
        to += n;
    }
    return st;
}

/* The buffers get what copy_out() took out of them. */
static gnnc_status copy_in(gnnc_trainer *t, const RtSums *s, const float *from) {
    RtDevice *d = t->rt.device;
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < s->n && st == GNNC_OK; i++) {
        int b = s->buf[i];
        int64_t n = numbers_in(t, b);
        size_t n_bytes = (size_t)n * sizeof *from;
        if (d) {
            st = (s->parts ? d->ops->copy : d->ops->write)(d, d->at.buf[b], from, n_bytes);
            d->newer[b] = RT_DEVICE_NEWER;
        } else {
            memcpy(t->x.buf[b], from, n_bytes);
        }
        from += n;
    }
    return st;
}

/* Sets the buffers to -0: keeps * -0 is -0, and -0 + x is x, also where x is a zero. */
static gnnc_status clear(gnnc_trainer *t, const RtSums *s) {
    RtDevice *d = t->rt.device;
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < s->n && st == GNNC_OK; i++) {
        int b = s->buf[i];
        int64_t n = numbers_in(t, b);
        float *sum = t->x.buf[b];
        if (d) {
            st = d->ops->copy(d, d->at.buf[b], s->zeros, (size_t)n * sizeof *sum);
            d->newer[b] = RT_DEVICE_NEWER;
        }
        for (int64_t j = 0; j < n && !d; j++) sum[j] = -0.0f;
    }
    return st;
}

/* ---- parts ----------------------------------------------------------------------------------- */
/* The sums go to `base`; on a device what the host has of them goes there first. */
static gnnc_status take_apart(gnnc_trainer *t, RtSums *s) {
    gnnc_status st = t->rt.device ? rt_device_upload(t->rt.device) : GNNC_OK;
    if (st == GNNC_OK) st = copy_out(t, s, s->base);
    s->apart = st == GNNC_OK;
    return st;
}

gnnc_status rt_sums_begin_part(gnnc_trainer *t, RtSums *s) {
    gnnc_status st = s->apart ? GNNC_OK : take_apart(t, s);
    return st == GNNC_OK ? clear(t, s) : st;
}

gnnc_status rt_sums_end_part(gnnc_trainer *t, RtSums *s, float *to) {
    gnnc_status st = copy_out(t, s, to);
    return st == GNNC_OK && !t->rt.device ? rt_sums_put_back(t, s) : st;
}

gnnc_status rt_sums_arrive(gnnc_trainer *t, RtSums *s) {
    RtDevice *d = t->rt.device;
    gnnc_status st = !d || s->apart || s->parts ? GNNC_OK : take_apart(t, s);
    return st == GNNC_OK && d ? d->ops->wait(d) : st;
}

void rt_sums_add(gnnc_trainer *t, const RtSums *s, const float *part) {
    float *base = s->base;
    for (int i = 0; i < s->n; i++) {
        int64_t n = numbers_in(t, s->buf[i]);
        float *sum = t->rt.device ? base : t->x.buf[s->buf[i]], keeps = s->keeps[i];
        for (int64_t j = 0; j < n; j++) {
            float kept = keeps * sum[j];
            sum[j] = kept + part[j];
        }
        part += n;
        base += n;
    }
}

gnnc_status rt_sums_share(gnnc_trainer *t, const RtSums *s, float *part, int from) {
    return t->rt.device->ops->peers_share(t->rt.device, part, s->n_numbers, from);
}

gnnc_status rt_sums_add_there(gnnc_trainer *t, RtSums *s, const float *part, int64_t n) {
    RtDevice *d = t->rt.device;
    float *base = s->base;
    gnnc_status st;
    TRY(st, d->ops->peers_wait(d, rt_peers_patience(t)));
    if (!s->apart) TRY(st, rt_device_upload(d));
    for (int i = 0; i < s->n; i++) {
        int b = s->buf[i];
        int64_t count = numbers_in(t, b), size[] = {count, n, s->n_numbers};
        void *to = d->at.buf[b];
        void *const arg[] = {to, s->apart ? base : to, (void *)(uintptr_t)part, size, &s->keeps[i]};
        TRY(st, rt_device_launch(&t->x, t->program->device_add_parts, "add_parts", arg));
        d->newer[b] = RT_DEVICE_NEWER;
        part += count;
        base += count;
    }
    s->apart = false;
out:
    return st;
}

gnnc_status rt_sums_put_back(gnnc_trainer *t, RtSums *s) {
    gnnc_status st = s->apart ? copy_in(t, s, s->base) : GNNC_OK;
    s->apart = false;
    return st;
}
