/* An NVIDIA GPU as a program's device: memory, one stream, launches, cuBLAS and recordings
 * as CUDA graphs.
 *
 * Every call is checked; since most failures show later than the call that caused them, a
 * message names the last kernel that was launched.  Nothing here allocates or waits after the
 * first run of a phase but download(), which ends an epoch. */
#include "device.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <stdlib.h>

/* cuBLAS must not allocate while a graph is recorded: it gets this much for good.  NVIDIA
 * asks for 32 MiB on Hopper. */
static const size_t WORKSPACE_BYTES = (size_t)32 << 20;

typedef struct {
    cudaStream_t stream;
    cublasHandle_t blas;
    void *workspace;
    const char *kernel; /* launched last, NULL = none yet */
    const char *lines;  /* of the model that it computes, or NULL */
    cudaEvent_t event[RT_STAMPS];
} Cuda;

static Cuda *cuda_of(RtDevice *d) {
    return d->self;
}

static gnnc_status failed(RtDevice *d, cudaError_t e, const char *what) {
    const char *k = d->self ? cuda_of(d)->kernel : NULL, *lines = k ? cuda_of(d)->lines : NULL;
    gnnc_status st = e == cudaErrorMemoryAllocation ? GNNC_E_NOMEM : GNNC_E_DEVICE;
    return rt_fail(&d->x->rt->err, st, "cuda: %s: %s%s%s%s%s%s", what, cudaGetErrorString(e),
                   k ? " (last kernel: " : "", k ? k : "", lines ? " of " : "", lines ? lines : "",
                   k ? ")" : "");
}

#define CHECK(d, what, call)                                                                       \
    do {                                                                                           \
        cudaError_t cuda_error = (call);                                                           \
        if (cuda_error != cudaSuccess) return failed((d), cuda_error, (what));                     \
    } while (0)

static gnnc_status blas_failed(RtDevice *d, cublasStatus_t s) {
    return rt_fail(&d->x->rt->err, GNNC_E_DEVICE, "cublas: %s", cublasGetStatusString(s));
}

/* ---- open and close ---------------------------------------------------------------- */
static gnnc_status open_blas(RtDevice *d, Cuda *c) {
    cublasStatus_t s = cublasCreate(&c->blas);
    if (s == CUBLAS_STATUS_SUCCESS) s = cublasSetStream(c->blas, c->stream);
    if (s == CUBLAS_STATUS_SUCCESS) s = cublasSetWorkspace(c->blas, c->workspace, WORKSPACE_BYTES);
    cublasMath_t math = d->tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH;
    if (s == CUBLAS_STATUS_SUCCESS) s = cublasSetMathMode(c->blas, math);
    return s == CUBLAS_STATUS_SUCCESS ? GNNC_OK : blas_failed(d, s);
}

static void close_device(RtDevice *d) {
    Cuda *c = cuda_of(d);
    if (!c) return;
    if (c->stream) cudaStreamSynchronize(c->stream);
    if (c->blas) cublasDestroy(c->blas);
    for (int i = 0; i < RT_STAMPS && c->event[i]; i++) cudaEventDestroy(c->event[i]);
    cudaFree(c->workspace);
    if (c->stream) cudaStreamDestroy(c->stream);
    d->self = NULL;
}

static gnnc_status open_device(RtDevice *d) {
    Cuda *c = RT_NEW(&d->x->rt->pool, Cuda);
    int n = 0;
    if (!c) return rt_fail_nomem(&d->x->rt->err, "the device");
    d->self = c;
    CHECK(d, "no GPU can be used", cudaGetDeviceCount(&n));
    CHECK(d, "a stream", cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking));
    CHECK(d, "cuBLAS's workspace", cudaMalloc(&c->workspace, WORKSPACE_BYTES));
    d->never_record = getenv("CUDA_LAUNCH_BLOCKING") != NULL;
    return open_blas(d, c);
}

/* ---- memory ------------------------------------------------------------------------ */
static gnnc_status alloc_memory(RtDevice *d, size_t n_bytes, void **p) {
    *p = NULL;
    CHECK(d, "device memory", cudaMalloc(p, n_bytes ? n_bytes : 1));
    CHECK(d, "device memory", cudaMemsetAsync(*p, 0, n_bytes, cuda_of(d)->stream));
    return GNNC_OK;
}

static void release_memory(RtDevice *d, void *p) {
    if (!p) return;
    cudaStreamSynchronize(cuda_of(d)->stream);
    cudaFree(p);
}

/* From ordinary memory: the call returns when the bytes have been taken. */
static gnnc_status upload(RtDevice *d, void *to, const void *from, size_t n_bytes) {
    if (n_bytes == 0) return GNNC_OK;
    CHECK(d, "an upload",
          cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyHostToDevice, cuda_of(d)->stream));
    return GNNC_OK;
}

static gnnc_status download(RtDevice *d, void *to, const void *from, size_t n_bytes) {
    if (n_bytes == 0) return GNNC_OK;
    CHECK(d, "a read-back",
          cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDeviceToHost, cuda_of(d)->stream));
    CHECK(d, "the work before a read-back", cudaStreamSynchronize(cuda_of(d)->stream));
    return GNNC_OK;
}

static gnnc_status copy(RtDevice *d, void *to, const void *from, size_t n_bytes) {
    CHECK(d, "a copy",
          cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDeviceToDevice, cuda_of(d)->stream));
    return GNNC_OK;
}

