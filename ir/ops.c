/* The op table: what ops.def says about each operation, as arrays. */
#include "ir/ir.h"

#define OP(id, mnemonic, n_in, traits, impl) extern const OpImpl op_##impl;
#include "ops.def"
#undef OP

static const struct {
    const char *mnemonic;
    int n_in;
    unsigned traits;
    const OpImpl *impl;
} table[] = {
#define OP(id, mnemonic, n_in, traits, impl) {mnemonic, n_in, traits, &op_##impl},
#include "ops.def"
#undef OP
};

static const unsigned attrs[N_OPS] = {
    [OP_CONST] = OPA_IMM | OPA_TYPE,
    [OP_IOTA] = OPA_OVER1,
    [OP_SIZE] = OPA_OVER1,
    [OP_DATA] = OPA_COL,
    [OP_VAR] = OPA_VAR,
    [OP_INPUT] = OPA_NAME | OPA_TYPE,
    [OP_SAVED] = OPA_NAME | OPA_TYPE,
    [OP_RANDOM] = OPA_STREAM | OPA_TYPE,
    [OP_CAST] = OPA_TYPE,
    [OP_STORE_AS] = OPA_DTYPE,
    [OP_COPY] = OPA_TYPE,
    [OP_GATHER] = OPA_MAP,
    [OP_SEGMENT] = OPA_RED | OPA_MAP,
    [OP_VALID] = OPA_MAP,
    [OP_INDEX] = OPA_MAP,
    [OP_REDUCE] = OPA_RED | OPA_OVER,
    [OP_ARGMAX] = OPA_OVER1,
    [OP_CONTRACT] = OPA_TYPE,
    [OP_VIEW] = OPA_TYPE,
    [OP_CONCAT] = OPA_OVER3,
    [OP_SLICE] = OPA_OVER2 | OPA_OFF,
    [OP_RANK] = OPA_OVER1,
    [OP_CALL] = OPA_EXT | OPA_TYPE,
    [OP_CALL_GRAD] = OPA_EXT,
    [OP_CALL_EFFECT] = OPA_WHEN | OPA_EXT | OPA_TYPE,
    [OP_RESULT] = OPA_IMM,
    [OP_LOOP] = OPA_BODY | OPA_LIMIT,
    [OP_ARG] = OPA_IMM | OPA_TYPE,
    [OP_NEXT] = OPA_IMM,
    [OP_ASSIGN] = OPA_VAR,
    [OP_OUTPUT] = OPA_NAME,
    [OP_PRINT] = OPA_WHEN | OPA_NAME,
    [OP_ASSERT] = OPA_NAME,
};

const char *op_mnemonic(OpKind k) {
    return table[k].mnemonic;
}

int op_arity(OpKind k) {
    return table[k].n_in;
}

unsigned op_traits(OpKind k) {
    return table[k].traits;
}

unsigned op_attrs(OpKind k) {
    return attrs[k];
}

bool op_has(const Op *op, OpTraits t) {
    return (op_traits(op->kind) & (unsigned)t) != 0;
}

const OpImpl *op_impl(OpKind k) {
    return table[k].impl;
}

const char *op_infer(Module *m, Op *op) {
    return op_impl(op->kind)->infer(m, op);
}
