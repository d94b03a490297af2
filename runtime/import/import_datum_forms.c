/* Texts of a database that are more than a name each.  While rows are read they are numbered like
 * categories; here, when all are known, they become values. */
#include <stdio.h>
#include <string.h>

#include "import_datum.h"
#include "import_index.h"
#include "import_table.h"

static const char *text_at(const void *of, int64_t i) {
    return ((const RtDict *)of)->texts[i].s;
}

/* Finds what a column of texts is; e->as stays NUMBER where its texts are names. */
static gnnc_status find_form(RtDatumFields *x, const RtDatumField *f, RtEncoder *e,
                             const char **why) {
    const RtTextList list = {&f->dict, f->dict.n, text_at};
    const RtWish *w = &x->t->columns[f->column].wish;
    char what[160];
    if (f->stated && w->as == RT_AS_SEVERAL) {
        e->as = w->as;
        e->separator = w->separator;
        snprintf(what, sizeof what, "%.60s: column '%.60s'", x->t->name, f->name);
        return rt_looks_fit(x->keep, x->scratch, &list, what, e, x->err);
    }
    if (f->stated || rt_import_is_asked(x->how, f->name)) return GNNC_OK;
    bool many = f->dict.n > RT_FEW_TEXTS && 2 * f->dict.n > f->n_full;
    gnnc_status st = rt_looks_guess(x->keep, x->scratch, &f->looks, &list, many, e, why, x->err);
    if (e->as == RT_AS_BOOLEAN) e->as = RT_AS_NUMBER; /* declared ones are none of texts */
    return st;
}

/* Has any of the rows an empty cell? */
static bool any_absent(const RtDatumField *f, int64_t n_rows) {
    for (int64_t i = 0; i < n_rows; i++)
        if (rt_cell_absent(text_at(&f->dict, f->to.i32[i]))) return true;
    return false;
}

/* Encodes texts that were kept by code, once it is decided how. */
static gnnc_status make_values(RtDatumFields *x, RtDatumField *f, int64_t n_rows, float *to) {
    for (int64_t i = 0; i < n_rows; i++) {
        const RtCell cell = {.text = text_at(&f->dict, f->to.i32[i])};
        int at;
        const char *what = rt_encode(f->encoder, &cell, to, i, &at);
        if (!what && f->missing) what = rt_encode(f->missing, &cell, f->absent, i, &at);
        if (what)
            return rt_fail(x->err, GNNC_E_VALUE, "%s: row %lld: column '%.64s': %s is %s",
                           x->t->name, (long long)i + 1, f->name, rt_cell_quoted(cell.text).s,
                           what);
    }
    return GNNC_OK;
}

gnnc_status rt_datum_form(RtDatumFields *x, RtDatumField *f, int64_t n_rows) {
    RtEncoder e = {.kind = RT_COL_FLOAT, .from = f->name, .n_categories = -1};
    if (f->kind != RT_COL_CAT || f->alike) return GNNC_OK;
    gnnc_status st = find_form(x, f, &e, &f->why);
    if (st != GNNC_OK || e.as == RT_AS_NUMBER) return st;
    *f->encoder = e;
    f->kind = RT_COL_FLOAT;
    f->texts = false;
    bool gaps = e.as == RT_AS_VECTOR && any_absent(f, n_rows);
    float *to = rt_import_reserve(x->keep, x->t->n_rows, sizeof *to * (size_t)e.out, x->err);
    if (!to || (gaps && !rt_datum_missing(x, f))) return rt_fail_nomem(x->err, f->name);
    st = make_values(x, f, n_rows, to);
    rt_pool_drop(x->keep, f->to.all);
    f->to.all = to;
    return st;
}
