/* Rows with more entries than a block should have: several blocks take parts of them first.
 *
 *     for %e in segment p[%v] by ways {
 *         =>     for %e in segment p[%v] by ways split 2048 from 65536 {
 *
 * Split reductions (CUTLASS's split-K; merge-based SpMV, Merrill and Garland 2016, for the cut by
 * entries).  For rows whose entries need nothing that the row computed before, and whose sums are
 * f32 columns: each block leaves its part's in memory, and the row's own adds them up in their
 * order.  A row is long that has more entries than two parts; a block that has such rows
 * (`hub_entries`) adds up what others left.  Where all rows have fewer entries than `from` that is
 * not worth a launch. */
#include "codegen/loop_passes/team.h"
#include "passes/rewrite.h"

/* Whether the statements read nothing that the row has computed before the loop with this body. */
static bool is_independent_of_row(const LStmt *s, const LStmt *body) {
    for (; s; s = s->next) {
        if (loop_has_body(s) && !is_independent_of_row(s->body, body)) return false;
        if (s->kind != L_LOAD) continue;
        bool is_own = s->buf->kind == LB_LOCAL && loop_declares(body, s->buf);
        if (!is_own && (s->buf->kind == LB_LOCAL || s->buf->written)) return false;
    }
    return true;
}

/* Whether the loop stands in the region's own list. */
static bool is_in_region_list(const LoopColumns *r, const LStmt *loop) {
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        if (s == loop) return true;
    }
    return false;
}

/* Whether several blocks may run the statements up to `end`: they read nothing that the row
 * computes, and write nothing to memory. */
static bool is_repeatable(const LStmt *s, const LStmt *end, const LStmt *columns) {
    for (; s != end; s = s->next) {
        if (s->kind == L_LOAD && (s->buf->kind == LB_LOCAL || s->buf->written)) return false;
        bool writes = loop_is_write(s);
        bool is_register =
            writes && (s->buf->kind == LB_LOCAL || (columns && loop_is_promoted(columns, s->buf)));
        if (writes && !is_register) return false;
        if (loop_has_body(s) && !is_repeatable(s->body, NULL, columns)) return false;
    }
    return true;
}

const LoopColumns *loop_region_of(const LoopTeam *t, const LStmt *s) {
    for (int i = 0; i < t->regions.n; i++)
        if (loop_region_has(&t->regions.v[i], s)) return &t->regions.v[i];
    return NULL;
}

const char *loop_split_fault(const LoopTeam *t, const LStmt *s) {
    const LStmt *row = loop_parallel(t->k);
    const LBuf *target[LOOP_TARGETS_MAX];
    const LoopColumns *region = loop_region_of(t, s);
    if (t->k->threads.kind != LT_TEAM || !row) return "a team has no row of it";
    if (!row->sched.hub_entries) return "no block takes its rows with many entries";
    if (loop_collapsed(row->body)) return "each head of a row has a team";
    if (s->range != LR_SEGMENT || s->at != row->var) return "they are no entries of a row";
    if (s->sched.share != LS_WAYS) return "ways do not share them";
    if (!region || !region->in_row_list || region->range->range != LR_EXTENT ||
        !is_in_region_list(region, s))
        return "they are summed to no columns of the row";
    if (region->one_pass) return "lanes need each other's columns";
    if (loop_count_entry_loops(row->body) != 1)
        return "the row goes through entries more than once";
    if (!is_independent_of_row(s->body, s->body) || !is_repeatable(row->body, region->stmt, NULL) ||
        !is_repeatable(region->first, s, region->stmt))
        return "they need what the row has computed, or it stores before";
    int n_sums = loop_private_sums(t, s, target);
    for (int i = 0; i < n_sums; i++)
        if (target[i]->dt != DT_F32 || (target[i]->kind == LB_LOCAL && target[i]->rank != 1))
            return arena_printf(t->a, "%s has no f32 columns", target[i]->name);
    return n_sums > 0 ? NULL : "they add up nothing";
}

bool loop_may_split(const LoopTeam *t, const LStmt *s) {
    return !loop_split_fault(t, s);
}

/* Runs the pass: marks the loop over entries that several blocks share in long rows. Only the first
 * loop can be split: each further one would need scratch memory of its own for partial sums. */
static bool run_split_rows(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n; i++) {
        const LKernel *k = l->k.v[i];
        if (k->threads.kind != LT_TEAM) continue;
        const LoopTeam t = loop_team(l->a, l->on, k, false);
        /* others would need room of their own for what they leave */
        LStmt *s = t.fault ? NULL : loop_first_shared_loop(&t);
        if (!s || s->sched.split_entries) continue;
        const char *why = loop_split_fault(&t, s);
        if (!why) s->sched.split_entries = pass_threshold(l->c, PASS_T_SPLIT_PART);
        if (!why) s->sched.split_from = pass_threshold(l->c, PASS_T_SPLIT_FROM);
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
