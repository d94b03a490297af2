/* An array becomes a column: which kind, and the values in that kind's element type. */
#include "import_build.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_CATEGORIES = 1 << 24, MOST_COLUMNS = 256 };

typedef struct {
    RtBuild *b;
    RtTable *t;
    const char *name, *where;
    const RtArray *a;
    int64_t width;
    const char *why; /* the kind that is chosen */
} Values;

static gnnc_status bad_row(const Values *v, int64_t i, const char *what) {
    int64_t row = v->width ? i / v->width : 0;
    return rt_fail(v->b->err, GNNC_E_VALUE, "%s: row %lld: %s", v->where, (long long)row, what);
}

/* ---- kinds ------------------------------------------------------------------------ */
/* Whether all values are 0, 1 or missing; *missing: some are. */
static bool is_binary(const RtArray *a, bool *missing) {
    bool binary = true;
    *missing = false;
    for (int64_t i = 0; i < a->count; i++) {
        double v = rt_array_f64(a, i);
        *missing |= isnan(v);
        binary &= isnan(v) || v == 0 || v == 1;
    }
    return binary;
}

/* Are all numbers small enough, and not negative, to be categories? */
static bool is_category(const RtArray *a) {
    for (int64_t i = 0; i < a->count; i++) {
        int64_t v = rt_array_i64(a, i);
        if (v < 0 || v >= MOST_CATEGORIES) return false;
    }
    return true;
}

/* Guesses what kind of column the values make, by name and type; *why says it for messages. */
static rt_col_kind guess(const Values *v, const char **why) {
    const RtArray *a = v->a;
    bool real = rt_dtype_kind(a->dt) == 'f', scalar = v->width == 1, missing;
    if (rt_is_label(v->name) && v->t->graph < 0) { /* in data of many graphs: a feature */
        bool binary = is_binary(a, &missing);
        *why = rt_why_label;
        if (real && missing) return RT_COL_MULTILABEL;
        if (a->rank > 1 && binary && (real || !scalar)) return RT_COL_MULTILABEL;
        return real || !scalar ? RT_COL_FLOAT : RT_COL_CLASS;
    }
    if (scalar && rt_is_time(v->name)) return *why = "its name is a time's", RT_COL_TIME;
    if (a->rank == 1 && strcmp(v->name, "split") == 0 && !real) return RT_COL_SPLIT;
    if (scalar && !real && rt_is_id(v->name)) return *why = "its name is a key's", RT_COL_ID;
    bool narrow = a->rank <= 2 && v->width <= MOST_COLUMNS;
    bool category = !real && narrow && is_category(a);
    *why = category ? "whole numbers" : real ? "real numbers" : "numbers that are no categories";
    return category ? RT_COL_CAT : RT_COL_FLOAT;
}

/* The kind of column: as an option says, else guessed. */
static rt_col_kind kind_of(const Values *v, const char **why) {
    rt_col_kind kind;
    *why = "--kind says so";
    return rt_import_kind(v->b->how, v->t->name, v->name, &kind) ? kind : guess(v, why);
}

/* ---- values ------------------------------------------------------------------------ */
/* Adds a column to the table; keep_shape: with the array's further dimensions. */
static RtColumn *new_column(const Values *v, rt_col_kind kind, const char *name, bool keep_shape) {
    RtColumn *c = rt_build_column(v->b, v->t, kind, name);
    if (c) c->why = v->why;
    if (c && keep_shape && v->a->rank > 1) {
        c->rank = v->a->rank;
        memcpy(c->shape, v->a->shape, sizeof c->shape);
    }
    return c;
}

/* Makes a column of the numbers as they are. */
static gnnc_status store_values(const Values *v, rt_col_kind kind) {
    int n_dims = rt_col_facts[kind].n_dims;
    RtColumn *c = new_column(v, kind, v->name, n_dims != 0);
    if (!c) return v->b->st;
    if (n_dims == 1 && c->rank == 1) c->rank = 2, c->shape[1] = 1;
    return rt_array_as(&v->b->d->pool, v->a, rt_column_kind(kind)->element, v->where, &c->values,
                       v->b->err);
}

