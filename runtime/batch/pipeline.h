/* Work prepared ahead: workers fill slots, one consumer takes them in order.
 *
 * Threads, not processes: a slot is memory that both sides see.  At most `n_slots` items
 * are prepared or held at a time.  The order is that of the numbers, whoever prepares
 * what; so is the first failure: items before it are still handed out. */
#ifndef RUNTIME_PIPELINE_H
#define RUNTIME_PIPELINE_H

#include "runtime/status.h"

typedef struct RtPipeline RtPipeline;

/* Prepares item `number` in a slot.  Called by one worker at a time per slot and per worker. */
typedef gnnc_status rt_prepare_fn(void *user, int worker, int64_t number, int slot, RtError *err);

typedef struct RtPipelineSpec {
    rt_prepare_fn *prepare;
    void *user;    /* of prepare */
    int n_workers; /* 0: items are prepared when they are asked for, by the consumer */
    int n_slots;   /* at least 1; with workers 2, so that one is filled while one is read */
    int n_held;    /* the consumer has the last so many items, for which there are slots beside;
                      0 = 1 */
} RtPipelineSpec;

typedef struct RtPipelineStats {
    int64_t n_items;     /* handed out */
    int64_t prepare_ns;  /* inside prepare, all workers together */
    int64_t producer_ns; /* workers waiting for a free slot, all together */
    int64_t consumer_ns; /* the consumer waiting for an item */
} RtPipelineStats;

/* Fewer threads than asked for where the system grants fewer; results are the same. */
gnnc_status rt_pipeline_start(RtPipeline **out, const RtAlloc *from, const RtPipelineSpec *spec,
                              RtError *err);
/* Stops the workers after what they are at and frees it; NULL is fine. */
void rt_pipeline_stop(RtPipeline *p);

/* Items first .. end - 1 are next: an epoch, or the rest of one.  What was prepared or asked
 * for before is dropped, failures too.  Returns when no worker is at an old item. */
void rt_pipeline_begin(RtPipeline *p, int64_t first, int64_t end);
/* The next item's slot, the consumer's until the following call (or n_held calls); *slot = -1 after
 * the last. A failure of the item, or E_STATE after a cancel, comes back each time until begin. */
gnnc_status rt_pipeline_next(RtPipeline *p, int64_t *number, int *slot, RtError *err);
/* Ends the present run early, from any thread: `next` fails from now on. */
void rt_pipeline_cancel(RtPipeline *p);
RtPipelineStats rt_pipeline_stats(RtPipeline *p);

#endif
