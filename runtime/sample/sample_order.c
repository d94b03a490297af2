/* Edges of each destination by time, so that a sampler finds what a seed knows of a hub's.
 *
 * Times may be those of edges or, as rows of tables have them, of sources; an edge is known when
 * both are.  Mostly rows were listed as they happened, and edges lie in this order. */
#include <math.h>

#include "sample.h"

typedef struct {
    double time;
    int32_t at; /* of the edges of its destination */
} Timed;

/* From when on an edge is known; NaN: never. */
static double time_of(const RtSampleRel *r, const double *src_time, int64_t e) {
    if (!r->time) return src_time[r->src[e]];
    return src_time && isnan(src_time[r->src[e]]) ? (double)NAN : r->time[e];
}

static bool is_later(double a, double b) {
    return a > b || (isnan(a) && !isnan(b));
}

/* Do the edges of each destination lie in the order of their times? */
static bool is_ordered(const RtSampleRel *r, const double *src_time, int64_t n_dst) {
    for (int64_t d = 0; d < n_dst; d++)
        for (int64_t e = r->ptr[d] + 1; e < r->ptr[d + 1]; e++)
            if (is_later(time_of(r, src_time, e - 1), time_of(r, src_time, e))) return false;
    return true;
}

/* Then when an edge is known says its own time alone. */
static bool none_is_older_than_its_source(const RtSampleRel *r, const double *src_time) {
    for (int64_t e = 0; e < r->n_edges; e++)
        if (r->time[e] < src_time[r->src[e]]) return false;
    return true;
}

/* The most edges that a destination has. */
static int64_t longest(const RtSampleRel *r, int64_t n_dst) {
    int64_t most = 0;
    for (int64_t d = 0; d < n_dst; d++)
        if (r->ptr[d + 1] - r->ptr[d] > most) most = r->ptr[d + 1] - r->ptr[d];
    return most;
}

static void merge(const Timed *a, int64_t mid, int64_t n, Timed *out) {
    for (int64_t i = 0, j = mid, k = 0; k < n; k++)
        out[k] = j == n || (i < mid && !is_later(a[i].time, a[j].time)) ? a[i++] : a[j++];
}

/* Sorts n elements by merging: stable, and no row is a worst case. Returns where the result lies:
 * in x or in y. */
static const Timed *sort(Timed *x, Timed *y, int64_t n) {
    for (int64_t by = 1; by < n; by *= 2) {
        for (int64_t i = 0; i < n; i += 2 * by) {
            int64_t left = n - i;
            merge(x + i, left < by ? left : by, left < 2 * by ? left : 2 * by, y + i);
        }
        Timed *swap = x;
        x = y;
        y = swap;
    }
    return x;
}

/* Sorts each destination's edges by time: by_time gets their places in the row. `room` has place
 * for two rows of the longest kind. */
static void order(const RtSampleRel *r, const double *src_time, int64_t n_dst, Timed *room,
                  int64_t most, int32_t *by_time) {
    for (int64_t d = 0; d < n_dst; d++) {
        int64_t lo = r->ptr[d], n = r->ptr[d + 1] - lo;
        for (int64_t i = 0; i < n; i++) room[i] = (Timed){time_of(r, src_time, lo + i), (int32_t)i};
        const Timed *sorted = sort(room, room + most, n);
        for (int64_t i = 0; i < n; i++) by_time[lo + i] = sorted[i].at;
    }
}

gnnc_status rt_sample_order(RtPool *pool, const RtSampleType *src, int64_t n_dst, RtSampleRel *r,
                            RtError *err) {
    RtPool scratch;
    int64_t most = longest(r, n_dst);
    r->time_sorted = false;
    r->by_time = NULL;
    if (!r->time && !src->time) return GNNC_OK;
    if (r->time && src->time &&
        (r->inclusive != src->inclusive || !none_is_older_than_its_source(r, src->time)))
        return GNNC_OK;
    if (most > INT32_MAX) return GNNC_OK;
    if (is_ordered(r, src->time, n_dst)) {
        r->time_sorted = true;
        return GNNC_OK;
    }
    rt_pool_init(&scratch, &pool->from);
    int32_t *by_time = RT_NEWN(pool, int32_t, r->n_edges);
    Timed *room = RT_NEWN(&scratch, Timed, 2 * most);
    if (by_time && room) {
        order(r, src->time, n_dst, room, most, by_time);
        r->by_time = by_time;
        r->time_sorted = true;
    }
    rt_pool_free(&scratch);
    return by_time && room ? GNNC_OK : rt_fail_nomem(err, r->name);
}
