/* Tensor operations: what the language demands of operands is checked here, in the
 * user's words, before the builder is called.  emit() asks the op's own `infer`
 * once more, so that nothing a user writes can reach the builder's assertion. */
#include "frontend/elab/elab.h"

#include <string.h>

/* Adds an operation if its operands fit; what op_infer says against them is the message, under
 * `code`. NULL then. */
static Op *emit(Elab *e, const Op *proto, DiagCode code, Span at) {
    Op trial = *proto;
    trial.hint = NULL;
    const char *why = op_infer(e->m, &trial);
    if (why) {
        diag_add(e->c, code, at, "%s", why);
        return NULL;
    }
    e->b.span = at;
    return b_op(&e->b, proto);
}

/* x as a dense tensor: itself, or a copy of a sparse one. */
Op *elab_to_dense(Elab *e, Op *x) {
    if (x->type.layout == LAYOUT_DENSE) return x;
    Type t = x->type;
    t.layout = LAYOUT_DENSE;
    return b_copy(&e->b, x, t);
}

/* ---- values to operands ---------------------------------------------------------- */
static bool is_float_type(DType t) {
    return dtype_is_float(t);
}

/* An int, or a size of the data, as a scalar of type like (DT_VOID, DT_I1: f32). */
static Op *int_to_tensor(Elab *e, Value v, DType like, Span at) {
    int64_t n;
    e->b.span = at;
    DType dt = like == DT_VOID || like == DT_I1 ? DT_F32 : like;
    if (expr_is_const(v.size, &n)) return b_const(&e->b, dt, (double)n);
    Op *size = b_size(&e->b, elab_space_of_dim(e, v.key, v.size, at));
    return dt == DT_F32 ? size : b_cast(&e->b, size, dt);
}

/* A value as an operation: numbers become scalars of the type `like`, which is that of the other
 * operand; DT_VOID: f32. NULL after a diagnostic. */
Op *elab_to_tensor(Elab *e, Value v, DType like, Span at) {
    e->b.span = at;
    switch (v.kind) {
    case VAL_TENSOR:
        return v.op;
    case VAL_INT:
        return int_to_tensor(e, v, like, at);
    case VAL_FLOAT:
        if (like != DT_VOID && like != DT_I1 && !is_float_type(like) && v.num != (int64_t)v.num) {
            diag_add(e->c, DIAG_E0205, at, "%s is no %s; convert the other operand with f32(..)",
                     elab_source_text(e, at), dtype_name(like));
            return NULL;
        }
        return b_const(&e->b, like == DT_VOID || like == DT_I1 ? DT_F32 : like, v.num);
    case VAL_BOOL:
        return b_const(&e->b, DT_I1, v.num);
    case VAL_POISON:
        return NULL;
    default:
        diag_add(e->c, DIAG_E0204, at, "%s is %s; a tensor or a number is needed here",
                 elab_source_text(e, at), elab_kind_text(v));
        return NULL;
    }
}

/* ---- alignment ----------------------------------------------------------------------- */
/* Whether t has all dimensions of `of`. */
static bool has_all(const Type *t, const Type *of) {
    for (int i = 0; i < of->rank; i++)
        if (!type_has(t, of->dim[i])) return false;
    return true;
}

/* A dimension of y that x lacks: a table's rather than a size, as that explains a mistake best. */
static Space *missing(const Type *x, const Type *y) {
    Space *s = NULL;
    for (int i = 0; i < y->rank; i++)
        if (!type_has(x, y->dim[i]) && (!s || y->dim[i]->kind != SP_DIM)) s = y->dim[i];
    return s;
}

static bool is_one(const Space *s) {
    int64_t n;
    return s->kind == SP_DIM && expr_is_const(s->size, &n) && n == 1;
}

static bool are_unequal(const Space *p, const Space *q) {
    int64_t m, n;
    return expr_is_const(p->size, &m) && expr_is_const(q->size, &n) && m != n;
}

/* What to do about two values that do not align: p is a dimension of one, q of the other, that
 * the respective other lacks. */
