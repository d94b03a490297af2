/* Room for the device's sampler: what cannot be exceeded.
 *
 * A hop has no more edges of a relation than its rows times the fan-out, or times the largest
 * in-degree; without replacement all hops together no more than the relation, and a type no more
 * nodes than the data.  Where each seed has a tree of its own, so it is for each tree.  So no batch
 * is looked at before it is drawn, and nothing grows. */
#include "device_sample_impl.h"

enum { TOO_MANY = 1 << 30 }; /* of anything, twice: counts are of 31 bits */

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* a * b, or what stands for too many. */
static int64_t times(int64_t a, int64_t b) {
    const int64_t most = 2 * (int64_t)TOO_MANY;
    return a && b > most / a ? most : least(a * b, most);
}

/* The most edges that one of n_dst nodes has. */
static int64_t largest_degree(const RtSampleRel *r, int64_t n_dst) {
    int64_t most = 0;
    for (int64_t v = 0; v < n_dst; v++)
        if (r->ptr[v + 1] - r->ptr[v] > most) most = r->ptr[v + 1] - r->ptr[v];
    return most;
}

static int64_t trees_of(const RtDeviceSampler *s) {
    return s->spec.how.disjoint ? s->n_trees : 1;
}

/* The most edges of relation r that so many rows can draw with this fan-out. */
static int64_t edges_of(const RtDeviceSampler *s, int r, int64_t rows, int32_t fanout) {
    const RtSampleRel *rel = &s->g.rel[r];
    int64_t trees = trees_of(s);
    if (rows == 0 || fanout == 0) return 0;
    if (fanout >= 0 && s->spec.how.replace) return times(rows, fanout);
    int64_t each = fanout < 0 ? s->most.degree[r] : least(fanout, s->most.degree[r]);
    return least(times(rows, each), times(trees, rel->n_edges));
}

/* One hop: rows[t] of the last one, of which `next` gets those it brings. */
static void bound_hop(RtDeviceSampler *s, int hop, const int64_t *rows, int64_t *next) {
    RtDrawMost *m = &s->most;
    int64_t n_rows = 0, drawn = 0, trees = trees_of(s);
    for (int t = 0; t < s->g.n_types; t++) next[t] = 0;
    for (int r = 0; r < s->g.n_rels; r++) {
        const RtSampleRel *rel = &s->g.rel[r];
        int64_t n = edges_of(s, r, rows[rel->dst_type], s->spec.fanout[hop * s->g.n_rels + r]);
        n_rows += rows[rel->dst_type];
        drawn += n;
        m->edges[r] += n;
        if (!s->spec.how.replace) m->edges[r] = least(m->edges[r], times(trees, rel->n_edges));
        next[rel->src_type] += n;
    }
    for (int t = 0; t < s->g.n_types; t++) {
        int64_t all = times(trees, s->g.type[t].n);
        next[t] = least(next[t], all);
        m->nodes[t] = least(m->nodes[t] + next[t], all);
    }
    if (n_rows > m->rows) m->rows = n_rows;
    if (drawn > m->drawn) m->drawn = drawn;
}

/* Computes how many nodes and edges a batch can have at most, hop by hop from the seeds, fan-outs
 * and largest degrees. */
gnnc_status rt_draw_bound(RtDeviceSampler *s, RtError *err) {
    int n_types = s->g.n_types, n_rels = s->g.n_rels;
    RtDrawMost *m = &s->most;
    m->nodes = RT_NEWN(&s->pool, int64_t, n_types);
    m->edges = RT_NEWN(&s->pool, int64_t, n_rels + 1);
    m->degree = RT_NEWN(&s->pool, int64_t, n_rels + 1);
    int64_t *rows = RT_NEWN(&s->pool, int64_t, n_types);
    int64_t *next = RT_NEWN(&s->pool, int64_t, n_types);
    if (!m->nodes || !m->edges || !m->degree || !rows || !next)
        return rt_fail_nomem(err, "a sampler");
    for (int r = 0; r < n_rels; r++)
        m->degree[r] = largest_degree(&s->g.rel[r], s->g.type[s->g.rel[r].dst_type].n);
    for (int k = 0; k < s->n_groups; k++) {
        const int t = s->type[k];
        m->nodes[t] = least(m->nodes[t] + s->n_seeds, times(trees_of(s), s->g.type[t].n));
        rows[t] = m->nodes[t];
    }
    for (int h = 0; h < s->spec.how.n_hops; h++) {
        bound_hop(s, h, rows, next);
        for (int t = 0; t < n_types; t++) rows[t] = next[t];
    }
    bool fits = m->drawn < INT32_MAX && m->rows < INT32_MAX;
    for (int t = 0; t < n_types; t++) {
        m->all_nodes += m->nodes[t];
        fits =
            fits && (!s->spec.how.disjoint || m->nodes[t] < TOO_MANY); /* slots are twice as many */
    }
    for (int r = 0; r < n_rels; r++) {
        m->all_ends += m->nodes[s->g.rel[r].dst_type];
        fits = fits && m->edges[r] < INT32_MAX;
    }
    if (fits) return GNNC_OK;
    return rt_fail(err, GNNC_E_RANGE,
                   "a batch may have hops of %lld edges or more: fewer than 2^31 - 1, and 2^30 "
                   "nodes, are possible",
                   (long long)m->drawn);
}

