/* Neighbour sampling: mini-batches of nodes, links, triples, graphs and clusters.
 *
 * GraphSAGE's sampling (Hamilton, Ying and Leskovec, NeurIPS 2017, algorithm 2) over any
 * number of node types and relations: each hop draws, for every node that the last one
 * brought, up to fanout[hop][relation] of its in-edges.  What each option means is told
 * in docs/runtime-internals.md, "Batches"; which random number decides what, in sample_key.h.
 *
 * A sampler belongs to one thread at a time and uses its team by itself; several samplers
 * may read one graph.  A batch depends on (graph, options, seeds, RtSampleAt) alone. */
#ifndef RUNTIME_SAMPLE_H
#define RUNTIME_SAMPLE_H

#include "runtime/batch/batch.h"

/* ---- what is sampled ------------------------------------------------------------------ */
typedef struct RtSampleType {
    const char *name;
    int64_t n;
    const double *time; /* [n] seconds, NaN = unknown: never before anything; or NULL */
    bool inclusive;     /* a row of the seed's own time is known to it */
} RtSampleType;

/* In-edges in canonical order, positions being 64-bit: arrays may lie in mapped files. */
typedef struct RtSampleRel {
    const char *name;
    int src_type, dst_type;
    int64_t n_edges;
    const int64_t *ptr; /* [n_dst + 1] */
    const int32_t *src; /* [E] */
    const int32_t *id;  /* [E] logical ids, or NULL: not wanted */
    int64_t id_bound;   /* ids are below it */
    bool wide;          /* .. of 64 bits: batches have the lowest bits of them, and id is NULL */
    const int64_t *wide_id; /* .. [E]; NULL: edge e has e */
    const RtGroups *by_src; /* the transpose and */
    const int32_t *dst;     /* [E]: for bidirectional batches and to avoid true edges; or NULL */
    const float *weight;    /* [E] finite, >= 0: chance to be drawn; or NULL: all alike */
    const double *time;     /* [E] as of nodes; or NULL */
    bool inclusive;         /* as of types */
    bool time_sorted; /* what is known is searched, not scanned: within every destination edges
                         ascend by their times and those of their sources */
    const int32_t *by_time; /* [E] .. in this order: of the edges of a destination, less the first
                               of them; or NULL: as they lie */
    bool own;               /* temporal: of seeds, whatever the times of sources */
    bool hides;             /* edges between the ends of a link, RtSeeds.n_links */
    int reverse;            /* bidirectional: relation of the edges the other way; -1 = none */
} RtSampleRel;

/* Random numbers of 2^31 edges or more are drawn by so many bits of their ids: edges that far apart
 * share them. */
enum { RT_WIDE_IDS = 1 << 30 };

/* A relation as rt_relation_* makes it; the rest is the caller's. */
RtSampleRel rt_sample_rel(const char *name, int src_type, int dst_type, const RtRelation *r);

/* Edges by time, if they are not already: sets time_sorted and by_time, which takes 4 bytes an
 * edge. An edge is known when it and its source are; of equal times, the last is the newest.
 * Without an order, and scanned, stay edges some of which are older than their sources, or which
 * see their own time otherwise than sources do. */
gnnc_status rt_sample_order(RtPool *pool, const RtSampleType *src, int64_t n_dst, RtSampleRel *r,
                            RtError *err);

typedef struct RtSampleGraph {
    int n_types, n_rels;
    const RtSampleType *type;
    const RtSampleRel *rel;
} RtSampleGraph;

/* ---- how ---------------------------------------------------------------------------------- */
typedef struct RtSampleSpec {
    rt_sampling how;       /* as the model says: of this n_hops and what contract.def calls DRAWN;
                              `inclusive` stands with each type and relation */
    const int32_t *fanout; /* [how.n_hops, n_rels]; -1 = all in-edges */
    bool temporal;         /* nothing newer than the seed's time; needs disjoint */
    bool check;            /* prove on every batch that nothing newer is in it */
    bool transpose;        /* write by_src */
} RtSampleSpec;

typedef struct RtSampler RtSampler;

/* Graph and arrays must outlive the sampler, the spec is copied.  `team` (NULL: the caller
 * alone) has at most n_threads members. */
gnnc_status rt_sampler_new(RtSampler **out, const RtAlloc *from, const RtSampleGraph *g,
                           const RtSampleSpec *spec, RtTeam *team, int n_threads, RtError *err);
