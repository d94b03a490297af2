/* Rows to learn from as a table, with what each row knows beside its answer. */
#include <string.h>

#include "runtime/data/encoder.h"
#include "import_build.h"
#include "import_task_impl.h"

/* ---- what comes with the answer -------- */
/* Is it the column `of`, or the one that says where that is missing: made by the import, or given
 * by that name? */
static bool is_part_of(const RtColumn *c, const char *of) {
    size_t n = strlen(of);
    bool named = strncmp(c->name, of, n) == 0 && (!c->name[n] || !strcmp(c->name + n, "_missing"));
    return named || rt_encoder_tells_gaps(c, of);
}

typedef struct {
    const RtColumn *column;
    bool found;
} Sought;

/* Notes whether a value of the query is the column that is sought. */
static void see_column(void *user, const RtQueryExpr *e) {
    Sought *s = user;
    const RtColumn *c = e->value.agg == RT_AGG_NONE ? e->rows->column : NULL;
    if (c && is_part_of(s->column, c->name)) s->found = true;
}

/* Does the query predict this column? */
static bool is_target(const RtTask *t, const RtColumn *column) {
    Sought s = {column, false};
    rt_query_each(t->q.target, see_column, &s); /* NULL: there is no query */
    return s.found;
}

/* Is the column known only after the row (KNOWN AFTER)? */
static bool is_late(const RtTask *t, const RtColumn *column) {
    for (int i = 0; i < t->q.n_after; i++)
        if (is_part_of(column, t->q.after[i])) return true;
    return false;
}

static bool is_reference(const RtTask *t, const RtTable *edge) {
    return edge->key && &t->d->nodes[edge->src_type] == t->entity;
}

/* Any of its columns tells where it leads. */
static bool is_late_reference(const RtTask *t, const RtTable *edge) {
    bool late = false;
    for (int i = 0; i < t->q.n_after && !late; i++) late = rt_query_is_key(edge, t->q.after[i]);
    return is_reference(t, edge) && late;
}

typedef struct {
    const RtTable *edge;
    bool found;
} SoughtKey;

/* Notes whether a value of the query is the reference that is sought. */
static void see_key(void *user, const RtQueryExpr *e) {
    SoughtKey *s = user;
    bool own = e->value.agg == RT_AGG_NONE && e->rows->refers;
    if (own && rt_query_is_key(s->edge, e->value.column)) s->found = true;
}

/* Does the query predict where the reference leads, or what tells of it? */
static bool is_target_reference(const RtTask *t, const RtTable *edge) {
    SoughtKey s = {edge, false};
    if (is_reference(t, edge)) rt_query_each(t->q.target, see_key, &s);
    return s.found;
}

/* Rows are asked at their own time.  Without it everybody would read all of them, whenever. */
static gnnc_status check_row_time(const RtTask *t) {
    const RtColumn *time = t->row_time[t->entity - t->d->nodes];
    if (!time || (!is_late(t, time) && !is_target(t, time))) return GNNC_OK;
    return rt_fail(
        t->err, GNNC_E_ARG,
        "query: rows of '%s' are asked about at '%s', which so is known: --row-time names "
        "another time, or %s=none",
        t->entity->name, time->name, t->entity->name);
}

gnnc_status rt_task_check_after(const RtTask *t) {
    for (int i = 0; i < t->q.n_after; i++) {
        const char *name = t->q.after[i];
        bool found = rt_table_column(t->entity, name);
        for (int k = 0; k < t->d->n_edges && !found; k++)
            found = is_reference(t, &t->d->edges[k]) && rt_query_is_key(&t->d->edges[k], name);
        if (!found)
            return rt_fail(t->err, GNNC_E_MISSING,
                           "query, character %d: '%s' has no column '%.60s'", t->q.after_at[i],
                           t->entity->name, name);
    }
    return t->of_column ? check_row_time(t) : GNNC_OK;
}

/* ---- the table ------------------------------------------------------------------------------ */
/* Adds a column to the task's table; NULL: no memory. */
static RtColumn *add_column(RtTask *t, RtTable *to, const char *name, rt_col_kind kind) {
    RtColumn *c = rt_table_add_column(&t->d->pool, to);
    if (!c) return NULL;
    *c = (RtColumn){.name = name, .kind = kind, .n_rows = to->count, .rank = 1};
    c->shape[0] = to->count;
    return c;
}

const char *const rt_task_no_yes[] = {"no", "yes"};

/* Blanks and line ends become one blank each. */
static const char *on_one_line(RtPool *pool, const char *text) {
    char *line = rt_pool_strndup(pool, text, strlen(text));
    size_t n = 0;
    for (const char *s = text; line && *s; s++) {
        bool blank = strchr(" \t\r\n", *s);
        if (!blank || (n && line[n - 1] != ' ')) line[n++] = blank ? ' ' : *s;
    }
    if (line) line[n] = 0;
    return line;
}

