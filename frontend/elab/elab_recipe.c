/* The recipe: what a `train` block says, as numbers for the runtime. */
#include "frontend/elab/elab.h"
#include "ir/text.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- -D -------------------------------------------------------------------------------- */
/* The last -D of that name; NULL: there is none. */
const FeDefine *elab_define_find(const Elab *e, const char *name) {
    const FeDefine *last = NULL;
    for (int i = 0; e->opt && i < e->opt->n_defs; i++)
        if (strcmp(e->opt->defs[i].name, name) == 0) last = &e->opt->defs[i];
    return last;
}

static bool is_type(const char *type, const char *name) {
    return !type || strcmp(type, name) == 0;
}

/* Sets *v to the value of a -D, read as the parameter's declared type. False after a diagnostic. */
bool elab_define_value(Elab *e, const FeDefine *d, const char *type, Value *v) {
    char *end;
    const char *s = d->value;
    long long n = strtoll(s, &end, 10);
    if (*s && !*end && is_type(type, "int") && n > -(1LL << 53) && n < (1LL << 53))
        return *v = val_int(e, n), true;
    double x = strtod(s, &end);
    if (*s && !*end && is_type(type, "float")) return *v = val_float(x), true;
    bool yes = strcmp(s, "true") == 0;
    if ((yes || strcmp(s, "false") == 0) && is_type(type, "bool")) return *v = val_bool(yes), true;
    if (is_type(type, "string")) return *v = val_string(s), true;
    diag_add(e->c, DIAG_E0309, (Span){0}, "-D %s=%s: '%s' is %s %s%s", d->name, s, d->name,
             type[0] == 'i' ? "an" : "a", type,
             strchr(s, '@') ? "; precision is said in the model: x @f16" : "");
    return false;
}

/* ---- numbers ------------------------------------------------------------------------------ */
/* Sets *x to the value of the expression t, a number that must be known when compiling. False
 * after a diagnostic. */
static bool number(Elab *e, const Ast *t, double *x) {
    Value v = elab_eval(e, t);
    if (elab_is_poison(v)) return false;
    if ((elab_is_number(v) || v.kind == VAL_BOOL) && elab_number_known(e, v, x)) return true;
    bool set = v.kind == VAL_TENSOR && elab_of_options(e, v.op);
    diag_add(e->c, DIAG_E0306, t->span,
             "a number that is known when compiling is needed here, not %s",
             set ? "one that is set when the program runs (settable)" : elab_kind_text(v));
    return false;
}

/* Sets *to to the value of the expression t, a whole number of at least `least`. On a mistake
 * *to stays. */
static void count(Elab *e, const Ast *t, int64_t *to, double least) {
    const double most = 1e15; /* as a double each whole number up to it is exact */
    double x;
    if (!number(e, t, &x)) return;
    if (x > most)
        diag_add(e->c, DIAG_E0306, t->span, "a whole number of at most %g is needed here, not %s",
                 most, elab_source_text(e, t->span));
    else if (x < least || x != (double)(int64_t)x)
        diag_add(e->c, DIAG_E0306, t->span, "a whole number of at least %g is needed here, not %s",
                 least, elab_source_text(e, t->span));
    else
        *to = (int64_t)x;
}

/* A number that the recipe sets by its word. */
typedef struct {
    int of; /* the optimizer or schedule whose setting it is */
    const char *word;
    RecipeFieldKind kind; /* REAL, INT or BOOL */
    size_t offset;        /* in what is set */
    double first;         /* where it is not said */
    double least, most;   /* with CONTRACT_NO_LIMIT, the least is 0 or just above */
} Setting;

#define KIND_OF(name) _Generic(((Recipe *)0)->name, double: RF_REAL, int64_t: RF_INT, bool: RF_BOOL)
static const Setting of_optimizers[] = {
#define OPTIM(kind, name, word, first, least, most)                                                \
    {kind, word, KIND_OF(name), offsetof(Recipe, name), first, least, most},
#include "runtime/contract.def"
};
static const Setting of_schedules[] = {
#define SCHED(kind, name, word, first, least, most)                                                \
    {kind, word, KIND_OF(name), offsetof(Recipe, name), first, least, most},
#include "runtime/contract.def"
};

