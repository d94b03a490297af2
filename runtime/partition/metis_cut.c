#include "metis_cut.h"

/* Ours are the lists and weights, 8 bytes an edge; METIS adds weights of edges and the coarser
 * graphs. Measured: 110 bytes an edge in all, of 10 million. */
int64_t rt_metis_bytes(int64_t n, int64_t n_edges, int n_weights) {
    return 112 * n_edges + (32 + 8 * (int64_t)n_weights) * n;
}

#if RT_HAVE_METIS
#include <limits.h>
#include <metis.h>

bool rt_has_metis(void) {
    return true;
}

typedef struct {
    const RtMetisGraph *how;
    RtPool pool;
    idx_t *ptr, *adj;
} Lists;

/* Counts an edge for both its ends; one to itself is none to METIS. */
static void count(void *to, int64_t u, int64_t v) {
    Lists *l = to;
    if (u == v) return;
    l->ptr[u + 2]++;
    l->ptr[v + 2]++;
}

/* Puts an edge into the lists of both its ends. */
static void place(void *to, int64_t u, int64_t v) {
    Lists *l = to;
    if (u == v) return;
    l->adj[l->ptr[u + 1]++] = (idx_t)v;
    l->adj[l->ptr[v + 1]++] = (idx_t)u;
}

/* Removes repeated neighbours from each vertex's list. last[v] is the vertex for which v was seen
 * last. */
static gnnc_status drop_repeated(Lists *l, RtError *err) {
    int64_t n = l->how->n;
    idx_t *last = RT_NEWN(&l->pool, idx_t, n), k = 0;
    if (!last) return rt_fail_nomem(err, l->how->what);
    for (int64_t u = 0; u < n; u++) {
        idx_t lo = l->ptr[u], hi = l->ptr[u + 1];
        l->ptr[u] = k;
        for (idx_t i = lo; i < hi; i++) {
            if (last[l->adj[i]] == u + 1) continue;
            last[l->adj[i]] = (idx_t)u + 1;
            l->adj[k++] = l->adj[i];
        }
    }
    l->ptr[n] = k;
    rt_pool_drop(&l->pool, last);
    return GNNC_OK;
}

/* Makes the adjacency lists (CSR) that METIS reads, in two walks over the edges: one counts
 * neighbours, one places them; then removes repeated ones. */
static gnnc_status build(Lists *l, RtError *err) {
    const RtMetisGraph *how = l->how;
    if (how->n >= IDX_MAX || how->n_edges >= IDX_MAX / 2)
        return rt_fail(err, GNNC_E_RANGE, "%s: this METIS counts edges in %d bits", how->what,
                       (int)sizeof(idx_t) * CHAR_BIT);
    l->ptr = RT_NEWN(&l->pool, idx_t, how->n + 2);
    l->adj = RT_NEWN(&l->pool, idx_t, 2 * how->n_edges);
    if (!l->ptr || !l->adj) return rt_fail_nomem(err, how->what);
    how->each_edge(how->user, count, l);
    for (int64_t u = 2; u <= how->n; u++) l->ptr[u] += l->ptr[u - 1];
    how->each_edge(how->user, place, l);
    return drop_repeated(l, err);
}

/* Cuts the graph of the lists into parts with METIS's k-way partitioning (Karypis & Kumar 1998);
 * part[i] gets the part of vertex i. */
static gnnc_status cut(Lists *l, int32_t *part, RtError *err) {
    const RtMetisGraph *how = l->how;
    idx_t option[METIS_NOPTIONS], n = (idx_t)how->n, parts = how->n_parts, n_cut;
    idx_t n_con = how->n_weights ? how->n_weights : 1, *weight = NULL;
    idx_t *to = RT_NEWN(&l->pool, idx_t, how->n);
    if (how->n_weights) weight = RT_NEWN(&l->pool, idx_t, how->n * n_con);
    if (!to || (how->n_weights && !weight)) return rt_fail_nomem(err, how->what);
    for (int64_t i = 0; weight && i < how->n * n_con; i++) weight[i] = how->weight[i];
    METIS_SetDefaultOptions(option);
    option[METIS_OPTION_SEED] = (idx_t)(how->seed & 0x7fffffff);
    int rc = METIS_PartGraphKway(&n, &n_con, l->ptr, l->adj, weight, NULL, NULL, &parts, NULL, NULL,
                                 option, &n_cut, to);
    if (rc == METIS_ERROR_MEMORY) return rt_fail_nomem(err, how->what);
    if (rc != METIS_OK)
        return rt_fail(err, GNNC_E_ARG, "%s: METIS failed with status %d", how->what, rc);
    for (int64_t i = 0; i < how->n; i++) part[i] = (int32_t)to[i];
    return GNNC_OK;
}

gnnc_status rt_metis_partition(const RtMetisGraph *how, const RtAlloc *from, int32_t *part,
                               RtError *err) {
    Lists l = {.how = how};
    for (int64_t i = 0; i < how->n; i++) part[i] = 0;
    rt_pool_init(&l.pool, from);
    gnnc_status st = build(&l, err);
    if (st == GNNC_OK && how->n_parts > 1 && how->n > 0) st = cut(&l, part, err);
    rt_pool_free(&l.pool);
    return st;
}

#else

bool rt_has_metis(void) {
    return false;
}

gnnc_status rt_metis_partition(const RtMetisGraph *how, const RtAlloc *from, int32_t *part,
                               RtError *err) {
    (void)from, (void)part;
    return rt_fail(
        err, GNNC_E_STATE,
        "%s need METIS, which gnnc was built without: install libmetis-dev and build again",
        how->what);
}
#endif