/* Adds the answers as column y; a ranking has links for that. False: no memory. */
static bool put_answers(RtTask *t, RtTable *to) {
    const RtTaskRows *r = &t->rows;
    t->made->asked = on_one_line(&t->d->pool, t->why);
    if (t->lists.of) return t->made->asked;
    bool class = r->n_classes > 0 && !r->n_labels;
    int64_t n = r->n * rt_task_width(r);
    RtColumn *y = add_column(t, to, "y",
                             r->n_labels ? RT_COL_MULTILABEL
                             : class     ? RT_COL_CLASS
                                         : RT_COL_FLOAT);
    int32_t *codes = class ? RT_NEWN(&t->d->pool, int32_t, n) : NULL;
    float *numbers = class ? NULL : RT_NEWN(&t->d->pool, float, n);
    if (!y || (class ? !codes : !numbers)) return false;
    if (r->n_labels) y->rank = 2, y->shape[1] = r->n_labels;
    y->n_categories = class ? r->n_classes : 0;
    y->names = class ? t->classes : NULL;
    y->why = t->made->asked;
    for (int64_t i = 0; i < n && class; i++) codes[i] = (int32_t)r->answer[i];
    for (int64_t i = 0; i < n && !class; i++) numbers[i] = (float)r->answer[i];
    if (class)
        y->i32 = codes;
    else
        y->f32 = numbers;
    return y->why != NULL;
}

/* Adds the split, and the time that each row is asked at; false: no memory. */
static bool put_parts(RtTask *t, RtTable *to) {
    const RtTaskRows *r = &t->rows;
    RtColumn *split = add_column(t, to, "split", RT_COL_SPLIT);
    int8_t *parts = RT_NEWN(&t->d->pool, int8_t, r->n);
    if (!split || !parts) return false;
    memcpy(parts, r->part, (size_t)r->n);
    split->n_splits = 1;
    split->splits = parts;
    for (int64_t i = 0; i < r->n; i++) t->made->n[parts[i]]++;
    if (!r->time) return true;
    RtColumn *time = add_column(t, to, "time", RT_COL_TIME);
    double *times = RT_NEWN(&t->d->pool, double, r->n);
    if (!time || !times) return false;
    memcpy(times, r->time, (size_t)r->n * sizeof *times);
    time->f64 = times;
    time->why = t->of_column ? "the row's own" : "when it is asked";
    to->time = time->name;
    to->time_why = time->why;
    return true;
}

/* A column's name in the task's table, where `y`, `split` and `time` are its own. */
static const char *name_beside(RtTask *t, const RtTable *to, const char *name) {
    while (name && rt_table_column(to, name)) name = rt_pool_printf(&t->d->pool, "%s_", name);
    return name;
}

/* Gives the copy of a column an encoder of its own, which is fitted to the task's rows. */
static gnnc_status put_encoder(RtTask *t, const RtColumn *of, RtColumn *copy) {
    RtEncoder *e = of->encoder ? RT_NEW(&t->d->pool, RtEncoder) : NULL;
    if (of->encoder && !e) return rt_fail_nomem(t->err, "task");
    if (e) *e = *of->encoder;
    copy->encoder = e;
    return GNNC_OK;
}

/* Copies what else the row of the entities' table says, but what comes with the answer or later. */
static gnnc_status put_columns(RtTask *t, RtTable *to) {
    const RtColumn *time = t->row_time[t->entity - t->d->nodes];
    for (int i = 0; i < t->entity->n_columns; i++) {
        const RtColumn *c = &t->entity->columns[i];
        if (c == time || c->kind == RT_COL_SPLIT || is_target(t, c) || is_late(t, c)) continue;
        const char *name = name_beside(t, to, c->name);
        RtColumn *copy = name ? rt_table_add_column(&t->d->pool, to) : NULL;
        if (!copy) return rt_fail_nomem(t->err, "task");
        gnnc_status st = rt_column_take(&t->d->pool, c, t->rows.entity, t->rows.n, copy, t->err);
        if (st != GNNC_OK) return st;
        copy->name = name;
        if ((st = put_encoder(t, c, copy)) != GNNC_OK) return st;
    }
    return GNNC_OK;
}

/* ---- edges -------- */
/* Makes an edge type from the task's rows to the entities (to NULL), or to the rows these refer
 * to. */
