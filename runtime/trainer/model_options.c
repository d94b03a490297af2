/* Options that a model declares.  A size is bound before data are; a real number is an input, which
 * is written once, as it does not change.  Files of weights record both with the fan-outs, so that
 * who predicts says nothing. */
#include "model_options.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "runtime/batch/batch_sizes.h"
#include "runtime/data/json.h"
#include "runtime/device/device.h"
#include "runtime/model/codes.h"

static const char KEY[] = "gnnc_options";

/* Makes the values of the model's options, at first their defaults. */
gnnc_status rt_model_options_new(gnnc_trainer *t) {
    const rt_program *p = t->program;
    t->option_value = RT_NEWN(&t->rt.pool, double, p->n_options);
    t->option_set = RT_NEWN(&t->rt.pool, bool, p->n_options);
    t->option_known = RT_NEWN(&t->rt.pool, bool, p->n_options);
    if (!t->option_value || !t->option_set || !t->option_known) return GNNC_E_NOMEM;
    for (int i = 0; i < p->n_options; i++) t->option_value[i] = p->option[i].first;
    t->rt.option_value = t->option_value;
    t->rt.option_known = t->option_known;
    return GNNC_OK;
}

int rt_model_option_find(const rt_program *p, const char *name) {
    for (int i = 0; i < p->n_options; i++)
        if (strcmp(p->option[i].name, name) == 0) return i;
    return -1;
}

static bool is_size(const rt_model_option *o) {
    return o->sym >= 0;
}

/* A size as it is, a real number as phases read it: rounded to f32.  Of what f32 does not hold
 * nothing is made: it is outside of every range. */
static double value_in_use(const rt_model_option *o, double v) {
    return is_size(o) || !(fabs(v) <= (double)FLT_MAX) ? v : (double)(float)v;
}

/* Checks a value in use against the option's range.  who: the file that says it; "" = the host. */
static gnnc_status check(gnnc_trainer *t, const rt_model_option *o, double v, const char *who) {
    if (v >= o->least && v <= o->most && (!is_size(o) || v == floor(v))) return GNNC_OK;
    const char *why = v < o->least ? o->why_least : v > o->most ? o->why_most : NULL;
    return rt_fail(&t->rt.err, GNNC_E_RANGE, "%s%s'%s' is %.10g, %s between %.10g and %.10g%s%s",
                   who, *who ? ": " : "", o->name, v, is_size(o) ? "not a whole number" : "not",
                   o->least, o->most, why ? ": " : "", why ? why : "");
}

gnnc_status rt_model_option_set(gnnc_trainer *t, int i, gnnc_option_type type, double value) {
    const rt_model_option *o = &t->program->option[i];
    if (is_size(o) != (type == GNNC_OPTION_INT))
        return rt_fail(&t->rt.err, GNNC_E_MISSING, "'%s' is a %snumber of the model", o->name,
                       is_size(o) ? "whole " : "");
    if (t->planned)
        return rt_fail(&t->rt.err, GNNC_E_STATE, "'%s': it must be set before load", o->name);
    gnnc_status st = check(t, o, value_in_use(o, value), "");
    if (st != GNNC_OK) return st;
    t->option_value[i] = value;
    t->option_set[i] = t->option_known[i] = true;
    return GNNC_OK;
}

/* Describes option i of the model. */
void rt_model_option_tell(const gnnc_trainer *t, int i, gnnc_option *to) {
    const rt_model_option *o = &t->program->option[i];
    *to = (gnnc_option){.name = o->name,
                        .help = o->why_least  ? o->why_least
                                : o->why_most ? o->why_most
                                : is_size(o)  ? "a size of the model"
                                              : "a number of the model",
                        .type = is_size(o) ? GNNC_OPTION_INT : GNNC_OPTION_REAL,
                        .settable = !t->planned,
                        .is_set = t->option_set[i]};
    if (!is_size(o)) {
        to->real_value = t->option_value[i];
        to->real_default = o->first;
        to->real_least = o->least;
        to->real_most = o->most;
        return;
    }
    to->int_value = (int64_t)t->option_value[i];
    to->int_default = (int64_t)o->first;
    to->int_least = (int64_t)o->least;
    to->int_most = (int64_t)o->most;
}

