/* Which edges of a node are drawn.
 *
 *   uniform, without replacement   fanout <= 512: Floyd's algorithm (Bentley and Floyd,
 *       CACM 30(9), 1987), which touches no edge that it does not draw; above, selection
 *       sampling (Fan, Muller and Rezucha 1962; Knuth, algorithm 3.4.2 S)
 *   uniform, with replacement      as many draws as the fan-out
 *   weighted, without replacement  the lowest of -log(u) / weight: Efraimidis and
 *       Spirakis, Information Processing Letters 97(5), 2006, in logarithms
 *   weighted, with replacement     binary search in the sums of weights
 *   recent                         the newest; of equal times the last
 *
 * Temporal filters come first: in the order of their times (sample_order.c) the known edges are a
 * prefix, of which uniform draws choose by place in that order; without one the edges of the node
 * are scanned. */
#include "sample_impl.h"

enum { FLOYD_MOST = 512 };

RtPicker rt_picker(const RtSampleGraph *g, const RtSampleSpec *spec, int rel, bool own,
                   int64_t fanout, uint64_t key) {
    const RtSampleRel *r = &g->rel[rel];
    const RtSampleType *t = &g->type[r->src_type];
    RtPicker p = {.rel = r, .replace = spec->how.replace, .fanout = fanout, .key = key};
    p.src_time = spec->temporal && !own ? t->time : NULL;
    p.src_inclusive = t->inclusive;
    p.temporal = spec->temporal && (r->time || p.src_time);
    p.recent = p.temporal && spec->how.pick == RT_PICK_RECENT;
    return p;
}

static bool times_are_sorted(const RtPicker *p) {
    return p->temporal && p->rel->time_sorted;
}

bool rt_picker_scans(const RtPicker *p) {
    bool weighted = p->rel->weight && !p->recent && p->fanout >= 0;
    return weighted || p->n_hidden || (p->temporal && !times_are_sorted(p));
}

/* Whether the edge at pos joins the ends of a link that is to be predicted: messages must not
 * pass over it. */
static bool is_link_to_predict(const RtPicker *p, int64_t pos, double at) {
    int64_t lo = 0, hi = p->n_hidden;
    int32_t u = p->rel->src[pos];
    if (p->temporal && p->rel->time && p->rel->time[pos] < at) return false;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (p->hidden[mid] < u)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < p->n_hidden && p->hidden[lo] == u;
}

static bool is_in_time(const RtPicker *p, int64_t pos, double at) {
    if (p->rel->time && !rt_is_known(p->rel->time[pos], at, p->rel->inclusive)) return false;
    return !p->src_time || rt_is_known(p->src_time[p->rel->src[pos]], at, p->src_inclusive);
}

bool rt_picker_knows(const RtPicker *p, int64_t pos, double at) {
    if (p->n_hidden && is_link_to_predict(p, pos, at)) return false;
    return !p->temporal || is_in_time(p, pos, at);
}

/* ---- order ---------------------------------------------------------------------------- */
/* Lets element i of a heap sink to where it belongs. */
static void sift(int64_t *x, int64_t i, int64_t n) {
    for (int64_t k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && x[k + 1] > x[k]) k++;
        if (x[i] >= x[k]) return;
        int64_t swap = x[i];
        x[i] = x[k];
        x[k] = swap;
    }
}

/* Sorts n numbers, ascending. */
void rt_sort_i64(int64_t *x, int64_t n) {
    if (n > 32) { /* heap sort: no worst case, no stack */
        for (int64_t i = n / 2; i-- > 0;) sift(x, i, n);
        for (int64_t i = n; i-- > 1;) {
            int64_t swap = x[0];
            x[0] = x[i];
            x[i] = swap;
            sift(x, 0, i);
        }
        return;
    }
    for (int64_t i = 1; i < n; i++) {
        int64_t v = x[i], k = i;
        for (; k > 0 && x[k - 1] > v; k--) x[k] = x[k - 1];
        x[k] = v;
    }
}

/* ---- without weights: k of 0 .. m-1, ascending -------------------------------------------- */
/* Draws k of m places, sorted, by Floyd's algorithm: k draws, whatever m is. */
static void floyd(uint64_t state, int64_t m, int64_t k, int64_t *out) {
    for (int64_t n = 0; n < k; n++) {
        int64_t last = m - k + n, v = rt_draw_below(state, (uint64_t)n, last + 1), at = n;
        while (at > 0 && out[at - 1] > v) at--;
        if (at > 0 && out[at - 1] == v) { /* drawn before: the newcomer, above all, instead */
            out[n] = last;
            continue;
        }
        for (int64_t i = n; i > at; i--) out[i] = out[i - 1];
        out[at] = v;
    }
}

