/* Kernels that compute values row by row: a loop over each space of the roots, the
 * first one parallel, the last one vectorised.
 *
 *     for v in N parallel            for i in N*F parallel vector     (flat)
 *       [tiles of reductions]          y[i] = f(x[i], ..)
 *       for f in F vector
 *         y[v, f] = ..
 *
 * Several roots over the same spaces share one kernel: all values first, then all
 * stores, so a root may be updated in place. */
#include "codegen/lower/lower.h"

#include <string.h>

/* A kernel with roots over the same spaces. */
typedef struct {
    Gen *g;
    int n;
    const Op *const *roots; /* whose buffers are written */
    const Op **value;       /* what is computed: cg_skip_views(root) */
    LBuf **out;
} RowKernel;

/* ---- flat kernels ------------------------------------------------------------------- */
/* Whether op at a linear index needs its operands only at that same index. An op that was visited
 * before in this walk is (otherwise the walk has ended); so is a value of one element. */
static bool is_linear(const Gen *g, const Op *op, const Type *t) {
    bool full = op->type.rank > 0, inlined = cg_is_inline(g, op);
    if (full && !type_same_spaces(&op->type, t)) return false;
    if (!ir_marks_first(g->lo->marks, 2 * op->id + 1)) return true;
    if (op->kind == OP_VIEW && inlined) /* of one element: no index but 0 */
        return full == (op->in[0]->type.rank > 0) && is_linear(g, op->in[0], &op->in[0]->type);
    if (!inlined) return true;
    if (op->kind == OP_CONST || op->kind == OP_SIZE) return true;
    if (!op_has(op, OPT_ELEM)) return false;
    for (int i = 0; i < op->n_in; i++)
        if (!is_linear(g, op->in[i], t)) return false;
    return true;
}

/* Whether all roots are. */
static bool all_linear(const RowKernel *r) {
    ir_marks_start(r->g->lo->marks);
    for (int i = 0; i < r->n; i++) {
        const Type *t = &r->value[i]->type;
        if (t->rank == 0 || !is_linear(r->g, r->value[i], t)) return false;
    }
    return true;
}

/* ---- bodies ---------------------------------------------------------------------------- */
/* Emits the values of all roots, then their stores. */
static void emit_values(RowKernel *r, const Env *env) {
    Gen *g = r->g;
    LReg **v = NEWN(g->a, LReg *, (size_t)r->n);
    for (int i = 0; i < r->n; i++) v[i] = cg_value(g, r->value[i], env);
    for (int i = 0; i < r->n; i++) {
        LReg *idx[MAX_RANK] = {g->flat_index};
        const Type *t = &r->value[i]->type;
        for (int k = 0; k < t->rank && !g->flat_index; k++) idx[k] = cg_lookup(env, t->dim[k]);
        cg_store(g, r->out[i], idx, v[i]);
    }
}

/* Emits one loop over all elements. */
static void emit_linear_loop(RowKernel *r) {
    Gen *g = r->g;
    LReg *i;
    cg_open_parallel(g, cg_count(g->lo, &r->value[0]->type), "i", &i);
    g->flat_index = i;
    emit_values(r, NULL);
    cg_close_scope(g);
}

/* The width of a tile of the row: the whole row where it is short, else an equal part; 0: no such
 * width is known at compile time. */
static int64_t choose_tile_width(const Ctx *c, const Expr *size) {
    int64_t n, most = pass_threshold(c, PASS_T_ROW), least = pass_threshold(c, PASS_T_FORM_TILE);
    if (!expr_is_const(size, &n)) return 0;
    if (n <= most) return n;
    for (int64_t w = most; w >= least; w--)
        if (n % w == 0) return w;
    return 0;
}

/* Walks the axis by nested loops over the spaces that a view splits it in, so that no index is
 * divided; false: no view does. */
