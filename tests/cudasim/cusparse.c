/* cuSPARSE's SpMM by plain loops, in double.  What the manual asks for is checked: sizes that fit,
 * a workspace of the size that was told, the one that the matrix was prepared with and that nobody
 * has written to since; indices that are still those.
 *
 * CUDASIM_CUSPARSE=declines: it does not support what it is asked; =fails: it cannot do it. */
#include "cusparse.h"
#include "cudasim.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct cusparseContext {
    cudaStream_t stream;
};

struct cusparseSpMatDescr {
    int64_t rows, cols, nnz;
    const int32_t *offsets, *columns;
    const float *values;
    /* The library changes it behind a const pointer, too. */
    struct {
        bool sized, prepared;
        const void *workspace;
    } *known;
};

struct cusparseDnMatDescr {
    int64_t rows, cols, ld;
    float *values;
};

/* In the workspace, when a matrix has been prepared. */
typedef struct {
    uint64_t sum; /* of its indices */
    int64_t nnz;
} Found;

cusparseStatus_t cusparseCreate(cusparseHandle_t *h) {
    int fails = cudasim_library_fails();
    if (fails) return (cusparseStatus_t)fails;
    *h = calloc(1, sizeof **h);
    return *h ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_ALLOC_FAILED;
}

cusparseStatus_t cusparseDestroy(cusparseHandle_t h) {
    free(h);
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSetStream(cusparseHandle_t h, cudaStream_t s) {
    int fails = cudasim_library_fails();
    if (fails) return (cusparseStatus_t)fails;
    h->stream = s;
    return CUSPARSE_STATUS_SUCCESS;
}

const char *cusparseGetErrorString(cusparseStatus_t s) {
    return s == CUSPARSE_STATUS_SUCCESS         ? "success"
           : s == CUSPARSE_STATUS_NOT_SUPPORTED ? "not supported"
                                                : "an error of the simulator's cuSPARSE";
}

/* ---- matrices ------------------------------------------------------------------------------- */
cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t *a, int64_t rows, int64_t cols, int64_t nnz,
                                   void *offsets, void *columns, void *values,
                                   cusparseIndexType_t of_offsets, cusparseIndexType_t of_columns,
                                   cusparseIndexBase_t base, cudaDataType_t type) {
    int fails = cudasim_library_fails();
    if (fails) return (cusparseStatus_t)fails;
    bool sized = rows >= 0 && cols >= 0 && nnz >= 0 && rows < INT32_MAX && nnz < INT32_MAX;
    bool known = of_offsets == CUSPARSE_INDEX_32I && of_columns == CUSPARSE_INDEX_32I &&
                 base == CUSPARSE_INDEX_BASE_ZERO && type == CUDA_R_32F;
    if (!sized || !known || !offsets || !columns || !values) return CUSPARSE_STATUS_INVALID_VALUE;
    *a = calloc(1, sizeof **a);
    if (!*a) return CUSPARSE_STATUS_ALLOC_FAILED;
    **a = (struct cusparseSpMatDescr){rows, cols, nnz, offsets, columns, values, NULL};
    (*a)->known = calloc(1, sizeof *(*a)->known);
    if ((*a)->known) return CUSPARSE_STATUS_SUCCESS;
    free(*a);
    *a = NULL;
    return CUSPARSE_STATUS_ALLOC_FAILED;
}

cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t a) {
    free(a->known);
    free((void *)(uintptr_t)a);
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t *x, int64_t rows, int64_t cols,
                                     int64_t ld, void *values, cudaDataType_t type,
                                     cusparseOrder_t order) {
    int fails = cudasim_library_fails();
    if (fails) return (cusparseStatus_t)fails;
    if (rows < 0 || cols < 0 || ld < cols || !values || type != CUDA_R_32F ||
        order != CUSPARSE_ORDER_ROW)
        return CUSPARSE_STATUS_INVALID_VALUE;
    *x = malloc(sizeof **x);
    if (!*x) return CUSPARSE_STATUS_ALLOC_FAILED;
    **x = (struct cusparseDnMatDescr){rows, cols, ld, values};
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t x) {
    free((void *)(uintptr_t)x);
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDnMatSetValues(cusparseDnMatDescr_t x, void *values) {
    int fails = cudasim_library_fails();
    if (fails) return (cusparseStatus_t)fails;
    if (!values) return CUSPARSE_STATUS_INVALID_VALUE;
    x->values = values;
    return CUSPARSE_STATUS_SUCCESS;
}

/* ---- products ------------------------------------------------------------------------------- */
typedef struct {
    struct cusparseSpMatDescr a;
    struct cusparseDnMatDescr b, c;
    float alpha, beta;
    Found *found;
} Product;

static uint64_t sum_of(const struct cusparseSpMatDescr *a) {
    uint64_t sum = 0;
    for (int64_t r = 0; r <= a->rows; r++) sum = sum * 31 + (uint64_t)a->offsets[r];
    for (int64_t k = 0; k < a->nnz; k++) sum = sum * 31 + (uint64_t)a->columns[k];
    return sum;
}

static void check_indices(const struct cusparseSpMatDescr *a) {
    if (a->offsets[0] != 0 || a->offsets[a->rows] != a->nnz)
        cudasim_fail("a sparse matrix' bounds are not those of its entries");
    for (int64_t k = 0; k < a->nnz; k++)
        if (a->columns[k] < 0 || a->columns[k] >= a->cols)
            cudasim_fail("a sparse matrix has an entry outside of it");
}

static void prepare(void *p) {
    const Product *m = p;
    check_indices(&m->a);
    *m->found = (Found){sum_of(&m->a), m->a.nnz};
}

static void multiply(void *p) {
    const Product *m = p;
    if (m->found->nnz != m->a.nnz || m->found->sum != sum_of(&m->a))
        cudasim_fail("a sparse matrix or its workspace was changed after it was prepared");
    for (int64_t r = 0; r < m->a.rows; r++)
        for (int64_t f = 0; f < m->b.cols; f++) {
            double sum = 0;
            float *c = &m->c.values[r * m->c.ld + f];
            for (int32_t k = m->a.offsets[r]; k < m->a.offsets[r + 1]; k++)
                sum += (double)m->a.values[k] * m->b.values[m->a.columns[k] * m->b.ld + f];
            *c = (float)(m->alpha * sum + (m->beta != 0 ? m->beta * *c : 0));
        }
}

static bool fit(const struct cusparseSpMatDescr *a, const struct cusparseDnMatDescr *b,
                const struct cusparseDnMatDescr *c, cudaDataType_t sum) {
    return a->cols == b->rows && a->rows == c->rows && b->cols == c->cols && sum == CUDA_R_32F;
}

static cusparseStatus_t submit(cusparseHandle_t h, void (*what)(void *), const void *alpha,
                               const struct cusparseSpMatDescr *a,
                               const struct cusparseDnMatDescr *b, const void *beta,
                               const struct cusparseDnMatDescr *c, void *workspace) {
    Product *m = malloc(sizeof *m);
    if (!m) return CUSPARSE_STATUS_ALLOC_FAILED;
    *m = (Product){*a, *b, *c, *(const float *)alpha, *(const float *)beta, workspace};
    cudasim_library_call(h->stream, what, free, m);
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t h, cusparseOperation_t op_a,
                                         cusparseOperation_t op_b, const void *alpha,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                         const void *beta, cusparseDnMatDescr_t c,
                                         cudaDataType_t sum, cusparseSpMMAlg_t algorithm,
                                         size_t *n_bytes) {
    int fails = cudasim_library_fails();
    if (fails) return (cusparseStatus_t)fails;
    const char *how = getenv("CUDASIM_CUSPARSE");
    (void)h, (void)op_a, (void)op_b, (void)alpha, (void)beta, (void)algorithm;
    if (!fit(a, b, c, sum)) return CUSPARSE_STATUS_INVALID_VALUE;
    if (how && strcmp(how, "declines") == 0) return CUSPARSE_STATUS_NOT_SUPPORTED;
    if (how && strcmp(how, "fails") == 0) return CUSPARSE_STATUS_INVALID_VALUE;
    a->known->sized = true;
    *n_bytes = sizeof(Found);
    return CUSPARSE_STATUS_SUCCESS;
}

/* It waits for the device, and works on the matrix: not while a stream records. */
cusparseStatus_t cusparseSpMM_preprocess(cusparseHandle_t h, cusparseOperation_t op_a,
                                         cusparseOperation_t op_b, const void *alpha,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                         const void *beta, cusparseDnMatDescr_t c,
                                         cudaDataType_t sum, cusparseSpMMAlg_t algorithm,
                                         void *workspace) {
    int fails = cudasim_library_fails();
    if (fails) return (cusparseStatus_t)fails;
    (void)op_a, (void)op_b, (void)algorithm;
    if (!fit(a, b, c, sum) || !a->known->sized || !workspace) return CUSPARSE_STATUS_INVALID_VALUE;
    if (cudaStreamSynchronize(h->stream) != cudaSuccess)
        cudasim_fail("a sparse matrix is prepared while a stream records");
    a->known->prepared = true;
    a->known->workspace = workspace;
    return submit(h, prepare, alpha, a, b, beta, c, workspace);
}

cusparseStatus_t cusparseSpMM(cusparseHandle_t h, cusparseOperation_t op_a,
                              cusparseOperation_t op_b, const void *alpha,
                              cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                              const void *beta, cusparseDnMatDescr_t c, cudaDataType_t sum,
                              cusparseSpMMAlg_t algorithm, void *workspace) {
    int fails = cudasim_library_fails();
    if (fails) return (cusparseStatus_t)fails;
    (void)op_a, (void)op_b, (void)algorithm;
    if (!fit(a, b, c, sum) || b->values == c->values) return CUSPARSE_STATUS_INVALID_VALUE;
    if (!a->known->prepared || a->known->workspace != workspace)
        cudasim_fail("a sparse product without the workspace that its matrix was prepared with");
    cudasim_count()->spmms++;
    return submit(h, multiply, alpha, a, b, beta, c, workspace);
}
