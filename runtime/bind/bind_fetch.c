/* Columns that the host of this library has in a device's memory (gnnc_graph_add_dlpack).
 *
 * Where kernels read a column as it lies there, they get the memory itself.  All that a column goes
 * through while data are bound (checks, other forms, the hash) is on a copy here, which goes when
 * that is done, unless the host reads it later: rows of batches, the model's own functions. */
#include "bind.h"
#include "runtime/device/device.h"

/* Does any step run on the host: a call of the user's function, a print, an assertion? A phase
 * whose steps are not listed counts as one with such a step. */
static bool asks_host(const rt_program *p) {
    for (int i = 0; i < p->n_phases; i++)
        for (int k = 0; k < p->phases[i].n_steps; k++) {
            if (!p->phases[i].steps) return true;
            rt_step_kind kind = p->phases[i].steps[k].kind;
            if (kind == RT_STEP_CALL || kind == RT_STEP_PRINT || kind == RT_STEP_ASSERT)
                return true;
        }
    return false;
}

/* A column in a GPU's memory can only be read by a run on that GPU. */
static gnnc_status check_device(RtExec *x, const RtColumn *c, const char *who) {
    const RtDevice *d = x->rt->device;
    if (!d)
        return rt_fail(&x->rt->err, GNNC_E_ARG,
                       "%s lies in the memory of GPU %d: this runs on the "
                       "cpu",
                       who, c->there_on);
    if (d->ordinal == c->there_on) return GNNC_OK;
    return rt_fail(&x->rt->err, GNNC_E_ARG, "%s lies in the memory of GPU %d: this runs on GPU %d",
                   who, c->there_on, d->ordinal);
}

/* Its values are complete in the host's stream, or, where none was named, in the default one. */
static gnnc_status bring(RtExec *x, RtColumn *c) {
    RtDevice *d = x->rt->device;
    size_t n = (size_t)c->n_rows * (size_t)rt_column_width(c);
    float *here = rt_pool_alloc(&x->rt->pool, n, sizeof *here);
    if (!here) return rt_fail_nomem(&x->rt->err, c->name);
    gnnc_status st = x->rt->in_stream ? GNNC_OK : d->ops->follow(d, NULL);
    if (st == GNNC_OK) st = d->ops->download(d, here, c->there, n * sizeof *here);
    c->f32 = here;
    return st;
}

/* Copies a column that lies in the device's memory to the host. */
gnnc_status rt_bind_fetch_from_device(RtExec *x, int col, const char *who) {
    RtColumn *c = rt_bind_data_column(x, col);
    gnnc_status st;
    if (!c->there || c->f32) return GNNC_OK; /* the host's, or here already */
    TRY(st, check_device(x, c, who));
    TRY(st, bring(x, c));
    st = rt_column_check(c, x->program->spaces[rt_bind_base(x->program, col)].name, &x->rt->err);
out:
    return st;
}

/* Uses the host's device memory of a column as the program's buffer, without a copy, if kind,
 * type and alignment are those wanted. */
void rt_bind_borrow_device_column(RtExec *x, int col) {
    const rt_column *want = &x->program->columns[col];
    const RtColumn *c = rt_bind_data_column(x, col);
    bool as_it_lies = c->kind == want->kind && rt_bind_type(x->program, want) == RT_F32;
    if (!c->there || want->buf < 0 || !as_it_lies || (uintptr_t)c->there % GNNC_ALIGN) return;
    x->rt->device->lent[want->buf] = c->there;
}

/* Does a buffer read these values, so that they get to the device with it? */
static bool is_uploaded(const RtExec *x, const void *values) {
    for (int b = 0; b < x->program->n_bufs; b++)
        if (x->buf[b] == values) return true;
    return false;
}

/* Frees the host's copies of columns that are on the device, if nothing on the host reads them
 * any more. */
void rt_bind_drop_host_copies(RtExec *x) {
    const rt_program *p = x->program;
    const RtDevice *d = x->rt->device;
    if (!d || (p->sampling.batch && !d->gathers) || asks_host(p)) return;
    for (int b = 0; b < p->n_bufs; b++)
        if (d->lent[b]) x->buf[b] = NULL;
    for (int c = 0; c < p->n_columns; c++) {
        RtColumn *own = rt_bind_data_column(x, c);
        if (!own || !own->there || !own->f32 || is_uploaded(x, own->f32)) continue;
        rt_pool_drop(&x->rt->pool, own->f32);
        own->f32 = NULL;
    }
}
