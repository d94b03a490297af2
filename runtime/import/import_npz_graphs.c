/* One graph, or many stacked ones, in an .npz archive:
 *     edge_index [2, E], or indptr [N+1] with indices [E]
 *     num_nodes []                       else from the other entries
 *     node_ptr, edge_ptr [G+1]           many graphs; edges bear global node numbers
 *     anything else                      a column (rt_npz_columns) */
#include <string.h>

#include "import_npz.h"

/* Number of nodes: as an entry says, or as many as another has rows. */
static gnnc_status count_nodes(Npz *z, int64_t *n) {
    RtArray a;
    bool found;
    gnnc_status st;
    if (rt_npz_has(z, "num_nodes")) return rt_npz_count(z, "num_nodes", n);
    const char *key = rt_npz_has(z, "node_ptr")   ? "node_ptr"
                      : rt_npz_has(z, "indptr")   ? "indptr"
                      : rt_npz_has(z, "x_indptr") ? "x_indptr"
                      : rt_npz_has(z, "x")        ? "x"
                                                  : "y";
    TRY(st, rt_npz_find(z, &z->pool, key, &a, &found));
    if (!found || a.rank < 1) return rt_npz_bad(z, GNNC_E_MISSING, "num_nodes", "no such entry");
    *n = a.shape[0] - (strstr(key, "ptr") ? 1 : 0);
    if (strcmp(key, "node_ptr") == 0 && a.count) *n = rt_array_i64(&a, a.count - 1);
    if (!strstr(key, "_ptr") && strcmp(key, "indptr") != 0) /* a column, read later */
        rt_npz_not_used(z, key);
    if (*n < 0 || *n > INT32_MAX) st = rt_npz_bad(z, GNNC_E_RANGE, "num_nodes", "out of range");
out:
    return st;
}

/* Reads edges from compressed rows: *from, *to [n]. */
static gnnc_status rows_of_indptr(Npz *z, int64_t n_nodes, int64_t *n, const int32_t **from,
                                  const int32_t **to) {
    RtArray ptr, idx;
    gnnc_status st;
    TRY(st, rt_npz_need(z, &z->pool, "indptr", 1, &ptr));
    TRY(st, rt_npz_i32(z, "indices", 1, &idx, to));
    if (ptr.count != n_nodes + 1 || rt_array_i64(&ptr, 0) != 0)
        return rt_npz_bad(z, GNNC_E_SHAPE, "indptr", "does not fit the number of nodes");
    int32_t *src = RT_NEWN(&z->b.d->pool, int32_t, idx.count);
    if (!src) return rt_fail_nomem(z->b.err, "indices");
    int64_t e = 0;
    for (int64_t v = 0; v < n_nodes; v++) {
        int64_t end = rt_array_i64(&ptr, v + 1);
        if (end < e || end > idx.count)
            return rt_npz_bad(z, GNNC_E_FORMAT, "indptr", "must ascend");
        while (e < end) src[e++] = (int32_t)v;
    }
    if (e != idx.count)
        return rt_npz_bad(z, GNNC_E_FORMAT, "indptr", "does not reach the last index");
    *n = e;
    *from = src;
out:
    return st;
}

/* Reads the edges, of whichever form is there. */
static gnnc_status read_edges(Npz *z, RtTable *nodes, RtTable **out) {
    const int32_t *from, *to;
    int64_t n;
    gnnc_status st;
    if (rt_npz_has(z, "indptr")) {
        TRY(st, rows_of_indptr(z, nodes->count, &n, &from, &to));
    } else {
        TRY(st, rt_npz_pair(z, "edge_index", &n, &from));
        to = from + n;
    }
    st = rt_build_edges(&z->b, z->b.how->edge ? z->b.how->edge : "link", nodes, nodes, n, from, to,
                        out);
out:
    return st;
}

/* Edges must stay in their graph: batches of graphs are cut by node rows. */
static gnnc_status check_edge_ptr(Npz *z, const RtTable *nodes, const RtTable *edges) {
    RtArray a;
    gnnc_status st;
    TRY(st, rt_npz_need(z, &z->pool, "edge_ptr", 1, &a));
    int64_t n_graphs = z->b.d->graphs->count, e = 0;
    if (a.count != n_graphs + 1 || rt_array_i64(&a, 0) != 0 ||
        rt_array_i64(&a, n_graphs) != edges->count)
        return rt_npz_bad(z, GNNC_E_SHAPE, "edge_ptr", "must run from 0 to the number of edges");
    for (int64_t g = 0; g < n_graphs; g++) {
        int64_t end = rt_array_i64(&a, g + 1), lo = nodes->graph_ptr[g],
                hi = nodes->graph_ptr[g + 1];
        if (end < e || end > edges->count)
            return rt_fail(z->b.err, GNNC_E_FORMAT, "%s: edge_ptr: graph %lld: must ascend",
                           z->zip.name, (long long)g);
        for (; e < end; e++)
            if (edges->src[e] < lo || edges->src[e] >= hi || edges->dst[e] < lo ||
                edges->dst[e] >= hi)
                return rt_fail(z->b.err, GNNC_E_RANGE,
                               "%s: edge_index: edge %lld leaves its graph %lld", z->zip.name,
                               (long long)e, (long long)g);
    }
out:
    return st;
}

/* Makes a table of graphs, of which each has consecutive nodes. */
static gnnc_status read_graph_table(Npz *z, RtTable *nodes) {
    RtArray a;
    RtTable *graphs;
    gnnc_status st;
    TRY(st, rt_npz_need(z, &z->b.d->pool, "node_ptr", 1, &a));
    if (a.count < 1) return rt_npz_bad(z, GNNC_E_SHAPE, "node_ptr", "is empty");
    if (rt_dtype_kind(a.dt) == 'f')
        return rt_npz_bad(z, GNNC_E_DTYPE, "node_ptr", "whole numbers are expected");
    TRY(st, rt_build_graphs(&z->b, "graphs", a.count - 1, &graphs));
    nodes->graph = 0;
    nodes->graph_ptr = rt_array_as_i64(&z->b.d->pool, &a);
    if (!nodes->graph_ptr) return rt_fail_nomem(z->b.err, "node_ptr");
    z->label = graphs;
    st = rt_dataset_check(z->b.d, z->b.err); /* the pointers, before they are followed */
out:
    return st;
}

gnnc_status rt_npz_read_graphs(Npz *z, const RtAlloc *from) {
    int64_t n = 0;
    RtTable *nodes, *edges;
    RtImport *how = z->b.how;
    gnnc_status st;
    TRY(st, count_nodes(z, &n));
    TRY(st, rt_build_begin(&z->b, from, z->zip.name, how, 1, 1, 1, z->b.err));
    TRY(st, rt_build_nodes(&z->b, how->node ? how->node : "vertex", n, &nodes));
    z->home = z->label = nodes;
    if (rt_npz_has(z, "node_ptr")) TRY(st, read_graph_table(z, nodes));
    TRY(st, read_edges(z, nodes, &edges));
    if (rt_npz_has(z, "edge_ptr")) TRY(st, check_edge_ptr(z, nodes, edges));
    st = rt_npz_columns(z);
out:
    return st;
}
