/* What a library's sparse products read beside a program's own arrays: shared by the host, which
 * asks for it, and spmm.h, which makes it. */
#ifndef RUNTIME_CUDA_SPMM_LIST_H
#define RUNTIME_CUDA_SPMM_LIST_H

#include <stdint.h>

typedef enum {
    RT_SPMM_BOUNDS, /* to: int32_t[n] of from: int64_t[n] */
    RT_SPMM_WEIGHTS /* to: float[n], from[by[k]]: float[], int32_t[n]; without from: 1 */
} RtSpmmArrayKind;

typedef struct {
    int64_t n;
    RtSpmmArrayKind kind;
} RtSpmmRequest;

#endif
