/* What the pass driver (passes/driver.c) needs to run passes over the loops of a kernel. */
#include "codegen/loop_passes/loops.h"

#include <string.h>

static const Pass *const passes[] = {
#define LOOP_PASS(id) &loop_pass_##id,
#include "codegen/loop_passes/passes.def"
#undef LOOP_PASS
};

const Pass *loop_pass_at(int i) {
    return i < (int)COUNT(passes) ? passes[i] : NULL;
}

const Pass *loop_pass_find(const char *name) {
    for (size_t i = 0; i < COUNT(passes); i++)
        if (strcmp(passes[i]->name, name) == 0) return passes[i];
    return NULL;
}

Loops loop_pass_begin(Ctx *c, const Module *m, const Target *on, const TargetMachine *machine,
                      const LKernel *k) {
    Loops l = {.c = c, .a = c->a, .m = m, .on = on, .machine = *machine, .columns = on->columns};
    for (int i = 0; i < k->stages.n; i++) vec_push(c->a, &l.k, loop_copy(c->a, k->stages.v[i]));
    if (!k->stages.n) vec_push(c->a, &l.k, loop_copy(c->a, k));
    return l;
}

/* ---- for the driver ----------------------------------------------------------------------- */
/* Prints the kernels as text, for the pass driver. */
static void print_kernels(StrBuf *b, const void *what) {
    const Loops *l = what;
    for (int i = 0; i < l->k.n; i++) loop_print(b, l->m, l->k.v[i]);
}

/* Verifies the kernels after a pass, for the pass driver. */
static bool verify_kernels(Ctx *c, void *what, const char *after) {
    const Loops *l = what;
    for (int i = 0; i < l->k.n; i++) {
        if (loop_verify(c, l->m, l->k.v[i])) continue;
        diag_note(c, (Span){0}, "it was found after the pass '%s'", after);
        return false;
    }
    return true;
}

/* Runs one pass, for the pass driver. */
static bool run_pass(PassCtx *p, const Pass *pass, void *what) {
    Loops *l = what;
    l->pass = p;
    return pass->run_loops(p, l);
}

/* Names the facts that a pass lacks, for the pass driver: passes over loops need none. */
static const char *fact_text(unsigned missing) {
    (void)missing;
    return "nothing";
}

/* False, after a diagnostic, where the target is a device and a kernel's text is scheduled for a
 * CPU already. */
static bool check_suits_target(const Loops *l) {
    for (int i = 0; i < l->k.n; i++) {
        const LKernel *k = l->k.v[i];
        if (!l->on->columns || !loop_is_scheduled_for_cpu(k)) continue;
        diag_add(l->c, DIAG_E0541, loop_place(k, NULL),
                 "kernel %s: its loops are arranged for a processor, not for %s", k->name,
                 l->on->name);
        return false;
    }
    return true;
}

/* Runs a comma-separated list of passes over one kernel. `at` counts runs on from other kernels;
 * NULL = from 1. False after diagnostics. */
static bool run_passes(Loops *l, const char *names, const PassOptions *given,
                       PassProgress *progress) {
    PassOptions options = given ? *given : (PassOptions){0};
    if (!check_suits_target(l)) return false;
    options.stop_after = NULL; /* which is of a whole program */
    if (!options.times) options.time_passes = false;
    options.progress = progress;
    options.of = l->k.n ? l->k.v[0]->name : NULL;
    unsigned facts = 0;
    if (!options.disable) options.disable = l->disable;
    l->disable = options.disable; /* for passes that run others */
    l->options = &options;
    PassSubject subject = {l,        &facts,    print_kernels,  verify_kernels,
                           run_pass, fact_text, loop_pass_find, NULL};
    options.verify_each |= l->on->columns > 0; /* statements move: each is checked, asked or not */
    bool ok = pass_run_list(l->c, &subject, names, &options);
    l->options = NULL;
    return ok;
}

