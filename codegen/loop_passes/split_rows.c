/* Rows with more entries than a block should have: several blocks take parts of them first.
 *
 *     for %e in segment p[%v] by ways {
 *         =>     for %e in segment p[%v] by ways split 2048 from 65536 {
 *
 * Split reductions (CUTLASS's split-K; merge-based SpMV, Merrill and Garland 2016, for the cut by
 * entries; FlashDecoding, Dao, Haziza, Massa and Sizov 2023, for attention).  Each block leaves its
 * part's sums, f32 numbers or columns, in memory, and the row's own adds them up in their order.  A
 * row may go through its entries several times, each time with what they add up to before: then
 * parts are taken as often, and their blocks begin as the row's own does, with the sums that are
 * there.  A row is long that has more entries than two parts; a block that has such rows
 * (`hub_entries`) adds up what others left.  Where all rows have fewer entries than `from` that is
 * not worth a launch. */
#include "codegen/loop_passes/team.h"
#include "passes/rewrite.h"

/* The list of statements of a row: of the innermost loop that is part of the parallel index. */
static const LStmt *row_list(const LoopTeam *t) {
    LStmt *row = loop_parallel(t->k)->body;
    for (LStmt *in; (in = loop_collapsed(row));) row = in->body;
    return row;
}

/* Whether the threads of a team share the loop over a row's entries: ways, or all of them. */
static bool is_shared_entry_loop(const LoopTeam *t, const LoopColumns *r, const LStmt *s) {
    if (s->kind != L_FOR || s->range != LR_SEGMENT || s->at != loop_parallel(t->k)->var)
        return false;
    return s->sched.share == LS_WAYS || (r->all_threads && s->sched.share == LS_TEAM);
}

int loop_split_loops(const LoopTeam *t, const LStmt **out) {
    int n = 0;
    for (int i = 0; i < t->regions.n; i++) {
        const LoopColumns *r = &t->regions.v[i];
        for (const LStmt *s = r->first; s != r->end && n < LOOP_TARGETS_MAX; s = s->next)
            if (is_shared_entry_loop(t, r, s)) out[n++] = s;
    }
    return n;
}

/* Adds what a loop over entries adds up to `out`: numbers, and columns where a loop over these
 * stands around. Returns how many there are then. */
static int add_sums(const LoopTeam *t, const LoopColumns *r, const LStmt *loop, const LStmt *s,
                    bool in_columns, LoopSplitSum *out, int n) {
    for (; s; s = s->next) {
        const bool is_sum =
            s->kind == L_ACC && !(s->buf->kind == LB_LOCAL && loop_declares(loop->body, s->buf));
        if (is_sum && n < LOOP_TARGETS_MAX)
            out[n++] =
                (LoopSplitSum){s, in_columns ? r->range->extent : expr_const(t->a, 1), in_columns};
        const bool is_columns = r->range->range == LR_EXTENT && loop_is_columns(s);
        if (loop_has_body(s)) n = add_sums(t, r, loop, s->body, in_columns || is_columns, out, n);
    }
    return n;
}

int loop_split_sums(const LoopTeam *t, const LStmt *loop, LoopSplitSum *out) {
    return add_sums(t, loop_region_of(t, loop), loop, loop->body, false, out, 0);
}

/* What comes first in a list of statements. */
typedef enum { NEITHER, A_STORE, THE_LOOP } First;

/* Whether a store to memory, or the loop, comes first in the list. */
static First first_of(const LStmt *s, const LStmt *loop) {
    for (; s; s = s->next) {
        if (s == loop) return THE_LOOP;
        if (loop_is_write(s) && s->buf->kind != LB_LOCAL) return A_STORE;
        const First first = loop_has_body(s) ? first_of(s->body, loop) : NEITHER;
        if (first != NEITHER) return first;
    }
    return NEITHER;
}

bool loop_stores_before(const LoopTeam *t, const LStmt *loop) {
    return first_of(row_list(t), loop) == A_STORE;
}

/* Predicate for loop_find(): does the statement load what the row, or an earlier kernel, stored to
 * a buffer that the row writes? what: a bool, whether the buffer's old value. */
static bool loads_written(const LStmt *s, const void *what) {
    const bool old = *(const bool *)what;
    return s->kind == L_LOAD && s->buf->kind != LB_LOCAL && s->buf->written &&
           s->before_write == old;
}

bool loop_parts_store(const LoopTeam *t, const LStmt *last) {
    const bool old = false;
    for (const LStmt *s = row_list(t); s; s = s->next) {
        if (loads_written(s, &old) || (loop_has_body(s) && loop_find(s->body, loads_written, &old)))
            return true;
        if (loop_has_body(s) && loop_has(s->body, last)) break;
    }
    return false;
}

/* Why a block that has a part of the row cannot do the statements of the row up to its last loop
 * over entries as the row's own block does them, in words; NULL: it can. What they store is stored
 * by the row's own alone, if no part needs it. columns: the statement `columns` around them. */
