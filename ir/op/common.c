/* Helpers of the op files: see op.h. */
#include "ir/op/op.h"

/* A message in the manner of printf, in the module's arena: what infer functions return for an
 * operation that is wrong. */
const char *op_err(Module *m, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *s = arena_vprintf(m->a, fmt, ap);
    va_end(ap);
    return s;
}

const char *op_type_text(Module *m, const Type *t) {
    StrBuf b = sb_new(m->a);
    sb_puts(&b, "");
    type_print(&b, t);
    return b.s;
}

const char *op_who(Module *m, const Op *op, int i) {
    const Op *x = op->in[i];
    if (x->hint) return op_err(m, "'%s' (%s)", x->hint, op_type_text(m, &x->type));
    if (x->kind == OP_CONST) return op_err(m, "the constant %g", x->imm);
    return op_err(m, "operand %d (%s)", i + 1, op_type_text(m, &x->type));
}

bool op_has_spaces(const Type *t, const Type *of) {
    for (int i = 0; i < of->rank; i++)
        if (!type_has(t, of->dim[i])) return false;
    return true;
}

bool op_same_spaces(const Type *x, const Type *y) {
    return x->rank == y->rank && op_has_spaces(x, y);
}

void op_keep_order(Type *t, const Type *given) {
    if (given->dt == DT_VOID || !op_same_spaces(t, given)) return;
    for (int i = 0; i < t->rank; i++) t->dim[i] = given->dim[i];
}

const char *op_need_dense(Module *m, const Op *op, int i) {
    if (op->in[i]->type.layout == LAYOUT_DENSE) return NULL;
    return op_err(m, "%s is csr, which '%s' cannot read; make a dense copy of it first",
                  op_who(m, op, i), op_mnemonic(op->kind));
}

const char *op_need_float(Module *m, const Op *op, int i) {
    if (dtype_is_float(op->in[i]->type.dt)) return NULL;
    return op_err(m, "%s is not a floating-point value, which '%s' needs", op_who(m, op, i),
                  op_mnemonic(op->kind));
}

/* *t gets the type of operand 0 with space `from` replaced by `to`. Returns what is wrong (it has
 * no `from`, or already has `to`), or NULL. */
const char *op_swap_space(Module *m, const Op *op, const Space *from, Space *to, Type *t) {
    *t = op->in[0]->type;
    int at = type_find(t, from);
    if (at < 0) return op_err(m, "%s does not live on %s", op_who(m, op, 0), from->name);
    if (from != to && type_has(t, to))
        return op_err(m, "%s already has %s, so its %s cannot become %s", op_who(m, op, 0),
                      to->name, from->name, to->name);
    t->dim[at] = to;
    op_keep_order(t, &op->type);
    return NULL;
}

/* Every CSR value is made elementwise from a column, so following any CSR operand
 * leads to it; a saved one goes on where it was computed. */
Column *op_csr_column(const Module *m, const Op *x) {
    while (x && x->kind != OP_DATA) {
        const Op *next = NULL;
        if (x->kind == OP_SAVED) {
            const Op *out = module_saved(m, x->name);
            next = out ? out->in[0] : NULL;
        } else {
            for (int i = 0; i < x->n_in && !next; i++)
                if (x->in[i]->type.layout == LAYOUT_CSR) next = x->in[i];
        }
        x = next;
    }
    return x ? x->col : NULL;
}

Op *ad_const(Builder *b, const Op *like, double v) {
    return b_const(b, like->type.dt, v);
}

/* Appends a dense value of type t that is zero everywhere. */
Op *ad_zeros(Builder *b, const Type *t) {
    Op *zero = b_const(b, t->dt, 0);
    if (t->rank == 0) return zero;
    Type dense = *t;
    dense.layout = LAYOUT_DENSE;
    return b_copy(b, zero, dense);
}

bool ad_is_flat(const Op *op) {
    return !dtype_is_float(op->type.dt) || op->kind == OP_DETACH || op->kind == OP_FLOOR;
}

/* Appends what makes of gradient g the gradient of an operand of type t that was broadcast: sums
 * over the dimensions that t lacks, then t's element type and order of dimensions. */
Op *ad_reduce_to(Builder *b, Op *g, const Type *t) {
    int n = 0;
    Space *over[MAX_RANK];
    for (int i = 0; i < g->type.rank; i++)
        if (!type_has(t, g->type.dim[i])) over[n++] = g->type.dim[i];
    if (n) g = b_reduce(b, RED_SUM, g, n, over);
    if (g->type.dt != t->dt) g = b_cast(b, g, t->dt);
    Type want = *t;
    want.layout = LAYOUT_DENSE;
    return type_eq(&g->type, &want) ? g : b_copy(b, g, want);
}
