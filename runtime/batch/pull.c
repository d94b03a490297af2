#include "pull_impl.h"

#include <string.h>

#include "runtime/bind/bind.h"

/* The rows of a type that the batch reads, each once. */
static gnnc_status want_of_batch(gnnc_trainer *t, RtMinibatch *m, int type) {
    RtPullType *y = &t->pulls->type[type];
    RtPool *pool = &m->rt.pool;
    const RtBatchNodes *nodes = &m->batch->nodes[type];
    RtDistinctRows rows;
    gnnc_status st = rt_batch_once(pool, nodes, y->bound[t->pulls->n], &rows, &t->rt.err);
    if (st != GNNC_OK) return st;
    int32_t *id = RT_NEWN(pool, int32_t, rows.n + 1);
    if (!id) return rt_fail_nomem(&t->rt.err, "a batch");
    for (int64_t i = 0; i < rows.n; i++) id[i] = nodes->id[rows.first[i]];
    y->row = rows.distinct;
    return rt_pulls_want(t, pool, type, rows.n, id);
}

/* Writes the rows of others into a column of the batch, which has this process's own. */
static void take_plain(const RtPulls *p, const RtPullColumn *y) {
    const RtMinibatch *m = p->into;
    char *to = m->column_buf[y->column].a.p;
    for (int64_t i = 0; i < m->batch->nodes[y->type].n; i++) {
        const char *from = rt_pulls_row(p, y, p->type[y->type].row[i]);
        if (from) memcpy(to + (size_t)i * y->row_bytes, from, y->row_bytes);
    }
}

/* Makes a csr column of the batch: of rows of this process, and of those that came. */
static gnnc_status take_entries(const gnnc_trainer *t, const RtPullColumn *y) {
    RtPulls *p = t->pulls;
    RtMinibatch *m = p->into;
    RtColumnBuf *buf = &m->column_buf[y->column];
    RtColumn *c = &m->column[y->column];
    const int32_t *row = p->type[y->type].row;
    int64_t n = m->batch->nodes[y->type].n;
    gnnc_status st;
    TRY(st, rt_grow(&m->batch->growth, &buf->a, n + 1, sizeof(int64_t), 0, &p->err));
    int64_t *ptr = buf->a.p;
    ptr[0] = 0;
    for (int64_t i = 0; i < n; i++) ptr[i + 1] = ptr[i] + rt_pulls_entries(p, y, row[i]).n;
    TRY(st, rt_grow(&m->batch->growth, &buf->b, ptr[n], sizeof(int32_t), 0, &p->err));
    TRY(st, rt_grow(&m->batch->growth, &buf->c, ptr[n], sizeof(float), 0, &p->err));
    int32_t *col = buf->b.p;
    float *val = buf->c.p;
    for (int64_t i = 0; i < n; i++) {
        RtPullEntries e = rt_pulls_entries(p, y, row[i]);
        if (!e.n) continue;
        memcpy(col + ptr[i], e.col, (size_t)e.n * sizeof *col);
        memcpy(val + ptr[i], e.val, (size_t)e.n * sizeof *val);
    }
    *c = *t->rt.bound->col[y->column];
    c->n_rows = c->shape[0] = n;
    c->csr = (RtCsr){n, y->own.n_cols, ptr[n], ptr, col, val};
    m->bound.col[y->column] = c;
out:
    return st;
}

/* Writes the rows that came into the batch, and makes what follows from them. */
static gnnc_status take_rows(const gnnc_trainer *t) {
    RtPulls *p = t->pulls;
    gnnc_status st = GNNC_OK;
    for (int c = 0; c < p->n_columns && p->into && st == GNNC_OK; c++) {
        const RtPullColumn *y = &p->column[c];
        if (y->sparse)
            st = take_entries(t, y);
        else
            take_plain(p, y);
        rt_pulls_pass_over(p, y);
    }
    return p->into && st == GNNC_OK ? rt_minibatch_bind_pulled(p->into, &t->x, &p->err) : st;
}

/* Brings what is wanted into the batch: RtBackgroundJob. */
static gnnc_status bring(void *trainer) {
    const gnnc_trainer *t = trainer;
    gnnc_status st = rt_pulls_exchange(t);
    return st == GNNC_OK ? take_rows(t) : st;
}

/* Wants what the batch reads of others. */
static gnnc_status want_batch(gnnc_trainer *t, RtMinibatch *m, RtPullUse use, int64_t step) {
    RtPulls *p = t->pulls;
    gnnc_status st = rt_pulls_wait(t); /* one after the other */
    if (st != GNNC_OK) return st;
    rt_pulls_begin(p, use, step);
    p->into = m;
    for (int k = 0; k < p->map.n_types && m && st == GNNC_OK; k++)
        if (p->type[k].bound) st = want_of_batch(t, m, k);
    return st;
}

gnnc_status rt_pulls_batch(gnnc_trainer *t, RtMinibatch *m, RtPullUse use, int64_t step) {
    gnnc_status st = want_batch(t, m, use, step);
    return st == GNNC_OK ? rt_pulls_end(t, bring(t)) : st;
}

