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
    VEC(LStmt *) in;
    bool *done, *late; /* late: it needs a loop */
    LStmt **tail;
} Order;

/* Appends statement i to the new order, behind everything that it depends on. */
static void put(Order *o, int i) {
    if (o->done[i]) return;
    o->done[i] = true;
    for (int j = 0; j < i; j++)
        if (!o->done[j] && loop_depends(o->in.v[i], o->in.v[j])) put(o, j);
    *o->tail = o->in.v[i];
    o->tail = &o->in.v[i]->next;
}

/* Whether the statement is a loop, or an `if` with a loop in it. */
static bool has_loop(const LStmt *s) {
    if (s->kind == L_FOR) return true;
    for (const LStmt *in = s->kind == L_IF ? s->body : NULL; in; in = in->next)
        if (has_loop(in)) return true;
    return false;
}

/* Whether a loop that is not placed yet must come before statement i. */
static bool waits(const Order *o, int i) {
    for (int j = 0; j < i; j++) {
        if (o->done[j] || !loop_depends(o->in.v[i], o->in.v[j])) continue;
        if (has_loop(o->in.v[j]) || waits(o, j)) return true;
    }
    return false;
}

/* Whether statement i is a loop that only makes scalar sums and depends on no other loop: it need
 * not stand among loops that share columns. */
static bool may_go_first(const Order *o, int i) {
    const LStmt *s = o->in.v[i];
    if (o->done[i] || s->kind != L_FOR || s->range != LR_SEGMENT) return false;
    if (loop_adds_up(s->body, s->body, false) || !loop_adds_up(s->body, s->body, true))
        return false;
    return !waits(o, i);
}

/* The loop to be placed next, or -1. */
static int next_loop(const Order *o) {
    for (int i = 0; i < o->in.n; i++)
        if (may_go_first(o, i)) return i;
    for (int i = 0; i < o->in.n; i++)
        if (!o->done[i] && has_loop(o->in.v[i])) return i;
    return -1;
}

/* Whether the statement is left for later: stores of results, declarations of arrays (they begin a
 * region), and loops. */
static bool can_wait(const LStmt *s) {
    bool result = s->kind == L_STORE && s->buf->kind != LB_LOCAL;
    return result || (s->kind == L_LOCAL && s->buf->rank) || has_loop(s);
}

/* Whether statement i needs an array whose declaration is not placed yet. */
static bool needs_array(const Order *o, int i) {
    for (int j = 0; j < i; j++) {
        const LStmt *s = o->in.v[j];
        if (!o->done[j] && s->kind == L_LOCAL && s->buf->rank && loop_depends(o->in.v[i], s))
            return true;
    }
    return false;
}

/* Whether the statements accumulate into b. */
static bool adds_to(const LStmt *s, const LBuf *b) {
    for (; s; s = s->next) {
        if (s->kind == L_ACC && s->buf == b) return true;
        if (loop_has_body(s) && adds_to(s->body, b)) return true;
    }
    return false;
}

/* Whether the statements store to a buffer that the loop `adds` accumulates into. */
static bool stores_what(const LStmt *s, const LStmt *adds) {
    for (; s; s = s->next) {
        if (s->kind == L_STORE && s->buf->kind != LB_LOCAL && adds_to(adds->body, s->buf))
            return true;
        if (loop_has_body(s) && stores_what(s->body, adds)) return true;
    }
    return false;
}

/* Whether statement i initialises a row in memory that a later loop over entries accumulates into.
 */
static bool begins_row(const Order *o, int i) {
    for (int j = i + 1; j < o->in.n; j++) {
        const LStmt *s = o->in.v[j];
        bool entries = s->kind == L_FOR && s->range == LR_SEGMENT;
        if (!o->done[j] && entries && stores_what(o->in.v[i]->body, s)) return true;
    }
    return false;
}

/* Places what depends on nothing more. Left until a loop of the next region needs it, it would
 * stand in the midst of that region; placed earlier, in the midst of this one. */
