/* What a gnnc_model is made of: a program and the bytes of a file of weights. */
#ifndef RUNTIME_MODEL_H
#define RUNTIME_MODEL_H

#include <stdatomic.h>

#include "checkpoint.h"

struct gnnc_model {
    atomic_int n_refs;
    RtAlloc from;
    RtPool pool;
    const rt_program *program;
    RtSource weights; /* the bytes of a file, and what messages call it; memory.p NULL: none yet */
    RtError err;
};

/* The weights are these bytes, in the model's pool; `name` is what messages call them.  The model
 * has none yet. */
gnnc_status rt_model_take(gnnc_model *m, const char *name, RtBytes bytes);

#endif
