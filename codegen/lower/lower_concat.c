/* Concatenations: every part is computed, or copied, where it belongs.
 *
 *     y = concat(a, concat(b, c))        for v in N parallel {
 *       along columns                      for f in A { y[v, f]         = a[v, f] }
 *                                          for f in B { y[v, A + f]     = b[v, f] }
 *                                          for f in C { y[v, A + B + f] = c[v, f] }
 *                                        }
 *
 * One that nobody reads but another one along the same dimension is made by that (plan_form.c:
 * classify).  Along rows the parts have kernels of their own, as they have rows of their own; those
 * of one element a row may be one launch (plan_join.c). */
#include "codegen/lower/lower.h"

/* An operand of the concatenation. */
typedef struct {
    const Op *value;
    Space *space;   /* instead of the joined one */
    const Expr *at; /* where it begins there; NULL: first */
} Part;

/* All operands of nested concatenations along one dimension. */
typedef struct {
    VEC(Part) parts;
    OpList inner; /* concatenations that are parts */
} Parts;

/* Whether `user` concatenates op with more along the same dimension, so that one kernel can write
 * both. */
bool cg_concat_continues(const Op *op, const Op *user) {
    if (op->kind != OP_CONCAT || user->kind != OP_CONCAT) return false;
    return user->in[0] == op ? user->over[0] == op->over[2] : user->over[1] == op->over[2];
}

/* Collects the operands, with those of nested concatenations. */
static void collect(Lower *lo, const Op *op, const Expr *at, Parts *p) {
    for (int k = 0; k < 2; k++) {
        const Op *x = op->in[k];
        const Expr *n = op->over[0]->size;
        Part part = {x, op->over[k], !k ? at : at ? expr_add(lo->a, at, n) : n};
        if (cg_info(lo, x)->how == HOW_INLINE && cg_concat_continues(x, op)) {
            vec_push(lo->a, &p->inner, x);
            collect(lo, x, part.at, p);
        } else {
            vec_push(lo->a, &p->parts, part);
        }
    }
}

/* Emits the loops that write an operand to its place. row: the row of the loop around it, if the
 * operand has the same rows. */
static void write_part(Gen *g, const Op *op, LBuf *out, const Part *p, LReg *row) {
    const Env *env = NULL;
    LReg *idx[MAX_RANK], *i = row;
    int opened = 0;
    for (int k = 0; k < op->type.rank; k++) {
        bool joined = op->type.dim[k] == op->over[2];
        Space *s = joined ? p->space : op->type.dim[k];
        if (k || !row) {
            if (k)
                i = cg_open_for(g, s->size, "f");
            else
                cg_open_parallel(g, s->size, "v", &i);
            opened++;
        }
        env = cg_bind(g, env, s, i);
        idx[k] = joined && p->at ? cg_index(g, L_FN_IADD, i, cg_size(g, p->at)) : i;
    }
    cg_store(g, out, idx, cg_value(g, p->value, env));
    while (opened--) cg_close(g);
}

/* Begins a kernel that writes the concatenation. */
static LBuf *begin(Gen *g, Lower *lo, const Op *op, const Parts *p, const char *suffix) {
    cg_gen_init(g, lo, op, suffix);
    LBuf *out = cg_arg_value(g, op, &op->type);
    out->written = true;
    for (int i = 0; i < p->inner.n; i++) cg_note_computed(g, p->inner.v[i]);
    return out;
}

/* One kernel writes all operands, row by row. */
static void by_rows(Lower *lo, const Op *op, const Parts *p) {
    Gen gen, *g = &gen;
    LReg *row;
    LBuf *out = begin(g, lo, op, p, "");
    cg_open_parallel(g, op->type.dim[0]->size, "v", &row);
    for (int i = 0; i < p->parts.n; i++) write_part(g, op, out, &p->parts.v[i], row);
    cg_close(g);
    cg_step_kernel(g, op);
}

/* A kernel for each operand: they have rows of their own. */
static void by_parts(Lower *lo, const Op *op, const Parts *p) {
    for (int i = 0; i < p->parts.n; i++) {
        Gen gen, *g = &gen;
        LBuf *out = begin(g, lo, op, p, arena_printf(lo->a, "_%d", i));
        write_part(g, op, out, &p->parts.v[i], NULL);
        cg_step_kernel(g, op);
    }
}

/* Lowers a concatenation. */
void cg_lower_concat(Lower *lo, const Op *op) {
    Parts p = {0};
    collect(lo, op, NULL, &p);
    bool rows_joined = op->type.dim[0] == op->over[2];
    (rows_joined ? by_parts : by_rows)(lo, op, &p);
}
