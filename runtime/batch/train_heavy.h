/* Which batches need most memory?  They are made before the first step. */
#ifndef RUNTIME_TRAIN_HEAVY_H
#define RUNTIME_TRAIN_HEAVY_H

#include "runtime/sample/sample.h"

typedef struct RtHeavy {
    const RtSampleGraph *g;   /* that batches are drawn from */
    const RtSampleSpec *spec; /* with these fan-outs */
    int type;                 /* seeds are rows of it; -1 = parts, or links */
    const RtParts *parts;     /* of parts */
    const RtRelation *links;  /* of links, which are edges of it; else NULL */
    int end_type[2];          /* of their ends */
} RtHeavy;

/* In how many ways seeds can be heavy: in all, in nodes of one type, in edges of one relation. */
int rt_heavy_ways(const RtHeavy *h);
/* The k heaviest of n seeds in one of these ways, heaviest first.  Rows weigh the in-edges that the
 * first hop may draw, links those of both ends, parts their nodes and edges. */
gnnc_status rt_heaviest_seeds(const RtHeavy *h, int measure, const int32_t *seed, int64_t n,
                              int64_t k, int32_t *out, const RtAlloc *from, RtError *err);

#endif
