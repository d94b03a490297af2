/* Which rows of nodes batches read most often, as far as the number of edges out of a row foresees
 * it: those whose columns are worth keeping near. */
#ifndef RUNTIME_HOT_ROWS_H
#define RUNTIME_HOT_ROWS_H

#include "runtime/sample/sample.h"
#include "runtime/trainer/trainer.h"

/* A node type: rows [0, n), of which [without_lo, without_hi) are not to be chosen. */
typedef struct {
    int64_t n, without_lo, without_hi;
    size_t row_bytes; /* of its columns together */
    int32_t *row;     /* [n_chosen], ascending, in the trainer's pool */
    int64_t n_chosen;
} RtHotType;

/* Chooses, of all types [g->n_types] together, the rows with most edges along which g draws that
 * have room in `room` bytes.  A type with n = 0 has none; rows without edges are never chosen.
 * what, advice: of a refusal to take memory for it (rt_trainer_may_take). */
gnnc_status rt_hot_rows_choose(gnnc_trainer *t, const RtSampleGraph *g, RtHotType *type,
                               int64_t room, const char *what, const char *advice);

#endif
