/* Rows of vectors: a sum over entries whose width is long, or known at run time only.
 *
 *     for f in F vector { store y[v, f] 0 }              for tile of F {
 *     for e in segment ptr[v] {                             acc = 0             (registers)
 *       scalars of e                              =>        for e in segment ptr[v] {
 *       for f in F vector { acc sum y[v, f] .. }              scalars of e; acc += ..
 *     }                                                     }
 *     for f in F vector { .. y[v, f] .. }                   .. acc ..; y[v, tile] = acc
 *                                                         }
 * Without it every entry loads and stores its row of sums.  Here a tile of the row stays in
 * registers over all entries, at the price of reading the entries once per tile (the "feature
 * dimension tiling" of Hu et al., FeatGraph, SC 2020, and Huang et al., GE-SpMM, SC 2020).
 *
 * A short loop of constant extent around all that (attention heads) is done in the same
 * traversal: its rows lie side by side in registers, and the entries are read once, not once
 * per head.
 *
 * It is the same work in another order, lane by lane: allowed when every buffer that the
 * statements write is reached through the feature index (and the head) alone, so no lane reads
 * what another one wrote; the order of additions into an element does not change. */
#include "codegen/cpu/cpu.h"

enum {
    CELLS_MAX = 4,
    GROUP_MAX = 16,
    /* Vectors at a time.  2.33 M entries x 256 on two threads, seconds: 4 vectors, asking for the
     * tile's part of the row 16 entries ahead, 0.059 to 0.062; 8 vectors 0.071 alone, 0.064 with
     * 8 entries ahead, 0.062 with 16; 16 vectors 0.071 at best: the machine's own prefetcher runs
     * past the end of a long row, and what it brings too early is only used if the row's other half
     * follows.  All rows' first tile, then their second: 0.070 at best. */
    TILE = 4,
};

typedef struct {
    CgFn *f;
    const LStmt *stmt[GROUP_MAX]; /* vector loops over `width`, entry loops around such */
    int n;
    const Expr *width;
    CgCell cell[CELLS_MAX]; /* rows kept in registers */
    int n_cell;
    bool has_entries;
    const LStmt *jam; /* the loop over heads around the statements, or NULL */
    int heads;        /* its extent, else 1 */
    /* of the tile being emitted */
    int w;             /* lanes */
    LLVMValueRef i;    /* its first feature */
    LLVMValueRef left; /* how many are left for all but the `full` first vectors; NULL = enough */
    int full;
    int vectors; /* per head */
} Group;

/* ---- what belongs together ----------------------------------------------------------- */

static bool is_row_loop(const Group *t, const LStmt *s) {
    return s->kind == L_FOR && s->sched.vector && !s->sched.parallel && s->range == LR_EXTENT &&
           expr_eq(s->extent, t->width);
}

/* A sum of scalars of the entries: the divisor of a softmax, beside the row that it divides. */
static bool is_scalar_sum(const LStmt *s) {
    int64_t n;
    if (s->kind != L_ACC || s->buf->kind != LB_LOCAL) return false;
    for (int i = 0; i < s->buf->rank; i++)
        if (!expr_is_const(s->buf->dim[i], &n) || n != 1) return false;
    return true;
}

/* Scalars and their sums, then row loops. */
static bool is_entry_loop(const Group *t, const LStmt *s) {
    int64_t n;
    if (s->kind != L_FOR || s->sched.vector || s->sched.parallel) return false;
    if (s->sched.unroll && !(loop_extent(s, &n) && n == 1)) return false;
    const LStmt *p = s->body;
    while (p && (p->kind == L_LET || p->kind == L_LOAD || is_scalar_sum(p))) p = p->next;
    if (!p) return false;
    for (; p; p = p->next)
        if (!is_row_loop(t, p)) return false;
    return true;
}

static bool group_writes(const Group *t, const LBuf *b) {
    for (int i = 0; i < t->n; i++)
        if (loop_writes(t->stmt[i]->body, b)) return true;
    return false;
}

static bool group_defines(const Group *t, const LReg *r) {
    for (int i = 0; i < t->n; i++)
        if (t->stmt[i]->var == r || loop_defines(t->stmt[i]->body, r)) return true;
    return false;
}

/* A row kept in registers: always the same one, named by indices from outside. */
static bool same_row(const LStmt *x, const LStmt *y) {
    for (int i = 0; i + 1 < x->buf->rank; i++)
        if (x->idx[i] != y->idx[i]) return false;
    return true;
}

