/* Reductions inside a kernel: segment, reduce and contract are one thing here, a
 * monoid over some index spaces or over the entries of a segment.
 *
 * Three forms:
 *   inline    acc = identity;  for the reduced indices: acc += term       one scalar
 *   tile      t[W] = identity;  for the reduced: for f in W: t[f] += term(f)
 *             when the term is contiguous along f, a space of the result, rather
 *             than along a reduced one: message passing, sums over rows
 *   long      (lower_long.c) many rows into a small result: chunks, then their sum */
#include "codegen/lower.h"

#include <assert.h>
#include <math.h>

/* ---- what is reduced ----------------------------------------------------------------- */
bool cg_reduction(const Op *op, Reduction *r) {
    *r = (Reduction){.op = op, .red = op->red};
    switch (op->kind) {
    case OP_SEGMENT:
        r->map = op->map;
        return true;
    case OP_REDUCE:
        for (int i = 0; i < op->n_over; i++) r->over[r->n_over++] = op->over[i];
        return true;
    case OP_CONTRACT: {
        const Type *x = &op->in[0]->type;
        r->red = RED_SUM;
        for (int i = 0; i < x->rank; i++)
            if (!type_has(&op->type, x->dim[i])) r->over[r->n_over++] = x->dim[i];
        return true;
    }
    default:
        return false;
    }
}

static bool is_long(const Space *s) {
    return s->kind != SP_DIM;
}

bool cg_reduction_long(const Op *op) {
    Reduction r;
    if (!cg_reduction(op, &r) || r.map) return false;
    bool over = false;
    for (int i = 0; i < r.n_over; i++) over |= is_long(r.over[i]);
    for (int i = 0; i < op->type.rank; i++)
        if (is_long(op->type.dim[i])) return false;
    return over;
}

LReg *cg_term(Gen *g, const Reduction *r, const Env *env) {
    LReg *x = cg_value(g, r->op->in[0], env);
    if (r->op->kind != OP_CONTRACT) return x;
    LReg *arg[] = {x, cg_value(g, r->op->in[1], env)};
    return cg_let(g, L_FN_OP, OP_MUL, r->op->type.dt, "t", 2, arg);
}

double cg_identity(RedKind red, DType dt) {
    if (red == RED_SUM) return 0;
    double big = dtype_is_float(dt) ? (double)INFINITY : dt == DT_I64 ? 0x1p63 : 0x1p31;
    if (dt == DT_I1) return red == RED_MIN;
    if (red == RED_MAX) return -big;
    return dtype_is_float(dt) ? big : dt == DT_I64 ? 0x1.fffffffffffffp62 : big - 1;
}

/* Opens the loops over what is reduced; returns how many. */
static int open_reduced(Gen *g, const Reduction *r, const Env **env) {
    if (r->map) {
        LReg *at = cg_lookup(*env, r->map->to);
        LReg *e = cg_open_segment(g, r->map, at, "e");
        *env = cg_bind(g, *env, r->map->from, e);
        return 1;
    }
    for (int i = 0; i < r->n_over; i++)
        *env = cg_bind(g, *env, r->over[i], cg_open_for(g, r->over[i]->size, "k"));
    return r->n_over;
}

/* I1: nothing is reduced here; NULL when that cannot be. */
static LReg *is_empty(Gen *g, const Reduction *r, const Env *env) {
    LReg *one = cg_size(g, expr_const(g->a, 1)), *zero = cg_size(g, expr_const(g->a, 0));
    if (r->map) {
        LBuf *ptr = cg_arg_map(g, r->map, LB_MAP_PTR);
        LReg *at = cg_lookup(env, r->map->to), *next = cg_index(g, L_FN_IADD, at, one);
        return cg_index(g, L_FN_IEQ, cg_load(g, ptr, &at, "lo"), cg_load(g, ptr, &next, "hi"));
    }
    const Expr *n = expr_const(g->a, 1);
    for (int i = 0; i < r->n_over; i++) n = expr_mul(g->a, n, r->over[i]->size);
    int64_t c;
    if (expr_is_const(n, &c) && c > 0) return NULL;
    return cg_index(g, L_FN_IEQ, cg_size(g, n), zero);
}

/* A reduction is made no further out than the parallel loop: what stands before that
 * is run by every call. */
static Scope *reduction_scope(Gen *g, const Op *op, const Env *env, int except) {
    LReg *key[MAX_RANK];
    int n = 0;
    for (int i = 0; i < op->type.rank; i++)
        if (i != except) key[n++] = cg_lookup(env, op->type.dim[i]);
    Scope *s = cg_deepest(g, n, key);
    if (g->par && s->depth < g->par->depth && cg_scope_open(g, g->par)) s = g->par;
    return s;
}

