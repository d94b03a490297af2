/* Gradients of the elementwise operations.  x, y: operands, r: the result, g: its
 * gradient.  Where a function is not differentiable we take what torch takes
 * (abs and pow at 0), except max and min at ties, which follow their definition
 * in ops.def: the branch that was chosen. */
#include "ir/op/elementwise.h"

static Op *neg(Builder *b, Op *x) {
    return b_unary(b, OP_NEG, x);
}
static Op *mul(Builder *b, Op *x, Op *y) {
    return b_binary(b, OP_MUL, x, y);
}
static Op *add(Builder *b, Op *x, Op *y) {
    return b_binary(b, OP_ADD, x, y);
}
static Op *sub(Builder *b, Op *x, Op *y) {
    return b_binary(b, OP_SUB, x, y);
}
static Op *quot(Builder *b, Op *x, Op *y) {
    return b_binary(b, OP_DIV, x, y);
}
static Op *less(Builder *b, Op *x, Op *y) {
    return b_binary(b, OP_LT, x, y);
}

static Op *keep_if(Builder *b, Op *cond, Op *g) {
    return b_select(b, cond, g, ad_const(b, g, 0));
}
static Op *drop_if(Builder *b, Op *cond, Op *g) {
    return b_select(b, cond, ad_const(b, g, 0), g);
}

static Op *abs_grad(Builder *b, Op *x, Op *g) {
    Op *zero = ad_const(b, x, 0);
    return b_select(b, less(b, x, zero), neg(b, g), keep_if(b, less(b, zero, x), g));
}

/* d erf(x)/dx = 2/sqrt(pi) exp(-x^2) */
static Op *erf_grad(Builder *b, Op *x, Op *g) {
    Op *bell = b_unary(b, OP_EXP, neg(b, mul(b, x, x)));
    return mul(b, g, mul(b, bell, ad_const(b, x, 1.1283791670955126)));
}

/* Appends the gradient of the operand x of r = f(x): f'(x) * g, for the result's gradient g. It
 * reads r where the derivative is cheaper from it (exp' = r). */
static Op *unary_grad(Builder *b, Op *r, Op *x, Op *g) {
    Op *one = NULL;
    switch (r->kind) {
    case OP_NEG:
        return neg(b, g);
    case OP_ABS:
        return abs_grad(b, x, g);
    case OP_EXP:
        return mul(b, g, r);
    case OP_EXPM1:
        return mul(b, g, add(b, r, ad_const(b, r, 1)));
    case OP_LOG:
        return quot(b, g, x);
    case OP_LOG1P:
        return quot(b, g, add(b, x, ad_const(b, x, 1)));
    case OP_SQRT:
        return quot(b, g, mul(b, r, ad_const(b, r, 2)));
    case OP_RSQRT:
        return mul(b, mul(b, g, ad_const(b, r, -0.5)), mul(b, r, mul(b, r, r)));
    case OP_TANH:
        one = ad_const(b, r, 1);
        return mul(b, g, sub(b, one, mul(b, r, r)));
    case OP_SIGMOID:
        one = ad_const(b, r, 1);
        return mul(b, g, mul(b, r, sub(b, one, r)));
    case OP_ERF:
        return erf_grad(b, x, g);
    case OP_SIN:
        return mul(b, g, b_unary(b, OP_COS, x));
    case OP_COS:
        return neg(b, mul(b, g, b_unary(b, OP_SIN, x)));
    case OP_STORE_AS: /* the gradient lies in memory as the value does */
        return b_store_as(b, g, r->dtype);
    case OP_CAST:
    case OP_COPY:
        return g; /* ad_reduce_to does the rest */
    default:
        return NULL; /* floor, detach, not, isnan */
    }
}

/* Appends the gradient of operand i of r = x^y: d r = y x^(y-1) dx + x^y log(x) dy; 0 where y = 0,
 * and for y where x = 0. */
static Op *pow_grad(Builder *b, Op *r, int i, Op *g) {
    Op *x = r->in[0], *y = r->in[1];
    if (i == 0) {
        Op *less_one = b_binary(b, OP_POW, x, sub(b, y, ad_const(b, y, 1)));
        Op *zero_power = b_binary(b, OP_EQ, y, ad_const(b, y, 0));
        return drop_if(b, zero_power, mul(b, g, mul(b, y, less_one)));
    }
    Op *at_zero = b_binary(b, OP_EQ, x, ad_const(b, x, 0));
    return drop_if(b, at_zero, mul(b, g, mul(b, r, b_unary(b, OP_LOG, x))));
}

/* Appends the gradient of operand i of r = f(x, y): the partial derivative by it, times the
 * result's gradient g. NULL: it has none. */
static Op *binary_grad(Builder *b, Op *r, int i, Op *g) {
    Op *x = r->in[0], *y = r->in[1];
    switch (r->kind) {
    case OP_ADD:
        return g;
    case OP_SUB:
        return i == 0 ? g : neg(b, g);
    case OP_MUL:
        return mul(b, g, r->in[1 - i]);
    case OP_DIV:
        return i == 0 ? quot(b, g, y) : neg(b, mul(b, g, quot(b, r, y)));
    case OP_MAX:
        return i == 0 ? keep_if(b, less(b, y, x), g) : drop_if(b, less(b, y, x), g);
    case OP_MIN:
        return i == 0 ? keep_if(b, less(b, x, y), g) : drop_if(b, less(b, x, y), g);
    case OP_POW:
        return pow_grad(b, r, i, g);
    default:
        return NULL; /* comparisons, and, or */
    }
}

/* Appends the gradients gin[i] of the operands of an elementwise operation, given its result's
 * gradient g, each summed over the dimensions along which the operand was broadcast. */
void op_elementwise_vjp(Builder *b, Op *op, Op *g, Op **gin) {
    if (ad_is_flat(op)) return;
    for (int i = 0; i < op->n_in; i++) {
        if (!ad_wants(op, i)) continue;
        Op *gi = NULL;
        if (op->n_in == 1) gi = unary_grad(b, op, op->in[0], g);
        if (op->n_in == 2) gi = binary_grad(b, op, i, g);
        if (op->kind == OP_SELECT && i == 1) gi = keep_if(b, op->in[0], g);
        if (op->kind == OP_SELECT && i == 2) gi = drop_if(b, op->in[0], g);
        if (gi) gin[i] = ad_reduce_to(b, gi, &op->in[i]->type);
    }
}
