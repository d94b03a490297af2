/* Reductions along spaces of the operand.
 *     reduce red, x, over    sum, max or min over the spaces `over`; empty: 0
 *     argmax x, over         index of the largest, ties to the lowest; empty: 0
 * A CSR operand may be summed (its zeros add nothing); its largest element would
 * need to know whether a row has a zero, so that asks for a dense copy. */
#include "ir/interp.h"
#include "ir/op/op.h"

/* Removes from t the spaces that the operation reduces over. Returns what is wrong, or NULL. */
static const char *remove_over(Module *m, const Op *op, Type *t) {
    for (int i = 0; i < op->n_over; i++) {
        int at = type_find(t, op->over[i]);
        if (at < 0)
            return op_err(m, "%s has no %s to reduce over", op_who(m, op, 0), op->over[i]->name);
        for (int d = at; d + 1 < t->rank; d++) t->dim[d] = t->dim[d + 1];
        t->dim[--t->rank] = NULL;
    }
    return NULL;
}

/* The type of `reduce` or `argmax`: the operand's without the spaces reduced over; `argmax` gives
 * i32. Returns what is wrong, or NULL. */
static const char *infer(Module *m, Op *op) {
    bool arg = op->kind == OP_ARGMAX;
    Type t = op->in[0]->type;
    if (op->n_over < 1 || (arg && op->n_over != 1))
        return op_err(m, "'%s' lacks the space to reduce over", op_mnemonic(op->kind));
    if (t.dt == DT_I1) return op_err(m, "%s is not a number", op_who(m, op, 0));
    const char *err = arg || op->red != RED_SUM ? op_need_dense(m, op, 0) : NULL;
    if (!err) err = remove_over(m, op, &t);
    if (err) return err;
    t.layout = LAYOUT_DENSE;
    if (arg) t.dt = DT_I32;
    op_keep_order(&t, &op->type);
    op->type = t;
    return NULL;
}

/* Appends the gradient of the operand of a max or min: elements that equal the result share its
 * gradient equally, as for a segment's; all others get 0. */
static Op *vjp_extreme(Builder *b, Op *op, Op *g) {
    Op *tied = b_binary(b, OP_EQ, op->in[0], op);
    Op *n_tied = b_reduce(b, RED_SUM, b_cast(b, tied, g->type.dt), op->n_over, op->over);
    Op *share = b_binary(b, OP_DIV, g, b_binary(b, OP_MAX, n_tied, ad_const(b, g, 1)));
    return b_select(b, tied, share, ad_const(b, g, 0));
}

static void vjp(Builder *b, Op *op, Op *g, Op **gin) {
    if (op->kind != OP_REDUCE || !ad_wants(op, 0)) return;
    Op *gx = op->red == RED_SUM ? g : vjp_extreme(b, op, g);
    gin[0] = ad_reduce_to(b, gx, &op->in[0]->type);
}

/* Evaluates `argmax` in the interpreter: the index of the greatest element along the space, of
 * equal ones the first. */
static bool eval_argmax(Interp *in, const Op *op, const OpTensor *x, OpTensor *out) {
    int64_t n = interp_size(in, op->over[0]);
    for (Walk w = interp_walk_new(in, &out->type); walk_live(&w); interp_walk_next(&w)) {
        double best = 0;
        for (int64_t i = 0; i < n; i++) {
            double v = x->v[interp_walk_offset_at(&w, x, op->over[0], i)];
            if (i > 0 && !(v > best)) continue;
            best = v;
            out->v[w.at] = (double)i;
        }
    }
    return true;
}

/* Evaluates `reduce` or `argmax` in the interpreter. False after an error. */
static bool eval(Interp *in, Op *op, OpTensor *out) {
    const OpTensor *x = interp_in_dense(in, op, 0);
    if (!x) return false;
    if (op->kind == OP_ARGMAX) return eval_argmax(in, op, x, out);
    bool *seen = NEWN(interp_scratch(in), bool, (size_t)out->count);
    for (Walk w = interp_walk_new(in, &x->type); walk_live(&w); interp_walk_next(&w)) {
        int64_t at = interp_walk_offset(&w, out);
        out->v[at] = seen[at] ? interp_combine(op->red, out->v[at], x->v[w.at]) : x->v[w.at];
        seen[at] = true;
    }
    return true;
}

const OpImpl op_reduce = {.infer = infer, .vjp = vjp, .eval = eval};
