#include "device_spmm.h"

#include "runtime/cuda/spmm_cost.h"
#include "runtime/cuda/spmm_list.h"

typedef struct RtSpmm {
    rt_spmm is;
    void *product; /* the library's plan of it; NULL: the program's kernel makes it */
    bool failed;   /* the library failed: the kernel makes it from then on */
    const void *ptr, *idx, *weight; /* places that it was opened for */
} RtSpmm;

typedef struct RtSpmmArray {
    struct RtSpmmArray *next;
    RtSpmmRequest ask;
    const void *from, *by;
    void *there;
} RtSpmmArray;

/* ---- arrays --------------------------------------------------------------------------------- */
/* Whether the array was made for this request, of these arrays. */
static bool is_same(const RtSpmmArray *a, const RtSpmmRequest *ask, const void *from,
                    const void *by) {
    return a->ask.kind == ask->kind && a->ask.n == ask->n && a->from == from && a->by == by;
}

/* *there gets the device array that the request asks for, made of `from` and `by` by a kernel of
 * the program; equal requests share one array. */
static gnnc_status array_of(RtDevice *d, RtSpmmRequest ask, const void *from, const void *by,
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

/* The device address of a buffer; NULL for -1, which is none. */
static const void *place(const RtDevice *d, int buf) {
    return buf >= 0 ? d->at.buf[buf] : NULL;
}

/* Makes what the library reads of the sparse matrix and the program has in another form: 32-bit
 * bounds of rows, and weights in the order of entries (ones where there are none). */
static gnnc_status arrays_of(RtDevice *d, const rt_spmm *m, RtSparse *s) {
    void *bounds, *weights = d->at.buf[m->weight >= 0 ? m->weight : m->ptr];
    RtSpmmRequest of_rows = {m->rows + 1, RT_SPMM_BOUNDS},
                  of_entries = {m->entries, RT_SPMM_WEIGHTS};
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
/* Whether the buffer is bound to data, here or on the device; -1, none, counts as there. */
static bool is_there(const RtDevice *d, int buf) {
    return buf < 0 || d->x->buf[buf] || (d->built && d->built[buf]);
}

/* The library's indices are of 32 bits, and a product of nothing is none. */
static bool fits(int64_t n) {
    return n > 0 && n < INT32_MAX;
}

/* Whether the library is to make the product: it was asked for or pays, its sizes fit, and the
 * arrays are there before a run. */
static bool is_for_library(const RtDevice *d, const rt_spmm *m) {
    bool pays = m->wanted || rt_spmm_pays(m->own_bytes, m->library_bytes);
    return pays && fits(m->rows) && fits(m->cols) && fits(m->entries) && fits(m->width) &&
           is_there(d, m->ptr) && is_there(d, m->idx) && is_there(d, m->perm) &&
           is_there(d, m->weight);
}

/* Plans a product by the library, for the addresses that its buffers have now. */
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

/* Plans all products that are for the library. */
static gnnc_status open_all(RtDevice *d) {
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < d->x->program->n_spmms && st == GNNC_OK; i++)
        if (is_for_library(d, &d->spmms.of[i].is)) st = open_one(d, &d->spmms.of[i]);
    return st;
}

/* Reads the sizes and estimates of all sparse products; whether one of them is for the library. */
static bool is_any_for_library(RtDevice *d) {
    const rt_program *p = d->x->program;
    bool any = false;
    for (int i = 0; i < p->n_spmms; i++) {
        p->spmm(i, d->x->n, &d->spmms.of[i].is);
        any |= is_for_library(d, &d->spmms.of[i].is);
    }
    return any;
}

/* Plans the sparse products of a program for the device's library, after its memory was placed. On
 * a failure the program's kernels make them, with a message. */
gnnc_status rt_device_spmm_open(RtExec *x) {
    RtDevice *d = x->rt->device;
    RtError *err = &x->rt->err;
    if (!d || !x->program->n_spmms || !d->ops->spmm_open) return GNNC_OK;
    d->spmms.of = RT_NEWN(&x->rt->pool, RtSpmm, x->program->n_spmms);
    if (!d->spmms.of) return rt_fail_nomem(err, "sparse products");
    if (!is_any_for_library(d)) return GNNC_OK;
    gnnc_status st = rt_device_upload(d);
    if (st != GNNC_OK) return st;
    st = open_all(d);
    if (st == GNNC_OK) return GNNC_OK;
    rt_device_spmm_close(d);
    rt_message(x->rt, "spmm: %s; the program's kernels make sparse products",
               st == GNNC_E_NOMEM ? "too little memory on the device" : err->text);
    err->text[0] = '\0';
    return GNNC_OK;
}

void rt_device_spmm_close(RtDevice *d) {
    for (int i = 0; d->spmms.of && i < d->x->program->n_spmms; i++)
        if (d->spmms.of[i].product) d->ops->spmm_close(d, d->spmms.of[i].product);
    for (RtSpmmArray *a = d->spmms.arrays; a; a = a->next) d->ops->release(d, a->there);
    d->spmms = (RtDeviceSpmms){.of = NULL};
}

/* ---- a step --------------------------------------------------------------------------------- */
/* Makes sparse product i by the library; *made: whether it did. A batch whose index arrays or
 * weights are elsewhere is another matrix than the planned one: the kernel makes it. */
gnnc_status rt_device_spmm(RtExec *x, int i, bool *made) {
    RtDevice *d = x->rt->device;
    RtError *err = &x->rt->err;
    RtSpmm *m = d->spmms.of ? &d->spmms.of[i] : NULL;
    *made = m && m->product && !m->failed && m->ptr == d->at.buf[m->is.ptr] &&
            m->idx == d->at.buf[m->is.idx] && m->weight == place(d, m->is.weight);
    if (!*made) return GNNC_OK;
    if (!rt_device_asks(d)) return GNNC_OK;
    gnnc_status st = d->ops->spmm(d, m->product, d->at.buf[m->is.dense], d->at.buf[m->is.out]);
    *made = st == GNNC_OK;
    m->failed = !*made;
    x->rt->count.library_calls += *made;
    if (*made) return GNNC_OK;
    rt_message(x->rt, "spmm: %s; the program's kernel makes it", err->text);
    err->text[0] = '\0';
    return GNNC_OK;
}