static const char *advice(Elab *e, const Space *p, const Space *q) {
    const char *one = elab_space_text(e, p), *other = elab_space_text(e, q);
    const Space *edge = p->kind == SP_EDGE ? p : q->kind == SP_EDGE ? q : NULL;
    if (p->kind == SP_EDGE && q->kind == SP_EDGE)
        return arena_printf(e->a,
                            "'%s' and '%s' are different edge spaces; bring one over with "
                            "carry(x, relation)",
                            p->name, q->name);
    if (p->kind == SP_DIM && q->kind == SP_DIM && (is_one(p) || is_one(q)))
        return arena_printf(e->a, "sum(x, %s) drops the dimension of size 1",
                            is_one(p) ? one : other);
    if (p->kind == SP_DIM && q->kind == SP_DIM && are_unequal(p, q))
        return arena_printf(e->a, "%s and %s are dimensions of different sizes", one, other);
    if (p->kind == SP_DIM && q->kind == SP_DIM)
        return arena_printf(e->a,
                            "%s and %s are different dimensions%s; rename(x, %s, %s) makes "
                            "them one, expand(x, %s) broadcasts",
                            one, other, expr_eq(p->size, q->size) ? " (of the same size)" : "",
                            other, one, one);
    if (p->kind == SP_DIM || q->kind == SP_DIM)
        return arena_printf(e->a, "expand(x, %s) broadcasts the one that lacks it",
                            p->kind == SP_DIM ? one : other);
    if (edge)
        return arena_printf(e->a, "read node values at an end of the relation: x[src] or x[dst]");
    if (p->kind == SP_GRAPH || q->kind == SP_GRAPH)
        return arena_printf(e->a, "read the graph's value at its nodes: x[%s.graph]",
                            p->kind == SP_GRAPH ? q->name : p->name);
    return arena_printf(e->a,
                        "'%s' and '%s' are different node types; values go from one to the other "
                        "along a relation: sum(x[r.src], over = r.dst)",
                        one, other);
}

/* Reports two operands with dimensions that the other lacks. Always false. */
static bool report_misaligned(Elab *e, const Op *x, const Op *y, Span xa, Span ya, Span at) {
    const Space *p = missing(&y->type, &x->type), *q = missing(&x->type, &y->type);
    diag_add(e->c, DIAG_E0203, at, "%s and %s do not align: %s is %s, %s is %s; %s",
             elab_source_text(e, xa), elab_source_text(e, ya), elab_source_text(e, xa),
             elab_type_text(e, &x->type), elab_source_text(e, ya), elab_type_text(e, &y->type),
             advice(e, p, q));
    if (x->span.line) diag_note(e->c, x->span, "%s comes from here", elab_source_text(e, xa));
    if (y->span.line) diag_note(e->c, y->span, "%s comes from here", elab_source_text(e, ya));
    return false;
}

static bool aligned(Elab *e, const Op *x, const Op *y, Span xa, Span ya, Span at) {
    if (has_all(&x->type, &y->type) || has_all(&y->type, &x->type)) return true;
    return report_misaligned(e, x, y, xa, ya, at);
}

/* ---- elementwise ------------------------------------------------------------------------- */
static const char *what_is(Elab *e, const Op *x, Span at) {
    return arena_printf(e->a, "%s is %s", elab_source_text(e, at), elab_type_text(e, &x->type));
}

/* An elementwise operation k of one operand. Operations that do not keep 0 make a sparse operand
 * dense. Poison after a diagnostic. */
Value elab_tensor_unary(Elab *e, OpKind k, Op *x, Span at) {
    if (k == OP_NOT && x->type.dt != DT_I1) {
        diag_add(e->c, DIAG_E0205, at, "'not' needs a bool; this is %s",
                 elab_type_text(e, &x->type));
        return val_poison();
    }
    bool any = k == OP_NOT || k == OP_DETACH || k == OP_COPY;
    bool number = k == OP_NEG || k == OP_ABS;
    if (!any && (x->type.dt == DT_I1 || !(number || is_float_type(x->type.dt)))) {
        diag_add(e->c, DIAG_E0205, at,
                 "'%s' needs floating-point numbers, this is %s; convert with "
                 "f32(..)",
                 op_mnemonic(k), elab_type_text(e, &x->type));
        return val_poison();
    }
    e->b.span = at;
    if (!(op_traits(k) & OPT_ZERO)) x = elab_to_dense(e, x);
    return val_tensor(emit(e, &(Op){.kind = k, .n_in = 1, .in = &x}, DIAG_E0205, at));
}