static bool emit_split_axis(RowKernel *r, const Env *env, Space *axis) {
    Gen *g = r->g;
    Space *const *part = NULL;
    Split s = {0};
    for (int i = 0; i < r->n && s.n < 2; i++) s.n = cg_value_split(g, r->value[i], axis, &part);
    if (s.n < 2) return false;
    for (int k = 0; k < s.n; k++) {
        LReg *i = cg_open_for(g, part[k]->size, "f");
        LReg *size = cg_size(g, part[k]->size);
        s.space[k] = part[k];
        s.part[k] = i;
        s.index = k ? cg_index(g, L_FN_IADD, cg_index(g, L_FN_IMUL, s.index, size), i) : i;
    }
    vec_push(g->a, &g->splits, s);
    emit_values(r, cg_bind(g, env, axis, s.index));
    for (int k = 0; k < s.n; k++) cg_close_scope(g);
    return true;
}

typedef VEC(int) BufList;

/* Records the buffers that the kernel reads for op: their old values are needed. */
static void record_reads(const Gen *g, const Op *op, BufList *read) {
    Lower *lo = g->lo;
    if (!ir_marks_first(lo->marks, op->id)) return;
    if (!cg_is_inline(g, op)) {
        vec_push(g->a, read, cg_buf(lo, op));
        return;
    }
    for (int i = 0; i < op->n_in; i++) record_reads(g, op->in[i], read);
}

/* Whether the buffer is in the list. */
static bool has_buf(const BufList *bufs, int buf) {
    for (int i = 0; i < bufs->n; i++)
        if (bufs->v[i] == buf) return true;
    return false;
}

/* The row of a result in which a sum can be accumulated: one of its type, in a buffer that this
 * kernel does not read, since the sum overwrites it. NULL: there is none. */
static LBuf *accumulator_row(const RowKernel *r, const Op *sum) {
    Lower *lo = r->g->lo;
    BufList read = {0};
    if (sum->type.dt != DT_F32) return NULL;
    ir_marks_start(lo->marks);
    for (int i = 0; i < r->n; i++) record_reads(r->g, r->value[i], &read);
    for (int i = 0; i < r->n; i++)
        if (r->out[i]->dt == DT_F32 && !has_buf(&read, cg_buf(lo, r->roots[i])) &&
            type_same_spaces(&sum->type, &r->value[i]->type))
            return r->out[i];
    return NULL;
}

/* Emits the sums of a tile, then the values and stores of its elements. */
static void emit_tile(RowKernel *r, const Env *env, const Axes *axes, LBuf *row) {
    Gen *g = r->g;
    const Type *t = &r->value[0]->type;
    LReg *local[MAX_RANK];
    cg_reduce_tiles(g, r->value, r->n, env, axes, row);
    emit_values(r, cg_open_axes(g, axes, t, env, local));
    cg_close_axes(g, axes, t);
}

/* Emits a last dimension without static width: a single sum is accumulated in the result's own row,
 * otherwise there is a loop over tiles of fixed width. */
static void emit_tiles(RowKernel *r, const Env *env, Axes *axes) {
    Gen *g = r->g;
    const Op *sum;
    bool single = cg_count_tiles(g, r->value, r->n, axes, &sum) == 1;
    LBuf *row = single ? accumulator_row(r, sum) : NULL;
    if (row) {
        emit_tile(r, env, axes, row);
        return;
    }
    Axis *a = &axes->v[0];
    a->width = choose_tile_width(g->lo->c, a->space->size);
    if (a->width == 0) a->width = pass_threshold(g->lo->c, PASS_T_FORM_TILE);
    a->tile_number = cg_open_for(g, cg_tile_count(g, a), "t");
    emit_tile(r, env, axes, NULL);
    cg_close_scope(g);
}

