/* Rows that are asked about at a date.  A model of questions about the future (docs/tasks.md)
 * learns of a table with a row for each entity and time.  In place of it stands one whose
 * rows are all entities that are there at the date, without labels; so that nothing but this table
 * differs from what the model learned of.  What is changed is the trainer's own view of the data.
 */
#include <math.h>
#include <string.h>

#include "bind.h"
#include "runtime/model/codes.h"

typedef struct {
    RtExec *x;
    RtDataset *d;
    double at;
    int space, edges;      /* of the rows that are predicted, and from them to their entities */
    const rt_column *time; /* of the rows */
    RtTable rows, about;
    const RtTable *entity; /* whose rows are asked about */
} Asking;

/* Fails with the reason why the rows cannot be asked about at another time, and the name that it is
 * about. */
static gnnc_status refuse(const Asking *a, const char *why, const char *name) {
    const rt_program *p = a->x->program;
    return rt_fail(&a->x->rt->err, GNNC_E_ARG,
                   "at: rows of '%s' are not asked about at a time of one's choice: %s%s%s%s",
                   p->spaces[a->space].name, why, name ? " '" : "", name ? name : "",
                   name ? "'" : "");
}

static gnnc_status no_memory(const Asking *a) {
    return rt_fail_nomem(&a->x->rt->err, "the rows that are asked about");
}

/* ---- what the model learned of ------------------------------------------------------------ */
/* Finds the rows that the model predicts, which must be nodes. */
static gnnc_status find_rows(Asking *a) {
    const rt_program *p = a->x->program;
    int pred = rt_buf_find(p, RT_BUF_OUTPUT, "pred");
    a->space = pred < 0 || !p->bufs[pred].rank ? -1 : p->bufs[pred].space;
    if (a->space >= 0 && p->spaces[a->space].first) a->space = p->spaces[a->space].whole;
    if (a->space >= 0 && p->spaces[a->space].kind == RT_SP_NODE) return GNNC_OK;
    return rt_fail(&a->x->rt->err, GNNC_E_ARG, "at: '%s' predicts no rows of nodes", p->name);
}

/* Finds the column with the time of the predicted rows. A row that stands for an entity at a date
 * has this time and no other values, so a model that reads more of them is refused; labels and
 * splits, which training alone reads, may be there. */
static gnnc_status find_time(Asking *a) {
    const rt_program *p = a->x->program;
    for (int i = 0; i < p->sampling.n_times; i++)
        if (p->columns[p->sampling.times[i]].space == a->space)
            a->time = &p->columns[p->sampling.times[i]];
    if (!a->time) return refuse(a, "the model does not read them by a time", NULL);
    for (int i = 0; i < p->n_columns; i++) {
        const rt_column *c = &p->columns[i];
        bool trains = c->is_label || c->kind == RT_COL_SPLIT;
        if (c->space == a->space && c != a->time && !trains && rt_bind_is_used(p, i))
            return refuse(a, "the model reads their column", c->name);
    }
    return GNNC_OK;
}

/* Finds the only relation that leads from the rows to what they are about; other relations would
 * tell what is known of them at their own time. */
static gnnc_status find_edges(Asking *a) {
    const rt_program *p = a->x->program;
    for (int i = 0; i < p->n_spaces; i++) {
        const rt_space *s = &p->spaces[i];
        if (s->kind != RT_SP_EDGE || s->rel != RT_REL_BASE || s->first) continue;
        if (s->dst == a->space) return refuse(a, "they are referred to by", s->name);
        if (s->src != a->space) continue;
        if (a->edges >= 0) return refuse(a, "they refer to other rows by", s->name);
        a->edges = i;
    }
    if (a->edges < 0) return refuse(a, "they refer to no rows", NULL);
    const rt_space *entity = &p->spaces[p->spaces[a->edges].dst];
    a->entity = rt_dataset_nodes(a->d, entity->name);
    if (a->entity) return GNNC_OK;
    return rt_fail(&a->x->rt->err, GNNC_E_MISSING, "%s: no node type '%s'", a->x->rt->bound->dir,
                   entity->name);
}

