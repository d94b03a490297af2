/* The loss of an epoch from those of its steps, each times the rows that count in it.
 *
 * On a device reading a step's loss would wait for the step: it is noted there, and what was
 * noted is read together when an epoch, or what is done of one, has to be told. */
#ifndef RUNTIME_TRAIN_LOSSES_H
#define RUNTIME_TRAIN_LOSSES_H

#include "runtime/trainer/trainer.h"

typedef struct RtLosses {
    int64_t from, to; /* steps of the epoch whose losses the device has noted, and nobody read */
    int64_t *rows;    /* [n_steps] that count in them */
    double *notes;    /* [n_steps], RT_NOTE_BYTES each, when they are read */
} RtLosses;

/* Room for an epoch of so many steps.  The device has as many notes from 0 on. */
gnnc_status rt_losses_init(gnnc_trainer *t, RtLosses *l, int64_t n_steps);
/* Steps go on from this one; what is noted of others is nobody's. */
void rt_losses_begin(RtLosses *l, int64_t step);
/* The step that was just run counts n rows; step 0 begins the epoch's sum. */
gnnc_status rt_losses_add(gnnc_trainer *t, RtLosses *l, int64_t step, int64_t n);
/* Makes progress.loss_sum what all steps so far have added to it. */
gnnc_status rt_losses_settle(gnnc_trainer *t, RtLosses *l);

#endif