static void put_ready(Order *o) {
    for (int i = 0; i < o->in.n; i++) {
        bool ready = !o->done[i] && !can_wait(o->in.v[i]);
        for (int j = 0; j < i && ready; j++)
            ready = o->done[j] || !loop_depends(o->in.v[i], o->in.v[j]);
        if (ready) put(o, i);
    }
}

/* The row's list in its new order. */
static LStmt *reordered(Arena *a, LStmt *s) {
    LStmt *head = NULL;
    Order o = {.tail = &head};
    for (; s; s = s->next) vec_push(a, &o.in, s);
    o.done = NEWN(a, bool, o.in.n + 1);
    o.late = NEWN(a, bool, o.in.n + 1);
    for (int i = 0; i < o.in.n; i++) {
        const LStmt *at = o.in.v[i];
        o.late[i] = has_loop(at);
        for (int j = 0; j < i; j++)
            o.late[i] = o.late[i] || (o.late[j] && loop_depends(at, o.in.v[j]));
    }
    for (int i = 0; i < o.in.n; i++)
        if (!o.late[i] && !can_wait(o.in.v[i])) put(&o, i);
    for (int i; (i = next_loop(&o)) >= 0;) {
        if (needs_array(&o, i) || begins_row(&o, i)) put_ready(&o);
        put(&o, i);
    }
    for (int i = 0; i < o.in.n; i++) put(&o, i);
    *o.tail = NULL;
    return head;
}

/* Whether two loops have the same constant range. */
static bool is_same_range(const LStmt *x, const LStmt *y) {
    return x->kind == L_FOR && y->kind == L_FOR && x->range == LR_EXTENT && y->range == LR_EXTENT &&
           expr_eq(x->extent, y->extent);
}

/* Whether `later` depends on `earlier`, directly or through statements between them. */
static bool needs(Arena *a, const LStmt *later, const LStmt *earlier) {
    VEC(const LStmt *) wait = {0};
    vec_push(a, &wait, earlier);
    for (const LStmt *s = earlier->next; s; s = s->next) {
        bool waits = false;
        for (int i = 0; i < wait.n && !waits; i++) waits = loop_depends(s, wait.v[i]);
        if (s == later) return waits;
        if (waits) vec_push(a, &wait, s);
    }
    return false;
}

/* The loop that must stay between s and a later loop over the same columns; or NULL. */
static const LStmt *parts(Arena *a, const LStmt *s) {
    const LStmt *between = NULL;
    for (const LStmt *x = s->next; x; x = x->next) {
        if (is_same_range(s, x)) return between && needs(a, x, between) ? between : NULL;
        if (!between && has_loop(x) && needs(a, x, s)) between = x;
    }
    return NULL;
}

/* Remarks on the new order, and on loops that stay separated. */
static void tell(Loops *l, const LKernel *k, const LStmt *row, bool moved) {
    if (moved) pass_remark(l->pass, k->span, "reorder-loops", "%s: another order", k->name);
    for (const LStmt *s = l->pass->remarks ? row : NULL; s; s = s->next) {
        const LStmt *between = s->kind == L_FOR ? parts(l->a, s) : NULL;
        if (between)
            pass_refusal(l->pass, between->span, "reorder-loops",
                         "%s: loops over %s stay apart: the loop over %s needs the first, and the "
                         "second needs it",
                         k->name, loop_range_text(l->a, s), loop_range_text(l->a, between));
    }
}

/* Runs the pass on one kernel. */
static bool change(Loops *l, LKernel *k) {
    LStmt **row = loop_row(k);
    VEC(const LStmt *) was = {0};
    bool moved = false;
    if (!row || !*row) return false;
    for (const LStmt *s = *row; s; s = s->next) vec_push(l->a, &was, s);
    *row = reordered(l->a, *row);
    int i = 0;
    for (const LStmt *s = *row; s; s = s->next) moved |= was.v[i++] != s;
    tell(l, k, *row, moved);
    return true;
}

static bool run(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, change);
}

const Pass loop_pass_reorder = {
    .name = "reorder-loops",
    .summary = "loops of a row over the same columns stand side by side",
    .run_loops = run,
};
