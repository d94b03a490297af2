/* What a batch on the device is asked by: keys, seeds and their trees, links that are not to be
 * seen, links to choose negatives for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device_sample_impl.h"
#include "runtime/sample/sample_key.h"

static void *at_host(const RtDrawSlot *slot, size_t offset) {
    return slot->host + offset;
}

static gnnc_status check(const RtDeviceSampler *s, const RtSeeds *groups, const RtDrawnPairs *pairs,
                         RtError *err) {
    const RtSeeds *of = groups;
    int64_t links = pairs ? pairs->n : of->n_links;
    if (of->n < 0 || of->n > s->n_seeds)
        return rt_fail(err, GNNC_E_RANGE, "%lld seeds: a batch has at most %lld", (long long)of->n,
                       (long long)s->n_seeds);
    if (links > s->n_trees || (pairs != NULL) != (s->ends.links != NULL))
        return rt_fail(err, GNNC_E_ARG, "seeds of another sampler");
    if (s->spec.temporal && !of->time)
        return rt_fail(err, GNNC_E_ARG, "temporal sampling needs the times of the seeds");
    for (int64_t i = 0; i < of->n && s->spec.how.disjoint; i++) {
        int64_t tree = of->tree ? of->tree[i] : i;
        if (tree < 0 || tree >= s->n_trees)
            return rt_fail(err, GNNC_E_RANGE, "seed %lld: tree %lld: a batch has at most %lld",
                           (long long)i, (long long)tree, (long long)s->n_trees);
    }
    return GNNC_OK;
}

/* Each tree's key and time: those of its seeds. */
static void ask_trees(const RtDeviceSampler *s, const RtDrawSlot *slot, const RtSeeds *of) {
    int32_t *tree = at_host(slot, s->at.seed_tree), *key = at_host(slot, s->at.tree_key);
    double *time = at_host(slot, s->at.tree_time);
    for (int64_t k = 0; k < s->n_trees && s->spec.temporal; k++) time[k] = NAN;
    for (int64_t i = 0; i < of->n; i++) {
        int32_t k = tree[i] = of->tree ? of->tree[i] : (int32_t)i;
        key[k] = of->key ? of->key[k] : k;
        if (s->spec.temporal) time[k] = of->time[i];
    }
}

static int by_node(const void *a, const void *b) {
    const RtDrawHidden *x = a, *y = b;
    if (x->type != y->type) return x->type < y->type ? -1 : 1;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    return (x->src > y->src) - (x->src < y->src);
}

/* An end of link i: as it is given, or that of the edge. */
static int32_t end_of(const RtDeviceSampler *s, const RtSeeds *groups, const RtDrawnPairs *pairs,
                      int k, int64_t i) {
    if (!pairs) return groups[k].id[i];
    return (k ? s->ends.links->rel->dst : s->ends.links->rel->src)[pairs->edge[i]];
}

/* The links that are not to be seen: each end of one does not see the other. */
static void ask_hidden(const RtDeviceSampler *s, const RtDrawSlot *slot, const RtSeeds *groups,
                       const RtDrawnPairs *pairs) {
    int64_t *first = at_host(slot, s->at.hide_first), n = 0;
    uint64_t *node = at_host(slot, s->at.hide_node);
    int32_t *src = at_host(slot, s->at.hide_src);
    for (int k = 0; k < s->n_groups; k++)
        for (int64_t i = 0; i < groups->n_links; i++) {
            uint64_t tree =
                s->spec.how.disjoint ? (uint64_t)(groups->tree ? groups->tree[i] : i) : 0;
            s->hidden[n++] =
                (RtDrawHidden){.type = s->type[k],
                               .src = end_of(s, groups, pairs, !k, i),
                               .node = tree << 32 | (uint32_t)end_of(s, groups, pairs, k, i)};
        }
    qsort(s->hidden, (size_t)n, sizeof *s->hidden, by_node);
    for (int t = 0, at = 0; t <= s->g.n_types; t++) {
        while (at < n && s->hidden[at].type < t) at++;
        first[t] = at;
    }
    for (int64_t i = 0; i < n; i++) node[i] = s->hidden[i].node, src[i] = s->hidden[i].src;
}

static void ask_seeds(const RtDeviceSampler *s, const RtDrawSlot *slot, const RtSeeds *groups,
                      const RtDrawnPairs *pairs) {
    int32_t *seed = at_host(slot, s->at.seed);
    int64_t *n_links = at_host(slot, s->at.n_links);
    if (!pairs) {
        for (int g = 0; g < s->n_groups; g++)
            memcpy(seed + g * groups->n, groups[g].id, (size_t)groups->n * sizeof *seed);
        return;
    }
    n_links[0] = pairs->n;
    n_links[1] = pairs->k;
    n_links[2] = 0;
    memcpy(at_host(slot, s->at.negative_key), &pairs->key, sizeof pairs->key);
    memcpy(at_host(slot, s->at.edge), pairs->edge, (size_t)pairs->n * sizeof *pairs->edge);
}

gnnc_status rt_draw_ask(const RtDeviceSampler *s, const RtDrawSlot *slot, const RtSampleAt *at,
                        const RtSeeds *groups, const RtDrawnPairs *pairs, RtError *err) {
    uint64_t *key = at_host(slot, s->at.key);
    gnnc_status st = check(s, groups, pairs, err);
    if (st != GNNC_OK) return st;
    for (int i = 0; i < s->spec.how.n_hops * s->g.n_rels; i++)
        key[i] = rt_draw_key(at->seed, at->epoch, at->batch, RT_DRAW_HOP + (uint64_t)i);
    memcpy(at_host(slot, s->at.n_seeds), &groups->n, sizeof groups->n);
    if (s->spec.how.disjoint) ask_trees(s, slot, groups);
    if (s->hidden) ask_hidden(s, slot, groups, pairs);
    ask_seeds(s, slot, groups, pairs);
    return GNNC_OK;
}