static gnnc_status put_edge(RtTask *t, const char *key, int to_type, const int32_t *to,
                            RtTable *table) {
    RtPool *pool = &t->d->pool;
    int64_t n = 0;
    int32_t *src = RT_NEWN(pool, int32_t, t->rows.n), *dst = RT_NEWN(pool, int32_t, t->rows.n);
    char *name = rt_pool_printf(pool, "%s__%s", t->made->table, key);
    if (!src || !dst || !name) return rt_fail_nomem(t->err, "task");
    for (int64_t i = 0; i < t->rows.n; i++) {
        int32_t end = to ? to[t->rows.entity[i]] : t->rows.entity[i];
        if (end < 0) continue;
        src[n] = (int32_t)i;
        dst[n++] = end;
    }
    *table = (RtTable){.name = name, .count = n, .graph = -1, .src = src, .dst = dst};
    table->src_type = t->d->n_nodes; /* the task's, which comes last */
    table->dst_type = to_type;
    table->why = "the task's";
    return GNNC_OK;
}

/* "userId" of "ratings__userId": the task's edge type is called so behind its own name. */
static const char *name_of_key(const RtTask *t, const RtTable *edge) {
    const char *behind = strstr(edge->name, "__");
    return behind ? behind + 2 : rt_pool_printf(&t->d->pool, "%s", edge->name);
}

enum { MOST_KEYS = 8 };

/* Foreign keys that the task's rows have, too; of the future, only the entity. */
static gnnc_status put_edges(RtTask *t, RtTable *to, int *n, RtTaskKey *keys, int *n_keys) {
    int entity = (int)(t->entity - t->d->nodes);
    gnnc_status st;
    if (!t->of_column) {
        keys[(*n_keys)++] = (RtTaskKey){t->entity->name, t->rows.entity, t->entity->count};
        return put_edge(t, t->entity->name, entity, NULL, &to[(*n)++]);
    }
    for (int i = 0; i < t->d->n_edges; i++) {
        const RtTable *e = &t->d->edges[i];
        if (!is_reference(t, e) || is_late_reference(t, e) || is_target_reference(t, e)) continue;
        const char *key = name_of_key(t, e);
        if (!key) return rt_fail_nomem(t->err, "task");
        const int32_t *refers = rt_query_refers(t->pool, t->d, e);
        int32_t *of = RT_NEWN(t->pool, int32_t, t->rows.n + 1);
        if (!refers || !of) return rt_fail_nomem(t->err, "task");
        for (int64_t r = 0; r < t->rows.n; r++) of[r] = refers[t->rows.entity[r]];
        if (*n_keys < MOST_KEYS)
            keys[(*n_keys)++] = (RtTaskKey){key, of, t->d->nodes[e->dst_type].count};
        TRY(st, put_edge(t, key, e->dst_type, refers, &to[(*n)++]));
    }
    st = GNNC_OK;
out:
    return st;
}

/* Takes columns out of the entity's table that would tell the answer: those that are known only
 * after the row, and, in a task without times, the target itself. */
static void drop_leaking_columns(RtTask *t) {
    RtTable *e = &t->d->nodes[t->entity - t->d->nodes];
    bool dated = t->rows.time != NULL;
    int n = 0;
    if (!t->of_column) return;
    for (int i = 0; i < e->n_columns; i++) {
        const RtColumn *c = &e->columns[i];
        if (is_late(t, c) || (!dated && is_target(t, c))) continue;
        e->columns[n++] = e->columns[i];
    }
    e->n_columns = n;
}

/* Takes out edges that would tell the answer of a task about a column. */
static void drop_edges(RtTask *t, RtTable *edges, int *n) {
    int kept = 0;
    for (int i = 0; i < *n; i++) {
        bool goes =
            is_late_reference(t, &edges[i]) || (!t->rows.time && is_target_reference(t, &edges[i]));
        if (t->of_column && goes) continue;
        edges[kept++] = edges[i];
    }
    *n = kept;
}

/* Adds the task's table to the data, with its edges, and what simple guesses reach. */
static gnnc_status put_table(RtTask *t) {
    RtDataset *d = t->d;
    RtTable *nodes = RT_NEWN(&d->pool, RtTable, d->n_nodes + 2);
    RtTable *edges = RT_NEWN(&d->pool, RtTable, 2 * d->n_edges + 3), history = {0};
    RtTaskKey keys[MOST_KEYS];
    int n_edges = d->n_edges, n_keys = 0;
    gnnc_status st;
    if (!nodes || !edges) return rt_fail_nomem(t->err, "task");
    if (n_edges) memcpy(edges, d->edges, (size_t)n_edges * sizeof *edges);
    RtTable to = {.name = t->made->table, .count = t->rows.n, .graph = -1};
    to.src_type = to.dst_type = -1;
    if (!put_answers(t, &to) || !put_parts(t, &to)) return rt_fail_nomem(t->err, "task");
    if (t->of_column) TRY(st, put_columns(t, &to));
    TRY(st, put_edges(t, edges, &n_edges, keys, &n_keys));
    RtColumn *learned = &to.columns[0];
    if (t->lists.of) {
        TRY(st, rt_task_guess_items(t));
        TRY(st, rt_task_put_items(t, &edges[n_edges]));
        learned = &edges[n_edges++].columns[0];
    } else {
        TRY(st, rt_task_guess(t->pool, &d->pool, &t->rows, keys, n_keys, t->made, t->err));
    }
    learned->baselines = t->made->baselines;
    learned->n_baselines = t->made->n_baselines;
    if (t->how->history) TRY(st, rt_task_history(t, &history, &edges[n_edges++]));
    drop_edges(t, edges, &n_edges);
    drop_leaking_columns(t);
    memcpy(nodes, d->nodes, (size_t)d->n_nodes * sizeof *nodes);
    nodes[d->n_nodes++] = to;
    if (t->how->history) nodes[d->n_nodes++] = history;
    d->nodes = nodes;
    d->edges = edges;
    d->n_edges = n_edges;
out:
    return st;
}

