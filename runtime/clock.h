/* The clock that durations are measured by: it never goes back, and starts anywhere. */
#ifndef RUNTIME_CLOCK_H
#define RUNTIME_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t rt_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* In seconds. */
static inline double rt_now(void) {
    return 1e-9 * (double)rt_now_ns();
}

#endif
