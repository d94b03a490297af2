/* Ranks on the device, for programs that rank (an area under a curve): runtime/exec/rank.c
 * says what they are.
 *
 * A merge sort of (key, position) pairs, all lanes side by side.  Each pass merges runs of w
 * into runs of 2 w without any order among threads: an element finds its place by counting, by
 * bisection, how many elements of the other run come before it (Hagerup and Rueb, 1989).  Then
 * two bisections more find the elements that are tied with it. */
#ifndef RUNTIME_CUDA_RANK_H
#define RUNTIME_CUDA_RANK_H

#include "cuda/kernel.h"

#include <string.h>

struct GnLanes {
    int64_t outer, len, inner; /* of the array: lanes run along `len` */
    int64_t ties;              /* have the lowest (0), mean (1), highest (2) of their ranks */
};

/* In the order of values; 0 and -0 are tied, so are all NaNs, and what is masked out comes last. */
#define GN_RANK_NAN 0xfffffffeu
#define GN_RANK_OUT 0xffffffffu

GN_FN uint32_t gn_rank_key(float v) {
    uint32_t bits;
    if (v != v) return GN_RANK_NAN;
    float positive = v == 0 ? 0 : v;
    memcpy(&bits, &positive, sizeof bits);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* How many of the ascending key[0, n) are below k, or not above it. */
GN_FN int64_t gn_rank_before(const uint32_t *key, int64_t n, uint32_t k, bool or_equal) {
    int64_t lo = 0;
    while (lo < n) {
        int64_t mid = lo + (n - lo) / 2;
        if (key[mid] < k || (or_equal && key[mid] == k))
            lo = mid + 1;
        else
            n = mid;
    }
    return lo;
}

/* Where element i of a lane lies in the array. */
GN_FN int64_t gn_rank_at(GnLanes l, int64_t lane, int64_t i) {
    return (lane / l.inner * l.len + i) * l.inner + lane % l.inner;
}

static __global__ void gn_rank_keys(const float *v, const unsigned char *mask, uint32_t *key,
                                    int32_t *at, GnLanes l, int64_t total) {
    GN_ROWS(e, total) {
        int64_t i = e % l.len, from = gn_rank_at(l, e / l.len, i);
        key[e] = mask[from] ? gn_rank_key(v[from]) : GN_RANK_OUT;
        at[e] = (int32_t)i;
    }
}

static __global__ void gn_rank_merge(const uint32_t *key, const int32_t *at, uint32_t *to_key,
                                     int32_t *to_at, int64_t len, int64_t w, int64_t total) {
    GN_ROWS(e, total) {
        int64_t first = e / len * len, i = e % len, run = i / w;
        int64_t other = (run ^ 1) * w, n = gn_max64(0, gn_min64(w, len - other));
        bool second = run & 1; /* of equal elements those of the first run come first */
        int64_t before = gn_rank_before(key + first + other, n, key[e], second);
        int64_t to = first + run / 2 * 2 * w + i % w + before;
        to_key[to] = key[e];
        to_at[to] = at[e];
    }
}

static __global__ void gn_rank_write(const uint32_t *key, const int32_t *at, float *y, GnLanes l,
                                     int64_t total) {
    GN_ROWS(e, total) {
        int64_t lane = e / l.len;
        const uint32_t *of = key + lane * l.len;
        int64_t lo = gn_rank_before(of, l.len, key[e], false);
        int64_t hi = gn_rank_before(of, l.len, key[e], true);
        float rank = (float)((double)(lo + 1) + 0.5 * (double)(l.ties * (hi - lo - 1)));
        y[gn_rank_at(l, lane, at[e])] = key[e] == GN_RANK_OUT ? 0 : rank;
    }
}

/* arg: values, mask, ranks, 16 bytes of work for each element, a GnLanes. */
static inline int gn_rank(void *const *arg, void *stream) {
    const float *v = (const float *)arg[0];
    const unsigned char *mask = (const unsigned char *)arg[1];
    float *y = (float *)arg[2];
    GnLanes l = *(const GnLanes *)arg[4];
    int64_t total = l.outer * l.len * l.inner;
    uint32_t *key = (uint32_t *)arg[3], *next_key = key + total;
    int32_t *at = (int32_t *)(next_key + total), *next_at = at + total;
    void *keys[] = {&v, &mask, &key, &at, &l, &total};
    int e = gn_launch(gn_rank_keys, total, keys, stream);
    for (int64_t w = 1; w < l.len && !e; w *= 2) {
        void *merge[] = {&key, &at, &next_key, &next_at, &l.len, &w, &total};
        e = gn_launch(gn_rank_merge, total, merge, stream);
        uint32_t *k = key;
        int32_t *a = at;
        key = next_key, next_key = k;
        at = next_at, next_at = a;
    }
    void *write[] = {&key, &at, &y, &l, &total};
    return e ? e : gn_launch(gn_rank_write, total, write, stream);
}

#endif
