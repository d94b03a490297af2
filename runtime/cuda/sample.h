/* Neighbour sampling on the device: the batches of runtime/batch/sample.c, bit for bit.
 *
 * The choices are those of sample_pick.c, by the keys of sample_key.h; a warp takes a row, that is
 * a node of the last hop in a relation into its type.  Rows come relation by relation, and so do
 * the edges that are drawn; a node's number is that of the first entry it is in.  Which that is, is
 * the greatest of one word per node of the data (atomicMax: the order of threads does not matter):
 *
 *     0                    not in the batch
 *     2^31 - 1 - entry     first seen at this entry of the present hop
 *     2^31 + number        in the batch
 *
 *     count    how many edges of each row     ->  sum: where they go
 *     pick     positions and sources; marks
 *     first    is this entry its source's first?  ->  sum: numbers
 *     name     the new nodes
 *     emit     edges, sources numbered; ends of rows
 *
 * Sizes stay on the device: launches have threads for the most there can be, which stride over what
 * there is.  Sums are made in two launches, by the same parts whatever the order of blocks
 * (reduce, then scan: Dotsenko et al., ICS 2008).  No bits depend on the order of threads. */
#ifndef RUNTIME_CUDA_SAMPLE_H
#define RUNTIME_CUDA_SAMPLE_H

#include "cuda/kernel.h"
#include "cuda/sample_list.h"

#define GN_NAMED 0x80000000u

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

