/* A slow interpreter of plans and kernels, so that lowering can be compared with the
 * graph interpreter without any target.  Every element is a double.  Whatever a
 * target may do in any order is done backwards here (parallel and vector loops);
 * every index is checked; memory that was never written is NaN and reading it in a
 * temporary is an error. */
#ifndef CODEGEN_LOOP_INTERP_H
#define CODEGEN_LOOP_INTERP_H

#include "codegen/plan/plan.h"
#include "ir/interp.h"

typedef struct LoopRun LoopRun;

/* Sizes, maps, columns, variables, inputs and keys come from `in`. */
LoopRun *loop_run_new(Ctx *c, const Plan *p, Interp *in);
/* Is told of each value of the graph IR when the step is done that has written it.  What fusion
 * computes in place is written by none. */
typedef void LoopStored(void *user, const Op *value, int64_t n, const double *v);
void loop_run_on_store(LoopRun *r, LoopStored *stored, void *user);
bool loop_run_phase(LoopRun *r, int phase);
const char *loop_run_error(const LoopRun *r);
/* The buffer of output `name` of a phase, or of a variable; NULL = there is none. */
const double *loop_run_output(LoopRun *r, int phase, const char *name, int64_t *n);
const double *loop_run_var(LoopRun *r, const Var *v);

#endif
