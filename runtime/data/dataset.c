/* Data sets in memory: lookup, the checks that later code relies on, and
 * columns in other orders. */
#include "dataset.h"

#include <math.h>
#include <string.h>

#include "runtime/contract.h"
#include "runtime/exec/round_16.h"

enum {
    CONVERTED = 1 << 12, /* numbers converted at a time */
    ALONE = 1 << 16      /* fewer than these are not worth waking others */
};

const char *rt_col_kind_name(rt_col_kind k) {
    return rt_col_kind_words.word[k];
}

bool rt_col_kind_find(const char *name, rt_col_kind *out) {
    for (int k = 0; k < rt_col_kind_words.n; k++) {
        if (strcmp(rt_col_kind_words.word[k], name) != 0) continue;
        *out = (rt_col_kind)k;
        return true;
    }
    return false;
}

RtDataset *rt_dataset_new(const RtAlloc *from) {
    RtPool pool;
    rt_pool_init(&pool, from);
    RtDataset *d = RT_NEW(&pool, RtDataset); /* inside its own pool */
    if (!d) return NULL;
    d->name = d->source = d->licence = "";
    d->pool = pool;
    return d;
}

void rt_dataset_close(RtDataset *d) {
    if (!d) return;
    RtPool pool = d->pool; /* d itself goes away with it */
    rt_pool_free(&pool);
}

/* ---- views ---------------------------------------------------------------- */
static RtTable *view_tables(RtPool *pool, const RtTable *t, int n) {
    RtTable *to = RT_NEWN(pool, RtTable, n);
    for (int i = 0; i < n && to; i++) {
        to[i] = t[i];
        to[i].room = 0;
        to[i].columns = RT_NEWN(pool, RtColumn, t[i].n_columns);
        if (!to[i].columns) return NULL;
        if (t[i].n_columns)
            memcpy(to[i].columns, t[i].columns, (size_t)t[i].n_columns * sizeof *t[i].columns);
    }
    return to;
}

RtDataset *rt_dataset_view(const RtAlloc *from, const RtDataset *of) {
    RtDataset *d = rt_dataset_new(from);
    if (!d) return NULL;
    RtPool pool = d->pool;
    *d = *of;
    d->pool = pool;
    d->of = of;
    d->nodes = view_tables(&d->pool, of->nodes, of->n_nodes);
    d->edges = view_tables(&d->pool, of->edges, of->n_edges);
    d->graphs = view_tables(&d->pool, of->graphs, of->n_graphs);
    if (d->nodes && d->edges && d->graphs) return d;
    rt_dataset_close(d);
    return NULL;
}

void rt_dataset_drop_edges(RtDataset *d) {
    for (int i = 0; i < d->n_edges; i++) {
        rt_pool_drop(&d->pool, d->edges[i].src); /* both ends, of a file */
        d->edges[i].src = d->edges[i].dst = NULL;
    }
}

bool rt_dataset_maps(const RtDataset *d, const void *p) {
    return rt_pool_maps(&d->pool, p) || (d->of && rt_pool_maps(&d->of->pool, p));
}

/* ---- lookup ---------------------------------------------------------------- */
static const RtTable *find(const RtTable *t, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(t[i].name, name) == 0) return &t[i];
    return NULL;
}

const RtTable *rt_dataset_nodes(const RtDataset *d, const char *name) {
    return find(d->nodes, d->n_nodes, name);
}
const RtTable *rt_dataset_edges(const RtDataset *d, const char *name) {
    return find(d->edges, d->n_edges, name);
}
const RtTable *rt_dataset_graphs(const RtDataset *d, const char *name) {
    return find(d->graphs, d->n_graphs, name);
}

const RtColumn *rt_table_column(const RtTable *t, const char *name) {
    for (int i = 0; i < t->n_columns; i++)
        if (strcmp(t->columns[i].name, name) == 0) return &t->columns[i];
    return NULL;
}

const RtColumn *rt_table_time(const RtTable *t) {
    for (int i = 0; t && i < t->n_columns; i++)
        if (t->columns[i].kind == RT_COL_TIME) return &t->columns[i];
    return NULL;
}

