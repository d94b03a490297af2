/* Reductions over nodes, edges or graphs into a small result: a loss, a metric, the
 * gradient of a bias.
 *
 *     for c in n_chunks parallel         for c in n_chunks
 *       partial[c, :] = identity           y[:] += partial[c, :]
 *       for i in chunk c
 *         partial[c, :] += term(i, :)
 *
 * The number of chunks depends on the size alone and partials are added in order, so
 * the result has the same bits at any number of threads. */
#include "codegen/lower/lower.h"

#include "runtime/exec/blocks.h"

/* Whether the sum's chunks follow the partition of rows among processes (distributed training), so
 * that each process sums whole chunks. */
static bool has_partition_chunks(const Lower *lo, const Space *rows) {
    return lo->p->partitioned && plan_is_partitioned_space(rows);
}

/* The number of chunks that the rows of a long sum are split into; it depends on the size alone, so
 * the result has the same bits for any number of threads. */
static const Expr *chunk_count(const Lower *lo, const Space *s) {
    Arena *a = lo->a;
    const Expr *rows = s->size;
    if (has_partition_chunks(lo, s)) return expr_const(a, RT_SUM_CHUNKS);
    const Expr *n_chunks = expr_ceildiv(a, rows, expr_const(a, RT_SUM_ROWS));
    return expr_max(a, expr_const(a, 1), expr_min(a, expr_const(a, RT_SUM_CHUNKS), n_chunks));
}

/* A reduction in two steps. */
typedef struct {
    Reduction r;
    Space *rows; /* the reduced space that is split */
    const Expr *n_chunks;
    int buf; /* partial[c, dims of the result] */
    int rank;
    const Expr *dim[MAX_RANK];
} LongReduction;

/* The summed dimension that is split into chunks: nodes, edges or graphs if there is one of these.
 */
static Space *split_space(const Reduction *r) {
    for (int i = 0; i < r->n_over; i++)
        if (r->over[i]->kind != SP_DIM) return r->over[i];
    return r->over[0];
}

/* Opens loops over the result's dimensions; idx gets their variables, *depth counts them. A
 * dimension of size 1 (a single head) has no loop: with one, a target would not see that a row of
 * sums can stay in registers. */
static const Env *open_result_loops(Gen *g, const Type *t, const Env *env, LReg **idx, int *depth) {
    for (int k = 0; k < t->rank; k++) {
        int64_t n = 0;
        bool single = expr_is_const(t->dim[k]->size, &n) && n == 1;
        idx[k] = single ? cg_size(g, expr_const(g->a, 0)) : cg_open_for(g, t->dim[k]->size, "f");
        env = cg_bind(g, env, t->dim[k], idx[k]);
        *depth += !single;
    }
    return env;
}

/* Closes n loops. */
static void close_loops(Gen *g, int n) {
    while (n-- > 0) cg_close_scope(g);
}

/* Emits a store of v to all elements of a chunk's partial result. */
static void emit_fill_partial(Gen *g, LBuf *buf, LReg *chunk, const Type *t, LReg *v) {
    LReg *idx[MAX_RANK + 1] = {chunk};
    int depth = 0;
    open_result_loops(g, t, NULL, idx + 1, &depth);
    cg_store(g, buf, idx, v);
    close_loops(g, depth);
}

/* Opens the loops over the elements that one chunk sums; *depth counts them. */
static const Env *open_chunk_loops(Gen *g, const LongReduction *reduction, LReg *chunk,
                                   const Env *env, int *depth) {
    LBuf *bounds = has_partition_chunks(g->lo, reduction->rows)
                       ? cg_arg_chunk_bounds(g, reduction->rows)
                       : NULL;
    LReg *i = cg_open_chunk(g, chunk, reduction->n_chunks, reduction->rows->size, bounds, "i");
    env = cg_bind(g, env, reduction->rows, i);
    *depth = 1;
    for (int k = 0; k < reduction->r.n_over; k++) {
        if (reduction->r.over[k] == reduction->rows) continue;
        env =
            cg_bind(g, env, reduction->r.over[k], cg_open_for(g, reduction->r.over[k]->size, "k"));
        ++*depth;
    }
    return env;
}

/* Emits the sum of a chunk into one number, accumulated in a register and stored once. */
static void emit_scalar_chunk(Gen *g, const LongReduction *reduction, LBuf *partial, LReg *chunk,
                              LReg *identity) {
    LBuf *acc = cg_local(g, partial->dt, "acc");
    int depth;
    cg_store(g, acc, NULL, identity);
    const Env *env = open_chunk_loops(g, reduction, chunk, NULL, &depth);
    cg_acc(g, reduction->r.red, acc, NULL, cg_term(g, &reduction->r, env));
    close_loops(g, depth);
    cg_store(g, partial, &chunk, cg_load(g, acc, NULL, "sum"));
}