static bool row_is_outer(const Group *t, const LStmt *s) {
    for (int i = 0; i + 1 < s->buf->rank; i++)
        if (group_defines(t, s->idx[i])) return false;
    return true;
}

static CgCell *cell_for(Group *t, const LStmt *s) {
    for (int i = 0; i < t->n_cell; i++)
        if (t->cell[i].first->buf == s->buf) return &t->cell[i];
    if (t->n_cell == CELLS_MAX) return NULL;
    t->cell[t->n_cell] = (CgCell){.first = s};
    return &t->cell[t->n_cell++];
}

/* Heads must not meet: each has a row of its own, or a local array of its own. */
static bool apart_by_head(const Group *t, const LStmt *s) {
    if (!t->jam) return true;
    for (int i = 0; i + 1 < s->buf->rank; i++)
        if (s->idx[i] == t->jam->var) return true;
    for (const LStmt *d = t->jam->body; d; d = d->next)
        if (d->kind == L_LOCAL && d->buf == s->buf) return true;
    return false;
}

/* Of a local array that the group only reads: the same element for all features. */
static bool is_scalar(const LStmt *s, const LReg *feature) {
    for (int i = 0; i < s->buf->rank; i++)
        if (s->idx[i] == feature) return false;
    return true;
}

/* Summed by one loop over entries, which does not read it, and read after that. */
static bool is_scalar_of_entries(const Group *t, const LBuf *b) {
    int at = 0;
    if (t->jam) return false;
    while (at < t->n && loop_count_accesses(t->stmt[at]->body, b) == 0) at++;
    if (loop_count_accesses(t->stmt[at]->body, b) != 1) return false;
    for (int i = at + 1; i < t->n; i++)
        if (loop_writes(t->stmt[i]->body, b)) return false;
    for (const LStmt *s = t->stmt[at]->body; s; s = s->next)
        if (is_scalar_sum(s) && s->buf == b) return true;
    return false;
}

/* An access to a written buffer must be lane by lane; where possible its row becomes a cell. */
static bool access_is_fine(Group *t, const LStmt *s, const LReg *feature) {
    if (!group_writes(t, s->buf)) return s->buf->kind != LB_LOCAL || is_scalar(s, feature);
    if (is_scalar_of_entries(t, s->buf)) return true;
    if (!feature || s->buf->rank == 0 || s->idx[s->buf->rank - 1] != feature) return false;
    if (!apart_by_head(t, s)) return false;
    if (!row_is_outer(t, s)) return s->buf->kind != LB_LOCAL && s->kind == L_STORE;
    CgCell *c = cell_for(t, s);
    return c && same_row(c->first, s);
}

static bool body_is_fine(Group *t, const LStmt *s, const LReg *feature) {
    for (; s; s = s->next) {
        if (s->kind == L_LOCAL || (feature && s->kind == L_FOR)) return false;
        bool access = s->kind == L_LOAD || s->kind == L_STORE || s->kind == L_ACC;
        if (access && !access_is_fine(t, s, feature)) return false;
        if (s->kind == L_FOR && !body_is_fine(t, s->body, s->var)) return false;
        if (s->kind == L_IF && !body_is_fine(t, s->body, feature)) return false;
    }
    return true;
}

/* A buffer written once per entry (not a cell) must not be touched in another way. */
static bool streams_are_fine(const Group *t, const LStmt *s) {
    for (; s; s = s->next) {
        if ((s->kind == L_FOR || s->kind == L_IF) && !streams_are_fine(t, s->body)) return false;
        if (s->kind != L_STORE || row_is_outer(t, s)) continue;
        int n = 0;
        for (int i = 0; i < t->n; i++) n += loop_count_accesses(t->stmt[i]->body, s->buf);
        if (n != 1) return false;
    }
    return true;
}

/* Local rows vanish: nobody else may want them. */
static bool cells_are_fine(const Group *t) {
    for (int i = 0; i < t->n_cell; i++) {
        const LBuf *b = t->cell[i].first->buf;
        int inside = 0;
        for (int j = 0; j < t->n; j++) inside += loop_count_accesses(t->stmt[j]->body, b);
        if (b->kind == LB_LOCAL && inside != loop_count_accesses(t->f->k->body, b)) return false;
    }
    return true;
}

