/* Loops of a recording, for programs that have `while`: the node of a CUDA graph that repeats
 * others while a number holds (CUDA 12.4), and the kernel that says whether it does. */
#ifndef RUNTIME_CUDA_ITERATE_H
#define RUNTIME_CUDA_ITERATE_H

#include "cuda/kernel.h"

#if CUDART_VERSION >= 12040
/* One thread, in front of the loop (begins) and at the end of each iteration. */
static __global__ void gn_iterate_or_end(cudaGraphConditionalHandle loop,
                                         const unsigned char *condition, int64_t *iterations,
                                         int64_t limit, int begins) {
    const int64_t n = begins ? 0 : *iterations + 1;
    *iterations = n;
    cudaGraphSetConditional(loop, *condition && n < limit);
}
#endif

/* arg: the loop's handle, its condition, how many iterations it made, how many it may, whether it
 * begins.
 */
static inline int gn_iterate(void *const *arg, void *stream) {
#if CUDART_VERSION >= 12040
    cudaGraphConditionalHandle loop = *(const cudaGraphConditionalHandle *)arg[0];
    const unsigned char *condition = (const unsigned char *)arg[1];
    int64_t *iterations = (int64_t *)arg[2], limit = *(const int64_t *)arg[3];
    int begins = *(const int *)arg[4];
    void *args[] = {&loop, &condition, &iterations, &limit, &begins};
    return (int)cudaLaunchKernel(gn_iterate_or_end, dim3(1), dim3(1), args, 0,
                                 (cudaStream_t)stream);
#else
    (void)arg, (void)stream;
    return (int)cudaErrorNotSupported; /* nobody asks: loop.c */
#endif
}

#endif
