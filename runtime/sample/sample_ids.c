/* The table that numbers the nodes of a batch in the order of their first appearance. */
#include <string.h>

#include "sample_impl.h"

enum { FIRST_REGION = 1024 };

/* Makes an empty table of n_shards regions. */
gnnc_status rt_ids_init(RtIds *t, RtGrowth *g, int n_shards, RtError *err) {
    t->n_shards = n_shards < RT_MOST_SHARDS ? n_shards : RT_MOST_SHARDS;
    t->region = FIRST_REGION;
    gnnc_status st = rt_grow(g, &t->buf, t->n_shards * t->region, sizeof(RtIdSlot), 0, err);
    t->slot = t->buf.p;
    return st;
}

void rt_ids_begin(RtIds *t) {
    memset(t->fill, 0, sizeof t->fill);
    atomic_store(&t->full, false);
    if (++t->stamp != 0) return;
    memset(t->slot, 0, (size_t)(t->n_shards * t->region) * sizeof *t->slot);
    t->stamp = 1;
}

/* Adds a key that is not there, with its local number; its shard has room. */
static void insert(RtIds *t, uint64_t key, int32_t local) {
    uint64_t hash = rt_splitmix64(key);
    RtIdSlot *s = &t->slot[rt_ids_slot(t, key, hash)];
    *s = (RtIdSlot){key, local, t->stamp};
    t->fill[rt_ids_shard(t, hash)]++;
}

/* Adds all nodes that the batch has; false: a shard is full. */
static bool insert_all(RtIds *t, const RtBatchNodes *have) {
    for (int64_t i = 0; i < have->n; i++) {
        uint64_t key = rt_ids_key(have->tree ? have->tree[i] : 0, have->id[i]);
        if (!rt_ids_may_add(t, rt_ids_shard(t, rt_splitmix64(key)))) return false;
        insert(t, key, (int32_t)i);
    }
    return true;
}

/* Regions double until they hold four times all there is: a shard that is still full then
 * got keys that were chosen for it, and one shard for all is the way out. */
gnnc_status rt_ids_reserve(RtIds *t, RtGrowth *g, const RtBatchNodes *have, int64_t coming,
                           RtError *err) {
    for (;;) {
        int64_t all = t->region * t->n_shards;
        if (!atomic_load(&t->full)) {
            /* only what was added in vain has to go */
        } else if (t->n_shards > 1 && all / 4 >= have->n + coming) {
            t->n_shards = 1;
            for (t->region = FIRST_REGION; t->region < all;) t->region *= 2;
        } else {
            t->region *= 2;
        }
        if (t->region > INT32_MAX / t->n_shards)
            return rt_fail(err, GNNC_E_RANGE, "a batch of more nodes than can be numbered");
        gnnc_status st = rt_grow(g, &t->buf, t->region * t->n_shards, sizeof *t->slot, 0, err);
        if (st != GNNC_OK) return st;
        t->slot = t->buf.p;
        /* Slots of the old shape mean nothing in the new one. */
        memset(t->slot, 0, (size_t)(t->n_shards * t->region) * sizeof *t->slot);
        rt_ids_begin(t);
        if (insert_all(t, have)) return GNNC_OK;
        atomic_store(&t->full, true);
    }
}

gnnc_status rt_ids_add(RtIds *t, RtBatch *b, RtGrowth *g, int type, int32_t tree, int32_t node,
                       int32_t *local, RtError *err) {
    RtBatchNodes *nodes = &b->nodes[type];
    uint64_t key = rt_ids_key(tree, node), hash = rt_splitmix64(key);
    const RtIdSlot *s = &t->slot[rt_ids_slot(t, key, hash)];
    if (s->stamp == t->stamp) {
        *local = s->local;
        return GNNC_OK;
    }
    if (!rt_ids_may_add(t, rt_ids_shard(t, hash))) {
        atomic_store(&t->full, true);
        gnnc_status st = rt_ids_reserve(t, g, nodes, 1, err);
        if (st != GNNC_OK) return st;
        return rt_ids_add(t, b, g, type, tree, node, local, err);
    }
    *local = (int32_t)nodes->n++;
    nodes->id[*local] = node;
    if (nodes->tree) nodes->tree[*local] = tree;
    insert(t, key, *local);
    return GNNC_OK;
}