/* Emits the sum of a chunk into an array, accumulated in memory. */
static void emit_array_chunk(Gen *g, const LongReduction *reduction, LBuf *partial, LReg *chunk,
                             LReg *identity) {
    const Type *t = &reduction->r.op->type;
    LReg *idx[MAX_RANK + 1] = {chunk};
    int depth;
    emit_fill_partial(g, partial, chunk, t, identity);
    const Env *env = open_chunk_loops(g, reduction, chunk, NULL, &depth);
    env = open_result_loops(g, t, env, idx + 1, &depth);
    cg_acc(g, reduction->r.red, partial, idx, cg_term(g, &reduction->r, env));
    close_loops(g, depth);
}

/* Emits the first kernel of a long reduction: a partial result for each chunk. */
static void emit_partial_kernel(Lower *lo, const LongReduction *reduction) {
    Gen gen, *g = &gen;
    const Op *op = reduction->r.op;
    cg_begin_kernel(g, lo, op, "_part");
    cg_set_roots(g, &op, 1);
    const DType dt = cg_sum_dtype(op->type.dt);
    LBuf *partial = cg_arg_partial(g, reduction->buf, op->id, dt, reduction->rank, reduction->dim);
    partial->written = true;
    LReg *identity = cg_const(g, dt, cg_identity(reduction->r.red, dt)), *chunk;
    cg_open_parallel(g, reduction->n_chunks, "c", &chunk);
    (op->type.rank ? emit_array_chunk : emit_scalar_chunk)(g, reduction, partial, chunk, identity);
    cg_close_scope(g);
    vec_push(g->a, &g->k->computes, op);
    cg_step_kernel(g, op);
}

/* Emits the test whether the reduction is over nothing: maxima and minima are 0 then. */
static LReg *emit_is_empty(Gen *g, const LongReduction *reduction) {
    const Expr *n = expr_const(g->a, 1);
    for (int i = 0; i < reduction->r.n_over; i++) n = expr_mul(g->a, n, reduction->r.over[i]->size);
    return cg_index(g, L_FN_IEQ, cg_size(g, n), cg_size(g, expr_const(g->a, 0)));
}

/* Emits the second kernel of a long reduction: it combines the partial results in their order. It
 * has an iteration for each result element, so that such kernels of several reductions can share a
 * launch (plan_join.c). */
static void emit_final_kernel(Lower *lo, const LongReduction *reduction) {
    Gen gen, *g = &gen;
    const Op *op = reduction->r.op;
    const DType dt = cg_sum_dtype(op->type.dt);
    const Expr *dim[] = {reduction->n_chunks, cg_count(lo, &op->type)};
    cg_begin_kernel(g, lo, op, "");
    LBuf *out = op->type.rank ? cg_arg_flat(g, op) : cg_arg_value(g, op, &op->type);
    out->written = true;
    LBuf *partial = cg_arg_partial(g, reduction->buf, op->id, dt, 2, dim);
    LReg *idx[2], *identity = cg_const(g, dt, cg_identity(reduction->r.red, dt));
    cg_open_parallel(g, dim[1], "i", &idx[1]);
    LBuf *acc = cg_local(g, dt, "acc");
    cg_store(g, acc, NULL, identity);
    idx[0] = cg_open_for(g, reduction->n_chunks, "c");
    cg_acc(g, reduction->r.red, acc, NULL, cg_load(g, partial, idx, "part"));
    cg_close_scope(g);
    if (reduction->r.red != RED_SUM) {
        cg_open_if(g, emit_is_empty(g, reduction));
        cg_store(g, acc, NULL, cg_const(g, dt, 0));
        cg_close_scope(g);
    }
    cg_store(g, out, &idx[1], cg_cast(g, cg_load(g, acc, NULL, "sum"), out->dt));
    cg_close_scope(g)->sched.vector = true;
    cg_step_kernel(g, op);
}

void cg_lower_long(Lower *lo, const Op *op) {
    LongReduction reduction = {0};
    bool ok = cg_reduction(op, &reduction.r);
    CTX_HOLDS(lo->c, ok && !reduction.r.map && reduction.r.n_over > 0 && op->type.rank < MAX_RANK,
              op->span);
    reduction.rows = split_space(&reduction.r);
    reduction.n_chunks = chunk_count(lo, reduction.rows);
    reduction.dim[reduction.rank++] = reduction.n_chunks;
    for (int i = 0; i < op->type.rank; i++) reduction.dim[reduction.rank++] = op->type.dim[i]->size;
    const Expr *count = expr_mul(lo->a, reduction.n_chunks, cg_count(lo, &op->type));
    const char *name = arena_printf(lo->a, "%s_part", cg_value_name(lo, op));
    reduction.buf = cg_temp_buf(lo, name, cg_sum_dtype(op->type.dt), count);
    emit_partial_kernel(lo, &reduction);
    emit_final_kernel(lo, &reduction);
}
