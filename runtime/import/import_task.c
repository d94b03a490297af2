/* The rows that a query makes: who is asked, when, and what the answer is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/encoder.h"
#include "import_build.h"
#include "import_split.h"
#include "import_task_impl.h"
#include "import_time.h"

enum { MOST_LABELS = 1000 };

/* ---- what is asked for ----------------------------------------------------------------- */
typedef struct {
    double end;  /* of the latest window; -infinity: none */
    double from; /* the times of the rows that the target aggregates */
    double to;
    const RtQueryExpr *past; /* an aggregate of the target that looks back, or NULL */
    const RtTable *nodes;
    const RtColumn *const *row_time;
} Windows;

/* Notes how far windows reach, and from when to when their rows have times. */
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

/* Finds how far the windows of the answer reach, and of what is assumed beside it. */
static Windows windows_of(const RtTask *t) {
    Windows w = {-INFINITY, INFINITY, -INFINITY, NULL, t->d->nodes, t->row_time};
    rt_query_each(t->q.target, see_window, &w);
    rt_query_each(t->q.assuming, see_window, &w);
    return w;
}

static void see_future(void *user, const RtQueryExpr *e) {
    if (e->value.agg != RT_AGG_NONE && e->value.to > 0) *(const RtQueryExpr **)user = e;
}

/* Do windows of the condition end at 0, and those of the answer begin there or later? Else the
 * answer would be known. */
static gnnc_status check_windows(const RtTask *t, const Windows *w) {
    const RtQueryExpr *future = NULL;
    rt_query_each(t->q.where, see_future, &future);
    if (future)
        return rt_fail(t->err, GNNC_E_FORMAT,
                       "query, character %d: WHERE chooses who is asked about by what is known "
                       "then: its windows end at 0",
                       future->at);
    if (w->past)
        return rt_fail(
            t->err, GNNC_E_FORMAT,
            "query, character %d: what is predicted, or assumed, lies in a window from 0 on, as in "
            "COUNT(orders.*, 0, 90, days)",
            w->past->at);
    return GNNC_OK;
}

static bool has_unknown(const RtColumn *c) {
    return c->encoder && c->encoder->unknown;
}

/* Makes the answer one of no and yes for each category, or for each row that the foreign key leads
 * to. */
static gnnc_status find_labels(RtTask *t) {
    const RtQueryExpr *e = t->q.target;
    const RtColumn *c = e->rows->column;
    t->unknown = c && has_unknown(c);
    int64_t n = c ? c->n_categories - t->unknown : e->rows->leads->count;
    t->rows.n_classes = 2;
    t->rows.n_labels = (int)n;
    if (n >= 2 && n <= MOST_LABELS) return GNNC_OK;
    return rt_fail(t->err, GNNC_E_RANGE,
                   "query, character %d: a list of %lld different values: 2 to %d can be learned",
                   e->at, (long long)n, MOST_LABELS);
}

/* Finds which answers there are: numbers, or classes. */
static gnnc_status find_classes(RtTask *t) {
    const RtQueryExpr *e = t->q.target;
    if (t->q.top) return rt_task_find_items(t);
    if (e->kind == RT_QUERY_VALUE && e->value.agg == RT_AGG_LIST_DISTINCT) return find_labels(t);
    if (e->kind != RT_QUERY_VALUE) {
        t->rows.n_classes = 2;
        t->classes = rt_task_no_yes;
        return GNNC_OK;
    }
    const RtColumn *c = e->rows->column;
    RtAgg agg = e->value.agg;
    if (!rt_query_keeps(agg) || (c && c->kind == RT_COL_FLOAT)) return GNNC_OK;
    if (!c || !rt_column_has_codes(c))
        return rt_fail(t->err, GNNC_E_FORMAT,
                       "query, character %d: a number, a class or a condition is predicted, no %s",
                       e->at, c ? rt_col_kind_name(c->kind) : "rows");
    t->unknown = has_unknown(c);
    t->classes = c->names ? c->names + t->unknown : NULL;
    t->rows.n_classes = c->n_categories - t->unknown;
    return GNNC_OK;
}

