/* Checking what the chosen model does not use: layers and functions nobody applies
 * are elaborated once with made-up arguments, other models as if they were chosen.
 * Everything goes to a scratch module, only the diagnostics stay. */
#include "frontend/elab/elab.h"

#include <string.h>

/* A copy of the elaborator with a module of its own and nothing elaborated, for checking what
 * the chosen model does not use. */
static Elab scratch_of(const Elab *e) {
    Elab s = *e;
    s.m = module_new(e->c, "scratch");
    s.frame = NULL;
    s.when = NULL;
    s.n_nested = s.n_calls = s.pure = s.stream = 0;
    s.gave_up = false;
    memset(&s.dims, 0, sizeof s.dims);
    s.space_of_key = s.atoms = s.vars = s.relation_names = (StrMap){0};
    memset(&s.all_vars, 0, sizeof s.all_vars);
    memset(&s.model_insts, 0, sizeof s.model_insts);
    memset(&s.nodes, 0, sizeof s.nodes);
    memset(&s.edges, 0, sizeof s.edges);
    memset(&s.bindings, 0, sizeof s.bindings);
    s.graph_space = NULL;
    s.links = (Links){0};
    s.graph_decl = NULL;
    return s;
}

/* ---- made-up arguments ------------------------------------------------------------------- */
static Value size_named(Elab *e, Frame *f, const char *name) {
    const Expr *size = expr_sym(e->a, sym_new(e->m, name));
    return val_dim(elab_atom_of_frame(e, f, name, size), size);
}

/* The node type of that name within a checked body; it is made up if the name is unbound. NULL:
 * the name is something else. */
static Space *node_named(Elab *e, const Ast *name) {
    Value v;
    if (elab_name_find(e, name->text, &v)) return elab_is_handle(v) ? elab_handle_space(v) : NULL;
    Space *s = space_node(e->m, name->text, name->span);
    s->graph = e->graph_space;
    elab_bind(e, name->text, val_node(s));
    return s;
}

/* A made-up relation for a parameter of type edge, between the node types that the type names.
 * e->same_ends: both ends are one node type, where names allow it. */
static Value some_edge(Elab *e, const Ast *formal) {
    static const Ast source = {.kind = AST_NAME, .text = "source"}, dest = {.text = "destination"};
    const Ast *t = formal->kid[0];
    Space *src = node_named(e, t->n ? t->kid[0] : &source);
    Value v;
    if (e->same_ends && t->n && !elab_name_find(e, t->kid[1]->text, &v))
        elab_bind(e, t->kid[1]->text, val_node(src));
    Space *dst = e->same_ends && !t->n ? src : node_named(e, t->n ? t->kid[1] : &dest);
    if (!src || !dst) return val_poison();
    return val_edge(space_edge(e->m, formal->text, src, dst, formal->span));
}

/* The space of one dimension d of a parameter's type, made up where nothing binds its name.
 * rows: it comes first, so an unbound name is a node type. NULL after a diagnostic. */
static Space *some_dim(Elab *e, Frame *f, const Ast *d, bool rows) {
    Value v;
    if (d->kind == AST_DOTS) return space_node(e->m, "rows", d->span);
    bool unbound =
        d->kind == AST_NAME && strcmp(d->text, "graph") != 0 && !elab_name_find(e, d->text, &v);
    if (unbound && rows) return node_named(e, d);
    if (unbound) elab_bind(e, d->text, size_named(e, f, d->text));
    return elab_dim_space(e, elab_eval(e, d), d->span);
}

/* A tensor of zeros of the declared type t: stands for an argument when a layer that nobody
 * calls is checked. */
static Value placeholder_tensor(Elab *e, Frame *f, const Ast *t) {
    Type type = type_scalar(elab_type_dtype(t));
    for (int i = 0; i < t->n && i < MAX_RANK; i++) {
        Space *s = some_dim(e, f, t->kid[i], i == 0);
        if (!s) return val_poison();
        if (type_has(&type, s)) {
            diag_add(e->c, DIAG_E0207, t->kid[i]->span,
                     "the dimension %s stands twice in one type; prime one of them",
                     elab_space_text(e, s));
            return val_poison();
        }
        type.dim[type.rank++] = s;
    }
    e->b.span = t->span;
    Op *zero = b_const(&e->b, type.dt, 0);
    return val_tensor(type.rank ? b_copy(&e->b, zero, type) : zero);
}

