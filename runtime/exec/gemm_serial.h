/* Matrix products on the calling thread, of what our own kernels leave: by a library, or, in a
 * runtime that is to need none, by plain C (gemm_plain.c). */
#ifndef RUNTIME_GEMM_SERIAL_H
#define RUNTIME_GEMM_SERIAL_H

#include <stdbool.h>
#include <stdint.h>

/* One operand as BLAS wants it: rows x cols, stored by rows ('N') or by columns ('T'). */
typedef struct {
    char trans;
    int64_t ld;
} RtStored;

/* C[m x n] = A[m x k] B[k x n], C by rows; false: it could not. */
typedef bool rt_sgemm_fn(RtStored sa, RtStored sb, int64_t m, int64_t n, int64_t k, const float *a,
                         const float *b, float *c, int64_t ldc);

typedef struct {
    int64_t tile_m, tile_n, tile_m_thin; /* what one call should get */
    int64_t split_k;
    rt_sgemm_fn *sgemm;
    /* Says that the calling thread is alone, and gives what undoes that. */
    int (*begin)(void);
    void (*end)(int was);
} RtGemmSerial;
extern const RtGemmSerial rt_gemm_serial;

/* By six rows and sixteen columns in registers; an element is one chain per 256 of k, whatever rows
 * and columns it is computed with. */
bool rt_sgemm_plain(RtStored sa, RtStored sb, int64_t m, int64_t n, int64_t k, const float *a,
                    const float *b, float *c, int64_t ldc);

#endif
