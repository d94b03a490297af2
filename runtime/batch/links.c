/* The index is two stable counting sorts over the canonical order, which has destinations
 * ascending: by kind, then by source. */
#include "links.h"

#include <string.h>

#include "runtime/sample/sample_key.h"

/* ---- the index ------------------------------------------------------------------------- */
static gnnc_status no_memory(RtError *err) {
    return rt_fail_nomem(err, "the index of links");
}

/* Kinds as small numbers in ascending order would need a sort of their own; the few that occur are
 * below the number of edges or the data set is odd, and then the sources alone are sorted. */
static gnnc_status by_kind(RtPool *pool, const RtLinks *l, int32_t *order, RtError *err) {
    int64_t n = l->rel->n_edges, most = 0;
    for (int64_t i = 0; i < n; i++) {
        order[i] = (int32_t)i;
        if (l->kind[i] > most) most = l->kind[i];
        if (l->kind[i] < 0) return rt_fail(err, GNNC_E_RANGE, "a link of no kind");
    }
    if (most == 0) return GNNC_OK;
    if (most > INT32_MAX / 2) return rt_fail(err, GNNC_E_RANGE, "links of too many kinds");
    int32_t *key = RT_NEWN(pool, int32_t, n);
    RtGroups g;
    if (!key) return no_memory(err);
    for (int64_t i = 0; i < n; i++) key[i] = (int32_t)l->kind[i];
    gnnc_status st = rt_group(pool, key, n, most + 1, &g, err);
    if (st == GNNC_OK) memcpy(order, g.perm, (size_t)n * sizeof *order);
    return st;
}

/* Sorts the edges, which `order` has sorted by kind, by their sources: those of one query then
 * follow each other. */
static gnnc_status by_source(RtPool *pool, const RtLinks *l, const int32_t *order, RtError *err) {
    int64_t n = l->rel->n_edges;
    int32_t *key = RT_NEWN(pool, int32_t, n);
    RtGroups g;
    if (!key) return no_memory(err);
    for (int64_t i = 0; i < n; i++) key[i] = l->rel->src[order[i]];
    gnnc_status st = rt_group(pool, key, n, l->rel->n_src, &g, err);
    for (int64_t i = 0; i < n && st == GNNC_OK; i++) l->by_query[i] = order[g.perm[i]];
    return st;
}

static bool asks_alike(const RtLinks *l, int32_t a, int32_t b) {
    return l->rel->src[a] == l->rel->src[b] && l->kind[a] == l->kind[b];
}

/* Finds where each query begins in by_query, the query of each edge, and the first query of each
 * source. */
static void find_queries(RtLinks *l) {
    int64_t n = l->rel->n_edges, q = -1;
    int32_t source = -1;
    for (int64_t i = 0; i < n; i++) {
        int32_t e = l->by_query[i];
        if (i == 0 || !asks_alike(l, l->by_query[i - 1], e)) {
            l->query[++q] = i;
            while (source < l->rel->src[e]) l->of_source[++source] = q;
        }
        l->query_of[e] = (int32_t)q;
    }
    l->n_queries = q + 1;
    l->query[q + 1] = n;
    while (source < l->rel->n_src) l->of_source[++source] = q + 1;
}

gnnc_status rt_links_index(RtPool *pool, const RtRelation *rel, const int32_t *split,
                           const int64_t *kind, RtLinks *out, RtError *err) {
    RtPool work;
    RtLinks l = {.rel = rel, .split = split, .kind = kind};
    gnnc_status st;
    l.by_query = RT_NEWN(pool, int32_t, rel->n_edges + 1);
    l.query_of = RT_NEWN(pool, int32_t, rel->n_edges + 1);
    l.query = RT_NEWN(pool, int64_t, rel->n_edges + 2);
    l.of_source = RT_NEWN(pool, int64_t, rel->n_src + 2);
    if (!l.by_query || !l.query_of || !l.query || !l.of_source) return no_memory(err);
    rt_pool_init(&work, &pool->from);
    int32_t *order = RT_NEWN(&work, int32_t, rel->n_edges + 1);
    st = order ? by_kind(&work, &l, order, err) : no_memory(err);
    if (st == GNNC_OK) st = by_source(&work, &l, order, err);
    rt_pool_free(&work);
    if (st != GNNC_OK) return st;
    find_queries(&l);
    *out = l;
    return GNNC_OK;
}

/* The number of the query "which destinations has source u by this kind of edge?"; -1: the data
 * have no such edge. A binary search, as the queries of a source ascend by kind. */
