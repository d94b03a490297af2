/* Built-in functions on the dimensions of a value. */
#include "frontend/elab/elab.h"

#include <string.h>

static Op *tensor_arg(Elab *e, const Args *args, int i) {
    return elab_to_tensor(e, args->v[i], DT_VOID, args->at[i]);
}

/* Sets s to the spaces that the arguments from number `from` on name, and *n to how many; all
 * must be dimensions of x, unless it is NULL. False after a diagnostic. */
static bool dims_of(Elab *e, Op *x, const Args *args, int from, Space **s, int *n) {
    *n = 0;
    for (int i = from; i < args->n; i++) {
        if (*n == MAX_RANK) {
            diag_add(e->c, DIAG_E0216, args->span, "a value has at most %d dimensions", MAX_RANK);
            return false;
        }
        Space *d = x ? elab_dim_in(e, x, args->v[i], args->at[i])
                     : elab_dim_space(e, args->v[i], args->at[i]);
        if (!d) return false;
        for (int j = 0; j < *n; j++)
            if (s[j] == d) {
                diag_add(e->c, DIAG_E0207, args->at[i], "the dimension %s is given twice",
                         elab_space_text(e, d));
                return false;
            }
        s[(*n)++] = d;
    }
    return true;
}

/* Whether all arguments from the given one on are sizes; if not, it is reported. */
static bool all_sizes(Elab *e, const Args *args, int from) {
    for (int i = from; i < args->n; i++)
        if (args->v[i].kind != VAL_INT) {
            diag_add(e->c, DIAG_E0204, args->at[i], "%s is %s; a size dimension is needed",
                     elab_source_text(e, args->at[i]), elab_kind_text(args->v[i]));
            return false;
        }
    return true;
}

/* The product of the sizes among the arguments from the given one on, as a dimension. */
static Value product(Elab *e, const Args *args, int from) {
    Value v = val_int(e, 1);
    for (int i = from; i < args->n; i++)
        v = val_dim(expr_mul(e->a, v.key, args->v[i].key), expr_mul(e->a, v.size, args->v[i].size));
    return v;
}

/* Whether x lacks the dimension s, so that it can get it; if not, it is reported. */
static bool is_new(Elab *e, const Op *x, const Space *s, Span at) {
    if (!type_has(&x->type, s)) return true;
    diag_add(e->c, DIAG_E0207, at, "the value is %s; it would have the dimension %s twice",
             elab_type_text(e, &x->type), elab_space_text(e, s));
    return false;
}

/* x with `dims` of it moved behind the others, in the given order. */
static Op *move_last(Elab *e, Op *x, int n, Space *const *dims, Span at) {
    Space *order[MAX_RANK];
    int k = 0;
    for (int i = 0; i < x->type.rank; i++) {
        bool moved = false;
        for (int j = 0; j < n; j++) moved = moved || dims[j] == x->type.dim[i];
        if (!moved) order[k++] = x->type.dim[i];
    }
    for (int j = 0; j < n; j++) order[k++] = dims[j];
    return elab_tensor_order(e, elab_to_dense(e, x), k, order, at).op;
}

/* flatten(x, a, b, ..): makes one dimension of several, which becomes the last one. */
static Value call_flatten(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Space *s[MAX_RANK];
    int n;
    Op *x = tensor_arg(e, args, 0);
    if (!x || !all_sizes(e, args, 1) || !dims_of(e, x, args, 1, s, &n)) return val_poison();
    if (n < 2) return val_tensor(x);
    Value flat = product(e, args, 1);
    Space *to = elab_space_of_dim(e, flat.key, flat.size, args->span);
    bool kept = false; /* one times a dimension is that dimension */
    for (int i = 0; i < n; i++) kept = kept || s[i] == to;
    if (!kept && !is_new(e, x, to, args->span)) return val_poison();
    x = move_last(e, x, n, s, args->span);
    Type t = x->type;
    t.rank -= n - 1;
    t.dim[t.rank - 1] = to;
    return val_tensor(b_view(&e->b, x, t));
}

/* split(x, d, a, b, ..): makes several dimensions of one, whose size must be the product of
 * theirs. They become the last ones. */
