/* Parts of a graph whose edges are read from their files, over and over, and never held.
 *
 * Clusters grow while edges go by (Hollocou et al. 2017, "A streaming algorithm for graph
 * clustering"): of an edge between two clusters, the end in the smaller one goes over to the
 * larger one, unless that is full.  Clusters are then what grows, up to a larger size, and so on;
 * in the end they are packed into parts, the largest first (as 2PS does: Mayer et al. 2020).
 *
 * Refinement counts for each unit how many neighbours it has in each part, for some units at a
 * time, and moves it to where most are.  That some move together is what keeps two neighbours from
 * changing places. */
#include <stdlib.h>
#include <string.h>

#include "partition.h"

enum {
    COUNT_BYTES = 64 << 20, /* of counters, at most */
    SHARES_LOG = 2,         /* at least 4 shares of the units move one after the other */
};

/* ---- clusters ----------------------------------------------------------------------------- */
typedef struct {
    const int32_t *label; /* the thing that a unit belongs to */
    int32_t *to;          /* [n] the cluster of a thing */
    int64_t *own, *vol;   /* [n] work of a thing, of a cluster */
    int64_t most;
} Growth;

/* One pass of streaming clustering: for each edge the node whose cluster is smaller moves to the
 * other's, as long as that has room. (Hollocou et al. 2017) */
static void grow_clusters(void *arg, int64_t a, int64_t b) {
    Growth *g = arg;
    int32_t x = g->label[a], y = g->label[b];
    if (g->to[x] == g->to[y]) return;
    if (g->vol[g->to[x]] > g->vol[g->to[y]]) {
        int32_t swap = x;
        x = y;
        y = swap;
    }
    int32_t from = g->to[x], into = g->to[y];
    if (g->vol[into] + g->own[x] > g->most) return;
    g->vol[from] -= g->own[x];
    g->vol[into] += g->own[x];
    g->to[x] = into;
}

/* ---- packing ------------------------------------------------------------------------------- */
typedef struct {
    int64_t vol;
    int32_t cluster;
} Piece;

/* qsort: the largest piece first, then by number. */
static int by_size(const void *x, const void *y) {
    const Piece *a = x, *b = y;
    if (a->vol != b->vol) return a->vol < b->vol ? 1 : -1;
    return a->cluster < b->cluster ? -1 : 1;
}

/* Packs clusters into parts, the largest first, each into the part that has least so far (longest
 * processing time first, Graham 1969). vol: work of each cluster; part_of gets its part. */
static gnnc_status pack(RtPool *pool, const RtUnits *u, const int64_t *vol, int32_t *part_of,
                        RtError *err) {
    int64_t n = 0, *load = RT_NEWN(pool, int64_t, u->n_parts);
    for (int64_t i = 0; i < u->n; i++) n += vol[i] > 0;
    Piece *p = RT_NEWN(pool, Piece, n);
    if (!p || !load) return rt_fail_nomem(err, "parts");
    n = 0;
    for (int64_t i = 0; i < u->n; i++)
        if (vol[i] > 0) p[n++] = (Piece){vol[i], (int32_t)i};
    qsort(p, (size_t)n, sizeof *p, by_size);
    for (int64_t i = 0; i < n; i++) {
        int least = 0;
        for (int k = 1; k < u->n_parts; k++)
            if (load[k] < load[least]) least = k;
        load[least] += p[i].vol;
        part_of[p[i].cluster] = least;
    }
    return GNNC_OK;
}

/* Groups the units into clusters along edges, of at most 1/64 of a part, then these into clusters
 * of 1/8 and of a whole part, and packs the clusters into parts; label[i] gets the part of unit
 * i, and has its cluster where an earlier run went so far. */