/* A layer that can be applied and does nothing: stands for an argument that is a layer. */
static Value placeholder_layer(Elab *e, Frame *f, const Ast *formal) {
    Inst *i = NEW(e->a, Inst);
    i->opaque = true;
    i->name = formal->text;
    Value v = {.kind = VAL_INST, .inst = i};
    return elab_fit_formal(e, f, formal, &v, formal->span) ? v : val_poison();
}

/* A value of a parameter's declared type, for checking a body that nobody calls. Sizes and node
 * types that the type names are made up. Poison: it has no type, or a mistake in it. */
static Value made_up(Elab *e, Frame *f, const Ast *formal) {
    enum { SOME_SIZE = 8 };
    const Ast *t = formal->kid[0];
    if (!t) return val_poison();
    if (elab_type_is_tensor(t)) return placeholder_tensor(e, f, t);
    if (strcmp(t->text, "edge") == 0) return some_edge(e, formal);
    if (strcmp(t->text, "layer") == 0) return placeholder_layer(e, f, formal);
    if (strcmp(t->text, "float") == 0) return val_float(0.5);
    if (strcmp(t->text, "bool") == 0) return val_bool(true);
    if (strcmp(t->text, "string") == 0) return val_string("");
    if (strcmp(t->text, "node") == 0) return val_node(space_node(e->m, formal->text, formal->span));
    Value v = val_int(e, SOME_SIZE);
    return elab_fit_formal(e, f, formal, &v, formal->span) ? v : val_poison();
}

/* Binds the parameters of a checked body: to their defaults, or to made-up values. optional:
 * inputs that have a default are made up, too. False after a diagnostic. */
static bool bind_made_up(Elab *e, Frame *f, const Ast *formals, bool optional) {
    for (int i = 0; i < formals->n; i++) {
        const Ast *formal = formals->kid[i], *dflt = formal->kid[1];
        bool input = formal->kid[0] && elab_type_is_tensor(formal->kid[0]);
        Value v;
        if (elab_formal_is_repeated(e, formals, i)) return false;
        if (dflt && !(input && optional)) {
            v = elab_eval(e, dflt);
            if (elab_is_poison(v) || !elab_fit_formal(e, f, formal, &v, dflt->span)) return false;
        } else
            v = made_up(e, f, formal);
        elab_bind(e, formal->text, v);
    }
    return true;
}

/* Elaborates the body of a layer or function that nobody uses, with made-up arguments, for its
 * diagnostics alone. optional: parameters with a default are given, too. */
static void check_body(Elab *e, const Ast *d, bool training, bool optional) {
    Frame frame, *f = elab_frame_push(e, &frame, d, NULL, d->span);
    Func *fn = func_new(e->m, arena_printf(e->a, "check%d%d", training, optional));
    bool layer = d->kind == AST_LAYER;
    const char *what = arena_printf(e->a, "'%s'", d->text);
    if (layer) {
        f->inst = NEW(e->a, Inst);
        f->inst->name = d->text;
    }
    e->b = (Builder){.m = e->m, .f = fn, .span = d->span};
    e->training = training;
    if (bind_made_up(e, f, d->kid[0], optional) &&
        (!layer || bind_made_up(e, f, d->kid[1], optional)))
        elab_frame_run(e, f, d->kid[layer ? 3 : 2], d->kid[layer ? 2 : 1], what);
    elab_flush_states(e);
    e->frame = NULL;
}

/* ---- layers without effect -------------------------------------------------------- */
/* Sets read[id] for each variable that the outputs and effects of a function depend on. */
static void mark_vars(Elab *e, Func *f, bool *read) {
    int *uses = func_use_counts(e->a, f);
    for (const Op *op = f->last; op; op = op->prev) {
        bool live = uses[op->id] || op_acts(op);
        for (int i = 0; i < op->n_in && !live; i++) uses[op->in[i]->id]--;
        if (live && op->var && op->kind == OP_VAR) read[op->var->id] = true;
    }
}

