/* Clusters for batches (Cluster-GCN: Chiang et al., KDD 2019, algorithm 1), by METIS's
 * k-way partitioning (Karypis and Kumar, SIAM J. Sci. Comput. 20(1), 1998).
 *
 * All node types lie in one numbering; edges of all relations count in both directions,
 * each pair once, as METIS wants them. */
#include "sample.h"

#if RT_HAVE_METIS
#include <limits.h>
#include <metis.h>
#include <string.h>

bool rt_sample_has_clusters(void) {
    return true;
}

typedef struct {
    const RtSampleGraph *g;
    RtPool pool;
    int64_t n;
    int64_t *first; /* [n_types + 1] number of the first node of a type */
    idx_t *ptr, *adj, *part;
} Cut;

/* fn(cut, u, v) for both directions of every edge that is no loop. */
static void each_edge(Cut *c, void (*fn)(Cut *, int64_t, int64_t)) {
    for (int k = 0; k < c->g->n_rels; k++) {
        const RtSampleRel *r = &c->g->rel[k];
        int64_t n_dst = c->g->type[r->dst_type].n;
        for (int64_t d = 0; d < n_dst; d++)
            for (int64_t e = r->ptr[d]; e < r->ptr[d + 1]; e++) {
                int64_t u = c->first[r->src_type] + r->src[e], v = c->first[r->dst_type] + d;
                if (u == v) continue;
                fn(c, u, v);
                fn(c, v, u);
            }
    }
}

static void count(Cut *c, int64_t u, int64_t v) {
    (void)v;
    c->ptr[u + 2]++;
}

static void place(Cut *c, int64_t u, int64_t v) {
    c->adj[c->ptr[u + 1]++] = (idx_t)v;
}

/* Repeated neighbours go: last[v] tells for whom v was seen last. */
static gnnc_status drop_repeated(Cut *c, RtError *err) {
    idx_t *last = RT_NEWN(&c->pool, idx_t, c->n), k = 0;
    if (!last) return rt_fail_nomem(err, "clusters");
    for (int64_t u = 0; u < c->n; u++) {
        idx_t lo = c->ptr[u], hi = c->ptr[u + 1];
        c->ptr[u] = k;
        for (idx_t i = lo; i < hi; i++) {
            if (last[c->adj[i]] == u + 1) continue;
            last[c->adj[i]] = (idx_t)u + 1;
            c->adj[k++] = c->adj[i];
        }
    }
    c->ptr[c->n] = k;
    return GNNC_OK;
}

static gnnc_status build(Cut *c, RtError *err) {
    int64_t n_edges = 0;
    c->first = RT_NEWN(&c->pool, int64_t, c->g->n_types + 1);
    if (!c->first) return rt_fail_nomem(err, "clusters");
    for (int t = 0; t < c->g->n_types; t++) c->first[t + 1] = c->n += c->g->type[t].n;
    for (int k = 0; k < c->g->n_rels; k++) n_edges += c->g->rel[k].n_edges;
    if (c->n >= IDX_MAX || n_edges >= IDX_MAX / 2)
        return rt_fail(err, GNNC_E_RANGE, "clusters: this METIS counts edges in %d bits",
                       (int)sizeof(idx_t) * CHAR_BIT);
    c->ptr = RT_NEWN(&c->pool, idx_t, c->n + 2);
    c->adj = RT_NEWN(&c->pool, idx_t, 2 * n_edges);
    c->part = RT_NEWN(&c->pool, idx_t, c->n);
    if (!c->ptr || !c->adj || !c->part) return rt_fail_nomem(err, "clusters");
    each_edge(c, count);
    for (int64_t u = 2; u <= c->n; u++) c->ptr[u] += c->ptr[u - 1];
    each_edge(c, place);
    return drop_repeated(c, err);
}

static gnnc_status partition(Cut *c, int n_parts, uint64_t seed, RtError *err) {
    idx_t option[METIS_NOPTIONS], n = (idx_t)c->n, n_con = 1, parts = n_parts, cut;
    if (n_parts == 1 || c->n == 0) return GNNC_OK; /* all in part 0 */
    METIS_SetDefaultOptions(option);
    option[METIS_OPTION_SEED] = (idx_t)(seed & 0x7fffffff);
    int rc = METIS_PartGraphKway(&n, &n_con, c->ptr, c->adj, NULL, NULL, NULL, &parts, NULL, NULL,
                                 option, &cut, c->part);
    if (rc == METIS_OK) return GNNC_OK;
    if (rc == METIS_ERROR_MEMORY) return rt_fail_nomem(err, "clusters");
    return rt_fail(err, GNNC_E_ARG, "clusters: METIS failed with status %d", rc);
}

gnnc_status rt_sample_clusters(const RtSampleGraph *g, int n_parts, uint64_t seed,
                               const RtAlloc *from, int32_t *const *part, RtError *err) {
    Cut c = {.g = g};
    if (n_parts < 1) return rt_fail(err, GNNC_E_RANGE, "%d clusters", n_parts);
    rt_pool_init(&c.pool, from);
    gnnc_status st = build(&c, err);
    if (st == GNNC_OK) st = partition(&c, n_parts, seed, err);
    for (int t = 0; t < g->n_types && st == GNNC_OK; t++)
        for (int64_t i = 0; i < g->type[t].n; i++) part[t][i] = (int32_t)c.part[c.first[t] + i];
    rt_pool_free(&c.pool);
    return st;
}

#else

bool rt_sample_has_clusters(void) {
    return false;
}

gnnc_status rt_sample_clusters(const RtSampleGraph *g, int n_parts, uint64_t seed,
                               const RtAlloc *from, int32_t *const *part, RtError *err) {
    (void)g, (void)n_parts, (void)seed, (void)from, (void)part;
    return rt_fail(err, GNNC_E_STATE,
                   "clusters need METIS, which gnnc was built without: install libmetis-dev and "
                   "build again");
}
#endif
