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
    t->lists.asked = e;
    return rt_task_rank(t, e->rows->leads);
}

gnnc_status rt_task_rank(RtTask *t, const RtTable *items) {
    if (t->how->history)
        return rt_fail(t->err, GNNC_E_ARG,
                       "--label-history: the answers of a task that ranks are lists");
    if (items->count < 2)
        return rt_fail(t->err, GNNC_E_RANGE, "task: '%s' has %lld rows: two at least can be ranked",
                       items->name, (long long)items->count);
    t->lists.of = items;
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

/* Adds the row whose list of n items was put behind all others. */
static gnnc_status end_list(RtTask *t, int64_t entity, double at, int part, int64_t n) {
    double many = (double)n;
    t->lists.end[t->rows.n] = t->lists.n;
    return rt_task_add(t, entity, at, &many, part);
}

gnnc_status rt_task_add_list(RtTask *t, int64_t entity, double at, int part) {
    RtTaskLists *l = &t->lists;
    int64_t n = rt_query_distinct(l->asked, entity, at, t->scratch);
    gnnc_status st = n ? make_room(t, n) : GNNC_OK;
    if (!n || st != GNNC_OK) return st;
    for (int64_t i = 0; i < n; i++) l->item[l->n++] = (int32_t)t->scratch[i];
    return end_list(t, entity, at, part, n);
}

gnnc_status rt_task_add_items(RtTask *t, int64_t entity, double at, int part, const int32_t *item,
                              int64_t n) {
    RtTaskLists *l = &t->lists;
    gnnc_status st = n ? make_room(t, n) : GNNC_OK;
    if (!n || st != GNNC_OK) return st;
    memcpy(l->item + l->n, item, (size_t)n * sizeof *item);
    l->n += n;
    return end_list(t, entity, at, part, n);
}
