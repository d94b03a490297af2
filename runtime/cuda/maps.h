/* Relations and the index arrays of maps, built on the device: those of runtime/data/relation.c
 * and csr.c, array by array.
 *
 * Everything is made of one primitive, as it is there: elements grouped by a key, in their order.
 * Here that is a radix sort from the lowest digit on, of 8 bits, so each pass is stable and has
 * two launches (Satish, Harris, Garland: Designing efficient sorting algorithms for manycore GPUs,
 * 2009):
 *
 *     count    a block has a part of the elements: how many of each digit
 *     place    where the part's elements of a digit begin (all of smaller digits, and those of
 *              that digit in earlier parts), then tile by tile: an element's place is behind those
 *              of its digit in earlier tiles, warps and lanes
 *
 * A warp's lanes of one digit find each other by votes; nothing is counted by atomics, and parts
 * depend on sizes alone.  A derived relation is never listed in memory: its list says of each place
 * which edge is there (gn_edge_at), the key of a dropped one is -1, and what is written in the end
 * are the edges in their order.  Ends of groups are found by bisection among sorted keys. */
#ifndef RUNTIME_CUDA_MAPS_H
#define RUNTIME_CUDA_MAPS_H

#include "cuda/kernel.h"
#include "cuda/maps_list.h"

/* ---- lists ------------------------------------------------------------------------------- */
struct GnEdge {
    int64_t i; /* of its relation */
    int32_t of, src, dst;
};

GN_FN GnEdge gn_edge_at(const RtEdgeList &l, int64_t place) {
    const int64_t k = l.chosen ? l.chosen[place] : place;
    const int32_t of = k >= l.of[0].n;
    const RtEdgesOf &r = l.of[of];
    const int64_t i = of ? k - l.of[0].n : k;
    return GnEdge{i, of, r.src ? r.src[i] : (int32_t)i, r.dst ? r.dst[i] : (int32_t)i};
}

GN_FN bool gn_edge_stays(const RtEdgeList &l, const GnEdge &e) {
    return !(l.of[e.of].no_loops && e.src == e.dst) && (!l.mask || l.mask[e.i]);
}

GN_FN int64_t gn_place_of(const int32_t *at, int64_t i) {
    return at ? at[i] : i;
}

static __global__ void gn_edge_keys(RtEdgeKeys k) {
    GN_ROWS(i, k.list.n) {
        const GnEdge e = gn_edge_at(k.list, gn_place_of(k.at, i));
        k.key[i] = !gn_edge_stays(k.list, e) ? -1 : k.by_src ? e.src : e.dst;
    }
}

static __global__ void gn_edge_first(RtEdgeKeys k) {
    GN_ROWS(i, k.list.n) {
        const GnEdge e = gn_edge_at(k.list, k.at[i]);
        const GnEdge last = gn_edge_at(k.list, k.at[i ? i - 1 : 0]);
        k.key[k.at[i]] = i && e.src == last.src && e.dst == last.dst ? -1 : 0;
    }
}

static __global__ void gn_edges_to(RtEdgesTo to) {
    GN_ROWS(i, *to.n) {
        const int64_t place = to.perm[i];
        const GnEdge e = gn_edge_at(to.list, place);
        const RtEdgesOf &r = to.list.of[e.of];
        to.src[i] = e.src;
        to.dst[i] = e.dst;
        to.id[i] = to.list.chosen ? (int32_t)place : r.id ? r.id[e.i] : (int32_t)(r.id_first + e.i);
        for (int k = 0; k < 2; k++)
            if (to.orig[k]) to.orig[k][i] = r.orig == k ? (int32_t)e.i : -1;
    }
}

/* ---- sorting ------------------------------------------------------------------------------ */
/* Of a tile's elements, one to each thread: how many each warp has of each digit. */
struct GnBins {
    int32_t n[GN_THREADS / 32][RT_SORT_BINS];
};
static_assert((int)RT_SORT_BINS == (int)GN_THREADS, "a thread for each digit");
static_assert((int)RT_SORT_LEAST == 4 * (int)GN_THREADS, "a part has some tiles");

/* How many lanes before this one have its digit.  Each thread clears the bins of one digit: of
 * these alone the caller may read before all threads have come back here. */
GN_FN int gn_bins_fill(GnBins &b, int digit, bool is) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    unsigned same = __ballot_sync(0xffffffffu, is);
    for (int w = 0; w < GN_THREADS / 32; w++) b.n[w][threadIdx.x] = 0;
    for (int bit = 1; bit < RT_SORT_BINS; bit *= 2) {
        const unsigned set = __ballot_sync(0xffffffffu, digit & bit);
        same &= digit & bit ? set : ~set;
    }
    const int before = __popc(same & ((1u << lane) - 1));
    __syncthreads();
    if (is && before == 0) b.n[warp][digit] = __popc(same);
    __syncthreads();
    return before;
}

GN_FN int32_t gn_bins_sum(const GnBins &b) {
    int32_t sum = 0;
    for (int w = 0; w < GN_THREADS / 32; w++) sum += b.n[w][threadIdx.x];
    return sum;
}

/* Elements without a group come behind all groups. */
GN_FN uint32_t gn_sort_key(const int32_t *key, int64_t i, int64_t n_groups) {
    return (uint32_t)gn_min64((uint32_t)key[i], n_groups);
}
GN_FN int gn_sort_digit(uint32_t key, int shift) {
    return (int)(key >> shift) & (RT_SORT_BINS - 1);
}

