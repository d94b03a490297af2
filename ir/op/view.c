/* view x -> t:  the same elements in the same order under other spaces, as in
 * f32[paper, heads, out] seen as f32[paper, heads*out].  No byte moves; the
 * numbers of elements must be equal as symbolic expressions. */
#include "ir/interp.h"
#include "ir/op/op.h"

/* Checks a `view`: another shape with the same element type and number of elements. Returns what is
 * wrong, or NULL. */
static const char *infer(Module *m, Op *op) {
    const Type *x = &op->in[0]->type;
    if (op->type.dt == DT_VOID) return "'view' lacks its result type";
    if (op->type.dt != x->dt || op->type.layout != LAYOUT_DENSE)
        return "'view' cannot change element type or layout";
    const char *err = op_need_dense(m, op, 0);
    if (err) return err;
    if (expr_eq(type_count(m->a, x), type_count(m->a, &op->type))) return NULL;
    return op_err(m, "%s and %s do not have the same number of elements", op_who(m, op, 0),
                  op_type_text(m, &op->type));
}

static void vjp(Builder *b, Op *op, Op *g, Op **gin) {
    if (ad_wants(op, 0)) gin[0] = b_view(b, g, op->in[0]->type);
}

static bool eval(Interp *in, Op *op, OpTensor *out) {
    const OpTensor *x = interp_in(in, op, 0);
    if (x->count != out->count) return interp_fail(in, op, "sizes differ");
    for (int64_t i = 0; i < out->count; i++) out->v[i] = x->v[i];
    return true;
}

const OpImpl op_view = {.infer = infer, .vjp = vjp, .eval = eval};
