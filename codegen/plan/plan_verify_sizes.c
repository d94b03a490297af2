/* Whether steps fit the sizes of their buffers, which nobody checks at run time: a step's text may
 * have been edited.  What a library's product or the runtime reads and writes follows from the
 * operation that the step is for; so a step whose numbers say something else is wrong. */
#include "codegen/plan/plan.h"
#include "codegen/plan_passes/plan_order.h"
#include "runtime/exec/blocks.h"

/* One dimension of an array: its size, and the distance of neighbours in elements. */
typedef struct {
    const Expr *n, *stride;
} Axis;

bool plan_holds_elements(Arena *a, const PBuf *b, const Expr *n, const Op *op) {
    if (expr_eq(n, b->count)) return true;
    if (!op || !expr_eq(n, type_count(a, &op->type))) return false;
    for (; op->kind == OP_VIEW || plan_is_first_rows(op); op = op->in[0])
        if (expr_eq(type_count(a, &op->in[0]->type), b->count)) return true;
    return false;
}

/* Whether the expression is this number. */
static bool is_number(const Expr *e, int64_t number) {
    int64_t v;
    return expr_is_const(e, &v) && v == number;
}

/* The axis whose neighbours are `distance` apart, one of size 1 first; -1 = there is none. */
static int axis_of_stride(const Axis axis[3], const bool *used, const Expr *distance) {
    int found = -1;
    for (int i = 0; i < 3; i++) {
        bool unit = is_number(axis[i].n, 1);
        if (used[i]) continue;
        if (unit && is_number(axis[i].stride, 0)) return i;
        if (expr_eq(axis[i].stride, distance) && (found < 0 || unit)) found = i;
    }
    return found;
}

/* Whether the axes are those of a dense array, in some order. *count: its number of elements. */
static bool is_dense(Arena *a, const Axis axis[3], const Expr **count) {
    bool used[3] = {false};
    *count = expr_const(a, 1);
    for (int k = 0; k < 3; k++) {
        int i = axis_of_stride(axis, used, *count);
        if (i < 0) return false;
        used[i] = true;
        *count = expr_mul(a, *count, axis[i].n);
    }
    return true;
}

/* Number of multiplications of a contraction: one for each element of the result and each summand.
 */
static const Expr *multiplication_count(Arena *a, const Op *op) {
    const Type *x = &op->in[0]->type;
    const Expr *n = type_count(a, &op->type);
    for (int i = 0; i < x->rank; i++)
        if (!type_has(&op->type, x->dim[i])) n = expr_mul(a, n, x->dim[i]->size);
    return n;
}

/* Whether the product reads this operand as its matrix A, of n_a elements, and the other one as B.
 */
static bool reads_as_a(Arena *a, const Plan *p, const PStep *s, int operand, const Expr *n_a,
                       const Expr *n_b) {
    const Op *x = s->op->in[operand], *y = s->op->in[!operand];
    return expr_eq(n_a, type_count(a, &x->type)) && expr_eq(n_b, type_count(a, &y->type)) &&
           plan_holds_elements(a, p->bufs.v[s->bufs[0]], n_a, x) &&
           plan_holds_elements(a, p->bufs.v[s->bufs[1]], n_b, y);
}

/* What is wrong with the types of a product's buffers; NULL = nothing. */
static const char *gemm_type_misfit(const Plan *p, const PStep *s) {
    DType x = p->bufs.v[s->bufs[0]]->dt, y = p->bufs.v[s->bufs[1]]->dt,
          z = p->bufs.v[s->bufs[2]]->dt;
    if (x != y || (x != DT_F32 && x != DT_F16 && x != DT_BF16))
        return "the operands are not both f32, f16 or bf16";
    return z == x || z == DT_F32 ? NULL : "the result is neither f32 nor of the operands' type";
}