static bool group_is_fine(Group *t) {
    t->n_cell = 0;
    for (int i = 0; i < t->n; i++) {
        const LReg *feature = is_row_loop(t, t->stmt[i]) ? t->stmt[i]->var : NULL;
        if (!body_is_fine(t, t->stmt[i]->body, feature)) return false;
    }
    for (int i = 0; i < t->n; i++)
        if (!streams_are_fine(t, t->stmt[i]->body)) return false;
    return cells_are_fine(t);
}

static bool adds_to(const LStmt *s, const LBuf *b) {
    for (; s; s = s->next)
        if ((s->kind == L_ACC && s->buf == b) || adds_to(s->body, b)) return true;
    return false;
}

/* A local row of constant width stays in registers as cpu_vector_loop() emits it, up to a width;
 * one in memory would be loaded and stored for each entry. */
static bool wants_tiles(const Group *t) {
    int64_t n;
    if (!expr_is_const(t->width, &n) ||
        n > (int64_t)t->f->g->machine.lanes * LOOP_WHOLE_VECTORS_MAX)
        return true;
    for (int i = 0; i < t->n_cell; i++)
        for (int k = 0; k < t->n; k++)
            if (t->cell[i].first->buf->kind != LB_LOCAL && !is_row_loop(t, t->stmt[k]) &&
                adds_to(t->stmt[k]->body, t->cell[i].first->buf))
                return true;
    return false;
}

/* The longest run of statements from s on that may be tiled. */
static bool find_group(Group *t, const LStmt *s, const LStmt *end) {
    for (; s != end && t->n < GROUP_MAX; s = s->next) {
        bool entries = is_entry_loop(t, s);
        if (!entries && !is_row_loop(t, s)) break;
        t->stmt[t->n++] = s;
    }
    for (; t->n > 0; t->n--) {
        t->has_entries = false;
        for (int i = 0; i < t->n; i++) t->has_entries |= !is_row_loop(t, t->stmt[i]);
        if (!t->has_entries) return false;
        if (group_is_fine(t)) return true;
    }
    return false;
}

/* ---- emission ----------------------------------------------------------------------------- */

static void set_head(Group *t, int head) {
    if (t->jam) t->f->reg[t->jam->var->id] = (CgVal){cpu_i64(t->f->g, head), FORM_ONE, false};
}

/* Lanes of vector k of a head: all, or what is left of the row. */
static LLVMValueRef lanes_of(Group *t, int k) {
    Cg *g = t->f->g;
    if (!t->left || k < t->full) return NULL;
    LLVMValueRef zero = cpu_i64(g, 0);
    LLVMValueRef n = LLVMBuildNSWSub(g->b, t->left, cpu_i64(g, (int64_t)k * t->w), "");
    LLVMValueRef none = LLVMBuildICmp(g->b, LLVMIntSLT, n, zero, "");
    return cpu_first_lanes(t->f, LLVMBuildSelect(g->b, none, zero, n, ""));
}

static void enter_vector(Group *t, const LReg *feature, int head, int k) {
    CgFn *f = t->f;
    Cg *g = f->g;
    f->w = t->w;
    f->mask = f->rest = lanes_of(t, k);
    f->vector = head * t->vectors + k;
    LLVMValueRef at = LLVMBuildNSWAdd(g->b, t->i, cpu_i64(g, (int64_t)k * f->w), "");
    f->reg[feature->id] = (CgVal){at, FORM_SEQ, false};
}

static void leave_vectors(CgFn *f) {
    f->w = 1, f->mask = f->rest = NULL;
}

static void emit_row_loop(Group *t, const LStmt *s, int head) {
    set_head(t, head);
    for (int k = 0; k < t->vectors; k++) {
        enter_vector(t, s->var, head, k);
        cpu_block(t->f, s->body);
    }
    leave_vectors(t->f);
}

/* The entries are read once per tile, but their scalars are summed once. */
static void emit_scalar_sum(Group *t, const LStmt *s) {
    CgFn *f = t->f;
    Cg *g = f->g;
    LLVMBasicBlockRef sum = cpu_new_block(f, "sum"), end = cpu_new_block(f, "summed");
    LLVMValueRef first = LLVMBuildICmp(g->b, LLVMIntEQ, t->i, cpu_i64(g, 0), "");
    LLVMBuildCondBr(g->b, first, sum, end);
    LLVMPositionBuilderAtEnd(g->b, sum);
    cpu_stmt(f, s);
    LLVMBuildBr(g->b, end);
    LLVMPositionBuilderAtEnd(g->b, end);
}

