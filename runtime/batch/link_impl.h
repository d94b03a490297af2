/* Shared by link_batches.c, which makes the steps of links, and link_eval.c, which judges them. */
#ifndef RUNTIME_LINK_IMPL_H
#define RUNTIME_LINK_IMPL_H

#include "batch_metrics.h"
#include "batch_step.h"
#include "eval_shares.h"
#include "link_batches.h"

enum { RT_LINK_PARTS = RT_REL_EARLIER - RT_REL_LINKS + 1 };

typedef struct RtPlaced {
    int32_t id, edge; /* the number by which the data list an edge, and that in the relation */
} RtPlaced;

/* Of links by time: what "predict" needs, and gives. */
typedef struct RtLinkScores {
    RtSampler *sampler; /* NULL: "eval" sees the whole graph, and there is nothing else here */
    RtDrawer drawer;
    const RtBatchMap *map; /* of what neighbours are drawn from */
    RtMinibatch batch;     /* pairs with their neighbours */
    RtBatchStep step;      /* @predict over it */
    int pred, judged;      /* buffers: its output, the input of "eval" */
    void *all;             /* [most pairs of a split] on the host */
    void *value;           /* [E] as the whole relation was predicted; NULL = not yet */
    RtPlaced *placed;      /* room to sort the edges of a split */
    bool ran;              /* once: there is room */
    RtEvalMessage message;
} RtLinkScores;

struct RtLinkBatches {
    RtLinks links;           /* the edges, by what they ask */
    int base;                /* the space that is scored */
    int part[RT_LINK_PARTS]; /* spaces of a step, by kind; -1 = the program has none */
    RtColumn *all;           /* [n_columns] of those on a step's spaces: over the base's edges */
    int no_links;            /* the relation of fixed negatives, and their splits; -1 = none */
    const int32_t *no_split; /* [their edges]; NULL = negatives are drawn */
    int64_t batch, n_train;  /* edges or queries of a step, of the training split */
    int64_t n_val;           /* edges of the validation split */
    const double *when;      /* [E] links by time; else NULL */
    int32_t *held;           /* seeds of an evaluation */
    RtMinibatch eval;        /* held-out links or queries */
    RtBatchStep test;        /* @eval over them */
    RtBatchMetrics metrics;
    bool evaluated;           /* once: there is room */
    RtDevicePairs *negatives; /* draws those of held-out links; NULL = the host does */
    RtLinkScores scores;
};

/* Edges of a split, or queries that have one: how many, and which; `out` may be NULL. */
int64_t rt_link_batches_of_split(const RtLinkBatches *b, bool queries, int split, int32_t *out);
/* Negatives of training, or of held-out links: of links by time those that are there then, else no
 * edges of any split. */
RtDrawnNegatives rt_link_how_drawn(const gnnc_trainer *t, bool held_out);
const double *rt_link_node_times(const gnnc_trainer *t, bool dst); /* NULL: they have none */
void rt_link_scores_stop(RtLinkScores *s);

#endif
