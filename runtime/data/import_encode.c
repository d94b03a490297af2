/* Fits what only the rows that are learned from tell: the mean and deviation of numbers, and which
 * names have a code.  Rows that are judged on must not say anything, so it waits for the split. */
#include "import_encode.h"

#include <math.h>
#include <string.h>

#include "encoder.h"
#include "import_time.h"

typedef struct {
    RtDataset *d;
    const RtTable *t;
    const int8_t *split; /* NULL: all rows are learned from, or those that are old enough: */
    const double *time;  /* NULL: all are */
    double before;
    RtError *err;
} Fit;

static bool learned(const Fit *f, int64_t row) {
    if (f->split) return f->split[row] == 1;
    return !f->time || f->time[row] < f->before; /* of unknown time: it may be later */
}

/* ---- numbers ------------------------------------------------------------------------- */
/* In two passes, which a large mean does not harm. */
static void fit_number(const Fit *f, const double *x, int64_t n, RtEncoder *e) {
    double sum = 0, squares = 0;
    int64_t k = 0;
    for (int64_t i = 0; i < n; i++)
        if (learned(f, i) && !isnan(x[i])) sum += x[i], k++;
    e->mean = k ? sum / (double)k : 0;
    for (int64_t i = 0; i < n; i++)
        if (learned(f, i) && !isnan(x[i])) squares += (x[i] - e->mean) * (x[i] - e->mean);
    e->deviation = k ? sqrt(squares / (double)k) : 0;
    if (!(e->deviation > 0) || !isfinite(e->deviation)) e->deviation = 1;
    e->standard = true;
}

static gnnc_status standardise(const Fit *f, RtColumn *c, RtEncoder *e) {
    void *to = (void *)(uintptr_t)c->values; /* the import's own */
    fit_number(f, c->exact, c->n_rows, e);
    if (!isfinite(e->mean))
        return rt_fail(f->err, GNNC_E_VALUE, "%s.%s: its mean is no finite number", f->t->name,
                       c->name);
    for (int64_t i = 0; i < c->n_rows; i++) {
        double v = isnan(c->exact[i]) ? e->mean : c->exact[i];
        const char *what = rt_encode_number(e, v, to, i);
        if (what)
            return rt_fail(f->err, GNNC_E_VALUE, "%s.%s: row %lld: %g is %s", f->t->name, c->name,
                           (long long)i, v, what);
    }
    rt_pool_drop(&f->d->pool, c->exact);
    c->exact = NULL;
    return GNNC_OK;
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

/* ---- all of them --------------------------------------------------------------------- */
static gnnc_status fit_table(RtDataset *d, RtTable *t, const RtFitRows *rows, RtError *err) {
    const RtColumn *split = rt_table_column(t, "split");
    const RtColumn *time = rows->dated ? rt_import_row_time(t, rows->by_time) : NULL;
    Fit f = {.d = d, .t = t, .err = err, .before = rows->before};
    gnnc_status st = GNNC_OK;
    if (split && split->kind == RT_COL_SPLIT) f.split = split->splits; /* the first of several */
    if (time) f.time = time->f64;
    for (int i = 0; i < t->n_columns && st == GNNC_OK; i++) {
        RtColumn *c = &t->columns[i];
        RtEncoder *e = (RtEncoder *)(uintptr_t)c->encoder; /* the import's own */
        if (c->exact && c->standard) st = standardise(&f, c, e);
        if (e && e->unknown) st = fit_names(&f, c, e);
    }
    return st;
}

gnnc_status rt_import_encode(RtDataset *d, const RtFitRows *rows, RtError *err) {
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < d->n_nodes && st == GNNC_OK; i++)
        st = fit_table(d, &d->nodes[i], rows, err);
    for (int i = 0; i < d->n_edges && st == GNNC_OK; i++)
        st = fit_table(d, &d->edges[i], rows, err);
    for (int i = 0; i < d->n_graphs && st == GNNC_OK; i++)
        st = fit_table(d, &d->graphs[i], rows, err);
    return st;
}
