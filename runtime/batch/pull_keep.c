/* Rows of others that stay: of features that are pulled, those that batches read most often, as far
 * as the number of edges out of a row foresees it.  They come once, when batches are made ready;
 * which they are changes no result. */
#include "pull_impl.h"

#include "hot_rows.h"

#include <string.h>

static const char what_stays[] = "rows of others that stay",
                  less_stays[] = ": a smaller pull_cache needs less";

/* May so much be allocated, beside what there is? */
static gnnc_status may_take(gnnc_trainer *t, int64_t n_bytes) {
    return rt_trainer_may_take(t, (size_t)n_bytes, what_stays, less_stays);
}

/* Chooses the rows of others with most edges that have room in option pull_cache. */
static gnnc_status choose_kept(gnnc_trainer *t, const RtSampleGraph *g) {
    RtPulls *p = t->pulls;
    RtHotType *hot = RT_NEWN(&t->rt.pool, RtHotType, g->n_types + 1);
    if (!hot) return rt_fail_nomem(&t->rt.err, "rows of others");
    for (int k = 0; k < p->map.n_types; k++) {
        const RtPullType *y = &p->type[k];
        if (!y->bound || y->n_sparse) continue; /* rows of entries have no size that is known */
        hot[k] = (RtHotType){.n = y->bound[p->n],
                             .without_lo = y->bound[p->rank],
                             .without_hi = y->bound[p->rank + 1],
                             .row_bytes = y->row_bytes};
    }
    gnnc_status st = rt_hot_rows_choose(t, g, hot, t->options.pull_cache, what_stays, less_stays);
    for (int k = 0; k < p->map.n_types && st == GNNC_OK; k++) {
        p->type[k].kept = hot[k].row;
        p->type[k].n_chosen = hot[k].n_chosen;
    }
    rt_pool_drop(&t->rt.pool, hot);
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
        if (room < 0) room = 0;           /* one row was more than all the room */
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
