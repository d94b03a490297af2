/* Declared types: fitting a caller's value to a formal (which gives names to
 * dimensions), and a result to what was promised. */
#include "frontend/elab/elab.h"

#include <string.h>

/* The element type that a tensor's type names; DT_VOID: it is no tensor's type. */
DType elab_type_dtype(const Ast *t) {
    for (int d = 0; d < N_DTYPES; d++)
        if (strcmp(dtype_name((DType)d), t->text) == 0) return (DType)d;
    return strcmp(t->text, "bool") == 0 ? DT_I1 : DT_VOID;
}

bool elab_type_is_tensor(const Ast *t) {
    DType d = elab_type_dtype(t);
    return d != DT_VOID && (d != DT_I1 || (t->flag & TYPE_DIMS));
}

static bool is_name(const Ast *t, const char *name) {
    return strcmp(t->text, name) == 0;
}

/* ---- types whose names are all known -------------------------------------------------- */
/* Adds the dimension s to a type. False after a diagnostic: it has it already, or too many. */
static bool add_dim(Elab *e, Type *t, Space *s, Span at) {
    if (!s) return false;
    if (type_has(t, s)) {
        diag_add(e->c, DIAG_E0207, at,
                 "the dimension %s stands twice in one type; prime one of them: "
                 "%s'",
                 elab_space_text(e, s), elab_space_text(e, s));
        return false;
    }
    if (t->rank == MAX_RANK) {
        diag_add(e->c, DIAG_E0216, at, "a value has at most %d dimensions", MAX_RANK);
        return false;
    }
    t->dim[t->rank++] = s;
    return true;
}

/* Fills *out with the tensor type t, all of whose names must be bound. False after a diagnostic. */
bool elab_type_spaces(Elab *e, const Ast *t, Type *out) {
    *out = type_scalar(elab_type_dtype(t));
    for (int i = 0; i < t->n; i++) {
        const Ast *d = t->kid[i];
        if (d->kind == AST_DOTS) {
            diag_add(e->c, DIAG_E0204, d->span,
                     "'..' stands only in the type of an input or a result");
            return false;
        }
        if (!add_dim(e, out, elab_dim_space(e, elab_eval(e, d), d->span), d->span)) return false;
    }
    return true;
}

/* ---- fitting tensors ---------------------------------------------------------------------- */
typedef struct {
    Elab *e;
    Frame *f;
    const Ast *type, *formal;
    Op *x;
    Span at;
    Space *to[MAX_RANK]; /* by dimension of x: its name inside; NULL = not matched yet */
} Fit;

/* Reports that an argument does not fit the type of its parameter. Always false. */
static bool misfit(Fit *m, const char *why) {
    Elab *e = m->e;
    diag_add(e->c, DIAG_E0212, m->at, "%s is %s, which does not fit '%s': %s",
             elab_source_text(e, m->at), elab_type_text(e, &m->x->type), m->formal->text, why);
    diag_note(e->c, m->formal->span, "'%s' is declared here", m->formal->text);
    bool elsewhere = m->x->span.line != m->at.line || m->x->span.col != m->at.col;
    if (m->x->span.line && m->x->span.file == m->at.file && elsewhere)
        diag_note(e->c, m->x->span, "the value comes from here");
    return false;
}

static bool is_unbound(Elab *e, const Ast *d) {
    Value v;
    return d->kind == AST_NAME && strcmp(d->text, "graph") != 0 && !elab_name_find(e, d->text, &v);
}

/* The place of the bound dimension v in the argument's type, where the caller may know it by
 * another name; -1: it is not there, or taken. */
static int find_dim(Fit *m, Value v) {
    for (int i = 0; i < m->x->type.rank; i++) {
        Space *s = m->x->type.dim[i];
        if (m->to[i]) continue;
        if (v.kind != VAL_INT) {
            if (s == elab_handle_space(v)) return i;
            continue;
        }
        const Expr *key = elab_key_of_space(m->e, s);
        if (key && (expr_eq(key, v.key) || expr_eq(key, elab_key_outside(m->e, m->f, v.key))))
            return i;
    }
    return -1;
}

/* Finds the dimension of the argument that a bound name d of the type stands for. False after a
 * diagnostic: it has none. */