/* Stores x in the field of `in` that the setting s describes. */
static void store(const Setting *s, void *in, double x) {
    void *at = (char *)in + s->offset;
    if (s->kind == RF_REAL) *(double *)at = x;
    if (s->kind == RF_INT) *(int64_t *)at = (int64_t)x;
    if (s->kind == RF_BOOL) *(bool *)at = x != 0;
}

/* Sets the field of `in` that the setting s describes to the value of an expression, if it is in
 * the setting's range. Reported if not. */
static void set_number(Elab *e, const Setting *s, void *in, const Ast *value) {
    double x;
    if (s->kind == RF_INT) {
        count(e, value, (int64_t *)(void *)((char *)in + s->offset), s->least);
        return;
    }
    if (!number(e, value, &x)) return;
    if (x >= s->least && x <= s->most)
        store(s, in, x);
    else if (s->most >= CONTRACT_NO_LIMIT && x <= s->most)
        diag_add(e->c, DIAG_E0306, value->span, "'%s' is a number %s 0, not %s", s->word,
                 s->least > 0 ? "above" : "of at least", elab_source_text(e, value->span));
    else
        diag_add(e->c, DIAG_E0306, value->span, "'%s' lies between %g and %g, and is %s here",
                 s->word, s->least, s->most, elab_source_text(e, value->span));
}

/* The settings of an optimizer or of a schedule, one after the other. */
typedef struct {
    const Setting *v;
    int n;
} Settings;

/* The settings of one optimizer or schedule (`of`) within a table of n that is sorted by it. */
static Settings settings_of(const Setting *all, size_t n, int of) {
    Settings s = {all, 0};
    while (s.v < all + n && s.v->of != of) s.v++;
    while (s.v + s.n < all + n && s.v[s.n].of == of) s.n++;
    return s;
}

/* Reports a setting that an optimizer or schedule does not have. moments: `moments` is one of
 * those it has. */
static void no_setting(Elab *e, const Ast *a, const char *of, const Settings *s, bool moments) {
    Names known = {0};
    for (int i = 0; i < s->n; i++) elab_names_add(e, &known, s->v[i].word);
    if (moments) elab_names_add(e, &known, "moments");
    diag_add(e->c, DIAG_E0306, a->span, "'%s' has no '%s'%s", of, a->text,
             elab_names_advice(e, a->text, &known));
}

/* Reads `moments = bf16 | f32`, the type in which an optimizer keeps its moments. False: a is
 * another argument. */
static bool set_moments(Elab *e, const Ast *a, Recipe *r) {
    if (a->kind != AST_NAMED || strcmp(a->text, "moments") != 0) return false;
    const Ast *value = a->kid[0];
    const char *name = value->kind == AST_NAME ? value->text : "";
    r->bf16_moments = strcmp(name, "bf16") == 0;
    if (!r->bf16_moments && strcmp(name, "f32") != 0)
        diag_add(e->c, DIAG_E0306, value->span, "'moments' are f32 or bf16");
    return true;
}

/* Whether the i-th setting of a call was given before, by name or, as `first` may be, by
 * position; reported if so. */
static bool is_repeated(Elab *e, const Ast *call, int i, const char *first) {
    const Ast *a = call->kid[i];
    for (int k = 1; k < i && a->kind == AST_NAMED; k++) {
        const Ast *b = call->kid[k];
        const char *name = b->kind == AST_NAMED ? b->text : k == 1 ? first : "";
        if (strcmp(name, a->text) != 0) continue;
        diag_add(e->c, DIAG_E0306, a->span, "'%s' is set twice", a->text);
        return true;
    }
    return false;
}

/* Reads the settings of an optimizer or schedule, name(word = value, ..), into *r; the first may
 * be given by position. moments: it is an optimizer, which has them. */
