/* Relations: base edges and the relations derived from them (RelKind in ir/ir.h),
 * each in canonical order: sorted by destination, ties in the order in which the
 * construction lists the edges ("listing order" below).
 *
 *     kind        listing order                                   logical id
 *     base        the file's                                      position in the file
 *     self_loops  base[0]'s edges that are no loop, in canonical   base's id; loop of node v:
 *                 order; then one loop per node, ascending         id_bound(base) + v
 *     no_loops    base[0]'s edges that are no loop                 base's id
 *     reverse     base[0]'s, ends swapped                          base's id
 *     undirected  base[0]'s edges, then the same with ends          position in the listing
 *                 swapped; of equal (src, dst) only the first
 *     union       base[0]'s, then base[1]'s                        position in the listing
 *     where       base[0]'s whose mask is set                      base's id
 *
 * Logical ids key the random streams: they do not depend on the canonical order,
 * so a dropout mask follows its edge through every derivation that keeps it.
 * They lie in [0, id_bound); for a base relation id_bound is E.
 *
 * Numbers of nodes have 32 bits; positions and ids of edges have as well, but 64 in a relation of
 * 2^31 edges or more, or with ids as large (`wide`).  Of such a base relation whose edges are in
 * canonical order already, nothing is copied: position e is e. */
#ifndef RUNTIME_RELATION_H
#define RUNTIME_RELATION_H

#include "csr.h"

typedef struct RtRelation {
    int64_t n_src, n_dst, n_edges;
    const int64_t *ptr;     /* [n_dst + 1] edges of a destination */
    const int32_t *src;     /* [E] */
    const int32_t *dst;     /* [E] ascending */
    RtGroups by_src;        /* the transpose: edges of a source, ascending; see below */
    const int32_t *orig[2]; /* [E] canonical edge of base[k], -1 = none (MAP_ORIG);
                             * base relation: orig[0] = position in the file */
    const int32_t *cell; /* [E] of a step over links: query times n_dst plus destination; or NULL */
    const int32_t *id;   /* [E] logical id */
    bool wide;           /* orig and id are NULL, and in 64 bits they are */
    const int64_t *wide_orig[2]; /* .. [E]; NULL = edge e itself */
    const int64_t *wide_id;      /* .. [E]; NULL = edge e's is e */
    int64_t id_bound;            /* ids are below it */
    bool nested; /* the destinations are the first of the sources: of a mini-batch (batch.h) */
} RtRelation;

/* Canonical edge of base[k]; -1 = none. */
static inline int64_t rt_edge_orig(const RtRelation *r, int k, int64_t e) {
    if (!r->wide) return r->orig[k][e];
    return r->wide_orig[k] ? r->wide_orig[k][e] : e;
}
static inline int64_t rt_edge_id(const RtRelation *r, int64_t e) {
    if (!r->wide) return r->id[e];
    return r->wide_id ? r->wide_id[e] : e;
}

/* Makes by_src, where it is not there yet: only who runs along the transpose needs it. */
gnnc_status rt_relation_group_src(RtPool *pool, RtRelation *r, RtError *err);

/* Ends must lie in [0, n_src) and [0, n_dst): the data set's open checked them. */
gnnc_status rt_relation_base(RtPool *pool, int64_t n_src, int64_t n_dst, int64_t n_edges,
                             const int32_t *src, const int32_t *dst, RtRelation *out, RtError *err);
/* The same with positions of 64 bits, whatever their number; what is derived has them, too.  src
 * and dst must outlive it. */
gnnc_status rt_relation_base_wide(RtPool *pool, int64_t n_src, int64_t n_dst, int64_t n_edges,
                                  const int32_t *src, const int32_t *dst, RtRelation *out,
                                  RtError *err);
gnnc_status rt_relation_self_loops(RtPool *pool, const RtRelation *base, RtRelation *out,
                                   RtError *err);
gnnc_status rt_relation_no_loops(RtPool *pool, const RtRelation *base, RtRelation *out,
                                 RtError *err);
gnnc_status rt_relation_reverse(RtPool *pool, const RtRelation *base, RtRelation *out,
                                RtError *err);
gnnc_status rt_relation_undirected(RtPool *pool, const RtRelation *base, RtRelation *out,
                                   RtError *err);
gnnc_status rt_relation_union(RtPool *pool, const RtRelation *a, const RtRelation *b,
                              RtRelation *out, RtError *err);
/* Arrays that someone points to. */
typedef struct RtCacheFile {
    void *const *p; /* [n] arrays that lie in it */
    int n;
} RtCacheFile;
/* Gives back every array of r but those. */
void rt_relation_drop(RtPool *pool, RtRelation *r, const RtCacheFile *kept);
/* mask [base->n_edges], in base's canonical order */
gnnc_status rt_relation_where(RtPool *pool, const RtRelation *base, const uint8_t *mask,
                              RtRelation *out, RtError *err);

#endif
