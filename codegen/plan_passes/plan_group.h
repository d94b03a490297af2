/* Steps that a device does at once, side by side in a phase: of products (plan_group.c) and of
 * kernels (plan_launch.c). */
#ifndef CODEGEN_PLAN_GROUP_H
#define CODEGEN_PLAN_GROUP_H

#include "codegen/plan_passes/plan_order.h"

/* The search for groups in a phase. */
typedef struct {
    Arena *a;
    PPhase *ph;
    Lives lives;
    int64_t peak;       /* bytes at the fullest step */
    PStep **steps;      /* scratch: the phase in another order, */
    int *old_position;  /* where its steps stood, */
    bool *must_precede; /* the steps that must come first, */
    int *block_of;      /* the loop over blocks that each is in, or -1 */
    PBlocks *blocks;
} GroupSearch;

GroupSearch plan_group_search(Arena *a, const Plan *p, PPhase *ph);
/* A group of step s alone. */
PGroup *plan_group_begin(GroupSearch *f, PStep *s);
/* Moves the step at position `at` next to the group before it and adds it; returns why it cannot,
 * or NULL. */
const char *plan_group_add(GroupSearch *f, PGroup *g, int at);

#endif