/* `conv3` of "conv3.lin.weight": one warning a layer. */
static const char *layer_of(Elab *e, const Var *v) {
    const char *dot = strchr(v->path, '.');
    return dot ? arena_strndup(e->a, v->path, (size_t)(dot - v->path)) : v->path;
}

/* Warns about a name once; `told` holds the names that were warned of. */
static void warn(Elab *e, StrMap *told, const char *name, Span at, const char *what) {
    if (strmap_has(told, name)) return;
    strmap_put(e->a, told, name, (void *)name);
    diag_warn(e->c, DIAG_E0319, ctx_user_span(e->c, at), "'%s' %s", name, what);
}

/* Warns of layers none of whose parameters is used. A layer of several parts may have one that
 * is of no use: HGT's last one sends to fewer node types than it could. */
static void warn_of_unread(Elab *e, StrMap *told) {
    bool *read = NEWN(e->a, bool, (size_t)e->m->vars.n + 1);
    StrMap used = {0};
    for (int i = 0; i < e->m->funcs.n; i++)
        if (e->m->funcs.v[i]->phase != PHASE_EMBED) mark_vars(e, e->m->funcs.v[i], read);
    for (int i = 0; i < e->m->vars.n; i++) {
        const Var *v = e->m->vars.v[i];
        if (read[v->id]) strmap_put(e->a, &used, layer_of(e, v), (void *)v->path);
    }
    for (int i = 0; i < e->m->vars.n; i++) {
        const Var *v = e->m->vars.v[i];
        if (v->kind == VAR_PARAM && !strmap_has(&used, layer_of(e, v)))
            warn(e, told, layer_of(e, v), v->span,
                 "is of no use: neither the result nor the loss depends on it, so it is not "
                 "learned, "
                 "and not saved");
    }
}

/* Warns of layers of the model that no phase applies, and of those that no result depends on. */
void elab_check_unreached(Elab *e) {
    StrMap told = {0}, applied = {0};
    if (e->c->n_errors) return;
    for (int i = 0; i < e->model_insts.n; i++) {
        const Inst *x = e->model_insts.v[i];
        if (x->applied) strmap_put(e->a, &applied, x->name, (void *)x->name);
    }
    for (int i = 0; i < e->model_insts.n; i++) {
        const Inst *x = e->model_insts.v[i];
        if (!strmap_has(&applied, x->name)) warn(e, &told, x->name, x->at, "is never applied");
    }
    warn_of_unread(e, &told);
}

/* Checks the layers and functions of a file that its model does not use, each three times: for
 * evaluation, for training, and for training with relations between two node types and with
 * inputs that have a default. */
void elab_check_unused(Elab *e, const Ast *file) {
    for (int i = 0; i < file->n; i++)
        if (file->kid[i]->kind == AST_EXTERN) elab_check_extern(e, file->kid[i]);
    for (int i = 0; i < file->n; i++) {
        const Ast *d = file->kid[i];
        if ((d->kind != AST_LAYER && d->kind != AST_FN) || strmap_get(&e->used, d->text) == d)
            continue;
        for (int round = 0; round < 3; round++) {
            Elab s = scratch_of(e);
            s.symbolic = true;
            s.same_ends = round != 1;
            s.graph_space = space_graph(s.m, "graph", d->span);
            check_body(&s, d, round > 0, round == 1);
        }
    }
}

/* Checks the models of a file that were not chosen, without the -D and --settable of the command
 * line. */
void elab_check_other_models(Elab *e, const Ast *file, const Ast *chosen) {
    for (int i = 0; i < file->n; i++) {
        const Ast *d = file->kid[i];
        if (d->kind != AST_MODEL || d == chosen) continue;
        Elab s = scratch_of(e);
        FeOptions none = *e->opt;
        none.n_defs = 0;
        none.settable = NULL;
        s.opt = &none;
        elab_model(&s, d, elab_train_of(file, d));
    }
}