static bool fit_bound(Fit *m, const Ast *d) {
    Elab *e = m->e;
    Value v = elab_eval(e, d);
    Space *s = elab_dim_space(e, v, d->span);
    if (!s) return false;
    int i = find_dim(m, v);
    if (i < 0) {
        const Expr *key = elab_key_of_space(e, s),
                   *out = key ? elab_key_outside(e, m->f, key) : NULL;
        const char *inside = key       ? elab_key_print(e, key)
                             : d->text ? d->text
                                       : elab_space_text(e, s);
        const char *here = out && out != key ? elab_key_print(e, out) : elab_space_text(e, s);
        if (strcmp(inside, here) == 0)
            return misfit(m, arena_printf(e->a, "it lacks the dimension %s", here));
        return misfit(m, arena_printf(e->a, "it lacks the dimension %s (%s here)", inside, here));
    }
    m->to[i] = m->x->type.layout == LAYOUT_CSR ? m->x->type.dim[i] : s;
    return true;
}

/* Binds a name of the type to the i-th dimension of the argument. A sparse argument keeps its
 * own spaces, as its stored entries belong to them. */
static void bind_dim(Fit *m, const char *name, int i) {
    Elab *e = m->e;
    Space *s = m->x->type.dim[i];
    m->to[i] = s;
    if (s->kind == SP_EDGE)
        elab_bind(e, name, val_edge(s));
    else if (s->kind != SP_DIM)
        elab_bind(e, name, val_node(s));
    else if (m->x->type.layout == LAYOUT_CSR) {
        vec_push(e->a, &m->f->seen, elab_key_of_space(e, s));
        elab_bind(e, name, val_dim(elab_key_of_space(e, s), s->size));
    } else {
        Value v = elab_dim_bound(e, m->f, name, elab_key_of_space(e, s), s->size);
        m->to[i] = elab_space_of_dim(e, v.key, v.size, m->formal->span);
        elab_bind(e, name, v);
    }
}

/* Binds the n names of a declared type that nothing has bound yet to the last n free dimensions
 * of the tensor. rest: the type has `..`, which takes the free dimensions before these. */
static bool fit_unbound(Fit *m, const Ast *const *names, int n, bool rest) {
    int free[MAX_RANK], n_free = 0;
    for (int i = 0; i < m->x->type.rank; i++)
        if (!m->to[i]) free[n_free++] = i;
    if (n_free < n || (n_free > n && !rest)) {
        int want = m->type->n - rest;
        return misfit(m,
                      arena_printf(m->e->a, "it has %d dimension%s, not %s%d", m->x->type.rank,
                                   m->x->type.rank == 1 ? "" : "s", rest ? "at least " : "", want));
    }
    for (int i = 0; i < n_free - n; i++) m->to[free[i]] = m->x->type.dim[free[i]];
    for (int i = 0; i < n; i++) bind_dim(m, names[i]->text, free[n_free - n + i]);
    return true;
}

/* Fits the dimensions of an argument to those of the declared type: first the names that are
 * bound, then the others. False after a diagnostic. */
static bool fit_dims(Fit *m) {
    const Ast *unbound[MAX_RANK] = {0};
    int n = 0;
    bool rest = false;
    if (m->type->n > MAX_RANK) return misfit(m, "too many dimensions are declared");
    for (int i = 0; i < m->type->n; i++) {
        const Ast *d = m->type->kid[i];
        if (d->kind == AST_DOTS)
            rest = true;
        else if (is_unbound(m->e, d))
            unbound[n++] = d;
        else if (!fit_bound(m, d))
            return false;
    }
    for (int i = 1; i < n; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(unbound[i]->text, unbound[j]->text) == 0) {
                diag_add(m->e->c, DIAG_E0207, unbound[i]->span,
                         "the dimension %s stands twice in one type; prime one of them: %s'",
                         unbound[i]->text, unbound[i]->text);
                return false;
            }
    if (!fit_unbound(m, unbound, n, rest)) return false;
    for (int i = 1; i < m->x->type.rank; i++)
        for (int j = 0; j < i; j++)
            if (m->to[i] == m->to[j]) return misfit(m, "two of its dimensions would be one inside");
    return true;
}

/* Fits the argument *v to a tensor type: *v has the body's own dimensions then. False after a
 * diagnostic. */
static bool fit_tensor(Elab *e, Frame *f, const Ast *formal, Value *v, Span at) {
    const Ast *t = formal->kid[0];
    DType dt = elab_type_dtype(t);
    Op *x = elab_to_tensor(e, *v, dt, at);
    if (!x) return false;
    Fit m = {.e = e, .f = f, .type = t, .formal = formal, .x = x, .at = at};
    if (x->type.dt != dt) return misfit(&m, arena_printf(e->a, "%s is asked for", t->text));
    if ((t->flag & TYPE_CSR) && x->type.layout != LAYOUT_CSR) return misfit(&m, "it is not csr");
    e->b.span = at;
    if (!fit_dims(&m)) return false;
    *v = val_tensor(x->type.layout == LAYOUT_CSR ? x : elab_op_respace(e, x, m.to));
    return true;
}

