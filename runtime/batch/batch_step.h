/* The memory of a phase that runs over batches, packed for the largest sizes so far. */
#ifndef RUNTIME_BATCH_STEP_H
#define RUNTIME_BATCH_STEP_H

#include "minibatch.h"
#include "recycle.h"
#include "runtime/trainer/trainer.h"

typedef struct RtBatchStep {
    RtExec *x;       /* what it is a part of: the data's sizes, errors, working memory */
    gnnc_trainer *t; /* whose limit of memory it keeps, and whose steps; NULL: no trainer's */
    int phase;       /* -1: the program has no such phase */
    int64_t *most;   /* [n_syms] sizes there is room for */
    int64_t *limit;  /* [n_syms] a device rounds sizes up, up to these; NULL: they stay */
    size_t *offset;  /* [n_bufs] of a temporary in the arena */
    RtGrowth growth;
    RtGrow arena;     /* memory of the temporaries */
    RtRecycle tables; /* of packing */
} RtBatchStep;

/* x must stay where it is. */
gnnc_status rt_batch_step_init(RtBatchStep *s, RtExec *x, gnnc_trainer *t, rt_phase_kind phase);
void rt_batch_step_free(RtBatchStep *s);
/* A device rounds sizes up from now on, where a batch's are not far above these.  typical [n_syms]:
 * the largest of some batches. */
gnnc_status rt_batch_step_limit(RtBatchStep *s, const int64_t *typical);
/* Room for this batch's sizes, and in the first epoch for a quarter more of what is the batch's.  A
 * step without memory has room for nothing, so that the next one makes it. */
gnnc_status rt_batch_step_reserve(RtBatchStep *s, const RtExec *x, bool first);
/* Runs the phase over x, which is bound to a batch and gets places for its temporaries.  A device
 * is sent the buffers that x alone has; taken [n_bufs]: those that it gathers itself out of the
 * data's (NULL: none).  first: of the first epoch, in which memory takes room to grow. */
gnnc_status rt_batch_step_run_on(RtBatchStep *s, RtExec *x, const struct RtDeviceGather *taken,
                                 bool first);
/* Runs the phase over what m is bound to, with room for it; a device is sent the batch. */
gnnc_status rt_batch_step_run(RtBatchStep *s, RtMinibatch *m, bool first);

#endif
