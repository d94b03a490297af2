/* Names of a query become tables, columns and foreign keys; rows that are aggregated are put in the
 * order in which they are read: by entity, then by time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/data/encoder.h"
#include "runtime/data/near.h"
#include "query.h"

typedef struct {
    RtPool *pool;
    const RtQueryData *data;
    const RtDataset *d;
    const RtTable *entity;
    RtError *err;
} Bind;

/* ---- names ------------------------------------------------------------------------- */
/* Finds a name in a list, in any case of the letters where no other is meant; -1: none, -2:
 * several. */
static int find_name(const char *name, int n, const char *at(const void *, int), const void *list) {
    int found = -1;
    for (int i = 0; i < n; i++)
        if (strcmp(at(list, i), name) == 0) return i;
    for (int i = 0; i < n; i++)
        if (strcasecmp(at(list, i), name) == 0) found = found == -1 ? i : -2;
    return found;
}

static const char *table_name(const void *list, int i) {
    return ((const RtTable *)list)[i].name;
}

static const char *column_name(const void *list, int i) {
    return ((const RtColumn *)list)[i].name;
}

/* The end of a message about a wrong name. */
typedef struct {
    char text[100];
} Advice;

/* What it might have meant; if nothing is near, what there is to say of that. */
static Advice advice(const RtNear *near, const char *none) {
    Advice a;
    if (near->name)
        snprintf(a.text, sizeof a.text, "; did you mean '%.60s'?", near->name);
    else
        snprintf(a.text, sizeof a.text, "%s", none);
    return a;
}

/* Finds the table that the query names. */
static gnnc_status find_table(const RtDataset *d, const char *name, int at, const RtTable **out,
                              RtError *err) {
    RtNear near = rt_near_begin(name);
    int i = find_name(name, d->n_nodes, table_name, d->nodes);
    *out = i < 0 ? NULL : &d->nodes[i];
    if (*out) return GNNC_OK;
    for (int k = 0; k < d->n_nodes; k++) rt_near_tell(&near, d->nodes[k].name);
    return rt_fail(err, GNNC_E_MISSING, "query, character %d: there is no table '%.60s'%s", at,
                   name, advice(&near, "").text);
}

bool rt_query_is_key(const RtTable *edge, const char *column) {
    size_t n = strlen(column);
    for (const char *s = edge->key; s; s = strchr(s, ',')) {
        s += *s == ',';
        if (strcspn(s, ",") == n && strncasecmp(s, column, n) == 0) return true;
    }
    return false;
}

/* The foreign key of a table by one of its columns, or by its edge type's name. */
static const RtTable *find_key(const Bind *b, const RtTable *t, const char *name) {
    const RtTable *found = NULL;
    for (int i = 0; i < b->d->n_edges; i++) {
        const RtTable *e = &b->d->edges[i];
        if (&b->d->nodes[e->src_type] != t) continue;
        if (strcasecmp(e->name, name) == 0) return e;
        if (!found && rt_query_is_key(e, name)) found = e;
    }
    return found;
}

/* Tells the columns that foreign keys of a table have, and what these are called. */
static void tell_keys(const Bind *b, const RtTable *t, RtNear *near) {
    for (int i = 0; i < b->d->n_edges; i++) {
        const RtTable *e = &b->d->edges[i];
        if (&b->d->nodes[e->src_type] != t) continue;
        if (e->key && !strchr(e->key, ',')) rt_near_tell(near, e->key);
        rt_near_tell(near, e->name);
    }
}

/* The table that a value is of: the one it names, else `around`. */
static const RtTable *table_of_value(const Bind *b, const RtQueryExpr *e, const RtTable *around,
                                     gnnc_status *st) {
    const RtTable *t = around;
    *st =
        e->value.table ? find_table(b->d, e->value.table, e->value.table_at, &t, b->err) : GNNC_OK;
    return t;
}

gnnc_status rt_query_entity(const RtDataset *d, const RtQuery *q, const RtTable **entity,
                            RtError *err) {
    const RtQueryExpr *e = q->target;
    while (e->kind != RT_QUERY_VALUE) e = e->a;
    const char *name = q->entity ? q->entity : e->value.table;
    if (!q->entity && (rt_query_aggregates(q->target) || !name))
        return rt_fail(err, GNNC_E_FORMAT, "query: of what? FOR EACH TABLE is expected");
    return find_table(d, name, q->entity ? q->entity_at : e->value.table_at, entity, err);
}

