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
/* Whether op at a flat (one-dimensional) index needs its operands only at that same index. An op
 * that this walk has visited before is such, or the walk would have stopped; so is a value of one
 * element. */
static bool is_elementwise_at_flat_index(const Gen *g, const Op *op, const Type *t) {
    bool has_elements = op->type.rank > 0, is_inlined = cg_is_inline(g, op);
    if (has_elements && !type_same_spaces(&op->type, t)) return false;
    if (!ir_marks_first(g->lo->marks, 2 * op->id + 1)) return true;
    if (op->kind == OP_VIEW && is_inlined) /* of one element: no index but 0 */
        return has_elements == (op->in[0]->type.rank > 0) &&
               is_elementwise_at_flat_index(g, op->in[0], &op->in[0]->type);
    if (!is_inlined) return true;
    if (op->kind == OP_CONST || op->kind == OP_SIZE) return true;
    if (!op_has(op, OPT_ELEM)) return false;
    for (int i = 0; i < op->n_in; i++)
        if (!is_elementwise_at_flat_index(g, op->in[i], t)) return false;
    return true;
}

/* Whether all roots can be computed by one loop over a flat index. */
static bool all_are_flat(const RowKernel *kernel) {
    ir_marks_start(kernel->g->lo->marks);
    for (int i = 0; i < kernel->n; i++) {
        const Type *t = &kernel->value[i]->type;
        if (t->rank == 0 || !is_elementwise_at_flat_index(kernel->g, kernel->value[i], t))
            return false;
    }
    return true;
}

/* ---- bodies ---------------------------------------------------------------------------- */
/* Emits the values of all roots, then their stores, so that a root can be updated in place. */
static void emit_values(RowKernel *kernel, const Env *env) {
    Gen *g = kernel->g;
    LReg **v = NEWN(g->a, LReg *, (size_t)kernel->n);
    for (int i = 0; i < kernel->n; i++) v[i] = cg_value(g, kernel->value[i], env);
    for (int i = 0; i < kernel->n; i++) {
        LReg *idx[MAX_RANK] = {g->flat_index};
        const Type *t = &kernel->value[i]->type;
        for (int k = 0; k < t->rank && !g->flat_index; k++) idx[k] = cg_lookup(env, t->dim[k]);
        cg_store(g, kernel->out[i], idx, v[i]);
    }
}

/* Emits one parallel loop over all elements of the roots. */
static void emit_flat_loop(RowKernel *kernel) {
    Gen *g = kernel->g;
    LReg *i;
    cg_open_parallel(g, cg_count(g->lo, &kernel->value[0]->type), "i", &i);
    g->flat_index = i;
    emit_values(kernel, NULL);
    cg_close_scope(g);
}

/* The number of columns of a row that are accumulated at a time: all of a short row, else an equal
 * part; 0: no such number is known at compile time. */
static int64_t choose_tile_width(const Ctx *c, const Expr *size) {
    int64_t n, max_width = pass_threshold(c, PASS_T_ROW),
               min_width = pass_threshold(c, PASS_T_LOWER_TILE);
    if (!expr_is_const(size, &n)) return 0;
    if (n <= max_width) return n;
    for (int64_t width = max_width; width >= min_width; width--)
        if (n % width == 0) return width;
    return 0;
}

/* Emits nested loops over the parts of dimension `axis` that a view splits it into, so that no
 * index needs a division; false: no view does. */
static bool emit_split_axis(RowKernel *kernel, const Env *env, Space *axis) {
    Gen *g = kernel->g;
    Space *const *part = NULL;
    Split split = {0};
    for (int i = 0; i < kernel->n && split.n < 2; i++)
        split.n = cg_value_split(g, kernel->value[i], axis, &part);
    if (split.n < 2) return false;
    for (int k = 0; k < split.n; k++) {
        LReg *i = cg_open_for(g, part[k]->size, "f");
        LReg *size = cg_size(g, part[k]->size);
        split.space[k] = part[k];
        split.part[k] = i;
        split.index = k ? cg_index(g, L_FN_IADD, cg_index(g, L_FN_IMUL, split.index, size), i) : i;
    }
    vec_push(g->a, &g->splits, split);
    emit_values(kernel, cg_bind(g, env, axis, split.index));
    for (int k = 0; k < split.n; k++) cg_close_scope(g);
    return true;
}

