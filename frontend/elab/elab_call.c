/* Calls: instantiating layers, applying instances, calling functions. */
#include "frontend/elab/elab.h"

#include <string.h>

/* ---- arguments to formals ------------------------------------------------------------ */
/* How many of a declaration's parameters may be given by position; the flag marks those given by
 * name only. */
static int count_positional(const Ast *formals) {
    int n = 0;
    while (n < formals->n && !formals->kid[n]->flag) n++;
    return n;
}

/* The parameter of that name; NULL: there is none. */
static const Ast *formal_named(const Ast *formals, const char *name) {
    for (int i = 0; i < formals->n; i++)
        if (strcmp(formals->kid[i]->text, name) == 0) return formals->kid[i];
    return NULL;
}

/* Reports that a call has too many arguments by position, with the names of those it may have,
 * for readers who expect PyTorch's (in, out). */
static void say_too_many(Elab *e, const Ast *formals, const char *what, const Args *args) {
    int n = count_positional(formals);
    StrBuf names = sb_new(e->a);
    sb_puts(&names, "");
    for (int i = 0; i < n; i++) sb_printf(&names, "%s%s", i ? ", " : " (", formals->kid[i]->text);
    if (n) sb_puts(&names, ")");
    diag_add(e->c, DIAG_E0206, args->at[n], "%s takes %d argument%s by position%s, not %d%s", what,
             n, n == 1 ? "" : "s", names.s, args->n,
             formals->n > n ? "; the others are given by name" : "");
}

/* Checks that the arguments of a call have parameters, each only one argument. what: the callee,
 * for messages. False after a diagnostic. */
static bool check_names(Elab *e, const Ast *formals, const char *what, const Args *args) {
    if (args->n > count_positional(formals)) {
        say_too_many(e, formals, what, args);
        return false;
    }
    for (int i = 0; i < args->n_named; i++) {
        const Ast *f = formal_named(formals, args->name[i]);
        bool twice = false;
        for (int j = 0; f && j < args->n; j++) twice = twice || formals->kid[j] == f;
        for (int j = 0; j < i; j++) twice = twice || strcmp(args->name[i], args->name[j]) == 0;
        if (f && !twice) continue;
        Names known = {0};
        for (int j = 0; j < formals->n; j++) elab_names_add(e, &known, formals->kid[j]->text);
        diag_add(e->c, DIAG_E0206, args->named_at[i],
                 twice ? "%s gets '%s' twice" : "%s has no '%s'%s", what, args->name[i],
                 elab_names_advice(e, args->name[i], &known));
        return false;
    }
    return true;
}

/* Sets *v and *at to the argument of a call for the i-th parameter, by position or by name.
 * False: it has none. */
static bool find_arg(const Ast *formals, int i, const Args *args, Value *v, Span *at) {
    if (i < args->n) {
        *v = args->v[i];
        *at = args->at[i];
        return true;
    }
    for (int j = 0; j < args->n_named; j++)
        if (strcmp(args->name[j], formals->kid[i]->text) == 0) {
            *v = args->named[j];
            *at = args->named_at[j];
            return true;
        }
    return false;
}

/* Whether an earlier parameter has the name of the i-th: reported as an error. */
bool elab_formal_is_repeated(Elab *e, const Ast *formals, int i) {
    for (int j = 0; j < i; j++)
        if (strcmp(formals->kid[j]->text, formals->kid[i]->text) == 0) {
            diag_add(e->c, DIAG_E0202, formals->kid[i]->span, "there are two parameters '%s'",
                     formals->kid[i]->text);
            return true;
        }
    return false;
}

/* Binds the i-th parameter in the callee's frame: to its value in `settings`, to its argument,
 * or to its default. False after a diagnostic. */
static bool bind_formal(Elab *e, Frame *f, const Ast *formals, int i, const char *what,
                        const Args *args, const StrMap *settings) {
    const Ast *formal = formals->kid[i];
    Value v = val_none();
    Span at = args->span;
    Value *setting = settings ? strmap_get(settings, formal->text) : NULL;
    if (setting)
        v = *setting;
    else if (!find_arg(formals, i, args, &v, &at)) {
        if (!formal->kid[1]) {
            diag_add(e->c, DIAG_E0206, args->span, "%s needs '%s'", what, formal->text);
            diag_note(e->c, formal->span, "'%s' is declared here", formal->text);
            return false;
        }
        at = formal->kid[1]->span;
        v = elab_eval(e, formal->kid[1]);
    }
    if (!elab_fit_formal(e, f, formal, &v, at)) return false;
    elab_bind(e, formal->text, v);
    return true;
}

