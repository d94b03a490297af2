/* Setting and listing options, by the one table (gnnc.h, GNNC_OPTION_MAP). */
#include "options.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/batch/batch_sizes.h"
#include "runtime/data/dates.h"
#include "runtime/device/device.h"
#include "runtime/trainer/model_options.h"
#include "runtime/trainer/trainer.h"

typedef struct {
    const char *name, *help;
    gnnc_option_type type;
    size_t offset; /* in RtOptions */
    int64_t least, most;
    double real_least;
} Option;

static const Option OPTIONS[] = {
#define INT(name, standard, least, most, help)                                                     \
    {#name, help, GNNC_OPTION_INT, offsetof(RtOptions, name), least, most, 0},
#define REAL(name, standard, least, help)                                                          \
    {#name, help, GNNC_OPTION_REAL, offsetof(RtOptions, name), 0, 0, least},
#define TEXT(name, standard, help)                                                                 \
    {#name, help, GNNC_OPTION_TEXT, offsetof(RtOptions, name), 0, 0, 0},
    GNNC_OPTION_MAP(INT, REAL, TEXT)
#undef INT
#undef REAL
#undef TEXT
};

/* How many the program draws in a hop along each relation along which it draws; 0: along none.
 * False: relations differ. */
static bool fanout_of_hop(const rt_program *p, int hop, int32_t *to) {
    *to = 0;
    for (int i = 0; i < p->n_spaces; i++) {
        int32_t k = p->sampling.fanout[hop * p->n_spaces + i];
        if (k && *to && k != *to) return false;
        if (k) *to = k;
    }
    return true;
}

/* Writes the program's fan-outs as "10,5"; "": those of relations differ, or there is no room for
 * them. */
static void print_fanout(const rt_program *p, char *to, size_t n) {
    size_t at = 0;
    int32_t k;
    for (int h = 0; h < p->sampling.n_hops && at < n; h++)
        at = fanout_of_hop(p, h, &k)
                 ? at + (size_t)snprintf(to + at, n - at, "%s%d", h ? "," : "", k)
                 : n;
    if (at >= n) *to = '\0';
}

RtOptions rt_options_of(const rt_program *p) {
    const rt_recipe *r = &p->recipe;
    RtOptions o = {
#define FIELD(name, standard, ...) .name = standard,
        GNNC_OPTION_MAP(FIELD, FIELD, FIELD)
#undef FIELD
            .asked = NAN,
        .ordinal = -1};
    o.epochs = r->present ? r->epochs : 0;
    o.lr = r->lr;
    o.weight_decay = r->weight_decay;
    o.batch = p->sampling.batch;
    print_fanout(p, o.fanout, sizeof o.fanout);
    o.tf32 = p->tf32;
    return o;
}

static const void *at(const RtOptions *o, const Option *of) {
    return (const char *)o + of->offset;
}

static int index_of(const Option *o) {
    return (int)(o - OPTIONS);
}

/* Why an option cannot be set; NULL: it can. */
static const char *fixed(const gnnc_trainer *t, int option, gnnc_status *st) {
    const rt_program *p = t->program;
    *st = GNNC_E_MISSING;
    if (option == RT_OPTION_fanout && !p->sampling.n_hops)
        return "the model draws no neighbours ('fanout' in its sample block)";
    if ((option == RT_OPTION_batch || option == RT_OPTION_workers) && !p->sampling.batch)
        return "the model is not trained by batches";
    if (option == RT_OPTION_weight_decay && rt_buf_find(p, RT_BUF_INPUT, "weight_decay") < 0)
        return "the weight decay was compiled into this model";
    bool by_rows = rt_predicts_batches(p) && !p->sampling.train_links && !p->sampling.eval_links;
    if (option == RT_OPTION_eval_rows && !by_rows)
        return "the model evaluates the whole graph at once ('evaluate drawn' in its sample block)";
    *st = GNNC_E_STATE;
    return t->loaded && option != RT_OPTION_epochs ? "it must be set before load" : NULL;
}

/* Finds the option of that name and type. */
static gnnc_status find(gnnc_trainer *t, const char *name, gnnc_option_type type,
                        const Option **out) {
    static const char *const word[] = {"whole number", "number", "text"};
    for (int i = 0; i < RT_N_OPTIONS; i++) {
        if (strcmp(OPTIONS[i].name, name) != 0 || OPTIONS[i].type != type) continue;
        *out = &OPTIONS[i];
        return GNNC_OK;
    }
    return rt_fail(&t->rt.err, GNNC_E_MISSING, "no option '%s' that is a %s", name, word[type]);
}

/* Sets an option. What is fixed may be set to what it is. */
static gnnc_status set(gnnc_trainer *t, const Option *o, const void *value, size_t n) {
    _Static_assert(sizeof "cuda:9999" <= RT_OPTION_TEXT_SIZE, "of what rt_options_where takes");
    gnnc_status st;
    char *to = (char *)&t->options + o->offset;
    const char *why = fixed(t, index_of(o), &st);
    if (why && (st == GNNC_E_STATE || memcmp(to, value, n) != 0))
        return rt_fail(&t->rt.err, st, "'%s': %s", o->name, why);
    memcpy(to, value, n);
    t->options.set[index_of(o)] = true;
    t->schedule.epochs = t->options.epochs;
    return GNNC_OK;
}

gnnc_status gnnc_trainer_set_int(gnnc_trainer *t, const char *option, int64_t value) {
    RT_NOT_NULL(t, option);
    rt_trainer_begin(t);
    const Option *o;
    int own = rt_model_option_find(t->program, option);
    if (own >= 0) return rt_model_option_set(t, own, GNNC_OPTION_INT, (double)value);
    gnnc_status st = find(t, option, GNNC_OPTION_INT, &o);
    if (st != GNNC_OK) return st;
    if (value < o->least || value > o->most)
        return rt_fail(&t->rt.err, GNNC_E_RANGE, "'%s' is %lld, not between %lld and %lld", option,
                       (long long)value, (long long)o->least, (long long)o->most);
    return set(t, o, &value, sizeof value);
}

gnnc_status gnnc_trainer_set_real(gnnc_trainer *t, const char *option, double value) {
    RT_NOT_NULL(t, option);
    rt_trainer_begin(t);
    const Option *o;
    int own = rt_model_option_find(t->program, option);
    if (own >= 0) return rt_model_option_set(t, own, GNNC_OPTION_REAL, value);
    gnnc_status st = find(t, option, GNNC_OPTION_REAL, &o);
    if (st != GNNC_OK) return st;
    if (!isfinite(value) || value < o->real_least)
        return rt_fail(&t->rt.err, GNNC_E_RANGE, "'%s' is %g, and must be a number >= %g", option,
                       value, o->real_least);
    return set(t, o, &value, sizeof value);
}

/* ---- where it runs ------------------------------------------------------------- */
/* Reads "cuda", or "cuda:1", which is device number 1 (*ordinal, else -1); false: it is neither. */
static bool parse_device(const char *device, const char *s, int *ordinal) {
    size_t n = strlen(device);
    *ordinal = -1;
    if (strncmp(s, device, n) != 0) return false;
    if (!s[n]) return true;
    size_t digits = s[n] == ':' ? strspn(s + n + 1, "0123456789") : 0;
    if (digits < 1 || digits > 4 || s[n + 1 + digits]) return false;
    *ordinal = atoi(s + n + 1);
    return true;
}

gnnc_status rt_options_where(gnnc_trainer *t, const char *name, RtWhere *where, int *ordinal) {
    const RtDeviceOps *d = t->program->device;
    *ordinal = -1;
    if (strcmp(name, "auto") == 0)
        *where = RT_ON_ANY;
    else if (strcmp(name, "cpu") == 0 && rt_runs_on_host(t->program))
        *where = RT_ON_HOST;
    else if (d && parse_device(d->name, name, ordinal))
        *where = RT_ON_DEVICE;
    else
        return rt_fail(&t->rt.err, GNNC_E_MISSING,
                       "this trainer was compiled for %s, not for '%s' (gnnc --target=cpu,cuda)",
                       !d                            ? "the cpu"
                       : rt_runs_on_host(t->program) ? "cpu and cuda"
                                                     : d->name,
                       name);
    return GNNC_OK;
}

/* Sets the option that says on which device to run: as text, and as the kind of device and its
 * number. */
static gnnc_status set_where(gnnc_trainer *t, const Option *o, const char *value) {
    RtWhere where = RT_ON_ANY;
    int ordinal;
    gnnc_status st;
    TRY(st, rt_options_where(t, value, &where, &ordinal));
    TRY(st, set(t, o, value, strlen(value) + 1));
    t->options.where = where;
    t->options.ordinal = ordinal;
out:
    return st;
}

/* Sets the time that is asked about: "2024-06-01", or seconds, of which no clock counts 2^63; "":
 * none. */
static gnnc_status set_at(gnnc_trainer *t, const Option *o, const char *value) {
    double at = NAN;
    bool fits = strlen(value) < RT_OPTION_TEXT_SIZE;
    if (*value && (!fits || !rt_cell_time(value, &at) || !(fabs(at) < 0x1p63)))
        return rt_fail(&t->rt.err, GNNC_E_RANGE, "'at' is '%.64s': a date is expected, 2024-01-31",
                       value);
    gnnc_status st = set(t, o, value, strlen(value) + 1);
    if (st == GNNC_OK) t->options.asked = at;
    return st;
}

/* ---- what is drawn -------------------------------------------------------------- */
const int32_t *rt_options_fanout(const RtOptions *o) {
    return o->own_fanout ? o->hop_fanout : NULL;
}

/* Sets the fan-outs of all hops: "15,10"; "": the program's own. */
static gnnc_status set_fanout(gnnc_trainer *t, const Option *o, const char *value) {
    int32_t hop[RT_MAX_HOPS] = {0};
    int n_hops = t->program->sampling.n_hops, n = 0;
    gnnc_status st;
    const char *why = fixed(t, RT_OPTION_fanout, &st);
    if (why) return rt_fail(&t->rt.err, st, "'fanout': %s", why);
    if (*value) n = strlen(value) < RT_OPTION_TEXT_SIZE ? rt_fanout_parse(value, n_hops, hop) : -1;
    if (n < 0)
        return rt_fail(
            &t->rt.err, GNNC_E_RANGE,
            "'fanout' is '%.64s': a number for each hop is expected, 15,10; -1 draws all", value);
    if (n && n != n_hops)
        return rt_fail(&t->rt.err, GNNC_E_RANGE,
                       "'fanout' is '%s', of %d hop%s, and the model was compiled for %d", value, n,
                       n > 1 ? "s" : "", n_hops);
    if (!n) value = t->standard.fanout;
    if ((st = set(t, o, value, strlen(value) + 1)) != GNNC_OK) return st;
    t->options.own_fanout = n > 0;
    memcpy(t->options.hop_fanout, hop, sizeof hop);
    return GNNC_OK;
}

gnnc_status gnnc_trainer_set_text(gnnc_trainer *t, const char *option, const char *value) {
    RT_NOT_NULL(t, option);
    RT_NOT_NULL(t, value);
    rt_trainer_begin(t);
    const Option *o;
    gnnc_status st = find(t, option, GNNC_OPTION_TEXT, &o);
    if (st != GNNC_OK) return st;
    switch (index_of(o)) {
    case RT_OPTION_at:
        return set_at(t, o, value);
    case RT_OPTION_fanout:
        return set_fanout(t, o, value);
    default:
        return set_where(t, o, value);
    }
}

/* ---- the list -------------------------------------------------------------------- */
int gnnc_trainer_n_options(const gnnc_trainer *t) {
    return t ? RT_N_OPTIONS + t->program->n_options : 0;
}

/* Writes an option's value, default and bounds for gnnc_trainer_option. */
static void describe(const gnnc_trainer *t, const Option *o, gnnc_option *to) {
    const void *now = at(&t->options, o), *first = at(&t->standard, o);
    switch (o->type) {
    case GNNC_OPTION_INT:
        memcpy(&to->int_value, now, sizeof to->int_value);
        memcpy(&to->int_default, first, sizeof to->int_default);
        to->int_least = o->least;
        to->int_most = o->most;
        return;
    case GNNC_OPTION_REAL:
        memcpy(&to->real_value, now, sizeof to->real_value);
        memcpy(&to->real_default, first, sizeof to->real_default);
        to->real_least = o->real_least;
        to->real_most = DBL_MAX;
        return;
    case GNNC_OPTION_TEXT:
        to->text_value = now;
        to->text_default = first;
        return;
    }
}

gnnc_status gnnc_trainer_option(gnnc_trainer *t, int i, gnnc_option *out) {
    RT_NOT_NULL(t, out);
    rt_trainer_begin(t);
    gnnc_status st = RT_STRUCT_CHECK(&t->rt.err, gnnc_option, out, text_default), why;
    if (st != GNNC_OK) return st;
    if (i >= RT_N_OPTIONS && i < gnnc_trainer_n_options(t)) {
        gnnc_option of_model;
        rt_model_option_tell(t, i - RT_N_OPTIONS, &of_model);
        rt_struct_copy_out(out, &of_model, sizeof of_model);
        return GNNC_OK;
    }
    if (i < 0 || i >= RT_N_OPTIONS) return rt_fail(&t->rt.err, GNNC_E_RANGE, "no option %d", i);
    const Option *o = &OPTIONS[i];
    gnnc_option own = {.name = o->name,
                       .help = o->help,
                       .type = o->type,
                       .settable = !fixed(t, i, &why),
                       .is_set = t->options.set[i]};
    describe(t, o, &own);
    rt_struct_copy_out(out, &own, sizeof own);
    return GNNC_OK;
}
