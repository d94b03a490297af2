/* An NVIDIA GPU as a program's device: memory, one stream, launches and recordings as CUDA
 * graphs; matrix products are in blas.c.
 *
 * Every call is checked; since most failures show later than the call that caused them, a
 * message names the last kernel that was launched: it is that or one before.  Nothing here
 * allocates or waits after the first run of a phase but download(), which ends an epoch. */
#include "cuda.h"

#include "gnnc_dlpack.h"

#include <nvtx3/nvToolsExt.h>
#include <stdlib.h>
#include <string.h>

static gnnc_status status_of(cudaError_t e) {
    return e == cudaErrorMemoryAllocation ? GNNC_E_NOMEM : GNNC_E_DEVICE;
}

/* Reports a CUDA error e of `what`, with the kernel that was launched last. */
gnnc_status rt_cuda_failed(RtDevice *d, cudaError_t e, const char *what) {
    const char *k = d->self ? rt_cuda_of(d)->kernel : NULL;
    const char *lines = k ? rt_cuda_of(d)->lines : NULL;
    cudaGetLastError(); /* where a slower way is left, its library calls must not find it there */
    return rt_fail(&d->x->rt->err, status_of(e), "cuda: %s: %s%s%s%s%s%s", what,
                   cudaGetErrorString(e), k ? " (at or before kernel " : "", k ? k : "",
                   lines ? " of " : "", lines ? lines : "", k ? ")" : "");
}

/* Of one that has passed a query costs less.  "Not ready" would stay the thread's last error, which
 * a library's call takes for its own. */
cudaError_t rt_cuda_await(cudaEvent_t event) {
    cudaError_t e = cudaEventQuery(event);
    if (e != cudaErrorNotReady) return e;
    cudaGetLastError();
    return cudaEventSynchronize(event);
}

cudaError_t rt_cuda_stream(const Cuda *c, cudaStream_t *s) {
    cudaError_t e = cudaStreamCreateWithFlags(s, cudaStreamNonBlocking);
    return e == cudaSuccess ? cudaStreamWaitEvent(*s, c->zeroed, 0) : e;
}

/* ---- open and close ---------------------------------------------------------------- */
/* Frees the page-locked memory through which copies go. */
static void drop_staging(RtDevice *d) {
    CudaStaging *s = &rt_cuda_of(d)->staging;
    d->ops->unpin(d, s->slots);
    for (int i = 0; i < CUDA_SLOTS; i++)
        if (s->read[i]) cudaEventDestroy(s->read[i]);
}

/* Destroys the stream and the events of copies of batches. */
static void drop_lanes(Cuda *c) {
    for (int i = 0; i < RT_LANES; i++) {
        if (c->copied[i]) cudaEventDestroy(c->copied[i]);
        if (c->used[i]) cudaEventDestroy(c->used[i]);
    }
    if (c->copies) cudaStreamDestroy(c->copies);
}

/* Waits for the device's work and releases all that was opened on it. */
static void close_device(RtDevice *d) {
    Cuda *c = rt_cuda_of(d);
    if (!c) return;
    rt_cuda_peers_close(d, true); /* nothing but a failure has left it open */
    if (c->stream) cudaStreamSynchronize(c->stream);
    rt_cuda_blas_close(c);
    rt_cuda_sparse_close(c);
    drop_staging(d);
    for (int i = 0; i < RT_STAMPS && c->event[i]; i++) cudaEventDestroy(c->event[i]);
    drop_lanes(c);
    while (c->sides) rt_cuda_side_close(d, c->sides);
    rt_cuda_order_close(c);
    rt_cuda_streams_close(c);
    if (c->iterations) cudaFree(c->iterations);
    if (c->zeroed) cudaEventDestroy(c->zeroed);
    if (c->taken) cudaEventDestroy(c->taken);
    if (c->mark) cudaEventDestroy(c->mark);
    if (c->stream) cudaStreamDestroy(c->stream);
    d->self = NULL;
}

/* Where nothing is known of the steps, the first product opens cuBLAS. */
static bool multiplies(const rt_program *p) {
    for (int i = 0; i < p->n_phases; i++)
        for (int k = 0; p->phases[i].steps && k < p->phases[i].n_steps; k++)
            if (p->phases[i].steps[k].kind == RT_STEP_GEMM) return true;
    return false;
}

