/* Queues for threads that work ahead of the trainer's: they wait here, the trainer never does.
 * The driver's calls may come from several threads, each of which says for which GPU; what is the
 * trainer's own (its error, the last kernel's name) is not touched. */
#include "cuda.h"

/* The error of a call in the side stream, which other threads may use: it goes to err, not to the
 * trainer. */
static gnnc_status failed(cudaError_t e, const char *what, RtError *err) {
    gnnc_status st = e == cudaErrorMemoryAllocation ? GNNC_E_NOMEM : GNNC_E_DEVICE;
    cudaGetLastError(); /* as in rt_cuda_failed() */
    return rt_fail(err, st, "cuda: %s: %s", what, cudaGetErrorString(e));
}

gnnc_status rt_cuda_side_open(RtDevice *d, void **queue) {
    Cuda *c = rt_cuda_of(d);
    CudaSide *s = RT_NEW(&d->x->rt->pool, CudaSide);
    *queue = NULL;
    if (!s) return rt_fail_nomem(&d->x->rt->err, "a queue of the device's");
    s->next = c->sides;
    *queue = c->sides = s;
    CUDA_CHECK(d, "an event", cudaEventCreateWithFlags(&s->done, cudaEventDisableTiming));
    CUDA_CHECK(d, "a stream", rt_cuda_stream(c, &s->stream));
    return GNNC_OK;
}

void rt_cuda_side_close(RtDevice *d, void *queue) {
    CudaSide *s = queue, **at = &rt_cuda_of(d)->sides;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    if (s->stream) cudaStreamDestroy(s->stream);
    if (s->done) cudaEventDestroy(s->done);
    rt_pool_drop(&d->x->rt->pool, s);
}

/* The queue's stream, for a thread that may not have worked with its GPU before. */
static cudaStream_t stream_of(RtDevice *d, void *queue) {
    d->ops->enter(d);
    return ((CudaSide *)queue)->stream;
}

/* Copies n bytes in the queue. */
static gnnc_status copy(RtDevice *d, void *queue, void *to, const void *from, size_t n,
                        enum cudaMemcpyKind kind, RtError *err) {
    if (n == 0) return GNNC_OK;
    cudaError_t e = cudaMemcpyAsync(to, from, n, kind, stream_of(d, queue));
    return e == cudaSuccess ? GNNC_OK : failed(e, "a copy beside the queue", err);
}

gnnc_status rt_cuda_side_upload(RtDevice *d, void *queue, void *to, const void *from, size_t n,
                                RtError *err) {
    return copy(d, queue, to, from, n, cudaMemcpyHostToDevice, err);
}

gnnc_status rt_cuda_side_download(RtDevice *d, void *queue, void *to, const void *from, size_t n,
                                  RtError *err) {
    return copy(d, queue, to, from, n, cudaMemcpyDeviceToHost, err);
}

gnnc_status rt_cuda_side_launch(RtDevice *d, void *queue, rt_device_kernel *k, const char *name,
                                void *const *arg, RtError *err) {
    cudaError_t e = (cudaError_t)k(arg, NULL, stream_of(d, queue));
    return e == cudaSuccess ? GNNC_OK : failed(e, name, err);
}

gnnc_status rt_cuda_side_clear(RtDevice *d, void *queue, void *p, size_t n, RtError *err) {
    cudaError_t e = cudaMemsetAsync(p, 0, n, stream_of(d, queue));
    return e == cudaSuccess ? GNNC_OK : failed(e, "memory beside the queue", err);
}

gnnc_status rt_cuda_side_wait(RtDevice *d, void *queue, RtError *err) {
    CudaSide *s = queue;
    cudaError_t e = cudaEventRecord(s->done, stream_of(d, queue));
    if (e == cudaSuccess) e = rt_cuda_await(s->done);
    return e == cudaSuccess ? GNNC_OK : failed(e, "work beside the queue", err);
}

gnnc_status rt_cuda_took(RtDevice *d) {
    Cuda *c = rt_cuda_of(d);
    CUDA_CHECK(d, "the gathering of a batch", cudaEventRecord(c->taken, c->stream));
    return GNNC_OK;
}

/* An event that was never recorded counts as passed. */
gnnc_status rt_cuda_side_after(RtDevice *d, void *queue, RtError *err) {
    cudaError_t e = cudaStreamWaitEvent(stream_of(d, queue), rt_cuda_of(d)->taken, 0);
    return e == cudaSuccess ? GNNC_OK : failed(e, "the gathering of a batch", err);
}
