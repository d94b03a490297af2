/* Rows of others that stay: of features that are pulled, those that batches read most often, as far
 * as the number of edges out of a row foresees it.  They come once, when batches are made ready;
 * which they are changes no result. */
#include "pull_impl.h"

#include <string.h>

enum { SCORES = 1 << 16 }; /* more edges count as so many less 1 */

/* How many edges that batches are drawn along go out of each row of a type. */
static int32_t *count_edges(gnnc_trainer *t, const RtSampleGraph *g, int type) {
    int64_t n = t->pulls->type[type].bound[t->pulls->n];
    int32_t *score = rt_pool_alloc(&t->rt.pool, (size_t)n + 256, sizeof *score);
    for (int r = 0; r < g->n_rels && score; r++)
        for (int64_t e = 0; g->rel[r].src_type == type && e < g->rel[r].n_edges; e++) {
            int32_t *of = &score[g->rel[r].src[e]];
            *of += *of < SCORES - 1;
        }
    return score;
}

/* Lists a type's rows of others with at least `least` edges; of those that have no more only
 * `equal`.  out may be NULL. */
static int64_t list_rows(const RtPulls *p, int type, const int32_t *score, int32_t least,
                         int64_t *equal, int32_t *out) {
    const int64_t *bound = p->type[type].bound;
    int64_t n = 0;
    for (int64_t i = 0; i < bound[p->n]; i++) {
        bool own = i >= bound[p->rank] && i < bound[p->rank + 1];
        if (own || score[i] < least || (score[i] == least && --*equal < 0)) continue;
        if (out) out[n] = (int32_t)i;
        n++;
    }
    return n;
}

/* Chooses the rows of others with most edges that have room in option pull_cache. */
static gnnc_status choose_kept(gnnc_trainer *t, const RtSampleGraph *g) {
    RtPulls *p = t->pulls;
    RtPool *pool = &t->rt.pool;
    int64_t room = t->options.pull_cache;
    int64_t *bytes = RT_NEWN(pool, int64_t, SCORES);
    int32_t **score = RT_NEWN(pool, int32_t *, p->map.n_types);
    if (!bytes || !score) return rt_fail_nomem(&t->rt.err, "rows of others");
    for (int k = 0; k < p->map.n_types; k++) {
        const int64_t *bound = p->type[k].bound;
        if (!bound) continue;
        if (!(score[k] = count_edges(t, g, k))) return rt_fail_nomem(&t->rt.err, "rows of others");
        for (int64_t i = 0; i < bound[p->n]; i++)
            if (i < bound[p->rank] || i >= bound[p->rank + 1])
                bytes[score[k][i]] += (int64_t)p->type[k].row_bytes;
    }
    int32_t least = SCORES;
    while (least > 1 && bytes[least - 1] <= room) room -= bytes[--least];
    least--; /* some of these have room; rows without edges are read as seeds alone */
    for (int k = 0; k < p->map.n_types; k++) {
        RtPullType *y = &p->type[k];
        if (!score[k]) continue;
        bool some = least > 0 && y->row_bytes > 0; /* rows without elements take no room */
        int64_t equal = some ? room / (int64_t)y->row_bytes : 0, left = equal;
        int64_t n = list_rows(p, k, score[k], least, &left, NULL);
        int32_t *kept = RT_NEWN(pool, int32_t, n + 1);
        if (!kept) return rt_fail_nomem(&t->rt.err, "rows of others");
        if (left > 0) equal -= left;
        room -= equal * (int64_t)y->row_bytes;
        list_rows(p, k, score[k], least, &equal, kept);
        rt_pool_drop(pool, score[k]);
        y->kept = kept;
        y->n_kept = n;
    }
    rt_pool_drop(pool, bytes);
    return GNNC_OK;
}

/* Room for the rows that stay, of the column. */
static gnnc_status keep_column(gnnc_trainer *t, RtPullColumn *c) {
    int64_t n = t->pulls->type[c->type].n_kept;
    size_t live = (size_t)rt_trainer_counters(t).live_bytes;
    gnnc_status st = rt_memory_more(&t->x, &t->memory, (size_t)t->options.max_memory, live,
                                    (size_t)n * c->row_bytes, "rows of others that stay",
                                    ": a smaller pull_cache needs less");
    if (st != GNNC_OK) return st;
    c->kept = rt_pool_alloc(&t->rt.pool, (size_t)n + 1, c->row_bytes);
    return c->kept ? GNNC_OK : rt_fail_nomem(&t->rt.err, "rows of others");
}

gnnc_status rt_pulls_keep(gnnc_trainer *t, const RtSampleGraph *g) {
    RtPulls *p = t->pulls;
    gnnc_status st = GNNC_OK;
    if (t->options.pull_cache) TRY(st, choose_kept(t, g));
    rt_pulls_begin(p);
    for (int k = 0; k < p->map.n_types; k++) {
        RtPullType *y = &p->type[k];
        int64_t n = y->n_kept;
        y->n_kept = 0; /* none is here yet */
        if (n) TRY(st, rt_pulls_want(t, &t->rt.pool, k, n, y->kept));
        y->n_kept = n;
    }
    TRY(st, rt_pulls_end(t, rt_pulls_exchange(t)));
    for (int i = 0; i < p->n_columns; i++) {
        RtPullColumn *c = &p->column[i];
        TRY(st, keep_column(t, c));
        for (int64_t k = 0; k < p->type[c->type].n; k++)
            memcpy(c->kept + (size_t)k * c->row_bytes, rt_pulls_row(p, c, k), c->row_bytes);
        rt_pulls_pass_over(p, c);
    }
    for (int k = 0; k < p->map.n_types; k++)
        if (p->type[k].n) rt_pool_drop(&t->rt.pool, p->type[k].place);
    rt_pulls_free_messages(p); /* as large as all rows that stay, here and where others keep them */
out:
    return st;
}
