#include "import_task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "encoder.h"
#include "import_build.h"
#include "import_split.h"
#include "import_time.h"

typedef struct {
    RtDataset *d;
    RtPool *pool; /* goes when the task is made */
    const RtTaskHow *how;
    RtTaskMade *made;
    RtError *err;
    RtQuery q;
    const RtTable *entity;
    const RtColumn *const *row_time; /* of node types */
    RtTaskRows rows;
    int64_t room;
    double *scratch;
    const RtColumn *classes; /* whose categories answers are; NULL: no and yes, or numbers */
} Task;

/* ---- what is asked for ----------------------------------------------------------------- */
typedef struct {
    double end;  /* of the latest window; -infinity: none */
    double from; /* the times of the rows that the target aggregates */
    double to;
    const RtQueryExpr *past; /* an aggregate of the target that looks back, or NULL */
    const RtTable *nodes;
    const RtColumn *const *row_time;
} Windows;

static void see_window(void *user, const RtQueryExpr *e) {
    Windows *w = user;
    if (e->value.agg == RT_AGG_NONE) return;
    if (e->value.to > w->end) w->end = e->value.to;
    if (e->value.from < 0) w->past = e;
    const RtColumn *c = w->row_time[e->rows->table - w->nodes];
    for (int64_t i = 0; i < c->n_rows; i++) {
        if (c->f64[i] < w->from) w->from = c->f64[i];
        if (c->f64[i] > w->to) w->to = c->f64[i];
    }
}

static Windows windows_of(const Task *t, const RtQueryExpr *e) {
    Windows w = {-INFINITY, INFINITY, -INFINITY, NULL, t->d->nodes, t->row_time};
    rt_query_each(e, see_window, &w);
    return w;
}

static void see_future(void *user, const RtQueryExpr *e) {
    if (e->value.agg != RT_AGG_NONE && e->value.to > 0) *(const RtQueryExpr **)user = e;
}

static gnnc_status check_windows(const Task *t, const Windows *w) {
    const RtQueryExpr *future = NULL;
    rt_query_each(t->q.where, see_future, &future);
    if (future)
        return rt_fail(t->err, GNNC_E_FORMAT,
                       "query, character %d: WHERE chooses who is asked about by what is known "
                       "then: its windows end at 0",
                       future->at);
    if (w->past)
        return rt_fail(t->err, GNNC_E_FORMAT,
                       "query, character %d: what is predicted lies in a window from 0 on, as in "
                       "COUNT(orders.*, 0, 90, days)",
                       w->past->at);
    return GNNC_OK;
}

/* Which answers there are: numbers, or classes. */
static gnnc_status find_classes(Task *t) {
    const RtQueryExpr *e = t->q.target;
    if (e->kind != RT_QUERY_VALUE) {
        t->rows.n_classes = 2;
        return GNNC_OK;
    }
    const RtColumn *c = e->rows->column;
    RtAgg agg = e->value.agg;
    if (!rt_query_keeps(agg) || (c && c->kind == RT_COL_FLOAT)) return GNNC_OK;
    if (!c || !rt_column_has_codes(c))
        return rt_fail(t->err, GNNC_E_FORMAT,
                       "query, character %d: a number, a class or a condition is predicted, no %s",
                       e->at, c ? rt_col_kind_name(c->kind) : "rows");
    t->classes = c;
    t->rows.n_classes = c->n_categories;
    return GNNC_OK;
}

static double answer_of(const Task *t, int64_t row, double at) {
    const RtQueryExpr *e = t->q.target;
    if (e->kind == RT_QUERY_VALUE) return rt_query_value(e, row, at, t->scratch);
    int v = rt_query_test(e, row, at, t->scratch);
    return v < 0 ? NAN : v;
}

