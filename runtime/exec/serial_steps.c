/* Which steps are worth sharing among threads.
 *
 * Waking a team and waiting for it costs microseconds, on a busy machine tens of them; a
 * step that takes less alone runs alone.  Its time is estimated from what it moves and
 * computes (program.h, rt_step_cost), so the choice is made once, when sizes are known.
 * Every cut of a loop gives the same bits, so this one does not change results. */
#include <string.h>

#include "exec.h"

/* Of one thread with data in its cache: what it does per ns, roughly, on any machine of
 * this decade.  `tune` finds the limit that suits the machine at hand. */
enum { BYTES_PER_NS = 16, FLOPS_PER_NS = 8, GEMM_FLOPS_PER_NS = 64 };

/* An estimate of the step's time on one thread, from its bytes and operations; INT64_MAX where the
 * cost is not known. */
int64_t rt_step_estimate_ns(const rt_phase *ph, int step, const int64_t *n) {
    rt_step_cost c = {.read = 0};
    if (!ph->cost) return INT64_MAX;
    ph->cost(step, n, &c);
    int64_t rate = c.gemm.m > 0 ? GEMM_FLOPS_PER_NS : FLOPS_PER_NS;
    return (c.read + c.written) / BYTES_PER_NS + c.flops / rate;
}

/* Marks the steps that are estimated to take less than serial_ns: they run on one thread, as waking
 * others takes longer. */
gnnc_status rt_serial_steps_set(RtExec *x, int64_t serial_ns) {
    const rt_program *p = x->program;
    RtRuntime *rt = x->rt;
    int n_steps = 0;
    for (int i = 0; i < p->n_phases; i++) n_steps += p->phases[i].n_steps;
    if (!rt->alone) rt->alone = RT_NEWN(&rt->pool, bool, n_steps);
    if (!rt->alone) return rt_fail_nomem(&rt->err, "the steps");
    for (int i = 0; i < p->n_phases; i++)
        rt_serial_steps_set_phase(x, &p->phases[i], x->n, serial_ns);
    return GNNC_OK;
}

void rt_serial_steps_set_phase(RtExec *x, const rt_phase *phase, const int64_t *n,
                               int64_t serial_ns) {
    bool *at = x->rt->alone;
    for (const rt_phase *p = x->program->phases; p != phase; p++) at += p->n_steps;
    for (int k = 0; k < phase->n_steps; k++) at[k] = rt_step_estimate_ns(phase, k, n) < serial_ns;
}

/* Sets which steps of a phase one thread runs alone, because they are too small to share. */
void rt_serial_steps_phase(RtExec *x, const rt_phase *phase) {
    RtRuntime *rt = x->rt;
    x->step = 0;
    if (!rt->alone) return;
    rt->alone_here = rt->alone;
    for (const rt_phase *p = x->program->phases; p != phase; p++) rt->alone_here += p->n_steps;
}