/* Where no GPU was named: processes of a machine that train together take turns; else the thread's.
 */
static cudaError_t choose(const RtDevice *d, int n, int *ordinal) {
    const RtRuntime *rt = d->x->rt;
    if (rt->n_local < 1) return cudaGetDevice(ordinal);
    *ordinal = rt->local_rank % n;
    return cudaSuccess;
}

/* Chooses the GPU, or says why none can be used, and opens a stream on it, and cuBLAS if the
 * program makes products. */
static gnnc_status open_device(RtDevice *d) {
    Cuda *c = RT_NEW(&d->x->rt->pool, Cuda);
    int n = 0;
    if (!c) return rt_fail_nomem(&d->x->rt->err, "the device");
    d->self = c;
    CUDA_CHECK(d, "no GPU can be used", cudaGetDeviceCount(&n));
    if (d->ordinal >= n)
        return rt_fail(&d->x->rt->err, GNNC_E_DEVICE, "cuda: there is no GPU %d; %d can be used",
                       d->ordinal, n);
    c->ordinal = d->ordinal;
    if (c->ordinal < 0) CUDA_CHECK(d, "the GPU of this thread", choose(d, n, &c->ordinal));
    d->ordinal = c->ordinal;
    CUDA_CHECK(d, "no GPU can be used", cudaSetDevice(c->ordinal));
    if (d->x->program->device_probe)
        CUDA_CHECK(d, "the program was not compiled for this kind of GPU (--cuda-arch)",
                   (cudaError_t)d->x->program->device_probe(NULL, NULL, NULL));
    CUDA_CHECK(d, "a stream", cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking));
    c->streams.of[0] = c->stream;
    c->streams.n = 1;
    CUDA_CHECK(d, "an event", cudaEventCreateWithFlags(&c->zeroed, cudaEventDisableTiming));
    CUDA_CHECK(d, "an event", cudaEventCreateWithFlags(&c->taken, cudaEventDisableTiming));
    CUDA_CHECK(d, "the GPU's size",
               cudaDeviceGetAttribute(&c->units, cudaDevAttrMultiProcessorCount, c->ordinal));
    d->never_record = getenv("CUDA_LAUNCH_BLOCKING") != NULL;
    gnnc_status st = rt_cuda_loops_open(d);
    if (st != GNNC_OK) return st;
    return multiplies(d->x->program) ? rt_cuda_blas_open(d) : GNNC_OK;
}

/* ---- memory ------------------------------------------------------------------------ */
/* Sets new memory to zero, and makes all streams wait for that before they use it. */
static gnnc_status zero(RtDevice *d, void *p, size_t n_bytes) {
    Cuda *c = rt_cuda_of(d);
    const char *what = "device memory";
    CUDA_CHECK(d, what, cudaMemsetAsync(p, 0, n_bytes, c->stream));
    CUDA_CHECK(d, what, cudaEventRecord(c->zeroed, c->stream));
    if (c->copies) CUDA_CHECK(d, what, cudaStreamWaitEvent(c->copies, c->zeroed, 0));
    for (CudaSide *s = c->sides; s; s = s->next)
        CUDA_CHECK(d, what, cudaStreamWaitEvent(s->stream, c->zeroed, 0));
    return GNNC_OK;
}

static uint64_t kind(const RtDevice *d) {
    const Cuda *c = d->self;
    int major = 0, minor = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, c->ordinal);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, c->ordinal);
    return (uint64_t)major << 48 | (uint64_t)minor << 32 | (uint64_t)c->units;
}

static RtDeviceId id(const RtDevice *d) {
    const Cuda *c = d->self;
    RtDeviceId of = {{0}};
    struct cudaDeviceProp p;
    if (cudaGetDeviceProperties(&p, c->ordinal) == cudaSuccess)
        memcpy(of.byte, p.uuid.bytes, sizeof of.byte);
    else
        cudaGetLastError(); /* nobody else's */
    return of;
}

static void enter(RtDevice *d) {
    cudaSetDevice(rt_cuda_of(d)->ordinal);
}

