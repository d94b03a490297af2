/* The order of a row's statements, such that loops over the same columns stand side by side and
 * lanes can go through them together (`fuse-columns`): what stands between two loops without
 * need moves out of the way.
 *
 *     for e { acc sum m .. }                   store s 0
 *     for c in C { store y[v, c] .. }          for e { acc sum m .. }
 *     store s 0                         =>     for e { acc sum s .. }
 *     for e { acc sum s .. }                   for c in C { store y[v, c] .. }
 *     for c in C { .. y[v, c] .. }             for c in C { .. y[v, c] .. }
 *
 * First comes what needs no loop, but for results and arrays; then each loop behind what it needs,
 * those that make numbers before others; in front of a run what can be done then; then the rest. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

typedef struct {
    VEC(LStmt *) stmts;
    bool *placed, *after_loop; /* late: it needs a loop */
    LStmt **tail;
} Order;

/* Appends statement i to the new order, after all statements that it depends on. */
static void place_with_dependences(Order *o, int i) {
    if (o->placed[i]) return;
    o->placed[i] = true;
    for (int j = 0; j < i; j++)
        if (!o->placed[j] && loop_depends(o->stmts.v[i], o->stmts.v[j]))
            place_with_dependences(o, j);
    *o->tail = o->stmts.v[i];
    o->tail = &o->stmts.v[i]->next;
}

/* Whether the statement is a loop, or an `if` with a loop in it. */
static bool has_loop(const LStmt *s) {
    if (s->kind == L_FOR) return true;
    for (const LStmt *in = s->kind == L_IF ? s->body : NULL; in; in = in->next)
        if (has_loop(in)) return true;
    return false;
}

/* Whether a loop that is not placed yet must come before statement i. */
static bool depends_on_loop(const Order *o, int i) {
    for (int j = 0; j < i; j++) {
        if (o->placed[j] || !loop_depends(o->stmts.v[i], o->stmts.v[j])) continue;
        if (has_loop(o->stmts.v[j]) || depends_on_loop(o, j)) return true;
    }
    return false;
}

/* Whether statement i is a loop that only makes scalar sums and depends on no other loop: it can
 * come before the loops that share feature columns. */
static bool is_independent_scalar_sum(const Order *o, int i) {
    const LStmt *s = o->stmts.v[i];
    if (o->placed[i] || s->kind != L_FOR || s->range != LR_SEGMENT) return false;
    if (loop_accumulates(s->body, s->body, false) || !loop_accumulates(s->body, s->body, true))
        return false;
    return !depends_on_loop(o, i);
}

/* The number of the loop that is placed next: independent scalar sums first, then in the old order;
 * -1 = no loop is left. */
static int next_loop(const Order *o) {
    for (int i = 0; i < o->stmts.n; i++)
        if (is_independent_scalar_sum(o, i)) return i;
    for (int i = 0; i < o->stmts.n; i++)
        if (!o->placed[i] && has_loop(o->stmts.v[i])) return i;
    return -1;
}

/* Whether the statement is placed as late as possible: stores of results, declarations of arrays
 * (they begin a region), and loops. */
static bool can_wait(const LStmt *s) {
    bool result = s->kind == L_STORE && s->buf->kind != LB_LOCAL;
    return result || (s->kind == L_LOCAL && s->buf->rank) || has_loop(s);
}

/* Whether statement i needs an array whose declaration is not placed yet. */
static bool needs_array(const Order *o, int i) {
    for (int j = 0; j < i; j++) {
        const LStmt *s = o->stmts.v[j];
        if (!o->placed[j] && s->kind == L_LOCAL && s->buf->rank && loop_depends(o->stmts.v[i], s))
            return true;
    }
    return false;
}

/* Whether the statements store to a buffer that the loop `adds` accumulates into. */
static bool stores_target_of(const LStmt *s, const LStmt *adds) {
    for (; s; s = s->next) {
        if (s->kind == L_STORE && s->buf->kind != LB_LOCAL &&
            loop_accumulates_into(adds->body, s->buf))
            return true;
        if (loop_has_body(s) && stores_target_of(s->body, adds)) return true;
    }
    return false;
}

/* Whether statement i initialises a row in memory that a later loop over entries accumulates into.
 */
static bool initialises_row(const Order *o, int i) {
    for (int j = i + 1; j < o->stmts.n; j++) {
        const LStmt *s = o->stmts.v[j];
        bool is_entry_loop = s->kind == L_FOR && s->range == LR_SEGMENT;
        if (!o->placed[j] && is_entry_loop && stores_target_of(o->stmts.v[i]->body, s)) return true;
    }
    return false;
}

