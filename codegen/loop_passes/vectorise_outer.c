/* Rows in lanes: what is computed from a narrow row.
 *
 *     for %v in N parallel {             =>    for %v in N parallel rows 16 where C up_to 16 {
 *       for %e in segment ptr[%v] { .. }         for %e in segment ptr[%v] serial { .. }
 *       for %c in C vector { .. }                for %c in C vector { .. }
 *     }                                        }
 *                                              for %v in N parallel where C above 16 { as it was }
 *
 * A row of 7 classes in a vector of 16 lanes leaves nine of them idle, and each maximum and sum
 * ends in a chain of shuffles; the loss of 2708 rows took 40 % of a training step of GCN on Cora.
 * With a row in each lane nothing is folded, and a logarithm is one for 16 rows; loads of rows
 * become gathers.  This is outer-loop vectorisation (Nuzman and Zaks, PACT 2008).  Where only data
 * know the width, the kernel has a version of the loop for each answer.  Where it is constant, rows
 * that are summed to something go in lanes; what is made element by element is left as it lies.
 *
 * Iterations of the parallel loop write disjoint elements, so statements may go one after the other
 * over a block of them.  What goes row by row (`serial`) is moved up to the last statement that
 * does, where nothing in between has to do with it: a row of sums then stays in registers from the
 * entries that it sums to its division or bias. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* Neighbouring statements of the loop that go in lanes, or row by row. */
typedef struct Run Run;
/* Neighbouring statements of the loop that are executed with a row per lane, or (serial) row by
 * row. */
struct Run {
    bool serial;
    VEC(LStmt *) s;
    Run *next, *before;
};

typedef struct {
    Arena *a;
    const LStmt *loop;
    Run *runs, *last;
    bool *varies;      /* [n_regs] */
    const Expr *width; /* of the rows, where only data know it */
    const char *why;   /* they cannot, or need not, go in lanes */
    int64_t longest;   /* row of constant width */
    bool heavy;        /* work that lanes save: on rows of unknown width, */
    bool heavy_short;  /* of constant width, */
    bool sums;         /* and sums along those */
} Rows;

/* ---- which statements go row by row ------------------------------------------------------ */
/* Whether a loop over entries is among the statements. */
static bool has_entries(const LStmt *s) {
    for (; s; s = s->next)
        if ((s->kind == L_FOR && s->range != LR_EXTENT) || has_entries(s->body)) return true;
    return false;
}

/* Whether s is a loop over entries, or has one in it. */
static bool is_entry_loop(const LStmt *s) {
    return s->kind == L_FOR && (s->range != LR_EXTENT || has_entries(s->body));
}

/* The buffer of the first store among the statements. */
static const LBuf *first_stored(const LStmt *s) {
    const LBuf *b = NULL;
    for (; s && !b; s = s->next) b = s->kind == L_STORE ? s->buf : first_stored(s->body);
    return b;
}

/* The loop over entries before s, if only loops over rows lie between them; or NULL. */
static const LStmt *entries_before(const LStmt *loop, const LStmt *s) {
    const LStmt *entries = NULL;
    for (const LStmt *p = loop->body; p != s; p = p->next)
        entries = is_entry_loop(p) ? p : p->kind == L_FOR ? entries : NULL;
    return entries;
}

/* The loop over entries behind s, if only loops over rows lie between them; or NULL. */
static const LStmt *entries_after(const LStmt *s) {
    const LStmt *next = s->next;
    while (next && next->kind == L_FOR && !is_entry_loop(next)) next = next->next;
    return next && next->kind == L_FOR ? next : NULL;
}

/* Whether the statements accumulate. */
static bool has_sum(const LStmt *s) {
    for (; s; s = s->next)
        if (s->kind == L_ACC || has_sum(s->body)) return true;
    return false;
}

/* Whether all dimensions of the local are 1. */
static bool is_small(const LBuf *b) {
    for (int i = 0; i < b->rank; i++)
        if (!loop_is_one(b->dim[i])) return false;
    return true;
}

/* Whether the statements access a local row of constant width, which is in registers for one row at
 * a time. */
static bool touches_row(const LStmt *s) {
    for (; s; s = s->next) {
        bool local = loop_is_access(s) && s->buf->kind == LB_LOCAL;
        if ((local && !is_small(s->buf)) || touches_row(s->body)) return true;
    }
    return false;
}

/* Whether the statement is executed row by row: loops over entries, what initialises the row of
 * sums before them, and what finishes it after them (a bias), so that the row stays in registers
 * from one to the other. */
