/* What the files of the sampler share. */
#ifndef RUNTIME_SAMPLE_IMPL_H
#define RUNTIME_SAMPLE_IMPL_H

#include <stdatomic.h>

#include "sample.h"
#include "sample_key.h"

/* ---- sample_ids.c: from (tree, node) to the number in the batch ------------------------- */
/* Open addressing in regions, one per shard of the keys, so that members insert side by
 * side without a lock: each into the regions it owns.  An entry counts in the batch whose
 * stamp it bears, so nothing is cleared between batches. */
typedef struct RtIdSlot {
    uint64_t key;  /* tree and node: rt_ids_key */
    int32_t local; /* the number in the batch */
    uint32_t stamp;
} RtIdSlot;

enum { RT_MOST_SHARDS = 64 };

typedef struct RtIds {
    RtIdSlot *slot;
    RtGrow buf;
    int64_t region; /* slots of a shard, a power of two */
    int n_shards;
    uint32_t stamp;               /* of the present batch */
    bool roomy;                   /* keep a third of what may be filled free, for batches to come */
    int64_t fill[RT_MOST_SHARDS]; /* keys of this batch in each */
    atomic_bool full;             /* some shard could not take a key */
} RtIds;

static inline uint64_t rt_ids_key(int32_t tree, int32_t node) {
    return (uint64_t)(uint32_t)tree << 32 | (uint32_t)node;
}
static inline int rt_ids_shard(const RtIds *t, uint64_t hash) {
    return (int)((hash >> 32) * (uint64_t)t->n_shards >> 32);
}
/* The slot of a key, or the free one where it belongs.  Regions are never full. */
static inline int64_t rt_ids_slot(const RtIds *t, uint64_t key, uint64_t hash) {
    int64_t base = rt_ids_shard(t, hash) * t->region, i = (int64_t)hash & (t->region - 1);
    for (;; i = (i + 1) & (t->region - 1)) {
        const RtIdSlot *s = &t->slot[base + i];
        if (s->stamp != t->stamp || s->key == key) return base + i;
    }
}
static inline bool rt_ids_may_add(const RtIds *t, int shard) {
    return t->fill[shard] < t->region / 4 * (t->roomy ? 2 : 3);
}
static inline int32_t rt_ids_find(const RtIds *t, int32_t tree, int32_t node) {
    uint64_t key = rt_ids_key(tree, node);
    const RtIdSlot *s = &t->slot[rt_ids_slot(t, key, rt_splitmix64(key))];
    return s->stamp == t->stamp ? s->local : -1;
}

gnnc_status rt_ids_init(RtIds *t, RtGrowth *g, int n_shards, RtError *err);
void rt_ids_begin(RtIds *t); /* forgets everything */
/* Only what the batch has stays, in more room if the table was full, or in one shard where
 * keys crowd in few.  `coming`: keys about to be added at most. */
gnnc_status rt_ids_reserve(RtIds *t, RtGrowth *g, const RtBatchNodes *have, int64_t coming,
                           RtError *err);
/* By one thread: the number of (tree, node), which joins the batch's nodes if new. */
gnnc_status rt_ids_add(RtIds *t, RtBatch *b, RtGrowth *g, int type, int32_t tree, int32_t node,
                       int32_t *local, RtError *err);

/* ---- sample_pick.c: which edges ------------------------------------------------------------ */
typedef struct RtScored {
    double score; /* the lowest are kept; or the sum of weights so far */
    int64_t pos;  /* of the edge */
} RtScored;

typedef struct RtPicker {
    const RtSampleRel *rel; /* whose edges are picked */
    const double *src_time; /* of the source type, or NULL */
    bool src_inclusive, replace, temporal, recent;
    int64_t fanout;
    uint64_t key;          /* rt_draw_key of hop and relation */
    const int32_t *hidden; /* [n_hidden] ascending: sources that this destination does not see */
    int64_t n_hidden;
} RtPicker;

/* own: of seeds along a relation of theirs, whose sources are known whatever their times. */
RtPicker rt_picker(const RtSampleGraph *g, const RtSampleSpec *spec, int rel, bool own,
                   int64_t fanout, uint64_t key);
/* Must each edge be looked at?  Then scratch holds as many as the node has. */
bool rt_picker_scans(const RtPicker *p);
/* Is the edge, and its source, known at the time? */
static inline bool rt_is_known(double t, double at, bool inclusive) {
    return inclusive ? t <= at : t < at; /* NaN is not */
}
bool rt_picker_knows(const RtPicker *p, int64_t pos, double at);
/* Edges of [lo, hi) for one node, ascending, into pos; returns how many. */
int64_t rt_pick(const RtPicker *p, int64_t lo, int64_t hi, uint64_t state, double at,
                RtScored *scratch, int64_t *pos);
void rt_sort_i64(int64_t *x, int64_t n);

/* ---- sample_hide.c: edges between the ends of links -------- */
/* Of a node type: which sources each of the first n nodes of the batch, its seeds, does not see. */
typedef struct RtHidden {
    int64_t n, *ptr; /* [n + 2] */
    int32_t *src;    /* [ptr[n]] rows of the source type, ascending for each node */
    RtGrow ptr_buf, src_buf;
} RtHidden;

