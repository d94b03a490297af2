/* Rows that processes share, each on a device of its own: which rows a launch does, and how rows
 * and sums go from one device to the others.
 *
 * What goes is taken out of its buffer by a kernel.  Devices then send it to each other beside the
 * queue (peers_swap: NCCL), and nobody waits but what is queued behind it; or it goes through
 * page-locked memory of the hosts, which send it: a host waits until its own has come there, and
 * not for what was queued meanwhile.  Either way a launch whose rows come does those first that
 * need none of them. */
#include "device_rows.h"

#include <string.h>

_Static_assert((int)RT_TREE_PARTS == (int)RT_SUM_CHUNKS, "parts of a sum");

/* ---- life ------------------------------------------------------------------------------------ */
void rt_device_rows_meet(RtExec *x, bool direct, int64_t patience_s) {
    RtDeviceRows *r = &x->rt->device->rows;
    r->direct = direct;
    r->patience_s = patience_s;
}

void rt_device_rows_close(RtDevice *d) {
    RtDeviceRows *r = &d->rows;
    const RtDist *o = d->x->rt->dist;
    bool lost = r->lost || (o && o->failed != GNNC_OK);
    if (r->direct) {
        if (!lost) lost = d->ops->wait(d) != GNNC_OK;
        d->ops->peers_close(d, lost);
    }
    if (r->memory || r->here[0].n_bytes) d->ops->wait(d);
    for (int i = 0; i < 2 * RT_BESIDE_MOST; i++) d->ops->unpin(d, r->here[i].p);
    for (RtDeviceMemory *m = r->memory; m; m = m->next) d->ops->release(d, m->p);
    *r = (RtDeviceRows){0};
}

gnnc_status rt_device_rows_memory(RtExec *x, size_t n_bytes, void **p) {
    RtDevice *d = x->rt->device;
    *p = NULL;
    if (rt_device_rows_stay(d))
        return rt_fail(&x->rt->err, GNNC_E_STATE, "no run before it wanted as many rows of others");
    RtDeviceMemory *m = RT_NEW(&x->rt->pool, RtDeviceMemory);
    if (!m) return rt_fail_nomem(&x->rt->err, "rows on the device");
    gnnc_status st = d->ops->alloc(d, n_bytes, &m->p);
    if (st != GNNC_OK) return st;
    m->n_bytes = n_bytes;
    m->next = d->rows.memory;
    d->rows.memory = m;
    d->rows.n_bytes += n_bytes;
    *p = m->p;
    return GNNC_OK;
}

void rt_device_rows_drop(RtExec *x, void *p) {
    RtDevice *d = x->rt->device;
    RtDeviceMemory **at = &d->rows.memory, *m;
    while (*at && (*at)->p != p) at = &(*at)->next;
    if (!p || !(m = *at) || rt_device_rows_stay(d)) return;
    for (int i = 0; i < x->program->n_phases; i++)
        rt_device_forget_pieces(d, &d->phase[i]); /* they hold its address */
    d->rows.n_bytes -= m->n_bytes;
    *at = m->next;
    d->ops->release(d, p);
    rt_pool_drop(&x->rt->pool, m);
}

gnnc_status rt_device_rows_copy(RtExec *x, const void *here, size_t n_bytes, void **there) {
    RtDevice *d = x->rt->device;
    gnnc_status st = rt_device_rows_memory(x, n_bytes, there);
    if (st == GNNC_OK) st = d->ops->upload(d, *there, here, n_bytes);
    if (st == GNNC_OK) return st;
    rt_device_rows_drop(x, *there); /* what did not come is not taken for it later */
    *there = NULL;
    return st;
}

/* ---- kernels --------------------------------------------------------------------------------- */
gnnc_status rt_device_rows_do(RtExec *x, RtRowsOp op, void *to, const void *from, const void *row) {
    void *const arg[] = {to, (void *)(uintptr_t)from, (void *)(uintptr_t)row, &op};
    if (op.n <= 0) return GNNC_OK;
    return rt_device_launch(x, x->program->device_rows, "rows", arg);
}

gnnc_status rt_device_rows_sum(RtExec *x, const RtTreeSum *t, float *to, const float *from) {
    void *const arg[] = {to, (void *)(uintptr_t)from, NULL, NULL, (void *)(uintptr_t)t};
    if (t->n <= 0) return GNNC_OK;
    return rt_device_launch(x, x->program->device_rows, "sums over rows", arg);
}