static void select_in_order(uint64_t state, int64_t m, int64_t k, int64_t *out) {
    for (int64_t i = 0, n = 0; n < k; i++)
        if (rt_draw_below(state, (uint64_t)i, m - i) < k - n) out[n++] = i;
}

static void draw_repeatedly(uint64_t state, int64_t m, int64_t k, int64_t *out) {
    for (int64_t i = 0; i < k; i++) out[i] = rt_draw_below(state, (uint64_t)i, m);
    rt_sort_i64(out, k);
}

/* Draws places among m edges, as many as the fan-out says, into `out`, ascending; returns how
 * many. */
static int64_t draw_uniform(const RtPicker *p, uint64_t state, int64_t m, int64_t *out) {
    int64_t k = p->fanout;
    if (m == 0) return 0;
    if (k < 0 || (!p->replace && m <= k)) {
        for (int64_t i = 0; i < m; i++) out[i] = i;
        return m;
    }
    if (p->replace)
        draw_repeatedly(state, m, k, out);
    else if (k <= FLOYD_MOST)
        floyd(state, m, k, out);
    else
        select_in_order(state, m, k, out);
    return k;
}

/* ---- the k lowest scores ------------------------------------------------------------------- */
static bool is_worse(RtScored a, RtScored b) {
    return a.score > b.score || (a.score == b.score && a.pos < b.pos);
}

/* Moves the top of a heap, whose worst element is on top, down to where it belongs. */
static void sift_worst(RtScored *x, int64_t n) {
    for (int64_t i = 0, k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && is_worse(x[k + 1], x[k])) k++;
        if (!is_worse(x[k], x[i])) return;
        RtScored swap = x[i];
        x[i] = x[k];
        x[k] = swap;
    }
}

/* Moves element i of the heap up to where it belongs. */
static void sift_up(RtScored *x, int64_t i) {
    for (int64_t up; i > 0; i = up) {
        up = (i - 1) / 2;
        if (!is_worse(x[i], x[up])) return;
        RtScored swap = x[i];
        x[i] = x[up];
        x[up] = swap;
    }
}

/* Adds v to the k best so far, a heap with the worst on top. */
static void keep_best(RtScored *heap, int64_t *n, int64_t k, RtScored v) {
    if (*n < k) {
        heap[*n] = v;
        sift_up(heap, (*n)++);
    } else if (is_worse(heap[0], v)) {
        heap[0] = v;
        sift_worst(heap, k);
    }
}

/* The positions of the n chosen edges, ascending. */
static int64_t in_order(const RtScored *x, int64_t n, int64_t *pos) {
    for (int64_t i = 0; i < n; i++) pos[i] = x[i].pos;
    rt_sort_i64(pos, n);
    return n;
}

static double time_of(const RtPicker *p, int64_t pos) {
    return p->rel->time ? p->rel->time[pos] : p->src_time[p->rel->src[pos]];
}

/* Picks the newest edges of [lo, hi) that are known at time `at`; of equal times the last. */
static int64_t pick_recent(const RtPicker *p, int64_t lo, int64_t hi, double at, RtScored *heap,
                           int64_t *pos) {
    int64_t n = 0;
    for (int64_t e = lo; e < hi && p->fanout > 0; e++)
        if (rt_picker_knows(p, e, at))
            keep_best(heap, &n, p->fanout, (RtScored){-time_of(p, e), e});
    return in_order(heap, n, pos);
}

/* Picks edges without replacement, each with a chance by its weight: those with the smallest
 * exponential random numbers of rate w. */
static int64_t pick_weighted(const RtPicker *p, int64_t lo, int64_t hi, uint64_t state, double at,
                             RtScored *heap, int64_t *pos) {
    int64_t n = 0;
    for (int64_t e = lo; e < hi && p->fanout > 0; e++) {
        double w = p->rel->weight[e];
        if (w == 0 || !rt_picker_knows(p, e, at)) continue;
        double u = rt_draw_real(state, (uint64_t)(e - lo));
        keep_best(heap, &n, p->fanout, (RtScored){rt_neg_log(u) / w, e});
    }
    return in_order(heap, n, pos);
}

