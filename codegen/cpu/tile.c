/* Rows of sums in registers, as the pass tile has made them:
 *
 *     tile F by 64 vector 16 keeps y {                   for tile of F {
 *       for f in F vector { store y[v, f] 0 }              acc = 0             (registers)
 *       for e in segment ptr[v] {                          for e in segment ptr[v] {
 *         scalars of e                              =>       scalars of e; acc += ..
 *         for f in F vector { acc sum y[v, f] .. }         }
 *       }                                                  .. acc ..; y[v, tile] = acc
 *       for f in F vector { .. y[v, f] .. }              }
 *     }
 *
 * Tiles of whole vectors, then what is left of the row in vectors of which the last ones are
 * masked.  With a loop over heads around it the rows of all heads are there at once. */
#include "codegen/cpu/cpu.h"

/* A tile of columns while it is emitted. */
typedef struct {
    CgFn *f;
    const LStmt *s, *jam;       /* the tile; the loop over heads around it, or NULL */
    int heads;                  /* its extent, else 1 */
    CgCell cell[LOOP_KEPT_MAX]; /* rows kept in registers */
    int n_cell;
    int lanes; /* of a vector */
    /* of what is being emitted */
    LLVMValueRef first; /* its first column */
    LLVMValueRef
        remaining; /* how many are left for all but the `n_full` first vectors; NULL = enough */
    int n_full;
    int vectors; /* per head */
} Tile;

/* Whether s is a vector loop over the tile's columns. */
static bool is_row_loop(const Tile *t, const LStmt *s) {
    return loop_is_vector_loop_over(s, t->s->extent);
}

/* Sets the variable of the loop over heads. */
static void set_head(Tile *t, int head) {
    if (t->jam) t->f->reg[t->jam->var->id] = (CgVal){cpu_i64(t->f->g, head), SHAPE_UNIFORM, false};
}

/* The mask of vector k of a head: all lanes (NULL), or what remains of the row. */
static LLVMValueRef lanes_mask(Tile *t, int k) {
    Cg *g = t->f->g;
    if (!t->remaining || k < t->n_full) return NULL;
    LLVMValueRef zero = cpu_i64(g, 0);
    LLVMValueRef n = LLVMBuildNSWSub(g->b, t->remaining, cpu_i64(g, (int64_t)k * t->lanes), "");
    LLVMValueRef none = LLVMBuildICmp(g->b, LLVMIntSLT, n, zero, "");
    return cpu_first_lanes_mask(t->f, LLVMBuildSelect(g->b, none, zero, n, ""));
}

/* Begins code for vector k of the tile's columns, of a head: sets lanes, mask, the register that it
 * is kept in, and the loop variable `feature`. */
static void enter_vector(Tile *t, const LReg *feature, int head, int k) {
    CgFn *f = t->f;
    Cg *g = f->g;
    f->lanes = t->lanes;
    f->mask = f->tail_mask = lanes_mask(t, k);
    f->vector = head * t->vectors + k;
    LLVMValueRef at = LLVMBuildNSWAdd(g->b, t->first, cpu_i64(g, (int64_t)k * f->lanes), "");
    f->reg[feature->id] = (CgVal){at, SHAPE_CONSECUTIVE, false};
}

/* Ends code for vectors: what follows is scalar. */
static void leave_vectors(CgFn *f) {
    f->lanes = 1, f->mask = f->tail_mask = NULL;
}

/* Emits a vector loop over the tile's columns for one head. */
static void emit_row_loop(Tile *t, const LStmt *s, int head) {
    set_head(t, head);
    for (int k = 0; k < t->vectors; k++) {
        enter_vector(t, s->var, head, k);
        cpu_block(t->f, s->body);
    }
    leave_vectors(t->f);
}

/* Emits the accumulation of a scalar of entries, in the first tile only: entries are read once per
 * tile, but their scalars are summed once. */
