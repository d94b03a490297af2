/* cuBLASLt by plain loops, in double.  An algorithm is what it was chosen for: used for another
 * end, or where rows are less aligned than it reads them, it is refused.
 *
 * CUDASIM_LT=narrow: those that sum an operand fill little of the GPU.  CUDASIM_LT=parts: they sum
 * in parts that follow from the sizes that they were chosen for, so that bits tell these. */
#include "cublasLt.h"
#include "cudasim.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct cublasLtContext {
    int unused;
};

struct cublasLtMatmulDesc {
    cublasComputeType_t sum;
    cublasOperation_t ta, tb;
    cublasLtEpilogue_t end;
    void *side;
};

struct cublasLtMatrixLayout {
    uint64_t rows, cols;
    int64_t ld;
};

struct cublasLtMatmulPreference {
    size_t room;
    uint32_t align[4]; /* of a, b, c, d */
};

/* In cublasLtMatmulAlgo_t. */
typedef struct {
    uint32_t end, width, align[4]; /* floats that it loads at once */
    uint64_t part;                 /* rows */
} Algorithm;

#define NEW_OR_FAIL(p)                                                                             \
    *(p) = calloc(1, sizeof **(p));                                                                \
    if (!*(p)) return CUBLAS_STATUS_ALLOC_FAILED

