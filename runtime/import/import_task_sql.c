/* Tasks whose rows a SELECT gives: the key of an entity, the time it is asked at, the answer; or
 * several answers of yes and no.  The source reads it as one more table, task(entity, time,
 * answer), whose entity refers to its table: so keys are found, and refused, as everywhere.  Then
 * the table goes, and the task is made of its rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/data/dates.h"
#include "runtime/data/encoder.h"
#include "import_build.h"
#include "import_source.h"
#include "import_split.h"
#include "import_task_impl.h"
#include "import_time.h"

enum { ENTITY, TIME, ANSWER, MOST_ANSWERS = 1000 };

/* ---- the source's table --------------------------------------------------------------------- */
static const char *column_name(RtPool *pool, int i, int n) {
    if (i >= ANSWER && n > ANSWER + 1) return rt_pool_printf(pool, "answer_%d", i - ANSWER);
    return i == ENTITY ? "entity" : i == TIME ? "time" : "answer";
}

/* The table of that name, whatever its case; -1: there is none. */
static int find_entity(RtSource *s, const char *name) {
    for (int i = 0; i < s->n_tables; i++) {
        const char *type = rt_identifier(&s->pool, s->tables[i].name, strlen(s->tables[i].name));
        if (type && strcasecmp(type, name) == 0) return i;
    }
    return -1;
}

gnnc_status rt_task_ask(RtSource *s, const RtTaskText *task, RtError *err) {
    int entity = find_entity(s, task->entity);
    gnnc_status st;
    if (!s->form->ask)
        return rt_fail(err, GNNC_E_ARG, "%s: a task by SQL asks a database, which this is not",
                       s->name);
    if (entity < 0)
        return rt_fail(err, GNNC_E_MISSING, "task %s: there is no table '%s'", task->name,
                       task->entity);
    if (s->tables[entity].key.n > 1)
        return rt_fail(err, GNNC_E_FORMAT, "task %s: the key of '%s' has %d columns, one is asked",
                       task->name, task->entity, s->tables[entity].key.n);
    TRY(st, s->form->ask(s, task->name, task->sql, column_name, err));
    RtSourceTable *t = &s->tables[s->n_tables - 1];
    if (t->n_columns <= ANSWER || t->n_columns > ANSWER + MOST_ANSWERS)
        return rt_fail(
            err, GNNC_E_FORMAT,
            "task %s: the SELECT gives %d columns; the key of a row of '%s', the time it "
            "is asked at and its answer are expected",
            task->name, t->n_columns, task->entity);
    t->columns[TIME].kind = RT_COL_TIME;
    RtReference r = {.from = {1, {ENTITY}}, .table = entity};
    if (!rt_source_refer(&s->pool, t, &r)) st = rt_fail_nomem(err, task->name);
out:
    return st;
}

/* ---- its rows -------- */
typedef struct {
    double time;
    int32_t entity, row;
} Asked;

typedef struct {
    RtTask *task;
    const RtTaskText *text;
    RtTable table; /* as it was read */
    int n_answers;
    const RtColumn *time, *answer[MOST_ANSWERS], *missing[MOST_ANSWERS];
    Asked *v;
    int64_t n;
    double end; /* of the data */
} Taken;