typedef VEC(int) BufList;

/* Records the buffers that the kernel reads to compute op: their old contents are needed. */
static void record_read_buffers(const Gen *g, const Op *op, BufList *buffers) {
    Lower *lo = g->lo;
    if (!ir_marks_first(lo->marks, op->id)) return;
    if (!cg_is_inline(g, op)) {
        vec_push(g->a, buffers, cg_buf(lo, op));
        return;
    }
    for (int i = 0; i < op->n_in; i++) record_read_buffers(g, op->in[i], buffers);
}

/* Whether the buffer is in the list. */
static bool has_buf(const BufList *bufs, int buf) {
    for (int i = 0; i < bufs->n; i++)
        if (bufs->v[i] == buf) return true;
    return false;
}

/* The result whose row can be the accumulator of the sum: it has the sum's type, and the kernel
 * does not read its buffer. NULL: there is none. */
static LBuf *accumulator_row(const RowKernel *kernel, const Op *sum) {
    Lower *lo = kernel->g->lo;
    BufList read_buffers = {0};
    if (sum->type.dt != DT_F32) return NULL;
    ir_marks_start(lo->marks);
    for (int i = 0; i < kernel->n; i++)
        record_read_buffers(kernel->g, kernel->value[i], &read_buffers);
    for (int i = 0; i < kernel->n; i++)
        if (kernel->out[i]->dt == DT_F32 && !has_buf(&read_buffers, cg_buf(lo, kernel->roots[i])) &&
            type_same_spaces(&sum->type, &kernel->value[i]->type))
            return kernel->out[i];
    return NULL;
}

/* Emits the sums of a tile of columns, then the values and stores of its elements. row: the buffer
 * that the sums are accumulated in, NULL = local arrays. */
static void emit_row_tile(RowKernel *kernel, const Env *env, const Axes *axes, LBuf *row) {
    Gen *g = kernel->g;
    const Type *t = &kernel->value[0]->type;
    LReg *local[MAX_RANK];
    cg_reduce_tiles(g, kernel->value, kernel->n, env, axes, row);
    emit_values(kernel, cg_open_axes(g, axes, t, env, local));
    cg_close_axes(g, axes, t);
}

/* Emits an innermost dimension whose width is not constant: a single sum is accumulated in the
 * result's own row; otherwise there is a loop over tiles of constant width. */
static void emit_row_tiles(RowKernel *kernel, const Env *env, Axes *axes) {
    Gen *g = kernel->g;
    const Op *sum;
    bool single = cg_count_tiles(g, kernel->value, kernel->n, axes, &sum) == 1;
    LBuf *row = single ? accumulator_row(kernel, sum) : NULL;
    if (row) {
        emit_row_tile(kernel, env, axes, row);
        return;
    }
    Axis *axis = &axes->v[0];
    axis->width = choose_tile_width(g->lo->c, axis->space->size);
    if (axis->width == 0) axis->width = pass_threshold(g->lo->c, PASS_T_LOWER_TILE);
    axis->tile_number = cg_open_for(g, cg_tile_count(g, axis), "t");
    emit_row_tile(kernel, env, axes, NULL);
    cg_close_scope(g);
}

/* Emits the loops over the innermost dimension: tiles where sums are needed, else one vector loop.
 */
static void emit_innermost_dim(RowKernel *kernel, const Env *env, Space *s) {
    Gen *g = kernel->g;
    int64_t n, width = choose_tile_width(g->lo->c, s->size);
    Axes axes = {.n = 1, .v = {{.space = s, .width = width}}};
    if (cg_count_tiles(g, kernel->value, kernel->n, &axes, NULL) > 0) {
        if (width && expr_is_const(s->size, &n) && n == width)
            emit_row_tile(kernel, env, &axes, NULL);
        else
            emit_row_tiles(kernel, env, &axes);
        return;
    }
    if (emit_split_axis(kernel, env, s)) return;
    emit_values(kernel, cg_bind(g, env, s, cg_open_for(g, s->size, "f")));
    cg_close_scope(g);
}

