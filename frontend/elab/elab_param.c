/* Parameters and state: variables of the module with a checkpoint path, a saved
 * shape and an initialiser.  The fans are those of torch_geometric.nn.inits and
 * torch.nn.init, taken from the saved shape. */
#include "frontend/elab/elab.h"

#include <string.h>

/* ---- initialisers -------------------------------------------------------------------- */
typedef struct {
    const char *name;
    InitKind kind;
    int min, max; /* numbers by position */
    double a, b;  /* where they are not given */
} InitFn;

/* The initialiser of that name: its kind, how many numbers it takes and their defaults. NULL:
 * there is none. */
static const InitFn *init_find(const char *name) {
    static const InitFn table[] = {
        {"zeros", INIT_CONST, 0, 0, 0, 0},
        {"ones", INIT_CONST, 0, 0, 1, 0},
        {"constant", INIT_CONST, 1, 1, 0, 0},
        {"uniform", INIT_UNIFORM, 2, 2, 0, 1},
        {"normal", INIT_NORMAL, 0, 2, 0, 1},
        {"glorot", INIT_GLOROT, 0, 1, 1, 0},
        {"kaiming_uniform", INIT_KAIMING_UNIFORM, 0, 1, 0, 0},
    };
    for (size_t i = 0; i < COUNT(table); i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

/* Sets *x to a number of an initialiser. False after a diagnostic: it is not known when
 * compiling. */
static bool init_number(Elab *e, const Ast *t, double *x) {
    Value v = elab_eval(e, t);
    if (elab_is_poison(v)) return false;
    if (elab_is_number(v) && elab_number_known(e, v, x)) return true;
    diag_add(e->c, DIAG_E0210, t->span,
             "an initialiser takes numbers that are known when compiling, "
             "not %s",
             v.kind == VAL_INT ? "a size of the data" : elab_kind_text(v));
    return false;
}

/* Reads `fan = n`, `fan_in = n` or `fan_out = n` of an initialiser. False after a diagnostic. */
static bool init_fan(Elab *e, const Ast *t, InitSpec *s) {
    const char *name = t->text;
    bool in = strcmp(name, "fan") == 0 || strcmp(name, "fan_in") == 0;
    bool fans = s->kind == INIT_GLOROT || (s->kind == INIT_KAIMING_UNIFORM && in);
    if (!fans || (!in && strcmp(name, "fan_out") != 0)) {
        diag_add(e->c, DIAG_E0206, t->span, "this initialiser has no '%s'", name);
        return false;
    }
    Value v = elab_eval(e, t->kid[0]);
    if (v.kind == VAL_INT) {
        *(in ? &s->fan_in : &s->fan_out) = v.size;
        return true;
    }
    if (!elab_is_poison(v))
        diag_add(e->c, DIAG_E0204, t->span, "a fan is an int, not %s", elab_kind_text(v));
    return false;
}

/* Reads a call of an initialiser, such as normal(0, 0.1), into s. False after a diagnostic. */
static bool init_call(Elab *e, const Ast *t, const InitFn *fn, InitSpec *s) {
    double *slot[2] = {&s->a, &s->b};
    int n = 0;
    *s = (InitSpec){.kind = fn->kind, .a = fn->a, .b = fn->b};
    for (int i = 1; i < t->n; i++) {
        if (t->kid[i]->kind == AST_NAMED) {
            if (!init_fan(e, t->kid[i], s)) return false;
        } else if (n == fn->max)
            n = fn->max + 1;
        else if (!init_number(e, t->kid[i], slot[n++]))
            return false;
    }
    if (n >= fn->min && n <= fn->max) return true;
    diag_add(e->c, DIAG_E0206, t->span, "'%s' takes %d number%s", fn->name,
             n < fn->min ? fn->min : fn->max, (n < fn->min ? fn->min : fn->max) == 1 ? "" : "s");
    return false;
}

/* Reads the initialiser of a parameter: a call of one, or a number that all elements have. False
 * after a diagnostic. */
static bool init_of(Elab *e, const Ast *t, InitSpec *s) {
    const InitFn *fn =
        t->kind == AST_CALL && t->kid[0]->kind == AST_NAME ? init_find(t->kid[0]->text) : NULL;
    if (fn) return init_call(e, t, fn, s);
    *s = (InitSpec){.kind = INIT_CONST};
    return init_number(e, t, &s->a);
}

/* Reports that an initialiser cannot know its fans. Always false. */
static bool need_fan(Elab *e, Span at) {
    diag_add(e->c, DIAG_E0206, at,
             "this initialiser needs a saved shape of two dimensions or more, or its "
             "fans: fan = n");
    return false;
}

/* Makes *out of the initialiser s, whose fans are taken from the shape of the parameter where
 * the user gave none. False after a diagnostic. */
static bool init_fans(Elab *e, const InitSpec *s, int rank, const Expr *const *shape, Init *out,
                      Span at) {
    *out =
        (Init){.kind = s->kind, .a = s->a, .b = s->b, .fan_in = s->fan_in, .fan_out = s->fan_out};
    if (s->kind == INIT_GLOROT) {
        if ((!out->fan_in || !out->fan_out) && rank < 2) return need_fan(e, at);
        if (!out->fan_in) out->fan_in = shape[rank - 1];
        if (!out->fan_out) out->fan_out = shape[rank - 2];
    }
    if (s->kind == INIT_KAIMING_UNIFORM && !out->fan_in) {
        if (rank < 2) return need_fan(e, at);
        out->fan_in = shape[1];
        for (int i = 2; i < rank; i++) out->fan_in = expr_mul(e->a, out->fan_in, shape[i]);
    }
    return true;
}

/* ---- saved shapes ---------------------------------------------------------------------- */
/* Sets the shape that a parameter has in checkpoints: `saved`, if it says one, else that of its
 * type t. Both must have equally many elements. False after a diagnostic. */
static bool saved_shape(Elab *e, const Ast *saved, const Type *t, int *rank, const Expr **shape) {
    bool given = saved && saved->flag;
    *rank = given ? saved->n : t->rank;
    if (*rank > MAX_RANK) {
        diag_add(e->c, DIAG_E0216, saved->span, "a shape has at most %d dimensions", MAX_RANK);
        return false;
    }
    const Expr *count = expr_const(e->a, 1);
    for (int i = 0; i < *rank; i++) {
        Value v = given ? elab_eval(e, saved->kid[i]) : val_none();
        if (elab_is_poison(v)) return false;
        Space *s = !given || v.kind == VAL_INT ? NULL : elab_dim_space(e, v, saved->kid[i]->span);
        if (given && v.kind != VAL_INT && !s) return false;
        shape[i] = !given ? t->dim[i]->size : s ? s->size : v.size;
        count = expr_mul(e->a, count, shape[i]);
    }
    if (expr_eq(count, type_count(e->a, t))) return true;
    diag_add(e->c, DIAG_E0216, saved->span,
             "the saved shape has another number of elements than %s", elab_type_text(e, t));
    return false;
}

/* ---- variables ---------------------------------------------------------------------------- */
/* An empty name is the instance's own path. */
static const char *var_path(Elab *e, const char *name) {
    const char *up = elab_inst_path(e, e->frame->inst);
    return *up && !*name ? up : *up ? arena_printf(e->a, "%s.%s", up, name) : name;
}

/* Makes the module's variable for a parameter or state under `path`. saved: the name and shape
 * in checkpoints. NULL after a diagnostic. */
static VarInfo *new_var(Elab *e, const Ast *t, const char *path, const Type *type,
                        const InitSpec *init, const Ast *saved, Span at) {
    const Expr *shape[MAX_RANK];
    int rank;
    Init full;
    if (!saved_shape(e, saved, type, &rank, shape)) return NULL;
    if (!init_fans(e, init, rank, shape, &full, t->kid[2]->span)) return NULL;
    VarInfo *v = NEW(e->a, VarInfo);
    VarKind kind = strcmp(t->text, "param") == 0 ? VAR_PARAM : VAR_STATE;
    v->var = var_new(e->m, kind, path, *type, full, b_site(&e->b, at));
    v->decl = t;
    if (saved && saved->flag) {
        v->var->save_rank = rank;
        for (int i = 0; i < rank; i++) v->var->save_shape[i] = shape[i];
    }
    strmap_put(e->a, &e->vars, v->var->path, v);
    vec_push(e->a, &e->all_vars, v);
    return v;
}

/* Whether two types have the same element type and equal sizes, though their dimensions may have
 * other names. */
static bool same_shape(const Type *x, const Type *y) {
    bool same = x->rank == y->rank && x->dt == y->dt;
    for (int i = 0; same && i < x->rank; i++) same = expr_eq(x->dim[i]->size, y->dim[i]->size);
    return same;
}

/* The variable at this path: made now, or by an earlier application or phase. NULL after a
 * diagnostic: its type was another then. */
static VarInfo *get_var(Elab *e, const Ast *t, const char *path, const Type *type,
                        const InitSpec *init, const Ast *saved, Span at) {
    VarInfo *v = strmap_get(&e->vars, path);
    if (!v) return new_var(e, t, path, type, init, saved, at);
    if (v->decl == t && same_shape(&v->var->type, type)) return v;
    diag_add(e->c, DIAG_E0308, at, "'%s' is %s here, but was %s before", path,
             elab_type_text(e, type),
             v->decl == t ? elab_type_text(e, &v->var->type) : "another parameter");
    diag_note(e->c, v->var->span, "the first one is here");
    if (v->decl == t && e->frame->call_at.line)
        diag_note(e->c, e->frame->call_at, "the layer is applied here with other sizes");
    return NULL;
}

/* The value of a variable in the body that declares it: a state's after its assignments in this
 * phase. It has the spaces of `type`. */
static Op *read_var(Elab *e, const VarInfo *v, const Type *type, Span at) {
    e->b.span = at;
    Op *x = v->now ? v->now : b_var(&e->b, v->var);
    return elab_op_respace(e, x, type->dim);
}

/* Executes the declaration of the i-th of the names in a `param` or `state` statement. */
static void exec_var_one(Elab *e, const Ast *t, int i, const Type *type, const InitSpec *init) {
    const Ast *name = t->kid[0]->kid[i];
    const Ast *list = t->kid[3];
    const Ast *saved = list ? list->kid[i] : NULL;
    const char *path = var_path(e, saved ? saved->text : name->text);
    const char *once = arena_printf(e->a, "=%s", path);
    if (strmap_has(&e->frame->instance_names, once)) {
        diag_add(e->c, DIAG_E0308, name->span, "'%s' is declared twice in one body", path);
        return;
    }
    strmap_put(e->a, &e->frame->instance_names, once, (void *)t);
    VarInfo *v = get_var(e, t, path, type, init, saved, name->span);
    Value x = v ? val_tensor(read_var(e, v, type, name->span)) : val_poison();
    const Ast *kept = t->kid[4];
    if (kept) x = elab_stored_as(e, x, elab_type_dtype(kept), name->span, kept->span);
    elab_bind(e, name->text, x);
    if (v && v->var->kind == VAR_STATE) strmap_put(e->a, &e->frame->states, name->text, v);
}

/* Whether the present body may have parameters or states: a layer's or model's may. Reported if
 * not. */
static bool var_allowed(Elab *e, const Ast *t) {
    const Frame *f = e->frame;
    if (f->decl->kind == AST_LAYER || f->decl->kind == AST_MODEL) return true;
    diag_add(e->c, DIAG_E0303, t->span, "only layers and models have a %s; '%s' is a function",
             t->text, f->decl->text);
    return false;
}

/* Executes a statement `param a, b: type = init` or `state ..`. On a mistake its names are bound
 * to poison. */
void elab_exec_var(Elab *e, const Ast *t) {
    const Ast *names = t->kid[0], *list = t->kid[3];
    Type type;
    InitSpec init;
    for (int i = 0; i < names->n; i++) elab_bind(e, names->kid[i]->text, val_poison());
    if (!var_allowed(e, t)) return;
    if (list && list->n != names->n) {
        diag_add(e->c, DIAG_E0303, list->span, "%d names to save under for %d %ss", list->n,
                 names->n, t->text);
        return;
    }
    if (!elab_type_is_tensor(t->kid[1]) || !dtype_is_float(elab_type_dtype(t->kid[1]))) {
        diag_add(e->c, DIAG_E0205, t->kid[1]->span, "a %s is a floating-point tensor", t->text);
        return;
    }
    bool ok = elab_type_spaces(e, t->kid[1], &type);
    if (!init_of(e, t->kid[2], &init) || !ok) return;
    for (int i = 0; i < names->n; i++) exec_var_one(e, t, i, &type, &init);
}

/* ---- state -------- */
VarInfo *elab_state_of(Elab *e, const Ast *target) {
    return target->kind == AST_NAME ? strmap_get(&e->frame->states, target->text) : NULL;
}

/* Assigns x to the state v, called `name` here. Only training may; no gradient goes through the
 * assigned value. */
void elab_assign_state(Elab *e, const char *name, VarInfo *v, Value x, Span at) {
    Value *old = strmap_get(&e->frame->vars, name);
    if (!e->training) {
        diag_add(e->c, DIAG_E0303, at, "state is assigned outside 'if training'");
        return;
    }
    Op *y = elab_to_tensor(e, x, v->var->type.dt, at);
    if (!y || !old || old->kind != VAL_TENSOR) return;
    const Type *t = &old->op->type;
    bool fits = y->type.dt == t->dt;
    for (int i = 0; i < y->type.rank; i++) fits = fits && type_has(t, y->type.dim[i]);
    if (!fits) {
        diag_add(e->c, DIAG_E0203, at, "'%s' is %s and cannot become %s", name,
                 elab_type_text(e, t), elab_type_text(e, &y->type));
        return;
    }
    if (e->links.again) return; /* it was assigned before */
    e->b.span = at;
    Value now = elab_tensor_order(e, elab_to_dense(e, y), t->rank, t->dim, at);
    now = val_tensor(b_detach(&e->b, now.op));
    elab_bind(e, name, now);
    v->now = elab_op_respace(e, now.op, v->var->type.dim);
    v->assigned = true;
}

/* Adds the assignments to states at the end of a phase, of the last value of each, and forgets
 * them. */
void elab_flush_states(Elab *e) {
    for (int i = 0; i < e->all_vars.n; i++) {
        VarInfo *v = e->all_vars.v[i];
        if (v->assigned) b_assign(&e->b, v->var, v->now);
        v->now = NULL;
        v->assigned = false;
    }
}
