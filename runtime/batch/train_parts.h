/* What batches of clusters are taken from, and what they are learned from. */
#ifndef RUNTIME_TRAIN_PARTS_H
#define RUNTIME_TRAIN_PARTS_H

#include "graph_parts.h"

/* Rows of each of n clusters, ascending: a function of (graph, n, seed). */
gnnc_status rt_parts_of_clusters(RtPool *pool, const RtSampleGraph *g, int64_t n, uint64_t seed,
                                 RtParts *out, RtError *err);
/* Rows of a batch of clusters that the step learns from: labelled ones of the train split. */
int64_t rt_parts_learned(const RtExec *data, const RtBatchMap *map, const RtBatch *b);

#endif
