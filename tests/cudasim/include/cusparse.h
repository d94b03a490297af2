/* The simulator's cuSPARSE: what runtime/cuda uses of it, by plain loops. */
#ifndef CUDASIM_CUSPARSE_H
#define CUDASIM_CUSPARSE_H

#include "cublas_v2.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUSPARSE_VER_MAJOR 12

typedef enum {
    CUSPARSE_STATUS_SUCCESS = 0,
    CUSPARSE_STATUS_ALLOC_FAILED = 2,
    CUSPARSE_STATUS_INVALID_VALUE = 3,
    CUSPARSE_STATUS_NOT_SUPPORTED = 10,
    CUSPARSE_STATUS_INSUFFICIENT_RESOURCES = 11
} cusparseStatus_t;
typedef enum { CUSPARSE_OPERATION_NON_TRANSPOSE = 0 } cusparseOperation_t;
typedef enum { CUSPARSE_INDEX_32I = 2, CUSPARSE_INDEX_64I = 3 } cusparseIndexType_t;
typedef enum { CUSPARSE_INDEX_BASE_ZERO = 0 } cusparseIndexBase_t;
typedef enum { CUSPARSE_ORDER_COL = 1, CUSPARSE_ORDER_ROW = 2 } cusparseOrder_t;
typedef enum { CUSPARSE_SPMM_CSR_ALG3 = 12 } cusparseSpMMAlg_t;
typedef struct cusparseContext *cusparseHandle_t;
typedef struct cusparseSpMatDescr *cusparseSpMatDescr_t;
typedef const struct cusparseSpMatDescr *cusparseConstSpMatDescr_t;
typedef struct cusparseDnMatDescr *cusparseDnMatDescr_t;
typedef const struct cusparseDnMatDescr *cusparseConstDnMatDescr_t;

cusparseStatus_t cusparseCreate(cusparseHandle_t *h);
cusparseStatus_t cusparseDestroy(cusparseHandle_t h);
cusparseStatus_t cusparseSetStream(cusparseHandle_t h, cudaStream_t s);
const char *cusparseGetErrorString(cusparseStatus_t s);
cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t *a, int64_t rows, int64_t cols, int64_t nnz,
                                   void *offsets, void *columns, void *values,
                                   cusparseIndexType_t of_offsets, cusparseIndexType_t of_columns,
                                   cusparseIndexBase_t base, cudaDataType_t type);
cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t a);
cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t *x, int64_t rows, int64_t cols,
                                     int64_t ld, void *values, cudaDataType_t type,
                                     cusparseOrder_t order);
cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t x);
cusparseStatus_t cusparseDnMatSetValues(cusparseDnMatDescr_t x, void *values);
cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t h, cusparseOperation_t op_a,
                                         cusparseOperation_t op_b, const void *alpha,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                         const void *beta, cusparseDnMatDescr_t c,
                                         cudaDataType_t sum, cusparseSpMMAlg_t algorithm,
                                         size_t *n_bytes);
cusparseStatus_t cusparseSpMM_preprocess(cusparseHandle_t h, cusparseOperation_t op_a,
                                         cusparseOperation_t op_b, const void *alpha,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                         const void *beta, cusparseDnMatDescr_t c,
                                         cudaDataType_t sum, cusparseSpMMAlg_t algorithm,
                                         void *workspace);
cusparseStatus_t cusparseSpMM(cusparseHandle_t h, cusparseOperation_t op_a,
                              cusparseOperation_t op_b, const void *alpha,
                              cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                              const void *beta, cusparseDnMatDescr_t c, cudaDataType_t sum,
                              cusparseSpMMAlg_t algorithm, void *workspace);

#ifdef __cplusplus
}
#endif
#endif