static __global__ void gn_sort_count(RtKeySort s, int shift) {
    __shared__ GnBins bins;
    const GnPart p = gn_part_of(s.n);
    int32_t sum = 0;
    for (int64_t at = p.lo; at < p.hi; at += GN_THREADS) {
        const int64_t i = at + threadIdx.x;
        const bool is = i < p.hi;
        gn_bins_fill(bins, is ? gn_sort_digit(gn_sort_key(s.key, i, s.n_groups), shift) : 0, is);
        sum += gn_bins_sum(bins);
    }
    s.count[blockIdx.x * RT_SORT_BINS + threadIdx.x] = sum;
}

/* perm and keys[0] get what key and at have, by the digit. */
static __global__ void gn_sort_place(RtKeySort s, int shift) {
    __shared__ GnBins bins;
    __shared__ int32_t first[RT_SORT_BINS]; /* where the next of each digit goes */
    const GnPart p = gn_part_of(s.n);
    int32_t before = 0, all = 0;
    for (int part = 0; part < (int)gridDim.x; part++) {
        const int32_t n = s.count[part * RT_SORT_BINS + (int)threadIdx.x];
        if (part < (int)blockIdx.x) before += n;
        all += n;
    }
    first[threadIdx.x] = gn_sum_up(all) - all + before;
    for (int64_t at = p.lo; at < p.hi; at += GN_THREADS) {
        const int64_t i = at + threadIdx.x;
        const bool is = i < p.hi;
        const uint32_t key = is ? gn_sort_key(s.key, i, s.n_groups) : 0;
        const int digit = gn_sort_digit(key, shift);
        int32_t to = gn_bins_fill(bins, digit, is);
        if (is) {
            to += first[digit];
            for (int w = 0; w < (int)threadIdx.x / 32; w++) to += bins.n[w][digit];
            s.keys[0][to] = (int32_t)key;
            s.perm[to] = (int32_t)gn_place_of(s.at, i);
        }
        __syncthreads(); /* places and bins have been read */
        first[threadIdx.x] += gn_bins_sum(bins);
    }
}

static __global__ void gn_sort_ends(RtKeySort s) {
    GN_ROWS(g, s.n_groups + 1) {
        int64_t lo = 0, hi = s.n;
        while (lo < hi) {
            const int64_t mid = lo + (hi - lo) / 2;
            if (s.keys[0][mid] < g)
                lo = mid + 1;
            else
                hi = mid;
        }
        s.ptr[g] = lo;
    }
}

/* ---- arrays ------------------------------------------------------------------------------- */
static __global__ void gn_take_to(RtTakeTo t) {
    GN_ROWS(i, t.n ? *t.n : t.count) {
        const int64_t k = t.wide ? t.wide[i] : gn_place_of(t.perm, i);
        t.y[i] = (int32_t)gn_place_of(t.x, k);
    }
}

static __global__ void gn_rows_to(RtRowsTo r) {
    GN_ROWS(k, r.n) r.y[k] = (int32_t)gn_row_of(r.ptr, r.rows, k);
}

/* ---- launches ------------------------------------------------------------------------------ */
template <class T> static inline int gn_maps_launch(void (*k)(T), T w, int64_t n, void *stream) {
    void *args[] = {&w};
    return gn_launch(k, n, args, stream);
}

/* Passes write to one pair of arrays and to the other by turns; the last one to perm. */
static inline int gn_maps_sort(RtKeySort s, void *stream) {
    const int64_t parts = rt_sort_parts(s.n);
    int passes = 1, e = 0;
    while (s.n_groups >> 8 * passes) passes++;
    for (int p = 0; p < passes && !e; p++) {
        int shift = 8 * p;
        RtKeySort now = s;
        void *args[] = {&now, &shift};
        const bool last = (passes - 1 - p) % 2 == 0;
        now.perm = last ? s.perm : s.tmp;
        now.keys[0] = s.keys[last ? 0 : 1];
        e = gn_launch(gn_sort_count, parts * GN_THREADS, args, stream);
        if (!e) e = gn_launch(gn_sort_place, parts * GN_THREADS, args, stream);
        s.key = now.keys[0];
        s.at = now.perm;
    }
    return e || !s.ptr ? e : gn_maps_launch(gn_sort_ends, s, s.n_groups + 1, stream);
}

/* arg: an RtMapsOp; what it says, of the host's. */
static inline int gn_maps(void *const *arg, void *stream) {
    switch (*(const RtMapsOp *)arg[0]) {
    case RT_MAPS_KEYS:
    case RT_MAPS_FIRST: {
        const RtEdgeKeys k = *(const RtEdgeKeys *)arg[1];
        const bool keys = *(const RtMapsOp *)arg[0] == RT_MAPS_KEYS;
        return gn_maps_launch(keys ? gn_edge_keys : gn_edge_first, k, k.list.n, stream);
    }
    case RT_MAPS_EDGES: {
        const RtEdgesTo to = *(const RtEdgesTo *)arg[1];
        return gn_maps_launch(gn_edges_to, to, to.list.n, stream);
    }
    case RT_MAPS_SORT:
        return gn_maps_sort(*(const RtKeySort *)arg[1], stream);
    case RT_MAPS_TAKE: {
        const RtTakeTo t = *(const RtTakeTo *)arg[1];
        return gn_maps_launch(gn_take_to, t, t.count, stream);
    }
    case RT_MAPS_ROWS: {
        const RtRowsTo r = *(const RtRowsTo *)arg[1];
        return gn_maps_launch(gn_rows_to, r, r.n, stream);
    }
    }
    return (int)cudaErrorInvalidValue;
}

#endif