/* The GPU memory that is free now. */
static gnnc_status free_bytes(RtDevice *d, size_t *n) {
    size_t total;
    CUDA_CHECK(d, "the GPU's memory", cudaMemGetInfo(n, &total));
    return GNNC_OK;
}

/* Allocates GPU memory, set to 0. */
static gnnc_status alloc_memory(RtDevice *d, size_t n_bytes, void **p) {
    *p = NULL;
    CUDA_CHECK(d, "device memory", cudaMalloc(p, n_bytes ? n_bytes : 1));
    return zero(d, *p, n_bytes);
}

/* Frees GPU memory, once the stream no longer uses it. */
static void release_memory(RtDevice *d, void *p) {
    if (!p) return;
    rt_cuda_wait_for_steps(d, "device memory");
    cudaFree(p);
}

/* Makes the pinned slots through which copies to the device go, and the events that say when a slot
 * was read. */
static gnnc_status make_staging(RtDevice *d, CudaStaging *s) {
    for (int i = 0; i < CUDA_SLOTS; i++)
        if (!s->read[i])
            CUDA_CHECK(d, "an event",
                       cudaEventCreateWithFlags(&s->read[i], cudaEventDisableTiming));
    return d->ops->pin(d, (size_t)CUDA_SLOTS * CUDA_SLOT_BYTES, &s->slots);
}

/* The bytes have been taken when the call returns.  A device that reads the host's memory itself
 * may come to them later, so the host waits for what is too large to be staged: data, once. */
static gnnc_status upload(RtDevice *d, void *to, const void *from, size_t n_bytes) {
    Cuda *c = rt_cuda_of(d);
    CudaStaging *s = &c->staging;
    const char *what = "an upload";
    if (n_bytes == 0) return GNNC_OK;
    gnnc_status st = s->slots ? GNNC_OK : make_staging(d, s);
    if (st != GNNC_OK) return st;
    s->slot = (s->slot + 1) % CUDA_SLOTS;
    cudaEvent_t read = s->read[s->slot];
    void *slot = (char *)s->slots + (size_t)s->slot * CUDA_SLOT_BYTES;
    bool staged = n_bytes <= CUDA_SLOT_BYTES;
    st = rt_cuda_wait(d, read, what);
    if (st != GNNC_OK) return st;
    if (staged) memcpy(slot, from, n_bytes);
    CUDA_CHECK(
        d, what,
        cudaMemcpyAsync(to, staged ? slot : from, n_bytes, cudaMemcpyHostToDevice, c->stream));
    CUDA_CHECK(d, what, cudaEventRecord(read, c->stream));
    return staged ? GNNC_OK : rt_cuda_wait(d, read, what);
}

/* Copies n_bytes to the host, after the work that was queued before, and waits. */
static gnnc_status download(RtDevice *d, void *to, const void *from, size_t n_bytes) {
    if (n_bytes == 0) return GNNC_OK;
    CUDA_CHECK(d, "a read-back",
               cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDeviceToHost, rt_cuda_of(d)->stream));
    return rt_cuda_wait_for_steps(d, "the work before a read-back");
}

static gnnc_status read_later(RtDevice *d, void *to, const void *from, size_t n_bytes) {
    CUDA_CHECK(d, "a read-back",
               cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDeviceToHost, rt_cuda_of(d)->stream));
    return GNNC_OK;
}

static gnnc_status write_later(RtDevice *d, void *to, const void *from, size_t n_bytes) {
    CUDA_CHECK(d, "an upload",
               cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyHostToDevice, rt_cuda_of(d)->stream));
    return GNNC_OK;
}

/* Copies within the GPU's memory, in the stream's order. */
static gnnc_status copy(RtDevice *d, void *to, const void *from, size_t n_bytes) {
    CUDA_CHECK(d, "a copy",
               cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDeviceToDevice, rt_cuda_of(d)->stream));
    return GNNC_OK;
}

/* ---- kernels ----------------------------------------------------- */
/* Launches a kernel. Its name and the model's lines are kept: a fault on the GPU comes out later,
 * and the message names them. */
