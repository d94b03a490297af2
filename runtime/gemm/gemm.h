/* What the files of matrix products share: gemm.c (f32), gemm_16.c (16 bits). */
#ifndef RUNTIME_GEMM_H
#define RUNTIME_GEMM_H

#include "runtime/exec/exec.h"

/* B of products, packed before them: what else each one would do anew (model_pack.c). */
typedef struct RtPacked {
    const struct RtPacked *next;
    const void *b;
    int64_t k, n, b_row, b_col;
    const void *data;
} RtPacked;
/* Of what x->rt has; NULL: it is packed each time. */
const void *rt_gemm_packed(const RtExec *x, const rt_gemm *g, const void *b);
/* Bytes of a packed B, from which products of these sizes are made, however many rows A has; 0:
 * they are made from B itself. */
size_t rt_gemm_packed_bytes(const RtExec *x, const rt_gemm *g);
/* Packs it; to: of that many bytes, 64-byte aligned. */
void rt_gemm_pack_whole(const RtExec *x, const rt_gemm *g, const void *b, void *to);

/* What rt_gemm_16 will ask for: rt_gemm_scratch() of such a product. */
size_t rt_gemm_16_scratch(RtExec *x, const rt_gemm *g, const void *b);
/* rt_gemm_packed_bytes() and rt_gemm_pack_whole() of such. */
size_t rt_gemm_16_packed_bytes(const RtExec *x, const rt_gemm *g);
void rt_gemm_16_pack_whole(const RtExec *x, const rt_gemm *g, const void *b, void *to);

/* Rows of a tile: more where the product is thin. */
int64_t rt_gemm_tile_rows(const rt_gemm *g, int64_t least_rows, int64_t most_rows);

/* C = A B, or C += A B, of numbers that were widened from f16, with rt_gemm_part_scratch(x, g)
 * bytes of the caller's to work in. */
gnnc_status rt_gemm_part(RtExec *x, const rt_gemm *g, const float *a, const float *b, float *c,
                         bool add, void *room);
size_t rt_gemm_part_scratch(RtExec *x, const rt_gemm *g);

#endif
