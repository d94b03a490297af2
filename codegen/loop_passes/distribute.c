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

/* Whether there is a loop over more columns than the lanes can hold, or over an unknown number. */
static bool has_wide_columns(const Loops *l, const LStmt *s) {
    for (int64_t n; s; s = s->next) {
        bool columns = s->kind == L_FOR && s->sched.vector;
        bool fits = loop_extent(s, &n) && loop_fits_lanes(l->on, n, l->columns);
        if (columns && !fits) return true;
        if (loop_has_body(s) && has_wide_columns(l, s->body)) return true;
    }
    return false;
}

/* One half of the loop: which registers and locals it needs. */
typedef struct {
    const LStmt *body;
    bool scalar_sums; /* which sums stay */
    bool *reg, *buf;  /* [n_regs], [locals] are needed */
    bool changed;
} Slice;

/* Records a need; notes whether that is new. */
static void mark_needed(Slice *x, bool *what) {
    x->changed = x->changed || !*what;
    *what = true;
}

/* Whether the half contains the statement. */
static bool is_in_slice(const Slice *x, const LStmt *s) {
    bool local = s->buf && s->buf->kind == LB_LOCAL;
    bool own = local && loop_declares(x->body, s->buf);
    if (loop_is_value(s)) return x->reg[s->dst->id];
    if (s->kind == L_LOCAL || own) return x->buf[s->buf->id];
    if (s->kind == L_ACC) return (local && s->buf->rank == 0) == x->scalar_sums;
    for (const LStmt *in = loop_has_body(s) ? s->body : NULL; in; in = in->next)
        if (is_in_slice(x, in)) return true;
    return !loop_has_body(s) && !x->scalar_sums; /* a store */
}

/* Records what the statements of the half need. */
static void mark_slice(Slice *x, const LStmt *s) {
    for (; s; s = s->next) {
        if (!is_in_slice(x, s)) continue;
        if (s->src) mark_needed(x, &x->reg[s->src->id]);
        if (s->cond) mark_needed(x, &x->reg[s->cond->id]);
        if (s->at) mark_needed(x, &x->reg[s->at->id]);
        for (int i = 0; i < s->n_arg; i++) mark_needed(x, &x->reg[s->arg[i]->id]);
        for (int i = 0; loop_is_access(s) && i < s->buf->rank; i++)
            mark_needed(x, &x->reg[s->idx[i]->id]);
        if (s->kind == L_LOAD && s->buf->kind == LB_LOCAL) mark_needed(x, &x->buf[s->buf->id]);
        if (loop_has_body(s)) mark_slice(x, s->body);
    }
}

/* A copy of the statements in the half. */
static LStmt *copy_slice(Arena *a, const Slice *x, const LStmt *s) {
    LStmt *head = NULL, **tail = &head;
    for (; s; s = s->next) {
        if (!is_in_slice(x, s)) continue;
        LStmt *c = *tail = NEW(a, LStmt);
        *c = *s;
        c->next = NULL;
        if (loop_has_body(s)) c->body = copy_slice(a, x, s->body);
        tail = &c->next;
    }
    return head;
}

/* The half of the loop that makes scalar sums (numbers), or the half that makes sums over columns.
 */
static LStmt *make_slice(Arena *a, const LKernel *k, const LStmt *loop, bool numbers) {
    Slice x = {.body = loop->body, .scalar_sums = numbers, .changed = true};
    x.reg = NEWN(a, bool, k->n_regs + 1);
    x.buf = NEWN(a, bool, k->locals.n + 1);
    while (x.changed) {
        x.changed = false;
        mark_slice(&x, loop->body);
    }
    LStmt *c = NEW(a, LStmt);
    *c = *loop;
    c->body = copy_slice(a, &x, loop->body);
    return c;
}

/* Whether the other half reads what statements of this half leave behind: it would be too late, or
 * too early. */
static bool is_read_by(const LStmt *s, const LStmt *body, const LStmt *other) {
    for (; s; s = s->next) {
        bool writes = s->kind == L_STORE || s->kind == L_ACC;
        bool own = writes && s->buf->kind == LB_LOCAL && loop_declares(body, s->buf);
        if (writes && !own && loop_loads(other, s->buf)) return true;
        if (loop_has_body(s) && is_read_by(s->body, body, other)) return true;
    }
    return false;
}

/* Whether the halves are independent. */
static bool is_legal(const LStmt *numbers, const LStmt *columns) {
    return !is_read_by(numbers->body, numbers->body, columns->body) &&
           !is_read_by(columns->body, columns->body, numbers->body);
}

/* Lets the registers of the first half refer to its statements as their definitions. */
static void set_definitions(LStmt *s) {
    for (; s; s = s->next) {
        if (s->dst) s->dst->def = s;
        if (s->var) s->var->def = s;
        if (loop_has_body(s)) set_definitions(s->body);
    }
}

/* Remarks on the loop s; done: it was distributed. */
static void remark(Loops *l, const LKernel *k, const LStmt *s, bool done, const char *what) {
    (done ? pass_remark : pass_declined)(l->pass, s->span, "distribute",
                                         "%s: sums over %s to numbers and to columns %s", k->name,
                                         loop_range_text(l->a, s), what);
}

/* Splits each loop over entries of the row that makes both scalar sums and sums over many columns
 * in two: entries of the first go to all threads, of the second to ways. */
static bool distribute(Loops *l, LKernel *k) {
    LStmt **at = loop_row_list(k);
    bool any = false;
    for (LStmt *s; at && (s = *at); at = &s->next) {
        if (s->kind != L_FOR || s->range != LR_SEGMENT) continue;
        if (!loop_accumulates(s->body, s->body, true) || !loop_accumulates(s->body, s->body, false))
            continue;
        if (!has_wide_columns(l, s->body)) {
            remark(l, k, s, false, "stay one loop: lanes have all of their columns at once");
            continue;
        }
        LStmt *numbers = make_slice(l->a, k, s, true), *columns = make_slice(l->a, k, s, false);
        if (!is_legal(numbers, columns)) {
            remark(l, k, s, false, "stay one loop: what one half adds up is read in the other");
            continue;
        }
        remark(l, k, s, true, "are two loops");
        columns = loop_copy_stmt(l->a, k, columns);
        columns->next = s->next;
        numbers->next = NULL;
        set_definitions(numbers);
        numbers->next = columns;
        *at = numbers;
        s = columns;
        any = true;
    }
    return any;
}

static bool run(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, distribute);
}

const Pass loop_pass_distribute = {
    .name = "distribute",
    .summary = "a loop over entries that adds up numbers and wide columns is two loops",
    .run_loops = run,
};
