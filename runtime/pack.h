/* Packing buffers with lifetimes into one block of memory. */
#ifndef RUNTIME_PACK_H
#define RUNTIME_PACK_H

#include "runtime/status.h"

typedef struct {
    size_t n_bytes; /* in: 0 takes no room */
    int first,
        last; /* in: must not overlap in memory with items whose lifetime meets [first, last] */
    int loop; /* in: local to this repeated span (rt_pack_span), from 1; 0 = to none */
    int first_in, last_in; /* in: of a local one the steps of the span where it holds something */
    size_t offset;         /* out: a multiple of RT_ALIGN */
} RtPackItem;

/* Steps first..last are repeated together: whoever lives in one of them lives in all. */
void rt_pack_span(RtPackItem *item, int first, int last);

/* Sets every offset; returns the bytes of the block.  `order` and `live` are scratch of n
 * entries.  The result depends on the items only. */
size_t rt_pack(RtPackItem *item, int n, int *order, int *live);

#endif
