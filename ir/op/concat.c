/* Joining and cutting along one space; each is the other's adjoint.
 *     concat x, y  [dx, dy, into]   x's dx, then y's dy, become `into`
 *     slice x      [from, to; off]  entries off .. off + size(to) of `from` */
#include "ir/interp.h"
#include "ir/op/op.h"

/* The type of `concat x y`: the types agree but for the dimension that is joined, whose size is the
 * sum of both. Returns what is wrong, or NULL. */
static const char *infer_concat(Module *m, Op *op) {
    if (op->n_over != 3) return "'concat' lacks its spaces";
    Space *dx = op->over[0], *dy = op->over[1], *into = op->over[2];
    const Type *y = &op->in[1]->type;
    Type t, rest;
    const char *err = op_need_dense(m, op, 0);
    if (!err) err = op_need_dense(m, op, 1);
    if (!err) err = op_swap_space(m, op, dx, into, &t);
    if (err) return err;
    if (type_find(y, dy) < 0) return op_err(m, "%s has no %s", op_who(m, op, 1), dy->name);
    if (dy != into && type_has(y, into))
        return op_err(m, "%s already has %s", op_who(m, op, 1), into->name);
    rest = *y;
    rest.dim[type_find(y, dy)] = into;
    if (t.dt != y->dt || !op_same_spaces(&t, &rest))
        return op_err(m, "%s and %s differ in more than %s", op_who(m, op, 0), op_who(m, op, 1),
                      dx->name);
    if (!expr_eq(into->size, expr_add(m->a, dx->size, dy->size)))
        return op_err(m, "the size of %s is not that of %s plus that of %s", into->name, dx->name,
                      dy->name);
    op->type = t;
    return NULL;
}

/* The type of `slice`: the operand's, with one space replaced. Checks the bounds where all sizes
 * are constant. Returns what is wrong, or NULL. */
static const char *infer_slice(Module *m, Op *op) {
    if (op->n_over != 2 || !op->off) return "'slice' lacks its spaces or its offset";
    Space *from = op->over[0], *to = op->over[1];
    Type t;
    const char *err = op_need_dense(m, op, 0);
    if (!err) err = op_swap_space(m, op, from, to, &t);
    if (err) return err;
    int64_t off, n_to, n_from;
    bool known = expr_is_const(op->off, &off);
    if (known && off < 0) return "the offset of 'slice' is negative";
    known = known && expr_is_const(to->size, &n_to) && expr_is_const(from->size, &n_from);
    if (known && (n_to > n_from || off > n_from - n_to))
        return op_err(m, "%lld entries from %lld on are not in %s, which has %lld", (long long)n_to,
                      (long long)off, from->name, (long long)n_from);
    op->type = t;
    return NULL;
}

static const char *infer(Module *m, Op *op) {
    return op->kind == OP_CONCAT ? infer_concat(m, op) : infer_slice(m, op);
}

static Space *pad_space(Builder *b, const Expr *size) {
    return space_dim(b->m, "pad", size, b->span);
}

static bool is_none(const Expr *size) {
    int64_t c;
    return expr_is_const(size, &c) && c == 0;
}

/* Puts zeros before (or after) g along `at`; the result has `into` there. */
static Op *pad(Builder *b, Op *g, Space *at, Space *zeros, Space *into, bool before) {
    Type t = g->type;
    t.dim[type_find(&t, at)] = zeros;
    Op *z = ad_zeros(b, &t);
    return before ? b_concat(b, z, g, zeros, at, into) : b_concat(b, g, z, at, zeros, into);
}

/* Appends the gradient of a slice's operand: the result's gradient g, padded with zeros before and
 * after it. */
static Op *vjp_slice(Builder *b, Op *op, Op *g) {
    Arena *a = b->m->a;
    Space *from = op->over[0], *to = op->over[1];
    const Expr *end = expr_add(a, op->off, to->size);
    const Expr *after = expr_add(a, from->size, expr_mul(a, expr_const(a, -1), end));
    bool has_after = !is_none(after);
    if (!is_none(op->off)) {
        Space *head = has_after ? pad_space(b, end) : from;
        g = pad(b, g, to, pad_space(b, op->off), head, true);
        to = head;
    }
    return has_after ? pad(b, g, to, pad_space(b, after), from, false) : g;
}

/* A slice of everything renames the space: the gradient is a view. */
static Op *vjp_whole_slice(Builder *b, Op *op, Op *g) {
    Type t = g->type;
    t.dim[type_find(&t, op->over[1])] = op->over[0];
    return b_view(b, g, t);
}

/* Appends the gradients of the operands, given the result's gradient g. `slice`: g padded with
 * zeros; `concat`: each operand gets its own slice of g. */
static void vjp(Builder *b, Op *op, Op *g, Op **gin) {
    if (op->kind == OP_SLICE) {
        bool whole = is_none(op->off) && expr_eq(op->over[0]->size, op->over[1]->size);
        if (!ad_wants(op, 0)) return;
        Op *gx = whole ? vjp_whole_slice(b, op, g) : vjp_slice(b, op, g);
        gin[0] = ad_reduce_to(b, gx, &op->in[0]->type);
        return;
    }
    const Expr *off = expr_const(b->m->a, 0);
    for (int i = 0; i < 2; i++) {
        Space *part = op->over[i];
        if (ad_wants(op, i))
            gin[i] = ad_reduce_to(b, b_slice(b, g, op->over[2], part, off), &op->in[i]->type);
        off = part->size;
    }
}

/* Evaluates `concat` or `slice` in the interpreter. False: the slice exceeds its operand. */
static bool eval(Interp *in, Op *op, OpTensor *out) {
    const OpTensor *x = interp_in(in, op, 0);
    if (op->kind == OP_SLICE) {
        int64_t off = interp_expr(in, op->off), n = interp_size(in, op->over[0]);
        if (off < 0 || off + interp_size(in, op->over[1]) > n)
            return interp_fail(in, op, "the slice does not lie within its operand");
        for (Walk w = interp_walk_new(in, &out->type); walk_live(&w); interp_walk_next(&w))
            out->v[w.at] = x->v[interp_walk_offset_at(&w, x, op->over[0],
                                                      off + interp_walk_index(&w, op->over[1]))];
        return true;
    }
    const OpTensor *y = interp_in(in, op, 1);
    int64_t n = interp_size(in, op->over[0]);
    for (Walk w = interp_walk_new(in, &out->type); walk_live(&w); interp_walk_next(&w)) {
        int64_t i = interp_walk_index(&w, op->over[2]);
        out->v[w.at] = i < n ? x->v[interp_walk_offset_at(&w, x, op->over[0], i)]
                             : y->v[interp_walk_offset_at(&w, y, op->over[1], i - n)];
    }
    return true;
}

const OpImpl op_concat = {.infer = infer, .vjp = vjp, .eval = eval};
