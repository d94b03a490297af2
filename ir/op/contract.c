/* contract x, y -> t:  the product of x and y, summed over the spaces that both
 * have and t lacks: matrix product, batched and per-head products, outer products
 * and dot products, by names instead of an einsum string.  Either operand (not
 * both) may be CSR, when one of its spaces at least is summed.
 *
 * Operands of 16 bits may have a product in f32; the sum is made in f32 in either case.
 *
 * It is its own adjoint: with c = contract(x, y), dx = contract(dc, y) and
 * dy = contract(dc, x), each to the operand's own spaces. */
#include "ir/interp.h"
#include "ir/op/op.h"

static const char *check_space(Module *m, const Op *op, int i, const Space *s) {
    if (type_has(&op->type, s) || type_has(&op->in[1 - i]->type, s)) return NULL;
    return op_err(m, "%s has %s, which neither %s nor the result has", op_who(m, op, i), s->name,
                  op_who(m, op, 1 - i));
}

/* Checks the spaces of both operands and that each space of the result is in an operand. Returns
 * what is wrong, or NULL. */
static const char *check_spaces(Module *m, const Op *op) {
    const Type *x = &op->in[0]->type, *y = &op->in[1]->type;
    const char *err = NULL;
    for (int i = 0; i < x->rank && !err; i++) err = check_space(m, op, 0, x->dim[i]);
    for (int i = 0; i < y->rank && !err; i++) err = check_space(m, op, 1, y->dim[i]);
    for (int i = 0; i < op->type.rank && !err; i++)
        if (!type_has(x, op->type.dim[i]) && !type_has(y, op->type.dim[i]))
            err = op_err(m, "the result has %s, which neither %s nor %s has", op->type.dim[i]->name,
                         op_who(m, op, 0), op_who(m, op, 1));
    return err;
}

/* Checks that at most one operand is CSR, and that one of its spaces is summed. Returns what is
 * wrong, or NULL. */
static const char *check_csr(Module *m, const Op *op) {
    const Type *x = &op->in[0]->type, *y = &op->in[1]->type;
    if (x->layout == LAYOUT_DENSE && y->layout == LAYOUT_DENSE) return NULL;
    if (x->layout == y->layout)
        return op_err(m, "%s and %s are both csr; make a dense copy of one", op_who(m, op, 0),
                      op_who(m, op, 1));
    const Type *csr = x->layout == LAYOUT_CSR ? x : y;
    if (!op_has_spaces(&op->type, csr)) return NULL;
    return op_err(m, "no space of the csr operand is summed; multiply elementwise");
}

/* Checks a `contract`: operands of one type of floating point (16-bit ones may give an f32 result),
 * spaces, layouts. Its result type is given, not inferred. Returns what is wrong, or NULL. */
static const char *infer(Module *m, Op *op) {
    const Type *x = &op->in[0]->type, *y = &op->in[1]->type;
    if (op->type.dt == DT_VOID) return "'contract' lacks its result type";
    if (op->type.layout != LAYOUT_DENSE) return "the result of 'contract' is dense";
    bool wider = op->type.dt == DT_F32 && (x->dt == DT_F16 || x->dt == DT_BF16);
    if (x->dt != y->dt || (x->dt != op->type.dt && !wider))
        return op_err(m, "%s, %s and their product have different element types", op_who(m, op, 0),
                      op_who(m, op, 1));
    const char *err = op_need_float(m, op, 0);
    if (!err) err = check_spaces(m, op);
    return err ? err : check_csr(m, op);
}

/* The gradient of one operand: a contraction of the result's gradient g with the other operand. Of
 * operands of 16 bits it is summed in the result's type, then rounded. */
static Op *adjoint(Builder *b, Op *g, Op *other, const Type *t) {
    Type want = *t;
    want.layout = LAYOUT_DENSE;
    want.dt = g->type.dt;
    if (other->type.dt != g->type.dt) other = b_cast(b, other, g->type.dt);
    Op *y = b_contract(b, g, other, want);
    return want.dt == t->dt ? y : b_cast(b, y, t->dt);
}

static void vjp(Builder *b, Op *op, Op *g, Op **gin) {
    for (int i = 0; i < 2; i++)
        if (ad_wants(op, i)) gin[i] = adjoint(b, g, op->in[1 - i], &op->in[i]->type);
}

/* The spaces that are summed: all of x's and y's that the result lacks. */
static Walk summed(Interp *in, const Op *op) {
    Walk w = interp_walk_new(in, &(Type){.dt = op->type.dt});
    for (int k = 0; k < 2; k++) {
        const Type *t = &op->in[k]->type;
        for (int d = 0; d < t->rank; d++)
            if (!type_has(&op->type, t->dim[d])) interp_walk_add(in, &w, t->dim[d]);
    }
    return w;
}

/* The offsets in t of all places of `over`, the walk over the summed spaces, while the walk
 * `result` stands at its start. The offset of any pair of places is the sum of theirs, so the inner
 * loop only adds. */
static int64_t *offsets_over(Interp *in, const Walk *result, Walk over, const OpTensor *t) {
    int64_t *offset = NEWN(interp_scratch(in), int64_t, (size_t)over.count + 1);
    for (; walk_live(&over); interp_walk_next(&over)) {
        Walk both = interp_walk_place(result, &over);
        offset[over.at] = interp_walk_offset(&both, t);
    }
    return offset;
}

/* Evaluates `contract` in the interpreter: for each element of the result, the sum of products over
 * all spaces that the result lacks (an einsum). False after an error. */
static bool eval(Interp *in, Op *op, OpTensor *out) {
    const OpTensor *x = interp_in_dense(in, op, 0), *y = interp_in_dense(in, op, 1);
    if (!x || !y) return false;
    const Walk over = summed(in, op), first = interp_walk_new(in, &out->type);
    const int64_t *sx = offsets_over(in, &first, over, x), *sy = offsets_over(in, &first, over, y);
    for (Walk w = first; walk_live(&w); interp_walk_next(&w)) {
        Walk both = interp_walk_place(&w, &over);
        int64_t at_x = interp_walk_offset(&both, x), at_y = interp_walk_offset(&both, y);
        double sum = 0;
        for (int64_t k = 0; k < over.count; k++) sum += x->v[at_x + sx[k]] * y->v[at_y + sy[k]];
        out->v[w.at] = sum;
    }
    return true;
}

const OpImpl op_contract = {.infer = infer, .vjp = vjp, .eval = eval};
