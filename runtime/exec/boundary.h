/* Sampled boundaries (passes/sample_boundary.c): which rows of other parts a training step reads.
 * A row is drawn by itself, from the seed, the step and the number that it has in data that nobody
 * partitioned.  So the processes agree without a message, and it is the same for any number of
 * them: what counts is the part of a row, not its process. */
#ifndef RUNTIME_BOUNDARY_H
#define RUNTIME_BOUNDARY_H

#include "exec.h"
#include "rng.h"

typedef struct RtBoundary RtBoundary;

/* A row that is drawn or not. */
typedef struct {
    int32_t space, row;
} RtBoundaryRow;

/* Before training step `step`: the factors of its edges. */
gnnc_status rt_boundary_begin(RtExec *x, uint64_t seed, int64_t step);
/* Is the row drawn in this step? */
bool rt_boundary_drawn(const RtExec *x, RtBoundaryRow r);
/* What rows are drawn by in the step under way. */
RtKey rt_boundary_key(const RtExec *x);

#endif
