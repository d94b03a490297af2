/* Random graphs for the sampler's tests, and what must hold of every batch. */
#ifndef SAMPLE_UTIL_H
#define SAMPLE_UTIL_H

#include "test.h"

#include <math.h>

#include "rt_test_util.h"
#include "runtime/exec/rng.h"
#include "runtime/sample/sample.h"
#include "runtime/sample/sample_key.h"

static inline uint32_t some(uint32_t seed, uint32_t i, uint32_t below) {
    return rt_mix32(rt_mix32(i + 1) ^ (seed * 0x9E3779B9u)) % below;
}

/* Two types (0: 60 user, 1: 40 item); relations follows 0>0, buys 0>1, bought 1>0 (the
 * reverse of buys), similar 1>1 and an empty one. Node 7 is linked to by everyone. */
enum { N_TYPES = 2, N_RELS = 5, N_USERS = 60, N_ITEMS = 40, FOLLOWS = 0, BUYS, BOUGHT, SIMILAR };

typedef struct {
    RtPool pool;
    RtRelation r[N_RELS];
    RtSampleType type[N_TYPES];
    RtSampleRel rel[N_RELS];
    RtSampleGraph g;
    double *user_time, *item_time, *edge_time[N_RELS];
    float *weight[N_RELS];
} World;

static inline void world_rel(World *w, uint32_t seed, int k, int src, int dst, int64_t n) {
    int64_t count[2] = {N_USERS, N_ITEMS};
    int32_t *s = RT_NEWN(&w->pool, int32_t, n), *d = RT_NEWN(&w->pool, int32_t, n);
    for (int64_t e = 0; e < n; e++) {
        s[e] = (int32_t)some(seed + 1, (uint32_t)(e + 1000 * k), (uint32_t)count[src]);
        d[e] = (int32_t)some(seed + 2, (uint32_t)(e + 1000 * k), (uint32_t)count[dst] - 5);
        if (e % 4 == 0) d[e] = 7;
    }
    const char *names[] = {"follows", "buys", "bought", "similar", "never"};
    if (k == BOUGHT)
        CHECK(rt_relation_reverse(&w->pool, &w->r[BUYS], &w->r[k], NULL) == GNNC_OK);
    else
        CHECK(rt_relation_base(&w->pool, count[src], count[dst], n, s, d, &w->r[k], NULL) ==
              GNNC_OK);
    CHECK(rt_relation_group_src(&w->pool, &w->r[k], NULL) == GNNC_OK);
    w->rel[k] = rt_sample_rel(names[k], src, dst, &w->r[k]);
    w->edge_time[k] = RT_NEWN(&w->pool, double, n);
    w->weight[k] = RT_NEWN(&w->pool, float, n);
    for (int64_t e = 0; e < n; e++) {
        w->edge_time[k][e] = some(seed + 3, (uint32_t)(e + 1000 * k), 50);
        w->weight[k][e] = (float)some(seed + 4, (uint32_t)(e + 1000 * k), 5);
        if (e % 23 == 0) w->edge_time[k][e] = NAN;
    }
}

static inline void world_open(World *w, uint32_t seed) {
    *w = (World){.g = {.n_types = N_TYPES, .n_rels = N_RELS}};
    rt_pool_init(&w->pool, NULL);
    world_rel(w, seed, FOLLOWS, 0, 0, 400);
    world_rel(w, seed, BUYS, 0, 1, 300);
    world_rel(w, seed, BOUGHT, 1, 0, 300);
    world_rel(w, seed, SIMILAR, 1, 1, 150);
    world_rel(w, seed, 4, 0, 1, 0);
    w->rel[FOLLOWS].reverse = FOLLOWS;
    w->rel[BUYS].reverse = BOUGHT;
    w->rel[BOUGHT].reverse = BUYS;
    w->user_time = RT_NEWN(&w->pool, double, N_USERS);
    w->item_time = RT_NEWN(&w->pool, double, N_ITEMS);
    for (int i = 0; i < N_USERS; i++) w->user_time[i] = some(seed + 5, (uint32_t)i, 40);
    for (int i = 0; i < N_ITEMS; i++) w->item_time[i] = some(seed + 6, (uint32_t)i, 40);
    w->type[0] = (RtSampleType){.name = "user", .n = N_USERS};
    w->type[1] = (RtSampleType){.name = "item", .n = N_ITEMS};
    w->g.type = w->type;
    w->g.rel = w->rel;
}

static inline void world_close(World *w) {
    rt_pool_free(&w->pool);
}

/* ---- what holds of every batch ---------------------------------------------------------- */
static inline int32_t tree_of(const RtBatch *b, int type, int64_t i) {
    return b->nodes[type].tree ? b->nodes[type].tree[i] : 0;
}

