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
} RowStatements;

/* ---- where ----------------------------------------------------------------------------- */
/* Whether statement i defines a value that each stage may compute again: it depends only on such
 * values and on memory that the kernel does not write. */
static bool is_recomputable(const RowStatements *r, int i) {
    const LStmt *s = r->stmts.v[i];
    bool is_value = s->kind == L_LET || (s->kind == L_LOAD && s->buf->kind != LB_LOCAL);
    if (!is_value || (s->kind == L_LOAD && s->buf->written)) return false;
    for (int j = 0; j < i; j++)
        if (!r->recomputable[j] && r->stmts.v[j]->dst && loop_reads(s, r->stmts.v[j]->dst))
            return false;
    return true;
}

/* The number of the last statement that needs a register or local array that statement i defines.
 */
static int last_use(const RowStatements *r, int i) {
    const LStmt *s = r->stmts.v[i];
    int last = i;
    if (r->recomputable[i]) return i;
    for (int j = i + 1; j < r->stmts.n; j++) {
        bool uses_array = s->kind == L_LOCAL && loop_depends(r->stmts.v[j], s);
        if (uses_array || (s->dst && loop_reads(r->stmts.v[j], s->dst))) last = j;
    }
    return last;
}

/* Finds the statements of the row after which a stage may end: nothing that a later statement needs
 * is in a register then. */
static RowStatements analyze_row(Arena *a, const LKernel *k, const LStmt *parallel) {
    RowStatements r = {.a = a, .k = k, .parallel = parallel};
    for (const LStmt *s = *loop_row_list((LKernel *)k); s; s = s->next) vec_push(a, &r.stmts, s);
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
static bool writes_buffer(const LStmt *s, const void *buf) {
    return loop_is_write(s) && s->buf == buf;
}

/* Removes from the list at *at all statements except first .. end - 1 and the values that each
 * stage computes again. */
static void keep_statements(const RowStatements *r, LStmt **at, int first, int end) {
    for (int i = 0; *at; i++) {
        if (i >= end || (i < first && !r->recomputable[i]))
            *at = (*at)->next;
        else
            at = &(*at)->next;
    }
}

/* Whether a statement before number `end` of the row writes buffer b. */
static bool is_written_before(const RowStatements *r, int end, const LBuf *b) {
    for (int i = 0; i < end; i++) {
        const LStmt *s = r->stmts.v[i];
        if (writes_buffer(s, b) || (loop_has_body(s) && loop_find(s->body, writes_buffer, b)))
            return true;
    }
    return false;
}

/* A kernel with statements first .. end - 1 of the row, stage number `number`. */
static LKernel *make_stage(const RowStatements *r, int first, int end, int number) {
    LKernel *k = loop_copy(r->a, r->k);
    LStmt **row = loop_row_list(k);
    k->name = arena_printf(r->a, "%s_stage%d", r->k->name, number);
    keep_statements(r, row, first, end);
    for (int i = 0; i < k->bufs.n; i++) {
        LBuf *b = k->bufs.v[i];
        b->written = loop_find(*row, writes_buffer, b);
        b->begun = b->written && (b->begun || is_written_before(r, first, r->k->bufs.v[i]));
    }
    return k;
}

/* ---- which ----------------------------------------------------------------------------- */
/* How many loops are part of the parallel loop's index. */
static int count_collapsed(const LKernel *k) {
    int n = 0;
    for (LStmt *s = loop_parallel(k)->body; (s = loop_collapsed(s)); s = s->body) n++;
    return n;
}

/* Whether a single thread would run through the feature columns of a row. n_collapsed: loops that
 * are part of the index in any case. */
static bool runs_columns_serially(const LKernel *k, int n_collapsed) {
    return k->threads.kind == LT_THREAD && count_collapsed(k) <= n_collapsed &&
           loop_has_range(*loop_row_list((LKernel *)k), LR_EXTENT);
}

/* Whether the schedule that kernel k would get divides entries and columns of a row among threads.
 */
static bool is_parallel_enough(Loops *l, const LKernel *k) {
    const LKernel *scheduled = loop_choose_schedule(l, loop_copy(l->a, k));
    return loop_count_serial_entry_loops(scheduled) == 0 &&
           !runs_columns_serially(scheduled, count_collapsed(k));
}

/* The end (exclusive) of the shortest stage that begins at statement `from`. */
static int next_stage_end(const RowStatements *r, int from) {
    while (from < r->stmts.n - 1 && !r->may_end_stage[from]) from++;
    return from + 1;
}

/* The end (exclusive) of the longest stage from statement `first` on whose work can be divided
 * among threads; 0 = there is none. */
static int longest_stage(Loops *l, const RowStatements *r, int first) {
    int best_end = 0;
    for (int end = first; end < r->stmts.n;) {
        end = next_stage_end(r, end);
        const LKernel *k = make_stage(r, first, end, 0);
        bool has_entries = loop_has_range(k->body, LR_SEGMENT) || loop_has_range(k->body, LR_CHUNK);
        if (is_parallel_enough(l, k) || (best_end == 0 && !has_entries))
            best_end = end;
        else if (best_end)
            break;
    }
    return best_end;
}

/* Splits the kernel into stages, launched one after the other, and appends them to `out`; false: it
 * stays one kernel. */
static bool split_kernel(Loops *l, const LKernel *k, LKernels *out) {
    const LStmt *parallel = loop_parallel(k);
    if (!parallel || k->threads.kind) return false;
    if (loop_count_serial_entry_loops(loop_choose_schedule(l, loop_copy(l->a, k))) == 0)
        return false;
    const RowStatements r = analyze_row(l->a, k, parallel);
    LKernels stages = {0};
    for (int first = 0, end; first < r.stmts.n; first = end) {
        end = longest_stage(l, &r, first);
        if (!end) {
            pass_refusal(l->pass, r.stmts.v[first]->span, "fission",
                         "%s: not: no piece of a row that begins with its statement %d can be "
                         "shared out to threads",
                         k->name, first + 1);
            return false;
        }
        LKernel *stage = make_stage(&r, first, end, stages.n + 1);
        vec_push(l->a, &stages, stage);
    }
    for (int i = 0; i < stages.n; i++) vec_push(l->a, out, stages.v[i]);
    pass_remark(l->pass, k->span, "fission", "%s: %d stages", k->name, stages.n);
    return true;
}

/* Runs the pass: splits kernels whose rows no team can have as a whole into stages that teams can
 * have. */
static bool run_fission(PassCtx *p, Loops *l) {
    LKernels kernels = {0};
    (void)p;
    for (int i = 0; i < l->k.n && l->on->columns; i++)
        if (!split_kernel(l, l->k.v[i], &kernels)) vec_push(l->a, &kernels, l->k.v[i]);
    if (l->on->columns) l->k = kernels;
    for (int i = 0; i < l->k.n; i++) loop_renumber_registers(l->k.v[i]);
    return true;
}

const Pass loop_pass_fission = {
    .name = "fission",
    .summary = "a row whose heads meet and part again is several kernels, one after the other",
    .run_loops = run_fission,
};