static int64_t find_query(const RtLinks *l, int32_t u, int64_t kind) {
    int64_t a = l->of_source[u], b = l->of_source[u + 1], end = b;
    while (a < b) {
        int64_t mid = a + (b - a) / 2;
        if (l->kind[l->by_query[l->query[mid]]] < kind)
            a = mid + 1;
        else
            b = mid;
    }
    return a < end && l->kind[l->by_query[l->query[a]]] == kind ? a : -1;
}

void rt_links_of(const RtLinks *l, int32_t u, int64_t kind, int64_t *first, int64_t *end) {
    int64_t q = find_query(l, u, kind);
    *first = q < 0 ? 0 : l->query[q];
    *end = q < 0 ? 0 : l->query[q + 1];
}

bool rt_links_have(const RtLinks *l, int32_t u, int64_t kind, int32_t v, int first, int last) {
    int64_t q = find_query(l, u, kind);
    if (q < 0) return false;
    int64_t a = l->query[q], b = l->query[q + 1], end = b;
    while (a < b) {
        int64_t mid = a + (b - a) / 2;
        if (l->rel->dst[l->by_query[mid]] < v)
            a = mid + 1;
        else
            b = mid;
    }
    for (; a < end && l->rel->dst[l->by_query[a]] == v; a++) {
        int s = l->split[l->by_query[a]];
        if (s >= first && s <= last) return true;
    }
    return false;
}

/* ---- pairs -------------------------------------------------------------------------------- */
/* Makes room for n pairs of a step; `cells`: each has a place in the scores of all destinations. */
static gnnc_status drawn_new(RtPool *pool, int64_t n, bool cells, RtStepEdges *d, RtError *err) {
    if (n > INT32_MAX) return rt_fail(err, GNNC_E_RANGE, "a step over more than 2^31 - 1 links");
    *d = (RtStepEdges){.n = n};
    d->src = RT_NEWN(pool, int32_t, n + 1);
    d->dst = RT_NEWN(pool, int32_t, n + 1);
    d->orig = RT_NEWN(pool, int32_t, n + 1);
    d->row = RT_NEWN(pool, int32_t, n + 1);
    if (cells) d->cell = RT_NEWN(pool, int32_t, n + 1);
    bool ok = d->src && d->dst && d->orig && d->row && (d->cell || !cells);
    return ok ? GNNC_OK : rt_fail_nomem(err, "a batch of links");
}

/* Writes pair i of a step: its ends, the edge of the relation behind it, and the edge whose columns
 * it reads. */
static void set(RtStepEdges *d, int64_t i, int32_t src, int32_t dst, int32_t orig, int32_t row) {
    d->src[i] = src;
    d->dst[i] = dst;
    d->orig[i] = orig;
    d->row[i] = row;
}

/* NaN: a time that is not known is none of before. */
static bool is_there(const RtDrawnNegatives *how, int32_t e, const int32_t v[2]) {
    for (int k = 0; k < 2 && how->when; k++)
        if (how->since[k] && !(how->since[k][v[k]] <= how->when[e])) return false;
    return true;
}

static bool will_not_do(const RtLinks *l, const RtDrawnNegatives *how, int32_t e,
                        const int32_t v[2]) {
    if (!is_there(how, e, v)) return true;
    return how->avoid && rt_links_have(l, v[0], l->kind[e], v[1], how->first, how->last);
}

/* Draws a negative v[0], v[1] for edge e. One that is a true edge, or of a node not there yet, is
 * drawn again; in the end the nodes behind the last draw are taken in turn, and where none will do,
 * that draw. */
static void draw(const RtLinks *l, const RtDrawnNegatives *how, int32_t e, uint64_t state,
                 int32_t v[2]) {
    enum { TRIES = 64 };
    const int64_t n[2] = {l->rel->n_src, l->rel->n_dst};
    int side =
        how->how == RT_NEG_SIDE ? (int)(rt_draw(state, 2 * TRIES) >> 63) : how->how != RT_NEG_HEAD;
    for (uint64_t t = 0; t < TRIES; t++) {
        v[0] = l->rel->src[e];
        v[1] = l->rel->dst[e];
        v[side] = (int32_t)rt_draw_below(state, 2 * t, n[side]);
        if (how->how == RT_NEG_BOTH) v[0] = (int32_t)rt_draw_below(state, 2 * t + 1, n[0]);
        if (!will_not_do(l, how, e, v)) return;
    }
    int32_t from = v[side];
    for (int64_t k = 1; k <= n[side]; k++) {
        v[side] = (int32_t)((from + k) % n[side]);
        if (!will_not_do(l, how, e, v)) return;
    }
}

