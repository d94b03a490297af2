/* Dimensions: keys (polynomials over atoms) and the IR spaces they stand for.
 *
 * An atom is a symbol of the front end; its name is made unique by a tail ".12" that
 * elab_key_print() takes off again, so ir/expr.c keeps keys in lowest terms for us. */
#include "frontend/elab/elab.h"

#include <string.h>

/* A new atom for keys of dimensions. size: the size of dimensions that have it as their key,
 * found by its number in e->atom_size. */
const Expr *elab_atom_new(Elab *e, const char *name, const Expr *size) {
    Sym *s = NEW(e->a, Sym);
    s->id = e->n_atoms++;
    s->name = arena_printf(e->a, "%s.%d", name, s->id);
    vec_push(e->a, &e->atom_size, size);
    return expr_sym(e->a, s);
}

/* The text of an expression, which identifies it in maps. */
static const char *expr_text(Elab *e, const Expr *x) {
    StrBuf b = sb_new(e->a);
    sb_puts(&b, "");
    expr_print(&b, x);
    return b.s;
}

/* The atom of a name in the body of f: the same one for each frame of that declaration, nesting
 * and size, so that equal calls make equal spaces. */
const Expr *elab_atom_of_frame(Elab *e, Frame *f, const char *name, const Expr *size) {
    const char *id = arena_printf(e->a, "%p:%d:%s:%s", (const void *)f->decl, f->nesting, name,
                                  expr_text(e, size));
    const Expr *x = strmap_get(&e->atoms, id);
    if (x) return x;
    x = elab_atom_new(e, name, size);
    strmap_put(e->a, &e->atoms, id, (void *)x);
    return x;
}

/* Notes that an atom of the body of f is the caller's key `outer`. The first link of an atom
 * stays. */
void elab_atom_link(Elab *e, Frame *f, const Expr *atom, const Expr *outer) {
    for (int i = 0; i < f->links.n; i++)
        if (f->links.v[i].atom == atom->sym) return;
    vec_push(e->a, &f->links, ((Link){atom->sym, outer}));
}

/* What `name` stands for in f, given the caller's dimension: the caller's own atom if no other
 * name of f stands for it, else an atom of f that is linked to it. */
Value elab_dim_bound(Elab *e, Frame *f, const char *name, const Expr *key, const Expr *size) {
    const Expr *outer = elab_key_outside(e, f, key);
    bool alias = outer->kind == EX_SYM;
    for (int i = 0; alias && i < f->seen.n; i++) alias = !expr_eq(f->seen.v[i], outer);
    if (alias) {
        vec_push(e->a, &f->seen, outer);
        return val_dim(outer, size);
    }
    const Expr *atom = elab_atom_of_frame(e, f, name, size);
    elab_atom_link(e, f, atom, outer);
    return val_dim(atom, size);
}

/* A key of f's body in the names of its caller: each atom that is linked is replaced. */
const Expr *elab_key_outside(Elab *e, const Frame *f, const Expr *key) {
    const Expr *x, *y;
    switch (key->kind) {
    case EX_CONST:
        return key;
    case EX_SYM:
        for (int i = 0; i < f->links.n; i++)
            if (f->links.v[i].atom == key->sym) return f->links.v[i].outer;
        return key;
    default:
        x = elab_key_outside(e, f, key->a);
        y = elab_key_outside(e, f, key->b);
        if (x == key->a && y == key->b) return key;
        return key->kind == EX_ADD ? expr_add(e->a, x, y) : expr_mul(e->a, x, y);
    }
}

/* The text of a key for messages: without the numbers of its atoms and without quotes. */
const char *elab_key_print(Elab *e, const Expr *key) {
    char *s = arena_printf(e->a, "%s", expr_text(e, key)), *to = s;
    for (const char *p = s; *p; p++) {
        if (*p == '"') continue; /* ir/expr.c quotes primed names */
        if (*p != '.')
            *to++ = *p;
        else
            while (p[1] >= '0' && p[1] <= '9') p++;
    }
    *to = 0;
    return s;
}

/* A dimension's name as the IR's text can have it: letters, digits and '_'. */
static const char *ir_name(Elab *e, const char *text) {
    StrBuf b = sb_new(e->a);
    sb_puts(&b, *text >= '0' && *text <= '9' ? "d" : "");
    for (const char *p = text; *p; p++) {
        if (*p == '\'')
            sb_puts(&b, "_p");
        else if (*p == '*' || *p == '-')
            sb_puts(&b, "_");
        else if (*p == '+')
            sb_puts(&b, "_and_");
        else if (*p != ' ' && *p != '(' && *p != ')' && *p != ',')
            sb_put(&b, p, 1);
    }
    return b.s;
}

static void note_dim(Elab *e, const Space *s, const Expr *key, const Expr *size) {
    while (e->dims.n <= s->id) vec_push(e->a, &e->dims, ((DimInfo){0}));
    e->dims.v[s->id] = (DimInfo){key, size};
}

/* The IR space of a dimension: one for each key, made when it is first asked for. A size known
 * to be below 1 is reported. */
Space *elab_space_of_dim(Elab *e, const Expr *key, const Expr *size, Span at) {
    const char *id = expr_text(e, key);
    Space *s = strmap_get(&e->space_of_key, id);
    if (s) return s;
    int64_t n;
    if (expr_is_const(size, &n) && n <= 0) {
        diag_add(e->c, DIAG_E0216, at, "the dimension %s would have %lld entries",
                 elab_key_print(e, key), (long long)n);
        size = expr_const(e->a, 1);
    }
    s = space_dim(e->m, ir_name(e, elab_key_print(e, key)), size, at);
    strmap_put(e->a, &e->space_of_key, id, s);
    note_dim(e, s, key, size);
    return s;
}

