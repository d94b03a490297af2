/* Whether steps fit the sizes of their buffers, which nobody checks at run time: a step's text may
 * have been edited.  What a library's product or the runtime reads and writes follows from the
 * operation that the step is for; so a step whose numbers say something else is wrong. */
#include "codegen/plan/plan.h"
#include "codegen/plan_passes/plan_order.h"
#include "runtime/exec/blocks.h"

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

/* What is wrong with the types of a product's buffers; NULL = nothing. */
static const char *gemm_type_misfit(const Plan *p, const PStep *s) {
    DType x = p->bufs.v[s->bufs[0]]->dt, y = p->bufs.v[s->bufs[1]]->dt,
          z = p->bufs.v[s->bufs[2]]->dt;
    if (x != y || (x != DT_F32 && x != DT_F16 && x != DT_BF16))
        return "the operands are not both f32, f16 or bf16";
    return z == x || z == DT_F32 ? NULL : "the result is neither f32 nor of the operands' type";
}

/* Whether two products are of matrices of the same sizes. */
static bool same_sizes(const PGemm *x, const PGemm *y) {
    return expr_eq(x->batch, y->batch) && expr_eq(x->m, y->m) && expr_eq(x->n, y->n) &&
           expr_eq(x->k, y->k) && x->long_k == y->long_k;
}

/* Whether two products read and write elements at the same places. */
static bool same_strides(const PGemm *x, const PGemm *y) {
    return expr_eq(x->a_batch, y->a_batch) && expr_eq(x->a_row, y->a_row) &&
           expr_eq(x->a_col, y->a_col) && expr_eq(x->b_batch, y->b_batch) &&
           expr_eq(x->b_row, y->b_row) && expr_eq(x->b_col, y->b_col) &&
           expr_eq(x->c_batch, y->c_batch) && expr_eq(x->c_row, y->c_row);
}

/* Whether the product's three buffers have as many elements as its matrices, which lie as types x
 * and y say. */
static bool fits_buffers(Arena *a, const Plan *p, const PStep *s, const Type *x, const Type *y) {
    PBuf *const *b = p->bufs.v;
    return plan_holds_elements(a, b[s->bufs[0]], type_count(a, x), cg_gemm_operand(s->op, 0)) &&
           plan_holds_elements(a, b[s->bufs[1]], type_count(a, y), cg_gemm_operand(s->op, 1)) &&
           expr_eq(type_count(a, &s->op->type), b[s->bufs[2]]->count);
}

const char *plan_gemm_misfit(Arena *a, const Plan *p, const PStep *s, const Type *x,
                             const Type *y) {
    PGemm is;
    const char *wrong = gemm_type_misfit(p, s);
    if (wrong) return wrong;
    if (!cg_gemm_sizes(a, s->op, x, y, &is))
        return "its operands do not lie as a product can read them";
    if (!same_sizes(&is, &s->gemm) || !fits_buffers(a, p, s, x, y))
        return "its sizes are not those of its operation and its buffers";
    return same_strides(&is, &s->gemm)
               ? NULL
               : "its strides are not those of the values that its buffers hold";
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
