/* Losses and metrics: which functions are such, and which of them take a target. */
#include "frontend/elab/elab.h"

#include <string.h>

/* Whether a declaration could be a loss or metric: fn f(pred, target, mask) -> f32, and settings
 * that have defaults or are given by name. */
static bool is_term(const Ast *d) {
    const Ast *formals = d->kind == AST_FN ? d->kid[0] : NULL, *type = formals ? d->kid[1] : NULL;
    if (!type || !elab_type_is_tensor(type) || type->n || elab_type_dtype(type) != DT_F32)
        return false;
    for (int i = 0; i < formals->n; i++)
        if (i < 3 ? formals->kid[i]->flag || formals->kid[i]->kid[1]
                  : !formals->kid[i]->flag && !formals->kid[i]->kid[1])
            return false;
    return formals->n >= 3;
}

/* Whether a function is a loss of links, f(pos, ..), or a metric of ranks, f(rank, ..) or
 * f(place, ..). */
static bool is_term_of_links(const Ast *d) {
    const Ast *formals = d->kind == AST_FN ? d->kid[0] : NULL;
    const char *first = formals && formals->n ? formals->kid[0]->text : "";
    return !strcmp(first, d->flag ? "pos" : "rank") || (!d->flag && !strcmp(first, "place"));
}

static bool takes(const Ast *fn, DType target) {
    const Ast *type = fn->kid[0]->n > 1 ? fn->kid[0]->kid[1]->kid[0] : NULL;
    return !type || !elab_type_is_tensor(type) || elab_type_dtype(type) == target;
}

static bool stands_before(const Ast *x, const Ast *y) {
    return x->span.file != y->span.file ? x->span.file < y->span.file : x->span.line < y->span.line;
}

/* Adds to `to`, in the order of their declarations, the names of losses (functions with `minimize`,
 * d->flag), or of all metrics, that take a target of this type; for a message that lists them.
 * DT_VOID: of any type, and where links are learned their losses or metrics as well. */
static void add_matching_terms(Elab *e, const StrMap *decls, bool loss, DType target, Names *to) {
    VEC(const Ast *) found = {0};
    for (int i = 0; i < decls->cap; i++) {
        const Ast *d = decls->key[i] ? decls->val[i] : NULL;
        bool of_links = d && !target && e->links.target && is_term_of_links(d) && d->flag == loss;
        if (!d || (!is_term(d) && !of_links) || (loss && !d->flag) || (target && !takes(d, target)))
            continue;
        vec_push(e->a, &found, d);
        for (int j = found.n - 1; j > 0 && stands_before(found.v[j], found.v[j - 1]); j--) {
            const Ast *swap = found.v[j];
            found.v[j] = found.v[j - 1];
            found.v[j - 1] = swap;
        }
    }
    for (int i = 0; i < found.n; i++) elab_names_add(e, to, found.v[i]->text);
}

/* The names of all losses (or metrics) that take a target of this element type; DT_VOID: of any. */
Names elab_term_names(Elab *e, bool loss, DType target) {
    Names n = {0};
    add_matching_terms(e, &e->globals, loss, target, &n);
    add_matching_terms(e, &e->prelude, loss, target, &n);
    return n;
}

/* Whether a name in a recipe stands for anything; reported, with the losses or metrics there
 * are, if not. */
bool elab_term_exists(Elab *e, const char *name, Span at, bool is_loss) {
    Value v;
    if (strmap_get(&e->globals, name) || strmap_get(&e->prelude, name) || elab_builtin_find(name) ||
        elab_name_find(e, name, &v) || e->names_missing)
        return true; /* something else, perhaps: whoever looks it up tells */
    Names known = elab_term_names(e, is_loss, DT_VOID);
    const char *from = elab_hint_of_import(e, name);
    diag_add(e->c, DIAG_E0201, at, "there is no %s '%s'%s", is_loss ? "loss" : "metric", name,
             *from ? from : elab_names_advice(e, name, &known));
    return false;
}

/* Whether a loss or metric takes the target column, whose element type is dt; reported if not. */
bool elab_term_takes(Elab *e, const Term *t, const Column *target, DType dt) {
    if (takes(t->fn, dt)) return true;
    const Ast *formal = t->fn->kid[0]->kid[1];
    Names fit = elab_term_names(e, t->is_loss, dt);
    diag_add(e->c, DIAG_E0307, t->at->span, "'%s' takes a target of %s, but '%s.%s' is %s; %s: %s",
             t->fn->text, formal->kid[0]->text, target->space->name, target->name,
             target->kind == COL_CLASS ? "a class (i32)" : dtype_name(dt),
             t->is_loss ? "losses that take it" : "metrics that take it", elab_names_list(e, &fit));
    diag_note(e->c, formal->span, "'%s' is declared here", formal->text);
    return false;
}

/* Whether a loss or metric takes the target of links, which is f32: 1 for a true link, else 0.
 * Reported if not. */
bool elab_term_takes_links(Elab *e, const Term *t) {
    const Ast *formals = t->fn->kid[0], *formal = formals->n > 1 ? formals->kid[1] : NULL;
    if (!formal || strcmp(formal->text, "target") != 0 || takes(t->fn, DT_F32)) return true;
    Names fit = elab_term_names(e, t->is_loss, DT_F32);
    diag_add(e->c, DIAG_E0307, t->at->span,
             "'%s' takes a target of %s, but that of links is f32, 1 for a true one and 0 for the "
             "others; %s: %s",
             t->fn->text, formal->kid[0]->text,
             t->is_loss ? "losses that take it" : "metrics that take it", elab_names_list(e, &fit));
    diag_note(e->c, formal->span, "'%s' is declared here", formal->text);
    return false;
}

