/* One graph in an .npz archive:
 *     edge_index [2, E], or indptr [N+1] with indices [E]
 *     num_nodes []                              (else from x or y)
 *     x [N, F], or x_indptr, x_indices, x_data, x_shape
 *     y [N]: classes, -1 = none; or real numbers [N] or [N, T]
 *     train_idx, val_idx, test_idx              one split
 *     train_masks, val_masks, test_masks [K, N] K splits */
#include "import.h"

#include <stdio.h>
#include <string.h>

#include "zip.h"

typedef struct {
    RtPool pool; /* for what the data set does not keep */
    RtZip zip;
    RtImport *how;
    RtDataset *d;
    RtError *err;
} Npz;

/* *found = false when there is no such entry. Row-major. */
static gnnc_status get(Npz *z, RtPool *pool, const char *key, RtArray *a, bool *found) {
    char entry[64], where[300];
    RtBytes bytes;
    gnnc_status st;
    snprintf(entry, sizeof entry, "%s.npy", key);
    snprintf(where, sizeof where, "%.200s: %s", z->zip.name, key);
    const RtZipEntry *e = rt_zip_find(&z->zip, entry);
    *found = e;
    if (!e) return GNNC_OK;
    TRY(st, rt_zip_read(pool, &z->zip, e, &bytes, z->err));
    TRY(st, rt_npy_parse(pool, bytes, where, a, z->err));
    *a = rt_array_row_major(pool, a);
    if (!a->data) st = rt_fail_nomem(z->err, where);
out:
    return st;
}

static gnnc_status bad(Npz *z, gnnc_status st, const char *key, const char *what) {
    return rt_fail(z->err, st, "%s: %s: %s", z->zip.name, key, what);
}

/* An entry that must exist, of integers, with this rank. */
static gnnc_status need(Npz *z, RtPool *pool, const char *key, int rank, RtArray *a) {
    bool found;
    gnnc_status st = get(z, pool, key, a, &found);
    if (st != GNNC_OK) return st;
    if (!found) return bad(z, GNNC_E_MISSING, key, "no such entry");
    if (a->rank != rank) return bad(z, GNNC_E_SHAPE, key, "unexpected number of dimensions");
    return GNNC_OK;
}

static gnnc_status need_i32(Npz *z, const char *key, int rank, RtArray *a, const int32_t **v) {
    gnnc_status st = need(z, &z->d->pool, key, rank, a);
    return st == GNNC_OK ? rt_array_as_i32(&z->d->pool, a, key, v, z->err) : st;
}

static bool has(const Npz *z, const char *key) {
    char entry[64];
    snprintf(entry, sizeof entry, "%s.npy", key);
    return rt_zip_find(&z->zip, entry);
}

/* ---- sizes ------------------------------------------------------------------ */
static gnnc_status count_nodes(Npz *z, int64_t *n) {
    RtArray a;
    gnnc_status st;
    *n = 0;
    if (has(z, "num_nodes")) {
        TRY(st, need(z, &z->pool, "num_nodes", 0, &a));
        *n = rt_array_i64(&a, 0);
    } else if (has(z, "indptr") || has(z, "x_indptr")) {
        TRY(st, need(z, &z->pool, has(z, "indptr") ? "indptr" : "x_indptr", 1, &a));
        *n = a.count - 1;
    } else {
        bool found;
        TRY(st, get(z, &z->pool, has(z, "x") ? "x" : "y", &a, &found));
        if (!found || a.rank < 1) return bad(z, GNNC_E_MISSING, "num_nodes", "no such entry");
        *n = a.shape[0];
    }
    if (*n < 0 || *n > INT32_MAX) st = bad(z, GNNC_E_RANGE, "num_nodes", "out of range");
out:
    return st;
}