/* ---- in files of weights ---------------------------------------------------------- */
gnnc_status rt_model_options_put(const gnnc_trainer *t, RtPool *pool, RtMeta *to) {
    const rt_program *p = t->program;
    RtText text = {.pool = pool};
    bool ok = rt_text_put(&text, "{", 1);
    *to = (RtMeta){0};
    for (int i = 0; i < p->n_options; i++) {
        ok = ok && rt_text_put(&text, ", ", text.n > 1 ? 2 : 0);
        ok = ok && rt_text_json_string(&text, p->option[i].name);
        ok = ok && rt_text_printf(&text, ": %.17g", t->option_value[i]);
    }
    if (t->options.own_fanout)
        ok = ok && rt_text_printf(&text, "%s\"fanout\": ", text.n > 1 ? ", " : "") &&
             rt_text_json_string(&text, t->options.fanout);
    if (ok && text.n == 1) return GNNC_OK;
    ok = ok && rt_text_put(&text, "}", 1);
    if (ok) *to = (RtMeta){KEY, text.s};
    return ok ? GNNC_OK : GNNC_E_NOMEM;
}

/* *all NULL: the file says nothing of them. */
static gnnc_status read_all(gnnc_trainer *t, RtPool *pool, const char *path, const RtTensors *f,
                            RtJson **all) {
    const char *text = rt_tensors_meta(f, KEY);
    *all = NULL;
    if (!text) return GNNC_OK;
    RtBytes bytes = {(const uint8_t *)text, strlen(text)};
    gnnc_status st = rt_json_parse(pool, bytes, path, all, &t->rt.err);
    if (st == GNNC_OK && (*all)->kind != RT_JSON_OBJECT)
        st = rt_fail(&t->rt.err, GNNC_E_FORMAT, "%s: metadata '%s' is no object", path, KEY);
    return st;
}

/* The number of option i; *has: there is one. */
static gnnc_status read_one(gnnc_trainer *t, const char *path, const RtJson *all, int i, bool *has,
                            double *to) {
    const rt_model_option *o = &t->program->option[i];
    const RtJson *v = rt_json_get(all, o->name);
    *has = v != NULL;
    if (!v) return GNNC_OK;
    if (v->kind != RT_JSON_NUMBER)
        return rt_fail(&t->rt.err, GNNC_E_FORMAT, "%s: metadata '%s': '%s' is no number", path, KEY,
                       o->name);
    *to = v->number;
    return GNNC_OK;
}

/* Whether the program draws neighbours as the recipe says. One that serves rows with all of their
 * neighbours has hops, too, as many as its predictions reach; where it draws, each row has a tree
 * of its own. */
static bool draws(const rt_sampling *s) {
    return s->n_hops && (!s->serve || s->disjoint);
}

/* One of a program with other hops is not followed: it says nothing of this one's. */
static void take_fanout(gnnc_trainer *t, const RtJson *all) {
    const RtJson *v = rt_json_get(all, "fanout");
    RtOptions *o = &t->options;
    int32_t hop[RT_MAX_HOPS] = {0};
    int n_hops = t->program->sampling.n_hops;
    if (!v || v->kind != RT_JSON_STRING || o->set[RT_OPTION_fanout] || !n_hops) return;
    bool fits = strlen(v->text) < RT_OPTION_TEXT_SIZE;
    if (!fits || rt_fanout_parse(v->text, n_hops, hop) != n_hops) return;
    memcpy(o->fanout, v->text, strlen(v->text) + 1);
    memcpy(o->hop_fanout, hop, sizeof hop);
    o->own_fanout = true;
}

