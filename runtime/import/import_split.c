#include "import_split.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/number.h"
#include "runtime/exec/rng.h"

/* ---- the request ------------------------------------------------------------------ */
/* Reads "80/10/10" or "0.8/0.1/0.1", which make up all; false: it is none. */
static bool parse_parts(const char *s, double part[3]) {
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        const char *end;
        if (!*s || s[strspn(s, "0123456789./")]) return false;
        part[i] = rt_strtod(s, &end);
        if (end == s || *end != (i < 2 ? '/' : '\0')) return false;
        sum += part[i];
        s = end + 1;
    }
    double whole = sum > 1.5 ? 100 : 1;
    for (int i = 0; i < 3; i++) part[i] /= whole;
    return fabs(sum - whole) < 1e-6 * whole && part[0] > 0;
}

bool rt_split_parse(const char *text, RtSplitHow *how) {
    const char *eq = strchr(text, '=');
    size_t n = eq ? (size_t)(eq - text) : 0;
    if (n >= sizeof how->table || (eq && !n)) return false;
    memcpy(how->table, text, n);
    how->table[n] = 0;
    return parse_parts(eq ? eq + 1 : text, how->part);
}

/* ---- the table -------------------------------------------------------------------- */
const RtColumn *rt_table_label(const RtTable *t) {
    for (int i = 0; i < t->n_columns; i++)
        if (rt_column_is_label(&t->columns[i])) return &t->columns[i];
    return NULL;
}

typedef struct {
    RtDataset *d;
    const RtSplitHow *how;
    RtTable *table;
    int n_found; /* tables that could be meant */
    char found[160];
} Choice;

/* Notes a table that might be split; messages list the first four. */
static void offer(Choice *c, RtTable *t) {
    size_t n = strlen(c->found);
    c->table = t;
    if (c->n_found++ < 4)
        snprintf(c->found + n, sizeof c->found - n, "%s%.36s", n ? ", " : "", t->name);
}

/* Notes the tables that might be split: the named one, else all, or all with labels. */
static void offer_all(Choice *c, RtTable *t, int n, bool labelled) {
    for (int i = 0; i < n; i++)
        if (*c->how->table ? strcmp(t[i].name, c->how->table) == 0
                           : !labelled || rt_table_label(&t[i]))
            offer(c, &t[i]);
}

/* Labels of graphs before those of nodes, which are features there; links where nobody has one. */
static gnnc_status choose_table(Choice *c, RtError *err) {
    RtDataset *d = c->d;
    bool named = *c->how->table;
    offer_all(c, d->graphs, d->n_graphs, true);
    if (named || !c->n_found) offer_all(c, d->nodes, d->n_nodes, true);
    if (named || !c->n_found) offer_all(c, d->edges, d->n_edges, false);
    if (c->n_found == 1) return GNNC_OK;
    if (named) return rt_fail(err, GNNC_E_ARG, "--split: there is no table '%s'", c->how->table);
    if (!c->n_found)
        return rt_fail(err, GNNC_E_ARG, "--split: no table has labels, and there are no edges");
    return rt_fail(err, GNNC_E_ARG, "--split: of which table? %.120s: --split TABLE=80/10/10",
                   c->found);
}

/* ---- keys: what the rows are sorted by ---------------------------------------------- */
/* Has the row no known label? */
static bool is_unlabelled(const RtColumn *c, int64_t row) {
    int64_t width = c->rank > 1 ? c->shape[1] : 1;
    if (c->kind == RT_COL_CLASS) return c->i32[row] < 0;
    for (int64_t i = 0; c->kind == RT_COL_MULTILABEL && i < width; i++)
        if (!isnan(c->f32[row * width + i])) return false;
    return c->kind == RT_COL_MULTILABEL;
}

double rt_split_chance(uint64_t seed, uint64_t what) {
    return (double)(rt_splitmix64(rt_splitmix64(seed) ^ what) >> 11) * 0x1p-53;
}

/* The pair of nodes that an edge joins, by which it is split: an edge, its double and the one that
 * goes back are one, as a part that has one of them tells all. */
static uint64_t pair_of(const RtTable *t, int64_t e) {
    uint32_t a = (uint32_t)t->src[e], b = (uint32_t)t->dst[e];
    if (t->src_type == t->dst_type && a > b) return (uint64_t)b << 32 | a;
    return (uint64_t)a << 32 | b;
}

/* The time column by which a table is split; NULL: the error says why there is none. */
static const RtColumn *time_of(const RtTable *t, const char *name, RtError *err) {
    const RtColumn *c = rt_table_column(t, name);
    if (c && c->kind == RT_COL_TIME) return c;
    if (c)
        rt_fail(err, GNNC_E_ARG,
                "--by-time: column '%s' of '%s' is no time; --kind %s.%s=time if it is", name,
                t->name, t->name, name);
    else
        rt_fail(err, GNNC_E_ARG, "--by-time: '%s' has no column '%s'", t->name, name);
    return NULL;
}

/* A number for each row, by which rows are sorted: its time, or chance. Rows without a label have
 * none (NaN). */
static void make_keys(const RtTable *t, const RtColumn *time, uint64_t seed, double *key) {
    const RtColumn *label = t->src ? NULL : rt_table_label(t);
    for (int64_t i = 0; i < t->count; i++) {
        key[i] = time ? time->f64[i] : rt_split_chance(seed, t->src ? pair_of(t, i) : (uint64_t)i);
        if (label && is_unlabelled(label, i)) key[i] = NAN;
    }
}

