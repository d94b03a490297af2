/* Sizes of mini-batches before there is one. */
#ifndef RUNTIME_BATCH_SIZES_H
#define RUNTIME_BATCH_SIZES_H

#include "runtime/program.h"

/* What a batch of `program` has about, from fan-outs and mean degrees: n [n_syms] holds the whole
 * data's sizes and gets the batch's.  Derived relations count as their bases.  held_out: of "eval",
 * where that is of links; a fifth of them are taken to be held out.  False: the program is too
 * large for this, and n as it was. */
bool rt_batch_sizes(const rt_program *p, int64_t batch, bool held_out, int64_t *n);

#endif
