/* L_LET: scalar functions as CUDA C expressions.
 *
 * Operators where C's are meant; a function of kernel.h where C leaves something open
 * (integer overflow, division by zero, conversions out of range).  f16 and bf16 are
 * computed in f32 and rounded when a value is made. */
#include "codegen/cuda/cuda.h"

#include <string.h>

/* Text of the i-th argument of an L_LET. */
static const char *argument_text(CuFn *f, const LStmt *s, int i) {
    return f->reg[s->arg[i]->id];
}

const char *cu_rounded_text(Arena *a, DType dt, const char *x) {
    if (dt == DT_F16) return arena_printf(a, "gn_round_f16(%s)", x);
    if (dt == DT_BF16) return arena_printf(a, "gn_round_bf16(%s)", x);
    return x;
}

const char *cu_combine_text(CuFn *f, RedKind r, DType dt, const char *acc, const char *x) {
    if (r == RED_MAX) return arena_printf(f->a, "%s > %s ? %s : %s", x, acc, x, acc);
    if (r == RED_MIN) return arena_printf(f->a, "%s < %s ? %s : %s", x, acc, x, acc);
    if (dt == DT_I1) return arena_printf(f->a, "%s || %s", acc, x);
    if (!dtype_is_float(dt)) return arena_printf(f->a, "gn_add(%s, %s)", acc, x);
    return cu_rounded_text(f->a, dt, arena_printf(f->a, "%s + %s", acc, x));
}

/* Text of x converted from one type to another. */
static const char *cast_text(CuFn *f, DType from, DType to, const char *x) {
    if (from == to) return x;
    if (to == DT_I1) return arena_printf(f->a, "%s != 0", x);
    if (dtype_is_float(from) && !dtype_is_float(to))
        return arena_printf(f->a, "gn_to_%s(%s)", dtype_name(to), x);
    return arena_printf(f->a, "(%s)%s", cu_type(to), x);
}

/* Text of a call of a C math function with one argument: fn, or fnf for f32. */
static const char *math_call_text(CuFn *f, DType dt, const char *fn, const char *x) {
    return arena_printf(f->a, "%s%s(%s)", fn, dt == DT_F64 ? "" : "f", x);
}

/* Text of an operation with one operand. */
static const char *unary_text(CuFn *f, OpKind op, DType dt, const char *x) {
    bool fl = dtype_is_float(dt);
    switch (op) {
    case OP_NEG:
        return arena_printf(f->a, fl ? "-%s" : "gn_neg(%s)", x);
    case OP_ABS:
        return fl ? math_call_text(f, dt, "fabs", x) : arena_printf(f->a, "gn_abs(%s)", x);
    case OP_NOT:
        return arena_printf(f->a, dt == DT_I1 ? "!%s" : "~%s", x);
    case OP_ISNAN:
        return fl ? arena_printf(f->a, "%s != %s", x, x) : "false";
    case OP_FLOOR:
        return fl ? math_call_text(f, dt, "floor", x) : x;
    case OP_RSQRT:
    case OP_SIGMOID:
        return arena_printf(f->a, "gn_%s(%s)", op_mnemonic(op), x);
    case OP_DETACH:
    case OP_STORE_AS:
    case OP_COPY:
        return x;
    default: /* exp, log1p, tanh, ..: as the C library calls them */
        return math_call_text(f, dt, op_mnemonic(op), x);
    }
}

/* Text of "x op y". */
static const char *infix_text(CuFn *f, const char *x, const char *op, const char *y) {
    return arena_printf(f->a, "%s %s %s", x, op, y);
}

/* Text of an integer operation that is undefined in C for some operands: a call of a safe function
 * of kernel.h. For i1 it is arithmetic modulo 2. */
static const char *int_binary_text(CuFn *f, OpKind op, DType dt, const char *x, const char *y) {
    if (dt != DT_I1) return arena_printf(f->a, "gn_%s(%s, %s)", op_mnemonic(op), x, y);
    if (op == OP_MUL) return infix_text(f, x, "&&", y);
    return infix_text(f, x, op == OP_DIV ? "&&" : "!=", y); /* modulo 2 */
}

/* Text of an operation with two operands. */
static const char *binary_text(CuFn *f, OpKind op, DType dt, const char *x, const char *y) {
    switch (op) {
    case OP_LT:
        return infix_text(f, x, "<", y);
    case OP_LE:
        return infix_text(f, x, "<=", y);
    case OP_EQ:
        return infix_text(f, x, "==", y);
    case OP_MAX:
        return arena_printf(f->a, "%s > %s ? %s : %s", x, y, x, y);
    case OP_MIN:
        return arena_printf(f->a, "%s < %s ? %s : %s", x, y, x, y);
    case OP_AND:
        return infix_text(f, x, dt == DT_I1 ? "&&" : "&", y);
    case OP_OR:
        return infix_text(f, x, dt == DT_I1 ? "||" : "|", y);
    case OP_POW:
        return arena_printf(f->a, "gn_pow(%s, %s)", x, y);
    default:
        break;
    }
    if (!dtype_is_float(dt)) return int_binary_text(f, op, dt, x, y);
    return infix_text(f, x, op == OP_ADD ? "+" : op == OP_SUB ? "-" : op == OP_MUL ? "*" : "/", y);
}

/* Text of an elementwise operation of the graph IR. */
static const char *elementwise_text(CuFn *f, const LStmt *s) {
    const char *x = argument_text(f, s, 0);
    DType dt = s->arg[0]->dt;
    if (s->op == OP_CAST) return cast_text(f, dt, s->dst->dt, x);
    if (s->n_arg == 1) return unary_text(f, s->op, dt, x);
    const char *y = argument_text(f, s, 1);
    if (s->op == OP_SELECT) return arena_printf(f->a, "%s ? %s : %s", x, y, argument_text(f, s, 2));
    return binary_text(f, s->op, dt, x, y);
}

/* Text of the random number of a key, a row and a column. */
static const char *random_text(CuFn *f, const LStmt *s) {
    return arena_printf(f->a, "gn_random(%s, %s, %s, %s)", argument_text(f, s, 0),
                        argument_text(f, s, 1), argument_text(f, s, 2), argument_text(f, s, 3));
}

const char *cu_let_text(CuFn *f, const LStmt *s) {
    static const char *const index_operator[] = {
        [L_FN_IADD] = "+", [L_FN_ISUB] = "-", [L_FN_IMUL] = "*", [L_FN_IDIV] = "/",
        [L_FN_IREM] = "%", [L_FN_ILT] = "<",  [L_FN_IGE] = ">=", [L_FN_IEQ] = "=="};
    switch (s->fn) {
    case L_FN_OP:
        return cu_rounded_text(f->a, s->dst->dt, elementwise_text(f, s));
    case L_FN_CONST:
        return cu_rounded_text(f->a, s->dst->dt, cu_literal_text(f->a, s->dst->dt, s->imm));
    case L_FN_SIZE:
        return cu_size_text(f, s->size);
    case L_FN_RANDOM:
        return random_text(f, s);
    case L_FN_LE_RANDOM:
        return infix_text(f, cu_literal_text(f->a, DT_F32, s->imm), "<=", random_text(f, s));
    default:
        return infix_text(f, argument_text(f, s, 0), index_operator[s->fn], argument_text(f, s, 1));
    }
}
