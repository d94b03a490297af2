/* Programs that are interpreted on data, for `gnnc run` and `gnnc compare`: the graph IR by
 * ir/interp.h, a plan and its kernels by codegen/loop/loop_interp.h.
 *
 * Parameters start as a trainer's do with its first seed, and steps have its seeds, learning rates
 * and weight decay.  Nothing is drawn: of a sampled model the whole graph is the batch
 * (frontend/interp_dataset.h). */
#ifndef FRONTEND_INTERPRET_H
#define FRONTEND_INTERPRET_H

#include "codegen/loop/loop_interp.h"
#include "frontend/cli/cli.h"

struct RtDataset;

typedef struct {
    Ctx *c;
    Module *m;
    const Plan *plan; /* NULL: the graph IR */
    Interp *in;
    LoopRun *loops; /* of a plan */
    bool stale;     /* a step has changed what @encode and @ends read */
} Interpreted;

/* Loads the data, which are checked as far as p reads them, and runs what other phases read. exact:
 * without rounding to element types, as plans are interpreted anyway.  False after a diagnostic. */
bool interpret_begin(Ctx *c, const CliProduct *p, const char *data, bool exact, Interpreted *to);
/* NULL: f can be run; else why not, or why nobody asks for it by itself: "". */
const char *interpret_lacks(const Module *m, const Func *f);
/* One phase, as after so many training steps.  False after a diagnostic. */
bool interpret_phase(Interpreted *x, Func *f, int step);

/* Of the phase that ran last; NULL: there is none. */
const double *interpret_output(const Interpreted *x, const Func *f, const char *name, int64_t *n);
/* Now, in the order in which it is written; NULL: nothing of the program has it. */
const double *interpret_var(const Interpreted *x, const Var *v, int64_t *n);
/* "the graph IR after round-weights#1" */
const char *interpret_what(Arena *a, const CliProduct *p);
/* A message about it: "@train: ..". */
bool interpret_fail(Ctx *c, const Func *f, const char *why);

#endif
