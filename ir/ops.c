/* The op table: what ops.def says about each operation, as an array; what an operation does stands
 * in op_impl.c. */
#include "ir/ir.h"

static const struct {
    const char *mnemonic;
    int n_in, cost;
    unsigned traits, attrs;
} table[] = {
#define OP(id, mnemonic, n_in, cost, traits, attrs, impl) {mnemonic, n_in, cost, traits, attrs},
#include "ops.def"
#undef OP
};

const char *op_mnemonic(OpKind k) {
    return table[k].mnemonic;
}

int op_arity(OpKind k) {
    return table[k].n_in;
}

int op_cost(OpKind k) {
    return table[k].cost;
}

unsigned op_traits(OpKind k) {
    return table[k].traits;
}

unsigned op_attrs(OpKind k) {
    return table[k].attrs;
}

bool op_has(const Op *op, OpTraits t) {
    return (op_traits(op->kind) & (unsigned)t) != 0;
}

bool op_has_result(const Op *op) {
    return op->type.dt != DT_VOID || (op->untyped && !op_has(op, OPT_EFFECT));
}