/* The answer of a row at a time; NaN: there is none. */
static double answer_of(const RtTask *t, int64_t row, double at) {
    const RtQueryExpr *e = t->q.target;
    if (e->kind == RT_QUERY_VALUE) {
        double code = rt_query_value(e, row, at, t->scratch) - t->unknown;
        return t->unknown && code < 0 ? NAN : code;
    }
    int v = rt_query_test(e, row, at, t->scratch);
    return v < 0 ? NAN : v;
}

/* ---- rows ------------------------------------------------------------------------------- */
static bool holds(const RtTask *t, const RtQueryExpr *e, int64_t entity, double at) {
    return !e || rt_query_test(e, entity, at, t->scratch) == 1;
}

/* Adds a row of the entity at a time, where there is an answer and the entity is asked about. */
static gnnc_status ask(RtTask *t, int64_t entity, double at, int part) {
    if (!holds(t, t->q.where, entity, at) || !holds(t, t->q.assuming, entity, at)) return GNNC_OK;
    if (t->lists.of) return rt_task_add_list(t, entity, at, part);
    if (t->rows.n_labels)
        rt_query_list(t->q.target, entity, at, t->answer, t->rows.n_labels + t->unknown);
    else
        t->answer[0] = answer_of(t, entity, at);
    if (isnan(t->answer[0])) return GNNC_OK;
    return rt_task_add(t, entity, at, t->answer + (t->rows.n_labels ? t->unknown : 0), part);
}

/* ---- the future ---------------------------------------------------------------------------- */
/* Everybody who is there at a time. */
static gnnc_status ask_all(RtTask *t, double at, int part) {
    const RtColumn *born = t->row_time[t->entity - t->d->nodes];
    gnnc_status st = GNNC_OK;
    for (int64_t i = 0; i < t->entity->count && st == GNNC_OK; i++)
        if (!born || born->f64[i] <= at) st = ask(t, i, at, part);
    return st;
}

enum { LEAST_WINDOWS = 3, PARTS = 10, MOST_TIMES = 100000 };

/* Chooses from when on rows are to judge on, and to choose by: by default a tenth of the windows
 * that the data span each, at least one. */
