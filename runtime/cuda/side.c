/* A queue for a thread that works ahead of the trainer's: it waits here, the trainer never does.
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

/* Opens the stream beside the steps, on which batches are drawn. */
gnnc_status rt_cuda_side_open(RtDevice *d) {
    Cuda *c = rt_cuda_of(d);
    if (c->side) return GNNC_OK;
    CUDA_CHECK(d, "an event", cudaEventCreateWithFlags(&c->side_done, cudaEventDisableTiming));
    CUDA_CHECK(d, "a stream", rt_cuda_stream(c, &c->side));
    return GNNC_OK;
}

void rt_cuda_side_close(Cuda *c) {
    if (c->side) cudaStreamDestroy(c->side);
    if (c->side_done) cudaEventDestroy(c->side_done);
}

/* The queue, for a thread that may not have worked with its GPU before. */
static cudaStream_t side_of(RtDevice *d) {
    d->ops->enter(d);
    return rt_cuda_of(d)->side;
}

/* Copies n bytes in the side stream. */
static gnnc_status copy(RtDevice *d, void *to, const void *from, size_t n, enum cudaMemcpyKind kind,
                        RtError *err) {
    if (n == 0) return GNNC_OK;
    cudaError_t e = cudaMemcpyAsync(to, from, n, kind, side_of(d));
    return e == cudaSuccess ? GNNC_OK : failed(e, "a copy beside the queue", err);
}

gnnc_status rt_cuda_side_upload(RtDevice *d, void *to, const void *from, size_t n, RtError *err) {
    return copy(d, to, from, n, cudaMemcpyHostToDevice, err);
}

gnnc_status rt_cuda_side_download(RtDevice *d, void *to, const void *from, size_t n, RtError *err) {
    return copy(d, to, from, n, cudaMemcpyDeviceToHost, err);
}

gnnc_status rt_cuda_side_launch(RtDevice *d, rt_device_kernel *k, const char *name,
                                void *const *arg, RtError *err) {
    cudaError_t e = (cudaError_t)k(arg, NULL, side_of(d));
    return e == cudaSuccess ? GNNC_OK : failed(e, name, err);
}

gnnc_status rt_cuda_side_clear(RtDevice *d, void *p, size_t n, RtError *err) {
    cudaError_t e = cudaMemsetAsync(p, 0, n, side_of(d));
    return e == cudaSuccess ? GNNC_OK : failed(e, "memory beside the queue", err);
}

gnnc_status rt_cuda_side_wait(RtDevice *d, RtError *err) {
    Cuda *c = rt_cuda_of(d);
    cudaError_t e = cudaEventRecord(c->side_done, side_of(d));
    if (e == cudaSuccess) e = rt_cuda_await(c->side_done);
    return e == cudaSuccess ? GNNC_OK : failed(e, "work beside the queue", err);
}