/* ---- columns ---------------------------------------------------------------- */
static gnnc_status read_csr(Npz *z) {
    RtArray ptr, col, val, shape;
    RtPool *pool = &z->d->pool;
    gnnc_status st;
    TRY(st, need(z, pool, "x_indptr", 1, &ptr));
    RtColumn *c = rt_import_column(z->d, RT_COL_CSR, "x");
    TRY(st, need_i32(z, "x_indices", 1, &col, &c->csr.col));
    TRY(st, need(z, pool, "x_data", 1, &val));
    TRY(st, need(z, pool, "x_shape", 1, &shape));
    if (shape.count != 2 || rt_array_i64(&shape, 0) != c->n_rows || ptr.count != c->n_rows + 1)
        return bad(z, GNNC_E_SHAPE, "x_shape", "does not fit the number of nodes");
    if (col.count != val.count) return bad(z, GNNC_E_SHAPE, "x_data", "not as long as x_indices");
    c->rank = 2;
    c->shape[1] = rt_array_i64(&shape, 1);
    c->csr.n_rows = c->n_rows;
    c->csr.n_cols = c->shape[1];
    c->csr.nnz = col.count;
    c->csr.ptr = rt_array_as_i64(pool, &ptr);
    c->csr.val = rt_array_as_f32(pool, &val);
    if (!c->csr.ptr || !c->csr.val) st = rt_fail_nomem(z->err, "x");
out:
    return st;
}

static gnnc_status read_dense(Npz *z, const char *key) {
    RtArray a;
    bool found;
    gnnc_status st;
    TRY(st, get(z, &z->d->pool, key, &a, &found));
    if (a.rank < 1 || a.rank > 2 || a.shape[0] != z->d->nodes->count)
        return bad(z, GNNC_E_SHAPE, key, "does not have one row per node");
    RtColumn *c = rt_import_column(z->d, RT_COL_FLOAT, key);
    c->rank = a.rank;
    memcpy(c->shape, a.shape, sizeof c->shape);
    c->f32 = rt_array_as_f32(&z->d->pool, &a);
    if (!c->f32) st = rt_fail_nomem(z->err, key);
out:
    return st;
}

static gnnc_status read_labels(Npz *z) {
    RtArray a;
    gnnc_status st;
    const int32_t *y;
    bool found;
    TRY(st, get(z, &z->pool, "y", &a, &found));
    if (!found) return GNNC_OK;
    if (rt_dtype_kind(a.dt) == 'f') return read_dense(z, "y");
    TRY(st, need_i32(z, "y", 1, &a, &y));
    if (a.count != z->d->nodes->count)
        return bad(z, GNNC_E_SHAPE, "y", "does not have one row per node");
    RtColumn *c = rt_import_column(z->d, RT_COL_CLASS, "y");
    c->i32 = y;
    for (int64_t i = 0; i < a.count; i++)
        if (y[i] >= c->n_categories) c->n_categories = (int64_t)y[i] + 1;
out:
    return st;
}

static gnnc_status set_part(Npz *z, const char *key, int8_t *to, int64_t row, int part) {
    if (row < 0 || row >= z->d->nodes->count)
        return rt_fail(z->err, GNNC_E_RANGE, "%s: %s: there is no node %lld", z->zip.name, key,
                       (long long)row);
    if (to[row])
        return rt_fail(z->err, GNNC_E_RANGE, "%s: %s: node %lld is in two parts of the split",
                       z->zip.name, key, (long long)row);
    to[row] = (int8_t)part;
    return GNNC_OK;
}

static gnnc_status read_index_part(Npz *z, const char *key, int part, int8_t *to) {
    RtArray a;
    gnnc_status st = need(z, &z->pool, key, 1, &a);
    for (int64_t i = 0; st == GNNC_OK && i < a.count; i++)
        st = set_part(z, key, to, rt_array_i64(&a, i), part);
    return st;
}

static gnnc_status read_mask_part(Npz *z, const char *key, int part, RtColumn *c) {
    RtArray a;
    gnnc_status st = need(z, &z->pool, key, 2, &a);
    if (st != GNNC_OK) return st;
    if (a.shape[1] != c->n_rows || a.shape[0] < 1 || a.shape[0] > 10000 ||
        (c->n_splits && a.shape[0] != c->n_splits))
        return bad(z, GNNC_E_SHAPE, key, "not [splits, nodes]");
    if (!c->splits) c->splits = RT_NEWN(&z->d->pool, int8_t, a.count);
    if (!c->splits) return rt_fail_nomem(z->err, key);
    c->n_splits = (int)a.shape[0];
    int8_t *to = (int8_t *)(uintptr_t)c->splits;
    for (int64_t i = 0; st == GNNC_OK && i < a.count; i++)
        if (rt_array_i64(&a, i))
            st = set_part(z, key, to + i / c->n_rows * c->n_rows, i % c->n_rows, part);
    return st;
}

