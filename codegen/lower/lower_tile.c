/* Rows of sums: a reduction whose terms lie contiguous along spaces of its result,
 * rather than along what is reduced: message passing, sums over rows.
 *
 *     acc[H, W] = identity
 *     for the reduced indices:
 *       for h in H, f in W: acc[h, f] += term(.., h, f)
 *     for h in H, f in W: .. acc[h, f] ..
 *
 * So each entry is visited once for all the results of its row.  The accumulators are a
 * local array over the row's spaces where these are constant and not too long, a tile of the
 * last one otherwise, or, where only data knows the width, the row of the result itself. */
#include "codegen/lower/lower.h"

#include <string.h>

/* A walk that makes, or counts, the accumulators that roots need. */
typedef struct {
    Gen *g;
    const Env *env;
    const Axes *axes;
    LBuf *row; /* the accumulators; NULL = local arrays */
    bool only_count;
    int count;
    const Op *last; /* counted */
} TileWalk;

/* ---- axes ------------------------------------------------------------------------------ */
/* The number of tiles of an axis: at least one, so that nothing is divided by zero where the space
 * is empty. */
const Expr *cg_tile_count(Gen *g, const Axis *a) {
    const Expr *n = expr_ceildiv(g->a, a->space->size, expr_const(g->a, a->width));
    return expr_max(g->a, expr_const(g->a, 1), n);
}

/* Opens a loop over an axis, or over a tile of it; *local: the position in the tile. */
static LReg *open_axis(Gen *g, const Axis *a, LReg **local) {
    int64_t n;
    LReg *f;
    const Expr *width = expr_const(g->a, a->width);
    if (!a->tile_number) {
        f = *local = cg_open_for(g, a->space->size, "f");
    } else if (expr_is_const(a->space->size, &n) && n % a->width == 0) {
        *local = cg_open_for(g, width, "j");
        LReg *base = cg_index(g, L_FN_IMUL, a->tile_number, cg_size(g, width));
        f = cg_index(g, L_FN_IADD, base, *local);
    } else {
        const Expr *n_tiles = cg_tile_count(g, a);
        const Expr *len = expr_ceildiv(g->a, a->space->size, n_tiles);
        f = cg_open_chunk(g, a->tile_number, n_tiles, a->space->size, NULL, "f");
        *local = cg_index(g, L_FN_ISUB, f, cg_index(g, L_FN_IMUL, a->tile_number, cg_size(g, len)));
    }
    TileIndex ti = {.index = f, .local = *local};
    vec_push(g->a, &g->tile_index, ti);
    return f;
}

const Env *cg_open_axes(Gen *g, const Axes *axes, const Type *t, const Env *env, LReg **local) {
    int n = 0;
    for (int i = 0; i < axes->n; i++)
        if (type_has(t, axes->v[i].space))
            env = cg_bind(g, env, axes->v[i].space, open_axis(g, &axes->v[i], &local[n++]));
    return env;
}

/* Closes a loop over an outer space. A short one is unrolled, so that local arrays become
 * registers. */
void cg_close_outer_loop(Gen *g) {
    int64_t n, most = pass_threshold(g->lo->c, PASS_T_FORM_UNROLL);
    LStmt *st = cg_close_scope(g);
    bool small = st->range == LR_EXTENT && expr_is_const(st->extent, &n) && n <= most;
    if (!st->sched.vector && small) st->sched.unroll = true;
}

void cg_close_axes(Gen *g, const Axes *axes, const Type *t) {
    for (int i = 0; i < axes->n; i++)
        if (type_has(t, axes->v[i].space)) cg_close_outer_loop(g);
}

/* ---- accumulators ------------------------------------------------------------------------ */
/* The array that op is accumulated in. */
static LBuf *new_accumulator(TileWalk *t, const Op *op) {
    int64_t width[MAX_RANK];
    int n = 0;
    if (t->row) return t->row;
    for (int i = 0; i < t->axes->n; i++)
        if (type_has(&op->type, t->axes->v[i].space)) width[n++] = t->axes->v[i].width;
    return cg_local_array(t->g, cg_sum_dtype(op->type.dt), n, width, "acc");
}

/* The index of the accumulator's element: the position in the tile, or the result's own index. */
static LReg *const *accumulator_index(const TileWalk *t, const Op *op, const Env *env,
                                      LReg *const *local, LReg **idx) {
    if (!t->row) return local;
    for (int i = 0; i < op->type.rank; i++) idx[i] = cg_lookup(env, op->type.dim[i]);
    return idx;
}

/* Emits a store of v to all elements of the accumulator. */
static void emit_fill(TileWalk *t, const Op *op, LBuf *acc, double v) {
    Gen *g = t->g;
    LReg *local[MAX_RANK], *idx[MAX_RANK];
    const Env *env = cg_open_axes(g, t->axes, &op->type, t->env, local);
    cg_store(g, acc, accumulator_index(t, op, env, local, idx), cg_const(g, acc->dt, v));
    cg_close_axes(g, t->axes, &op->type);
}

/* Emits the loops that accumulate. */
static void emit_accumulation(TileWalk *t, const Reduction *r, LBuf *acc) {
    Gen *g = t->g;
    LReg *local[MAX_RANK], *idx[MAX_RANK];
    const Env *env = t->env;
    int depth = cg_open_reduced(g, r, &env);
    env = cg_open_axes(g, t->axes, &r->op->type, env, local);
    LReg *term = cg_term(g, r, env);
    cg_acc(g, r->red, acc, accumulator_index(t, r->op, env, local, idx), term);
    cg_close_axes(g, t->axes, &r->op->type);
    while (depth-- > 0) cg_close_scope(g);
}

