/* Meaning of the elementwise operations, on doubles. */
#include <math.h>

#include "ir/interp.h"
#include "ir/op/elementwise.h"

/* Float to integer truncates; what has no integer near it becomes 0, so that the
 * interpreter itself has no undefined behaviour. */
static double cast(DType to, double x) {
    if (to == DT_I1) return x != 0;
    if (to != DT_I32 && to != DT_I64) return x;
    return fabs(x) < 0x1p63 ? trunc(x) : 0;
}

/* What the interpreter computes for an operation of one operand. */
static double unary(const Op *op, double x) {
    switch (op->kind) {
    case OP_NEG:
        return -x;
    case OP_ABS:
        return fabs(x);
    case OP_EXP:
        return exp(x);
    case OP_EXPM1:
        return expm1(x);
    case OP_LOG:
        return log(x);
    case OP_LOG1P:
        return log1p(x);
    case OP_SQRT:
        return sqrt(x);
    case OP_RSQRT:
        return 1 / sqrt(x);
    case OP_TANH:
        return tanh(x);
    case OP_SIGMOID:
        return 1 / (1 + exp(-x));
    case OP_ERF:
        return erf(x);
    case OP_SIN:
        return sin(x);
    case OP_COS:
        return cos(x);
    case OP_FLOOR:
        return floor(x);
    case OP_NOT:
        return !x;
    case OP_ISNAN:
        return isnan(x);
    case OP_CAST:
        return cast(op->type.dt, x);
    default:
        return x; /* detach, copy, store_as */
    }
}

static double quotient(const Op *op, double x, double y) {
    if (dtype_is_float(op->type.dt)) return x / y;
    return y ? trunc(x / y) : 0;
}

/* The result of an operation with two operands for the numbers x and y. */
static double binary(const Op *op, double x, double y) {
    switch (op->kind) {
    case OP_ADD:
        return x + y;
    case OP_SUB:
        return x - y;
    case OP_MUL:
        return x * y;
    case OP_DIV:
        return quotient(op, x, y);
    case OP_MAX:
        return x > y ? x : y;
    case OP_MIN:
        return x < y ? x : y;
    case OP_POW:
        return pow(x, y);
    case OP_LT:
        return x < y;
    case OP_LE:
        return x <= y;
    case OP_EQ:
        return x == y;
    case OP_AND:
        return x && y;
    default:
        return x || y;
    }
}

double op_elementwise_apply(const Op *op, const double *x) {
    if (op->n_in == 1) return unary(op, x[0]);
    if (op->n_in == 2) return binary(op, x[0], x[1]);
    return x[0] ? x[1] : x[2];
}

/* Evaluates an elementwise operation in the interpreter, element by element; operands that lack a
 * space are broadcast along it. False after an error. */
static bool eval_dense(Interp *in, const Op *op, OpTensor *out) {
    const OpTensor *x[3];
    for (int i = 0; i < op->n_in; i++)
        if (!(x[i] = interp_in_dense(in, op, i))) return false;
    for (Walk w = interp_walk_new(in, &out->type); walk_live(&w); interp_walk_next(&w)) {
        double arg[3];
        for (int i = 0; i < op->n_in; i++) arg[i] = x[i]->v[interp_walk_offset(&w, x[i])];
        out->v[w.at] = op_elementwise_apply(op, arg);
    }
    return true;
}

/* Only stored entries are computed: f keeps the others zero, as infer has checked. */
static bool eval_csr(Interp *in, const Op *op, OpTensor *out) {
    const InterpCsr *c = interp_csr(in, op);
    if (!c) return false;
    Walk w = interp_walk_new(in, &out->type);
    for (int64_t k = 0; k < c->n; k++) {
        double arg[3];
        w.i[0] = c->row[k], w.i[1] = c->col[k];
        for (int i = 0; i < op->n_in; i++) {
            const OpTensor *x = interp_in(in, op, i);
            bool csr = x->type.layout == LAYOUT_CSR;
            arg[i] = x->v[csr ? k : interp_walk_offset(&w, x)];
        }
        out->v[k] = op_elementwise_apply(op, arg);
    }
    return true;
}

bool op_elementwise_eval(Interp *in, Op *op, OpTensor *out) {
    return out->type.layout == LAYOUT_CSR ? eval_csr(in, op, out) : eval_dense(in, op, out);
}
