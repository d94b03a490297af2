/* Learning-rate schedules, one value per epoch, equal to torch.optim.lr_scheduler's. */
#ifndef RUNTIME_SCHEDULE_H
#define RUNTIME_SCHEDULE_H

#include "runtime/program.h"

typedef struct {
    rt_sched_kind kind;
    double lr;            /* base rate */
    double gamma, min_lr; /* step: factor; plateau: factor; cosine, linear, plateau: floor */
    int64_t warmup_epochs, step_epochs, patience, epochs;
    bool larger_is_better; /* plateau */
} RtSchedule;

/* What plateau remembers; saved in a checkpoint. */
typedef struct {
    double lr;     /* the rate reached so far */
    double best;   /* metric so far */
    int64_t n_bad; /* epochs without a better one since then, or since the rate fell */
    bool started;  /* an epoch was observed */
} RtPlateau;

/* The rate of `epoch`, counted from 0. */
double rt_schedule_lr(const RtSchedule *s, const RtPlateau *p, int64_t epoch);
/* After an epoch, with the watched metric (the loss when there is none). */
void rt_schedule_observe(const RtSchedule *s, RtPlateau *p, int64_t epoch, double metric);

#endif