/* Lists n edges, then k negatives of each that are drawn for it. */
gnnc_status rt_links_pairs(const RtLinks *l, RtPool *pool, const int32_t *edge, int64_t n,
                           const RtNegatives *how, RtStepEdges *out, RtError *err) {
    int64_t k = how->k;
    gnnc_status st = n > INT32_MAX / (k + 1)
                         ? rt_fail(err, GNNC_E_RANGE, "a batch of more than 2^31 - 1 links")
                         : drawn_new(pool, n * (k + 1), false, out, err);
    for (int64_t i = 0; i < n && st == GNNC_OK; i++) {
        int32_t e = edge[i], v[2];
        set(out, i, l->rel->src[e], l->rel->dst[e], e, e);
        for (int64_t j = 0; j < k; j++) {
            v[0] = l->rel->src[e];
            v[1] = l->rel->dst[e];
            if (!how->elsewhere)
                draw(l, &how->drawn, e, rt_draw_state(how->key, (uint32_t)i, (uint32_t)j), v);
            set(out, n + i * k + j, v[0], v[1], e, e);
        }
    }
    return st;
}

/* ---- queries -------------------------------------------------------------------------------- */
typedef struct {
    const RtLinks *l;
    const int32_t *query;
    int64_t n;
    int split;
} Ask;

/* Lists the other edges of an answer's query, in splits up to `last`, each destination once; out
 * NULL: only counts them. */
static int64_t others(const Ask *a, int64_t q, int32_t answer, int last, int64_t row,
                      RtStepEdges *out, int64_t at) {
    const RtLinks *l = a->l;
    const int32_t *dst = l->rel->dst;
    int64_t g = a->query[q], n = 0;
    int32_t before = dst[answer]; /* none of it, though it may stand there in another split */
    int32_t taken = -1;
    for (int64_t i = l->query[g]; i < l->query[g + 1]; i++) {
        int32_t e = l->by_query[i];
        bool counts = l->split[e] >= RT_SPLIT_TRAIN && l->split[e] <= last;
        if (!counts || dst[e] == before || dst[e] == taken) continue;
        taken = dst[e];
        if (out) {
            set(out, at + n, l->rel->src[e], dst[e], (int32_t)row, e);
            out->cell[at + n] = (int32_t)(q * l->rel->n_dst + dst[e]);
        }
        n++;
    }
    return n;
}

/* Runs through the answers; with `out`, writes. */
static int64_t walk(const Ask *a, int last, bool beside, RtStepEdges *out) {
    const RtLinks *l = a->l;
    int64_t n = 0, row = 0;
    for (int64_t q = 0; q < a->n; q++)
        for (int64_t i = l->query[a->query[q]]; i < l->query[a->query[q] + 1]; i++) {
            int32_t e = l->by_query[i];
            if (l->split[e] != a->split) continue;
            if (beside) {
                n += others(a, q, e, last, row++, out, n);
                continue;
            }
            if (out) {
                set(out, n, l->rel->src[e], l->rel->dst[e], (int32_t)q, e);
                out->cell[n] = (int32_t)(q * l->rel->n_dst + l->rel->dst[e]);
            }
            n++;
        }
    return n;
}

/* Counts the pairs that walk() will write, makes room for them, and writes them. */
static gnnc_status fill(const Ask *a, RtPool *pool, int last, bool beside, RtStepEdges *out,
                        RtError *err) {
    gnnc_status st = drawn_new(pool, walk(a, last, beside, NULL), true, out, err);
    if (st == GNNC_OK) walk(a, last, beside, out);
    return st;
}

gnnc_status rt_links_query(const RtLinks *l, RtPool *pool, const int32_t *query, int64_t n,
                           int split, int beside, RtStepQueries *out, RtError *err) {
    Ask a = {l, query, n, split};
    gnnc_status st;
    *out = (RtStepQueries){0};
    if (l->rel->n_dst && n > INT32_MAX / l->rel->n_dst)
        return rt_fail(err, GNNC_E_RANGE,
                       "%lld queries with %lld nodes each are too many for a step: a smaller batch",
                       (long long)n, (long long)l->rel->n_dst);
    TRY(st, drawn_new(pool, n, false, &out->queries, err));
    for (int64_t q = 0; q < n; q++) {
        int32_t e = l->by_query[l->query[query[q]]];
        set(&out->queries, q, l->rel->src[e], l->rel->dst[e], e, e);
    }
    TRY(st, fill(&a, pool, 0, false, &out->answers, err));
    if (beside & RT_QUERY_KNOWN) TRY(st, fill(&a, pool, RT_SPLIT_TEST, true, &out->known, err));
    if (beside & RT_QUERY_EARLIER) TRY(st, fill(&a, pool, split - 1, true, &out->earlier, err));
out:
    return st;
}
