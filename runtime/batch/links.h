/* The edges of the relation that a model scores, by what they ask: a *query* is a source and, where
 * the model tells edges apart, a kind; its answers are the destinations.  From it come negatives
 * that are no true edges, the batches of link_batches.h, and the true answers that a ranking leaves
 * out (Bordes et al., NeurIPS 2013, "filtered"). */
#ifndef RUNTIME_LINKS_H
#define RUNTIME_LINKS_H

#include "runtime/exec/exec.h"
#include "runtime/data/relation.h"
#include "runtime/sample/sample.h"

/* Scores of a batch of queries stay below 256 MiB where one query allows it. */
enum { RT_MOST_SCORES = 1 << 26 };

typedef struct RtLinks {
    const RtRelation *rel; /* whose edges are scored */
    const int32_t *split;  /* [E] canonical order */
    const int64_t *kind;   /* [E] */
    int32_t *by_query;     /* [E] edges by source, kind, destination */
    int64_t *query;        /* [n_queries + 1] where a query's edges begin in it */
    int32_t *query_of;     /* [E] */
    int64_t *of_source;    /* [n_src + 1] its first query */
    int64_t n_queries;
} RtLinks;

/* split, kind: [E] of rel, which all must outlive it. */
gnnc_status rt_links_index(RtPool *pool, const RtRelation *rel, const int32_t *split,
                           const int64_t *kind, RtLinks *out, RtError *err);
/* Is an edge of this kind from u to v in one of the splits first .. last? */
bool rt_links_have(const RtLinks *l, int32_t u, int64_t kind, int32_t v, int first, int last);
/* Its edges from u of this kind: by_query[*first .. *end - 1], by destination. */
void rt_links_of(const RtLinks *l, int32_t u, int64_t kind, int64_t *first, int64_t *end);

/* Some edges of a step, or what was drawn for them. */
typedef struct RtStepEdges {
    int64_t n;
    int32_t *src, *dst, *orig; /* [n] orig: the edge or row of what it is drawn from */
    int32_t *cell;             /* [n] query times n_dst plus destination; or NULL */
    int32_t *row;              /* [n] the edge of rel whose columns it has */
} RtStepEdges;

/* How negatives are drawn, whatever the batch. */
typedef struct RtDrawnNegatives {
    rt_negative how; /* which ends are drawn */
    bool avoid;      /* edges of the splits first .. last, where there is another node */
    int first, last; /* splits */
    /* Nodes that are there at the link's time: [E] of rel, [n_src], [n_dst]; NULL = all are. */
    const double *when, *since[2];
} RtDrawnNegatives;

/* n edges, then k negatives of each: negative j of the i-th is row n + i k + j. */
typedef struct RtNegatives {
    int64_t k; /* of each edge */
    RtDrawnNegatives drawn;
    uint64_t key;   /* sample_key.h */
    bool elsewhere; /* their ends are drawn by somebody else: here they are the edge's */
} RtNegatives;
gnnc_status rt_links_pairs(const RtLinks *l, RtPool *pool, const int32_t *edge, int64_t n,
                           const RtNegatives *how, RtStepEdges *out, RtError *err);

/* Queries and their edges of one split; of each such answer the other true answers of any split,
 * and those of the splits before. */
typedef struct RtStepQueries {
    RtStepEdges queries, answers, known, earlier;
} RtStepQueries;
enum { RT_QUERY_KNOWN = 1, RT_QUERY_EARLIER = 2 }; /* which of the two lists are made */
gnnc_status rt_links_query(const RtLinks *l, RtPool *pool, const int32_t *query, int64_t n,
                           int split, int beside, RtStepQueries *out, RtError *err);

#endif
