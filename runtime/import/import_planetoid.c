/* The files of Yang, Cohen and Salakhutdinov 2016 ("Revisiting semi-supervised
 * learning with graph embeddings", github.com/kimiyoung/planetoid):
 *     x, y        features and one-hot labels of the training nodes 0..
 *     allx, ally  the same of all nodes that are not test nodes
 *     tx, ty      the same of the test nodes, row i belonging to node test.index[i]
 *     graph       {node: [neighbours]}
 * The public split: the training nodes, the next 500 as validation, the test nodes.
 * CiteSeer's test.index leaves gaps: those nodes have no features, no label and
 * are in no part of the split. */
#include "import.h"

#include <stdio.h>
#include <string.h>

#include "pickle.h"
#include "runtime/data/relation.h"

enum { X, TX, ALLX, Y, TY, ALLY, GRAPH, TEST_INDEX, N_VAL = 500 };
const char *const rt_planetoid_parts[RT_PLANETOID_FILES] = {"x",  "tx",   "allx",  "y",
                                                            "ty", "ally", "graph", "test.index"};

typedef struct {
    RtPool pool; /* scratch */
    const RtBytes *file;
    RtImport *how;
    RtDataset *d;
    RtError *err;
    RtCsr x, tx, allx;
    RtArray y, ty, ally;
    int64_t n, n_test, *test; /* nodes; test.index */
} Planetoid;

static gnnc_status bad(Planetoid *p, int part, const char *what) {
    return rt_fail(p->err, GNNC_E_FORMAT, "%s: %s", rt_planetoid_parts[part], what);
}

static gnnc_status no_memory(Planetoid *p) {
    return rt_fail_nomem(p->err, "import");
}

/* ---- reading --------------------------------------------------------------------- */
/* Reads the sparse matrix of a part. */
static gnnc_status read_matrix(Planetoid *p, int part, RtCsr *out) {
    RtPy *v;
    gnnc_status st = rt_pickle_parse(&p->pool, p->file[part], rt_planetoid_parts[part], &v, p->err);
    return st == GNNC_OK ? rt_pickle_csr(&p->pool, v, rt_planetoid_parts[part], out, p->err) : st;
}

/* Reads the labels of a part: a row for each of its features' rows. */
static gnnc_status read_labels(Planetoid *p, int part, int64_t n_rows, RtArray *out) {
    RtPy *v;
    gnnc_status st;
    TRY(st, rt_pickle_parse(&p->pool, p->file[part], rt_planetoid_parts[part], &v, p->err));
    TRY(st, rt_pickle_array(&p->pool, v, rt_planetoid_parts[part], out, p->err));
    if (out->rank != 2 || out->shape[0] != n_rows)
        return bad(p, part, "not one row of labels per row of features");
    *out = rt_array_row_major(&p->pool, out);
    if (!out->data) st = no_memory(p);
out:
    return st;
}

/* Reads the numbers of the test nodes, one a line. */
static gnnc_status read_test_index(Planetoid *p) {
    RtBytes s = p->file[TEST_INDEX];
    p->test = RT_NEWN(&p->pool, int64_t, s.n / 2 + 1);
    if (!p->test) return no_memory(p);
    for (size_t i = 0; i < s.n;) {
        int64_t v = 0;
        size_t start = i;
        for (; i < s.n && s.p[i] >= '0' && s.p[i] <= '9' && v < INT32_MAX; i++)
            v = v * 10 + (s.p[i] - '0');
        bool line = i > start && v < INT32_MAX && (i == s.n || s.p[i] == '\n' || s.p[i] == '\r');
        if (!line && i == start && (s.p[i] == '\n' || s.p[i] == '\r')) {
            i++;
            continue;
        }
        if (!line)
            return rt_fail(p->err, GNNC_E_FORMAT, "test.index: row %lld: no node number",
                           (long long)p->n_test + 1);
        p->test[p->n_test++] = v;
    }
    return GNNC_OK;
}

/* Reads all files and checks that they fit together. */
static gnnc_status read_parts(Planetoid *p) {
    gnnc_status st;
    TRY(st, read_matrix(p, X, &p->x));
    TRY(st, read_matrix(p, TX, &p->tx));
    TRY(st, read_matrix(p, ALLX, &p->allx));
    TRY(st, read_labels(p, Y, p->x.n_rows, &p->y));
    TRY(st, read_labels(p, TY, p->tx.n_rows, &p->ty));
    TRY(st, read_labels(p, ALLY, p->allx.n_rows, &p->ally));
    TRY(st, read_test_index(p));
    if (p->x.n_rows > p->allx.n_rows) return bad(p, X, "more rows than allx");
    if (p->tx.n_cols != p->allx.n_cols) return bad(p, TX, "not as many columns as allx");
    if (p->ty.shape[1] != p->ally.shape[1]) return bad(p, TY, "not as many classes as ally");
    if (p->n_test != p->tx.n_rows) return bad(p, TEST_INDEX, "not one row per row of tx");
    p->n = p->allx.n_rows;
    for (int64_t i = 0; i < p->n_test; i++) {
        if (p->test[i] < p->allx.n_rows) return bad(p, TEST_INDEX, "names a node of allx");
        if (p->test[i] >= p->n) p->n = p->test[i] + 1;
    }
    st = rt_import_check_ids(p->how, "test.index", p->n, p->allx.n_rows + p->n_test, p->err);
out:
    return st;
}