/* ---- inline ------------------------------------------------------------------------------ */
LReg *cg_reduce_inline(Gen *g, const Op *op, const Env *env) {
    Reduction r;
    bool ok = cg_reduction(op, &r);
    assert(ok);
    (void)ok;
    DType dt = op->type.dt;
    Scope *back = g->cur;
    g->cur = reduction_scope(g, op, env, -1);
    LBuf *acc = cg_local(g, dt, 0, "acc");
    cg_store(g, acc, NULL, cg_const(g, dt, cg_identity(r.red, dt)));
    const Env *inner = env;
    int depth = open_reduced(g, &r, &inner);
    cg_acc(g, r.red, acc, NULL, cg_term(g, &r, inner));
    while (depth-- > 0) cg_close(g);
    LReg *empty = r.red == RED_SUM ? NULL : is_empty(g, &r, env);
    if (empty) {
        cg_open_if(g, empty);
        cg_store(g, acc, NULL, cg_const(g, dt, 0));
        cg_close(g);
    }
    LReg *v = cg_load(g, acc, NULL, op->hint);
    g->cur = back;
    return v;
}

/* best value and its index; a later equal one does not replace it */
LReg *cg_argmax_inline(Gen *g, const Op *op, const Env *env) {
    DType dt = op->in[0]->type.dt;
    Scope *back = g->cur;
    g->cur = reduction_scope(g, op, env, -1);
    LBuf *best = cg_local(g, dt, 0, "best"), *at = cg_local(g, DT_I32, 0, "at");
    cg_store(g, best, NULL, cg_const(g, dt, cg_identity(RED_MAX, dt)));
    cg_store(g, at, NULL, cg_const(g, DT_I32, 0));
    LReg *i = cg_open_for(g, op->over[0]->size, "k");
    LReg *x = cg_value(g, op->in[0], cg_bind(g, env, op->over[0], i));
    LReg *pair[] = {cg_load(g, best, NULL, "b"), x};
    cg_open_if(g, cg_let(g, L_FN_OP, OP_LT, DT_I1, "is", 2, pair));
    cg_store(g, best, NULL, x);
    cg_store(g, at, NULL, cg_cast(g, i, DT_I32));
    cg_close(g);
    cg_close(g)->sched = (LSched){0};
    LReg *v = cg_load(g, at, NULL, op->hint);
    g->cur = back;
    return v;
}

/* ---- tiles --------------------------------------------------------------------------------- */
typedef struct {
    Gen *g;
    const Env *env;
    Space *axis;
    int64_t width; /* of the local arrays */
    LReg *tile;    /* which tile of the axis; NULL = all of it */
    bool only_count;
    int count;
} Tiler;

/* At least one, so that nobody divides by zero where the space is empty. */
const Expr *cg_tile_count(Gen *g, const Space *axis, int64_t tile_width) {
    const Expr *n = expr_ceildiv(g->a, axis->size, expr_const(g->a, tile_width));
    return expr_max(g->a, expr_const(g->a, 1), n);
}

/* for f in the tile; g->tile_index gets (f, position in the tile) */
LReg *cg_open_tile(Gen *g, Space *axis, int64_t tile_width, LReg *tile) {
    int64_t n;
    LReg *f, *local;
    const Expr *width = expr_const(g->a, tile_width);
    if (!tile) {
        f = local = cg_open_for(g, axis->size, "f");
    } else if (expr_is_const(axis->size, &n) && n % tile_width == 0) {
        local = cg_open_for(g, width, "j");
        LReg *base = cg_index(g, L_FN_IMUL, tile, cg_size(g, width));
        f = cg_index(g, L_FN_IADD, base, local);
    } else {
        const Expr *n_tiles = cg_tile_count(g, axis, tile_width);
        const Expr *len = expr_ceildiv(g->a, axis->size, n_tiles);
        f = cg_open_chunk(g, tile, n_tiles, axis->size, "f");
        local = cg_index(g, L_FN_ISUB, f, cg_index(g, L_FN_IMUL, tile, cg_size(g, len)));
    }
    TileIndex ti = {.index = f, .local = local};
    vec_push(g->a, &g->tile_index, ti);
    return f;
}

static LReg *open_tile(Tiler *t) {
    return cg_open_tile(t->g, t->axis, t->width, t->tile);
}

static void fill(Tiler *t, LBuf *local, DType dt, double v) {
    Gen *g = t->g;
    open_tile(t);
    LReg *j = g->tile_index.v[g->tile_index.n - 1].local;
    cg_store(g, local, &j, cg_const(g, dt, v));
    cg_close(g);
}

