/* Rows that are computed while rows of other processes come.
 *
 *     exchange z: reach cites(src)          exchange z: .. beside paper(bounds of dst, src)
 *     s = sum over edges of z[src]    =>    s = sum ..: rows whose edges come from own rows of z;
 *                                               wait; the other rows
 *
 * Of an exchange, or several, whose reader is the step behind them, and computes row by row: the
 * pass finds the paths of index arrays from its rows to rows of the value, which are the loads of
 * its kernel.  A row that leads to no row of others is an interior one and needs nothing of the
 * exchange (Hoefler et al. 2007, on overlap in stencils); which rows are, data tell
 * (runtime/exec/beside.c).  Rows are computed alone, so the bits stay.  Where that step sums over
 * rows, is a product, or stands under a condition, the exchange is waited for. */
#include "codegen/plan_passes/plan_order.h"
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"

/* Where an index comes from: the loop's own row, through n index arrays. */
typedef struct {
    bool is_known;
    int n, via[PLAN_HALO_DEPTH_MAX];
} RowPath;

/* A walk over a kernel that finds its paths to rows of a buffer. */
typedef struct {
    Arena *a;
    const PStep *s;
    int buf;           /* id of the buffer that the exchange brings rows of */
    bool own_elements; /* all accesses to it are at elements of the step's own rows */
    RowPath *reg;      /* by register */
    PHaloList *paths;
    const char *fails; /* why they are not known; NULL: nothing yet */
} PathWalk;

/* The path through one more index array; unknown where it is too long. */
static RowPath extend(const PathWalk *w, RowPath at, const LBuf *through) {
    if (!at.is_known || at.n == PLAN_HALO_DEPTH_MAX) return (RowPath){0};
    at.via[at.n++] = w->s->bufs[through->id];
    return at;
}

/* Adds a path to the list, once. */
static void record_path(PathWalk *w, const RowPath *at) {
    PHalo path = {.from = w->s->partition, .n_via = at->n};
    for (int i = 0; i < at->n; i++) path.via[i] = at->via[i];
    if (!plan_has_halo(w->paths, &path)) vec_push(w->a, w->paths, path);
}

/* Where the loaded register, as an index, comes from; records what is read of the buffer. */
static RowPath load_path(PathWalk *w, const LStmt *s) {
    const LBuf *b = s->buf;
    RowPath at = b->rank ? w->reg[s->idx[0]->id] : (RowPath){0};
    if (b->kind == LB_MAP_IDX || b->kind == LB_MAP_PERM) return extend(w, at, b);
    if (b->kind != LB_VALUE || w->s->bufs[b->id] != w->buf) return (RowPath){0};
    if (at.is_known && at.n)
        record_path(w, &at);
    else if (!at.is_known && !w->own_elements)
        w->fails = "reads rows that its index arrays do not tell";
    return (RowPath){0};
}

/* Visits a list of statements. */
static void walk_list(PathWalk *w, const LStmt *s) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR) {
            bool rows = s->sched.parallel && expr_eq(s->extent, w->s->partition->size);
            w->reg[s->var->id] = rows                     ? (RowPath){.is_known = true}
                                 : s->range == LR_SEGMENT ? extend(w, w->reg[s->at->id], s->ptr)
                                                          : (RowPath){0};
        }
        bool cast = s->kind == L_LET && s->fn == L_FN_OP && s->op == OP_CAST;
        if (s->kind == L_LET) w->reg[s->dst->id] = cast ? w->reg[s->arg[0]->id] : (RowPath){0};
        if (s->kind == L_LOAD) w->reg[s->dst->id] = load_path(w, s);
        walk_list(w, s->body);
    }
}

/* Why the rows of a step cannot be computed one by one, some of them first; NULL: they can. */
static const char *why_at_once(const PStep *s) {
    if (s->kind != PS_KERNEL || !s->partition) return "is no kernel of own rows";
    if (s->partials) return "sums over rows";
    if (s->pred >= 0) return "stands under a condition";
    return loop_is_joined(s->kernel) ? "has loops over several ranges" : NULL;
}

/* The step behind exchange number `at`, and behind other exchanges of halos; NULL: there is none.
 */
static const PStep *step_behind(const PPhase *ph, int at) {
    while (at < ph->steps.n && ph->steps.v[at]->halos.n) at++;
    return at < ph->steps.n ? ph->steps.v[at] : NULL;
}

const char *plan_beside_paths(Arena *a, const Plan *p, const PPhase *ph, int at,
                              const PStep **reader, PHaloList *paths) {
    const PStep *s = step_behind(ph, at);
    const char *why = s ? why_at_once(s) : "is none";
    *reader = why ? NULL : s;
    if (why) return why;
    StepAccesses accesses = plan_step_accesses(a, p, s);
    PathWalk w = {.a = a, .s = s, .own_elements = true, .paths = paths};
    w.buf = ph->steps.v[at]->bufs[0];
    for (int i = 0; i < s->n_bufs; i++) {
        if (s->bufs[i] != w.buf) continue;
        if (accesses.written[i]) return "writes it";
        w.own_elements = w.own_elements && accesses.at[i] == AT_ROW;
    }
    w.reg = NEWN(a, RowPath, (size_t)s->kernel->n_regs + 1);
    walk_list(&w, s->kernel->body);
    return w.fails ? w.fails : paths->n == 0 ? "does not read it" : NULL;
}

bool plan_rows_come(const PPhase *ph, const PStep *s) {
    for (int i = plan_step_index(ph, s) - 1; i >= 0 && ph->steps.v[i]->halos.n; i--)
        if (ph->steps.v[i]->beside.n) return true;
    return false;
}

/* Lets rows of the step behind exchange number `at` be computed beside it, if they can. */
static void overlap(PassCtx *pc, const Plan *p, const PPhase *ph, int at) {
    PStep *e = ph->steps.v[at];
    const char *value = p->bufs.v[e->bufs[0]]->name;
    PHaloList paths = {0};
    const PStep *reader;
    const char *why = plan_beside_paths(pc->a, p, ph, at, &reader, &paths);
    if (why) {
        pass_refusal(pc, e->span, "overlap-exchanges",
                     "@%s: nothing is computed while rows of %s come: the step behind %s", ph->name,
                     value, why);
        return;
    }
    e->beside = paths;
    pass_remark(pc, e->span, "overlap-exchanges",
                "@%s: while rows of %s come, rows of %s that read none of them are computed",
                ph->name, value, reader->partition->name);
}

static bool run(PassCtx *pc, Plan *p) {
    for (int i = 0; i < p->phases.n; i++) {
        const PPhase *ph = p->phases.v[i];
        for (int k = 0; k < ph->steps.n; k++)
            if (ph->steps.v[k]->halos.n && !ph->steps.v[k]->beside.n) overlap(pc, p, ph, k);
    }
    return true;
}

const Pass plan_pass_overlap_exchanges = {
    .name = "overlap-exchanges",
    .summary = "compute rows that read none of others while these come",
    .needs = PLAN_STEPS,
    .gives = PLAN_OVERLAPPED,
    .run_plan = run,
};
