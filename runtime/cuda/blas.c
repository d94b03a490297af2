/* Matrix products by cuBLAS.
 *
 * The library is opened when a GPU is there and a program multiplies matrices, not when the program
 * starts: loading it takes a tenth of a second and 200 MiB, which a program for both kinds of
 * machines need not pay where there is no GPU.  Its version is the one that this file was
 * compiled with; the trainer's run path, the loader's own and LD_LIBRARY_PATH are searched. */
#include "cuda.h"

#include <dlfcn.h>
#include <string.h>

#define LIBRARY "libcublas.so." CUDA_TEXT(CUBLAS_VER_MAJOR)

gnnc_status rt_cuda_blas_failed(RtDevice *d, cublasStatus_t s) {
    return rt_fail(&d->x->rt->err, GNNC_E_DEVICE, "cublas: %s",
                   rt_cuda_of(d)->blas.p_cublasGetStatusString(s));
}

/* ---- open and close -------------------------------------------------------------------------- */
/* Reports that cuBLAS cannot be loaded. Not as GNNC_E_DEVICE, which may fall back to the host: a
 * GPU is there, so that would surprise. */
static gnnc_status no_library(RtDevice *d, const char *why) {
    return rt_fail(
        &d->x->rt->err, GNNC_E_MISSING,
        "cuda: the matrix products of this program need %s: %s; install CUDA %s's cuBLAS, "
        "name its directory in LD_LIBRARY_PATH, or run with --device=cpu",
        LIBRARY, why ? why : "not found", CUDA_TEXT(CUBLAS_VER_MAJOR));
}

/* Loads the cuBLAS library and finds its functions, so that a program needs it only when it makes
 * products. */
static gnnc_status load(RtDevice *d, CudaBlas *b) {
    b->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!b->library) return no_library(d, dlerror());
    void *at;
