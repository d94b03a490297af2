/* What a program's device_maps reads (cuda/maps.h), one of these at a time.  Arrays are the
 * device's, n below 2^31. */
#ifndef RUNTIME_CUDA_MAPS_LIST_H
#define RUNTIME_CUDA_MAPS_LIST_H

#include <stdint.h>

typedef enum {
    RT_MAPS_KEYS,  /* RtEdgeKeys */
    RT_MAPS_FIRST, /* RtEdgeKeys */
    RT_MAPS_EDGES, /* RtEdgesTo */
    RT_MAPS_SORT,  /* RtKeySort */
    RT_MAPS_TAKE,  /* RtTakeTo */
    RT_MAPS_ROWS   /* RtRowsTo */
} RtMapsOp;

/* Edges as a derivation lists them (runtime/data/relation.h): all of one relation, then all of
 * another one, of the same one turned round, or a loop for each node. */
typedef struct RtEdgesOf {
    int64_t n;
    const int32_t *src, *dst; /* [n]; NULL: edge i is a loop of node i */
    const int32_t *id;        /* [n] logical ids; NULL: id_first + i */
    int64_t id_first;
    int32_t orig; /* which of the result's orig arrays has i; -1 = none */
    int32_t no_loops;
} RtEdgesOf;

typedef struct RtEdgeList {
    int64_t n; /* of both, or chosen */
    RtEdgesOf of[2];
    const uint8_t *mask;   /* [of[0].n] edges that stay; NULL: all */
    const int32_t *chosen; /* [n] places in both, whose logical ids are 0 .. n - 1; NULL: all */
} RtEdgeList;

/* KEYS: key[i] = the end of edge at[i], -1 where it does not stay.
 * FIRST: key[at[i]] = -1 where edge at[i] has the ends of edge at[i - 1], else 0. */
typedef struct RtEdgeKeys {
    RtEdgeList list;
    const int32_t *at; /* [list.n] places in the list; NULL: i */
    int32_t by_src;
    int32_t *key; /* [list.n] */
} RtEdgeKeys;

/* Edges perm[0 .. *n). */
typedef struct RtEdgesTo {
    RtEdgeList list;
    const int32_t *perm;
    const int64_t *n;
    int32_t *src, *dst, *id, *orig[2]; /* orig: NULL = not wanted */
} RtEdgesTo;

enum { RT_SORT_BINS = 256, RT_SORT_PARTS = 512, RT_SORT_LEAST = 1024 }; /* of a part, at least */

/* Parts of n elements. */
static inline int64_t rt_sort_parts(int64_t n) {
    int64_t parts = n / RT_SORT_LEAST + (n % RT_SORT_LEAST != 0);
    return parts < 1 ? 1 : parts < RT_SORT_PARTS ? parts : RT_SORT_PARTS;
}

/* rt_group() of data/csr.h: perm = at[] (NULL: i) ordered by key, in [-1, n_groups), stable, those
 * of -1 last; ptr[g] = how many keys of 0 .. g - 1 there are. */
typedef struct RtKeySort {
    int64_t n, n_groups;
    const int32_t *key, *at; /* [n] */
    int32_t *perm;           /* [n] */
    int64_t *ptr;            /* [n_groups + 1]; NULL: not wanted */
    int32_t *keys[2], *tmp;  /* [n] meanwhile */
    int32_t *count;          /* [rt_sort_parts(n)][RT_SORT_BINS] meanwhile */
} RtKeySort;

/* y[i] = x[perm[i]], i < *n; x or perm NULL: the identity.  count >= *n; n NULL: it is count.
 * wide, if it is not NULL, is in perm's place. */
typedef struct RtTakeTo {
    int64_t count;
    const int64_t *n;
    const int32_t *x, *perm;
    const int64_t *wide;
    int32_t *y;
} RtTakeTo;

/* y[k] = the row with ptr[row] <= k < ptr[row + 1], k < n. */
typedef struct RtRowsTo {
    int64_t n, rows;
    const int64_t *ptr;
    int32_t *y;
} RtRowsTo;

#endif
