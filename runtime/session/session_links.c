/* Scores of pairs by themselves, and the best destinations of a source.
 *
 * A pair is bound as a held-out link of training is (link_batches.h), beside the whole graph.  What
 * the graph tells of its ends was computed by open (passes/serve_links.c), so that a score costs
 * what the model's last line does.  Of links by time each pair has a tree of its own instead, with
 * what was known at its time, which comes with it as its other columns do (session_pairs.c). */
#include <math.h>
#include <string.h>

#include "runtime/batch/link_impl.h"
#include "runtime/device/device.h"
#include "runtime/exec/rng.h"
#include "session.h"

enum { BATCH = 4096, TREES = 256 }; /* pairs that are scored at once; by time */

static int64_t at_once(const gnnc_session *s) {
    return s->of->samples_neighbours ? TREES : BATCH;
}

/* ---- what sessions share -------- */
/* Is something of a pair read off an edge of the data? */
static bool reads_edges(const rt_program *p) {
    for (int c = 0; c < p->n_columns; c++)
        if (p->spaces[p->columns[c].space].drawn && !rt_link_column_is_in_request(p, c))
            return true;
    for (int m = 0; m < p->n_maps; m++)
        if (p->maps[m].kind == RT_MAP_ORIG && p->spaces[p->maps[m].from].drawn) return true;
    return false;
}

gnnc_status rt_session_find_kinds(RtPool *pool, const RtLinkBatches *b, RtEdgeKinds *k,
                                  RtError *err) {
    const RtLinks *l = &b->links;
    k->n = 1;
    for (int64_t e = 0; e < l->rel->n_edges; e++)
        if (l->kind[e] >= k->n) k->n = l->kind[e] + 1;
    k->edge = RT_NEWN(pool, int32_t, k->n);
    if (!k->edge) return rt_fail_nomem(err, "kinds of links");
    for (int64_t i = 0; i < k->n; i++) k->edge[i] = -1;
    for (int64_t e = l->rel->n_edges - 1; e >= 0; e--)
        if (l->kind[e] >= 0) k->edge[l->kind[e]] = (int32_t)e;
    return GNNC_OK;
}

gnnc_status rt_session_links_share(RtSessionShared *of) {
    gnnc_status st;
    TRY(st, rt_link_batches_start(of->t));
    TRY(st, rt_session_find_kinds(&of->t->rt.pool, of->t->links, &of->kinds, &of->t->rt.err));
    of->reads_edges = reads_edges(of->t->program);
    of->samples_neighbours = of->t->program->sampling.n_hops > 0;
    if (of->samples_neighbours) TRY(st, rt_batch_source_make(of->t, &of->source));
    st = rt_session_pairs_share(of);
out:
    return st;
}

/* ---- a batch of pairs -------- */
/* Of the request's subgraph, or of the graph. */
static const RtLinkBatches *edges_of(const gnnc_session *s) {
    return s->request ? s->request->links : s->of->t->links;
}

static const RtExec *data_of(const gnnc_session *s) {
    return s->request ? &s->request->x : &s->x;
}

/* Finds an edge of the data of this kind, whose columns stand for those of a pair: -1 if the model
 * reads none. */
static gnnc_status find_edge(gnnc_session *s, int64_t kind, int32_t *edge) {
    const RtEdgeKinds *k = s->request ? &s->request->kinds : &s->of->kinds;
    *edge = kind < 0 || kind >= k->n ? -1 : k->edge[kind];
    if (*edge >= 0 || (kind >= 0 && !s->of->reads_edges)) return GNNC_OK;
    return rt_fail(&s->rt.err, GNNC_E_RANGE, "kind %lld: the data have no link of it",
                   (long long)kind);
}

/* Of n pairs of the request what its columns have of them is to be said. */
static gnnc_status new_pairs(gnnc_session *s, int64_t n, RtLinkBatch *b, int32_t **given) {
    RtPool *pool = rt_minibatch_begin(&s->m, data_of(s), !s->ran);
    RtStepEdges *d = &b->pairs;
    *b = (RtLinkBatch){.n = n, .held_out = true, .pairs = {.n = n}};
    d->src = RT_NEWN(pool, int32_t, n + 1);
    d->dst = RT_NEWN(pool, int32_t, n + 1);
    d->row = d->orig = RT_NEWN(pool, int32_t, n + 1);
    b->pair_rows = *given = RT_NEWN(pool, int32_t, n + 1);
    if (s->of->n_pair_columns) b->pair_columns = s->pairs.column;
    bool room = d->src && d->dst && d->row && b->pair_rows;
    return room ? GNNC_OK : rt_fail_nomem(&s->rt.err, "a batch of links");
}

