/* Fits what only the rows that are learned from tell: how numbers are scaled, and which names have
 * a code.  Rows that are judged on must not say anything, so it waits for the split. */
#include "import_encode.h"

#include <math.h>
#include <string.h>

#include "runtime/data/encoder.h"
#include "import_index.h"
#include "import_reached.h"
#include "import_scale.h"
#include "import_time.h"

typedef struct {
    RtDataset *d;
    const RtTable *t;
    const int8_t *split; /* NULL: all rows are learned from, or those that are old enough: */
    const double *time;  /* NULL: those that training rows lead to: */
    double before;
    const bool *reached; /* NULL: all are */
    RtError *err;
} Fit;

/* Does training see the row, so that encoders may be fitted to it? By split, by time, or by what it
 * is joined to. */
static bool learned(const Fit *f, int64_t row) {
    if (f->split) return f->split[row] == 1;
    if (f->time) return f->time[row] < f->before; /* of unknown time: it may be later */
    return !f->reached || f->reached[row];
}

/* ---- numbers ------------------------------------------------------------------------- */
/* Encodes all rows anew: of PIECEWISE several values each, so elsewhere. */
static gnnc_status scale_rows(const Fit *f, RtColumn *c, const RtEncoder *e) {
    void *to = (void *)(uintptr_t)c->values; /* the import's own */
    if (e->out) {
        to = rt_import_reserve(&f->d->pool, c->n_rows, sizeof(float) * (size_t)e->out, f->err);
        if (!to) return GNNC_E_NOMEM;
        rt_pool_drop(&f->d->pool, c->values);
        c->values = to;
        c->rank = 2;
        c->shape[1] = e->out;
    }
    for (int64_t i = 0; i < c->n_rows; i++) {
        RtCell cell = {.number = c->exact[i]};
        int at;
        const char *what =
            isnan(c->exact[i]) && !e->gaps ? "absent" : rt_encode(e, &cell, to, i, &at);
        if (what)
            return rt_fail(f->err, GNNC_E_VALUE, "%s.%s: row %lld: %g is %s", f->t->name, c->name,
                           (long long)i, c->exact[i], what);
    }
    return GNNC_OK;
}

/* Fits the scale of a column to the rows that training sees, and scales all rows by it. */
static gnnc_status fit_numbers(const Fit *f, RtColumn *c, RtEncoder *e) {
    const char *what = rt_pool_printf(&f->d->pool, "%s.%s", f->t->name, c->name);
    double *v = rt_import_reserve(&f->d->pool, c->n_rows, sizeof *v, f->err);
    int64_t n = 0;
    if (!what || !v) return rt_fail_nomem(f->err, c->name);
    for (int64_t i = 0; i < c->n_rows; i++)
        if (learned(f, i) && !isnan(c->exact[i])) v[n++] = c->exact[i];
    gnnc_status st = rt_scale_fit(&f->d->pool, v, n, c->scale, what, e, f->err);
    rt_pool_drop(&f->d->pool, v);
    if (st == GNNC_OK) st = scale_rows(f, c, e);
    rt_pool_drop(&f->d->pool, c->exact);
    c->exact = NULL;
    return st;
}

/* ---- names --------------------------------------------------------------------------- */
/* Names that no row, or few, are learned from become the unknown one; the others stay in order. */
static gnnc_status fit_names(const Fit *f, RtColumn *c, RtEncoder *e) {
    int32_t *code = (int32_t *)(uintptr_t)c->i32; /* the import's own */
    int64_t least = e->rare > 1 ? e->rare : 1, n = 1;
    int64_t *count = RT_NEWN(&f->d->pool, int64_t, c->n_categories);
    const char **names = RT_NEWN(&f->d->pool, const char *, c->n_categories);
    if (!count || !names) return rt_fail_nomem(f->err, c->name);
    for (int64_t i = 0; i < c->n_rows; i++)
        if (learned(f, i)) count[code[i]]++;
    names[0] = c->names[0];
    count[0] = 0;
    for (int64_t k = 1; k < c->n_categories; k++) {
        bool stays = count[k] >= least;
        count[k] = stays ? n : 0; /* its new code */
        if (stays) names[n++] = c->names[k];
    }
    for (int64_t i = 0; i < c->n_rows; i++) code[i] = (int32_t)count[code[i]];
    c->names = e->names = names;
    c->n_categories = e->n_categories = n;
    return GNNC_OK;
}

/* Finds which of the names some row has that is learned from: place[k] is the new place of name k,
 * else 0. Returns how many places there are. */
static int places_of(const Fit *f, const RtColumn *c, int width, int32_t *place) {
    int n = 1;
    for (int64_t i = 0; i < c->n_rows; i++)
        for (int k = 1; k < width && learned(f, i); k++)
            if (c->f32[i * width + k] != 0) place[k] = 1;
    for (int k = 1; k < width; k++) place[k] = place[k] ? n++ : 0;
    return n;
}

/* The others become the unknown one, which is the first. */
static gnnc_status fit_several(const Fit *f, RtColumn *c, RtEncoder *e) {
    int width = e->out;
    int32_t *place = RT_NEWN(&f->d->pool, int32_t, width);
    const char **names = RT_NEWN(&f->d->pool, const char *, width);
    if (!place || !names) return rt_fail_nomem(f->err, c->name);
    int n = places_of(f, c, width, place);
    float *to = rt_import_reserve(&f->d->pool, c->n_rows, sizeof *to * (size_t)n, f->err);
    if (!to) return GNNC_E_NOMEM;
    for (int64_t i = 0; i < c->n_rows; i++)
        for (int k = 0; k < width; k++)
            if (c->f32[i * width + k] != 0) to[i * n + place[k]] = 1;
    for (int k = 0; k < width; k++)
        if (!k || place[k]) names[place[k]] = e->names[k];
    rt_pool_drop(&f->d->pool, c->values);
    c->f32 = to;
    c->shape[1] = e->out = n;
    e->names = names;
    e->n_categories = n;
    return GNNC_OK;
}

