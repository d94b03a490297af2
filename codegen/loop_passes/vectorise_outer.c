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

typedef struct StatementGroup StatementGroup;
/* Neighbouring statements of the loop that are executed with a row per lane, or (serial) row by
 * row. */
struct StatementGroup {
    bool serial;
    VEC(LStmt *) stmts;
    StatementGroup *next, *prev;
};

typedef struct {
    Arena *a;
    const LStmt *loop;
    StatementGroup *groups, *last;
    bool *varies;       /* [n_regs] */
    const Expr *width;  /* of the rows, where only data know it */
    const char *reason; /* they cannot, or need not, go in lanes */
    int64_t longest;    /* row of constant width */
    bool heavy;         /* work that lanes save: on rows of unknown width, */
    bool heavy_short;   /* of constant width, */
    bool sums;          /* and sums along those */
} RowAnalysis;

/* ---- which statements go row by row ------------------------------------------------------ */
/* Whether a loop over entries is among the statements, or nested in them. */
static bool has_entry_loop(const LStmt *s) {
    for (; s; s = s->next)
        if ((s->kind == L_FOR && s->range != LR_EXTENT) || has_entry_loop(s->body)) return true;
    return false;
}

/* Whether s is a loop over entries, or has one in it. */
static bool is_entry_loop(const LStmt *s) {
    return s->kind == L_FOR && (s->range != LR_EXTENT || has_entry_loop(s->body));
}

/* The buffer of the first store among the statements. */
static const LBuf *first_stored(const LStmt *s) {
    const LBuf *b = NULL;
    for (; s && !b; s = s->next) b = s->kind == L_STORE ? s->buf : first_stored(s->body);
    return b;
}

/* The last loop over entries before s, if only loops over rows stand between them; NULL = there is
 * none. */
static const LStmt *entry_loop_before(const LStmt *loop, const LStmt *s) {
    const LStmt *entries = NULL;
    for (const LStmt *p = loop->body; p != s; p = p->next)
        entries = is_entry_loop(p) ? p : p->kind == L_FOR ? entries : NULL;
    return entries;
}

/* The next loop over entries after s, if only loops over rows stand between them; NULL = there is
 * none. */
static const LStmt *entry_loop_after(const LStmt *s) {
    const LStmt *next = s->next;
    while (next && next->kind == L_FOR && !is_entry_loop(next)) next = next->next;
    return next && next->kind == L_FOR ? next : NULL;
}

/* Whether the statements accumulate into anything. */
static bool has_sum(const LStmt *s) {
    for (; s; s = s->next)
        if (s->kind == L_ACC || has_sum(s->body)) return true;
    return false;
}

/* Whether all dimensions of the local variable are 1. */
static bool is_scalar_local(const LBuf *b) {
    for (int i = 0; i < b->rank; i++)
        if (!loop_is_unit_extent(b->dim[i])) return false;
    return true;
}

/* Whether the statements access a local array of a whole row, which registers hold for one row at a
 * time. */
static bool accesses_local_row(const LStmt *s) {
    for (; s; s = s->next) {
        bool local = loop_is_access(s) && s->buf->kind == LB_LOCAL;
        if ((local && !is_scalar_local(s->buf)) || accesses_local_row(s->body)) return true;
    }
    return false;
}

/* Whether the statement must be run for one row after the other, not with a row per lane: loops
 * over entries, and what initialises or finishes their row of sums (a bias), so that this row stays
 * in registers. */
static bool runs_row_by_row(const LStmt *loop, const LStmt *s) {
    if (s->kind == L_LOCAL) return !is_scalar_local(s->buf);
    if (s->kind != L_FOR) return false;
    if (is_entry_loop(s) || accesses_local_row(s->body)) return true;
    const LBuf *b = first_stored(s->body);
    const LStmt *after = entry_loop_after(s), *before = entry_loop_before(loop, s);
    if (b && after && loop_writes(after->body, b)) return true;
    bool finishes_row = b && before && loop_writes(before->body, b);
    return finishes_row && !has_sum(s->body) && !loop_has_heavy(s->body, NULL);
}

bool loop_is_serial(const LStmt *s) {
    if (s->kind == L_LOCAL) return !is_scalar_local(s->buf);
    return s->kind == L_TILE || (s->kind == L_FOR && s->sched.serial);
}

/* ---- runs of statements ------------------------------------------------------------------- */
/* Whether s depends on a statement of the group. */
static bool depends_on_group(const LStmt *s, const StatementGroup *group) {
    for (int i = 0; i < group->stmts.n; i++)
        if (loop_depends(s, group->stmts.v[i])) return true;
    return false;
}

