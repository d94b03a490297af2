#include "training_metadata.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "runtime/trainer/model_options.h"
#include "runtime/data/json.h"

static const char KEY[] = "gnnc_metrics", TASK[] = "gnnc_task", VARIANT[] = "gnnc_variant";

/* ---- what is learned ------------------------------------------------------------------ */
/* to->key NULL: it has no target, as without a recipe. */
static gnnc_status put_task(const rt_program *p, RtPool *pool, RtMeta *to) {
    const rt_recipe *r = &p->recipe;
    const char *target = r->target ? r->target : r->learned;
    RtText text = {.pool = pool};
    *to = (RtMeta){0};
    if (!r->present || !target) return GNNC_OK;
    bool ok = rt_text_printf(&text, "{\"target\": ") && rt_text_json_string(&text, target) &&
              rt_text_printf(&text, ", \"outcome\": \"%s\"}", rt_outcome_words.word[r->outcome]);
    if (ok) *to = (RtMeta){TASK, text.s};
    return ok ? GNNC_OK : GNNC_E_NOMEM;
}

gnnc_status rt_task_check(const rt_program *p, RtPool *pool, const char *path, const RtTensors *f,
                          const char **other) {
    const char *has = rt_tensors_meta(f, TASK);
    RtMeta gives;
    gnnc_status st = put_task(p, pool, &gives);
    *other = NULL;
    if (st != GNNC_OK || !has || !gives.key || strcmp(has, gives.value) == 0) return st;
    *other = rt_pool_printf(pool, "%s: the weights have learned %.200s, and the model gives %.200s",
                            path, has, gives.value);
    return *other ? GNNC_OK : GNNC_E_NOMEM;
}

/* ---- metrics in files ----------------------------------------------------------------------- */
static bool is_of_a_split(const RtScalar *s) {
    return (s->role == RT_OUT_LOSS || s->role == RT_OUT_METRIC) && (s->split || s->of_split);
}

/* to->key NULL: there is nothing to say. */
static gnnc_status put_reached(const gnnc_trainer *t, const double *values, RtPool *pool,
                               RtMeta *to) {
    RtText text = {.pool = pool};
    bool ok = true;
    *to = (RtMeta){0};
    for (int i = 0; i < t->n_scalars && (values || t->judged); i++) {
        const RtScalar *s = &t->scalars[i];
        double v = values ? values[i] : s->known ? s->value : NAN;
        if (!is_of_a_split(s) || !isfinite(v)) continue;
        ok = ok && rt_text_put(&text, text.n ? ", " : "{", text.n ? 2 : 1);
        ok = ok && rt_text_json_string(&text, s->name) && rt_text_printf(&text, ": %.17g", v);
    }
    if (ok && !text.n) return GNNC_OK;
    ok = ok && rt_text_put(&text, "}", 1);
    if (ok) *to = (RtMeta){KEY, text.s};
    return ok ? GNNC_OK : GNNC_E_NOMEM;
}

/* ---- the variant ---------------------------------------------------------------------- */
/* to->key NULL: there is one program only. */
static gnnc_status put_variant(const gnnc_trainer *t, RtPool *pool, RtMeta *to) {
    *to = (RtMeta){0};
    if (t->first_program->n_variants < 2 || t->rt.device) return GNNC_OK;
    const char *text = rt_pool_printf(pool, "%d", t->variant);
    if (text) *to = (RtMeta){VARIANT, text};
    return text ? GNNC_OK : GNNC_E_NOMEM;
}

int64_t rt_variant_recorded(const RtTensors *f) {
    const char *text = rt_tensors_meta(f, VARIANT);
    char *end = NULL;
    if (!text || *text < '0' || *text > '9') return -1;
    long long v = strtoll(text, &end, 10);
    return *end ? -1 : v;
}

/* Adds the metadata of a training to a file of weights: its task, its options and variant, and the
 * metrics that were achieved. */
gnnc_status rt_training_metadata_put(const gnnc_trainer *t, const double *values, RtPool *pool,
                                     RtMeta *to, int *n) {
    gnnc_status st = put_task(t->program, pool, &to[*n]);
    if (to[*n].key) ++*n;
    if (st == GNNC_OK) st = rt_model_options_put(t, pool, &to[*n]);
    if (to[*n].key) ++*n;
    if (st == GNNC_OK) st = put_variant(t, pool, &to[*n]);
    if (to[*n].key) ++*n;
    if (st == GNNC_OK) st = put_reached(t, values, pool, &to[*n]);
    if (to[*n].key) ++*n;
    return st;
}

/* Reads one metric of the epoch that the weights are of: "loss.val" has a name and a split. */
static gnnc_status read_one(RtPool *pool, const char *path, const RtJson *v, RtMetricValue *to,
                            RtError *err) {
    const char *dot = strrchr(v->key, '.');
    if (v->kind != RT_JSON_NUMBER || !isfinite(v->number))
        return rt_fail(err, GNNC_E_FORMAT, "%s: metadata '%s': '%s' is no number", path, KEY,
                       v->key);
    size_t n = dot ? (size_t)(dot - v->key) : strlen(v->key);
    *to = (RtMetricValue){v->key, rt_pool_strndup(pool, v->key, n), dot ? dot + 1 : "", v->number};
    return to->of ? GNNC_OK : rt_fail_nomem(err, path);
}

gnnc_status rt_metric_values_read(RtPool *pool, const char *path, const RtTensors *f,
                                  RtMetricValue **out, int *n, RtError *err) {
    const char *text = rt_tensors_meta(f, KEY);
    RtJson *all;
    gnnc_status st;
    *n = 0;
    *out = NULL;
    if (!text) return GNNC_OK;
    TRY(st, rt_json_parse(pool, (RtBytes){(const uint8_t *)text, strlen(text)}, path, &all, err));
    if (all->kind != RT_JSON_OBJECT)
        return rt_fail(err, GNNC_E_FORMAT, "%s: metadata '%s' is no object", path, KEY);
    if (!(*out = RT_NEWN(pool, RtMetricValue, all->n + 1))) return rt_fail_nomem(err, path);
    for (const RtJson *v = all->first; v; v = v->next)
        TRY(st, read_one(pool, path, v, &(*out)[(*n)++], err));
out:
    return st;
}

/* ---- of a model ------------------------------------------------------------------------ */
int gnnc_model_n_metrics(const gnnc_model *m) {
    return m ? m->n_reached : 0;
}

gnnc_status gnnc_model_metric_info(const gnnc_model *m, int i, gnnc_metric_info *out) {
    if (!m || !out) return GNNC_E_ARG;
    gnnc_status st = RT_STRUCT_CHECK(NULL, gnnc_metric_info, out, value);
    if (st != GNNC_OK) return st;
    if (i < 0 || i >= m->n_reached) return GNNC_E_RANGE;
    const RtMetricValue *r = &m->reached[i];
    gnnc_metric_info own = {
        .name = r->name, .of = r->of, .split = r->split, .known = 1, .value = r->value};
    rt_struct_copy_out(out, &own, sizeof own);
    return GNNC_OK;
}
