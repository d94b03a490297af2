/* The host's stream (gnnc_trainer_set_stream, gnnc_session_set_stream). */
#include "device.h"

gnnc_status rt_device_follow(RtExec *x) {
    const RtRuntime *rt = x->rt;
    bool ordered = rt->device && rt->in_stream;
    return ordered ? rt->device->ops->follow(rt->device, rt->stream) : GNNC_OK;
}

gnnc_status rt_device_lead(RtExec *x) {
    const RtRuntime *rt = x->rt;
    bool ordered = rt->device && rt->in_stream;
    return ordered ? rt->device->ops->lead(rt->device, rt->stream) : GNNC_OK;
}

void rt_device_order(RtRuntime *rt, void *stream) {
    rt->in_stream = stream != GNNC_NO_STREAM;
    rt->stream = rt->in_stream ? stream : NULL;
}