/* ---- foreign keys ------------------------------------------------------------------- */
const int32_t *rt_query_refers(RtPool *pool, const RtDataset *d, const RtTable *edge) {
    int64_t n = d->nodes[edge->src_type].count;
    int32_t *to = RT_NEWN(pool, int32_t, n + 1);
    for (int64_t i = 0; to && i < n; i++) to[i] = -1;
    for (int64_t e = 0; to && e < edge->count; e++) to[edge->src[e]] = edge->dst[e];
    return to;
}

enum { MOST_STEPS = RT_QUERY_STEPS };
typedef struct {
    int n;
    const RtTable *edge[MOST_STEPS];
} Path;

/* ways[k * n_nodes + type]: how many ways of k foreign keys lead from the type to the entity, 2 for
 * more. */
static uint8_t *count_ways(const Bind *b) {
    int n = b->d->n_nodes;
    uint8_t *ways = RT_NEWN(b->pool, uint8_t, (MOST_STEPS + 1) * n + 1);
    if (!ways) return NULL;
    ways[b->entity - b->d->nodes] = 1;
    for (int k = 1; k <= MOST_STEPS; k++)
        for (int i = 0; i < b->d->n_edges; i++) {
            const RtTable *e = &b->d->edges[i];
            uint8_t *to = &ways[k * n + e->src_type], more = ways[(k - 1) * n + e->dst_type];
            *to = *to + more > 2 ? 2 : (uint8_t)(*to + more);
        }
    return ways;
}

/* How many ways of k keys begin at a table, with `first` unless it is NULL; *out: one of them. */
static int ways_from(const Bind *b, const uint8_t *ways, int type, const RtTable *first, int k,
                     Path *out) {
    int n_found = 0;
    *out = (Path){0};
    for (int left = k; left > 0; left--) {
        const RtTable *next = NULL;
        for (int i = 0; i < b->d->n_edges; i++) {
            const RtTable *e = &b->d->edges[i];
            int more = ways[(left - 1) * b->d->n_nodes + e->dst_type];
            bool other = left == k && first && e != first;
            if (e->src_type != type || !more || other) continue;
            if (left == k) n_found += more;
            if (!next) next = e;
        }
        if (!next) return 0;
        out->edge[out->n++] = next;
        type = next->dst_type;
    }
    return n_found;
}

/* The shortest way, of which there must be one. */
static gnnc_status find_path(const Bind *b, const RtQueryExpr *e, const RtTable *t, Path *out) {
    int n_found = 0;
    const char *via = e->value.via;
    const RtTable *first = via ? find_key(b, t, via) : NULL;
    const uint8_t *ways = count_ways(b);
    *out = (Path){0};
    if (!ways) return rt_fail_nomem(b->err, "query");
    if (t == b->entity && !via) return GNNC_OK;
    for (int k = 1; k <= MOST_STEPS && !n_found && (first || !via); k++)
        n_found = ways_from(b, ways, (int)(t - b->d->nodes), first, k, out);
    if (n_found == 1) return GNNC_OK;
    RtNear near = rt_near_begin(via ? via : "");
    if (via && !first) tell_keys(b, t, &near);
    if (!n_found)
        return rt_fail(b->err, GNNC_E_MISSING,
                       "query, character %d: no foreign key%s%.60s leads from '%s' to '%s'%s",
                       via ? e->value.via_at : e->value.table_at, via ? " called " : "",
                       via ? via : "", t->name, b->entity->name, advice(&near, "").text);
    return rt_fail(b->err, GNNC_E_FORMAT,
                   "query, character %d: several foreign keys lead from '%s' to '%s', '%s' among "
                   "them: COUNT(%s.* VIA KEY, ..) chooses",
                   e->value.table_at, t->name, b->entity->name, out->edge[0]->name, t->name);
}

