/* What interpreters and editors ask for: the module, plan or arranged kernels of the passes that
 * options name, in memory. */
#include "codegen/loop_passes/loops.h"
#include "frontend/cli/cli_job.h"

#include "runtime/data/io.h"

#include <string.h>

/* The text as it stands, but for the passes that are named. */
static bool is_text(const CliJob *j) {
    return cli_is_plan(j) || rt_ends_with(j->o.files.v[0], ".gir");
}

/* Counts the passes over loops that are not disabled and notes the last; each counts once,
 * though it runs on every kernel. */
static void tell_loop_passes(Ctx *c, const char *names, const char *disable, CliProduct *to) {
    for (const char *s = names; *s; s += *s == ',') {
        const char *at = s;
        s += strcspn(s, ",");
        const char *name = arena_strndup(c->a, at, (size_t)(s - at));
        if (pass_is_listed(disable, name, 1)) continue;
        to->after = name;
        to->n++;
    }
}

/* Arranges the kernels of a plan for its target, by the passes over loops. False after a
 * diagnostic. */
static bool arrange(Ctx *c, CliJob *j, CliProduct *to) {
    Plan *p = to->plan;
    const Target *t = cli_choose_target(c, j);
    TargetOptions o = cli_target_options(&j->o);
    if (!t || (j->o.pass.stop_after && !cli_stop_in_loops(c, j, p, t))) return false;
    tell_loop_passes(c, loop_pass_names(p, t), j->o.pass.disable, to);
    return cli_find_lives(c, p) && loop_pass_arrange(c, p, t, &o);
}

/* Notes how many passes ran, and which was the last. */
static void tell_passes(Ctx *c, const CliJob *j, CliProduct *to) {
    const PassProgress *at = &j->progress;
    to->n = at->n;
    if (at->last) to->after = arena_printf(c->a, "%s#%d", at->last->name, at->nth);
}

/* Makes or reads the plan, and arranges its kernels unless the options stop before. False after
 * a diagnostic. */
static bool produce_plan(Ctx *c, CliJob *j, CliProduct *to) {
    bool text = cli_is_plan(j);
    to->plan = text ? cli_read_plan(c, j, j->o.files.v[0])
                    : cli_make_plan(c, j, to->m, j->on.host ? NULL : j->on.device->name);
    if (!to->plan) return false;
    to->m = to->plan->m;
    tell_passes(c, j, to);
    if (j->progress.stopped || text || j->o.level == LEVEL_PLAN) return true;
    return arrange(c, j, to);
}

/* Makes of a file what an interpreter runs: the IR, a plan, or its kernels, as --level says.
 * False after a diagnostic. */
bool cli_produce(Ctx *c, const CliOptions *o, CliProduct *to) {
    CliJob j = {.o = *o};
    PassChoices choices = {.n = 0};
    PassScale scale = {.off = false};
    *to = (CliProduct){.m = NULL};
    j.o.emit = OUT_LOOPS; /* of one target */
    j.o.pass.choices = &choices;
    j.o.pass.scale = &scale;
    if (is_text(&j) && !j.o.passes) j.o.passes = "";
    if (!cli_is_plan(&j)) cli_choose_targets(c, &j);
    bool ok = cli_is_plan(&j) || (to->m = cli_variant_module(c, &j));
    bool graph = to->m && (j.o.level == LEVEL_IR || j.progress.stopped);
    tell_passes(c, &j, to);
    return ok && (graph || produce_plan(c, &j, to));
}