/* ---- kernels and matrix products --------------------------------------------------- */
static gnnc_status launch(RtDevice *d, rt_device_kernel *k, const char *name, void *const *arg) {
    Cuda *c = cuda_of(d);
    c->kernel = name;
    c->lines = rt_device_lines(d);
    CHECK(d, name, (cudaError_t)k(arg, d->x->n, c->stream));
    return GNNC_OK;
}

/* cuBLAS has its matrices by columns, so it computes C' = B' A'.  An operand that lies by
 * rows is its transpose by columns. */
typedef struct {
    cublasOperation_t op;
    int64_t ld;
} Stored;

static Stored stored(int64_t rows, int64_t cols, int64_t row, int64_t col) {
    int64_t least_r = cols > 1 ? cols : 1, least_c = rows > 1 ? rows : 1;
    if (col == 1 && (row >= cols || rows == 1))
        return (Stored){CUBLAS_OP_N, row > least_r ? row : least_r};
    return (Stored){CUBLAS_OP_T, col > least_c ? col : least_c};
}

static gnnc_status zero_rows(RtDevice *d, const rt_gemm *g, float *c) {
    for (int64_t b = 0; b < g->batch; b++)
        for (int64_t i = 0; i < g->m; i++)
            CHECK(d, "a matrix product",
                  cudaMemsetAsync(c + b * g->c_batch + i * g->c_row, 0, (size_t)g->n * sizeof *c,
                                  cuda_of(d)->stream));
    return GNNC_OK;
}

static gnnc_status gemm(RtDevice *d, const rt_gemm *g, const float *a, const float *b, float *c) {
    static const float one = 1, zero = 0;
    if (g->k <= 0) return zero_rows(d, g, c);
    Stored sa = stored(g->m, g->k, g->a_row, g->a_col), sb = stored(g->k, g->n, g->b_row, g->b_col);
    int64_t ldc = g->c_row > g->n ? g->c_row : g->n;
    const int64_t size[] = {g->m, g->n, g->k, sa.ld, sb.ld, ldc, g->batch};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        if (size[i] > INT32_MAX)
            return rt_fail(&d->x->rt->err, GNNC_E_RANGE,
                           "a matrix product is too large for cuBLAS");
    cublasStatus_t s = cublasSgemmStridedBatched(
        cuda_of(d)->blas, sb.op, sa.op, (int)g->n, (int)g->m, (int)g->k, &one, b, (int)sb.ld,
        g->b_batch, a, (int)sa.ld, g->a_batch, &zero, c, (int)ldc, g->c_batch, (int)g->batch);
    return s == CUBLAS_STATUS_SUCCESS ? GNNC_OK : blas_failed(d, s);
}

/* ---- recordings -------------------------------------------------------------------- */
static gnnc_status record_begin(RtDevice *d) {
    CHECK(d, "recording a phase",
          cudaStreamBeginCapture(cuda_of(d)->stream, cudaStreamCaptureModeThreadLocal));
    return GNNC_OK;
}

static gnnc_status record_end(RtDevice *d, void **recording) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    CHECK(d, "recording a phase", cudaStreamEndCapture(cuda_of(d)->stream, &graph));
    cudaError_t e = cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    CHECK(d, "recording a phase", e);
    *recording = exec;
    return GNNC_OK;
}

static gnnc_status replay(RtDevice *d, void *recording) {
    CHECK(d, "a recorded phase", cudaGraphLaunch((cudaGraphExec_t)recording, cuda_of(d)->stream));
    return GNNC_OK;
}

static void forget(RtDevice *d, void *recording) {
    cudaStreamSynchronize(cuda_of(d)->stream);
    cudaGraphExecDestroy((cudaGraphExec_t)recording);
}

/* ---- clocks and profilers ------------------------------------------------------------- */
static gnnc_status wait_for_all(RtDevice *d) {
    CHECK(d, "the work of a phase", cudaStreamSynchronize(cuda_of(d)->stream));
    return GNNC_OK;
}

static gnnc_status stamp(RtDevice *d, int i) {
    Cuda *c = cuda_of(d);
    for (int k = 0; k <= i; k++) /* from the first one: close_device() stops at a gap */
        if (!c->event[k])
            CHECK(d, "a time stamp", cudaEventCreateWithFlags(&c->event[k], cudaEventDefault));
    CHECK(d, "a time stamp", cudaEventRecord(c->event[i], c->stream));
    return GNNC_OK;
}

static gnnc_status stamps(RtDevice *d, int n, int64_t *ns) {
    Cuda *c = cuda_of(d);
    CHECK(d, "the work of a phase", cudaEventSynchronize(c->event[n]));
    for (int i = 0; i < n; i++) {
        float ms = 0;
        CHECK(d, "a time stamp", cudaEventElapsedTime(&ms, c->event[i], c->event[i + 1]));
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

const RtDeviceOps rt_device_cuda = {.name = "cuda",
                                    .align = 256,
                                    .open = open_device,
                                    .close = close_device,
                                    .alloc = alloc_memory,
                                    .release = release_memory,
                                    .upload = upload,
                                    .download = download,
                                    .copy = copy,
                                    .launch = launch,
                                    .gemm = gemm,
                                    .record_begin = record_begin,
                                    .record_end = record_end,
                                    .replay = replay,
                                    .forget = forget,
                                    .wait = wait_for_all,
                                    .stamp = stamp,
                                    .stamps = stamps,
                                    .range_begin = range_begin,
                                    .range_end = range_end};
