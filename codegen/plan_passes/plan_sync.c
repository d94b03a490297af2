/* Sync removal: loops whose condition a device asks for by itself.
 *
 *     loop c { .. }      the host waits for c at each iteration   =>   recorded with the step
 *
 * That is so in phases that nothing else stops.  Without a bound a loop stays the host's, which can
 * leave it when it is asked to; so do the loops of a phase over batches, which is recorded for
 * rounded sizes, and those of @load, which runs once. */
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"

/* How the step interrupts the phase. */
static const char *interrupt_text(const PStep *s) {
    switch (s->kind) {
    case PS_LOOP:
        return "a loop has no limit, and the host must be able to leave it";
    case PS_CALL:
        return "it calls a C function of the host";
    case PS_RELATION:
        return "it makes a relation";
    default:
        return "the host prints or checks";
    }
}

/* The step that interrupts the phase, besides loops; NULL: none. */
static const PStep *find_interrupt(const PPhase *ph) {
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        if (s->kind == PS_LOOP ? !s->limit : plan_step_interrupts(s, true)) return s;
    }
    return NULL;
}

/* Why the host must read the conditions; NULL: it need not. */
static const char *host_reason(const Plan *p, const PPhase *ph) {
    const PStep *by = find_interrupt(ph);
    if (ph->func->phase == PHASE_LOAD) return "it runs once";
    if (plan_runs_on_batches(p, ph)) return "batches have sizes of their own";
    return by ? interrupt_text(by) : NULL;
}

/* Runs the pass: marks the loops whose condition the device tests by itself, in phases that nothing
 * else interrupts, so that the host need not wait once per iteration. */
static bool run(PassCtx *pc, Plan *p) {
    for (int i = 0; i < p->phases.n && p->device; i++) {
        PPhase *ph = p->phases.v[i];
        const char *why = host_reason(p, ph);
        for (int k = 0; k < ph->steps.n; k++) {
            PStep *s = ph->steps.v[k];
            if (s->kind != PS_LOOP) continue;
            s->recorded = !why;
            if (why)
                pass_refusal(pc, s->span, "sync-removal", "the host asks for the condition: %s",
                             why);
            else
                pass_remark(pc, s->span, "sync-removal", "the device asks for the condition");
        }
    }
    return true;
}

const Pass plan_pass_sync_removal = {
    .name = "sync-removal",
    .summary = "let a device ask for the conditions of its loops",
    .needs = PLAN_STEPS,
    .run_plan = run,
};
