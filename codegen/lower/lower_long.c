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

/* Whether the chunks of the sum follow the partition of rows among processes. */
static bool has_partition_chunks(const Lower *lo, const Space *rows) {
    return lo->p->partitioned && plan_is_partitioned_space(rows);
}

/* The number of chunks that the rows are split in. */
static const Expr *chunk_count(const Lower *lo, const Space *s) {
    Arena *a = lo->a;
    const Expr *rows = s->size;
    if (has_partition_chunks(lo, s)) return expr_const(a, RT_SUM_CHUNKS);
    const Expr *n = expr_ceildiv(a, rows, expr_const(a, RT_SUM_ROWS));
    return expr_max(a, expr_const(a, 1), expr_min(a, expr_const(a, RT_SUM_CHUNKS), n));
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

/* The reduced space that is split: a node, edge or graph space if there is one. */
static Space *longest_space(const Reduction *r) {
    for (int i = 0; i < r->n_over; i++)
        if (r->over[i]->kind != SP_DIM) return r->over[i];
    return r->over[0];
}

/* Opens loops over the result's dimensions, whose variables idx gets. One of extent 1 (a single
 * head) has no loop: with one in between, a target would not see that a row of sums can stay in
 * registers. */
static const Env *open_result(Gen *g, const Type *t, const Env *env, LReg **idx, int *depth) {
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
static void close_n(Gen *g, int n) {
    while (n-- > 0) cg_close_scope(g);
}

/* Emits a store of v to all elements of the chunk's partial result. */
static void emit_fill(Gen *g, LBuf *buf, LReg *chunk, const Type *t, LReg *v) {
    LReg *idx[MAX_RANK + 1] = {chunk};
    int depth = 0;
    open_result(g, t, NULL, idx + 1, &depth);
    cg_store(g, buf, idx, v);
    close_n(g, depth);
}

/* Opens the loops over what a chunk reduces. */
static const Env *open_reduced(Gen *g, const LongReduction *l, LReg *chunk, const Env *env,
                               int *depth) {
    LBuf *cuts = has_partition_chunks(g->lo, l->rows) ? cg_arg_chunk_bounds(g, l->rows) : NULL;
    LReg *i = cg_open_chunk(g, chunk, l->n_chunks, l->rows->size, cuts, "i");
    env = cg_bind(g, env, l->rows, i);
    *depth = 1;
    for (int k = 0; k < l->r.n_over; k++) {
        if (l->r.over[k] == l->rows) continue;
        env = cg_bind(g, env, l->r.over[k], cg_open_for(g, l->r.over[k]->size, "k"));
        ++*depth;
    }
    return env;
}

/* Emits the sum of a chunk into a scalar: in a local, so that it stays in a register. */
static void emit_scalar_chunk(Gen *g, const LongReduction *l, LBuf *partial, LReg *c,
                              LReg *identity) {
    LBuf *acc = cg_local(g, partial->dt, "acc");
    int depth;
    cg_store(g, acc, NULL, identity);
    const Env *env = open_reduced(g, l, c, NULL, &depth);
    cg_acc(g, l->r.red, acc, NULL, cg_term(g, &l->r, env));
    close_n(g, depth);
    cg_store(g, partial, &c, cg_load(g, acc, NULL, "sum"));
}

/* Emits the sum of a chunk into an array. */
static void emit_array_chunk(Gen *g, const LongReduction *l, LBuf *partial, LReg *c,
                             LReg *identity) {
    const Type *t = &l->r.op->type;
    LReg *idx[MAX_RANK + 1] = {c};
    int depth;
    emit_fill(g, partial, c, t, identity);
    const Env *env = open_reduced(g, l, c, NULL, &depth);
    env = open_result(g, t, env, idx + 1, &depth);
    cg_acc(g, l->r.red, partial, idx, cg_term(g, &l->r, env));
    close_n(g, depth);
}

/* Emits the first kernel: a partial result for each chunk. */
static void emit_partial_kernel(Lower *lo, const LongReduction *l) {
    Gen gen, *g = &gen;
    const Op *op = l->r.op;
    cg_begin_kernel(g, lo, op, "_part");
    cg_set_roots(g, &op, 1);
    const DType dt = cg_sum_dtype(op->type.dt);
    LBuf *partial = cg_arg_partial(g, l->buf, op->id, dt, l->rank, l->dim);
    partial->written = true;
    LReg *identity = cg_const(g, dt, cg_identity(l->r.red, dt)), *c;
    cg_open_parallel(g, l->n_chunks, "c", &c);
    (op->type.rank ? emit_array_chunk : emit_scalar_chunk)(g, l, partial, c, identity);
    cg_close_scope(g);
    vec_push(g->a, &g->k->computes, op);
    cg_step_kernel(g, op);
}

/* Emits the test whether nothing is reduced: max and min over nothing are 0. */
static LReg *emit_is_empty(Gen *g, const LongReduction *l) {
    const Expr *n = expr_const(g->a, 1);
    for (int i = 0; i < l->r.n_over; i++) n = expr_mul(g->a, n, l->r.over[i]->size);
    return cg_index(g, L_FN_IEQ, cg_size(g, n), cg_size(g, expr_const(g->a, 0)));
}

/* Emits the second kernel, which combines the partial results in order. An iteration for each
 * element, so that sums of several results can share a launch (plan_join.c). */
static void emit_final_kernel(Lower *lo, const LongReduction *l) {
    Gen gen, *g = &gen;
    const Op *op = l->r.op;
    const DType dt = cg_sum_dtype(op->type.dt);
    const Expr *dim[] = {l->n_chunks, cg_count(lo, &op->type)};
    cg_begin_kernel(g, lo, op, "");
    LBuf *out = op->type.rank ? cg_arg_flat(g, op) : cg_arg_value(g, op, &op->type);
    out->written = true;
    LBuf *partial = cg_arg_partial(g, l->buf, op->id, dt, 2, dim);
    LReg *idx[2], *identity = cg_const(g, dt, cg_identity(l->r.red, dt));
    cg_open_parallel(g, dim[1], "i", &idx[1]);
    LBuf *acc = cg_local(g, dt, "acc");
    cg_store(g, acc, NULL, identity);
    idx[0] = cg_open_for(g, l->n_chunks, "c");
    cg_acc(g, l->r.red, acc, NULL, cg_load(g, partial, idx, "part"));
    cg_close_scope(g);
    if (l->r.red != RED_SUM) {
        cg_open_if(g, emit_is_empty(g, l));
        cg_store(g, acc, NULL, cg_const(g, dt, 0));
        cg_close_scope(g);
    }
    cg_store(g, out, &idx[1], cg_cast(g, cg_load(g, acc, NULL, "sum"), out->dt));
    cg_close_scope(g)->sched.vector = true;
    cg_step_kernel(g, op);
}

/* Lowers a reduction of many rows to a small result. */
void cg_lower_long(Lower *lo, const Op *op) {
    LongReduction l = {0};
    bool ok = cg_reduction(op, &l.r);
    CTX_HOLDS(lo->c, ok && !l.r.map && l.r.n_over > 0 && op->type.rank < MAX_RANK, op->span);
    l.rows = longest_space(&l.r);
    l.n_chunks = chunk_count(lo, l.rows);
    l.dim[l.rank++] = l.n_chunks;
    for (int i = 0; i < op->type.rank; i++) l.dim[l.rank++] = op->type.dim[i]->size;
    const Expr *count = expr_mul(lo->a, l.n_chunks, cg_count(lo, &op->type));
    const char *name = arena_printf(lo->a, "%s_part", cg_value_name(lo, op));
    l.buf = cg_temp_buf(lo, name, cg_sum_dtype(op->type.dt), count);
    emit_partial_kernel(lo, &l);
    emit_final_kernel(lo, &l);
}
