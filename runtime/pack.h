/* Packing buffers with lifetimes into one block of memory. */
#ifndef RUNTIME_PACK_H
#define RUNTIME_PACK_H

#include "status.h"

typedef struct {
    size_t n_bytes; /* in: 0 takes no room */
    int first,
        last; /* in: must not overlap in memory with items whose lifetime meets [first, last] */
    size_t offset; /* out: a multiple of RT_ALIGN */
} RtPackItem;

/* Sets every offset; returns the bytes of the block.  `order` and `live` are scratch of n
 * entries.  The result depends on the items only. */
size_t rt_pack(RtPackItem *item, int n, int *order, int *live);

#endif
