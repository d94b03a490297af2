/* Steps that several processes share: of the k steps whose gradients make one update
 * (`accumulate k`), each process makes some.
 *
 * The gradients of a step are computed by themselves, not on top of the sum, and added to it in
 * the order of the steps once all are there: the bits are the same whoever made them.  All
 * processes then make the update (@update), and have the same parameters. */
#ifndef RUNTIME_TRAIN_SHARES_H
#define RUNTIME_TRAIN_SHARES_H

#include "runtime/trainer/trainer.h"

typedef struct RtShares RtShares;

/* Of a trainer that was told of processes; after the data were loaded.  A model that steps of
 * several processes cannot train is an error where there are several. */
gnnc_status rt_shares_start(gnnc_trainer *t);
void rt_shares_stop(gnnc_trainer *t);
/* Steps go on from other variables than these steps have made. */
void rt_shares_forget(gnnc_trainer *t);
/* Of each batch of an epoch the process that makes it: else they make the steps of an update by
 * turns. */
void rt_shares_give(gnnc_trainer *t, const int32_t *maker, int64_t n_batches);
/* Does this process make step `step` of the run? */
bool rt_shares_mine(const gnnc_trainer *t, int64_t step);
/* The step behind those that processes make at the same time as `step`: each makes one at most. */
int64_t rt_shares_turn(const gnnc_trainer *t, int64_t step);
/* Of processes that share rows or steps: E_STATE where one has another program, other data or
 * options or, once they train, other parameters than the first. */
gnnc_status rt_processes_agree(gnnc_trainer *t, bool trains);
/* A hash of when this process evaluates, and which rows: all make parts of evaluations. */
uint64_t rt_shares_evaluations(const gnnc_trainer *t);
#define RT_SHARES_EVALUATIONS "schedule of evaluations (eval_every, eval_every_steps, eval_rows)"
/* *number becomes that of the first process, in all. */
gnnc_status rt_processes_follow_first(gnnc_trainer *t, int64_t *number);
/* Around the step t->progress.step: all of them, also those that others make. */
gnnc_status rt_shares_begin(gnnc_trainer *t);
/* It was batch `batch` of its epoch, and counts n rows. */
gnnc_status rt_shares_end(gnnc_trainer *t, int64_t batch, int64_t n);
/* Behind an update's last step, until rt_shares_update() has made the update: it waits for all
 * steps, and does what is left where it failed. */
bool rt_shares_update_is_due(const gnnc_trainer *t);
gnnc_status rt_shares_update(gnnc_trainer *t);
/* .. and where it failed: the sums are what they were before it. */
void rt_shares_undo(gnnc_trainer *t);
/* Something failed: others may be gone, until they have sent something again. */
void rt_shares_lose(gnnc_trainer *t);
/* The sums and the epoch's loss become those of all steps so far: it waits for
 * those that make them. */
gnnc_status rt_shares_settle(gnnc_trainer *t);
/* The loss of the last step, whoever made it; false: it has not come. */
bool rt_shares_loss(const gnnc_trainer *t, double *loss);
/* What the last step has logged is in all processes what it is in one that made the step.  Of all
 * processes, after rt_shares_settle(). */
gnnc_status rt_shares_tell_logs(gnnc_trainer *t);
/* Before state that steps change, as batch norm's means, is read between steps: one process adds
 * what the steps of an update left so far; of several that is an error, as the others are not
 * asked. */
gnnc_status rt_shares_settle_state(gnnc_trainer *t);

#endif