cublasStatus_t cublasLtCreate(cublasLtHandle_t *h) {
    NEW_OR_FAIL(h);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t h) {
    free(h);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *op, cublasComputeType_t sum,
                                        cudaDataType_t scale) {
    NEW_OR_FAIL(op);
    (*op)->sum = sum;
    (*op)->end = CUBLASLT_EPILOGUE_DEFAULT;
    return scale == CUDA_R_32F ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t op) {
    free(op);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t take(void *to, size_t size, const void *v, size_t n_bytes) {
    if (n_bytes != size) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, v, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t op,
                                              cublasLtMatmulDescAttributes_t what, const void *v,
                                              size_t n_bytes) {
    switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return take(&op->ta, sizeof op->ta, v, n_bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return take(&op->tb, sizeof op->tb, v, n_bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return take(&op->end, sizeof op->end, v, n_bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return take(&op->side, sizeof op->side, v, n_bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *at, cudaDataType_t type,
                                          uint64_t rows, uint64_t cols, int64_t ld) {
    NEW_OR_FAIL(at);
    **at = (struct cublasLtMatrixLayout){rows, cols, ld};
    return type == CUDA_R_32F ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t at) {
    free(at);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t at,
                                                cublasLtMatrixLayoutAttribute_t what, const void *v,
                                                size_t n_bytes) {
    switch (what) {
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
        return take(&at->rows, sizeof at->rows, v, n_bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
        return take(&at->cols, sizeof at->cols, v, n_bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD:
        return take(&at->ld, sizeof at->ld, v, n_bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *wants) {
    NEW_OR_FAIL(wants);
    for (int i = 0; i < 4; i++) (*wants)->align[i] = 256; /* the library's default */
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t wants) {
    free(wants);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t wants,
                                                    cublasLtMatmulPreferenceAttributes_t what,
                                                    const void *v, size_t n_bytes) {
    if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return take(&wants->room, sizeof wants->room, v, n_bytes);
    return take(&wants->align[what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], 4, v, n_bytes);
}

/* ---- algorithms -------- */
static bool fits(cublasOperation_t t, cublasLtMatrixLayout_t at, uint64_t rows, uint64_t cols) {
    bool n = t == CUBLAS_OP_N;
    return at->rows == (n ? rows : cols) && at->cols == (n ? cols : rows) &&
           at->ld >= (int64_t)(at->rows > 1 ? at->rows : 1);
}

static bool is_valid(cublasLtMatmulDesc_t op, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                     cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
    uint64_t k = op->ta == CUBLAS_OP_N ? a->cols : a->rows;
    return d->rows > 0 && d->cols > 0 && k > 0 && fits(op->ta, a, d->rows, k) &&
           fits(op->tb, b, k, d->cols) && fits(CUBLAS_OP_N, d, d->rows, d->cols) &&
           fits(CUBLAS_OP_N, c, d->rows, d->cols);
}

static uint32_t width_of(cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                         cublasLtMatrixLayout_t d) {
    return (a->ld | b->ld | d->ld) % 4 ? 1 : 4;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t op,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t wants, int most,
                                              cublasLtMatmulHeuristicResult_t found[], int *n) {
    const char *how = getenv("CUDASIM_LT");
    bool sums = op->end == CUBLASLT_EPILOGUE_BGRADA || op->end == CUBLASLT_EPILOGUE_BGRADB;
    uint64_t k = op->ta == CUBLAS_OP_N ? a->cols : a->rows;
    bool parts = how && strcmp(how, "parts") == 0;
    Algorithm x = {.end = op->end,
                   .width = width_of(a, b, d),
                   .part = parts ? 1 + (d->rows + d->cols + k) % 7 : UINT64_MAX};
    *n = 0;
    if (!h || most < 1 || !is_valid(op, a, b, c, d)) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(x.align, wants->align, sizeof x.align);
    memset(found, 0, sizeof *found);
    memcpy(&found->algo, &x, sizeof x);
    found->state = CUBLAS_STATUS_SUCCESS;
    found->workspaceSize = wants->room;
    found->wavesCount = sums && how && strcmp(how, "narrow") == 0 ? 0.01f : 1;
    *n = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t h, cublasLtMatmulDesc_t op,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algorithm,
                                       cublasLtMatmulHeuristicResult_t *found) {
    Algorithm x;
    memcpy(&x, algorithm, sizeof x);
    if (!h || !is_valid(op, a, b, c, d)) return CUBLAS_STATUS_INVALID_VALUE;
    if (x.end != (uint32_t)op->end || x.width > width_of(a, b, d))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    memset(found, 0, sizeof *found);
    found->algo = *algorithm;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- products -------- */
typedef struct {
    struct cublasLtMatmulDesc op;
    struct cublasLtMatrixLayout at_a, at_b, at_d;
    const float *a, *b;
    float *d;
    uint64_t part;
} Product;

static double at(const float *x, const struct cublasLtMatrixLayout *l, cublasOperation_t t,
                 uint64_t i, uint64_t j) {
    return t == CUBLAS_OP_N ? x[i + j * (uint64_t)l->ld] : x[j + i * (uint64_t)l->ld];
}

static void sum_operand(const Product *p, uint64_t k, bool of_a) {
    uint64_t n = of_a ? p->at_d.rows : p->at_d.cols;
    for (uint64_t i = 0; i < n; i++) {
        double sum = 0;
        for (uint64_t l = 0; l < k; l++)
            sum += of_a ? at(p->a, &p->at_a, p->op.ta, i, l) : at(p->b, &p->at_b, p->op.tb, l, i);
        ((float *)p->op.side)[i] = (float)sum;
    }
}

static void multiply(void *arg) {
    const Product *p = arg;
    uint64_t k = p->op.ta == CUBLAS_OP_N ? p->at_a.cols : p->at_a.rows;
    bool sums = p->op.end == CUBLASLT_EPILOGUE_BGRADA || p->op.end == CUBLASLT_EPILOGUE_BGRADB;
    for (uint64_t j = 0; j < p->at_d.cols; j++)
        for (uint64_t i = 0; i < p->at_d.rows; i++) {
            double sum = 0;
            for (uint64_t l = 0; l < k; l++) {
                sum += at(p->a, &p->at_a, p->op.ta, i, l) * at(p->b, &p->at_b, p->op.tb, l, j);
                if ((l + 1) % p->part == 0) sum = (float)sum;
            }
            if (!sums && p->op.end & CUBLASLT_EPILOGUE_BIAS) sum += ((const float *)p->op.side)[i];
            if (!sums && p->op.end & CUBLASLT_EPILOGUE_RELU && !(sum > 0)) sum = 0;
            p->d[i + j * (uint64_t)p->at_d.ld] = (float)sum;
        }
    if (sums) sum_operand(p, k, p->op.end == CUBLASLT_EPILOGUE_BGRADA);
}

static bool is_aligned(const void *p, uint32_t to) {
    return (uintptr_t)p % to == 0;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t op, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t at_a, const void *b,
                              cublasLtMatrixLayout_t at_b, const void *beta, const void *c,
                              cublasLtMatrixLayout_t at_c, void *d, cublasLtMatrixLayout_t at_d,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t s) {
    int fails = cudasim_library_fails();
    if (fails) return (cublasStatus_t)fails;
    cublasLtMatmulHeuristicResult_t found;
    cublasStatus_t st = cublasLtMatmulAlgoCheck(h, op, at_a, at_b, at_c, at_d, algorithm, &found);
    Algorithm x;
    memcpy(&x, algorithm, sizeof x);
    bool plain = op->end == CUBLASLT_EPILOGUE_DEFAULT || op->end == CUBLASLT_EPILOGUE_RELU;
    bool aligned = is_aligned(a, x.align[0]) && is_aligned(b, x.align[1]) &&
                   is_aligned(c, x.align[2]) && is_aligned(d, x.align[3]);
    if (st != CUBLAS_STATUS_SUCCESS) return st;
    if (*(const float *)alpha != 1 || *(const float *)beta != 0 || !aligned || !workspace ||
        workspace_bytes < found.workspaceSize || (!plain && !op->side))
        return CUBLAS_STATUS_INVALID_VALUE;
    Product *p = malloc(sizeof *p);
    if (!p) return CUBLAS_STATUS_ALLOC_FAILED;
    *p = (Product){.op = *op,
                   .at_a = *at_a,
                   .at_b = *at_b,
                   .at_d = *at_d,
                   .a = a,
                   .b = b,
                   .d = d,
                   .part = x.part};
    cudasim_count()->ends += op->end != CUBLASLT_EPILOGUE_DEFAULT;
    cudasim_library_call(s, multiply, free, p);
    return CUBLAS_STATUS_SUCCESS;
}
