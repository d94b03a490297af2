/* contract as a library matrix product, of f32 or 16-bit operands.
 *
 * The spaces of x, y and the result fall into four groups:
 *     batch: in all three    m: x and result    n: y and result    k: x and y
 * A group whose spaces lie side by side, in one order, in every tensor that has it is
 * one matrix dimension with one stride.  The result's rows may be n: then x and y
 * change places.  Where a group is scattered, or no stride of an operand is 1, the
 * operand is first copied in the order batch, m, k (or k, n). */
#include "codegen/lower/lower.h"

#include <string.h>

/* Spaces that form one dimension of the product. */
typedef struct {
    int n;
    Space *s[MAX_RANK];
} GroupKernel;

/* The four dimensions of the product. */
typedef struct {
    GroupKernel batch, m, n, k;
} SpaceGroups;

/* Adds a space. */
static void add_space(GroupKernel *g, Space *s) {
    g->s[g->n++] = s;
}

/* Divides the spaces of the operands and the result into batch, m, n and k. */
static SpaceGroups classify_spaces(const Type *x, const Type *y, const Type *c) {
    SpaceGroups g = {0};
    for (int i = 0; i < c->rank; i++) {
        bool in_x = type_has(x, c->dim[i]), in_y = type_has(y, c->dim[i]);
        add_space(in_x && in_y ? &g.batch : in_x ? &g.m : &g.n, c->dim[i]);
    }
    for (int i = 0; i < x->rank; i++)
        if (!type_has(c, x->dim[i])) add_space(&g.k, x->dim[i]);
    return g;
}

/* The number of elements of a group. */
static const Expr *group_size(Arena *a, const GroupKernel *g) {
    const Expr *e = expr_const(a, 1);
    for (int i = 0; i < g->n; i++) e = expr_mul(a, e, g->s[i]->size);
    return e;
}

/* Whether the group's spaces are adjacent dimensions of t, in their order. */
static bool is_contiguous(const Type *t, const GroupKernel *g) {
    int at = g->n ? type_find(t, g->s[0]) : 0;
    for (int i = 0; i < g->n; i++)
        if (at + i >= t->rank || t->dim[at + i] != g->s[i]) return false;
    return true;
}

/* The stride of the group in t. */
static const Expr *group_stride(Arena *a, const Type *t, const GroupKernel *g) {
    const Expr *e = expr_const(a, 1);
    if (g->n == 0) return expr_const(a, 0);
    for (int i = type_find(t, g->s[g->n - 1]) + 1; i < t->rank; i++)
        e = expr_mul(a, e, t->dim[i]->size);
    return e;
}

/* Whether the group's last space is the last dimension of t. */
static bool ends_type(const Type *t, const GroupKernel *g) {
    return t->rank > 0 && g->n > 0 && t->dim[t->rank - 1] == g->s[g->n - 1];
}

/* Whether a node, edge or graph space is in the group. */
static bool has_long(const GroupKernel *g) {
    for (int i = 0; i < g->n; i++)
        if (g->s[i]->kind != SP_DIM) return true;
    return false;
}

/* Whether the group has at most one element. */
static bool is_unit(Arena *a, const GroupKernel *g) {
    int64_t n;
    return expr_is_const(group_size(a, g), &n) && n <= 1;
}

/* Whether x and y change places: the result's last space is one of x's. */
static bool swaps_operands(const Op *op) {
    const Type *c = &op->type;
    return c->rank > 0 && !type_has(&op->in[1]->type, c->dim[c->rank - 1]);
}

/* Whether the contraction can be a library call, by its types. */
bool cg_gemm_fits(Lower *lo, const Op *op) {
    if (op->kind != OP_CONTRACT || cg_sum_dtype(op->type.dt) != DT_F32) return false;
    bool sw = swaps_operands(op);
    const Type *x = &op->in[sw]->type, *y = &op->in[!sw]->type, *c = &op->type;
    SpaceGroups g = classify_spaces(x, y, c);
    if (is_unit(lo->a, &g.m) || is_unit(lo->a, &g.n) || is_unit(lo->a, &g.k)) return false;
    if (has_long(&g.batch) || (has_long(&g.k) && c->dt != DT_F32)) return false;
    return is_contiguous(c, &g.batch) && is_contiguous(c, &g.m) && is_contiguous(c, &g.n) &&
           ends_type(c, &g.n);
}

/* ---- operands in the order that the library wants -------------------------------------- */
/* An operand as the library reads it. */
typedef struct {
    Type type; /* dims in the order of storage */
    int buf;
} MatrixOperand;

/* Whether an operand of this type can be read as it is: each group is contiguous and one has stride
 * 1. */
static bool is_usable(const Type *t, const GroupKernel *batch, const GroupKernel *p,
                      const GroupKernel *q) {
    return is_contiguous(t, batch) && is_contiguous(t, p) && is_contiguous(t, q) &&
           (ends_type(t, p) || ends_type(t, q));
}

