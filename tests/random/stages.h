/* What model_check compares, stage by stage; the first stage that differs says who made a
 * difference: a pass, the plan and lowering, or the target. */
#ifndef TESTS_RANDOM_STAGES_H
#define TESTS_RANDOM_STAGES_H

#include "frontend/interp_dataset.h"
#include "tests/cpu_executor.h"

enum { AGREE, DIFFER, INVALID }; /* exit statuses */
enum { STAGE_GRAPH = 1, STAGE_LOOPS = 2, STAGE_CODE = 4 };

typedef struct {
    const char *model, *data, *passes, *weights;
    int levels[2], n_levels, steps, status;
    unsigned stages;
    bool grads, plain_llvm;
    RtDataset *set;
} Check;

/* NULL: not a valid model. */
Module *check_model(Ctx *c, const Check *k);
/* The model as written, differentiated; with the optimizer's updates or with gradients as outputs.
 */
Module *check_reference(Ctx *c, const Check *k, bool trains);
/* Data, small parameters that depend on the place in the module, inputs; @load has run. */
Interp *check_interp(Ctx *c, const Check *k, Module *m, bool exact, uint64_t noise);
int check_differs(int level, const char *what, const char *why);

/* STAGE_GRAPH and STAGE_LOOPS of all variants. */
int check_stages(Ctx *c, const Check *k, int level, bool grads);
/* STAGE_CODE: all phases of a program, then steps. */
int check_program(Ctx *c, const Check *k, CpuExec *x, const CpuOracle *o, Module *seen, int level);
/* Scalars of @train and @eval with the weights of a file. */
int check_print(Ctx *c, const Check *k);

#endif
