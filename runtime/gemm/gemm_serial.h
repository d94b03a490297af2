/* Matrix products on the calling thread, of what our own kernels leave: by a library, or, in a
 * runtime that is to need none, by plain C (gemm_plain.c). */
#ifndef RUNTIME_GEMM_SERIAL_H
#define RUNTIME_GEMM_SERIAL_H

#include <signal.h>
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

/* What the calling thread had before its products. */
typedef struct {
    int threads; /* of OpenMP */
    sigset_t signals;
} RtSerialState;

typedef struct {
    int64_t tile_m, tile_n, tile_m_thin; /* what one call should get */
    int64_t split_k;
    rt_sgemm_fn *sgemm;
    /* Around the calls of sgemm that a thread makes: says that it is alone, and holds signals back.
     * `end` gives it what it had. */
    void (*begin)(RtSerialState *was);
    void (*end)(const RtSerialState *was);
} RtGemmSerial;
extern const RtGemmSerial rt_gemm_serial;

/* By six rows and sixteen columns in registers; an element is one chain per 256 of k, whatever rows
 * and columns it is computed with. */
bool rt_sgemm_plain(RtStored sa, RtStored sb, int64_t m, int64_t n, int64_t k, const float *a,
                    const float *b, float *c, int64_t ldc);

#endif
