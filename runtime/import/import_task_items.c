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

/* ---- the edges -------------------------------------------------------------------------- */
/* The name of the edges from a task's rows to the items that are their answers. */
static const char *name_of_links(const RtTask *t) {
    bool own = t->lists.of == t->entity; /* their edges to the entity have the plain name */
    return rt_pool_printf(&t->d->pool, "%s__%s%s", t->made->table, t->lists.of->name,
                          own ? "_ranked" : "");
}

/* Adds a column to the table of links; NULL: no memory. */
static RtColumn *add_column(RtTask *t, RtTable *to, const char *name, rt_col_kind kind) {
    RtColumn *c = rt_table_add_column(&t->d->pool, to);
    if (!c) return NULL;
    *c = (RtColumn){.name = name, .kind = kind, .n_rows = to->count, .rank = 1};
    c->shape[0] = to->count;
    return c;
}

/* Gives each link the part and time of the row that asks; false: no memory. */
static bool put_columns(RtTask *t, RtTable *to) {
    RtPool *pool = &t->d->pool;
    RtColumn *split = add_column(t, to, "split", RT_COL_SPLIT);
    int8_t *part = RT_NEWN(pool, int8_t, to->count + 1);
    double *when = RT_NEWN(pool, double, to->count + 1);
    if (!split || !part || !when) return false;
    for (int64_t i = 0; i < to->count; i++) {
        part[i] = t->rows.part[to->src[i]];
        when[i] = t->rows.time[to->src[i]];
    }
    split->n_splits = 1;
    split->splits = part;
    RtColumn *time = add_column(t, to, "time", RT_COL_TIME);
    if (!time) return false;
    time->f64 = when;
    time->why = "when it is asked";
    to->time = time->name;
    to->time_why = time->why;
    return true;
}

/* Tells which rows, keys and events a ranking is about, for those who judge it in SQL. */
static void tell_ranks(RtTask *t, const char *links) {
    const RtQueryRows *r = t->lists.asked->rows;
    RtTaskRanks *to = &t->made->ranks;
    *to = (RtTaskRanks){.top = t->q.top, .links = links, .items = t->lists.of->name};
    to->event = r->table->name;
    to->n_way = r->n_way;
    to->n_keys = r->n_keys;
    for (int i = 0; i < r->n_way; i++) to->way[i] = r->way[i]->name;
    for (int i = 0; i < r->n_keys; i++) to->key[i] = r->key[i]->name;
}

gnnc_status rt_task_put_items(RtTask *t, RtTable *to) {
    const RtTaskLists *l = &t->lists;
    RtPool *pool = &t->d->pool;
    int32_t *src = RT_NEWN(pool, int32_t, l->n + 1), *dst = RT_NEWN(pool, int32_t, l->n + 1);
    const char *name = name_of_links(t);
    if (!src || !dst || !name) return rt_fail_nomem(t->err, "task");
    for (int64_t row = 0, i = 0; row < t->rows.n; row++)
        for (; i < l->end[row]; i++) {
            src[i] = (int32_t)row;
            dst[i] = l->item[i];
        }
    *to = (RtTable){.name = name, .count = l->n, .graph = -1, .src = src, .dst = dst};
    to->src_type = t->d->n_nodes; /* the task's, which comes last */
    to->dst_type = (int)(l->of - t->d->nodes);
    to->why = t->made->asked;
    if (!put_columns(t, to)) return rt_fail_nomem(t->err, "task");
    tell_ranks(t, name);
    return GNNC_OK;
}
