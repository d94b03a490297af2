/* What the batches of a program are drawn from, and how: its sampling, of the data it is bound to.
 */
#ifndef RUNTIME_BATCH_SOURCE_H
#define RUNTIME_BATCH_SOURCE_H

#include "minibatch.h"
#include "runtime/trainer/trainer.h"
#include "runtime/sample/sample.h"

typedef struct RtBatchSource {
    RtBatchMap map;      /* which spaces of the program the types and relations are */
    RtSampleGraph graph; /* over the arrays of the data */
    RtSampleSpec spec;   /* how batches are drawn */
} RtBatchSource;

/* Of the trainer's data, in its memory. */
gnnc_status rt_batch_source_make(gnnc_trainer *t, RtBatchSource *d);
/* Of a subgraph that x is bound to: type [n_types], rel [n_rels], over its arrays, and what is made
 * for them in x's pool.  Who brought it has drawn: weights are not read. */
gnnc_status rt_batch_source_of(const RtExec *x, const RtBatchMap *map, RtSampleType *type,
                               RtSampleRel *rel);
/* The times by which rows of a space are drawn; NULL: none. */
const RtColumn *rt_batch_source_times(const RtExec *x, int space);

#endif
