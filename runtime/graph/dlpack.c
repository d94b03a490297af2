#include "dlpack.h"

#include <string.h>

void rt_tensor_out(RtTensorOut *o, const RtExec *x, bool here, const void *data, int rank,
                   const int64_t *dim, void (*back)(DLManagedTensorVersioned *), void *owner) {
    const RtDevice *d = here ? NULL : x->rt->device;
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        o->shape[i] = dim[i];
        o->stride[i] = stride;
        stride *= dim[i];
    }
    o->m = (DLManagedTensorVersioned){
        .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
        .manager_ctx = owner,
        .deleter = back,
        .flags = DLPACK_FLAG_BITMASK_READ_ONLY,
        .dl_tensor = {.data = (void *)(uintptr_t)data,
                      .device = {d ? (DLDeviceType)d->ops->dlpack : kDLCPU, d ? d->ordinal : 0},
                      .ndim = rank,
                      .dtype = {kDLFloat, 32, 1},
                      .shape = o->shape,
                      .strides = o->stride}};
}

gnnc_status rt_tensor_ready(RtExec *x) {
    RtDevice *d = x->rt->device;
    if (!d) return GNNC_OK;
    return x->rt->in_stream ? rt_device_lead(x) : d->ops->wait(d);
}
