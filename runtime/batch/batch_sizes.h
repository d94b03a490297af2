/* Sizes of mini-batches before there is one. */
#ifndef RUNTIME_BATCH_SIZES_H
#define RUNTIME_BATCH_SIZES_H

#include "runtime/program.h"

/* What a batch of `program` has about, from fan-outs and mean degrees: n [n_syms] holds the whole
 * data's sizes and gets the batch's.  Derived relations count as their bases.  "eval" is of links,
 * of which a fifth are taken to be held out; "predict" and "embed" are of rows or links by time.
 * False: the program is too large for this, and n as it was. */
typedef enum { RT_BATCH_TRAINS, RT_BATCH_PREDICTS, RT_BATCH_EVAL } RtBatchFor;
RtBatchFor rt_batch_for(const rt_phase *phase); /* of one over batches */
bool rt_batch_sizes(const rt_program *p, int64_t batch, RtBatchFor what, int64_t *n);

#endif