/* ---- rows ------------------------------------------------------------------------------- */
static gnnc_status grow(Task *t) {
    RtTaskRows *r = &t->rows, old = *r;
    if (r->n < t->room) return GNNC_OK;
    t->room = t->room ? 2 * t->room : 1024;
    if (r->n == INT32_MAX)
        return rt_fail(t->err, GNNC_E_LIMIT, "query: more than 2^31 - 1 rows to learn from");
    r->entity = RT_NEWN(t->pool, int32_t, t->room);
    r->time = RT_NEWN(t->pool, double, t->room);
    r->answer = RT_NEWN(t->pool, double, t->room);
    r->part = RT_NEWN(t->pool, int8_t, t->room);
    if (!r->entity || !r->time || !r->answer || !r->part) return rt_fail_nomem(t->err, "task");
    if (!old.n) return GNNC_OK;
    memcpy(r->entity, old.entity, (size_t)old.n * sizeof *r->entity);
    memcpy(r->time, old.time, (size_t)old.n * sizeof *r->time);
    memcpy(r->answer, old.answer, (size_t)old.n * sizeof *r->answer);
    memcpy(r->part, old.part, (size_t)old.n * sizeof *r->part);
    const void *arrays[] = {old.entity, old.time, old.answer, old.part};
    for (int i = 0; i < 4; i++) rt_pool_drop(t->pool, arrays[i]);
    return GNNC_OK;
}

/* A row, where there is an answer and the entity is asked about. */
static gnnc_status ask(Task *t, int64_t entity, double at, int part) {
    RtTaskRows *r = &t->rows;
    double answer = answer_of(t, entity, at);
    if (isnan(answer)) return GNNC_OK;
    if (t->q.where && rt_query_test(t->q.where, entity, at, t->scratch) != 1) return GNNC_OK;
    gnnc_status st = grow(t);
    if (st != GNNC_OK) return st;
    r->entity[r->n] = (int32_t)entity;
    r->time[r->n] = at;
    r->answer[r->n] = answer;
    r->part[r->n++] = (int8_t)part;
    return GNNC_OK;
}

/* ---- the future ---------------------------------------------------------------------------- */
/* Everybody who is there at a time. */
static gnnc_status ask_all(Task *t, double at, int part) {
    const RtColumn *born = t->row_time[t->entity - t->d->nodes];
    gnnc_status st = GNNC_OK;
    for (int64_t i = 0; i < t->entity->count && st == GNNC_OK; i++)
        if (!born || born->f64[i] <= at) st = ask(t, i, at, part);
    return st;
}

enum { LEAST_WINDOWS = 3, PARTS = 10, MOST_TIMES = 100000 };

/* A tenth of the windows that the data span to judge on, and a tenth to choose by; at least one. */
static gnnc_status choose_times(Task *t, const Windows *w) {
    RtTaskMade *m = t->made;
    double span = (w->to - w->from) / w->end, part = floor(span / PARTS);
    m->window = w->end;
    m->val_time = t->how->val_time;
    m->test_time = t->how->test_time;
    if (!(span >= LEAST_WINDOWS) && (isnan(m->val_time) || isnan(m->test_time)))
        return rt_fail(t->err, GNNC_E_RANGE,
                       "query: the rows that it counts span %.3g windows: at least %d are needed "
                       "to learn from one, choose by one and judge on one",
                       span > 0 ? span : 0, LEAST_WINDOWS);
    if (part < 1) part = 1;
    if (isnan(m->test_time)) m->test_time = w->to - part * w->end;
    if (isnan(m->val_time)) m->val_time = m->test_time - part * w->end;
    if (m->test_time + w->end > w->to + 1)
        return rt_fail(t->err, GNNC_E_RANGE,
                       "--test-time: the data end before the window behind it does, so that nobody "
                       "knows the answers");
    if (!(m->val_time + w->end <= m->test_time) || !(m->val_time - w->end >= w->from))
        return rt_fail(
            t->err, GNNC_E_RANGE,
            "--val-time: a window has to fit between it and --test-time, and one between "
            "the first row and it");
    return GNNC_OK;
}

