/* Parameters that sessions read in their model's memory.
 *
 * Where a file holds a tensor as programs read it, of the same type and order and at a place of 64
 * bytes, as kernels want it, they read the file's own bytes, which are mapped: the system has them
 * once for all processes, and may forget them.  Else there is one copy in the model, made by the
 * first session that reads it; so there is of what the program computes of weights alone, as 16-bit
 * copies of them, but on a device, which has its own.  Rows that a graph has in another order than
 * the weights are the session's own, as they hang on both. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/memory.h"
#include "model.h"
#include "runtime/trainer/model_options.h"

/* Lends the model's tensors, names of categories and encoders to a trainer. */
gnnc_status rt_model_share_weights(gnnc_model *m, gnnc_trainer *t) {
    RtWeightsFile *g = RT_NEW(&t->rt.pool, RtWeightsFile);
    if (!g) return rt_fail_nomem(&t->rt.err, m->weights.name);
    *g = (RtWeightsFile){.path = m->weights.name,
                         .f = m->f,
                         .n = m->n_codes,
                         .codes = m->codes,
                         .encoders = m->encoders};
    rt_pool_init(&g->pool, &t->rt.pool.from);
    t->rt.given = t->given = g;
    t->rt.model = m;
    /* Its own list: rows may get another order. */
    if (!(g->f.v = RT_NEWN(&g->pool, RtTensor, m->f.n)))
        return rt_fail_nomem(&t->rt.err, m->weights.name);
    if (m->f.n) memcpy(g->f.v, m->f.v, (size_t)m->f.n * sizeof *g->f.v);
    return rt_model_options_take(t);
}

/* ---- in the file -------------------------------------------------------------- */
static bool is_at_place(const void *p) {
    return (uintptr_t)p % RT_ALIGN == 0;
}

/* Predictions do not wait for the disk: pages are asked for here.  Where the system can, it tells
 * that the file has become shorter, too. */
static gnnc_status read_ahead(const gnnc_model *m, const RtTensor *of, RtError *err) {
    RtArray a = of->a;
    size_t n = 0, page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t at = (uintptr_t)a.data, first = at / page * page;
    if (!rt_pool_maps(&m->pool, a.data) || !rt_array_bytes(&a, &n) || !n) return GNNC_OK;
    n += at - first;
#ifdef MADV_POPULATE_READ
    if (madvise((void *)first, n, MADV_POPULATE_READ) == 0) return GNNC_OK;
    if (errno == EFAULT) return rt_fail_errno(err, m->weights.name, "read");
#else
    (void)err;
#endif
    madvise((void *)first, n, MADV_WILLNEED); /* only a wish */
    return GNNC_OK;
}

/* ---- copies -------------------------------------------------------------------- */
/* Makes a copy of a tensor as programs read it, in `pool`. */
static gnnc_status copy(gnnc_trainer *t, RtPool *pool, const RtTensor *from, int var,
                        const void **out) {
    const char *path = t->rt.model->weights.name;
    RtTensor fit = *from;
    size_t n = 0;
    RtPool scratch;
    rt_pool_init(&scratch, &pool->from);
    gnnc_status st = rt_tensor_fit(t, &scratch, path, &fit, var);
    if (st == GNNC_OK) st = rt_buf_bytes(&t->x, t->program->vars[var].buf, &n);
    void *to = st == GNNC_OK ? rt_memory_block(pool, n) : NULL;
    if (to)
        rt_tensor_store(t, &fit, var, to);
    else if (st == GNNC_OK)
        st = rt_fail_nomem(&t->rt.err, from->name);
    rt_pool_free(&scratch);
    *out = to;
    return st;
}

/* The first session that wants it finds or makes it. */
static gnnc_status find(gnnc_trainer *t, const RtTensor *from, int var, RtStored *is,
                        int64_t transposed) {
    gnnc_model *m = t->rt.model;
    RtDtype want = rt_file_dtype(t->program->vars[var].dt);
    is->transposed = transposed;
    if (transposed || from->a.dt != want || !is_at_place(from->a.data))
        return copy(t, &m->pool, from, var, &is->data);
    gnnc_status st = read_ahead(m, from, &t->rt.err);
    if (st == GNNC_OK) is->data = from->a.data;
    return st;
}

/* Points a variable to the model's memory, which all sessions share. Where the file's tensor is not
 * as programs read it the model keeps one converted copy; other values are copied for this trainer
 * alone. */
