/* A row whose heads meet, and then may part again: several kernels, launched one after the other.
 *
 *     for v in N parallel {                 NAME_stage1    a team for each head of a row
 *       h[v, head, c] = sums over entries
 *       for c { y[v, c] = mean of h }       NAME_stage2    a thread for each y[v, c]
 *       .. sums over entries that need y    NAME_stage3    a team for each head of a row
 *     }
 *
 * Where no team can have a row as it stands (`schedule`), its list is cut between statements that
 * hand each other on nothing but what is in memory.  What is computed from sizes, and from what
 * the kernel does not write, is computed anew where it is needed.  Pieces are put together again as
 * long as teams can have them.  Rows of a stage see what the stages before have written of
 * theirs, as they did within the row. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* The statements of a row, and where they can be cut. */
typedef struct {
    Arena *a;
    const LKernel *k;
    const LStmt *parallel;
    VEC(const LStmt *) stmts; /* the row's list */
    bool *recomputable;       /* [in] a value that each stage may compute for itself */
    bool *may_end_stage;      /* [in] a stage may end behind it */
} GatheredRow;

/* ---- where ----------------------------------------------------------------------------- */
/* Whether statement i is a value that each stage may compute again: it depends only on such values
 * and on memory that the kernel does not write. */
static bool is_recomputable(const GatheredRow *r, int i) {
    const LStmt *s = r->stmts.v[i];
    bool value = s->kind == L_LET || (s->kind == L_LOAD && s->buf->kind != LB_LOCAL);
    if (!value || (s->kind == L_LOAD && s->buf->written)) return false;
    for (int j = 0; j < i; j++)
        if (!r->recomputable[j] && r->stmts.v[j]->dst && loop_reads(s, r->stmts.v[j]->dst))
            return false;
    return true;
}

/* The last statement that needs a register or a local array of statement i. */
static int last_use(const GatheredRow *r, int i) {
    const LStmt *s = r->stmts.v[i];
    int last = i;
    if (r->recomputable[i]) return i;
    for (int j = i + 1; j < r->stmts.n; j++) {
        bool array = s->kind == L_LOCAL && loop_depends(r->stmts.v[j], s);
        if (array || (s->dst && loop_reads(r->stmts.v[j], s->dst))) last = j;
    }
    return last;
}

/* Finds the statements after which a stage may end. */
static GatheredRow analyze_row(Arena *a, const LKernel *k, const LStmt *parallel) {
    GatheredRow r = {.a = a, .k = k, .parallel = parallel};
    for (const LStmt *s = parallel->body; s; s = s->next) vec_push(a, &r.stmts, s);
    r.recomputable = NEWN(a, bool, r.stmts.n + 1);
    r.may_end_stage = NEWN(a, bool, r.stmts.n + 1);
    int last_needed = 0; /* up to here */
    for (int i = 0; i < r.stmts.n; i++) {
        r.recomputable[i] = is_recomputable(&r, i);
        int last = last_use(&r, i);
        if (last > last_needed) last_needed = last;
        r.may_end_stage[i] = last_needed <= i && !r.recomputable[i];
    }
    return r;
}

/* ---- a stage --------------------------------------------------------------------------- */
static bool writes(const LStmt *s, const void *buf) {
    return (s->kind == L_STORE || s->kind == L_ACC) && s->buf == buf;
}

/* Removes the statements of the row except first .. end - 1 and those that are recomputed. */
static void keep_range(const GatheredRow *r, LStmt **at, int first, int end) {
    for (int i = 0; *at; i++) {
        if (i >= end || (i < first && !r->recomputable[i]))
            *at = (*at)->next;
        else
            at = &(*at)->next;
    }
}

/* Whether a statement before number `end` writes b. */
static bool is_written_before(const GatheredRow *r, int end, const LBuf *b) {
    for (int i = 0; i < end; i++) {
        const LStmt *s = r->stmts.v[i];
        if (writes(s, b) || (loop_has_body(s) && loop_find(s->body, writes, b))) return true;
    }
    return false;
}