/* Emits a reduction into an accumulator: fill, accumulate, and 0 where nothing was reduced. */
static void emit_reduction(TileWalk *t, const Reduction *r) {
    Gen *g = t->g;
    const Op *op = r->op;
    Accumulator tile = {.op = op, .scope = g->scope, .acc = new_accumulator(t, op)};
    emit_fill(t, op, tile.acc, cg_identity(r->red, tile.acc->dt));
    emit_accumulation(t, r, tile.acc);
    LReg *empty = r->red == RED_SUM ? NULL : cg_reduction_is_empty(g, r, t->env);
    if (empty) {
        cg_open_if(g, empty);
        emit_fill(t, op, tile.acc, 0);
        cg_close_scope(g);
    }
    for (int i = 0; i < op->type.rank; i++) tile.key[i] = cg_lookup(t->env, op->type.dim[i]);
    for (int i = 0; i < t->axes->n; i++) {
        int at = type_find(&op->type, t->axes->v[i].space);
        if (at >= 0) tile.is_axis[at] = true;
    }
    vec_push(g->a, &g->accumulators, tile);
    cg_record_computed(g, op);
}

/* ---- which reductions want one ------------------------------------------------------------- */
/* Whether a row of accumulators helps: the terms are contiguous along the last axis, not along what
 * is reduced. */
static bool wants_tile(const Op *op, const Axes *axes) {
    Reduction r;
    const Space *axis = NULL;
    for (int i = 0; i < axes->n; i++)
        if (type_has(&op->type, axes->v[i].space)) axis = axes->v[i].space;
    if (!axis || !cg_reduction(op, &r)) return false;
    if (r.map && r.map->to == axis) return false; /* rows last: one segment per element */
    for (int k = 0; k < op->n_in && !r.map; k++) {
        const Type *x = &op->in[k]->type;
        for (int i = 0; i < r.n_over; i++)
            if (x->rank && x->dim[x->rank - 1] == r.over[i]) return false;
    }
    return true;
}

/* Whether op's accumulator exists. */
static bool is_made(const Gen *g, const Op *op) {
    for (int i = 0; i < g->accumulators.n; i++)
        if (g->accumulators.v[i].op == op && cg_scope_open(g, g->accumulators.v[i].scope))
            return true;
    return false;
}

/* Makes the accumulators that op needs at this row, inner ones first. through: the map at whose
 * entry op is read; a gather by it leads back to the row. */
static void visit_op(TileWalk *t, const Op *op, Map *through) {
    Gen *g = t->g;
    if (!cg_is_inline(g, op) || !cg_walk_visit(g, op, through)) return;
    Reduction r;
    if (op_has(op, OPT_ELEM)) {
        for (int i = 0; i < op->n_in; i++) visit_op(t, op->in[i], through);
    } else if (op->kind == OP_GATHER) {
        if (op->map == through) visit_op(t, op->in[0], NULL);
    } else if (!through && cg_reduction(op, &r)) {
        if (r.map) visit_op(t, op->in[0], r.map);
        if (!wants_tile(op, t->axes) || is_made(g, op)) return;
        t->count++;
        t->last = op;
        if (!t->only_count) emit_reduction(t, &r);
    }
}

void cg_reduce_tiles(Gen *g, const Op *const *roots, int n, const Env *env, const Axes *axes,
                     LBuf *row) {
    TileWalk t = {.g = g, .env = env, .axes = axes, .row = row};
    cg_walk_start(g);
    for (int i = 0; i < n; i++) visit_op(&t, roots[i], NULL);
}

int cg_count_tiles(Gen *g, const Op *const *roots, int n, const Axes *axes, const Op **last) {
    TileWalk t = {.g = g, .axes = axes, .only_count = true};
    cg_walk_start(g);
    for (int i = 0; i < n; i++) visit_op(&t, roots[i], NULL);
    if (last) *last = t.last;
    return t.count;
}

/* ---- reading them ---------------------------------------------------------------------------- */
/* The position in the tile of an index, or NULL. */
static LReg *tile_position(const Gen *g, const LReg *index) {
    for (int i = g->tile_index.n - 1; i >= 0; i--)
        if (g->tile_index.v[i].index == index) return g->tile_index.v[i].local;
    return NULL;
}

/* Whether the accumulator holds op at this index. */
static bool is_accumulator_at(const Gen *g, const Accumulator *t, int n, LReg *const *key) {
    for (int i = 0; i < n; i++)
        if (t->is_axis[i] ? !t->whole_axes && !tile_position(g, key[i]) : t->key[i] != key[i])
            return false;
    return cg_scope_open(g, t->scope);
}

LReg *cg_from_tile(Gen *g, const Op *op, int n, LReg *const *key) {
    for (int i = g->accumulators.n - 1; i >= 0; i--) {
        const Accumulator *t = &g->accumulators.v[i];
        if (t->op != op || !is_accumulator_at(g, t, n, key)) continue;
        if (t->acc->kind != LB_LOCAL) return cg_load(g, t->acc, key, op->hint);
        LReg *local[MAX_RANK];
        int n_local = 0;
        for (int k = 0; k < n; k++)
            if (t->is_axis[k]) local[n_local++] = t->whole_axes ? key[k] : tile_position(g, key[k]);
        return cg_cast(g, cg_load(g, t->acc, local, op->hint), op->type.dt);
    }
    return NULL;
}