/* From now on with this team, if it has no more members than n_threads above. */
void rt_sampler_use(RtSampler *s, RtTeam *team, int n_members);
/* From now on of this graph, with types and relations as before. */
gnnc_status rt_sampler_read(RtSampler *s, const RtSampleGraph *g, RtError *err);
/* From now on so many hops alone, at most those of the spec: later ones bring nothing. */
void rt_sampler_hops(RtSampler *s, int n_hops);
void rt_sampler_free(RtSampler *s); /* NULL is fine */
/* An empty batch for this sampler's graph and hops. */
gnnc_status rt_sampler_batch(const RtSampler *s, RtBatch **out, RtError *err);

typedef struct RtSampleCounters {
    int64_t n_batches;
    int64_t n_grown;    /* the sampler's own buffers, since it was made */
    int64_t held_bytes; /* in them now */
} RtSampleCounters;
RtSampleCounters rt_sampler_counters(const RtSampler *s);

/* ---- batches -------------------------------------------------------------------------------- */
typedef struct RtSampleAt {
    uint64_t seed, epoch, batch; /* what random choice is a function of */
} RtSampleAt;

/* Some rows of one node type.  Repeated ids share a node unless trees are disjoint. */
typedef struct RtSeeds {
    int type;
    int64_t n;
    const int32_t *id;
    const int32_t *tree; /* [n] NULL: seed i has tree i */
    const double *time;  /* [n] temporal */
    const int32_t *key;  /* [trees] of the first group: what trees draw by; NULL: their numbers */
    /* Of the first of two groups: its first seeds and those of the other group are the ends of so
     * many links.  In the batch, where trees are disjoint in the link's, no edge between two such
     * ends is seen, either way, of relations that hide them; but for those that are earlier than
     * the link, where there are times. */
    int64_t n_links;
} RtSeeds;

/* Nodes: seed i is node out->seed[0][i].  Any failure leaves the batch empty. */
gnnc_status rt_sample_nodes(RtSampler *s, const RtSampleAt *at, const RtSeeds *seeds, RtBatch *out,
                            RtError *err);
/* Several types at once (clusters, graphs): a group each. */
gnnc_status rt_sample_groups(RtSampler *s, const RtSampleAt *at, const RtSeeds *groups,
                             int n_groups, RtBatch *out, RtError *err);

/* What falls into parts: graphs of a data set of many, or clusters of one graph.  Rows of part p
 * are places [ptr[t][p], ptr[t][p + 1]) of row[t], or these numbers themselves where that is NULL;
 * ptr[t] NULL = a type that belongs to none. */
typedef struct RtParts {
    int64_t n;
    const int64_t *const *ptr; /* [n_types][n + 1] */
    const int32_t *const *row; /* [n_types]; NULL = all NULL */
} RtParts;

/* Proves that nothing in a batch of disjoint trees is newer than tree_time [n_trees]; GNNC_E_ASSERT
 * names a row that is.  What samplers do whose spec says `check`. */
gnnc_status rt_sample_check(const RtSampleGraph *g, const double *tree_time, const RtBatch *b,
                            RtError *err);

/* Some whole parts: all their nodes and the edges between them.  The sampler is induced and of 0
 * hops; where it is disjoint, node i of type t lies in part out->nodes[t].tree[i] of the batch. */
gnnc_status rt_sample_parts(RtSampler *s, const RtSampleAt *at, const RtParts *parts,
                            const int32_t *part, int64_t n, RtBatch *out, RtError *err);

/* Seeds of an epoch in random order: permutes order[0..n), a function of what it holds,
 * (seed, epoch). Fisher and Yates. */
void rt_sample_shuffle(uint64_t seed, uint64_t epoch, int32_t *order, int64_t n);
/* .. of one of several lists, each in its own order. */
void rt_sample_shuffle_part(uint64_t seed, uint64_t epoch, uint32_t part, int32_t *order,
                            int64_t n);

/* Parts of about equal size with few edges between (Chiang et al., KDD 2019), by METIS
 * (Karypis and Kumar, 1998); part [n_types][n].  E_STATE: built without METIS. */
gnnc_status rt_sample_clusters(const RtSampleGraph *g, int n_parts, uint64_t seed,
                               const RtAlloc *from, int32_t *const *part, RtError *err);
bool rt_sample_has_clusters(void);

#endif
