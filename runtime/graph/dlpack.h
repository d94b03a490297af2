/* Tensors that are given out: views of memory that whoever gives them keeps until they are back. */
#ifndef RUNTIME_DLPACK_H
#define RUNTIME_DLPACK_H

#include "gnnc_dlpack.h"

#include "runtime/device/device.h"

typedef struct RtTensorOut {
    DLManagedTensorVersioned m;
    int64_t shape[GNNC_MAX_RANK], stride[GNNC_MAX_RANK];
} RtTensorOut;

/* Of f32, row by row, on the device where x runs, or on the host if `here`; nobody may write to it.
 * `back` is called once, from any thread, and finds `owner` in its manager_ctx. */
void rt_tensor_out(RtTensorOut *o, const RtExec *x, bool here, const void *data, int rank,
                   const int64_t *dim, void (*back)(DLManagedTensorVersioned *), void *owner);

/* What was queued for it is done, or the host's stream goes on behind it: whoever gets it may read
 * it, in that stream. */
gnnc_status rt_tensor_ready(RtExec *x);

#endif
