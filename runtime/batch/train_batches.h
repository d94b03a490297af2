/* Training by mini-batches: what a sampled program's trainer has beside its data.
 *
 * Step s of a run is batch s % n_batches of the data's epoch s / n_batches, a function of
 * (seed, epoch, batch) alone: where training stands is the number of steps done, so a
 * checkpoint resumes in mid-epoch.  Workers sample, gather and bind batches ahead of the
 * step (pipeline.h). */
#ifndef RUNTIME_TRAIN_BATCHES_H
#define RUNTIME_TRAIN_BATCHES_H

#include "minibatch.h"
#include "pipeline.h"
#include "runtime/trainer/trainer.h"

/* Draws from the data that the trainer is bound to.  After the load phase. */
gnnc_status rt_batches_start(gnnc_trainer *t);
void rt_batches_stop(gnnc_trainer *t);
/* Runs the train phase on the batch of step t->progress.step, and adds to its epoch's loss. */
gnnc_status rt_batches_run(gnnc_trainer *t);
/* Makes progress.loss_sum what all steps so far have added to it. */
gnnc_status rt_batches_settle(gnnc_trainer *t);
/* What is made ahead is for nothing: training goes on elsewhere, maybe by another seed. */
void rt_batches_forget(gnnc_trainer *t);
/* What the last step ran on, with its values until the next step; NULL: there was none, it failed,
 * or another process made it. */
RtExec *rt_batches_last(const gnnc_trainer *t);
/* Steps of an epoch: 1 where the whole graph is one. */
int64_t rt_batches_per_epoch(const gnnc_trainer *t);
/* Sizes that a phase has had at most: of batches, or the data's. */
const int64_t *rt_phase_sizes(const gnnc_trainer *t, const rt_phase *ph);
/* How batches are drawn, as a line: a checkpoint records it.  NULL: no memory. */
const char *rt_batches_text(gnnc_trainer *t, RtPool *pool);

#endif
