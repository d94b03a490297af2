/* A stream of the host's, which work is ordered with by events alone: nothing of ours is queued in
 * it, so that it may be any, the default stream too, which nothing can be recorded from, and
 * another one for each call. */
#include "cuda.h"

static const char *const WHAT = "the host's stream, which must be one of this GPU";

/* Makes stream `later` wait until stream `first` has done all that is queued in it now. */
static gnnc_status put_behind(RtDevice *d, cudaEvent_t *event, cudaStream_t first,
                              cudaStream_t later) {
    if (!*event) CUDA_CHECK(d, "an event", cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    CUDA_CHECK(d, WHAT, cudaEventRecord(*event, first));
    CUDA_CHECK(d, WHAT, cudaStreamWaitEvent(later, *event, 0));
    return GNNC_OK;
}

gnnc_status rt_cuda_follow(RtDevice *d, void *stream) {
    Cuda *c = rt_cuda_of(d);
    return put_behind(d, &c->theirs, stream, c->stream);
}

gnnc_status rt_cuda_lead(RtDevice *d, void *stream) {
    Cuda *c = rt_cuda_of(d);
    return put_behind(d, &c->ours, c->stream, stream);
}

void rt_cuda_order_close(Cuda *c) {
    if (c->theirs) cudaEventDestroy(c->theirs);
    if (c->ours) cudaEventDestroy(c->ours);
}