/* The entity of each row of a table: -1, none. */
static const int32_t *owners(const Bind *b, const RtTable *t, const Path *way) {
    int32_t *to = RT_NEWN(b->pool, int32_t, t->count + 1);
    for (int64_t i = 0; to && i < t->count; i++) to[i] = (int32_t)i;
    for (int k = 0; to && k < way->n; k++) {
        const int32_t *step = rt_query_refers(b->pool, b->d, way->edge[k]);
        if (!step) return NULL;
        for (int64_t i = 0; i < t->count; i++)
            if (to[i] >= 0) to[i] = step[to[i]];
    }
    return to;
}

/* ---- columns ------------------------------------------------------------------------- */
/* The row that each row's key leads to, and of another key in that row; NULL: no memory. */
static const int32_t *refers_by(const Bind *b, const RtTable *key, const RtTable *further) {
    const int32_t *to = rt_query_refers(b->pool, b->d, key), *next;
    int64_t n = b->d->nodes[key->src_type].count;
    int32_t *both = further && to ? RT_NEWN(b->pool, int32_t, n + 1) : NULL;
    if (!further || !both) return further ? NULL : to;
    if (!(next = rt_query_refers(b->pool, b->d, further))) return NULL;
    for (int64_t i = 0; i < n; i++) both[i] = to[i] < 0 ? -1 : next[to[i]];
    return both;
}

/* Finds a foreign key of the table, or of the one table it refers to that has such a key. */
static gnnc_status find_keys(const Bind *b, const RtQueryExpr *e, RtQueryRows *r) {
    const RtTable *t = r->table, *key = find_key(b, t, e->value.column), *further = NULL;
    for (int i = 0; i < b->d->n_edges && (!key || further); i++) {
        const RtTable *one = &b->d->edges[i], *two;
        if (&b->d->nodes[one->src_type] != t || &b->d->nodes[one->dst_type] == t) continue;
        if (!(two = find_key(b, &b->d->nodes[one->dst_type], e->value.column))) continue;
        if (further)
            return rt_fail(b->err, GNNC_E_FORMAT,
                           "query, character %d: several tables that '%s' refers to have a foreign "
                           "key '%.60s'",
                           e->value.column_at, t->name, e->value.column);
        key = one;
        further = two;
    }
    if (!key) return GNNC_OK;
    r->key[r->n_keys++] = key;
    if (further) r->key[r->n_keys++] = further;
    r->leads = &b->d->nodes[r->key[r->n_keys - 1]->dst_type];
    r->refers = refers_by(b, key, further);
    return r->refers ? GNNC_OK : rt_fail_nomem(b->err, "query");
}

/* The error of a column that the table does not have. */
static gnnc_status no_column(const Bind *b, const RtQueryExpr *e, const RtTable *t) {
    RtNear near = rt_near_begin(e->value.column);
    for (int i = 0; i < t->n_columns; i++) rt_near_tell(&near, t->columns[i].name);
    tell_keys(b, t, &near);
    return rt_fail(
        b->err, GNNC_E_MISSING, "query, character %d: '%s' has no column '%.60s'%s",
        e->value.column_at, t->name, e->value.column,
        advice(&near, "; it was imported by another name, or is a key without references").text);
}

/* Finds the column that a value is of, or the reference; columns with several values per row have
 * none. */
static gnnc_status bind_column(const Bind *b, const RtQueryExpr *e, RtQueryRows *r) {
    const RtTable *t = r->table;
    int i = find_name(e->value.column, t->n_columns, column_name, t->columns);
    gnnc_status st = i < 0 ? find_keys(b, e, r) : GNNC_OK;
    if (st != GNNC_OK || r->refers) return st;
    if (i < 0) return no_column(b, e, t);
    r->column = &t->columns[i];
    const RtColumnKind *k = rt_column_kind(r->column->kind);
    if (k->layout != RT_LAYOUT_ROWS || r->column->rank != 1 || r->column->kind == RT_COL_MULTILABEL)
        return rt_fail(b->err, GNNC_E_FORMAT,
                       "query, character %d: '%s.%s' has several values a row", e->value.column_at,
                       t->name, r->column->name);
    if (r->column->kind == RT_COL_FLOAT) r->missing = rt_encoder_gaps(t, r->column);
    return GNNC_OK;
}

static bool is_number(const RtQueryRows *r) {
    return r->column && !r->column->names &&
           (r->column->kind == RT_COL_FLOAT || rt_column_has_codes(r->column));
}