static void set_all(Elab *e, const Ast *call, const Settings *s, bool moments, Recipe *r) {
    for (int i = 0; i < s->n; i++) store(&s->v[i], r, s->v[i].first);
    for (int i = 1; call->kind == AST_CALL && i < call->n; i++) {
        const Ast *a = call->kid[i];
        if (is_repeated(e, call, i, s->v[0].word)) continue;
        if (moments && set_moments(e, a, r)) continue;
        bool named = a->kind == AST_NAMED;
        int k = 0;
        while (k < s->n && !(named ? strcmp(a->text, s->v[k].word) == 0 : i == 1 && k == 0)) k++;
        if (k < s->n)
            set_number(e, &s->v[k], r, named ? a->kid[0] : a);
        else if (named)
            no_setting(e, a, call->kid[0]->text, s, moments);
        else
            diag_add(e->c, DIAG_E0306, a->span, "'%s' takes its settings by name",
                     call->kid[0]->text);
    }
}

/* The name of a call, or a name alone, as in `optimizer adam` and `optimizer adam(..)`. NULL
 * after a diagnostic. */
static const char *callee(Elab *e, const Ast *t) {
    const Ast *f = t->kind == AST_CALL ? t->kid[0] : t;
    if (f->kind == AST_NAME) return f->text;
    if (t->kind != AST_BAD) diag_add(e->c, DIAG_E0306, t->span, "a name is needed here");
    return NULL;
}

/* ---- optimizers, schedules -------- */
/* Reads the optimizer of a recipe and its settings. All else in *r but epochs and sampling
 * starts anew. */
static void set_optimizer(Elab *e, const Ast *t, Recipe *r) {
    const char *name = callee(e, t);
    if (!name) return;
    int k = text_find(&text_OptimKind, name, strlen(name));
    if (k <= OPTIM_NONE) {
        diag_add(e->c, DIAG_E0306, t->span, "there is no optimizer '%s'; there are %s", name,
                 text_list(e->a, &text_OptimKind, OPTIM_NONE + 1));
        return;
    }
    *r = (Recipe){
        .optim = (OptimKind)k, .epochs = r->epochs, .optimizer = t->span, .sample = r->sample};
    const Settings s = settings_of(of_optimizers, COUNT(of_optimizers), k);
    set_all(e, t, &s, true, r);
    if (r->optim == OPTIM_SGD && r->momentum == 0 && r->bf16_moments)
        diag_add(e->c, DIAG_E0306, t->span, "'moments' are those of a momentum, and there is none");
}

/* Reads the learning-rate schedule of a recipe and its settings. */
static void set_schedule(Elab *e, const Ast *t, Recipe *r) {
    const char *name = callee(e, t);
    if (!name) return;
    int k = text_find(&text_SchedKind, name, strlen(name));
    if (k < 0) {
        diag_add(e->c, DIAG_E0306, t->span, "there is no schedule '%s'; there are %s", name,
                 text_list(e->a, &text_SchedKind, 0));
        return;
    }
    r->sched = (SchedKind)k;
    const Settings s = settings_of(of_schedules, COUNT(of_schedules), k);
    set_all(e, t, &s, false, r);
}

/* ---- groups -------- */
static bool path_starts(const char *path, const char *prefix) {
    size_t n = strlen(prefix);
    return strncmp(path, prefix, n) == 0 && (path[n] == 0 || path[n] == '.');
}

/* Puts the parameters whose path starts with `path` into the group. False: there are none. */
static bool claim(Elab *e, const Ast *path, const char *group) {
    bool any = false;
    for (int i = 0; i < e->all_vars.n; i++) {
        Var *v = e->all_vars.v[i]->var;
        if (v->kind != VAR_PARAM || !path_starts(v->path, path->text)) continue;
        any = true;
        if (!v->group)
            v->group = group;
        else if (strcmp(v->group, group) != 0)
            diag_add(e->c, DIAG_E0306, path->span, "'%s' is in the group '%s' already", v->path,
                     v->group);
    }
    return any;
}

/* Reports a path of a group with which no parameter's path starts. */
static void no_group(Elab *e, const Ast *path) {
    Names known = {0};
    for (int i = 0; i < e->all_vars.n; i++) {
        const Var *v = e->all_vars.v[i]->var;
        if (v->kind == VAR_PARAM)
            elab_names_add(e, &known, arena_strndup(e->a, v->path, strcspn(v->path, ".")));
    }
    diag_add(e->c, DIAG_E0306, path->span, "no parameter's path starts with '%s'%s", path->text,
             elab_names_advice(e, path->text, &known));
}

/* Reads `group paths { weight_decay = .. lr_scale = .. }`: settings of the optimizer for some
 * parameters. */
