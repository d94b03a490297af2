/* What the files of matrix products share: cuts of sizes, and loops that are unrolled whole. */
#ifndef RUNTIME_GEMM_CUTS_H
#define RUNTIME_GEMM_CUTS_H

#include <stdint.h>

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

static inline int64_t ceil_div(int64_t x, int64_t y) {
    return (x + y - 1) / y;
}
static inline int64_t least(int64_t x, int64_t y) {
    return x < y ? x : y;
}
static inline int64_t most(int64_t x, int64_t y) {
    return x > y ? x : y;
}

#endif