static bool goes_by_row(const LStmt *loop, const LStmt *s) {
    if (s->kind == L_LOCAL) return !is_small(s->buf);
    if (s->kind != L_FOR) return false;
    if (is_entry_loop(s) || touches_row(s->body)) return true;
    const LBuf *b = first_stored(s->body);
    const LStmt *after = entries_after(s), *before = entries_before(loop, s);
    if (b && after && loop_writes(after->body, b)) return true;
    bool ends = b && before && loop_writes(before->body, b);
    return ends && !has_sum(s->body) && !loop_has_heavy(s->body, NULL);
}

/* Whether the text has the statement executed row by row. */
bool loop_is_serial(const LStmt *s) {
    if (s->kind == L_LOCAL) return !is_small(s->buf);
    return s->kind == L_TILE || (s->kind == L_FOR && s->sched.serial);
}

/* ---- runs of statements ------------------------------------------------------------------- */
/* Whether s depends on a statement of the group. */
static bool depends_on(const LStmt *s, const Run *run) {
    for (int i = 0; i < run->s.n; i++)
        if (loop_depends(s, run->s.v[i])) return true;
    return false;
}

/* Appends an empty group. */
static Run *add_run(Rows *r, bool serial) {
    Run *run = NEW(r->a, Run);
    *run = (Run){.serial = serial, .before = r->last};
    *(r->last ? &r->last->next : &r->runs) = run;
    return r->last = run;
}

/* The group of statement s. A statement that is executed row by row joins the earlier such group
 * that it depends on, if it does not depend on what lies between; a scalar from memory goes before
 * that group. */
static Run *run_for(Rows *r, const LStmt *s, bool serial) {
    Run *last = r->last, *rows = last->serial ? last : last->before;
    bool past = rows && (last == rows || !depends_on(s, last));
    if (!serial && past && (s->kind == L_LET || s->kind == L_LOAD) && !depends_on(s, rows))
        return rows->before;
    if (last->serial == serial) return last;
    return serial && past && depends_on(s, rows) ? rows : add_run(r, serial);
}

/* Divides the loop's statements into groups. */
static void cut(Rows *r) {
    add_run(r, false);
    for (LStmt *s = r->loop->body; s; s = s->next) {
        Run *run = run_for(r, s, goes_by_row(r->loop, s));
        vec_push(r->a, &run->s, s);
    }
}

/* Divides them as the text has them. */
static void read_runs(Rows *r) {
    add_run(r, false);
    for (LStmt *s = r->loop->body; s; s = s->next) {
        bool serial = loop_is_serial(s);
        Run *run = r->last->serial == serial ? r->last : add_run(r, serial);
        vec_push(r->a, &run->s, s);
    }
}

/* ---- may the others go in lanes? ------------------------------------------------------------ */
/* Records why rows are not put in lanes; false. */
static bool no(Rows *r, const char *why) {
    r->why = why;
    return false;
}

enum { LONG = 1 << 20 }; /* far more elements than a vector has */

/* n, or LONG if it is larger. */
static int64_t at_most_long(int64_t n) {
    return n < LONG ? n : LONG;
}

/* Checks loops of a group in lanes, and collects their properties. around: for how many elements of
 * a row of constant width s is executed. */
static bool loops_are_fine(Rows *r, const LStmt *s, int64_t around) {
    for (; s; s = s->next) {
        int64_t n = 1;
        if (s->kind == L_ACC && s->buf->kind != LB_LOCAL)
            return no(r, "something is added up in memory");
        if (s->kind == L_LOCAL && s->buf->rank > 0) return no(r, "a row is had in a local array");
        r->sums |= s->kind == L_ACC && around > 1;
        if (s->kind == L_FOR && !expr_is_const(s->extent, &n)) {
            if (!r->width) r->width = s->extent;
            if (!expr_eq(r->width, s->extent)) r->why = "rows have several widths";
            r->heavy |= loop_has_heavy(s->body, NULL);
            n = 1;
        }
        n = at_most_long(around * at_most_long(n));
        if (n > r->longest) r->longest = n;
        r->heavy_short |= n > 1 && loop_has_heavy(s->body, NULL);
        if (!loops_are_fine(r, s->body, n)) return false;
    }
    return true;
}

/* How many accesses to b the group has. */
static int count_accesses(const Run *run, const LBuf *b) {
    int n = 0;
    for (int i = 0; i < run->s.n; i++) {
        LStmt one = *run->s.v[i];
        one.next = NULL;
        n += loop_count_accesses(&one, b);
    }
    return n;
}

