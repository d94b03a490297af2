/* What emitted kernels stand on: types, scalar functions whose meaning C leaves open,
 * random numbers, the loop over rows and the launch.  Everything else in an emitted file
 * is plain CUDA C, so that nvcc and the simulator of tests/cudasim read the same text. */
#ifndef RUNTIME_CUDA_KERNEL_H
#define RUNTIME_CUDA_KERNEL_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>

enum { GN_THREADS = 256 };

#define GN_FN static inline __device__
#define GN_HD static inline __host__ __device__

/* ---- sizes ------------------------------------------------------------------------------ */
GN_HD int64_t gn_max64(int64_t x, int64_t y) {
    return x > y ? x : y;
}
GN_HD int64_t gn_min64(int64_t x, int64_t y) {
    return x < y ? x : y;
}
GN_HD int64_t gn_ceildiv(int64_t x, int64_t y) {
    return y <= 0 || x <= 0 ? 0 : (x - 1) / y + 1;
}

/* ---- 16 bits: stored, computed in f32 ------------------------------------------------------ */
typedef __half gn_f16;
typedef __nv_bfloat16 gn_bf16;
GN_FN float gn_load(gn_f16 x) {
    return __half2float(x);
}
GN_FN float gn_load(gn_bf16 x) {
    return __bfloat162float(x);
}
GN_FN void gn_store(gn_f16 &to, float x) {
    to = __float2half_rn(x);
}
GN_FN void gn_store(gn_bf16 &to, float x) {
    to = __float2bfloat16_rn(x);
}
GN_FN float gn_round_f16(float x) {
    return __half2float(__float2half_rn(x));
}
GN_FN float gn_round_bf16(float x) {
    return __bfloat162float(__float2bfloat16_rn(x));
}

/* ---- integers: arithmetic wraps, x / 0 is 0 -------------------------------------------------- */
#define GN_WRAPPING(T, U)                                                                          \
    GN_FN T gn_add(T x, T y) {                                                                     \
        return (T)((U)x + (U)y);                                                                   \
    }                                                                                              \
    GN_FN T gn_sub(T x, T y) {                                                                     \
        return (T)((U)x - (U)y);                                                                   \
    }                                                                                              \
    GN_FN T gn_mul(T x, T y) {                                                                     \
        return (T)((U)x * (U)y);                                                                   \
    }                                                                                              \
    GN_FN T gn_neg(T x) {                                                                          \
        return (T)(0 - (U)x);                                                                      \
    }                                                                                              \
    GN_FN T gn_abs(T x) {                                                                          \
        return x < 0 ? gn_neg(x) : x;                                                              \
    }                                                                                              \
    GN_FN T gn_div(T x, T y) {                                                                     \
        return y == 0 ? 0 : y == -1 ? gn_neg(x) : x / y;                                           \
    }
GN_WRAPPING(int32_t, uint32_t)
GN_WRAPPING(int64_t, uint64_t)
GN_FN bool gn_neg(bool x) {
    return x;
}
GN_FN bool gn_abs(bool x) {
    return x;
}

/* Conversions saturate; NaN becomes 0. */
GN_FN int32_t gn_to_i32(double x) {
    if (x != x) return 0;
    return x >= 2147483648.0 ? INT32_MAX : x < -2147483648.0 ? INT32_MIN : (int32_t)x;
}
GN_FN int64_t gn_to_i64(double x) {
    if (x != x) return 0;
    if (x >= 9223372036854775808.0) return INT64_MAX;
    return x < -9223372036854775808.0 ? INT64_MIN : (int64_t)x;
}

/* ---- functions ----------------------------------------------------------------------------------
 */
GN_FN float gn_rsqrt(float x) {
    return 1.0f / sqrtf(x);
}
GN_FN double gn_rsqrt(double x) {
    return 1.0 / sqrt(x);
}
GN_FN float gn_sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}
GN_FN double gn_sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}
GN_FN float gn_pow(float x, float y) {
    return powf(x, y);
}
GN_FN double gn_pow(double x, double y) {
    return pow(x, y);
}
GN_FN int32_t gn_pow(int32_t x, int32_t y) {
    return gn_to_i32(pow((double)x, (double)y));
}
GN_FN int64_t gn_pow(int64_t x, int64_t y) {
    return gn_to_i64(pow((double)x, (double)y));
}

/* Uniform in [0, 1) by stream key, row and column: the arithmetic of runtime/rng.h, so that
 * masks are those of every other target. */
GN_FN uint32_t gn_mix32(uint32_t x) {
    x ^= x >> 16;
    x *= 0x21f0aaadu;
    x ^= x >> 15;
    x *= 0xd35a2d97u;
    x ^= x >> 15;
    return x;
}
GN_FN float gn_random(int32_t k0, int32_t k1, int64_t row, int64_t col) {
    uint32_t h = gn_mix32((uint32_t)row ^ (uint32_t)k0);
    h = gn_mix32(h ^ ((uint32_t)col * 0x9E3779B9u + (uint32_t)k1));
    return (float)(h >> 8) * 5.9604644775390625e-8f; /* 2^-24 */
}

/* ---- rows and launches
 * ------------------------------------------------------------------------------ */
/* Row i of n to each thread, striding over the grid. */
#define GN_ROWS(i, n)                                                                              \
    for (int64_t i = (int64_t)blockIdx.x * GN_THREADS + threadIdx.x; i < (n);                      \
         i += (int64_t)gridDim.x * GN_THREADS)
/* Once. */
#define GN_SERIAL(n) if (n && blockIdx.x == 0 && threadIdx.x == 0)

enum { GN_BLOCKS_MAX = 1 << 16 };

template <class K> int gn_launch(K *kernel, int64_t extent, void **args, void *stream) {
    if (extent <= 0) return 0;
    int64_t blocks = gn_min64(gn_ceildiv(extent, GN_THREADS), GN_BLOCKS_MAX);
    return (int)cudaLaunchKernel(kernel, dim3((unsigned)blocks), dim3(GN_THREADS), args, 0,
                                 (cudaStream_t)stream);
}

#endif
