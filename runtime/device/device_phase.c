/* A phase on a device, and what its steps ask of the device; device_record.c has recordings. */
#include "device_rows.h"

#include "runtime/cuda/room.h"

/* ---- phases ------------------------------------------------------------------------ */
/* Written by phases and kept from one to the next; no phase writes a model's parameters. */
static bool is_kept(const RtDevice *d, rt_buf_kind k) {
    bool kept = (k == RT_BUF_VAR && !d->x->rt->model) || k == RT_BUF_SAVED;
    return (kept && !d->shares) || k == RT_BUF_OUTPUT;
}

/* Notes that the device has the newest content of the buffers that a run of the phase may have
 * changed. */
static void device_is_newer(RtDevice *d, int phase) {
    for (int b = 0; b < d->x->program->n_bufs; b++) {
        const rt_buf *buf = &d->x->program->bufs[b];
        bool other = buf->kind == RT_BUF_OUTPUT && buf->phase != phase;
        if (is_kept(d, buf->kind) && !other) d->newer[b] = RT_DEVICE_NEWER;
    }
}

/* Runs a phase on the device: uploads what the host changed, then replays the recording or runs the
 * steps. */
gnnc_status rt_device_run(RtExec *x, const rt_phase *phase) {
    RtDevice *d = x->rt->device;
    int index = (int)(phase - x->program->phases);
    gnnc_status st = rt_device_upload(d);
    if (st != GNNC_OK) return st;
    d->running = index;
    d->status = GNNC_OK;
    d->in_loop = 0;
    if (d->ops->range_begin) d->ops->range_begin(d, phase->name);
    st = x == d->x ? rt_device_run_or_replay(d, x, phase, &d->phase[index])
                   : rt_device_batch_run(x, phase);
    if (d->ops->range_end) d->ops->range_end(d);
    d->running = -1;
    device_is_newer(d, index);
    if (st == GNNC_OK) st = d->status;
    if (st != GNNC_OK) d->rows.lost = true;
    return st;
}

const char *rt_device_lines(const RtDevice *d) {
    const RtExec *x = d->now;
    const rt_phase *ph = d->running >= 0 ? &x->program->phases[d->running] : NULL;
    return ph && ph->steps && x->step < ph->n_steps ? ph->steps[x->step].lines : NULL;
}

/* ---- services -------- */
void **rt_device_buffers(RtExec *x) {
    return x->rt->device->at.buf;
}

void *rt_device_sizes(RtExec *x) {
    return x->rt->device->batch.sizes;
}

/* Kernels of several streams may run at the same time: each stream has its own. */
void *rt_device_room(RtExec *x) {
    const RtDevice *d = x->rt->device;
    return (char *)d->room + (size_t)d->stream * RT_DEVICE_ROOM_BYTES;
}

gnnc_status rt_device_stream(RtExec *x, int stream, int n, const int *after) {
    RtDevice *d = x->rt->device;
    if (!d->in_streams) return GNNC_OK;
    d->stream = stream;
    return d->ops->stream(d, stream, n, after);
}

gnnc_status rt_device_mark(RtExec *x, int step) {
    RtDevice *d = x->rt->device;
    return d->in_streams ? d->ops->stream_mark(d, step) : GNNC_OK;
}

gnnc_status rt_device_launch(RtExec *x, rt_device_kernel *k, const char *name, void *const *arg) {
    if (!rt_device_asks(x->rt->device)) return GNNC_OK;
    x->rt->count.launches++;
    return x->rt->device->ops->launch(x->rt->device, k, name, arg);
}

gnnc_status rt_device_gemm(RtExec *x, const rt_gemm *g, const void *a, const void *b, void *c) {
    if (g->batch <= 0 || g->m <= 0 || g->n <= 0 || !rt_device_asks(x->rt->device)) return GNNC_OK;
    return x->rt->device->ops->gemm(x->rt->device, g, a, b, c);
}

/* Makes a matrix product with its epilogue in one call of the library; *within: whether the
 * epilogue was done. If not, the product alone was made. */
