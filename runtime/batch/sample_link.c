/* Seeds that are links or triples, with negatives; seeds that are graphs.
 *
 * Negative j of positive i is drawn from a state of its own, so negatives do not depend on
 * each other or on threads.  A draw that will not do (a true edge that is to be avoided,
 * a node not known yet) is repeated; after TRIES of them the nodes that follow the last
 * draw are taken in turn, so that a node linked to nearly all others ends too. */
#include <string.h>

#include "sample_impl.h"

enum { TRIES = 64 };

/* Edges of a source ascend by position, positions by destination. */
void rt_sample_find_edges(const RtSampleRel *r, int32_t u, int32_t v, int64_t *lo, int64_t *hi) {
    int64_t a = r->by_src->ptr[u], end = r->by_src->ptr[u + 1], b = end;
    while (a < b) {
        int64_t mid = a + (b - a) / 2;
        if (r->dst[r->by_src->perm[mid]] < v)
            a = mid + 1;
        else
            b = mid;
    }
    for (*lo = a; b < end && r->dst[r->by_src->perm[b]] == v;) b++;
    *hi = b;
}

static bool is_edge(const RtSampleRel *r, const RtLinkSeeds *q, int32_t u, int32_t v, int64_t i) {
    int64_t lo, hi;
    rt_sample_find_edges(r, u, v, &lo, &hi);
    if (!q->kind || !q->kinds) return lo < hi;
    for (; lo < hi; lo++)
        if (q->kinds[r->by_src->perm[lo]] == q->kind[i]) return true;
    return false;
}

/* ---- negatives ------------------------------------------------------------------------- */
typedef struct {
    RtSampler *s;
    RtBatch *b;
    const RtLinkSeeds *q;
    uint64_t key;
    int32_t *end[2]; /* [n_links] global ids */
    _Atomic int64_t n_not_avoided;
    atomic_bool none_known;
} Negatives;

static bool is_known(const Negatives *g, int side, int64_t i, int32_t v) {
    const RtSampleRel *r = &g->s->g.rel[g->q->rel];
    const RtSampleType *t = &g->s->g.type[side ? r->dst_type : r->src_type];
    if (!g->s->spec.temporal || !t->time) return true;
    return rt_is_known(t->time[v], g->q->time[i], true);
}

static bool is_good(const Negatives *g, int64_t i, const int32_t v[2]) {
    return !g->q->avoid || !is_edge(&g->s->g.rel[g->q->rel], g->q, v[0], v[1], i);
}

static int64_t n_nodes(const Negatives *g, int side) {
    const RtSampleRel *r = &g->s->g.rel[g->q->rel];
    return g->s->g.type[side ? r->dst_type : r->src_type].n;
}

/* The next node after v[side] that will do; else the next that is at least known. */
static void search_on(Negatives *g, int64_t i, int side, int32_t v[2]) {
    int64_t n = n_nodes(g, side);
    int32_t from = v[side], known = -1;
    for (int64_t k = 1; k <= n; k++) {
        v[side] = (int32_t)((from + k) % n);
        if (!is_known(g, side, i, v[side])) continue;
        if (is_good(g, i, v)) return;
        if (known < 0) known = v[side];
    }
    v[side] = known < 0 ? from : known;
    if (known < 0)
        atomic_store(&g->none_known, true);
    else
        atomic_fetch_add_explicit(&g->n_not_avoided, 1, memory_order_relaxed);
}

static void draw_negative(Negatives *g, int64_t i, int64_t j, int32_t v[2]) {
    uint64_t state = rt_draw_state(g->key, (uint32_t)i, (uint32_t)j);
    rt_negative how = g->q->negative;
    int side = how == RT_NEG_SIDE ? (int)(rt_draw(state, 2 * TRIES) >> 63) : how != RT_NEG_HEAD;
    for (uint64_t t = 0; t < TRIES; t++) {
        v[0] = g->q->src[i];
        v[1] = g->q->dst[i];
        v[side] = (int32_t)rt_draw_below(state, 2 * t, n_nodes(g, side));
        if (how == RT_NEG_BOTH) v[0] = (int32_t)rt_draw_below(state, 2 * t + 1, n_nodes(g, 0));
        bool known =
            is_known(g, side, i, v[side]) && (how != RT_NEG_BOTH || is_known(g, 0, i, v[0]));
        if (known && is_good(g, i, v)) return;
    }
    if (how == RT_NEG_BOTH && !is_known(g, 0, i, v[0])) v[0] = g->q->src[i];
    search_on(g, i, side, v);
}

static void draw_share(void *arg, int member, int n_members) {
    Negatives *g = arg;
    int64_t n = g->q->n, k = g->q->n_negatives;
    int64_t lo = n * member / n_members, hi = n * (member + 1) / n_members;
    for (int64_t i = lo; i < hi; i++) {
        g->end[0][i] = g->q->src[i];
        g->end[1][i] = g->q->dst[i];
        for (int64_t j = 0; j < k; j++) {
            int32_t v[2];
            draw_negative(g, i, j, v);
            g->end[0][n + i * k + j] = v[0];
            g->end[1][n + i * k + j] = v[1];
        }
    }
}

