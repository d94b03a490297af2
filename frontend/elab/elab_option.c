/* Parameters of a model that are options of the compiled program.
 *
 * An int is a size that is bound before data are, as those that the data have; a float is an input
 * of all phases that read it.  What needs to know them when compiling refuses them: the list of a
 * `for`, a number of the recipe. */
#include "frontend/elab/elab.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Whether name is one of those in list, "a,b"; NULL lists none. */
static bool is_listed(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && strncmp(at, name, n) == 0) return true;
    return false;
}

bool elab_is_settable(const Elab *e, const Ast *formal) {
    return formal->n > 2 || (e->opt && is_listed(e->opt->settable, formal->text));
}

/* Reports parameters of the layers and functions of a file, whoever imports it, that are declared
 * settable: a model alone has options. */
void elab_refuse_settable(Elab *e, const Ast *file) {
    for (int i = 0; i < file->n; i++) {
        const Ast *d = file->kid[i];
        for (int j = 0; d->kind != AST_MODEL && j < d->n; j++)
            for (int k = 0; d->kid[j] && d->kid[j]->kind == AST_LIST && k < d->kid[j]->n; k++) {
                const Ast *formal = d->kid[j]->kid[k];
                if (formal->kind == AST_FORMAL && formal->n > 2)
                    diag_add(e->c, DIAG_E0322, formal->span,
                             "'%s' is settable: a parameter of a model alone can be set when the "
                             "program runs",
                             formal->text);
            }
    }
}

/* Reports names in --settable that are no parameters of the model. The first parameter is its
 * graph. */
void elab_check_settable(Elab *e, const Ast *model) {
    const Ast *formals = model->kid[0];
    const char *at = e->opt->settable;
    Names known = {0};
    for (int j = 1; j < formals->n; j++) elab_names_add(e, &known, formals->kid[j]->text);
    while (at && *at) {
        size_t n = strcspn(at, ",");
        const char *name = arena_strndup(e->a, at, n);
        bool found = false;
        for (int j = 1; j < formals->n; j++)
            found = found || strcmp(formals->kid[j]->text, name) == 0;
        if (!found)
            diag_add(e->c, DIAG_E0309, (Span){0},
                     "--settable=%s: the model '%s' has no parameter of that name%s", name,
                     model->text, elab_names_advice(e, name, &known));
        at += n + (at[n] == ',');
    }
}

/* ---- values ----------------------------------------------------------------------------- */
/* Whether the parameter, whose default is v, can be set when the program runs: a size or a
 * float. Reported if not. */
static bool may_be_set(Elab *e, const Ast *formal, Value v) {
    double x;
    const char *why = NULL;
    if (v.kind != VAL_INT && v.kind != VAL_FLOAT)
        why = "an int or a float can be set when the program runs";
    else if (!elab_number_known(e, v, &x))
        why = "its default must be known when compiling";
    else if (v.kind == VAL_INT && (x < 1 || x > INT32_MAX))
        why = "an int that can be set is a size, from 1 on";
    else if (v.kind == VAL_FLOAT && !(fabs(x) <= (double)FLT_MAX))
        why = "its default is beyond what an f32 holds";
    else
        why = module_option_name_fault(formal->text);
    if (why) diag_add(e->c, DIAG_E0322, formal->span, "'%s' is settable: %s", formal->text, why);
    return !why;
}

/* The module's option of a parameter, made when it is first asked for. first: its default. NULL:
 * the default is not known. */
static ModelOption *option_of(Elab *e, const Ast *formal, Value v) {
    ModelOption *o = module_option(e->m, formal->text);
    double first = 0;
    if (o || !elab_number_known(e, v, &first)) return o;
    Space *dim = v.kind == VAL_INT ? elab_space_of_option(e, formal->text, formal->span) : NULL;
    return module_option_new(e->m, formal->text, dim, first, formal->span);
}

