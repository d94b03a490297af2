/* A subgraph that a client sends, as JSON, becomes the graph of a session's request:
 *
 *     {"nodes": {"paper": {"count": 2, "x": [[0, 1, ..], [1, 0, ..]],
 *                          "whole.degree.cites_sl": [3, 2]}},
 *      "edges": {"cites": {"src": ["paper", 1], "dst": ["paper", 0]}},
 *      "rows": [0]}
 *
 * Columns are numbers, one a row or as many in each; ends are the type, then the rows.  What is no
 * such thing is refused here, what does not fit the model by the library. */
#include <cjson/cJSON.h>
#include <gnnc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    gnnc_graph *graph;
    char why[512]; /* "": nothing is wrong yet */
} Subgraph;

static gnnc_status malformed(Subgraph *to, const char *what, const char *name) {
    snprintf(to->why, sizeof to->why, "%s '%.64s'", what, name ? name : "");
    return GNNC_E_FORMAT;
}

/* Of a call of the library. */
static gnnc_status told(Subgraph *to, gnnc_status st) {
    if (st != GNNC_OK) snprintf(to->why, sizeof to->why, "%s", gnnc_graph_error(to->graph));
    return st;
}

/* [n] or [n, width] numbers, which the caller frees; `width` 0: one a row.  NULL: it is no such. */
static double *numbers(const cJSON *rows, int64_t *n, int64_t *width) {
    *n = cJSON_IsArray(rows) ? cJSON_GetArraySize(rows) : 0;
    *width = *n && cJSON_IsArray(rows->child) ? cJSON_GetArraySize(rows->child) : 0;
    int64_t each = *width ? *width : 1, at = 0;
    double *to = cJSON_IsArray(rows) ? calloc((size_t)(*n * each) + 1, sizeof *to) : NULL;
    bool ok = to != NULL;
    for (const cJSON *row = ok ? rows->child : NULL; row && ok; row = row->next) {
        ok = *width ? cJSON_IsArray(row) && cJSON_GetArraySize(row) == *width : cJSON_IsNumber(row);
        for (const cJSON *x = *width ? row->child : row; x && ok; x = *width ? x->next : NULL) {
            ok = cJSON_IsNumber(x);
            to[at++] = x->valuedouble;
        }
    }
    if (!ok) free(to);
    return ok ? to : NULL;
}

static gnnc_array array_of(const double *data, int64_t n, int64_t width) {
    gnnc_array a = {.struct_size = sizeof a, .data = data, .dtype = GNNC_DT_F64};
    a.rank = width ? 2 : 1;
    a.shape[0] = n;
    a.shape[1] = width;
    return a;
}

static gnnc_status add_columns(Subgraph *to, const cJSON *table) {
    gnnc_status st = GNNC_OK;
    for (const cJSON *c = table->child; c && st == GNNC_OK; c = c->next) {
        int64_t n, width;
        if (!strcmp(c->string, "count") || !strcmp(c->string, "src") || !strcmp(c->string, "dst"))
            continue;
        double *values = numbers(c, &n, &width);
        if (!values) return malformed(to, "no rows of numbers:", c->string);
        const gnnc_array a = array_of(values, n, width);
        st = told(to, gnnc_graph_add_column(to->graph, table->string, c->string, GNNC_COL_FLOAT, &a,
                                            -1, NULL));
        free(values);
    }
    return st;
}

static gnnc_status add_nodes(Subgraph *to, const cJSON *table) {
    const cJSON *count = cJSON_GetObjectItem(table, "count");
    if (!cJSON_IsNumber(count) || count->valuedouble < 0 || count->valuedouble > 1e6)
        return malformed(to, "no 'count' of nodes:", table->string);
    return told(to, gnnc_graph_add_nodes(to->graph, table->string, (int64_t)count->valuedouble));
}

/* ["paper", 1, 0, 2]: a type, and rows of it. */
static int64_t *ends(cJSON *of, int64_t *n) {
    int all = cJSON_IsArray(of) ? cJSON_GetArraySize(of) : 0;
    bool ok = all > 0 && cJSON_IsString(of->child);
    int64_t *to = ok ? calloc((size_t)all, sizeof *to) : NULL;
    *n = 0;
    for (const cJSON *x = to ? of->child->next : NULL; x && ok; x = x->next) {
        ok = cJSON_IsNumber(x) && x->valuedouble >= 0 && x->valuedouble <= 1e6;
        if (ok) to[(*n)++] = (int64_t)x->valuedouble;
    }
    if (!ok) free(to);
    return ok ? to : NULL;
}

static gnnc_status add_edges(Subgraph *to, const cJSON *table) {
    cJSON *from[2] = {cJSON_GetObjectItem(table, "src"), cJSON_GetObjectItem(table, "dst")};
    gnnc_array a[2];
    int64_t *end[2];
    gnnc_status st;
    for (int i = 0; i < 2; i++) {
        int64_t n = 0;
        end[i] = ends(from[i], &n);
        a[i] = array_of(NULL, n, 0);
        a[i].data = end[i];
        a[i].dtype = GNNC_DT_I64;
    }
    if (end[0] && end[1])
        st = told(to, gnnc_graph_add_edges(to->graph, table->string, from[0]->child->valuestring,
                                           from[1]->child->valuestring, &a[0], &a[1]));
    else
        st = malformed(to, "no 'src' and 'dst' of edges:", table->string);
    free(end[0]);
    free(end[1]);
    return st;
}

/* The session's next request; `to->why` says what is wrong with it. */
static gnnc_status fill_subgraph(gnnc_session *s, const cJSON *request, Subgraph *to) {
    const cJSON *nodes = cJSON_GetObjectItem(request, "nodes"),
                *edges = cJSON_GetObjectItem(request, "edges");
    *to = (Subgraph){0};
    gnnc_status st = gnnc_session_subgraph(s, &to->graph);
    for (const cJSON *t = nodes ? nodes->child : NULL; t && st == GNNC_OK; t = t->next)
        st = cJSON_IsObject(nodes) ? add_nodes(to, t) : malformed(to, "no object:", "nodes");
    for (const cJSON *t = edges ? edges->child : NULL; t && st == GNNC_OK; t = t->next)
        st = cJSON_IsObject(edges) ? add_edges(to, t) : malformed(to, "no object:", "edges");
    for (const cJSON *t = nodes ? nodes->child : NULL; t && st == GNNC_OK; t = t->next)
        st = add_columns(to, t);
    for (const cJSON *t = edges ? edges->child : NULL; t && st == GNNC_OK; t = t->next)
        st = add_columns(to, t);
    return st == GNNC_OK ? told(to, gnnc_graph_commit(to->graph)) : st;
}