typedef struct {
    double key;
    int32_t row;
} Keyed;

/* Sorts rows by key, those of one key by number. */
static int by_key(const void *x, const void *y) {
    const Keyed *a = x, *b = y;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Rows that have a key, ascending; returns how many. */
static int64_t sort_rows(const double *key, int64_t n_rows, Keyed *to, int32_t *order) {
    int64_t n = 0;
    for (int64_t i = 0; i < n_rows; i++)
        if (!isnan(key[i])) to[n++] = (Keyed){key[i], (int32_t)i};
    if (n) qsort(to, (size_t)n, sizeof *to, by_key);
    for (int64_t i = 0; i < n; i++) order[i] = to[i].row;
    return n;
}

int64_t rt_split_cut(const int32_t *order, const double *key, int64_t n, int64_t least, double at) {
    int64_t i = (int64_t)floor(at + 0.5), from, to;
    if (i <= least) return least;
    if (i >= n) return n;
    for (from = i; from > least && key[order[from - 1]] == key[order[i]];) from--;
    for (to = i; to < n && key[order[to]] == key[order[i]];) to++;
    return i - from <= to - i ? from : to;
}

/* ---- the column --------------------------------------------------------------------- */
/* The table's split column, which is added if there is none; NULL: no memory. */
static RtColumn *split_column(RtDataset *d, RtTable *t) {
    RtColumn *c = (RtColumn *)(uintptr_t)rt_table_column(t, "split");
    if (c) return c;
    RtColumn *more = RT_NEWN(&d->pool, RtColumn, t->n_columns + 1);
    if (!more) return NULL;
    if (t->n_columns) memcpy(more, t->columns, (size_t)t->n_columns * sizeof *more);
    t->columns = more;
    return &more[t->n_columns++];
}

/* Says in the schema how the split was made. */
static const char *reason(RtPool *pool, const RtSplitHow *h, const RtColumn *time,
                          const int32_t *order, const int64_t cut[2], int64_t n) {
    if (!time) return rt_pool_printf(pool, "--split, seed %llu", (unsigned long long)h->seed);
    return rt_pool_printf(pool, "--split by %s: train before %.15g, validation before %.15g",
                          time->name, time->f64[order[cut[0] < n ? cut[0] : n - 1]],
                          time->f64[order[cut[1] < n ? cut[1] : n - 1]]);
}

/* Puts sorted rows into the three parts by their shares, and makes the split column. */
static gnnc_status assign(RtDataset *d, RtTable *t, const RtSplitHow *h, const RtColumn *time,
                          const int32_t *order, const double *key, int64_t n, RtError *err) {
    int64_t cut[2];
    cut[0] = rt_split_cut(order, key, n, 0, h->part[0] * (double)n);
    cut[1] = rt_split_cut(order, key, n, cut[0], (h->part[0] + h->part[1]) * (double)n);
    const int64_t has[3] = {cut[0], cut[1] - cut[0], n - cut[1]};
    for (int i = 0; i < 3; i++)
        if (h->part[i] > 0 && has[i] == 0)
            return rt_fail(err, GNNC_E_RANGE,
                           "--split: '%s' has %lld rows to split%s: %g/%g/%g leaves a part empty",
                           t->name, (long long)n,
                           time ? " by time, those of one time together" : "", 100 * h->part[0],
                           100 * h->part[1], 100 * h->part[2]);
    int8_t *to = rt_pool_alloc(&d->pool, (size_t)t->count, 1);
    const char *why = reason(&d->pool, h, time, order, cut, n);
    RtColumn *c = to && why ? split_column(d, t) : NULL;
    if (!c) return rt_fail_nomem(err, t->name);
    for (int64_t i = 0; i < n; i++) to[order[i]] = (int8_t)(1 + (i >= cut[0]) + (i >= cut[1]));
    *c = (RtColumn){.name = "split",
                    .kind = RT_COL_SPLIT,
                    .n_rows = t->count,
                    .rank = 1,
                    .shape = {t->count},
                    .n_splits = 1,
                    .splits = to,
                    .why = why};
    return GNNC_OK;
}

gnnc_status rt_import_split(RtDataset *d, const RtSplitHow *how, RtError *err) {
    Choice c = {.d = d, .how = how};
    RtPool pool;
    gnnc_status st = choose_table(&c, err);
    if (st != GNNC_OK) return st;
    RtTable *t = c.table;
    if (!how->replace && rt_table_column(t, "split"))
        return rt_fail(err, GNNC_E_STATE,
                       "--split: '%s' has a split; --replace-split makes another", t->name);
    const RtColumn *time = how->by_time ? time_of(t, how->by_time, err) : NULL;
    if (how->by_time && !time) return GNNC_E_ARG;
    rt_pool_init(&pool, &d->pool.from);
    double *key = RT_NEWN(&pool, double, t->count);
    int32_t *order = RT_NEWN(&pool, int32_t, t->count);
    Keyed *sorted = RT_NEWN(&pool, Keyed, t->count);
    if (key && order && sorted) {
        make_keys(t, time, how->seed, key);
        st = assign(d, t, how, time, order, key, sort_rows(key, t->count, sorted, order), err);
    } else {
        st = rt_fail_nomem(err, t->name);
    }
    rt_pool_free(&pool);
    return st;
}
