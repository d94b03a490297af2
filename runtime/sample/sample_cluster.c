/* Clusters for batches (Cluster-GCN: Chiang et al., KDD 2019, algorithm 1), by METIS.  All node
 * types lie in one numbering; edges of all relations count. */
#include "runtime/partition/metis_cut.h"
#include "sample.h"

bool rt_sample_has_clusters(void) {
    return rt_has_metis();
}

typedef struct {
    const RtSampleGraph *g;
    int64_t *first; /* [n_types + 1] number of the first node of a type */
} Numbers;

/* Tells METIS every edge of the graph, with nodes of all types numbered one type behind the
 * other. */
static void each_edge(void *user, RtEdgeVisit *visit, void *to) {
    const Numbers *c = user;
    for (int k = 0; k < c->g->n_rels; k++) {
        const RtSampleRel *r = &c->g->rel[k];
        for (int64_t d = 0; d < c->g->type[r->dst_type].n; d++)
            for (int64_t e = r->ptr[d]; e < r->ptr[d + 1]; e++)
                visit(to, c->first[r->src_type] + r->src[e], c->first[r->dst_type] + d);
    }
}

/* Cuts the nodes of all types into n_parts clusters with METIS: part[t][i] is the cluster of node i
 * of type t. */
static gnnc_status cut(RtPool *pool, const RtSampleGraph *g, int n_parts, uint64_t seed,
                       int32_t *const *part, RtError *err) {
    Numbers c = {g, RT_NEWN(pool, int64_t, g->n_types + 1)};
    RtMetisGraph how = {
        .what = "clusters", .each_edge = each_edge, .user = &c, .n_parts = n_parts, .seed = seed};
    if (!c.first) return rt_fail_nomem(err, how.what);
    for (int t = 0; t < g->n_types; t++) c.first[t + 1] = how.n += g->type[t].n;
    for (int k = 0; k < g->n_rels; k++) how.n_edges += g->rel[k].n_edges;
    int32_t *to = RT_NEWN(pool, int32_t, how.n);
    if (!to) return rt_fail_nomem(err, how.what);
    gnnc_status st = rt_metis_partition(&how, &pool->from, to, err);
    for (int t = 0; t < g->n_types && st == GNNC_OK; t++)
        for (int64_t i = 0; i < g->type[t].n; i++) part[t][i] = to[c.first[t] + i];
    return st;
}

gnnc_status rt_sample_clusters(const RtSampleGraph *g, int n_parts, uint64_t seed,
                               const RtAlloc *from, int32_t *const *part, RtError *err) {
    RtPool pool;
    if (n_parts < 1) return rt_fail(err, GNNC_E_RANGE, "%d clusters", n_parts);
    rt_pool_init(&pool, from);
    gnnc_status st = cut(&pool, g, n_parts, seed, part, err);
    rt_pool_free(&pool);
    return st;
}
