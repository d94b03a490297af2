/* By union and find: rows that edges join are one set, and a set with a training row is reached.
 * One pass over the edges, whatever the distance is. */
#include "import_reached.h"

typedef struct {
    const RtDataset *d;
    int64_t *first;  /* [node types] where its rows begin in one line of all rows */
    int64_t *parent; /* [all rows] */
    bool *trained;   /* of the sets' roots */
} Sets;

static const int8_t *parts_of(const RtTable *t) {
    const RtColumn *c = rt_table_column(t, "split");
    return c && c->kind == RT_COL_SPLIT ? c->splits : NULL; /* the first of several */
}

static bool has_split(const RtTable *t, int n) {
    for (int i = 0; i < n; i++)
        if (parts_of(&t[i])) return true;
    return false;
}

static int64_t root_of(Sets *s, int64_t x) {
    while (s->parent[x] != x) x = s->parent[x] = s->parent[s->parent[x]];
    return x;
}

static bool is_held_out(const int8_t *parts, int64_t row) {
    return parts && parts[row] > 1;
}

/* The smaller number leads: without ranks, halved paths are short enough. */
static int64_t join(Sets *s, int64_t a, int64_t b) {
    a = root_of(s, a);
    b = root_of(s, b);
    int64_t low = a < b ? a : b, high = a < b ? b : a;
    s->parent[high] = low;
    s->trained[low] |= s->trained[high];
    return low;
}

static void join_ends(Sets *s, const RtTable *e) {
    const int8_t *parts = parts_of(e), *src_parts = parts_of(&s->d->nodes[e->src_type]);
    const int8_t *dst_parts = parts_of(&s->d->nodes[e->dst_type]);
    for (int64_t k = 0; k < e->count; k++) {
        if (is_held_out(parts, k) || is_held_out(src_parts, e->src[k]) ||
            is_held_out(dst_parts, e->dst[k]))
            continue;
        int64_t root =
            join(s, s->first[e->src_type] + e->src[k], s->first[e->dst_type] + e->dst[k]);
        if (parts && parts[k] == 1) s->trained[root] = true;
    }
}

static bool make_sets(RtPool *pool, const RtDataset *d, Sets *s) {
    int64_t n = 0;
    *s = (Sets){.d = d, .first = RT_NEWN(pool, int64_t, d->n_nodes)};
    for (int i = 0; s->first && i < d->n_nodes; i++) {
        s->first[i] = n;
        n += d->nodes[i].count;
    }
    s->parent = RT_NEWN(pool, int64_t, n);
    s->trained = RT_NEWN(pool, bool, n);
    if (!s->first || !s->parent || !s->trained) return false;
    for (int64_t i = 0; i < n; i++) s->parent[i] = i;
    for (int i = 0; i < d->n_nodes; i++) {
        const int8_t *parts = parts_of(&d->nodes[i]);
        for (int64_t k = 0; parts && k < d->nodes[i].count; k++)
            s->trained[s->first[i] + k] = parts[k] == 1;
    }
    for (int i = 0; i < d->n_edges; i++) join_ends(s, &d->edges[i]);
    return true;
}

static bool *reached_nodes(RtPool *pool, Sets *s, int type) {
    bool *to = RT_NEWN(pool, bool, s->d->nodes[type].count);
    for (int64_t i = 0; to && i < s->d->nodes[type].count; i++)
        to[i] = s->trained[root_of(s, s->first[type] + i)];
    return to;
}

gnnc_status rt_import_reached(const RtDataset *d, RtReached *out, RtError *err) {
    RtPool *pool = &out->pool;
    Sets s;
    *out = (RtReached){0};
    rt_pool_init(pool, &d->pool.from);
    if (!has_split(d->nodes, d->n_nodes) && !has_split(d->edges, d->n_edges)) return GNNC_OK;
    out->nodes = RT_NEWN(pool, const bool *, d->n_nodes);
    out->edges = RT_NEWN(pool, const bool *, d->n_edges);
    if (!out->nodes || !out->edges || !make_sets(pool, d, &s))
        return rt_fail_nomem(err, "encoders");
    for (int i = 0; i < d->n_nodes; i++)
        if (!(out->nodes[i] = reached_nodes(pool, &s, i))) return rt_fail_nomem(err, "encoders");
    for (int i = 0; i < d->n_edges; i++) {
        const RtTable *e = &d->edges[i];
        const bool *src = out->nodes[e->src_type], *dst = out->nodes[e->dst_type];
        bool *to = RT_NEWN(pool, bool, e->count);
        if (!(out->edges[i] = to)) return rt_fail_nomem(err, "encoders");
        for (int64_t k = 0; k < e->count; k++) to[k] = src[e->src[k]] || dst[e->dst[k]];
    }
    return GNNC_OK;
}