static void emit_scalar_sum(Tile *t, const LStmt *s) {
    CgFn *f = t->f;
    Cg *g = f->g;
    LLVMBasicBlockRef sum = cpu_new_block(f, "sum"), end = cpu_new_block(f, "summed");
    LLVMValueRef first = LLVMBuildICmp(g->b, LLVMIntEQ, t->first, cpu_i64(g, 0), "");
    LLVMBuildCondBr(g->b, first, sum, end);
    LLVMPositionBuilderAtEnd(g->b, sum);
    cpu_stmt(f, s);
    LLVMBuildBr(g->b, end);
    LLVMPositionBuilderAtEnd(g->b, end);
}

/* Emits what is done for an entry, for each head. */
static void emit_entry(CgFn *f, const LStmt *first, void *arg) {
    Tile *t = arg;
    for (int head = 0; head < t->heads; head++) {
        set_head(t, head);
        for (const LStmt *s = first; s; s = s->next) {
            if (s->kind == L_FOR)
                emit_row_loop(t, s, head);
            else if (s->kind == L_ACC)
                emit_scalar_sum(t, s);
            else if (s->kind != L_PREFETCH || head == 0)
                cpu_stmt(f, s);
        }
    }
}

/* Whether the first access, in program order, gives the row a value whatever happened before. */
static bool starts_with_store(const Tile *t, const CgCell *c) {
    for (const LStmt *s = t->s->body; s; s = s->next) {
        if (loop_count_accesses(s->body, c->first->buf) == 0) continue;
        if (!is_row_loop(t, s)) return false;
        for (const LStmt *in = s->body; in; in = in->next)
            if (in == c->first) return in->kind == L_STORE;
    }
    return false;
}

/* Calls fn for each vector of the row that cell c keeps in registers, head by head. */
static void each_vector(Tile *t, CgCell *c, void (*fn)(CgFn *, CgCell *)) {
    const LReg *feature = c->first->idx[c->first->buf->rank - 1];
    for (int head = 0; head < t->heads; head++) {
        set_head(t, head);
        for (int k = 0; k < t->vectors; k++) {
            enter_vector(t, feature, head, k);
            fn(t->f, c);
        }
    }
    leave_vectors(t->f);
}

/* Reserves registers for the rows of sums that the tile writes (allocas, which LLVM turns into
 * registers), and loads those whose contents before the tile count. A local array is begun inside
 * the tile, so that it has none. */
static void open_cells(Tile *t) {
    CgFn *f = t->f;
    int n = t->heads * t->vectors;
    for (int i = 0; i < t->n_cell; i++) {
        CgCell *c = &t->cell[i];
        const LBuf *b = c->first->buf;
        c->at = NEWN(f->g->a, LLVMValueRef, n);
        for (int k = 0; k < n; k++)
            c->at[k] = cpu_alloca(f, cpu_vector_type(cpu_type(f->g, b->dt), t->lanes), 1);
        if (b->kind != LB_LOCAL && !starts_with_store(t, c)) each_vector(t, c, cpu_cell_fill);
    }
    f->cell = t->cell, f->n_cell = t->n_cell;
}

/* Stores the rows that the tile kept in registers to memory; local arrays end with the tile. */
static void close_cells(Tile *t) {
    t->f->cell = NULL, t->f->n_cell = 0;
    for (int i = 0; i < t->n_cell; i++)
        if (t->cell[i].first->buf->kind != LB_LOCAL) each_vector(t, &t->cell[i], cpu_cell_flush);
}

/* Emits the statements for a tile that begins at column i. */
static void emit_tile(Tile *t, LLVMValueRef i, LLVMValueRef remaining, int full, int vectors) {
    t->first = i, t->remaining = remaining, t->n_full = full, t->vectors = vectors;
    if (!t->jam) t->f->tile_start = i, t->f->tile_width = vectors * t->lanes;
    open_cells(t);
    for (const LStmt *s = t->s->body; s; s = s->next) {
        cpu_debug_at(t->f, s->span);
        if (is_row_loop(t, s))
            for (int head = 0; head < t->heads; head++) emit_row_loop(t, s, head);
        else
            cpu_entry_loop(t->f, s, emit_entry, t);
    }
    close_cells(t);
    t->f->tile_start = NULL;
}