static gnnc_status cluster(RtPool *pool, const RtUnits *u, int32_t *label, RtError *err) {
    static const int share[RT_STEP_CUT] = {64, 8, 1}; /* of a part, that a cluster has at most */
    int64_t all = 0;
    Growth g = {.label = label,
                .to = RT_NEWN(pool, int32_t, u->n),
                .own = RT_NEWN(pool, int64_t, u->n),
                .vol = RT_NEWN(pool, int64_t, u->n)};
    if (!g.to || !g.own || !g.vol) return rt_fail_nomem(err, "parts");
    for (int64_t i = 0; i < u->n; i++) {
        if (!u->step) label[i] = (int32_t)i;
        g.vol[label[i]] += u->work[i];
        all += u->work[i];
    }
    for (int k = u->step; k < RT_STEP_CUT; k++) {
        memcpy(g.own, g.vol, (size_t)u->n * sizeof *g.vol);
        for (int64_t i = 0; i < u->n; i++) g.to[i] = (int32_t)i;
        g.most = all / u->n_parts / share[k];
        rt_units_edges(u, grow_clusters, &g);
        for (int64_t i = 0; i < u->n; i++) label[i] = g.to[label[i]];
        if (k + 1 < RT_STEP_CUT) rt_units_keep(u, k + 1, label);
    }
    gnnc_status st = pack(pool, u, g.vol, g.to, err);
    for (int64_t i = 0; i < u->n && st == GNNC_OK; i++) label[i] = g.to[label[i]];
    return st;
}

/* Cuts the units into parts by streams over the edges, with memory for the units only: clusters
 * first, then 10 rounds of refinement. */
gnnc_status rt_units_stream(const RtUnits *u, int32_t *part, RtError *err) {
    RtPool pool;
    rt_pool_init(&pool, &u->pool->from);
    gnnc_status st = u->step < RT_STEP_CUT ? cluster(&pool, u, part, err) : GNNC_OK;
    rt_pool_free(&pool);
    if (st != GNNC_OK) return st;
    if (u->step < RT_STEP_CUT) rt_units_keep(u, RT_STEP_CUT, part);
    return rt_units_refine(u, 10, part, err);
}

/* ---- refinement ------------------------------------------------------------------------------ */
typedef struct {
    const RtUnits *u;
    int32_t *part;
    uint32_t *near; /* [units of the share][n_parts] */
    int shift;      /* 2^shift shares; unit v is in share v mod 2^shift */
    int64_t share, moved;
    int64_t patience; /* neighbours that may be lost to leave a part that has too much */
    int64_t slack;    /* in 100: how much more than its cap a part may have */
} Refine;

/* Counts for an edge in which part the other end lies, for both ends. A pass counts only every
 * 2^shift-th node, those of its share, to bound memory. */
static void count_neighbour_parts(void *arg, int64_t a, int64_t b) {
    Refine *r = arg;
    int64_t mask = ((int64_t)1 << r->shift) - 1;
    if ((a & mask) == r->share) r->near[(a >> r->shift) * r->u->n_parts + r->part[b]]++;
    if ((b & mask) == r->share) r->near[(b >> r->shift) * r->u->n_parts + r->part[a]]++;
}

/* The table that unit v is a row of. */
static int table_of(const RtUnits *u, int64_t v) {
    int t = 0;
    while (v >= u->first[t + 1]) t++;
    return t;
}

/* What a unit adds to a part: its work, a row, perhaps a training row. */
typedef struct {
    int at[3];
    int64_t by[3];
} Adds;

static Adds adds_of(const RtUnits *u, int64_t v) {
    int t = table_of(u, v);
    return (Adds){{0, 1 + t, 1 + u->n_tables + t}, {u->work[v], 1, u->train[v]}};
}

/* Whether the part has more than it may of some load, allowing `slack` percent more. added: with
 * the loads `a` added to what it has. */
static bool exceeds(const Refine *r, int part, const Adds *a, bool added) {
    const int64_t *load = r->u->load + part * rt_n_loads(r->u);
    for (int i = 0; i < 3; i++) {
        int64_t cap = r->u->cap[a->at[i]];
        cap += cap / 100 * r->slack;
        if (a->by[i] && load[a->at[i]] + (added ? a->by[i] : 0) > cap) return true;
    }
    return false;
}

static void add(const RtUnits *u, int part, const Adds *a, int sign) {
    int64_t *load = u->load + part * rt_n_loads(u);
    for (int i = 0; i < 3; i++) load[a->at[i]] += sign * a->by[i];
}

/* Moves unit v to the part, of those with room for it, that has most of its neighbours, if these
 * are more than in its own part. Where its own part is overfull they may be fewer, by up to
 * `patience`. */
static void place(Refine *r, int64_t v) {
    const RtUnits *u = r->u;
    const uint32_t *near = r->near + (v >> r->shift) * u->n_parts;
    const int64_t n_loads = rt_n_loads(u);
    Adds a = adds_of(u, v);
    int now = r->part[v], best = -1;
    bool full = exceeds(r, now, &a, false);
    for (int p = 0; p < u->n_parts; p++) {
        if (p == now || exceeds(r, p, &a, true)) continue;
        if (best < 0 || near[p] > near[best] ||
            (near[p] == near[best] && u->load[p * n_loads] < u->load[best * n_loads]))
            best = p;
    }
    if (best < 0 || (int64_t)near[best] <= (int64_t)near[now] - (full ? r->patience + 1 : 0))
        return;
    add(u, now, &a, -1);
    add(u, best, &a, 1);
    r->part[v] = best;
    r->moved++;
}