/* ---- columns ---------------------------------------------------------------------- */
/* Finds the row of each node: r < allx.n_rows of allx, else of tx; -1 = none. */
static gnnc_status find_rows(Planetoid *p, int32_t **rows) {
    int32_t *row = *rows = RT_NEWN(&p->pool, int32_t, p->n);
    if (!row) return no_memory(p);
    for (int64_t v = 0; v < p->n; v++) row[v] = v < p->allx.n_rows ? (int32_t)v : -1;
    for (int64_t i = 0; i < p->n_test; i++) {
        if (row[p->test[i]] >= 0)
            return rt_fail(p->err, GNNC_E_FORMAT, "test.index: row %lld: node %lld is repeated",
                           (long long)i + 1, (long long)p->test[i]);
        row[p->test[i]] = (int32_t)(p->allx.n_rows + i);
    }
    return GNNC_OK;
}

/* The part of a row and its number there; NULL for a node without one. */
static const RtCsr *part_of(const Planetoid *p, int32_t row, int64_t *r) {
    *r = row < p->allx.n_rows ? row : row - p->allx.n_rows;
    return row < 0 ? NULL : row < p->allx.n_rows ? &p->allx : &p->tx;
}

/* Makes the sparse features; row[v] says where those of node v are. */
static gnnc_status add_features(Planetoid *p, const int32_t *row) {
    RtPool *pool = &p->d->pool;
    RtColumn *c = rt_import_column(p->d, RT_COL_CSR, "x");
    int64_t nnz = p->allx.nnz + p->tx.nnz, at = 0, r;
    int64_t *ptr = RT_NEWN(pool, int64_t, p->n + 1);
    int32_t *col = RT_NEWN(pool, int32_t, nnz);
    float *val = RT_NEWN(pool, float, nnz);
    if (!ptr || !col || !val) return no_memory(p);
    for (int64_t v = 0; v < p->n; v++) {
        const RtCsr *m = part_of(p, row[v], &r);
        size_t k = m ? (size_t)(m->ptr[r + 1] - m->ptr[r]) : 0;
        if (k) memcpy(col + at, m->col + m->ptr[r], k * sizeof *col);
        if (k) memcpy(val + at, m->val + m->ptr[r], k * sizeof *val);
        ptr[v + 1] = at += (int64_t)k;
    }
    c->rank = 2;
    c->shape[1] = p->allx.n_cols;
    c->csr = (RtCsr){p->n, p->allx.n_cols, nnz, ptr, col, val};
    return GNNC_OK;
}

/* The column of the largest entry; -1 where the row is all zero. */
static int32_t label_of(const RtArray *y, int64_t row) {
    int64_t n = y->shape[1], best = -1;
    for (int64_t k = 0; k < n; k++)
        if (rt_array_f64(y, row * n + k) > (best < 0 ? 0 : rt_array_f64(y, row * n + best)))
            best = k;
    return (int32_t)best;
}

/* Makes the classes; nodes that are in no file have none. */
static gnnc_status add_labels(Planetoid *p, const int32_t *row) {
    RtColumn *c = rt_import_column(p->d, RT_COL_CLASS, "y");
    int32_t *y = RT_NEWN(&p->d->pool, int32_t, p->n);
    int64_t r;
    if (!y) return no_memory(p);
    for (int64_t v = 0; v < p->n; v++) {
        const RtCsr *m = part_of(p, row[v], &r);
        y[v] = m ? label_of(m == &p->allx ? &p->ally : &p->ty, r) : -1;
    }
    c->i32 = y;
    c->n_categories = p->ally.shape[1];
    return GNNC_OK;
}

/* Makes the public split: x trains, the next 500 nodes validate, test.index tests. */
static gnnc_status add_split(Planetoid *p) {
    RtColumn *c = rt_import_column(p->d, RT_COL_SPLIT, "split");
    int8_t *part = RT_NEWN(&p->d->pool, int8_t, p->n);
    if (!part) return no_memory(p);
    int64_t n_train = p->x.n_rows, n_val = n_train + N_VAL;
    for (int64_t v = 0; v < p->allx.n_rows && v < n_val; v++) part[v] = v < n_train ? 1 : 2;
    for (int64_t i = 0; i < p->n_test; i++) part[p->test[i]] = 3;
    c->splits = part;
    c->n_splits = 1;
    return GNNC_OK;
}

/* ---- edges -------------------------------------------------------------------------- */
/* Reads the number of a node; false: it is none. */
static bool read_node(const Planetoid *p, const RtPy *v, int32_t *to) {
    if (v->kind != RT_PY_INT || v->i < 0 || v->i >= p->n) return false;
    *to = (int32_t)v->i;
    return true;
}

