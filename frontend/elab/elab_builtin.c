/* Built-in functions: one table line each.  This file: lookup, mathematics and
 * reductions; shapes are in elab_shape.c, relations and compile-time functions in
 * elab_misc.c. */
#include "frontend/elab/elab.h"

#include <math.h>
#include <string.h>

#include "ir/op/elementwise.h"

/* Where the argument `name = ..` stands; the whole call, if it has none of that name. */
static Span arg_named_at(const Args *args, const char *name) {
    for (int i = 0; i < args->n_named; i++)
        if (strcmp(args->name[i], name) == 0) return args->named_at[i];
    return args->span;
}

/* ---- elementwise ------------------------------------------------------------------ */
/* One of the elementwise functions (b->op): of a number that is known when compiling it is
 * computed here, of a tensor it is an operation. */
static Value call_math(Elab *e, const Builtin *b, const Args *args) {
    double x;
    Value v = args->v[0];
    if (elab_is_number(v) && elab_number_known(e, v, &x)) {
        const Op op = {.kind = (OpKind)b->op, .n_in = 1};
        double y = op_elementwise_apply(&op, &x);
        bool whole = b->op == OP_FLOOR || (b->op == OP_ABS && v.kind == VAL_INT);
        return whole && fabs(y) < 9e15 ? val_int(e, (int64_t)y) : val_float(y);
    }
    Op *op = elab_to_tensor(e, v, DT_VOID, args->at[0]);
    return op ? elab_tensor_unary(e, (OpKind)b->op, op, args->span) : val_poison();
}

static Value call_isnan(Elab *e, const Builtin *b, const Args *args) {
    Op *op = elab_to_tensor(e, args->v[0], DT_VOID, args->at[0]);
    return op ? elab_tensor_unary(e, (OpKind)b->op, op, args->span) : val_poison();
}

static Value call_detach(Elab *e, const Builtin *b, const Args *args) {
    return args->v[0].kind == VAL_TENSOR ? call_isnan(e, b, args) : args->v[0];
}

static Value call_pow(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    return elab_binary(e, OPR_POW, args->v[0], args->v[1], args->at[0], args->at[1], args->span);
}

/* select(c, x, y): by a bool that is known when compiling one of the two, by a tensor of bools
 * an operation. */
static Value call_select(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    Value c = args->v[0];
    if (c.kind == VAL_BOOL) return args->v[c.num ? 1 : 2];
    Op *op = elab_to_tensor(e, c, DT_VOID, args->at[0]);
    return op ? elab_tensor_select(e, op, args->v[1], args->v[2], args->span) : val_poison();
}

/* f32(x), i32(x), bool(x), ..: converts to the type b->op. A number becomes a constant of that
 * type. */
static Value call_cast(Elab *e, const Builtin *b, const Args *args) {
    Value v = args->v[0];
    DType dt = (DType)b->op;
    if (dt == DT_I1 && (elab_is_number(v) || v.kind == VAL_BOOL)) {
        double x;
        if (elab_number_known(e, v, &x)) return val_bool(x != 0);
    }
    DType like = elab_is_number(v) && dt != DT_I1 && dtype_is_float(dt) ? dt : DT_VOID;
    Op *op = elab_to_tensor(e, v, like, args->at[0]);
    return op ? elab_tensor_cast(e, op, dt, args->span) : val_poison();
}

/* int(x), float(x): converts a number that is known when compiling. b->op: to float. Tensors are
 * refused. */
static Value call_number(Elab *e, const Builtin *b, const Args *args) {
    double x;
    Value v = args->v[0];
    if ((!elab_is_number(v) && v.kind != VAL_BOOL) || !elab_number_known(e, v, &x)) {
        diag_add(e->c, DIAG_E0210, args->at[0],
                 "'%s' converts numbers that are known when compiling; "
                 "f32(..), i32(..) convert tensors",
                 b->name);
        return val_poison();
    }
    return b->op ? val_float(x) : val_int(e, (int64_t)x);
}

/* ---- sum, mean, max, min -------------------------------------------------------------- */
/* sum, mean, max or min of the elements of a list, by binary operations from left to right. max
 * and min take each pair as max(x, y) does. */
static Value fold_list(Elab *e, const Builtin *b, Value list, const Args *args) {
    int n = list.list->n;
    if (n == 0) {
        diag_add(e->c, DIAG_E0206, args->span, "'%s' of an empty list", b->name);
        return val_poison();
    }
    bool extreme = strcmp(b->name, "max") == 0 || strcmp(b->name, "min") == 0;
    Value v = list.list->v[0];
    for (int i = 1; i < n; i++) {
        Value pair[2] = {v, list.list->v[i]};
        Span at[2] = {args->at[0], args->at[0]};
        Args two = {.n = 2, .v = pair, .at = at, .span = args->span};
        v = extreme ? b->call(e, b, &two)
                    : elab_binary(e, OPR_ADD, pair[0], pair[1], at[0], at[1], args->span);
        if (elab_is_poison(v)) return v;
    }
    if (strcmp(b->name, "mean") != 0) return v;
    return elab_binary(e, OPR_DIV, v, val_int(e, n), args->at[0], args->at[0], args->span);
}

