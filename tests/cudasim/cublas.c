/* cuBLAS by plain loops, in double: matrices lie by columns. */
#include "cublas_v2.h"
#include "cudasim.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct cublasContext {
    cudaStream_t stream;
};

cublasStatus_t cublasCreate(cublasHandle_t *h) {
    *h = calloc(1, sizeof **h);
    return *h ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy(cublasHandle_t h) {
    free(h);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t s) {
    h->stream = s;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t h, cublasMath_t m) {
    (void)h, (void)m;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t h, void *p, size_t n_bytes) {
    (void)h, (void)p, (void)n_bytes;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t s) {
    return s == CUBLAS_STATUS_SUCCESS ? "success" : "an error of the simulator's cuBLAS";
}

typedef struct {
    cublasOperation_t ta, tb;
    int m, n, k, lda, ldb, ldc, batch;
    long long stride_a, stride_b, stride_c;
    float alpha, beta;
    cudaDataType_t in, out;
    cublasComputeType_t sum;
    const void *a, *b;
    void *c;
} Gemm;

static double element(const void *x, cudaDataType_t t, long long i) {
    if (t == CUDA_R_16F) return __half2float(((const __half *)x)[i]);
    if (t == CUDA_R_16BF) return __bfloat162float(((const __nv_bfloat16 *)x)[i]);
    return ((const float *)x)[i];
}

static void put(void *x, cudaDataType_t t, long long i, float v) {
    if (t == CUDA_R_16F)
        ((__half *)x)[i] = __float2half_rn(v);
    else if (t == CUDA_R_16BF)
        ((__nv_bfloat16 *)x)[i] = __float2bfloat16_rn(v);
    else
        ((float *)x)[i] = v;
}

static void multiply(void *p) {
    const Gemm *g = p;
    for (int q = 0; q < g->batch; q++)
        for (int j = 0; j < g->n; j++)
            for (int i = 0; i < g->m; i++) {
                long long a = q * g->stride_a, b = q * g->stride_b;
                long long c = q * g->stride_c + i + (long long)j * g->ldc;
                double sum = 0;
                for (int l = 0; l < g->k; l++)
                    sum += element(g->a, g->in,
                                   a + (g->ta == CUBLAS_OP_N ? i + (long long)l * g->lda
                                                             : l + (long long)i * g->lda)) *
                           element(g->b, g->in,
                                   b + (g->tb == CUBLAS_OP_N ? l + (long long)j * g->ldb
                                                             : j + (long long)l * g->ldb));
                double old = g->beta != 0 ? g->beta * element(g->c, g->out, c) : 0;
                put(g->c, g->out, c, (float)(g->alpha * sum + old));
            }
}

/* The conditions of the manual, page cublas<t>gemm(), and the types of cublasGemmEx(). */
static int is_valid(const Gemm *g) {
    int rows_a = g->ta == CUBLAS_OP_N ? g->m : g->k, rows_b = g->tb == CUBLAS_OP_N ? g->k : g->n;
    return g->m >= 0 && g->n >= 0 && g->k >= 0 && g->batch >= 0 &&
           g->lda >= (rows_a > 1 ? rows_a : 1) && g->ldb >= (rows_b > 1 ? rows_b : 1) &&
           g->ldc >= (g->m > 1 ? g->m : 1) && (g->out == CUDA_R_32F || g->out == g->in) &&
           (g->sum == CUBLAS_COMPUTE_32F || g->in == CUDA_R_32F);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t ta,
                                          cublasOperation_t tb, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType_t type_a,
                                          int lda, long long stride_a, const void *b,
                                          cudaDataType_t type_b, int ldb, long long stride_b,
                                          const void *beta, void *c, cudaDataType_t type_c, int ldc,
                                          long long stride_c, int batch, cublasComputeType_t sum,
                                          cublasGemmAlgo_t algorithm) {
    (void)algorithm;
    Gemm *g = malloc(sizeof *g);
    if (!g) return CUBLAS_STATUS_ALLOC_FAILED;
    *g = (Gemm){.ta = ta,
                .tb = tb,
                .m = m,
                .n = n,
                .k = k,
                .lda = lda,
                .ldb = ldb,
                .ldc = ldc,
                .batch = batch,
                .stride_a = stride_a,
                .stride_b = stride_b,
                .stride_c = stride_c,
                .alpha = *(const float *)alpha,
                .beta = *(const float *)beta,
                .in = type_a,
                .out = type_c,
                .sum = sum,
                .a = a,
                .b = b,
                .c = c};
    if (type_a != type_b || !is_valid(g)) {
        free(g);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    cudasim_library_call(h->stream, multiply, free, g);
    return CUBLAS_STATUS_SUCCESS;
}
