/* The three parts of op_elementwise, and the function itself for constant folding. */
#ifndef IR_OP_ELEMENTWISE_H
#define IR_OP_ELEMENTWISE_H

#include "ir/op/op.h"

const char *op_elementwise_infer(Module *m, Op *op);
void op_elementwise_vjp(Builder *b, Op *op, Op *g, Op **gin);
bool op_elementwise_eval(struct Interp *in, Op *op, OpTensor *out);
double op_elementwise_apply(const Op *op, const double *x); /* not rounded to op->type.dt */

#endif