/* Sorts rows by time, then by entity, then as they came. */
static int by_time(const void *x, const void *y) {
    const Asked *a = x, *b = y;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    if (a->entity != b->entity) return a->entity < b->entity ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Finds the columns of time and answers in what the SELECT gave. */
static gnnc_status find_columns(Taken *t) {
    RtPool *pool = t->task->pool;
    int n = ANSWER; /* with the answers */
    for (int i = 0; i < t->table.n_columns; i++)
        n += strncmp(t->table.columns[i].name, "answer", 6) == 0 &&
             !rt_ends_with(t->table.columns[i].name, "_missing");
    t->time = rt_table_column(&t->table, "time");
    t->n_answers = n - ANSWER;
    for (int i = 0; i < t->n_answers; i++) {
        const char *name = column_name(pool, ANSWER + i, n);
        const char *lacks = name ? rt_pool_printf(pool, "%s_missing", name) : NULL;
        if (!lacks) return rt_fail_nomem(t->task->err, "task");
        t->answer[i] = rt_table_column(&t->table, name);
        t->missing[i] = rt_table_column(&t->table, lacks);
        bool usable = t->answer[i] && t->answer[i]->rank == 1 && /* no text, vector or list */
                      (t->answer[i]->kind == RT_COL_FLOAT ||
                       (t->answer[i]->kind == RT_COL_CAT && t->n_answers == 1));
        if (!usable) t->n_answers = 0;
    }
    if (t->n_answers && t->time && t->time->kind == RT_COL_TIME) return GNNC_OK;
    return rt_fail(t->task->err, GNNC_E_FORMAT,
                   "task %s: the SELECT's answers are numbers, or one of a few texts",
                   t->text->name);
}

int rt_task_take_out(RtDataset *d, const char *name, RtTable *table, RtTable *edges, int most) {
    int kept = 0, n = 0, at = 0;
    while (strcmp(d->nodes[at].name, name) != 0) at++;
    *table = d->nodes[at];
    for (int i = 0; i < d->n_edges; i++) {
        RtTable e = d->edges[i];
        bool own = e.src_type == at;
        e.src_type -= e.src_type > at;
        e.dst_type -= e.dst_type > at;
        if (!own)
            d->edges[kept++] = e;
        else if (n < most)
            edges[n++] = e;
    }
    d->n_edges = kept;
    d->n_nodes--;
    memmove(&d->nodes[at], &d->nodes[at + 1], (size_t)(d->n_nodes - at) * sizeof *d->nodes);
    return n;
}

/* Code 0 of those that have unknown names is no answer. */
static double code_of(const Taken *t, const RtColumn *c, int64_t row) {
    int32_t code = c->i32[row] - t->task->unknown;
    return code < 0 ? NAN : code;
}

/* Answer i of a row; NaN: there is none. */
static double answer_of(const Taken *t, int i, int64_t row) {
    const RtColumn *c = t->answer[i];
    if (c->kind == RT_COL_CAT) return code_of(t, c, row);
    if (c->exact) return c->exact[row];
    return t->missing[i] && t->missing[i]->i32[row] == 1 ? NAN : (double)c->f32[row];
}

static gnnc_status refuse(const Taken *t, int64_t row, const char *why) {
    return rt_fail(t->task->err, GNNC_E_RANGE, "%s: row %lld: %s", t->text->name,
                   (long long)row + 1, why);
}

/* Models read the entity of a row whatever its time (`own true`): it must be there. */
static gnnc_status check_born(const Taken *t, int64_t row, int32_t entity) {
    const RtColumn *born = t->task->row_time[t->task->entity - t->task->d->nodes];
    const char *table = t->task->entity->name;
    char at[2][RT_DATE_TEXT], why[320];
    if (!born || !(born->f64[entity] > t->time->f64[row])) return GNNC_OK;
    snprintf(
        why, sizeof why,
        "it is asked at %s, and its entity is there from %s on; if that time does not say when "
        "rows were written, --row-time %.100s=none",
        rt_date_text(t->time->f64[row], at[0]), rt_date_text(born->f64[entity], at[1]), table);
    return refuse(t, row, why);
}

/* Sorts rows by time. Each has an entity that is there by then, and no entity is asked twice at a
 * time. */
static gnnc_status sort_rows(Taken *t, const RtTable *edges) {
    RtTask *task = t->task;
    const int64_t n = t->table.count;
    int32_t *entity = RT_NEWN(task->pool, int32_t, n + 1);
    t->v = RT_NEWN(task->pool, Asked, n + 1);
    if (!entity || !t->v) return rt_fail_nomem(task->err, "task");
    for (int64_t i = 0; i < n; i++) entity[i] = -1;
    for (int64_t k = 0; k < edges->count; k++) entity[edges->src[k]] = edges->dst[k];
    for (int64_t i = 0; i < n; i++) {
        if (entity[i] < 0)
            return refuse(t, i, "its entity is NULL, or the key of no row that is there");
        if (isnan(t->time->f64[i])) return refuse(t, i, "it has no time");
        gnnc_status st = check_born(t, i, entity[i]);
        if (st != GNNC_OK) return st;
        t->v[t->n++] = (Asked){t->time->f64[i], entity[i], (int32_t)i};
    }
    if (n) qsort(t->v, (size_t)n, sizeof *t->v, by_time);
    for (int64_t i = 1; i < n; i++) {
        char why[80];
        if (t->v[i].time != t->v[i - 1].time || t->v[i].entity != t->v[i - 1].entity) continue;
        snprintf(why, sizeof why, "its entity is asked at its time twice: row %lld does, too",
                 (long long)t->v[i - 1].row + 1);
        return refuse(t, t->v[i].row, why);
    }
    return GNNC_OK;
}

/* Nobody knows what happens in a window that is open when the data end. */
static gnnc_status check_end(Taken *t) {
    const RtTask *task = t->task;
    char at[2][RT_DATE_TEXT], why[200];
    t->end = -INFINITY;
    for (int i = 0; i < task->d->n_nodes; i++) {
        const RtColumn *c = task->row_time[i];
        for (int64_t r = 0; c && r < c->n_rows; r++)
            if (c->f64[r] > t->end) t->end = c->f64[r];
    }
    if (!t->n || isinf(t->end)) return GNNC_OK;
    const Asked *last = &t->v[t->n - 1];
    if (last->time + t->text->window <= t->end) return GNNC_OK;
    snprintf(why, sizeof why,
             "it is asked at %s, and the data end at %s, before the window of %g days does",
             rt_date_text(last->time, at[0]), rt_date_text(t->end, at[1]), t->text->window / 86400);
    return refuse(t, last->row, why);
}

/* ---- the task -------- */
/* Chooses from when on rows are to judge on, and to choose by: where nothing is said, a tenth of
 * the rows each. */
static gnnc_status choose_times(Taken *t) {
    RtTask *task = t->task;
    RtTaskMade *m = task->made;
    int32_t *order = RT_NEWN(task->pool, int32_t, t->n + 1);
    double *time = RT_NEWN(task->pool, double, t->n + 1);
    if (!order || !time) return rt_fail_nomem(task->err, "task");
    for (int64_t i = 0; i < t->n; i++) {
        order[i] = (int32_t)i;
        time[i] = t->v[i].time;
    }
    m->test_time = isnan(task->how->test_time) ? t->text->test_time : task->how->test_time;
    m->val_time = isnan(task->how->val_time) ? t->text->val_time : task->how->val_time;
    int64_t test = rt_split_cut(order, time, t->n, 0, 0.9 * (double)t->n);
    if (isnan(m->test_time)) m->test_time = test < t->n ? time[test] : INFINITY;
    test = 0;
    while (test < t->n && time[test] < m->test_time) test++;
    int64_t val = rt_split_cut(order, time, t->n, 0, 8.0 / 9 * (double)test);
    if (isnan(m->val_time)) m->val_time = val < t->n ? time[val] : INFINITY;
    if (m->val_time < m->test_time) return GNNC_OK;
    return rt_fail(task->err, GNNC_E_RANGE, "task %s: validation does not begin before test does",
                   t->text->name);
}

/* The part of a row at a time. One whose window reaches into the next part is in none. */
static int part_of(const Taken *t, double at) {
    const RtTaskMade *m = t->task->made;
    double known = at + t->text->window;
    if (at < m->val_time) return known <= m->val_time;
    if (at < m->test_time) return known <= m->test_time ? 2 : 0;
    return 3;
}

/* Numbers that are 0 and 1 alone are no and yes. */
static void find_classes(Taken *t) {
    RtTask *task = t->task;
    const RtColumn *c = t->answer[0];
    bool yes_or_no = t->n > 0;
    task->rows.n_labels = t->n_answers > 1 ? t->n_answers : 0;
    if (c->kind == RT_COL_CAT) {
        task->unknown = c->encoder && c->encoder->unknown;
        task->classes = c->names ? c->names + task->unknown : NULL;
        task->rows.n_classes = c->n_categories - task->unknown;
        return;
    }
    for (int64_t i = 0; i < t->n && yes_or_no && t->n_answers == 1; i++) {
        double v = answer_of(t, 0, t->v[i].row);
        yes_or_no = v == 0 || v == 1 || isnan(v);
    }
    task->rows.n_classes = yes_or_no ? 2 : 0;
    task->classes = yes_or_no ? rt_task_no_yes : NULL;
}

/* Rows without any answer are left out. */
static gnnc_status add_rows(Taken *t) {
    gnnc_status st = GNNC_OK;
    double *answer = RT_NEWN(t->task->pool, double, t->n_answers);
    if (!answer) return rt_fail_nomem(t->task->err, "task");
    for (int64_t i = 0; i < t->n && st == GNNC_OK; i++) {
        const Asked *a = &t->v[i];
        bool known = false;
        for (int k = 0; k < t->n_answers; k++) {
            double v = answer[k] = answer_of(t, k, a->row);
            known |= !isnan(v);
            if (t->n_answers > 1 && v != 0 && v != 1 && !isnan(v))
                return refuse(t, a->row, "one of several answers is neither 0 nor 1");
        }
        if (known) st = rt_task_add(t->task, a->entity, a->time, answer, part_of(t, a->time));
    }
    return st;
}

/* Makes the task's rows, answers and tables from what the SELECT gave. */
static gnnc_status make(Taken *t, const char *name, RtTaskMade *made) {
    RtTask *task = t->task;
    RtTable edges = {0};
    gnnc_status st;
    int n_edges = rt_task_take_out(task->d, name, &t->table, &edges, 1);
    const RtTable *entity = n_edges ? &task->d->nodes[edges.dst_type] : NULL;
    TRY(st, rt_task_begin(task, task->pool, task->d, task->how, name, made, task->err));
    TRY(st, rt_task_times(task));
    if (!(task->entity = entity))
        return rt_fail(task->err, GNNC_E_MISSING, "task %s: '%s' has no key that rows are found by",
                       t->text->name, t->text->entity);
    task->why = t->text->sql;
    made->window = task->rows.window = t->text->window;
    made->of_future = t->text->inclusive;
    TRY(st, find_columns(t));
    TRY(st, sort_rows(t, &edges));
    TRY(st, check_end(t));
    TRY(st, choose_times(t));
    find_classes(t);
    TRY(st, add_rows(t));
    st = rt_task_end(task);
out:
    return st;
}

gnnc_status rt_import_task_sql(RtDataset *d, const RtTaskOptions *how, const RtTaskText *text,
                               RtTaskMade *made, RtError *err) {
    RtPool pool;
    rt_pool_init(&pool, &d->pool.from);
    RtTask task = {.d = d, .pool = &pool, .how = how, .err = err};
    Taken *t = RT_NEW(&pool, Taken);
    gnnc_status st = t ? GNNC_OK : rt_fail_nomem(err, "task");
    if (t) {
        *t = (Taken){.task = &task, .text = text};
        st = make(t, text->name, made);
    }
    rt_pool_free(&pool);
    return st;
}
