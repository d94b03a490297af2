/* What is computed while rows of other processes come (beside.c). */
#ifndef RUNTIME_BESIDE_H
#define RUNTIME_BESIDE_H

#include "distributed.h"

/* Where the rows that come are written: row[i] of buf gets number i of those in `in`; all of it is
 * where steps run. */
typedef struct {
    char *buf;
    const char *in;
    const int32_t *row;
    int64_t n;
    size_t row_bytes;
} RtArrival;
/* Writes the rows to their place. */
gnnc_status rt_arrival_put(RtExec *x, const RtArrival *a);

/* Exchange i of the program: sends and receives all of m, then writes the rows of `a` to their
 * place.  Where it has something beside it, and that is worth it, it goes on when this returns,
 * until the next launch waits for it. */
gnnc_status rt_beside_exchange(RtExec *x, int i, RtMessages *m, const RtArrival *a);
/* How many exchanges go on.  If any, the next launch is the one beside them: of kernel k on the own
 * rows, `per_row` iterations each, first of those that need nothing of the exchanges. */
int rt_beside_pending(const RtExec *x);
void rt_beside_launch(RtExec *x, RtRange rows, rt_kernel *k, void *const *arg, int64_t per_row);
/* On a device: *needs gets, there, by own row of the launch beside what goes on, whether it needs
 * something of that. */
gnnc_status rt_beside_needs(RtExec *x, const unsigned char **needs);
/* Waits for the exchanges that go on, or lets what is queued from now on; what failed is in
 * RtDist.failed, too. */
gnnc_status rt_beside_end(RtExec *x);
/* Ends the thread. */
void rt_beside_close(RtExec *x);

#endif
