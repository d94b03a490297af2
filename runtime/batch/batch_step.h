/* The memory of a phase that runs over batches, packed for the largest sizes so far. */
#ifndef RUNTIME_BATCH_STEP_H
#define RUNTIME_BATCH_STEP_H

#include "minibatch.h"
#include "recycle.h"
#include "runtime/trainer.h"

typedef struct RtBatchStep {
    int phase;     /* -1: the program has no such phase */
    int64_t *most; /* [n_syms] sizes there is room for */
    size_t *offset;
    RtGrowth growth;
    RtGrow arena;
    RtRecycle tables; /* of packing */
} RtBatchStep;

gnnc_status rt_batch_step_init(gnnc_trainer *t, rt_phase_kind phase, RtBatchStep *s);
void rt_batch_step_free(RtBatchStep *s);
/* Room for this batch's sizes, and in the first epoch for a quarter more of what is the batch's.  A
 * step without memory has room for nothing, so that the next one makes it. */
gnnc_status rt_batch_step_room(gnnc_trainer *t, RtBatchStep *s, const RtExec *x, bool first);
/* Runs the phase over what m is bound to, with room for it; a device is sent the batch. */
gnnc_status rt_batch_step_run(gnnc_trainer *t, RtBatchStep *s, RtMinibatch *m, bool first);

#endif
