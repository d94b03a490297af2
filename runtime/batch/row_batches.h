/* Evaluating rows by time: what a row may see depends on its own time, so there is no view of the
 * whole graph that is right for all of them, and each split's rows come in batches with the
 * neighbours that training would draw for them, the same in every epoch. */
#ifndef RUNTIME_ROW_BATCHES_H
#define RUNTIME_ROW_BATCHES_H

#include "minibatch.h"
#include "runtime/trainer.h"
#include "sample.h"

/* Rows (or graphs) of a split of the target that have a label, in the order of the data: how many,
 * and which; `out` may be NULL. */
int64_t rt_rows_of_split(const gnnc_trainer *t, int split, int32_t *out);
/* Draws from this graph in batches of so many rows of a type, with at most so many members of the
 * trainer's team; all of it must outlive the trainer's batches.  A program that does not evaluate
 * rows by time: nothing. */
gnnc_status rt_row_batches_start(gnnc_trainer *t, const RtSampleGraph *g, const RtSampleSpec *spec,
                                 const RtBatchMap *map, int type, int64_t batch, int n_members);
void rt_row_batches_stop(gnnc_trainer *t);
/* A device notes metrics from `first` on: so many. */
gnnc_status rt_row_batches_notes(gnnc_trainer *t, int64_t first, int64_t *n);
/* Every metric of all three splits. */
gnnc_status rt_row_batches_evaluate(gnnc_trainer *t, const rt_phase *eval);
const int64_t *rt_row_batches_sizes(const gnnc_trainer *t, const rt_phase *ph); /* NULL: none */

#endif