RtColumn *rt_table_add_column(RtPool *pool, RtTable *t) {
    int n = t->n_columns, room = n < 4 ? 4 : 2 * n;
    if (n >= t->room) {
        RtColumn *more = RT_NEWN(pool, RtColumn, room);
        if (!more) return NULL;
        if (n) memcpy(more, t->columns, (size_t)n * sizeof *more);
        t->columns = more;
        t->room = room;
    }
    return &t->columns[t->n_columns++];
}

gnnc_status rt_split_mask(int8_t *splits, const RtArray *a, int part, int64_t n_rows,
                          const char *where, RtError *err) {
    for (int64_t i = 0; i < a->count; i++) {
        if (rt_array_i64(a, i) == 0) continue;
        if (splits[i])
            return rt_fail(err, GNNC_E_RANGE, "%s: row %lld is in two parts of split %lld", where,
                           (long long)(i % n_rows), (long long)(i / n_rows));
        splits[i] = (int8_t)part;
    }
    return GNNC_OK;
}

/* ---- checks --------------------------------------------------------------- */
typedef struct {
    const RtColumn *c;
    const char *table;
    RtError *err;
} Check;

static gnnc_status bad_row(const Check *k, gnnc_status st, int64_t row, const char *what) {
    return rt_fail(k->err, st, "%s.%s: row %lld: %s", k->table, k->c->name, (long long)row, what);
}

static int64_t width(const RtColumn *c) {
    int64_t w = 1;
    for (int i = 1; i < c->rank; i++) w *= c->shape[i];
    return w;
}

/* x - x is 0 exactly for finite x; a sum over a block vectorises and rounds to
 * nothing else, so only a bad block is looked at element by element. */
static int64_t first_not_finite(const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 1024) {
        int64_t end = n - i < 1024 ? n : i + 1024;
        float sum = 0;
        for (int64_t j = i; j < end; j++) sum += x[j] - x[j];
        if (sum == 0) continue;
        for (int64_t j = i; j < end; j++)
            if (!isfinite(x[j])) return j;
    }
    return -1;
}

/* All bits of the exponent are set: infinite, or NaN. */
static gnnc_status check_low(const Check *k, int64_t n, int64_t per_row) {
    const RtColumn *c = k->c;
    bool bf16 = c->low_dt == RT_DT_BF16;
    uint16_t top = bf16 ? 0x7f80 : 0x7c00, below = bf16 ? 0x7f : 0x3ff;
    for (int64_t i = 0; i < n; i++)
        if ((c->low[i] & top) == top)
            return bad_row(k, GNNC_E_VALUE, i / per_row,
                           c->low[i] & below ? "value is NaN" : "value is infinite");
    return GNNC_OK;
}

static gnnc_status check_finite(const Check *k, const float *x, int64_t n, int64_t per_row) {
    int64_t i = first_not_finite(x, n);
    if (i < 0) return GNNC_OK;
    return bad_row(k, GNNC_E_VALUE, i / per_row,
                   isnan(x[i]) ? "value is NaN" : "value is infinite");
}

static gnnc_status check_multilabel(const Check *k) {
    int64_t w = width(k->c), n = k->c->n_rows * w;
    for (int64_t i = 0; i < n; i++)
        if (isinf(k->c->f32[i])) return bad_row(k, GNNC_E_VALUE, i / w, "value is infinite");
    return GNNC_OK;
}

static gnnc_status check_categories(const Check *k) {
    const RtColumn *c = k->c;
    int64_t w = width(c), n = c->n_rows * w;
    int32_t low = c->kind == RT_COL_CLASS ? -1 : 0;
    for (int64_t i = 0; i < n; i++) {
        if (c->i32[i] >= low && c->i32[i] < c->n_categories) continue;
        return rt_fail(k->err, GNNC_E_RANGE, "%s.%s: row %lld: %d is no %s of %lld", k->table,
                       c->name, (long long)(i / w), c->i32[i],
                       c->kind == RT_COL_CLASS ? "class" : "category", (long long)c->n_categories);
    }
    return GNNC_OK;
}

