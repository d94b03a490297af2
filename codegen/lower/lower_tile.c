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
/* The number of tiles of an axis, at least 1, so that nothing is divided by zero where the
 * dimension is empty. */
const Expr *cg_tile_count(Gen *g, const Axis *a) {
    const Expr *n = expr_ceildiv(g->a, a->space->size, expr_const(g->a, a->width));
    return expr_max(g->a, expr_const(g->a, 1), n);
}

/* Opens a loop over an axis (a dimension that the row runs along) or over one tile of it; returns
 * the index, *position gets the position in the tile. */
static LReg *open_axis_loop(Gen *g, const Axis *a, LReg **position) {
    int64_t extent;
    LReg *index;
    const Expr *width = expr_const(g->a, a->width);
    if (!a->tile_number) {
        index = *position = cg_open_for(g, a->space->size, "f");
    } else if (expr_is_const(a->space->size, &extent) && extent % a->width == 0) {
        *position = cg_open_for(g, width, "j");
        LReg *base = cg_index(g, L_FN_IMUL, a->tile_number, cg_size(g, width));
        index = cg_index(g, L_FN_IADD, base, *position);
    } else {
        const Expr *n_tiles = cg_tile_count(g, a);
        const Expr *len = expr_ceildiv(g->a, a->space->size, n_tiles);
        index = cg_open_chunk(g, a->tile_number, n_tiles, a->space->size, NULL, "f");
        *position =
            cg_index(g, L_FN_ISUB, index, cg_index(g, L_FN_IMUL, a->tile_number, cg_size(g, len)));
    }
    TileIndex ti = {.index = index, .local = *position};
    vec_push(g->a, &g->tile_index, ti);
    return index;
}

/* Opens loops over the axes that type t has and binds their indices; `positions` gets the positions
 * in the tiles. */
const Env *cg_open_axes(Gen *g, const Axes *axes, const Type *t, const Env *env, LReg **positions) {
    int n = 0;
    for (int i = 0; i < axes->n; i++)
        if (type_has(t, axes->v[i].space))
            env =
                cg_bind(g, env, axes->v[i].space, open_axis_loop(g, &axes->v[i], &positions[n++]));
    return env;
}

/* Closes the innermost open loop, one over an outer dimension. A short one is unrolled, so that
 * local arrays become registers. */
void cg_close_outer_loop(Gen *g) {
    int64_t extent, max_unrolled = pass_threshold(g->lo->c, PASS_T_LOWER_UNROLL);
    LStmt *st = cg_close_scope(g);
    bool small =
        st->range == LR_EXTENT && expr_is_const(st->extent, &extent) && extent <= max_unrolled;
    if (!st->sched.vector && small) st->sched.unroll = true;
}

void cg_close_axes(Gen *g, const Axes *axes, const Type *t) {
    for (int i = 0; i < axes->n; i++)
        if (type_has(t, axes->v[i].space)) cg_close_outer_loop(g);
}

/* ---- accumulators ------------------------------------------------------------------------ */
/* The buffer in which reduction op is accumulated: the row of a result, or a new local array of a
 * tile. */
static LBuf *new_accumulator(TileWalk *walk, const Op *op) {
    int64_t width[MAX_RANK];
    int n = 0;
    if (walk->row) return walk->row;
    for (int i = 0; i < walk->axes->n; i++)
        if (type_has(&op->type, walk->axes->v[i].space)) width[n++] = walk->axes->v[i].width;
    return cg_local_array(walk->g, cg_sum_dtype(op->type.dt), n, width, "acc");
}

/* The index of the accumulator's element: the position in the tile, or the result's own index where
 * the accumulator is a row of it. */
static LReg *const *accumulator_index(const TileWalk *walk, const Op *op, const Env *env,
                                      LReg *const *local, LReg **idx) {
    if (!walk->row) return local;
    for (int i = 0; i < op->type.rank; i++) idx[i] = cg_lookup(env, op->type.dim[i]);
    return idx;
}

/* Emits a store of v to all elements of the accumulator. */
static void emit_fill_tile(TileWalk *walk, const Op *op, LBuf *acc, double v) {
    Gen *g = walk->g;
    LReg *local[MAX_RANK], *idx[MAX_RANK];
    const Env *env = cg_open_axes(g, walk->axes, &op->type, walk->env, local);
    cg_store(g, acc, accumulator_index(walk, op, env, local, idx), cg_const(g, acc->dt, v));
    cg_close_axes(g, walk->axes, &op->type);
}

/* Emits the loops over what is reduced, and in them those over the tile's columns, which
 * accumulate. */
static void emit_accumulation(TileWalk *walk, const Reduction *reduction, LBuf *acc) {
    Gen *g = walk->g;
    LReg *local[MAX_RANK], *idx[MAX_RANK];
    const Env *env = walk->env;
    int depth = cg_open_reduced(g, reduction, &env);
    env = cg_open_axes(g, walk->axes, &reduction->op->type, env, local);
    LReg *term = cg_term(g, reduction, env);
    cg_acc(g, reduction->red, acc, accumulator_index(walk, reduction->op, env, local, idx), term);
    cg_close_axes(g, walk->axes, &reduction->op->type);
    while (depth-- > 0) cg_close_scope(g);
}

/* Emits a reduction into a new accumulator: identity, accumulation, and 0 where nothing was
 * reduced. */