/* ---- through the memory of hosts ------------------------------------------------------------- */
/* Page-locked memory of at least so many bytes, which stays for the next time. */
static gnnc_status reserve(RtDevice *d, RtDeviceHere *h, size_t n_bytes) {
    if (n_bytes <= h->n_bytes) return GNNC_OK;
    gnnc_status st = h->p ? d->ops->wait(d) : GNNC_OK; /* copies from it may be queued */
    if (st != GNNC_OK) return st;
    d->ops->unpin(d, h->p);
    *h = (RtDeviceHere){0};
    st = d->ops->pin(d, n_bytes, &h->p);
    if (st == GNNC_OK) h->n_bytes = n_bytes;
    return st;
}

static size_t sum_of(const size_t *n_bytes, int n) {
    size_t all = 0;
    for (int i = 0; i < n; i++) all += n_bytes[i];
    return all;
}

/* What goes to others begins its way to the host. */
static gnnc_status bring_here(RtExec *x, int slot, const RtMessages *m) {
    RtDevice *d = x->rt->device;
    const int n = x->rt->dist->n;
    RtDeviceHere *out = &d->rows.here[2 * slot], *in = out + 1;
    gnnc_status st;
    TRY(st, reserve(d, out, sum_of(m->n_out, n)));
    TRY(st, reserve(d, in, sum_of(m->n_in, n)));
    char *to = out->p;
    for (int r = 0; r < n; to += m->n_out[r++])
        if (m->n_out[r]) TRY(st, d->ops->read(d, to, m->out[r], m->n_out[r]));
    st = d->ops->mark(d);
out:
    return st;
}

/* Hosts send it, and what came goes to the device. */
static gnnc_status send_from_here(RtExec *x, int slot, const RtMessages *m) {
    RtDevice *d = x->rt->device;
    const RtDist *o = x->rt->dist;
    RtMessages here = *m;
    char *out = d->rows.here[2 * slot].p, *in = d->rows.here[2 * slot + 1].p;
    gnnc_status st;
    TRY(st, d->ops->reach(d));
    for (int r = 0; r < o->n; r++) {
        here.out[r] = out;
        here.in[r] = in;
        out += m->n_out[r];
        in += m->n_in[r];
    }
    TRY(st, o->processes->exchange(o->processes->user, here.out, here.n_out, here.in, here.n_in));
    for (int r = 0; r < o->n; r++)
        if (m->n_in[r]) TRY(st, d->ops->write(d, m->in[r], here.in[r], m->n_in[r]));
out:
    return st;
}

/* ---- messages -------------------------------------------------------------------------------- */
gnnc_status rt_device_rows_send(RtExec *x, int slot, const RtMessages *m) {
    RtDevice *d = x->rt->device;
    if (!rt_device_may_exchange(d)) return GNNC_OK;
    if (!d->rows.direct) return bring_here(x, slot, m);
    return d->ops->peers_swap(d, m->out, m->n_out, m->in, m->n_in, d->rows.patience_s);
}

gnnc_status rt_device_rows_arrive(RtExec *x, int slot, const RtMessages *m) {
    RtDevice *d = x->rt->device;
    if (!rt_device_may_exchange(d)) return GNNC_OK;
    return d->rows.direct ? d->ops->peers_join(d) : send_from_here(x, slot, m);
}

/* The hosts add up. */
static gnnc_status reduce_here(RtExec *x, float *at, int64_t n) {
    RtDevice *d = x->rt->device;
    const gnnc_processes *p = x->rt->dist->processes;
    const size_t n_bytes = (size_t)n * sizeof *at;
    RtDeviceHere *here = &d->rows.here[0];
    gnnc_status st;
    TRY(st, reserve(d, here, n_bytes));
    TRY(st, d->ops->read(d, here->p, at, n_bytes));
    TRY(st, d->ops->mark(d));
    TRY(st, d->ops->reach(d));
    TRY(st, p->all_reduce(p->user, here->p, (size_t)n));
    st = d->ops->write(d, at, here->p, n_bytes);
out:
    return st;
}

gnnc_status rt_device_rows_reduce(RtExec *x, float *at, int64_t n) {
    RtDevice *d = x->rt->device;
    if (!rt_device_may_exchange(d)) return GNNC_OK;
    if (!d->rows.direct) return reduce_here(x, at, n);
    gnnc_status st = d->ops->peers_add(d, at, n, d->rows.patience_s);
    return st == GNNC_OK ? d->ops->peers_join(d) : st;
}