static void make_tile(Tiler *t, const Reduction *r) {
    Gen *g = t->g;
    const Op *op = r->op;
    DType dt = op->type.dt;
    int axis = type_find(&op->type, t->axis);
    Scope *back = g->cur;
    LBuf *local = cg_local(g, dt, t->width, "acc");
    fill(t, local, dt, cg_identity(r->red, dt));
    const Env *env = t->env;
    int depth = open_reduced(g, r, &env);
    LReg *f = open_tile(t), *j = g->tile_index.v[g->tile_index.n - 1].local;
    cg_acc(g, r->red, local, &j, cg_term(g, r, cg_bind(g, env, t->axis, f)));
    for (depth++; depth > 0; depth--) cg_close(g);
    LReg *empty = r->red == RED_SUM ? NULL : is_empty(g, r, t->env);
    if (empty) {
        cg_open_if(g, empty);
        fill(t, local, dt, 0);
        cg_close(g);
    }
    Tile tile = {.op = op, .local = local, .axis = axis, .scope = back};
    for (int i = 0; i < op->type.rank; i++)
        if (i != axis) tile.key[i] = cg_lookup(t->env, op->type.dim[i]);
    vec_push(g->a, &g->tiles, tile);
}

/* Is the term contiguous along the axis (a tile pays), or along what is reduced? */
bool cg_wants_tile(const Op *op, const Space *axis) {
    Reduction r;
    if (!cg_reduction(op, &r) || !type_has(&op->type, axis)) return false;
    if (r.map && r.map->to == axis) return false; /* rows last: one segment per element */
    for (int k = 0; k < op->n_in && !r.map; k++) {
        const Type *x = &op->in[k]->type;
        for (int i = 0; i < r.n_over; i++)
            if (x->rank && x->dim[x->rank - 1] == r.over[i]) return false;
    }
    return true;
}

static bool has_tile(const Gen *g, const Op *op) {
    for (int i = 0; i < g->tiles.n; i++)
        if (g->tiles.v[i].op == op && cg_scope_open(g, g->tiles.v[i].scope)) return true;
    return false;
}

/* Makes the tiles that op needs at this row, inner ones first.  `through` is the map whose
 * segment we look from: gathering along it leads back to this row. */
static void visit(Tiler *t, const Op *op, Map *through) {
    Gen *g = t->g;
    if (cg_info(g->lo, op)->how != HOW_INLINE && !cg_is_root(g, op)) return;
    Reduction r;
    if (op_has(op, OPT_ELEM)) {
        for (int i = 0; i < op->n_in; i++) visit(t, op->in[i], through);
    } else if (op->kind == OP_GATHER) {
        if (op->map == through) visit(t, op->in[0], NULL);
    } else if (!through && cg_reduction(op, &r)) {
        if (r.map) visit(t, op->in[0], r.map);
        if (!cg_wants_tile(op, t->axis) || has_tile(g, op)) return;
        t->count++;
        if (!t->only_count) make_tile(t, &r);
    }
}

void cg_reduce_tiles(Gen *g, const Op *const *roots, int n, const Env *env, Space *axis,
                     int64_t width, LReg *tile) {
    Tiler t = {.g = g, .env = env, .axis = axis, .width = width, .tile = tile};
    for (int i = 0; i < n; i++) visit(&t, roots[i], NULL);
}

int cg_count_tiles(Gen *g, const Op *const *roots, int n, Space *axis) {
    Tiler t = {.g = g, .axis = axis, .only_count = true};
    for (int i = 0; i < n; i++) visit(&t, roots[i], NULL);
    return t.count;
}

/* ---- in the row of the result ------------------------------------------------------------ */
/* for f: out[.., f] = v */
static void fill_row(Gen *g, LBuf *out, LReg **idx, Space *axis, double v) {
    LReg *f = cg_open_for(g, axis->size, "f");
    idx[out->rank - 1] = f;
    cg_store(g, out, idx, cg_const(g, out->dt, v));
    cg_close(g);
}

void cg_reduce_row(Gen *g, const Op *op, LBuf *out, const Env *env, Space *axis) {
    Reduction r;
    LReg *idx[MAX_RANK];
    int last = op->type.rank - 1;
    bool ok = cg_reduction(op, &r);
    assert(ok && op->type.dim[last] == axis);
    (void)ok;
    for (int i = 0; i < last; i++) idx[i] = cg_lookup(env, op->type.dim[i]);
    fill_row(g, out, idx, axis, cg_identity(r.red, out->dt));
    const Env *inner = env;
    int depth = open_reduced(g, &r, &inner);
    idx[last] = cg_open_for(g, axis->size, "f");
    cg_acc(g, r.red, out, idx, cg_term(g, &r, cg_bind(g, inner, axis, idx[last])));
    for (depth++; depth > 0; depth--) cg_close(g);
    LReg *empty = r.red == RED_SUM ? NULL : is_empty(g, &r, env);
    if (!empty) return;
    cg_open_if(g, empty);
    fill_row(g, out, idx, axis, 0);
    cg_close(g);
}
