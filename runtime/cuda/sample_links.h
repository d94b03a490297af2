/* Links and their negatives, the ends of which are a batch's seeds: rt_links_pairs() on the device,
 * draw by draw, by the keys of sample_key.h. */
#ifndef RUNTIME_CUDA_SAMPLE_LINKS_H
#define RUNTIME_CUDA_SAMPLE_LINKS_H

#include "cuda/sample_pick.h"

/* The number of the query that source u and a kind of edge are; -1: no edge asks it. */
GN_FN int64_t gn_links_query(const RtDrawLinks &l, int32_t u, int64_t kind) {
    const int64_t end = l.of_source[u + 1];
    int64_t a = l.of_source[u], b = end;
    while (a < b) {
        const int64_t mid = a + (b - a) / 2;
        if (l.kind[l.by_query[l.query[mid]]] < kind)
            a = mid + 1;
        else
            b = mid;
    }
    return a < end && l.kind[l.by_query[l.query[a]]] == kind ? a : -1;
}

/* Is an edge of this kind from u to v in one of the splits? */
GN_FN bool gn_links_have(const RtDrawLinks &l, int32_t u, int64_t kind, int32_t v) {
    const int64_t q = gn_links_query(l, u, kind);
    if (q < 0) return false;
    const int64_t end = l.query[q + 1];
    int64_t a = l.query[q], b = end;
    while (a < b) {
        const int64_t mid = a + (b - a) / 2;
        if (l.end[1][l.by_query[mid]] < v)
            a = mid + 1;
        else
            b = mid;
    }
    for (; a < end && l.end[1][l.by_query[a]] == v; a++) {
        const int32_t split = l.split[l.by_query[a]];
        if (split >= l.first && split <= l.last) return true;
    }
    return false;
}

/* May v[0], v[1] be a negative of edge e?  Not where a node is not there yet, nor a true edge. */
GN_FN bool gn_links_will_do(const RtDrawLinks &l, int32_t e, const int32_t v[2]) {
    for (int k = 0; k < 2 && l.when; k++)
        if (l.since[k] && !(l.since[k][v[k]] <= l.when[e])) return false;
    return !l.by_query || !gn_links_have(l, v[0], l.kind[e], v[1]);
}

GN_FN void gn_links_draw(const RtDrawLinks &l, int32_t e, uint64_t state, int32_t v[2]) {
    enum { TRIES = 64 }; /* as in links.c */
    const uint64_t of_side = gn_splitmix64(state + 2 * TRIES * 0x9E3779B97F4A7C15u);
    const int side = l.either ? (int)(of_side >> 63) : l.side;
    for (int t = 0; t < TRIES; t++) {
        v[0] = l.end[0][e];
        v[1] = l.end[1][e];
        v[side] = (int32_t)gn_draw_below(state, 2 * t, l.n_nodes[side]);
        if (l.both) v[0] = (int32_t)gn_draw_below(state, 2 * t + 1, l.n_nodes[0]);
        if (gn_links_will_do(l, e, v)) return;
    }
    const int64_t from = v[side];
    for (int64_t k = 1; k <= l.n_nodes[side]; k++) {
        v[side] = (int32_t)((from + k) % l.n_nodes[side]);
        if (gn_links_will_do(l, e, v)) return;
    }
}

#endif
