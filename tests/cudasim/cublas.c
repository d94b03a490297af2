/* cuBLAS by plain loops, in double: matrices lie by columns.
 *
 * CUDASIM_CUBLAS=old: without the calls for several products (dl.c); =declines: they are there, and
 * say that they do not support what they are asked. */
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

/* In `sum`, of m: column j of the product, each element's terms in their order.  `wide` is a,
 * column by column. */
static void multiply_column(const Gemm *g, const double *wide, const void *b, int j, double *sum) {
    memset(sum, 0, (size_t)g->m * sizeof *sum);
    for (int l = 0; l < g->k; l++) {
        const double *column = wide + (size_t)l * (size_t)g->m;
        double by = element(
            b, g->in, g->tb == CUBLAS_OP_N ? l + (long long)j * g->ldb : j + (long long)l * g->ldb);
        for (int i = 0; i < g->m; i++) sum[i] += column[i] * by;
    }
}

static void multiply_one(const Gemm *g, const void *a, const void *b, void *c) {
    size_t m = (size_t)g->m, k = (size_t)g->k;
    double *wide = malloc((m * k + m + 1) * sizeof *wide), *sum = wide + m * k;
    if (!wide) cudasim_fail("no memory for a product");
    for (size_t l = 0; l < k; l++)
        for (size_t i = 0; i < m; i++)
            wide[l * m + i] = element(a, g->in,
                                      (long long)(g->ta == CUBLAS_OP_N ? i + l * (size_t)g->lda
                                                                       : l + i * (size_t)g->lda));
    for (int j = 0; j < g->n; j++) {
        multiply_column(g, wide, b, j, sum);
        for (int i = 0; i < g->m; i++) {
            long long at = i + (long long)j * g->ldc;
            double old = g->beta != 0 ? g->beta * element(c, g->out, at) : 0;
            put(c, g->out, at, (float)(g->alpha * sum[i] + old));
        }
    }
    free(wide);
}

static size_t size_of(cudaDataType_t t) {
    return t == CUDA_R_32F ? 4 : 2;
}

static void multiply(void *p) {
    const Gemm *g = p;
    for (int q = 0; q < g->batch; q++)
        multiply_one(g, (const char *)g->a + q * g->stride_a * (long long)size_of(g->in),
                     (const char *)g->b + q * g->stride_b * (long long)size_of(g->in),
                     (char *)g->c + q * g->stride_c * (long long)size_of(g->out));
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

cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m,
                            int n, int k, const void *alpha, const void *a, cudaDataType_t type_a,
                            int lda, const void *b, cudaDataType_t type_b, int ldb,
                            const void *beta, void *c, cudaDataType_t type_c, int ldc,
                            cublasComputeType_t sum, cublasGemmAlgo_t algorithm) {
    return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb,
                                      0, beta, c, type_c, ldc, 0, 1, sum, algorithm);
}

/* ---- several products ----------------------------------------------------------------------- */
/* Arrays of the host that a call was given. */
typedef struct {
    const cublasOperation_t *ta, *tb;
    const int *m, *n, *k, *lda, *ldb, *ldc, *size;
    const float *alpha, *beta;
    int n_groups;
} Shapes;

/* Addresses are read when the device comes to it, as it does: the arrays are in its memory.  Shapes
 * are the host's, and a recording may look at them in each run. */
typedef struct {
    int n;
    Shapes kept; /* of a recorded call for groups */
    const void *const *a, *const *b;
    void *const *c;
    Gemm gemm[]; /* [n] */
} Many;

/* Of 16 bits, or rounded to TF32: rows are loaded 16 bytes at a time. */
static void check_place(const Gemm *g, const void *p, size_t size) {
    bool wide = size == 2 || g->sum == CUBLAS_COMPUTE_32F_FAST_TF32;
    size_t row = (size_t)g->k * size, at = (size_t)p;
    if (wide && ((row % 16 == 0 && at % 16) || (row % 4 == 0 && at % 4)))
        cudasim_fail("an operand of several products is not aligned");
}

/* One after another, as they stand in the groups. */
static void describe(const Shapes *s, Gemm *g) {
    for (int i = 0; i < s->n_groups; i++)
        for (int j = 0; j < s->size[i]; j++, g++) {
            g->ta = s->ta[i], g->tb = s->tb[i];
            g->m = s->m[i], g->n = s->n[i], g->k = s->k[i];
            g->lda = s->lda[i], g->ldb = s->ldb[i], g->ldc = s->ldc[i];
            g->alpha = s->alpha[i], g->beta = s->beta[i];
        }
}

