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
 * It is the same work in another order, lane by lane: allowed when every buffer that the
 * statements write is reached through the feature index alone, so no lane reads what another
 * one wrote; the order of additions into an element does not change. */
#include "codegen/cpu/cpu.h"

enum { TILE = 4 /* vectors */, CELLS_MAX = 4, GROUP_MAX = 16 };

typedef struct {
    CgFn *f;
    const LStmt *stmt[GROUP_MAX]; /* vector loops over `width`, entry loops around such */
    int n;
    const Expr *width;
    CgCell cell[CELLS_MAX]; /* rows kept in registers */
    int n_cell;
    bool has_entries;
    /* of the tile being emitted */
    LLVMValueRef i, left; /* its first feature; how many are left, NULL = enough */
    int vectors;
} Group;

/* ---- what belongs together ----------------------------------------------------------- */

static bool is_row_loop(const Group *t, const LStmt *s) {
    return s->kind == L_FOR && s->sched.vector && !s->sched.parallel && s->range == LR_EXTENT &&
           expr_eq(s->extent, t->width);
}

/* Scalars, then row loops. */
static bool is_entry_loop(const Group *t, const LStmt *s) {
    if (s->kind != L_FOR || s->sched.vector || s->sched.parallel || s->sched.unroll) return false;
    const LStmt *p = s->body;
    while (p && (p->kind == L_LET || p->kind == L_LOAD)) p = p->next;
    if (!p) return false;
    for (; p; p = p->next)
        if (!is_row_loop(t, p)) return false;
    return true;
}

static bool writes(const LStmt *s, const LBuf *b) {
    for (; s; s = s->next) {
        if ((s->kind == L_STORE || s->kind == L_ACC) && s->buf == b) return true;
        if ((s->kind == L_FOR || s->kind == L_IF) && writes(s->body, b)) return true;
    }
    return false;
}

static bool group_writes(const Group *t, const LBuf *b) {
    for (int i = 0; i < t->n; i++)
        if (writes(t->stmt[i]->body, b)) return true;
    return false;
}

