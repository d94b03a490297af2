/* Each hop draws, for every node that the last one brought, its fan-out or as many in-edges as
 * nodes have on average; no type has more nodes than the data, in each tree where these are
 * disjoint.  An estimate: which of a program's variants is cheaper is decided by it, and what
 * memory is foreseen. */
#include "batch_sizes.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "runtime/bind/bind.h"
#include "links.h"
#include "runtime/sample/sample.h"

enum { MAX_HOPS = 8, MAX_SPACES = 256, MAX_SYMS = 512 };

typedef struct {
    const rt_program *p;
    const int32_t *fanout;                  /* [n_hops]; NULL: the program's */
    const int64_t *all;                     /* [n_syms] */
    double trees;                           /* that share no node; 1 = all seeds have one */
    double nodes[MAX_SPACES][MAX_HOPS + 1]; /* within so many hops; of node types */
} Hops;

static int64_t size_of(const Hops *h, int space) {
    int sym = h->p->spaces[space].sym;
    return sym >= 0 ? h->all[sym] : 0;
}

/* Estimates multiply: a number past this one is this, and sums of a few still fit. */
static int64_t as_count(double n) {
    const int64_t most = (int64_t)1 << 56;
    return n < (double)most ? (int64_t)n : most;
}

static void limit_to_trees(const Hops *h, int type, double *nodes) {
    double most = h->trees * (double)size_of(h, type);
    if (*nodes > most) *nodes = most;
}

int32_t rt_fanout(const rt_program *p, const int32_t *fanout, int hop, int space) {
    int32_t own = p->sampling.fanout[hop * p->n_spaces + space];
    return fanout && own ? fanout[hop] : own;
}

int rt_fanout_parse(const char *s, int most, int32_t *to) {
    for (int n = 0;; n++) {
        char *end;
        errno = 0;
        bool number = *s == '-' || isdigit((unsigned char)*s); /* strtoll skips blanks and '+' */
        long long k = number ? strtoll(s, &end, 10) : 0;
        if (!number || end == s || errno || k < -1 || k > INT32_MAX) return -1;
        if (n < most) to[n] = (int32_t)k;
        if (!*end) return n + 1;
        if (*end != ',') return -1;
        s = end + 1;
    }
}

/* In-edges that a hop draws for one node along a relation, on average. */
static double drawn(const Hops *h, int rel, int hop) {
    int64_t n_dst = size_of(h, h->p->spaces[rel].dst);
    double degree = n_dst ? (double)size_of(h, rel) / (double)n_dst : 0;
    int32_t k = rt_fanout(h->p, h->fanout, hop, rel);
    return k < 0 || degree < k ? degree : k;
}

static double last_hop(const Hops *h, int type, int hop) {
    return h->nodes[type][hop] - (hop ? h->nodes[type][hop - 1] : 0);
}

/* Adds the sources that hop number `hop` brings along each sampled relation, as if each edge led to
 * a node of its own. */
static void add_hop(Hops *h, int hop) {
    const rt_program *p = h->p;
    for (int t = 0; t < p->n_spaces; t++) h->nodes[t][hop + 1] = h->nodes[t][hop];
    for (int r = 0; r < p->n_spaces; r++) {
        if (!p->spaces[r].sampled) continue;
        const rt_space *s = &p->spaces[r];
        double *to = &h->nodes[s->src][hop + 1];
        *to += last_hop(h, s->dst, hop) * drawn(h, r, hop);
        limit_to_trees(h, s->src, to);
    }
}

/* Edges of a relation that the first hops draw, into nodes of hops 0 to `hops`. */
static double edges_within(const Hops *h, int rel, int hops) {
    double n = 0;
    for (int k = 0; k <= hops && k < h->p->sampling.n_hops; k++)
        n += last_hop(h, h->p->spaces[rel].dst, k) * drawn(h, rel, k);
    return n;
}

/* Rows of a space in a batch, about: nodes and edges by hops, derived relations by their bases,
 * stored entries by the mean of a row. */
static int64_t size_in_batch(const Hops *h, int space) {
    const rt_space *s = &h->p->spaces[space];
    int of = s->first ? s->whole : space, hops = s->first ? s->hops : h->p->sampling.n_hops;
    if (s->kind == RT_SP_NODE && s->once && h->nodes[of][hops] > (double)size_of(h, of))
        return size_of(h, of);
    if (s->kind == RT_SP_NODE) return as_count(h->nodes[of][hops]);
    if (s->kind == RT_SP_EDGE && (s->first || h->p->spaces[of].sampled))
        return as_count(edges_within(h, of, hops));
    if (s->kind == RT_SP_EDGE && s->rel == RT_REL_UNION)
        return size_in_batch(h, s->base[0]) + size_in_batch(h, s->base[1]);
    if (s->kind == RT_SP_EDGE) return size_in_batch(h, s->base[0]);
    if (s->kind != RT_SP_NZ) return h->all[s->sym];
    int rows = h->p->columns[s->col].space; /* stored entries, as many per row as on average */
    int64_t all = size_of(h, rows);
    return all ? as_count((double)h->all[s->sym] / (double)all * (double)size_in_batch(h, rows))
               : 0;
}

