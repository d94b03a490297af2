/* Scores of pairs by themselves, and the best destinations of a source.
 *
 * A pair is bound as a held-out link of training is (link_batches.h), beside the whole graph.  What
 * the graph tells of its ends was computed by open (passes/serve_links.c), so that a score costs
 * what the model's last line does. */
#include <math.h>
#include <string.h>

#include "runtime/batch/link_impl.h"
#include "runtime/exec/device.h"
#include "session.h"

enum { BATCH = 4096 }; /* pairs that are scored at once */

/* ---- what sessions share -------- */
/* Is something of a pair read off an edge of the data? */
static bool reads_edges(const rt_program *p) {
    for (int c = 0; c < p->n_columns; c++)
        if (p->spaces[p->columns[c].space].drawn) return true;
    for (int m = 0; m < p->n_maps; m++)
        if (p->maps[m].kind == RT_MAP_ORIG && p->spaces[p->maps[m].from].drawn) return true;
    return false;
}

static gnnc_status find_kinds(RtServed *of) {
    const RtLinks *l = &of->t->links->links;
    RtServedKinds *k = &of->kinds;
    k->n = 1;
    for (int64_t e = 0; e < l->rel->n_edges; e++)
        if (l->kind[e] >= k->n) k->n = l->kind[e] + 1;
    k->edge = RT_NEWN(&of->t->rt.pool, int32_t, k->n);
    if (!k->edge) return rt_fail_nomem(&of->t->rt.err, "kinds of links");
    for (int64_t i = 0; i < k->n; i++) k->edge[i] = -1;
    for (int64_t e = l->rel->n_edges - 1; e >= 0; e--)
        if (l->kind[e] >= 0) k->edge[l->kind[e]] = (int32_t)e;
    return GNNC_OK;
}

gnnc_status rt_session_links_share(RtServed *of) {
    gnnc_status st;
    TRY(st, rt_link_batches_start(of->t));
    TRY(st, find_kinds(of));
    of->reads_edges = reads_edges(of->t->program);
out:
    return st;
}

/* ---- a batch of pairs -------- */
static gnnc_status find_edge(gnnc_session *s, int64_t kind, int32_t *edge) {
    const RtServedKinds *k = &s->of->kinds;
    *edge = kind < 0 || kind >= k->n ? -1 : k->edge[kind];
    if (*edge >= 0 || (kind >= 0 && !s->of->reads_edges)) return GNNC_OK;
    return rt_fail(&s->rt.err, GNNC_E_RANGE, "kind %lld: the data have no link of it",
                   (long long)kind);
}

static gnnc_status new_pairs(gnnc_session *s, int64_t n, RtDrawn *d) {
    RtPool *pool = rt_minibatch_begin(&s->m, &s->x, !s->ran);
    *d = (RtDrawn){.n = n};
    d->src = RT_NEWN(pool, int32_t, n + 1);
    d->dst = RT_NEWN(pool, int32_t, n + 1);
    d->row = d->orig = RT_NEWN(pool, int32_t, n + 1);
    return d->src && d->dst && d->row ? GNNC_OK : rt_fail_nomem(&s->rt.err, "a batch of links");
}

