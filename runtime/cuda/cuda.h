/* Inside the CUDA half of the runtime. */
#ifndef RUNTIME_CUDA_H
#define RUNTIME_CUDA_H

#include "device.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

/* Functions of a library that is opened when it is first needed, under the names that its header
 * gives them (cublasCreate is a macro for cublasCreate_v2). */
#define CUDA_BLAS_FUNCTIONS(X)                                                                     \
    X(cublasCreate)                                                                                \
    X(cublasDestroy)                                                                               \
    X(cublasSetStream)                                                                             \
    X(cublasSetWorkspace)                                                                          \
    X(cublasSetMathMode)                                                                           \
    X(cublasGemmStridedBatchedEx)                                                                  \
    X(cublasGetStatusString)

typedef struct CudaBlas {
    void *library;
    cublasHandle_t handle; /* NULL = not open yet */
    void *workspace;
#define CUDA_MEMBER(f) __typeof__(f) *p_##f;
    CUDA_BLAS_FUNCTIONS(CUDA_MEMBER)
#undef CUDA_MEMBER
} CudaBlas;

typedef struct Cuda {
    cudaStream_t stream;
    CudaBlas blas;
    const char *kernel; /* launched last, NULL = none yet */
    const char *lines;  /* of the model that it computes, or NULL */
    cudaEvent_t event[RT_STAMPS];
    cudaStream_t copies; /* beside `stream`; NULL until something goes there */
    cudaEvent_t copied[RT_LANES], used[RT_LANES];
} Cuda;

static inline Cuda *rt_cuda_of(RtDevice *d) {
    return d->self;
}

gnnc_status rt_cuda_failed(RtDevice *d, cudaError_t e, const char *what);

#define CUDA_CHECK(d, what, call)                                                                  \
    do {                                                                                           \
        cudaError_t cuda_error = (call);                                                           \
        if (cuda_error != cudaSuccess) return rt_cuda_failed((d), cuda_error, (what));             \
    } while (0)

/* ---- matrix products (blas.c) ------------------------------------------------------------- */
/* Loads cuBLAS, unless that was done: not while a phase is recorded. */
gnnc_status rt_cuda_blas_open(RtDevice *d);
void rt_cuda_blas_close(Cuda *c);
gnnc_status rt_cuda_gemm(RtDevice *d, const rt_gemm *g, const void *a, const void *b, void *c);

#endif
