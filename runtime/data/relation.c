/* Derived relations: each lists its edges, then one stable counting sort by
 * destination puts them into canonical order.  Another one makes the transpose, where it
 * is asked for.  What only the construction needs goes back at once: on a graph of a
 * million edges it is more than what stays. */
#include "relation.h"

/* Numbers of 32 bits, or of 64. */
typedef struct {
    int32_t *narrow;
    int64_t *wide;
} Numbers;

typedef struct {
    int64_t n, cap;
    bool wide;
    int32_t *src, *dst;
    Numbers id, orig[2];
} Listing;

static Numbers numbers_new(RtPool *pool, int64_t n, bool wide) {
    if (wide) return (Numbers){NULL, RT_NEWN(pool, int64_t, n)};
    return (Numbers){RT_NEWN(pool, int32_t, n), NULL};
}

static bool are_there(Numbers x) {
    return x.narrow || x.wide;
}

static void numbers_drop(RtPool *pool, Numbers *x) {
    rt_pool_drop(pool, x->narrow);
    rt_pool_drop(pool, x->wide);
    *x = (Numbers){0};
}

static void set_number(Numbers x, int64_t i, int64_t v) {
    if (x.wide)
        x.wide[i] = v;
    else
        x.narrow[i] = (int32_t)v;
}

/* Makes room for a list of at most `cap` edges with ids below id_bound, with n_orig places of
 * origin each. wide: those that it is made of have positions of 64 bits. */
static gnnc_status listing_new(RtPool *pool, int64_t cap, int64_t id_bound, bool wide, int n_orig,
                               Listing *l, RtError *err) {
    *l = (Listing){.cap = cap, .wide = wide || cap > INT32_MAX || id_bound > INT32_MAX};
    l->src = RT_NEWN(pool, int32_t, cap);
    l->dst = RT_NEWN(pool, int32_t, cap);
    l->id = numbers_new(pool, cap, l->wide);
    bool ok = l->src && l->dst && are_there(l->id);
    for (int k = 0; k < n_orig; k++) {
        l->orig[k] = numbers_new(pool, cap, l->wide);
        ok = ok && are_there(l->orig[k]);
    }
    return ok ? GNNC_OK : rt_fail_nomem(err, "edges of a relation");
}

/* Adds an edge: its ends, its logical id, and where it comes from in both bases (-1: from
 * neither). */
static void add(Listing *l, int32_t src, int32_t dst, int64_t id, int64_t o0, int64_t o1) {
    l->src[l->n] = src;
    l->dst[l->n] = dst;
    set_number(l->id, l->n, id);
    if (are_there(l->orig[0])) set_number(l->orig[0], l->n, o0);
    if (are_there(l->orig[1])) set_number(l->orig[1], l->n, o1);
    l->n++;
}

/* x in the order of the groups, in the pool; NULL: no memory. */
static const int32_t *permuted(RtPool *pool, const int32_t *x, const RtGroups *by) {
    int32_t *y = RT_NEWN(pool, int32_t, by->n);
    for (int64_t i = 0; y && by->perm && i < by->n; i++) y[i] = x[by->perm[i]];
    for (int64_t i = 0; y && by->wide_perm && i < by->n; i++) y[i] = x[by->wide_perm[i]];
    return y;
}

/* The group of each element, in their order: written from end to end, which costs less than
 * permuting the keys. */
static const int32_t *group_of_each(RtPool *pool, const RtGroups *by) {
    int32_t *y = RT_NEWN(pool, int32_t, by->n);
    for (int64_t g = 0; y && g < by->n_groups; g++)
        for (int64_t i = by->ptr[g]; i < by->ptr[g + 1]; i++) y[i] = (int32_t)g;
    return y;
}

/* Drops the list's memory. */
static void listing_drop(RtPool *pool, Listing *l) {
    rt_pool_drop(pool, l->src);
    rt_pool_drop(pool, l->dst);
    numbers_drop(pool, &l->id);
    for (int k = 0; k < 2; k++) numbers_drop(pool, &l->orig[k]);
    *l = (Listing){.n = l->n};
}

/* The list's sources in the new order; the old ones go. */
static bool permute(RtPool *pool, const int32_t **to, int32_t **x, const RtGroups *by) {
    *to = permuted(pool, *x, by);
    rt_pool_drop(pool, *x);
    *x = NULL;
    return *to;
}