static gnnc_status check_split(const Check *k) {
    const RtColumn *c = k->c;
    for (int64_t i = 0; i < c->n_splits * c->n_rows; i++)
        if (c->splits[i] < 0 || c->splits[i] > 3)
            return bad_row(k, GNNC_E_RANGE, i % c->n_rows,
                           "a split is 0 none, 1 train, 2 validation or 3 test");
    return GNNC_OK;
}

static gnnc_status check_time(const Check *k) {
    for (int64_t i = 0; i < k->c->n_rows; i++)
        if (isinf(k->c->f64[i])) return bad_row(k, GNNC_E_VALUE, i, "time is infinite");
    return GNNC_OK;
}

static gnnc_status check_csr(const Check *k) {
    const RtCsr *m = &k->c->csr;
    if (m->n_cols > INT32_MAX || m->nnz > INT32_MAX)
        return bad_row(k, GNNC_E_RANGE, 0, "more than 2^31 - 1 columns or stored entries");
    if (m->ptr[0] != 0) return bad_row(k, GNNC_E_FORMAT, 0, "row pointers must start at 0");
    for (int64_t r = 0; r < m->n_rows; r++) {
        if (m->ptr[r + 1] < m->ptr[r] || m->ptr[r + 1] > m->nnz)
            return bad_row(k, GNNC_E_FORMAT, r, "row pointers must ascend and stay inside");
        int32_t last = -1;
        for (int64_t e = m->ptr[r]; e < m->ptr[r + 1]; last = m->col[e++]) {
            if (m->col[e] < 0 || m->col[e] >= m->n_cols)
                return bad_row(k, GNNC_E_RANGE, r, "column index out of range");
            if (m->col[e] <= last)
                return bad_row(k, GNNC_E_FORMAT, r, "column indices must ascend");
        }
    }
    if (m->ptr[m->n_rows] != m->nnz)
        return rt_fail(k->err, GNNC_E_FORMAT, "%s.%s: row pointers end at %lld of %lld entries",
                       k->table, k->c->name, (long long)m->ptr[m->n_rows], (long long)m->nnz);
    int64_t i = first_not_finite(m->val, m->nnz), row = 0;
    if (i < 0) return GNNC_OK;
    while (m->ptr[row + 1] <= i) row++;
    return bad_row(k, GNNC_E_VALUE, row, isnan(m->val[i]) ? "value is NaN" : "value is infinite");
}

gnnc_status rt_column_check(const RtColumn *c, const char *where, RtError *err) {
    Check k = {c, where, err};
    if ((c->kind == RT_COL_TIME || c->kind == RT_COL_ID) && c->rank != 1)
        return rt_fail(err, GNNC_E_SHAPE, "%s.%s: a %s column has no further dimension", where,
                       c->name, rt_col_kind_words.word[c->kind]);
    switch (c->kind) {
    case RT_COL_FLOAT:
        if (!c->f32) return check_low(&k, c->n_rows * width(c), width(c));
        return check_finite(&k, c->f32, c->n_rows * width(c), width(c));
    case RT_COL_CSR:
        return check_csr(&k);
    case RT_COL_CAT:
    case RT_COL_CLASS:
        return check_categories(&k);
    case RT_COL_MULTILABEL:
        return check_multilabel(&k);
    case RT_COL_TIME:
        return check_time(&k);
    case RT_COL_ID:
        return GNNC_OK;
    case RT_COL_SPLIT:
        return check_split(&k);
    }
    return GNNC_OK;
}

static gnnc_status check_graph_ptr(const RtDataset *d, const RtTable *t, RtError *err) {
    const RtTable *g = &d->graphs[t->graph];
    for (int64_t i = 0; i < g->count; i++)
        if (t->graph_ptr[i + 1] < t->graph_ptr[i])
            return rt_fail(err, GNNC_E_FORMAT, "%s: graph %lld: graph pointers must ascend",
                           t->name, (long long)i);
    if (t->graph_ptr[0] == 0 && t->graph_ptr[g->count] == t->count) return GNNC_OK;
    return rt_fail(err, GNNC_E_FORMAT, "%s: graph pointers must run from 0 to %lld", t->name,
                   (long long)t->count);
}

