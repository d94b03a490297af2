/* Lanes without a column go through the statements with the others.
 *
 *     columns F by lanes {          =>     columns F by lanes masked {
 *
 * Predication: threads of a team that need each other in the midst of columns (ways that share
 * entries, sums over lanes, columns of another loop) must all be there, and those that have no
 * column write nothing.  Where every lane has a column each time nobody is masked. */
#include "codegen/loop_passes/team.h"
#include "passes/rewrite.h"

/* Whether the ways of the team share the entries of a loop of the region. */
static bool has_shared_entries(const LoopTeam *t, const LoopColumns *r) {
    const LBuf *target[LOOP_TARGETS_MAX];
    for (const LStmt *s = r->first; s != r->end; s = s->next)
        if (s->kind == L_FOR && s->sched.share == LS_WAYS && loop_private_sums(t, s, target))
            return true;
    return false;
}

/* Whether each lane has a column in every round: the width is a multiple of the lanes' columns. */
static bool fills_all_lanes(const LoopTeam *t, const LoopColumns *r) {
    const int lanes = t->k->threads.lanes;
    int64_t n;
    return loop_extent(r->range, &n) && lanes && n % (lanes * loop_pack(t->k)) == 0;
}

const char *loop_mask_fault(const LoopTeam *t, const LoopColumns *r) {
    if (r->all_threads) return "threads of a team take them one by one";
    if (!r->one_pass && !r->round_robin && !has_shared_entries(t, r))
        return "no lane needs another one";
    return fills_all_lanes(t, r) ? "every lane has a column each time" : NULL;
}

/* Runs the pass: marks the regions whose statements are run also by lanes without a column
 * (predication). These write nothing, but take part in exchanges between lanes. */
static bool run_mask_lanes(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n; i++) {
        const LKernel *k = l->k.v[i];
        if (k->threads.kind <= LT_THREAD) continue;
        const LoopTeam t = loop_team(l->a, l->on, k, false);
        for (int c = 0; c < t.regions.n && !t.fault; c++) {
            const LoopColumns *r = &t.regions.v[c];
            const char *why = loop_mask_fault(&t, r), *what = loop_range_text(l->a, r->range);
            r->stmt->sched.masked = !why;
            if (why)
                pass_declined(p, r->stmt->span, "mask-lanes", "%s: columns %s: not: %s", k->name,
                              what, why);
            else
                pass_remark(p, r->stmt->span, "mask-lanes",
                            "%s: columns %s: lanes without one go along", k->name, what);
        }
    }
    return true;
}

const Pass loop_pass_mask_lanes = {
    .name = "mask-lanes",
    .summary = "lanes without a column go through the statements where others need them",
    .run_loops = run_mask_lanes,
    .required = true,
};