/* ---- where things lie ---------------------------------------------------------------------- */
static int64_t n_sizes(const RtDeviceSampler *s) {
    return (s->g.n_types + s->g.n_rels) * ((int64_t)s->spec.how.n_hops + 2);
}

/* What is asked of trees, of links that are not to be seen, and of links to choose negatives for.
 */
static void lay_trees_and_links(RtDeviceSampler *s, RtLay *l) {
    RtDrawLayout *a = &s->at;
    int64_t trees = s->spec.how.disjoint ? s->n_trees : 0, hidden = s->hidden ? 2 * s->n_trees : 0;
    a->seed_tree = rt_lay(l, s->spec.how.disjoint ? s->n_seeds : 0, sizeof(int32_t));
    a->tree_key = rt_lay(l, trees, sizeof(int32_t));
    a->tree_time = rt_lay(l, s->spec.temporal ? trees : 0, sizeof(double));
    a->hide_first = rt_lay(l, hidden ? s->g.n_types + 1 : 0, sizeof(int64_t));
    a->hide_node = rt_lay(l, hidden, sizeof(uint64_t));
    a->hide_src = rt_lay(l, hidden, sizeof(int32_t));
    a->n_links = rt_lay(l, 3, sizeof(int64_t));
    a->negative_key = rt_lay(l, 1, sizeof(uint64_t));
    a->edge = rt_lay(l, s->ends.links ? s->n_trees : 0, sizeof(int32_t));
}

/* Lays out the memory of a slot: where each array of the request and of the batch begins, for the
 * largest batch. */
gnnc_status rt_draw_lay_slot(RtDeviceSampler *s, RtError *err) {
    int n_types = s->g.n_types, n_rels = s->g.n_rels;
    int64_t n_keys = (int64_t)s->spec.how.n_hops * n_rels;
    RtDrawLayout *a = &s->at;
    RtLay l = {.align = s->d->ops->align};
    size_t *all = RT_NEWN(&s->pool, size_t, 2 * n_types + 5 * n_rels);
    if (!all) return rt_fail_nomem(err, "a sampler");
    a->types = rt_lay(&l, n_types, sizeof(RtDrawType));
    a->rels = rt_lay(&l, n_rels + s->n_groups, sizeof(RtDrawRel));
    a->n_seeds = rt_lay(&l, 1, sizeof(int64_t));
    a->key = rt_lay(&l, n_keys, sizeof(uint64_t));
    a->fanout = rt_lay(&l, n_keys, sizeof(int32_t));
    lay_trees_and_links(s, &l);
    a->seed = rt_lay(&l, s->n_groups * s->n_seeds, sizeof(int32_t));
    a->seed_end = l.used;
    a->asked_end = s->ends.links ? a->seed : a->seed_end;
    a->sizes = rt_lay(&l, n_sizes(s), sizeof(int64_t));
    a->seed_at = rt_lay(&l, s->n_groups * s->n_seeds, sizeof(int32_t));
    a->sizes_end = l.used;
    a->id = all;
    a->tree = all + n_types;
    a->ptr = a->tree + n_types;
    a->src = a->ptr + n_rels;
    a->dst = a->src + n_rels;
    a->pos = a->dst + n_rels;
    a->names = a->pos + n_rels;
    for (int t = 0; t < n_types; t++) {
        a->id[t] = rt_lay(&l, s->most.nodes[t], sizeof(int32_t));
        a->tree[t] = rt_lay(&l, s->spec.how.disjoint ? s->most.nodes[t] : 0, sizeof(int32_t));
    }
    for (int r = 0; r < n_rels; r++) {
        int64_t n = s->most.edges[r];
        a->ptr[r] = rt_lay(&l, s->most.nodes[s->g.rel[r].dst_type] + 1, sizeof(int64_t));
        a->src[r] = rt_lay(&l, n, sizeof(int32_t));
        a->dst[r] = rt_lay(&l, n, sizeof(int32_t));
        a->pos[r] = rt_lay(&l, n, sizeof(int64_t));
        a->names[r] = rt_lay(&l, s->g.rel[r].id ? n : 0, sizeof(int32_t));
    }
    a->end = l.used;
    return GNNC_OK;
}