/* Does the column fit the aggregate: numbers for sums, categories or references for lists? */
static gnnc_status check_aggregate(const Bind *b, const RtQueryExpr *e, const RtQueryRows *r) {
    RtAgg agg = e->value.agg;
    bool sums = agg == RT_AGG_SUM || agg == RT_AGG_AVG || agg == RT_AGG_MIN || agg == RT_AGG_MAX;
    if (sums && !is_number(r))
        return rt_fail(b->err, GNNC_E_FORMAT,
                       "query, character %d: '%s.%.60s' is no column of numbers",
                       e->value.column_at, r->table->name, e->value.column);
    if (agg == RT_AGG_LIST_DISTINCT && !r->refers && !(r->column && r->column->names))
        return rt_fail(
            b->err, GNNC_E_FORMAT,
            "query, character %d: '%s.%.60s' is neither a category nor a foreign key, of "
            "which lists are",
            e->value.column_at, r->table->name, e->value.column);
    return GNNC_OK;
}

/* ---- the rows of an aggregate ----------------------------------------------------------- */
typedef struct {
    int32_t owner, row;
    double time;
} Event;

/* Sorts events by the entity that they belong to, then by time. */
static int by_owner_and_time(const void *x, const void *y) {
    const Event *a = x, *b = y;
    if (a->owner != b->owner) return a->owner < b->owner ? -1 : 1;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Sorts the rows that meet the condition by entity and time, so that windows are found by
 * search. */
static gnnc_status sort_rows(const Bind *b, const RtQueryExpr *e, RtQueryRows *r,
                             const int32_t *owner, const double *time) {
    int64_t n = 0, n_rows = r->table->count;
    Event *v = RT_NEWN(b->pool, Event, n_rows + 1);
    int64_t *ptr = RT_NEWN(b->pool, int64_t, b->entity->count + 2);
    int32_t *row = RT_NEWN(b->pool, int32_t, n_rows + 1);
    double *when = RT_NEWN(b->pool, double, n_rows + 1), scratch = 0;
    if (!v || !ptr || !row || !when) return rt_fail_nomem(b->err, "query");
    for (int64_t i = 0; i < n_rows; i++) {
        bool wanted = owner[i] >= 0 && !isnan(time[i]);
        if (!wanted || (e->value.where && rt_query_test(e->value.where, i, 0, &scratch) != 1))
            continue;
        v[n++] = (Event){owner[i], (int32_t)i, time[i]};
        ptr[owner[i] + 1]++;
    }
    if (n) qsort(v, (size_t)n, sizeof *v, by_owner_and_time);
    for (int64_t i = 0; i < b->entity->count; i++) ptr[i + 1] += ptr[i];
    for (int64_t i = 0; i < n; i++) {
        row[i] = v[i].row;
        when[i] = v[i].time;
    }
    r->ptr = ptr;
    r->row = row;
    r->time = when;
    return GNNC_OK;
}

static gnnc_status bind_expr(const Bind *b, RtQueryExpr *e, const RtTable *around, bool inside);

/* Finds the rows that an aggregate is over, and the way from them to the entity. */
static gnnc_status bind_aggregate(const Bind *b, RtQueryExpr *e, RtQueryRows *r) {
    Path way;
    gnnc_status st;
    const RtColumn *time = b->data->time[r->table - b->d->nodes];
    TRY(st, check_aggregate(b, e, r));
    if (!time) {
        st =
            rt_fail(b->err, GNNC_E_FORMAT,
                    "query, character %d: rows of '%s' have no time, so that no window can be told",
                    e->value.table_at, r->table->name);
        goto out;
    }
    TRY(st, find_path(b, e, r->table, &way));
    r->n_way = way.n;
    for (int i = 0; i < way.n; i++) r->way[i] = way.edge[i];
    if (e->value.where) TRY(st, bind_expr(b, e->value.where, r->table, true));
    const int32_t *owner = owners(b, r->table, &way);
    st = owner ? sort_rows(b, e, r, owner, time->f64) : rt_fail_nomem(b->err, "query");
out:
    return st;
}

/* Finds the table, column and rows that a value is of. */
static gnnc_status bind_value(const Bind *b, RtQueryExpr *e, const RtTable *around, bool inside) {
    gnnc_status st;
    bool own = e->value.agg == RT_AGG_NONE;
    RtQueryRows *r = e->rows = RT_NEW(b->pool, RtQueryRows);
    if (!r) return rt_fail_nomem(b->err, "query");
    if (inside && !own)
        return rt_fail(b->err, GNNC_E_FORMAT,
                       "query, character %d: an aggregate inside of one; columns of '%s' are "
                       "expected",
                       e->at, around->name);
    r->table = table_of_value(b, e, around, &st);
    if (st != GNNC_OK) return st;
    if (own && r->table != around)
        return rt_fail(b->err, GNNC_E_FORMAT,
                       "query, character %d: a column of '%s' stands where one of '%s' is "
                       "expected, or COUNT, SUM, .. of it",
                       e->value.table_at, r->table->name, around->name);
    if (e->value.column && (st = bind_column(b, e, r)) != GNNC_OK) return st;
    return own ? check_aggregate(b, e, r) : bind_aggregate(b, e, r);
}

/* Binds a value. What a foreign key leads to can be counted and compared; by itself it is no
 * answer. */
static gnnc_status bind_answer(const Bind *b, RtQueryExpr *e, const RtTable *around, bool inside) {
    gnnc_status st = bind_value(b, e, around, inside);
    if (st != GNNC_OK || !e->rows->refers || !rt_query_keeps(e->value.agg)) return st;
    return rt_fail(b->err, GNNC_E_FORMAT,
                   "query, character %d: '%s.%.60s' is a foreign key: it can be counted and "
                   "compared only",
                   e->value.column_at, e->rows->table->name, e->value.column);
}

/* Finds the columns that the names in e mean. `around`: the table whose rows e is asked of;
 * `inside`: e is in the condition of an aggregate. */
static gnnc_status bind_expr(const Bind *b, RtQueryExpr *e, const RtTable *around, bool inside) {
    gnnc_status st;
    if (e->kind == RT_QUERY_VALUE) return bind_answer(b, e, around, inside);
    if (e->kind == RT_QUERY_TEST) {
        TRY(st, bind_value(b, e->a, around, inside));
        return rt_query_bind_test(b->pool, e, b->err);
    }
    TRY(st, bind_expr(b, e->a, around, inside));
    if (e->b) TRY(st, bind_expr(b, e->b, around, inside));
out:
    return st;
}

/* A column that FOR EACH names must be the table's own key: one that leads to another table would
 * ask about each of these, a column of values about each value, and rows are what is asked about.
 */
static gnnc_status check_key(const Bind *b, const RtQuery *q) {
    const RtTable *t = b->entity, *away;
    if (!q->key) return GNNC_OK;
    int i = find_name(q->key, t->n_columns, column_name, t->columns);
    if (i >= 0 && t->columns[i].kind == RT_COL_ID) return GNNC_OK;
    if ((away = find_key(b, t, q->key)))
        return rt_fail(b->err, GNNC_E_FORMAT,
                       "query, character %d: FOR EACH %.60s.%.60s: that leads to '%s'; FOR EACH %s "
                       "asks about each of these",
                       q->key_at, t->name, q->key, b->d->nodes[away->dst_type].name,
                       b->d->nodes[away->dst_type].name);
    if (i >= 0)
        return rt_fail(b->err, GNNC_E_FORMAT,
                       "query, character %d: FOR EACH %.60s.%.60s: that is no key of '%s'",
                       q->key_at, t->name, q->key, t->name);
    return GNNC_OK;
}

gnnc_status rt_query_bind(RtPool *pool, const RtQueryData *data, RtQuery *q, const RtTable **entity,
                          RtError *err) {
    Bind b = {.pool = pool, .data = data, .d = data->d, .err = err};
    gnnc_status st;
    TRY(st, rt_query_entity(data->d, q, entity, err));
    b.entity = *entity;
    TRY(st, check_key(&b, q));
    TRY(st, bind_expr(&b, q->target, b.entity, false));
    if (q->where) TRY(st, bind_expr(&b, q->where, b.entity, false));
    if (q->assuming) st = bind_expr(&b, q->assuming, b.entity, false);
out:
    return st;
}
