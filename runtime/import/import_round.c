/* Columns of features in 16 bits, which halves the files.  What is learned, and times, are never
 * rounded; nor are the values of stored entries, whose places take more room than they do. */
#include <math.h>
#include <string.h>

#include "import_build.h"
#include "runtime/exec/round_16.h"

typedef struct {
    RtPool *pool;
    RtImport *how;
    const char *table;
    RtError *err;
} Round;

static const char *type_name(RtDtype dt) {
    return dt == RT_DT_BF16 ? "bf16" : "f16";
}

/* Rounds a column to 16 bits. Its values become the rounded ones, as programs read them. */
static gnnc_status round_column(const Round *r, RtColumn *c, RtDtype dt) {
    rt_dtype to = dt == RT_DT_BF16 ? RT_BF16 : RT_F16;
    int64_t width = 1;
    for (int i = 1; i < c->rank; i++) width *= c->shape[i];
    int64_t n = c->n_rows * width;
    uint16_t *low = RT_NEWN(r->pool, uint16_t, n);
    float *same = RT_NEWN(r->pool, float, n);
    if (!low || !same) return rt_fail_nomem(r->err, c->name);
    rt_from_f32(to, low, c->f32, n);
    rt_to_f32(to, same, low, n);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(same[i]))
            return rt_fail(r->err, GNNC_E_RANGE, "%s.%s: row %lld: %g is too large for %s",
                           r->table, c->name, (long long)(i / width), (double)c->f32[i],
                           type_name(dt));
    c->low = low;
    c->low_dt = dt;
    c->f32 = same;
    return GNNC_OK;
}

/* Does `name`, with or without a table, name this column? */
static bool is_named(const Round *r, const RtColumn *c, const char *name) {
    const char *dot = strchr(name, '.');
    size_t n = dot ? (size_t)(dot - name) : 0;
    if (!dot) return strcmp(name, c->name) == 0;
    return strncmp(name, r->table, n) == 0 && !r->table[n] && strcmp(dot + 1, c->name) == 0;
}

/* The option that says how a column is rounded; NULL: none. One that names it counts before that
 * for all, the last before others. Asking for all is no mistake where each is named. */
static RtLowOf *wish(const Round *r, const RtColumn *c) {
    RtLowOf *all = NULL;
    bool features = c->kind == RT_COL_FLOAT && c->rank > 1 && !rt_is_label(c->name);
    RtLowOf *named = NULL;
    for (int i = r->how->n_lows - 1; i >= 0; i--) {
        RtLowOf *w = &r->how->lows[i];
        if (*w->column && !named && is_named(r, c, w->column)) named = w;
        if (*w->column || !features) continue;
        w->used = true;
        if (!all) all = w;
    }
    return named ? named : all;
}

/* Rounds the columns of a table that the user named. */
static gnnc_status round_table(RtDataset *d, RtImport *how, const RtTable *t, RtError *err) {
    Round r = {&d->pool, how, t->name, err};
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < t->n_columns && st == GNNC_OK; i++) {
        RtColumn *c = &t->columns[i];
        RtLowOf *w = wish(&r, c);
        if (!w) continue;
        if (c->kind != RT_COL_FLOAT || rt_is_label(c->name))
            return rt_fail(err, GNNC_E_ARG,
                           "--features %s: %s.%s is %s; features in rows are rounded", w->column,
                           t->name, c->name,
                           c->kind == RT_COL_CSR     ? "of stored entries, which stay f32"
                           : c->kind == RT_COL_FLOAT ? "a label"
                                                     : rt_col_kind_name(c->kind));
        w->used = true;
        st = round_column(&r, c, w->dt);
    }
    return st;
}

gnnc_status rt_import_round(RtDataset *d, RtImport *how, RtError *err) {
    const struct {
        const RtTable *t;
        int n;
    } all[] = {{d->nodes, d->n_nodes}, {d->edges, d->n_edges}, {d->graphs, d->n_graphs}};
    for (size_t k = 0; k < sizeof all / sizeof *all && how->n_lows; k++)
        for (int i = 0; i < all[k].n; i++) {
            gnnc_status st = round_table(d, how, &all[k].t[i], err);
            if (st != GNNC_OK) return st;
        }
    for (int i = 0; i < how->n_lows; i++) {
        const RtLowOf *w = &how->lows[i];
        if (w->used) continue;
        if (*w->column)
            return rt_fail(err, GNNC_E_MISSING, "--features %s: there is no such column",
                           w->column);
        return rt_fail(err, GNNC_E_MISSING,
                       "--features %s: no float column has several values a row, so nothing would "
                       "be rounded; values of stored entries (csr) stay f32",
                       type_name(w->dt));
    }
    return GNNC_OK;
}
