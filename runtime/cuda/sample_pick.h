/* Which edges of a row are drawn: sample_pick.c on the device, choice by choice, by the keys of
 * sample_key.h.  A team of a warp takes a row; all its lanes call these together. */
#ifndef RUNTIME_CUDA_SAMPLE_PICK_H
#define RUNTIME_CUDA_SAMPLE_PICK_H

#include "cuda/kernel.h"
#include "cuda/sample_list.h"

/* ---- keyed draws: sample_key.h ------------------------------------------------------- */
GN_FN uint64_t gn_splitmix64(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}
GN_FN int64_t gn_draw_below(uint64_t state, int64_t i, int64_t n) {
    uint64_t draw = gn_splitmix64(state + (uint64_t)i * 0x9E3779B97F4A7C15u);
    return (int64_t)__umul64hi(draw, (uint64_t)n);
}
/* In (0, 1]. */
GN_FN double gn_draw_real(uint64_t state, int64_t i) {
    const uint64_t draw = gn_splitmix64(state + (uint64_t)i * 0x9E3779B97F4A7C15u);
    return (double)((draw >> 11) + 1) * 0x1p-53;
}

/* rt_neg_log(), operation by operation: none may be contracted. */
GN_FN double gn_neg_log(double u) {
    const double c[] = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                        1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};
    const double ln2 = 0.69314718055994530942, root2 = 1.41421356237309504880;
    uint64_t bits;
    memcpy(&bits, &u, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > root2) m *= 0.5, e++;
    const double s = __dadd_rn(m, -1) / __dadd_rn(m, 1), q = __dmul_rn(s, s);
    double p = c[0];
    for (int i = 1; i < (int)(sizeof c / sizeof *c); i++) p = __dadd_rn(__dmul_rn(p, q), c[i]);
    p = __dmul_rn(p, q);
    const double log_m = __dadd_rn(2 * s, __dmul_rn(2 * s, p));
    return -__dadd_rn(__dmul_rn(e, ln2), log_m);
}