static gnnc_status launch(RtDevice *d, rt_device_kernel *k, const char *name, void *const *arg) {
    Cuda *c = rt_cuda_of(d);
    c->kernel = name;
    c->lines = rt_device_lines(d);
    CUDA_CHECK(d, name, (cudaError_t)k(arg, d->now->n, c->stream));
    return GNNC_OK;
}

/* ---- recordings -------------------------------------------------------------------- */
/* Begins to record launches as a CUDA graph. */
static gnnc_status record_begin(RtDevice *d) {
    cudaGraph_t graph = NULL;
    CUDA_CHECK(d, "the begin of a recording",
               cudaStreamBeginCapture(rt_cuda_of(d)->stream, cudaStreamCaptureModeThreadLocal));
    gnnc_status st = rt_cuda_streams_begin(d);
    if (st != GNNC_OK && cudaStreamEndCapture(rt_cuda_of(d)->stream, &graph) == cudaSuccess)
        cudaGraphDestroy(graph);
    if (st != GNNC_OK) cudaGetLastError(); /* as in rt_cuda_failed() */
    return st;
}

/* Ends the recording of a CUDA graph; *recording gets what can be launched: NULL on failure, and
 * where a loop is still open, as a step in its body has then failed and told why. */
static gnnc_status record_end(RtDevice *d, void **recording) {
    Cuda *c = rt_cuda_of(d);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    bool complete = c->n_loops == 0;
    cudaError_t joined = rt_cuda_streams_join(c);
    cudaError_t e = cudaStreamEndCapture(c->stream, &graph);
    if (e == cudaSuccess) e = joined;
    const char *what = e == cudaSuccess ? "a graph of what was recorded" : "the end of a recording";
    if (c->whole) graph = c->whole; /* else it would be the body that a failure left open */
    c->whole = NULL;
    c->n_loops = 0;
    if (e == cudaSuccess && complete) e = cudaGraphInstantiate(&exec, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    *recording = exec;
    if (e == cudaSuccess) return GNNC_OK;
    cudaGetLastError(); /* as in rt_cuda_failed(); no kernel has run */
    return rt_fail(&d->x->rt->err, status_of(e), "cuda: %s: %s", what, cudaGetErrorString(e));
}

/* Launches all that was recorded at once. */
static gnnc_status replay(RtDevice *d, void *recording) {
    CUDA_CHECK(d, "the launch of a graph",
               cudaGraphLaunch((cudaGraphExec_t)recording, rt_cuda_of(d)->stream));
    return GNNC_OK;
}

/* Frees a recording, once it no longer runs. */
static void forget(RtDevice *d, void *recording) {
    rt_cuda_wait_for_steps(d, "a recording");
    cudaGraphExecDestroy((cudaGraphExec_t)recording);
}

/* ---- copies beside the queue ------------------------------------------------------------- */
/* Takes ordinary memory where page-locked memory is refused (why): copies do the same then, but the
 * host waits for them. */
static gnnc_status take_ordinary(RtDevice *d, size_t n_bytes, cudaError_t why, void **p) {
    Cuda *c = rt_cuda_of(d);
    RtPool *pool = &d->x->rt->pool;
    CudaPages *o = RT_NEW(pool, CudaPages);
    if (o) o->p = rt_pool_alloc(pool, n_bytes, 1);
    if (!o || !o->p) return rt_cuda_failed(d, why, "page-locked memory");
    cudaGetLastError(); /* clears it, as rt_cuda_failed() does */
    if (!c->ordinary)
        rt_message(d->x->rt, "copies: cuda: page-locked memory: %s; the host waits for them",
                   cudaGetErrorString(why));
    o->next = c->ordinary;
    c->ordinary = o;
    *p = o->p;
    return GNNC_OK;
}

/* Allocates page-locked memory of the host, which the GPU copies from and to while the host goes
 * on. */
static gnnc_status pin(RtDevice *d, size_t n_bytes, void **p) {
    *p = NULL;
    cudaError_t e = cudaMallocHost(p, n_bytes ? n_bytes : 1);
    return e == cudaSuccess ? GNNC_OK : take_ordinary(d, n_bytes, e, p);
}

/* Kernels read page-locked memory where it is: all devices of a process and its host share one
 * space of addresses. */
static gnnc_status pin_shared(RtDevice *d, size_t n_bytes, void **p) {
    *p = NULL;
    CUDA_CHECK(d, "page-locked memory", cudaMallocHost(p, n_bytes ? n_bytes : 1));
    return GNNC_OK;
}

/* Releases host memory that pin() gave, pinned or, where that was not to be had, ordinary. */
static void unpin(RtDevice *d, void *p) {
    Cuda *c = rt_cuda_of(d);
    CudaPages **o = &c->ordinary;
    if (!p) return;
    if (c->copies) cudaStreamSynchronize(c->copies);
    while (*o && (*o)->p != p) o = &(*o)->next;
    if (!*o) {
        cudaFreeHost(p);
        return;
    }
    *o = (*o)->next;
    rt_pool_drop(&d->x->rt->pool, p);
}

/* Makes the stream and the events for copies of batches that run beside the steps. */
static gnnc_status make_lanes(RtDevice *d, Cuda *c) {
    CUDA_CHECK(d, "a stream", rt_cuda_stream(c, &c->copies));
    for (int i = 0; i < RT_LANES; i++) {
        CUDA_CHECK(d, "an event", cudaEventCreateWithFlags(&c->copied[i], cudaEventDisableTiming));
        CUDA_CHECK(d, "an event", cudaEventCreateWithFlags(&c->used[i], cudaEventDisableTiming));
    }
    return GNNC_OK;
}

/* Waits until the last upload of this lane is done, so that its host memory can be written again;
 * opens the lanes on first use. An event that was never recorded counts as passed. */
static gnnc_status lane_begin(RtDevice *d, int lane) {
    Cuda *c = rt_cuda_of(d);
    gnnc_status st = c->copies ? GNNC_OK : make_lanes(d, c);
    if (st != GNNC_OK) return st;
    CUDA_CHECK(d, "a batch's upload", rt_cuda_await(c->copied[lane]));
    return GNNC_OK;
}

/* Uploads a batch to one of the upload slots, in the stream of copies, while the step of another
 * slot runs; the step's stream waits for it. */
static gnnc_status slot_copy(RtDevice *d, int lane, void *to, const void *from, size_t n_bytes) {
    Cuda *c = rt_cuda_of(d);
    const char *what = "a batch's upload";
    if (n_bytes == 0) return GNNC_OK;
    CUDA_CHECK(d, what, cudaStreamWaitEvent(c->copies, c->used[lane], 0));
    CUDA_CHECK(d, what, cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyHostToDevice, c->copies));
    CUDA_CHECK(d, what, cudaEventRecord(c->copied[lane], c->copies));
    CUDA_CHECK(d, what, cudaStreamWaitEvent(c->stream, c->copied[lane], 0));
    return GNNC_OK;
}

