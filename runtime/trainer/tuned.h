/* Choices that change times and nothing else, kept beside the data. */
#ifndef RUNTIME_TUNED_H
#define RUNTIME_TUNED_H

#include "trainer.h"

typedef struct RtChoice {
    int64_t threads, serial_ns; /* steps that take less run on one thread */
    int64_t variant;            /* of the program; -1 = by sizes */
} RtChoice;

/* The choice kept in `dir` for this program on this machine.  A file that cannot be used is
 * mentioned and ignored: it is only about speed. */
bool rt_tuned_find(gnnc_trainer *t, const char *dir, RtChoice *out);

/* Replaces that choice. */
gnnc_status rt_tuned_keep(gnnc_trainer *t, const char *dir, const RtChoice *c, double step_ms);

#endif