/* Appends an empty group of statements to the analysis and returns it. serial: they will run for
 * one row after the other, else with a row in each lane. */
static StatementGroup *add_group(RowAnalysis *r, bool serial) {
    StatementGroup *group = NEW(r->a, StatementGroup);
    *group = (StatementGroup){.serial = serial, .prev = r->last};
    *(r->last ? &r->last->next : &r->groups) = group;
    return r->last = group;
}

/* The group that statement s joins. One that runs row by row joins the earlier such group that it
 * depends on, if it does not depend on what lies between; a scalar from memory goes before that
 * group. */
static StatementGroup *choose_group(RowAnalysis *r, const LStmt *s, bool serial) {
    StatementGroup *last_group = r->last,
                   *row_group = last_group->serial ? last_group : last_group->prev;
    bool may_move = row_group && (last_group == row_group || !depends_on_group(s, last_group));
    if (!serial && may_move && loop_is_value(s) && !depends_on_group(s, row_group))
        return row_group->prev;
    if (last_group->serial == serial) return last_group;
    return serial && may_move && depends_on_group(s, row_group) ? row_group : add_group(r, serial);
}

/* Divides the parallel loop's statements into groups that run with a row per lane, or row by row.
 */
static void form_groups(RowAnalysis *r) {
    add_group(r, false);
    for (LStmt *s = r->loop->body; s; s = s->next) {
        StatementGroup *group = choose_group(r, s, runs_row_by_row(r->loop, s));
        vec_push(r->a, &group->stmts, s);
    }
}

/* Divides the statements into groups as the marks in the text say. */
static void read_groups_of_text(RowAnalysis *r) {
    add_group(r, false);
    for (LStmt *s = r->loop->body; s; s = s->next) {
        bool serial = loop_is_serial(s);
        StatementGroup *group = r->last->serial == serial ? r->last : add_group(r, serial);
        vec_push(r->a, &group->stmts, s);
    }
}

/* ---- may the others go in lanes? ------------------------------------------------------------ */
/* Records why rows are not put in lanes; returns false. */
static bool refuse_lanes(RowAnalysis *r, const char *why) {
    r->reason = why;
    return false;
}

enum { LONG = 1 << 20 }; /* far more elements than a vector has */

/* The number n, or LONG if n is larger, so that products do not overflow. */
static int64_t saturate(int64_t n) {
    return n < LONG ? n : LONG;
}

/* Checks the statements s of a group that runs with a row per lane, and notes what they would gain.
 * row_elements: how many elements of a row the loops around s run through. */
static bool check_lane_loops(RowAnalysis *r, const LStmt *s, int64_t row_elements) {
    for (; s; s = s->next) {
        int64_t extent = 1;
        if (s->kind == L_ACC && s->buf->kind != LB_LOCAL)
            return refuse_lanes(r, "something is added up in memory");
        if (s->kind == L_LOCAL && s->buf->rank > 0)
            return refuse_lanes(r, "a row is had in a local array");
        r->sums |= s->kind == L_ACC && row_elements > 1;
        if (s->kind == L_FOR && !expr_is_const(s->extent, &extent)) {
            if (!r->width) r->width = s->extent;
            if (!expr_eq(r->width, s->extent)) r->reason = "rows have several widths";
            r->heavy |= loop_has_heavy(s->body, NULL);
            extent = 1;
        }
        extent = saturate(row_elements * saturate(extent));
        if (extent > r->longest) r->longest = extent;
        r->heavy_short |= extent > 1 && loop_has_heavy(s->body, NULL);
        if (!check_lane_loops(r, s->body, extent)) return false;
    }
    return true;
}

/* How many accesses to buffer b the group has. */
static int count_accesses(const StatementGroup *group, const LBuf *b) {
    int n = 0;
    for (int i = 0; i < group->stmts.n; i++) {
        LStmt one = *group->stmts.v[i];
        one.next = NULL;
        n += loop_count_accesses(&one, b);
    }
    return n;
}

/* Checks that a local row is used in one group only: the next row takes its registers. */
static bool check_serial_group(RowAnalysis *r, const StatementGroup *group) {
    for (int i = 0; i < group->stmts.n; i++) {
        const LStmt *s = group->stmts.v[i];
        if (s->kind == L_LOCAL &&
            count_accesses(group, s->buf) != loop_count_accesses(r->loop->body, s->buf))
            return refuse_lanes(r, "a row of sums is read after others are begun");
    }
    return true;
}