/* What a pair draws hangs on its ends and its time alone. */
static int32_t key_of(int32_t src, int32_t dst, double time) {
    uint64_t bits;
    memcpy(&bits, &time, sizeof bits);
    return (int32_t)(rt_splitmix64(rt_splitmix64((uint64_t)src << 32 | (uint32_t)dst) ^ bits) >>
                     33);
}

/* Draws the neighbourhoods of the ends of a batch of pairs, each as of the pair's time. What is
 * drawn depends on the pair and its time alone, not on the others of the request. */
static gnnc_status draw(gnnc_session *s, RtLinkBatch *b) {
    RtSampleAt at = {.seed = s->seed};
    int32_t *key = RT_NEWN(&s->m.rt.pool, int32_t, b->n + 1);
    double *when = RT_NEWN(&s->m.rt.pool, double, b->n + 1);
    if (!key || !when) return rt_fail_nomem(&s->rt.err, "a batch of links");
    for (int64_t i = 0; i < b->n; i++) {
        when[i] = s->pairs.time[b->pair_rows[i]];
        key[i] = key_of(b->pairs.src[i], b->pairs.dst[i], when[i]);
    }
    b->when = when;
    b->key = key;
    return rt_link_batches_neighbourhood(edges_of(s), s->sampler, &at, &s->of->source.map, &s->m, b,
                                         &s->rt.err);
}

/* Scores of the pairs: valid until the next batch. */
static gnnc_status score(gnnc_session *s, RtLinkBatch *b, const float **out) {
    const RtBatchMap *map = s->of->samples_neighbours ? &s->of->source.map : NULL;
    gnnc_status st;
    if (s->of->samples_neighbours) TRY(st, draw(s, b));
    TRY(st, rt_minibatch_bind(&s->m, data_of(s), map, &s->rt.err));
    TRY(st, rt_link_batches_bind(edges_of(s), &s->m, b, &s->rt.err));
    TRY(st, rt_batch_step_run(&s->step, &s->m, !s->ran));
    TRY(st, rt_device_batch_pull(&s->m.x, s->of->rows.buf));
    s->ran = true;
    *out = s->m.x.buf[s->of->rows.buf];
out:
    return st;
}

/* ---- scores -------- */
gnnc_status gnnc_session_link_sizes(const gnnc_session *s, int64_t *n_src, int64_t *n_dst,
                                    int64_t *n_kinds) {
    if (!s || !s->of || !s->of->links) return GNNC_E_ARG;
    const RtRelation *r = s->of->t->links->links.rel;
    if (n_src) *n_src = r->n_src;
    if (n_dst) *n_dst = r->n_dst;
    if (n_kinds) *n_kinds = s->of->kinds.n;
    return GNNC_OK;
}

/* Pairs [from, from + n) of the request. */
static gnnc_status take_pairs(gnnc_session *s, int64_t from, int64_t n, RtLinkBatch *b) {
    const gnnc_pairs *in = &s->pairs.in;
    const RtRelation *r = edges_of(s)->links.rel;
    int32_t *given;
    gnnc_status st;
    TRY(st, new_pairs(s, n, b, &given));
    for (int64_t i = 0; i < n; i++) {
        int64_t u = in->src[from + i], v = in->dst[from + i];
        if (u < 0 || u >= r->n_src) return rt_session_no_row(s, "source", u, r->n_src);
        if (v < 0 || v >= r->n_dst) return rt_session_no_row(s, "destination", v, r->n_dst);
        b->pairs.src[i] = (int32_t)u;
        b->pairs.dst[i] = (int32_t)v;
        given[i] = (int32_t)(from + i);
        TRY(st, find_edge(s, in->kind ? in->kind[from + i] : 0, &b->pairs.row[i]));
    }
out:
    return st;
}

