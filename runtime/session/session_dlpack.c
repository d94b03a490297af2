/* Predictions of rows as a DLPack tensor, where they were made: in memory of the session's, which
 * is used again once the host has given the tensor back.  The session stays until then, too. */
#include <string.h>

#include "runtime/graph/dlpack.h"
#include "session.h"

typedef struct RtSessionTensor {
    RtTensorOut out;
    gnnc_session *of;
    void *data; /* on the device, where there is one */
    size_t n_bytes;
    atomic_bool given;
} RtSessionTensor;

/* The deleter of a tensor that was given to the caller: the next request may use its memory again,
 * and the session goes if it was only held for the tensor. */
static void give_back(DLManagedTensorVersioned *m) {
    RtSessionTensor *x = m->manager_ctx;
    gnnc_session *s = x->of;
    atomic_store(&x->given, false);
    gnnc_session_destroy(s);
}

/* Frees the memory of the session's tensor. */
static void drop_data(gnnc_session *s, RtSessionTensor *x) {
    RtDevice *d = s->rt.device;
    if (d)
        d->ops->release(d, x->data);
    else if (x->data)
        s->from.release(s->from.user, x->data);
    x->data = NULL;
    x->n_bytes = 0;
}

void rt_session_tensor_drop(gnnc_session *s) {
    RtSessionTensor *x = s->tensor;
    if (!x) return;
    if (s->rt.device) s->rt.device->ops->enter(s->rt.device);
    drop_data(s, x);
    s->from.release(s->from.user, x);
}

/* Makes room for n bytes in the session's tensor, on the device if there is one. */
static gnnc_status room_for(gnnc_session *s, size_t n_bytes) {
    RtSessionTensor *x = s->tensor;
    RtDevice *d = s->rt.device;
    gnnc_status st = GNNC_OK;
    if (n_bytes <= x->n_bytes) return GNNC_OK;
    drop_data(s, x);
    if (d)
        st = d->ops->alloc(d, n_bytes, &x->data);
    else if (!(x->data = s->from.alloc(s->from.user, n_bytes)))
        st = rt_fail_nomem(&s->rt.err, "a tensor");
    if (st == GNNC_OK) x->n_bytes = n_bytes;
    return st;
}

/* Gathers n rows of the output into the tensor's memory `out`. */
static gnnc_status take(gnnc_session *s, const RtRowOutput *what, const int32_t *row, int64_t n,
                        void *out) {
    size_t row_bytes = (size_t)what->row_width * sizeof(float);
    if (row_bytes == 0) return GNNC_OK;
    if (s->rt.device) return rt_device_gather_rows(&s->m.x, what->buf, out, row_bytes, row, n);
    const char *pred = s->m.x.buf[what->buf];
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)out + (size_t)i * row_bytes, pred + (size_t)row[i] * row_bytes, row_bytes);
    return GNNC_OK;
}

/* Begins a request whose result is a tensor. An error while the caller still has the last one, as
 * the session has one place for it. */
static gnnc_status begin(gnnc_session *s) {
    gnnc_status st = rt_session_begin_on_graph(s);
    if (st != GNNC_OK) return st;
    if (!s->tensor) {
        s->tensor = s->from.alloc(s->from.user, sizeof *s->tensor);
        if (!s->tensor) return rt_fail_nomem(&s->rt.err, "a tensor");
        s->tensor->of = s;
        atomic_init(&s->tensor->given, false);
    }
    if (!atomic_load(&s->tensor->given)) return GNNC_OK;
    return rt_fail(&s->rt.err, GNNC_E_STATE,
                   "the last tensor was not given back: its deleter was not called");
}

gnnc_status gnnc_session_predict_dlpack(gnnc_session *s, int64_t n, const int64_t *id,
                                        DLManagedTensorVersioned **out) {
    int64_t dim[GNNC_MAX_RANK];
    size_t n_bytes;
    if (out) *out = NULL;
    if (!s || n < 0 || !out) return GNNC_E_ARG;
    gnnc_status st;
    TRY(st, begin(s));
    if (!id && n > s->of->rows.n) return rt_session_no_row(s, "row", n - 1, s->of->rows.n);
    if (__builtin_mul_overflow((size_t)n, (size_t)s->of->rows.row_width * sizeof(float), &n_bytes))
        return rt_fail_nomem(&s->rt.err, "a tensor");
    TRY(st, room_for(s, n_bytes));
    TRY(st, rt_session_rows(s, &s->of->rows, n, id, take, s->tensor->data));
    TRY(st, rt_tensor_ready(&s->x));
    dim[0] = n;
    memcpy(dim + 1, s->of->rows.dim, (size_t)s->of->rows.rank * sizeof *dim);
    rt_tensor_out(&s->tensor->out, &s->x, false, s->tensor->data, s->of->rows.rank + 1, dim,
                  give_back, s->tensor);
    atomic_store(&s->tensor->given, true);
    atomic_fetch_add(&s->n_holders, 1);
    *out = &s->tensor->out.m;
out:
    return st;
}
