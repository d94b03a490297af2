/* Tasks whose lists a source gives, an element a row: the entity, the item, the time it is asked
 * at, the split, and the row of the source's file that the list stands in.  They are read as one
 * more table, whose keys are found, and refused, as everywhere.  Then the table goes, and the task
 * is made of its lists, as a query with RANK TOP makes it.
 *
 * Which rows tell of such pairs up to now is not said.  Those are taken that refer to both, by the
 * shortest way, and rather such as the SELECT that made the lists names; as a query would. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import_build.h"
#include "import_task_impl.h"

typedef struct {
    double time;
    int64_t row; /* of its file */
    int32_t entity, item;
    int8_t part;
} Link;

typedef struct {
    RtTask *task;
    const RtImport *how;
    RtTable table;    /* as it was read */
    RtTable edges[2]; /* its references */
    const RtTable *items;
    int32_t *entity, *item; /* [table.count] -1: none */
    const RtColumn *time, *split, *row;
    Link *v;
    int64_t n;
} Links;

/* ---- rows that tell ------------------------------------------------------------------------- */
/* A way from rows of a table to who asks, and by one or two keys to an item. */
typedef struct {
    const RtTable *first, *key[RT_QUERY_KEYS];
    int n_keys, n_way;
    bool named, said; /* the SELECT names the table; its key is called as the source's column */
} Way;

/* Whether a text has the name as a word, in any case of the letters. */
static bool has_word(const char *text, const char *name) {
    size_t n = strlen(name);
    for (const char *s = text; *s; s++) {
        bool begins = s == text || !(isalnum((unsigned char)s[-1]) || s[-1] == '_');
        bool ends = strnlen(s, n) == n && !(isalnum((unsigned char)s[n]) || s[n] == '_');
        size_t k = 0;
        while (begins && ends && k < n &&
               tolower((unsigned char)s[k]) == tolower((unsigned char)name[k]))
            k++;
        if (begins && ends && k == n) return true;
    }
    return false;
}

/* steps[type]: how many foreign keys lead from a node type to the entity, -1 none. */
static int *count_steps(const RtTask *t) {
    int *steps = RT_NEWN(t->pool, int, t->d->n_nodes + 1);
    if (!steps) return NULL;
    for (int i = 0; i < t->d->n_nodes; i++) steps[i] = -1;
    steps[t->entity - t->d->nodes] = 0;
    for (int k = 1; k < RT_QUERY_STEPS; k++)
        for (int i = 0; i < t->d->n_edges; i++) {
            const RtTable *e = &t->d->edges[i];
            if (steps[e->src_type] < 0 && steps[e->dst_type] == k - 1) steps[e->src_type] = k;
        }
    return steps;
}

/* Whether a is to be taken rather than b. */
static bool is_better(const Way *a, const Way *b) {
    int of_a = a->n_way + a->n_keys, of_b = b->n_way + b->n_keys;
    if (!b->first || a->named != b->named) return !b->first || a->named;
    return of_a != of_b ? of_a < of_b : a->said && !b->said;
}

/* Adds to *best what the keys to an item, and each other key to who asks, make. */
static void try_keys(const Links *x, const int *steps, Way way, Way *best) {
    const RtTask *t = x->task;
    for (int i = 0; i < t->d->n_edges; i++) {
        const RtTable *first = &t->d->edges[i];
        if (first->src_type != way.key[0]->src_type || first == way.key[0]) continue;
        if (steps[first->dst_type] < 0) continue;
        way.first = first;
        way.n_way = 1 + steps[first->dst_type];
        way.said = first->key && rt_query_is_key(first, x->how->source_task.links.entity);
        if (is_better(&way, best)) *best = way;
    }
}

/* Finds the best way, by tables that have a time. first NULL: there is none. */
static Way find_way(const Links *x, const int *steps) {
    const RtTask *t = x->task;
    const RtDataset *d = t->d;
    int items = (int)(x->items - d->nodes);
    Way best = {.first = NULL};
    for (int i = 0; i < d->n_edges; i++) {
        const RtTable *one = &d->edges[i], *of = &d->nodes[one->src_type];
        if (!t->row_time[one->src_type] || of == t->entity) continue;
        Way way = {.key = {one}, .n_keys = 1};
        way.named = has_word(x->how->source_task.links.sql, of->name);
        if (one->dst_type == items) try_keys(x, steps, way, &best);
        for (int k = 0; k < d->n_edges; k++) {
            const RtTable *two = &d->edges[k];
            if (two->src_type != one->dst_type || two->dst_type != items || two == one) continue;
            way.key[1] = two;
            way.n_keys = 2;
            try_keys(x, steps, way, &best);
        }
    }
    return best;
}

