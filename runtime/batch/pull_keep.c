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

/* May so much be allocated, beside what there is? */
static gnnc_status may_take(gnnc_trainer *t, int64_t n_bytes) {
    size_t live = (size_t)rt_trainer_counters(t).live_bytes;
    return rt_memory_more(&t->x, &t->memory, (size_t)t->options.max_memory, live, (size_t)n_bytes,
                          "rows of others that stay", ": a smaller pull_cache needs less");
}

/* Counts the edges of all rows: *score [n_types]; bytes [SCORES] of others' rows with so many. */
static gnnc_status count_all(gnnc_trainer *t, const RtSampleGraph *g, int32_t **score,
                             int64_t *bytes) {
    const RtPulls *p = t->pulls;
    int64_t n = 0;
    for (int k = 0; k < p->map.n_types; k++)
        if (p->type[k].bound) n += p->type[k].bound[p->n] + 256;
    gnnc_status st = may_take(t, n * (int64_t)sizeof **score);
    if (st != GNNC_OK) return st;
    for (int k = 0; k < p->map.n_types; k++) {
        const int64_t *bound = p->type[k].bound;
        if (!bound) continue;
        if (!(score[k] = count_edges(t, g, k))) return rt_fail_nomem(&t->rt.err, "rows of others");
        for (int64_t i = 0; i < bound[p->n]; i++)
            if (i < bound[p->rank] || i >= bound[p->rank + 1])
                bytes[score[k][i]] += (int64_t)p->type[k].row_bytes;
    }
    return GNNC_OK;
}

/* Chooses the rows of others with most edges that have room in option pull_cache. */
static gnnc_status choose_kept(gnnc_trainer *t, const RtSampleGraph *g) {
    RtPulls *p = t->pulls;
    RtPool *pool = &t->rt.pool;
    int64_t room = t->options.pull_cache;
    int64_t *bytes = RT_NEWN(pool, int64_t, SCORES);
    int32_t **score = RT_NEWN(pool, int32_t *, p->map.n_types);
    if (!bytes || !score) return rt_fail_nomem(&t->rt.err, "rows of others");
    gnnc_status st = count_all(t, g, score, bytes);
    int32_t least = SCORES;
    while (least > 1 && bytes[least - 1] <= room) room -= bytes[--least];
    least--; /* some of these have room; rows without edges are read as seeds alone */
    for (int k = 0; k < p->map.n_types && st == GNNC_OK; k++) {
        RtPullType *y = &p->type[k];
        if (!score[k]) continue;
        bool some = least > 0 && y->row_bytes > 0; /* rows without elements take no room */
        int64_t equal = some ? room / (int64_t)y->row_bytes : 0, left = equal;
        int64_t n = list_rows(p, k, score[k], least, &left, NULL);
        TRY(st, may_take(t, n * (int64_t)sizeof *y->kept));
        int32_t *kept = RT_NEWN(pool, int32_t, n + 1);
        if (!kept) return rt_fail_nomem(&t->rt.err, "rows of others");
        if (left > 0) equal -= left;
        room -= equal * (int64_t)y->row_bytes;
        list_rows(p, k, score[k], least, &equal, kept);
        y->kept = kept;
        y->n_chosen = n;
    }
    for (int k = 0; k < p->map.n_types; k++) rt_pool_drop(pool, score[k]);
    rt_pool_drop(pool, score);
    rt_pool_drop(pool, bytes);
out:
    return st;
}

/* ---- they come, few enough at a time that messages take little memory ------------------- */
/* Bytes of rows that a process asks for at a time: all together ask no more than MOST of one. */
static int64_t bytes_at_once(const RtPulls *p) {
    enum { EACH = 4 << 20, MOST = 16 << 20 };
    return MOST / p->n < EACH ? MOST / p->n : EACH;
}

/* Room for the rows that stay, where there is room for the messages, too. */
static gnnc_status make_room(gnnc_trainer *t) {
    RtPulls *p = t->pulls;
    int64_t all = 0, own = 0, messages = bytes_at_once(p);
    for (int k = 0; k < p->map.n_types; k++) {
        const RtPullType *y = &p->type[k];
        all += y->n_chosen * (int64_t)y->row_bytes;
        if (y->bound) own += (y->bound[p->rank + 1] - y->bound[p->rank]) * (int64_t)y->row_bytes;
    }
    int64_t in = all < messages ? all : messages, out = own < messages ? own : messages;
    gnnc_status st = all ? may_take(t, all + in + (p->n - 1) * out) : GNNC_OK;
    for (int i = 0; i < p->n_columns && st == GNNC_OK; i++) {
        RtPullColumn *c = &p->column[i];
        int64_t n = p->type[c->type].n_chosen;
        c->kept = rt_pool_alloc(&t->rt.pool, (size_t)n + 1, c->row_bytes);
        if (!c->kept) return rt_fail_nomem(&t->rt.err, "rows of others");
    }
    return st;
}

/* Wants the next rows, at least one. */
static gnnc_status want_some(gnnc_trainer *t, RtPool *pool) {
    RtPulls *p = t->pulls;
    int64_t room = bytes_at_once(p);
    gnnc_status st = GNNC_OK;
    rt_pulls_begin(p, RT_PULL_STAY, 0);
    for (int k = 0; k < p->map.n_types && st == GNNC_OK; k++) {
        RtPullType *y = &p->type[k];
        int64_t n = y->n_chosen - y->n_kept, most = n;
        if (y->row_bytes && room / (int64_t)y->row_bytes < n) most = room / (int64_t)y->row_bytes;
        if (n && !most && room == bytes_at_once(p)) most = 1;
        room -= most * (int64_t)y->row_bytes;
        if (most < n) p->what.number = 1; /* more follow */
        if (most) st = rt_pulls_want(t, pool, k, most, y->kept + y->n_kept);
    }
    return st;
}

/* Puts those that came to those that are here. */
static void take_some(RtPulls *p) {
    for (int i = 0; i < p->n_columns; i++) {
        RtPullColumn *c = &p->column[i];
        const RtPullType *y = &p->type[c->type];
        for (int64_t k = 0; k < y->n; k++)
            memcpy(c->kept + (size_t)(y->n_kept + k) * c->row_bytes, rt_pulls_row(p, c, k),
                   c->row_bytes);
        rt_pulls_pass_over(p, c);
    }
    for (int k = 0; k < p->map.n_types; k++) p->type[k].n_kept += p->type[k].n;
}

gnnc_status rt_pulls_keep(gnnc_trainer *t, const RtSampleGraph *g) {
    RtPulls *p = t->pulls;
    RtPool some;
    gnnc_status st = GNNC_OK;
    if (t->options.pull_cache) TRY(st, choose_kept(t, g));
    TRY(st, make_room(t));
    do {
        rt_pool_init(&some, &t->rt.pool.from);
        st = want_some(t, &some);
        if (st == GNNC_OK) st = rt_pulls_end(t, rt_pulls_exchange(t));
        if (st == GNNC_OK) take_some(p);
        rt_pool_free(&some);
    } while (st == GNNC_OK && (p->what.number || p->others_go_on));
    rt_pulls_begin(p, RT_PULL_STAY, 0);
    rt_pulls_free_messages(p);
out:
    return st;
}