/* sum[i] ascends strictly: the first that exceeds v. */
static int64_t where_exceeds(const RtScored *sum, int64_t n, double v) {
    int64_t lo = 0, hi = n - 1; /* rounding may put v at the last sum */
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (sum[mid].score > v)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* Draws edges with replacement, each with a chance by its weight, by search in the running sum of
 * the weights (`sum`). */
static int64_t draw_weighted(const RtPicker *p, int64_t lo, int64_t hi, uint64_t state, double at,
                             RtScored *sum, int64_t *pos) {
    int64_t n = 0;
    double total = 0;
    for (int64_t e = lo; e < hi; e++) {
        double w = p->rel->weight[e];
        if (w == 0 || !rt_picker_knows(p, e, at)) continue;
        total += w;
        sum[n++] = (RtScored){total, e};
    }
    if (n == 0) return 0;
    for (int64_t i = 0; i < p->fanout; i++) {
        double v = (1 - rt_draw_real(state, (uint64_t)i)) * total;
        pos[i] = sum[where_exceeds(sum, n, v)].pos;
    }
    rt_sort_i64(pos, p->fanout);
    return p->fanout;
}

/* ---- one node -------- */
/* Draws among the edges of [lo, hi) that are known at time `at`. `known` has room for all of
 * them. */
static int64_t pick_known(const RtPicker *p, int64_t lo, int64_t hi, uint64_t state, double at,
                          RtScored *known, int64_t *pos) {
    int64_t m = 0;
    for (int64_t e = lo; e < hi; e++)
        if (rt_picker_knows(p, e, at)) known[m++].pos = e;
    int64_t n = draw_uniform(p, state, m, pos);
    for (int64_t i = 0; i < n; i++) pos[i] = known[pos[i]].pos;
    return n;
}

/* Edge i of a node's, the first of which is lo, in the order of their times. */
static int64_t in_time(const RtPicker *p, int64_t lo, int64_t i) {
    return p->temporal && p->rel->by_time ? lo + p->rel->by_time[i] : i;
}

/* The end of the known edges of a node's in the order of their times; unknown ones come last. */
static int64_t end_of_known(const RtPicker *p, int64_t first, int64_t hi, double at) {
    int64_t lo = first;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (is_in_time(p, in_time(p, first, mid), at))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The newest of those known, whose end in the order of time that is. */
static int64_t pick_newest(const RtPicker *p, int64_t lo, int64_t end, double at, int64_t *pos) {
    int64_t n = 0;
    if (!p->n_hidden) {
        int64_t from = end - lo > p->fanout ? end - p->fanout : lo;
        for (int64_t i = from; i < end; i++) pos[n++] = in_time(p, lo, i);
        if (p->rel->by_time) rt_sort_i64(pos, n);
        return n;
    }
    for (int64_t i = end; i-- > lo && n < p->fanout;) {
        int64_t e = in_time(p, lo, i);
        if (!is_link_to_predict(p, e, at)) pos[n++] = e;
    }
    rt_sort_i64(pos, n);
    return n;
}

/* Picks among the edges [lo, hi) by looking at each: the newest, by weight, or those that are known
 * at time `at`. */
static int64_t pick_scanning(const RtPicker *p, int64_t lo, int64_t hi, uint64_t state, double at,
                             RtScored *scratch, int64_t *pos) {
    if (p->fanout >= 0 && p->recent) return pick_recent(p, lo, hi, at, scratch, pos);
    if (p->fanout < 0 || !p->rel->weight) return pick_known(p, lo, hi, state, at, scratch, pos);
    if (p->replace) return draw_weighted(p, lo, hi, state, at, scratch, pos);
    return pick_weighted(p, lo, hi, state, at, scratch, pos);
}

int64_t rt_pick(const RtPicker *p, int64_t lo, int64_t hi, uint64_t state, double at,
                RtScored *scratch, int64_t *pos) {
    bool sorted = times_are_sorted(p), by_time = sorted && p->rel->by_time;
    int64_t end = sorted ? end_of_known(p, lo, hi, at) : hi, n = 0;
    if (sorted && p->recent && p->fanout >= 0) return pick_newest(p, lo, end, at, pos);
    if (rt_picker_scans(p))
        return pick_scanning(p, lo, by_time ? hi : end, state, at, scratch, pos);
    if (by_time && p->fanout < 0) { /* all, and so in order already */
        for (int64_t e = lo; e < hi; e++)
            if (is_in_time(p, e, at)) pos[n++] = e;
        return n;
    }
    n = draw_uniform(p, state, end - lo, pos);
    for (int64_t i = 0; i < n; i++) pos[i] = in_time(p, lo, lo + pos[i]);
    if (by_time) rt_sort_i64(pos, n);
    return n;
}
