/* Metrics of links: each is the sum of what every run of "eval" over those of a split gives (one
 * over all pairs, or some over queries), divided by the number of rows, which is an output, too.  A
 * device notes what a run gives, and a split's notes are read together; so are those of runs that
 * several processes share out (eval_shares.h). */
#ifndef RUNTIME_BATCH_METRICS_H
#define RUNTIME_BATCH_METRICS_H

#include "runtime/trainer/trainer.h"

typedef struct RtBatchMetrics {
    int64_t first, n_notes, next; /* of the device: where they begin, room, the next one */
    double *notes;                /* [n_notes], when they are read */
    int64_t n_shared;             /* runs that are shared out; 0 = none are */
} RtBatchMetrics;

/* For at most n_runs of a split, noted from `first` on. */
gnnc_status rt_batch_metrics_init(gnnc_trainer *t, RtBatchMetrics *m, int64_t first,
                                  int64_t n_runs);
/* n_shared: runs that processes share out; 0: this one makes all. */
void rt_batch_metrics_begin(gnnc_trainer *t, RtBatchMetrics *m, int split, int64_t n_shared);
/* After run number `run` over some of the split's links. */
gnnc_status rt_batch_metrics_add(gnnc_trainer *t, RtBatchMetrics *m, int split, int64_t run);
/* Of all processes, where runs are shared out. */
gnnc_status rt_batch_metrics_end(gnnc_trainer *t, RtBatchMetrics *m, int split);

#endif
