/* rank x, mask, over, imm:  for each entry in the mask, 1 + the number of masked entries
 * along `over` that are smaller, plus imm times the number of others equal to it: with 0.5 the
 * average rank of the Wilcoxon-Mann-Whitney form of ROC-AUC, with 0 the rank at the threshold of
 * average precision.  Entries outside the mask get 0.
 * A library call on every target (it sorts); no gradient. */
#include "ir/interp.h"
#include "ir/op/op.h"

/* Checks a `rank` and gives it the type of its first operand. Returns what is wrong, or NULL. */
static const char *infer(Module *m, Op *op) {
    const Type *x = &op->in[0]->type, *mask = &op->in[1]->type;
    if (op->n_over != 1) return "'rank' is along one space";
    if (op->imm != 0 && op->imm != 0.5 && op->imm != 1)
        return "ties have the lowest (0), the mean (0.5) or the highest (1) of their ranks";
    const char *err = op_need_dense(m, op, 0);
    if (!err) err = op_need_dense(m, op, 1);
    if (!err) err = op_need_float(m, op, 0);
    if (err) return err;
    if (type_find(x, op->over[0]) < 0)
        return op_err(m, "%s has no %s", op_who(m, op, 0), op->over[0]->name);
    if (mask->dt != DT_I1) return op_err(m, "%s is not a mask of truth values", op_who(m, op, 1));
    if (!op_has_spaces(x, mask))
        return op_err(m, "%s has spaces that %s lacks", op_who(m, op, 1), op_who(m, op, 0));
    op->type = *x;
    op->type.dt = DT_F32;
    return NULL;
}

/* The rank, from 1, of the element of x at the walk's place among the n elements along the space
 * where the mask holds: 1 + number of smaller ones + imm * number of other equal ones. */
static double rank_of(const Walk *w, const OpTensor *x, const OpTensor *mask, const Op *op,
                      int64_t n) {
    const Space *over = op->over[0];
    double less = 0, equal = 0;
    for (int64_t j = 0; j < n; j++) {
        if (!mask->v[interp_walk_offset_at(w, mask, over, j)]) continue;
        double v = x->v[interp_walk_offset_at(w, x, over, j)];
        less += v < x->v[w->at];
        equal += v == x->v[w->at];
    }
    return less + 1 + op->imm * (equal - 1);
}

/* Evaluates `rank` in the interpreter; elements where the mask does not hold get 0. */
static bool eval(Interp *in, Op *op, OpTensor *out) {
    const OpTensor *x = interp_in(in, op, 0), *mask = interp_in(in, op, 1);
    int64_t n = interp_size(in, op->over[0]);
    for (Walk w = interp_walk_new(in, &out->type); walk_live(&w); interp_walk_next(&w))
        if (mask->v[interp_walk_offset(&w, mask)]) out->v[w.at] = rank_of(&w, x, mask, op, n);
    return true;
}

const OpImpl op_rank = {.infer = infer, .vjp = NULL, .eval = eval};
