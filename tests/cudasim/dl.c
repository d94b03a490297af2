/* The libraries that runtime/cuda opens, which are parts of the simulator. */
#include "cublasLt.h"
#include "cusparse.h"
#include "dlfcn.h"
#include "runtime/cuda/nccl.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void *cudasim_dlopen(const char *name, int flags) {
    static char here;
    const char *without = getenv("CUDASIM_NO_LIBRARY");
    (void)flags;
    if (without && (strcmp(without, "1") == 0 || strstr(name, without))) return NULL;
    bool known = strcmp(name, "libcublas.so.13") == 0 || strcmp(name, "libcublasLt.so.13") == 0 ||
                 strcmp(name, "libcusparse.so.12") == 0 || strcmp(name, "libnccl.so.2") == 0;
    return known ? &here : NULL;
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
    const char *how = getenv("CUDASIM_CUBLAS");
    void *at = NULL;
    IS(cublasCreate)
    IS(cublasDestroy)
    IS(cublasSetStream)
    IS(cublasSetWorkspace)
    IS(cublasSetMathMode)
    IS(cublasGemmEx)
    IS(cublasGemmStridedBatchedEx)
    IS(cublasGetStatusString)
    if (!how || strcmp(how, "old")) {
        IS(cublasGemmBatchedEx)
        IS(cublasGemmGroupedBatchedEx)
    }
    IS(cublasLtCreate)
    IS(cublasLtDestroy)
    IS(cublasLtMatmul)
    IS(cublasLtMatmulAlgoCheck)
    IS(cublasLtMatmulAlgoGetHeuristic)
    IS(cublasLtMatmulDescCreate)
    IS(cublasLtMatmulDescDestroy)
    IS(cublasLtMatmulDescSetAttribute)
    IS(cublasLtMatmulPreferenceCreate)
    IS(cublasLtMatmulPreferenceDestroy)
    IS(cublasLtMatmulPreferenceSetAttribute)
    IS(cublasLtMatrixLayoutCreate)
    IS(cublasLtMatrixLayoutDestroy)
    IS(cublasLtMatrixLayoutSetAttribute)
    IS(cusparseCreate)
    IS(cusparseDestroy)
    IS(cusparseSetStream)
    IS(cusparseGetErrorString)
    IS(cusparseCreateCsr)
    IS(cusparseDestroySpMat)
    IS(cusparseCreateDnMat)
    IS(cusparseDestroyDnMat)
    IS(cusparseDnMatSetValues)
    IS(cusparseSpMM_bufferSize)
    IS(cusparseSpMM_preprocess)
    IS(cusparseSpMM)
    IS(ncclGetVersion)
    IS(ncclGetUniqueId)
    IS(ncclCommInitRank)
    IS(ncclCommDestroy)
    IS(ncclCommAbort)
    IS(ncclCommGetAsyncError)
    IS(ncclGetErrorString)
    IS(ncclBroadcast)
    IS(ncclAllReduce)
    IS(ncclGroupStart)
    IS(ncclGroupEnd)
    IS(ncclSend)
    IS(ncclRecv)
#undef IS
    return at;
}
