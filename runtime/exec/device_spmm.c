#include "device_spmm.h"

#include "runtime/cuda/spmm_cost.h"
#include "runtime/cuda/spmm_list.h"

typedef struct RtSpmm {
    rt_spmm is;
    void *product;                  /* of the library; NULL: the kernel makes it */
    const void *ptr, *idx, *weight; /* places that it was opened for */
} RtSpmm;

typedef struct RtSpmmArray {
    struct RtSpmmArray *next;
    RtSpmmAsk ask;
    const void *from, *by;
    void *there;
} RtSpmmArray;

/* ---- arrays --------------------------------------------------------------------------------- */
static bool is_same(const RtSpmmArray *a, const RtSpmmAsk *ask, const void *from, const void *by) {
    return a->ask.kind == ask->kind && a->ask.n == ask->n && a->from == from && a->by == by;
}

static gnnc_status array_of(RtDevice *d, RtSpmmAsk ask, const void *from, const void *by,
                            void **there) {
    RtSpmmArray *a = d->spmms.arrays;
    while (a && !is_same(a, &ask, from, by)) a = a->next;
    if (a) *there = a->there;
    if (a) return GNNC_OK;
    a = RT_NEW(&d->x->rt->pool, RtSpmmArray);
    if (!a) return rt_fail_nomem(&d->x->rt->err, "arrays of sparse products");
    *a = (RtSpmmArray){.ask = ask, .from = from, .by = by};
    size_t n_bytes = (size_t)ask.n * sizeof(float); /* or int32_t */
    gnnc_status st = d->ops->alloc(d, n_bytes, &a->there);
    if (st != GNNC_OK) return st;
    a->next = d->spmms.arrays;
    d->spmms.arrays = a;
    d->spmms.n_bytes += n_bytes;
    *there = a->there;
    void *const arg[] = {(void *)(uintptr_t)from, (void *)(uintptr_t)by, a->there, &ask};
    return d->ops->launch(d, d->x->program->device_spmm, "spmm", arg);
}

static const void *place(const RtDevice *d, int buf) {
    return buf >= 0 ? d->at.buf[buf] : NULL;
}

static gnnc_status arrays_of(RtDevice *d, const rt_spmm *m, RtSparse *s) {
    void *bounds, *weights = d->at.buf[m->weight >= 0 ? m->weight : m->ptr];
    RtSpmmAsk of_rows = {m->rows + 1, RT_SPMM_BOUNDS}, of_entries = {m->entries, RT_SPMM_WEIGHTS};
    gnnc_status st;
    TRY(st, array_of(d, of_rows, d->at.buf[m->ptr], NULL, &bounds));
    if (m->weight < 0 || m->perm >= 0)
        TRY(st, array_of(d, of_entries, place(d, m->weight), place(d, m->perm), &weights));
    s->bounds = bounds;
    s->weights = weights;
out:
    return st;
}

/* ---- which, and when ------------------------------------------------------------------------ */
static bool is_there(const RtDevice *d, int buf) {
    return buf < 0 || d->x->buf[buf] || (d->built && d->built[buf]);
}

/* The library's indices are of 32 bits, and a product of nothing is none. */
static bool fits(int64_t n) {
    return n > 0 && n < INT32_MAX;
}

static bool is_for_library(const RtDevice *d, const rt_spmm *m) {
    bool pays = m->wanted || rt_spmm_pays(m->own_bytes, m->library_bytes);
    return pays && fits(m->rows) && fits(m->cols) && fits(m->entries) && fits(m->width) &&
           is_there(d, m->ptr) && is_there(d, m->idx) && is_there(d, m->perm) &&
           is_there(d, m->weight);
}

static gnnc_status open_one(RtDevice *d, RtSpmm *p) {
    const rt_spmm *m = &p->is;
    const rt_step_info *step = &d->x->program->phases[m->phase].steps[m->step];
    RtSparse s = {.name = step->name,
                  .lines = step->lines,
                  .rows = m->rows,
                  .cols = m->cols,
                  .entries = m->entries,
                  .width = m->width,
                  .idx = d->at.buf[m->idx],
                  .dense = d->at.buf[m->dense],
                  .out = d->at.buf[m->out]};
    p->ptr = d->at.buf[m->ptr];
    p->idx = s.idx;
    p->weight = place(d, m->weight);
    gnnc_status st = arrays_of(d, m, &s);
    return st == GNNC_OK ? d->ops->spmm_open(d, &s, &p->product) : st;
}

static gnnc_status open_all(RtDevice *d, bool *uploaded) {
    const rt_program *p = d->x->program;
    for (int i = 0; i < p->n_spmms; i++) {
        RtSpmm *m = &d->spmms.of[i];
        p->spmm(i, d->x->n, &m->is);
        if (!is_for_library(d, &m->is)) continue;
        gnnc_status st = *uploaded ? GNNC_OK : rt_device_upload(d);
        *uploaded = true;
        if (st == GNNC_OK) st = open_one(d, m);
        if (st != GNNC_OK) return st;
    }
    return GNNC_OK;
}

gnnc_status rt_device_spmm_open(RtExec *x) {
    RtDevice *d = x->rt->device;
    bool uploaded = false;
    if (!d || !x->program->n_spmms || !d->ops->spmm_open) return GNNC_OK;
    d->spmms.of = RT_NEWN(&x->rt->pool, RtSpmm, x->program->n_spmms);
    if (!d->spmms.of) return rt_fail_nomem(&x->rt->err, "sparse products");
    gnnc_status st = open_all(d, &uploaded);
    if (st != GNNC_E_NOMEM) return st;
    rt_device_spmm_close(d);
    rt_message(x->rt, "spmm: too little memory on the device; the program's kernels make them");
    x->rt->err.text[0] = '\0';
    return GNNC_OK;
}

void rt_device_spmm_close(RtDevice *d) {
    for (int i = 0; d->spmms.of && i < d->x->program->n_spmms; i++)
        if (d->spmms.of[i].product) d->ops->spmm_close(d, d->spmms.of[i].product);
    for (RtSpmmArray *a = d->spmms.arrays; a; a = a->next) d->ops->release(d, a->there);
    d->spmms = (RtDeviceSpmms){.of = NULL};
}

/* ---- a step --------------------------------------------------------------------------------- */
/* A batch that has index arrays or weights of its own is another matrix. */
gnnc_status rt_device_spmm(RtExec *x, int i, bool *made) {
    RtDevice *d = x->rt->device;
    const RtSpmm *m = d->spmms.of ? &d->spmms.of[i] : NULL;
    *made = m && m->product && m->ptr == d->at.buf[m->is.ptr] && m->idx == d->at.buf[m->is.idx] &&
            m->weight == place(d, m->is.weight);
    if (!*made) return GNNC_OK;
    x->rt->count.library_calls++;
    return d->ops->spmm(d, m->product, d->at.buf[m->is.dense], d->at.buf[m->is.out]);
}
