/* Edges beyond those that were drawn: all among the nodes, or all the other way.
 *
 * induced         every edge of the graph between two nodes of the batch (of one tree)
 * bidirectional   the drawn edges, and for each u -> v drawn every edge v -> u of the
 *                 relation's `reverse`: edges of the graph with columns of their own,
 *                 none is made up.  Each edge once.
 *
 * Temporal batches take of these only what is known at the tree's time. */
#include <string.h>

#include "sample_impl.h"

/* ---- induced -------------------------------------------------------------------------- */
/* Local number of the source of edge `pos` into local node d; -1: not in the batch. */
static int32_t source_in(const RtSampler *s, const RtBatch *b, int rel, int64_t d, int64_t pos) {
    const RtSampleRel *r = &s->g.rel[rel];
    RtPicker p = rt_picker_at(s, rel, d);
    if (!rt_picker_knows(&p, pos, rt_time_of(s, b, r->dst_type, d))) return -1;
    return rt_ids_find(&s->ids[r->src_type], rt_tree_of(b, r->dst_type, d), r->src[pos]);
}

/* Counts for each destination of the chunk the edges whose sources the batch has, too (and knows at
 * its time). */
static void count_induced(RtSampler *s, RtBatch *b, RtChunk *c, int member) {
    const RtSampleRel *r = &s->g.rel[c->rel];
    int64_t *count = b->edges[c->rel].ptr + 1;
    (void)member;
    c->n = 0;
    for (int64_t d = c->lo; d < c->hi; d++) {
        int32_t v = b->nodes[r->dst_type].id[d];
        count[d] = 0;
        for (int64_t e = r->ptr[v]; e < r->ptr[v + 1]; e++)
            count[d] += source_in(s, b, c->rel, d, e) >= 0;
        c->n += count[d];
    }
}

/* Writes the edges that count_induced() counted, from the chunk's place on. */
static void write_induced(RtSampler *s, RtBatch *b, RtChunk *c, int member) {
    const RtSampleRel *r = &s->g.rel[c->rel];
    RtBatchEdges *out = &b->edges[c->rel];
    int64_t at = c->out_at;
    (void)member;
    for (int64_t d = c->lo; d < c->hi; d++) {
        int32_t v = b->nodes[r->dst_type].id[d];
        for (int64_t e = r->ptr[v]; e < r->ptr[v + 1]; e++) {
            int32_t u = source_in(s, b, c->rel, d, e);
            if (u >= 0) rt_edge_put(r, out, at++, u, d, e);
        }
        out->ptr[d + 1] = at;
    }
}

gnnc_status rt_sample_induce(RtSampler *s, RtBatch *b, RtError *err) {
    gnnc_status st = GNNC_OK;
    s->n_chunks = 0;
    for (int r = 0; r < s->g.n_rels && st == GNNC_OK; r++) {
        s->picker[r] = rt_picker(&s->g, &s->spec, r, false, -1, 0);
        st = rt_sample_push_chunks(s, r, 0, b->nodes[s->g.rel[r].dst_type].n, err);
    }
    if (st != GNNC_OK) return st;
    rt_sample_each(s, b, s->n_chunks < 4, count_induced);
    for (int r = 0; r < s->g.n_rels; r++) b->edges[r].n = b->edges[r].end[s->spec.how.n_hops] = 0;
    for (int64_t i = 0; i < s->n_chunks; i++) {
        s->chunk[i].out_at = b->edges[s->chunk[i].rel].n;
        b->edges[s->chunk[i].rel].n += s->chunk[i].n;
    }
    for (int r = 0; r < s->g.n_rels && st == GNNC_OK; r++)
        st = rt_edges_reserve(s, b, r, b->edges[r].n, err);
    if (st == GNNC_OK) rt_sample_each(s, b, s->n_chunks < 4, write_induced);
    return st;
}

/* ---- both ways ------------------------------------------------------------------------------ */
/* Edges of relation q to come: those drawn in q, and those that answer a drawn edge of a
 * relation whose reverse q is.  They are listed as (destination, position) twice: once to
 * count by destination, once to place. */
typedef struct {
    RtSampler *s;
    RtBatch *b;
    int q;
    int64_t *at;  /* [n_dst + 1] */
    int64_t *pos; /* NULL: count only */
    int64_t n;
} Both;

/* Lists an edge of destination d: first only counts it (no `pos`), then writes its position. */
static void list(Both *w, int64_t d, int64_t pos) {
    w->n++;
    if (w->pos)
        w->pos[w->at[d]++] = pos;
    else
        w->at[d + 1]++;
}

/* Positions [*lo, *hi) in by_src->perm of the edges u -> v: edges of a source ascend by position,
 * positions by destination. */
static void find_edges(const RtSampleRel *r, int32_t u, int32_t v, int64_t *lo, int64_t *hi) {
    int64_t a = r->by_src->ptr[u], end = r->by_src->ptr[u + 1], b = end;
    while (a < b) {
        int64_t mid = a + (b - a) / 2;
        if (r->dst[rt_group_at(r->by_src, mid)] < v)
            a = mid + 1;
        else
            b = mid;
    }
    for (*lo = a; b < end && r->dst[rt_group_at(r->by_src, b)] == v;) b++;
    *hi = b;
}

