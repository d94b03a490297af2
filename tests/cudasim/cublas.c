/* cuBLAS by plain loops, in double: matrices lie by columns. */
#include "cublas_v2.h"
#include "cudasim.h"
#include "dlfcn.h"

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
    const float *a, *b;
    float *c;
} Gemm;

static void multiply(void *p) {
    const Gemm *g = p;
    for (int q = 0; q < g->batch; q++)
        for (int j = 0; j < g->n; j++)
            for (int i = 0; i < g->m; i++) {
                const float *a = g->a + q * g->stride_a, *b = g->b + q * g->stride_b;
                float *c = g->c + q * g->stride_c + i + (long long)j * g->ldc;
                double sum = 0;
                for (int l = 0; l < g->k; l++)
                    sum += (double)a[g->ta == CUBLAS_OP_N ? i + (long long)l * g->lda
                                                          : l + (long long)i * g->lda] *
                           (double)b[g->tb == CUBLAS_OP_N ? l + (long long)j * g->ldb
                                                          : j + (long long)l * g->ldb];
                *c = (float)(g->alpha * sum + (g->beta != 0 ? (double)(g->beta * *c) : 0));
            }
}

/* The conditions of the manual, page cublas<t>gemm(). */
static int is_valid(const Gemm *g) {
    int rows_a = g->ta == CUBLAS_OP_N ? g->m : g->k, rows_b = g->tb == CUBLAS_OP_N ? g->k : g->n;
    return g->m >= 0 && g->n >= 0 && g->k >= 0 && g->batch >= 0 &&
           g->lda >= (rows_a > 1 ? rows_a : 1) && g->ldb >= (rows_b > 1 ? rows_b : 1) &&
           g->ldc >= (g->m > 1 ? g->m : 1);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t h, cublasOperation_t ta,
                                         cublasOperation_t tb, int m, int n, int k,
                                         const float *alpha, const float *a, int lda,
                                         long long stride_a, const float *b, int ldb,
                                         long long stride_b, const float *beta, float *c, int ldc,
                                         long long stride_c, int batch) {
    Gemm *g = malloc(sizeof *g);
    if (!g) return CUBLAS_STATUS_ALLOC_FAILED;
    *g = (Gemm){ta,       tb,       m,        n,      k,     lda, ldb, ldc, batch,
                stride_a, stride_b, stride_c, *alpha, *beta, a,   b,   c};
    if (!is_valid(g)) {
        free(g);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    cudasim_library_call(h->stream, multiply, free, g);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- as a library ---------------------------------------------------------------------------- */
void *cudasim_dlopen(const char *name, int flags) {
    static char here;
    (void)flags;
    bool known = strcmp(name, "libcublas.so.13") == 0;
    return known && !getenv("CUDASIM_NO_LIBRARY") ? &here : NULL;
}

const char *cudasim_dlerror(void) {
    return "cannot open shared object file";
}

void *cudasim_dlsym(void *library, const char *name) {
#define IS(f)                                                                                      \
    if (library && strcmp(name, #f) == 0) {                                                        \
        __typeof__(f) *p = f;                                                                      \
        memcpy(&at, &p, sizeof at);                                                                \
    }
    void *at = NULL;
    IS(cublasCreate)
    IS(cublasDestroy)
    IS(cublasSetStream)
    IS(cublasSetWorkspace)
    IS(cublasSetMathMode)
    IS(cublasSgemmStridedBatched)
    IS(cublasGetStatusString)
#undef IS
    return at;
}