const char *plan_gemm_misfit(Arena *a, const Plan *p, const PStep *s) {
    const PGemm *g = &s->gemm;
    const Axis x[3] = {{g->batch, g->a_batch}, {g->m, g->a_row}, {g->k, g->a_col}},
               y[3] = {{g->batch, g->b_batch}, {g->k, g->b_row}, {g->n, g->b_col}},
               z[3] = {{g->batch, g->c_batch}, {g->m, g->c_row}, {g->n, expr_const(a, 1)}};
    const Expr *n_x, *n_y, *n_z,
        *n = expr_mul(a, expr_mul(a, g->batch, g->m), expr_mul(a, g->n, g->k));
    const char *wrong = gemm_type_misfit(p, s);
    if (wrong) return wrong;
    if (!is_dense(a, x, &n_x) || !is_dense(a, y, &n_y) || !is_dense(a, z, &n_z))
        return "its strides are not those of matrices without gaps";
    /* These four numbers say batch, m, n and k: batch * m * n * k / (batch * m * k) = n .. */
    if (!expr_eq(n, multiplication_count(a, s->op)) || !expr_eq(n_z, type_count(a, &s->op->type)) ||
        !expr_eq(n_z, p->bufs.v[s->bufs[2]]->count) ||
        (!reads_as_a(a, p, s, 0, n_x, n_y) && !reads_as_a(a, p, s, 1, n_x, n_y)))
        return "its sizes are not those of its operation and its buffers";
    return NULL;
}

const char *plan_rank_misfit(Arena *a, const Plan *p, const PStep *s) {
    const PBuf *x = p->bufs.v[s->bufs[0]], *mask = p->bufs.v[s->bufs[1]],
               *ranks = p->bufs.v[s->bufs[2]];
    const Expr *n = type_count(a, &s->op->type);
    if (x->dt != DT_F32 || mask->dt != DT_I1 || ranks->dt != DT_F32)
        return "ranks are f32, of f32 where a mask of i1 holds";
    bool fits = plan_holds_elements(a, x, n, s->op->in[0]) &&
                plan_holds_elements(a, mask, n, s->op->in[1]) && expr_eq(n, ranks->count);
    return fits ? NULL : "a buffer has another size than what is ranked";
}

/* Whether a buffer that the kernel writes has a value for each iteration, or so many for each row
 * of the space. */
static bool writes_rows_of(const Plan *p, const PStep *s) {
    for (int i = 0; i < s->n_bufs; i++) {
        const PBuf *b = p->bufs.v[s->bufs[i]];
        if (s->kernel->bufs.v[i]->written && b->type.rank &&
            expr_eq(b->type.dim[0]->size, s->partition->size) && expr_eq(b->count, s->extent))
            return true;
    }
    return false;
}

/* Whether the kernel is told where sums over rows of the space are cut. */
static bool is_cut_for(const Plan *p, const PStep *s) {
    for (int i = 0; i < s->n_bufs; i++) {
        const PBuf *b = p->bufs.v[s->bufs[i]];
        if (b->kind == PB_CUTS && b->space == s->partition) return true;
    }
    return false;
}

/* Whether the kernel runs as often as the space that processes own has rows, or cuts. */
static bool runs_for_own(const Plan *p, const PStep *s) {
    if (!s->extent) return false;
    if (s->partials) return is_number(s->extent, RT_SUM_CHUNKS) && is_cut_for(p, s);
    return expr_eq(s->extent, s->partition->size) || (!s->balance.n && writes_rows_of(p, s));
}

const char *plan_own_misfit(Arena *a, const Plan *p, const PStep *s) {
    if (!s->partition) return NULL;
    bool fits = runs_for_own(p, s);
    if (fits && !p->scheduled_for) { /* else loops do not show their rows */
        StepAccesses t = plan_step_accesses_where_run(a, p, s);
        const Space *rows = plan_kernel_rows(p, s, &t);
        fits = rows && t.by_chunk == s->partials &&
               (s->partials ? rows == s->partition : expr_eq(rows->size, s->partition->size));
    }
    return fits ? NULL : "processes own other rows than it computes";
}

const Expr *plan_kernel_extent(Arena *a, const LKernel *k) {
    const Expr *n = NULL;
    for (const LStmt *l = k->body; l; l = l->next)
        if (l->kind == L_FOR && l->sched.parallel && !l->sched.is_second)
            n = n ? expr_add(a, n, l->extent) : l->extent;
    return n;
}