gnnc_status rt_dataset_check_ends(const RtDataset *d, const RtTable *t, RtError *err) {
    int64_t n_src = d->nodes[t->src_type].count, n_dst = d->nodes[t->dst_type].count;
    for (int64_t e = 0; e < t->count; e++) {
        bool src_bad = t->src[e] < 0 || t->src[e] >= n_src;
        if (!src_bad && t->dst[e] >= 0 && t->dst[e] < n_dst) continue;
        const RtTable *end = &d->nodes[src_bad ? t->src_type : t->dst_type];
        return rt_fail(err, GNNC_E_RANGE, "%s: edge %lld: %s %d is no '%s' node: there are %lld",
                       t->name, (long long)e, src_bad ? "source" : "destination",
                       src_bad ? t->src[e] : t->dst[e], end->name, (long long)end->count);
    }
    return GNNC_OK;
}

gnnc_status rt_dataset_check(const RtDataset *d, RtError *err) {
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < d->n_nodes && st == GNNC_OK; i++)
        if (d->nodes[i].graph >= 0) st = check_graph_ptr(d, &d->nodes[i], err);
    for (int i = 0; i < d->n_edges && st == GNNC_OK; i++)
        st = rt_dataset_check_ends(d, &d->edges[i], err);
    return st;
}

/* ---- element types ---------------------------------------------------------- */
typedef struct {
    const RtColumn *from;
    int64_t n;
    rt_dtype type;
    float *f32; /* where it goes: one of both */
    uint16_t *low;
} Conversion;

static rt_dtype low_type(const RtColumn *c) {
    return c->low_dt == RT_DT_BF16 ? RT_BF16 : RT_F16;
}

/* One type of 16 bits as the other goes through f32, which holds both. */
static void convert(const Conversion *v, int64_t lo, int64_t n) {
    const RtColumn *c = v->from;
    float some[CONVERTED], *made = v->f32 ? v->f32 + lo : some;
    if (!c->f32) rt_to_f32(low_type(c), made, c->low + lo, n);
    if (v->low) rt_from_f32(v->type, v->low + lo, c->f32 ? c->f32 + lo : made, n);
}

static void convert_share(void *arg, int member, int n_members) {
    const Conversion *v = arg;
    int64_t pieces = (v->n + CONVERTED - 1) / CONVERTED;
    int64_t end = pieces * (member + 1) / n_members * CONVERTED;
    if (end > v->n) end = v->n;
    for (int64_t i = pieces * member / n_members * CONVERTED; i < end; i += CONVERTED)
        convert(v, i, end - i < CONVERTED ? end - i : CONVERTED);
}

gnnc_status rt_column_as(RtPool *pool, RtTeam *team, const RtColumn *c, rt_dtype t,
                         const RtColumn **out, RtError *err) {
    bool wide = t == RT_F32, is_low = !wide && c->low && low_type(c) == t;
    *out = c;
    if (c->kind != RT_COL_FLOAT || (wide && c->f32) || (is_low && !c->f32)) return GNNC_OK;
    Conversion v = {.from = c, .n = c->n_rows * width(c), .type = t};
    RtColumn *y = RT_NEW(pool, RtColumn);
    if (!y) return rt_fail_nomem(err, c->name);
    *y = *c;
    *out = y;
    y->f32 = NULL;
    if (is_low) return GNNC_OK; /* a head without the f32 */
    y->low_dt = t == RT_BF16 ? RT_DT_BF16 : RT_DT_F16;
    y->f32 = v.f32 = wide ? RT_NEWN(pool, float, v.n) : NULL;
    y->low = v.low = wide ? NULL : RT_NEWN(pool, uint16_t, v.n);
    if (!v.f32 && !v.low) return rt_fail_nomem(err, c->name);
    rt_team_run(v.n < ALONE ? NULL : team, convert_share, &v);
    return GNNC_OK;
}

/* ---- columns in other orders ------------------------------------------------ */
static const void *take_rows(RtPool *pool, const void *x, size_t row_bytes, const int32_t *idx,
                             int64_t n) {
    char *to = rt_pool_alloc(pool, (size_t)n, row_bytes);
    for (int64_t i = 0; to && i < n; i++)
        memcpy(to + (size_t)i * row_bytes, (const char *)x + (size_t)idx[i] * row_bytes, row_bytes);
    return to;
}

