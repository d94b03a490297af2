/* Several streams of a recording: branches of a CUDA graph.
 *
 *     first   .. begin .. 1 .. mark 1 ............. 4, behind 3 .. end
 *     second              3, behind 1 .. mark 3 ......... joined ..
 *
 * While the first stream captures, an event that was recorded in it brings another stream that
 * waits for it into the same capture; at the end the first one waits for all that came so.  Outside
 * of recordings there is the first stream alone: there an event would cost the host as much as half
 * a launch, and steps are launched one by one only once, or with sizes that change. */
#include "cuda.h"

static const char *const WHAT = "a stream of a recording";

static gnnc_status make_event(RtDevice *d, cudaEvent_t *event) {
    if (!*event) CUDA_CHECK(d, WHAT, cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    return GNNC_OK;
}

/* Makes room for the events of n_steps steps. */
static gnnc_status make_marks(RtDevice *d, CudaStreams *s, int n_steps) {
    if (n_steps <= s->n_done) return GNNC_OK;
    cudaEvent_t *done = RT_NEWN(&d->x->rt->pool, cudaEvent_t, n_steps);
    if (!done) return rt_fail_nomem(&d->x->rt->err, WHAT);
    for (int i = 0; i < s->n_done; i++) done[i] = s->done[i];
    s->done = done;
    s->n_done = n_steps;
    return GNNC_OK;
}

/* Opens cuBLAS for stream i, which gets the work meanwhile. */
static gnnc_status open_products(RtDevice *d, int i) {
    Cuda *c = rt_cuda_of(d);
    c->stream = c->streams.of[i];
    c->streams.now = i;
    gnnc_status st = rt_cuda_blas_open(d);
    c->stream = c->streams.of[0];
    c->streams.now = 0;
    return st;
}

/* Makes the streams of the recording that comes next, their events, and cuBLAS's handles for those
 * with products. */
gnnc_status rt_cuda_streams_open(RtDevice *d, int n_streams, unsigned products, int n_steps) {
    Cuda *c = rt_cuda_of(d);
    CudaStreams *s = &c->streams;
    gnnc_status st = make_marks(d, s, n_steps);
    if (st == GNNC_OK) st = make_event(d, &s->ended[0]);
    for (int i = 1; i < n_streams && st == GNNC_OK; i++) {
        if (!s->of[i]) CUDA_CHECK(d, WHAT, rt_cuda_stream(c, &s->of[i]));
        st = make_event(d, &s->ended[i]);
        if (st == GNNC_OK && products >> i & 1) st = open_products(d, i);
    }
    if (st == GNNC_OK) s->n = n_streams;
    return st;
}

/* Notes where the recording begins, if it has several streams. */
gnnc_status rt_cuda_streams_begin(RtDevice *d) {
    CudaStreams *s = &rt_cuda_of(d)->streams;
    if (s->n > 1) CUDA_CHECK(d, WHAT, cudaEventRecord(s->ended[0], s->of[0]));
    return GNNC_OK;
}

/* What is recorded from now on is in this stream, behind the n steps `after`. */
gnnc_status rt_cuda_streams_switch(RtDevice *d, int stream, int n, const int *after) {
    Cuda *c = rt_cuda_of(d);
    CudaStreams *s = &c->streams;
    c->stream = s->of[stream];
    s->now = stream;
    if (stream && !s->used[stream])
        CUDA_CHECK(d, WHAT, cudaStreamWaitEvent(c->stream, s->ended[0], 0));
    s->used[stream] = true;
    for (int i = 0; i < n; i++)
        CUDA_CHECK(d, WHAT, cudaStreamWaitEvent(c->stream, s->done[after[i]], 0));
    return GNNC_OK;
}

/* Notes that steps of other streams may wait for this step, which was the last to be recorded. */
gnnc_status rt_cuda_streams_mark(RtDevice *d, int step) {
    Cuda *c = rt_cuda_of(d);
    gnnc_status st = make_event(d, &c->streams.done[step]);
    if (st == GNNC_OK) CUDA_CHECK(d, WHAT, cudaEventRecord(c->streams.done[step], c->stream));
    return st;
}

/* Ends a recording in several streams: the first one waits for the others. */
cudaError_t rt_cuda_streams_join(Cuda *c) {
    CudaStreams *s = &c->streams;
    cudaError_t e = cudaSuccess;
    for (int i = 1; i < s->n; i++) {
        if (s->used[i] && e == cudaSuccess) e = cudaEventRecord(s->ended[i], s->of[i]);
        if (s->used[i] && e == cudaSuccess) e = cudaStreamWaitEvent(s->of[0], s->ended[i], 0);
        s->used[i] = false;
    }
    c->stream = s->of[0];
    s->now = 0;
    s->n = 1;
    return e;
}

/* Destroys all streams but the first, and the events. */
void rt_cuda_streams_close(Cuda *c) {
    CudaStreams *s = &c->streams;
    for (int i = 0; i < RT_STREAMS_MAX; i++) {
        if (s->ended[i]) cudaEventDestroy(s->ended[i]);
        if (i && s->of[i]) cudaStreamDestroy(s->of[i]);
    }
    for (int i = 0; i < s->n_done; i++)
        if (s->done[i]) cudaEventDestroy(s->done[i]);
}