static Value call_split(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Space *s[MAX_RANK];
    int n;
    Op *x = tensor_arg(e, args, 0);
    Space *d = x ? elab_dim_in(e, x, args->v[1], args->at[1]) : NULL;
    if (!d || !all_sizes(e, args, 1) || !dims_of(e, NULL, args, 2, s, &n)) return val_poison();
    Value parts = product(e, args, 2);
    if (!expr_eq(parts.size, d->size)) {
        diag_add(e->c, DIAG_E0216, args->span,
                 "%s cannot be split so: the sizes do not multiply to its "
                 "own",
                 elab_space_text(e, d));
        return val_poison();
    }
    if (x->type.rank + n - 1 > MAX_RANK) {
        diag_add(e->c, DIAG_E0216, args->span, "a value has at most %d dimensions", MAX_RANK);
        return val_poison();
    }
    x = move_last(e, x, 1, &d, args->span);
    Type t = x->type;
    t.rank--;
    for (int i = 0; i < n; i++) {
        if (type_has(&t, s[i]) && !is_new(e, x, s[i], args->span)) return val_poison();
        t.dim[t.rank++] = s[i];
    }
    return val_tensor(b_view(&e->b, x, t));
}

/* transpose(x, a, b, ..): x with its dimensions in that order; all must be named. */
static Value call_transpose(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Space *s[MAX_RANK];
    int n;
    Op *x = tensor_arg(e, args, 0);
    if (!x || !dims_of(e, x, args, 1, s, &n)) return val_poison();
    if (n == x->type.rank) return elab_tensor_order(e, x, n, s, args->span);
    diag_add(e->c, DIAG_E0206, args->span,
             "'transpose' takes all dimensions of the value, which is %s",
             elab_type_text(e, &x->type));
    return val_poison();
}

/* rename(x, d, e): x with the dimension e, of the same size, in place of d. */
static Value call_rename(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Op *x = tensor_arg(e, args, 0);
    Space *from = x ? elab_dim_in(e, x, args->v[1], args->at[1]) : NULL;
    Space *to = from ? elab_dim_space(e, args->v[2], args->at[2]) : NULL;
    if (!to || from == to) return to ? val_tensor(x) : val_poison();
    bool sizes = from->kind == SP_DIM && to->kind == SP_DIM;
    if (sizes && e->symbolic && !expr_eq(from->size, to->size)) return val_poison(); /* who knows */
    if (!sizes || !expr_eq(from->size, to->size)) {
        diag_add(e->c, DIAG_E0216, args->span, "%s cannot be called %s: the sizes differ",
                 elab_space_text(e, from), elab_space_text(e, to));
        return val_poison();
    }
    if (!is_new(e, x, to, args->span)) return val_poison();
    Space *dims[MAX_RANK];
    for (int i = 0; i < x->type.rank; i++) dims[i] = x->type.dim[i] == from ? to : x->type.dim[i];
    return val_tensor(elab_op_respace(e, x, dims));
}

/* expand(x, a, b, ..): repeats x along new dimensions, which become the last ones. */
static Value call_expand(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Space *s[MAX_RANK], *all[MAX_RANK];
    int n, k = 0;
    Op *x = tensor_arg(e, args, 0);
    if (!x || !dims_of(e, NULL, args, 1, s, &n)) return val_poison();
    for (; k < x->type.rank; k++) all[k] = x->type.dim[k];
    for (int i = 0; i < n; i++) {
        if (!is_new(e, x, s[i], args->at[i + 1])) return val_poison();
        if (k == MAX_RANK) {
            diag_add(e->c, DIAG_E0216, args->span, "a value has at most %d dimensions", MAX_RANK);
            return val_poison();
        }
        all[k++] = s[i];
    }
    return elab_tensor_order(e, x, k, all, args->span);
}

/* dense(x): a sparse tensor as a dense one. */
static Value call_dense(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Op *x = tensor_arg(e, args, 0);
    return x ? val_tensor(elab_to_dense(e, x)) : val_poison();
}