/* x, stored as dt where it is in memory. Poison after a diagnostic. */
Value elab_tensor_store_as(Elab *e, Op *x, DType dt, Span at) {
    if (x->type.dt != DT_F32) {
        diag_add(e->c, DIAG_E0205, at, "'@f32', '@bf16' and '@f16' are for f32 values, this is %s",
                 elab_type_text(e, &x->type));
        return val_poison();
    }
    e->b.span = at;
    Op op = {.kind = OP_STORE_AS, .n_in = 1, .in = &x, .dtype = dt};
    return val_tensor(emit(e, &op, DIAG_E0205, at));
}

/* Makes operands of a binary operation dense that the operation cannot take sparse. */
static void densify(Elab *e, OpKind k, Op **x, Op **y) {
    bool xc = (*x)->type.layout == LAYOUT_CSR, yc = (*y)->type.layout == LAYOUT_CSR;
    if (!xc && !yc) return;
    const Op trial = {.kind = k, .n_in = 2, .in = (Op *[]){*x, *y}};
    Op copy = trial;
    if (!op_infer(e->m, &copy)) return;
    if (xc && yc) *y = elab_to_dense(e, *y), yc = false;
    copy = (Op){.kind = k, .n_in = 2, .in = (Op *[]){*x, *y}};
    if (!op_infer(e->m, &copy)) return;
    *x = elab_to_dense(e, *x);
    *y = elab_to_dense(e, *y);
}

/* Whether k can be applied to the element types of x and y, which must be equal; reported if
 * not. */
static bool same_dtype(Elab *e, OpKind k, const Op *x, const Op *y, Span xa, Span ya, Span at) {
    bool truth = k == OP_AND || k == OP_OR;
    const Op *bad = truth && x->type.dt != DT_I1 ? x : truth && y->type.dt != DT_I1 ? y : NULL;
    if (bad) {
        diag_add(e->c, DIAG_E0205, at, "'%s' needs bools, but %s", op_mnemonic(k),
                 what_is(e, bad, bad == x ? xa : ya));
        return false;
    }
    bool arithmetic = !truth && k != OP_EQ;
    if (arithmetic && (x->type.dt == DT_I1 || y->type.dt == DT_I1)) {
        bool first = x->type.dt == DT_I1;
        diag_add(e->c, DIAG_E0205, at, "arithmetic needs numbers, but %s; convert with f32(..)",
                 what_is(e, first ? x : y, first ? xa : ya));
        return false;
    }
    if (x->type.dt == y->type.dt) return true;
    diag_add(e->c, DIAG_E0205, at, "%s, %s: convert one of them", what_is(e, x, xa),
             what_is(e, y, ya));
    return false;
}

/* Whether the result of x and y has at most MAX_RANK dimensions; reported if not. */
static bool fits_rank(Elab *e, const Op *x, const Op *y, Span at) {
    int rank = x->type.rank;
    for (int i = 0; i < y->type.rank; i++) rank += !type_has(&x->type, y->type.dim[i]);
    if (rank <= MAX_RANK) return true;
    diag_add(e->c, DIAG_E0216, at, "the result would have %d dimensions; the most is %d", rank,
             MAX_RANK);
    return false;
}

/* An elementwise operation k of two values; numbers take the other's type. xa, ya: where they
 * stand. Poison after a diagnostic. */
Value elab_tensor_binary(Elab *e, OpKind k, Value x, Value y, Span xa, Span ya, Span at) {
    if (elab_is_poison(x) || elab_is_poison(y)) return val_poison();
    DType dt = x.kind == VAL_TENSOR   ? x.op->type.dt
               : y.kind == VAL_TENSOR ? y.op->type.dt
                                      : DT_VOID;
    Op *p = elab_to_tensor(e, x, dt, xa), *q = p ? elab_to_tensor(e, y, dt, ya) : NULL;
    if (!q || !same_dtype(e, k, p, q, xa, ya, at) || !aligned(e, p, q, xa, ya, at) ||
        !fits_rank(e, p, q, at))
        return val_poison();
    if (k == OP_POW && !is_float_type(p->type.dt)) {
        diag_add(e->c, DIAG_E0205, at, "'**' needs floating-point numbers, but %s",
                 what_is(e, p, xa));
        return val_poison();
    }
    e->b.span = at;
    densify(e, k, &p, &q);
    return val_tensor(emit(e, &(Op){.kind = k, .n_in = 2, .in = (Op *[]){p, q}}, DIAG_E0203, at));
}