static bool group_defines(const Group *t, const LReg *r) {
    for (int i = 0; i < t->n; i++)
        if (t->stmt[i]->var == r || cpu_reg_defined_in(t->stmt[i]->body, r)) return true;
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

/* An access to a written buffer must be lane by lane; where possible its row becomes a cell. */
static bool access_is_fine(Group *t, const LStmt *s, const LReg *feature) {
    if (!group_writes(t, s->buf)) return s->buf->kind != LB_LOCAL;
    if (!feature || s->buf->rank == 0 || s->idx[s->buf->rank - 1] != feature) return false;
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
static int count_accesses(const LStmt *s, const LBuf *b) {
    int n = 0;
    for (; s; s = s->next) {
        if (s->kind == L_LOAD || s->kind == L_STORE || s->kind == L_ACC) n += s->buf == b;
        if (s->kind == L_FOR || s->kind == L_IF) n += count_accesses(s->body, b);
    }
    return n;
}

static bool streams_are_fine(const Group *t, const LStmt *s) {
    for (; s; s = s->next) {
        if ((s->kind == L_FOR || s->kind == L_IF) && !streams_are_fine(t, s->body)) return false;
        if (s->kind != L_STORE || row_is_outer(t, s)) continue;
        int n = 0;
        for (int i = 0; i < t->n; i++) n += count_accesses(t->stmt[i]->body, s->buf);
        if (n != 1) return false;
    }
    return true;
}

/* Local rows vanish: nobody else may want them. */
static bool cells_are_fine(const Group *t) {
    for (int i = 0; i < t->n_cell; i++) {
        const LBuf *b = t->cell[i].first->buf;
        int inside = 0;
        for (int j = 0; j < t->n; j++) inside += count_accesses(t->stmt[j]->body, b);
        if (b->kind == LB_LOCAL && inside != count_accesses(t->f->k->body, b)) return false;
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

/* The width from which on cpu_vector_loop() would not keep a local row in registers. */
static bool wants_tiles(const Group *t) {
    int64_t n;
    return !expr_is_const(t->width, &n) || n > (int64_t)t->f->g->machine.lanes * WHOLE_VECTORS_MAX;
}

/* The longest run of statements from s on that may be tiled. */
static bool find_group(Group *t, const LStmt *s) {
    for (; s && t->n < GROUP_MAX; s = s->next) {
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

static void emit_row_loop(Group *t, const LStmt *s) {
    CgFn *f = t->f;
    Cg *g = f->g;
    f->w = g->machine.lanes;
    for (int k = 0; k < t->vectors; k++) {
        LLVMValueRef at = LLVMBuildNSWAdd(g->b, t->i, cpu_i64(g, (int64_t)k * f->w), "");
        f->mask = f->rest = t->left ? cpu_first_lanes(f, t->left) : NULL;
        f->vector = k;
        f->reg[s->var->id] = (CgVal){at, FORM_SEQ, false};
        cpu_block(f, s->body);
    }
    f->w = 1, f->mask = f->rest = NULL;
}

static void entry_body(CgFn *f, const LStmt *s, void *arg) {
    Group *t = arg;
    for (; s; s = s->next) {
        if (s->kind == L_FOR)
            emit_row_loop(t, s);
        else
            cpu_stmt(f, s);
    }
}

/* Whether the first access, in program order, gives the row a value whatever happened before. */
static bool starts_with_store(const Group *t, const CgCell *c) {
    for (int i = 0; i < t->n; i++) {
        if (count_accesses(t->stmt[i]->body, c->first->buf) == 0) continue;
        if (!is_row_loop(t, t->stmt[i])) return false;
        for (const LStmt *s = t->stmt[i]->body; s; s = s->next)
            if (s == c->first) return s->kind == L_STORE;
    }
    return false;
}

/* Runs fn for every vector of a cell's row, the row's feature index set to that vector. */
static void each_vector(Group *t, CgCell *c, void (*fn)(CgFn *, CgCell *)) {
    CgFn *f = t->f;
    f->w = f->g->machine.lanes;
    const LReg *feature = c->first->idx[c->first->buf->rank - 1];
    for (int k = 0; k < t->vectors; k++) {
        LLVMValueRef at = LLVMBuildNSWAdd(f->g->b, t->i, cpu_i64(f->g, (int64_t)k * f->w), "");
        f->mask = f->rest = t->left ? cpu_first_lanes(f, t->left) : NULL;
        f->vector = k;
        f->reg[feature->id] = (CgVal){at, FORM_SEQ, false};
        fn(f, c);
    }
    f->w = 1, f->mask = f->rest = NULL;
}

static void open_cells(Group *t) {
    CgFn *f = t->f;
    for (int i = 0; i < t->n_cell; i++) {
        CgCell *c = &t->cell[i];
        LLVMTypeRef vt = cpu_wide(cpu_type(f->g, c->first->buf->dt), f->g->machine.lanes);
        c->at = NEWN(f->g->a, LLVMValueRef, t->vectors);
        for (int k = 0; k < t->vectors; k++) c->at[k] = cpu_alloca(f, vt, 1);
        if (c->first->buf->kind != LB_LOCAL && !starts_with_store(t, c))
            each_vector(t, c, cpu_cell_fill);
    }
    f->cell = t->cell, f->n_cell = t->n_cell;
}

static void close_cells(Group *t) {
    t->f->cell = NULL, t->f->n_cell = 0;
    for (int i = 0; i < t->n_cell; i++) {
        if (t->cell[i].first->buf->kind != LB_LOCAL) each_vector(t, &t->cell[i], cpu_cell_flush);
    }
}

static void emit_tile(Group *t, LLVMValueRef i, LLVMValueRef left, int vectors) {
    t->i = i, t->left = left, t->vectors = vectors;
    open_cells(t);
    for (int k = 0; k < t->n; k++) {
        cpu_debug_at(t->f, t->stmt[k]->span);
        if (is_row_loop(t, t->stmt[k]))
            emit_row_loop(t, t->stmt[k]);
        else
            cpu_entry_loop(t->f, t->stmt[k], entry_body, t);
    }
    close_cells(t);
}

/* Tiles of TILE whole vectors, then vectors one by one, the last one cut short. */
static void emit_group(Group *t) {
    CgFn *f = t->f;
    Cg *g = f->g;
    int64_t lanes = g->machine.lanes, n;
    LLVMValueRef width = cpu_size(f, t->width);
    LLVMValueRef whole = LLVMBuildAnd(g->b, width, cpu_i64(g, -(TILE * lanes)), "");
    CgLoop l = cpu_loop_begin(f, cpu_i64(g, 0), whole, TILE * lanes);
    emit_tile(t, l.i, NULL, TILE);
    cpu_loop_end(f, &l);
    if (expr_is_const(t->width, &n) && n % (TILE * lanes) == 0) return;
    l = cpu_loop_begin(f, whole, width, lanes);
    emit_tile(t, l.i, LLVMBuildNSWSub(g->b, width, l.i, ""), 1);
    cpu_loop_end(f, &l);
}

const LStmt *cpu_tiled_rows(CgFn *f, const LStmt *s) {
    Group t = {.f = f};
    if (f->g->machine.lanes == 1 || s->kind != L_FOR || s->sched.parallel) return NULL;
    const LStmt *row = s->sched.vector ? s : s->body;
    while (row && row->kind != L_FOR) row = row->next;
    if (!row || row->kind != L_FOR || row->range != LR_EXTENT) return NULL;
    t.width = row->extent;
    if (!wants_tiles(&t) || !find_group(&t, s)) return NULL;
    emit_group(&t);
    return t.stmt[t.n - 1];
}
