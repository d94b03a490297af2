#include "hot_rows.h"

enum { SCORES = 1 << 16 }; /* more edges count as so many less 1 */

/* How many edges that batches are drawn along go out of each row of a type. */
static int32_t *count_edges(RtPool *pool, const RtSampleGraph *g, int type, int64_t n) {
    int32_t *score = rt_pool_alloc(pool, (size_t)n + 256, sizeof *score);
    for (int r = 0; r < g->n_rels && score; r++)
        for (int64_t e = 0; g->rel[r].src_type == type && g->rel[r].src && e < g->rel[r].n_edges;
             e++) {
            int32_t *of = &score[g->rel[r].src[e]];
            *of += *of < SCORES - 1;
        }
    return score;
}

static bool may_be(const RtHotType *t, int64_t row) {
    return row < t->without_lo || row >= t->without_hi;
}

/* Lists a type's rows with at least `least` edges; of those that have no more only `equal`.  out
 * may be NULL. */
static int64_t list_rows(const RtHotType *t, const int32_t *score, int32_t least, int64_t *equal,
                         int32_t *out) {
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++) {
        if (!may_be(t, i) || score[i] < least || (score[i] == least && --*equal < 0)) continue;
        if (out) out[n] = (int32_t)i;
        n++;
    }
    return n;
}

/* Counts the edges of all rows: *score [n_types]; bytes [SCORES] of rows with so many. */
static gnnc_status count_all(RtPool *pool, const RtSampleGraph *g, const RtHotType *type,
                             int32_t **score, int64_t *bytes, RtError *err) {
    for (int k = 0; k < g->n_types; k++) {
        const RtHotType *t = &type[k];
        if (!t->n) continue;
        if (!(score[k] = count_edges(pool, g, k, t->n))) return rt_fail_nomem(err, "hot rows");
        for (int64_t i = 0; i < t->n; i++)
            if (may_be(t, i)) bytes[score[k][i]] += (int64_t)t->row_bytes;
    }
    return GNNC_OK;
}

gnnc_status rt_hot_rows_choose(gnnc_trainer *t, const RtSampleGraph *g, RtHotType *type,
                               int64_t room, const char *what, const char *advice) {
    RtPool *pool = &t->rt.pool;
    RtError *err = &t->rt.err;
    int64_t *bytes = RT_NEWN(pool, int64_t, SCORES), n = 0;
    int32_t **score = RT_NEWN(pool, int32_t *, g->n_types + 1);
    if (!bytes || !score) return rt_fail_nomem(err, "hot rows");
    for (int k = 0; k < g->n_types; k++) n += type[k].n ? type[k].n + 256 : 0;
    gnnc_status st = rt_trainer_may_take(t, (size_t)n * sizeof **score, what, advice);
    if (st == GNNC_OK) st = count_all(pool, g, type, score, bytes, err);
    int32_t least = SCORES;
    while (least > 1 && bytes[least - 1] <= room) room -= bytes[--least];
    least--; /* some of these have room; rows without edges are read as seeds alone */
    for (int k = 0; k < g->n_types && st == GNNC_OK; k++) {
        RtHotType *y = &type[k];
        if (!score[k]) continue;
        bool some = least > 0 && y->row_bytes > 0; /* rows without elements take no room */
        int64_t equal = some ? room / (int64_t)y->row_bytes : 0, left = equal;
        int64_t chosen = list_rows(y, score[k], least, &left, NULL);
        st = rt_trainer_may_take(t, (size_t)chosen * sizeof *y->row, what, advice);
        if (st == GNNC_OK && !(y->row = RT_NEWN(pool, int32_t, chosen + 1)))
            st = rt_fail_nomem(err, "hot rows");
        if (st != GNNC_OK) break;
        if (left > 0) equal -= left;
        room -= equal * (int64_t)y->row_bytes;
        list_rows(y, score[k], least, &equal, y->row);
        y->n_chosen = chosen;
    }
    for (int k = 0; k < g->n_types; k++) rt_pool_drop(pool, score[k]);
    rt_pool_drop(pool, score);
    rt_pool_drop(pool, bytes);
    return st;
}