/* Times from `first` on whose windows have ended by `end`; at least the first. */
static gnnc_status ask_from(Task *t, double first, double end, double every, int part) {
    gnnc_status st = ask_all(t, first, part);
    for (int64_t k = 1; st == GNNC_OK && first + (double)k * every + t->made->window <= end; k++)
        st = ask_all(t, first + (double)k * every, part);
    return st;
}

static gnnc_status ask_future(Task *t) {
    Windows w = windows_of(t, t->q.target);
    gnnc_status st;
    TRY(st, check_windows(t, &w));
    TRY(st, choose_times(t, &w));
    RtTaskMade *m = t->made;
    double every = t->how->every > 0 ? t->how->every : w.end;
    if ((w.to - w.from) / every > MOST_TIMES)
        return rt_fail(t->err, GNNC_E_LIMIT, "query: the data span more than %d times asked at",
                       MOST_TIMES);
    int64_t back = (int64_t)floor((m->val_time - w.end - w.from) / every);
    for (int64_t k = back; k >= 0; k--)
        TRY(st, ask_all(t, m->val_time - w.end - (double)k * every, 1));
    TRY(st, ask_from(t, m->val_time, m->test_time, every, 2));
    st = ask_from(t, m->test_time, w.to, every, 3);
out:
    return st;
}

/* ---- a column ------------------------------------------------------------------------------- */
typedef struct {
    double time;
    int32_t row;
} Dated;

