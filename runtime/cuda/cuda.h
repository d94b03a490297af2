/* Inside the CUDA half of the runtime. */
#ifndef RUNTIME_CUDA_H
#define RUNTIME_CUDA_H

#include "nccl.h"
#include "runtime/device/device.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusparse.h>

/* Functions of a library that is opened when it is first needed, under the names that its header
 * gives them (cublasCreate is a macro for cublasCreate_v2). */
#define CUDA_BLAS_FUNCTIONS(X)                                                                     \
    X(cublasCreate)                                                                                \
    X(cublasDestroy)                                                                               \
    X(cublasSetStream)                                                                             \
    X(cublasSetWorkspace)                                                                          \
    X(cublasSetMathMode)                                                                           \
    X(cublasGemmEx)                                                                                \
    X(cublasGemmStridedBatchedEx)                                                                  \
    X(cublasGetStatusString)

/* Those that several products at once take, which may be missing (group.c). */
#define CUDA_BLAS_HAS_GROUPED (CUBLAS_VER_MAJOR * 100 + CUBLAS_VER_MINOR >= 1205)
#if CUDA_BLAS_HAS_GROUPED
#define CUDA_BLAS_GROUPS(X)                                                                        \
    X(cublasGemmBatchedEx)                                                                         \
    X(cublasGemmGroupedBatchedEx)
#else
#define CUDA_BLAS_GROUPS(X) X(cublasGemmBatchedEx)
#endif

/* A stream's: products of several streams may run at the same time. */
typedef struct CudaBlasQueue {
    cublasHandle_t handle; /* NULL = not open yet */
    void *workspace;       /* RT_BLAS_WORKSPACE_BYTES */
} CudaBlasQueue;

typedef struct CudaBlas {
    void *library;
    CudaBlasQueue queue[RT_STREAMS_MAX];
#define CUDA_MEMBER(f) __typeof__(f) *p_##f;
    CUDA_BLAS_FUNCTIONS(CUDA_MEMBER)
    CUDA_BLAS_GROUPS(CUDA_MEMBER)
    unsigned declined; /* group.c: what the library said it does not do */
} CudaBlas;

/* The same of cuBLASLt, whose products have ends of their own. */
#define CUDA_LT_FUNCTIONS(X)                                                                       \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtMatmul)                                                                              \
    X(cublasLtMatmulAlgoCheck)                                                                     \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmulDescCreate)                                                                    \
    X(cublasLtMatmulDescDestroy)                                                                   \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatmulPreferenceCreate)                                                              \
    X(cublasLtMatmulPreferenceDestroy)                                                             \
    X(cublasLtMatmulPreferenceSetAttribute)                                                        \
    X(cublasLtMatrixLayoutCreate)                                                                  \
    X(cublasLtMatrixLayoutDestroy)                                                                 \
    X(cublasLtMatrixLayoutSetAttribute)

typedef struct CudaLt {
    bool tried;
    void *library;
    cublasLtHandle_t handle; /* NULL = there is none */
    struct LtPlan *plans;    /* lt.c */
    int n_plans;
    CUDA_LT_FUNCTIONS(CUDA_MEMBER)
} CudaLt;

/* And of cuSPARSE, for sparse products. */
#define CUDA_SPARSE_FUNCTIONS(X)                                                                   \
    X(cusparseCreate)                                                                              \
    X(cusparseDestroy)                                                                             \
    X(cusparseSetStream)                                                                           \
    X(cusparseGetErrorString)                                                                      \
    X(cusparseCreateCsr)                                                                           \
    X(cusparseDestroySpMat)                                                                        \
    X(cusparseCreateDnMat)                                                                         \
    X(cusparseDestroyDnMat)                                                                        \
    X(cusparseDnMatSetValues)                                                                      \
    X(cusparseSpMM_bufferSize)                                                                     \
    X(cusparseSpMM_preprocess)                                                                     \
    X(cusparseSpMM)

typedef struct CudaSparse {
    bool tried;
    void *library;
    cusparseHandle_t handle; /* NULL = there is none */
    cudaStream_t stream;     /* that the handle has */
    CUDA_SPARSE_FUNCTIONS(CUDA_MEMBER)
} CudaSparse;

/* And of NCCL, for memory that goes from one process's GPU to others (nccl.c). */
#define CUDA_NCCL_FUNCTIONS(X)                                                                     \
    X(ncclGetVersion)                                                                              \
    X(ncclGetUniqueId)                                                                             \
    X(ncclCommInitRank)                                                                            \
    X(ncclCommDestroy)                                                                             \
    X(ncclCommAbort)                                                                               \
    X(ncclCommGetAsyncError)                                                                       \
    X(ncclGetErrorString)                                                                          \
    X(ncclBroadcast)                                                                               \
    X(ncclAllReduce)                                                                               \
    X(ncclGroupStart)                                                                              \
    X(ncclGroupEnd)                                                                                \
    X(ncclSend)                                                                                    \
    X(ncclRecv)

