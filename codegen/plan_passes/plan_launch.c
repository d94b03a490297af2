/* Kernels of one form that a device launches at once: the gradients of embedding tables.
 *
 *     3: kernel k_a(dx, ptr_a, perm_a, da) over=A
 *     5: kernel k_b(dx, ptr_b, perm_b, db) over=B
 * =>
 *     3: kernel k_a(..) over=A [group 3..4, of one form]
 *     4: kernel k_b(..) over=B [group 3..4, of one form]
 *
 * A model of a database has a table for each column of categories.  A table has few rows, to each
 * of which many entries are added, so that its kernel fills a part of a device, for less time than
 * a launch costs.  The kernels are alike but for their arguments and numbers of rows: one text does
 * for all, and each block finds the arguments that it has in a list (PyTorch's multi_tensor_apply;
 * Li et al., HFuse, CGO 2022, for kernels side by side).  Each row is added up as in a launch of
 * its own, so no bits change.
 *
 * Of a kernel with many rows nothing would be gained: it fills the device.  The steps stay what
 * they are, and the host runs them as ever, as with groups of products (plan_group.c), whose rules
 * hold: loops over blocks of rows stay whole, and no step becomes fuller than the fullest one. */
#include "codegen/plan_passes/plan_group.h"
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"
#include "passes/threshold.h"

enum {
    ARGUMENT_BYTES = 4000, /* of the 4 KiB that a launch takes */
    OTHER_ARGUMENTS = 8    /* of a kernel, beside its buffers and sizes */
};

/* ---- which kernels ------------------------------------------------------------------------- */
/* The parallel loop of a step's kernel that adds entries to the rows of a parameter; NULL: it is
 * another step. */
static const LStmt *table_loop(const PStep *s) {
    if (s->kind != PS_KERNEL || s->kernel->stages.n) return NULL;
    const LStmt *l = plan_first_loop(s->kernel);
    if (!l || l->kind != L_FOR || l->range != LR_EXTENT || !l->sched.parallel || l->next)
        return NULL;
    if (loop_count_entry_loops(l->body) != 1 || loop_has_range(l->body, LR_CHUNK)) return NULL;
    return expr_counts_rows(l->extent) ? NULL : l;
}

/* Why the step's kernel cannot be launched with others, in words; NULL: it can. */
static const char *obstacle(const PStep *s) {
    const LStmt *l = plan_first_loop(s->kernel);
    int64_t n;
    if (s->partition) return "processes share its rows";
    if (s->pred >= 0) return "it is not always wanted";
    if (s->covered_by) return "a product covers it";
    if (s->op->ask == ASK_APART) return "its value is shown";
    if (s->spmm && s->spmm->index >= 0) return "it is a sparse product of the library";
    return l && expr_is_const(l->extent, &n) && n == 1 ? "it has one row" : NULL;
}

/* ---- how many of them, and whether a group is one ------------------------------------------- */
/* How often a size is named in an expression. */
static int sizes_in(const Expr *e) {
    if (!e || e->kind == EX_CONST) return 0;
    return e->kind == EX_SYM ? 1 : sizes_in(e->a) + sizes_in(e->b);
}

/* .. in the statements: as many arguments as they need, at most. */
static int sizes_of(const LStmt *s) {
    int n = 0;
    for (; s; s = s->next) {
        n += sizes_in(s->extent) + sizes_in(s->n_chunks) + sizes_in(s->size);
        for (int i = 1; loop_is_access(s) && i < s->buf->rank; i++) n += sizes_in(s->buf->dim[i]);
        if (loop_has_body(s)) n += sizes_of(s->body);
    }
    return n;
}

/* Of how many kernels like this one a launch takes the arguments. */
static int argument_lists(const LKernel *k) {
    return ARGUMENT_BYTES / (8 * (k->bufs.n + sizes_of(k->body) + OTHER_ARGUMENTS));
}

static int most_kernels(const Ctx *c, const LKernel *k) {
    const int fit = argument_lists(k), most = pass_threshold(c, PASS_T_LAUNCH_KERNELS);
    return fit < most ? fit : most;
}

/* Of loops that have been arranged for a device the first one alone is no longer that of rows. */
static const char *member_misfit(const Plan *p, const PStep *s) {
    if (s->kind != PS_KERNEL) return "it is no kernel";
    if (s->kernel->stages.n) return "it has several stages";
    if (!p->scheduled_for && !table_loop(s)) return "it adds no entries to few rows";
    return obstacle(s);
}