static inline void check_batch_nodes(const RtSampleGraph *g, const RtBatch *b, int t) {
    const RtBatchNodes *v = &b->nodes[t];
    CHECK(v->end[b->n_hops] == v->n);
    for (int h = 0; h < b->n_hops; h++) CHECK(v->end[h] <= v->end[h + 1]);
    for (int64_t i = 0; i < v->n; i++) {
        CHECK(v->id[i] >= 0 && v->id[i] < g->type[t].n);
        for (int64_t k = 0; k < i && v->n < 3000; k++)
            CHECK(v->id[i] != v->id[k] || tree_of(b, t, i) != tree_of(b, t, k));
    }
}

static inline void check_batch_edges(const RtSampleGraph *g, const RtBatch *b, int r) {
    const RtSampleRel *rel = &g->rel[r];
    const RtBatchEdges *e = &b->edges[r];
    const RtBatchNodes *from = &b->nodes[rel->src_type], *to = &b->nodes[rel->dst_type];
    CHECK(e->ptr[0] == 0 && e->ptr[to->n] == e->n);
    for (int64_t d = 0; d < to->n; d++)
        for (int64_t i = e->ptr[d]; i < e->ptr[d + 1]; i++) {
            int32_t u = from->id[e->src[i]], v = to->id[d];
            CHECK(e->dst[i] == d && e->src[i] < from->n);
            CHECK(e->pos[i] >= rel->ptr[v] && e->pos[i] < rel->ptr[v + 1]);
            CHECK(rel->src[e->pos[i]] == u);
            CHECK(tree_of(b, rel->src_type, e->src[i]) == tree_of(b, rel->dst_type, d));
            CHECK(i == e->ptr[d] || e->pos[i] >= e->pos[i - 1]);
            CHECK(!rel->id || e->id[i] == rel->id[e->pos[i]]);
        }
    for (int h = 0; h <= b->n_hops; h++) CHECK(e->end[h] == e->ptr[to->end[h]]);
}

/* What a layer reads lies in the prefixes it is promised. */
static inline void check_batch_trim(const RtSampleGraph *g, const RtBatch *b) {
    for (int h = 0; h <= b->n_hops + 1; h++)
        for (int r = 0; r < b->n_rels; r++) {
            const RtSampleRel *rel = &g->rel[r];
            int64_t n = rt_batch_edges_needed(b, r, h);
            CHECK(n == b->edges[r].ptr[rt_batch_nodes_needed(b, rel->dst_type, h)]);
            for (int64_t i = 0; i < n; i++)
                CHECK(b->edges[r].src[i] < rt_batch_nodes_needed(b, rel->src_type, h + 1));
        }
}

static inline void check_batch(const RtSampleGraph *g, const RtBatch *b) {
    for (int t = 0; t < g->n_types; t++) check_batch_nodes(g, b, t);
    for (int r = 0; r < g->n_rels; r++) check_batch_edges(g, b, r);
    check_batch_trim(g, b);
}

static inline bool same_bytes(const void *x, const void *y, int64_t n, size_t size) {
    return n == 0 || memcmp(x, y, (size_t)n * size) == 0;
}

static inline bool same_batch(const RtBatch *x, const RtBatch *y) {
    bool ok = x->n_types == y->n_types && x->n_rels == y->n_rels && x->n_groups == y->n_groups;
    for (int t = 0; ok && t < x->n_types; t++) {
        const RtBatchNodes *a = &x->nodes[t], *b = &y->nodes[t];
        ok = a->n == b->n && same_bytes(a->id, b->id, a->n, 4) && !a->tree == !b->tree &&
             (!a->tree || same_bytes(a->tree, b->tree, a->n, 4)) &&
             same_bytes(a->end, b->end, x->n_hops + 1, 8);
    }
    for (int r = 0; ok && r < x->n_rels; r++) {
        const RtBatchEdges *a = &x->edges[r], *b = &y->edges[r];
        ok = a->n == b->n && same_bytes(a->src, b->src, a->n, 4) &&
             same_bytes(a->dst, b->dst, a->n, 4) && same_bytes(a->pos, b->pos, a->n, 8) &&
             same_bytes(a->end, b->end, x->n_hops + 1, 8);
    }
    for (int i = 0; ok && i < x->n_groups; i++)
        ok = x->n_seeds[i] == y->n_seeds[i] && same_bytes(x->seed[i], y->seed[i], x->n_seeds[i], 4);
    return ok;
}

static inline RtSampler *sampler_of(const RtSampleGraph *g, const RtSampleSpec *spec, RtBatch **b) {
    RtSampler *s;
    RtError err = {""};
    CHECK_MSG(rt_sampler_new(&s, NULL, g, spec, NULL, 1, &err) == GNNC_OK, "%s", err.text);
    CHECK(rt_sampler_batch(s, b, &err) == GNNC_OK);
    return s;
}

#endif
