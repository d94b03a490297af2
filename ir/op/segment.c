/* segment red, m, x:  y[b, ..] = red over { a : m(a) = b } of x[a, ..]
 * for m : A -> B, red one of sum, max, min.   f32[A, F] -> f32[B, F]
 * A row without entries is 0 (for max and min too, as in PyG's scatter); entries
 * with m(a) < 0 belong to no row.
 *
 * The gradient of max and min goes in equal shares to all entries that attain it,
 * as torch.scatter_reduce(reduce = "amax") does; a "first one wins" rule would
 * make the result depend on the order of parallel edges. */
#include "ir/interp.h"
#include "ir/op/op.h"

/* The type of `segment`: the operand's, with the map's source space replaced by its target space.
 * Returns what is wrong, or NULL. */
static const char *infer(Module *m, Op *op) {
    if (!op->map) return "'segment' lacks its map";
    Type t;
    const char *err = op_need_dense(m, op, 0);
    if (!err) err = op_swap_space(m, op, op->map->from, op->map->to, &t);
    if (!err && t.dt == DT_I1) err = op_err(m, "%s is not a number", op_who(m, op, 0));
    if (!err) op->type = t;
    return err;
}

/* Appends the gradient of the operand of a segment's max or min: elements equal to their segment's
 * result share its gradient equally, all others get 0 (a subgradient). */
static Op *vjp_extreme(Builder *b, Op *op, Op *g) {
    Op *x = op->in[0];
    Op *tied = b_binary(b, OP_EQ, x, b_gather(b, op->map, op));
    Op *n_tied = b_segment(b, RED_SUM, op->map, b_cast(b, tied, g->type.dt));
    Op *share = b_binary(b, OP_DIV, g, b_binary(b, OP_MAX, n_tied, ad_const(b, g, 1)));
    return b_select(b, tied, b_gather(b, op->map, share), ad_const(b, g, 0));
}

static void vjp(Builder *b, Op *op, Op *g, Op **gin) {
    if (!ad_wants(op, 0)) return;
    Op *gx = op->red == RED_SUM ? b_gather(b, op->map, g) : vjp_extreme(b, op, g);
    gin[0] = ad_reduce_to(b, gx, &op->in[0]->type);
}

/* Evaluates `segment` in the interpreter: combines the elements that the map sends to one target
 * (scatter-reduce); elements without a target are left out. */
static bool eval(Interp *in, Op *op, OpTensor *out) {
    const OpTensor *x = interp_in(in, op, 0);
    const int64_t *index = interp_map(in, op->map);
    if (!index) return false;
    bool *seen = NEWN(interp_scratch(in), bool, (size_t)out->count);
    for (Walk w = interp_walk_new(in, &x->type); walk_live(&w); interp_walk_next(&w)) {
        int64_t to = index[interp_walk_index(&w, op->map->from)];
        if (to < 0) continue;
        int64_t at = interp_walk_offset_at(&w, out, op->map->to, to);
        out->v[at] = seen[at] ? interp_combine(op->red, out->v[at], x->v[w.at]) : x->v[w.at];
        seen[at] = true;
    }
    return true;
}

const OpImpl op_segment = {.infer = infer, .vjp = vjp, .eval = eval};
