/* A data directory given to the reference interpreter: what a compiled program binds by
 * itself (runtime/bind/bind.c), here by plain copies. */
#ifndef FRONTEND_INTERP_DATASET_H
#define FRONTEND_INTERP_DATASET_H

#include "ir/interp.h"
#include "runtime/data/dataset.h"

/* Sizes, edges, graphs and columns of all that `m` declares; false: nodes or graphs are missing.
 * Edges and columns may be until they are read; sparse ones may be stored as rows, and the other
 * way round. The data set stays the caller's, and may be closed afterwards. */
bool interp_dataset(Interp *in, const Module *m, const RtDataset *d);
/* The whole graph as the batch of a sampled step: how many rows come first for each number of
 * hops.  After @load, which relations may be derived by. */
void interp_batch(Interp *in, const Module *m);

#endif
