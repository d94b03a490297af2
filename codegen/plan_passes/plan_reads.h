/* Which rows steps read, where processes share rows.  (codegen/plan_passes/plan_exchange.c) */
#ifndef CODEGEN_PLAN_READS_H
#define CODEGEN_PLAN_READS_H

#include "codegen/plan/plan.h"

/* Which rows an index refers to. */
typedef struct {
    bool is_known;
    Space *space; /* whose rows it is; NULL: it is a position among the segments of `segments_of` */
    const Map *segments_of;
    PHalo halo; /* n_via = 0: a row that the process owns */
} RowStep;

/* A read of some rows of a buffer. */
typedef struct {
    int buf;
    RowStep at;
} RowRead;
typedef VEC(RowRead) RowReads;
typedef VEC(int) IntList;

typedef struct {
    Space *rows;          /* that the step computes; NULL: each process computes all */
    RowReads reads;       /* of values */
    RowReads index_reads; /* of index arrays, and of the row keys of random numbers */
    IntList used;         /* index arrays whose numbers it uses for more than finding rows */
} StepReads;
StepReads plan_step_reads(Arena *a, const Plan *p, const PStep *s);

/* Whether what a device holds of buffers is what hold-rows finds; false: *wrong is not.
 * (codegen/plan_passes/plan_hold.c) */
bool plan_is_held_rightly(Arena *a, const Plan *p, const PBuf **wrong);
/* The partitioned space that the buffer has a row for, or NULL. */
Space *plan_buffer_rows(const PBuf *b);
/* Whether processes share the rows of the phase. */
bool plan_shares_rows(const Plan *p, const PPhase *ph);

#endif