static gnnc_status choose_times(RtTask *t, const Windows *w) {
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
static gnnc_status ask_from(RtTask *t, double first, double end, double every, int part) {
    gnnc_status st = ask_all(t, first, part);
    for (int64_t k = 1; st == GNNC_OK && first + (double)k * every + t->made->window <= end; k++)
        st = ask_all(t, first + (double)k * every, part);
    return st;
}

/* Makes the task's rows by time: those of training back from the validation time, then those of
 * validation and test, each with its label. */
static gnnc_status make_temporal_rows(RtTask *t) {
    Windows w = windows_of(t);
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

/* Sorts rows by time, those of one time by number. */
static int by_time(const void *x, const void *y) {
    const Dated *a = x, *b = y;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Rows with an answer, the oldest first; without times, by an order that is drawn. */
static gnnc_status ask_rows(RtTask *t, const RtColumn *time) {
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
static gnnc_status cut_rows(RtTask *t, const RtColumn *time) {
    const RtTaskOptions *how = t->how;
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

static void see_number(void *user, const RtQueryExpr *e) {
    const RtColumn **c = user, *own = e->value.agg == RT_AGG_NONE ? e->rows->column : NULL;
    if (!*c && own && own->kind == RT_COL_FLOAT && own->rank == 1) *c = own;
}

/* Makes the rows of a task that predicts a column: one for each row that has an answer. */
static gnnc_status ask_column(RtTask *t) {
    const RtColumn *time = t->row_time[t->entity - t->d->nodes], *told = NULL;
    gnnc_status st = ask_rows(t, time);
    rt_query_each(t->q.target, see_number, &told);
    if (time && told) t->made->told_table = t->entity->name, t->made->told = told->name;
    return st == GNNC_OK ? cut_rows(t, time) : st;
}

/* ---- the task -------- */
gnnc_status rt_task_times(RtTask *t) {
    RtDataset *d = t->d;
    gnnc_status st = rt_import_row_times(d, t->how->by_time, t->err);
    const RtColumn **time = RT_NEWN(t->pool, const RtColumn *, d->n_nodes + 1);
    if (st != GNNC_OK) return st;
    if (!time) return rt_fail_nomem(t->err, "task");
    for (int i = 0; i < d->n_nodes; i++)
        time[i] = rt_import_row_time(&d->nodes[i], t->how->by_time);
    t->row_time = time;
    return GNNC_OK;
}

/* Finds what the query names in the data, and makes room to compute answers. */
static gnnc_status bind(RtTask *t) {
    gnnc_status st;
    TRY(st, rt_task_times(t));
    const RtQueryData data = {t->d, t->row_time};
    TRY(st, rt_query_bind(t->pool, &data, &t->q, &t->entity, t->err));
    TRY(st, find_classes(t));
    int64_t most = rt_query_most_rows(t->q.target, t->entity->count);
    const RtQueryExpr *also[] = {t->q.where, t->q.assuming};
    for (int i = 0; i < 2; i++) {
        int64_t n = rt_query_most_rows(also[i], t->entity->count);
        if (n > most) most = n;
    }
    t->scratch = RT_NEWN(t->pool, double, most + 1);
    t->answer = RT_NEWN(t->pool, double, rt_task_width(&t->rows) + 1);
    if (!t->scratch || !t->answer) st = rt_fail_nomem(t->err, "task");
out:
    return st;
}

/* Makes the task's rows, answers and tables from a query. */
static gnnc_status make(RtTask *t) {
    gnnc_status st;
    TRY(st, rt_query_parse(t->pool, t->how->query, &t->q, t->err));
    TRY(st, bind(t));
    t->why = t->q.text;
    t->made->of_future = rt_query_aggregates(t->q.target);
    t->of_column = !t->made->of_future;
    if (t->of_column && t->q.assuming)
        return rt_fail(t->err, GNNC_E_FORMAT,
                       "query: ASSUMING is of the future that is predicted, not of a column");
    if (t->made->of_future && t->q.n_after)
        return rt_fail(t->err, GNNC_E_FORMAT,
                       "query, character %d: KNOWN AFTER is of a column that is predicted, not of "
                       "the future",
                       t->q.after_at[0]);
    TRY(st, rt_task_check_after(t));
    TRY(st, t->made->of_future ? make_temporal_rows(t) : ask_column(t));
    t->rows.window = t->made->window;
    st = rt_task_end(t);
out:
    return st;
}

gnnc_status rt_task_begin(RtTask *t, RtPool *pool, RtDataset *d, const RtTaskOptions *how,
                          const char *name, RtTaskMade *made, RtError *err) {
    *t = (RtTask){.d = d, .pool = pool, .how = how, .made = made, .err = err};
    *made = (RtTaskMade){.table = rt_identifier(&d->pool, name, strlen(name))};
    if (!made->table) return rt_fail_nomem(err, "task");
    if (!rt_dataset_nodes(d, made->table)) return GNNC_OK;
    return rt_fail(err, GNNC_E_STATE,
                   "there is a table '%s' already: --task NAME calls the task otherwise",
                   made->table);
}

gnnc_status rt_import_task(RtDataset *d, const RtTaskOptions *how, RtTaskMade *made, RtError *err) {
    RtPool pool;
    RtTask t;
    rt_pool_init(&pool, &d->pool.from);
    gnnc_status st = rt_task_begin(&t, &pool, d, how, how->name ? how->name : "task", made, err);
    if (st == GNNC_OK) st = make(&t);
    rt_pool_free(&pool);
    return st;
}