/* ---- all of them --------------------------------------------------------------------- */
/* Fits the encoders of a table's columns to the rows that training sees. */
static gnnc_status fit_table(RtDataset *d, RtTable *t, const RtFitRows *rows, const bool *reached,
                             RtError *err) {
    const RtColumn *split = rt_table_column(t, "split");
    const RtColumn *time = rows->dated ? rt_import_row_time(t, rows->by_time) : NULL;
    Fit f = {.d = d, .t = t, .err = err, .before = rows->before, .reached = reached};
    gnnc_status st = GNNC_OK;
    if (split && split->kind == RT_COL_SPLIT) f.split = split->splits; /* the first of several */
    if (time) f.time = time->f64;
    for (int i = 0; i < t->n_columns && st == GNNC_OK; i++) {
        RtColumn *c = &t->columns[i];
        RtEncoder *e = (RtEncoder *)(uintptr_t)c->encoder; /* the import's own */
        if (c->exact && c->scale.as != RT_SCALE_PLAIN) st = fit_numbers(&f, c, e);
        if (st == GNNC_OK && e && e->unknown) st = fit_names(&f, c, e);
        if (st == GNNC_OK && e && e->as == RT_AS_SEVERAL) st = fit_several(&f, c, e);
    }
    return st;
}

/* The first time that is held out of a table; false: none is, or rows that are learned from are
 * later and it is no split by time. */
static bool first_held_out(const RtTable *t, const char *by_time, double *first) {
    const RtColumn *split = rt_table_column(t, "split");
    const RtColumn *time = by_time ? rt_table_column(t, by_time) : rt_import_row_time(t, NULL);
    double last = -INFINITY;
    *first = INFINITY;
    if (!split || split->kind != RT_COL_SPLIT || !time || time->kind != RT_COL_TIME) return false;
    for (int64_t i = 0; i < t->count; i++) {
        if (split->splits[i] > 1 && time->f64[i] < *first) *first = time->f64[i];
        if (split->splits[i] == 1 && time->f64[i] > last) last = time->f64[i];
    }
    return isfinite(*first) && (by_time || last <= *first);
}

/* Finds, without a task, from when on a split by time holds rows out: what came before is learned
 * from. */
static void find_date(const RtTable *t, int n, RtFitRows *rows) {
    for (int k = 0; k < n; k++) {
        double first;
        if (!first_held_out(&t[k], rows->by_time, &first)) continue;
        if (!rows->dated || first < rows->before) rows->before = first;
        rows->dated = true;
    }
}

gnnc_status rt_import_encode(RtDataset *d, const RtFitRows *given, RtError *err) {
    RtFitRows rows = *given;
    RtMetricValue r = {0};
    gnnc_status st = GNNC_OK;
    if (!given->dated) {
        find_date(d->nodes, d->n_nodes, &rows);
        find_date(d->edges, d->n_edges, &rows);
    }
    st = rt_import_reached(d, &rows, &r, err);
    for (int i = 0; i < d->n_nodes && st == GNNC_OK; i++)
        st = fit_table(d, &d->nodes[i], &rows, r.nodes ? r.nodes[i] : NULL, err);
    for (int i = 0; i < d->n_edges && st == GNNC_OK; i++)
        st = fit_table(d, &d->edges[i], &rows, r.edges ? r.edges[i] : NULL, err);
    for (int i = 0; i < d->n_graphs && st == GNNC_OK; i++)
        st = fit_table(d, &d->graphs[i], &rows, NULL, err);
    rt_pool_free(&r.pool);
    return st;
}

/* Finds the column, of a node table, whose scale is not fitted yet: tasks make tables after cells
 * were read. */
static RtColumn *find_unfitted(RtDataset *d, const RtEncoding *k, RtTable **t) {
    for (int i = 0; i < d->n_nodes; i++) {
        *t = &d->nodes[i];
        if (strcmp((*t)->name, k->table) != 0) continue;
        for (int j = 0; j < (*t)->n_columns; j++) {
            RtColumn *c = &(*t)->columns[j];
            bool waits = c->exact && c->scale.as != RT_SCALE_PLAIN;
            if (waits && strcmp(c->name, k->column) == 0) return c;
        }
    }
    return NULL;
}

gnnc_status rt_import_encode_like(RtDataset *d, const RtEncoders *like, RtError *err) {
    for (int i = 0; i < like->n; i++) {
        const RtEncoding *k = &like->v[i];
        RtTable *t;
        RtColumn *c = k->e.as == RT_AS_NUMBER ? find_unfitted(d, k, &t) : NULL;
        if (!c) continue;
        RtEncoder *e = RT_NEW(&d->pool, RtEncoder);
        if (!e || !rt_encoder_copy(&d->pool, &k->e, e)) return rt_fail_nomem(err, c->name);
        const Fit f = {.d = d, .t = t, .err = err};
        c->encoder = e;
        gnnc_status st = scale_rows(&f, c, e);
        if (st != GNNC_OK) return st;
        rt_pool_drop(&d->pool, c->exact);
        c->exact = NULL;
    }
    return GNNC_OK;
}