gnnc_status rt_session_score(gnnc_session *s, float *out) {
    const gnnc_pairs *in = &s->pairs.in;
    gnnc_status st = GNNC_OK;
    if (in->n && (!in->dst || !out))
        return rt_fail(&s->rt.err, GNNC_E_ARG, "pairs without destinations, or without room");
    for (int64_t from = 0; from < in->n; from += at_once(s)) {
        int64_t k = in->n - from < at_once(s) ? in->n - from : at_once(s);
        const float *pred;
        RtLinkBatch b;
        TRY(st, take_pairs(s, from, k, &b));
        TRY(st, score(s, &b, &pred));
        memcpy(out + from, pred, (size_t)k * sizeof *out);
    }
out:
    return st;
}

/* Reads the pairs of a request whose ends are rows of the session's graph. */
static gnnc_status read_pairs_on_graph(gnnc_session *s, const gnnc_pairs *pairs) {
    gnnc_status st = rt_session_pairs_read(s, pairs);
    if (st != GNNC_OK || !s->request) return st;
    return rt_fail(&s->rt.err, GNNC_E_STATE,
                   "the session has no graph: gnnc_session_predict_subgraph_pairs");
}

gnnc_status gnnc_session_predict_pairs(gnnc_session *s, const gnnc_pairs *pairs, float *out) {
    if (!s || !pairs) return GNNC_E_ARG;
    gnnc_status st = read_pairs_on_graph(s, pairs);
    if (st == GNNC_OK) st = rt_session_score(s, out);
    rt_session_pairs_end(s);
    return st;
}

gnnc_status gnnc_session_predict_links(gnnc_session *s, int64_t n, const int64_t *src,
                                       const int64_t *dst, const int64_t *kind, float *out) {
    const gnnc_pairs p = {.struct_size = sizeof p, .n = n, .src = src, .dst = dst, .kind = kind};
    if (n < 0 || (n && (!src || !dst || !out))) return GNNC_E_ARG;
    return gnnc_session_predict_pairs(s, &p, out);
}

/* ---- the best of a source -------- */
/* The k best so far in dst and score: a heap, the worst of them first. */
typedef struct {
    int64_t k, n;
    int64_t *dst;
    float *score;
} Best;

/* Does place i come after place j?  Of equal scores the lower row is first. */
static bool is_after(const Best *b, int64_t i, int64_t j) {
    if (b->score[i] != b->score[j]) return b->score[i] < b->score[j];
    return b->dst[i] > b->dst[j];
}

/* Swaps elements i and j of the heap. */
static void swap(Best *b, int64_t i, int64_t j) {
    int64_t d = b->dst[i];
    float x = b->score[i];
    b->dst[i] = b->dst[j];
    b->score[i] = b->score[j];
    b->dst[j] = d;
    b->score[j] = x;
}

/* Moves element i of the heap down to where it belongs; the worst is on top. */
static void sink(Best *b, int64_t i) {
    for (int64_t c = 2 * i + 1; c < b->n; i = c, c = 2 * i + 1) {
        if (c + 1 < b->n && is_after(b, c + 1, c)) c++;
        if (!is_after(b, c, i)) return;
        swap(b, i, c);
    }
}

/* Destinations come in ascending order, so an equal score does not displace. */
static void offer(Best *b, int64_t dst, float score) {
    if (isnan(score)) return; /* below all */
    if (b->n == b->k) {
        if (score <= b->score[0]) return;
        b->dst[0] = dst;
        b->score[0] = score;
        sink(b, 0);
        return;
    }
    int64_t i = b->n++;
    b->dst[i] = dst;
    b->score[i] = score;
    for (; i && is_after(b, i, (i - 1) / 2); i = (i - 1) / 2) swap(b, i, (i - 1) / 2);
}

/* Sorts the heap, best first; places that no candidate took are -1. */
static void finish(Best *b) {
    int64_t n = b->n;
    while (b->n > 1) {
        swap(b, 0, b->n - 1);
        b->n--;
        sink(b, 0);
    }
    for (int64_t i = n; i < b->k; i++) {
        b->dst[i] = -1;
        b->score[i] = -INFINITY;
    }
}

/* The destinations of one source that are left. */
typedef struct {
    const RtLinks *l;
    const double *when; /* [E] of links by time: later ones are not known yet */
    double time;
    bool inclusive;
    int64_t known, end; /* its edges, by destination; none: all destinations are left */
    int64_t next;
} Candidates;