/* ---- fitting the rest ----------------------------------------------------------------------- */
/* Reports an argument of another kind than the parameter's type. Always false; poison was
 * reported before. */
static bool wrong_kind(Elab *e, const Ast *formal, Value v, Span at, const char *want) {
    if (elab_is_poison(v)) return false;
    diag_add(e->c, DIAG_E0212, at, "'%s' is %s, but %s is %s", formal->text, want,
             elab_source_text(e, at), elab_kind_text(v));
    diag_note(e->c, formal->span, "'%s' is declared here", formal->text);
    return false;
}

/* Fits an end of a relation to the name that the type gives it: binds it, or checks that it is
 * the same node type. False after a diagnostic. */
static bool fit_end(Elab *e, const Ast *formal, const Ast *name, Space *end, Span at) {
    Value v;
    if (!elab_name_find(e, name->text, &v)) {
        elab_bind(e, name->text, val_node(end));
        return true;
    }
    if (elab_is_handle(v) && elab_handle_space(v) == end) return true;
    diag_add(e->c, DIAG_E0212, at, "an end of %s is '%s', but %s is %s", elab_source_text(e, at),
             end->name, name->text,
             elab_is_handle(v) ? arena_printf(e->a, "'%s' here", elab_handle_space(v)->name)
                               : elab_kind_text(v));
    diag_note(e->c, formal->span, "'%s' is declared here", formal->text);
    return false;
}

/* Fits *v to the type edge(a -> b): a relation, whose ends are bound to a and b. False after a
 * diagnostic. */
static bool fit_edge(Elab *e, const Ast *formal, Value *v, Span at) {
    const Ast *t = formal->kid[0];
    if (v->kind != VAL_EDGE) return wrong_kind(e, formal, *v, at, "a relation");
    if (!t->n) return true;
    return fit_end(e, formal, t->kid[0], v->space->src, at) &&
           fit_end(e, formal, t->kid[1], v->space->dst, at);
}

/* Fits *v to the type int: the parameter's name stands for a dimension of that size. False after
 * a diagnostic. */
static bool fit_int(Elab *e, Frame *f, const Ast *formal, Value *v, Span at) {
    if (v->kind != VAL_INT) return wrong_kind(e, formal, *v, at, "an int");
    *v = elab_dim_bound(e, f, formal->text, v->key, v->size);
    return true;
}

/* Fits *v to the type float: a known number, or one computed of options of the program. False
 * after a diagnostic. */
static bool fit_float(Elab *e, const Ast *formal, Value *v, Span at) {
    double x;
    if (v->kind == VAL_TENSOR && elab_of_options(e, v->op)) return true;
    if (!elab_is_number(*v)) return wrong_kind(e, formal, *v, at, "a float");
    if (!elab_number_known(e, *v, &x)) {
        diag_add(e->c, DIAG_E0210, at,
                 "'%s' must be known when compiling, but %s is a size of the data", formal->text,
                 elab_source_text(e, at));
        return false;
    }
    *v = val_float(x);
    return true;
}

/* Fits *v to the type layer(in -> out): wraps it in an instance that checks and names its
 * dimensions when applied. False after a diagnostic. */
static bool fit_layer(Elab *e, Frame *f, const Ast *formal, Value *v, Span at) {
    const Ast *t = formal->kid[0];
    if (v->kind != VAL_INST && v->kind != VAL_FN && v->kind != VAL_BUILTIN)
        return wrong_kind(e, formal, *v, at, "a layer instance or a function");
    if (!t->n) return true;
    Inst *i = NEW(e->a, Inst);
    *i = (Inst){.inner = *v,
                .in_name = t->kid[0]->text,
                .out_name = t->kid[1]->text,
                .in_frame = f,
                .name = formal->text,
                .at = at};
    *v = (Value){.kind = VAL_INST, .inst = i};
    return true;
}

static bool accepts_none(const Ast *formal) {
    return formal->kid[1] && formal->kid[1]->kind == AST_NONE;
}