/* ---- concat, slice ------------------------------------------------------------------------ */
/* The one dimension of x that y does not have; NULL: there is none, or several. */
static Space *only_in(const Op *x, const Op *y) {
    Space *s = NULL;
    for (int i = 0; i < x->type.rank; i++) {
        if (type_has(&y->type, x->type.dim[i])) continue;
        if (s) return NULL;
        s = x->type.dim[i];
    }
    return s;
}

/* Reports two values that cannot be concatenated. Always poison. */
static Value bad_concat(Elab *e, const Op *x, const Op *y, Span at) {
    diag_add(e->c, DIAG_E0203, at,
             "%s and %s cannot be joined: they must differ in one size dimension, or "
             "over = d says along which",
             elab_type_text(e, &x->type), elab_type_text(e, &y->type));
    return val_poison();
}

/* Concatenates x and y along the dimension that they differ in, or along `over`. *along: the
 * dimension of x that `over` has grown to, which is updated. Poison after a diagnostic. */
static Value concat_two(Elab *e, Op *x, Op *y, const Value *over, Space **along, Span at) {
    Space *dx = over ? *along : only_in(x, y),
          *dy = over ? elab_dim_in(e, y, *over, at) : only_in(y, x);
    if (over && !dy) return val_poison();
    bool sizes = dx && dy && dx->kind == SP_DIM && dy->kind == SP_DIM;
    if (!sizes || x->type.rank != y->type.rank || x->type.dt != y->type.dt)
        return bad_concat(e, x, y, at);
    const Expr *key = expr_add(e->a, elab_key_of_space(e, dx), elab_key_of_space(e, dy));
    Space *into = elab_space_of_dim(e, key, expr_add(e->a, dx->size, dy->size), at);
    if (!is_new(e, x, into, at) || !is_new(e, y, into, at)) return val_poison();
    x = elab_to_dense(e, x), y = elab_to_dense(e, y);
    Op trial = {
        .kind = OP_CONCAT, .n_in = 2, .in = (Op *[]){x, y}, .n_over = 3, .over = {dx, dy, into}};
    const char *why = op_infer(e->m, &trial);
    *along = into;
    if (!why) return val_tensor(b_concat(&e->b, x, y, dx, dy, into));
    diag_add(e->c, DIAG_E0203, at, "%s", why);
    return val_poison();
}

/* concat(x, y, ..) or concat(list): joins values along the dimension that they differ in, or
 * along `over`. */
static Value call_concat(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    const Value *over = elab_arg_named(args, "over");
    const Value *v = args->v;
    int n = args->n;
    if (n == 1 && v[0].kind == VAL_LIST) n = v[0].list->n, v = v[0].list->v;
    if (n == 0) {
        diag_add(e->c, DIAG_E0206, args->span, "'concat' of nothing");
        return val_poison();
    }
    Op *x = elab_to_tensor(e, v[0], DT_VOID, args->at[0]);
    Space *along = x && over ? elab_dim_in(e, x, *over, args->span) : NULL;
    if (over && !along) return val_poison();
    for (int i = 1; x && i < n; i++) {
        Op *y = elab_to_tensor(e, v[i], DT_VOID, args->span);
        Value r = y ? concat_two(e, x, y, over, &along, args->span) : val_poison();
        x = elab_is_poison(r) ? NULL : r.op;
    }
    return val_tensor(x);
}

/* slice(x, d, from, n): n entries of the dimension d. What op_infer says against the types is
 * the message. */
static Value call_slice(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Op *x = tensor_arg(e, args, 0);
    Space *d = x ? elab_dim_in(e, x, args->v[1], args->at[1]) : NULL;
    if (!d || !all_sizes(e, args, 1)) return val_poison();
    Value from = args->v[2], n = args->v[3];
    int64_t at = 0, count = 0, size = 0;
    bool known = expr_is_const(from.size, &at) && expr_is_const(n.size, &count) &&
                 expr_is_const(d->size, &size);
    if (d->kind != SP_DIM || (expr_is_const(from.size, &at) && at < 0) ||
        (known && (count < 0 || at + count > size))) {
        diag_add(e->c, DIAG_E0216, args->span, "the slice does not lie within the dimension %s",
                 elab_space_text(e, d));
        return val_poison();
    }
    Space *to = elab_space_of_dim(e, n.key, n.size, args->span);
    if (to != d && !is_new(e, x, to, args->span)) return val_poison();
    x = elab_to_dense(e, x);
    Op trial = {
        .kind = OP_SLICE, .n_in = 1, .in = &x, .n_over = 2, .over = {d, to}, .off = from.size};
    const char *why = op_infer(e->m, &trial);
    if (!why) return val_tensor(b_slice(&e->b, x, d, to, from.size));
    diag_add(e->c, DIAG_E0216, args->span, "%s", why);
    return val_poison();
}