/* Notes in the stream where the work on the batch in this upload slot ends: after that the slot may
 * be filled again. */
static gnnc_status lane_end(RtDevice *d, int lane) {
    Cuda *c = rt_cuda_of(d);
    CUDA_CHECK(d, "the work of a batch", cudaEventRecord(c->used[lane], c->stream));
    return GNNC_OK;
}

/* ---- clocks and profilers ------------------------------------------------------------- */
static gnnc_status wait_for_all(RtDevice *d) {
    return rt_cuda_wait_for_steps(d, "the work of a phase");
}

static gnnc_status mark(RtDevice *d) {
    Cuda *c = rt_cuda_of(d);
    if (!c->mark)
        CUDA_CHECK(d, "an event", cudaEventCreateWithFlags(&c->mark, cudaEventDisableTiming));
    CUDA_CHECK(d, "a read-back", cudaEventRecord(c->mark, c->stream));
    return GNNC_OK;
}

static gnnc_status reach(RtDevice *d) {
    return rt_cuda_wait(d, rt_cuda_of(d)->mark, "the work before a read-back");
}

/* Puts time stamp number i into the stream. */
static gnnc_status stamp(RtDevice *d, int i) {
    Cuda *c = rt_cuda_of(d);
    for (int k = 0; k <= i; k++) /* from the first one: close_device() stops at a gap */
        if (!c->event[k])
            CUDA_CHECK(d, "a time stamp", cudaEventCreateWithFlags(&c->event[k], cudaEventDefault));
    CUDA_CHECK(d, "a time stamp", cudaEventRecord(c->event[i], c->stream));
    return GNNC_OK;
}

