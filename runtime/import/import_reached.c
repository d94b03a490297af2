/* By union and find: rows that edges join are one set, and a set with a training row is reached.
 * One pass over the edges, whatever the distance is. */
#include "import_reached.h"

#include "import_index.h"
#include "import_time.h"

typedef struct {
    const RtDataset *d;
    const RtFitRows *rows;
    int64_t *first;  /* [node types] where its rows begin in one line of all rows */
    int64_t *parent; /* [all rows] */
    bool *trained;   /* of the sets' roots */
} Sets;

static const int8_t *parts_of(const RtTable *t) {
    const RtColumn *c = rt_table_column(t, "split");
    return c && c->kind == RT_COL_SPLIT ? c->splits : NULL; /* the first of several */
}

/* Has any of the tables a split? */
static bool has_split(const RtTable *t, int n) {
    for (int i = 0; i < n; i++)
        if (parts_of(&t[i])) return true;
    return false;
}

static int64_t root_of(Sets *s, int64_t x) {
    while (s->parent[x] != x) x = s->parent[x] = s->parent[s->parent[x]];
    return x;
}

/* Which rows of a table are held out: those of later parts, and where rows are dated late ones. */
typedef struct {
    const int8_t *parts;
    const double *time;
    double before;
} HeldOut;

/* How a table's rows are held out from training: by a split, or by their time. */
static HeldOut held_out_of(const Sets *s, const RtTable *t) {
    const RtColumn *time = s->rows->dated ? rt_import_row_time(t, s->rows->by_time) : NULL;
    HeldOut h = {.parts = parts_of(t), .before = s->rows->before};
    if (time && !h.parts) h.time = time->f64;
    return h;
}

static bool is_held_out(const HeldOut *h, int64_t row) {
    if (h->parts) return h->parts[row] > 1;
    return h->time && !(h->time[row] < h->before); /* of unknown time: it may be later */
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

/* Joins the sets of nodes at both ends of each edge that training sees. */
static void join_ends(Sets *s, const RtTable *e) {
    HeldOut own = held_out_of(s, e), src = held_out_of(s, &s->d->nodes[e->src_type]);
    HeldOut dst = held_out_of(s, &s->d->nodes[e->dst_type]);
    for (int64_t k = 0; k < e->count; k++) {
        if (is_held_out(&own, k) || is_held_out(&src, e->src[k]) || is_held_out(&dst, e->dst[k]))
            continue;
        int64_t root =
            join(s, s->first[e->src_type] + e->src[k], s->first[e->dst_type] + e->dst[k]);
        if (own.parts && own.parts[k] == 1) s->trained[root] = true;
    }
}

/* Makes the sets of nodes that training joins, and marks those with a row that is learned from.
 * False: no memory. */
static bool make_sets(RtPool *pool, const RtDataset *d, const RtFitRows *rows, Sets *s,
                      RtError *err) {
    int64_t n = 0;
    *s = (Sets){.d = d, .rows = rows, .first = RT_NEWN(pool, int64_t, d->n_nodes)};
    for (int i = 0; s->first && i < d->n_nodes; i++) {
        s->first[i] = n;
        n += d->nodes[i].count;
    }
    if (!s->first) return rt_fail_nomem(err, "encoders"), false;
    s->parent = rt_import_reserve(pool, n, sizeof *s->parent, err);
    s->trained = s->parent ? rt_import_reserve(pool, n, sizeof *s->trained, err) : NULL;
    if (!s->trained) return false;
    for (int64_t i = 0; i < n; i++) s->parent[i] = i;
    for (int i = 0; i < d->n_nodes; i++) {
        const int8_t *parts = parts_of(&d->nodes[i]);
        for (int64_t k = 0; parts && k < d->nodes[i].count; k++)
            s->trained[s->first[i] + k] = parts[k] == 1;
    }
    for (int i = 0; i < d->n_edges; i++) join_ends(s, &d->edges[i]);
    return true;
}

/* For each node of the type: is it joined to a row that is learned from? NULL: no memory. */
static bool *reached_nodes(RtPool *pool, Sets *s, int type, RtError *err) {
    bool *to = rt_import_reserve(pool, s->d->nodes[type].count, sizeof *to, err);
    for (int64_t i = 0; to && i < s->d->nodes[type].count; i++)
        to[i] = s->trained[root_of(s, s->first[type] + i)];
    return to;
}

/* For each row of nodes and edges: is it joined to a row that is learned from? Without any split
 * nothing is listed. */
gnnc_status rt_import_reached(const RtDataset *d, const RtFitRows *rows, RtMetricValue *out,
                              RtError *err) {
    RtPool *pool = &out->pool;
    Sets s;
    *out = (RtMetricValue){0};
    rt_pool_init(pool, &d->pool.from);
    if (!has_split(d->nodes, d->n_nodes) && !has_split(d->edges, d->n_edges)) return GNNC_OK;
    out->nodes = RT_NEWN(pool, const bool *, d->n_nodes);
    out->edges = RT_NEWN(pool, const bool *, d->n_edges);
    if (!out->nodes || !out->edges) return rt_fail_nomem(err, "encoders");
    if (!make_sets(pool, d, rows, &s, err)) return GNNC_E_NOMEM;
    for (int i = 0; i < d->n_nodes; i++)
        if (!(out->nodes[i] = reached_nodes(pool, &s, i, err))) return GNNC_E_NOMEM;
    for (int i = 0; i < d->n_edges; i++) {
        const RtTable *e = &d->edges[i];
        const bool *src = out->nodes[e->src_type], *dst = out->nodes[e->dst_type];
        bool *to = rt_import_reserve(pool, e->count, sizeof *to, err);
        if (!(out->edges[i] = to)) return GNNC_E_NOMEM;
        for (int64_t k = 0; k < e->count; k++) to[k] = src[e->src[k]] || dst[e->dst[k]];
    }
    return GNNC_OK;
}
