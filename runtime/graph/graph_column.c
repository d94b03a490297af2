/* Columns of the caller's arrays: each kind in its element type, checked as a file's are. */
#include <math.h>
#include <string.h>

#include "graph.h"
#include "runtime/data/names.h"

/* gnnc_kind is contract.def's, in the same order. */
#define COLUMN(id, rt_id, word, said, size, dt, n_dims, codes, rule)                               \
    _Static_assert((int)GNNC_##id == (int)rt_id, word);
#include "runtime/contract.def"

gnnc_status rt_graph_names(gnnc_graph *g, const char *where, const char *const *names, int64_t n,
                           const char *const **out) {
    RtNames list;
    RtPool *pool = &g->data->pool;
    if (!rt_names_new(pool, &list, n + 1)) return rt_fail_nomem(&g->err, where);
    for (int64_t i = 0; i < n; i++) {
        if (!names[i])
            return rt_fail(&g->err, GNNC_E_ARG, "%s: the name of category %lld is NULL", where,
                           (long long)i);
        char *copy = rt_pool_strndup(pool, names[i], strlen(names[i]));
        if (!copy) return rt_fail_nomem(&g->err, where);
        if (rt_names_add(&list, copy) != i)
            return rt_fail(&g->err, GNNC_E_ARG, "%s: two categories have the name '%.64s'", where,
                           copy);
    }
    *out = list.keys;
    return GNNC_OK;
}

gnnc_status rt_graph_put_column(gnnc_graph *g, RtTable *t, const RtColumn *c) {
    RtPool *pool = &g->data->pool;
    gnnc_status st = rt_column_check(c, t->name, &g->err);
    if (st != GNNC_OK) return st;
    RtColumn *to = (RtColumn *)(uintptr_t)rt_table_column(t, c->name);
    const char *name = to ? to->name : rt_pool_strndup(pool, c->name, strlen(c->name));
    if (!to && name) to = rt_table_add_column(pool, t);
    if (!to) return rt_fail_nomem(&g->err, c->name);
    *to = *c;
    to->name = name;
    g->changed = true;
    return GNNC_OK;
}

/* ---- one call --------------------------------------------------------------------------- */
typedef struct {
    gnnc_graph *g;
    const char *table, *column;
    RtTable *t;
    RtColumn c;
    int64_t n_categories; /* -1 = by the codes */
    const char *const *names;
    int64_t n_columns; /* of stored entries */
    bool has_values;   /* .. or each is 1 */
} Adding;

/* The column's name for messages, "paper.x"; `in` keeps the text. */
static const char *where_of(RtBorrowed *in, const char *table, const char *column) {
    const char *text =
        table && column ? rt_pool_printf(&in->scratch, "%s.%s", table, column) : NULL;
    return text ? text : "a column";
}

/* Finds the table, and begins the column: its name and as many rows as the table. */
static gnnc_status begin(Adding *a) {
    gnnc_graph *g = a->g;
    if (!g || !a->table || !a->column) return rt_graph_null(g, a->table ? "column" : "table");
    gnnc_status st = rt_graph_begin(g);
    if (st != GNNC_OK) return st;
    a->t = rt_graph_table(g, a->table);
    if (!a->t) return GNNC_E_MISSING;
    if (!*a->column)
        return rt_fail(&g->err, GNNC_E_ARG, "%s: a column has a name of at least a letter",
                       a->table);
    a->c.name = a->column;
    a->c.n_rows = a->c.shape[0] = a->t->count;
    a->c.rank = 1;
    return GNNC_OK;
}

/* [rows, ..] as it is given; a row must not have more elements than an index can count. */
static gnnc_status take_shape(Adding *a, const RtBorrowed *x) {
    int64_t width = 1, want[RT_ARRAY_RANK];
    for (int i = 0; i < x->a.rank; i++) want[i] = i ? -1 : a->t->count;
    gnnc_status st = rt_borrowed_shape(a->g, x, x->a.rank, want);
    if (st != GNNC_OK) return st;
    for (int i = 1; i < x->a.rank; i++)
        if (__builtin_mul_overflow(width, x->a.shape[i], &width) || width > INT32_MAX)
            return rt_fail(&a->g->err, GNNC_E_SHAPE, "%s: a row has more than 2^31 - 1 elements",
                           x->where);
    a->c.rank = x->a.rank;
    memcpy(a->c.shape, x->a.shape, sizeof a->c.shape);
    a->c.stored = x->a.dt;
    return GNNC_OK;
}

/* ---- kinds -------------------------------------------------------------------------------- */
/* 16 bits stay so; a column of single numbers is read as f32, too, as a file's is. */
static gnnc_status take_float(Adding *a, RtBorrowed *x) {
    const void *low;
    if (x->a.dt != RT_DT_F16 && x->a.dt != RT_DT_BF16) return rt_borrowed_f32(a->g, x, &a->c.f32);
    gnnc_status st = a->c.rank == 1 ? rt_borrowed_f32(a->g, x, &a->c.f32) : GNNC_OK;
    if (st == GNNC_OK) st = rt_borrowed_keep(a->g, x, RT_ALIGN, &low);
    if (st != GNNC_OK) return st;
    a->c.low = low;
    a->c.low_dt = x->a.dt;
    return GNNC_OK;
}

/* Rows of the kind's element type. */
static gnnc_status take_rows(Adding *a, RtBorrowed *x) {
    bool matrix = rt_col_facts[a->c.kind].n_dims == 1;
    if (matrix && a->c.rank == 1) a->c.rank = 2, a->c.shape[1] = 1;
    return rt_borrowed_as(a->g, x, rt_column_kind(a->c.kind)->element, &a->c.values);
}

/* Whole numbers as floats are codes, too; NaN is no class. */
static gnnc_status real_codes(Adding *a, RtBorrowed *x, const int32_t **out) {
    int32_t *to = RT_NEWN(&a->g->data->pool, int32_t, x->a.count);
    if (!to) return rt_fail_nomem(&a->g->err, x->where);
    for (int64_t i = 0; i < x->a.count; i++) {
        double v = rt_array_f64(&x->a, i);
        if (a->c.kind == RT_COL_CLASS && isnan(v)) v = -1;
        if (!(v >= INT32_MIN && v <= INT32_MAX) || v != floor(v))
            return rt_fail(&a->g->err, GNNC_E_VALUE, "%s: row %lld: %g is no %s", x->where,
                           (long long)rt_borrowed_row(x, i), v,
                           a->c.kind == RT_COL_CLASS ? "class" : "category");
        to[i] = (int32_t)v;
    }
    *out = to;
    return GNNC_OK;
}

/* Takes codes of categories or classes. Without a number of categories it is one more than the
 * greatest code. */
static gnnc_status take_codes(Adding *a, RtBorrowed *x) {
    gnnc_graph *g = a->g;
    gnnc_status st;
    int64_t n = 0;
    if (a->names && a->n_categories < 0)
        return rt_fail(&g->err, GNNC_E_ARG, "%s: names without their number", x->where);
    if (a->n_categories > INT32_MAX)
        return rt_fail(&g->err, GNNC_E_RANGE, "%s: more than 2^31 - 1 categories", x->where);
    if (a->c.kind == RT_COL_CLASS) TRY(st, rt_borrowed_shape(g, x, 1, (int64_t[]){-1}));
    if (rt_dtype_kind(x->a.dt) == 'f')
        TRY(st, real_codes(a, x, &a->c.i32));
    else
        TRY(st, rt_borrowed_i32(g, x, RT_ALIGN, &a->c.i32));
    for (int64_t i = 0; i < x->a.count; i++)
        if (a->c.i32[i] >= n) n = (int64_t)a->c.i32[i] + 1;
    a->c.n_categories = a->n_categories < 0 ? n : a->n_categories;
    if (a->names) st = rt_graph_names(g, x->where, a->names, a->n_categories, &a->c.names);
out:
    return st;
}

/* Takes one number per row. */
static gnnc_status take_scalar(Adding *a, RtBorrowed *x) {
    gnnc_status st = rt_borrowed_shape(a->g, x, 1, (int64_t[]){a->t->count});
    if (st != GNNC_OK) return st;
    a->c.stored = x->a.dt;
    return take_rows(a, x);
}

/* [K, N], or [N] for one split. */
static gnnc_status split_shape(Adding *a, const RtBorrowed *x) {
    int64_t k = x->a.rank == 2 ? x->a.shape[0] : 1, n = a->t->count;
    gnnc_status st = rt_borrowed_integers(a->g, x);
    if (st == GNNC_OK)
        st = rt_borrowed_shape(a->g, x, x->a.rank == 2 ? 2 : 1,
                               x->a.rank == 2 ? (int64_t[]){k, n} : (int64_t[]){n});
    if (st == GNNC_OK && (k < 1 || k > 10000 || (a->c.n_splits && a->c.n_splits != k)))
        st = rt_fail(&a->g->err, GNNC_E_SHAPE, "%s: %lld splits", x->where, (long long)k);
    a->c.n_splits = (int)k;
    a->c.stored = x->a.dt;
    return st;
}

/* Takes splits: 0 none, 1 train, 2 validation, 3 test; anything else is reported later, with its
 * row. */
static gnnc_status take_split(Adding *a, RtBorrowed *x) {
    gnnc_status st = split_shape(a, x);
    const void *p;
    if (st != GNNC_OK) return st;
    if (x->a.dt == RT_DT_I8) {
        st = rt_borrowed_keep(a->g, x, 1, &p);
        a->c.splits = p;
        return st;
    }
    int8_t *to = RT_NEWN(&a->g->data->pool, int8_t, x->a.count);
    if (!to) return rt_fail_nomem(&a->g->err, x->where);
    for (int64_t i = 0; i < x->a.count; i++) {
        int64_t part = rt_array_i64(&x->a, i);
        to[i] = part < 0 || part > 3 ? -1 : (int8_t)part; /* the check reports -1 */
    }
    a->c.splits = to;
    return GNNC_OK;
}

/* Takes a column that has one array, in the way that its kind says. */
static gnnc_status take(Adding *a, RtBorrowed *x) {
    int k = (int)a->c.kind;
    gnnc_status st = rt_borrowed_open(a->g, x);
    if (st != GNNC_OK) return st;
    if (k < 0 || k >= rt_col_kind_words.n || rt_column_kind(a->c.kind)->layout == RT_LAYOUT_CSR)
        return rt_fail(&a->g->err, GNNC_E_ARG, "%s: %d is no kind of column that has one array",
                       x->where, k);
    if (rt_column_kind(a->c.kind)->layout == RT_LAYOUT_SPLITS) return take_split(a, x);
    if (rt_col_facts[k].n_dims == 0) return take_scalar(a, x);
    st = take_shape(a, x);
    if (st != GNNC_OK) return st;
    if (k == RT_COL_FLOAT) return take_float(a, x);
    return rt_col_facts[k].codes ? take_codes(a, x) : take_rows(a, x);
}

gnnc_status rt_graph_add_column(gnnc_graph *g, const char *table, const char *column,
                                gnnc_kind kind, const gnnc_array *values, int64_t n_categories,
                                const char *const *names, bool *kept) {
    Adding a = {.g = g,
                .table = table,
                .column = column,
                .c = {.kind = (rt_col_kind)kind},
                .n_categories = n_categories,
                .names = names};
    RtBorrowed x;
    rt_borrowed_begin(&x, g, values, NULL);
    x.where = where_of(&x, table, column);
    gnnc_status st = begin(&a);
    if (st == GNNC_OK) st = take(&a, &x);
    if (st == GNNC_OK) st = rt_graph_put_column(g, a.t, &a.c);
    x.table = a.t ? a.t->name : NULL;
    *kept = st == GNNC_OK && x.loan;
    rt_borrowed_end(g, &x, st);
    return st;
}

/* Numbers of nodes and of graphs: what indexes, and what is put in another order, the host reads.
 */
static gnnc_status take_there(Adding *a, RtBorrowed *x, gnnc_kind kind, int ordinal) {
    gnnc_graph *g = a->g;
    if (kind != GNNC_COL_FLOAT || a->t->src_type >= 0)
        return rt_fail(
            &g->err, GNNC_E_ARG,
            "%s: in a device's memory there can be columns of numbers of nodes and graphs, "
            "no %s",
            x->where, kind == GNNC_COL_FLOAT ? "columns of edges" : "other kind");
    gnnc_status st = rt_borrowed_to_host(g, x);
    if (st == GNNC_OK) st = take_shape(a, x);
    if (st != GNNC_OK) return st;
    a->c.there = x->a.data;
    a->c.there_on = ordinal;
    if (x->a.count) return GNNC_OK;
    a->c.there = NULL;
    a->c.f32 = RT_NEWN(&g->data->pool, float, 1); /* of no rows */
    return a->c.f32 ? GNNC_OK : rt_fail_nomem(&g->err, x->where);
}

gnnc_status rt_graph_add_there(gnnc_graph *g, const char *table, const char *column, gnnc_kind kind,
                               const gnnc_array *values, int ordinal) {
    Adding a = {.g = g, .table = table, .column = column, .c = {.kind = RT_COL_FLOAT}};
    RtBorrowed x;
    rt_borrowed_begin(&x, g, values, NULL);
    x.where = where_of(&x, table, column);
    gnnc_status st = begin(&a);
    if (st == GNNC_OK) st = take_there(&a, &x, kind, ordinal);
    if (st == GNNC_OK) st = rt_graph_put_column(g, a.t, &a.c);
    x.table = a.t ? a.t->name : NULL;
    rt_borrowed_end(g, &x, st);
    return st;
}

gnnc_status gnnc_graph_add_column(gnnc_graph *g, const char *table, const char *column,
                                  gnnc_kind kind, const gnnc_array *values, int64_t n_categories,
                                  const char *const *names) {
    bool kept;
    return rt_graph_add_column(g, table, column, kind, values, n_categories, names, &kept);
}

/* Adds a column of three arrays, by `take`. */
static gnnc_status add_three(Adding *a, const gnnc_array *in[3],
                             gnnc_status (*take)(Adding *a, RtBorrowed x[3])) {
    RtBorrowed x[3];
    for (int i = 0; i < 3; i++) {
        rt_borrowed_begin(&x[i], a->g, in[i], NULL);
        x[i].where = where_of(&x[i], a->table, a->column);
    }
    gnnc_status st = begin(a);
    if (st == GNNC_OK) st = take(a, x);
    if (st == GNNC_OK) st = rt_graph_put_column(a->g, a->t, &a->c);
    for (int i = 0; i < 3; i++) {
        x[i].table = a->t ? a->t->name : NULL;
        rt_borrowed_end(a->g, &x[i], st);
    }
    return st;
}

/* ---- stored entries ------------------------------------------------------------------------- */
/* Gives each of n stored entries the value 1. */
static gnnc_status ones(Adding *a, int64_t n) {
    float *to = RT_NEWN(&a->g->data->pool, float, n);
    if (!to) return rt_fail_nomem(&a->g->err, a->column);
    for (int64_t i = 0; i < n; i++) to[i] = 1;
    a->c.csr.val = to;
    return GNNC_OK;
}

/* Takes a sparse column of three arrays: bounds, columns and values; without values each is 1. */
static gnnc_status take_csr(Adding *a, RtBorrowed x[3]) {
    gnnc_graph *g = a->g;
    RtCsr *m = &a->c.csr;
    gnnc_status st;
    if (a->n_columns < 0 || a->n_columns > INT32_MAX)
        return rt_fail(&g->err, GNNC_E_RANGE, "%s: %lld columns: 0 to 2^31 - 1 are possible",
                       x->where, (long long)a->n_columns);
    a->c.rank = 2;
    a->c.shape[1] = a->n_columns;
    for (int i = 0; i < (a->has_values ? 3 : 2); i++) TRY(st, rt_borrowed_open(g, &x[i]));
    TRY(st, rt_borrowed_shape(g, &x[0], 1, (int64_t[]){a->t->count + 1}));
    TRY(st, rt_borrowed_shape(g, &x[1], 1, (int64_t[]){-1}));
    *m = (RtCsr){.n_rows = a->t->count, .n_cols = a->n_columns, .nnz = x[1].a.count};
    TRY(st, rt_borrowed_i64(g, &x[0], &m->ptr));
    TRY(st, rt_borrowed_i32(g, &x[1], RT_ALIGN, &m->col));
    if (!a->has_values) return ones(a, m->nnz);
    TRY(st, rt_borrowed_shape(g, &x[2], 1, (int64_t[]){m->nnz}));
    a->c.stored = x[2].a.dt;
    st = rt_borrowed_f32(g, &x[2], &m->val);
out:
    return st;
}

gnnc_status gnnc_graph_add_csr(gnnc_graph *g, const char *table, const char *column,
                               int64_t n_columns, const gnnc_array *ptr, const gnnc_array *idx,
                               const gnnc_array *val) {
    Adding a = {.g = g,
                .table = table,
                .column = column,
                .c = {.kind = RT_COL_CSR, .stored = RT_DT_F32},
                .n_columns = n_columns,
                .has_values = val != NULL};
    return add_three(&a, (const gnnc_array *[]){ptr, idx, val}, take_csr);
}

/* ---- masks -------- */
/* Makes one split of masks for train, validation and test. */
static gnnc_status take_masks(Adding *a, RtBorrowed x[3]) {
    gnnc_status st = GNNC_OK;
    int8_t *to = NULL;
    for (int i = 0; i < 3; i++) {
        TRY(st, rt_borrowed_open(a->g, &x[i]));
        TRY(st, split_shape(a, &x[i]));
        if (!to) to = RT_NEWN(&a->g->data->pool, int8_t, x[i].a.count);
        if (!to) return rt_fail_nomem(&a->g->err, x[i].where);
        TRY(st, rt_split_mask(to, &x[i].a, i + 1, a->t->count, x[i].where, &a->g->err));
    }
    a->c.splits = to;
out:
    return st;
}

gnnc_status gnnc_graph_add_masks(gnnc_graph *g, const char *table, const char *column,
                                 const gnnc_array *train, const gnnc_array *validation,
                                 const gnnc_array *test) {
    Adding a = {.g = g, .table = table, .column = column, .c = {.kind = RT_COL_SPLIT}};
    return add_three(&a, (const gnnc_array *[]){train, validation, test}, take_masks);
}
