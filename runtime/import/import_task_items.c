/* Tasks that rank: which rows of a table, the items, an entity will have to do with in a window.
 * Each row of the task is an entity at a time, and its answer is a list: edges to the items, which
 * have the row's time and part. */
#include <string.h>

#include "import_build.h"
#include "import_task_impl.h"

gnnc_status rt_task_find_items(RtTask *t) {
    const RtQueryExpr *e = t->q.target;
    bool list = e->kind == RT_QUERY_VALUE && e->value.agg == RT_AGG_LIST_DISTINCT;
    if (!list || !e->rows->leads)
        return rt_fail(t->err, GNNC_E_FORMAT,
                       "query, character %d: RANK TOP stands behind LIST_DISTINCT(TABLE.KEY, ..) "
                       "of a foreign key: what it leads to is ranked",
                       t->q.ranked_at);
    if (t->how->history)
        return rt_fail(t->err, GNNC_E_ARG, "--label-history: the answers of RANK TOP are lists");
    if (e->rows->leads->count < 2)
        return rt_fail(t->err, GNNC_E_RANGE,
                       "query, character %d: '%s' has %lld rows: two at least can be ranked", e->at,
                       e->rows->leads->name, (long long)e->rows->leads->count);
    t->lists.of = e->rows->leads;
    t->lists.asked = e;
    return GNNC_OK;
}

/* Room for so many more items, and for one more row. */
static gnnc_status make_room(RtTask *t, int64_t more) {
    RtTaskLists *l = &t->lists, old = *l;
    if (l->n + more > INT32_MAX)
        return rt_fail(t->err, GNNC_E_LIMIT, "query: more than 2^31 - 1 items in all lists");
    if (l->n + more > l->room) {
        l->room = 2 * (l->n + more) + 1024;
        if (!(l->item = RT_NEWN(t->pool, int32_t, l->room))) return rt_fail_nomem(t->err, "task");
        if (old.n) memcpy(l->item, old.item, (size_t)old.n * sizeof *l->item);
        rt_pool_drop(t->pool, old.item);
    }
    if (t->rows.n < l->room_rows) return GNNC_OK;
    l->room_rows = 2 * l->room_rows + 1024;
    if (!(l->end = RT_NEWN(t->pool, int64_t, l->room_rows))) return rt_fail_nomem(t->err, "task");
    if (t->rows.n) memcpy(l->end, old.end, (size_t)t->rows.n * sizeof *l->end);
    rt_pool_drop(t->pool, old.end);
    return GNNC_OK;
}

gnnc_status rt_task_add_list(RtTask *t, int64_t entity, double at, int part) {
    RtTaskLists *l = &t->lists;
    int64_t n = rt_query_distinct(l->asked, entity, at, t->scratch);
    double many = (double)n;
    gnnc_status st = n ? make_room(t, n) : GNNC_OK;
    if (!n || st != GNNC_OK) return st;
    for (int64_t i = 0; i < n; i++) l->item[l->n++] = (int32_t)t->scratch[i];
    l->end[t->rows.n] = l->n;
    return rt_task_add(t, entity, at, &many, part);
}
