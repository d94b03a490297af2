/* Which statements of a row may be done for a tile of its columns at a time, and why others may
 * not.
 *
 * They are vector loops over the row's columns, and loops over entries around such.  Every buffer
 * that they write is reached through the column (and the head) alone, so no lane reads what another
 * one wrote.  Nothing is changed here: the pass is tile.c. */
#include "codegen/loop_passes/tile.h"

/* Records why there is no tile; returns false. */
bool loop_tile_refuse(LoopTile *t, const char *why) {
    t->reason = why;
    return false;
}

/* ---- what belongs together ----------------------------------------------------------- */
bool loop_is_vector_loop_over(const LStmt *s, const Expr *width) {
    return s->kind == L_FOR && s->sched.vector && !s->sched.parallel && s->range == LR_EXTENT &&
           expr_eq(s->extent, width);
}

bool loop_tile_is_vector_loop(const LoopTile *t, const LStmt *s) {
    return loop_is_vector_loop_over(s, t->width);
}

/* Whether s accumulates a scalar over entries, such as the denominator of a softmax. */
static bool is_scalar_sum(const LStmt *s) {
    if (s->kind != L_ACC || s->buf->kind != LB_LOCAL) return false;
    for (int i = 0; i < s->buf->rank; i++)
        if (!loop_is_unit_extent(s->buf->dim[i])) return false;
    return true;
}

/* Whether s is a loop over entries that consists of scalars, scalar sums and then vector loops over
 * the tile's columns. */
static bool is_entry_loop(const LoopTile *t, const LStmt *s) {
    int64_t n;
    if (s->kind != L_FOR || s->sched.vector || s->sched.parallel) return false;
    if (s->sched.unroll && !(loop_extent(s, &n) && n == 1)) return false;
    const LStmt *first_loop = s->body;
    while (first_loop && first_loop->kind == L_PREFETCH) first_loop = first_loop->next;
    while (first_loop && (loop_is_value(first_loop) || is_scalar_sum(first_loop)))
        first_loop = first_loop->next;
    if (!first_loop) return false;
    for (; first_loop; first_loop = first_loop->next)
        if (!loop_tile_is_vector_loop(t, first_loop)) return false;
    return true;
}

/* Whether statements of the tile write buffer b. */
static bool tile_writes(const LoopTile *t, const LBuf *b) {
    for (int i = 0; i < t->n; i++)
        if (loop_writes(t->stmt[i]->body, b)) return true;
    return false;
}

/* Whether statements of the tile define register r. */
static bool tile_defines(const LoopTile *t, const LReg *r) {
    for (int i = 0; i < t->n; i++)
        if (t->stmt[i]->var == r || loop_defines(t->stmt[i]->body, r)) return true;
    return false;
}

/* How many accesses to buffer b the tile has. */
static int count_tile_accesses(const LoopTile *t, const LBuf *b) {
    int n = 0;
    for (int i = 0; i < t->n; i++) n += loop_count_accesses(t->stmt[i]->body, b);
    return n;
}

/* ---- may it be done tile by tile? ---------------------------------------------------------- */
/* Whether two accesses to a buffer are to the same row: all indices but the last are equal. */
static bool is_same_row(const LStmt *x, const LStmt *y) {
    for (int i = 0; i + 1 < x->buf->rank; i++)
        if (x->idx[i] != y->idx[i]) return false;
    return true;
}

/* Whether the row of the access is chosen by indices from outside the tile, so that it is one row
 * for the whole tile. */
static bool row_is_chosen_outside(const LoopTile *t, const LStmt *s) {
    for (int i = 0; i + 1 < s->buf->rank; i++)
        if (tile_defines(t, s->idx[i])) return false;
    return true;
}

/* The first access to the row of s, which the tile holds in registers; adds it if it is new. NULL:
 * there are too many rows. */
static const LStmt *register_row_of(LoopTile *t, const LStmt *s) {
    for (int i = 0; i < t->n_rows; i++)
        if (t->row[i]->buf == s->buf) return t->row[i];
    return t->n_rows == LOOP_KEPT_MAX ? NULL : (t->row[t->n_rows++] = s);
}

