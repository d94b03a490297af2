/* Features in parts: processes that share the steps of an update have each the rows of its own
 * parts, and send each other what batches read of them (option pull_rows).
 *
 * For steps that are made at the same time each process asks the owners for those rows of its batch
 * that are not its own, each row once, and copies them into the batch: values are copied, not
 * computed, so the bits are those of a process that has all rows.  A batch's rows come while the
 * step before it is computed.  All processes ask as often and in the same order: each call below
 * that says so is one of all of them.
 *
 * Where the host's exchange fails it fails in all of them, and they may make the call again.  What
 * fails in one alone, while others are in the exchange, it tells at every later call. */
#ifndef RUNTIME_PULL_H
#define RUNTIME_PULL_H

#include "minibatch.h"
#include "runtime/sample/sample.h"
#include "runtime/trainer/trainer.h"

typedef struct RtPulls RtPulls;

/* What rows come for.  Processes tell each other, so that one that is elsewhere is found out before
 * messages of other sizes are waited for. */
typedef enum { RT_PULL_STAY, RT_PULL_TRAIN, RT_PULL_ROWS, RT_PULL_WHOLE } RtPullUse;

/* Once columns are bound, and before anything is made of their values: who has which rows.  Of all
 * processes, also of those without the option: they are told that another has it.  E_STATE: this
 * program or these data cannot. */
gnnc_status rt_pulls_open(gnnc_trainer *t);
/* Chooses the rows of others that stay here, the most read ones that have room in option
 * pull_cache, by the edges of the graph that batches are drawn from; and brings them.  Of all
 * processes. */
gnnc_status rt_pulls_keep(gnnc_trainer *t, const RtSampleGraph *g);
/* Brings the rows of others into a bound batch of the trainer's data; NULL: this process only
 * sends.  Of all processes, at the same use and step; t->pulls is there. */
gnnc_status rt_pulls_batch(gnnc_trainer *t, RtMinibatch *m, RtPullUse use, int64_t step);
/* The same, but maybe by another thread, until rt_pulls_wait(): nobody touches the batch meanwhile.
 * Whoever sends or receives anything else waits first. */
gnnc_status rt_pulls_start(gnnc_trainer *t, RtMinibatch *m, RtPullUse use, int64_t step);
gnnc_status rt_pulls_wait(gnnc_trainer *t);
/* Did what was started last come?  Its failure was told by the wait, maybe to another caller. */
bool rt_pulls_came(const gnnc_trainer *t);
/* The process that has a row of a type; -1: none of its columns is pulled. */
int rt_pulls_maker(const gnnc_trainer *t, int type, int64_t row);
/* Runs a phase on the whole data.  Where it reads columns that are pulled, all their rows come to
 * every process before it, and go behind it.  Of all processes. */
gnnc_status rt_pulls_run_whole(gnnc_trainer *t, const rt_phase *phase);
/* Ends the thread and gives back the room of messages. */
void rt_pulls_close(gnnc_trainer *t);

#endif