/* ---- links --------------------------------------------------------------------------------- */
static gnnc_status check_links(const RtSampler *s, const RtLinkSeeds *q, RtError *err) {
    if (q->rel < 0 || q->rel >= s->g.n_rels || q->n < 0 || q->n_negatives < 0)
        return rt_fail(err, GNNC_E_RANGE, "links of an edge type that is none");
    const RtSampleRel *r = &s->g.rel[q->rel];
    int64_t n[2] = {s->g.type[r->src_type].n, s->g.type[r->dst_type].n};
    if (q->n > INT32_MAX / ((int64_t)q->n_negatives + 1))
        return rt_fail(err, GNNC_E_RANGE, "a batch of more than 2^31 - 1 links");
    if (s->spec.temporal && !q->time && q->n)
        return rt_fail(err, GNNC_E_ARG, "temporal sampling needs the times of the links");
    if (q->avoid && (!r->by_src || !r->dst || (q->kind && !q->kinds)))
        return rt_fail(err, GNNC_E_ARG, "avoiding the edges of '%s' needs them by source%s",
                       r->name, q->kind ? ", with their kinds" : "");
    for (int64_t i = 0; i < q->n; i++)
        if (q->src[i] < 0 || q->src[i] >= n[0] || q->dst[i] < 0 || q->dst[i] >= n[1])
            return rt_fail(err, GNNC_E_RANGE, "link %lld of '%s': no edge goes from %d to %d",
                           (long long)i, r->name, q->src[i], q->dst[i]);
    return GNNC_OK;
}

static gnnc_status link_room(RtSampler *s, RtBatch *b, const RtLinkSeeds *q, int64_t n,
                             RtError *err) {
    gnnc_status st = GNNC_OK;
    RtGrowth *g = &s->growth;
    for (int k = 0; k < 2 && st == GNNC_OK; k++)
        st = rt_grow(g, &s->seed_id[k], n, sizeof(int32_t), 0, err);
    if (st != GNNC_OK) return st;
    TRY(st, rt_grow(g, &s->seed_tree[0], n, sizeof(int32_t), 0, err));
    TRY(st, rt_grow(g, &s->seed_time[0], n, sizeof(double), 0, err));
    TRY(st, rt_grow(&b->growth, &b->label_buf, n, sizeof(float), 0, err));
    b->label = b->label_buf.p;
    b->link_kind = NULL;
    if (!q->kind) goto out;
    TRY(st, rt_grow(&b->growth, &b->kind_buf, n, sizeof(int32_t), 0, err));
    b->link_kind = b->kind_buf.p;
out:
    return st;
}

/* What every link is, from the positive it belongs to. */
static void describe(RtSampler *s, RtBatch *b, const RtLinkSeeds *q, int64_t n) {
    int32_t *tree = s->seed_tree[0].p;
    double *time = s->seed_time[0].p;
    for (int64_t l = 0; l < n; l++) {
        int64_t i = l < q->n ? l : (l - q->n) / q->n_negatives;
        tree[l] = (int32_t)i;
        if (q->time) time[l] = q->time[i];
        if (q->kind) b->link_kind[l] = q->kind[i];
        b->label[l] = l < q->n;
    }
}

gnnc_status rt_sample_links(RtSampler *s, const RtSampleAt *at, const RtLinkSeeds *q, RtBatch *b,
                            RtError *err) {
    gnnc_status st = check_links(s, q, err);
    int64_t n = st == GNNC_OK ? q->n * ((int64_t)q->n_negatives + 1) : 0;
    b->n_links = b->n_pos = 0;
    if (st == GNNC_OK) st = link_room(s, b, q, n, err);
    if (st != GNNC_OK) return st;
    const RtSampleRel *r = &s->g.rel[q->rel];
    Negatives g = {.s = s, .b = b, .q = q, .end = {s->seed_id[0].p, s->seed_id[1].p}};
    g.key = rt_draw_key(at->seed, at->epoch, at->batch, RT_DRAW_NEGATIVE);
    rt_team_run(n - q->n < 512 ? NULL : s->team, draw_share, &g);
    if (atomic_load(&g.none_known))
        return rt_fail(err, GNNC_E_RANGE, "no negatives for '%s': no node is known at the time",
                       r->name);
    describe(s, b, q, n);
    const double *time = q->time ? s->seed_time[0].p : NULL;
    const RtSeeds ends[2] = {{r->src_type, n, g.end[0], s->seed_tree[0].p, time},
                             {r->dst_type, n, g.end[1], s->seed_tree[0].p, time}};
    st = rt_sample_groups(s, at, ends, 2, b, err);
    if (st != GNNC_OK) return st;
    b->n_links = n;
    b->n_pos = q->n;
    b->n_not_avoided = atomic_load(&g.n_not_avoided);
    b->link_src = b->seed[0];
    b->link_dst = b->seed[1];
    return GNNC_OK;
}
