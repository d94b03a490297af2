/* What steps.def says of each kind of steps, and which step a kernel is of. */
#include "codegen/plan/plan_text.h"

#define STEP(id, by, n_bufs, writes, parts) static const PStepPartText parts_##id[] = {parts{0}};
#define PART(part, word, field) {SP_##part, word, offsetof(PStep, field)},
#include "codegen/plan/steps.def"
#undef PART

const PStepFacts *plan_step_facts(PStepKind kind) {
#define PART(part, word, field) | SP_##part
#define STEP(id, by, n_bufs, writes, parts)                                                        \
    static const PStepFacts facts_##id = {PBY_##by, n_bufs, PWRITES_##writes, 0 parts, parts_##id};
#include "codegen/plan/steps.def"
    switch (kind) {
#define STEP(id, by, n_bufs, writes, parts)                                                        \
    case PS_##id:                                                                                  \
        return &facts_##id;
#include "codegen/plan/steps.def"
    }
    return NULL;
}

const PGemmSize plan_gemm_sizes[PLAN_GEMM_SIZES] = {
#define SIZE(name) {#name, offsetof(PGemm, name)},
    PLAN_GEMM_SIZES_MAP(SIZE)};

bool plan_step_has(const PStep *s, const PStepPartText *part) {
    const void *field = (const char *)s + part->offset;
    if (!*part->word) return true;
    switch (part->part) {
    case SP_CONDITION:
        return s->pred >= 0;
    case SP_FLAG:
        return *(const bool *)field;
    case SP_LIMIT:
        return s->limit != 0;
    case SP_MAPS:
        return s->balance.n > 0;
    case SP_GROUP:
        return s->group || s->separate_because;
    default: /* a pointer */
        return *(const void *const *)field != NULL;
    }
}

bool plan_step_writes_at(const PStep *s, int i) {
    switch (plan_step_facts(s->kind)->writes) {
    case PWRITES_NONE:
        return false;
    case PWRITES_LAST:
        return i == s->n_bufs - 1;
    case PWRITES_ARGUMENTS:
        return s->kernel->bufs.v[i]->written;
    case PWRITES_RESULTS:
        return i >= s->n_in;
    case PWRITES_ROWS:
        return true;
    }
    return false;
}

const PStep *plan_launching_step(const Plan *p, const LKernel *k, const PPhase **phase) {
    for (int i = 0; i < p->phases.n; i++)
        for (int j = 0; j < p->phases.v[i]->steps.n; j++) {
            *phase = p->phases.v[i];
            const PStep *s = (*phase)->steps.v[j];
            if (s->kernel == k || (s->clear && s->clear->kernel == k)) return s;
        }
    return NULL;
}