typedef struct CudaPeers {
    bool tried;
    void *library;
    int version;     /* 0 = it is not there */
    ncclComm_t comm; /* NULL = there is no group, or it was given up */
    int rank, n;
    bool under_way;     /* transfers were called for that nobody has waited for */
    int64_t patience_s; /* of who waits for the steps' stream, which waits for them; 0: none does */
    cudaStream_t stream;
    cudaEvent_t ready, came; /* what goes may; all is there */
    CUDA_NCCL_FUNCTIONS(CUDA_MEMBER)
#undef CUDA_MEMBER
} CudaPeers;

/* A loop under recording (loop.c). */
typedef struct CudaLoop {
    void *condition;
    int64_t limit;
    cudaGraph_t around, body;
    cudaGraphNode_t node;
#if CUDART_VERSION >= 12040
    cudaGraphConditionalHandle handle;
#endif
} CudaLoop;

/* Memory of the host that stands for page-locked one (cuda.c). */
typedef struct CudaPages {
    struct CudaPages *next;
    void *p;
} CudaPages;

/* Page-locked memory that small uploads are taken into, in order: a slot is written again when the
 * copy from it is done.  A step brings one or two of them. */
enum { CUDA_SLOTS = 16, CUDA_SLOT_BYTES = 64 << 10 };
typedef struct CudaStaging {
    void *slots; /* NULL: none were taken yet */
    cudaEvent_t read[CUDA_SLOTS];
    int slot;
} CudaStaging;

/* A queue beside the others (side.c). */
typedef struct CudaSide {
    struct CudaSide *next;
    cudaStream_t stream;
    cudaEvent_t done;
} CudaSide;

/* Streams of a phase that is recorded (streams.c). */
typedef struct CudaStreams {
    cudaStream_t of[RT_STREAMS_MAX];   /* the first is the one of all other work; NULL: not yet */
    cudaEvent_t ended[RT_STREAMS_MAX]; /* [i] all that stream i has; [0] nothing yet */
    bool used[RT_STREAMS_MAX];         /* since the recording began */
    int n, now;                        /* 1 = one; the number of Cuda.stream */
    cudaEvent_t *done;                 /* [n_done] by step; NULL = it was not marked yet */
    int n_done;
} CudaStreams;

typedef struct Cuda {
    cudaStream_t stream; /* that what comes next goes to: always the first, but in recordings */
    cudaEvent_t zeroed;  /* the memory that was allocated last: every stream waits for it */
    CudaStaging staging;
    int ordinal, units; /* of the GPU; its multiprocessors */
    CudaBlas blas;
    CudaLt lt;
    CudaSparse sparse;
    const char *kernel; /* launched last, NULL = none yet */
    const char *lines;  /* of the model that it computes, or NULL */
    cudaEvent_t event[RT_STAMPS];
    cudaStream_t copies; /* beside `stream`; NULL until something goes there */
    cudaEvent_t copied[RT_LANES], used[RT_LANES];
    struct CudaShapes *shapes; /* group.c: of recorded products */
    CudaPages *ordinary;       /* NULL: all of it is page-locked */
    CudaSide *sides;           /* NULL = nobody wants one */
    cudaEvent_t taken;         /* from them */
    cudaEvent_t theirs, ours;  /* order.c; NULL: not yet */
    cudaEvent_t mark;          /* mark(), reach(); NULL: not yet */
    CudaPeers peers;
    CudaStreams streams;
    CudaLoop *loop;          /* [most_loops] one within the other */
    int n_loops, most_loops; /* open ones; 0 = there can be none */
    int64_t *iterations;     /* [most_loops] on the device: that each has made */
    cudaGraph_t whole;       /* that they are in, from the first body on; NULL: the stream's own */
} Cuda;

static inline Cuda *rt_cuda_of(RtDevice *d) {
    return d->self;
}

gnnc_status rt_cuda_failed(RtDevice *d, cudaError_t e, const char *what);
cudaError_t rt_cuda_await(cudaEvent_t event);
/* Beside `stream`, which zeroes memory. */
cudaError_t rt_cuda_stream(const Cuda *c, cudaStream_t *s);

#define CUDA_CHECK(d, what, call)                                                                  \
    do {                                                                                           \
        cudaError_t cuda_error = (call);                                                           \
        if (cuda_error != cudaSuccess) return rt_cuda_failed((d), cuda_error, (what));             \
    } while (0)

/* ---- queues of other threads (side.c) ------------------------------------------------------- */
gnnc_status rt_cuda_side_open(RtDevice *d, void **queue);
void rt_cuda_side_close(RtDevice *d, void *queue);
gnnc_status rt_cuda_side_upload(RtDevice *d, void *queue, void *to, const void *from, size_t n,
                                RtError *err);
gnnc_status rt_cuda_side_download(RtDevice *d, void *queue, void *to, const void *from, size_t n,
                                  RtError *err);
gnnc_status rt_cuda_side_launch(RtDevice *d, void *queue, rt_device_kernel *k, const char *name,
                                void *const *arg, RtError *err);