/* Emits the loop over whole tiles, of `vectors` vectors each, up to column `end`. */
static void emit_tiles(Tile *t, LLVMValueRef end, int vectors) {
    CgLoop l = cpu_loop_begin(t->f, cpu_i64(t->f->g, 0), end, (int64_t)vectors * t->lanes);
    emit_tile(t, l.i, NULL, 0, vectors);
    cpu_loop_end(t->f, &l);
}

/* Emits a constant number n of columns from `at` on, with a mask for the last vector. */
static void emit_rest(Tile *t, int64_t at, int64_t n) {
    Cg *g = t->f->g;
    int full = (int)(n / t->lanes);
    if (n > 0)
        emit_tile(t, cpu_i64(g, at), n % t->lanes ? cpu_i64(g, n) : NULL, full,
                  full + (n % t->lanes > 0));
}

/* Emits what remains of a row of unknown width: a tile of the least power of two of vectors that
 * holds it. */
static void emit_unknown_rest(Tile *t, LLVMValueRef at, LLVMValueRef remaining, int vectors) {
    CgFn *f = t->f;
    Cg *g = f->g;
    LLVMBasicBlockRef end = cpu_new_block(f, "end");
    for (; vectors > 0; vectors /= 2) {
        int full = vectors / 2;
        LLVMBasicBlockRef some = cpu_new_block(f, "rest"), fewer = cpu_new_block(f, "fewer");
        LLVMValueRef than = cpu_i64(g, (int64_t)full * t->lanes);
        LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSGT, remaining, than, ""), some, fewer);
        LLVMPositionBuilderAtEnd(g->b, some);
        emit_tile(t, at, remaining, full, vectors);
        LLVMBuildBr(g->b, end);
        LLVMMoveBasicBlockAfter(fewer, LLVMGetInsertBlock(g->b));
        LLVMPositionBuilderAtEnd(g->b, fewer);
    }
    LLVMBuildBr(g->b, end);
    LLVMMoveBasicBlockAfter(end, LLVMGetInsertBlock(g->b));
    LLVMPositionBuilderAtEnd(g->b, end);
}

/* ---- entry -------------------------------------------------------------------------------- */
static bool is_access_to(const LStmt *s, const void *buf) {
    return loop_is_access(s) && s->buf == buf;
}

/* The state for emitting statement s, with a cell for each row that it keeps in registers. */
static Tile begin_tile(CgFn *f, const LStmt *s) {
    Tile t = {.f = f, .s = s, .heads = 1, .lanes = s->lanes, .n_cell = s->in_registers.n};
    for (int i = 0; i < s->in_registers.n; i++)
        t.cell[i].first = loop_find(s->body, is_access_to, s->in_registers.v[i]);
    return t;
}

void cpu_tile(CgFn *f, const LStmt *s) {
    Cg *g = f->g;
    Tile t = begin_tile(f, s);
    int vectors = s->columns / s->lanes;
    int64_t n;
    if (expr_is_const(s->extent, &n)) {
        int64_t whole = n / s->columns * s->columns;
        if (whole > 0) emit_tiles(&t, cpu_i64(g, whole), vectors);
        emit_rest(&t, whole, n - whole);
        return;
    }
    LLVMValueRef width = cpu_size(f, s->extent);
    LLVMValueRef whole = LLVMBuildAnd(g->b, width, cpu_i64(g, -(int64_t)s->columns), "");
    emit_tiles(&t, whole, vectors);
    emit_unknown_rest(&t, whole, LLVMBuildNSWSub(g->b, width, whole, ""), vectors);
}

void cpu_jammed_loop(CgFn *f, const LStmt *jam) {
    int64_t n = 0, width = 0;
    Tile t = begin_tile(f, loop_jammed_tile(jam));
    bool known = loop_extent(jam, &n) && expr_is_const(t.s->extent, &width);
    CTX_HOLDS(f->g->c, known, jam->span);
    t.jam = jam;
    t.heads = (int)n;
    emit_rest(&t, 0, width);
}