/* The same of ids and origins, into one of the two arrays. */
static bool permute_numbers(RtPool *pool, const int32_t **narrow, const int64_t **wide, Numbers *x,
                            const RtGroups *by) {
    if (x->narrow) return permute(pool, narrow, &x->narrow, by);
    int64_t *y = RT_NEWN(pool, int64_t, by->n);
    for (int64_t i = 0; y && i < by->n; i++) y[i] = x->wide[rt_group_at(by, i)];
    rt_pool_drop(pool, x->wide);
    x->wide = NULL;
    *wide = y;
    return y;
}

static gnnc_status group(RtPool *pool, const int32_t *keys, int64_t n, int64_t n_groups, bool wide,
                         RtGroups *out, RtError *err) {
    return wide ? rt_group_wide(pool, keys, n, n_groups, out, err)
                : rt_group(pool, keys, n, n_groups, out, err);
}

static void drop_order(RtPool *pool, RtGroups *g) {
    rt_pool_drop(pool, g->perm);
    rt_pool_drop(pool, g->wide_perm);
}

/* Makes the relation of the listed edges, with ids below id_bound. */
static gnnc_status finish(RtPool *pool, Listing *l, int64_t n_src, int64_t n_dst, int64_t id_bound,
                          RtRelation *out, RtError *err) {
    RtGroups by_dst;
    gnnc_status st = group(pool, l->dst, l->n, n_dst, l->wide, &by_dst, err);
    if (st != GNNC_OK) return st;
    RtRelation r = {.n_src = n_src,
                    .n_dst = n_dst,
                    .n_edges = l->n,
                    .ptr = by_dst.ptr,
                    .id_bound = id_bound,
                    .wide = l->wide};
    rt_pool_drop(pool, l->dst);
    l->dst = NULL;
    bool ok = permute(pool, &r.src, &l->src, &by_dst) && (r.dst = group_of_each(pool, &by_dst)) &&
              permute_numbers(pool, &r.id, &r.wide_id, &l->id, &by_dst);
    for (int k = 0; k < 2 && ok; k++)
        if (are_there(l->orig[k]))
            ok = permute_numbers(pool, &r.orig[k], &r.wide_orig[k], &l->orig[k], &by_dst);
    drop_order(pool, &by_dst);
    listing_drop(pool, l);
    if (!ok) return rt_fail_nomem(err, "edges of a relation");
    *out = r;
    return GNNC_OK;
}

gnnc_status rt_relation_group_src(RtPool *pool, RtRelation *r, RtError *err) {
    if (r->by_src.perm || r->by_src.wide_perm) return GNNC_OK;
    return group(pool, r->src, r->n_edges, r->n_src, r->n_edges > INT32_MAX, &r->by_src, err);
}

/* Does the array lie in the cache's file, or is there none? */
static bool keeps(const RtCacheFile *k, const void *p) {
    for (int i = 0; i < k->n; i++)
        if (k->p[i] == p) return true;
    return !p;
}

void rt_relation_drop(RtPool *pool, RtRelation *r, const RtCacheFile *k) {
    if (r->orig[0] == r->id) r->orig[0] = NULL; /* of a base relation: one array */
    if (r->wide_orig[0] == r->wide_id) r->wide_orig[0] = NULL;
    const int32_t **const array[] = {&r->src, &r->dst, &r->id, &r->orig[0], &r->orig[1]};
    for (int i = 0; i < 5; i++) {
        if (keeps(k, *array[i])) continue;
        rt_pool_drop(pool, *array[i]);
        *array[i] = NULL;
    }
    const int64_t **const wide[] = {&r->wide_id, &r->wide_orig[0], &r->wide_orig[1]};
    for (int i = 0; i < 3; i++) {
        if (keeps(k, *wide[i])) continue;
        rt_pool_drop(pool, *wide[i]);
        *wide[i] = NULL;
    }
    if (!keeps(k, r->ptr)) rt_pool_drop(pool, r->ptr), r->ptr = NULL;
    if (!keeps(k, r->by_src.ptr)) rt_pool_drop(pool, r->by_src.ptr), r->by_src.ptr = NULL;
    if (!keeps(k, r->by_src.perm)) rt_pool_drop(pool, r->by_src.perm), r->by_src.perm = NULL;
    if (!keeps(k, r->by_src.wide_perm))
        rt_pool_drop(pool, r->by_src.wide_perm), r->by_src.wide_perm = NULL;
}

static bool ascend(const int32_t *x, int64_t n) {
    for (int64_t i = 1; i < n; i++)
        if (x[i] < x[i - 1]) return false;
    return true;
}

