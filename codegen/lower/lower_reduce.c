/* Reductions inside a kernel: segment, reduce and contract are one thing here, a
 * monoid over some index spaces or over the entries of a segment.
 *
 * Three forms:
 *   inline    acc = identity;  for the reduced indices: acc += term       one scalar
 *   tile      (lower_tile.c) a row of results at once
 *   long      (lower_long.c) many rows into a small result: chunks, then their sum */
#include "codegen/lower/lower.h"

#include <math.h>

/* ---- what is reduced ----------------------------------------------------------------- */
bool cg_reduction(const Op *op, Reduction *out) {
    *out = (Reduction){.op = op, .red = op->red};
    switch (op->kind) {
    case OP_SEGMENT:
        out->map = op->map;
        return true;
    case OP_REDUCE:
        for (int i = 0; i < op->n_over; i++) out->over[out->n_over++] = op->over[i];
        return true;
    case OP_CONTRACT: {
        const Type *x = &op->in[0]->type;
        out->red = RED_SUM;
        for (int i = 0; i < x->rank; i++)
            if (!type_has(&op->type, x->dim[i])) out->over[out->n_over++] = x->dim[i];
        return true;
    }
    default:
        return false;
    }
}

/* Whether the size of the space depends on the data: nodes, edges, graphs. */
static bool is_data_sized(const Space *s) {
    return s->kind != SP_DIM;
}

/* Whether op reduces many rows to a small result, which takes two kernels (lower_long.c). */
bool cg_is_long_reduction(const Op *op) {
    Reduction reduction;
    if (!cg_reduction(op, &reduction) || reduction.map) return false;
    bool is_over_rows = false;
    for (int i = 0; i < reduction.n_over; i++) is_over_rows |= is_data_sized(reduction.over[i]);
    for (int i = 0; i < op->type.rank; i++)
        if (is_data_sized(op->type.dim[i])) return false;
    return is_over_rows;
}

/* The type in which a reduction with result type dt accumulates: f32 for 16-bit types, whose sums
 * would stop growing at the 256th equal term. */
DType cg_sum_dtype(DType dt) {
    return dt == DT_F16 || dt == DT_BF16 ? DT_F32 : dt;
}

/* Emits the term that the reduction adds up, at the indices of env; of a contraction the product of
 * its operands. */
LReg *cg_term(Gen *g, const Reduction *reduction, const Env *env) {
    DType dt = cg_sum_dtype(reduction->op->type.dt);
    LReg *x = cg_cast(g, cg_value(g, reduction->op->in[0], env), dt);
    if (reduction->op->kind != OP_CONTRACT) return x;
    LReg *arg[] = {x, cg_cast(g, cg_value(g, reduction->op->in[1], env), dt)};
    return cg_let(g, L_FN_OP, OP_MUL, dt, "t", 2, arg);
}

double cg_identity(RedKind red, DType dt) {
    if (red == RED_SUM) return 0;
    double big = dtype_is_float(dt) ? (double)INFINITY : dt == DT_I64 ? 0x1p63 : 0x1p31;
    if (dt == DT_I1) return red == RED_MIN;
    if (red == RED_MAX) return -big;
    return dtype_is_float(dt) ? big : dt == DT_I64 ? 0x1.fffffffffffffp62 : big - 1;
}

/* Opens the loops over what is reduced and binds their indices in *env; returns how many loops. */
int cg_open_reduced(Gen *g, const Reduction *reduction, const Env **env) {
    if (reduction->map) {
        LReg *at = cg_lookup(*env, reduction->map->to);
        LReg *e = cg_open_segment(g, reduction->map, at, "e");
        *env = cg_bind(g, *env, reduction->map->from, e);
        return 1;
    }
    for (int i = 0; i < reduction->n_over; i++)
        *env = cg_bind(g, *env, reduction->over[i], cg_open_for(g, reduction->over[i]->size, "k"));
    return reduction->n_over;
}

