/* Vector loops: a `sched.vector` loop becomes whole vectors plus a masked rest.
 *
 * The same body is emitted for both, so an element is computed by the same
 * operations wherever it falls and chunk borders never show in the result.
 * Constant short loops are emitted vector by vector: local arrays indexed by the
 * loop variable then live in registers (the accumulators of a sparse product).
 *
 * A sum over the loop into one address is kept per lane and folded after it as
 *     ((l0+l8)+(l4+l12)) + ..   halves onto halves, always in this order. */
#include "codegen/cpu/cpu.h"

/* ---- reductions across lanes ------------------------------------------------------------ */

LLVMValueRef cpu_identity(CgFn *f, RedKind r, DType dt, int w) {
    Cg *g = f->g;
    LLVMTypeRef t = cpu_type(g, dt);
    LLVMValueRef one;
    if (dtype_is_float(dt))
        one = LLVMConstReal(t, r == RED_SUM   ? -0.0
                               : r == RED_MAX ? -__builtin_inf()
                                              : __builtin_inf());
    else if (r == RED_SUM || dt == DT_I1)
        one = LLVMConstInt(t, r == RED_MIN, 0);
    else {
        int64_t low = dt == DT_I32 ? INT32_MIN : INT64_MIN;
        one = LLVMConstInt(t, (unsigned long long)(r == RED_MAX ? low : -(low + 1)), 1);
    }
    return cpu_splat(g, one, w);
}

/* Reduces the lanes to one value: the upper half is combined with the lower half until one lane is
 * left. */
LLVMValueRef cpu_reduce_lanes(CgFn *f, RedKind r, DType dt, LLVMValueRef v) {
    Cg *g = f->g;
    for (int w = cpu_width(v) / 2; w >= 1; w /= 2) {
        LLVMValueRef lo[64], hi[64], none = LLVMGetPoison(LLVMTypeOf(v));
        for (int i = 0; i < w; i++) {
            lo[i] = LLVMConstInt(g->i32, (unsigned)i, 0);
            hi[i] = LLVMConstInt(g->i32, (unsigned)(i + w), 0);
        }
        LLVMValueRef x =
            LLVMBuildShuffleVector(g->b, v, none, LLVMConstVector(lo, (unsigned)w), "");
        LLVMValueRef y =
            LLVMBuildShuffleVector(g->b, v, none, LLVMConstVector(hi, (unsigned)w), "");
        v = cpu_combine(f, r, dt, x, y);
    }
    return LLVMBuildExtractElement(g->b, v, LLVMConstInt(g->i32, 0, 0), "");
}

/* Whether the statements load or store b. */
static bool is_loaded_or_stored(const LStmt *s, const LBuf *b) {
    for (; s; s = s->next) {
        if ((s->kind == L_LOAD || s->kind == L_STORE) && s->buf == b) return true;
        if (loop_has_body(s) && is_loaded_or_stored(s->body, b)) return true;
    }
    return false;
}

/* Whether the loop accumulates into one element that it does not access otherwise: a vector
 * accumulator can hold it. */
static bool may_stay_in_vector(const LStmt *loop, const LStmt *s) {
    return loop_is_at_invariant_index(loop, s) && !loop_declares(loop->body, s->buf) &&
           !is_loaded_or_stored(loop->body, s->buf);
}

/* Finds the accumulations that vector accumulators hold, and initialises these. */
static void init_accumulators(CgFn *f, const LStmt *loop, const LStmt *s, CgAccumulator *fold,
                              int *n) {
    Cg *g = f->g;
    for (; s; s = s->next) {
        if (loop_has_body(s)) init_accumulators(f, loop, s->body, fold, n);
        if (s->kind != L_ACC || *n == CPU_ACCUMULATORS_MAX || !may_stay_in_vector(loop, s))
            continue;
        LLVMValueRef at = cpu_alloca(f, cpu_vector_type(cpu_type(g, s->buf->dt), f->lanes), 1);
        LLVMBuildStore(g->b, cpu_identity(f, s->red, s->buf->dt, f->lanes), at);
        fold[(*n)++] = (CgAccumulator){s, at};
    }
}

/* Behind the loop: reduces each accumulator and combines it with the element in memory. */
static void finish_accumulators(CgFn *f, const LStmt *loop, CgAccumulator *fold, int n, int w) {
    Cg *g = f->g;
    for (int i = 0; i < n; i++) {
        const LStmt *s = fold[i].acc;
        LLVMTypeRef t = cpu_vector_type(cpu_type(g, s->buf->dt), w);
        LLVMValueRef v = LLVMBuildLoad2(g->b, t, fold[i].at, "");
        if (!cpu_defer_reduction(f, loop, s, v))
            cpu_acc_value(f, s, cpu_reduce_lanes(f, s->red, s->buf->dt, v));
    }
}