/* Places the statements that depend on nothing unplaced. Placed later, they would stand in the
 * midst of the next region; placed earlier, in the midst of this one. */
static void place_ready_statements(Order *o) {
    for (int i = 0; i < o->stmts.n; i++) {
        bool ready = !o->placed[i] && !can_wait(o->stmts.v[i]);
        for (int j = 0; j < i && ready; j++)
            ready = o->placed[j] || !loop_depends(o->stmts.v[i], o->stmts.v[j]);
        if (ready) place_with_dependences(o, i);
    }
}

/* The row's statement list in its new order, in which loops over the same columns are neighbours.
 */
static LStmt *reorder_list(Arena *a, LStmt *s) {
    LStmt *head = NULL;
    Order o = {.tail = &head};
    for (; s; s = s->next) vec_push(a, &o.stmts, s);
    o.placed = NEWN(a, bool, o.stmts.n + 1);
    o.after_loop = NEWN(a, bool, o.stmts.n + 1);
    for (int i = 0; i < o.stmts.n; i++) {
        const LStmt *at = o.stmts.v[i];
        o.after_loop[i] = has_loop(at);
        for (int j = 0; j < i; j++)
            o.after_loop[i] =
                o.after_loop[i] || (o.after_loop[j] && loop_depends(at, o.stmts.v[j]));
    }
    for (int i = 0; i < o.stmts.n; i++)
        if (!o.after_loop[i] && !can_wait(o.stmts.v[i])) place_with_dependences(&o, i);
    for (int i; (i = next_loop(&o)) >= 0;) {
        if (needs_array(&o, i) || initialises_row(&o, i)) place_ready_statements(&o);
        place_with_dependences(&o, i);
    }
    for (int i = 0; i < o.stmts.n; i++) place_with_dependences(&o, i);
    *o.tail = NULL;
    return head;
}

/* Whether two loops have the same constant range. */
static bool is_same_range(const LStmt *first, const LStmt *second) {
    return first->kind == L_FOR && second->kind == L_FOR && first->range == LR_EXTENT &&
           second->range == LR_EXTENT && expr_eq(first->extent, second->extent);
}

/* Whether `later` depends on `earlier`, directly or through statements between them. */
static bool depends_transitively(Arena *a, const LStmt *later, const LStmt *earlier) {
    VEC(const LStmt *) dependent = {0};
    vec_push(a, &dependent, earlier);
    for (const LStmt *s = earlier->next; s; s = s->next) {
        bool depends = false;
        for (int i = 0; i < dependent.n && !depends; i++) depends = loop_depends(s, dependent.v[i]);
        if (s == later) return depends;
        if (depends) vec_push(a, &dependent, s);
    }
    return false;
}

/* The loop that must stay between s and a later loop over the same columns; or NULL. */
static const LStmt *separating_loop(Arena *a, const LStmt *s) {
    const LStmt *between = NULL;
    for (const LStmt *x = s->next; x; x = x->next) {
        if (is_same_range(s, x))
            return between && depends_transitively(a, x, between) ? between : NULL;
        if (!between && has_loop(x) && depends_transitively(a, x, s)) between = x;
    }
    return NULL;
}

/* Writes remarks on the new order, and on loops over the same columns that stay separated by a
 * loop. */
static void remark(Loops *l, const LKernel *k, const LStmt *row, bool moved) {
    if (moved) pass_remark(l->pass, k->span, "reorder-loops", "%s: another order", k->name);
    for (const LStmt *s = l->pass->remarks ? row : NULL; s; s = s->next) {
        const LStmt *between = s->kind == L_FOR ? separating_loop(l->a, s) : NULL;
        if (between)
            pass_refusal(l->pass, between->span, "reorder-loops",
                         "%s: loops over %s stay apart: the loop over %s needs the first, and the "
                         "second needs it",
                         k->name, loop_range_text(l->a, s), loop_range_text(l->a, between));
    }
}

/* Reorders the row of one kernel. */
static bool reorder_kernel(Loops *l, LKernel *k) {
    LStmt **row = loop_row_list(k);
    VEC(const LStmt *) old_order = {0};
    bool moved = false;
    if (!row || !*row) return false;
    for (const LStmt *s = *row; s; s = s->next) vec_push(l->a, &old_order, s);
    *row = reorder_list(l->a, *row);
    int i = 0;
    for (const LStmt *s = *row; s; s = s->next) moved |= old_order.v[i++] != s;
    remark(l, k, *row, moved);
    return true;
}

/* Runs the pass on all kernels. */
static bool run_reorder(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, reorder_kernel);
}

const Pass loop_pass_reorder = {
    .name = "reorder-loops",
    .summary = "loops of a row over the same columns stand side by side",
    .run_loops = run_reorder,
};