static void emit_reduction(TileWalk *walk, const Reduction *reduction) {
    Gen *g = walk->g;
    const Op *op = reduction->op;
    Accumulator accumulator = {.op = op, .scope = g->scope, .acc = new_accumulator(walk, op)};
    emit_fill_tile(walk, op, accumulator.acc, cg_identity(reduction->red, accumulator.acc->dt));
    emit_accumulation(walk, reduction, accumulator.acc);
    LReg *empty = reduction->red == RED_SUM ? NULL : cg_reduction_is_empty(g, reduction, walk->env);
    if (empty) {
        cg_open_if(g, empty);
        emit_fill_tile(walk, op, accumulator.acc, 0);
        cg_close_scope(g);
    }
    for (int i = 0; i < op->type.rank; i++)
        accumulator.key[i] = cg_lookup(walk->env, op->type.dim[i]);
    for (int i = 0; i < walk->axes->n; i++) {
        int at = type_find(&op->type, walk->axes->v[i].space);
        if (at >= 0) accumulator.is_axis[at] = true;
    }
    vec_push(g->a, &g->accumulators, accumulator);
    cg_record_computed(g, op);
}

/* ---- which reductions want one ------------------------------------------------------------- */
/* Whether op is a reduction whose terms are contiguous along the last axis, rather than along what
 * is reduced: then a row of accumulators helps. */
static bool is_tile_reduction(const Op *op, const Axes *axes) {
    Reduction reduction;
    const Space *axis = NULL;
    for (int i = 0; i < axes->n; i++)
        if (type_has(&op->type, axes->v[i].space)) axis = axes->v[i].space;
    if (!axis || !cg_reduction(op, &reduction)) return false;
    if (reduction.map && reduction.map->to == axis)
        return false; /* rows last: one segment per element */
    for (int k = 0; k < op->n_in && !reduction.map; k++) {
        const Type *x = &op->in[k]->type;
        for (int i = 0; i < reduction.n_over; i++)
            if (x->rank && x->dim[x->rank - 1] == reduction.over[i]) return false;
    }
    return true;
}

/* Whether op has an accumulator in an open scope. */
static bool has_accumulator(const Gen *g, const Op *op) {
    for (int i = 0; i < g->accumulators.n; i++)
        if (g->accumulators.v[i].op == op && cg_scope_open(g, g->accumulators.v[i].scope))
            return true;
    return false;
}

/* Computes (or only counts) the accumulators that op needs at this row, inner ones first. map: op
 * is read at entries of this map's segments; a gather by it leads back to the row. NULL = at the
 * row. */
static void visit_reductions(TileWalk *walk, const Op *op, Map *map) {
    Gen *g = walk->g;
    if (!cg_is_inline(g, op) || !cg_walk_visit(g, op, map)) return;
    Reduction reduction;
    if (op_has(op, OPT_ELEM)) {
        for (int i = 0; i < op->n_in; i++) visit_reductions(walk, op->in[i], map);
    } else if (op->kind == OP_GATHER) {
        if (op->map == map) visit_reductions(walk, op->in[0], NULL);
    } else if (!map && cg_reduction(op, &reduction)) {
        if (reduction.map) visit_reductions(walk, op->in[0], reduction.map);
        if (!is_tile_reduction(op, walk->axes) || has_accumulator(g, op)) return;
        walk->count++;
        walk->last = op;
        if (!walk->only_count) emit_reduction(walk, &reduction);
    }
}

/* Emits the reductions that the roots need at env, which binds all dimensions but the axes. row:
 * the buffer that the only one is accumulated in, NULL = local arrays. */
void cg_reduce_tiles(Gen *g, const Op *const *roots, int n, const Env *env, const Axes *axes,
                     LBuf *row) {
    TileWalk walk = {.g = g, .env = env, .axes = axes, .row = row};
    cg_walk_start(g);
    for (int i = 0; i < n; i++) visit_reductions(&walk, roots[i], NULL);
}

/* The number of reductions for which cg_reduce_tiles() would emit loops; *last: the last one. */
int cg_count_tiles(Gen *g, const Op *const *roots, int n, const Axes *axes, const Op **last) {
    TileWalk walk = {.g = g, .axes = axes, .only_count = true};
    cg_walk_start(g);
    for (int i = 0; i < n; i++) visit_reductions(&walk, roots[i], NULL);
    if (last) *last = walk.last;
    return walk.count;
}

/* ---- reading them ---------------------------------------------------------------------------- */
/* The position in its tile of an index; NULL = the index is no loop over a tile. */
static LReg *tile_position(const Gen *g, const LReg *index) {
    for (int i = g->tile_index.n - 1; i >= 0; i--)
        if (g->tile_index.v[i].index == index) return g->tile_index.v[i].local;
    return NULL;
}

/* Whether the accumulator holds its op at these n indices. */
static bool is_accumulator_at(const Gen *g, const Accumulator *accumulator, int n,
                              LReg *const *key) {
    for (int i = 0; i < n; i++)
        if (accumulator->is_axis[i] ? !accumulator->whole_axes && !tile_position(g, key[i])
                                    : accumulator->key[i] != key[i])
            return false;
    return cg_scope_open(g, accumulator->scope);
}

/* The register with op at these n indices, loaded from its accumulator; NULL = it has none here. */
LReg *cg_from_tile(Gen *g, const Op *op, int n, LReg *const *key) {
    for (int i = g->accumulators.n - 1; i >= 0; i--) {
        const Accumulator *accumulator = &g->accumulators.v[i];
        if (accumulator->op != op || !is_accumulator_at(g, accumulator, n, key)) continue;
        if (accumulator->acc->kind != LB_LOCAL) return cg_load(g, accumulator->acc, key, op->hint);
        LReg *positions[MAX_RANK];
        int n_local = 0;
        for (int k = 0; k < n; k++)
            if (accumulator->is_axis[k])
                positions[n_local++] = accumulator->whole_axes ? key[k] : tile_position(g, key[k]);
        return cg_cast(g, cg_load(g, accumulator->acc, positions, op->hint), op->type.dt);
    }
    return NULL;
}