static gnnc_status lend(gnnc_trainer *t, const RtTensors *f, int var) {
    gnnc_model *m = t->rt.model;
    const RtTensor *from = rt_tensors_find(f, t->program->vars[var].path);
    RtStored *is = &m->stored[from - f->v];
    rt_var_shape shape = {.rank = 0};
    const void *own = NULL;
    gnnc_status st = GNNC_OK;
    t->program->var_shape(var, t->x.n, &shape);
    bool same = from->a.data == m->f.v[from - f->v].a.data;
    if (same) {
        pthread_mutex_lock(&m->storing);
        if (!is->data) st = find(t, from, var, is, shape.transposed);
        if (is->transposed == shape.transposed) own = is->data;
        pthread_mutex_unlock(&m->storing);
    }
    if (!own && st == GNNC_OK) st = copy(t, &t->rt.pool, from, var, &own);
    t->x.buf[t->program->vars[var].buf] = (void *)(uintptr_t)own;
    return st;
}

/* ---- what is computed of them ------------------------------------------------------ */
/* What was computed of the model's weights for this program; NULL: nothing yet. */
static RtComputed *computed_of(const gnnc_trainer *t) {
    RtComputed *c = t->rt.model->computed;
    while (c && c->program != t->program) c = c->next;
    return c;
}

/* Memory for what is computed before of all rows, which all sessions of the model share. */
static gnnc_status alloc_precomputed(gnnc_trainer *t, RtComputed **out) {
    gnnc_model *m = t->rt.model;
    const rt_program *p = t->program;
    RtComputed *c = RT_NEW(&m->pool, RtComputed);
    if (!c || !(c->data = RT_NEWN(&m->pool, void *, p->n_vars))) return GNNC_E_NOMEM;
    c->program = p;
    for (int v = 0; v < p->n_vars; v++) {
        size_t n;
        if (p->vars[v].kind != RT_VAR_KEPT || p->vars[v].buf < 0) continue;
        gnnc_status st = rt_buf_bytes(&t->x, p->vars[v].buf, &n);
        if (st != GNNC_OK) return st;
        if (!(c->data[v] = rt_memory_block(&m->pool, n))) return GNNC_E_NOMEM;
    }
    c->next = m->computed;
    *out = m->computed = c;
    return GNNC_OK;
}

/* Points the variables that follow from weights alone to the model's copies, computed once for all
 * sessions. */
static gnnc_status lend_computed(gnnc_trainer *t) {
    gnnc_model *m = t->rt.model;
    const rt_program *p = t->program;
    pthread_mutex_lock(&m->storing);
    RtComputed *c = computed_of(t);
    gnnc_status st = c ? GNNC_OK : alloc_precomputed(t, &c);
    pthread_mutex_unlock(&m->storing);
    for (int v = 0; v < p->n_vars && st == GNNC_OK; v++)
        if (c->data[v]) t->x.buf[p->vars[v].buf] = c->data[v];
    return st == GNNC_E_NOMEM ? rt_fail_nomem(&t->rt.err, m->weights.name) : st;
}

gnnc_status rt_model_lend(gnnc_trainer *t, const RtTensors *f) {
    bool keeps = rt_phase_of(t->program, RT_PHASE_REFRESH) && !t->rt.device;
    gnnc_status st = keeps ? lend_computed(t) : GNNC_OK;
    for (int i = 0; i < t->n_shown && st == GNNC_OK; i++) st = lend(t, f, t->shown[i]);
    return st;
}

bool rt_model_has(const gnnc_model *m, const void *data) {
    for (int i = 0; i < m->f.n; i++)
        if (m->stored[i].data == data) return data != NULL;
    for (const RtComputed *c = m->computed; c; c = c->next)
        for (int v = 0; v < c->program->n_vars; v++)
            if (c->data[v] == data) return data != NULL;
    return false;
}

gnnc_status rt_model_refresh(gnnc_trainer *t) {
    const rt_phase *phase = rt_phase_of(t->program, RT_PHASE_REFRESH);
    gnnc_model *m = t->rt.model;
    gnnc_status st = GNNC_OK;
    if (!phase) return GNNC_OK;
    t->rt.vars_changed = false;
    if (t->rt.device) return rt_phase_run(&t->x, phase);
    pthread_mutex_lock(&m->storing);
    RtComputed *c = computed_of(t);
    if (!c->done) st = rt_phase_run(&t->x, phase);
    c->done |= st == GNNC_OK;
    pthread_mutex_unlock(&m->storing);
    return st;
}
