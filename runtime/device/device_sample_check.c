/* Proof that the device drew what the host draws. */
#include <string.h>

#include "device_sample_impl.h"

static bool same(const void *a, const void *b, int64_t n, size_t size) {
    if (n == 0 || (!a && !b)) return true;
    return a && b && memcmp(a, b, (size_t)n * size) == 0;
}

static const char *node_difference(const RtBatchNodes *a, const RtBatchNodes *b, int n_hops) {
    if (a->n != b->n) return "count";
    if (!same(a->end, b->end, n_hops + 1, sizeof *a->end)) return "ends of hops";
    if (!same(a->id, b->id, a->n, sizeof *a->id)) return "ids";
    return same(a->tree, b->tree, a->n, sizeof *a->tree) ? NULL : "trees";
}

/* In what the edges of two batches differ, in a word; NULL: in nothing. */
static const char *edge_difference(const RtBatchEdges *a, const RtBatchEdges *b, int n_hops,
                                   int64_t n_dst) {
    if (a->n != b->n) return "count";
    if (!same(a->end, b->end, n_hops + 1, sizeof *a->end)) return "ends of hops";
    if (!same(a->ptr, b->ptr, n_dst + 1, sizeof *a->ptr)) return "pointers";
    if (!same(a->src, b->src, a->n, sizeof *a->src)) return "sources";
    if (!same(a->dst, b->dst, a->n, sizeof *a->dst)) return "destinations";
    if (!same(a->pos, b->pos, a->n, sizeof *a->pos)) return "positions";
    return same(a->id, b->id, a->n, sizeof *a->id) ? NULL : "logical ids";
}

/* Compares a batch drawn on the device with the host's, and fails with the first difference. */
gnnc_status rt_device_sample_check(const RtDeviceSampler *s, const RtBatch *a, const RtBatch *b,
                                   RtError *err) {
    const char *what = NULL;
    for (int t = 0; t < a->n_types; t++)
        if ((what = node_difference(&a->nodes[t], &b->nodes[t], a->n_hops)))
            return rt_fail(err, GNNC_E_ASSERT, "batch %lld: '%s': other %s on the device",
                           (long long)a->number, s->g.type[t].name, what);
    for (int r = 0; r < a->n_rels; r++)
        if ((what = edge_difference(&a->edges[r], &b->edges[r], a->n_hops,
                                    a->nodes[s->g.rel[r].dst_type].n)))
            return rt_fail(err, GNNC_E_ASSERT, "batch %lld: '%s': other %s on the device",
                           (long long)a->number, s->g.rel[r].name, what);
    bool seeds = a->n_groups == b->n_groups;
    for (int g = 0; g < a->n_groups && seeds; g++)
        seeds = a->n_seeds[g] == b->n_seeds[g] &&
                same(a->seed[g], b->seed[g], a->n_seeds[g], sizeof *a->seed[g]);
    if (seeds) return GNNC_OK;
    return rt_fail(err, GNNC_E_ASSERT, "batch %lld: other numbers of seeds on the device",
                   (long long)a->number);
}