/* ---- which relation ------------------------------------------------------------------------ */
/* The k with first[k] <= i < first[k + 1]. */
GN_FN int gn_draw_find(const int64_t *first, int n, int64_t i) {
    int lo = 0, hi = n - 1;
    while (lo < hi) {
        const int mid = lo + (hi - lo + 1) / 2;
        if (first[mid] <= i)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* ---- a row: a node of the last hop, in a relation into its type --------------------------- */
typedef struct {
    const RtDrawRel *rel;
    int64_t lo, hi; /* its edges; in the order of time, where there is one, those that are known */
    int64_t end;    /* of its edges */
    double at;      /* the seed's time */
    uint64_t state; /* of its draws */
    const int32_t *hidden; /* [n_hidden] ascending: sources that it does not see */
    int64_t n_hidden;
    int32_t fanout, tree;
    bool replace, recent, weighted;
    bool scans;   /* each edge must be looked at */
    bool timed;   /* not all are known */
    bool by_time; /* its edges do not lie in the order of time */
} GnDrawRow;

GN_FN bool gn_draw_before(double t, double at, int32_t inclusive) {
    return inclusive ? t <= at : t < at; /* NaN is not */
}

GN_FN bool gn_draw_in_time(const RtDrawRel &rel, int64_t e, double at) {
    if (rel.time && !gn_draw_before(rel.time[e], at, rel.inclusive)) return false;
    return !rel.src_time || gn_draw_before(rel.src_time[rel.src[e]], at, rel.src_inclusive);
}

/* Does the edge join the ends of a link that is to be predicted?  Earlier ones may be seen. */
GN_FN bool gn_draw_is_hidden(const GnDrawRow &row, int64_t e) {
    const RtDrawRel &rel = *row.rel;
    const int32_t u = rel.src[e];
    int64_t lo = 0, hi = row.n_hidden;
    if (row.timed && rel.time && rel.time[e] < row.at) return false;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (row.hidden[mid] < u)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < row.n_hidden && row.hidden[lo] == u;
}

/* The first of hidden pairs [lo, hi) whose node is this one or a later one. */
GN_FN int64_t gn_draw_hidden_from(const RtDraw &d, int64_t lo, int64_t hi,
                                  unsigned long long node) {
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (d.hide_node[mid] < node)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* What a seed that is an end of links does not see. */
GN_FN void gn_draw_hide(const RtDraw &d, int type, int32_t v, GnDrawRow *row) {
    const int64_t end = d.hide_first[type + 1];
    const unsigned long long node = (unsigned long long)(uint32_t)row->tree << 32 | (uint32_t)v;
    const int64_t lo = gn_draw_hidden_from(d, d.hide_first[type], end, node);
    row->hidden = d.hide_src + lo;
    row->n_hidden = gn_draw_hidden_from(d, lo, end, node + 1) - lo;
}

/* The end of the row's known edges in the order of time; unknown ones come last. */
GN_FN int64_t gn_draw_end_of_known(const GnDrawRow &row) {
    const RtDrawRel &rel = *row.rel;
    int64_t lo = row.lo, hi = row.end;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (gn_draw_in_time(rel, row.by_time ? row.lo + rel.by_time[mid] : mid, row.at))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

GN_FN GnDrawRow gn_draw_row(const RtDraw &d, int hop, int64_t i) {
    const int r = gn_draw_find(d.row_first, d.n_rels, i);
    const RtDrawRel &rel = d.rel[r];
    const RtDrawType &type = d.type[rel.dst_type];
    const int64_t number = d.row_node[r] + i - d.row_first[r];
    const int32_t v = type.id[number], tree = type.tree ? type.tree[number] : 0;
    const int32_t by = type.tree ? d.tree_key[tree] : 0;
    const bool by_time = (rel.time || rel.src_time) && !(rel.own && hop == 0);
    GnDrawRow row;
    row.rel = &rel;
    row.lo = rel.ptr[v];
    row.hi = row.end = rel.ptr[v + 1];
    row.tree = tree;
    row.at = d.tree_time ? d.tree_time[tree] : 0;
    row.state =
        gn_splitmix64(d.key[hop * d.n_rels + r] ^ ((uint64_t)(uint32_t)by << 32 | (uint32_t)v));
    row.hidden = NULL;
    row.n_hidden = 0;
    if (hop == 0 && rel.hides && d.hide_first) gn_draw_hide(d, rel.dst_type, v, &row);
    row.fanout = d.fanout[hop * d.n_rels + r];
    row.recent = by_time && d.recent && row.fanout >= 0;
    row.replace = d.replace && !row.recent;
    row.weighted = rel.weight && !row.recent && row.fanout >= 0;
    row.scans = row.weighted || row.n_hidden > 0 || (by_time && !rel.sorted);
    row.timed = by_time;
    row.by_time = by_time && rel.by_time;
    if (by_time && rel.sorted && !(row.scans && row.by_time)) row.hi = gn_draw_end_of_known(row);
    return row;
}

/* May the edge be drawn? */
GN_FN bool gn_draw_knows(const GnDrawRow &row, int64_t e) {
    if (row.weighted && row.rel->weight[e] == 0) return false;
    if (row.n_hidden && gn_draw_is_hidden(row, e)) return false;
    return !row.timed || gn_draw_in_time(*row.rel, e, row.at);
}

/* How many of its edges may be drawn. */
GN_FN int64_t gn_draw_known(const GnTeam &t, const GnDrawRow &row) {
    if (!row.scans) return row.hi - row.lo;
    int64_t n = 0;
    for (int64_t from = row.lo; from < row.hi; from += t.lanes) {
        const int64_t e = from + t.lane;
        n += __popc(__ballot_sync(t.mask, e < row.hi && gn_draw_knows(row, e)));
    }
    return n;
}

/* Of so many. */
GN_FN bool gn_draw_takes_all(const GnDrawRow &row, int64_t known) {
    return row.fanout < 0 || (!row.replace && known <= row.fanout);
}
GN_FN int64_t gn_draw_count_of(const GnDrawRow &row, int64_t known) {
    return gn_draw_takes_all(row, known) ? known : known ? row.fanout : 0;
}

/* ---- uniform: k of 0 .. m - 1, ascending --------------------------------------------------- */
GN_FN void gn_draw_sift(int64_t *x, int64_t i, int64_t n) {
    for (int64_t k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && x[k + 1] > x[k]) k++;
        if (x[i] >= x[k]) return;
        const int64_t swap = x[i];
        x[i] = x[k];
        x[k] = swap;
    }
}

GN_FN void gn_draw_sort(int64_t *x, int64_t n) {
    for (int64_t i = n / 2; i-- > 0;) gn_draw_sift(x, i, n);
    for (int64_t i = n; i-- > 1;) {
        const int64_t swap = x[0];
        x[0] = x[i];
        x[i] = swap;
        gn_draw_sift(x, 0, i);
    }
}

/* More than a warp's: k of 0 .. m - 1, ascending, by one thread. */
GN_FN void gn_draw_many(uint64_t state, int64_t m, int64_t k, bool replace, int64_t *out) {
    enum { FLOYD_MOST = 512 }; /* as in sample_pick.c */
    if (replace) {
        for (int64_t i = 0; i < k; i++) out[i] = gn_draw_below(state, i, m);
        gn_draw_sort(out, k);
        return;
    }
    if (k > FLOYD_MOST) {
        for (int64_t i = 0, n = 0; n < k; i++)
            if (gn_draw_below(state, i, m - i) < k - n) out[n++] = i;
        return;
    }
    for (int64_t n = 0; n < k; n++) {
        const int64_t last = m - k + n, v = gn_draw_below(state, n, last + 1);
        int64_t at = n;
        while (at > 0 && out[at - 1] > v) at--;
        if (at > 0 && out[at - 1] == v) {
            out[n] = last;
            continue;
        }
        for (int64_t i = n; i > at; i--) out[i] = out[i - 1];
        out[at] = v;
    }
}

/* At most a warp's: lane n makes draw n.  Floyd's newcomer takes the place of what was drawn
 * before; then each finds its place among the others. */
GN_FN void gn_draw_few(const GnTeam &t, uint64_t state, int64_t m, int k, bool replace,
                       int64_t *out) {
    int64_t x = INT64_MAX;
    if (t.lane < k) x = gn_draw_below(state, t.lane, replace ? m : m - k + t.lane + 1);
    for (int n = 1; n < k && !replace; n++) {
        const int64_t v = __shfl_sync(t.mask, x, n);
        const unsigned before = __ballot_sync(t.mask, t.lane < n && x == v);
        if (before && t.lane == n) x = m - k + n;
    }
    int place = 0;
    for (int n = 0; n < k; n++) {
        const int64_t v = __shfl_sync(t.mask, x, n);
        place += v < x || (v == x && n < t.lane);
    }
    if (t.lane < k) out[place] = x;
}

GN_FN void gn_draw_uniform(const GnTeam &t, const GnDrawRow &row, int64_t m, int64_t k,
                           int64_t *out) {
    if (k <= t.lanes)
        gn_draw_few(t, row.state, m, (int)k, row.replace, out);
    else if (t.lane == 0)
        gn_draw_many(row.state, m, k, row.replace, out);
    __syncwarp(t.mask);
}

/* ---- among edges that are looked at one by one ---------------------------------------------- */
/* The known edges whose numbers among them are choice[0 .. k), ascending, some perhaps again;
 * choice NULL: all. */
GN_FN void gn_draw_collect(const GnTeam &t, const GnDrawRow &row, const int64_t *choice, int64_t k,
                           int64_t *pos) {
    const int64_t end = row.by_time ? row.end : row.hi;
    int64_t before = 0;
    for (int64_t from = row.lo; from < end; from += t.lanes) {
        const int64_t e = from + t.lane;
        const bool known = e < end && gn_draw_knows(row, e);
        const unsigned all = __ballot_sync(t.mask, known);
        const int64_t number = before + __popc(all & ((1u << t.lane) - 1));
        before += __popc(all);
        if (!known) continue;
        if (!choice) {
            pos[number] = e;
            continue;
        }
        int64_t lo = 0, hi = k;
        while (lo < hi) {
            const int64_t mid = lo + (hi - lo) / 2;
            if (choice[mid] < number)
                lo = mid + 1;
            else
                hi = mid;
        }
        for (; lo < k && choice[lo] == number; lo++) pos[lo] = e;
    }
}

typedef struct {
    double score; /* the lowest are drawn; of equal ones the last */
    int64_t pos;  /* -1: none */
} GnScored;

GN_FN bool gn_draw_is_better(const GnScored &a, const GnScored &b) {
    if (a.pos < 0 || b.pos < 0) return a.pos >= 0;
    return a.score < b.score || (a.score == b.score && a.pos > b.pos);
}

/* The newest; or the first of a race (Efraimidis and Spirakis 2006). */
GN_FN double gn_draw_score(const GnDrawRow &row, int64_t e) {
    const RtDrawRel &rel = *row.rel;
    if (row.recent) return -(rel.time ? rel.time[e] : rel.src_time[rel.src[e]]);
    return gn_neg_log(gn_draw_real(row.state, e - row.lo)) / (double)rel.weight[e];
}

/* What was chosen, in the order of positions. */
GN_FN void gn_draw_place_all(const GnTeam &t, int64_t k, const int64_t *choice, int64_t *pos) {
    for (int64_t n = t.lane; n < k; n += t.lanes) {
        int64_t place = 0;
        for (int64_t i = 0; i < k; i++)
            place += choice[i] < choice[n] || (choice[i] == choice[n] && i < n);
        pos[place] = choice[n];
    }
}

/* The k best of more: the best, then the best of those behind it. */
GN_FN void gn_draw_lowest(const GnTeam &t, const GnDrawRow &row, int64_t k, int64_t *choice,
                          int64_t *pos) {
    GnScored last = {0, -1};
    for (int64_t n = 0; n < k; n++) {
        GnScored best = {0, -1};
        for (int64_t e = row.lo + t.lane; e < row.hi; e += t.lanes) {
            if (!gn_draw_knows(row, e)) continue;
            const GnScored own = {gn_draw_score(row, e), e};
            if (last.pos >= 0 && !gn_draw_is_better(last, own)) continue;
            if (gn_draw_is_better(own, best)) best = own;
        }
        for (int by = t.lanes / 2; by; by /= 2) {
            const GnScored other = {__shfl_xor_sync(t.mask, best.score, by),
                                    __shfl_xor_sync(t.mask, best.pos, by)};
            if (gn_draw_is_better(other, best)) best = other;
        }
        last = best;
        if (t.lane == 0) choice[n] = best.pos;
    }
    __syncwarp(t.mask);
    gn_draw_place_all(t, k, choice, pos);
}

/* k edges of a row in the order of positions: those whose numbers by time choice has, or those from
 * number `first` on. */
GN_FN void gn_draw_timed(const GnTeam &t, const GnDrawRow &row, bool chosen, int64_t first,
                         int64_t k, int64_t *choice, int64_t *pos) {
    const int32_t *by_time = row.rel->by_time + row.lo;
    for (int64_t n = t.lane; n < k; n += t.lanes)
        choice[n] = row.lo + by_time[chosen ? choice[n] : first + n];
    __syncwarp(t.mask);
    gn_draw_place_all(t, k, choice, pos);
}

/* By weight, with replacement: sums are made one edge after the other, as the host makes them.
 * What is looked for lies in `choice` as bits, whose order is that of numbers above 0. */
GN_FN void gn_draw_by_sums(const GnDrawRow &row, int64_t k, int64_t *choice, int64_t *pos) {
    double total = 0, sum = 0;
    int64_t n = 0, last = 0;
    for (int64_t e = row.lo; e < row.hi; e++)
        if (gn_draw_knows(row, e)) total += row.rel->weight[e];
    for (int64_t i = 0; i < k; i++) {
        const double v = (1 - gn_draw_real(row.state, i)) * total;
        memcpy(&choice[i], &v, sizeof v);
    }
    gn_draw_sort(choice, k);
    for (int64_t e = row.lo; e < row.hi && n < k; e++) {
        if (!gn_draw_knows(row, e)) continue;
        sum += row.rel->weight[e];
        for (double v; n < k; n++) {
            memcpy(&v, &choice[n], sizeof v);
            if (v >= sum) break;
            pos[n] = e;
        }
        last = e;
    }
    for (; n < k; n++) pos[n] = last; /* rounding may put it at the last sum */
}

/* ---- one row -------- */
/* k positions of edges, ascending, of `known` that may be drawn; choice [k] is room. */
GN_FN void gn_draw_edges(const GnTeam &t, const GnDrawRow &row, int64_t known, int64_t k,
                         int64_t *choice, int64_t *pos) {
    const bool all = gn_draw_takes_all(row, known);
    if (row.by_time && !row.scans && row.fanout < 0) { /* as they lie */
        gn_draw_collect(t, row, NULL, k, pos);
    } else if (row.by_time && !row.scans) {
        const bool chosen = !all && !row.recent;
        if (chosen) gn_draw_uniform(t, row, known, k, choice);
        gn_draw_timed(t, row, chosen, known - k, k, choice, pos);
    } else if (!row.scans && !all && !row.recent) {
        gn_draw_uniform(t, row, known, k, pos);
        for (int64_t n = t.lane; n < k; n += t.lanes) pos[n] += row.lo;
    } else if (!row.scans) { /* all, or the last ones */
        for (int64_t n = t.lane; n < k; n += t.lanes) pos[n] = row.hi - k + n;
    } else if (all) {
        gn_draw_collect(t, row, NULL, k, pos);
    } else if (row.recent || (row.weighted && !row.replace)) {
        gn_draw_lowest(t, row, k, choice, pos);
    } else if (row.weighted) {
        if (t.lane == 0) gn_draw_by_sums(row, k, choice, pos);
    } else {
        gn_draw_uniform(t, row, known, k, choice);
        gn_draw_collect(t, row, choice, k, pos);
    }
    __syncwarp(t.mask);
}

#endif