gnnc_status rt_pulls_start(gnnc_trainer *t, RtMinibatch *m, RtPullUse use, int64_t step) {
    RtPulls *p = t->pulls;
    p->came = false;
    gnnc_status st = want_batch(t, m, use, step);
    if (st != GNNC_OK) return st;
    if (!p->thread && t->processes.exchange_in_thread)
        p->thread = rt_background_new(&t->rt.pool, &t->processes);
    p->pending = p->thread != NULL;
    if (!p->pending) {
        st = rt_pulls_end(t, bring(t));
        p->came = st == GNNC_OK;
        return st;
    }
    rt_background_run(p->thread, bring, t);
    return GNNC_OK;
}

int rt_pulls_maker(const gnnc_trainer *t, int type, int64_t row) {
    return t->pulls->type[type].bound ? rt_pulls_owner(t->pulls, type, row) : -1;
}

/* ---- all rows -------------------------------------------------------------------------------- */
static bool reads(const gnnc_trainer *t, const rt_phase *phase, const RtPullColumn *c) {
    int buf = t->program->columns[c->column].buf;
    return buf >= 0 && t->program->bufs[buf].whole >> (phase - t->program->phases) & 1;
}

/* Are all processes at this phase? */
static gnnc_status meet(gnnc_trainer *t) {
    gnnc_status st = rt_pulls_wait(t);
    if (st != GNNC_OK) return st;
    rt_pulls_begin(t->pulls, RT_PULL_WHOLE, t->progress.step);
    return rt_pulls_end(t, rt_pulls_tell_counts(t));
}

/* Makes room for all rows of a column, in the pool. */
static gnnc_status make_room(gnnc_trainer *t, RtPullColumn *c) {
    enum { LEAST = 1 << 10 }; /* less would stay in the pool */
    const RtPulls *p = t->pulls;
    size_t n_bytes = (size_t)p->type[c->type].bound[p->n] * c->row_bytes;
    gnnc_status st =
        rt_trainer_may_take(t, n_bytes, "features of all rows", ", which this phase reads");
    if (st != GNNC_OK) return st;
    c->all = rt_pool_alloc(&t->rt.pool, n_bytes < LEAST ? LEAST : n_bytes, 1);
    return c->all ? GNNC_OK : rt_fail_nomem(&t->rt.err, "features of all rows");
}

/* Brings all rows of a column there. */
static gnnc_status bring_all(gnnc_trainer *t, RtPullColumn *c) {
    RtPulls *p = t->pulls;
    const int64_t *bound = p->type[c->type].bound;
    const char *own = rt_column_values(t->rt.bound->col[c->column]);
    for (int r = 0; r < p->n; r++) {
        p->out[r] = own + (size_t)bound[p->rank] * c->row_bytes;
        p->n_out[r] = (size_t)(bound[p->rank + 1] - bound[p->rank]) * c->row_bytes;
        p->in[r] = (char *)c->all + (size_t)bound[r] * c->row_bytes;
        p->n_in[r] = (size_t)(bound[r + 1] - bound[r]) * c->row_bytes;
    }
    memcpy(p->in[p->rank], p->out[p->rank], p->n_out[p->rank]);
    return rt_pulls_end(t, rt_pulls_send(t, "rows"));
}

/* Brings the columns that the phase reads.  There is room for all of them before the others are
 * met: who lacks memory may make the call again, as nothing was sent. */
static gnnc_status bring_columns(gnnc_trainer *t, const rt_phase *phase) {
    RtPulls *p = t->pulls;
    gnnc_status st = GNNC_OK;
    int n = 0;
    for (int i = 0; i < p->n_columns && st == GNNC_OK; i++) {
        if (!reads(t, phase, &p->column[i])) continue;
        st = make_room(t, &p->column[i]);
        n++;
    }
    if (st == GNNC_OK && n) st = meet(t);
    for (int i = 0; i < p->n_columns && st == GNNC_OK; i++)
        if (p->column[i].all) st = bring_all(t, &p->column[i]);
    return st;
}

gnnc_status rt_pulls_run_whole(gnnc_trainer *t, const rt_phase *phase) {
    RtPulls *p = t->pulls;
    gnnc_status st = p ? bring_columns(t, phase) : GNNC_OK;
    for (int i = 0; p && i < p->n_columns; i++) {
        RtPullColumn *c = &p->column[i];
        if (!c->all) continue;
        void **buf = &t->x.buf[t->program->columns[c->column].buf];
        c->here = *buf;
        *buf = c->all;
    }
    if (st == GNNC_OK) st = rt_bind_run_whole(&t->x, phase);
    for (int i = 0; p && i < p->n_columns; i++) {
        RtPullColumn *c = &p->column[i];
        if (!c->all) continue;
        t->x.buf[t->program->columns[c->column].buf] = c->here;
        rt_pool_drop(&t->rt.pool, c->all);
        c->here = c->all = NULL;
    }
    return st;
}