static void entry_body(CgFn *f, const LStmt *first, void *arg) {
    Group *t = arg;
    for (int head = 0; head < t->heads; head++) {
        set_head(t, head);
        for (const LStmt *s = first; s; s = s->next) {
            if (s->kind == L_FOR)
                emit_row_loop(t, s, head);
            else if (s->kind == L_ACC)
                emit_scalar_sum(t, s);
            else
                cpu_stmt(f, s);
        }
    }
}

/* Whether the first access, in program order, gives the row a value whatever happened before. */
static bool starts_with_store(const Group *t, const CgCell *c) {
    for (int i = 0; i < t->n; i++) {
        if (loop_count_accesses(t->stmt[i]->body, c->first->buf) == 0) continue;
        if (!is_row_loop(t, t->stmt[i])) return false;
        for (const LStmt *s = t->stmt[i]->body; s; s = s->next)
            if (s == c->first) return s->kind == L_STORE;
    }
    return false;
}

/* Runs fn for every vector of a cell's rows. */
static void each_vector(Group *t, CgCell *c, void (*fn)(CgFn *, CgCell *)) {
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

static void open_cells(Group *t) {
    CgFn *f = t->f;
    int n = t->heads * t->vectors;
    for (int i = 0; i < t->n_cell; i++) {
        CgCell *c = &t->cell[i];
        const LBuf *b = c->first->buf;
        c->at = NEWN(f->g->a, LLVMValueRef, n);
        for (int k = 0; k < n; k++)
            c->at[k] = cpu_alloca(f, cpu_wide(cpu_type(f->g, b->dt), t->w), 1);
        if (b->kind != LB_LOCAL && !starts_with_store(t, c)) each_vector(t, c, cpu_cell_fill);
    }
    f->cell = t->cell, f->n_cell = t->n_cell;
}

static void close_cells(Group *t) {
    t->f->cell = NULL, t->f->n_cell = 0;
    for (int i = 0; i < t->n_cell; i++)
        if (t->cell[i].first->buf->kind != LB_LOCAL) each_vector(t, &t->cell[i], cpu_cell_flush);
}

static void emit_tile(Group *t, LLVMValueRef i, LLVMValueRef left, int full, int vectors) {
    t->i = i, t->left = left, t->full = full, t->vectors = vectors;
    if (!t->jam) t->f->tile_at = i, t->f->tile_len = vectors * t->w;
    open_cells(t);
    for (int k = 0; k < t->n; k++) {
        cpu_debug_at(t->f, t->stmt[k]->span);
        if (is_row_loop(t, t->stmt[k])) {
            for (int head = 0; head < t->heads; head++) emit_row_loop(t, t->stmt[k], head);
        } else {
            cpu_entry_loop(t->f, t->stmt[k], !t->jam, entry_body, t);
        }
    }
    close_cells(t);
    t->f->tile_at = NULL;
}

static void emit_tiles(Group *t, LLVMValueRef end, int vectors) {
    CgLoop l = cpu_loop_begin(t->f, cpu_i64(t->f->g, 0), end, (int64_t)vectors * t->w);
    emit_tile(t, l.i, NULL, 0, vectors);
    cpu_loop_end(t->f, &l);
}

/* A constant number of features from `at` on, the last vector cut short. */
static void emit_rest(Group *t, int64_t at, int64_t n) {
    Cg *g = t->f->g;
    int full = (int)(n / t->w);
    if (n > 0)
        emit_tile(t, cpu_i64(g, at), n % t->w ? cpu_i64(g, n) : NULL, full, full + (n % t->w > 0));
}

/* Fewer features than in `vectors` vectors: a tile of the least power of two that holds them. */
static void emit_open_rest(Group *t, LLVMValueRef at, LLVMValueRef left, int vectors) {
    CgFn *f = t->f;
    Cg *g = f->g;
    LLVMBasicBlockRef end = cpu_new_block(f, "end");
    for (; vectors > 0; vectors /= 2) {
        int full = vectors / 2;
        LLVMBasicBlockRef some = cpu_new_block(f, "rest"), fewer = cpu_new_block(f, "fewer");
        LLVMValueRef than = cpu_i64(g, (int64_t)full * t->w);
        LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSGT, left, than, ""), some, fewer);
        LLVMPositionBuilderAtEnd(g->b, some);
        emit_tile(t, at, left, full, vectors);
        LLVMBuildBr(g->b, end);
        LLVMMoveBasicBlockAfter(fewer, LLVMGetInsertBlock(g->b));
        LLVMPositionBuilderAtEnd(g->b, fewer);
    }
    LLVMBuildBr(g->b, end);
    LLVMMoveBasicBlockAfter(end, LLVMGetInsertBlock(g->b));
    LLVMPositionBuilderAtEnd(g->b, end);
}

