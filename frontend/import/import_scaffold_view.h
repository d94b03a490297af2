/* What a starter model looks at: the tables that its result can depend on. */
#ifndef FRONTEND_IMPORT_SCAFFOLD_VIEW_H
#define FRONTEND_IMPORT_SCAFFOLD_VIEW_H

#include "runtime/data/dataset.h"

/* Of `d` what `n_layers` of message passing read for the rows of node type `home`: the node types
 * that so many edge types lead to, in either direction, and those that references lead to from it
 * in at most `n_up` steps, and the edge types that lead there; graphs stay.  *seen shares columns
 * with d; its tables live in `pool`.  *left: the other node types, "city, country", or "". E_NOMEM.
 */
gnnc_status scaffold_reach(RtPool *pool, const RtDataset *d, int home, int n_layers, int n_up,
                           RtDataset *seen, const char **left, RtError *err);
/* far[type] of each node type: layers after which a row of `home` knows of it; n_layers + 1: it
 * never does. */
void scaffold_distances(const RtDataset *d, int home, int n_layers, int *far);
/* The node type with the most edge types at it; 0 where there are none. */
int scaffold_hub(const RtDataset *d);

#endif