/* Whether t has all dimensions of n operations. */
static bool covers(const Type *t, const Op *const *x, int n) {
    for (int i = 0; i < n; i++)
        if (!has_all(t, &x[i]->type)) return false;
    return true;
}

/* x where c holds, else y, by element. One of the three must have all dimensions. Poison after a
 * diagnostic. */
Value elab_tensor_select(Elab *e, Op *c, Value x, Value y, Span at) {
    if (elab_is_poison(x) || elab_is_poison(y)) return val_poison();
    DType dt = x.kind == VAL_TENSOR   ? x.op->type.dt
               : y.kind == VAL_TENSOR ? y.op->type.dt
                                      : DT_VOID;
    Op *p = elab_to_tensor(e, x, dt, at), *q = p ? elab_to_tensor(e, y, dt, at) : NULL;
    if (!q) return val_poison();
    if (c->type.dt != DT_I1) {
        diag_add(e->c, DIAG_E0205, at, "the condition of a selection is a bool, this one is %s",
                 elab_type_text(e, &c->type));
        return val_poison();
    }
    if (p->type.dt != q->type.dt) {
        diag_add(e->c, DIAG_E0205, at, "a selection between %s and %s", elab_type_text(e, &p->type),
                 elab_type_text(e, &q->type));
        return val_poison();
    }
    e->b.span = at;
    c = elab_to_dense(e, c), p = elab_to_dense(e, p), q = elab_to_dense(e, q);
    const Op *all[] = {p, q, c};
    if (!covers(&p->type, all, 3) && !covers(&q->type, all, 3) && !covers(&c->type, all, 3)) {
        diag_add(
            e->c, DIAG_E0203, at,
            "the parts of this selection do not align: the condition is %s, the values are %s and "
            "%s; one of them must have all the dimensions",
            elab_type_text(e, &c->type), elab_type_text(e, &p->type), elab_type_text(e, &q->type));
        return val_poison();
    }
    return val_tensor(
        emit(e, &(Op){.kind = OP_SELECT, .n_in = 3, .in = (Op *[]){c, p, q}}, DIAG_E0203, at));
}

/* x as dt; as bools: where it is not 0. */
Value elab_tensor_cast(Elab *e, Op *x, DType dt, Span at) {
    if (x->type.dt == dt) return val_tensor(x);
    e->b.span = at;
    if (dt != DT_I1) return val_tensor(b_cast(&e->b, x, dt));
    Op *zero = b_const(&e->b, x->type.dt, 0);
    Value same = elab_tensor_binary(e, OP_EQ, val_tensor(x), val_tensor(zero), at, at, at);
    return elab_is_poison(same) ? same : elab_tensor_unary(e, OP_NOT, same.op, at);
}

/* ---- products, gathers, orders -------- */
/* Sets *t to the type of the product of x and y, summed over n dimensions: x's others, then y's.
 * False after a diagnostic. */
static bool product_type(Elab *e, const Op *x, const Op *y, int n, Space *const *over, Type *t,
                         Span at) {
    *t = type_scalar(x->type.dt);
    for (int k = 0; k < 2; k++) {
        const Type *of = k ? &y->type : &x->type;
        for (int i = 0; i < of->rank; i++) {
            bool summed = type_has(t, of->dim[i]);
            for (int j = 0; j < n; j++) summed = summed || over[j] == of->dim[i];
            if (summed) continue;
            if (t->rank == MAX_RANK) {
                diag_add(e->c, DIAG_E0216, at, "the product would have more than %d dimensions",
                         MAX_RANK);
                return false;
            }
            t->dim[t->rank++] = of->dim[i];
        }
    }
    return true;
}

/* The product of x and y, summed over n dimensions. Sparse operands stay so where the operation
 * allows it. Poison after a diagnostic. */
Value elab_tensor_contract(Elab *e, Op *x, Op *y, int n, Space *const *over, Span at) {
    if (!is_float_type(x->type.dt) || x->type.dt != y->type.dt) {
        diag_add(e->c, DIAG_E0205, at,
                 "a product of %s and %s: both must be of one floating-point type",
                 elab_type_text(e, &x->type), elab_type_text(e, &y->type));
        return val_poison();
    }
    Type t;
    if (!product_type(e, x, y, n, over, &t, at)) return val_poison();
    e->b.span = at;
    Op proto = {.kind = OP_CONTRACT, .n_in = 2, .in = (Op *[]){x, y}, .type = t};
    Op trial = proto;
    if (op_infer(e->m, &trial)) { /* CSR where it cannot be */
        x = elab_to_dense(e, x);
        y = elab_to_dense(e, y);
        proto.in = (Op *[]){x, y};
    }
    return val_tensor(emit(e, &proto, DIAG_E0208, at));
}

