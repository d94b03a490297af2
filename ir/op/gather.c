/* Reading along a map m : A -> B.
 *     gather m, x    y[a, ..] = x[m(a), ..], 0 where m(a) < 0     f32[B, F] -> f32[A, F]
 *     valid m        m(a) >= 0                                     i1[A]
 *     index m        m(a)                                          i32[A]
 * The adjoint of gather is a segment sum over the same map, so no target ever
 * needs an atomic addition: unsorted maps have a transpose (PERM). */
#include "ir/interp.h"
#include "ir/op/op.h"

/* The type of `gather` (the operand's, with the map's target space replaced by its source space),
 * of `valid` (i1) or of `index` (i32). Returns what is wrong, or NULL. */
static const char *infer(Module *m, Op *op) {
    if (!op->map) return op_err(m, "'%s' lacks its map", op_mnemonic(op->kind));
    if (op->kind != OP_GATHER) {
        op->type = type_make(op->kind == OP_VALID ? DT_I1 : DT_I32, 1, &op->map->from);
        return NULL;
    }
    Type t;
    const char *err = op_need_dense(m, op, 0);
    if (!err) err = op_swap_space(m, op, op->map->to, op->map->from, &t);
    if (!err) op->type = t;
    return err;
}

static void vjp(Builder *b, Op *op, Op *g, Op **gin) {
    if (op->kind != OP_GATHER || !ad_wants(op, 0)) return;
    gin[0] = ad_reduce_to(b, b_segment(b, RED_SUM, op->map, g), &op->in[0]->type);
}

/* Evaluates `gather` in the interpreter: out[a] = x[m(a)]; 0 where the map has no target. */
static bool eval_gather(Interp *in, const Op *op, const int64_t *index, OpTensor *out) {
    const OpTensor *x = interp_in(in, op, 0);
    const Map *m = op->map;
    for (Walk w = interp_walk_new(in, &out->type); walk_live(&w); interp_walk_next(&w)) {
        int64_t to = index[interp_walk_index(&w, m->from)];
        out->v[w.at] = to < 0 ? 0 : x->v[interp_walk_offset_at(&w, x, m->to, to)];
    }
    return true;
}

/* Evaluates `gather`, or, of each element of the map's source, whether it has a target (`valid`),
 * or its number. */
static bool eval(Interp *in, Op *op, OpTensor *out) {
    const int64_t *index = interp_map(in, op->map);
    if (!index) return false;
    if (op->kind == OP_GATHER) return eval_gather(in, op, index, out);
    for (int64_t a = 0; a < out->count; a++)
        out->v[a] = op->kind == OP_VALID ? index[a] >= 0 : (double)index[a];
    return true;
}

const OpImpl op_gather = {.infer = infer, .vjp = vjp, .eval = eval};
