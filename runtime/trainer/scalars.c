/* The numbers of a training: losses, metrics and what a model logs, by name and split. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/contract.h"
#include "runtime/device/device.h"
#include "trainer.h"

static bool is_metric(const rt_buf *b) {
    bool read = b->role == RT_OUT_LOSS || b->role == RT_OUT_METRIC || b->role == RT_OUT_LOG;
    return b->kind == RT_BUF_OUTPUT && b->rank == 0 && read;
}

/* The output that says whether a logged one of the same phase happened. */
static int condition_of(const rt_program *p, int buf) {
    const rt_buf *log = buf >= 0 ? &p->bufs[buf] : NULL;
    for (int b = 0; log && log->role == RT_OUT_LOG && b < p->n_bufs; b++) {
        const rt_buf *c = &p->bufs[b];
        if (c->role == RT_OUT_LOGGED && c->phase == log->phase && !strcmp(c->of, log->of)) return b;
    }
    return -1;
}

/* The output that says over how many rows a metric was computed; -1: none does. */
static int rows_of(const rt_program *p, const char *metric) {
    for (int b = 0; b < p->n_bufs; b++)
        if (p->bufs[b].role == RT_OUT_ROWS && !strcmp(p->bufs[b].of, metric)) return b;
    return -1;
}

/* One output of links' @eval is a metric of either held-out split. */
static gnnc_status add_link_metric(gnnc_trainer *t, int buf) {
    const rt_program *p = t->program;
    const char *of = p->bufs[buf].of;
    for (int split = RT_SPLIT_VAL; split <= RT_SPLIT_TEST; split++) {
        const char *name = rt_pool_printf(&t->rt.pool, "%s.%s", of, rt_split_words.word[split]);
        if (!name) return GNNC_E_NOMEM;
        t->scalars[t->n_scalars++] = (RtScalar){.name = name,
                                                .role = RT_OUT_METRIC,
                                                .of = of,
                                                .buf = -1,
                                                .phase = -1,
                                                .eval_buf = -1,
                                                .when_buf = -1,
                                                .of_split = split,
                                                .sum_buf = buf,
                                                .rows_buf = rows_of(p, of)};
    }
    return GNNC_OK;
}

/* Adds what a buffer gives to the list of losses, metrics and logged numbers. What @eval logs again
 * under the same name only adds a second place to read it. */
static void add_scalar(gnnc_trainer *t, const char *name, int buf) {
    const rt_buf *b = buf >= 0 ? &t->program->bufs[buf] : NULL;
    for (int i = 0; i < t->n_scalars; i++)
        if (strcmp(t->scalars[i].name, name) == 0) {
            if (b && b->role == RT_OUT_LOG) t->scalars[i].eval_buf = buf;
            return;
        }
    t->scalars[t->n_scalars++] = (RtScalar){.name = name,
                                            .buf = buf,
                                            .phase = b ? b->phase : -1,
                                            .role = b ? b->role : RT_OUT_VALUE,
                                            .of = b ? b->of : NULL,
                                            .eval_buf = -1,
                                            .split = b ? (int)b->split : 0,
                                            .when_buf = condition_of(t->program, buf)};
}

gnnc_status rt_scalars_init(gnnc_trainer *t) {
    const rt_program *p = t->program;
    t->scalars = RT_NEWN(&t->rt.pool, RtScalar, 2 * p->n_bufs + 1);
    t->best_values = RT_NEWN(&t->rt.pool, double, 2 * p->n_bufs + 1);
    if (!t->scalars || !t->best_values) return GNNC_E_NOMEM;
    add_scalar(t, "lr", -1);
    for (int b = 0; b < p->n_bufs; b++) {
        if (!is_metric(&p->bufs[b])) continue;
        bool of_links = p->sampling.eval_links && p->bufs[b].role == RT_OUT_METRIC;
        if (!of_links)
            add_scalar(t, p->bufs[b].io_name, b);
        else if (add_link_metric(t, b) != GNNC_OK)
            return GNNC_E_NOMEM;
    }
    const rt_recipe *r = &p->recipe;
    char name[128];
    t->keep = -1;
    if (!r->present || !r->keep_metric) return GNNC_OK;
    snprintf(name, sizeof name, "%s.%s", r->keep_metric, rt_split_words.word[r->keep_split & 3]);
    RtScalar *s = rt_scalar_find(t, name);
    if (!s) s = rt_scalar_find(t, r->keep_metric);
    if (s) t->keep = (int)(s - t->scalars);
    return GNNC_OK;
}