/* Checks that the statements of the group can be run with a row per lane. */
static bool check_lane_group(RowAnalysis *r, const StatementGroup *group) {
    for (int i = 0; i < group->stmts.n; i++) {
        LStmt copy = *group->stmts.v[i];
        if (copy.kind == L_LOCAL) continue;
        copy.next = NULL;
        if (has_entry_loop(&copy)) return refuse_lanes(r, "rows have entries under a condition");
        if (!check_lane_loops(r, &copy, 1)) return false;
        if (!loop_find_varying(r->loop, &copy, r->varies))
            return refuse_lanes(r, "rows are not independent");
    }
    return true;
}

/* A new analysis of the parallel loop: at first only its variable differs between lanes. */
static RowAnalysis begin_analysis(Arena *a, const LKernel *k, const LStmt *loop) {
    RowAnalysis r = {.a = a, .loop = loop};
    r.varies = NEWN(a, bool, (size_t)k->n_regs + 1);
    r.varies[loop->var->id] = true;
    return r;
}

/* Checks all groups of the parallel loop. */
static bool check_groups(RowAnalysis *r) {
    for (const StatementGroup *group = r->groups; group; group = group->next)
        if (group->serial ? !check_serial_group(r, group) : !check_lane_group(r, group))
            return false;
    return true;
}

/* Whether the parallel loop can be run with a row per lane as its text says. */
bool loop_may_vectorise_outer(Arena *a, const LKernel *k, const LStmt *loop) {
    RowAnalysis r = begin_analysis(a, k, loop);
    read_groups_of_text(&r);
    return check_groups(&r);
}

/* ---- the pass ------------------------------------------------------------------------------- */
/* Whether a row per lane saves work: heavy functions of rows, or sums along rows that fit a vector;
 * else r->reason says why not. */
static bool is_worth_it(RowAnalysis *r, int lanes) {
    if (r->reason) return false;
    if (r->width)
        return r->heavy || refuse_lanes(r, "no function of many instructions is computed of them");
    if (r->longest > lanes) return refuse_lanes(r, "rows are longer than a vector");
    if (!r->sums) return refuse_lanes(r, "nothing is summed along them");
    return r->heavy_short ||
           refuse_lanes(r, "no function of many instructions is computed of them");
}

/* Puts the loop's statements in the order of their groups, and marks those that run row by row. */
static void apply_order(const RowAnalysis *r, LStmt *loop) {
    LStmt **end = &loop->body;
    for (const StatementGroup *group = r->groups; group; group = group->next)
        for (int i = 0; i < group->stmts.n; i++) {
            LStmt *s = group->stmts.v[i];
            if (s->kind == L_FOR) s->sched.serial = group->serial;
            *end = s;
            end = &s->next;
        }
    *end = NULL;
}

/* Adds a copy of the loop as it was, for rows wider than a vector: which version runs is decided by
 * the width at run time. */
static void add_wide_version(Loops *l, LKernel *k, LStmt *s, const Expr *width) {
    LStmt *wide = loop_copy_stmt(l->a, k, s);
    s->sched.where = wide->sched.where = width;
    s->sched.max = wide->sched.max = l->machine.lanes;
    wide->sched.is_second = true;
    wide->next = s->next;
    s->next = wide;
}

/* Runs the pass on one parallel loop; true if its rows go in lanes. */
static bool vectorise_parallel_loop(PassCtx *p, Loops *l, LKernel *k, LStmt *s) {
    RowAnalysis r = begin_analysis(l->a, k, s);
    form_groups(&r);
    if (!check_groups(&r) || !is_worth_it(&r, l->machine.lanes)) {
        pass_declined(p, s->span, "vectorise-outer", "rows of %s are not in lanes: %s", k->name,
                      r.reason);
        return false;
    }
    if (r.width) add_wide_version(l, k, s, r.width);
    apply_order(&r, s);
    s->sched.rows = l->machine.lanes;
    pass_remark(p, s->span, "vectorise-outer", "%d rows of %s are side by side in lanes%s",
                l->machine.lanes, k->name, r.width ? ", where they are no longer than that" : "");
    return true;
}

/* Runs the pass (outer-loop vectorisation) on all kernels. */
static bool run_vectorise_outer(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n && l->machine.lanes > 1; i++) {
        LKernel *k = l->k.v[i];
        bool changed = false;
        for (LStmt *s = k->body; s; s = s->next) {
            const LSched *sched = &s->sched;
            bool is_candidate = s->kind == L_FOR && sched->parallel && !sched->lanes &&
                                !sched->rows && !sched->where;
            changed |= is_candidate && vectorise_parallel_loop(p, l, k, s);
        }
        if (changed) loop_renumber_registers(k);
    }
    return true;
}

const Pass loop_pass_vectorise_outer = {
    .name = "vectorise-outer",
    .summary = "narrow rows are side by side in lanes, each row in its own",
    .run_loops = run_vectorise_outer,
};