gnnc_status rt_model_options_take(gnnc_trainer *t) {
    RtPool pool;
    RtJson *all = NULL;
    gnnc_status st = GNNC_OK;
    if (!t->given) return st;
    rt_pool_init(&pool, &t->rt.pool.from);
    TRY(st, read_all(t, &pool, t->given->path, &t->given->f, &all));
    for (int i = 0; all && i < t->program->n_options; i++) {
        double v;
        bool has;
        TRY(st, read_one(t, t->given->path, all, i, &has, &v));
        if (!has || t->option_set[i]) continue;
        const rt_model_option *o = &t->program->option[i];
        TRY(st, check(t, o, value_in_use(o, v), t->given->path));
        t->option_value[i] = v;
        t->option_known[i] = true;
    }
    if (all && draws(&t->program->sampling)) take_fanout(t, all);
out:
    rt_pool_free(&pool);
    return st;
}

/* Finds the first option of which a file that comes after the data says another value than the one
 * in use, which nobody has set.  *other: its number, -1 = none; *value: the file's. */
static gnnc_status find_other(gnnc_trainer *t, const char *path, const RtTensors *f, int *other,
                              double *value) {
    RtPool pool;
    RtJson *all;
    gnnc_status st;
    *other = -1;
    rt_pool_init(&pool, &t->rt.pool.from);
    TRY(st, read_all(t, &pool, path, f, &all));
    for (int i = 0; all && i < t->program->n_options && *other < 0; i++) {
        bool has;
        TRY(st, read_one(t, path, all, i, &has, value));
        const rt_model_option *o = &t->program->option[i];
        double own = value_in_use(o, t->option_value[i]);
        if (has && value_in_use(o, *value) != own && !t->option_set[i]) *other = i;
    }
out:
    rt_pool_free(&pool);
    return st;
}

gnnc_status rt_model_options_check(gnnc_trainer *t, const char *path, const RtTensors *f) {
    int i;
    double v;
    gnnc_status st = find_other(t, path, f, &i, &v);
    if (st != GNNC_OK || i < 0) return st;
    return rt_fail(&t->rt.err, GNNC_E_ARG,
                   "%s: the checkpoint is of another '%s': %.10g, not %.10g", path,
                   t->program->option[i].name, v, t->option_value[i]);
}

gnnc_status rt_model_options_compare(gnnc_trainer *t, const char *path, const RtTensors *f) {
    int i;
    double v;
    gnnc_status st = find_other(t, path, f, &i, &v);
    if (st == GNNC_OK && i >= 0)
        rt_message(&t->rt, "%s: '%s' is %.10g there; %.10g stays, as the data are bound already",
                   path, t->program->option[i].name, v, t->option_value[i]);
    return st;
}

/* ---- when data are bound ---------------------------------------------------------- */
gnnc_status rt_model_options_bound(gnnc_trainer *t) {
    const rt_program *p = t->program;
    for (int i = 0; i < p->n_options; i++) {
        const rt_model_option *o = &p->option[i];
        if (is_size(o)) {
            t->option_value[i] = (double)t->x.n[o->sym];
            gnnc_status st = check(t, o, t->option_value[i], t->given ? t->given->path : "");
            if (st != GNNC_OK) return st;
        } else if (o->buf >= 0) {
            *(float *)t->x.buf[o->buf] = (float)t->option_value[i];
            rt_push(&t->x, o->buf);
        }
    }
    return GNNC_OK;
}

uint64_t rt_model_options_hash(const gnnc_trainer *t) {
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, of 64 bits at once */
    for (int i = 0; i < t->program->n_options; i++) {
        double v = value_in_use(&t->program->option[i], t->option_value[i]);
        uint64_t bits;
        memcpy(&bits, &v, sizeof bits);
        h = (h ^ bits) * 0x100000001b3u;
    }
    return h;
}