gnnc_status rt_cuda_side_clear(RtDevice *d, void *queue, void *p, size_t n, RtError *err);
gnnc_status rt_cuda_side_wait(RtDevice *d, void *queue, RtError *err);
gnnc_status rt_cuda_took(RtDevice *d);
gnnc_status rt_cuda_side_after(RtDevice *d, void *queue, RtError *err);

/* ---- the host's stream (order.c) ------------------------------------------------------------- */
gnnc_status rt_cuda_follow(RtDevice *d, void *stream);
gnnc_status rt_cuda_lead(RtDevice *d, void *stream);
void rt_cuda_order_close(Cuda *c);

/* ---- GPUs of other processes (nccl.c) ---------------------------------------------------------
 */
int rt_cuda_peers_version(RtDevice *d);
gnnc_status rt_cuda_peers_id(RtDevice *d, RtPeersId *id);
gnnc_status rt_cuda_peers_open(RtDevice *d, const RtPeersId *id, int rank, int n);
gnnc_status rt_cuda_peers_share(RtDevice *d, float *at, int64_t n, int from);
gnnc_status rt_cuda_peers_wait(RtDevice *d, int64_t patience_s);
gnnc_status rt_cuda_peers_swap(RtDevice *d, const void *const *out, const size_t *n_out,
                               void *const *in, const size_t *n_in, int64_t patience_s);
gnnc_status rt_cuda_peers_add(RtDevice *d, float *at, int64_t n, int64_t patience_s);
gnnc_status rt_cuda_peers_join(RtDevice *d);
void rt_cuda_peers_close(RtDevice *d, bool lost);
/* Waits for an event, or for all that the steps' stream has, though other processes decide when
 * that is done: as long as they are there, and patience lasts. */
gnnc_status rt_cuda_wait(RtDevice *d, cudaEvent_t event, const char *what);
gnnc_status rt_cuda_wait_for_steps(RtDevice *d, const char *what);

/* ---- loops of a recording (loop.c) ---------------------------------------------------------- */
gnnc_status rt_cuda_loops_open(RtDevice *d);
bool rt_cuda_has_loops(const RtDevice *d);
gnnc_status rt_cuda_loop_begin(RtDevice *d, const void *condition, int64_t limit);
gnnc_status rt_cuda_loop_end(RtDevice *d);

/* ---- several streams of a recording (streams.c) -------------------------------------------- */
gnnc_status rt_cuda_streams_open(RtDevice *d, int n_streams, unsigned products, int n_steps);
gnnc_status rt_cuda_streams_begin(RtDevice *d);
gnnc_status rt_cuda_streams_switch(RtDevice *d, int stream, int n, const int *after);
gnnc_status rt_cuda_streams_mark(RtDevice *d, int step);
cudaError_t rt_cuda_streams_join(Cuda *c);
void rt_cuda_streams_close(Cuda *c);

/* ---- matrix products (blas.c) ------------------------------------------------------------- */
/* Loads cuBLAS, unless that was done, and opens it for the stream: not while a phase is recorded.
 */
gnnc_status rt_cuda_blas_open(RtDevice *d);
static inline CudaBlasQueue *rt_cuda_blas_queue(Cuda *c) {
    return &c->blas.queue[c->streams.now];
}
void rt_cuda_blas_close(Cuda *c);
gnnc_status rt_cuda_gemm(RtDevice *d, const rt_gemm *g, const void *a, const void *b, void *c);
gnnc_status rt_cuda_blas_failed(RtDevice *d, cublasStatus_t s);
/* "libcublas.so.13", where X is CUBLAS_VER_MAJOR. */
#define CUDA_TEXT_OF(x) #x
#define CUDA_TEXT(x) CUDA_TEXT_OF(x)
/* cuBLAS must not allocate while a graph is recorded: it gets this much for good.  NVIDIA
 * asks for 32 MiB on Hopper. */
enum { RT_BLAS_WORKSPACE_BYTES = 32 << 20 };

/* cuBLAS has its matrices by columns, so it computes C' = B' A'.  An operand that lies by
 * rows is its transpose by columns. */
typedef struct {
    cublasOperation_t op;
    int64_t ld;
} CudaStored;
CudaStored rt_cuda_stored(int64_t rows, int64_t cols, int64_t row, int64_t col);

cudaDataType_t rt_cuda_type(rt_dtype t);

/* ---- several products at once (group.c) -------------------------------------------------- */
gnnc_status rt_cuda_gemm_group(RtDevice *d, int n, const rt_gemm *g, void *const *pointers,
                               bool *made);

/* ---- products with an end (lt.c) -------------------------------------------------------- */
gnnc_status rt_cuda_gemm_with(RtDevice *d, const rt_gemm *g, const rt_epilogue *e, const float *a,
                              const float *b, bool *within);
void rt_cuda_lt_close(Cuda *c);

/* ---- sparse products (sparse.c) ---------------------------------------------------------- */
gnnc_status rt_cuda_spmm_open(RtDevice *d, const struct RtSparse *s, void **product);
gnnc_status rt_cuda_spmm(RtDevice *d, void *product, const void *dense, void *out);
void rt_cuda_spmm_close(RtDevice *d, void *product);
void rt_cuda_sparse_close(Cuda *c);

#endif
