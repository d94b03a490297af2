/* What the tests of graphs share: arrays of the caller that count how often they are given back,
 * and the tiny program's data as arrays. */
#ifndef TESTS_GRAPH_UTIL_H
#define TESTS_GRAPH_UTIL_H

#include "runtime/graph/graph.h"
#include "test.h"
#include "tiny_data.h"

static inline void count_done(void *user) {
    ++*(int *)user;
}

/* Row-major and copied; a rank of 1 has no d1. */
static inline gnnc_array array_of(gnnc_element dtype, int rank, int64_t d0, int64_t d1,
                                  const void *data) {
    return (gnnc_array){.struct_size = sizeof(gnnc_array),
                        .data = data,
                        .dtype = (int32_t)dtype,
                        .rank = rank,
                        .shape = {d0, rank > 1 ? d1 : 0}};
}

static inline gnnc_array lent(gnnc_array a, int *n_done) {
    a.borrowed = 1;
    a.done = count_done;
    a.user = n_done;
    return a;
}

static inline gnnc_graph *graph_new(void) {
    gnnc_graph *g = NULL;
    CHECK(gnnc_graph_create(&g) == GNNC_OK);
    return g;
}

#define OK(g, call) CHECK_MSG((call) == GNNC_OK, #call ": %s", gnnc_graph_error(g))

static inline const RtColumn *column_of(const gnnc_graph *g, const char *table, const char *name) {
    const RtTable *t = rt_dataset_nodes(g->data, table);
    if (!t) t = rt_dataset_edges(g->data, table);
    if (!t) t = rt_dataset_graphs(g->data, table);
    const RtColumn *c = t ? rt_table_column(t, name) : NULL;
    CHECK_MSG(c, "%s.%s is not there", table, name);
    return c;
}

/* The data that make_data wrote, from memory; `borrow`: with n_done as of lent(). */
static inline gnnc_status fill_tiny(gnnc_graph *g, const RtDataset *d, int *n_done) {
    const RtTable *n = &d->nodes[0], *e = &d->edges[0];
    const gnnc_array src = array_of(GNNC_DT_I32, 1, E, 0, e->src),
                     dst = array_of(GNNC_DT_I32, 1, E, 0, e->dst),
                     x = array_of(GNNC_DT_F32, 2, N, F, rt_table_column(n, "x")->f32),
                     t = array_of(GNNC_DT_F32, 1, N, 0, rt_table_column(n, "t")->f32),
                     w = array_of(GNNC_DT_F32, 1, E, 0, rt_table_column(e, "w")->f32),
                     split = array_of(GNNC_DT_I8, 1, N, 0, rt_table_column(n, "split")->splits);
    gnnc_array a[6] = {src, dst, x, t, w, split};
    for (int i = 0; i < 6 && n_done; i++) a[i] = lent(a[i], n_done);
    gnnc_status st;
    TRY(st, gnnc_graph_add_nodes(g, "n", N));
    TRY(st, gnnc_graph_add_edges(g, "e", "n", "n", &a[0], &a[1]));
    TRY(st, gnnc_graph_add_column(g, "n", "x", GNNC_COL_FLOAT, &a[2], -1, NULL));
    TRY(st, gnnc_graph_add_column(g, "n", "t", GNNC_COL_FLOAT, &a[3], -1, NULL));
    TRY(st, gnnc_graph_add_column(g, "e", "w", GNNC_COL_FLOAT, &a[4], -1, NULL));
    TRY(st, gnnc_graph_add_column(g, "n", "split", GNNC_COL_SPLIT, &a[5], -1, NULL));
    st = gnnc_graph_commit(g);
out:
    return st;
}

#endif
