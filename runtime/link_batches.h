/* Training and evaluating a model that scores links: each step sees the whole graph and some links.
 *
 * A step's links are edge spaces of the program that only the step has (RT_REL_LINKS and so on): a
 * batch binds them, their columns and their maps, in memory that the next one reuses.  Step s of a
 * run is batch s % n_batches of the epoch s / n_batches, as with other batches (train_batches.h).
 */
#ifndef RUNTIME_LINK_BATCHES_H
#define RUNTIME_LINK_BATCHES_H

#include "pipeline.h"
#include "trainer.h"

gnnc_status rt_link_batches_start(gnnc_trainer *t); /* a program without links: nothing */
void rt_link_batches_stop(gnnc_trainer *t);
void rt_link_batches_forget(gnnc_trainer *t);        /* as rt_batches_forget */
gnnc_status rt_link_batches_settle(gnnc_trainer *t); /* as rt_batches_settle */
gnnc_status rt_link_batches_run(gnnc_trainer *t, const rt_phase *train);
/* Every metric of both held-out splits. */
gnnc_status rt_link_batches_evaluate(gnnc_trainer *t, const rt_phase *eval);
/* Training needs edges to choose an epoch by. */
gnnc_status rt_link_batches_check(gnnc_trainer *t);
int64_t rt_link_batches_per_epoch(const gnnc_trainer *t);
const int64_t *rt_link_batches_sizes(const gnnc_trainer *t, const rt_phase *ph); /* NULL: none */
const char *rt_link_batches_text(gnnc_trainer *t, RtPool *pool);
RtPipelineStats rt_link_batches_stats(const gnnc_trainer *t, int *n_workers);

#endif