/* The question that lists the same items from the rows of a way; where these tell nothing that a
 * query can ask, t->lists.asked stays NULL. */
static gnnc_status ask_events(Links *x) {
    RtTask *t = x->task;
    const int *steps = count_steps(t);
    const RtTable *entity;
    RtError why = {""};
    RtQuery q = {.text = NULL};
    if (!steps) return rt_fail_nomem(t->err, "task");
    Way w = find_way(x, steps);
    t->q.top = x->how->source_task.links.top;
    if (!w.first) return GNNC_OK;
    const char *text = rt_pool_printf(
        t->pool,
        "LIST_DISTINCT(\"%s\".\"%s\" VIA \"%s\", 0, %.0f, seconds) RANK TOP %d FOR EACH \"%s\"",
        t->d->nodes[w.first->src_type].name, w.key[w.n_keys - 1]->name, w.first->name,
        x->how->source_task.links.window, t->q.top, t->entity->name);
    if (!text) return rt_fail_nomem(t->err, "task");
    const RtQueryData data = {t->d, t->row_time};
    gnnc_status st = rt_query_parse(t->pool, text, &q, &why);
    if (st == GNNC_OK) st = rt_query_bind(t->pool, &data, &q, &entity, &why);
    if (st == GNNC_E_NOMEM) return rt_fail_nomem(t->err, "task");
    if (st != GNNC_OK || q.target->rows->leads != x->items) return GNNC_OK;
    t->q = q;
    t->lists.asked = q.target;
    return GNNC_OK;
}

/* ---- links ------------------------------------------------------------------------------------
 */
static const char *const parts[] = {"", "train", "val", "test"};

static gnnc_status refuse(const Links *x, const Link *l, const char *why) {
    return rt_fail(x->task->err, GNNC_E_RANGE, "%s: %s.parquet: row %lld: %s",
                   x->how->source_task.name, parts[l->part], (long long)l->row, why);
}

/* The rows that references in a column of the table lead to. */
static gnnc_status find_ends(Links *x, const char *column, const RtTable **of, int32_t **to) {
    RtTask *t = x->task;
    const char *name = rt_identifier(t->pool, column, strlen(column));
    int64_t n = x->table.count;
    const RtTable *e = NULL;
    *to = RT_NEWN(t->pool, int32_t, n + 1);
    if (!*to || !name) return rt_fail_nomem(t->err, "task");
    for (int i = 0; i < 2; i++)
        if (x->edges[i].key && strcmp(x->edges[i].key, name) == 0) e = &x->edges[i];
    if (!e)
        return rt_fail(t->err, GNNC_E_MISSING, "%s: column '%.60s' leads to no table with a key",
                       x->how->source_task.name, column);
    for (int64_t i = 0; i < n; i++) (*to)[i] = -1;
    for (int64_t i = 0; i < e->count; i++) (*to)[e->src[i]] = e->dst[i];
    *of = &t->d->nodes[e->dst_type];
    return GNNC_OK;
}

/* Finds the columns that were read. */
static gnnc_status find_columns(Links *x) {
    x->time = rt_table_column(&x->table, "time");
    x->split = rt_table_column(&x->table, "split");
    x->row = rt_table_column(&x->table, "row");
    bool all = x->time && x->time->kind == RT_COL_TIME && x->split &&
               x->split->kind == RT_COL_SPLIT && x->row && x->row->kind == RT_COL_ID;
    if (all) return GNNC_OK;
    return rt_fail(x->task->err, GNNC_E_ARG,
                   "%s: columns 'time', 'split' and 'row' of its table stay as they are",
                   x->how->source_task.name);
}

/* Sorts links by time, entity, row and item. */
static int by_time(const void *p, const void *q) {
    const Link *a = p, *b = q;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    if (a->entity != b->entity) return a->entity < b->entity ? -1 : 1;
    if (a->part != b->part) return a->part < b->part ? -1 : 1;
    if (a->row != b->row) return a->row < b->row ? -1 : 1;
    return (a->item > b->item) - (a->item < b->item);
}

