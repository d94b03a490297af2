/* Neighbour sampling on the device: the batches of runtime/sample/sample.c, bit for bit.
 *
 * A warp takes a row, that is a node of the last hop in a relation into its type, and chooses as
 * the host does (sample_pick.h).  Rows come relation by relation, and so do
 * the edges that are drawn; a node's number is that of the first entry it is in.  Which that is, is
 * the greatest of one word per node of the data, or where each seed has a tree of its own, per node
 * of a tree, found by hashing (atomicMax: the order of threads does not matter):
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

#include "cuda/sample_links.h"

#define GN_NAMED 0x80000000u

/* ---- sums: x[i] = sum of x[0 .. i), and x[n] of all ------------------------------------ */
static __global__ void gn_sum_parts(const int32_t *x, const int64_t *n, int64_t *part) {
    const GnPart p = gn_part_of(*n);
    int64_t sum = 0;
    for (int64_t i = p.lo + threadIdx.x; i < p.hi; i += GN_THREADS) sum += x[i];
    sum = gn_fold<GnSum>(gn_block_team(1), sum, 1, GN_THREADS);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

static __global__ void gn_sum_apply(int32_t *x, const int64_t *n, const int64_t *part) {
    __shared__ int32_t tile_sum;
    const GnPart p = gn_part_of(*n);
    int64_t before = (int)threadIdx.x < (int)blockIdx.x ? part[threadIdx.x] : 0;
    before = gn_fold<GnSum>(gn_block_team(1), before, 1, GN_THREADS);
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

/* ---- seeds ----------------------------------------------------------------------------------- */
GN_FN uint32_t gn_draw_entry(int64_t i) {
    return (uint32_t)(GN_NAMED - 1 - (uint32_t)i);
}

/* The seeds: sources of all pairs, then their destinations. */
static __global__ void gn_draw_pairs(RtDraw d) {
    const int64_t n = d.n_links[0], k = d.n_links[1], first = d.n_links[2];
    GN_ROWS(i, n * (1 + k)) {
        const int64_t link = i < n ? i : (i - n) / k, j = i < n ? 0 : (i - n) % k;
        const int32_t e = d.edge[link];
        int32_t v[2] = {d.links.end[0][e], d.links.end[1][e]};
        if (i >= n) {
            const uint64_t at = (uint64_t)(uint32_t)(first + link) << 32 | (uint32_t)j;
            gn_links_draw(d.links, e, gn_splitmix64(*d.negative_key ^ at), v);
        }
        d.seed[i] = v[0];
        d.seed[*d.n_seeds + i] = v[1];
    }
}

/* Entry i is this node: the first of its tree to come is the greatest there.  Returns its slot;
 * which that is depends on who came first, what is there does not. */
GN_FN int32_t gn_draw_mark(const RtDrawType &t, int32_t tree, int32_t node, int64_t i) {
    int64_t slot = node;
    if (t.key) {
        const unsigned long long key =
            ((unsigned long long)(uint32_t)tree << 32 | (uint32_t)node) + 1;
        for (slot = (int64_t)gn_splitmix64(key) & (t.slots - 1);;
             slot = (slot + 1) & (t.slots - 1)) {
            const unsigned long long had = atomicCAS(&t.key[slot], 0ull, key);
            if (had == 0 || had == key) break;
        }
    }
    atomicMax(&t.mark[slot], gn_draw_entry(i));
    return (int32_t)slot;
}

static __global__ void gn_draw_begin(RtDraw d) {
    const int64_t n = *d.n_seeds;
    GN_ROWS(i, d.n_groups * n) {
        const int64_t group = i / n, in_group = i - group * n;
        const int32_t tree = d.seed_tree ? d.seed_tree[in_group] : 0;
        d.node[i] = d.seed[i];
        d.slot[i] = gn_draw_mark(d.type[d.rel[d.n_rels + group].src_type], tree, d.seed[i], i);
    }
    GN_SERIAL(1) {
        for (int t = 0; t < d.n_types; t++) d.n_nodes[t] = d.node_from[t] = 0;
        for (int r = 0; r < d.n_rels; r++) d.n_edges[r] = 0;
        for (int g = 0; g <= d.n_groups; g++) d.drawn_first[g] = g * n;
    }
}

static __global__ void gn_draw_seeds_at(RtDraw d) {
    const int64_t n = *d.n_seeds;
    GN_ROWS(i, d.n_groups * n) {
        const uint32_t *mark = d.type[d.rel[d.n_rels + i / n].src_type].mark;
        d.seed_at[i] = (int32_t)(mark[d.slot[i]] - GN_NAMED);
    }
}

/* ---- rows: how many edges -------- */
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

static __global__ void gn_draw_count(RtDraw d, int hop) {
    const GnTeam t = gn_warp_team(d.scans ? 32 : 1, 1);
    GN_TEAM_ROWS(i, d.row_first[d.n_rels], t) {
        const GnDrawRow row = gn_draw_row(d, hop, i);
        const int64_t known = gn_draw_known(t, row);
        if (t.lane) continue;
        d.row_known[i] = known;
        d.row_at[i] = (int32_t)gn_draw_count_of(row, known);
    }
}

/* ---- pick -------- */
static __global__ void gn_draw_pick(RtDraw d, int hop) {
    const GnTeam t = gn_warp_team(32, 1);
    GN_TEAM_ROWS(i, d.row_first[d.n_rels], t) {
        const GnDrawRow row = gn_draw_row(d, hop, i);
        const RtDrawRel &rel = *row.rel;
        const int64_t at = d.row_at[i], k = d.row_at[i + 1] - at;
        gn_draw_edges(t, row, d.row_known[i], k, d.choice + at, d.pos + at);
        for (int64_t e = at + t.lane; e < at + k; e += 32) {
            d.node[e] = rel.src[d.pos[e]];
            d.row_of[e] = (int32_t)i;
            d.slot[e] = gn_draw_mark(d.type[rel.src_type], row.tree, d.node[e], e);
        }
    }
    GN_SERIAL(1) {
        for (int r = 0; r <= d.n_rels; r++) d.drawn_first[r] = d.row_at[d.row_first[r]];
    }
}

/* ---- numbers -------- */
/* Entries of relations first .. first + n - 1: of all, or of the seeds alone. */
static __global__ void gn_draw_first(RtDraw d, int first, int n) {
    GN_ROWS(i, d.drawn_first[n]) {
        const int r = first + gn_draw_find(d.drawn_first, n, i);
        d.new_before[i] = d.type[d.rel[r].src_type].mark[d.slot[i]] == gn_draw_entry(i);
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
        t.mark[d.slot[i]] = GN_NAMED + (uint32_t)number;
        if (!t.key) continue;
        t.slot_of[number] = d.slot[i];
        t.tree[number] = (int32_t)((t.key[d.slot[i]] - 1) >> 32);
    }
}

/* ---- edges -------- */
static __global__ void gn_draw_emit(RtDraw d) {
    GN_ROWS(i, d.drawn_first[d.n_rels]) {
        const int r = gn_draw_find(d.drawn_first, d.n_rels, i);
        const RtDrawRel &rel = d.rel[r];
        const int64_t e = d.edges_at[r] + i, pos = d.pos[i];
        rel.to_src[e] = (int32_t)(d.type[rel.src_type].mark[d.slot[i]] - GN_NAMED);
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
    for (int k = 0; k < d.n_types; k++) {
        const RtDrawType &t = d.type[k];
        for (int64_t i = self; i < d.n_nodes[k]; i += lanes) {
            const int32_t slot = t.key ? t.slot_of[i] : t.id[i];
            t.mark[slot] = 0;
            if (t.key) t.key[slot] = 0;
        }
    }
}

/* ---- a batch -------- */
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
    if (d.pairs) gn_draw_launch(&g, gn_draw_pairs, d.most_seeds / d.n_groups, one);
    if (d.alone) return g.status;
    gn_draw_launch(&g, gn_draw_begin, d.most_seeds, one);
    gn_draw_number(&g, &d, -1, d.n_rels, d.n_groups, d.most_seeds);
    gn_draw_launch(&g, gn_draw_seeds_at, d.most_seeds, one);
    for (int hop = 0; hop < d.n_hops; hop++) {
        void *two[] = {&d, &hop};
        gn_draw_launch(&g, gn_draw_rows, 1, one);
        gn_draw_launch(&g, gn_draw_count, d.scans ? d.most_rows * 32 : d.most_rows, two);
        gn_draw_sum(&g, &d, d.row_at, d.row_first + d.n_rels, d.most_rows);
        gn_draw_launch(&g, gn_draw_pick, d.most_rows * 32, two);
        gn_draw_number(&g, &d, hop, 0, d.n_rels, d.most_drawn);
        gn_draw_launch(&g, gn_draw_emit, gn_max64(d.most_rows, d.most_drawn), one);
    }
    gn_draw_launch(&g, gn_draw_end, gn_max64(d.most_nodes, d.most_dst), one);
    return g.status;
}

#endif
