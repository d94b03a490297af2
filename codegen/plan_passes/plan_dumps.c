/* Steps of dumps (--dump-values), for which nobody waits, go behind all that they may pass, so that
 * they part no others.
 *
 *     z = gemm x, w                     z = gemm x, w
 *     z_dump = copy z             =>    h = relu z
 *     h = relu z                        z_dump = copy z
 *
 * It runs before and behind passes that move steps or look at neighbours, where there are dumps. */
#include "codegen/plan_passes/plan_order.h"
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"

/* Whether the step only writes a dumped value. */
static bool is_dump(const PStep *s) {
    return s->kind == PS_KERNEL && s->op->ask == ASK_APART;
}

/* How many steps the one at `at` may pass, but not into a loop over blocks. until: the step that it
 * may not pass, or NULL. */
static int distance_to_end(const PPhase *ph, int at, const PStep **until) {
    int n = 0;
    *until = NULL;
    for (int i = at + 1; i < ph->steps.n; i++) {
        const PBlocks *b = plan_block_at(ph, i);
        *until = ph->steps.v[i];
        if (!plan_order_is_movable(ph->steps.v[i])) break;
        if (plan_steps_conflict(ph->steps.v[at], ph->steps.v[i])) break;
        if (!b || b->last == i) n = i - at;
        *until = NULL;
    }
    return n;
}

/* Why the step may not pass that one. */
static const char *stop_reason(const PStep *s, const PStep *until) {
    if (!plan_order_is_movable(until)) return "nothing moves behind that";
    return plan_steps_conflict(s, until) ? "it reads or writes the same memory" : "it is in a loop";
}

/* Moves the step as far back as possible. */
static void move_dump(PassCtx *pc, PPhase *ph, int at) {
    const PStep *s = ph->steps.v[at], *until;
    const int n = distance_to_end(ph, at, &until);
    if (n) {
        plan_step_move_behind(ph, at, n);
        pass_remark(pc, s->span, "dumps-last", "@%s: '%s' (%s) goes behind %d steps", ph->name,
                    s->note, s->kernel->name, n);
    }
    if (until)
        pass_refusal(pc, s->span, "dumps-last", "@%s: '%s' (%s) goes no further than '%s': %s",
                     ph->name, s->note, s->kernel->name, until->note, stop_reason(s, until));
}

/* Runs the pass: moves steps that only write dumped values (--dump-values) behind all that they may
 * pass, so that they separate no steps that could be joined. */
static bool run(PassCtx *pc, Plan *p) {
    for (int i = 0; i < p->phases.n; i++) {
        PPhase *ph = p->phases.v[i];
        for (int k = ph->steps.n - 1; k >= 0; k--) {
            const PStep *s = ph->steps.v[k];
            if (!is_dump(s)) continue;
            if (plan_order_is_movable(s) && !plan_block_at(ph, k))
                move_dump(pc, ph, k);
            else
                pass_refusal(pc, s->span, "dumps-last", "@%s: '%s' (%s) stays: %s", ph->name,
                             s->note, s->kernel->name,
                             plan_block_at(ph, k) ? "it runs on a block of rows at a time"
                                                  : "it is no step that moves");
        }
    }
    return true;
}

const Pass plan_pass_dumps_last = {
    .name = "dumps-last",
    .summary = "with --dump-values: let steps of dumps go behind all that they may pass",
    .needs = PLAN_STEPS,
    .breaks = PLAN_LIVES,
    .bars = PLAN_GROUPS | PLAN_OVERLAPPED | PLAN_STREAMS,
    .run_plan = run,
};