static void check_kept(const Many *m) {
    Gemm *now = malloc((size_t)m->n * sizeof *now);
    if (!now) return;
    memcpy(now, m->gemm, (size_t)m->n * sizeof *now);
    if (m->kept.size) describe(&m->kept, now);
    if (memcmp(now, m->gemm, (size_t)m->n * sizeof *now))
        cudasim_fail("shapes of recorded products are not what they were");
    free(now);
}

static void multiply_many(void *p) {
    const Many *m = p;
    check_kept(m);
    for (int i = 0; i < m->n; i++) {
        const Gemm *g = &m->gemm[i];
        check_place(g, m->a[i], size_of(g->in));
        check_place(g, m->b[i], size_of(g->in));
        check_place(g, m->c[i], size_of(g->out));
        for (int k = 0; k < i; k++)
            if (m->c[k] == m->c[i]) cudasim_fail("two products of a call have one result");
        multiply_one(g, m->a[i], m->b[i], m->c[i]);
    }
}

static bool declines(void) {
    const char *how = getenv("CUDASIM_CUBLAS");
    return how && strcmp(how, "declines") == 0;
}

static cublasStatus_t submit_many(cublasHandle_t h, Many *m, bool supported) {
    if (!m) return CUBLAS_STATUS_ALLOC_FAILED;
    cublasStatus_t s =
        supported && !declines() ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
    for (int i = 0; i < m->n; i++)
        if (!is_valid(&m->gemm[i])) s = CUBLAS_STATUS_INVALID_VALUE;
    if (s != CUBLAS_STATUS_SUCCESS) {
        free(m);
        return s;
    }
    cudasim_count()->groups++;
    cudasim_library_call(h->stream, multiply_many, free, m);
    return s;
}

static Many *new_many(int n, const void *const a[], const void *const b[], void *const c[]) {
    Many *m = malloc(sizeof *m + (size_t)n * sizeof *m->gemm);
    if (m) *m = (Many){.n = n, .a = a, .b = b, .c = c};
    return m;
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb,
                                   int m, int n, int k, const void *alpha, const void *const a[],
                                   cudaDataType_t type_a, int lda, const void *const b[],
                                   cudaDataType_t type_b, int ldb, const void *beta,
                                   void *const c[], cudaDataType_t type_c, int ldc, int batch,
                                   cublasComputeType_t sum, cublasGemmAlgo_t algorithm) {
    int fails = cudasim_library_fails();
    if (fails) return (cublasStatus_t)fails;
    (void)algorithm;
    Many *x = new_many(batch, a, b, c);
    for (int i = 0; x && i < batch; i++)
        x->gemm[i] = (Gemm){.ta = ta,
                            .tb = tb,
                            .m = m,
                            .n = n,
                            .k = k,
                            .lda = lda,
                            .ldb = ldb,
                            .ldc = ldc,
                            .batch = 1,
                            .alpha = *(const float *)alpha,
                            .beta = *(const float *)beta,
                            .in = type_a,
                            .out = type_c,
                            .sum = sum};
    return submit_many(h, x, type_a == type_b);
}

/* Operands and results of one type: the manual's table. */
cublasStatus_t cublasGemmGroupedBatchedEx(cublasHandle_t h, const cublasOperation_t ta[],
                                          const cublasOperation_t tb[], const int m[],
                                          const int n[], const int k[], const void *alpha,
                                          const void *const a[], cudaDataType_t type_a,
                                          const int lda[], const void *const b[],
                                          cudaDataType_t type_b, const int ldb[], const void *beta,
                                          void *const c[], cudaDataType_t type_c, const int ldc[],
                                          int n_groups, const int size[], cublasComputeType_t sum) {
    int fails = cudasim_library_fails();
    if (fails) return (cublasStatus_t)fails;
    const Shapes shapes = {ta, tb, m, n, k, lda, ldb, ldc, size, alpha, beta, n_groups};
    int all = 0;
    for (int i = 0; i < n_groups; i++) all += size[i];
    Many *x = new_many(all, a, b, c);
    for (int i = 0; x && i < all; i++) {
        memset(&x->gemm[i], 0, sizeof x->gemm[i]); /* the gaps too: it is compared as bytes */
        x->gemm[i].batch = 1;
        x->gemm[i].in = type_a, x->gemm[i].out = type_c;
        x->gemm[i].sum = sum;
    }
    if (x) describe(&shapes, x->gemm);
    if (x && cudasim_is_recording(h->stream)) x->kept = shapes;
    return submit_many(h, x, type_a == type_b && type_a == type_c);
}