/* Emits the loops over the last space. */
static void emit_last_space(RowKernel *r, const Env *env, Space *s) {
    Gen *g = r->g;
    int64_t n, width = choose_tile_width(g->lo->c, s->size);
    Axes axes = {.n = 1, .v = {{.space = s, .width = width}}};
    if (cg_count_tiles(g, r->value, r->n, &axes, NULL) > 0) {
        if (width && expr_is_const(s->size, &n) && n == width)
            emit_tile(r, env, &axes, NULL);
        else
            emit_tiles(r, env, &axes);
        return;
    }
    if (emit_split_axis(r, env, s)) return;
    emit_values(r, cg_bind(g, env, s, cg_open_for(g, s->size, "f")));
    cg_close_scope(g);
}

/* Whether the row has several dimensions of constant extent that are short together, such as heads
 * and features; *axes: these. */
static bool has_short_rows(RowKernel *r, const Type *t, Axes *axes) {
    int64_t n, all = 1, most = pass_threshold(r->g->lo->c, PASS_T_FORM_SHORT);
    *axes = (Axes){0};
    for (int k = 1; k < t->rank; k++) {
        if (!expr_is_const(t->dim[k]->size, &n) || n < 1 || n > most) return false;
        all *= n;
        axes->v[axes->n++] = (Axis){.space = t->dim[k], .width = n};
    }
    return axes->n > 1 && all <= most && cg_count_tiles(r->g, r->value, r->n, axes, NULL) > 0;
}

/* Finds the maps over whose segments the rows sum, so that chunks of rows get equal numbers of
 * entries. */
static void find_segment_maps(const Gen *g, const Op *op, const Space *rows, MapList *maps) {
    if (!cg_is_inline(g, op) || !ir_marks_first(g->lo->marks, op->id)) return;
    if (op->kind == OP_SEGMENT && op->map->to == rows && !cg_has_map(maps, op->map))
        vec_push(g->a, maps, op->map);
    for (int i = 0; i < op->n_in; i++) find_segment_maps(g, op->in[i], rows, maps);
}

/* Emits a loop nest over the dimensions of the roots. */
static void emit_nested_loops(RowKernel *r) {
    Gen *g = r->g;
    const Type *t = &r->value[0]->type;
    const Env *env = NULL;
    LReg *i;
    if (t->rank == 0) {
        emit_values(r, NULL);
        return;
    }
    LStmt *loop = cg_open_parallel(g, t->dim[0]->size, "v", &i);
    ir_marks_start(g->lo->marks);
    for (int k = 0; k < r->n; k++)
        find_segment_maps(g, r->value[k], t->dim[0], &loop->sched.balance);
    env = cg_bind(g, env, t->dim[0], i);
    Axes axes;
    bool is_short = has_short_rows(r, t, &axes);
    for (int k = 1; k + 1 < t->rank && !is_short; k++)
        env = cg_bind(g, env, t->dim[k], cg_open_for(g, t->dim[k]->size, "h"));
    if (is_short)
        emit_tile(r, env, &axes, NULL);
    else if (t->rank > 1)
        emit_last_space(r, env, t->dim[t->rank - 1]);
    else
        emit_values(r, env);
    while (g->scope != g->root) cg_close_scope(g);
}

/* Lowers roots over the same spaces to one kernel. */
void cg_lower_rows(Lower *lo, const Op *const *roots, int n) {
    Gen gen, *g = &gen;
    cg_begin_kernel(g, lo, roots[n - 1], "");
    RowKernel r = {.g = g, .n = n, .roots = roots};
    r.value = NEWN(lo->a, const Op *, (size_t)n);
    r.out = NEWN(lo->a, LBuf *, (size_t)n);
    for (int i = 0; i < n; i++) r.value[i] = cg_skip_views(lo, roots[i]);
    cg_set_roots(g, r.value, n);
    bool flat = all_linear(&r);
    for (int i = 0; i < n; i++) {
        r.out[i] = flat ? cg_arg_flat(g, roots[i]) : cg_arg_value(g, roots[i], &r.value[i]->type);
        r.out[i]->written = true;
    }
    if (flat)
        emit_linear_loop(&r);
    else
        emit_nested_loops(&r);
    cg_step_kernel(g, roots[n - 1]);
}