/* x[m]: for each row of m->from the row of x that m leads to. Poison after a diagnostic. */
Value elab_tensor_gather(Elab *e, Op *x, Map *m, Span at) {
    if (m->to->prefix_of && type_has(&x->type, m->to->prefix_of) && !type_has(&x->type, m->to)) {
        e->b.span = at; /* of links that a step draws around: the first rows */
        x = b_slice(&e->b, elab_to_dense(e, x), m->to->prefix_of, m->to, expr_const(e->a, 0));
    }
    if (!type_has(&x->type, m->to)) {
        diag_add(e->c, DIAG_E0211, at, "this reads a value of %s, but the value is %s",
                 elab_space_text(e, m->to), elab_type_text(e, &x->type));
        if (x->span.line) diag_note(e->c, x->span, "the value comes from here");
        return val_poison();
    }
    if (type_has(&x->type, m->from)) {
        diag_add(e->c, DIAG_E0207, at,
                 "the result would have the dimension %s twice: the value is %s",
                 elab_space_text(e, m->from), elab_type_text(e, &x->type));
        return val_poison();
    }
    e->b.span = at;
    x = elab_to_dense(e, x);
    return val_tensor(
        emit(e, &(Op){.kind = OP_GATHER, .n_in = 1, .in = &x, .map = m}, DIAG_E0211, at));
}

/* x with exactly these spaces, in this order, broadcast along new ones. */
Value elab_tensor_order(Elab *e, Op *x, int n, Space *const *dims, Span at) {
    bool same = x->type.rank == n && x->type.layout == LAYOUT_DENSE;
    for (int i = 0; same && i < n; i++) same = x->type.dim[i] == dims[i];
    if (same) return val_tensor(x);
    e->b.span = at;
    return val_tensor(b_copy(&e->b, x, type_make(x->type.dt, n, dims)));
}

/* ---- dimensions named by values -------- */
/* Sets *s to the dimension of x that v names: a size by its key, a table by its space. False: x
 * has none such. */
bool elab_dim_find(Elab *e, const Op *x, Value v, Space **s) {
    for (int i = 0; i < x->type.rank; i++) {
        Space *d = x->type.dim[i];
        const Expr *key = elab_key_of_space(e, d);
        bool hit = v.kind == VAL_INT                         ? key && expr_eq(key, v.key)
                   : elab_is_handle(v) || v.kind == VAL_EDGE ? d == elab_handle_space(v)
                                                             : false;
        if (!hit) continue;
        *s = d;
        return true;
    }
    return false;
}

Space *elab_dim_in(Elab *e, Op *x, Value v, Span at) {
    Space *s = NULL;
    if (elab_is_poison(v) || elab_dim_find(e, x, v, &s)) return s;
    if (v.kind != VAL_INT && !elab_is_handle(v) && v.kind != VAL_EDGE)
        diag_add(e->c, DIAG_E0204, at, "%s is %s, not a dimension", elab_source_text(e, at),
                 elab_kind_text(v));
    else {
        int64_t n;
        bool number = v.kind == VAL_INT && v.key && expr_is_const(v.key, &n);
        diag_add(e->c, DIAG_E0215, at, "the value is %s, it has no dimension %s",
                 elab_type_text(e, &x->type),
                 number ? arena_printf(e->a, "'%lld'", (long long)n) : elab_source_text(e, at));
        if (x->span.line) diag_note(e->c, x->span, "the value comes from here");
    }
    return NULL;
}

/* The space of a value that names a dimension: a size, a node type, an end or a relation. NULL
 * after a diagnostic. */
Space *elab_dim_space(Elab *e, Value v, Span at) {
    if (v.kind == VAL_INT) return elab_space_of_dim(e, v.key, v.size, at);
    if (elab_is_handle(v) || v.kind == VAL_EDGE) return elab_handle_space(v);
    if (!elab_is_poison(v))
        diag_add(e->c, DIAG_E0204, at, "%s is %s, not a dimension", elab_source_text(e, at),
                 elab_kind_text(v));
    return NULL;
}
