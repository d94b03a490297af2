/* What the tests of appended rows share: one call's rows, and a graph that they fit. */
#ifndef TESTS_APPEND_UTIL_H
#define TESTS_APPEND_UTIL_H

#include "graph_util.h"

static inline gnnc_values values_of(const char *column, const gnnc_array *a) {
    return (gnnc_values){.struct_size = sizeof(gnnc_values), .column = column, .values = a};
}

static inline gnnc_rows rows_of(const char *table, int64_t count, int32_t n, const gnnc_values *v) {
    return (gnnc_rows){.struct_size = sizeof(gnnc_rows),
                       .table = table,
                       .count = count,
                       .columns = v,
                       .n_columns = n};
}

#define APPEND(g, r) CHECK_MSG(gnnc_graph_append(g, r) == GNNC_OK, "append: %s", (r)->error)

static inline int64_t rows_in(const gnnc_graph *g, const char *table) {
    gnnc_table_info t = {.struct_size = sizeof t};
    for (int i = 0; gnnc_graph_table_info(g, i, &t) == GNNC_OK; i++)
        if (strcmp(t.name, table) == 0) return t.count;
    return -1;
}

static inline const RtColumn *newest(const gnnc_graph *g, const char *table, const char *name) {
    const RtTable *t = rt_dataset_nodes(g->newest->data, table);
    if (!t) t = rt_dataset_edges(g->newest->data, table);
    const RtColumn *c = t ? rt_table_column(t, name) : NULL;
    CHECK_MSG(c, "%s.%s is not there", table, name);
    return c;
}

typedef struct {
    gnnc_graph *g;
    int n_done;
    gnnc_array x, c, w, src, dst;
    gnnc_values v[3];
    gnnc_rows nodes, edges;
} Good;

/* A node type a (x [2], c: red or blue) of 3 rows, an edge type e (w), and one good call for each.
 */
static inline void good(Good *k) {
    static const float x[6] = {0};
    static const int32_t ends[3] = {0, 1, 2};
    static const char *const names[] = {"red", "blue"};
    *k = (Good){.g = graph_new()};
    gnnc_array a = array_of(GNNC_DT_F32, 2, 3, 2, x), e = array_of(GNNC_DT_I32, 1, 3, 0, ends),
               zero = array_of(GNNC_DT_F32, 1, 3, 0, x);
    OK(k->g, gnnc_graph_add_nodes(k->g, "a", 3));
    OK(k->g, gnnc_graph_add_graphs(k->g, "whole", 1));
    OK(k->g, gnnc_graph_add_edges(k->g, "e", "a", "a", &e, &e));
    OK(k->g, gnnc_graph_add_column(k->g, "a", "x", GNNC_COL_FLOAT, &a, -1, NULL));
    OK(k->g, gnnc_graph_add_column(k->g, "a", "c", GNNC_COL_CAT, &zero, 2, names));
    OK(k->g, gnnc_graph_add_column(k->g, "e", "w", GNNC_COL_FLOAT, &zero, -1, NULL));
    OK(k->g, gnnc_graph_commit(k->g));
    static const float two[4] = {1, 2, 3, 4};
    static const int64_t from[] = {3, 0}, to[] = {4, 4}, code[] = {1, 0};
    k->x = lent(array_of(GNNC_DT_F32, 2, 2, 2, two), &k->n_done);
    k->c = lent(array_of(GNNC_DT_I64, 1, 2, 0, code), &k->n_done);
    k->w = lent(array_of(GNNC_DT_F32, 1, 2, 0, two), &k->n_done);
    k->src = lent(array_of(GNNC_DT_I64, 1, 2, 0, from), &k->n_done);
    k->dst = lent(array_of(GNNC_DT_I64, 1, 2, 0, to), &k->n_done);
    k->v[0] = values_of("x", &k->x);
    k->v[1] = values_of("c", &k->c);
    k->v[2] = values_of("w", &k->w);
    k->nodes = rows_of("a", 2, 2, k->v);
    k->edges = rows_of("e", 2, 1, k->v + 2);
    k->edges.src = &k->src;
    k->edges.dst = &k->dst;
}

#endif
