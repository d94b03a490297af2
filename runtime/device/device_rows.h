/* Rows that processes share on devices (device_rows.c, device_own.c). */
#ifndef RUNTIME_DEVICE_ROWS_H
#define RUNTIME_DEVICE_ROWS_H

#include "device.h"
#include "runtime/cuda/rows_list.h"
#include "runtime/exec/distributed.h"

/* Of several processes, once they have met.  direct: devices send to each other; else hosts do. */
void rt_device_rows_meet(RtExec *x, bool direct, int64_t patience_s);
/* Before the device's state is closed. */
void rt_device_rows_close(RtDevice *d);

/* Steps are being recorded or replayed: memory is neither made nor dropped, as recordings hold its
 * addresses. */
static inline bool rt_device_rows_stay(const RtDevice *d) {
    return rt_device_records(d) || d->walk.mode == RT_WALK_REPLAYS;
}
/* Memory of the device that lives as long as the device's state, unless it is dropped.  E_STATE:
 * rt_device_rows_stay(). */
gnnc_status rt_device_rows_memory(RtExec *x, size_t n_bytes, void **p);
void rt_device_rows_drop(RtExec *x, void *p);
/* *there gets a copy of n_bytes that are here. */
gnnc_status rt_device_rows_copy(RtExec *x, const void *here, size_t n_bytes, void **there);

/* All of this is in device memory.  row: of TAKE and PUT, else NULL. */
gnnc_status rt_device_rows_do(RtExec *x, RtRowsOp op, void *to, const void *from, const void *row);
gnnc_status rt_device_rows_sum(RtExec *x, const RtTreeSum *t, float *to, const float *from);

/* Begins to send and receive m, whose memory is the device's, behind what is queued so far; slot:
 * below RT_BESIDE_MOST, of what goes on at once.  arrive: what is queued from now on comes behind
 * it; slots in the order in which they began. */
gnnc_status rt_device_rows_send(RtExec *x, int slot, const RtMessages *m);
gnnc_status rt_device_rows_arrive(RtExec *x, int slot, const RtMessages *m);
/* n numbers of each process there become their sum, by the devices' library where they send to each
 * other, else by the host's all_reduce. */
gnnc_status rt_device_rows_reduce(RtExec *x, float *at, int64_t n);

#endif
