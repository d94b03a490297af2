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
/* `fanout` [n_hops]: what is drawn in place of the program's, NULL: that. */
bool rt_batch_sizes(const rt_program *p, int64_t batch, const int32_t *fanout, RtBatchFor what,
                    int64_t *n);
/* Edges that a hop draws along a relation for each node, -1 = all.  Where the program draws none
 * nothing else is. */
int32_t rt_fanout(const rt_program *p, const int32_t *fanout, int hop, int space);
/* How many numbers "15,10" has, of which the first `most` go to `to`; -1: it is no list of them. */
int rt_fanout_parse(const char *s, int most, int32_t *to);

#endif
