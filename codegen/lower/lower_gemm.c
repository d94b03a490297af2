/* contract as a library matrix product, of f32 or 16-bit operands.
 *
 * The spaces of x, y and the result fall into four groups:
 *     batch: in all three    m: x and result    n: y and result    k: x and y
 * A group whose spaces lie side by side, in one order, in every tensor that has it is
 * one matrix dimension with one stride.  The result's rows may be n: then x and y
 * change places.  Where a group is scattered, or no stride of an operand is 1, the
 * operand is first copied in the order batch, m, k (or k, n). */
#include "codegen/lower/lower.h"
#include "passes/rewrite.h"

#include <string.h>

/* Spaces that form one dimension of the product. */
typedef struct {
    int n;
    Space *s[MAX_RANK];
} DimGroup;

/* The four dimensions of the product. */
typedef struct {
    DimGroup batch, m, n, k;
} SpaceGroups;

/* Adds a space. */
static void add_space(DimGroup *g, Space *s) {
    g->s[g->n++] = s;
}

/* Divides the dimensions of a contraction c = x . y into the four groups of a batched matrix
 * product: batch (in all three), m (x and c), n (y and c) and k (summed over). */
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

/* The number of elements of a dimension group, the product of its sizes. */
static const Expr *group_size(Arena *a, const DimGroup *g) {
    const Expr *e = expr_const(a, 1);
    for (int i = 0; i < g->n; i++) e = expr_mul(a, e, g->s[i]->size);
    return e;
}

/* Whether the group's dimensions are neighbours in type t, in the group's order: they then form one
 * matrix dimension. */
static bool is_contiguous(const Type *t, const DimGroup *g) {
    int at = g->n ? type_find(t, g->s[0]) : 0;
    for (int i = 0; i < g->n; i++)
        if (at + i >= t->rank || t->dim[at + i] != g->s[i]) return false;
    return true;
}

/* The stride in t, in elements, of the matrix dimension that the group forms; 0 for an empty group.
 */
static const Expr *group_stride(Arena *a, const Type *t, const DimGroup *g) {
    const Expr *e = expr_const(a, 1);
    if (g->n == 0) return expr_const(a, 0);
    for (int i = type_find(t, g->s[g->n - 1]) + 1; i < t->rank; i++)
        e = expr_mul(a, e, t->dim[i]->size);
    return e;
}

/* Whether the group's last dimension is the innermost one of t, so that its stride is 1. */
static bool is_innermost(const Type *t, const DimGroup *g) {
    return t->rank > 0 && g->n > 0 && t->dim[t->rank - 1] == g->s[g->n - 1];
}

/* Whether the group has a dimension of nodes, edges or graphs, whose size the data decide. */
static bool has_data_sized_space(const DimGroup *g) {
    for (int i = 0; i < g->n; i++)
        if (g->s[i]->kind != SP_DIM) return true;
    return false;
}

/* Whether the group has at most one element at compile time. */
static bool is_unit(Arena *a, const DimGroup *g) {
    int64_t n;
    return expr_is_const(group_size(a, g), &n) && n <= 1;
}

/* Whether x and y change places, so that the result's rows are those of y: the innermost dimension
 * of the result belongs to x. */
static bool swaps_operands(const Op *op) {
    const Type *c = &op->type;
    return c->rank > 0 && !type_has(&op->in[1]->type, c->dim[c->rank - 1]);
}

/* Whether the contraction can be a library's matrix product, judged by types alone. */
bool cg_gemm_fits(Lower *lo, const Op *op) {
    if (op->kind != OP_CONTRACT || cg_sum_dtype(op->type.dt) != DT_F32) return false;
    bool swapped = swaps_operands(op);
    const Type *x = &op->in[swapped]->type, *y = &op->in[!swapped]->type, *c = &op->type;
    SpaceGroups g = classify_spaces(x, y, c);
    if (is_unit(lo->a, &g.m) || is_unit(lo->a, &g.n) || is_unit(lo->a, &g.k)) return false;
    if (has_data_sized_space(&g.batch) || (has_data_sized_space(&g.k) && c->dt != DT_F32))
        return false;
    return is_contiguous(c, &g.batch) && is_contiguous(c, &g.m) && is_contiguous(c, &g.n) &&
           is_innermost(c, &g.n);
}

/* ---- operands in the order that the library wants -------------------------------------- */
/* An operand as the library reads it. */
typedef struct {
    Type type; /* dims in the order of storage */
    int buf;
} MatrixOperand;

/* Whether the library can read an operand of type t without a copy: each of its groups is one
 * matrix dimension, and the first or second has stride 1. */
static bool is_readable_layout(const Type *t, const DimGroup *batch, const DimGroup *first,
                               const DimGroup *second) {
    return is_contiguous(t, batch) && is_contiguous(t, first) && is_contiguous(t, second) &&
           (is_innermost(t, first) || is_innermost(t, second));
}

/* The type with the dimensions of three groups in that order, which the library can read. */
static Type ordered_type(const Type *t, const DimGroup *a, const DimGroup *b, const DimGroup *c) {
    Type ordered = {.dt = t->dt, .layout = LAYOUT_DENSE};
    const DimGroup *all[] = {a, b, c};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < all[k]->n; i++) ordered.dim[ordered.rank++] = all[k]->s[i];
    return ordered;
}