/* ---- the sampler -------- */
/* Consecutive nodes of the frontier of one relation: what a member takes at a time. */
typedef struct RtChunk {
    int rel;
    int64_t lo, hi;        /* local ids of the destination type */
    int64_t at, n;         /* staged entries */
    int64_t n_most;        /* before picking: at most so many */
    int64_t longest;       /* most edges of one node */
    int64_t n_new, new_at; /* nodes first seen here, and the number of the first of them */
    int64_t out_at;        /* where its edges begin in the relation's */
} RtChunk;

struct RtSampler {
    RtPool pool; /* owns everything but what grows */
    RtGrowth growth;
    RtSampleGraph g; /* of these: */
    RtSampleType *type;
    RtSampleRel *rel;
    RtSampleSpec spec;
    RtTeam *team;
    int n_threads;
    int64_t n_batches; /* drawn so far */
    int *src_type;     /* [n_rels] */
    RtIds *ids;        /* [n_types] */
    RtPicker *picker;  /* [n_rels] of the present hop */

    RtChunk *chunk;
    int64_t n_chunks, n_staged; /* of this hop */
    RtGrow chunk_buf;
    /* Staged entries: what was picked, before sources have numbers. */
    int32_t *node;  /* [n_staged] row of the source */
    int64_t *pos;   /* [n_staged] of the edge */
    uint32_t *slot; /* top bit: the first time this key is seen */
    RtGrow node_buf, pos_buf, slot_buf;
    RtGrow *scratch; /* [n_threads] */
    RtGrow tree_time_buf, pair_buf[3];
    double *tree_time; /* [n_trees] temporal */
    int64_t n_trees;
    int n_hops;                  /* of the spec's, those that are drawn: rt_sampler_hops */
    const int32_t *tree_key;     /* [n_trees] RtSeeds.key */
    RtHidden *hidden;            /* [n_types] */
    RtGrow *part_id, *part_tree; /* [n_types] nodes of a batch of parts */
};

typedef void rt_chunk_fn(RtSampler *s, RtBatch *b, RtChunk *c, int member);
/* fn on every chunk, in any order, by whoever is free. */
void rt_sample_each(RtSampler *s, RtBatch *b, bool alone, rt_chunk_fn *fn);
gnnc_status rt_sample_push_chunks(RtSampler *s, int rel, int64_t lo, int64_t hi, RtError *err);

static inline int32_t rt_tree_of(const RtBatch *b, int type, int64_t local) {
    return b->nodes[type].tree ? b->nodes[type].tree[local] : 0;
}
static inline double rt_time_of(const RtSampler *s, const RtBatch *b, int type, int64_t local) {
    return s->spec.temporal ? s->tree_time[rt_tree_of(b, type, local)] : 0;
}

/* When the seeds are there. */
gnnc_status rt_sample_hide(RtSampler *s, const RtBatch *b, const RtSeeds *ends, int n_groups,
                           RtError *err);
/* Does local destination d not see some sources along the relation? */
static inline bool rt_hides(const RtSampler *s, int rel, int64_t d) {
    const RtSampleRel *r = &s->g.rel[rel];
    const RtHidden *h = &s->hidden[r->dst_type];
    return r->hides && d < h->n && h->ptr[d] < h->ptr[d + 1];
}
/* The picker of relation rel for local destination d. */
static inline RtPicker rt_picker_at(const RtSampler *s, int rel, int64_t d) {
    const RtHidden *h = &s->hidden[s->g.rel[rel].dst_type];
    RtPicker p = s->picker[rel];
    if (!rt_hides(s, rel, d)) return p;
    p.hidden = h->src + h->ptr[d];
    p.n_hidden = h->ptr[d + 1] - h->ptr[d];
    return p;
}

gnnc_status rt_nodes_reserve(RtBatch *b, int type, int64_t n, bool trees, RtError *err);
/* ptr for n destinations; those there stay. */
gnnc_status rt_edges_open(RtBatch *b, int rel, int64_t n_dst, RtError *err);
gnnc_status rt_edges_reserve(const RtSampler *s, RtBatch *b, int rel, int64_t n, RtError *err);
/* Writes one edge at position i of the relation's. */
static inline void rt_edge_put(const RtSampleRel *r, RtBatchEdges *e, int64_t i, int32_t src,
                               int64_t dst, int64_t pos) {
    e->src[i] = src;
    e->dst[i] = (int32_t)dst;
    e->pos[i] = pos;
    if (r->id)
        e->id[i] = r->id[pos];
    else if (r->wide)
        e->id[i] = (int32_t)((r->wide_id ? r->wide_id[pos] : pos) % RT_WIDE_IDS);
}

/* sample_hop.c: one hop from the nodes that the last one brought. */
gnnc_status rt_sample_hop(RtSampler *s, RtBatch *b, const RtSampleAt *at, int hop, RtError *err);
/* sample_edges.c: edges among the nodes; edges back. */
gnnc_status rt_sample_induce(RtSampler *s, RtBatch *b, RtError *err);
gnnc_status rt_sample_bidirectional(RtSampler *s, RtBatch *b, RtError *err);

#endif