static void add_group(Elab *e, const Ast *t, Recipe *r) {
    StrBuf name = sb_new(e->a);
    const Ast *paths = t->kid[0];
    for (int i = 0; i < paths->n; i++) sb_printf(&name, "%s%s", i ? ", " : "", paths->kid[i]->text);
    ParamGroup g = {.name = name.s, .lr_scale = 1, .weight_decay = r->weight_decay};
    static const Setting of_groups[] = {
        {0, "lr_scale", RF_REAL, offsetof(ParamGroup, lr_scale), 0, 0, CONTRACT_NO_LIMIT},
        {0, "weight_decay", RF_REAL, offsetof(ParamGroup, weight_decay), 0, 0, CONTRACT_NO_LIMIT}};
    for (int i = 1; i < t->n; i++) {
        const Ast *let = t->kid[i];
        size_t k = 0;
        if (let->kind == AST_BAD) continue;
        bool simple = let->kind == AST_LET && let->kid[0]->kind == AST_NAME;
        while (simple && k < COUNT(of_groups) && strcmp(let->kid[0]->text, of_groups[k].word) != 0)
            k++;
        if (simple && k < COUNT(of_groups))
            set_number(e, &of_groups[k], &g, let->kid[1]);
        else
            diag_add(e->c, DIAG_E0306, let->span,
                     "a group sets weight_decay = .. and lr_scale = ..");
    }
    for (int i = 0; i < paths->n && e->c->n_errors == 0; i++)
        if (!claim(e, paths->kid[i], g.name)) no_group(e, paths->kid[i]);
    vec_push(e->a, &r->groups, g);
}

/* ---- losses and metrics -------- */
/* Reads the weight of a loss: a known number, or one computed of options of the model. False
 * after a diagnostic. */
static bool weight_of(Elab *e, const Ast *t, Term *out) {
    Value v = elab_eval(e, t);
    bool set = v.kind == VAL_TENSOR && elab_of_options(e, v.op);
    if (set) out->weight_op = v.op;
    return set || number(e, t, &out->weight);
}

/* Reads a loss or metric with its weight and settings, `0.5 * f(a = 1)`, into *out. False after
 * a diagnostic. */
static bool term_of(Elab *e, const Ast *t, bool is_loss, Term *out) {
    *out = (Term){.at = t, .weight = 1, .is_loss = is_loss};
    if (t->kind == AST_BAD) return false;
    if (t->kind == AST_BINARY && t->op == OPR_MUL) {
        if (!weight_of(e, t->kid[0], out)) return false;
        t = t->kid[1];
    }
    const char *name = callee(e, t);
    Value f = name && elab_term_exists(e, name, t->span, is_loss) ? elab_lookup(e, name, t->span)
                                                                  : val_poison();
    if (elab_is_poison(f)) return false;
    if (f.kind != VAL_FN) {
        diag_add(e->c, DIAG_E0306, t->span, "'%s' is %s; a loss or metric is a function", name,
                 elab_kind_text(f));
        return false;
    }
    out->fn = f.decl;
    Args *a = &out->args;
    *a = (Args){.span = t->span, .name_span = t->span};
    int n = t->kind == AST_CALL ? t->n : 0;
    a->named = NEWN(e->a, Value, (size_t)n + 1);
    a->name = NEWN(e->a, const char *, (size_t)n + 1);
    a->named_at = NEWN(e->a, Span, (size_t)n + 1);
    for (int i = 1; i < n; i++) {
        const Ast *k = t->kid[i];
        if (k->kind != AST_NAMED) {
            diag_add(e->c, DIAG_E0306, k->span, "settings of a loss or metric are given by name");
            return false;
        }
        a->name[a->n_named] = k->text;
        a->named_at[a->n_named] = k->span;
        a->named[a->n_named++] = elab_eval(e, k->kid[0]);
    }
    return true;
}

/* Adds all losses (or metrics, by `kind`) of a recipe to *out. False: one has a mistake. */
bool elab_recipe_terms(Elab *e, const Ast *train, AstKind kind, Terms *out) {
    bool ok = true;
    for (int i = 0; i < train->n; i++)
        for (int j = 0; train->kid[i]->kind == kind && j < train->kid[i]->n; j++) {
            Term t;
            if (term_of(e, train->kid[i]->kid[j], kind == AST_LOSS, &t))
                vec_push(e->a, out, t);
            else
                ok = false;
        }
    return ok;
}