/* Whether the model gives a score for each class to a loss of the prelude; a class without one
 * could not be learned. Reported if not. Own losses may see it otherwise: thresholds of ordered
 * classes, one score for two. */
bool elab_term_scores_classes(Elab *e, const Term *t, const Column *target, const Op *pred) {
    if (target->kind != COL_CLASS || strmap_get(&e->prelude, t->fn->text) != t->fn) return true;
    if (pred->type.rank < 2) return true; /* told by its declaration */
    for (int i = 0; i < pred->type.rank; i++)
        if (pred->type.dim[i]->kind == SP_DIM &&
            expr_eq(pred->type.dim[i]->size, target->cat->size))
            return true;
    int64_t n;
    bool known = expr_is_const(target->cat->size, &n);
    diag_add(e->c, DIAG_E0307, t->at->span,
             "'%s' needs a score for each class, f32[%s, %s], but the model gives %s%s",
             t->fn->text, target->space->name,
             known ? arena_printf(e->a, "%lld", (long long)n) : target->cat->name,
             elab_type_text(e, &pred->type),
             known ? "" : "; a number of classes that is fixed stands in the graph: class[7]");
    return false;
}

Op *elab_term_weigh(Elab *e, const Term *t, Op *x) {
    if (t->weight_op) return b_binary(&e->b, OP_MUL, x, t->weight_op);
    return t->weight == 1 ? x : b_binary(&e->b, OP_MUL, x, b_const(&e->b, DT_F32, t->weight));
}

/* ---- names of metrics -------- */
/* The name of the i-th loss or metric: its function's, with its whole numbers where the function
 * stands several times: hits(k = 1), hits(k = 10) are hits_1 and hits_10. */
static const char *name_with_settings(Elab *e, const Terms *terms, int i) {
    const Term *t = &terms->v[i];
    const char *name = t->fn->text;
    int same = 0;
    for (int j = 0; j < terms->n; j++) same += terms->v[j].fn == t->fn;
    for (int k = 0; same > 1 && k < t->args.n_named; k++) {
        int64_t n;
        Value v = t->args.named[k];
        if (v.kind == VAL_INT && elab_int_known(e, v, &n) && n >= 0)
            name = arena_printf(e->a, "%s_%lld", name, (long long)n);
    }
    return name;
}

/* What the i-th of a recipe's metrics is called in logs and by `keep`. */
const char *elab_metric_name(Elab *e, const Terms *metrics, int i) {
    const char *name = name_with_settings(e, metrics, i);
    int nth = 1;
    for (int j = 0; j < i; j++) nth += strcmp(name_with_settings(e, metrics, j), name) == 0;
    return nth == 1 ? name : arena_printf(e->a, "%s_%d", name, nth);
}

/* ---- what they take the model's result to be -------- */
static OutcomeKind outcome_of(Elab *e, const Term *t) {
    static const struct {
        const char *loss;
        OutcomeKind is;
    } of_prelude[] = {{"cross_entropy", OUTCOME_CLASSES},
                      {"bce_with_logits", OUTCOME_LOG_ODDS},
                      {"mse", OUTCOME_NUMBERS},
                      {"l1", OUTCOME_NUMBERS}};
    if (strmap_get(&e->prelude, t->fn->text) != t->fn) return OUTCOME_SCORES;
    for (size_t i = 0; i < COUNT(of_prelude); i++)
        if (strcmp(of_prelude[i].loss, t->fn->text) == 0) return of_prelude[i].is;
    return OUTCOME_SCORES;
}

/* What the model gives, as the losses read it: scores if they do not agree. */
OutcomeKind elab_term_outcome(Elab *e, const Terms *losses) {
    OutcomeKind is = losses->n ? outcome_of(e, &losses->v[0]) : OUTCOME_SCORES;
    for (int i = 1; i < losses->n; i++)
        if (outcome_of(e, &losses->v[i]) != is) return OUTCOME_SCORES;
    return is;
}

/* Whether x is computed as the prelude's softmax (of_classes) or sigmoid is. */
static bool is_probability(const Op *x, bool of_classes) {
    if (!of_classes) return x->kind == OP_SIGMOID;
    return x->kind == OP_DIV && x->in[0]->kind == OP_EXP && x->in[1]->kind == OP_REDUCE &&
           x->in[1]->in[0] == x->in[0];
}

/* Warns if the model gives probabilities to a loss that makes them of scores itself. */
void elab_term_warns_of_probabilities(Elab *e, const Term *t, const Op *pred) {
    OutcomeKind is = outcome_of(e, t);
    bool classes = is == OUTCOME_CLASSES;
    if ((!classes && is != OUTCOME_LOG_ODDS) || !is_probability(pred, classes)) return;
    diag_warn(e->c, DIAG_E0307, t->at->span,
              "'%s' takes scores and makes probabilities of them itself, but the model gives those "
              "of a %s already: leave it out",
              t->fn->text, classes ? "softmax" : "sigmoid");
}