/* ---- new values -------- */
/* iota(d): the numbers 0, 1, .. along the dimension d. */
static Value call_iota(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Space *s = elab_dim_space(e, args->v[0], args->at[0]);
    return s ? val_tensor(b_iota(&e->b, s)) : val_poison();
}

/* size(d): the size of a dimension as a number that the program computes with. */
static Value call_size(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Space *s = elab_dim_space(e, args->v[0], args->at[0]);
    return s ? val_tensor(b_size(&e->b, s)) : val_poison();
}

/* The number x repeated along the dimensions that are the arguments from the given one on. */
static Value filled(Elab *e, Op *x, const Args *args, int from) {
    Space *s[MAX_RANK];
    int n;
    if (!x || !dims_of(e, NULL, args, from, s, &n)) return val_poison();
    if (x->type.rank == 0) return elab_tensor_order(e, x, n, s, args->span);
    diag_add(e->c, DIAG_E0204, args->at[0], "'full' takes one number; expand(x, d) broadcasts");
    return val_poison();
}

static Value call_constant(Elab *e, const Builtin *b, const Args *args) {
    return filled(e, b_const(&e->b, DT_F32, b->op), args, 0);
}

/* full(x, a, b, ..): a tensor with x in each element. */
static Value call_full(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Value v = args->v[0];
    return filled(e, elab_to_tensor(e, v, elab_is_number(v) ? DT_F32 : DT_VOID, args->at[0]), args,
                  1);
}

/* random(x): uniform numbers in [0, 1) of the shape of x. Each call has a stream of its own, so
 * that its numbers do not depend on other calls. */
static Value call_random(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Op *x = tensor_arg(e, args, 0);
    if (!x) return val_poison();
    Type t = type_make(DT_F32, x->type.rank, x->type.dim);
    return val_tensor(b_random(&e->b, e->stream++, t));
}

/* contract(x, y, a, b, ..): the product of x and y, summed over the dimensions that are named. */
static Value call_contract(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Space *s[MAX_RANK];
    int n;
    Op *x = tensor_arg(e, args, 0), *y = x ? tensor_arg(e, args, 1) : NULL;
    if (!y || !dims_of(e, x, args, 2, s, &n)) return val_poison();
    for (int i = 2; i < args->n; i++)
        if (!elab_dim_in(e, y, args->v[i], args->at[i])) return val_poison();
    return elab_tensor_contract(e, x, y, n, s, args->span);
}

const Builtin elab_builtin_shape[] = {
    {"flatten", 2, -1, NULL, call_flatten, 0},
    {"split", 3, -1, NULL, call_split, 0},
    {"transpose", 1, -1, NULL, call_transpose, 0},
    {"rename", 3, 3, NULL, call_rename, 0},
    {"expand", 1, -1, NULL, call_expand, 0},
    {"dense", 1, 1, NULL, call_dense, 0},
    {"concat", 1, -1, "over", call_concat, 0},
    {"slice", 4, 4, NULL, call_slice, 0},
    {"iota", 1, 1, NULL, call_iota, 0},
    {"size", 1, 1, NULL, call_size, 0},
    {"zeros", 0, -1, NULL, call_constant, 0},
    {"ones", 0, -1, NULL, call_constant, 1},
    {"full", 1, -1, NULL, call_full, 0},
    {"random", 1, 1, NULL, call_random, 0},
    {"contract", 2, -1, NULL, call_contract, 0},
    {NULL, 0, 0, NULL, NULL, 0},
};
