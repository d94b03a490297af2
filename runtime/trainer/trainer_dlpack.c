/* Values of a trainer as DLPack tensors, where they are.  A tensor holds the trainer: what it shows
 * stays there until its deleter is called, also when the host has destroyed the trainer. */
#include <string.h>

#include "checkpoint.h"
#include "runtime/graph/dlpack.h"
#include "runtime/batch/link_batches.h"
#include "runtime/batch/row_batches.h"
#include "runtime/batch/train_shares.h"
#include "trainer.h"

typedef struct {
    RtTensorOut out;
    gnnc_trainer *of;
} Held;

/* The consumer of a tensor is done with it: frees it, and lets go of the trainer that has the
 * memory. */
static void give_back(DLManagedTensorVersioned *m) {
    Held *h = m->manager_ctx;
    gnnc_trainer *t = h->of;
    RtAlloc from = t->outer;
    from.release(from.user, h);
    gnnc_trainer_destroy(t);
}

/* Not of the trainer's pool, as deleters are called from any thread. */
static gnnc_status hold(gnnc_trainer *t, const void *data, bool here, int rank, const int64_t *dim,
                        Held **out) {
    Held *h = t->outer.alloc(t->outer.user, sizeof *h);
    if (!h) return rt_fail_nomem(&t->rt.err, "a tensor");
    h->of = t;
    rt_tensor_out(&h->out, &t->x, here, data, rank, dim, give_back, h);
    atomic_fetch_add(&t->n_holders, 1);
    *out = h;
    return GNNC_OK;
}

/* Gives out a tensor once its values are there; after a failure frees what was made of it. */
static gnnc_status finish(gnnc_trainer *t, gnnc_status st, Held *h,
                          DLManagedTensorVersioned **out) {
    if (st == GNNC_OK) st = rt_tensor_ready(&t->x);
    if (st == GNNC_OK)
        *out = &h->out.m;
    else if (h)
        give_back(&h->out.m);
    return st;
}

/* Gives out what the phase that ran last left in buffer b. Rows that batches gave are the
 * host's. */
static gnnc_status of_output(gnnc_trainer *t, int b, Held **out) {
    const rt_buf *buf = &t->program->bufs[b];
    const RtDevice *d = t->rt.device;
    int64_t dim[RT_MAX_RANK], n_rows;
    if (buf->dt != RT_F32)
        return rt_fail(&t->rt.err, GNNC_E_DTYPE, "output '%s' is not f32", buf->io_name);
    const void *rows = rt_row_batches_value(t, b, &n_rows);
    if (!rows) rows = rt_link_batches_value(t, b, &n_rows);
    t->program->buf_shape(b, t->x.n, dim);
    if (rows) *dim = n_rows;
    const void *data = rows ? rows : d ? d->at.buf[b] : t->x.buf[b];
    return hold(t, data, rows != NULL, buf->rank, dim, out);
}

gnnc_status gnnc_trainer_predict_dlpack(gnnc_trainer *t, DLManagedTensorVersioned **out) {
    if (out) *out = NULL;
    RT_NOT_NULL(t, out);
    Held *h = NULL;
    gnnc_status st = gnnc_trainer_run_phase(t, "predict");
    int b = st == GNNC_OK ? rt_trainer_prediction(t) : -1;
    if (st == GNNC_OK && b < 0)
        st = rt_fail(&t->rt.err, GNNC_E_MISSING, "the model predicts nothing");
    if (st == GNNC_OK) st = of_output(t, b, &h);
    return finish(t, st, h, out);
}

gnnc_status gnnc_trainer_embed_dlpack(gnnc_trainer *t, const char *layer,
                                      DLManagedTensorVersioned **out) {
    if (out) *out = NULL;
    RT_NOT_NULL(t, layer);
    RT_NOT_NULL(t, out);
    Held *h = NULL;
    int b;
    rt_trainer_begin(t);
    gnnc_status st = rt_trainer_layer(t, layer, &b);
    if (st == GNNC_OK) st = gnnc_trainer_run_phase(t, "embed");
    if (st == GNNC_OK) st = of_output(t, b, &h);
    return finish(t, st, h, out);
}

/* Columns of a matrix that lies transposed are as far apart as it has rows. */
static void transpose(RtTensorOut *o, int rank, int64_t count, int64_t transposed) {
    int64_t columns = 1, rows = transposed ? count / transposed : 0;
    int i = rank;
    while (i > 0 && columns < transposed) {
        columns *= o->shape[--i];
        o->stride[i] *= rows;
    }
    for (int64_t stride = 1; i > 0; stride *= o->shape[i]) o->stride[--i] = stride;
}

gnnc_status gnnc_trainer_parameter_dlpack(gnnc_trainer *t, const char *name,
                                          DLManagedTensorVersioned **out) {
    if (out) *out = NULL;
    RT_NOT_NULL(t, name);
    RT_NOT_NULL(t, out);
    RtDevice *d = t->rt.device;
    rt_var_shape s = {.rank = 0};
    Held *h = NULL;
    int var;
    rt_trainer_begin(t);
    gnnc_status st = rt_trainer_parameter(t, name, &var);
    if (st == GNNC_OK && t->program->vars[var].kind == RT_VAR_STATE) st = rt_shares_settle_state(t);
    if (st == GNNC_OK && d) st = rt_device_upload(d);
    if (st != GNNC_OK) return st;
    t->program->var_shape(var, t->x.n, &s);
    int b = t->program->vars[var].buf;
    st = hold(t, d ? d->at.buf[b] : t->x.buf[b], false, s.rank, s.dim, &h);
    if (st == GNNC_OK && s.transposed) transpose(&h->out, s.rank, s.count, s.transposed);
    return finish(t, st, h, out);
}
