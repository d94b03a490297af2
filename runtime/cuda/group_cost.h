/* How long products take on a GPU, in one call and in one call each: what decides whether a group
 * (program.h: rt_product_group) is made at once, and what --report=fusion prints of it.
 *
 * A product is made in tiles of 128 x 128, each by one multiprocessor, whose time for a tile grows
 * with the length of the sum.  Alone it fills as many of them as it has tiles, or more if the
 * library cuts a long sum in parts; with others the tiles of all share them, but sums stay whole
 * (cuBLAS's grouped and batched products do not split them).  So few rows speak for one call, as
 * does each launch that is saved, and long sums against it.
 *
 * The numbers are those of an H200's data sheet, and none of them has been measured; a group must
 * save a tenth, as the library's choice of an algorithm for it may be a worse one. */
#ifndef RUNTIME_CUDA_GROUP_COST_H
#define RUNTIME_CUDA_GROUP_COST_H

#include <stdbool.h>
#include <stdint.h>

enum {
    RT_TILE = 128,          /* rows and columns */
    RT_TILE_NS = 64,        /* a step of the sum: 2 * 128 * 128 operations of 67 TFLOP/s / 132 */
    RT_TILE_LOW_NS = 5,     /* the same in tensor cores: TF32, 16 bits */
    RT_TILE_EDGE_NS = 2000, /* to write it: 64 KiB of 4.8 TB/s / 132 */
    RT_SPLIT_LEAST = 256,   /* of a sum that is cut, each part */
    RT_PRODUCT_NS = 2000,   /* a launch, or node of a recording, and its start */
    RT_GROUP_GAIN = 10      /* one part in so many must be saved */
};

typedef struct {
    int64_t m, n, k;
} RtProduct;

typedef struct {
    double together_ns, apart_ns;
} RtGroupCost;

static inline int64_t rt_group_parts(int64_t n, int64_t of) {
    return (n + of - 1) / of;
}

/* units: multiprocessors; low: in tensor cores */
static inline RtGroupCost rt_group_cost(const RtProduct *p, int n, int units, bool low) {
    double step = low ? RT_TILE_LOW_NS : RT_TILE_NS, work = 0, longest = 0;
    RtGroupCost c = {RT_PRODUCT_NS, 0};
    for (int i = 0; i < n; i++) {
        int64_t tiles = rt_group_parts(p[i].m, RT_TILE) * rt_group_parts(p[i].n, RT_TILE);
        if (tiles < 1) continue; /* a product without rows is no work */
        int64_t free = units / tiles, most = p[i].k / RT_SPLIT_LEAST;
        int64_t split = free < most ? free : most;
        if (split < 1) split = 1;
        double whole = (double)p[i].k * step + RT_TILE_EDGE_NS;
        double part = (double)p[i].k / (double)split * step + RT_TILE_EDGE_NS;
        c.apart_ns += (double)rt_group_parts(tiles * split, units) * part +
                      (split > 1 ? 2 : 1) * RT_PRODUCT_NS;
        work += (double)tiles * whole;
        if (whole > longest) longest = whole;
    }
    double shared = work / units;
    c.together_ns += shared > longest ? shared : longest;
    return c;
}

static inline bool rt_group_pays(const RtGroupCost *c) {
    return c->together_ns * RT_GROUP_GAIN < c->apart_ns * (RT_GROUP_GAIN - 1);
}

#endif
