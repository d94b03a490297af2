/* Data sets in memory: lookup, and the checks of tables that later code relies on. */
#include "dataset.h"

#include <string.h>

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
/* Copies the tables and their lists of columns; names and values are shared. NULL: no memory. */
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
    for (; d; d = d->of)
        if (rt_pool_maps(&d->pool, p)) return true;
    return false;
}

void rt_dataset_forget_pages(const RtDataset *d) {
    for (; d; d = d->of) rt_pool_forget_pages(&d->pool);
}

/* ---- lookup ---------------------------------------------------------------- */
/* The table of that name; NULL: there is none. */
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

/* The column of that name; NULL: there is none. */
const RtColumn *rt_table_column(const RtTable *t, const char *name) {
    for (int i = 0; i < t->n_columns; i++)
        if (strcmp(t->columns[i].name, name) == 0) return &t->columns[i];
    return NULL;
}

const RtColumn *rt_table_time(const RtTable *t) {
    if (t && t->time) return *t->time ? rt_table_column(t, t->time) : NULL;
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
/* Do the bounds of graphs ascend over all nodes of the table? */
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

/* Do bounds of n pieces ascend from 0 to `end`? */
static bool ascends(const int64_t *ptr, int64_t n, int64_t end) {
    for (int64_t i = 0; i < n; i++)
        if (ptr[i + 1] < ptr[i]) return false;
    return ptr[0] == 0 && ptr[n] == end;
}

/* Each row came from one of its own. */
static gnnc_status check_part_rows(const RtAlloc *from, const RtTable *t, RtError *err) {
    RtPool pool;
    rt_pool_init(&pool, from);
    uint8_t *seen = RT_NEWN(&pool, uint8_t, t->count / 8 + 1);
    gnnc_status st = seen ? GNNC_OK : rt_fail_nomem(err, t->name);
    for (int64_t i = 0; i < t->count && st == GNNC_OK; i++) {
        int32_t row = t->part_rows[i];
        bool in = row >= 0 && row < t->count;
        if (!in || seen[row / 8] >> row % 8 & 1)
            st = rt_fail(err, GNNC_E_RANGE, "%s: part_rows: row %lld was row %d, which %s", t->name,
                         (long long)i, row, in ? "another was, too" : "there is none of");
        else
            seen[row / 8] |= (uint8_t)(1 << row % 8);
    }
    rt_pool_free(&pool);
    return st;
}

/* Are the table's parts sound: as many as other tables have, with bounds that ascend, and no graph
 * cut in two? */
static gnnc_status check_parts(const RtDataset *d, const RtTable *t, int n_parts, RtError *err) {
    if (t->n_parts != n_parts)
        return rt_fail(err, GNNC_E_SHAPE, "%s: %d parts, another table has %d", t->name, t->n_parts,
                       n_parts);
    if (!n_parts) return GNNC_OK;
    if (!ascends(t->part_ptr, n_parts, t->count))
        return rt_fail(err, GNNC_E_FORMAT, "%s: bounds of parts must ascend from 0 to %lld",
                       t->name, (long long)t->count);
    const int64_t *of = t->graph >= 0 ? d->graphs[t->graph].part_ptr : NULL;
    for (int p = 0; of && p <= n_parts; p++)
        if (t->graph_ptr[of[p]] != t->part_ptr[p])
            return rt_fail(err, GNNC_E_FORMAT, "%s: part %d does not begin where its graphs do",
                           t->name, p);
    return check_part_rows(&d->pool.from, t, err);
}

gnnc_status rt_dataset_check_ends(const RtDataset *d, const RtTable *t, RtError *err) {
    int64_t n_src = d->nodes[t->src_type].count, n_dst = d->nodes[t->dst_type].count;
    if (!t->src && t->ends_file) return GNNC_OK; /* when they are read */
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
    int n_parts = d->n_nodes ? d->nodes->n_parts : 0;
    for (int i = 0; i < d->n_graphs && st == GNNC_OK; i++)
        st = check_parts(d, &d->graphs[i], n_parts, err);
    for (int i = 0; i < d->n_nodes && st == GNNC_OK; i++)
        st = check_parts(d, &d->nodes[i], n_parts, err);
    for (int i = 0; i < d->n_edges && st == GNNC_OK; i++)
        st = rt_dataset_check_ends(d, &d->edges[i], err);
    return st;
}

/* ---- graphs --------------------------------------------------------------- */
gnnc_status rt_table_graph_of(RtPool *pool, const RtTable *nodes, int64_t n_graphs,
                              const int32_t **out, RtError *err) {
    int32_t *to = RT_NEWN(pool, int32_t, nodes->count);
    if (!to) return rt_fail_nomem(err, nodes->name);
    for (int64_t g = 0; g < n_graphs; g++)
        for (int64_t i = nodes->graph_ptr[g]; i < nodes->graph_ptr[g + 1]; i++) to[i] = (int32_t)g;
    *out = to;
    return GNNC_OK;
}