#define FIND(f)                                                                                    \
    at = dlsym(b->library, CUDA_TEXT(f));                                                          \
    if (!at) return no_library(d, dlerror());                                                      \
    memcpy(&b->p_##f, &at, sizeof at);
    CUDA_BLAS_FUNCTIONS(FIND)
#undef FIND
#define FIND(f)                                                                                    \
    at = dlsym(b->library, CUDA_TEXT(f));                                                          \
    if (at) memcpy(&b->p_##f, &at, sizeof at);
    CUDA_BLAS_GROUPS(FIND)
#undef FIND
    return GNNC_OK;
}

/* Makes the stream's cuBLAS handle with its workspace on first use. */
gnnc_status rt_cuda_blas_open(RtDevice *d) {
    Cuda *c = rt_cuda_of(d);
    CudaBlas *b = &c->blas;
    CudaBlasQueue *q = rt_cuda_blas_queue(c);
    cublasMath_t math = d->tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH;
    if (q->handle) return GNNC_OK;
    gnnc_status st = b->library ? GNNC_OK : load(d, b);
    if (st != GNNC_OK) return st;
    if (!q->workspace)
        CUDA_CHECK(d, "cuBLAS's workspace", cudaMalloc(&q->workspace, RT_BLAS_WORKSPACE_BYTES));
    cublasStatus_t s = b->p_cublasCreate(&q->handle);
    if (s != CUBLAS_STATUS_SUCCESS) q->handle = NULL;
    if (s == CUBLAS_STATUS_SUCCESS) s = b->p_cublasSetStream(q->handle, c->stream);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = b->p_cublasSetWorkspace(q->handle, q->workspace, RT_BLAS_WORKSPACE_BYTES);
    if (s == CUBLAS_STATUS_SUCCESS) s = b->p_cublasSetMathMode(q->handle, math);
    return s == CUBLAS_STATUS_SUCCESS ? GNNC_OK : rt_cuda_blas_failed(d, s);
}

/* Releases the handles and their workspaces. */
void rt_cuda_blas_close(Cuda *c) {
    rt_cuda_lt_close(c);
    for (int i = 0; i < RT_STREAMS_MAX; i++) {
        if (c->blas.queue[i].handle) c->blas.p_cublasDestroy(c->blas.queue[i].handle);
        cudaFree(c->blas.queue[i].workspace);
    }
    /* The library stays: other trainers use it, and closing it does not give back what it holds. */
    c->blas = (CudaBlas){0};
}

/* ---- products -------------------------------------------------------------------------------- */
CudaStored rt_cuda_stored(int64_t rows, int64_t cols, int64_t row, int64_t col) {
    int64_t least_r = cols > 1 ? cols : 1, least_c = rows > 1 ? rows : 1;
    if (col == 1 && (row >= cols || rows == 1))
        return (CudaStored){CUBLAS_OP_N, row > least_r ? row : least_r};
    return (CudaStored){CUBLAS_OP_T, col > least_c ? col : least_c};
}

/* Sets the result of a product without summands to zero. */
static gnnc_status zero_rows(RtDevice *d, const rt_gemm *g, void *c) {
    int64_t size = g->out == RT_VOID ? rt_type_bytes(RT_F32) : rt_type_bytes(g->out);
    int64_t row = g->c_row > g->n ? g->c_row : g->n;
    for (int64_t b = 0; b < g->batch && g->m > 0 && g->n > 0; b++)
        CUDA_CHECK(d, "a matrix product",
                   cudaMemset2DAsync((char *)c + b * g->c_batch * size, (size_t)(row * size), 0,
                                     (size_t)(g->n * size), (size_t)g->m, rt_cuda_of(d)->stream));
    return GNNC_OK;
}

cudaDataType_t rt_cuda_type(rt_dtype t) {
    return t == RT_F16 ? CUDA_R_16F : t == RT_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* C = A * B by cuBLAS; sums are made in f32 whatever the operands' type. */
gnnc_status rt_cuda_gemm(RtDevice *d, const rt_gemm *g, const void *a, const void *b, void *c) {
    static const float one = 1, zero = 0;
    if (g->k <= 0) return zero_rows(d, g, c);
    gnnc_status st = rt_cuda_blas_open(d);
    if (st != GNNC_OK) return st;
    CudaBlas *blas = &rt_cuda_of(d)->blas;
    cublasHandle_t handle = rt_cuda_blas_queue(rt_cuda_of(d))->handle;
    CudaStored sa = rt_cuda_stored(g->m, g->k, g->a_row, g->a_col),
               sb = rt_cuda_stored(g->k, g->n, g->b_row, g->b_col);
    int64_t ldc = g->c_row > g->n ? g->c_row : g->n;
    const int64_t size[] = {g->m, g->n, g->k, sa.ld, sb.ld, ldc, g->batch};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        if (size[i] > INT32_MAX)
            return rt_fail(&d->x->rt->err, GNNC_E_RANGE,
                           "a matrix product is too large for cuBLAS");
    bool tf32 = d->tf32 && rt_cuda_type(g->in) == CUDA_R_32F;
    cublasComputeType_t sum = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cudaDataType_t in = rt_cuda_type(g->in), out = rt_cuda_type(g->out);
    int m = (int)g->m, n = (int)g->n, k = (int)g->k;
    /* One product has a call of its own, which may split long sums over more of the GPU. */
    cublasStatus_t s =
        g->batch == 1
            ? blas->p_cublasGemmEx(handle, sb.op, sa.op, n, m, k, &one, b, in, (int)sb.ld, a, in,
                                   (int)sa.ld, &zero, c, out, (int)ldc, sum, CUBLAS_GEMM_DEFAULT)
            : blas->p_cublasGemmStridedBatchedEx(handle, sb.op, sa.op, n, m, k, &one, b, in,
                                                 (int)sb.ld, g->b_batch, a, in, (int)sa.ld,
                                                 g->a_batch, &zero, c, out, (int)ldc, g->c_batch,
                                                 (int)g->batch, sum, CUBLAS_GEMM_DEFAULT);
    return s == CUBLAS_STATUS_SUCCESS ? GNNC_OK : rt_cuda_blas_failed(d, s);
}