static const char *early_fault(const LStmt *s, const LStmt *columns) {
    for (; s; s = s->next) {
        const bool is_memory = loop_is_access(s) && s->buf->kind != LB_LOCAL && s->buf->written;
        if (is_memory && s->kind == L_ACC && !(columns && loop_is_promoted(columns, s->buf)))
            return "the row adds to memory";
        if (!loop_has_body(s)) continue;
        const char *why = early_fault(s->body, s->kind == L_COLUMNS ? s : columns);
        if (why) return why;
    }
    return NULL;
}

/* The same for the row's statements up to the one that has its last loop over entries. */
static const char *row_fault(const LoopTeam *t, const LStmt *last) {
    for (const LStmt *s = row_list(t); s; s = s->next) {
        LStmt one = *s;
        one.next = NULL;
        const char *why = early_fault(&one, NULL);
        if (why) return why;
        if (loop_has_body(s) && loop_has(s->body, last)) break;
    }
    return NULL;
}

const LoopColumns *loop_region_of(const LoopTeam *t, const LStmt *s) {
    for (int i = 0; i < t->regions.n; i++)
        if (loop_region_has(&t->regions.v[i], s)) return &t->regions.v[i];
    return NULL;
}

/* Why several blocks cannot share the entries of one loop in long rows, in words; NULL: they can.
 */
static const char *loop_fault(const LoopTeam *t, const LStmt *s) {
    LoopSplitSum sum[LOOP_TARGETS_MAX];
    const LoopColumns *region = loop_region_of(t, s);
    if (!region->in_row_list) return "another loop is around them";
    if (s->sched.share == LS_WAYS && region->range->range != LR_EXTENT)
        return "they are summed to no columns of the row";
    const int n = loop_split_sums(t, s, sum);
    for (int i = 0; i < n; i++) {
        const LBuf *b = sum[i].acc->buf;
        if (b->dt != DT_F32 || (b->kind == LB_LOCAL && b->rank > 1))
            return arena_printf(t->a, "%s has no f32 numbers or columns", b->name);
    }
    return n == 0 ? "they add up nothing" : n == LOOP_TARGETS_MAX ? "they add up too much" : NULL;
}

const char *loop_split_fault(const LoopTeam *t, const LStmt *s) {
    const LStmt *row = loop_parallel(t->k), *loop[LOOP_TARGETS_MAX];
    if (t->k->threads.kind != LT_TEAM || !row) return "a team has no row of it";
    if (!row->sched.hub_entries) return "no block takes its rows with many entries";
    const int n = loop_split_loops(t, loop);
    bool is_one = false;
    for (int i = 0; i < n; i++) is_one = is_one || loop[i] == s;
    if (!is_one) return "threads do not share them";
    if (loop_count_entry_loops(row->body) != n)
        return "the row goes through entries that threads do not share";
    for (int i = 0; i < n; i++) {
        if (loop[i]->ptr != loop[0]->ptr) return "the row has entries of several relations";
        const char *why = loop_fault(t, loop[i]);
        if (why) return why;
    }
    const bool old = true;
    if (loop_parts_store(t, loop[n - 1]) && loop_find(row->body, loads_written, &old))
        return "they need what the row has stored, and what was there before";
    return row_fault(t, loop[n - 1]);
}

bool loop_may_split(const LoopTeam *t, const LStmt *s) {
    return !loop_split_fault(t, s);
}

/* Runs the pass: marks the loops over entries that several blocks share in long rows. */
static bool run_split_rows(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n; i++) {
        const LKernel *k = l->k.v[i];
        const LStmt *loop[LOOP_TARGETS_MAX];
        if (k->threads.kind != LT_TEAM) continue;
        const LoopTeam t = loop_team(l->a, l->on, k, false);
        const int n = t.fault || !loop_parallel(k) ? 0 : loop_split_loops(&t, loop);
        if (!n || loop[0]->sched.split_entries) continue;
        const char *why = loop_split_fault(&t, loop[0]);
        for (int j = 0; j < n && !why; j++) {
            LSched *sched = &((LStmt *)loop[j])->sched;
            sched->split_entries = pass_threshold(l->c, PASS_T_SPLIT_PART);
            sched->split_from = pass_threshold(l->c, PASS_T_SPLIT_FROM);
            sched->few_rows = pass_threshold(l->c, PASS_T_SPLIT_FEW_ROWS);
            sched->few_entries = sched->few_rows ? pass_threshold(l->c, PASS_T_SPLIT_FEW_PART) : 0;
        }
        (why ? pass_refusal : pass_remark)(p, k->span, "split-rows", "%s: %s%s", k->name,
                                           why ? "not: " : "several blocks may have a long row",
                                           why ? why : "");
    }
    return true;
}

const Pass loop_pass_split_rows = {
    .name = "split-rows",
    .summary = "several blocks take parts of a row with very many entries",
    .run_loops = run_split_rows,
};
