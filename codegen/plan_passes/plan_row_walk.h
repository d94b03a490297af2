/* The walk over what a row of a stored value reads.  (codegen/plan_passes/plan_row_walk.c) */
#ifndef CODEGEN_PLAN_ROW_WALK_H
#define CODEGEN_PLAN_ROW_WALK_H

#include "codegen/lower/lower.h"

/* How a value's place ceases to be the row: for reports. */
typedef struct {
    UnfusedCause cause;
    const Op *via;
} UnfusedReason;

/* A value on the walk over a row: where it is read, and why no longer at the row. */
typedef struct {
    const Op *op;
    int place;
    UnfusedReason reason;
} RowStep;

/* The walk over what a root's row reads. */
typedef struct {
    const Lower *lo;
    const Space *rows;
    const Op *root;
    MapList maps; /* whose segments are summed */
    int n_sums;
    int n_ops;          /* that the walk came to, with those that are read */
    bool too_many_maps; /* more maps than it can tell apart */
    int n_wide;         /* sums that no local array can hold: the last one */
    const Op *wide;
    OpList at_row, at_other;    /* stored values read at this row, and at others */
    VEC(UnfusedReason) reasons; /* by `at_other` */
    VEC(RowStep) ahead;         /* of the walk: the next one last */
} RowWalk;

/* Finds which stored values the kernel of a root reads at the root's own row, and which elsewhere.
 */
RowWalk plan_walk_row(const Lower *lo, const Op *root, const Space *rows);

#endif