/* max(x, d): is d a dimension of x, and not a number to compare with? */
static bool names_dim(Elab *e, Value x, Value d) {
    Space *s;
    if (d.kind == VAL_TENSOR || d.kind == VAL_FLOAT) return false;
    if (d.kind != VAL_INT) return true;
    return d.key->kind != EX_CONST && x.kind == VAL_TENSOR && elab_dim_find(e, x.op, d, &s);
}

/* max(x, y) or min(x, y), elementwise. Of two known numbers it is one of them. */
static Value extreme_of_two(Elab *e, const Builtin *b, const Args *args) {
    double p, q;
    Value x = args->v[0], y = args->v[1];
    bool max = strcmp(b->name, "max") == 0;
    if (elab_is_number(x) && elab_is_number(y) && elab_number_known(e, x, &p) &&
        elab_number_known(e, y, &q))
        return (p > q) == max ? x : y;
    return elab_tensor_binary(e, max ? OP_MAX : OP_MIN, x, y, args->at[0], args->at[1], args->span);
}

/* sum, mean, max, min: of a list its fold, of two values the greater or smaller (b->op: max and
 * min), else of a tensor over the named dimensions, or over all. */
static Value call_reduce(Elab *e, const Builtin *b, const Args *args) {
    const Value *over = elab_arg_named(args, "over");
    bool extreme = b->op;
    if (args->v[0].kind == VAL_LIST && args->n == 1 && !over)
        return fold_list(e, b, args->v[0], args);
    if (extreme && args->n == 2 && !over && !names_dim(e, args->v[0], args->v[1]))
        return extreme_of_two(e, b, args);
    Op *x = elab_to_tensor(e, args->v[0], DT_VOID, args->at[0]);
    if (!x) return val_poison();
    if (args->n > MAX_RANK) {
        diag_add(e->c, DIAG_E0206, args->span, "'%s' over more than %d dimensions", b->name,
                 MAX_RANK);
        return val_poison();
    }
    Value all[MAX_RANK + 1];
    Span at[MAX_RANK + 1];
    int n = 0;
    for (int i = 1; i < args->n; i++) at[n] = args->at[i], all[n++] = args->v[i];
    if (over) at[n] = arg_named_at(args, "over"), all[n++] = *over;
    return elab_reduce_call(e, b->name, x, n, all, at, args->span);
}

/* argmax(x, d) or argmax(x, over = d): the index of the largest entry along the dimension d. */
static Value call_argmax(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    const Value *over = elab_arg_named(args, "over");
    Op *x = elab_to_tensor(e, args->v[0], DT_VOID, args->at[0]);
    if (!x) return val_poison();
    if ((args->n == 2) == (over != NULL) || x->type.dt == DT_I1) {
        diag_add(e->c, DIAG_E0206, args->span, "'argmax' takes numbers and one dimension");
        return val_poison();
    }
    Space *s = elab_dim_in(e, x, over ? *over : args->v[1],
                           over ? arg_named_at(args, "over") : args->at[1]);
    return s ? val_tensor(b_argmax(&e->b, elab_to_dense(e, x), s)) : val_poison();
}

/* The argument `ties = ..` of rank as a number: of equal entries the lowest rank is 0, the mean
 * 0.5, the highest 1. NULL is the mean; -1: another word. */
static double ties_of(const Value *v) {
    if (!v || (v->kind == VAL_STRING && !strcmp(v->str, "mean"))) return 0.5;
    if (v->kind != VAL_STRING) return -1;
    return !strcmp(v->str, "lowest") ? 0 : !strcmp(v->str, "highest") ? 1 : -1;
}

/* rank(x, mask, over = d): the rank along d of each entry where the mask holds, among these; 0
 * elsewhere. What op_infer says against the types is the message. */
static Value call_rank(Elab *e, const Builtin *b, const Args *args) {
    (void)b;
    const Value *over = elab_arg_named(args, "over");
    Op *x = elab_to_tensor(e, args->v[0], DT_VOID, args->at[0]);
    Op *mask = x ? elab_to_tensor(e, args->v[1], DT_VOID, args->at[1]) : NULL;
    if (!mask) return val_poison();
    if (!over || mask->type.dt != DT_I1 || !dtype_is_float(x->type.dt)) {
        diag_add(e->c, DIAG_E0206, args->span,
                 "'rank' takes floating-point numbers, a bool mask and over = a dimension");
        return val_poison();
    }
    Space *s = elab_dim_in(e, x, *over, arg_named_at(args, "over"));
    if (!s) return val_poison();
    double ties = ties_of(elab_arg_named(args, "ties"));
    if (ties < 0) {
        diag_add(e->c, DIAG_E0206, arg_named_at(args, "ties"),
                 "ties have the \"mean\", the \"lowest\" or the \"highest\" of their ranks");
        return val_poison();
    }
    x = elab_to_dense(e, x);
    Value m = elab_tensor_order(e, elab_to_dense(e, mask), x->type.rank, x->type.dim, args->span);
    Op trial = {
        .kind = OP_RANK, .n_in = 2, .in = (Op *[]){x, m.op}, .n_over = 1, .over = {s}, .imm = ties};
    const char *why = op_infer(e->m, &trial);
    if (!why) return val_tensor(b_rank(&e->b, x, m.op, s, ties));
    diag_add(e->c, DIAG_E0206, args->span, "%s", why);
    return val_poison();
}

