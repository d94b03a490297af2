#include "device_pinned.h"

#include <string.h>

#include "device_rows.h"
#include "runtime/trainer/trainer.h"

/* Which buffer is pinned for column c; -1: none. Labels, splits, times and codes are small and stay
 * on the device: a read over the bus takes more than they have of a row. */
static int pinned_buffer(const RtExec *x, int c) {
    const rt_program *p = x->program;
    const rt_column *want = &p->columns[c];
    if (want->buf < 0 || want->rank < 1) return -1;
    const rt_buf *buf = &p->bufs[want->buf];
    bool numbers = buf->dt == RT_F32 || buf->dt == RT_BF16 || buf->dt == RT_F16;
    bool rows = want->kind != RT_COL_CSR && buf->in_batches;
    return numbers && rows && x->buf[want->buf] && !x->rt->device->lent[want->buf] ? want->buf : -1;
}

/* Copies buffer b, which holds rows of a space, to page-locked memory. */
static gnnc_status pin(RtExec *x, RtDevicePinned *p, int b, int space) {
    RtDevice *d = x->rt->device;
    int64_t n_rows = rt_size(x->program, x->n, space);
    size_t n;
    gnnc_status st = rt_buf_bytes(x, b, &n);
    if (st != GNNC_OK || n_rows == 0 || n == 0) return st;
    st = d->ops->pin_shared(d, n, &p->here);
    if (st != GNNC_OK) return st;
    p->space = space;
    p->row_bytes = (int64_t)n / n_rows;
    memcpy(p->here, x->buf[b], n);
    return GNNC_OK;
}

gnnc_status rt_device_pin_columns(gnnc_trainer *t) {
    RtExec *x = &t->x;
    RtDevice *d = t->rt.device;
    const rt_program *p = t->program;
    size_t all = 0, n;
    gnnc_status st = GNNC_OK;
    if (!d || !d->pins || !p->sampling.batch) return GNNC_OK;
    for (int c = 0; c < p->n_columns; c++) {
        int b = pinned_buffer(x, c);
        if (b < 0) continue;
        TRY(st, rt_buf_bytes(x, b, &n));
        all += n;
    }
    TRY(st,
        rt_trainer_may_take(t, all, "columns in page-locked memory",
                            ": with features on the device (device_features 1) they need none"));
    if (!(d->pinned = RT_NEWN(&t->rt.pool, RtDevicePinned, p->n_bufs + 1)))
        return rt_fail_nomem(&t->rt.err, "columns in page-locked memory");
    for (int c = 0; c < p->n_columns; c++) {
        int b = pinned_buffer(x, c);
        if (b >= 0 && !d->pinned[b].here) TRY(st, pin(x, &d->pinned[b], b, p->columns[c].space));
    }
out:
    return st;
}

static bool is_of_space(const RtDevicePinned *p, int space) {
    return p->here && p->space == space;
}

int64_t rt_device_pinned_bytes(const RtExec *x, int space) {
    const RtDevice *d = x->rt->device;
    int64_t n = 0;
    for (int b = 0; d && d->pinned && b < x->program->n_bufs; b++)
        if (is_of_space(&d->pinned[b], space)) n += d->pinned[b].row_bytes;
    return n;
}

/* Sends, by row of the space, which of the n rows on the device it is. */
static gnnc_status send_slots(RtExec *x, int space, const int32_t *row, int64_t n, int32_t **slot) {
    int64_t n_rows = rt_size(x->program, x->n, space);
    int32_t *here = RT_NEWN(&x->rt->pool, int32_t, n_rows + 1);
    if (!here) return rt_fail_nomem(&x->rt->err, "rows on the device");
    for (int64_t i = 0; i < n_rows; i++) here[i] = -1;
    for (int64_t i = 0; i < n; i++) here[row[i]] = (int32_t)i;
    gnnc_status st = rt_device_rows_copy(x, here, (size_t)n_rows * sizeof *here, (void **)slot);
    rt_pool_drop(&x->rt->pool, here);
    return st;
}

/* Sends the n rows of a column, as many at a time as `room` has. */
static gnnc_status send_rows(RtExec *x, RtDevicePinned *p, const int32_t *row, int64_t n,
                             char *room, int64_t at_once) {
    RtDevice *d = x->rt->device;
    gnnc_status st = rt_device_rows_memory(x, (size_t)(n * p->row_bytes), &p->rows);
    for (int64_t i = 0; i < n && st == GNNC_OK; i += at_once) {
        int64_t many = n - i < at_once ? n - i : at_once;
        for (int64_t k = 0; k < many; k++)
            memcpy(room + k * p->row_bytes, (char *)p->here + row[i + k] * p->row_bytes,
                   (size_t)p->row_bytes);
        st = d->ops->upload(d, (char *)p->rows + i * p->row_bytes, room,
                            (size_t)(many * p->row_bytes));
    }
    return st;
}

gnnc_status rt_device_keep_rows(RtExec *x, int space, const int32_t *row, int64_t n) {
    enum { ROOM = 4 << 20 };
    RtDevice *d = x->rt->device;
    int64_t all = rt_device_pinned_bytes(x, space), at_once = all ? ROOM / all + 1 : 0;
    int32_t *slot = NULL;
    if (n == 0 || all == 0) return GNNC_OK;
    char *room = rt_pool_alloc(&x->rt->pool, (size_t)at_once, (size_t)all);
    if (!room) return rt_fail_nomem(&x->rt->err, "rows on the device");
    gnnc_status st = send_slots(x, space, row, n, &slot);
    for (int b = 0; b < x->program->n_bufs && st == GNNC_OK; b++) {
        RtDevicePinned *p = &d->pinned[b];
        if (!is_of_space(p, space)) continue;
        st = send_rows(x, p, row, n, room, at_once);
        if (st == GNNC_OK) p->slot = slot;
    }
    rt_pool_drop(&x->rt->pool, room);
    return st;
}

void rt_device_pinned_close(RtDevice *d) {
    if (d->pinned) d->ops->wait(d); /* batches may read them */
    for (int b = 0; d->pinned && b < d->x->program->n_bufs; b++)
        d->ops->unpin(d, d->pinned[b].here);
    d->pinned = NULL;
}
