/* What a C function that a model calls is given:
 *
 *     extern fn scale(x: f32[N, F], by: f32) -> f32[N, F] grad scale_grad from "scale.c"
 *
 *     #include <gnnc_extern.h>
 *     int scale(const gnnc_tensor *x, const gnnc_tensor *by, gnnc_tensor *y);
 *     int scale_grad(const gnnc_tensor *x, const gnnc_tensor *by,     the inputs,
 *                    const gnnc_tensor *y, const gnnc_tensor *dy,     the result, its gradient,
 *                    gnnc_tensor *dx, gnnc_tensor *dby);              one for each float input
 *
 * A pointer per argument, in the order of the declaration, then one for the result, where the
 * function has one.  It fills the result's data, reads the inputs' only, keeps no pointer, and
 * returns 0, or a status of its own that ends the run and is told.  It is called by one thread
 * of the host at a time; two trainers in one process may call it at the same time.
 *
 * Pure (no `effect`): the same inputs give the same result, and nothing else happens; such a
 * call is dropped where nobody uses it, and made once for equal inputs.  With `device`, a last
 * argument `void *stream` says where work is to be enqueued (a cudaStream_t) and data pointers
 * are the device's; the function waits for nothing.  In a program for the host, stream is NULL
 * and the pointers are the host's.
 *
 * Usable from C99 and C++. */
#ifndef GNNC_EXTERN_H
#define GNNC_EXTERN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gnnc_dtype {
    GNNC_F32 = 1, /* float */
    GNNC_F64 = 2, /* double */
    GNNC_I32 = 5, /* int32_t */
    GNNC_BOOL = 7 /* a byte, 0 or 1 */
} gnnc_dtype;

enum { GNNC_TENSOR_RANK = 8 };

/* Element (i, j, ..) is at data[i * stride[0] + j * stride[1] + ..]: dimensions in the order of
 * the declaration, the last one contiguous.  A scalar has rank 0.  data is aligned to 64 bytes. */
typedef struct gnnc_tensor {
    void *data;
    gnnc_dtype dtype;
    int rank;
    int64_t size[GNNC_TENSOR_RANK];
    int64_t stride[GNNC_TENSOR_RANK]; /* in elements */
} gnnc_tensor;

#ifdef __cplusplus
}
#endif
#endif