/* Emits the test whether nothing is reduced (a register of type i1); NULL where that cannot be. */
LReg *cg_reduction_is_empty(Gen *g, const Reduction *reduction, const Env *env) {
    LReg *one = cg_size(g, expr_const(g->a, 1)), *zero = cg_size(g, expr_const(g->a, 0));
    if (reduction->map) {
        LBuf *ptr = cg_arg_map(g, reduction->map, LB_MAP_PTR);
        LReg *at = cg_lookup(env, reduction->map->to), *next = cg_index(g, L_FN_IADD, at, one);
        return cg_index(g, L_FN_IEQ, cg_load(g, ptr, &at, "lo"), cg_load(g, ptr, &next, "hi"));
    }
    const Expr *n = expr_const(g->a, 1);
    for (int i = 0; i < reduction->n_over; i++) n = expr_mul(g->a, n, reduction->over[i]->size);
    int64_t c;
    if (expr_is_const(n, &c) && c > 0) return NULL;
    return cg_index(g, L_FN_IEQ, cg_size(g, n), zero);
}

/* The scope in which a reduction is computed: the innermost one that defines its result's indices
 * (but for dimension `except`), though not outside the parallel loop, since statements there run in
 * every call. */
static Scope *reduction_scope(Gen *g, const Op *op, const Env *env, int except) {
    LReg *key[MAX_RANK];
    int n_keys = 0;
    for (int i = 0; i < op->type.rank; i++)
        if (i != except) key[n_keys++] = cg_lookup(env, op->type.dim[i]);
    Scope *s = cg_innermost_scope(g, n_keys, key);
    if (g->parallel_scope && s->depth < g->parallel_scope->depth &&
        cg_scope_open(g, g->parallel_scope))
        s = g->parallel_scope;
    return s;
}

/* ---- inline ------------------------------------------------------------------------------ */
/* Emits a reduction into a scalar register, in the middle of a kernel. */
LReg *cg_reduce_inline(Gen *g, const Op *op, const Env *env) {
    Reduction reduction;
    bool ok = cg_reduction(op, &reduction);
    CTX_HOLDS(g->lo->c, ok, op->span);
    DType dt = cg_sum_dtype(op->type.dt);
    Scope *outer_scope = g->scope;
    g->scope = reduction_scope(g, op, env, -1);
    LBuf *acc = cg_local(g, dt, "acc");
    cg_store(g, acc, NULL, cg_const(g, dt, cg_identity(reduction.red, dt)));
    const Env *inner = env;
    int depth = cg_open_reduced(g, &reduction, &inner);
    cg_acc(g, reduction.red, acc, NULL, cg_term(g, &reduction, inner));
    while (depth-- > 0) cg_close_scope(g);
    LReg *empty = reduction.red == RED_SUM ? NULL : cg_reduction_is_empty(g, &reduction, env);
    if (empty) {
        cg_open_if(g, empty);
        cg_store(g, acc, NULL, cg_const(g, dt, 0));
        cg_close_scope(g);
    }
    LReg *v = cg_cast(g, cg_load(g, acc, NULL, op->hint), op->type.dt);
    g->scope = outer_scope;
    return v;
}

LReg *cg_argmax_inline(Gen *g, const Op *op, const Env *env) {
    DType dt = op->in[0]->type.dt;
    Scope *outer_scope = g->scope;
    g->scope = reduction_scope(g, op, env, -1);
    LBuf *best = cg_local(g, dt, "best"), *at = cg_local(g, DT_I32, "at");
    cg_store(g, best, NULL, cg_const(g, dt, cg_identity(RED_MAX, dt)));
    cg_store(g, at, NULL, cg_const(g, DT_I32, 0));
    LReg *i = cg_open_for(g, op->over[0]->size, "k");
    LReg *x = cg_value(g, op->in[0], cg_bind(g, env, op->over[0], i));
    LReg *pair[] = {cg_load(g, best, NULL, "b"), x};
    cg_open_if(g, cg_let(g, L_FN_OP, OP_LT, DT_I1, "is", 2, pair));
    cg_store(g, best, NULL, x);
    cg_store(g, at, NULL, cg_cast(g, i, DT_I32));
    cg_close_scope(g);
    cg_close_scope(g)->sched = (LSched){0};
    LReg *v = cg_load(g, at, NULL, op->hint);
    g->scope = outer_scope;
    return v;
}