/* ---- sums: x[i] = sum of x[0 .. i), and x[n] of all ------------------------------------ */
static __global__ void gn_sum_parts(const int32_t *x, const int64_t *n, int64_t *part) {
    const GnPart p = gn_part_of(*n);
    int64_t sum = 0;
    for (int64_t i = p.lo + threadIdx.x; i < p.hi; i += GN_THREADS) sum += x[i];
    sum = gn_fold_block<GnSum>(gn_block_team(1), sum, 1, GN_THREADS);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

static __global__ void gn_sum_apply(int32_t *x, const int64_t *n, const int64_t *part) {
    __shared__ int32_t tile_sum;
    const GnPart p = gn_part_of(*n);
    int64_t before = (int)threadIdx.x < (int)blockIdx.x ? part[threadIdx.x] : 0;
    before = gn_fold_block<GnSum>(gn_block_team(1), before, 1, GN_THREADS);
    for (int64_t at = p.lo; at < p.hi; at += GN_THREADS) {
        const int64_t i = at + threadIdx.x;
        const int32_t v = i < p.hi ? x[i] : 0, sum = gn_sum_up(v);
        if (i < p.hi) x[i] = (int32_t)before + sum - v;
        if (threadIdx.x == GN_THREADS - 1) tile_sum = sum;
        __syncthreads();
        before += tile_sum;
        __syncthreads();
    }
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) x[*n] = (int32_t)before;
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

/* ---- seeds ----------------------------------------------------------------------------------- */
GN_FN uint32_t gn_draw_entry(int64_t i) {
    return (uint32_t)(GN_NAMED - 1 - (uint32_t)i);
}

static __global__ void gn_draw_begin(RtDraw d) {
    GN_ROWS(i, *d.n_seeds) {
        d.node[i] = d.seed[i];
        atomicMax(&d.type[d.rel[d.n_rels].src_type].mark[d.seed[i]], gn_draw_entry(i));
    }
    GN_SERIAL(1) {
        for (int t = 0; t < d.n_types; t++) d.n_nodes[t] = d.node_from[t] = 0;
        for (int r = 0; r < d.n_rels; r++) d.n_edges[r] = 0;
        d.drawn_first[0] = 0;
        d.drawn_first[1] = *d.n_seeds;
    }
}

static __global__ void gn_draw_seeds_at(RtDraw d) {
    const uint32_t *mark = d.type[d.rel[d.n_rels].src_type].mark;
    GN_ROWS(i, *d.n_seeds) d.seed_at[i] = (int32_t)(mark[d.seed[i]] - GN_NAMED);
}

/* ---- rows: how many edges ---------------------------------------------------------------------
 */
static __global__ void gn_draw_rows(RtDraw d) {
    GN_SERIAL(1) {
        d.row_first[0] = 0;
        for (int r = 0; r < d.n_rels; r++) {
            const int t = d.rel[r].dst_type;
            d.row_node[r] = d.node_from[t];
            d.row_first[r + 1] = d.row_first[r] + d.n_nodes[t] - d.node_from[t];
        }
    }
}

GN_FN bool gn_draw_takes_all(const RtDraw &d, int32_t fanout, int64_t degree) {
    return fanout < 0 || (!d.replace && degree <= fanout);
}

/* A row's node in the data. */
GN_FN int32_t gn_draw_row_id(const RtDraw &d, int r, int64_t row) {
    return d.type[d.rel[r].dst_type].id[d.row_node[r] + row - d.row_first[r]];
}

static __global__ void gn_draw_count(RtDraw d, int hop) {
    GN_ROWS(i, d.row_first[d.n_rels]) {
        const int r = gn_draw_find(d.row_first, d.n_rels, i);
        const int32_t v = gn_draw_row_id(d, r, i), k = d.fanout[hop * d.n_rels + r];
        const int64_t n = d.rel[r].ptr[v + 1] - d.rel[r].ptr[v];
        d.row_at[i] = gn_draw_takes_all(d, k, n) ? (int32_t)n : n ? k : 0;
    }
}

/* ---- pick
 * ---------------------------------------------------------------------------------------- */
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

static __global__ void gn_draw_pick(RtDraw d, int hop) {
    const GnTeam t = gn_warp_team(32, 1);
    GN_TEAM_ROWS(i, d.row_first[d.n_rels], t) {
        const int r = gn_draw_find(d.row_first, d.n_rels, i);
        const RtDrawRel &rel = d.rel[r];
        const int32_t v = gn_draw_row_id(d, r, i), fanout = d.fanout[hop * d.n_rels + r];
        const int64_t lo = rel.ptr[v], m = rel.ptr[v + 1] - lo;
        const int64_t at = d.row_at[i], k = d.row_at[i + 1] - at;
        const bool all = gn_draw_takes_all(d, fanout, m);
        const uint64_t state = gn_splitmix64(d.key[hop * d.n_rels + r] ^ (uint64_t)(uint32_t)v);
        if (!all && k <= 32)
            gn_draw_few(t, state, m, (int)k, d.replace, d.pos + at);
        else if (!all && t.lane == 0)
            gn_draw_many(state, m, k, d.replace, d.pos + at);
        __syncwarp(t.mask);
        for (int64_t n = t.lane; n < k; n += 32) {
            const int64_t pos = lo + (all ? n : d.pos[at + n]), e = at + n;
            const int32_t u = rel.src[pos];
            d.pos[e] = pos;
            d.node[e] = u;
            d.row_of[e] = (int32_t)i;
            atomicMax(&d.type[rel.src_type].mark[u], gn_draw_entry(e));
        }
    }
    GN_SERIAL(1) {
        for (int r = 0; r <= d.n_rels; r++) d.drawn_first[r] = d.row_at[d.row_first[r]];
    }
}

/* ---- numbers
 * ------------------------------------------------------------------------------------- */
/* Entries of relations first .. first + n - 1: of all, or of the seeds alone. */
static __global__ void gn_draw_first(RtDraw d, int first, int n) {
    GN_ROWS(i, d.drawn_first[n]) {
        const int r = first + gn_draw_find(d.drawn_first, n, i);
        d.new_before[i] = d.type[d.rel[r].src_type].mark[d.node[i]] == gn_draw_entry(i);
    }
}

/* Hop -1 is that of the seeds. */
static __global__ void gn_draw_place(RtDraw d, int hop, int first, int n) {
    GN_SERIAL(1) {
        for (int t = 0; t < d.n_types; t++) d.node_from[t] = d.n_nodes[t];
        for (int k = 0; k < n; k++) {
            const int64_t from = d.drawn_first[k], to = d.drawn_first[k + 1];
            int64_t *nodes = &d.n_nodes[d.rel[first + k].src_type];
            d.new_at[first + k] = *nodes - d.new_before[from];
            *nodes += d.new_before[to] - d.new_before[from];
            if (hop < 0) continue;
            d.edges_at[k] = d.n_edges[k] - from;
            d.n_edges[k] += to - from;
        }
        for (int t = 0; t < d.n_types; t++) d.node_end[t * (d.n_hops + 1) + hop + 1] = d.n_nodes[t];
        for (int r = 0; r < d.n_rels; r++) {
            int64_t *end = d.edge_end + r * (d.n_hops + 1);
            if (hop >= 0) end[hop] = d.n_edges[r];
            end[d.n_hops] = d.n_edges[r];
        }
    }
}

static __global__ void gn_draw_name(RtDraw d, int first, int n) {
    GN_ROWS(i, d.drawn_first[n]) {
        const int r = first + gn_draw_find(d.drawn_first, n, i);
        if (d.new_before[i + 1] == d.new_before[i]) continue;
        const RtDrawType &t = d.type[d.rel[r].src_type];
        const int64_t number = d.new_at[r] + d.new_before[i];
        t.id[number] = d.node[i];
        t.mark[d.node[i]] = GN_NAMED + (uint32_t)number;
    }
}

/* ---- edges
 * ------------------------------------------------------------------------------------------
 */
static __global__ void gn_draw_emit(RtDraw d) {
    GN_ROWS(i, d.drawn_first[d.n_rels]) {
        const int r = gn_draw_find(d.drawn_first, d.n_rels, i);
        const RtDrawRel &rel = d.rel[r];
        const int64_t e = d.edges_at[r] + i, pos = d.pos[i];
        rel.to_src[e] = (int32_t)(d.type[rel.src_type].mark[d.node[i]] - GN_NAMED);
        rel.to_dst[e] = (int32_t)(d.row_node[r] + d.row_of[i] - d.row_first[r]);
        rel.to_pos[e] = pos;
        if (rel.id) rel.to_id[e] = rel.id[pos];
    }
    GN_ROWS(i, d.row_first[d.n_rels]) {
        const int r = gn_draw_find(d.row_first, d.n_rels, i);
        d.rel[r].to_ptr[d.row_node[r] + i - d.row_first[r] + 1] = d.edges_at[r] + d.row_at[i + 1];
    }
}

/* Nodes of the last hop, which have no edges, end every ptr; and marks are forgotten. */
static __global__ void gn_draw_end(RtDraw d) {
    const int64_t lanes = (int64_t)gridDim.x * GN_THREADS;
    const int64_t self = (int64_t)blockIdx.x * GN_THREADS + threadIdx.x;
    for (int r = 0; r < d.n_rels; r++) {
        const RtDrawRel &rel = d.rel[r];
        const int64_t from = d.n_hops ? d.node_from[rel.dst_type] : 0;
        for (int64_t i = from + self; i < d.n_nodes[rel.dst_type]; i += lanes)
            rel.to_ptr[i + 1] = d.n_edges[r];
        if (self == 0) rel.to_ptr[0] = 0;
    }
    for (int t = 0; t < d.n_types; t++)
        for (int64_t i = self; i < d.n_nodes[t]; i += lanes) d.type[t].mark[d.type[t].id[i]] = 0;
}

/* ---- a batch
 * ---------------------------------------------------------------------------------------
 */
typedef struct {
    void *stream;
    int status; /* a cudaError_t: of the first launch that failed */
} GnDrawing;

template <class K> static inline void gn_draw_launch(GnDrawing *g, K *k, int64_t n, void **args) {
    if (!g->status) g->status = gn_launch(k, n < 1 ? 1 : n, args, g->stream);
}

/* As many blocks as there may be tiles, at most RT_DRAW_PARTS: the same for both. */
static inline void gn_draw_sum(GnDrawing *g, const RtDraw *d, int32_t *x, const int64_t *n,
                               int64_t most) {
    enum { PER_BLOCK = 4 * GN_THREADS };
    int64_t blocks = gn_min64(gn_max64(gn_ceildiv(most, PER_BLOCK), 1), RT_DRAW_PARTS);
    int64_t *part = d->part;
    const int32_t *from = x;
    void *sum[] = {&from, &n, &part}, *apply[] = {&x, &n, &part};
    gn_draw_launch(g, gn_sum_parts, blocks * GN_THREADS, sum);
    gn_draw_launch(g, gn_sum_apply, blocks * GN_THREADS, apply);
}

/* Numbers for the sources of entries of relations first .. first + n - 1. */
static inline void gn_draw_number(GnDrawing *g, const RtDraw *d, int hop, int first, int n,
                                  int64_t most) {
    RtDraw of = *d;
    void *some[] = {&of, &first, &n}, *place[] = {&of, &hop, &first, &n};
    gn_draw_launch(g, gn_draw_first, most, some);
    gn_draw_sum(g, d, d->new_before, d->drawn_first + n, most);
    gn_draw_launch(g, gn_draw_place, 1, place);
    gn_draw_launch(g, gn_draw_name, most, some);
}

/* arg: an RtDraw of the host's. */
static inline int gn_sample(void *const *arg, void *stream) {
    RtDraw d = *(const RtDraw *)arg[0];
    GnDrawing g = {stream, 0};
    void *one[] = {&d};
    gn_draw_launch(&g, gn_draw_begin, d.most_seeds, one);
    gn_draw_number(&g, &d, -1, d.n_rels, 1, d.most_seeds);
    gn_draw_launch(&g, gn_draw_seeds_at, d.most_seeds, one);
    for (int hop = 0; hop < d.n_hops; hop++) {
        void *two[] = {&d, &hop};
        gn_draw_launch(&g, gn_draw_rows, 1, one);
        gn_draw_launch(&g, gn_draw_count, d.most_rows, two);
        gn_draw_sum(&g, &d, d.row_at, d.row_first + d.n_rels, d.most_rows);
        gn_draw_launch(&g, gn_draw_pick, d.most_rows * 32, two);
        gn_draw_number(&g, &d, hop, 0, d.n_rels, d.most_drawn);
        gn_draw_launch(&g, gn_draw_emit, gn_max64(d.most_rows, d.most_drawn), one);
    }
    gn_draw_launch(&g, gn_draw_end, gn_max64(d.most_nodes, d.most_dst), one);
    return g.status;
}

#endif
