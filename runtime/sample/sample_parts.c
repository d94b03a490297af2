/* Batches of whole parts: graphs (as PyG's DataLoader collates them), clusters (Chiang et al., KDD
 * 2019, algorithm 1).  Nodes come part by part, in the order of their rows. */
#include "sample_impl.h"

/* Lists the nodes of the type in the n parts as seeds; those of a part have one tree. */
static gnnc_status list_nodes(RtSampler *s, int type, const RtParts *p, const int32_t *part,
                              int64_t n, RtSeeds *out, RtError *err) {
    const int64_t *ptr = p->ptr[type];
    const int32_t *row = p->row ? p->row[type] : NULL;
    int64_t n_nodes = 0, k = 0;
    for (int64_t i = 0; i < n; i++) n_nodes += ptr[part[i] + 1] - ptr[part[i]];
    gnnc_status st = rt_grow(&s->growth, &s->part_id[type], n_nodes, sizeof(int32_t), 0, err);
    if (st == GNNC_OK)
        st = rt_grow(&s->growth, &s->part_tree[type], n_nodes, sizeof(int32_t), 0, err);
    if (st != GNNC_OK) return st;
    int32_t *id = s->part_id[type].p, *tree = s->part_tree[type].p;
    for (int64_t i = 0; i < n; i++)
        for (int64_t v = ptr[part[i]]; v < ptr[part[i] + 1]; v++, k++) {
            id[k] = row ? row[v] : (int32_t)v;
            tree[k] = (int32_t)i;
        }
    *out = (RtSeeds){.type = type, .n = n_nodes, .id = id, .tree = tree};
    return GNNC_OK;
}

gnnc_status rt_sample_parts(RtSampler *s, const RtSampleAt *at, const RtParts *p,
                            const int32_t *part, int64_t n, RtBatch *b, RtError *err) {
    RtSeeds groups[64] = {{0}};
    int n_groups = 0;
    gnnc_status st = GNNC_OK;
    if (s->spec.how.n_hops || s->spec.how.edges != RT_EDGES_INDUCED || s->spec.temporal ||
        s->g.n_types > 64)
        return rt_fail(err, GNNC_E_ARG, "batches of whole parts: induced, without hops");
    for (int64_t i = 0; i < n; i++)
        if (part[i] < 0 || part[i] >= p->n)
            return rt_fail(err, GNNC_E_RANGE, "part %d of %lld", part[i], (long long)p->n);
    for (int t = 0; t < s->g.n_types && st == GNNC_OK; t++)
        if (p->ptr[t]) st = list_nodes(s, t, p, part, n, &groups[n_groups++], err);
    return st == GNNC_OK ? rt_sample_groups(s, at, groups, n_groups, b, err) : st;
}