/* Takes the links whose item is there, in order. */
static gnnc_status take_links(Links *x) {
    x->v = RT_NEWN(x->task->pool, Link, x->table.count + 1);
    if (!x->v) return rt_fail_nomem(x->task->err, "task");
    for (int64_t i = 0; i < x->table.count; i++) {
        Link l = {x->time->f64[i], x->row->i64[i], x->entity[i], x->item[i], x->split->splits[i]};
        if (l.item < 0) continue; /* --dangling keep: it was told */
        if (l.entity < 0) return refuse(x, &l, "its entity is NULL, or the key of no row");
        if (isnan(l.time)) return refuse(x, &l, "it has no time");
        x->v[x->n++] = l;
    }
    if (x->n) qsort(x->v, (size_t)x->n, sizeof *x->v, by_time);
    return GNNC_OK;
}

/* Adds the list that begins at link i as a row of the task; *end: behind it. `item`: room for all
 * items.  *n_twice counts those that the list has already. */
static gnnc_status add_list(const Links *x, int64_t i, int32_t *item, int64_t *end,
                            int64_t *n_twice) {
    const Link *first = &x->v[i];
    int64_t n = 0;
    for (; i < x->n; i++) {
        const Link *l = &x->v[i];
        if (l->time != first->time || l->entity != first->entity) break;
        if (l->part != first->part || l->row != first->row) {
            char why[120];
            snprintf(why, sizeof why, "its entity is asked at its time twice: row %lld of %s does",
                     (long long)first->row, parts[first->part]);
            return refuse(x, l, why);
        }
        if (n && item[n - 1] == l->item)
            ++*n_twice;
        else
            item[n++] = l->item;
    }
    *end = i;
    return rt_task_add_items(x->task, first->entity, first->time, first->part, item, n);
}

/* Adds all lists. */
static gnnc_status add_lists(const Links *x) {
    int32_t *item = RT_NEWN(x->task->pool, int32_t, x->n + 1);
    int64_t n_twice = 0;
    gnnc_status st = item ? GNNC_OK : rt_fail_nomem(x->task->err, "task");
    for (int64_t i = 0; i < x->n && st == GNNC_OK;) st = add_list(x, i, item, &i, &n_twice);
    if (st == GNNC_OK && n_twice)
        rt_import_warn(x->how, "%s: %lld elements are in their list already and count once",
                       x->how->source_task.name, (long long)n_twice);
    return st;
}

/* ---- the task -------- */
/* Makes the task of the table that was read. */
static gnnc_status make(Links *x, const RtTaskOptions *options, RtTaskMade *made) {
    RtTask *t = x->task;
    const RtSourceTask *g = &x->how->source_task;
    const char *name = rt_identifier(t->pool, g->table, strlen(g->table));
    gnnc_status st;
    if (!name) return rt_fail_nomem(t->err, "task");
    rt_task_take_out(t->d, name, &x->table, x->edges, 2);
    TRY(st, rt_task_begin(t, t->pool, t->d, options, g->table, made, t->err));
    made->window = t->rows.window = g->links.window;
    made->of_future = true;
    made->val_time = g->val_time;
    made->test_time = g->test_time;
    TRY(st, find_columns(x));
    TRY(st, find_ends(x, g->links.entity, &t->entity, &x->entity));
    TRY(st, find_ends(x, g->links.item, &x->items, &x->item));
    TRY(st, rt_task_rank(t, x->items));
    TRY(st, rt_task_times(t));
    TRY(st, ask_events(x));
    t->why = rt_pool_printf(t->pool, "%s RANK TOP %d", g->name, g->links.top);
    if (!t->why) return rt_fail_nomem(t->err, "task");
    TRY(st, take_links(x));
    TRY(st, add_lists(x));
    st = rt_task_end(t);
out:
    return st;
}

gnnc_status rt_import_task_links(RtDataset *d, const RtTaskOptions *options, const RtImport *how,
                                 RtTaskMade *made, RtError *err) {
    RtPool pool;
    rt_pool_init(&pool, &d->pool.from);
    RtTask task = {.d = d, .pool = &pool, .how = options, .err = err};
    Links x = {.task = &task, .how = how};
    gnnc_status st = make(&x, options, made);
    rt_pool_free(&pool);
    return st;
}