/* Fits *v to the type of a parameter; what the body sees replaces it. False after a diagnostic. */
static bool fit_formal(Elab *e, Frame *f, const Ast *formal, Value *v, Span at) {
    const Ast *t = formal->kid[0];
    if (elab_is_poison(*v)) return false;
    if (!t || (v->kind == VAL_NONE && accepts_none(formal))) return true;
    if (elab_type_is_tensor(t)) return fit_tensor(e, f, formal, v, at);
    if (is_name(t, "int")) return fit_int(e, f, formal, v, at);
    if (is_name(t, "float")) return fit_float(e, formal, v, at);
    if (is_name(t, "bool"))
        return v->kind == VAL_BOOL || wrong_kind(e, formal, *v, at, "a bool known when compiling");
    if (is_name(t, "string"))
        return v->kind == VAL_STRING || wrong_kind(e, formal, *v, at, "a string");
    if (is_name(t, "node"))
        return elab_is_handle(*v) || wrong_kind(e, formal, *v, at, "a node type");
    if (is_name(t, "edge")) return fit_edge(e, formal, v, at);
    if (is_name(t, "layer")) return fit_layer(e, f, formal, v, at);
    if (is_name(t, "pairs")) {
        diag_add(e->c, DIAG_E0305, t->span, "'pairs' are not there yet");
        return false;
    }
    diag_add(e->c, DIAG_E0201, t->span, "there is no type '%s'", t->text);
    return false;
}

/* Fits *v to the type of a parameter, as fit_formal, and notes its value for editors. */
bool elab_fit_formal(Elab *e, Frame *f, const Ast *formal, Value *v, Span at) {
    if (!fit_formal(e, f, formal, v, at)) return false;
    elab_note(e, formal, *v);
    return true;
}

/* ---- results -------- */
/* Reports a result that does not have the declared type. Always false. why: in what it differs. */
static bool wrong_result(Elab *e, const Ast *t, const Op *x, Span at, const char *what,
                         const char *why) {
    diag_add(e->c, DIAG_E0213, at, "%s promises another type: the result is %s, %s", what,
             elab_type_text(e, &x->type), why);
    diag_note(e->c, t->span, "the promise is here");
    return false;
}

/* Checks that a result has the declared element type and dimensions, in any order. False after a
 * diagnostic. */
static bool fit_tensor_result(Elab *e, const Ast *t, Value *v, Span at, const char *what) {
    DType dt = elab_type_dtype(t);
    Op *x = elab_to_tensor(e, *v, dt, at);
    if (!x) return false;
    if (x->type.dt != dt)
        return wrong_result(e, t, x, at, what, arena_printf(e->a, "not %s", t->text));
    Type want = type_scalar(dt);
    bool rest = false, scored = false;
    for (int i = 0; i < t->n; i++) {
        const Ast *d = t->kid[i];
        Space *links[2];
        int n =
            d->kind == AST_NAME && strcmp(d->text, "links") == 0 ? elab_links_dims(e, links) : 0;
        for (int k = 0; k < n; k++)
            if (!add_dim(e, &want, links[k], d->span)) return false;
        scored |= n > 0;
        if (n) continue;
        if (d->kind == AST_DOTS)
            rest = true;
        else if (!add_dim(e, &want, elab_dim_space(e, elab_eval(e, d), d->span), d->span))
            return false;
    }
    for (int i = 0; i < want.rank; i++)
        if (!type_has(&x->type, want.dim[i]))
            return wrong_result(e, t, x, at, what,
                                arena_printf(e->a, "without the dimension %s%s",
                                             elab_space_text(e, want.dim[i]),
                                             scored ? ", which p = links(..) has: h[p.src]" : ""));
    if (x->type.rank > want.rank && !rest)
        return wrong_result(e, t, x, at, what,
                            arena_printf(e->a, "not %s", elab_type_text(e, &want)));
    *v = val_tensor(x);
    return true;
}

/* Checks that a result has the declared type; a number becomes a tensor if that is a tensor's.
 * what: the callee, for messages. False after a diagnostic. */
bool elab_fit_result(Elab *e, const Ast *t, Value *v, Span at, const char *what) {
    if (elab_is_poison(*v)) return false;
    if (elab_type_is_tensor(t)) return fit_tensor_result(e, t, v, at, what);
    bool ok = is_name(t, "int")      ? v->kind == VAL_INT
              : is_name(t, "float")  ? elab_is_number(*v)
              : is_name(t, "bool")   ? v->kind == VAL_BOOL
              : is_name(t, "string") ? v->kind == VAL_STRING
              : is_name(t, "edge")   ? v->kind == VAL_EDGE
              : is_name(t, "node")   ? elab_is_handle(*v)
              : is_name(t, "layer")  ? v->kind == VAL_INST
                                     : false;
    if (!ok)
        diag_add(e->c, DIAG_E0213, at, "%s promises '%s', but the result is %s", what, t->text,
                 elab_kind_text(*v));
    return ok;
}
