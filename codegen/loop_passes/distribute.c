/* A loop over entries that adds up numbers of the row and columns too, as two loops: entries are
 * dealt to threads where they are added up to numbers, to ways where they are to columns.
 *
 *     for e in segment ptr[v] {             for e in segment ptr[v] {
 *       w of e                                w of e
 *       acc sum total w                       acc sum total w
 *       for c in C vector {                 }
 *         acc sum y[c] w z[e, c]            for e in segment ptr[v] {
 *       }                                     w of e
 *     }                                       for c in C vector { acc sum y[c] w z[e, c] }
 *                                           }
 *
 * Where lanes have all columns at once, one loop does both (codegen/loop_passes/columns.c).  (Loop
 * distribution: Kennedy and McKinley 1990.) */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* Whether there is a loop over more feature columns than the lanes of a team can hold, or over a
 * number that only the data know. */
static bool has_wide_columns(const Loops *l, const LStmt *s) {
    for (int64_t n; s; s = s->next) {
        bool is_column_loop = s->kind == L_FOR && s->sched.vector;
        bool fits = loop_extent(s, &n) && loop_fits_lanes(l->on, n, l->columns);
        if (is_column_loop && !fits) return true;
        if (loop_has_body(s) && has_wide_columns(l, s->body)) return true;
    }
    return false;
}

/* One half of a distributed loop: which registers and local variables it needs. */
typedef struct {
    const LStmt *body;
    bool scalar_sums; /* which sums stay */
    bool *reg, *buf;  /* [n_regs], [locals] are needed */
    bool changed;
} Slice;

/* Sets a flag of the slice, and notes whether it was new. */
static void mark_needed(Slice *slice, bool *flag) {
    slice->changed = slice->changed || !*flag;
    *flag = true;
}

/* Whether statement s belongs to this half of the loop: it computes what the half needs, or it is
 * one of the half's sums. */
static bool is_in_slice(const Slice *slice, const LStmt *s) {
    bool local = s->buf && s->buf->kind == LB_LOCAL;
    bool is_own = local && loop_declares(slice->body, s->buf);
    if (loop_is_value(s)) return slice->reg[s->dst->id];
    if (s->kind == L_LOCAL || is_own) return slice->buf[s->buf->id];
    if (s->kind == L_ACC) return (local && s->buf->rank == 0) == slice->scalar_sums;
    for (const LStmt *inner = loop_has_body(s) ? s->body : NULL; inner; inner = inner->next)
        if (is_in_slice(slice, inner)) return true;
    return !loop_has_body(s) && !slice->scalar_sums; /* a store */
}

/* Records what the statements of this half need. */
static void mark_slice(Slice *slice, const LStmt *s) {
    for (; s; s = s->next) {
        if (!is_in_slice(slice, s)) continue;
        if (s->src) mark_needed(slice, &slice->reg[s->src->id]);
        if (s->cond) mark_needed(slice, &slice->reg[s->cond->id]);
        if (s->at) mark_needed(slice, &slice->reg[s->at->id]);
        for (int i = 0; i < s->n_arg; i++) mark_needed(slice, &slice->reg[s->arg[i]->id]);
        for (int i = 0; loop_is_access(s) && i < s->buf->rank; i++)
            mark_needed(slice, &slice->reg[s->idx[i]->id]);
        if (s->kind == L_LOAD && s->buf->kind == LB_LOCAL)
            mark_needed(slice, &slice->buf[s->buf->id]);
        if (loop_has_body(s)) mark_slice(slice, s->body);
    }
}

/* A copy of those statements that belong to this half. */
static LStmt *copy_slice(Arena *a, const Slice *slice, const LStmt *s) {
    LStmt *head = NULL, **tail = &head;
    for (; s; s = s->next) {
        if (!is_in_slice(slice, s)) continue;
        LStmt *copy = *tail = NEW(a, LStmt);
        *copy = *s;
        copy->next = NULL;
        if (loop_has_body(s)) copy->body = copy_slice(a, slice, s->body);
        tail = &copy->next;
    }
    return head;
}

