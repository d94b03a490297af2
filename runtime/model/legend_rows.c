/* Rows by what they are called, and links by their sources. */
#include <string.h>

#include "runtime/bind/bind.h"
#include "legend.h"
#include "runtime/data/csv.h"
#include "runtime/graph/graph.h"

/* The trainer has given back the edges that no kernel reads. */
static gnnc_status open_again(gnnc_legend *g, const gnnc_trainer *t, const char *name,
                              const RtTable **out, RtError *err) {
    const char *dir = t->rt.bound->dir;
    *out = rt_dataset_edges(t->snapshot->data, name);
    if (*out && (*out)->src) return GNNC_OK;
    gnnc_status st = rt_dataset_open(&g->from, dir, true, &g->again, err);
    if (st != GNNC_OK) return st;
    *out = rt_dataset_edges(g->again, name);
    if (*out && (*out)->count == t->x.n[t->program->spaces[g->space].sym]) return GNNC_OK;
    return rt_fail(err, GNNC_E_FORMAT, "%s: '%s' has changed since it was read", dir, name);
}

gnnc_status rt_legend_edges(gnnc_legend *g, const gnnc_trainer *t, RtError *err) {
    const rt_space *s = &t->program->spaces[g->space];
    const RtTable *e;
    if (s->rel != RT_REL_BASE)
        return rt_fail(err, GNNC_E_ARG,
                       "the rows of '%s' are edges that the model derives, and have no ids",
                       s->name);
    gnnc_status st = open_again(g, t, s->name, &e, err);
    if (st != GNNC_OK) return st;
    if (e->count > INT32_MAX)
        return rt_fail(err, GNNC_E_RANGE, "'%s' has rows of more than 2^31 - 1 edges", s->name);
    const RtDataset *d = g->again ? g->again : t->snapshot->data;
    g->edges = &g->own;
    return rt_relation_base(&g->pool, d->nodes[e->src_type].count, d->nodes[e->dst_type].count,
                            e->count, e->src, e->dst, &g->own, err);
}

/* ---- by name ------------------------------------------------------------------------------ */
/* Makes the index by which rows are found by name, when it is first needed. */
static gnnc_status index_names(gnnc_legend *g) {
    if (g->names.cap) return GNNC_OK;
    if (!g->id[0])
        return rt_fail(&g->err, GNNC_E_MISSING, "the data do not name the rows of '%s'",
                       g->what[0]);
    RtNames names;
    if (!rt_names_new(&g->pool, &names, g->n_nodes + 1)) return rt_fail_nomem(&g->err, g->what[0]);
    for (int64_t i = 0; i < g->n_nodes; i++) rt_names_add(&names, g->id[0][i]);
    g->names = names;
    return GNNC_OK;
}

gnnc_status gnnc_legend_find(gnnc_legend *g, const char *id, int64_t *row) {
    if (!g || !id || !row) return GNNC_E_ARG;
    g->err.text[0] = '\0';
    gnnc_status st = index_names(g);
    if (st != GNNC_OK) return st;
    *row = rt_names_find(&g->names, id);
    if (*row >= 0) return GNNC_OK;
    return rt_fail(&g->err, GNNC_E_RANGE, "no row of '%s' is called %s", g->what[0],
                   rt_cell_quoted(id).s);
}

/* ---- links -------------------------------------------------------------------------------- */
/* Groups the links by source, when it is first needed. */
static gnnc_status group_links(gnnc_legend *g) {
    if (g->by_source.ptr) return GNNC_OK;
    return rt_group(&g->pool, g->edges->src, g->edges->n_edges, g->edges->n_src, &g->by_source,
                    &g->err);
}

/* Fails unless the result's rows are edges. */
static gnnc_status need_edges(gnnc_legend *g) {
    g->err.text[0] = '\0';
    return g->edges ? GNNC_OK
                    : rt_fail(&g->err, GNNC_E_ARG, "rows of '%s' are no edges", g->what[0]);
}

gnnc_status gnnc_legend_links(gnnc_legend *g, int64_t source, int64_t *n, int64_t room,
                              int64_t *row) {
    if (!g || !n || room < 0 || (room && !row)) return GNNC_E_ARG;
    gnnc_status st = need_edges(g);
    if (st == GNNC_OK && (source < 0 || source >= g->n_nodes))
        st = rt_fail(&g->err, GNNC_E_RANGE, "'%s' has no row %lld: %lld, from 0", g->what[0],
                     (long long)source, (long long)g->n_nodes);
    if (st == GNNC_OK) st = group_links(g);
    if (st != GNNC_OK) return st;
    const RtGroups *by = &g->by_source;
    *n = by->ptr[source + 1] - by->ptr[source];
    for (int64_t i = 0; i < *n && i < room; i++) row[i] = by->perm[by->ptr[source] + i];
    return GNNC_OK;
}

gnnc_status gnnc_legend_ends(gnnc_legend *g, int64_t row, int64_t *source, int64_t *destination) {
    if (!g || !source || !destination) return GNNC_E_ARG;
    gnnc_status st = need_edges(g);
    if (st != GNNC_OK) return st;
    if (row < 0 || row >= g->n_rows)
        return rt_fail(&g->err, GNNC_E_RANGE, "no row %lld: %lld, from 0", (long long)row,
                       (long long)g->n_rows);
    *source = g->edges->src[row];
    *destination = g->edges->dst[row];
    return GNNC_OK;
}
