/* Whether a GPU can run the kernels that stand beside this one: a program has machine code for some
 * kinds of GPUs, and a form for those that came later, but nothing for older ones. */
#ifndef RUNTIME_CUDA_PROBE_H
#define RUNTIME_CUDA_PROBE_H

#include "cuda/kernel.h"

static __global__ void gn_nothing(void) {
}

static inline int gn_probe(void *const *arg, void *stream) {
    cudaFuncAttributes a;
    (void)arg, (void)stream;
    return (int)cudaFuncGetAttributes(&a, gn_nothing);
}

#endif
