/* Which serial product there is: oneDNN's, OpenBLAS's, or our plain one.  The Makefile says it, and
 * compiles this file twice: also without a library, for programs that only predict. */
#include "gemm_serial.h"

#if RT_GEMM_DNNL || RT_GEMM_BLAS
#include <pthread.h>
/* Of libgomp, as oneDNN is; declared here because clang's <omp.h> is another package's. */
int omp_get_max_threads(void);
void omp_set_num_threads(int n);

/* oneDNN asks OpenMP.  The setting is the calling thread's own; a caller in the host's thread gets
 * his back.
 *
 * oneDNN 2.6's AVX-512 kernels use the stack pointer as any register, and let it point into the
 * heap: there the kernel would write the frame of a signal's handler, over whatever lies there.  So
 * signals wait until the products are made, but for those that a fault raises. */
static void begin(RtSerialState *was) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    sigset_t held;
    was->threads = omp_get_max_threads();
    omp_set_num_threads(1);
    sigfillset(&held);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&held, faults[i]);
    pthread_sigmask(SIG_BLOCK, &held, &was->signals);
}

static void end(const RtSerialState *was) {
    pthread_sigmask(SIG_SETMASK, &was->signals, NULL);
    omp_set_num_threads(was->threads);
}
#else
static void begin(RtSerialState *was) {
    (void)was;
}

static void end(const RtSerialState *was) {
    (void)was;
}
#endif

#if RT_GEMM_DNNL
#include <oneapi/dnnl/dnnl.h>
enum { TILE_M = 128, TILE_N = 256, SPLIT_K = 512, TILE_M_THIN = 1024 };

/* C = A * B by oneDNN; false: it failed. */
static bool by_library(RtStored sa, RtStored sb, int64_t m, int64_t n, int64_t k, const float *a,
                       const float *b, float *c, int64_t ldc) {
    return dnnl_sgemm(sa.trans, sb.trans, m, n, k, 1.0f, a, sa.ld, b, sb.ld, 0.0f, c, ldc) ==
           dnnl_success;
}
#elif RT_GEMM_BLAS
#include <cblas.h>
/* A tile of at most 2^18 multiplications: OpenBLAS runs those on the calling thread. */
enum { TILE_M = 64, TILE_N = 64, SPLIT_K = 1024, TILE_M_THIN = 64 };

/* C = A * B by the BLAS library, in calls small enough that it starts no threads. */
static bool by_library(RtStored sa, RtStored sb, int64_t m, int64_t n, int64_t k, const float *a,
                       const float *b, float *c, int64_t ldc) {
    for (int64_t p = 0; p < k; p += TILE_M) { /* keeps each call below the threading limit */
        const float *ap = a + (sa.trans == 'N' ? p : p * sa.ld);
        const float *bp = b + (sb.trans == 'N' ? p * sb.ld : p);
        int64_t rest = k - p < TILE_M ? k - p : TILE_M;
        cblas_sgemm(CblasRowMajor, sa.trans == 'N' ? CblasNoTrans : CblasTrans,
                    sb.trans == 'N' ? CblasNoTrans : CblasTrans, (int)m, (int)n, (int)rest, 1.0f,
                    ap, (int)sa.ld, bp, (int)sb.ld, p ? 1.0f : 0.0f, c, (int)ldc);
    }
    return true;
}
#else
enum { TILE_M = 120, TILE_N = 256, SPLIT_K = 512, TILE_M_THIN = 960 };
#define by_library rt_sgemm_plain
#endif

const RtGemmSerial rt_gemm_serial = {
    .tile_m = TILE_M,
    .tile_n = TILE_N,
    .tile_m_thin = TILE_M_THIN,
    .split_k = SPLIT_K,
    .sgemm = by_library,
    .begin = begin,
    .end = end,
};