/* Lists the edges that lead back from the ends of the sampled ones. */
static void list_reverse_edges(Both *w, int rel) {
    const RtSampleRel *r = &w->s->g.rel[rel], *q = &w->s->g.rel[w->q];
    const RtBatchEdges *e = &w->b->edges[rel];
    for (int64_t i = 0; i < e->n; i++) {
        int32_t u = w->b->nodes[r->src_type].id[e->src[i]];
        int32_t v = w->b->nodes[r->dst_type].id[e->dst[i]];
        double time = rt_time_of(w->s, w->b, r->dst_type, e->dst[i]);
        RtPicker p = rt_picker_at(w->s, w->q, e->src[i]);
        int64_t lo, hi;
        find_edges(q, v, u, &lo, &hi);
        for (; lo < hi; lo++) {
            int64_t pos = rt_group_at(q->by_src, lo);
            if (rt_picker_knows(&p, pos, time)) list(w, e->src[i], pos);
        }
    }
}

/* Lists the drawn edges of relation q and those that lead back along the drawn edges of others. */
static void list_all(Both *w) {
    const RtBatchEdges *e = &w->b->edges[w->q];
    w->n = 0;
    for (int64_t i = 0; i < e->n; i++) list(w, e->dst[i], e->pos[i]);
    for (int r = 0; r < w->s->g.n_rels; r++)
        if (w->s->g.rel[r].reverse == w->q) list_reverse_edges(w, r);
}

/* Sorts the edges to keep by destination, by counting: w->at has the row pointers and w->pos the
 * positions. The relation of the batch is not changed yet. */
static gnnc_status sort_by_destination(Both *w, int64_t n_dst, RtError *err) {
    RtSampler *s = w->s;
    RtGrow *at = &s->pair_buf[0], *pos = &s->pair_buf[1];
    gnnc_status st = rt_grow(&s->growth, at, n_dst + 2, sizeof(int64_t), 0, err);
    if (st != GNNC_OK) return st;
    w->at = at->p;
    w->pos = NULL;
    memset(w->at, 0, (size_t)(n_dst + 2) * sizeof *w->at);
    w->at++; /* places move from the start of a row to its end, the start of the next */
    list_all(w);
    st = rt_grow(&s->growth, pos, w->n, sizeof(int64_t), 0, err);
    if (st != GNNC_OK) return st;
    w->pos = pos->p;
    for (int64_t d = 1; d <= n_dst; d++) w->at[d] += w->at[d - 1];
    list_all(w);
    w->at--;
    return GNNC_OK;
}

/* Sorts positions and drops those that are there twice; returns how many are left. */
static int64_t sort_row(int64_t *x, int64_t n) {
    int64_t k = 0;
    rt_sort_i64(x, n);
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || x[i] != x[i - 1]) x[k++] = x[i];
    return k;
}

/* All relations are listed from what was drawn before any of them is rewritten: drawn
 * edges of relation r answer in q and those of q in r. */
typedef struct {
    int64_t at, n; /* in pair_buf[2] */
} Listed;

/* Keeps a relation's rows, sorted, behind what is kept of earlier relations: the n_dst sizes, then
 * the positions. */
static gnnc_status keep_rows(Both *w, int64_t n_dst, int64_t *n_kept, RtError *err) {
    RtSampler *s = w->s;
    RtGrow *keep = &s->pair_buf[2];
    int64_t k = *n_kept;
    gnnc_status st = rt_grow(&s->growth, keep, k + n_dst + w->n, sizeof(int64_t), k, err);
    if (st != GNNC_OK) return st;
    int64_t *to = keep->p;
    int64_t *size = to + k;
    k += n_dst;
    for (int64_t d = 0; d < n_dst; d++) {
        int64_t *row = w->pos + w->at[d];
        size[d] = sort_row(row, w->at[d + 1] - w->at[d]);
        memcpy(to + k, row, (size_t)size[d] * sizeof *row);
        k += size[d];
    }
    *n_kept = k;
    return GNNC_OK;
}

/* Writes the edges of relation q anew from the rows that are kept, and moves *kept behind them. */
static gnnc_status rewrite(RtSampler *s, RtBatch *b, int q, const int64_t **kept, RtError *err) {
    const RtSampleRel *r = &s->g.rel[q];
    RtBatchEdges *e = &b->edges[q];
    int64_t n_dst = b->nodes[r->dst_type].n, n = 0, i = 0;
    const int64_t *size = *kept, *pos = size + n_dst;
    for (int64_t d = 0; d < n_dst; d++) n += size[d];
    e->end[s->spec.how.n_hops] = 0;
    gnnc_status st = rt_edges_reserve(s, b, q, n, err);
    if (st != GNNC_OK) return st;
    for (int64_t d = 0; d < n_dst; d++) {
        int32_t tree = rt_tree_of(b, r->dst_type, d);
        for (int64_t k = 0; k < size[d]; k++, i++)
            rt_edge_put(r, e, i, rt_ids_find(&s->ids[r->src_type], tree, r->src[pos[i]]), d,
                        pos[i]);
        e->ptr[d + 1] = i;
    }
    e->n = n;
    *kept = pos + n;
    return GNNC_OK;
}

/* Adds the reverse of each sampled edge, where the data have it: as PyG's
 * subgraph_type="bidirectional". */
gnnc_status rt_sample_bidirectional(RtSampler *s, RtBatch *b, RtError *err) {
    int64_t n_kept = 0;
    gnnc_status st;
    for (int q = 0; q < s->g.n_rels; q++) {
        Both w = {.s = s, .b = b, .q = q};
        int64_t n_dst = b->nodes[s->g.rel[q].dst_type].n;
        s->picker[q] = rt_picker(&s->g, &s->spec, q, false, -1, 0);
        TRY(st, sort_by_destination(&w, n_dst, err));
        TRY(st, keep_rows(&w, n_dst, &n_kept, err));
    }
    const int64_t *kept = s->pair_buf[2].p;
    for (int q = 0; q < s->g.n_rels; q++) TRY(st, rewrite(s, b, q, &kept, err));
    return GNNC_OK;
out:
    return st;
}