static bool take_csr(RtPool *pool, const RtCsr *m, const int32_t *idx, int64_t n, RtCsr *out) {
    int64_t *ptr = RT_NEWN(pool, int64_t, n + 1);
    if (!ptr) return false;
    for (int64_t i = 0; i < n; i++) ptr[i + 1] = ptr[i] + m->ptr[idx[i] + 1] - m->ptr[idx[i]];
    int32_t *col = RT_NEWN(pool, int32_t, ptr[n]);
    float *val = RT_NEWN(pool, float, ptr[n]);
    if (!col || !val) return false;
    for (int64_t i = 0; i < n; i++) {
        size_t k = (size_t)(ptr[i + 1] - ptr[i]);
        memcpy(col + ptr[i], m->col + m->ptr[idx[i]], k * sizeof *col);
        memcpy(val + ptr[i], m->val + m->ptr[idx[i]], k * sizeof *val);
    }
    *out = (RtCsr){n, m->n_cols, ptr[n], ptr, col, val};
    return true;
}

static bool take_splits(RtPool *pool, const RtColumn *c, const int32_t *idx, int64_t n,
                        RtColumn *out) {
    int8_t *to = rt_pool_alloc(pool, (size_t)c->n_splits, (size_t)n);
    out->splits = to;
    for (int k = 0; to && k < c->n_splits; k++)
        for (int64_t i = 0; i < n; i++) to[k * n + i] = c->splits[k * c->n_rows + idx[i]];
    return to;
}

gnnc_status rt_column_take(RtPool *pool, const RtColumn *c, const int32_t *idx, int64_t n,
                           RtColumn *out, RtError *err) {
    size_t w = (size_t)width(c);
    bool ok = true;
    *out = *c;
    out->n_rows = out->shape[0] = n;
    switch (c->kind) {
    case RT_COL_FLOAT:
    case RT_COL_MULTILABEL:
        if (c->f32) out->low = NULL;
        ok = c->f32 ? (bool)(out->f32 = take_rows(pool, c->f32, w * 4, idx, n))
                    : (bool)(out->low = take_rows(pool, c->low, w * 2, idx, n));
        break;
    case RT_COL_CAT:
    case RT_COL_CLASS:
        ok = (out->i32 = take_rows(pool, c->i32, w * 4, idx, n));
        break;
    case RT_COL_TIME:
        ok = (out->f64 = take_rows(pool, c->f64, 8, idx, n));
        break;
    case RT_COL_ID:
        ok = (out->i64 = take_rows(pool, c->i64, 8, idx, n));
        break;
    case RT_COL_CSR:
        ok = take_csr(pool, &c->csr, idx, n, &out->csr);
        break;
    case RT_COL_SPLIT:
        ok = take_splits(pool, c, idx, n, out);
        break;
    }
    return ok ? GNNC_OK : rt_fail_nomem(err, c->name);
}

gnnc_status rt_column_split(RtPool *pool, const RtColumn *c, int k, const int32_t **out,
                            RtError *err) {
    if (k < 0 || k >= c->n_splits)
        return rt_fail(err, GNNC_E_RANGE, "split %d: column '%s' has splits 0 to %d", k, c->name,
                       c->n_splits - 1);
    int32_t *to = RT_NEWN(pool, int32_t, c->n_rows);
    if (!to) return rt_fail_nomem(err, c->name);
    for (int64_t i = 0; i < c->n_rows; i++) to[i] = c->splits[k * c->n_rows + i];
    *out = to;
    return GNNC_OK;
}

gnnc_status rt_table_graph_of(RtPool *pool, const RtTable *nodes, int64_t n_graphs,
                              const int32_t **out, RtError *err) {
    int32_t *to = RT_NEWN(pool, int32_t, nodes->count);
    if (!to) return rt_fail_nomem(err, nodes->name);
    for (int64_t g = 0; g < n_graphs; g++)
        for (int64_t i = nodes->graph_ptr[g]; i < nodes->graph_ptr[g + 1]; i++) to[i] = (int32_t)g;
    *out = to;
    return GNNC_OK;
}
