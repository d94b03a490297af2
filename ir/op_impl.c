/* Which file of ir/op/ has shape rule, gradient and meaning of an operation, by ops.def. */
#include "ir/ir.h"

#define OP(id, mnemonic, n_in, cost, traits, attrs, impl) extern const OpImpl op_##impl;
#include "ops.def"
#undef OP

static const OpImpl *const impls[] = {
#define OP(id, mnemonic, n_in, cost, traits, attrs, impl) &op_##impl,
#include "ops.def"
#undef OP
};

const OpImpl *op_impl(OpKind k) {
    return impls[k];
}

const char *op_infer(Module *m, Op *op) {
    return op_impl(op->kind)->infer(m, op);
}
