/* Elementwise operations: types.  Operands are aligned by space, never by
 * position; the result has the spaces of the first operand, then those of the
 * next that it lacks.  A permutation of that order, already given in op->type,
 * stands, so a pass may choose the storage order of a result.
 * Meaning: elementwise_eval.c, gradients: elementwise_vjp.c. */
#include "ir/op/elementwise.h"

static bool is_number(DType t) {
    return t != DT_VOID && t != DT_I1;
}

static const char *not_bool(Module *m, const Op *op, int i) {
    return op_err(m, "%s is not a truth value, which '%s' needs", op_who(m, op, i),
                  op_mnemonic(op->kind));
}

/* Equal element types; a constant takes the type of the value it meets. */
static const char *common_dtype(Module *m, const Op *op, int i, int j, DType *dt) {
    const Op *x = op->in[i], *y = op->in[j];
    *dt = x->type.dt;
    if (x->type.dt == y->type.dt) return NULL;
    bool numbers = is_number(x->type.dt) && is_number(y->type.dt);
    if (numbers && y->kind == OP_CONST) return NULL;
    if (numbers && x->kind == OP_CONST) {
        *dt = y->type.dt;
        return NULL;
    }
    return op_err(m, "%s and %s have different element types; cast one of them", op_who(m, op, i),
                  op_who(m, op, j));
}

/* Checks that all operands are numbers, not truth values. Returns what is wrong, or NULL. */
static const char *need_number(Module *m, const Op *op) {
    for (int i = 0; i < op->n_in; i++)
        if (!is_number(op->in[i]->type.dt))
            return op_err(m, "%s is not a number, which '%s' needs", op_who(m, op, i),
                          op_mnemonic(op->kind));
    return NULL;
}

/* *dt gets the element type of the result of an operation with one operand. Returns what is wrong,
 * or NULL. */
static const char *unary_dtype(Module *m, const Op *op, DType *dt) {
    *dt = op->in[0]->type.dt;
    switch (op->kind) {
    case OP_CAST:
        if (op->type.dt == DT_VOID) return "'cast' lacks the element type to cast to";
        *dt = op->type.dt;
        return NULL;
    case OP_COPY:
    case OP_DETACH:
        return NULL;
    case OP_STORE_AS:
        if (*dt == DT_F32) return dtype_is_float(op->dtype) ? NULL : "'store_as' lacks its type";
        return op_err(m, "%s is not f32, which '%s' needs", op_who(m, op, 0),
                      op_mnemonic(op->kind));
    case OP_NOT:
        return *dt == DT_I1 ? NULL : not_bool(m, op, 0);
    case OP_NEG:
    case OP_ABS:
        return need_number(m, op);
    case OP_ISNAN:
        *dt = DT_I1;
        return op_need_float(m, op, 0);
    default:
        return op_need_float(m, op, 0);
    }
}

/* *dt gets the element type of the result of an operation with two operands: their common one, or
 * i1 for comparisons. Returns what is wrong, or NULL. */
static const char *binary_dtype(Module *m, const Op *op, DType *dt) {
    const char *err = common_dtype(m, op, 0, 1, dt);
    if (err) return err;
    switch (op->kind) {
    case OP_AND:
    case OP_OR:
        return *dt == DT_I1 ? NULL : not_bool(m, op, 0);
    case OP_POW:
        return op_need_float(m, op, op->in[0]->kind == OP_CONST ? 1 : 0);
    case OP_EQ:
        *dt = DT_I1;
        return NULL;
    default:
        break;
    }
    err = need_number(m, op);
    if (op_has(op, OPT_CMP)) *dt = DT_I1;
    return err;
}

static const char *result_dtype(Module *m, const Op *op, DType *dt) {
    if (op->n_in == 1) return unary_dtype(m, op, dt);
    if (op->n_in == 2) return binary_dtype(m, op, dt);
    if (op->in[0]->type.dt != DT_I1) return not_bool(m, op, 0);
    return common_dtype(m, op, 1, 2, dt);
}

static bool is_csr(const Op *op, int i) {
    return i < op->n_in && op->in[i]->type.layout == LAYOUT_CSR;
}

static bool is_zero(const Op *x) {
    return x->kind == OP_CONST && x->imm == 0;
}

static bool same_column(const Module *m, const Op *op) {
    Column *c = op_csr_column(m, op->in[0]);
    return c && c == op_csr_column(m, op->in[1]);
}

/* Does f keep the zeros that its CSR operands do not store? */
static bool keeps_zeros(const Module *m, const Op *op) {
    bool x = is_csr(op, 0), y = is_csr(op, 1);
    switch (op->kind) {
    case OP_MUL:
        return !(x && y) || same_column(m, op);
    case OP_ADD:
    case OP_SUB:
    case OP_MAX:
    case OP_MIN:
        return x && y && same_column(m, op);
    case OP_SELECT:
        return y && !x && is_zero(op->in[2]);
    default:
        return x && !y && op_has(op, OPT_ZERO);
    }
}