int cg_materialize_as(Lower *lo, const Op *op, const Type *layout, const Op *owner,
                      const char *suffix) {
    Gen gen, *g = &gen;
    const char *name = arena_printf(lo->a, "%s%s", cg_value_name(lo, owner), suffix);
    int buf = cg_temp_buf(lo, name, layout->dt, cg_count(lo, layout));
    lo->p->bufs.v[buf]->type = *layout;
    cg_begin_kernel(g, lo, owner, suffix);
    const Expr *dim[MAX_RANK];
    LReg *idx[MAX_RANK];
    const Env *env = NULL;
    for (int i = 0; i < layout->rank; i++) dim[i] = layout->dim[i]->size;
    LBuf *out = cg_arg_partial(g, buf, owner->id, layout->dt, layout->rank, dim);
    out->written = true;
    for (int i = 0; i < layout->rank; i++) {
        if (i == 0)
            cg_open_parallel(g, dim[0], "v", &idx[0]);
        else
            idx[i] = cg_open_for(g, dim[i], "f");
        env = cg_bind(g, env, layout->dim[i], idx[i]);
    }
    cg_store(g, out, idx, cg_value(g, op, env));
    while (g->scope != g->root) cg_close_scope(g);
    cg_step_kernel(g, owner);
    return buf;
}

/* The operand as the library reads it: its own buffer, or that of a copy where its layout does not
 * fit. first, second: its row and column groups. */
static MatrixOperand find_or_copy_operand(Lower *lo, const Op *op, const DimGroup *batch,
                                          const DimGroup *first, const DimGroup *second,
                                          const Op *owner, const char *suffix) {
    if (is_readable_layout(&op->type, batch, first, second))
        return (MatrixOperand){.type = op->type, .buf = cg_buf(lo, op)};
    Type want = ordered_type(&op->type, batch, first, second);
    pass_declined(
        lo->pc, owner->span, "lower-kernels",
        "'%s' is not read where it lies by the product '%s', but copied: rows and columns "
        "are mixed, or none is contiguous",
        pass_named(op), pass_named(owner));
    return (MatrixOperand){.type = want, .buf = cg_materialize_as(lo, op, &want, owner, suffix)};
}

/* Whether t has the group's dimensions in the group's order. */
static bool is_in_order(const Type *t, const DimGroup *g) {
    return is_contiguous(t, g);
}

/* Orders the summed dimensions as y has them, if y then needs no copy and x needs one in any case.
 * Otherwise they keep the order of x. */
static void choose_k_group_order(SpaceGroups *g, const Type *x, const Type *y) {
    if (is_in_order(x, &g->k) && is_in_order(y, &g->k)) return;
    DimGroup k = {0};
    for (int i = 0; i < y->rank; i++)
        for (int j = 0; j < g->k.n; j++)
            if (g->k.s[j] == y->dim[i]) add_space(&k, y->dim[i]);
    if (!is_readable_layout(x, &g->batch, &g->m, &g->k) &&
        is_readable_layout(y, &g->batch, &k, &g->n))
        g->k = k;
}

const Op *cg_gemm_operand(const Op *op, int i) {
    return op->in[i ^ swaps_operands(op)];
}

bool cg_gemm_sizes(Arena *a, const Op *op, const Type *x, const Type *y, PGemm *to) {
    const Type *c = &op->type;
    SpaceGroups g = classify_spaces(x, y, c);
    if (!is_readable_layout(x, &g.batch, &g.m, &g.k) ||
        !is_readable_layout(y, &g.batch, &g.k, &g.n))
        return false;
    *to = (PGemm){
        .batch = group_size(a, &g.batch),
        .m = group_size(a, &g.m),
        .n = group_size(a, &g.n),
        .k = group_size(a, &g.k),
        .a_batch = group_stride(a, x, &g.batch),
        .a_row = group_stride(a, x, &g.m),
        .a_col = group_stride(a, x, &g.k),
        .b_batch = group_stride(a, y, &g.batch),
        .b_row = group_stride(a, y, &g.k),
        .b_col = group_stride(a, y, &g.n),
        .c_batch = group_stride(a, c, &g.batch),
        .c_row = group_stride(a, c, &g.m),
        .long_k = has_data_sized_space(&g.k),
    };
    return true;
}

/* Lowers a contraction to a step that calls a library's matrix product, after kernels that copy
 * operands whose layout does not fit. */
void cg_lower_gemm(Lower *lo, const Op *op) {
    const Op *x = cg_gemm_operand(op, 0), *y = cg_gemm_operand(op, 1);
    SpaceGroups g = classify_spaces(&x->type, &y->type, &op->type);
    choose_k_group_order(&g, &x->type, &y->type);
    MatrixOperand A = find_or_copy_operand(lo, x, &g.batch, &g.m, &g.k, op, "_a");
    MatrixOperand B = find_or_copy_operand(lo, y, &g.batch, &g.k, &g.n, op, "_b");
    PStep *s = cg_step(lo, PS_GEMM, op, 3);
    s->bufs[0] = A.buf;
    s->bufs[1] = B.buf;
    s->bufs[2] = cg_buf(lo, op);
    bool ok = cg_gemm_sizes(lo->a, op, &A.type, &B.type, &s->gemm);
    CTX_HOLDS(lo->c, ok, op->span);
}