static const char *data_id(Elab *e, const char *name) {
    return arena_printf(e->a, "data:%s", name);
}

/* The dimension that is known by `id`, made when it is first asked for. Its size is a symbol of
 * its own, which the program is given. */
static Space *space_of_given(Elab *e, const char *id, const char *name, Span at) {
    const Expr *key = strmap_get(&e->atoms, id);
    if (key) return strmap_get(&e->space_of_key, expr_text(e, key));
    Space *s = space_dim(e->m, ir_name(e, name), NULL, at);
    key = elab_atom_new(e, name, s->size);
    strmap_put(e->a, &e->atoms, id, (void *)key);
    strmap_put(e->a, &e->space_of_key, expr_text(e, key), s);
    note_dim(e, s, key, s->size);
    return s;
}

Space *elab_space_of_data(Elab *e, const char *name, Span at) {
    return space_of_given(e, data_id(e, name), name, at);
}

Space *elab_space_of_option(Elab *e, const char *name, Span at) {
    return space_of_given(e, arena_printf(e->a, "option:%s", name), name, at);
}

Value elab_dim_of_data(Elab *e, const char *name) {
    const Expr *key = strmap_get(&e->atoms, data_id(e, name));
    return key ? val_dim(key, e->atom_size.v[key->sym->id]) : val_none();
}

const Expr *elab_key_of_space(Elab *e, const Space *s) {
    return s->id < e->dims.n ? e->dims.v[s->id].key : NULL;
}

const char *elab_space_text(Elab *e, const Space *s) {
    const Expr *key = elab_key_of_space(e, s);
    return key ? elab_key_print(e, key) : s->name;
}

/* The text of a type for messages, such as `f32[paper, 16]`. */
const char *elab_type_text(Elab *e, const Type *t) {
    StrBuf b = sb_new(e->a);
    sb_printf(&b, "%s%s", t->layout == LAYOUT_CSR ? "csr " : "",
              t->dt == DT_I1 ? "bool" : dtype_name(t->dt));
    for (int i = 0; i < t->rank; i++)
        sb_printf(&b, "%s%s", i ? ", " : "[", elab_space_text(e, t->dim[i]));
    if (t->rank) sb_puts(&b, "]");
    return b.s;
}

/* x with the spaces `to` in place of its own, in the same order: a view, unless they are the
 * same. */
Op *elab_op_respace(Elab *e, Op *x, Space *const *to) {
    Type t = x->type;
    bool same = true;
    for (int i = 0; i < t.rank; i++) {
        same = same && t.dim[i] == to[i];
        t.dim[i] = to[i];
    }
    if (same) return x;
    if (x->type.layout == LAYOUT_CSR) x = elab_to_dense(e, x);
    t.layout = LAYOUT_DENSE;
    while (x->kind == OP_VIEW) x = x->in[0]; /* a view of a view is one view, or none */
    if (type_eq(&x->type, &t)) return x;
    Op *y = b_view(&e->b, x, t);
    if (!y->hint) y->hint = x->hint;
    return y;
}

/* The result x of f's body with the dimensions that its caller knows. NULL after a diagnostic:
 * two of them would be one. */
static Op *tensor_outside(Elab *e, Frame *f, Op *x, Span at) {
    Space *to[MAX_RANK] = {0};
    for (int i = 0; i < x->type.rank; i++) {
        Space *s = x->type.dim[i];
        const Expr *key = elab_key_of_space(e, s),
                   *outer = key ? elab_key_outside(e, f, key) : NULL;
        to[i] = outer && outer != key ? elab_space_of_dim(e, outer, e->dims.v[s->id].size, at) : s;
        for (int j = 0; j < i; j++)
            if (to[j] == to[i]) {
                diag_add(
                    e->c, DIAG_E0207, at,
                    "the result would have the dimension %s twice, as %s and as %s; rename the "
                    "argument's with rename(x, %s, %s')",
                    elab_space_text(e, to[i]), elab_space_text(e, x->type.dim[j]),
                    elab_space_text(e, x->type.dim[i]), elab_space_text(e, to[i]),
                    elab_space_text(e, to[i]));
                return NULL;
            }
    }
    return elab_op_respace(e, x, to);
}

/* Renames, in place, the dimensions that the settings and members of a returned layer hold. */
static void inst_outside(Elab *e, Frame *f, Inst *inst, Span at) {
    for (int i = 0; i < inst->settings.cap; i++)
        if (inst->settings.key[i] && inst->settings.val[i]) {
            Value *v = inst->settings.val[i];
            *v = elab_value_outside(e, f, *v, at);
        }
    for (int i = 0; i < inst->members.n; i++)
        inst->members.v[i] = elab_value_outside(e, f, inst->members.v[i], at);
}

/* A result of f's body in the names of its caller; lists and dictionaries are copied, with their
 * elements renamed. */
Value elab_value_outside(Elab *e, Frame *f, Value v, Span at) {
    Value out = v;
    switch (v.kind) {
    case VAL_INT:
        out.key = elab_key_outside(e, f, v.key);
        return out;
    case VAL_TENSOR:
        return val_tensor(tensor_outside(e, f, v.op, at));
    case VAL_LIST:
        out = val_list(e);
        for (int i = 0; i < v.list->n; i++)
            elab_list_push(e, out, elab_value_outside(e, f, v.list->v[i], at));
        return out;
    case VAL_DICT:
        out = val_dict(e);
        for (int i = 0; i < v.dict->key.n; i++)
            *elab_dict_at(e, out, v.dict->key.v[i], true) =
                elab_value_outside(e, f, v.dict->val.v[i], at);
        return out;
    case VAL_INST:
        inst_outside(e, f, v.inst, at);
        return v;
    default:
        return v;
    }
}
