/* Memory for what is made anew for every batch: one block that allocations are cut from in
 * turn and that a reset makes free again.  It grows at a reset, to what the last round
 * needed; growth is counted. */
#ifndef RUNTIME_RECYCLE_H
#define RUNTIME_RECYCLE_H

#include "batch.h"

typedef struct RtRecycle {
    RtGrowth growth;
    RtGrow block;           /* that allocations are cut from */
    size_t used, wanted;    /* bytes of the block given; asked for since the last reset */
    union RtRecycled *more; /* what the block had no room for */
} RtRecycle;

void rt_recycle_init(RtRecycle *r, const RtAlloc *from);
void rt_recycle_free(RtRecycle *r);
/* Everything given becomes invalid.  On failure it goes on with the block it has. */
void rt_recycle_reset(RtRecycle *r);
/* An allocator whose blocks live until the reset; `r` must stay where it is. */
RtAlloc rt_recycle_alloc(RtRecycle *r);

#endif
