/* Targets by name. */
#include "codegen/target.h"

#include "codegen/lower.h"

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

const char *target_gather_name(Arena *a, const Plan *p) {
    const Sampling *s = &p->m->recipe.sample;
    if (!s->batch || s->train_links) return NULL;
    return arena_printf(a, "%s_gather", cg_ident(a, p->m->name));
}

/* rt_predicts_batches(), of the program that will be. */
const char *target_scatter_name(Arena *a, const Plan *p) {
    const Sampling *s = &p->m->recipe.sample;
    bool judged = s->batch && s->n_hops && s->times.n && !s->train_links;
    return judged ? arena_printf(a, "%s_scatter", cg_ident(a, p->m->name)) : NULL;
}

/* What the device's sampler does not draw is told by rt_device_sampler_lacks() where it is wanted.
 */
const char *target_sample_name(Arena *a, const Plan *p) {
    const Sampling *s = &p->m->recipe.sample;
    bool plain = s->edges == SAMPLE_DIRECTIONAL && !s->disjoint && !s->weights.n && !s->times.n;
    if (!s->batch || s->train_links || !s->n_hops || !plain) return NULL;
    return arena_printf(a, "%s_sample", cg_ident(a, p->m->name));
}

const char *target_maps_name(Arena *a, const Plan *p) {
    return p->m->maps.n ? arena_printf(a, "%s_maps", cg_ident(a, p->m->name)) : NULL;
}

const char *target_spmm_name(Arena *a, const Plan *p) {
    return plan_spmm_count(p) ? arena_printf(a, "%s_spmm", cg_ident(a, p->m->name)) : NULL;
}

static bool has_step(const Plan *p, PStepKind kind) {
    for (int i = 0; i < p->phases.n; i++)
        for (int k = 0; k < p->phases.v[i]->steps.n; k++)
            if (p->phases.v[i]->steps.v[k]->kind == kind) return true;
    return false;
}

const char *target_rank_name(Arena *a, const Plan *p) {
    return has_step(p, PS_RANK) ? arena_printf(a, "%s_rank", cg_ident(a, p->m->name)) : NULL;
}

const char *target_turn_name(Arena *a, const Plan *p) {
    return has_step(p, PS_LOOP) ? arena_printf(a, "%s_turn", cg_ident(a, p->m->name)) : NULL;
}