const char *plan_launch_misfit(const Plan *p, const PGroup *g) {
    if (!p->device) return "a launch for several kernels, in a plan for no device";
    for (int i = 0; i < g->steps.n; i++) {
        const PStep *s = g->steps.v[i];
        const char *why = member_misfit(p, s);
        if (why) return why;
        if (!loop_same_form(s->kernel, g->steps.v[0]->kernel)) return "it has another form";
        for (int k = 0; k < i; k++)
            if (plan_must_stay_ordered(g->steps.v[k], s))
                return "it needs another one, or what that leaves";
    }
    return g->steps.n > argument_lists(g->steps.v[0]->kernel) ? "they have too many arguments"
                                                              : NULL;
}

/* ---- the pass ------------------------------------------------------------------------------ */
typedef struct {
    PassCtx *pc;
    const Plan *p;
    GroupSearch f;
    const int64_t *sizes; /* by symbol: nominal */
} Launches;

/* Why the step's kernel is a launch of its own; NULL: it need not be. *is_table: it adds entries to
 * the rows of a parameter. */
static const char *alone_reason(const Launches *l, const PStep *s, bool *is_table) {
    const LStmt *loop = table_loop(s);
    *is_table = loop != NULL;
    if (!loop) return "it adds no entries to few rows";
    const char *why = obstacle(s);
    if (why) return why;
    if (l->p->spmm != SPMM_OWN) return "the library may make its sum (--spmm)";
    const int64_t rows = expr_eval(loop->extent, l->sizes);
    if (rows > pass_threshold(l->pc->ctx, PASS_T_LAUNCH_ROWS))
        return arena_printf(l->pc->a, "its %lld rows fill a device", (long long)rows);
    return NULL;
}

/* Puts kernels of the form of that at position `at` beside it; returns how many there are then. */
static int grow(Launches *l, int at, const char **why_not) {
    GroupSearch *f = &l->f;
    PStep *first = f->ph->steps.v[at];
    PGroup *g = plan_group_begin(f, first);
    const int most = most_kernels(l->pc->ctx, first->kernel);
    bool is_table;
    *why_not = "no other has its form";
    for (int i = at + 1; i < f->ph->steps.n && g->steps.n < most; i++) {
        PStep *s = f->ph->steps.v[i];
        if (s->group || alone_reason(l, s, &is_table)) continue;
        if (!loop_same_form(first->kernel, s->kernel) || !pass_may_rewrite(l->pc)) continue;
        const char *why = plan_group_add(f, g, i);
        if (!why) continue;
        *why_not = why;
        pass_refusal(l->pc, s->span, "group-kernels", "'%s' (%s) is not one launch with '%s': %s",
                     s->note, s->kernel->name, first->note, why);
    }
    g->same_shape = true;
    if (g->steps.n == 1) first->group = NULL;
    return g->steps.n;
}

static void group_phase(Launches *l) {
    PPhase *ph = l->f.ph;
    for (int i = 0; i < ph->steps.n; i++) {
        PStep *s = ph->steps.v[i];
        bool is_table;
        if (s->group) continue;
        const char *why = alone_reason(l, s, &is_table);
        const int n = why ? 1 : grow(l, i, &why);
        if (n > 1)
            pass_remark(l->pc, s->span, "group-kernels", "'%s' and %d more are one launch", s->note,
                        n - 1);
        else if (is_table)
            pass_declined(l->pc, s->span, "group-kernels", "'%s' (%s) is a launch of its own: %s",
                          s->note, s->kernel->name, why);
    }
}

static bool run(PassCtx *pc, Plan *p) {
    for (int i = 0; i < p->phases.n && p->device && !p->scheduled_for; i++) {
        Launches l = {.pc = pc,
                      .p = p,
                      .f = plan_group_search(pc->a, p, p->phases.v[i]),
                      .sizes = plan_order_nominal_sizes(pc->a, p->m)};
        group_phase(&l);
    }
    return true;
}

const Pass plan_pass_group_kernels = {
    .name = "group-kernels",
    .summary = "let a device launch kernels of one form over few rows at once",
    .needs = PLAN_STEPS,
    .breaks = PLAN_LIVES,
    .bars = PLAN_STREAMS,
    .run_plan = run,
};