static gnnc_status base(RtPool *pool, int64_t n_edges, const int32_t *src, const int32_t *dst,
                        RtRelation *out, RtError *err) {
    RtGroups by_dst;
    gnnc_status st = group(pool, dst, n_edges, out->n_dst, out->wide, &by_dst, err);
    if (st != GNNC_OK) return st;
    out->ptr = by_dst.ptr;
    out->src = permuted(pool, src, &by_dst);
    out->dst = group_of_each(pool, &by_dst);
    out->orig[0] = out->id = by_dst.perm;
    out->wide_orig[0] = out->wide_id = by_dst.wide_perm;
    return out->src && out->dst ? GNNC_OK : rt_fail_nomem(err, "edges of a relation");
}

gnnc_status rt_relation_base_wide(RtPool *pool, int64_t n_src, int64_t n_dst, int64_t n_edges,
                                  const int32_t *src, const int32_t *dst, RtRelation *out,
                                  RtError *err) {
    *out = (RtRelation){
        .n_src = n_src, .n_dst = n_dst, .n_edges = n_edges, .id_bound = n_edges, .wide = true};
    if (!ascend(dst, n_edges)) return base(pool, n_edges, src, dst, out, err);
    out->src = src;
    out->dst = dst;
    out->ptr = rt_group_bounds(pool, dst, n_edges, n_dst);
    return out->ptr ? GNNC_OK : rt_fail_nomem(err, "edges of a relation");
}

gnnc_status rt_relation_base(RtPool *pool, int64_t n_src, int64_t n_dst, int64_t n_edges,
                             const int32_t *src, const int32_t *dst, RtRelation *out,
                             RtError *err) {
    if (n_edges > INT32_MAX)
        return rt_relation_base_wide(pool, n_src, n_dst, n_edges, src, dst, out, err);
    *out = (RtRelation){.n_src = n_src, .n_dst = n_dst, .n_edges = n_edges, .id_bound = n_edges};
    return base(pool, n_edges, src, dst, out, err);
}

/* Fails unless both ends are of one node type. */
static gnnc_status same_ends(const RtRelation *r, const char *what, RtError *err) {
    if (r->n_src == r->n_dst || r->nested) return GNNC_OK;
    return rt_fail(err, GNNC_E_SHAPE, "%s needs one node type at both ends: %lld and %lld nodes",
                   what, (long long)r->n_src, (long long)r->n_dst);
}

static void add_without_loops(Listing *l, const RtRelation *b) {
    for (int64_t e = 0; e < b->n_edges; e++)
        if (b->src[e] != b->dst[e]) add(l, b->src[e], b->dst[e], rt_edge_id(b, e), e, -1);
}

/* Lists the edges without loops, then a loop for each node, with ids behind those of the edges. */
gnnc_status rt_relation_self_loops(RtPool *pool, const RtRelation *base, RtRelation *out,
                                   RtError *err) {
    Listing l;
    int64_t n = base->n_dst, bound = base->id_bound + n;
    gnnc_status st;
    TRY(st, same_ends(base, "adding self loops", err));
    TRY(st, listing_new(pool, base->n_edges + n, bound, base->wide, 1, &l, err));
    add_without_loops(&l, base);
    for (int64_t v = 0; v < n; v++) add(&l, (int32_t)v, (int32_t)v, base->id_bound + v, -1, -1);
    st = finish(pool, &l, base->n_src, n, bound, out, err);
    out->nested = st == GNNC_OK && base->nested;
out:
    return st;
}

/* Lists the edges without loops. */
gnnc_status rt_relation_no_loops(RtPool *pool, const RtRelation *base, RtRelation *out,
                                 RtError *err) {
    Listing l;
    gnnc_status st;
    TRY(st, same_ends(base, "removing self loops", err));
    TRY(st, listing_new(pool, base->n_edges, base->id_bound, base->wide, 1, &l, err));
    add_without_loops(&l, base);
    st = finish(pool, &l, base->n_src, base->n_dst, base->id_bound, out, err);
    out->nested = st == GNNC_OK && base->nested;
out:
    return st;
}

/* Lists the edges with their ends exchanged. */
gnnc_status rt_relation_reverse(RtPool *pool, const RtRelation *base, RtRelation *out,
                                RtError *err) {
    Listing l;
    gnnc_status st = listing_new(pool, base->n_edges, base->id_bound, base->wide, 1, &l, err);
    if (st != GNNC_OK) return st;
    for (int64_t e = 0; e < base->n_edges; e++)
        add(&l, base->dst[e], base->src[e], rt_edge_id(base, e), e, -1);
    return finish(pool, &l, base->n_dst, base->n_src, base->id_bound, out, err);
}

