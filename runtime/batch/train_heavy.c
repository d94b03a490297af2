/* An estimate: later hops of rows are drawn at random, and where there are many types and relations
 * only the first are looked at one by one.  What is heavier still grows when it comes. */
#include "train_heavy.h"

#include <stdlib.h>

enum { MOST_WAYS = 8 };

typedef struct {
    int64_t weight;
    int32_t seed;
} Weighed;

static bool is_drawn(const RtHeavy *h) {
    return h->type >= 0 || h->links;
}

int rt_heavy_ways(const RtHeavy *h) {
    int n =
        is_drawn(h) ? 1 + (h->g->n_rels > 1 ? h->g->n_rels : 0) : 1 + h->g->n_types + h->g->n_rels;
    return n < MOST_WAYS ? n : MOST_WAYS;
}

/* Does relation r, or node type t, count? */
static bool counts_rel(const RtHeavy *h, int way, int r) {
    return way == 0 || way - 1 - (is_drawn(h) ? 0 : h->g->n_types) == r;
}

static bool counts_type(int way, int t) {
    return way == 0 || way - 1 == t;
}

/* In-edges of a node in relation r, of which at most `most` are drawn; -1 = all. */
static int64_t in_edges(const RtSampleRel *r, int64_t node, int32_t most) {
    int64_t n = r->ptr[node + 1] - r->ptr[node];
    return most >= 0 && n > most ? most : n;
}

/* Edges that the first hop draws into a node, of those relations that are counted in this way. */
static int64_t weight_of_row(const RtHeavy *h, int way, int type, int64_t node) {
    int64_t n = 0;
    for (int r = 0; r < h->g->n_rels && h->spec->how.n_hops; r++)
        if (h->g->rel[r].dst_type == type && counts_rel(h, way, r))
            n += in_edges(&h->g->rel[r], node, h->spec->fanout[r]);
    return n;
}

/* The load of a part of the graph, by one of the measures. */
static int64_t load_of_part(const RtHeavy *h, int measure, int32_t part) {
    const RtParts *p = h->parts;
    int64_t n = 0;
    for (int t = 0; t < h->g->n_types; t++) {
        int64_t lo = p->ptr[t] ? p->ptr[t][part] : 0, hi = p->ptr[t] ? p->ptr[t][part + 1] : 0;
        if (counts_type(measure, t)) n += hi - lo;
        for (int r = 0; r < h->g->n_rels; r++)
            for (int64_t i = lo; i < hi && h->g->rel[r].dst_type == t && counts_rel(h, measure, r);
                 i++)
                n += in_edges(&h->g->rel[r], p->row ? p->row[t][i] : i, -1);
    }
    return n;
}

/* How much a seed brings into a batch, counted in this way: of a row its edges, of a link those of
 * both ends, of a part its load. */
static int64_t weight_of(const RtHeavy *h, int way, int32_t seed) {
    if (h->type >= 0) return weight_of_row(h, way, h->type, seed);
    if (!h->links) return load_of_part(h, way, seed);
    return weight_of_row(h, way, h->end_type[0], h->links->src[seed]) +
           weight_of_row(h, way, h->end_type[1], h->links->dst[seed]);
}

/* Sorts seeds by weight, the heaviest first, equal ones by number: the choice is a function of the
 * data. */
static int heavier(const void *a, const void *b) {
    const Weighed *x = a, *y = b;
    if (x->weight != y->weight) return x->weight < y->weight ? 1 : -1;
    return x->seed < y->seed ? -1 : x->seed > y->seed;
}

/* The k of n seeds with the most load, by the measure `way`, in the order of `seed`. */
gnnc_status rt_heaviest_seeds(const RtHeavy *h, int measure, const int32_t *seed, int64_t n,
                              int64_t k, int32_t *out, const RtAlloc *from, RtError *err) {
    RtPool pool;
    rt_pool_init(&pool, from);
    Weighed *all = RT_NEWN(&pool, Weighed, n);
    for (int64_t i = 0; all && i < n; i++)
        all[i] = (Weighed){weight_of(h, measure, seed[i]), seed[i]};
    if (all) qsort(all, (size_t)n, sizeof *all, heavier);
    for (int64_t i = 0; all && i < k; i++) out[i] = all[i].seed;
    rt_pool_free(&pool);
    return all ? GNNC_OK : rt_fail_nomem(err, "batches");
}