/* ---- the loop --------------------------------------------------------------------------- */

/* A mask with the first `left` of the current lanes set, or all if there are fewer. */
LLVMValueRef cpu_first_lanes_mask(CgFn *f, LLVMValueRef left) {
    Cg *g = f->g;
    LLVMValueRef n = cpu_splat(g, LLVMBuildTrunc(g->b, left, g->i32, ""), f->lanes);
    return LLVMBuildICmp(g->b, LLVMIntULT, cpu_iota(g, g->i32, f->lanes), n, "");
}

/* Emits the loop's body for one vector of iterations, which begins at i. mask: the lanes that are
 * active, NULL = all; is_var: lane 0 is the first element of a whole vector of each local array, so
 * accesses to these are aligned. */
static void emit_body(CgFn *f, const LStmt *s, LLVMValueRef i, LLVMValueRef mask, bool is_var) {
    f->mask = f->tail_mask = mask;
    f->reg[s->var->id] = (CgVal){i, SHAPE_CONSECUTIVE, is_var};
    cpu_block(f, s->body);
    f->mask = f->tail_mask = NULL;
}

/* Emits the vectors of a constant loop one after the other. */
static void emit_constant_loop(CgFn *f, const LStmt *s, int64_t n) {
    Cg *g = f->g;
    for (int64_t i = 0; i < n; i += f->lanes) {
        LLVMValueRef left = i + f->lanes <= n ? NULL : cpu_first_lanes_mask(f, cpu_i64(g, n - i));
        emit_body(f, s, cpu_i64(g, i), left, true);
    }
}

/* Emits a loop over whole vectors, then the rest with a mask. */
static void emit_counted_loop(CgFn *f, const LStmt *s, LLVMValueRef lo, LLVMValueRef hi) {
    Cg *g = f->g;
    LLVMValueRef n = LLVMBuildNSWSub(g->b, hi, lo, "");
    LLVMValueRef none = LLVMBuildICmp(g->b, LLVMIntSLT, n, cpu_i64(g, 0), "");
    n = LLVMBuildSelect(g->b, none, cpu_i64(g, 0), n, ""); /* a chunk may lie behind the end */
    hi = LLVMBuildNSWAdd(g->b, lo, n, "");
    LLVMValueRef constant = LLVMBuildAnd(g->b, n, cpu_i64(g, -(int64_t)f->lanes), "");
    LLVMValueRef rest_at = LLVMBuildNSWAdd(g->b, lo, constant, "");
    CgLoop l = cpu_loop_begin(f, lo, rest_at, f->lanes);
    emit_body(f, s, l.i, NULL, false);
    cpu_loop_end(f, &l);
    LLVMBasicBlockRef rest = cpu_new_block(f, "rest"), end = cpu_new_block(f, "end");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, rest_at, hi, ""), rest, end);
    LLVMPositionBuilderAtEnd(g->b, rest);
    emit_body(f, s, rest_at, cpu_first_lanes_mask(f, LLVMBuildSub(g->b, hi, rest_at, "")), false);
    LLVMBuildBr(g->b, end);
    LLVMMoveBasicBlockAfter(end, LLVMGetInsertBlock(g->b));
    LLVMPositionBuilderAtEnd(g->b, end);
}

/* Emits a vector loop (sched.lanes), after the accumulators for its reductions and before what
 * reduces them. */
void cpu_vector_loop(CgFn *f, const LStmt *s) {
    int64_t n = 0;
    bool constant = s->sched.unroll_vectors && loop_extent(s, &n);
    LLVMValueRef lo = NULL, hi = NULL;
    if (!constant) cpu_range(f, s, &lo, &hi);
    CgAccumulator fold[CPU_ACCUMULATORS_MAX];
    int n_fold = 0;
    f->lanes = s->sched.lanes;
    init_accumulators(f, s, s->body, fold, &n_fold);
    f->accumulator = fold, f->n_accumulators = n_fold;
    if (constant)
        emit_constant_loop(f, s, n);
    else
        emit_counted_loop(f, s, lo, hi);
    f->lanes = 1, f->accumulator = NULL, f->n_accumulators = 0;
    finish_accumulators(f, s, fold, n_fold, s->sched.lanes);
}