/* The scalar of that name; NULL: there is none. */
RtScalar *rt_scalar_find(gnnc_trainer *t, const char *name) {
    for (int i = 0; i < t->n_scalars; i++)
        if (strcmp(t->scalars[i].name, name) == 0) return &t->scalars[i];
    return NULL;
}

RtScalar *rt_scalar_loss(gnnc_trainer *t, rt_split split) {
    for (int i = 0; i < t->n_scalars; i++)
        if (t->scalars[i].role == RT_OUT_LOSS && t->scalars[i].split == (int)split)
            return &t->scalars[i];
    return NULL;
}

/* Reads the phase's scalars after it ran. One whose condition did not hold, or whose split has no
 * rows, is not known. */
gnnc_status rt_scalars_read(gnnc_trainer *t, int phase) {
    for (int i = 0; i < t->n_scalars; i++) {
        RtScalar *s = &t->scalars[i];
        if (s->buf < 0 || s->phase != phase) continue;
        gnnc_status st = rt_pull(&t->x, s->buf); /* of a device that failed meanwhile */
        if (st != GNNC_OK) return st;
        s->value = rt_buf_read(&t->x, s->buf, 0);
        s->known = s->when_buf < 0 || rt_buf_read(&t->x, s->when_buf, 0) != 0;
        s->known &= !s->split || t->split_rows[s->split] != 0;
    }
    return GNNC_OK;
}

void rt_scalars_read_logs(gnnc_trainer *t) {
    for (int i = 0; i < t->n_scalars; i++) {
        RtScalar *s = &t->scalars[i];
        if (s->eval_buf < 0) continue;
        int when = condition_of(t->program, s->eval_buf);
        s->value = rt_buf_read(&t->x, s->eval_buf, 0);
        s->known = when < 0 || rt_buf_read(&t->x, when, 0) != 0;
    }
}

void rt_scalar_set(gnnc_trainer *t, const char *name, double v) {
    RtScalar *s = rt_scalar_find(t, name);
    s->value = v;
    s->known = true;
}

int gnnc_trainer_n_metrics(const gnnc_trainer *t) {
    if (!t) return 0;
    return t->n_scalars;
}

static bool is_known(const gnnc_trainer *t, const RtScalar *s) {
    return s->known && !(s->split && t->loaded && t->split_rows[s->split] == 0);
}

gnnc_status gnnc_trainer_metric_info(gnnc_trainer *t, int i, gnnc_metric_info *out) {
    RT_NOT_NULL(t, out);
    rt_trainer_begin(t);
    gnnc_status st = RT_STRUCT_CHECK(&t->rt.err, gnnc_metric_info, out, value);
    if (st != GNNC_OK) return st;
    if (i < 0 || i >= t->n_scalars) return rt_fail(&t->rt.err, GNNC_E_RANGE, "no metric %d", i);
    const RtScalar *s = &t->scalars[i];
    int split = s->of_split ? s->of_split : s->split;
    gnnc_metric_info own = {.name = s->name,
                            .of = s->of ? s->of : s->name,
                            .split = split ? rt_split_words.word[split] : "",
                            .is_logged = s->role == RT_OUT_LOG,
                            .known = is_known(t, s),
                            .value = is_known(t, s) ? s->value : NAN};
    rt_struct_copy_out(out, &own, sizeof own);
    return GNNC_OK;
}

gnnc_status gnnc_trainer_metric(gnnc_trainer *t, const char *name, double *value) {
    RT_NOT_NULL(t, name);
    RT_NOT_NULL(t, value);
    rt_trainer_begin(t);
    const RtScalar *s = rt_scalar_find(t, name);
    if (!s) return rt_fail(&t->rt.err, GNNC_E_MISSING, "no metric '%s'", name);
    if (s->split && t->loaded && t->split_rows[s->split] == 0)
        return rt_fail(&t->rt.err, GNNC_E_MISSING, "'%s' is of a split without rows", name);
    if (!s->known) return rt_fail(&t->rt.err, GNNC_E_MISSING, "'%s' was not computed yet", name);
    *value = s->value;
    return GNNC_OK;
}