/* A copy of the loop with one half of its statements: those that make sums into scalars
 * (scalar_sums), or those that make sums over feature columns, and what each needs. */
static LStmt *make_slice(Arena *a, const LKernel *k, const LStmt *loop, bool scalar_sums) {
    Slice slice = {.body = loop->body, .scalar_sums = scalar_sums, .changed = true};
    slice.reg = NEWN(a, bool, k->n_regs + 1);
    slice.buf = NEWN(a, bool, k->locals.n + 1);
    while (slice.changed) {
        slice.changed = false;
        mark_slice(&slice, loop->body);
    }
    LStmt *copy = NEW(a, LStmt);
    *copy = *loop;
    copy->body = copy_slice(a, &slice, loop->body);
    return copy;
}

/* Whether the other half reads what the statements s of this half write: after distribution it
 * would read it at another time. */
static bool is_read_by(const LStmt *s, const LStmt *body, const LStmt *other) {
    for (; s; s = s->next) {
        bool writes = loop_is_write(s);
        bool is_own = writes && s->buf->kind == LB_LOCAL && loop_declares(body, s->buf);
        if (writes && !is_own && loop_loads(other, s->buf)) return true;
        if (loop_has_body(s) && is_read_by(s->body, body, other)) return true;
    }
    return false;
}

/* Whether neither half reads what the other one writes. */
static bool halves_are_independent(const LStmt *scalar_half, const LStmt *column_half) {
    return !is_read_by(scalar_half->body, scalar_half->body, column_half->body) &&
           !is_read_by(column_half->body, column_half->body, scalar_half->body);
}

/* Makes the copied statements the definitions of their registers. */
static void set_definitions(LStmt *s) {
    for (; s; s = s->next) {
        if (s->dst) s->dst->def = s;
        if (s->var) s->var->def = s;
        if (loop_has_body(s)) set_definitions(s->body);
    }
}

/* Writes a remark on loop s. done: it was distributed. */
static void remark(Loops *l, const LKernel *k, const LStmt *s, bool done, const char *what) {
    (done ? pass_remark : pass_declined)(l->pass, s->span, "distribute",
                                         "%s: sums over %s to numbers and to columns %s", k->name,
                                         loop_range_text(l->a, s), what);
}

/* Splits each loop over a row's entries that makes both scalar sums and sums over many columns into
 * two loops. Entries of the first are then divided over all threads of a team, entries of the
 * second over its ways. */
static bool distribute_loops(Loops *l, LKernel *k) {
    LStmt **at = loop_row_list(k);
    bool changed = false;
    for (LStmt *s; at && (s = *at); at = &s->next) {
        if (s->kind != L_FOR || s->range != LR_SEGMENT) continue;
        if (!loop_accumulates(s->body, s->body, true) || !loop_accumulates(s->body, s->body, false))
            continue;
        if (!has_wide_columns(l, s->body)) {
            remark(l, k, s, false, "stay one loop: lanes have all of their columns at once");
            continue;
        }
        LStmt *scalar_half = make_slice(l->a, k, s, true),
              *column_half = make_slice(l->a, k, s, false);
        if (!halves_are_independent(scalar_half, column_half)) {
            remark(l, k, s, false, "stay one loop: what one half adds up is read in the other");
            continue;
        }
        remark(l, k, s, true, "are two loops");
        column_half = loop_copy_stmt(l->a, k, column_half);
        column_half->next = s->next;
        scalar_half->next = NULL;
        set_definitions(scalar_half);
        scalar_half->next = column_half;
        *at = scalar_half;
        s = column_half;
        changed = true;
    }
    return changed;
}

/* Runs the pass (loop distribution) on all kernels. */
static bool run_distribute(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, distribute_loops);
}

const Pass loop_pass_distribute = {
    .name = "distribute",
    .summary = "a loop over entries that adds up numbers and wide columns is two loops",
    .run_loops = run_distribute,
};
