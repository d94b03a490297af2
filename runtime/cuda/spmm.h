/* Bounds and weights as the library wants them, made once when data are loaded. */
#ifndef RUNTIME_CUDA_SPMM_H
#define RUNTIME_CUDA_SPMM_H

#include "cuda/kernel.h"
#include "cuda/spmm_list.h"

static __global__ void gn_spmm_bounds(const int64_t *from, int32_t *to, int64_t n) {
    GN_ROWS(i, n) {
        to[i] = (int32_t)from[i];
    }
}

static __global__ void gn_spmm_weights(const float *from, const int32_t *by, float *to, int64_t n) {
    GN_ROWS(i, n) {
        to[i] = from ? from[by ? by[i] : i] : 1.0f;
    }
}

/* arg: from, by, to, an RtSpmmRequest. */
static inline int gn_spmm(void *const *arg, void *stream) {
    RtSpmmRequest ask = *(const RtSpmmRequest *)arg[3];
    if (ask.kind == RT_SPMM_BOUNDS) {
        void *args[] = {(void *)&arg[0], (void *)&arg[2], &ask.n};
        return gn_launch(gn_spmm_bounds, ask.n, args, stream);
    }
    void *args[] = {(void *)&arg[0], (void *)&arg[1], (void *)&arg[2], &ask.n};
    return gn_launch(gn_spmm_weights, ask.n, args, stream);
}

#endif
