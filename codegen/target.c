/* Targets by name. */
#include "codegen/target.h"

#include "codegen/lower/lower.h"

#include <ctype.h>
#include <string.h>

const Target *target_find(const char *name) {
    static const Target *const all[] = {
#define TARGET(id) &target_##id,
#include "codegen/targets.def"
#undef TARGET
    };
    for (size_t i = 0; i < COUNT(all); i++)
        if (!strcmp(all[i]->name, name)) return all[i];
    return NULL;
}

/* Whether a phase of the plan has a step of this kind. */
static bool has_step(const Plan *p, PStepKind kind) {
    for (int i = 0; i < p->phases.n; i++)
        for (int k = 0; k < p->phases.v[i]->steps.n; k++)
            if (p->phases.v[i]->steps.v[k]->kind == kind) return true;
    return false;
}

/* Whether processes may share the steps of an update. */
static bool shares_steps(const Plan *p) {
    bool trains = false;
    for (int i = 0; i < p->phases.n; i++) trains |= p->phases.v[i]->func->phase == PHASE_TRAIN;
    return trains && p->m->recipe.sample.batch && p->m->recipe.accumulate > 1;
}

/* Whether the program uses this kernel of the runtime. */
static bool needs_runtime_kernel(const Plan *p, RuntimeKernel k) {
    const Sampling *s = &p->m->recipe.sample;
    bool has_row_batches = s->batch && !s->train_links;
    bool draws = (has_row_batches || s->train_links == LINKS_FORM_PAIRS) && s->n_hops &&
                 s->edges == SAMPLE_DIRECTIONAL;
    switch (k) {
    case RUNTIME_RANK:
        return has_step(p, PS_RANK);
    case RUNTIME_GATHER:
        return has_row_batches || draws; /* .. with what is bound to a batch there */
    case RUNTIME_SCATTER: /* rt_predicts_batches(), of the program that will be, and of rows */
        return has_row_batches && module_runs_on_batches(p->m, PHASE_PREDICT);
    case RUNTIME_SAMPLE: /* what it does not draw rt_device_sampler_lacks() tells where it is wanted
                          */
        return draws;
    case RUNTIME_MAPS:
        return p->m->maps.n > 0;
    case RUNTIME_SPMM:
        return plan_spmm_count(p) > 0;
    case RUNTIME_PROBE:
        return true;
    case RUNTIME_ADD_PARTS:
        return shares_steps(p);
    case RUNTIME_ROWS:
        return p->partitioned;
    default:
        return has_step(p, PS_LOOP);
    }
}

/* The name of a runtime kernel's kind, "gather". */
const char *target_runtime_kernel_kind(RuntimeKernel k) {
    static const char *const kinds[RUNTIME_COUNT] = {
        [RUNTIME_RANK] = "rank",           [RUNTIME_GATHER] = "gather",
        [RUNTIME_SCATTER] = "scatter",     [RUNTIME_SAMPLE] = "sample",
        [RUNTIME_MAPS] = "maps",           [RUNTIME_SPMM] = "spmm",
        [RUNTIME_ITERATE] = "iterate",     [RUNTIME_PROBE] = "probe",
        [RUNTIME_ADD_PARTS] = "add_parts", [RUNTIME_ROWS] = "rows"};
    return kinds[k];
}

/* The name of the program's entry point for a runtime kernel, "gcn_gather"; NULL = the program does
 * not use it. */
const char *target_runtime_kernel_name(Arena *a, const Plan *p, RuntimeKernel k) {
    if (!needs_runtime_kernel(p, k)) return NULL;
    return arena_printf(a, "%s_%s", cg_ident(a, p->m->name), target_runtime_kernel_kind(k));
}

/* Writes s into a C comment, on one line, which it neither ends nor continues. */
void target_comment(StrBuf *b, const char *s) {
    for (; *s; s++) {
        bool marks = (s[0] == '*' && s[1] == '/') || (s[0] == '/' && s[1] == '*');
        char c = isprint((unsigned char)*s) ? *s : ' ';
        sb_put(b, &c, 1);
        if (marks) sb_puts(b, " ");
    }
}
