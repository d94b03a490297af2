/* A mini-batch: a small graph cut out of a large one, in buffers that stay.
 *
 * Nodes of a type are numbered from 0 in the order of hops: seeds, then what hop 1
 * brought, and so on.  Edges are sorted by destination, so all that a layer needs is a
 * prefix of the nodes and of the edges: hop trimming is a matter of sizes alone.
 *
 * Buffers grow and never shrink; each growth is counted.  During the epoch in which a
 * batch was first used they keep a fifth free, so that later epochs need none. */
#ifndef RUNTIME_BATCH_H
#define RUNTIME_BATCH_H

#include "runtime/data/dataset.h"
#include "runtime/data/relation.h"
#include "runtime/exec/team.h"

/* ---- memory that grows --------------------------------------------------------- */
typedef struct RtGrowth {
    RtAlloc from;
    bool roomy;         /* take room for more than asked */
    int64_t n_grown;    /* how often something grew */
    int64_t held_bytes; /* in all buffers now */
} RtGrowth;

typedef struct RtGrow {
    void *p;        /* RT_ALIGN */
    void *block;    /* as the allocator gave it */
    size_t n_bytes; /* room behind p */
} RtGrow;

/* Room for n * size bytes, of which the first n_keep * size stay.  New bytes are zero. */
gnnc_status rt_grow(RtGrowth *g, RtGrow *b, int64_t n, size_t size, int64_t n_keep, RtError *err);
/* At least as many bytes as another one has; what it held is lost if it grows. */
gnnc_status rt_grow_like(RtGrowth *g, RtGrow *b, const RtGrow *like, RtError *err);
/* Bytes that rt_grow would allocate for `need` of them, the old block still being there; 0: it has
 * the room. */
size_t rt_grow_takes(const RtGrowth *g, const RtGrow *b, size_t need);
void rt_grow_free(RtGrowth *g, RtGrow *b);

/* ---- the batch -------------------------------------------------------------------- */
typedef struct RtBatchNodes {
    int64_t n;
    int32_t *id;             /* [n] row in the node table */
    int32_t *tree;           /* [n] disjoint: which seed's tree; else NULL */
    int64_t *end;            /* [n_hops + 1] nodes of hops up to h */
    RtGrow id_buf, tree_buf; /* the memory of id, tree */
} RtBatchNodes;

typedef struct RtBatchEdges {
    int64_t n;
    int64_t *ptr;     /* [n_dst + 1] edges of a destination */
    int32_t *src;     /* [n] local */
    int32_t *dst;     /* [n] local, ascending */
    int64_t *pos;     /* [n] canonical position in the relation; ascends within a destination */
    int32_t *id;      /* [n] logical id, where the relation has them; else NULL */
    int64_t *end;     /* [n_hops + 1] edges into nodes of hops up to h */
    RtGroups by_src;  /* the transpose, if asked for */
    int64_t id_bound; /* of the relation */
    RtGrow ptr_buf, src_buf, dst_buf, pos_buf, id_buf, by_buf, perm_buf; /* their memory */
} RtBatchEdges;

typedef struct RtBatch {
    RtGrowth growth; /* of all buffers */
    RtPool pool;     /* of the tables below */
    int n_types, n_rels, n_hops;
    RtBatchNodes *nodes;  /* [n_types] */
    RtBatchEdges *edges;  /* [n_rels] */
    bool by_hop;          /* edges come from one hop further at most: every prefix is exact */
    uint64_t first_epoch; /* + 1; 0 = not used yet */
    int64_t number;       /* of the batch in its epoch */
    /* Where a device drew it: arrays of nodes and edges lie alike in two blocks, one of the host's
     * and one there. */
    const char *here, *there;

    /* Seeds, in groups (nodes: 1; links: sources, destinations; graphs: one a node type). */
    int n_groups;
    int64_t *n_seeds; /* [n_groups] */
    int32_t **seed;   /* [n_groups][n_seeds] local ids */
    RtGrow *seed_buf; /* [n_groups] the memory of seed */
} RtBatch;

/* An empty batch for graphs of so many types and relations, sampled over so many hops. */
gnnc_status rt_batch_new(RtBatch **out, const RtAlloc *from, int n_types, int n_rels, int n_hops,
                         RtError *err);
void rt_batch_free(RtBatch *b); /* NULL is fine */

/* As much room as `like`, a batch of the same sampler, has; what b holds is lost where it grows. */
gnnc_status rt_batch_reserve(RtBatch *b, const RtBatch *like, RtError *err);

/* Nodes whose values a layer must give, and edges into them, when h layers follow it
 * before the seeds' values are read.  Its input is rt_batch_nodes_needed(b, t, h + 1). */
int64_t rt_batch_nodes_needed(const RtBatch *b, int type, int h);
int64_t rt_batch_edges_needed(const RtBatch *b, int rel, int h);

/* The array there, of one that lies here, of a batch that a device drew. */
static inline const void *rt_batch_there(const RtBatch *b, const void *here) {
    return here ? b->there + ((const char *)here - b->here) : NULL;
}

/* Edges of a relation as a base relation (relation.h) over the batch's nodes; it points
 * into the batch.  orig[0] is NULL: columns are taken by `pos`. by_src needs the transpose. */
RtRelation rt_batch_relation(const RtBatch *b, int rel, int src_type, int dst_type);
/* Writes by_src of every relation. */
gnnc_status rt_batch_transpose(RtBatch *b, const int *src_type, RtTeam *team, RtError *err);

/* ---- columns --------------------------------------------------------------------------- */
/* Which rows: exactly one of the two. */
typedef struct RtRows {
    int64_t n;
    const int32_t *i32; /* nodes' ids */
    const int64_t *i64; /* edges' positions */
} RtRows;

typedef struct RtColumnBuf {
    RtGrow a, b, c; /* values; CSR: pointers, columns, values */
} RtColumnBuf;

/* Rows of a column, side by side: `out` is the column of the batch, in `buf`.  Of a split
 * column only split number `split` is taken. */
gnnc_status rt_batch_column(RtBatch *b, RtTeam *team, const RtColumn *c, RtRows rows, int split,
                            RtColumnBuf *buf, RtColumn *out, RtError *err);
void rt_batch_column_free(RtBatch *b, RtColumnBuf *buf);
/* The same for plain rows of row_bytes bytes. */
void rt_gather_rows(RtTeam *team, const void *from, size_t row_bytes, RtRows rows, void *to);

#endif