/* ---- what stands in its place -------- */
/* The entities that are there: as an import asks about them. */
static gnnc_status make_rows(Asking *a) {
    const rt_program *p = a->x->program;
    RtPool *pool = &a->d->pool;
    const RtColumn *born = a->entity->time ? rt_table_time(a->entity) : NULL;
    int64_t n = 0, most = a->entity->count;
    int32_t *src = RT_NEWN(pool, int32_t, most + 1), *dst = RT_NEWN(pool, int32_t, most + 1);
    double *time = RT_NEWN(pool, double, most + 1);
    RtColumn *c = RT_NEW(pool, RtColumn);
    if (!src || !dst || !time || !c) return no_memory(a);
    for (int64_t i = 0; i < most; i++) {
        if (born && !(born->f64[i] <= a->at)) continue;
        time[n] = a->at;
        src[n] = (int32_t)n;
        dst[n++] = (int32_t)i;
    }
    *c = (RtColumn){.name = a->time->name, .kind = RT_COL_TIME, .n_rows = n, .rank = 1};
    c->shape[0] = n;
    c->f64 = time;
    a->rows = (RtTable){.name = p->spaces[a->space].name, .count = n, .n_columns = 1};
    a->rows.columns = c;
    a->rows.time = c->name;
    a->rows.graph = a->rows.src_type = a->rows.dst_type = -1;
    a->about = (RtTable){.name = p->spaces[a->edges].name, .count = n, .graph = -1};
    a->about.src = src;
    a->about.dst = dst;
    a->about.dst_type = (int)(a->entity - a->d->nodes);
    return GNNC_OK;
}

/* Each row that is asked about is called after its entity: by its name, or its number. */
static gnnc_status name_rows_after_entities(Asking *a) {
    RtPool *pool = &a->d->pool;
    const char *const *of;
    const char **names = RT_NEWN(pool, const char *, a->rows.count + 1);
    gnnc_status st = rt_row_names(pool, a->x->rt->bound->dir, a->entity, &of, &a->x->rt->err);
    if (st == GNNC_OK && !names) st = no_memory(a);
    for (int64_t i = 0; i < a->rows.count && st == GNNC_OK; i++) {
        int32_t row = a->about.dst[i];
        names[i] = of ? of[row] : rt_pool_printf(pool, "%lld", (long long)row);
        if (!names[i]) st = no_memory(a);
    }
    a->rows.names = names;
    return st;
}

/* Puts a table in place of the one of that name, or behind all; returns its number, -1: no
 * memory. */
static int put_table(RtPool *pool, RtTable **tables, int *n, const RtTable *t) {
    int at = 0;
    while (at < *n && strcmp((*tables)[at].name, t->name) != 0) at++;
    if (at == *n) {
        RtTable *more = RT_NEWN(pool, RtTable, *n + 1);
        if (!more) return -1;
        if (*n) memcpy(more, *tables, (size_t)*n * sizeof *more);
        *tables = more;
        ++*n;
    }
    (*tables)[at] = *t;
    return at;
}

gnnc_status rt_bind_at(RtExec *x, RtDataset *view, double at) {
    Asking a = {.x = x, .d = view, .at = at, .space = -1, .edges = -1};
    gnnc_status st;
    TRY(st, find_rows(&a));
    TRY(st, find_time(&a));
    TRY(st, find_edges(&a));
    TRY(st, make_rows(&a));
    TRY(st, name_rows_after_entities(&a));
    a.about.src_type = put_table(&view->pool, &view->nodes, &view->n_nodes, &a.rows);
    if (a.about.src_type < 0 || put_table(&view->pool, &view->edges, &view->n_edges, &a.about) < 0)
        st = no_memory(&a);
out:
    return st;
}