/* Bytes of an element of the rows that entries read: the most. */
static int row_bytes(const LStmt *s, const LReg *feature) {
    int most = 0;
    for (; s; s = s->next) {
        int n = 0;
        if (s->kind == L_FOR) n = row_bytes(s->body, s->sched.vector ? s->var : feature);
        if (s->kind == L_IF) n = row_bytes(s->body, feature);
        bool row = s->kind == L_LOAD && s->buf->kind != LB_LOCAL && s->buf->rank > 1;
        if (row && s->idx[s->buf->rank - 1] == feature) n = dtype_bytes(s->buf->dt);
        if (n > most) most = n;
    }
    return most;
}

/* TILE is as many bytes of a row as are good to ask for at a time: twice the vectors of 16-bit
 * elements, where there are registers for their sums. */
static int tile_vectors(const Group *t) {
    int most = t->f->g->machine.tile, bytes = 0;
    for (int i = 0; i < t->n; i++) {
        int n = t->stmt[i]->sched.vector ? 0 : row_bytes(t->stmt[i]->body, NULL);
        if (n > bytes) bytes = n;
    }
    int wanted = bytes == 2 && t->n_cell * 2 * TILE <= most ? 2 * TILE : TILE;
    return most < wanted ? most : wanted;
}

/* Tiles of whole vectors, then the rest in one go. */
static void emit_group(Group *t) {
    Cg *g = t->f->g;
    int64_t n;
    int most = tile_vectors(t);
    if (expr_is_const(t->width, &n)) {
        int64_t whole = n / (most * t->w) * (most * t->w);
        if (whole > 0) emit_tiles(t, cpu_i64(g, whole), most);
        emit_rest(t, whole, n - whole);
        return;
    }
    LLVMValueRef width = cpu_size(t->f, t->width);
    LLVMValueRef whole = LLVMBuildAnd(g->b, width, cpu_i64(g, -((int64_t)most * t->w)), "");
    emit_tiles(t, whole, most);
    emit_open_rest(t, whole, LLVMBuildNSWSub(g->b, width, whole, ""), most);
}

/* ---- entry -------- */

/* The width of the row loops among s and what follows. */
static const Expr *find_width(const LStmt *s) {
    for (; s; s = s->next) {
        if (s->kind != L_FOR || s->range != LR_EXTENT || s->sched.parallel) continue;
        if (s->sched.vector) return s->extent;
    }
    return NULL;
}

/* Heads: all of the loop's body is one group, and their rows fit in registers. */
static bool jammed(CgFn *f, const LStmt *s) {
    int64_t heads, width;
    const LStmt *first = s->body;
    while (first && first->kind == L_LOCAL) first = first->next;
    if (s->range != LR_EXTENT || !expr_is_const(s->extent, &heads) || heads < 2) return false;
    Group t = {.f = f, .jam = s, .width = find_width(first)};
    if (!t.width || !expr_is_const(t.width, &width) || width < 1) return false;
    int most = f->g->machine.tile;
    t.heads = (int)(heads > most ? most + 1 : heads);
    t.w = cpu_width_for(f, width);
    int64_t vectors = (width + t.w - 1) / t.w;
    if (t.w == 1 || vectors * t.heads > most || !find_group(&t, first, NULL)) return false;
    if (t.stmt[t.n - 1]->next) return false;
    if (t.n_cell * vectors * t.heads > 2 * most) return false;
    emit_rest(&t, 0, width);
    return true;
}

const LStmt *cpu_tiled_rows(CgFn *f, const LStmt *s, const LStmt *end) {
    if (f->g->machine.lanes == 1 || s->kind != L_FOR || s->sched.parallel) return NULL;
    if (!s->sched.vector && jammed(f, s)) return s;
    Group t = {.f = f, .heads = 1, .w = f->g->machine.lanes};
    t.width = s->sched.vector ? find_width(s) : find_width(s->body);
    if (!t.width || !find_group(&t, s, end) || !wants_tiles(&t)) return NULL;
    int64_t n;
    if (expr_is_const(t.width, &n)) t.w = cpu_width_for(f, n);
    if (t.w == 1) return NULL;
    emit_group(&t);
    return t.stmt[t.n - 1];
}