/* The CSR operand whose structure the result takes; -1: the result is dense; or an error. */
static const char *csr_operand(Module *m, const Op *op, int *which) {
    *which = -1;
    int i = 0;
    while (i < op->n_in && !is_csr(op, i)) i++;
    if (i == op->n_in || op->kind == OP_COPY) return NULL;
    const Type *csr = &op->in[i]->type;
    if (!keeps_zeros(m, op))
        return op_err(m,
                      "%s is csr (its zeros are not stored) and '%s' would fill it; make a dense "
                      "copy of it first",
                      op_who(m, op, i), op_mnemonic(op->kind));
    for (int k = 0; k < op->n_in; k++)
        if (!op_has_spaces(csr, &op->in[k]->type))
            return op_err(m, "%s has spaces that %s, which is csr, lacks; make a dense copy of it",
                          op_who(m, op, k), op_who(m, op, i));
    *which = i;
    return NULL;
}

static bool is_data_space(const Space *s) {
    return s->kind != SP_DIM;
}

/* One operand must have all node, edge and graph spaces of the result: f32[paper]
 * with f32[author] is a forgotten gather, not a table of all pairs. */
static const char *check_nested(Module *m, const Op *op, const Type *t) {
    for (int i = 0; i < op->n_in; i++) {
        bool all = true;
        for (int d = 0; d < t->rank; d++)
            if (is_data_space(t->dim[d]) && !type_has(&op->in[i]->type, t->dim[d])) all = false;
        if (all) return NULL;
    }
    int last = op->n_in - 1, first = op->n_in == 3 ? 1 : 0;
    for (int i = first; i < last; i++)
        for (int d = 0; d < op->in[last]->type.rank; d++)
            if (!type_has(&op->in[i]->type, op->in[last]->type.dim[d])) first = i;
    return op_err(m, "%s and %s live on different spaces; gather one of them first",
                  op_who(m, op, first), op_who(m, op, last));
}

/* Appends to t the spaces of x that it lacks. False: these are more than MAX_RANK. */
static bool add_spaces(Type *t, const Type *x) {
    for (int i = 0; i < x->rank; i++) {
        if (type_has(t, x->dim[i])) continue;
        if (t->rank == MAX_RANK) return false;
        t->dim[t->rank++] = x->dim[i];
    }
    return true;
}

/* t gets the spaces of all operands, each once: operands that lack one are broadcast along it.
 * Returns what is wrong, or NULL. */
static const char *result_spaces(Module *m, const Op *op, Type *t) {
    bool fits = true;
    int first = op->kind == OP_SELECT ? 1 : 0; /* select: x, y, then the condition */
    for (int i = 0; i < op->n_in; i++)
        fits = fits && add_spaces(t, &op->in[(first + i) % op->n_in]->type);
    if (!fits) return op_err(m, "the result would have more than %d dimensions", MAX_RANK);
    return check_nested(m, op, t);
}

/* The type of `copy`: the operand's as dense, or a given type with the same elements and at least
 * its spaces, along which it is broadcast. Returns what is wrong, or NULL. */
static const char *infer_copy(Module *m, Op *op) {
    const Type *x = &op->in[0]->type;
    if (op->type.dt == DT_VOID) {
        op->type = *x;
        op->type.layout = LAYOUT_DENSE;
        return NULL;
    }
    if (op->type.dt != x->dt) return "'copy' cannot change the element type; cast it";
    if (op->type.layout != LAYOUT_DENSE) return "'copy' makes dense values only";
    if (op_has_spaces(&op->type, x)) return NULL;
    return op_err(m, "%s has a space that the copy %s lacks", op_who(m, op, 0),
                  op_type_text(m, &op->type));
}

/* Checks an elementwise operation and gives it its type. Next to a CSR operand the result is CSR
 * with the same entries. Returns what is wrong, or NULL. */
const char *op_elementwise_infer(Module *m, Op *op) {
    if (op->kind == OP_COPY) return infer_copy(m, op);
    Type t = {0};
    int csr = -1;
    const char *err = result_dtype(m, op, &t.dt);
    if (!err) err = csr_operand(m, op, &csr);
    if (!err) err = result_spaces(m, op, &t);
    if (err) return err;
    if (csr >= 0) {
        DType dt = t.dt;
        t = op->in[csr]->type;
        t.dt = dt;
    } else {
        op_keep_order(&t, &op->type);
    }
    op->type = t;
    return NULL;
}

const OpImpl op_elementwise = {
    .infer = op_elementwise_infer,
    .vjp = op_elementwise_vjp,
    .eval = op_elementwise_eval,
};