/* Binds all parameters of a callee in its frame f. settings: values that a layer was given when
 * it was made; NULL = none. False after a diagnostic. */
bool elab_bind_formals(Elab *e, Frame *f, const Ast *formals, const char *what, const Args *args,
                       const StrMap *settings) {
    if (!check_names(e, formals, what, args)) return false;
    bool ok = true;
    for (int i = 0; i < formals->n && ok; i++)
        ok = !elab_formal_is_repeated(e, formals, i) &&
             bind_formal(e, f, formals, i, what, args, settings);
    return ok;
}

/* ---- running a body ---------------------------------------------------------------------- */
/* Fills *f as the frame of a call of decl and makes it the present one. f->nesting: how many
 * callers run the same declaration. */
Frame *elab_frame_push(Elab *e, Frame *f, const Ast *decl, Inst *inst, Span at) {
    *f = (Frame){.up = e->frame, .decl = decl, .inst = inst, .call_at = at};
    for (Frame *up = e->frame; up; up = up->up) f->nesting += up->decl == decl;
    e->frame = f;
    return f;
}

/* Runs a body in its frame, whose parameters are bound, and fits what it returns to the declared
 * type. Poison after a mistake. */
Value elab_frame_run(Elab *e, Frame *f, const Ast *body, const Ast *result_type, const char *what) {
    elab_exec_block(e, body);
    Value v = f->result;
    if (!f->returned && !f->broken && !e->gave_up) {
        diag_add(e->c, DIAG_E0302, f->decl->span, "%s has a path that returns nothing", what);
        v = val_poison();
    }
    if (!f->returned) v = val_poison();
    if (result_type && !elab_fit_result(e, result_type, &v, f->result_at, what)) v = val_poison();
    return v;
}

/* Counts a call of decl. False after a diagnostic: it uses itself, or calls are nested too deep. */
static bool enter_call(Elab *e, const Ast *decl, Span at) {
    enum { SAME = 8 };
    int same = 0;
    for (Frame *f = e->frame; f; f = f->up) same += f->decl == decl;
    if (same >= SAME || e->n_calls >= MAX_CALLS) {
        diag_add(e->c, DIAG_E0304, at, "'%s' uses itself, directly or through others", decl->text);
        e->gave_up = true;
        return false;
    }
    e->n_calls++;
    return true;
}

/* Whether one of the first n diagnostics is this one: the same code at the same place. */
static bool is_told(const Ctx *c, int n, DiagCode code, Span at) {
    for (int i = 0; i < n; i++) {
        const Diag *d = &c->diags.v[i];
        bool same = d->sev != SEV_NOTE && d->code == code && d->span.file == at.file;
        if (same && d->span.line == at.line && d->span.col == at.col) return true;
    }
    return false;
}

/* Only the first `keep` diagnostics stay. */
static void drop_diags(Ctx *c, int keep) {
    for (int i = keep; i < c->diags.n; i++) c->n_errors -= c->diags.v[i].sev == SEV_ERROR;
    c->diags.n = keep;
}

/* Moves the first new diagnostic (number `before`) from the body of a library function to its
 * call, at `at`, as no user can mend the library. It is dropped if it was told there already. */
static void blame_caller(Elab *e, const Ast *decl, int before, Span at) {
    Diag *first = &e->c->diags.v[before];
    Span inside = first->span;
    int end = before + 1;
    while (end < e->c->diags.n && e->c->diags.v[end].sev == SEV_NOTE) end++;
    bool again = is_told(e->c, before, first->code, at) && e->c->n_errors > 1;
    drop_diags(e->c, again ? before : end);
    if (again) return;
    first->span = at;
    diag_note(e->c, inside, "it is found here, inside '%s'", decl->text);
}

/* If the call at `at` of a library function made diagnostics (those from number `before` on),
 * says in a note, or in their place, who called it. */
static void note_caller(Elab *e, const Ast *decl, int before, Span at) {
    int i = e->c->diags.n - 1;
    if (i < before || e->c->diags.v[before].sev != SEV_ERROR) return;
    if (e->c->diags.v[before].span.file == e->prelude_file && at.file != e->prelude_file) {
        blame_caller(e, decl, before, at);
        return;
    }
    while (i > 0 && e->c->diags.v[i].sev == SEV_NOTE) i--;
    if (e->c->diags.v[i].span.file != at.file)
        diag_note(e->c, at, "inside '%s', used here", decl->text);
}

/* Calls a function of the language, or one in C, in a frame of its own; the result has the
 * caller's names. Layers that it makes belong to the instance that calls it. */
