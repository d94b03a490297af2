/* What steps of several processes left, added to a sum in their order: as the host adds it
 * (runtime/batch/train_sums.c), which rounds each product. */
#ifndef RUNTIME_CUDA_PARTS_H
#define RUNTIME_CUDA_PARTS_H

#include "cuda/kernel.h"

/* sum[i] = keeps * sum[i] + part[k][i] for k from 0 on; it begins with was[i]. */
static __global__ void gn_add_parts_of(float *sum, const float *was, const float *part, int64_t n,
                                       int64_t n_parts, int64_t stride, float keeps) {
    GN_ROWS(i, n) {
        float x = was[i];
        for (int64_t k = 0; k < n_parts; k++)
            x = __fadd_rn(__fmul_rn(keeps, x), part[k * stride + i]);
        sum[i] = x;
    }
}

/* arg: the sum, which may be what it was, that, the first part; int64_t[3] of their numbers, how
 * many parts, and numbers from one to the next; the factor. */
static inline int gn_add_parts(void *const *arg, void *stream) {
    float *sum = (float *)arg[0];
    const float *was = (const float *)arg[1], *part = (const float *)arg[2];
    const int64_t *size = (const int64_t *)arg[3];
    int64_t n = size[0], n_parts = size[1], stride = size[2];
    float keeps = *(const float *)arg[4];
    void *args[] = {&sum, &was, &part, &n, &n_parts, &stride, &keeps};
    return gn_launch(gn_add_parts_of, n, args, stream);
}

#endif
