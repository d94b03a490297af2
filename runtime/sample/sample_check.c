/* Proof that a batch holds nothing newer than the time of its seeds: from the finished
 * batch and the tables alone, so it also finds what a picker or a wrong claim
 * (time_sorted) let through.  A seed itself may be as new as its own time, and what its own edges
 * lead to as it likes. */
#include "sample_impl.h"

/* Fails: a row of time t was read for a seed that is asked about at time `at`. */
static gnnc_status newer(const char *what, int64_t row, double t, double at, RtError *err) {
    return rt_fail(err, GNNC_E_ASSERT,
                   "temporal sampling: row %lld of '%s' at %.17g was read for "
                   "a seed at %.17g",
                   (long long)row, what, t, at);
}

/* Whether the node is one that a seed refers to itself: such rows are seen whatever their times. */
static bool is_seeds_own_source(const RtSampleGraph *g, const RtBatch *b, int type, int64_t node) {
    for (int r = 0; r < g->n_rels; r++) {
        const RtBatchEdges *e = &b->edges[r];
        if (!g->rel[r].own || g->rel[r].src_type != type) continue;
        for (int64_t i = 0; i < e->ptr[b->nodes[g->rel[r].dst_type].end[0]]; i++)
            if (e->src[i] == node) return true;
    }
    return false;
}

/* Is each node of the type known at the time of its tree's seed? Seeds themselves may have exactly
 * that time. */
static gnnc_status check_nodes(const RtSampleGraph *g, const double *tree_time, const RtBatch *b,
                               int type, RtError *err) {
    const RtSampleType *t = &g->type[type];
    const RtBatchNodes *v = &b->nodes[type];
    for (int64_t i = 0; t->time && i < v->n; i++) {
        double at = tree_time[v->tree[i]], time = t->time[v->id[i]];
        if (!rt_is_known(time, at, t->inclusive || i < v->end[0]) &&
            !is_seeds_own_source(g, b, type, i))
            return newer(t->name, v->id[i], time, at, err);
    }
    return GNNC_OK;
}

/* Is each edge of the relation known at the time of its tree's seed? */
static gnnc_status check_edges(const RtSampleGraph *g, const double *tree_time, const RtBatch *b,
                               int rel, RtError *err) {
    const RtSampleRel *r = &g->rel[rel];
    const RtBatchEdges *e = &b->edges[rel];
    for (int64_t i = 0; r->time && i < e->n; i++) {
        double at = tree_time[b->nodes[r->dst_type].tree[e->dst[i]]];
        if (!rt_is_known(r->time[e->pos[i]], at, r->inclusive))
            return newer(r->name, e->pos[i], r->time[e->pos[i]], at, err);
    }
    return GNNC_OK;
}

gnnc_status rt_sample_check(const RtSampleGraph *g, const double *tree_time, const RtBatch *b,
                            RtError *err) {
    gnnc_status st = GNNC_OK;
    for (int t = 0; t < g->n_types && st == GNNC_OK; t++) st = check_nodes(g, tree_time, b, t, err);
    for (int r = 0; r < g->n_rels && st == GNNC_OK; r++) st = check_edges(g, tree_time, b, r, err);
    return st;
}