/* The type with the spaces in the order of the groups. */
static Type ordered_type(const Type *t, const GroupKernel *a, const GroupKernel *b,
                         const GroupKernel *c) {
    Type r = {.dt = t->dt, .layout = LAYOUT_DENSE};
    const GroupKernel *all[] = {a, b, c};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < all[k]->n; i++) r.dim[r.rank++] = all[k]->s[i];
    return r;
}

/* Writes a copy of op in the layout `want`, which may have more dimensions (it is then broadcast),
 * to a new buffer. of: the op that the copy is made for, for names. */
int cg_materialize_as(Lower *lo, const Op *op, const Type *want, const Op *owner,
                      const char *suffix) {
    Gen gen, *g = &gen;
    const char *name = arena_printf(lo->a, "%s%s", cg_value_name(lo, owner), suffix);
    int buf = cg_temp_buf(lo, name, want->dt, cg_count(lo, want));
    lo->p->bufs.v[buf]->type = *want;
    cg_begin_kernel(g, lo, owner, suffix);
    const Expr *dim[MAX_RANK];
    LReg *idx[MAX_RANK];
    const Env *env = NULL;
    for (int i = 0; i < want->rank; i++) dim[i] = want->dim[i]->size;
    LBuf *out = cg_arg_partial(g, buf, owner->id, want->dt, want->rank, dim);
    out->written = true;
    for (int i = 0; i < want->rank; i++) {
        if (i == 0)
            cg_open_parallel(g, dim[0], "v", &idx[0]);
        else
            idx[i] = cg_open_for(g, dim[i], "f");
        env = cg_bind(g, env, want->dim[i], idx[i]);
    }
    cg_store(g, out, idx, cg_value(g, op, env));
    while (g->scope != g->root) cg_close_scope(g);
    cg_step_kernel(g, owner);
    return buf;
}

/* The operand as it is stored, or a copy in a usable layout. */
static MatrixOperand make_operand(Lower *lo, const Op *op, const GroupKernel *batch,
                                  const GroupKernel *p, const GroupKernel *q, const Op *owner,
                                  const char *suffix) {
    if (is_usable(&op->type, batch, p, q))
        return (MatrixOperand){.type = op->type, .buf = cg_buf(lo, op)};
    Type want = ordered_type(&op->type, batch, p, q);
    return (MatrixOperand){.type = want, .buf = cg_materialize_as(lo, op, &want, owner, suffix)};
}

/* Whether t has the group's spaces in that order. */
static bool has_order(const Type *t, const GroupKernel *g) {
    return is_contiguous(t, g);
}

/* Takes k in the order of y, if then y needs no copy and x needs one anyway. Otherwise k has the
 * order of x. */
static void choose_k_order(SpaceGroups *g, const Type *x, const Type *y) {
    if (has_order(x, &g->k) && has_order(y, &g->k)) return;
    GroupKernel k = {0};
    for (int i = 0; i < y->rank; i++)
        for (int j = 0; j < g->k.n; j++)
            if (g->k.s[j] == y->dim[i]) add_space(&k, y->dim[i]);
    if (!is_usable(x, &g->batch, &g->m, &g->k) && is_usable(y, &g->batch, &k, &g->n)) g->k = k;
}

/* Lowers a contraction to a library call, with copies of operands where needed. */
void cg_lower_gemm(Lower *lo, const Op *op) {
    Arena *a = lo->a;
    bool sw = swaps_operands(op);
    const Op *x = op->in[sw], *y = op->in[!sw];
    const Type *c = &op->type;
    SpaceGroups g = classify_spaces(&x->type, &y->type, c);
    choose_k_order(&g, &x->type, &y->type);
    MatrixOperand A = make_operand(lo, x, &g.batch, &g.m, &g.k, op, "_a");
    MatrixOperand B = make_operand(lo, y, &g.batch, &g.k, &g.n, op, "_b");
    PStep *s = cg_step(lo, PS_GEMM, op, 3);
    s->bufs[0] = A.buf;
    s->bufs[1] = B.buf;
    s->bufs[2] = cg_buf(lo, op);
    s->gemm = (PGemm){
        .batch = group_size(a, &g.batch),
        .m = group_size(a, &g.m),
        .n = group_size(a, &g.n),
        .k = group_size(a, &g.k),
        .a_batch = group_stride(a, &A.type, &g.batch),
        .a_row = group_stride(a, &A.type, &g.m),
        .a_col = group_stride(a, &A.type, &g.k),
        .b_batch = group_stride(a, &B.type, &g.batch),
        .b_row = group_stride(a, &B.type, &g.k),
        .b_col = group_stride(a, &B.type, &g.n),
        .c_batch = group_stride(a, c, &g.batch),
        .c_row = group_stride(a, c, &g.m),
        .long_k = has_long(&g.k),
    };
}