/* Replaces the default *v of a settable parameter by what stands for its value at run time: a
 * dimension for an int, an input for a float. False after a diagnostic. */
bool elab_option_value(Elab *e, const Ast *formal, Value *v) {
    const Ast *type = formal->kid[0];
    double x;
    if (elab_is_poison(*v)) return false;
    bool real = type && strcmp(type->text, "float") == 0;
    if (real && v->kind == VAL_INT && elab_number_known(e, *v, &x)) *v = val_float(x);
    if (!may_be_set(e, formal, *v)) return false;
    const ModelOption *o = option_of(e, formal, *v);
    e->b.span = formal->span;
    *v = o->dim ? val_dim(elab_key_of_space(e, o->dim), o->dim->size)
                : val_tensor(b_input(&e->b, o->input, type_scalar(DT_F32)));
    return true;
}

/* Whether the scalar op is computed elementwise of constants and options alone. *met: of one
 * option at least. */
static bool is_of_options(const Elab *e, const Op *op, bool *met) {
    if (op->type.rank || op->type.dt != DT_F32) return false;
    if (op->kind == OP_CONST) return true;
    if (op->kind == OP_INPUT) return *met = module_option_of(e->m, op) != NULL;
    if (!(op_traits(op->kind) & OPT_ELEM)) return false;
    for (int i = 0; i < op->n_in; i++)
        if (!is_of_options(e, op->in[i], met)) return false;
    return op->n_in > 0;
}

/* Whether the scalar op is computed of options, and of nothing else but constants, so that the
 * program knows it before it reads data. */
bool elab_of_options(const Elab *e, const Op *op) {
    bool met = false;
    return is_of_options(e, op, &met) && met;
}

/* ---- ranges ------------------------------------------------------------------------------ */
/* The option that the condition op compares with a number: *at is the number, *above: the option
 * is the larger one. NULL: it is no such comparison. */
static ModelOption *bounded(const Elab *e, const Op *op, double *at, bool *above) {
    if (op->kind != OP_LE && op->kind != OP_LT) return NULL;
    *above = op->in[0]->kind == OP_CONST;
    const Op *number = op->in[*above ? 0 : 1];
    *at = number->imm;
    return number->kind == OP_CONST ? module_option_of(e->m, op->in[*above ? 1 : 0]) : NULL;
}

/* Whether the condition op only bounds options by numbers, several joined by `and`. */
static bool is_range(const Elab *e, const Op *op) {
    double at;
    bool above;
    if (op->kind == OP_AND) return is_range(e, op->in[0]) && is_range(e, op->in[1]);
    return bounded(e, op, &at, &above) != NULL;
}

/* Narrows the range of the options that the asserted condition `op` compares with numbers. why:
 * the assertion's text, for the message about a value outside of the range. */
static void narrow(Elab *e, const Op *op, const char *why) {
    double at = 0;
    bool is_lower_bound = false;
    if (op->kind == OP_AND) {
        narrow(e, op->in[0], why);
        narrow(e, op->in[1], why);
        return;
    }
    ModelOption *o = bounded(e, op, &at, &is_lower_bound);
    if (!o) return;
    at = (double)(op->kind == OP_LT ? nextafterf((float)at, is_lower_bound ? INFINITY : -INFINITY)
                                    : (float)at); /* as the program compares it */
    if (is_lower_bound ? at <= o->least : at >= o->most) return;
    *(is_lower_bound ? &o->least : &o->most) = at;
    *(is_lower_bound ? &o->why_least : &o->why_most) = why;
    if (!module_option_fits(o))
        diag_add(e->c, DIAG_E0315, o->span, "'%s' is %g: %s", o->name, o->first, why);
}

/* If the asserted condition is about the range of options, narrows it and returns true: it is
 * checked when they are set. False: it is about something else. */
bool elab_option_range(Elab *e, const Op *holds, const char *why) {
    bool is = is_range(e, holds);
    if (is) narrow(e, holds, why);
    return is;
}
