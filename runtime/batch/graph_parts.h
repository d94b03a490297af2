/* Data sets of many graphs, as parts that batches are made of. */
#ifndef RUNTIME_GRAPH_PARTS_H
#define RUNTIME_GRAPH_PARTS_H

#include "minibatch.h"
#include "runtime/sample/sample.h"

/* Rows of each graph, as the data have them.  E_VALUE: a node type that is in no graph. */
gnnc_status rt_parts_of_graphs(RtPool *pool, const RtExec *data, const RtBatchMap *map,
                               RtParts *out, RtError *err);

#endif
