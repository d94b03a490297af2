/* Sums over rows that processes share: all have all numbers, and the same bits whoever owns what.
 */
#ifndef RUNTIME_SUM_PARTS_H
#define RUNTIME_SUM_PARTS_H

#include "distributed.h"

typedef struct {
    int64_t count; /* numbers of the sum */
    gnnc_status (*of_part)(RtExec *x, void *user, int64_t part, float *to);
    void *user;
    const float *chunks; /* of_part adds up the part's chunks of these, one after the other; NULL:
                            it does something else */
} RtSum;

gnnc_status rt_sum_parts(RtExec *x, const RtSum *s, float *to);
/* What the process o->rank sends for one. */
void rt_sum_parts_sent(const RtDist *o, int64_t count, int64_t *n_bytes, int64_t *messages);

#endif