/* Has each part a row? */
static gnnc_status check_parts(const RtTask *t) {
    static const char *const part[] = {"", "to learn from", "to choose by", "to judge on"};
    int64_t n[4] = {0};
    for (int64_t i = 0; i < t->rows.n; i++) n[t->rows.part[i]]++;
    for (int k = 1; k < 4; k++)
        if (!n[k])
            return rt_fail(t->err, GNNC_E_RANGE,
                           "task: of %lld rows with an answer none is left %s; --val-time and "
                           "--test-time say from when on",
                           (long long)t->rows.n, part[k]);
    return GNNC_OK;
}

gnnc_status rt_task_end(RtTask *t) {
    gnnc_status st = check_parts(t);
    return st == GNNC_OK ? put_table(t) : st;
}

/* ---- rows -------- */
/* Makes room for another row. */
static gnnc_status grow(RtTask *t) {
    RtTaskRows *r = &t->rows, old = *r;
    if (r->n < t->room && r->n < INT32_MAX) return GNNC_OK;
    t->room = t->room ? 2 * t->room : 1024;
    if (r->n == INT32_MAX)
        return rt_fail(t->err, GNNC_E_LIMIT, "query: more than 2^31 - 1 rows to learn from");
    r->entity = RT_NEWN(t->pool, int32_t, t->room);
    r->time = RT_NEWN(t->pool, double, t->room);
    r->answer = RT_NEWN(t->pool, double, t->room *rt_task_width(r));
    r->part = RT_NEWN(t->pool, int8_t, t->room);
    if (!r->entity || !r->time || !r->answer || !r->part) return rt_fail_nomem(t->err, "task");
    if (!old.n) return GNNC_OK;
    memcpy(r->entity, old.entity, (size_t)old.n * sizeof *r->entity);
    memcpy(r->time, old.time, (size_t)old.n * sizeof *r->time);
    memcpy(r->answer, old.answer, (size_t)(old.n * rt_task_width(r)) * sizeof *r->answer);
    memcpy(r->part, old.part, (size_t)old.n * sizeof *r->part);
    const void *arrays[] = {old.entity, old.time, old.answer, old.part};
    for (int i = 0; i < 4; i++) rt_pool_drop(t->pool, arrays[i]);
    return GNNC_OK;
}

gnnc_status rt_task_add(RtTask *t, int64_t entity, double at, const double *answer, int part) {
    RtTaskRows *r = &t->rows;
    gnnc_status st = grow(t);
    if (st != GNNC_OK) return st;
    r->entity[r->n] = (int32_t)entity;
    r->time[r->n] = at;
    memcpy(&r->answer[r->n * rt_task_width(r)], answer, (size_t)rt_task_width(r) * sizeof *answer);
    r->part[r->n++] = (int8_t)part;
    return GNNC_OK;
}

/* The name of the edges from a task's rows to the items that are their answers. */
/* ---- lists of items, as links -------- */
static const char *name_of_links(const RtTask *t) {
    bool own = t->lists.of == t->entity; /* their edges to the entity have the plain name */
    return rt_pool_printf(&t->d->pool, "%s__%s%s", t->made->table, t->lists.of->name,
                          own ? "_ranked" : "");
}

/* Gives each link the part and time of the row that asks; false: no memory. */
static bool put_link_columns(RtTask *t, RtTable *to) {
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
    RtTaskRanks *to = &t->made->ranks;
    *to = (RtTaskRanks){.top = t->q.top, .links = links, .items = t->lists.of->name};
    if (!t->lists.asked) return;
    const RtQueryRows *r = t->lists.asked->rows;
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
    if (!put_link_columns(t, to)) return rt_fail_nomem(t->err, "task");
    tell_ranks(t, name);
    return GNNC_OK;
}
