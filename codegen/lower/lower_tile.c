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
} Tiler;

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
    if (!a->part) {
        f = *local = cg_open_for(g, a->space->size, "f");
    } else if (expr_is_const(a->space->size, &n) && n % a->width == 0) {
        *local = cg_open_for(g, width, "j");
        LReg *base = cg_index(g, L_FN_IMUL, a->part, cg_size(g, width));
        f = cg_index(g, L_FN_IADD, base, *local);
    } else {
        const Expr *n_tiles = cg_tile_count(g, a);
        const Expr *len = expr_ceildiv(g->a, a->space->size, n_tiles);
        f = cg_open_chunk(g, a->part, n_tiles, a->space->size, NULL, "f");
        *local = cg_index(g, L_FN_ISUB, f, cg_index(g, L_FN_IMUL, a->part, cg_size(g, len)));
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
void cg_close_outer(Gen *g) {
    int64_t n, most = pass_threshold(g->lo->c, PASS_T_FORM_UNROLL);
    LStmt *st = cg_close(g);
    bool small = st->range == LR_EXTENT && expr_is_const(st->extent, &n) && n <= most;
    if (!st->sched.vector && small) st->sched.unroll = true;
}

void cg_close_axes(Gen *g, const Axes *axes, const Type *t) {
    for (int i = 0; i < axes->n; i++)
        if (type_has(t, axes->v[i].space)) cg_close_outer(g);
}

/* ---- accumulators ------------------------------------------------------------------------ */
/* The array that op is accumulated in. */
static LBuf *accumulators(Tiler *t, const Op *op) {
    int64_t width[MAX_RANK];
    int n = 0;
    if (t->row) return t->row;
    for (int i = 0; i < t->axes->n; i++)
        if (type_has(&op->type, t->axes->v[i].space)) width[n++] = t->axes->v[i].width;
    return cg_local_array(t->g, cg_sum_dtype(op->type.dt), n, width, "acc");
}

/* The index of the accumulator's element: the position in the tile, or the result's own index. */
static LReg *const *index_of(const Tiler *t, const Op *op, const Env *env, LReg *const *local,
                             LReg **idx) {
    if (!t->row) return local;
    for (int i = 0; i < op->type.rank; i++) idx[i] = cg_lookup(env, op->type.dim[i]);
    return idx;
}

/* Emits a store of v to all elements of the accumulator. */
static void fill(Tiler *t, const Op *op, LBuf *acc, double v) {
    Gen *g = t->g;
    LReg *local[MAX_RANK], *idx[MAX_RANK];
    const Env *env = cg_open_axes(g, t->axes, &op->type, t->env, local);
    cg_store(g, acc, index_of(t, op, env, local, idx), cg_const(g, acc->dt, v));
    cg_close_axes(g, t->axes, &op->type);
}

/* Emits the loops that accumulate. */
static void sum_up(Tiler *t, const Reduction *r, LBuf *acc) {
    Gen *g = t->g;
    LReg *local[MAX_RANK], *idx[MAX_RANK];
    const Env *env = t->env;
    int depth = cg_open_reduced(g, r, &env);
    env = cg_open_axes(g, t->axes, &r->op->type, env, local);
    LReg *term = cg_term(g, r, env);
    cg_acc(g, r->red, acc, index_of(t, r->op, env, local, idx), term);
    cg_close_axes(g, t->axes, &r->op->type);
    while (depth-- > 0) cg_close(g);
}

/* Emits a reduction into an accumulator: fill, accumulate, and 0 where nothing was reduced. */
static void make_tile(Tiler *t, const Reduction *r) {
    Gen *g = t->g;
    const Op *op = r->op;
    Tile tile = {.op = op, .scope = g->cur, .acc = accumulators(t, op)};
    fill(t, op, tile.acc, cg_identity(r->red, tile.acc->dt));
    sum_up(t, r, tile.acc);
    LReg *empty = r->red == RED_SUM ? NULL : cg_reduces_nothing(g, r, t->env);
    if (empty) {
        cg_open_if(g, empty);
        fill(t, op, tile.acc, 0);
        cg_close(g);
    }
    for (int i = 0; i < op->type.rank; i++) tile.key[i] = cg_lookup(t->env, op->type.dim[i]);
    for (int i = 0; i < t->axes->n; i++) {
        int at = type_find(&op->type, t->axes->v[i].space);
        if (at >= 0) tile.is_axis[at] = true;
    }
    vec_push(g->a, &g->tiles, tile);
    cg_note_computed(g, op);
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
static bool has_tile(const Gen *g, const Op *op) {
    for (int i = 0; i < g->tiles.n; i++)
        if (g->tiles.v[i].op == op && cg_scope_open(g, g->tiles.v[i].scope)) return true;
    return false;
}

/* Makes the accumulators that op needs at this row, inner ones first. through: the map at whose
 * entry op is read; a gather by it leads back to the row. */
static void visit(Tiler *t, const Op *op, Map *through) {
    Gen *g = t->g;
    if (!cg_is_inline(g, op) || !cg_walk_first(g, op, through)) return;
    Reduction r;
    if (op_has(op, OPT_ELEM)) {
        for (int i = 0; i < op->n_in; i++) visit(t, op->in[i], through);
    } else if (op->kind == OP_GATHER) {
        if (op->map == through) visit(t, op->in[0], NULL);
    } else if (!through && cg_reduction(op, &r)) {
        if (r.map) visit(t, op->in[0], r.map);
        if (!wants_tile(op, t->axes) || has_tile(g, op)) return;
        t->count++;
        t->last = op;
        if (!t->only_count) make_tile(t, &r);
    }
}

void cg_reduce_tiles(Gen *g, const Op *const *roots, int n, const Env *env, const Axes *axes,
                     LBuf *row) {
    Tiler t = {.g = g, .env = env, .axes = axes, .row = row};
    cg_walk_start(g);
    for (int i = 0; i < n; i++) visit(&t, roots[i], NULL);
}

int cg_count_tiles(Gen *g, const Op *const *roots, int n, const Axes *axes, const Op **last) {
    Tiler t = {.g = g, .axes = axes, .only_count = true};
    cg_walk_start(g);
    for (int i = 0; i < n; i++) visit(&t, roots[i], NULL);
    if (last) *last = t.last;
    return t.count;
}

/* ---- reading them ---------------------------------------------------------------------------- */
/* The position in the tile of an index, or NULL. */
static LReg *position(const Gen *g, const LReg *index) {
    for (int i = g->tile_index.n - 1; i >= 0; i--)
        if (g->tile_index.v[i].index == index) return g->tile_index.v[i].local;
    return NULL;
}

/* Whether the accumulator holds op at this index. */
static bool is_at(const Gen *g, const Tile *t, int n, LReg *const *key) {
    for (int i = 0; i < n; i++)
        if (t->is_axis[i] ? !t->whole && !position(g, key[i]) : t->key[i] != key[i]) return false;
    return cg_scope_open(g, t->scope);
}

LReg *cg_from_tile(Gen *g, const Op *op, int n, LReg *const *key) {
    for (int i = g->tiles.n - 1; i >= 0; i--) {
        const Tile *t = &g->tiles.v[i];
        if (t->op != op || !is_at(g, t, n, key)) continue;
        if (t->acc->kind != LB_LOCAL) return cg_load(g, t->acc, key, op->hint);
        LReg *local[MAX_RANK];
        int n_local = 0;
        for (int k = 0; k < n; k++)
            if (t->is_axis[k]) local[n_local++] = t->whole ? key[k] : position(g, key[k]);
        return cg_cast(g, cg_load(g, t->acc, local, op->hint), op->type.dt);
    }
    return NULL;
}
