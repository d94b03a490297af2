/* Judging links: "eval" runs over the pairs of a held-out split, all at once, or over its queries,
 * so many at a time.
 *
 * What is before a link by time depends on that time, so there is no view of the graph that is
 * right for all of them: "predict" runs over batches of pairs with the neighbours drawn for each
 * link, and "eval" judges what it gave of the whole split, its input "pred"; of queries, what it
 * gave of each with all nodes.  These neighbours depend on the link alone, so the size of batches
 * changes no result.
 *
 * Several processes share out (eval_shares.h) batches of queries, or of pairs that are scored;
 * pairs of the whole graph are one batch, which each makes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "link_impl.h"
#include "runtime/device/device.h"
#include "runtime/sample/sample_key.h"
#include "train_peers.h"

static gnnc_status nomem(gnnc_trainer *t) {
    return rt_fail_nomem(&t->rt.err, "held-out links");
}

/* ---- pairs of a split ------------------------------------------------------------------------ */
static int by_place(const void *a, const void *b) {
    const RtPlaced *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Edges as the data list them. */
static void in_order_of_data(RtPlaced *p, const RtRelation *r, int32_t *edge, int64_t n) {
    for (int64_t i = 0; i < n; i++) p[i] = (RtPlaced){r->id[edge[i]], edge[i]};
    qsort(p, (size_t)n, sizeof *p, by_place);
    for (int64_t i = 0; i < n; i++) edge[i] = p[i].edge;
}

/* Puts the pairs that the data list as negatives behind the positive ones. Each has the columns of
 * the link that it belongs to, or of any where there is none. */
static gnnc_status with_negatives(gnnc_trainer *t, const RtStepEdges *pos, const int32_t *none,
                                  int64_t m, RtPool *pool, RtStepEdges *out) {
    const RtLinkBatches *b = t->links;
    const RtRelation *r = &t->rt.bound->rel[b->no_links];
    int64_t n = pos->n;
    if (n > INT32_MAX - m)
        return rt_fail(&t->rt.err, GNNC_E_RANGE, "a step over more than 2^31 - 1 links");
    int32_t **part[] = {&out->src, &out->dst, &out->orig, &out->row};
    int32_t *const from[] = {pos->src, pos->dst, pos->orig, pos->row};
    *out = (RtStepEdges){.n = n + m};
    for (int i = 0; i < 4; i++) {
        if (!(*part[i] = RT_NEWN(pool, int32_t, n + m + 1))) return nomem(t);
        memcpy(*part[i], from[i], (size_t)n * sizeof **part[i]);
    }
    for (int64_t i = 0; i < m; i++) {
        out->src[n + i] = r->src[none[i]];
        out->dst[n + i] = r->dst[none[i]];
        out->orig[n + i] = out->row[n + i] = pos->row[b->when ? i : 0];
    }
    return GNNC_OK;
}

/* Edges of the relation of negatives that are in the split, in canonical order. */
static int64_t negatives_of_split(const gnnc_trainer *t, int split, int32_t *out) {
    const RtLinkBatches *b = t->links;
    int64_t n = 0;
    for (int64_t e = 0; e < t->rt.bound->rel[b->no_links].n_edges; e++) {
        if (b->no_split[e] != split) continue;
        if (out) out[n] = (int32_t)e;
        n++;
    }
    return n;
}

/* Puts the negatives of the split after the positive links: edges of the relation that the model
 * names for that, not drawn ones. */
static gnnc_status add_negatives_of_data(gnnc_trainer *t, int split, RtPool *pool,
                                         const RtStepEdges *pos, RtStepEdges *out) {
    const RtLinkBatches *b = t->links;
    const RtRelation *none = &t->rt.bound->rel[b->no_links];
    int64_t n = negatives_of_split(t, split, NULL);
    int32_t *edge = RT_NEWN(pool, int32_t, n + 1);
    if (!edge) return nomem(t);
    negatives_of_split(t, split, edge);
    if (b->when && n != pos->n)
        return rt_fail(
            &t->rt.err, GNNC_E_VALUE,
            "%s: %lld edges of '%s' and %lld of '%s' are in split %d: links by time have "
            "one negative each, that of the same place among them",
            t->rt.bound->dir, (long long)pos->n, t->program->spaces[b->base].name, (long long)n,
            t->program->spaces[b->no_links].name, split);
    if (b->when) in_order_of_data(b->scores.placed, none, edge, n);
    return with_negatives(t, pos, edge, n, pool, out);
}

static int64_t drawn_for_each(const gnnc_trainer *t) {
    int64_t k = t->program->sampling.negatives;
    return t->links->no_split ? 0 : k > 0 ? k : 1;
}

/* The device draws the negatives behind the first n pairs, and proves with option check_sampler
 * that they are those that the host has drawn. */
static gnnc_status draw_there(gnnc_trainer *t, RtPool *pool, int split, uint64_t key, int64_t n,
                              RtStepEdges *pairs) {
    const RtLinkBatches *b = t->links;
    const int64_t m = pairs->n - n;
    const size_t bytes = (size_t)m * sizeof(int32_t);
    int32_t *end[2] = {pairs->src + n, pairs->dst + n};
    for (int k = 0; t->options.check_sampler && k < 2; k++)
        if (!(end[k] = RT_NEWN(pool, int32_t, m + 1))) return nomem(t);
    gnnc_status st =
        rt_device_pairs_draw(b->negatives, key, b->held, n, end[0], end[1], &t->rt.err);
    if (st != GNNC_OK || !t->options.check_sampler) return st;
    if (!memcmp(end[0], pairs->src + n, bytes) && !memcmp(end[1], pairs->dst + n, bytes)) return st;
    return rt_fail(&t->rt.err, GNNC_E_ASSERT, "split %d: other negatives on the device", split);
}

/* The n edges of the split that are held, then pairs that are none: as many of each drawn, or those
 * that the data have, all of the split's, or of links by time one for each. */
static gnnc_status pairs_of_split(gnnc_trainer *t, int split, int64_t n, RtPool *pool,
                                  RtStepEdges *out) {
    RtLinkBatches *b = t->links;
    RtNegatives neg = {.k = drawn_for_each(t),
                       .drawn = rt_link_how_drawn(t, true),
                       .key = rt_draw_key(0, 0, (uint64_t)split, RT_DRAW_NEGATIVE),
                       .elsewhere = b->negatives && !t->options.check_sampler};
    RtStepEdges pos;
    gnnc_status st = rt_links_pairs(&b->links, pool, b->held, n, &neg, &pos, &t->rt.err);
    if (st == GNNC_OK && b->negatives) st = draw_there(t, pool, split, neg.key, n, &pos);
    if (st != GNNC_OK || !b->no_split) return *out = pos, st;
    return add_negatives_of_data(t, split, pool, &pos, out);
}

static bool judges_queries(const gnnc_trainer *t) {
    return t->program->sampling.eval_links == RT_LINKS_QUERIES;
}

/* So many queries that their scores against all destinations stay within RT_MOST_SCORES, and at
 * least one. */
static int64_t queries_at_once(const RtLinkBatches *b) {
    int64_t n_dst = b->links.rel->n_dst, n = n_dst ? RT_MOST_SCORES / n_dst : b->batch;
    if (n > b->batch) n = b->batch;
    return n < 1 ? 1 : n;
}

/* The most that are judged at once. */
static int64_t most_pairs(const gnnc_trainer *t) {
    const RtLinkBatches *b = t->links;
    int64_t most = 0;
    if (judges_queries(t)) return queries_at_once(b) * b->links.rel->n_dst;
    for (int split = RT_SPLIT_VAL; split <= RT_SPLIT_TEST; split++) {
        int64_t n = rt_link_batches_of_split(b, false, split, NULL);
        n += b->no_split ? negatives_of_split(t, split, NULL) : n * drawn_for_each(t);
        if (n > most) most = n;
    }
    return most;
}

/* Nodes that a query is asked about share its tree, so many at most. */
enum { MOST_CANDIDATES = 1024 };

/* The most links of a batch of them, and pairs with their negatives. */
static void most_of_batch(const gnnc_trainer *t, int64_t *links, int64_t *pairs) {
    const RtLinkBatches *b = t->links;
    int64_t k = b->no_split ? 1 : drawn_for_each(t); /* of fixed negatives, which have times */
    *links = b->batch;
    *pairs = b->batch * (1 + k);
    if (!judges_queries(t)) return;
    if (*links < MOST_CANDIDATES) *links = MOST_CANDIDATES;
    if (*pairs < MOST_CANDIDATES) *pairs = MOST_CANDIDATES;
}

/* ---- scores of links by time ----------------------------------------------------------------- */
static size_t score_bytes(const gnnc_trainer *t) {
    return (size_t)rt_type_bytes(t->program->bufs[t->links->scores.pred].dt);
}

/* Makes room for all scores of the largest split (s->all, which @eval reads as input `pred`), and
 * for the place of each scored edge in them (s->placed). Negatives that the data list are edges of
 * another relation, b->no_links. */
static gnnc_status make_room(gnnc_trainer *t) {
    RtLinkBatches *b = t->links;
    RtLinkScores *s = &b->scores;
    int64_t n = most_pairs(t), n_edges = b->links.rel->n_edges,
            n_none = b->no_split ? t->rt.bound->rel[b->no_links].n_edges : 0;
    s->placed = RT_NEWN(&t->rt.pool, RtPlaced, (n_none > n_edges ? n_none : n_edges) + 1);
    if (!s->placed) return nomem(t);
    if (s->judged < 0) return GNNC_OK; /* no metric reads them */
    if (!(s->all = rt_pool_alloc(&t->rt.pool, (size_t)n + 1, score_bytes(t)))) return nomem(t);
    b->eval.x.buf[s->judged] = s->all;
    return rt_device_rows(&t->x, s->judged, ((size_t)n + 1) * score_bytes(t));
}

gnnc_status rt_link_batches_set_sampler(gnnc_trainer *t, const RtSampleGraph *g,
                                        const RtSampleSpec *spec, const RtBatchMap *map,
                                        int n_members) {
    RtLinkScores *s = &t->links->scores;
    RtPool *pool = &t->rt.pool;
    RtBatch *batch;
    gnnc_status st = GNNC_OK;
    if (!rt_predicts_batches(t->program)) return st;
    s->map = map;
    s->pred = rt_buf_find(t->program, RT_BUF_OUTPUT, "pred");
    s->judged = rt_buf_find(t->program, RT_BUF_INPUT, "pred");
    TRY(st, rt_batch_step_init(&s->step, &t->x, t, RT_PHASE_PREDICT));
    TRY(st, make_room(t));
    TRY(st, rt_sampler_new(&s->sampler, &pool->from, g, spec, NULL, n_members, &t->rt.err));
    TRY(st, rt_sampler_batch(s->sampler, &batch, &t->rt.err));
    st = rt_minibatch_new(pool, &pool->from, &t->x, batch, &s->batch, &t->rt.err);
out:
    return st;
}

gnnc_status rt_link_negatives_draw_there(gnnc_trainer *t, const RtDeviceSampler *like) {
    RtLinkBatches *b = t->links;
    RtError *err = &t->rt.err;
    if (!b || b->no_split || t->program->sampling.eval_links != RT_LINKS_PAIRS) return GNNC_OK;
    const RtDrawnNegatives how = rt_link_how_drawn(t, true);
    gnnc_status st = rt_device_pairs_new(&b->negatives, &t->x, &b->links, b->base, &how,
                                         drawn_for_each(t), like);
    if (st != GNNC_E_NOMEM) return st;
    rt_message(&t->rt, "sampler: negatives of held-out links: %s; the host draws them", err->text);
    err->text[0] = '\0';
    return GNNC_OK;
}

gnnc_status rt_link_scores_draw_there(gnnc_trainer *t, const RtSampleGraph *g,
                                      const RtSampleSpec *spec, const int *space,
                                      const RtDeviceSampler *like) {
    RtLinkScores *s = t->links ? &t->links->scores : NULL;
    if (!s || !s->sampler) return GNNC_OK;
    RtDeviceSamplerSpec there = {
        .g = g, .space = space, .how = spec, .n_groups = 2, .n_slots = 1, .like = like};
    rt_link_batches_ends(t, s->map, there.type);
    most_of_batch(t, &there.n_trees, &there.n_seeds);
    gnnc_status st;
    TRY(st, rt_drawer_try(t, &there, s->sampler, "batches of links that are judged", &s->drawer));
    st = rt_drawer_bind(t, &s->drawer, s->map, "of links that are judged", &s->batch, 1);
out:
    return st;
}

void rt_link_scores_stop(RtLinkScores *s) {
    rt_minibatch_free(&s->batch);
    rt_sampler_free(s->sampler);
    rt_drawer_close(&s->drawer);
    rt_batch_step_free(&s->step);
}

/* Of n_all links with k negatives each, pair i of those of links [from, from + n): its place. */
static int64_t place_of(int64_t n_all, int64_t k, int64_t from, int64_t n, int64_t i) {
    return i < n ? from + i : n_all + from * k + (i - n);
}

/* Copies the pairs that belong to links [from, from + n): of `all`, which are n_all links with k
 * negatives each. *which: the place of each in `all`. */
static gnnc_status cut_out(gnnc_trainer *t, RtPool *pool, const RtStepEdges *all, int64_t n_all,
                           int64_t from, int64_t n, RtStepEdges *out, int32_t **which) {
    int64_t k = all->n / n_all - 1, m = n * (1 + k);
    int32_t **part[] = {&out->src, &out->dst, &out->orig, &out->row};
    int32_t *const of[] = {all->src, all->dst, all->orig, all->row};
    int32_t *at = *which = RT_NEWN(pool, int32_t, m + 1);
    *out = (RtStepEdges){.n = m};
    if (!at) return nomem(t);
    for (int64_t i = 0; i < m; i++) at[i] = (int32_t)place_of(n_all, k, from, n, i);
    for (int p = 0; p < 4; p++) {
        if (!(*part[p] = RT_NEWN(pool, int32_t, m + 1))) return nomem(t);
        for (int64_t i = 0; i < m; i++) (*part[p])[i] = of[p][at[i]];
    }
    return GNNC_OK;
}

/* Predicts the pairs of links [from, from + n) of n_all, around which neighbours are drawn. *which
 * [*n_pairs]: the place of each of them among all. */
static gnnc_status score_batch(gnnc_trainer *t, const RtStepEdges *all, int64_t n_all, int64_t from,
                               int64_t n, int32_t **which, int64_t *n_pairs) {
    RtLinkScores *s = &t->links->scores;
    RtMinibatch *m = &s->batch;
    RtError *err = &t->rt.err;
    RtSampleAt at = {0, 0, 0}; /* the same for all batches: links choose by their number */
    RtLinkBatch links = {.n = n, .held_out = true};
    RtLinkDrawer by = {.by = &s->drawer, .here = s->sampler};
    int32_t *places;
    gnnc_status st;
    RtPool *pool = rt_minibatch_begin(m, &t->x, !s->ran);
    rt_sampler_use(s->sampler, t->rt.team, t->x.threads);
    m->team = t->rt.team;
    TRY(st, cut_out(t, pool, all, n_all, from, n, &links.pairs, &places));
    TRY(st, rt_link_batches_draw_around(t->links, &by, &at, s->map, m, &links, err));
    TRY(st, rt_minibatch_bind(m, &t->x, s->map, err));
    TRY(st, rt_link_batches_bind(t->links, m, &links, err));
    st = rt_batch_step_run(&s->step, m, !s->ran);
    *which = places;
    *n_pairs = links.pairs.n;
out:
    return st;
}

/* Puts the scores of n pairs to the places `which`: on the device where @eval reads them, or on the
 * host at `home`. */
static gnnc_status keep(gnnc_trainer *t, void *home, const int32_t *which, int64_t n) {
    RtLinkScores *s = &t->links->scores;
    RtExec *x = &s->batch.x;
    size_t bytes = score_bytes(t);
    if (t->rt.device && home == s->all && !judges_queries(t))
        return rt_device_put_rows(x, s->pred, s->judged, bytes, which, 0, n);
    gnnc_status st = rt_device_batch_pull(x, s->pred);
    for (int64_t i = 0; i < n && st == GNNC_OK; i++)
        memcpy((char *)home + (size_t)which[i] * bytes, (char *)x->buf[s->pred] + (size_t)i * bytes,
               bytes);
    return st;
}

/* Batches of n links, at_once in each, whose scores go to `home`. */
typedef struct {
    const RtStepEdges *all; /* the links with their negatives */
    int64_t n, at_once;
    char *home;
} Scored;

static int64_t links_from(const Scored *s, int64_t from) {
    return s->n - from < s->at_once ? s->n - from : s->at_once;
}

static int maker_of(const gnnc_trainer *t, const Scored *s, int64_t from) {
    return rt_eval_maker(t, from / s->at_once, (s->n + s->at_once - 1) / s->at_once);
}

/* Copies scores of batches that a process makes into the message (or, `here`, out of it); m NULL:
 * no copy.  Their bytes. */
static size_t copy_made(const gnnc_trainer *t, const Scored *s, int rank, char *m, bool here) {
    size_t bytes = score_bytes(t), at = 0;
    int64_t k = s->n ? s->all->n / s->n - 1 : 0;
    for (int64_t from = 0; from < s->n; from += s->at_once) {
        int64_t n = links_from(s, from);
        if (maker_of(t, s, from) != rank) continue;
        for (int64_t i = 0; i < n * (1 + k); i++, at += bytes) {
            char *score = s->home + (size_t)place_of(s->n, k, from, n, i) * bytes;
            if (m) memcpy(here ? score : m + at, here ? m + at : score, bytes);
        }
    }
    return at;
}

/* All processes get the scores that each has made. */
static gnnc_status send_scores(gnnc_trainer *t, const Scored *s) {
    RtEvalMessage *m = &t->links->scores.message;
    gnnc_status st = GNNC_OK;
    for (int r = 0; r < t->processes.n; r++) {
        bool own = r == t->processes.rank;
        size_t n_bytes = copy_made(t, s, r, NULL, false);
        if (!n_bytes) continue;
        TRY(st, rt_eval_message(t, m, n_bytes));
        if (own) copy_made(t, s, r, m->p, false);
        TRY(st, rt_processes_broadcast(t, m->p, n_bytes, r));
        if (!own) copy_made(t, s, r, m->p, true);
    }
out:
    return st;
}

/* n links with their negatives, `at_once` links a batch. */
static gnnc_status score(gnnc_trainer *t, const RtStepEdges *all, int64_t n, int64_t at_once,
                         void *home) {
    RtLinkBatches *b = t->links;
    const Scored s = {all, n, at_once, home};
    bool shared = rt_eval_is_shared(t) && home == b->scores.all && !judges_queries(t);
    bool all_last = rt_eval_reads_last(t, b->scores.step.phase);
    gnnc_status st = GNNC_OK;
    for (int64_t from = 0; from < n && st == GNNC_OK; from += at_once) {
        int32_t *which;
        int64_t m, some = links_from(&s, from);
        bool made = maker_of(t, &s, from) == t->processes.rank || (all_last && from + some == n);
        if (shared && !made) continue;
        st = score_batch(t, all, n, from, some, &which, &m);
        for (int64_t i = 0; all->cell && i < m && st == GNNC_OK; i++)
            which[i] = all->cell[which[i]];
        if (st == GNNC_OK) st = keep(t, home, which, m);
    }
    if (st == GNNC_OK && shared) st = send_scores(t, &s);
    /* Takes room for the largest now, not in the next epoch. */
    rt_recycle_reset(&b->scores.batch.memory);
    b->scores.ran |= st == GNNC_OK;
    return st;
}

/* The n queries with the nodes from .. end - 1: as links with negatives, and the cells of all. */
static gnnc_status candidates(gnnc_trainer *t, RtPool *pool, const RtStepEdges *queries,
                              int64_t from, int64_t end, RtStepEdges *out) {
    int64_t n = queries->n, k = end - from - 1, n_dst = t->links->links.rel->n_dst;
    int32_t **part[] = {&out->src, &out->dst, &out->orig, &out->row, &out->cell};
    *out = (RtStepEdges){.n = n * (k + 1)};
    for (int i = 0; i < 5; i++)
        if (!(*part[i] = RT_NEWN(pool, int32_t, out->n + 1))) return nomem(t);
    for (int64_t q = 0; q < n; q++)
        for (int64_t v = from; v < end; v++) {
            int64_t i = v == from ? q : n + q * k + (v - from - 1);
            out->src[i] = queries->src[q];
            out->dst[i] = (int32_t)v;
            out->orig[i] = out->row[i] = queries->row[q];
            out->cell[i] = (int32_t)(q * n_dst + v);
        }
    return GNNC_OK;
}

/* Nodes that are not there yet are below all that are. */
static void leave_out(gnnc_trainer *t, const RtStepEdges *queries) {
    const RtLinkBatches *b = t->links;
    const double *since = rt_link_node_times(t, true);
    int64_t n_dst = b->links.rel->n_dst;
    for (int64_t q = 0; since && q < queries->n; q++)
        for (int64_t v = 0; v < n_dst; v++)
            if (!(since[v] <= b->when[queries->row[q]]))
                ((float *)b->scores.all)[q * n_dst + v] = -INFINITY;
}

/* Scores each query with each node, into s->all, where @eval reads them. */
static gnnc_status score_all(gnnc_trainer *t, RtPool *pool, const RtStepEdges *queries) {
    RtLinkBatches *b = t->links;
    RtLinkScores *s = &b->scores;
    int64_t n_dst = b->links.rel->n_dst;
    gnnc_status st = GNNC_OK;
    for (int64_t v = 0; v < n_dst && st == GNNC_OK; v += MOST_CANDIDATES) {
        int64_t end = n_dst - v < MOST_CANDIDATES ? n_dst : v + MOST_CANDIDATES, step;
        RtStepEdges all;
        step = MOST_CANDIDATES / (end - v);
        st = candidates(t, pool, queries, v, end, &all);
        if (st == GNNC_OK) st = score(t, &all, queries->n, step, s->all);
    }
    leave_out(t, queries);
    t->x.buf[s->judged] = s->all;
    rt_push(&t->x, s->judged);
    return st;
}

/* Scores every edge, in canonical order, into s->value. */
static gnnc_status predict(gnnc_trainer *t) {
    RtLinkBatches *b = t->links;
    RtLinkScores *s = &b->scores;
    int64_t n = b->links.rel->n_edges;
    RtNegatives none = {.k = 0};
    RtStepEdges all;
    RtPool *pool = rt_minibatch_begin(&b->eval, &t->x, false);
    gnnc_status st;
    if (!s->value) s->value = rt_pool_alloc(&t->rt.pool, (size_t)n + 1, score_bytes(t));
    if (!s->value) return nomem(t);
    for (int64_t e = 0; e < n; e++) b->held[e] = (int32_t)e;
    TRY(st, rt_links_pairs(&b->links, pool, b->held, n, &none, &all, &t->rt.err));
    st = score(t, &all, n, b->batch, s->value);
out:
    return st;
}

/* ---- evaluation ------------------------------------------------------------------------------ */
/* Each is as long as queries have answers, squared: what no metric reads is not made. */
static int lists_read(const RtLinkBatches *b) {
    return (b->part[RT_REL_KNOWN - RT_REL_LINKS] >= 0 ? RT_QUERY_KNOWN : 0) |
           (b->part[RT_REL_EARLIER - RT_REL_LINKS] >= 0 ? RT_QUERY_EARLIER : 0);
}

/* Makes the pairs of a batch of held-out links, with their negatives or the lists that rankings
 * read. */
static gnnc_status make_eval_batch(gnnc_trainer *t, RtPool *pool, int split, int64_t from,
                                   int64_t n, RtLinkBatch *out) {
    RtLinkBatches *b = t->links;
    RtError *err = &t->rt.err;
    *out = (RtLinkBatch){.n = n, .held_out = true};
    out->queries = judges_queries(t);
    if (!out->queries) return pairs_of_split(t, split, n, pool, &out->pairs);
    return rt_links_query(&b->links, pool, b->held + from, n, split, lists_read(b), &out->asked,
                          err);
}

/* Runs @eval over links or queries [from, from + n) of the held-out ones of a split. Links by time
 * are scored first, around neighbours that are drawn for them. */
static gnnc_status evaluate_batch(gnnc_trainer *t, int split, int64_t run, int64_t from,
                                  int64_t n) {
    RtLinkBatches *b = t->links;
    RtMinibatch *m = &b->eval;
    RtLinkScores *s = &b->scores;
    RtError *err = &t->rt.err;
    RtLinkBatch links;
    gnnc_status st;
    RtPool *pool = rt_minibatch_begin(m, &t->x, !b->evaluated);
    TRY(st, make_eval_batch(t, pool, split, from, n, &links));
    if (s->all && links.queries) TRY(st, score_all(t, pool, &links.asked.queries));
    if (s->all && !links.queries) TRY(st, score(t, &links.pairs, n, b->batch, s->all));
    TRY(st, rt_minibatch_bind(m, &t->x, s->map, err));
    TRY(st, rt_link_batches_bind(t->links, m, &links, err));
    TRY(st, rt_batch_step_run(&b->test, m, !b->evaluated));
    st = rt_batch_metrics_add(t, &b->metrics, split, run);
out:
    return st;
}

/* What is a number for all pairs takes them all at once. */
static int64_t held_at_once(const RtLinkBatches *b, rt_links_form form, int64_t n) {
    return form == RT_LINKS_QUERIES ? queries_at_once(b) : n;
}

/* How often @eval runs for a split. */
static int64_t runs_of_split(const gnnc_trainer *t, const RtLinkBatches *b, int split) {
    rt_links_form form = t->program->sampling.eval_links;
    int64_t n = rt_link_batches_of_split(b, form == RT_LINKS_QUERIES, split, NULL);
    int64_t batch = n ? held_at_once(b, form, n) : 1;
    return (n + batch - 1) / batch;
}

gnnc_status rt_link_batches_notes(gnnc_trainer *t, int64_t first, int64_t *n) {
    RtLinkBatches *b = t->links;
    int64_t val = runs_of_split(t, b, RT_SPLIT_VAL), test = runs_of_split(t, b, RT_SPLIT_TEST);
    gnnc_status st = rt_batch_metrics_init(t, &b->metrics, first, val > test ? val : test);
    *n = b->metrics.n_notes;
    return st;
}

/* Runs @encode once, and then @eval for both held-out splits, as many links or queries at a time as
 * fit. */
static gnnc_status evaluate(gnnc_trainer *t) {
    RtLinkBatches *b = t->links;
    rt_links_form form = t->program->sampling.eval_links;
    const rt_phase *encode =
        rt_phase_of(t->program, RT_PHASE_ENCODE); /* what is the same for all */
    bool all_last = rt_eval_reads_last(t, b->test.phase) ||
                    (b->scores.sampler && rt_eval_reads_last(t, b->scores.step.phase));
    gnnc_status st = GNNC_OK;
    if (form == RT_LINKS_NONE) return GNNC_OK;
    if (encode && (st = rt_bind_run_whole(&t->x, encode)) != GNNC_OK) return st;
    for (int split = RT_SPLIT_VAL; split <= RT_SPLIT_TEST && st == GNNC_OK; split++) {
        int64_t n = rt_link_batches_of_split(b, form == RT_LINKS_QUERIES, split, b->held);
        int64_t batch = held_at_once(b, form, n);
        if (b->when && form == RT_LINKS_PAIRS)
            in_order_of_data(b->scores.placed, b->links.rel, b->held, n);
        int64_t n_runs = n ? (n + batch - 1) / batch : 0;
        bool shared = rt_eval_is_shared(t) && form == RT_LINKS_QUERIES;
        rt_batch_metrics_begin(t, &b->metrics, split, shared ? n_runs : 0);
        for (int64_t run = 0, from = 0; from < n && st == GNNC_OK; run++, from += batch) {
            bool made = !shared || rt_eval_maker(t, run, n_runs) == t->processes.rank;
            if (made || (all_last && run == n_runs - 1))
                st = evaluate_batch(t, split, run, from, n - from < batch ? n - from : batch);
        }
        if (st == GNNC_OK) st = rt_batch_metrics_end(t, &b->metrics, split);
    }
    rt_recycle_reset(&b->eval.memory); /* takes room for the largest now, not in the next epoch */
    b->evaluated |= st == GNNC_OK;
    return st;
}

gnnc_status rt_link_batches_run(gnnc_trainer *t, const rt_phase *phase) {
    return (int)(phase - t->program->phases) == t->links->test.phase ? evaluate(t) : predict(t);
}

/* ---- what others ask ------------------------------------------------------------------------- */
const int64_t *rt_link_batches_sizes(const gnnc_trainer *t, const rt_phase *ph) {
    const RtLinkBatches *b = t->links;
    int phase = (int)(ph - t->program->phases);
    if (!b) return NULL;
    if (b->scores.sampler && phase == b->scores.step.phase) return b->scores.step.most;
    return phase == b->test.phase ? b->test.most : NULL;
}

const void *rt_link_batches_value(const gnnc_trainer *t, int buf, int64_t *n_rows) {
    const RtLinkBatches *b = t->links;
    if (!b || !b->scores.value || buf != b->scores.pred) return NULL;
    *n_rows = b->links.rel->n_edges;
    return b->scores.value;
}
