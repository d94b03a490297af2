/* The passes over the step plan, and what makes a plan: an empty one, and the list of them. */
#include "codegen/plan_passes/plan_pass.h"

#include "codegen/loop_passes/loops.h"

#include <string.h>

static const Pass *const passes[] = {
#define PLAN_PASS(id) &plan_pass_##id,
#include "codegen/plan_passes/plan_passes.def"
#undef PLAN_PASS
};

/* The pass over plans of this name; NULL: there is none. */
const Pass *plan_pass_find(const char *name) {
    for (size_t i = 0; i < COUNT(passes); i++)
        if (strcmp(passes[i]->name, name) == 0) return passes[i];
    return NULL;
}

/* Pass i of all there are: those over the graph IR, then those over plans, then those over loops.
 * NULL behind the last. */
const Pass *plan_all_passes_at(int i) {
    int n = pass_count();
    if (i < n) return pass_at(i);
    i -= n;
    return i < (int)COUNT(passes) ? passes[i] : loop_pass_at(i - (int)COUNT(passes));
}

/* The number, in Ctx.sources, of the file that the module was compiled from; `otherwise` if that is
 * not among the sources. */
uint32_t plan_main_file(const Module *m, uint32_t otherwise) {
    for (uint32_t i = 0; m->source_path && i < (uint32_t)m->ctx->sources.n; i++)
        if (strcmp(m->ctx->sources.v[i].path, m->source_path) == 0) return i;
    return otherwise;
}

/* The pass over plans whose name is first in a comma-separated list; NULL: there is none of this
 * name. */
static const Pass *first_of(const char *names) {
    size_t n = strcspn(names, ",");
    for (size_t i = 0; i < COUNT(passes); i++)
        if (strlen(passes[i]->name) == n && !strncmp(passes[i]->name, names, n)) return passes[i];
    return NULL;
}

/* What follows the first name of a comma-separated list; "" = nothing. */
static const char *rest_of(const char *names) {
    names += strcspn(names, ",");
    return names + (*names == ',');
}

/* Whether a pass of the comma-separated list establishes the fact (a PLAN_ bit). */
static bool gives(const char *names, unsigned fact) {
    for (; *names; names = rest_of(names)) {
        const Pass *pass = first_of(names);
        if (pass && pass->gives & fact) return true;
    }
    return false;
}

/* Whether the plan of a device, NULL = none, has a pass that finds sparse products. */
static bool finds_sparse_products(const char *device) {
    const Target *on = device ? target_find(device) : NULL;
    return on && on->plan_passes && gives(on->plan_passes, PLAN_SPARSE);
}

/* A plan of module m without any steps. device: the one whose kernels and libraries its steps may
 * use, or NULL; its sparse products are the library's only if it has a pass that finds them. */
Plan *plan_new(Module *m, const char *device, SpmmChoice spmm) {
    Plan *p = NEW(m->a, Plan);
    p->m = m;
    p->text_file = UINT32_MAX;
    p->main_file = plan_main_file(m, m->main_file);
    p->device = device;
    p->spmm = finds_sparse_products(device) ? spmm : SPMM_OWN;
    return p;
}

/* Whether values of the module are dumped: --dump-values marks what it dumps `apart`, and nothing
 * else does. The steps that write these values are then moved out of the way of others. */
static bool has_dumps(const Module *m) {
    for (int i = 0; i < m->funcs.n; i++)
        for (const Op *op = m->funcs.v[i]->first; op; op = op->next)
            if (op->ask == ASK_APART) return true;
    return false;
}

/* The passes that follow `lower-kernels`, as a comma-separated list: of a processor, of processes
 * that share rows, or what the device names. */