/* Whole numbers least..MOST_CATEGORIES of column `at`; floats count when they are whole. */
static gnnc_status store_whole(const Values *v, rt_col_kind kind, const char *name, int64_t at) {
    int64_t least = kind == RT_COL_CLASS ? -1 : 0;
    int32_t *to = RT_NEWN(&v->b->d->pool, int32_t, v->t->count);
    if (!to) return rt_fail_nomem(v->b->err, v->where);
    RtColumn *c = new_column(v, kind, name, false);
    if (!c) return v->b->st;
    for (int64_t r = 0; r < v->t->count; r++) {
        double x = rt_array_f64(v->a, r * v->width + at);
        if (kind == RT_COL_CLASS && isnan(x)) x = -1;
        if (!(x >= (double)least && x < MOST_CATEGORIES) || x != floor(x))
            return bad_row(v, r * v->width,
                           kind == RT_COL_CLASS ? "not a class number" : "not a category number");
        to[r] = (int32_t)x;
        if (to[r] >= c->n_categories) c->n_categories = (int64_t)to[r] + 1;
    }
    c->i32 = to;
    return GNNC_OK;
}

/* Makes categories: one column, or one for each place in a row. */
static gnnc_status store_categories(const Values *v, rt_col_kind kind) {
    gnnc_status st = GNNC_OK;
    if (v->width > 1 && kind == RT_COL_CLASS)
        return rt_fail(v->b->err, GNNC_E_SHAPE, "%s: a class column has one value a row", v->where);
    if (v->width > MOST_COLUMNS)
        return rt_fail(v->b->err, GNNC_E_LIMIT, "%s: at most %d category columns", v->where,
                       MOST_COLUMNS);
    if (v->a->rank == 1 || kind == RT_COL_CLASS) return store_whole(v, kind, v->name, 0);
    for (int64_t k = 0; k < v->width && st == GNNC_OK; k++) {
        char name[128];
        snprintf(name, sizeof name, "%.56s_%lld", v->name, (long long)k);
        st = store_whole(v, kind, name, k);
    }
    return st;
}

/* Makes a column of whole numbers that name rows. */
static gnnc_status store_ids(const Values *v) {
    RtColumn *c = new_column(v, RT_COL_ID, v->name, false);
    if (!c) return v->b->st;
    if (rt_dtype_kind(v->a->dt) == 'f') return bad_row(v, 0, "an id is a whole number");
    c->i64 = rt_array_as_i64(&v->b->d->pool, v->a);
    return c->i64 ? GNNC_OK : rt_fail_nomem(v->b->err, v->where);
}

/* Makes a split of the numbers 0 none, 1 train, 2 validation, 3 test. */
static gnnc_status store_split(const Values *v) {
    RtColumn *c;
    gnnc_status st = rt_build_split(v->b, v->t, 1, &c);
    for (int64_t r = 0; r < v->t->count && st == GNNC_OK; r++) {
        int64_t part = rt_array_i64(v->a, r);
        if (part < 0 || part > 3)
            return bad_row(v, r, "a split is 0 none, 1 train, 2 validation or 3 test");
        if (part) st = rt_build_part(v->b, c, 0, v->where, r, (int)part);
    }
    return st;
}

gnnc_status rt_build_array(RtBuild *b, RtTable *t, const char *name, const char *where,
                           const RtArray *a) {
    Values v = {b, t, name, where, a, 1, NULL};
    if (a->rank < 1 || a->shape[0] != t->count)
        return rt_fail(b->err, GNNC_E_SHAPE, "%s: %lld rows, '%s' has %lld", where,
                       a->rank ? (long long)a->shape[0] : 1, t->name, (long long)t->count);
    for (int i = 1; i < a->rank; i++) v.width *= a->shape[i];
    if (v.width < 1 && a->rank > 1)
        return rt_fail(b->err, GNNC_E_SHAPE, "%s: rows without values", where);
    RtArray flat = *a;
    if (a->rank > 2 && v.width == 1) flat.rank = 2, v.a = &flat;
    rt_col_kind kind = kind_of(&v, &v.why);
    if (rt_col_facts[kind].n_dims == 0 && v.width != 1)
        return rt_fail(b->err, GNNC_E_SHAPE, "%s: a %s column has one value a row", where,
                       rt_col_kind_name(kind));
    switch (kind) {
    case RT_COL_CAT:
    case RT_COL_CLASS:
        return store_categories(&v, kind);
    case RT_COL_ID:
        return store_ids(&v);
    case RT_COL_SPLIT:
        return store_split(&v);
    case RT_COL_CSR:
        return rt_fail(b->err, GNNC_E_ARG, "%s: only stored CSR entries are a csr column", where);
    default:
        return store_values(&v, kind);
    }
}
