/* What the batches of a program are drawn from, and how: its sampling, of the data it is bound to.
 */
#ifndef RUNTIME_BATCH_SOURCE_H
#define RUNTIME_BATCH_SOURCE_H

#include "minibatch.h"
#include "runtime/trainer.h"
#include "sample.h"

typedef struct RtBatchSource {
    RtBatchMap map;
    RtSampleGraph graph;
    RtSampleSpec spec;
} RtBatchSource;

/* Of the trainer's data, in its memory. */
gnnc_status rt_batch_source_make(gnnc_trainer *t, RtBatchSource *d);

#endif