/* Whether the rows have several dimensions of constant size that are short together (heads and
 * features), and some sum over them fits a tile of registers; *axes gets the dimensions. */
static bool has_short_rows(RowKernel *kernel, const Type *t, Axes *axes) {
    int64_t n, n_elements = 1, max_elements = pass_threshold(kernel->g->lo->c, PASS_T_LOWER_SHORT);
    *axes = (Axes){0};
    for (int k = 1; k < t->rank; k++) {
        if (!expr_is_const(t->dim[k]->size, &n) || n < 1 || n > max_elements) return false;
        n_elements *= n;
        axes->v[axes->n++] = (Axis){.space = t->dim[k], .width = n};
    }
    return axes->n > 1 && n_elements <= max_elements &&
           cg_count_tiles(kernel->g, kernel->value, kernel->n, axes, NULL) > 0;
}

/* Finds the maps over whose segments the rows sum, so that the rows can be divided among threads by
 * numbers of entries. */
static void find_segment_maps(const Gen *g, const Op *op, const Space *rows, MapList *maps) {
    if (!cg_is_inline(g, op) || !ir_marks_first(g->lo->marks, op->id)) return;
    if (op->kind == OP_SEGMENT && op->map->to == rows && !cg_has_map(maps, op->map))
        vec_push(g->a, maps, op->map);
    for (int i = 0; i < op->n_in; i++) find_segment_maps(g, op->in[i], rows, maps);
}

/* Emits a loop nest over the dimensions of the roots: the first is parallel, the last a vector
 * loop. */
static void emit_nested_loops(RowKernel *kernel) {
    Gen *g = kernel->g;
    const Type *t = &kernel->value[0]->type;
    const Env *env = NULL;
    LReg *i;
    if (t->rank == 0) {
        emit_values(kernel, NULL);
        return;
    }
    LStmt *loop = cg_open_parallel(g, t->dim[0]->size, "v", &i);
    ir_marks_start(g->lo->marks);
    for (int k = 0; k < kernel->n; k++)
        find_segment_maps(g, kernel->value[k], t->dim[0], &loop->sched.balance);
    env = cg_bind(g, env, t->dim[0], i);
    Axes axes;
    bool is_short = has_short_rows(kernel, t, &axes);
    for (int k = 1; k + 1 < t->rank && !is_short; k++)
        env = cg_bind(g, env, t->dim[k], cg_open_for(g, t->dim[k]->size, "h"));
    if (is_short)
        emit_row_tile(kernel, env, &axes, NULL);
    else if (t->rank > 1)
        emit_innermost_dim(kernel, env, t->dim[t->rank - 1]);
    else
        emit_values(kernel, env);
    while (g->scope != g->root) cg_close_scope(g);
}

void cg_lower_rows(Lower *lo, const Op *const *roots, int n) {
    Gen gen, *g = &gen;
    cg_begin_kernel(g, lo, roots[n - 1], "");
    RowKernel kernel = {.g = g, .n = n, .roots = roots};
    kernel.value = NEWN(lo->a, const Op *, (size_t)n);
    kernel.out = NEWN(lo->a, LBuf *, (size_t)n);
    for (int i = 0; i < n; i++) {
        kernel.value[i] = cg_skip_views(lo, roots[i]);
        CTX_HOLDS(lo->c, type_same_spaces(&kernel.value[i]->type, &kernel.value[0]->type),
                  roots[i]->span);
    }
    cg_set_roots(g, kernel.value, n);
    bool flat = all_are_flat(&kernel);
    for (int i = 0; i < n; i++) {
        kernel.out[i] =
            flat ? cg_arg_flat(g, roots[i]) : cg_arg_value(g, roots[i], &kernel.value[i]->type);
        kernel.out[i]->written = true;
    }
    if (flat)
        emit_flat_loop(&kernel);
    else
        emit_nested_loops(&kernel);
    cg_step_kernel(g, roots[n - 1]);
}