/* Whether each head has its own row, or local array, in this access. */
static bool is_per_head(const LoopTile *t, const LStmt *s) {
    if (!t->jam || loop_declares_directly(t->jam, s->buf)) return true;
    for (int i = 0; i + 1 < s->buf->rank; i++)
        if (s->idx[i] == t->jam->var) return true;
    return false;
}

/* Whether the access is to the same element for all columns. */
static bool is_column_invariant(const LStmt *s, const LReg *column) {
    for (int i = 0; i < s->buf->rank; i++)
        if (s->idx[i] == column) return false;
    return true;
}

/* Whether b is a scalar that exactly one loop over entries sums, that this loop does not read, and
 * that is only read after it. */
static bool is_scalar_of_entries(const LoopTile *t, const LBuf *b) {
    int entry_loop = 0;
    if (t->jam) return false;
    while (entry_loop < t->n && loop_count_accesses(t->stmt[entry_loop]->body, b) == 0)
        entry_loop++;
    if (loop_count_accesses(t->stmt[entry_loop]->body, b) != 1) return false;
    for (int i = entry_loop + 1; i < t->n; i++)
        if (loop_writes(t->stmt[i]->body, b)) return false;
    for (const LStmt *s = t->stmt[entry_loop]->body; s; s = s->next)
        if (is_scalar_sum(s) && s->buf == b) return true;
    return false;
}

/* Checks one access of the tile: a written buffer must be accessed by column, in a row that
 * registers can hold. Two others are allowed: scalars that are summed for each entry, and rows of
 * an entry that are stored and not read. column: the variable of the column loop around the access;
 * NULL = none. */
static bool check_access(LoopTile *t, const LStmt *s, const LReg *column) {
    if (!tile_writes(t, s->buf))
        return s->buf->kind != LB_LOCAL || is_column_invariant(s, column) ||
               loop_tile_refuse(t, "columns of a local array are read that are not written there");
    if (is_scalar_of_entries(t, s->buf)) return true;
    if (!column || s->buf->rank == 0 || s->idx[s->buf->rank - 1] != column)
        return loop_tile_refuse(t, "something is written that is no column of a row");
    if (!is_per_head(t, s)) return loop_tile_refuse(t, "heads share a row");
    if (!row_is_chosen_outside(t, s))
        return (s->buf->kind != LB_LOCAL && s->kind == L_STORE) ||
               loop_tile_refuse(t, "a row of an entry is written and read");
    const LStmt *row = register_row_of(t, s);
    if (!row) return loop_tile_refuse(t, "there are too many rows to keep in registers");
    return is_same_row(row, s) || loop_tile_refuse(t, "several rows of one array are written");
}

/* Checks the statements of a body. column: the variable of the column loop around them; NULL =
 * none. */
static bool check_body(LoopTile *t, const LStmt *s, const LReg *column) {
    for (; s; s = s->next) {
        bool is_plain = loop_is_access(s) || s->kind == L_LET || s->kind == L_IF;
        bool is_loop = s->kind == L_FOR || s->kind == L_PREFETCH;
        if (!is_plain && !(is_loop && !column))
            return loop_tile_refuse(t, "there is more than rows in it");
        if (loop_is_access(s) && !check_access(t, s, column)) return false;
        if (s->kind == L_FOR && !check_body(t, s->body, s->var)) return false;
        if (s->kind == L_IF && !check_body(t, s->body, column)) return false;
    }
    return true;
}

/* Checks that a row which is stored once per entry (a result on edges) is not accessed in any other
 * way. */
static bool check_entry_rows(LoopTile *t, const LStmt *s) {
    for (; s; s = s->next) {
        if (loop_has_body(s) && !check_entry_rows(t, s->body)) return false;
        if (s->kind != L_STORE || row_is_chosen_outside(t, s)) continue;
        if (count_tile_accesses(t, s->buf) != 1)
            return loop_tile_refuse(t, "a row of an entry is written and read");
    }
    return true;
}