static Value call_fn(Elab *e, const Ast *decl, const Args *args) {
    if (decl->kind == AST_EXTERN) return elab_call_extern(e, decl, args);
    if (!enter_call(e, decl, args->span)) return val_poison();
    Frame frame, *f = elab_frame_push(e, &frame, decl, NULL, args->span);
    const char *what = arena_printf(e->a, "'%s'", decl->text);
    int before = e->c->diags.n;
    Value v = val_poison();
    f->inst = f->up ? f->up->inst : NULL;
    if (elab_bind_formals(e, f, decl->kid[0], what, args, NULL)) {
        strmap_put(e->a, &e->used, decl->text, (void *)decl);
        v = elab_frame_run(e, f, decl->kid[2], decl->kid[1], what);
    }
    e->frame = f->up;
    e->n_calls--;
    e->b.span = args->span;
    note_caller(e, decl, before, args->span);
    return elab_value_outside(e, f, v, args->span);
}

/* ---- layers --------------------------------------------------------------------------------- */
/* A copy of v that lives as long as the compilation, for maps, which hold pointers. */
static Value *boxed(Elab *e, Value v) {
    Value *p = NEW(e->a, Value);
    *p = v;
    return p;
}

/* Makes an instance of a layer from its settings, `linear(16)`. Its body runs when the instance
 * is applied. */
static Value instantiate(Elab *e, const Ast *decl, const Args *args) {
    const char *what = arena_printf(e->a, "'%s'", decl->text);
    const Ast *formals = decl->kid[0];
    if (!check_names(e, formals, what, args)) return val_poison();
    Inst *inst = NEW(e->a, Inst);
    inst->decl = decl;
    inst->at = args->span;
    for (int i = 0; i < formals->n; i++) {
        Value v;
        Span at;
        const char *name = formals->kid[i]->text;
        if (find_arg(formals, i, args, &v, &at)) {
            strmap_put(e->a, &inst->settings, name, boxed(e, v));
            elab_name_instances(e, v, inst, name, at);
        } else if (!formals->kid[i]->kid[1]) {
            diag_add(e->c, DIAG_E0206, args->span, "%s needs '%s'", what, name);
            diag_note(e->c, formals->kid[i]->span, "'%s' is declared here", name);
            return val_poison();
        }
    }
    return (Value){.kind = VAL_INST, .inst = inst};
}

/* Names an instance that is applied without having been bound to a name: linear_1, by the order
 * within the body. */
static void name_anonymous(Elab *e, Inst *inst) {
    Frame *f = e->frame;
    if (inst->name) return;
    const char *base = inst->decl ? inst->decl->text : "sequential";
    inst->name = arena_printf(e->a, "%s_%d", base, ++f->n_anonymous);
    inst->parent = f->inst;
}

/* Applies an instance: runs the body of its layer, with the settings that it was made with and
 * the arguments of the call. */
static Value apply_layer(Elab *e, Inst *inst, const Args *args) {
    const Ast *decl = inst->decl;
    name_anonymous(e, inst);
    if (!enter_call(e, decl, args->span)) return val_poison();
    Frame frame, *f = elab_frame_push(e, &frame, decl, inst, args->span);
    const char *what = arena_printf(e->a, "'%s'", decl->text);
    int before = e->c->diags.n;
    Value v = val_poison();
    const Args none = {.span = inst->at};
    if (elab_bind_formals(e, f, decl->kid[0], what, &none, &inst->settings) &&
        elab_bind_formals(e, f, decl->kid[1], what, args, NULL)) {
        strmap_put(e->a, &e->used, decl->text, (void *)decl);
        v = elab_frame_run(e, f, decl->kid[3], decl->kid[2], what);
    }
    e->frame = f->up;
    e->n_calls--;
    e->b.span = args->span;
    note_caller(e, decl, before, args->span);
    return elab_value_outside(e, f, v, args->span);
}

/* Applies the members of a sequential one after another, each to the result of the one before.
 * An empty one returns its argument. */
static Value apply_sequential(Elab *e, Inst *inst, const Args *args) {
    name_anonymous(e, inst);
    if (inst->members.n == 0) return args->n == 1 ? args->v[0] : val_poison();
    Value v = elab_call_value(e, inst->members.v[0], args);
    for (int i = 1; i < inst->members.n && !elab_is_poison(v); i++) {
        Args one = {.n = 1,
                    .v = &v,
                    .at = (Span *)&args->span,
                    .span = args->span,
                    .name_span = args->span};
        v = elab_call_value(e, inst->members.v[i], &one);
    }
    return v;
}