/* A kernel with statements first .. end - 1 of the row. */
static LKernel *make_stage(const GatheredRow *r, int first, int end, int number) {
    LKernel *k = loop_copy(r->a, r->k);
    LStmt *s = k->body;
    k->name = arena_printf(r->a, "%s_stage%d", r->k->name, number);
    while (!s->sched.parallel) s = s->next;
    keep_range(r, &s->body, first, end);
    for (int i = 0; i < k->bufs.n; i++) {
        LBuf *b = k->bufs.v[i];
        b->written = loop_find(s->body, writes, b);
        b->begun = b->written && (b->begun || is_written_before(r, first, r->k->bufs.v[i]));
    }
    return k;
}

/* ---- which ----------------------------------------------------------------------------- */
static bool is_collapsed(const LKernel *k) {
    for (const LStmt *s = loop_parallel(k)->body; s; s = s->next)
        if (s->kind == L_FOR && s->sched.collapse) return true;
    return false;
}

/* Whether a single thread would run through loops over columns. */
static bool has_long_rows(const LKernel *k) {
    return k->threads.kind == LT_THREAD && !is_collapsed(k) &&
           loop_has_range(loop_parallel(k)->body, LR_EXTENT);
}

/* Whether the schedule of the kernel divides the row's entries among threads, and gives each
 * element a thread. */
static bool is_parallel_enough(Loops *l, const LKernel *k) {
    const LKernel *t = loop_choose_schedule(l, loop_copy(l->a, k));
    return loop_count_serial_entry_loops(t) == 0 && !has_long_rows(t);
}

/* The end of the shortest piece from statement `from` on. */
static int next_cut(const GatheredRow *r, int from) {
    while (from < r->stmts.n - 1 && !r->may_end_stage[from]) from++;
    return from + 1;
}

/* The end of the longest stage from `first` on whose work can be divided among threads; 0 = there
 * is none. */
static int longest_stage(Loops *l, const GatheredRow *r, int first) {
    int best = 0;
    for (int end = first; end < r->stmts.n;) {
        end = next_cut(r, end);
        const LKernel *k = make_stage(r, first, end, 0);
        bool entries = loop_has_range(k->body, LR_SEGMENT);
        if (is_parallel_enough(l, k) || (best == 0 && !entries))
            best = end;
        else if (best)
            break;
    }
    return best;
}

/* Cuts the kernel in stages and appends them to `to`; false: it stays one. */
static bool cut_kernel(Loops *l, const LKernel *k, LKernels *to) {
    const LStmt *parallel = loop_parallel(k);
    if (!parallel || k->threads.kind) return false;
    if (loop_count_serial_entry_loops(loop_choose_schedule(l, loop_copy(l->a, k))) == 0)
        return false;
    const GatheredRow r = analyze_row(l->a, k, parallel);
    LKernels all = {0};
    for (int first = 0, end; first < r.stmts.n; first = end) {
        end = longest_stage(l, &r, first);
        if (!end) {
            pass_refusal(l->pass, r.stmts.v[first]->span, "fission",
                         "%s: not: no piece of a row that begins with its statement %d can be "
                         "shared out to threads",
                         k->name, first + 1);
            return false;
        }
        LKernel *s = make_stage(&r, first, end, all.n + 1);
        vec_push(l->a, &all, s);
    }
    for (int i = 0; i < all.n; i++) vec_push(l->a, to, all.v[i]);
    pass_remark(l->pass, k->span, "fission", "%s: %d stages", k->name, all.n);
    return true;
}

static bool run(PassCtx *p, Loops *l) {
    LKernels all = {0};
    (void)p;
    for (int i = 0; i < l->k.n && l->on->columns; i++)
        if (!cut_kernel(l, l->k.v[i], &all)) vec_push(l->a, &all, l->k.v[i]);
    if (l->on->columns) l->k = all;
    for (int i = 0; i < l->k.n; i++) loop_renumber_registers(l->k.v[i]);
    return true;
}

const Pass loop_pass_fission = {
    .name = "fission",
    .summary = "a row whose heads meet and part again is several kernels, one after the other",
    .run_loops = run,
};