/* ---- keep, stop -------- */
/* The place of the metric that `keep` names: the one of that name, else the first of that
 * function; -1: there is none. */
static int metric_named(Elab *e, const Terms *metrics, const char *name) {
    for (int i = 0; i < metrics->n; i++)
        if (strcmp(elab_metric_name(e, metrics, i), name) == 0) return i;
    for (int i = 0; i < metrics->n; i++)
        if (strcmp(metrics->v[i].fn->text, name) == 0) return i;
    return -1;
}

/* Reports a `keep` that cannot be read. */
static void bad_keep(Elab *e, const Ast *t) {
    diag_add(e->c, DIAG_E0306, t->span,
             "expected: keep last, or keep best | highest | lowest on val | "
             "train, then loss or a metric");
}

/* Reports a name in `keep` that is no metric of the recipe. */
static void no_metric(Elab *e, const Ast *name, const Terms *metrics) {
    Names known = {0};
    if (!e->links.base)
        elab_names_add(e, &known, "loss"); /* links have one while they train only */
    for (int i = 0; i < metrics->n; i++) elab_names_add(e, &known, elab_metric_name(e, metrics, i));
    diag_add(e->c, DIAG_E0306, name->span, "'%s' is not among the recipe's metrics%s", name->text,
             elab_names_advice(e, name->text, &known));
}

/* Reads `keep best on val accuracy`: by which metric, on which split, the best epoch is chosen. */
static void set_keep(Elab *e, const Ast *t, const Terms *metrics, Recipe *r) {
    const char *how = t->kid[0]->text;
    if (t->n == 1 && strcmp(how, "last") == 0) return;
    bool best = strcmp(how, "best") == 0, high = strcmp(how, "highest") == 0;
    if (t->n != 4 || strcmp(t->kid[1]->text, "on") != 0 ||
        !(best || high || strcmp(how, "lowest") == 0)) {
        bad_keep(e, t);
        return;
    }
    const char *split = t->kid[2]->text, *what = t->kid[3]->text;
    bool loss = strcmp(what, "loss") == 0;
    int at = metric_named(e, metrics, what);
    const Term *m = at < 0 ? NULL : &metrics->v[at];
    if (strcmp(split, "val") != 0 && strcmp(split, "train") != 0)
        bad_keep(e, t);
    else if (!loss && !m)
        no_metric(e, t->kid[3], metrics);
    r->keep_metric = m && !loss ? elab_metric_name(e, metrics, at) : what;
    r->keep_split = split[0] == 'v' ? SPLIT_VAL : SPLIT_TRAIN;
    r->keep_max = best ? !loss && m && !m->fn->flag : high;
}

/* ---- all of it -------- */
/* Whether the i-th item of a recipe may stand there: most kinds at most once. Reported if not. */
static bool once(Elab *e, const Ast *train, int i) {
    const Ast *t = train->kid[i];
    if (t->kind == AST_LOSS || t->kind == AST_METRIC || t->kind == AST_GROUP || t->kind == AST_BAD)
        return true;
    for (int j = 0; j < i; j++)
        if (train->kid[j]->kind == t->kind) {
            diag_add(e->c, DIAG_E0306, t->span, "this stands twice in one recipe");
            return false;
        }
    return true;
}

/* Reads one item of a recipe into *r. Losses, metrics, the target and the optimizer are read
 * elsewhere. */