/* ---- arguments of type layer(I -> O) -------------------------------------------------------- */
/* Reports that an argument of type layer(in -> out) does not do what the type says. Always
 * false. */
static bool misfit(Elab *e, const Inst *inst, const Args *args, const char *why) {
    diag_add(e->c, DIAG_E0212, args->span, "'%s' is declared layer(%s -> %s), but %s", inst->name,
             inst->in_name, inst->out_name, why);
    return false;
}

/* What a name stands for in the frame f; none: it is not bound there. */
static Value name_in(Elab *e, Frame *f, const char *name) {
    (void)e;
    Value *v = strmap_get(&f->vars, name);
    return v ? *v : val_none();
}

/* The space of the result's new dimension s: the one that `out` stands for in the frame that
 * declares the argument; the first call binds it. NULL after a diagnostic. */
static Space *out_space(Elab *e, Inst *inst, Space *s, const Args *args) {
    Frame *f = inst->in_frame;
    Value o = name_in(e, f, inst->out_name);
    if (o.kind == VAL_INT) {
        if (expr_eq(o.size, s->size)) return elab_space_of_dim(e, o.key, o.size, args->span);
        misfit(e, inst, args,
               arena_printf(e->a, "it gives %s where %s is wanted", elab_space_text(e, s),
                            elab_key_print(e, o.key)));
        return NULL;
    }
    o = elab_dim_bound(e, f, inst->out_name, elab_key_of_space(e, s), s->size);
    strmap_put(e->a, &f->vars, inst->out_name, boxed(e, o));
    return elab_space_of_dim(e, o.key, o.size, args->span);
}

/* The place of the one size in y that x does not have; -1: there is none, or several, or it is
 * no size. */
static int new_dim(const Type *y, const Type *x) {
    int at = -1, n = 0;
    for (int i = 0; i < y->rank; i++)
        if (!type_has(x, y->dim[i])) at = i, n++;
    return n == 1 && y->dim[at]->kind == SP_DIM ? at : -1;
}

/* The result y of an applied layer(in -> out), with its new dimension, or the one that `in` was,
 * under the name of out. Poison after a diagnostic. */
static Value rename_out(Elab *e, Inst *inst, const Op *x, Space *in, Op *y, const Args *args) {
    int at = new_dim(&y->type, &x->type);
    if (at < 0) at = type_find(&y->type, in);
    if (at < 0 || y->type.rank != x->type.rank) {
        misfit(e, inst, args,
               arena_printf(e->a, "it makes %s of %s", elab_type_text(e, &y->type),
                            elab_type_text(e, &x->type)));
        return val_poison();
    }
    Space *to[MAX_RANK];
    for (int i = 0; i < y->type.rank; i++) to[i] = y->type.dim[i];
    to[at] = out_space(e, inst, y->type.dim[at], args);
    return to[at] ? val_tensor(elab_op_respace(e, y, to)) : val_poison();
}

/* What a made-up layer(in -> out) gives of x, when a body is only checked: zeros of x's type
 * with the dimension out in place of in. */
static Value opaque_result(Elab *e, Inst *inst, Op *x, Space *in, const Args *args) {
    Value o = name_in(e, inst->in_frame, inst->out_name);
    Type t = x->type;
    t.layout = LAYOUT_DENSE;
    int at = type_find(&t, in);
    if (o.kind == VAL_INT)
        t.dim[at] = elab_space_of_dim(e, o.key, o.size, args->span);
    else {
        const Expr *size = expr_sym(e->a, sym_new(e->m, inst->out_name));
        const Expr *atom = elab_atom_of_frame(e, inst->in_frame, inst->out_name, size);
        strmap_put(e->a, &inst->in_frame->vars, inst->out_name, boxed(e, val_dim(atom, size)));
        t.dim[at] = elab_space_of_dim(e, atom, size, args->span);
    }
    return val_tensor(b_copy(&e->b, b_const(&e->b, t.dt, 0), t));
}

/* Applies an argument of type layer(in -> out): checks that x has the dimension in, and names
 * that of the result out. */