static gnnc_status read_split(Npz *z) {
    static const char *const idx[] = {"train_idx", "val_idx", "test_idx"};
    static const char *const masks[] = {"train_masks", "val_masks", "test_masks"};
    gnnc_status st = GNNC_OK;
    bool by_mask = has(z, masks[0]);
    if (!by_mask && !has(z, idx[0])) return GNNC_OK;
    RtColumn *c = rt_import_column(z->d, RT_COL_SPLIT, "split");
    if (!by_mask) {
        int8_t *to = RT_NEWN(&z->d->pool, int8_t, c->n_rows);
        if (!to) return rt_fail_nomem(z->err, "split");
        c->n_splits = 1;
        c->splits = to;
        for (int p = 0; p < 3 && st == GNNC_OK; p++) st = read_index_part(z, idx[p], p + 1, to);
    }
    for (int p = 0; by_mask && p < 3 && st == GNNC_OK; p++)
        st = read_mask_part(z, masks[p], p + 1, c);
    return st;
}

/* ---- edges ------------------------------------------------------------------- */
static gnnc_status read_edge_index(Npz *z) {
    RtArray a;
    const int32_t *ends;
    gnnc_status st = need_i32(z, "edge_index", 2, &a, &ends);
    if (st != GNNC_OK) return st;
    if (a.shape[0] != 2) return bad(z, GNNC_E_SHAPE, "edge_index", "not [2, edges]");
    return rt_import_edges(z->d, z->how, a.shape[1], ends, ends + a.shape[1], 0, NULL, z->err);
}

static gnnc_status read_adjacency(Npz *z) {
    RtArray ptr, idx;
    const int32_t *dst;
    gnnc_status st;
    TRY(st, need(z, &z->pool, "indptr", 1, &ptr));
    TRY(st, need_i32(z, "indices", 1, &idx, &dst));
    if (ptr.count != z->d->nodes->count + 1 || rt_array_i64(&ptr, 0) != 0)
        return bad(z, GNNC_E_SHAPE, "indptr", "does not fit the number of nodes");
    int32_t *src = RT_NEWN(&z->d->pool, int32_t, idx.count);
    if (!src) return rt_fail_nomem(z->err, "indices");
    int64_t e = 0;
    for (int64_t v = 0; v + 1 < ptr.count; v++) {
        int64_t end = rt_array_i64(&ptr, v + 1);
        if (end < e || end > idx.count) return bad(z, GNNC_E_FORMAT, "indptr", "must ascend");
        while (e < end) src[e++] = (int32_t)v;
    }
    if (e != idx.count) return bad(z, GNNC_E_FORMAT, "indptr", "does not reach the last index");
    st = rt_import_edges(z->d, z->how, e, src, dst, 0, NULL, z->err);
out:
    return st;
}

static gnnc_status read_graph(Npz *z, const RtAlloc *from) {
    int64_t n;
    gnnc_status st;
    TRY(st, count_nodes(z, &n));
    TRY(st, rt_import_begin(from, z->how, n, 3, &z->d, z->err));
    if (has(z, "x_indptr"))
        TRY(st, read_csr(z));
    else if (has(z, "x"))
        TRY(st, read_dense(z, "x"));
    TRY(st, read_labels(z));
    TRY(st, read_split(z));
    TRY(st, has(z, "indptr") ? read_adjacency(z) : read_edge_index(z));
    st = rt_import_finish(z->d, z->how, z->err);
out:
    return st;
}

gnnc_status rt_import_npz_bytes(const RtAlloc *from, RtBytes file, const char *name, RtImport *how,
                                RtDataset **out, RtError *err) {
    Npz z = {.how = how, .err = err};
    *out = NULL;
    rt_pool_init(&z.pool, from);
    gnnc_status st = rt_zip_open(&z.pool, file, name, &z.zip, err);
    if (st == GNNC_OK) st = read_graph(&z, from);
    rt_pool_free(&z.pool);
    if (st == GNNC_OK)
        *out = z.d;
    else
        rt_dataset_close(z.d);
    return st;
}

gnnc_status rt_import_npz(const RtAlloc *from, const char *path, RtImport *how, RtDataset **out,
                          RtError *err) {
    RtPool pool;
    RtBytes file;
    *out = NULL;
    rt_pool_init(&pool, from);
    gnnc_status st = rt_file_map(&pool, path, &file, err);
    if (st == GNNC_OK) st = rt_import_npz_bytes(from, file, path, how, out, err);
    rt_pool_free(&pool);
    return st;
}
