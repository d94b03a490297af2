/* Which rows a device holds of what processes share: the process's own ones, and those of others
 * that it reads (rt_buf.own). */
#ifndef RUNTIME_DEVICE_HELD_H
#define RUNTIME_DEVICE_HELD_H

#include "device.h"
#include "runtime/exec/distributed.h"

/* Of a space. */
typedef struct RtHeldRows {
    bool known;  /* else all of them */
    RtRange own; /* they keep their numbers */
    int64_t n_below, n;
    int32_t *row; /* [n] rows of others, ascending: those below the own ones have the numbers before
                     them, the others those behind them */
} RtHeldRows;

/* Finds them, once index arrays are there; again where these have changed.  What was held before is
 * lost. */
gnnc_status rt_held_open(RtExec *x);
/* Whether the device holds only a part of buffer b. */
bool rt_held_part(const RtExec *x, int b);
/* *n_bytes of buffer b there, and how far its address is before them: a multiple of its alignment.
 * Of what is held whole all, and 0. */
gnnc_status rt_held_bytes(RtExec *x, int b, size_t *n_bytes, size_t *before);
/* A buffer of which the device holds a part: that part goes there, or comes from there. */
gnnc_status rt_held_upload(RtExec *x, int b);
gnnc_status rt_held_download(RtExec *x, int b);
/* The numbers there of n rows of others in buffer b. */
void rt_held_numbers(const RtExec *x, int b, const int32_t *row, int64_t n, int32_t *number);

#endif