static Value apply_typed(Elab *e, Inst *inst, const Args *args) {
    Value i = name_in(e, inst->in_frame, inst->in_name);
    Op *x = args->n && args->v[0].kind == VAL_TENSOR ? args->v[0].op : NULL;
    Space *in = NULL;
    if (!x || i.kind != VAL_INT || !elab_dim_find(e, x, i, &in)) {
        misfit(e, inst, args,
               x ? arena_printf(e->a, "it is applied to %s", elab_type_text(e, &x->type))
                 : "it is not applied to a tensor");
        return val_poison();
    }
    if (inst->inner.kind == VAL_INST && inst->inner.inst->opaque)
        return opaque_result(e, inst, x, in, args);
    Value y = elab_call_value(e, inst->inner, args);
    if (elab_is_poison(y)) return y;
    if (y.kind == VAL_TENSOR) return rename_out(e, inst, x, in, y.op, args);
    misfit(e, inst, args, arena_printf(e->a, "it returns %s", elab_kind_text(y)));
    return val_poison();
}

/* Applies an instance of any kind to the arguments. An opaque one, which stands for an unknown
 * layer, returns its argument. */
static Value apply(Elab *e, Inst *inst, const Args *args) {
    inst->applied = true;
    if (inst->opaque) return args->n ? args->v[0] : val_poison();
    if (inst->in_name) return apply_typed(e, inst, args);
    if (inst->sequential) return apply_sequential(e, inst, args);
    return apply_layer(e, inst, args);
}

/* ---- any call -------- */
/* Whose the operations of a call of f are, for reports: the path of the layer that is applied or
 * stands around, else the functions that are called, from the outside, "cross_entropy". */
static const char *instance_of(Elab *e, Value f) {
    const Inst *inst = f.kind == VAL_INST ? f.inst : e->frame ? e->frame->inst : NULL;
    const char *path = elab_inst_path(e, inst), *outer = e->b.site.site_name;
    if (*path) return path;
    if (f.kind != VAL_FN || f.decl->kind == AST_EXTERN) return outer;
    return outer ? arena_printf(e->a, "%s.%s", outer, f.decl->text) : f.decl->text;
}

/* Calls the value f: a function, a layer (which makes an instance), an instance (which applies
 * it) or a built-in. If an argument is poison, so is the result. */
Value elab_call_value(Elab *e, Value f, const Args *args) {
    for (int i = 0; i < args->n; i++)
        if (elab_is_poison(args->v[i])) return val_poison();
    for (int i = 0; i < args->n_named; i++)
        if (elab_is_poison(args->named[i])) return val_poison();
    if (elab_is_poison(f) || !elab_enter(e, args->span)) return val_poison();
    Value v = val_poison();
    DType want = e->b.want;
    Span site = e->b.site;
    e->b.span = args->span;
    if (f.kept) e->b.want = f.kept;
    if (args->span.line && !e->c->sources.v[args->span.file].library) {
        e->b.site = args->span;
        e->b.site.site_name = instance_of(e, f);
    }
    if (f.kind == VAL_FN)
        v = call_fn(e, f.decl, args);
    else if (f.kind == VAL_LAYER)
        v = instantiate(e, f.decl, args);
    else if (f.kind == VAL_INST)
        v = apply(e, f.inst, args);
    else if (f.kind == VAL_BUILTIN)
        v = elab_builtin_call(e, f.builtin, args);
    else
        diag_add(e->c, DIAG_E0204, args->name_span, "%s is %s and cannot be called",
                 elab_source_text(e, args->name_span), elab_kind_text(f));
    e->b.want = want;
    e->b.site = site;
    elab_leave(e);
    return v;
}

/* Evaluates a call expression: the callee, then the arguments from left to right. t->kid[0]: the
 * callee; the others are arguments. */
Value elab_eval_call(Elab *e, const Ast *t) {
    int n = t->n - 1;
    Args args = {.span = t->span, .name_span = t->kid[0]->span};
    args.v = NEWN(e->a, Value, (size_t)n + 1);
    args.named = NEWN(e->a, Value, (size_t)n + 1);
    args.at = NEWN(e->a, Span, (size_t)n + 1);
    args.named_at = NEWN(e->a, Span, (size_t)n + 1);
    args.name = NEWN(e->a, const char *, (size_t)n + 1);
    Value f = elab_eval(e, t->kid[0]);
    bool bad = false;
    for (int i = 1; i < t->n; i++) {
        const Ast *k = t->kid[i];
        if (k->kind == AST_NAMED) {
            args.name[args.n_named] = k->text;
            args.named_at[args.n_named] = k->kid[0]->span;
            args.named[args.n_named++] = elab_eval(e, k->kid[0]);
            continue;
        }
        if (args.n_named && !bad) {
            diag_add(e->c, DIAG_E0206, k->span,
                     "an argument by position stands behind one by name");
            bad = true;
        }
        args.at[args.n] = k->span;
        args.v[args.n++] = elab_eval(e, k);
    }
    return bad ? val_poison() : elab_call_value(e, f, &args);
}
