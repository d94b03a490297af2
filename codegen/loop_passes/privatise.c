/* Entries of a row go to the ways of its team by turns: each way adds up what it has, and at the
 * end they are added in their order.
 *
 *     for %e in segment p[%v] {            for %e in segment p[%v] by ways {
 *       for %f in 16 vector {        =>      (the same)
 *         acc sum acc[%f] %x
 *
 * Privatisation of reductions (Rauchwerger and Padua 1995): all that leaves the loop are sums in
 * registers, and none of them is read in it. */
#include "codegen/loop_passes/team.h"
#include "passes/rewrite.h"

/* Marks the loops over entries that the ways of a team can share, each with partial sums of its
 * own; returns how many. */
static int share_entry_loops(PassCtx *p, Loops *l, const LKernel *k) {
    const LoopTeam t = loop_team(l->a, l->on, k, false);
    const LBuf *target[LOOP_TARGETS_MAX];
    int n_loops = 0;
    for (int i = 0; i < t.regions.n && !t.fault; i++)
        for (LStmt *s = t.regions.v[i].stmt->body; s; s = s->next) {
            if (s->kind != L_FOR || loop_is_columns(s) || s->sched.share) continue;
            int n_sums = 0;
            const char *why = loop_private_fault(&t, s, target, &n_sums);
            if (!why) s->sched.share = LS_WAYS, n_loops++;
            if (why && s->range == LR_SEGMENT)
                pass_refusal(p, s->span, "privatise", "%s: not %s: %s", k->name,
                             loop_range_text(l->a, s), why);
        }
    return n_loops;
}

/* Runs the pass (privatisation of reductions) on the kernels that teams run. */
static bool run_privatise(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n; i++) {
        const LKernel *k = l->k.v[i];
        int n = k->threads.kind > LT_THREAD ? share_entry_loops(p, l, k) : 0;
        if (n) pass_remark(p, k->span, "privatise", "%s: %d loops over entries", k->name, n);
    }
    return true;
}

const Pass loop_pass_privatise = {
    .name = "privatise",
    .summary = "entries of a row go to the ways of its team by turns, each with its own sums",
    .run_loops = run_privatise,
};