static bool is_known(const Candidates *c, int32_t e) {
    if (c->l->split[e] < RT_SPLIT_TRAIN) return false;
    return !c->when || c->when[e] < c->time || (c->inclusive && c->when[e] == c->time);
}

/* The next destination that may be proposed, in ascending order: none that the source is known to
 * have. -1: there is no more. */
static int64_t next_candidate(Candidates *c) {
    for (; c->next < c->l->rel->n_dst; c->next++) {
        bool known = false;
        for (; c->known < c->end; c->known++) {
            int32_t e = c->l->by_query[c->known];
            if (c->l->rel->dst[e] > c->next) break;
            known |= c->l->rel->dst[e] == c->next && is_known(c, e);
        }
        if (!known) return c->next++;
    }
    return -1;
}

/* Of source i of the request. */
static gnnc_status best_of(gnnc_session *s, int64_t i, Candidates *c, Best *best) {
    const gnnc_pairs *in = &s->pairs.in;
    int64_t n_dst = c->l->rel->n_dst;
    int32_t edge;
    gnnc_status st;
    TRY(st, find_edge(s, in->kind ? in->kind[i] : 0, &edge));
    while (c->next < n_dst) {
        const float *pred;
        RtLinkBatch b;
        int32_t *given;
        int64_t room = n_dst - c->next < at_once(s) ? n_dst - c->next : at_once(s), n = 0, v;
        TRY(st, new_pairs(s, room, &b, &given));
        for (; n < room && (v = next_candidate(c)) >= 0; n++) {
            b.pairs.src[n] = (int32_t)in->src[i];
            b.pairs.dst[n] = (int32_t)v;
            b.pairs.row[n] = edge;
            given[n] = (int32_t)i;
        }
        if (n == 0) break;
        const int32_t *to = b.pairs.dst; /* which a batch that is drawn numbers anew */
        b.n = b.pairs.n = n;
        TRY(st, score(s, &b, &pred));
        for (int64_t k = 0; k < n; k++) offer(best, to[k], pred[k]);
    }
    finish(best);
out:
    return st;
}

gnnc_status rt_session_best(gnnc_session *s, int64_t k, bool with_known, int64_t *dst,
                            float *score) {
    const gnnc_pairs *in = &s->pairs.in;
    const RtLinks *l = &edges_of(s)->links;
    gnnc_status st = GNNC_OK;
    if (k < 1 || (in->n && (!dst || !score)))
        return rt_fail(&s->rt.err, GNNC_E_ARG, "the best %lld destinations, or no room for them",
                       (long long)k);
    for (int64_t i = 0; i < in->n; i++) {
        Candidates c = {.l = l,
                        .when = s->of->samples_neighbours ? edges_of(s)->when : NULL,
                        .time = s->pairs.time ? s->pairs.time[i] : 0,
                        .inclusive = s->of->t->program->sampling.inclusive};
        Best best = {.k = k, .dst = dst + i * k, .score = score + i * k};
        if (in->src[i] < 0 || in->src[i] >= l->rel->n_src)
            return rt_session_no_row(s, "source", in->src[i], l->rel->n_src);
        if (!with_known)
            rt_links_of(l, (int32_t)in->src[i], in->kind ? in->kind[i] : 0, &c.known, &c.end);
        TRY(st, best_of(s, i, &c, &best));
    }
out:
    return st;
}

gnnc_status gnnc_session_top_pairs(gnnc_session *s, const gnnc_pairs *pairs, int64_t k,
                                   int with_known, int64_t *dst, float *score) {
    if (!s || !pairs) return GNNC_E_ARG;
    gnnc_status st = read_pairs_on_graph(s, pairs);
    if (st == GNNC_OK) st = rt_session_best(s, k, with_known, dst, score);
    rt_session_pairs_end(s);
    return st;
}

gnnc_status gnnc_session_top_links(gnnc_session *s, int64_t n, const int64_t *src,
                                   const int64_t *kind, int64_t k, int with_known, int64_t *dst,
                                   float *score) {
    const gnnc_pairs p = {.struct_size = sizeof p, .n = n, .src = src, .kind = kind};
    if (n < 0 || k < 1 || (n && (!src || !dst || !score))) return GNNC_E_ARG;
    return gnnc_session_top_pairs(s, &p, k, with_known, dst, score);
}