static const char *passes_of(const Plan *p) {
    if (p->partitioned)
        return p->device ? "order-steps,delay-sums,place-exchanges,epilogues,permute-entries,"
                           "join-kernels,group-kernels,overlap-exchanges,hold-rows,lifetimes,"
                           "sync-removal"
                         : "order-steps,delay-sums,place-exchanges,permute-entries,join-kernels,"
                           "overlap-exchanges,lifetimes";
    if (p->device) return target_find(p->device)->plan_passes;
    return "order-steps,block-rows,delay-sums,gather-parts,permute-entries,join-kernels,lifetimes";
}

/* The passes that make a finished plan of p, as a comma-separated list. With dumped values,
 * dumps-last runs before each pass that moves steps. */
const char *plan_pipeline(const Plan *p) {
    const bool dumps = has_dumps(p->m);
    StrBuf b = sb_new(p->m->a);
    sb_puts(&b, "store-values,form-kernels,assign-buffers,lower-kernels");
    for (const char *s = passes_of(p); *s; s = rest_of(s)) {
        const Pass *pass = first_of(s);
        if (dumps && pass && pass->moves_steps) sb_puts(&b, ",dumps-last");
        sb_printf(&b, ",%.*s", (int)strcspn(s, ","), s);
    }
    return b.s;
}

/* The passes of the pipeline that a plan without steps still lacks, as a comma-separated list. */
const char *plan_pending(const Plan *p) {
    const char *names = plan_pipeline(p);
    for (; *names; names = rest_of(names)) {
        const Pass *pass = first_of(names);
        if (!((pass->gives | pass->bars) & p->flags)) break;
    }
    return names;
}

/* The first of the missing facts (PLAN_ bits) in words, for the pass driver's message. */
static const char *fact_name(unsigned facts) {
    if (facts & PLAN_FUSIONS) return "fusions of values (store-values makes them)";
    if (facts & PLAN_BUFFERS) return "buffers of values (assign-buffers gives them)";
    if (facts & PLAN_STEPS) return "steps (lower-kernels makes them)";
    if (facts & PLAN_BLOCKS) return "loops over blocks of rows (block-rows makes them)";
    if (facts & PLAN_EPILOGUES) return "products that cover steps (epilogues finds them)";
    if (facts & PLAN_JOINED) return "kernels of several steps (join-kernels makes them)";
    if (facts & PLAN_GROUPS) return "groups of products (group-products makes them)";
    if (facts & PLAN_SPARSE) return "a library's sparse products (sparse-products finds them)";
    if (facts & PLAN_OVERLAPPED) return "rows beside exchanges (overlap-exchanges finds them)";
    if (facts & PLAN_STREAMS) return "streams of steps (assign-streams gives them)";
    return "the lives of temporaries (lifetimes finds them)";
}

/* Prints a plan, as the pass driver wants it. */
static void print(StrBuf *b, const void *p) {
    plan_print(b, p);
}

/* Verifies a plan after the pass called `after`, as the pass driver wants it. False after
 * diagnostics. */
static bool verify(Ctx *c, void *p, const char *after) {
    if (plan_verify(c, p)) return true;
    diag_note(c, (Span){0}, "it was found after the pass '%s'", after);
    return false;
}

/* Runs one pass on plan p, as the pass driver wants it. */
static bool run_pass(PassCtx *pc, const Pass *pass, void *p) {
    return pass->run_plan(pc, p);
}

/* Runs the passes of a comma-separated list on plan p. False after diagnostics. */
bool plan_run_passes(Ctx *c, Plan *p, const char *names, const PassOptions *o) {
    PassSubject s = {p, &p->flags, print, verify, run_pass, fact_name, plan_pass_find, NULL};
    return pass_run_list(c, &s, names, o);
}

/* Makes a finished plan of module m with the passes of plan_pipeline(). NULL after diagnostics. */
Plan *plan_of_module(Ctx *c, Module *m, const char *device, SpmmChoice spmm, const PassOptions *o) {
    Plan *p = plan_new(m, device, spmm);
    return plan_run_passes(c, p, plan_pipeline(p), o) ? p : NULL;
}