/* Batches of whole parts have their share of everything. */
static void share_of_parts(const rt_program *p, int64_t batch, const int64_t *all, int64_t *n) {
    int graphs = -1;
    for (int i = 0; i < p->n_spaces && p->sampling.seeds == RT_SEEDS_GRAPHS; i++)
        if (p->spaces[i].kind == RT_SP_GRAPH) graphs = i;
    int64_t parts = graphs >= 0 ? all[p->spaces[graphs].sym] : p->sampling.clusters;
    double share = parts > batch ? (double)batch / (double)parts : 1;
    for (int i = 0; i < p->n_spaces; i++)
        if (p->spaces[i].sym >= 0 && p->spaces[i].kind != RT_SP_DIM)
            n[p->spaces[i].sym] = as_count(share * (double)all[p->spaces[i].sym]);
}

/* ---- links ---------------------------------------------------------------------------------- */
/* The relation that is scored; -1 = none. */
static int scored(const rt_program *p) {
    for (int i = 0; i < p->n_spaces; i++) {
        int s = i;
        while (p->spaces[s].rel >= RT_REL_LINKS) s = p->spaces[s].base[0];
        if (s != i) return s;
    }
    return -1;
}

/* The ends of links and of their negatives, each node once. */
static void seed_ends(Hops *h, int rel, int64_t links) {
    const rt_sampling *s = &h->p->sampling;
    const int end[] = {h->p->spaces[rel].src, h->p->spaces[rel].dst};
    const bool kept[] = {s->corrupt == RT_NEG_TAIL, s->corrupt == RT_NEG_HEAD};
    for (int k = 0; k < 2; k++) {
        double *to = &h->nodes[end[k]][0];
        *to += (double)links * (kept[k] ? 1 : 1 + (double)s->negatives);
        limit_to_trees(h, end[k], to);
    }
}

static int64_t at_least_1(int64_t n) {
    return n < 1 ? 1 : n;
}

/* Spaces that only a step over links has. */
static void set_links(const Hops *h, int rel, int64_t batch, RtBatchFor what, int64_t *n) {
    const rt_program *p = h->p;
    const rt_sampling *s = &p->sampling;
    int64_t edges = size_of(h, rel), dst = at_least_1(size_of(h, p->spaces[rel].dst));
    bool judges = what == RT_BATCH_EVAL;
    int64_t queries = judges && RT_MOST_SCORES / dst < batch ? RT_MOST_SCORES / dst : batch;
    double each = (double)at_least_1(edges / at_least_1(size_of(h, p->spaces[rel].src)));
    int64_t links = judges ? edges / 5 + 1 : batch;
    int64_t k = what != RT_BATCH_TRAINS ? at_least_1(s->negatives) : s->negatives;
    for (int i = 0; i < p->n_spaces; i++) {
        int64_t *to = p->spaces[i].sym >= 0 ? &n[p->spaces[i].sym] : NULL;
        if (p->spaces[i].rel == RT_REL_LINKS) *to = as_count((double)links * (1 + (double)k));
        if (p->spaces[i].rel == RT_REL_POSITIVES) *to = links;
        if (p->spaces[i].rel == RT_REL_QUERIES) *to = queries;
        if (p->spaces[i].rel == RT_REL_ANSWERS) *to = as_count((double)queries * each);
        if (p->spaces[i].rel > RT_REL_ANSWERS) *to = as_count((double)queries * each * each);
    }
}

RtBatchFor rt_batch_for(const rt_phase *phase) {
    if (phase->kind == RT_PHASE_TRAIN) return RT_BATCH_TRAINS;
    return phase->kind == RT_PHASE_EVAL ? RT_BATCH_EVAL : RT_BATCH_PREDICTS;
}

/* Estimates the sizes that a batch gives its symbols. False: the program samples none, or it would
 * be too large. */
bool rt_batch_sizes(const rt_program *p, int64_t batch, const int32_t *fanout, RtBatchFor what,
                    int64_t *n) {
    int64_t all[MAX_SYMS];
    const rt_sampling *s = &p->sampling;
    if (!s->batch || p->n_spaces > MAX_SPACES || p->n_syms > MAX_SYMS || s->n_hops > MAX_HOPS)
        return false;
    Hops h = {.p = p, .fanout = fanout, .all = all};
    for (int i = 0; i < p->n_syms; i++) all[i] = n[i];
    int rel = s->train_links == RT_LINKS_NONE ? -1 : scored(p);
    int seeds = rel >= 0 ? rel : s->split >= 0 ? p->columns[s->split].space : -1;
    bool draws = s->n_hops && what != RT_BATCH_EVAL;
    if (seeds >= 0 && size_of(&h, seeds) < batch) batch = size_of(&h, seeds);
    if (rel >= 0 && !draws) { /* the whole graph, and so many links */
        set_links(&h, rel, batch, what, n);
        return true;
    }
    if (rel < 0 && s->seeds != RT_SEEDS_ROWS) {
        share_of_parts(p, batch, all, n);
        return true;
    }
    h.trees = s->disjoint ? (double)batch : 1;
    if (rel >= 0)
        seed_ends(&h, rel, batch);
    else if (s->split >= 0)
        h.nodes[p->columns[s->split].space][0] = (double)batch;
    for (int hop = 0; hop < s->n_hops; hop++) add_hop(&h, hop);
    for (int i = 0; i < p->n_spaces; i++)
        if (p->spaces[i].sym >= 0) n[p->spaces[i].sym] = size_in_batch(&h, i);
    if (rel >= 0) set_links(&h, rel, batch, what, n);
    return true;
}