/* Checks that local rows, which the tile holds in registers only, are used nowhere else. */
static bool check_local_rows(LoopTile *t) {
    for (int i = 0; i < t->n_rows; i++) {
        const LBuf *b = t->row[i]->buf;
        if (b->kind == LB_LOCAL && count_tile_accesses(t, b) != loop_count_accesses(t->k->body, b))
            return loop_tile_refuse(t, "a local row is read elsewhere, too");
    }
    return true;
}

/* Whether the tile's statements can be run for one tile of columns after the other; finds the rows
 * to be held in registers. */
bool loop_tile_is_legal(LoopTile *t) {
    t->n_rows = 0;
    for (int i = 0; i < t->n; i++) {
        const LReg *column = loop_tile_is_vector_loop(t, t->stmt[i]) ? t->stmt[i]->var : NULL;
        if (!check_body(t, t->stmt[i]->body, column)) return false;
    }
    for (int i = 0; i < t->n; i++)
        if (!check_entry_rows(t, t->stmt[i]->body)) return false;
    return check_local_rows(t);
}

/* Whether the tile has a loop over entries. */
bool loop_tile_has_entries(const LoopTile *t) {
    for (int i = 0; i < t->n; i++)
        if (!loop_tile_is_vector_loop(t, t->stmt[i])) return true;
    return false;
}

/* ---- of a text ------------------------------------------------------------------------------ */
/* Whether the numbers of columns, lanes and heads that the text gives the tile are possible. */
static bool check_shape(const LStmt *s, const LStmt *jam) {
    int64_t width = 0, heads = 1;
    int vectors = s->columns / s->lanes;
    if (s->columns % s->lanes || vectors < 1) return false;
    if (!jam) return (vectors & (vectors - 1)) == 0 && vectors <= LOOP_TILE_MAX;
    if (!expr_is_const(s->extent, &width) || !loop_extent(jam, &heads)) return false;
    if (width < 1 || width > s->columns || width <= s->columns - s->lanes) return false;
    return heads > 1 && heads <= LOOP_TILE_MAX && heads * vectors <= LOOP_TILE_MAX;
}

/* Whether no loop over entries is strip-mined where heads are jammed: with heads, entries are
 * visited for all heads together. */
static bool check_entries(const LStmt *s, const LStmt *jam) {
    for (; s; s = s->next)
        if (jam && s->sched.strips) return false;
    return true;
}

bool loop_may_tile(const LKernel *k, const LStmt *tile, const LStmt *jam) {
    LoopTile check = {.k = k, .width = tile->extent, .jam = jam, .lanes = tile->lanes};
    for (LStmt *s = tile->body; s; s = s->next) {
        if (check.n == LOOP_TILE_STATEMENTS_MAX ||
            !(loop_tile_is_vector_loop(&check, s) || is_entry_loop(&check, s)))
            return false;
        check.stmt[check.n++] = s;
    }
    if (!check_shape(tile, jam) || !check_entries(tile->body, jam)) return false;
    if (!loop_tile_has_entries(&check) || !loop_tile_is_legal(&check) ||
        check.n_rows != tile->in_registers.n)
        return false;
    for (int i = 0; i < check.n_rows; i++)
        if (check.row[i]->buf != tile->in_registers.v[i]) return false;
    return true;
}

const LStmt *loop_jammed_tile(const LStmt *jam) {
    const LStmt *s = jam->body;
    while (s && s->kind == L_LOCAL) s = s->next;
    return s && s->kind == L_TILE && !s->next ? s : NULL;
}

/* ---- which groups there are ----------------------------------------------------------------- */
bool loop_find_tile(LoopTile *t, LStmt *s, const LStmt *end) {
    for (; s != end && t->n < LOOP_TILE_STATEMENTS_MAX; s = s->next) {
        if (!is_entry_loop(t, s) && !loop_tile_is_vector_loop(t, s)) break;
        t->stmt[t->n++] = s;
    }
    for (; t->n > 0; t->n--) {
        if (!loop_tile_has_entries(t)) return false;
        if (loop_tile_is_legal(t)) return true;
    }
    return false;
}