/* Checks that a local row is used in one group: the next row takes its registers. */
static bool runs_by_row(Rows *r, const Run *run) {
    for (int i = 0; i < run->s.n; i++) {
        const LStmt *s = run->s.v[i];
        if (s->kind == L_LOCAL &&
            count_accesses(run, s->buf) != loop_count_accesses(r->loop->body, s->buf))
            return no(r, "a row of sums is read after others are begun");
    }
    return true;
}

/* Checks that the statements of a group can be executed with a row per lane. */
static bool runs_in_lanes(Rows *r, const Run *run) {
    for (int i = 0; i < run->s.n; i++) {
        LStmt one = *run->s.v[i];
        if (one.kind == L_LOCAL) continue;
        one.next = NULL;
        if (has_entries(&one)) return no(r, "rows have entries under a condition");
        if (!loops_are_fine(r, &one, 1)) return false;
        if (!loop_look(r->loop, &one, r->varies)) return no(r, "rows are not independent");
    }
    return true;
}

/* An analysis of the loop, in which only its variable differs between lanes so far. */
static Rows begin(Arena *a, const LKernel *k, const LStmt *loop) {
    Rows r = {.a = a, .loop = loop};
    r.varies = NEWN(a, bool, (size_t)k->n_regs + 1);
    r.varies[loop->var->id] = true;
    return r;
}

/* Checks all groups. */
static bool is_fine(Rows *r) {
    for (const Run *run = r->runs; run; run = run->next)
        if (run->serial ? !runs_by_row(r, run) : !runs_in_lanes(r, run)) return false;
    return true;
}

/* Whether the parallel loop can be executed as its text says. */
bool loop_may_run_rows(Arena *a, const LKernel *k, const LStmt *loop) {
    Rows r = begin(a, k, loop);
    read_runs(&r);
    return is_fine(&r);
}

/* ---- the pass ------------------------------------------------------------------------------- */
/* Whether lanes save work: heavy functions of rows, or sums along rows that fit a vector. */
static bool is_worth_it(Rows *r, int lanes) {
    if (r->why) return false;
    if (r->width) return r->heavy || no(r, "no function of many instructions is computed of them");
    if (r->longest > lanes) return no(r, "rows are longer than a vector");
    if (!r->sums) return no(r, "nothing is summed along them");
    return r->heavy_short || no(r, "no function of many instructions is computed of them");
}

/* Orders the loop's statements by group, and marks those that are executed row by row. */
static void order(const Rows *r, LStmt *loop) {
    LStmt **end = &loop->body;
    for (const Run *run = r->runs; run; run = run->next)
        for (int i = 0; i < run->s.n; i++) {
            LStmt *s = run->s.v[i];
            if (s->kind == L_FOR) s->sched.serial = run->serial;
            *end = s;
            end = &s->next;
        }
    *end = NULL;
}

/* Adds a second version of the loop, taken where rows are wider than a vector. */
static void add_version(Loops *l, LKernel *k, LStmt *s, const Expr *width) {
    LStmt *wide = loop_copy_again(l->a, k, s);
    s->sched.where = wide->sched.where = width;
    s->sched.most = wide->sched.most = l->machine.lanes;
    wide->sched.above = true;
    wide->next = s->next;
    s->next = wide;
}

/* Runs the pass on one parallel loop. */
static bool one(PassCtx *p, Loops *l, LKernel *k, LStmt *s) {
    Rows r = begin(l->a, k, s);
    cut(&r);
    if (!is_fine(&r) || !is_worth_it(&r, l->machine.lanes)) {
        pass_declined(p, s->span, "vectorise-outer", "rows of %s are not in lanes: %s", k->name,
                      r.why);
        return false;
    }
    if (r.width) add_version(l, k, s, r.width);
    order(&r, s);
    s->sched.rows = l->machine.lanes;
    pass_remark(p, s->span, "vectorise-outer", "%d rows of %s are side by side in lanes%s",
                l->machine.lanes, k->name, r.width ? ", where they are no longer than that" : "");
    return true;
}

static bool run(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n && l->machine.lanes > 1; i++) {
        LKernel *k = l->k.v[i];
        bool any = false;
        for (LStmt *s = k->body; s; s = s->next) {
            const LSched *h = &s->sched;
            bool plain = s->kind == L_FOR && h->parallel && !h->lanes && !h->rows && !h->where;
            any |= plain && one(p, l, k, s);
        }
        if (any) loop_number(k);
    }
    return true;
}

const Pass loop_pass_vectorise_outer = {
    .name = "vectorise-outer",
    .summary = "narrow rows are side by side in lanes, each row in its own",
    .run_loops = run,
};
