/* Evaluations whose batches several processes share out: each makes some, and sends all what they
 * gave, by which all evaluate alike.  What a batch gives does not depend on who makes it, and is
 * added in the order of the batches: results are those of one process. */
#ifndef RUNTIME_EVAL_SHARES_H
#define RUNTIME_EVAL_SHARES_H

#include "runtime/trainer/trainer.h"

/* Is the evaluation under way one that all processes make, each some of its batches?  On a device
 * each makes all of them. */
bool rt_eval_is_shared(const gnnc_trainer *t);
/* Which process makes batch i of n: each some that follow each other. */
int rt_eval_maker(const gnnc_trainer *t, int64_t i, int64_t n);
/* Is what the last batch leaves of a phase read, as logs and values that are dumped are?  All make
 * that batch then. */
bool rt_eval_reads_last(const gnnc_trainer *t, int phase);

/* What one process sends at a time. */
typedef struct RtEvalMessage {
    char *p;
    size_t n_bytes;
} RtEvalMessage;
/* Room for n_bytes; what it held is lost. */
gnnc_status rt_eval_message(gnnc_trainer *t, RtEvalMessage *m, size_t n_bytes);

#endif