/* Lists the neighbours of all nodes: *ends has the sources, and from its middle on the
 * destinations. */
static gnnc_status list_edges(Planetoid *p, const RtPy *graph, int32_t **ends, int64_t *n) {
    int64_t cap = 0, e = 0;
    int32_t from;
    for (int64_t i = 1; i < graph->n; i += 2)
        if (graph->v[i]->kind == RT_PY_LIST) cap += graph->v[i]->n;
    *ends = RT_NEWN(&p->pool, int32_t, 2 * cap);
    if (!*ends) return no_memory(p);
    for (int64_t i = 0; i + 1 < graph->n; i += 2) {
        const RtPy *list = graph->v[i + 1];
        if (!read_node(p, graph->v[i], &from) || list->kind != RT_PY_LIST)
            return bad(p, GRAPH, "a key is no node, or its value no list");
        for (int64_t k = 0; k < list->n; k++, e++) {
            (*ends)[e] = from;
            if (!read_node(p, list->v[k], &(*ends)[cap + e]))
                return rt_fail(p->err, GNNC_E_RANGE,
                               "graph: node %d has a neighbour that is no "
                               "node",
                               from);
        }
    }
    *n = e;
    return GNNC_OK;
}

/* Adds edges in both directions, each once, no loops; by source, then destination. */
static gnnc_status add_edges(Planetoid *p) {
    RtPy *graph;
    RtRelation all, base, both;
    RtPool *pool = &p->pool;
    int32_t *ends;
    int64_t n = 0;
    gnnc_status st;
    TRY(st, rt_pickle_parse(pool, p->file[GRAPH], "graph", &graph, p->err));
    if (graph->kind != RT_PY_DICT && graph->kind != RT_PY_OBJECT)
        return bad(p, GRAPH, "a dictionary of lists is expected");
    TRY(st, list_edges(p, graph, &ends, &n));
    TRY(st, rt_relation_base(pool, p->n, p->n, n, ends, ends + n, &all, p->err));
    TRY(st, rt_relation_no_loops(pool, &all, &base, p->err));
    TRY(st, rt_relation_undirected(pool, &base, &both, p->err));
    TRY(st, rt_relation_group_src(pool, &both, p->err));
    int32_t *src = RT_NEWN(&p->d->pool, int32_t, both.n_edges);
    int32_t *dst = RT_NEWN(&p->d->pool, int32_t, both.n_edges);
    if (!src || !dst) return no_memory(p);
    for (int64_t i = 0; i < both.n_edges; i++) {
        int64_t e = rt_group_at(&both.by_src, i);
        src[i] = both.src[e];
        dst[i] = both.dst[e];
    }
    RtImport how = *p->how;
    how.undirected = false; /* it is already */
    st = rt_import_edges(p->d, &how, both.n_edges, src, dst, 0, NULL, p->err);
out:
    return st;
}

/* Makes the data set of all files. */
static gnnc_status make(Planetoid *p, const RtAlloc *from) {
    int32_t *row;
    gnnc_status st;
    TRY(st, read_parts(p));
    TRY(st, rt_import_begin(from, p->how, p->n, 3, &p->d, p->err));
    TRY(st, find_rows(p, &row));
    TRY(st, add_features(p, row));
    TRY(st, add_labels(p, row));
    TRY(st, add_split(p));
    TRY(st, add_edges(p));
    st = rt_import_finish(p->d, p->how, p->err);
out:
    return st;
}

gnnc_status rt_import_planetoid_bytes(const RtAlloc *from, const RtBytes file[RT_PLANETOID_FILES],
                                      RtImport *how, RtDataset **out, RtError *err) {
    Planetoid p = {.file = file, .how = how, .err = err};
    *out = NULL;
    rt_pool_init(&p.pool, from);
    gnnc_status st = make(&p, from);
    rt_pool_free(&p.pool);
    if (st == GNNC_OK)
        *out = p.d;
    else
        rt_dataset_close(p.d);
    return st;
}

gnnc_status rt_import_planetoid(const RtAlloc *from, const char *dir, const char *name,
                                RtImport *how, RtDataset **out, RtError *err) {
    RtPool pool;
    RtBytes file[RT_PLANETOID_FILES];
    gnnc_status st = GNNC_OK;
    *out = NULL;
    rt_pool_init(&pool, from);
    for (int i = 0; i < RT_PLANETOID_FILES && st == GNNC_OK; i++) {
        const char *path = rt_pool_printf(&pool, "%s/ind.%s.%s", dir, name, rt_planetoid_parts[i]);
        st = path ? rt_file_map(&pool, path, &file[i], err) : rt_fail_nomem(err, name);
    }
    RtError inner = {""};
    if (st == GNNC_OK) st = rt_import_planetoid_bytes(from, file, how, out, &inner);
    if (inner.text[0]) rt_fail(err, st, "%s/ind.%s.%.400s", dir, name, inner.text);
    rt_pool_free(&pool);
    return st;
}