bool loop_pass_run(Loops *l, const char *names, const PassOptions *o) {
    return run_passes(l, names, o, NULL);
}

/* How many runs of optional passes come before those of kernel k: runs over the plan, and over each
 * kernel before it. (Bisection with --stop-after counts them.) */
static int optional_runs_before(const Plan *p, const LKernel *k, Arena *a, const char *names) {
    int per_kernel = 0, kernel = 0;
    for (size_t n; *names; names += n + (names[n] == ',')) {
        n = strcspn(names, ",");
        const Pass *pass = loop_pass_find(arena_strndup(a, names, n));
        per_kernel += pass && !pass->required;
    }
    while (kernel < p->kernels.n && p->kernels.v[kernel] != k) kernel++;
    return p->n_optional_runs + kernel * per_kernel;
}

const char *loop_pass_names(const Plan *p, const Target *on) {
    if (p->loop_passes) return p->loop_passes;
    return p->scheduled_for || !on->loop_passes ? "" : on->loop_passes;
}

bool loop_pass_machine(Ctx *c, const Target *on, const TargetOptions *o, TargetMachine *out) {
    *out = (TargetMachine){0};
    return !on->find_machine || on->find_machine(c, o, out);
}

bool loop_pass_all(Ctx *c, const Plan *p, const Target *on, const TargetMachine *machine,
                   const LKernel *k, Loops *out) {
    const char *names = loop_pass_names(p, on);
    PassProgress progress = {.n_spare = optional_runs_before(p, k, c->a, names)};
    const PPhase *ph;
    const PStep *s = plan_launching_step(p, k, &ph);
    *out = loop_pass_begin(c, p->m, on, machine, k);
    out->rows_come = s && plan_rows_come(ph, s);
    return run_passes(out, names, p->loop_options, &progress);
}

bool loop_pass_remarks(Ctx *c, const Plan *p, const Target *on, const TargetOptions *o,
                       StrBuf *to) {
    PassOptions options = p->loop_options ? *p->loop_options : (PassOptions){0};
    Plan copy = *p;
    TargetMachine machine;
    options.remarks = to;
    options.dump = NULL;
    options.times = NULL;
    options.told = NULL;
    options.record_diffs = false;
    copy.loop_options = &options;
    if (!loop_pass_machine(c, on, o, &machine)) return false;
    for (int i = 0; i < p->kernels.n; i++) {
        Loops l;
        if (!loop_pass_all(c, &copy, on, &machine, p->kernels.v[i], &l)) return false;
    }
    return true;
}

/* Removes the kernels that set padding rows to zero before a matrix product with rounded sizes. On
 * a CPU products have the exact sizes, so there is no padding. */
static void drop_padding_kernels(Plan *p) {
    int n_left = 0;
    for (int i = 0; i < p->phases.n; i++)
        for (int k = 0; k < p->phases.v[i]->steps.n; k++) p->phases.v[i]->steps.v[k]->clear = NULL;
    for (int i = 0; i < p->kernels.n; i++)
        if (!loop_is_behind(p->kernels.v[i])) p->kernels.v[n_left++] = p->kernels.v[i];
    p->kernels.n = n_left;
}

bool loop_pass_arrange(Ctx *c, Plan *p, const Target *on, const TargetOptions *o) {
    TargetMachine machine;
    if (!loop_pass_machine(c, on, o, &machine)) return false;
    if (!on->columns) drop_padding_kernels(p);
    for (int i = 0; i < p->kernels.n; i++) {
        LKernel *k = p->kernels.v[i];
        Loops l;
        if (!loop_pass_all(c, p, on, &machine, k, &l)) return false;
        if (l.k.n == 1 && !k->stages.n)
            *k = *l.k.v[0];
        else
            k->stages = l.k, k->body = NULL;
    }
    p->scheduled_for = on->name;
    p->device = on->columns ? on->name : NULL;
    p->with_host = !p->device;
    p->loop_passes = NULL;
    return true;
}
