/* Older answers as rows that others read: of each row of the task one of a table `<task>_history`,
 * which happened when its window closed.  So the model that reads what is older than the time asked
 * at sees no answer that was not known by then. */
#include <string.h>

#include "runtime/data/encoder.h"
#include "import_task_impl.h"

/* Adds a column to a table of answers; NULL: no memory. */
static RtColumn *add_column(RtTask *t, RtTable *to, const char *name, rt_col_kind kind) {
    RtColumn *c = rt_table_add_column(&t->d->pool, to);
    if (!c) return NULL;
    *c = (RtColumn){.name = name, .kind = kind, .n_rows = to->count, .rank = 1};
    c->shape[0] = to->count;
    c->why = "the task's answer";
    return c;
}

/* Numbers are scaled as those of the tables are. */
static bool put_numbers(RtTask *t, RtColumn *c) {
    RtEncoder *e = RT_NEW(&t->d->pool, RtEncoder);
    float *v = RT_NEWN(&t->d->pool, float, c->n_rows);
    double *exact = RT_NEWN(&t->d->pool, double, c->n_rows);
    if (!e || !v || !exact) return false;
    memcpy(exact, t->rows.answer, (size_t)c->n_rows * sizeof *exact);
    *e = (RtEncoder){.as = RT_AS_NUMBER, .kind = RT_COL_FLOAT, .from = c->name};
    c->f32 = v;
    c->exact = exact;
    c->encoder = e;
    c->scale.as = RT_SCALE_STANDARD;
    for (int64_t i = 0; i < c->n_rows; i++) v[i] = (float)exact[i];
    return true;
}

/* Stores the answers as classes; false: no memory. */
static bool put_classes(RtTask *t, RtColumn *c) {
    int32_t *v = RT_NEWN(&t->d->pool, int32_t, c->n_rows);
    if (!v) return false;
    for (int64_t i = 0; i < c->n_rows; i++) v[i] = (int32_t)t->rows.answer[i];
    c->i32 = v;
    c->n_categories = t->rows.n_classes;
    c->names = t->classes;
    return true;
}

/* Adds the time at which each answer was known. One about no time at all is known right behind its
 * row. */
static bool put_time(RtTask *t, RtTable *to) {
    RtColumn *c = add_column(t, to, "time", RT_COL_TIME);
    double *v = RT_NEWN(&t->d->pool, double, to->count);
    double window = t->made->window > 0 ? t->made->window : 1;
    if (!c || !v) return false;
    for (int64_t i = 0; i < to->count; i++) v[i] = t->rows.time[i] + window;
    c->f64 = v;
    c->why = "when the answer was known";
    to->time = c->name;
    to->time_why = c->why;
    return true;
}

/* Makes an edge from each row to the entity that it is about; false: no memory. */
static bool put_edge(RtTask *t, const RtTable *table, RtTable *to) {
    int32_t *src = RT_NEWN(&t->d->pool, int32_t, table->count);
    *to = (RtTable){.name = rt_pool_printf(&t->d->pool, "%s__%s", table->name, t->entity->name),
                    .count = table->count,
                    .graph = -1,
                    .src = src,
                    .src_type = t->d->n_nodes + 1, /* it comes behind the task */
                    .dst_type = (int)(t->entity - t->d->nodes),
                    .why = "the task's"};
    int32_t *dst = RT_NEWN(&t->d->pool, int32_t, table->count);
    to->dst = dst;
    if (!src || !dst || !to->name) return false;
    for (int64_t i = 0; i < table->count; i++) src[i] = (int32_t)i;
    if (table->count) memcpy(dst, t->rows.entity, (size_t)table->count * sizeof *dst);
    return true;
}

gnnc_status rt_task_history(RtTask *t, RtTable *table, RtTable *edges) {
    const char *name = rt_pool_printf(&t->d->pool, "%s_history", t->made->table);
    if (!name) return rt_fail_nomem(t->err, "task");
    if (t->of_column || t->rows.n_labels)
        return rt_fail(t->err, GNNC_E_ARG, "--label-history is of one answer about the future: %s",
                       t->of_column ? "older answers about a column stand in its table"
                                    : "this task has several");
    if (rt_dataset_nodes(t->d, name))
        return rt_fail(t->err, GNNC_E_STATE, "there is a table '%s' already", name);
    t->made->history = name;
    *table =
        (RtTable){.name = name, .count = t->rows.n, .graph = -1, .src_type = -1, .dst_type = -1};
    bool class = t->rows.n_classes > 0;
    RtColumn *c = add_column(t, table, "answer", class ? RT_COL_CAT : RT_COL_FLOAT);
    bool ok = c && (class ? put_classes(t, c) : put_numbers(t, c)) && put_time(t, table) &&
              put_edge(t, table, edges);
    return ok ? GNNC_OK : rt_fail_nomem(t->err, "task");
}