/* ns[i] gets the time between stamps i and i + 1, for n of them, after the work is done. */
static gnnc_status stamps(RtDevice *d, int n, int64_t *ns) {
    Cuda *c = rt_cuda_of(d);
    gnnc_status st = rt_cuda_wait(d, c->event[n], "the work of a phase");
    if (st != GNNC_OK) return st;
    for (int i = 0; i < n; i++) {
        float ms = 0;
        CUDA_CHECK(d, "a time stamp", cudaEventElapsedTime(&ms, c->event[i], c->event[i + 1]));
        ns[i] = (int64_t)(1e6 * (double)ms);
    }
    return GNNC_OK;
}

static void range_begin(RtDevice *d, const char *name) {
    (void)d;
    nvtxRangePushA(name);
}

static void range_end(RtDevice *d) {
    (void)d;
    nvtxRangePop();
}

#ifndef RT_CUDA_PAIRS /* the simulator's tests have fewer */
#define RT_CUDA_PAIRS (1 << 18)
#endif

const RtDeviceOps rt_device_cuda = {.name = "cuda",
                                    .dlpack = kDLCUDA,
                                    .align = 256,
                                    .pairs = RT_CUDA_PAIRS,
                                    .open = open_device,
                                    .close = close_device,
                                    .kind = kind,
                                    .id = id,
                                    .enter = enter,
                                    .free_bytes = free_bytes,
                                    .alloc = alloc_memory,
                                    .release = release_memory,
                                    .upload = upload,
                                    .download = download,
                                    .copy = copy,
                                    .launch = launch,
                                    .gemm = rt_cuda_gemm,
                                    .gemm_with = rt_cuda_gemm_with,
                                    .gemm_group = rt_cuda_gemm_group,
                                    .spmm_open = rt_cuda_spmm_open,
                                    .spmm = rt_cuda_spmm,
                                    .spmm_close = rt_cuda_spmm_close,
                                    .record_begin = record_begin,
                                    .record_end = record_end,
                                    .streams_open = rt_cuda_streams_open,
                                    .stream = rt_cuda_streams_switch,
                                    .stream_mark = rt_cuda_streams_mark,
                                    .has_loops = rt_cuda_has_loops,
                                    .loop_begin = rt_cuda_loop_begin,
                                    .loop_end = rt_cuda_loop_end,
                                    .replay = replay,
                                    .forget = forget,
                                    .wait = wait_for_all,
                                    .follow = rt_cuda_follow,
                                    .lead = rt_cuda_lead,
                                    .pin = pin,
                                    .unpin = unpin,
                                    .pin_shared = pin_shared,
                                    .read = read_later,
                                    .write = write_later,
                                    .lane_begin = lane_begin,
                                    .lane_copy = slot_copy,
                                    .lane_end = lane_end,
                                    .side_open = rt_cuda_side_open,
                                    .side_close = rt_cuda_side_close,
                                    .side_upload = rt_cuda_side_upload,
                                    .side_download = rt_cuda_side_download,
                                    .side_launch = rt_cuda_side_launch,
                                    .side_clear = rt_cuda_side_clear,
                                    .side_wait = rt_cuda_side_wait,
                                    .took = rt_cuda_took,
                                    .side_after = rt_cuda_side_after,
                                    .peers_version = rt_cuda_peers_version,
                                    .peers_id = rt_cuda_peers_id,
                                    .peers_open = rt_cuda_peers_open,
                                    .peers_share = rt_cuda_peers_share,
                                    .peers_wait = rt_cuda_peers_wait,
                                    .peers_swap = rt_cuda_peers_swap,
                                    .peers_add = rt_cuda_peers_add,
                                    .peers_join = rt_cuda_peers_join,
                                    .peers_close = rt_cuda_peers_close,
                                    .mark = mark,
                                    .reach = reach,
                                    .stamp = stamp,
                                    .stamps = stamps,
                                    .range_begin = range_begin,
                                    .range_end = range_end};
