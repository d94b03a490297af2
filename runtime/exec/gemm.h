/* What the files of matrix products share: gemm.c (f32), gemm_16.c (16 bits). */
#ifndef RUNTIME_GEMM_H
#define RUNTIME_GEMM_H

#include "exec.h"

/* What rt_gemm_16 will ask for: rt_gemm_scratch() of such a product. */
size_t rt_gemm_16_scratch(RtExec *x, const rt_gemm *g);

/* C = A B, or C += A B, with rt_gemm_scratch(x, g) bytes of the caller's to work in. */
gnnc_status rt_gemm_part(RtExec *x, const rt_gemm *g, const float *a, const float *b, float *c,
                         bool add, void *room);

#endif