/* Lists the edges in both directions, duplicates and all. */
static void list_both(Listing *l, const RtRelation *b) {
    for (int64_t e = 0; e < b->n_edges; e++) add(l, b->src[e], b->dst[e], e, e, -1);
    for (int64_t e = 0; e < b->n_edges; e++) add(l, b->dst[e], b->src[e], b->n_edges + e, e, -1);
}

/* Keeps the first of equal (src, dst), in listing order.  Grouped by destination,
 * the last place where a source was seen tells a repetition: last[src] = dst + 1. */
static gnnc_status drop_repeated(RtPool *pool, Listing *l, int64_t n, RtError *err) {
    RtGroups by_dst;
    gnnc_status st = group(pool, l->dst, l->n, n, l->wide, &by_dst, err);
    if (st != GNNC_OK) return st;
    int64_t *last = RT_NEWN(pool, int64_t, n);
    uint8_t *keep = RT_NEWN(pool, uint8_t, l->n);
    if (!last || !keep) return rt_fail_nomem(err, "edges of a relation");
    for (int64_t i = 0; i < l->n; i++) {
        int64_t k = rt_group_at(&by_dst, i);
        keep[k] = last[l->src[k]] != l->dst[k] + (int64_t)1;
        last[l->src[k]] = l->dst[k] + (int64_t)1;
    }
    int64_t n_all = l->n;
    l->n = 0;
    for (int64_t k = 0; k < n_all; k++)
        if (keep[k]) {
            Numbers o = l->orig[0];
            add(l, l->src[k], l->dst[k], l->n, o.wide ? o.wide[k] : o.narrow[k], -1);
        }
    rt_pool_drop(pool, by_dst.ptr);
    drop_order(pool, &by_dst);
    rt_pool_drop(pool, last);
    rt_pool_drop(pool, keep);
    return GNNC_OK;
}

/* Lists the edges in both directions, each once. */
gnnc_status rt_relation_undirected(RtPool *pool, const RtRelation *base, RtRelation *out,
                                   RtError *err) {
    Listing l;
    gnnc_status st;
    TRY(st, same_ends(base, "making a relation undirected", err));
    TRY(st, listing_new(pool, 2 * base->n_edges, 0, base->wide, 1, &l, err));
    list_both(&l, base);
    TRY(st, drop_repeated(pool, &l, base->n_dst, err));
    st = finish(pool, &l, base->n_src, base->n_dst, l.n, out, err);
out:
    return st;
}

/* Lists the edges of both relations, with the ids of b's behind those of a's. */
gnnc_status rt_relation_union(RtPool *pool, const RtRelation *a, const RtRelation *b,
                              RtRelation *out, RtError *err) {
    Listing l;
    if (a->n_src != b->n_src || a->n_dst != b->n_dst)
        return rt_fail(err, GNNC_E_SHAPE, "a union needs the same node types at both ends");
    gnnc_status st = listing_new(pool, a->n_edges + b->n_edges, 0, a->wide || b->wide, 2, &l, err);
    if (st != GNNC_OK) return st;
    for (int64_t e = 0; e < a->n_edges; e++) add(&l, a->src[e], a->dst[e], e, e, -1);
    for (int64_t e = 0; e < b->n_edges; e++) add(&l, b->src[e], b->dst[e], a->n_edges + e, -1, e);
    st = finish(pool, &l, a->n_src, a->n_dst, l.n, out, err);
    out->nested = st == GNNC_OK && a->nested && b->nested;
    return st;
}

gnnc_status rt_relation_where(RtPool *pool, const RtRelation *base, const uint8_t *mask,
                              RtRelation *out, RtError *err) {
    Listing l;
    gnnc_status st = listing_new(pool, base->n_edges, base->id_bound, base->wide, 1, &l, err);
    if (st != GNNC_OK) return st;
    for (int64_t e = 0; e < base->n_edges; e++)
        if (mask[e]) add(&l, base->src[e], base->dst[e], rt_edge_id(base, e), e, -1);
    st = finish(pool, &l, base->n_src, base->n_dst, base->id_bound, out, err);
    out->nested = st == GNNC_OK && base->nested;
    return st;
}