/* ---- the table ----------------------------------------------------------------------------- */
#define MATH(name, op) {name, 1, 1, NULL, call_math, OP_##op}
#define CAST(name, dt) {name, 1, 1, NULL, call_cast, DT_##dt}
/* log(x) is a number's logarithm; log("name", x) tells a number of the step. */
static Value call_log(Elab *e, const Builtin *b, const Args *args) {
    bool told = args->n != 1 || args->v[0].kind == VAL_STRING;
    return told ? elab_log_call(e, args) : call_math(e, b, args);
}

static const Builtin builtin_math[] = {
    MATH("exp", EXP),
    MATH("expm1", EXPM1),
    {"log", 1, 2, NULL, call_log, OP_LOG},
    MATH("log1p", LOG1P),
    MATH("sqrt", SQRT),
    MATH("rsqrt", RSQRT),
    MATH("tanh", TANH),
    MATH("sigmoid", SIGMOID),
    MATH("erf", ERF),
    MATH("sin", SIN),
    MATH("cos", COS),
    MATH("floor", FLOOR),
    MATH("abs", ABS),
    CAST("f32", F32),
    CAST("f64", F64),
    CAST("f16", F16),
    CAST("bf16", BF16),
    CAST("i32", I32),
    CAST("i64", I64),
    CAST("bool", I1),
    {"isnan", 1, 1, NULL, call_isnan, OP_ISNAN},
    {"detach", 1, 1, NULL, call_detach, OP_DETACH},
    {"pow", 2, 2, NULL, call_pow, 0},
    {"select", 3, 3, NULL, call_select, 0},
    {"int", 1, 1, NULL, call_number, 0},
    {"float", 1, 1, NULL, call_number, 1},
    {"sum", 1, -1, "over", call_reduce, 0},
    {"mean", 1, -1, "over", call_reduce, 0},
    {"max", 1, -1, "over", call_reduce, 1},
    {"min", 1, -1, "over", call_reduce, 1},
    {"argmax", 1, 2, "over", call_argmax, 0},
    {"rank", 2, 2, "over,ties", call_rank, 0},
    {NULL, 0, 0, NULL, NULL, 0},
};

static const Builtin *const tables[] = {builtin_math, elab_builtin_shape, elab_builtin_misc,
                                        elab_builtin_links};

/* The built-in function of that name; NULL: there is none. */
const Builtin *elab_builtin_find(const char *name) {
    for (size_t i = 0; i < COUNT(tables); i++)
        for (const Builtin *b = tables[i]; b->name; b++)
            if (strcmp(b->name, name) == 0) return b;
    return NULL;
}

/* The name of the i-th built-in function of all tables; NULL: there are fewer. */
const char *fe_builtin_name(int i) {
    for (size_t t = 0; t < COUNT(tables); t++)
        for (const Builtin *b = tables[t]; b->name; b++)
            if (i-- == 0) return b->name;
    return NULL;
}

void elab_builtin_names(Elab *e, Names *to) {
    for (size_t i = 0; i < COUNT(tables); i++)
        for (const Builtin *b = tables[i]; b->name; b++) elab_names_add(e, to, b->name);
}

/* Whether name is one of the names in list ("fill,over"); NULL lists none. */
static bool allows(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, name, n) == 0 && (p[n] == 0 || p[n] == ',')) return true;
    return false;
}

/* Checks the number and the names of a call's arguments and calls the built-in function. Poison
 * after a diagnostic. */
Value elab_builtin_call(Elab *e, const Builtin *b, const Args *args) {
    if (args->n < b->min || (b->max >= 0 && args->n > b->max)) {
        const char *much = b->max < 0 ? "at least " : b->max > b->min ? "at least " : "";
        if (b->max >= 0 && args->n > b->max) much = b->max > b->min ? "at most " : "";
        int n = args->n < b->min ? b->min : b->max;
        diag_add(e->c, DIAG_E0206, args->span, "'%s' takes %s%d argument%s, not %d", b->name, much,
                 n, n == 1 ? "" : "s", args->n);
        return val_poison();
    }
    for (int i = 0; i < args->n_named; i++)
        if (!allows(b->named, args->name[i])) {
            diag_add(e->c, DIAG_E0206, args->named_at[i], "'%s' has no '%s'%s%s", b->name,
                     args->name[i], b->named ? "; by name it takes " : "",
                     b->named ? b->named : "");
            return val_poison();
        }
    e->b.span = args->span;
    return b->call(e, b, args);
}