/* Scores of the pairs: valid until the next batch. */
static gnnc_status score(gnnc_session *s, const RtDrawn *d, const float **out) {
    const gnnc_trainer *t = s->of->t;
    RtLinkBatch links = {.n = d->n, .held_out = true, .pairs = *d};
    gnnc_status st;
    TRY(st, rt_minibatch_bind(&s->m, &s->x, NULL, &s->rt.err));
    TRY(st, rt_link_batches_bind(t, &s->m, &links, &s->rt.err));
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

static gnnc_status take_pairs(gnnc_session *s, int64_t n, const int64_t *src, const int64_t *dst,
                              const int64_t *kind, RtDrawn *d) {
    const RtRelation *r = s->of->t->links->links.rel;
    gnnc_status st;
    TRY(st, new_pairs(s, n, d));
    for (int64_t i = 0; i < n; i++) {
        if (src[i] < 0 || src[i] >= r->n_src)
            return rt_session_no_row(s, "source", src[i], r->n_src);
        if (dst[i] < 0 || dst[i] >= r->n_dst)
            return rt_session_no_row(s, "destination", dst[i], r->n_dst);
        d->src[i] = (int32_t)src[i];
        d->dst[i] = (int32_t)dst[i];
        TRY(st, find_edge(s, kind ? kind[i] : 0, &d->row[i]));
    }
out:
    return st;
}

gnnc_status gnnc_session_predict_links(gnnc_session *s, int64_t n, const int64_t *src,
                                       const int64_t *dst, const int64_t *kind, float *out) {
    if (!s || n < 0 || (n && (!src || !dst || !out))) return GNNC_E_ARG;
    gnnc_status st;
    TRY(st, rt_session_begin(s, true));
    for (int64_t from = 0; from < n; from += BATCH) {
        int64_t k = n - from < BATCH ? n - from : BATCH;
        const float *pred;
        RtDrawn d;
        TRY(st, take_pairs(s, k, src + from, dst + from, kind ? kind + from : NULL, &d));
        TRY(st, score(s, &d, &pred));
        memcpy(out + from, pred, (size_t)k * sizeof *out);
    }
out:
    return st;
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

static void swap(Best *b, int64_t i, int64_t j) {
    int64_t d = b->dst[i];
    float x = b->score[i];
    b->dst[i] = b->dst[j];
    b->score[i] = b->score[j];
    b->dst[j] = d;
    b->score[j] = x;
}

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
    int64_t known, end; /* its edges, by destination; none: all destinations are left */
    int64_t next;
} Candidates;

static int64_t next_candidate(Candidates *c) {
    for (; c->next < c->l->rel->n_dst; c->next++) {
        bool known = false;
        for (; c->known < c->end; c->known++) {
            int32_t e = c->l->by_query[c->known];
            if (c->l->rel->dst[e] > c->next) break;
            known |= c->l->rel->dst[e] == c->next && c->l->split[e] >= RT_SPLIT_TRAIN;
        }
        if (!known) return c->next++;
    }
    return -1;
}

static gnnc_status best_of(gnnc_session *s, int64_t src, int64_t kind, Candidates *c, Best *best) {
    int64_t n_dst = c->l->rel->n_dst;
    int32_t edge;
    gnnc_status st;
    TRY(st, find_edge(s, kind, &edge));
    while (c->next < n_dst) {
        const float *pred;
        RtDrawn d;
        int64_t room = n_dst - c->next < BATCH ? n_dst - c->next : BATCH, n = 0, v;
        TRY(st, new_pairs(s, room, &d));
        for (; n < room && (v = next_candidate(c)) >= 0; n++) {
            d.src[n] = (int32_t)src;
            d.dst[n] = (int32_t)v;
            d.row[n] = edge;
        }
        d.n = n;
        TRY(st, score(s, &d, &pred));
        for (int64_t i = 0; i < n; i++) offer(best, d.dst[i], pred[i]);
    }
    finish(best);
out:
    return st;
}

gnnc_status gnnc_session_top_links(gnnc_session *s, int64_t n, const int64_t *src,
                                   const int64_t *kind, int64_t k, int with_known, int64_t *dst,
                                   float *score) {
    if (!s || n < 0 || k < 1 || (n && (!src || !dst || !score))) return GNNC_E_ARG;
    gnnc_status st;
    TRY(st, rt_session_begin(s, true));
    const RtLinks *l = &s->of->t->links->links;
    for (int64_t i = 0; i < n; i++) {
        Candidates c = {.l = l};
        Best best = {.k = k, .dst = dst + i * k, .score = score + i * k};
        if (src[i] < 0 || src[i] >= l->rel->n_src)
            return rt_session_no_row(s, "source", src[i], l->rel->n_src);
        if (!with_known) rt_links_of(l, (int32_t)src[i], kind ? kind[i] : 0, &c.known, &c.end);
        TRY(st, best_of(s, src[i], kind ? kind[i] : 0, &c, &best));
    }
out:
    return st;
}
