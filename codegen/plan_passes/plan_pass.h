/* Passes over the step plan: values of the same kind as those over the graph IR (passes/pass.h),
 * run by the same driver.  plan_passes.def lists each once. */
#ifndef CODEGEN_PLAN_PASS_H
#define CODEGEN_PLAN_PASS_H

#include "codegen/plan/plan.h"
#include "passes/pass.h"

#define PLAN_PASS(id) extern const Pass plan_pass_##id;
#include "codegen/plan_passes/plan_passes.def"
#undef PLAN_PASS

/* All passes there are, those over the graph IR first, those over loops last; NULL behind the last
 * one. */
const Pass *plan_all_passes_at(int i);
/* NULL when there is none of that name over the plan. */
const Pass *plan_pass_find(const char *name);

/* A plan without a step, of a module in IR_NO_CSR with updated parameters or kept gradients.
 * device: the one whose libraries its steps may use ("cuda"); NULL: none.  spmm is for a device. */
Plan *plan_new(Module *m, const char *device, SpmmChoice spmm);
/* The file that the module says it was compiled from, if a position can be in it. */
uint32_t plan_main_file(const Module *m, uint32_t otherwise);
/* The passes that make a plan of it: of -O2, and of every level. */
const char *plan_pipeline(const Plan *p);
/* Those that a plan without steps still lacks. */
const char *plan_pending(const Plan *p);
/* Comma-separated names, on the facts of the plan.  False after diagnostics. */
bool plan_run_passes(Ctx *c, Plan *p, const char *names, const PassOptions *o);
/* Both at once: NULL after diagnostics. */
Plan *plan_of_module(Ctx *c, Module *m, const char *device, SpmmChoice spmm, const PassOptions *o);

#endif