gnnc_status rt_device_gemm_with(RtExec *x, const rt_gemm *g, const rt_epilogue *e, const float *a,
                                const float *b, float *c, bool *within) {
    RtDevice *d = x->rt->device;
    *within = !rt_device_asks(d);
    if (*within) return GNNC_OK;
    x->rt->count.library_calls++;
    bool any = g->batch == 1 && g->m > 0 && g->n > 0 && g->k > 0;
    gnnc_status st = any && d->ops->gemm_with ? d->ops->gemm_with(d, g, e, a, b, within) : GNNC_OK;
    return st != GNNC_OK || *within ? st : rt_device_gemm(x, g, a, b, c);
}

/* One by one where one of them is nothing, or a sum over nothing. */
static bool all_there(int n, const rt_gemm *g) {
    for (int i = 0; i < n; i++)
        if (g[i].m <= 0 || g[i].n <= 0 || g[i].k <= 0) return false;
    return true;
}

/* Makes the products of a group, in one call of the library if that can, else one after the other.
 */
gnnc_status rt_device_gemm_group(RtExec *x, int group, const rt_gemm *g) {
    RtDevice *d = x->rt->device;
    const rt_product_group *of = &x->program->groups[group];
    gnnc_status st = GNNC_OK;
    bool made = false;
    if (!rt_device_asks(d)) return GNNC_OK;
    if (d->groups && d->ops->gemm_group && all_there(of->n, g))
        st = d->ops->gemm_group(d, of->n, g, d->at.pointers + of->first, &made);
    x->rt->count.library_calls += made ? 1 : of->n;
    for (int i = 0; i < of->n && !made && st == GNNC_OK; i++)
        st = rt_device_gemm(x, &g[i], d->at.buf[of->bufs[i]], d->at.buf[of->bufs[of->n + i]],
                            d->at.buf[of->bufs[2 * of->n + i]]);
    return st;
}

void rt_device_copy(RtExec *x, void *to, const void *from, size_t n_bytes) {
    RtDevice *d = x->rt->device;
    gnnc_status st = n_bytes && rt_device_asks(d) ? d->ops->copy(d, to, from, n_bytes) : GNNC_OK;
    if (d->status == GNNC_OK) d->status = st;
}

gnnc_status rt_device_fetch(RtExec *x, int b) {
    rt_device_stops(x->rt->device);
    return rt_device_peek(x, b);
}

gnnc_status rt_device_peek(RtExec *x, int b) {
    RtDevice *d = x->rt->device;
    rt_buf_kind k = x->program->bufs[b].kind;
    if (is_kept(d, k) || k == RT_BUF_TEMP) d->newer[b] = RT_DEVICE_NEWER;
    return rt_pull(x, b);
}

gnnc_status rt_device_store(RtExec *x, int b) {
    RtDevice *d = x->rt->device;
    rt_device_stops(d);
    return d->ops->upload(d, d->at.buf[b], x->buf[b], d->at.n_bytes[b]);
}

/* Downloads a condition of `count` truth values and fails with the text if one is false. */
gnnc_status rt_device_assert(RtExec *x, const char *text, const uint8_t *cond, int64_t count) {
    RtDevice *d = x->rt->device;
    uint8_t *here = rt_scratch(x, (size_t)count);
    rt_device_stops(d);
    if (!here) return GNNC_E_NOMEM;
    gnnc_status st = d->ops->download(d, here, cond, (size_t)count);
    return st == GNNC_OK ? rt_check_assert(x, text, here, count) : st;
}

/* Ranks along an axis of length len on the device, with working memory for its sort. */
gnnc_status rt_device_rank(RtExec *x, const float *v, const uint8_t *mask, float *y, int64_t outer,
                           int64_t len, int64_t inner, int ties) {
    enum { WORK_PER_ELEMENT = 16 };
    RtDevice *d = x->rt->device;
    int64_t lanes[] = {outer, len, inner, ties};
    void *work;
    if (!rt_device_asks(d)) return GNNC_OK;
    if (len > INT32_MAX)
        return rt_fail(&x->rt->err, GNNC_E_RANGE, "rank: more than 2^31 - 1 elements");
    gnnc_status st = rt_device_work(d, (size_t)(outer * len * inner) * WORK_PER_ELEMENT, &work);
    if (st != GNNC_OK) return st;
    void *const arg[] = {(void *)(uintptr_t)v, (void *)(uintptr_t)mask, y, work, lanes};
    return d->ops->launch(d, x->program->device_rank, "rank", arg);
}
