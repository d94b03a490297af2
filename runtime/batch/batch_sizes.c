/* Each hop draws, for every node that the last one brought, its fan-out or as many in-edges as
 * nodes have on average; no type has more nodes than the data.  An estimate: which of a
 * program's variants is cheaper is decided by it, nothing else. */
#include "batch_sizes.h"

#include "runtime/bind.h"

enum { MAX_HOPS = 8, MAX_SPACES = 256, MAX_SYMS = 512 };

typedef struct {
    const rt_program *p;
    const int64_t *all;                     /* [n_syms] */
    double nodes[MAX_SPACES][MAX_HOPS + 1]; /* within so many hops; of node types */
} Hops;

static int64_t size_of(const Hops *h, int space) {
    int sym = h->p->spaces[space].sym;
    return sym >= 0 ? h->all[sym] : 0;
}

/* In-edges drawn for one node. */
static double drawn(const Hops *h, int rel, int hop) {
    int64_t n_dst = size_of(h, h->p->spaces[rel].dst);
    double degree = n_dst ? (double)size_of(h, rel) / (double)n_dst : 0;
    int32_t k = h->p->sampling.fanout[hop * h->p->n_spaces + rel];
    return k < 0 || degree < k ? degree : k;
}

static double last_hop(const Hops *h, int type, int hop) {
    return h->nodes[type][hop] - (hop ? h->nodes[type][hop - 1] : 0);
}

static void add_hop(Hops *h, int hop) {
    const rt_program *p = h->p;
    for (int t = 0; t < p->n_spaces; t++) h->nodes[t][hop + 1] = h->nodes[t][hop];
    for (int r = 0; r < p->n_spaces; r++) {
        if (!rt_space_is_sampled(p, r)) continue;
        const rt_space *s = &p->spaces[r];
        double *to = &h->nodes[s->src][hop + 1];
        *to += last_hop(h, s->dst, hop) * drawn(h, r, hop);
        if (*to > (double)size_of(h, s->src)) *to = (double)size_of(h, s->src);
    }
}

static double edges_within(const Hops *h, int rel, int hops) {
    double n = 0;
    for (int k = 0; k <= hops && k < h->p->sampling.n_hops; k++)
        n += last_hop(h, h->p->spaces[rel].dst, k) * drawn(h, rel, k);
    return n;
}

static int64_t size_in_batch(const Hops *h, int space) {
    const rt_space *s = &h->p->spaces[space];
    int whole = s->first ? s->whole : space, hops = s->first ? s->hops : h->p->sampling.n_hops;
    if (s->kind == RT_SP_NODE) return (int64_t)h->nodes[whole][hops];
    if (s->kind == RT_SP_EDGE && (s->first || rt_space_is_sampled(h->p, whole)))
        return (int64_t)edges_within(h, whole, hops);
    if (s->kind == RT_SP_EDGE) return size_in_batch(h, s->base[0]);
    if (s->kind != RT_SP_NZ) return h->all[s->sym];
    int rows = h->p->columns[s->col].space; /* stored entries, as many per row as on average */
    int64_t all = size_of(h, rows);
    return all ? (int64_t)((double)h->all[s->sym] / (double)all * (double)size_in_batch(h, rows))
               : 0;
}

/* Batches of whole parts have their share of everything. */
static void share_of_parts(const rt_program *p, int64_t batch, const int64_t *all, int64_t *n) {
    int graphs = p->sampling.seeds == RT_SEEDS_GRAPHS ? p->columns[p->sampling.split].space : -1;
    int64_t parts = graphs >= 0 ? all[p->spaces[graphs].sym] : p->sampling.clusters;
    double share = parts > batch ? (double)batch / (double)parts : 1;
    for (int i = 0; i < p->n_spaces; i++)
        if (p->spaces[i].sym >= 0 && p->spaces[i].kind != RT_SP_DIM)
            n[p->spaces[i].sym] = (int64_t)(share * (double)all[p->spaces[i].sym]);
}

void rt_batch_sizes(const rt_program *p, int64_t batch, int64_t *n) {
    int64_t all[MAX_SYMS];
    const rt_sampling *s = &p->sampling;
    if (!s->batch || p->n_spaces > MAX_SPACES || p->n_syms > MAX_SYMS || s->n_hops > MAX_HOPS)
        return;
    Hops h = {.p = p, .all = all};
    for (int i = 0; i < p->n_syms; i++) all[i] = n[i];
    if (s->train_links != RT_LINKS_NONE) { /* the whole graph, and so many links */
        for (int i = 0; i < p->n_spaces; i++)
            if (p->spaces[i].rel >= RT_REL_LINKS) n[p->spaces[i].sym] = batch;
        return;
    }
    if (s->seeds != RT_SEEDS_ROWS) {
        share_of_parts(p, batch, all, n);
        return;
    }
    if (s->split >= 0) h.nodes[p->columns[s->split].space][0] = (double)batch;
    for (int hop = 0; hop < s->n_hops; hop++) add_hop(&h, hop);
    for (int i = 0; i < p->n_spaces; i++)
        if (p->spaces[i].sym >= 0) n[p->spaces[i].sym] = size_in_batch(&h, i);
}
