/* What the files of matrix products share: gemm.c (f32), gemm_16.c (16 bits). */
#ifndef RUNTIME_GEMM_H
#define RUNTIME_GEMM_H

#include "exec.h"

/* B of products, packed before them: what else each one would do anew (model_pack.c). */
typedef struct RtPacked {
    const struct RtPacked *next;
    const void *b;
    int64_t k, n, b_row, b_col;
    const float *data; /* [k * n] */
} RtPacked;
/* Of what x->rt has; NULL: it is packed each time. */
const float *rt_gemm_packed(const RtExec *x, const rt_gemm *g, const void *b);
/* Are products of these sizes, however many rows A has, made of a packed B? */
bool rt_gemm_packs(const RtExec *x, const rt_gemm *g);
/* Packs it, in the k * n floats `to`. */
gnnc_status rt_gemm_pack_whole(RtExec *x, const rt_gemm *g, const void *b, float *to);

/* What rt_gemm_16 will ask for: rt_gemm_scratch() of such a product. */
size_t rt_gemm_16_scratch(RtExec *x, const rt_gemm *g, const void *b);
/* rt_gemm_packs() and rt_gemm_pack_whole() of such. */
bool rt_gemm_16_packs(const RtExec *x, const rt_gemm *g);
gnnc_status rt_gemm_16_pack_whole(RtExec *x, const rt_gemm *g, const void *b, float *to);

/* C = A B, or C += A B, with rt_gemm_part_scratch(x, g, packed) bytes of the caller's to work in;
 * packed: B is, and `b` is not read; or NULL. */
gnnc_status rt_gemm_part(RtExec *x, const rt_gemm *g, const float *a, const float *b, float *c,
                         bool add, const float *packed, void *room);
size_t rt_gemm_part_scratch(RtExec *x, const rt_gemm *g, const float *packed);

#endif
