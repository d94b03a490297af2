/* Concatenations: every part is computed, or copied, where it belongs.
 *
 *     y = concat(a, concat(b, c))        for v in N parallel {
 *       along columns                      for f in A { y[v, f]         = a[v, f] }
 *                                          for f in B { y[v, A + f]     = b[v, f] }
 *                                          for f in C { y[v, A + B + f] = c[v, f] }
 *                                        }
 *
 * One that nobody reads but another one along the same dimension is made by that (plan_storage.c:
 * classify).  Along rows the parts have kernels of their own, as they have rows of their own; those
 * of one element a row may be one launch (plan_join.c). */
#include "codegen/lower/lower.h"

/* An operand of the concatenation. */
typedef struct {
    const Op *value;
    Space *index_space; /* instead of the joined one */
    const Expr *offset; /* where it begins there; NULL: first */
} Operand;

/* All operands of nested concatenations along one dimension. */
typedef struct {
    VEC(Operand) operands;
    OpList nested; /* concatenations that are parts */
} Operands;

/* Whether concatenation op is an operand of concatenation `outer` along the same dimension, so that
 * the kernel of `outer` can write the operands of both. */
bool cg_concat_continues(const Op *op, const Op *outer) {
    if (op->kind != OP_CONCAT || outer->kind != OP_CONCAT) return false;
    return outer->in[0] == op ? outer->over[0] == op->over[2] : outer->over[1] == op->over[2];
}

/* Collects the operands of concatenation op, and those of nested concatenations along the same
 * dimension. offset: where op begins in the joined dimension, NULL = at 0. */
static void collect_operands(Lower *lo, const Op *op, const Expr *offset, Operands *out) {
    for (int k = 0; k < 2; k++) {
        const Op *x = op->in[k];
        const Expr *first_size = op->over[0]->size;
        Operand operand = {x, op->over[k],
                           !k       ? offset
                           : offset ? expr_add(lo->a, offset, first_size)
                                    : first_size};
        if (cg_info(lo, x)->storage == HOW_INLINE && cg_concat_continues(x, op)) {
            vec_push(lo->a, &out->nested, x);
            collect_operands(lo, x, operand.offset, out);
        } else {
            vec_push(lo->a, &out->operands, operand);
        }
    }
}

/* Emits the loops that compute one operand, or copy it, to its place in the result. row: the row of
 * the loop around it, if all operands have the same rows; NULL = the operand has rows of its own.
 */
static void emit_operand(Gen *g, const Op *op, LBuf *out, const Operand *operand, LReg *row) {
    const Env *env = NULL;
    LReg *idx[MAX_RANK], *i = row;
    int opened = 0;
    for (int k = 0; k < op->type.rank; k++) {
        bool is_joined = op->type.dim[k] == op->over[2];
        Space *dim = is_joined ? operand->index_space : op->type.dim[k];
        if (k || !row) {
            if (k)
                i = cg_open_for(g, dim->size, "f");
            else
                cg_open_parallel(g, dim->size, "v", &i);
            opened++;
        }
        env = cg_bind(g, env, dim, i);
        idx[k] = is_joined && operand->offset
                     ? cg_index(g, L_FN_IADD, i, cg_size(g, operand->offset))
                     : i;
    }
    cg_store(g, out, idx, cg_value(g, operand->value, env));
    while (opened--) cg_close_scope(g);
}

/* Begins a kernel that writes the concatenation; returns the buffer that it writes. */
static LBuf *begin_concat_kernel(Gen *g, Lower *lo, const Op *op, const Operands *p,
                                 const char *suffix) {
    cg_begin_kernel(g, lo, op, suffix);
    LBuf *out = cg_arg_value(g, op, &op->type);
    out->written = true;
    for (int i = 0; i < p->nested.n; i++) cg_record_computed(g, p->nested.v[i]);
    return out;
}

/* Lowers a concatenation of columns to one kernel, which writes all operands row by row. */
static void lower_in_one_kernel(Lower *lo, const Op *op, const Operands *p) {
    Gen gen, *g = &gen;
    LReg *row;
    LBuf *out = begin_concat_kernel(g, lo, op, p, "");
    cg_open_parallel(g, op->type.dim[0]->size, "v", &row);
    for (int i = 0; i < p->operands.n; i++) emit_operand(g, op, out, &p->operands.v[i], row);
    cg_close_scope(g);
    cg_step_kernel(g, op);
}

/* Lowers a concatenation of rows to a kernel for each operand. */
static void lower_in_kernels(Lower *lo, const Op *op, const Operands *p) {
    for (int i = 0; i < p->operands.n; i++) {
        Gen gen, *g = &gen;
        LBuf *out = begin_concat_kernel(g, lo, op, p, arena_printf(lo->a, "_%d", i));
        emit_operand(g, op, out, &p->operands.v[i], NULL);
        cg_step_kernel(g, op);
    }
}

void cg_lower_concat(Lower *lo, const Op *op) {
    Operands p = {0};
    collect_operands(lo, op, NULL, &p);
    bool rows_joined = op->type.dim[0] == op->over[2];
    (rows_joined ? lower_in_kernels : lower_in_one_kernel)(lo, op, &p);
}