/* One round of refinement: counts, for one share of the units after the other, the parts of their
 * neighbours, and moves them. */
static void round_of(Refine *r) {
    int64_t shares = (int64_t)1 << r->shift;
    r->moved = 0;
    for (r->share = 0; r->share < shares; r->share++) {
        int64_t n = (r->u->n - r->share + shares - 1) >> r->shift;
        if (n > 0) memset(r->near, 0, (size_t)(n * r->u->n_parts) * sizeof *r->near);
        rt_units_edges(r->u, count_neighbour_parts, r);
        for (int64_t v = r->share; v < r->u->n; v += shares) place(r, v);
    }
}

/* Counts the loads of each part anew from the parts of all units. */
static void load_parts(const RtUnits *u, const int32_t *part) {
    memset(u->load, 0, (size_t)(u->n_parts * rt_n_loads(u)) * sizeof *u->load);
    for (int64_t v = 0; v < u->n; v++) {
        Adds a = adds_of(u, v);
        add(u, part[v], &a, 1);
    }
}

/* Has any part more of a load than it may have? */
static bool has_too_much(const RtUnits *u) {
    int64_t n = rt_n_loads(u);
    for (int64_t i = 0; i < u->n_parts * n; i++)
        if (u->load[i] > u->cap[i % n]) return true;
    return false;
}

/* Moves units between parts in rounds (label propagation), so that fewer edges are cut. The last
 * four rounds allow no part more than its share, and try longer for that; rounds end when few
 * units move. */
gnnc_status rt_units_refine(const RtUnits *u, int n_rounds, int32_t *part, RtError *err) {
    RtPool pool;
    Refine r = {.u = u, .part = part, .shift = SHARES_LOG};
    while (((u->n >> r.shift) + 1) * u->n_parts > COUNT_BYTES / (int64_t)sizeof *r.near) r.shift++;
    rt_pool_init(&pool, &u->pool->from);
    r.near = RT_NEWN(&pool, uint32_t, ((u->n >> r.shift) + 1) * u->n_parts);
    if (!r.near) return rt_fail_nomem(err, "parts");
    load_parts(u, part);
    for (int k = u->step > RT_STEP_CUT ? u->step - RT_STEP_CUT : 0; k < n_rounds; k++) {
        int left = n_rounds - 1 - k;
        r.slack = left < 4 ? 0 : 30;
        r.patience = left ? left < 4 ? 4 << (3 - left) : 0 : INT64_MAX / 2;
        round_of(&r);
        if (r.moved <= u->n / 1000 && !has_too_much(u)) break;
        rt_units_keep(u, RT_STEP_CUT + k + 1, part);
    }
    rt_pool_free(&pool);
    return GNNC_OK;
}

/* Calls visit(to, a, b) for each edge of the table whose ends are different units, a and b. A unit
 * is what goes to one part as a whole: a node, or a graph with all of its nodes. */
static void edges_of(const RtUnits *u, const RtTable *t,
                     void (*visit)(void *to, int64_t a, int64_t b), void *to) {
    const int32_t *src_graph = u->graph[t->src_type], *dst_graph = u->graph[t->dst_type];
    int64_t src_first = u->first[u->of_type[t->src_type]];
    int64_t dst_first = u->first[u->of_type[t->dst_type]];
    for (int64_t e = 0; e < t->count; e++) {
        int64_t a = src_first + (src_graph ? src_graph[t->src[e]] : t->src[e]);
        int64_t b = dst_first + (dst_graph ? dst_graph[t->dst[e]] : t->dst[e]);
        if (a != b) visit(to, a, b);
        if (e % RT_FORGET_EDGES == RT_FORGET_EDGES - 1) rt_dataset_forget_pages(u->d);
    }
    rt_dataset_forget_pages(u->d);
}

void rt_units_edges(const RtUnits *u, void (*visit)(void *to, int64_t a, int64_t b), void *to) {
    for (int i = 0; i < u->d->n_edges; i++) edges_of(u, &u->d->edges[i], visit, to);
}
