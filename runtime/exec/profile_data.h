/* What is recorded of steps: exec/profile.c writes it while phases run, trainer/profile.c tells it.
 */
#ifndef RUNTIME_PROFILE_DATA_H
#define RUNTIME_PROFILE_DATA_H

#include "profile.h"
#include "runtime/device/device.h"

typedef struct {
    int64_t calls, ns;
    int64_t first_calls, first_ns; /* of these in the phase's first run */
} RtStepTotal;

typedef struct {
    int64_t at, ns;  /* since start */
    int phase, step; /* step -1: the whole phase */
} RtTraceEvent;

typedef struct {
    RtTraceEvent *event;
    int64_t n, max, n_dropped;
    char apart[32]; /* lanes are not neighbours in a cache line */
} RtTraceLane;

typedef struct RtProfile {
    int64_t start;
    int *first;         /* [n_phases] its steps begin there in total */
    int64_t *runs;      /* [n_phases] */
    RtStepTotal *total; /* [n_steps of all phases] */
    int phase, step;
    bool fresh; /* the step's first block, or it has none */
    int64_t phase_since, since;
    int n_stamps;                /* in the device's queue */
    int stamped[RT_STAMPS];      /* steps that begin there */
    int64_t stamp_ns[RT_STAMPS]; /* what they took */
    RtTraceLane main;            /* phases and steps */
    RtTraceLane *lane;           /* [n_lanes] of the members; none without a trace */
    int n_lanes;
} RtProfile;

#endif
