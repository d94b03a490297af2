/* The passes over the step plan, and what makes a plan: an empty one, and the list of them. */
#include "codegen/plan_passes/plan_pass.h"

#include "codegen/loop_passes/loops.h"

#include <string.h>

static const Pass *const passes[] = {
#define PLAN_PASS(id) &plan_pass_##id,
#include "codegen/plan_passes/plan_passes.def"
#undef PLAN_PASS
};

const Pass *plan_pass_find(const char *name) {
    for (size_t i = 0; i < COUNT(passes); i++)
        if (strcmp(passes[i]->name, name) == 0) return passes[i];
    return NULL;
}

const Pass *plan_all_passes_at(int i) {
    int n = pass_count();
    if (i < n) return pass_at(i);
    i -= n;
    return i < (int)COUNT(passes) ? passes[i] : loop_pass_at(i - (int)COUNT(passes));
}

uint32_t plan_main_file(const Module *m, uint32_t otherwise) {
    for (uint32_t i = 0; m->source_path && i < (uint32_t)m->ctx->sources.n; i++)
        if (strcmp(m->ctx->sources.v[i].path, m->source_path) == 0) return i;
    return otherwise;
}

Plan *plan_new(Module *m, const char *device, SpmmChoice spmm) {
    Plan *p = NEW(m->a, Plan);
    p->m = m;
    p->text_file = UINT32_MAX;
    p->main_file = plan_main_file(m, m->main_file);
    p->device = device;
    p->spmm = device ? spmm : SPMM_OWN;
    return p;
}

/* Whether the module has dumped values. */
static bool has_dumps(const Module *m) {
    for (int i = 0; i < m->funcs.n; i++)
        for (const Op *op = m->funcs.v[i]->first; op; op = op->next)
            if (op->ask == ASK_APART) return true;
    return false;
}

#define ON_HOST(dumps)                                                                             \
    "form-kernels," dumps "order-steps," dumps "block-rows," dumps "delay-sums," dumps             \
    "gather-parts,join-kernels,lifetimes"
#define ON_DEVICE(dumps)                                                                           \
    "form-kernels," dumps "order-steps," dumps "block-rows,epilogues," dumps "delay-sums," dumps   \
    "gather-parts,join-kernels,group-products,clear-tails,lifetimes,sparse-products,"              \
    "sync-removal"
#define BY_PARTS(dumps)                                                                            \
    "form-kernels," dumps "order-steps," dumps "delay-sums," dumps                                 \
    "place-exchanges,join-kernels,lifetimes"

const char *plan_pipeline(const Plan *p) {
    if (p->by_parts) return has_dumps(p->m) ? BY_PARTS("dumps-last,") : BY_PARTS("");
    if (has_dumps(p->m)) return p->device ? ON_DEVICE("dumps-last,") : ON_HOST("dumps-last,");
    return p->device ? ON_DEVICE("") : ON_HOST("");
}

/* The first missing fact in words, for the pass driver. */
static const char *fact_name(unsigned facts) {
    if (facts & PLAN_STEPS) return "steps (form-kernels makes them)";
    if (facts & PLAN_BLOCKS) return "loops over blocks of rows (block-rows makes them)";
    if (facts & PLAN_EPILOGUES) return "products that cover steps (epilogues finds them)";
    if (facts & PLAN_JOINED) return "kernels of several steps (join-kernels makes them)";
    if (facts & PLAN_GROUPS) return "groups of products (group-products makes them)";
    return "the lives of temporaries (lifetimes finds them)";
}

/* Prints the plan, for the pass driver. */
static void print(StrBuf *b, const void *p) {
    plan_print(b, p);
}

/* Verifies the plan after a pass, for the pass driver. */
static bool verify(Ctx *c, void *p, const char *after) {
    if (plan_verify(c, p)) return true;
    diag_note(c, (Span){0}, "it was found after the pass '%s'", after);
    return false;
}

/* Runs one pass, for the pass driver. */
static bool run(PassCtx *pc, const Pass *pass, void *p) {
    return pass->run_plan(pc, p);
}

bool plan_run_passes(Ctx *c, Plan *p, const char *names, const PassOptions *o) {
    PassSubject s = {p, &p->has, print, verify, run, fact_name, plan_pass_find, NULL};
    return pass_run_list(c, &s, names, o);
}

Plan *plan_of_module(Ctx *c, Module *m, const char *device, SpmmChoice spmm, const PassOptions *o) {
    Plan *p = plan_new(m, device, spmm);
    return plan_run_passes(c, p, plan_pipeline(p), o) ? p : NULL;
}
