/* Names and shapes of tensors in files. */
#ifndef RUNTIME_CHECKPOINT_H
#define RUNTIME_CHECKPOINT_H

#include "runtime/data/npy.h"
#include "runtime/data/safetensors.h"
#include "trainer.h"

/* Where weights and checkpoints come from: memory, what was read before the data, or the file
 * `name`, which is what messages call it. */
typedef struct RtSource {
    const char *name;
    RtBytes memory;         /* p NULL: none */
    const RtTensors *given; /* read already; NULL = no */
} RtSource;
/* Its tensors; their data lie in the pool, in the memory, or where the given ones do. */
gnnc_status rt_source_read(RtPool *pool, const RtSource *from, RtTensors *out, RtError *err);
gnnc_status rt_weights_load(gnnc_trainer *t, const RtSource *from);
gnnc_status rt_checkpoint_resume(gnnc_trainer *t, const RtSource *from);

/* Where they go to: the host's function, or the file `name`. */
typedef struct RtTarget {
    const char *name;
    gnnc_write_fn *write; /* NULL = the file */
    void *user;
} RtTarget;
gnnc_status rt_target_write(gnnc_trainer *t, const RtTarget *to, const RtTensors *f);

/* The same elements in the same order: equal but for dimensions of 1 and for dimensions
 * that one shape has merged: [8, 16, 5] and [128, 5] and [1, 128, 5, 1]. */
bool rt_shapes_agree(int rank_a, const int64_t *a, int rank_b, const int64_t *b);
RtDtype rt_file_dtype(rt_dtype t);
/* Between the order of elements in memory and that of files and the C API, which is the one as
 * written (rt_var_shape.transposed). */
void rt_var_as_written(const RtExec *x, int var, const void *stored, void *written);
void rt_var_as_stored(const RtExec *x, int var, const void *written, void *stored);
/* Variable `var` as an array with its outside shape.  Its data is `stored`, or a copy of that as it
 * is written; NULL: no memory. */
RtArray rt_var_array(gnnc_trainer *t, RtPool *pool, int var, const void *stored);
/* Fits a tensor of a file a variable?  E_SHAPE, E_DTYPE. */
gnnc_status rt_tensor_check(gnnc_trainer *t, RtPool *pool, const char *path, const RtTensor *from,
                            int var);
/* .. and floats of other types are converted in place of the file's. */
gnnc_status rt_tensor_fit(gnnc_trainer *t, RtPool *pool, const char *path, RtTensor *from, int var);
/* Copies a tensor that fits into a variable's buffer. */
void rt_tensor_store(gnnc_trainer *t, const RtTensor *from, int var, void *to);
void rt_average_anew(gnnc_trainer *t); /* of a model with `ema`: training starts from it */

#endif