static void set_item(Elab *e, const Ast *t, const Terms *metrics, Recipe *r) {
    static const Setting clip = {0, "clip", RF_REAL,          offsetof(Recipe, clip_norm),
                                 0, 1e-30,  CONTRACT_NO_LIMIT};
    static const Setting ema = {0, "ema", RF_REAL, offsetof(Recipe, ema), 0, 0, 1};
    switch (t->kind) {
    case AST_SCHEDULE:
        set_schedule(e, t->kid[0], r);
        break;
    case AST_CLIP:
        set_number(e, &clip, r, t->kid[0]);
        break;
    case AST_ACCUMULATE:
        count(e, t->kid[0], &r->accumulate, 1);
        break;
    case AST_EMA:
        set_number(e, &ema, r, t->kid[0]);
        break;
    case AST_EPOCHS:
        count(e, t->kid[0], &r->epochs, 0);
        break;
    case AST_KEEP:
        set_keep(e, t, metrics, r);
        break;
    case AST_STOP:
        if (strcmp(t->text, "after") != 0)
            diag_add(e->c, DIAG_E0306, t->span, "expected: stop after n");
        else
            count(e, t->kid[0], &r->early_stop_patience, 1);
        break;
    case AST_GROUP:
        add_group(e, t, r);
        break;
    case AST_SAMPLE:
        elab_sample(e, t, r);
        break;
    default:
        break;
    }
}

/* The first item of kind k in a recipe; NULL: it has none. */
static const Ast *find_item(const Ast *train, AstKind k) {
    for (int i = 0; i < train->n; i++)
        if (train->kid[i]->kind == k) return train->kid[i];
    return NULL;
}

/* Reports settings that do not fit each other: updates or a warm-up longer than the training. */
static void check_settings(Elab *e, const Ast *train, const Recipe *r) {
    const Ast *accumulate = find_item(train, AST_ACCUMULATE);
    if (accumulate && !find_item(train, AST_SAMPLE) && r->epochs && r->accumulate > r->epochs)
        diag_add(e->c, DIAG_E0306, accumulate->span,
                 "%lld epochs of one step each make no update of %lld steps", (long long)r->epochs,
                 (long long)r->accumulate);
    const Ast *schedule = find_item(train, AST_SCHEDULE);
    if (schedule && r->epochs && r->warmup_epochs > r->epochs)
        diag_add(e->c, DIAG_E0306, schedule->span, "a warm-up of %lld epochs does not end in %lld",
                 (long long)r->warmup_epochs, (long long)r->epochs);
}

/* Completes what `stop after` watches, and reports a kept metric that links do not have. */
static void check_kept(Elab *e, const Ast *train, Recipe *r) {
    if (r->early_stop_patience && !r->keep_metric) {
        r->keep_metric = "loss";
        r->keep_split = SPLIT_VAL;
    }
    if (e->links.base && r->keep_metric && strcmp(r->keep_metric, "loss") == 0)
        diag_add(e->c, DIAG_E0306, train->span,
                 "what scores links has a loss while it trains only: keep the best of a metric%s",
                 r->early_stop_patience ? ", which 'stop after' watches then" : "");
    else if (e->links.base && r->keep_metric && r->keep_split == SPLIT_TRAIN)
        diag_add(e->c, DIAG_E0306, train->span,
                 "links are judged in the validation and test splits: keep best on val %s",
                 r->keep_metric);
}

/* Reads a recipe into *r and checks that its items fit together. */
void elab_recipe(Elab *e, const Ast *train, Recipe *r) {
    Terms metrics = {0}, losses = {0};
    const Ast *optimizer = find_item(train, AST_OPTIMIZER), *target = find_item(train, AST_TARGET);
    elab_recipe_terms(e, train, AST_METRIC, &metrics);
    elab_recipe_terms(e, train, AST_LOSS, &losses);
    bool broken = find_item(train, AST_BAD) != NULL; /* what lacks may stand there */
    r->epochs = 100;
    if (optimizer)
        set_optimizer(e, optimizer->kid[0], r);
    else if (!broken)
        diag_add(e->c, DIAG_E0306, train->span, "the recipe of '%s' has no optimizer", train->text);
    if (!find_item(train, AST_LOSS) && !broken)
        diag_add(e->c, DIAG_E0306, train->span, "the recipe of '%s' has no loss", train->text);
    r->target = !target          ? NULL
                : target->kid[0] ? arena_printf(e->a, "%s.%s", target->text, target->kid[0]->text)
                                 : target->text;
    for (int i = 0; i < train->n; i++)
        if (once(e, train, i)) set_item(e, train->kid[i], &metrics, r);
    check_settings(e, train, r);
    check_kept(e, train, r);
    r->outcome = elab_term_outcome(e, &losses);
    r->model_name = train->text;
    r->present = true;
}
