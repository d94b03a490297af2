/* A thread that calls the host's exchange function while the trainer's own threads compute
 * (beside.c, pull.c). */
#ifndef RUNTIME_BACKGROUND_H
#define RUNTIME_BACKGROUND_H

#include "distributed.h"

typedef struct RtBackground RtBackground;

/* NULL: no thread or no memory for one, and whoever asked exchanges by himself. */
RtBackground *rt_background_new(RtPool *pool, const gnnc_processes *p);
/* Ends the thread, behind its exchanges; NULL: nothing.  The memory is the pool's. */
void rt_background_end(RtBackground *b);
/* Adds an exchange, behind those that were asked for before; at most RT_BESIDE_MOST until they were
 * waited for, and m must stay so long. */
void rt_background_exchange(RtBackground *b, const RtMessages *m);
/* The same of a job, which may exchange several times and lasts no less long. */
typedef gnnc_status RtBackgroundJob(void *user);
void rt_background_run(RtBackground *b, RtBackgroundJob *job, void *user);
/* Waits for all of them; returns what the first that failed did: none is made behind it. */
gnnc_status rt_background_wait(RtBackground *b);

#endif