static int by_time(const void *x, const void *y) {
    const Dated *a = x, *b = y;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Rows with an answer, the oldest first; without times, by an order that is drawn. */
static gnnc_status ask_rows(Task *t, const RtColumn *time) {
    Dated *v = RT_NEWN(t->pool, Dated, t->entity->count + 1);
    int64_t n = 0;
    gnnc_status st = GNNC_OK;
    if (!v) return rt_fail_nomem(t->err, "task");
    for (int64_t i = 0; i < t->entity->count; i++) {
        double at = time ? time->f64[i] : rt_split_chance(0, (uint64_t)i);
        if (!isnan(at)) v[n++] = (Dated){at, (int32_t)i};
    }
    if (n) qsort(v, (size_t)n, sizeof *v, by_time);
    for (int64_t i = 0; i < n && st == GNNC_OK; i++) st = ask(t, v[i].row, v[i].time, 0);
    rt_pool_drop(t->pool, v);
    return st;
}

/* One date alone: the other part begins where a tenth of the rows are left, or fit before it. */
static gnnc_status cut_rows(Task *t, const RtColumn *time) {
    const RtTaskHow *how = t->how;
    RtTaskRows *r = &t->rows;
    RtTaskMade *m = t->made;
    bool val_said = !isnan(how->val_time), test_said = !isnan(how->test_time);
    int32_t *order = RT_NEWN(t->pool, int32_t, r->n + 1);
    if (!order) return rt_fail_nomem(t->err, "task");
    if ((val_said || test_said) && !time)
        return rt_fail(t->err, GNNC_E_ARG, "--%s-time: rows of '%s' have no time",
                       val_said ? "val" : "test", t->entity->name);
    if (val_said && test_said && !(how->val_time < how->test_time))
        return rt_fail(t->err, GNNC_E_RANGE, "--val-time: it is not before --test-time");
    for (int64_t i = 0; i < r->n; i++) order[i] = (int32_t)i;
    int64_t test = 0, val = 0;
    while (test_said && test < r->n && r->time[test] < how->test_time) test++;
    while (val_said && val < r->n && r->time[val] < how->val_time) val++;
    if (!test_said) test = rt_split_cut(order, r->time, r->n, val, 0.9 * (double)r->n);
    if (!val_said) val = rt_split_cut(order, r->time, r->n, 0, 8.0 / 9 * (double)test);
    if (!val_said && val >= test && test > 1) /* of few rows */
        val = rt_split_cut(order, r->time, r->n, 0, (double)test - 1);
    m->val_time = val_said ? how->val_time : time && val < r->n ? r->time[val] : NAN;
    m->test_time = test_said ? how->test_time : time && test < r->n ? r->time[test] : NAN;
    for (int64_t i = 0; i < r->n; i++) r->part[i] = (int8_t)(1 + (i >= val) + (i >= test));
    if (!time) r->time = NULL;
    return GNNC_OK;
}

static gnnc_status ask_column(Task *t) {
    const RtColumn *time = t->row_time[t->entity - t->d->nodes];
    gnnc_status st = ask_rows(t, time);
    return st == GNNC_OK ? cut_rows(t, time) : st;
}

/* ---- what comes with the answer -------- */
/* A column, or the one that says where it is missing. */
static bool is_part_of(const char *name, const char *of) {
    size_t n = strlen(of);
    return strncmp(name, of, n) == 0 && (!name[n] || strcmp(name + n, "_missing") == 0);
}

typedef struct {
    const char *name;
    bool found;
} Sought;

static void see_column(void *user, const RtQueryExpr *e) {
    Sought *s = user;
    const RtColumn *c = e->value.agg == RT_AGG_NONE ? e->rows->column : NULL;
    if (c && is_part_of(s->name, c->name)) s->found = true;
}

static bool is_target(const Task *t, const char *column) {
    Sought s = {column, false};
    rt_query_each(t->q.target, see_column, &s);
    return s.found;
}

static bool is_late(const Task *t, const char *column) {
    for (int i = 0; i < t->q.n_after; i++)
        if (is_part_of(column, t->q.after[i])) return true;
    return false;
}

static bool is_reference(const Task *t, const RtTable *edge) {
    return edge->key && &t->d->nodes[edge->src_type] == t->entity;
}

/* Any of its columns tells where it leads. */
static bool is_late_reference(const Task *t, const RtTable *edge) {
    bool late = false;
    for (int i = 0; i < t->q.n_after && !late; i++) late = rt_query_is_key(edge, t->q.after[i]);
    return is_reference(t, edge) && late;
}

static gnnc_status check_after(const Task *t) {
    for (int i = 0; i < t->q.n_after; i++) {
        const char *name = t->q.after[i];
        bool found = rt_table_column(t->entity, name);
        for (int k = 0; k < t->d->n_edges && !found; k++)
            found = is_reference(t, &t->d->edges[k]) && rt_query_is_key(&t->d->edges[k], name);
        if (!found)
            return rt_fail(t->err, GNNC_E_MISSING, "query: KNOWN AFTER: '%s' has no column '%.60s'",
                           t->entity->name, name);
    }
    return GNNC_OK;
}

/* ---- the table ------------------------------------------------------------------------------ */
static RtColumn *add_column(Task *t, RtTable *to, const char *name, rt_col_kind kind) {
    RtColumn *c = rt_table_add_column(&t->d->pool, to);
    if (!c) return NULL;
    *c = (RtColumn){.name = name, .kind = kind, .n_rows = to->count, .rank = 1};
    c->shape[0] = to->count;
    return c;
}

static const char *const no_and_yes[] = {"no", "yes"};

static bool put_answers(Task *t, RtTable *to) {
    const RtTaskRows *r = &t->rows;
    bool class = r->n_classes > 0;
    RtColumn *y = add_column(t, to, "y", class ? RT_COL_CLASS : RT_COL_FLOAT);
    int32_t *codes = class ? RT_NEWN(&t->d->pool, int32_t, r->n) : NULL;
    float *numbers = class ? NULL : RT_NEWN(&t->d->pool, float, r->n);
    if (!y || (class ? !codes : !numbers)) return false;
    y->n_categories = r->n_classes;
    y->names = !class ? NULL : t->classes ? t->classes->names : no_and_yes;
    y->why = rt_pool_strndup(&t->d->pool, t->q.text, strlen(t->q.text));
    for (int64_t i = 0; i < r->n && class; i++) codes[i] = (int32_t)r->answer[i];
    for (int64_t i = 0; i < r->n && !class; i++) numbers[i] = (float)r->answer[i];
    if (class)
        y->i32 = codes;
    else
        y->f32 = numbers;
    return y->why != NULL;
}

static bool put_parts(Task *t, RtTable *to) {
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
    time->why = t->made->window > 0 ? "when it is asked" : "the row's own";
    to->time = time->name;
    to->time_why = time->why;
    return true;
}

/* A column's name in the task's table, where `y`, `split` and `time` are its own. */
static const char *name_beside(Task *t, const RtTable *to, const char *name) {
    while (name && rt_table_column(to, name)) name = rt_pool_printf(&t->d->pool, "%s_", name);
    return name;
}

/* An encoder of its own, which is fitted to the task's rows. */
static gnnc_status put_encoder(Task *t, const RtColumn *of, RtColumn *copy) {
    RtEncoder *e = of->encoder ? RT_NEW(&t->d->pool, RtEncoder) : NULL;
    if (of->encoder && !e) return rt_fail_nomem(t->err, "task");
    if (e) *e = *of->encoder;
    copy->encoder = e;
    return GNNC_OK;
}

/* What else the row of the entities' table says, but what comes with the answer or later. */
static gnnc_status put_columns(Task *t, RtTable *to) {
    const RtColumn *time = t->row_time[t->entity - t->d->nodes];
    for (int i = 0; i < t->entity->n_columns; i++) {
        const RtColumn *c = &t->entity->columns[i];
        if (c == time || c->kind == RT_COL_SPLIT || is_target(t, c->name) || is_late(t, c->name))
            continue;
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
static gnnc_status put_edge(Task *t, const char *key, int to_type, const int32_t *to,
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
static const char *name_of_key(const Task *t, const RtTable *edge) {
    const char *behind = strstr(edge->name, "__");
    return behind ? behind + 2 : rt_pool_printf(&t->d->pool, "%s", edge->name);
}

enum { MOST_KEYS = 8 };

/* Foreign keys that the task's rows have, too; of the future, only the entity. */
static gnnc_status put_edges(Task *t, RtTable *to, int *n, RtTaskKey *keys, int *n_keys) {
    int entity = (int)(t->entity - t->d->nodes);
    gnnc_status st;
    if (t->made->window > 0) {
        keys[(*n_keys)++] = (RtTaskKey){t->entity->name, t->rows.entity, t->entity->count};
        return put_edge(t, t->entity->name, entity, NULL, &to[(*n)++]);
    }
    for (int i = 0; i < t->d->n_edges; i++) {
        const RtTable *e = &t->d->edges[i];
        if (!is_reference(t, e) || is_late_reference(t, e)) continue;
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

/* Without a time the table cannot keep the answers for later rows to see; what is known after a row
 * nobody can date. */
static void drop_columns(Task *t) {
    RtTable *e = &t->d->nodes[t->entity - t->d->nodes];
    bool dated = t->rows.time != NULL;
    int n = 0;
    if (t->made->window > 0) return;
    for (int i = 0; i < e->n_columns; i++) {
        const char *name = e->columns[i].name;
        if (is_late(t, name) || (!dated && is_target(t, name))) continue;
        e->columns[n++] = e->columns[i];
    }
    e->n_columns = n;
}

static void drop_edges(Task *t, RtTable *edges, int *n) {
    int kept = 0;
    for (int i = 0; i < *n; i++) {
        if (t->made->window <= 0 && is_late_reference(t, &edges[i])) continue;
        edges[kept++] = edges[i];
    }
    *n = kept;
}

static gnnc_status put_table(Task *t) {
    RtDataset *d = t->d;
    RtTable *nodes = RT_NEWN(&d->pool, RtTable, d->n_nodes + 1);
    RtTable *edges = RT_NEWN(&d->pool, RtTable, 2 * d->n_edges + 1);
    RtTaskKey keys[MOST_KEYS];
    int n_edges = d->n_edges, n_keys = 0;
    gnnc_status st;
    if (!nodes || !edges) return rt_fail_nomem(t->err, "task");
    if (n_edges) memcpy(edges, d->edges, (size_t)n_edges * sizeof *edges);
    RtTable to = {.name = t->made->table, .count = t->rows.n, .graph = -1};
    to.src_type = to.dst_type = -1;
    if (!put_answers(t, &to) || !put_parts(t, &to)) return rt_fail_nomem(t->err, "task");
    if (t->made->window <= 0) TRY(st, put_columns(t, &to));
    TRY(st, put_edges(t, edges, &n_edges, keys, &n_keys));
    TRY(st, rt_task_guess(t->pool, &d->pool, &t->rows, keys, n_keys, t->made, t->err));
    to.columns[0].baselines = t->made->baselines; /* of y */
    to.columns[0].n_baselines = t->made->n_baselines;
    drop_edges(t, edges, &n_edges);
    drop_columns(t);
    memcpy(nodes, d->nodes, (size_t)d->n_nodes * sizeof *nodes);
    nodes[d->n_nodes++] = to;
    d->nodes = nodes;
    d->edges = edges;
    d->n_edges = n_edges;
out:
    return st;
}

/* ---- the task -------- */
static gnnc_status check_parts(const Task *t) {
    static const char *const part[] = {"", "to learn from", "to choose by", "to judge on"};
    int64_t n[4] = {0};
    for (int64_t i = 0; i < t->rows.n; i++) n[t->rows.part[i]]++;
    for (int k = 1; k < 4; k++)
        if (!n[k])
            return rt_fail(t->err, GNNC_E_RANGE,
                           "query: of %lld rows with an answer none is left %s; --val-time and "
                           "--test-time say from when on",
                           (long long)t->rows.n, part[k]);
    return GNNC_OK;
}

static gnnc_status bind(Task *t) {
    RtDataset *d = t->d;
    gnnc_status st;
    TRY(st, rt_import_row_times(d, t->how->by_time, t->err));
    const RtColumn **time = RT_NEWN(t->pool, const RtColumn *, d->n_nodes + 1);
    if (!time) return rt_fail_nomem(t->err, "task");
    for (int i = 0; i < d->n_nodes; i++)
        time[i] = rt_import_row_time(&d->nodes[i], t->how->by_time);
    t->row_time = time;
    const RtQueryData data = {d, time};
    TRY(st, rt_query_bind(t->pool, &data, &t->q, &t->entity, t->err));
    TRY(st, find_classes(t));
    int64_t most = rt_query_most_rows(t->q.target, t->entity->count);
    int64_t where = rt_query_most_rows(t->q.where, t->entity->count);
    t->scratch = RT_NEWN(t->pool, double, (most > where ? most : where) + 1);
    if (!t->scratch) st = rt_fail_nomem(t->err, "task");
out:
    return st;
}

static gnnc_status make(Task *t) {
    gnnc_status st;
    TRY(st, rt_query_parse(t->pool, t->how->query, &t->q, t->err));
    TRY(st, bind(t));
    t->made->of_future = rt_query_aggregates(t->q.target);
    if (t->made->of_future && t->q.n_after)
        return rt_fail(t->err, GNNC_E_FORMAT,
                       "query: KNOWN AFTER is of a column that is predicted, not of the future");
    TRY(st, check_after(t));
    TRY(st, t->made->of_future ? ask_future(t) : ask_column(t));
    t->rows.window = t->made->window;
    TRY(st, check_parts(t));
    st = put_table(t);
out:
    return st;
}

gnnc_status rt_import_task(RtDataset *d, const RtTaskHow *how, RtTaskMade *made, RtError *err) {
    RtPool pool;
    const char *name = how->name ? how->name : "task";
    *made = (RtTaskMade){.table = rt_identifier(&d->pool, name, strlen(name))};
    if (!made->table) return rt_fail_nomem(err, "task");
    if (rt_dataset_nodes(d, made->table))
        return rt_fail(err, GNNC_E_STATE,
                       "there is a table '%s' already: --task NAME calls the task otherwise",
                       made->table);
    rt_pool_init(&pool, &d->pool.from);
    Task t = {.d = d, .pool = &pool, .how = how, .made = made, .err = err};
    gnnc_status st = make(&t);
    rt_pool_free(&pool);
    return st;
}
